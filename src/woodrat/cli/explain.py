"""Explaining: origins, dependents, stale decisions, and recalled answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.cli.command import READ, UPDATE, CommandResult, Invocation
from woodrat.cli.progress import bar
from woodrat.cli.runs import NO_READ, runs_of
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper, fields, time, value
from woodrat.errors import Fault, NotFound, Refused
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.explain.impact import Impact
    from woodrat.explain.lineage import LineageTree, Node
    from woodrat.explain.stale import Belief, Stale
    from woodrat.recall.reader import Recall


IMPACT_IDS = ("obs_", "src_", "int_", "ent_", "run_")
"""Prefixes of ids that `impact` takes; other text without a slash names an agent."""


def lineage(call: Invocation) -> CommandResult:
    """Show the lineage of something."""
    page = call.ask(runs_of(call))

    def text(paper: Paper) -> None:
        _tree(paper, page)
        for cycle in page.cycles:
            paper.line(cycle.sentence, YELLOW)
        if page.left_out:
            paper.line(f"{page.left_out} runs lie beyond the depth of {page.depth}; add --depth N.", YELLOW)
        if page.cursor is not None:
            paper.line(f"More: add --cursor {page.cursor}", DIM)

    return _drawn(call, page) or CommandResult(page.to_json(), text)


def impact(call: Invocation) -> CommandResult:
    """List the runs and fields that depend on something."""
    what: str = call.given.what
    past = runs_of(call)
    if what.startswith(IMPACT_IDS) or "/" in what:
        try:
            page = call.ask(past, what=what)
        except NotFound:
            if what.startswith(IMPACT_IDS):
                raise
            page = call.ask(past, what=None, agent=what)  # an agent may have a slash in its name
    else:
        page = _impact_of_agent_or_entity(call, past, what)

    def text(paper: Paper) -> None:
        _tree(paper, page.tree)
        total = page.counts
        counts = (
            (total.observations, "observations"),
            (total.fields, "current fields"),
            (total.runs, "runs"),
            (total.decisions, "decisions"),
            (total.exports, "exports"),
        )
        paper.line(
            "; ".join(f"{count} {noun if count != 1 else noun[:-1]}" for count, noun in counts if count is not None),
            DIM,
        )
        if page.left_out:
            paper.line(f"{page.left_out} runs lie beyond the depth of {page.depth}; add --depth N.", YELLOW)
        if page.cursor is not None:
            paper.line(f"More: add --cursor {page.cursor}", DIM)

    return _drawn(call, page.tree) or CommandResult(page.to_json(), text)


def _impact_of_agent_or_entity(call: Invocation, past: Past, what: str) -> Impact:
    """Return the impact of an agent's statements; if there is no such agent, of an entity with this name."""
    try:
        page: Impact = call.ask(past, what=None, agent=what)
    except NotFound as unknown:
        try:
            page = call.ask(past, what=what)
        except Refused:
            raise unknown from None
    return page


def _drawn(call: Invocation, tree: Node | LineageTree) -> CommandResult | None:
    """Return a tree in the requested graph format; None if no graph was requested."""
    if call.given.format is None:
        return None
    from woodrat.explain import lineage

    graph = lineage.dot(tree) if call.given.format == "dot" else lineage.mermaid(tree)

    def text(paper: Paper) -> None:
        for line in graph.splitlines():
            paper.line(line)

    return CommandResult(None, text, plain=True)


def _tree(paper: Paper, tree: Node | LineageTree) -> None:
    from woodrat.explain.lineage import lines

    for number, line in enumerate(lines(tree)):
        paper.line(line, "" if number else BOLD)


def stale(call: Invocation) -> CommandResult:
    """List decisions whose evidence has changed since; with `--follow` also new ones as they become stale."""
    given = call.given
    if given.follow:
        return _followed(call)
    past = runs_of(call)
    page = call.ask(past)

    def text(paper: Paper) -> None:
        if not page.items:
            paper.line("No decision is stale." if not given.same else "No decision has evidence that changed.")
        for found in page.items:
            _stale(paper, found)
        if page.cursor is not None:
            paper.line(f"More: add --cursor {page.cursor}", DIM)

    rows = [found.to_json() for found in page.items]
    note = None if page.cursor is None else f"More: add --cursor {page.cursor}"
    return CommandResult(wire.listing(rows, page.position, page.cursor), text, rows, note=note)


def _followed(call: Invocation) -> CommandResult:
    """Print decisions as they become stale, by any writer."""
    from woodrat.api.ledger import Ledger
    from woodrat.cli import maintenance

    given = call.given
    whole = {"--same": given.same or None, "--limit": given.limit, "--cursor": given.cursor, "--as-of": given.as_of}
    faults = [
        Fault(name, "it cannot be combined with --follow, which starts now and never ends", "Leave one of them out.")
        for name, item in whole.items()
        if item is not None
    ]
    if given.output == "json":
        problem = "--follow never ends, so it cannot be one JSON value"
        faults.append(Fault("woodrat stale", problem, "Use -o jsonl, one line per decision."))
    if faults:
        raise Refused(faults, NO_READ)
    past = runs_of(call)
    ledger = past if isinstance(past, Ledger) else call.ledger(READ)
    found = ledger.follow_stale(wait=lambda: maintenance.wait(maintenance.POLL_MILLISECONDS))

    def text(paper: Paper) -> None:
        for one in found:
            _stale(paper, one)
            paper.flush()

    return CommandResult(None, text, (one.to_json() for one in found), streams=True, follows=True)


_STYLES = {"flip": YELLOW, "same": GREEN, "unknown": DIM}


def _stale(paper: Paper, found: Stale) -> None:
    decision = found.decision
    paper.line(f"{decision.stage}={value(decision.chosen)} {found.sentence}", _STYLES[found.outcome])
    about = "" if found.subject is None else f" about {found.subject}"
    where = f"{paper.id(found.run)}{about}; position {decision.position}"
    paper.line(f"  decided {time(decision.started_at)} in {where}", DIM)
    if found.query is not None:
        paper.line(f"  question: {found.query}")
    if decision.evidence:
        paper.line(f"  evidence: {fields(decision.evidence)}")
    for belief in found.beliefs:
        _belief(paper, belief)
    if found.outcome != "unknown":
        paper.line(f"  now {found.now.reason}")
    if found.answer is not None:
        paper.line(f"  answer: {value(found.answer)}")


def _belief(paper: Paper, belief: Belief) -> None:
    before = value(belief.before) if belief.observations else "(nothing)"
    now = "(nothing)" if belief.missing else value(belief.now)
    by = "" if belief.changed_by is None else f" by {belief.changed_by}"
    because = "" if belief.because is None else f", because {value(belief.because)}"
    said = f"{belief.change}{by}{because}: {belief.reason}"
    paper.line(f"  {belief.entity}#{belief.field}: was {before}, is {now} now; {said}")


def recall(call: Invocation) -> CommandResult:
    """Find remembered answers to a question."""
    found = call.ask(call.caught_up(), embedder=call.given.embedder)
    return CommandResult(found.to_json(), lambda paper: _print_recall(paper, found))


def _print_recall(paper: Paper, found: Recall) -> None:
    from woodrat.recall.reader import EMPTY

    if found:
        for line in found.text.split("\n"):
            paper.line(line)
        for hit in found.hits:
            what = f"with what it {hit.passage}" if hit.record is not None else f"as a {hit.kind}"
            paper.line(f"  {paper.id(hit.ref)}, score {hit.score:.3f} {what}", DIM)
    elif found.remark != EMPTY:
        paper.line(f"Nothing passes the threshold of {found.threshold:g} in the scope {found.scope}.", YELLOW)
    if found.understood is not None:
        said = found.understood
        paper.line(f"{said.words!r} was understood as {time(said.since)} to before {time(said.until)}.", DIM)
    if found.remark is not None:
        paper.line(found.remark, DIM)
    if found.rejected:
        paper.line("What came close:")
        cells = [(f"{each.score:.3f}", each.reason, each.text, time(each.at), each.ref) for each in found.rejected]
        paper.table(("SCORE", "REASON", "TEXT", "SAID AT", "WHAT"), cells)


def reindex(call: Invocation) -> CommandResult:
    """Embed all runs again."""
    ledger = call.ledger(UPDATE)
    with bar("Reindexing", "entries") as tell:
        found = call.ask(ledger, embedder=call.given.embedder, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(f"Indexed {found.passages} passages of {found.runs} runs with {found.embedder}.", GREEN)

    return CommandResult(found.to_json(), text)
