"""Runs told over HTTP, step by step."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.server import Server

import woodrat
from woodrat.server.keys import Keyring

Start = Callable[..., Server]
RULES = [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "label": "Marginal credit"}]


def begin(server: Server, query: str = "Approve #42?", **headers: str) -> str:
    found: str = server.call("POST", "/v1/runs", {"query": query, "subject": "loan/42"}, headers=headers).json["run"]
    return found


def step(server: Server, run: str, kind: str, about: Any, key: str | None = None, **headers: str) -> Any:
    sent = {**headers, **({"Idempotency-Key": key} if key else {})}
    return server.call("POST", f"/v1/runs/{run}/steps", {"step": {kind: about}}, headers=sent)


def recorded(server: Server, run: str) -> woodrat.RunRecord:
    """Return the record of a run, as the client reads it."""
    with woodrat.open(f"http://127.0.0.1:{server.port}") as ledger:
        return ledger.runs.show(run)


def loan(server: Server, score: int) -> None:
    server.call("POST", "/v1/store", {"records": {"entity_type": "loan", "id": "42", "creditScore": score}})


def test_a_run_is_told_step_by_step(server: Server) -> None:
    """A decision is made by the server on what the run read, its verdict is the answer, and evidence has its origin."""
    loan(server, 580)
    run = begin(server)
    assert step(server, run, "read", "loan/42").json["snapshot"]["fields"]["creditScore"] == 580
    assert step(server, run, "tool", {"name": "bureau", "args": {"id": 42}, "result": {"ok": True}}).status == 200
    decided = {"stage": "classify-risk", "facts": {"creditScore": 580}, "rules": RULES, "default": "manual-review"}
    verdict = step(server, run, "decide", decided).json["verdict"]
    assert (verdict["chosen"], verdict["rule"]) == ("rejected", "Marginal credit")
    assert step(server, run, "store", {"entity_type": "loan", "id": "42", "status": "rejected"}).status == 200
    assert server.call("POST", f"/v1/runs/{run}/end", {"answer": "Rejected."}).json["status"] == "done"
    record = server.call("GET", f"/v1/runs/{run}").json
    assert record["answer"] == "Rejected."
    assert record["decisions"][0]["evidence"]["creditScore"] == 580
    snapshot = server.call("GET", f"/v1/runs/{run}/snapshot").json
    assert (snapshot["runId"], snapshot["toolCalls"][0]["resultPreview"]) == (run, '{"ok": true}')
    why = server.call("GET", "/v1/why/loan/42").json["items"]
    assert [reason["decision"]["chosen"] for reason in why] == ["rejected"]
    assert step(server, run, "note", "late").status == 400
    assert server.call("POST", f"/v1/runs/{run}/end", {}).status == 400


def test_telling_again_with_the_same_key_changes_nothing(start: Start) -> None:
    """Beginning, step and end with a key are recorded once, also by a server that was started since."""
    server = start()
    loan(server, 580)
    decided = {"stage": "classify-risk", "facts": "loan/42", "rules": RULES}
    runs = [begin(server, **{"Idempotency-Key": "app-42"}) for _ in range(2)]
    assert runs[0] == runs[1]
    other = server.call("POST", "/v1/runs", {"query": "Other?"}, headers={"Idempotency-Key": "app-42"})
    assert (other.status, other.json["details"]["faults"][0]["path"]) == (400, "idempotency_key")
    first = step(server, runs[0], "decide", decided, "k1").json
    said = {"entity_type": "loan", "id": "42", "status": "rejected"}
    assert step(server, runs[0], "store", said, "k3").json["repeated"] is False
    stored = len(server.call("GET", "/v1/observations?ref=loan/42").json["items"])
    loan(server, 700)
    end = {"answer": "Rejected."}
    for again in (server, start()):
        found = step(again, runs[0], "decide", decided, "k1").json
        assert (found["repeated"], found["verdict"]["chosen"]) == (True, first["verdict"]["chosen"])
        assert step(again, runs[0], "decide", {**decided, "default": "x"}, "k1").status == 400
        assert step(again, runs[0], "store", said, "k3").json["repeated"] is True
    assert len(server.call("GET", "/v1/observations?ref=loan/42").json["items"]) == stored + 1
    for again in (server, server, start()):
        assert again.call("POST", f"/v1/runs/{runs[0]}/end", end, headers={"Idempotency-Key": "k2"}).status == 200
    record = recorded(server, runs[0])
    assert len(record.decisions) == 1
    assert record.status == "done"


def test_a_step_amiss_is_refused_and_the_run_goes_on(server: Server) -> None:
    """What is wrong with a step is said, nothing of it is recorded, and the next one is taken."""
    run = begin(server)
    amiss: list[Any] = [{"fly": 1}, {}, [], {"tool": {"args": {}}}, {"decide": {"stage": "s"}}]
    for told in (*amiss, {"note": "a", "read": "b"}):
        assert server.call("POST", f"/v1/runs/{run}/steps", {"step": told}).status == 400, told
    assert step(server, run, "read", "loan/none").status == 404
    assert step(server, "run_none", "note", "x").status == 404
    assert step(server, run, "note", "x").status == 200


def test_a_run_belongs_to_its_agent(start: Start, keyring: Keyring) -> None:
    """Nobody tells a run of another agent, and only who manages takes in recorded ones."""
    _, ours = keyring.create("lending", "loan-officer", ["run", "read", "write"])
    _, theirs = keyring.create("lending", "crm", ["run"])
    _, manager = keyring.create("lending", "ops", ["run", "manage"])
    server = start(keyring)
    run = server.call("POST", "/v1/runs", {"query": "Approve?"}, key=ours).json["run"]
    note = {"step": {"note": "x"}}
    assert server.call("POST", f"/v1/runs/{run}/steps", note, key=ours).status == 200
    assert server.call("POST", f"/v1/runs/{run}/steps", note, key=theirs).status == 404
    assert server.call("POST", f"/v1/runs/{run}/end", {}, key=theirs).status == 404
    told = {"document": {"query": "Approve?", "agent": "loan-officer", "answer": "no"}}
    assert server.call("POST", "/v1/runs/import", told, key=theirs).status == 403
    assert server.call("POST", "/v1/runs/import", told, key=manager).status == 200
    assert server.call("POST", "/v1/runs/import", told, key=ours).status == 200
    entry = {"document": [{"kind": "run.started", "agent": "loan-officer", "query": "x"}]}
    assert server.call("POST", "/v1/runs/import", entry, key=theirs).status == 403


def test_a_step_needs_the_grants_of_what_it_does(start: Start, keyring: Keyring) -> None:
    """A key that may only tell runs neither reads nor stores through their steps."""
    _, key = keyring.create("lending", "a", ["run"])
    server = start(keyring)
    run = server.call("POST", "/v1/runs", {"query": "?"}, key=key).json["run"]
    record = {"entity_type": "loan", "id": "1"}
    for told in ({"read": "loan/1"}, {"store": record}, {"decide": {"stage": "s", "facts": "loan/1", "rules": []}}):
        assert server.call("POST", f"/v1/runs/{run}/steps", {"step": told}, key=key).status == 403, told
        whole = {"document": {"query": "?", "steps": [told]}}
        assert server.call("POST", "/v1/runs/import", whole, key=key).status == 403, told


def test_recordings_come_as_other_tools_write_them(start: Start, keyring: Keyring, tmp_path: Path) -> None:
    """Odd numbers, the text of a file and the remote client, with the same grants as the document itself."""
    _, key = keyring.create("lending", "a", ["run", "read"])
    server = start(keyring)
    odd = '{"id": "7", "query": "?", "steps": [{"kind": "tool", "name": "t", "result": [-0.0, 9007199254740993]}]}'
    body = f'{{"document": {odd}}}'.encode()
    sent = {"Content-Type": "application/json"}
    (run,) = server.call("POST", "/v1/runs/import", body, headers=sent, key=key).json["items"]
    shown = server.call("GET", f"/v1/runs/{run}", key=key).json
    assert shown["tool_calls"][0]["result"] == [0, "9007199254740993"]
    assert server.call("POST", "/v1/runs/import", {"document": odd}, key=key).json["items"] == [run]
    table = "question,answer\nWhen?,Now\nWho?,Ann\n"
    assert len(server.call("POST", "/v1/runs/import", {"document": table}, key=key).json["items"]) == 2
    told = json.dumps({"query": "?", "steps": [{"store": {"entity_type": "loan", "id": "1"}}]})
    assert server.call("POST", "/v1/runs/import", {"document": told}, key=key).status == 403
    cut = server.call("POST", "/v1/runs/import", {"document": odd[:-2]}, key=key)
    assert (cut.status, "/document" in json.dumps(cut.json)) == (400, True)
    with woodrat.open(f"http://127.0.0.1:{server.port}", key=key) as there:
        path = tmp_path / "a.json"
        path.write_text(odd)
        assert there.runs.import_(path) == there.runs.import_(odd) == there.runs.import_(json.loads(odd)) == (run,)
        (tmp_path / "b.csv").write_text(table)
        assert len(there.runs.import_(tmp_path)) == 3
        assert there.runs.diff(run, json.loads(odd)).same


def test_a_rule_that_is_faulty_or_lacks_a_fact_is_refused(start: Start) -> None:
    """All that is wrong with rules is told at once; a decision that lacks a fact may be sent again with its key."""
    server = start()
    server.call("POST", "/v1/store", {"records": {"entity_type": "loan", "id": "42", "name": "Ana"}})
    run = begin(server)
    faulty = [{"chosen": 1, "when": {"creditScore": {"less_than": 600, "lt": None}}}, {"chosen": 2, "when": {}}]
    problem = step(server, run, "decide", {"stage": "risk", "facts": "loan/42", "rules": faulty})
    assert problem.status == 400
    assert [(fault["path"], fault["remedy"].split(".")[0]) for fault in problem.json["details"]["faults"]][:2] == [
        ("/step/decide/rules/0/when/creditScore/less_than", "Did you mean lt?"),
        ("/step/decide/rules/0/when/creditScore/lt", "Send a number or a text; nothing else has an order"),
    ]
    assert problem.json["details"]["faults"][2]["path"] == "/step/decide/rules/1/when"
    decided = {"stage": "risk", "facts": "loan/42", "rules": RULES, "default": "approved"}
    lacking = step(server, run, "decide", decided, "k1")
    assert lacking.status == 400
    assert "decision risk: rule Marginal credit is unknown: there is no fact creditScore." in lacking.json["detail"]
    assert step(server, run, "decide", {**decided, "on_missing": "ignore"}).status == 400
    skipped = step(server, run, "decide", {**decided, "on_missing": "skip"}).json["verdict"]
    assert (skipped["chosen"], skipped["on_missing"], skipped["rules"][0]["unknown"]) == ("approved", "skip", True)
    loan(server, 580)
    for again in (start(), server):
        assert step(again, run, "decide", decided, "k1").json["verdict"]["chosen"] == "rejected"
    record = recorded(server, run)
    assert [decision.chosen for decision in record.decisions] == ["approved", "rejected"]
    assert list(record.problems) == [
        "risk was not decided: rule Marginal credit is unknown: there is no fact creditScore",
        "risk: rule Marginal credit was skipped: there is no fact creditScore",
    ]
    told = {"document": {"query": "?", "steps": [{"decide": {"stage": "s", "facts": {}, "rules": faulty}}]}}
    assert server.call("POST", "/v1/runs/import", told).status == 400
    bisect = {"what": "loan/42", "rules": faulty, "chosen": 1}
    found = server.call("POST", "/v1/bisect", bisect)
    assert (found.status, len(found.json["details"]["faults"])) == (400, 3)
    what_if = {"run": run, "rules": {"risk": faulty}, "thresholds": {"risk.creditScore.lt": True}}
    found = server.call("POST", "/v1/what-if", what_if)
    assert (found.status, len(found.json["details"]["faults"])) == (400, 4)


def stated_read(server: Server, key: str) -> tuple[int, str, str]:
    """State 790 and then 580 of a loan; return the position after both, and the observations."""
    found = [
        server.call("POST", "/v1/store", {"records": {"entity_type": "loan", "id": "42", "score": score}}, key=key).json
        for score in (790, 580)
    ]
    return found[1]["position"], found[0]["observations"][0], found[1]["observations"][0]


def read_of(observation: str, position: int, score: int) -> dict[str, Any]:
    fields = {"id": {"observation": observation, "value": "42"}, "score": {"observation": observation, "value": score}}
    return {"kind": "run.read", "entity": "loan/42", "position": position, "found": True, "fields": fields}


@pytest.mark.parametrize("door", ["entries", "import"])
@pytest.mark.parametrize("grants", [["run"], ["run", "read"], ["*"]], ids=" ".join)
def test_a_client_cannot_claim_to_have_read_what_was_overruled(
    keyring: Keyring, start: Start, door: str, grants: list[str]
) -> None:
    """A read is compared with the log at its position; whoever may not read hears only that it does not agree."""
    writer, key = keyring.create("lending", "crm", ["*"])[1], keyring.create("lending", "agent", grants)[1]
    server = start(keyring)
    position, overruled, believed = stated_read(server, writer)
    run = server.call("POST", "/v1/runs", {"query": "Approve #42?"}, key=key).json["run"]

    def post(entry: dict[str, Any]) -> Any:
        if door == "entries":
            return server.call("POST", f"/v1/runs/{run}/entries", {"entries": [entry]}, key=key)
        return server.call("POST", "/v1/runs/import", {"document": [{**entry, "run": run}]}, key=key)

    refused = post(read_of(overruled, position, 790))
    assert refused.status == 400
    if grants == ["run"]:
        assert "it does not agree with the log" in refused.json["detail"]
        assert not any(told in refused.body.decode() for told in ("580", believed, "had a value"))
    else:
        said = f"run.read of loan/42 at {position}: score was 580 ({believed}), not 790 ({overruled})"
        assert said in refused.json["detail"]
    missed = post({"kind": "run.read", "entity": "loan/42", "position": position, "found": False})
    assert (missed.status, "was known" in missed.json["detail"]) == (400, grants != ["run"])
    assert post(read_of(believed, position, 580)).status == 200
    (read,) = server.call("GET", f"/v1/runs/{run}", key=writer).json["reads"]
    assert (read["fields"]["score"]["value"], read["unchecked"]) == (580, None)


def test_reads_of_a_recorder_elsewhere_always_agree(keyring: Keyring, start: Start) -> None:
    """Whatever the library's recorder reads through a server is taken, while others write, correct, join and delete."""
    writer, key = (keyring.create("lending", name, ["*"])[1] for name in ("crm", "agent"))
    server = start(keyring)
    address = f"http://127.0.0.1:{server.port}"
    tags = [f"tag {number}" for number in range(1_200)]
    document = {
        "title": "loan",
        "type": "object",
        "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}},
    }
    with (
        woodrat.open(address, key=writer) as others,
        woodrat.open(address, key=key, redact=["secret", "*_token"]) as ledger,
    ):
        others.schemas.register(document)
        others.store([{"entity_type": "loan", "id": str(number), "score": 500 + number} for number in range(5)])
        first = others.position
        large = {"secret": "x", "api_token": "y", "text": "long " * 2_000}
        others.store(
            {"entity_type": "loan", "id": "1", "tags": tags, "about": large, "secret": "s", "note": "n" * 9_000}
        )
        others.store({"entity_type": "loan", "id": "2", "tags": tags[:100]})
        with ledger.run("Approve?", on_error="raise", redact=["note_*"]) as run:
            run.show("loan/1")
            others.correct("loan/1", {"score": 700}, reason="mistyped")
            run.show("loan/1")
            run.at(first).show("loan/1")
            run.at(valid_at="2020-01-01").search("loan")
            others.merge("loan/1", "loan/2")
            run.show("loan/2")
            others.delete("loan/3")
            run.show("loan/3")
            others.retract(others.observations("loan/4").items[0].observation.id, reason="wrong")
            for missing in ("loan/4", "loan/9", "loan/none such"):
                with pytest.raises(woodrat.NotFound):
                    run.show(missing)
            run.history("loan/4")
            run.elements("loan/1", "tags", limit=10)
            run.history("loan/1")
            assert len(list(run.query(entity_type="loan", limit=1))) == 2
            run.search("loan")
            run.decide("risk", run.show("loan/1"), [woodrat.Rule("ok", {"score": {"gte": 600}})])
        record = ledger.runs.show(run.id)
    assert record.problems == ()
    assert {read.unchecked for read in record.reads} <= {None, "valid_at"}
    assert len(record.reads) > 12
