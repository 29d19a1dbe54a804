"""`python3 dev.py bench --growth`: how the cost of every verb grows, at three sizes of a ledger."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bench import place
from bench.growth.case import LIBRARY, MCP, REST, Case
from bench.growth.catalogue import NOT_MEASURED, all_cases, missing
from bench.growth.results import Results
from bench.growth.row import ROUNDS, Row, measure
from bench.growth.stock import BUILD_SECONDS_MAX, Stock
from bench.growth.table import Table

if TYPE_CHECKING:
    from bench.growth.database import Database

SECONDS_MAX = 60.0
QUICK_DIVISOR = 10
IN_A_FILE = frozenset({"log.backup"})
"""Verbs about the file that a ledger is in; a ledger on PostgreSQL is in none."""
SIZE_MIN = 20
"""Below this some lists have but one page."""


def main(arguments: Sequence[str]) -> int:
    """Measure the cases asked for and print them; fail when a goal is missed or a verb of the library has no row."""
    options = _parse(arguments)
    forgotten = sorted(missing())
    cases = [
        case
        for case in chosen(all_cases(), options.only)
        if options.surface in (None, case.surface)
        and case.world.name in (options.worlds or [case.world.name])
        and not (options.postgres and case.verb in IN_A_FILE)
    ]
    if not cases:
        raise SystemExit("No row is on these ledgers and of these names. Nothing was measured. Name fewer of them.")
    with _folder(options.keep, options.dir) as folder, _database(options.postgres) as database:
        stock = Stock(folder, quiet=options.json, database=database)
        try:
            rows = run(cases, stock, options, Results(folder, fresh=not options.resume))
        finally:
            stock.clear()
    if options.json:
        verbs = {"not_measured": dict(NOT_MEASURED), "without_row": forgotten}
        print(json.dumps({"rows": [row.to_json() for row in rows], **verbs}, indent=2))
    elif forgotten:
        print(f"Verbs without a row: {', '.join(forgotten)}. Add a case, or a reason to NOT_MEASURED in catalogue.py.")
    return 0 if not forgotten and all(row.met for row in rows) else 1


def run(cases: Sequence[Case], stock: Stock, options: argparse.Namespace, results: Results) -> list[Row]:
    """Measure cases, those on one kind of ledger together, and print each as it comes unless JSON is wanted.

    Rows that are among the results of a run that ended early are taken from there.
    """
    table, rows = Table(cases), []
    for world in dict.fromkeys(case.world for case in cases):
        sizes = sorted(set(options.sizes or ())) or world.sizes_at(QUICK_DIVISOR if options.quick else 1)
        if not options.json:
            print(table.header(world.name, world.unit, sizes), flush=True)
        for case in cases:
            if case.world is world:
                row = results.find(case, sizes)
                if row is None:
                    row = measure(case, stock, sizes, options.seconds, options.rounds)
                    results.add(row)
                rows.append(row)
                if not options.json:
                    print(table.line(row), flush=True)
    if not options.json:
        print(table.footer(rows))
    return rows


def chosen(cases: Sequence[Case], only: Sequence[str] | None) -> list[Case]:
    """Return the cases that are asked for, by the name of a verb, a kind of ledger or the beginning of a row's name."""
    if only is None:
        return list(cases)
    for name in only:
        if not any(_matches(case, name) for case in cases):
            raise SystemExit(f'There is no row "{name}". Nothing was measured. Name a verb, such as runs.list.')
    return [case for case in cases if any(_matches(case, name) for name in only)]


def _matches(case: Case, name: str) -> bool:
    return name in (case.verb, case.world.name) or case.name.startswith(name)


@contextmanager
def _database(wanted: bool) -> Iterator[Database | None]:
    if not wanted:
        yield None
        return
    from bench.growth.database import Database

    with Database(BUILD_SECONDS_MAX) as database:
        yield database


@contextmanager
def _folder(keep: Path | None, where: Path | None) -> Iterator[Path]:
    if keep is None:
        with place.folder(where) as folder:
            yield folder
    else:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep


def _parse(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench --growth", description=__doc__)
    parser.add_argument("--growth", action="store_true", help="this table")
    parser.add_argument("--postgres", action="store_true", help="on PostgreSQL; only rows of the library")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--quick", action="store_true", help="a tenth of each size")
    parser.add_argument("--sizes", type=int, nargs="+", metavar="N", help="the same sizes for every ledger, 2 or more")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="rows of a verb, a kind of ledger, or by name")
    worlds = sorted({case.world.name for case in all_cases()})
    parser.add_argument("--worlds", nargs="+", choices=worlds, help="only rows on these kinds of ledgers")
    parser.add_argument("--surface", choices=(LIBRARY, REST, MCP), help="only rows through this surface")
    parser.add_argument("--seconds", type=float, default=SECONDS_MAX, help="limit of a row at one size (60)")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="measures of a first call that costs little (3)")
    parser.add_argument("--resume", action="store_true", help="with --keep: take rows that were measured there before")
    parser.add_argument("--dir", type=Path, help="where to write; on a disk")
    parser.add_argument("--keep", type=Path, help="keep the ledgers in this folder, and use those that are there")
    options = parser.parse_args(arguments)
    if options.postgres and options.surface not in (None, LIBRARY):
        parser.error(f"--surface: got {options.surface}. Nothing was measured. On PostgreSQL only library is measured.")
    options.surface = LIBRARY if options.postgres else options.surface
    if options.resume and options.keep is None:
        parser.error("--resume: there is no --keep. Nothing was measured. Name the folder of the run that ended early.")
    if options.sizes is not None and (len(set(options.sizes)) < 2 or min(options.sizes) < SIZE_MIN):
        sizes = " ".join(map(str, options.sizes))
        parser.error(
            f"--sizes: got {sizes}. Nothing was measured. Name two or more different sizes of at least {SIZE_MIN}."
        )
    return options
