"""Transcripts: chats of users, agents and tools become trajectories.

Every turn of the assistant, or of an agent with a name of its own, is a model call, and each tool call in it is a call
of that tool; results are matched by id, then by name, then by order. No role is refused: an unknown role is the name of
an agent. Ids that are new for every call are excluded from comparison, and parallel calls are in the order of their
requests, not of their results.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, shown
from woodrat.importers.fields import moment_fields, tokens
from woodrat.importers.format import Format
from woodrat.importers.table import conversations
from woodrat.runs import chat_message as chat
from woodrat.runs import messages as speech
from woodrat.runs.chat_message import AGENT, ASSISTANT, SYSTEM, TOOL, USER, ChatTurn
from woodrat.runs.conversation import CONTINUES, SPEAKER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.importers.format import ParsedDocument
    from woodrat.runs.recordings import Placed

PLACES: Final = (
    *("messages", "history", "traj", "trajectory", "conversation", "conversations", "dialogue", "dialog"),
    *("turns", "transcript", "chat", "chat_history", "contents", "interaction", "log"),
)
"""Members of a document that may hold its messages; the first non-empty one counts."""
_QUESTIONS: Final = ("query", "question", "problem_statement")
"""Members that may hold the question."""
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
_SPEECH: Final = frozenset(
    {"choices", "candidates", "model", "usage", "usageMetadata", "parameters", "object", "stop_reason"} | {*_PARAMETERS}
)
"""Members of a document that map to its steps, or are not about the run."""
_STATUSES: Final = {
    **dict.fromkeys(("done", "success", "succeeded", "completed", "complete", "ok", "finished"), "done"),
    **dict.fromkeys(("error", "failed", "failure"), "error"),
    **dict.fromkeys(("cancelled", "canceled", "aborted"), "cancelled"),
    **dict.fromkeys(("interrupted", "incomplete", "in_progress"), "interrupted"),
}
_ITEMS: Final = frozenset({"input", "output"})
"""Members of OpenAI responses with the earlier messages and the answer."""


def place_of(document: Mapping[str, Any]) -> str | None:
    """Return the member of a document that holds its messages; None without one."""
    for name in PLACES:
        listed = document.get(name)
        if name == "messages" and name in document:
            return name
        if isinstance(listed, list) and listed and all(isinstance(item, dict) for item in listed):
            if any(map(chat.looks_like, listed)):
                return name
        elif name in ("traj", "messages", "conversations") and listed == []:
            return name
    return None


def is_responses(document: Mapping[str, Any]) -> bool:
    """Return True if a document is a call of OpenAI's responses API: its input, and its output items."""
    came = document.get("output")
    listed = isinstance(came, list) and came and all(isinstance(item, dict) and "type" in item for item in came)
    return bool(listed) and isinstance(document.get("input"), str | list)


def trajectory_of(document: Mapping[str, Any], path: str, faults: list[Fault]) -> dict[str, Any] | None:
    """Return a document with messages as a trajectory; none, and faults, where they are not in order."""
    place = place_of(document)
    if place is None:
        assert is_responses(document)
        sent = document["input"]
        said = [{"role": "user", "content": sent}] if isinstance(sent, str) else [*sent]
        listed, place = [*said, *document["output"]], "input"
        taken = _ITEMS
    else:
        listed, taken = document[place], frozenset({place})
        if not isinstance(listed, list):
            problem = f"expected an array of messages, got {shown(listed)}"
            faults.append(Fault(f"{path}/{place}", problem, "Send a list of messages, each with a role."))
            return None
        if "steps" in document:
            faults.append(Fault(f"{path}/steps", "there are messages as well", "Send steps or messages, not both."))
    before = [{"role": "system", "content": text} for text in _instructions(document)]
    told = _Transcript(document, f"{path}/{place}", faults)
    made = told.steps([*before, *listed, *_chosen(document)], len(before))
    if made is None or "steps" in document:
        return None
    found = {name: value for name, value in document.items() if name not in _SPEECH | taken and value is not None}
    return {**_about(found, told), "steps": made}


def _about(found: dict[str, Any], told: _Transcript) -> dict[str, Any]:
    """Return the facts about the run in a document, in the members of a trajectory."""
    asked = next((name for name in _QUESTIONS if _lines(found.get(name))), None)
    if asked is not None:
        found["query"] = _lines(found.pop(asked))
    elif told.question is not None:
        found.setdefault("query", told.question)
    if told.answer is not None:
        found.setdefault("answer", told.answer)
    further = dict(found["attributes"]) if isinstance(found.get("attributes"), dict) else {}
    if not isinstance(found.get("id", ""), str):
        further["id"] = found.pop("id")
    agent = found.get("agent")
    if isinstance(agent, dict) and isinstance(agent.get("name"), str):
        further["agent"] = found.pop("agent")
        told.names[agent["name"]] = None
    status = found.get("status")
    if isinstance(status, str) and status.lower() in _STATUSES:
        found["status"] = _STATUSES[status.lower()]
    elif status is not None:
        further["status"] = found.pop("status")
    if isinstance(found.get("error"), bool | list):
        further["error"] = found.pop("error")
    times = moment_fields(found, {"started_at": ("start_time",), "ended_at": ("end_time",)})
    found = {**{name: value for name, value in found.items() if name not in times.used}, **times.fields}
    usage = tokens(told.document.get("usage") or told.document.get("usageMetadata"))
    if usage:
        found["usage"] = usage
    if told.names:
        stated = found.get("names")
        found["names"] = sorted({*told.names, *(stated if isinstance(stated, list) else ())}, key=str)
    if further:
        found["attributes"] = further
    return found


class _Transcript:
    """Chat messages during their translation."""

    def __init__(self, document: Mapping[str, Any], path: str, faults: list[Fault]) -> None:
        self.document, self._path, self._faults = document, path, faults
        self.names: dict[str, None] = {}
        """The names of the agents."""
        self.question: str | None = None
        self.answer: Json = None
        self._steps: list[dict[str, Any]] = []
        self._asked = sha256(b"").hexdigest()
        """A digest of all messages so far; each model call receives all of them."""
        self._new: list[Json] = []
        """The messages since the last call of the model."""
        self._open: list[tuple[str | None, int]] = []
        """Which steps are calls that wait for their results, with the ids of the calls."""
        self._answered: dict[str, dict[str, Any]] = {}
        """Calls that have their results, by id."""
        self._results: dict[int, Json] = {}
        """The calls with results since the last model call, and the text that the model receives."""
        self._thought: dict[str, Any] = {}
        """The model's reasoning before its first message."""

    def steps(self, listed: Sequence[Any], before: int) -> list[dict[str, Any]] | None:
        """Return the steps; none, and faults, where the messages are not in order.

        The first `before` messages are elsewhere in the document.
        """
        faults = len(self._faults)
        spoken: list[tuple[ChatTurn, Mapping[str, Any], str]] = []
        for number, message in enumerate(listed):
            path = f"{self._path}/{max(number - before, 0)}"
            for turn in self._turns(message, path):
                spoken.append((turn, message, path))
        named_users = _agents_among_users(turn for turn, _, _ in spoken)
        if any(isinstance(message, dict) and chat.is_item(message) for message in listed):
            last = {id(turn): (message, path) for turn, message, path in spoken}
            spoken = [(turn, *last[id(whole[-1])]) for turn, whole in chat.joined(turn for turn, _, _ in spoken)]
        for turn, message, path in spoken:
            agent = turn.speaker in (ASSISTANT, AGENT) or (turn.speaker == USER and turn.name in named_users)
            for result in turn.results if turn.speaker != ASSISTANT else ():
                self._result(result, path)
            if agent:
                self._spoke(turn, message, path)
                for result in turn.results if turn.speaker == ASSISTANT else ():
                    self._result(result, path)
            elif turn.speaker in (SYSTEM, USER):
                self._add_user_message(turn, path)
        for said in self._new:  # no model call followed
            assert isinstance(said, dict)
            text = speech.text_in(said)
            if text and self._steps:
                about = {name: value for name, value in said.items() if name != "content"}
                self._steps.append({"kind": "note", "text": text, "attributes": {SPEAKER: said["role"], **about}})
        return self._steps if len(self._faults) == faults else None

    def _turns(self, message: Any, path: str) -> list[ChatTurn]:
        if not isinstance(message, dict):
            remedy = "Send an object with role and content."
            self._faults.append(Fault(path, f"expected a message, got {shown(message)}", remedy))
            return []
        if (calls := chat.bad_calls(message)) is not None:
            remedy = 'Send a list of {"id", "function": {"name", "arguments"}}.'
            self._faults.append(Fault(f"{path}/tool_calls", f"got {shown(calls)}", remedy))
            return []
        found = chat.turns(message)
        if found is None:
            problem = f"got {shown(message.get('role'))}, and no other member names the speaker"
            self._faults.append(Fault(f"{path}/role", problem, "Name the speaker: a role, or the name of an agent."))
        return found or []

    def _add_user_message(self, turn: ChatTurn, path: str) -> None:
        """Add a message of the user or the system."""
        if turn.content is not None or not turn.results:
            said: dict[str, Json] = {"role": turn.speaker, "content": turn.content}
            if turn.name is not None:
                said["name"] = turn.name
            self._new.append(said)
            if turn.speaker == USER and self.question is None:
                self.question = speech.text_in({"content": turn.content}) or None
        self._call(turn, {"agent": turn.name or turn.speaker}, path)

    def _spoke(self, turn: ChatTurn, message: Mapping[str, Any], path: str) -> None:
        """Add a message of an agent, and its tool calls."""
        if turn.content is None and not turn.calls and set(turn.beside) == {"reasoning"}:
            self._thought = dict(turn.beside)
            return
        self._settle()
        told: list[Json] = [{"name": call.name, "args": call.args} for call in turn.calls]
        response: Any = {"content": turn.content, "tool_calls": told} if told else turn.content
        step: dict[str, Any] = {"kind": "model", "request": self._digest(), "response": response}
        if self._new:
            step["messages"] = self._new
        model = message.get("model") or message.get("model_name") or self.document.get("model")
        if isinstance(model, str):
            step["model"] = model
        stated = self.document.get("parameters")
        step["parameters"] = {
            **(stated if isinstance(stated, dict) else {}),
            **{name: self.document[name] for name in _PARAMETERS if name in self.document},
        }
        if usage := tokens(message.get("usage") or message.get("usage_metadata")):
            step["usage"] = usage
        step |= _time(message)
        about: dict[str, Any] = {**self._thought, **turn.beside}
        self._thought = {}
        if turn.name is not None:
            self.names[turn.name] = None
            about["agent"] = turn.name
        if turn.role is not None:
            about["role"] = turn.role
        if any(earlier["kind"] == "model" for earlier in self._steps):
            about[CONTINUES] = True
        if about:
            step["attributes"] = about
        self._steps.append(step)
        self._new = []
        named = {} if turn.name is None else {"name": turn.name}
        self._chain({"role": "assistant", **named, "response": response})
        self._call(turn, {"agent": turn.name} if turn.name is not None else {}, path)
        if turn.to is not None:
            self.names[turn.to] = None
            by = {"attributes": {"agent": turn.name}}
            self._steps.append({"kind": "decision", "stage": f"handoff from {turn.name}", "chosen": turn.to, **by})
        self.answer = None if told else turn.content

    def _call(self, turn: ChatTurn, about: dict[str, Any], path: str) -> None:
        """Take in the tools that a turn calls."""
        ids: dict[str, chat.ChatCall] = {}
        for call in turn.calls:
            if call.id is not None and ids.setdefault(call.id, call) is not call:
                remedy = "Give each call a distinct id, or leave the ids out."
                problem = f"two calls have the id {shown(call.id)}"
                self._faults.append(Fault(f"{path}/tool_calls", problem, remedy))
            made: dict[str, Any] = {"kind": "tool", "name": call.name, "args": call.args}
            if about:
                made["attributes"] = dict(about)
            self._steps.append(made)
            self._open = [(id, open) for id, open in self._open if id is None or id != call.id]
            self._open.append((call.id, len(self._steps) - 1))
            if call.id is not None:
                self._answered.pop(call.id, None)

    def _result(self, result: chat.ChatResult, path: str) -> None:
        """Assign a tool's result to its call."""
        came = {"error": _words(result.content)} if result.failed else {"result": result.content}
        told = result.words if result.words is not None else result.content
        place = self._waiting(result)
        if place is not None:
            id, number = self._open.pop(place)
            self._steps[number] |= came
            self._results[number] = told
            if id is not None:
                self._answered[id] = self._steps[number]
            return
        known = self._answered.get(result.id or "")
        if known is not None:
            if any(name not in known or not form.same(known[name], value) for name, value in came.items()):
                problem = f"{shown(result.id)} was answered before, differently"
                remedy = "Send one result for each call, or give each call a distinct id."
                self._faults.append(Fault(f"{path}/tool_call_id", problem, remedy))
        elif result.id is not None:
            problem = f"{shown(result.id)} does not answer an earlier tool call"
            remedy = "Send the assistant's message with that tool call before the result."
            self._faults.append(Fault(f"{path}/tool_call_id", problem, remedy))
        else:
            self._steps.append({"kind": "tool", "name": result.name or TOOL, **came})
            self._results[len(self._steps) - 1] = told

    def _waiting(self, result: chat.ChatResult) -> int | None:
        """Return which of the open calls a result answers: by its id, by the name of the tool, or in order."""
        for place, (id, _) in enumerate(self._open):
            if id is not None and id == result.id:
                return place
        if result.id in self._answered:
            return None
        free = [place for place, (id, _) in enumerate(self._open) if id is None or result.id is None]
        alike = [place for place in free if self._steps[self._open[place][1]]["name"] == result.name]
        return next(iter(alike), next(iter(free), None) if result.name is None else None)

    def _settle(self) -> None:
        """Add the results of the previous calls to the next model request, in the order of the calls."""
        results: list[Json] = [
            {"role": "tool", "name": self._steps[number]["name"], "content": told}
            for number, told in sorted(self._results.items())
        ]
        self._new, self._results = [*results, *self._new], {}

    def _chain(self, message: Json) -> None:
        self._asked = sha256(self._asked.encode() + form.serialise(message)).hexdigest()

    def _digest(self) -> str:
        for message in self._new:
            self._chain(message)
        return self._asked


def _agents_among_users(turns: Iterator[ChatTurn]) -> frozenset[str]:
    """Return the names that speak as users and are agents.

    In a chat of several agents `user` means only another speaker. It is a group chat if two users
    have names, or one name speaks both as the user and as the assistant.
    """
    spoken = [(turn.speaker, turn.name) for turn in turns if turn.name is not None]
    users = {name for speaker, name in spoken if speaker == USER}
    others = {name for speaker, name in spoken if speaker in (ASSISTANT, AGENT)}
    return frozenset(users) if len(users) > 1 or users & others else frozenset()


def _instructions(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the earlier messages that are beside the messages."""
    for name in ("system", "instructions", "system_instruction", "systemInstruction"):
        stated = document.get(name)
        if isinstance(stated, str | list) and stated:
            yield stated
        elif isinstance(stated, dict) and isinstance(stated.get("parts"), list):
            yield stated["parts"]


def _chosen(document: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the message of a model's answer, if it is beside its request."""
    choices, candidates = document.get("choices"), document.get("candidates")
    if isinstance(choices, list) and choices and isinstance(choices[0], dict) and "message" in choices[0]:
        yield choices[0]["message"]
    elif isinstance(candidates, list) and candidates and isinstance(candidates[0], dict):
        if isinstance(candidates[0].get("content"), dict):
            yield {"role": "model", **candidates[0]["content"]}
    elif document.get("role") == "assistant" and isinstance(document.get("content"), list | str):
        yield {"role": "assistant", "content": document["content"]}


def _time(message: Mapping[str, Any]) -> dict[str, Any]:
    names = ("started_at", "timestamp", "created_at", "time")
    return moment_fields(message, {"started_at": names}).fields


def _words(content: Any) -> str:
    said = speech.text_in({"content": content})
    return said if said is not None else form.serialise(content).decode()


def _lines(value: Any) -> str | None:
    """Return text, which some write as a list of lines."""
    if isinstance(value, list) and value and all(isinstance(line, str) for line in value):
        return "\n".join(value)
    return value if isinstance(value, str) and value else None


# The format: documents with messages, and messages by themselves

_TOLD: Final = frozenset({"query", "steps", "answer"})


def _is_transcript(item: Mapping[str, Any]) -> bool:
    if "messages" in item and isinstance(item.get("kind"), str):
        return False  # a step of a run
    return place_of(item) is not None or is_responses(item)


def _is_message(item: Mapping[str, Any]) -> bool:
    return chat.looks_like(item) and not _TOLD & item.keys()


def _read(items: Sequence[Placed], reading: ParsedDocument) -> None:
    for item, path in items:
        found = trajectory_of(item, path, reading.faults)
        if found is not None:
            reading.trajectories.append((found, path))


def _read_messages(items: Sequence[Placed], reading: ParsedDocument) -> None:
    for document, path in conversations(items):
        faults: list[Fault] = []
        found = trajectory_of(document, path, faults)
        if path == "":  # the list is the messages
            faults = [Fault(fault.path.removeprefix("/messages"), fault.problem, fault.remedy) for fault in faults]
        reading.faults += faults
        if found is not None:
            reading.trajectories.append((found, path))


FORMATS: Final = (
    Format("messages", _is_message, _read_messages, parts=True, weak=True),
    Format("transcript", _is_transcript, _read),
)
