"""Four surfaces that a story is told through: the library, the command line, the client of a server, and MCP.

A story is a list of steps in JSON: `as` an agent, a `verb` of the library and what it is `given`, at a moment (`at`),
what to `keep` of the answer for later steps, what `then` is so, what is set `apart` when answers are compared, or the
`error` it ends in; a step may need a verb that not every surface has. Surfaces answer alike: with the JSON of the
library's records, lists without what is around them.
"""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, contextmanager, redirect_stderr, redirect_stdout
from operator import attrgetter
from pathlib import Path
from typing import Any, Protocol, get_origin
from unittest import mock

from tests.server.server import Server
from tests.server.test_serve import MAIN, serve

import woodrat
from woodrat.api import codec
from woodrat.api.ledger import Ledger
from woodrat.api.verb import Verb
from woodrat.api.verbs import verbs
from woodrat.cli import verbs as commands
from woodrat.cli.main import main
from woodrat.cli.serve import endpoints
from woodrat.cli.verbs.declaration import destination, label
from woodrat.clock import SystemClock
from woodrat.engines.open import engine_for
from woodrat.ledger.own_policy import registry
from woodrat.ledger.pages import Page
from woodrat.merge.diff import Changes
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Keyring
from woodrat.server.limits import Limits

TENANT = "lending"
AGENTS = ("crm", "web", "loan-officer")
NOUNS: Mapping[str, str] = {
    "search": "items",
    "query": "items",
    "observations": "items",
    "history": "items",
    "timeline": "items",
    "conflicts": "items",
    "diff": "changes",
    "blame": "claims",
    "related": "items",
    "duplicates": "items",
    "runs": "items",
    "why": "items",
    "stale": "items",
    "fingerprint": "fingerprint",
    "record": "items",
}
"""Under which name the answer to a verb stands where something is around it."""


class Failed(Exception):
    """An error, as a surface tells it."""

    def __init__(self, code: str, message: str, details: Any) -> None:
        self.code, self.message, self.details = code, message, details


class Surface(Protocol):
    """One way to reach a ledger."""

    async def call(self, agent: str, verb: str, given: dict[str, Any], at: dict[str, Any]) -> Any:
        """Return the answer to a verb as plain JSON; `Failed` for an error, `NotImplementedError` without the verb."""


# The library, and the client of a server: the same code


NAMESPACED = {
    "checkpoint": "proofs.checkpoint",
    "evaluate": "runs.evaluate",
    "judge": "runs.judge",
    "register": "schemas.register",
    "run_record": "runs.show",
    "runs": "runs.list",
    "runs_diff": "runs.diff",
    "runs_group": "runs.group",
    "schema": "schemas.show",
    "schemas": "schemas.list",
}
"""Verbs of the stories that the library has in a namespace."""


class Library:
    """A ledger that is here, or one behind a server: whatever has the verbs."""

    def __init__(self, ledger_of: Callable[[str], Any]) -> None:
        self._ledger_of = ledger_of

    async def call(self, agent: str, verb: str, given: dict[str, Any], at: dict[str, Any]) -> Any:
        ledger = self._ledger_of(agent)
        try:
            if verb == "record":
                return [told(ledger, document) for document in given["document"]]
            past = ledger.at(at.get("as_of"), valid_at=at.get("valid_at")) if at else ledger
            return plain(verb, attrgetter(NAMESPACED.get(verb, verb))(past)(**given))
        except woodrat.WoodratError as error:
            raise Failed(error.code, str(error), error.details) from error


def plain(verb: str, found: Any) -> Any:
    """Return what a verb returned as plain JSON."""
    if isinstance(found, Page):
        found = found.items
    if verb == "search":
        found = tuple(hit.snapshot for hit in found)
    if isinstance(found, Changes):
        found = found.changes
    return codec.plain(found.claims if verb == "blame" else found)


def told(ledger: Any, document: dict[str, Any]) -> str:
    """Let an agent run as a document tells, through the library; return the run."""
    about = {name: value for name, value in document.items() if name not in ("query", "steps", "answer")}
    with ledger.run(document["query"], on_error="raise", **about) as run:
        for step in document.get("steps", ()):
            ((kind, said),) = step.items()
            if kind == "read":
                run.show(said)
            elif kind == "tool":
                with run.tool(said["name"], **said["args"]) as call:
                    call.result = said["result"]
            elif kind == "note":
                run.note(said)
            else:
                facts = run.show(said["facts"]) if isinstance(said["facts"], str) else said["facts"]
                rules = [woodrat.Rule(**rule) for rule in said["rules"]]
                woodrat.decide(said["stage"], facts, rules, default=said.get("default"))
        run.answer(document["answer"])
    return str(run.id)


@asynccontextmanager
async def library(folder: Path) -> AsyncIterator[Surface]:
    """A ledger in this process."""
    with woodrat.open(folder / "library.db", tenant=TENANT, agent="crm") as ledger:
        yield Library(ledger.as_agent)


def keys_in(db: Path) -> dict[str, str]:
    """Make a database with a key for each agent."""
    with woodrat.open(db, tenant=KEYS_TENANT, agent="operator") as operator:
        keyring = Keyring(operator, SystemClock())
        return {agent: keyring.create(TENANT, agent, ["*"])[1] for agent in AGENTS}


@contextmanager
def served(db: Path) -> Iterator[tuple[Server, dict[str, str]]]:
    """Serve a new database in this process, with a key for each agent."""
    keys, clock = keys_in(db), SystemClock()
    with closing(engine_for(db)) as engine:
        operator = Ledger(engine, tenant=KEYS_TENANT, agent="operator", clock=clock, policies=registry(()))
        app = App(
            engine,
            Keyring(operator, clock),
            clock=clock,
            policies=registry(()),
            endpoints=endpoints(),
            limits=Limits(),
        )
        with Server(app) as server:
            yield server, keys


@asynccontextmanager
async def client(folder: Path) -> AsyncIterator[Surface]:
    """The Python client of a server, with a key for each agent."""
    with served(folder / "served.db") as (server, keys):
        ledgers = {agent: woodrat.open(f"http://127.0.0.1:{server.port}", key=key) for agent, key in keys.items()}
        yield Library(ledgers.__getitem__)
        for ledger in ledgers.values():
            ledger.close()


# The command line


Ran = tuple[int, str, str]
"""The exit code of a command, and what it printed to either stream."""


def in_a_process(words: list[str], environment: dict[str, str], stdin: str | None) -> Ran:
    """Run a command as a process of its own."""
    ran = subprocess.run(
        [sys.executable, "-c", MAIN, *words],
        env={**os.environ, **environment},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
    )
    return ran.returncode, ran.stdout, ran.stderr


def here(words: list[str], environment: dict[str, str], stdin: str | None) -> Ran:
    """Run a command in this process, as a process would be told of it."""
    printed, told = io.StringIO(), io.StringIO()
    read = io.TextIOWrapper(io.BytesIO((stdin or "").encode()), encoding="utf-8")
    with (
        mock.patch.dict(os.environ, environment),
        mock.patch.object(sys, "stdin", read),
        redirect_stdout(printed),
        redirect_stderr(told),
    ):
        return main(words), printed.getvalue(), told.getvalue()


class CommandLine:
    """A command for each step."""

    def __init__(self, run: Callable[..., Ran], where: Callable[[str], tuple[list[str], dict[str, str]]]) -> None:
        self._run = run
        self._where = where

    async def call(self, agent: str, verb: str, given: dict[str, Any], at: dict[str, Any]) -> Any:
        words, stdin = command(verb, dict(given))
        moment = {"as_of": "--as-of", "valid_at": "--valid-at"}
        words += [f"{moment[name]}={value}" for name, value in at.items()]
        where, environment = self._where(agent)
        code, printed, told = self._run([*words, *where, "-o", "json"], environment, stdin)
        if code:
            assert code in (2, 3, 6), told
            error = json.loads(as_arguments(words, told))
            raise Failed(error["code"], error["message"], error["details"])
        if verb == "judge":
            return None  # it shows the judgement in place of the report
        found = unwrapped(verb, json.loads(printed))
        return (
            {name: value for name, value in found.items() if name not in ("tag", "tagged")} if verb == "tag" else found
        )


def as_arguments(words: list[str], told: str) -> str:
    """Return an error that names arguments as other surfaces do: `--observed-at` is observed_at, and `REF` is ref."""
    typed = commands.named(" ".join(words[:2])) or commands.named(words[0])
    assert typed is not None
    names = {label(argument): destination(argument) for argument in typed.arguments}
    for name, argument in {**names, "--as-of": "moment"}.items():
        told = re.sub(rf'(?<="){re.escape(name)}(?=[":/])', argument, told)
    return told


def command(verb: str, given: dict[str, Any]) -> tuple[list[str], str | None]:
    """Return the words of a command, and what it reads from its input."""
    take = given.pop
    if verb == "record":
        return ["runs", "import", "-"], json.dumps(take("document"))
    if verb == "store":
        return ["store", "--file", "-", *options(given, take("records"))], STDIN.pop()
    if verb in ("correct", "relate"):
        pairs = [f"--set={name}={json.dumps(value)}" for name, value in take("fields", {}).items()]
        ends = [take("ref")] if verb == "correct" else [take("start"), take("type"), take("end")]
        return [verb, *ends, *pairs, *options(given)], None
    if verb == "retract":
        return [verb, *take("observations"), *options(given)], None
    if verb == "merge":
        return [verb, take("one"), take("other"), *options(given)], None
    if verb == "split":
        return [verb, take("ref"), *([take("other")] if "other" in given else []), *options(given)], None
    if verb == "search":
        return ["entities", "search", *options(given)], None
    if verb == "query":
        return ["entities", "list", *options(given)], None
    if verb == "observations":
        return ["observations", "list", take("ref")], None
    if verb == "blame":
        return ["blame", f"{take('ref')}#{take('field')}"], None
    if verb == "diff":
        return [
            "diff",
            *([take("ref")] if "ref" in given else []),
            f"--from={take('before')}",
            f"--to={take('after')}",
        ], None
    if verb == "tag":
        return ["tag", take("name"), *([str(take("moment"))] if "moment" in given else [])], None
    if verb in ("runs", "run_record", "runs_diff"):
        named = {"runs": "list", "run_record": "show", "runs_diff": "diff"}[verb]
        return [
            "runs",
            named,
            *(take(name) for name in ("run", "first", "second") if name in given),
            *options(given),
        ], None
    if verb == "judge":
        return ["runs", "judge", take("run"), take("verdict"), *options(given)], None
    if verb == "what_if":
        pairs = [f"--set={name}={json.dumps(value)}" for name, value in take("set", {}).items()]
        return ["what-if", take("run"), *pairs, *options(given)], None
    first = [take(name) for name in ("ref", "question", "what", "text") if name in given]
    return [verb, *first, *options(given)], None


STDIN: list[str] = []


def options(given: dict[str, Any], records: Any = None) -> list[str]:
    """Return arguments as options."""
    if records is not None:
        STDIN.append(json.dumps(records))
    found: list[str] = []
    for name, value in given.items():
        option = f"--{name.replace('_', '-')}"
        if isinstance(value, list):
            found += [f"{option}={one}" for one in value]
        else:
            found += [option] if value is True else [f"{option}={value}"]
    return found


@asynccontextmanager
async def command_line(folder: Path) -> AsyncIterator[Surface]:
    """The command line, on a database of its own."""
    db = folder / "cli.db"
    yield CommandLine(here, lambda agent: (["--db", str(db), "--tenant", TENANT, "--as", agent], {}))


@asynccontextmanager
async def served_command_line(folder: Path) -> AsyncIterator[Surface]:
    """The command line, on a ledger behind a server: the key in the environment says who calls."""
    keys = keys_in(folder / "afar.db")
    with serve(folder / "afar.db") as (port, _):
        where = f"http://127.0.0.1:{port}"
        yield CommandLine(in_a_process, lambda agent: (["--db", where], {"WOODRAT_TOKEN": keys[agent]}))


def unwrapped(verb: str, found: Any) -> Any:
    """Return an answer without what is around it."""
    if verb in ("search", "query"):
        entities = found.get("items", [found])  # one hit is shown by itself
        besides = ("exact", "found_in", "claims", "observations")
        return [{name: value for name, value in one.items() if name not in besides} for one in entities]
    return found[NOUNS[verb]] if verb in NOUNS else found


# MCP


WHOLE = 100_000
"""A budget, in tokens, that every recalled text of a story fits."""


class Tools:
    """The official client of MCP, one for each agent."""

    def __init__(self, client_of: Callable[[str], Any]) -> None:
        self._client_of = client_of

    async def call(self, agent: str, verb: str, given: dict[str, Any], at: dict[str, Any]) -> Any:
        using = await self._client_of(agent)
        if verb == "record":
            return [await self._told(using, document) for document in given["document"]]
        declared = verbs()[NAMESPACED.get(verb, verb)]
        if declared.declaration.tool == "":
            raise NotImplementedError(verb)
        tool, action = place(declared)
        wires = {parameter.name: parameter.wire for parameter in declared.parameters}
        if verb == "recall":
            given = {"budget": WHOLE, **given}  # to an agent that names no budget a recall is short
        sent = {wires[name]: value for name, value in given.items()} | at | ({"action": action} if action else {})
        try:
            answer = await self._tool(using, tool, **sent, details=True)
        except Failed as failed:
            raise moment_named(failed) from failed
        return plain(verb, record_in(declared, answer))

    async def _told(self, using: Any, document: dict[str, Any]) -> str:
        about = {name: value for name, value in document.items() if name not in ("steps", "answer")}
        run = (await self._tool(using, "run", action="start", **about))["run"]
        for step in document.get("steps", ()):
            if "decide" in step:
                await self._tool(using, "run", action="decide", run=run, **step["decide"])
            else:
                await self._tool(using, "run", action="step", run=run, step=step)
        await self._tool(using, "run", action="end", run=run, answer=document["answer"])
        return str(run)

    @staticmethod
    async def _tool(using: Any, tool: str, **given: Any) -> Any:
        result = await using.call_tool(tool, given)
        found = result.structured_content
        if result.is_error:
            raise Failed(found["code"], found["message"], found["details"])
        return unmarked(found)


def place(verb: Verb) -> tuple[str, str]:
    """Return the tool that offers a verb, and the action that it is there."""
    from woodrat.mcp.action import VerbAction
    from woodrat.mcp.tools import tools

    tool = tools()[verb.declaration.tool]
    (action,) = (
        name for name, action in tool.actions.items() if isinstance(action, VerbAction) and verb in action.verbs
    )
    return tool.name, action


def moment_named(failed: Failed) -> Failed:
    """Return an error about a moment as the library has it, where that is no argument and has no name."""
    faults = failed.details.get("faults", [])
    if not any(fault["path"] == "as_of" for fault in faults):
        return failed
    renamed = [{**fault, "path": "moment"} if fault["path"] == "as_of" else fault for fault in faults]
    return Failed(failed.code, failed.message.replace("as_of: ", "moment: ", 1), {**failed.details, "faults": renamed})


def record_in(verb: Verb, answer: dict[str, Any]) -> Any:
    """Return what the library would, from an answer that is whole."""
    kind = codec.returned(verb)
    if get_origin(kind) is tuple:
        return codec.read(kind, answer["items"])
    whole = {name: value for name, value in answer.items() if name != "remark"}
    return codec.read(kind, whole)


def unmarked(found: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without the notice that what is stored is data, which every one has here."""
    assert found["notice"]
    return {name: value for name, value in found.items() if name != "notice"}


@asynccontextmanager
async def mcp(folder: Path) -> AsyncIterator[Surface]:
    """MCP over HTTP, with a key for each agent."""
    from tests.mcp.conftest import over_http

    with served(folder / "mcp.db") as (server, keys):
        async with clients(lambda agent: over_http(server, keys[agent])) as client_of:
            yield Tools(client_of)


@asynccontextmanager
async def mcp_of_processes(folder: Path) -> AsyncIterator[Surface]:
    """MCP over standard input and output: `woodrat mcp`, a process for each agent."""
    from tests.mcp.conftest import over_stdio

    async with clients(lambda agent: over_stdio(folder / "stdio.db", agent, "auto", TENANT)) as client_of:
        yield Tools(client_of)


@asynccontextmanager
async def clients(connect: Callable[[str], Any]) -> AsyncIterator[Callable[[str], Any]]:
    """Connect each agent when it first calls."""
    async with AsyncExitStack() as stack:
        connected: dict[str, Any] = {}

        async def client_of(agent: str) -> Any:
            if agent not in connected:
                connected[agent] = await stack.enter_async_context(connect(agent))
            return connected[agent]

        yield client_of


# Telling

SURFACES: Mapping[str, Callable[[Path], Any]] = {
    "library": library,
    "command line": command_line,
    "command line, served": served_command_line,
    "client": client,
    "mcp": mcp,
    "mcp, stdio": mcp_of_processes,
}


def dig(value: Any, path: str) -> Any:
    """Return what a dotted path leads to; `*` takes the rest of the path of every item, `#` counts."""
    name, _, rest = path.partition(".")
    if name == "":
        return value
    if name == "#":
        return len(value)
    if name == "*":
        return [dig(item, rest) for item in value]
    return dig(value[int(name)] if isinstance(value, list) else value[name], rest)


def filled(value: Any, kept: Mapping[str, Any]) -> Any:
    """Return what a step is given, with `${name}` replaced by what was kept under the name."""
    if isinstance(value, dict):
        return {name: filled(item, kept) for name, item in value.items()}
    if isinstance(value, list):
        return [filled(item, kept) for item in value]
    if not isinstance(value, str) or "${" not in value:
        return value
    alone = re.fullmatch(r"\$\{([\w-]+)\}", value)
    return kept[alone[1]] if alone else re.sub(r"\$\{([\w-]+)\}", lambda found: str(kept[found[1]]), value)


INDEXING_TRIES = 200
"""How often a recall is asked again while a server still embeds what it was told."""


async def tell(surface: Surface, story: Mapping[str, Any]) -> list[Any]:
    """Tell a story and return its answers; a step that a surface has not got is `None`."""
    kept: dict[str, Any] = {}
    found: list[Any] = []
    missing = set[str]()
    for number, step in enumerate(story["steps"]):
        where = f"step {number}, {step['verb']}"
        given, at = filled(step.get("given", {}), kept), filled(step.get("at", {}), kept)
        try:
            if step.get("needs") in missing:
                raise NotImplementedError
            answer = await surface.call(step["as"], step["verb"], given, at)
            for _ in range(INDEXING_TRIES if step["verb"] == "recall" else 0):  # a server indexes in the background
                if not isinstance(answer, dict) or not answer.get("lacking"):
                    break
                await asyncio.sleep(0.05)
                answer = await surface.call(step["as"], step["verb"], given, at)
        except NotImplementedError:
            assert not step.get("keep"), f"{where}: later steps lean on it"
            missing.add(step["verb"])
            found.append(None)
            continue
        except Failed as failed:
            if failed.code != step.get("error"):
                raise AssertionError(f"{where}: {failed.code}: {failed.message}") from failed
            found.append({"code": failed.code, "message": failed.message, "details": failed.details})
            continue
        assert "error" not in step, f"{where}: it was to be {step.get('error')}"
        kept.update({name: dig(answer, path) for name, path in step.get("keep", {}).items()})
        for path, expected in step.get("then", {}).items():
            came = dig(answer, path)
            assert came == filled(expected, kept), f"{where}: {path} is {came}"
        # Of what comes equally near, random names decide which is listed.
        found.append(
            {name: item for name, item in answer.items() if name not in step["apart"]} if "apart" in step else answer
        )
    return found


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
_NAMED = re.compile(r"(?:run|int|log)_[a-z2-7]{26}|\b[0-9a-f]{16}\b|\blog_\w+")
_MEASURED = ("duration_ms",)


def alike(answers: list[Any], story: Mapping[str, Any]) -> list[Any]:
    """Return answers with what must differ made the same: names that are random by when they first appear, and times
    that the story does not state.
    """
    stated = {found[0][:19] for found in _TIME.finditer(json.dumps(story))}
    names: dict[str, str] = {}

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found[0], f"<{len(names)}>")

    def time(found: re.Match[str]) -> str:
        return found[0] if found[0][:19] in stated else "<time>"

    def made(value: Any) -> Any:
        if isinstance(value, dict):
            return {made(key): made(item) for key, item in value.items() if key not in _MEASURED}
        if isinstance(value, list):
            return [made(item) for item in value]
        return _NAMED.sub(name, _TIME.sub(time, value)) if isinstance(value, str) else value

    found: list[Any] = made(answers)
    return found
