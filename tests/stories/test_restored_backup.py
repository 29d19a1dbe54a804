"""A backup that is older than what the signing keys remember: said by all surfaces, refused to writers, accepted."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli, cli, db, interruptible
from tests.server.server import Server

import woodrat
from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.open import engine_for
from woodrat.ledger.own_policy import registry
from woodrat.server.app import App
from woodrat.server.keys import Open

__all__ = ["cli", "db", "interruptible"]
TENANTS = ("default", "lending")
REASON = "the disk failed, and Monday's backup is the newest"
RECORD = {"entity_type": "contact", "name": "Ana Rivera", "city": "Girona"}
WAY_OUT = "woodrat checkpoint --new-epoch REASON"


def told(cli: Cli, city: str) -> None:
    """Store a city for each tenant; closing the ledger signs a checkpoint."""
    for tenant in TENANTS:
        record = f'[{{"entity_type":"contact","name":"Ana Rivera","city":"{city}"}}]'
        assert cli("store", f"--json={record}", "--tenant", tenant).code == 0


@pytest.fixture
def backup(cli: Cli, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A backup of two tenants, which were written to after it; the database itself is gone."""
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    woodrat.init()
    told(cli, "Barcelona")
    made = tmp_path / "backup.db"
    assert cli("backup", "create", str(made)).code == 0
    told(cli, "Madrid")
    db.unlink()
    return made


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, db: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where it is restored to: the place of the old file, or an empty database of a server."""
    found = str(db) if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))
    monkeypatch.setenv("WOODRAT_DB", found)
    return found


@contextmanager
def served(place: str, keys: Path) -> Iterator[Server]:
    """Serve a database to whoever is on this machine."""
    engine = engine_for(place)
    access = Open("default", "http")
    app = App(engine, access, clock=SystemClock(), policies=registry(()), endpoints=endpoints(), proofs=str(keys))
    try:
        with Server(app) as server:
            yield server
    finally:
        engine.close()


def refused(cli: Cli, server: Server) -> dict[str, Any]:
    """Write on every surface; return the problem that REST answers with."""
    call = {"name": "store", "arguments": {"records": [RECORD]}}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    accept = {"Accept": "application/json, text/event-stream"}
    rest = server.call("POST", "/v1/store", {"records": [RECORD]})
    neotoma = server.call("POST", "/neotoma/store", {"entities": [RECORD]})
    assert (rest.status, neotoma.status) == (409, 409)
    assert rest.json["code"] == "outdated"
    tool = server.call("POST", "/mcp", message, headers=accept)
    with (
        woodrat.open(f"http://127.0.0.1:{server.port}") as remote,
        pytest.raises(woodrat.Outdated, match="it is an older copy, such as a restored backup"),
    ):
        remote.store(RECORD)
    ran = cli("store", '--json={"entity_type":"memo","id":"1"}')
    assert ran.code == 6
    for text in (rest.body.decode(), neotoma.body.decode(), tool.body.decode(), ran.err):
        assert WAY_OUT in text
    found: dict[str, Any] = rest.json
    return found


def test_an_older_backup_is_read_and_written_to_once_it_is_accepted(
    backup: Path, place: str, cli: Cli, tmp_path: Path
) -> None:
    """Restoring says what is refused and how to accept it; `/readyz` is degraded until no tenant refuses writes."""
    restored = cli("backup", "restore", str(backup))
    assert restored.code == 0
    assert list(restored.json["refused"]) == list(TENANTS)
    assert f"Writes are refused. If a backup was restored, accept it with `{WAY_OUT} --tenant lending`" in restored.out
    verified = cli("verify", "-o", "table")
    assert verified.code == 1
    assert "The log is intact, but it is an older copy than the signing keys remember." in verified.out
    assert WAY_OUT in verified.out
    assert "restored backup" in cli("doctor").json["refused"]
    with served(place, tmp_path / "keys") as server:
        problem = refused(cli, server)
        assert (problem["details"]["damage"], problem["details"]["checkpoint"]["size"]) == ("behind", 3)
        assert server.call("GET", "/v1/entities/contact/Ana%20Rivera").json["fields"]["city"] == "Barcelona"
        assert [one["damage"] for one in server.call("GET", "/v1/verify").json["damage"]] == ["behind"]
        for tenant in TENANTS:
            ready = server.call("GET", "/readyz")
            assert (ready.status, ready.json["status"]) == (200, "degraded")
            assert WAY_OUT in ready.json["problem"]
            assert cli("checkpoint", "--new-epoch", REASON, "--tenant", tenant).json["checkpoint"]["epoch"] == 2
        assert server.call("GET", "/readyz").json == {"status": "ok"}
        assert server.call("POST", "/v1/store", {"records": [RECORD]}).status == 200
        found = server.call("GET", "/v1/verify").json
    assert found["sound"]
    (notice,) = found["notices"]
    assert notice.startswith("The log is in epoch 2: its history was accepted at ")
    assert REASON in notice


def test_a_restore_accepts_for_every_tenant(backup: Path, place: str, cli: Cli) -> None:
    """With `--accept` each tenant begins a new epoch at once; without anything to accept that is said."""
    assert cli("backup", "restore", str(backup), "--accept", "").code == 2
    restored = cli("backup", "restore", str(backup), "--accept", REASON).json
    assert (restored["epochs"], restored["refused"]) == (dict.fromkeys(TENANTS, 2), {})
    told(cli, "Girona")
    verified = cli("verify").json
    assert (verified["sound"], REASON in verified["notices"][0]) == (True, True)


def test_a_backup_restored_again_is_an_older_copy_of_what_went_on(backup: Path, cli: Cli, db: Path) -> None:
    """A restored ledger goes on under another name; the same backup put there once more is not taken for a stranger."""
    assert cli("backup", "restore", str(backup), "--accept", REASON).code == 0
    told(cli, "Girona")
    db.unlink()
    assert list(cli("backup", "restore", str(backup)).json["refused"]) == list(TENANTS)
    assert cli("store", '--json={"entity_type":"memo","id":"1"}').code == 6
    assert [one["damage"] for one in cli("verify").json["damage"]] == ["behind"]
    assert cli("checkpoint", "--new-epoch", "again").json["checkpoint"]["epoch"] == 3
    assert cli("store", '--json={"entity_type":"memo","id":"1"}').code == 0
    assert cli("verify").json["sound"]


def test_what_was_erased_since_is_erased_in_an_older_copy(
    cli: Cli, db: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A restored backup that is made to forget goes on under another name, and is an older copy all the same."""
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    woodrat.init()
    told(cli, "Barcelona")
    made = str(tmp_path / "backup.db")
    assert cli("backup", "create", made).code == 0
    assert cli("erase", "contact/Ana Rivera", "--reason", "asked", "--yes").code == 0
    db.unlink()
    restored = cli("backup", "restore", made).json
    assert (restored["tenants"]["default"]["again"], list(restored["refused"])) == (1, ["default"])
    assert "a restored backup" in restored["refused"]["default"]
    assert cli("store", '--json={"entity_type":"memo","id":"1"}').code == 6
    assert [one["damage"] for one in cli("verify").json["damage"]] == ["behind"]
    assert cli("checkpoint", "--new-epoch", REASON).code == 0
    assert cli("store", '--json={"entity_type":"memo","id":"1"}').code == 0
    assert cli("verify").json["sound"]


def test_a_backup_with_nothing_missing_needs_no_acceptance(backup: Path, cli: Cli, db: Path, tmp_path: Path) -> None:
    """A backup that holds all that the keys remember is written to at once, and another log stays damage."""
    assert cli("backup", "restore", str(backup), "--accept", REASON).code == 0
    newest = tmp_path / "newest.db"
    assert cli("backup", "create", str(newest)).code == 0
    db.unlink()
    ran = cli("backup", "restore", str(newest), "--accept", REASON, "-o", "table")
    assert "Nothing had to be accepted" in ran.out
    told(cli, "Girona")
    db.unlink()
    with woodrat.open(tmp_path / "other.db") as other:
        other.store([{"entity_type": "memo", "id": str(number)} for number in range(9)])
    (tmp_path / "other.db").rename(db)
    assert cli("store", '--json={"entity_type":"memo","id":"1"}').code == 5
    assert cli("verify").code == 5
