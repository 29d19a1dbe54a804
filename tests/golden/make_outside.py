"""The outside, pinned: every help text, the OpenAPI document, the list of MCP tools, and the answers of the stories.

    python tests/golden/make_outside.py    write tests/golden/outside anew; what changed then shows in review

These are no formats. They may change whenever there is a reason; a change by accident is what they are for.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parent / "outside"
ROOT: Final = FOLDER.parents[2]


def help_texts() -> str:
    """Return the help of the program, of every group and of every verb, one after the other."""
    from woodrat.cli.main import main
    from woodrat.cli.verbs import COMMANDS, GROUPS

    told: list[str] = []
    for words in ["", *sorted(GROUPS), *sorted(command.words for command in COMMANDS)]:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            main([*words.split(), "--help"])
        told.append(f"$ woodrat {words} --help".replace("  ", " ") + "\n" + out.getvalue())
    return "\n".join(told)


def openapi_document() -> dict[str, Any]:
    """Return the document of the server, without the version of the package."""
    from woodrat.server.openapi import document

    return document("0")


def mcp_tools() -> list[dict[str, Any]]:
    """Return the tools as a client lists them."""
    from woodrat.mcp import server

    return [tool.model_dump(mode="json", exclude_none=True) for tool in server.listed()]


def story_answers(file: Path) -> list[Any]:
    """Return what the library answers to a story, with ids and times taken out."""
    from tests.stories.surfaces import SURFACES, alike, tell

    story = json.loads(file.read_text("utf-8"))

    async def told(folder: Path) -> list[Any]:
        async with SURFACES["library"](folder) as surface:
            found: list[Any] = alike(await tell(surface, story), story)
            return found

    with tempfile.TemporaryDirectory() as folder:
        return asyncio.run(told(Path(folder)))


def spelled(value: Any) -> str:
    return json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def written() -> dict[str, str]:
    """Return every file by its name."""
    found = {"openapi.json": spelled(openapi_document()), "mcp-tools.json": spelled(mcp_tools())}
    for file in sorted((ROOT / "tests" / "stories" / "told").glob("*.json")):
        found[f"story-{file.stem}.json"] = spelled(story_answers(file))
    if sys.version_info[:2] == (3, 11):  # argparse lays help out otherwise in other versions
        os.environ["COLUMNS"] = "100"
        found["help.txt"] = help_texts()
    return found


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT)]
    FOLDER.mkdir(exist_ok=True)
    for name, text in written().items():
        (FOLDER / name).write_text(text, "utf-8")
