"""Compact answers: a list over HTTP has fields and references, and whole records on request."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import jsonschema_rs
import pytest
from tests.server.server import Server
from tests.server.test_lists import LISTS, write_all

from woodrat.api import codec
from woodrat.api.ledger import Ledger
from woodrat.api.verbs import verbs
from woodrat.clock import SystemClock
from woodrat.compact_json import is_shortened
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.ledger.pages import Page
from woodrat.server.openapi import document

PAGE = 50
"""How many entities the page has whose bytes are counted."""


@pytest.fixture
def filled(server: Server, engine: SqliteEngine) -> Server:
    """A server whose every list has items."""
    first, second = (
        Ledger(engine, tenant="default", agent=agent, clock=SystemClock(), policies=registry(())) for agent in "ab"
    )
    write_all(first, second)
    return server


def address(name: str, **more: Any) -> str:
    """Return the address of a list, and what it is asked."""
    verb, asked = verbs()[name.split()[0]], {**LISTS[name], **more}
    path = verb.declaration.path
    for parameter in verb.parameters:
        if parameter.in_path:
            path = path.replace(f"{{{parameter.wire}}}", str(asked.pop(parameter.name)))
    sent = {key: str(value).lower() if isinstance(value, bool) else value for key, value in asked.items()}
    return f"{path}?{urlencode(sent)}"


def contains(whole: Any, part: Any) -> bool:
    """Return whether all that a compact value says stands in a whole one, under the same names."""
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(name in whole and contains(whole[name], each) for name, each in part.items())
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) == len(whole) and all(map(contains, whole, part))
    return bool(whole == part)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_is_compact_unless_details_are_asked_for(filled: Server, name: str) -> None:
    """A compact list says less of the same items, in the same words; with details it is what the library returns."""
    short, whole = (filled.call("GET", address(name, **more)) for more in ({}, {"details": True}))
    assert (short.status, whole.status) == (200, 200)
    assert short.json["items"]
    assert contains(whole.json, short.json)
    kind = codec.returned(verbs()[name.split()[0]])
    assert (len(short.body) < len(whole.body)) is is_shortened(kind)
    assert "blame" not in short.body.decode()
    read = codec.answer_of(verbs()[name.split()[0]]).read(whole.json)
    assert isinstance(read, Page)


@pytest.mark.parametrize("name", LISTS)
def test_the_document_describes_both_shapes(filled: Server, name: str) -> None:
    """What a list answers fits the document, with details and without; the first shape there is the compact one."""
    told = document("0")
    path = verbs()[name.split()[0]].declaration.path
    answer = told["paths"][path]["get"]["responses"]["200"]["content"]["application/json"]["schema"]
    shapes = answer.get("anyOf", [answer])
    for shape, more in zip((shapes[0], shapes[-1]), ({}, {"details": True}), strict=True):
        schema = {**shape, "components": told["components"]}
        items = filled.call("GET", address(name, **more)).json
        assert list(jsonschema_rs.validator_for(schema).iter_errors(items)) == []


def test_fields_and_references_are_a_small_part_of_a_page(server: Server) -> None:
    """Of a page of 50 contacts, what is believed takes less than a third of what is known about it."""
    records = [
        {"entity_type": "contact", "name": f"Ana {number}", "email": f"ana{number}@example.org", "city": "Girona"}
        for number in range(PAGE)
    ]
    server.call("POST", "/v1/store", {"records": records})
    short, whole = (
        len(server.call("GET", f"/v1/entities?entity_type=contact&limit={PAGE}{more}").body)
        for more in ("", "&details=true")
    )
    assert short * 3 < whole


def test_times_in_words_are_stated_by_every_answer(server: Server) -> None:
    """Whatever took a time in words says what it turned out to be: reads and writes, also inside a record."""
    record = {"entity_type": "contact", "name": "Ana", "$": {"observed_at": "2026-01-05"}}
    stored = server.call("POST", "/v1/store", {"records": [record], "valid_from": "2026-01-04"}).json
    midnight = "T00:00:00.000000Z"
    assert stored["times"] == {"valid_from": f"2026-01-04{midnight}", "/0/$/observed_at": f"2026-01-05{midnight}"}
    for path in ("entities/contact/Ana?valid_at", "timeline?since", "runs?until", "recall?question=Ana&since"):
        answer = server.call("GET", f"/v1/{path}=2026-01-06")
        assert json.loads(answer.body)["times"] == {path.rpartition("?")[2].rpartition("&")[2]: f"2026-01-06{midnight}"}
    assert "times" not in server.call("GET", "/v1/timeline?since=2026-01-05T00:00:00Z").json
