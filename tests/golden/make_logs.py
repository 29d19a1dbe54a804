"""Golden logs: three small logs that must come out the same, byte for byte, wherever and whenever they are written.

    python tests/golden/make_logs.py            write tests/golden/logs anew: a format decision, and reads like one
    python tests/golden/make_logs.py --print    write all files to standard output instead, as one JSON object

Nothing here asks the machine for anything: the clocks are fixed, and the files hold canonical JSON.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from woodrat import Ledger
from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.clock import Clock
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.state.observation import ASSERT, CORRECT, RETRACT, say
from woodrat.testing.clock import FixedClock, JumpingClock

FOLDER: Final = Path(__file__).resolve().parent / "logs"

MARCH, JUNE, SEPTEMBER = "2025-03-01T09:00:00Z", "2025-06-01T11:00:00+02:00", "2025-09-01T09:00:00.5Z"
ANA, RIVERA = "contact/Ana Rivera", "contact/A. Rivera"


def main(arguments: list[str]) -> None:
    """Write the files, or print them."""
    files = written()
    if arguments == ["--print"]:
        sys.stdout.buffer.write(form.serialise({name: content.decode() for name, content in files.items()}))
        return
    FOLDER.mkdir(exist_ok=True)
    for name, content in files.items():
        (FOLDER / name).write_bytes(content)


def written() -> dict[str, bytes]:
    """Return every file by name: each log as lines of JSON, and beside it what it must lead to."""
    files: dict[str, bytes] = {}
    for name, (story, clock) in STORIES.items():
        engine = InMemoryEngine()
        ledger = opened(engine, "ada", clock())
        story(engine, ledger)
        with engine.view(ledger.tenant) as view:
            lines = [form.serialise(entry.to_json()) + b"\n" for entry in view.entries()]
            root = view.head().frontier.root()
        expected: dict[str, Any] = {
            "entries": len(lines),
            "fingerprint": ledger.fingerprint(),
            "provenance": ledger.fingerprint(provenance=True),
            "root": root.hex(),
        }
        files[f"{name}.jsonl"] = b"".join(lines)
        files[f"{name}.json"] = form.serialise(expected) + b"\n"
    return files


def opened(engine: InMemoryEngine, agent: str, clock: Clock) -> Ledger:
    """Return a ledger of the golden tenant."""
    return Ledger(engine, tenant="golden", agent=agent, clock=clock, policies=registry(()))


def two_agents(engine: InMemoryEngine, ada: Ledger) -> None:
    """Two agents disagree on a city; what they say is corrected, withdrawn, deleted, joined, read and tagged."""
    bob = opened(engine, "bob", FixedClock("2026-01-01T00:00:00.500000Z", seed="bob"))
    ada.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}, observed_at=MARCH)
    bob.store(
        {"entity_type": "contact", "name": "Ana Rivera", "city": "Madrid", "tags": ["vip", "es"]},
        observed_at=JUNE,
        idempotency_key="crm-42",
        priority=5,
    )
    late = ada.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Vic", "$": {"observed_at": MARCH}})
    ada.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Vic", "$": {"observed_at": MARCH}})
    fixed = bob.correct(ANA, {"city": "Girona"}, reason="She wrote so herself.", observed_at=MARCH)
    ada.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Lleida", "phone": "+34 972 000 000"})
    ada.retract(late.observations[0], reason="mistyped")
    undone = ada.retract(fixed.observations[0])
    bob.retract(undone.observations[0], reason="The correction was right.")

    ada.store(
        [
            {"entity_type": "company", "name": "Acme, S.L."},
            {
                "entity_type": "contact",
                "name": "A. Rivera",
                "email": "ana@example.com",
                "$": {"key": "A. Rivera", "relate": [{"type": "works_at", "to": "company/Acme, S.L."}]},
            },
        ],
        observed_at=JUNE,
        valid_from=SEPTEMBER,
    )
    ada.relate(ANA, "works_at", "company/Acme, S.L.", key="second", fields={"since": 2020})
    ada.delete(RIVERA, reason="looked like a duplicate")
    ada.store({"entity_type": "contact", "name": "A. Rivera", "title": "Dr.", "$": {"key": "A. Rivera"}})
    bob.restore(RIVERA)
    bob.delete(RIVERA)
    ada.restore(RIVERA, reason="it was none")
    bob.merge(RIVERA, ANA, reason="one letterhead")
    ada.split(ANA)
    bob.merge(ANA, RIVERA)

    letter = ada.sources.add(b"Ana Rivera lives in Tarragona.\n", name="letter", media_type="text/plain")
    bob.sources.add(b"Ana Rivera lives in Tarragona.\n", name="copy of letter", media_type="text/plain")
    with bob.interpretations.start(
        letter,
        model="small-1",
        prompt="Where does she live?",
        extractor="lines-1",
        parameters={"temperature": 0.5},
        configuration={"language": "ca"},
    ) as reading:
        reading.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Tarragona"}, observed_at=SEPTEMBER)
        reading.usage = {"input": 12, "output": 3}
    ada.tag("before-the-letter", 12)
    ada.tag("now")
    ada.store({"entity_type": "audit_event", "id": "1", "action": "read", "actor": "ada"}, observed_at=SEPTEMBER)


STOCK: Final[Mapping[str, Any]] = {
    "title": "stock",
    "type": "object",
    "properties": {
        "sku": {"type": "string", "x-woodrat-index": True},
        "name": {"type": "string", "x-woodrat-merge": "first", "x-woodrat-text": True},
        "colours": {"type": "array", "x-woodrat-merge": "union"},
        "moved": {"type": ["integer", "string"], "x-woodrat-merge": "sum"},
        "notes": {"type": "array", "x-woodrat-merge": "append"},
        "price": {"x-woodrat-merge": "highest_priority"},
        "peak": {"x-woodrat-merge": "max"},
        "least": {"x-woodrat-merge": "min"},
    },
    "x-woodrat-identity": [[{"field": "sku", "fold": ["trim-1", "ascii-lower-1"]}], ["name"]],
}


def collections(engine: InMemoryEngine, ada: Ledger) -> None:
    """Collections and sums grow, shrink and are corrected, on a clock that jumps; a new schema changes their rules."""
    bob = opened(engine, "bob", JumpingClock(["2024-11-27T00:00:00Z", "2026-06-01T00:00:00Z"], seed="bob"))
    ada.schemas.register(dict(STOCK))
    first = ada.store(
        [
            {"entity_type": "stock", "sku": " AB-1 ", "name": "Ærø", "colours": ["red", 1, True, None], "moved": 7},
            {"entity_type": "stock", "sku": "ab-2", "moved": "0.10", "notes": [["nested", {"😀": 1, "\uffff": 2}]]},
        ],
        observed_at=MARCH,
        priority=-1,
    )
    second = bob.store(
        {
            "entity_type": "stock",
            "sku": "ab-1",
            "name": "Ero",
            "colours": ["😀", "e\u0301", "é"],
            "moved": "9007199254740993.000000000000001",
            "notes": ["second", "third"],
            "price": 1e-7,
            "peak": [1, "1"],
            "least": {"b": 1e21, "a": -1.5},
            "$": {"remove": {"colours": ["red"]}, "confidence": 0.25, "reason": "counted"},
        },
        observed_at=JUNE,
    )
    ada.store(
        {"entity_type": "stock", "sku": "ab-1", "notes": ["zeroth"], "moved": -3}, observed_at="2025-01-01T00:00:00Z"
    )
    ada.correct("stock/ab-1", {"moved": 8}, replaces=first.observations[0], dry_run=True)
    wrong = bob.correct("stock/ab-1", {"moved": 8}, replaces=first.observations[0])
    ada.correct("stock/ab-1", {"moved": "8.25"}, replaces=wrong.observations[0])
    bob.correct("stock/ab-1", {"notes": ["corrected", "twice"]}, replaces=second.observations[0])
    bob.correct("stock/ab-1", {"colours": ["blue", 1]}, remove={"colours": ["é"]})
    ada.correct("stock/ab-1", {"price": None, "peak": 0}, observed_at=MARCH)
    bob.correct("stock/ab-1", {"price": "12.50"}, observed_at=MARCH)
    ada.retract(first.observations[1])
    changed: dict[str, Any] = {name: dict(found) for name, found in STOCK["properties"].items()}
    changed["name"]["x-woodrat-merge"] = "latest"
    changed["peak"] = {"type": "integer", "x-woodrat-merge": "max"}
    bob.schemas.register({**STOCK, "properties": changed, "x-woodrat-version": 2})
    ref = Ref("stock", "ab-1")
    when = "2025-07-01T00:00:00.000000Z"
    misfit = say(ref, ASSERT, agent="cyd", observed_at=when, fields={"peak": "high", "moved": 0.5, "colours": []})
    blind = say(ref, CORRECT, agent="cyd", observed_at=when, fields={"price": 3}, saw=[misfit.digest])
    early = say(ref, RETRACT, agent="cyd", observed_at=when, replaces=[bytes(range(32)), misfit.digest])
    ada.admit(("observation", one.body) for one in (early, blind, misfit))


def objects_by_key(engine: InMemoryEngine, ada: Ledger) -> None:
    """Steps of a pipeline merge by name, member by member; a contact is attached to the one that it can mean."""
    bob = opened(engine, "bob", FixedClock("2026-01-01T00:00:00.500000Z", seed="bob"))
    nightly: dict[str, Any] = {"entity_type": "pipeline", "name": "nightly"}
    first = ada.store(
        {**nightly, "steps": [{"name": "load", "retries": 3}, {"name": "fetch", "retries": 1, "owner": None}]},
        observed_at=MARCH,
    )
    bob.store({**nightly, "steps": {"name": "fetch", "state": "failed", "retries": True}}, observed_at=JUNE)
    bob.store({**nightly, "steps": [{"name": "é", "n": {"😀": 1}}, {"name": ""}, {"name": "e\u0301"}]})
    ada.store({**nightly, "$": {"remove": {"steps": ["load", {"name": "é"}]}, "observed_at": SEPTEMBER}})
    wrong = ada.correct("pipeline/nightly", {"steps": [{"name": "fetch", "retries": 2}, {"name": "é"}]}, reason="read")
    better = bob.correct("pipeline/nightly", {"steps": [{"name": "fetch", "retries": 4, "owner": "ada"}]})
    bob.retract(wrong.observations[0])
    ada.store({**nightly, "steps": [{"name": "load", "state": "done"}, {"name": "fetch", "retries": 9}]})
    ada.retract(better.observations[0], reason="it was 2 after all")
    ref = Ref("pipeline", "nightly")
    when = "2025-07-01T00:00:00.000000Z"
    odd: list[Any] = [[{"name": "load", "retries": 5}, {"name": "load", "retries": 7}], ["fetch"], [{"retries": 1}]]
    for stated in odd:
        ada.admit([("observation", say(ref, ASSERT, agent="cyd", observed_at=when, fields={"steps": stated}).body)])
    ada.admit([("observation", say(ref, ASSERT, agent="cyd", observed_at=when, remove={"steps": [1]}).body)])
    ada.retract(first.observations[0])

    ada.store({"entity_type": "contact", "name": "Ana Rivera", "email": "ana@example.com"}, observed_at=MARCH)
    bob.store({"entity_type": "contact", "name": " ana  RIVERA", "city": "Reus"}, match="existing", observed_at=JUNE)
    bob.store({"entity_type": "contact", "name": "Bo", "city": "Vic"}, match="existing", observed_at=JUNE)


STORIES: Final[Mapping[str, tuple[Callable[[InMemoryEngine, Ledger], None], Callable[[], Clock]]]] = {
    "two-agents": (two_agents, FixedClock),
    "collections": (
        collections,
        lambda: JumpingClock(["2026-01-01T00:00:00Z", "2024-12-01T00:00:00Z", "2026-05-01T00:00:00Z"], seed="ada"),
    ),
    "objects-by-key": (objects_by_key, FixedClock),
}
"""What is told in each log, and by which clock."""


if __name__ == "__main__":
    main(sys.argv[1:])
