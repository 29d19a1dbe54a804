"""Generators: hypothesis strategies for values and for histories of observations, leaning to trouble.

Trouble is what a merge could get wrong: equal times and priorities, clocks that disagree, values that are equal to
Python but not to JSON, chains of corrections and retractions that name what stands, what fell, or what nobody here
has seen. Most claims fit their policy; some do not, on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN, Policy, by_key
from woodrat.merge.by_key import ByKey
from woodrat.merge.policy import ALL_TYPES
from woodrat.records import dataclass
from woodrat.state.observation import ASSERT, CORRECT, DELETE, MARKERS, RESTORE, RETRACT, Observation, say

T = TypeVar("T")

MEMBERS_MAX: Final = 3
"""Most entities in one generated group."""
SIZE_MAX: Final = 14
"""Most distinct observations in one generated history."""
ELEMENTS_MAX: Final = 3
"""Most elements of one generated collection."""

MISFITS: Final[tuple[Json, ...]] = ("misfit", ["misfit"], 404)
"""Values that some policies would take and that the schema of `woodrat.testing.laws` refuses."""

EARLIEST: Final = "0001-01-01T00:00:00.000000Z"
LATEST: Final = "9999-12-31T23:59:59.999999Z"
MOMENTS: Final = (
    "2026-01-05T09:00:00.000000Z",
    "2026-01-05T09:00:00.000001Z",
    "2026-01-05T10:00:00.000000Z",
    EARLIEST,
    LATEST,
)
"""Few, so that claims often share one; the outer two are badly wrong clocks."""
AGENTS: Final = ("ada", "bob", "cyd")
PRIORITIES: Final = (0, 0, 1, -1)

CONFUSED: Final[tuple[tuple[Json, ...], ...]] = (
    ("a", "A"),
    (1, True, "1", [1], {"a": 1}),
    (0, False, "", None, [], {}),
    ("é", "e\u0301", "E\u0301"),
    ("ß", "ss", "SS"),
    ("9", "10", 9, 10),
    ("😀", "\uffff"),
    (10**15, -(10**15), 1e-15, -1e-15, 1.5),
    (form.INTEGER_MAX, -form.INTEGER_MAX),
    ({"a": 1}, {"a": True}, {"a": None}),
    ({"😀": 1, "\uffff": 2}, {"b": [None], "a": {}}),
    ([1, 2], [2, 1], [True], [[]]),
)
"""Values that are equal under some order, conversion or normal form, and must stay apart."""

TROUBLE: Final = tuple(value for group in CONFUSED for value in group)
"""All of them."""

TERMS: Final[tuple[Json, ...]] = (
    0,
    1,
    -1,
    7,
    10**15,
    -(10**15),
    form.INTEGER_MAX,
    -form.INTEGER_MAX,
    "0.1",
    "0.2",
    "-0.3",
    "1",
    "1.50",
    "-0",
    "0.000000000000001",
    "-0.000000000000001",
    "1000000000000000",
    "-1000000000000000.5",
    "9007199254740993",
)
"""Numbers that a sum takes; adding these as doubles depends on the order."""

NO_TERMS: Final[tuple[Json, ...]] = (1.5, "1e3", "01", ".5", "+1", True, None, "", [1], "٣")
"""Values that a sum refuses."""


@dataclass(frozen=True, slots=True)
class History:
    """Observations about one entity or one group, in the order of writing."""

    members: tuple[Ref, ...]
    """The entities that are folded together; some may have no observation."""
    observations: tuple[Observation, ...]
    """Distinct observations; the ones they name may be missing."""

    def __repr__(self) -> str:
        return f"History of {', '.join(map(str, self.members))}:\n{told(self.observations)}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # hypothesis would print every part of every observation


def told(observations: Sequence[Observation]) -> str:
    """Return observations as lines that people can read, each with the first characters of its id."""
    lines = []
    for o in observations:
        parts = [o.id[4:10], str(o.entity), o.op]
        parts += [f"{name}={form.serialise(value).decode()}" for name, value in o.fields.items()]
        parts += [f"{name}-={form.serialise(list(value)).decode()}" for name, value in o.remove.items()]
        at = "arrived" if o.assigned else "at"
        parts.append(f"by {o.agent} {at} {o.observed_at[:-1].rstrip('0').rstrip('.')} priority {o.priority}")
        for word, names in (("naming", o.replaces), ("saw", o.saw)):
            if names:
                parts.append(f"{word} {' '.join(sorted(_short(name) for name in names))}")
        lines.append("  " + " ".join(parts))
    return "\n".join(lines) or "  nothing"


def _short(digest: bytes) -> str:
    return ids.id_of("observation", digest)[4:10]


# Values


def values() -> SearchStrategy[Json]:
    """Return JSON values of every type; half of them from a list of easily confused ones."""
    return _VALUES


def elements_of(policy: Policy) -> SearchStrategy[Json]:
    """Return elements of collections under a policy: few enough that two collections often share one."""
    return objects(policy.member) if isinstance(policy, ByKey) else _ELEMENTS


@lru_cache(maxsize=64)
def objects(member: str) -> SearchStrategy[Json]:
    """Return objects identified by a member: few texts and few other members, with easily confused values."""
    values = st.sampled_from((1, True, "1", "é", None, [1], {"a": 1}, {member: "a"}))
    others = st.dictionaries(st.sampled_from(("a", "A", "")), values, max_size=2)
    return st.builds(lambda text, rest: {**rest, member: text}, st.sampled_from(("a", "A", "", "😀", "\uffff")), others)


def _text_of(member: str) -> Callable[[Any], str]:
    return lambda element: str(element[member])


@lru_cache(maxsize=64)
def claims_of(policy: Policy) -> SearchStrategy[Json]:
    """Return values that the policy takes."""
    if isinstance(policy, ByKey):
        return st.lists(objects(policy.member), max_size=ELEMENTS_MAX, unique_by=_text_of(policy.member))
    if policy.json_types == frozenset({"array"}):
        return _COLLECTIONS
    if str(policy.name) == "sum":
        return st.sampled_from(TERMS)
    if policy.json_types == ALL_TYPES:
        return _VALUES
    confused = tuple(value for value in TROUBLE if _takes(policy, value))
    others = _VALUES.filter(lambda value: _takes(policy, value))
    return st.one_of(st.sampled_from(confused), others) if confused else others


@lru_cache(maxsize=64)
def palettes_of(policy: Policy) -> SearchStrategy[list[Json]]:
    """Return a few values for the claims of one history, so that many are equal or nearly equal.

    For a policy that takes arrays they are elements of its claims.
    """
    if policy.json_types == frozenset({"array"}):
        return st.lists(elements_of(policy), min_size=2, max_size=4, unique_by=form.serialise)
    claims = claims_of(policy)
    groups = [group for each in CONFUSED if len(group := [v for v in each if _takes(policy, v)]) > 1]
    if str(policy.name) == "sum" or not groups:
        return st.lists(claims, min_size=2, max_size=3)
    return st.tuples(st.sampled_from(groups), st.lists(claims, max_size=1)).map(lambda both: [*both[0], *both[1]])


def misfits_of(policy: Policy) -> Sequence[Json]:
    """Return values that do not fit a field under the policy, because of the policy or of the schema."""
    if str(policy.name) == "sum":
        return NO_TERMS + MISFITS
    if isinstance(policy, ByKey):
        name = policy.member
        return (*MISFITS, None, {name: "a"}, [{name: 1}], [{name: "a"}, "a"], [{"a": 1}], [{}])
    if policy.json_types == frozenset({"array"}):
        return (*MISFITS, None, 1, "a", {})
    return MISFITS


def json_type(value: Json) -> str:
    """Return the JSON type of a value; `integer` for numbers without a fraction."""
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int | float):
        return "integer" if value == int(value) else "number"
    names = {type(None): "null", str: "string", list: "array", dict: "object"}
    return names[type(value)]


def _takes(policy: Policy, value: Json) -> bool:
    kind = json_type(value)
    return kind in policy.json_types or (kind == "integer" and "number" in policy.json_types)


_TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=4)
_SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-form.INTEGER_MAX, form.INTEGER_MAX),
    st.floats(allow_nan=False, allow_infinity=False).filter(lambda number: not form.faults(number)),
    _TEXT,
)
_VALUES: SearchStrategy[Any] = st.one_of(
    st.sampled_from(TROUBLE),
    st.recursive(
        _SCALARS,
        lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(_TEXT, inner, max_size=2)),
        max_leaves=4,
    ),
)
_ELEMENTS: SearchStrategy[Any] = st.sampled_from((1, "1", True, "a", "A", None, "😀", "\uffff", [1], {"a": 1}, 1.5, ""))
POLICIES: Final[Mapping[str, Policy]] = {**BUILTIN, "by_key": by_key("name")}
"""One of every policy that is built in, by name."""
_COLLECTIONS: SearchStrategy[Any] = st.lists(_ELEMENTS, max_size=ELEMENTS_MAX)


# Histories


@st.composite
def histories(
    draw: st.DrawFn,
    policies: Policy | Mapping[str, Policy],
    *,
    entity_type: str = "thing",
    members_max: int = MEMBERS_MAX,
    size_max: int = SIZE_MAX,
    markers: bool = True,
) -> History:
    """Return histories of one entity or a group, whose fields have these policies (field `x`, if only one is given).

    `markers` set to False leaves out deletes and restores.
    """
    by_field = {"x": policies} if isinstance(policies, Policy) else dict(policies)
    palettes = {name: draw(palettes_of(policy)) for name, policy in sorted(by_field.items())}
    dice = _Dice(draw(_bytes(3)))
    members = min(members_max, dice.pick((1, 1, 1, 2, 3)))
    clock = dice.pick((MOMENTS[:2], MOMENTS[:1], MOMENTS))
    writer = _Writer(by_field, palettes, [Ref(entity_type, key) for key in "abc"[:members]], clock, markers)
    # Two lists, since hypothesis makes single ones short, and most bugs need several that name each other.
    halves = st.lists(_bytes(24), max_size=size_max // 2)
    for data in draw(halves) + draw(halves):
        writer.write(_Dice(data))
    kept = {o.digest: o for o, withheld in writer.said if not withheld}
    return History(tuple(writer.members), tuple(kept.values()))


@st.composite
def arrivals(draw: st.DrawFn, history: History, *, backwards: bool = False) -> list[Observation]:
    """Return the observations of a history in some order of arrival, with repetitions.

    The simplest arrivals are the order of writing and its reverse.
    """
    observations = list(history.observations)
    if not observations:
        return []
    dice = _Dice(draw(_bytes(5)))
    observations += [dice.pick(observations) for _ in range(dice.below(4))]
    manner = (dice.below(3) + backwards) % 3
    if manner == 0:
        return observations
    if manner == 1:
        return observations[::-1]
    keys = draw(_bytes(len(observations)))
    return [observations[index] for index in sorted(range(len(observations)), key=lambda index: keys[index])]


@lru_cache(maxsize=64)
def _bytes(count: int) -> SearchStrategy[bytes]:
    return st.binary(min_size=count, max_size=count)


class _Dice:
    """Small choices read from bytes, the first option for 0: drawn at once they cost a tenth, and shrink as well."""

    def __init__(self, data: bytes) -> None:
        self._left = iter(data)

    def below(self, count: int) -> int:
        return next(self._left, 0) % count

    def pick(self, options: Sequence[T]) -> T:
        return options[self.below(len(options))]

    def chance(self) -> int:
        return self.below(12)


_KINDS: Final = (ASSERT,) * 8 + (CORRECT,) * 6 + (RETRACT,) * 3 + (DELETE, RESTORE)
_UNMARKED: Final = tuple(kind for kind in _KINDS if kind not in MARKERS)


class _Writer:
    """Generates one observation after another, each knowing all earlier ones, including withheld ones."""

    def __init__(
        self,
        policies: Mapping[str, Policy],
        palettes: Mapping[str, Sequence[Json]],
        members: Sequence[Ref],
        clock: Sequence[str],
        markers: bool,
    ) -> None:
        self.policies = policies
        self.palettes = palettes
        self.names = sorted(policies)
        self.members = members
        self.clock = clock
        self.kinds = _KINDS if markers else _UNMARKED
        self.said: list[tuple[Observation, bool]] = []
        """All observations, and whether each is withheld: known by name to later ones, never delivered."""

    def write(self, dice: _Dice) -> None:
        """Say one more."""
        op = dice.pick(self.kinds)
        if op == RETRACT and not self.said:
            op = ASSERT
        parts: dict[str, Any] = {
            "agent": self.turned(dice, AGENTS),
            "observed_at": dice.pick(self.clock),
            "priority": dice.pick(PRIORITIES),
            "assigned": dice.pick((False, True)),
        }
        withheld = dice.chance() == 11
        entity = dice.pick(self.members)
        if op in (ASSERT, CORRECT):
            if op == CORRECT:
                parts["replaces"] = self.corrected(dice)
            elif self.said and dice.chance() >= 8:
                parts["saw"] = self.picked(dice, 3)
            parts["fields"], parts["remove"] = self.stated(dice)
        elif op == RETRACT:
            targets = self.withdrawn(dice)
            parts["replaces"] = [target.digest for target in targets]
            if dice.chance() < 10:  # otherwise its entity was drawn, and may not be the target's
                entity = targets[0].entity
        else:
            parts["replaces"] = self.marked(dice, entity)
        self.said.append((say(entity, op, **parts), withheld))

    def stated(self, dice: _Dice) -> tuple[dict[str, Json], dict[str, list[Json]]]:
        """Return values and removals; of one field or of a few, mostly valid."""
        names = {dice.pick(self.names) for _ in range(min(len(self.names), 3))}
        fields: dict[str, Json] = {}
        remove: dict[str, list[Json]] = {}
        for name in sorted(names):
            policy, chance = self.policies[name], dice.chance()
            if chance >= (7 if policy.removes else 11):
                taken = [dice.pick(self.palettes[name]) for _ in range(dice.below(2) + 1)]
                # An object is taken out by its text; given itself, the claim does not fit.
                remove[name] = taken if dice.chance() == 11 else [policy.removal_of(element) for element in taken]
            if chance < 10 or name not in remove or dice.below(3) == 0:
                if chance == 6:
                    fields[name] = dice.pick(misfits_of(policy))
                elif policy.json_types == frozenset({"array"}):
                    stated = [self.turned(dice, self.palettes[name]) for _ in range(dice.pick((1, 2, 3, 0)))]
                    if isinstance(policy, ByKey):
                        stated = list({_text_of(policy.member)(each): each for each in stated}.values())
                    fields[name] = stated
                else:
                    fields[name] = self.turned(dice, self.palettes[name])
        return fields, remove

    def turned(self, dice: _Dice, options: Sequence[T]) -> T:
        """Return one of the options, a different one each time for the same byte: hypothesis likes to repeat itself."""
        return options[(dice.below(len(options)) + len(self.said)) % len(options)]

    def picked(self, dice: _Dice, most: int) -> list[bytes]:
        """Return digests of some observations, the recent before the old."""
        recent = self.said[::-1]
        return [dice.pick(recent)[0].digest for _ in range(dice.below(most) + 1)]

    def all_of(self, *ops: str) -> list[Observation]:
        return [o for o, _ in self.said if o.op in ops][::-1]

    def corrected(self, dice: _Dice) -> list[bytes]:
        """Return the names in a correction: the ones in effect, fewer, or others."""
        manner = dice.below(9)
        corrections, assertions = self.all_of(CORRECT), self.all_of(ASSERT)
        if manner == 3:  # one that knows no other
            return []
        if manner == 4:
            return [sha256(b"nobody said this").digest(), *(a.digest for a in assertions[: dice.below(3)])]
        if manner == 5:
            return self.picked(dice, 3) if self.said else []
        if manner >= 6 and assertions:  # of one original, with the corrections of it, or with the last; rarely of two
            original = dice.pick(assertions).digest
            seen = [c.digest for c in corrections if original in c.replaces]
            other = [dice.pick(assertions).digest] if dice.chance() == 11 else []
            return [original, *other, *(seen if manner < 8 else seen[:1])]
        # The careful writer saw all corrections so far, the hasty one the last of them.
        named = [c.digest for c in (corrections[:1] if manner == 2 else corrections)]
        if assertions and dice.below(2):
            named.append(dice.pick(assertions).digest)
        return named

    def withdrawn(self, dice: _Dice) -> list[Observation]:
        """Return the names in a retraction: the latest observation, another retraction, or any."""
        manner = dice.below(4)
        retractions = self.all_of(RETRACT)
        if manner == 1 and retractions:
            return retractions[:1]
        if manner <= 1:
            return [self.said[-1][0]]
        by_digest = {o.digest: o for o, _ in self.said}
        return [by_digest[digest] for digest in dict.fromkeys(self.picked(dice, 2))]

    def marked(self, dice: _Dice, entity: Ref) -> list[bytes]:
        """Return the names in a marker: all markers of its entity, the last, those of others too, none, or any."""
        manner = dice.below(6)
        markers = [o.digest for o in self.all_of(DELETE, RESTORE) if o.entity == entity or manner == 3]
        if manner == 5 and self.said:
            return self.picked(dice, 2)
        return [] if manner >= 4 else markers[:1] if manner == 2 else markers
