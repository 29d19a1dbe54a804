"""The read audit says who looked, and after an erasure nothing in it, or in any file, says at whom."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from tests.server.server import Server

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.cli.main import main
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.erasure.verbs import erase as erasure_verbs
from woodrat.ledger.own_policy import registry
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.server import audit as server_audit
from woodrat.server.audit import AUDIT_TENANT, is_pseudonym, looked, named, pseudonym
from woodrat.server.keys import Keyring
from woodrat.testing.clock import FixedClock

Start = Callable[..., Server]
PERSON: Final = "contact/zoe@zweig.example"
RECORDS: Final = {
    "records": [
        {"entity_type": "contact", "email": "zoe@zweig.example", "name": "Zoe Zweigmann"},
        {"entity_type": "contact", "email": "bob@example.com", "name": "Bob"},
    ]
}
THEIRS: Final = (b"zoe@zweig", b"zoe%40zweig", b"Zweigmann")


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A folder with an erasure key."""
    made = tmp_path / "keys"
    make_keys(made, FixedClock())
    return str(made)


def audit_of(engine: SqliteEngine, keys: str) -> Ledger:
    """Return the audit, opened as `keys audit` does."""
    return Ledger(engine, tenant=AUDIT_TENANT, agent="t", clock=SystemClock(), policies=registry(()), keys=keys)


def ledger_of(engine: SqliteEngine, keys: str, tenant: str = "lending") -> Ledger:
    """Return a tenant's ledger beside the server."""
    return Ledger(engine, tenant=tenant, agent="dpo", clock=SystemClock(), policies=registry(()), keys=keys)


def hits(folder: Path) -> set[str]:
    """Return the files that hold anything of the person."""
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {path.name for path in found if any(text in path.read_bytes() for text in THEIRS)}


def reading(server: Server, secret: str) -> None:
    """Look at the person in several ways, and at somebody else."""
    for path in (f"entities/{PERSON}", f"history/{PERSON}", f"blame/{PERSON}", "entities/contact/bob@example.com"):
        server.call("GET", f"/v1/{path}", key=secret)
    (said,) = server.call("GET", f"/v1/observations?ref={PERSON}", key=secret).json["items"]
    server.call("GET", f"/v1/observations/{said['id']}", key=secret)
    server.call("GET", "/v1/search?query=x&entity_type=contact", key=secret)


def test_no_byte_of_an_erased_key_is_left_beside_the_audit(
    start: Start, keyring: Keyring, engine: SqliteEngine, tmp_path: Path, folder: str
) -> None:
    """Reads before and after an erasure leave pseudonyms; the file of all tenants is searched, and complete is true."""
    key, secret = keyring.create("lending", "auditor", ["read", "write", "manage"])
    server = start(keyring, proofs=folder)
    server.call("POST", "/v1/store", RECORDS, key=secret)
    reading(server, secret)
    server.app.audit.flush()
    erased = woodrat.open(f"http://127.0.0.1:{server.port}", key=secret).erase(PERSON, reason="a request")
    assert erased.complete
    assert erased.searched
    assert erased.scanned_bytes is None, "how large others are is no concern of a tenant"
    assert server.call("GET", f"/v1/entities/{PERSON}", key=secret).status == 404
    server.app.close()
    assert hits(tmp_path) == set()
    audit = audit_of(engine, folder)
    found = named(audit, list(looked(audit, key.id)))
    targets = {one.target for one in found if one.verb in ("show", "history", "blame")}
    assert "contact/bob@example.com" in targets
    (hidden,) = targets - {"contact/bob@example.com"}
    assert is_pseudonym(hidden)
    secret_key = bytes.fromhex(Path(folder, "erasure.key").read_text().strip())
    assert hidden == pseudonym(secret_key, "lending", PERSON), "whoever has the key can ask who looked at somebody"
    assert "contact" in {one.target for one in found if one.verb == "search"}


def test_names_that_still_exist_are_shown(
    start: Start,
    keyring: Keyring,
    engine: SqliteEngine,
    tmp_path: Path,
    folder: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`keys audit` resolves what is still there: entities, their ids, observations; without the key it cannot."""
    _, secret = keyring.create("lending", "auditor", ["read", "write"])
    server = start(keyring, proofs=folder)
    server.call("POST", "/v1/store", RECORDS, key=secret)
    reading(server, secret)
    server.app.close()
    main(["keys", "audit", "--db", str(tmp_path / "served.db"), "--signing-keys", folder, "-o", "json"])
    shown = json.loads(capsys.readouterr().out)["items"]
    targets = {one["target"] for one in shown}
    assert {PERSON, "contact/bob@example.com"} <= targets
    assert not any(is_pseudonym(target) for target in targets)
    other = tmp_path / "other"
    make_keys(other, FixedClock(seed="other"))
    main(["keys", "audit", "--db", str(tmp_path / "served.db"), "--signing-keys", str(other), "-o", "json"])
    shown = json.loads(capsys.readouterr().out)["items"]
    assert all(is_pseudonym(one["target"]) for one in shown if one["verb"] == "show")


def test_tenants_are_told_apart(folder: str) -> None:
    """The same name in two tenants has two pseudonyms: the audit does not say that they know the same person."""
    assert pseudonym(b"k" * 32, "one", PERSON) != pseudonym(b"k" * 32, "two", PERSON)
    assert pseudonym(b"k" * 32, "one", PERSON).startswith("contact/~")
    assert pseudonym(b"k" * 32, "one", "obs_abc").startswith("obs_~")
    assert pseudonym(b"k" * 32, "one", "anything").startswith("~")


def test_what_was_noted_before_there_was_a_key_goes_too(
    start: Start, keyring: Keyring, engine: SqliteEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server without an erasure key notes names; an erasure by a key made later takes them out of the audit."""
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "none"))
    _, secret = keyring.create("lending", "auditor", ["read", "write"])
    server = start(keyring)
    server.call("POST", "/v1/store", RECORDS, key=secret)
    reading(server, secret)
    server.app.close()
    assert hits(tmp_path) != set()
    folder = str(tmp_path / "keys")
    make_keys(folder, FixedClock())
    count = len(list(looked(audit_of(engine, folder))))
    certificate = ledger_of(engine, folder).erase(PERSON, reason="a request")
    assert certificate.complete
    assert hits(tmp_path) == set()
    found = list(looked(audit_of(engine, folder)))
    assert len(found) == count, "who looked, and when, stays"
    assert {one.target for one in found if one.verb == "show"} == {"[ERASED]", "contact/bob@example.com"}
    assert audit_of(engine, folder).verify(deep=True).sound


def test_a_planted_audit_that_keeps_names_is_found(
    start: Start,
    keyring: Keyring,
    engine: SqliteEngine,
    tmp_path: Path,
    folder: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Planted: an audit that notes names, and an erasure that leaves them: a file holds it, and it is not complete."""
    monkeypatch.setattr(server_audit, "pseudonym", lambda key, tenant, target: target)
    monkeypatch.setattr(erasure_verbs, "close_mentions", lambda *given: None)
    _, secret = keyring.create("lending", "auditor", ["read", "write", "manage"])
    server = start(keyring, proofs=folder)
    server.call("POST", "/v1/store", RECORDS, key=secret)
    reading(server, secret)
    server.app.audit.flush()
    erased = woodrat.open(f"http://127.0.0.1:{server.port}", key=secret).erase(PERSON, reason="a request")
    assert not erased.complete
    assert erased.hits
    server.app.close()
    assert hits(tmp_path) != set()
