"""A file that is put back serves nothing that was erased, and what one log erased is no concern of another."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Final

import pytest

import woodrat
from woodrat import Ledger, Unavailable
from woodrat.cli.main import main
from woodrat.log.erasure import Erasure
from woodrat.proofs.verbs.keys import Keys
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

PERSON: Final = "contact/zoe@zweig.example"
RECORD: Final = {"entity_type": "contact", "email": "zoe@zweig.example", "name": "Zoe Zweigmann"}
AT: Final = "2026-01-01T00:00:00Z"


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """The keys folder that all ledgers here share."""
    folder = tmp_path / "keys"
    make_keys(folder, FixedClock())
    return folder


def opened(db: Path | str, keys: Path, seed: str = "a", **further: object) -> Ledger:
    """Open a ledger as the agent `crm`."""
    return woodrat.open(db, keys=keys, agent="crm", clock=FixedClock(seed=seed), **further)  # type: ignore[arg-type]


def files(folder: Path) -> dict[str, bytes]:
    """Return the content of every file of a folder."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def erased_and_put_back(tmp_path: Path, keys: Path) -> Path:
    """Return a database into whose place a copy from before an erasure was put."""
    store, old = tmp_path / "store", tmp_path / "old"
    store.mkdir()
    db = store / "people.db"
    with opened(db, keys) as ledger:
        ledger.store([RECORD, {"entity_type": "memo", "id": "1"}], observed_at=AT, idempotency_key="first")
    shutil.copytree(store, old)
    with opened(db, keys, "b") as ledger:
        assert ledger.erase(PERSON, reason="a request").complete
    shutil.rmtree(store)
    shutil.copytree(old, store)
    return db


def test_a_file_that_is_put_back_is_not_opened(tmp_path: Path, keys: Path) -> None:
    """What the keys folder remembers as erased is not served by an older copy: not to read, not to write."""
    db = erased_and_put_back(tmp_path, keys)
    (noted,) = (keys / "erased").iterdir()
    with noted.open("ab") as file:
        file.write(b'{"agent":"x","erased_at":"2030-01-01T00:00:00.000000Z","lo')  # a crash cut it short
    for readonly in (False, True):
        with pytest.raises(Unavailable, match=r"was erased on .* put back\. Nothing was read or written\. Erase it"):
            opened(db, keys, readonly=readonly)


def test_commands_refuse_a_file_that_is_put_back(
    tmp_path: Path, keys: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command but `verify` and `erase --again` refuses; after `erase --again` all is as it was before."""
    db = erased_and_put_back(tmp_path, keys)
    at = ["--db", str(db), "--signing-keys", str(keys)]
    for command in (
        ["show", PERSON],
        ["history", PERSON],
        ["entities", "search", "--query", "Zweigmann"],
        ["recall", "Zweigmann"],
        ["log"],
        ["export", "log", "--out", str(tmp_path / "out.jsonl")],
        ["backup", "create", str(tmp_path / "out.db")],
        ["tag", "now"],
    ):
        assert main([*command, *at]) != 0, command
        told = capsys.readouterr()
        assert "erase --again" in told.err, (command, told)
        assert "Zweigmann" not in told.out + told.err, command
    main(["verify", *at])
    assert "Zweigmann" not in "".join(capsys.readouterr())
    assert main(["erase", "--again", *at]) == 0
    assert main(["show", "memo/1", *at]) == 0
    assert main(["show", PERSON, *at]) != 0
    assert "erased at" in capsys.readouterr().err
    assert not any(b"Zweigmann" in data for data in files(db.parent).values())


def test_a_file_that_is_put_back_can_be_opened_to_forget(tmp_path: Path, keys: Path) -> None:
    """`erase_again` carries out what is remembered before anything is read, retries included."""
    db = erased_and_put_back(tmp_path, keys)
    with opened(db, keys, "c", erase_again=True) as ledger:
        assert [str(found.entity) for found in ledger.query().items] == ["memo/1"]
    assert not any(b"Zweigmann" in data for data in files(db.parent).values())
    with opened(db, keys, "d") as ledger, pytest.raises(woodrat.WoodratError):
        ledger.store([RECORD, {"entity_type": "memo", "id": "1"}], observed_at=AT, idempotency_key="first")


def test_a_backup_that_is_put_back_is_not_opened(tmp_path: Path, keys: Path) -> None:
    """A backup from before an erasure that is opened as it is, instead of being copied, is refused too."""
    db, backup = tmp_path / "people.db", tmp_path / "backup.db"
    with opened(db, keys) as ledger:
        ledger.store(RECORD, observed_at=AT)
        ledger.log.backup(backup)
        ledger.erase(PERSON, reason="a request")
        after = tmp_path / "after.db"
        ledger.log.backup(after)
    with pytest.raises(Unavailable, match="put back"):
        opened(backup, keys)
    opened(after, keys).close()


def test_a_copy_that_holds_nothing_of_it_is_opened(tmp_path: Path, keys: Path) -> None:
    """A copy of a log through a position before the erased record is no older copy of it."""
    db, copy = tmp_path / "people.db", tmp_path / "copy.db"
    with opened(db, keys) as ledger:
        first = ledger.store({"entity_type": "memo", "id": "1"}).position
        ledger.store(RECORD, observed_at=AT)
        ledger.erase(PERSON, reason="a request")
    woodrat.copy(db, copy, through=first, keys=keys)
    with opened(copy, keys) as ledger:
        assert ledger.show("memo/1").fields["id"] == "1"


def test_without_the_key_a_file_that_is_put_back_stays_closed(tmp_path: Path, keys: Path) -> None:
    """The folder remembers positions too: a missing erasure key opens nothing."""
    db = erased_and_put_back(tmp_path, keys)
    (keys / "erasure.key").unlink()
    with pytest.raises(Unavailable, match=r"Put erasure\.key back"):
        opened(db, keys)


def test_equal_records_of_another_log_are_taken_in(tmp_path: Path, keys: Path) -> None:
    """Two ledgers share a keys folder: what one erased, the other may hold, import, copy and keep."""
    one, two = opened(":memory:", keys, "one"), opened(tmp_path / "two.db", keys, "two")
    three = opened(":memory:", keys, "three")
    for ledger in (one, two):
        ledger.store(RECORD, observed_at=AT)
    one.erase(PERSON, reason="a request")
    out = io.BytesIO()
    two.log.export(out)
    three.store({"entity_type": "memo", "id": "1"})
    imported = three.log.import_(io.BytesIO(out.getvalue()))
    assert (imported.erased, imported.erasures) == (0, 0)
    assert three.show(PERSON).fields["name"] == "Zoe Zweigmann"
    assert two.erase_again() == ()
    assert three.erase_again() == ()
    assert two.show(PERSON).fields["name"] == "Zoe Zweigmann"
    two.close()
    copied = woodrat.copy(tmp_path / "two.db", tmp_path / "copy.db", keys=keys)
    assert copied.again == 0
    with opened(tmp_path / "copy.db", keys) as copy:
        assert copy.show(PERSON).fields["name"] == "Zoe Zweigmann"


def test_entries_that_began_in_the_log_stay_out(keys: Path) -> None:
    """What was erased in a log is left out wherever its entries come from, and the import says how many."""
    one, two, three = (opened(":memory:", keys, name) for name in ("one", "two", "three"))
    one.store(RECORD, observed_at=AT)
    two.store({"entity_type": "memo", "id": "1"})
    three.store({"entity_type": "memo", "id": "2"})
    two.log.sync(one, push=False)
    out = io.BytesIO()
    two.log.export(out)
    one.erase(PERSON, reason="a request")
    assert three.log.import_(io.BytesIO(out.getvalue())).erased > 0
    assert [str(found.entity) for found in three.query(entity_type="contact").items] == []


def test_no_name_of_a_log_leads_out_of_the_folder(tmp_path: Path, keys: Path) -> None:
    """A log may be called anything; what is remembered of it stays in `erased/`."""
    at = "2026-01-01T00:00:00.000000Z"
    for log in ("../../outside", "example.org/log/acme", "..", "x" * 300, "ü"):
        assert Keys(str(keys)).remember([Erasure("a", at, log, "entity", "asked", ((0, 0),), ("00",), ())])
        assert len(Keys(str(keys)).remembered_of(log)) == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["keys"]
    assert len(list((keys / "erased").iterdir())) == 5
    assert {one.log for one in Keys(str(keys)).erasures()} == {
        *("../../outside", "example.org/log/acme", "..", "x" * 300, "ü")
    }


def test_a_backup_that_goes_on_loses_its_receipts(tmp_path: Path, keys: Path) -> None:
    """A backup has receipts; as a clone that hears of an erasure it loses those of writes that lost an entry."""
    other = tmp_path / "other"
    make_keys(other, FixedClock())
    with opened(tmp_path / "a.db", keys) as ledger:
        ledger.store([RECORD, {"entity_type": "memo", "id": "1"}], observed_at=AT, idempotency_key="first")
        ledger.store({"entity_type": "memo", "id": "2"}, idempotency_key="second")
        ledger.log.backup(tmp_path / "clone.db")
        ledger.erase(PERSON, reason="a request")
        with opened(tmp_path / "clone.db", other, "b") as clone:
            assert clone.store({"entity_type": "memo", "id": "2"}, idempotency_key="second").repeated
            assert clone.log.sync(ledger, push=False).same
            with clone.context.engine.view(clone.tenant) as view:
                assert [key for _, key, _ in view.receipts()] == ["second"]
            assert clone.verify().sound
            with pytest.raises(woodrat.Refused, match="was erased at"):
                clone.store(RECORD, idempotency_key="first")


def test_a_server_answers_nothing_from_a_file_that_is_put_back(tmp_path: Path, keys: Path) -> None:
    """Every call for the tenant is 503 and says what to do; nothing that was erased is in an answer."""
    from tests.server.server import Server

    from woodrat.clock import SystemClock
    from woodrat.engines.sqlite.engine import SqliteEngine
    from woodrat.ledger.own_policy import registry
    from woodrat.server.app import App
    from woodrat.server.keys import Open

    db = erased_and_put_back(tmp_path, keys)
    engine = SqliteEngine(db)
    try:
        app = App(engine, Open("default", "http"), clock=SystemClock(), policies=registry(()), proofs=str(keys))
        with Server(app) as server:
            for path in (f"/v1/entities/{PERSON}", "/v1/search?query=Zweigmann", "/v1/log", "/v1/entities"):
                answer = server.call("GET", path)
                assert answer.status == 503, path
                assert "erase --again" in str(answer.json), path
                assert "Zweigmann" not in str(answer.json), path
            stored = server.call("POST", "/v1/store", {"records": {"entity_type": "memo", "id": "9"}})
            assert stored.status == 503
    finally:
        engine.close()
