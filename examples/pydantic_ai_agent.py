"""A Pydantic AI agent, recorded: two runs, one changed fact, and what made them differ.

    python examples/pydantic_ai_agent.py [DATABASE]

Nothing is downloaded and no model is called: `small_model` stands for one, and answers from what it is sent.
"""

from __future__ import annotations

import sys
from tempfile import TemporaryDirectory

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import woodrat

BUREAU = {"creditScore": 580}


def small_model(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Look the score up and then decide."""
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        score = last.content["creditScore"]
        return ModelResponse(parts=[TextPart("Rejected." if score < 600 else "Approved.")])
    return ModelResponse(parts=[ToolCallPart("lookup_credit_bureau", {"application": 42})])


def loan_officer(ledger: woodrat.Ledger) -> Agent:
    """Return the agent: an ordinary one, with a capability more."""
    model = FunctionModel(small_model, model_name="small-1")
    agent = Agent(model, name="loan-officer", capabilities=[woodrat.pydantic_ai.capability(ledger)])

    @agent.tool_plain
    def lookup_credit_bureau(application: int) -> dict[str, int]:
        """Return what the credit bureau says."""
        return BUREAU

    return agent


def main(database: str) -> None:
    """Ask the same twice, the second time with another score, and compare."""
    ledger = woodrat.open(database, agent="loan-officer")
    agent = loan_officer(ledger)
    for score in (580, 640):
        BUREAU["creditScore"] = score
        print(agent.run_sync("Should we approve application #42?").output)
    second, first = (run.id for run in ledger.runs.list().items)
    print(ledger.runs.diff(first, second).sentence)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/loans.db")
