"""Attacks on what an erasure leaves: guessing a short value, sending it again, reading who was looked up.

The attacker has everything but the erased value and the keys folder: an export, the database with the files beside it
and a backup, all made after the erasure, and the request as it was sent apart from the one value. Every attack is first
shown to work before the erasure, and every planted fault lets it work again.
"""

from __future__ import annotations

import io
import json
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

import woodrat
from woodrat import Ledger, Refused
from woodrat.canon import form, ids
from woodrat.canon.digest import digest
from woodrat.canon.ids import Ref
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.erasure.reader import closure
from woodrat.ledger import write as write_path
from woodrat.ledger.own_policy import registry
from woodrat.log import erasure
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

PIN: Final = "4711"
PINS: Final = tuple(f"{number:04}" for number in range(10_000))
AT: Final = "2026-01-01T00:00:00Z"
KEY: Final = "batch-1"
ACCOUNT: Final = "account/a"


def request(pin: str) -> list[dict[str, Any]]:
    """Return the records of one write: one that stays and comes first, and one with a short secret."""
    return [
        {"entity_type": "memo", "id": "first", "text": "stays"},
        {"entity_type": "account", "id": "a", "pin": pin},
        {"entity_type": "memo", "id": "last", "text": "stays too"},
    ]


def tell(ledger: Ledger) -> None:
    """Store the secret, and let runs, sources, reports and digests have to do with it."""
    ledger.store(request(PIN), observed_at=AT, idempotency_key=KEY)
    ledger.store({"entity_type": "account", "id": "a", "branch": "north"}, observed_at=AT, idempotency_key="more")
    with ledger.run("check the account", subject=ACCOUNT) as run:
        seen = run.show(ACCOUNT)
        run.model("m", request={"prompt": f"Is {PIN} a good PIN?"}, response="no")
        run.tool("check", lambda: f"{'x' * 300_000}{PIN}")
        run.note("a blob", {"raw": PIN.encode()})
        run.answer(f"looked at {seen.entity}")
    ledger.search("first")
    ledger.fingerprint()
    ledger.runs.list()
    ledger.recall("the account", threshold=0.1)


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with an erasure key."""
    folder = tmp_path / "keys"
    make_keys(folder, FixedClock())
    return folder


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where the ledger is."""
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "accounts.db"


@pytest.fixture
def ledger(db: Path, keys: Path) -> Iterator[Ledger]:
    """A ledger in a file, with the story."""
    with woodrat.open(db, keys=keys, agent="crm", clock=FixedClock()) as opened:
        tell(opened)
        yield opened


def spoils(ledger: Ledger, folder: Path) -> list[bytes]:
    """Return everything an attacker has, as bytes: the export, every file, a backup, and every value in the tables."""
    out = io.BytesIO()
    ledger.log.export(out)
    backup = folder / "backup.db"
    ledger.log.backup(backup, force=True)
    found = [out.getvalue(), *(path.read_bytes() for path in folder.iterdir() if path.is_file())]
    for path in (backup, *folder.glob("accounts.db")):
        raw = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        raw.text_factory = bytes
        for (table,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for row in raw.execute(f'SELECT * FROM "{table.decode()}"'):
                found += [value for value in row if isinstance(value, bytes)]
                found += [value.to_bytes(8, "big", signed=True) for value in row if isinstance(value, int)]
        raw.close()
    return found


def guesses(nonces: set[bytes], kept: Mapping[str, Any]) -> Callable[[str], Iterator[bytes]]:
    """Return what computes, for a PIN, everything that would stand in the files if it were the one."""
    long_value = sha256(b'"' + b"x" * 300_000)  # what all PINs have before them is hashed once

    def of(pin: str) -> Iterator[bytes]:
        arguments = {"observed_at": AT, "records": request(pin)}
        asked = digest("request", form.serialise({"arguments": arguments, "verb": "store"}))
        yield asked
        cut = long_value.copy()
        cut.update(f'{pin}"'.encode())
        yield cut.digest()
        yield sha256(form.serialise({"prompt": f"Is {pin} a good PIN?"})).digest()
        yield sha256(pin.encode()).digest()
        body = form.serialise({**kept, "fields": {**kept["fields"], "pin": pin}})
        said = digest("observation", body)
        yield said
        for nonce in nonces:
            yield sha256(nonce + body).digest()
            for key in (KEY, ""):
                yield sha256(nonce + key.encode() + asked).digest()

    return of


def recovered(ledger: Ledger, folder: Path, kept: Mapping[str, Any], pins: tuple[str, ...] = PINS) -> set[str]:
    """Return the PINs for which anything that can be computed stands anywhere in what the attacker has."""
    found = spoils(ledger, folder)
    text = b"\n".join(found)
    # Whatever could be a nonce: values of 16 bytes in the tables, and 32 hex digits anywhere.
    nonces = {value for value in found if len(value) == 16}
    nonces |= {bytes.fromhex(match.decode()) for match in re.findall(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])", text)}
    # Whatever could be a digest, by its first eight bytes, wherever it begins: the tables keep no more of some.
    heads = {text[at : at + 8] for at in range(len(text) - 7)}
    heads |= {bytes.fromhex(match[:16].decode()) for match in re.findall(rb"[0-9a-f]{64}", text)}
    names = re.findall(rb"(?:obs|src|ent|sch)_([a-z2-7]{26})", text)
    heads |= {ids_head(name.decode()) for name in names}
    compute = guesses(nonces, kept)
    return {pin for pin in pins if any(guess[:8] in heads for guess in compute(pin))}


def ids_head(name: str) -> bytes:
    """Return the first eight bytes of the digest that a short id begins with."""
    from base64 import b32decode

    return b32decode(name[:24].upper())[:8]


def observation_of(ledger: Ledger) -> Mapping[str, Any]:
    """Return the body of the observation with the PIN; the attacker knows all of it but the PIN."""
    (said, *_) = ledger.observations(ACCOUNT)
    body: Mapping[str, Any] = form.decode(said.observation.body)
    return body


@pytest.mark.parametrize("what", [ACCOUNT, f"{ACCOUNT}#pin"])
def test_an_erased_pin_cannot_be_guessed(ledger: Ledger, db: Path, what: str) -> None:
    """None of 10,000 PINs matches any nonce, digest, commitment or HMAC in export, file, write-ahead log or backup."""
    kept = observation_of(ledger)
    near = ("4710", PIN, "4712")
    assert recovered(ledger, db.parent, kept, near) == {PIN}, "the attack works as long as nothing is erased"
    for path in db.parent.glob("backup.db*"):
        path.unlink()
    certificate = ledger.erase(what, reason="a request")
    assert certificate.complete
    assert recovered(ledger, db.parent, kept) == set()
    assert certificate.searched
    assert certificate.scanned_bytes


def test_every_digest_was_tried_by_the_attack(ledger: Ledger, db: Path) -> None:
    """Each way of guessing works by itself before the erasure: the attack cannot pass by missing one."""
    kept = observation_of(ledger)
    found = spoils(ledger, db.parent)
    text = b"\n".join(found)
    with ledger.context.engine.view(ledger.tenant) as view:
        receipt = view.receipt("crm", KEY)
        assert receipt is not None
        nonces = {receipt.nonce, *(entry.nonce for entry in view.entries() if entry.nonce is not None)}
    guessed = list(guesses(nonces, kept)(PIN))
    seen = {guess for guess in guessed if guess in found or guess.hex().encode() in text}
    ways = {"request digest": guessed[0], "cut value": guessed[1], "model request": guessed[2], "blob": guessed[3]}
    for way, guess in ways.items():
        assert guess in seen, way
    assert len(seen) >= 6, "a commitment of the entry and one of the request are among them"


def _leave_receipts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: an erasure that leaves the request nonce, with key, digest and report."""
    monkeypatch.setattr(closure, "search_receipts", lambda *_: None)


def _salt_with_the_first_entry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: a request commitment under the nonce of the write's first entry, as it was before."""
    from woodrat.log.entry import Write as whole

    def write(*given: Any) -> Any:
        log, first, at, items, nonces, key, asked, _, *rest = given
        return whole(log, first, at, items, nonces, key, asked, nonces[0], *rest)

    monkeypatch.setattr(write_path, "Write", write)


def _keep_digests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plant: runs that read what went keep the digests of what cannot be seen."""
    monkeypatch.setattr(closure._Closing, "_find_digests", lambda self, names: None)


@pytest.mark.parametrize("plant", [_leave_receipts, _salt_with_the_first_entry, _keep_digests])
def test_a_planted_leak_is_found(
    db: Path, keys: Path, monkeypatch: pytest.MonkeyPatch, plant: Callable[[pytest.MonkeyPatch], None]
) -> None:
    """An erasure that leaves a receipt, its old salt or an unseen digest gives the PIN away, and the attack shows."""
    plant(monkeypatch)
    with woodrat.open(db, keys=keys, agent="crm", clock=FixedClock()) as ledger:
        tell(ledger)
        kept = observation_of(ledger)
        ledger.erase(f"{ACCOUNT}#pin", reason="a request")
        assert recovered(ledger, db.parent, kept, ("4710", PIN, "4712")) == {PIN}


# Retries


def on(kind: str, db: Path, keys: Path, seed: str = "a") -> Ledger:
    """Open a ledger of an engine."""
    if kind == "sqlite":
        return woodrat.open(db, keys=keys, agent="crm", clock=FixedClock(seed=seed))
    return Ledger(
        InMemoryEngine(), tenant="default", agent="crm", clock=FixedClock(seed=seed), policies=registry(()), keys=keys
    )


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("what", [ACCOUNT, f"{ACCOUNT}#pin", "memo/last"])
def test_a_retry_of_an_erased_write_is_refused(kind: str, what: str, db: Path, keys: Path) -> None:
    """The key of a write of which anything was erased is refused, for the same request and for another."""
    with on(kind, db, keys) as ledger:
        ledger.store(request(PIN), idempotency_key=KEY)
        ledger.store({"entity_type": "memo", "id": "other"}, idempotency_key="other")
        ledger.erase(what, reason="a request")
        before = ledger.position
        for records in (request(PIN), [{"entity_type": "memo", "id": "new"}]):
            for dry_run in (False, True):
                with pytest.raises(Refused, match=r"(?s)batch-1.* was erased at \d+, .*Nothing was written"):
                    ledger.store(records, idempotency_key=KEY, dry_run=dry_run)
        assert ledger.position == before
        assert ledger.store({"entity_type": "memo", "id": "other"}, idempotency_key="other").repeated
        assert (
            ledger.as_agent("another").store({"entity_type": "memo", "id": "new"}, idempotency_key=KEY).position
            > before
        )


def test_a_retry_is_refused_after_reopening_and_in_gathered_calls(db: Path, keys: Path) -> None:
    """Another process, a ledger opened anew and calls that are written together refuse the key as well."""
    with on("sqlite", db, keys) as ledger, on("sqlite", db, keys, "b") as other:
        ledger.store(request(PIN), idempotency_key=KEY)
        assert other.store(request(PIN), idempotency_key=KEY).repeated
        ledger.erase(ACCOUNT, reason="a request")
        with pytest.raises(Refused, match="was erased at"):
            other.store(request(PIN), idempotency_key=KEY)
    with on("sqlite", db, keys, "c") as ledger:
        with pytest.raises(Refused, match="was erased at"):
            ledger.store(request(PIN), idempotency_key=KEY)
        from woodrat.ledger.committer import Committer

        committer = Committer(ledger.context.engine)
        calls = [
            committer.submit(lambda: ledger.store({"entity_type": "memo", "id": "new"}, idempotency_key="new")),
            committer.submit(lambda: ledger.store({"entity_type": "memo", "id": "again"}, idempotency_key=KEY)),
        ]
        assert calls[0].result(10).position >= 0
        with pytest.raises(Refused, match="was erased at"):
            calls[1].result(10)
        committer.close()


def test_an_erasure_that_forgets_the_key_is_noticed(db: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: an erasure without the MAC of the idempotency key lets a retry store the secret again."""
    monkeypatch.setattr(erasure.Erasure, "body", _without_keys(erasure.Erasure.body))
    with on("sqlite", db, keys) as ledger:
        ledger.store(request(PIN), idempotency_key=KEY)
        ledger.erase(ACCOUNT, reason="a request")
        ledger.store(request(PIN), idempotency_key=KEY)
        assert ledger.show(ACCOUNT).fields["pin"] == PIN


def _without_keys(body: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
    def cut(self: Any) -> bytes:
        value: Any = form.decode(body(self))
        value.pop("keys", None)
        return form.serialise(value)

    return cut


def test_the_keys_of_an_erasure_are_macs(db: Path, keys: Path) -> None:
    """What stays of an idempotency key is HMAC-SHA256 of `key`, agent and key as lines, under the erasure key."""
    import hmac

    secret = bytes.fromhex((keys / "erasure.key").read_text().strip())
    with on("sqlite", db, keys) as ledger:
        ledger.store(request(PIN), idempotency_key=KEY)
        ledger.erase(ACCOUNT, reason="a request")
        with ledger.context.engine.view(ledger.tenant) as view:
            (entry,) = view.entries(kinds={"erasure"})
            assert entry.body is not None
            said: Any = form.decode(entry.body)
    assert said["keys"] == [hmac.digest(secret, b"key\ncrm\nbatch-1", "sha256").hex()]
    assert KEY.encode() not in db.read_bytes()


def test_nothing_is_looked_up_while_nothing_was_erased(db: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log without an erasure computes no MAC for a write with a key."""

    def fails(*given: object) -> str:
        raise AssertionError("a MAC was computed")

    monkeypatch.setattr(erasure, "_hmac", fails)
    with on("sqlite", db, keys) as ledger:
        ledger.store(request(PIN), idempotency_key=KEY)
        assert ledger.store(request(PIN), idempotency_key=KEY).repeated


def test_verify_knows_that_a_write_that_lost_an_entry_has_no_receipt(ledger: Ledger, db: Path, keys: Path) -> None:
    """A receipt that is back after the erasure of an entry of its write is damage, and so is one that was changed."""
    raw = apsw.Connection(str(db))  # of the library that has it open: another would give up its locks
    (row,) = raw.execute("SELECT * FROM receipt WHERE key = ?", (KEY,)).fetchall()
    raw.close()
    ledger.erase(f"{ACCOUNT}#pin", reason="a request")
    assert ledger.verify().sound
    ledger.close()
    raw = apsw.Connection(str(db))
    raw.execute("INSERT INTO receipt VALUES (?, ?, ?, ?, ?, ?)", row)
    raw.execute("INSERT INTO purge (id) VALUES (1)")
    raw.execute("DELETE FROM purge")
    raw.close()
    with woodrat.open(db, keys=keys, readonly=True) as opened:
        (damage,) = opened.verify().damage
        assert "is still there, and the entry at" in damage.problem


# The rest of what is stored


def test_a_tag_that_names_them_goes(db: Path, keys: Path) -> None:
    """A tag is a text too: one that quotes what was erased is gone with it, and others stay."""
    with on("sqlite", db, keys) as ledger:
        ledger.store({"entity_type": "contact", "name": "zweigmann", "id": "zweigmann"})
        ledger.tag("before-zweigmann")
        ledger.tag("release-3")
        assert ledger.erase("contact/zweigmann", reason="a request").complete
        assert b"zweigmann" not in db.read_bytes()
        assert ledger.at("@release-3").position >= 0


def test_the_certificate_lists_what_stays_and_why(ledger: Ledger) -> None:
    """Commitments, MACs, audit, backups and what is too short to be looked for are all named, with the reason."""
    stays = {one.what: one.why for one in ledger.erase(ACCOUNT, reason="a request").stays}
    told = " ".join(stays)
    for part in ("commitments", "requests", "erasure entry", "read audit", "backups", "values of", "file system"):
        assert part in told, part
    assert all(stays.values())
    assert PIN not in json.dumps(stays)


def test_a_search_in_parts_finds_what_a_search_at_once_finds(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """However small the parts are that a file is read in, every occurrence is counted once."""
    from woodrat.erasure.verbs import byte_scan

    sought = [b"stays too", b"not there at all"]
    whole = byte_scan.scan(ledger.context.engine, ledger.tenant, sought)
    assert whole.hits
    assert not whole.complete
    for size in (97, 1_000):
        monkeypatch.setattr(byte_scan, "SCAN_BYTES", size)
        assert byte_scan.scan(ledger.context.engine, ledger.tenant, sought) == whole


def test_searched_files_stay_open_while_they_are_used(
    tmp_path: Path, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file of an open database is closed after a search; those of closed ones are, once there are many."""
    from woodrat.engines.sqlite import storage

    monkeypatch.setattr(storage, "OPEN_MAX", 8)
    (tmp_path / "many").mkdir()
    with on("sqlite", tmp_path / "many" / "used.db", keys, "used") as used:
        used.store(request(PIN))
        used.erase(ACCOUNT, reason="a request")
        held = {key for key in storage._OPEN if "used.db" in key[0]}
        assert held
        for number in range(10):
            with on("sqlite", tmp_path / "many" / f"{number}.db", keys, str(number)) as other:
                other.store(request(PIN))
                assert other.erase(ACCOUNT, reason="a request").complete
        assert held <= storage._OPEN.keys()
        assert len(storage._OPEN) <= 8 + 2 * len(held)


def test_another_process_finishes_with_the_key_alone(
    ledger: Ledger, db: Path, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What to look for is sealed with the erasure key: with it anybody completes an erasure, without it nobody does."""
    from woodrat.engines.sqlite import compaction

    monkeypatch.setattr(compaction, "PATIENCE_SECONDS", 0)
    with ledger.context.engine.view(ledger.tenant):
        begun = ledger.erase(ACCOUNT, reason="a request")
        assert not begun.complete
    assert sealed(db)
    assert PIN.encode() not in sealed(db)
    make_keys(tmp_path / "others", FixedClock(seed="others"))
    with woodrat.open(db, keys=tmp_path / "others") as other:
        finished = other.finish_erasure()
        assert (finished.purged, finished.searched, finished.complete) == (True, False, False)
    with woodrat.open(db, keys=keys) as other:
        finished = other.finish_erasure()
        assert (finished.purged, finished.searched, finished.complete) == (True, True, True)
        (certificate,) = finished.certificates
        assert certificate.complete
        assert (certificate.position, certificate.kinds, certificate.root) == (begun.position, begun.kinds, begun.root)
        assert not any("--finish" in warning for warning in certificate.warnings)
        assert sealed(db) == b""
        assert not other.finish_erasure().searched


def sealed(db: Path) -> bytes:
    """Return what is noted of searches that are not finished."""
    raw = apsw.Connection(str(db))
    try:
        return b"".join(row[0] for row in raw.execute("SELECT value FROM meta WHERE name LIKE 'erasure_search%'"))
    finally:
        raw.close()


@pytest.mark.parametrize("rebuilt", [False, True])
def test_a_search_that_is_killed_is_made_by_another_process(
    ledger: Ledger, db: Path, keys: Path, monkeypatch: pytest.MonkeyPatch, rebuilt: bool
) -> None:
    """Killed in the middle, a search is made again by whoever has the key, also after a rebuild."""
    from woodrat.erasure.verbs import byte_scan

    def killed(*given: Any) -> int:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(byte_scan, "_count", killed)
        with pytest.raises(KeyboardInterrupt):
            ledger.erase(ACCOUNT, reason="a request")
    if rebuilt:
        ledger.rebuild()
    ledger.close()
    with woodrat.open(db, keys=keys) as other:
        assert other.context.engine.purged()
        finished = other.finish_erasure()
        assert finished.complete
        assert finished.certificates[0].scanned_bytes == finished.scanned_bytes
        assert finished.scanned_bytes is not None
        assert finished.scanned_bytes >= db.stat().st_size - 4096


def test_what_another_tenant_holds_does_not_show(db: Path, keys: Path) -> None:
    """A certificate is the same whether or not another tenant of the file holds the very same record."""
    found = []
    for tenant in ("alone", "beside"):
        path, folder = db.with_name(f"{tenant}.db"), keys.with_name(f"keys-{tenant}")
        make_keys(folder, FixedClock())
        with woodrat.open(path, keys=folder, tenant="one", agent="crm", clock=FixedClock()) as one:
            record = {"entity_type": "contact", "name": "Zoe Zweigmann"}
            one.store(record, observed_at=AT)
            with woodrat.open(path, keys=folder, tenant="two", agent="crm", clock=FixedClock(seed="b")) as two:
                two.store(record if tenant == "beside" else {"entity_type": "memo", "id": "1"}, observed_at=AT)
                found.append(one.erase("contact/Zoe Zweigmann", reason="a request").to_json())
    for certificate in found:
        del certificate["scanned"]
    assert found[0] == found[1]
    assert found[0]["complete"]


def test_a_leftover_in_a_shared_file_is_a_hit(db: Path, keys: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a purge that leaves the old pages; in a file of two tenants it is found, and nothing is complete."""
    from woodrat.engines.sqlite.engine import SqliteEngine

    monkeypatch.setattr(SqliteEngine, "purge", lambda self: True)
    with woodrat.open(db, keys=keys, tenant="one") as one, woodrat.open(db, keys=keys, tenant="two") as two:
        two.store({"entity_type": "memo", "id": "1"})
        one.store({"entity_type": "contact", "name": "Zoe Zweigmann"})
        certificate = one.erase("contact/Zoe Zweigmann", reason="a request")
    assert not certificate.complete
    assert certificate.hits


def test_every_column_of_text_or_bytes_is_searched(ledger: Ledger, db: Path) -> None:
    """The rows that are searched for a tenant cover every column that could hold bytes of one."""
    from woodrat.engines.sqlite.connection import queries

    raw = sqlite3.connect(db)
    listed = queries("storage.sql")
    for (table,) in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
        columns = [row[1] for row in raw.execute(f'PRAGMA table_info("{table}")') if row[2] in ("TEXT", "BLOB")]
        if table != "log":  # names of logs are made up
            assert not columns or all(f"CAST({name} AS BLOB)" in listed[table] for name in columns), table
    raw.close()
    assert ledger.context.engine.storage(ledger.tenant).holding(PIN.encode(), others=False) > 0
    head = Ref("account", "a").digest[:8]
    assert ledger.context.engine.storage(ledger.tenant).holding(head, others=False) > 0
    assert ledger.context.engine.storage(ledger.tenant).holding(head, others=True) == 0
    assert ids.is_id("observation", ledger.observations(ACCOUNT).items[0].observation.id)
