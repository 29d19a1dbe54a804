"""Collections: what one more element costs, in a large collection and in a small one; and what indexed fields cost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import woodrat
from bench.rows import Row
from bench.stage import BLOCK, BLOCKS, Stage
from bench.timing import Figure, take_turns

AT_ONCE = 1_000
"""How many elements a claim states while a collection is filled."""
SCHEMA: Mapping[str, Any] = {
    "title": "box",
    "x-woodrat-identity": [["id"]],
    "properties": {
        "id": {"type": "string"},
        "place": {"type": "string"},
        "things": {"type": "array", "x-woodrat-merge": "union"},
    },
}


def _box(id: str, things: list[str]) -> dict[str, Any]:
    return {"entity_type": "box", "id": id, "things": things}


def _filled(stage: Stage, name: str, small: list[str]) -> woodrat.Ledger:
    """Return a ledger with one large box and small ones."""
    ledger = woodrat.open(stage.folder / name, agent="bench")
    ledger.schemas.register(dict(SCHEMA))
    for id, size in (("large", stage.scale.long), *((id, stage.scale.short) for id in small)):
        for start in range(0, size, AT_ONCE):
            things = [f"thing {number:07}" for number in range(start, min(start + AT_ONCE, size))]
            ledger.store(_box(id, things))
    return ledger


def write(stage: Stage) -> Figure:
    """Single writes of one element to a large union, against those to a small one; each small one serves one turn."""
    small = [f"small {turn}" for turn in range(BLOCKS + 1)]
    ledger = _filled(stage, "collection.db", small)
    try:

        def turns() -> Iterator[list[tuple[dict[str, Any], dict[str, Any]]]]:
            for turn, id in enumerate(small):
                names = [[f"one more {turn}-{number}"] for number in range(BLOCK)]
                yield [(_box("large", name), _box(id, name)) for name in names]

        return take_turns(
            turns(),
            lambda either: ledger.store(either[0]),
            lambda either: ledger.store(either[1]),
            warm=1,
            seconds=stage.scale.seconds,
        )
    finally:
        ledger.close()


def correct(stage: Stage) -> Figure:
    """Corrections of another field beside a large union, against those beside a small one."""
    small = [f"small {turn}" for turn in range(BLOCKS + 1)]
    ledger = _filled(stage, "corrected.db", small)
    try:
        turns = ([(id, f"place {number}") for number in range(BLOCK)] for id in small)
        return take_turns(
            turns,
            lambda either: ledger.correct("box/large", {"place": either[1] + either[0]}),
            lambda either: ledger.correct(f"box/{either[0]}", {"place": either[1]}),
            warm=1,
            seconds=stage.scale.seconds,
        )
    finally:
        ledger.close()


def batch(stage: Stage) -> Figure:
    """What a field under `union` adds to a record of a batch: batches with it, less those without, each of one type."""
    size = stage.scale.batch
    kinds = ("plain", "box")
    with woodrat.open(stage.folder / "union.db", agent="bench") as ledger:
        for kind in kinds:
            properties = {"id": {"type": "string"}, "label": {"type": "string"}}
            if kind == "box":
                properties |= SCHEMA["properties"]
            ledger.schemas.register({**SCHEMA, "title": kind, "properties": properties})

        def turns() -> Iterator[list[list[list[dict[str, Any]]]]]:
            for turn in range(18):
                without = [{"id": str(number), "label": f"label {turn} of {number}"} for number in range(size)]
                held = [{"things": [f"thing {turn % 5}", f"thing {number % 7}"]} for number in range(size)]
                plain = [{"entity_type": "plain", **record} for record in without]
                yield [[plain, [{"entity_type": "box", **a, **b} for a, b in zip(without, held, strict=True)]]]

        found = take_turns(
            turns(),
            lambda both: ledger.store(both[1]),
            lambda both: ledger.store(both[0]),
            per=size,
            per_against=size,
            warm=3,
            seconds=stage.scale.seconds,
        )
    # On a busy machine the two may come out the other way round.
    return Figure(max(found.ours - found.against, 0.01), found.against, found.unit, found.turns)


def indexed(stage: Stage) -> Figure:
    """Batches of a type with two indexed fields, against the same records of a type without."""
    size = stage.scale.batch
    with woodrat.open(stage.folder / "indexed.db", agent="bench") as ledger:
        for kind in ("plain", "indexed"):
            text: dict[str, Any] = {"type": "string", **({"x-woodrat-index": True} if kind == "indexed" else {})}
            properties = {"id": {"type": "string"}, "label": text, "place": text, "remark": {"type": "string"}}
            ledger.schemas.register({"title": kind, "x-woodrat-identity": [["id"]], "properties": properties})

        def turns() -> Iterator[list[list[list[dict[str, Any]]]]]:
            for turn in range(18):
                stated = [
                    {
                        "id": str(number),
                        "label": f"label {turn} of {number}",
                        "place": f"place {(turn + number) % 50}",
                        "remark": f"said {turn} times of number {number}",
                    }
                    for number in range(size)
                ]
                yield [[[{"entity_type": kind, **one} for one in stated] for kind in ("plain", "indexed")]]

        return take_turns(
            turns(),
            lambda both: ledger.store(both[1]),
            lambda both: ledger.store(both[0]),
            per=size,
            per_against=size,
            warm=3,
            seconds=stage.scale.seconds,
        )


def rows() -> tuple[Row, ...]:
    """Return what is measured of collections and of indexed fields."""
    beside = "correction beside a union of {s.long:,} elements / beside one of {s.short:,}"
    return (
        Row("collection-write", "write to a union of {s.long:,} elements / to one of {s.short:,}", 1.5, write),
        Row("collection-correct", beside, 1.5, correct),
        Row("batch-union", "what a union adds to a record of a batch of {s.batch:,}", 15, batch, is_ratio=False),
        Row("batch-indexed", "batch of {s.batch:,} with two indexed fields / without", 1.3, indexed),
    )
