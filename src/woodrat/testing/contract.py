"""Contract: what every engine must do, as one suite of tests.

    from woodrat.testing.contract import EngineContract

    class TestMine(EngineContract):
        def make_engine(self) -> Engine:
            return MyEngine(...)

The suite speaks to the engine as the ledger does and, where only the port can show it, directly. What it tells the
engine is shipped beside it: `tell` is a story that uses every verb, `tellings` generates sets of observations and
schemas of several entities, `answers` reads everything a ledger can say, `CrashingEngine` fails where it is told to.
"""

from __future__ import annotations

import itertools
import random
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woodrat import Ledger, NotFound, Outdated, Past, Refused, Report, Unavailable, WoodratError, own_policy
from woodrat.canon import form, ids, moment
from woodrat.canon.digest import digest as digest_of
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, TenantId
from woodrat.clock import Clock
from woodrat.engines.memory import MemoryEngine
from woodrat.engines.port import (
    BEFORE_ALL,
    KEPT_EVERY,
    Engine,
    Glance,
    Head,
    Kept,
    Meaning,
    Receipt,
    Transaction,
    View,
)
from woodrat.frozen import dataclass, replace
from woodrat.ledger.policies import registry
from woodrat.ledger.reading import Reader
from woodrat.ledger.writing import Draft, Writer
from woodrat.log import tree
from woodrat.log.entry import NONCE_BYTES, Entry, Origin, Write, request_commitment
from woodrat.log.tree import Frontier
from woodrat.runs.step import step_of
from woodrat.state import fingerprint, merge, relation, schema, snapshot
from woodrat.state import observation as observations
from woodrat.state.merge import MergeState, Rules
from woodrat.state.observation import ASSERT, CORRECT, DELETE, RESTORE, RETRACT, Observation, say
from woodrat.state.policy import BUILTIN, Policy
from woodrat.state.policy.elements import INSIDE_MAX
from woodrat.state.relation import SAME_AS
from woodrat.state.schema import Schema
from woodrat.state.source import source_digest
from woodrat.testing.clock import FixedClock, JumpingClock
from woodrat.testing.generators import AGENTS, MOMENTS, histories, told
from woodrat.testing.laws import rules_for
from woodrat.views.asof import AsOf, Stored

THREADS: Final = 8
"""How many writers write at once."""
WRITES: Final = 25
"""How many writes each of them makes."""
LONG: Final = 220
"""How many observations of one entity the long history has at least."""

ANA: Final = "contact/Ana Rivera"
EARLY, LATE, LATEST = "2025-03-01T09:00:00Z", "2025-06-01T09:00:00Z", "2025-09-01T09:00:00Z"
"""When things were seen; all before a fixed clock begins."""

THING: Final[dict[str, Any]] = {
    "title": "thing",
    "properties": {
        "city": {"type": "string"},
        "rank": {"x-woodrat-merge": "highest_priority"},
        "born": {"x-woodrat-merge": "first"},
        "best": {"x-woodrat-merge": "max"},
        "tags": {"type": "array", "x-woodrat-merge": "union"},
        "total": {"type": ["integer", "string"], "x-woodrat-merge": "sum"},
        "log": {"type": "array", "x-woodrat-merge": "append"},
    },
    "x-woodrat-identity": [["id"], ["email"]],
}
"""A schema with every kind of policy."""

THING_2: Final[dict[str, Any]] = {
    **THING,
    "properties": {
        **THING["properties"],
        "city": {"type": "string", "x-woodrat-merge": "first"},
        "best": {"type": "integer", "x-woodrat-merge": "max"},
    },
}
"""Another version of it: one field merges otherwise, another no longer takes all it took."""


# Ledgers on an engine, and all they say


def ledger_on(
    engine: Engine,
    tenant: str = "t",
    agent: str = "a",
    clock: Clock | None = None,
    policies: Iterable[Policy] = (),
    strict: bool = False,
) -> Ledger:
    """Return a ledger on an engine, on a fixed clock unless another is given."""
    return Ledger(
        engine,
        tenant=tenant,
        agent=agent,
        clock=clock or FixedClock(),
        policies=registry(policies),
        strict=strict,
    )


def answers(past: Past) -> dict[str, Any]:
    """Return everything a ledger says at its moment, as plain JSON."""
    stored = past.observations()
    refs = dict.fromkeys(item.observation.entity for item in stored)
    return {
        "position": past.position,
        "fingerprint": past.fingerprint(),
        "provenance": past.fingerprint(provenance=True),
        "values": {ref: values.to_json() for ref, values in past.values().items()},
        "conflicts": [[str(ref), conflict.to_json()] for ref, conflict in past.conflicts()],
        "observations": [[item.position, item.observation.to_json()] for item in stored],
        "timeline": [event.to_json() for event in past.timeline()],
        "schemas": [found.to_json() for found in past.schemas()],
        "deliveries": [delivery.to_json() for delivery in past.deliveries()],
        "interpretations": [reading.to_json() for reading in past.interpretations()],
        "entities": {str(ref): answers_about(past, ref) for ref in refs},
    }


def answers_about(past: Past, ref: str | Ref) -> dict[str, Any]:
    """Return everything a ledger says of one entity at its moment, as plain JSON."""
    try:
        shown = past.show(ref)
    except NotFound as error:
        return {"not_found": error.to_json()}
    return {
        "show": shown.to_json(),
        "observations": [[item.position, item.observation.id] for item in past.observations(ref)],
        "history": [step.to_json() for step in past.history(ref)],
        "blame": {name: [verdict.to_json() for verdict in found] for name, found in past.blame(ref).items()},
        "related": [link.to_json() for link in past.related(ref, depth=2)],
    }


def spelled(value: object) -> bytes:
    """Return plain JSON as bytes: Python takes 1 and true for equal, bytes do not."""
    return form.serialise(value)


def log_of(engine: Engine, tenant: str = "t") -> dict[str, Any]:
    """Return a tenant's whole log, and what is claimed of it, as plain JSON."""
    with engine.view(TenantId(tenant)) as view:
        head = view.head()
        return {
            "log": head.log,
            "size": head.size,
            "recorded_at": head.recorded_at,
            "root": head.frontier.root().hex(),
            "entries": [entry.to_json() for entry in view.entries()],
            "leaves": [leaf.hex() for leaf in view.leaves(head.size)],
        }


def indexes_of(
    engine: Engine, tenant: str, keys: Iterable[tuple[str, str]] = (), policies: Mapping[str, Policy] = BUILTIN
) -> Any:
    """Return what an engine keeps beside a tenant's log: merge state, identifying values, receipts of these keys."""
    with engine.view(TenantId(tenant)) as view:
        head = view.head().position
        refs = view.entities(None, head)
        kept = {}
        for ref, through in itertools.product(refs, range(BEFORE_ALL, head + 1)):
            found = kept_of(view, ref, through, policies)
            if found is not None:
                kept[ref, found.position] = Kept(found.position, merge.in_memory(found.state))
        names = {
            name for ref in refs for s in view.observations(ref.digest, -1, head) for name in s.observation.replaces
        }
        return (
            kept,
            [(type, rule, value, list(sharing)) for type, rule, value, sharing in view.shared(None)],
            [view.receipt(agent, key) for agent, key in keys],
            {name: list(view.namers(name, head)) for name in names},
            {ref: list(view.relations(ref.digest, None, head)) for ref in refs},
        )


def bodies(said: Iterable[Meaning]) -> list[tuple[str, bytes]]:
    """Return observations and schemas as `Ledger.admit` takes them."""
    told = [one for one in said if isinstance(one, Observation | Schema)]
    return [("schema" if isinstance(one, Schema) else "observation", one.body) for one in told]


def position_of(engine: Engine, tenant: str = "t") -> int:
    """Return the last position of a tenant's log."""
    with engine.view(TenantId(tenant)) as view:
        return view.head().position


def kept_of(view: View, ref: Ref, through: int, policies: Mapping[str, Policy] = BUILTIN) -> Kept | None:
    """Return the merge state kept of a fold under the rules in force at a position."""
    return view.kept(ref, through, Reader(view, AsOf(through), policies).rules(ref.type))


def fold_at(view: View, members: Sequence[Ref], rules: Rules, through: int) -> MergeState:
    """Return the merge state of these entities from nothing but their observations."""
    found = (s.observation for ref in members for s in view.observations(ref.digest, BEFORE_ALL, through))
    return merge.fold(found, members, rules)


def same_state(one: MergeState, other: MergeState, rules: Rules) -> bool:
    """Return whether two merge states are equal and show the same, byte for byte."""
    shown = [
        (spelled(snapshot.take(s.members[0], s, rules, position=0, version=0).to_json()), _proven(s, rules))
        for s in (one, other)
    ]
    return one == other and shown[0] == shown[1]


def _proven(state: MergeState, rules: Rules) -> bytes:
    return snapshot.value_digest(state, rules, provenance=True)


# A story that uses every verb


def tell(a: Ledger, b: Ledger) -> Iterator[Report | None]:
    """Tell a story through the verbs of two agents' ledgers; yield after each write, with its report where it has one.

    Two agents disagree, something arrives late, is corrected, withdrawn, deleted, restored, joined and split; a source
    is read, a moment tagged, a schema changed.
    """
    yield a.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}, observed_at=EARLY)
    yield b.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Madrid"}, observed_at=LATE)
    late = a.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Vic", "$": {"observed_at": EARLY}})
    yield late
    fixed = b.correct(ANA, {"city": "Girona"}, reason="read the letter", observed_at=EARLY)
    yield fixed
    yield a.retract(late.observations[0], reason="mistyped")
    yield a.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Lleida"}, idempotency_key="lleida")
    undone = b.retract(fixed.observations[0])
    yield undone
    yield b.retract(undone.observations[0], reason="it was right")

    yield a.register(THING)
    first = a.store(
        [
            {"entity_type": "thing", "id": "1", "tags": ["x", "y"], "total": 7, "log": [["a", 1]], "city": "Ürgell"},
            {"entity_type": "thing", "id": "2", "email": "t@example.com", "rank": 1, "best": [1], "total": "0.10"},
            {"entity_type": "thing", "id": "é", "email": "t@example.com", "born": None, "best": True},
        ],
        observed_at=EARLY,
        priority=3,
    )
    yield first
    yield b.store(
        {
            "entity_type": "thing",
            "id": "1",
            "tags": ["z"],
            "total": "1.25",
            "log": ["b"],
            "$": {"remove": {"tags": ["x"]}},
        },
        observed_at=LATE,
    )
    yield b.correct("thing/1", {"total": 8}, replaces=first.observations[0])
    yield b.correct("thing/1", {"tags": ["w"], "city": "Berga"})
    yield b.correct("thing/1", {"city": "Solsona"}, priority=-1, observed_at=EARLY)
    yield a.delete("thing/1", reason="a duplicate, it seemed")
    yield a.store({"entity_type": "thing", "id": "1", "born": 1990, "log": [{"😀": 1.5}]}, observed_at=LATEST)
    yield b.restore("thing/1")
    yield b.delete("thing/1")
    yield a.restore("thing/1")

    yield a.store(
        [
            {"entity_type": "company", "name": "Acme"},
            {
                "entity_type": "contact",
                "name": "A. Rivera",
                "$": {"relate": [{"type": "works_at", "to": "company/Acme"}]},
            },
        ],
        observed_at=EARLY,
    )
    yield a.relate(ANA, "works_at", "company/Acme", fields={"since": 2020})
    yield b.delete(f'works_at/["{ANA}","company/Acme"]')
    yield a.relate(ANA, "works_at", "company/Acme")
    yield a.merge("contact/A. Rivera", ANA, reason="one letterhead")
    yield b.store({"entity_type": "contact", "name": "A. Rivera", "phone": "+34 1"}, observed_at=LATE)
    yield b.split(ANA)
    yield a.merge(ANA, "contact/A. Rivera")
    yield a.merge("thing/1", "thing/2")
    yield a.merge("thing/2", "thing/é")
    yield b.delete("thing/2")
    yield b.split("thing/1", "thing/2")

    letter = a.source(b"Ana Rivera, Tarragona\n", name="letter.txt")
    yield None
    b.source(b"Ana Rivera, Tarragona\n", name="copy.txt")
    yield None
    with b.interpretation(letter, model="m-1", prompt="Who?", parameters={"temperature": 0}) as reading:
        yield None
        yield reading.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Tarragona"}, observed_at=LATEST)
        reading.usage = {"tokens": 12}
    yield None
    yield a.tag("before")
    yield a.register(THING_2)
    yield b.store({"entity_type": "thing", "id": "2", "best": 9, "city": "Manresa"}, observed_at=EARLY, valid_from=LATE)
    misfit = say(Ref("thing", "2"), ASSERT, agent="c", observed_at=MOMENTS[0], fields={"best": "no", "total": 1.5})
    lost = say(Ref("thing", "3"), RETRACT, agent="c", observed_at=MOMENTS[0], replaces=[misfit.digest])
    yield a.admit(bodies([misfit, lost]))
    yield b.retract(first.observations[1])


def told_on(engine: Engine, tenant: str = "t", clock: Clock | None = None) -> Ledger:
    """Tell the story on an engine and return the first agent's ledger."""
    clock = clock or FixedClock()
    a, b = ledger_on(engine, tenant, "a", clock), ledger_on(engine, tenant, "b", clock)
    for _ in tell(a, b):
        pass
    return a


# Sets of observations and schemas of several entities


@dataclass(frozen=True, slots=True)
class Telling:
    """Observations and schemas about several entities, in the order in which they were said."""

    said: tuple[Observation | Schema, ...]
    """Distinct ones; what they name may be missing."""

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
    name: BUILTIN[policy] for name, policy in zip("abcd", ("latest", "union", "sum", "append"), strict=True)
}
_OTHER_FIELDS: Final = {"a": BUILTIN["highest_priority"], "b": BUILTIN["first"]}
_POLICIES: Final = ("latest", "highest_priority", "first", "max", "min", "union", "sum", "append")


@st.composite
def tellings(draw: st.DrawFn, size_max: int = 6) -> Telling:
    """Return tellings of up to three things that may be joined and parted, of others, relations and schemas.

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
        policies[name] = BUILTIN[draw(st.sampled_from(_POLICIES))]
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
    """Return what is said of `same_as` and of one other relation: asserted, deleted, restored, withdrawn."""
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


# An engine that fails


class Crash(BaseException):
    """What a `CrashingEngine` raises; as little expected as a power cut."""


VERBS: Final = ("append", "keep", "share", "claim", "keep_fingerprint")
"""The verbs of a transaction that change something."""

ERASING: Final = ("erase", "append", "drop_derived", "derive", "keep", "keep_fingerprint", "index")
"""The verbs of a transaction that erases."""


class CrashingEngine:
    """An engine that fails once, at one call of one verb of a transaction, before the call or after it."""

    def __init__(self, engine: Engine, error: type[BaseException] = Crash) -> None:
        self.inner = engine
        self.name = engine.name
        self.error = error
        self.armed: tuple[str, int, bool] | None = None
        """The verb, how many calls of it pass first, and whether the call that fails is still carried out."""

    def arm(self, verb: str, passing: int = 0, *, after: bool = False) -> None:
        """Fail at a later call of a verb; once it has failed, all goes well again."""
        assert verb in VERBS + ERASING
        self.armed = (verb, passing, after)

    def disarm(self) -> None:
        """Let all go well."""
        self.armed = None

    def elsewhere(self) -> None:
        """Be nowhere else: another process would not fail."""

    def view(self, tenant: TenantId) -> AbstractContextManager[View]:
        """Open a view of the engine inside."""
        return self.inner.view(tenant)

    def glance(self, tenant: TenantId, entity: Ref | str) -> Glance | None:
        """Look at an entity of the engine inside."""
        return self.inner.glance(tenant, entity)

    def glance_back(self, tenant: TenantId, entity: Ref, position: int | None, effective: str | None) -> Glance | None:
        """Look back at an entity of the engine inside."""
        return self.inner.glance_back(tenant, entity, position, effective)

    def stamp(self) -> bytes | None:
        """Ask the engine inside."""
        return self.inner.stamp()

    @contextmanager
    def transaction(self, tenant: TenantId) -> Iterator[Transaction]:
        """Open a transaction of the engine inside, and stand between it and the ledger."""
        with self.inner.transaction(tenant) as write:
            yield cast(Transaction, _Crashing(write, self))

    def purge(self) -> bool:
        """Purge the engine inside."""
        return self.inner.purge()

    def purged(self) -> bool:
        """Ask the engine inside."""
        return self.inner.purged()

    def files(self, tenant: TenantId) -> Sequence[str]:
        """Ask the engine inside."""
        return self.inner.files(tenant)

    def together(self) -> AbstractContextManager[None]:
        """Share a commit of the engine inside."""
        return self.inner.together()

    def tenants(self) -> list[str]:
        """Name the tenants."""
        return self.inner.tenants()

    def close(self) -> None:
        """Close the engine inside."""
        self.inner.close()


class _Crashing:
    """A transaction that hands every verb on, but for the one that is armed."""

    def __init__(self, write: Transaction, engine: CrashingEngine) -> None:
        self._write = write
        self._engine = engine

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._write, verb)
        if self._engine.armed is None or self._engine.armed[0] != verb:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._engine.armed is None:
                return found(*args, **kwargs)
            _, passing, after = self._engine.armed
            if passing:
                self._engine.arm(verb, passing - 1, after=after)
                return found(*args, **kwargs)
            self._engine.disarm()
            if after:
                found(*args, **kwargs)
            raise self._engine.error(f"at {verb}")

        return call


def _erase_all(write: Transaction, size: int, receipt: tuple[str, str]) -> None:
    write.erase(range(size), [receipt])
    write.drop_derived()


# The suite


class EngineContract:
    """What every engine must do. Subclass it, name the subclass Test…, and say how an engine is made."""

    def make_engine(self) -> Engine:
        """Return a fresh, empty engine."""
        raise NotImplementedError

    @pytest.fixture
    def engine(self) -> Iterator[Engine]:
        """A fresh engine, closed afterwards."""
        engine = self.make_engine()
        yield engine
        engine.close()

    # The log

    def test_a_tenant_that_never_wrote_is_empty(self, engine: Engine) -> None:
        """Before its first write a tenant has no log, no entry, and nothing is known in it."""
        with engine.view(TenantId("t")) as view:
            assert view.head() == Head(None, 0, None, Frontier())
            assert view.head().position == BEFORE_ALL
            assert view.entry(0) is None
            assert list(view.entries()) == []
            assert list(view.leaves(0)) == []
            assert view.position_at("9999-12-31T23:59:59.999999Z") == BEFORE_ALL
            assert view.receipt("a", "k") is None
            assert list(view.entities(None, 10)) == []
            assert list(view.shared(None)) == []
            assert list(view.schema_types(10)) == []
            assert view.fingerprint() == (BEFORE_ALL, fingerprint.EMPTY)
        assert ledger_on(engine).fingerprint() == fingerprint.text(fingerprint.EMPTY.root())

    def test_positions_have_no_gaps(self, engine: Engine) -> None:
        """Entries stand at 0, 1, 2 and so on, and each write's report names those it added."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        size = 0
        for report in tell(a, b):
            with engine.view(a.tenant) as view:
                added = [entry.position for entry in view.entries(size - 1)]
                assert added == list(range(size, view.head().size))
                assert added
            if report is not None:
                assert list(report.positions) == added
                assert report.position == added[-1] == a.position
            size += len(added)

    def test_entries_read_back_as_written(self, engine: Engine) -> None:
        """An entry is found by its position, and ranges and kinds select entries without changing them."""
        told_on(engine)
        with engine.view(TenantId("t")) as view:
            everything = list(view.entries())
            head = view.head()
            for entry in everything:
                entry.check()
                assert view.entry(entry.position) == entry
                assert Entry.from_json(entry.to_json()) == entry
                assert entry.log == head.log
            assert everything[-1].recorded_at == head.recorded_at
            assert view.entry(-1) is None
            assert view.entry(head.size) is None
            kinds = {entry.kind for entry in everything}
            assert kinds >= {"observation", "schema", "source", "received", "tag", "interpretation.started"}
            for after, through in itertools.product((-1, 0, 3, head.position), (None, -1, 0, 7, head.position, 10**6)):
                end = head.position if through is None else through
                wanted = [entry for entry in everything if after < entry.position <= end]
                assert list(view.entries(after, through)) == wanted
                for chosen in ({"tag"}, {"source", "received"}, kinds, set[str]()):
                    some = [entry for entry in wanted if entry.kind in chosen]
                    assert list(view.entries(after, through, chosen)) == some

    def test_nodes_are_the_subtrees_over_the_leaves(self, engine: Engine) -> None:
        """At every size the stored subtrees give the root of the leaves, and proofs that hold."""
        ledger = ledger_on(engine)
        for number in range(40):
            ledger.store({"entity_type": "thing", "name": f"n{number}"})
        with engine.view(ledger.tenant) as view:
            leaves, nodes = list(view.leaves(view.head().size)), view.nodes()
            size = len(leaves)
            for part in range(size + 1):
                root = Frontier.at(nodes, part).root()
                assert root == tree.root(leaves[:part])
                proof = tree.consistency_proof(nodes, part, size)
                assert tree.verify_consistency(part, size, root, tree.root(leaves), proof)
            for index, leaf in enumerate(leaves):
                found = tree.inclusion_proof(nodes, index, size)
                assert tree.verify_inclusion(leaf, index, size, found, tree.root(leaves))

    def test_leaves_and_root_are_those_of_the_entries(self, engine: Engine) -> None:
        """After every write the leaves are those of the entries, and the root is the one recomputed from them."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        roots = []
        for _ in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head()
                leaves = [entry.leaf() for entry in view.entries()]
                assert list(view.leaves(head.size)) == leaves
                assert head.frontier == Frontier().extend(leaves)
                assert head.frontier.root() == tree.root(leaves)
                roots.append((head.size, head.frontier.root()))
        with engine.view(a.tenant) as view:
            for size, root in roots:
                assert tree.root(view.leaves(size)) == root, "a longer log still holds the shorter one"

    def test_the_logs_clock_never_goes_back(self, engine: Engine) -> None:
        """`recorded_at` grows from write to write though the machine's clock jumps 400 days back and forth."""
        now = "2026-01-01T00:00:00Z"
        past = moment.from_micros(moment.to_micros(moment.parse(now)) - 400 * 86_400_000_000)
        clock = JumpingClock([now, past, past, now, "2027-01-01T00:00:00Z", past, now])
        ledger = ledger_on(engine, clock=clock)
        for number in range(9):
            ledger.store([{"entity_type": "note", "id": f"{number}.{part}"} for part in range(3)])
        with engine.view(ledger.tenant) as view:
            entries = list(view.entries())
        times = [entry.recorded_at for entry in entries]
        assert all(len(set(times[first : first + 3])) == 1 for first in range(0, 27, 3)), "one time for a whole write"
        assert times[::3] == sorted(set(times)), "a later time for a later write"
        stated = [observations.stored(entry.body or b"").observed_at for entry in entries]
        assert stated == times, "left out, observed_at is the log's time"

    def test_an_envelope_says_which_write_an_entry_belongs_to(self, engine: Engine) -> None:
        """The first entry of a write says how long it is and commits to the request; the others point at the first."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        first = 0
        for _ in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head()
                for entry in view.entries(first - 1):
                    assert entry.envelope.write == first
                    assert entry.envelope.length == (head.size - first if entry.position == first else None)
                    assert (entry.envelope.request is not None) == (entry.position == first)
            first = head.size
        record = {"entity_type": "note", "id": "1"}
        report = a.store(record, idempotency_key="once")
        with engine.view(a.tenant) as view:
            opening, receipt = view.entry(report.positions[0]), view.receipt("a", "once")
        assert opening is not None and opening.nonce is not None and receipt is not None
        asked = digest_of("request", form.serialise({"arguments": {"records": record}, "verb": "store"}))
        assert receipt.request == asked
        assert opening.envelope.request == request_commitment(opening.nonce, "once", asked)

    def test_an_erased_body_is_gone_and_its_header_stays(self, engine: Engine) -> None:
        """Erasing takes bodies, nonces and receipts, of one tenant; headers, leaves and the root stay as they were."""
        ledger, other = told_on(engine), told_on(engine, "u")
        ledger.store({"entity_type": "thing", "id": "k"}, idempotency_key="gone")
        ledger.store({"entity_type": "thing", "id": "l"}, idempotency_key="kept")
        before, untouched = log_of(engine), log_of(engine, "u")
        gone = [1, before["size"] - 2]
        with engine.transaction(ledger.tenant) as write:
            write.erase(gone, [(ledger.agent, "gone")])
        after = log_of(engine)
        assert [entry["position"] for entry in after["entries"] if entry["body"] is None] == gone
        assert [entry["position"] for entry in after["entries"] if entry["nonce"] is None] == gone
        for entry in (*before["entries"], *after["entries"]):
            del entry["body"], entry["nonce"]
        assert after == before
        assert log_of(engine, other.tenant) == untouched
        with engine.view(ledger.tenant) as view:
            keys = {key for _, key, _ in view.receipts()}
            assert "kept" in keys
            assert "gone" not in keys
            assert view.receipt(ledger.agent, "gone") is None
            assert all(view.receipt(agent, key) == receipt for agent, key, receipt in view.receipts())
        assert engine.purge()
        assert engine.purged()

    def test_an_erasure_that_fails_leaves_everything(self, engine: Engine) -> None:
        """Leaving a transaction by an exception brings back bodies, nonces, receipts and what was derived."""
        ledger = told_on(engine)
        ledger.store({"entity_type": "thing", "id": "k"}, idempotency_key="k")
        before, said = log_of(engine), answers(ledger)
        failing = CrashingEngine(engine)
        failing.arm("drop_derived", after=True)
        with pytest.raises(Crash), failing.transaction(ledger.tenant) as write:
            _erase_all(write, before["size"], (ledger.agent, "k"))
        assert log_of(engine) == before
        assert spelled(answers(ledger)) == spelled(said)
        with engine.view(ledger.tenant) as view:
            assert view.receipt(ledger.agent, "k") is not None
        assert engine.purged()

    def test_a_closed_engine_says_so(self) -> None:
        """After closing, reads and writes are unavailable rather than wrong."""
        engine = self.make_engine()
        ledger = ledger_on(engine)
        ledger.store({"entity_type": "note", "id": "1"})
        ledger.close()
        with pytest.raises(Unavailable):
            ledger.show("note/1")
        with pytest.raises(Unavailable):
            ledger.store({"entity_type": "note", "id": "2"})

    # Whole or not at all

    @pytest.mark.parametrize("error", [Crash, ValueError, KeyboardInterrupt])
    def test_a_plan_that_raises_leaves_nothing(self, engine: Engine, error: type[BaseException]) -> None:
        """A plan that fails after saying something leaves the ledger as it was, and the next write works."""
        ledger = told_on(engine)
        before = _everything(engine)

        def plan(draft: Draft) -> None:
            draft.say(say(Ref("note", "1"), ASSERT, agent="a", observed_at=MOMENTS[0], fields={"x": 1}))
            draft.use("task")
            raise error("in the plan")

        with pytest.raises(error):
            Writer(engine, ledger.tenant, FixedClock(), "a", registry(()), None).write("store", {}, plan, key="k")
        assert _everything(engine) == before
        _next_write_works(engine, "k")

    def test_a_check_that_refuses_leaves_nothing(self, engine: Engine) -> None:
        """A write refused for what one of its entities would lack leaves nothing, its good records included."""
        ledger = told_on(engine)
        ledger.register({"title": "strict", "required": ["name"], "properties": {"name": {"type": "string"}}})
        before = _everything(engine)
        with pytest.raises(Refused):
            ledger.store(
                [{"entity_type": "note", "id": "1"}, {"entity_type": "strict", "id": "1"}], idempotency_key="k"
            )
        assert _everything(engine) == before
        _next_write_works(engine, "k")

    def test_a_policy_that_raises_leaves_nothing(self, engine: Engine) -> None:
        """A merge that fails after its entries were appended leaves the ledger as it was, and the next write works."""
        broken: list[bool] = []

        def join(one: Json, other: Json) -> Json:
            if broken:
                raise ArithmeticError("a policy of mine")
            return max(cast(int, one), cast(int, other))

        own = own_policy("own", 1, lift=lambda claim: claim.value, join=join, json_types={"integer"}, code="0" * 64)
        told_on(engine)
        ledger = ledger_on(engine, policies=[own], clock=FixedClock("2026-02-01T00:00:00.000000Z"))
        field = {"type": "integer", "x-woodrat-merge": own.name.to_json()}
        ledger.register({"title": "score", "properties": {"points": field}})
        ledger.store({"entity_type": "score", "id": "1", "points": 3})
        before = _everything(engine, ledger)
        broken.append(True)
        with pytest.raises(ArithmeticError):
            ledger.store(
                [{"entity_type": "note", "id": "1"}, {"entity_type": "score", "id": "1", "points": 9}],
                idempotency_key="k",
            )
        broken.clear()
        assert _everything(engine, ledger) == before
        report = ledger.store({"entity_type": "score", "id": "1", "points": 9}, idempotency_key="k")
        assert report.positions == (before[0]["size"],)
        assert ledger.show("score/1").fields["points"] == 9

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("verb", VERBS)
    def test_a_crash_between_append_and_derive_leaves_nothing(self, engine: Engine, verb: str, after: bool) -> None:
        """A write that dies at any verb of its transaction leaves the ledger as it was, and sent again it works."""
        told_on(engine)
        crashing = CrashingEngine(engine, OSError if after else Crash)
        ledger = ledger_on(crashing, clock=FixedClock("2026-02-01T00:00:00.000000Z", seed="crash"))
        for number in range(KEPT_EVERY - 1):  # one more, and merge state is kept along the history too
            ledger.store({"entity_type": "note", "id": "1", "n": number})
        records: list[dict[str, Any]] = [
            {"entity_type": "note", "id": "1", "n": -1},
            {"entity_type": "thing", "id": "2", "email": "t@example.com", "tags": ["q"]},
            {"entity_type": "task", "title": "new", "$": {"relate": [{"type": "about", "to": "note/1"}]}},
        ]
        deeds: tuple[Callable[[], object], ...] = (
            lambda: ledger.store(records, idempotency_key="k"),
            lambda: ledger.merge("thing/1", "thing/2", idempotency_key="k2"),
            lambda: ledger.register({**THING_2, "description": "third"}, idempotency_key="k3"),
            lambda: ledger.fingerprint(),
        )
        crashes = 0
        for deed, passing in itertools.product(deeds, (0, 1)):
            before = _everything(engine)
            with engine.view(ledger.tenant) as view:
                kept = view.fingerprint()
            crashing.arm(verb, passing, after=after)
            try:
                deed()
            except crashing.error:
                crashes += 1
                assert _everything(engine) == before
                with engine.view(ledger.tenant) as view:
                    assert view.fingerprint() == kept
            crashing.disarm()
        assert crashes
        for deed in deeds:
            deed()
        size = position_of(engine)
        for deed in deeds:
            deed()
        assert position_of(engine) == size, "each of them is written once, whichever call did it"
        _next_write_works(engine, "k4")
        _derived_is_true(engine)

    def test_a_first_write_that_fails_leaves_no_log(self, engine: Engine) -> None:
        """A tenant whose first write failed has no log yet, and its next write begins one at position 0."""
        crashing = CrashingEngine(engine)
        ledger = ledger_on(crashing)
        crashing.arm("keep")
        with pytest.raises(Crash):
            ledger.store({"entity_type": "contact", "name": "Ana"}, idempotency_key="k")
        with engine.view(ledger.tenant) as view:
            assert view.head() == Head(None, 0, None, Frontier())
            assert view.receipt("a", "k") is None
            assert list(view.entities(None, 10)) == []
        assert ledger.store({"entity_type": "contact", "name": "Ana"}, idempotency_key="k").positions == (0, 1)

    def test_a_dry_run_leaves_nothing(self, engine: Engine) -> None:
        """A dry run reports what the real write then reports, and leaves neither entries nor a key."""
        ledger = told_on(engine)
        writes: tuple[Callable[..., Report], ...] = (
            lambda **how: ledger.store(
                [
                    {"entity_type": "contact", "name": "Ana Rivera", "city": "Reus"},
                    {"entity_type": "task", "title": "x"},
                ],
                observed_at=LATE,
                **how,
            ),
            lambda **how: ledger.correct("thing/1", {"tags": ["only"]}, observed_at=EARLY, **how),
            lambda **how: ledger.delete("thing/1", observed_at=EARLY, **how),
            lambda **how: ledger.split("contact/A. Rivera", observed_at=EARLY, **how),
            lambda **how: ledger.register({**THING_2, "description": "third"}, **how),
        )
        for write in writes:
            before = _everything(engine)
            key = f"key-{before[0]['size']}"
            dry = write(dry_run=True, idempotency_key=key)
            assert dry.dry_run
            assert _everything(engine) == before
            with engine.view(ledger.tenant) as view:
                assert view.receipt("a", key) is None
            real = write(idempotency_key=key)
            assert spelled(dry.but(dry_run=False).to_json()) == spelled(real.to_json())
            assert position_of(engine) == real.position > before[0]["size"] - 1

    # Once

    def test_a_key_used_again_answers_as_it_did(self, engine: Engine) -> None:
        """The same key with the same request answers with the first report, says so, and writes nothing."""
        ledger = told_on(engine)
        record = {"entity_type": "contact", "name": "Ana Rivera", "city": "Reus", "age": 1.5, "ok": True}
        first = ledger.store(record, idempotency_key="k")
        ledger.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Salou"})
        before = _everything(engine)
        for again in (ledger.store(record, idempotency_key="k"), ledger_on(engine).store(record, idempotency_key="k")):
            assert again == first.again()
            assert again.repeated and not first.repeated
            assert spelled(again.to_json()) == spelled({**first.to_json(), "repeated": True})
        assert _everything(engine) == before

    def test_a_key_with_other_content_is_refused(self, engine: Engine) -> None:
        """The same key with another record, another argument or another verb is refused and writes nothing."""
        ledger = told_on(engine)
        record = {"entity_type": "contact", "name": "Ana Rivera", "n": 1}
        ledger.store(record, idempotency_key="k")
        before = _everything(engine)
        writes: tuple[Callable[[], object], ...] = (
            lambda: ledger.store({**record, "n": True}, idempotency_key="k"),
            lambda: ledger.store([record], priority=1, idempotency_key="k"),
            lambda: ledger.store(record, observed_at=EARLY, idempotency_key="k"),
            lambda: ledger.delete(ANA, idempotency_key="k"),
            lambda: ledger.tag("k", idempotency_key="k"),
        )
        for write in writes:
            with pytest.raises(Refused) as refused:
                write()
            assert [fault.path for fault in refused.value.faults] == ["idempotency_key"]
        assert _everything(engine) == before

    def test_keys_belong_to_a_tenant_and_an_agent(self, engine: Engine) -> None:
        """One key serves every tenant and every agent for a request of its own."""
        reports = [
            ledger_on(engine, tenant, agent).store({"entity_type": "note", "id": tenant + agent}, idempotency_key="k")
            for tenant in ("t", "u")
            for agent in ("a", "b", "ab")
        ]
        assert [report.repeated for report in reports] == [False] * 6
        assert [report.position for report in reports] == [0, 1, 2] * 2

    def test_a_write_that_appends_nothing_claims_no_key(self, engine: Engine) -> None:
        """A refused write, a dry run and one with nothing new leave their key free for another request."""
        ledger = told_on(engine)
        with pytest.raises(Refused):
            ledger.store({"entity_type": "thing", "id": "1", "city": 42}, idempotency_key="k")
        with pytest.raises(NotFound):
            ledger.delete("note/none", idempotency_key="k")
        ledger.tag("dry")
        known = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona", "$": {"observed_at": EARLY}}
        before = _everything(engine)
        assert ledger.store(known, idempotency_key="k").repeated
        assert ledger.register(THING, version=1, idempotency_key="k").positions == ()
        assert ledger.restore("thing/1", idempotency_key="k").positions == ()
        assert ledger.store({"entity_type": "note", "id": "9"}, idempotency_key="k", dry_run=True).dry_run
        assert _everything(engine) == before
        assert not ledger.store({"entity_type": "note", "id": "9"}, idempotency_key="k").repeated

    def test_the_same_observation_is_stored_once(self, engine: Engine) -> None:
        """An observation with a stated time is stored once; the second answer is the first report and says so."""
        ledger = told_on(engine)
        record: dict[str, Any] = {
            "entity_type": "contact",
            "name": "Ana Rivera",
            "city": "Reus",
            "$": {"observed_at": LATEST},
        }
        first = ledger.store([record, record])
        assert len(first.positions) == 1
        before = _everything(engine)
        again = ledger_on(engine).store([record, record], idempotency_key="other")
        assert again.but(known=first.known, hints=first.hints) == first.again()
        assert set(again.known) == set(first.observations)
        assert _everything(engine) == before
        assert ledger_on(engine, agent="b").store(record).observations != first.observations[:1], (
            "another agent says it"
        )

    def test_what_was_said_is_known(self, engine: Engine) -> None:
        """Every observation of a log is known, whenever it holds since, and none that only resembles one of them."""
        ledger = told_on(engine)
        with engine.view(ledger.tenant) as view:
            entries = [entry for entry in view.entries(kinds={"observation"}) if entry.body is not None]
            said = [observations.stored(entry.body) for entry in entries if entry.body is not None]
            moments = [moment.parse(text) for text in (EARLY, LATE, LATEST)] + [one.valid_from for one in said]
            others = [
                say(one.entity, ASSERT, agent=one.agent, observed_at=at, fields={"never": "said"})
                for one in said
                for at in sorted(set(moments))
            ]
            unknown = say(Ref("note", "nobody's"), ASSERT, agent="a", observed_at=moments[0], fields={"x": 1})
            assert said and set(view.known([unknown, *others, *said])) == {one.digest for one in said}
            for one in said:
                assert set(view.known([one])) == {one.digest}
            for one in others:
                assert not view.known([one])

    # At once

    def test_writers_at_once_lose_nothing(self, engine: Engine) -> None:
        """Of writes made by many threads at once, each acknowledged one is there, whole, once, and without a gap."""
        reports: dict[tuple[int, int], Report] = {}

        def write(thread: int) -> None:
            ledger = ledger_on(engine, agent=f"agent-{thread}", clock=FixedClock(seed=str(thread)))
            for number in range(WRITES):
                records: list[dict[str, Any]] = [
                    {"entity_type": "counter", "id": "shared", "n": number, "by": thread},
                    {"entity_type": "note", "id": f"{thread}-{number}"},
                ]
                reports[thread, number] = ledger.store(records, idempotency_key=f"key-{number}")

        _at_once(write)
        assert len(reports) == THREADS * WRITES
        with engine.view(TenantId("t")) as view:
            entries = list(view.entries())
            head = view.head()
        assert [entry.position for entry in entries] == list(range(2 * THREADS * WRITES))
        assert head.frontier.root() == tree.root(entry.leaf() for entry in entries)
        assert len({entry.log for entry in entries}) == 1
        times = [entry.recorded_at for entry in entries]
        assert times[::2] == sorted(set(times))
        taken = sorted(report.positions for report in reports.values())
        assert taken == [(first, first + 1) for first in range(0, len(entries), 2)]
        for (thread, number), report in reports.items():
            found = [observations.stored(entries[p].body or b"") for p in report.positions]
            assert [o.id for o in found] == list(report.observations)
            assert found[0].fields["by"] == thread and found[0].fields["n"] == number
            assert ledger_on(engine).show(f"note/{thread}-{number}").version == report.positions[1]
        _derived_is_true(engine)

    def test_if_version_has_one_winner(self, engine: Engine) -> None:
        """Of threads that write on the condition of the same version, exactly one is acknowledged each time."""
        ledger = ledger_on(engine)
        version: int | None = None
        for turn in range(WRITES):
            won, lost = _contend(engine, turn, version)
            assert (len(won), len(lost)) == (1, THREADS - 1)
            version = ledger.show("lock/1").version
            assert version == won[0].position == turn
            assert {error.details["actual"] for error in lost} == {version}

    def test_writes_that_share_a_commit_become_visible_together(self, engine: Engine) -> None:
        """Until a shared commit is left nobody else sees its writes; then everybody sees all of them, in order."""
        ledger, other = ledger_on(engine), ledger_on(engine, tenant="other")
        seen: list[int] = []

        def look() -> None:
            with engine.view(ledger.tenant) as view:
                seen.append(view.head().size)

        with engine.together():
            first = ledger.store({"entity_type": "thing", "id": "1"})
            foreign = other.store({"entity_type": "thing", "id": "1"})
            second = ledger.store({"entity_type": "thing", "id": "1", "city": "Girona"})
            reader = threading.Thread(target=look)
            if engine.name != "memory":  # there a reader waits for the writer
                reader.start()
                reader.join()
        look()
        assert first.position < second.position == seen[-1] - 1
        assert foreign.position == first.position, "each tenant has a log of its own"
        assert set(seen[:-1]) <= {0}
        assert ledger.show("thing/1").fields["city"] == "Girona"
        assert ledger.rebuild().agreed and other.rebuild().agreed

    def test_a_refused_write_leaves_those_it_shares_a_commit_with(self, engine: Engine) -> None:
        """A write in a shared commit that fails is undone by itself, and what comes after it takes its positions."""
        ledger = ledger_on(engine)
        with engine.together():
            before = ledger.store({"entity_type": "thing", "id": "1"}, idempotency_key="one")
            with pytest.raises(Refused):
                ledger.store([{"entity_type": "thing", "id": "2"}, {"entity_type": "thing"}], idempotency_key="two")
            dry = ledger.store({"entity_type": "thing", "id": "3"}, dry_run=True)
            after = ledger.store({"entity_type": "thing", "id": "4"}, idempotency_key="two")
        assert dry.position == after.position == before.position + 1
        assert [str(found.entity) for found in ledger.query(entity_type="thing").items] == ["thing/1", "thing/4"]
        assert ledger.store({"entity_type": "thing", "id": "4"}, idempotency_key="two").repeated
        assert ledger.rebuild().agreed

    def test_a_shared_commit_that_fails_leaves_nothing(self, engine: Engine) -> None:
        """Leaving a shared commit by an exception undoes all its writes, and the next begins where it began."""
        ledger = ledger_on(engine)
        known = ledger.store({"entity_type": "thing", "id": "0"})
        before = ledger.fingerprint()

        def fail() -> None:
            with engine.together():
                ledger.store({"entity_type": "thing", "id": "0", "city": "Girona"}, idempotency_key="k")
                ledger.store({"entity_type": "thing", "id": "1"})
                raise Crash("before it was left")

        with pytest.raises(Crash):
            fail()
        assert ledger.fingerprint() == before
        assert [str(found.entity) for found in ledger.query(entity_type="thing").items] == ["thing/0"]
        again = ledger.store({"entity_type": "thing", "id": "1"}, idempotency_key="k")
        assert (again.position, again.repeated) == (known.position + 1, False)
        assert ledger.rebuild().agreed

    def test_a_view_never_sees_half_a_write(self, engine: Engine) -> None:
        """While others write, every view ends with a whole write, and all that it says belongs together."""
        seen: list[int] = []

        def write(thread: int) -> None:
            ledger = ledger_on(engine, agent=f"agent-{thread}", clock=FixedClock(seed=str(thread)))
            for number in range(WRITES):
                if thread % 2:
                    ledger.store([{"entity_type": "pair", "id": side, "n": f"{thread}-{number}"} for side in "lr"])
                    continue
                with engine.view(ledger.tenant) as view:
                    head = view.head()
                    entries = list(view.entries())
                    assert len(entries) == head.size == len(view.leaves(head.size))
                    assert head.size % 2 == 0
                    assert head.frontier.root() == tree.root(entry.leaf() for entry in entries)
                    for side in "lr":
                        stored = view.observations(Ref("pair", side).digest, BEFORE_ALL, head.position)
                        assert len(stored) == head.size // 2
                        kept = kept_of(view, Ref("pair", side), head.position)
                        assert head.size == 0 or (kept is not None and kept.position == head.position)
                    seen.append(head.size)

        _at_once(write)
        assert max(seen) <= position_of(engine) + 1 == THREADS * WRITES

    # The past

    def test_the_past_stays_as_it_was(self, engine: Engine) -> None:
        """Reads as of every position, and by its time, answer what was answered when the log ended there."""
        clock = FixedClock(step_micros=2)
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        recorded: list[tuple[int, str, bytes]] = []
        for _ in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head()
            assert head.recorded_at is not None
            recorded.append((head.position, head.recorded_at, spelled(answers(a))))
        last = BEFORE_ALL
        for position, time, answered in recorded:
            assert spelled(answers(a.at(position))) == answered
            assert a.at(time).position == position
            assert spelled(answers(b.at(time))) == answered
            micro_before = moment.from_micros(moment.to_micros(time) - 1)
            assert a.at(micro_before).position == last, "a write is there from its own time on"
            last = position
        assert spelled(answers(a.at("@before"))) == next(
            answered for position, _, answered in recorded if position == a.at("@before").position
        )
        assert answers(a.at(BEFORE_ALL))["observations"] == []
        with pytest.raises(NotFound):
            a.at(last + 1)

    def test_a_moment_within_a_write_is_what_a_log_that_long_would_say(self, engine: Engine) -> None:
        """As of a position in the middle of a write, state is what the entries up to there fold to."""
        ledger = told_on(engine)
        with engine.view(ledger.tenant) as view:
            entries = list(view.entries(kinds={"observation", "schema"}))
        for end, entry in enumerate(entries):
            other = ledger_on(engine, tenant=f"u{end}")
            other.admit((one.kind, one.body or b"") for one in entries[: end + 1])
            for proof in (False, True):
                assert ledger.at(entry.position).fingerprint(provenance=proof) == other.fingerprint(provenance=proof)

    def test_state_kept_along_a_long_history_is_what_folding_gives(self, engine: Engine) -> None:
        """At every position of a long history the state read from what was kept equals a fold of everything."""
        ledger = _long_history(engine)
        ref = Ref("thing", "1")
        policies = registry(())
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            stored = view.observations(ref.digest, BEFORE_ALL, head)
            assert len(stored) >= LONG
            assert {s.observation.op for s in stored} == {ASSERT, CORRECT, RETRACT, DELETE, RESTORE}
            positions = set()
            for position in range(head + 1):
                reader = Reader(view, AsOf(position), policies)
                rules = reader.rules(ref.type)
                assert same_state(reader.state(ref), fold_at(view, [ref], rules, position), rules), position
                kept = kept_of(view, ref, position)
                if kept is None:
                    assert len(view.observations(ref.digest, BEFORE_ALL, position)) < KEPT_EVERY
                    continue
                positions.add(kept.position)
                assert kept.position <= position
                assert len(view.observations(ref.digest, kept.position, position)) <= KEPT_EVERY, "reads are bounded"
                then = Reader(view, AsOf(kept.position), policies).rules(ref.type)
                assert same_state(kept.state, fold_at(view, [ref], then, kept.position), then)
            assert len(positions) > LONG // KEPT_EVERY

    def test_a_group_is_followed_one_by_one(self, engine: Engine) -> None:
        """State of a group is kept along a batch too, whichever members it speaks of, and any moment in it reads so."""
        ledger = ledger_on(engine)
        ledger.register(THING)
        refs = [Ref("thing", key) for key in "ab"]
        ledger.store([{"entity_type": "thing", "id": ref.key, "tags": [ref.key]} for ref in refs])
        ledger.merge("thing/a", "thing/b")
        said = [{"entity_type": "thing", "id": "ab"[n % 3 > 0], "city": f"C{n}", "tags": [n]} for n in range(30)]
        report = ledger.store([*said, {"entity_type": "thing", "id": "apart", "city": "D"}])
        assert [change.entity for change in report.changes] == ["thing/a", "thing/b", "thing/apart"]
        with engine.view(ledger.tenant) as view:
            members = Reader(view, AsOf(report.position), BUILTIN).group(refs[0])
            assert set(members) == set(refs)
            for position in report.positions:
                reader = Reader(view, AsOf(position), BUILTIN)
                rules = reader.rules("thing")
                folded = fold_at(view, members, rules, position)
                assert all(same_state(reader.state(ref), folded, rules) for ref in refs), position
                kept = kept_of(view, members[0], position)
                assert position - (report.positions[0] if kept is None else kept.position) <= KEPT_EVERY
                for ref in refs:
                    there = [s.position for s in view.observations(ref.digest, BEFORE_ALL, position)]
                    assert view.version(ref.digest, position) == max(there)
        assert ledger.verify().sound
        assert ledger.rebuild().agreed
        assert ledger.verify().sound

    def test_a_group_joined_before_anything_was_said_of_it_takes_the_schema_of_its_first_write(
        self, engine: Engine
    ) -> None:
        """One write may bring a schema and the first word about entities that were joined before."""
        ledger = ledger_on(engine)
        ends = {"from": "thing/a", "to": "thing/b"}
        edge = say(Ref(SAME_AS, '["thing/a","thing/b"]'), ASSERT, agent="a", observed_at=MOMENTS[0], fields=ends)
        word = say(Ref("thing", "a"), ASSERT, agent="a", observed_at=MOMENTS[0], fields={"tags": ["x"]})
        ledger.admit(bodies([edge]))
        elsewhere = ledger_on(MemoryEngine())
        elsewhere.register(THING)
        ledger.admit(bodies([elsewhere.schema("thing"), word]))
        assert ledger.show("thing/b").fields == {"tags": ["x"]}
        assert ledger.show("thing/b").blame["tags"].policy == "union"
        assert ledger.verify().sound

    def test_what_is_kept_is_current_after_every_write(self, engine: Engine) -> None:
        """A write keeps the merge state of all it touched in its own transaction."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        for report in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head().position
                reader = Reader(view, AsOf(head), registry(()))
                for text in report.entities if report else ():
                    ref = ids.parse_ref(text)
                    members = reader.group(ref)
                    kept = kept_of(view, members[0], head)
                    assert kept is not None and kept.position == head
                    rules = reader.rules(ref.type)
                    assert same_state(kept.state, fold_at(view, members, rules, head), rules)

    # The verbs of a view

    def test_every_verb_is_bounded_by_through(self, engine: Engine) -> None:
        """A view asked about a position answers from the entries up to it, in the order the port names."""
        told_on(engine)
        with engine.view(TenantId("t")) as view:
            head = view.head().position
            entries = list(view.entries())
            stored = [
                Stored(e.position, observations.stored(e.body or b"")) for e in entries if e.kind == "observation"
            ]
            schemas = [(e.position, schema.stored(e.body or b"")) for e in entries if e.kind == "schema"]
            unknown = Ref("note", "nobody")
            for through in range(BEFORE_ALL, head + 2):
                here = [s for s in stored if s.position <= through]
                refs = list(dict.fromkeys(s.observation.entity for s in here))
                named = {name for s in stored for name in s.observation.replaces}
                for s in stored:
                    digest = s.observation.digest
                    assert view.observation(digest, through) == (s if s.position <= through else None)
                    assert list(view.namers(digest, through)) == [n for n in here if digest in n.observation.replaces]
                    named.discard(digest)
                for digest in named:  # named, and never said
                    assert view.observation(digest, through) is None
                assert list(view.entities(None, through)) == sorted(refs, key=_by_bytes)
                for type in ("contact", "thing", "same_as", "nothing"):
                    some = [ref for ref in refs if ref.type == type]
                    assert list(view.entities(type, through)) == sorted(some, key=_by_bytes)
                for ref in [*dict.fromkeys(s.observation.entity for s in stored), unknown]:
                    mine = [s for s in here if s.observation.entity == ref]
                    assert list(view.observations(ref.digest, BEFORE_ALL, through)) == mine
                    assert view.version(ref.digest, through) == (mine[-1].position if mine else None)
                    assert view.entity(ref.digest, through) == (ref if mine else None)
                    edges = [edge for edge in refs if ref in (relation.endpoints(edge) or ())]
                    assert list(view.relations(ref.digest, None, through)) == edges
                    for type in ("same_as", "works_at", "nothing"):
                        some = [edge for edge in edges if edge.type == type]
                        assert list(view.relations(ref.digest, type, through)) == some
                for after in (BEFORE_ALL, 5, through - 2, through, head):
                    between = [s for s in here if s.position > after]
                    assert set(view.touched(after, through)) == {s.observation.entity for s in between}
                    for ref in (Ref("thing", "1"), ids.parse_ref(ANA)):
                        mine = [s for s in between if s.observation.entity == ref]
                        assert list(view.observations(ref.digest, after, through)) == mine
                known = [found for position, found in schemas if position <= through]
                assert list(view.schema_types(through)) == sorted({found.type for found in known})
                for type in ("thing", "contact", "nothing"):
                    assert list(view.schemas(type, through)) == [found for found in known if found.type == type]

    def test_entities_are_ordered_by_utf8_bytes(self, engine: Engine) -> None:
        """Entities come by type and then key, both as UTF-8 bytes, not as UTF-16, folded or by locale."""
        keys = ["\ue000", "😀", "\uffff", "Z", "a", "é", "e\u0301", "z", "B", "ab", "a/b", "ß", "ss", "10", "9"]
        ledger = ledger_on(engine)
        ledger.store([{"entity_type": type, "id": key} for key in keys for type in ("b", "a_1", "a1")])
        with engine.view(ledger.tenant) as view:
            found = view.entities(None, ledger.position)
        wanted = [Ref(type, key) for type in ("a1", "a_1", "b") for key in sorted(keys, key=str.encode)]
        assert list(found) == wanted

    def test_things_are_found_by_their_short_ids(self, engine: Engine) -> None:
        """Observations, entities and sources are found by id, and what was never said is not."""
        told_on(engine)
        content = b"Ana Rivera, Tarragona\n"
        with engine.view(TenantId("t")) as view:
            head = view.head().position
            for ref in view.entities(None, head):
                assert view.entity_by_id(ref.id) == ref
                for stored in view.observations(ref.digest, BEFORE_ALL, head):
                    assert view.observation_by_id(stored.observation.id) == stored
            digest = source_digest(content)
            position = view.source(digest)
            assert position is not None
            found = view.entry(position)
            assert found is not None and found.kind == "source" and found.body == content
            assert view.source_by_id(ids.id_of("source", digest)) == digest
            assert len(list(view.entries(kinds={"source"}))) == 1, "content delivered twice is stored once"
            assert len(list(view.entries(kinds={"received"}))) == 2
            nobody = bytes(32)
            assert view.observation(nobody, head) is None
            assert view.observation_by_id(ids.id_of("observation", nobody)) is None
            assert view.entity_by_id(ids.id_of("entity", nobody)) is None
            assert view.source(nobody) is None
            assert view.source_by_id(ids.id_of("source", nobody)) is None

    def test_a_moment_finds_its_position(self, engine: Engine) -> None:
        """A moment means the last write recorded at or before it, all of that write's entries included."""
        # The first is asked for twice: by the write, and by the name of the new log.
        first, second = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
        clock = JumpingClock([first, first, second, second])
        ledger = ledger_on(engine, clock=clock)
        for number in range(3):
            ledger.store([{"entity_type": "note", "id": f"{number}{part}"} for part in "ab"])
        with engine.view(ledger.tenant) as view:
            for text, position in (
                ("0001-01-01T00:00:00.000000Z", BEFORE_ALL),
                ("2025-12-31T23:59:59.999999Z", BEFORE_ALL),
                ("2026-01-01T00:00:00.999999Z", 1),
                ("2026-01-01T00:00:01.000000Z", 3),
                ("2026-01-01T00:00:01.000001Z", 5),
                ("9999-12-31T23:59:59.999999Z", 5),
            ):
                assert view.position_at(text) == position, text
            opening = view.entry(0)
            assert opening is not None and view.position_at(opening.recorded_at) == 1

    def test_identifying_values_are_shared_by_key(self, engine: Engine) -> None:
        """Entities said to have one identifying value are listed by key, each once, and hinted at."""
        ledger = ledger_on(engine)
        ledger.register(THING)
        for number, key in enumerate(("z", "a", "m", "z")):
            record = {"entity_type": "thing", "id": key, "email": "one@example.com", "best": number}
            report = ledger.store(record)
            assert bool(report.hints) == (key != "z"), "only who says a value first hears who else has it"
        ledger.store({"entity_type": "thing", "id": "q", "email": "two@example.com"})
        ledger.store([{"entity_type": "note", "id": key, "name": "same"} for key in "ba"])
        refs = [Ref("thing", key) for key in "amz"]
        with engine.view(ledger.tenant) as view:
            assert list(view.sharing("thing", "email", "one@example.com")) == refs
            assert list(view.sharing("thing", "email", "two@example.com")) == [Ref("thing", "q")]
            assert list(view.sharing("thing", "id", "one@example.com")) == []
            assert list(view.sharing("note", "email", "one@example.com")) == []
            found = [(type, rule, value, list(those)) for type, rule, value, those in view.shared(None)]
            things = ("thing", "email", "one@example.com", refs)
            assert found == [("note", "name", "same", [Ref("note", "a"), Ref("note", "b")]), things]
            assert [(type, rule, value, list(those)) for type, rule, value, those in view.shared("thing")] == [things]

    # The verbs of a transaction

    def test_what_is_kept_comes_back_equal(self, engine: Engine) -> None:
        """Merge state, fingerprint trees and receipts read back as they were given, the right one for each moment."""
        ledger = told_on(engine)
        root = Ref("thing", "1")
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            reader = Reader(view, AsOf(head), registry(()))
            tree_now = reader.fingerprint()
            fresh = Ref("note", "fresh")
            rules = reader.rules("note")
            states = [merge.empty([fresh], rules)._replace(observations=count) for count in range(10)]
            assert view.kept(fresh, head, rules) is None
        with engine.transaction(ledger.tenant) as write:
            for position, lasting in ((3, True), (5, False), (8, True), (9, False)):
                write.keep([(Kept(position, states[position]), rules, lasting)])
            write.keep_fingerprint(head, tree_now)
            write.claim("agent", "key", Receipt(bytes(range(32)), b'{"a":"\xc3\xa9"}'))
            assert write.receipt("agent", "key") == Receipt(bytes(range(32)), b'{"a":"\xc3\xa9"}')
        with engine.view(ledger.tenant) as view:
            assert view.kept(fresh, 2, rules) is None
            for through, position in ((3, 3), (4, 3), (5, 3), (7, 3), (8, 8), (9, 9), (head, 9)):
                assert view.kept(fresh, through, rules) == Kept(position, states[position]), through
            assert view.fingerprint() == (head, tree_now)
            assert view.fingerprint()[1].root() == tree_now.root()
            assert view.receipt("agent", "key") == Receipt(bytes(range(32)), b'{"a":"\xc3\xa9"}')
            assert view.receipt("agent", "ke") is None
            assert view.receipt("key", "agent") is None
            assert kept_of(view, root, head) is not None

    def test_a_transaction_reads_its_own_writes(self, engine: Engine) -> None:
        """Inside a transaction what it did is there; outside, only once it ended well."""
        ledger = told_on(engine)
        before = _everything(engine)
        other, rules = Ref("note", "other"), Rules(schema.OPEN("note"))
        kept = Kept(1, merge.empty([other], rules))
        with suppress(Crash), engine.transaction(ledger.tenant) as write:
            write.keep([(kept, rules, True)])
            write.share([(Ref("note", "1"), [("name", "x"), ("name", "y")])])
            write.share([(Ref("note", "2"), [("name", "x")])])
            write.claim("a", "mine", Receipt(b"r" * 32, b"{}"))
            write.keep_fingerprint(0, fingerprint.EMPTY)
            assert write.kept(other, 1, rules) == kept
            assert list(write.sharing("note", "name", "x")) == [Ref("note", "1"), Ref("note", "2")]
            assert write.receipt("a", "mine") is not None
            assert write.fingerprint() == (0, fingerprint.EMPTY)
            raise Crash
        assert _everything(engine) == before
        with engine.view(ledger.tenant) as view:
            assert view.kept(other, 1, rules) is None
            assert list(view.sharing("note", "name", "x")) == []
            assert view.receipt("a", "mine") is None

    # The fingerprint

    def test_the_fingerprint_of_the_story_is_kept_up_to_date(self, engine: Engine) -> None:
        """After every write the fingerprint brought up to date equals the one made from everything."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        for _ in tell(a, b):
            assert a.fingerprint() == a.at("now").fingerprint()
            assert b.fingerprint() == a.fingerprint()

    def test_the_fingerprint_of_any_history_is_kept_up_to_date(self, engine: Engine) -> None:
        """Whatever is said, joined, parted, deleted or described anew, the kept fingerprint equals a fresh one."""
        tenants = itertools.count()

        @given(st.data())
        def law(data: st.DataObject) -> None:
            writes = data.draw(batches(data.draw(tellings())))
            ledger = ledger_on(engine, tenant=f"t{next(tenants)}")
            for batch in writes:
                ledger.admit(bodies(batch.said))
                if data.draw(st.integers(0, 3)):  # mostly; otherwise it catches up over several writes
                    assert ledger.fingerprint() == ledger.at("now").fingerprint()
            assert ledger.fingerprint() == ledger.at("now").fingerprint()

        law()

    # Tenants

    def test_tenants_do_not_show_in_each_other(self, engine: Engine) -> None:
        """Whatever one tenant writes, no read, head, root, hint or error text of another changes."""
        alone = self.make_engine()
        mine, single = told_on(engine, "mine"), told_on(alone, "mine")
        told_on(engine, "other", FixedClock("2031-01-01T00:00:00.000000Z", seed="other"))
        other = ledger_on(engine, "other", clock=FixedClock("2032-01-01T00:00:00.000000Z"))
        other.store({"entity_type": "contact", "name": "Only there"}, idempotency_key="k")
        other.register({"title": "note", "required": ["x"], "properties": {"x": {"type": "integer"}}})
        other.tag("only-there")
        record = {"entity_type": "thing", "id": "9", "email": "t@example.com", "$": {"observed_at": EARLY}}
        other.store([record, {**record, "id": "8"}])
        for ledger, engine_of in ((mine, engine), (single, alone)):
            assert ledger.fingerprint() == ledger.at("now").fingerprint()
            del engine_of
        assert spelled(log_of(engine, "mine")) == spelled(log_of(alone, "mine"))
        assert spelled(answers(mine)) == spelled(answers(single))
        assert indexes_of(engine, "mine") == indexes_of(alone, "mine")
        for write in (
            lambda ledger: ledger.store({"entity_type": "contact", "name": "Only there"}, idempotency_key="k"),
            lambda ledger: ledger.store({"entity_type": "note", "id": "1"}),
            lambda ledger: ledger.store(record),
            lambda ledger: ledger.store({"entity_type": "thing", "id": "1", "city": 1}),
            lambda ledger: ledger.at("@only-there"),
            lambda ledger: ledger.at(10_000),
            lambda ledger: ledger.at("2031-01-01T00:00:00Z").position,
            lambda ledger: ledger.store({"entity_type": "thing", "id": "1"}, if_version=3),
        ):
            assert _outcome(write, mine) == _outcome(write, single)
        alone.close()

    def test_tenants_are_listed_by_name(self, engine: Engine) -> None:
        """Whoever has a log is named once, in order; whoever only looked is not."""
        assert engine.tenants() == []
        for tenant in ("b", "a", "b"):
            ledger_on(engine, tenant).store({"entity_type": "thing", "id": "1"})
        with engine.view(TenantId("c")) as view:
            view.head()
        assert engine.tenants() == ["a", "b"]

    def test_ids_of_another_tenant_are_unknown(self, engine: Engine) -> None:
        """Names and ids of another tenant's things are not found, in the same words as ids that nobody has."""
        mine, other = told_on(engine, "mine"), ledger_on(engine, "other", clock=FixedClock(seed="other"))
        report = other.store({"entity_type": "secret", "id": "1", "x": 1})
        source = other.source(b"secret", name="secret")
        secret = Ref("secret", "1")
        said = other.observations("secret/1")[0].observation
        nobody = bytes(range(32))
        record = {"entity_type": "note", "id": "1"}
        for theirs, unknown, ask in (
            (report.observations[0], ids.id_of("observation", nobody), mine.retract),
            (said.name, ids.name("observation", nobody), mine.retract),
            (said.name, ids.name("observation", nobody), lambda id: mine.store(record, saw=[id])),
            (said.id, ids.id_of("observation", nobody), lambda id: mine.correct("thing/1", {"total": 1}, replaces=id)),
            (secret.id, ids.id_of("entity", nobody), mine.show),
            (secret.id, ids.id_of("entity", nobody), mine.delete),
            (secret.id, ids.id_of("entity", nobody), lambda id: mine.relate(ANA, "knows", id)),
            ("secret/1", "secret/2", mine.show),
            ("secret/1", "secret/2", mine.history),
            ("secret/1", "secret/2", mine.delete),
            ("secret/1", "secret/2", lambda ref: mine.relate(ANA, "knows", ref)),
            (source, ids.id_of("source", nobody), mine.content),
            (source, ids.id_of("source", nobody), lambda id: mine.store(record, source=id)),
            (source, ids.id_of("source", nobody), lambda id: mine.interpretation(id).__enter__()),
        ):
            found, wanted = _outcome(ask, theirs), _outcome(ask, unknown)
            assert isinstance(found, dict) and found["code"] in ("not_found", "refused")
            assert spelled(found).replace(theirs.encode(), b"ID") == spelled(wanted).replace(unknown.encode(), b"ID")
        with engine.view(mine.tenant) as view:
            head = 10_000
            assert view.observation(said.digest, head) is None
            assert view.observation_by_id(said.id) is None
            assert view.entity(secret.digest, head) is None
            assert view.entity_by_id(secret.id) is None
            assert list(view.observations(secret.digest, BEFORE_ALL, head)) == []
            assert kept_of(view, secret, head) is None
            assert view.source_by_id(source) is None
            assert view.source(source_digest(b"secret")) is None

    # Equal bytes

    def test_equal_arguments_give_equal_bytes(self) -> None:
        """Two fresh engines given the same clock, nonces and writes hold the same bytes and say the same."""
        one, two = self.make_engine(), self.make_engine()
        first, second = told_on(one), told_on(two)
        assert spelled(log_of(one)) == spelled(log_of(two))
        assert spelled(answers(first)) == spelled(answers(second))
        with one.view(first.tenant) as left, two.view(second.tenant) as right:
            for entry, other in zip(left.entries(), right.entries(), strict=True):
                assert (entry.body, entry.nonce, entry.leaf_data()) == (other.body, other.nonce, other.leaf_data())
        one.close()
        two.close()

    def test_a_log_admitted_elsewhere_has_the_same_state(self, engine: Engine) -> None:
        """Another tenant that admits a log's observations and schemas, in any order, ends in the same state."""
        ledger = told_on(engine)
        with engine.view(ledger.tenant) as view:
            said = [(e.kind, e.body or b"") for e in view.entries(kinds={"observation", "schema"})]
        for seed in range(3):
            random.Random(seed).shuffle(said)
            other = ledger_on(engine, tenant=f"copy-{seed}")
            for start in range(0, len(said), 7):
                other.admit(said[start : start + 7])
            for proof in (False, True):
                assert other.fingerprint(provenance=proof) == ledger.fingerprint(provenance=proof)
            assert spelled({r: v.to_json() for r, v in other.values().items()}) == spelled(
                {r: v.to_json() for r, v in ledger.values().items()}
            )

    # The search index, and everything derived made again

    def test_the_index_finds_tokens_by_prefix(self, engine: Engine) -> None:
        """A token is found by each beginning of it and by nothing else, with its fields, within its tenant and type."""
        ledger = ledger_on(engine)
        ledger.store([{"entity_type": "note", "id": "1"}, {"entity_type": "task", "id": "2"}])
        one, two = Ref("note", "1"), Ref("task", "2")
        last = "z\U0010ffff"
        words = {one: {"ana": {"b", "a"}, "anabel": {"c"}, last: {"a"}, "\0x\0": set[str]()}, two: {"anb": {"a"}}}
        with engine.transaction(ledger.tenant) as write:
            assert write.indexed() == BEFORE_ALL
            write.index(1, words)
            assert write.indexed() == 1
        with engine.view(ledger.tenant) as view:
            assert view.indexed() == 1
            assert view.matching("ana", None) == {one: {"a", "b", "c"}}
            assert view.matching("an", None) == {one: {"a", "b", "c"}, two: {"a"}}
            assert view.matching("an", "task") == {two: {"a"}}
            assert view.matching("anabelx", None) == view.matching("b", None) == view.matching("A", None) == {}
            assert view.matching(last, None) == view.matching("z", None) == {one: {"a"}}
            assert view.matching("\0x\0", None) == {one: set()}
        with engine.view(TenantId("other")) as view:
            assert view.indexed() == BEFORE_ALL
            assert view.matching("a", None) == {}

    def test_the_index_is_replaced_entity_by_entity(self, engine: Engine) -> None:
        """New tokens of an entity take the place of all its old ones; a write undone leaves the index as it was."""
        ledger = ledger_on(engine)
        ledger.store([{"entity_type": "note", "id": "1"}, {"entity_type": "note", "id": "2"}])
        one, two = Ref("note", "1"), Ref("note", "2")
        with engine.transaction(ledger.tenant) as write:
            write.index(0, {one: {"a": {"x"}, "b": {"x"}}, two: {"a": {"x"}}})
        with suppress(Crash), engine.transaction(ledger.tenant) as write:
            write.index(1, {one: {}, two: {"c": {"x"}}})
            raise Crash
        with engine.view(ledger.tenant) as view:
            assert view.indexed() == 0
            assert view.matching("a", None) == {one: {"x"}, two: {"x"}}
            assert view.matching("c", None) == {}
        with engine.transaction(ledger.tenant) as write:
            write.index(1, {one: {"b": {"y"}, "c": {"x"}}})
        with engine.view(ledger.tenant) as view:
            assert view.matching("a", None) == {two: {"x"}}
            assert view.matching("b", None) == {one: {"y"}}
            assert view.matching("c", None) == {one: {"x"}}

    def test_the_index_of_any_history_answers_what_folding_answers(self, engine: Engine) -> None:
        """Whatever is said, joined, parted, deleted or described anew, a search finds what folding everything finds."""
        tenants = itertools.count()

        @settings(max_examples=min(settings().max_examples, 300))  # each searches, rebuilds and searches again
        @given(st.data())
        def law(data: st.DataObject) -> None:
            writes = data.draw(batches(data.draw(tellings())))
            ledger = ledger_on(engine, tenant=f"t{next(tenants)}")

            def check(past: Past) -> None:
                for query, kind in (("a", None), ("x", None), ("thing", "same_as"), ("b", "other")):
                    folded = past.at(effective="9999-12-31T23:59:59.999999Z")
                    assert past.search(query, entity_type=kind) == folded.search(query, entity_type=kind)

            for batch in writes:
                ledger.admit(bodies(batch.said))
                if data.draw(st.integers(0, 2)):  # mostly; otherwise it catches up over several writes
                    check(ledger)
            check(ledger)
            check(ledger.at(data.draw(st.integers(BEFORE_ALL, ledger.position))))
            state = ledger.fingerprint()
            rebuilt = ledger.rebuild()
            assert rebuilt.agreed and rebuilt.fingerprint == state == ledger.at("now").fingerprint()
            check(ledger)

        law()

    def test_entries_of_a_run_are_found_by_its_id_and_subject(self, engine: Engine) -> None:
        """The entries of a run stand under its id, its beginning also under its subject; bounded; rebuilt too."""

        def write(run: str, kind: str, **more: Json) -> int:
            body = form.serialise({"run": run, "span": "0" * 16, "started_at": EARLY, "step": 0, **more})
            writer = Writer(engine, TenantId("t"), clock, "a", BUILTIN, None)
            return writer.write("run", {}, lambda draft: draft.add(kind, body, step_of(kind, body))).position

        clock = FixedClock()
        loan = Ref("loan", "42")
        first = write("run_a", "run.started", subject=str(loan))
        other = write("run_b", "run.started")
        last = write("run_a", "run.ended", status="done")
        for _ in range(2):
            with engine.view(TenantId("t")) as view:
                assert [entry.position for entry in view.run("run_a", last)] == [first, last]
                assert [entry.position for entry in view.run("run_a", last - 1)] == [first]
                assert [entry.position for entry in view.run("run_b", last)] == [other]
                assert [entry.position for entry in view.runs_about(loan.digest, last)] == [first]
                assert not view.runs_about(loan.digest, first - 1) and not view.run("run_c", last)
            with engine.view(TenantId("u")) as view:
                assert not view.run("run_a", last) and not view.runs_about(loan.digest, last)
            ledger_on(engine).rebuild()

    def test_a_shelf_holds_derived_values_by_position(self, engine: Engine) -> None:
        """A shelf gives back what was put on it, by position, until it is emptied or what is derived is dropped."""
        told_on(engine)
        with engine.transaction(TenantId("t")) as write:
            assert write.shelved("v") == BEFORE_ALL and not list(write.shelf("v"))
            write.shelve("v", 3, [(2, b"two"), (1, b"one")])
            write.shelve("w", 0, [])
        with engine.transaction(TenantId("t")) as write:
            assert (write.shelved("v"), write.shelved("w")) == (3, 0)
            assert list(write.shelf("v")) == [(1, b"one"), (2, b"two")]
            write.shelve("v", 5, [(2, b"other"), (4, b"four")])
            assert list(write.shelf("v", after=1)) == [(2, b"other"), (4, b"four")]
        with engine.view(TenantId("u")) as view:
            assert view.shelved("v") == BEFORE_ALL and not list(view.shelf("v"))
        with engine.transaction(TenantId("t")) as write:
            write.drop_shelf("v")
            assert write.shelved("v") == BEFORE_ALL and not list(write.shelf("v"))
            write.shelve("v", 1, [(1, b"one")])
            write.drop_derived()
            assert write.shelved("v") == BEFORE_ALL and not list(write.shelf("v"))

    def test_a_kind_is_followed_without_a_gap(self, engine: Engine) -> None:
        """Who asks after every write for what is new of a kind gets each entry once, and none of a write undone."""
        ledger = told_on(engine)
        log, tenant, through = str(log_of(engine)["log"]), ledger.tenant, BEFORE_ALL
        with engine.view(tenant) as view:
            size = view.head().size

        def follow(view: View) -> list[int]:
            return [entry.position for entry in view.entries(through, view.head().position, {"tag"})]

        def write(*kinds: str, undone: bool) -> list[int]:
            at = f"2027-01-01T00:00:{size:02d}.000000Z"
            nonces = [bytes(NONCE_BYTES)] * len(kinds)
            with engine.transaction(tenant) as transaction:
                follow(transaction)
                items = [(kind, b"{}") for kind in kinds]
                transaction.append(Write(log, size, at, items, nonces, "", bytes(32)), [None] * len(kinds))
                found = follow(transaction)
                if undone:
                    raise Crash
            return found

        with engine.transaction(tenant) as transaction:
            assert follow(transaction)  # the story has tags of its own
            through = transaction.head().position
        for kinds, news in (
            (("schema",), []),
            (("tag", "schema", "tag"), [0, 2]),
            (("run.noted",), []),
            (("tag",), [0]),
        ):
            with suppress(Crash):
                write(*kinds, undone=True)
            with engine.view(tenant) as view:
                assert follow(view) == []
            wanted = [size + offset for offset in news]
            assert write(*kinds, undone=False) == wanted
            with engine.view(tenant) as view:
                assert follow(view) == wanted
            size += len(kinds)
            through = size - 1

    def test_where_entries_came_from_is_kept(self, engine: Engine) -> None:
        """An origin comes back with its entry, and the nearest one of another log is found, here and not elsewhere."""
        ledger = told_on(engine)
        log = str(log_of(engine)["log"])
        with engine.view(ledger.tenant) as view:
            first = view.head().size
            assert view.merged("log_far", 9) is None and view.cloned() == BEFORE_ALL
        origins = [Origin("log_far", 3), None, Origin("log_far", 7), Origin("log_farther", 5)]
        nonces = [bytes([number]) * NONCE_BYTES for number in range(4)]
        items = [("tag", b"{}")] * 4
        write = Write(log, first, "2027-01-01T00:00:00.000000Z", items, nonces, "", bytes(32), origins)

        def undone() -> None:
            with engine.transaction(ledger.tenant) as transaction:
                transaction.append(write, [None] * 4)
                assert transaction.merged("log_far", 7) == (7, first + 2)
                raise Crash

        with pytest.raises(Crash):
            undone()
        with engine.view(ledger.tenant) as view:
            assert view.merged("log_far", 7) is None
        with engine.transaction(ledger.tenant) as transaction:
            transaction.append(write, [None] * 4)
        with engine.view(ledger.tenant) as view:
            assert [entry.envelope.origin for entry in view.entries(first - 1)] == origins
            assert list(view.entries(first - 1)) == list(write) and list(view.leaves(first + 4))[first:] == write.leaves
            assert [view.merged("log_far", at) for at in (2, 3, 6, 7, 8)] == [
                None,
                (3, first),
                (3, first),
                (7, first + 2),
                None,
            ]
            assert view.merged("log_farther", 5) == (5, first + 3)
        with engine.view(TenantId("u")) as view:
            assert view.merged("log_far", 3) is None

    def test_a_log_taken_over_is_kept_as_it_was(self, engine: Engine) -> None:
        """Writes of another ledger, erased entries among them, come back as they were, with the note of how far."""
        story = told_on(MemoryEngine())
        with story._engine.view(story.tenant) as view:
            told = list(view.entries())
        gone = [replace(entry, nonce=None, body=None) if entry.position == 3 else entry for entry in told]
        with engine.transaction(TenantId("t")) as transaction:
            for first in [entry for entry in gone if entry.envelope.length is not None]:
                whole = gone[first.position : first.position + (first.envelope.length or 0)]
                transaction.append(Write.of(whole), [None] * len(whole))
            transaction.note_clone()
        with engine.view(TenantId("t")) as view:
            assert list(view.entries()) == gone and view.cloned() == len(gone) - 1
            assert view.leaves(len(gone)) == [entry.leaf() for entry in told]
        with engine.view(TenantId("u")) as view:
            assert view.cloned() == BEFORE_ALL
        ledger = ledger_on(engine, clock=FixedClock(seed="own"))
        ledger.rebuild()
        ledger.store({"entity_type": "thing", "id": "own"})
        with engine.view(TenantId("t")) as view:
            assert view.cloned() == len(gone) - 1 and view.head().log != told[0].log
        assert engine.tenants() == ["t"]

    def test_what_is_derived_can_be_dropped(self, engine: Engine) -> None:
        """Nothing but the log and its receipts is left then; a view opened before, and a write undone, show the old."""
        ledger = told_on(engine)
        ledger.search("ana")
        before = _everything(engine)
        with suppress(Crash), engine.transaction(ledger.tenant) as write, engine.view(ledger.tenant) as old:
            head = write.head().position
            refs = list(old.entities(None, head))
            write.drop_derived()
            assert list(write.entities(None, head)) == [] and list(old.entities(None, head)) == refs
            assert write.indexed() == BEFORE_ALL and write.fingerprint() == (BEFORE_ALL, fingerprint.EMPTY)
            assert list(write.shared(None)) == [] and not write.matching("a", None)
            for ref in refs:
                assert write.observations(ref.digest, BEFORE_ALL, head) == []
                assert kept_of(write, ref, head) is None
                assert old.observations(ref.digest, BEFORE_ALL, head) != []
            assert [entry.to_json() for entry in write.entries()] == before[0]["entries"]
            raise Crash
        assert _everything(engine) == before

    def test_a_rebuild_makes_everything_again(self, engine: Engine) -> None:
        """After a rebuild every answer, at every moment, is what it was, and so are the log and the next write."""
        ledger = told_on(engine)
        ledger.search("ana")
        moments = range(BEFORE_ALL, ledger.position + 1, 7)
        before = [spelled(answers(ledger.at(moment))) for moment in moments]
        whole, state = log_of(engine), ledger.fingerprint()
        everything = _everything(engine)
        rebuilt = ledger.rebuild()
        assert rebuilt.agreed and rebuilt.fingerprint == state
        assert [spelled(answers(ledger.at(moment))) for moment in moments] == before
        assert log_of(engine) == whole
        assert _everything(engine)[1] == everything[1] and _everything(engine)[2][1:] == everything[2][1:]
        _derived_is_true(engine)
        _next_write_works(engine, "after")
        assert ledger.rebuild().agreed

    def test_a_long_history_is_rebuilt_with_the_state_along_it(self, engine: Engine) -> None:
        """State is kept along the history again, about as often, and is what folding gives."""
        ledger = _long_history(engine)
        assert ledger.rebuild().agreed
        root = Ref("thing", "1")
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            found = {kept.position: kept for at in range(head + 1) if (kept := kept_of(view, root, at)) is not None}
            assert len(found) >= LONG // KEPT_EVERY
            for kept in found.values():
                rules = Reader(view, AsOf(kept.position), BUILTIN).rules(root.type)
                assert same_state(kept.state, fold_at(view, kept.state.members, rules, kept.position), rules)
        _derived_is_true(engine)

    @pytest.mark.parametrize("lasting", [False, True])
    def test_a_rebuild_finds_and_repairs_wrong_state(self, engine: Engine, lasting: bool) -> None:
        """State that disagrees with the log is named, made right, and the log is not touched."""
        ledger = _long_history(engine)
        told_on(engine, clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="story"))
        whole, state = log_of(engine), ledger.fingerprint()
        ref = Ref("contact", "Ana Rivera")
        with engine.transaction(ledger.tenant) as write:
            position = write.head().position
            reader = Reader(write, AsOf(position), BUILTIN)
            root = reader.group(ref)[0]
            right = reader.state(ref)
            write.keep([(Kept(position, right._replace(live=right.live + 1)), reader.rules(ref.type), lasting)])
        if lasting:  # the present state is right again, what was kept for the past is not
            ledger.store({"entity_type": "contact", "name": root.key, "city": "Lleida"})
            whole, state = log_of(engine), ledger.fingerprint()
        rebuilt = ledger.rebuild()
        assert rebuilt.repaired == (str(root),)
        assert log_of(engine) == whole
        assert rebuilt.fingerprint == ledger.fingerprint() == ledger.at("now").fingerprint() == state
        _derived_is_true(engine)
        assert ledger.rebuild().agreed

    # Verifying

    def test_rows_are_the_entries_as_stored(self, engine: Engine) -> None:
        """The rows of a log are its entries, with the leaves that the tree is made of, between any two positions."""
        ledger = _long_history(engine)
        with engine.view(ledger.tenant) as view:
            entries, leaves = list(view.entries()), view.leaves(view.head().size)
            rows = list(view.rows(BEFORE_ALL, len(entries) - 1))
            assert [row.entry() for row in rows] == entries
            assert [row.leaf for row in rows] == list(leaves) == [entry.leaf() for entry in entries]
            assert list(view.rows(4, 6)) == rows[5:7]
            assert list(view.rows(len(entries), len(entries) + 5)) == []
            assert view.audit().size == len(entries)
            assert view.audit(7).size == 7

    def test_receipts_are_listed(self, engine: Engine) -> None:
        """Every idempotency key is listed once, by agent and key, with what `receipt` says of it."""
        a, b = ledger_on(engine, agent="a"), ledger_on(engine, agent="b", clock=FixedClock(seed="b"))
        for ledger, key in ((b, "2"), (a, "3"), (b, "1")):
            ledger.store({"entity_type": "note", "id": key, "by": ledger.agent}, idempotency_key=key)
        ledger_on(engine, "other").store({"entity_type": "note", "id": "x"}, idempotency_key="x")
        with engine.view(a.tenant) as view:
            listed = list(view.receipts())
            assert [(agent, key) for agent, key, _ in listed] == [("a", "3"), ("b", "1"), ("b", "2")]
            assert all(view.receipt(agent, key) == receipt for agent, key, receipt in listed)

    def test_what_was_told_verifies(self, engine: Engine) -> None:
        """Nothing is found in a ledger that was told everything there is, before and after a rebuild."""
        ledger = _long_history(engine)
        told_on(engine, clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="story"))
        ledger.search("ana")
        for _ in range(2):
            found = ledger.verify(deep=True)
            assert found.sound, found.damage
            assert found.fingerprint == ledger.fingerprint()
            assert (found.entries, found.position) == (ledger.position + 1, ledger.position)
            with engine.view(ledger.tenant) as view:
                assert found.root == view.head().frontier.root().hex()
            ledger.rebuild()
        assert ledger_on(engine, "never-wrote").verify().sound

    @pytest.mark.parametrize("lasting", [False, True])
    def test_a_wrong_state_is_found(self, engine: Engine, lasting: bool) -> None:
        """State that disagrees with the log is named with its position and entity, and the log counts as sound."""
        ledger = _long_history(engine)
        ref = Ref("contact", "Ana Rivera")
        ledger.store({"entity_type": "contact", "name": ref.key, "city": "Vic"})
        with engine.transaction(ledger.tenant) as write:
            position = write.head().position
            reader = Reader(write, AsOf(position), BUILTIN)
            right = reader.state(ref)
            write.keep([(Kept(position, right._replace(live=right.live + 1)), reader.rules(ref.type), lasting)])
        if lasting:  # what is said next is folded into the wrong state
            ledger.store({"entity_type": "contact", "name": ref.key, "city": "Lleida"})
        found = ledger.verify()
        assert {(one.damage, one.entity) for one in found.damage} == {("state", str(ref))}
        assert (found.log_damaged, found.first) == (False, position)
        ledger.rebuild()
        assert ledger.verify().sound

    # Large collections

    def test_a_large_collection_reads_as_a_fold_at_every_position(self, engine: Engine) -> None:
        """However a large collection came to be, what is kept of it part by part is what folding everything gives."""
        ledger = _large_collections(engine)
        refs = [Ref("thing", key) for key in ("many", "more")]
        for again in (False, True):
            with engine.view(ledger.tenant) as view:
                head = view.head().position
                # Some of a long batch, and all of what comes after it.
                for position in (*range(0, head - 30, 7), *range(head - 30, head + 1)):
                    reader = Reader(view, AsOf(position), BUILTIN)
                    for ref in refs:
                        rules, members = reader.rules(ref.type), reader.group(ref)
                        folded = fold_at(view, members, rules, position)
                        assert same_state(reader.state(ref), folded, rules), (position, ref)
            found = ledger.verify(deep=True)
            assert found.sound, found.damage
            if not again:
                state = ledger.fingerprint(), ledger.fingerprint(provenance=True)
                assert ledger.rebuild().agreed
                assert (ledger.fingerprint(), ledger.fingerprint(provenance=True)) == state

    def test_kept_state_holds_no_parts_of_large_collections(self, engine: Engine) -> None:
        """State kept along the history of a large collection leaves its parts where they lie."""
        ledger = ledger_on(engine)
        ledger.register(THING)
        ref = Ref("thing", "many")
        for number in range(INSIDE_MAX + 5 * KEPT_EVERY):
            ledger.store({"entity_type": "thing", "id": "many", "tags": [f"tag {number}"]})
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            rules = Reader(view, AsOf(head), BUILTIN).rules("thing")
            lengths = set()
            for position in range(head - 3 * KEPT_EVERY, head + 1):
                kept = kept_of(view, ref, position)
                assert kept is not None
                assert kept.state.held["tags"].parts.rows is not None
                lengths.add(len(merge.pack(kept.state, rules, apart=True)))
            assert max(lengths) < 1_000

    def test_a_write_undone_leaves_no_parts(self, engine: Engine) -> None:
        """What a dry run would add to a large collection is not there afterwards."""
        ledger = _large_collections(engine)
        before, state = answers(ledger), indexes_of(engine, "t")
        report = ledger.store({"entity_type": "thing", "id": "many", "tags": ["not yet"]}, dry_run=True)
        (change,) = report.changes
        assert [(one.field, one.before, one.after, one.part) for one in change.fields] == [
            ("tags", [], ["not yet"], True)
        ]
        assert answers(ledger) == before
        assert indexes_of(engine, "t") == state
        assert ledger.verify().sound

    def test_a_wrong_part_of_a_collection_is_found(self, engine: Engine) -> None:
        """A part that is not what the log gives is named with its field and entity, and a rebuild makes it right."""
        ledger = _large_collections(engine)
        ref = Ref("thing", "many")
        ledger.store({"entity_type": "thing", "id": "many", "tags": ["the last"]})
        with engine.transaction(ledger.tenant) as write:
            position = write.head().position
            reader = Reader(write, AsOf(position), BUILTIN)
            right = reader.state(ref)
            held = right.held["tags"]
            key, other = form.order_bytes("the last"), held.parts[form.order_bytes("tag 3")]
            wrong = right._replace(held={**right.held, "tags": held.but(held.parts.put({key: other}))})
            write.keep([(Kept(position, wrong), reader.rules(ref.type), False)])
        found = ledger.verify()
        assert {(one.damage, one.entity) for one in found.damage} == {("element", str(ref))}
        assert (found.log_damaged, found.first) == (False, position)
        assert "of tags" in found.damage[0].problem
        assert ledger.rebuild().repaired == (str(ref),)
        assert ledger.verify().sound

    def test_a_wrong_fingerprint_is_found(self, engine: Engine) -> None:
        """A kept fingerprint with a leaf too many, too few or another is found, with the entity where there is one."""
        ledger = _long_history(engine)
        ledger.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Vic"})
        ledger.fingerprint()
        ref = Ref("contact", "Ana Rivera")
        with engine.view(ledger.tenant) as view:
            position, right = view.fingerprint()
        for wrong, entity in (
            (right.put(ref.digest, bytes(32)), str(ref)),
            (right.remove(ref.digest), str(ref)),
            (right.put(bytes(32), bytes(32)), None),
        ):
            with engine.transaction(ledger.tenant) as write:
                write.keep_fingerprint(position, wrong)
            assert [(one.damage, one.entity) for one in ledger.verify().damage] == [("fingerprint", entity)]

    def test_a_wrong_search_index_is_found_in_depth(self, engine: Engine) -> None:
        """Words of an entity that it does not have are found by a deep verification."""
        ledger = _long_history(engine)
        ledger.search("ana")
        with engine.transaction(ledger.tenant) as write:
            write.index(write.indexed(), {Ref("thing", "1"): {"nonsense": frozenset({"city"})}})
        assert ledger.verify().sound
        found = ledger.verify(deep=True)
        assert [(one.damage, one.entity) for one in found.damage] == [("search", "thing/1")]

    def test_a_wrong_shelf_is_found_in_depth(self, engine: Engine) -> None:
        """What lies on a shelf and does not belong there is found by a deep verification."""
        ledger = _long_history(engine)
        with engine.transaction(ledger.tenant) as write:
            write.shelve("mine", 3, [(2, b"x")])
        assert ledger.verify().sound
        assert [one.damage for one in ledger.verify(deep=True).damage] == ["surplus"]

    def test_identifying_values_are_compared(self, engine: Engine) -> None:
        """An identifying value noted of an entity that never had it is found."""
        ledger = _long_history(engine)
        with engine.transaction(ledger.tenant) as write:
            write.share([(Ref("thing", "1"), [("email", "x@example.com")])])
        assert [one.damage for one in ledger.verify().damage] == ["surplus"]


def _by_bytes(ref: Ref) -> tuple[bytes, bytes]:
    return ref.type.encode(), ref.key.encode()


def _everything(engine: Engine, ledger: Ledger | None = None) -> Any:
    """Return all that can be read of tenant `t`, from the log, the ledger and the indexes."""
    keys = [("a", "k"), ("a", "k2"), ("a", "lleida"), ("b", "k")]
    past = (ledger or ledger_on(engine)).at("now")
    return log_of(engine), spelled(answers(past)), indexes_of(engine, "t", keys, past._policies)


def _next_write_works(engine: Engine, key: str) -> None:
    ledger = ledger_on(engine, clock=FixedClock("2026-03-01T00:00:00.000000Z", seed="next"))
    size = position_of(engine) + 1
    report = ledger.store({"entity_type": "note", "id": "next", "x": 1}, idempotency_key=key)
    assert report.positions == (size,) and not report.repeated
    assert ledger.show("note/next").fields["x"] == 1
    assert ledger.fingerprint() == ledger.at("now").fingerprint()


def _derived_is_true(engine: Engine) -> None:
    """Assert that all kept merge state of tenant `t` is what its observations fold to."""
    ledger = ledger_on(engine)
    assert ledger.fingerprint() == ledger.at("now").fingerprint()
    policies = registry(())
    with engine.view(ledger.tenant) as view:
        head = view.head().position
        for ref in view.entities(None, head):
            kept = kept_of(view, ref, head)
            if kept is not None:
                rules = Reader(view, AsOf(kept.position), policies).rules(ref.type)
                assert same_state(kept.state, fold_at(view, kept.state.members, rules, kept.position), rules)


def _at_once(work: Callable[[int], None]) -> None:
    """Run the work in threads that start together; raise what any of them raised."""
    barrier = threading.Barrier(THREADS)
    failures: list[BaseException] = []

    def run(thread: int) -> None:
        try:
            barrier.wait()
            work(thread)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def _contend(engine: Engine, turn: int, version: int | None) -> tuple[list[Report], list[Outdated]]:
    """Let all threads write one entity on the condition of one version; return who won and who lost."""
    won: list[Report] = []
    lost: list[Outdated] = []

    def write(thread: int) -> None:
        mine = ledger_on(engine, agent=f"agent-{thread}", clock=FixedClock(seed=str(thread)))
        record = {"entity_type": "lock", "id": "1", "holder": thread, "turn": turn}
        try:
            won.append(mine.store(record, if_version={"lock/1": version}))
        except Outdated as error:
            lost.append(error)

    _at_once(write)
    return won, lost


def _outcome(ask: Callable[[Any], Any], what: Any) -> Any:
    """Return what came of a call, refusals included, as plain JSON."""
    try:
        found = ask(what)
    except WoodratError as error:
        return error.to_json()
    return found.to_json() if isinstance(found, Report) else str(found) if isinstance(found, Past) else found


def _large_collections(engine: Engine) -> Ledger:
    """Return a ledger with collections that grew large in every way: one by one, at once, joined, taken back."""
    ledger = ledger_on(engine)
    ledger.register(THING)
    many: dict[str, Any] = {"entity_type": "thing", "id": "many"}
    first = ledger.store({**many, "tags": [f"tag {number}" for number in range(INSIDE_MAX - 2)], "log": [0]})
    for number in range(6):  # across the limit, one by one
        ledger.store({**many, "tags": [number, f"tag {number}"], "log": [number, "x"]})
    ledger.store([{**many, "tags": [{"n": number}], "log": [number]} for number in range(INSIDE_MAX + 4)])
    ledger.store({**many, "tags": ["back"], "$": {"remove": {"tags": ["tag 1", 2]}, "observed_at": LATE}})
    ledger.store({**many, "tags": ["late", "tag 1"], "$": {"observed_at": EARLY}})
    ledger.correct("thing/many", {"tags": ["tag 5"]}, reason="the list was wrong")
    ledger.store({**many, "tags": ["tag 6", "more"]})
    ledger.correct("thing/many", {"log": ["instead"]}, replaces=[first.observations[0]], reason="mistyped")
    ledger.store([{"entity_type": "thing", "id": "more", "tags": [f"more {n}" for n in range(INSIDE_MAX + 9)]}])
    ledger.merge("thing/many", "thing/more")
    ledger.store([{**many, "tags": ["of the group"]}, {"entity_type": "thing", "id": "more", "tags": ["too"]}])
    taken_back = ledger.store({**many, "tags": [f"gone {number}" for number in range(9)]})
    ledger.retract(taken_back.observations[0], reason="never was")
    ledger.split("thing/many")
    ledger.store({"entity_type": "thing", "id": "more", "tags": ["apart"]})
    ledger.delete("thing/more")
    ledger.restore("thing/more")
    ledger.register({**THING, "properties": {**THING["properties"], "tags": {"type": "array"}}})
    ledger.store({**many, "tags": ["a plain list"], "log": ["as before"]})
    ledger.register({**THING, "description": "as it was"})
    ledger.store({**many, "tags": ["a union again"], "log": ["still"]})
    return ledger


def _long_history(engine: Engine) -> Ledger:
    """Say more than `LONG` things of thing/1 in every way a surface knows, by a fixed chance; return the ledger."""
    chance = random.Random(1)
    clock = FixedClock()
    ledgers = [ledger_on(engine, agent=agent, clock=clock) for agent in "ab"]
    ledgers[0].register(THING)
    said: list[str] = []
    originals: list[str] = []
    for number in range(LONG + 40):
        ledger = chance.choice(ledgers)
        when = chance.choice((None, None, EARLY, LATE, LATEST))
        deed = chance.choice(("store",) * 6 + ("correct", "correct", "stand in", "retract", "mark", "bulk"))
        try:
            if deed == "correct":
                field: tuple[str, Any] = chance.choice(
                    (
                        ("city", f"c{number}"),
                        ("tags", ["x", number]),
                        ("rank", number),
                        ("born", None),
                        ("best", -number),
                    )
                )
                report = ledger.correct("thing/1", dict([field]), observed_at=when, priority=chance.randint(-1, 1))
            elif deed == "stand in" and originals:
                field = chance.choice((("total", number), ("log", [number, number])))
                report = ledger.correct("thing/1", dict([field]), replaces=chance.choice(originals), observed_at=when)
            elif deed == "retract" and said:
                report = ledger.retract(chance.sample(said, min(2, len(said))), observed_at=when)
            elif deed == "mark":
                deleted = ledger.show("thing/1").deleted
                report = ledger.restore("thing/1") if deleted else ledger.delete("thing/1", observed_at=when)
            elif deed == "bulk":
                record = {"entity_type": "thing", "id": "1"}
                report = ledger.store([{**record, "total": number + n, "log": [n]} for n in range(3)], observed_at=when)
                originals.extend(report.observations)
            else:
                record = {"entity_type": "thing", "id": "1"}
                some = {
                    "city": f"s{number % 7}",
                    "rank": number % 5,
                    "born": number,
                    "best": chance.choice((number, str(number), [number])),
                    "tags": [number % 9, str(number % 3)],
                    "total": chance.choice((number, f"{number}.5")),
                    "log": [f"l{number}"],
                    "$": {"remove": {"tags": [chance.randint(0, 8)]}},
                }
                chosen = {name: some[name] for name in chance.sample(sorted(some), chance.randint(1, 4))}
                report = ledger.store({**record, **chosen}, observed_at=when, priority=chance.randint(-1, 1))
                if {"total", "log"} <= set(chosen):
                    originals.extend(report.observations)
        except (NotFound, Refused):
            continue
        said.extend(report.observations)
        if number == LONG // 2:
            ledgers[0].register(THING_2)
    return ledgers[0]
