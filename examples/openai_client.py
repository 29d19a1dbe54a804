"""A loop over the OpenAI SDK, recorded: two runs, one changed fact, and what made them differ.

    python examples/openai_client.py [DATABASE]

Nothing is downloaded and no model is called: `small_model` stands for the server, and answers from what it is sent.
"""

from __future__ import annotations

import json
import sys
import uuid
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import openai

import woodrat

TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "lookup_credit_bureau",
            "parameters": {"type": "object", "properties": {"application": {"type": "integer"}}},
        },
    }
]


def small_model(request: httpx2.Request) -> httpx2.Response:
    """Answer as a model does that looks the score up and then decides."""
    asked = json.loads(request.content)
    last = asked["messages"][-1]
    if last["role"] == "tool":
        score = json.loads(last["content"])["creditScore"]
        message: dict[str, Any] = {"role": "assistant", "content": "Rejected." if score < 600 else "Approved."}
    else:
        called = {"name": "lookup_credit_bureau", "arguments": '{"application": 42}'}
        call = {"id": f"call_{uuid.uuid4().hex}", "type": "function", "function": called}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 20, "completion_tokens": 5, "total_tokens": 25}
    about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": 1, "model": asked["model"]}
    return httpx2.Response(200, json={**about, "choices": [choice], "usage": usage})


def loan_officer(client: openai.OpenAI, bureau: dict[str, int], question: str) -> str:
    """Decide about an application: an ordinary loop, which knows nothing of Woodrat."""
    messages: list[Any] = [{"role": "user", "content": question}]
    while True:
        completion = client.chat.completions.create(model="small-1", messages=messages, tools=TOOLS)
        message = completion.choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message)
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(bureau)})


def main(database: str) -> None:
    """Ask the same twice, the second time with another score, and compare."""
    http = httpx2.Client(transport=httpx2.MockTransport(small_model))
    client = woodrat.openai.wrap(openai.OpenAI(api_key="offline", base_url="http://127.0.0.1", http_client=http))
    ledger = woodrat.open(database, agent="loan-officer")
    runs = []
    for score in (580, 640):
        with ledger.run("Should we approve application #42?") as run:
            answer = loan_officer(client, {"creditScore": score}, run.asked)
            run.answer(answer)
        runs.append(run.id)
        print(answer)
    print(ledger.runs.diff(*runs).sentence)


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        main(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/loans.db")
