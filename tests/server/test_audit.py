"""Who looked at what, keys that change while a server runs, and logs that tell no contents."""

from __future__ import annotations

import io
import json
import logging
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.server.server import Server

from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.errors import Corrupt, Fault, NotFound, Refused, Unavailable
from woodrat.ledger.own_policy import registry
from woodrat.server import logs
from woodrat.server.access import Caller
from woodrat.server.audit import AUDIT_TENANT, OTHERS, TOGETHER_MAX, WAITING_MAX, Audit, looked
from woodrat.server.keys import Keyring

Start = Callable[..., Server]
RECORD = {"records": {"entity_type": "contact", "name": "Ana", "city": "marker-city"}}


def audit_of(engine: SqliteEngine) -> Ledger:
    return Ledger(engine, tenant=AUDIT_TENANT, agent="t", clock=SystemClock(), policies=registry(()))


def test_every_read_of_a_key_is_on_record(start: Start, keyring: Keyring, engine: SqliteEngine, tmp_path: Path) -> None:
    """Which key asked what about which entity, how often and whether it was let is kept; what it was told is not."""
    key, secret = keyring.create("lending", "auditor", ["read:contact", "write"])
    server = start(keyring)
    server.call("POST", "/v1/store", RECORD, key=secret)
    for _ in range(3):
        server.call("GET", "/v1/entities/contact/Ana", key=secret)
    server.call("GET", "/v1/history/contact/Ana?as_of=0", key=secret)
    server.call("GET", "/v1/entities/loan/42", key=secret)
    server.call("GET", "/v1/search?query=marker-word&entity_type=contact", key=secret)
    server.app.close()
    found = list(looked(audit_of(engine), key.id))
    told = [(one.verb, one.target, one.as_of, one.outcome) for one in found]
    assert sorted(set(told), key=str) == [
        ("history", "contact/Ana", "0", "success"),
        ("search", "contact", None, "success"),
        ("show", "contact/Ana", None, "success"),
        ("show", "loan/42", None, "denied"),
    ]
    assert sum(one.count for one in found if one.target == "contact/Ana" and one.verb == "show") == 3
    assert all((one.agent, one.tenant) == ("auditor", "lending") for one in found)
    told_all = json.dumps([one.to_json() for one in looked(audit_of(engine))])
    assert "marker" not in told_all
    assert list(looked(audit_of(engine), "key_other")) == []


def test_the_audit_is_bounded_and_loses_nothing(engine: SqliteEngine) -> None:
    """Beyond a number of different reads only their count is kept; what cannot be written now is written later."""
    ledger = audit_of(engine)
    audit = Audit(ledger, SystemClock())
    caller = Caller("lending", "a", key="key_1")
    for number in range(WAITING_MAX + 50):
        audit.note(caller, "show", {"ref": f"contact/{number}"}, "r", "success")
    assert audit.flush() == WAITING_MAX + 1
    found = list(looked(ledger))
    assert [one.count for one in found if one.target == OTHERS] == [50]
    assert {one.target for one in found if one.count == 1} == {f"contact/{number}" for number in range(WAITING_MAX)}
    assert audit.flush() == 0


ODD = ["contact/%00", "contact/%01x", "contact/%7f", "contact/%C2%80", "contact/%0d%0aX:1", "contact/%ED%A0%80"]
"""Addresses with bytes that no name has: control characters, and half a surrogate pair."""


def test_no_address_stops_the_audit(start: Start, keyring: Keyring, engine: SqliteEngine) -> None:
    """An address with odd bytes is refused cleanly, and the reads of all keys before and after it are on record."""
    (key, secret), (other, theirs) = keyring.create("lending", "a", ["*"]), keyring.create("acme", "b", ["*"])
    server = start(keyring)
    server.call("GET", "/v1/entities/contact/before", key=theirs)
    for odd in ODD:
        for path in (f"/v1/entities/{odd}", f"/v1/history/{odd}", f"/v1/observations?ref={odd}"):
            assert 400 <= server.call("GET", path, key=secret).status < 500, path
    for path in ("/v1/entities?entity_type=%00", "/v1/runs/%00", "/v1/search?query=a&as_of=%00", "/v1/%00"):
        assert 400 <= server.call("GET", path, key=secret).status < 500, path
    server.call("GET", "/v1/entities/contact/after", key=theirs)
    server.app.close()
    assert [one.target for one in looked(audit_of(engine), other.id)] == ["contact/before", "contact/after"]
    assert server.app.audit.dropped == 0
    assert all(one.target is None or one.target.isprintable() for one in looked(audit_of(engine), key.id))


def test_arguments_that_were_refused_are_not_on_record(start: Start, keyring: Keyring, engine: SqliteEngine) -> None:
    """That a verb refused a call is on record, without its arguments; a thing that is not found was asked for."""
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    assert server.call("GET", "/v1/entities/contact/x?as_of=never", key=secret).status == 400
    assert server.call("GET", "/v1/history/nonsense", key=secret).status == 400
    assert server.call("GET", "/v1/entities/contact/nobody", key=secret).status == 404
    server.app.close()
    assert {(one.verb, one.target, one.outcome) for one in looked(audit_of(engine), key.id)} == {
        ("history", None, "failure"),
        ("show", None, "failure"),
        ("show", "contact/nobody", "success"),
    }


def fails(error: Exception) -> Callable[..., Any]:
    def answer(self: Any, **asked: Any) -> Any:
        raise error

    return answer


@pytest.mark.parametrize(
    ("ends", "status", "outcome"),
    [
        (None, 200, "success"),
        (NotFound("There is no such thing."), 404, "success"),
        (Refused([Fault("ref", "it is odd", "Send another.")]), 400, "failure"),
        (Unavailable("The disk is full."), 503, "failure"),
        (Corrupt("A digest differs."), 500, "failure"),
        (ValueError("a mistake of ours"), 500, "failure"),
        ("late", 503, "failure"),
        ("denied", 403, "denied"),
    ],
    ids=str,
)
def test_every_outcome_of_a_read_is_on_record(
    start: Start,
    keyring: Keyring,
    engine: SqliteEngine,
    monkeypatch: pytest.MonkeyPatch,
    ends: Any,
    status: int,
    outcome: str,
) -> None:
    """However a read ends, the audit takes it by the schema of its events, and loses none."""
    key, secret = keyring.create("lending", "a", ["read:contact"] if ends == "denied" else ["*"])
    server = start(keyring, read_seconds=0.1 if ends == "late" else 30.0)
    late = threading.Event()
    if isinstance(ends, Exception):
        monkeypatch.setattr("woodrat.api.past.Past.observations", fails(ends))
    elif ends == "late":
        monkeypatch.setattr("woodrat.api.past.Past.observations", lambda self, **asked: late.wait(10))
    answer = server.call("GET", "/v1/observations", key=secret)
    late.set()
    assert answer.status == status, answer.body
    server.app.audit.flush()
    assert (server.app.audit.dropped, server.app.audit.problem) == (0, None)
    assert [(one.verb, one.outcome, one.count) for one in looked(audit_of(engine), key.id)] == [
        ("observations", outcome, 1)
    ]


def test_an_outcome_that_the_schema_lacks_is_caught(engine: SqliteEngine) -> None:
    """The planted fault: an outcome that is none of the schema's is our mistake, and no event that is dropped."""
    with pytest.raises(AssertionError):
        Audit(audit_of(engine), SystemClock()).note(Caller("t", "a", key="k"), "show", {}, "r", "failed")


def test_whoever_takes_some_of_an_answer_has_looked(start: Start, keyring: Keyring, engine: SqliteEngine) -> None:
    """A read is on record before a byte of its answer is sent: a reader who takes some of it and stalls is there."""
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    server.call("POST", "/v1/sources", {"text": "x" * 8_000_000}, key=secret, timeout=30)
    (source,) = server.call("GET", "/v1/sources", key=secret).json["items"]
    server.app.audit.flush()
    with socket.socket() as reader:
        reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
        reader.settimeout(10)
        reader.connect(("127.0.0.1", server.port))
        asked = (
            f"GET /v1/sources/{source['source']} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n\r\n"
        )
        reader.sendall(asked.encode())
        assert reader.recv(1_000).startswith(b"HTTP/1.1 200")
        server.app.audit.flush()  # the rest of the answer waits for its reader
        found = [(one.verb, one.outcome) for one in looked(audit_of(engine), key.id)]
    assert ("sources_show", "success") in found


def test_who_leaves_before_the_answer_is_on_record(
    start: Start, keyring: Keyring, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long read whose follower goes away is on record as one that was not answered."""
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    left = threading.Event()
    monkeypatch.setattr(server.app.reads, "workers", None)
    monkeypatch.setattr("woodrat.api.ledger.Ledger.verify", lambda self, **asked: left.wait(10))
    with socket.create_connection(("127.0.0.1", server.port), 10) as follower:
        asked = f"GET /v1/verify HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {secret}\r\n"
        follower.sendall(f"{asked}Accept: text/event-stream\r\n\r\n".encode())
        assert follower.recv(1_000).startswith(b"HTTP/1.1 200")

    def noted() -> bool:
        server.app.audit.flush()
        return [(one.verb, one.outcome) for one in looked(audit_of(engine), key.id)] == [("verify", "failure")]

    eventually(noted)
    left.set()


def bad_event(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """Have the ledger of the audit refuse whatever tells of contact/bad."""
    stored = ledger.store

    def store(records: Any, **about: Any) -> Any:
        if any(record.get("target") == "contact/bad" for record in records):
            raise Refused([Fault("/0/target", "it is bad", "Leave it out.")])
        return stored(records, **about)

    monkeypatch.setattr(ledger, "store", store)


def lost(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, kind: type[Audit]) -> tuple[set[str | None], int]:
    """Note three reads, one of which cannot be written; return what is on record, and how many were dropped."""
    ledger = audit_of(engine)
    audit = kind(ledger, SystemClock())
    bad_event(monkeypatch, ledger)
    for number, target in enumerate(("contact/first", "contact/bad", "contact/last")):
        caller = Caller("t", f"agent-{number}", key=f"key_{number}")
        audit.note(caller, "show", {"ref": target}, "r", "success")
    with suppress(Refused):
        audit.flush()
    return {one.target for one in looked(ledger)}, audit.dropped


def test_one_bad_event_loses_no_other(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """An event that cannot be written is dropped by itself and counted; all others are written."""
    assert lost(engine, monkeypatch, Audit) == ({"contact/first", "contact/last"}, 1)


def test_an_audit_that_drops_a_batch_is_caught(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: an audit that writes all events together, or none, loses the good ones with the bad one."""

    class Batched(Audit):
        def _write(self, events: Any) -> None:
            self.ledger.store(list(events))

    assert lost(engine, monkeypatch, Batched) != ({"contact/first", "contact/last"}, 1)


def test_lost_events_are_told(start: Start, keyring: Keyring, monkeypatch: pytest.MonkeyPatch) -> None:
    """After an event was lost the server says that it is degraded, counts it, and goes on answering."""
    _, secret = keyring.create("lending", "a", ["*"])
    _, operator = keyring.create("ops", "prometheus", ["metrics"])
    server = start(keyring)
    assert server.call("GET", "/readyz").json == {"status": "ok"}
    bad_event(monkeypatch, server.app.audit.ledger)
    server.call("GET", "/v1/entities/contact/bad", key=secret)
    eventually(lambda: server.app.audit.dropped == 1)
    ready = server.call("GET", "/readyz")
    assert (ready.status, ready.json["status"]) == (200, "degraded")
    assert "lost 1 events" in ready.json["problem"]
    text = server.call("GET", "/metrics", key=operator).body.decode()
    assert "woodrat_audit_events_dropped_total 1\n" in text
    assert "woodrat_audit_degraded 1\n" in text
    assert server.call("GET", "/v1/conflicts", key=secret).status == 200


def test_what_cannot_be_written_now_waits(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the engine takes no writes nothing is dropped: the events are written when it does again."""
    ledger = audit_of(engine)
    audit = Audit(ledger, SystemClock())
    audit.note(Caller("t", "a", key="key_1"), "show", {"ref": "contact/x"}, "r", "success")

    def fail(records: Any, **about: Any) -> Any:
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(ledger, "store", fail)
        with pytest.raises(Unavailable):
            audit.flush()
    assert (audit.dropped, "cannot be written now" in (audit.problem or "")) == (0, True)
    assert (audit.flush(), audit.problem) == (1, None)
    assert [one.target for one in looked(ledger)] == ["contact/x"]


def test_what_a_key_asks_in_a_second_is_few_events(engine: SqliteEngine) -> None:
    """Reads of many things by one key and verb are told in few events, and each is told apart again when asked for."""
    ledger = audit_of(engine)
    audit = Audit(ledger, SystemClock())
    for number in range(TOGETHER_MAX + 1):
        audit.note(Caller("t", "a", key="key_1"), "show", {"ref": f"contact/{number}"}, f"r{number}", "success")
    audit.note(Caller("t", "a", key="key_1"), "show", {"ref": "contact/0"}, "again", "success")
    audit.note(Caller("t", "b", key="key_2"), "history", {"ref": "contact/0", "as_of": "3"}, "other", "denied")
    audit.flush()
    assert len(list(ledger.observations())) == 3
    found = {(one.key, one.verb, one.target, one.as_of): one for one in looked(ledger)}
    assert len(found) == TOGETHER_MAX + 2
    first = found["key_1", "show", "contact/0", None]
    assert (first.count, first.request, first.outcome) == (2, "r0", "success")
    assert first.at <= first.last_at
    other = found["key_2", "history", "contact/0", "3"]
    assert (other.count, other.agent, other.outcome, other.request) == (1, "b", "denied", "other")
    assert [one.target for one in looked(ledger, "key_2")] == ["contact/0"]


def test_a_key_revoked_by_another_process_opens_nothing(start: Start, keyring: Keyring, engine: SqliteEngine) -> None:
    """`woodrat keys revoke` counts for a server that runs, and so does a key made meanwhile."""
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    assert server.call("GET", "/v1/conflicts", key=secret).status == 200
    woodrat(engine, "keys", "revoke", key.id)
    made = json.loads(
        woodrat(engine, "keys", "create", "--tenant", "lending", "--agent", "b", "--grant", "*", "-o", "json")
    )
    eventually(lambda: server.call("GET", "/v1/conflicts", key=secret).status == 401)
    eventually(lambda: server.call("GET", "/v1/conflicts", key=made["key"]).status == 200)

    def audited() -> list[str]:
        listed = json.loads(woodrat(engine, "keys", "audit", key.id, "-o", "json"))["items"]
        return [read["verb"] for read in listed]

    eventually(lambda: audited()[:1] == ["conflicts"])
    tenants = json.loads(woodrat(engine, "tenants", "list", "-o", "json"))["items"]
    assert [each["tenant"] for each in tenants] == []


def woodrat(engine: SqliteEngine, *words: str) -> str:
    command = [
        sys.executable,
        "-c",
        "import sys; from woodrat.cli.main import main; sys.exit(main())",
        "--db",
        str(engine.path),
        *words,
    ]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    return found.stdout


def eventually(holds: Callable[[], bool], tries: int = 400) -> None:
    """Ask until it holds, with a pause between two asks: the server looks for changes once a second."""
    pause = threading.Event()
    assert any(holds() or pause.wait(0.05) for _ in range(tries))


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> Iterator[io.StringIO]:
    """What is logged, at the most talkative level."""
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    loggers = [logging.getLogger(name) for name in (logs.NAME, *logs.OTHERS)]
    before = [(log.handlers, log.propagate, log.level) for log in loggers]
    logs.configure("debug")
    yield stream
    for log, (handlers, propagate, level) in zip(loggers, before, strict=True):
        log.handlers, log.propagate = handlers, propagate
        log.setLevel(level)


def test_logs_carry_ids_and_no_contents(start: Start, keyring: Keyring, lines: io.StringIO) -> None:
    """Each request is a line of JSON with its id, verb, status, tenant and key; nothing that was sent is in it."""
    key, secret = keyring.create("lending", "a", ["*"])
    server = start(keyring)
    answer = server.call("POST", "/v1/store", RECORD, key=secret)
    server.call("GET", "/v1/search?query=marker-word", key=secret)
    server.call("POST", "/v1/store", b'{"marker-broken', headers={"Content-Type": "application/json"}, key=secret)
    server.call("GET", "/v1/marker-path", key=secret)
    told: list[dict[str, Any]] = [json.loads(line) for line in lines.getvalue().splitlines()]
    requests = [line for line in told if line["event"] == "request"]
    assert [line["status"] for line in requests] == [200, 200, 400, 404]
    first = requests[0]
    assert (first["request"], first["tenant"], first["key"]) == (answer.headers["x-request-id"], "lending", key.id)
    assert "marker" not in lines.getvalue()
    assert secret not in lines.getvalue()


def test_a_failure_of_the_server_is_logged_without_its_message(lines: io.StringIO) -> None:
    """Where it failed and by which class of error is said; the message may hold what a caller sent."""
    try:
        raise ValueError("marker-value")
    except ValueError as error:
        logs.failed(error, request="r1")
    told = json.loads(lines.getvalue())
    assert (told["event"], told["error"], told["request"]) == ("failed", "ValueError", "r1")
    assert told["where"]
    assert "marker" not in lines.getvalue()


def test_forwarded_headers_count_only_behind_a_proxy(start: Start, keyring: Keyring) -> None:
    """Without being told of a proxy nobody is believed to be one; with it, the name it was called by must be ours."""
    _, secret = keyring.create("lending", "a", ["*"])
    sent = {"Host": "inner.example", "X-Forwarded-Host": "localhost"}
    assert start(keyring).call("GET", "/v1/conflicts", headers=sent, key=secret).status == 421
    proxied = start(keyring, proxied=True)
    assert proxied.call("GET", "/v1/conflicts", headers=sent, key=secret).status == 200
    other = {"Host": "localhost", "X-Forwarded-Host": "evil.example"}
    assert proxied.call("GET", "/v1/conflicts", headers=other, key=secret).status == 421
