"""Proofs through a server that has keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from tests.server.server import Server

import woodrat
from woodrat.canon import form
from woodrat.errors import Refused
from woodrat.verifier import woodrat_verify

Start = Callable[..., Server]
ANA = {"records": {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}}


def test_a_server_signs_and_proves(start: Start, tmp_path: Path) -> None:
    """With keys a server signs checkpoints, and what it proves is proven without it; `verify` finds all in order."""
    keys = tmp_path / "keys"
    made = woodrat.init(keys)
    server = start(proofs=str(keys))
    said = server.call("POST", "/v1/store", ANA).json["observations"][0]
    signed = server.call("POST", "/v1/proofs/checkpoints", {}).json
    held = server.call("GET", "/v1/proofs/checkpoints").json["items"]
    assert held == [signed["checkpoint"]]
    proof = server.call("GET", f"/v1/proofs/{said}").body
    capsule = server.call("GET", f"/v1/proofs/capsule/{quote('contact/Ana Rivera#city')}").body
    for document in (proof, capsule):
        file = tmp_path / "document.json"
        file.write_bytes(document)
        assert woodrat_verify.main([str(file), "--key", str(made.verifier)]) == 0
    found = server.call("GET", "/v1/verify?deep=true").json
    assert (found["sound"], found["covered"]) == (True, signed["checkpoint"]["size"])
    with woodrat.open(f"http://127.0.0.1:{server.port}") as ledger:
        assert ledger.verify(deep=True).sound
        read = (ledger.proofs.prove(said), ledger.proofs.capsule("contact/Ana Rivera#city"))
        assert tuple(document.to_bytes() for document in read) == (proof, capsule)
        assert read[0].checkpoint.checkpoint.size == signed["checkpoint"]["size"]
        note = ledger.proofs.checkpoint().note
        assert ledger.proofs.prove_consistency(note).old == note
        assert ledger.proofs.prove(0).entry.position == 0


def test_a_run_recorded_through_a_server_is_checked_whole(start: Start, tmp_path: Path) -> None:
    """The server says which schema a read was made under and which step numbers left nothing; resending is harmless."""
    made = woodrat.init(tmp_path / "keys")
    server = start(proofs=str(tmp_path / "keys"))
    ledger = woodrat.open(f"http://127.0.0.1:{server.port}")
    ledger.schemas.register({"title": "loan", "properties": {"score": {"type": "integer"}, "tags": {"type": "array"}}})
    rule = woodrat.Rule("rejected", {"score": {"lt": 600}})
    with ledger.run("Approve?", inputs={"amount": 5}) as run:
        with pytest.raises(Refused):
            run.store({"entity_type": "loan", "id": "42", "score": "high"})
        run.store({"entity_type": "loan", "id": "42", "score": 580})
        call = run.tool("bureau", lambda: {"score": 590})
        run.decide("read", run.show("loan/42"), [rule])
        nothing = run.tool("nothing", lambda: None)
        run.decide("null", {"x": nothing.fact()}, [woodrat.Rule("yes", {"x": {"ne": None}})])
        run.decide("tool", {"score": call.fact("/score"), "amount": run.input("amount")}, [rule])
    ended = next(entry for entry in reversed(ledger.log.entries()) if entry.kind == "run.ended")
    body = form.decode(ended.body or b"")
    sent = {name: body[name] for name in body if name not in ("numbered", "skipped", "agent")}
    again = server.call("POST", f"/v1/runs/{run.id}/entries", {"entries": [{"kind": "run.ended", **sent}]})
    assert again.json["recorded"] == 0
    found = woodrat_verify.outcome(server.call("GET", f"/v1/proofs/capsule/{run.id}").body, str(made.verifier))
    assert (found["verdict"], found["parts"]) == ("consistent", [f"skipped {ended.position}"]), found["says"]


def test_a_server_without_keys_says_so(server: Server) -> None:
    """Without keys there is nothing to sign with, and the refusal says what to do."""
    answer = server.call("POST", "/v1/proofs/checkpoints", {})
    assert answer.status == 400
    assert "woodrat init" in answer.json["detail"]
