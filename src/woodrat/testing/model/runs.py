"""Runs: runs of agents, their decisions and evidence, from the entries of the runs.

It knows runs as the library records them: one owner, an end, and decisions by rules that are data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, parse_ref
from woodrat.testing.model.tenant import OPERATORS, ModelPast

COUNTED = {"decisions": "run.decided", "tool_calls": "run.tool", "models": "run.model", "reads": "run.read"}
"""The counters of a summary, by the kind of entry."""


class ModelRun:
    """One run: its entries in order."""

    def __init__(self, id: str) -> None:
        self.id = id
        self.entries: list[tuple[int, str, Mapping[str, Any]]] = []
        """Position, kind and body of each."""

    def of(self, kind: str) -> list[tuple[int, Mapping[str, Any]]]:
        """Return the entries of a kind with their positions."""
        return [(position, body) for position, its_kind, body in self.entries if its_kind == kind]

    @property
    def started(self) -> Mapping[str, Any]:
        """Its question."""
        return self.of("run.started")[0][1]

    @property
    def last(self) -> int:
        """The position of its latest entry."""
        return max(position for position, _, _ in self.entries)

    def summary(self) -> dict[str, Any]:
        """Return its row in a list."""
        ended = self.of("run.ended")[-1][1]
        asked = {name: self.started.get(name) for name in ("agent", "query", "subject", "principal", "conversation")}
        return {
            "id": self.id,
            **asked,
            "status": ended["status"],
            "answer": ended.get("answer"),
            "started_at": self.started["started_at"],
            "ended_at": ended["started_at"],
            "choices": [{"stage": body["stage"], "chosen": body["chosen"]} for _, body in self.of("run.decided")],
            "counts": {name: len(self.of(kind)) for name, kind in COUNTED.items()},
        }


def runs(past: ModelPast) -> list[ModelRun]:
    """Return every run, the one with the latest entry first."""
    found: dict[str, ModelRun] = {}
    for entry in past.entries:
        if entry.kind.startswith("run.") and entry.body is not None:
            body: Any = form.decode(entry.body)
            run = found.setdefault(body["run"], ModelRun(body["run"]))
            run.entries.append((entry.position, entry.kind, body))
    return sorted(found.values(), key=lambda run: run.last, reverse=True)


def facts_read(decision: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the facts of a decision that were read from state, by name: where each was read."""
    origins: dict[str, Any] = dict(decision.get("facts_origin", {}))
    for rule in decision.get("rules", ()):
        origins |= {condition["key"]: condition["origin"] for condition in rule["conditions"] if "origin" in condition}
    return {name: origin for name, origin in origins.items() if origin["kind"] == "read"}


def why(past: ModelPast, ref: Ref) -> list[tuple[str, str, Json]]:
    """Return the decisions of runs about an entity, and those with evidence read from it, the latest first.

    Each is its run, its stage and its choice.
    """
    names = {str(member) for member in past.group(ref)}
    found = [
        (body["started_at"], position, run.id, body)
        for run in runs(past)
        for position, body in run.of("run.decided")
        if run.started.get("subject") in names or any(one["entity"] in names for one in facts_read(body).values())
    ]
    found.sort(key=lambda each: each[:2], reverse=True)
    return [(run, body["stage"], body["chosen"]) for _, _, run, body in found]


def impact(past: ModelPast, observation: str) -> dict[str, int]:
    """Return the runs that depend on an observation, directly or through later runs: the distance of each."""
    distances: dict[str, int] = {}
    meant = {observation}
    distance = 0
    while meant:
        distance += 1
        written: set[str] = set()
        for run in runs(past):
            steps = [int(body["step"]) for body in leaning(run, meant)]
            if steps and run.id not in distances:
                distances[run.id] = distance
                written |= set(_written(past, run.id, min(steps)))
        meant = written
    return distances


def leaning(run: ModelRun, observations: Iterable[str]) -> Iterator[Mapping[str, Any]]:
    """Yield the reads that saw one of some observations, and the decisions that rest on one."""
    some = {*observations}
    for _, body in run.of("run.read"):
        named = [one["observation"] for one in body.get("fields", {}).values()]
        named += [each for one in body.get("fields", {}).values() for each in one.get("observations", ())]
        if some & {*named}:
            yield body
    for _, body in run.of("run.decided"):
        if any(some & {*origin["observations"]} for origin in facts_read(body).values()):
            yield body


def _written(past: ModelPast, run: str, after: int) -> Iterator[str]:
    """Yield the observations that a run wrote after a step."""
    for _, said in past.known:
        if said.optional.get("run") == run and int(str(said.optional.get("step", 0))) >= after:
            yield said.id


def stale(past: ModelPast) -> list[tuple[str, str, Json, Json]]:
    """Return the decisions that would come out differently now, the latest first.

    Each is its run, its stage, its choice and the choice now. A decision with a fact that is missing now is
    skipped: its fate depends on the operator.
    """
    found = []
    for run in runs(past):
        for position, body in run.of("run.decided"):
            facts: dict[str, Any] = dict(body.get("facts", {}))
            read = facts_read(body)
            now = {name: _now(past, origin) for name, origin in read.items()}
            if any(value is ... for value in now.values()):
                continue
            chosen = decide(body, {**facts, **now})
            if form.serialise(chosen) != form.serialise(body["chosen"]):
                found.append((body["started_at"], position, run.id, body["stage"], body["chosen"], chosen))
    found.sort(key=lambda each: each[:2], reverse=True)
    return [(run, stage, before, after) for _, _, run, stage, before, after in found]


def _now(past: ModelPast, origin: Mapping[str, Any]) -> Any:
    """Return the current value of a field that was read; `...` if there is none."""
    return past.believed(parse_ref(origin["entity"])).values.get(origin["field"], ...)


def decide(decision: Mapping[str, Any], facts: Mapping[str, Json]) -> Json:
    """Return the choice of a decision's rules on other facts: the first branch that matches, else the default."""
    rules = [*decision.get("rules", ()), *decision.get("untried", ())]
    for rule in rules:
        conditions = [(name, op, operand) for name, ops in rule["when"].items() for op, operand in ops.items()]
        if all(OPERATORS[op](facts[name], operand) for name, op, operand in conditions):
            return rule["chosen"]  # type: ignore[no-any-return]
    return decision["chosen"] if decision["default"] else decision.get("otherwise")
