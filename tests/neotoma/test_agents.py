"""The calls that agents made in the recordings of Neotoma's source, at its server and at ours.

It runs where WOODRAT_NEOTOMA_SOURCE names its built source, and nowhere else. Ids in a recording are those of its
server: they are replaced by ours, as the answers to the same calls pair them.
"""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.neotoma import real_neotoma
from tests.server.conftest import Start, engine, start

from woodrat.clock import SystemClock
from woodrat.proofs.verbs.keys import make

__all__ = ["engine", "start"]

pytestmark = [
    pytest.mark.skipif(not real_neotoma.is_there(), reason=real_neotoma.MISSING),
    pytest.mark.timeout(3_600),
]

ADDRESSES = {
    "add_peer": "peers",
    "create_interpretation": "interpretations/create",
    "get_relationship_snapshot": "relationships/snapshot",
    "merge_entities": "entities/merge",
    "neotoma_turn_summary": "turn_summary",
    "resolve_sync_conflict": "peers/resolve_sync_conflict",
    "retrieve_entities": "entities/query",
    "retrieve_entity_snapshot": "get_entity_snapshot",
    "retrieve_field_provenance": "get_field_provenance",
    "split_entity": "entities/split",
    "submit_entity": "submit/{entity_type}",
}
READS = {
    "describe_entity_type": "schemas/{entity_type}",
    "get_session_identity": "session",
    "list_entity_types": "schemas",
    "list_peers": "peers",
    "list_recent_changes": "record_activity",
}
"""Where tools are called that have another name as an address; reads are got."""
DIFFERS = {
    "merge_entities_dedup": "its two contacts share an e-mail address, and so are one entity here already",
    "peer_add_and_resolve_conflict": "peers are not offered",
}


def _call(port: int, prefix: str, method: str, path: str, body: Any) -> tuple[int, Any]:
    address = f"{prefix}/{quote(path)}"
    if method == "GET" and body:
        address += "?" + urlencode(
            {name: one if isinstance(one, str) else json.dumps(one) for name, one in body.items()}
        )
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    head = {"content-type": "application/json", "authorization": "Bearer dev-local"}
    connection.request(method, address, None if method == "GET" else json.dumps(body), head)
    response = connection.getresponse()
    answer = real_neotoma.parsed(response.read())
    connection.close()
    return response.status, answer


def _pairs(there: Any, here: Any) -> Iterator[tuple[str, str]]:
    """Yield the ids that stand in the same place of two answers."""
    if isinstance(there, dict) and isinstance(here, dict):
        for name in there.keys() & here.keys():
            yield from _pairs(there[name], here[name])
    elif isinstance(there, list) and isinstance(here, list):
        for one, other in zip(there, here, strict=False):
            yield from _pairs(one, other)
    elif isinstance(there, str) and isinstance(here, str) and re.match(r"ent_|[0-9a-f]{8}-|stub|src|obs", there):
        yield there, here


def _filled(value: Any, ids: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {name: _filled(one, ids) for name, one in value.items()}
    if isinstance(value, list):
        return [_filled(one, ids) for one in value]
    return ids.get(value, value) if isinstance(value, str) else value


def test_recorded_agents_are_answered(start: Start, tmp_path: Path) -> None:
    """Each call succeeds here where it does there, and fails here only where it does there; two scenarios differ."""
    yaml = pytest.importorskip("yaml")
    make(str(tmp_path / "keys"), SystemClock())
    port = start(proofs=str(tmp_path / "keys")).port
    harness = Path(str(real_neotoma.SOURCE)) / "packages/eval-harness"
    worked, calls, failed = 0, 0, []
    with real_neotoma.server(tmp_path / "neotoma") as other:
        for file in sorted((harness / "cassettes").glob("*.json")):
            recorded = json.loads(file.read_text("utf-8"))
            name = recorded["meta"]["scenario_id"]
            scenario = yaml.safe_load((harness / f"scenarios/{name}.scenario.yaml").read_text("utf-8"))
            seeds = scenario.get("seed_entities") or []
            told = [("store", {"entities": seeds, "idempotency_key": f"seed {file.stem}"}, None)] if seeds else []
            told += [(one["name"], one["input"], one.get("output")) for one in recorded["tool_calls"]]
            sides: tuple[dict[str, str], dict[str, str]] = ({}, {})
            problems = []
            for tool, given, output in told:
                if tool == "Read":
                    continue  # a tool of the agent's host
                method, path = ("GET", READS[tool]) if tool in READS else ("POST", ADDRESSES.get(tool, tool))
                path = path.format(**given) if "{" in path else path
                there = _call(other, "", method, path, _filled(given, sides[0]))
                here = _call(port, "/neotoma", method, path, _filled(given, sides[1]))
                text = output[0] if isinstance(output, list) and output else output
                said = real_neotoma.parsed(text["text"].encode()) if isinstance(text, dict) and "text" in text else None
                sides[0].update(_pairs(said, there[1]))
                sides[1].update({**dict(_pairs(said, here[1])), **dict(_pairs(there[1], here[1]))})
                calls += 1
                if here[0] >= 400 > there[0] or here[0] >= 500:
                    problems.append(f"{name}: {tool} {there[0]}, here {here[0]} {str(here[1])[:200]}")
            if name in DIFFERS:
                assert problems, f"{name}: nothing differs any more"
            else:
                failed += problems
            worked += not problems
    print(f"{worked} scenarios work, {calls} calls")
    assert not failed, "\n".join(failed)
