"""Ledgers: ledgers on an engine that is tested, a story that uses every verb, and all that a ledger can say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from woodrat import Ledger, NotFound, Past, Report
from woodrat.canon import form
from woodrat.canon.ids import Ref, TenantId
from woodrat.clock import Clock
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL, Kept
from woodrat.engines.view import View
from woodrat.ledger import entry_index, identifying_values
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN, Policy, fold, snapshot
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state.asof import AsOf
from woodrat.state.meaning import Meaning
from woodrat.state.observation import ASSERT, RETRACT, Observation, say
from woodrat.state.schema import Schema
from woodrat.testing.clock import FixedClock
from woodrat.testing.generators import MOMENTS

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
"""Another version: one field merges otherwise, another accepts fewer values."""


def ledger_on(
    engine: Engine,
    tenant: str = "t",
    agent: str = "a",
    clock: Clock | None = None,
    policies: Iterable[Policy] = (),
    strict: bool | str = False,
) -> Ledger:
    """Return a ledger on an engine, with a fixed clock by default."""
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
    stored = tuple(past.observations())
    refs = dict.fromkeys(item.observation.entity for item in stored)
    return {
        "position": past.position,
        "fingerprint": past.fingerprint(),
        "provenance": past.fingerprint(provenance=True),
        "values": {ref: values.to_json() for ref, values in past.values().items()},
        "conflicts": [conflict.to_json() for conflict in past.conflicts()],
        "arrivals": [conflict.to_json() for conflict in past.conflicts(arrival=True)],
        "observations": [[item.position, item.observation.to_json()] for item in stored],
        "timeline": [event.to_json() for event in past.timeline()],
        "schemas": [found.to_json() for found in past.schemas.list()],
        "deliveries": [delivery.to_json() for delivery in past.sources.list()],
        "interpretations": [reading.to_json() for reading in past.interpretations.list()],
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
    """Return a tenant's whole log, and its claims, as plain JSON."""
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
    """Return an engine's data beside a tenant's log: merge state, identifying values, receipts of these keys."""
    with engine.view(TenantId(tenant)) as view:
        head = view.head().position
        refs = view.entities(None, head)
        # Rules change at schemas; between two of them, one query per moment is enough.
        changes = [entry.position for entry in view.entries(kinds={"schema"})]
        kept = {}
        for first, last in zip([BEFORE_ALL, *changes], [*(change - 1 for change in changes), head], strict=True):
            reader = Reader(view, AsOf(last), policies)
            for ref in refs:
                through = last
                while through >= first and (found := view.kept(ref, through, reader.rules(ref.type))):
                    kept[ref, found.position] = Kept(found.position, fold.in_memory(found.state))
                    through = found.position - 1
        names = {
            name for ref in refs for s in view.observations(ref.digest, -1, head) for name in s.observation.replaces
        }
        return (
            kept,
            shared_values(view),
            [view.receipt(agent, key) for agent, key in keys],
            {name: list(view.namers(name, head)) for name in names},
            {ref: list(entry_index.relations(view, ref.digest, None, head)) for ref in refs},
        )


def shared_values(view: View, type: str | None = None) -> list[tuple[str, str, str, list[Ref]]]:
    """Return every (type, rule, value) that several entities share, sorted, with the entities by key."""
    found: dict[tuple[str, str, str], list[Ref]] = {}
    for row, _ in view.scan(identifying_values.SHARING):
        entity_type, rule, value, key = (name.decode() for name in row[:-1].split(b"\0"))
        if type in (None, entity_type):
            found.setdefault((entity_type, rule, value), []).append(Ref(entity_type, key))
    return [(*names, refs) for names, refs in found.items() if len(refs) > 1]


def bodies(said: Iterable[Meaning]) -> list[tuple[str, bytes]]:
    """Return observations and schemas as `Ledger.admit` takes them."""
    told = [one for one in said if isinstance(one, Observation | Schema)]
    return [("schema" if isinstance(one, Schema) else "observation", one.body) for one in told]


def position_of(engine: Engine, tenant: str = "t") -> int:
    """Return the last position of a tenant's log."""
    with engine.view(TenantId(tenant)) as view:
        return view.head().position


def kept_of(view: View, ref: Ref, through: int, policies: Mapping[str, Policy] = BUILTIN) -> Kept | None:
    """Return the stored merge state of a fold under the rules in force at a position."""
    return view.kept(ref, through, Reader(view, AsOf(through), policies).rules(ref.type))


def fold_at(view: View, members: Sequence[Ref], rules: Rules, through: int) -> MergeState:
    """Return the merge state of these entities from their observations alone."""
    found = (s.observation for ref in members for s in view.observations(ref.digest, BEFORE_ALL, through))
    return fold.fold(found, members, rules)


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

    yield a.schemas.register(THING)
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

    letter = a.sources.add(b"Ana Rivera, Tarragona\n", name="letter.txt")
    yield None
    b.sources.add(b"Ana Rivera, Tarragona\n", name="copy.txt")
    yield None
    with b.interpretations.start(letter, model="m-1", prompt="Who?", parameters={"temperature": 0}) as reading:
        yield None
        yield reading.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Tarragona"}, observed_at=LATEST)
        reading.usage = {"tokens": 12}
    yield None
    yield a.tag("before")
    yield a.schemas.register(THING_2)
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
