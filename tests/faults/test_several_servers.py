"""Several servers on one PostgreSQL database: what one of them commits, and what is left when one is killed."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.faults.processes import FULL, ROOT
from tests.server.test_webhooks import SECRET, Receiver

import woodrat
from woodrat import Unavailable, WoodratError
from woodrat.canon.ids import TenantId
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.server.keys import KEYS_TENANT, Keyring
from woodrat.server.webhooks import WEBHOOKS_TENANT, Hooks
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import ledger_on

WRITERS = 8 if FULL else 4
WRITES = 120 if FULL else 15
PATIENCE = 60.0
ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}


class Served:
    """A `woodrat serve` of its own; a context manager."""

    def __init__(self, url: str, *arguments: str) -> None:
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        command = [sys.executable, "-m", "woodrat", "serve", "--db", url, "--port", str(self.port), *arguments]
        self.process = subprocess.Popen(
            command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        self.address = f"http://127.0.0.1:{self.port}"

    def __enter__(self) -> Served:
        eventually(lambda: self.get("/readyz") is not None)
        return self

    def __exit__(self, *error: object) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def get(self, path: str) -> int | None:
        """Return the status of an answer; none where nobody answers."""
        assert self.process.poll() is None, "the server has ended"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request("GET", path)
            return connection.getresponse().status
        except OSError:
            return None
        finally:
            connection.close()

    def kill(self) -> None:
        """End it with -9."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE)


def eventually(holds: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.05)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    found = Receiver()
    yield found
    found.close()


def test_one_of_two_servers_is_killed_under_load(
    postgres_url: str, postgres_engine: PostgresEngine, receiver: Receiver, tmp_path: Path
) -> None:
    """Nothing acknowledged is lost and nothing is doubled; followers and webhooks get every entry from the other."""
    secret = tmp_path / "hook.secret"
    secret.write_bytes(SECRET)
    secret.chmod(0o600)
    ring = Keyring(ledger_on(postgres_engine, KEYS_TENANT), FixedClock())
    _, key = ring.create("lending", "writer", ["*"])
    Hooks(ledger_on(postgres_engine, WEBHOOKS_TENANT), FixedClock()).add("lending", receiver.url, str(secret))
    acknowledged: list[tuple[str, int]] = []
    followed: list[int] = []
    done, enough = threading.Event(), threading.Event()

    def write(name: int, servers: list[Served]) -> None:
        opened = [woodrat.open(server.address, key=key) for server in servers]
        which = name
        for number in range(WRITES):
            sent = {"entity_type": "memo", "id": f"{name}-{number}"}
            for _ in range(200):
                try:
                    report = opened[which % 2].store(sent, idempotency_key=f"{name}-{number}")
                except Unavailable:
                    which += 1  # as a balancer does: the other one is asked
                    time.sleep(0.05)
                    continue
                acknowledged.append((f"{name}-{number}", report.position))
                break
            else:
                raise AssertionError("neither server took a write")
            if len(acknowledged) >= WRITERS * WRITES // 4:
                enough.set()
        for ledger in opened:
            ledger.close()

    def follow(server: Served) -> None:
        after = -1
        while not done.is_set():
            after = _follow(server.port, key, after, followed, done)

    with Served(postgres_url) as first, Served(postgres_url) as second:
        follower = threading.Thread(target=follow, args=(second,))
        follower.start()
        writers = [threading.Thread(target=write, args=(name, [first, second])) for name in range(WRITERS)]
        for writer in writers:
            writer.start()
        assert enough.wait(PATIENCE)
        # The one that delivers: its duty goes to the other.
        eventually(lambda: receiver.tries > 0)
        first.kill()
        for writer in writers:
            writer.join(5 * PATIENCE)
            assert not writer.is_alive()
        ledger = ledger_on(postgres_engine, "lending")
        head = ledger.position
        assert len(acknowledged) == WRITERS * WRITES
        for id, position in acknowledged:
            assert ledger.show(f"memo/{id}").version == position
        with postgres_engine.view(TenantId("lending")) as view:
            written = [entry.position for entry in view.entries(kinds={"observation"})]
        assert len(written) == WRITERS * WRITES, "a key counts once, whichever server it is sent to"
        assert ledger.verify().sound
        eventually(lambda: followed[-1:] == [head])
        assert followed == list(range(head + 1)), "the feed has every entry once, in order"
        eventually(lambda: set(receiver.positions()) == set(range(head + 1)))
        # Only what was on its way when the server was killed may come once more, and then it is the same.
        sent = [json.loads(body)["entries"] for _, body in receiver.taken]
        assert len(receiver.positions()) - (head + 1) <= max(map(len, sent))
        assert len({json.dumps(entry) for entries in sent for entry in entries}) == head + 1
        # A key that is revoked is refused by whichever server is asked.
        ring.revoke(ring.all()[0].id)
        with woodrat.open(second.address, key=key) as left:
            eventually(lambda: _is_refused(left))
        done.set()
        follower.join(PATIENCE)


def _is_refused(ledger: Any) -> bool:
    try:
        ledger.show("memo/0-0")
    except WoodratError as error:
        return error.code == "forbidden"
    return False


def _follow(port: int, key: str, after: int, followed: list[int], done: threading.Event) -> int:
    """Follow the log as events until the server ends it, or all is done; return the last position."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        headers = {"Authorization": f"Bearer {key}", "Accept": "text/event-stream"}
        connection.request("GET", f"/v1/log?after={after}", headers=headers)
        for line in connection.getresponse():
            if line.startswith(b"data: "):
                after = json.loads(line[6:])["position"]
                followed.append(after)
            if done.is_set():
                break
    except OSError:
        pass
    finally:
        connection.close()
    return after


def test_a_run_told_to_two_servers_is_one_run(postgres_url: str, postgres_engine: PostgresEngine) -> None:
    """Whichever server a step is told to, it comes after all others; the one that had the run at hand notices."""
    from woodrat.runs.relay import Relay

    other = PostgresEngine(postgres_url)
    try:
        contexts = [ledger_on(one, "lending", agent="officer").context for one in (postgres_engine, other)]
        relays = [Relay(), Relay()]
        run = relays[0].start(contexts[0], {"query": "why"})["run"]
        for turn in range(4):
            relays[turn % 2].step(contexts[turn % 2], run, {"note": {"text": f"step {turn}"}})
        relays[0].end(contexts[0], run, answer="so")
        record = ledger_on(postgres_engine, "lending").runs.show(run)
        said = [step.text for step in record.notes if str(step.text).startswith("step ")]
        assert said == [f"step {turn}" for turn in range(4)]
        assert record.status == "done"
    finally:
        other.close()


def test_workers_serve_one_address(postgres_url: str, postgres_engine: PostgresEngine) -> None:
    """Workers share a port; one that is killed is replaced, and all of them end with the one that started them."""
    with Served(postgres_url, "--workers", "2") as served:
        eventually(lambda: len(_children(served.process.pid)) == 2)
        workers = _children(served.process.pid)
        with woodrat.open(served.address) as ledger:
            ledger.store({"entity_type": "memo", "id": "1"})
            os.kill(workers[0], signal.SIGKILL)
            eventually(lambda: len(set(_children(served.process.pid)) - {workers[0]}) == 2)
            eventually(lambda: served.get("/readyz") == 200)
            assert _stored(ledger, "2").position == 1
        workers = _children(served.process.pid)
        served.kill()
        eventually(lambda: not any(_lives(worker) for worker in workers))
    assert ledger_on(postgres_engine, "default").position == 1


def _stored(ledger: Any, id: str) -> Any:
    """Store, and again while the worker that had the connection is gone."""
    for _ in range(100):
        try:
            return ledger.store({"entity_type": "memo", "id": id}, idempotency_key=id)
        except Unavailable:
            time.sleep(0.1)
    raise AssertionError("nobody took it")


def _children(pid: int) -> list[int]:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return sorted(int(child) for child in found)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_workers_of_a_file_are_refused(tmp_path: Path) -> None:
    """One process writes a file, so several cannot serve it."""
    command = [sys.executable, "-m", "woodrat", "serve", "--db", str(tmp_path / "a.db"), "--workers", "2"]
    refused = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 2
    assert "--workers" in refused.stderr
    assert "PostgreSQL" in refused.stderr
