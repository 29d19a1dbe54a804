"""Verifying: damage is found; also in large collections, whose parts are stored separately."""

from __future__ import annotations

from typing import Any

import pytest

from woodrat import Ledger
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_bytes
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL, KEPT_EVERY, IndexRow, Kept
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import fingerprint_index, identifying_values
from woodrat.ledger.comparison import TABLES, Comparison
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN, packed_state
from woodrat.merge.elements import INSIDE_MAX
from woodrat.state.asof import AsOf
from woodrat.testing.clock import FixedClock
from woodrat.testing.contract.fixtures import Contract, long_history
from woodrat.testing.ledgers import (
    EARLY,
    LATE,
    THING,
    answers,
    fold_at,
    indexes_of,
    kept_of,
    ledger_on,
    same_state,
    told_on,
)


class VerifyingContract(Contract):
    """Verification, as every engine must do it."""

    # Verifying

    def test_rows_are_the_entries_as_stored(self, engine: Engine) -> None:
        """The rows of a log are its entries, with the leaves of the tree, between any two positions."""
        ledger = long_history(engine)
        with engine.view(ledger.tenant) as view:
            entries, leaves = list(view.entries()), view.leaves(view.head().size)
            rows = list(view.rows(BEFORE_ALL, len(entries) - 1))
            assert [row.entry() for row in rows] == entries
            assert [row.leaf for row in rows] == list(leaves) == [entry.leaf() for entry in entries]
            assert list(view.rows(4, 6)) == rows[5:7]
            assert list(view.rows(len(entries), len(entries) + 5)) == []
            assert view.extent() == len(entries)
            assert view.body_bytes() == sum(len(entry.body or b"") for entry in entries)

    def test_receipts_are_listed(self, engine: Engine) -> None:
        """Every idempotency key is listed once, by agent and key, with the same receipt as `receipt` returns."""
        a, b = ledger_on(engine, agent="a"), ledger_on(engine, agent="b", clock=FixedClock(seed="b"))
        for ledger, key in ((b, "2"), (a, "3"), (b, "1")):
            ledger.store({"entity_type": "memo", "id": key, "by": ledger.agent}, idempotency_key=key)
        ledger_on(engine, "other").store({"entity_type": "memo", "id": "x"}, idempotency_key="x")
        with engine.view(a.tenant) as view:
            listed = list(view.receipts())
            assert [(agent, key) for agent, key, _ in listed] == [("a", "3"), ("b", "1"), ("b", "2")]
            assert all(view.receipt(agent, key) == receipt for agent, key, receipt in listed)

    def test_what_was_told_verifies(self, engine: Engine) -> None:
        """A ledger with the whole story has no findings, before and after a rebuild."""
        ledger = long_history(engine)
        told_on(engine, clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="story"))
        ledger.search("ana")
        for _ in range(2):
            found = ledger.verify(deep=True)
            assert found.sound, found.damage
            assert found.fingerprint == ledger.fingerprint()
            assert (found.entries, found.position) == (ledger.position + 1, ledger.position)
            with engine.view(ledger.tenant) as view:
                assert found.root == view.head().frontier.root().hex()
            ledger.rebuild()
        assert ledger_on(engine, "never-wrote").verify().sound

    def test_derived_rows_compare_with_those_of_any_engine(self, engine: Engine) -> None:
        """Derived rows of one log are the same as in memory, and every row is identified by its key."""
        logs = [long_history(one) for one in (engine, InMemoryEngine())]
        for ledger in logs:
            ledger.search("ana")
            ledger.query(where={"city": "Vic"})
        found, right = (ledger.context.engine.view(ledger.tenant) for ledger in logs)
        with found as one, right as other:
            comparison = Comparison(one, other, BUILTIN)
            for table in TABLES:
                comparison.table(table)
            comparison.states()
            assert one.index_names() == other.index_names()
            for name in one.index_names():
                comparison.index(name)
            assert comparison.wrong == []
            for name, width in (*((table.name, table.key) for table in TABLES), ("kept", 3), ("element", 5)):
                keys = [row[:width] for row in one.derived(name)]
                assert len(set(keys)) == len(keys)

    @pytest.mark.parametrize("lasting", [False, True])
    def test_a_wrong_state_is_found(self, engine: Engine, lasting: bool) -> None:
        """State that disagrees with the log is named with its position and entity, and the log counts as sound."""
        ledger = long_history(engine)
        ref = Ref("contact", "Ana Rivera")
        ledger.store({"entity_type": "contact", "name": ref.key, "city": "Vic"})
        with engine.transaction(ledger.tenant) as write:
            position = write.head().position
            reader = Reader(write, AsOf(position), BUILTIN)
            right = reader.state(ref)
            write.keep([(Kept(position, right._replace(live=right.live + 1)), reader.rules(ref.type), lasting)])
        if lasting:  # the next write is folded into the wrong state
            ledger.store({"entity_type": "contact", "name": ref.key, "city": "Lleida"})
        found = ledger.verify()
        assert {(one.damage, one.entity) for one in found.damage} == {("state", str(ref))}
        assert (found.log_damaged, found.first) == (False, position)
        ledger.rebuild()
        assert ledger.verify().sound

    # Large collections

    def test_a_large_collection_reads_as_a_fold_at_every_position(self, engine: Engine) -> None:
        """However a large collection was made, its stored parts equal a fold of everything."""
        ledger = _large_collections(engine)
        refs = [Ref("thing", key) for key in ("many", "more")]
        for again in (False, True):
            with engine.view(ledger.tenant) as view:
                head = view.head().position
                # part of a long batch, and everything after it
                for position in (*range(0, head - 30, 7), *range(head - 30, head + 1)):
                    reader = Reader(view, AsOf(position), BUILTIN)
                    for ref in refs:
                        rules, members = reader.rules(ref.type), reader.group(ref)
                        folded = fold_at(view, members, rules, position)
                        assert same_state(reader.state(ref), folded, rules), (position, ref)
            found = ledger.verify(deep=True)
            assert found.sound, found.damage
            if not again:
                state = ledger.fingerprint(), ledger.fingerprint(provenance=True)
                assert ledger.rebuild().agreed
                assert (ledger.fingerprint(), ledger.fingerprint(provenance=True)) == state

    def test_kept_state_holds_no_parts_of_large_collections(self, engine: Engine) -> None:
        """States along the history of a large collection leave its parts in place."""
        ledger = ledger_on(engine)
        ledger.schemas.register(THING)
        ref = Ref("thing", "many")
        for number in range(INSIDE_MAX + 5 * KEPT_EVERY):
            ledger.store({"entity_type": "thing", "id": "many", "tags": [f"tag {number}"]})
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            rules = Reader(view, AsOf(head), BUILTIN).rules("thing")
            lengths = set()
            for position in range(head - 3 * KEPT_EVERY, head + 1):
                kept = kept_of(view, ref, position)
                assert kept is not None
                assert kept.state.held["tags"].parts.rows is not None
                lengths.add(len(packed_state.pack(kept.state, rules, apart=True)))
            assert max(lengths) < 1_000

    def test_a_write_undone_leaves_no_parts(self, engine: Engine) -> None:
        """Parts that a dry run would add to a large collection are not stored."""
        ledger = _large_collections(engine)
        before, state = answers(ledger), indexes_of(engine, "t")
        report = ledger.store({"entity_type": "thing", "id": "many", "tags": ["not yet"]}, dry_run=True)
        (change,) = report.changes
        assert [(one.field, one.before, one.after, one.part) for one in change.fields] == [
            ("tags", [], ["not yet"], True)
        ]
        assert answers(ledger) == before
        assert indexes_of(engine, "t") == state
        assert ledger.verify().sound

    def test_a_wrong_part_of_a_collection_is_found(self, engine: Engine) -> None:
        """A wrong part is reported with its field and entity, and a rebuild repairs it."""
        ledger = _large_collections(engine)
        ref = Ref("thing", "many")
        ledger.store({"entity_type": "thing", "id": "many", "tags": ["the last"]})
        with engine.transaction(ledger.tenant) as write:
            position = write.head().position
            reader = Reader(write, AsOf(position), BUILTIN)
            right = reader.state(ref)
            held = right.held["tags"]
            key, other = order_bytes("the last"), held.parts[order_bytes("tag 3")]
            wrong = right._replace(held={**right.held, "tags": held.but(held.parts.put({key: other}))})
            write.keep([(Kept(position, wrong), reader.rules(ref.type), False)])
        found = ledger.verify()
        assert {(one.damage, one.entity) for one in found.damage} == {("element", str(ref))}
        assert (found.log_damaged, found.first) == (False, position)
        assert "of tags" in found.damage[0].problem
        assert ledger.rebuild().repaired == (str(ref),)
        assert ledger.verify().sound

    def test_a_wrong_fingerprint_is_found(self, engine: Engine) -> None:
        """A missing, additional or wrong leaf of the stored fingerprint is found, with its entity if there is one."""
        ledger = long_history(engine)
        ledger.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Vic"})
        ledger.fingerprint()
        ref = Ref("contact", "Ana Rivera")
        with engine.view(ledger.tenant) as view:
            position, right = fingerprint_index.position(view), dict(fingerprint_index.leaves(view))
        wrong: tuple[tuple[dict[bytes, bytes | None], str | None], ...] = (
            ({ref.digest: bytes(32)}, str(ref)),
            ({ref.digest: None}, str(ref)),
            ({bytes(32): bytes(32)}, None),
        )
        for values, entity in wrong:
            with engine.transaction(ledger.tenant) as write:
                fingerprint_index.put_leaves(write, values, position)
            assert [(one.damage, one.entity) for one in ledger.verify().damage] == [("fingerprint", entity)]
            with engine.transaction(ledger.tenant) as write:
                fingerprint_index.put_leaves(write, {digest: right.get(digest) for digest in values}, position)
            assert ledger.verify().sound
        with engine.transaction(ledger.tenant) as write:
            write.drop(fingerprint_index.NAME, b"n")
        assert [(one.damage, one.entity) for one in ledger.verify().damage] == [("fingerprint", None)]

    def test_a_wrong_search_index_is_found_in_depth(self, engine: Engine) -> None:
        """Words of an entity that it does not have are found by a deep verification."""
        ledger = long_history(engine)
        ledger.search("ana")
        with engine.transaction(ledger.tenant) as write:
            rows = write.scan("word")
            write.drop("word", rows[0][0])
        assert ledger.verify().sound
        assert "search" in {one.damage for one in ledger.verify(deep=True).damage}
        with engine.transaction(ledger.tenant) as write:
            write.put([IndexRow("word", b"nonsense", 0)])
        assert {one.damage for one in ledger.verify(deep=True).damage} == {"search", "surplus"}

    def test_a_row_that_does_not_belong_is_found(self, engine: Engine) -> None:
        """An index row without a reason in the log is found."""
        ledger = long_history(engine)
        with engine.transaction(ledger.tenant) as write:
            write.put([IndexRow("mine", b"x", 3)])
        assert [one.damage for one in ledger.verify().damage] == ["surplus"]

    def test_identifying_values_are_compared(self, engine: Engine) -> None:
        """An identifying value noted of an entity that never had it is found."""
        ledger = long_history(engine)
        with engine.transaction(ledger.tenant) as write:
            identifying_values.note(write, [(Ref("thing", "1"), [("email", "x@example.com")])])
        assert [one.damage for one in ledger.verify().damage] == ["surplus"]


def _large_collections(engine: Engine) -> Ledger:
    """Return a ledger with collections that grew large in every way: one by one, at once, joined, taken back."""
    ledger = ledger_on(engine)
    ledger.schemas.register(THING)
    many: dict[str, Any] = {"entity_type": "thing", "id": "many"}
    first = ledger.store({**many, "tags": [f"tag {number}" for number in range(INSIDE_MAX - 2)], "log": [0]})
    for number in range(6):  # across the limit, one by one
        ledger.store({**many, "tags": [number, f"tag {number}"], "log": [number, "x"]})
    ledger.store([{**many, "tags": [{"n": number}], "log": [number]} for number in range(INSIDE_MAX + 4)])
    ledger.store({**many, "tags": ["back"], "$": {"remove": {"tags": ["tag 1", 2]}, "observed_at": LATE}})
    ledger.store({**many, "tags": ["late", "tag 1"], "$": {"observed_at": EARLY}})
    ledger.correct("thing/many", {"tags": ["tag 5"]}, reason="the list was wrong")
    ledger.store({**many, "tags": ["tag 6", "more"]})
    ledger.correct("thing/many", {"log": ["instead"]}, replaces=[first.observations[0]], reason="mistyped")
    ledger.store([{"entity_type": "thing", "id": "more", "tags": [f"more {n}" for n in range(INSIDE_MAX + 9)]}])
    ledger.merge("thing/many", "thing/more")
    ledger.store([{**many, "tags": ["of the group"]}, {"entity_type": "thing", "id": "more", "tags": ["too"]}])
    taken_back = ledger.store({**many, "tags": [f"gone {number}" for number in range(9)]})
    ledger.retract(taken_back.observations[0], reason="never was")
    ledger.split("thing/many")
    ledger.store({"entity_type": "thing", "id": "more", "tags": ["apart"]})
    ledger.delete("thing/more")
    ledger.restore("thing/more")
    ledger.schemas.register({**THING, "properties": {**THING["properties"], "tags": {"type": "array"}}})
    ledger.store({**many, "tags": ["a plain list"], "log": ["as before"]})
    ledger.schemas.register({**THING, "description": "as it was"})
    ledger.store({**many, "tags": ["a union again"], "log": ["still"]})
    return ledger
