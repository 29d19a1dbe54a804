"""Every verb is declared once: its address, its command, its place in the clients, or a reason why it has none."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.api import aio
from woodrat.api.ledger import Ledger
from woodrat.api.past import Past
from woodrat.api.remote import RemoteLedger
from woodrat.api.verb import Verb
from woodrat.api.verbs import NAMESPACES, verbs
from woodrat.cli.verbs import COMMANDS
from woodrat.cli.verbs.declaration import EVERYWHERE, Command, destination, is_option, label
from woodrat.server.routes import ROUTES

UNDECLARED = {
    "admit": "it takes what another log holds, which only sync does",
    "as_agent": "as whom it is written is for the key to say",
    "at": "every address that reads takes the moment itself",
    "close": "it is this process that lets go of the database",
    "erased_at": "an entry of the log says it itself",
    "follow_stale": "it never ends; /v1/stale/new is asked again and again",
    "on_stale": "it calls a function of this process",
    "recorded": "it makes a function of this process a run",
    "run": "a run is recorded step by step, at addresses of its own",
    "run_log": "it says where the library records a run",
    "stale_follower": "follow_stale and on_stale are made of it",
    "interpretations.begin": "an interpretation is told by its id, at addresses of its own",
    "interpretations.continue_": "an interpretation is told by its id, at addresses of its own",
    "interpretations.start": "an interpretation is told by its id, at addresses of its own",
    "log.backup": "it writes a file beside the database",
    "log.export": "it writes a file; the entries are at /v1/log",
    "log.import_": "it reads a file; its lines are sent to /v1/log",
    "log.sync": "a ledger that is here syncs with a server",
    "runs.carry_on": "resume is made of it",
    "runs.fork": "it runs the agent's code, which is here",
    "runs.forked": "fork is made of it",
    "runs.continue_": "a run is recorded step by step, at addresses of its own",
    "runs.replay": "it runs the agent's code, which is here",
    "runs.resume": "it runs the agent's code, which is here",
    "schemas.check": "it is register with dry_run",
    "sql": "it is for people who have the database",
    "sources.show": "the list has every delivery",
    "sources.add": "content is sent as text or base64",
    "sources.content": "content is answered as text or base64",
}
"""Methods of the library that are no declared verb with an address, each with the reason."""


def methods() -> Iterator[str]:
    """Yield every public method of the library, with its namespace."""
    for name in dir(Ledger):
        if not name.startswith("_") and callable(getattr(Ledger, name)):
            yield name
    for namespace, kind in NAMESPACES.items():
        module = __import__(f"woodrat.api.{namespace}", fromlist=[kind])
        for name in dir(getattr(module, kind)):
            if not name.startswith("_") and callable(getattr(getattr(module, kind), name)):
                yield f"{namespace}.{name}"


@pytest.mark.parametrize("name", sorted(methods()))
def test_every_verb_has_an_address_or_a_reason(name: str) -> None:
    """What the library can do is declared with an address, unless a sentence says why not."""
    declared = name in verbs() and bool(verbs()[name].declaration.path)
    assert declared is not (name in UNDECLARED or name == "training.export"), name


def test_no_reason_outlives_its_verb() -> None:
    """Reasons are about methods that there are."""
    assert set(UNDECLARED) <= set(methods())


ADDRESSED = [verb for verb in verbs().values() if verb.declaration.path]


def route_of(verb: Verb) -> Any:
    """Return the route at a verb's address."""
    asked = (verb.declaration.method, verb.declaration.path)
    return next(route for route in ROUTES if (route.method, route.path) == asked)


@pytest.mark.parametrize("verb", ADDRESSED, ids=lambda verb: verb.name)
def test_the_address_is_as_declared(verb: Verb) -> None:
    """Grant, moment and width of the route are those of the declaration."""
    route, declared = route_of(verb), verb.declaration
    assert (route.grant, route.moment, route.wide) == (declared.grant, declared.at_moment, declared.wide)
    assert (route.alone, route.lines) == (declared.alone, declared.lines)
    assert route.example == declared.example


@pytest.mark.parametrize("verb", ADDRESSED, ids=lambda verb: verb.name)
def test_the_address_takes_what_the_method_takes(verb: Verb) -> None:
    """Every parameter of a verb is a parameter of its address, under the declared name and in the same place."""
    params = {param.name: param for param in route_of(verb).params}
    here_only = {"by"}  # who judges is for the key to say
    for parameter in verb.parameters:
        if parameter.name in here_only:
            assert parameter.name not in params
            continue
        param = params[parameter.name]
        assert param.spelled == (parameter.kind.header or parameter.wire), parameter.name
        inside = "path" if parameter.in_path else "header" if parameter.kind.header else None
        assert param.inside == (inside or ("body" if verb.declaration.method == "POST" else "query")), parameter.name


COMMANDED = [verb for verb in verbs().values() if verb.declaration.command]


def command_of(verb: Verb) -> Command:
    """Return the command that carries a verb out."""
    return next(command for command in COMMANDS if command.verb is not None and command.verb.name == verb.name)


@pytest.mark.parametrize("verb", COMMANDED, ids=lambda verb: verb.name)
def test_the_command_is_as_declared(verb: Verb) -> None:
    """The command that a declaration names can be typed so: its words, and what stands in a place, in that order."""
    command, declared = command_of(verb), verb.declaration
    places = [
        place if many is None else {"?": f"[{place}]", "*": f"[{place}...]", "+": f"{place}..."}[many]
        for place, many in ((label(one), one[1].get("nargs")) for one in command.arguments if not is_option(one))
    ]
    assert " ".join([command.words, *places]) == declared.command
    assert (command.reads, command.writes) == (declared.at_moment, verb.writes)


@pytest.mark.parametrize("verb", COMMANDED, ids=lambda verb: verb.name)
def test_the_command_takes_what_the_method_takes(verb: Verb) -> None:
    """Every parameter is typed, unless the command says in which other form; nothing else goes by its name."""
    command = command_of(verb)
    names = [destination(argument) for argument in (*command.arguments, *EVERYWHERE)]
    assert len(names) == len(set(names))
    parameters = {parameter.name for parameter in verb.parameters}
    assert set(command.forms) <= parameters, "a form is of a parameter that there is"
    for name in parameters:
        assert name in names or command.forms.get(name) == () or name == "records"


def test_a_tool_offers_declared_verbs_alone() -> None:
    """What a tool offers says so at its declaration; nothing is offered that does not."""
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    from woodrat.mcp.action import VerbAction
    from woodrat.mcp.tools import tools

    for tool in tools().values():
        for action in tool.actions.values():
            if isinstance(action, VerbAction):
                assert {verb.declaration.tool for verb in action.verbs} == {tool.name}


@pytest.mark.parametrize("verb", verbs().values(), ids=lambda verb: verb.name)
def test_every_declared_verb_is_a_coroutine_with_the_same_parameters(verb: Verb) -> None:
    """The async ledger has every verb, in the same namespace."""
    namespace, _, name = verb.name.rpartition(".")
    holder = getattr(aio, f"Async{NAMESPACES[namespace]}") if namespace else aio.AsyncLedger
    assert hasattr(holder, name), verb.name


@pytest.mark.parametrize("verb", ADDRESSED, ids=lambda verb: verb.name)
def test_the_client_is_a_ledger_that_takes_what_the_library_takes(verb: Verb) -> None:
    """A ledger behind a server has the verb, not that of a ledger that is here, with the same parameters."""
    assert issubclass(RemoteLedger, Ledger)
    namespace, _, name = verb.name.rpartition(".")
    import woodrat.api.remote as remote

    kind = getattr(remote, f"Remote{NAMESPACES[namespace]}") if namespace else RemoteLedger
    there = inspect.getattr_static(kind, name)
    assert there is not verb.function, "it would look for an engine here"
    taken = inspect.signature(there).parameters
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    assert anything or {parameter.name for parameter in verb.parameters} <= set(taken)


def test_every_verb_says_what_it_does_in_a_sentence() -> None:
    """The first paragraph of a verb's docstring is what every surface shows."""
    for verb in verbs().values():
        assert verb.what.endswith("."), verb.name
        assert len(verb.what) <= 110, verb.name


def test_moments_of_a_ledger_have_the_verbs_that_read() -> None:
    """What reads at a moment can be asked of `ledger.at(…)`."""
    for verb in verbs().values():
        namespace, _, name = verb.name.rpartition(".")
        if verb.declaration.at_moment and not namespace:
            assert hasattr(Past, name), verb.name


def test_one_interpretation_and_one_source_can_be_asked_for() -> None:
    """`show` finds one by its id and says where there is none; a schema is checked and not written."""
    ledger = woodrat.open(":memory:", agent="reader")
    source = ledger.sources.add(b"Net-30", name="contract.txt")
    with ledger.interpretations.start(source, model="m-1") as reading:
        reading.store({"entity_type": "contract", "name": "kline", "payment_terms": "Net-30"})
    assert ledger.interpretations.show(reading.id) == ledger.interpretations.list().items[0]
    assert [delivery.name for delivery in ledger.sources.show(source)] == ["contract.txt"]
    for ask in (ledger.interpretations.show, ledger.sources.show):
        with pytest.raises(woodrat.NotFound, match="Nothing was changed"):
            ask("src_" + "b" * 26)
    position = ledger.position
    assert ledger.schemas.check({"title": "boat", "properties": {"crew": {"type": "integer"}}}).dry_run
    with pytest.raises(woodrat.Refused):
        ledger.schemas.check({"title": "boat", "properties": 7})
    assert ledger.position == position


def test_iterating_a_page_goes_on_to_the_next(tmp_path: Path) -> None:
    """A page asks for those that follow while it is iterated, each once; its items alone are the page."""
    with woodrat.open(tmp_path / "a.db", agent="crm") as ledger:
        ledger.store([{"entity_type": "contact", "name": f"Ana {number:02}"} for number in range(7)])
        rules = [woodrat.Rule("yes", {"city": {"exists": False}})]
        for number in range(5):
            with ledger.run(f"Call {number}?", subject="contact/Ana 00") as run:
                woodrat.decide("call", run.show("contact/Ana 00"), rules, default="no")
        for here in (ledger, ledger.at("now")):
            page = here.query(limit=3)
            assert len(page.items) == 3
            assert [str(found.entity) for found in page] == [f"contact/Ana {number:02}" for number in range(7)]
            assert str(here.query(limit=3, cursor=page.cursor).items[0].entity) == "contact/Ana 03"
            assert len(list(here.search("Ana", limit=2))) == 7
            assert [found.query for found in here.runs.list(limit=2)] == [f"Call {n}?" for n in reversed(range(5))]
            assert len(list(here.why("contact/Ana 00", limit=2))) == 5
            assert list(here.stale(limit=1)) == []
