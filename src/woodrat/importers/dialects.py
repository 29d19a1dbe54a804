"""Dialects: how different tracing libraries describe an agent's work in a span.

OpenTelemetry's GenAI conventions, OpenInference, and the words of the AI SDK, OpenLLMetry, LangSmith and Google's ADK.

A dialect is a set of attribute names. Each understood attribute is marked, so that all others can be kept unchanged; a
partly understood one is kept too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.importers import wrappers
from woodrat.importers.wrappers import LEVELS_MAX, parsed
from woodrat.runs import messages as speech

if TYPE_CHECKING:
    from woodrat.importers.spans import Span

MODEL, TOOL, DECISION, AGENT, OTHER = "model", "tool", "decision", "agent", "other"
"""The kind of work in a span."""

_OPERATIONS: Final = {
    "chat": MODEL,
    "text_completion": MODEL,
    "generate_content": MODEL,
    "embeddings": MODEL,
    "execute_tool": TOOL,
    "retrieval": TOOL,
    "call_llm": MODEL,
    "llm_call": MODEL,
    "tool_call": TOOL,
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
_ENTITIES: Final = {"tool": TOOL, "agent": AGENT, "workflow": AGENT}
"""By `traceloop.span.kind`."""
_DOING: Final = (".doGenerate", ".doStream", ".doEmbed", ".doRerank")
"""Suffixes of AI SDK operations (`ai.operationId`) that are one model call."""
_TOOL_CALL: Final = "ai.toolCall"
_MADE_ANEW: Final = frozenset({"id", "created_at", "completed_at", "object", "status", "previous_response_id"})
"""Parameters that an instrumentation copied from the answer: they differ every time, and were not in the request."""
_SHOWN_OBJECT: Final = re.compile(r"<[\w.]+ object")
"""Python's default representation of an object, which has no readable content."""
_TRACEBACK: Final = "Traceback (most recent call last)"
_FINISHED: Final = frozenset({"stop", "end_turn", "completed"})
"""Reasons to stop that say no more than that the answer is whole."""
_TELLING: Final = ("gen_ai.client.inference.operation.details", "gen_ai.content.prompt", "gen_ai.content.completion")
"""Events whose attributes count as the span's: they hold the messages of a model call if the span does not."""
_SENT: Final = {f"gen_ai.{role}.message": role for role in ("system", "user", "assistant", "tool")}
"""Events that each hold one message to a model, and its default role."""
_CHOICE: Final = "gen_ai.choice"
"""An event that holds one message of a model's answer."""
_BODY: Final = "gen_ai.event.content"
"""Where such an event may hold all it says, as JSON."""


class Saying:
    """The content of a span; each part that is read is marked as understood."""

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
        self._failed: str | None = None
        operation, kind = self._said.get("gen_ai.operation.name"), self._said.get("openinference.span.kind")
        self.kind: str = _SPAN_KINDS.get(str(kind).upper()) or _OPERATIONS.get(str(operation)) or self._guessed()
        """The kind of work in the span."""
        self.word: str = str(kind or operation or "span").lower()
        """Its name in the dialect."""

    def _guessed(self) -> str:
        """Return the kind of a span by synonyms, or by a model or tool name without an operation."""
        entity = _ENTITIES.get(str(self._said.get("traceloop.span.kind")))
        if entity is not None:
            return entity
        operation = str(self._said.get("ai.operationId", ""))
        if operation.startswith("ai."):
            return TOOL if operation == _TOOL_CALL else MODEL if operation.endswith(_DOING) else AGENT
        if "gen_ai.tool.name" in self._said or "tool.name" in self._said:
            return TOOL
        return MODEL if "gen_ai.request.model" in self._said or "llm.model_name" in self._said else OTHER

    def rest(self) -> dict[str, Any]:
        """Return the span's attributes that were not understood."""
        return {name: value for name, value in self.span.attributes.items() if name not in self._taken}

    def first(self, *names: str) -> Any:
        """Return the first of these attributes that exists, and mark it as understood."""
        for name in names:
            if self._said.get(name) is not None:
                self._taken.add(name)
                return self._said[name]
        return None

    def peek(self, *names: str) -> str | None:
        """Return the first of these attributes that is text, and leave it among the rest."""
        found = (self._said.get(name) for name in names)
        return next((value for value in found if isinstance(value, str) and value), None)

    def text(self, *names: str) -> str | None:
        """Return the first of these attributes that is text."""
        found = self.first(*names)
        return found if isinstance(found, str) and found else None

    def value(self, *names: str) -> Any:
        """Return an attribute, read as JSON where it is JSON of an object or a list."""
        return parsed(self.first(*names))

    def spread(self, prefix: str) -> Any:
        """Return the nested value of attributes with this prefix: `a.0.b` is `b` of the first item of the list `a`."""
        if prefix in self._said:
            return self.value(prefix)
        found: Any = None
        for name in sorted(self._said):
            if name.startswith(prefix + "."):
                self._taken.add(name)
                found = _put(found, name[len(prefix) + 1 :].split(".", LEVELS_MAX), self._said[name])
        return _settled(found)

    def count(self, *names: str) -> int | None:
        """Return the first of these attributes that is a count."""
        found = self.first(*names)
        return found if type(found) is int and 0 <= found <= form.INTEGER_MAX else None

    # -------------------------------------------------------------------------------------------- the parts of it

    def messages(self) -> list[Any] | None:
        """Return the messages to a model."""
        system = self.value("gen_ai.system_instructions")
        listed = self._in_place("gen_ai.input.messages")
        for prefix, wrap in (("llm.input_messages", "message"), ("gen_ai.prompt", None), ("llm.prompts", "prompt")):
            if not listed:
                listed = self._spread_messages(prefix, wrap)
        listed = listed or self._in_place("ai.prompt.messages") or self._sent or None
        if listed is None and (given := self.value("ai.prompt")) is not None:
            told = given if isinstance(given, Mapping) else {"prompt": given}
            system = system if system is not None else told.get("system")
            listed = wrappers.messages(told) or [{"role": "user", "content": told.get("prompt", given)}]
        if listed is None and isinstance(given := self.value("gcp.vertex.agent.llm_request"), Mapping) and given:
            system = system if system is not None else _within(given, "config", "system_instruction")
            self._taken.discard("gcp.vertex.agent.llm_request")
            listed = given.get("contents")
        if listed is None and (given := self.value("input.value", "traceloop.entity.input")) is not None:
            listed = wrappers.messages(given) or [{"role": "user", "content": given}]
        if system is not None:
            said = {"parts": system} if isinstance(system, list) else {"content": system}
            listed = [{"role": "system", **said}, *(listed or [])]
        return listed

    def _in_place(self, name: str) -> list[Any] | None:
        """Return the messages in one attribute."""
        found = self.value(name)
        if found is None or found == []:
            return None
        return found if isinstance(found, list) else [found]

    def _spread_messages(self, prefix: str, wrap: str | None) -> list[Any] | None:
        """Return the messages in attributes with this prefix; wrapped ones keep their wrapper there too."""
        found = self.spread(prefix)
        if not found:
            return None
        if wrap is not None:
            found = _unwrapped(found, wrap)
        told = wrappers.messages(found)
        if told is not None and told != found:
            self._taken.discard(prefix)
        listed = told if told is not None else [found]
        # a role alone is not a message
        return listed if any(not isinstance(item, Mapping) or set(item) - {"role"} for item in listed) else None

    def response(self) -> Any:
        """Return a model's answer: its text if that is all, else the message or messages."""
        found = (
            self.value("gen_ai.output.messages")
            or _unwrapped(self.spread("llm.output_messages"), "message")
            or self._completion()
            or _unwrapped(self.spread("llm.choices"), "completion")
            or self._responded()
            or self._vertex_content()
            or self._chosen
            or None
        )
        if found is None:
            return self.value("output.value", "traceloop.entity.output", "gen_ai.output")
        only = found[0] if isinstance(found, list) and len(found) == 1 else found
        said = speech.words(only)
        return said if said is not None and _is_text(only) else only

    def _completion(self) -> Any:
        """Return the content of `gen_ai.completion`."""
        found = self.spread("gen_ai.completion")
        told = wrappers.messages(found) if isinstance(found, Mapping) else None
        if told is None:
            return found
        self._taken.discard("gen_ai.completion")
        return told if self.kind == MODEL else found

    def _responded(self) -> Any:
        """Return a model's answer as recorded by the AI SDK."""
        text, calls = self.text("ai.response.text"), self.value("ai.response.toolCalls")
        found = self.value("ai.response.object")
        if calls:
            return {"role": "assistant", **({"content": text} if text else {}), "tool_calls": calls}
        return found if found is not None else text

    def _vertex_content(self) -> Any:
        """Return a model's answer as recorded by Google's ADK."""
        found = self.value("gcp.vertex.agent.llm_response")
        self._taken.discard("gcp.vertex.agent.llm_response")
        return _within(found, "content")

    def usage(self) -> dict[str, int]:
        """Return the tokens that were used."""
        sent = self.count(
            *("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "gen_ai.aggregated_usage.input_tokens"),
            *("llm.token_count.prompt", "decision.token_count.input", "ai.usage.inputTokens", "ai.usage.promptTokens"),
        )
        got = self.count(
            *("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "gen_ai.aggregated_usage.output_tokens"),
            *("llm.token_count.completion", "decision.token_count.output"),
            *("ai.usage.outputTokens", "ai.usage.completionTokens"),
        )
        return {name: count for name, count in (("input", sent), ("output", got)) if count is not None}

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of a model call, without messages."""
        names = ("llm.invocation_parameters", "embedding.invocation_parameters")
        stated = self.value(*names)
        found = dict(stated) if isinstance(stated, dict) else {}
        if _MADE_ANEW & found.keys():
            self._taken.difference_update(names)
            found = {name: value for name, value in found.items() if name not in _MADE_ANEW}
        for name in sorted(self._said):
            if name.startswith("gen_ai.request.") and name != "gen_ai.request.model":
                self._taken.add(name)
                found[name.removeprefix("gen_ai.request.")] = self._said[name]
        return found

    def arguments(self) -> Any:
        """Return the arguments of a tool call."""
        understood = set(self._taken)
        found = self.value(
            *("gen_ai.tool.call.arguments", "input.value", "gen_ai.retrieval.query.text", "reranker.query"),
            *(
                "ai.toolCall.args",
                "tool_arguments",
                "gcp.vertex.agent.tool_call_args",
                "gen_ai.tool.args",
                "traceloop.entity.input",
                "gen_ai.prompt",
            ),
        )
        if found is None and self._sent:
            found = parsed(self._sent[-1].get("content"))
        if found is None:
            found = self.value("tool.parameters")
        return self._converted(wrappers.arguments(found), found, understood)

    def result(self) -> Any:
        """Return the result of a tool call."""
        understood = set(self._taken)
        found = self.value(
            *("gen_ai.tool.call.result", "output.value", "gen_ai.retrieval.documents", "ai.toolCall.result"),
            *("tool_response", "gcp.vertex.agent.tool_response", "traceloop.entity.output", "gen_ai.completion"),
            "gen_ai.output",
        )
        for documents in ("retrieval.documents", "reranker.output_documents"):
            spelled = self.spread(documents)
            found = spelled if found is None else found
        if found is None and self._chosen:
            said = speech.words(self._chosen[-1])
            found = parsed(said if said is not None else self._chosen[-1])
        told, failed = wrappers.result(found)
        self._failed = speech.words(told) or str(told) if failed else None
        return self._converted(told, found, understood)

    def _converted(self, told: Any, found: Any, understood: set[str]) -> Any:
        """Return a converted value; if the conversion loses a part, keep the original attribute as well."""
        if told is not found:
            self._taken = understood
        return told

    def asked(self) -> str | None:
        """Return the question to an agent, or to the only model of a trace: the user's last message."""
        understood = set(self._taken)
        try:
            return (
                speech.question(self.messages())
                or speech.question(self.value("pydantic_ai.all_messages", "all_messages_events"))
                or wrappers.question(self.value("input.value", "traceloop.entity.input"))
                or wrappers.tasks(self.value("crew_tasks"))
            )
        finally:
            self._taken = understood  # the last message is not everything: keep the messages

    def inputs(self) -> dict[str, Any] | None:
        """Return the named inputs of an agent; arguments of a framework's own functions do not count."""
        given = self._said.get("input.value")
        found = parsed(given)
        if not isinstance(found, dict) or _SHOWN_OBJECT.search(str(given)):
            return None
        return dict(self.value("input.value"))

    def answered(self) -> Any:
        """Return an agent's answer."""
        understood = set(self._taken)
        found = self.value("final_result", "gen_ai.agent.final_result")
        if found is None:
            found = self.response()
        return self._converted(wrappers.answer(found), found, understood)

    def error(self) -> dict[str, str] | None:
        """Return the error of a failed span."""
        from woodrat.importers.spans import ERROR

        if self.span.status != ERROR:
            return self._error_in_message()
        kind = self.text("error.type")
        message = self.span.message
        for event in self.span.events:
            if event["name"] == "exception":
                said = event["attributes"]
                kind = str(said.get("exception.type") or kind or "Exception")
                message = str(said.get("exception.message") or message)
        return {"type": kind or "Exception", "message": message.split(_TRACEBACK)[0] or message}

    def _error_in_message(self) -> dict[str, str] | None:
        """Return a tool's error if its span has none: the framework passed the error to the model."""
        if self.kind != TOOL:
            return None
        returned = self.result()
        if self._failed is None and self._said.get("tool.status") != "error":
            return None
        return {"type": "Exception", "message": self._failed or speech.words(returned) or str(returned)}


def _within(found: Any, *path: str) -> Any:
    """Return the value under these nested names."""
    for name in path:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _is_text(message: Any) -> bool:
    """Return True if a message is only text: it calls no tools, and has the normal stop reason."""
    if not isinstance(message, dict):
        return True
    known = {"role", "content", "parts", "contents", "finish_reason"}
    return known.issuperset(message) and str(message.get("finish_reason", "stop")).lower() in _FINISHED


def _message(said: Mapping[str, Any]) -> dict[str, Any]:
    """Return the message in an event: one attribute, an attribute by name, or several with a common prefix."""
    body = parsed(said.get(_BODY))
    told: Any = None
    for name in sorted(said if not isinstance(body, dict) else ()):
        if not name.startswith("gen_ai."):
            told = _put(told, name.split(".", LEVELS_MAX), parsed(said[name]))
    found: dict[str, Any] = dict(body) if isinstance(body, dict) else _settled(told) or {}
    inner = found.pop("message", None)
    found.pop("index", None)
    if inner is not None:
        found |= inner if isinstance(inner, dict) else {"content": inner}
    return found


def _unwrapped(found: Any, name: str) -> Any:
    """Return a list of one-member items as the list of their values."""
    if not isinstance(found, list):
        return found
    return [item[name] if isinstance(item, Mapping) and list(item) == [name] else item for item in found]


def _put(into: Any, path: list[str], value: Any) -> dict[str, Any]:
    found = into if isinstance(into, dict) else {}
    first, *rest = path
    found[first] = _put(found.get(first), rest, value) if rest else value
    return found


def _settled(found: Any) -> Any:
    """Return nested mappings with those numbered from 0 as lists."""
    if not isinstance(found, dict):
        return found
    settled = {name: _settled(value) for name, value in found.items()}
    if settled and all(name.isascii() and name.isdigit() for name in settled):
        return [settled[name] for name in sorted(settled, key=int)]
    return settled
