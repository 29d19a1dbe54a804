"""Conversation: a run record as the turns of a chat between a system, a user, an assistant and its tools.

Where the requests of its models are on record, the conversation is theirs, turn by turn: the last request and its
answer, and before them whatever earlier requests held and later ones no longer do. A run that asked its models about
several things has several such threads; its conversation is the one that ends in the answer, or the longest. What code
read around the models is no turn. What it decided, with its reason, is one, before the answer.

Without requests on record the turns are made of the steps: the question, what was said and decided, each call with its
result, the answer. What was read from state is a call of a tool named after the verb, `show` as a rule.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.records import dataclass, replace
from woodrat.runs import chat_message as chat
from woodrat.runs import messages as speech
from woodrat.runs import steps
from woodrat.runs.steps import Decision, ModelCall, Note, Read, ToolCall
from woodrat.runs.values import is_mark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.runs.run_fields import RunFields

SYSTEM, USER, ASSISTANT, TOOL = "system", "user", "assistant", "tool"
SHOW: Final = "show"
"""The tool that a read of one entity is shown as."""
CONTINUES: Final = "continues"
"""The attribute that says of a model call, where it is true: `messages` are those since the model call before it."""
SPEAKER: Final = "role"
"""The attribute that says of a note who spoke these words, which no model was asked about any more."""
_ROUTES: Final = ("route from ", "handoff from ", "guardrail ")
"""How the stages of choices begin that a framework took; the calls and answers of its models tell them already."""
_EARLIER: Final = ("previous_response_id", "conversation")
"""Parameters by which a request goes on with an earlier one without repeating it."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool by the assistant."""

    id: str
    """What the result names it by; counted within the conversation."""
    name: str
    """The tool."""
    arguments: Mapping[str, Json]
    """What it is given."""


@dataclass(frozen=True, slots=True)
class Message:
    """One turn."""

    role: str
    """`system`, `user`, `assistant` or `tool`."""
    content: str
    """What is said; empty for an assistant that only calls tools."""
    calls: tuple[ToolUse, ...] = ()
    """The calls that the assistant makes."""
    answers: ToolUse | None = None
    """The call whose result a tool returns; none where no call on record asked for it."""
    positions: tuple[int, ...] = ()
    """The entries it comes from."""
    spans: frozenset[str] = frozenset()
    """Spans of the steps it comes from."""

    def same(self, other: Message) -> bool:
        """Return whether two turns say the same, wherever they come from."""
        mine, theirs = ((m.role, m.content, m.calls, m.answers) for m in (self, other))
        return mine == theirs


def conversation(record: RunFields) -> tuple[Message, ...]:
    """Return the turns of a run in order; results follow their calls, which are counted."""
    thread = _main_thread(record)
    return tuple(_bound(_from_steps(record) if thread is None else _from_thread(record, thread)))


def is_whole(record: RunFields) -> bool:
    """Return whether its recorder could keep what its models were asked and what they answered."""
    return not any(is_mark(call.messages) or is_mark(call.response) for call in _outer_models(record))


def spoken(value: Json) -> str:
    """Return a value as an assistant would say it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else _json(value)


# From requests


@dataclass(slots=True)
class _Thread:
    """A conversation with a model, as far as requests and answers tell it."""

    turns: list[Message]
    """What was said."""
    tools: list[ToolCall]
    """The tools that were called since its last answer."""


def _main_thread(record: RunFields) -> _Thread | None:
    """Return the thread that a run's conversation is; none where no request is on record."""
    threads = _threads(record)
    if not threads:
        return None
    ending = [each for each in threads if record.answer is not None and _is_said(each.turns, record.answer)]
    return max(reversed(ending or threads), key=lambda each: len(each.turns))


def _threads(record: RunFields) -> list[_Thread]:
    calls = [call for call in _outer_models(record) if not call.errored]
    asked = {call.span: heard(call.messages) for call in calls if isinstance(call.messages, list)}
    if not asked:
        return []
    new_only = any(call.attributes.get(CONTINUES) is True for call in calls)
    # A result without the call that it answers: the request says only what is new, and so do all of the run.
    new_only |= any(turns[:1] and turns[0].role == TOOL for turns in asked.values())
    threads: list[_Thread] = []
    current = _Thread([], [])
    inside = {call.span for call in record.tool_calls}
    models = {call.span for call in calls}
    for step in record.steps:
        if isinstance(step, ModelCall) and step.span in models:
            current = _continued(threads, current, step, asked.get(step.span), new_only=new_only)
        elif isinstance(step, ToolCall | Decision | Read):
            _add_place(current.turns, step)
            if isinstance(step, ToolCall) and step.under not in inside:
                current.tools.append(step)
    return threads


def _outer_models(record: RunFields) -> list[ModelCall]:
    """Return the model calls that happened inside no tool."""
    inside = {call.span for call in record.tool_calls}
    return [call for call in record.models if call.under not in inside]


def _continued(
    threads: list[_Thread], last: _Thread, call: ModelCall, request: list[Message] | None, *, new_only: bool
) -> _Thread:
    """Return the thread that a model call goes on with, or begins, with the call in it."""
    goes_on = new_only or request is None or any(name in call.parameters for name in _EARLIER)
    for thread in () if goes_on else reversed(threads):
        found = _rejoined(thread.turns, request or [])
        if found is not None:
            kept, new = found
            break
    else:
        thread = last if goes_on else _Thread([], [])
        kept, new = thread.turns, request or []
    if not any(each is thread for each in threads):
        threads.append(thread)
    place: dict[str, Any] = {"positions": (call.position,), "spans": frozenset({call.span})}
    said = answer_turn(call.response)
    thread.turns = [*kept, *(replace(turn, **place) for turn in (*new, *(() if said is None else (said,))))]
    thread.tools = []
    return thread


def _rejoined(known: Sequence[Message], request: Sequence[Message]) -> tuple[list[Message], list[Message]] | None:
    """Return the turns of a thread that stay, and the new ones of a request that goes on from one of its answers.

    Instructions at the beginning are those of the latest request. Answers that the request no longer has after the one
    it goes on from were given up; turns before it that the request no longer has were only cut from it.
    """
    places = {_key(turn): place for place, turn in enumerate(known) if turn.role == ASSISTANT}
    for place in reversed(range(len(request))):
        at = places.get(_key(request[place])) if request[place].role == ASSISTANT else None
        if at is not None:
            lead, before = _instructions(request), _instructions(known)
            return [*(lead or before), *known[len(before) : at + 1]], list(request[place + 1 :])
    return None


def _instructions(turns: Sequence[Message]) -> Sequence[Message]:
    return turns[: next((place for place, turn in enumerate(turns) if turn.role != SYSTEM), len(turns))]


def _key(turn: Message) -> tuple[str, bytes]:
    """Return what an answer is known by when it comes back in a later request."""
    return turn.content.strip(), form.serialise([[call.name, dict(call.arguments)] for call in turn.calls])


def _add_place(turns: list[Message], step: ToolCall | Decision | Read) -> None:
    """Say of the assistant's last turn that a step came of it."""
    for place in reversed(range(len(turns))):
        turn = turns[place]
        if turn.role == ASSISTANT:
            positions = (*turn.positions, step.position)
            turns[place] = replace(turn, positions=positions, spans=turn.spans | {step.span})
            return


def _from_thread(record: RunFields, thread: _Thread) -> Iterator[Message]:
    """Yield the turns of a thread, with what code decided before the answer and what was said after it."""
    turns, last = thread.turns, thread.turns[-1] if thread.turns else None
    decided = [_decision_turn(made) for made in record.decisions if not made.stage.startswith(_ROUTES)]
    said = record.answer is not None and _is_said(turns, record.answer)
    if said and last is not None and last.role == ASSISTANT and not last.calls:
        yield from turns[:-1]
        yield from [_joined(decided)] if decided else []
        yield last
    else:
        yield from turns
        yield from _late_results(thread)
        if record.answer is not None and not said and (decided or last is None or last.role != ASSISTANT or last.calls):
            end = () if record.end is None else (record.end,)
            yield _joined([*decided, Message(ASSISTANT, spoken(record.answer), positions=end)])
    for note in record.notes:
        role = note.attributes.get(SPEAKER)
        if role in (SYSTEM, USER):
            yield Message(role, note.text, positions=(note.position,), spans=frozenset({note.span}))


def _late_results(thread: _Thread) -> Iterator[Message]:
    """Yield the results of calls that no later request has."""
    waiting = [call.name for call in thread.turns[-1].calls] if thread.turns else []
    for tool in thread.tools:
        if tool.name in waiting and not tool.begun:
            waiting.remove(tool.name)
            place: dict[str, Any] = {"positions": (tool.position,), "spans": frozenset({tool.span})}
            yield Message(TOOL, _returned(tool), answers=ToolUse("", tool.name, {}), **place)


def _is_said(turns: Sequence[Message], answer: Json) -> bool:
    """Return whether the assistant's last turn is the answer: in words, as JSON, or as what a tool is called with."""
    last = next((turn for turn in reversed(turns) if turn.role == ASSISTANT), None)
    if last is None:
        return False
    if isinstance(answer, str):
        return last.content.strip() == answer.strip() and bool(answer.strip())
    given = [chat.parsed(last.content), *(dict(call.arguments) for call in last.calls)]
    return any(form.same(item, answer) for item in given if not isinstance(item, str))


# What messages say


def heard(messages: Sequence[Any]) -> list[Message]:
    """Return the turns of a request's messages, in whichever shape they come."""
    listed = [message for message in messages if isinstance(message, dict)]
    turns = [turn for message in listed for turn in chat.turns(message) or ()]
    if any(map(chat.is_item, listed)):
        turns = [turn for turn, _ in chat.joined(turns)]
    return [said for turn in turns for said in _said(turn)]


def _said(turn: chat.ChatTurn) -> Iterator[Message]:
    for result in turn.results if turn.speaker != chat.ASSISTANT else ():
        yield _result_turn(result)
    if turn.speaker in (chat.ASSISTANT, chat.AGENT):
        if turn.content is not None or turn.calls:
            uses = tuple(ToolUse(call.id or "", call.name, call.args) for call in turn.calls)
            yield Message(ASSISTANT, _text(turn.content), uses)
        yield from (_result_turn(result) for result in turn.results)
    elif turn.speaker != chat.TOOL and (turn.content is not None or not turn.results):
        yield Message(turn.speaker, _text(turn.content))


def _result_turn(result: chat.ChatResult) -> Message:
    words = result.words if result.words is not None else spoken(result.content)
    return Message(TOOL, words, answers=ToolUse(result.id or "", result.name or "", {}))


def answer_turn(response: Json) -> Message | None:
    """Return what a model answered, in the shapes that clients give it; none when it says and calls nothing."""
    if isinstance(response, list):
        return answer_turn(response[0]) if response else None
    if isinstance(response, str):
        return Message(ASSISTANT, response)
    if not isinstance(response, dict) or is_mark(response):
        return None
    for name in ("choices", "candidates"):
        listed = response.get(name)
        if isinstance(listed, list) and listed and isinstance(listed[0], dict):
            return answer_turn(listed[0].get("message", listed[0].get("content")))
    output = response.get("output")
    if isinstance(output, list):
        return next(iter(heard(output)), None)
    if isinstance(response.get("message"), dict):
        return answer_turn(response["message"])
    text = response.get("output_text")
    said = {"content": text} if isinstance(text, str) else response
    turns = heard([said if said.get("kind") == "response" else {**said, "role": ASSISTANT}])
    return turns[0] if turns and (turns[0].content or turns[0].calls) else None


def _text(content: Any) -> str:
    if content is None:
        return ""
    words = speech.text_in({"content": content})
    return words if words is not None else spoken(content)


def offered_tools(record: RunFields) -> dict[str, dict[str, Any]]:
    """Return the tools that the models of a run were told of, as far as they are described: description, parameters."""
    found: dict[str, dict[str, Any]] = {}
    for listed in (record.attributes.get("tools"), *(call.parameters.get("tools") for call in _outer_models(record))):
        for tool in _tools_in(listed):
            found[tool[0]] = tool[1]
    return found


def _tools_in(listed: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    for item in listed if isinstance(listed, list) else ():
        if not isinstance(item, dict):
            continue
        for name in ("functionDeclarations", "function_declarations"):
            yield from _tools_in(item.get(name))
        tool = item["function"] if isinstance(item.get("function"), dict) else item
        schemas = (tool.get(name) for name in ("parameters", "input_schema", "inputSchema", "parameters_json_schema"))
        schema = next((each for each in schemas if isinstance(each, dict)), None)
        about = tool.get("description")
        if isinstance(tool.get("name"), str) and (schema is not None or isinstance(about, str)):
            bare = {"type": "object", "properties": {}}
            yield tool["name"], {"description": about if isinstance(about, str) else "", "parameters": schema or bare}


# Which result answers which call


def _bound(turns: Iterable[Message]) -> Iterator[Message]:
    """Yield turns with calls that are counted, and results that name the call they answer."""
    waiting: list[tuple[str, ToolUse]] = []
    count = 0
    for turn in turns:
        if turn.calls:
            calls = [replace(use, id=f"call_{count + number}") for number, use in enumerate(turn.calls, 1)]
            waiting += [(use.id, call) for use, call in zip(turn.calls, calls, strict=True)]
            count += len(calls)
            turn = replace(turn, calls=tuple(calls))
        elif turn.answers is not None:
            place = _answered_place(waiting, turn.answers)
            turn = replace(turn, answers=None if place is None else waiting.pop(place)[1])
        yield turn


def _answered_place(waiting: Sequence[tuple[str, ToolUse]], asked: ToolUse) -> int | None:
    """Return which of the calls that wait a result answers: by its id, by the name of the tool, or in order."""
    if asked.id:
        for place, (id, _) in enumerate(waiting):
            if id == asked.id:
                return place
    free = [place for place, (id, _) in enumerate(waiting) if not id or not asked.id]
    alike = [place for place in free if waiting[place][1].name == asked.name]
    return next(iter(alike), next(iter(free), None) if not asked.name else None)


# From steps


def _from_steps(record: RunFields) -> list[Message]:
    start = () if record.start is None else (record.start,)
    turns = [Message(USER, _question(record), positions=start)]
    said: list[Message] = []
    models = {call.span for call in record.models}
    for item in _steps(record):
        if isinstance(item, Message):
            # Each answer of a model begins a turn; what code decided after it is said with it.
            if said and (item.role != ASSISTANT or (item.spans <= models and any(m.spans <= models for m in said))):
                turns.append(_joined(said))
                said = []
            if item.role == ASSISTANT:
                said.append(item)
            else:
                turns.append(item)
            continue
        called, result = item
        turns += [
            _joined([*said, replace(result, role=ASSISTANT, content="")], called),
            replace(result, answers=called),
        ]
        said = []
    if record.answer is not None:
        end = () if record.end is None else (record.end,)
        said.append(Message(ASSISTANT, spoken(record.answer), positions=end))
    return [*turns, _joined(said)] if said else turns


def _joined(said: Sequence[Message], *uses: ToolUse) -> Message:
    """Return what the assistant said in a row as one turn."""
    return Message(
        ASSISTANT,
        "\n".join(message.content for message in said if message.content),
        uses,
        positions=tuple(position for message in said for position in message.positions),
        spans=frozenset().union(*(message.spans for message in said)),
    )


def _question(record: RunFields) -> str:
    asked = record.query or ""
    if not record.inputs:
        return asked
    given = f"Inputs: {_json(dict(record.inputs))}"
    return f"{asked}\n\n{given}" if asked else given


def _steps(record: RunFields) -> Iterator[Message | tuple[ToolUse, Message]]:
    """Yield what the assistant says, and each call with its result."""
    inside = {call.span for call in record.tool_calls}
    told: set[str] = set()
    for step in record.steps:
        place: dict[str, Any] = {"positions": (step.position,), "spans": frozenset({step.span})}
        if isinstance(step, Decision):
            yield _decision_turn(step)
        elif step.under in inside:
            continue
        elif isinstance(step, ToolCall):
            arguments = step.args if isinstance(step.args, dict) else {"args": step.args}
            yield ToolUse("", step.name, arguments), Message(TOOL, _returned(step), **place)
        elif isinstance(step, Read) and step.span not in told:
            yield _read(record, step, told)
        elif isinstance(step, ModelCall):
            said = None if step.errored else answer_turn(step.response)
            if said is not None and said.content and said.content != spoken(record.answer):
                yield Message(ASSISTANT, said.content, **place)
        elif isinstance(step, Note) and step.attributes.get(SPEAKER) in (SYSTEM, USER):
            yield Message(step.attributes[SPEAKER], step.text, **place)


def _read(record: RunFields, read: Read, told: set[str]) -> tuple[ToolUse, Message]:
    """Return a read as a call; entities that one verb returned together are one result."""
    spans = frozenset({read.span})
    if read.within is None:
        asked: dict[str, Json] = {"ref": read.entity}
        if not read.present:
            asked["as_of"] = read.as_of
        found: dict[str, Any] = {"fields": read.values} if read.found else {"found": False}
        return ToolUse("", SHOW, asked), Message(TOOL, _json(found), positions=(read.position,), spans=spans)
    told.add(read.span)
    together = [other for other in record.reads if other.span == read.span]
    rows = [{"entity": other.entity, "fields": other.values} for other in together if other.found]
    positions = tuple(other.position for other in together)
    return ToolUse("", read.within, dict(read.args)), Message(TOOL, _json(rows), positions=positions, spans=spans)


def _decision_turn(decision: Decision) -> Message:
    spans = frozenset({decision.span})
    return Message(ASSISTANT, _decided(decision), positions=(decision.position,), spans=spans)


def _decided(decision: Decision) -> str:
    said = f"Decision {decision.stage}: {spoken(decision.chosen)}."
    if decision.default:
        said += " No rule matched."
    elif isinstance(decision.rule, str) or (isinstance(decision.rule, list) and any(decision.rule)):
        said += f" Rule: {spoken(decision.rule)}."
    if decision.evidence:
        said += f" Evidence: {', '.join(f'{key} = {spoken(item)}' for key, item in decision.evidence.items())}."
    return said if decision.rationale is None else f"{said} {decision.rationale}"


def _returned(call: ToolCall) -> str:
    if call.begun:
        return _json({"error": "no result is recorded"})
    if call.errored:
        return _json({"error": call.error if call.error is not None else "failed"})
    # A result that its recorder cut is shown as far as it goes.
    return steps.preview(call.result) if is_mark(call.result) else spoken(call.result)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
