"""Pages of one entity's history: the same as folding all of it, at every position, however long the pages are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import woodrat
from woodrat.canon.ids import Ref
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import entry_index, history, reads
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.testing.clock import FixedClock

TIMES = [f"2026-01-0{day}T00:00:00.000000Z" for day in range(1, 6)]
REFS = ["boat/a", "boat/b"]
TYPES = ["owns", "own", "own_0", "knows"]
"""Types of relations; some begin as another does, and stand on both sides of `same_as`."""
_refs = st.sampled_from(REFS)
_acts = st.one_of(
    st.tuples(
        st.just("store"),
        _refs,
        st.dictionaries(st.sampled_from(["x", "y"]), st.integers(0, 3), min_size=1),
        st.sampled_from(TIMES),
    ),
    st.tuples(st.just("correct"), _refs, st.integers(0, 3)),
    st.tuples(st.just("retract"), _refs),
    st.tuples(st.just("delete"), _refs),
    st.tuples(st.just("restore"), _refs),
    st.tuples(st.just("schema"), st.sampled_from(["min", "max", "latest"])),
    st.tuples(st.just("relate"), st.sampled_from(TYPES), st.integers(0, 3)),
    st.tuples(st.just("merge")),
)


def act(ledger: woodrat.Ledger, name: str, *given: Any) -> None:
    """Do what happens; what the ledger refuses does not happen."""
    try:
        if name == "store":
            ref, said, time = given
            ledger.store({"entity_type": "boat", "id": ref[-1], **said}, observed_at=time)
        elif name == "correct":
            ledger.correct(given[0], {"x": given[1]}, reason="wrong")
        elif name == "retract":
            ledger.retract(ledger.observations(given[0]).items[-1].observation.id)
        elif name == "schema":
            fields = {"x": {"type": "integer", "x-woodrat-merge": given[0]}}
            ledger.schemas.register({"type": "object", "properties": fields}, entity_type="boat")
        elif name == "relate":
            ledger.store({"entity_type": "boat", "id": str(given[1])})
            ledger.relate("boat/a", given[0], f"boat/{given[1]}")
            ledger.relate(f"boat/{given[1]}", given[0], "boat/b")
        elif name == "merge":
            ledger.merge(*REFS)
        else:
            getattr(ledger, name)(given[0])
    except (woodrat.Refused, woodrat.NotFound, woodrat.Outdated):
        pass


def opened(engine: Engine) -> woodrat.Ledger:
    """Return an empty ledger."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z")
    return woodrat.Ledger(engine, tenant="t", agent="ann", clock=clock, policies=registry(()))


def everything(ask: Callable[..., Any], limit: int) -> Any:
    """Return all items, asked for page by page, or what the ledger says instead."""
    items: list[Any] = []
    cursor = None
    try:
        while True:
            page = ask(limit=limit, cursor=cursor)
            items += page.items
            cursor = page.cursor
            if cursor is None:
                return items
    except woodrat.NotFound as error:
        return str(error)


def whole(ask: Callable[[], Any]) -> Any:
    """Return all items, worked out at once, or what the ledger says instead."""
    try:
        return list(ask())
    except woodrat.NotFound as error:
        return str(error)


def agree(engine: Engine, acts: list[tuple[Any, ...]], limit: int) -> None:
    """Check every list of an entity against the whole of it, at every position."""
    ledger = opened(engine)
    for step in acts:
        act(ledger, *step)
    for position in range(ledger.position + 1):
        for past in (ledger.at(position), ledger.at(position, valid_at=TIMES[2])):
            context = past.context
            for ref in REFS:
                for field in (None, "x"):
                    pages = everything(partial(past.history, ref, field), limit)
                    assert pages == whole(partial(reads.history, context, ref, field))
                pages = everything(partial(past.observations, ref), limit)
                assert pages == whole(partial(reads.observations, context, ref))
                for depth in (1, 2, 3):
                    pages = everything(partial(past.related, ref, depth=depth), limit)
                    assert pages == whole(partial(reads.related, context, ref, depth=depth))
                related = whole(partial(reads.related, context, ref))
                for type in (*TYPES[:2], "same_as") if isinstance(related, list) else ():
                    pages = everything(partial(past.related, ref, type=type), limit)
                    assert pages == [link for link in related if link.type == type]


_lists = st.lists(_acts, min_size=1, max_size=12)


@settings(max_examples=25, deadline=None, phases=[Phase.generate, Phase.shrink])
@given(acts=_lists, limit=st.integers(1, 4), size=st.integers(1, 8))
def test_pages_are_the_whole_history(acts: list[tuple[Any, ...]], limit: int, size: int) -> None:
    """Observations, steps and relations come page by page as they do at once, in memory."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "WHOLE_MAX", 0)
        patch.setattr(history, "_PART", size)
        patch.setattr(entry_index, "_RELATIONS_PAGE", size)
        agree(InMemoryEngine(), acts, limit)


@settings(max_examples=8, deadline=None, phases=[Phase.generate])
@given(acts=st.lists(_acts, min_size=12, max_size=24), limit=st.integers(1, 4))
def test_pages_are_the_whole_history_in_a_file(acts: list[tuple[Any, ...]], limit: int) -> None:
    """Observations, steps and relations come page by page as they do at once, in a file."""
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "WHOLE_MAX", 1)
        patch.setattr(history, "_PART", 3)
        patch.setattr(entry_index, "_RELATIONS_PAGE", 2)
        engine = SqliteEngine(Path(folder) / "one.db")
        try:
            agree(engine, acts, limit)
        finally:
            engine.close()


APART: list[tuple[Any, ...]] = [
    ("store", "boat/a", {"x": 1}, TIMES[3]),
    ("store", "boat/b", {"x": 2}, TIMES[1]),
    ("store", "boat/a", {"x": 3}, TIMES[2]),
]
JOINED: list[tuple[Any, ...]] = [*APART[:2], ("merge",), APART[2]]


@pytest.mark.parametrize(
    ("name", "fault", "acts"),
    [
        ("history_after", lambda *_: iter(()), APART),
        ("observations_after", lambda *_: iter(()), JOINED),
        ("can_walk", lambda *_: True, JOINED),
        ("related_after", lambda *_: iter(()), [*APART, ("relate", "owns", 1)]),
    ],
)
def test_a_planted_fault_is_caught(name: str, fault: Any, acts: list[tuple[Any, ...]]) -> None:
    """Pages that leave something out, or go on where a group has to be folded, are told from the whole."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, name, fault)
        with pytest.raises(AssertionError):
            agree(InMemoryEngine(), acts, 2)


def test_a_page_of_relations_costs_what_it_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first and a later page of an entity with many relations read as many of them as of one with few."""
    monkeypatch.setattr(entry_index, "_RELATIONS_PAGE", 4)
    monkeypatch.setattr("woodrat.ledger.find.GATHERED", 4)
    engine = SqliteEngine(tmp_path / "hub.db")
    ledger = opened(engine)
    ledger.store([{"entity_type": "boat", "id": id} for id in ("a", "b", *(f"{number:03d}" for number in range(90)))])
    for name, count in (("a", 9), ("b", 90)):
        for number in range(count):
            ledger.relate(f"boat/{name}", "owns", f"boat/{number:03d}")
    folded: list[str] = []
    link_of = reads.link_of

    def counted(reader: Reader, edge: Ref) -> reads.Related | None:
        folded.append(edge.key)
        return link_of(reader, edge)

    monkeypatch.setattr(reads, "link_of", counted)
    costs = []
    for name in "ab":
        page = ledger.related(f"boat/{name}", limit=3)
        ledger.related(f"boat/{name}", limit=3, cursor=page.cursor)
        costs.append(len(folded))
        folded.clear()
    assert costs[0] == costs[1] == 8
    engine.close()
