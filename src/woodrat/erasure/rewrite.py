"""Rewrite: surviving entries are written again, the same body without the erased parts and with names mapped.

It is a pure function of the old bodies and the erased data, so every ledger that erases the same data writes the same
bytes. An erased value is never written again. A chain of corrections that loses a link continues with the observation
that the link replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from hashlib import sha256
from typing import Any, Final

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.erasure.quotes import Quoted
from woodrat.errors import Refused
from woodrat.log.erasure import ERASED, Link, name_mac
from woodrat.runs.shape import SHAPE, SHAPED, has_escapes
from woodrat.runs.values import TRUNCATED, UNSERIALISABLE
from woodrat.state import relation
from woodrat.state.meaning import RUN_KINDS
from woodrat.state.observation import CORRECT, DELETE, NAMES_MAX, RESTORE, RETRACT, STATING, Observation

_MARKS: Final = tuple(f'"{mark}":{{'.encode() for mark in (TRUNCATED, UNSERIALISABLE))

CHAINING: Final = frozenset({CORRECT, DELETE, RESTORE})
"""Ops whose `replaces` make a chain: an op that names an erased one then names its predecessor."""
EVERYTHING: Final = frozenset({"*"})
"""The lost parts of an erased observation."""
RENAMED_CHARACTERS: Final = 16
"""Number of hex digits that distinguish entities whose keys quoted erased data."""

NAME: Final = re.compile(r"(?:obs|src|ent|int|run)_[a-z2-7]{26}(?:[a-z2-7]{26})?")
"""An id or a full name anywhere in a text."""

# Parts of entries of runs that contain no values: they identify steps and must stay.
_STRUCTURE = frozenset({"run", "step", "span", "under", "started_at", "log", "position", "effective", "as_of"}) | {
    "agent",  # as in an observation; an entry without an agent would not be part of its run
    "trace",
    "request",
    "mode",
    "status",
    "duration_ms",
}


class Names:
    """The erased data by name, and its replacements."""

    def __init__(
        self,
        key: bytes,
        *,
        refs: Collection[Ref] = (),
        fields: Collection[tuple[Ref, str]] = (),
        quoted: Quoted | None = None,
        readings: Collection[str] = (),
        runs: Collection[str] = (),
        exists: Callable[[Ref], bool] = lambda ref: False,
    ) -> None:
        self._key = key
        self._exists = exists
        self.refs = frozenset(refs)
        """Entities that are gone."""
        self.fields = set(fields)
        """Fields that are gone from entities that stay."""
        self.quoted = quoted or Quoted(())
        """Texts that are erased wherever they are quoted."""
        self.readings = frozenset(readings)
        """Readings of sources that are gone."""
        self.runs = frozenset(runs)
        """Runs that are gone."""
        self.touched: set[str] = set()
        """Surviving runs that lost something: their digests of unseen data may cover it."""
        self.observations: dict[bytes, bytes | None] = {}
        """Digests of rewritten observations, with the new ones; None for erased ones."""
        self.links: dict[bytes, tuple[bytes, ...]] = {}
        """Their replacements in a chain, by the same digests."""
        self.sources: dict[bytes, bytes | None] = {}
        """Digests of rewritten sources, with the new ones; None for erased ones."""
        self._short: dict[str, str | None] = {}
        self._lost: dict[str, frozenset[str]] = {}
        self._renamed: dict[Ref, Ref | None] = {}

    def note_gone(self, ids: Iterable[str]) -> None:
        """Record that some short ids are gone."""
        self._short.update(dict.fromkeys(ids))

    def note_source(self, old: bytes, new: bytes | None) -> None:
        """Record the fate of a source."""
        self.sources[old] = new
        after = None if new is None else ids.id_of("source", new)
        self._short[ids.id_of("source", old)] = after
        self._short[ids.name("source", old)] = None if new is None else ids.name("source", new)

    def note_observation(self, old: Observation, new: Observation | None) -> None:
        """Record the fate of an observation: rewritten, or erased."""
        self.observations[old.digest] = None if new is None else new.digest
        if new is None:
            chain = [link for name in old.replaces for link in self.chain(name)] if old.op in CHAINING else []
            self.links[old.digest] = tuple(sorted(set(chain)))
        else:
            self.links[old.digest] = (new.digest,)
        self._short[old.id] = None if new is None else new.id
        self._short[old.name] = None if new is None else new.name
        lost = EVERYTHING if new is None else frozenset(name for name in old.stated if not _agree(old, new, name))
        self._lost[old.id] = lost

    def note_known(self, old: Observation, link: Link) -> None:
        """Record the fate of an observation in another ledger, as its erasure states it."""
        names = (link,) if isinstance(link, str) else link
        digests = tuple(found for name in names if (found := ids.digest_of("observation", name)) is not None)
        new = digests[0] if isinstance(link, str) and digests else None
        self.observations[old.digest], self.links[old.digest] = new, digests
        self._short[old.id] = None if new is None else ids.id_of("observation", new)
        self._short[old.name] = None if new is None else ids.name("observation", new)
        self._lost[old.id] = EVERYTHING

    def chain(self, name: bytes) -> tuple[bytes, ...]:
        """Return the names that a correction or marker uses in place of an observation."""
        return self.links.get(name, (name,))

    def plain(self, name: bytes) -> bytes | None:
        """Return the name that any other entry uses in place of an observation; None if it is erased."""
        return self.observations.get(name, name)

    def ref(self, ref: Ref) -> Ref | None:
        """Return an entity under its new key; None if it is erased."""
        if ref not in self._renamed:
            now = self._renamed[ref] = self._ref(ref)
            if now != ref:
                self._short[ref.id] = None if now is None else now.id
        return self._renamed[ref]

    def _ref(self, ref: Ref) -> Ref | None:
        if ref in self.refs:
            return None
        ends = relation.endpoints(ref)
        if ends is not None:
            parts: Any = form.parse(ref.key)
            now = [self.ref(end) for end in ends]
            if now[0] is None or now[1] is None:
                return None
            further = self.quoted.taken_out(parts[2]) if len(parts) == 3 else None
            if (now[0], now[1], further) == (*ends, parts[2] if len(parts) == 3 else None):
                return ref
            return relation.relation(now[0], ref.type, now[1], further)
        if not self.quoted.is_in(ref.key):
            return ref
        # Not a digest of the key, which could be found by guessing.
        return Ref(ref.type, f"{ERASED}-{name_mac(self._key, str(ref))[:RENAMED_CHARACTERS]}")

    def has_lost(self, entity: object, field: object, observations: Iterable[object]) -> bool:
        """Return True if the value that some observations gave a field of an entity is erased."""
        ref = _parsed(entity)
        if ref is not None and (self.ref(ref) is None or (ref, field) in self.fields):
            return True
        for id in observations:
            lost = self._lost.get(id) if isinstance(id, str) else None
            if lost is not None and (lost is EVERYTHING or field in lost):
                return True
        return False

    def ids(self, given: object) -> list[str]:
        """Return the ids that replace those of observations, without erased ones."""
        listed = given if isinstance(given, list) else [given]
        found = [self._short.get(id, id) for id in listed if isinstance(id, str)]
        return list(dict.fromkeys(id for id in found if id is not None))

    def text(self, text: str) -> str:
        """Return a text with names mapped, or `[ERASED]` if it names or quotes erased data."""
        if "_" in text:
            text = NAME.sub(self._name, text)
        if self.quoted.is_in(text):
            ref = _parsed(text)
            now = None if ref is None else self.ref(ref)
            # A reference to another entity may begin like an erased one: loan/42-b beside loan/42.
            return str(now) if now is not None and (now != ref or self._exists(now)) else ERASED
        ref = _parsed(text) if '/["' in text else None  # a relation is named by its ends
        now = None if ref is None else self.ref(ref)
        return text if ref is None or now == ref else ERASED if now is None else str(now)

    def _name(self, found: re.Match[str]) -> str:
        """Return the replacement of an id or a full name."""
        name = found[0]
        if name in self._short:
            return self._short[name] or ERASED
        return ERASED if name in self.readings or name in self.runs else name

    def value(self, value: Json) -> Json:
        """Return a value with every text and long number in it that is gone replaced."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            if value.get("kind") == "read" and "field" in value:
                return self.origin(value)
            return {self.free(key, value): self.value(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return ERASED if self.quoted.is_number(value) else value
        return value

    def free(self, key: str, beside: Mapping[str, Json]) -> str:
        """Return a key of an object; an erased one gets a unique name."""
        now = self.text(key)
        if now == key:
            return key
        return f"{ERASED} {sorted(beside).index(key) + 1}"

    def origin(self, origin: Mapping[str, Any]) -> dict[str, Json]:
        """Return the origin of a value, without erased parts."""
        found: dict[str, Any] = {key: item for key, item in origin.items() if key not in ("entity", "observations")}
        ref = _parsed(origin.get("entity"))
        now = None if ref is None else self.ref(ref)
        if now is not None:
            found["entity"] = str(now)
        if "observations" in origin:
            named = self.ids(origin["observations"])
            if named or origin["observations"] == []:
                found["observations"] = named
        return found


def _agree(old: Observation, new: Observation, name: str) -> bool:
    """Return True if two observations state the same for a field; Python takes 1 and true for equal, bytes do not."""
    return all(
        form.serialise([one.get(name), name in one]) == form.serialise([other.get(name), name in other])
        for one, other in ((old.fields, new.fields), (_listed(old.remove), _listed(new.remove)))
    )


def _listed(remove: Mapping[str, Iterable[Json]]) -> dict[str, Json]:
    return {name: list(elements) for name, elements in remove.items()}


def _parsed(text: object) -> Ref | None:
    if not isinstance(text, str) or "/" not in text:
        return None
    try:
        return ids.parse_ref(text)
    except Refused:
        return None


def observation_again(old: Observation, names: Names) -> bytes | None:
    """Return the remaining body of a surviving observation; None if no value is left."""
    ref = names.ref(old.entity)
    if ref is None:
        return None
    body: dict[str, Any] = form.decode(old.body)
    body["entity"] = ref.to_json()
    dropped = {name for ref, name in names.fields if ref == old.entity}
    for part in ("fields", "remove"):
        if part in body:
            kept = {name: names.value(value) for name, value in body[part].items() if name not in dropped}
            body[part] = {names.free(name, kept): value for name, value in kept.items()}
            if not body[part]:
                del body[part]
    if old.op in STATING and "fields" not in body and "remove" not in body:
        return None
    if old.replaces:
        if old.op in CHAINING:
            chain = {link for name in old.replaces for link in names.chain(name)}
        else:
            chain = {link for link in map(names.plain, old.replaces) if link is not None}
        _name(body, "replaces", chain)
        if old.op == RETRACT and not chain:
            return None
    if old.saw:
        _name(body, "saw", {link for link in map(names.plain, old.saw) if link is not None})
    if "source" in body:
        _map_source(body, names)
    if body.get("interpretation") in names.readings:
        del body["interpretation"]
    if body.get("run") in names.runs:
        del body["run"]
        body.pop("step", None)
    if "reason" in body:
        body["reason"] = names.text(body["reason"])
    if "locator" in body:
        _relocate(body, old, names)
    return form.serialise(body)


def _relocate(body: dict[str, Any], old: Observation, names: Names) -> None:
    """Keep the parts of a locator that lead into a surviving source, without erased words."""
    same = all(body.get(part) == form.decode(old.body).get(part) for part in ("fields", "remove"))
    kept = {
        part: value
        for part, value in body["locator"].items()
        # The words that an erased value was read from say it too.
        if not isinstance(value, str) or (names.text(value) == value and (same or part != "quote"))
    }
    if "line" not in kept:
        kept.pop("end_line", None)
    if kept and ("source" in body or "interpretation" in body):
        body["locator"] = kept
    else:
        del body["locator"]


def _name(body: dict[str, Any], part: str, digests: Collection[bytes]) -> None:
    named = sorted(ids.name("observation", digest) for digest in digests)[:NAMES_MAX]
    if named:
        body[part] = named
    else:
        del body[part]


def _map_source(body: dict[str, Any], names: Names) -> bool:
    """Map the source that a body names; return True if it is the same."""
    digest = ids.digest_of("source", body["source"])
    assert digest is not None, "a stored body names its source in full"
    now = names.sources.get(digest, digest)
    if now is None:
        del body["source"]
    else:
        body["source"] = ids.name("source", now)
    return now == digest


def source_again(content: bytes, names: Names) -> bytes | None:
    """Return the remaining content of a surviving source; None if it is not text and quotes erased data."""
    try:
        return names.quoted.taken_out(content.decode()).encode()
    except UnicodeDecodeError:
        return None


def delivery_again(old: bytes, names: Names) -> bytes | None:
    """Return the body of a `received` entry; None once its source is erased."""
    body: dict[str, Any] = form.decode(old)
    _map_source(body, names)
    if "source" not in body:
        return None
    body["name"] = names.text(body["name"])
    return form.serialise(body)


def reading_again(old: bytes, names: Names) -> bytes | None:
    """Return the body of an entry of an interpretation; None once it is erased."""
    body: dict[str, Any] = form.decode(old)
    if body["interpretation"] in names.readings:
        return None
    if "source" in body:
        _map_source(body, names)
        if "source" not in body:
            return None
    for part in ("configuration", "error", "parameters", "usage"):
        if part in body:
            body[part] = names.value(body[part])
    found = form.serialise(body)
    if found == old or "prompt" not in body:
        return found
    del body["prompt"]  # a digest of data that may have quoted the same
    return form.serialise(body)


def step_again(kind: str, old: bytes, names: Names) -> bytes | None:
    """Return the body of an entry of a run, with `[ERASED]` in place of erased data; None if its run is erased."""
    body: Any = form.decode(old)
    if not isinstance(body, dict):
        return old
    if body.get("run") in names.runs:
        return None
    found: dict[str, Any] = {}
    for part, value in body.items():
        if part in _STRUCTURE:
            found[part] = value
        elif part in ("subject", "entity", "evaluation", "against") and isinstance(value, str):
            now = names.text(value)
            if now != ERASED:
                found[part] = now
        elif part == "parent":
            if not isinstance(value, dict) or value.get("run") not in names.runs:
                found[part] = value
        elif part == "using":
            found[part] = _using(value, names)
        elif part == "fields" and kind == "run.read" and isinstance(value, dict):
            found[part] = {name: _field_again(body.get("entity"), name, read, names) for name, read in value.items()}
        elif part in ("rules", "untried") and isinstance(value, list):
            found[part] = [_rule_again(rule, body, names) for rule in value]
        elif part == "facts" and isinstance(value, dict):
            found[part] = {
                names.free(name, value): ERASED if _is_lost(body, name, names) else names.value(fact)
                for name, fact in value.items()
            }
        else:
            found[part] = names.value(value)
    if SHAPE in body and not _is_shape_kept(kind, body, found, names):
        found[SHAPE] = ERASED
    if body.get("run") in names.touched:
        found = {part: value if part in _STRUCTURE else _without_digests(value) for part, value in found.items()}
        if "request" in body and body["request"] != _request_seen(found):
            found.pop("request", None)  # a digest of erased or hidden data
    return form.serialise(found)


def _is_shape_kept(kind: str, old: Mapping[str, Any], new: Mapping[str, Any], names: Names) -> bool:
    """Return True if a value's `$shape` may stay: the whole value stays, and the shape contains no erased data.

    In a run that lost something, bytes that are no text are erased too: their contents cannot be checked.
    """
    part = SHAPED.get(kind, "")
    if not form.same(old.get(part), new.get(part)) or not form.same(old[SHAPE], new[SHAPE]):
        return False
    return old.get("run") not in names.touched or not has_escapes(old[SHAPE])


def digests_unseen(kind: str, body: bytes) -> bool:
    """Return True if an entry of a run holds a digest of data that is not there to be searched."""
    if any(mark in body for mark in _MARKS):
        return True
    if kind != "run.model":
        return False
    said: Any = form.decode(body)
    return isinstance(said, dict) and "request" in said and said["request"] != _request_seen(said)


def _request_seen(body: Mapping[str, Any]) -> str:
    """Return the digest of a model's request, if the entry shows the request."""
    asked = {"messages": body.get("messages"), "model": body.get("model"), "parameters": body.get("parameters")}
    return sha256(form.serialise(asked)).hexdigest()


def _without_digests(value: Json) -> Json:
    """Return a value without the digests of cut or omitted parts, which would allow guesses."""
    if isinstance(value, list):
        return [_without_digests(item) for item in value]
    if not isinstance(value, dict):
        return value
    if len(value) == 1 and (mark := next(iter(value))) in (TRUNCATED, UNSERIALISABLE):
        marked = value[mark]
        return {mark: {k: v for k, v in marked.items() if k != "digest"} if isinstance(marked, dict) else marked}
    return {key: _without_digests(item) for key, item in value.items()}


def _using(using: Json, names: Names) -> Json:
    """Return the code versions of a run, without erased ones."""
    if not isinstance(using, dict):
        return names.value(using)
    found: dict[str, Json] = {}
    for what, value in using.items():
        if isinstance(value, list):
            kept = [names.value(item) for item in value]
            found[what] = [item for item in kept if not (isinstance(item, dict) and item.get("entity") == ERASED)]
        elif names.value(value) != ERASED:
            found[what] = names.value(value)
    return found


def _field_again(entity: object, name: str, read: Json, names: Names) -> Json:
    """Return one field that was read, with its observations mapped."""
    if not isinstance(read, dict):
        return names.value(read)
    named = [read["observation"]] if "observation" in read else []
    more = read.get("observations")
    named += more if isinstance(more, list) else []
    found = {key: value for key, value in read.items() if key not in ("observation", "observations")}
    if "observation" in read and (kept := names.ids(read["observation"])):
        found["observation"] = kept[0]
    if "observations" in read and (kept := names.ids(more)):
        found["observations"] = list[Json](kept)
    if "value" in read:
        found["value"] = ERASED if names.has_lost(entity, name, named) else names.value(read["value"])
    return found


def _is_lost(body: Mapping[str, Any], name: str, names: Names) -> bool:
    """Return True if the origin of a decision's fact is erased."""
    origins = body.get("facts_origin")
    return _origin_lost(origins.get(name) if isinstance(origins, dict) else None, names)


def _origin_lost(origin: object, names: Names) -> bool:
    if not isinstance(origin, dict) or origin.get("kind") != "read":
        return False
    named = origin.get("observations")
    return names.has_lost(origin.get("entity"), origin.get("field"), named if isinstance(named, list) else ())


def _rule_again(rule: Json, body: Mapping[str, Any], names: Names) -> Json:
    """Return a rule of a decision, with the erased values of its conditions replaced."""
    looked = rule.get("conditions") if isinstance(rule, dict) else None
    if not isinstance(rule, dict) or not isinstance(looked, list):
        return names.value(rule)
    conditions: list[Json] = []
    for condition in looked:
        found = names.value(condition)
        if isinstance(condition, dict) and isinstance(found, dict) and "actual" in condition:
            key = condition.get("key")
            if _origin_lost(condition.get("origin"), names) or (isinstance(key, str) and _is_lost(body, key, names)):
                found = {**found, "actual": ERASED}
        conditions.append(found)
    rest: dict[str, Json] = {key: names.value(value) for key, value in rule.items() if key != "conditions"}
    return {**rest, "conditions": conditions}


AGAIN: Final[Mapping[str, Callable[[str, bytes, Names], bytes | None]]] = {
    "source": lambda kind, body, names: source_again(body, names),
    "received": lambda kind, body, names: delivery_again(body, names),
    "interpretation.started": lambda kind, body, names: reading_again(body, names),
    "interpretation.ended": lambda kind, body, names: reading_again(body, names),
    **dict.fromkeys(RUN_KINDS, step_again),
}
"""How an entry is rewritten, by its kind; except observations, which name each other. Other kinds stay unchanged."""
