"""The recorder of the OpenAI SDK, with the real SDK and a server that a test scripts."""

from __future__ import annotations

import asyncio
import io
import json
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest
from pydantic import BaseModel
from tests.adapters.fake_openai import FakeServer, calls, says

import woodrat

QUESTION = "Should we approve application #42?"


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """A ledger in memory; a problem of recording fails the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", woodrat.RecordingWarning)
        yield woodrat.open(":memory:", agent="loan-officer")


def decides(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Look the score up, then decide by it."""
    last = messages[-1]
    told = last.get("content") if last.get("role") == "tool" else last.get("output")
    if told is None:
        return calls(("bureau", {"application": 42}))
    return says("Rejected, sorry." if json.loads(told)["creditScore"] < 600 else "Approved, of course.")


# Loops as users write them: each asks, answers the tools, and returns the last text.


def chat(client: openai.OpenAI, bureau: Callable[[], Any]) -> str:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        message = client.chat.completions.create(model="small-1", messages=messages, temperature=0.5).choices[0].message
        if not message.tool_calls:
            return str(message.content)
        messages.append(message)
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(bureau())})


def chat_stream(client: openai.OpenAI, bureau: Callable[[], Any]) -> str:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        text = ""
        called: dict[int, Any] = {}
        options: Any = {"include_usage": True}
        for chunk in client.chat.completions.create(
            model="small-1", messages=messages, stream=True, stream_options=options
        ):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    assert piece.function is not None
                    known = called.setdefault(piece.index, {"id": piece.id, "name": piece.function.name, "args": ""})
                    known["args"] += piece.function.arguments or ""
        if not called:
            return text.strip()
        functions = [
            {"id": c["id"], "type": "function", "function": {"name": c["name"], "arguments": c["args"]}}
            for c in called.values()
        ]
        messages.append({"role": "assistant", "tool_calls": functions})
        for one in called.values():
            messages.append({"role": "tool", "tool_call_id": one["id"], "content": json.dumps(bureau())})


def chat_helper(client: openai.OpenAI, bureau: Callable[[], Any]) -> str:
    messages: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        with client.chat.completions.stream(model="small-1", messages=messages) as stream:
            for _ in stream:
                pass
            message = stream.get_final_completion().choices[0].message
        if not message.tool_calls:
            return str(message.content).strip()
        messages.append(message)
        for call in message.tool_calls:
            messages.append({"role": "tool", "tool_call_id": call.id, "content": json.dumps(bureau())})


def responses(client: openai.OpenAI, bureau: Callable[[], Any]) -> str:
    said: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        response = client.responses.create(model="small-1", input=said, instructions="Be brief.")
        called = [item for item in response.output if item.type == "function_call"]
        if not called:
            return response.output_text
        said += response.output
        for call in called:
            said.append({"type": "function_call_output", "call_id": call.call_id, "output": json.dumps(bureau())})


def responses_chained(client: openai.OpenAI, bureau: Callable[[], Any]) -> str:
    said: list[Any] = [{"role": "user", "content": QUESTION}]
    before: Any = openai.omit
    while True:
        response = client.responses.create(model="small-1", input=said, previous_response_id=before)
        called = [item for item in response.output if item.type == "function_call"]
        if not called:
            return response.output_text
        before = response.id
        said = [
            {"type": "function_call_output", "call_id": call.call_id, "output": json.dumps(bureau())} for call in called
        ]


def responses_helper(client: openai.OpenAI, bureau: Callable[[], Any]) -> str:
    said: list[Any] = [{"role": "user", "content": QUESTION}]
    while True:
        with client.responses.stream(model="small-1", input=said) as stream:
            for _ in stream:
                pass
            response = stream.get_final_response()
        called = [item for item in response.output if item.type == "function_call"]
        if not called:
            return response.output_text
        for call in called:
            item = {"type": "function_call", "call_id": call.call_id, "name": call.name, "arguments": call.arguments}
            said += [
                item,
                {"type": "function_call_output", "call_id": call.call_id, "output": json.dumps(bureau())},
            ]


LOOPS = [chat, chat_stream, chat_helper, responses, responses_chained, responses_helper]


def record(ledger: woodrat.Ledger, loop: Any, client: openai.OpenAI, score: int) -> str:
    """Record one run of a loop whose tool knows this score; return its id."""
    with ledger.run(QUESTION) as run:
        run.answer(loop(client, lambda: {"creditScore": score}))
    assert run.problems == []
    return run.id


@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_is_recorded_and_the_changed_fact_is_named(ledger: woodrat.Ledger, loop: Any) -> None:
    """Models, the tool under its own name, tokens and answer are recorded; `runs diff` names the fact that changed."""
    client = woodrat.openai.wrap(FakeServer(decides).client())
    first, second = record(ledger, loop, client, 580), record(ledger, loop, client, 640)
    shown = ledger.runs.show(first)
    assert shown.answer == "Rejected, sorry."
    assert [(call.name, call.args, call.result) for call in shown.tool_calls] == [
        ("bureau", {"application": 42}, {"creditScore": 580})
    ]
    assert [model.model for model in shown.models] == ["small-1", "small-1"]
    assert QUESTION in json.dumps(shown.models[0].messages)
    if loop is not chat_helper:  # which does not ask for it
        assert (shown.models[0].input_tokens, shown.models[0].output_tokens) == (7, 3)
    assert shown.models[0].preview == '→ bureau {"application": 42}'
    assert (shown.models[1].preview or "").strip() == "Rejected, sorry."
    divergence = ledger.runs.diff(first, second)
    assert all(row.first != row.second for row in divergence.rows if row.mark != "same")
    assert '→ bureau {"application": 42}' in {row.first for row in divergence.rows}
    sentence = divergence.sentence
    assert "bureau" in sentence
    assert "creditScore=580" in sentence
    assert "creditScore=640" in sentence


@pytest.mark.parametrize("loop", LOOPS)
def test_two_equal_runs_are_the_same(ledger: woodrat.Ledger, loop: Any) -> None:
    """Ids and times that the server makes up anew part no two runs."""
    ids = [record(ledger, loop, woodrat.openai.wrap(FakeServer(decides).client()), 580) for _ in range(2)]
    assert ledger.runs.diff(*ids).same


@pytest.mark.parametrize("loop", LOOPS)
def test_a_replay_is_answered_from_the_log(ledger: woodrat.Ledger, loop: Any) -> None:
    """Unchanged code replays as the same without a request, also through the SDK's helpers for streams."""
    run = record(ledger, loop, woodrat.openai.wrap(FakeServer(decides).client()), 580)

    def refuses(messages: Any) -> Any:
        raise AssertionError("the server was asked")

    client = woodrat.openai.wrap(FakeServer(refuses).client())
    replayed = ledger.runs.replay(run, lambda _: loop(client, lambda: {"creditScore": 580}))
    assert replayed.same, replayed.table()
    other = ledger.runs.replay(run, lambda _: loop(client, lambda: {"creditScore": 590}))
    assert not other.same


def test_a_run_that_was_cut_off_is_resumed_without_paying_twice(ledger: woodrat.Ledger) -> None:
    """What the log holds is not asked again; from there on the server is."""

    def cut_off() -> Any:
        raise SystemExit("killed here")

    run = ledger.run(QUESTION).start()
    with run.current(), pytest.raises(SystemExit):
        chat(woodrat.openai.wrap(FakeServer(decides).client()), cut_off)
    interrupted = run.id
    del run
    server = FakeServer(decides)
    client = woodrat.openai.wrap(server.client())
    resumed = ledger.runs.resume(interrupted, lambda _: chat(client, lambda: {"creditScore": 580}))
    assert resumed.answer == "Rejected, sorry."
    assert len(server.requests) == 1
    shown = ledger.runs.show(interrupted)
    assert (shown.status, len(shown.models), len(shown.tool_calls)) == ("done", 2, 1)


def test_a_tool_that_records_itself_is_recorded_once(ledger: woodrat.Ledger) -> None:
    """Whether a tool is marked with `woodrat.tool` or not, each call of it is one step."""
    client = woodrat.openai.wrap(FakeServer(decides).client())

    @woodrat.tool
    def bureau(application: int) -> dict[str, int]:
        return {"creditScore": 580}

    def agent(run: woodrat.Run) -> str:
        return chat(client, lambda: bureau(42))

    with ledger.run(QUESTION) as run:
        run.answer(agent(run))
    assert [call.name for call in ledger.runs.show(run.id).tool_calls] == ["bureau"]
    assert ledger.runs.replay(run.id, agent).same


def test_parallel_calls_are_told_apart(ledger: woodrat.Ledger) -> None:
    """Two calls of one tool in one answer are two steps, each with its own arguments and result."""

    def twice(messages: list[dict[str, Any]]) -> dict[str, Any]:
        if messages[-1]["role"] == "tool":
            return says("done")
        return calls(("bureau", {"application": 1}), ("bureau", {"application": 2}))

    scores = iter([{"creditScore": 1}, {"creditScore": 2}])
    client = woodrat.openai.wrap(FakeServer(twice).client())
    with ledger.run(QUESTION) as run:
        chat(client, lambda: next(scores))
    found = ledger.runs.show(run.id).tool_calls
    assert [(call.args, call.result) for call in found] == [
        ({"application": 1}, {"creditScore": 1}),
        ({"application": 2}, {"creditScore": 2}),
    ]


def test_async_clients_are_recorded(ledger: woodrat.Ledger) -> None:
    """Whole answers and streams of an async client are recorded, also when several are asked at once."""
    client = woodrat.openai.wrap(FakeServer(lambda messages: says(f"re {messages[-1]['content']}")).async_client())

    async def whole(number: int) -> str | None:
        asked: Any = [{"role": "user", "content": str(number)}]
        return (await client.chat.completions.create(model="small-1", messages=asked)).choices[0].message.content

    async def streamed() -> str:
        text = ""
        async with await client.responses.create(model="small-1", input="x", stream=True) as stream:
            async for event in stream:
                text += event.delta if event.type == "response.output_text.delta" else ""
        return text.strip()

    async def agent(run: woodrat.Run) -> list[Any]:
        return [*await asyncio.gather(*map(whole, range(3))), await streamed()]

    async def main() -> str:
        async with ledger.run(QUESTION) as run:
            run.answer(await agent(run))
        return run.id

    run = asyncio.run(main())
    shown = ledger.runs.show(run)
    assert shown.answer == ["re 0", "re 1", "re 2", "re x"]
    assert len(shown.models) == 4
    assert not any(model.errored for model in shown.models)
    assert ledger.runs.replay(run, agent).same


def first_only(client: openai.OpenAI) -> Any:
    """Read some of a stream and leave it open, as a reader does who has seen enough; return it."""
    messages: Any = [{"role": "user", "content": QUESTION}]
    stream = client.chat.completions.create(model="small-1", messages=messages, stream=True)
    for number, _ in enumerate(stream):
        if number == 1:
            break
    return stream


def helper_only(client: openai.OpenAI) -> Any:
    """The same by the SDK's helper."""
    with client.chat.completions.stream(model="small-1", messages=[{"role": "user", "content": QUESTION}]) as stream:
        for event in stream:
            if event.type == "content.delta" and event.delta:
                break
    return stream


def closed_early(client: openai.OpenAI) -> Any:
    """Take two items by hand and close."""
    messages: Any = [{"role": "user", "content": QUESTION}]
    stream = client.chat.completions.create(model="small-1", messages=messages, stream=True)
    next(stream), next(stream)
    stream.close()
    return stream


def dropped(client: openai.OpenAI) -> Any:
    """Take two items by hand and forget the stream."""
    messages: Any = [{"role": "user", "content": QUESTION}]
    stream = client.chat.completions.create(model="small-1", messages=messages, stream=True)
    next(stream), next(stream)


@pytest.mark.parametrize("read", [first_only, helper_only, closed_early, dropped])
def test_an_abandoned_stream_is_recorded_as_far_as_it_was_read(ledger: woodrat.Ledger, read: Any) -> None:
    """What the reader got is the response, marked as abandoned, however the stream was left; it is no error."""
    client = woodrat.openai.wrap(FakeServer(lambda messages: says("one two three four")).client())
    with ledger.run(QUESTION) as run:
        left_open = read(client)
    del left_open
    (model,) = ledger.runs.show(run.id).models
    response: Any = model.response
    assert (model.errored, response["abandoned"]) == (False, True)
    assert response["choices"][0]["message"]["content"].strip() == "one"


def test_an_abandoned_stream_of_events_is_recorded(ledger: woodrat.Ledger) -> None:
    """Of a response that was left half-way, the text so far is recorded."""
    client = woodrat.openai.wrap(FakeServer(lambda messages: says("one two three four")).client())
    with ledger.run(QUESTION) as run:
        for event in client.responses.create(model="small-1", input="x", stream=True):
            if event.type == "response.output_text.delta":
                break
    (model,) = ledger.runs.show(run.id).models
    response: Any = model.response
    assert response["abandoned"] is True
    assert response["output"][0]["content"][0]["text"] == "one "


def test_errors_reach_the_caller_unchanged(ledger: woodrat.Ledger) -> None:
    """An error of the API and one in the middle of a stream are recorded, and raised as the SDK raises them."""
    refused = {"error": {"message": "no such model", "code": "model_not_found"}}
    replies = iter([refused, {**says("one two"), "breaks": True}])
    client = woodrat.openai.wrap(FakeServer(lambda messages: next(replies)).client())
    messages: Any = [{"role": "user", "content": QUESTION}]

    def agent(run: woodrat.Run) -> str:
        with pytest.raises(openai.BadRequestError, match="no such model"):
            client.chat.completions.create(model="small-2", messages=messages)
        with pytest.raises(openai.APIError, match="overloaded"):
            list(client.chat.completions.create(model="small-1", messages=messages, stream=True))
        return "gave up"

    with ledger.run(QUESTION) as run:
        run.answer(agent(run))
    first, second = ledger.runs.show(run.id).models
    assert first.errored
    assert "no such model" in str(first.error)
    assert second.errored
    assert "overloaded" in str(second.error)
    assert ledger.runs.replay(run.id, agent).same


def test_parsed_answers_and_raw_responses_are_recorded(ledger: woodrat.Ledger) -> None:
    """What `parse` and `with_raw_response` return stays what it is, live and in a replay."""

    class Verdict(BaseModel):
        approved: bool

    client = woodrat.openai.wrap(FakeServer(lambda messages: says('{"approved": true}')).client())
    messages: Any = [{"role": "user", "content": QUESTION}]

    def agent(run: woodrat.Run) -> list[Any]:
        parsed = client.chat.completions.parse(model="small-1", messages=messages, response_format=Verdict)
        raw = client.chat.completions.with_raw_response.create(model="small-1", messages=messages)
        verdict = parsed.choices[0].message.parsed
        assert isinstance(verdict, Verdict)
        return [verdict.approved, raw.parse().choices[0].message.content, raw.status_code]

    with ledger.run(QUESTION) as run:
        run.answer(agent(run))
    shown = ledger.runs.show(run.id)
    assert shown.answer == [True, '{"approved": true}', 200]
    assert len(shown.models) == 2
    assert ledger.runs.replay(run.id, agent).same


def test_bytes_that_the_caller_reads_are_left_alone(ledger: woodrat.Ledger) -> None:
    """Where the caller asks for the bytes, they are not read for the record; the run says that they are not there."""
    client = woodrat.openai.wrap(FakeServer(lambda messages: says("hello")).client())
    messages: Any = [{"role": "user", "content": QUESTION}]
    with ledger.run(QUESTION) as run:
        with client.chat.completions.with_streaming_response.create(model="small-1", messages=messages) as response:
            assert b"hello" in response.read()
        raw = client.chat.completions.with_raw_response.create(model="small-1", messages=messages, stream=True)
        assert "hello" in "".join(chunk.choices[0].delta.content or "" for chunk in raw.parse())
    shown = ledger.runs.show(run.id)
    assert [model.response for model in shown.models] == [None, None]
    assert [note.text for note in shown.notes] == ["small-1: the answer was read as raw bytes and is not recorded"] * 2


def test_the_client_behaves_the_same_when_recording_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """A recorder that fails at every step changes no answer, no stream and no error; the run names the problem."""
    ledger = woodrat.open(":memory:", agent="loan-officer")
    replies = iter([says("a"), says("b c"), {"error": {"message": "no"}}])
    client = woodrat.openai.wrap(FakeServer(lambda messages: next(replies)).client())
    messages: Any = [{"role": "user", "content": QUESTION}]

    def fails(*arguments: Any, **given: Any) -> Any:
        raise RuntimeError("the recorder is broken")

    with ledger.run(QUESTION) as run, warnings.catch_warnings():
        warnings.simplefilter("ignore", woodrat.RecordingWarning)
        monkeypatch.setattr(run, "model", fails)
        completion = client.chat.completions.create(model="small-1", messages=messages)
        assert completion.choices[0].message.content == "a"
        chunks = list(client.chat.completions.create(model="small-1", messages=messages, stream=True))
        assert "".join(c.choices[0].delta.content or "" for c in chunks) == "b c "
        with pytest.raises(openai.BadRequestError):
            client.chat.completions.create(model="small-1", messages=messages)
    assert "the recorder is broken" in str(run.problems[0])


def test_outside_of_a_run_nothing_is_recorded(ledger: woodrat.Ledger) -> None:
    """Without a current run the client is as it was, and so is the one that was wrapped inside of one."""
    plain = FakeServer(lambda messages: says("hello")).client()
    wrapped = woodrat.openai.wrap(plain)
    messages: Any = [{"role": "user", "content": "hi"}]
    assert wrapped.chat.completions.create(model="m", messages=messages).choices[0].message.content == "hello"
    with ledger.run(QUESTION) as run:
        plain.chat.completions.create(model="m", messages=messages)
    assert ledger.runs.show(run.id).models == ()


def test_copies_record_too() -> None:
    """`with_options` of a wrapped client records; wrapping twice does not record twice; the type stays."""
    ledger = woodrat.open(":memory:")
    client = woodrat.openai.wrap(woodrat.openai.wrap(FakeServer(lambda messages: says("hello")).client()))
    assert isinstance(client, openai.OpenAI)
    with ledger.run(QUESTION) as run:
        client.with_options(timeout=3).chat.completions.create(model="m", messages=[])
    assert len(ledger.runs.show(run.id).models) == 1


def test_something_else_is_refused() -> None:
    """What is no client of the SDK is named, and nothing is wrapped."""
    with pytest.raises(woodrat.Refused, match=r"client: expected a client of the openai package, got builtins\.int"):
        woodrat.openai.wrap(42)  # type: ignore[type-var]


@pytest.mark.parametrize("kind", ["chat", "chat_stream", "responses"])
def test_a_fork_edits_the_prompt_the_answer_or_the_tool(ledger: woodrat.Ledger, kind: str) -> None:
    """Through the wrapped client an edited prompt is what the server gets, and an edited answer never asks it."""
    server = FakeServer(lambda messages: says(f"You said: {messages[-1]['content']}"))

    def agent(run: woodrat.Run) -> str:
        client = woodrat.openai.wrap(server.client())
        if kind == "responses":
            return client.responses.create(model="small-1", input="a", instructions="be brief").output_text
        asked: list[Any] = [{"role": "system", "content": "be brief"}, {"role": "user", "content": "a"}]
        if kind == "chat":
            return str(client.chat.completions.create(model="small-1", messages=asked).choices[0].message.content)
        stream = client.chat.completions.create(model="small-1", messages=asked, stream=True)
        return "".join(choice.delta.content or "" for chunk in stream for choice in chunk.choices).strip()

    with ledger.run("?") as run:
        run.answer(agent(run))
    fork = ledger.runs.fork(run.id, agent, at=1, set={"prompt": "b"})
    assert (fork.stopped, fork.answer) == (None, "You said: b")
    record = ledger.runs.show(fork.run)
    messages: Any = record.models[0].messages
    assert messages[-1]["content"] == "b"
    found = ledger.runs.diff(run.id, fork.run)
    assert "prompt was edited from a to b" in found.sentence


TOOL = {"name": "bureau", "description": "What the credit bureau says.", "parameters": {"type": "object"}}


def books(messages: list[dict[str, Any]]) -> dict[str, Any]:
    """Ask for the number, then look the score up, then decide."""
    last = messages[-1]
    if last.get("role") == "user" and "42" not in last["content"]:
        return says("Which application, please?")
    if last.get("role") == "user":
        return {**calls(("bureau", {"application": 42})), "content": "One moment."}
    return says("Rejected, sorry.")


@pytest.mark.parametrize("kind", ["chat", "responses"])
def test_training_rows_hold_the_conversation_turn_by_turn(ledger: woodrat.Ledger, kind: str) -> None:
    """The system's and every user's turn are there, neighbouring turns stay apart, and tools have their descriptions.

    The program drops its oldest turns before the last request; the row still has them.
    """
    client = woodrat.openai.wrap(FakeServer(books).client())
    said: list[Any] = [{"role": "user", "content": "Is it approved?"}]
    with ledger.run("Is it approved?") as run:
        for words in (None, "It is application 42."):
            said += [{"role": "user", "content": words}] if words else []
            while True:
                if kind == "chat":
                    asked: list[Any] = [{"role": "system", "content": "Be brief."}, *said]
                    tools: Any = [{"type": "function", "function": TOOL}]
                    message = client.chat.completions.create(model="m", messages=asked, tools=tools).choices[0].message
                    said.append(message)
                    called = [call.id for call in message.tool_calls or ()]
                    said += [{"role": "tool", "tool_call_id": id, "content": '{"creditScore":580}'} for id in called]
                else:
                    tools = [{"type": "function", **TOOL}]
                    response = client.responses.create(model="m", input=said, instructions="Be brief.", tools=tools)
                    said += response.output
                    called = [item.call_id for item in response.output if item.type == "function_call"]
                    said += [
                        {"type": "function_call_output", "call_id": id, "output": '{"creditScore":580}'}
                        for id in called
                    ]
                if not called:
                    break
                said = said[2:]
        run.answer("Rejected, sorry.")
    out = io.StringIO()
    ledger.training.export("sft", out=out)
    row = json.loads(out.getvalue())
    assert [(m["role"], m.get("content"), bool(m.get("tool_calls"))) for m in row["messages"]] == [
        ("system", "Be brief.", False),
        ("user", "Is it approved?", False),
        ("assistant", "Which application, please?", False),
        ("user", "It is application 42.", False),
        ("assistant", "One moment.", True),
        ("tool", '{"creditScore":580}', False),
        ("assistant", "Rejected, sorry.", False),
    ]
    assert row["messages"][5]["tool_call_id"] == row["messages"][4]["tool_calls"][0]["id"]
    assert json.loads(row["tools"]) == [{"type": "function", "function": TOOL}]
