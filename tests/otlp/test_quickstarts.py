"""The quickstarts of docs/guide/otlp.md: what stands there is run, with real instrumentation and the real exporter."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.server.conftest import Start, engine, start

import woodrat

__all__ = ["engine", "start"]

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/guide/otlp.md").read_text("utf-8")
TOOL = "lookup_credit_bureau"
QUESTION = "Should we approve application #42?"

AGENTS = {
    "OpenAI SDK": """
import httpx2, openai
example = runpy.run_path("examples/openai_client.py")
http = httpx2.Client(transport=httpx2.MockTransport(example["small_model"]))
client = openai.OpenAI(api_key="offline", base_url="http://127.0.0.1", http_client=http)
def run_agent():
    return example["loan_officer"](client, {"creditScore": score}, question)
""",
    "LangGraph": """
example = runpy.run_path("examples/langgraph_agent.py")
example["BUREAU"]["creditScore"] = score
answer = example["loan_officer"]().invoke({"messages": [("user", question)]})["messages"][-1].content
""",
    "OpenAI Agents": """
import httpx2, json, openai
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool
@function_tool
def lookup_credit_bureau(application: int) -> str:
    return json.dumps({"creditScore": score})
server = runpy.run_path("examples/openai_client.py")["small_model"]
http = httpx2.AsyncClient(transport=httpx2.MockTransport(server))
client = openai.AsyncOpenAI(api_key="offline", base_url="http://127.0.0.1", http_client=http)
model = OpenAIChatCompletionsModel("small-1", client)
officer = Agent(name="officer", model=model, tools=[lookup_credit_bureau])
answer = Runner.run_sync(officer, question).final_output
""",
    "Pydantic AI": """
example = runpy.run_path("examples/pydantic_ai_agent.py")
example["BUREAU"]["creditScore"] = score
answer = example["loan_officer"](None).run_sync(question).output
""",
}
"""Agents like those of the examples, run without a recorder."""


def blocks_under(heading: str | None) -> list[str]:
    """Return the Python of a section of the page; of its beginning without a heading."""
    sections = re.split(r"^## (.+)$", PAGE, flags=re.MULTILINE)
    text = sections[0] if heading is None else sections[sections.index(heading) + 1]
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def program(heading: str) -> str:
    """Return the program that a reader of the page has: its set-up, an agent, and how that is run, for two scores."""
    (setup,) = blocks_under(None)
    first, *rest = blocks_under(heading)
    body = textwrap.indent("\n".join([AGENTS[heading], *rest, "print(answer)"]), "    ")
    return "\n".join([setup, first, f"import runpy\nquestion = {QUESTION!r}", "for score in (580, 640):", body])


@pytest.mark.parametrize("heading", AGENTS)
def test_a_quickstart_leaves_runs_that_can_be_compared(heading: str, start: Start, tmp_path: Path) -> None:
    """An agent is asked twice, with one changed fact: each time is one run, and `runs diff` shows both scores."""
    server = start()
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(("OTEL_", "OPENAI_", "LANG"))},
        "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": f"http://127.0.0.1:{server.port}/v1/traces",
        "OTEL_SERVICE_NAME": "loan-officer",
        "NO_PROXY": "127.0.0.1",
    }
    command = [sys.executable, "-c", program(heading)]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["Rejected.", "Approved."]
    ledger = woodrat.open(tmp_path / "served.db")
    second, first = (ledger.runs.show(run.id) for run in ledger.runs.list().items)
    assert (first.status, second.status) == ("done", "done")
    assert "Rejected." in str(first.models[-1].response)
    assert "Approved." in str(second.models[-1].response)
    if heading != "OpenAI SDK":  # which calls no tools
        assert [call.name for call in first.tool_calls] == [TOOL]
    told = str(ledger.runs.diff(first.id, second.id))
    assert "580" in told
    assert "640" in told
