"""The server as a process: where it listens, with what, and what it never does."""

from __future__ import annotations

import http.client
import json
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.faults.test_serving import free_port
from tests.server.server import Server

from woodrat.server.listen import spelled

Start = Callable[..., Server]
MAIN = "import sys; from woodrat.cli.main import main; sys.exit(main())"
ROOT = Path(__file__).parents[2]

LONELY = """
import os, sys
def hook(event, arguments):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname", "socket.sendto"):
        sys.stderr.write(f"{event} {arguments}\\n"); sys.stderr.flush(); os._exit(99)
sys.addaudithook(hook)
"""
"""Ends the process as soon as it reaches for another one over the network."""


def woodrat(*words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", before + MAIN, *words], capture_output=True, text=True, timeout=120)


@contextmanager
def serve(db: Path, *words: str, before: str = "") -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    command = [sys.executable, "-c", before + MAIN, "--db", str(db), "serve", "--port", str(port), *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE)
    assert process.stderr is not None
    assert b"Serving" in process.stderr.readline()
    for _ in range(400):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            assert process.poll() is None, process.stderr.read()
            threading.Event().wait(0.05)
    try:
        yield port, process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        process.wait(20)
        process.stderr.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_without_keys_only_this_machine_is_served(tmp_path: Path, host: str) -> None:
    """Any address that others can reach is refused at the start while there is no key."""
    ran = woodrat("--db", str(tmp_path / "a.db"), "serve", "--host", host)
    assert ran.returncode == 2
    assert "there is no API key" in ran.stderr
    assert "Nothing was started." in ran.stderr


def test_all_faults_of_a_start_are_told(tmp_path: Path) -> None:
    """Port, certificate, rate and tenant are checked together."""
    ran = woodrat(
        "--db",
        str(tmp_path / "a.db"),
        "--tenant",
        "woodrat.keys",
        "serve",
        "--port",
        "99999",
        "--tls-cert",
        "c.pem",
        "--calls-per-second",
        "0",
    )
    assert ran.returncode == 2
    assert all(name in ran.stderr for name in ("--port", "--tls-cert", "--calls-per-second", "--tenant"))


def test_a_port_that_is_taken_is_not_shared(tmp_path: Path) -> None:
    """A second server on a port is refused as unavailable, whose ledger would otherwise get half of the calls."""
    with serve(tmp_path / "a.db") as (port, _):
        for host in ("127.0.0.1", "localhost"):
            ran = woodrat("--db", str(tmp_path / "b.db"), "serve", "--host", host, "--port", str(port))
            assert (ran.returncode, f"{host}:{port} is in use" in ran.stderr) == (4, True), ran.stderr
            assert "Nothing was started." in ran.stderr


def test_a_server_is_named_as_people_do(tmp_path: Path) -> None:
    """A name stands for an address of this machine, and an address of the newer kind is shown as URLs have it."""
    with serve(tmp_path / "a.db", "--host", "localhost") as (port, _):
        connection = http.client.HTTPConnection("localhost", port, timeout=20)
        connection.request("GET", "/healthz")
        assert connection.getresponse().status == 200
        connection.close()
    assert spelled("::1", 8787) == spelled("[::1]", 8787) == "[::1]:8787"
    assert spelled("localhost", 8787) == "localhost:8787"


@pytest.mark.parametrize("before", ["", "import sys; sys.modules['uvloop'] = None\n"], ids=["uvloop", "asyncio"])
def test_either_loop_serves_and_ends(tmp_path: Path, before: str) -> None:
    """Writes, reads and the end of the process are the same with uvloop and, where it is not installed, without."""
    with serve(tmp_path / "a.db", before=before) as (port, process):
        if sys.platform == "linux":
            assert ("uvloop" in Path(f"/proc/{process.pid}/maps").read_text()) is not bool(before)
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        record = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}
        connection.request("POST", "/v1/store", json.dumps({"records": [record]}), {"Content-Type": "application/json"})
        assert json.loads(connection.getresponse().read())["entities"] == ["contact/Ana Rivera"]
        connection.request("GET", "/v1/entities/contact%2FAna%20Rivera")
        assert json.loads(connection.getresponse().read())["fields"]["city"] == "Barcelona"
        connection.close()
    assert process.returncode == 0


def test_certificates_that_will_not_do_are_named(tmp_path: Path) -> None:
    """Files that are not there, and files that are no certificate with its key, are refused by their names."""
    text = tmp_path / "text.pem"
    text.write_text("no certificate")
    for cert, key, said in (
        ("none.pem", "neither.pem", ["cannot read none.pem", "cannot read neither.pem"]),
        (str(text), str(text), ["text.pem", "do not belong together"]),
    ):
        ran = woodrat("--db", str(tmp_path / "a.db"), "serve", "--tls-cert", cert, "--tls-key", key)
        assert ran.returncode == 2
        assert [word for word in said if word not in ran.stderr] == []


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl to make a certificate")
def test_tls_is_served(tmp_path: Path) -> None:
    """With a certificate and its key the same addresses are served over TLS."""
    cert, key = tmp_path / "c.pem", tmp_path / "k.pem"
    name = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    made = ["openssl", "req", "-x509", *kind, "-keyout", str(key), "-out", str(cert), *name]
    subprocess.run(made, check=True, capture_output=True)
    with serve(tmp_path / "a.db", "--tls-cert", str(cert), "--tls-key", str(key)) as (port, _):
        context = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("localhost", port, timeout=20, context=context)
        connection.request("GET", "/v1/position")
        assert json.loads(connection.getresponse().read()) == {"position": -1}
        connection.close()


def test_nothing_opens_a_connection(tmp_path: Path) -> None:
    """Neither the commands nor a server without webhooks reach for any address; `doctor` says that there is none."""
    db = str(tmp_path / "a.db")
    record = '[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]'
    commands = (
        ["store", "--json", record],
        ["show", "contact/Ana Rivera"],
        ["entities", "search", "--query", "ana"],
        ["recall", "who is Ana?"],
        ["doctor"],
        ["webhooks", "list"],
        ["demo"],
    )
    for words in commands:
        ran = woodrat("--db", db, *words, before=LONELY)
        assert ran.returncode in (0, 1), (words, ran.stderr)
    assert json.loads(woodrat("--db", db, "doctor", "-o", "json").stdout)["outgoing_addresses"] == []
    with serve(Path(db), before=LONELY) as (port, process):
        for path in ("/v1/entities", "/v1/search?query=ana", "/v1/recall?question=who", "/docs", "/readyz"):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
            connection.request("GET", path)
            assert connection.getresponse().status == 200
            connection.close()
    assert process.returncode == 0


def test_what_reaches_out_is_found_out() -> None:
    """The watch over connections finds one that is made."""
    ran = subprocess.run(
        [sys.executable, "-c", LONELY + "import socket; socket.create_connection(('127.0.0.1', 9), 1)"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 99


def test_doctor_names_the_addresses_of_webhooks(tmp_path: Path) -> None:
    """What is sent to is listed, and no longer once it is removed."""
    db = str(tmp_path / "a.db")
    (tmp_path / "secret").write_text("a secret of many bytes")
    (tmp_path / "secret").chmod(0o600)
    url = "https://hooks.example.org/woodrat"
    added = woodrat("--db", db, "webhooks", "add", url, "--secret-file", str(tmp_path / "secret"), "-o", "json")
    assert json.loads(woodrat("--db", db, "doctor", "-o", "json").stdout)["outgoing_addresses"] == [url]
    assert url in woodrat("--db", db, "doctor", "-o", "table").stdout
    id = json.loads(added.stdout)["id"]
    assert woodrat("--db", db, "webhooks", "remove", id).returncode == 0
    assert json.loads(woodrat("--db", db, "doctor", "-o", "json").stdout)["outgoing_addresses"] == []
    assert woodrat("--db", db, "webhooks", "remove", id).returncode == 3
    assert json.loads(woodrat("--db", db, "webhooks", "dead-letters", "-o", "json").stdout) == {"items": []}


def test_a_full_disk_is_told(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """With hardly any room left the server is degraded and says why; reads go on."""
    full: Any = SimpleNamespace(free=1_000)
    monkeypatch.setattr("woodrat.server.status.shutil.disk_usage", lambda path: full)
    answer = server.call("GET", "/readyz")
    assert (answer.status, answer.json["status"]) == (503, "degraded")
    assert "1000 bytes left" in answer.json["problem"]
    assert server.call("GET", "/v1/entities").status == 200
