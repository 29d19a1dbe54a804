"""Groups with a long history: what it costs to read their past."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apsw
import pytest

from woodrat.canon.ids import Ref
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN
from woodrat.state.asof import AsOf
from woodrat.testing.ledgers import ledger_on


@pytest.mark.parametrize("at_once", [1, 150])
def test_the_far_past_of_every_member_is_near(tmp_path: Path, at_once: int) -> None:
    """Reading a group early in its history costs the same however long that went on, whichever member was spoken of."""
    steps: dict[int, int] = {}
    for length in (150, 900):
        engine = SqliteEngine(tmp_path / f"{length}.db")
        ledger = ledger_on(engine)
        refs = [Ref("thing", f"{number}") for number in range(3)]
        ledger.store([{"entity_type": "thing", "id": ref.key, "value": 0} for ref in refs])
        for other in refs[1:]:
            ledger.merge(refs[0], other)
        said = [{"entity_type": "thing", "id": f"{n % 3}", "value": n} for n in range(length)]
        for start in range(0, length, at_once):
            ledger.store(said[start : start + at_once])
        heard: list[Any] = []
        with engine.transaction(ledger.tenant) as view:
            connection = engine._writer.connection
            for position in range(30, 140, 7):
                for ref in refs:
                    view.observations(ref.digest, position - 1, position)  # what is at hand of the entities is read
                connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, heard.append)
                reader = Reader(view, AsOf(position), BUILTIN)
                found = reader.snapshot(refs[position % 3])
                connection.trace_v2(0, None)
                assert found.version <= position
                assert found.fields["value"] == max(
                    s.observation.fields["value"]
                    for s in reader.stored(refs)  # type: ignore[type-var]
                )
        steps[length] = sum(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"] for event in heard)
        assert ledger.verify().sound
        engine.close()
    assert steps[900] <= steps[150] * 1.3
