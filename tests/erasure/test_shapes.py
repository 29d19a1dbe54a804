"""Erasure and shapes: bytes in a shape are searched as text; other bytes go from a run that lost something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.canon import form
from woodrat.erasure import rewrite
from woodrat.log.erasure import ERASED
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

QUOTE = b"x" * 80 + b" of Ada Lovelace"
TEXT = b"x" * 80 + b" of nobody"
SCAN = b"\x89PNG\x00 \xff"
UTF_16 = "Ada Lovelace".encode("utf-16")


def shapes(path: Path, results: dict[str, Any], quoted: bool) -> tuple[dict[str, Any], Any, bytes]:
    """Return the shapes of a run's results after a person was erased, the run's replay, and the whole log."""
    make_keys(path / "keys", FixedClock())

    def agent(run: woodrat.Run) -> str:
        run.tool("name", lambda: {"name": "Ada Lovelace" if quoted else "nobody"})
        return repr([run.tool(name, lambda value=value: value).result for name, value in results.items()])

    with woodrat.open(path / "a.db", agent="clerk", keys=path / "keys") as ledger:
        ledger.store({"entity_type": "person", "id": "ada", "name": "Ada Lovelace"})
        with ledger.run("Who?") as run:
            agent(run)
            run.answer("done")
        assert ledger.erase("person/ada", reason="asked to be forgotten").complete
        bodies = [entry.body for entry in ledger.log.entries(limit=100) if entry.kind == "run.tool"]
        steps = [form.decode(body) for body in bodies if body is not None]
        data = b"".join(entry.body or b"" for entry in ledger.log.entries(limit=100))
        replay = ledger.runs.replay(run.id, agent).runs[0]
    return {step["name"]: step.get("shape") for step in steps}, replay, data


def test_bytes_that_quote_what_is_erased_go(tmp_path: Path) -> None:
    """Bytes are kept as text, so the words of a person are found in them; the rest of the run loses nothing else."""
    found, replay, data = shapes(tmp_path, {"page": {"z": QUOTE}, "row": {"z": 1.0, "a": 2}}, quoted=False)
    assert found["page"] == ERASED
    assert found["row"] == [{"type": "float"}, {"order": [1, 0], "parts": [1]}]
    assert b"Lovelace" not in data
    assert [divergence.new for divergence in replay.divergences] == ["its result was not stored whole"]


def test_in_a_run_that_lost_something_bytes_that_are_no_text_go(tmp_path: Path) -> None:
    """Nobody can say what they spell, in whatever encoding; bytes that are text stay where they quote nothing."""
    results = {"scan": {"z": SCAN}, "utf_16": {"z": UTF_16}, "page": {"z": TEXT}}
    found, _, data = shapes(tmp_path, results, quoted=True)
    assert found["scan"] == found["utf_16"] == ERASED
    assert found["page"] == [{"type": "bytes", "text": TEXT.decode()}, {"parts": 1}]
    assert b"%00L%00o%00v" not in data
    assert b"L%00o%00v" not in data


def test_in_a_run_that_lost_nothing_they_stay(tmp_path: Path) -> None:
    """A run that has nothing to do with the person keeps its shapes, and replays."""
    found, replay, _ = shapes(tmp_path, {"scan": {"z": SCAN}, "page": {"z": TEXT}}, quoted=False)
    assert found["scan"] == [{"type": "bytes", "escaped": "%89PNG%00 %FF"}, {"parts": 1}]
    assert found["page"] == [{"type": "bytes", "text": TEXT.decode()}, {"parts": 1}]
    assert replay.problems == ()


def test_an_erasure_that_keeps_such_bytes_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the check of shapes taken out, the bytes would still be there."""
    monkeypatch.setattr(rewrite, "_is_shape_kept", lambda *given: True)
    _, _, data = shapes(tmp_path, {"utf_16": {"z": UTF_16}}, quoted=True)
    assert b"L%00o%00v" in data
