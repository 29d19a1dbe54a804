"""Impact: what leaned on an observation: the fields it wins, the reads, decisions and answers that saw it, and exports.

Recorded reads and the origins of evidence are followed, never text. What a run wrote after it had read is listed as
written; it is not taken for certain that it came of what was read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from woodrat.canon.form import Json
from woodrat.explain.lineage import Node, evidence, shown
from woodrat.records import dataclass
from woodrat.runs.record import RunRecord
from woodrat.runs.steps import Decision, Read, Write
from woodrat.training.exports import Export


@dataclass(frozen=True, slots=True)
class Won:
    """A field whose value an observation takes part in."""

    entity: str
    """The entity, as a reference."""
    field: str
    """The field."""
    value: Json
    """What is believed."""
    observation: str
    """The observation."""

    def to_json(self) -> dict[str, Any]:
        """Return the field as plain JSON."""
        return {"entity": self.entity, "field": self.field, "value": self.value, "observation": self.observation}


@dataclass(frozen=True, slots=True)
class Leaning:
    """A run that leaned on what was asked about, and where in it."""

    run: str
    """The run."""
    agent: str | None
    """Who ran."""
    query: str | None
    """What was asked."""
    subject: str | None
    """The entity it is about."""
    status: str
    """How it stands."""
    answer: Json
    """What it answered."""
    reads: tuple[tuple[Read, tuple[str, ...]], ...]
    """The reads that saw it, each with the fields it saw it in."""
    decisions: tuple[tuple[Decision, tuple[str, ...]], ...]
    """The decisions whose evidence it is part of, each with the names of the facts."""
    writes: tuple[Write, ...]
    """What the run said."""

    def to_json(self) -> dict[str, Any]:
        """Return the run as plain JSON."""
        return {
            "runId": self.run,
            "agent": self.agent,
            "query": self.query,
            "subject": self.subject,
            "status": self.status,
            "finalContent": self.answer,
            "reads": [
                {"entity": read.entity, "fields": list(names), "asOf": read.as_of, "position": read.position}
                for read, names in self.reads
            ],
            "decisions": [
                {
                    "stageId": decision.stage,
                    "chosen": decision.chosen,
                    "rule": decision.rule,
                    "evidence": list(names),
                    "position": decision.position,
                }
                for decision, names in self.decisions
            ],
            "writes": [write.to_json() for write in self.writes],
        }


@dataclass(frozen=True, slots=True)
class Impact:
    """What leaned on an observation, a source, an interpretation or an agent."""

    kind: str
    """`observation`, `source`, `interpretation` or `agent`."""
    id: str
    """What was asked about."""
    observations: tuple[str, ...]
    """The observations it stands for, by position."""
    fields: tuple[Won, ...]
    """The fields they take part in now."""
    runs: tuple[Leaning, ...]
    """The runs that read them or decided on them, by their first entry."""
    exports: tuple[Export, ...]
    """The exports with rows of those runs, by position."""
    position: int
    """The log position it was answered at."""

    @property
    def tree(self) -> Node:
        """What was asked about as a tree: fields, and reads that lead to decisions that lead to answers."""
        nodes = [
            Node("field", f"{won.entity}#{won.field}", f"{won.entity}#{won.field} = {shown(won.value)}", won.to_json())
            for won in self.fields
        ]
        details = {"observations": list(self.observations), "position": self.position}
        label = f"{self.kind} {self.id}"
        exports = (Node("export", found.id, found.sentence, found.to_json()) for found in self.exports)
        return Node(self.kind, self.id, label, details, (*nodes, *(_run(found) for found in self.runs), *exports))

    def to_json(self) -> dict[str, Any]:
        """Return the impact as plain JSON."""
        return {
            "kind": self.kind,
            "id": self.id,
            "observations": list(self.observations),
            "fields": [won.to_json() for won in self.fields],
            "runs": [run.to_json() for run in self.runs],
            "exports": [export.to_json() for export in self.exports],
            "position": self.position,
        }


def _run(found: Leaning) -> Node:
    nodes = [
        Node(
            "read",
            f"{found.run}/{read.span}/{read.entity}",
            f"read {', '.join(f'{read.entity}#{name}' for name in names)} at position {read.as_of}",
            {"position": read.position, "fields": list(names)},
        )
        for read, names in found.reads
    ]
    nodes += [
        Node(
            "decision",
            f"{found.run}/{decision.span}",
            f"decided {decision.stage} = {shown(decision.chosen)} on {', '.join(names)}",
            {"position": decision.position, "evidence": list(names), "chosen": decision.chosen},
        )
        for decision, names in found.decisions
    ]
    if found.answer is not None:
        nodes.append(Node("answer", found.run, f"answered {shown(found.answer)}", {"answer": found.answer}))
    nodes += [
        Node("write", write.observation, f"wrote {write.entity} {shown(dict(write.fields))}", write.to_json())
        for write in found.writes
    ]
    by = "" if found.agent is None else f" by {found.agent}"
    return Node("run", found.run, f"{found.run}{by}, {found.status}", {"query": found.query}, tuple(nodes))


def leaning(record: RunRecord, observations: frozenset[str]) -> Leaning | None:
    """Return where a run leaned on some observations; nothing when it did not."""
    reads = [(read, names) for read in record.reads if (names := _fields(read, observations))]
    decisions = [(made, names) for made in record.decisions if (names := _facts(evidence(made), observations))]
    if not reads and not decisions:
        return None
    return Leaning(
        run=record.id,
        agent=record.agent,
        query=record.query,
        subject=record.subject,
        status=record.status,
        answer=record.answer,
        reads=tuple(reads),
        decisions=tuple(decisions),
        writes=record.writes,
    )


def _fields(read: Read, observations: frozenset[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in read.fields if not observations.isdisjoint(read.behind(name))))


def _facts(origins: Mapping[str, Mapping[str, Any]], observations: frozenset[str]) -> tuple[str, ...]:
    def named(origin: Mapping[str, Any]) -> Iterable[object]:
        found = origin.get("observations")
        return found if isinstance(found, list) else ()

    return tuple(name for name, origin in origins.items() if any(id in observations for id in named(origin)))
