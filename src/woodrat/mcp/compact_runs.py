"""Compact answers about runs: decisions and their reasons, recalled runs, and explanations.

As in `compact.py`, each function picks from a record of the library the parts that an agent needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.mcp.compact import Compact, listed, short, short_values, stated

if TYPE_CHECKING:
    from woodrat.compare.divergence import Divergence
    from woodrat.explain.impact import AffectedRun, Impact
    from woodrat.explain.lineage import LineageTree, Node
    from woodrat.explain.stale import Belief, Stale
    from woodrat.recall.reader import Recall
    from woodrat.runs.evidence import Evidence
    from woodrat.runs.reader.why import Reason
    from woodrat.runs.record import RunRecord
    from woodrat.runs.rules import Verdict
    from woodrat.runs.steps import Decision
    from woodrat.runs.summary import RunChoice, RunSummary
    from woodrat.whatif.result import Supposed, WhatIf

NODES_MAX: Final = 100
"""Most nodes of a lineage in an answer."""
NARRATIVE_TOKENS: Final = 1_000
"""Length of the narrative of one run, in tokens."""


def _answer(record: RunSummary | Reason | AffectedRun) -> Compact:
    """The answer of a run, even if it is false or empty text."""
    return {} if record.answer is None else {"answer": short(record.answer)}


# Runs


def verdict(record: Verdict) -> Compact:
    """The outcome of a decision."""
    from woodrat.runs.values import plain

    return {
        "chosen": plain(record.chosen),
        **stated(
            rule=list(record.rule) if isinstance(record.rule, tuple) else record.rule,
            evidence=short_values(record.evidence),
            default=record.default,
            skipped_rules=list(record.unknown),
        ),
    }


def decision(record: Decision) -> Compact:
    """The outcome of a decision, and its rule."""
    evidence = short_values(record.evidence)
    return {"stage": record.stage, "chosen": short(record.chosen), **stated(rule=record.rule, evidence=evidence)}


def _choice(record: RunChoice | Decision) -> Compact:
    return {"stage": record.stage, "chosen": short(record.chosen)}


def listed_run(record: RunSummary) -> Compact:
    """One run of many."""
    about = listed(
        {"decisions": (record.choices, _choice)},
        id=record.id,
        status=record.status,
        agent=record.agent,
        query=short(record.query),
        subject=record.subject,
        started_at=record.started_at,
        error=short(record.error),
        verdict=record.verdict,
    )
    return {**about, **_answer(record)}


def run(record: RunRecord) -> Compact:
    """One run as lines that end with their entries."""
    from woodrat.runs.projection import project

    about = stated(agent=record.agent, subject=record.subject, verdict=record.verdict)
    return {
        "id": record.id,
        "status": record.status,
        **about,
        "narrative": project(record, "narrative", NARRATIVE_TOKENS),
    }


def divergence(record: Divergence) -> Compact:
    """Where two runs part: the sentence, and the steps that differ."""
    differing = [row for row in record.rows if row.mark != "same"]
    rows = [
        stated(step=row.step, kind=row.kind, label=row.label, mark=row.mark, first=row.first, second=row.second)
        for row in differing
    ]
    return {
        "same": record.same,
        "level": record.level,
        "sentence": record.sentence,
        **stated(wording=record.wording),
        **listed({"rows": (rows, short_values)}, first=record.first, second=record.second),
    }


def _since(item: Evidence) -> Compact:
    """The later history of a fact that a decision used."""
    since = item.since
    assert since is not None
    return {
        "fact": item.fact,
        "change": since.change,
        "now": short(since.now),
        **stated(agent=since.agent, because=short(since.because)),
    }


def reason(record: Reason) -> Compact:
    """One decision about an entity, and the answer of its run."""
    return {
        "run": record.run,
        **decision(record.decision),
        **stated(
            agent=record.agent,
            decided_at=record.decided_at,
            query=short(record.query),
            verdict=record.verdict,
            margin=None if record.decision.margin is None else short(record.decision.margin.sentence),
            changed_since=[_since(item) for item in record.decision.looked_at if item.since is not None] or None,
            unchecked=[item.fact for item in record.decision.looked_at if item.unchecked] or None,
        ),
        **_answer(record),
    }


def recall(record: Recall) -> Compact:
    """Recalled text; if recall finds nothing, the nearest candidates and why they do not count."""
    hits = [
        stated(kind=hit.kind, ref=hit.ref, score=round(hit.score, 3), at=hit.at, agent=hit.agent) for hit in record.hits
    ]
    rejected = [
        stated(kind=miss.kind, ref=miss.ref, score=round(miss.score, 3), reason=miss.reason, text=short(miss.text))
        for miss in record.rejected
    ]
    understood = None
    if record.understood is not None:
        understood = f"{record.understood.words}: {record.understood.since} to before {record.understood.until}"
    return {
        "found": bool(record.hits),
        "text": record.text,
        **stated(understood=understood, remark=record.remark, lacking=record.lacking or None),
        **listed({"hits": (hits, dict), "rejected": (rejected, dict)}, position=record.position),
    }


# Explanations


def lineage(record: LineageTree) -> Compact:
    """The way back to the sources, as a tree, with a tree for each earlier run."""
    left = [NODES_MAX]
    first = _node(record.trees[0], left)
    runs = []
    for tree in record.runs:
        if left[0] <= 0:
            break
        runs.append(_node(tree, left))
    count = len(record.runs) if record.run_count is None else record.run_count
    more = {**first.pop("more", {}), **({"runs": count} if len(runs) < count else {})}
    cycles = [short(cycle.sentence) for cycle in record.cycles]
    limits = stated(depth=record.depth, left_out=record.left_out or None, cursor=record.cursor)
    return {**first, **stated(runs=runs, more=more or None, cycles=cycles or None), **limits}


def _node(record: Node, left: list[int]) -> Compact:
    left[0] -= 1
    shown: list[Compact] = []
    for below in record.nodes:
        if left[0] <= 0:
            break
        shown.append(_node(below, left))
    more = {"nodes": len(record.nodes)} if len(shown) < len(record.nodes) else None
    # No call takes the name of a run's step.
    id = None if record.kind in ("decision", "evidence", "read") else record.id
    return {"kind": record.kind, **stated(id=id), "label": short(record.label), **stated(nodes=shown, more=more)}


def impact(record: Impact) -> Compact:
    """The runs that depend on something, at any distance, and the fields set from it now."""
    fields = [
        {"entity": won.entity, "field": won.field, "value": short(won.value), "observation": won.observation}
        for won in record.fields
    ]
    limits = {"depth": record.depth, "left_out": record.left_out or None, "cursor": record.cursor}
    remark = (
        None if record.runs else "No run read it. explain with the action stale lists decisions whose evidence changed."
    )
    return {
        "kind": record.kind,
        "id": record.id,
        **listed({"fields": (fields, dict), "runs": (record.runs, _leaning)}, exports=len(record.exports) or None),
        **stated(**limits, remark=remark),
        "counts": stated(**record.counts.to_json()),
        "position": record.position,
    }


def _leaning(record: AffectedRun) -> Compact:
    decisions = [affected.decision for affected in record.decisions]
    about = listed(
        {"decisions": (decisions, _choice)},
        run=record.run,
        agent=record.agent,
        query=short(record.query),
        subject=record.subject,
        status=record.status,
        distance=record.distance,
        through=record.through,
    )
    return {**about, **_answer(record)}


def stale(record: Stale) -> Compact:
    """A decision whose evidence has changed, and its outcome now."""
    return {
        "run": record.run,
        **_choice(record.decision),
        "outcome": record.outcome,
        "chosen_now": short(record.now.chosen),
        **listed({"changes": (record.beliefs, _belief)}, agent=record.agent, subject=record.subject),
        "sentence": record.sentence,
    }


def _belief(record: Belief) -> Compact:
    return {
        "entity": record.entity,
        "field": record.field,
        "before": short(record.before),
        "now": short(record.now),
        "reason": record.reason,
        **stated(changed_by=record.changed_by, because=short(record.because)),
    }


def what_if(record: WhatIf) -> Compact:
    """Recorded decisions under a supposition: how many changed, and which."""
    rows = [{"value": row.value, "same": row.same, "flip": row.flip, "unknown": row.unknown} for row in record.rows]
    return {
        "sentence": record.sentence,
        "same": record.same,
        "flip": record.flip,
        "unknown": record.unknown,
        "items": [_supposed(item) for item in record.decisions],
        **listed({"rows": (rows, dict), "notes": (record.notes, str)}, cursor=record.cursor),
        "position": record.position,
    }


def _supposed(record: Supposed) -> Compact:
    return {
        "run": record.run,
        **_choice(record.decision),
        "outcome": record.outcome,
        "chosen_now": short(record.now.chosen),
        **stated(subject=record.subject, sentence=short(record.sentence)),
    }
