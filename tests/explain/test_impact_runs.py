"""Pages of decisions and of runs by what indexes keep: the same as from whole runs, at every position, in any page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.runs.story import at, write_entry

import woodrat
from woodrat.canon.ids import Ref
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import WoodratError
from woodrat.explain.reader import searches
from woodrat.explain.reader.impact_runs import ImpactRun
from woodrat.explain.reader.tracer import Tracer
from woodrat.ledger.own_policy import registry
from woodrat.runs import summary
from woodrat.runs.reader.run_reader import RunReader
from woodrat.state import observation
from woodrat.state.observation import ASSERT
from woodrat.testing.clock import FixedClock

RUNS = [f"run_{letter * 26}" for letter in "abc"]
LOAN, OTHER = "loan/1", "loan/2"
RULES = [{"label": "low", "chosen": "no", "when": {"score": {"lt": 3}}, "matched": True}]

Act = tuple[str, str, int]
"""What happens, in which run, and a number that says more."""

_kinds = st.sampled_from(
    ["store", "store", "read", "read", "past", "effective", "decide", "decide", "cite", "call", "wrote", "end", "judge"]
)
_acts: st.SearchStrategy[Act] = st.tuples(
    st.one_of(_kinds, st.sampled_from(["foreign", "twice", "long", "again"])),
    st.sampled_from(RUNS),
    st.integers(0, 7),
)


def opened() -> woodrat.Ledger:
    """Return an empty ledger."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z")
    return woodrat.Ledger(InMemoryEngine(), tenant="t", agent="ann", clock=clock, policies=registry(()))


class Story:
    """Writes runs as a recorder would, and as it would not."""

    def __init__(self, ledger: woodrat.Ledger) -> None:
        self._ledger = ledger
        self._begun: set[str] = set()
        self._read: dict[str, dict[str, Any]] = {}
        self._spans: list[tuple[str, str]] = []
        self._entries: list[tuple[str, dict[str, Any]]] = []

    def act(self, kind: str, run: str, number: int) -> None:
        """Let something happen; what is refused did not."""
        ledger, ref = self._ledger, OTHER if number % 3 == 2 else LOAN
        if kind == "store":
            self._store(ref, number)
            return
        if run not in self._begun:
            self._begun.add(run)
            self._say("run.started", run, {"query": f"About {ref}?", "subject": ref})
        if kind in ("read", "past", "effective"):
            self._read_it(kind, run, ref, number)
        elif kind in ("decide", "cite", "call"):
            self._decide(kind, run, number)
        elif kind == "wrote":
            self._store(ref, number, run)
        elif kind in ("end", "long"):
            self._say("run.ended", run, {"status": "done", "answer": "yes" * (1 if kind == "end" else 500)})
        elif kind == "judge":
            ledger.runs.judge(run, "good" if number % 2 else "bad")
        elif kind == "foreign":
            self._say("run.noted", run, {"text": "not mine"}, agent="bob")
        elif kind == "twice" and self._entries:
            write_entry(ledger, *self._entries[number % len(self._entries)])
        elif kind == "again":
            self._say("run.noted", run, {"text": "later"})

    def _store(self, ref: str, number: int, run: str | None = None) -> None:
        kind, _, key = ref.partition("/")
        record = {"entity_type": kind, "id": key, "score": number}
        if run is None:
            self._ledger.store(record, observed_at=at(number))
            return
        fields = {"score": number}
        said = observation.say(Ref(kind, key), ASSERT, agent="ann", observed_at=at(number), fields=fields, run=run)
        self._ledger.admit([("observation", said.body)])

    def _say(self, kind: str, run: str, said: dict[str, Any], agent: str = "ann") -> None:
        span = f"{self._ledger.position + 1:016x}"
        body = {"run": run, "agent": agent, "span": span, "started_at": at(self._ledger.position % 50), **said}
        self._entries.append((kind, body))
        write_entry(self._ledger, kind, body)

    def _read_it(self, kind: str, run: str, ref: str, number: int) -> None:
        position = self._ledger.position
        seen = self._ledger.at(position) if kind != "effective" else self._ledger.at(position, valid_at=at(number))
        try:
            fact = seen.show(ref).fact("score")
        except WoodratError:
            return
        named = fact.origin["observations"]
        fields = {"score": {"observation": named[0], "value": fact.value}} if named else {}
        read = {"log": "log_test", "position": position, "entity": ref, "found": True, "fields": fields}
        more = {"as_of": position} if kind == "past" else {"effective": at(number)} if kind == "effective" else {}
        self._say("run.read", run, {**read, **more, "step": 1})
        self._read[run] = {"value": fact.value, "origin": {**fact.origin, "position": position}}

    def _decide(self, kind: str, run: str, number: int) -> None:
        origin: dict[str, Any] = {"kind": "stated"}
        value: Any = number
        if kind == "decide" and run in self._read:
            value, origin = self._read[run]["value"], self._read[run]["origin"]
        elif kind == "cite" and self._spans:
            other, span = self._spans[number % len(self._spans)]
            origin = {"kind": "decision", "run": other, "span": span}
        elif kind == "call":
            origin = {"kind": "tool", "span": f"{number:016x}"}
        condition = {"key": "score", "op": "lt", "operand": 3, "actual": value, "result": True, "origin": origin}
        rules = [{**RULES[0], "conditions": [condition]}]
        made = {"stage": "risk", "mode": "decide", "chosen": "no", "default": False, "rules": rules, "rule": "low"}
        given = {"facts": {"score": value}, "facts_origin": {"score": origin}, "untried": [], "otherwise": "yes"}
        self._say("run.decided", run, {**made, **given, "step": 2})
        self._spans.append((run, self._entries[-1][1]["span"]))


def asked(ledger: woodrat.Past, things: list[str]) -> list[Any]:
    """Return what every question answers, in pages of two, each asked for by its cursor alone."""
    questions: list[Callable[[str | None], Any]] = [
        lambda cursor: ledger.stale(same=True, limit=2, cursor=cursor),
        lambda cursor: ledger.why(LOAN, limit=2, cursor=cursor),
        lambda cursor: ledger.why(OTHER, limit=2, cursor=cursor),
    ]
    questions += (partial(_impact, ledger, thing) for thing in things)
    return [list(pages(question)) for question in questions]


def _impact(ledger: woodrat.Past, thing: str, cursor: str | None) -> Any:
    return ledger.impact(thing, limit=2, cursor=cursor)


def pages(question: Callable[[str | None], Any]) -> Iterator[Any]:
    """Yield all pages of an answer as JSON."""
    cursor = None
    while True:
        searches._SEARCHES.clear()  # so that a page is found by its cursor
        try:
            page = question(cursor)
        except woodrat.NotFound as missing:
            yield str(missing)
            return
        yield page.to_json()
        cursor = page.cursor
        if cursor is None:
            return


def agree(acts: list[Act]) -> int:
    """Check that lines and whole runs answer the same at every position; return how many runs had a line."""
    ledger = opened()
    story = Story(ledger)
    story.act("store", RUNS[0], 1)
    story.act("store", RUNS[0], 2)
    for act in acts:
        story.act(*act)
    said = [stored.observation.id for stored in ledger.observations(limit=200)]
    begun = [run.id for run in ledger.runs.list(limit=100)]
    things = [*said[:3], LOAN, *begun[:2]]
    for position in (ledger.position, *range(ledger.position - 1, 3, -4)):
        past = ledger if position == ledger.position else ledger.at(position)
        by_lines = asked(past, things)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(RunReader, "rows", lambda self, runs: {})
            assert asked(past, things) == by_lines, position
    assert ledger.verify(deep=True).sound
    with ledger.context.engine.view(ledger.tenant) as view:
        return len(view.scan("run_lists", b"list/line/"))


@settings(max_examples=25, deadline=None, phases=[Phase.generate, Phase.shrink])
@given(acts=st.lists(_acts, min_size=4, max_size=16))
def test_lines_answer_as_whole_runs_do(acts: list[Act]) -> None:
    """What stale, why and impact say of runs by what indexes keep is what they say of them when they are read."""
    agree(acts)


STORY: list[Act] = [
    *[(kind, run, number) for number, run in enumerate(RUNS[:2]) for kind in ("read", "decide", "wrote", "end")],
    ("store", RUNS[0], 4),
    ("past", RUNS[2], 0),
    ("decide", RUNS[2], 0),
    ("cite", RUNS[2], 1),
    ("end", RUNS[2], 0),
    ("judge", RUNS[0], 1),
    ("again", RUNS[1], 1),
    ("store", RUNS[0], 7),
]


def test_the_story_has_lines() -> None:
    """The three runs of a story have lines, so that these are what is compared."""
    assert agree(STORY) == 3


@pytest.mark.parametrize("planted", ["writes", "parts", "moments"])
def test_a_planted_fault_is_caught(planted: str) -> None:
    """What is left out by lines is told from whole runs."""
    with pytest.MonkeyPatch.context() as patch:
        if planted == "writes":
            patch.setattr(ImpactRun, "writes", ())
        elif planted == "parts":
            parts_of = summary._parts
            patch.setattr(summary, "_parts", lambda *given: (found := parts_of(*given)) and [[], found[1]])
        else:
            patch.setattr(Tracer, "with_moments", lambda self, runs: set())
        with pytest.raises((AssertionError, KeyError)):
            agree(STORY)
