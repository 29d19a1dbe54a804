"""Reduce on a ledger: the few observations that show something, and the file that shows it elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.bisect.reduction import Reduction, ReductionCheck, ReductionOrigin, parse
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.record_json import types_of
from woodrat.records import replace
from woodrat.runs.rules import Rule
from woodrat.testing.clock import FixedClock

LOW = "creditScore lt 600"


def opened(engine: Engine, *policies: Any) -> woodrat.Ledger:
    """Return a ledger on an engine."""
    return woodrat.Ledger(engine, tenant="lending", agent="crm", clock=FixedClock(), policies=registry(policies))


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """An empty ledger."""
    made: Engine = InMemoryEngine()
    yield opened(made)
    made.close()


def score(ledger: woodrat.Ledger, *scores: int, id: str = "42", **given: Any) -> str:
    """Say the scores of a loan, a write each; return the last observation."""
    said = ""
    for value in scores:
        said = ledger.store({"entity_type": "loan", "id": id, "creditScore": value}, **given).observations[0]
    return said


def elsewhere(found: woodrat.Reduction) -> woodrat.Ledger:
    """Return another ledger that holds what a reduction holds, and nothing else."""
    other = opened(InMemoryEngine())
    bodies = [("schema", scheme.body) for scheme in found.schemas]
    other.admit([*bodies, *(("observation", member.body) for member in found.members)])
    return other


def test_three_of_many_show_it_elsewhere(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """A sum of three among hundreds is written to a file, which a ledger that knows nothing else confirms."""
    ledger.schemas.register(
        {"title": "account", "properties": {"balance": {"type": "integer", "x-woodrat-merge": "sum"}}}
    )
    planted = {40: 100, 210: 20, 399: 3}
    records = [{"entity_type": "account", "id": "a", "balance": planted.get(n, 0), "n": n} for n in range(400)]
    others = [{"entity_type": "account", "id": f"b{n}", "balance": n} for n in range(100)]
    ledger.store([*records, *others])
    before = ledger.position
    found = ledger.reduce("account/a", where="balance=123", out=tmp_path / "sum.jsonl")
    assert ledger.position == before
    assert [member.fields["balance"] for member in found.members] == [100, 20, 3]
    assert (found.origin.position, found.origin.observations) == (before, 400)
    assert [scheme.type for scheme in found.schemas] == ["account"]
    checked = woodrat.check_reduction(tmp_path / "sum.jsonl")
    assert checked.same
    assert (checked.holds, checked.removable) == (True, ())
    other = elsewhere(found)
    assert other.show("account/a").fields["balance"] == 123
    assert other.fingerprint() == found.fingerprint == checked.fingerprint
    assert ledger.reduce("account/a", where="balance=123").to_bytes() == (tmp_path / "sum.jsonl").read_bytes()
    assert not (tmp_path / "sum.jsonl.part").exists()


def test_a_moment_and_an_effective_time_select_what_counts(ledger: woodrat.Ledger) -> None:
    """As of a moment only what was known then counts; by an effective time only what was true by then."""
    early = score(ledger, 580, valid_from="2025-01-01T00:00:00Z")
    score(ledger, 500, valid_from="2025-06-01T00:00:00Z")
    score(ledger, 710)
    with pytest.raises(woodrat.Refused, match="does not hold at position 2: loan/42#creditScore is 710"):
        ledger.reduce("loan/42", where=LOW)
    assert [member.fields["creditScore"] for member in ledger.at(1).reduce("loan/42", where=LOW).members] == [500]
    by_then = ledger.at(valid_at="2025-03-01T00:00:00Z").reduce("loan/42", where=LOW)
    assert [member.id for member in by_then.members] == [early]
    assert by_then.origin.valid_at == "2025-03-01T00:00:00.000000Z"
    assert woodrat.check_reduction(by_then.to_bytes()).same


def test_groups_deletes_and_corrections_are_shown_elsewhere(ledger: woodrat.Ledger) -> None:
    """What needs a join, a marker or a correction keeps them, and each file holds on its own."""
    score(ledger, 710, 705)
    score(ledger, 700, id="43")
    ledger.correct("loan/43", {"creditScore": 500}, reason="bureau")
    ledger.merge("loan/42", "loan/43")
    joined = ledger.reduce("loan/42", where=LOW)
    assert {member.op for member in joined.members} == {"correct", "assert"}
    assert {member.entity.type for member in joined.members} == {"loan", "same_as"}
    ledger.delete("loan/42")
    ledger.delete("loan/43")
    deleted = ledger.reduce("loan/42", deleted=True)
    ledger.restore("loan/42")
    restored = ledger.reduce("loan/42", exists=True, deleted=False)
    for found in (joined, deleted, restored):
        assert woodrat.check_reduction(found.to_bytes()).same
    assert elsewhere(deleted).show("loan/42").deleted


def test_a_decision_is_reduced_to_what_it_needed(ledger: woodrat.Ledger) -> None:
    """Of a decision on record the observations are left that make its rules choose so, without the run itself."""
    score(ledger, 710, 640, 580)
    ledger.store({"entity_type": "applicant", "id": "ana", "employed": False})
    rules = [
        Rule("rejected", {"creditScore": {"lt": 600}, "employed": False}),
        Rule("approved", {"creditScore": {"gt": 1}}),
    ]
    with ledger.run("Approve #42?", subject="loan/42") as run:
        facts = [run.show("loan/42").fact("creditScore"), run.show("applicant/ana").fact("employed")]
        run.decide("risk", facts, rules)
    found = ledger.reduce(f"{run.id}#risk")
    assert [(str(member.entity)) for member in found.members] == ["loan/42", "applicant/ana"]
    assert woodrat.check_reduction(found.to_bytes()).same
    assert found.believed == {"loan/42": {"creditScore": 580}, "applicant/ana": {"employed": False}}


def test_what_needs_no_observation_says_so(ledger: woodrat.Ledger) -> None:
    """A question that holds on an empty ledger is answered, and its file holds nothing but the question."""
    score(ledger, 580)
    found = ledger.reduce("loan/42", deleted=False)
    assert len(found) == 0
    assert found.sentence.endswith("it holds on an empty ledger, so it needs no observation.")
    assert woodrat.check_reduction(found.to_bytes()).same


def test_a_file_that_shows_less_or_more_is_found_out(ledger: woodrat.Ledger) -> None:
    """A set to which an observation was added, or from which one is missing, is no longer what a file should hold."""
    score(ledger, 580)
    other = ledger.store({"entity_type": "loan", "id": "42", "note": "x"})
    found = ledger.reduce("loan/42", where=LOW)
    more = ledger.reduce("loan/42", where=[LOW, "note=x"])
    padded = woodrat.check_reduction(replace(found, members=more.members).to_bytes())
    assert (padded.holds, padded.same, padded.removable) == (True, False, (other.observations[0],))
    empty = woodrat.check_reduction(replace(found, members=()).to_bytes())
    assert (empty.holds, empty.same) == (False, False)
    forged = woodrat.check_reduction(replace(found, fingerprint="fp_x").to_bytes())
    assert (forged.holds, forged.same) == (True, False)


def test_a_policy_of_ones_own_is_needed_where_the_file_is_checked() -> None:
    """A ledger without the code of a policy folds nothing that needs it, and says which."""
    longest = woodrat.own_policy(
        "longest",
        1,
        lift=lambda claim: claim.value,
        join=lambda a, b: max(a, b, key=lambda t: (len(t), t)),
        code="1" * 64,
    )
    ledger = opened(InMemoryEngine(), longest)
    named = {"name": "longest", "version": 1, "code": "1" * 64}
    ledger.schemas.register({"title": "memo", "properties": {"text": {"type": "string", "x-woodrat-merge": named}}})
    for text in ("a", "bbb", "cc"):
        ledger.store({"entity_type": "memo", "id": "1", "text": text})
    data = ledger.reduce("memo/1", where="text=bbb").to_bytes()
    with pytest.raises(woodrat.Unavailable, match="longest"):
        woodrat.check_reduction(data)
    assert woodrat.check_reduction(data, policies=[longest]).same


def test_bad_calls_are_refused(tmp_path: Path) -> None:
    """Code instead of data, a limit that is none, a file that cannot be written or read: all say what to do."""
    ledger = opened(InMemoryEngine())
    score(ledger, 580)
    calls: list[tuple[dict[str, Any], str]] = [
        ({"what": lambda past: True}, "a function cannot be written to a file"),
        ({"what": "loan/42", "where": LOW, "folds_max": 0}, "folds_max"),
        ({"what": "loan/42", "where": LOW, "folds_max": 1}, "after 1 folds"),
        ({"what": "loan/42"}, "it has no condition"),
        ({"what": "loan/42", "where": LOW, "out": tmp_path / "no" / "file"}, "cannot write"),
        ({"what": "loan/42", "where": LOW, "out": 5}, "expected a path"),
    ]
    for given, problem in calls:
        with pytest.raises(woodrat.Refused, match=problem):
            ledger.reduce(**given)
    with pytest.raises(woodrat.NotFound, match="loan/43: not known up to"):
        ledger.reduce("loan/43", where=LOW)
    file: Any
    for file, problem in ((tmp_path / "none", "cannot read"), (5, "expected a path or bytes"), (b"x", "is incomplete")):
        with pytest.raises(woodrat.Refused, match=problem):
            woodrat.check_reduction(file)
    assert list(tmp_path.iterdir()) == []


def test_the_page_of_the_format_shows_a_real_file() -> None:
    """The worked example of docs/formats/reduction.md is read, and holds."""
    text = (Path(__file__).parents[2] / "docs/formats/reduction.md").read_text("utf-8")
    data = text.partition("```reduction\n")[2].partition("```")[0].encode()
    found = parse(data)
    assert found.to_bytes() == data
    assert woodrat.check_reduction(data).same
    assert form.serialise(found.predicate.document()).decode() in text


RULES = [Rule("rejected", {"creditScore": {"lt": 600}}, "Low"), Rule("approved", {"creditScore": {"gte": 700}}, "High")]


@pytest.mark.parametrize(
    "question",
    [
        {"what": "loan/42", "where": [LOW]},
        {"what": "loan/42", "exists": True, "where": ["creditScore=580"]},
        {"what": "loan/42", "deleted": False},
        {"what": "loan/42", "rules": RULES, "chosen": "rejected"},
    ],
)
def test_the_predicate_of_an_answer_can_be_asked_again(ledger: woodrat.Ledger, question: dict[str, Any]) -> None:
    """An answer has every part of its predicate, null where nothing is asked; sent as a question it asks the same."""
    score(ledger, 720, 580)
    found = ledger.reduce(**question)
    told = found.to_json()
    assert told["predicate"].keys() == {"entities", "decision"}
    assert ledger.reduce(told["predicate"]) == found
    assert ledger.bisect(told["predicate"]).question == told["question"]


def test_the_answer_has_every_field_and_the_file_what_it_always_had(ledger: woodrat.Ledger) -> None:
    """The JSON of a reduction and of its check are their fields and what is derived; the file keeps its own words."""
    score(ledger, 720, 580)
    ledger.schemas.register({"title": "loan", "properties": {"creditScore": {"type": "integer"}}})
    found = ledger.at(valid_at="2030-01-01T00:00:00Z").reduce("loan/42", where=[LOW])
    told = found.to_json()
    assert told.keys() == {*types_of(Reduction), "question", "sentence"} - {"matched"}
    assert told["origin"].keys() == set(types_of(ReductionOrigin))
    assert (told["schemas"][0]["type"], told["members"][0]["fields"]["creditScore"]) == ("loan", 580)
    assert told["predicate"]["entities"][0]["exists"] is None
    checked = woodrat.check_reduction(found.to_bytes()).to_json()
    assert checked.keys() == {*types_of(ReductionCheck), "same", "sentence"}
    head = json.loads(found.to_bytes().splitlines()[0])
    assert head["origin"].keys() == {"log", "position", "effective", "observations"}
    assert head["predicate"] == {"entities": [{"entity": "loan/42", "when": {"creditScore": {"lt": 600}}}]}
