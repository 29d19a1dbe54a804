"""Backups under load, restoring through any position, and syncing files."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import woodrat
from woodrat import Corrupt, NotFound, Refused, Unavailable
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite import backup
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.exchange.verbs.copy import copy_log
from woodrat.exchange.verbs.export import root_at
from woodrat.ledger.moments import erased_here
from woodrat.ledger.write import Writer
from woodrat.log.entry import Entry, Origin
from woodrat.log.erasure import Erasure
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on, told_on

WRITER = """
import sys, woodrat
ledger = woodrat.open(sys.argv[1])
number = 0
print("writing", flush=True)
while True:
    number += 1
    ledger.store([{"entity_type": "thing", "id": f"{number}-{part}", "city": "Vic"} for part in range(3)])
"""


def entries(engine: Engine, tenant: str) -> list[Entry]:
    """Return all entries of a tenant."""
    with engine.view(TenantId(tenant)) as view:
        return list(view.entries())


def test_a_backup_under_load_is_a_prefix(tmp_path: Path) -> None:
    """While a process writes, a backup holds whole writes, and its root is the one the ledger had at that size."""
    path = tmp_path / "agents.db"
    with woodrat.open(path) as ledger:
        ledger.store({"entity_type": "thing", "id": "0"})
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
        try:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "writing\n"
            backups = [ledger.log.backup(tmp_path / f"backup-{number}.db") for number in range(3)]
        finally:
            writer.kill()
            writer.communicate()
        sizes = []
        for found in backups:
            size, root = found.tenants["default"]["size"], found.tenants["default"]["root"]
            sizes.append(size)
            with ledger.context.engine.view(TenantId("default")) as view:
                assert root_at(view, size) == root
            with woodrat.open(found.path, readonly=True) as copy:
                taken = entries(copy.context.engine, "default")
                assert len(taken) == size
                assert taken[-1].position == size - 1
                first = taken[taken[-1].envelope.write]
                assert first.position + (first.envelope.length or 0) == size, "the last write is whole"
                assert copy.at("now").fingerprint() == ledger.at(size - 1).fingerprint()
        assert sizes == sorted(sizes)
    assert not [name for name in os.listdir(tmp_path) if ".part" in name]


def test_a_backup_holds_all_tenants_and_goes_on_under_a_new_name(tmp_path: Path) -> None:
    """A backup can be opened as it is; what is written there is never taken for the log that went on."""
    with woodrat.open(tmp_path / "a.db", tenant="one") as one, woodrat.open(tmp_path / "a.db", tenant="two") as two:
        one.store({"entity_type": "thing", "id": "1"}, idempotency_key="k")
        two.store({"entity_type": "thing", "id": "2"})
        found = one.log.backup(tmp_path / "b.db")
        assert sorted(found.tenants) == ["one", "two"]
        assert found.written_bytes == (tmp_path / "b.db").stat().st_size
        log = entries(one.context.engine, "one")[0].log
    for tenant in ("one", "two"):
        with woodrat.open(tmp_path / "b.db", tenant=tenant) as copy:
            assert copy.rebuild().agreed
            copy.store({"entity_type": "thing", "id": "3"})
            assert entries(copy.context.engine, tenant)[-1].log not in (
                log,
                entries(copy.context.engine, tenant)[0].log,
            )
    assert not [name for name in os.listdir(tmp_path) if "part" in name]


def test_a_backup_replaces_nothing_unless_told(tmp_path: Path) -> None:
    """A file that is there stays, the ledger itself is never the target, and a memory ledger has no file."""
    ledger = ledger_on(SqliteEngine(tmp_path / "a.db"))
    ledger.store({"entity_type": "thing", "id": "1"})
    target = tmp_path / "b.db"
    target.write_text("mine")
    with pytest.raises(Refused, match="already exists"):
        ledger.log.backup(target)
    assert target.read_text() == "mine"
    ledger.log.backup(target, force=True)
    assert target.read_bytes().startswith(b"SQLite format 3\0")
    with pytest.raises(Refused, match="is the ledger itself"):
        ledger.log.backup(tmp_path / "a.db", force=True)
    with pytest.raises(Refused, match="does not exist"):
        ledger.log.backup(tmp_path / "none" / "b.db")
    with pytest.raises(Refused, match="not in a file"):
        ledger_on(InMemoryEngine()).log.backup(tmp_path / "c.db")


def test_a_backup_that_goes_wrong_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk or a copy that is not what was copied leaves the old backup and no half one."""
    ledger = ledger_on(SqliteEngine(tmp_path / "a.db"))
    ledger.store({"entity_type": "thing", "id": "1"})
    ledger.log.backup(tmp_path / "b.db")
    old = (tmp_path / "b.db").read_bytes()

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(backup, "copy_pages", full)
        with pytest.raises(Unavailable, match="No space left"):
            ledger.log.backup(tmp_path / "b.db", force=True)
    with monkeypatch.context() as patch:
        patch.setattr(backup, "check_pages", lambda path: "page 7 is never used")
        with pytest.raises(Corrupt, match="page 7 is never used"):
            ledger.log.backup(tmp_path / "b.db", force=True)
    assert (tmp_path / "b.db").read_bytes() == old
    assert not [name for name in os.listdir(tmp_path) if "part" in name]


def test_a_backup_is_restored_through_any_position(tmp_path: Path) -> None:
    """`copy` gives the fingerprint that the as-of gives, and a whole file that goes on under a new log name."""
    engine = SqliteEngine(tmp_path / "a.db")
    ledger = told_on(engine)
    ledger.log.backup(tmp_path / "b.db")
    for through in ("@before", 20, "now"):
        target = tmp_path / f"{str(through).strip('@')}.db"
        found = woodrat.copy(tmp_path / "b.db", target, tenant="t", through=through)
        assert found.fingerprint == ledger.at(through).fingerprint()
        with woodrat.open(target, tenant="t") as restored:
            assert restored.fingerprint() == found.fingerprint
            assert restored.rebuild().agreed
            assert entries(restored.context.engine, "t") == entries(engine, "t")[: found.through + 1]
            restored.store({"entity_type": "thing", "id": "new"})
            assert len({entry.log for entry in entries(restored.context.engine, "t")}) == 2
    assert not [name for name in os.listdir(tmp_path) if "part" in name]


def test_a_copy_is_refused_where_it_would_lose_something(tmp_path: Path) -> None:
    """A target that holds entries, the source itself, half a write, a file that is not there: each is refused."""
    with woodrat.open(tmp_path / "a.db") as ledger:
        ledger.store([{"entity_type": "thing", "id": str(number)} for number in range(3)])
    with woodrat.open(tmp_path / "b.db") as other:
        other.store({"entity_type": "thing", "id": "1"})
    with pytest.raises(Refused, match="holds 1 entries of default already"):
        woodrat.copy(tmp_path / "a.db", tmp_path / "b.db")
    with pytest.raises(Refused, match="is the ledger to copy"):
        woodrat.copy(tmp_path / "a.db", tmp_path / "a.db")
    with pytest.raises(Refused, match="inside the write from 0 to 2"):
        woodrat.copy(tmp_path / "a.db", tmp_path / "c.db", through=1)
    with pytest.raises(Refused, match="does not exist"):
        woodrat.copy(tmp_path / "none.db", tmp_path / "c.db")
    with pytest.raises(Refused, match="in memory is gone"):
        woodrat.copy(tmp_path / "a.db", ":memory:")
    assert sorted(name for name in os.listdir(tmp_path) if name.startswith("c.db")) == []


def erasure_body(log: str, positions: list[tuple[int, int]]) -> bytes:
    """Return the body of an erasure."""
    at = "2025-03-01T00:00:00.000000Z"
    return Erasure("a", at, log, "entity", "asked", tuple(positions), (), ()).body()


def test_erasures_made_later_come_along() -> None:
    """A copy through a position before an erasure lacks what was erased, and says why, from its beginning on."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store({"entity_type": "thing", "id": "1", "city": "Vic"}, observed_at="2025-01-01T00:00:00Z")
    ledger.store({"entity_type": "thing", "id": "1", "city": "Berga"}, observed_at="2025-02-01T00:00:00Z")
    log = entries(ledger.context.engine, "t")[0].log
    body = erasure_body(log, [(1, 1)])
    Writer(ledger.context).write("erase", {}, lambda draft: draft.add("erasure", body))
    with ledger.context.engine.transaction(ledger.tenant) as write:
        write.erase([1], [])
    target = ledger_on(InMemoryEngine(), clock=FixedClock(seed="copy"))
    found = copy_log(ledger.context.engine, TenantId("t"), target.context, 1)
    assert (found.through, found.erasures) == (1, 1)
    copied = entries(target.context.engine, "t")
    assert copied[1].erased
    assert copied[2].kind == "erasure"
    with target.context.engine.view(target.tenant) as view:
        assert erased_here(view, copied[2]) == [(1, 1)]
    assert copied[2].envelope.origin == Origin(log, 2)
    assert target.show("thing/1").fields["city"] == "Vic"
    assert found.fingerprint == target.fingerprint()


def test_an_erasure_of_another_log_names_nothing_here() -> None:
    """An erasure that was merged in speaks of positions of its own log; they are not taken for those of this one."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store({"entity_type": "thing", "id": "1"})
    body = erasure_body("log_far", [(0, 0)])
    Writer(ledger.context).write("import", {}, lambda draft: draft.add("erasure", body, None, Origin("log_far", 4)))
    ledger.store({"entity_type": "thing", "id": "2"})
    with ledger.context.engine.view(ledger.tenant) as view:
        assert erased_here(view, entries(ledger.context.engine, "t")[1]) == []
    target = ledger_on(InMemoryEngine(), clock=FixedClock(seed="copy"))
    assert copy_log(ledger.context.engine, TenantId("t"), target.context, 0).erasures == 0
    clone = ledger_on(InMemoryEngine(), clock=FixedClock(seed="clone"))
    assert clone.log.sync(ledger, push=False).same


# Sync


def test_two_files_are_synced_in_both_directions(tmp_path: Path) -> None:
    """After a sync both hold the same, one direction moves one side alone, and doing it again moves nothing."""
    with woodrat.open(tmp_path / "a.db", agent="a") as a, woodrat.open(tmp_path / "b.db", agent="b") as b:
        a.store({"entity_type": "contact", "name": "Ana", "city": "Vic"})
        b.store({"entity_type": "contact", "name": "Bob", "city": "Reus"})
        pulled = a.log.sync(tmp_path / "b.db", push=False)
        assert pulled.pulled is not None
        assert pulled.pulled.merged == 1
        assert pulled.pushed is None
        assert not pulled.same
        both = a.log.sync(tmp_path / "b.db")
        assert both.same
        assert both.fingerprint == b.fingerprint()
        again = a.log.sync(str(tmp_path / "b.db"))
        assert again.pulled is not None
        assert again.pushed is not None
        assert (again.pulled.entries, again.pushed.entries) == (0, 0), "how far it came is remembered"
        a.rebuild()
        assert not a.log.sync(b).pulled.changed, "and safe to lose"  # type: ignore[union-attr]


def test_a_log_that_was_cut_back_is_taken_from_its_beginning(tmp_path: Path) -> None:
    """A file that was put back and went on otherwise under the same name is not taken for what was seen of it."""
    with woodrat.open(tmp_path / "b.db") as b:
        b.store({"entity_type": "thing", "id": "1"})
    old = (tmp_path / "b.db").read_bytes()
    with woodrat.open(tmp_path / "a.db") as a:
        a.store({"entity_type": "thing", "id": "0"})
        for part in ("x", "y"):
            (tmp_path / "b.db").write_bytes(old)
            with woodrat.open(tmp_path / "b.db") as b:
                b.store({"entity_type": "thing", "id": part})
            a.log.sync(tmp_path / "b.db", push=False)
        assert {str(found.entity) for found in a.query(entity_type="thing").items} == {f"thing/{k}" for k in "01xy"}


def test_an_exported_log_is_only_taken(tmp_path: Path) -> None:
    """Syncing with a file of lines imports it; nothing can be pushed to it."""
    a, b = (ledger_on(InMemoryEngine(), agent=name, clock=FixedClock(seed=name)) for name in "ab")
    for number, ledger in enumerate((a, b)):
        ledger.store({"entity_type": "thing", "id": str(number)})
    b.log.export(tmp_path / "b.jsonl")
    synced = a.log.sync(tmp_path / "b.jsonl")
    assert synced.pulled is not None
    assert synced.pulled.merged == 1
    assert synced.pushed is None
    with pytest.raises(Refused, match="cannot be pushed to"):
        a.log.sync(tmp_path / "b.jsonl", pull=False)


def test_what_cannot_be_synced_with_is_said(tmp_path: Path) -> None:
    """Itself, nothing, an address that is none, a file that is not there: each is refused by name."""
    with woodrat.open(tmp_path / "a.db") as ledger:
        ledger.store({"entity_type": "thing", "id": "1"})
        for other, words in (
            ("https://user@example.com/v1", "contains a user, a query or a fragment"),
            ("http://", "Send an address such as"),
            (tmp_path / "a.db", "is this ledger itself"),
            (ledger, "is this ledger itself"),
            (":memory:", ":memory: ledger is empty"),
            (7, "expected a path"),
        ):
            with pytest.raises(Refused, match=words):
                ledger.log.sync(other)  # type: ignore[arg-type]
        with pytest.raises(NotFound, match="There is no file"):
            ledger.log.sync(tmp_path / "none.db")
        with pytest.raises(Refused, match="both directions"):
            ledger.log.sync(tmp_path / "b.db", pull=False, push=False)


def test_a_clone_goes_on_by_sync(tmp_path: Path) -> None:
    """A clone that wrote nothing follows its origin position by position; once it wrote, it merges."""
    a = ledger_on(SqliteEngine(tmp_path / "a.db"), clock=FixedClock(seed="a"))
    a.store({"entity_type": "thing", "id": "1"})
    b = ledger_on(SqliteEngine(tmp_path / "b.db"), clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="b"))
    assert b.log.sync(a, push=False).pulled.cloned == 1  # type: ignore[union-attr]
    a.store({"entity_type": "thing", "id": "2"})
    assert b.log.sync(a, push=False).pulled.cloned == 1  # type: ignore[union-attr]
    b.store({"entity_type": "thing", "id": "3"})
    synced = b.log.sync(a)
    assert synced.same
    assert synced.pushed is not None
    assert synced.pushed.merged == 1
    a.store({"entity_type": "thing", "id": "4"})
    found = b.log.sync(a, push=False).pulled
    assert found is not None
    assert (found.cloned, found.merged) == (0, 1)


def test_a_tenant_that_is_not_there_is_not_copied(tmp_path: Path) -> None:
    """A name that the source does not have is not found, with those it has, and leaves no empty ledger behind."""
    with woodrat.open(tmp_path / "a.db", tenant="lending") as ledger:
        ledger.store({"entity_type": "thing", "id": "1"})
    with pytest.raises(NotFound, match=r"enant default does not exist in .*; it holds lending\. Nothing was copied"):
        woodrat.copy(tmp_path / "a.db", tmp_path / "b.db")
    assert not (tmp_path / "b.db").exists()
    assert woodrat.copy(tmp_path / "a.db", tmp_path / "b.db", tenant="lending").entries == 1
