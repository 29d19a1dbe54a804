"""Lineage: the way back from an answer, a decision or a value to its sources, as a tree.

    answer → decision → evidence → read → field → observation → interpretation → source

Only what was recorded is followed: the observations that a read or the origin of a fact names. A branch ends at an
input, a tool, a model, or an agent's own word where nothing further is on record.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from woodrat.canon.form import Json
from woodrat.record_json import Record
from woodrat.records import dataclass, field
from woodrat.runs import steps
from woodrat.runs.origin import call_words
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall

LABEL_CHARACTERS_MAX: Final = 120
"""How much of a value a label shows."""

Observe = Callable[[str], "Node"]
"""Returns the tree behind an observation, by its id."""


@dataclass(frozen=True, slots=True)
class Node(Record):
    """One thing on the way, and what it comes from."""

    kind: str
    """`answer`, `decision`, `evidence`, `read`, `field`, `observation`, `interpretation`, `source`, and the like."""
    id: str
    """What tells it apart from others of its kind."""
    label: str
    """What it says, for people."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What is known of it, as plain JSON; `again` where what is behind it stands further up in the tree."""
    nodes: tuple[Node, ...] = ()
    """What it comes from; in an impact, what comes of it."""

    def walk(self) -> Iterator[Node]:
        """Yield it and all that lies behind it, each before what it comes from."""
        yield self
        for node in self.nodes:
            yield from node.walk()

    def find(self, kind: str) -> tuple[Node, ...]:
        """Return all nodes of a kind, in order, each once."""
        return tuple({node.id: node for node in self.walk() if node.kind == kind}.values())


# From a run


def answer(record: RunRecord, observe: Observe) -> Node:
    """Return what an answer comes from: decisions, and whatever was read or called besides their evidence."""
    decisions = [decision(record, found, observe) for found in record.decisions]
    label = f"answer {shown(record.answer)}" if record.answer is not None else f"run without an answer, {record.status}"
    details = {
        "run": record.id,
        "answer": record.answer,
        "agent": record.agent,
        "query": record.query,
        "subject": record.subject,
        "status": record.status,
        "at": record.ended_at or record.started_at,
    }
    return Node("answer", record.id, label, details, (*decisions, *_besides(record, observe)))


def _besides(record: RunRecord, observe: Observe) -> Iterator[Node]:
    """Yield the reads and calls of a run that no decision looked at."""
    looked = [origin for found in record.decisions for origin in evidence(found).values()]
    read = [(origin.get("entity"), origin.get("position")) for origin in looked if origin.get("kind") == "read"]
    spans = {origin["span"] for origin in looked if isinstance(origin.get("span"), str)}
    spans.update(found.chosen_by["span"] for found in record.decisions if found.chosen_by and "span" in found.chosen_by)
    for step in record.steps:
        if isinstance(step, Read) and step.entity is not None and (step.entity, step.as_of) not in read:
            yield _read(record.id, step, tuple(sorted(step.fields)), observe)
        elif isinstance(step, ToolCall | ModelCall) and step.span not in spans:
            yield _call(record.id, step)


def decision(record: RunRecord, found: Decision, observe: Observe) -> Node:
    """Return what a decision comes from: each fact it looked at, and the read, input or call that gave it."""
    nodes: list[Node] = []
    values = _values(found)
    for key, origin in evidence(found).items():
        compared = [c for c in found.conditions if c.key == key and c.op]
        asked = ", ".join(f"{c.op} {shown(c.operand)}: {steps.result_word(c.result)}" for c in compared)
        label = f"{key} = {shown(values.get(key))}" + (f" ({asked})" if asked else "")
        details = {"key": key, "value": values.get(key), "origin": dict(origin)}
        behind = _origin(record, origin, observe)
        nodes.append(Node("evidence", f"{record.id}/{found.span}/{key}", label, details, behind))
    by = "by default" if found.default else found.by(shown)
    if found.chosen_by is not None:
        calls = [call for call in record.models if call.span and call.span == found.chosen_by.get("span")]
        nodes += [_call(record.id, call) for call in calls]
    details = {
        "run": record.id,
        "stage": found.stage,
        "chosen": found.chosen,
        "rule": found.rule,
        "at": found.started_at or None,
        "position": found.position,
    }
    return Node(
        "decision", f"{record.id}/{found.span}", f"{found.stage} = {shown(found.chosen)}, {by}", details, tuple(nodes)
    )


def evidence(found: Decision) -> dict[str, Mapping[str, Any]]:
    """Return where each fact that a decision looked at came from; of one without conditions, each it was given."""
    looked: dict[str, Mapping[str, Any]] = {}
    for condition in found.conditions:
        looked.setdefault(condition.key, condition.origin)
    if not looked:
        looked = {key: origin for key, origin in found.facts_origin.items() if isinstance(origin, dict)}
    return looked


def _values(found: Decision) -> dict[str, Json]:
    values: dict[str, Json] = {condition.key: condition.actual for condition in found.conditions}
    return {**found.facts, **values}


def _origin(record: RunRecord, origin: Mapping[str, Any], observe: Observe) -> tuple[Node, ...]:
    kind = origin.get("kind")
    if kind == "read":
        entity, name, position = (
            steps.text(origin.get("entity")),
            steps.text(origin.get("field")),
            origin.get("position"),
        )
        for step in record.reads:
            if step.entity == entity and step.as_of == position:
                return (_read(record.id, step, () if name is None else (name,), observe, origin),)
        return (_field(entity, name, origin.get("observations"), observe),)
    if kind in ("tool", "model"):
        calls: tuple[ToolCall | ModelCall, ...] = (*record.tool_calls, *record.models)
        for call in calls:
            if call.span == origin.get("span") and not getattr(call, "begun", False):
                return (_call(record.id, call),)
    if kind == "input":
        name = steps.text(origin.get("name")) or ""
        return (Node("input", f"{record.id}/{name}", f"input {name}", {"run": record.id, "name": name}),)
    if kind == "decision":
        return (_earlier_decision(record, origin, observe),)
    return (Node("stated", f"{record.id}/stated", "stated by the agent", {"run": record.id, "agent": record.agent}),)


def _earlier_decision(record: RunRecord, origin: Mapping[str, Any], observe: Observe) -> Node:
    """Return the decision that a fact is what was chosen of; of another run it is only named."""
    run, span = steps.text(origin.get("run")) or "", steps.text(origin.get("span")) or ""
    made = next((each for each in record.decisions if run == record.id and each.span == span), None)
    if made is not None and not any(found.get("kind") == "decision" for found in evidence(made).values()):
        return decision(record, made, observe)
    label = f"decision {made.stage} of this run" if made is not None else f"decision of {run}"
    return Node("decision", f"{run}/{span}", label, {"run": run, "span": span})


def _read(
    run: str, step: Read, names: tuple[str, ...], observe: Observe, origin: Mapping[str, Any] | None = None
) -> Node:
    label = f"read of {step.entity} at position {step.as_of}"
    details = {"run": run, "entity": step.entity, "as_of": step.as_of, "position": step.position, "at": step.started_at}
    nodes = []
    for name in names:
        named = None if origin is None else origin.get("observations")
        nodes.append(_field(step.entity, name, named or list(step.behind(name)), observe))
    return Node("read", f"{run}/{step.span}/{step.entity}", label, details, tuple(nodes))


def _field(entity: str | None, name: str | None, observations: object, observe: Observe) -> Node:
    named = [id for id in observations if isinstance(id, str)] if isinstance(observations, list) else []
    full = f"{entity}#{name}"
    label = full if named else f"{full}, of which nothing was said"
    return Node("field", full, label, {"entity": entity, "field": name}, tuple(observe(id) for id in named))


def _call(run: str, call: ToolCall | ModelCall) -> Node:
    if isinstance(call, ToolCall):
        details = {"run": run, "name": call.name, "args": call.args, "position": call.position, "at": call.started_at}
        details["result"] = call.result
        returned = "failed" if call.errored else f"returned {shown(call.preview)}"
        return Node("tool", f"{run}/{call.span}", f"{call_words(call)}, which {returned}", details)
    details = {"run": run, "model": call.model, "request": call.request, "position": call.position}
    return Node("model", f"{run}/{call.span}", f"model {call.model}", {**details, "at": call.started_at})


def shown(value: Json) -> str:
    """Return a value for a label: text bare, the rest as JSON, cut at a named length."""
    found = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return found if len(found) <= LABEL_CHARACTERS_MAX else found[: LABEL_CHARACTERS_MAX - 1] + "…"


# For people and documents


def lines(tree: Node) -> Iterator[str]:
    """Yield a tree as lines for people; what stands in it again is not told twice."""
    told: set[tuple[str, str]] = set()

    def tell(node: Node, first: str, rest: str) -> Iterator[str]:
        again = node.details.get("again") is True or (bool(node.nodes) and (node.kind, node.id) in told)
        told.add((node.kind, node.id))
        yield first + node.label + (" (as above)" if again else "")
        if again:
            return
        for number, child in enumerate(node.nodes, 1):
            last = number == len(node.nodes)
            yield from tell(child, rest + ("└─ " if last else "├─ "), rest + ("   " if last else "│  "))

    yield from tell(tree, "", "")


def _graph(tree: Node) -> tuple[dict[tuple[str, str], tuple[str, Node]], dict[tuple[str, str], None]]:
    """Return the nodes of a tree, each once and under a short name, and the edges between these names."""
    named: dict[tuple[str, str], tuple[str, Node]] = {}
    for node in tree.walk():
        named.setdefault((node.kind, node.id), (f"n{len(named)}", node))
    edges = {
        (named[node.kind, node.id][0], named[child.kind, child.id][0]): None
        for node in tree.walk()
        for child in node.nodes
    }
    return named, edges


def dot(tree: Node) -> str:
    """Return a tree as a graph in Graphviz' language."""
    named, edges = _graph(tree)
    found = ["digraph woodrat {", "  rankdir=LR;", "  node [shape=box];"]
    for name, node in named.values():
        text = f"{node.kind}: {node.label}".replace("\\", "\\\\").replace('"', '\\"')
        found.append(f'  {name} [label="{_line(text)}"];')
    found += [f"  {start} -> {end};" for start, end in edges]
    return "\n".join([*found, "}"]) + "\n"


_MERMAID: Final = str.maketrans({"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"})


def mermaid(tree: Node) -> str:
    """Return a tree as a Mermaid flowchart."""
    named, edges = _graph(tree)
    found = ["flowchart LR"]
    for name, node in named.values():
        found.append(f'  {name}["{_line(f"{node.kind}: {node.label}".translate(_MERMAID))}"]')
    found += [f"  {start} --> {end}" for start, end in edges]
    return "\n".join(found) + "\n"


def _line(text: str) -> str:
    """Return text on one line, without what is not printable."""
    return "".join(c if c.isprintable() else " " for c in text)
