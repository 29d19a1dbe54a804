"""Stage: the ledgers that rows measure, each built when a row first asks for it, and gone after the run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from types import TracebackType
from typing import NamedTuple, Protocol, TypeVar

import woodrat
from bench import raw, records
from bench.raw import Raw
from bench.records import AGENTS, Batch, Records
from woodrat.canon import moment
from woodrat.engines.records import KEPT_EVERY


class Closing(Protocol):
    """Whatever can be closed."""

    def close(self) -> None: ...


C = TypeVar("C", bound=Closing)

BLOCK = KEPT_EVERY
"""Single writes whose mean counts as one: merge state is kept along the history about once in so many."""
BLOCKS = 12
"""How many such means there are."""


@dataclass(frozen=True, slots=True)
class Scale:
    """How much is written and how long a row is measured."""

    batch: int
    """Records of a batch."""
    few: int
    """Entities of the ledgers whose entities are all spoken of by a batch."""
    depth: int
    """Observations of each of them before anything is measured."""
    many: int
    """Entities of the ledger of which a batch picks some."""
    long: int
    """Observations of the entity with a long history."""
    short: int
    """Observations of those it is compared with."""
    runs: int
    """Runs a ledger has when the cost of recording is compared with that in a new one."""
    many_runs: int
    """Runs of a large group."""
    seconds: float
    """Time after which a row begins no further turn."""


# Twelve thousand bodies are more pages than the write-ahead log has when it is taken over, so that it is grown, on both
# sides, before anything is measured: a commit into a log that still grows costs twice as much.
FULL = Scale(
    batch=1_000, few=1_000, depth=20, many=50_000, long=100_000, short=100, runs=2_000, many_runs=10_000, seconds=10
)
QUICK = Scale(
    batch=1_000, few=1_000, depth=12, many=10_000, long=10_000, short=100, runs=200, many_runs=1_000, seconds=3
)


class Told:
    """A ledger that two agents tell about numbered entities."""

    def __init__(self, path: Path, db: str | None = None) -> None:
        """`db` is where the ledger lies, unless it is a file."""
        self.path = path
        self.ledger = woodrat.open(db or path, agent=AGENTS[0])
        self.records = Records(path.stem)
        self.random = Random(path.stem)
        self._by = {agent: self.ledger.as_agent(agent) for agent in AGENTS}

    def store(self, batch: Batch) -> None:
        """Store a batch."""
        self._by[batch.agent].store(batch.records, observed_at=batch.observed_at)

    def close(self) -> None:
        self.ledger.close()


class Said(NamedTuple):
    """The same observations for both sides."""

    batch: Batch
    rows: list[tuple[bytes]]


class Pair(Told):
    """A ledger, and a raw file with the same bodies."""

    def __init__(self, path: Path, entities: int) -> None:
        super().__init__(path)
        assert entities <= records.ENTITIES_MAX
        self.entities = entities
        self.raw = Raw(path.with_suffix(".raw.db"), raw.page_bytes(path))

    def load(self, size: int, depth: int) -> None:
        """Say something of every entity `depth` times, `size` of them in a batch."""
        rows: list[tuple[bytes]] = []
        for _ in range(depth):
            for start in range(0, self.entities, size):
                batch = self.records.batch(range(start, min(start + size, self.entities)))
                self.store(batch)
                rows += batch.rows()
        self.raw.add_all(rows)

    def said(self, size: int, turns: int) -> Iterator[list[Said]]:
        """Yield turns of one batch each, about entities picked at random."""
        for _ in range(turns):
            batch = self.records.batch(self.random.sample(range(self.entities), size))
            yield [Said(batch, batch.rows())]

    def picks(self, size: int, turns: int) -> Iterator[list[int]]:
        """Yield turns of entities picked at random."""
        for _ in range(turns):
            yield self.random.choices(range(self.entities), k=size)

    def close(self) -> None:
        super().close()
        self.raw.close()


class History(Told):
    """A ledger with one entity of which much was said, and others of which little was."""

    LONG = 0
    SHORT = tuple(range(2, 2 * BLOCKS + 2, 2))

    def __init__(self, path: Path, scale: Scale) -> None:
        super().__init__(path)
        for start in range(0, scale.long, scale.batch):
            self.store(self.records.batch([self.LONG] * min(scale.batch, scale.long - start), apart=True))
        self._positions = (1, scale.long)  # the schema has position 0
        self._micros = (records.BEGIN_MICROS + records.STEP_MICROS, self.records.micros)
        for short in self.SHORT:
            self.store(self.records.batch([short] * scale.short, apart=True))

    def blocks(self) -> Iterator[list[tuple[Batch, Batch]]]:
        """Yield turns of single records, one about the long and one about a short history; each short one serves once.

        Many writes to one short history would make it a long one.
        """
        for short in self.SHORT:
            long_, short_ = ([self.records.batch([entity]) for _ in range(BLOCK)] for entity in (self.LONG, short))
            yield list(zip(long_, short_, strict=True))

    def positions(self, size: int, turns: int) -> Iterator[list[int]]:
        """Yield turns of positions anywhere in the long history."""
        for _ in range(turns):
            yield [self.random.randint(*self._positions) for _ in range(size)]

    def moments(self, size: int, turns: int) -> Iterator[list[str]]:
        """Yield turns of moments anywhere in the long history."""
        for _ in range(turns):
            yield [moment.from_micros(self.random.randint(*self._micros)) for _ in range(size)]


class Settled(NamedTuple):
    """A ledger that nobody searches, with what both files took when everything was written."""

    pair: Pair
    observations: int
    ours_bytes: int
    raw_bytes: int


class Stage:
    """Everything a run measures, in one folder; a context manager."""

    def __init__(self, folder: Path, scale: Scale) -> None:
        self.folder = folder
        self.scale = scale
        self._open = ExitStack()

    def __enter__(self) -> Stage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open.close()

    def pair(self, name: str, entities: int, size: int, depth: int) -> Pair:
        """Return a ledger and a raw file of which both were told the same, closed after the run."""
        pair = self.until_the_end(Pair(self.folder / f"{name}.db", entities))
        pair.load(size, depth)
        return pair

    def until_the_end(self, made: C) -> C:
        """Close something after the run; return it."""
        self._open.callback(made.close)
        return made

    @cached_property
    def few(self) -> Pair:
        """A ledger whose entities are all spoken of by every batch."""
        return self.pair("few", self.scale.few, self.scale.batch, self.scale.depth)

    @cached_property
    def many(self) -> Pair:
        """A ledger of many entities."""
        return self.pair("many", self.scale.many, 10 * self.scale.batch, 1)

    @cached_property
    def settled(self) -> Settled:
        """A ledger that nobody searches, so that its file holds no search index until it is rebuilt."""
        pair = self.pair("settled", self.scale.few, self.scale.batch, self.scale.depth)
        count = self.scale.few * self.scale.depth
        return Settled(pair, count, raw.file_bytes(pair.path), raw.file_bytes(pair.raw.path))

    @cached_property
    def checked(self) -> Pair:
        """A ledger with a long log of few entities, which nobody writes to any more."""
        return self.pair("checked", self.scale.few, self.scale.batch, self.scale.long // self.scale.few)

    @cached_property
    def checked_short(self) -> Pair:
        """The same with a tenth of the log."""
        depth = max(1, self.scale.long // self.scale.few // 10)
        return self.pair("checked-short", self.scale.few, self.scale.batch, depth)

    @cached_property
    def history(self) -> History:
        """A ledger with one long history."""
        return self.until_the_end(History(self.folder / "history.db", self.scale))

    @cached_property
    def closed(self) -> Path:
        """The file of a ledger that no process has open."""
        pair = Pair(self.folder / "closed.db", self.scale.few)
        pair.load(self.scale.batch, 1)
        pair.close()
        return pair.path

    def states_of(self, pair: Pair) -> Raw:
        """Return a raw file whose rows are the merge states of a ledger."""
        made = self.until_the_end(Raw(pair.path.with_suffix(".states.db"), raw.page_bytes(pair.path)))
        rows = raw.states(pair.path)
        assert len(rows) == pair.entities, "every entity has its merge state in the file"
        made.add_all(rows)
        return made
