"""Verifying ledgers that took in entries, are clones, or have forgotten: sound as they are, found when altered."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from tests.faults.test_tampering import File

import woodrat
from woodrat import Ledger, Verified
from woodrat.engines.records import Mismatch
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

ENGINES: Final = ("memory", "sqlite")


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with an erasure key."""
    make_keys(tmp_path / "keys", FixedClock())
    return tmp_path / "keys"


def opened(tmp_path: Path, engine: str, name: str) -> Ledger:
    """Return a ledger of its own, in memory or in a file."""
    db: Any = ":memory:" if engine == "memory" else tmp_path / f"{name}.db"
    return woodrat.open(db, keys=tmp_path / "keys", agent=name, clock=FixedClock(seed=name))


def told(tmp_path: Path, engine: str, name: str, person: str) -> Ledger:
    """Return a ledger that knows of a person, with a run and a source."""
    ledger = opened(tmp_path, engine, name)
    ledger.store({"entity_type": "contact", "name": person, "city": f"Vic of {person}"})
    ledger.correct(f"contact/{person}", {"city": f"Berga of {person}"})
    with ledger.run(f"Where is {person}?", subject=f"contact/{person}") as run:
        run.show(f"contact/{person}")
        run.answer("There.")
    ledger.sources.add(f"a letter of {name}".encode(), name="letter.txt")
    return ledger


def merged(tmp_path: Path, engine: str) -> Ledger:
    """Return a ledger into which another was merged."""
    ledger, other = told(tmp_path, engine, "a", "Anabel"), told(tmp_path, engine, "b", "Bertram")
    ledger.log.sync(other)
    assert other.verify(deep=True).sound
    other.close()
    return ledger


def cloned(tmp_path: Path, engine: str) -> Ledger:
    """Return a clone of a ledger into which another was merged."""
    ledger, clone = merged(tmp_path, engine), opened(tmp_path, engine, "clone")
    assert clone.log.sync(ledger, push=False).pulled.cloned == ledger.position + 1  # type: ignore[union-attr]
    ledger.close()
    return clone


def continued(tmp_path: Path, engine: str) -> Ledger:
    """Return a clone that has gone on under a name of its own."""
    clone = cloned(tmp_path, engine)
    clone.store({"entity_type": "contact", "name": "Cyprian"})
    return clone


def erased(tmp_path: Path, engine: str) -> Ledger:
    """Return a ledger that has forgotten somebody."""
    ledger = told(tmp_path, engine, "e", "Anabel")
    ledger.store({"entity_type": "contact", "name": "Dorothea"})
    ledger.erase("contact/Anabel", reason="asked")
    return ledger


def erased_in_a_clone(tmp_path: Path, engine: str) -> Ledger:
    """Return a clone whose first write of its own was an erasure."""
    clone = cloned(tmp_path, engine)
    clone.erase("contact/Anabel", reason="asked")
    return clone


def erased_then_merged(tmp_path: Path, engine: str) -> Ledger:
    """Return a ledger that has forgotten somebody and was then synced with one that knew them."""
    ledger, other = told(tmp_path, engine, "a", "Anabel"), told(tmp_path, engine, "b", "Bertram")
    other.log.sync(ledger, push=False)
    ledger.erase("contact/Anabel", reason="asked")
    for _ in range(3):
        ledger.log.sync(other)
    assert other.verify(deep=True).damage == ()
    assert other.fingerprint() == ledger.fingerprint()
    other.close()
    return ledger


SOUND: Final = (merged, cloned, continued, erased, erased_in_a_clone, erased_then_merged)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", SOUND)
def test_what_was_exchanged_or_erased_is_sound(
    tmp_path: Path, keys: Path, engine: str, make: Callable[[Path, str], Ledger]
) -> None:
    """A ledger that was merged into, cloned, continued or erased from verifies as sound, in depth too."""
    ledger = make(tmp_path, engine)
    found = ledger.verify(deep=True)
    assert found.damage == ()
    assert found.unchecked == ()
    assert found.fingerprint == ledger.fingerprint()
    assert len(found.logs) == (2 if make in (continued, erased_in_a_clone) else 1)
    ledger.close()


# What was exchanged, altered by someone who can write to the file


def verified(path: Path) -> Verified:
    """Verify a file, read-only."""
    with woodrat.open(path, readonly=True) as ledger:
        return ledger.verify(deep=True)


def last_origin(file: File) -> tuple[int, int]:
    """Return the id and the position of the last entry that was merged in."""
    id = int(file.one("SELECT max(id) FROM origin"))
    return id, id - file.id(0)


def alter_an_origin(file: File) -> tuple[str, int]:
    id, position = last_origin(file)
    file.run("UPDATE origin SET position = position + 1 WHERE id = ?", id)
    return "leaf", position


def alter_the_log_of_an_origin(file: File) -> tuple[str, int]:
    id, position = last_origin(file)
    file.run("UPDATE origin SET log = (SELECT log FROM entry LIMIT 1) WHERE id = ?", id)
    return "leaf", position


def name_an_origin_of_no_log(file: File) -> tuple[str, int]:
    id, position = last_origin(file)
    file.run("UPDATE origin SET log = 99 WHERE id = ?", id)
    return "envelope", position


def remove_an_origin(file: File) -> tuple[str, int]:
    id, position = last_origin(file)
    file.run("DELETE FROM origin WHERE id = ?", id)
    return "leaf", position


def add_an_origin(file: File) -> tuple[str, int]:
    file.run("INSERT INTO origin SELECT ?, log, 3 FROM origin LIMIT 1", file.id(1))
    return "leaf", 1


def add_an_origin_of_nothing(file: File) -> tuple[str, int]:
    end = file.size
    file.run("INSERT INTO origin SELECT ?, log, 3 FROM origin LIMIT 1", file.id(end))
    return "unowned", end


def forget_the_clone(file: File) -> tuple[str, int]:
    end = int(file.one("SELECT max(id) FROM clone"))
    file.run("DELETE FROM clone")
    return "clone", end + 1 - file.id(0)


def move_the_clone(file: File) -> tuple[str, int]:
    end = int(file.one("SELECT max(id) FROM clone"))
    file.run("DELETE FROM clone WHERE id < ?", end)
    file.run("UPDATE clone SET id = (SELECT min(id + length - 1) FROM entry)")
    return "clone", end + 1 - file.id(0)


def alter_the_log_of_the_clone(file: File) -> tuple[str, int]:
    end = int(file.one("SELECT max(id) FROM clone"))
    file.run("UPDATE clone SET log = (SELECT log FROM entry ORDER BY id DESC LIMIT 1) WHERE id = ?", end)
    return "clone", end - file.id(0)


def clone_the_middle_of_a_write(file: File) -> tuple[str, int]:
    first = int(file.one("SELECT min(id) FROM entry WHERE length > 1"))
    file.run("INSERT INTO clone SELECT ?, log FROM entry WHERE id = ?", first, first)
    return "clone", first - file.id(0)


def clone_what_is_not_there(file: File) -> tuple[str, int]:
    end = file.size
    file.run("INSERT INTO clone SELECT ?, max(log) FROM entry", file.id(end + 7))
    return "clone", end + 7


TAMPERING: Final = (
    alter_an_origin,
    alter_the_log_of_an_origin,
    name_an_origin_of_no_log,
    remove_an_origin,
    add_an_origin,
    add_an_origin_of_nothing,
    forget_the_clone,
    move_the_clone,
    alter_the_log_of_the_clone,
    clone_the_middle_of_a_write,
    clone_what_is_not_there,
)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clone of a ledger with merged-in entries that has gone on, in a file."""
    folder = tmp_path_factory.mktemp("story")
    make_keys(folder / "keys", FixedClock())
    continued(folder, "sqlite").close()
    return folder / "clone.db"


@pytest.mark.parametrize("tamper", TAMPERING)
def test_tampering_with_origins_and_clones_is_found(
    story: Path, tmp_path: Path, tamper: Callable[[File], tuple[str, int]]
) -> None:
    """An origin or the end of a clone that is altered, removed or added is damage to the log, at its position."""
    shutil.copy(story, tmp_path / "l.db")
    file = File(tmp_path / "l.db")
    assert verified(file.path).sound
    with file.open():
        damage, position = tamper(file)
    found = verified(file.path)
    assert found.log_damaged
    assert found.first == position
    assert damage in {one.damage for one in found.damage if one.position == position}


@pytest.mark.parametrize("merging", [False, True])
def test_tampering_with_erasures_is_found(tmp_path: Path, keys: Path, merging: bool) -> None:
    """A body taken away that only an erasure of another log names, or put back, is damage to the log there."""
    ledger = (erased_then_merged if merging else erased)(tmp_path, "sqlite")
    name = "a.db" if merging else "e.db"
    ledger.close()
    file = File(tmp_path / name)
    with file.open():
        gone = file.one("SELECT max(id) FROM body WHERE body IS NULL")
        file.run("UPDATE body SET nonce = zeroblob(16), body = X'7B7D' WHERE id = ?", gone)
        position = gone - file.id(0)
    found = verified(file.path)
    assert (found.log_damaged, found.first) == (True, position)
    with file.open():
        file.run("UPDATE body SET nonce = NULL, body = NULL WHERE id = ?", gone)
    assert verified(file.path).sound
    with file.open():
        last = file.one("SELECT max(id) FROM entry WHERE kind = 1")
        file.run("UPDATE body SET nonce = NULL, body = NULL WHERE id = ?", last)
        position = last - file.id(0)
    found = verified(file.path)
    assert (found.log_damaged, found.first) == (True, position)


def test_marks_of_other_logs_need_no_position_here(tmp_path: Path, keys: Path) -> None:
    """How far another log was taken is no position of this one, and a mark of another shape is found."""
    ledger, other = told(tmp_path, "sqlite", "a", "Anabel"), told(tmp_path, "sqlite", "b", "Bertram")
    for _ in range(3):
        other.store([{"entity_type": "memo", "id": f"{number}"} for number in range(40)])
    ledger.log.sync(other)
    assert ledger.verify(deep=True).sound
    ledger.close()
    file = File(tmp_path / "a.db")
    with file.open():
        assert file.one("SELECT count(*) FROM meta WHERE name LIKE 'taken/%'") == 1
        file.run("UPDATE meta SET value = X'00' WHERE name LIKE 'taken/%'")
    found = verified(file.path)
    assert [one.damage for one in found.damage] == ["index"]


def test_a_mismatch_says_where_it_was_found() -> None:
    """What is wrong with a clone is damage to the log, which no rebuild repairs."""
    from woodrat.verify.report import RESTORE, finding

    one = Mismatch("clone", 3, None, "x", log=True)
    assert finding(one.part, one.log, one.position, one.entity, one.problem).remedy == RESTORE
