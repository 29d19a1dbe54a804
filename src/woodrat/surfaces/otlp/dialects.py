"""Dialects: what a span says of an agent's work, in OpenTelemetry's GenAI conventions or in OpenInference.

A dialect is a set of attribute names. Which attributes were understood is noted, so that all others can be kept as they
are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from woodrat.surfaces.otlp.spans import Span

MODEL, TOOL, DECISION, AGENT, OTHER = "model", "tool", "decision", "agent", "other"
"""What a span stands for."""

_OPERATIONS: Final = {
    "chat": MODEL,
    "text_completion": MODEL,
    "generate_content": MODEL,
    "embeddings": MODEL,
    "execute_tool": TOOL,
    "retrieval": TOOL,
    "decision": DECISION,
    "invoke_agent": AGENT,
    "create_agent": AGENT,
    "invoke_workflow": AGENT,
}
"""By `gen_ai.operation.name`."""
_SPAN_KINDS: Final = {
    "LLM": MODEL,
    "EMBEDDING": MODEL,
    "TOOL": TOOL,
    "RETRIEVER": TOOL,
    "RERANKER": TOOL,
    "GUARDRAIL": TOOL,
    "DECISION": DECISION,
    "AGENT": AGENT,
}
"""By `openinference.span.kind`."""
_TELLING: Final = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
"""Events whose attributes count as the span's: they hold the messages of a model call where the span does not."""
_SENT: Final = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
"""Events that are one message each, sent to a model, and whose it is unless they say."""
_CHOICE: Final = "gen_ai.choice"
"""An event that is one message of a model's answer."""
_BODY: Final = "gen_ai.event.content"
"""Where such an event may hold all it says, as JSON."""


class Saying:
    """What a span says; each part that is asked for counts as understood."""

    def __init__(self, span: Span) -> None:
        self.span = span
        self._said: dict[str, Any] = dict(span.attributes)
        self._sent: list[Any] = []
        self._chosen: list[Any] = []
        for event in span.events:
            called, said = str(event["name"]), event["attributes"]
            if called in _TELLING or called.startswith("gen_ai.decision."):
                for name, value in said.items():
                    self._said.setdefault(name, value)
            elif called in _SENT:
                self._sent.append({"role": _SENT[called], **_message(said)})
            elif called == _CHOICE:
                self._chosen.append({"role": "assistant", **_message(said)})
        self._taken: set[str] = set()
        operation, kind = self._said.get("gen_ai.operation.name"), self._said.get("openinference.span.kind")
        self.kind: str = _SPAN_KINDS.get(str(kind).upper()) or _OPERATIONS.get(str(operation)) or self._guessed()
        """What the span stands for."""
        self.word: str = str(kind or operation or "span").lower()
        """What its dialect calls it."""

    def _guessed(self) -> str:
        """Return what a span stands for that names a model or a tool and no operation."""
        if "gen_ai.tool.name" in self._said or "tool.name" in self._said:
            return TOOL
        return MODEL if "gen_ai.request.model" in self._said or "llm.model_name" in self._said else OTHER

    def rest(self) -> dict[str, Any]:
        """Return the span's attributes that nobody asked for."""
        return {name: value for name, value in self.span.attributes.items() if name not in self._taken}

    def first(self, *names: str) -> Any:
        """Return the first of these attributes that is there; it counts as understood."""
        for name in names:
            if self._said.get(name) is not None:
                self._taken.add(name)
                return self._said[name]
        return None

    def text(self, *names: str) -> str | None:
        """Return the first of these attributes that is text."""
        found = self.first(*names)
        return found if isinstance(found, str) and found else None

    def value(self, *names: str) -> Any:
        """Return an attribute, read as JSON where it is JSON of an object or a list."""
        return parsed(self.first(*names))

    def spread(self, prefix: str) -> Any:
        """Return what attributes with this prefix spell together: `a.0.b` is `b` of the first item of the list `a`."""
        if prefix in self._said:
            return self.value(prefix)
        found: Any = None
        for name in sorted(self._said):
            if name.startswith(prefix + "."):
                self._taken.add(name)
                found = _put(found, name[len(prefix) + 1 :].split("."), self._said[name])
        return _settled(found)

    def count(self, *names: str) -> int | None:
        """Return the first of these attributes that is a count."""
        found = self.first(*names)
        return found if type(found) is int and found >= 0 else None

    # -------------------------------------------------------------------------------------------- the parts of it

    def messages(self) -> list[Any] | None:
        """Return what a model was sent."""
        found = (
            self.value("gen_ai.input.messages")
            or _unwrapped(self.spread("llm.input_messages"), "message")
            or self.spread("gen_ai.prompt")
            or _unwrapped(self.spread("llm.prompts"), "prompt")
            or self._sent
            or None
        )
        if found is None and (given := self.value("input.value")) is not None:
            inside = given.get("messages") if isinstance(given, dict) else None
            found = inside if inside is not None else [{"role": "user", "content": given}]
        system = self.value("gen_ai.system_instructions")
        listed = found if isinstance(found, list) else None if found is None else [found]
        if system is not None:
            said = {"parts": system} if isinstance(system, list) else {"content": system}
            listed = [{"role": "system", **said}, *(listed or [])]
        return listed

    def response(self) -> Any:
        """Return what a model answered: its text where that is all, else the message or messages."""
        found = (
            self.value("gen_ai.output.messages")
            or _unwrapped(self.spread("llm.output_messages"), "message")
            or self.spread("gen_ai.completion")
            or _unwrapped(self.spread("llm.choices"), "completion")
            or self._chosen
            or None
        )
        if found is None:
            return self.value("output.value")
        only = found[0] if isinstance(found, list) and len(found) == 1 else found
        said = words(only)
        return said if said is not None and _is_text(only) else only

    def usage(self) -> dict[str, int]:
        """Return the tokens that were used."""
        sent = self.count(
            "gen_ai.usage.input_tokens",
            "gen_ai.usage.prompt_tokens",
            "llm.token_count.prompt",
            "decision.token_count.input",
        )
        got = self.count(
            "gen_ai.usage.output_tokens",
            "gen_ai.usage.completion_tokens",
            "llm.token_count.completion",
            "decision.token_count.output",
        )
        return {name: count for name, count in (("input", sent), ("output", got)) if count is not None}

    def parameters(self) -> dict[str, Any]:
        """Return what a model was asked with besides messages."""
        stated = self.value("llm.invocation_parameters", "embedding.invocation_parameters")
        found = dict(stated) if isinstance(stated, dict) else {}
        for name in sorted(self._said):
            if name.startswith("gen_ai.request.") and name != "gen_ai.request.model":
                self._taken.add(name)
                found[name.removeprefix("gen_ai.request.")] = self._said[name]
        return found

    def asked(self) -> str | None:
        """Return what was asked of an agent, or of the model a trace is all about: the user's last words."""
        understood = set(self._taken)
        for messages in (self.messages(), self.value("pydantic_ai.all_messages", "all_messages_events")):
            for message in reversed(messages if isinstance(messages, list) else []):
                if not isinstance(message, dict) or message.get("role") in (None, "user", "human"):
                    said = words(message)
                    if said:
                        self._taken = understood  # the last words are not all of it: the messages are kept
                        return said
        self._taken = understood
        return None

    def answered(self) -> Any:
        """Return what an agent answered."""
        found = self.value("final_result", "gen_ai.agent.final_result")
        return found if found is not None else self.response()

    def error(self) -> dict[str, str] | None:
        """Return what a span that failed says of it."""
        from woodrat.surfaces.otlp.spans import ERROR

        if self.span.status != ERROR:
            return None
        kind, message = self.text("error.type"), self.span.message
        for event in self.span.events:
            if event["name"] == "exception":
                said = event["attributes"]
                kind = str(said.get("exception.type") or kind or "Exception")
                message = str(said.get("exception.message") or message)
        return {"type": kind or "Exception", "message": message}


def parsed(value: Any) -> Any:
    """Return text that is JSON of an object or a list as that, and all else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value


def words(message: Any) -> str | None:
    """Return the text of a message, however its dialect wraps it; `None` where it says more than text, or nothing."""
    if isinstance(message, str):
        return message
    if isinstance(message, list):
        said = [words(part) for part in message]
        return "\n".join(part for part in said if part is not None) if said and None not in said else None
    if not isinstance(message, dict):
        return None
    for name in ("content", "text", "parts", "contents", "message_content"):
        if message.get(name) is not None:
            return words(message[name])
    return None


def _is_text(message: Any) -> bool:
    """Return whether a message says nothing but its text: it calls no tools, and stopped because it was done."""
    if not isinstance(message, dict):
        return True
    known = {"role", "content", "parts", "contents", "finish_reason"}
    return known.issuperset(message) and message.get("finish_reason", "stop") == "stop"


def _message(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message that an event is: what it says in one piece, by name, or by names that begin alike."""
    body = parsed(said.get(_BODY))
    told: Any = None
    for name in sorted(said if not isinstance(body, dict) else ()):
        if not name.startswith("gen_ai."):
            told = _put(told, name.split("."), parsed(said[name]))
    found: dict[str, Any] = dict(body) if isinstance(body, dict) else _settled(told) or {}
    inner = found.pop("message", None)
    found.pop("index", None)
    if inner is not None:
        found |= inner if isinstance(inner, dict) else {"content": inner}
    return found


def _unwrapped(found: Any, name: str) -> Any:
    """Return a list whose items hold one thing each as the list of these."""
    if not isinstance(found, list):
        return found
    return [item[name] if isinstance(item, Mapping) and list(item) == [name] else item for item in found]


def _put(into: Any, path: list[str], value: Any) -> dict[str, Any]:
    found = into if isinstance(into, dict) else {}
    first, *rest = path
    found[first] = _put(found.get(first), rest, value) if rest else value
    return found


def _settled(found: Any) -> Any:
    """Return nested mappings with those that count from 0 as lists."""
    if not isinstance(found, dict):
        return found
    settled = {name: _settled(value) for name, value in found.items()}
    if settled and all(name.isascii() and name.isdigit() for name in settled):
        return [settled[name] for name in sorted(settled, key=int)]
    return settled
