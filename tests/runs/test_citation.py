"""Citation: entries that were made elsewhere cite what they can have read, or are refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.ledger.write import Writer
from woodrat.runs.relay import Relay
from woodrat.runs.verbs import citation
from woodrat.runs.verbs.documents import record

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

    def read(self, observation: str, position: object, entity: str = "loan/42", **said: Any) -> dict[str, Any]:
        fields = {"creditScore": {"observation": observation, "value": 580}}
        return {"kind": "run.read", "entity": entity, "position": position, "found": True, "fields": fields, **said}

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


@pytest.fixture
def said() -> Said:
    return Said()


def live(ledger: Ledger, run: str, entry: dict[str, Any]) -> object:
    return Relay().entries(ledger.context, run, [entry])


def recorded(ledger: Ledger, run: str, entry: dict[str, Any]) -> object:
    return ledger.runs.import_([{**entry, "run": run}])


def own(ledger: Ledger, run: str, entry: dict[str, Any]) -> object:
    return record(ledger.run_log(), [{**entry, "run": run}], own=True)


DOORS = {"live": live, "record": recorded, "record of one's own": own}
FORGED: dict[str, tuple[Callable[[Said], dict[str, Any]], str]] = {
    "a read of another entity": (lambda s: s.read(s.of_43, s.at_43), "is about loan/43, not loan/42"),
    "a read of what came later": (lambda s: s.read(s.later, s.at_43), "there is no observation"),
    "a read beyond the end": (lambda s: s.read(s.of_42, 99), "99 is beyond the end of the log"),
    "a read as of beyond the end": (lambda s: s.read(s.of_42, s.at_42, as_of=99), "99 is beyond the end of the log"),
    "a read of nothing": (lambda s: s.read("obs_" + "b" * 26, s.at_later), "there is no observation"),
    "one of many": (
        lambda s: {**s.read(s.of_42, s.at_later), "fields": {"a": {"observations": [s.of_42, s.of_43]}}},
        "is about loan/43",
    ),
    "a fact of another entity": (lambda s: s.decided(s.of_43, s.at_43, rule=False), "is about loan/43"),
    "a condition on another entity": (lambda s: s.decided(s.of_43, s.at_43, rule=True), "is about loan/43"),
    "a condition on what came later": (lambda s: s.decided(s.later, s.at_42, rule=True), "there is no observation"),
    "a condition beyond the end": (lambda s: s.decided(s.of_42, 99, rule=True), "99 is beyond the end of the log"),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("forged", FORGED)
def test_an_entry_cites_only_what_it_can_have_read(said: Said, forged: str, door: str) -> None:
    """An observation of another entity, or of later, or a position the log does not have is refused, with its place."""
    make, words = FORGED[forged]
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
        said.read(said.later, said.at_later, span="a" * 16),
        said.decided(said.of_42, said.at_43, rule=True),
        said.decided(said.of_42, said.at_43, rule=False),
        {"kind": "run.read", "entity": "loan/44", "position": said.at_42, "found": False},
    ):
        DOORS[door](said.ledger, said.run.id, entry)
    assert len(said.ledger.runs.show(said.run.id).reads) == 3


def test_entities_that_are_one_are_cited_for_each_other(said: Said) -> None:
    """Once two entities are joined a read of one shows what was said of the other; before that it does not."""
    said.ledger.merge("loan/42", "loan/43")
    said.ledger.runs.import_([{**said.read(said.of_43, said.ledger.position), "run": said.run.id}])
    with pytest.raises(woodrat.Refused, match="is about loan/43"):
        said.ledger.runs.import_([{**said.read(said.of_43, said.at_43), "run": said.run.id, "span": "b" * 16}])


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
        "/0/fields/creditScore/observation",
        "/1/rules/0/conditions/0/origin/observations",
    ]


def test_the_recorder_cites_what_it_read(said: Said) -> None:
    """All that the library records by itself would be taken from outside as well."""
    run = said.run
    run.decide("risk", run.show("loan/42"), [woodrat.Rule("rejected", {"creditScore": {"lt": 600}})])
    run.at(said.at_42).show("loan/42")
    run.search("700")
    run.history("loan/43")
    from woodrat.canon import form

    bodies = [
        (e.kind, form.decode(e.body or b"")) for e in said.ledger.log.entries(limit=99) if e.kind in citation.CITING
    ]
    assert len(bodies) == 6

    def plan(draft: Any) -> None:
        for kind, body in bodies:
            assert citation.faults(draft, kind, body, "", own=True) == []

    Writer(said.ledger.context).write("check", {}, plan)
