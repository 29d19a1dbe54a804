"""Writing: whole or not at all, once, and at once."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, cast

import pytest

from woodrat import NotFound, Outdated, Refused, Report, own_policy
from woodrat.canon import moment
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, TenantId
from woodrat.context import Context
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL, KEPT_EVERY, NOTHING_ASKED, Asks, Head
from woodrat.engines.transaction import Transaction
from woodrat.ledger.own_policy import registry
from woodrat.ledger.write import Draft, Writer
from woodrat.log import tree
from woodrat.log.tree import Frontier
from woodrat.state import observation as observations
from woodrat.state.observation import ASSERT, say
from woodrat.testing.clock import FixedClock
from woodrat.testing.contract.fixtures import Contract, derived_is_true, everything, next_write_works
from woodrat.testing.crash import VERBS, Crash, CrashingEngine
from woodrat.testing.generators import MOMENTS
from woodrat.testing.ledgers import (
    ANA,
    EARLY,
    LATE,
    LATEST,
    THING,
    THING_2,
    kept_of,
    ledger_on,
    position_of,
    spelled,
    told_on,
)

THREADS: Final = 8
"""Number of concurrent writers."""
WRITES: Final = 25
"""Number of writes by each of them."""


def fingerprint_of(engine: Engine) -> Any:
    """Return the stored fingerprint of tenant `t`, and its position."""
    with engine.view(TenantId("t")) as view:
        return view.lives("fingerprint"), view.meta("fingerprint"), view.meta("fingerprint.nodes")


class _Watched(CrashingEngine):
    """A crashing engine that records the stored fingerprint at the start of each transaction."""

    kept: Any = None

    @contextmanager
    def transaction(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> Iterator[Transaction]:
        """Open a transaction, after recording the stored fingerprint."""
        self.kept = fingerprint_of(self.inner)
        with super().transaction(tenant, asks) as write:
            yield write


class WritingContract(Contract):
    """Writes, as every engine must do it."""

    # Whole or not at all

    @pytest.mark.parametrize("error", [Crash, ValueError, KeyboardInterrupt])
    def test_a_plan_that_raises_leaves_nothing(self, engine: Engine, error: type[BaseException]) -> None:
        """A plan that fails in the middle leaves the ledger unchanged, and the next write works."""
        ledger = told_on(engine)
        before = everything(engine)

        def plan(draft: Draft) -> None:
            draft.say(say(Ref("memo", "1"), ASSERT, agent="a", observed_at=MOMENTS[0], fields={"x": 1}))
            draft.use("task")
            raise error("in the plan")

        context = Context(engine, ledger.tenant, registry(()), FixedClock(), "a")
        with pytest.raises(error):
            Writer(context).write("store", {}, plan, key="k")
        assert everything(engine) == before
        next_write_works(engine, "k")

    def test_a_check_that_refuses_leaves_nothing(self, engine: Engine) -> None:
        """A write refused because of one entity writes nothing, not even its good records."""
        ledger = told_on(engine)
        ledger.schemas.register({"title": "strict", "required": ["name"], "properties": {"name": {"type": "string"}}})
        before = everything(engine)
        with pytest.raises(Refused):
            ledger.store(
                [{"entity_type": "memo", "id": "1"}, {"entity_type": "strict", "id": "1"}], idempotency_key="k"
            )
        assert everything(engine) == before
        next_write_works(engine, "k")

    def test_a_policy_that_raises_leaves_nothing(self, engine: Engine) -> None:
        """A merge that fails after its entries were appended leaves the ledger unchanged, and the next write works."""
        broken: list[bool] = []

        def join(one: Json, other: Json) -> Json:
            if broken:
                raise ArithmeticError("a policy of mine")
            return max(cast(int, one), cast(int, other))

        own = own_policy("own", 1, lift=lambda claim: claim.value, join=join, json_types={"integer"}, code="0" * 64)
        told_on(engine)
        ledger = ledger_on(engine, policies=[own], clock=FixedClock("2026-02-01T00:00:00.000000Z"))
        field = {"type": "integer", "x-woodrat-merge": own.name.to_json()}
        ledger.schemas.register({"title": "score", "properties": {"points": field}})
        ledger.store({"entity_type": "score", "id": "1", "points": 3})
        before = everything(engine, ledger)
        broken.append(True)
        with pytest.raises(ArithmeticError):
            ledger.store(
                [{"entity_type": "memo", "id": "1"}, {"entity_type": "score", "id": "1", "points": 9}],
                idempotency_key="k",
            )
        broken.clear()
        assert everything(engine, ledger) == before
        report = ledger.store({"entity_type": "score", "id": "1", "points": 9}, idempotency_key="k")
        assert report.positions == (before[0]["size"],)
        assert ledger.show("score/1").fields["points"] == 9

    @pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
    @pytest.mark.parametrize("verb", VERBS)
    def test_a_crash_between_append_and_derive_leaves_nothing(self, engine: Engine, verb: str, after: bool) -> None:
        """A write that fails at any verb of its transaction leaves the ledger unchanged, and works when sent again."""
        told_on(engine)
        crashing = _Watched(engine, OSError if after else Crash)
        ledger = ledger_on(crashing, clock=FixedClock("2026-02-01T00:00:00.000000Z", seed="crash"))
        for number in range(KEPT_EVERY - 1):  # one more, so that merge state is stored along the history too
            ledger.store({"entity_type": "memo", "id": "1", "n": number})
        records: list[dict[str, Any]] = [
            {"entity_type": "memo", "id": "1", "n": -1},
            {"entity_type": "thing", "id": "2", "email": "t@example.com", "tags": ["q"]},
            {"entity_type": "task", "title": "new", "$": {"relate": [{"type": "about", "to": "memo/1"}]}},
        ]
        deeds: tuple[Callable[[], object], ...] = (
            lambda: ledger.store(records, idempotency_key="k"),
            lambda: ledger.merge("thing/1", "thing/2", idempotency_key="k2"),
            lambda: ledger.schemas.register({**THING_2, "description": "third"}, idempotency_key="k3"),
            lambda: ledger.fingerprint(),
        )
        crashes, before = 0, everything(engine)
        for deed, passing in itertools.product(deeds, (0, 1)):
            kept = fingerprint_of(engine)
            crashing.arm(verb, passing, after=after)
            try:
                deed()
            except crashing.error:
                crashes += 1
                assert everything(engine) == before
                assert fingerprint_of(engine) == crashing.kept, "nothing of the failed step"
                assert crashing.kept == kept or deed is deeds[-1], "only the fingerprint itself takes several steps"
                crashing.disarm()
            else:
                crashing.disarm()
                before = everything(engine)
        assert crashes
        for deed in deeds:
            deed()
        size = position_of(engine)
        for deed in deeds:
            deed()
        assert position_of(engine) == size, "each of them is written once, by either call"
        next_write_works(engine, "k4")
        derived_is_true(engine)

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
            lambda **how: ledger.schemas.register({**THING_2, "description": "third"}, **how),
        )
        for write in writes:
            before = everything(engine)
            key = f"key-{before[0]['size']}"
            dry = write(dry_run=True, idempotency_key=key)
            assert dry.dry_run
            assert everything(engine) == before
            with engine.view(ledger.tenant) as view:
                assert view.receipt("a", key) is None
            real = write(idempotency_key=key)
            assert spelled(dry.but(dry_run=False).to_json()) == spelled(real.to_json())
            assert position_of(engine) == real.position > before[0]["size"] - 1

    # Once

    def test_a_key_used_again_answers_as_it_did(self, engine: Engine) -> None:
        """A repeated key with the same request returns the first report, marked as repeated, and writes nothing."""
        ledger = told_on(engine)
        record = {"entity_type": "contact", "name": "Ana Rivera", "city": "Reus", "age": 1.5, "ok": True}
        first = ledger.store(record, idempotency_key="k")
        ledger.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Salou"})
        before = everything(engine)
        for again in (ledger.store(record, idempotency_key="k"), ledger_on(engine).store(record, idempotency_key="k")):
            assert again == first.again()
            assert again.repeated and not first.repeated
            assert spelled(again.to_json()) == spelled({**first.to_json(), "repeated": True})
        assert everything(engine) == before

    def test_a_key_with_other_content_is_refused(self, engine: Engine) -> None:
        """A repeated key with another record, another argument or another verb is refused and writes nothing."""
        ledger = told_on(engine)
        record = {"entity_type": "contact", "name": "Ana Rivera", "n": 1}
        ledger.store(record, idempotency_key="k")
        before = everything(engine)
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
        assert everything(engine) == before

    def test_keys_belong_to_a_tenant_and_an_agent(self, engine: Engine) -> None:
        """Every tenant and every agent has its own keys."""
        reports = [
            ledger_on(engine, tenant, agent).store({"entity_type": "memo", "id": tenant + agent}, idempotency_key="k")
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
            ledger.delete("memo/none", idempotency_key="k")
        ledger.tag("dry")
        known = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona", "$": {"observed_at": EARLY}}
        before = everything(engine)
        assert ledger.store(known, idempotency_key="k").repeated
        assert ledger.schemas.register(THING, version=1, idempotency_key="k").positions == ()
        assert ledger.restore("thing/1", idempotency_key="k").positions == ()
        assert ledger.store({"entity_type": "memo", "id": "9"}, idempotency_key="k", dry_run=True).dry_run
        assert everything(engine) == before
        assert not ledger.store({"entity_type": "memo", "id": "9"}, idempotency_key="k").repeated

    def test_the_same_observation_is_stored_once(self, engine: Engine) -> None:
        """An observation with a stated time is stored once; the second report is the first, marked as repeated."""
        ledger = told_on(engine)
        record: dict[str, Any] = {
            "entity_type": "contact",
            "name": "Ana Rivera",
            "city": "Reus",
            "$": {"observed_at": LATEST},
        }
        first = ledger.store([record, record])
        assert len(first.positions) == 1
        before = everything(engine)
        again = ledger_on(engine).store([record, record], idempotency_key="other")
        assert again.but(known=first.known, hints=first.hints) == first.again()
        assert set(again.known) == set(first.observations)
        assert everything(engine) == before
        assert ledger_on(engine, agent="b").store(record).observations != first.observations[:1], (
            "another agent writes it"
        )

    def test_what_was_said_is_known(self, engine: Engine) -> None:
        """Every observation of a log is known, even if replaced, and similar ones are not."""
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
            unknown = say(Ref("memo", "nobody's"), ASSERT, agent="a", observed_at=moments[0], fields={"x": 1})
            assert said and set(view.known([unknown, *others, *said])) == {one.digest for one in said}
            for one in said:
                assert set(view.known([one])) == {one.digest}
            for one in others:
                assert not view.known([one])

    # At once

    def test_writers_at_once_lose_nothing(self, engine: Engine) -> None:
        """Of concurrent writes by many threads, each acknowledged one is stored whole, once, and without a gap."""
        reports: dict[tuple[int, int], Report] = {}

        def write(thread: int) -> None:
            ledger = ledger_on(engine, agent=f"agent-{thread}", clock=FixedClock(seed=str(thread)))
            for number in range(WRITES):
                records: list[dict[str, Any]] = [
                    {"entity_type": "counter", "id": "shared", "n": number, "by": thread},
                    {"entity_type": "memo", "id": f"{thread}-{number}"},
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
            assert ledger_on(engine).show(f"memo/{thread}-{number}").version == report.positions[1]
        derived_is_true(engine)

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
        """Until a shared commit ends no other reader sees its writes; then all readers see all of them, in order."""
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
        assert foreign.position == first.position, "each tenant has a separate log"
        assert set(seen[:-1]) <= {0}
        assert ledger.show("thing/1").fields["city"] == "Girona"
        assert ledger.rebuild().agreed and other.rebuild().agreed

    def test_a_refused_write_leaves_those_it_shares_a_commit_with(self, engine: Engine) -> None:
        """A failing write in a shared commit is undone alone, and the next one takes its positions."""
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


def _at_once(work: Callable[[int], None]) -> None:
    """Run the work in threads that start together; raise any exception of theirs."""
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
    """Let all threads write one entity on condition of one version; return the numbers of winners and losers."""
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
