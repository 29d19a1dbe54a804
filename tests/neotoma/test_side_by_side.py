"""Neotoma's own server and ours, side by side: its clients call every method, its command line runs every command.

It runs where WOODRAT_NEOTOMA_SOURCE names its built source, and nowhere else. WOODRAT_NEOTOMA_RECORD names a file that
the requests of that run are written to, for `recordings.json`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.neotoma import real_neotoma
from tests.neotoma.real_commands import COMMANDS, LEFT_OUT, NOTE, TASK
from tests.neotoma.real_neotoma import Call, Recorder, lacking
from tests.neotoma.test_recorded import ANA
from tests.server.conftest import Start, engine, start

__all__ = ["engine", "start"]

pytestmark = [
    pytest.mark.skipif(not real_neotoma.is_there(), reason=real_neotoma.MISSING),
    pytest.mark.timeout(3_600),
]

EDITOR = '#!/bin/sh\nsed -i "s/Ana Rivera/Ana R. Rivera/" "$1"\n'
PLAN = "---\nname: P\noverview: o\ntodos:\n  - id: a\n    content: do\n    status: pending\n---\n# P\n"


class Sides(NamedTuple):
    """Both servers, each behind what records its requests."""

    there: Recorder
    here: Recorder


@pytest.fixture
def sides(start: Start, tmp_path: Path) -> Iterator[Sides]:
    with (
        real_neotoma.server(tmp_path / "neotoma") as port,
        Recorder(port) as there,
        Recorder(start().port, "/neotoma") as here,
    ):
        yield Sides(there, here)


def differences(there: list[Call], here: list[Call]) -> list[str]:
    """Return what is another status or lacks a member, of calls that one program made at both."""
    found = []
    if [(call.method, _pattern(call.path)) for call in there] != [(call.method, _pattern(call.path)) for call in here]:
        found.append(f"calls: {[call.path for call in there]}, here {[call.path for call in here]}")
    for one, other in zip(there, here, strict=False):
        if one.status != other.status:
            found.append(f"{one.method} {one.path}: {one.status}, here {other.status} {str(other.answer)[:200]}")
        elif isinstance(one.answer, dict | list):
            lacks = [path for path in lacking(one.answer, other.answer) if not _is_left_out(path)]
            found += [f"{one.method} {one.path}: lacks {path}" for path in lacks]
    return found


def _pattern(path: str) -> str:
    return re.sub(r"(ent|obs|src)_\w+|[0-9a-f]{8}-[0-9a-f-]+", "ID", path)


def _is_left_out(path: str) -> bool:
    at = path.partition(" ")[0]
    return any(re.fullmatch(pattern, at) for pattern in LEFT_OUT)


def noted(program: str, calls: list[Call]) -> None:
    """Write down the requests of a program, where a file for it is named."""
    path = os.environ.get("WOODRAT_NEOTOMA_RECORD")
    if path:
        with open(path, "a", encoding="utf-8") as file:
            for call in calls:
                file.write(json.dumps({"program": program, **call._asdict()}, sort_keys=True) + "\n")


# ----------------------------------------------------------------------------------------------------- command line


class Shell:
    """Its command line at one server, with files and names of its own."""

    def __init__(self, home: Path, server: Recorder) -> None:
        home.mkdir()
        self.home, self.server = home, server
        lines = "".join(json.dumps({**TASK, "title": title}) + "\n" for title in ("I1", "I2"))
        contents = {"RECORDS": json.dumps([NOTE]), "TEXT": "A note\n", "LINES": lines, "PLAN": PLAN, "OUT": ""}
        self.names = {name: str(home / f"{name.lower()}.plan.md") for name in contents}
        for name, text in contents.items():
            Path(self.names[name]).write_text(text, "utf-8")
        self.editor = home / "editor.sh"
        self.editor.write_text(EDITOR, "utf-8")
        self.editor.chmod(0o755)

    def run(self, words: tuple[str, ...], keeps: dict[str, str]) -> tuple[int, list[Call]]:
        typed = [re.sub(r"\$(\w+)", lambda found: self.names[found[1]], word) for word in words]
        done = real_neotoma.command(self.home, self.server.url, *typed, EDITOR=str(self.editor))
        calls = self.server.taken()
        for name, path in keeps.items():
            found: Any = json.loads(done.stdout)
            for part in path.split("."):
                found = found[int(part)] if isinstance(found, list) else found[part]
            self.names[name] = found
        return done.returncode, calls


def test_every_command_of_its_command_line(sides: Sides, tmp_path: Path) -> None:
    """Each command ends alike and its requests are answered alike, but for what is meant to differ."""
    there, here = (Shell(tmp_path / name, side) for name, side in zip(("there", "here"), sides, strict=True))
    found: list[str] = []
    for typed in COMMANDS:
        one, asked = there.run(typed.words, dict(typed.keeps))
        other, answered = here.run(typed.words, dict(typed.keeps))
        noted(f"command line: {' '.join(typed.words[:2])}", answered)
        differs = [*([f"ends with {one}, here {other}"] if one != other else []), *differences(asked, answered)]
        if typed.differs:
            assert differs, f"{typed.words}: nothing differs any more"
        else:
            found += [f"{' '.join(typed.words)[:80]}: {text}" for text in differs]
    assert not found, "\n".join(found)


# ---------------------------------------------------------------------------------------------------------- clients

METHODS = (
    *("store", "retrieve_entities", "retrieve_entity_by_identifier", "retrieve_entity_snapshot", "list_observations"),
    *("list_timeline_events", "retrieve_related_entities", "create_relationship", "correct", "list_entity_types"),
    *("get_entity_type_counts", "execute_tool"),
)
"""What its Python client has, each also as a coroutine with an `a` before it."""


@pytest.fixture
def client_module() -> Iterator[Any]:
    folder = str(Path(str(real_neotoma.SOURCE)) / "packages/client-python/src")
    sys.path.insert(0, folder)
    yield import_module("neotoma_client")
    sys.path.remove(folder)


def _arguments(method: str, ids: list[str]) -> tuple[list[Any], dict[str, Any]]:
    link = {"relationship_type": "REFERS_TO", "source_entity_id": ids[0], "target_entity_id": ids[1]}
    stated: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "store": ([{"entities": [ANA, TASK], "idempotency_key": "k"}], {}),
        "retrieve_entities": ([{"entity_type": "contact", "limit": 5}], {}),
        "retrieve_entity_by_identifier": ([{"identifier": "Ana Rivera"}], {}),
        "retrieve_entity_snapshot": ([], {"entity_id": ids[0]}),
        "list_observations": ([{"entity_id": ids[0]}], {}),
        "list_timeline_events": ([{"limit": 5}], {}),
        "retrieve_related_entities": ([{"entity_id": ids[0]}], {}),
        "create_relationship": ([link], {}),
        "correct": ([], {"entity_id": ids[0], "corrections": {"role": "cook"}}),
        "list_entity_types": ([], {"search": "task"}),
        "get_entity_type_counts": ([], {}),
        "execute_tool": (["list_relationships", {"entity_id": ids[0]}], {}),
    }
    return stated[method]


TSX = f"{real_neotoma.SOURCE}/node_modules/tsx/dist/esm/index.mjs"
CLIENT = f"{real_neotoma.SOURCE}/packages/client/src/index.ts"
FAILS_THERE = {"list_timeline_events", "list_entity_types", "get_entity_type_counts", "correct"}
"""Methods that post to an address its own server has not, or send what that refuses; they work here."""


@pytest.mark.parametrize("way", ["", "a"])
def test_every_method_of_its_python_client(sides: Sides, client_module: Any, way: str) -> None:
    """Each method, waited for or not, gets the same status and members from both servers."""
    calls: list[list[Call]] = []
    for side in sides:
        calls.append(asyncio.run(_called(client_module, side, way)))
    noted("Python client", calls[1])
    found = []
    for method, one, other in zip(METHODS, *calls, strict=True):
        if method in FAILS_THERE:
            assert (one.status >= 400, other.status) == (True, 200), (method, one.status, other.answer)
        else:
            found += [f"{method}: {text}" for text in differences([one], [other])]
    assert not found, "\n".join(found)


async def _called(module: Any, side: Recorder, way: str) -> list[Call]:
    client = module.NeotomaClient(base_url=side.url, token="dev-local")
    ids = ["", ""]
    for method in METHODS:
        given, named = _arguments(method, ids)
        try:
            answer = getattr(client, f"{way}{method}")(*given, **named)
            answer = await answer if way else answer
        except module.NeotomaClientError:
            continue
        if method == "store":
            ids = [item["entity_id"] for item in answer["entities"]]
    return side.taken()


def test_every_method_of_its_typescript_client(sides: Sides, tmp_path: Path) -> None:
    """The same for the client in TypeScript, which one program of ours calls."""
    program = Path(__file__).with_name("real_client.mts")
    calls: list[list[Call]] = []
    for side in sides:
        done = subprocess.run(
            [real_neotoma.NODE, "--import", TSX, str(program), CLIENT, side.url],
            cwd=str(real_neotoma.SOURCE),
            env=real_neotoma.environment(tmp_path),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        calls.append(side.taken())
        named = json.loads(done.stdout)
    noted("TypeScript client", calls[1])
    assert (len(named), len(calls[0])) == (len(calls[1]), len(calls[1]))
    found = []
    for method, one, other in zip(named, *calls, strict=True):
        snake = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", method)
        if snake in FAILS_THERE:
            assert (one.status >= 400, other.status) == (True, 200), (method, one.status, other.answer)
        else:
            found += [f"{method}: {text}" for text in differences([one], [other])]
    assert not found, "\n".join(found)
