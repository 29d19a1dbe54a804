"""Kinds of test: what a test is for, told by its folder, and how long each kind took.

Folders that span the rooms of the tree are kinds of their own, the folders of surfaces are one kind, and every other
folder holds the tests of a room. A new folder therefore counts as a room until it is named here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

import pytest

ACROSS: Final = frozenset(
    {"bench", "contract", "differential", "docs", "faults", "golden", "laws", "mutants", "release", "stories"}
)
"""Folders whose tests are about more than one room."""
SURFACES: Final = frozenset({"adapters", "api", "cli", "inspector", "mcp", "neotoma", "otlp", "server", "surfaces"})
"""Folders whose tests go through a door that users have."""
WHOLE_TREE: Final = "whole tree"
"""The kind of the files directly under tests."""
ROOMS_SHOWN_MAX: Final = 5
"""How many rooms the table names."""


def folder_of(nodeid: str) -> str:
    """Return the folder under tests that a test is in; an empty text if it is in none."""
    file, _, _ = nodeid.partition("::")
    parts = PurePosixPath(file).parts
    return parts[1] if len(parts) > 2 else ""


def kind_of(folder: str) -> str:
    """Return the kind of the tests in a folder under tests."""
    if not folder:
        return WHOLE_TREE
    if folder in SURFACES:
        return "surfaces"
    return folder if folder in ACROSS else "rooms"


@dataclass
class Spent:
    """How many tests ran, and what they took."""

    tests: int = 0
    seconds: float = 0.0


class KindTable:
    """Adds up the reports of a session by folder, and prints them by kind at its end.

    Under xdist the reports of all workers pass through the process that prints, so nothing else is needed.
    """

    def __init__(self) -> None:
        self.folders: dict[str, Spent] = defaultdict(Spent)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the set-up, the call and the clean-up of each test."""
        spent = self.folders[folder_of(report.nodeid)]
        spent.seconds += report.duration
        spent.tests += report.when == "setup"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the table, unless there is nothing to compare."""
        lines = list(self.lines())
        if len(lines) > 2:
            terminalreporter.section("time by kind of test")
            for line in lines:
                terminalreporter.write_line(line)

    def lines(self) -> Iterator[str]:
        """Yield the lines of the table, the kind that took longest first."""
        kinds: dict[str, Spent] = defaultdict(Spent)
        for folder, spent in self.folders.items():
            kind = kinds[kind_of(folder)]
            kind.tests += spent.tests
            kind.seconds += spent.seconds
        total = sum(spent.seconds for spent in kinds.values()) or 1.0
        yield f"{'kind':<14}{'tests':>7}{'seconds':>10}{'share':>8}"
        for name, spent in _longest_first(kinds.items()):
            yield f"{name:<14}{spent.tests:>7}{spent.seconds:>10.1f}{spent.seconds / total:>8.0%}"
        rooms = [(name, spent) for name, spent in self.folders.items() if kind_of(name) == "rooms"]
        if len(rooms) > 1:
            shown = _longest_first(rooms)[:ROOMS_SHOWN_MAX]
            yield "longest rooms: " + ", ".join(f"{name} {spent.seconds:.1f} s" for name, spent in shown)


def _longest_first(items: Iterable[tuple[str, Spent]]) -> list[tuple[str, Spent]]:
    return sorted(items, key=lambda item: (-item[1].seconds, item[0]))
