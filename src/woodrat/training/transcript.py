"""Transcript: a run record as the messages of a conversation between a user, an assistant and its tools.

    user        what was asked, and what the run was given
    assistant   what its models said and what it decided, and then one tool call or the answer
    tool        what the call returned

What was read from state is a call of a tool named after the verb, `show` as a rule, so that the evidence a decision
leaned on stands before it. What happened inside a tool is the tool's own affair, but for decisions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from woodrat.records import dataclass, replace
from woodrat.runs import steps
from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall
from woodrat.runs.values import is_mark

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from woodrat.canon.form import Json
    from woodrat.runs.record import RunRecord

USER, ASSISTANT, TOOL = "user", "assistant", "tool"
SHOW: Final = "show"
"""The tool that a read of one entity is shown as."""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call of a tool by the assistant."""

    id: str
    """What the result names it by; counted within the run."""
    name: str
    """The tool."""
    arguments: Mapping[str, Json]
    """What it is given."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message."""

    role: str
    """`user`, `assistant` or `tool`."""
    content: str
    """What is said; empty for an assistant that only calls a tool."""
    use: ToolUse | None = None
    """The call that the assistant makes, or whose result the tool returns."""
    positions: tuple[int, ...] = ()
    """The entries it comes from."""
    spans: frozenset[str] = frozenset()
    """Spans of the steps it comes from."""

    def same(self, other: Message) -> bool:
        """Return whether two messages say the same, wherever they come from."""
        return (self.role, self.content, self.use) == (other.role, other.content, other.use)


def transcript(record: RunRecord) -> tuple[Message, ...]:
    """Return the messages of a run, from the question to the answer; roles alternate as chat templates want them."""
    start = () if record.start is None else (record.start,)
    messages = [Message(USER, _question(record), positions=start)]
    said: list[Message] = []
    calls = 0
    for item in _steps(record):
        if isinstance(item, Message):
            said.append(item)
            continue
        called, result = item
        calls += 1
        use = replace(called, id=f"call_{calls}")
        messages.append(_joined([*said, replace(result, role=ASSISTANT, content="")], use))
        messages.append(replace(result, use=use))
        said = []
    if record.answer is not None:
        end = () if record.end is None else (record.end,)
        said.append(Message(ASSISTANT, spoken(record.answer), positions=end))
    if said:
        messages.append(_joined(said, None))
    return tuple(messages)


def _joined(said: list[Message], use: ToolUse | None) -> Message:
    """Return what the assistant said in a row as one message."""
    return Message(
        ASSISTANT,
        "\n".join(message.content for message in said if message.content),
        use,
        tuple(position for message in said for position in message.positions),
        frozenset().union(*(message.spans for message in said)),
    )


def _question(record: RunRecord) -> str:
    asked = record.query or ""
    if not record.inputs:
        return asked
    given = f"Inputs: {_json(dict(record.inputs))}"
    return f"{asked}\n\n{given}" if asked else given


def _steps(record: RunRecord) -> Iterator[Message | tuple[ToolUse, Message]]:
    """Yield what the assistant says, and each call with its result."""
    inside = {call.span for call in record.tool_calls}
    told: set[str] = set()
    for step in record.steps:
        place: dict[str, Any] = {"positions": (step.position,), "spans": frozenset({step.span})}
        if isinstance(step, Decision):
            yield Message(ASSISTANT, _decided(step), **place)
        elif step.under in inside:
            continue
        elif isinstance(step, ToolCall):
            arguments = step.args if isinstance(step.args, dict) else {"args": step.args}
            yield ToolUse("", step.name, arguments), Message(TOOL, _returned(step), **place)
        elif isinstance(step, Read) and step.span not in told:
            yield _read(record, step, told)
        elif isinstance(step, ModelCall):
            text = None if step.errored else said_by(step.response)
            if text and text != spoken(record.answer):
                yield Message(ASSISTANT, text, **place)


def _read(record: RunRecord, read: Read, told: set[str]) -> tuple[ToolUse, Message]:
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


def _decided(decision: Decision) -> str:
    said = f"Decision {decision.stage}: {spoken(decision.chosen)}."
    if decision.default:
        said += " No rule matched."
    elif decision.rule is not None:
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


def said_by(response: Json) -> str | None:
    """Return the text of a model's response, in the shapes that clients give it; none when there is none."""
    if isinstance(response, str):
        return response
    if not isinstance(response, dict) or is_mark(response):
        return None
    choices = response.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict):
        return said_by(choices[0].get("message"))
    for name in ("output_text", "text", "content", "message"):
        found = response.get(name)
        if isinstance(found, str):
            return found
        if isinstance(found, list):
            texts = [block.get("text") for block in found if isinstance(block, dict) and block.get("type") == "text"]
            return "".join(text for text in texts if isinstance(text, str)) or None
        if isinstance(found, dict):
            return said_by(found)
    return None


def spoken(value: Json) -> str:
    """Return a value as an assistant would say it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else _json(value)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
