"""A replay that differs shows the first message and the first words that differ, never digests."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import woodrat
from woodrat.cli.main import main
from woodrat.replay.result import Divergence

LONG = "The applicant has lived at the same address for many years and pays on time. " * 40


def diverged(recorded: dict[str, Any], asked: dict[str, Any], kind: str = "model") -> Divergence:
    """Return the divergence of a call that was recorded with something and is asked with something else."""
    with woodrat.open(":memory:") as ledger:

        def agent(run: Any, given: dict[str, Any]) -> Any:
            if kind == "model":
                return run.model("small-1", lambda: "said", **given).result
            return run.tool("lookup", lambda **args: "found", **given).result

        with ledger.run("Ask?") as run:
            run.answer(agent(run, recorded))
        divergence = ledger.runs.replay(run.id, lambda run: agent(run, asked)).runs[0].divergence
        assert divergence is not None
        assert divergence.kind == "not_recorded"
        return divergence


def prompt(text: str) -> dict[str, Any]:
    """Return a request whose second message has a text."""
    return {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}]}


def test_a_prompt_shows_which_message_and_which_words() -> None:
    """The message by number and role, and the words around the first difference on both sides, however long it is."""
    found = diverged(prompt(LONG + "Its score is 580 now." + LONG), prompt(LONG + "Its score is 610 now." + LONG))
    assert found.difference is not None
    assert (found.difference.message, found.difference.role, found.difference.path) == (2, "user", "content")
    assert "score is 580 now" in str(found.difference.old)
    assert "score is 610 now" in str(found.difference.new)
    told = str(found)
    assert told.startswith("model small-1: not in the recording; message 2 (user), content: ")
    assert "580" in told
    assert "610" in told
    assert len(told) < 400
    assert found.to_json()["difference"]["message"] == 2


def test_a_message_more_and_other_parameters_are_shown() -> None:
    """A message that is new is shown whole; where the messages are the same, the parameters are."""
    more = {"messages": [*prompt("Why?")["messages"], {"role": "tool", "content": "a result"}]}
    found = diverged(prompt("Why?"), more)
    assert "message 3 (tool)" in str(found)
    assert '"a result" where the recording has nothing' in str(found)
    cold = diverged({**prompt("Why?"), "parameters": {"t": 0}}, {**prompt("Why?"), "parameters": {"t": 1}})
    assert 'parameters.t: "1" where the recording has "0"' in str(cold)
    unknown = diverged({"request": {"a": 1}}, {"request": {"a": 2}})
    assert "whose messages are not recorded" in str(unknown)


def test_arguments_of_tools_are_shown_by_path() -> None:
    """The path inside the arguments, and both values."""
    old, new = {"filter": {"city": "Lisbon", "limit": 3}}, {"filter": {"city": "Porto", "limit": 3}}
    assert 'filter.city: "Porto" where the recording has "Lisbon"' in str(diverged(old, new, "tool"))


def test_long_answers_are_shown_where_they_differ() -> None:
    """An answer that is long is shown around its first difference."""
    with woodrat.open(":memory:") as ledger:
        with ledger.run("Ask?") as run:
            run.answer(LONG + "approved")
        found = str(ledger.runs.replay(run.id, lambda run: LONG + "rejected").runs[0].divergence)
        assert "approved" in found
        assert "rejected" in found
        assert len(found) < 300


def replayed(agent: Any, is_changed: list[bool]) -> Divergence:
    """Return how an agent differs that does something else once the flag is set."""
    with woodrat.open(":memory:") as ledger:
        with ledger.run("Ask?") as run:
            run.answer(agent(run))
        is_changed[0] = True
        divergence = ledger.runs.replay(run.id, agent).runs[0].divergence
        assert divergence is not None
        assert divergence.difference is not None
        return divergence


def test_a_decision_shows_the_fact_or_the_rule_that_differs() -> None:
    """By path, with both values; a rule that is new or gone has one side."""
    flag = [False]

    def by_fact(run: Any) -> Any:
        rules = [woodrat.Rule("no", {"score": {"lt": 600}})]
        return run.decide("risk", {"score": 700 if flag[0] else 500}, rules, default="yes").stage

    found = replayed(by_fact, flag)
    assert found.difference is not None
    assert (found.kind, found.difference.path) == ("decision", "facts.score")
    assert (found.difference.old, found.difference.new) == ("500", "700")
    assert found.to_json()["difference"]["path"] == "facts.score"
    flag[0] = False

    def by_rule(run: Any) -> Any:
        rules = [woodrat.Rule("no", {"score": {"lt": 600 if flag[0] else 500}}, label="Low")]
        return run.decide("risk", {"score": 550}, rules, default="yes").stage

    found = replayed(by_rule, flag)
    assert found.difference is not None
    assert (found.difference.path, found.difference.old, found.difference.new) == ("rule 1.when.score.lt", "500", "600")
    flag[0] = False

    def by_new_rule(run: Any) -> Any:
        rules = [woodrat.Rule("no", {"score": {"lt": 600}})] if flag[0] else []
        return run.decide("risk", {"score": 550}, rules, default="yes").stage

    found = replayed(by_new_rule, flag)
    assert found.difference is not None
    assert (found.difference.path, found.difference.old) == ("rule 1", None)
    assert "600" in str(found.difference.new)


def test_a_run_inside_a_write_and_a_result_show_where_they_differ() -> None:
    """The path and both sides, of whatever is not as it was."""
    flag = [False]

    def inside(run: Any) -> None:
        with run.ledger.run("Inner?", inputs={"city": "Porto" if flag[0] else "Lisbon"}):
            pass

    def write(run: Any) -> None:
        run.store({"entity_type": "loan", "id": "1", "city": "Porto" if flag[0] else "Lisbon"})

    def block(run: Any) -> None:
        with run.tool("look") as call:
            call.result = {"city": "Porto" if flag[0] else "Lisbon"}

    for agent, kind, path in (
        (inside, "not_recorded", "inputs.city"),
        (write, "not_recorded", "city"),
        (block, "result", "city"),
    ):
        flag[0] = False
        found = replayed(agent, flag)
        assert found.difference is not None
        assert (found.kind, found.difference.path) == (kind, path)
        assert (found.difference.old, found.difference.new) == ("Lisbon", "Porto")


def test_the_command_shows_the_words_below_each_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Which message, who speaks, and the words as recorded and as they came now."""
    module = tmp_path / "worded_agent.py"
    module.write_text(
        "def agent(run, score=580):\n"
        "    told = [{'role': 'user', 'content': f'Its score is {score} now.'}]\n"
        "    return run.model('small-1', lambda: 'said', messages=told).result\n"
        "def changed(run):\n"
        "    return agent(run, 610)\n",
        "utf-8",
    )
    path = tmp_path / "one.db"
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(tmp_path))
        agent = import_module("worded_agent").agent
        with woodrat.open(path) as ledger, ledger.run("Ask?") as run:
            run.answer(agent(run))
        code = main(["--db", str(path), "-o", "table", "runs", "replay", run.id, "--with", "worded_agent:changed"])
    shown = capsys.readouterr().out
    assert code == 1
    assert f"{run.id}: model small-1, message 1 (user), content" in shown
    assert "\n- Its score is 580 now.\n+ Its score is 610 now.\n" in shown
