"""The stock: the ledgers of a run, each built once, from which every case gets a copy that nobody has written to.

A copy, because a write or a first recall leaves something in the file that the next case would find there. A case that
only read leaves its copy to the next one. A ledger is kept as it was written, and once more with all indexes up to
date, which is what nearly every case is measured on.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import woodrat
from bench.growth.case import Facts, World
from bench.growth.meter import in_child
from woodrat.api.ledger import Ledger
from woodrat.api.trailing_indexes import TRAILING
from woodrat.ledger import indexer

if TYPE_CHECKING:
    from bench.growth.database import Database

BUILD_SECONDS_MAX = 3_600
INDEXES = tuple(index for index in TRAILING if index.name != "recall vectors")
"""What is up to date before a case; vectors are not, since the embedder alone decides what they cost."""
LEDGER = "ledger.db"
INDEXED = "indexed.db"
"""The same, after the indexer has taken in all of it."""
ROOMS = ("canon", "log", "state", "merge", "engines", "ledger", "runs")
"""Where it is decided what a write leaves in a file, beside the indexes of other rooms."""
MEMORY = Path("/dev/shm")
"""Where ledgers are built if there is room, so that nobody waits for a disk; what is measured stands on one."""
MEMORY_BYTES = 4_000_000_000
"""How much room there has to be."""


class Stock:
    """Ledgers by kind and size, in one folder."""

    def __init__(self, folder: Path, *, quiet: bool = False, database: Database | None = None) -> None:
        self.folder = folder
        self.database = database
        """Where ledgers are measured, unless in files."""
        self._quiet = quiet
        self._stamp = _stamp()
        self.shown_ms: dict[tuple[str, int, str], float] = {}
        """What one `show` costs, by kind of ledger, size and surface, as far as it was measured."""
        self._spare: dict[tuple[str, int, bool], Path] = {}
        """Folders of copies that nobody is working on and nobody has written to."""

    def ledger(self, world: World, size: int) -> tuple[Path, Facts]:
        """Return the folder of a ledger and what its builder reports of it; it is built unless it is there."""
        home = self.folder / f"{world.name}-{size}"
        about = home / "facts.json"
        if about.exists():
            facts: dict[str, Any] = json.loads(about.read_text())
            if facts.pop("stamp") == self._stamp:
                return home, facts
            shutil.rmtree(home)
        began = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="woodrat-growth-", dir=_building_place(self.folder)) as made:

            def work() -> Iterator[dict[str, Any]]:
                facts = dict(world.build(Path(made) / LEDGER, size))
                shutil.copy(Path(made) / LEDGER, Path(made) / INDEXED)
                with woodrat.open(Path(made) / INDEXED, agent="indexer") as ledger:
                    index_all(ledger)
                yield facts

            outcome = in_child(work, BUILD_SECONDS_MAX)
            if outcome.problem is not None:
                raise SystemExit(f"{world.name} of {size:,} {world.unit} could not be built: {outcome.problem}")
            home.mkdir(parents=True)
            for file in Path(made).iterdir():
                shutil.copy(file, home)
        about.write_text(json.dumps({**outcome.results, "stamp": self._stamp}))
        if not self._quiet:
            megabytes = (home / LEDGER).stat().st_size / 1e6
            seconds = time.monotonic() - began
            print(f"built {world.name}, {size:,} {world.unit}: {seconds:.0f} s, {megabytes:,.1f} MB", file=sys.stderr)
        return home, outcome.results

    @contextmanager
    def copy(self, world: World, size: int, *, is_bare: bool = False) -> Iterator[tuple[str, Facts]]:
        """Lend a copy of a ledger that nobody has written to; yield where it is and what is known of it.

        One that `is_bare` is as it was written: nobody has asked anything of it. A copy that is written to is gone
        afterwards; one that was only read is lent again, since copying a large one takes longer than most calls.
        """
        home, facts = self.ledger(world, size)
        if self.database is not None:
            with (
                tempfile.TemporaryDirectory(prefix="case-", dir=self.folder) as beside,
                self.database.copy(home / (LEDGER if is_bare else INDEXED), () if is_bare else INDEXES) as url,
            ):
                yield url, {**facts, "size": size, "path": str(Path(beside) / LEDGER)}
            return
        key = (world.name, size, is_bare)
        folder = self._spare.pop(key, None)
        if folder is None:
            folder = Path(tempfile.mkdtemp(prefix="case-", dir=self.folder))
            shutil.copy(home / (LEDGER if is_bare else INDEXED), folder / LEDGER)
        before = _looks(folder)
        try:
            yield str(folder / LEDGER), {**facts, "size": size, "path": str(folder / LEDGER)}
        finally:
            if key not in self._spare and _looks(folder) == before:
                self._spare[key] = folder
            else:
                shutil.rmtree(folder)

    def clear(self) -> None:
        """Remove the copies that nobody has written to."""
        while self._spare:
            shutil.rmtree(self._spare.popitem()[1])


def _looks(folder: Path) -> list[tuple[str, int, int]]:
    """Return what stands in the folder of a copy, with sizes and times of change: another answer after a write.

    What is empty, or what SQLite shares between processes while a file is open, says nothing.
    """
    files = [file for file in sorted(folder.rglob("*")) if not file.name.endswith("-shm")]
    states = [(str(file.relative_to(folder)), file.stat()) for file in files]
    return [(name, state.st_size, state.st_mtime_ns) for name, state in states if state.st_size]


def index_all(ledger: Ledger) -> None:
    """Bring the indexes up to date, as a server does while nobody asks."""
    while indexer.go_on(ledger.context, INDEXES):
        pass


def _building_place(folder: Path) -> Path:
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    return MEMORY if roomy else folder


def _stamp() -> str:
    """Return a digest of what decides how the file of a ledger looks: rooms that write, and how ledgers are built."""
    digest = hashlib.sha256()
    rooms, builders = Path(woodrat.__file__).parent, Path(__file__).parent
    files = [*rooms.rglob("index.py"), *rooms.rglob("*.sql")]
    files += [file for room in ROOMS for file in (rooms / room).rglob("*.py")]
    files += [builders / f"{name}.py" for name in ("people", "loans", "shapes", "ordinary")]
    for file in sorted(set(files)):
        digest.update(file.read_bytes())
    return digest.hexdigest()
