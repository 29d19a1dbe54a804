"""Facts: what one decision is made on, values by name, each with its origin.

Every value that a decision looks at names where it came from: a read of state, an input of the run, a tool's result, a
model's response, or nothing but the agent's word (`stated`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final, Protocol, runtime_checkable

from woodrat.canon import form
from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.merge.snapshot import Snapshot
from woodrat.runs import values as run_values
from woodrat.state.fact import STATED, Fact, Origin
from woodrat.state.observation import NAMES_MAX
from woodrat.state.redaction import Hidden

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref

    Link = Callable[[str, Json], "Origin | None"]
    """Finds where a plain value came from by its name and value."""


FACTS_MAX: Final = 1_000
"""Most facts that one choice records."""

_SIMPLE = frozenset({str, int, float, bool, type(None), dict, list})


@runtime_checkable
class Sourced(Protocol):
    """Something that knows its values as facts, such as a tool call."""

    def facts(self) -> Mapping[str, Fact]:
        """Return its values as facts, by name."""


class Facts:
    """What one decision is made on: values by name, and where each came from."""

    def __init__(self, values: Mapping[str, Json], origins: Mapping[str, Origin], snapshot: Snapshot | None) -> None:
        self.values = values
        self._origins = origins
        self._snapshot = snapshot

    @property
    def partial(self) -> bool:
        """Whether only what is looked at belongs to the decision; the rest of a snapshot is in the log already."""
        return self._snapshot is not None

    def origin(self, name: str) -> Origin:
        """Return where a value came from, or would have come from."""
        if self._snapshot is not None:
            return self._snapshot.fact(name).origin
        return self._origins.get(name, STATED)


def facts_among(given: object, link: Link) -> tuple[Facts, int]:
    """Return what a choice is based on as facts, and how many were left out for their number.

    It is anything that `facts_of` takes, a plain value, or a list of such. All fields of a snapshot count. Of two facts
    with one name and different origins, the later one is called by its entity as well, or by a number.
    """
    items = list(given) if isinstance(given, list | tuple | set | frozenset) else [] if given is None else [given]
    values: dict[str, Json] = {}
    origins: dict[str, Origin] = {}
    left_out = 0
    for number, item in enumerate(items, 1):
        for name, fact in _named_facts(item, number, link):
            if fact.missing or (name in origins and _is_again(fact.origin, origins[name])):
                continue
            if len(origins) >= FACTS_MAX:
                left_out += 1
                continue
            free = _free_name(name, fact.origin, item, origins)
            values[free], origins[free] = fact.value, fact.origin
    return Facts(values, origins, None), left_out


def _named_facts(item: object, number: int, link: Link) -> Iterable[tuple[str, Fact]]:
    """Return what one item of a list of facts says, by name."""
    if isinstance(item, Snapshot):
        return [(name, item.fact(name)) for name in item.fields]
    if isinstance(item, Fact | Mapping) or (isinstance(item, Sourced) and callable(item.facts)):
        found = facts_of(item, link)
        return [(name, Fact(name, value, found.origin(name))) for name, value in found.values.items()]
    name, value = f"fact {number}", number_or_plain(item)
    if isinstance(value, dict) and not run_values.is_mark(value):  # a dataclass or a model
        return _named_facts(value, number, link)
    return [(name, Fact(name, value, STATED))]


def _is_again(origin: Origin, other: Origin) -> bool:
    """Return whether two facts are one: the same place, or the same field read twice from the same observations."""
    return all(origin.get(part) == other.get(part) for part in {*origin, *other} if part != "position")


def _free_name(name: str, origin: Origin, item: object, taken: Mapping[str, Origin]) -> str:
    """Return a name that no other fact has: with the entity or the tool before it, or a number after it."""
    called = getattr(item, "name", None)
    if name in taken and origin.get("kind") == "read":
        name = f"{origin.get('entity')}#{name}"
    elif name in taken and origin.get("kind") in ("tool", "model") and isinstance(called, str) and called != name:
        name = f"{called}.{name}"
    free, number = name, 2
    while free in taken:
        free, number = f"{name} ({number})", number + 1
    return free


def facts_of(given: object, link: Link) -> Facts:
    """Return what a caller gave a decision as facts: a snapshot, a mapping, a call, or values from `.fact()`.

    A plain value is linked by name and value where `link` finds it in the run; otherwise its origin is `stated`.
    """
    if isinstance(given, Snapshot):
        return Facts(given.fields, {}, given)
    if type(given) is not dict and not isinstance(given, Mapping):
        if isinstance(given, Fact):
            given = {given.name: given}
        elif isinstance(given, Sourced) and callable(given.facts):
            given = given.facts()
        elif isinstance(given, Iterable) and not isinstance(given, str | bytes):
            items = list(given)
            if all(isinstance(item, Fact) for item in items):
                given = {item.name: item for item in items}
        else:
            given = run_values.plain(given)
    if (type(given) is not dict and not isinstance(given, Mapping)) or run_values.is_mark(given):
        remedy = "Send a snapshot, values by name, or values from .fact()."
        raise Refused([Fault("facts", f"expected facts, got {shown(given)}", remedy)], "Nothing was decided.")
    values: dict[str, Json] = {}
    origins: dict[str, Origin] = {}
    for key, value in given.items():
        name = run_values.text(key)
        if isinstance(value, Fact):
            origins[name] = value.origin
            if not value.missing:
                values[name] = value.value
        else:
            values[name] = number_or_plain(value)
            origins[name] = link(name, values[name]) or STATED
    return Facts(values, origins, None)


def decision_fact(name: str, chosen: Json, run: str | None, span: str | None) -> Fact:
    """Return what an earlier decision chose, as a fact of a later one."""
    return Fact(name, chosen, STATED if run is None or not span else {"kind": "decision", "run": run, "span": span})


def hidden_among(facts: Facts, hidden: frozenset[str]) -> frozenset[str]:
    """Return the keys to be hidden in a decision: those given, and the names of facts that come from under one."""
    if not hidden or facts.partial:
        return hidden
    names = [name for name in facts.values if name not in hidden and _is_hidden(facts.origin(name), hidden)]
    return Hidden((*hidden, *names)) if names else hidden


def _is_hidden(origin: Origin, hidden: frozenset[str]) -> bool:
    """Return whether a value comes from a field, an input or a place in a result that is to be hidden."""
    path = str(origin.get("path", ""))
    steps = [step.replace("~1", "/").replace("~0", "~") for step in path.split("/")[1:]]
    return any(name in hidden for name in (origin.get("field"), origin.get("name"), *steps))


def number_or_plain(value: object) -> Json:
    """Return a value as JSON that compares as it should: a decimal that a double spells is a number."""
    if type(value) not in _SIMPLE and type(value).__module__ == "decimal" and type(value).__name__ == "Decimal":
        from decimal import Decimal

        assert isinstance(value, Decimal)
        if value.is_finite() and value == value.to_integral_value() and abs(value) < 2**53:
            return int(value)
        if value.is_finite() and abs(value) < 2**53 and Decimal(repr(float(value))) == value:
            return float(value)
    return run_values.plain(value)


def at_pointer(value: Json, pointer: str) -> tuple[bool, Json]:
    """Return whether a JSON Pointer (RFC 6901) leads anywhere in a value, and to what."""
    if pointer == "":
        return True, value
    if not pointer.startswith("/"):
        problem = f"expected a JSON Pointer, got {shown(pointer)}"
        raise Refused([Fault("path", problem, "Begin it with a slash, such as /score.")], "Nothing was read.")
    for step in pointer[1:].split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and name in value:
            value = value[name]
        elif (
            isinstance(value, list) and name.isascii() and name.isdigit() and len(name) < 10 and int(name) < len(value)
        ):
            value = value[int(name)]
        else:
            return False, None
    return True, value


def pointer_to(name: str) -> str:
    """Return the pointer to a member of an object."""
    return "/" + (pointer_part(name) if not name.isprintable() else name.replace("~", "~0").replace("/", "~1"))


# -- where plain values came from ------------------------------------------------------------------------------------

LINKS_MAX: Final = 100_000
"""How many values of each kind are remembered."""

RESULT_VALUES_MAX: Final = 1_000
"""How many values of one result are remembered by themselves."""
_TELLING_CHARACTERS: Final = 3
"""How long a text or number is, so that to meet it again under another name is no accident."""

READS, CALLS, INPUTS = range(3)
"""Where a plain value may have come from; the first that knows it counts."""


class Links:
    """Values met in a run, by name and value, and the observations it has seen."""

    def __init__(self) -> None:
        self._found: tuple[dict[tuple[str, bytes], Origin], ...] = ({}, {}, {})
        self._results: dict[bytes, Origin | None] = {}
        """Where values stand in results, by value alone; none for one that was met in several places."""
        self._seen: dict[Ref, dict[str, None]] = {}

    def add(self, where: int, name: str, value: Json, origin: Origin) -> None:
        """Remember a value; a later one of the same name and value counts instead."""
        known = self._found[where]
        if len(known) < LINKS_MAX:
            known[name, _spelled(value)] = origin
        if where != CALLS and _is_telling(value):
            self._results[_spelled(value)] = None

    def add_result(self, kind: str, span: str, result: Json) -> None:
        """Remember what a call returned: its members by name, and every telling value in it by itself."""
        for name, value in result.items() if isinstance(result, dict) else ():
            self.add(CALLS, name, value, {"kind": kind, "span": span, "path": pointer_to(name)})
        for path, value in _telling_values(result):
            key = _spelled(value)
            origin = {"kind": kind, "span": span, "path": path}
            if len(self._results) < LINKS_MAX or key in self._results:
                self._results[key] = origin if self._results.get(key, origin) == origin else None

    def find(self, name: str, value: Json) -> Origin | None:
        """Return where a plain value came from, marked as found by value: one of this name, or the only one in results.

        A value that a result has under another name counts if it was met nowhere else and tells something by itself.
        """
        spelled = _spelled(value)
        for known in self._found:
            if (origin := known.get((name, spelled))) is not None:
                return {**origin, "by": "value"}
        renamed = self._results.get(spelled) if _is_telling(value) else None
        return None if renamed is None else {**renamed, "by": "value"}

    def see(self, entity: Ref, observations: Iterable[str]) -> None:
        """Remember which observations of an entity were seen."""
        self._seen.setdefault(entity, {}).update(dict.fromkeys(observations))

    def seen(self, entities: Iterable[Ref]) -> list[str]:
        """Return the observations of these entities that were seen, the latest if they are very many."""
        return [id for entity in dict.fromkeys(entities) for id in self._seen.get(entity, ())][-NAMES_MAX:]


def _spelled(value: Json) -> bytes:
    data = form.serialise(value)
    return data if len(data) <= 64 else sha256(data).digest()


def _is_telling(value: Json) -> bool:
    """Return whether a value tells something by itself: text or a number of some length."""
    return (isinstance(value, str) or type(value) in (int, float)) and len(str(value)) >= _TELLING_CHARACTERS


def _telling_values(result: Json) -> Iterator[tuple[str, Json]]:
    """Yield the values in a result that tell something by themselves, with their pointers; of very many the first."""
    waiting: list[tuple[str, Json]] = [("", result)]
    left = RESULT_VALUES_MAX
    while waiting and left:
        path, value = waiting.pop()
        if isinstance(value, dict) and not run_values.is_mark(value):
            waiting += reversed([(path + pointer_to(name), item) for name, item in value.items()])
        elif isinstance(value, list):
            waiting += reversed([(f"{path}/{number}", item) for number, item in enumerate(value)])
        elif _is_telling(value):
            left -= 1
            yield path, value
