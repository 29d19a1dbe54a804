"""Rebuilding: one pass over the log leaves what writes leave, however much of it is at hand at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

import woodrat
from woodrat.ledger import derive

SCHEMA = {
    "title": "parcel",
    "type": "object",
    "x-woodrat-identity": [["code"]],
    "properties": {"code": {"type": "string"}, "weight": {"type": "integer", "x-woodrat-merge": "max"}},
}


def told(path: Path) -> woodrat.Ledger:
    """Return a ledger with long histories, and whatever a pass over the log does not fold by itself."""
    ledger = woodrat.open(path, agent="ada")
    other = ledger.as_agent("bob")
    for turn in range(20):
        writer = other if turn % 3 else ledger
        at = f"2024-01-{turn + 1:02d}T00:00:00Z"
        writer.store(
            [
                {
                    "entity_type": "contact",
                    "email": f"{name}@x.org",
                    "name": name,
                    "city": f"c{turn}",
                    "tags": [f"t{turn % 4}"],
                }
                for name in ("ann", "ben", "cem")
            ],
            observed_at=at,
        )
        # Half of it was seen before what is known already, so that it lies below.
        writer.store(
            {"entity_type": "box", "id": "1", "n": turn, f"f{turn % 5}": "x"},
            observed_at=f"2024-02-{1 + turn * 7 % 28:02d}T00:00:00Z",
        )
        if turn == 6:
            said = ledger.store({"entity_type": "box", "id": "1", "n": 99}, observed_at="2024-03-01T00:00:00Z")
            ledger.correct("contact/ann@x.org", {"city": "Lund"}, reason="seen")
            ledger.delete("contact/ben@x.org", reason="gone")
            ledger.store({"entity_type": "parcel", "$": {"key": "p"}, "code": "P", "weight": 3})
        if turn == 11:
            ledger.retract(said.observations[0], reason="wrong")
            ledger.schemas.register(SCHEMA)
        if turn == 14:
            ledger.merge("contact/ann@x.org", "contact/cem@x.org", reason="one")
        ledger.store({"entity_type": "parcel", "$": {"key": "p"}, "code": "P", "weight": turn})
    return ledger


def kept(path: Path) -> dict[tuple[str, str, int], bytes]:
    """Return the merge states kept along the histories of entities that were never joined, present states included."""
    with apsw.Connection(str(path)) as connection:
        rows: list[Any] = connection.execute(
            "SELECT type, key, position, kept.state FROM kept JOIN entity ON entity.id = kept.entity "
            "UNION ALL SELECT type, key, -1, state FROM entity"
        ).fetchall()
    return {(type, key, at): state for type, key, at, state in rows if key not in ("ann@x.org", "cem@x.org")}


@pytest.mark.parametrize(("entries", "entities"), [(1, 0), (3, 2), (1_000, 1), (250, 5_000)])
def test_a_pass_leaves_what_writes_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entries: int, entities: int
) -> None:
    """Whatever is read and held at a time, a rebuild leaves the states and the fingerprint that the writes left."""
    path = tmp_path / "l.db"
    ledger = told(path)
    before, fingerprint = kept(path), ledger.fingerprint()
    assert len(before) > 10
    monkeypatch.setattr(derive, "CHUNK_ENTRIES", entries)
    monkeypatch.setattr(derive, "AT_HAND_MAX", entities)
    rebuilt = ledger.rebuild()
    assert rebuilt.agreed
    assert rebuilt.fingerprint == fingerprint
    after = kept(path)
    assert after == before
    assert ledger.verify(deep=True).sound
    ledger.close()


def test_the_other_tenants_of_a_file_are_left_alone(tmp_path: Path) -> None:
    """A rebuild of one tenant's ledger drops nothing that is derived from another's log."""
    path = tmp_path / "l.db"
    with woodrat.open(path) as one, woodrat.open(path, tenant="other") as two:
        for ledger in (one, two):
            ledger.store(
                [
                    {"entity_type": "box", "id": "1", "n": n, "$": {"observed_at": f"2024-01-{n:02d}T00:00:00Z"}}
                    for n in range(1, 20)
                ]
            )
        assert one.rebuild().agreed
        assert two.verify(deep=True).sound
        assert two.show("box/1").fields == one.show("box/1").fields


@pytest.mark.parametrize("place", ["UPDATE entity SET state = x'5b32'", "UPDATE element SET part = x'ff00'"])
def test_what_is_kept_and_cannot_be_read_is_made_again(tmp_path: Path, place: str) -> None:
    """Bytes that nobody packed are told as damage of what is derived, and a rebuild puts it right and says so."""
    path = tmp_path / "l.db"
    with woodrat.open(path) as ledger:
        ledger.schemas.register({"title": "tag", "properties": {"of": {"type": "array", "x-woodrat-merge": "union"}}})
        ledger.store({"entity_type": "tag", "$": {"key": "all"}, "of": [f"t{number}" for number in range(100)]})
        before = ledger.show("tag/all")
    raw = apsw.Connection(str(path))
    raw.execute(place)
    raw.close()
    with woodrat.open(path) as ledger:
        with pytest.raises(woodrat.Corrupt, match="woodrat rebuild"):
            ledger.show("tag/all")
        assert ledger.rebuild().repaired == ("tag/all",)
        assert ledger.show("tag/all") == before
        assert ledger.verify().sound
