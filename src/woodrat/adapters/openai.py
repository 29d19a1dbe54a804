"""OpenAI: a client of the official SDK whose model calls are recorded in the current run.

    client = woodrat.openai.wrap(openai.OpenAI())

Chat completions and responses are recorded, sync and async, streams while they are read. A replayed or resumed run
gets its answers from the log, through the SDK's own code: the recorded answer is parsed as if it had come over the
network. Outside of a run the client is unchanged.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary

import openai

import woodrat
from woodrat.adapters.step import RecordedCall, guarded, parsed, tool_step

Client = TypeVar("Client", openai.OpenAI, openai.AsyncOpenAI)

CHAT, RESPONSES = "/chat/completions", "/responses"
_PARTS: Final = {CHAT: "messages", RESPONSES: "input"}
"""Members of a request with the messages to the model."""
_TRANSPORT: Final = ("stream", "stream_options", "background")
"""Members that affect the delivery of an answer, not the question."""
_VOLATILE: Final = {
    CHAT: ("id", "created", "system_fingerprint", "service_tier"),
    RESPONSES: ("created_at", "completed_at"),
}
"""Members that are new in every answer and that no later request names."""
_STAND_INS: Final[dict[str, dict[str, Any]]] = {
    CHAT: {"id": "chatcmpl-recorded", "created": 0, "object": "chat.completion"},
    RESPONSES: {"created_at": 0, "object": "response"},
}
"""Placeholders for these when an answer comes from the log."""
_RAW_HEADER: Final = "X-Stainless-Raw-Response"


def wrap(client: Client) -> Client:
    """Return a client like this one whose model calls are recorded in the run that is current at the call.

    It shares the connections of the given client, which stays unchanged.
    """
    kind: Any = type(client)
    if not isinstance(client, (openai.OpenAI, openai.AsyncOpenAI)):
        problem = f"expected a client of the openai package, got {kind.__module__}.{kind.__qualname__}"
        remedy = "Send openai.OpenAI(), openai.AsyncOpenAI() or a client of Azure."
        raise woodrat.Refused([woodrat.Fault("client", problem, remedy)], "Nothing was wrapped.")
    if getattr(kind, "records_runs", False):
        return client
    wrapped = client.copy()
    wrapped.__class__ = _recorded_class(kind)
    return wrapped


@cache
def _recorded_class(kind: type[Any]) -> type[Any]:
    """Return a subclass of a client class that records its POST requests; copies of its clients are recorded too."""

    def post(self: Any, path: str, **given: Any) -> Any:
        request = Request.read(path, given)
        send: Callable[..., Any] = partial(kind.post, path=path, **given)
        return send(self) if request is None else request.send(self, send)

    async def post_async(self: Any, path: str, **given: Any) -> Any:
        request = Request.read(path, given)
        send: Callable[..., Any] = partial(kind.post, path=path, **given)
        return await (send(self) if request is None else request.send_async(self, send))

    chosen = post_async if issubclass(kind, openai.AsyncOpenAI) else post
    names = {"post": chosen, "records_runs": True, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), names)


class Request:
    """One request to a model, made inside a run."""

    def __init__(self, run: woodrat.Run, path: str, body: Mapping[str, Any], stream: bool, raw: str | None) -> None:
        self.run = run
        self.path = path
        self.body = body
        """The request body."""
        self.stream = stream
        self.raw = raw
        """How the caller wants the answer: raw with its headers, as a stream of bytes, or read."""
        self.number = 0
        """Which request of its run it is."""
        self.model = str(body.get("model", "unknown"))
        said = body.get(_PARTS[path])
        messages = [{"role": "user", "content": said}] if isinstance(said, str) else steady_ids(run, said)
        if isinstance(body.get("instructions"), str) and isinstance(messages, list):
            messages = [{"role": "system", "content": body["instructions"]}, *messages]
        self.messages = messages
        left_out = {"model", _PARTS[path], "instructions", *_TRANSPORT}
        parameters = {name: value for name, value in body.items() if name not in left_out}
        self.parameters = steady_ids(run, parameters) if path == RESPONSES else parameters
        self.wants_usage = bool((body.get("stream_options") or {}).get("include_usage"))

    @classmethod
    def read(cls, path: str, given: Mapping[str, Any]) -> Request | None:
        """Return a request to record; None for any other, and outside of runs."""
        run = woodrat.current_run() if path in _PARTS else None
        body = given.get("body")
        if run is None or not isinstance(body, Mapping):
            return None
        options = given.get("options") or {}
        headers = options.get("headers") or {}
        raw = headers.get(_RAW_HEADER) if isinstance(headers, Mapping) else None
        with guarded(run):
            whole = {**body, **(options.get("extra_json") or {})}
            return cls(run, path, whole, bool(given.get("stream")), raw)
        return None

    def step(self) -> RecordedCall:
        """Return the step of this request, not opened yet."""
        asked = {"messages": self.messages, "model": self.model, "parameters": self.parameters}
        return RecordedCall(
            self.run,
            lambda: self.run.model(self.model, messages=self.messages, parameters=self.parameters, request=asked),
        )

    def open(self) -> RecordedCall:
        """Record the tools whose results it carries, then begin its own step."""
        with guarded(self.run):
            self.number = _numbers[self.run] = _numbers.get(self.run, 0) + 1
            record_tools(self.run, self.messages)
        return self.step().open()

    def close(self, step: RecordedCall, answer: Any) -> None:
        """Record its outcome."""
        record = None
        with guarded(self.run):
            record = self.record(answer)
        self.end(step, record)

    def end(self, step: RecordedCall, record: Any, error: BaseException | None = None) -> None:
        """Close its step, and remember the requested tool calls."""
        if self.path == RESPONSES:
            with guarded(self.run):
                record = with_steady_ids(self.run, record, self.number)
        usage = record.get("usage") if isinstance(record, dict) else None
        step.close(record, usage=usage if isinstance(usage, dict) else None, error=error)
        if error is None:
            with guarded(self.run):
                expect_tools(self.run, record)

    def record(self, answer: Any) -> Any:
        """Return the recorded part of an answer: everything from the server except members that change every time."""
        if self.raw is not None:
            if self.raw == "stream" or self.stream:
                self.run.note(f"{self.model}: the answer was read as raw bytes and is not recorded")
                return None
            answer = answer.parse()
        said = answer.to_dict(warnings=False) if hasattr(answer, "to_dict") else answer
        return steadied(self.path, said)

    def edited(self, step: RecordedCall, send: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that sends the messages of the step, which a fork may have edited."""
        prompt = self.messages if step.call is None else step.call.prompt
        if prompt is self.messages or not isinstance(prompt, list):
            return send
        body = {**self.body, _PARTS[self.path]: prompt}
        if self.path == RESPONSES and "instructions" in body and prompt[:1] and prompt[0].get("role") == "system":
            body |= {"instructions": prompt[0].get("content"), _PARTS[self.path]: prompt[1:]}
        return partial(send, body=body)

    def send(self, client: Any, send: Callable[[Any], Any]) -> Any:
        """Send it, unless the log has its answer."""
        step = self.open()
        if step.recorded:
            result = step.replayed()
            expect_tools(self.run, result)
            with _offline(self, client, result) as offline:
                return send(offline)
        try:
            answer = self.edited(step, send)(client)
        except BaseException as error:
            step.close(error=error)
            raise
        if self.stream and self.raw is None:
            return RecordedStream(answer, PartialStream(self, step))
        self.close(step, answer)
        return answer

    async def send_async(self, client: Any, send: Callable[[Any], Any]) -> Any:
        """Like `send`, but writes to the ledger in a worker thread, so that the event loop is free."""
        step = await asyncio.to_thread(self.open)
        if step.recorded:
            result = step.replayed()
            expect_tools(self.run, result)
            async with _offline(self, client, result) as offline:
                return await send(offline)
        try:
            answer = await self.edited(step, send)(client)
        except Exception as error:
            await asyncio.to_thread(step.close, error=error)
            raise
        except BaseException as error:
            # Without a worker thread: a task that is being cancelled may not wait for one.
            step.close(error=error)
            raise
        if self.stream and self.raw is None:
            return RecordedAsyncStream(answer, PartialStream(self, step))
        await asyncio.to_thread(self.close, step, answer)
        return answer


def steadied(path: str, answer: Any) -> Any:
    """Return an answer without the members that change every time."""
    if not isinstance(answer, Mapping):
        return answer
    return {name: value for name, value in answer.items() if name not in _VOLATILE[path]}


# -- ids of responses: later requests name them, and they are new every time -----------------------------------------

_numbers: WeakKeyDictionary[woodrat.Run, int] = WeakKeyDictionary()
"""By run: the number of its requests."""
_stand_ins: WeakKeyDictionary[woodrat.Run, dict[str, str]] = WeakKeyDictionary()
"""By run: the ids of its responses, each with the recorded id."""


def with_steady_ids(run: woodrat.Run, record: Any, number: int) -> Any:
    """Return a response whose ids, its own and those of its items, are its number in the run."""
    if not isinstance(record, Mapping):
        return record
    known = _stand_ins.setdefault(run, {})
    ids = [record.get("id"), *(item.get("id") for item in record.get("output") or () if isinstance(item, Mapping))]
    for place, name in enumerate(ids):
        if isinstance(name, str):
            known.setdefault(name, f"{name.partition('_')[0]}_{number}" + (f"_{place}" if place else ""))
    return steady_ids(run, record)


def steady_ids(run: woodrat.Run, value: Any) -> Any:
    """Return a value in which the ids of earlier responses of a run are the recorded ones."""
    known = _stand_ins.get(run)
    return _renamed(value, known) if known else value


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return names.get(value, value)
    if isinstance(value, Mapping):
        return {key: _renamed(item, names) for key, item in value.items()}
    return [_renamed(item, names) for item in value] if isinstance(value, list) else value


# -- tools without a recording of their own ----------------------------------------------------------------------------

_expected: WeakKeyDictionary[woodrat.Run, dict[str, tuple[str, Any, int]]] = WeakKeyDictionary()
"""By run and id of a call: the requested tool, its arguments, and the number of its calls by then if the tool recorded
the call itself.
"""


def expect_tools(run: woodrat.Run, record: Any) -> None:
    """Remember the tool calls that a model requests."""
    waiting = _expected.setdefault(run, {})
    counts: dict[str, int] = {}
    for call_id, name, arguments in _calls_in(record):
        counts[name] = counts.get(name, run.called.get(name, 0)) + 1
        waiting[call_id] = (name, parsed(arguments), counts[name])


def record_tools(run: woodrat.Run, messages: Any) -> None:
    """Record the tool calls whose results a request carries, unless the tool recorded them itself."""
    waiting = _expected.get(run)
    if not waiting or not isinstance(messages, list):
        return
    for call_id, result in _results_in(messages):
        if call_id not in waiting:
            continue
        name, arguments, count = waiting.pop(call_id)
        if run.called.get(name, 0) < count:
            tool_step(run, name, arguments).open().close(parsed(result))


def _calls_in(record: Any) -> Iterator[tuple[str, str, Any]]:
    if not isinstance(record, Mapping):
        return
    for choice in record.get("choices") or ():
        for call in (choice.get("message") or {}).get("tool_calls") or ():
            function = call.get("function") or call.get("custom") or {}
            yield str(call.get("id")), str(function.get("name")), function.get("arguments", function.get("input"))
    for item in record.get("output") or ():
        if item.get("type") in ("function_call", "custom_tool_call"):
            yield str(item.get("call_id")), str(item.get("name")), item.get("arguments", item.get("input"))


def _results_in(messages: list[Any]) -> Iterator[tuple[str, Any]]:
    for message in messages:
        if not isinstance(message, Mapping):
            continue
        if message.get("role") == "tool":
            yield str(message.get("tool_call_id")), _text_of(message.get("content"))
        elif message.get("type") in ("function_call_output", "custom_tool_call_output"):
            yield str(message.get("call_id")), _text_of(message.get("output"))


def _text_of(content: Any) -> Any:
    """Return the text of a content that is a list of parts of text."""
    parts = content if isinstance(content, list) else []
    texts: list[Any] = [part.get("text") for part in parts if isinstance(part, Mapping)]
    return "".join(texts) if texts and all(isinstance(text, str) for text in texts) else content


# -- streams ----------------------------------------------------------------------------------------------------------


class PartialStream:
    """The part of a stream read so far; recorded at its end, or when reading stops."""

    def __init__(self, request: Request, step: RecordedCall) -> None:
        self._request = request
        self._step = step
        self._items: list[Any] = []
        self._is_over = False

    def add(self, item: Any) -> None:
        """Take note of an item that was handed to the reader."""
        self._items.append(item)

    def finish(self, error: BaseException | None = None, *, whole: bool = False) -> None:
        """Record it, once; `whole` if the stream reached its end."""
        if self._is_over:
            return
        self._is_over = True
        record: Any = None
        with guarded(self._request.run):
            said = [item.to_dict(warnings=False) for item in self._items if hasattr(item, "to_dict")]
            gather = gathered_chunks if self._request.path == CHAT else gathered_events
            record = steadied(self._request.path, gather(said))
            if not whole and error is None:
                record["abandoned"] = True
        self._request.end(self._step, record, error)

    def watched(self, response: Any) -> Any:
        """Return an HTTP response that reports when it is closed: helpers of the SDK close it instead of the stream."""
        return _WatchedResponse(response, self)


class _WatchedResponse:
    def __init__(self, response: Any, reading: PartialStream) -> None:
        self._response, self._reading = response, reading

    @property  # type: ignore[misc]
    def __class__(self) -> type[Any]:
        return type(self._response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._response, name)

    def close(self) -> None:
        self._response.close()
        self._reading.finish()

    async def aclose(self) -> None:
        await self._response.aclose()
        await asyncio.to_thread(self._reading.finish)


class RecordedStream(openai.Stream[Any]):
    """A stream of the SDK, recorded while it is read; stopping early is not a failure."""

    def __init__(self, stream: openai.Stream[Any], reading: PartialStream) -> None:
        self._stream, self._reading = stream, reading
        self.response = reading.watched(stream.response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __next__(self) -> Any:
        try:
            item = next(self._stream)
        except StopIteration:
            self._reading.finish(whole=True)
            raise
        except BaseException as error:
            self._reading.finish(error)
            raise
        self._reading.add(item)
        return item

    def __iter__(self) -> Iterator[Any]:
        try:
            while True:
                try:
                    item = next(self)
                except StopIteration:
                    return
                yield item
        finally:
            self._reading.finish()

    def close(self) -> None:
        """Close the stream; the part read so far is recorded."""
        self._stream.close()
        self._reading.finish()

    def __del__(self) -> None:
        if "_reading" in self.__dict__:
            self._reading.finish()


class RecordedAsyncStream(openai.AsyncStream[Any]):
    """Like `RecordedStream`, for an event loop."""

    def __init__(self, stream: openai.AsyncStream[Any], reading: PartialStream) -> None:
        self._stream, self._reading = stream, reading
        self.response = reading.watched(stream.response)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __anext__(self) -> Any:
        try:
            item = await anext(self._stream)
        except StopAsyncIteration:
            await asyncio.to_thread(self._reading.finish, whole=True)
            raise
        except BaseException as error:
            # Without a worker thread: a task that is being cancelled may not wait for one.
            self._reading.finish(error)
            raise
        self._reading.add(item)
        return item

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            while True:
                try:
                    item = await anext(self)
                except StopAsyncIteration:
                    return
                yield item
        finally:
            self._reading.finish()

    async def close(self) -> None:
        """Close the stream; what was read of it is recorded."""
        await self._stream.close()
        await asyncio.to_thread(self._reading.finish)

    def __del__(self) -> None:
        if "_reading" in self.__dict__:
            self._reading.finish()


def gathered_chunks(chunks: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the chat completion assembled from chunks."""
    whole: dict[str, Any] = {"object": "chat.completion"}
    choices: dict[int, dict[str, Any]] = {}
    for chunk in chunks:
        whole.update({name: value for name, value in chunk.items() if name not in ("choices", "object", "usage")})
        if chunk.get("usage"):
            whole["usage"] = chunk["usage"]
        for part in chunk.get("choices") or ():
            number = part.get("index", 0)
            choice = choices.setdefault(number, {"index": number, "message": {}, "finish_reason": None})
            choice["message"] = _joined(choice["message"], part.get("delta") or {})
            choice.update({name: part[name] for name in part if name not in ("index", "delta") and part[name]})
    for choice in choices.values():
        calls = choice["message"].get("tool_calls") or ()
        for call in calls:
            call.pop("index", None)
    return {**whole, "choices": [choices[number] for number in sorted(choices)]}


_NAMES: Final = ("role", "id", "type", "index", "name")
"""Members of a delta that come whole."""


def _joined(whole: dict[str, Any], delta: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with one more chunk: texts are concatenated, list items matched by `index`."""
    for name, value in delta.items():
        before = whole.get(name)
        if value is None:
            whole.setdefault(name, None)
        elif isinstance(value, list):
            items: list[Any] = before if isinstance(before, list) else []
            for piece in value:
                number = piece.get("index") if isinstance(piece, Mapping) else None
                same = next((item for item in items if number is not None and item.get("index") == number), None)
                if same is None:
                    items.append(_joined({}, piece) if isinstance(piece, Mapping) else piece)
                else:
                    _joined(same, piece)
            whole[name] = items
        elif isinstance(value, Mapping):
            whole[name] = _joined(before if isinstance(before, dict) else {}, value)
        elif isinstance(value, str) and isinstance(before, str) and name not in _NAMES:
            whole[name] = before + value
        else:
            whole[name] = value
    return whole


def gathered_events(events: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the response assembled from events: the last complete one, or the parts so far."""
    whole: dict[str, Any] = {"object": "response", "output": []}
    items: dict[int, dict[str, Any]] = {}
    for event in events:
        kind, number = event.get("type"), event.get("output_index", 0)
        if isinstance(event.get("response"), Mapping):
            whole = dict(event["response"])
            if kind in ("response.completed", "response.incomplete", "response.failed"):
                return whole
        elif kind in ("response.output_item.added", "response.output_item.done"):
            items[number] = dict(event.get("item") or {})
        elif kind == "response.output_text.delta":
            item = items.setdefault(number, {"type": "message", "role": "assistant"})
            said = (item.get("content") or [{}])[0].get("text") or ""
            item["content"] = [{"type": "output_text", "text": said + event.get("delta", ""), "annotations": []}]
        elif kind == "response.function_call_arguments.delta":
            item = items.setdefault(number, {"type": "function_call"})
            item["arguments"] = item.get("arguments", "") + event.get("delta", "")
    return {**whole, "output": [items[number] for number in sorted(items)] or whole.get("output", [])}


# -- answers from the log ---------------------------------------------------------------------------------------------


class _offline:
    """A client like another whose server is one recorded answer."""

    def __init__(self, request: Request, client: Any, record: Any) -> None:
        if not isinstance(record, Mapping) or not ("choices" in record or "output" in record):
            problem = f"the recorded answer of {request.model} is not whole"
            remedy = "It was too long to keep, redacted or erased; run the agent again."
            raise woodrat.Refused([woodrat.Fault(f"run {request.run.id}", problem, remedy)], "Nothing was sent.")
        is_async = isinstance(client, openai.AsyncOpenAI)
        kind: Any = openai.DefaultAsyncHttpxClient if is_async else openai.DefaultHttpxClient
        # the HTTP library of the installed SDK
        http: Any = sys.modules[kind.__mro__[1].__module__.partition(".")[0]]
        answer = {**_STAND_INS[request.path], **record}
        if request.stream:
            lines = spelled_chunks(answer, request.wants_usage) if request.path == CHAT else spelled_events(answer)
            response = partial(http.Response, 200, headers={"content-type": "text/event-stream"}, text="".join(lines))
        else:
            response = partial(http.Response, 200, json=answer)
        self._http = kind(transport=http.MockTransport(lambda sent: response()))
        self._client = client.copy(http_client=self._http)

    def __enter__(self) -> Any:
        return self._client

    def __exit__(self, *ended: object) -> None:
        """Leave it open: a stream may still be read, and it holds no connection."""

    async def __aenter__(self) -> Any:
        return self._client

    async def __aexit__(self, *ended: object) -> None:
        """As `__exit__`."""


def spelled_chunks(answer: Mapping[str, Any], wants_usage: bool) -> Iterator[str]:
    """Yield the server-sent events of a recorded chat completion: all it says at once, then how it ended."""
    about = {name: answer.get(name) for name in ("id", "created", "model")}
    whole = {**about, "object": "chat.completion.chunk"}
    for choice in answer.get("choices") or ():
        delta = dict(choice.get("message") or {})
        if delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": number, **call} for number, call in enumerate(delta["tool_calls"])]
        part = {"index": choice.get("index", 0), "delta": delta, "finish_reason": None}
        yield _event({**whole, "choices": [part]})
        if not answer.get("abandoned"):
            ended = {**part, "delta": {}, "finish_reason": choice.get("finish_reason")}
            yield _event({**whole, "choices": [ended]})
    if wants_usage and answer.get("usage"):
        yield _event({**whole, "choices": [], "usage": answer["usage"]})
    yield "data: [DONE]\n\n"


def spelled_events(answer: Mapping[str, Any]) -> Iterator[str]:
    """Yield the server-sent events of a recorded response, each item of it at once."""
    number = iter(range(sys.maxsize))

    def event(kind: str, **about: Any) -> str:
        return _event({"type": kind, "sequence_number": next(number), **about})

    said = {name: value for name, value in answer.items() if name != "abandoned"}
    yield event("response.created", response={**said, "status": "in_progress", "output": []})
    for index, item in enumerate(answer.get("output") or ()):
        place = {"output_index": index, "item_id": item.get("id", f"item_{index}")}
        parts = item.get("content") if item.get("type") == "message" else None
        empty = {**item, **({"content": []} if parts is not None else {})}
        if item.get("type") == "function_call":
            empty["arguments"] = ""
        yield event("response.output_item.added", output_index=index, item=empty)
        for spot, part in enumerate(parts or ()):
            if part.get("type") == "output_text":
                at, text = {**place, "content_index": spot}, part.get("text", "")
                yield event("response.content_part.added", **at, part={**part, "text": ""})
                yield event("response.output_text.delta", **at, delta=text, logprobs=[])
                yield event("response.output_text.done", **at, text=text, logprobs=[])
                yield event("response.content_part.done", **at, part=part)
        if item.get("type") == "function_call":
            yield event("response.function_call_arguments.delta", **place, delta=item.get("arguments", ""))
            yield event(
                "response.function_call_arguments.done",
                **place,
                name=item.get("name"),
                arguments=item.get("arguments", ""),
            )
        yield event("response.output_item.done", output_index=index, item=item)
    if not answer.get("abandoned"):
        yield event(f"response.{answer.get('status') or 'completed'}", response=said)


def _event(data: Mapping[str, Any]) -> str:
    name = f"event: {data['type']}\n" if "type" in data else ""
    return f"{name}data: {json.dumps(data)}\n\n"
