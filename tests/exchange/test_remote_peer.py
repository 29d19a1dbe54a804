"""Ledgers that sync with one behind a server: both ways, in parts, whatever the network does."""

from __future__ import annotations

import io
import os
import shutil
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.erasure.test_arrivals import PERSON, hits, key_for, tell, theirs
from tests.exchange.test_exchange_laws import entries, held
from tests.faults.test_serving import free_port, serving
from tests.server.server import Server
from tests.server.test_serve import serve

import woodrat
from woodrat import Forbidden, Ledger, Refused, Unavailable
from woodrat.api import transport
from woodrat.cli.main import main
from woodrat.clock import SystemClock
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.exchange.relay import peers, receiver, remote_peer
from woodrat.ledger.own_policy import registry
from woodrat.server import streams
from woodrat.server.access import EVERYTHING, Caller
from woodrat.server.app import App
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

EXAMPLES = 200 if os.environ.get("WOODRAT_LAWS") == "full" else 12
PROFILE = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


class ByName:
    """Keys that say for which tenant they are, and with a colon what they may do: `acme`, `acme:read`."""

    are_required = True

    def holder(self, id: str) -> Caller | None:
        return None

    def caller(self, token: str | None) -> Caller | None:
        tenant, _, grants = (token or "").partition(":")
        return Caller(tenant, "server", frozenset(grants.split(",") if grants else {EVERYTHING})) if tenant else None

    def refresh(self) -> None:
        """Nothing changes."""


class Served:
    """A server with as many tenants as anybody asks for, and the ledger of each as it is there."""

    def __init__(self, engine: Engine, keys: Path | None = None) -> None:
        self.engine, self._keys = engine, keys
        proofs = None if keys is None else str(keys)
        self._app = App(engine, ByName(), clock=SystemClock(), policies=registry(()), proofs=proofs)
        self.server = Server(self._app)
        self._made = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.port}"

    def ledger(self, tenant: str) -> Ledger:
        """Return a tenant's ledger, past the server."""
        return Ledger(
            self.engine, tenant=tenant, agent="there", clock=SystemClock(), policies=registry(()), keys=self._keys
        )

    def tenant(self) -> str:
        """Return the name of a tenant that nobody has used."""
        self._made += 1
        return f"tenant-{self._made}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    engine = SqliteEngine(tmp_path_factory.mktemp("served") / "served.db")
    found = Served(engine)
    with found.server:
        yield found
    engine.close()


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing waits between tries."""
    monkeypatch.setattr(transport, "WAIT_SECONDS", (0.0, 0.0, 0.0, 0.0))


def things(ledger: Any, first: int, count: int = 1, kind: str = "thing") -> None:
    """Store some things in one write."""
    ledger.store(
        [{"entity_type": kind, "id": str(number)} for number in range(first, first + count)],
        observed_at="2025-12-01T09:00:00Z",
    )


# Both ways


def test_both_ends_end_with_the_same(served: Served) -> None:
    """What either holds comes to the other, with where it was first written; then nothing moves."""
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine(), agent="office"), served.ledger(tenant)
    things(office, 0, 3)
    with office.run("Approve #42?") as run:
        run.answer("no")
    office.tag("monday")
    things(there, 10, 2, "other")
    synced = office.log.sync(served.url, key=tenant)
    assert synced.other == served.url
    assert synced.same
    assert synced.pulled is not None
    assert synced.pushed is not None
    assert (synced.pulled.merged, synced.pushed.merged) == (2, 3 + 2 + 1)
    assert held(office) == held(there)
    log = entries(office)[0].log
    came = {
        (entry.envelope.origin.log, entry.envelope.origin.position)
        for entry in entries(there)[2:]
        if entry.envelope.origin
    }
    assert came == {(log, position) for position in range(6)}
    assert there.runs.show(run.id).answer is not None
    again = office.log.sync(served.url, key=tenant)
    assert again.pulled is not None
    assert again.pushed is not None
    assert (again.pulled.entries, again.pushed.entries, again.same) == (0, 0, True)
    assert there.verify(deep=True).damage == office.verify(deep=True).damage == ()


def test_an_empty_end_becomes_a_clone(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty server takes a log over as it is, part by part, and so does an empty ledger that pulls from it."""
    monkeypatch.setattr(remote_peer, "PAGE_ENTRIES", 10)
    sent: list[int] = []
    plain = transport.Transport.send_lines

    def counted(self: transport.Transport, path: str, asked: Any, lines: Any) -> Any:
        sent.append(asked["after"])
        return plain(self, path, asked, lines)

    monkeypatch.setattr(transport.Transport, "send_lines", counted)
    tenant = served.tenant()
    office = ledger_on(InMemoryEngine(), agent="office")
    for number in range(0, 40, 4):
        things(office, number, 4)
    things(office, 100, 25)  # one write that is longer than a part
    found = office.log.sync(served.url, key=tenant)
    assert found.pushed is not None
    assert found.pushed.cloned == 65
    assert sent == [None, 11, 23, 35, 64][: len(sent)]
    assert len(sent) == 4
    there = served.ledger(tenant)
    assert entries(there) == entries(office)
    laptop = ledger_on(InMemoryEngine(), agent="laptop")
    assert laptop.log.sync(served.url, key=tenant).same
    assert entries(laptop) == entries(office)
    # A clone that went on is gone on from, though its log has two names.
    things(laptop, 200)
    other = served.tenant()
    assert laptop.log.sync(served.url, key=other).pushed.cloned == 66  # type: ignore[union-attr]
    assert entries(served.ledger(other)) == entries(laptop)


@pytest.mark.parametrize("far_away", [True, False])
def test_what_was_pulled_is_not_pushed_back(served: Served, far_away: bool) -> None:
    """Only what a peer has not given is given to it, now and next time; what somebody wrote here meanwhile is."""
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine(), agent="office"), served.ledger(tenant)

    def sync() -> tuple[int, int]:
        found = office.log.sync(served.url, key=tenant) if far_away else office.log.sync(there)
        assert found.same
        assert found.pulled is not None
        assert found.pushed is not None
        assert found.pushed.known == found.pulled.known == 0
        return found.pulled.entries, found.pushed.entries

    things(office, 0, 2)
    things(there, 10, 30)
    assert sync() == (30, 2)
    assert sync() == (0, 0)
    things(there, 100, 5)
    assert sync() == (5, 0)
    things(office, 200)
    assert sync() == (0, 1)
    log = entries(office)[0].log
    at = peers.Near(there.context, "there").taken(log)
    assert at == (office.position, entries(office)[-1].leaf())
    receiver.receive(there.context, [], log=log, after=3, leaf="00" * 32, held=True)
    assert peers.Near(there.context, "there").taken(log) == at, "what is remembered does not go back"


def test_one_direction_alone(served: Served) -> None:
    """Pulling sends nothing and pushing takes nothing; a key that may only read is enough for pulling."""
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine()), served.ledger(tenant)
    things(office, 0)
    things(there, 1)
    pulled = office.log.sync(served.url, key=f"{tenant}:read", push=False)
    assert (pulled.pushed, pulled.same) == (None, False)
    assert len(entries(there)) == 1
    things(there, 2)
    assert office.log.sync(served.url, key=tenant, pull=False).pulled is None
    assert len(entries(office)) == 2
    assert len(entries(there)) == 3


def test_a_ledger_behind_a_server_can_be_named_by_itself(served: Served) -> None:
    """An open ledger of the client is synced with as one that is here."""
    tenant = served.tenant()
    office = ledger_on(InMemoryEngine())
    things(office, 0)
    with woodrat.open(served.url, key=tenant) as remote:
        assert office.log.sync(remote).same
        assert remote.show("thing/0").fields["id"] == "0"


def test_a_log_that_was_put_back_is_taken_from_where_they_part(tmp_path: Path) -> None:
    """A server that was restored from a backup and went on otherwise gets and gives what each lacks."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with woodrat.open(tmp_path / "served.db") as first:
        things(first, 0, 3)
        first.log.backup(tmp_path / "backup.db")
        things(first, 10)
    office = ledger_on(InMemoryEngine())
    things(office, 100)
    with serving(tmp_path / "served.db", port):
        assert office.log.sync(url).same
    for end in ("", "-wal", "-shm"):
        (tmp_path / f"served.db{end}").unlink(missing_ok=True)
    shutil.copy(tmp_path / "backup.db", tmp_path / "served.db")
    with woodrat.open(tmp_path / "served.db") as again:
        things(again, 20, 5)
    with serving(tmp_path / "served.db", port):
        assert office.log.sync(url).same
    assert len({stored.observation.entity for stored in office.observations()}) == 3 + 1 + 1 + 5


# The law

STEPS = st.lists(
    st.tuples(st.sampled_from(("store", "correct", "run", "tag", "sync", "pull", "push")), st.integers(0, 2))
)


@PROFILE
@given(steps=STEPS, data=st.data())
def test_any_interleaving_ends_in_one_state(served: Served, steps: list[tuple[str, int]], data: st.DataObject) -> None:
    """Two files and a server, written to and synced in any order, end with one fingerprint and one set of entries."""
    tenant = served.tenant()
    with TemporaryDirectory() as folder, ExitStack() as stack:
        here = [
            stack.enter_context(woodrat.open(Path(folder) / f"{name}.db", agent=name, tenant=tenant)) for name in "ab"
        ]
        remote = stack.enter_context(woodrat.open(served.url, key=tenant))
        all_: list[Any] = [*here, remote]
        for number, (step, one) in enumerate(steps):
            ledger = all_[one]
            if step == "store":
                ledger.store({"entity_type": "thing", "id": "x", "value": number})
            elif step == "correct" and ledger.query(entity_type="thing").items:
                ledger.correct("thing/x", {"value": -number})
            elif step == "run":
                with ledger.run(f"Question {number}?") as run:
                    run.answer("Yes.")
            elif step == "tag" and ledger.position >= 0:
                ledger.tag(f"tag-{number}")
            elif step in ("sync", "pull", "push"):
                other = data.draw(st.sampled_from([here[1 - one], remote]) if one < 2 else st.just(remote))
                here[one % 2].log.sync(other, pull=step != "push", push=step != "pull")
        for _ in range(2):
            for ledger in here:
                ledger.log.sync(remote)
        there = served.ledger(tenant)
        assert here[0].fingerprint() == here[1].fingerprint() == there.fingerprint() == remote.fingerprint()
        assert held(here[0]) == held(here[1]) == held(there)
        for ledger in here:
            still = ledger.log.sync(remote)
            assert still.same
            assert not any(found and found.changed for found in (still.pulled, still.pushed))
        for ledger in (*here, there):
            came = [(entry.kind, entry.body) for entry in entries(ledger) if entry.envelope.origin is not None]
            assert len(came) == len(set(came)), "what is known is not taken in again"
            assert ledger.verify().damage == ()


# A network that breaks


class Proxy:
    """Stands before a server and cuts each connection after so many bytes in either direction, as long as told."""

    def __init__(self, port: int, budgets: list[int]) -> None:
        self._to, self._budgets = port, budgets
        self._door = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._door.getsockname()[1]
        self.cut = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._door.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._door.accept()
            except OSError:
                return
            budget = [self._budgets.pop(0)] if self._budgets else None
            off = socket.create_connection(("127.0.0.1", self._to))
            for one, other in ((near, off), (off, near)):
                threading.Thread(target=self._pass, args=(one, other, budget), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket, budget: list[int] | None) -> None:
        try:
            while data := one.recv(4_096):
                if budget is not None:
                    data = data[: max(0, budget[0])]
                    budget[0] -= len(data)
                other.sendall(data)
                if budget is not None and budget[0] <= 0:
                    self.cut += 1
                    break
        except OSError:
            pass
        finally:
            for end in (one, other):
                try:
                    end.shutdown(socket.SHUT_RDWR)
                except OSError:
                    continue


@contextmanager
def cutting(served: Served, budgets: list[int]) -> Iterator[Proxy]:
    proxy = Proxy(served.server.port, budgets)
    try:
        yield proxy
    finally:
        proxy.close()


@PROFILE
@given(budgets=st.lists(st.integers(1, 40_000), min_size=1, max_size=25), clone=st.booleans())
def test_a_connection_cut_anywhere_is_gone_on_from(served: Served, budgets: list[int], clone: bool) -> None:
    """Cut at any byte in either direction, called again until it ends well, both ends hold all of it, once."""
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine(), agent="office"), served.ledger(tenant)
    for number in range(0, 60, 3):
        things(office, number, 3)
        if not clone:
            things(there, 1_000 + number, 2)
    with pytest.MonkeyPatch.context() as patch, cutting(served, list(budgets)) as proxy:
        patch.setattr(remote_peer, "PAGE_ENTRIES", 7)
        patch.setattr("woodrat.exchange.verbs.importer.BATCH_ENTRIES", 5)
        for _ in range(len(budgets) + 1):
            try:
                synced = office.log.sync(f"http://127.0.0.1:{proxy.port}", key=tenant)
            except Unavailable:
                continue
            break
        else:
            raise AssertionError("it never ends well")
    assert synced.same
    assert held(office) == held(there)
    assert len(entries(office)) == len(entries(there)) == len(held(there))
    assert there.verify().damage == office.verify().damage == ()
    if clone:
        assert entries(office) == entries(there)


def test_what_came_before_a_break_is_not_asked_for_again(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pull and a push that broke off go on after the last part that was taken in, and say how far they came."""
    monkeypatch.setattr("woodrat.exchange.verbs.importer.BATCH_ENTRIES", 10)
    monkeypatch.setattr(remote_peer, "PAGE_ENTRIES", 10)
    monkeypatch.setattr(remote_peer, "TRIES_MAX", 1)
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine(), agent="office"), served.ledger(tenant)
    things(office, 5_000)
    for number in range(0, 100, 5):
        things(there, number, 5)
    size = sum(len(line) for line in _exported(there))
    with (
        cutting(served, [size // 2]) as proxy,
        pytest.raises(Unavailable, match=r"Entries up to position \d+ were imported"),
    ):
        office.log.sync(f"http://127.0.0.1:{proxy.port}", key=tenant, push=False)
    half = len(entries(office)) - 1
    assert 10 <= half <= 90
    found = office.log.sync(served.url, key=tenant, push=False).pulled
    assert found is not None
    assert (found.entries, found.known) == (100 - half, 0)
    for number in range(200, 300, 5):
        things(office, number, 5)
    plain, left = transport.Transport.send_lines, [2]

    def failing(self: transport.Transport, path: str, asked: Any, lines: Any) -> Any:
        left[0] -= 1
        if left[0] < 0:
            raise Unavailable("planted")
        return plain(self, path, asked, lines)

    with monkeypatch.context() as patch:
        patch.setattr(transport.Transport, "send_lines", failing)
        with pytest.raises(Unavailable, match=r"were imported here; .* failed: planted"):
            office.log.sync(served.url, key=tenant)
    before = len(entries(there))
    done = peers.meeting(peers.Near(office.context, "this"), peers.Near(there.context, "that")).after.position
    again = office.log.sync(served.url, key=tenant).pushed
    assert again is not None
    assert again.entries == office.position - done
    assert before < len(entries(there)) == len(entries(office))


def _exported(ledger: Ledger) -> list[bytes]:
    out = io.BytesIO()
    ledger.log.export(out)
    return out.getvalue().splitlines()


def test_a_server_that_is_killed_is_gone_on_from(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of a push, it holds whole parts of it; called again, it gets the rest."""
    monkeypatch.setattr(remote_peer, "PAGE_ENTRIES", 10)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    office = ledger_on(InMemoryEngine(), agent="office")
    for number in range(0, 200, 5):
        things(office, number, 5)
    with serving(tmp_path / "served.db", port) as process:
        plain, sent = transport.Transport.send_lines, [0]

        def killing(self: transport.Transport, path: str, asked: Any, lines: Any) -> Any:
            sent[0] += 1
            if sent[0] == 6:
                process.send_signal(signal.SIGKILL)
                process.wait(30)
            return plain(self, path, asked, lines)

        with monkeypatch.context() as patch:
            patch.setattr(transport.Transport, "send_lines", killing)
            with pytest.raises(Unavailable, match="no answer"):
                office.log.sync(url)
    with serving(tmp_path / "served.db", port):
        found = office.log.sync(url)
    assert found.same
    assert found.pushed is not None
    assert found.pushed.entries == 150
    with woodrat.open(tmp_path / "served.db", readonly=True) as there:
        assert entries(there) == entries(office)


def test_an_answer_that_fails_midway_is_not_taken_for_a_whole_one(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that fails in the middle of an answer is asked again for what did not come."""
    monkeypatch.setattr(peers, "PART_ENTRIES", 10)
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine(), agent="office"), served.ledger(tenant)
    for number in range(0, 50, 5):
        things(there, number, 5)
    plain, asked = streams.next_lines, [0]

    def failing(parts: Any) -> list[bytes]:
        asked[0] += 1
        if asked[0] == 3:
            raise Unavailable("planted")
        return plain(parts)

    monkeypatch.setattr(streams, "next_lines", failing)
    found = office.log.sync(served.url, key=tenant, push=False).pulled
    assert found is not None
    assert (found.entries, found.cloned) == (50, 50)
    assert entries(office) == entries(there)


def test_a_part_that_is_sent_again_changes_nothing(served: Served) -> None:
    """Sending a part twice, or one from before, leaves the log and what is remembered of it as they were."""
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine(), agent="office"), served.ledger(tenant)
    things(there, 50)
    things(office, 0, 2)
    things(office, 2, 2)
    log = entries(office)[0].log
    parts = [b"".join(line + b"\n" for line in _exported(office)[start : start + 2]) for start in (0, 2)]
    leaf = entries(office)[1].leaf().hex()

    def send(part: int) -> woodrat.Imported:
        about: dict[str, Any] = {"after": 1, "leaf": leaf} if part else {}
        return receiver.receive(there.context, io.BytesIO(parts[part]), log=log, **about)

    assert send(1).merged == 2
    assert peers.Near(there.context, "there").taken(log) is None, "what comes before was not seen"
    assert [send(part).merged for part in (0, 1, 0, 1)] == [2, 0, 0, 0]
    assert peers.Near(there.context, "there").taken(log) == (3, entries(office)[3].leaf())
    assert len(entries(there)) == 5


# Erasures


@pytest.mark.parametrize("eraser", ["here", "there"])
def test_erasures_travel_both_ways(tmp_path: Path, eraser: str) -> None:
    """What one end was asked to forget the other forgets too, from its files; and it does not come back."""
    (tmp_path / "store").mkdir()
    engine = SqliteEngine(tmp_path / "store" / "served.db")
    found = Served(engine, key_for(tmp_path / "keys" / "there"))
    with found.server:
        here = woodrat.open(tmp_path / "store" / "here.db", keys=key_for(tmp_path / "keys" / "here"), agent="here")
        there = found.ledger("acme")
        tell(here)
        things(there, 0)
        assert here.log.sync(found.url, key="acme").same
        there.correct(PERSON, {"job": "sculptor of Quittenallee"})
        one, other = (here, there) if eraser == "here" else (there, here)
        one.erase(PERSON, reason="a request")
        assert theirs(other)
        for _ in range(3):
            synced = here.log.sync(found.url, key="acme")
        assert synced.same
        assert theirs(here) == theirs(there) == []
        for ledger in (here, there):
            ledger.finish_erasure()
            assert ledger.verify(deep=True).damage == ()
        here.close()
    engine.close()
    assert hits(tmp_path / "store") == {}


def test_an_erasure_without_its_key_is_refused_by_name(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that lacks the erasure key says so, and the refusal names the server."""
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "nothing"))
    tenant = served.tenant()
    with woodrat.open(":memory:", keys=key_for(tmp_path / "keys"), agent="here") as here:
        tell(here)
        things(served.ledger(tenant), 0)
        here.erase(PERSON, reason="a request")
        with pytest.raises(Refused, match=rf"{served.url}: erasure: .* is an erasure, and no erasure key is"):
            here.log.sync(served.url, key=tenant)


def test_an_interrupted_import_still_forgets(tmp_path: Path) -> None:
    """An old export that breaks off after its first part, and is imported again, leaves nothing of what was erased."""
    keys = key_for(tmp_path / "keys")
    with woodrat.open(":memory:", keys=keys, agent="a", clock=FixedClock()) as ledger:
        tell(ledger)
        old = b"".join(line + b"\n" for line in _exported(ledger))
        ledger.erase(PERSON, reason="a request")
    with woodrat.open(":memory:", keys=keys) as fresh, pytest.MonkeyPatch.context() as patch:
        patch.setattr("woodrat.exchange.verbs.importer.BATCH_ENTRIES", 1)
        with pytest.raises(Refused, match="the line is cut off"):
            fresh.log.import_(io.BytesIO(old[:-10]))
        assert theirs(fresh)
        assert fresh.log.import_(io.BytesIO(old)).erasures == 1
        assert theirs(fresh) == []


def test_a_server_that_was_killed_before_it_forgot_makes_up_for_it(tmp_path: Path) -> None:
    """What the keys of a server remember as erased goes from an old log that is pushed, also after a crash."""
    keys = key_for(tmp_path / "keys")
    with woodrat.open(":memory:", keys=keys, agent="a", clock=FixedClock()) as first:
        tell(first)
        old = b"".join(line + b"\n" for line in _exported(first))
        first.erase(PERSON, reason="a request")
    found = Served(InMemoryEngine(), keys)
    with found.server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("WOODRAT_SIGNING_KEYS", "")
        patch.setenv("XDG_CONFIG_HOME", str(tmp_path / "nothing"))
        office, there = ledger_on(InMemoryEngine(), agent="office"), found.ledger("acme")
        office.log.import_(io.BytesIO(old))
        with pytest.MonkeyPatch.context() as killed:

            def fails(*_: object) -> int:
                raise Unavailable("planted")

            killed.setattr("woodrat.erasure.verbs.arrivals.remembered", fails)
            with pytest.raises(Unavailable, match="planted"):
                office.log.sync(found.url, key="acme")
        assert theirs(there)
        assert there.verify(deep=True).damage == ()
        assert office.log.sync(found.url, key="acme", pull=False).pushed.erasures == 1  # type: ignore[union-attr]
        assert theirs(there) == []
        assert there.verify(deep=True).damage == ()


def test_what_is_erased_while_it_is_read_is_explained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure that is made while a log is being read comes with it, so that no entry is gone without a reason."""
    monkeypatch.setattr(peers, "PART_ENTRIES", 2)
    with woodrat.open(":memory:", keys=key_for(tmp_path / "keys"), agent="a", clock=FixedClock()) as ledger:
        things(ledger, 0, 2)
        tell(ledger)
        reading = peers.parts(ledger.context.engine, ledger.tenant, -1)
        read = next(reading)
        ledger.erase(PERSON, reason="a request")
        read += [entry for part in reading for entry in part]
        assert read == entries(ledger)
        assert any(entry.body is None for entry in read)


# What can be wrong


@contextmanager
def answering(status: int, body: bytes) -> Iterator[str]:
    """A server that is none of ours: it answers everything alike."""

    class Answering(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *about: Any) -> None:
            """Nobody listens."""

    server = HTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join(10)


MISSING = b'{"code": "not_found", "detail": "there is no such address", "details": {}}'
NEWER = b'{"format": 99, "log": null, "position": -1, "root": "", "leaves": [], "taken": null}'


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (200, b"<html>hello</html>", "does not answer as a Woodrat server does"),
        (200, b'{"format": 0, "position": "x", "root": 1, "leaves": [3], "taken": 7}', "does not answer as"),
        (302, b"", "does not answer as a Woodrat server does"),
        (404, b"nothing here", "does not answer as a Woodrat server does"),
        (404, MISSING, "servers of this release"),
        (200, NEWER, r"keeps logs of format 99, and this release format \d"),
    ],
)
def test_other_servers_are_told_apart(status: int, body: bytes, said: str) -> None:
    """A server that is none of ours, or of another release, is refused by its address before anything is exchanged."""
    office = ledger_on(InMemoryEngine())
    things(office, 0)
    with answering(status, body) as url, pytest.raises(Refused, match=rf"{url} .*{said}(.|\n)*Nothing was exchanged"):
        office.log.sync(url, key="k")


def test_keys_and_grants_are_asked_for(served: Served) -> None:
    """Without a key, or with one that lacks the grant, it is said which is needed, and what was done all the same."""
    tenant = served.tenant()
    office, there = ledger_on(InMemoryEngine()), served.ledger(tenant)
    things(office, 0)
    things(there, 1)
    with pytest.raises(Forbidden, match="The API key is missing or not valid"):
        office.log.sync(served.url)
    with pytest.raises(Forbidden, match="may not read"):
        office.log.sync(served.url, key=f"{tenant}:manage")
    assert len(entries(office)) == 1
    with pytest.raises(
        Forbidden, match=r"were imported here; .* may not change schemas or tags, or import a log\. .*'manage'"
    ):
        office.log.sync(served.url, key=f"{tenant}:read,write,correct,run")
    assert len(entries(office)) == 2
    assert len(entries(there)) == 1
    with pytest.raises(Refused, match="only a server accepts a key"):
        office.log.sync(there, key="k")
    with pytest.raises(Refused, match="not an API key"):
        office.log.sync(served.url, key="ключ")


def test_a_connection_that_is_not_secure_is_none(
    served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without TLS on the other end, or with a certificate nobody vouches for, nothing is sent, and it is said why."""
    office = ledger_on(InMemoryEngine())
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1: no secure connection \(.*Use http://"):
        office.log.sync(served.url.replace("http://", "https://"), key="k")
    cert, secret = tmp_path / "c.pem", tmp_path / "k.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-days", "2"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["openssl", "req", "-x509", *kind, "-keyout", str(secret), "-out", str(cert), *name]
    subprocess.run(made, check=True, capture_output=True)
    with serve(tmp_path / "a.db", "--tls-cert", str(cert), "--tls-key", str(secret)) as (port, _):
        with pytest.raises(Unavailable, match=r"its certificate is not trusted \(self.signed certificate"):
            office.log.sync(f"https://localhost:{port}")
        monkeypatch.setenv("SSL_CERT_FILE", str(cert))
        with pytest.raises(Unavailable, match=r"its certificate is not trusted \(IP address mismatch"):
            office.log.sync(f"https://127.0.0.1:{port}")
        assert office.log.sync(f"https://localhost:{port}").same
        with pytest.raises(Unavailable, match=r"does not speak HTTP.*Use https://"):
            office.log.sync(f"http://localhost:{port}")


def test_nobody_there_is_said() -> None:
    """An address at which nobody answers is unavailable, and calling again is safe."""
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1: no answer \(ConnectionRefusedError\)"):
        ledger_on(InMemoryEngine()).log.sync(f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize(
    ("about", "faults"),
    [
        ({"log": 7, "after": -2, "leaf": "xyz"}, {"log", "after", "leaf"}),
        ({"log": "nothing", "after": True, "leaf": "z" * 64}, {"log", "after", "leaf"}),
        ({"entries": {}}, {"/entries"}),
        ({"entries": [1]}, {"/entries/0"}),
        ({"entries": [{"format": 0}]}, None),
    ],
)
def test_what_cannot_be_received_is_refused(about: dict[str, Any], faults: set[str] | None) -> None:
    """A part of another shape, or with a place that is none, is refused with all faults, and nothing is taken in."""
    ledger = ledger_on(InMemoryEngine())
    with pytest.raises(Refused) as refused:
        receiver.receive(ledger.context, **{"entries": [], **about})
    found = {fault.path for fault in refused.value.faults}
    assert found == faults if faults is not None else all(path.startswith("/entries/0") for path in found)
    assert "Nothing was imported" in str(refused.value)


# The client's export and import, and the command


def test_an_export_from_a_server_is_resumed(served: Served, tmp_path: Path) -> None:
    """A file that was cut short, even inside a write, or that the log has outgrown, gets the rest from the server."""
    tenant = served.tenant()
    there = served.ledger(tenant)
    things(there, 0, 3)
    there.sources.add(b"about", name="it")
    things(there, 3, 2)
    whole = tmp_path / "whole.jsonl"
    there.log.export(whole)
    data, out = whole.read_bytes(), tmp_path / "far.jsonl"
    with woodrat.open(served.url, key=tenant) as remote:
        for size in sorted({0, 1, len(data) // 3, len(data) // 2, len(data) - 1, len(data)}):
            out.write_bytes(data[:size])
            found = remote.log.export(out, resume=True)
            assert out.read_bytes() == data, size
            assert found.through == there.position
        things(there, 5, 4)
        assert remote.log.export(out, resume=True).entries == 4
        there.log.export(whole, force=True)
        assert out.read_bytes() == whole.read_bytes()
        fresh = tmp_path / "fresh.jsonl"
        assert remote.log.export(fresh, resume=True).entries == there.position + 1
        other = served.ledger(served.tenant())
        things(other, 0, 3)
        other.log.export(out, force=True)
        kept = out.read_bytes()
        with pytest.raises(Refused, match="which differs from this log"):
            remote.log.export(out, resume=True)
        out.write_bytes(b"something else\n")
        with pytest.raises(Refused, match="not an exported entry"):
            remote.log.export(out, resume=True)
    assert out.read_bytes() == b"something else\n"
    assert kept


def test_a_server_gives_and_takes_exports(served: Served, tmp_path: Path) -> None:
    """The export of a served log is that of the log itself, byte for byte, and one is taken in once."""
    tenant, other = served.tenant(), served.tenant()
    there = served.ledger(tenant)
    things(there, 0, 3)
    there.sources.add(b"\x00\xff", name="raw")
    there.store({"entity_type": "thing", "id": "f", "value": 1e21, "text": "é\u2028"})
    with woodrat.open(served.url, key=tenant) as remote:
        got = remote.log.export(tmp_path / "far.jsonl")
        here = there.log.export(tmp_path / "near.jsonl")
        assert got == woodrat.ExportedLog(**{**here.to_json(), "out": got.out})
        assert (tmp_path / "far.jsonl").read_bytes() == (tmp_path / "near.jsonl").read_bytes()
        out = io.BytesIO()
        assert remote.log.export(out, after=2, through=4).entries == 2
        with pytest.raises(Refused, match="already exists"):
            remote.log.export(tmp_path / "far.jsonl")
        with pytest.raises(Refused, match="got 99"):
            remote.log.export(out, after=99)
        with pytest.raises(Refused, match="which is not whole"):
            remote.log.export(io.BytesIO(), after=0)
        assert not remote.log.import_(tmp_path / "far.jsonl").changed
    with woodrat.open(served.url, key=other) as remote:
        assert remote.log.import_(tmp_path / "far.jsonl").cloned == there.position + 1
        with open(tmp_path / "far.jsonl", "rb") as file:
            assert remote.log.import_(file).known == there.position + 1
        with pytest.raises(Refused, match="line 1"):
            remote.log.import_(io.BytesIO(b"{}\n"))
    assert entries(served.ledger(other)) == entries(there)


def test_the_command(
    served: Served, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`woodrat sync URL` takes its key from --key or WOODRAT_TOKEN."""
    tenant = served.tenant()
    things(served.ledger(tenant), 0)
    db = ["--db", str(tmp_path / "a.db"), "--output", "table"]
    assert main(["sync", served.url, *db]) == 7
    assert "The API key is missing" in capsys.readouterr().err
    assert main(["sync", served.url, "--key", tenant, *db]) == 0
    assert "Both hold the same state." in capsys.readouterr().out
    monkeypatch.setenv("WOODRAT_TOKEN", tenant)
    assert main(["sync", served.url, *db]) == 0
    assert main(["sync", str(tmp_path / "a.db"), "--db", str(tmp_path / "b.db")]) == 0
