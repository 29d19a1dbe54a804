"""Rows: what is measured against what, and the goal of each. The order is that of the table."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from bench import core, records
from bench.stage import History, Pair, Said, Scale, Stage
from bench.timing import Figure, take_turns
from woodrat.api.past import Past

T = TypeVar("T")

READS = 50
"""Reads of a turn: many at once, since the first of them finds the processor's caches full of other things."""
PAST_READS = 5
"""Reads of the past in a turn: about as long as those of the present, so that a busy machine stops both alike."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table."""

    name: str
    """What `--only` calls it."""
    title: str
    """What is compared; the numbers of a scale are filled in."""
    goal: float | None
    """What the value is to stay at or below; none where it is only watched."""
    measure: Callable[[Stage], Figure]
    """How both sides are measured."""
    is_ratio: bool = True
    """Whether the value is our side over the other, or our side alone."""

    def heading(self, scale: Scale) -> str:
        """Return the title with the numbers of a scale."""
        return self.title.format(s=scale)

    def value(self, figure: Figure) -> float:
        """Return what the goal is about."""
        return figure.ours / figure.against if self.is_ratio else figure.ours

    def met(self, figure: Figure) -> bool | None:
        """Return whether the goal is reached; `None` without a goal."""
        return None if self.goal is None else self.value(figure) <= self.goal


# ------------------------------------------------------------------------------------------------------ writing


def single(stage: Stage) -> Figure:
    """Single writes to entities that exist."""
    pair = stage.few
    return take_turns(
        pair.said(1, turns=550),
        lambda said: pair.store(said.batch),
        lambda said: pair.raw.add(said.rows[0]),
        warm=50,
        seconds=stage.scale.seconds,
    )


def batch(stage: Stage, pair: Pair, *, then: Callable[[], None] = lambda: None) -> Figure:
    """Batches about entities that exist, each followed by something else on our side."""

    def ours(said: Said) -> None:
        pair.store(said.batch)
        then()

    return take_turns(
        pair.said(stage.scale.batch, turns=18),
        ours,
        lambda said: pair.raw.add_all(said.rows),
        per=stage.scale.batch,
        per_against=stage.scale.batch,
        warm=3,
        seconds=stage.scale.seconds,
    )


def new_batch(stage: Stage) -> Figure:
    """Batches about entities that nothing was ever said of, in a ledger of its own."""
    size = stage.scale.batch
    pair = stage.pair("new", size, size, 1)

    def turns() -> Iterator[list[Said]]:
        for turn in range(1, 18):
            batch = pair.records.batch(range(size * turn, size * (turn + 1)))
            yield [Said(batch, batch.rows())]

    return take_turns(
        turns(),
        lambda said: pair.store(said.batch),
        lambda said: pair.raw.add_all(said.rows),
        per=size,
        per_against=size,
        warm=3,
        seconds=stage.scale.seconds,
    )


def searched_batch(stage: Stage) -> Figure:
    """Batches with a search after each, which first takes in what the batch said."""

    def search() -> None:
        assert stage.few.ledger.search(records.name(0)).items, "a search finds what was stored before it"

    return batch(stage, stage.few, then=search)


# ------------------------------------------------------------------------------------------------------ reading


def show(stage: Stage, pair: Pair) -> Figure:
    """Current reads, against rows that hold the very merge states they rest on."""
    states, ledger = stage.states_of(pair), pair.ledger
    return take_turns(
        ([(records.ref(number), number + 1) for number in numbers] for numbers in pair.picks(READS, turns=65)),
        lambda pick: ledger.show(pick[0]).fields,
        lambda pick: states.get(pick[1]),
        warm=5,
        seconds=stage.scale.seconds,
    )


def past_show(
    stage: Stage, turns: Callable[[History], Iterable[Sequence[T]]], at: Callable[[History, T], Past]
) -> Figure:
    """Reads anywhere in a long history, against current reads of the same entity."""
    history, ref, each = stage.history, records.ref(History.LONG), READS // PAST_READS

    def current(_: object) -> None:
        for _ in range(each):
            assert history.ledger.show(ref).fields

    return take_turns(
        turns(history),
        lambda when: at(history, when).show(ref).fields,
        current,
        per_against=each,
        warm=5,
        seconds=stage.scale.seconds,
    )


def as_of(stage: Stage) -> Figure:
    """Reads at any position."""
    return past_show(
        stage,
        lambda history: history.positions(PAST_READS, turns=305),
        lambda history, position: history.ledger.at(position),
    )


def effective(stage: Stage) -> Figure:
    """Reads at any effective time."""
    return past_show(
        stage,
        lambda history: history.moments(PAST_READS, turns=305),
        lambda history, moment: history.ledger.at(valid_at=moment),
    )


# ----------------------------------------------------------------------------------- cost must not grow with history


def long_write(stage: Stage) -> Figure:
    """Single writes to an entity with a long history, against those to one with a short history."""
    history = stage.history
    return take_turns(
        history.blocks(),
        lambda either: history.store(either[0]),
        lambda either: history.store(either[1]),
        warm=1,
        seconds=stage.scale.seconds,
    )


def long_show(stage: Stage) -> Figure:
    """Current reads of an entity with a long history, against those of one with a short history."""
    ledger = stage.history.ledger
    long_, short = records.ref(History.LONG), records.ref(History.SHORT[-1])
    return take_turns(
        (range(READS) for _ in range(65)),
        lambda _: ledger.show(long_).fields,
        lambda _: ledger.show(short).fields,
        warm=5,
        seconds=stage.scale.seconds,
    )


# ------------------------------------------------------------------------------------------------- the whole ledger


def rebuild(stage: Stage) -> Figure:
    """Everything derived made again, against reading the same bodies in order and taking the SHA-256 of each."""
    pair = stage.settled.pair

    def ours(_: object) -> None:
        assert pair.ledger.rebuild().agreed, "what was kept is what the log says"

    return take_turns(
        [[None]] * 5,
        ours,
        lambda _: pair.raw.digest_all(),
        per=stage.settled.observations,
        per_against=stage.settled.observations,
        seconds=stage.scale.seconds,
    )


def cold_show(stage: Stage) -> Figure:
    """A command in a process of its own, against the interpreter alone."""
    command = shutil.which("woodrat", path=Path(sys.executable).parent)
    assert command, "woodrat is installed beside the interpreter"
    show = [command, "show", records.ref(0), "--db", str(stage.closed)]

    # As on a user's machine, where modules are compiled once and not by every command.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def call(words: list[str]) -> None:
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, env=environment)

    return take_turns(
        [[None]] * 22,
        lambda _: call(show),
        lambda _: call([sys.executable, "-c", "pass"]),
        warm=2,
        seconds=stage.scale.seconds,
    )


def disk(stage: Stage) -> Figure:
    """What an observation takes in the file, everything derived but the search index included."""
    settled = stage.settled
    return Figure(settled.ours_bytes / settled.observations, settled.raw_bytes / settled.observations, "B")


ROWS = (
    Row("single", "single store / one raw commit", 2, single),
    Row(
        "batch",
        "batch of {s.batch:,} over {s.few:,} entities / raw bulk insert",
        20,
        lambda stage: batch(stage, stage.few),
    ),
    Row("batch-new", "batch of {s.batch:,} entities that are new / raw bulk insert", 25, new_batch),
    Row("batch-search", "the same, with a search after each batch", None, searched_batch),
    Row(
        "batch-many",
        "batch of {s.batch:,} over {s.many:,} entities / raw bulk insert",
        20,
        lambda stage: batch(stage, stage.many),
    ),
    Row("show", "current show / raw read by primary key", 4, lambda stage: show(stage, stage.few)),
    Row("show-many", "the same, of {s.many:,} entities", 4, lambda stage: show(stage, stage.many)),
    Row("as-of", "as-of in {s.long:,} observations / current show", 20, as_of),
    Row("effective", "effective in {s.long:,} observations / current show", 20, effective),
    Row("long-write", "write to {s.long:,} observations / write to {s.short:,}", 1.5, long_write),
    Row("long-show", "show of {s.long:,} observations / show of {s.short:,}", 1.5, long_show),
    Row("rebuild", "rebuild plus digest check / read + SHA-256", 30, rebuild),
    Row("cold", "cold woodrat show / python -c pass", 6, cold_show),
    Row("disk", "bytes per observation on disk, search apart ({s.depth} to an entity)", 1_200, disk, is_ratio=False),
    Row("canonical", "canonical form of a flat record / orjson with sorted keys", 8, core.canonical_form),
    Row("digest", "digest of a body / bare SHA-256 of it", 3, core.digests),
)
