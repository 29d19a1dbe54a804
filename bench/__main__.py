"""`python3 dev.py bench`: one table of ratios against raw apsw on the same bytes in the same run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import (
    collecting,
    exchange,
    floor,
    parting,
    peers,
    place,
    recall,
    runs,
    storage,
    table,
    tokens,
    tracing,
    verify,
    watch,
)
from bench.rows import ROWS, Row
from bench.stage import FULL, QUICK, Scale, Stage
from bench.timing import Figure


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the rows asked for and print them; fail when a goal is missed."""
    words = sys.argv[1:] if arguments is None else list(arguments)
    if "--growth" in words:
        from bench.growth import command

        return command.main(words)
    if words[:1] == ["--http"]:
        from bench import http_writes

        return http_writes.main(words[1:])
    if words[:1] == ["--memory"]:
        from bench import http_memory

        return http_memory.main(words[1:])
    if words[:1] == ["--postgres"]:
        from bench import postgres

        return postgres.main(words[1:])
    given = _parse(words)
    rows = [row for row in all_rows(quick=given.quick) if given.only is None or row.name in given.only]
    measured = run(rows, QUICK if given.quick else FULL, given.dir, as_json=given.json)
    return 1 if any(row.met(figure) is False for row, figure in measured) else 0


def all_rows(*, quick: bool) -> tuple[Row, ...]:
    """Return every row there is, in the order of the table; recall is tried on fewer runs when it has to be quick."""
    further = (
        collecting.rows(),
        storage.rows(),
        verify.rows(),
        runs.rows(),
        floor.rows(),
        peers.rows(),
        parting.rows(),
        tracing.rows(),
        watch.rows(),
        tokens.rows(),
        exchange.rows(),
    )
    return (*ROWS, *(row for rows in further for row in rows), *recall.rows(quick))


def run(rows: Sequence[Row], scale: Scale, where: Path | None, *, as_json: bool) -> list[tuple[Row, Figure]]:
    """Measure rows and print each as it comes, or all of them as JSON at the end."""
    lines = table.Table(rows, scale)
    measured: list[tuple[Row, Figure]] = []
    with place.folder(where) as folder, Stage(folder, scale) as stage:
        if not as_json:
            print(lines.header(), flush=True)
        for row in rows:
            figure = row.measure(stage)
            measured.append((row, figure))
            if not as_json:
                print(lines.line(row, figure), flush=True)
    if as_json:
        print(json.dumps([table.to_json(row, figure, scale) for row, figure in measured], indent=2))
    else:
        print(table.footer())
    return measured


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = list(dict.fromkeys(row.name for quick in (False, True) for row in all_rows(quick=quick)))
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--growth", action="store_true", help="how the cost of every verb grows; has its own --help")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="a tenth of the history and fewer entities")
    parser.add_argument("--only", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument("--dir", type=Path, help="where to write; on a disk, or nothing is learnt")
    parser.add_argument("--http", action="store_true", help="first: writes over HTTP instead, with options of its own")
    parser.add_argument("--memory", action="store_true", help="first: a busy server's memory, with options of its own")
    parser.add_argument("--postgres", action="store_true", help="first: stores on PostgreSQL, with options of its own")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
