"""Steps of the state index: what they make of a log is what the definition makes of each entity."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woodrat import Ledger
from woodrat.api.trailing_indexes import TRAILING
from woodrat.canon.ids import Ref
from woodrat.engines.records import IndexRow
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.sqlite.transaction import SqliteTransaction
from woodrat.engines.view import View
from woodrat.ledger import fingerprint_index, indexer, search_index, state_index, state_redo, state_rows, state_steps
from woodrat.ledger import search as searching
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN
from woodrat.state import relation
from woodrat.state.asof import AsOf
from woodrat.state.fingerprint import Tree, branch_hash, subtree_hash, whole
from woodrat.state.observation import ASSERT, say
from woodrat.testing.generators import MOMENTS
from woodrat.testing.histories import batches, tellings
from woodrat.testing.ledgers import bodies, ledger_on


def rows_by_definition(view: View) -> list[IndexRow]:
    """Return the rows as the definition makes them, entity by entity."""
    histories = state_redo.RowHistories(view, BUILTIN)
    found = [row for ref in view.entities(None, view.head().position) for row in histories.of(ref)]
    holders: dict[bytes, list[IndexRow]] = {}
    for row in found:
        if row.name == state_rows.IDENTITY:
            holders.setdefault(state_rows.value_prefix(row.key), []).append(row)
    for prefix, several in holders.items():
        found += state_redo.duplicate_lives(prefix, several)
    return sorted(found, key=lambda row: row[:3])


def rows_kept(view: View) -> list[IndexRow]:
    """Return the rows that the index has."""
    return sorted((row for name in state_rows.INDEXES for row in view.lives(name)), key=lambda row: row[:3])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_steps_make_what_the_definition_makes(data: st.DataObject) -> None:
    """Whatever is said, joined, parted, withdrawn or described anew, in steps of any length."""
    check_steps(data)


def bring_on(ledger: Ledger) -> None:
    """Bring the index up to date."""
    while state_steps.go_on(ledger.context.engine, ledger.tenant, BUILTIN):
        pass


def check_steps(data: st.DataObject) -> None:
    """Write a history, bring the index on now and then, and compare it with the definition."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    engine, tenant = ledger.context.engine, ledger.tenant
    for batch in data.draw(batches(data.draw(tellings()))):
        ledger.admit(bodies(batch.said))
        if data.draw(st.booleans()):
            for _ in range(data.draw(st.integers(1, 3))):
                state_steps.go_on(engine, tenant, BUILTIN, data.draw(st.sampled_from([1, 3, None])))
    bring_on(ledger)
    with engine.view(tenant) as view:
        assert state_index.reached(view) == view.head().position
        assert rows_kept(view) == rows_by_definition(view)


@pytest.mark.parametrize("fault", ["ends", "groups", "schemas"])
def test_a_step_that_forgets_something_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: rows that do not end, groups that are not looked at, types that are not described anew."""
    if fault == "ends":
        monkeypatch.setattr(SqliteTransaction, "end", lambda self, position, rows: None)
    elif fault == "groups":
        monkeypatch.setattr(state_steps, "group_events", lambda *given, **options: [])
    else:
        monkeypatch.setattr(state_steps.Step, "_filling", lambda *given: ())
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    engine, tenant = ledger.context.engine, ledger.tenant
    ledger.store([{"entity_type": "pair", "id": name, "text": f"word {name}"} for name in ("a", "b")])
    bring_on(ledger)
    ledger.store({"entity_type": "pair", "id": "a", "text": "other"})
    ledger.merge("pair/a", "pair/b")
    ledger.schemas.register(
        {"title": "pair", "properties": {"text": {"x-woodrat-text": True}, "id": {"type": "string"}}}
    )
    bring_on(ledger)
    with engine.view(tenant) as view:
        kept = rows_kept(view)
        monkeypatch.undo()
        assert kept != rows_by_definition(view)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a type be taken in anew in several steps."""
    monkeypatch.setattr(state_steps, "STEP_ENTITIES", 2)


NOTE: dict[str, Any] = {"title": "note_card", "properties": {"id": {"type": "string"}}}


def with_field(described: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of note cards, which describes one field more."""
    return {**NOTE, "properties": {**NOTE["properties"], "extra": described}}


def fills_after(ledger: Ledger, described: dict[str, Any], records: list[dict[str, Any]]) -> bool:
    """Store records, describe one field more, take a step; return whether the index takes in the type anew."""
    ledger.schemas.register(NOTE)
    ledger.store(records)
    bring_on(ledger)
    ledger.schemas.register(with_field(described))
    engine, tenant = ledger.context.engine, ledger.tenant
    assert state_steps.go_on(engine, tenant, BUILTIN)
    with engine.view(tenant) as view:
        return bool(state_index.progress_of(view).filling)


def cards(count: int, **fields: Any) -> list[dict[str, Any]]:
    """Return note cards, the last of which has some fields more."""
    plain = [{"entity_type": "note_card", "id": f"n{number}", "text": f"word {number}"} for number in range(count)]
    return [*plain[:-1], {**plain[-1], **fields}]


def test_a_schema_that_adds_a_field_nobody_uses_takes_in_no_entity() -> None:
    """The index goes past it in one step, and says what the definition says."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    assert not fills_after(ledger, {"type": "string"}, cards(3))
    ledger.store({"entity_type": "note_card", "id": "n0", "extra": "fresh"})
    assert [hit.snapshot.entity.key for hit in ledger.search("fresh")] == ["n0"]
    assert not ledger.verify(deep=True).damage
    with ledger.context.engine.view(ledger.tenant) as view:
        assert rows_kept(view) == rows_by_definition(view)


@pytest.mark.parametrize("value", ["said before", None, 7, ["a"], {"a": 1}, ""])
def test_a_schema_that_describes_a_field_in_use_takes_in_its_entities(value: object) -> None:
    """Whatever the value that one of them has."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    described = {"type": "integer", "x-woodrat-merge": "max"}
    assert fills_after(ledger, described, cards(3, extra=value))
    bring_on(ledger)
    assert not ledger.verify(deep=True).damage
    with ledger.context.engine.view(ledger.tenant) as view:
        assert rows_kept(view) == rows_by_definition(view)


def test_the_first_field_that_is_marked_for_search_takes_in_all_entities() -> None:
    """Nobody has a value of it, and yet no other field is searched from then on."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    assert fills_after(ledger, {"type": "string", "x-woodrat-text": True}, cards(3))
    assert not list(ledger.search("word"))
    bring_on(ledger)
    assert not ledger.verify(deep=True).damage


def test_a_new_indexed_field_is_listed_as_absent() -> None:
    """Sorting by it has to find those without a value."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    assert fills_after(ledger, {"type": "string", "x-woodrat-index": True}, cards(5))
    bring_on(ledger)
    assert len(list(ledger.query(entity_type="note_card", sort="extra"))) == 5
    assert not ledger.verify(deep=True).damage


def test_taking_every_addition_for_unused_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a field that was in use before it was described counts as one that nobody uses."""
    monkeypatch.setattr(state_steps.Step, "_only_adds_unused", lambda *given: True)
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    described = {"type": "integer"}
    assert not fills_after(ledger, described, cards(3, extra="said before"))
    with ledger.context.engine.view(ledger.tenant) as view:
        kept = rows_kept(view)
        monkeypatch.undo()
        assert kept != rows_by_definition(view)


def test_a_group_is_listed_though_nobody_spoke_of_its_smallest_entity() -> None:
    """Lists by index and lists by folding have it, in its place, as searches and the fingerprint do."""
    silent, loud = sorted((Ref("pair", key) for key in ("b", "c")), key=lambda ref: ref.digest)
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    edge = relation.relation(silent, relation.SAME_AS, loud)
    ends = relation.joined(edge)
    assert ends is not None
    said = [
        say(edge, ASSERT, agent="a", observed_at=MOMENTS[0], fields={"from": str(ends[0]), "to": str(ends[1])}),
        *(say(ref, ASSERT, agent="a", observed_at=MOMENTS[0], fields={"n": 1}) for ref in (loud, Ref("pair", "a"))),
        say(Ref("pair", "d"), ASSERT, agent="a", observed_at=MOMENTS[0], fields={"n": 1}),
    ]
    ledger.admit(bodies(said))
    wanted = ["a", silent.key, "d"]
    plain = [item.entity.key for item in ledger.query(entity_type="pair", limit=1)]
    by_row = [item.entity.key for item in ledger.query(entity_type="pair", where={"n": 1}, limit=1)]
    assert plain == by_row == wanted
    bring_on(ledger)
    assert [item.entity.key for item in ledger.query(entity_type="pair", limit=1)] == wanted
    assert [item.entity.key for item in ledger.query(entity_type="pair", descending=True, limit=1)] == wanted[::-1]
    assert not ledger.verify(deep=True).damage


def test_a_search_answers_alike_however_long_its_lists_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """By joining lists, by reading all rows of a word, and by looking at each candidate: the same pages."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    for number in range(60):
        words = "common" if number % 3 else "common rare commonly"
        more = {"note": "common"} if number % 7 == 0 else {}
        ledger.store({"entity_type": f"k{number % 2}", "id": f"common {number}", "text": words, **more})
    ledger.store({"entity_type": "k0", "id": "common", "text": "x"})
    queries = ("common", "comm", "common rare", "rare", "c", "common 7", "x", "nothing")

    def pages() -> list[object]:
        found: list[object] = []
        for query in queries:
            for kind in (None, "k0"):
                page = ledger.search(query, entity_type=kind, limit=7)
                found.append([hit.to_json() for hit in page])
        return found

    wanted = pages()
    for lists, rows in ((2, 4_000), (2, 1), (0, 4_000), (0, 40), (0, 1)):
        monkeypatch.setattr(search_index, "LISTS_MAX", lists)
        monkeypatch.setattr(searching, "WORD_ROWS_MAX", rows)
        assert pages() == wanted


def test_an_index_far_behind_answers_as_of_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search does not wait for it leaves out, and the page says where it stands; the indexer makes up for it."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    monkeypatch.setattr(state_steps, "CATCH_UP_ENTRIES", 10)
    monkeypatch.setattr(state_index, "LAID_OVER_MAX", 5)
    monkeypatch.setattr(state_steps, "STEP_ENTRIES", 5)
    for number in range(60):
        ledger.store({"entity_type": "memo", "id": f"{number}", "text": "word"})
    page = ledger.search("word", limit=100)
    assert 9 <= page.position < ledger.position
    assert len(page.items) < 60
    with ledger.context.engine.view(ledger.tenant) as view:
        assert {one.name: one.lacking > 0 for one in indexer.positions(view, TRAILING)}["state"]
    while indexer.go_on(ledger.context, TRAILING, 7):
        pass
    page = ledger.search("word", limit=100)
    assert page.position == ledger.position
    assert len(page.items) == 60
    with ledger.context.engine.view(ledger.tenant) as view:
        assert not any(one.lacking for one in indexer.positions(view, TRAILING))


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.binary(min_size=32, max_size=32), st.binary(min_size=32, max_size=32), max_size=40))
def test_nodes_of_parts_make_the_root_of_the_tree(leaves: dict[bytes, bytes]) -> None:
    """The root that is kept over parts is that of the tree over all leaves, however they share their beginnings."""
    close = {bytes(2) + entity[2:]: value for entity, value in leaves.items()}
    for some in (leaves, close, {**leaves, **close}):
        made = fingerprint_index.nodes(sorted(some.items()))
        over = made.get(b"n\0\0\0")
        assert whole(over) == Tree.build(some.items()).root()
    assert subtree_hash(()) is None
    assert branch_hash(0, [None] * 16) is None


def test_the_kept_fingerprint_follows_few_and_many_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    """One part hashed again, or all nodes made anew: the root is that of the whole state."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    numbers = count()
    for many in (1, 1, 300, 1, 40, 2):
        for renewed in (2, 256):
            monkeypatch.setattr(fingerprint_index, "RENEWED_FROM", renewed)
            ledger.store([{"entity_type": "memo", "id": f"{next(numbers) % 500}", "n": many} for _ in range(many)])
            assert ledger.fingerprint() == ledger.at("now").fingerprint()
    with ledger.context.engine.view(ledger.tenant) as view:
        reader = Reader(view, AsOf(view.head().position), BUILTIN)
        assert dict(fingerprint_index.leaves(view)) == dict(reader.fingerprint().items())
        assert fingerprint_index.has_its_nodes(view)
        assert view.entity(Ref("memo", "1").digest, view.head().position) is not None


def test_a_fingerprint_that_was_asked_for_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asked for again, it folds nothing and makes no node."""
    ledger = ledger_on(InMemoryEngine(), tenant="t")
    ledger.store([{"entity_type": "memo", "id": f"{number}", "text": "word"} for number in range(300)])
    wanted = ledger.fingerprint()
    monkeypatch.setattr(fingerprint_index, "nodes", None)
    monkeypatch.setattr(fingerprint_index, "changed_leaves", None)
    assert ledger.fingerprint() == wanted


def test_threads_that_ask_at_once_work_each_step_out_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of several threads whose questions need an index, one takes a step at a time; none does what another did."""
    begun: list[int] = []
    made: list[int] = []
    all_here = threading.Barrier(4)
    step = state_steps.Step

    def counted(view: View, *given: Any, **options: Any) -> state_steps.Step:
        begun.append(len(begun))
        assert len(begun) == len(made) + 1, "two steps are worked out at once"
        found = step(view, *given, **options)
        made.append(found.before.position)
        return found

    monkeypatch.setattr(state_steps, "Step", counted)
    monkeypatch.setattr(state_steps, "STEP_ENTRIES", 20)
    with closing(SqliteEngine(tmp_path / "a.db")) as engine:
        ledger = ledger_on(engine)
        for start in range(0, 200, 10):
            ledger.store([{"entity_type": "memo", "id": f"{start + n}", "text": "word"} for n in range(10)])

        def ask(_: int) -> int:
            all_here.wait()
            return len(ledger.search("word", limit=300).items)

        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(ask, range(4))) == [200] * 4
    assert len(made) == len(set(made)) > 5
