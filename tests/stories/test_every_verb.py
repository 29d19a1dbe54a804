"""Each verb through the library, REST, the client of a server, the command line and MCP: one answer, from one table."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, get_origin
from urllib.parse import quote, urlencode

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("granian", reason="the extra server is not installed")

from tests.server.server import Server
from tests.stories.surfaces import alike, dig, filled, here, place, record_in, unmarked
from tests.stories.verbs import AGENT, STORIES, TENANT, VerbStory, make_world

import woodrat
from woodrat.api import codec, link
from woodrat.api.verb import Verb
from woodrat.api.verbs import verbs
from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.app import App
from woodrat.server.keys import Open
from woodrat.server.limits import Limits

Call = Callable[[VerbStory, dict[str, Any]], Any]
"""Tells a surface one story, given its arguments; returns the record, or plain JSON."""


def served(folder: Path, stack: ExitStack) -> Server:
    """Serve the world in a folder, in this process."""
    engine = SqliteEngine(folder / "world.db")
    stack.callback(engine.close)
    app = App(
        engine,
        Open(TENANT, AGENT),
        clock=SystemClock(),
        policies=registry(()),
        endpoints=endpoints(),
        limits=Limits(),
        proofs=str(folder / "keys"),
    )
    return stack.enter_context(Server(app))


def library(folder: Path, stack: ExitStack) -> Call:
    """The ledger in this process."""
    ledger = stack.enter_context(opened(folder))
    return lambda story, given: verbs()[story.verb].called_on(ledger)(**given)


def opened(folder: Path) -> Any:
    """Open the world in a folder."""
    return woodrat.open(folder / "world.db", tenant=TENANT, agent=AGENT, keys=folder / "keys")


def client(folder: Path, stack: ExitStack) -> Call:
    """The client of a server."""
    ledger = stack.enter_context(woodrat.open(f"http://127.0.0.1:{served(folder, stack).port}"))
    return lambda story, given: verbs()[story.verb].called_on(ledger)(**given)


def rest(folder: Path, stack: ExitStack) -> Call:
    """Plain HTTP, as the declaration says: arguments in the address, the query and the body."""
    server = served(folder, stack)

    def call(story: VerbStory, given: dict[str, Any]) -> Any:
        verb = verbs()[story.verb]
        declared, asked = verb.declaration, sent(verb, given)
        path = re.sub(r"\{(\w+)\}", lambda found: quote(str(asked.pop(found[1]))), declared.path)
        form = codec.answer_of(verb)
        query: dict[str, Any] = {"details": "true"} if form.has_details else {}
        if declared.method == "GET":
            query |= {name: str(value).lower() if value is True else value for name, value in asked.items()}
        body = asked if declared.method == "POST" else None
        answer = server.call(declared.method, f"{path}?{urlencode(query, doseq=True)}", body)
        assert answer.status == 200, answer.body
        content = read_file(answer.body)
        return content if verb.name.startswith(("proofs.p", "proofs.cap")) else form.read(content)

    return call


def sent(verb: Verb, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments as they are sent, under the names that every surface has for them."""
    return {
        parameter.wire: link.sent(verb, parameter, given[parameter.name])
        for parameter in verb.parameters
        if parameter.name in given
    }


def mcp(folder: Path, stack: ExitStack) -> Call:
    """The tool and action that offer the verb, called over HTTP."""
    server = served(folder, stack)

    def call(story: VerbStory, given: dict[str, Any]) -> Any:
        verb = verbs()[story.verb]
        tool, action = place(verb)
        arguments = {**sent(verb, given), "details": True} | ({"action": action} if action else {})
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
        result = server.call("POST", "/mcp", message, headers=headers).json["result"]
        assert not result["isError"], result["content"]
        answer = unmarked(result["structuredContent"])
        # Plain JSON, such as a schema, stands under the name of what it is.
        return record_in(verb, answer) if get_origin(codec.returned(verb)) is not dict else answer["schema"]

    return call


def command_line(folder: Path, stack: ExitStack) -> Call:
    """The command, typed in this process."""
    where = [
        "--db",
        str(folder / "world.db"),
        "--tenant",
        TENANT,
        "--as",
        AGENT,
        "--signing-keys",
        str(folder / "keys"),
    ]

    def call(story: VerbStory, given: dict[str, Any]) -> Any:
        read, written = folder / "given", folder / f"{story.verb}.json"
        read.write_bytes(story.file)
        typed = given[TYPED].replace("FILE", shlex.quote(str(read))).replace("OUT", shlex.quote(str(written)))
        code, printed, told = here([*shlex.split(typed), *where, "-o", "json"], {}, None)
        assert code == 0, told or printed
        return read_file(written.read_bytes() if is_file(verbs()[story.verb]) else printed.encode())

    return call


def is_file(verb: Verb) -> bool:
    """Return whether what a verb returns has a format of its own, which REST answers and a command writes."""
    return hasattr(codec.returned(verb), "to_bytes")


TYPED = "typed"
SURFACES: Mapping[str, tuple[Callable[[Path, ExitStack], Call], Callable[[Verb], object]]] = {
    "library": (library, lambda verb: True),
    "rest": (rest, lambda verb: verb.declaration.path),
    "client": (client, lambda verb: verb.declaration.path),
    "command line": (command_line, lambda verb: verb.declaration.command),
    "mcp": (mcp, lambda verb: verb.declaration.tool),
}
"""Each surface, and what of a declaration says that it has a verb."""


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[tuple[str, str], Any]]:
    """Tell every surface all stories, each on a copy of one world; return the world and the answers."""
    world = tmp_path_factory.mktemp("world")
    woodrat.init(world / "keys")
    with opened(world) as ledger:
        known = make_world(ledger)
    found: dict[tuple[str, str], Any] = {}
    for name, (surface, has) in SURFACES.items():
        folder = tmp_path_factory.mktemp("surface") / "world"
        shutil.copytree(world, folder)
        with ExitStack() as stack:
            call, instead = surface(folder, stack), library(folder, stack)
            for story in STORIES:
                given = {**filled(dict(story.given), known), TYPED: filled(story.typed, known)}
                typed = given if name == "command line" else {key: given[key] for key in story.given}
                if has(verbs()[story.verb]):
                    found[name, story.verb] = outcome(call, story, typed)
                else:  # so that what follows is told to the same log
                    instead(story, {key: given[key] for key in story.given})
    return known, found


def outcome(call: Call, story: VerbStory, given: dict[str, Any]) -> Any:
    """Return the answer to a story as plain JSON, or the error that it ended in."""
    try:
        answer = call(story, given)
    except Exception as error:  # raised again by the test of this verb and surface
        return error
    if hasattr(answer, "to_bytes"):
        return read_file(answer.to_bytes())
    return json.loads(json.dumps(codec.plain(answer)))


def read_file(content: bytes) -> Any:
    """Return what a file holds: one JSON value, or one a line."""
    try:
        return json.loads(content)
    except ValueError:
        return [json.loads(line) for line in content.splitlines()]


TOLD = [(name, story) for story in STORIES for name, (_, has) in SURFACES.items() if has(verbs()[story.verb])]


@pytest.mark.parametrize(("name", "story"), TOLD, ids=lambda value: getattr(value, "verb", value))
def test_a_verb_answers_alike_everywhere(answers: Any, name: str, story: VerbStory) -> None:
    """The answer holds what its row says, and is the library's; a command may print it in another form."""
    known, found = answers
    answer, here = found[name, story.verb], found["library", story.verb]
    if isinstance(answer, Exception):
        raise answer
    printed = story.printed if name == "command line" else None
    for path, expected in (story.then if printed is None else printed).items():
        assert dig(answer, path) == filled(expected, known), path
    if printed is None and not story.is_fresh:
        stated = {"stated": f"{story}{known}"}
        assert alike([answer], stated) == alike([here], stated)


def test_every_verb_has_one_story() -> None:
    """A verb that is declared is in the table, once, with the command that it declares."""
    assert sorted(story.verb for story in STORIES) == sorted(verbs())
    for story in STORIES:
        words = re.match(r"[a-z -]*[a-z]", verbs()[story.verb].declaration.command)
        assert story.typed.startswith(words[0]) if words else not story.typed, story.verb
        assert story.then or story.printed, f"{story.verb}: a row says what is answered"
