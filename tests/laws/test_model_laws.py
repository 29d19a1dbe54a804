"""Ledgers against the model: random histories, after which every question has the model's answer."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.differential.histories import AGENTS, TENANTS, History
from tests.differential.test_shared_commits import shared

from woodrat import Ledger, Refused, Report, WoodratError
from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.engines.engine import Engine
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.records import replace
from woodrat.testing.clock import FixedClock
from woodrat.testing.generators import MOMENTS
from woodrat.testing.histories import Telling, batches, tellings
from woodrat.testing.ledgers import EARLY, LATE, bodies, ledger_on
from woodrat.testing.model import agreement
from woodrat.testing.model.merge import RANKS
from woodrat.testing.model.tenant import Model, ModelPast

pytestmark = [pytest.mark.laws, pytest.mark.timeout(7200), pytest.mark.usefixtures("erasure_key")]

FULL: Final = os.environ.get("WOODRAT_LAWS") == "full"
EXAMPLES, OPERATIONS = (300, 50) if FULL else (12, 14)
"""How many histories are tried, and how many calls each has; all of them on each engine under `dev.py laws`."""
DRAWN: Final = [["sqlite"], ["postgres"]] if FULL else [["sqlite", "sqlite", "sqlite", "postgres"]]
"""Engines of which one is drawn for each history; a server is slow to ask."""
WHERE: Final[list[list[agreement.Where]]] = [
    [("city", "prefix", "B"), ("rank", "exists", True)],
    [("tags", "eq", "a")],
    [("best", "gte", 1), ("best", "lt", 9)],
    [("id", "in", ["1", "2", 7])],
    [("e", "exists", False), ("a", "exists", True)],
]
WORDS: Final = ("1", "berga", "a example", "ü")
NAMES: Final = ("a@example.com", "A@EXAMPLE.com", "contact/1", "thing/B@example.com", "é", "thing/nobody", "Vic")
TIMES: Final = (MOMENTS[0], EARLY.replace("Z", ".000000Z"), LATE.replace("Z", ".000000Z"))

Call = Callable[[Ledger], Any]


@dataclass
class Differential:
    """One history on one engine, and the model that is handed its entries."""

    engine: Engine
    chance: random.Random
    model: Model = field(default_factory=Model)
    clock: FixedClock = field(default_factory=FixedClock)

    def __post_init__(self) -> None:
        self.verbs = History(self.chance)

    @property
    def ledger(self) -> Ledger:
        return self.ledger_of(AGENTS[0])

    def ledger_of(self, agent: str) -> Ledger:
        """Return the ledger of an agent."""
        return ledger_on(self.engine, agent=agent, clock=self.clock)

    def call(self, name: str, call: Call) -> None:
        """Make a call, hand the model what came of it, and compare what it reports."""
        before = self.model.position
        try:
            report = call(self.ledger_of(self.chance.choice(AGENTS)))
        except WoodratError:
            report = None
        agreement.take_in(self.ledger, self.model)
        agreement.check_write(self.model, before, report)
        self.verbs.learn(name, report)

    def together(self) -> None:
        """Make stores that share a commit: what one that is refused or tried says is not in it, what others say is."""
        before = self.model.position
        count = self.chance.randrange(2, 6)
        calls = [
            (TENANTS[0], self.chance.choice(AGENTS), partial(Ledger.store, **self.verbs.store())) for _ in range(count)
        ]
        outcomes: list[Any] = [form.decode(outcome) for outcome in shared(self.engine, self.clock, calls)]
        agreement.take_in(self.ledger, self.model)
        reports = [told for word, told in outcomes if word == "done" and not told["dry_run"] and not told["repeated"]]
        reported = sorted(position for told in reports for position in told["positions"])
        agreement.check_same("shared commit", [*range(before + 1, self.model.position + 1)], reported)
        held = {stored.observation.id for stored in self.model.at().known}
        assert all(id in held for told in reports for id in told["observations"])

    def again(self) -> None:
        """Make a store twice under one key: the second is the first's report, and with other content it is refused."""
        key = f"again {self.model.position}"
        record = {"entity_type": "thing", "id": self.chance.choice(("1", "2", "new")), "city": "Vic"}
        for city, repeated in (("Vic", False), ("Vic", True), ("Berga", None)):
            before = self.model.position
            try:
                report = self.ledger.store({**record, "city": city}, idempotency_key=key)
            except Refused:
                report = None
            agreement.take_in(self.ledger, self.model)
            agreement.check_write(self.model, before, report)
            agreement.check_same("repeated", None if report is None else report.repeated, repeated)

    def run(self, writes: list[Telling], operations: int, erasures: bool) -> None:
        """Make calls and imports by turns, and compare on the way."""
        waiting = list(writes)
        for _ in range(operations):
            roll = self.chance.random()
            if waiting and roll < 0.3:
                self.call("admit", partial(_admit, bodies(waiting.pop().said)))
            elif 0.3 <= roll < 0.4:
                self.together()
            elif 0.4 <= roll < 0.45:
                self.again()
            elif erasures and roll > 0.95 and self.verbs.refs:
                what = self.chance.choice(self.verbs.refs) + self.chance.choice(("", "", "#city", "#tags"))
                self.call("erase", partial(_erase, what))
            else:
                self.call(*self.verbs.next())
            if self.chance.random() < 0.2:
                self.compare_some()
        self.compare()

    def compare_some(self) -> None:
        """Compare one entity now, and the lists."""
        expected = self.model.at()
        if expected.entities:
            agreement.check_entity(self.ledger, expected, self.chance.choice(expected.entities))
        agreement.check_query(self.ledger, expected, None, self.chance.choice(WHERE))

    def compare(self) -> None:
        """Compare everything: now, at a position, at a recorded time, and at an effective time."""
        model, ledger = self.model, self.ledger
        agreement.check_log(ledger, model)
        agreement.check(ledger, model.at(), refs=self.refs(), where=WHERE, words=WORDS)
        for name in NAMES:
            agreement.check_name(ledger, model.at(), name)
        position = self.chance.randint(-1, model.position)
        where = [self.chance.choice(WHERE)]
        agreement.check(ledger.at(position), model.at(position), where=where, words=WORDS[:1])
        if model.entries:
            time = self.chance.choice(model.entries).recorded_at
            agreement.check_lists(ledger.at(time), model.at(model.position_at(time)))
        time = self.chance.choice(TIMES)
        agreement.check(ledger.at(valid_at=time), model.at(None, time), where=where, words=WORDS[:1])
        agreement.check_lists(ledger.at(position, valid_at=time), model.at(position, time))

    def refs(self) -> list[Ref]:
        """Return every entity that was ever spoken of, erased or not."""
        return self.model.spoken


def _admit(said: list[tuple[str, bytes]], ledger: Ledger) -> Any:
    return ledger.admit(said)


def _erase(what: str, ledger: Ledger) -> Any:
    return ledger.erase(what, reason="asked to")


def _sqlite(folder: Path, number: list[int]) -> Callable[[], Engine]:
    def make() -> Engine:
        number[0] += 1
        return SqliteEngine(folder / f"{number[0]}.db")

    return make


@pytest.fixture
def makers(tmp_path: Path, postgres_database: Callable[[], str]) -> Iterator[dict[str, Callable[[], Engine]]]:
    """What makes an engine of each kind, by name."""
    made: list[Engine] = []

    def noted(make: Callable[[], Engine]) -> Callable[[], Engine]:
        def make_one() -> Engine:
            # Those of earlier histories are done with; a server has few connections.
            while made:
                made.pop().close()
            made.append(make())
            return made[-1]

        return make_one

    yield {
        "sqlite": noted(_sqlite(tmp_path, [0])),
        "postgres": noted(lambda: PostgresEngine(postgres_database())),
    }
    for engine in made:
        engine.close()


def differ(make: Callable[[], Engine], data: st.DataObject, operations: int, erasures: bool = True) -> Differential:
    """Run one drawn history on an engine and compare it with the model."""
    chance = data.draw(st.randoms(use_true_random=False))
    writes = data.draw(batches(data.draw(tellings())))
    found = Differential(make(), chance)
    found.run(writes, operations, erasures)
    return found


def tried(makers: dict[str, Callable[[], Engine]], engines: list[str], examples: int) -> None:
    """Try histories, each on one of some engines."""

    @settings(max_examples=examples, suppress_health_check=list(HealthCheck), deadline=None)
    @given(data=st.data())
    def one(data: st.DataObject) -> None:
        differ(makers[data.draw(st.sampled_from(engines))], data, OPERATIONS)

    one()


@pytest.mark.parametrize("engines", DRAWN, ids=lambda engines: "-".join(dict.fromkeys(engines)))
def test_ledgers_answer_as_the_model_does(makers: dict[str, Callable[[], Engine]], engines: list[str]) -> None:
    """After any history of calls, imports, erasures and refusals, every answer is what folding the list gives."""
    tried(makers, engines, EXAMPLES)


def test_the_order_of_arrival_does_not_show(makers: dict[str, Callable[[], Engine]]) -> None:
    """The same observations and schemas, in whatever order and batches they arrive, give the same values."""

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck), deadline=None)
    @given(data=st.data())
    def one(data: st.DataObject) -> None:
        telling = data.draw(tellings())
        found = []
        for _ in range(2):
            differential = Differential(makers["sqlite"](), random.Random(0))
            for write in data.draw(batches(telling)):
                differential.call("admit", partial(_admit, bodies(write.said)))
            expected = differential.model.at()
            agreement.check_lists(differential.ledger, expected)
            found.append([expected.values(), expected.fingerprint(with_winners=True), expected.duplicates()])
        agreement.check_same("two orders", *found)

    one()


# Runs


RULES: Final = [
    {"when": {"score": {"lt": 3}}, "chosen": "rejected"},
    {"when": {"score": {"lt": 6}}, "chosen": "reviewed"},
]
LOANS: Final = tuple(Ref("loan", key) for key in ("1", "2", "3"))


def _decided(ref: Ref, chance: random.Random, ledger: Ledger) -> str:
    """Record a run that reads a loan, decides on its score, and mostly writes what it decided."""
    subject = chance.choice((str(ref), None))
    with (
        suppress(WoodratError),  # a loan without a score: the run ends there, and says so
        ledger.run("Approve?", subject=subject, conversation=chance.choice(("c1", "c2"))) as run,
    ):
        chosen = run.decide("risk", run.show(ref), RULES, default="approved")
        if chance.random() < 0.7:
            run.store({"entity_type": "loan", "id": chance.choice(LOANS).key, "score": chance.randrange(9)})
        run.answer(chosen)
    return "recorded"


def runs_differ(engine: Engine, chance: random.Random, operations: int) -> None:
    """Store, correct, withdraw and decide by turns, and compare what is known of runs, now and at a position."""
    found = Differential(engine, chance)
    for ref in LOANS:
        record = {"entity_type": "loan", "id": ref.key, "score": chance.randrange(9)}
        found.call("store", lambda ledger, record=record: ledger.store(record))  # type: ignore[misc]
    for _ in range(operations):
        ref, score, roll = chance.choice(LOANS), chance.randrange(9), chance.random()
        record = {"entity_type": "loan", "id": ref.key, "score": score}
        if roll < 0.5:
            found.call("run", partial(_decided, ref, chance))
        elif roll < 0.7:
            found.call("store", lambda ledger, record=record: ledger.store(record))  # type: ignore[misc]
        elif roll < 0.85:
            found.call("correct", lambda ledger, ref=ref, score=score: ledger.correct(ref, {"score": score}))  # type: ignore[misc]
        else:
            said = found.verbs.observation()
            found.call("retract", lambda ledger, said=said: ledger.retract(said))  # type: ignore[misc]
    agreement.check_runs(found.ledger, found.model.at(), LOANS)
    whole = [entry.position for entry in found.model.entries if entry.kind == "run.ended"]
    if whole:  # at other positions a run may be under way
        position = chance.choice(whole)
        agreement.check_runs(found.ledger.at(position), found.model.at(position), LOANS)


@pytest.mark.parametrize("engines", DRAWN, ids=lambda engines: "-".join(dict.fromkeys(engines)))
def test_ledgers_tell_of_runs_as_the_model_does(makers: dict[str, Callable[[], Engine]], engines: list[str]) -> None:
    """Lists of runs, `why`, `impact` and `stale` are what the entries of the runs say."""

    @settings(max_examples=EXAMPLES // 2, suppress_health_check=list(HealthCheck), deadline=None)
    @given(chance=st.randoms(use_true_random=False), engine=st.sampled_from(engines))
    def one(chance: random.Random, engine: str) -> None:
        runs_differ(makers[engine](), chance, OPERATIONS)

    one()


# Planted faults: each is one that an engine or a merge could have, and the comparison must find it.


def _flip_rank(patch: pytest.MonkeyPatch) -> None:
    """The earliest claim wins under `latest`."""
    patch.setitem(RANKS, "latest", RANKS["first"])


def _answer_erased(patch: pytest.MonkeyPatch) -> None:
    """What was erased still counts."""
    patch.setattr(ModelPast, "entries", property(lambda self: self.model.entries[: self.position + 1]))


def _lose_row(patch: pytest.MonkeyPatch) -> None:
    """The first item of a list is missing."""
    query = Ledger.query
    patch.setattr(Ledger, "query", lambda self, **asked: _edited(query(self, **asked), lambda items: items[1:]))


def _add_row(patch: pytest.MonkeyPatch) -> None:
    """A list has one item twice."""
    query = Ledger.query
    patch.setattr(Ledger, "query", lambda self, **asked: _edited(query(self, **asked), lambda items: items + items[:1]))


def _move_row(patch: pytest.MonkeyPatch) -> None:
    """An item of a list stands at another position than its entry."""
    observations = Ledger.observations

    def moved(items: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple(item._replace(position=item.position + 1) for item in items)

    patch.setattr(Ledger, "observations", lambda self, *ref, **asked: _edited(observations(self, *ref, **asked), moved))


def _lose_write(patch: pytest.MonkeyPatch) -> None:
    """A write is reported as done and is not in the log."""
    store = Ledger.store

    def lost(self: Ledger, *records: Any, **options: Any) -> Any:
        report = store(self, *records, **{**options, "dry_run": True})
        return Report(**{name: getattr(report, name) for name in REPORTED}, dry_run=False)

    patch.setattr(Ledger, "store", lost)


def _write_twice(patch: pytest.MonkeyPatch) -> None:
    """A write with an idempotency key is made again when it is repeated."""
    store = Ledger.store

    def twice(self: Ledger, *records: Any, **options: Any) -> Any:
        report = store(self, *records, **options)
        if not report.dry_run:
            store(self, *records, **{**options, "idempotency_key": None})
        return report

    patch.setattr(Ledger, "store", twice)


REPORTED: Final = ("position", "positions", "observations", "known", "entities", "changes", "conflicts", "by_arrival")


def _edited(page: Any, edit: Callable[[tuple[Any, ...]], tuple[Any, ...]]) -> Any:
    """Return a page with other items."""
    return replace(page, items=edit(page.items)[: agreement.PAGE])


PLANTED: Final = (_flip_rank, _answer_erased, _lose_row, _add_row, _move_row, _lose_write, _write_twice)


def _planted_history(engine: Engine) -> None:
    """Make a few calls that every planted fault shows in, and compare."""
    found = Differential(engine, random.Random(1))
    record = {"entity_type": "thing", "id": "1", "city": "Vic", "rank": 2}
    found.call("store", lambda ledger: ledger.store(record, observed_at=EARLY))
    found.call("store", lambda ledger: ledger.store({**record, "city": "Berga"}, observed_at=LATE))
    found.call("store", lambda ledger: ledger.store({**record, "id": "2"}))
    found.call("erase", lambda ledger: ledger.erase("thing/2", reason="asked to"))
    found.compare()


def test_the_planted_history_is_sound(tmp_path: Path) -> None:
    """Without a fault the history in which faults are planted agrees with the model."""
    with closing(SqliteEngine(tmp_path / "sound.db")) as engine:
        _planted_history(engine)


@pytest.mark.parametrize("plant", PLANTED, ids=lambda plant: plant.__name__.removeprefix("_"))
def test_a_planted_fault_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """A flipped rank, a missing, surplus or misplaced row, a lost or doubled write, an erased value: each is found."""
    plant(monkeypatch)
    with closing(SqliteEngine(tmp_path / "planted.db")) as engine, pytest.raises(AssertionError):
        _planted_history(engine)
