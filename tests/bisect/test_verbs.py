"""Bisect on a ledger: a flip of a question about state or a decision, told with who said what."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import woodrat
from woodrat.bisect.search import Bisected
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import entry_index
from woodrat.ledger import index as log_index
from woodrat.ledger.moments import write_of
from woodrat.ledger.own_policy import registry
from woodrat.runs.rules import Rule
from woodrat.testing.clock import FixedClock

RULES = [
    Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    Rule("approved", {"creditScore": {"gte": 700}}, label="Good credit"),
]
LOW = "creditScore lt 600"


def opened(engine: Engine, seed: str = "one") -> woodrat.Ledger:
    """Return a ledger on an engine; the seed makes its log's name."""
    return woodrat.Ledger(engine, tenant="lending", agent="crm", clock=FixedClock(seed=seed), policies=registry(()))


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """An empty ledger."""
    made: Engine = InMemoryEngine()
    yield opened(made)
    made.close()


def score(ledger: woodrat.Ledger, *scores: int, id: str = "42", **given: Any) -> int:
    """Say the scores of a loan, a write each; return the last position."""
    position = -1
    for value in scores:
        position = ledger.store({"entity_type": "loan", "id": id, "creditScore": value}, **given).position
    return position


def test_a_flip_is_told_with_its_write(ledger: woodrat.Ledger) -> None:
    """Position, time, observation, agent, run, source and both values of the write with which the answer changed."""
    score(ledger, 710, 705)
    source = ledger.sources.add(b"score: 580", name="bureau.txt")
    with (
        ledger.as_agent("officer").run("Score of #42?"),
        ledger.interpretations.start(source, model="reader-1") as reading,
    ):
        reading.store({"entity_type": "loan", "id": "42", "creditScore": 580, "note": "new"})
    score(ledger, 590)
    found = ledger.bisect("loan/42", where=LOW)
    assert found
    flip = found.flip
    assert flip is not None
    (said,) = flip.statements
    assert (said.agent, said.source_name, said.fields["creditScore"]) == ("crm", "bureau.txt", 580)
    assert said.position == flip.position == flip.write
    assert ledger.at(flip.position).show("loan/42").fields["creditScore"] == 580
    assert ledger.at(flip.before).show("loan/42").fields["creditScore"] == 705
    assert flip.recorded_at == said.recorded_at
    assert (found.answers, flip.answers) == ((False, True), (False, True))
    (change,) = flip.changes
    assert [(field.before, field.after) for field in change.fields] == [(705, 580)]
    assert "crm asserted creditScore 580 from bureau.txt" in found.sentence
    assert f"found in {found.folds} folds" in found.sentence
    assert ledger.bisect("loan/42", {"creditScore": {"lt": 600}}).flip == flip


def test_the_first_flip_of_several(ledger: woodrat.Ledger) -> None:
    """Halving finds one of three flips and says so; `first` walks for the first, also where both ends agree."""
    score(ledger, 710, 580, 710)
    last = score(ledger, 590, 595)
    found = ledger.bisect("loan/42", where=LOW)
    assert found.flip is not None
    assert found.flip.position in (1, 3)
    first = ledger.bisect("loan/42", where=LOW, first=True)
    assert first.flip is not None
    assert (first.flip.position, first.first, first.folds) == (1, True, 3)
    agreed = ledger.bisect("loan/42", where=LOW, before=1, after=last)
    assert not agreed
    assert agreed.answers == (True, True)
    assert agreed.sentence.startswith("loan/42#creditScore lt 600: true at position 1 and true at position 4; ")
    assert ledger.bisect("loan/42", where=LOW, before=1, first=True).flip is not None


def test_a_write_is_one_state(ledger: woodrat.Ledger) -> None:
    """Inside a write nothing was ever believed: a flip is a whole write, a moment inside one means the one before."""
    score(ledger, 710)
    report = ledger.store(
        [{"entity_type": "loan", "id": str(number), "creditScore": 580} for number in (41, 42, 43, 44)]
    )
    flip = ledger.bisect("loan/42", where=LOW).flip
    assert flip is not None
    assert (flip.before, flip.write, flip.position) == (0, 1, report.position)
    assert [said.entity for said in flip.statements] == ["loan/42"]
    inside = ledger.bisect("loan/42", where=LOW, after=2)
    assert (inside.start, inside.end, bool(inside)) == (-1, 0, False)


def test_deleting_joining_and_withdrawing_flip_too(ledger: woodrat.Ledger) -> None:
    """Whether it is deleted, exists, or has a value through another it was joined with; and a retraction."""
    score(ledger, 710)
    low = ledger.store({"entity_type": "loan", "id": "43", "creditScore": 500})
    joined = ledger.merge("loan/42", "loan/43").position
    by_group = ledger.bisect("loan/42", where=LOW, first=True)
    assert by_group.flip is not None
    assert by_group.flip.position == joined
    assert 'crm joined ["loan/42","loan/43"]' in by_group.sentence
    gone = ledger.retract(low.observations[0], reason="another").position
    withdrawn = ledger.bisect("loan/42", where=LOW, before=joined)
    assert withdrawn.flip is not None
    assert withdrawn.flip.position == gone
    assert f"crm retracted {low.observations[0]} of loan/43" in withdrawn.sentence
    ledger.split("loan/42")
    deleted = ledger.delete("loan/42").position
    found = ledger.bisect("loan/42", deleted=True)
    assert found.flip is not None
    change = found.flip.changes[0]
    assert (found.flip.position, change.was_deleted, change.is_deleted) == (deleted, False, True)
    born = ledger.bisect("loan/42", exists=True)
    assert born.flip is not None
    assert (born.flip.position, born.flip.changes[0].existed, born.flip.changes[0].exists) == (0, False, True)


def test_another_schema_may_flip_an_answer(ledger: woodrat.Ledger) -> None:
    """A policy that a schema brings changes the value without a word about the entity; the flip names the schema."""
    score(ledger, 710, 705)
    document = {"title": "loan", "properties": {"creditScore": {"type": "integer", "x-woodrat-merge": "max"}}}
    position = ledger.schemas.register(document).position
    for first in (False, True):
        found = ledger.bisect("loan/42", where="creditScore=710", before=1, first=first)
        assert found.flip is not None
        assert (found.flip.position, found.flip.schemas, found.flip.statements) == (position, {"loan": (0, 1)}, ())
        assert "schema loan went from version 0 to 1" in found.sentence


def test_a_type_that_begins_like_a_run_is_a_type(ledger: woodrat.Ledger) -> None:
    """`run_step/5` is an entity, not a run."""
    ledger.store({"entity_type": "run_step", "id": "5", "done": True})
    assert ledger.bisect("run_step/5", where="done=true")
    assert ledger.bisect(where="run_step/5#done=true")


def test_several_entities_are_asked_together(ledger: woodrat.Ledger) -> None:
    """Conditions that name their entities must hold together; the flip is the write that made the last of them true."""
    score(ledger, 580)
    score(ledger, 710, id="43")
    last = score(ledger, 590, id="43")
    score(ledger, 585)
    found = ledger.bisect(where=[f"loan/42#{LOW}", f"loan/43#{LOW}"])
    assert found.flip is not None
    assert found.flip.position == last
    assert found.question == "loan/42#creditScore lt 600 and loan/43#creditScore lt 600"


def test_a_recorded_decision_is_made_again_on_every_state(ledger: woodrat.Ledger) -> None:
    """Of a decision on record it is found when it would have begun to choose as it did, or another branch."""
    score(ledger, 710, 650, 580)
    with ledger.run("Approve #42?", subject="loan/42") as run:
        run.decide("risk", run.show("loan/42"), RULES, default="manual")
    later = score(ledger, 720)
    stage = f"{run.id}#risk"
    found = ledger.bisect(stage, after=2)
    assert found.flip is not None
    assert (found.flip.position, found.flip.chosen) == (2, ("manual", "rejected"))
    assert found.question == "risk chooses rejected"
    assert "so that rejected is chosen instead of manual" in found.sentence
    again = ledger.bisect(stage, chosen="approved", before=2)
    assert again.flip is not None
    assert (again.flip.position, again.flip.chosen) == (later, ("rejected", "approved"))
    given = ledger.bisect("loan/42", rules=RULES, default="manual", chosen="rejected", after=2)
    assert given.flip is not None
    assert given.flip.position == 2


def test_what_the_decision_did_not_read_stays_as_it_was(ledger: woodrat.Ledger) -> None:
    """Inputs and stated values are taken from the record; only what was read from state follows the state."""
    score(ledger, 580, 710)
    rules = [Rule("approved", {"creditScore": {"gte": 700}, "amount": {"lt": 100}})]
    with ledger.run("Approve #42?", subject="loan/42", inputs={"amount": 50}) as run:
        loan = run.show("loan/42")
        run.decide("risk", [loan.fact("creditScore"), run.input("amount")], rules, default="rejected")
    found = ledger.bisect(f"{run.id}#risk")
    assert found.flip is not None
    assert (found.flip.position, found.flip.chosen) == (1, ("rejected", "approved"))


def test_decisions_that_cannot_be_made_again_are_refused(ledger: woodrat.Ledger) -> None:
    """A predicate in code, a fact from a model, or nothing read at all: each says why, and what to do instead."""
    score(ledger, 580)
    with ledger.run("Approve #42?") as run:
        loan = run.show("loan/42")
        run.decide("code", loan, [Rule("rejected", lambda facts: facts["creditScore"] < 600)])
        run.decide("stated", {"amount": 5}, [Rule("small", {"amount": {"lt": 10}})])
    for stage, problem in (("code", "is a predicate in the agent's code"), ("stated", "read nothing from state")):
        with pytest.raises(woodrat.Refused, match=problem):
            ledger.bisect(f"{run.id}#{stage}")
    with pytest.raises(woodrat.NotFound, match="has no decision"):
        ledger.bisect(f"{run.id}#nothing")
    with pytest.raises(woodrat.Refused, match="is a whole run"):
        ledger.bisect(run.id)


def test_what_another_log_told_is_refused(ledger: woodrat.Ledger) -> None:
    """A decision on what another log held cannot be made again on the states of this one."""
    score(ledger, 580)
    with ledger.run("Approve #42?") as run:
        run.decide("risk", run.show("loan/42"), RULES)
    other = opened(InMemoryEngine(), seed="another")
    score(other, 710)
    with ledger.context.engine.view(ledger.tenant) as view:
        entries = [
            {"kind": entry.kind, **json.loads(entry.body or b"null")}
            for entry in entry_index.run_entries(view, str(run.id), view.head().position)
        ]
    other.runs.import_(entries)
    with pytest.raises(woodrat.Refused, match="was read from another log"):
        other.bisect(f"{run.id}#risk")


def test_a_function_of_the_ledger_is_asked(ledger: woodrat.Ledger) -> None:
    """A predicate that is code is given the ledger as of a moment; what is not there yet counts as no."""
    score(ledger, 710, 650)
    position = score(ledger, 580)

    def low(past: woodrat.Past) -> bool:
        fields: Any = past.show("loan/42").fields
        return bool(fields["creditScore"] < 600)

    for first in (False, True):
        found = ledger.bisect(low, first=first)
        assert found.flip is not None
        assert found.flip.position == position
        assert [said.fields["creditScore"] for said in found.flip.statements] == [580]
        assert "low: false became true at position 2" in found.sentence

    async def awaited(past: woodrat.Past) -> bool:
        return True

    with pytest.raises(woodrat.Refused, match="is asynchronous"):
        ledger.bisect(awaited)


def test_what_was_true_by_then_is_asked_on_the_other_clock(ledger: woodrat.Ledger) -> None:
    """`at(valid_at=…)` selects what was true by then, state by state."""
    score(ledger, 710, valid_from="2025-01-01T00:00:00Z", observed_at="2025-01-01T00:00:00Z")
    score(ledger, 580, valid_from="2025-06-01T00:00:00Z", observed_at="2025-02-01T00:00:00Z")
    assert ledger.bisect("loan/42", where=LOW)
    assert not ledger.at(valid_at="2025-03-01T00:00:00Z").bisect("loan/42", where=LOW)
    assert not ledger.at(0).bisect("loan/42", where=LOW)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"what": "loan/42"}, "it has no condition"),
    ({}, "it has no condition"),
    ({"what": "loan/42", "when": {}}, "there is no condition"),
    ({"what": "loan/42", "when": {"a": {"near": 1}}}, 'unknown operator "near"'),
    ({"what": "loan/42", "where": ["creditScore"]}, 'expected a condition, got "creditScore"'),
    ({"what": "loan/42", "where": ["a lt 1", "a lt 2"]}, "a lt is stated twice"),
    ({"what": "loan/42", "where": ["creditScore less_than 600"]}, "Did you mean lt?"),
    ({"what": "loan/42", "where": ["loan/42#creditScore <= 600"]}, 'unknown operator "<="; use lt'),
    ({"what": "loan/42", "rules": [{"chosen": 1, "when": {"a": {"above": 1}}}], "chosen": 1}, "Did you mean gt?"),
    ({"what": "loan/42", "where": 5}, "expected values by field"),
    ({"where": "creditScore lt 600"}, "the entity is missing"),
    ({"what": "loan/42", "exists": 1}, "got 1 (number)"),
    ({"what": "loan/42", "chosen": "x"}, "it needs a decision or rules"),
    ({"what": "loan/42", "rules": RULES}, "the branch is missing"),
    ({"what": "loan/42", "rules": [], "chosen": "x"}, "0 rules"),
    ({"what": "loan/42", "rules": [Rule("a", lambda f: True)], "chosen": "x"}, "is code"),
    ({"what": {"entities": []}}, "it has no condition"),
    ({"what": {"entities": []}, "where": "a=1"}, "cannot be combined with a whole predicate"),
    ({"what": "loan", "exists": True}, "nothing here is called"),
    ({"what": "loan/42", "exists": True, "first": 1}, "expected true or false"),
    ({"what": "loan/42", "exists": True, "before": 1, "after": 0}, "position 1 is later than position 0"),
    ({"what": "loan/42", "exists": True, "before": "someday"}, "someday"),
]


@pytest.mark.parametrize(("given", "problem"), BAD)
def test_bad_questions_are_refused(given: dict[str, Any], problem: str) -> None:
    """Each names what is wrong, and that nothing was read."""
    ledger = opened(InMemoryEngine())
    score(ledger, 710, 580)
    with pytest.raises(woodrat.Refused) as refused:
        ledger.bisect(**given)
    assert problem in str(refused.value)
    assert str(refused.value).endswith("Nothing was read.")


def test_what_nobody_spoke_of_is_not_found() -> None:
    """An entity that the log never heard of, and a position it does not have, are not found."""
    ledger = opened(InMemoryEngine())
    score(ledger, 710)
    with pytest.raises(woodrat.NotFound, match="loan/43, loan/44: not known up to"):
        ledger.bisect(where=["loan/42#a=1", "loan/43#a=1", "loan/44#a=1"])
    with pytest.raises(woodrat.NotFound, match="There is no position 9"):
        ledger.bisect("loan/42", exists=True, after=9)
    with pytest.raises(woodrat.Refused, match="later than the moment read at, -1"):
        ledger.at(-1).bisect("loan/42", exists=True, after=0)


def test_nothing_is_written(ledger: woodrat.Ledger) -> None:
    """Neither bisect nor reduce adds an entry or goes on with an index, whatever they are asked."""
    score(ledger, 710, 580)
    with ledger.run("Approve #42?", subject="loan/42") as run:
        run.decide("risk", run.show("loan/42"), RULES)
    with ledger.context.engine.view(ledger.tenant) as view:
        before = (
            view.head(),
            log_index.covered(view, "search"),
        )
    ledger.bisect(f"{run.id}#risk", first=True)
    ledger.reduce(f"{run.id}#risk")
    with ledger.context.engine.view(ledger.tenant) as view:
        assert (
            view.head(),
            log_index.covered(view, "search"),
        ) == before


# Against brute force

WRITES = st.lists(
    st.tuples(
        st.sampled_from(
            ["store", "store", "store", "both", "correct", "retract", "delete", "restore", "merge", "split"]
        ),
        st.sampled_from(["1", "2"]),
        st.sampled_from([500, 550, 700, 750]),
    ),
    min_size=1,
    max_size=14,
)


def tell(ledger: woodrat.Ledger, verb: str, id: str, value: int) -> None:
    """Do one thing; what is refused here, since it makes no sense now, is no write."""
    ref, other = f"loan/{id}", f"loan/{3 - int(id)}"
    record = {"entity_type": "loan", "id": id, "creditScore": value}
    try:
        if verb == "store":
            ledger.store(record)
        elif verb == "both":
            ledger.store([record, {**record, "id": str(3 - int(id)), "creditScore": 1_200 - value}])
        elif verb == "correct":
            ledger.correct(ref, {"creditScore": value}, reason="x")
        elif verb == "retract":
            ledger.retract(ledger.observations(ref).items[-1].observation.id, reason="x")
        elif verb in ("merge", "split"):
            getattr(ledger, verb)(ref, other)
        else:
            getattr(ledger, verb)(ref)
    except woodrat.WoodratError:
        pass


@settings(max_examples=60)
@given(WRITES, st.sampled_from(["low", "gone", "both"]))
def test_flips_are_those_that_brute_force_finds(writes: list[tuple[str, str, int]], question: str) -> None:
    """On any history: what halving finds is a flip, and what the walk finds is the first there is."""
    ledger = opened(InMemoryEngine())
    score(ledger, 700, id="1")
    score(ledger, 700, id="2")
    for write in writes:
        tell(ledger, *write)
    questions: dict[str, dict[str, Any]] = {
        "low": {"what": "loan/1", "where": LOW},
        "gone": {"what": "loan/1", "deleted": True},
        "both": {"where": [f"loan/1#{LOW}", f"loan/2#{LOW}"]},
    }
    asked = questions[question]
    ends = [-1]
    with ledger.context.engine.view(ledger.tenant) as view:
        while ends[-1] < view.head().position:
            ends.append(write_of(view, ends[-1] + 1)[1])

    def holds(position: int, ref: str) -> bool:
        try:
            snapshot = ledger.at(position).show(ref)
        except woodrat.NotFound:
            return False
        fields: Any = snapshot.fields
        return snapshot.deleted if question == "gone" else bool(fields.get("creditScore", 600) < 600)

    refs = ["loan/1", "loan/2"] if question == "both" else ["loan/1"]
    answers = {end: all(holds(end, ref) for ref in refs) for end in ends}
    flips = {after: before for before, after in pairwise(ends) if answers[before] is not answers[after]}
    found: Bisected = ledger.bisect(**asked)
    assert bool(found) is (answers[-1] is not answers[ends[-1]])
    if found.flip is not None:
        assert flips[found.flip.position] == found.flip.before
    first = ledger.bisect(**asked, first=True)
    assert (None if first.flip is None else first.flip.position) == min(flips, default=None)
    if first.flip is not None:
        assert flips[first.flip.position] == first.flip.before
        assert first.flip.statements or first.flip.schemas
