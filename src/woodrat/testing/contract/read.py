"""Reading: the past, and the verbs of views and transactions."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from functools import partial

import pytest

from woodrat import NotFound
from woodrat.canon import ids, moment
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL, KEPT_EVERY, Kept, Receipt
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import entry_index, identifying_values, refold
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.ledger.spacing import ENTRY_BYTES
from woodrat.merge import BUILTIN, fold, packed_state
from woodrat.merge.rules import Rules
from woodrat.state import observation as observations
from woodrat.state import relation, schema
from woodrat.state.asof import AsOf, Stored
from woodrat.state.observation import ASSERT, CORRECT, DELETE, RESTORE, RETRACT, say
from woodrat.state.relation import SAME_AS
from woodrat.state.source import source_digest
from woodrat.testing.clock import FixedClock, JumpingClock
from woodrat.testing.contract.fixtures import LONG, Contract, everything, long_history
from woodrat.testing.crash import Crash
from woodrat.testing.generators import MOMENTS
from woodrat.testing.ledgers import (
    ANA,
    EARLY,
    LATE,
    LATEST,
    THING,
    answers,
    bodies,
    fold_at,
    kept_of,
    ledger_on,
    same_state,
    shared_values,
    spelled,
    tell,
    told_on,
)


class ReadingContract(Contract):
    """Reads, as every engine must do it."""

    # The past

    def test_the_past_stays_as_it_was(self, engine: Engine) -> None:
        """Reads as of every position, and by its time, give the answers from when the log ended there."""
        clock = FixedClock(step_micros=2)
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        recorded: list[tuple[int, str, bytes]] = []
        for _ in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head()
            assert head.recorded_at is not None
            recorded.append((head.position, head.recorded_at, spelled(answers(a))))
        last = BEFORE_ALL
        for position, time, answered in recorded:
            assert spelled(answers(a.at(position))) == answered
            assert a.at(time).position == position
            assert spelled(answers(b.at(time))) == answered
            micro_before = moment.from_micros(moment.to_micros(time) - 1)
            assert a.at(micro_before).position == last, "a write counts from its own time on"
            last = position
        assert spelled(answers(a.at("@before"))) == next(
            answered for position, _, answered in recorded if position == a.at("@before").position
        )
        assert answers(a.at(BEFORE_ALL))["observations"] == []
        with pytest.raises(NotFound):
            a.at(last + 1)

    def test_a_moment_within_a_write_is_what_a_log_that_long_would_say(self, engine: Engine) -> None:
        """As of a position in the middle of a write, state is a fold of the entries up to there."""
        ledger = told_on(engine)
        with engine.view(ledger.tenant) as view:
            entries = list(view.entries(kinds={"observation", "schema"}))
        for end, entry in enumerate(entries):
            other = ledger_on(engine, tenant=f"u{end}")
            other.admit((one.kind, one.body or b"") for one in entries[: end + 1])
            for proof in (False, True):
                assert ledger.at(entry.position).fingerprint(provenance=proof) == other.fingerprint(provenance=proof)

    def test_state_kept_along_a_long_history_is_what_folding_gives(self, engine: Engine) -> None:
        """At every position of a long history the state read from stored state equals a fold of everything."""
        ledger = long_history(engine)
        ref = Ref("thing", "1")
        policies = registry(())
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            stored = view.observations(ref.digest, BEFORE_ALL, head)
            assert len(stored) >= LONG
            assert {s.observation.op for s in stored} == {ASSERT, CORRECT, RETRACT, DELETE, RESTORE}
            positions = set()
            for position in range(head + 1):
                reader = Reader(view, AsOf(position), policies)
                rules = reader.rules(ref.type)
                assert same_state(reader.state(ref), fold_at(view, [ref], rules, position), rules), position
                kept = kept_of(view, ref, position)
                if kept is None:
                    assert len(view.observations(ref.digest, BEFORE_ALL, position)) < KEPT_EVERY
                    continue
                positions.add(kept.position)
                assert kept.position <= position
                then = Reader(view, AsOf(kept.position), policies).rules(ref.type)
                since = view.observations(ref.digest, kept.position, position)[:-KEPT_EVERY]
                size = sum(len(stored.observation.body) + ENTRY_BYTES for stored in since)
                assert size < len(packed_state.pack(kept.state, then, apart=True)), "reads are bounded"
                assert same_state(kept.state, fold_at(view, [ref], then, kept.position), then)
            assert len(positions) > LONG // (2 * KEPT_EVERY)

    def test_a_group_is_followed_one_by_one(self, engine: Engine) -> None:
        """State of a group is stored along a batch too, whichever members it concerns, and any moment in it reads the
        same.
        """
        ledger = ledger_on(engine)
        ledger.schemas.register(THING)
        refs = [Ref("thing", key) for key in "ab"]
        ledger.store([{"entity_type": "thing", "id": ref.key, "tags": [ref.key]} for ref in refs])
        ledger.merge("thing/a", "thing/b")
        said = [{"entity_type": "thing", "id": "ab"[n % 3 > 0], "city": f"C{n}", "tags": [n]} for n in range(30)]
        report = ledger.store([*said, {"entity_type": "thing", "id": "apart", "city": "D"}])
        assert [change.entity for change in report.changes] == ["thing/a", "thing/b", "thing/apart"]
        with engine.view(ledger.tenant) as view:
            members = Reader(view, AsOf(report.position), BUILTIN).group(refs[0])
            assert set(members) == set(refs)
            for position in report.positions:
                reader = Reader(view, AsOf(position), BUILTIN)
                rules = reader.rules("thing")
                folded = fold_at(view, members, rules, position)
                assert all(same_state(reader.state(ref), folded, rules) for ref in refs), position
                kept = kept_of(view, members[0], position)
                assert position - (report.positions[0] if kept is None else kept.position) <= 2 * KEPT_EVERY
                for ref in refs:
                    there = [s.position for s in view.observations(ref.digest, BEFORE_ALL, position)]
                    assert view.version(ref.digest, position) == max(there)
        assert ledger.verify().sound
        assert ledger.rebuild().agreed
        assert ledger.verify().sound

    def test_a_group_joined_before_anything_was_said_of_it_takes_the_schema_of_its_first_write(
        self, engine: Engine
    ) -> None:
        """One write may bring a schema and the first word about entities that were joined before."""
        ledger = ledger_on(engine)
        ends = {"from": "thing/a", "to": "thing/b"}
        edge = say(Ref(SAME_AS, '["thing/a","thing/b"]'), ASSERT, agent="a", observed_at=MOMENTS[0], fields=ends)
        word = say(Ref("thing", "a"), ASSERT, agent="a", observed_at=MOMENTS[0], fields={"tags": ["x"]})
        ledger.admit(bodies([edge]))
        elsewhere = ledger_on(InMemoryEngine())
        elsewhere.schemas.register(THING)
        ledger.admit(bodies([elsewhere.schemas.show("thing"), word]))
        assert ledger.show("thing/b").fields == {"tags": ["x"]}
        assert ledger.show("thing/b").blame["tags"].policy == "union"
        assert ledger.verify().sound

    def test_what_is_kept_is_current_after_every_write(self, engine: Engine) -> None:
        """A write keeps the merge state of all it touched in its own transaction."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        for report in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head().position
                reader = Reader(view, AsOf(head), registry(()))
                for text in report.entities if report else ():
                    ref = ids.parse_ref(text)
                    members = reader.group(ref)
                    kept = kept_of(view, members[0], head)
                    assert kept is not None and kept.position == head
                    rules = reader.rules(ref.type)
                    assert same_state(kept.state, fold_at(view, members, rules, head), rules)

    # The verbs of a view

    def test_every_verb_is_bounded_by_through(self, engine: Engine) -> None:
        """A view of a position answers from the entries up to it, in the order that the interface defines."""
        told_on(engine)
        with engine.view(TenantId("t")) as view:
            head = view.head().position
            entries = list(view.entries())
            stored = [
                Stored(e.position, observations.stored(e.body or b"")) for e in entries if e.kind == "observation"
            ]
            schemas = [(e.position, schema.stored(e.body or b"")) for e in entries if e.kind == "schema"]
            unknown = Ref("note", "nobody")
            for through in range(BEFORE_ALL, head + 2):
                here = [s for s in stored if s.position <= through]
                refs = list(dict.fromkeys(s.observation.entity for s in here))
                named = {name for s in stored for name in s.observation.replaces}
                for s in stored:
                    digest = s.observation.digest
                    assert view.observation(digest, through) == (s if s.position <= through else None)
                    assert list(view.namers(digest, through)) == [n for n in here if digest in n.observation.replaces]
                    named.discard(digest)
                for digest in named:  # named, but never written
                    assert view.observation(digest, through) is None
                assert list(view.entities(None, through)) == sorted(refs, key=_by_bytes)
                for type in ("contact", "thing", "same_as", "nothing"):
                    some = [ref for ref in refs if ref.type == type]
                    assert list(view.entities(type, through)) == sorted(some, key=_by_bytes)
                for wanted in (None, "thing"):
                    in_order = sorted((ref for ref in refs if wanted in (None, ref.type)), key=_by_bytes)
                    for place in [*refs, unknown]:
                        later = [ref for ref in in_order if _by_bytes(ref) > _by_bytes(place)]
                        earlier = [ref for ref in reversed(in_order) if _by_bytes(ref) < _by_bytes(place)]
                        for limit in (None, 1, 3):
                            assert list(view.entities(wanted, through, after=place, limit=limit)) == later[:limit]
                            back = view.entities(wanted, through, after=place, limit=limit, reverse=True)
                            assert list(back) == earlier[:limit]
                    assert list(view.entities(wanted, through, reverse=True)) == in_order[::-1]
                for ref in [*dict.fromkeys(s.observation.entity for s in stored), unknown]:
                    mine = [s for s in here if s.observation.entity == ref]
                    assert list(view.observations(ref.digest, BEFORE_ALL, through)) == mine
                    assert view.version(ref.digest, through) == (mine[-1].position if mine else None)
                    assert view.entity(ref.digest, through) == (ref if mine else None)
                    edges = [edge for edge in refs if ref in (relation.endpoints(edge) or ())]
                    assert list(entry_index.relations(view, ref.digest, None, through)) == edges
                    for type in ("same_as", "works_at", "nothing"):
                        some = [edge for edge in edges if edge.type == type]
                        assert list(entry_index.relations(view, ref.digest, type, through)) == some
                for after in (BEFORE_ALL, 5, through - 2, through, head):
                    between = [s for s in here if s.position > after]
                    assert set(view.touched(after, through)) == {s.observation.entity for s in between}
                    for ref in (Ref("thing", "1"), ids.parse_ref(ANA)):
                        mine = [s for s in between if s.observation.entity == ref]
                        assert list(view.observations(ref.digest, after, through)) == mine
                known = [found for position, found in schemas if position <= through]
                assert list(entry_index.schema_types(view, through)) == sorted({found.type for found in known})
                for type in ("thing", "contact", "nothing"):
                    assert list(entry_index.schemas(view, type, through)) == [
                        found for found in known if found.type == type
                    ]

    def test_what_is_asked_for_many_is_what_is_asked_for_one(self, engine: Engine) -> None:
        """Batched lookups of standings, digests and numbers of stored states equal single lookups, in the order of the
        call.
        """
        told_on(engine)
        with engine.view(TenantId("t")) as view:
            head = view.head().position
            known = view.entities(None, head)
            refs = [Ref("note", "nobody"), *known, Ref("thing", "nobody"), *reversed(known)]
            digests = [s.observation.digest for ref in known for s in view.observations(ref.digest, BEFORE_ALL, head)]
            assert any(view.namers(digest, head) for digest in digests)
            for through in range(BEFORE_ALL, head + 1):
                reader = Reader(view, AsOf(through), registry(()))
                rules = {ref.type: reader.rules(ref.type) for ref in refs}
                found = view.standings(refs, through, rules)
                assert len(found) == len(refs)
                for ref, standing in zip(refs, found, strict=True):
                    version, kept = view.version(ref.digest, through), view.kept(ref, through, rules[ref.type])
                    if standing is None:
                        assert version is None
                        continue
                    assert standing.version == version
                    assert (standing.kept is None) == (kept is None)
                    if standing.kept is not None and kept is not None:
                        assert standing.kept.position == kept.position
                        assert same_state(standing.kept.state, kept.state, rules[ref.type])
                named = {digest for digest in digests if view.namers(digest, through)}
                assert set(view.named([*digests, bytes(32)], through)) == named
            assert not view.standings([], head, {})
            assert not view.named([], head)
        ledger = ledger_on(engine)
        for number in range(2 * KEPT_EVERY):
            ledger.store([{"entity_type": "memo", "id": key, "text": f"{key} {number}"} for key in "abc"])
        with engine.transaction(ledger.tenant) as write:
            refs = [Ref("thing", "nobody"), *write.entities(None, write.head().position)]
            assert list(write.last_kept(refs)) == [one for ref in refs for one in write.last_kept([ref])]
            assert any(write.last_kept(refs)) and write.last_kept(refs)[0] is None
            assert not write.last_kept([])

    def test_entities_are_ordered_by_utf8_bytes(self, engine: Engine) -> None:
        """Entities come by type and then key, both as UTF-8 bytes, not as UTF-16, folded or by locale."""
        keys = ["\ue000", "😀", "\uffff", "Z", "a", "é", "e\u0301", "z", "B", "ab", "a/b", "ß", "ss", "10", "9"]
        ledger = ledger_on(engine)
        ledger.store([{"entity_type": type, "id": key} for key in keys for type in ("b", "a_1", "a1")])
        with engine.view(ledger.tenant) as view:
            found = view.entities(None, ledger.position)
        wanted = [Ref(type, key) for type in ("a1", "a_1", "b") for key in sorted(keys, key=str.encode)]
        assert list(found) == wanted

    def test_things_are_found_by_their_short_ids(self, engine: Engine) -> None:
        """Observations, entities and sources are found by id, and unknown ones are not."""
        told_on(engine)
        content = b"Ana Rivera, Tarragona\n"
        with engine.view(TenantId("t")) as view:
            head = view.head().position
            for ref in view.entities(None, head):
                assert view.entity(ref.id) == ref
                for stored in view.observations(ref.digest, BEFORE_ALL, head):
                    assert view.observation(stored.observation.id) == stored
            digest = source_digest(content)
            position = entry_index.source_position(view, digest)
            assert position is not None
            found = view.entry(position)
            assert found is not None and found.kind == "source" and found.body == content
            assert entry_index.source_by_id(view, ids.id_of("source", digest)) == digest
            assert len(list(view.entries(kinds={"source"}))) == 1, "content delivered twice is stored once"
            assert len(list(view.entries(kinds={"received"}))) == 2
            nobody = bytes(32)
            assert view.observation(nobody, head) is None
            assert view.observation(ids.id_of("observation", nobody)) is None
            assert view.entity(ids.id_of("entity", nobody)) is None
            assert entry_index.source_position(view, nobody) is None
            assert entry_index.source_by_id(view, ids.id_of("source", nobody)) is None

    def test_ids_are_found_by_their_beginning(self, engine: Engine) -> None:
        """The ids of a tenant with a prefix are listed by digest, up to the limit, and no others."""
        told_on(engine)
        with engine.view(TenantId("t")) as view:
            head = view.head().position
            refs = view.entities(None, head)
            said = {s.observation.id for ref in refs for s in view.observations(ref.digest, BEFORE_ALL, head)}
            held = {entry.body for entry in view.entries(kinds={"source"})}
            sources = {ids.id_of("source", source_digest(body)) for body in held if body is not None}
            found_by: dict[str, tuple[Collection[str], Callable[[str, int], list[str]]]] = {
                "observation": (said, partial(view.ids, "observation")),
                "entity": ({ref.id for ref in refs}, partial(view.ids, "entity")),
                "source": (sources, partial(entry_index.source_ids, view)),
            }
            for kind, (known, find) in found_by.items():
                assert known
                for id in known:
                    for length in (5, 6, 8, 12, 16, 17, 18, 29, 30):
                        alike = sorted((o for o in known if o.startswith(id[:length])), key=ids.digest_order)
                        assert find(id[:length], 1_000) == alike
                        assert find(id[:length], 1) == alike[:1]
                assert find(f"{ids.PREFIXES[kind]}{'a' * 26}", 10) == []
                assert find(f"{ids.PREFIXES[kind]}1", 10) == []
        with engine.view(TenantId("nobody")) as view:
            assert view.ids("entity", next(iter(refs)).id[:8], 10) == []

    def test_a_moment_finds_its_position(self, engine: Engine) -> None:
        """A moment means the last write recorded at or before it, all of that write's entries included."""
        # The first appears twice: for the write, and for the name of the new log.
        first, second = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
        clock = JumpingClock([first, first, second, second])
        ledger = ledger_on(engine, clock=clock)
        for number in range(3):
            ledger.store([{"entity_type": "memo", "id": f"{number}{part}"} for part in "ab"])
        with engine.view(ledger.tenant) as view:
            for text, position in (
                ("0001-01-01T00:00:00.000000Z", BEFORE_ALL),
                ("2025-12-31T23:59:59.999999Z", BEFORE_ALL),
                ("2026-01-01T00:00:00.999999Z", 1),
                ("2026-01-01T00:00:01.000000Z", 3),
                ("2026-01-01T00:00:01.000001Z", 5),
                ("9999-12-31T23:59:59.999999Z", 5),
            ):
                assert view.position_at(text) == position, text
            opening = view.entry(0)
            assert opening is not None and view.position_at(opening.recorded_at) == 1

    def test_identifying_values_are_shared_by_key(self, engine: Engine) -> None:
        """Entities with a common identifying value are listed by key, each once, and hinted at."""
        ledger = ledger_on(engine)
        ledger.schemas.register(THING)
        for number, key in enumerate(("z", "a", "m", "z")):
            record = {"entity_type": "thing", "id": key, "email": "one@example.com", "best": number}
            report = ledger.store(record)
            assert bool(report.hints) == (key != "z"), "a hint about a shared value goes only to its writer"
        ledger.store({"entity_type": "thing", "id": "q", "email": "two@example.com"})
        ledger.store([{"entity_type": "memo", "id": key, "name": "same"} for key in "ba"])
        refs = [Ref("thing", key) for key in "amz"]
        with engine.view(ledger.tenant) as view:
            one, two = ("email", "one@example.com"), ("email", "two@example.com")
            for ref in (*refs, Ref("thing", "unknown")):
                assert (
                    dict(identifying_values.sharing(view, [(ref, [one, two, ("id", one[1])])])).get(("thing", *one))
                    == refs
                )
            q, unknown = Ref("thing", "q"), Ref("thing", "unknown")
            assert not identifying_values.sharing(view, [(q, [two, ("id", one[1])]), (Ref("memo", "a"), [one])]), (
                "nobody else has them"
            )
            assert dict(identifying_values.sharing(view, [(unknown, [two])])) == {("thing", *two): [q]}
            several = identifying_values.sharing(
                view, [(q, [two]), (unknown, [two, one]), (Ref("memo", "b"), [("name", "same")])]
            )
            notes = [Ref("memo", "a"), Ref("memo", "b")]
            assert dict(several) == {("thing", *two): [q], ("thing", *one): refs, ("memo", "name", "same"): notes}
            assert not identifying_values.sharing(view, [])
            some = identifying_values.sharing(view, [(unknown, [two, one])], limit=2)
            assert dict(some) == {("thing", *two): [q], ("thing", *one): refs[:2]}
            found = shared_values(view)
            things = ("thing", "email", "one@example.com", refs)
            assert found == [("memo", "name", "same", [Ref("memo", "a"), Ref("memo", "b")]), things]
            assert shared_values(view, "thing") == [things]

    # Optional features of an engine

    def test_quick_states_are_those_of_the_core(self, engine: Engine) -> None:
        """States that a view finds in one lookup equal a fold."""
        told_on(engine)
        with engine.view(TenantId("t")) as view:
            head, core = view.head().position, 0
            for ref in view.entities(None, head):
                for through in range(head + 1):
                    rules = Reader(view, AsOf(through), registry(())).rules(ref.type)
                    found = view.current(ref, through, rules)
                    if found is not None:
                        core += 1
                        assert found[1] == view.version(ref.digest, through)
                        assert same_state(found[0], fold_at(view, (ref,), rules, through), rules)
                    for effective in (moment.parse(one) for one in (EARLY, LATE, LATEST)):
                        quick = view.kept_by(ref, effective, through, rules)
                        if quick is not None and quick[0].state.merging == rules.merging:
                            kept = quick[0]
                            true = AsOf(through, effective)
                            said = view.observations(ref.digest, BEFORE_ALL, kept.position)
                            assert kept.position <= through and all(true.selects(one) for one in said)
                            since = view.observations(ref.digest, kept.position, through)
                            assert list(quick[1]) == [one for one in since if true.selects(one)]
            assert core, "the present of lone entities is found so"

    def test_a_stamp_is_another_after_a_commit(self, engine: Engine) -> None:
        """If an engine has stamps, reading does not change a stamp and a write does."""
        ledger = told_on(engine)
        before = engine.stamp()
        ledger.show("thing/1")
        assert engine.stamp() == before
        ledger.store({"entity_type": "memo", "id": "stamp"})
        assert before is None or engine.stamp() != before

    # The verbs of a transaction

    def test_what_is_kept_comes_back_equal(self, engine: Engine) -> None:
        """Merge state and receipts read back unchanged, the right one for each moment."""
        ledger = told_on(engine)
        while refold.go_on(engine, ledger.tenant, registry(())):
            pass
        root = Ref("thing", "1")
        with engine.view(ledger.tenant) as view:
            head = view.head().position
            reader = Reader(view, AsOf(head), registry(()))
            fresh = Ref("note", "fresh")
            rules = reader.rules("note")
            states = [fold.empty([fresh], rules)._replace(observations=count) for count in range(10)]
            assert view.kept(fresh, head, rules) is None
        with engine.transaction(ledger.tenant) as write:
            for position, lasting in ((3, True), (5, False), (8, True), (9, False)):
                write.keep([(Kept(position, states[position]), rules, lasting)])
            receipt = Receipt(bytes(range(32)), b'{"a":"\xc3\xa9"}', bytes(range(16)))
            write.claim("agent", "key", receipt)
            assert write.receipt("agent", "key") == receipt
        with engine.view(ledger.tenant) as view:
            assert view.kept(fresh, 2, rules) is None
            for through, position in ((3, 3), (4, 3), (5, 3), (7, 3), (8, 8), (9, 9), (head, 9)):
                assert view.kept(fresh, through, rules) == Kept(position, states[position]), through
            assert view.receipt("agent", "key") == receipt
            assert view.receipt("agent", "ke") is None
            assert view.receipt("key", "agent") is None
            assert kept_of(view, root, head) is not None

    def test_a_transaction_reads_its_own_writes(self, engine: Engine) -> None:
        """A transaction sees its own changes; other views see them only after a successful commit."""
        ledger = told_on(engine)
        before = everything(engine)
        other, rules = Ref("note", "other"), Rules(schema.OPEN("note"))
        kept = Kept(1, fold.empty([other], rules))
        with suppress(Crash), engine.transaction(ledger.tenant) as write:
            write.keep([(kept, rules, True)])
            identifying_values.note(write, [(Ref("note", "1"), [("name", "x"), ("name", "y")])])
            identifying_values.note(write, [(Ref("note", "2"), [("name", "x")])])
            write.claim("a", "mine", Receipt(b"r" * 32, b"{}", b"n" * 16))
            write.set_meta("note", b"x")
            assert write.kept(other, 1, rules) == kept
            one, two = Ref("note", "1"), Ref("note", "2")
            assert dict(identifying_values.sharing(write, [(one, [("name", "x"), ("name", "y")])])) == {
                ("note", "name", "x"): [one, two]
            }
            assert write.receipt("a", "mine") is not None
            assert write.meta("note") == b"x"
            raise Crash
        assert everything(engine) == before
        with engine.view(ledger.tenant) as view:
            assert view.kept(other, 1, rules) is None
            assert not identifying_values.sharing(view, [(Ref("note", "1"), [("name", "x"), ("name", "y")])])
            assert view.receipt("a", "mine") is None


def _by_bytes(ref: Ref) -> tuple[bytes, bytes]:
    return ref.type.encode(), ref.key.encode()
