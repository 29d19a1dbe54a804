"""A parameter that a verb gains is a line at its declaration; every surface that is derived from it has it then."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from woodrat.api import link, verbs
from woodrat.api.coroutine import coroutine
from woodrat.api.verb import Verb, verb, verbs_of
from woodrat.cli import fast_parser, parser
from woodrat.cli import verbs as commands
from woodrat.cli.command import Invocation
from woodrat.cli.verbs.declaration import Command
from woodrat.clock import SystemClock
from woodrat.errors import Fault, Refused
from woodrat.runs.relay import Relay
from woodrat.server import routes
from woodrat.server.openapi import document

if TYPE_CHECKING:
    from woodrat.api.parameters import Budget, Priority, RefArg


class Before:
    """A verb as it was."""

    @verb(get="/v1/samples/{ref}", command="samples show REF")
    def show(self, ref: RefArg, *, priority: Priority | None = None) -> dict[str, Any]:
        """Show a sample."""
        return {"ref": str(ref), "priority": priority}


class After:
    """The same verb, with one line more."""

    @verb(get="/v1/samples/{ref}", command="samples show REF")
    def show(
        self,
        ref: RefArg,
        *,
        priority: Priority | None = None,
        amount: Budget | None = None,
    ) -> dict[str, Any]:
        """Show a sample."""
        return {"ref": str(ref), "priority": priority, "amount": amount}


class Transport:
    """A server that answers with what it was asked."""

    clock = SystemClock()

    def get(self, path: str, asked: dict[str, Any]) -> Any:
        """Return the question."""
        return {"path": path, **{name: value for name, value in asked.items() if value is not None}}


def seen(kind: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Return where a parameter of the sample verb is found."""
    (sample,) = verbs_of(kind, "samples")
    assert isinstance(sample, Verb)
    route = routes.declared_route(sample)
    operation = document("1", [route])["paths"]["/v1/samples/{ref}"]["get"]

    class Remote(kind):  # type: ignore[misc]
        """The sample behind a server."""

        link = link.Link(Transport())  # type: ignore[arg-type]
        show = link_over(sample)

    class Served:
        """The ledger of a server."""

        samples = kind()

    def taken(call: Any) -> bool:
        try:
            return "amount" in call(amount=3)
        except TypeError:
            return False

    add_command(sample, monkeypatch)

    def asked(parse: Any) -> bool:
        try:
            given = parse(["samples", "show", "a/b", "--amount", "3"])
        except Refused:
            return False
        return given is not None and Invocation(given).ask(Served()).get("amount") == 3  # type: ignore[arg-type]

    class Awaited:
        """The sample as a coroutine."""

        target = kind()
        show = coroutine(kind.show)

    return {
        "library": taken(lambda **more: kind().show("a/b", **more)),
        "client": taken(lambda **more: Remote().show("a/b", **more)),
        "coroutine": taken(lambda **more: run(Awaited().show("a/b", **more))),
        "REST": taken(lambda **more: route.answer(Served(), ref="a/b", **more)),
        "OpenAPI": any(param["name"] == "amount" for param in operation["parameters"]),
        "command line, fast": asked(fast_parser.match),
        "command line, argparse": asked(parser.parse),
        "help": "--amount N" in help_of(),
        "reference": "`amount`" in "\n".join(section(sample)),
        **seen_by_agents(sample, kind, monkeypatch),
    }


def seen_by_agents(sample: Verb, kind: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Return whether agents are told of the parameter, and whether it reaches the verb through the tool."""
    from types import SimpleNamespace

    from woodrat.mcp import action, arguments
    from woodrat.mcp.action import Tool

    monkeypatch.setattr(action, "verbs", lambda: {"samples.show": sample})
    tool = Tool("samples", "Show a sample.", action.VerbAction("samples.show", compact=dict, noun="sample"))
    ledger: Any = SimpleNamespace(samples=kind())

    def answered() -> Any:
        try:
            _, given = arguments.chosen(tool, {"ref": "a/b", "amount": 3})
        except Refused:
            return {}
        offered = tool.actions[""]
        return offered.written(offered.call(ledger, Relay(), given), given)["sample"]

    return {"MCP list": "amount" in arguments.listed(tool)["properties"], "MCP": answered().get("amount") == 3}


def add_command(sample: Verb, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Let the command of a verb be typed; nothing is said of its arguments."""
    command = Command("samples show", "samples:show", ("woodrat samples show a/b",), verb=sample)
    monkeypatch.setitem(commands.GROUPS, "samples", "Show samples.")
    monkeypatch.setitem(commands.FIRST_WORDS, "samples", "facts")
    monkeypatch.setattr(parser, "COMMANDS", (command,))
    for module in (parser, fast_parser):
        monkeypatch.setattr(module, "named", lambda words: command if words == command.words else None)
    return command


def help_of() -> str:
    """Return the help of the sample's command."""
    import io
    from contextlib import redirect_stdout

    out = io.StringIO()
    with redirect_stdout(out), pytest.raises(SystemExit):
        parser.parse(["samples", "show", "--help"])
    return out.getvalue()


def run(awaitable: Any) -> Any:
    """Return what an awaitable comes to."""
    import asyncio

    async def whole() -> Any:
        return await awaitable

    return asyncio.run(whole())


def link_over(sample: Verb) -> Any:
    """Return the method that sends a verb."""
    return link.over(sample)


def section(sample: Verb) -> list[str]:
    """Return the part of a reference page about a verb."""
    from tests.docs.make_reference import section as written

    return list(written(sample))


def test_one_line_more_is_found_on_every_derived_surface(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before, no surface takes the parameter; with its one line, all of them do."""
    assert not any(seen(Before, monkeypatch).values())
    assert all(seen(After, monkeypatch).values()), seen(After, monkeypatch)


class Picky:
    """A verb that refuses what it is given."""

    @verb(get="/v1/samples/{ref}", command="samples show REF")
    def show(self, ref: RefArg, *, budget: Budget | None = None) -> None:
        """Show a sample."""
        raise Refused(
            [Fault("ref", "a", "b"), Fault("budget", "c", "d"), Fault("other", "e", "f")], "Nothing was read."
        )


def test_what_is_wrong_with_a_value_is_told_by_what_was_typed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser names the option, and so does a refusal of the library; what was not typed keeps its name."""

    class Ledger:
        samples = Picky()

    (sample,) = verbs_of(Picky, "samples")
    add_command(sample, monkeypatch)
    with pytest.raises(Refused, match='--budget takes a whole number, got "many"'):
        parser.parse(["samples", "show", "a/b", "--budget", "many"])
    for words, paths in ((["--budget", "3"], ["REF", "--budget", "other"]), ([], ["REF", "budget", "other"])):
        given = fast_parser.match(["samples", "show", "a/b", *words])
        with pytest.raises(Refused) as refused:
            Invocation(given).ask(Ledger())  # type: ignore[arg-type]
        assert [fault.path for fault in refused.value.faults] == paths
        assert str(refused.value).endswith("\nNothing was read.")


READS = ["search", "query", "elements", "history", "blame", "observations", "related", "diff", "conflicts", "timeline"]
WRITES = ["store", "correct", "retract", "delete", "restore", "relate", "merge", "split"]


@pytest.mark.parametrize("name", [*READS, *WRITES])
def test_a_verb_of_a_run_takes_what_the_verb_of_the_ledger_takes(name: str) -> None:
    """A run names what it records itself and passes on all else, so that a new parameter is there without a change."""
    from inspect import Parameter as Argument
    from inspect import signature

    from woodrat.runs.recorder.run import Run

    declared = verbs.verbs()[name]
    taken = signature(getattr(Run, name)).parameters.values()
    passed_on = any(argument.kind is Argument.VAR_KEYWORD for argument in taken)
    assert passed_on, f"Run.{name} would not take a parameter that {declared.name} gains"
