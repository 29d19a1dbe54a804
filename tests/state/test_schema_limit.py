"""A schema outside the subset: refused at every door, and harmless where a log from elsewhere holds it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.state.test_schema_subset import BOMBS

import woodrat
from woodrat import Ledger, Refused
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.proofs.verbs.keys import make
from woodrat.state import schema
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

SECONDS = 120
"""How long a process may take that would not end in years if it followed the references."""
AT = "2025-12-05T09:00:00Z"
BOMB = {**BOMBS["allOf"], "properties": {"x": {"$ref": "#/$defs/d0", "x-woodrat-text": True, "x-woodrat-index": True}}}


def export(document: dict[str, Any] = BOMB) -> bytes:
    """Return a log as only a ledger without the limit writes it: two entities, then a schema of their type."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "subset_faults", lambda document: [])
        ledger = ledger_on(InMemoryEngine(), agent="elsewhere", clock=FixedClock(seed="elsewhere"))
        ledger.store({"entity_type": "thing", "id": "1", "x": "Olot", "y": 2}, observed_at=AT)
        ledger.store({"entity_type": "thing", "id": "2", "x": "Vic"}, observed_at=AT)
        ledger.correct("thing/2", {"x": "Girona"}, reason="moved", observed_at=AT)
        ledger.schemas.register(document, entity_type="thing", version=3)
        out = io.BytesIO()
        ledger.log.export(out)
        return out.getvalue()


@pytest.fixture
def engine() -> Iterator[Engine]:
    made: Engine = InMemoryEngine()
    yield made
    made.close()


def run(code: str, *words: str) -> str:
    """Run Python code in a process of its own, for a bounded time; return what it printed."""
    done = subprocess.run(
        [sys.executable, "-c", code, *words], capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


IMPORTER = """
import sys, json, woodrat
path, db = sys.argv[1:]
with woodrat.open(db, agent="importer") as ledger:
    with open(path, "rb") as lines:
        ledger.log.import_(lines)
    shown = ledger.show("thing/1").to_json()
    reasons = [v.reason for verdicts in ledger.blame("thing/2").values() for v in verdicts]
    assert not ledger.verify().damage
    assert ledger.rebuild().agreed
    ledger.fingerprint(), ledger.prove_order(shuffles=5), ledger.search("Olot")
    ledger.conflicts(), ledger.history("thing/2")
    try:
        ledger.store({"entity_type": "thing", "id": "3", "x": "Berga"})
    except woodrat.Refused as refused:
        said = str(refused)
    print(json.dumps([shown, reasons, said]))
"""


def test_a_log_with_a_bomb_is_imported_and_read_in_no_time(tmp_path: Path) -> None:
    """Import, reads, verify, rebuild and search of a log whose schema is a bomb end; answers say why they are empty."""
    path = tmp_path / "bomb.jsonl"
    path.write_bytes(export())
    shown, reasons, refused = json.loads(run(IMPORTER, str(path), str(tmp_path / "b.db")))
    assert shown["fields"] == {}
    assert shown["problem"].startswith('nothing fits version 3 of schema "thing": ')
    assert len(reasons) == 3
    assert all(reason.startswith("does not fit: nothing fits version 3") for reason in reasons)
    assert "nothing fits version 3" in refused
    assert "Nothing was written." in refused


def test_everything_about_a_bomb_is_told(engine: Engine) -> None:
    """What is shown of an entity, its claims, the schema itself and a refused write name the limit."""
    ledger = ledger_on(engine)
    ledger.log.import_(io.BytesIO(export()))
    told = ledger.schemas.show("thing").beyond
    assert str(told).endswith(" checks with all references followed")
    assert ledger.show("thing/2").problem == told
    assert ledger.show("thing/2").to_json()["problem"] == told
    assert ledger.schemas.show("thing").to_json()["problem"] == told
    with pytest.raises(Refused, match="nothing fits version 3"):
        ledger.store({"entity_type": "thing", "id": "3", "z": 1})
    with pytest.raises(Refused, match="nothing fits version 3"):
        ledger.correct("thing/1", {"y": 3}, reason="no")
    assert ledger.query(entity_type="thing", where=["x=Olot"]).items == ()
    assert ledger.search("Olot").items == ()
    past = ledger.at(2)
    assert past.show("thing/1").fields == {"id": "1", "x": "Olot", "y": 2}
    assert past.show("thing/1").problem is None


def test_a_later_version_is_taken_and_everything_fits_again(engine: Engine) -> None:
    """A schema within the limit that is registered after a bomb is in force, and the claims that lost fit it."""
    ledger = ledger_on(engine)
    ledger.log.import_(io.BytesIO(export()))
    ledger.schemas.register({"properties": {"x": {"type": "string"}}}, entity_type="thing")
    assert ledger.schemas.show("thing").version == 4
    assert ledger.show("thing/1").fields == {"id": "1", "x": "Olot", "y": 2}
    assert ledger.show("thing/2").fields["x"] == "Girona"
    assert ledger.show("thing/1").problem is None
    ledger.store({"entity_type": "thing", "id": "3", "x": "Berga"})
    assert not ledger.verify().damage
    assert ledger.rebuild().agreed


def test_removals_and_collections_lose_as_well(engine: Engine) -> None:
    """Under a bomb no claim of any kind has an effect, whatever the policy; what has none is the same in any order."""
    policies = {"tags": {"type": "array", "x-woodrat-merge": "union"}, "n": {"x-woodrat-merge": "sum"}}
    maker = ledger_on(InMemoryEngine(), agent="elsewhere", clock=FixedClock(seed="elsewhere"))
    maker.schemas.register({"properties": policies}, entity_type="bag")
    maker.store({"entity_type": "bag", "id": "1", "tags": ["a", "b"], "n": 1}, observed_at=AT)
    maker.store(
        {"entity_type": "bag", "id": "1", "n": 2, "$": {"remove": {"tags": ["a"]}}}, observed_at="2025-12-06T00:00:00Z"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(schema, "subset_faults", lambda document: [])
        maker.schemas.register({**BOMB, "properties": {**BOMB["properties"], **policies}}, entity_type="bag")
    out = io.BytesIO()
    maker.log.export(out)
    ledger = ledger_on(engine)
    ledger.log.import_(io.BytesIO(out.getvalue()))
    assert ledger.show("bag/1").fields == {}
    assert all(not v.wins for verdicts in ledger.blame("bag/1").values() for v in verdicts)
    assert ledger.prove_order(shuffles=10).holds


def test_a_bomb_comes_by_sync_and_by_copy(tmp_path: Path) -> None:
    """Wherever entries enter, a schema outside the subset is held and used for nothing."""
    first = ledger_on(InMemoryEngine(), agent="a")
    first.log.import_(io.BytesIO(export()))
    second = ledger_on(InMemoryEngine(), agent="b", clock=FixedClock(seed="b"))
    second.store({"entity_type": "thing", "id": "9", "x": "Reus"})
    second.log.sync(first)
    third = ledger_on(InMemoryEngine(), agent="c")
    bodies = [json.loads(line) for line in export().splitlines()]
    third.admit([(e["kind"], form.encode(e["body"])) for e in bodies])
    for ledger in (first, second, third):
        assert ledger.show("thing/1").fields == {}
        assert not ledger.verify().damage
    assert second.show("thing/9").fields == {}


@dataclass
class Model:
    """A dataclass whose schema is small."""

    x: str


def test_a_capsule_is_made_of_what_lost(tmp_path: Path) -> None:
    """An observation of a type with a bomb is proven; a field that shows nothing has nothing to prove."""
    keys = make(tmp_path / "keys", FixedClock(seed="keys"), "example.com/test").keys
    with woodrat.open(tmp_path / "c.db", agent="a", keys=keys.folder) as ledger:
        ledger.log.import_(io.BytesIO(export()))
        observation = ledger.observations("thing/1").items[0].observation.id
        assert ledger.proofs.capsule(observation).to_json()
        with pytest.raises(woodrat.WoodratError):
            ledger.proofs.capsule("thing/1#x")


DOORS: dict[str, Callable[[Ledger], object]] = {
    "register": lambda ledger: ledger.schemas.register(BOMB, entity_type="thing"),
    "dry run": lambda ledger: ledger.schemas.register(BOMB, entity_type="thing", dry_run=True),
}


@pytest.mark.parametrize("door", DOORS.values(), ids=DOORS.keys())
def test_a_ledger_refuses_to_register_a_bomb(door: Callable[[Ledger], object]) -> None:
    """The refusal names the field and the limit; the log stays empty."""
    ledger = ledger_on(InMemoryEngine())
    with pytest.raises(Refused) as refused:
        door(ledger)
    assert {fault.path for fault in refused.value.faults} == {"", "/properties/x"}
    assert "more than 20000 checks" in str(refused.value)
    assert ledger.position == -1
    ledger.schemas.register(Model, entity_type="thing")
