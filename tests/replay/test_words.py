"""A replay that differs shows the first message and the first words that differ, never digests."""

from __future__ import annotations

from typing import Any

import woodrat
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
