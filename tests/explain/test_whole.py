"""Lineage and impact are whole: transitive through runs, each thing once, in pages; a depth asked for is reported."""

from __future__ import annotations

import io
import random
from collections.abc import Collection
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.explain.test_reader import RULES, opened, store
from tests.runs.story import at, write

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.explain.impact import Impact
from woodrat.explain.lineage import LineageTree, dot, lines, mermaid
from woodrat.explain.reader import impact as impact_reader
from woodrat.explain.reader import searches
from woodrat.explain.reader.impact_runs import impact_runs
from woodrat.explain.reader.lineage import cycles
from woodrat.explain.references import Affected
from woodrat.runs.reader.run_reader import RunReader
from woodrat.runs.rules import Rule


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """An empty ledger."""
    return opened(InMemoryEngine())


def pages(first: Any) -> list[Any]:
    """Return a page and all that follow it."""
    listed = [first]
    while (page := listed[-1].next_page()) is not None:
        listed.append(page)
    return listed


def chain(ledger: woodrat.Ledger, length: int) -> tuple[str, list[str]]:
    """Have each of so many runs read what the one before wrote; return the first observation, and the runs."""
    first = store(ledger, 0, amount=1)
    runs = []
    for number in range(length):
        with ledger.run("Go on", subject=f"loan/{number}") as run:
            run.decide("check", run.show(f"loan/{number}"), [Rule("on", {"amount": {"gte": 1}})], default="off")
            run.store({"entity_type": "loan", "id": str(number + 1), "amount": 1})
        runs.append(str(run.id))
    return first, runs


# Impact


def test_impact_goes_on_through_runs(ledger: woodrat.Ledger) -> None:
    """A run that read what another wrote after reading something leans on that too; each says how far and by what."""
    first, runs = chain(ledger, 4)
    found = ledger.impact(first)
    assert [(each.run, each.distance, each.through_run) for each in found.runs] == list(
        zip(runs, (1, 2, 3, 4), (None, *runs), strict=False)
    )
    assert found.runs[0].through == first
    assert [each.through for each in found.runs[1:]] == [each.writes[0].observation for each in found.runs[:3]]
    assert {(won.entity, won.distance) for won in found.fields} == {(f"loan/{n}", n) for n in range(5)}
    assert (found.counts.runs, found.counts.decisions, found.counts.fields) == (4, 4, len(found.fields))
    assert (found.depth, found.left_out, found.cursor) == (None, 0, None)
    tree = list(lines(found.tree))
    assert sum(runs[3] in line for line in tree) == 1
    assert runs[3] in dot(found.tree)


def test_a_depth_that_was_asked_for_is_reported(ledger: woodrat.Ledger) -> None:
    """Both ways end where they were told to, and say what lies one further."""
    first, runs = chain(ledger, 5)
    found = ledger.impact(first, depth=2)
    assert ([each.run for each in found.runs], found.depth, found.left_out) == (runs[:2], 2, 1)
    assert ledger.impact(first, depth=5).left_out == 0
    back = ledger.lineage("loan/5#amount", depth=2)
    assert ([each.id for each in back.runs], back.depth, back.left_out) == ([runs[4], runs[3]], 2, 1)
    assert any(node.details.get("beyond") and node.id == runs[2] for node in back.walk())
    assert ledger.lineage("loan/5#amount", depth=5).left_out == 0
    for depth in (0, -1, 1.5, True, "2"):
        wrong: Any = depth
        for ask in (ledger.impact, ledger.lineage):
            with pytest.raises(woodrat.Refused, match="depth: got"):
                ask(first, depth=wrong)


def test_what_was_written_before_the_read_does_not_lean_on_it(ledger: woodrat.Ledger) -> None:
    """Only what a run wrote after it had read something may come of it."""
    said = store(ledger, 1, amount=1)
    with ledger.run("Write, then read") as run:
        run.store({"entity_type": "loan", "id": "early", "amount": 1})
        run.show("loan/1")
        run.store({"entity_type": "loan", "id": "late", "amount": 1})
    with ledger.run("Read both") as reader:
        reader.show("loan/early")
    found = ledger.impact(said)
    assert [each.run for each in found.runs] == [run.id]
    assert [wrote.entity for wrote in found.runs[0].writes] == ["loan/late"]
    assert said not in [node.id for node in ledger.lineage(str(reader.id)).find("observation")]
    assert said in [node.id for node in ledger.lineage("loan/late#amount").find("observation")]


def test_later_moments_of_a_run_are_shown_too(ledger: woodrat.Ledger) -> None:
    """A run that wrote twice is followed for both writes, whichever is met first."""
    a, b = store(ledger, 1, amount=1), store(ledger, 2, amount=2)
    with ledger.run("Twice") as run:
        run.show("loan/1")
        run.store({"entity_type": "loan", "id": "x", "first": 1})
        run.show("loan/2")
        run.store({"entity_type": "loan", "id": "y", "second": 2})
    with ledger.run("Join") as join:
        join.show("loan/x")
    with ledger.run("Join again") as last:
        last.show("loan/y")
        join_read = last.show("loan/x")
        assert join_read is not None
    seen = [node.id for node in ledger.lineage(str(last.id)).find("observation")]
    assert {a, b} <= set(seen)
    assert b not in [node.id for node in ledger.lineage(str(join.id)).find("observation")]


def test_decisions_and_recalls_are_followed(ledger: woodrat.Ledger) -> None:
    """A decision made on what another run decided, and a run that recalled another, lean on what those leaned on."""
    said = store(ledger, creditScore=580)
    with ledger.run("Approve #42?", subject="loan/42") as first:
        first.decide("classify-risk", first.show("loan/42"), RULES, default="manual-review")
        first.answer("#42: rejected")
    reason = ledger.why("loan/42").items[0]
    with ledger.run("Appeal #42?") as second:
        second.decided("appeal", "no", on=[reason])
        second.store({"entity_type": "appeal", "id": "42", "outcome": "no"})
    with ledger.run("What became of #42?") as third:
        third.recall("Approve #42?", threshold=0)
    found = {each.run: each for each in ledger.impact(said).runs}
    assert (found[second.id].distance, found[second.id].through_run) == (2, first.id)
    assert [made.decision.stage for made in found[second.id].decisions] == ["appeal"]
    assert first.id in found[third.id].reads[0].runs
    for what in ("appeal/42#outcome", str(third.id)):
        tree = ledger.lineage(what)
        assert said in [node.id for node in tree.find("observation")], "\n".join(lines(tree))
    of_run = ledger.impact(str(first.id))
    assert (of_run.kind, {each.run for each in of_run.runs}) == ("run", {second.id, third.id})
    of_stage = ledger.impact(f"{first.id}#classify-risk")
    assert (of_stage.kind, {each.run for each in of_stage.runs}) == ("decision", {second.id, third.id})
    assert ledger.verify(deep=True).sound


def test_the_impact_of_an_entity_is_that_of_its_observations(ledger: woodrat.Ledger) -> None:
    """All that was said of an entity counts; an entity of which nothing was said is not found."""
    first, runs = chain(ledger, 3)
    found = ledger.impact("loan/0")
    assert (found.kind, found.id, found.observations) == ("entity", "loan/0", (first,))
    assert [each.run for each in found.runs] == runs
    with pytest.raises(woodrat.NotFound, match="There is no entity"):
        ledger.impact("loan/none")


# Cycles


def test_a_cycle_ends_and_is_named(ledger: woodrat.Ledger) -> None:
    """Two runs that read each other's writes are followed once each, both ways, and the lineage says so."""
    store(ledger, 1, amount=1)
    with ledger.run("Ping") as ping, ledger.run("Pong") as pong:
        for number in range(3):
            ping.show("loan/1")
            ping.store({"entity_type": "loan", "id": "2", "amount": number + 10})
            pong.show("loan/2")
            pong.store({"entity_type": "loan", "id": "1", "amount": number + 20})
    tree = ledger.lineage("loan/1#amount")
    assert [run.id for run in tree.runs] == [pong.id, ping.id]
    assert [(cycle.runs, cycle.run_count) for cycle in tree.cycles] == [((pong.id, ping.id), 2)]
    assert tree.cycles[0].sentence == f"{pong.id}, {ping.id} lean on one another."
    found = ledger.impact("loan/1")
    assert sorted(each.run for each in found.runs) == sorted([ping.id, pong.id])
    assert [each.run for each in ledger.impact(str(ping.id)).runs] == [pong.id]
    assert mermaid(tree).count("run: ") == 2


def test_runs_that_lean_on_one_another_are_found() -> None:
    """The runs of a cycle are named together; a chain behind or before it is none."""
    edges = {"a": {"b"}, "b": {"c"}, "c": {"d", "b"}, "d": {"e"}, "x": {"y"}, "y": {"x", "a"}}
    assert cycles(edges) == [("b", "c"), ("x", "y")]
    assert cycles({str(n): {str(n + 1)} for n in range(5_000)}) == []
    assert cycles({str(n): {str((n + 1) % 5_000)} for n in range(5_000)}) == [tuple(map(str, range(5_000)))]


# Length and pages


def test_hundreds_of_runs_behind_one_another_are_followed(ledger: woodrat.Ledger) -> None:
    """No limit of Python's stack or of ours cuts a chain, and its JSON is shallow."""
    length = 300
    first, runs = chain(ledger, length)
    back = ledger.lineage(f"loan/{length}#amount", limit=1_000)
    assert [run.id for run in back.runs] == runs[::-1]
    assert first in [node.id for node in back.find("observation")]
    assert depth_of(back.to_json()) < 30
    assert [each.run for each in ledger.impact(first, limit=1_000).runs] == runs
    assert len(list(lines(back))) > length


def depth_of(value: Any) -> int:
    """Return how deep a JSON value is."""
    deepest, left = 0, [(value, 1)]
    while left:
        part, depth = left.pop()
        deepest = max(deepest, depth)
        inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
        left += [(each, depth + 1) for each in inside]
    return deepest


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_pages_together_are_the_whole(ledger: woodrat.Ledger, limit: int) -> None:
    """Whatever the length of a page, all pages hold every item once and in order, by hand or by cursor alone."""
    first, _ = chain(ledger, 4)
    store(ledger, 0, other=2)
    ledger.training.export("sft", out=io.StringIO())
    whole, parts = ledger.impact("loan/0"), pages(ledger.impact("loan/0", limit=limit))
    for name in ("runs", "fields", "exports", "observations"):
        assert [item for part in parts for item in getattr(part, name)] == list(getattr(whole, name)), name
    assert len(whole.exports) == 1
    assert parts[-1].counts == whole.counts
    assert all(len(part.runs + part.fields + part.exports + part.observations) == limit for part in parts[:-1])
    by_cursor: list[Impact] = [ledger.impact("loan/0", limit=limit)]
    back: list[LineageTree] = [ledger.lineage("loan/4#amount", limit=limit)]
    store(ledger, 0, later="not on these pages")
    while by_cursor[-1].cursor is not None:
        by_cursor.append(ledger.impact("loan/0", limit=limit, cursor=by_cursor[-1].cursor))
    assert by_cursor == parts
    while back[-1].cursor is not None:
        back.append(ledger.lineage("loan/4#amount", limit=limit, cursor=back[-1].cursor))
    whole_back = ledger.lineage("loan/4#amount")
    assert [run for part in back for run in part.runs] == list(whole_back.runs)
    assert [node for part in back for node in part.nodes] == list(whole_back.nodes)
    with pytest.raises(woodrat.Refused, match="not a cursor of this question"):
        ledger.impact(first, limit=limit, cursor=by_cursor[0].cursor)


# The law: what is found is the closure


Log = list[tuple[str, Any]]


def generated(ledger: woodrat.Ledger, seed: int) -> tuple[list[str], dict[str, list[Any]]]:
    """Write runs that read, decide, cite, recall and write at random, in any order of arrival.

    Returns the observations, and by run its steps as (kind, position, what it names or wrote).
    """
    chance = random.Random(seed)
    said = [store(ledger, number, amount=number) for number in range(3)]
    runs = [f"run_{letter * 26}" for letter in "abcdef"[: chance.randint(2, 6)]]
    steps: dict[str, list[Any]] = {run: [] for run in runs}
    decided: list[tuple[str, str, str]] = []
    for run in runs:
        write(ledger, [("run.started", {"run": run, "step": 0, "span": "0" * 16, "started_at": at(0), "agent": "a"})])
    for number in range(1, chance.randint(5, 30)):
        run = chance.choice(runs)
        span = f"{number:016x}"
        body = {"run": run, "step": number, "span": span, "started_at": at(number), "agent": "a"}
        act = chance.choice(["read", "read", "write", "write", "decide", "cite", "recall", "stage"])
        if act == "read":
            id = chance.choice(said)
            fields = {"amount": {"observation": id, "value": 1}}
            write(ledger, [("run.read", {**body, "entity": "loan/1", "position": 0, "fields": fields})])
            named: Any = ("observation", id)
        elif act == "write":
            writer = opened(ledger.context.engine, agent="a")
            report = writer.store({"entity_type": "memo", "id": str(number), "n": number}, run=run)
            said.append(str(report.observations[0]))
            steps[run].append(("write", ledger.position, said[-1]))
            continue
        elif act == "recall":
            other = chance.choice(runs)
            recalled = [{"run": other, "score": 1.0, "passage": "asked", "at": 0}]
            args = {"question": "q"}
            told = {**body, "position": 0, "within": "recall", "args": args, "recalled": recalled, "found": True}
            write(ledger, [("run.read", {**told, "fields": {}})])
            named = ("run", other)
        else:
            if act == "decide" or not decided:
                id = chance.choice(said)
                origin = {"kind": "read", "entity": "loan/1", "field": "amount", "observations": [id], "position": 0}
                named = ("observation", id)
            elif act == "cite":
                other, cited, _ = chance.choice(decided)
                origin = {"kind": "decision", "run": other, "span": cited}
                named = ("decision", (other, cited))
            else:
                other, _, stage = chance.choice(decided)
                origin = {"kind": "recall", "run": other, "stage": stage, "span": "f" * 16}
                named = ("stage", (other, stage))
            stage = chance.choice(["s", "t"])
            chosen = {"stage": stage, "chosen": 1, "mode": "decide", "default": False, "facts": {"f": 1}}
            write(ledger, [("run.decided", {**body, **chosen, "facts_origin": {"f": origin}})])
            steps[run].append(("decision", ledger.position, named, span, stage))
            decided.append((run, span, stage))
            continue
        steps[run].append(("read", ledger.position, named))
    return said, steps


def closure(steps: dict[str, list[Any]], seed: str) -> set[str]:
    """Return the runs that lean on an observation, by going over everything until nothing is added."""
    things: set[Any] = {("observation", seed)}
    since: dict[str, int] = {}
    while True:
        before = (len(things), dict(since))
        for run, made in steps.items():
            for step in made:
                kind, position = step[0], step[1]
                if kind == "write":
                    if since.get(run, position) < position:
                        things.add(("observation", step[2]))
                    continue
                named = step[2]
                leans = named in things or (named[0] == "run" and since.get(named[1], position) < position)
                if leans:
                    since[run] = min(position, since.get(run, position))
                    if kind == "decision":
                        things.update({("decision", (run, step[3])), ("stage", (run, step[4]))})
        if before == (len(things), since):
            return set(since)


def check_closure(seed: int) -> None:
    """Fail where impact or lineage differ from the closure over a generated log."""
    ledger = opened(InMemoryEngine())
    said, steps = generated(ledger, seed)
    wanted = {id: closure(steps, id) for id in said}
    for id in said:
        assert {each.run for part in pages(ledger.impact(id, limit=2)) for each in part.runs} == wanted[id], seed
    for run in steps:
        tree = ledger.lineage(run, limit=1_000)
        seen = {node.id for node in tree.find("observation")}
        assert {id for id in said if run in wanted[id]} == seen & set(said), (seed, run)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_impact_and_lineage_are_the_closure(seed: int) -> None:
    """For generated logs the runs found are those that brute force finds, and lineage is the same read backwards."""
    check_closure(seed)


def test_the_closure_finds_a_planted_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    """An impact that forgets recalled runs is told apart from a whole one."""
    monkeypatch.setattr(Affected, "recalled", lambda self, run, position: False)
    with pytest.raises(AssertionError):
        any(map(check_closure, range(40)))


# Pages cost what they show


def test_a_run_comes_again_with_what_leans_by_a_longer_way(ledger: woodrat.Ledger) -> None:
    """Each step is listed once, at its own distance, so that no page needs what lies further away."""
    said = store(ledger, 1, amount=1)
    with ledger.run("Pass on") as near:
        near.show("loan/1")
        near.store({"entity_type": "loan", "id": "2", "amount": 1})
    with ledger.run("Both") as both:
        both.show("loan/2")
        both.store({"entity_type": "loan", "id": "3", "amount": 1})
        both.show("loan/1")
        both.store({"entity_type": "loan", "id": "4", "amount": 1})
    found = ledger.impact(said)
    listed = [(each.run, each.distance, [read.read.entity for read in each.reads]) for each in found.runs]
    assert listed == [(near.id, 1, ["loan/1"]), (both.id, 1, ["loan/1"]), (both.id, 2, ["loan/2"])]
    assert [[write.entity for write in each.writes] for each in found.runs] == [["loan/2"], ["loan/4"], ["loan/3"]]
    assert (found.counts.runs, found.left_out) == (2, 0)


def test_a_page_finds_no_more_than_it_shows(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page, and one by a cursor whose search was forgotten, look up the runs they show and the one behind."""
    said = store(ledger, 1, amount=1)
    runs = []
    for _ in range(12):
        with ledger.run("Read") as run:
            run.show("loan/1")
        runs.append(str(run.id))
    looked_up: list[str] = []
    read: list[str] = []

    def counted(run_reader: RunReader, ids: Collection[str], bodies: Any) -> Any:
        looked_up.extend(sorted(ids, key=runs.index))
        return impact_runs(run_reader, ids, bodies)

    def noted(self: RunReader, id: str) -> Any:
        read.append(id)
        return find(self, id)

    find = RunReader.find
    monkeypatch.setattr(RunReader, "find", noted)
    monkeypatch.setattr(impact_reader, "impact_runs", counted)
    page = ledger.impact(said, limit=3)
    assert [each.run for each in page.runs] == runs[:3]
    assert (page.counts.runs, page.counts.decisions, page.left_out) == (None, None, None)
    assert looked_up == runs[:4]
    searches._SEARCHES.clear()
    looked_up.clear()
    page = ledger.impact(said, limit=3, cursor=page.cursor)
    assert ([each.run for each in page.runs], looked_up) == (runs[3:6], runs[3:7])
    searches._SEARCHES.clear()
    page = ledger.impact(said, limit=100, cursor=page.cursor)
    assert ([each.run for each in page.runs], page.counts.runs) == (runs[6:], 12)
    assert not read, "none of them has to be read as a whole"
