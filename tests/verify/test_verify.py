"""Verifying works beside writers and on read-only files, and says what it could not check."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

import woodrat
from woodrat import Refused
from woodrat.canon import form
from woodrat.context import Context
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import own_policy
from woodrat.ledger.write import Writer
from woodrat.log.check import PART
from woodrat.merge import BUILTIN
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

RECORD: Final[dict[str, Any]] = {"entity_type": "memo", "id": "1", "text": "x"}


def many(ledger: woodrat.Ledger, count: int) -> None:
    """Say something of many entities."""
    for start in range(0, count, 1_000):
        ledger.store([{**RECORD, "id": f"{number}"} for number in range(start, min(start + 1_000, count))])


def test_a_long_log_says_how_far_it_is(tmp_path: Path) -> None:
    """A log of several parts is verified, progress only grows and reaches its end, and no file is left."""
    engine = SqliteEngine(tmp_path / "l.db")
    ledger = ledger_on(engine)
    many(ledger, PART + 2_000)
    told: list[tuple[int, int]] = []
    found = ledger.verify(progress=lambda done, whole: told.append((done, whole)))
    assert found.sound
    assert found.entries == PART + 2_000
    assert told[-1] == (found.entries, found.entries)
    assert told == sorted(told)
    assert len(told) > 3
    assert [path.name for path in tmp_path.iterdir() if "scratch" in path.name] == []
    engine.close()


def test_too_little_disk_space_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification that finds too little space for its scratch file says how much it takes, before it begins."""
    ledger = ledger_on(InMemoryEngine())
    many(ledger, 10)
    usage = shutil.disk_usage(".")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_000))
    with pytest.raises(
        woodrat.Unavailable, match=r"takes about [0-9,]+ bytes .* which has 1,000\. Nothing was verified"
    ):
        ledger.verify()


def test_nothing_is_found_beside_a_writer_and_a_rebuild(tmp_path: Path) -> None:
    """While another thread writes, rebuilds and searches, a verification finds nothing."""
    engine = SqliteEngine(tmp_path / "l.db")
    ledger, other = ledger_on(engine, agent="a"), ledger_on(engine, agent="b", clock=FixedClock(seed="b"))
    many(ledger, 300)
    done = threading.Event()
    failed: list[BaseException] = []

    def write() -> None:
        number = 0
        try:
            while not done.is_set():
                number += 1
                other.store([{**RECORD, "id": f"{n}", "text": f"{number}"} for n in range(number % 7, 300, 7)])
                other.correct(f"memo/{number % 300}", {"text": "corrected"})
                if number % 5 == 0:
                    other.fingerprint()
                    other.search("corrected")
                    other.rebuild()
        except BaseException as error:
            failed.append(error)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(4):
            reader = SqliteEngine(tmp_path / "l.db", readonly=True)
            found = ledger_on(reader).verify(deep=True)
            reader.close()
            assert found.sound, found.damage
    finally:
        done.set()
        thread.join()
    assert not failed
    engine.close()


def test_a_read_only_file_is_verified_and_left_as_it_is(tmp_path: Path) -> None:
    """Verifying writes nothing: the file's bytes are the same afterwards."""
    path = tmp_path / "l.db"
    with woodrat.open(path) as ledger:
        ledger.store(RECORD)
        ledger.fingerprint()
    before = path.read_bytes()
    path.chmod(0o400)
    with woodrat.open(path, readonly=True) as ledger:
        assert ledger.verify(deep=True).sound
    assert path.read_bytes() == before


def test_an_erased_body_is_lawful_where_an_erasure_names_it(tmp_path: Path) -> None:
    """A body that an erasure names may be gone: the log is sound, and once derived data is made again, all of it is."""
    path = tmp_path / "l.db"
    engine = SqliteEngine(path)
    ledger = ledger_on(engine, "default")
    ledger.store([{**RECORD, "id": f"{number}"} for number in range(3)])
    with engine.view(ledger.tenant) as view:
        log = view.head().log
    body = form.encode({"log": log, "positions": [[1, 1]]})
    writer = Writer(Context(engine, ledger.tenant, BUILTIN, FixedClock("2027-01-01T00:00:00.000000Z"), "a"))
    writer.write("erase", {}, lambda draft: draft.add("erasure", body))
    assert [(one.damage, one.position) for one in ledger.verify().damage] == [("erasure", 1)]
    engine.close()
    raw = apsw.Connection(str(path))
    trigger = raw.execute("SELECT sql FROM sqlite_schema WHERE name = 'body_no_update'").get
    raw.execute("DROP TRIGGER body_no_update")
    raw.execute("UPDATE body SET nonce = NULL, body = NULL WHERE id & 0xFFFF = 1")
    raw.execute(trigger)
    raw.close()
    with woodrat.open(path) as ledger:
        found = ledger.verify()
        assert not found.log_damaged
        assert not found.sound
        ledger.rebuild()
        found = ledger.verify()
        assert found.sound, found.damage
        assert found.observations == 2


def test_what_cannot_be_folded_is_named(tmp_path: Path) -> None:
    """A type whose merge policy is not loaded is named as unchecked; the log and the rest are verified."""
    path = tmp_path / "l.db"
    mine = own_policy("mine", 1, lift=lambda claim: claim.value, join=lambda a, b: max(a, b), code="00" * 32)  # type: ignore[type-var]
    schema = {"title": "thing", "properties": {"n": {"x-woodrat-merge": mine.name.to_json()}}}
    with woodrat.open(path, policies=[mine]) as ledger:
        ledger.schemas.register(schema)
        ledger.store([{"entity_type": "thing", "id": "1", "n": 3}, RECORD])
        assert ledger.verify().sound
    with woodrat.open(path) as ledger:
        found = ledger.verify()
        assert found.sound
        assert found.fingerprint is None
        assert len(found.unchecked) == 1
        assert found.unchecked[0].startswith("thing: Merge policy mine")


def test_vectors_of_another_embedder_are_named_or_checked() -> None:
    """Vectors whose embedder is not here are named as unchecked, and compared when it is given."""

    class Lengths:
        id = "lengths-1"
        dimension = 2

        def embed(self, texts: list[str]) -> list[list[float]]:
            return [[float(len(text)), 1.0] for text in texts]

    ledger = ledger_on(InMemoryEngine())
    ledger.store(RECORD)
    with ledger.run("Is it near?", subject="memo/1") as run:
        run.answer("It is.")
    ledger.reindex(Lengths())  # type: ignore[arg-type]
    found = ledger.verify(deep=True)
    assert found.sound
    assert [text.split(":")[0] for text in found.unchecked] == ["vectors of lengths-1"]
    found = ledger.verify(deep=True, embedder=Lengths())  # type: ignore[arg-type]
    assert found.sound
    assert not found.unchecked


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"checkpoints": [7]}, "checkpoints/0: not a checkpoint"),
        ({"checkpoints": [(1, "zz" * 32)]}, "checkpoints/0"),
        ({"checkpoints": [(-1, "00" * 32), "nonsense"]}, "checkpoints/1"),
        ({"checkpoints": [(1, "00")]}, "the root is"),
    ],
)
def test_bad_arguments_are_refused(given: dict[str, Any], says: str) -> None:
    """Whatever is no checkpoint is refused by name, all of it at once."""
    with pytest.raises(Refused, match=says) as refused:
        ledger_on(InMemoryEngine()).verify(**given)
    assert "Nothing was verified." in str(refused.value)


def test_the_outcome_is_plain_json(tmp_path: Path) -> None:
    """The outcome and each finding are plain JSON, with the first bad position and what to do."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store(RECORD)
    found = ledger.verify(checkpoints=[(1, "00" * 32)])
    value = found.to_json()
    assert form.decode(form.serialise(value)) == value
    assert (value["sound"], value["log_damaged"], value["first"]) == (False, True, 0)
    assert value["damage"][0]["damage"] == "forked"
    assert str(found.damage[0]).startswith("position 0: a checkpoint of size 1 has another root")
