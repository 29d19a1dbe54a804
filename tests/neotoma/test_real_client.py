"""Neotoma's own Python client, from its public source, against /neotoma: every method it has.

It runs where WOODRAT_NEOTOMA_SOURCE names a folder with that source, and nowhere else.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Start, engine, start

__all__ = ["engine", "start"]

SOURCE = os.environ.get("WOODRAT_NEOTOMA_SOURCE")
pytestmark = pytest.mark.skipif(SOURCE is None, reason="WOODRAT_NEOTOMA_SOURCE names no source of Neotoma")
ANA = {"entity_type": "contact", "name": "Ana Rivera", "email": "ana@example.org"}
TASK = {"entity_type": "task", "title": "Ship", "status": "todo"}


@pytest.fixture
def client(start: Start) -> Iterator[Any]:
    folder = str(Path(str(SOURCE)) / "packages/client-python/src")
    sys.path.insert(0, folder)
    try:
        module = import_module("neotoma_client")
        with module.NeotomaClient(base_url=f"http://127.0.0.1:{start().port}/neotoma", token="dev-local") as opened:
            yield opened
    finally:
        sys.path.remove(folder)


def test_every_method_answers(client: Any) -> None:
    """Storing, finding, reading, relating, correcting and counting, each by its method."""
    link = {"relationship_type": "REFERS_TO", "source_index": 1, "target_index": 0}
    stored = client.store({"entities": [ANA, TASK], "relationships": [link], "idempotency_key": "k1"})
    ana, task = (item["entity_id"] for item in stored["entities"])
    assert client.retrieve_entities({"entity_type": "contact", "limit": 5, "offset": 0})["total"] == 1
    assert client.retrieve_entity_by_identifier({"identifier": "ana@example.org"})["entity_id"] == ana
    assert client.retrieve_entity_snapshot(entity_id=ana)["snapshot"]["name"] == "Ana Rivera"
    assert client.list_observations({"entity_id": ana})["total"] == 1
    assert client.list_timeline_events({"limit": 9})["total"] == 3
    assert client.retrieve_related_entities({"entity_id": ana, "direction": "both"})["total_entities"] == 1
    relation = {"source_entity_id": ana, "target_entity_id": task, "relationship_type": "WORKS_ON"}
    assert client.create_relationship(relation)["success"]
    assert client.correct(entity_id=ana, corrections={"role": "cook"})["snapshot"]["role"] == "cook"
    assert "task" in [item["entity_type"] for item in client.list_entity_types(search="task")["schemas"]]
    assert client.get_entity_type_counts()["total_entities"] == 2
    other = client.store({"entities": [{"entity_type": "contact", "name": "A. Rivera"}]})["entities"][0]["entity_id"]
    merged = client.execute_tool("merge_entities", {"from_entity_id": other, "to_entity_id": ana})
    assert (merged["success"], merged["entity_id"]) == (True, ana)


def test_helpers_store_turns_and_find_again(client: Any) -> None:
    """A chat turn is stored once however often it is sent, and what is known is not stored again."""
    helpers = import_module("neotoma_client.helpers")
    messages = [helpers.ChatTurnMessage(role="user", content="Hi", sender_kind="user")]
    told = [helpers.store_chat_turn(client, conversation_id="c1", turn_id="t1", messages=messages) for _ in range(2)]
    assert told[0].conversation_entity_id == told[1].conversation_entity_id
    made = [
        helpers.retrieve_or_store(client, identifier="ana@example.org", entity_type="contact", create=ANA) for _ in "ab"
    ]
    assert [one.created for one in made] == [True, False]
    assert made[0].entity_id == made[1].entity_id
