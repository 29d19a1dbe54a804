"""A plugin of pytest for mutants: it notes which functions each test calls, or runs the tests that are named."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest

WRITE: Final = "WOODRAT_MUTANTS_WRITE"
"""Names the folder in which a process of pytest writes which functions each of its tests called."""
READ: Final = "WOODRAT_MUTANTS_READ"
"""Names the file with the tests to run."""
SOURCE: Final = "WOODRAT_MUTANTS_SOURCE"
"""Names the files and folders whose functions count, one in a line."""

Called = set[tuple[str, int]]


class Calls:
    """Notes the functions that are called during each test; those of shared fixtures count for all tests of a file."""

    def __init__(self, folder: Path, sources: tuple[str, ...]) -> None:
        self._lines = (folder / f"{os.getpid()}.jsonl").open("w", encoding="utf-8")
        self._sources = sources
        self._is_ours: dict[str, bool] = {}
        self._called: Called = set()
        self._shared: Called = set()
        self._seconds = 0.0
        self._failed = False

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        """Take one call, as the interpreter traces it."""
        code = frame.f_code
        ours = self._is_ours.get(code.co_filename)
        if ours is None:
            ours = self._is_ours[code.co_filename] = code.co_filename.startswith(self._sources)
        if ours:
            self._called.add((code.co_filename, code.co_firstlineno))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[Any]) -> Iterator[None]:
        """Tell calls of shared fixtures apart."""
        before, self._called = self._called, set()
        result = yield
        if fixturedef.scope == "function":
            self._called |= before
        else:
            self._shared |= self._called
            self._called = before
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Watch one test."""
        self._called, self._shared, self._seconds, self._failed = set(), set(), 0.0, False
        threading.settrace(self.note)
        sys.settrace(self.note)
        try:
            result = yield
        finally:
            sys.settrace(None)
            threading.settrace(None)
        line = {"test": item.nodeid, "seconds": self._seconds, "failed": self._failed}
        self._lines.write(json.dumps({**line, "called": [*self._called], "shared": [*self._shared]}) + "\n")
        self._lines.flush()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up what the test takes, with its fixtures."""
        self._seconds += report.duration
        self._failed |= report.failed


class Chosen:
    """Keeps the tests that are named."""

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the others out."""
        items[:] = [item for item in items if item.nodeid in self._names]


def pytest_configure(config: pytest.Config) -> None:
    """Register the half that the environment asks for."""
    if WRITE in os.environ and (not config.option.numprocesses or hasattr(config, "workerinput")):
        sources = tuple(os.environ[SOURCE].splitlines())
        config.pluginmanager.register(Calls(Path(os.environ[WRITE]), sources))
    if READ in os.environ:
        config.pluginmanager.register(Chosen(frozenset(Path(os.environ[READ]).read_text("utf-8").splitlines())))
