"""An entry's leaf commits to all of it and gives nothing of its body away."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.canon.digest import base32, digest
from woodrat.canon.ids import Position
from woodrat.errors import Corrupt, Refused
from woodrat.log.entry import (
    KINDS,
    NONCE_BYTES,
    POSITION_MAX,
    Entry,
    Envelope,
    Write,
    commitment,
    request_commitment,
)

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "entry.json"

LOG = "example.org/log/acme"
AT = "2026-03-02T09:15:00.000000Z"
REQUEST = hashlib.sha256(b"request").digest()


def nonce(number: int) -> bytes:
    return bytes(range(number, number + NONCE_BYTES))


def golden_writes() -> list[tuple[Sequence[Entry], str, bytes, bytes]]:
    """The writes the golden file holds, each with its key, request digest and request nonce."""
    observation = {"agent": "crm", "entity": {"key": "ada@example.org", "type": "contact"}, "fields": {"city": "Oslo"}}
    first = Write(
        LOG,
        0,
        AT,
        [("source", b"%PDF \x00\xff"), ("received", b'{"name":"a.pdf"}'), ("observation", form.encode(observation))],
        [nonce(0), nonce(1), nonce(2)],
        "retry-1",
        REQUEST,
        nonce(100),
    )
    second = Write(
        *(LOG, 3, "2026-03-02T09:15:00.000001Z", [("run.started", form.encode({"run": "ada"}))], [nonce(3)]),
        *("", bytes(32), nonce(101)),
    )
    text = form.encode({"note": "€ \u0007 é \U0001f400", "n": 1.5e-7, "z": None})
    third = Write(
        *("log “ä” \\", 4, "9999-12-31T23:59:59.999999Z", [("run.noted", text)], [nonce(9)]),
        *("ключ", REQUEST, nonce(102)),
    )
    return [
        (first, "retry-1", REQUEST, nonce(100)),
        (second, "", bytes(32), nonce(101)),
        (third, "ключ", REQUEST, nonce(102)),
    ]


def erased(entry: Entry) -> Entry:
    return replace(entry, nonce=None, body=None)


def golden_json() -> list[dict[str, Any]]:
    """The golden file's contents: every entry as JSON, what its leaf is made of, and the leaf; one more erased."""
    rows = []
    for entries, key, request_digest, request_nonce in golden_writes():
        for entry in entries:
            row: dict[str, Any] = {"entry": entry.to_json(), "leaf_data": entry.leaf_data().decode()}
            row["leaf"] = entry.leaf().hex()
            if entry.envelope.request is not None:
                row["key"], row["request_digest"] = key, request_digest.hex()
                row["request_nonce"] = request_nonce.hex()
            rows.append(row)
    gone = erased(golden_writes()[0][0][2])
    rows.append({"entry": gone.to_json(), "leaf_data": gone.leaf_data().decode(), "leaf": gone.leaf().hex()})
    return rows


def sample() -> Sequence[Entry]:
    return golden_writes()[0][0]


def flips(data: bytes) -> Iterator[bytes]:
    """Every way to change one bit of one byte, and to lose or gain a byte at either end."""
    for at in range(len(data)):
        for bit in range(8):
            yield data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]
    yield from (data[:-1], data[1:], data + b"\x00", b"\x00" + data)


def text_flips(text: str) -> Iterator[str]:
    """The same for text, where the changed bytes are still text."""
    for changed in flips(text.encode()):
        try:
            yield changed.decode()
        except UnicodeDecodeError:
            continue


def found(entry: Entry, changed: Entry) -> bool:
    """Whether the change shows: `check` fails, or the leaf is another."""
    try:
        changed.check()
    except Corrupt as error:
        return bool(error.details["position"] == changed.position)
    return changed.leaf() != entry.leaf()


def damage(entry: Entry) -> str:
    with pytest.raises(Corrupt) as caught:
        entry.check()
    assert f"entry {entry.position}: " in str(caught.value)
    return str(caught.value.details["damage"])


def test_golden_entries_are_unchanged() -> None:
    """The golden writes give the golden JSON, leaf data and leaves, byte for byte."""
    assert json.loads(GOLDEN.read_text(encoding="utf-8")) == golden_json()


def test_golden_entries_need_nothing_but_sha256() -> None:
    """Every golden leaf, commitment and request follows from the format page with SHA-256 alone."""
    for row in json.loads(GOLDEN.read_text(encoding="utf-8")):
        entry, header = row["entry"], json.loads(row["leaf_data"])
        assert hashlib.sha256(b"\x00" + row["leaf_data"].encode()).hexdigest() == row["leaf"]
        names = ("commitment", "envelope", "format", "kind", "log", "position", "recorded_at")
        assert header == {name: entry[name] for name in names}
        assert list(header) == sorted(header)
        if entry["nonce"] is None:
            continue
        made = bytes.fromhex(entry["nonce"])
        if entry["kind"] == "source":
            body = base64.b64decode(entry["body"]["base64"])
        else:
            body = form.encode(entry["body"])
        assert hashlib.sha256(made + body).hexdigest() == entry["commitment"]
        if "key" in row:
            own = bytes.fromhex(row["request_nonce"])
            request = hashlib.sha256(own + row["key"].encode() + bytes.fromhex(row["request_digest"])).hexdigest()
            assert entry["envelope"]["request"] == request
            assert own != made


def test_json_round_trip_is_exact() -> None:
    """An entry read back from its JSON is equal to the byte, erased or not."""
    for row in json.loads(GOLDEN.read_text(encoding="utf-8")):
        entry = Entry.from_json(row["entry"])
        assert entry.to_json() == row["entry"]
        assert entry.leaf().hex() == row["leaf"]
    for entries, *_ in golden_writes():
        for entry in entries:
            assert Entry.from_json(entry.to_json()) == entry
            assert Entry.from_json(erased(entry).to_json()) == erased(entry)


@given(st.binary(max_size=64))
def test_raw_content_round_trips(content: bytes) -> None:
    """Whatever bytes a source has, its entry comes back from JSON unchanged."""
    (entry,) = Write(LOG, 5, AT, [("source", content)], [nonce(1)], "", REQUEST, nonce(99))
    assert Entry.from_json(json.loads(json.dumps(entry.to_json()))) == entry


def test_a_write_is_marked_by_its_envelopes() -> None:
    """The first entry of a write states its length and request, every entry where the write starts."""
    entries = Write(LOG, 7, AT, [("tag", b"{}")] * 3, [nonce(1), nonce(2), nonce(3)], "key", REQUEST, nonce(99))
    assert [entry.position for entry in entries] == [7, 8, 9]
    assert entries[0].envelope == Envelope(7, 3, request_commitment(nonce(99), "key", REQUEST))
    assert entries[1].envelope == entries[2].envelope == Envelope(7)
    assert {entry.recorded_at for entry in entries} == {AT}
    assert entries[0].envelope.to_json().keys() == {"write", "length", "request"}
    assert entries[1].envelope.to_json() == {"write": 7}


def test_equal_arguments_give_equal_bytes() -> None:
    """Nothing but the arguments enters an entry."""
    assert golden_writes() == golden_writes()
    assert golden_json() == golden_json()


def test_commitment_hides_the_body() -> None:
    """Two entries with the same body and other nonces share neither commitment nor request, nor leaf."""
    one, two = (Write(LOG, 0, AT, [("tag", b"{}")], [nonce(n)], "key", REQUEST, nonce(n + 9))[0] for n in (1, 2))
    assert one.body == two.body
    assert one.commitment != two.commitment
    assert one.envelope.request != two.envelope.request
    assert one.leaf() != two.leaf()


def test_request_commitment_tells_key_and_digest_apart() -> None:
    """Bytes cannot be moved between the key and its neighbours."""
    made = {request_commitment(nonce(1), key, REQUEST) for key in ("", "a", "aa", "A", "ä", " ", "\x00")}
    assert len(made) == 7
    assert request_commitment(nonce(1), "", REQUEST) == hashlib.sha256(nonce(1) + REQUEST).digest()


def test_leaf_gives_nothing_away() -> None:
    """Neither the body, the nonce, the key nor any name or digest of the body is in what the leaf is made of."""
    for entries, key, request_digest, request_nonce in golden_writes():
        for entry in entries:
            data = entry.leaf_data()
            assert entry.nonce is not None
            assert entry.body is not None
            secrets = [entry.body, entry.nonce, hashlib.sha256(entry.body).digest(), request_digest, request_nonce]
            secrets.append(digest(entry.kind, entry.body))
            for secret in secrets:
                assert secret not in data
                assert secret.hex().encode() not in data
                assert base32(secret)[:26].encode() not in data
            assert not key or key.encode() not in data
            for prefix in (b"obs_", b"src_", b"sch_", b"ent_", b"run_", b"int_"):
                assert prefix not in data


def test_erasure_leaves_the_leaf() -> None:
    """An entry without body and nonce is sound and has the leaf it always had."""
    for entry in sample():
        gone = erased(entry)
        gone.check()
        assert gone.erased
        assert not entry.erased
        assert gone.leaf() == entry.leaf()


def test_any_flipped_byte_is_found() -> None:
    """One changed bit anywhere in header, envelope, nonce or body fails the check or changes the leaf."""
    for entry in sample():
        assert entry.nonce is not None
        assert entry.body is not None
        entry.check()
        envelope = entry.envelope
        mutants = [replace(entry, log=text) for text in text_flips(entry.log)]
        mutants += [replace(entry, recorded_at=text) for text in text_flips(entry.recorded_at)]
        mutants += [replace(entry, kind=text) for text in text_flips(entry.kind)]
        mutants += [replace(entry, kind=kind) for kind in KINDS - {entry.kind}]
        mutants += [replace(entry, commitment=data) for data in flips(entry.commitment)]
        mutants += [replace(entry, nonce=data) for data in flips(entry.nonce)]
        mutants += [replace(entry, body=data) for data in flips(entry.body)]
        mutants += [replace(entry, body=None), replace(entry, nonce=None)]
        for number in (-2, -1, 1, 2, 2**53):
            mutants.append(replace(entry, position=Position(entry.position + number)))
            mutants.append(replace(entry, envelope=replace(envelope, write=envelope.write + number)))
        if envelope.request is not None:
            assert envelope.length is not None
            mutants += [replace(entry, envelope=replace(envelope, request=data)) for data in flips(envelope.request)]
            lengths = (-1, 0, envelope.length - 1, envelope.length + 1, 2**53, None)
            mutants += [replace(entry, envelope=replace(envelope, length=length)) for length in lengths]
            mutants += [replace(entry, envelope=Envelope(envelope.write))]
        assert all(found(entry, mutant) for mutant in mutants)


def test_nonce_and_body_cannot_trade_bytes() -> None:
    """Moving a byte between nonce and body is found, although their concatenation stays the same."""
    entry = sample()[0]
    assert entry.nonce is not None
    assert entry.body is not None
    moved = replace(entry, nonce=entry.nonce[:-1], body=entry.nonce[-1:] + entry.body)
    assert damage(moved) == "nonce"


def test_check_names_the_damage() -> None:
    """Each kind of damage is named by its class, with the position."""
    first, second, _ = sample()
    request = first.envelope.request
    assert damage(replace(first, body=b"other")) == "commitment"
    assert damage(replace(first, nonce=nonce(40))) == "commitment"
    assert damage(replace(first, commitment=bytes(31))) == "commitment"
    assert damage(replace(first, nonce=bytes(15))) == "nonce"
    assert damage(replace(first, nonce=None)) == "nonce"
    assert damage(replace(first, body=None)) == "body"
    assert damage(replace(first, kind="observations")) == "kind"
    for log in ("", "a\x00b", "a\nb", "\x85", "\ud800", "\udfff"):
        assert damage(replace(first, log=log)) == "log"
    for position in (-1, POSITION_MAX + 1, True):
        assert damage(replace(first, position=Position(position))) == "position"
    for recorded_at in ("", "2026-03-02T09:15:00Z", "2026-03-02T09:15:00.000000+00:00", AT + "\n"):
        assert damage(replace(first, recorded_at=recorded_at)) == "recorded_at"
    for envelope in (
        Envelope(0),
        Envelope(0, 3),
        Envelope(0, None, request),
        Envelope(0, 0, request),
        Envelope(0, -1, request),
        Envelope(0, POSITION_MAX + 2, request),
        Envelope(0, 3, bytes(31)),
        Envelope(1),
        Envelope(-1),
    ):
        assert damage(replace(first, envelope=envelope)) == "envelope"
    for envelope in (Envelope(2), Envelope(1), Envelope(0, 3, request)):
        assert damage(replace(second, envelope=envelope)) == "envelope"


def test_body_that_is_not_canonical_is_not_exported() -> None:
    """A body with another spelling, or that is no JSON, could not come back as the same bytes, so it is corrupt."""
    for body in (b'{"b": 1}', b'{"b":1.0}', b'{"b":1,"a":1}', b"\xff", b"", b"{"):
        entry = Write(LOG, 0, AT, [("tag", b"{}"), ("tag", body)], [nonce(0), nonce(1)], "", REQUEST, nonce(99))[1]
        entry.check()
        with pytest.raises(Corrupt) as caught:
            entry.to_json()
        assert caught.value.details == {"position": 1, "damage": "body"}


def test_body_without_canonical_form_is_refused() -> None:
    """A body that JSON cannot say is refused at its place."""
    value = sample()[1].to_json()
    for body in ({"x": float("nan")}, {"x": "\ud800"}, {"x": object()}, {1: 1}):
        with pytest.raises(Refused) as caught:
            Entry.from_json({**value, "body": body})
        assert [fault.path for fault in caught.value.faults] == ["/body"]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"format": 1}, "/format"),
        ({"format": False}, "/format"),
        ({"log": 1}, "/log"),
        ({"position": "0"}, "/position"),
        ({"position": True}, "/position"),
        ({"recorded_at": None}, "/recorded_at"),
        ({"kind": []}, "/kind"),
        ({"commitment": "AA"}, "/commitment"),
        ({"nonce": "0 0"}, "/nonce"),
        ({"nonce": None}, "/body"),
        ({"body": None}, "/body"),
        ({"body": {"base64": "AAA"}}, "/body"),
        ({"body": {"base64": "AB=="}}, "/body"),
        ({"body": {"base64": "é"}}, "/body"),
        ({"body": {"base64": "", "more": 1}}, "/body"),
        ({"envelope": None}, "/envelope"),
        ({"envelope": {}}, "/envelope"),
        ({"envelope": {"write": 0, "more": 1}}, "/envelope"),
        ({"envelope": {"write": "0"}}, "/envelope/write"),
        ({"envelope": {"write": 0, "length": None}}, "/envelope/length"),
        ({"envelope": {"write": 0, "request": 7}}, "/envelope/request"),
        ({"more": 1}, "/more"),
    ],
)
def test_json_of_another_shape_is_refused(change: dict[str, Any], path: str) -> None:
    """JSON that `to_json` never makes is refused, and the refusal names the place."""
    with pytest.raises(Refused) as caught:
        Entry.from_json({**sample()[0].to_json(), **change})
    assert [fault.path for fault in caught.value.faults] == [path]


def test_json_without_a_key_is_refused() -> None:
    """Every key of an entry is required."""
    value = sample()[0].to_json()
    for missing in value:
        with pytest.raises(Refused) as caught:
            Entry.from_json({key: value[key] for key in value if key != missing})
        assert [fault.path for fault in caught.value.faults] == [f"/{missing}"]


@pytest.mark.parametrize(
    "change",
    [
        {"nonce": "00" * 16},
        {"nonce": "00"},
        {"commitment": "00" * 32},
        {"commitment": "00"},
        {"body": {"base64": ""}},
        {"kind": "sources"},
        {"position": 1},
        {"envelope": {"write": 0}},
    ],
)
def test_altered_json_is_corrupt(change: dict[str, Any]) -> None:
    """JSON of the right shape whose parts disagree is corrupt."""
    with pytest.raises(Corrupt):
        Entry.from_json({**sample()[0].to_json(), **change})


def test_our_own_mistakes_are_caught_before_writing() -> None:
    """A write with an entry that `check` would not accept cannot be made."""
    good: dict[str, Any] = {"log": LOG, "first": 0, "recorded_at": AT, "key": "", "request_digest": REQUEST}
    good |= {"items": [("tag", b"{}"), ("tag", b"[]")], "nonces": [nonce(0), nonce(1)], "request_nonce": nonce(99)}
    for entry in Write(**good):
        entry.check()
    wrong: list[tuple[str, Any]] = [("log", ""), ("log", "a\nb"), ("first", -1), ("first", POSITION_MAX)]
    wrong += [
        ("recorded_at", "now"),
        ("recorded_at", AT.replace("-03-", "-13-")),
        ("nonces", [nonce(0), b""]),
        ("request_nonce", b""),
    ]
    wrong += [("items", [("tag", b"{}"), ("tags", b"{}")])]
    for name, value in wrong:
        with pytest.raises(AssertionError):
            Write(**{**good, name: value})
    with pytest.raises(AssertionError):
        Write(LOG, 0, AT, [], [], "", REQUEST, nonce(99))
    with pytest.raises(AssertionError):
        Write(LOG, 0, AT, [("tag", b"{}")], [], "", REQUEST, nonce(99))
    with pytest.raises(AssertionError):
        Write(LOG, 0, AT, [("tag", b"{}")], [nonce(0)], "", b"", nonce(99))


@given(st.binary(max_size=40), st.binary(min_size=NONCE_BYTES, max_size=NONCE_BYTES))
def test_commitment_is_sha256_of_nonce_and_body(body: bytes, made: bytes) -> None:
    """The commitment is SHA-256 over the nonce and then the body."""
    assert commitment(made, body) == hashlib.sha256(made + body).digest()


if __name__ == "__main__":  # A format decision was made: write the golden file anew.
    GOLDEN.write_text(json.dumps(golden_json(), ensure_ascii=False, indent=2) + "\n", encoding="utf-8")
