"""Runs in JSON: exported, imported into another ledger and exported again they are the same."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runs.test_fork import Bank
from tests.runs.test_snapshot_format import kept, story

import woodrat
from woodrat.runs.record import RunRecord

OF_THE_LOG = frozenset({"position", "positions", "start", "end", "linked", "narrative", "unchecked"})
"""What depends on the log that a run stands in."""


def exported(record: RunRecord) -> dict[str, Any]:
    """Return what `runs show -o json` prints."""
    document: dict[str, Any] = json.loads(json.dumps(record.to_json()))
    return document


def placeless(value: Any) -> Any:
    """Return the JSON of a run without what depends on the log."""
    if isinstance(value, dict):
        return {name: placeless(inner) for name, inner in value.items() if name not in OF_THE_LOG}
    return [placeless(item) for item in value] if isinstance(value, list) else value


def check(ledger: woodrat.Ledger, run: str) -> RunRecord:
    """Send a run on a journey to two other ledgers; it is the same there, and `runs diff` says so."""
    first = exported(ledger.runs.show(run))
    position = ledger.position
    assert ledger.runs.import_(first) == (run,)
    assert ledger.position == position
    there = woodrat.open(":memory:", agent="importer")
    assert there.runs.import_(first) == (run,)
    second = exported(there.runs.show(run))
    assert placeless(second) == placeless(first)
    ended = there.position
    assert there.runs.import_(first) == (run,) == there.runs.import_(second)
    assert there.position == ended
    farther = woodrat.open(":memory:", agent="importer")
    farther.runs.import_(second)
    assert placeless(exported(farther.runs.show(run))) == placeless(first)
    for one, other, within in ((run, run, there), (run, first, None), (first, second, None)):
        found = ledger.runs.diff(one, other, other=within)
        assert found.same, found.sentence
    return there.runs.show(run)


def bank() -> Bank:
    """Return a ledger with an agent that reads, calls, decides by rules and by a model, and writes."""
    return Bank(woodrat.open(":memory:", agent="clerk"))


def test_what_a_run_wrote_comes_with_it() -> None:
    """Writes stand in the record again, said elsewhere; nothing is said of the entity here."""
    made = bank()
    there = check(made.ledger, made.record())
    (write,) = there.writes
    assert (write.position, write.entity, dict(write.fields)) == (None, "loan/42", {"id": "42", "status": "approved"})
    assert "writes" not in there.attributes


def test_choices_and_evidence_come_back() -> None:
    """Who chose without rules, the calls that evidence names, digests of requests, and margins."""
    made = bank()
    there = check(made.ledger, made.record())
    risk, tone = there.decisions
    assert tone.chosen_by is not None
    assert tone.chosen_by["model"] == "small-1"
    assert not tone.rules_on_record
    assert tone.facts_origin["content"]["call"] == "model small-1"
    assert risk.margin is not None
    assert there.models[0].request_digest == made.ledger.runs.show(there.id).models[0].request_digest


@pytest.mark.parametrize(
    ("at", "edit"),
    [
        (0, {"inputs.application": 43}),
        (1, {"fields.limit": 5}),
        (2, {"result.score": 500}),
        (3, {"response.content": "no"}),
        (3, {"prompt": [{"role": "user", "content": "?"}]}),
    ],
)
def test_forks_come_back(at: int, edit: dict[str, Any]) -> None:
    """What a run is a fork of, and what was edited there."""
    made = bank()
    fork = made.fork(made.record(), at, edit)
    there = check(made.ledger, fork.run)
    assert there.forked_from == made.ledger.runs.show(fork.run).forked_from is not None


def test_a_run_that_does_everything_comes_back() -> None:
    """Searches, errors, rules of every kind, judgements."""
    check(*story())


def test_a_snapshot_of_a_fork_comes_back() -> None:
    """The snapshot format says of a fork what it was made from, and so it does after a journey."""
    made = bank()
    fork = made.fork(made.record(), 2, {"result.score": 500})
    snapshot = made.ledger.runs.show(fork.run).snapshot()
    assert snapshot["forkedFrom"]["set"] == {"result.score": 500}
    there = woodrat.open(":memory:", agent="importer")
    (run,) = there.runs.import_(json.loads(json.dumps(snapshot)))
    assert kept(there.runs.show(run).snapshot()) == kept(snapshot)


def test_interrupted_and_failed_runs_come_back() -> None:
    """A run without an end has none there either; an error is the same error."""
    ledger = woodrat.open(":memory:", agent="clerk")

    def fails() -> None:
        raise ValueError("no")

    (begun,) = ledger.runs.import_({"id": "7", "status": "interrupted", "steps": [{"kind": "note", "text": "so far"}]})
    assert check(ledger, begun).status == "interrupted"
    with pytest.raises(ValueError, match="no"), ledger.run("Fail?") as failed:
        failed.tool("broken", fails)
    check(ledger, failed.id)
    with pytest.raises(KeyboardInterrupt), ledger.run("Stop?") as stopped:
        raise KeyboardInterrupt
    check(ledger, stopped.id)


SPANS = {
    "resourceSpans": [
        {
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
            "scopeSpans": [
                {
                    "spans": [
                        {
                            "traceId": "5b8efff798038103d269b633813fc60c",
                            "spanId": f"eee19b7ec3c1b17{number}",
                            **({"parentSpanId": "eee19b7ec3c1b170"} if number else {}),
                            "name": name,
                            "startTimeUnixNano": str(1_767_603_600_000_000_000 + number),
                            "endTimeUnixNano": str(1_767_603_601_000_000_000 + number),
                            "attributes": [
                                {"key": key, "value": {"stringValue": value}} for key, value in attributes.items()
                            ],
                        }
                        for number, (name, attributes) in enumerate(
                            [
                                ("agent", {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "Planner"}),
                                (
                                    "chat",
                                    {
                                        "gen_ai.operation.name": "chat",
                                        "gen_ai.request.model": "small-1",
                                        "gen_ai.input.messages": '[{"role": "user", "content": "Approve?"}]',
                                        "gen_ai.output.messages": '[{"role": "assistant", "content": "Yes."}]',
                                    },
                                ),
                                ("execute_tool", {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}),
                            ]
                        )
                    ]
                }
            ],
        }
    ]
}


@pytest.mark.parametrize(
    "document",
    [
        SPANS,
        {"messages": [{"role": "user", "content": "?"}, {"role": "Planner", "content": "Let us see."}], "reward": 1},
        {"id": "7", "steps": [{"kind": "tool", "name": "look", "result": None}], "attributes": {"writes": ["x"]}},
        {"question": "2+2?", "answer": "4", "correct": True},
    ],
    ids=["spans", "transcript", "trajectory", "row"],
)
def test_imported_runs_are_exported_again(document: Any) -> None:
    """A run that another tool recorded goes on from here as our own JSON; names and verdicts with it."""
    ledger = woodrat.open(":memory:", agent="clerk")
    (run,) = ledger.runs.import_(document)
    check(ledger, run)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.floats(-1e6, 1e6) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["score", "limit", "tags", "ä"])
FACTS = st.dictionaries(NAMES, st.integers(0, 9), max_size=3)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("tool"), NAMES, VALUES),
        st.tuples(st.just("broken"), NAMES, VALUES),
        st.tuples(st.just("model"), NAMES, VALUES),
        st.tuples(st.just("note"), NAMES, VALUES),
        st.tuples(st.just("show"), NAMES, VALUES),
        st.tuples(st.just("store"), NAMES, st.integers(0, 9)),
        st.tuples(st.just("decide"), NAMES, FACTS),
        st.tuples(st.just("chosen"), NAMES, FACTS),
    ),
    max_size=6,
)


@given(steps=STEPS, answer=VALUES, inputs=st.dictionaries(NAMES, VALUES, max_size=2))
@settings(max_examples=60, deadline=None)
def test_any_run_comes_back_the_same(steps: list[Any], answer: Any, inputs: Any) -> None:
    """Whatever a run reads, calls, decides, writes and answers."""
    ledger = woodrat.open(":memory:", agent="clerk")
    ledger.store({"entity_type": "loan", "id": "1", "score": 5})

    def raises() -> Any:
        raise RuntimeError("no")

    with ledger.run("Approve?", inputs=inputs, subject="loan/1") as run:
        for kind, name, value in steps:
            if kind == "tool":
                run.tool(name, lambda value=value: value)
            elif kind == "broken":
                with pytest.raises(RuntimeError):
                    run.tool(name, raises)
            elif kind == "model":
                run.model("small-1", lambda value=value: value, messages=[{"role": "user", "content": name}])
            elif kind == "note":
                run.note(name, value)
            elif kind == "show":
                run.show("loan/1")
            elif kind == "store":
                run.store({"entity_type": "loan", "id": "1", name: value})
            elif kind == "decide":
                rules = [{"chosen": "low", "when": {name: {"lt": 4}}, "label": name}]
                run.decide(name, value, rules, default="high", on_missing="skip")
            else:
                run.decided(name, "plan", because="so", on=value)
        run.answer(answer)
    check(ledger, run.id)
