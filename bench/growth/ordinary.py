"""Ordinary entities: a few beside what a ledger is about, of which one `show` is what pages are compared with.

They are like the people of the largest ledger: a schema, seven fields, three observations by two agents, who agree.
"""

from __future__ import annotations

from typing import Any

from bench.growth.case import Facts
from bench.growth.people import PERSON
from woodrat.api.ledger import Ledger

COUNT = 40
"""Enough that each is shown for the first time."""


def store(ledger: Ledger) -> None:
    """Store them."""
    ledger.schemas.register({**PERSON, "title": "customer"})
    ledger.store([_record(number) for number in range(COUNT)], observed_at="2024-01-01T00:00:00Z")
    cities = [_named(number, city="Lund", tags=["seen"]) for number in range(COUNT)]
    ledger.as_agent("mail-reader").store(cities, observed_at="2024-06-01T00:00:00Z")
    ledger.store([_named(number, score=-number) for number in range(COUNT)], observed_at="2024-07-01T00:00:00Z")


def shown(_: Facts, number: int) -> str:
    """Return the reference of the nth of them."""
    return f"customer/{_key(number % COUNT)}"


def _key(number: int) -> str:
    return f"c{number:02d}"


def _named(number: int, **fields: Any) -> dict[str, Any]:
    return {"entity_type": "customer", "id": _key(number), **fields}


def _record(number: int) -> dict[str, Any]:
    contact = {"email": f"customer{number}@example.org", "name": f"Name{number} Family", "city": "Lund"}
    return _named(number, **contact, score=number, tags=["customer", "new"], note=f"usual review, file {number}")
