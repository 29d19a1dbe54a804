"""One story file, four surfaces: the library, the command line, the client of a server and MCP answer alike.

The command line is told to a database, and to a server too; MCP over HTTP, and over standard input and output.
"""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("granian", reason="the extra server is not installed")

from tests.stories.surfaces import SURFACES, alike, tell

pytestmark = pytest.mark.model  # commands and servers are processes of their own, which compare by it

PROCESSES = ("command line, served", "mcp, stdio")
TOLD_TO_PROCESSES = ("two_agents_disagree", "two_runs_part")
"""Stories that are also told through processes; in the long profile all are."""
FULL = os.environ.get("WOODRAT_FAULTS") == "full"
STORIES = sorted((Path(__file__).parent / "told").glob("*.json"))


def told(story: dict[str, Any], name: str, folder: Path) -> list[Any]:
    """Tell a story through a surface, to ledgers in a folder; return its answers."""

    async def tell_all() -> list[Any]:
        async with SURFACES[name](folder) as surface:
            return alike(await tell(surface, story), story)

    return asyncio.run(tell_all())


@pytest.mark.parametrize("file", STORIES, ids=lambda file: file.stem)
def test_a_story_is_the_same_through_all_surfaces(file: Path, tmp_path: Path) -> None:
    """Every step has the answer, or the error, that it has in the library, on every surface that has its verb."""
    story = json.loads(file.read_text("utf-8"))
    wanted = [name for name in SURFACES if name not in PROCESSES or FULL or file.stem in TOLD_TO_PROCESSES]
    answers = {name: told(story, name, tmp_path) for name in wanted}
    expected = answers.pop("library")
    for name, found in answers.items():
        for number, (here, there) in enumerate(zip(expected, found, strict=True)):
            if there is not None:
                assert there == here, f"{name}, step {number}: {story['steps'][number]['verb']}"
    asked = [step["verb"] for step, there in zip(story["steps"], answers["mcp"], strict=True) if there is not None]
    assert len(asked) >= len(story["steps"]) / 2, "most of a story can be told to an agent"
