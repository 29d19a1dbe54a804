"""Exchange: what it costs to take a log out of a ledger and into another, against the same bytes in raw SQLite."""

from __future__ import annotations

import io
import itertools

import woodrat
from bench.raw import Raw, page_bytes
from bench.rows import Row
from bench.stage import Stage
from bench.timing import Figure, take_turns


def rows() -> list[Row]:
    """Return what is measured."""
    return [
        Row("export", "export of a log / read + SHA-256 of its bodies", 30, _export),
        Row("import", "import as a clone, checked and merged / raw rows, a commit for {s.batch:,}", None, _import),
    ]


class _Nowhere(io.RawIOBase):
    """A file that forgets what is written to it."""

    def writable(self) -> bool:
        return True

    def write(self, data: object, /) -> int:
        return len(data)  # type: ignore[arg-type]


def _export(stage: Stage) -> Figure:
    pair = stage.settled.pair
    count = stage.settled.observations
    return take_turns(
        [[None]] * 5,
        lambda _: pair.ledger.log.export(_Nowhere()),  # type: ignore[arg-type]
        lambda _: pair.raw.digest_all(),
        per=count,
        per_against=count,
        seconds=stage.scale.seconds,
    )


def _import(stage: Stage) -> Figure:
    """A log of batches, as lines, into a ledger of its own each time; the same bodies into a table of their own."""
    pair, number = stage.settled.pair, itertools.count()
    held = io.BytesIO()
    pair.ledger.log.export(held)
    with pair.ledger.context.engine.view(pair.ledger.tenant) as view:
        bodies = [(entry.body or b"",) for entry in view.entries()]

    def ours(_: object) -> None:
        with woodrat.open(stage.folder / f"clone-{next(number)}.db") as ledger:
            assert ledger.log.import_(io.BytesIO(held.getvalue())).cloned == len(bodies)

    def against(_: object) -> None:
        raw = Raw(stage.folder / f"raw-{next(number)}.db", page_bytes(pair.path))
        for start in range(0, len(bodies), stage.scale.batch):
            raw.add_all(bodies[start : start + stage.scale.batch])
        raw.close()

    return take_turns(
        [[None]] * 3, ours, against, per=len(bodies), per_against=len(bodies), seconds=stage.scale.seconds
    )
