"""Messages: one turn of a chat, whichever maker of models or of frameworks wrote it.

OpenAI (chat completions and responses), Anthropic, Gemini, LangChain, Pydantic AI, the AI SDK, Bedrock and ShareGPT
all say the same few things: who speaks, in what words, which tools are called, and what tools returned.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from woodrat.canon import form
from woodrat.errors import Refused
from woodrat.records import dataclass, field, replace

SYSTEM, USER, ASSISTANT, TOOL, AGENT = "system", "user", "assistant", "tool", "agent"
"""Who speaks. An agent is a speaker that none of the other words is for."""

_ROLES: Final = {
    **dict.fromkeys(("system", "developer", "system_prompt"), SYSTEM),
    **dict.fromkeys(("user", "human", "customer", "humanmessage"), USER),
    **dict.fromkeys(("assistant", "ai", "model", "gpt", "bot", "chatbot", "aimessage", "aimessagechunk"), ASSISTANT),
    **dict.fromkeys(("tool", "function", "ipython", "tool_result", "toolmessage", "function_response"), TOOL),
}
"""What speakers are called, in small letters."""
_LANGCHAIN_ROLES: Final = {
    "human": "user",
    "HumanMessage": "user",
    "ai": "assistant",
    "AIMessage": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessage": "system",
    "tool": "tool",
    "ToolMessage": "tool",
    "function": "tool",
}
"""What LangChain calls a message, and whose it is."""
_SPEAKERS: Final = ("role", "from", "speaker", "author", "sender", "source", "agent", "agent_name")
"""Where a message says who speaks."""
_NAMES: Final = ("name", "agent", "agent_name", "sender", "speaker", "author")
"""Where it says what the speaker is called."""
_CONTENTS: Final = ("content", "value", "text", "message", "parts", "output", "utterance")
"""Where it has its words."""
_CALL_IDS: Final = ("tool_call_id", "tool_use_id", "toolCallId", "toolUseId", "call_id", "source_call_id")
_ARGUMENTS: Final = ("arguments", "args", "input", "parameters")
_RESULTS: Final = ("result", "output", "response", "content", "tools")
_CALL_PARTS: Final = (
    "tool_use",
    "tool-call",
    "tool_call",
    "toolUse",
    "functionCall",
    "function_call",
    "server_tool_use",
)
_RESULT_PARTS: Final = (
    *("tool_result", "tool-result", "tool-return", "toolResult", "functionResponse", "function_response"),
    *("function_call_output", "custom_tool_call_output", "mcp_tool_result", "retry-prompt"),
)
_UNSPOKEN: Final = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""Parts that are no words to anybody; they are kept beside the turn."""
_ITEM: Final = re.compile(r"[a-z_]+_(?:call|output)")
"""What OpenAI's responses call an item that is a call of a tool, or what came of one."""
_SILENT_ITEMS: Final = frozenset(
    {"reasoning", "item_reference", "mcp_list_tools", "mcp_approval_request", "mcp_approval_response", "compaction"}
)
"""What they call items that are neither words nor calls; they are kept beside the turn."""
_LITERAL_CHARACTERS_MAX: Final = 100_000
"""How long arguments may be to be read as a Python literal."""
_BRACKETS: Final = re.compile(r"(\S.*?)\s*\((?:(?:->|→)\s*)?(.+?)\)\s*", re.DOTALL)
_HANDOVER: Final = re.compile(r"(\S.*?)\s*\((?:->|→)\s*(.+?)\)\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ChatCall:
    """A tool that a message calls."""

    id: str | None
    """What the call is called where its result says which call it answers."""
    name: str
    """The tool."""
    args: dict[str, Any]
    """What it is given."""


@dataclass(frozen=True, slots=True)
class ChatResult:
    """What a tool returned."""

    id: str | None
    """Which call it answers."""
    name: str | None
    """The tool, where the message says so."""
    content: Any
    """What came; text that spells JSON as the value."""
    failed: bool = False
    """Whether it says that the tool failed."""
    words: str | None = None
    """What came as the message has it, where that is text."""


@dataclass(frozen=True, slots=True)
class ChatTurn:
    """One message."""

    speaker: str
    """`system`, `user`, `assistant`, `tool` or `agent`."""
    name: str | None
    """What the speaker is called."""
    role: str | None
    """The role as it is written, where that says more than the speaker."""
    content: Any
    """Its words: text, or parts that are more than text."""
    calls: tuple[ChatCall, ...] = ()
    """The tools it calls."""
    results: tuple[ChatResult, ...] = ()
    """What tools returned."""
    to: str | None = None
    """The agent it hands over to."""
    beside: Mapping[str, Any] = field(default_factory=dict)
    """What else it says."""


def looks_like(value: Any) -> bool:
    """Return whether a value could be a message."""
    if not isinstance(value, Mapping):
        return False
    if unwrapped(value) is not None or is_item(value):
        return True
    spoken = any(isinstance(value.get(name), str | Mapping) for name in _SPEAKERS) or "name" in value
    said = any(name in value for name in (*_CONTENTS, "tool_calls", "function_call", "toolCalls"))
    return (spoken and said) or (value.get("kind") in ("request", "response") and isinstance(value.get("parts"), list))


def turns(message: Mapping[str, Any]) -> list[ChatTurn] | None:
    """Return the turns of a message, mostly one; none where nobody can say who speaks."""
    wrapped = unwrapped(message)
    if wrapped is not None:
        message = {**wrapped[0], "role": message.get("role", wrapped[1])}
    if is_item(message):
        return [_item(message)]
    if message.get("kind") in ("request", "response") and isinstance(message.get("parts"), list):
        return list(_pydantic(message))
    role, name = _speaker(message)
    if role is None and name is None:
        return None
    return [_turn(message, role, name)]


def _speaker(message: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """Return the role of a message and the name of who speaks, as far as it says them."""
    role: Any = next((message[name] for name in _SPEAKERS if message.get(name) not in (None, "")), None)
    if isinstance(role, Mapping):  # an author with a role and a name
        return _text(role.get("role")), _text(role.get("name"))
    listed = (message[name] for name in _NAMES if message.get(name) not in (None, "", role))
    named = next((value for value in listed if isinstance(value, str)), None)
    return (role if isinstance(role, str) else None), named


def _turn(message: Mapping[str, Any], role: str | None, name: str | None) -> ChatTurn:
    speaker = _ROLES.get((role or "").strip().lower(), AGENT)
    written, to = None, None
    if speaker == AGENT:
        # `Orchestrator (-> WebSurfer)` is the orchestrator, who hands over.
        spoken = role if name is None else name
        assert spoken is not None
        if handover := _HANDOVER.fullmatch(spoken):
            name, to, written = handover[1], handover[2], spoken
        elif bracket := _BRACKETS.fullmatch(spoken):
            name, written = bracket[1], spoken
        else:
            name, written = spoken, role if role not in (None, spoken) else None
    content = next((message[key] for key in _CONTENTS if message.get(key) is not None), None)
    if speaker == TOOL and not _has_results(content):
        result = _Parts(content)
        said = result.words if not result.rest else content
        failed = message.get("status") == "error" or message.get("is_error") is True or message.get("error") is True
        id = next((message[key] for key in (*_CALL_IDS, "id") if message.get(key) not in (None, "")), None)
        came = ChatResult(_id(id), name, parsed(said), failed, said if isinstance(said, str) else None)
        return ChatTurn(TOOL, name, None, None, (), (came,), None, _beside(message))
    parts = _Parts(content)
    calls = [*parts.calls, *_listed_calls(message)]
    unique: list[ChatCall] = []
    for call in calls:
        if not any(call == other and call.id is not None for other in unique):  # LangChain tells a call twice
            unique.append(call)
    beside = {**_beside(message), **({"reasoning": parts.unspoken} if parts.unspoken else {})}
    return ChatTurn(speaker, name, written, parts.said, tuple(unique), tuple(parts.results), to, beside)


_KNOWN: Final = frozenset(
    {*_SPEAKERS, *_NAMES, *_CONTENTS, *_CALL_IDS, "tool_calls", "function_call", "toolCalls", "type", "id", "refusal"}
    | {"annotations", "audio", "index", "raw_data", "logprobs", "response_metadata", "additional_kwargs", "lc"}
    | {"example", "lc_attributes", "invalid_tool_calls", "tool_call_chunks", "turn_idx", "status", "is_error", "error"}
    | {"timestamp", "created_at", "started_at", "time", "usage", "usage_metadata", "model", "model_name", "requestor"}
)
"""Members of a message that have a place elsewhere, or say nothing."""


def _beside(message: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in message.items() if name not in _KNOWN and value not in (None, [], {}, "")}


class _Parts:
    """The content of a message, taken apart."""

    def __init__(self, content: Any) -> None:
        self.calls: list[ChatCall] = []
        self.results: list[ChatResult] = []
        self.unspoken: list[Any] = []
        self.rest: list[Any] = []
        texts: list[str] = []
        listed = content if isinstance(content, list) else [content]
        for part in listed:
            if isinstance(part, str):
                texts.append(part)
            elif isinstance(part, Mapping):
                self._part(part, texts)
            elif part is not None:
                self.rest.append(part)
        self.words: str | None = "\n".join(texts) if texts else None
        lone = isinstance(content, str | Mapping) or content is None
        self.said: Any = self.words if not self.rest else content if lone else [*texts, *self.rest]

    def _part(self, part: Mapping[str, Any], texts: list[str]) -> None:
        kind = part.get("type", part.get("part_kind"))
        wrapped = next((name for name in (*_CALL_PARTS, *_RESULT_PARTS) if isinstance(part.get(name), Mapping)), None)
        if wrapped is not None:
            inner = part[wrapped]
            if wrapped in _RESULT_PARTS:
                self.results.append(_result(inner))
            elif (call := call_of(inner)) is not None:
                self.calls.append(call)
            else:
                self.rest.append(part)
        elif kind in _CALL_PARTS and (call := call_of(part)) is not None:
            self.calls.append(call)
        elif kind in _RESULT_PARTS:
            self.results.append(_result(part))
        elif str(kind) in _UNSPOKEN or part.get("thought") is True:
            self.unspoken.append(dict(part))
        else:
            text = next(
                (part[name] for name in ("text", "content", "refusal") if isinstance(part.get(name), str)), None
            )
            if text is not None and kind not in ("image", "image_url", "input_image", "file", "input_file", "audio"):
                texts.append(text)
            else:
                self.rest.append(dict(part))


def _has_results(content: Any) -> bool:
    listed = content if isinstance(content, list) else [content]
    return any(
        isinstance(part, Mapping)
        and (part.get("type", part.get("part_kind")) in _RESULT_PARTS or any(name in part for name in _RESULT_PARTS))
        for part in listed
    )


def _listed_calls(message: Mapping[str, Any]) -> Iterator[ChatCall]:
    listed = message.get("tool_calls") or message.get("toolCalls") or ()
    for item in listed if isinstance(listed, list) else ():
        call = call_of(item)
        if call is not None:
            yield call
    if (call := call_of(message.get("function_call"))) is not None:
        yield call


def bad_calls(message: Mapping[str, Any]) -> Any:
    """Return the calls of a message where they are not what calls are; else none."""
    inner = (unwrapped(message) or (message, None))[0]
    listed = inner.get("tool_calls") or inner.get("toolCalls")
    if listed is not None and not isinstance(listed, list):
        return listed
    return listed if any(call_of(item) is None for item in listed or ()) else None


def call_of(call: Any) -> ChatCall | None:
    """Return a call of a tool, in whatever shape it comes."""
    if not isinstance(call, Mapping):
        return None
    inner = next((call[key] for key in ("function", "custom") if isinstance(call.get(key), Mapping)), call)
    name = next(
        (inner[key] for key in ("name", "toolName", "tool_name", "function_name", "function") if key in inner), None
    )
    if not isinstance(name, str) or not name:
        return None
    stated = parsed_arguments(next((inner[key] for key in _ARGUMENTS if inner.get(key) is not None), {}))
    id = next((call[key] for key in (*_CALL_IDS, "id") if call.get(key) not in (None, "")), None)
    return ChatCall(_id(id), name, stated if isinstance(stated, dict) else {"arguments": stated})


def _result(part: Mapping[str, Any]) -> ChatResult:
    id = next((part[key] for key in (*_CALL_IDS, "id") if part.get(key) not in (None, "")), None)
    name = next((part[key] for key in ("name", "toolName", "tool_name") if isinstance(part.get(key), str)), None)
    content = next((part[key] for key in _RESULTS if part.get(key) is not None), None)
    if isinstance(content, Mapping) and set(content) == {"type", "value"}:  # the AI SDK
        content = content["value"]
    inside = _Parts(content) if isinstance(content, list) else None
    said = inside.words if inside is not None and not inside.rest and inside.words is not None else content
    failed = part.get("is_error") is True or part.get("isError") is True or part.get("status") == "error"
    failed = failed or part.get("part_kind") == "retry-prompt"
    return ChatResult(_id(id), name, parsed(said), failed, said if isinstance(said, str) else None)


# Items of OpenAI's responses


def is_item(message: Mapping[str, Any]) -> bool:
    """Return whether a message is an item of OpenAI's responses that is no message itself."""
    kind = message.get("type")
    if not isinstance(kind, str) or "role" in message:
        return False
    named = bool({"name", "id", "call_id", "status"} & set(message))
    return kind in _SILENT_ITEMS or (_ITEM.fullmatch(kind) is not None and named)


def _item(message: Mapping[str, Any]) -> ChatTurn:
    kind = str(message["type"])
    if kind in _SILENT_ITEMS:
        return ChatTurn(ASSISTANT, None, None, None, beside={"reasoning": [dict(message)]})
    if kind.endswith("_output"):
        result = _result(message)
        if "call_id" in message and message["call_id"] is None:  # of a tool that OpenAI runs itself
            tool = kind.removesuffix("_output").removesuffix("_call")
            result = replace(result, id=None, name=result.name or tool)
        return ChatTurn(TOOL, None, None, None, results=(result,))
    call = call_of(message)
    if call is None:
        meta = ("id", "type", "status", "call_id", "execution")
        made = {name: value for name, value in message.items() if name not in meta}
        stated = parsed_arguments(made.get("arguments"))
        id = message["call_id"] if "call_id" in message else message.get("id")
        args = stated if set(made) == {"arguments"} and isinstance(stated, dict) else made
        call = ChatCall(_id(id), kind.removesuffix("_call"), args)
    answered = message.get("output", message.get("results"))
    results = (
        () if answered is None else (ChatResult(call.id, call.name, parsed(answered), bool(message.get("error"))),)
    )
    return ChatTurn(ASSISTANT, None, None, None, (call,), results)


def joined(turns: Iterable[ChatTurn]) -> Iterator[tuple[ChatTurn, list[ChatTurn]]]:
    """Yield turns with those of one answer in one, each with those it is made of.

    OpenAI's responses have an item for each part of an answer.
    """
    parts: list[ChatTurn] = []
    for turn in turns:
        if parts and not (turn.speaker == parts[-1].speaker == ASSISTANT and turn.name == parts[-1].name):
            yield _one(parts), parts
            parts = []
        parts.append(turn)
    if parts:
        yield _one(parts), parts


def _one(parts: list[ChatTurn]) -> ChatTurn:
    if len(parts) == 1:
        return parts[0]
    texts = [turn.content for turn in parts if turn.content is not None]
    content: Any = texts[0] if len(texts) == 1 else texts or None
    if len(texts) > 1 and all(isinstance(text, str) for text in texts):
        content = "\n".join(texts)
    return replace(
        parts[-1],
        content=content,
        calls=tuple(call for turn in parts for call in turn.calls),
        results=tuple(result for turn in parts for result in turn.results),
        beside={name: value for turn in parts for name, value in turn.beside.items()},
    )


def _pydantic(message: Mapping[str, Any]) -> Iterator[ChatTurn]:
    """Yield the turns of a request or a response of Pydantic AI."""
    if message["kind"] == "response":
        yield _turn({"content": message["parts"], "model": message.get("model_name")}, ASSISTANT, None)
        return
    for part in message["parts"]:
        kind = part.get("part_kind") if isinstance(part, Mapping) else None
        if kind in _RESULT_PARTS and part.get("tool_name"):
            yield ChatTurn(TOOL, part["tool_name"], None, None, results=(_result(part),))
        elif isinstance(part, Mapping):
            yield _turn({"content": part.get("content")}, SYSTEM if kind == "system-prompt" else USER, None)


# Values


def parsed(content: Any) -> Any:
    """Return what text spells as JSON, where it is an object or an array; else what there is."""
    if isinstance(content, str) and content[:1] in ("{", "["):
        try:
            return form.parse(content)
        except Refused:
            return content
    return content


def parsed_arguments(content: Any) -> Any:
    """Return arguments; those that somebody printed with Python's `repr` are read too."""
    found = parsed(content)
    if isinstance(found, str) and found[:1] == "{" and len(found) <= _LITERAL_CHARACTERS_MAX:
        try:
            literal = ast.literal_eval(found)
        except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return found
        return literal if isinstance(literal, dict) and not form.faults(literal) else found
    return found


def _id(value: Any) -> str | None:
    return value if isinstance(value, str) else str(value) if type(value) is int else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# LangChain


def unwrapped(value: Any) -> tuple[Mapping[str, Any], str] | None:
    """Return what a wrapped message holds and whose it is; `None` for anything else."""
    if not isinstance(value, Mapping):
        return None
    kind, inner = value.get("type"), value
    if value.get("lc") == 1 and isinstance(value.get("kwargs"), Mapping):
        inner = value["kwargs"]
        name = value["id"][-1] if isinstance(value.get("id"), list) and value["id"] else None
        kind = inner.get("type", name)
    elif isinstance(value.get("data"), Mapping):
        inner = value["data"]
    role = _LANGCHAIN_ROLES.get(kind) if isinstance(kind, str) else None
    return (inner, role) if role is not None and "content" in inner else None
