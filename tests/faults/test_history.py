"""Replaced history: whoever can write to the database alone cannot put another history in its place unnoticed.

Four ways are tried (a prefix that goes on under a new name, a fresh file, a file of 0 bytes, swapped tenants), each
looked at through the library, the command line and the server. What is honest (a new file, one that was moved, a
backup, a second database of the same keys) must not be taken for one of them.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from tests.server.server import Server

import woodrat
from woodrat.cli.main import main
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import Corrupt, Refused
from woodrat.ledger.own_policy import registry
from woodrat.proofs.verbs import locations, signer
from woodrat.proofs.verbs.keys import Keys, make
from woodrat.proofs.verbs.locations import Location
from woodrat.server.app import App
from woodrat.server.keys import Open
from woodrat.testing.clock import FixedClock

TENANTS: Final = ("default", "other")
ENTRIES: Final = 20


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Keys of their own."""
    return make(tmp_path / "keys", FixedClock(seed="keys"), "example.com/test").keys


@pytest.fixture
def db(tmp_path: Path, keys: Keys) -> Path:
    """A database of two tenants that was written with keys, and closed."""
    path = tmp_path / "agents.db"
    for tenant in TENANTS:
        with woodrat.open(path, tenant=tenant, keys=keys.folder, clock=FixedClock(seed=tenant)) as ledger:
            fill(ledger, ENTRIES, tenant)
    return path


def fill(ledger: woodrat.Ledger, count: int, word: str = "x") -> None:
    """Store some entries."""
    for number in range(count):
        ledger.store({"entity_type": "thing", "id": f"{word}-{number}", "n": number})


def remove(path: Path) -> None:
    """Remove a database and the files beside it."""
    for end in ("", "-wal", "-shm", "-queue"):
        Path(f"{path}{end}").unlink(missing_ok=True)


# Four ways of replacing history, by somebody who has the database and no keys


def prefix_under_a_new_name(path: Path) -> None:
    """Keep the first half, and go on under a new log name for longer than the log was."""
    forged = path.with_name("forged.db")
    for tenant in TENANTS:
        woodrat.copy(path, forged, tenant=tenant, through=ENTRIES // 2)
        with woodrat.open(forged, tenant=tenant) as ledger:
            fill(ledger, ENTRIES, "forged")
            assert ledger.position > ENTRIES
    remove(path)
    forged.rename(path)


def fresh_file(path: Path) -> None:
    """Begin anew, with other entries."""
    remove(path)
    for tenant in TENANTS:
        with woodrat.open(path, tenant=tenant) as ledger:
            fill(ledger, ENTRIES + 5, "forged")


def empty_file(path: Path) -> None:
    """Leave a file of 0 bytes."""
    remove(path)
    path.touch()


def swapped_tenants(path: Path) -> None:
    """Give each tenant the other's log."""
    connection = apsw.Connection(str(path))
    trigger = connection.execute("SELECT sql FROM sqlite_schema WHERE name = 'tenant_no_update'").get
    connection.execute("DROP TRIGGER tenant_no_update")
    names: dict[Any, Any] = dict(map(tuple, connection.execute("SELECT name, id FROM tenant")))
    connection.execute("UPDATE tenant SET name = name || '-'")
    for name, other in zip(TENANTS, reversed(TENANTS), strict=True):
        connection.execute("UPDATE tenant SET name = ? WHERE id = ?", (other, names[name]))
    connection.execute(trigger)
    connection.close()


ATTACKS: Final = (prefix_under_a_new_name, fresh_file, empty_file, swapped_tenants)
Attack = Callable[[Path], None]
by_every_way = pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)


def check_found(path: Path, keys: Keys, tenant: str, said: str = "") -> woodrat.Ledger:
    """Open a ledger, which must warn that another lies in its place."""
    with pytest.warns(woodrat.CheckpointWarning, match=f"the keys folder remembers {said}"):
        ledger = woodrat.open(path, tenant=tenant, keys=keys.folder)
    assert len(ledger.notices) == 1
    return ledger


@by_every_way
@pytest.mark.parametrize("tenant", TENANTS)
def test_the_library_finds_replaced_history(attack: Attack, tenant: str, db: Path, keys: Keys) -> None:
    """Opening warns, naming what is remembered and what was found; reads answer; writes and signatures are refused."""
    known = Location.at(keys, str(db), tenant).remembered()[0]
    attack(db)
    ledger = check_found(db, keys, tenant, f"{known.log} with {known.size} entries here")
    assert ledger.position >= -1
    ledger.fingerprint()
    for call in (lambda: fill(ledger, 1), ledger.proofs.checkpoint, lambda: ledger.erase("thing/x-1", reason="r")):
        with pytest.raises(Corrupt) as caught:
            call()
        told = str(caught.value)
        assert caught.value.details["damage"] == "switched"
        assert caught.value.details["checkpoint"] == known.to_json()
        assert known.root.hex() in told
        assert "Nothing was" in told
        assert "--new-epoch" in told
    found = ledger.verify()
    assert found.log_damaged
    assert "switched" in {one.damage for one in found.damage}
    assert known.log in found.damage[0].problem
    assert "--new-epoch" in found.damage[0].remedy
    ledger.close()
    assert Location.at(keys, str(db), tenant).remembered() == (known,), "what is remembered stays"


@by_every_way
def test_the_command_line_finds_replaced_history(
    attack: Attack, db: Path, keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every command says so; `verify` and writes exit with 5."""
    attack(db)
    words = ["--db", str(db), "--signing-keys", keys.folder]
    record = '--json={"entity_type":"thing","id":"new"}'
    for command, code in ((("verify",), 5), (("entities", "list"), 0), (("store", record), 5), (("checkpoint",), 5)):
        ran = main([*command, *words])
        printed = capsys.readouterr()
        assert ran == code or (attack is empty_file and ran == 5), (command, printed)
        assert "the keys folder remembers" in printed.out + printed.err, (command, printed)


@by_every_way
def test_a_server_finds_replaced_history(attack: Attack, db: Path, keys: Keys) -> None:
    """A server goes on reading, refuses to write without saying where its files are, and its `verify` names it."""
    attack(db)
    engine = SqliteEngine(db)
    app = App(engine, Open("default", "http"), clock=SystemClock(), policies=registry(()), proofs=keys.folder)
    with Server(app) as server, woodrat.open(f"http://127.0.0.1:{server.port}") as remote:
        assert remote.position >= -1
        with pytest.raises(Corrupt, match="the keys folder remembers") as caught:
            remote.store({"entity_type": "thing", "id": "new"})
        assert str(db) not in str(caught.value)
        found = remote.verify()
        assert found.log_damaged
        assert "switched" in {one.damage for one in found.damage}
    engine.close()


@by_every_way
def test_replaced_history_can_be_accepted(attack: Attack, db: Path, keys: Keys) -> None:
    """An operator accepts it with a reason; what was remembered stays beside it, and later checkpoints say so."""
    before = Location.at(keys, str(db), "default").remembered()[0]
    attack(db)
    with pytest.warns(woodrat.CheckpointWarning):
        ledger = woodrat.open(db, keys=keys.folder)
    signed = ledger.proofs.checkpoint(new_epoch="made anew on purpose")
    assert signed.checkpoint.epoch == 2
    fill(ledger, 3, "later")
    assert ledger.proofs.checkpoint().checkpoint.epoch == 2
    assert ledger.verify().sound
    ledger.close()
    (reason,) = Path(keys.folder, "ledgers").glob("*.epoch-1.reason")
    assert reason.read_text("utf-8").endswith("made anew on purpose\n")
    assert before.log in reason.with_suffix(".json").read_text("utf-8")
    with warnings.catch_warnings():
        warnings.simplefilter("error", woodrat.CheckpointWarning)
        woodrat.open(db, keys=keys.folder).close()


def test_an_accepted_empty_file_is_accepted_on_the_command_line(
    db: Path, keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    """`checkpoint --new-epoch` makes a ledger of a file of 0 bytes that the operator accepts."""
    empty_file(db)
    words = ["--db", str(db), "--signing-keys", keys.folder]
    assert main(["checkpoint", "--new-epoch", "emptied by me", *words]) == 0
    assert main(["store", '--json={"entity_type":"thing","id":"new"}', *words]) == 0
    assert main(["verify", *words]) == 0
    capsys.readouterr()


def test_a_read_only_opening_of_an_emptied_file_is_corrupt(db: Path, keys: Keys) -> None:
    """A file of 0 bytes where a log is remembered is not called a ledger yet to be made."""
    empty_file(db)
    with pytest.raises(Corrupt, match="the file has 0 bytes"):
        woodrat.open(db, keys=keys.folder, readonly=True)
    with pytest.raises(Refused, match="Open it for writing once"):
        woodrat.open(db, readonly=True)


def test_a_link_turned_to_another_file_is_found(db: Path, keys: Keys, tmp_path: Path) -> None:
    """A path counts as it was named, so a link to another ledger does not pass for the first."""
    link = tmp_path / "link.db"
    link.symlink_to(db)
    with woodrat.open(link, keys=keys.folder) as ledger:
        fill(ledger, 1, "by-link")
    with woodrat.open(tmp_path / "forged.db") as forged:
        fill(forged, 40, "forged")
    link.unlink()
    link.symlink_to(tmp_path / "forged.db")
    with pytest.warns(woodrat.CheckpointWarning, match="the keys folder remembers"):
        woodrat.open(link, keys=keys.folder).close()


def test_a_ledger_that_was_killed_before_its_first_checkpoint_is_remembered(keys: Keys, tmp_path: Path) -> None:
    """The first write is remembered at once: a server that is killed never came to sign."""
    path = tmp_path / "killed.db"
    ledger = woodrat.open(path, keys=keys.folder)
    fill(ledger, 3)
    ledger.context.engine.close()  # without its last checkpoint
    assert not list(Path(keys.folder, "seen").glob("*.note"))
    fresh_file(path)
    with pytest.warns(woodrat.CheckpointWarning, match="the keys folder remembers"):
        woodrat.open(path, keys=keys.folder).close()


# What is honest


@pytest.fixture
def silent() -> Any:
    """Take every warning for an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", woodrat.CheckpointWarning)
        yield


def check_honest(path: Path, keys: Keys, tenant: str = "default") -> None:
    """A ledger opens without a word, verifies, and takes writes and signatures, again and again."""
    for round in range(2):
        with woodrat.open(path, tenant=tenant, keys=keys.folder) as ledger:
            assert ledger.notices == ()
            assert ledger.verify().sound
            fill(ledger, 2, f"honest-{round}")
            ledger.proofs.checkpoint()


def test_a_second_database_of_the_same_keys_is_honest(db: Path, keys: Keys, tmp_path: Path, silent: None) -> None:
    """Two databases with the same tenants share a keys folder, and neither is taken for the other."""
    check_honest(tmp_path / "second.db", keys)
    check_honest(db, keys)
    check_honest(tmp_path / "second.db", keys)


def test_a_new_tenant_is_honest(db: Path, keys: Keys, silent: None) -> None:
    """A tenant that never wrote may begin in a file that is remembered."""
    check_honest(db, keys, "third")


def test_a_file_that_was_moved_is_honest(db: Path, keys: Keys, tmp_path: Path, silent: None) -> None:
    """A file that was renamed, or moved with its folder, is the ledger it was."""
    (tmp_path / "elsewhere").mkdir()
    shutil.move(db, tmp_path / "elsewhere" / "renamed.db")
    for tenant in TENANTS:
        check_honest(tmp_path / "elsewhere" / "renamed.db", keys, tenant)


@pytest.mark.parametrize("there", [True, False])
def test_a_backup_that_lost_nothing_is_honest(there: bool, db: Path, keys: Keys, tmp_path: Path, silent: None) -> None:
    """A backup of all that was signed may be opened elsewhere, or put in the place of the file it was made of."""
    with woodrat.open(db, keys=keys.folder) as ledger:
        ledger.log.backup(tmp_path / "backup.db")
    path = db if there else tmp_path / "restored.db"
    if there:
        remove(db)
    shutil.copy(tmp_path / "backup.db", path)
    for tenant in TENANTS:
        check_honest(path, keys, tenant)


def test_a_copy_restored_in_location_is_honest(db: Path, keys: Keys, tmp_path: Path, silent: None) -> None:
    """A ledger restored with `copy` goes on under a new name, and begins with what is remembered."""
    for tenant in TENANTS:
        woodrat.copy(db, tmp_path / "copy.db", tenant=tenant, keys=keys.folder)
    remove(db)
    (tmp_path / "copy.db").rename(db)
    for tenant in TENANTS:
        check_honest(db, keys, tenant)


def test_names_of_one_file_are_honest(
    db: Path, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent: None
) -> None:
    """A file may be named by a relative path, an absolute one and a link in turn."""
    (tmp_path / "link.db").symlink_to(db)
    monkeypatch.chdir(tmp_path)
    for name in ("agents.db", str(db), "link.db", "./agents.db", str(tmp_path / "link.db")):
        check_honest(Path(name), keys)


def test_memory_ledgers_are_honest(keys: Keys, silent: None) -> None:
    """Ledgers in memory lie nowhere, so any number of them share a keys folder."""
    for _ in range(2):
        with woodrat.open(":memory:", keys=keys.folder) as ledger:
            fill(ledger, 2)
            ledger.proofs.checkpoint()
    assert not os.path.exists(keys.path("ledgers"))


def test_readers_remember_nothing(keys: Keys, tmp_path: Path) -> None:
    """Reading a ledger with keys writes nothing to their folder."""
    with woodrat.open(tmp_path / "a.db") as unsigned:
        fill(unsigned, 2)
    with woodrat.open(tmp_path / "a.db", keys=keys.folder) as ledger:
        ledger.show("thing/x-1")
        assert ledger.verify().sound
    assert not os.path.exists(keys.path("ledgers"))


def test_a_damaged_memory_is_named_and_hides_no_ledger(db: Path, keys: Keys) -> None:
    """What is remembered and cannot be read is named; reading goes on, and writing once the file is back."""
    (file,) = Location.at(keys, str(db), "default").files()
    good = Path(file).read_bytes()
    for bad in (
        b"",
        b"{",
        b"\xff",
        b"[]",
        good.replace(b'"size":', b'"size":-'),
        good.replace(b'"root":"', b'"root":"zz'),
    ):
        Path(file).write_bytes(bad)
        with pytest.warns(woodrat.CheckpointWarning, match=r"ledgers/\w+\.json"):
            ledger = woodrat.open(db, keys=keys.folder)
        ledger.show("thing/default-1")
        with pytest.raises(Corrupt, match=r"Restore .* from a backup"):
            fill(ledger, 1)
        Path(file).write_bytes(good)
        fill(ledger, 1, "then")
        ledger.close()
        good = Path(file).read_bytes()


# Planted faults


@by_every_way
@pytest.mark.parametrize("fault", ["opens without comparing", "remembers nothing", "compares names alone"])
def test_a_signer_that_compares_too_little_is_caught(
    fault: str, attack: Attack, tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An opener that does not compare what is remembered lets replaced history pass, and the tests above see it."""
    path = tmp_path / "agents.db"
    match fault:
        case "opens without comparing":
            monkeypatch.setattr(
                signer,
                "any_trouble",
                lambda view, seen, location, remembered: None if seen is None else signer.trouble(view, seen),
            )
        case "remembers nothing":
            monkeypatch.setattr(Location, "remember", lambda self, checkpoint, clock: None)
        case _:
            monkeypatch.setattr(locations.Location, "of", classmethod(lambda cls, keys, engine, tenant: None))
    for tenant in TENANTS:
        with woodrat.open(path, tenant=tenant, keys=keys.folder) as ledger:
            fill(ledger, ENTRIES, tenant)
    attack(path)
    with pytest.raises(pytest.fail.Exception, match="DID NOT WARN"):
        check_found(path, keys, "default")
