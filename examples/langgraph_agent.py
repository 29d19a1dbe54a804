"""A LangGraph agent, recorded: two runs, one changed fact, and what made them differ.

    python examples/langgraph_agent.py [DATABASE]

Nothing is downloaded and no model is called: `SmallModel` stands for one, and answers from what it is sent.
"""

from __future__ import annotations

import json
import sys
import uuid
from tempfile import TemporaryDirectory
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

import woodrat

BUREAU = {"creditScore": 580}


@tool
def lookup_credit_bureau(application: int) -> dict[str, int]:
    """Return what the credit bureau says."""
    return BUREAU


class SmallModel(BaseChatModel):
    """Looks the score up and then decides."""

    @property
    def _llm_type(self) -> str:
        return "small-1"

    def _generate(self, messages: list[BaseMessage], *given: Any, **about: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
            score = json.loads(str(last.content))["creditScore"]
            answer = AIMessage("Rejected." if score < 600 else "Approved.")
        else:
            call = {"name": "lookup_credit_bureau", "args": {"application": 42}, "id": f"call_{uuid.uuid4().hex}"}
            answer = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=answer)])


def loan_officer() -> Any:
    """Return the agent: an ordinary graph, which knows nothing of Woodrat."""
    model = SmallModel()

    def ask(state: MessagesState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("ask", ask)
    graph.add_node("tools", ToolNode([lookup_credit_bureau]))
    graph.add_edge(START, "ask")
    graph.add_conditional_edges("ask", tools_condition, {"tools": "tools", END: END})
    graph.add_edge("tools", "ask")
    return graph.compile()


def main(database: str) -> None:
    """Ask the same twice, the second time with another score, and compare."""
    ledger = woodrat.open(database, agent="loan-officer")
    graph = loan_officer()
    recorder = woodrat.langgraph.callback(ledger)
    for score in (580, 640):
        BUREAU["creditScore"] = score
        question = HumanMessage("Should we approve application #42?")
        state = graph.invoke({"messages": [question]}, config={"callbacks": [recorder]})
        print(state["messages"][-1].content)
    second, first = (run.id for run in ledger.runs.list().items)
    print(ledger.runs.diff(first, second).sentence)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/loans.db")
