"""Golden logs: what was written once is written the same today, reads back, and leads to the same state."""

from __future__ import annotations

from typing import Any

import pytest
from tests.golden import make_logs

from woodrat import Ledger
from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.log import tree
from woodrat.log.entry import Entry
from woodrat.log.tree import Frontier
from woodrat.testing.clock import FixedClock

NAMES = sorted(make_logs.STORIES)


def lines_of(name: str) -> list[bytes]:
    """Return the lines of a golden log."""
    return (make_logs.FOLDER / f"{name}.jsonl").read_bytes().splitlines()


def entries_of(name: str) -> list[Entry]:
    """Return the entries of a golden log."""
    found: list[Any] = [form.decode(line) for line in lines_of(name)]
    return [Entry.from_json(value) for value in found]


def expected_of(name: str) -> dict[str, Any]:
    """Return what a golden log must lead to."""
    found: Any = form.decode((make_logs.FOLDER / f"{name}.json").read_bytes())
    assert isinstance(found, dict)
    return found


def fresh() -> Ledger:
    """Return an empty ledger."""
    return Ledger(InMemoryEngine(), tenant="copy", agent="copyist", clock=FixedClock(), policies=registry(()))


def test_todays_code_writes_the_same_bytes() -> None:
    """The same calls on the same clock write the stored files, byte for byte; another byte is a format decision."""
    written = make_logs.written()
    stored = {path.name: path.read_bytes() for path in make_logs.FOLDER.iterdir()}
    assert sorted(written) == sorted(stored)
    for name, content in written.items():
        assert content.splitlines() == stored[name].splitlines()
        assert content == stored[name]


def test_the_golden_logs_hold_what_they_are_for() -> None:
    """Between them the logs have every op, every kind of entry that there is by now, and several schemas of a type."""
    entries = [entry for name in NAMES for entry in entries_of(name)]
    values: list[Any] = [form.decode(entry.body or b"") for entry in entries if entry.kind == "observation"]
    assert {value["op"] for value in values} == {"assert", "correct", "retract", "delete", "restore"}
    assert {entry.kind for entry in entries} >= {
        "source",
        "received",
        "interpretation.started",
        "interpretation.ended",
        "schema",
        "observation",
        "tag",
    }
    schemas: list[Any] = [form.decode(entry.body or b"") for entry in entries if entry.kind == "schema"]
    assert [value["schema"]["x-woodrat-version"] for value in schemas if value["type"] == "stock"] == [1, 2]
    parts = {part for value in values for part in value}
    assert parts >= {"fields", "remove", "replaces", "saw", "source", "interpretation", "confidence", "reason", "match"}


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_log_reads_back(name: str) -> None:
    """Every line is an entry that checks, in its place and within its write, and is spelled as it was."""
    first, time = 0, ""
    entries = entries_of(name)
    for position, (line, entry) in enumerate(zip(lines_of(name), entries, strict=True)):
        entry.check()
        assert entry.position == position
        assert form.serialise(entry.to_json()) == line
        if entry.envelope.length is not None:
            first = position
            assert entry.recorded_at > time
        assert entry.envelope.write == first
        time = entry.recorded_at
        opening = entries[first].envelope.length
        assert opening is not None
        assert position < first + opening
    assert len(entries) == expected_of(name)["entries"]


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_log_has_its_root(name: str) -> None:
    """The tree over the stored entries has the stored root, built at once or leaf by leaf."""
    leaves = [entry.leaf() for entry in entries_of(name)]
    root = bytes.fromhex(expected_of(name)["root"])
    assert tree.root(leaves) == root
    frontier = Frontier()
    for leaf in leaves:
        frontier = frontier.append(leaf)
    assert frontier.root() == root


@pytest.mark.parametrize("backwards", [False, True], ids=["forwards", "backwards"])
@pytest.mark.parametrize("name", NAMES)
def test_a_stored_log_leads_to_its_state(name: str, backwards: bool) -> None:
    """A fresh ledger that admits the log, entry by entry in either direction, has the stored fingerprints."""
    said = [(entry.kind, entry.body or b"") for entry in entries_of(name) if entry.kind in ("observation", "schema")]
    ledger = fresh()
    for one in reversed(said) if backwards else said:
        ledger.admit([one])
    expected = expected_of(name)
    assert ledger.fingerprint() == ledger.at("now").fingerprint() == expected["fingerprint"]
    assert ledger.fingerprint(provenance=True) == expected["provenance"]
