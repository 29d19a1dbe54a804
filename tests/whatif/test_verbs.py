"""What-if on a ledger: exact where rules are data, unknown where a model, a tool or code stood between."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import woodrat
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.runs.rules import Rule
from woodrat.testing.clock import FixedClock

MONDAY, TUESDAY = "2026-01-05T09:00:00Z", "2026-01-06T09:00:00Z"
RULES = [
    Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    Rule("approved", {"creditScore": {"gte": 620}}, label="Good credit"),
]


def opened(engine: Engine, tenant: str = "lending", agent: str = "loan-officer") -> woodrat.Ledger:
    """Return a ledger on an engine."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z")
    return woodrat.Ledger(engine, tenant=tenant, agent=agent, clock=clock, policies=registry(()))


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An empty engine."""
    made: Engine = InMemoryEngine()
    yield made
    made.close()


@pytest.fixture
def ledger(engine: Engine) -> woodrat.Ledger:
    """An empty ledger."""
    return opened(engine)


def store(ledger: woodrat.Ledger, number: int = 42, observed_at: str = MONDAY, **fields: Any) -> str:
    """Say something of a loan; return the observation."""
    report = ledger.store({"entity_type": "loan", "id": str(number), **fields}, observed_at=observed_at)
    return str(report.observations[0])


def decide(ledger: woodrat.Ledger, number: int = 42, rules: Any = RULES, stage: str = "risk", **given: Any) -> str:
    """Decide on a loan in a run of its own; return the run."""
    on_missing = given.pop("on_missing", "raise")
    with ledger.run(f"Approve #{number}?", subject=f"loan/{number}", **given) as run:
        run.decide(stage, run.show(f"loan/{number}"), rules, default="manual-review", on_missing=on_missing)
    return str(run.id)


def only(found: Any) -> Any:
    """Return the one decision of an answer."""
    (one,) = found.decisions
    return one


# What can be supposed


def test_without_an_observation_the_one_before_it_holds(ledger: woodrat.Ledger) -> None:
    """The state is folded again over what remains, and both observations are named."""
    first = store(ledger, creditScore=640)
    last = store(ledger, observed_at=TUESDAY, creditScore=580)
    run = decide(ledger)
    found = only(ledger.what_if(run, without=last))
    assert (found.decision.chosen, found.now.chosen, found.outcome) == ("rejected", "approved", "flip")
    assert (found.sentence, found.now.reason) == ("would flip to approved", "rule Good credit matches")
    (change,) = found.changes
    assert (change.key, change.entity, change.before, change.now) == ("creditScore", "loan/42", 580, 640)
    assert (change.observations, change.observations_now) == ((last,), (first,))
    assert only(ledger.what_if(run, without=[first])).outcome == "same"
    gone = only(ledger.what_if(run, without=[first, last]))
    assert (gone.outcome, gone.now.chosen, gone.changes[0].missing) == ("unknown", None, True)
    assert gone.sentence == "unknown: rule Marginal credit cannot be decided: there is no fact creditScore"


def test_without_a_correction_or_a_retraction_what_they_undid_holds(ledger: woodrat.Ledger) -> None:
    """Corrections and retractions can be taken away like any observation."""
    said = store(ledger, creditScore=580)
    store(ledger, observed_at=TUESDAY, colour="red")
    corrected = ledger.correct("loan/42", {"creditScore": 700}).observations[0]
    run = decide(ledger)
    assert only(ledger.what_if(run, without=corrected)).now.chosen == "rejected"
    withdrawn = ledger.retract([said, corrected]).observations
    later = decide(ledger, on_missing="skip")
    assert ledger.runs.show(later).decisions[0].chosen == "manual-review"
    assert only(ledger.what_if(later, without=withdrawn)).now.chosen == "approved"


def test_without_a_union_its_members_part(ledger: woodrat.Ledger) -> None:
    """Taking away the statement that two are one takes away what was believed of the other."""
    store(ledger, 42, colour="red")
    store(ledger, 43, creditScore=700)
    joined = ledger.merge("loan/42", "loan/43").observations
    run = decide(ledger)
    assert ledger.runs.show(run).decisions[0].chosen == "approved"
    found = only(ledger.what_if(run, without=joined))
    assert found.now.reason == "rule Marginal credit cannot be decided: there is no fact creditScore"


def test_without_a_source_a_reading_or_an_agent(ledger: woodrat.Ledger) -> None:
    """All that was said from it or by it is taken away; only what was known at the time of the read counts."""
    store(ledger.as_agent("crm"), creditScore=640)
    source = ledger.sources.add(b"score: 580", name="bureau.txt")
    with ledger.as_agent("reader").interpretations.start(source, model="reader-1") as reading:
        reading.store([{"entity_type": "loan", "id": "42", "creditScore": 580}], observed_at=TUESDAY)
    run = decide(ledger)
    store(ledger, observed_at="2026-01-08T09:00:00Z", creditScore=710)
    for without in (source, reading.id):
        assert only(ledger.what_if(run, without=without)).now.chosen == "approved"
    assert only(ledger.what_if(run, without_agents="reader")).changes[0].now == 640
    assert only(ledger.what_if(run, without_agents=["crm"])).outcome == "same"


def test_another_value_of_a_field_or_a_fact(ledger: woodrat.Ledger) -> None:
    """A field is another for everybody who read it; a fact is another whatever it came from."""
    store(ledger, creditScore=580)
    run = decide(ledger)
    for name in ("loan/42#creditScore", "creditScore", f"{woodrat_id(ledger)}#creditScore"):
        found = only(ledger.what_if(run, set={name: 650}))
        assert (found.outcome, found.now.chosen) == ("flip", "approved")
        assert (found.changes[0].before, found.changes[0].now) == (580, 650)
        assert only(ledger.what_if(run, set={name: 580})).outcome == "same"


def woodrat_id(ledger: woodrat.Ledger) -> str:
    """Return the id of loan 42."""
    return str(ledger.show("loan/42").entity.id)


def test_other_rules_and_thresholds(ledger: woodrat.Ledger) -> None:
    """Rules are replaced by stage; a threshold is another operand in the rules on record."""
    store(ledger, creditScore=610)
    run = decide(ledger)
    stricter = [{"chosen": "rejected", "when": {"creditScore": {"lt": 650}}}]
    assert only(ledger.what_if(run, rules={"risk": stricter})).now.chosen == "rejected"
    assert only(ledger.what_if(run, rules={"risk": [Rule("x", {"none": {"exists": False}})]})).now.chosen == "x"
    assert only(ledger.what_if(run, thresholds={"risk.creditScore.lt": 620})).now.chosen == "rejected"
    assert only(ledger.what_if(run, thresholds={"risk.creditScore.gte": 605})).now.chosen == "approved"
    assert only(ledger.what_if(run, thresholds={"risk.creditScore.gte": 700})).outcome == "same"


def test_rules_on_what_is_not_on_record_are_unknown(ledger: woodrat.Ledger) -> None:
    """Of a snapshot only what was looked at is on record; a field the entity never had is known to be missing."""
    store(ledger, creditScore=610, income=5)
    run = decide(ledger)
    found = only(ledger.what_if(run, rules={"risk": [Rule("rich", {"income": {"gt": 1}})]}))
    assert found.now.reason == "income is not on record among the facts of the decision; set it too"
    rules = {"risk": [Rule("rich", {"income": {"gt": 1}})]}
    assert only(ledger.what_if(run, rules=rules, set={"income": 9})).now.chosen == "rich"


def test_a_fact_that_was_missing_may_have_come_of_what_changes(ledger: woodrat.Ledger) -> None:
    """Where nothing says where a missing value was looked for, one after a changed read is unknown."""
    store(ledger, colour="red")
    with ledger.run("Approve?") as run:
        run.show("loan/42")
        run.decide("risk", {"n": 1}, RULES, default="manual-review", on_missing="skip")
    found = only(ledger.what_if(run.id, set={"loan/42#creditScore": 700}))
    assert found.now.reason.startswith("creditScore was not given by the agent after it read loan/42")
    other = only(ledger.what_if(run.id, rules={"risk": [Rule("x", {"income": 1})]}, set={"loan/42#income": 1}))
    assert other.now.reason.startswith("income was not given by the agent after it read loan/42")
    assert only(ledger.what_if(run.id, set={"creditScore": 700})).now.chosen == "approved"
    assert only(ledger.what_if(run.id, set={"loan/43#creditScore": 700})).outcome == "same"


def test_a_missing_fact_says_where_it_was_looked_for(ledger: woodrat.Ledger) -> None:
    """A fact that a read did not find has the read as its origin, so what it would have found is known."""
    store(ledger, colour="red")
    with ledger.run("Approve?") as run:
        loan = run.show("loan/42")
        facts = {"creditScore": loan.fact("creditScore"), "n": 1}
        verdict = run.decide("risk", facts, RULES, default="manual-review", on_missing="skip")
    assert {condition.origin["field"] for condition in verdict.conditions} == {"creditScore"}
    assert only(ledger.what_if(run.id, set={"loan/42#creditScore": 700})).now.chosen == "approved"
    assert only(ledger.what_if(run.id, set={"loan/42#colour": "blue"})).outcome == "same"


# What stands between


def test_a_model_between_makes_it_unknown(ledger: woodrat.Ledger) -> None:
    """A fact that a model gave after the changed read is unknown; one that it gave before stays as recorded."""
    said = store(ledger, creditScore=580)
    rules = [Rule("rejected", {"mood": {"eq": "bad"}}), Rule("approved", {"creditScore": {"gte": 500}})]
    for first in (True, False):
        with ledger.run("Approve?") as run:
            before = run.model("small-1", response={"mood": "good"}) if first else None
            loan = run.show("loan/42")
            model = before or run.model("small-1", response={"mood": "good"})
            run.decide("risk", {"mood": model.fact("/mood"), "creditScore": loan.fact("creditScore")}, rules)
        asked: list[dict[str, Any]] = [{"without": said}, {"set": {"creditScore": 550}}]
        for supposed in (*asked, {"set": {"loan/42#creditScore": 550}}):
            found = only(ledger.what_if(run.id, **supposed))
            if first and "without" in supposed:
                assert found.now.reason == "rule approved cannot be decided: there is no fact creditScore"
            elif first:
                assert found.outcome != "unknown"
            else:
                assert found.outcome == "unknown"
                assert found.now.reason.startswith("needs model small-1: it gave mood after ")
        (kept,) = ledger.what_if(run.id, set={"mood": "good", "creditScore": 550}).decisions
        assert (kept.outcome, kept.now.chosen) == ("same", "approved")


def test_a_tool_between_makes_it_unknown_also_when_the_read_was_inside(ledger: woodrat.Ledger) -> None:
    """What a tool returned rests on what was read before it and on what was read inside it."""
    said = store(ledger, creditScore=580)
    with ledger.run("Approve?") as run:
        with run.tool("score") as call:
            call.result = {"points": len(str(run.show("loan/42").fields["creditScore"]))}
        run.decide("risk", {"points": call.fact("/points")}, [Rule("rejected", {"points": {"lt": 60}})])
    found = only(ledger.what_if(run.id, without=said))
    assert found.sentence.startswith("unknown: needs tool score: it gave points after it read loan/42")


def test_what_the_agent_stated_after_a_changed_read_is_unknown_unless_it_is_set(ledger: woodrat.Ledger) -> None:
    """The agent may have worked it out from what it read; a fact beside one that is set stays as it was."""
    said = store(ledger, creditScore=580)
    rules = [Rule("rejected", {"ratio": {"lt": 1}}), Rule("approved", {"creditScore": {"gte": 620}})]
    with ledger.run("Approve?") as run:
        loan = run.show("loan/42")
        run.decide("risk", {"ratio": 580 / 600, "creditScore": loan.fact("creditScore")}, rules)
    found = only(ledger.what_if(run.id, without=said))
    assert found.now.reason.startswith("ratio was stated by the agent after it read loan/42")
    assert only(ledger.what_if(run.id, without=said, set={"ratio": 2})).now.chosen is None
    assert only(ledger.what_if(run.id, set={"creditScore": 700})).outcome == "same"
    assert only(ledger.what_if(run.id, set={"creditScore": 700, "ratio": 2})).now.chosen == "approved"


def test_a_predicate_needs_the_code(ledger: woodrat.Ledger) -> None:
    """A rule in code that looked at what changes is unknown; one that looked at something else answers as it did."""
    store(ledger, creditScore=580, age=30)
    run = decide(ledger, rules=[Rule("old", lambda facts: facts["age"] > 60), *RULES])
    assert only(ledger.what_if(run, set={"creditScore": 650})).now.chosen == "approved"
    found = only(ledger.what_if(run, set={"age": 70}))
    assert found.outcome == "unknown"
    assert "is a predicate in the agent's code, which `runs.replay` runs" in found.now.reason


def test_inputs_and_untouched_tools_stay_as_recorded(ledger: woodrat.Ledger) -> None:
    """What nothing supposed comes before is taken as it was."""
    said = store(ledger, creditScore=580)
    rules = [Rule("rejected", {"amount": {"gt": 10}, "hits": {"eq": 1}, "creditScore": {"lt": 600}})]
    with ledger.run("Approve?", inputs={"amount": 20}) as run:
        hits = run.tool("bureau", lambda: {"hits": 1}).fact("/hits")
        loan = run.show("loan/42")
        facts = {"amount": run.input("amount"), "hits": hits, "creditScore": loan.fact("creditScore")}
        run.decide("risk", facts, rules, default="approved")
    assert (
        only(ledger.what_if(run.id, without=said)).now.reason
        == "rule rejected cannot be decided: there is no fact creditScore"
    )
    assert only(ledger.what_if(run.id, without=said, set={"hits": 2})).now.chosen == "approved"
    assert only(ledger.what_if(run.id, set={"amount": 5})).now.chosen == "approved"
    assert only(ledger.what_if(run.id, set={"amount": 25})).outcome == "unknown", "the tool came after the input"


# Chains of runs


def chain(ledger: woodrat.Ledger, length: int) -> list[str]:
    """Return runs, each of which decides on what the one before it wrote."""
    runs = []
    for number in range(length):
        with ledger.run("Pass on?") as run:
            verdict = run.decide("pass", run.show(f"step/{number}"), [Rule(1, {"level": {"gte": 1}})], default=0)
            run.store({"entity_type": "step", "id": str(number + 1), "level": verdict.chosen})
        runs.append(str(run.id))
    return runs


def test_what_another_run_wrote_after_a_change_is_unknown(ledger: woodrat.Ledger) -> None:
    """A run whose evidence changes might have written something else; what rests on that is not guessed."""
    ledger.store({"entity_type": "step", "id": "0", "level": 5})
    first, second, third = chain(ledger, 3)
    answer = ledger.what_if([first, second, third], set={"step/0#level": 0})
    outcomes = [found.outcome for found in answer.decisions]
    assert outcomes == ["flip", "unknown", "unknown"]
    assert answer.decisions[1].now.reason.startswith(f"{first} wrote obs_")
    assert " after it read step/0, which would have been otherwise" in answer.decisions[1].now.reason
    by_rule = ledger.what_if([second], thresholds={"pass.level.gte": 9})
    assert only(by_rule).now.reason.endswith("after it decided pass, which might have come out otherwise")
    assert (answer.flip, answer.same, answer.unknown) == (1, 0, 2)


def test_a_long_chain_of_runs_is_followed_to_its_end() -> None:
    """How many runs lie behind each other is no limit, that of Python's stack included."""
    ledger = opened(InMemoryEngine())
    ledger.store({"entity_type": "step", "id": "0", "level": 5})
    runs = chain(ledger, 300)
    assert only(ledger.what_if(runs[-1], set={"step/0#level": 0})).outcome == "unknown"
    assert only(ledger.what_if(runs[-1], set={"step/300#level": 0})).outcome == "same"


def test_a_run_that_reads_what_it_wrote_itself(ledger: woodrat.Ledger) -> None:
    """What a run wrote before anything changed for it stands; what it wrote after is unknown."""
    said = store(ledger, creditScore=580)
    with ledger.run("Approve?") as run:
        run.store({"entity_type": "memo", "id": "1", "n": 1})
        run.decide("early", run.show("memo/1"), [Rule("one", {"n": 1})])
        run.show("loan/42")
        run.store({"entity_type": "memo", "id": "2", "n": 2})
        run.decide("late", run.show("memo/2"), [Rule("two", {"n": 2})])
    answer = ledger.what_if(run.id, without=said)
    assert [found.outcome for found in answer.decisions] == ["same", "unknown"]


# Many decisions


def test_all_decisions_are_counted_and_some_are_listed(ledger: woodrat.Ledger) -> None:
    """Those that stay the same are left out unless runs are named or they are asked for; a cursor leads on."""
    for number, score in enumerate([580, 590, 610, 640, 650]):
        store(ledger, number, creditScore=score)
        decide(ledger, number, stage="risk" if number else "other")
    answer = ledger.what_if(thresholds={"risk.creditScore.lt": 645}, limit=2)
    assert (answer.flip, answer.same, answer.unknown) == (2, 3, 0)
    assert [found.subject for found in answer.decisions] == ["loan/2", "loan/3"]
    assert answer.cursor is None
    assert answer.sentence == "5 decisions: 2 would flip, 3 would stay the same, 0 unknown."
    one = ledger.what_if(set={"creditScore": 100}, stage="risk", limit=1)
    assert (one.flip, one.same) == (3, 1)
    seen = [only(one).subject]
    while one.cursor is not None:
        one = ledger.what_if(set={"creditScore": 100}, stage="risk", limit=1, cursor=one.cursor)
        seen.append(only(one).subject)
    assert seen == ["loan/2", "loan/3", "loan/4"]
    with pytest.raises(woodrat.Refused, match="is not a cursor of this question"):
        ledger.what_if(set={"creditScore": 101}, stage="risk", cursor=answer.cursor or "aa")
    assert len(ledger.what_if(set={"creditScore": 100}, same=True).decisions) == 5


def test_decisions_are_found_by_stage_agent_type_and_time(ledger: woodrat.Ledger) -> None:
    """Each filter narrows what is asked about."""
    store(ledger, creditScore=580)
    decide(ledger)
    decide(ledger.as_agent("other"), stage="second")
    store(ledger.as_agent("x"), 7, creditScore=580)

    def count(**given: Any) -> int:
        return ledger.what_if(set={"creditScore": 700}, **given).flip

    assert count() == 2
    assert count(stage="second") == count(agent="other") == 1
    assert count(agent="nobody") == count(subject_type="car") == 0
    assert count(subject_type="loan") == count(since=MONDAY) == 2
    assert count(until=MONDAY) == count(since="2027-01-01T00:00:00Z") == 0
    assert ledger.what_if(set={"creditScore": 700}, stage="none").notes == ("There is no decision to ask about.",)


def test_a_sweep_is_a_table_and_ranges(ledger: woodrat.Ledger) -> None:
    """For every decision which branch is chosen in which range, and for every value how many choose what."""
    for number, score in enumerate([580, 610]):
        store(ledger, number, creditScore=score)
        decide(ledger, number)
    with ledger.run("Paint?") as run:
        run.decide("colour", {"hue": 1}, [Rule("red", {"hue": 1})])
    answer = ledger.what_if(sweep="creditScore=598..621")
    ranges = [(part.first, part.last, part.now.chosen) for part in answer.decisions[0].ranges]
    assert ranges == [(598, 599, "rejected"), (600, 619, "manual-review"), (620, 621, "approved")]
    rows = {
        row.value: ({one.chosen: one.decisions for one in row.choices}, row.same, row.flip, row.unknown)
        for row in answer.rows
    }
    assert list(rows) == list(range(598, 622))
    assert rows[599] == ({"rejected": 2}, 1, 1, 0)
    assert rows[600] == ({"manual-review": 2}, 1, 1, 0)
    assert rows[620] == ({"approved": 2}, 0, 2, 0)
    assert (answer.flip, answer.unaffected) == (2, 1)
    text = only(ledger.what_if(sweep={"loan/0#creditScore": [1, "many"]})).ranges[1].now
    assert text.reason.endswith("creditScore cannot be compared: text and a number have no order")
    assert only(ledger.what_if(sweep="loan/0#creditScore=570..599", same=True)).outcome == "same"


def test_a_sweep_over_a_model_is_unknown_but_where_nothing_changes(ledger: woodrat.Ledger) -> None:
    """At the value on record everything is as it was; at the others the model might have answered otherwise."""
    store(ledger, creditScore=580)
    with ledger.run("Approve?") as run:
        loan = run.show("loan/42")
        mood = run.model("small-1", response={"mood": "good"}).fact("/mood")
        run.decide("risk", {"mood": mood, "creditScore": loan.fact("creditScore")}, [Rule("yes", {"mood": "good"})])
    with ledger.run("Approve?") as other:
        rules = [Rule("no", {"creditScore": {"lt": 582}}), Rule("yes", {"mood": "good"})]
        loan = other.show("loan/42")
        mood = other.model("small-1", response={"mood": "good"}).fact("/mood")
        other.decide("risk", {"mood": mood, "creditScore": loan.fact("creditScore")}, rules)
    answer = ledger.what_if(sweep="creditScore=579..583")
    first, second = answer.decisions
    assert (first.run, first.outcome, answer.notes) == (run.id, "unknown", ())
    assert [(part.first, part.last, part.now.outcome) for part in first.ranges] == [
        (579, 579, "unknown"),
        (580, 580, "same"),
        (581, 583, "unknown"),
    ]
    assert [(part.first, part.last, part.now.outcome) for part in second.ranges] == [
        (579, 581, "same"),
        (582, 583, "unknown"),
    ]
    assert [row.unknown for row in answer.rows] == [1, 0, 1, 2, 2]


# What stays as it is


class Watched(Engine):
    """An engine that fails when anything is written."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.name, self.location = engine.name, engine.location

    @contextmanager
    def view(self, tenant: TenantId, asks: Any = None) -> Iterator[Any]:
        """Open a view."""
        with self._engine.view(tenant) as view:
            yield view

    def transaction(self, tenant: TenantId, asks: Any = None) -> Any:
        """Fail."""
        raise AssertionError("what-if writes nothing")

    def purge(self) -> bool:
        """Fail."""
        raise AssertionError("what-if writes nothing")

    def purged(self) -> bool:
        """Nothing is left to do."""
        return True

    def storage(self, tenant: TenantId) -> Any:
        """Be searched by nobody."""
        raise AssertionError("nothing is erased here")

    def together(self, tenants: Iterable[TenantId] = ()) -> Any:
        """Fail."""
        raise AssertionError("what-if writes nothing")

    def tenants(self) -> list[str]:
        """Name tenants."""
        return self._engine.tenants()

    def close(self) -> None:
        """Close nothing."""


def test_nothing_is_written(engine: Engine, ledger: woodrat.Ledger) -> None:
    """Not an entry, and no index either: the engine is never asked for a transaction."""
    said = store(ledger, creditScore=580)
    run = decide(ledger)
    before = ledger.position
    watched = opened(Watched(engine))
    asked: list[dict[str, Any]] = [{"without": said}, {"without_agents": "loan-officer"}, {"sweep": "creditScore=1..9"}]
    for supposed in asked:
        assert watched.what_if(run, **supposed).decisions
        assert watched.what_if(**supposed, same=True).decisions
    assert ledger.position == before


def test_the_past_is_asked_as_it_was(ledger: woodrat.Ledger) -> None:
    """At a moment only the decisions made by then count, and runs that began later are not found."""
    store(ledger, creditScore=580)
    decide(ledger)
    then = ledger.position
    later = decide(ledger)
    assert ledger.at(then).what_if(set={"creditScore": 700}).flip == 1
    with pytest.raises(woodrat.NotFound):
        ledger.at(then).what_if(later, set={"creditScore": 700})


def test_hidden_values_stay_hidden(ledger: woodrat.Ledger) -> None:
    """What a run hid is not told, and what would have to be compared with it is unknown."""
    store(ledger, creditScore=640)
    last = store(ledger, observed_at=TUESDAY, creditScore=580)
    run = decide(ledger, redact=["creditScore"])
    found = only(ledger.what_if(run, without=last))
    assert found.outcome == "unknown"
    assert "640" not in str(found.to_json())


def test_answers_have_one_canonical_form(ledger: woodrat.Ledger) -> None:
    """The JSON of an answer is the same every time it is asked for."""
    store(ledger, creditScore=580)
    run = decide(ledger)
    asked: list[dict[str, Any]] = [{"set": {"creditScore": 700}}, {"sweep": "creditScore=500..700:50"}]
    for supposed in asked:
        found = ledger.what_if(run, **supposed).to_json()
        assert found == ledger.what_if(run, **supposed).to_json()
        decision = found["decisions"][0]
        assert (decision["run"], decision["decision"]["chosen"]) == (run, "rejected")
        assert decision.keys().isdisjoint({"stage", "chosen", "rule"})
    assert found["rows"][0] == {
        "value": 500,
        "choices": [{"chosen": "rejected", "decisions": 1}],
        "same": 1,
        "flip": 0,
        "unknown": 0,
    }


# Bad input


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({}, "nothing is changed"),
        ({"set": {"loan/42#": 1}}, "names no field"),
        ({"set": {"nothing#x": 1}}, "set"),
        ({"set": [1]}, "expected values by name"),
        ({"set": {"a": float("nan")}}, "set a"),
        ({"without": "run_x"}, "is none of these"),
        ({"without": 7}, "expected a list of texts"),
        ({"without": [7]}, "expected text, got 7"),
        ({"without_agents": ""}, "without_agents"),
        ({"rules": {"risk": [Rule("x", lambda facts: True)]}}, "rules risk"),
        ({"rules": {"risk": [{"chosen": 1}]}}, "/when: missing"),
        ({"rules": [1]}, "lists of rules by stage"),
        ({"thresholds": {"lt": 1}}, "is not a threshold"),
        ({"thresholds": {"risk.creditScore.below": 1}}, 'unknown operator "below"; use lt'),
        ({"thresholds": {"risk.creditScore.lt": True}}, "lt got true (boolean)"),
        ({"thresholds": {"risk.creditScore.in": 5}}, "in got 5 (number)"),
        ({"thresholds": {"risk.name.matches": "("}}, "a group is not closed"),
        ({"rules": {"risk": [{"chosen": 1, "when": {"a": {"less_than": 1}}}]}}, "Did you mean lt?"),
        ({"thresholds": {"risk.income.lt": 1}}, "has such a condition"),
        ({"thresholds": {"other.creditScore.lt": 1}}, "has such a condition"),
        ({"sweep": "creditScore"}, "names no values"),
        ({"sweep": "creditScore=9..1"}, "9..1 contains no value"),
        ({"sweep": "creditScore=1..x"}, "is not a range of numbers"),
        ({"sweep": "creditScore=1..9:0"}, "is not a step"),
        ({"sweep": "creditScore=1..9:-1"}, "is not a step"),
        ({"sweep": "creditScore="}, "there is no value to try"),
        ({"sweep": "creditScore=0..10000"}, "10001 values"),
        ({"sweep": "creditScore=0..999999999999999:0.000000000000001"}, "at most 10000"),
        ({"sweep": {"a": range(20_000)}}, "more than 10000 values"),
        ({"sweep": {"a": [1], "b": [2]}}, "expected one name"),
        ({"sweep": "creditScore=1..9", "set": {"creditScore": 1}}, "is set as well"),
        ({"sweep": "loan/42#creditScore=1..9", "set": {"loan/42#creditScore": 1}}, "is set as well"),
        ({"set": {"a": 1}, "limit": 0}, "limit"),
        ({"set": {"a": 1}, "since": "monday"}, "since"),
        ({"set": {"a": 1}, "stage": 7}, "stage"),
        ({"set": {"a": 1}, "same": "yes"}, "same"),
        ({"set": {"a": 1}, "run": []}, "expected runs"),
    ],
)
def test_bad_input_is_refused(given: dict[str, Any], words: str) -> None:
    """The refusal names what is wrong, and nothing was read."""
    ledger = opened(InMemoryEngine())
    store(ledger, creditScore=580)
    run = given.pop("run", decide(ledger))
    with pytest.raises(woodrat.Refused) as refused:
        ledger.what_if(run, **given)
    assert words in str(refused.value)
    assert str(refused.value).endswith("Nothing was read.")


def test_all_faults_are_told_at_once() -> None:
    """Each part of a question that is at fault is named."""
    with pytest.raises(woodrat.Refused) as refused:
        opened(InMemoryEngine()).what_if(7, set={"#": 1}, without="x", sweep="a=2..1", limit=-1)  # type: ignore[arg-type]
    assert {fault.path for fault in refused.value.faults} == {"set", "without", "sweep", "run", "limit"}


def test_a_value_that_does_not_fit_its_schema_is_refused() -> None:
    """A correction could not state it, so it is not supposed either."""
    ledger = opened(InMemoryEngine())
    ledger.schemas.register({"type": "object", "properties": {"score": {"type": "integer"}}}, entity_type="exam")
    ledger.store({"entity_type": "exam", "id": "1", "score": 5})
    with ledger.run("Pass?") as run:
        run.decide("pass", run.show("exam/1"), [Rule("yes", {"score": {"gte": 5}})])
    with pytest.raises(woodrat.Refused, match="exam/1#score"):
        ledger.what_if(run.id, set={"exam/1#score": "five"})


def test_what_is_not_there_is_not_found(engine: Engine, ledger: woodrat.Ledger) -> None:
    """Unknown runs, stages, observations, sources, readings and agents, and those of another tenant."""
    said = store(ledger, creditScore=580)
    run = decide(ledger)
    asked: list[dict[str, Any]] = [
        {"run": "run_none", "set": {"a": 1}},
        {"run": [run, "run_none"], "set": {"a": 1}},
        {"run": f"{run}#none", "set": {"a": 1}},
        {"run": run, "without": "obs_none"},
        {"run": run, "without": "src_none"},
        {"run": run, "without": "int_none"},
        {"run": run, "without_agents": "nobody"},
    ]
    for given in asked:
        with pytest.raises(woodrat.NotFound, match="Nothing was changed"):
            ledger.what_if(**given)
    other = opened(engine, tenant="other")
    for given in (asked[2], {"run": run, "set": {"a": 1}}, {"without": said}):
        with pytest.raises(woodrat.NotFound):
            other.what_if(**given)
    assert other.what_if(set={"creditScore": 1}).notes == ("There is no decision to ask about.",)


def test_what_nobody_looked_at_is_said(ledger: woodrat.Ledger) -> None:
    """Supposing something of a field or a fact that no decision looked at changes nothing, and the answer says so."""
    store(ledger, creditScore=580, colour="red")
    run = decide(ledger)
    answer = ledger.what_if(run, set={"colour": "blue", "loan/42#colour": "blue", "loan/9#x": 1}, rules={"none": []})
    assert answer.same == 1
    assert set(answer.notes) == {
        "No decision looked at colour.",
        "No decision looked at loan/42#colour.",
        "No decision looked at loan/9#x.",
        "No decision has stage none.",
    }
    assert ledger.what_if(run, sweep="hue=1..3").notes == ("No decision looked at hue.",)
