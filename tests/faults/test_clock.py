"""Jumping clocks: a clock that goes back 400 days and forth again changes no order, no state and no earlier root."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.faults.cutting import folder
from tests.faults.processes import FULL

from woodrat import Ledger, Refused, WoodratError
from woodrat.canon import moment
from woodrat.canon.ids import TenantId
from woodrat.cli.main import main
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.clock_skew import SKEW_MICROS
from woodrat.log import tree
from woodrat.state import observation as observations
from woodrat.testing.clock import FixedClock, JumpingClock
from woodrat.testing.ledgers import THING, ledger_on

JUMP: Final = 400 * 86_400_000_000
"""How far the clock jumps, in microseconds."""
EXAMPLES: Final = 400 if FULL else 25
TENANT: Final = TenantId("t")
VERBS: Final = ("store", "store", "batch", "correct", "delete", "restore", "retract", "reopen")
STATED: Final = (None, None, "2022-01-01T00:00:00Z", "2023-06-01T00:00:00Z")
"""What writers say of when something was seen: nothing, or a time before any the clock shows."""


class Jumping(FixedClock):
    """A clock that goes on as it should, and shows a time 400 days earlier while it is told to."""

    back = False

    def now(self) -> str:
        now = super().now()
        return moment.from_micros(moment.to_micros(now) - JUMP) if self.back else now


@dataclass(frozen=True)
class Deed:
    """One thing done, and what the clock shows meanwhile."""

    verb: str
    thing: int
    value: int
    stated: str | None
    back: bool


def deeds(stated: tuple[str | None, ...]) -> st.SearchStrategy[list[Deed]]:
    """Return things to do, whose times are stated so."""
    one = st.builds(
        Deed, st.sampled_from(VERBS), st.integers(0, 2), st.integers(0, 3), st.sampled_from(stated), st.booleans()
    )
    return st.lists(one, min_size=2, max_size=14)


@dataclass
class Life:
    """A ledger, its clock, and what it said after each write."""

    open: Callable[[], Engine]
    jumps: bool
    clock: Jumping = field(default_factory=Jumping)
    outcomes: list[object] = field(default_factory=list)
    roots: list[tuple[int, bytes, str]] = field(default_factory=list)
    """After each write: the log's size, its root and the fingerprint."""
    said: list[str] = field(default_factory=list)

    def live(self, all_deeds: list[Deed]) -> Life:
        """Do everything, checking after each write what must hold whatever the clock does."""
        engine = self.open()
        try:
            ledger = ledger_on(engine, clock=self.clock)
            ledger.schemas.register(THING)
            ledger.store([{"entity_type": "thing", "id": f"{number}", "city": "-"} for number in range(3)])
            for deed in all_deeds:
                self.clock.back = self.jumps and deed.back
                if deed.verb == "reopen" and not isinstance(engine, InMemoryEngine):
                    engine.close()
                    engine = self.open()
                    ledger = ledger_on(engine, clock=self.clock)
                self.outcomes.append(self.outcome(ledger, deed))
                with engine.view(TENANT) as view:
                    head = view.head()
                self.roots.append((head.size, head.frontier.root(), ledger.fingerprint()))
            self.check(engine, ledger)
            self.outcomes.append((ledger.fingerprint(), [root[0] for root in self.roots]))
            self.proven = ledger.fingerprint(provenance=True)
        finally:
            engine.close()
        return self

    def outcome(self, ledger: Ledger, deed: Deed) -> object:
        """Do one thing; return where it stands in the log, or how it was refused."""
        about, value = f"thing/{deed.thing}", f"city {deed.value}"
        record: dict[str, Any] = {"entity_type": "thing", "id": f"{deed.thing}", "city": value}
        try:
            match deed.verb:
                case "store" | "reopen":
                    report = ledger.store(record, observed_at=deed.stated)
                case "batch":
                    more = {"tags": [value], "total": deed.value, "log": [value], "born": deed.value}
                    others = {**record, "id": f"{(deed.thing + 1) % 3}"}
                    report = ledger.store([{**record, **more}, others], observed_at=deed.stated)
                case "correct":
                    report = ledger.correct(about, {"city": value}, observed_at=deed.stated)
                case "delete":
                    report = ledger.delete(about, observed_at=deed.stated)
                case "restore":
                    report = ledger.restore(about, observed_at=deed.stated)
                case _:
                    report = ledger.retract(self.said[-1] if self.said else "none", observed_at=deed.stated)
        except WoodratError as error:
            return type(error).__name__
        self.said += report.observations
        return report.positions

    def check(self, engine: Engine, ledger: Ledger) -> None:
        """The log's clock only goes forward, what left its time out has the log's, and the past stays as it was."""
        with engine.view(TENANT) as view:
            entries = list(view.entries())
            leaves = view.leaves(len(entries))
        times = [entry.recorded_at for entry in entries if entry.envelope.length is not None]
        assert times == sorted(set(times)), "recorded_at increases from write to write"
        for entry in entries:
            assert entry.recorded_at == entries[entry.envelope.write].recorded_at, "a write has one time"
            if entry.kind == "observation":
                seen = observations.stored(entry.body or b"").observed_at
                assert seen == entry.recorded_at or seen in map(moment.parse, filter(None, STATED))
        for size, root, fingerprint in self.roots:
            assert tree.root(leaves[:size]) == root, "an earlier root has changed"
            assert ledger.at(size - 1).fingerprint() == fingerprint, "an earlier state has changed"


def in_memory(_: Path) -> Engine:
    """Return the engine in memory."""
    return InMemoryEngine()


def in_a_file(place: Path) -> Engine:
    """Return the engine on a file, which may have been written before."""
    return SqliteEngine(place / "clock.db")


on_both_engines = pytest.mark.parametrize("make", [in_memory, in_a_file], ids=lambda make: make.__name__)


def lived(make: Callable[[Path], Engine], all_deeds: list[Deed], *, jumps: bool) -> Life:
    """Return a ledger's life with these deeds, on a clock that jumps or does not."""
    with folder() as place:
        return Life(lambda: make(place), jumps).live(all_deeds)


@on_both_engines
@settings(max_examples=EXAMPLES)
@given(all_deeds=deeds(STATED[2:]))
def test_with_stated_times_a_jumping_clock_does_not_show(make: Callable[[Path], Engine], all_deeds: list[Deed]) -> None:
    """If writers state when things were seen, positions, fingerprint and provenance equal those under a sane clock."""
    sane, jumping = lived(make, all_deeds, jumps=False), lived(make, all_deeds, jumps=True)
    assert jumping.outcomes == sane.outcomes
    assert jumping.proven == sane.proven
    assert jumping.said == sane.said


@on_both_engines
@settings(max_examples=EXAMPLES)
@given(all_deeds=deeds(STATED))
def test_with_times_left_out_a_jumping_clock_changes_no_state(
    make: Callable[[Path], Engine], all_deeds: list[Deed]
) -> None:
    """If they leave it out, positions and fingerprints after every write still equal those under a sane clock."""
    sane, jumping = lived(make, all_deeds, jumps=False), lived(make, all_deeds, jumps=True)
    assert jumping.outcomes == sane.outcomes
    assert [after[2] for after in jumping.roots] == [after[2] for after in sane.roots]


@on_both_engines
@settings(max_examples=EXAMPLES)
@given(jumps=st.lists(st.booleans(), min_size=1, max_size=12))
def test_a_later_write_never_loses_to_an_earlier_one(make: Callable[[Path], Engine], jumps: list[bool]) -> None:
    """What is stored last without a stated time is what is shown, however far the clock went back before it."""
    with folder() as place:
        engine = make(place)
        clock = Jumping()
        ledger = ledger_on(engine, clock=clock)
        for number, clock.back in enumerate(jumps):
            ledger.store({"entity_type": "memo", "id": "1", "text": f"{number}"})
            assert ledger.show("memo/1").fields["text"] == f"{number}"
        engine.close()


# Planted faults


JUMPS: Final = [Deed("store", 0, value, None, back) for value, back in ((1, False), (2, True), (3, False), (1, True))]


@on_both_engines
def test_a_log_on_the_machines_clock_is_caught(make: Callable[[Path], Engine], monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that takes the machine's time as it is does not get past its first step back."""
    monkeypatch.setattr("woodrat.ledger.write.not_before", lambda now, last: now)
    lived(make, JUMPS, jumps=False)
    with pytest.raises(AssertionError, match="clock"):
        lived(make, JUMPS, jumps=True)


@on_both_engines
def test_observations_on_the_machines_clock_are_caught(
    make: Callable[[Path], Engine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a time left out were the machine's, a later write would lose, and the states would be seen to differ."""
    real = Life.outcome

    def careless(self: Life, ledger: Ledger, deed: Deed) -> object:
        return real(self, ledger, Deed(deed.verb, deed.thing, deed.value, self.clock.now(), deed.back))

    monkeypatch.setattr(Life, "outcome", careless)
    monkeypatch.setattr(Life, "check", lambda self, engine, ledger: None)
    sane, jumping = (lived(make, JUMPS, jumps=jumps) for jumps in (False, True))
    assert [after[2] for after in jumping.roots] != [after[2] for after in sane.roots]


# A log that is ahead of its machine


AHEAD: Final = "2027-02-05T00:00:00Z"
"""What a clock showed that had jumped."""
RIGHT: Final = "2026-01-01T12:00:00Z"
"""What it shows once it was set right."""
NOTE: Final[dict[str, Any]] = {"entity_type": "memo", "id": "1", "text": "x"}


def jumped(engine: Engine, now: str = RIGHT) -> Ledger:
    """Return a ledger whose last write was made while the clock was ahead."""
    ledger_on(engine, clock=JumpingClock([AHEAD])).store({**NOTE, "text": "from the future"})
    return ledger_on(engine, clock=JumpingClock([now], seed="later"))


@on_both_engines
def test_a_write_tells_of_a_log_that_is_ahead(make: Callable[[Path], Engine]) -> None:
    """The report says how far the log is ahead, both times, and what follows; it stays so until the clock is past."""
    with folder() as place:
        engine = make(place)
        ledger = jumped(engine)
        for text in ("one", "two"):
            (hint,) = ledger.store({**NOTE, "text": text}).hints
            assert hint.startswith(
                "The log's clock is 399 days ahead of this machine's: the log is at 5 Feb 2027, 00:00 UTC, and this "
                "machine at 1 Jan 2026, 12:00 UTC."
            )
            assert "state observed_at" in hint
            seen = ledger.observations("memo/1").items[-1].observation
            assert seen.observed_at > moment.parse(AHEAD), "the law: times that the log sets only go forward"
        reports = (
            ledger.correct("memo/1", {"text": "three"}, reason="r"),
            ledger.tag("then"),
            ledger.delete("memo/1"),
        )
        for report in reports:
            assert any("ahead of this machine's" in hint for hint in report.hints)
        later = ledger_on(engine, clock=JumpingClock(["2027-02-05T00:00:01Z"], seed="past"))
        assert later.store({**NOTE, "id": "2"}).hints == ()
        engine.close()


@on_both_engines
@pytest.mark.parametrize(("ahead", "tells"), [(SKEW_MICROS, False), (SKEW_MICROS + 1_000_000, True), (0, False)])
def test_small_differences_are_not_told(make: Callable[[Path], Engine], ahead: int, tells: bool) -> None:
    """Clocks differ by a little all the time; only beyond a named limit is anything said."""
    now = moment.from_micros(moment.to_micros(moment.parse(AHEAD)) - ahead + 1)  # the next write is a microsecond later
    with folder() as place:
        engine = make(place)
        assert bool(jumped(engine, now).store({**NOTE, "text": "y"}).hints) is tells
        engine.close()


@on_both_engines
def test_stated_times_are_compared_with_the_log(make: Callable[[Path], Engine]) -> None:
    """Whichever of the two clocks is wrong, a time that is not ahead of the log can be stated, and a later one not."""
    with folder() as place:
        engine = make(place)
        ledger = jumped(engine)
        for stated in (RIGHT, "2026-06-01T00:00:00Z", AHEAD, "2027-02-05T00:04:00Z"):
            ledger.store({**NOTE, "text": stated}, observed_at=stated)
        with pytest.raises(Refused, match=r"ahead of the log, which is at 2027-02-05"):
            ledger.store({**NOTE, "text": "z"}, observed_at="2027-02-05T00:06:00Z")
        engine.close()


def test_verify_and_doctor_tell_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`verify` finds nothing wrong and says it as a notice; `doctor` says it of the machine it runs on."""
    engine = SqliteEngine(tmp_path / "l.db")
    ledger = jumped(engine)
    found = ledger.verify()
    assert found.sound
    assert found.notices == (ledger.store({**NOTE, "text": "y"}, dry_run=True).hints[0],)
    assert found.to_json()["notices"] == list(found.notices)
    ledger_on(engine, "default", clock=JumpingClock(["2999-01-01T00:00:00Z"])).store(NOTE)
    engine.close()
    for command in ("verify", "doctor"):
        for output in ("json", "table"):
            assert main([command, "--db", str(tmp_path / "l.db"), "-o", output]) == 0
            assert "ahead of this machine" in capsys.readouterr().out.replace("\n", " ")


def test_a_writer_that_does_not_tell_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the hint, as it was before, nothing marks what the log's clock set in the future."""
    monkeypatch.setattr("woodrat.ledger.write.skew_hint", lambda now, recorded_at: None)
    with pytest.raises(ValueError, match="not enough values to unpack"):
        test_a_write_tells_of_a_log_that_is_ahead(in_memory)
