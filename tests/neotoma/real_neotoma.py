"""Neotoma itself, from its public source: its server, its clients and its command line, on loopback.

WOODRAT_NEOTOMA_SOURCE names a folder with that source, built (`tsc`), and WOODRAT_NEOTOMA_NODE the Node that runs it
(22 or later; `node` unless stated). Nothing of it is part of this repository.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, urlsplit

SOURCE: Final = os.environ.get("WOODRAT_NEOTOMA_SOURCE")
NODE: Final = os.environ.get("WOODRAT_NEOTOMA_NODE", "node")
GLOBAL_OPTIONS: Final = ("--api-only", "--no-update-check", "--no-log-file", "--json")
MISSING: Final = "WOODRAT_NEOTOMA_SOURCE names no built source of Neotoma"


def is_there() -> bool:
    """Return whether its server can be run."""
    return SOURCE is not None and (Path(SOURCE) / "dist/actions.js").is_file()


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of its processes: a home of their own, and nothing that goes out."""
    return {
        "PATH": f"{Path(NODE).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "NODE_NO_WARNINGS": "1",
        "NEOTOMA_ENV": "development",
        "NEOTOMA_MIRROR_ENABLED": "false",
        "NEOTOMA_CLI_AAUTH_DISABLE": "1",
        "NEOTOMA_WRITE_RATE_LIMIT_PER_MIN": "100000000",
        "NEOTOMA_PROJECT_ROOT": str(home),
        **more,
    }


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def server(folder: Path) -> Iterator[int]:
    """Run its server on a data folder, and yield the port."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    settings = environment(
        folder,
        NEOTOMA_DATA_DIR=str(folder),
        NEOTOMA_HTTP_PORT=str(port),
        NEOTOMA_HTTP_HOST="127.0.0.1",
        NEOTOMA_BEARER_TOKEN="dev-local",
    )
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(
            [NODE, f"{SOURCE}/dist/actions.js"], cwd=folder, env=settings, stdout=log, stderr=subprocess.STDOUT
        )
        try:
            for _ in range(600):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    assert process.poll() is None, (folder / "server.log").read_text("utf-8")[-2000:]
                    time.sleep(0.1)
            yield port
        finally:
            process.terminate()
            process.wait(30)


class Call(NamedTuple):
    """One request, and its answer."""

    method: str
    path: str
    query: dict[str, str]
    body: Any
    status: int
    answer: Any


class Recorder(ThreadingHTTPServer):
    """Passes requests on to a server, and keeps them with their answers."""

    daemon_threads = True

    def __init__(self, port: int, prefix: str = "") -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.port, self.prefix = port, prefix
        self.calls: list[Call] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Recorder:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()

    def taken(self) -> list[Call]:
        """Return the calls since the last time."""
        found, self.calls = self.calls, []
        return found


def parsed(content: bytes) -> Any:
    try:
        return json.loads(content)
    except ValueError:
        return content.decode("utf-8", "replace")


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Recorder

    def _pass(self) -> None:
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        kept = {name: self.headers[name] for name in ("content-type", "authorization", "accept") if self.headers[name]}
        connection.request(self.command, self.server.prefix + self.path, body or None, kept)
        response = connection.getresponse()
        content = response.read()
        connection.close()
        address = urlsplit(self.path)
        self.server.calls.append(
            Call(
                self.command,
                address.path,
                dict(parse_qsl(address.query)),
                parsed(body) if body else None,
                response.status,
                parsed(content),
            )
        )
        self.send_response(response.status)
        self.send_header("content-type", response.getheader("content-type") or "application/json")
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_DELETE = do_PUT = do_PATCH = _pass

    def log_message(self, format: str, *args: object) -> None:
        """Stay silent."""


def command(home: Path, url: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
    """Run its command line against a server; its settings are in a home of their own."""
    return subprocess.run(
        [NODE, f"{SOURCE}/dist/cli/bootstrap.js", *GLOBAL_OPTIONS, "--base-url", url, *arguments],
        cwd=home,
        env=environment(home, NEOTOMA_BEARER_TOKEN="dev-local", **more),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def shape(value: Any, path: str = "") -> dict[str, str]:
    """Return the members of an answer by path, with their types; elements of a list are one."""
    if isinstance(value, Mapping):
        found = {path or "/": "object"}
        for name, one in value.items():
            found |= shape(one, f"{path}/{name}")
        return found
    if isinstance(value, list):
        found = {path or "/": "list"}
        for one in value:
            for at, kind in shape(one, f"{path}/*").items():
                if found.get(at) in (None, "null"):
                    found[at] = kind
        return found
    kinds = {bool: "boolean", int: "number", float: "number", str: "text", type(None): "null"}
    return {path or "/": kinds[type(value)]}


def lacking(there: Any, here: Any) -> list[str]:
    """Return what an answer there has and ours lacks or has as another type; null stands for any type."""
    one, other = shape(there), shape(here)
    found = []
    for at, kind in one.items():
        if at not in other:
            if kind != "null" and _parent_is_there(at, other):
                found.append(f"{at} ({kind})")
        elif "null" not in (kind, other[at]) and kind != other[at]:
            found.append(f"{at} ({kind}, here {other[at]})")
    return found


def _parent_is_there(at: str, other: Mapping[str, str]) -> bool:
    parent = at.rpartition("/")[0]
    return not parent or parent in other
