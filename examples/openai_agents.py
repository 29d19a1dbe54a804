"""Two agents of the OpenAI Agents SDK, recorded: two runs, one changed fact, and what made them differ.

    python examples/openai_agents.py [DATABASE]

Nothing is downloaded and no model is called: scripted models stand for them, and answer from what they are sent.
"""

from __future__ import annotations

import ast
import sys
import uuid
from collections.abc import Callable
from tempfile import TemporaryDirectory
from typing import Any

from agents import Agent, function_tool, set_tracing_disabled
from agents.testing import ModelCall, ModelStep, ScriptedModel, assistant_message, function_call

import woodrat

BUREAU = {"creditScore": 580}


@function_tool
def lookup_credit_bureau(application: int) -> dict[str, int]:
    """Return what the credit bureau says."""
    return BUREAU


def called(name: str, **arguments: Any) -> ModelStep:
    """Return an answer that asks for a tool, under an id that is new every time."""
    return ModelStep(output=[function_call(name, arguments, call_id=f"call_{uuid.uuid4().hex}")])


def decide(call: ModelCall) -> ModelStep:
    """Decide by the score that the tool returned."""
    items: Any = call.input
    score = ast.literal_eval(items[-1]["output"])["creditScore"]
    return ModelStep(output=[assistant_message("Rejected." if score < 600 else "Approved.")])


def scripted(*steps: ModelStep | Callable[[ModelCall], ModelStep]) -> ScriptedModel:
    """Return a model that answers by a script."""
    return ScriptedModel([step if isinstance(step, ModelStep) else ModelStep.respond(step) for step in steps])


def desk() -> Agent:
    """Return the agents: a front desk that hands over to a loan officer. They know nothing of Woodrat."""
    script = scripted(called("lookup_credit_bureau", application=42), decide)
    officer = Agent(name="officer", model=script, tools=[lookup_credit_bureau])
    return Agent(name="desk", model=scripted(called("transfer_to_officer")), handoffs=[officer])


def main(database: str) -> None:
    """Ask the same twice, the second time with another score, and compare."""
    set_tracing_disabled(True)  # the SDK's own tracing would send spans to OpenAI
    ledger = woodrat.open(database, agent="loan-officer")
    recorder = woodrat.openai_agents.recorder(ledger)
    for score in (580, 640):
        BUREAU["creditScore"] = score
        print(recorder.run_sync(desk(), "Should we approve application #42?").final_output)
    second, first = (run.id for run in ledger.runs.list().items)
    print(ledger.runs.diff(first, second).sentence)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/loans.db")
