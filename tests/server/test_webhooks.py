"""Webhooks: signed, in order, at least once; and dead letters."""

from __future__ import annotations

import http.client
import json
import socket
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from tests.server.test_audit import eventually

from woodrat import NotFound, Refused
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.records import replace
from woodrat.server import deliveries
from woodrat.server.deliveries import TENANT_THREADS, THREADS, Deliverer, Deliveries
from woodrat.server.webhooks import HOOKS_MAX, TRIES_MAX, WEBHOOKS_TENANT, Hooks, signature, verify
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

SECRET = b"a secret of many bytes"


class Receiver:
    """An address that takes deliveries, or refuses the next few."""

    def __init__(self) -> None:
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.refusing = 0
        self.tries = 0
        self.news = threading.Event()
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                receiver.tries += 1
                if receiver.refusing:
                    receiver.refusing -= 1
                    self.send_response(500)
                else:
                    receiver.taken.append((dict(self.headers.items()), body))
                    self.send_response(204)
                self.end_headers()
                receiver.news.set()

            def log_message(self, *_: Any) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook?x=1"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def positions(self) -> list[int]:
        return [entry["position"] for _, body in self.taken for entry in json.loads(body)["entries"]]


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


@pytest.fixture
def engine() -> InMemoryEngine:
    return InMemoryEngine()


@pytest.fixture
def ledger(engine: InMemoryEngine) -> Ledger:
    return ledger_on(engine, "lending")


@pytest.fixture
def hooks(engine: InMemoryEngine) -> Hooks:
    return Hooks(ledger_on(engine, WEBHOOKS_TENANT), FixedClock())


@pytest.fixture
def secret(tmp_path: Path) -> str:
    path = tmp_path / "hook.secret"
    path.write_bytes(SECRET + b"\n")
    path.chmod(0o600)
    return str(path)


def store(ledger: Ledger, count: int = 1) -> None:
    for number in range(count):
        ledger.store({"entity_type": "thing", "id": str(number), "n": ledger.position})


class Sender(Deliverer):
    """Sends for a webhook, and does not wait between tries."""

    def send(self, after: int) -> int:
        """Send what comes next after a position; return the position it is done with then."""
        self.position = after
        while self.step() not in (0.0, None):
            pass
        return self.position

    def send_again(self, letter: Any) -> None:
        """Send a dead letter once more."""
        self.retry(letter)
        self.send(self.position)


def deliverer(hooks: Hooks, ledger: Ledger) -> Sender:
    """Return what sends for the only webhook."""
    return Sender(hooks.all()[0], hooks, ledger, FixedClock())


def test_entries_are_delivered_signed_and_in_order(
    hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver
) -> None:
    """Every entry comes in order, in a body whose signature only the secret makes; the place moves on with each."""
    hooks.add("lending", receiver.url, secret)
    store(ledger, 3)
    sender = deliverer(hooks, ledger)
    assert sender.send(-1) == 2
    store(ledger, 2)
    assert sender.send(2) == 4
    assert sender.send(4) == 4
    assert receiver.positions() == [0, 1, 2, 3, 4]
    assert hooks.all()[0].position == 4
    headers, body = receiver.taken[0]
    at = int(headers["Woodrat-Signature"].split(",")[0].removeprefix("t="))
    assert verify(SECRET, headers["Woodrat-Signature"], body, at)
    assert not verify(SECRET, headers["Woodrat-Signature"], body + b" ", at)
    assert not verify(b"another secret", headers["Woodrat-Signature"], body, at)
    assert not verify(SECRET, headers["Woodrat-Signature"], body, at + 1_000)
    assert not verify(SECRET, "nonsense", body, at)
    assert signature(SECRET, at, body) == headers["Woodrat-Signature"]


def test_a_secret_is_changed_by_writing_another(hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver) -> None:
    """The file of a secret counts as it is when a delivery is sent."""
    hooks.add("lending", receiver.url, secret)
    sender = deliverer(hooks, ledger)
    for number, kept in enumerate((SECRET, b"another secret of many bytes")):
        Path(secret).write_bytes(kept)
        store(ledger)
        sender.send(number - 1)
        headers, body = receiver.taken[-1]
        at = int(headers["Woodrat-Signature"].split(",")[0].removeprefix("t="))
        assert verify(kept, headers["Woodrat-Signature"], body, at)


def test_who_is_outside_sends_nothing_inside(
    hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A webhook of a key is not connected to where its name leads to this machine or a private network."""
    named = replace(hooks.add("lending", receiver.url, secret), inside=False, url="http://hooks.example.org/")
    places = {"hooks.example.org": ["127.0.0.1"]}
    connected: list[tuple[str, int]] = []

    def found(host: str, port: int, **_: Any) -> list[Any]:
        return [(0, 0, 0, "", (place, port)) for place in places[host]]

    def connect(address: tuple[str, int], timeout: float) -> Any:
        connected.append(address)
        raise ConnectionRefusedError

    monkeypatch.setattr(socket, "getaddrinfo", found)
    monkeypatch.setattr(socket, "create_connection", connect)
    store(ledger)
    sender = Sender(named, hooks, ledger, FixedClock())
    for inside in (
        ["127.0.0.1"],
        ["10.1.2.3"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["fe80::1%eth0"],
        ["93.184.216.34", "::1"],
    ):
        places["hooks.example.org"] = inside
        assert sender.send(-1) == 0
        assert hooks.dead()[0]["problem"] == "InsideAddress", inside
    assert connected == []
    places["hooks.example.org"] = ["93.184.216.34"]
    assert sender.send(-1) == 0
    assert set(connected) == {("93.184.216.34", 80)}


def test_a_delivery_that_fails_is_tried_again(hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver) -> None:
    """What is refused is sent again, the same, before anything that came later."""
    hooks.add("lending", receiver.url, secret)
    store(ledger, 2)
    receiver.refusing = 3
    assert deliverer(hooks, ledger).send(-1) == 1
    assert (receiver.tries, receiver.positions()) == (4, [0, 1])
    assert hooks.dead() == []


def test_a_delivery_nobody_takes_is_a_dead_letter(
    hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver
) -> None:
    """After the last try it is listed with its positions and the problem, and later ones are sent."""
    id = hooks.add("lending", receiver.url, secret).id
    store(ledger, 2)
    receiver.refusing = TRIES_MAX
    sender = deliverer(hooks, ledger)
    assert sender.send(-1) == 1
    store(ledger)
    assert sender.send(1) == 2
    assert receiver.positions() == [2]
    [letter] = hooks.dead(id)
    assert (letter["first"], letter["last"], letter["tries"], letter["problem"]) == (0, 1, TRIES_MAX, "status 500")
    assert hooks.dead("hook_other") == []


def test_a_dead_letter_is_delivered_again(hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver) -> None:
    """Asked to, it is sent again whole: taken it is gone, refused once more it stays with its tries counted."""
    id = hooks.add("lending", receiver.url, secret).id
    store(ledger, 3)
    receiver.refusing = 2 * TRIES_MAX
    sender = deliverer(hooks, ledger)
    sender.send(-1)
    with pytest.raises(NotFound, match="no dead letter that begins at 7"):
        hooks.retry(id, 7)
    assert hooks.retry(id) == 1
    [letter] = hooks.dead(id)
    assert letter["again"] is True
    sender.send_again(letter)
    [letter] = hooks.dead(id)
    assert (letter["again"], letter["tries"]) == (False, 2 * TRIES_MAX)
    assert hooks.retry(id, 0) == 1
    sender.send_again(hooks.dead(id)[0])
    assert hooks.dead(id) == []
    assert receiver.positions() == [0, 1, 2]


def test_a_server_takes_up_what_is_to_be_sent_again(
    hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver
) -> None:
    """A running server hands a dead letter over once, and it is delivered and gone."""
    hook = hooks.add("lending", receiver.url, secret, after=0)
    store(ledger)
    hooks.bury(hook, 0, 0, TRIES_MAX, "status 500")
    gone = threading.Event()

    def heard(event: str, told: Any) -> None:
        gone.set()

    sending = Deliveries(hooks, lambda tenant: ledger, FixedClock(), heard)
    try:
        sending.refresh()
        hooks.retry(hook.id)
        for _ in range(3):
            sending.refresh()
        assert gone.wait(20)
    finally:
        sending.close()
    assert receiver.positions() == [0]
    assert hooks.dead() == []


def test_only_kinds_asked_for_are_sent(hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver) -> None:
    """Entries of other kinds move the place on, and nothing is sent for them alone."""
    hooks.add("lending", receiver.url, secret, ["tag"])
    store(ledger)
    sender = deliverer(hooks, ledger)
    assert sender.send(-1) == 0
    assert receiver.tries == 0
    ledger.tag("release")
    assert sender.send(0) == 1
    assert receiver.positions() == [1]


def test_a_server_takes_up_webhooks_as_they_come_and_go(
    hooks: Hooks, ledger: Ledger, secret: str, receiver: Receiver
) -> None:
    """One that is added begins to be served, and one that is removed no longer is."""
    sending = Deliveries(hooks, lambda tenant: ledger, SystemClock(), lambda event, told: None)
    sending.refresh()
    hook = hooks.add("lending", receiver.url, secret)
    store(ledger)
    sending.refresh()
    assert receiver.news.wait(20)
    hooks.remove(hook.id)
    sending.refresh()
    sending.close()
    assert receiver.positions() == [0]
    with pytest.raises(NotFound):
        hooks.remove(hook.id)


def test_a_webhook_amiss_is_refused_with_all_faults(hooks: Hooks, tmp_path: Path) -> None:
    """Address, secret, kinds and tenant are checked together; nothing is kept."""
    (tmp_path / "short").write_text("short")
    with pytest.raises(Refused) as refused:
        hooks.add("woodrat.keys", "ftp://x", str(tmp_path / "none"), ["fly"], after=-5)
    assert {fault.path for fault in refused.value.faults} == {"tenant", "url", "secret_file", "kinds", "after"}
    for url in (
        "http://example.org/",
        "https://user:pass@example.org/",
        "https://",
        "https://h:99999/",
        "https://a b/",
    ):
        with pytest.raises(Refused):
            hooks.add("lending", url, str(tmp_path / "short"))
    assert hooks.all() == ()


@pytest.mark.parametrize("inside", [True, False])
def test_a_webhook_has_a_host_that_nobody_reads_otherwise(inside: bool) -> None:
    """Numbers and other spellings of addresses are refused, whoever adds the webhook; names and addresses are not."""
    odd = [
        "2130706433",
        "0x7f.1",
        "127.1",
        "0177.0.0.1",
        "[::ffff:7f00:1]",
        "127.0.0.1.",
        "example.org.",
        "[::1]x",
        "a%2e",
    ]
    for host in odd:
        (fault,) = Hooks.faults("lending", f"https://{host}/", [], -1, inside=inside)
        # The first versions of Python 3.11 cannot take this one apart.
        is_unreadable = host == "[::1]x" and "Invalid IPv6 URL" in fault.problem
        assert (fault.path, is_unreadable or "usual" in fault.problem) == ("url", True), (host, fault)
    for host in ("hooks.example.org", "HOOKS.example.org:8443", "8.8.8.8", "[2606:4700::1111]:443"):
        assert Hooks.faults("lending", f"https://{host}/", [], -1, inside=inside) == [], host


class Trickler:
    """An address that takes a request and lets its answer trickle in, a byte at a time, or goes on for ever."""

    def __init__(self, piece: bytes = b"H") -> None:
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/"
        self._piece, self._ended = piece, threading.Event()
        self.gone = threading.Event()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._trickle, args=(connection,), daemon=True).start()

    def _trickle(self, connection: socket.socket) -> None:
        with connection:
            try:
                while not self._ended.wait(0.05):
                    connection.sendall(self._piece)
            except OSError:
                self.gone.set()

    def close(self) -> None:
        self._ended.set()
        self._socket.close()


@pytest.fixture
def trickler() -> Iterator[Trickler]:
    found = Trickler()
    yield found
    found.close()


def test_an_answer_that_trickles_in_is_cut_off(
    hooks: Hooks, ledger: Ledger, secret: str, trickler: Trickler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A try ends when its time is over, though every byte of the answer came in time."""
    monkeypatch.setattr(deliveries, "TRY_SECONDS", 0.5)
    monkeypatch.setattr(deliveries, "POLL_SECONDS", 0.05)
    hooks.add("lending", trickler.url, secret)
    store(ledger)
    heard: list[Any] = []
    news = threading.Event()

    def hear(event: str, told: Any) -> None:
        heard.append(told["problem"])
        news.set()

    sending = Deliveries(hooks, lambda tenant: ledger, SystemClock(), hear)
    try:
        sending.refresh()
        assert news.wait(20)
        assert trickler.gone.wait(20)
    finally:
        sending.close()
    assert heard[0] == "TimeoutError"


def test_an_answer_without_an_end_is_not_read_to_it(hooks: Hooks, ledger: Ledger, secret: str) -> None:
    """No more of an answer is read than its first line may have."""
    flood = Trickler(b"x" * 40_000)
    try:
        hooks.add("lending", flood.url, secret)
        store(ledger)
        sender = deliverer(hooks, ledger)
        assert sender.step() == 1.0
        assert flood.gone.wait(20)
        assert sender.delivery is not None
    finally:
        flood.close()


def test_many_webhooks_share_few_threads(
    engine: InMemoryEngine, hooks: Hooks, secret: str, trickler: Trickler, receiver: Receiver
) -> None:
    """However many webhooks there are, and however slow, their threads are few and another tenant's is delivered."""
    slow, quick = ledger_on(engine, "slow"), ledger_on(engine, "quick")
    for number in range(HOOKS_MAX):
        hooks.add("slow", f"{trickler.url}{number}", secret)
    with pytest.raises(Refused, match="which is the limit"):
        hooks.add("slow", trickler.url, secret)
    store(slow)
    logs = {"slow": slow, "quick": quick}
    before = threading.active_count()
    sending = Deliveries(hooks, logs.__getitem__, SystemClock(), lambda event, told: None)
    try:
        sending.refresh()
        eventually(lambda: len(sending.busy) == TENANT_THREADS)
        assert sending.threads == THREADS + 1
        ours = [thread for thread in threading.enumerate() if thread.name.startswith("woodrat-webhooks")]
        assert len(ours) == THREADS + 1 <= threading.active_count() - before + THREADS
        hooks.add("quick", receiver.url, secret)
        store(quick)
        sending.refresh()
        assert receiver.news.wait(20)
    finally:
        trickler.close()
        sending.close()


def test_interim_answers_are_passed_over() -> None:
    """The status is that of the answer itself, however its bytes are cut; what is not HTTP is none."""

    def status(*pieces: bytes) -> int:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            for piece in pieces:
                theirs.sendall(piece)
            theirs.shutdown(socket.SHUT_WR)
            return deliveries.status_of(ours)

    assert status(b"HTTP/1.1 204 No Content\r\n\r\n") == 204
    assert status(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 5", b"03 Later\r\n") == 503
    for amiss in (b"", b"HTTP/1.1 2", b"hello\r\n\r\n", b"HTTP/1.1 100 Continue\r\n\r\n"):
        with pytest.raises((OSError, http.client.HTTPException)):
            status(amiss)


def test_a_secret_that_all_may_read_is_none(hooks: Hooks, secret: str) -> None:
    """The file of a secret must be its owner's alone."""
    Path(secret).chmod(0o644)
    with pytest.raises(Refused, match="every user of this machine can read"):
        hooks.add("lending", "https://hooks.example.org/", secret)
