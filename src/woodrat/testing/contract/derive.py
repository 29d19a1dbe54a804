"""Deriving: the fingerprint, the search index, ordered indexes, and everything derived made again."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woodrat import Past
from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, TenantId
from woodrat.context import Context
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL, KEPT_EVERY, IndexRow, Kept
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.view import View
from woodrat.ledger import entry_index, state_steps
from woodrat.ledger.derived_part import DerivedPart
from woodrat.ledger.read import Reader
from woodrat.ledger.spacing import ENTRY_BYTES
from woodrat.ledger.state_index import progress_of
from woodrat.ledger.write import Writer
from woodrat.log.entry import NONCE_BYTES, Origin, Write
from woodrat.merge import BUILTIN, fold, packed_state
from woodrat.merge.fold import MergeState
from woodrat.records import replace
from woodrat.state import relation
from woodrat.state.asof import AsOf
from woodrat.state.meaning import step_of
from woodrat.state.observation import ASSERT, RETRACT, Observation, say
from woodrat.state.relation import SAME_AS
from woodrat.testing.clock import FixedClock
from woodrat.testing.contract.fixtures import (
    LONG,
    Contract,
    derived_is_true,
    everything,
    long_history,
    next_write_works,
)
from woodrat.testing.crash import Crash
from woodrat.testing.histories import batches, tellings
from woodrat.testing.ledgers import (
    EARLY,
    answers,
    bodies,
    fold_at,
    kept_of,
    ledger_on,
    log_of,
    same_state,
    shared_values,
    spelled,
    tell,
    told_on,
)

FIELDS = 40
"""Number of fields of a wide entity."""


def _narrow_changes(ref: Ref, fields: int, count: int) -> Iterator[Observation]:
    """Yield observations of an entity with many fields, each of one of them."""
    for number in range(count):
        at = f"2026-01-01T00:00:{number // 1000:02d}.{number % 1000:03d}000Z"
        fields_said = {f"field {number * 7 % fields}": f"value {number}"}
        yield say(ref, ASSERT, agent="a", observed_at=at, fields=fields_said)


def _any_changes(refs: Sequence[Ref], seed: int, *, joins: bool) -> Iterator[Observation]:
    """Yield observations of some entities, with retractions; with `joins` the first two are joined now and then."""
    draw = random.Random(seed)
    said: dict[Ref, list[Observation]] = {ref: [] for ref in refs}
    for number in range(160):
        at = f"2026-01-01T00:00:{draw.randrange(60):02d}.{number:06d}Z"
        ref = draw.choice(refs)
        if said[ref] and draw.random() < 0.06:
            yield say(ref, RETRACT, agent="a", observed_at=at, replaces=[draw.choice(said[ref]).digest])
            continue
        if joins and draw.random() < 0.03:
            ends = {"from": str(refs[0]), "to": str(refs[1])}
            yield say(relation.relation(refs[0], SAME_AS, refs[1]), ASSERT, agent="a", observed_at=at, fields=ends)
        fields: dict[str, Json] = {f"field {draw.randrange(FIELDS)}": "x" * draw.randrange(150)}
        said[ref].append(say(ref, ASSERT, agent=draw.choice("ab"), observed_at=at, fields=fields))
        yield said[ref][-1]


def _kept_along(engine: Engine, tenant: TenantId, root: Ref) -> dict[int, MergeState]:
    """Return the stored states along the history of an entity, by position, without the current one."""
    with engine.view(tenant) as view:
        last = view.version(root.digest, view.head().position)
        known = [kept_of(view, root, at) for at in range(last or 0)]
        return {kept.position: fold.in_memory(kept.state) for kept in known if kept is not None}


class DerivingContract(Contract):
    """Derived data, required of every engine."""

    # The fingerprint

    def test_the_fingerprint_of_the_story_is_kept_up_to_date(self, engine: Engine) -> None:
        """After every write the updated fingerprint equals a fingerprint computed from everything."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        for _ in tell(a, b):
            assert a.fingerprint() == a.at("now").fingerprint()
            assert b.fingerprint() == a.fingerprint()

    def test_the_fingerprint_of_any_history_is_kept_up_to_date(self, engine: Engine) -> None:
        """After any statement, join, split, deletion or new schema, the stored fingerprint equals a fresh one."""
        tenants = itertools.count()

        @given(st.data())
        def law(data: st.DataObject) -> None:
            writes = data.draw(batches(data.draw(tellings())))
            ledger = ledger_on(engine, tenant=f"t{next(tenants)}")
            for batch in writes:
                ledger.admit(bodies(batch.said))
                if data.draw(st.integers(0, 3)):  # common case; otherwise it catches up over several writes
                    assert ledger.fingerprint() == ledger.at("now").fingerprint()
            assert ledger.fingerprint() == ledger.at("now").fingerprint()

        law()

    # Equal bytes

    def test_equal_arguments_give_equal_bytes(self) -> None:
        """Two new engines with the same clock, nonces and writes hold the same bytes and give the same answers."""
        one, two = self.make_engine(), self.make_engine()
        first, second = told_on(one), told_on(two)
        assert spelled(log_of(one)) == spelled(log_of(two))
        assert spelled(answers(first)) == spelled(answers(second))
        with one.view(first.tenant) as left, two.view(second.tenant) as right:
            for entry, other in zip(left.entries(), right.entries(), strict=True):
                assert (entry.body, entry.nonce, entry.leaf_data()) == (other.body, other.nonce, other.leaf_data())
        one.close()
        two.close()

    def test_a_log_admitted_elsewhere_has_the_same_state(self, engine: Engine) -> None:
        """Another tenant that admits a log's observations and schemas, in any order, ends in the same state."""
        ledger = told_on(engine)
        with engine.view(ledger.tenant) as view:
            said = [(e.kind, e.body or b"") for e in view.entries(kinds={"observation", "schema"})]
        for seed in range(3):
            random.Random(seed).shuffle(said)
            other = ledger_on(engine, tenant=f"copy-{seed}")
            for start in range(0, len(said), 7):
                other.admit(said[start : start + 7])
            for proof in (False, True):
                assert other.fingerprint(provenance=proof) == ledger.fingerprint(provenance=proof)
            assert spelled({r: v.to_json() for r, v in other.values().items()}) == spelled(
                {r: v.to_json() for r, v in ledger.values().items()}
            )

    # The search index, and everything derived made again

    def test_the_index_of_any_history_answers_what_folding_answers(self, engine: Engine) -> None:
        """After any statement, join, split, deletion or new schema, a search equals one over a fold of everything."""
        tenants = itertools.count()

        @settings(max_examples=min(settings().max_examples, 300))  # each searches, rebuilds and searches again
        @given(st.data())
        def law(data: st.DataObject) -> None:
            writes = data.draw(batches(data.draw(tellings())))
            ledger = ledger_on(engine, tenant=f"t{next(tenants)}")

            def check(past: Past) -> None:
                for query, kind in (("a", None), ("x", None), ("thing", "same_as"), ("b", "other")):
                    folded = past.at(valid_at="9999-12-31T23:59:59.999999Z")
                    assert past.search(query, entity_type=kind) == folded.search(query, entity_type=kind)

            for batch in writes:
                ledger.admit(bodies(batch.said))
                if data.draw(st.integers(0, 2)):  # mostly; otherwise it catches up over several writes
                    check(ledger)
            check(ledger)
            check(ledger.at(data.draw(st.integers(BEFORE_ALL, ledger.position))))
            state = ledger.fingerprint()
            rebuilt = ledger.rebuild()
            assert rebuilt.agreed and rebuilt.fingerprint == state == ledger.at("now").fingerprint()
            check(ledger)

        law()

    def test_entries_of_a_run_are_found_by_its_id(self, engine: Engine) -> None:
        """The entries of a run are stored under its id, up to a position; also after a rebuild."""

        def write(run: str, kind: str, **more: Json) -> int:
            body = form.serialise({"run": run, "span": "0" * 16, "started_at": EARLY, "step": 0, **more})
            writer = Writer(Context(engine, TenantId("t"), BUILTIN, clock, "a"))
            return writer.write("run", {}, lambda draft: draft.add(kind, body, step_of(kind, body))).position

        clock = FixedClock()
        first = write("run_a", "run.started", subject="loan/42")
        other = write("run_b", "run.started")
        last = write("run_a", "run.ended", status="done")
        for _ in range(2):
            with engine.view(TenantId("t")) as view:
                assert [entry.position for entry in entry_index.run_entries(view, "run_a", last)] == [first, last]
                assert [entry.position for entry in entry_index.run_entries(view, "run_a", last - 1)] == [first]
                assert [entry.position for entry in entry_index.run_entries(view, "run_a", last, first)] == [last]
                assert [entry.position for entry in entry_index.run_entries(view, "run_b", last)] == [other]
                assert not entry_index.run_entries(view, "run_c", last)
            with engine.view(TenantId("u")) as view:
                assert not entry_index.run_entries(view, "run_a", last)
            ledger_on(engine).rebuild()

    def test_an_ordered_index_is_read_as_it_was(self, engine: Engine) -> None:
        """A scan gives the rows that were true at a position, by key, in pages, either way, as plain lists would."""
        tenants = itertools.count()

        @settings(max_examples=30, deadline=None)
        @given(st.data())
        def holds(data: st.DataObject) -> None:
            keys = st.sampled_from([b"a", b"a\0b", b"ab", b"a\xff\xff", b"b", b"\0", b"ba", b"a\xffb"])
            told: list[IndexRow] = []
            tenant = ledger_on(engine, tenant=f"t{next(tenants)}").tenant
            ledger_on(engine, tenant=tenant).store({"entity_type": "thing", "id": "1"})
            for position in range(data.draw(st.integers(1, 6))):
                ended = data.draw(st.sets(keys, max_size=4))
                added = data.draw(st.dictionaries(keys, st.sampled_from([b"", b"x"]), max_size=5))
                with engine.transaction(tenant) as write:
                    write.end(position, [("i", key) for key in ended])
                    write.put(IndexRow("i", key, position, value) for key, value in added.items())
                told = [
                    row._replace(until=position) if row.until is None and row.key in ended else row
                    for row in told
                    if not (row.until is None and row.key in ended and row.since == position)
                ]
                now = {row.key for row in told if row.until is None}
                told += [IndexRow("i", key, position, value) for key, value in added.items() if key not in now]
            with engine.view(tenant) as view:
                assert list(view.lives("i")) == sorted(told, key=lambda row: (row.key, row.since))
                for through in (None, *range(6)):
                    at = 9 if through is None else through
                    true = sorted(
                        (row.key, row.value)
                        for row in told
                        if row.since <= at and (row.until is None or row.until > at)
                    )
                    prefix, after = data.draw(st.just(b"") | keys), data.draw(st.none() | keys)
                    reverse, limit = data.draw(st.booleans()), data.draw(st.none() | st.integers(0, 3))
                    wanted = [row for row in true if row[0].startswith(prefix)]
                    if after is not None:
                        wanted = [row for row in wanted if (row[0] < after if reverse else row[0] > after)]
                    wanted = (wanted[::-1] if reverse else wanted)[: len(wanted) if limit is None else limit]
                    found = view.scan("i", prefix, through=through, after=after, reverse=reverse, limit=limit)
                    assert list(found) == wanted
            with engine.view(TenantId("other")) as view:
                assert not view.scan("i") and not view.lives("i")

        holds()

    def test_rows_of_an_index_are_undone_and_forgotten(self, engine: Engine) -> None:
        """A failed write leaves no added, ended, dropped or noted row; dropped derived data leaves no trace either."""
        told_on(engine)
        with engine.transaction(TenantId("t")) as write:
            write.put([IndexRow("i", b"a", 0), IndexRow("i", b"b", 0, b"x"), IndexRow("j", b"a", 0)])
            write.put([IndexRow("i", b"c", 0, b"old", 1)])
            write.set_meta("m", b"1")
        with suppress(Crash), engine.transaction(TenantId("t")) as write:
            write.end(1, [("i", b"a"), ("i", b"none"), ("i", b"a")])
            write.put([IndexRow("i", b"a", 1, b"again")])
            write.drop("i", b"b")
            write.set_meta("m", None)
            write.set_meta("n", b"2")
            assert list(write.scan("i")) == [(b"a", b"again")] and write.meta("m") is None
            raise Crash
        with engine.view(TenantId("t")) as view:
            assert list(view.scan("i")) == [(b"a", b""), (b"b", b"x")] and list(view.scan("j")) == [(b"a", b"")]
            assert list(view.scan("i", through=0)) == [(b"a", b""), (b"b", b"x"), (b"c", b"old")]
            assert (view.meta("m"), view.meta("n")) == (b"1", None)
        with engine.transaction(TenantId("t")) as write:
            write.end(1, [("i", b"a")])
            write.drop("i", b"a")
            write.drop("i", b"c")
            assert not list(write.scan("i", b"a", through=0)) and [row.key for row in write.lives("i")] == [b"b"]
            write.drop_derived()
            assert not write.lives("i") and not write.lives("j") and write.meta("m") is None

    def test_a_kind_is_followed_without_a_gap(self, engine: Engine) -> None:
        """A reader that asks after every write for new entries of a kind gets each once, none of an undone write."""
        ledger = told_on(engine)
        log, tenant, through = str(log_of(engine)["log"]), ledger.tenant, BEFORE_ALL
        with engine.view(tenant) as view:
            size = view.head().size

        def follow(view: View) -> list[int]:
            return [entry.position for entry in view.entries(through, view.head().position, {"tag"})]

        def write(*kinds: str, undone: bool) -> list[int]:
            at = f"2027-01-01T00:00:{size:02d}.000000Z"
            nonces = [bytes(NONCE_BYTES)] * len(kinds)
            with engine.transaction(tenant) as transaction:
                follow(transaction)
                items = [(kind, b"{}") for kind in kinds]
                transaction.append([Write(log, size, at, items, nonces, "", bytes(32), bytes(16))], [None] * len(kinds))
                found = follow(transaction)
                if undone:
                    raise Crash
            return found

        with engine.transaction(tenant) as transaction:
            assert follow(transaction)  # the story has its own tags
            through = transaction.head().position
        for kinds, news in (
            (("schema",), []),
            (("tag", "schema", "tag"), [0, 2]),
            (("run.noted",), []),
            (("tag",), [0]),
        ):
            with suppress(Crash):
                write(*kinds, undone=True)
            with engine.view(tenant) as view:
                assert follow(view) == []
            wanted = [size + offset for offset in news]
            assert write(*kinds, undone=False) == wanted
            with engine.view(tenant) as view:
                assert follow(view) == wanted
            size += len(kinds)
            through = size - 1

    def test_where_entries_came_from_is_kept(self, engine: Engine) -> None:
        """An origin is stored with its entry, and the nearest one of another log is found, here and not elsewhere."""
        ledger = told_on(engine)
        log = str(log_of(engine)["log"])
        with engine.view(ledger.tenant) as view:
            first = view.head().size
            assert view.merged("log_far", 9) is None and view.cloned() == BEFORE_ALL
        origins = [Origin("log_far", 3), None, Origin("log_far", 7), Origin("log_farther", 5)]
        nonces = [bytes([number]) * NONCE_BYTES for number in range(4)]
        items = [("tag", b"{}")] * 4
        write = Write(log, first, "2027-01-01T00:00:00.000000Z", items, nonces, "", bytes(32), bytes(16), origins)

        def undone() -> None:
            with engine.transaction(ledger.tenant) as transaction:
                transaction.append([write], [None] * 4)
                assert transaction.merged("log_far", 7) == (7, first + 2)
                raise Crash

        with pytest.raises(Crash):
            undone()
        with engine.view(ledger.tenant) as view:
            assert view.merged("log_far", 7) is None
        with engine.transaction(ledger.tenant) as transaction:
            transaction.append([write], [None] * 4)
        with engine.view(ledger.tenant) as view:
            assert [entry.envelope.origin for entry in view.entries(first - 1)] == origins
            assert list(view.entries(first - 1)) == list(write) and list(view.leaves(first + 4))[first:] == write.leaves
            assert [view.merged("log_far", at) for at in (2, 3, 6, 7, 8)] == [
                None,
                (3, first),
                (3, first),
                (7, first + 2),
                None,
            ]
            assert view.merged("log_farther", 5) == (5, first + 3)
        with engine.view(TenantId("u")) as view:
            assert view.merged("log_far", 3) is None

    def test_a_log_taken_over_is_kept_as_it_was(self, engine: Engine) -> None:
        """Writes of another ledger, erased entries included, are stored unchanged, with the note of the imported
        position.
        """
        story = told_on(InMemoryEngine())
        with story.context.engine.view(story.tenant) as view:
            told = list(view.entries())
        gone = [replace(entry, nonce=None, body=None) if entry.position == 3 else entry for entry in told]
        with engine.transaction(TenantId("t")) as transaction:
            opening = [entry for entry in gone if entry.envelope.length is not None]
            writes = [gone[entry.position : entry.position + (entry.envelope.length or 0)] for entry in opening]
            transaction.append([Write.of(whole) for whole in writes[:2]], [None] * sum(map(len, writes[:2])))
            for whole in writes[2:]:
                transaction.append([Write.of(whole)], [None] * len(whole))
            transaction.note_clone()
        with engine.view(TenantId("t")) as view:
            assert list(view.entries()) == gone and view.cloned() == len(gone) - 1
            assert view.leaves(len(gone)) == [entry.leaf() for entry in told]
        with engine.view(TenantId("u")) as view:
            assert view.cloned() == BEFORE_ALL
        ledger = ledger_on(engine, clock=FixedClock(seed="own"))
        ledger.rebuild()
        ledger.store({"entity_type": "thing", "id": "own"})
        with engine.view(TenantId("t")) as view:
            assert view.cloned() == len(gone) - 1 and view.head().log != told[0].log
        assert engine.tenants() == ["t"]

    def test_what_is_derived_can_be_dropped(self, engine: Engine) -> None:
        """Only the log and its receipts remain; an earlier view, and an undone write, show the old rows."""
        ledger = told_on(engine)
        ledger.search("ana")
        before = everything(engine)
        with suppress(Crash), engine.transaction(ledger.tenant) as write, engine.view(ledger.tenant) as old:
            head = write.head().position
            refs = list(old.entities(None, head))
            write.drop_derived()
            assert list(write.entities(None, head)) == [] and list(old.entities(None, head)) == refs
            assert not write.scan("word") and not write.scan("fingerprint") and write.meta("search") is None
            assert shared_values(write) == []
            for ref in refs:
                assert write.observations(ref.digest, BEFORE_ALL, head) == []
                assert kept_of(write, ref, head) is None
                assert old.observations(ref.digest, BEFORE_ALL, head) != []
            assert [entry.to_json() for entry in write.entries()] == before[0]["entries"]
            raise Crash
        assert everything(engine) == before

    def test_a_part_can_be_forgotten_and_derived_again(self, engine: Engine) -> None:
        """Dropped derived data of some entries is gone, the rest stays; derived again, or undone, all is as before."""
        ledger = told_on(engine)
        before, gone = everything(engine), [Ref("thing", "1"), Ref("thing", "2"), Ref("thing", "\u00e9")]
        with suppress(Crash), engine.transaction(ledger.tenant) as write:
            head = write.head().position
            others = set(write.entities(None, head))
            part = DerivedPart(write, BUILTIN, [write.observations(gone[0].digest, -1, head)[0].position])
            assert set(gone) < set(part.entities), "with all that was ever joined with it"
            entry_index.forget(write, part.rows, part.meanings)
            write.forget(part.entities, part.rows, part.meanings)
            for ref in gone:
                assert not write.observations(ref.digest, -1, head) and write.entity(ref.digest, head) is None
                assert not entry_index.relations(write, ref.digest, None, head) and kept_of(write, ref, head) is None
            for row, meaning in zip(part.rows, part.meanings, strict=True):
                assert isinstance(meaning, Observation) and write.observation(meaning.digest, head) is None
                named = [one.position for name in meaning.replaces for one in write.namers(name, head)]
                assert row.position not in named
            assert set(write.entities(None, head)) == others - set(part.entities)
            raise Crash
        assert everything(engine) == before
        with engine.transaction(ledger.tenant) as write:
            part = DerivedPart(write, BUILTIN, [write.observations(gone[0].digest, -1, head)[0].position])
            part.note()
            part.derive_again(())
        after = everything(engine)
        assert after[0] == before[0] and after[1] == before[1] and after[2][1:] == before[2][1:]
        assert ledger.verify(deep=True).sound
        derived_is_true(engine)

    def test_a_rebuild_makes_everything_again(self, engine: Engine) -> None:
        """After a rebuild every answer, at every moment, is as before, and so are the log and the next write."""
        ledger = told_on(engine)
        ledger.search("ana")
        moments = range(BEFORE_ALL, ledger.position + 1, 7)
        before = [spelled(answers(ledger.at(moment))) for moment in moments]
        whole, state = log_of(engine), ledger.fingerprint()
        known = everything(engine)
        rebuilt = ledger.rebuild()
        assert rebuilt.agreed and rebuilt.fingerprint == state
        assert [spelled(answers(ledger.at(moment))) for moment in moments] == before
        assert log_of(engine) == whole
        assert everything(engine)[1] == known[1] and everything(engine)[2][1:] == known[2][1:]
        derived_is_true(engine)
        next_write_works(engine, "after")
        assert ledger.rebuild().agreed

    def test_lists_by_rows_are_those_of_folding(self, engine: Engine) -> None:
        """Rows of states that trail the log, wholly or in part, give the lists that folding gives, at every moment."""
        ledger = told_on(engine)
        questions: list[dict[str, Any]] = [
            {"where": {"city": "Girona"}},
            {"where": {"city": {"prefix": "B"}}, "sort": "name", "descending": True},
            {"sort": "city", "limit": 2},
        ]

        def lists(past: Past) -> list[object]:
            found: list[object] = [[item.entity for item in past.query(**asked)] for asked in questions]
            return [*found, [*past.conflicts()], [*past.duplicates()]]

        moments = range(BEFORE_ALL, ledger.position + 1, 5)
        folded = [lists(ledger.at(moment)) for moment in moments]
        while state_steps.go_on(engine, ledger.tenant, ledger.context.policies):
            with engine.view(ledger.tenant) as view:
                filling = progress_of(view).filling
            if filling:
                assert [lists(ledger.at(moment)) for moment in (moments[3], moments[-1])] == [folded[3], folded[-1]]
        assert [lists(ledger.at(moment)) for moment in moments] == folded
        assert not ledger.verify().damage
        derived_is_true(engine)

    def test_a_long_history_is_rebuilt_with_the_state_along_it(self, engine: Engine) -> None:
        """A rebuild stores state along the history at the same places, equal to a fold."""
        ledger = long_history(engine)
        root = Ref("thing", "1")
        before = _kept_along(engine, ledger.tenant, root)
        assert ledger.rebuild().agreed
        found = _kept_along(engine, ledger.tenant, root)
        assert found.keys() == before.keys()
        assert len(found) >= LONG // (2 * KEPT_EVERY)
        with engine.view(ledger.tenant) as view:
            for position, state in found.items():
                rules = Reader(view, AsOf(position), BUILTIN).rules(root.type)
                assert same_state(state, fold_at(view, state.members, rules, position), rules)
        derived_is_true(engine)

    def test_the_same_states_are_kept_however_what_was_said_is_grouped(self, engine: Engine) -> None:
        """Writing one by one, in parts or all at once stores the same states along the history; so does a rebuild."""
        wide = Ref("wide", "1")
        said = list(_narrow_changes(wide, FIELDS, 3 * FIELDS))
        found = []
        for number, size in enumerate((1, 7, len(said))):
            ledger = ledger_on(engine, tenant=f"grouped-{number}")
            for start in range(0, len(said), size):
                ledger.admit(bodies(said[start : start + size]))
            found.append(_kept_along(engine, ledger.tenant, wide))
            assert ledger.rebuild().agreed
            assert _kept_along(engine, ledger.tenant, wide) == found[-1]
            assert ledger.verify().sound
        assert found[0] == found[1] == found[2]

    @pytest.mark.parametrize("seed", range(3))
    @pytest.mark.parametrize("joins", [False, True])
    def test_grouping_does_not_show_in_what_is_kept_of_a_lone_entity(
        self, engine: Engine, seed: int, joins: bool
    ) -> None:
        """With retractions anywhere, and joins of other entities, the stored states of a lone entity are the same.

        The states of a group are the same whether written one by one or derived again.
        """
        refs = [Ref("wide", str(number)) for number in range(4)]
        said = list(_any_changes(refs, seed, joins=joins))
        found = []
        for number, size in enumerate((1, 9, len(said))):
            ledger = ledger_on(engine, tenant=f"lone-{number}")
            for start in range(0, len(said), size):
                ledger.admit(bodies(said[start : start + size]))
            along = [_kept_along(engine, ledger.tenant, ref) for ref in refs]
            assert ledger.verify().sound
            assert ledger.rebuild().agreed
            again = [_kept_along(engine, ledger.tenant, ref) for ref in refs]
            lone = refs[2:] if joins and size > 1 else refs
            assert [again[refs.index(ref)] for ref in lone] == [along[refs.index(ref)] for ref in lone]
            found.append(again)
        assert all(len(states) > 2 for states in found[0][2:])
        assert found[0] == found[1] == found[2]

    def test_kept_states_take_about_as_much_room_as_what_was_said(self, engine: Engine) -> None:
        """However many fields an entity has, its states along the history are not larger than its log."""
        ledger = ledger_on(engine)
        wide = Ref("wide", "1")
        said = list(_narrow_changes(wide, 2 * FIELDS, 4 * FIELDS))
        ledger.admit(bodies(said))
        kept = _kept_along(engine, ledger.tenant, wide)
        with engine.view(ledger.tenant) as view:
            rules = Reader(view, AsOf(view.head().position), BUILTIN).rules(wide.type)
        size = sum(len(packed_state.pack(state, rules)) for state in kept.values())
        assert size <= 1.25 * sum(len(one.body) + ENTRY_BYTES for one in said)
        assert len(kept) < len(said) // (2 * KEPT_EVERY)

    @pytest.mark.parametrize("lasting", [False, True])
    def test_a_rebuild_finds_and_repairs_wrong_state(self, engine: Engine, lasting: bool) -> None:
        """State that disagrees with the log is named, made right, and the log is not touched."""
        ledger = long_history(engine)
        told_on(engine, clock=FixedClock("2027-01-01T00:00:00.000000Z", seed="story"))
        whole, state = log_of(engine), ledger.fingerprint()
        ref = Ref("contact", "Ana Rivera")
        with engine.transaction(ledger.tenant) as write:
            position = write.head().position
            reader = Reader(write, AsOf(position), BUILTIN)
            root = reader.group(ref)[0]
            right = reader.state(ref)
            write.keep([(Kept(position, right._replace(live=right.live + 1)), reader.rules(ref.type), lasting)])
        if lasting:  # the current state is right again, the stored past states are not
            ledger.store({"entity_type": "contact", "name": root.key, "city": "Lleida"})
            whole, state = log_of(engine), ledger.fingerprint()
        rebuilt = ledger.rebuild()
        assert rebuilt.repaired == (str(root),)
        assert log_of(engine) == whole
        assert rebuilt.fingerprint == ledger.fingerprint() == ledger.at("now").fingerprint() == state
        derived_is_true(engine)
        assert ledger.rebuild().agreed
