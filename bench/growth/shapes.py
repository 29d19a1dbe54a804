"""Shapes: ledgers in which one thing is large, and its size is what grows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import woodrat
from bench.growth import ordinary
from bench.growth.case import Facts, World
from bench.growth.loans import BUSY, RULES
from woodrat.api.ledger import Ledger
from woodrat.canon import moment

BEGIN_MICROS = moment.to_micros("2024-01-01T00:00:00.000000Z")
BATCH = 1_000
SUBJECT = "person/ana"
"""The entity that a ledger is about."""
NARROW = 200
"""Observations of one field each that a wide entity gets."""


def seen_at(number: int) -> str:
    """Return the numbered moment of observation."""
    return moment.from_micros(BEGIN_MICROS + number * 60_000_000)


def _open(path: Path, agent: str) -> Ledger:
    """Open a new ledger in which there are ordinary entities."""
    ledger = woodrat.open(path, agent=agent)
    ordinary.store(ledger)
    return ledger


def _store(ledger: Ledger, records: list[dict[str, Any]]) -> list[str]:
    """Store records in batches; return the ids of the observations."""
    ids: list[str] = []
    for start in range(0, len(records), BATCH):
        ids += ledger.store(records[start : start + BATCH]).observations
    return ids


def _history(path: Path, size: int) -> Facts:
    """One entity with many observations by two agents, and decisions that were made on it along the way."""
    with _open(path, "crm-sync") as ledger:
        agents = [ledger, ledger.as_agent("mail-reader")]
        decisions = 10
        for part in range(decisions):
            numbers = range(part * size // decisions, (part + 1) * size // decisions)
            for agent in range(2):
                mine = [_about(number) for number in numbers if number % 2 == agent]
                if mine:
                    agents[agent].store(mine)
            with ledger.run(f"Approve #{part}?", subject=SUBJECT) as run:
                run.decide("classify-risk", run.show(SUBJECT), RULES, default="manual-review")
        observations = [stored.observation.id for stored in ledger.observations(SUBJECT, limit=BATCH)]
        return {"observations": observations[size // 2 :][:60], "head": ledger.position}


def _about(number: int) -> dict[str, Any]:
    about = {"city": f"City {number}", "creditScore": 500 + number % 300}
    return {"entity_type": "person", **about, "$": {"key": "ana", "observed_at": seen_at(number)}}


def _long(path: Path, size: int) -> Facts:
    """One entity with many more observations than anybody compares with each other."""
    with _open(path, "crm-sync") as ledger:
        observations = _store(ledger, [_about(number) for number in range(size)])
        return {"observations": observations[size // 2 :][:60], "head": ledger.position}


def _chain(path: Path, size: int) -> Facts:
    """Runs each of which read what the one before it wrote."""
    with _open(path, "summarizer") as ledger:
        ledger.store({"entity_type": "memo", "text": "begin", "$": {"key": "n000000"}})
        for number in range(size):
            with ledger.run(f"Sum up #{number}?", subject=f"memo/n{number:06d}") as run:
                text = str(run.show(f"memo/n{number:06d}").fields["text"])
                note = {
                    "entity_type": "memo",
                    "text": f"{number} after {text[:20]}",
                    "$": {"key": f"n{number + 1:06d}"},
                }
                run.store(note)
                run.answer("done")
        return {"last_run": run.id, "head": ledger.position}


def _group(path: Path, size: int) -> Facts:
    """Many entities that were merged into one."""
    with _open(path, "crm-sync") as ledger:
        ledger.store([_member(number, f"City {number}") for number in range(size + 1)])
        for number in range(1, size):
            ledger.merge("person/m0000", f"person/m{number:04d}")
        return {"ref": "person/m0000", "member": f"person/m{size // 2:04d}", "outsider": f"person/m{size:04d}"}


def _member(number: int, city: str) -> dict[str, Any]:
    return {"entity_type": "person", "city": city, "$": {"key": f"m{number:04d}", "observed_at": seen_at(number)}}


def _agents(path: Path, size: int) -> Facts:
    """One entity about whose city many agents disagree."""
    with _open(path, "agent-0") as ledger:
        for number in range(size):
            record = {"entity_type": "person", "city": f"City {number}", "$": {"key": "ana"}}
            ledger.as_agent(f"agent-{number}").store(record, observed_at=seen_at(number))
        return {"ref": SUBJECT}


def _hub(path: Path, size: int) -> Facts:
    """One entity with many relations, one end of which was merged with another entity."""
    with _open(path, "crm-sync") as ledger:
        ledger.store({"entity_type": "person", "city": "Lund", "$": {"key": "ana"}})
        relate = {"relate": [{"type": "knows", "to": SUBJECT}]}
        _store(
            ledger,
            [
                {"entity_type": "person", "city": "Oslo", "$": {"key": f"m{number:06d}", **relate}}
                for number in range(size)
            ],
        )
        ledger.merge("person/m000000", "person/m000001")
        return {"ref": SUBJECT}


def _wide(path: Path, size: int) -> Facts:
    """One entity with many fields, of which each observation changes one."""
    fields = {f"field{number:04d}": number for number in range(size)}
    with _open(path, "crm-sync") as ledger:
        ledger.store({"entity_type": "settings", **fields, "$": {"key": "ana"}}, observed_at=seen_at(0))
        return {"ref": "settings/ana"}


def _collection(path: Path, size: int) -> Facts:
    """One entity with one large collection, and a field beside it."""
    with _open(path, "crm-sync") as ledger:
        tags = {"type": "array", "items": {"type": "string"}, "x-woodrat-merge": "union"}
        ledger.schemas.register({"title": "album", "properties": {"tags": tags, "name": {"type": "string"}}})
        for start in range(0, size, 2_000):
            part = [f"tag {number:07d}" for number in range(start, min(start + 2_000, size))]
            record = {"entity_type": "album", "name": "Summer", "tags": part, "$": {"key": "one"}}
            ledger.store(record, observed_at=seen_at(start))
        return {"ref": "album/one"}


def _watched(path: Path, size: int) -> Facts:
    """One entity on which decisions of many runs depend."""
    with _open(path, "loan-officer") as ledger:
        ledger.store({"entity_type": "loan", "creditScore": 650, "city": "Lund", "$": {"key": "busy"}})
        for number in range(size):
            with ledger.run(f"Approve #{number}?", subject=BUSY) as run:
                run.decide("classify-risk", run.show(BUSY), RULES, default="manual-review")
        return {"ref": BUSY}


def _stages(path: Path, size: int) -> Facts:
    """One entity on which many decisions of one run depend."""
    with _open(path, "loan-officer") as ledger:
        ledger.store({"entity_type": "loan", "creditScore": 650, "city": "Lund", "$": {"key": "busy"}})
        with ledger.run("Approve them?", subject=BUSY) as run:
            loan = run.show(BUSY)
            for number in range(size):
                run.decide(f"classify-risk-{number}", loan, RULES, default="manual-review")
        return {"ref": BUSY}


HISTORY = World("history", "observations of an entity", (250, 1_000, 4_000), _history, ordinary.shown, pages_min=5)
LONG = World("long", "observations of an entity", (1_000, 10_000, 100_000), _long, ordinary.shown)
CHAIN = World("chain", "runs, each after another", (250, 1_000, 4_000), _chain, ordinary.shown, pages_min=5)
GROUP = World("group", "merged entities", (20, 80, 320), _group, ordinary.shown)
AGENTS = World("agents", "agents on one field", (100, 400, 1_600), _agents, ordinary.shown)
HUB = World("hub", "relations of an entity", (1_000, 5_000, 10_000), _hub, ordinary.shown)
WIDE = World("wide", "fields of an entity", (5, 50, 500), _wide, ordinary.shown)
COLLECTION = World("collection", "elements of a collection", (1_000, 10_000, 100_000), _collection, ordinary.shown)
WATCHED = World("watched", "decisions on an entity", (50, 500, 5_000), _watched, ordinary.shown)
STAGES = World("stages", "decisions of a run", (50, 150, 500), _stages, ordinary.shown)
