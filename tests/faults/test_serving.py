"""A server that is killed or told to end while it is written to: what it acknowledged is there, once."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import woodrat

ROUNDS = 10 if os.environ.get("WOODRAT_FAULTS") == "full" else 2
WRITERS = 8
"""How many clients write at once."""
ACKNOWLEDGED = 60
"""After how many answers the server is killed."""
END_SECONDS = 10
"""How long a server may take to end."""


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


SERVE = "import sys; from woodrat.cli.main import main; sys.exit(main())"
"""The command line, as a process is told of it."""


@contextmanager
def serving(db: Path, port: int, code: str = SERVE) -> Iterator[subprocess.Popen[bytes]]:
    """A server in a process of its own, once it answers."""
    words = ["--db", str(db), "serve", "--port", str(port)]
    process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, "the server ended by itself"
                threading.Event().wait(0.05)
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)


class Writer(threading.Thread):
    """A client that writes one thing after another, each with its own key, until the server is gone."""

    def __init__(self, port: int, name: str, heard: list[str], enough: threading.Event) -> None:
        super().__init__(daemon=True)
        self._port, self._name, self._heard, self._enough = port, name, heard, enough
        self.refused = 0

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=20)
        number = 0
        try:
            while True:
                key = f"{self._name}-{number}"
                body = json.dumps({"records": {"entity_type": "thing", "id": key}})
                headers = {"Content-Type": "application/json", "Idempotency-Key": key}
                connection.request("POST", "/v1/store", body, headers)
                response = connection.getresponse()
                response.read()
                if response.status == 200:
                    self._heard.append(key)
                else:
                    assert response.status == 503
                    self.refused += 1
                    return
                number += 1
                if len(self._heard) >= ACKNOWLEDGED:
                    self._enough.set()
        except (OSError, http.client.HTTPException):
            return
        finally:
            connection.close()


def written(db: Path) -> list[str]:
    with woodrat.open(db) as ledger:
        assert ledger.rebuild().agreed
        return [stored.observation.entity.key for stored in ledger.observations()]


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM], ids=["killed", "told to end"])
@pytest.mark.parametrize("turn", range(ROUNDS))
def test_what_was_acknowledged_is_there_once(tmp_path: Path, ending: signal.Signals, turn: int) -> None:
    """Ended under load in either way: every acknowledged write is there, every key once, also after sending again."""
    db, port = tmp_path / "served.db", free_port()
    heard: list[str] = []
    enough = threading.Event()
    writers = [Writer(port, f"w{number}", heard, enough) for number in range(WRITERS)]
    with serving(db, port) as process:
        for writer in writers:
            writer.start()
        assert enough.wait(60)
        process.send_signal(ending)
        process.wait(END_SECONDS)
    for writer in writers:
        writer.join(30)
        assert not writer.is_alive()
    if ending == signal.SIGTERM:
        assert process.returncode == 0
    there = written(db)
    assert set(heard) <= set(there)
    assert len(there) == len(set(there))
    # Whoever heard nothing sends again; the same keys are stored once.
    with serving(db, port), woodrat.open(f"http://127.0.0.1:{port}") as ledger:
        for key in there:
            again = ledger.store({"entity_type": "thing", "id": key}, idempotency_key=key)
            assert again.repeated
    assert sorted(written(db)) == sorted(there)


def test_it_ends_in_time_with_connections_open(tmp_path: Path) -> None:
    """Idle connections, half-sent requests and followers of the log keep a server from ending ten seconds at most."""
    db, port = tmp_path / "served.db", free_port()
    heads = [
        b"",
        b"GET /healthz HTTP/1.1\r\nHost: local",
        b"POST /v1/store HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        b"GET /v1/log HTTP/1.1\r\nHost: localhost\r\nAccept: text/event-stream\r\n\r\n",
    ]
    with serving(db, port) as process:
        slow = [socket.create_connection(("127.0.0.1", port), 10) for _ in heads]
        for connection, head in zip(slow, heads, strict=True):
            connection.sendall(head)
        assert b"200 OK" in slow[3].recv(1_000)
        process.send_signal(signal.SIGTERM)
        assert process.wait(END_SECONDS) == 0
        for connection in slow:
            connection.close()
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(("127.0.0.1", port), 1)
