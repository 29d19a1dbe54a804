"""Every way to write a run, as one list: each is tried by a stranger on a run of somebody else.

A door is a function that sends one request, or a few, with the stranger's key. What became of the run is looked at
from outside, so a door that answers as if nothing had happened is caught too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

from tests.server.server import Answer, Server

TRACE = "5b8aa5a2d2c872e8321cf37308d69df2"
EARLY = "2001-01-01T00:00:00Z"
RECORD = {"entity_type": "loan", "id": "42", "creditScore": 1}
RULES = [{"chosen": "approved", "when": {"a": 1}}]


class Scene(NamedTuple):
    """A server, a run on it whose owner is another, and the key of a stranger."""

    server: Server
    run: str
    """The run of another agent, recorded step by step and still going on."""
    traced: str
    """Another one of the same agent, which came as spans of `TRACE`."""
    owner: str
    """Whose runs these are."""
    key: str
    """What the stranger calls with."""

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return self.server.call("POST", path, body, key=self.key, headers=headers)

    def tool(self, name: str, **given: Any) -> Answer:
        """Call a tool of MCP with one plain request."""
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": given}}
        headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}
        return self.server.call("POST", "/mcp", body, key=self.key, headers=headers)

    def own(self) -> str:
        """Begin a run of the stranger's own; where the key does not carry that, there is none."""
        answer = self.post("/v1/runs", {"query": "Mine?"})
        return str(answer.json["run"]) if answer.status == 200 else "run_" + "z" * 26


Door = Callable[[Scene], object]


def step(told: dict[str, Any]) -> Door:
    return lambda at: at.post(f"/v1/runs/{at.run}/steps", {"step": told})


def entries(*told: dict[str, Any]) -> Door:
    return lambda at: at.post(f"/v1/runs/{at.run}/entries", {"entries": list(told)})


def recorded(make: Callable[[Scene], Any]) -> Door:
    return lambda at: at.post("/v1/runs/import", {"document": make(at)})


def stated_in_own_run(change: dict[str, Any]) -> Door:
    """Begin a run of one's own, and let a step of it say that it is part of the other."""
    return lambda at: at.post(f"/v1/runs/{at.own()}/steps", {"step": {"change": {**change, "run": at.run, "step": 1}}})


def spans(at: Scene, *, root: bool) -> Answer:
    """Send spans under the trace id of the other agent's run: an agent's with an answer, and a decision."""

    def span(number: int, parent: str, name: str, **said: str) -> dict[str, Any]:
        listed = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in said.items()]
        times = {"startTimeUnixNano": str(number), "endTimeUnixNano": str(number + 10)}
        ids = {"traceId": TRACE, "spanId": f"{number:016x}", "parentSpanId": parent}
        return {**ids, "name": name, **times, "attributes": listed}

    told = [
        span(900, "", "agent", openinference__span__kind="AGENT", input__value="?", output__value="forged"),
        span(901, "0000000000000384", "risk", gen_ai__operation__name="decision", output__value="forged"),
    ]
    told = told if root else told[1:]
    return at.post("/v1/traces", {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": told}]}]})


def lines(at: Scene, *told: dict[str, Any]) -> Answer:
    """Import a log that another ledger wrote, in which the stranger speaks of the other agent's run."""
    import io

    import woodrat

    with woodrat.open(":memory:", agent="stranger") as other:
        other.runs.import_([{"run": at.run, "span": "f" * 16, **entry} for entry in told])
        out = io.BytesIO()
        other.log.export(out)
    return at.server.call(
        "POST", "/v1/log", out.getvalue(), key=at.key, headers={"Content-Type": "application/x-ndjson"}
    )


ENDED = {"kind": "run.ended", "status": "done", "answer": "forged", "started_at": EARLY}
DECIDED = {"kind": "run.decided", "stage": "risk", "mode": "decide", "chosen": "forged", "default": True, "rules": []}
STARTED = {"kind": "run.started", "query": "forged", "started_at": EARLY}

REST: dict[str, Door] = {
    "start": lambda at: at.post("/v1/runs", {"query": "forged", "id": at.run}),
    "start with a key": lambda at: at.post("/v1/runs", {"query": "forged", "id": at.run}, **{"Idempotency-Key": "k"}),
    "note": step({"note": "forged"}),
    "tool": step({"tool": {"name": "t", "result": "forged"}}),
    "model": step({"model": {"model": "m", "response": "forged"}}),
    "decide": step({"decide": {"stage": "risk", "facts": {"a": 1}, "rules": RULES}}),
    "select": step({"select": {"stage": "risk", "facts": {"a": 1}, "rules": RULES}}),
    "read": step({"read": "loan/42"}),
    "store step": step({"store": [RECORD]}),
    "change step": step({"change": {"verb": "correct", "ref": "loan/42", "fields": {"creditScore": 1}}}),
    "entries": entries({"kind": "run.noted", "text": "forged"}),
    "entries that decide": entries(DECIDED),
    "entries that end": entries(ENDED),
    "resume": lambda at: at.post(f"/v1/runs/{at.run}/resume", {}),
    "end": lambda at: at.post(f"/v1/runs/{at.run}/end", {"answer": "forged"}),
    "store": lambda at: at.post("/v1/store", {"records": [RECORD], "run": at.run, "step": 1}),
    "store of a step of one's own": stated_in_own_run({"verb": "store", "records": [RECORD]}),
    "record entries": recorded(lambda at: [{**DECIDED, "run": at.run}, {**ENDED, "run": at.run}]),
    "record an earlier beginning": recorded(lambda at: [{**STARTED, "run": at.run}, {**ENDED, "run": at.run}]),
    "record a beginning of a trace": recorded(lambda at: [{**STARTED, "run": at.traced, "trace": TRACE}]),
    "record a trajectory": recorded(
        lambda at: {"id": at.run, "answer": "forged", "steps": [{"kind": "note", "text": "forged"}]}
    ),
    "record a told run": recorded(lambda at: {"id": at.run, "query": "forged", "answer": "forged"}),
}
MCP: dict[str, Door] = {
    "run step": lambda at: at.tool("run", action="step", run=at.run, step={"note": "forged"}),
    "run store": lambda at: at.tool("run", action="step", run=at.run, step={"store": [RECORD]}),
    "run decide": lambda at: at.tool("run", action="decide", run=at.run, stage="s", facts={"a": 1}, rules=RULES),
    "run end": lambda at: at.tool("run", action="end", run=at.run, answer="forged"),
    "run change of one's own": lambda at: at.tool(
        "run",
        action="step",
        run=at.own(),
        step={"change": {"verb": "store", "records": [RECORD], "run": at.run}},
    ),
    "store": lambda at: at.tool("store", records=[RECORD], run=at.run),
}
OTLP: dict[str, Door] = {
    "a whole trace": lambda at: spans(at, root=True),
    "a span without its root": lambda at: spans(at, root=False),
}
NEOTOMA: dict[str, Door] = {
    "store": lambda at: at.post("/neotoma/store", {"entities": [{**RECORD, "run": at.run, "run_id": at.run}]}),
    "store with a run": lambda at: at.post("/neotoma/store", {"entities": [RECORD], "run": at.run}),
    "correct with a run": lambda at: at.post(
        "/neotoma/correct",
        {"entity_id": "loan/42", "entity_type": "loan", "field": "creditScore", "value": 1, "run": at.run},
    ),
}
IMPORT: dict[str, Door] = {
    "a log": lambda at: lines(at, {**STARTED}, {**DECIDED}, {**ENDED}),
    "a log without a beginning": lambda at: lines(at, {**DECIDED}, {**ENDED}),
    "admit": lambda at: at.post(
        "/v1/admit",
        {
            "bodies": [
                {
                    "kind": kind,
                    "body": {"run": at.run, "agent": "stranger", "step": 0, "span": "e" * 16, "started_at": EARLY},
                }
                for kind in ("run.started", "run.noted", "run.ended")
            ]
        },
    ),
}
DOORS: dict[str, Door] = {
    f"{name}: {door}": call
    for name, doors in (("REST", REST), ("MCP", MCP), ("OTLP", OTLP), ("Neotoma", NEOTOMA), ("import", IMPORT))
    for door, call in doors.items()
}
"""All of them, by name."""


def seen(at: Scene, key: str) -> dict[str, Any]:
    """Return what a reader sees of the other agent's runs, apart from where foreign entries stand.

    What became of the evidence since follows from what anybody says of it, and is left out.
    """
    records = [at.server.call("GET", f"/v1/runs/{run}", key=key).json for run in (at.run, at.traced)]
    for record in records:
        record.pop("foreign"), record.pop("linked")
    reasons = at.server.call("GET", "/v1/why/loan%2F42?details=true", key=key).json["items"]
    for decision in [*(made for record in records for made in record["decisions"]), *(r["decision"] for r in reasons)]:
        decision.pop("looked_at")
    return {"records": records, "why": json.dumps(reasons)}
