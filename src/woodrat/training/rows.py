"""Training: run records as rows for training a model.

    sft          the whole conversation of a run that went well
    dpo          two continuations of one and the same prompt, one of them better
    kto          one answer, and whether it is good
    process-rl   the steps of a run, and whether each is good

Two flavours: `trl`, as Hugging Face's TRL reads rows (tool-call arguments are objects, `tools` is JSON text, since a
column of tables cannot hold schemas of different shapes), and `openai`, as OpenAI's fine-tuning reads them (arguments
are text). docs/reference/training.md shows the rows. Each row says under `metadata` which runs and entries it is from.
"""

from __future__ import annotations

import json
import re
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.digest import digest
from woodrat.canon.form import serialise
from woodrat.errors import Fault, Refused, shown
from woodrat.log.erasure import ERASED
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.runs.conversation import ASSISTANT, SHOW, TOOL, Message, conversation, is_whole, offered_tools, spoken
from woodrat.runs.run_fields import BAD, DONE, GOOD
from woodrat.runs.values import is_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.runs.record import RunRecord

SFT, DPO, KTO, PROCESS = "sft", "dpo", "kto", "process-rl"
KINDS: Final = (SFT, DPO, KTO, PROCESS)
"""Kinds of training that rows can be made for."""
TRL, OPENAI = "trl", "openai"
FLAVOURS: Final = (TRL, OPENAI)
"""Flavours of rows."""

INPUT: Final = "input"
"""Default key for pairing runs."""
PAIR_FIELDS: Final = ("query", "subject", "conversation")
"""Names of fields of a run; any other name is an attribute."""

TOOL_NAME_MAX: Final = 64
"""Longest name of a tool that OpenAI takes."""

_NO_NAME: Final = re.compile("[^A-Za-z0-9_-]")
_SHOW_TOOL: Final[Mapping[str, Any]] = {
    "description": "Read the state of an entity.",
    "parameters": {
        "type": "object",
        "properties": {"ref": {"type": "string"}, "as_of": {"type": "integer"}},
        "required": ["ref"],
    },
}
_TYPES: Final = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}

Row = dict[str, Any]
Tools = dict[str, Any]
"""Known tools, by name: `{"description", "parameters"}`."""


def check(kind: object, flavour: object, pair_by: object = INPUT) -> None:
    """Refuse an unknown kind or flavour, and an invalid key for pairs."""
    faults = []
    if not isinstance(pair_by, str) or not pair_by:
        remedy = f"Send {INPUT}, {', '.join(PAIR_FIELDS)} or the name of an attribute, such as task_id."
        faults.append(Fault("pair_by", f"got {shown(pair_by)}", remedy))
    elif pair_by != INPUT and kind in KINDS and kind != DPO:
        faults.append(Fault("pair_by", f"rows of kind {kind} have no pairs", f"Leave it out, or export {DPO}."))
    for name, given, known in (("kind", kind, KINDS), ("flavour", flavour, FLAVOURS)):
        if given not in known:
            faults.append(Fault(name, f"there is no {name} {shown(given)}", f"Send one of {', '.join(known)}."))
    if faults:
        raise Refused(faults, "Nothing was exported.")


@dataclass(frozen=True, slots=True)
class LeftOut(Record):
    """A requested run without a row."""

    run: str
    """The run."""
    reason: str
    """Why, in a clause."""
    observations: tuple[str, ...] = ()
    """The withdrawn or erased observations it depends on."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A run that can become rows."""

    record: RunRecord
    """Its record."""
    messages: tuple[Message, ...]
    """Its conversation through the assistant's last turn."""
    after: tuple[Message, ...]
    """The messages after it: the result of a call, the user's last words."""
    tools: Tools
    """The tools offered to its models, and the called ones."""

    @property
    def label(self) -> bool | None:
        """Whether its judges found it good or bad; None when they did not say, or differ."""
        return label(self.record)

    @property
    def source(self) -> tuple[str, tuple[int, ...]]:
        """The run, and its entries."""
        return self.record.id, self.record.positions


def label(record: RunRecord) -> bool | None:
    """Return True if the judges of a run found it good, False if bad; None if they did not say, or disagree."""
    return True if record.verdict in GOOD else False if record.verdict in BAD else None


def pair_key(record: RunRecord, pair_by: str = INPUT) -> bytes | None:
    """Return the key that runs must share to be paired; None for a run without it.

    `input` means the question, the subject and the inputs together; `query`, `subject` and `conversation` one of these;
    any other name the attribute of that name.
    """
    if pair_by == INPUT:
        return digest("input", serialise([record.query, record.subject, dict(record.inputs)]))
    value = getattr(record, pair_by) if pair_by in PAIR_FIELDS else record.attributes.get(pair_by)
    return None if value is None or is_mark(value) else digest("pair", serialise([pair_by, value]))


def lesson(record: RunRecord, known: Tools | None = None) -> Lesson | LeftOut:
    """Return a run as something to learn from, or why it is not."""
    problem = _unfit(record)
    if problem is not None:
        return LeftOut(record.id, problem)
    messages = conversation(record)
    if any(message.role == TOOL and message.answers is None for message in messages):
        return LeftOut(record.id, "a tool answered a call that is not on record")
    end = max((number for number, message in enumerate(messages, 1) if message.role == ASSISTANT), default=0)
    last = messages[end - 1] if end else None
    by_model = last is not None and any(call.span in last.spans for call in record.models)
    if last is None or not (last.content or (last.calls and by_model)):
        return LeftOut(record.id, "nothing was answered")
    known = {**offered_tools(record), **(known or {})}
    return Lesson(record, messages[:end], messages[end:], _tools(messages, known))


def _is_erased(value: object) -> bool:
    """Return True if a record contains a placeholder for erased data."""
    if isinstance(value, dict):
        return any(_is_erased(item) for item in (*value.keys(), *value.values()))
    if isinstance(value, list | tuple):
        return any(map(_is_erased, value))
    return isinstance(value, str) and ERASED in value


def _unfit(record: RunRecord) -> str | None:
    if record.status != DONE:
        return f"it did not end well ({record.status})"
    if record.erased or _is_erased(record.to_json()):
        return "parts of it were erased"
    if record.recall:
        return "it answered from memory, which its transcript does not hold"
    if not record.query and not record.inputs:
        return "nothing was asked"
    marks = [record.answer, record.inputs, *(call.args for call in record.tool_calls)]
    if not is_whole(record) or any(
        _is_cut(value) for value in (*marks, *(decision.chosen for decision in record.decisions))
    ):
        return "its recorder could not keep the whole text"
    return None


def _is_cut(value: object) -> bool:
    if is_mark(value):
        return True
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(_is_cut(item) for item in inner)


def _tools(messages: Iterable[Message], known: Tools) -> Tools:
    """Return the known tools, and the other called ones, with parameters that fit every call."""
    uses: dict[str, list[Mapping[str, Json]]] = {}
    for message in messages:
        for use in message.calls:
            uses.setdefault(use.name, []).append(use.arguments)
    return {**{name: _inferred(name, calls) for name, calls in uses.items()}, **known}


def _inferred(name: str, calls: Sequence[Mapping[str, Json]]) -> dict[str, Any]:
    if name == SHOW:
        return dict(_SHOW_TOOL)
    properties: dict[str, Any] = {}
    for key in sorted({key for call in calls for key in call}):
        types = sorted({_TYPES.get(type(call[key]), "null") for call in calls if key in call})
        properties[key] = {"type": types[0] if len(types) == 1 else types}
    required = sorted(key for key in properties if all(key in call for call in calls))
    return {"description": "", "parameters": {"type": "object", "properties": properties, "required": required}}


def joined(tools: Iterable[Tools]) -> Tools:
    """Return the tools of several runs; where they know one differently, each call still fits."""
    found: Tools = {}
    for known in tools:
        for name, tool in known.items():
            found[name] = tool if name not in found else _either(found[name], tool)
    return found


def _either(one: Any, other: Any) -> Any:
    if one == other:
        return one
    left, right = one["parameters"], other["parameters"]
    properties = {**left.get("properties", {})}
    for key, about in right.get("properties", {}).items():
        mine = properties.get(key)
        if mine is not None and mine != about:
            types = sorted({kind for side in (mine, about) for kind in _kinds(side)})
            about = {"type": types} if types else {}
        properties[key] = about
    required = sorted(set(left.get("required", ())) & set(right.get("required", ())))
    whole = {**left, "properties": dict(sorted(properties.items())), "required": required}
    return {"description": one["description"] or other["description"], "parameters": whole}


def _kinds(about: Any) -> list[str]:
    kind = about.get("type", []) if isinstance(about, dict) else []
    return [kind] if isinstance(kind, str) else list(kind)


# Rows


def sft_row(lesson: Lesson, flavour: str) -> Row:
    """Return the whole conversation of a run; for OpenAI up to the assistant's last turn, which has to end it."""
    after = lesson.after if flavour == TRL else ()
    return {
        "messages": _messages((*lesson.messages, *after), flavour),
        "tools": _tool_list(lesson.tools, flavour),
        "metadata": _metadata(SFT, [lesson]),
    }


def kto_row(lesson: Lesson, flavour: str) -> Row:
    """Return the assistant's last turn in a judged run, the turns before it, and True if it is good."""
    assert lesson.label is not None
    return {
        "prompt": _messages(lesson.messages[:-1], flavour),
        "completion": _messages(lesson.messages[-1:], flavour),
        "label": lesson.label,
        "tools": _tool_list(lesson.tools, flavour),
        "metadata": _metadata(KTO, [lesson]),
    }


def preferred_row(lesson: Lesson, flavour: str) -> Row | LeftOut:
    """Return the answer that a judge prefers, paired with the given one."""
    better = lesson.record.preferred
    assert better is not None
    if lesson.record.answer is None or is_mark(better.preferred):
        return LeftOut(lesson.record.id, "there is no answer to compare with the preferred one")
    chosen, rejected = spoken(better.preferred), spoken(lesson.record.answer)
    if chosen == rejected:
        return LeftOut(lesson.record.id, "the preferred answer equals its own")
    sides = [(Message(ASSISTANT, text),) for text in (chosen, rejected)]
    return _pair(lesson.messages[:-1], sides[0], sides[1], lesson.tools, [lesson], flavour)


def pair_row(good: Lesson, bad: Lesson, flavour: str, pair_by: str = INPUT) -> Row | LeftOut:
    """Return the first turn in which a good and a bad run differ, after their common beginning.

    Runs of the same input that diverge at a tool's result or a user's message make no row: nobody chose that. Runs of
    one task may begin with the same turn: the prompt then extends to the good run's next choice, and each side is the
    rest of its conversation, for OpenAI one turn of it.
    """
    shared = shared_messages(good, bad)
    tools = joined([good.tools, bad.tools])
    ours, theirs = good.messages[shared:], bad.messages[shared:]
    if not ours or not theirs:
        return LeftOut(bad.record.id, f"it did the same as {good.record.id}")
    if ours[0].role == theirs[0].role == ASSISTANT:
        return _pair(good.messages[:shared], ours[:1], theirs[:1], tools, [good, bad], flavour)
    other = next(each[0].role for each in (ours, theirs) if each[0].role != ASSISTANT)
    what = "a tool's result" if other == TOOL else f"a message of the {other}"
    if pair_by == INPUT:
        return LeftOut(bad.record.id, f"it differs from {good.record.id} at {what}, not at a choice")
    ahead, behind = (_next_choice(each) for each in (ours, theirs))
    prompt = (*good.messages[:shared], *ours[:ahead])
    # OpenAI takes one turn on each side.
    end = None if flavour == TRL else 1
    chosen, rejected = ours[ahead:][:end], theirs[behind:][:end]
    if len(chosen) == len(rejected) and all(one.same(other) for one, other in zip(chosen, rejected, strict=True)):
        return LeftOut(bad.record.id, f"it gave the same answer as {good.record.id}")
    return _pair(prompt, chosen, rejected, tools, [good, bad], flavour)


def _next_choice(messages: Sequence[Message]) -> int:
    return next(place for place, message in enumerate(messages) if message.role == ASSISTANT)


def shared_messages(one: Lesson, other: Lesson) -> int:
    """Return the number of equal messages at the start of two runs."""
    both = zip(one.messages, other.messages, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0].same(pair[1]), both))


def _pair(
    prompt: Sequence[Message],
    chosen: Sequence[Message],
    rejected: Sequence[Message],
    tools: Tools,
    lessons: Sequence[Lesson],
    flavour: str,
) -> Row:
    left, right = _messages(chosen, flavour), _messages(rejected, flavour)
    about = _metadata(DPO, lessons)
    if flavour == OPENAI:
        asked = {"messages": _messages(prompt, flavour), "tools": _tool_list(tools, flavour)}
        given = {**asked, "parallel_tool_calls": False}
        return {"input": given, "preferred_output": left, "non_preferred_output": right, "metadata": about}
    return {
        "prompt": _messages(prompt, flavour),
        "chosen": left,
        "rejected": right,
        "tools": _tool_list(tools, flavour),
        "metadata": about,
    }


def process_row(lesson: Lesson, sibling: Lesson | None) -> Row | LeftOut:
    """Return the steps of a judged run, each with its label.

    A step that was judged itself keeps its verdict. In a good run all others are good; in a bad run those before the
    first one judged bad or, with a good run of the same input beside it, before the two diverge.
    """
    steps = _assistant_steps(lesson.messages)
    judged: dict[int, bool] = {}
    for judgement in lesson.record.judgements:
        about = judgement.about
        known = True if judgement.verdict in GOOD else False if judgement.verdict in BAD else None
        for number, (_, spans) in enumerate(steps):
            if about is not None and about in spans and known is not None:
                judged[number] = known
    if lesson.label is True:
        turning = len(steps)
    elif not all(judged.values()):
        turning = min(number for number, good in judged.items() if not good)
    elif lesson.label is False and sibling is not None:
        shared = shared_messages(lesson, sibling)
        turning = sum(1 for message in lesson.messages[:shared] if message.role == ASSISTANT)
        if turning == len(steps):
            return LeftOut(lesson.record.id, f"it did what {sibling.record.id} did")
    else:
        return LeftOut(lesson.record.id, "which of its steps went wrong is not known; judge a step of it")
    return {
        "prompt": lesson.messages[0].content,
        "completions": [text for text, _ in steps],
        "labels": [judged.get(number, number < turning) for number in range(len(steps))],
        "metadata": _metadata(PROCESS, [lesson]),
    }


def _assistant_steps(messages: Sequence[Message]) -> list[tuple[str, frozenset[str]]]:
    """Return the assistant's messages, a call with its result: text, and the spans behind it."""
    found: list[tuple[str, frozenset[str]]] = []
    for message in messages:
        if message.role == TOOL:
            text, spans = found.pop()
            found.append((f"{text}\n-> {message.content}", spans | message.spans))
        elif message.role == ASSISTANT:
            said = [message.content] if message.content else []
            said += [f"{use.name}({_json(dict(use.arguments))})" for use in message.calls]
            found.append(("\n".join(said), message.spans))
    return found


def _metadata(kind: str, lessons: Sequence[Lesson]) -> dict[str, Any]:
    """Return the origin of a row. Every row has the same keys and types, and none that could be parsed as a date."""
    return {
        "kind": kind,
        "runs": [lesson.record.id for lesson in lessons],
        "entries": [list(lesson.record.positions) for lesson in lessons],
        "agents": [lesson.record.agent or "" for lesson in lessons],
        "verdicts": [lesson.record.verdict or "" for lesson in lessons],
    }


def _messages(messages: Iterable[Message], flavour: str) -> list[dict[str, Any]]:
    return [_message(message, flavour) for message in messages]


def _message(message: Message, flavour: str) -> dict[str, Any]:
    if message.role == TOOL:
        assert message.answers is not None
        said = {"role": TOOL, "tool_call_id": message.answers.id, "content": message.content}
        return said if flavour == OPENAI else {**said, "name": message.answers.name}
    found: dict[str, Any] = {"role": message.role}
    if message.content or not message.calls:
        found["content"] = message.content
    if message.calls:
        found["tool_calls"] = [
            {
                "id": use.id,
                "type": "function",
                "function": {
                    "name": _tool_name(use.name, flavour),
                    "arguments": _json(dict(use.arguments)) if flavour == OPENAI else dict(use.arguments),
                },
            }
            for use in message.calls
        ]
    return found


def _tool_list(tools: Tools, flavour: str) -> Any:
    """Return the tools as a list of schemas; for TRL as its JSON text, which takes every shape."""
    found = [
        {"type": "function", "function": {"name": _tool_name(name, flavour), **tool}}
        for name, tool in sorted(tools.items())
    ]
    return found if flavour == OPENAI else _json(found)


def _tool_name(name: str, flavour: str) -> str:
    """Return the name of a tool as the reader of the rows takes it."""
    return name if flavour == TRL else _NO_NAME.sub("_", name)[:TOOL_NAME_MAX]


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
