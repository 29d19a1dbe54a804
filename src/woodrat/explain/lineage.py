"""Lineage: the way back from an answer, a decision or a value to its sources, as a tree.

    answer → decision → evidence → read → field → observation → interpretation → source

Only what was recorded is followed: the observations that a read or the origin of a fact names. A branch ends at an
input, a tool, a model, or an agent's own word where nothing further is on record. A run that lies behind, because it
wrote what was read, was recalled, or made a decision that was relied on, is a tree of its own: however many runs lie
behind one another, no tree is deep.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, Protocol

from woodrat.canon.form import Json
from woodrat.explain.references import evidence, references_of
from woodrat.record_json import IN_PYTHON_ONLY, WHEN_SET, Record, derived
from woodrat.records import dataclass, field, replace
from woodrat.runs import steps
from woodrat.runs.origin import call_words
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, ModelCall, Read, ToolCall
from woodrat.state.match import Match

CYCLE_RUNS_MAX: Final = 100
"""How many runs of a cycle are named."""
LABEL_CHARACTERS_MAX: Final = 120
"""How much of a value a label shows."""


class Follow(Protocol):
    """Leads on from a step of a run to what it names."""

    def observation(self, id: str) -> Node:
        """Return the tree behind an observation, by its id."""

    def decision(self, run: str, span: str) -> Node:
        """Return the mention of a decision that a fact is what was chosen of."""

    def stage(self, run: str, stage: str) -> Node:
        """Return the mention of what a recalled run decided at a stage."""

    def recalled(self, run: str, position: int) -> Node:
        """Return the mention of a run that was recalled at a position of the log."""


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
    """What is known of it, as plain JSON; `again` where what is behind it was shown, `below` where it follows."""
    nodes: tuple[Node, ...] = ()
    """What it comes from; in an impact, what comes of it."""

    def walk(self) -> Iterator[Node]:
        """Yield it and all that lies behind it, each before what it comes from."""
        left = [self]
        while left:
            node = left.pop()
            yield node
            left.extend(reversed(node.nodes))

    def find(self, kind: str) -> tuple[Node, ...]:
        """Return all nodes of a kind, in order, each once."""
        return _each_once(self.walk(), kind)


def _each_once(nodes: Iterator[Node], kind: str) -> tuple[Node, ...]:
    """Return all nodes of a kind, each once: of several mentions the one with what is behind it."""
    unique: dict[str, Node] = {}
    for node in nodes:
        if node.kind == kind and (node.id not in unique or (node.nodes and not unique[node.id].nodes)):
            unique[node.id] = node
    return tuple(unique.values())


@dataclass(frozen=True, slots=True)
class Cycle(Record):
    """Runs that lean on one another."""

    runs: tuple[str, ...]
    """The first of them, as they were found."""
    run_count: int
    """How many they are."""

    @derived
    def sentence(self) -> str:
        """What it says, in one line."""
        more = self.run_count - len(self.runs)
        return f"{', '.join(self.runs)}{f' and {more} more' if more else ''} lean on one another."


@dataclass(frozen=True, slots=True)
class LineageTree(Record):
    """What something comes from, one page of it: its own tree first, then those of the runs that lie behind it."""

    kind: str
    """What it is: `answer`, `decision`, `stage`, `observation` or `field`."""
    id: str
    """What tells it apart from others of its kind."""
    label: str
    """What it says, for people."""
    details: Mapping[str, Any]
    """What is known of it, as plain JSON."""
    nodes: tuple[Node, ...]
    """What it comes from, each as a tree that ends at the runs behind it."""
    runs: tuple[Node, ...]
    """The runs behind it, the nearest first, each as a tree: what it had read and decided by then."""
    cycles: tuple[Cycle, ...]
    """The runs that lean on one another, once all that could lead back to them was found."""
    run_count: int | None
    """How many such trees there are on all pages; none before the last page."""
    depth: int | None
    """How many runs behind one another were to be followed; none: however many."""
    left_out: int | None
    """How many runs lie one further back than that; more may lie behind them. None before the last page."""
    cursor: str | None
    """What to ask with for what follows; none when that was all."""
    position: int
    """The log position it was answered at."""
    matched: Match | None = field(default=None, metadata=WHEN_SET)
    """How the entity asked about was found, where that was by a value that identifies it."""
    following: Callable[[], LineageTree] | None = field(
        default=None, compare=False, repr=False, metadata=IN_PYTHON_ONLY
    )
    """Reads the page that follows; none where there is none, or nobody can."""

    @property
    def trees(self) -> tuple[Node, ...]:
        """All trees of the page."""
        return (Node(self.kind, self.id, self.label, self.details, self.nodes), *self.runs)

    def walk(self) -> Iterator[Node]:
        """Yield all nodes of the page, tree after tree, each before what it comes from."""
        for tree in self.trees:
            yield from tree.walk()

    def find(self, kind: str) -> tuple[Node, ...]:
        """Return all nodes of a kind on the page, in order, each once."""
        return _each_once(self.walk(), kind)

    def next_page(self) -> LineageTree | None:
        """Return the page that follows, as of the same position; `None` after the last."""
        return None if self.cursor is None or self.following is None else self.following()

    def followed_by(self, following: Callable[[], LineageTree]) -> LineageTree:
        """Return the page with what reads the page that follows."""
        return self if self.cursor is None else replace(self, following=following)


# From a run


def answer(record: RunRecord, follow: Follow, since: int = -1) -> Node:
    """Return what an answer comes from: decisions, and whatever was read or called besides their evidence.

    Steps before the position `since` are left out; what later ones lean on is shown all the same.
    """
    decisions = [decision(record, made, follow) for made in record.decisions if made.position >= since]
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
    return Node("answer", record.id, label, details, (*decisions, *_besides(record, follow, since)))


def _besides(record: RunRecord, follow: Follow, since: int) -> Iterator[Node]:
    """Yield the reads and calls of a run that no decision looked at; of a read, the fields that none looked at."""
    looked = [origin for made in record.decisions for origin in evidence(made).values()]
    read = {(origin.get("entity"), origin.get("position")) for origin in looked if origin.get("kind") == "read"}
    shown_before = references_of(looked).observations
    spans = {origin["span"] for origin in looked if isinstance(origin.get("span"), str)}
    spans.update(found.chosen_by["span"] for found in record.decisions if found.chosen_by and "span" in found.chosen_by)
    for step in record.steps:
        if step.position < since:
            continue
        if isinstance(step, Read) and step.entity is not None:
            again = (step.entity, step.as_of) in read
            names = [
                name for name in sorted(step.fields) if not again or not shown_before.issuperset(step.behind(name))
            ]
            if names or not again:
                yield _read(record.id, step, tuple(names), follow)
        elif isinstance(step, Read) and step.recalled:
            yield _recall(record.id, step, follow)
        elif isinstance(step, ToolCall | ModelCall) and step.span not in spans:
            yield _call(record.id, step)


def decision(record: RunRecord, found: Decision, follow: Follow) -> Node:
    """Return what a decision comes from: each fact it looked at, and the read, input or call that gave it."""
    nodes: list[Node] = []
    values = _values(found)
    for key, origin in evidence(found).items():
        compared = [c for c in found.conditions if c.key == key and c.op]
        asked = ", ".join(f"{c.op} {shown(c.operand)}: {steps.result_word(c.result)}" for c in compared)
        label = f"{key} = {shown(values.get(key))}" + (f" ({asked})" if asked else "")
        details = {"key": key, "value": values.get(key), "origin": dict(origin)}
        behind = _origin(record, origin, follow)
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


def _values(found: Decision) -> dict[str, Json]:
    values: dict[str, Json] = {condition.key: condition.actual for condition in found.conditions}
    return {**found.facts, **values}


def _origin(record: RunRecord, origin: Mapping[str, Any], follow: Follow) -> tuple[Node, ...]:
    kind = origin.get("kind")
    if kind == "read":
        entity, name, position = (
            steps.text(origin.get("entity")),
            steps.text(origin.get("field")),
            origin.get("position"),
        )
        for step in record.reads:
            if step.entity == entity and step.as_of == position:
                return (_read(record.id, step, () if name is None else (name,), follow, origin),)
        return (_field(entity, name, origin.get("observations"), follow),)
    if kind in ("tool", "model"):
        calls: tuple[ToolCall | ModelCall, ...] = (*record.tool_calls, *record.models)
        for call in calls:
            if call.span == origin.get("span") and not getattr(call, "begun", False):
                return (_call(record.id, call),)
    if kind == "recall":
        run, stage = steps.text(origin.get("run")), steps.text(origin.get("stage"))
        made = [] if run is None or stage is None else [follow.stage(run, stage)]
        for step in record.reads:
            if step.span == origin.get("span") and step.recalled:
                return (_recall(record.id, step, follow, made),)
        return tuple(made)
    if kind == "input":
        name = steps.text(origin.get("name")) or ""
        return (Node("input", f"{record.id}/{name}", f"input {name}", {"run": record.id, "name": name}),)
    if kind == "decision":
        return (follow.decision(steps.text(origin.get("run")) or "", steps.text(origin.get("span")) or ""),)
    return (Node("stated", f"{record.id}/stated", "stated by the agent", {"run": record.id, "agent": record.agent}),)


def _read(
    run: str, step: Read, names: tuple[str, ...], follow: Follow, origin: Mapping[str, Any] | None = None
) -> Node:
    label = f"read of {step.entity} at position {step.as_of}"
    details = {"run": run, "entity": step.entity, "as_of": step.as_of, "position": step.position, "at": step.started_at}
    nodes = []
    for name in names:
        named = None if origin is None else origin.get("observations")
        nodes.append(_field(step.entity, name, named or list(step.behind(name)), follow))
    return Node("read", f"{run}/{step.span}/{step.entity}", label, details, tuple(nodes))


def _recall(run: str, step: Read, follow: Follow, made: list[Node] | None = None) -> Node:
    """Return a recall: the runs it found, or what was decided in one of them that a fact came from."""
    details = {"run": run, "question": step.args.get("question"), "as_of": step.as_of, "position": step.position}
    nodes: list[Node] = [] if made is None else made
    for hit in step.recalled if made is None else ():
        mention = follow.recalled(hit.run, step.position)
        nodes.append(replace(mention, details={**mention.details, "score": hit.score, "passage": hit.passage}))
    label = f"recall of {shown(step.args.get('question'))} at position {step.as_of}"
    return Node("recall", f"{run}/{step.span}", label, {**details, "at": step.started_at}, tuple(nodes))


def _field(entity: str | None, name: str | None, observations: object, follow: Follow) -> Node:
    named = [id for id in observations if isinstance(id, str)] if isinstance(observations, list) else []
    full = f"{entity}#{name}"
    label = full if named else f"{full}, of which nothing was said"
    return Node("field", full, label, {"entity": entity, "field": name}, tuple(follow.observation(id) for id in named))


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


def lines(tree: Node | LineageTree) -> Iterator[str]:
    """Yield a tree as lines for people; what stands in it again is not told twice."""
    told: set[tuple[str, str]] = set()
    for root in _trees(tree):
        left = [(root, "", "")]
        while left:
            node, first, rest = left.pop()
            again = node.details.get("again") is True or (bool(node.nodes) and (node.kind, node.id) in told)
            told.add((node.kind, node.id))
            yield first + node.label + (" (as above)" if again else " (below)" if "below" in node.details else "")
            if not again:
                ends = [*(("├─ ", "│  ") for _ in node.nodes[1:]), ("└─ ", "   ")]
                below = [(child, rest + end, rest + on) for child, (end, on) in zip(node.nodes, ends, strict=False)]
                left.extend(reversed(below))


def _trees(tree: Node | LineageTree) -> tuple[Node, ...]:
    return (tree,) if isinstance(tree, Node) else tree.trees


def _graph(tree: Node | LineageTree) -> tuple[dict[tuple[str, str], tuple[str, Node]], dict[tuple[str, str], None]]:
    """Return the nodes of a tree, each once and under a short name, and the edges between these names."""
    named: dict[tuple[str, str], tuple[str, Node]] = {}
    for node in tree.walk():
        name, known = named.get((node.kind, node.id), (f"n{len(named)}", node))
        named[node.kind, node.id] = (name, node if node.nodes and not known.nodes else known)
    edges = {
        (named[node.kind, node.id][0], named[child.kind, child.id][0]): None
        for node in tree.walk()
        for child in node.nodes
    }
    return named, edges


def dot(tree: Node | LineageTree) -> str:
    """Return a tree as a graph in Graphviz' language."""
    named, edges = _graph(tree)
    found = ["digraph woodrat {", "  rankdir=LR;", "  node [shape=box];"]
    for name, node in named.values():
        text = f"{node.kind}: {node.label}".replace("\\", "\\\\").replace('"', '\\"')
        found.append(f'  {name} [label="{_line(text)}"];')
    found += [f"  {start} -> {end};" for start, end in edges]
    return "\n".join([*found, "}"]) + "\n"


_MERMAID: Final = str.maketrans({"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"})


def mermaid(tree: Node | LineageTree) -> str:
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
