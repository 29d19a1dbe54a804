"""Trailing indexes: what steps make of a log is what the definition makes of each entity."""

from __future__ import annotations

from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woodrat.api.trailing_indexes import TRAILING
from woodrat.canon.ids import Ref
from woodrat.engines.memory import MemoryEngine
from woodrat.engines.port import IndexRow, View
from woodrat.ledger import fingerprint_index, indexer, search_index, trailing
from woodrat.ledger import index as log_index
from woodrat.ledger import search as searching
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN
from woodrat.state import relation
from woodrat.state.asof import AsOf
from woodrat.state.fingerprint import Tree, branch_hash, subtree_hash, whole
from woodrat.testing.histories import batches, tellings
from woodrat.testing.ledgers import bodies, ledger_on


def rows_by_definition(view: View) -> list[IndexRow]:
    """Return the rows of the search index as the definition makes them, entity by entity."""
    through = log_index.covered(view, search_index.INDEX.name)
    found: list[IndexRow] = []
    spoken = view.entities(None, through)
    for ref in {*spoken, *(end for edge in spoken for end in relation.joined(edge) or ())}:
        found += trailing.lives(view, search_index.INDEX, BUILTIN, ref, through)
    return sorted(found, key=lambda row: row[:3])


def rows_kept(view: View) -> list[IndexRow]:
    """Return the rows that the index has."""
    return sorted((row for name in search_index.INDEX.indexes for row in view.lives(name)), key=lambda row: row[:3])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_steps_make_what_the_definition_makes(data: st.DataObject) -> None:
    """Whatever is said, joined, parted, withdrawn or described anew, in steps of any length."""
    check_steps(data)


def check_steps(data: st.DataObject) -> None:
    """Write a history, bring the index on now and then, and compare it with the definition."""
    ledger = ledger_on(MemoryEngine(), tenant="t")
    engine, tenant = ledger.context.engine, ledger.tenant
    for batch in data.draw(batches(data.draw(tellings()))):
        ledger.admit(bodies(batch.said))
        if data.draw(st.booleans()):
            trailing.catch_up(engine, tenant, search_index.INDEX, BUILTIN, data.draw(st.sampled_from([1, 3, None])))
    trailing.catch_up(engine, tenant, search_index.INDEX, BUILTIN)
    with engine.view(tenant) as view:
        assert log_index.covered(view, search_index.INDEX.name) == view.head().position
        assert rows_kept(view) == rows_by_definition(view)


@pytest.mark.parametrize("fault", ["ends", "groups", "schemas"])
def test_a_step_that_forgets_something_is_caught(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: rows that do not end, groups that are not looked at, types that are not described anew."""
    if fault == "ends":
        monkeypatch.setattr(trailing.Step, "_end", lambda self, place, value, position: None)
    elif fault == "groups":
        monkeypatch.setattr("woodrat.state.relation.joined", lambda ref: None)
    else:
        monkeypatch.setattr(
            trailing, "spoken_of", lambda view, index, policies, first, last: view.touched(first - 1, last)
        )
    ledger = ledger_on(MemoryEngine(), tenant="t")
    engine, tenant = ledger.context.engine, ledger.tenant
    ledger.store([{"entity_type": "pair", "id": name, "text": f"word {name}"} for name in ("a", "b")])
    trailing.catch_up(engine, tenant, search_index.INDEX, BUILTIN)
    ledger.store({"entity_type": "pair", "id": "a", "text": "other"})
    ledger.merge("pair/a", "pair/b")
    ledger.schemas.register(
        {"title": "pair", "properties": {"text": {"x-woodrat-text": True}, "id": {"type": "string"}}}
    )
    trailing.catch_up(engine, tenant, search_index.INDEX, BUILTIN)
    with engine.view(tenant) as view:
        kept = rows_kept(view)
        monkeypatch.undo()
        assert kept != rows_by_definition(view)


def test_a_search_answers_alike_however_long_its_lists_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """By rows of all words, by the order of one long list, by folding a few, and by folding all: the same pages."""
    ledger = ledger_on(MemoryEngine(), tenant="t")
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

    monkeypatch.setattr(searching, "EVALUATED_MAX", 0)
    wanted = pages()
    for evaluated, rows in ((1_000, 4_000), (30, 10), (5, 1), (0, 1), (64, 0)):
        monkeypatch.setattr(searching, "EVALUATED_MAX", evaluated)
        monkeypatch.setattr(search_index, "ROWS_MAX", rows)
        assert pages() == wanted


def test_an_index_far_behind_answers_as_of_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a search does not wait for it leaves out, and the page says where it stands; the indexer makes up for it."""
    ledger = ledger_on(MemoryEngine(), tenant="t")
    monkeypatch.setattr(searching, "CATCH_UP_ENTRIES", 10)
    monkeypatch.setattr(searching, "FOLDED_ENTRIES", 5)
    monkeypatch.setattr(trailing, "STEP_ENTRIES", 5)
    for number in range(60):
        ledger.store({"entity_type": "note", "id": f"{number}", "text": "word"})
    page = ledger.search("word", limit=100)
    assert 9 <= page.position < ledger.position
    assert len(page.items) < 60
    with ledger.context.engine.view(ledger.tenant) as view:
        assert {one.name: one.lacking > 0 for one in indexer.positions(view, TRAILING)}["search"]
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
    ledger = ledger_on(MemoryEngine(), tenant="t")
    numbers = count()
    for many in (1, 1, 300, 1, 40, 2):
        for renewed in (2, 256):
            monkeypatch.setattr(fingerprint_index, "RENEWED_FROM", renewed)
            ledger.store([{"entity_type": "note", "id": f"{next(numbers) % 500}", "n": many} for _ in range(many)])
            assert ledger.fingerprint() == ledger.at("now").fingerprint()
    with ledger.context.engine.view(ledger.tenant) as view:
        reader = Reader(view, AsOf(view.head().position), BUILTIN)
        assert dict(fingerprint_index.leaves(view)) == dict(reader.fingerprint().items())
        assert fingerprint_index.has_its_nodes(view)
        assert view.entity(Ref("note", "1").digest, view.head().position) is not None
