"""The laws, one test each, on whole ledgers: through `admit`, which takes anything, and through the verbs."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.laws.records import regular

from woodrat import Ledger, NotFound, Past, Refused
from woodrat.canon import ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import matches, refold, spacing, transitions
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN, diff, fold
from woodrat.merge.diff import Values
from woodrat.state import schema
from woodrat.state.asof import AsOf
from woodrat.state.observation import ASSERT, STATING, Observation, say
from woodrat.testing.clock import FixedClock, JumpingClock
from woodrat.testing.crash import VERBS, Crash, CrashingEngine
from woodrat.testing.generators import MOMENTS, TROUBLE
from woodrat.testing.histories import Telling, batches, tellings
from woodrat.testing.ledgers import (
    answers,
    bodies,
    fold_at,
    indexes_of,
    kept_of,
    ledger_on,
    log_of,
    position_of,
    same_state,
    shared_values,
    spelled,
)

# The long profile tries thousands of examples; no single example takes long.
pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]


def SqliteInMemory() -> Engine:
    """Return an engine on a file of its own, in memory where the machine has a place for that: laws need no disk."""
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = tempfile.TemporaryDirectory(dir=place)
    engine = SqliteEngine(Path(folder.name) / "laws.db")
    weakref.finalize(engine, folder.cleanup)
    return engine


MAKERS: Final[list[Callable[[], Engine]]] = [InMemoryEngine, SqliteInMemory]
"""What makes an engine."""
ENGINES: Final = st.sampled_from(MAKERS)
"""Draws what makes an engine: every law is tried on all of them, and no history on more than one."""
on_every_engine = pytest.mark.parametrize("make_engine", MAKERS, ids=lambda make: make.__name__)


def admitted(engine: Engine, writes: Sequence[Telling], tenant: str = "t", seed: str = "woodrat") -> Ledger:
    """Return a ledger that took in these writes."""
    ledger = ledger_on(engine, tenant, clock=FixedClock(seed=seed))
    for write in writes:
        ledger.admit(bodies(write.said))
    return ledger


def spelled_values(past: Past) -> bytes:
    """Return all values of a ledger as bytes."""
    return spelled(_json(past.values()))


def _json(values: dict[str, Values]) -> dict[str, Any]:
    return {ref: found.to_json() for ref, found in values.items()}


# 1. Order


@given(make_engine=ENGINES, data=st.data())
def test_law_1_order(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """A set of observations and schemas has one state; order of arrival, batching and repetition do not show in it."""
    telling = data.draw(tellings())
    one, two = (admitted(make_engine(), data.draw(batches(telling))) for _ in range(2))
    assert one.fingerprint() == two.fingerprint()
    assert one.fingerprint(provenance=True) == two.fingerprint(provenance=True)
    assert spelled_values(one) == spelled_values(two)
    whole = admitted(make_engine(), [telling])
    assert whole.fingerprint() == one.at("now").fingerprint()
    for said in one.observations():
        ref = said.observation.entity
        left, right = (_believed(ledger, ref) for ledger in (one, whole))
        assert left == right


def _believed(past: Past, ref: Ref) -> bytes | None:
    """Return all that is said of an entity but where it stands in the log."""
    try:
        shown = past.show(ref).to_json()
    except NotFound:
        return None
    return spelled(
        {
            "show": {key: value for key, value in shown.items() if key not in ("position", "version")},
            "blame": {name: [verdict.to_json() for verdict in found] for name, found in past.blame(ref).items()},
            "related": [link.to_json() for link in past.related(ref, depth=2)],
        }
    )


@on_every_engine
def test_law_1_order_of_a_schema_and_what_it_identifies(make_engine: Callable[[], Engine]) -> None:
    """Entities that share an identifying value are listed, whether the schema that says so came first or last."""
    document = {"title": "thing", "x-woodrat-identity": [["code"]]}
    found = schema.parse_schema(document, policies=lambda name: BUILTIN[str(name)].traits)
    said: list[Observation | schema.Schema] = [
        say(Ref("thing", key), ASSERT, agent="ada", observed_at=MOMENTS[0], fields={"code": "7"}) for key in ("1", "2")
    ]
    listed = []
    for order in ([found, *said], [*said, found], [said[1], found, said[0]]):
        engine = make_engine()
        ledger = admitted(engine, [Telling((one,)) for one in order])
        with engine.view(ledger.tenant) as view:
            reader = Reader(view, AsOf(view.head().position), BUILTIN)
            listed.append(dict(matches._sharing(reader, "thing", [("code", "7")])))
        while refold.go_on(engine, ledger.tenant, BUILTIN):
            pass
        with engine.view(ledger.tenant) as view:
            assert shared_values(view) == [("thing", "code", "7", [Ref("thing", "1"), Ref("thing", "2")])]
    assert listed == [{("code", "7"): [Ref("thing", "1"), Ref("thing", "2")]}] * 3


# 2. Increment


@given(make_engine=ENGINES, data=st.data())
def test_law_2_increment(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """What is kept after each write, and what is read from it at any position, is what folding everything gives."""
    engine = make_engine()
    ledger = ledger_on(engine)
    policies = registry(())
    for write in data.draw(batches(data.draw(tellings()))):
        before = ledger.position
        ledger.admit(bodies(write.said))
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            reader = Reader(view, AsOf(head), policies)
            waiting, touched = {one.type for one in refold.waiting(view)}, set(view.touched(before, head))
            for ref in {s.entity for s in write.said if not hasattr(s, "document")}:
                members = reader.group(ref)
                kept = kept_of(view, members[0], head)
                if kept is None:  # nothing new was said of it, and the states of its type wait to be kept anew
                    assert ref not in touched
                    assert ref.type in waiting
                    continue
                rules = reader.rules(ref.type)
                assert same_state(kept.state, fold_at(view, members, rules, kept.position), rules)
    with engine.view(ledger.tenant) as view:
        head = view.head().position
        for position in range(head + 1):
            reader = Reader(view, AsOf(position), policies)
            for ref in view.entities(None, position):
                members, rules = reader.group(ref), reader.rules(ref.type)
                assert same_state(reader.state(ref), fold_at(view, members, rules, position), rules)


@given(data=st.data())
def test_law_2_looking_back(data: st.DataObject) -> None:
    """What is read of an entity that is spoken of regularly, on both clocks, is a fold of what counts, to the byte."""
    engine = SqliteInMemory()
    ledger = ledger_on(engine)
    policies = registry(())
    kinds = ("latest", "max", "min", "first", "highest_priority")
    ledger.schemas.register({"title": "thing", "properties": {kind: {"x-woodrat-merge": kind} for kind in kinds}})
    ref = Ref("thing", "one")
    said = data.draw(regular(ref, kinds))
    some = data.draw(st.integers(1, len(said)))
    for part in (said[:some], said[some:]):
        if part:
            ledger.admit(bodies(part))
        ledger.store({"entity_type": "other", "id": str(len(part))})
    moments = sorted({one.valid_from for one in said})
    with engine.view(ledger.tenant) as view:
        head = view.head().position
        asked: list[tuple[int, str | None]] = [(position, None) for position in range(head + 1)]
        asked += [(head, moment) for moment in moments]
        asked += [(data.draw(st.integers(0, head)), data.draw(st.sampled_from(moments)))]
        for position, effective in asked:
            reader = Reader(view, AsOf(position, effective), policies)
            rules = reader.rules(ref.type)
            folded = fold.fold((s.observation for s in reader.stored([ref])), (ref,), rules)
            assert same_state(reader.state(ref), folded, rules), f"by {effective} at {position}"


# 3. History


@given(make_engine=ENGINES, data=st.data())
def test_law_3_history(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """No later write changes the answer of an earlier as-of, by position or by time, on either clock."""
    engine = make_engine()
    ledger = ledger_on(engine)
    effective = data.draw(st.sampled_from((None, "2026-01-05T09:00:00.000001Z")))
    recorded: list[tuple[int, str, bytes]] = []
    for write in data.draw(batches(data.draw(tellings(size_max=4)))):
        ledger.admit(bodies(write.said))
        with engine.view(ledger.tenant) as view:
            head = view.head()
        assert head.recorded_at is not None
        recorded.append((head.position, head.recorded_at, spelled(answers(ledger.at(valid_at=effective)))))
    for position, time, answered in recorded:
        assert ledger.at(time).position == position
        assert spelled(answers(ledger.at(position, valid_at=effective))) == answered
    for position, _, answered in recorded[-1:]:
        assert spelled(answers(ledger.at(position).at("now", valid_at=effective))) == answered


# 4. Whole


@given(make_engine=ENGINES, data=st.data())
def test_law_4_whole(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """A write that dies anywhere leaves nothing, and the writes after it end in the state of a ledger without it."""
    inner = make_engine()
    engine = CrashingEngine(inner)
    ledger = ledger_on(engine)
    writes = data.draw(batches(data.draw(tellings(size_max=4))))
    for write in writes:
        if data.draw(st.booleans()):
            verb, passing = data.draw(st.sampled_from(VERBS)), data.draw(st.integers(0, 2))
            asks = data.draw(st.booleans())
            while asks and refold.go_on(inner, ledger.tenant, BUILTIN):
                pass  # a fingerprint keeps anew what waits, and that stays when the write after it dies
            before = spelled(log_of(inner)), spelled(answers(ledger.at("now"))), indexes_of(inner, "t")
            engine.arm(verb, passing, after=data.draw(st.booleans()))
            try:
                if asks:
                    ledger.fingerprint()
                ledger.admit(bodies(write.said))
            except Crash:
                event(f"crashed at {verb}")
                after = spelled(log_of(inner)), spelled(answers(ledger.at("now"))), indexes_of(inner, "t")
                assert after == before
            engine.disarm()
        ledger.admit(bodies(write.said))
    smooth = admitted(make_engine(), writes)
    assert position_of(inner) == smooth.position
    assert ledger.fingerprint() == smooth.fingerprint()
    assert ledger.fingerprint(provenance=True) == smooth.fingerprint(provenance=True)


@on_every_engine
@pytest.mark.parametrize(
    ("kind", "body"),
    [
        pytest.param("tag", b"{}", id="another kind"),
        pytest.param("observation", b"garbage", id="observation: not JSON"),
        pytest.param("observation", b"[]", id="observation: no object"),
        pytest.param("observation", b'{"agent": "ada"}', id="observation: parts missing"),
        pytest.param("schema", b"garbage", id="schema: not JSON"),
        pytest.param("schema", b"[]", id="schema: no object"),
        pytest.param("schema", b'{"more":1,"schema":{"x-woodrat-version":1},"type":"x"}', id="schema: one part more"),
        pytest.param("schema", b'{"type":"x","schema":{"x-woodrat-version":1}}', id="schema: another spelling"),
        pytest.param("schema", b'{"schema":{"x-woodrat-version":1},"type":"Not A Type"}', id="schema: no type"),
        pytest.param(
            "schema",
            b'{"schema":{"properties":{"a":{"type":"bogus"}},"x-woodrat-version":1},"type":"x"}',
            id="schema: no JSON Schema",
        ),
        pytest.param(
            "schema",
            b'{"schema":{"properties":{"a":{"pattern":"("}},"x-woodrat-version":1},"type":"x"}',
            id="schema: no pattern",
        ),
    ],
)
def test_law_4_whole_at_the_door(make_engine: Callable[[], Engine], kind: str, body: bytes) -> None:
    """A body from elsewhere that no ledger could have written is refused, and with it all that it came with."""
    engine = make_engine()
    ledger = ledger_on(engine)
    good = say(Ref("memo", "1"), ASSERT, agent="ada", observed_at=MOMENTS[0], fields={"x": 1})
    with pytest.raises(Refused):
        ledger.admit([("observation", good.body), (kind, body)])
    assert position_of(engine) == BEFORE_ALL


# 5. Once


@given(make_engine=ENGINES, data=st.data())
def test_law_5_once(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """What is said again is stored once, in whatever pieces it comes; the answer is the first report and says so."""
    engine = make_engine()
    ledger = ledger_on(engine)
    telling = data.draw(tellings())
    first = [(write, ledger.admit(bodies(write.said))) for write in data.draw(batches(telling))]
    before = spelled(log_of(engine)), spelled(answers(ledger)), indexes_of(engine, "t")
    for write, report in first:
        again = ledger.admit(bodies(write.said))
        assert set(again.known) == set(again.observations) == set(report.observations)
        if report.positions and not report.known and not any(hasattr(one, "document") for one in write.said):
            assert again.repeated
            assert again.but(known=(), hints=report.hints) == report.again()
    for write in data.draw(batches(telling)):
        again = ledger.admit(bodies(write.said))
        assert set(again.known) == set(again.observations)
    assert (spelled(log_of(engine)), spelled(answers(ledger)), indexes_of(engine, "t")) == before


_RECORDS: Final[st.SearchStrategy[list[dict[str, Any]]]] = st.lists(
    st.fixed_dictionaries(
        {"entity_type": st.sampled_from(("memo", "task")), "title": st.sampled_from("ab")},
        optional={"x": st.sampled_from((1, True, "1", 1.5, None, [], {}, "é")), "y": st.integers(0, 2)},
    ),
    min_size=1,
    max_size=3,
)


@given(
    make_engine=ENGINES,
    calls=st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(("k", "l", "m")), st.sampled_from(("t", "u")), _RECORDS),
        min_size=1,
        max_size=8,
    ),
)
def test_law_5_once_by_key(
    make_engine: Callable[[], Engine], calls: list[tuple[str, str, str, list[dict[str, Json]]]]
) -> None:
    """A key answers its first request again and refuses any other; each agent of each tenant has its own keys."""
    engine = make_engine()
    seen: dict[tuple[str, str, str], tuple[bytes, Any]] = {}
    for agent, key, tenant, records in calls:
        ledger = ledger_on(engine, tenant, agent)
        size = position_of(engine, tenant)
        request = spelled(records)
        known = seen.get((tenant, agent, key))
        if known is None:
            report = ledger.store(records, idempotency_key=key)
            assert not report.repeated
            seen[tenant, agent, key] = request, report
        elif known[0] == request:
            assert ledger.store(records, idempotency_key=key) == known[1].again()
            assert position_of(engine, tenant) == size
        else:
            with pytest.raises(Refused):
                ledger.store(records, idempotency_key=key)
            assert position_of(engine, tenant) == size


# 6. Provenance


@given(make_engine=ENGINES, data=st.data())
def test_law_6_provenance(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """Every value names an observation that leads to an agent; winners make the value, and every claim is listed."""
    ledger = admitted(make_engine(), data.draw(batches(data.draw(tellings()))))
    for ref in dict.fromkeys(said.observation.entity for said in ledger.observations()):
        try:
            shown = ledger.show(ref)
        except NotFound:
            continue
        said = {stored.observation.id: stored.observation for stored in ledger.observations(ref)}
        verdicts = ledger.blame(ref)
        for name, origin in shown.blame.items():
            found = said[origin.observation]
            assert origin.agent == found.agent != ""
            assert (origin.observed_at, origin.priority) == (found.observed_at, found.priority)
            assert name in found.stated
            # These show the latest claim, which need not count.
            if origin.policy not in (
                "sum",
                "union",
                "by_key:name",
            ):  # those show the latest claim, which need not count
                assert any(v.observation == origin.observation and v.wins for v in verdicts[name])
        assert set(shown.fields) == set(shown.blame)
        for name, listed in verdicts.items():
            claims = {id for id, o in said.items() if o.op in STATING and name in o.stated}
            assert [v.observation for v in listed] == list(dict.fromkeys(v.observation for v in listed))
            assert {v.observation for v in listed} == claims
            assert all(v.reason and v.agent == said[v.observation].agent for v in listed)
            winners = [v for v in listed if v.wins]
            assert listed[: len(winners)] == tuple(winners), "those that take part come first"
            if name in shown.fields:
                assert _made_of(shown.fields[name], shown.blame[name].policy, winners)
            else:
                assert not winners


def _made_of(value: Json, policy: str, winners: Sequence[Any]) -> bool:
    """Return whether a value is what these claims make under a policy."""
    if policy == "union":
        assert isinstance(value, list)
        put = {spelled(element) for winner in winners for element in (winner.value or [])}
        return {spelled(element) for element in value} <= put
    if policy == "by_key:name":
        stated = {spelled(part) for winner in winners for part in _members(winner.value or [])}
        return {spelled(part) for part in _members(value)} <= stated
    if policy == "append":
        return sorted(spelled(e) for w in winners for e in w.value) == sorted(map(spelled, _list(value)))
    if policy == "sum":
        return _cents(value) == sum(_cents(winner.value) for winner in winners)
    return len(winners) == 1 and spelled(winners[0].value) == spelled(value)


def _members(value: Json) -> list[Json]:
    """Return the members of all objects of a collection, each with the text that names its object."""
    objects = cast("list[dict[str, Json]]", _list(value))
    return [[found["name"], name, part] for found in objects for name, part in found.items()]


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def _cents(value: Json) -> int:
    """Return an integer or decimal text as a whole number of the smallest unit that tests use."""
    whole, _, part = str(value).partition(".")
    return int(whole + part.ljust(40, "0"))


# 7. Sticking


CLOCKS: Final = ("2026-01-01T00:00:00.000000Z", "2024-11-27T00:00:00.000000Z", "2027-02-05T00:00:00.000000Z")
"""What the writers' clocks say: some 400 days apart."""
STATED: Final = (None, None, "2023-01-01T00:00:00Z", "2024-01-01T00:00:00Z", "2024-06-01T00:00:00Z")
PLAIN: Final = {"a": "latest", "b": "highest_priority", "c": "first", "d": "max", "e": "min"}


@dataclass(slots=True)
class Book:
    """What a reader with a long memory expects of one entity: corrections and retractions by their definition."""

    corrections: list[tuple[str, dict[str, Json], str, int, frozenset[str]]] = field(default_factory=list)
    """Each correction: its id, what it states, when, at which priority, and what it replaces."""
    retractions: dict[str, set[str]] = field(default_factory=dict)
    """What each retraction names."""

    def live(self, id: str) -> bool:
        """Return whether no live retraction names an observation."""
        return not any(id in named and self.live(by) for by, named in self.retractions.items())

    def replaced(self, id: str, name: str) -> bool:
        """Return whether one that states the field and names it is live, or is itself replaced."""
        return any(
            id in named and name in fields and (self.live(by) or self.replaced(by, name))
            for by, fields, _, _, named in self.corrections
        )

    def standing(self, name: str) -> list[tuple[str, int, Json]]:
        """Return time, priority and value of the corrections that stand on a field."""
        return [
            (when, priority, fields[name])
            for id, fields, when, priority, _ in self.corrections
            if name in fields and self.live(id) and not self.replaced(id, name)
        ]


@given(make_engine=ENGINES, data=st.data())
def test_law_7_sticking(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """A correction holds under every policy, whatever the clocks say, until it is corrected or withdrawn."""
    engine = make_engine()
    ledgers = _disagreeing(engine)
    properties = {name: {"x-woodrat-merge": policy} for name, policy in PLAIN.items()}
    ledgers[0].schemas.register({"title": "thing", "properties": properties})
    ledgers[0].store({"entity_type": "thing", "id": "1", **dict.fromkeys(PLAIN, 0)})
    book = Book()
    said: list[str] = []
    for _ in range(data.draw(st.integers(1, 12))):
        ledger = data.draw(st.sampled_from(ledgers))
        deed = data.draw(st.sampled_from(("store", "correct", "correct", "retract")))
        when, priority = data.draw(st.sampled_from(STATED)), data.draw(st.integers(-1, 1))
        names = data.draw(st.sets(st.sampled_from(sorted(PLAIN)), min_size=1, max_size=2))
        fields: dict[str, Json] = {name: data.draw(st.integers(-3, 3)) for name in sorted(names)}
        if deed == "store":
            ledger.store({"entity_type": "thing", "id": "1", **fields}, observed_at=when, priority=priority)
        elif deed == "correct":
            before = len(list(ledger.observations("thing/1")))
            report = ledger.correct("thing/1", fields, observed_at=when, priority=priority)
            for stored in ledger.observations("thing/1").items[before:]:
                o = stored.observation
                named = frozenset(ids.id_of("observation", digest) for digest in o.replaces)
                book.corrections.append((o.id, dict(o.fields), o.observed_at, o.priority, named))
                said.append(o.id)
            shown = ledger.show("thing/1").fields
            # With the same stated time it can be the very fact that was withdrawn; that stays withdrawn (law 5).
            assert report.known or all(shown[name] == value for name, value in fields.items()), "it holds at once"
        elif said:
            target = data.draw(st.sampled_from(said))
            report = ledger.retract(target, observed_at=when)
            book.retractions.setdefault(report.observations[0], set()).add(target)
            said.extend(report.observations)
        shown = ledger.show("thing/1").fields
        for name in PLAIN:
            standing = book.standing(name)
            if standing:
                assert shown[name] == max(standing)[2]


@given(make_engine=ENGINES, data=st.data())
def test_law_7_sticking_in_collections(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """Under union a correction holds for each element it speaks of, under sum and append for the claim it names."""
    engine = make_engine()
    ledgers = _disagreeing(engine)
    properties = {"tags": "union", "total": "sum", "log": "append"}
    ledgers[0].schemas.register(
        {"title": "thing", "properties": {name: {"x-woodrat-merge": policy} for name, policy in properties.items()}}
    )
    terms: dict[str, tuple[Observation, int]] = {}
    elements: dict[int, bool] = {}
    small = st.integers(0, 5)
    for number in range(data.draw(st.integers(1, 12))):
        ledger, when = data.draw(st.sampled_from(ledgers)), data.draw(st.sampled_from(STATED))
        deed = data.draw(st.sampled_from(("store", "stand in", "set"))) if number else "store"
        if deed == "store":
            some = data.draw(st.lists(small, max_size=3))
            record = {"entity_type": "thing", "id": "1", "tags": some, "total": number, "log": [number]}
            gone: dict[str, Any] = {"$": {"remove": {"tags": data.draw(st.lists(small, min_size=1, max_size=2))}}}
            report = ledger.store({**record, **gone} if data.draw(st.booleans()) else record, observed_at=when)
            terms[report.observations[0]] = _said(ledger, report.observations[0]), number
        elif deed == "stand in":
            original = data.draw(st.sampled_from(sorted(terms)))
            value = number + 100
            ledger.correct("thing/1", {"total": value, "log": [value, value]}, replaces=original, observed_at=when)
            terms[original] = terms[original][0], value
        else:
            wanted = data.draw(st.sets(small, max_size=3))
            seen: Any = ledger.show("thing/1").fields["tags"]
            if not wanted and not seen:
                continue
            ledger.correct("thing/1", {"tags": sorted(wanted)}, observed_at=when)
            elements.update({**dict.fromkeys(seen, False), **dict.fromkeys(wanted, True)})
        shown = ledger.show("thing/1").fields
        assert shown["total"] == sum(value for _, value in terms.values())
        placed = [value for _, value in sorted(terms.values(), key=lambda term: _place(term[0]))]
        assert shown["log"] == [one for value in placed for one in ([value] if value < 100 else [value, value])]
        assert all((element in _list(shown["tags"])) == present for element, present in elements.items())


def _place(original: Observation) -> tuple[str, Any, bytes]:
    return original.observed_at, original.fields["log"], original.digest


def _said(ledger: Ledger, id: str) -> Observation:
    return next(stored.observation for stored in ledger.observations("thing/1") if stored.observation.id == id)


def _disagreeing(engine: Engine) -> list[Ledger]:
    """Return ledgers of writers whose clocks are far apart."""
    return [
        ledger_on(engine, agent=f"agent-{number}", clock=FixedClock(start, seed=str(number)))
        for number, start in enumerate(CLOCKS)
    ]


@given(
    make_engine=ENGINES,
    values=st.lists(st.integers(0, 1), min_size=1, max_size=8),
    stated=st.lists(st.sampled_from(STATED), min_size=8, max_size=8),
)
def test_law_7_sticking_back_and_forth(
    make_engine: Callable[[], Engine], values: list[int], stated: list[str | None]
) -> None:
    """A→B→A is three facts, and withdrawing the last of any chain of corrections shows the one before."""
    ledger = ledger_on(make_engine(), clock=JumpingClock(CLOCKS))
    ledger.store({"entity_type": "memo", "id": "1", "x": 9})
    chain = []
    for value, when in zip(values, stated, strict=False):
        report = ledger.correct("memo/1", {"x": value}, observed_at=when)
        assert report.observations[0] not in chain
        chain.append(report.observations[0])
        assert ledger.show("memo/1").fields["x"] == value
    assert len(list(ledger.history("memo/1", "x"))) == len(values) + 1
    while chain:
        assert ledger.show("memo/1").fields["x"] == values[len(chain) - 1]
        ledger.retract(chain.pop())
    assert ledger.show("memo/1").fields["x"] == 9


@given(
    make_engine=ENGINES,
    deeds=st.lists(
        st.tuples(
            st.sampled_from(("delete", "restore", "store", "withdraw")), st.sampled_from(STATED), st.integers(0, 2)
        ),
        max_size=14,
    ),
)
def test_law_7_sticking_of_markers(make_engine: Callable[[], Engine], deeds: list[tuple[str, str | None, int]]) -> None:
    """Delete, restore and delete again works at any depth, whatever the clocks say; no assertion revives anything."""
    engine = make_engine()
    ledgers = _disagreeing(engine)
    ledgers[0].store({"entity_type": "memo", "id": "1", "x": 0})
    markers: list[tuple[str, bool]] = []
    for number, (deed, when, writer) in enumerate(deeds):
        ledger = ledgers[writer]
        deleted = markers[-1][1] if markers else False
        if deed == "store":
            report = ledger.store({"entity_type": "memo", "id": "1", "x": number})
            assert any("is deleted" in hint for hint in report.hints) == deleted
        elif deed == "withdraw" and markers:
            ledger.retract(markers.pop()[0], observed_at=when)
        elif deed in ("delete", "restore"):
            wanted = deed == "delete"
            report = (ledger.delete if wanted else ledger.restore)("memo/1", observed_at=when)
            assert bool(report.positions) == (wanted != deleted)
            # With the same stated time it can be the very fact that was withdrawn; that stays withdrawn (law 5).
            if report.positions and not report.repeated:
                markers.append((report.observations[0], wanted))
        deleted = markers[-1][1] if markers else False
        shown = ledger.show("memo/1")
        assert shown.deleted == deleted
        assert bool(shown.fields) != deleted


# 8. Fence


@given(make_engine=ENGINES, data=st.data())
def test_law_8_fence(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """A tenant that shares its engine with others answers, byte for byte, as if it were alone."""
    shared = make_engine()
    names = ("t", "u")
    writes = {name: data.draw(batches(data.draw(tellings(size_max=4)))) for name in names}
    ledgers = {name: ledger_on(shared, name, clock=FixedClock(seed=name)) for name in names}
    waiting = {name: list(found) for name, found in writes.items()}
    while any(waiting.values()):
        name = data.draw(st.sampled_from([name for name in names if waiting[name]]))
        ledgers[name].admit(bodies(waiting[name].pop(0).said))
        if data.draw(st.booleans()):
            ledgers[name].fingerprint()
    for name in names:
        alone = make_engine()
        single = admitted(alone, writes[name], name, seed=name)
        assert spelled(log_of(shared, name)) == spelled(log_of(alone, name))
        assert spelled(answers(ledgers[name])) == spelled(answers(single))
        assert indexes_of(shared, name) == indexes_of(alone, name)
    for name, other in (names, names[::-1]):
        mine = {stored.observation.digest for stored in ledgers[name].observations()}
        for stored in ledgers[other].observations():
            if stored.observation.digest in mine:
                continue
            with shared.view(ledgers[name].tenant) as view:
                assert view.observation(stored.observation.digest, view.head().position) is None
                assert view.observation(stored.observation.id) is None
            with pytest.raises(NotFound) as unknown:
                ledgers[name].retract(stored.observation.id)
            assert str(unknown.value).count(stored.observation.id) == 1


# Diff


@given(make_engine=ENGINES, data=st.data())
def test_apply_diff(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """What differs between two moments, applied to the one, gives the other."""
    ledger = admitted(make_engine(), data.draw(batches(data.draw(tellings()))))
    moments = st.integers(BEFORE_ALL, ledger.position)
    a, b = data.draw(moments), data.draw(moments)
    before, after = ledger.at(a).values(), ledger.at(b).values()
    changes = ledger.diff(a, b)
    assert spelled(_json(diff.apply(changes, before))) == spelled(_json(after))
    assert spelled(_json(diff.apply(ledger.diff(b, a).changes, after))) == spelled(_json(before))
    assert (not changes) == (ledger.at(a).fingerprint() == ledger.at(b).fingerprint()) or _policy_alone(ledger, a, b)
    assert ledger.diff(a, a).changes == ()
    for ref in dict.fromkeys(said.observation.entity for said in ledger.observations()):
        one = ledger.diff(a, b, ref)
        sides = [
            {} if found is None else {str(ref): found} for found in (_values(ledger.at(when), ref) for when in (a, b))
        ]
        assert spelled(_json(diff.apply(one, sides[0]))) == spelled(_json(sides[1]))


@given(make_engine=ENGINES, data=st.data())
def test_diff_is_that_of_everything(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """What differs between two moments, found by what was touched between them, is what a comparison of all finds."""
    ledger = admitted(make_engine(), data.draw(batches(data.draw(tellings()))))
    moments = st.integers(BEFORE_ALL, ledger.position)
    a, b = data.draw(moments), data.draw(moments)
    for effective in (None, data.draw(st.sampled_from(MOMENTS))):
        past = ledger if effective is None else ledger.at("now", valid_at=effective)
        sides = [ledger.at(when, valid_at=effective).values() for when in (a, b)]
        assert past.diff(a, b).changes == diff.diff(*sides)
        types = {name.partition("/")[0] for side in sides for name in side}
        for entity_type in types:
            of_type = [{n: v for n, v in side.items() if n.startswith(f"{entity_type}/")} for side in sides]
            assert past.diff(a, b, entity_type=entity_type).changes == diff.diff(*of_type)


@on_every_engine
def test_apply_diff_between_values_that_are_easily_mistaken(make_engine: Callable[[], Engine]) -> None:
    """A diff tells apart what Python takes for equal, and leads from each such value to the next and back."""
    ledger = ledger_on(make_engine())
    for value in (*TROUBLE, *TROUBLE[::-1]):
        ledger.store({"entity_type": "memo", "id": "1", "x": value})
    for a in range(ledger.position):
        before, after = ledger.at(a).values(), ledger.at(a + 1).values()
        assert spelled(_json(diff.apply(ledger.diff(a, a + 1).changes, before))) == spelled(_json(after))
        assert spelled(_json(diff.apply(ledger.diff(a + 1, a).changes, after))) == spelled(_json(before))


def _values(past: Past, ref: Ref) -> Values | None:
    try:
        return Values.of(past.show(ref))
    except NotFound:
        return None


def _policy_alone(ledger: Ledger, a: int, b: int) -> bool:
    """Return whether schemas changed between two moments: the fingerprint names policies, a diff does not."""
    return spelled([s.id for s in ledger.at(a).schemas.list()]) != spelled([s.id for s in ledger.at(b).schemas.list()])


@pytest.mark.parametrize("every", [1, 2, 5])
@given(make_engine=ENGINES, data=st.data())
def test_what_was_true_by_a_time_is_a_fold_of_what_was_true_by_then(
    make_engine: Callable[[], Engine], every: int, data: st.DataObject
) -> None:
    """Reading by an effective time gives what folding the observations selected by it gives, however they came."""
    with pytest.MonkeyPatch.context() as patch:
        for module in (spacing, transitions):
            patch.setattr(module, "KEPT_EVERY", every)
        patch.setattr(spacing, "ENTRY_BYTES", 10_000)  # so that a state is due each time
        ledger = admitted(make_engine(), data.draw(batches(data.draw(tellings()))))
    with ledger.context.engine.view(ledger.tenant) as view:
        head = view.head().position
        for effective in (*MOMENTS, "0001-01-01T00:00:00.000000Z", "9999-12-31T23:59:59.999999Z"):
            for position in {head, data.draw(st.integers(-1, head))}:
                reader = Reader(view, AsOf(position, effective), ledger.context.policies)
                for ref in view.entities(None, position):
                    members, rules = reader.group(ref), reader.rules(ref.type)
                    folded = fold.fold((s.observation for s in reader.stored(members)), members, rules)
                    assert same_state(reader.state(ref), folded, rules), f"{ref} by {effective} at {position}"
