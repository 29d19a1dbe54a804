"""Parting: what it costs to say where runs part, against reading the entries involved once."""

from __future__ import annotations

import json
from collections.abc import Sequence
from random import Random
from typing import Any

import woodrat
from bench.records import ENTITIES_MAX, Records
from bench.rows import Row
from bench.stage import Stage
from bench.timing import Figure, take_turns
from woodrat.api.ledger import Ledger
from woodrat.ledger import entry_index

CONTRACTS = 10
"""Entities that a run reads in turn; one of them is overwritten between two runs."""
CHAT_STEPS = 500
"""Steps of each of two chats, calls of models and of tools in turn."""
CROWD_STEPS = 20
"""Steps of each run of a crowd."""
MANY_STEPS = 50
"""Steps of each run of a large crowd."""
IMPORTED = 100
"""Runs of a large crowd that are imported at once."""

RULES = [woodrat.Rule("standard", {"payment_terms": "Net-30"}, label="Short terms")]


def rows() -> list[Row]:
    """Return what is measured."""
    return [
        Row("runs-diff", "runs diff of two runs of {s.batch:,} steps / reading their entries", 6, _diff),
        Row(
            "runs-diff-chat",
            f"runs diff of two noisy chats of {CHAT_STEPS} steps / reading their entries",
            6,
            _diff_chat,
        ),
        Row("runs-diff-many", "the same after {s.runs:,} other runs / in a ledger of its own", 1.5, _diff_many),
        Row("runs-group", "runs group of {s.runs:,} runs / reading their entries", 6, _group),
        Row(
            "runs-group-many",
            "runs group of {s.many_runs:,} runs of 50 steps / of a tenth of them, a run",
            1.5,
            _group_many,
        ),
    ]


def _run(ledger: Ledger, steps: int) -> str:
    """Run a pipeline of so many steps: reads, tools and decisions in turn; return the run's id."""
    with ledger.run("Which are to be paid?", inputs={"month": "2026-02"}) as run:
        for number in range(steps):
            ref = f"contract/{number // 3 % CONTRACTS}"
            if number % 3 == 0:
                read = run.show(ref)
            elif number % 3 == 1:
                with run.tool("ledger_entry", contract=ref, line=number) as call:
                    call.result = {"line": number, "amount": number * 100, "paid": number % 2 == 0}
            else:
                run.decide("payment-terms", read, RULES, default="escalate")
        run.answer("done")
    return run.id


def _pair(ledger: Ledger, steps: int) -> tuple[str, str]:
    """Return two runs between which one contract was overwritten."""
    ledger.store([{"entity_type": "contract", "id": f"{n}", "payment_terms": "Net-30"} for n in range(CONTRACTS)])
    first = _run(ledger, steps)
    ledger.as_agent("billing-bot").store({"entity_type": "contract", "id": "1", "payment_terms": "Net-45"})
    return first, _run(ledger, steps)


def _read(ledger: Ledger, runs: Sequence[str]) -> None:
    """Read the entries of runs from the engine, once."""
    with ledger.context.engine.view(ledger.tenant) as view:
        head = view.head().position
        assert all(entry_index.run_entries(view, run, head) for run in runs)


def _diff(stage: Stage) -> Figure:
    with woodrat.open(str(stage.folder / "diff.db")) as ledger:
        pair = _pair(ledger, stage.scale.batch)
        return take_turns(
            [[None]] * 30,
            lambda _: _parted(ledger, pair),
            lambda _: _read(ledger, pair),
            warm=2,
            seconds=stage.scale.seconds,
        )


def _chat(number: int) -> dict[str, Any]:
    """Return a chat with tools: other words, ids and times in each, two calls in another order, one other argument."""
    rng = Random(number)
    messages: list[dict[str, Any]] = [{"role": "user", "content": f"Hello, this is what I ask you for: {rng.random()}"}]
    turns = list(range(CHAT_STEPS // 2))
    turns[5], turns[6] = (turns[6], turns[5]) if number else (turns[5], turns[6])
    for turn in turns:
        call, product = f"call_{rng.getrandbits(64):016x}", turn + (number if turn == CHAT_STEPS // 3 else 0)
        arguments = json.dumps({"product": f"P-{product:05d}", "fields": ["price", "stock"]})
        function = {"name": "get_product", "arguments": arguments}
        words = f"Let me have a look at the next one of your list, and then we will see: {rng.random()}"
        messages.append({"role": "assistant", "content": words, "tool_calls": [{"id": call, "function": function}]})
        found = {
            "price": product * 3,
            "stock": {"girona": turn, "lugo": 7},
            "request_id": f"{rng.getrandbits(128):032x}",
        }
        messages.append({"role": "tool", "tool_call_id": call, "content": json.dumps(found)})
    return {
        "id": f"chat-{number}",
        "messages": [*messages, {"role": "assistant", "content": "That is all, thank you."}],
    }


def _diff_chat(stage: Stage) -> Figure:
    """Two chats that are worded differently throughout, and differ in one argument."""
    with woodrat.open(str(stage.folder / "diff-chat.db")) as ledger:
        pair = [ledger.runs.import_(_chat(number))[0] for number in (0, 1)]

        def ours(_: object) -> None:
            found = ledger.runs.diff(*pair)
            assert found.cause is not None, "they part"
            assert found.cause.path == "product", "at the other argument"

        return take_turns([[None]] * 30, ours, lambda _: _read(ledger, pair), warm=2, seconds=stage.scale.seconds)


def _diff_many(stage: Stage) -> Figure:
    """Two runs in a ledger that holds much else, against the same two in a ledger of their own."""
    with (
        woodrat.open(str(stage.folder / "diff-alone.db")) as alone,
        woodrat.open(str(stage.folder / "diff-many.db")) as many,
    ):
        source = Records("diff-many")
        for start in range(0, stage.scale.many // 10, stage.scale.batch):
            batch = source.batch(range(start, min(start + stage.scale.batch, ENTITIES_MAX)))
            many.store(batch.records, observed_at=batch.observed_at)
        for _ in range(stage.scale.runs // 2):
            _pair(many, 3)
        few, amid = _pair(alone, stage.scale.batch), _pair(many, stage.scale.batch)
        for _ in range(stage.scale.runs // 2):
            _pair(many, 3)
        return take_turns(
            [[None]] * 30,
            lambda _: _parted(many, amid),
            lambda _: _parted(alone, few),
            warm=2,
            seconds=stage.scale.seconds,
        )


def _group(stage: Stage) -> Figure:
    """A crowd of which a few runs part, per run."""
    with woodrat.open(str(stage.folder / "crowd.db")) as ledger:
        runs = [*_pair(ledger, CROWD_STEPS)]
        runs += [_run(ledger, CROWD_STEPS) for _ in range(stage.scale.runs - len(runs))]

        def ours(_: object) -> None:
            assert len(ledger.runs.group(runs).main.clusters) == 1, "the first run parts"

        return take_turns(
            [[None]] * 10,
            ours,
            lambda _: _read(ledger, runs),
            per=len(runs),
            per_against=len(runs),
            warm=1,
            seconds=stage.scale.seconds,
        )


def _group_many(stage: Stage) -> Figure:
    """A large crowd with noise and a reason why some runs are bad, against a tenth of it, per run."""
    many = stage.scale.many_runs
    few = max(1, many // 10)
    with (
        woodrat.open(str(stage.folder / "crowd-many.db")) as large,
        woodrat.open(str(stage.folder / "crowd-few.db")) as small,
    ):
        for ledger, count in ((large, many), (small, few)):
            random = Random("crowd")
            for start in range(0, count, IMPORTED):
                numbers = range(start, min(start + IMPORTED, count))
                ledger.runs.import_([_noisy(number, random) for number in numbers])

        def group(ledger: Ledger) -> None:
            separation = ledger.runs.group(agent=ledger.context.agent).separation
            assert separation is not None, "they have rewards"
            assert few < 100 or separation.traits[0].text == "called tool_7 with mode fast", "and a reason"

        return take_turns(
            [[None]] * 3,
            lambda _: group(large),
            lambda _: group(small),
            per=many,
            per_against=few,
            seconds=stage.scale.seconds,
        )


def _noisy(number: int, random: Random) -> dict[str, Any]:
    """Return a run of many steps as a document: values that vary, and one argument that makes it bad."""
    bad = random.random() < 0.2
    steps: list[dict[str, Any]] = []
    for place in range(MANY_STEPS):
        if place % 2:
            steps.append({"kind": "model", "model": "small-1", "response": f"I did {random.random()} of it."})
            continue
        args = {"key": f"k-{number}", "mode": "fast" if bad and place == 14 else "safe", "size": random.randint(1, 5)}
        result = {"total": random.random(), "id": f"{random.getrandbits(128):032x}", "rows": [random.randint(1, 9)] * 3}
        steps.append({"kind": "tool", "name": f"tool_{place // 2}", "args": args, "result": result})
    about = {"query": f"Do {number}.", "inputs": {"key": f"k-{number}"}, "reward": 0 if bad else 1}
    return {"id": f"crowd-{number}", **about, "steps": steps, "answer": "Done."}


def _parted(ledger: Ledger, pair: tuple[str, str]) -> None:
    found = ledger.runs.diff(*pair)
    assert found.cause is not None, "they part"
    assert found.cause.kind == "state", "at what was overwritten"
