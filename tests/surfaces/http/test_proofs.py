"""Proofs through a server that has keys."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from tests.surfaces.http.server import Server

import woodrat
from woodrat.verifier import woodrat_verify

Start = Callable[..., Server]
ANA = {"records": {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}}


def test_a_server_signs_and_proves(start: Start, tmp_path: Path) -> None:
    """With keys a server signs checkpoints, and what it proves is proven without it; `verify` finds all in order."""
    keys = tmp_path / "keys"
    made = woodrat.init(keys)
    server = start(proofs=str(keys))
    said = server.call("POST", "/v1/store", ANA).json["observations"][0]
    signed = server.call("POST", "/v1/checkpoints", {}).json
    held = server.call("GET", "/v1/checkpoints").json["checkpoints"]
    assert [found["size"] for found in held] == [signed["size"]]
    proof = server.call("GET", f"/v1/proofs/{said}").body
    capsule = server.call("GET", f"/v1/capsules/{quote('contact/Ana Rivera#city')}").body
    for document in (proof, capsule):
        file = tmp_path / "document.json"
        file.write_bytes(document)
        assert woodrat_verify.main([str(file), "--key", str(made.verifier)]) == 0
    found = server.call("GET", "/v1/verify?deep=true").json
    assert (found["sound"], found["covered"]) == (True, signed["size"])


def test_a_server_without_keys_says_so(server: Server) -> None:
    """Without keys there is nothing to sign with, and the refusal says what to do."""
    answer = server.call("POST", "/v1/checkpoints", {})
    assert answer.status == 400
    assert "woodrat init" in answer.json["detail"]
