"""The stories on PostgreSQL: those of the command line, the loan, and those that are told through all surfaces.

They are the very tests that run on files, with databases of a server in place of the files. What is told through all
surfaces is compared with the library on a file; most surfaces are left to the long profile, since their time goes to
starting processes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("granian", reason="the extra server is not installed")

from tests.cli import test_stories as typed
from tests.stories import test_loan as loan
from tests.stories.surfaces import SURFACES
from tests.stories.test_four_surfaces import FULL, STORIES
from tests.stories.test_four_surfaces import told as answers_to
from tests.stories.test_loan import told as told

ABOUT_FILES = {
    "test_options_stand_before_or_after_the_verb",
    "test_a_dry_run_leaves_nothing_behind",
    "test_doctor_names_everything_it_uses",
    "test_migrate_says_the_layout",
    "test_the_demonstration_tells_its_story",
    "test_the_demonstration_ends_with_what_to_type_next",
}
"""Stories about the file itself; `tests/cli/test_postgres.py` has what a server has in their place."""

globals().update(
    (name, test)
    for module in (typed, loan)
    for name, test in vars(module).items()
    if name.startswith("test_") and name not in ABOUT_FILES
)


@pytest.fixture
def db(postgres_database: Callable[[], str], monkeypatch: pytest.MonkeyPatch) -> str:
    """A database of a server, named by WOODRAT_DB."""
    url = postgres_database()
    for name in ("WOODRAT_TENANT", "WOODRAT_AGENT", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WOODRAT_DB", url)
    return url


@pytest.fixture
def database(postgres_database: Callable[[], str]) -> str:
    """Where the script of the loan writes."""
    return postgres_database()


class Server:
    """A folder whose files are databases of a server."""

    def __init__(self, make: Callable[[], str]) -> None:
        self._make = make
        self._made: dict[str, str] = {}

    def __truediv__(self, name: str) -> str:
        if name not in self._made:
            self._made[name] = self._make()
        return self._made[name]


@pytest.mark.model
@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_a_story_is_the_same_on_a_server(file: Path, tmp_path: Path, postgres_database: Callable[[], str]) -> None:
    """Every step has the answer, or the error, that it has in the library on a file."""
    story = json.loads(file.read_text("utf-8"))
    expected = answers_to(story, "library", tmp_path)
    server: Any = Server(postgres_database)
    quick = ("library", "client") if file.stem == "two_agents_disagree" else ("library",)
    for name in SURFACES if FULL else quick:
        for number, (here, there) in enumerate(zip(expected, answers_to(story, name, server), strict=True)):
            if there is not None:
                assert there == here, f"{name}, step {number}: {story['steps'][number]['verb']}"
