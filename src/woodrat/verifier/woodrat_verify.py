#!/usr/bin/env python3
"""woodrat-verify: check a Woodrat capsule, proof or checkpoint offline, and say in plain words what is proven.

    woodrat-verify FILE --key VKEY [--checkpoint NOTE] [--json]

This file stands alone: Python 3.9 or newer and its standard library are all it needs. It imports nothing of Woodrat,
and was written from docs/formats/ (entry, tree, checkpoint, capsule, observation, merge, runs). VKEY is the verifier
key you had from the operator by a way you trust, as text or as a file: one that travels with a capsule proves nothing.

Exit code 0: proven. 1: refused, with a code and the record at fault. 2: the command line is wrong.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import sys
from typing import Any, Callable, Iterable, NoReturn

FORMAT = 0
DEPTH_MAX = 100
SIZE_MAX = 2**53 - 1
REDACTED = "[REDACTED]"
RANKED = ("latest", "highest_priority", "first", "max", "min")


class Broken(Exception):
    """What is wrong: a stable code, the record at fault, and a sentence."""

    def __init__(self, code: str, record: str, message: str) -> None:
        super().__init__(message)
        self.code, self.record, self.message = code, record, message


def broken(code: str, record: str, message: str) -> NoReturn:
    raise Broken(code, record, message)


# ------------------------------------------------------------------------------------------------ canonical JSON (JCS)


def spell(value: Any, depth: int = 0) -> str:
    """Return the one spelling of a JSON value (RFC 8785)."""
    if depth > DEPTH_MAX:
        raise ValueError("too deep")
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _spell_text(value)
    if isinstance(value, (int, float)):
        return _spell_number(value)
    if isinstance(value, list):
        return "[" + ",".join([spell(item, depth + 1) for item in value]) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))
    return "{" + ",".join([_spell_text(key) + ":" + spell(value[key], depth + 1) for key in keys]) + "}"


_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_ESCAPED = re.compile('["\\\\\x00-\x1f]')


def _spell_text(text: str) -> str:
    return '"' + _ESCAPED.sub(lambda m: _SHORT.get(m[0]) or "\\u%04x" % ord(m[0]), text) + '"'


def _spell_number(number: float) -> str:
    if isinstance(number, int) or (number == int(number) and abs(number) <= SIZE_MAX):
        if abs(number) > SIZE_MAX:
            raise ValueError("too large")
        return str(int(number))
    if abs(number) < 1e21 and number == int(number):
        raise ValueError("too large")
    sign, text = ("-", repr(-number)) if number < 0 else ("", repr(number))
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + ("" if fraction == "0" else fraction)).lstrip("0")
    lead = len(whole + fraction) - len((whole + fraction).lstrip("0"))
    point = len(whole) + int(exponent or 0) - lead  # the value is 0.digits × 10^point
    digits = digits.rstrip("0")
    if 0 < point <= 21:
        return sign + digits[:point] + ("." + digits[point:] if len(digits) > point else "")
    if -6 < point <= 0:
        return sign + "0." + "0" * -point + digits
    tail = "." + digits[1:] if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if point > 0 else '-'}{abs(point - 1)}"


def read_json(data: bytes, record: str) -> Any:
    """Return the value of a canonical JSON file, which ends with one line feed; every byte of it counts."""

    def refuse(text: str) -> NoReturn:
        raise ValueError(text)

    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=refuse)
        good = spell(value) + "\n" == text
    except (ValueError, RecursionError, OverflowError):
        good, value = False, None
    return value if good else broken("form", record, "the file is not canonical JSON with one line feed at its end")


def get(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def is_int(value: Any) -> bool:
    return type(value) is int or (type(value) is float and value == int(value) and abs(value) <= SIZE_MAX)


def hexed(value: Any, count: int) -> bytes | None:
    """Return the bytes that lower-case hex spells, or None unless there are `count` of them."""
    good = isinstance(value, str) and len(value) == 2 * count and re.fullmatch("[0-9a-f]*", value)
    return bytes.fromhex(value) if good else None


def based(text: Any) -> bytes | None:
    """Return the bytes that base64 spells, or None unless it is their one spelling."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
        return data if base64.b64encode(data).decode("ascii") == text else None
    except (binascii.Error, ValueError, AttributeError):
        return None


# ------------------------------------------------------------------------------------------------- Ed25519 (RFC 8032)

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P


def _unpack(data: bytes) -> Any:
    number = int.from_bytes(data, "little")
    y, odd = number & (2**255 - 1), number >> 255
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * pow(2, (P - 1) // 4, P) % P
    if (x * x - square) % P or (x == 0 and odd):
        return None
    x = x if x & 1 == odd else P - x
    return x, y, 1, x * y % P


def _pack(point: Any) -> bytes:
    x, y, z, _ = point
    inverse = pow(z, -1, P)
    number: int = y * inverse % P | (x * inverse % P & 1) << 255
    return number.to_bytes(32, "little")


def _add(a: Any, b: Any) -> Any:
    one, two = (a[1] - a[0]) * (b[1] - b[0]) % P, (a[1] + a[0]) * (b[1] + b[0]) % P
    three, four = 2 * a[3] * b[3] * D % P, 2 * a[2] * b[2] % P
    e, f, g, h = two - one, four - three, four + three, two + one
    return e * f % P, g * h % P, f * g % P, e * h % P


def _times(number: int, point: Any) -> Any:
    found = (0, 1, 1, 0)
    while number:
        if number & 1:
            found = _add(found, point)
        point, number = _add(point, point), number >> 1
    return found


def ed25519(public: bytes, message: bytes, signature: bytes) -> bool:
    """Say whether a signature is that of a key; strict about spellings, small orders and the size of S."""
    if len(public) != 32 or len(signature) != 64:
        return False
    key, s = _unpack(public), int.from_bytes(signature[32:], "little")
    if key is None or s >= ORDER or _pack(_times(8, key)) == _pack((0, 1, 1, 0)):
        return False
    k = int.from_bytes(hashlib.sha512(signature[:32] + public + message).digest(), "little") % ORDER
    minus = (-key[0] % P, key[1], key[2], -key[3] % P)
    base = _unpack((4 * pow(5, -1, P) % P).to_bytes(32, "little"))
    return _pack(_add(_times(s, base), _times(k, minus))) == signature[:32]


# ---------------------------------------------------------------------------------------- notes and checkpoints (C2SP)

_SPACES = re.compile("[\t-\r \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]")
_CONTROLS = re.compile("[\x00-\x09\x0b-\x1f]")


def read_key(text: str) -> dict[str, Any]:
    """Return a verifier key `name+hash+base64`."""
    parts = text.strip(" \t\r\n").split("+", 2)
    data = based(parts[2]) if len(parts) == 3 else None
    if data is None or len(data) != 33 or data[0] != 1 or not _is_name(parts[0]):
        broken("key", "key", "the key is not name+hash+base64 of an Ed25519 key")
    name, hash = parts[0], hashlib.sha256(parts[0].encode() + b"\n" + data).digest()[:4]
    if hash.hex() != parts[1]:
        broken("key", "key", "the hash of the key is not that of its name and bytes")
    return {"name": name, "hash": hash, "public": data[1:], "id": name + "+" + parts[1]}


def _is_name(name: str) -> bool:
    return name != "" and "+" not in name and not _SPACES.search(name) and not _CONTROLS.search(name)


def read_note(note: Any, record: str, key: dict[str, Any]) -> str:
    """Return the text of a signed note if the key signed it."""
    if not isinstance(note, str) or _CONTROLS.search(note) or re.search("[\ud800-\udfff]", note):
        broken("note", record, "it is not a signed note: text without control characters is expected")
    if len(note.encode()) > 1_000_000:
        broken("note", record, "it is not a signed note: it is longer than 1000000 bytes")
    head, mark, tail = note.rpartition("\n\n")
    if not mark or not tail.endswith("\n"):
        broken("note", record, "it is not a signed note: text, an empty line and signature lines are expected")
    text, found, lines = head + "\n", False, tail[:-1].split("\n")
    if len(lines) > 100:
        broken("note", record, "it is not a signed note: it has more than 100 signatures")
    good: list[tuple[str, bytes]] = []
    for line in lines:
        parts = line[2:].split(" ", 1) if line.startswith("\N{EM DASH} ") else []
        data = based(parts[1]) if len(parts) == 2 and _is_name(parts[0]) else None
        if data is None or len(data) < 5:
            broken("note", record, "it is not a signed note: a line is not a signature line")
        good.append((parts[0], data))
    for name, data in good:
        if name == key["name"] and data[:4] == key["hash"]:
            if not ed25519(key["public"], text.encode(), data[4:]):
                broken("signature", record, "the signature of " + key["id"] + " is not one of this text")
            found = True
    if not found:
        broken("signer", record, "it is not signed by " + key["id"])
    return text


def read_checkpoint(note: Any, record: str, key: dict[str, Any]) -> dict[str, Any]:
    """Return origin, size and root of a checkpoint that the key signed."""
    lines = read_note(note, record, key).split("\n")[:-1]
    root = based(lines[2]) if len(lines) >= 3 else None
    if root is None or len(root) != 32 or "" in lines or not re.fullmatch("0|[1-9][0-9]{0,15}", lines[1]):
        broken("checkpoint", record, "the note is signed, and its text is not origin, size and root")
    if int(lines[1]) > SIZE_MAX:
        broken("checkpoint", record, "the note is signed, and its text is not origin, size and root")
    return {"origin": lines[0], "size": int(lines[1]), "root": root, "extensions": lines[3:]}


def told(point: dict[str, Any], key: dict[str, Any]) -> str:
    more = "".join(", " + line for line in point["extensions"])
    return (
        f"{key['id']} signed that log {point['origin']} had {point['size']} entries, root {point['root'].hex()}{more}."
    )


# ------------------------------------------------------------------------------------------------------ tree (RFC 6962)


def _node(left: bytes, right: bytes) -> bytes:
    return hashlib.sha256(b"\x01" + left + right).digest()


def _sides(start: int, end: int, size: int) -> list[bool]:
    """Return, from the leaf up, whether each sibling on the way to the subtree start..end stands to its left."""
    sides, low, high = [], 0, size
    while (low, high) != (start, end):
        half = 1
        while half * 2 < high - low:
            half *= 2
        if end <= low + half:
            sides.append(False)
            high = low + half
        else:
            sides.append(True)
            low += half
    return sides[::-1]


def included(leaf: bytes, index: int, size: int, proof: list[bytes], root: bytes) -> bool:
    if not 0 <= index < size:
        return False
    sides = _sides(index, index + 1, size)
    if len(sides) != len(proof):
        return False
    for left, sibling in zip(sides, proof):
        leaf = _node(sibling, leaf) if left else _node(leaf, sibling)
    return leaf == root


def consistent(old: dict[str, Any], new: dict[str, Any], proof: list[bytes]) -> bool:
    """Say whether a proof shows that the older tree is the beginning of the newer one."""
    if old["size"] > new["size"]:
        return False
    if old["size"] == new["size"]:
        return not proof and old["root"] == new["root"]
    if old["size"] == 0:
        return not proof and old["root"] == hashlib.sha256(b"").digest()
    start = old["size"] & (old["size"] - 1)
    sides, hashes = _sides(start, old["size"], new["size"]), proof if start else [old["root"], *proof]
    if len(hashes) != len(sides) + 1:
        return False
    first = second = hashes[0]
    for left, sibling in zip(sides, hashes[1:]):
        first = _node(sibling, first) if left else first
        second = _node(sibling, second) if left else _node(second, sibling)
    return (first, second) == (old["root"], new["root"])


# -------------------------------------------------------------------------------------------------------------- entries

ENTRY_KEYS = {"body", "commitment", "envelope", "format", "kind", "log", "nonce", "position", "proof", "recorded_at"}


def hashes_of(value: Any, record: str) -> list[bytes]:
    found = [hexed(item, 32) for item in value] if isinstance(value, list) else [None]
    return [broken("shape", record, "its proof is not a list of hashes") if item is None else item for item in found]


def read_entry(entry: Any, record: str, point: dict[str, Any]) -> dict[str, Any]:
    """Check one entry against the checkpoint, and return it with its body's bytes and name."""
    if not isinstance(entry, dict) or set(entry) != ENTRY_KEYS or not is_int(entry["position"]):
        broken("shape", record, "it is not an entry with its proof")
    record = f"entry {spell(entry['position'])}"
    commitment, nonce = hexed(entry["commitment"], 32), hexed(entry["nonce"], 16)
    proof = hashes_of(entry["proof"], record)
    if commitment is None or (entry["nonce"] is not None and nonce is None) or not isinstance(entry["kind"], str):
        broken("shape", record, "it is not an entry with its proof")
    kind, body = entry["kind"], None
    if nonce is None and entry["body"] is not None:
        broken("shape", record, "it has a body and no nonce")
    if nonce is not None:
        raw = entry["body"]
        if kind == "source":
            body = based(get(raw, "base64")) if isinstance(raw, dict) and len(raw) == 1 else None
        else:
            body = spell(raw).encode()
        if body is None:
            broken("shape", record, "the content of the source is not base64")
        if hashlib.sha256(nonce + body).digest() != commitment:
            broken("body", record, f"the content of this {kind} is not what the log committed to")
    header = {name: entry[name] for name in ENTRY_KEYS - {"body", "nonce", "proof"}}
    leaf = hashlib.sha256(b"\x00" + spell(header).encode()).digest()
    if not included(leaf, int(entry["position"]), point["size"], proof, point["root"]):
        broken("inclusion", record, "its proof does not lead to the root that was signed")
    name = named(kind, body) if body is not None and kind in ("observation", "source") else None
    value = None if body is None or kind == "source" else entry["body"]
    return {
        "position": int(entry["position"]),
        "kind": kind,
        "at": entry["recorded_at"],
        "log": entry["log"],
        "body": value,
        "name": name,
        "bytes": None if body is None else len(body),
        "record": record,
    }


def named(kind: str, body: bytes) -> str:
    digest = hashlib.sha256(f"woodrat/{kind}/{FORMAT}\n".encode() + body).digest()
    return kind[:3].replace("sou", "src") + "_" + base64.b32encode(digest).decode().rstrip("=").lower()


def digest_of(name: str) -> bytes:
    return base64.b32decode(name[4:].upper() + "====")


def short(name: str) -> str:
    return name[:30]


# ------------------------------------------------------------------------------------------- what a document claims


def verify(data: bytes, key_text: str, against: str | None = None) -> list[str]:
    """Return what a file proves, line by line, or raise `Broken`."""
    key = read_key(key_text)
    if not data.startswith(b"{"):
        try:
            note = data.decode("utf-8")
        except UnicodeDecodeError:
            broken("note", "checkpoint", "it is not a signed note: it is not UTF-8")
        point = read_checkpoint(note, "checkpoint", key)
        lines = [told(point, key)]
        return (
            lines if against is None else [*lines, compared(point, read_checkpoint(against, "other checkpoint", key))]
        )
    document = read_json(data, "file")
    kind = get(document, "woodrat")
    if get(document, "format") != FORMAT or isinstance(get(document, "format"), bool):
        broken("shape", "file", "it is not of format 0")
    if kind == "consistency":
        return _growth(document, key, against)
    keys = {
        "capsule": {"checkpoint", "claim", "entries", "format", "woodrat"},
        "proof": {"checkpoint", "entry", "format", "proof", "woodrat"},
    }
    if not isinstance(kind, str) or kind not in keys or set(document) != keys[kind]:
        broken("shape", "file", "it is not a capsule, a proof or a checkpoint of Woodrat")
    point = read_checkpoint(document["checkpoint"], "checkpoint", key)
    lines = [told(point, key)]
    if against is not None:
        lines.append(compared(point, read_checkpoint(against, "other checkpoint", key)))
    if kind == "proof":
        given = document["entry"]
        entry = read_entry(dict(given, proof=document["proof"]) if isinstance(given, dict) else None, "entry", point)
        return [*lines, f"{entry['record']} is in that log, byte for byte: {summary(entry)}"]
    return lines + _capsule(document, point)


def compared(point: dict[str, Any], other: dict[str, Any]) -> str:
    """Say how two checkpoints of one log stand to each other, as far as that shows without a proof."""
    if point["origin"] != other["origin"]:
        broken("origin", "checkpoint", f"it is of log {point['origin']}, and the other one of log {other['origin']}")
    if point["size"] < other["size"]:
        gone = other["size"] - point["size"]
        broken(
            "truncated", "checkpoint", f"it covers {gone} entries less than the checkpoint you hold ({other['size']})"
        )
    if point["size"] == other["size"] and point["root"] != other["root"]:
        broken(
            "forked",
            "checkpoint",
            f"it has another root than the checkpoint you hold, at the same size {other['size']}",
        )
    if point["size"] == other["size"]:
        return "It is the same as the checkpoint you hold."
    return (
        f"It is longer than the checkpoint you hold ({other['size']} entries); only a consistency proof joins the two."
    )


def _growth(document: Any, key: dict[str, Any], against: str | None) -> list[str]:
    if set(document) != {"format", "from", "proof", "to", "woodrat"}:
        broken("shape", "file", "it is not a consistency proof of Woodrat")
    old, new = read_checkpoint(document["from"], "from", key), read_checkpoint(document["to"], "to", key)
    if old["origin"] != new["origin"]:
        broken("origin", "to", f"it is of log {new['origin']}, and from is of log {old['origin']}")
    if not consistent(old, new, hashes_of(document["proof"], "proof")):
        broken("consistency", "proof", "it does not show that the newer log goes on from the older one")
    lines = [told(old, key), told(new, key)]
    lines.append(f"The first {old['size']} entries of the newer log are those of the older one.")
    held = None if against is None else read_checkpoint(against, "other checkpoint", key)
    return lines if held is None else [*lines, compared(new, held)]


def _capsule(document: Any, point: dict[str, Any]) -> list[str]:
    claim, given = document["claim"], document["entries"]
    if not isinstance(given, list) or not given:
        broken("shape", "entries", "there are none")
    positions = get(claim, "positions")
    if not isinstance(positions, list) or not all(is_int(item) for item in positions):
        broken("shape", "claim", "its positions are not a list of numbers")
    listed = [int(item) for item in positions]
    held = [get(entry, "position") for entry in given]
    for index, item in enumerate(held):
        if not is_int(item):
            broken("shape", f"entries/{index}", "it has no position")
    if held != sorted(held) or len(set(held)) != len(held):
        broken("order", "entries", "they are not in the order of the log, each once")
    if held != listed:
        gone = sorted(set(listed) - set(held)) or sorted(set(held) - set(listed)) or [0]
        broken("entries", f"entry {gone[0]}", "the entries of the capsule are not those that its claim lists")
    entries = [read_entry(entry, f"entries/{index}", point) for index, entry in enumerate(given)]
    lines = [f"{len(entries)} entries of that log are in this capsule, byte for byte, each in its place."]
    for log in sorted({text_of(entry["log"]) for entry in entries} - {point["origin"]}):
        count = sum(text_of(entry["log"]) == log for entry in entries)
        lines.append(f"{count} of them were written under the name of log {log}, which this log goes on from.")
    for entry in entries:
        if entry["bytes"] is None:
            lines.append(
                f"{entry['record']} ({entry['kind']}): its place is proven; its content was erased or left out."
            )
    kinds: dict[str, Callable[..., list[str]]] = {
        "observation": _observed,
        "field": _field,
        "run": _run,
        "decision": _run,
    }
    kind = get(claim, "kind")
    if not isinstance(kind, str) or kind not in kinds:
        broken("shape", "claim", "it is not about an observation, a field, a run or a decision")
    lines += kinds[kind](claim, entries, point)
    lines.append("Not proven: that what was said is true, and that nothing else was said.")
    return lines


def claimed(claim: Any, *names: str) -> list[Any]:
    if set(claim) != {"kind", "positions", *names}:
        broken("shape", "claim", "it has other parts than a claim of its kind")
    return [claim[name] for name in names]


def of_kind(entries: list[Any], *kinds: str) -> list[Any]:
    return [entry for entry in entries if entry["kind"] in kinds and isinstance(entry["body"], dict)]


def summary(entry: dict[str, Any]) -> str:
    body = entry["body"]
    if entry["bytes"] is None:
        return f"a {entry['kind']} whose content was erased or left out."
    if entry["kind"] == "source":
        return f"source {short(entry['name'])} of {entry['bytes']} bytes."
    if entry["kind"] != "observation" or not isinstance(body, dict):
        return f"a {entry['kind']}: {spell(body)}"
    said = get(body, "fields")
    what = "" if said is None else f" {spell(said)}"
    agent, when, op = (text_of(get(body, name)) for name in ("agent", "observed_at", "op"))
    return f"{short(entry['name'])}, in which {agent} said of {ref_of(body)} at {when}: {op}{what}."


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else spell(value)


def ref_of(body: Any) -> str:
    entity = get(body, "entity")
    return f"{text_of(get(entity, 'type'))}/{text_of(get(entity, 'key'))}"


def lineage(entries: list[Any], observation: dict[str, Any]) -> list[str]:
    """Tell where an observation came from, as far as the capsule has it."""
    body, lines = observation["body"], []
    reading = get(body, "interpretation")
    if reading is not None:
        for entry in of_kind(entries, "interpretation.started", "interpretation.ended"):
            if get(entry["body"], "interpretation") == reading:
                lines.append(f"  {entry['record']}: {entry['kind']} {spell(entry['body'])}")
    source = get(body, "source")
    if source is not None:
        content = [entry for entry in entries if entry["name"] == source]
        for entry in content[:1]:
            lines.append(f"  {entry['record']}: {summary(entry)}")
        if not content:
            lines.append(f"  The content of its source {short(text_of(source))} is not in this capsule.")
        for entry in of_kind(entries, "received"):
            if get(entry["body"], "source") == source:
                by, name = get(entry["body"], "agent"), get(entry["body"], "name")
                lines.append(f"  {entry['record']}: {text_of(by)} delivered that source as {spell(name)}.")
    return lines


def _observed(claim: Any, entries: list[Any], point: Any) -> list[str]:
    (name,) = claimed(claim, "observation")
    for entry in of_kind(entries, "observation"):
        if entry["name"] == name:
            return [f"{entry['record']}: {summary(entry)}", *lineage(entries, entry)]
    return broken("claim", "claim", "the observation it names is not among the entries")


# ----------------------------------------------------------------------------------------- a field, merged once more


def order(value: Any) -> Any:
    """Return what JSON values are ordered by: null, false, true, numbers, text, arrays, objects."""
    if value is None or isinstance(value, bool):
        return ({None: 0, False: 1, True: 2}[value],)
    if isinstance(value, (int, float)):
        return (3, value)
    if isinstance(value, str):
        return (4, value.encode("utf-8", "surrogatepass"))
    if isinstance(value, list):
        return (5, [order(item) for item in value])
    return (6, spell(value).encode("utf-8", "surrogatepass"))


def latest(claim: dict[str, Any]) -> Any:
    return (claim["at"], claim["priority"], order(claim["value"]))


class Fold:
    """The observations of one entity, or of a group, as docs/formats/merge.md merges them."""

    def __init__(
        self,
        members: set[str],
        entries: list[Any],
        field: str = "",
        policy: str = "latest",
        misfits: Iterable[int] = (),
    ) -> None:
        self.members, self.field, self.policy = members, field, policy
        self.said: dict[str, Any] = {}
        aside = set(misfits)
        for entry in entries:
            body, ref = entry["body"], ref_of(entry["body"])
            if ref in members and (not ref.startswith("audit_event/") or get(body, "op") == "assert"):
                self.said[entry["name"]] = dict(body, misfit=entry["position"] in aside, ref=ref)
        self.named: dict[str, list[str]] = {}
        for name, body in self.said.items():
            for target in get(body, "replaces") or ():
                self.named.setdefault(target, []).append(name)
        self.live = self._settle(self._withdraws, lambda by, live: live[by], negate=True)

    def _withdraws(self, by: str, name: str) -> bool:
        return bool(self.said[by]["op"] == "retract" and self.said[by]["ref"] == self.said[name]["ref"])

    def _marks(self, by: str, name: str) -> bool:
        markers = ("delete", "restore")
        same = bool(self.said[by]["ref"] == self.said[name]["ref"])
        return same and self.said[by]["op"] in markers and self.said[name]["op"] in markers

    def _settle(
        self, counts: Callable[[str, str], bool], holds: Callable[..., bool], negate: bool = False
    ) -> dict[str, bool]:
        """Return, for every observation, whether one that names it and counts holds; names are never circular."""
        found: dict[str, bool] = {}
        todo = list(self.said)
        while todo:
            name = todo.pop()
            if name in found:
                continue
            by = [other for other in self.named.get(name, ()) if counts(other, name)]
            waiting = [other for other in by if other not in found]
            if waiting:
                todo += [name, *waiting]
                continue
            found[name] = any(holds(other, found) for other in by) is not negate
        return found

    def deleted(self) -> set[str]:
        """Return the members that are deleted."""
        replaced = self._settle(self._marks, lambda by, found: self.live[by] or found[by])
        standing = [name for name in self.said if self.live[name] and not replaced[name]]
        return {self.said[name]["ref"] for name in standing if self.said[name]["op"] == "delete"}

    def exists(self) -> bool:
        return any(self.live[name] and body["op"] != "retract" for name, body in self.said.items())

    def states(self, body: Any, element: str | None = None) -> bool:
        if body["op"] not in ("assert", "correct"):
            return False
        values, gone = get(body, "fields") or {}, get(body, "remove") or {}
        if element is None:
            return self.field in values or self.field in gone
        return element in self.elements(body, "fields") or element in self.elements(body, "remove")

    def elements(self, body: Any, part: str) -> list[str]:
        found = (get(body, part) or {}).get(self.field, [])
        return [spell(item) for item in found] if isinstance(found, list) else []

    def fits(self, body: Any) -> bool:
        values, gone = get(body, "fields") or {}, get(body, "remove") or {}
        value = values.get(self.field)
        if body["misfit"] or (self.field in gone and self.policy != "union"):
            return False
        if self.field not in values or self.policy in RANKED:
            return True
        if self.policy == "sum":
            return is_int(value) or (isinstance(value, str) and len(value) <= 400 and bool(DECIMAL.fullmatch(value)))
        return isinstance(value, list)

    def claim(self, name: str) -> dict[str, Any]:
        body = self.said[name]
        value = (get(body, "fields") or {}).get(self.field)
        return {"name": name, "at": body["observed_at"], "priority": body["priority"], "value": value}

    def standing(self, among: Iterable[str], element: str | None = None) -> tuple[list[str], list[str]]:
        """Return the standing corrections among some observations, and the live assertions."""
        group = set(among)

        def corrects(by: str, name: str) -> bool:
            body = self.said[by]
            return by in group and body["op"] == "correct" and self.states(body, element) and self.fits(body)

        replaced = self._settle(corrects, lambda by, found: self.live[by] or found[by])
        live = [n for n in group if self.live[n] and self.fits(self.said[n]) and self.states(self.said[n], element)]
        corrections = [n for n in live if self.said[n]["op"] == "correct" and not replaced[n]]
        return corrections, [n for n in live if self.said[n]["op"] == "assert"]

    def best(self, names: list[str], rank: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        """Return the highest claim; of equal ones the one with the smallest digest."""
        claims = [self.claim(name) for name in sorted(names, key=digest_of)]
        top = max(rank(claim) for claim in claims)
        return next(claim for claim in claims if rank(claim) == top)

    def value(self) -> tuple[bool, Any, str | None]:
        """Return whether the field has a value, the value, and the observation it is from if it is from one."""
        gone = self.deleted()
        if gone == self.members:
            return False, None, None
        stating = [name for name, body in self.said.items() if self.states(body) and body["ref"] not in gone]
        if self.policy == "union":
            return self._union(stating)
        if self.policy in ("sum", "append"):
            return self._contributions(stating)
        corrections, assertions = self.standing(stating)
        if not corrections and not assertions:
            return False, None, None
        if corrections or self.policy == "latest":
            found = self.best(corrections or assertions, latest)
        elif self.policy == "highest_priority":
            found = self.best(assertions, lambda c: (c["priority"], c["at"], order(c["value"])))
        elif self.policy == "first":
            first = min(self.said[name]["observed_at"] for name in assertions)
            found = self.best([n for n in assertions if self.said[n]["observed_at"] == first], latest)
        elif self.policy == "max":
            found = self.best(assertions, lambda c: order(c["value"]))
        else:
            least = min(order(self.claim(name)["value"]) for name in assertions)
            found = self.best([n for n in assertions if order(self.claim(n)["value"]) == least], lambda c: 0)
        return True, found["value"], found["name"]

    def _union(self, stating: list[str]) -> tuple[bool, Any, str | None]:
        live = [name for name in stating if self.live[name] and self.fits(self.said[name])]
        spoken = {text for n in stating for part in ("fields", "remove") for text in self.elements(self.said[n], part)}
        inside = []
        for element in spoken:
            corrections, assertions = self.standing(stating, element)
            ranks = [
                (
                    self.said[n]["observed_at"],
                    self.said[n]["priority"],
                    element in self.elements(self.said[n], "fields"),
                )
                for n in corrections or assertions
            ]
            if ranks and max(ranks)[2]:
                inside.append(json.loads(element))
        return bool(live), sorted(inside, key=order), None

    def _contributions(self, stating: list[str]) -> tuple[bool, Any, str | None]:
        originals = [name for name in stating if self.said[name]["op"] == "assert"]
        corrected: dict[str, list[str]] = {name: [] for name in originals}
        for name in stating:
            meant = [n for n in get(self.said[name], "replaces") or () if n in corrected]
            if self.said[name]["op"] == "correct" and len(meant) == 1:
                corrected[meant[0]].append(name)
        found = []
        originals.sort(
            key=lambda name: (self.said[name]["observed_at"], order(self.claim(name)["value"]), digest_of(name))
        )
        for name in originals:
            corrections, _ = self.standing(corrected[name])
            if corrections:
                found.append(self.best(corrections, latest)["value"])
            elif self.live[name] and self.fits(self.said[name]):
                found.append(self.claim(name)["value"])
        if self.policy == "append":
            return bool(found), [item for value in found for item in value], None
        return bool(found), total(found), None


def group_of(entity: str, entries: list[Any]) -> set[str]:
    """Return the entities that `same_as` relations here join with one, itself included."""
    edges = []
    for ref in {ref_of(entry["body"]) for entry in entries}:
        type, _, key = ref.partition("/")
        try:
            ends = json.loads(key) if type == "same_as" else None
        except (ValueError, RecursionError):
            ends = None
        if not isinstance(ends, list) or len(ends) != 2 or not all(isinstance(end, str) for end in ends):
            continue
        kinds = {end.partition("/")[0] for end in ends}
        sound = spell(ends) == key and len(kinds) == 1 and "same_as" not in kinds
        fold = Fold({ref}, entries)
        if sound and order(ends[0]) < order(ends[1]) and fold.exists() and not fold.deleted():
            edges.append(set(ends))
    found, before = {entity}, 0
    while len(found) > before:
        before = len(found)
        found = found.union(*(edge for edge in edges if edge & found))
    return found


DECIMAL = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")


def total(values: list[Any]) -> Any:
    """Return an exact sum: an integer while all terms are and it is in range, else decimal text."""
    places, scaled = 0, []
    for value in values:
        text = value if isinstance(value, str) else spell(value)
        whole, _, fraction = text.partition(".")
        places = max(places, len(fraction))
        scaled.append((int(whole + fraction), len(fraction)))
    number = sum(term * 10 ** (places - count) for term, count in scaled)
    if not any(isinstance(value, str) for value in values) and abs(number) <= SIZE_MAX:
        return number
    digits = str(abs(number)).rjust(places + 1, "0")
    whole, fraction = digits[: len(digits) - places], digits[len(digits) - places :].rstrip("0")
    return ("-" if number < 0 else "") + whole + ("." + fraction if fraction else "")


def policy_of(entries: list[Any], type: str, field: str) -> tuple[str, Any]:
    """Return the merge policy of a field and the schema entry that says so: the highest by version, digest."""
    best: tuple[Any, Any] | None = None
    for entry in of_kind(entries, "schema"):
        version = get(get(entry["body"], "schema"), "x-woodrat-version")
        if get(entry["body"], "type") == type and is_int(version):
            digest = hashlib.sha256(b"woodrat/schema/0\n" + spell(entry["body"]).encode()).digest()
            if best is None or (version, digest) > best[0]:
                best = ((version, digest), entry)
    if best is None:
        return "latest", None
    property = get(get(get(best[1]["body"], "schema"), "properties"), field)
    policy = get(property, "x-woodrat-merge")
    return "latest" if policy is None else policy if isinstance(policy, str) else "of the user's own", best[1]


def _field(claim: Any, entries: list[Any], point: Any) -> list[str]:
    entity, field, value, misfits = claimed(claim, "entity", "field", "value", "misfits")
    if not isinstance(entity, str) or not isinstance(field, str) or not isinstance(misfits, list):
        broken("shape", "claim", "it is not about a field of an entity")
    said = of_kind(entries, "observation")
    places = {entry["position"]: entry for entry in said}
    for item in misfits:
        if not is_int(item) or int(item) not in places:
            broken("claim", "claim", "it sets aside an entry that is not an observation here")
    policy, schema = policy_of(entries, entity.partition("/")[0], field)
    if policy not in RANKED and policy not in ("union", "sum", "append"):
        broken("claim", "claim", f"its policy {policy} cannot be followed without its code")
    members = group_of(entity, said)
    fold = Fold(members, said, field, policy, [int(item) for item in misfits])
    there, found, winner = fold.value()
    if not there or spell(found) != spell(value):
        seen = spell(found) if there else "no value"
        broken("claim", "claim", f"the observations here merge to {seen} under {policy}, not to {spell(value)}")
    known = "no schema of it is here" if schema is None else f"schema in {schema['record']}"
    lines = [
        f"{entity}#{field} = {spell(value)} follows from the {len(fold.said)} observations of it in this capsule, "
        f"under policy {policy} ({known}), as of the checkpoint."
    ]
    others = sorted(members - {entity}, key=order)
    lines += [f"It is one with {other}, by same_as relations in this capsule." for other in others]
    lines += [
        f"{places[int(item)]['record']} was set aside as not fitting the schema; that was not checked."
        for item in misfits
    ]
    for entry in said:
        mark = " This one set the value." if entry["name"] == winner else ""
        lines += [f"{entry['record']}: {summary(entry)}{mark}", *lineage(entries, entry)]
    return lines


# ------------------------------------------------------------------------------------------ a run and its decisions


def is_whole(value: Any) -> bool:
    """Say whether a recorded value is all there: neither hidden nor cut."""
    if isinstance(value, dict):
        marks = ("$truncated", "$unserialisable")
        return not any(mark in value for mark in marks) and all(is_whole(item) for item in value.values())
    if isinstance(value, list):
        return all(is_whole(item) for item in value)
    return value != REDACTED if isinstance(value, str) else True


def _run(claim: Any, entries: list[Any], point: Any) -> list[str]:
    run, stage = claimed(claim, "run", "stage") if claim["kind"] == "decision" else [*claimed(claim, "run"), None]
    steps = [entry for entry in entries if entry["kind"].startswith("run.") and isinstance(entry["body"], dict)]
    for entry in steps:
        if get(entry["body"], "run") != run:
            broken("claim", entry["record"], f"it is not of run {text_of(run)}")
    started = of_kind(entries, "run.started")
    if not started:
        broken("claim", "claim", "the beginning of the run is not among the entries")
    begun = started[0]["body"]
    lines = [f"{started[0]['record']}: {run} by {text_of(get(begun, 'agent'))} was asked {spell(get(begun, 'query'))}."]
    decided = [e for e in of_kind(entries, "run.decided") if stage is None or get(e["body"], "stage") == stage]
    if claim["kind"] == "decision" and (stage is None or not decided):
        broken("claim", "claim", "the decision it names is not among the entries")
    shown: set[str] = set()
    for entry in decided:
        lines += _decision(entry, entries, shown)
    for entry in of_kind(entries, "run.ended"):
        body = entry["body"]
        answer = f" and the answer {spell(body['answer'])}" if "answer" in body else ""
        lines.append(f"{entry['record']}: it ended as {text_of(get(body, 'status'))}{answer}.")
    rest = [e for e in of_kind(entries, "observation") if e["name"] not in shown]
    return lines + [f"{entry['record']}: {summary(entry)}" for entry in rest]


def _decision(entry: Any, entries: list[Any], shown: set[str]) -> list[str]:
    body, record = entry["body"], entry["record"]
    rules = objects(get(body, "rules"))
    matched = [rule for rule in rules if rule.get("matched") is True]
    stage, at = text_of(get(body, "stage")), text_of(get(body, "started_at"))
    lines = [f"{record}: {stage} was decided as {spell(get(body, 'chosen'))} at {at}."]
    for index, rule in enumerate(rules):
        lines += _rule(rule, index, record, entries, shown, get(get(body, "omitted"), "conditions") is not None)
    if "omitted" not in body:
        taken = [rule.get("chosen") for rule in matched]
        if get(body, "mode") == "select":
            wrong = bool(taken) and spell(taken) != spell(get(body, "chosen"))
        else:
            wrong = bool(taken) and (len(taken) > 1 or spell(taken[0]) != spell(get(body, "chosen")))
        if (
            is_whole(taken)
            and is_whole(get(body, "chosen"))
            and (wrong or bool(taken) is (get(body, "default") is True))
        ):
            broken("decision", record, "what was chosen is not what its matching rules say")
    if not matched:
        lines.append("  No rule matched, and the default was taken.")
    return lines


def _rule(rule: Any, index: int, record: str, entries: list[Any], shown: set[str], cut: bool) -> list[str]:
    name = text_of(rule["label"]) if "label" in rule else f"number {index}"
    conditions = objects(get(rule, "conditions"))
    held = rule.get("matched") is True
    word = "matched" if held else "did not match"
    if "when" not in rule:
        code = text_of(get(rule, "predicate"))
        lines = [f"  Rule {name} is code ({code}); it {word}, which was not evaluated again."]
    else:
        exact = is_whole(rule["when"]) and isinstance(rule["when"], dict) and "error" not in rule and not cut
        results = [evaluated(item) for item in conditions]
        for item, result in zip(conditions, results):
            if result is not None and result is not (item.get("result") is True):
                recorded = f"is recorded as {spell(item.get('result'))}, and is not so"
                broken("decision", record, f"rule {name}: {told_condition(item)} {recorded}")
        if exact and not _same_conditions(rule["when"], conditions):
            broken("decision", record, f"rule {name}: its conditions are not those that were recorded")
        if exact and held is not (bool(conditions) and all(item.get("result") is True for item in conditions)):
            recorded = "matched" if held else "not matched"
            broken("decision", record, f"rule {name} is recorded as {recorded}, and is not so")
        whole = exact and None not in results
        again = "evaluated again: so it is" if whole else "not all of it could be evaluated again"
        lines = [f"  Rule {name} {word}; {again}."]
    for item in conditions:
        outcome = "holds" if item.get("result") is True else "does not hold"
        first, *rest = _origin(item, record, entries, shown)
        lines += [f"    {told_condition(item)}: {outcome}. {first}", *rest]
    return lines


def objects(value: Any) -> list[Any]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def told_condition(item: Any) -> str:
    actual = spell(item["actual"]) if "actual" in item else "nothing"
    compared = f" {text_of(item['op'])} {spell(item.get('operand'))}" if "op" in item else ""
    return f"{text_of(item.get('key'))} = {actual}{compared}"


def _same_conditions(when: Any, conditions: list[Any]) -> bool:
    wanted = []
    for key, value in when.items():
        pairs = value.items() if isinstance(value, dict) else [("eq", value)]
        wanted += [(key, op, spell(operand)) for op, operand in pairs]
        wanted += [(key, None, "null")] if value == {} else []
    for item in conditions:
        key, op, operand = item.get("key"), item.get("op"), item.get("operand")
        cut = get(get(operand, "$truncated"), "digest")  # a long operand stands in the rule, and here as its digest
        same = [
            other
            for other in wanted
            if other[:2] == (key, op)
            and (other[2] == spell(operand) or hashlib.sha256(other[2].encode()).hexdigest() == cut)
        ]
        if not same:
            return False
        wanted.remove(same[0])
    return not wanted


def evaluated(item: Any) -> bool | None:
    """Return whether a condition holds; None where that cannot be said here."""
    op, operand, there = item.get("op"), item.get("operand"), "actual" in item
    actual = item.get("actual")
    if op is None or op == "matches" or not is_whole(operand) or not is_whole(actual):
        return None
    if op == "exists":
        return there is operand if isinstance(operand, bool) else False
    if op not in ("eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in") or not there:
        return False
    if op in ("eq", "ne"):
        return (spell(actual) == spell(operand)) is (op == "eq")
    if op in ("in", "not_in"):
        if not isinstance(operand, list) or len(operand) > 1000:
            return False
        return (spell(actual) in [spell(value) for value in operand]) is (op == "in")
    sides = [order(actual), order(operand)]
    if sides[0][0] != sides[1][0] or sides[0][0] not in (3, 4):
        return False
    less, equal = bool(sides[0] < sides[1]), bool(sides[0] == sides[1])
    return {"gt": not less and not equal, "gte": not less, "lt": less, "lte": less or equal}[op]


def _origin(item: Any, record: str, entries: list[Any], shown: set[str]) -> list[str]:
    """Check a condition's actual value against where it says it came from, and tell it."""
    origin, actual, key = get(item, "origin"), item.get("actual"), text_of(item.get("key"))
    kind = get(origin, "kind")
    by = " (linked by name and value)" if get(origin, "by") == "value" else ""
    if "actual" not in item:
        return ["There was no such fact."]
    if kind == "read":
        return _read(origin, actual, key, by, record, entries, shown)
    if kind == "input":
        name = text_of(get(origin, "name"))
        inputs = [get(entry["body"], "inputs") for entry in of_kind(entries, "run.started")]
        found = [value[name] for value in inputs if isinstance(value, dict) and name in value]
        _match(found, actual, key, record, f"input {name} of the run")
        return [f"It is input {name} of the run{by}."]
    if kind in ("tool", "model"):
        part = "result" if kind == "tool" else "response"
        calls = [e for e in of_kind(entries, f"run.{kind}") if get(e["body"], "span") == get(origin, "span")]
        steps = [entry for entry in calls if part in entry["body"]]
        values = [pointed(entry["body"][part], get(origin, "path")) for entry in steps]
        span = text_of(get(origin, "span"))
        _match([value for there, value in values if there], actual, key, record, f"{kind} call {span}")
        where = ", ".join(entry["record"] for entry in steps)
        path = text_of(get(origin, "path")) or "the whole"
        return [f"It is {path} of the {part} of a {kind} call ({where}){by}."]
    return ["The agent stated it."]


def _match(found: list[Any], actual: Any, key: str, record: str, what: str) -> None:
    """Refuse a value that its origin does not have; values that were hidden or cut are not compared."""
    if not found:
        broken("evidence", record, f"{key} is said to come from {what}, which is not here")
    if is_whole(actual) and is_whole(found) and all(spell(value) != spell(actual) for value in found):
        broken("evidence", record, f"{key} = {spell(actual)} is not what {what} says: {spell(found[-1])}")


def pointed(value: Any, path: Any) -> tuple[bool, Any]:
    """Return whether a JSON Pointer leads somewhere, and what is there."""
    for part in path.split("/")[1:] if isinstance(path, str) else ():
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,8}", part) and int(part) < len(value):
            value = value[int(part)]
        elif not is_whole(value):
            return True, value
        else:
            return False, None
    return True, value


def _read(origin: Any, actual: Any, key: str, by: str, record: str, entries: list[Any], shown: set[str]) -> list[str]:
    entity, field, position = get(origin, "entity"), get(origin, "field"), get(origin, "position")
    what = f"a read of {text_of(entity)}#{text_of(field)}"
    items = []
    for entry in of_kind(entries, "run.read"):
        fields = get(entry["body"], "fields")
        here = get(entry["body"], "entity") == entity and spell(get(entry["body"], "position")) == spell(position)
        if here and isinstance(field, str) and isinstance(get(fields, field), dict):
            items.append((entry, fields[field]))
    _match([get(item, "value") for _, item in items], actual, key, record, what)
    entry, item = items[-1]
    names = get(item, "observations") if isinstance(get(item, "observations"), list) else [get(item, "observation")]
    said = {short(e["name"]): e for e in of_kind(entries, "observation")}
    behind = []
    for name in names:
        if not isinstance(name, str) or name not in said:
            broken("evidence", entry["record"], f"it read {text_of(name)}, which is not here")
        behind.append(said[name])
        shown.add(said[name]["name"])
    policy, _ = policy_of(entries, text_of(entity).partition("/")[0], text_of(field))
    value = get(item, "value")
    if policy not in RANKED or len(behind) != 1:
        more = f"; how they merge under {policy} was not followed again"
    else:
        more = ""
        values = get(behind[0]["body"], "fields")
        if is_whole(value) and not (
            isinstance(values, dict) and field in values and spell(values[field]) == spell(value)
        ):
            broken(
                "evidence", entry["record"], f"it read {spell(value)} from {text_of(names[0])}, which does not say so"
            )
    where = f"{text_of(entity)}#{text_of(field)} at position {spell(position)} ({entry['record']})"
    lines = [f"It was read of {where}{more}{by}."]
    for one in behind:
        lines += [f"      {one['record']}: {summary(one)}", *[f"      {line}" for line in lineage(entries, one)]]
    return lines


# -------------------------------------------------------------------------------------------------------- command line


_UNPRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def clean(line: str) -> str:
    """Return a line that can do nothing to a terminal: what was said may hold anything, an end of line too."""
    return _UNPRINTED.sub(lambda match: "\\u%04x" % ord(match[0]), line)


def outcome(data: bytes, key: str, against: str | None = None) -> dict[str, Any]:
    """Return the verdict on a file as plain JSON, the same from both verifiers."""
    try:
        says = [clean(line) for line in verify(data, key, against)]
        return {"verdict": "proven", "code": "proven", "record": None, "says": says}
    except Broken as problem:
        says = [clean(problem.message)]
        return {"verdict": "refused", "code": problem.code, "record": clean(problem.record), "says": says}
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError):
        return {
            "verdict": "refused",
            "code": "shape",
            "record": "file",
            "says": ["a part of it has another shape than its format"],
        }


def _given(value: str, sign: str) -> str:
    """Return a key or note given as text, which holds a sign, or as the name of a file that holds it."""
    try:
        with open(value, encoding="utf-8", newline="") as file:
            return file.read()
    except (OSError, ValueError) as error:
        if sign in value or isinstance(error, UnicodeDecodeError):
            return value
        raise


def main(arguments: list[str] | None = None) -> int:
    import argparse

    parser = argparse.ArgumentParser(
        prog="woodrat-verify", description="Check a Woodrat capsule, proof or checkpoint offline."
    )
    parser.add_argument("file", metavar="FILE", help="a capsule, a proof or a checkpoint; - for standard input")
    parser.add_argument("--key", metavar="VKEY", required=True, help="the verifier key you trust, as text or file")
    parser.add_argument("--checkpoint", metavar="NOTE", help="a checkpoint of the same log that you hold already")
    parser.add_argument("--json", action="store_true", help="print the verdict as JSON")
    given = parser.parse_args(arguments)
    try:
        if given.file == "-":
            data = sys.stdin.buffer.read()
        else:
            with open(given.file, "rb") as file:
                data = file.read()
        key = _given(given.key, "+")
        against = None if given.checkpoint is None else _given(given.checkpoint, "\n")
    except OSError as error:
        print(f"{error.filename}: {error.strerror}. Nothing was checked.", file=sys.stderr)
        return 2
    found = outcome(data, key, against)
    if given.json:
        text = json.dumps(found, indent=2)
    elif found["verdict"] == "proven":
        text = "PROVEN\n" + "\n".join(found["says"])
    else:
        text = f"REFUSED {found['record']}: {found['says'][0]} ({found['code']}). Nothing of this file is proven."
    try:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # nobody is left to be told
    return 0 if found["verdict"] == "proven" else 1


if __name__ == "__main__":
    sys.exit(main())
