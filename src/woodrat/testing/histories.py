"""Histories: generated sets of observations and schemas of several entities, and the writes that contain them."""

from __future__ import annotations

from typing import Any, Final

from hypothesis import strategies as st

from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN
from woodrat.records import dataclass
from woodrat.state import relation
from woodrat.state.observation import ASSERT, DELETE, RESTORE, RETRACT, Observation, say
from woodrat.state.relation import SAME_AS
from woodrat.state.schema import Schema
from woodrat.testing.generators import AGENTS, MOMENTS, POLICIES, histories, told
from woodrat.testing.laws import rules_for


@dataclass(frozen=True, slots=True)
class Telling:
    """Observations and schemas about several entities, in the order of writing."""

    said: tuple[Observation | Schema, ...]
    """Distinct ones; the ones they name may be missing."""

    def __repr__(self) -> str:
        return "Telling:\n" + "\n".join(map(_told, self.said))

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Let hypothesis print it as people read it."""
        printer.text(repr(self))


def _told(one: Observation | Schema) -> str:
    if isinstance(one, Schema):
        policies = ", ".join(f"{name} {policy}" for name, policy in sorted(one.policies.items()))
        return f"  schema of {one.type} version {one.version}: {policies}"
    return told([one])


_FIELDS: Final = {
    name: POLICIES[policy] for name, policy in zip("abcde", ("latest", "union", "sum", "append", "by_key"), strict=True)
}
_OTHER_FIELDS: Final = {"a": BUILTIN["highest_priority"], "b": BUILTIN["first"]}
_POLICIES: Final = tuple(POLICIES.values())


@st.composite
def tellings(draw: st.DrawFn, size_max: int = 6) -> Telling:
    """Return histories of up to three things that may be joined and split, of others, relations and schemas.

    `size_max` bounds the observations of the things and, by itself, those of the others and of the relations.
    """
    things = draw(histories(_FIELDS, size_max=size_max)).observations
    kind = draw(st.sampled_from(("other", "other", "audit_event")))
    others = draw(
        histories(_OTHER_FIELDS, entity_type=kind, members_max=2, size_max=max(1, size_max // 2))
    ).observations
    edges = _edges(draw, size_max)
    schemas = [_schema(draw) for _ in range(draw(st.integers(0, 2)))]
    said: list[Observation | Schema] = [*things, *others, *edges, *schemas]
    if draw(st.booleans()):
        said = draw(st.permutations(said))
    return Telling(tuple({(type(one), one.digest): one for one in said}.values()))


def _schema(draw: st.DrawFn) -> Schema:
    kind, fields = draw(st.sampled_from((("thing", _FIELDS), ("thing", _FIELDS), ("other", _OTHER_FIELDS))))
    policies = dict(fields)
    if draw(st.booleans()):
        name = draw(st.sampled_from(sorted(policies)))
        policies[name] = draw(st.sampled_from(_POLICIES))
    return rules_for(policies, kind, draw(st.integers(1, 2))).schema


_ENDS: Final = tuple(Ref("thing", key) for key in "abc")
_EDGES: Final = (
    relation.relation(_ENDS[0], SAME_AS, _ENDS[1]),
    relation.relation(_ENDS[1], SAME_AS, _ENDS[2]),
    relation.relation(_ENDS[0], SAME_AS, _ENDS[2]),
    relation.relation(_ENDS[0], "knows", _ENDS[1]),
    relation.relation(_ENDS[0], "knows", _ENDS[1], "again"),
)


def _edges(draw: st.DrawFn, size_max: int) -> list[Observation]:
    """Return observations of `same_as` and of one other relation: asserted, deleted, restored, withdrawn."""
    said: list[Observation] = []
    for _ in range(draw(st.integers(0, size_max))):
        edge = draw(st.sampled_from(_EDGES))
        op = draw(st.sampled_from((ASSERT, ASSERT, ASSERT, DELETE, RESTORE, RETRACT)))
        before = [o for o in said if o.entity == edge]
        parts: dict[str, Any] = {"agent": draw(st.sampled_from(AGENTS)), "observed_at": draw(st.sampled_from(MOMENTS))}
        if op == RETRACT and not before:
            op = ASSERT
        ends = relation.endpoints(edge)
        assert ends is not None
        if op == ASSERT:
            parts["fields"] = {"from": str(ends[0]), "to": str(ends[1])}
        elif op == RETRACT:
            parts["replaces"] = [draw(st.sampled_from(before)).digest]
        elif draw(st.integers(0, 3)):
            parts["replaces"] = [o.digest for o in before if o.op in (DELETE, RESTORE)]
        said.append(say(edge, op, **parts))
    return said


@st.composite
def batches(draw: st.DrawFn, telling: Telling) -> list[Telling]:
    """Return a telling as writes: in some order of arrival, some of it more than once, cut into batches."""
    said = list(telling.said)
    if said:
        said += [said[index] for index in draw(st.lists(st.integers(0, len(said) - 1), max_size=2))]
    shuffled = draw(st.integers(0, 3))
    if shuffled == 1:
        said.reverse()
    elif shuffled > 1:
        said = draw(st.permutations(said))
    found: list[Telling] = []
    while said:
        size = draw(st.integers(1, 4)) if len(said) > 1 else 1
        found.append(Telling(tuple(said[:size])))
        said = said[size:]
    return found
