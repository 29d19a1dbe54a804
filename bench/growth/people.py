"""People: a ledger of people, companies and shipments, in which everything grows with the number of entities.

Six in ten are people, with a schema, two indexed fields and an identifying value; one in ten are companies; the rest
are shipments, of an open type. Each is observed two or three times by two agents. They disagree about one person in
five; one in three shares an e-mail address with another, one in a hundred was merged with another, and one in five
works at a company. There are a source and an interpretation for ten entities.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import woodrat
from bench.growth.case import Facts, World
from bench.growth.meter import CALLS_MAX
from woodrat.api.ledger import Ledger
from woodrat.canon import moment

AGENTS = ("crm-sync", "mail-reader")
BATCH = 5_000
"""Records of one write."""
BEGIN_MICROS = moment.to_micros("2024-01-01T00:00:00.000000Z")
MIDDLE = "2024-07-01T00:00:00Z"
"""A time that lies between the first and the second observation of everything."""
CITIES = ("Barcelona", "Lund", "Porto", "Girona")
RARE, COMMON = "zanzibar", "quarterly"
"""A word that three people have in their notes, and one that all of them have."""
RARE_CITY = "Ulaanbaatar"
"""A city in which the same three people live, whatever the size."""

PERSON: dict[str, Any] = {
    "title": "person",
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "email": {"type": "string"},
        "name": {"type": "string"},
        "city": {"type": "string", "x-woodrat-index": True},
        "score": {"type": "integer", "x-woodrat-index": True},
        "tags": {"type": "array", "items": {"type": "string"}, "x-woodrat-merge": "union"},
        "note": {"type": "string"},
    },
    "x-woodrat-identity": [["id"], ["email"]],
}


def person(number: int) -> str:
    """Return the reference of a numbered person."""
    return f"person/p{number:07d}"


def people_of(size: int) -> int:
    """Return how many people there are in a ledger of so many entities."""
    return max(8, size * 6 // 10)


def picked(number: int, count: int) -> int:
    """Return one of the numbers below a count, far from those of the calls before."""
    return (number * 7_919 + count // 3) % count


def build(path: Path, size: int) -> Facts:
    """Build the ledger."""
    people, companies = people_of(size), max(2, size // 10)
    shipments = max(2, size - people - companies)
    with woodrat.open(path, agent=AGENTS[0]) as ledger:
        other = ledger.as_agent(AGENTS[1])
        ledger.schemas.register(PERSON)
        _store(ledger, _companies(companies), 0)
        first = ledger.position
        _store(ledger, _people(people), 1)
        _store(ledger, _shipments(shipments, "booked"), 2)
        middle = ledger.position
        _store(other, _seen_again(people), 300)
        _store(other, _shipments(shipments, "delivered"), 301)
        _store(ledger, _scored(people), 400)
        ledger.store({"entity_type": "person", "id": f"p{5:07d}", "score": -1}, observed_at="2025-03-01T00:00:00Z")
        last_write = ledger.position
        for number in range(0, people - 1, 100):
            ledger.merge(person(number), person(number + 1))
        sources = [ledger.sources.add(f"letter {number}".encode()) for number in range(max(3, size // 10))]
        readings = _readings(ledger, sources, max(3, size // 10), people)
        ledger.tag("middle", middle)
        observations = [stored.observation.id for stored in ledger.observations(person(2))]
        return {
            "people": people,
            "companies": companies,
            "shipments": shipments,
            "first": first,
            "middle": middle,
            "last_write": last_write,
            "head": ledger.position,
            "sources": [sources[0], sources[len(sources) // 2], sources[-1]],
            "readings": readings,
            "observations": observations,
            "retractable": _retractable(ledger, people),
        }


def _store(ledger: Ledger, records: Iterator[dict[str, Any]], day: int) -> None:
    """Store records in batches, all observed on one day."""
    observed_at = moment.from_micros(BEGIN_MICROS + day * 86_400_000_000)
    batch: list[dict[str, Any]] = []
    for record in records:
        batch.append(record)
        if len(batch) == BATCH:
            ledger.store(batch, observed_at=observed_at)
            batch = []
    if batch:
        ledger.store(batch, observed_at=observed_at)


def _companies(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"entity_type": "company", "name": f"Company {number:07d}", "city": CITIES[number % 4]}


def _people(count: int) -> Iterator[dict[str, Any]]:
    companies = max(2, count // 6)
    for number in range(count):
        shared = number - 1 if number % 3 == 2 else number
        rare = number in (2, count // 2, count - 1)
        record = {
            "entity_type": "person",
            "id": f"p{number:07d}",
            "email": f"person{shared}@example.org",
            "name": f"Name{number} Family{number % 977}",
            "city": RARE_CITY if rare else CITIES[number % 4],
            "score": number,
            "tags": ["customer", f"tag{number % 7}"],
            "note": f"{RARE if rare else 'usual'} {COMMON} review, file {number}",
        }
        if number % 5 == 4:
            record["$"] = {"relate": [{"type": "works_at", "to": f"company/Company {number // 6 % companies:07d}"}]}
        yield record


def _seen_again(count: int) -> Iterator[dict[str, Any]]:
    """What the other agent says: the same city, and of one person in five another one."""
    for number in range(count):
        rare = number in (2, count // 2, count - 1)
        city = RARE_CITY if rare else CITIES[(number + (number % 5 == 2)) % 4]
        yield {"entity_type": "person", "id": f"p{number:07d}", "city": city, "tags": ["seen"]}


def _scored(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"entity_type": "person", "id": f"p{number:07d}", "score": (number * 31) % count}


def _shipments(count: int, status: str) -> Iterator[dict[str, Any]]:
    for number in range(count):
        about = {"id": f"SHP-{number:07d}", "destination": CITIES[number % 4], "parcels": number % 48}
        yield {"entity_type": "shipment", **about, "status": status}


def _readings(ledger: Ledger, sources: list[str], count: int, people: int) -> list[str]:
    """Interpret sources, the first of them twice; return the ids of both, and those in the middle and at the end."""
    ids: list[str] = []
    for number in range(count):
        source = sources[max(0, number - 1) % len(sources)]
        with ledger.interpretations.start(source, model="small-1", prompt="Who is it?") as reading:
            reading.store([{"entity_type": "person", "id": f"p{number % people:07d}", "name": f"Read {number}"}])
        ids.append(reading.id)
    return [ids[0], ids[1], ids[count // 2], ids[-1]]


def _retractable(ledger: Ledger, people: int) -> list[str]:
    """Return the last observations of some people."""
    some = {picked(number, people) for number in range(CALLS_MAX + 1)}
    return [ledger.observations(person(number)).items[-1].observation.id for number in sorted(some)]


def someone(facts: Facts, number: int) -> str:
    """Return the reference of one of all people, far from those of the calls before."""
    return person(picked(number, facts["people"]))


PEOPLE = World("people", "entities", (1_000, 10_000, 100_000), build, someone)
