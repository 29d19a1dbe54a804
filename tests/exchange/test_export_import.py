"""A log leaves a ledger as lines and comes into another: as its clone, or merged in."""

from __future__ import annotations

import asyncio
import hashlib
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from woodrat import AsyncLedger, Corrupt, Ledger, NotFound, Refused, Unavailable
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.exchange import lines
from woodrat.exchange.verbs import importer
from woodrat.ledger.moments import last_whole
from woodrat.log.entry import Entry, Envelope, Origin, Write
from woodrat.log.erasure import Erasure
from woodrat.records import replace
from woodrat.testing.clock import FixedClock
from woodrat.testing.crash import Crash, CrashingEngine
from woodrat.testing.ledgers import answers, ledger_on, spelled, told_on

Make = Callable[[], Engine]


@pytest.fixture(params=["memory", "sqlite"])
def make(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Make]:
    """Make empty engines, all of one kind."""
    made: list[Engine] = []

    def one() -> Engine:
        made.append(InMemoryEngine() if request.param == "memory" else SqliteEngine(tmp_path / f"{len(made)}.db"))
        return made[-1]

    yield one
    for engine in made:
        engine.close()


def exported(ledger: Ledger, **given: Any) -> bytes:
    """Return the export of a ledger."""
    out = io.BytesIO()
    ledger.log.export(out, **given)
    return out.getvalue()


def brought(ledger: Ledger, data: bytes) -> Any:
    """Import an export into a ledger."""
    return ledger.log.import_(io.BytesIO(data))


def entries(ledger: Ledger) -> list[Entry]:
    """Return all entries of a ledger."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return list(view.entries())


def held(ledger: Ledger) -> set[tuple[str, bytes | None]]:
    """Return what a ledger holds, as a set of kinds and bodies."""
    return {(entry.kind, entry.body) for entry in entries(ledger)}


def storied(engine: Engine, seed: str = "one") -> Ledger:
    """Return a ledger that holds an entry of every kind but an erasure."""
    ledger = told_on(engine, clock=FixedClock(seed=seed))
    with ledger.run("Where does Ana live?", subject="contact/Ana Rivera") as run:
        seen = run.show("contact/Ana Rivera")
        run.note("looked")
        run.answer(str(seen.fields["city"]))
    ledger.runs.judge(run.id, verdict="good")
    return ledger


def test_a_log_of_two_names_is_cloned_in_any_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that went on under another name, as a clone does, is taken over as it is wherever its batches end."""
    monkeypatch.setattr("woodrat.exchange.verbs.importer.BATCH_ENTRIES", 1)
    clock = FixedClock()
    a, b, c = (ledger_on(InMemoryEngine(), agent=name, clock=clock) for name in "abc")
    a.store({"entity_type": "thing", "id": "1"})
    b.log.sync(a, push=False)
    b.store({"entity_type": "thing", "id": "2"})
    assert c.log.sync(b, push=False).pulled.cloned == 2  # type: ignore[union-attr]
    assert c.fingerprint() == b.fingerprint()


def test_a_line_is_the_entry_as_json_with_its_body_as_it_is(make: Make) -> None:
    """A line holds what `to_json` holds and nothing else, and each entry comes back from it."""
    ledger = storied(make())
    data = exported(ledger)
    assert {entry.kind for entry in entries(ledger)} >= {
        "source",
        "received",
        "tag",
        "run.read",
        "run.judged",
        "schema",
    }
    for line, entry in zip(data.splitlines(), entries(ledger), strict=True):
        assert json.loads(line) == entry.to_json()
        assert list(json.loads(line)) == list(entry.to_json())
        assert Entry.from_json(form.parse(line)) == entry  # type: ignore[arg-type]


def test_an_empty_ledger_becomes_a_clone(make: Make) -> None:
    """Entries, roots and every answer are the same, and exporting again gives the same bytes."""
    ledger, clone = storied(make()), ledger_on(make())
    data = exported(ledger)
    found = brought(clone, data)
    assert (found.cloned, found.merged, found.known) == (len(entries(ledger)), 0, 0)
    assert entries(clone) == entries(ledger)
    assert exported(clone) == data
    assert found.root == ledger.log.export(io.BytesIO()).root
    assert spelled(answers(clone)) == spelled(answers(ledger))
    assert clone.rebuild().agreed
    assert clone.at("@before").fingerprint() == ledger.at("@before").fingerprint()


def test_a_clone_writes_under_a_name_of_its_own(make: Make) -> None:
    """The first write of a clone begins a new log name, the next goes on under it, and old moments stay readable."""
    ledger, clone = storied(make()), ledger_on(make(), clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="two"))
    brought(clone, exported(ledger))
    run = ledger.runs.list().items[0].id
    basis = clone.at(run).position
    end = len(entries(clone))
    with clone.run("Again?", subject="contact/Ana Rivera") as again:
        again.show("contact/Ana Rivera")
    clone.tag("here")
    names = [entry.log for entry in entries(clone)]
    assert set(names[:end]) == {entries(ledger)[0].log} != set(names[end:])
    assert len(set(names[end:])) == 1
    assert clone.at(run).position == basis
    assert clone.at("@before").position == ledger.at("@before").position
    assert clone.at(again.id).position == end - 1
    assert clone.at("@here").position > end
    with clone.context.engine.view(clone.tenant) as view:
        assert view.cloned() == end - 1


def test_a_clone_of_a_clone_knows_all_names(make: Make) -> None:
    """A moment said under any of the names a log went by is found in a clone of it."""
    first = ledger_on(make(), clock=FixedClock(seed="1"))
    for number in range(3):
        first.store({"entity_type": "thing", "id": str(number)})
    first.tag("one", 1)
    second = ledger_on(make(), clock=FixedClock("2026-02-01T00:00:00.000000Z", seed="2"))
    brought(second, exported(first))
    second.store({"entity_type": "thing", "id": "x"})
    second.tag("two", 2)
    third = ledger_on(make(), clock=FixedClock("2026-03-01T00:00:00.000000Z", seed="3"))
    brought(third, exported(second))
    third.store({"entity_type": "thing", "id": "y"})
    third.tag("three", 4)
    assert [third.at(f"@{name}").position for name in ("one", "two", "three")] == [1, 2, 4]
    assert len({entry.log for entry in entries(third)}) == 3
    fourth = ledger_on(make())
    assert brought(fourth, exported(third)).cloned == len(entries(third))


def test_an_interrupted_import_goes_on(make: Make) -> None:
    """Whole writes before the break are there, the same file goes on where it ended, and nothing is there twice."""
    ledger, clone = storied(make()), ledger_on(make())
    data = exported(ledger)
    cut = data[: len(data) // 2]
    with pytest.raises(Refused, match=r"line [0-9]+.*cut off") as refusal:
        brought(clone, cut)
    assert "imported, up to position" in str(refusal.value)
    some = len(entries(clone))
    assert 0 < some < len(entries(ledger))
    assert entries(clone) == entries(ledger)[:some]
    found = brought(clone, data)
    assert (found.known, found.cloned) == (some, len(entries(ledger)) - some)
    assert exported(clone) == data
    again = brought(clone, data)
    assert not again.changed
    assert again.known == len(entries(ledger))


def test_a_clone_follows_by_what_is_new(make: Make) -> None:
    """An export after the position a clone ends at is enough to go on."""
    ledger, clone = storied(make()), ledger_on(make())
    with ledger.context.engine.view(ledger.tenant) as view:
        through = last_whole(view, 10)
    brought(clone, exported(ledger, through=through))
    rest = exported(ledger, after=through)
    assert brought(clone, rest).cloned == len(rest.splitlines())
    assert exported(clone) == exported(ledger)


def test_entries_of_all_kinds_are_merged_into_another_ledger(make: Make) -> None:
    """A ledger that holds something gets all bodies, keeps where each was written, and its own time and positions."""
    ledger = storied(make())
    other = ledger_on(make(), clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="two"))
    other.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Reus"}, observed_at="2024-01-01T00:00:00Z")
    start = len(entries(other))
    found = brought(other, exported(ledger))
    assert found.cloned == 0
    assert found.merged + found.known == len(entries(ledger))
    assert held(other) >= held(ledger)
    origins = {entry.envelope.origin for entry in entries(other)[start:]}
    assert origins <= {Origin(entry.log, entry.position) for entry in entries(ledger)}
    assert None not in origins
    assert all(entry.recorded_at >= "2027" for entry in entries(other))
    assert {entry.log for entry in entries(other)} == {entries(other)[0].log}
    assert other.rebuild().agreed
    assert [run.to_json() for run in other.runs.list().items] != []
    run = ledger.runs.list().items[0].id
    assert other.runs.show(run).answer == ledger.runs.show(run).answer
    again = brought(other, exported(ledger))
    assert not again.changed
    assert again.known == len(entries(ledger))


def test_moments_of_a_merged_log_mean_where_it_came_in(make: Make) -> None:
    """A tag or a run of another log reads where that entry stands here; one of a log that is not here says so."""
    ledger = storied(make())
    other = ledger_on(make(), clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="two"))
    other.store({"entity_type": "contact", "name": "Bob"})
    brought(other, exported(ledger))
    tagged = ledger.at("@before").position
    with ledger.context.engine.view(ledger.tenant) as view:
        log = view.head().log
    place = next(e.position for e in entries(other) if e.envelope.origin == Origin(str(log), tagged))
    assert other.at("@before").position == place
    assert other.at(ledger.runs.list().items[0].id).position >= place
    lost = ledger_on(make(), clock=FixedClock(seed="three"))
    lost.store({"entity_type": "contact", "name": "Cyd"})
    tag = [line for line in exported(ledger).splitlines(keepends=True) if json.loads(line)["kind"] == "tag"]
    brought(lost, b"".join(tag))
    with pytest.raises(NotFound, match=f"@before names position {tagged} of another log, {log}"):
        lost.at("@before")


def test_an_imported_entry_keeps_its_first_origin(make: Make) -> None:
    """What came by way of another ledger still says where it was first written."""
    first, second, third = (ledger_on(make(), clock=FixedClock(seed=seed)) for seed in "123")
    for number, ledger in enumerate((first, second, third)):
        ledger.store({"entity_type": "thing", "id": str(number)})
    brought(second, exported(first))
    brought(third, exported(second))
    log = entries(first)[0].log
    assert Origin(log, 0) in [entry.envelope.origin for entry in entries(third)]


def test_receipts_do_not_travel(make: Make) -> None:
    """An idempotency key that was used elsewhere is free in a clone."""
    ledger, clone = ledger_on(make()), ledger_on(make())
    ledger.store({"entity_type": "thing", "id": "1"}, idempotency_key="k")
    brought(clone, exported(ledger))
    assert not clone.store({"entity_type": "thing", "id": "2"}, idempotency_key="k").repeated


def erased(data: bytes, position: int) -> bytes:
    """Return an export in which one entry is erased."""
    found = []
    for line in data.splitlines():
        value = json.loads(line)
        if value["position"] == position:
            value["nonce"] = value["body"] = None
        found.append(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return b"".join(found)


def test_what_is_erased_stays_erased_in_a_clone(make: Make) -> None:
    """An entry without a body is taken over without one, the root is the same, and its claims are gone."""
    ledger, clone = ledger_on(make()), ledger_on(make())
    ledger.store({"entity_type": "thing", "id": "1", "city": "Vic"}, observed_at="2025-01-01T00:00:00Z")
    ledger.store({"entity_type": "thing", "id": "1", "city": "Berga"}, observed_at="2025-02-01T00:00:00Z")
    data = erased(exported(ledger), 1)
    found = brought(clone, data)
    assert found.root == ledger.log.export(io.BytesIO()).root
    assert clone.show("thing/1").fields["city"] == "Vic"
    assert exported(clone) == data
    assert clone.rebuild().agreed
    other = ledger_on(make(), clock=FixedClock(seed="two"))
    other.store({"entity_type": "thing", "id": "2"})
    assert brought(other, data).erased == 1


def erasure(ledger: Ledger, position: int, positions: list[list[int]]) -> bytes:
    """Return the line of an erasure that could stand at a position."""
    log, at = entries(ledger)[0].log, "2026-06-01T00:00:00.000000Z"
    ranges = tuple((first, last) for first, last in positions)
    body = Erasure("a", at, log, "entity", "asked", ranges, ("00",), ()).body()
    write = Write(log, position, at, [("erasure", body)], [b"n" * 16], "", b"r" * 32, b"q" * 16)
    return lines.line(write[0])


def test_erasures_that_cannot_be_carried_out_are_refused(make: Make) -> None:
    """Without the erasure key nothing is merged in that another ledger was asked to forget; a clone needs none."""
    ledger, clone, other = ledger_on(make()), ledger_on(make()), ledger_on(make(), clock=FixedClock(seed="two"))
    ledger.store({"entity_type": "thing", "id": "1"})
    other.store({"entity_type": "thing", "id": "2"})
    data = exported(ledger)
    late = erasure(ledger, 1, [[0, 0]])
    with pytest.raises(Refused, match=r"position 1 of .* is an erasure, and no erasure key is in .*Hand over"):
        brought(other, data + late)
    assert [entry.kind for entry in entries(other)] == ["observation"]
    brought(clone, data)
    assert brought(clone, data + late).cloned == 1
    assert [entry.erased for entry in entries(clone)] == [True, False]
    assert clone.query().items == ()
    assert clone.rebuild().agreed
    assert clone.verify(deep=True).sound
    fresh = ledger_on(make())
    assert brought(fresh, erased(data, 0) + late).cloned == 2


def test_an_erasure_of_another_shape_is_refused(make: Make) -> None:
    """An erasure that cannot be read is refused with what is wrong, and later writes are not stopped by it."""
    ledger, other = ledger_on(make()), ledger_on(make(), clock=FixedClock(seed="two"))
    ledger.store({"entity_type": "thing", "id": "1"})
    body = form.serialise({"log": entries(ledger)[0].log, "positions": [[0, 0]]})
    write = Write(
        *(entries(ledger)[0].log, 1, "2026-06-01T00:00:00.000000Z", [("erasure", body)], [b"n" * 16]),
        *("", b"r" * 32, b"q" * 16),
    )
    with pytest.raises(Refused, match="expected the body of an erasure"):
        brought(other, exported(ledger) + lines.line(write[0]))
    other.store({"entity_type": "thing", "id": "3"})


@pytest.mark.parametrize("verb", ["append", "keep", "put"])
def test_a_crash_leaves_whole_batches(make: Make, verb: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An import that dies at any step leaves a clone of some whole writes, and the same file goes on after them."""
    monkeypatch.setattr(importer, "BATCH_ENTRIES", 7)
    ledger, engine = storied(make()), CrashingEngine(make())
    clone, data = ledger_on(engine), exported(ledger)
    for passing in (0, 3):
        engine.arm(verb, passing)
        with pytest.raises(Crash):
            brought(clone, data)
        engine.disarm()
        taken = entries(clone)
        assert taken == entries(ledger)[: len(taken)]
        if taken:
            first = taken[taken[-1].envelope.write]
            assert first.position + (first.envelope.length or 0) == len(taken)
    brought(clone, data)
    assert exported(clone) == data
    assert clone.rebuild().agreed


def test_an_engine_that_gives_up_says_how_far_it_came(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that fills up in the middle leaves the batches before it, says so, and the same call goes on."""

    class Full(Unavailable):
        def __init__(self, *_: object) -> None:
            super().__init__("the disk is full")

    monkeypatch.setattr(importer, "BATCH_ENTRIES", 1)
    ledger, engine = ledger_on(make()), CrashingEngine(make(), Full)
    for number in range(4):
        ledger.store({"entity_type": "thing", "id": str(number)})
    clone = ledger_on(engine)
    engine.arm("append", 2)
    with pytest.raises(Unavailable, match=r"Entries up to position 1 were imported.*the disk is full"):
        brought(clone, exported(ledger))
    assert entries(clone) == entries(ledger)[:2]
    assert brought(clone, exported(ledger)).cloned == 2


def test_somebody_who_writes_meanwhile_makes_it_a_merge(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once this ledger has written itself what is left of an import is merged in, and nothing is lost."""
    monkeypatch.setattr(importer, "BATCH_ENTRIES", 5)
    ledger, other = storied(make()), ledger_on(make(), clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="own"))
    data = exported(ledger)

    class Stream(io.BytesIO):
        count = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            self.count += 1
            if self.count == 30:
                other.store({"entity_type": "thing", "id": "meanwhile"})
            return super().readline(size)

    found = other.log.import_(Stream(data))
    assert found.cloned
    assert found.merged
    assert found.cloned + found.merged + found.known == len(entries(ledger))
    assert held(other) >= held(ledger)
    assert other.rebuild().agreed
    assert ledger.log.sync(other).same


def test_coroutines_exchange_too(make: Make) -> None:
    """The verbs are there as coroutines, and an async ledger can be synced with."""

    async def exchange() -> None:
        one, two = (AsyncLedger(ledger_on(make(), clock=FixedClock(seed=seed))) for seed in "12")
        await one.store({"entity_type": "thing", "id": "1"})
        await two.log.import_(io.BytesIO(exported(one.target)))
        await two.store({"entity_type": "thing", "id": "2"})
        synced = await one.log.sync(two)
        assert synced.same
        assert synced.pulled is not None
        assert synced.pulled.merged == 1

    asyncio.run(exchange())


# Bad input


def damaged(data: bytes, number: int, change: Callable[[dict[str, Any]], Any]) -> bytes:
    """Return an export with one line changed."""
    found = data.splitlines(keepends=True)
    value = json.loads(found[number - 1])
    change(value)
    found[number - 1] = json.dumps(value).encode() + b"\n"
    return b"".join(found)


BAD: list[tuple[str, Callable[[bytes], bytes], type[Exception], str]] = [
    ("a line that is no JSON", lambda data: b"hello\n" + data, Refused, "line 1: not an exported entry"),
    ("a line that is no entry", lambda data: b"[]\n" + data, Refused, "line 1: expected an exported entry"),
    ("an empty line", lambda data: b"\n" + data, Refused, "line 1: not an exported entry"),
    ("a key too many", lambda data: damaged(data, 2, lambda v: v.update(x=1)), Refused, "line 2/x: is not part"),
    (
        "a changed body",
        lambda d: damaged(d, 3, lambda v: v["body"].update(agent="eve")),
        Corrupt,
        "line 3: entry 2: nonce",
    ),
    ("another format", lambda data: damaged(data, 2, lambda v: v.update(format=1)), Refused, "line 2/format"),
    (
        "a gap",
        lambda data: b"".join(data.splitlines(keepends=True)[:2] + data.splitlines(keepends=True)[3:]),
        Refused,
        "line 3: position 3 of .* follows position 1",
    ),
    ("two logs after each other", lambda data: data + data, Refused, "position 0 of .* follows position"),
    (
        "half a write",
        lambda data: b"".join(data.splitlines(keepends=True)[1:]),
        Refused,
        "line 1: position 1 stands inside|at position 1, and this ledger is empty",
    ),
    (
        "a clock that goes back",
        lambda data: damaged(data, 4, lambda v: v.update(recorded_at="2020-01-01T00:00:00.000000Z")),
        Refused,
        "line 4: position 3 was recorded at 2020",
    ),
    ("a body of another kind", lambda data: damaged(data, 2, lambda v: v.update(kind="tag")), Refused, "line 2/body/"),
]


@pytest.mark.parametrize(("change", "error", "words"), [bad[1:] for bad in BAD], ids=[bad[0] for bad in BAD])
def test_a_line_that_does_not_fit_is_named(
    make: Make, change: Callable[[bytes], bytes], error: type[Exception], words: str
) -> None:
    """A damaged export is refused at its line, what came before is whole, and the right file goes on from there."""
    ledger = ledger_on(make())
    for number in range(6):
        ledger.store({"entity_type": "thing", "id": str(number)})
    data = exported(ledger)
    target = ledger_on(make())
    with pytest.raises(error, match=words) as raised:
        brought(target, change(data))
    assert "imported" in str(raised.value)
    assert entries(target) == entries(ledger)[: len(entries(target))]
    assert exported(ledger) == data
    brought(target, data)
    assert exported(target) == data


def test_a_changed_byte_is_found_on_merging_too(make: Make) -> None:
    """A body that is not what its line committed to is not merged in."""
    ledger, other = ledger_on(make()), ledger_on(make(), clock=FixedClock(seed="two"))
    ledger.store({"entity_type": "thing", "id": "1"})
    other.store({"entity_type": "thing", "id": "2"})
    before = exported(other)
    with pytest.raises(Corrupt, match="line 1"):
        brought(other, exported(ledger).replace(b'"id":"1"', b'"id":"3"'))
    assert exported(other) == before


def test_files_that_cannot_be_read_or_written_are_named(tmp_path: Path) -> None:
    """A missing file, a folder, a database, a target that is there: each is said, and nothing is touched."""
    ledger = ledger_on(SqliteEngine(tmp_path / "a.db"))
    ledger.store({"entity_type": "thing", "id": "1"})
    with pytest.raises(NotFound, match="There is no file"):
        ledger.log.import_(tmp_path / "none.jsonl")
    with pytest.raises(Unavailable, match="cannot be read"):
        ledger.log.import_(tmp_path)
    with pytest.raises(Refused, match="is a database"):
        ledger.log.import_(tmp_path / "a.db")
    with pytest.raises(Refused, match="expected a path"):
        ledger.log.import_(7)  # type: ignore[arg-type]
    out = tmp_path / "log.jsonl"
    out.write_text("mine")
    with pytest.raises(Refused, match="already exists"):
        ledger.log.export(out)
    assert out.read_text() == "mine"
    with pytest.raises(Refused, match="is a directory"):
        ledger.log.export(tmp_path)
    with pytest.raises(Refused, match="does not exist"):
        ledger.log.export(tmp_path / "none" / "log.jsonl")
    with pytest.raises(Refused, match="the log ends at"):
        ledger.log.export(tmp_path / "b.jsonl", after=99)
    found = ledger.log.export(out, force=True)
    assert hashlib.sha256(out.read_bytes()).hexdigest() == found.sha256
    assert out.stat().st_size == found.written_bytes
    assert sorted(path.name for path in tmp_path.iterdir() if "jsonl" in path.name) == ["log.jsonl"]


def test_a_disk_that_is_full_leaves_no_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An export that cannot be finished leaves what was there, and nothing half."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store({"entity_type": "thing", "id": "1"})
    out = tmp_path / "log.jsonl"
    out.write_text("old")

    def full(entry: Entry) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lines, "line", full)
    with pytest.raises(Unavailable, match=r"No space left on device.*Nothing was exported"):
        ledger.log.export(out, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["log.jsonl"]
    assert out.read_text() == "old"


def test_an_export_is_resumed(tmp_path: Path) -> None:
    """A file that was cut short, or that the log has outgrown, gets the rest, and is what a whole export is."""
    ledger = storied(InMemoryEngine())
    whole = exported(ledger)
    out = tmp_path / "log.jsonl"
    for size in (0, 1, len(whole) // 3, len(whole) - 1, len(whole)):
        out.write_bytes(whole[:size])
        found = ledger.log.export(out, resume=True)
        assert out.read_bytes() == whole
        assert found.through == len(entries(ledger)) - 1
    out.write_bytes(exported(storied(InMemoryEngine(), "two")))
    with pytest.raises(Refused, match="which differs from this log"):
        ledger.log.export(out, resume=True)
    out.write_bytes(b"something else\n")
    with pytest.raises(Refused, match="not an exported entry"):
        ledger.log.export(out, resume=True)
    assert out.read_bytes() == b"something else\n"


def test_an_export_never_parts_a_write() -> None:
    """A bound inside a write is refused, naming both ends of the write."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store([{"entity_type": "thing", "id": str(number)} for number in range(3)])
    for bound in ({"through": 1}, {"after": 0}):
        with pytest.raises(Refused, match="inside the write from 0 to 2"):
            ledger.log.export(io.BytesIO(), **bound)  # type: ignore[arg-type]


# The format


def test_an_origin_is_committed_to_and_ordinary_leaves_are_as_before() -> None:
    """An origin is part of the leaf of an entry that has one, and of no other."""
    at, items, nonces = "2026-06-01T00:00:00.000000Z", [("tag", b"{}")] * 2, [b"a" * 16, b"b" * 16]
    plain, origin = Write("log_a", 3, at, items, nonces, "", b"r" * 32, b"q" * 16), Origin("log_b", 7)
    moved = Write("log_a", 3, at, items, nonces, "", b"r" * 32, b"q" * 16, [None, origin])
    assert plain.leaves[0] == moved.leaves[0]
    assert plain.leaves[1] != moved.leaves[1]
    assert moved.leaves == [entry.leaf() for entry in moved]
    assert json.loads(moved[1].leaf_data())["envelope"] == {"origin": {"log": "log_b", "position": 7}, "write": 3}
    assert Entry.from_json(moved[1].to_json()) == moved[1]
    assert Write.of(list(moved)) == moved
    assert Write.of(list(moved)).leaves == moved.leaves
    wrong = replace(moved[1], envelope=Envelope(3, origin=Origin("", -1)))
    with pytest.raises(Corrupt, match="cannot be from position -1"):
        wrong.check()
    with pytest.raises(Refused, match="/envelope/origin"):
        Entry.from_json({**moved[1].to_json(), "envelope": {"write": 3, "origin": {"log": "x"}}})
