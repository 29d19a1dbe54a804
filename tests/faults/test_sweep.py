"""The sweep that ends an erasure: no free byte keeps what is gone, whatever the file holds and whoever writes to it.

Rows of all sizes come, grow, shrink and go, in tables with and without row numbers and in their indexes, so that cells,
free blocks, gaps, overflow pages and free pages all hold old copies. Each version of each value bears a mark of its
own. What was gone when the erasure was noted must be found nowhere afterwards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import apsw
import pytest
from tests.faults.cutting import folder
from tests.faults.processes import FULL

from woodrat.engines.sqlite import page_format, sweep, wal_index
from woodrat.engines.sqlite.connected import Connected
from woodrat.engines.sqlite.connection import APPLICATION_ID, MIGRATIONS, connect
from woodrat.engines.sqlite.gate import Gate

SEEDS: Final = 120 if FULL else 6
SIZES: Final = (0, 1, 3, 9, 40, 200, 480, 900, 1_200, 4_080, 4_100, 9_000, 30_000)
TABLES: Final = """
PRAGMA journal_mode = WAL;
CREATE TABLE purge (id INTEGER PRIMARY KEY, cursor INTEGER NOT NULL, salt INTEGER);
CREATE TABLE plain (id INTEGER PRIMARY KEY, short BLOB, long BLOB);
CREATE INDEX plain_short ON plain (short);
CREATE TABLE keyed (short BLOB, id INTEGER, long BLOB, PRIMARY KEY (short, id)) WITHOUT ROWID;
"""


class File:
    """A database that rows come to and go from, as an engine that can be swept."""

    vfs: str | None = None

    def __init__(self, path: Path, seed: int) -> None:
        self.path = str(path)
        self.gate = Gate(path)
        self.chance = random.Random(seed)
        self.writer = apsw.Connection(self.path)
        layout = f"PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {len(MIGRATIONS)}"
        list(self.writer.execute(TABLES + layout))
        self.marks = 0

    def take(self) -> Connected:
        return Connected(apsw.Connection(self.path), reads=True)

    def give_back(self, reader: Connected) -> None:
        reader.connection.close()

    def value(self, sizes: tuple[int, ...] = SIZES) -> bytes:
        """Return a value of some size, full of a mark that no other has."""
        self.marks += 1
        mark = b"<%07x>" % self.marks
        return (mark * (self.chance.choice(sizes) // len(mark) + 1))[: max(9, self.chance.choice(sizes))]

    def change(self, count: int) -> None:
        """Put some rows, in place of others or besides them, and take some away."""
        chance, run = self.chance, self.writer.execute
        run("BEGIN IMMEDIATE")
        for _ in range(count):
            id = chance.choice((chance.randrange(300), chance.randrange(60) << 35))
            match chance.randrange(12):
                case 0:
                    run("DELETE FROM plain WHERE id = ?", (id,))
                case 1:
                    run("DELETE FROM keyed WHERE id = ?", (id,))
                case 2:
                    low = chance.randrange(300)
                    run("DELETE FROM plain WHERE id BETWEEN ? AND ?", (low, low + chance.randrange(20)))
                case 3 | 4 | 5 | 6:
                    run("INSERT OR REPLACE INTO keyed VALUES (?, ?, ?)", (self.value(SIZES[:8]), id, self.value()))
                case _:
                    run("INSERT OR REPLACE INTO plain VALUES (?, ?, ?)", (id, self.value(SIZES[:7]), self.value()))
        run("COMMIT")

    def live(self) -> set[bytes]:
        """Return the marks of what is there."""
        rows = self.writer.execute("SELECT short, long FROM plain UNION ALL SELECT short, long FROM keyed")
        return {value[:9] for row in rows for value in row}

    def erase(self) -> set[bytes]:
        """Note that a purge is due; return the marks of all that is gone."""
        self.writer.execute("INSERT OR REPLACE INTO purge VALUES (1, 1, NULL)")
        return {b"<%07x>" % number for number in range(1, self.marks + 1)} - self.live()

    def left(self, gone: set[bytes]) -> set[bytes]:
        """Return which of the marks are in one of the files."""
        data = b"".join(Path(self.path + ending).read_bytes() for ending in ("", "-wal"))
        return {mark for mark in gone if mark in data}


@contextmanager
def file(seed: int) -> Iterator[File]:
    with folder() as place:
        found = File(place / "f.db", seed)
        try:
            yield found
        finally:
            found.writer.close()


def steps(opened: File, each: Callable[[int], object]) -> None:
    """Sweep a file, and do something between two steps."""
    connection = connect(opened.path)
    sweeping = sweep._Sweep(opened, connection)
    try:
        for number in range(10_000):
            step = sweeping._step()
            assert step is not sweep._Step.BUSY
            if step is sweep._Step.DONE:
                return
            each(number)
        raise AssertionError("it does not come to an end")
    finally:
        sweeping.close()
        connection.close()


class Killed(Exception):
    """The process ended."""


def left_over(seed: int) -> set[bytes]:
    """Erase in a file that others write to, with a sweep that is killed twice; return what is still there."""
    chance = random.Random(seed)
    with file(seed) as opened:
        for _ in range(6):
            opened.change(chance.randrange(20, 120))
        if chance.random() < 0.5:
            opened.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        gone = opened.erase()
        assert len(opened.left(gone)) > 5
        before = opened.live()

        def others(number: int) -> None:
            if chance.random() < 0.4:
                opened.change(chance.randrange(1, 12))
            if number == kills[-1]:
                kills.pop()
                raise Killed

        kills = [-1, chance.randrange(3, 15), chance.randrange(3, 15)]
        while opened.writer.execute("SELECT 1 FROM purge").get:
            try:
                steps(opened, others)
            except Killed:
                for _ in range(chance.randrange(5)):
                    opened.change(chance.randrange(1, 60))
                    if chance.random() < 0.5:  # the write-ahead log begins anew
                        opened.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        assert opened.writer.execute("PRAGMA integrity_check").get == "ok"
        assert opened.live() & before
        return opened.left(gone)


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "STEP_PAGES", 7)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_nothing_that_is_gone_is_left(seed: int) -> None:
    """Whoever writes between its steps, and wherever it is killed, a sweep leaves no byte of what was gone."""
    assert left_over(seed) == set()


def test_a_sweep_that_is_killed_goes_on_where_it_was() -> None:
    """After a kill the pages that are done are not looked at again, as long as the log tells what changed since."""
    with file(1) as opened:
        opened.change(300)
        opened.erase()

        def stop(number: int) -> None:
            if number == 4:
                raise Killed

        with pytest.raises(Killed):
            steps(opened, stop)
        opened.change(2)
        cursor = opened.writer.execute("SELECT cursor FROM purge").get
        assert cursor == 1 + 5 * 7
        seen: list[int] = []
        steps(opened, lambda _: seen.append(opened.writer.execute("SELECT max(cursor) FROM purge").get))
        assert seen[0] == cursor + 7


def test_every_free_byte_is_zero() -> None:
    """Pages that hold nothing are empty, and so are gaps, free blocks and what follows the end of a long row."""
    with file(2) as opened:
        opened.change(400)
        opened.writer.execute("DELETE FROM keyed WHERE id < 200")
        opened.erase()
        steps(opened, lambda _: None)
        data = Path(opened.path).read_bytes()
        assert opened.writer.execute("PRAGMA freelist_count").get
        size = page_format.header_of(data).page_size
        opened.writer.execute("VACUUM")
        opened.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        anew = Path(opened.path).read_bytes()
        # A file made anew has its rows in fewer pages; what is not zero is the rows, and what leads to them.
        assert len(data) - data.count(0) <= (len(anew) - anew.count(0)) * 1.02 + len(data) / size * 40


def test_a_file_that_is_laid_out_otherwise_is_made_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a page is not understood no byte of it is written, and the file is made anew by SQLite."""
    with file(3) as opened:
        opened.change(300)
        gone = opened.erase()
        monkeypatch.setattr(page_format, "is_tree", lambda *_: True)  # rests of rows are taken for pages of a tree
        steps(opened, lambda _: None)
        assert opened.left(gone) == set()
        assert opened.writer.execute("PRAGMA integrity_check").get == "ok"


def test_a_damaged_page_is_not_cleaned() -> None:
    """A page whose free bytes do not add up is refused, not guessed at."""
    with file(4) as opened:
        opened.change(300)
        opened.writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        data = Path(opened.path).read_bytes()
    size = page_format.header_of(data).page_size
    refused = 0
    for at in range(size, len(data), size):
        page = data[at : at + size]
        if page[0] in (2, 10, 13) and page[4] > 1:
            spans, _ = page_format.free_spans(page, 2)
            for bit in range(1 * 8, 8 * 8):  # where free blocks, cells and content begin, and how many there are
                damaged = bytearray(page)
                damaged[bit // 8] ^= 1 << bit % 8
                try:
                    assert page_format.free_spans(bytes(damaged), 2)[0] == spans
                except page_format.UnknownFormat:
                    refused += 1
    assert refused > 500


# Planted faults


def _forgets_changes(patch: pytest.MonkeyPatch) -> None:
    """What others wrote between two steps is not looked at again."""
    patch.setattr(wal_index.WalIndex, "pages", lambda *_: set())


def _trusts_any_log(patch: pytest.MonkeyPatch) -> None:
    """After a kill it goes on where it was, whatever was written since."""
    real = sweep._Sweep._clean

    def clean(self: Any, note: Any, generation: Any) -> Any:
        return real(self, note._replace(salt=generation.salt), generation)

    patch.setattr(sweep._Sweep, "_clean", clean)
    patch.setattr(sweep._Sweep, "_put", lambda self, before, after: _put(self, after))


def _put(self: Any, after: Any) -> bool:
    self._connection.execute("UPDATE purge SET cursor = ?, salt = ?", after)
    return True


def _no_chains(patch: pytest.MonkeyPatch) -> None:
    """What follows the end of a long row stays."""
    real = page_format.free_spans
    patch.setattr(page_format, "free_spans", lambda page, number: (real(page, number)[0], []))


def _no_blocks(patch: pytest.MonkeyPatch) -> None:
    """Only the gap of a page is cleaned, not the free blocks between its cells."""
    real = page_format.free_spans

    def spans(page: bytes, number: int) -> Any:
        found, chains = real(page, number)
        return found[:1], chains

    patch.setattr(page_format, "free_spans", spans)


def _no_free_pages(patch: pytest.MonkeyPatch) -> None:
    """Pages of the list of free ones stay as they are."""
    real = page_format.free_pages
    patch.setattr(page_format, "free_pages", lambda header, read: {page: [] for page in real(header, read)})


def _stale_cache(patch: pytest.MonkeyPatch) -> None:
    """What the sweep notes is written by way of a page that was read before it was cleaned."""
    real = sweep._Sweep._clean_pages

    def clean(self: Any, header: Any, pages: Any) -> bool:
        self._note()
        return real(self, header, pages)

    patch.setattr(sweep._Sweep, "_clean_pages", clean)


def _keeps_log(patch: pytest.MonkeyPatch) -> None:
    """The write-ahead log is not cut off."""

    def cut(self: Any, note: Any) -> Any:
        self._let_go()
        self._connection.execute("DELETE FROM purge")
        return sweep._Step.DONE

    patch.setattr(sweep._Sweep, "_cut", cut)


@pytest.mark.parametrize(
    "fault",
    [_forgets_changes, _trusts_any_log, _no_chains, _no_blocks, _no_free_pages, _keeps_log],
    ids=lambda fault: fault.__name__.strip("_"),
)
def test_a_planted_fault_is_caught(
    fault: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sweep that leaves out anything it must do leaves marks that are found."""
    fault(monkeypatch)
    assert any(left_over(seed) for seed in range(60))
