"""Shapes over the wire: a run recorded through a server is handed out again as it was."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.runs.shaped import ANYTHING, Quote, same
from tests.server.server import Server

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.runs.recorder.restoration import restored
from woodrat.runs.values import REDACTED, VALUE_BYTES_MAX
from woodrat.server.keys import Keyring

Start = Callable[..., Server]
INPUTS = {
    "zip": 89.0,
    "city": ("a", Decimal("1.50")),
    "quote": Quote(b"\xff\x00"),
    "amount": -0.0,
    "a": {"d": 1, "c": 2},
}


@pytest.fixture
def remote(start: Start, keyring: Keyring) -> Any:
    """A ledger behind a server."""
    server = start(keyring)
    return woodrat.open(f"http://127.0.0.1:{server.port}", key=keyring.create("t", "clerk", ["*"])[1])


@pytest.fixture
def here(engine: SqliteEngine) -> Ledger:
    """The same ledger here."""
    return Ledger(engine, tenant="t", agent="clerk", clock=SystemClock(), policies=registry(()))


def beginning(ledger: Ledger, run: str) -> dict[str, Any]:
    """Return what the log says of the beginning of a run."""
    entries = [entry for entry in ledger.log.entries(limit=1_000) if entry.kind == "run.started"]
    bodies = [form.decode(entry.body) for entry in entries if entry.body is not None]
    (body,) = [body for body in bodies if body["run"] == run]
    found: dict[str, Any] = body
    return found


def agent(run: woodrat.Run) -> str:
    inputs = run.inputs
    text = f"{json.dumps(inputs, default=str)} {inputs['quote']} {list(inputs)}"
    result = run.tool("lookup", lambda: {"b": (1.0, text), "a": Decimal("2.50")}).result
    return f"{text} {result}"


def test_inputs_of_a_remote_run_are_handed_out_again_as_they_were(remote: Any, here: Ledger) -> None:
    """A replay, near the log and over the wire, gives the agent the inputs with order, floats and types."""
    with remote.run("?", inputs=INPUTS) as run:
        run.answer(agent(run))
    body = beginning(here, run.id)
    assert same(restored(body["inputs"], body["shape"]).value, INPUTS)
    for ledger in (here, remote):
        replay = ledger.runs.replay(run.id, agent)
        assert replay.same, replay.table()
        assert replay.runs[0].problems == ()


def test_a_remote_run_has_the_shapes_of_a_local_one(remote: Any, here: Ledger) -> None:
    """Inputs and their shape are the same bytes, wherever the recorder is."""
    bodies = []
    for ledger in (remote, here):
        with ledger.run("?", inputs=INPUTS, redact=["a"]) as run:
            run.answer("done")
        body = beginning(here, run.id)
        bodies.append(form.serialise([body["inputs"], body["shape"]]))
    assert bodies[0] == bodies[1]
    assert REDACTED.encode() in bodies[0]


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ANYTHING)
def test_any_inputs_of_a_remote_run_come_back(remote: Any, here: Ledger, value: Any) -> None:
    """Whatever the inputs are, the log has what gives them back."""
    with remote.run("?", inputs={"value": value, "a": 1.0}) as run:
        run.answer("done")
    body = beginning(here, run.id)
    assert same(restored(body["inputs"], body["shape"]).value, {"value": value, "a": 1.0})


def test_a_shape_that_the_server_may_not_keep_is_hidden(start: Start, keyring: Keyring, here: Ledger) -> None:
    """What the server hides and the recorder did not is in no shape either; the replay says so."""
    server = start(keyring, redact="secret")
    key = keyring.create("t", "clerk", ["*"])[1]
    with woodrat.open(f"http://127.0.0.1:{server.port}", key=key) as remote:
        with remote.run("?", inputs={"z": 1.0, "secret": b"\xff hunter2"}) as run:
            run.tool("lookup", lambda: {"z": (1,), "secret": b"\xff hunter3"})
            run.answer("done")
        with remote.run("?", inputs={"z": 1.0, "open": b"\xff"}) as other:
            other.answer("done")
    assert beginning(here, run.id)["shape"] == REDACTED
    assert not any(b"hunter" in (entry.body or b"") for entry in here.log.entries(limit=100))
    body = beginning(here, other.id)
    assert restored(body["inputs"], body["shape"]).value == {"z": 1.0, "open": b"\xff"}

    def again(run: woodrat.Run) -> str:
        run.tool("lookup", lambda: None)
        return "done"

    assert here.runs.replay(run.id, again).runs[0].problems == (
        "inputs: cannot be restored: the whole value: its shape was hidden",
    )
    (tool,) = [form.decode(entry.body) for entry in here.log.entries(limit=100) if entry.kind == "run.tool"]  # type: ignore[arg-type]
    assert tool["result"] == {"z": [1], "secret": REDACTED}
    assert tool["shape"] == REDACTED


def test_inputs_that_are_cut_have_no_shape(remote: Any, here: Ledger) -> None:
    """Inputs longer than their bound are cut, here and there, and a shape of them says nothing."""
    for ledger in (remote, here):
        with ledger.run("?", inputs={"z": 1.0, "a": "x" * VALUE_BYTES_MAX}) as run:
            run.answer("done")
        body = beginning(here, run.id)
        assert "$truncated" in body["inputs"]
        assert "shape" not in body
