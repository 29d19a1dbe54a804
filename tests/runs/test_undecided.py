"""Rules that fail loudly: a fact that is missing stops a decision, and the run says which, on every surface."""

from __future__ import annotations

from typing import Any

import pytest

import woodrat
from woodrat import Ledger, Refused, Rule
from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.runs.missing_facts import GAPS_SAID_MAX
from woodrat.runs.projection import project
from woodrat.runs.relay import Relay
from woodrat.testing.ledgers import ledger_on

REJECT = Rule("rejected", {"score": {"lt": 600}}, label="Marginal credit")
RULES = [REJECT, Rule("approved", {"score": {"gte": 700}})]
SAID = "rule Marginal credit is unknown: there is no fact score"


@pytest.fixture
def ledger() -> Ledger:
    """An empty ledger."""
    return ledger_on(InMemoryEngine())


def test_a_missing_fact_stops_a_decision_and_the_run_says_why(ledger: Ledger) -> None:
    """The error, the note, the problems, the narrative and the answer of the run name stage, rule and fact."""
    with pytest.raises(Refused) as refusal, ledger.run("Approve?") as run:
        run.decide("risk", {"name": "Ana"}, RULES, default="approved")
    assert [fault.path for fault in refusal.value.faults] == ["decision risk", "decision risk"]
    assert refusal.value.faults[0].problem == SAID
    assert str(refusal.value).endswith("Nothing was decided.")
    record = ledger.runs.show(run.id)
    assert (record.status, record.decisions) == ("error", ())
    (note,) = record.notes
    assert note.text == f"risk was not decided: {SAID}; rule 2 is unknown: there is no fact score"
    assert note.data == {
        "event": "undecided",
        "stage": "risk",
        "mode": "decide",
        "unknown": [
            {"rule": "rule Marginal credit", "fact": "score", "error": "there is no such fact"},
            {"rule": "rule 2", "fact": "score", "error": "there is no such fact"},
        ],
    }
    assert record.problems == record.noted_problems == (note.text,)
    assert record.to_json()["problems"] == [note.text]
    for projection in ("narrative", "decisions"):
        (line,) = [line for line in project(record, projection).splitlines() if "was not decided" in line]
        assert line.startswith("Nothing was decided at ")
        assert SAID in line
    assert "there is no fact score" in project(record, "full")


def test_outside_of_a_run_it_is_as_loud() -> None:
    """`woodrat.decide` and `woodrat.select` refuse and skip as a run does."""
    for verb in (woodrat.decide, woodrat.select):
        with pytest.raises(Refused, match="decision risk: rule 1 is unknown: there is no fact score"):
            verb("risk", {}, [Rule("rejected", {"score": {"lt": 600}})], default="approved")
    rules = [REJECT, Rule("known", {"name": "Ana"})]
    assert woodrat.decide("risk", {"name": "Ana"}, rules, on_missing="skip").chosen == "known"
    assert woodrat.select("risk", {"name": "Ana"}, rules, on_missing="skip").chosen == ["known"]
    with pytest.raises(Refused, match="rule 1 is unknown"):
        woodrat.select("risk", {"name": "Ana"}, [rules[1], Rule("x", {"score": 1})][::-1])
    for wrong in ("ignore", None, True, 5):
        given: Any = wrong
        with pytest.raises(Refused, match=r"on_missing: got .* Send raise or skip"):
            woodrat.decide("risk", {"score": 1}, RULES, on_missing=given)


def test_skipped_rules_are_recorded_and_told(ledger: Ledger) -> None:
    """A decision that skips unknown rules says so in its entry, in the record, in the problems and in the narrative."""
    with ledger.run("Approve?") as run:
        rules = [REJECT, Rule("b", {"name": "Bob", "dti": {"lt": 0.4}}), Rule("c", {"name": "Ana"})]
        verdict = run.decide("risk", {"name": "Ana"}, rules, default="x", on_missing="skip")
        run.decide("risk", {"name": "Ana"}, rules, default="x", on_missing="skip")
    assert (verdict.chosen, verdict.unknown, verdict.on_missing) == ("c", (0,), "skip")
    record = ledger.runs.show(run.id)
    first = record.decisions[0]
    assert (first.on_missing, [rule.unknown for rule in first.rules]) == ("skip", [True, False, False])
    told = first.to_json()
    assert told["on_missing"] == "skip"
    assert told["rules"][0]["unknown"] is True
    assert [condition["result"] for rule in told["rules"] for condition in rule["conditions"]] == [
        None,
        False,
        None,
        True,
    ]
    problems = (
        "risk: rule Marginal credit was skipped: there is no fact score",
        "risk: rule 2 did not match, and there is no fact dti",
    )
    assert record.problems == record.noted_problems == problems
    assert [str(problem) for problem in run.problems] == list(problems)
    assert record.narrative.count("there is no fact score") == 2
    assert record.narrative.count("Problem:") == 0
    assert "is unknown and was skipped" in project(record)
    with ledger.run("Approve?") as run:
        run.decide("risk", {}, RULES, default="x", on_missing="skip")
    assert "by default, no rule matched and 2 could not be decided" in ledger.runs.show(run.id).narrative


def test_a_run_that_never_ended_has_its_problems_too(ledger: Ledger) -> None:
    """What a decision lacked is read from its own entry, so nothing depends on how the run ended."""
    run = ledger.run("Approve?").start()
    with pytest.raises(Refused):
        run.decide("risk", {}, [REJECT])
    run.decide("risk", {}, [REJECT], on_missing="skip")
    run.release()
    record = ledger.runs.show(run.id)
    assert record.noted_problems == ()
    assert record.problems == (
        f"risk was not decided: {SAID}",
        "risk: rule Marginal credit was skipped: there is no fact score",
    )


def test_very_many_gaps_are_counted(ledger: Ledger) -> None:
    """A note stays small, however many rules are unknown; the error has all of them."""
    with ledger.run("Which?") as run, pytest.raises(Refused) as refusal:
        run.decide("s", {}, [Rule(n, {"k" * 4_000: n}) for n in range(1_000)])
    assert len(refusal.value.faults) == 1_000
    (note,) = ledger.runs.show(run.id).notes
    data: Any = note.data
    assert (data["more"], len(data["unknown"])) == (1_000 - GAPS_SAID_MAX, GAPS_SAID_MAX)
    assert note.text.endswith("; and 990 more")
    assert ledger.runs.show(run.id).problems == (note.text,)


def test_nothing_that_is_hidden_is_told(ledger: Ledger) -> None:
    """Why a rule is unknown says kinds of values and never a value under a hidden key."""

    def quotes(facts: Any) -> bool:
        raise ValueError(f"bad {facts['ssn']}")

    with ledger.run("Who?", redact=["ssn"]) as run:
        for rules in ([Rule("a", {"ssn": {"lt": 5}})], [Rule("b", quotes)]):
            with pytest.raises(Refused) as refusal:
                run.decide("who", {"ssn": "123-45-6789"}, rules)
            assert "6789" not in str(refusal.value)
            run.decide("who", {"ssn": "123-45-6789"}, rules, on_missing="skip")
    assert "6789" not in str([entry.body for entry in ledger.log.entries()])
    assert "ssn cannot be compared: text and a number have no order" in ledger.runs.show(run.id).narrative


def test_a_predicate_that_fails_stops_the_decision(ledger: Ledger) -> None:
    """A predicate that raises, or answers nothing, is unknown; one that asks before it looks is not."""
    with ledger.run("Which?") as run:
        with pytest.raises(Refused, match="ZeroDivisionError"):
            run.decide("ratio", {"debt": 1, "income": 0}, [Rule("x", lambda facts: facts.debt / facts.income > 1)], "y")
        with pytest.raises(Refused, match="there is no fact score"):
            run.decide("risk", {}, [Rule("x", lambda facts: facts.score > 1)], "y")
        with pytest.raises(Refused, match="it answered nothing"):
            run.decide("risk", {"score": 1}, [Rule("x", lambda facts: None)], "y")
        asked = run.decide("risk", {}, [Rule("x", lambda facts: "score" in facts and facts.score > 1)], "y")
    assert asked.chosen == "y"
    assert len(ledger.runs.show(run.id).problems) == 3


# Told, resumed, replayed


def test_a_step_that_is_told_fails_and_skips_alike(ledger: Ledger) -> None:
    """A told decision takes `on_missing`, refuses faulty rules with all that is wrong, and notes why it failed."""
    relay = Relay()
    run = str(relay.start(ledger.context, {"query": "Approve?"})["run"])
    rules: list[dict[str, Any]] = [REJECT.to_json()]
    decide = {"stage": "risk", "facts": {}, "rules": rules, "default": "approved"}
    with pytest.raises(Refused, match="there is no fact score"):
        relay.step(ledger.context, run, {"decide": decide})
    assert relay.step(ledger.context, run, {"decide": {**decide, "on_missing": "skip"}})["verdict"].chosen == "approved"
    faulty = [{"chosen": 1, "when": {"a": {"less_than": 1}}}, {"chosen": 2, "when": {}, "label": 5}]
    with pytest.raises(Refused) as refusal:
        relay.step(ledger.context, run, {"select": {**decide, "rules": faulty, "on_missing": "maybe"}})
    assert [fault.path for fault in refusal.value.faults] == [
        "/step/select/on_missing",
        "/step/select/rules/0/when/a/less_than",
        "/step/select/rules/1/when",
        "/step/select/rules/1/label",
    ]
    relay.end(ledger.context, run)
    assert len(ledger.runs.show(run).problems) == 2


@pytest.mark.parametrize("restarted", [False, True])
def test_a_decision_that_failed_may_be_sent_again_with_its_key(ledger: Ledger, restarted: bool) -> None:
    """Once the fact is there the same request decides, once; the failed attempt took nothing but what it read."""
    ledger.store({"entity_type": "loan", "id": "1", "name": "Ana"})
    relay = Relay()
    run = str(relay.start(ledger.context, {"query": "Approve?"})["run"])
    decide = {"decide": {"stage": "risk", "facts": "loan/1", "rules": [REJECT.to_json()], "default": "approved"}}
    for _ in range(2):
        with pytest.raises(Refused, match="there is no fact score"):
            relay.step(ledger.context, run, decide, "k1")
        if restarted:
            relay.forget(ledger.tenant, run)
    ledger.store({"entity_type": "loan", "id": "1", "score": 580})
    answers = []
    for _ in range(3):
        answers.append(relay.step(ledger.context, run, decide, "k1"))
        if restarted:
            relay.forget(ledger.tenant, run)
    assert [answer["verdict"].chosen for answer in answers] == ["rejected"] * 3
    assert [answer["repeated"] for answer in answers] == [False, True, True]
    record = ledger.runs.show(run)
    assert len(record.decisions) == 1
    spans = [step.span for step in record.steps]
    assert len(set(spans)) == len(spans)


def agent(ledger: Ledger, run: Any, calls: list[str]) -> None:
    """Decide on too little, go on, and call a tool."""
    try:
        run.decide("risk", {"name": "Ana"}, RULES, default="approved")
    except Refused:
        run.tool("ask", lambda: calls.append("ask"))


def test_a_resumed_run_is_told_again_what_it_lacked(ledger: Ledger) -> None:
    """A decision that failed fails from the log, is noted once, and what came after it is answered."""
    calls: list[str] = []
    run = ledger.run("Approve?").start()
    agent(ledger, run, calls)
    run.release()
    resumed = ledger.runs.resume(run.id, lambda run: agent(ledger, run, calls))
    assert calls == ["ask"]
    assert (resumed.from_log, resumed.unused) == (2, 0)
    assert sum("not decided" in note.text for note in ledger.runs.show(run.id).notes) == 1


def test_a_replay_finds_what_is_decided_now_and_was_not_then(ledger: Ledger) -> None:
    """A replay raises where the run did; a decision that turns into none, or comes of none, is a divergence."""

    def decide(facts: dict[str, Any], rules: list[Rule]) -> Any:
        def answer(run: Any) -> None:
            try:
                run.answer(run.decide("risk", facts, rules, default="approved").chosen)
            except Refused:
                run.answer("ask")

        return answer

    failing, deciding = decide({"name": "Ana"}, RULES), decide({"score": 580}, RULES)
    runs = []
    for code in (failing, deciding):
        with ledger.run("Approve?") as run:
            code(run)
        runs.append(run.id)
    assert ledger.runs.replay(runs[0], failing).same
    assert ledger.runs.replay(runs[1], deciding).same
    became = ledger.runs.replay(runs[1], failing).runs[0].divergences
    assert [divergence.kind for divergence in became] == ["decision", "answer"]
    assert str(became[0]).startswith("decision risk: then: rejected; now: risk was not decided: ")
    assert SAID in str(became[0])
    came = ledger.runs.replay(runs[0], deciding).runs[0].divergences
    assert [divergence.kind for divergence in came] == ["decision", "answer"]
    assert str(came[0]).endswith("; now: rejected")


# Elsewhere


def test_a_faulty_rule_of_another_recorder_is_shown_as_such(ledger: Ledger) -> None:
    """What others recorded is taken in as it is; the record names what is wrong with its rules."""
    rules = [
        {"label": "Low", "chosen": "rejected", "when": {"score": {"less_than": 600}}, "matched": False},
        {"chosen": "x", "when": {"score": {"in": 5}}, "matched": False, "conditions": [{"key": "score", "op": "in"}]},
    ]
    ledger.store({"entity_type": "loan", "id": "1", "score": 580})
    origin = {"kind": "read", "entity": "loan/1", "field": "score", "position": 0}
    decided = {"kind": "run.decided", "stage": "risk", "chosen": "approved", "default": True, "rules": rules}
    decided["facts_origin"] = {"score": origin}
    (run,) = ledger.runs.import_([{"kind": "run.started", "query": "?", "agent": "a"}, decided, {"kind": "run.ended"}])
    record = ledger.runs.show(run)
    assert [problem for problem in record.problems if "faulty" in problem] == [
        'risk: rule Low is faulty: score/less_than: unknown operator "less_than"; use lt, lte, gt, gte, eq, ne, in, '
        "not_in, matches, exists",
        "risk: rule 2 is faulty: score/in: in got 5 (number)",
    ]
    for projection in ("narrative", "decisions"):
        assert project(record, projection).count(" is faulty: ") == 2
    with pytest.raises(Refused, match='rule Low is faulty: score/less_than: unknown operator "less_than"'):
        ledger.bisect(f"{run}#risk")


def test_bisect_never_takes_the_default_for_an_answer(ledger: Ledger) -> None:
    """Where a rule is unknown nothing is chosen, not even the default, and the flip says which fact was missing."""
    ledger.store({"entity_type": "loan", "id": "1", "name": "Ana"})
    ledger.store({"entity_type": "loan", "id": "1", "score": 650})
    rules = [REJECT.to_json()]
    found = ledger.bisect("loan/1", rules=rules, default="approved", chosen="approved")
    assert found.flip is not None
    assert found.flip.answers == (False, True)
    assert found.flip.chosen == (None, "approved")
    assert found.flip.undecided == (SAID, None)
    assert f"approved is chosen where before nothing can be decided ({SAID})" in found.sentence
    assert found.to_json()["flip"]["undecided"] == [SAID, None]
    before = ledger.at(0).bisect("loan/1", rules=rules, default="approved", chosen="approved")
    assert before.flip is None
    assert f"nothing can be decided there: {SAID}" in before.sentence
    reduced = ledger.reduce("loan/1", rules=rules, default="approved", chosen="approved")
    assert len(reduced.members) == 1, "without the score nothing would be decided"


def test_entries_keep_the_shape_of_the_page(ledger: Ledger) -> None:
    """An unknown condition has an error and no result; an unknown rule is marked; a decision says that it skipped."""
    with ledger.run("Approve?") as run:
        run.decide("risk", {"name": "Ana"}, RULES, default="x", on_missing="skip")
        run.decide("name", {"name": "Ana"}, [Rule("y", {"name": "Ana"})])
    bodies = [form.decode(entry.body) for entry in ledger.log.entries() if entry.kind == "run.decided" and entry.body]
    rule = bodies[0]["rules"][0]
    assert (rule["matched"], rule["unknown"], bodies[0]["on_missing"]) == (False, True, "skip")
    assert rule["conditions"] == [
        {"key": "score", "op": "lt", "operand": 600, "origin": {"kind": "stated"}, "error": "there is no such fact"}
    ]
    assert "on_missing" not in bodies[1]
    assert "unknown" not in bodies[1]["rules"][0]
