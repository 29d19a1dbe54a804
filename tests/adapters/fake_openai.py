"""A server of OpenAI's API that a test scripts: chat completions and responses, whole and streamed, over no network."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import openai

Reply = Callable[[list[dict[str, Any]]], dict[str, Any]]
"""From the messages of a chat to the message that the model answers with."""


def calls(*called: tuple[str, dict[str, Any]]) -> dict[str, Any]:
    """Return a message that asks for tools, under ids that are new every time."""
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": f"call_{uuid.uuid4().hex}",
                "type": "function",
                "function": {"name": name, "arguments": json.dumps(arguments)},
            }
            for name, arguments in called
        ],
    }


def says(text: str) -> dict[str, Any]:
    """Return a message of text."""
    return {"role": "assistant", "content": text}


class FakeServer:
    """Answers by a script, and counts what it was asked."""

    def __init__(self, reply: Reply) -> None:
        self._reply = reply
        self.requests: list[dict[str, Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        """Answer one request."""
        asked = json.loads(request.content)
        self.requests.append(asked)
        if request.url.path.endswith("/chat/completions"):
            message = self._reply(asked["messages"])
            if "error" in message:
                return httpx2.Response(400, json=message)
            return self._chat(asked, message)
        said = asked["input"]
        message = self._reply([{"role": "user", "content": said}] if isinstance(said, str) else said)
        return self._response(asked, message)

    def client(self) -> openai.OpenAI:
        """Return a client of this server."""
        http = httpx2.Client(transport=httpx2.MockTransport(self))
        return openai.OpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=http, max_retries=0)

    def async_client(self) -> openai.AsyncOpenAI:
        """Return a client for a loop."""
        http = httpx2.AsyncClient(transport=httpx2.MockTransport(self))
        return openai.AsyncOpenAI(api_key="k", base_url="http://127.0.0.1/v1", http_client=http, max_retries=0)

    def _chat(self, asked: dict[str, Any], message: dict[str, Any]) -> httpx2.Response:
        about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "created": len(self.requests), "model": asked["model"]}
        usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        if not asked.get("stream"):
            choice = {"index": 0, "message": message, "finish_reason": finish}
            return httpx2.Response(
                200, json={**about, "object": "chat.completion", "choices": [choice], "usage": usage}
            )

        def events() -> Iterator[str]:
            def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
                choice = {"index": 0, "delta": delta, "finish_reason": finish}
                body = {**about, "object": "chat.completion.chunk", "choices": [choice]}
                return f"data: {json.dumps(body)}\n\n"

            yield chunk({"role": "assistant", "content": ""})
            for word in (message.get("content") or "").split(" "):
                yield chunk({"content": f"{word} "})
            for number, call in enumerate(message.get("tool_calls") or ()):
                function = call["function"]
                start = {"index": number, "id": call["id"], "type": "function"}
                yield chunk({"tool_calls": [{**start, "function": {"name": function["name"], "arguments": ""}}]})
                for piece in (function["arguments"][:4], function["arguments"][4:]):
                    yield chunk({"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
            if message.get("breaks"):
                yield f"data: {json.dumps({'error': {'message': 'overloaded'}})}\n\n"
            yield chunk({}, finish)
            if (asked.get("stream_options") or {}).get("include_usage"):
                last = {**about, "object": "chat.completion.chunk", "choices": [], "usage": usage}
                yield f"data: {json.dumps(last)}\n\n"
            yield "data: [DONE]\n\n"

        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text="".join(events()))

    def _response(self, asked: dict[str, Any], message: dict[str, Any]) -> httpx2.Response:
        output: list[dict[str, Any]] = [
            {
                "type": "function_call",
                "id": f"fc_{uuid.uuid4().hex}",
                "call_id": call["id"],
                "name": call["function"]["name"],
                "arguments": call["function"]["arguments"],
                "status": "completed",
            }
            for number, call in enumerate(message.get("tool_calls") or ())
        ]
        if message.get("content"):
            part = {"type": "output_text", "text": message["content"], "annotations": []}
            output.append(
                {
                    "type": "message",
                    "id": f"msg_{uuid.uuid4().hex}",
                    "role": "assistant",
                    "status": "completed",
                    "content": [part],
                }
            )
        whole: dict[str, Any] = {
            "id": f"resp_{uuid.uuid4().hex}",
            "object": "response",
            "created_at": len(self.requests),
            "model": asked["model"],
            "status": "completed",
            "output": output,
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
            "usage": {
                "input_tokens": 7,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 3,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": 10,
            },
        }
        if not asked.get("stream"):
            return httpx2.Response(200, json=whole)

        def events() -> Iterator[str]:
            numbers = iter(range(1000))

            def event(kind: str, **about: Any) -> str:
                return (
                    f"event: {kind}\ndata: {json.dumps({'type': kind, 'sequence_number': next(numbers), **about})}\n\n"
                )

            yield event("response.created", response={**whole, "status": "in_progress", "output": []})
            for index, item in enumerate(output):
                is_text = item["type"] == "message"
                empty = {**item, "content": []} if is_text else {**item, "arguments": ""}
                yield event("response.output_item.added", output_index=index, item=empty)
                at = {"output_index": index, "item_id": item["id"]}
                if is_text:
                    part = item["content"][0]
                    at["content_index"] = 0
                    yield event("response.content_part.added", **at, part={**part, "text": ""})
                    for word in part["text"].split(" "):
                        yield event("response.output_text.delta", **at, delta=f"{word} ", logprobs=[])
                    yield event("response.output_text.done", **at, text=part["text"], logprobs=[])
                    yield event("response.content_part.done", **at, part=part)
                else:
                    yield event("response.function_call_arguments.delta", **at, delta=item["arguments"])
                    name, arguments = item["name"], item["arguments"]
                    yield event("response.function_call_arguments.done", **at, name=name, arguments=arguments)
                yield event("response.output_item.done", output_index=index, item=item)
            yield event("response.completed", response=whole)

        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text="".join(events()))
