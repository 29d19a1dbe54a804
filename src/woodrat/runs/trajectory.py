"""Trajectory: a run that was recorded elsewhere, in the neutral format of docs/formats/trajectory.md, as entries.

Equal documents give equal entries: nothing here asks a clock. A run's id is derived from the id it had where it was
recorded, or else from all the document says, so that importing twice changes nothing.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, moment
from woodrat.canon.ids import ID_CHARACTERS
from woodrat.errors import Fault, shown
from woodrat.records import dataclass
from woodrat.runs import json_values, values
from woodrat.runs.facts import CALLS, INPUTS, READS, Links
from woodrat.runs.record import RunRecord, record_of
from woodrat.runs.rewards import reward_of
from woodrat.runs.run_fields import SCORED
from woodrat.runs.values import ITEM_BYTES_MAX, RESULT_BYTES_MAX, VALUE_BYTES_MAX
from woodrat.state.fact import STATED
from woodrat.state.redaction import hiding, taken_out
from woodrat.state.run_owner import RUN_ID, run_of_foreign

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.canon.form import Json

STEP_KINDS: Final = frozenset({"read", "tool", "model", "decision", "note"})
"""The kinds of step."""
_NAMED_ERROR: Final = re.compile(r"([A-Za-z_][\w.]{0,200}(?:Error|Exception|Timeout|Interrupt)): (.*)", re.DOTALL)
"""How most tools write an error as text: its type, a colon, its message."""
_OWN: Final = re.compile(f"{RUN_ID}[a-z2-7]{{{ID_CHARACTERS}}}")

_PARTS: Final = frozenset(
    {
        "format",
        "id",
        "steps",
        "answer",
        "status",
        "error",
        "usage",
        "started_at",
        "ended_at",
        "duration_ms",
        "judgements",
    }
)
_ABOUT: Final = frozenset(
    {"query", "agent", "names", "subject", "principal", "conversation", "inputs", "code", "redact", "recall"}
)
_MAY_BE_NULL: Final = frozenset({"result", "response", "chosen", "rule"})
"""Members of a step that say something by being null."""
_PLACE: Final = frozenset({"kind", "id", "under", "started_at", "duration_ms", "attributes"})
_STEP: Final = {
    "read": frozenset({"entity", "found", "values"}),
    "tool": frozenset({"name", "args", "result", "error"}),
    "model": frozenset({"model", "messages", "request", "parameters", "response", "usage", "error"}),
    "decision": frozenset({"stage", "chosen", "rule", "evidence", "rationale", "mode"}),
    "note": frozenset({"text", "data"}),
}


@dataclass(frozen=True, slots=True)
class ImportedRun:
    """One run as entries."""

    run: str
    """Its id here."""
    entries: tuple[tuple[str, bytes], ...]
    """Kinds and bodies, in order."""
    agent: str | None = None
    """Whose run it is."""

    def record(self) -> RunRecord:
        """Return the run record that these entries make, without a log; positions count from 0."""
        from woodrat.canon.ids import Position
        from woodrat.log.entry import Entry, Envelope

        envelope = Envelope(Position(0))
        return record_of(
            self.run,
            (
                Entry("", Position(number), "", kind, envelope, b"", None, body)
                for number, (kind, body) in enumerate(self.entries)
            ),
        )


def is_trajectory(item: object) -> bool:
    """Return whether a document is a run in this format, rather than told."""
    if not isinstance(item, dict):
        return False
    steps = item.get("steps")
    if isinstance(steps, list) and any(isinstance(step, dict) and "kind" in step for step in steps):
        return True
    # A run that did nothing is told by its times, or by what was asked of it.
    bare = steps == [] and ("query" not in item or bool({"started_at", "ended_at", "duration_ms"} & item.keys()))
    return bare or "format" in item


def read(
    documents: Sequence[Any],
    paths: Sequence[str],
    faults: list[Fault],
    hidden: frozenset[str] = values.NOTHING,
    agent: str | None = None,
) -> list[ImportedRun]:
    """Return the runs of trajectories; what is wrong with any of them is added to `faults`.

    Values under the keys that they name, or that are to be hidden anyway, are not there. `agent` is whose runs they are
    where they do not say.
    """
    found = []
    for document, path in zip(documents, paths, strict=True):
        before, said = len(faults), json_values.without_nulls(document, ["steps"], _MAY_BE_NULL)
        faults += _faults(said, path)
        if len(faults) == before:
            found.append(_Reading(said, hidden, agent).told())
    return found


def derived_id(foreign: str, agent: str | None = None) -> str:
    """Return the id of an agent's run by the id it had elsewhere; one of our own stays as it is."""
    return foreign if _OWN.fullmatch(foreign) else run_of_foreign(foreign, agent)


# Checking


def _faults(document: Any, path: str) -> list[Fault]:
    """Return everything wrong with a trajectory."""
    faults = json_values.schema_faults("trajectory.json", document, path)
    if faults:
        return faults
    faults += _moments(document, path)
    faults += json_values.long_values({name: document[name] for name in document if name != "steps"}, path)
    spans: dict[str, int] = {}
    for number, step in enumerate(document.get("steps", ())):
        here = f"{path}/steps/{number}"
        faults += _moments(step, here)
        faults += json_values.long_values(step, here)
        id = step.get("id")
        if id is not None and spans.setdefault(id, number) != number:
            remedy = "Give each step an id of its own, or leave it out."
            faults.append(Fault(f"{here}/id", f"{shown(id)} is the id of step {spans[id]} too", remedy))
    return faults


def _moments(item: Mapping[str, Any], path: str) -> Iterator[Fault]:
    for name in ("started_at", "ended_at"):
        if name in item and (fault := moment.fault(item[name], f"{path}/{name}")) is not None:
            yield fault


# From documents to entries


class _Reading:
    """One trajectory being made into entries."""

    def __init__(self, document: Mapping[str, Any], hidden: frozenset[str], agent: str | None) -> None:
        self._document = document
        self._agent: str | None = document.get("agent", agent)
        foreign = document.get("id")
        content = foreign if foreign is not None else form.serialise(document).decode()
        self.run = derived_id(content, self._agent)
        self._hidden = hiding(hidden, document.get("redact"))
        self._links = Links()
        self._now = self._first()
        self._entries: list[tuple[str, bytes]] = []

    def _first(self) -> str | None:
        """Return when the run began: as it says, or when its first step with a time did."""
        timed = [self._document, *self._document.get("steps", ())]
        stated = next((item["started_at"] for item in timed if "started_at" in item), None)
        return None if stated is None else moment.parse(stated)

    def told(self) -> ImportedRun:
        """Return the run."""
        document = self._document
        about: dict[str, Json] = {name: document[name] for name in sorted(_ABOUT & set(document))}
        if "inputs" in about:
            about["inputs"] = self._kept(about["inputs"])
            for name, value in document["inputs"].items():
                self._links.add(INPUTS, name, value, {"kind": "input", "name": name})
        if about.get("recall") is False:
            del about["recall"]
        if "query" in about:
            about["query"] = values.text(about["query"], VALUE_BYTES_MAX)
        further = {name: value for name, value in document.items() if name not in _PARTS | _ABOUT | {"attributes"}}
        attributes = {**further, **document.get("attributes", {})}
        if "id" in document:
            attributes = {"id": document["id"], **attributes}
        if attributes:
            about["attributes"] = self._each_kept(attributes)
        if self._hidden:
            about["redact"] = [*sorted(self._hidden)]
        self._add("run.started", 0, {}, about)
        steps = document.get("steps", [])
        for number, step in enumerate(steps, 1):
            self._step(number, step)
        status = document.get("status", "done" if document.get("error") is None else "error")
        if status != "interrupted":
            end: dict[str, Json] = {"status": status}
            if document.get("answer") is not None:
                end["answer"] = self._kept(document["answer"])
            if document.get("error") is not None:
                end["error"] = _error(document["error"])
            end |= {name: document[name] for name in ("usage", "duration_ms") if name in document}
            ended = {"started_at": document["ended_at"]} if "ended_at" in document else {}
            self._add("run.ended", len(steps) + 1, ended, end)
        judged = [*document.get("judgements", ())]
        reward = reward_of({**further, **document.get("attributes", {})})
        if reward is not None and all(reward["by"] != each.get("by") for each in judged):
            judged.append(reward)
        for number, judgement in enumerate(judged, len(steps) + 2):
            self._add("run.judged", number, {}, self._judgement(judgement))
        return ImportedRun(self.run, tuple(self._entries), self._agent)

    def _step(self, number: int, step: Mapping[str, Any]) -> None:
        kind = step["kind"]
        body: dict[str, Json] = getattr(self, f"_{kind}")(step, self._span(number, step))
        further = {name: value for name, value in step.items() if name not in _STEP[kind] | _PLACE}
        attributes = {**further, **step.get("attributes", {})}
        if attributes:
            body["attributes"] = self._kept(attributes)
        for name in ("under", "duration_ms"):
            if name in step:
                body[name] = step[name]
        self._add(_KINDS[kind], number, step, body)

    def _span(self, number: int, step: Mapping[str, Any]) -> str:
        return str(step["id"]) if "id" in step else f"{number:016x}"

    def _add(self, kind: str, number: int, step: Mapping[str, Any], said: Mapping[str, Json]) -> None:
        """Add an entry; its time never goes back, so that the order of the document holds."""
        stated = moment.parse(step["started_at"]) if "started_at" in step else None
        if stated is not None and (self._now is None or stated > self._now):
            self._now = stated
        body: dict[str, Json] = {"run": self.run, "step": number, "span": self._span(number, step), **said}
        if self._agent is not None:
            body["agent"] = self._agent
        if self._now is not None:
            body["started_at"] = self._now
        self._entries.append((kind, values.fit(body)))

    def _judgement(self, said: Mapping[str, Any]) -> dict[str, Json]:
        """Return what somebody thinks of the run; whoever imports it, where nobody is named."""
        body: dict[str, Json] = {"verdict": said.get("verdict", SCORED)}
        body |= {name: said[name] for name in ("score", "by", "about", "against") if name in said}
        if self._agent is not None:
            body.setdefault("by", self._agent)
        if "reason" in said:
            body["reason"] = values.text(said["reason"])
        return body | ({"preferred": self._kept(said["preferred"])} if said.get("preferred") is not None else {})

    def _each_kept(self, attributes: Mapping[str, Any]) -> Json:
        """Return attributes within the bound of a value: where they are too long together, the long ones are cut."""
        whole = self._kept(attributes)
        if not values.is_mark(whole):
            return whole
        return self._kept(
            {name: values.bounded(value, ITEM_BYTES_MAX, self._hidden) for name, value in attributes.items()}
        )

    def _kept(self, value: Any) -> Json:
        return values.bounded(value, VALUE_BYTES_MAX, hidden=self._hidden)

    def _read(self, step: Mapping[str, Any], span: str) -> dict[str, Json]:
        fields: dict[str, Json] = {}
        for name, value in step.get("values", {}).items():
            fields[name] = {"value": values.REDACTED if name in self._hidden else self._kept(value)}
            if "entity" in step:
                self._links.add(READS, name, value, {"kind": "read", "entity": step["entity"], "field": name})
        body: dict[str, Json] = {"found": step.get("found", True), "fields": fields}
        return {"entity": step["entity"], **body} if "entity" in step else body

    def _tool(self, step: Mapping[str, Any], span: str) -> dict[str, Json]:
        body: dict[str, Json] = {"name": step["name"], "args": self._kept(step.get("args", {}))}
        return {**body, **self._came(step, "tool", "result", span)}

    def _model(self, step: Mapping[str, Any], span: str) -> dict[str, Json]:
        body: dict[str, Json] = {name: step[name] for name in ("model", "usage") if name in step}
        parameters = step.get("parameters", {})
        if parameters:
            body["parameters"] = self._kept(parameters)
        if "messages" in step:
            body["messages"] = self._kept(step["messages"])
            asked = {"messages": step["messages"], "model": step.get("model"), "parameters": parameters}
            body["request"] = sha256(form.serialise(taken_out(asked, self._hidden))).hexdigest()
        if "request" in step:
            body["request"] = step["request"]
        return {**body, **self._came(step, "model", "response", span)}

    def _came(self, step: Mapping[str, Any], kind: str, name: str, span: str) -> dict[str, Json]:
        """Return what came of a call, and remember its parts for the evidence of decisions."""
        if step.get("error") is not None:
            return {"errored": True, "error": _error(step["error"])}
        if name not in step:
            return {"begun": True} if kind == "tool" else {}
        value = step[name]
        self._links.add(CALLS, step.get("name", ""), value, {"kind": kind, "span": span, "path": ""})
        self._links.add_result(kind, span, value)
        return {name: values.bounded(value, RESULT_BYTES_MAX, self._hidden)}

    def _decision(self, step: Mapping[str, Any], span: str) -> dict[str, Json]:
        evidence = step.get("evidence", {})
        body: dict[str, Json] = {"stage": step["stage"], "chosen": self._kept(step["chosen"])}
        body["mode"] = step.get("mode", "decide")
        if step.get("rule") is not None:
            body["rule"] = step["rule"]
        body["default"] = "rule" in step and step["rule"] is None
        if "rationale" in step:
            body["rationale"] = values.text(step["rationale"])
        if evidence:
            body["facts"] = self._kept(evidence)
            origins = {name: dict(self._links.find(name, value) or STATED) for name, value in evidence.items()}
            body["facts_origin"] = origins  # type: ignore[assignment]
        return body

    def _note(self, step: Mapping[str, Any], span: str) -> dict[str, Json]:
        body: dict[str, Json] = {"text": values.text(step["text"], VALUE_BYTES_MAX)}
        return {**body, "data": self._kept(step["data"])} if step.get("data") is not None else body


_KINDS: Final = {
    "read": "run.read",
    "tool": "run.tool",
    "model": "run.model",
    "decision": "run.decided",
    "note": "run.noted",
}


def _error(told: Any) -> dict[str, Json]:
    if isinstance(told, str):
        named = _NAMED_ERROR.fullmatch(told)
        kind, message = (named[1], named[2]) if named else ("Exception", told)
        return {"type": kind, "message": values.text(message)}
    return {"type": values.text(told.get("type", "Exception")), "message": values.text(told.get("message", ""))}
