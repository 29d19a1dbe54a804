"""Choices without rules: what a model decided by itself, recorded with who chose and what it is based on."""

from __future__ import annotations

import asyncio
import io
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.verifier.both import Case, verdicts

import woodrat
from woodrat.canon import form
from woodrat.errors import Refused
from woodrat.explain import lineage
from woodrat.runs.relay import Relay
from woodrat.runs.steps import Decision
from woodrat.server.access import step_needs

ASKED = [{"role": "user", "content": "Which database?"}]


@pytest.fixture
def ledger() -> woodrat.Ledger:
    made = woodrat.open(":memory:", agent="architect")
    made.store({"entity_type": "loan", "id": "42", "score": 580, "status": "open"})
    return made


def plan(run: Any, chosen: str = "Postgres", answer: str = "Postgres") -> Any:
    """An agent that reads, calls a tool and a model, and takes over what the model chose."""
    loan = run.show("loan/42")
    load = run.tool("load", lambda: {"writers": 40, "score": 7})
    run.model("small-1", lambda: {"content": answer}, messages=ASKED)
    return run.decided("plan", chosen, because="many writers", on=[loan, load, {"budget": 10}]).chosen


def recorded(ledger: woodrat.Ledger, agent: Any = plan, query: str = "Which database?") -> str:
    with ledger.run(query, subject="loan/42", inputs={"budget": 10}) as run:
        run.answer(agent(run))
    assert not run.problems
    return run.id


def decision(ledger: woodrat.Ledger, run: str, stage: str = "plan") -> Decision:
    return next(made for made in ledger.runs.show(run).decisions if made.stage == stage)


def test_who_chose_why_and_on_what(ledger: woodrat.Ledger) -> None:
    """The record names the model, its step, the reason, and each fact with its origin."""
    made = decision(ledger, recorded(ledger))
    assert made.by(str) == "by model small-1 in step 3"
    assert made.rationale == "many writers"
    assert not made.default
    call = ledger.runs.show(ledger.runs.list().items[0].id).models[0]
    assert made.chosen_by == {"model": "small-1", "span": call.span, "step": call.step}
    assert made.evidence == {"id": "42", "score": 580, "status": "open", "writers": 40, "load.score": 7, "budget": 10}
    kinds = {name: origin["kind"] for name, origin in made.facts_origin.items()}
    assert kinds["score"] == "read"
    assert kinds["writers"] == kinds["load.score"] == "tool"
    assert kinds["budget"] == "input"
    assert made.entities == ("loan/42",)
    assert made.observations


def test_without_a_model_the_agent_chose(ledger: woodrat.Ledger) -> None:
    """In a run that called no model the choice is the agent's own; a model can be named."""
    with ledger.run("?") as run:
        run.decided("a", 1)
        run.decided("b", 2, model="large-2")
    first, second = ledger.runs.show(run.id).decisions
    assert first.chosen_by == {"agent": "architect"}
    assert first.by(str) == "by the agent itself"
    assert second.chosen_by == {"model": "large-2"}
    assert second.by(str) == "by model large-2"


def test_the_model_of_the_same_step_counts_before_the_last_one(ledger: woodrat.Ledger) -> None:
    """Of models called in several places the one called in the same step chose; inside of a call, that one."""
    with ledger.run("?") as run:
        with run.tool("inner") as tool:
            run.model("inside", lambda: 1)

            def outside() -> None:
                run.model("outside", lambda: 2)

            thread = run.thread(outside)
            with run.current():
                pass
            other = threading.Thread(target=lambda: run.model("elsewhere", lambda: 3))  # of no run: the top level
            other.start()
            other.join()
            thread.start()
            thread.join()
            run.decided("in tool", 1)
            tool.result = None
        with pytest.raises(ValueError, match="no"), run.model("failed"):
            raise ValueError("no")
        run.decided("at top", 2)
        with run.model("open") as call:
            run.decided("in model", 3)
            call.result = 4
    by = {made.stage: (made.chosen_by or {}).get("model") for made in ledger.runs.show(run.id).decisions}
    assert by == {"in tool": "outside", "at top": "elsewhere", "in model": "open"}


def test_facts_of_all_kinds(ledger: woodrat.Ledger) -> None:
    """Snapshots, calls, facts, verdicts, recalled and explained decisions, mappings and bare values are facts."""
    earlier = recorded(ledger)
    with ledger.run("Again?") as run:
        loan = run.show("loan/42")
        verdict = run.decide("risk", loan, [woodrat.Rule("bad", {"score": {"lt": 600}})])
        hit = ledger.recall("Which database was chosen?", threshold=0.0)
        reason = next(iter(ledger.why("loan/42")))
        assert hit.hits
        run.decided("x", [1, 2], on=[loan.fact("score"), verdict, hit, "in a hurry", 3.5, None])
        run.decided("y", 1, on=reason)
        run.decided("z", 1, on=ledger.runs.show(earlier))
        run.decided("w", 1, on={"score": loan.fact("score"), "status": "open"})
        run.decided("v", 1, on=[loan, loan, run.show("loan/42")])
    made = {each.stage: each for each in ledger.runs.show(run.id).decisions}
    facts = made["x"].facts
    assert facts["score"] == 580
    assert facts["risk"] == "bad"
    assert facts["plan"] == "Postgres"
    assert facts["fact 4"] == "in a hurry"
    assert facts["fact 5"] == 3.5
    assert made["x"].facts_origin["plan"] == {
        "kind": "decision",
        "run": earlier,
        "span": decision(ledger, earlier).span,
    }
    assert made["x"].facts_origin["risk"]["run"] == run.id
    assert made["y"].facts == {"risk": "bad"}
    assert made["z"].facts == {"plan": "Postgres"}
    assert {origin["kind"] for origin in made["w"].facts_origin.values()} == {"read"}
    assert set(made["v"].facts) == {"id", "score", "status"}


def test_two_facts_of_one_name_are_both_kept(ledger: woodrat.Ledger) -> None:
    """A later fact of the same name is called by its entity, its tool or a number."""
    ledger.store({"entity_type": "loan", "id": "43", "score": 700})
    with ledger.run("?") as run:
        both = [run.show("loan/42").fact("score"), run.show("loan/43").fact("score")]
        run.decided("x", 1, on=[*both, run.tool("bureau", lambda: {"score": 1}), {"score": 2}, {"score": 3}])
    (made,) = ledger.runs.show(run.id).decisions
    assert dict(made.facts) == {"score": 580, "loan/43#score": 700, "bureau.score": 1, "score (2)": 2, "score (3)": 3}


def test_hidden_keys_and_many_facts(ledger: woodrat.Ledger) -> None:
    """What is to be hidden is, and beyond a thousand facts the run says how many were left out."""
    with ledger.run("?", redact=["ssn"]) as run:
        run.decided("x", {"ssn": 1, "ok": 2}, on={"ssn": "1-2", "pin": 4, "deep": {"ssn": 3}}, redact=["pin"])
        run.decided("y", 1, on={str(number): number for number in range(1_005)})
    one, two = ledger.runs.show(run.id).decisions
    assert one.chosen == {"ssn": "[REDACTED]", "ok": 2}
    assert one.facts == {"ssn": "[REDACTED]", "pin": "[REDACTED]", "deep": {"ssn": "[REDACTED]"}}
    assert len(two.facts) == 1_000
    assert "y: 5 facts were left out, the first 1000 are recorded" in ledger.runs.show(run.id).problems


def test_what_is_wrong_is_said_at_once(ledger: woodrat.Ledger) -> None:
    """A stage, a reason and a model that are no text are refused together; nothing is recorded."""
    with ledger.run("?") as run, pytest.raises(Refused) as refusal:
        run.decided("", 1, because=3, model="")  # type: ignore[arg-type]
    assert [fault.path for fault in refusal.value.faults] == ["stage", "because", "model"]
    assert "Nothing was decided." in str(refusal.value)
    assert not ledger.runs.show(run.id).decisions


def test_async_runs_and_threads(ledger: woodrat.Ledger) -> None:
    """An async run records the same; so do threads of the run."""

    async def work() -> str:
        async with await woodrat.aopen(":memory:", agent="a") as opened:
            async with opened.run("?") as run:
                await run.model("small-1", lambda: "go")
                made = await run.decided("plan", "go", on={"x": 1})
            assert made.chosen_by is not None
            assert made.chosen_by["model"] == "small-1"
            record = await opened.runs.show(run.id)
            return str(record.decisions[0].by(str))

    assert asyncio.run(work()) == "by model small-1 in step 1"
    with ledger.run("?") as run:
        threads = [run.thread(run.decided, ("t", number)) for number in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert {str(made.chosen) for made in ledger.runs.show(run.id).decisions} == set("01234")


def test_replay_compares_what_is_chosen(ledger: woodrat.Ledger) -> None:
    """The same choice replays as the same; another choice, or another fact, is the difference."""
    run = recorded(ledger)
    assert ledger.runs.replay(run, plan).runs[0].same
    (found,) = ledger.runs.replay(run, lambda again: plan(again, "MySQL")).runs[0].divergences[:1]
    assert (found.kind, found.what, found.old, found.new) == ("decision", "decision plan", "Postgres", "MySQL")

    def further(again: Any) -> Any:
        chosen = plan(again)
        again.decided("more", 1)
        return chosen

    (found,) = ledger.runs.replay(run, further).runs[0].divergences
    assert (found.kind, found.what) == ("extra", "decision more")
    (found, *_) = ledger.runs.replay(run, lambda again: "Postgres").runs[0].divergences
    assert found.kind == "missing"


def test_a_resumed_run_answers_choices_from_the_log(ledger: woodrat.Ledger) -> None:
    """A choice that is on record is not recorded twice; after another one everything is live."""
    run = ledger.run("?", subject="loan/42", inputs={"budget": 10}).start()
    with run.current():
        plan(run)
    run.release()
    resumed = ledger.runs.resume(run.id, plan)
    assert resumed.status == "done"
    assert resumed.unused == 0
    assert [made.stage for made in ledger.runs.show(run.id).decisions] == ["plan"]
    other = ledger.run("?", subject="loan/42", inputs={"budget": 10}).start()
    with other.current():
        plan(other)
    other.release()
    ledger.runs.resume(other.id, lambda again: plan(again, "MySQL"))
    assert [made.chosen for made in ledger.runs.show(other.id).decisions] == ["Postgres", "MySQL"]


def test_a_continued_run_knows_which_model_was_called_last(ledger: woodrat.Ledger) -> None:
    """What another process asked a model counts as the last call here too."""
    run = ledger.run("?").start()
    run.model("small-1", lambda: 1)
    run.release()
    with ledger.runs.continue_(run.id, ends=True) as again:
        again.decided("x", 1)
    (made,) = ledger.runs.show(run.id).decisions
    assert made.chosen_by is not None
    assert made.chosen_by["model"] == "small-1"


def test_what_if_answers_unknown(ledger: woodrat.Ledger) -> None:
    """Where anything that the run met would be otherwise, nobody knows what would have been chosen."""
    run = recorded(ledger)
    for supposed in ({"loan/42#score": 700}, {"score": 700}, {"budget": 11}, {"nothing": 1}):
        (found,) = ledger.what_if(run, set=supposed).decisions
        assert found.outcome == "unknown", supposed
        assert "by model small-1 in step 3" in found.now.reason
    (found,) = ledger.what_if(run, without=[next(iter(decision(ledger, run).observations))]).decisions
    assert found.outcome == "unknown"
    (found,) = ledger.what_if(run, sweep={"score": [1, 2]}).decisions
    assert found.outcome == "unknown"
    ledger.store({"entity_type": "loan", "id": "43", "score": 1})
    (found,) = ledger.what_if(run, set={"loan/43#score": 700}).decisions
    assert found.outcome == "same"


def test_what_if_of_imported_decisions_is_unknown(ledger: woodrat.Ledger) -> None:
    """Rules that are not on record are never taken for no rules at all."""
    steps = [
        {"kind": "tool", "name": "bureau", "args": {}, "result": {"score": 580}},
        {"kind": "decision", "stage": "by rule", "chosen": "no", "rule": "Marginal", "evidence": {"score": 580}},
        {"kind": "decision", "stage": "by default", "chosen": "no", "rule": None, "evidence": {"score": 580}},
        {"kind": "decision", "stage": "bare", "chosen": "no"},
    ]
    (run,) = ledger.runs.import_({"query": "q", "answer": "a", "steps": steps})
    for supposed in ({"score": 700}, {"loan/42#score": 700}):
        outcomes = {each.decision.stage: each.outcome for each in ledger.what_if(run, set=supposed).decisions}
        assert outcomes == {"by rule": "unknown", "by default": "unknown", "bare": "unknown"}
    with ledger.run("?") as own:
        own.decide("none", {"score": 1}, [], default="x")
    (found,) = ledger.what_if(own.id, set={"score": 700}).decisions
    assert found.outcome == "same"  # here it is on record that there were no rules


def test_explanations_follow_the_evidence(ledger: woodrat.Ledger) -> None:
    """Lineage, impact, stale, why and recall treat it as a decision; bisect says why it cannot be made again."""
    run = recorded(ledger)
    told = "\n".join(lineage.lines(ledger.lineage(run)))
    assert "plan = Postgres, by model small-1 in step 3" in told
    assert "loan/42#id" in told
    assert "load(), which returned" in told
    (observation,) = decision(ledger, run).observations
    assert [made.decision.stage for each in ledger.impact(observation).runs for made in each.decisions] == ["plan"]
    assert not list(ledger.stale())
    ledger.correct("loan/42", {"score": 650}, reason="a typo")
    (stale,) = ledger.stale()
    assert stale.decision.stage == "plan"
    assert stale.now.outcome == "unknown"
    assert [reason.decision.chosen for reason in ledger.why("loan/42")] == ["Postgres"]
    hit = ledger.recall("Which database was chosen for many writers?", threshold=0.0)
    assert "Decided plan" in hit.text
    assert "by model small-1 in step 3" in hit.text
    assert '"many writers"' in hit.text
    with pytest.raises(Refused, match="chosen by model small-1 in step 3, without rules"):
        ledger.bisect(f"{run}#plan")


def test_lineage_of_what_rests_on_an_earlier_decision(ledger: woodrat.Ledger) -> None:
    """A decision of the same run is followed; one of another run is named."""
    earlier = recorded(ledger)
    with ledger.run("?") as run:
        verdict = run.decide("risk", run.show("loan/42"), [woodrat.Rule("bad", {"score": {"lt": 600}})])
        run.decided("next", 1, on=[verdict, ledger.runs.show(earlier)])
    told = "\n".join(lineage.lines(ledger.lineage(run.id)))
    assert "risk = bad" in told
    assert f"decision of {earlier}" in told


def test_two_runs_and_groups_compare_choices(ledger: woodrat.Ledger) -> None:
    """A different choice after a different answer follows from the answer; groups part by it."""
    runs = [recorded(ledger), recorded(ledger, lambda run: plan(run, "MySQL", "MySQL"))]
    found = ledger.runs.diff(*runs)
    assert found.level == "behaviour"
    assert (
        "it was chosen by model small-1 in step 3, which answered otherwise: Postgres in the first run"
        in found.sentence
    )
    same = ledger.runs.diff(runs[0], recorded(ledger))
    assert same.same
    crowd = ledger.runs.group([*runs, recorded(ledger)])
    assert (crowd.total, crowd.main.agree) == (3, 2)


def test_training_has_them(ledger: woodrat.Ledger) -> None:
    """A transcript for training says what was chosen, on what, and why."""
    run = recorded(ledger)
    ledger.runs.judge(run, "good")
    file = io.StringIO()
    ledger.training.export("sft", out=file)
    rows = file.getvalue()
    assert "Decision plan: Postgres." in rows
    assert "many writers" in rows


def test_sent_steps_and_a_server_form(ledger: woodrat.Ledger) -> None:
    """A told run takes the step; references are read, and faults are said at once."""
    step = {"stage": "plan", "chosen": "Postgres", "because": "many writers", "on": ["loan/42", {"writers": 40}]}
    model = {"model": {"model": "small-1", "response": "Postgres"}}
    (run,) = ledger.runs.import_({"query": "?", "steps": [model, {"decided": step}]})
    made = decision(ledger, run)
    assert made.by(str) == "by model small-1 in step 1"
    assert made.facts["score"] == 580
    assert made.facts["writers"] == 40
    assert [read.entity for read in ledger.runs.show(run).reads] == ["loan/42"]
    for wrong in ({**step, "rules": []}, {"stage": "plan"}, {**step, "on": [4]}, {**step, "because": 4}, "plan"):
        with pytest.raises(Refused):
            ledger.runs.import_({"query": "?", "steps": [{"decided": wrong}]})


def test_a_relay_records_it_once_for_a_key(ledger: woodrat.Ledger) -> None:
    """Told step by step, over HTTP or MCP, the same key records one choice and answers with the same verdict."""
    relay = Relay()
    run = relay.start(ledger.context, {"query": "?"})["run"]
    relay.step(ledger.context, run, {"model": {"model": "small-1", "response": "x"}})
    step = {"decided": {"stage": "plan", "chosen": "Postgres", "because": "so", "on": ["loan/42", {"writers": 40}]}}
    first = relay.step(ledger.context, run, step, "k1")
    again = relay.step(ledger.context, run, step, "k1")
    assert (first["repeated"], again["repeated"]) == (False, True)
    for answer in (first, again):
        assert answer["verdict"].chosen_by["model"] == "small-1"
        assert answer["verdict"].evidence["score"] == 580
    assert len(ledger.runs.show(run).decisions) == 1
    assert list(step_needs(step)) == [("read", {"ref": "loan/42"})]


def test_the_entry_is_as_the_format_says_and_both_verifiers_take_it(tmp_path: Path) -> None:
    """No rules, who chose, facts with origins; a capsule of it is consistent, and says that nobody evaluated it."""
    from tests.verifier.test_honest import Desk

    desk = Desk(tmp_path)
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    with desk.ledger.run("?", inputs={"budget": 10}) as run:
        loan = run.show("loan/42")
        load = run.tool("load", lambda: {"writers": 40})
        run.model("small-1", lambda: "Postgres")
        first = run.decided("plan", "Postgres", because="many writers", on=[loan, load, {"budget": 10}])
        run.decided("next", "go", on=first)
    (entry, _) = [entry for entry in desk.ledger.log.entries() if entry.kind == "run.decided"]
    body = form.decode(entry.body or b"")
    assert "rules" not in body
    assert body["default"] is False
    assert set(body["chosen_by"]) == {"model", "span", "step"}
    for what in (run.id, f"{run.id}#plan", f"{run.id}#next"):
        assert desk.parts(what) == {"choice"}
    data = desk.ledger.proofs.capsule(run.id).to_bytes()
    assert (
        verdicts([Case("forged", data.replace(b"many writers", b"few writers "), str(desk.keys.verifier))])[0][
            "verdict"
        ]
        == "refused"
    )
