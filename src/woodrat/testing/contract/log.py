"""Log: entries, their envelopes, leaves and tree; erasure; and isolation of tenants."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable
from typing import Any

import pytest

from woodrat import Past, Refused, Report, Unavailable, WoodratError
from woodrat.canon import form, ids, moment
from woodrat.canon.digest import digest as digest_of
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL, Head
from woodrat.engines.transaction import Transaction
from woodrat.ledger import entry_index
from woodrat.log import tree
from woodrat.log.entry import Entry, request_commitment
from woodrat.log.tree import Frontier
from woodrat.state import fingerprint
from woodrat.state import observation as observations
from woodrat.state.source import source_digest
from woodrat.testing.clock import FixedClock, JumpingClock
from woodrat.testing.contract.fixtures import Contract, log_that_repeats
from woodrat.testing.crash import Crash, CrashingEngine
from woodrat.testing.ledgers import (
    ANA,
    EARLY,
    answers,
    indexes_of,
    kept_of,
    ledger_on,
    log_of,
    shared_values,
    spelled,
    tell,
    told_on,
)


class LogContract(Contract):
    """The log itself, as every engine must do it."""

    # The log

    def test_a_tenant_that_never_wrote_is_empty(self, engine: Engine) -> None:
        """Before its first write a tenant has no log, no entry, and nothing is known in it."""
        with engine.view(TenantId("t")) as view:
            assert view.head() == Head(None, 0, None, Frontier())
            assert view.head().position == BEFORE_ALL
            assert view.entry(0) is None
            assert list(view.entries()) == []
            assert list(view.leaves(0)) == []
            assert view.position_at("9999-12-31T23:59:59.999999Z") == BEFORE_ALL
            assert view.receipt("a", "k") is None
            assert list(view.entities(None, 10)) == []
            assert shared_values(view) == []
            assert list(entry_index.schema_types(view, 10)) == []
            assert not view.scan("fingerprint") and view.meta("fingerprint") is None
        assert ledger_on(engine).fingerprint() == fingerprint.text(fingerprint.EMPTY.root())

    @pytest.mark.parametrize("batch", [1, 1_000])
    def test_an_observation_occurs_once(self, engine: Engine, batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
        """A log with a duplicate observation is not cloned; merged, or written again, it is stored once."""
        monkeypatch.setattr("woodrat.exchange.verbs.importer.BATCH_ENTRIES", batch)
        data = log_that_repeats()
        clone = ledger_on(engine, tenant="clone", clock=FixedClock(seed="clone"))
        with pytest.raises(Refused, match=r"observation obs_\w+ at position 2 is in this log already"):
            clone.log.import_(io.BytesIO(data))
        assert len(list(clone.observations())) == (2 if batch == 1 else 0), "whole batches before it are taken over"
        ledger = ledger_on(engine, clock=FixedClock(seed="merges"))
        ledger.store({"entity_type": "memo", "id": "own"})
        taken = ledger.log.import_(io.BytesIO(data))
        assert (taken.merged, taken.known) == (2, 1)
        bodies = [(e["kind"], form.encode(e["body"])) for e in map(json.loads, data.splitlines())]
        assert ledger.admit(bodies).repeated
        assert len(list(ledger.observations())) == 3
        other = ledger_on(engine, tenant="admits", clock=FixedClock(seed="admits"))
        other.admit(bodies)
        assert len(list(other.observations())) == 2
        for each in (clone, ledger, other):
            assert not each.verify().damage

    def test_positions_have_no_gaps(self, engine: Engine) -> None:
        """Entries have positions 0, 1, 2 and so on, and each write's report names its own."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        size = 0
        for report in tell(a, b):
            with engine.view(a.tenant) as view:
                added = [entry.position for entry in view.entries(size - 1)]
                assert added == list(range(size, view.head().size))
                assert added
            if report is not None:
                assert list(report.positions) == added
                assert report.position == added[-1] == a.position
            size += len(added)

    def test_entries_read_back_as_written(self, engine: Engine) -> None:
        """An entry is found by its position, and ranges and kinds select entries without changing them."""
        told_on(engine)
        with engine.view(TenantId("t")) as view:
            everything = list(view.entries())
            head = view.head()
            for entry in everything:
                entry.check()
                assert view.entry(entry.position) == entry
                assert Entry.from_json(entry.to_json()) == entry
                assert entry.log == head.log
            assert everything[-1].recorded_at == head.recorded_at
            assert view.entry(-1) is None
            assert view.entry(head.size) is None
            bodies = {int(entry.position): (entry.kind, entry.body) for entry in everything if entry.body is not None}
            assert view.bodies([*reversed(range(-1, head.size + 1)), 0]) == bodies
            assert view.bodies([3]) == {3: bodies[3]}
            assert not view.bodies([])
            tags = {position: body for position, body in bodies.items() if body[0] == "tag"}
            assert view.bodies(range(head.size), {"tag"}) == tags
            kinds = {entry.kind for entry in everything}
            assert kinds >= {"observation", "schema", "source", "received", "tag", "interpretation.started"}
            for after, through in itertools.product((-1, 0, 3, head.position), (None, -1, 0, 7, head.position, 10**6)):
                end = head.position if through is None else through
                wanted = [entry for entry in everything if after < entry.position <= end]
                assert list(view.entries(after, through)) == wanted
                for chosen in ({"tag"}, {"source", "received"}, kinds, set[str]()):
                    some = [entry for entry in wanted if entry.kind in chosen]
                    assert list(view.entries(after, through, chosen)) == some

    def test_nodes_are_the_subtrees_over_the_leaves(self, engine: Engine) -> None:
        """At every size the stored subtrees give the root of the leaves, and proofs that hold."""
        ledger = ledger_on(engine)
        for number in range(40):
            ledger.store({"entity_type": "thing", "name": f"n{number}"})
        with engine.view(ledger.tenant) as view:
            leaves, nodes = list(view.leaves(view.head().size)), view.nodes()
            size = len(leaves)
            for part in range(size + 1):
                root = Frontier.at(nodes, part).root()
                assert root == tree.root(leaves[:part])
                proof = tree.consistency_proof(nodes, part, size)
                assert tree.verify_consistency(part, size, root, tree.root(leaves), proof)
            for index, leaf in enumerate(leaves):
                found = tree.inclusion_proof(nodes, index, size)
                assert tree.verify_inclusion(leaf, index, size, found, tree.root(leaves))

    def test_leaves_and_root_are_those_of_the_entries(self, engine: Engine) -> None:
        """After every write the leaves are those of the entries, and the root equals the one computed from them."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        roots = []
        for _ in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head()
                leaves = [entry.leaf() for entry in view.entries()]
                assert list(view.leaves(head.size)) == leaves
                assert head.frontier == Frontier().extend(leaves)
                assert head.frontier.root() == tree.root(leaves)
                roots.append((head.size, head.frontier.root()))
        with engine.view(a.tenant) as view:
            for size, root in roots:
                assert tree.root(view.leaves(size)) == root, "a longer log still holds the shorter one"

    def test_the_logs_clock_never_goes_back(self, engine: Engine) -> None:
        """`recorded_at` grows from write to write though the machine's clock jumps 400 days back and forth."""
        now = "2026-01-01T00:00:00Z"
        past = moment.from_micros(moment.to_micros(moment.parse(now)) - 400 * 86_400_000_000)
        clock = JumpingClock([now, past, past, now, "2027-01-01T00:00:00Z", past, now])
        ledger = ledger_on(engine, clock=clock)
        for number in range(9):
            ledger.store([{"entity_type": "memo", "id": f"{number}.{part}"} for part in range(3)])
        with engine.view(ledger.tenant) as view:
            entries = list(view.entries())
        times = [entry.recorded_at for entry in entries]
        assert all(len(set(times[first : first + 3])) == 1 for first in range(0, 27, 3)), "one time for a whole write"
        assert times[::3] == sorted(set(times)), "a later time for a later write"
        stated = [observations.stored(entry.body or b"").observed_at for entry in entries]
        assert stated == times, "default: the log's time"

    def test_an_envelope_says_which_write_an_entry_belongs_to(self, engine: Engine) -> None:
        """The first entry of a write states its length and commits to the request; the others point at the first."""
        clock = FixedClock()
        a, b = ledger_on(engine, clock=clock), ledger_on(engine, agent="b", clock=clock)
        first = 0
        for _ in tell(a, b):
            with engine.view(a.tenant) as view:
                head = view.head()
                for entry in view.entries(first - 1):
                    assert entry.envelope.write == first
                    assert entry.envelope.length == (head.size - first if entry.position == first else None)
                    assert (entry.envelope.request is not None) == (entry.position == first)
            first = head.size
        record = {"entity_type": "memo", "id": "1"}
        report = a.store(record, idempotency_key="once")
        with engine.view(a.tenant) as view:
            opening, receipt = view.entry(report.positions[0]), view.receipt("a", "once")
            nonces = {entry.nonce for entry in view.entries()}
        assert opening is not None and receipt is not None
        asked = digest_of("request", form.serialise({"arguments": {"records": record}, "verb": "store"}))
        assert receipt.request == asked
        assert opening.envelope.request == request_commitment(receipt.nonce, "once", asked)
        assert receipt.nonce not in nonces, "the request has a separate nonce"

    def test_an_erased_body_is_gone_and_its_header_stays(self, engine: Engine) -> None:
        """Erasing removes bodies, nonces and receipts of one tenant; headers, leaves and the root stay unchanged."""
        ledger, other = told_on(engine), told_on(engine, "u")
        ledger.store({"entity_type": "thing", "id": "k"}, idempotency_key="gone")
        ledger.store({"entity_type": "thing", "id": "l"}, idempotency_key="kept")
        before, untouched = log_of(engine), log_of(engine, "u")
        gone = [1, before["size"] - 2]
        with engine.transaction(ledger.tenant) as write:
            write.erase(gone, [(ledger.agent, "gone")])
        after = log_of(engine)
        assert [entry["position"] for entry in after["entries"] if entry["body"] is None] == gone
        assert [entry["position"] for entry in after["entries"] if entry["nonce"] is None] == gone
        for entry in (*before["entries"], *after["entries"]):
            del entry["body"], entry["nonce"]
        assert after == before
        assert log_of(engine, other.tenant) == untouched
        with engine.view(ledger.tenant) as view:
            keys = {key for _, key, _ in view.receipts()}
            assert "kept" in keys
            assert "gone" not in keys
            assert view.receipt(ledger.agent, "gone") is None
            assert all(view.receipt(agent, key) == receipt for agent, key, receipt in view.receipts())
        assert engine.purge()
        assert engine.purged()

    def test_what_a_tenant_holds_can_be_searched_for(self, engine: Engine) -> None:
        """A search for bytes finds rows of its tenant, and rows of others only for callers that ask for others."""
        ledger, other = told_on(engine), told_on(engine, "u")
        ledger.store({"entity_type": "thing", "id": "k", "text": "Quittenallee"}, idempotency_key="key-of-k")
        with engine.view(ledger.tenant) as view:
            receipt = view.receipt(ledger.agent, "key-of-k")
            last = view.entry(view.head().position)
        assert receipt is not None and last is not None and last.nonce is not None
        mine, theirs = engine.storage(ledger.tenant), engine.storage(other.tenant)
        for data in (b"Quittenallee", b"key-of-k", receipt.nonce, receipt.request, last.nonce):
            assert mine.holding(data, others=False) > 0
            assert theirs.holding(data, others=False) == 0
            assert mine.holding(data, others=True) == 0
        for path in mine.files():
            data = mine.read(path, 0, 1 << 30)
            assert data == mine.read(path, 0, 10) + mine.read(path, 10, 1 << 30)
            assert mine.read(path, len(data), 10) == b""

    def test_an_erasure_that_fails_leaves_everything(self, engine: Engine) -> None:
        """Leaving a transaction by an exception restores bodies, nonces, receipts and derived data."""
        ledger = told_on(engine)
        ledger.store({"entity_type": "thing", "id": "k"}, idempotency_key="k")
        before, said = log_of(engine), answers(ledger)
        failing = CrashingEngine(engine)
        failing.arm("drop_derived", after=True)
        with pytest.raises(Crash), failing.transaction(ledger.tenant) as write:
            _erase_all(write, before["size"], (ledger.agent, "k"))
        assert log_of(engine) == before
        assert spelled(answers(ledger)) == spelled(said)
        with engine.view(ledger.tenant) as view:
            assert view.receipt(ledger.agent, "k") is not None
        assert engine.purged()

    def test_a_closed_engine_says_so(self) -> None:
        """After closing, reads and writes are unavailable rather than wrong."""
        engine = self.make_engine()
        ledger = ledger_on(engine)
        ledger.store({"entity_type": "memo", "id": "1"})
        ledger.close()
        with pytest.raises(Unavailable):
            ledger.show("memo/1")
        with pytest.raises(Unavailable):
            ledger.store({"entity_type": "memo", "id": "2"})

    # Tenants

    def test_tenants_do_not_show_in_each_other(self, engine: Engine) -> None:
        """No write of one tenant changes a read, head, root, hint or error text of another."""
        alone = self.make_engine()
        mine, single = told_on(engine, "mine"), told_on(alone, "mine")
        told_on(engine, "other", FixedClock("2031-01-01T00:00:00.000000Z", seed="other"))
        other = ledger_on(engine, "other", clock=FixedClock("2032-01-01T00:00:00.000000Z"))
        other.store({"entity_type": "contact", "name": "Only there"}, idempotency_key="k")
        other.schemas.register({"title": "memo", "required": ["x"], "properties": {"x": {"type": "integer"}}})
        other.tag("only-there")
        record = {"entity_type": "thing", "id": "9", "email": "t@example.com", "$": {"observed_at": EARLY}}
        other.store([record, {**record, "id": "8"}])
        for ledger, engine_of in ((mine, engine), (single, alone)):
            assert ledger.fingerprint() == ledger.at("now").fingerprint()
            del engine_of
        assert spelled(log_of(engine, "mine")) == spelled(log_of(alone, "mine"))
        assert spelled(answers(mine)) == spelled(answers(single))
        assert indexes_of(engine, "mine") == indexes_of(alone, "mine")
        for write in (
            lambda ledger: ledger.store({"entity_type": "contact", "name": "Only there"}, idempotency_key="k"),
            lambda ledger: ledger.store({"entity_type": "memo", "id": "1"}),
            lambda ledger: ledger.store(record),
            lambda ledger: ledger.store({"entity_type": "thing", "id": "1", "city": 1}),
            lambda ledger: ledger.at("@only-there"),
            lambda ledger: ledger.at(10_000),
            lambda ledger: ledger.at("2031-01-01T00:00:00Z").position,
            lambda ledger: ledger.store({"entity_type": "thing", "id": "1"}, if_version=3),
        ):
            assert _outcome(write, mine) == _outcome(write, single)
        alone.close()

    def test_tenants_are_listed_by_name(self, engine: Engine) -> None:
        """Every tenant with a log is listed once, in order; a tenant that was only read is not."""
        assert engine.tenants() == []
        for tenant in ("b", "a", "b"):
            ledger_on(engine, tenant).store({"entity_type": "thing", "id": "1"})
        with engine.view(TenantId("c")) as view:
            view.head()
        assert engine.tenants() == ["a", "b"]

    def test_ids_of_another_tenant_are_unknown(self, engine: Engine) -> None:
        """Names and ids of another tenant's things are unknown, with the same error as ids that nobody has."""
        mine, other = told_on(engine, "mine"), ledger_on(engine, "other", clock=FixedClock(seed="other"))
        report = other.store({"entity_type": "secret", "id": "1", "x": 1})
        source = other.sources.add(b"secret", name="secret")
        secret = Ref("secret", "1")
        said = other.observations("secret/1").items[0].observation
        nobody = bytes(range(32))
        record = {"entity_type": "memo", "id": "1"}
        for theirs, unknown, ask in (
            (report.observations[0], ids.id_of("observation", nobody), mine.retract),
            (said.name, ids.name("observation", nobody), mine.retract),
            (said.name, ids.name("observation", nobody), lambda id: mine.store(record, saw=[id])),
            (said.id, ids.id_of("observation", nobody), lambda id: mine.correct("thing/1", {"total": 1}, replaces=id)),
            (secret.id, ids.id_of("entity", nobody), mine.show),
            (secret.id, ids.id_of("entity", nobody), mine.delete),
            (secret.id, ids.id_of("entity", nobody), lambda id: mine.relate(ANA, "knows", id)),
            ("secret/1", "secret/2", mine.show),
            ("secret/1", "secret/2", mine.history),
            ("secret/1", "secret/2", mine.delete),
            ("secret/1", "secret/2", lambda ref: mine.relate(ANA, "knows", ref)),
            (source, ids.id_of("source", nobody), mine.sources.content),
            (source, ids.id_of("source", nobody), lambda id: mine.store(record, source=id)),
            (source, ids.id_of("source", nobody), lambda id: mine.interpretations.start(id).__enter__()),
        ):
            found, wanted = _outcome(ask, theirs), _outcome(ask, unknown)
            assert isinstance(found, dict) and found["code"] in ("not_found", "refused")
            assert spelled(found).replace(theirs.encode(), b"ID") == spelled(wanted).replace(unknown.encode(), b"ID")
        with engine.view(mine.tenant) as view:
            head = 10_000
            assert view.observation(said.digest, head) is None
            assert view.observation(said.id) is None
            assert view.entity(secret.digest, head) is None
            assert view.entity(secret.id) is None
            assert list(view.observations(secret.digest, BEFORE_ALL, head)) == []
            assert kept_of(view, secret, head) is None
            assert entry_index.source_by_id(view, source) is None
            assert entry_index.source_position(view, source_digest(b"secret")) is None


def _outcome(ask: Callable[[Any], Any], what: Any) -> Any:
    """Return the result of a call, or its refusal, as plain JSON."""
    try:
        found = ask(what)
    except WoodratError as error:
        return error.to_json()
    return found.to_json() if isinstance(found, Report) else str(found) if isinstance(found, Past) else found


def _erase_all(write: Transaction, size: int, receipt: tuple[str, str]) -> None:
    write.erase(range(size), [receipt])
    write.drop_derived()
