"""Slow tests: what `python3 dev.py test --fast` leaves out.

There is one rule. A test function that takes a tenth of a second or more, over all its parameters and with few
examples, is slow, unless it compares golden bytes. If its first parameter is quick by itself, a fast run tries that
one. The slow functions are in tests/slow.txt, which is measured and not written by hand: `--write-slow` judges whatever
ran and keeps the rest of the file. A test is known by its class and name alone, so that its file may move. New tests
count as fast, and a fast run names those that are not.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

FILE: Final = Path(__file__).with_name("slow.txt")
SLOW_SECONDS: Final = 0.1
"""From here on a test is slow."""
FAST_SECONDS: Final = 0.05
"""Below this a slow test counts as fast again, so that those near the limit do not go back and forth. The first
parameter of a slow test is quick below this."""
NAMED_SECONDS: Final = 2.0
"""A fast run names the tests that took this long; less may be the fault of a busy machine."""
FIRST: Final = "first"
"""Marks, in the list and in reports, the first parameter of a test."""
GOLDEN: Final = ("golden", "test_outside.py")
"""What the place or name of a golden test says; those always run, since a changed byte should be seen first."""
ONLY_FAST: Final = "not slow"
"""The expression that dev.py selects by."""
HEADER: Final = """\
# Test functions that take a tenth of a second or more; `python3 dev.py test --fast` leaves them out.
# Of those with "first" behind them, the first parameter still runs.
# Written by `python3 dev.py test --write-slow [FILES]`; see tests/slow.py.
"""


def name_of(nodeid: str) -> str:
    """Return the class and name of a test, without its file and parameters."""
    _, _, name = nodeid.partition("::")
    return name.partition("[")[0]


def is_golden(nodeid: str) -> bool:
    """Tell whether a test compares golden bytes."""
    return any(word in nodeid.partition("[")[0] for word in GOLDEN)


def listed(file: Path = FILE) -> dict[str, bool]:
    """Return the names in the list, and for each whether its first parameter still runs."""
    lines = file.read_text("utf-8").splitlines() if file.exists() else []
    words = [line.split() for line in lines if line and not line.startswith("#")]
    return {name: rest == [FIRST] for name, *rest in words}


@dataclass
class Spent:
    """What a test function took: over all its parameters, and for the first of them."""

    seconds: float = 0.0
    first: float = 0.0


def judge(before: Mapping[str, bool], spent: Mapping[str, Spent], *, whole: bool) -> dict[str, bool]:
    """Return the new list, from the one before and what each test took; a run of everything drops unknown names."""
    slow = {} if whole else {name: first for name, first in before.items() if name not in spent}
    for name, one in spent.items():
        if one.seconds >= (FAST_SECONDS if name in before else SLOW_SECONDS):
            slow[name] = one.first < FAST_SECONDS
    return dict(sorted(slow.items()))


def written(names: Mapping[str, bool]) -> str:
    """Return the text of the list."""
    return HEADER + "".join(f"{name} {FIRST}\n" if first else f"{name}\n" for name, first in names.items())


class SlowTests:
    """Marks the listed tests, adds up what each test takes, and writes the list or names what is missing in it."""

    def __init__(self, file: Path = FILE) -> None:
        self.file = file
        self.names = listed(file)
        self.spent: dict[str, Spent] = defaultdict(Spent)

    # First, so that the selection by marker comes after it.
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Mark the tests that are in the list; say of the first parameter of each function that it is that."""
        seen: set[str] = set()
        for item in items:
            name = name_of(item.nodeid)
            function = item.nodeid.partition("[")[0]
            is_first = function not in seen
            seen.add(function)
            if is_first:
                # Properties travel with the report, from the worker that runs the test to the process that adds up.
                item.user_properties.append((FIRST, True))
            if name in self.names and not (is_first and self.names[name]) and not is_golden(item.nodeid):
                item.add_marker("slow")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up set-up, call and clean-up over all parameters of a test."""
        if is_golden(report.nodeid):
            return
        spent = self.spent[name_of(report.nodeid)]
        spent.seconds += report.duration
        if (FIRST, True) in map(tuple, report.user_properties):
            spent.first += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
        """Write the list if that was asked for; after a fast run, name the tests that should be in it."""
        option = config.option
        if option.write_slow:
            testpaths = config.args_source is pytest.Config.ArgsSource.TESTPATHS
            names = judge(self.names, self.spent, whole=testpaths and not option.keyword and not option.markexpr)
            self.file.write_text(written(names), "utf-8")
            terminalreporter.write_line(f"{self.file.name}: {len(names)} slow tests, {len(self.names)} before")
        elif option.markexpr == ONLY_FAST:
            for name, spent in sorted(self.spent.items()):
                if spent.seconds >= NAMED_SECONDS:
                    terminalreporter.write_line(f"{name} took {spent.seconds:.1f} s, see {self.file.name}")
