"""Comparing runs: the commands that show two runs side by side, and group many by their behaviour."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from woodrat.cli import inputs
from woodrat.cli.command import CommandResult, Invocation
from woodrat.cli.runs import NO_READ, runs_of
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper, value
from woodrat.errors import Fault, NotFound, Refused
from woodrat.server import wire

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from woodrat.api.past import Past
    from woodrat.compare.divergence import Divergence
    from woodrat.compare.groups import Cluster, Crowd

MARKS = {"same": "", "differs": "|", "first": "<", "second": ">"}
"""The mark beside a row."""
SET_ASIDE_MAX = 8
"""Most ignored values that are listed; JSON has them all."""
SHARED_CHARACTERS_MAX = 12
"""How long an equal part of two differing sides may be before a terminal omits it."""
CLUSTERS_MAX = 10
"""Most clusters beside each other, the largest first."""


def group(call: Invocation) -> CommandResult:
    """Group runs by their behaviour."""
    given = call.given
    chosen = any(name not in ("runs", "reward_min") for name in call.arguments())
    if not given.runs and not chosen:
        remedy = "Name runs, or choose them with --query, --subject, --agent, --conversation, --attribute or --since."
        raise Refused([Fault("RUN", "no runs to group", remedy)], NO_READ)
    runs = [_run(word) for word in given.runs] or None
    past = _ledger(call, [None] if chosen else runs or [])
    crowd = _read_other_run(given.runs, lambda: call.ask(past, runs=runs))
    code = wire.FOUND_SOMETHING if given.exit_code and not crowd.same else wire.DONE
    return CommandResult(crowd.to_json(), lambda paper: show_crowd(paper, crowd), code=code)


def diff(call: Invocation) -> CommandResult:
    """Show two runs side by side, and where they diverge."""
    given = call.given
    elsewhere = given.other_db is not None or given.other_tenant is not None
    words = [word for word in (given.first, given.second) if word is not None]
    if len(words) == 1 or (elsewhere and not words):
        remedy = "Name two runs, or none: then the last two of an agent are compared."
        raise Refused([Fault("RUN", "no run to compare with", remedy)], NO_READ)
    words = words or _last_two(runs_of(call))
    first, second = (_run(word) for word in words)
    with Invocation(_other(call)) if elsewhere else _Nowhere() as other:
        past = _ledger(call, [first, second])
        within = None if other is None else runs_of(other)
        found = _read_other_run(words, lambda: call.ask(past, first=first, second=second, other=within))
    code = wire.FOUND_SOMETHING if given.exit_code and not found.same else wire.DONE
    return CommandResult(found.to_json(), lambda paper: show_divergence(paper, found), code=code)


def _last_two(past: Past) -> list[str]:
    """Return the latest run and the one before it of the same agent, the earlier first."""
    latest = past.runs.list(limit=1).items
    if not latest:
        raise NotFound("There are no runs to compare. Nothing was read. Record two runs first.")
    found = past.runs.list(limit=2, agent=latest[0].agent).items
    if len(found) < 2:
        raise NotFound(
            f"{latest[0].id} is the only run of agent {latest[0].agent}. Nothing was read. Name two runs to compare.",
            {"run": latest[0].id},
        )
    return [found[1].id, found[0].id]


def _ledger(call: Invocation, runs: Sequence[Any]) -> Past:
    """Return the ledger; an empty one if it does not exist and every run is a file."""
    try:
        return runs_of(call)
    except NotFound:
        if any(not isinstance(run, dict | list) for run in runs):
            raise
        from woodrat.api.open import open_ledger
        from woodrat.engines.open import MEMORY

        return open_ledger(MEMORY)


class _Nowhere:
    """No other ledger."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def _other(call: Invocation) -> Any:
    """Return the arguments of this call with the other ledger in place of the first."""
    from types import SimpleNamespace

    db = call.given.other_db if call.given.other_db is not None else call.db
    tenant = call.given.other_tenant if call.given.other_tenant is not None else call.tenant
    return SimpleNamespace(**{**vars(call.given), "db": db, "tenant": tenant, "as_of": None})


def _run(word: str) -> str | Any:
    """Return a run's id unchanged, or the document of an existing file."""
    if word != "-" and (word.startswith("run_") or not os.path.isfile(word)):
        if os.sep in word or word.endswith((".json", *inputs.LINES_SUFFIXES, ".csv")):
            raise NotFound(
                f"There is no file {word}. Nothing was read. Name a run id, or a file with a trajectory.",
                {"path": word},
            )
        return word
    return inputs.recording(word, "RUN", NO_READ)


def _read_other_run(words: list[str], ask: Any) -> Any:
    """Read the other run; faults in a file name the file."""
    try:
        return ask()
    except Refused as refusal:
        names = {"first": words[0], "second": words[-1]} if words else {}
        names |= {f"runs/{number}": word for number, word in enumerate(words)}
        raise Refused((_named(fault, names) for fault in refusal.faults), NO_READ) from None


def _named(fault: Fault, names: Mapping[str, str]) -> Fault:
    for name, word in sorted(names.items(), key=lambda item: -len(item[0])):
        if fault.path == name or fault.path.startswith(f"{name}/"):
            return Fault(word + fault.path.removeprefix(name), fault.problem, fault.remedy)
    return fault


# For people


def show_divergence(paper: Paper, found: Divergence) -> None:
    """Print two runs side by side, and the sentence."""
    rows = [
        (MARKS[row.mark], str(row.step), row.label, *_sides(row.first or "", row.second or "", paper.width is not None))
        for row in found.rows
    ]
    parted = [YELLOW if row.step == found.step else DIM if row.mark == "same" else "" for row in found.rows]
    paper.table(("", "STEP", "WHAT", "FIRST", "SECOND"), rows, parted)
    paper.line(found.sentence, GREEN if found.same else BOLD)
    if found.wording is not None:
        paper.line(found.wording)
    if found.set_aside:
        named = [f"{aside.path} of step {aside.step} ({aside.kind})" for aside in found.set_aside]
        more = f" and {len(named) - SET_ASIDE_MAX} more" if len(named) > SET_ASIDE_MAX else ""
        paper.line(f"Ignored, because every run makes it up again: {', '.join(named[:SET_ASIDE_MAX])}{more}.", DIM)


def _sides(first: str, second: str, cut: bool) -> tuple[str, str]:
    """Return two texts of a row, from where they differ on if their columns may be cut before that."""
    shared = next(
        (n for n, (x, y) in enumerate(zip(first, second, strict=False)) if x != y), min(len(first), len(second))
    )
    if not cut or first == second or shared <= SHARED_CHARACTERS_MAX:
        return first, second
    begin = first.rfind(" ", 0, shared) + 1
    begin = begin if shared - begin <= SHARED_CHARACTERS_MAX else shared - SHARED_CHARACTERS_MAX
    return f"…{first[begin:]}", f"…{second[begin:]}"


def show_crowd(paper: Paper, crowd: Crowd) -> None:
    """Print the clusters as a tree, the difference between good and bad runs, and the sentence."""
    main = crowd.main
    paper.line(f"{main.agree} of {len(main.runs)} runs took the main way{_verdicts(main, main.clusters)}", GREEN)
    _outcome(paper, main, "  ")
    _clusters(paper, main, "", CLUSTERS_MAX)
    if crowd.differing_inputs:
        paper.line(f"inputs that differ: {', '.join(crowd.differing_inputs)}", DIM)
    separation = crowd.separation
    if separation is not None and (traits := separation.traits or separation.hints):
        rows = [
            (
                f"{trait.bad}/{trait.bad_total}",
                f"{trait.good}/{trait.good_total}",
                "start" if trait.step == 0 else str(trait.step),
                f"{trait.p_value:.2g}",
                trait.text,
            )
            for trait in traits
        ]
        if not separation.traits:
            paper.line("chance could do all of this:", DIM)
        paper.table(
            ("BAD", "GOOD", "STEP", "P", "THESE RUNS"), rows, [YELLOW if separation.traits else DIM] * len(rows)
        )
    paper.line(crowd.sentence, GREEN if crowd.same else BOLD)


def _verdicts(cluster: Cluster, without: Sequence[Cluster] = ()) -> str:
    """Return the numbers of good and bad runs in a cluster, without its listed subclusters."""
    if not cluster.good and not cluster.bad:
        return ""
    good = cluster.good - sum(inner.good for inner in without)
    bad = cluster.bad - sum(inner.bad for inner in without)
    return f" ({good} good, {bad} bad)"


def _clusters(paper: Paper, above: Cluster, indent: str, limit: int) -> None:
    for cluster in above.clusters[:limit]:
        count = "1 run parts" if len(cluster.runs) == 1 else f"{len(cluster.runs)} runs part"
        if cluster.label is None:
            count = count.replace(" parts", "").replace(" part", "") + " with nothing in common"
        where = "" if cluster.label is None else f" at {cluster.label}"
        paper.line(f"{indent}{count}{where}{_verdicts(cluster)}", YELLOW)
        if cluster.cause is not None:
            paper.line(f"{indent}  {cluster.cause.text}")
        _outcome(paper, cluster, f"{indent}  ")
        _clusters(paper, cluster, f"{indent}    ", limit)
    rest = above.clusters[limit:]
    if rest:
        runs = sum(len(cluster.runs) for cluster in rest)
        paper.line(f"{indent}and {len(rest)} more clusters with {runs} runs (all of them with -o json)", DIM)


def _outcome(paper: Paper, cluster: Cluster, indent: str) -> None:
    decided = "; ".join(f"{made.stage}={value(made.chosen)}" for made in cluster.decisions)
    paper.line(f"{indent}{decided + '; ' if decided else ''}answer: {cluster.ending}")
    paper.line(f"{indent}{cluster.representative}", DIM)
