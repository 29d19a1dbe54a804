"""Shapes with a planted fault: each law of shapes catches the fault that breaks it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.runs.shaped import Quote, same

import woodrat
from woodrat.canon import form
from woodrat.erasure import rewrite
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.runs import values
from woodrat.runs.recorder.restoration import restored
from woodrat.runs.shape import Shaped, shape_of
from woodrat.testing.clock import FixedClock

pytestmark = pytest.mark.laws

Make = Callable[[Any, Any], Shaped]
SAMPLE = {"zip": 89.0, "city": (1, [-0.0, {"b": Quote(1.0), "a": b"\xff"}]), 7: {"d": 1, "c": 2}}


def comes_back(make: Make) -> bool:
    """Return whether the sample is restored as it was, by shapes made so."""
    kept = values.plain(SAMPLE)
    shape = form.normal(make(SAMPLE, kept).shape)
    return same(SAMPLE, restored(form.normal(kept), shape).value)


def hides(make: Make) -> bool:
    """Return whether nothing of a hidden part is in a shape made so."""
    value = {"open": 1.0, "secret": {"name": b"Ada Lovelace"}}
    return b"Lovelace" not in form.serialise(make(value, values.plain(value, {"secret"})).shape)


def without(member: str, wanted: object = None) -> Make:
    """Return how shapes are made by a recorder that forgets one thing."""

    def make(value: Any, recorded: Any) -> Shaped:
        made = shape_of(value, recorded)
        nodes = [{name: item for name, item in node.items() if name != member} for node in made.shape or ()]  # type: ignore[union-attr]
        if wanted is not None:
            kept = [node if node.get("type") != wanted else {} for node in made.shape or ()]  # type: ignore[union-attr]
            return Shaped([*kept], ())
        return Shaped([*nodes], ())

    return make


def test_sound_shapes_pass() -> None:
    """The laws hold for shapes as they are made."""
    assert comes_back(shape_of)
    assert hides(shape_of)


@pytest.mark.parametrize(
    "fault",
    [
        without("order"),
        without("parts"),
        without("keys"),
        without("type", "float"),
        without("type", "negative_zero"),
        without("type", "tuple"),
        without("type", "dataclass"),
        without("type", "bytes"),
        lambda value, recorded: Shaped(None, ()),
    ],
    ids=["order", "parts", "keys", "float", "negative_zero", "tuple", "dataclass", "bytes", "no shape"],
)
def test_a_forgotten_part_of_a_shape_is_caught(fault: Make) -> None:
    """A recorder that drops the order of keys, a float, or a type is caught."""
    assert not comes_back(fault)


def test_a_shape_made_before_redaction_is_caught() -> None:
    """A shape of the value as it was before hidden parts were taken out is caught."""
    assert not hides(lambda value, recorded: shape_of(value, values.plain(value)))


def erased(path: Path) -> bytes:
    """Return what the log holds of a run whose tool returned bytes that quote a person, after that one is erased."""
    make_keys(path.parent / "keys", FixedClock())
    ledger = woodrat.open(path, agent="clerk", keys=path.parent / "keys")
    try:
        ledger.store({"entity_type": "person", "id": "ada", "name": "Ada Lovelace"})
        with ledger.run("Who?") as run:
            run.tool("scan", lambda: {"page": b"x" * 80 + b" of Ada Lovelace", "z": 1.0, "a": 2})
            run.answer("done")
        ledger.erase("person/ada", reason="asked to be forgotten")
        return b"".join(entry.body or b"" for entry in ledger.log.entries(limit=100))
    finally:
        ledger.close()


def test_an_erasure_takes_the_shape_too(tmp_path: Path) -> None:
    """What is erased is in no shape: the one that quoted it says that it was erased."""
    left = erased(tmp_path / "a.db")
    assert b"Lovelace" not in left
    assert b'"shape":"[ERASED]"' in left


def test_a_shape_that_is_not_erased_is_caught(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure that leaves shapes alone is caught."""
    again = rewrite.step_again

    def careless(kind: str, old: bytes, names: Any) -> bytes | None:
        new, body = again(kind, old, names), form.decode(old)
        if new is None or "shape" not in body:
            return new
        return form.serialise({**form.decode(new), "shape": body["shape"]})

    monkeypatch.setattr(rewrite, "AGAIN", {**rewrite.AGAIN, "run.tool": careless})
    assert b"Lovelace" in erased(tmp_path / "a.db")
