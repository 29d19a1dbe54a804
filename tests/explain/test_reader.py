"""Lineage, impact and stale on a ledger: what was recorded is followed, at every moment."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.runs.story import loan, write

import woodrat
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.runs.rules import Rule
from woodrat.testing.clock import FixedClock

MONDAY = "2026-01-05T09:00:00Z"
FRIDAY = "2026-01-09T09:00:00Z"
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


def store(ledger: woodrat.Ledger, number: int = 42, **fields: Any) -> str:
    """Say something of a loan; return the observation."""
    report = ledger.store({"entity_type": "loan", "id": str(number), **fields}, observed_at=MONDAY)
    return str(report.observations[0])


def decide(ledger: woodrat.Ledger, number: int = 42, rules: Any = RULES, **how: Any) -> str:
    """Decide on a loan in a run of its own; return the run."""
    with ledger.run(f"Approve #{number}?", subject=f"loan/{number}") as run:
        verdict = run.decide("classify-risk", run.show(f"loan/{number}"), rules, default="manual-review", **how)
        run.answer(f"#{number}: {verdict.chosen}")
    return str(run.id)


# Lineage


def test_an_answer_leads_to_a_source(ledger: woodrat.Ledger) -> None:
    """From answer to decision, evidence, read, field, observation, interpretation and source, all from the record."""
    source = ledger.sources.add(b"score: 580", name="bureau.txt")
    with ledger.interpretations.start(source, model="reader-1") as reading:
        reading.store([{"entity_type": "loan", "id": "42", "creditScore": 580}])
    run = decide(ledger)
    for what in (run, f"{run}#classify-risk"):
        node, way = ledger.lineage(what).trees[0], []
        while True:
            way.append(node.kind)
            if not node.nodes:
                break
            (node,) = node.nodes
        whole = ["answer", "decision", "evidence", "read", "field", "observation", "interpretation", "source"]
        assert way == (whole if what == run else whole[1:])
        assert node.id == source
        assert node.details["deliveries"][0]["name"] == "bureau.txt"
    field = ledger.lineage("loan/42#creditScore")
    assert field.details["value"] == 580
    assert [found.id for found in field.find("source")] == [source]
    observation = field.nodes[0]
    assert ledger.lineage(observation.id).trees == (observation,)


def test_a_value_said_by_a_run_leads_through_it(ledger: woodrat.Ledger) -> None:
    """What a run wrote leads to what it had decided and read by then, and a run that read itself ends the walk."""
    score = store(ledger, creditScore=580)
    with ledger.run("Approve?", subject="loan/42") as run:
        run.decide("classify-risk", run.show("loan/42"), RULES)
        run.store({"entity_type": "loan", "id": "42", "status": "rejected"})
        run.decide("again", run.show("loan/42"), [Rule("stop", {"status": "rejected"})])
    tree = ledger.lineage("loan/42#status")
    assert [node.id for node in tree.find("run")] == [run.id]
    assert [node.details["stage"] for node in tree.find("decision")] == ["classify-risk"]
    assert score in [node.id for node in tree.find("observation")]
    assert [node.kind for node in ledger.lineage(run.id).walk()].count("run") == 1


def test_a_long_chain_of_runs_is_told_once(ledger: woodrat.Ledger) -> None:
    """Runs that each read all fields of the one before are all followed; the answer grows with their number alone."""
    fields = ("a", "b", "c", "d")
    store(ledger, **dict.fromkeys(fields, 0))
    for number in range(1, 25):
        with ledger.run("Count on") as run:
            run.show("loan/42")
            run.store({"entity_type": "loan", "id": "42", **dict.fromkeys(fields, number)})
    tree = ledger.lineage("loan/42#a")
    assert [len(tree.find("run")), tree.run_count, tree.left_out, tree.cursor] == [24, 24, 0, None]
    assert [run.details["distance"] for run in tree.runs] == list(range(1, 25))
    assert len(list(tree.walk())) < 14 * 24
    assert any(node.details.get("again") for node in tree.walk())


def test_a_field_of_a_sum_and_of_a_set_leads_to_all_that_make_it_up(ledger: woodrat.Ledger) -> None:
    """Where several observations make up a value, all of them are behind it, and each has it as its impact."""
    properties = {
        "name": {"type": "string"},
        "total": {"type": "number", "x-woodrat-merge": "sum"},
        "tags": {"type": "array", "x-woodrat-merge": "union"},
    }
    kind = {"title": "till", "type": "object", "properties": properties, "x-woodrat-identity": [["name"]]}
    ledger.schemas.register(kind)
    said = [
        str(ledger.store({"entity_type": "till", "name": "a", "total": n, "tags": [str(n)]}).observations[0])
        for n in (1, 2)
    ]
    for field in ("total", "tags"):
        assert sorted(node.id for node in ledger.lineage(f"till/a#{field}").nodes) == sorted(said)
    with ledger.run("Count") as run:
        run.show("till/a")
    for id in said:
        found = ledger.impact(id)
        assert {"total", "tags"} <= {won.field for won in found.fields} | {"name"}
        assert [leaned.run for leaned in found.runs] == [run.id]
        assert "tags" in found.runs[0].reads[0].fields


# Impact


def test_impact_lists_exactly_the_runs_that_read_it(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Among hundreds of other runs those that read the observation are found without looking at the others."""
    bad = store(ledger, creditScore=580)
    mine = decide(ledger)
    for number in range(100, 400):
        id = f"run_{number:x>26}"
        for kind, said in loan(id, number, 710, "obs_" + f"{number:a>26}")[:2]:
            write(ledger, [(kind, said)])
    second = decide(ledger)
    ledger.impact(bad)  # the index has caught up
    read = counted(ledger.context.engine, monkeypatch)
    found = ledger.impact(bad)
    assert [leaned.run for leaned in found.runs] == [mine, second]
    assert [won.field for won in found.fields] == ["creditScore", "id"]
    leaned = found.runs[0]
    assert [(made.decision.stage, made.facts) for made in leaned.decisions] == [("classify-risk", ("creditScore",))]
    assert [seen.fields for seen in leaned.reads] == [("creditScore", "id")]
    assert leaned.answer == "#42: rejected"
    assert read() < 40, "a question reads what it finds, and no more"


def counted(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Count the entries that views of an engine hand out."""
    count = 0
    with engine.view(TenantId("lending")) as view:
        kind: Any = type(view)
    entry, entries = kind.entry, kind.entries

    def one(self: Any, position: int) -> Any:
        nonlocal count
        count += 1
        return entry(self, position)

    def many(self: Any, *given: Any, **named: Any) -> Any:
        nonlocal count
        for found in entries(self, *given, **named):
            count += 1
            yield found

    monkeypatch.setattr(kind, "entry", one)
    monkeypatch.setattr(kind, "entries", many)
    return lambda: count


def test_the_impact_of_sources_readings_and_agents(ledger: woodrat.Ledger) -> None:
    """A source, an interpretation and an agent stand for all observations that name them."""
    source = ledger.sources.add(b"580", name="bureau.txt")
    with ledger.interpretations.start(source, model="reader-1") as reading:
        reading.store([{"entity_type": "loan", "id": "42", "creditScore": 580}])
    opened(ledger.context.engine, agent="crm").store({"entity_type": "loan", "id": "43", "creditScore": 700})
    run, other = decide(ledger), decide(ledger, 43)
    for what in (source, reading.id):
        found = ledger.impact(what)
        assert [leaned.run for leaned in found.runs] == [run]
        assert {(won.entity, won.field) for won in found.fields} == {("loan/42", "creditScore"), ("loan/42", "id")}
    found = ledger.impact(agent="crm")
    assert (found.kind, found.id, [leaned.run for leaned in found.runs]) == ("agent", "crm", [other])
    assert {won.entity for won in found.fields} == {"loan/43"}
    assert found.tree.find("run")[0].id == other
    assert found.to_json()["runs"][0]["decisions"][0]["facts"] == ["creditScore"]


def test_a_beaten_observation_wins_no_field_and_keeps_its_runs(ledger: woodrat.Ledger) -> None:
    """After a correction the runs that read the observation are still found, and the past has its fields as before."""
    bad = store(ledger, creditScore=580)
    run = decide(ledger)
    before = ledger.position
    ledger.correct("loan/42", {"creditScore": 640}, reason="mixed up", observed_at=FRIDAY)
    found = ledger.impact(bad)
    assert [won.field for won in found.fields] == ["id"]
    assert [leaned.run for leaned in found.runs] == [run]
    past = ledger.at(before).impact(bad)
    assert [won.field for won in past.fields] == ["creditScore", "id"]
    assert ledger.at(0).impact(bad).runs == ()


# Stale


def test_the_loan_decided_on_580_would_flip(ledger: woodrat.Ledger) -> None:
    """A score of 580, corrected to 640 four days later, makes the rejection stale, with both beliefs side by side."""
    bad = store(ledger, creditScore=580)
    store(ledger, 43, creditScore=590)
    run = decide(ledger)
    decide(ledger, 43)
    assert ledger.stale().items == ()
    before = ledger.position
    report = ledger.correct("loan/42", {"creditScore": 640}, reason="mixed up", observed_at=FRIDAY)
    (found,) = ledger.stale().items
    assert (found.run, found.outcome, found.now.chosen) == (run, "flip", "approved")
    assert found.sentence == "would flip to approved"
    (belief,) = found.beliefs
    assert (belief.before, belief.now, belief.change) == (580, 640, "corrected")
    assert (belief.observations, belief.observations_now) == ((bad,), (str(report.observations[0]),))
    told = found.to_json()
    assert told["beliefs"][0]["before"] == 580
    assert [told["decision"][name] for name in ("stage", "chosen", "rule")] == [
        "classify-risk",
        "rejected",
        "Marginal credit",
    ]
    by = {"chosen": "approved", "rule": "Good credit", "reason": "rule Good credit matches"}
    assert (told["outcome"], told["now"]) == ("flip", {"outcome": "flip", **by})
    assert ledger.at(before).stale().items == ()
    assert opened(ledger.context.engine, "other").stale().items == ()


def test_what_changed_is_named(ledger: woodrat.Ledger) -> None:
    """Evidence can be corrected, retracted, superseded, deleted, or stated where there was none."""
    said = {number: store(ledger, number, creditScore=580) for number in (1, 2, 3)}
    store(ledger, 4, amount=5)
    for number in (1, 2, 3):
        decide(ledger, number)
    decide(ledger, 4, on_missing="skip")
    ledger.retract(said[1], reason="not his")
    ledger.store({"entity_type": "loan", "id": "1", "amount": 5}, observed_at=MONDAY)
    ledger.store({"entity_type": "loan", "id": "2", "creditScore": 650}, observed_at=FRIDAY)
    ledger.delete("loan/3")
    ledger.store({"entity_type": "loan", "id": "4", "creditScore": 500}, observed_at=FRIDAY)
    found = {item.subject: item for item in ledger.stale().items}
    changes = {name: (item.beliefs[0].change, item.sentence) for name, item in found.items()}
    assert changes == {
        "loan/1": ("retracted", "unknown: rule Marginal credit cannot be decided: there is no fact creditScore"),
        "loan/2": ("superseded", "would flip to approved"),
        "loan/3": ("deleted", "unknown: rule Marginal credit cannot be decided: there is no fact creditScore"),
        "loan/4": ("stated", "would flip to rejected"),
    }
    assert found["loan/3"].beliefs[0].missing


def test_a_change_that_changes_nothing_is_told_on_demand(ledger: woodrat.Ledger) -> None:
    """Decisions that would come out the same are listed with `same` only; a predicate leaves it unknown."""
    store(ledger, creditScore=580)
    decide(ledger)
    decide(ledger, rules=[Rule("rejected", lambda facts: facts["creditScore"] < 600)])
    ledger.correct("loan/42", {"creditScore": 590}, reason="a little better", observed_at=FRIDAY)
    assert [found.outcome for found in ledger.stale().items] == ["unknown"]
    assert [found.outcome for found in ledger.stale(same=True).items] == ["unknown", "same"]


def test_a_decision_about_the_past_is_never_stale(ledger: woodrat.Ledger) -> None:
    """A run that asked for a moment would be told the same; by an effective time, what was true by then counts."""
    store(ledger, creditScore=580)
    moment = ledger.position
    with ledger.run("At that time?") as run:
        run.decide("then", run.at(moment).show("loan/42"), RULES)
        run.decide("by then", run.at(valid_at=MONDAY).show("loan/42"), RULES)
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 640}, observed_at=FRIDAY)
    assert ledger.stale(same=True).items == ()
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 650}, observed_at=FRIDAY, valid_from=MONDAY)
    assert [found.decision.stage for found in ledger.stale().items] == ["by then"]


def test_stale_decisions_come_in_pages(ledger: woodrat.Ledger) -> None:
    """The latest come first, and a cursor leads on."""
    store(ledger, creditScore=580)
    runs = [decide(ledger) for _ in range(3)]
    ledger.correct("loan/42", {"creditScore": 640}, reason="mixed up", observed_at=FRIDAY)
    first = ledger.stale(limit=2)
    rest = ledger.stale(limit=2, cursor=first.cursor)
    assert [found.run for found in (*first.items, *rest.items)] == runs[::-1]
    assert rest.cursor is None
    with pytest.raises(woodrat.Refused):
        ledger.stale(limit=2, same=True, cursor=first.cursor)


def test_runs_of_another_log_are_left_alone(ledger: woodrat.Ledger) -> None:
    """A run that read observations which this log does not hold cannot be called stale; its lineage says so."""
    store(ledger, creditScore=640)
    write(ledger, loan())
    assert ledger.stale(same=True).items == ()
    (node,) = ledger.lineage("run_" + "a" * 26).find("observation")
    assert node.label.endswith("which is not in this log")


# Bad input, other tenants


def test_unknown_ids_are_not_found(ledger: woodrat.Ledger) -> None:
    """What is not there, belongs to another tenant or came later is not found; what is no name at all is refused."""
    other = opened(ledger.context.engine, "other")
    source = other.sources.add(b"580", name="bureau.txt")
    with other.interpretations.start(source, model="reader-1") as reading:
        report = reading.store([{"entity_type": "loan", "id": "42", "creditScore": 580}])
    theirs, run = report.observations[0], decide(other)
    mine = decide(ledger) if store(ledger, creditScore=580) else ""
    for what in (theirs, run, "obs_" + "a" * 26, "run_" + "a" * 26, "loan/7#x", "loan/42#x", f"{mine}#x"):
        with pytest.raises(woodrat.NotFound, match="Nothing was changed"):
            ledger.lineage(what)
    for what in (theirs, source, reading.id, "obs_" + "a" * 26, "src_x", "int_x"):
        with pytest.raises(woodrat.NotFound, match="Nothing was changed"):
            ledger.impact(what)
    with pytest.raises(woodrat.NotFound):
        ledger.impact(agent="nobody")
    with pytest.raises(woodrat.NotFound):
        ledger.at(-1).impact(store(ledger, 44, creditScore=1))
    lineage, impact, stale = (getattr(ledger, name) for name in ("lineage", "impact", "stale"))
    for wrong in (5, None, "", "loan/42", "#x", "loan/42#"):
        with pytest.raises(woodrat.Refused):
            lineage(wrong)
    for wrong in (5, None, "", "#x", "/x"):
        with pytest.raises(woodrat.Refused):
            impact(wrong)
    for given in ({"agent": 5}, {"what": theirs, "agent": "crm"}):
        with pytest.raises(woodrat.Refused):
            impact(**given)
    for given in ({"limit": 0}, {"same": 1}, {"cursor": "x"}):
        with pytest.raises(woodrat.Refused):
            stale(**given)


# The index


def test_a_rebuild_leads_to_the_same_answers(ledger: woodrat.Ledger) -> None:
    """What is found by rows of the write is found by those of a rebuild, now and at a moment of the past."""
    bad = store(ledger, creditScore=580)
    run = decide(ledger)
    past = ledger.at(ledger.position)
    found = past.impact(bad), past.lineage(run), past.impact(agent="loan-officer")
    assert (ledger.impact(bad), ledger.lineage(run), ledger.impact(agent="loan-officer")) == found
    ledger.rebuild()
    assert (past.impact(bad), ledger.impact(bad)) == (found[0], found[0])


def test_a_hidden_value_stays_hidden(ledger: woodrat.Ledger) -> None:
    """A decision that redacted a fact is unknown, and shows neither belief."""
    store(ledger, creditScore=580)
    with ledger.run("Approve?", redact=["creditScore"]) as run:
        run.decide("classify-risk", run.show("loan/42"), RULES)
    ledger.correct("loan/42", {"creditScore": 640}, reason="mixed up", observed_at=FRIDAY)
    (found,) = ledger.stale().items
    assert found.outcome == "unknown"
    assert (found.beliefs[0].before, found.beliefs[0].now) == ("[REDACTED]", "[REDACTED]")
