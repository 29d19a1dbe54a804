"""Foreign: traces as other tools write them, translated into trajectories.

Two shapes are known. A *transcript* has `messages` as OpenAI's chat completions do: each message of the assistant is a
call of the model, each of its tool calls a call of a tool. *Spans* have a `run_type` as LangSmith's runs do: flat with
`trace_id` and `parent_run_id`, or nested in `child_runs`. Ids that are made anew for every call are left out of what is
compared, and parallel calls stand in the order they were asked for, whichever answered first.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, moment
from woodrat.errors import Fault, Refused, shown

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from woodrat.canon.form import Json

ROLES: Final = ("system", "developer", "user", "assistant", "tool", "function")
"""Who speaks in a transcript."""

_PARAMETERS: Final = (
    "temperature",
    "top_p",
    "seed",
    "max_tokens",
    "max_completion_tokens",
    "stop",
    "tool_choice",
    "response_format",
    "reasoning_effort",
)
_SPEECH: Final = frozenset({"messages", "choices", "model", "usage", "parameters", "tools", *_PARAMETERS})
_USAGE: Final = {
    "input": ("input", "prompt_tokens", "input_tokens"),
    "output": ("output", "completion_tokens", "output_tokens"),
}
_QUESTIONS: Final = ("input", "question", "query", "prompt", "text")
_ANSWERS: Final = ("output", "answer", "text", "content", "result")


def translated(document: Any, path: str, faults: list[Fault]) -> dict[str, Any] | None:
    """Return a document as a trajectory; as it is where it is one, none where it is at fault."""
    if isinstance(document, dict) and "messages" in document:
        return _Transcript(document, path, faults).trajectory()
    if isinstance(document, dict) and "run_type" in document:
        return _trace(document.get("spans") or [*_flat(document)])
    if not isinstance(document, dict):
        faults.append(Fault(path, f"expected a run, got {shown(document)}", "Send an object with steps or messages."))
        return None
    return document


def traces(items: Sequence[Any]) -> list[list[dict[str, Any]]]:
    """Return flat spans by trace, in the order in which each trace came first."""
    found: dict[str, list[dict[str, Any]]] = {}
    for item in items:
        for span in _flat(item):
            found.setdefault(str(span.get("trace_id") or items[0].get("id")), []).append(span)
    return list(found.values())


# Transcripts


class _Transcript:
    """Messages of a chat with tools, being translated."""

    def __init__(self, document: Mapping[str, Any], path: str, faults: list[Fault]) -> None:
        self._document, self._path, self._faults = document, path, faults
        self._steps: list[dict[str, Any]] = []
        self._asked = sha256(b"").hexdigest()
        """A digest of all messages so far; each model call is asked all of them."""
        self._new: list[Json] = []
        """The messages since the last call of the model."""
        self._calls: dict[str, dict[str, Any]] = {}
        self._answer: Json = None

    def trajectory(self) -> dict[str, Any] | None:
        """Return the trajectory; none, and faults, where the messages are not in order."""
        document = self._document
        messages = document["messages"]
        if not isinstance(messages, list):
            problem = f"expected an array of messages, got {shown(messages)}"
            self._faults.append(Fault(f"{self._path}/messages", problem, "Send a list of messages, each with a role."))
            return None
        both = ("steps", f"{self._path}/steps")
        if both[0] in document:
            problem = "there are messages as well"
            self._faults.append(Fault(both[1], problem, "Send steps or messages, not both."))
        before = len(self._faults)
        for number, message in enumerate([*messages, *_chosen(document)]):
            self._message(message, f"{self._path}/messages/{number}")
        if len(self._faults) > before or both[0] in document:
            return None
        found = {name: value for name, value in document.items() if name not in _SPEECH}
        found["steps"] = self._steps
        first = next((m for m in messages if m.get("role") == "user"), None)
        if first is not None:
            found.setdefault("query", _text(first.get("content")))
        if self._answer is not None:
            found.setdefault("answer", self._answer)
        usage = _usage(document.get("usage"))
        return {**found, "usage": usage} if usage else found

    def _message(self, message: Any, path: str) -> None:
        if not isinstance(message, dict):
            remedy = "Send an object with role and content."
            self._faults.append(Fault(path, f"expected a message, got {shown(message)}", remedy))
            return
        role = message.get("role")
        if role not in ROLES:
            problem, remedy = f"got {shown(role)}", f"Send one of {', '.join(ROLES)}."
            self._faults.append(Fault(f"{path}/role", problem, remedy))
        elif role == "assistant":
            self._assistant(message, path)
        elif role in ("tool", "function"):
            self._result(message, path)
        else:
            self._say({"role": role, "content": message.get("content")})

    def _say(self, message: Json) -> None:
        self._new.append(message)

    def _assistant(self, message: Mapping[str, Any], path: str) -> None:
        self._settle()
        calls = message.get("tool_calls") or []
        if message.get("function_call") is not None:
            calls = [{"function": message["function_call"]}]
        asked = [_call(call) for call in calls] if isinstance(calls, list) else [None]
        if None in asked:
            remedy = 'Send a list of {"id", "function": {"name", "arguments"}}.'
            self._faults.append(Fault(f"{path}/tool_calls", f"got {shown(calls)}", remedy))
            return
        content = message.get("content")
        told = [{"name": call["name"], "args": call["args"]} for call in asked if call is not None]
        response: Any = {"content": content, "tool_calls": told} if told else content
        step: dict[str, Any] = {"kind": "model", "request": self._digest(), "response": response}
        if self._new:
            step["messages"] = self._new
        model = message.get("model", self._document.get("model"))
        if isinstance(model, str):
            step["model"] = model
        parameters = self._document.get("parameters")
        step["parameters"] = {
            **(parameters if isinstance(parameters, dict) else {}),
            **{name: self._document[name] for name in _PARAMETERS if name in self._document},
        }
        self._steps.append(step)
        self._new = []
        self._chain({"role": "assistant", "response": response})
        for call in asked:
            assert call is not None
            made = {"kind": "tool", "name": call["name"], "args": call["args"]}
            self._steps.append(made)
            self._calls[call["id"] or f"{len(self._steps)}"] = made
        self._answer = None if told else content

    def _result(self, message: Mapping[str, Any], path: str) -> None:
        id = message.get("tool_call_id")
        made = self._calls.get(str(id))
        if made is None:  # older transcripts name the function alone
            waiting = (c for c in self._calls.values() if "result" not in c and c["name"] == message.get("name"))
            made = next(waiting, None)
        if made is None:
            problem = f"{shown(id)} does not answer an earlier tool call"
            remedy = "Send the assistant's message with that tool call before the result."
            self._faults.append(Fault(f"{path}/tool_call_id", problem, remedy))
            return
        made["result"] = _parsed(message.get("content"))

    def _settle(self) -> None:
        """Put the results of the calls before into what the model is asked next, in the order of the calls."""
        results: list[Json] = [
            {"role": "tool", "name": call["name"], "content": call["result"]}
            for call in self._calls.values()
            if "result" in call
        ]
        self._new = [*results, *self._new]
        self._calls = {}

    def _chain(self, message: Json) -> None:
        self._asked = sha256(self._asked.encode() + form.serialise(message)).hexdigest()

    def _digest(self) -> str:
        for message in self._new:
            self._chain(message)
        return self._asked


def _chosen(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the message that a completion answered with, where it stands beside its request."""
    choices = document.get("choices")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and "message" in choices[0]:
        yield choices[0]["message"]


def _call(call: Any) -> dict[str, Any] | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str) or not function["name"]:
        return None
    given = _parsed(function.get("arguments", {}))
    id = call.get("id")
    return {
        "id": id if isinstance(id, str) else None,
        "name": function["name"],
        "args": given if isinstance(given, dict) else {"arguments": given},
    }


def _parsed(content: Any) -> Json:
    """Return what text spells as JSON, where it is an object or an array; else the text."""
    text = _text(content) if isinstance(content, list) else content
    if isinstance(text, str) and text[:1] in ("{", "["):
        try:
            return form.parse(text)
        except Refused:
            return text
    found: Json = text
    return found


def _text(content: Any) -> str:
    """Return the text of a message's content, which may come in parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "\n".join(part["text"] for part in parts if isinstance(part, dict) and isinstance(part.get("text"), str))


def _usage(usage: Any) -> dict[str, int]:
    told = usage if isinstance(usage, dict) else {}
    found = {}
    for name, known in _USAGE.items():
        for other in known:
            if type(told.get(other)) is int and told[other] >= 0:
                found[name] = told[other]
                break
    return found


# Spans


def _flat(span: Any) -> Iterator[dict[str, Any]]:
    """Yield a span and those inside it, each with the one it is inside of."""
    if not isinstance(span, dict):
        return
    yield {name: value for name, value in span.items() if name != "child_runs"}
    inner = span.get("child_runs")
    for child in inner if isinstance(inner, list) else ():
        if isinstance(child, dict):
            yield from _flat({"parent_run_id": span.get("id"), "trace_id": span.get("trace_id"), **child})


def _trace(spans: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the trajectory of one trace: its root is the run, models and tools are its steps."""
    known = {span.get("id") for span in spans} - {None}
    root = next((span for span in spans if span.get("parent_run_id") not in known), spans[0])
    inputs, outputs = _object(root.get("inputs")), root.get("outputs")
    found: dict[str, Any] = {"id": str(root.get("trace_id") or root.get("id") or "")}
    if not found["id"]:
        del found["id"]
    found["inputs"] = inputs
    question = next((inputs[name] for name in _QUESTIONS if isinstance(inputs.get(name), str)), None)
    if question is not None:
        found["query"] = question
        found["inputs"] = {name: value for name, value in inputs.items() if value is not question}
    elif isinstance(root.get("name"), str):
        found["query"] = root["name"]
    answer = _first(outputs, _ANSWERS)
    if answer is not None:
        found["answer"] = answer
    if root.get("error"):
        found["error"] = str(root["error"])
    for name, theirs in (("started_at", "start_time"), ("ended_at", "end_time")):
        if root.get(theirs) is not None:
            found |= _time(root[theirs], name, theirs)
    inner = [span for span in spans if span is not root]
    inner.sort(key=lambda span: (str(span.get("start_time") or ""), str(span.get("dotted_order") or "")))
    alone = [root] if root.get("run_type") in ("llm", "tool", "retriever") and not inner else []
    found["steps"] = [_span_step(span) for span in [*inner, *alone]]
    return found


def _span_step(span: Mapping[str, Any]) -> dict[str, Any]:
    step: dict[str, Any] = {}
    if span.get("id") is not None:
        step["id"] = str(span["id"])
    if span.get("start_time") is not None:
        step |= _time(span["start_time"], "started_at", "start_time")
    if span.get("error"):
        step["error"] = str(span["error"])
    kind, name = span.get("run_type"), str(span.get("name") or span.get("run_type") or "step")
    inputs, outputs = span.get("inputs"), span.get("outputs")
    if kind == "llm":
        extra = _object(span.get("extra"))
        parameters = _object(extra.get("invocation_params"))
        model = _object(extra.get("metadata")).get("ls_model_name") or parameters.get("model") or name
        asked = _first(inputs, ("messages", "prompts"))
        step |= {"kind": "model", "model": str(model), "messages": asked if isinstance(asked, list) else [asked]}
        step["parameters"] = {key: value for key, value in parameters.items() if key != "model"}
        return step if outputs is None else {**step, "response": _first(outputs, _ANSWERS)}
    if kind in ("tool", "retriever"):
        given = _parsed(inputs.get("input")) if isinstance(inputs, dict) and set(inputs) == {"input"} else inputs
        step |= {"kind": "tool", "name": name, "args": given if isinstance(given, dict) else {"input": given}}
        return step if outputs is None else {**step, "result": _first(outputs, ("output", "documents"))}
    return {**{key: value for key, value in step.items() if key != "error"}, "kind": "note", "text": name}


def _first(found: Any, names: Iterable[str]) -> Json:
    """Return the member that holds what came of something, or else all of it."""
    if isinstance(found, dict):
        for name in names:
            if name in found:
                value: Json = found[name]
                return value
    whole: Json = found
    return whole


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _time(told: Any, name: str, theirs: str) -> dict[str, Any]:
    """Return a time under our name; these tools write UTC without an offset. One that cannot be read keeps its own."""
    bare = isinstance(told, str) and "T" in told and not told.endswith(("Z", "z"))
    text = f"{told}Z" if bare and "+" not in told and told.count("-") == 2 else told
    return {name: text} if moment.fault(text) is None else {theirs: told}
