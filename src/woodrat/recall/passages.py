"""Passages: what recall searches, made from runs, from what is believed, from notes and from documents.

Of a run, what was asked, each decision and the answer are passages of their own: a question is short, and beside a
whole run every question looks far away. Such a passage depends on its entry and on how its run started, on nothing that
comes later. What is believed of an entity is a few short lines, each of what one agent said. A document is cut at its
paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from woodrat.recall.identifiers import named_in, pairs_in
from woodrat.records import dataclass

ASKED, DECIDED, ANSWERED, RECALLED = "asked", "decided", "answered", "recalled"
"""Kinds of passage of a run. The last has no text: it says that a run has recalled others."""
FACT, NOTE, DOCUMENT, GONE = "fact", "note", "document", "gone"
"""Kinds of passage of everything else. The last has no text: nothing is believed of an entity any more."""

STARTED: Final = "run.started"
READ: Final = "run.read"
KIND_OF: Final = {
    STARTED: ASKED,
    "run.decided": DECIDED,
    "run.ended": ANSWERED,
    "run.noted": RECALLED,
    READ: RECALLED,
}
"""The entries that have a passage, and its kind."""

PASSAGE_CHARACTERS_MAX: Final = 2_000
"""How much of a text is embedded; the rest is not looked at."""
RECALL_EVENT: Final = "recalled"
"""What the note of a recall says it is; logs of before recalls were reads have such notes."""
RECALL_MARK: Final = b'"within":"recall"'
"""What every read that recalled says; others have no passage."""
RECALLED_MAX: Final = 8
"""How many of the runs that a recall found are looked at again when the run that asked comes up itself."""

_CAPITAL = re.compile("(?<=[a-z0-9])(?=[A-Z])|_")


@dataclass(frozen=True, slots=True)
class RunStart:
    """What the passages of a run take from how it started."""

    subject: str
    """The entity it is about, as a reference; empty when it states none."""
    query: str
    """What was asked."""
    named: bool
    """Whether the start names anything by number; otherwise the answer may."""


@dataclass(frozen=True, slots=True)
class Passage:
    """What one entry of a run adds to what recall knows."""

    kind: str
    """One of the kinds above."""
    text: str
    """What is embedded; empty when there is nothing."""
    names: tuple[str, ...] = ()
    """Tokens with a digit that name what the run is about, sorted."""
    pairs: tuple[str, ...] = ()
    """Tokens with a digit together with the word they follow, as `application 42`, sorted."""
    runs: tuple[str, ...] = ()
    """The runs that were recalled, best first."""


def start_of(body: Mapping[str, Any]) -> RunStart:
    """Return what later passages take from a `run.started`."""
    subject, query = _text(body.get("subject")), _text(body.get("query"))
    return RunStart(subject, query, bool(_names(subject, query, body.get("inputs"))))


def passage(kind: str, body: Mapping[str, Any], start: RunStart) -> Passage | None:
    """Return what an entry adds; nothing, for entries without a word to look for."""
    if kind == STARTED:
        return _asked(body)
    if kind == "run.decided":
        return _decided(body, start)
    if kind == "run.ended":
        return _answered(body, start)
    if kind == READ:
        return _recalled_by_read(body)
    return _recalled(body) if kind == "run.noted" else None


def _asked(body: Mapping[str, Any]) -> Passage:
    subject, query, inputs = _text(body.get("subject")), _text(body.get("query")), body.get("inputs")
    names = _names(subject, query, inputs)
    pairs = pairs_in((subject, query, *_spelled(inputs)))
    return Passage(ASKED, _joined(query, subject), tuple(sorted(names)), tuple(sorted(pairs)))


def _names(subject: str, query: str, inputs: object) -> frozenset[str]:
    """Return what a run is about by number: from its subject and question, or else from what it was given."""
    return named_in((subject, query)) or named_in(_spelled(inputs))


def _decided(body: Mapping[str, Any], start: RunStart) -> Passage:
    said = [_text(body.get(name)) for name in ("stage", "chosen", "rule", "rationale")]
    evidence = list(_evidence(body))
    pairs = pairs_in((*said, *evidence))
    return Passage(DECIDED, _joined(start.subject, *said, *evidence), (), tuple(sorted(pairs)))


def _answered(body: Mapping[str, Any], start: RunStart) -> Passage | None:
    answer = _text(body.get("answer"))
    if not answer:
        return None
    names = frozenset[str]() if start.named else named_in((answer,))
    return Passage(ANSWERED, _joined(answer, start.subject), tuple(sorted(names)), tuple(sorted(pairs_in((answer,)))))


def _recalled_by_read(body: Mapping[str, Any]) -> Passage | None:
    if body.get("within") != "recall" or "error" in body:
        return None
    return Passage(RECALLED, "", runs=_runs_of(body.get("recalled")))


def _recalled(body: Mapping[str, Any]) -> Passage | None:
    data = body.get("data")
    if not isinstance(data, dict) or data.get("event") != RECALL_EVENT:
        return None
    return Passage(RECALLED, "", runs=_runs_of(data.get("hits")))


def _runs_of(hits: object) -> tuple[str, ...]:
    found = [hit.get("run") for hit in hits if isinstance(hit, dict)] if isinstance(hits, list) else []
    return tuple(run for run in found if isinstance(run, str))[:RECALLED_MAX]


def _evidence(body: Mapping[str, Any]) -> Iterator[str]:
    """Yield the conditions of the rules that matched, as `credit score 580 threshold 600`."""
    rules = body.get("rules")
    for rule in rules if isinstance(rules, list) else ():
        if not isinstance(rule, dict) or rule.get("matched") is not True:
            continue
        conditions = rule.get("conditions")
        for condition in conditions if isinstance(conditions, list) else ():
            if isinstance(condition, dict):
                key, actual = _words(_text(condition.get("key"))), _text(condition.get("actual"))
                operand = condition.get("operand")
                limit = "" if isinstance(operand, list | dict) or operand is None else f"threshold {_text(operand)}"
                yield f"{key} {actual} {limit}"


def _spelled(inputs: object) -> Iterator[str]:
    """Yield what a run was given, each value after its name: `application 42`."""
    if isinstance(inputs, dict):
        for name in sorted(inputs):
            if isinstance(inputs[name], str | int) and not isinstance(inputs[name], bool):
                yield f"{_words(name)} {inputs[name]}"[:PASSAGE_CHARACTERS_MAX]


def _words(key: str) -> str:
    """Return a key as words: `creditScore` and `credit_score` as `credit score`."""
    return _CAPITAL.sub(" ", key)


def _text(value: object) -> str:
    """Return a value as text to look into; of one that was too long to be recorded, its beginning."""
    if isinstance(value, str):
        return value[:PASSAGE_CHARACTERS_MAX]
    if isinstance(value, bool) or value is None:
        return "" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, dict) and set(value) == {"$truncated"} and isinstance(value["$truncated"], dict):
        return _text(value["$truncated"].get("preview"))
    if isinstance(value, dict):
        parts = (f"{_words(name)} {_text(value[name])}" for name in sorted(value))
    elif isinstance(value, list):
        parts = (_text(item) for item in value)
    else:
        return ""
    found: list[str] = []
    for part in parts:
        if sum(map(len, found)) >= PASSAGE_CHARACTERS_MAX:
            break
        found.append(part)
    return " ".join(found)[:PASSAGE_CHARACTERS_MAX]


def _joined(*parts: str) -> str:
    return " ".join(filter(None, parts))[:PASSAGE_CHARACTERS_MAX]


# What is believed


LINE_CHARACTERS_MAX: Final = 160
"""About how long a line of an entity is: beside a long one every question looks far away."""
LINES_MAX: Final = 16
"""How many lines one entity has; fields that come later by name are not searched."""
VALUE_CHARACTERS_MAX: Final = 600
"""How much of one value a line shows."""
NOTE_TYPE: Final = "note"
"""The type of entity that is a note."""
_LABELS: Final = ("name", "title", "full_name", "label")


@dataclass(frozen=True, slots=True)
class FactLine:
    """One line of what is believed of an entity, from one agent."""

    kind: str
    """`fact` or `note`."""
    text: str
    """What is believed."""
    agent: str
    """Who said so."""
    at: str
    """When the latest of it was observed."""
    fields: tuple[str, ...]
    """The fields that it shows."""
    names: tuple[str, ...]
    """Identifiers in it, sorted."""
    pairs: tuple[str, ...]
    """Identifiers with the words they follow, sorted."""


class Stated(NamedTuple):
    """One value that is believed."""

    value: Any
    """The value."""
    agent: str
    """Who said so."""
    at: str
    """When it was observed."""


def label_of(type: str, key: str, ends: tuple[str, str] | None, fields: Mapping[str, Any]) -> str:
    """Return what people call an entity: its name or title, or else its key; of a relation both of its ends."""
    if ends is not None:
        one, other = (end.partition("/")[2] or end for end in ends)
        return f"{one} {_words(type)} {other}"
    return next((fields[name] for name in _LABELS if isinstance(fields.get(name), str) and fields[name]), key)


def lines_of(type: str, key: str, ends: tuple[str, str] | None, stated: Mapping[str, Stated]) -> list[FactLine]:
    """Return the lines of an entity: what each agent said of it, a few fields to a line."""
    fields = {name: each.value for name, each in stated.items()}
    if type == NOTE_TYPE and isinstance(fields.get("text"), str):
        return _note_lines(stated)
    label = label_of(type, key, ends, fields)
    head = label if ends is not None else f"{_words(type)} {label}"
    by_agent: dict[str, list[tuple[str, str]]] = {}
    for name in sorted(stated):
        value = _text(stated[name].value)[:VALUE_CHARACTERS_MAX]
        if value and value != label:
            by_agent.setdefault(stated[name].agent, []).append((name, f"{_words(name)} {value}"))
    lines: list[FactLine] = []
    for agent in sorted(by_agent):
        parts: list[tuple[str, str]] = []
        for part in (*by_agent[agent], None):
            if parts and (part is None or sum(len(said) for _, said in (*parts, part)) > LINE_CHARACTERS_MAX):
                text = f"{head}: {', '.join(said for _, said in parts)}"
                spoken = (f"{type}/{key}", *(said for _, said in parts))
                lines.append(_line(FACT, text, [name for name, _ in parts], stated, spoken))
                parts = []
            if part is not None:
                parts.append(part)
    if not lines and stated:
        lines = [_line(FACT, head, sorted(stated), stated, (f"{type}/{key}",))]
    return lines[:LINES_MAX]


def _note_lines(stated: Mapping[str, Stated]) -> list[FactLine]:
    text, about = _text(stated["text"].value), _text(stated["about"].value) if "about" in stated else ""
    subject = about.partition("/")[2] or about
    said = text if not subject or subject.lower() in text.lower() else f"{subject}: {text}"
    return [_line(NOTE, said, sorted(stated), stated, (text, about))]


def _line(kind: str, text: str, names: list[str], stated: Mapping[str, Stated], spoken: tuple[str, ...]) -> FactLine:
    latest = max((stated[name] for name in names), key=lambda each: each.at)
    return FactLine(
        kind,
        text[:PASSAGE_CHARACTERS_MAX],
        latest.agent,
        latest.at,
        tuple(names),
        tuple(sorted(named_in(spoken))),
        tuple(sorted(pairs_in(spoken))),
    )


# Documents

DOCUMENT_CHARACTERS: Final = 500
"""About how long a piece of a document is."""
PIECES_MAX: Final = 2_000
"""How many pieces of one document are searched; what follows is not."""
DOCUMENT_BYTES_MAX: Final = 4_000_000
"""Longest content that is taken for a text."""
_TEXT_TYPES = re.compile("text/|application/(?:json|xml|yaml|x-ndjson|markdown)")
_TEXT_NAMES = re.compile(r"\.(?:txt|md|markdown|rst|text|csv|tsv|html?|xml|json|jsonl|ya?ml|eml|log)$", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SPACES = re.compile(r"\s+")


def document_text(content: bytes, name: str, media_type: str | None) -> str | None:
    """Return the text of a source; none where it is no text."""
    if len(content) > DOCUMENT_BYTES_MAX or b"\0" in content:
        return None
    if media_type is not None and not _TEXT_TYPES.match(media_type) and not _TEXT_NAMES.search(name):
        return None
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        return None


def document_pieces(text: str) -> Iterator[str]:
    """Yield the pieces of a text: paragraphs, the short ones together, the long ones cut at their sentences."""
    waiting, count = "", 0
    for paragraph in re.split(r"\n\s*\n", text):
        for sentence in _SENTENCE.split(_SPACES.sub(" ", paragraph).strip()):
            for start in range(0, len(sentence), PASSAGE_CHARACTERS_MAX):
                part = sentence[start : start + PASSAGE_CHARACTERS_MAX]
                if waiting and len(waiting) + len(part) > DOCUMENT_CHARACTERS:
                    yield waiting
                    count, waiting = count + 1, ""
                    if count >= PIECES_MAX:
                        return
                waiting = f"{waiting} {part}".strip()
        if len(waiting) > DOCUMENT_CHARACTERS // 2:
            yield waiting
            count, waiting = count + 1, ""
            if count >= PIECES_MAX:
                return
    if waiting:
        yield waiting
