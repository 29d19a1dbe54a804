"""Citation: entries that were made elsewhere cite what they can have read, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.importers import reader
from woodrat.ledger.write import Writer
from woodrat.merge.snapshot import Snapshot
from woodrat.proofs.verbs.keys import make
from woodrat.runs.relay import Relay
from woodrat.runs.verbs import citation
from woodrat.runs.verbs.documents import record
from woodrat.testing.clock import FixedClock

Send = Callable[[Ledger, str, dict[str, Any]], object]
"""Sends an entry of a run."""


class Said:
    """A ledger with two loans, one of them stated again later, and a run of its agent."""

    def __init__(self) -> None:
        self.ledger = woodrat.open(":memory:", agent="loan-officer")
        first = self.ledger.store(loan("42", 580))
        self.of_42, self.at_42 = first.observations[0], first.position
        second = self.ledger.store(loan("43", 700))
        self.of_43, self.at_43 = second.observations[0], second.position
        later = self.ledger.store(loan("42", 610))
        self.later, self.at_later = later.observations[0], later.position
        self.run = self.ledger.run("Approve?").start()

    def read(
        self, observation: str, position: object, score: object = 580, also: Any = None, **said: Any
    ) -> dict[str, Any]:
        """Return a read of loan/42; `also` are further fields, and those that are null are left out."""
        fields = {"creditScore": {"observation": observation, "value": score}}
        fields |= {"id": {"observation": observation, "value": "42"}, **(also or {})}
        listed = {name: item for name, item in fields.items() if item is not None}
        return {"kind": "run.read", "entity": "loan/42", "position": position, "found": True, "fields": listed, **said}

    def decided(self, observation: str, position: object, entity: str = "loan/42", *, rule: bool) -> dict[str, Any]:
        origin = {"kind": "read", "entity": entity, "field": "creditScore", "observations": [observation]}
        origin["position"] = position  # type: ignore[assignment]
        condition = {"key": "creditScore", "op": "lt", "operand": 600, "actual": 580, "result": True, "origin": origin}
        tried = {"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "matched": True, "conditions": [condition]}
        body = {"kind": "run.decided", "stage": "risk", "mode": "decide", "chosen": "rejected", "default": False}
        if rule:
            return {**body, "rules": [tried]}
        return {**body, "rules": [], "facts": {"creditScore": 580}, "facts_origin": {"creditScore": origin}}


def loan(id: str, score: int) -> dict[str, Any]:
    return {"entity_type": "loan", "id": id, "creditScore": score}


def fields_of(seen: Snapshot) -> dict[str, Any]:
    """Return what a read says of a snapshot, as a client may spell it."""
    return {name: {"observation": seen.blame[name].observation, "value": seen.fields[name]} for name in seen.fields}


@pytest.fixture
def said() -> Said:
    return Said()


def live(ledger: Ledger, run: str, entry: dict[str, Any]) -> object:
    return Relay().entries(ledger.context, run, [entry])


def recorded(ledger: Ledger, run: str, entry: dict[str, Any]) -> object:
    return ledger.runs.import_([{**entry, "run": run}])


def own(ledger: Ledger, run: str, entry: dict[str, Any]) -> object:
    return record(ledger.run_log(), reader.read([{**entry, "run": run}]), own=True)


DOORS = {"live": live, "record": recorded, "record of one's own": own}
NOWHERE = "obs_" + "b" * 26
FORGED: dict[str, tuple[Callable[[Said], dict[str, Any]], str]] = {
    "a read of another entity": (lambda s: s.read(s.of_43, s.at_43), "creditScore was 580"),
    "a read of what came later": (lambda s: s.read(s.later, s.at_43, 610), r"was 580 \(obs_\w+\), not 610 \(obs_"),
    "a read of what was overruled": (lambda s: s.read(s.of_42, s.at_later), r"was 610 \(obs_\w+\), not 580 \(obs_"),
    "a read of another value": (lambda s: s.read(s.later, s.at_later, 790), "was 610 .*, not 790"),
    "a value cut otherwise": (
        lambda s: s.read(s.later, s.at_later, {"$truncated": {"bytes": 9999, "digest": "0" * 64, "preview": "790"}}),
        "creditScore was 610",
    ),
    "a read as of another position": (lambda s: s.read(s.later, s.at_later, 610, as_of=s.at_42), "as_of"),
    "a read beyond the end": (lambda s: s.read(s.of_42, 99), "99 is beyond the end of the log"),
    "a read before all": (lambda s: s.read(s.of_42, -2), "-2 is not a position of the log"),
    "a read as of beyond the end": (lambda s: s.read(s.of_42, s.at_42, as_of=99), "99 is beyond the end of the log"),
    "a read of nothing": (lambda s: s.read(NOWHERE, s.at_later, 610), "creditScore was 610"),
    "a read that found what was not known": (
        lambda s: {**s.read(s.of_42, s.at_42), "entity": "loan/44"},
        "loan/44 at .*: it was not known there",
    ),
    "a read that missed what was known": (
        lambda s: {"kind": "run.read", "entity": "loan/42", "position": s.at_42, "found": False},
        "loan/42 at .*: it was known there",
    ),
    "a field that had no value": (
        lambda s: s.read(s.of_42, s.at_42, also={"ok": {"observation": s.of_42, "value": True}}),
        "ok had no value, not true",
    ),
    "a field left out": (lambda s: s.read(s.of_42, s.at_42, also={"id": None}), "id had a value, and is left out"),
    "no field at all": (lambda s: {**s.read(s.of_42, s.at_42), "fields": {}}, "creditScore had a value, and is left"),
    "another schema": (lambda s: s.read(s.of_42, s.at_42, schema="sch_" + "a" * 52), "was not the schema in force"),
    "a recall of an entity": (lambda s: s.read(s.later, s.at_later, 790, within="recall"), "was 610 .*, not 790"),
    "one of many": (
        lambda s: s.read(s.of_42, s.at_42, also={"id": {"observations": [s.of_42, s.of_43], "value": "42"}}),
        "id was",
    ),
    "a fact of another entity": (lambda s: s.decided(s.of_43, s.at_43, rule=False), "is about loan/43"),
    "a condition on another entity": (lambda s: s.decided(s.of_43, s.at_43, rule=True), "is about loan/43"),
    "a condition on what came later": (lambda s: s.decided(s.later, s.at_42, rule=True), "there is no observation"),
    "a condition beyond the end": (lambda s: s.decided(s.of_42, 99, rule=True), "99 is beyond the end of the log"),
}
IMPORTED = {"a read as of another position"}
"""What counts as left out where it was recorded elsewhere."""


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("forged", FORGED)
def test_an_entry_cites_only_what_it_can_have_read(said: Said, forged: str, door: str) -> None:
    """What the log does not say at the position, or a position that it does not have, is refused with its place."""
    make, words = FORGED[forged]
    if forged in IMPORTED and door == "record":
        return
    before = said.ledger.position
    with pytest.raises(woodrat.Refused, match=words) as refusal:
        DOORS[door](said.ledger, said.run.id, make(said))
    assert "Nothing was recorded" in str(refusal.value)
    assert refusal.value.faults[0].path.startswith("/0/")
    assert said.ledger.position == before


@pytest.mark.parametrize("door", DOORS)
def test_what_was_there_may_be_cited(said: Said, door: str) -> None:
    """A read as of its own position, a decision on it, and a read without any of these are taken."""
    for entry in (
        said.read(said.of_42, said.at_42),
        said.read(said.later, said.at_later, 610, span="a" * 16),
        said.decided(said.of_42, said.at_43, rule=True),
        said.decided(said.of_42, said.at_43, rule=False),
        {"kind": "run.read", "entity": "loan/44", "position": said.at_42, "found": False},
    ):
        DOORS[door](said.ledger, said.run.id, entry)
    assert len(said.ledger.runs.show(said.run.id).reads) == 3


def test_entities_that_are_one_are_cited_for_each_other(said: Said) -> None:
    """Once two entities are joined a read of one shows what was said of the other; before that it does not."""
    said.ledger.merge("loan/42", "loan/43")
    seen = said.ledger.show("loan/42")
    fields = fields_of(seen)
    assert {item["observation"] for item in fields.values()} == {said.later}  # what was said last wins
    for entity in ("loan/42", "loan/43"):
        joined = {**said.read(said.later, said.ledger.position), "entity": entity, "fields": fields, "span": entity}
        said.ledger.runs.import_([{**joined, "run": said.run.id}])
    apart = {**said.read(said.later, said.at_later), "entity": "loan/43", "fields": fields}
    with pytest.raises(woodrat.Refused, match="of loan/43 at"):
        said.ledger.runs.import_([{**apart, "run": said.run.id}])


def test_a_beginning_cites_no_later_basis(said: Said) -> None:
    """The end of the log when a run began is not beyond its end, and what it goes by was there."""
    log = said.ledger.log.entries(limit=1)[0].log
    for wrong in (
        {"basis": {"log": log, "position": 99}},
        {"using": {"runbook": [{"entity": "loan/42", "observation": said.of_43, "version": said.at_43}]}},
    ):
        with pytest.raises(woodrat.Refused):
            said.ledger.runs.import_([{"kind": "run.started", "query": "?", **wrong}])
    said.ledger.runs.import_([{"kind": "run.started", "query": "?", "basis": {"log": log, "position": said.at_42}}])


def test_another_log_is_for_an_import_to_cite(said: Said) -> None:
    """A run of another log stays as it was where it is imported; an agent does not claim to have read one."""
    entry = said.read("obs_" + "b" * 26, 99, log="log_elsewhere")
    with pytest.raises(woodrat.Refused, match="which is not this log"):
        own(said.ledger, said.run.id, entry)
    with pytest.raises(woodrat.Refused, match="which is not this log"):
        live(said.ledger, said.run.id, entry)
    recorded(said.ledger, said.run.id, entry)
    assert said.ledger.runs.show(said.run.id).reads[0].log == "log_elsewhere"


def test_all_that_is_wrong_is_told_at_once(said: Said) -> None:
    """Every citation of every entry that cannot be is named, with its path."""
    entries = [
        {**said.read(said.of_43, said.at_43), "run": said.run.id},
        {**said.decided(said.later, said.at_42, rule=True), "run": said.run.id},
    ]
    with pytest.raises(woodrat.Refused) as refusal:
        said.ledger.runs.import_(entries)
    assert [fault.path for fault in refusal.value.faults] == [
        "/0/fields/creditScore",
        "/0/fields/id",
        "/1/rules/0/conditions/0/origin/observations",
    ]


def test_a_read_by_an_effective_time_is_kept_unchecked(said: Said) -> None:
    """What was true by a time is not compared, and the record says so of the read and of evidence that rests on it."""
    live(said.ledger, said.run.id, said.read(said.of_42, said.at_later, effective="2026-01-01T00:00:00.000000Z"))
    live(said.ledger, said.run.id, said.decided(said.of_42, said.at_later, rule=True))
    live(said.ledger, said.run.id, said.read(said.later, said.at_later, 610, span="c" * 16))
    record = said.ledger.runs.show(said.run.id)
    assert [read.unchecked for read in record.reads] == ["valid_at", None]
    assert [item.unchecked for item in record.decisions[0].looked_at] == [True]
    (reason,) = said.ledger.why("loan/42")
    assert [item.unchecked for item in reason.decision.looked_at] == [True]
    with pytest.raises(woodrat.Refused, match="was 610"):  # another shape counts as left out
        live(said.ledger, said.run.id, said.read(said.of_42, said.at_later, effective=5))


def test_a_read_without_a_position_is_unchecked(said: Said) -> None:
    """A trajectory says what was read and not where, so nobody can compare it."""
    read = {"kind": "read", "entity": "loan/42", "values": {"creditScore": 790}, "started_at": "2026-01-01T00:00:00Z"}
    decision = {"kind": "decision", "stage": "risk", "chosen": "approved", "evidence": {"creditScore": 790}}
    steps = [read, {**decision, "started_at": "2026-01-01T00:00:01Z"}]
    (run,) = said.ledger.runs.import_({"query": "?", "id": "t-1", "started_at": read["started_at"], "steps": steps})
    record = said.ledger.runs.show(run)
    assert [read.unchecked for read in record.reads] == ["position"]
    assert [item.unchecked for item in record.decisions[0].looked_at] == [True]


def test_a_read_of_what_was_erased_meanwhile_is_kept_without_it(tmp_path: Path) -> None:
    """An honest read that comes after an erasure is kept unchecked, and brings nothing back; the rest is compared."""
    make(tmp_path, FixedClock())
    with woodrat.open(":memory:", agent="loan-officer", keys=tmp_path) as ledger:
        ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580})
        ledger.correct("loan/42", {"note": "secret remark"}, reason="heard")
        run = ledger.run("Approve?").start()
        seen, position = ledger.show("loan/42"), ledger.position
        fields = fields_of(seen)
        read = {"kind": "run.read", "entity": "loan/42", "position": position, "found": True, "fields": fields}
        ledger.erase("loan/42#note", reason="asked to")
        for _ in range(2):  # sent again it changes nothing
            live(ledger, run.id, {**read, "step": 1, "span": "a" * 16, "started_at": "2026-01-01T00:00:00Z"})
        (kept,) = ledger.runs.show(run.id).reads
        assert (kept.values["note"], kept.behind("note"), kept.unchecked) == ("[ERASED]", (), "erased")
        assert kept.values["creditScore"] == 580
        wrong = {**fields, "creditScore": {**fields["creditScore"], "value": 790}}
        with pytest.raises(woodrat.Refused, match="creditScore was 580"):
            live(ledger, run.id, {**read, "fields": wrong})


@pytest.mark.parametrize("door", DOORS)
def test_no_client_says_that_all_steps_are_on_record(said: Said, door: str) -> None:
    """Whether the steps of a run are numbered is for the ledger to say; sent again, such an end changes nothing."""
    log = said.ledger.log.entries(limit=1)[0].log
    ended = {"kind": "run.ended", "status": "done", "numbered": True, "skipped": [1], "step": 7, "span": "e" * 16}
    ended["started_at"] = "2026-01-01T00:00:00.000000Z"
    for _ in range(2):
        DOORS[door](said.ledger, said.run.id, {**ended, "agent": "loan-officer"})
    bodies = [form.decode(e.body or b"") for e in said.ledger.log.entries(limit=99) if e.kind == "run.ended"]
    assert [(body.get("numbered"), body.get("skipped")) for body in bodies] == (
        [(True, [1, 2, 3, 4, 5, 6])] if door == "live" else [(None, None)]
    )
    assert log == said.ledger.log.entries(limit=1)[0].log


def test_an_end_that_the_ledger_numbered_is_known_again(said: Said) -> None:
    """The entries of a run that was recorded here change nothing when they are imported."""
    said.run.end()
    entries = [
        {"kind": e.kind, **form.decode(e.body or b"")}
        for e in said.ledger.log.entries(limit=99)
        if e.kind.startswith("run.")
    ]
    assert entries[-1]["numbered"] is True
    before = said.ledger.position
    said.ledger.runs.import_(entries)
    assert said.ledger.position == before


def test_the_recorder_cites_what_it_read(said: Said) -> None:
    """All that the library records by itself would be taken from outside as well."""
    run = said.run
    run.decide("risk", run.show("loan/42"), [woodrat.Rule("rejected", {"creditScore": {"lt": 600}})])
    run.at(said.at_42).show("loan/42")
    run.search("700")
    run.history("loan/43")
    bodies = [
        (e.kind, form.decode(e.body or b"")) for e in said.ledger.log.entries(limit=99) if e.kind in citation.CITING
    ]
    assert len(bodies) == 6

    def plan(draft: Any) -> None:
        for kind, body in bodies:
            assert citation.Citations(draft, own=True).faults(kind, body) == []

    Writer(said.ledger.context).write("check", {}, plan)
