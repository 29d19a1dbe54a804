"""Showing an entity: what is answered on the loop is what the library shows, as of the last acknowledged write."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from tests.server.server import Server

from woodrat.api.codec import plain
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger import reads
from woodrat.server.reply import shown
from woodrat.testing.ledgers import ledger_on, tell


def person(name: str, **fields: Any) -> dict[str, Any]:
    return {"entity_type": "person", "name": name, **fields}


def test_every_answer_is_what_the_library_shows(engine: SqliteEngine) -> None:
    """Whatever is said, withdrawn, deleted and joined, an answer is the snapshot of the moment, to the byte."""
    one, other = ledger_on(engine), ledger_on(engine, agent="b")
    soon = 0
    for _ in tell(one, other):
        for snapshot in one.query(limit=100).items:
            expected = one.show(snapshot.entity)
            assert shown(expected).body == orjson.dumps(plain(expected))
            found = reads.show_soon(one.context, snapshot.entity)
            if found is not None:
                assert shown(found) == shown(expected)
                soon += 1
    assert soon


def test_what_others_say_moves_only_the_position(engine: SqliteEngine) -> None:
    """After a write about something else the tag is the same, and the body has another position."""
    ledger = ledger_on(engine)
    ledger.store(person("Ana", note='","position":1,"version":2'))
    before = shown(ledger.show("person/Ana"))
    ledger.store(person("Bo"))
    after = shown(ledger.show("person/Ana"))
    assert after.headers == before.headers
    assert after.body != before.body


@pytest.mark.parametrize("name", ["person/Ana", "person%2FAna"])
def test_a_reader_sees_every_acknowledged_write(server: Server, engine: SqliteEngine, name: str) -> None:
    """Over HTTP an entity shows what was acknowledged before it was asked for, by this server or another process."""
    outside = ledger_on(SqliteEngine(engine.path), tenant="default")
    for age in range(6):
        if age % 2:
            outside.store(person("Ana", age=age))
        else:
            assert server.call("POST", "/v1/store", {"records": person("Ana", age=age)}).status == 200
        found = server.call("GET", f"/v1/entities/{name}")
        assert found.json["fields"]["age"] == age
        assert found.headers["etag"].startswith(f'W/"{found.json["version"]}-')
    outside.context.engine.close()
