#!/usr/bin/env python3
"""woodrat-verify: check a Woodrat capsule, proof or checkpoint offline, and report in plain words what is proven.

    woodrat-verify FILE --key VKEY [--checkpoint NOTE] [--strict] [--json]

This file stands alone: Python 3.9 or newer and its standard library are all it needs. It imports nothing of Woodrat,
and follows docs/formats/capsule.md item by item: the names G1, B2, F3, S5, R7, D8 … are from that page. VKEY is the
verifier key you had from the operator by a way you trust, as text or as a file: one that travels with a capsule proves
nothing.

The first word is PROVEN, CONSISTENT (the claim follows from the shown parts; the parts that are hidden, cut, erased or
not evaluated are named) or REFUSED. Exit code 0: proven or consistent. 1: refused, with a code and the faulty record,
and with --strict also consistent. 2: invalid command line.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import os
import re
import sys
from typing import Any, Callable, Dict, Iterable, Iterator, NoReturn, Tuple

FORMAT = 0
DEPTH_MAX = 100
SIZE_MAX = 2**53 - 1
REDACTED = "[REDACTED]"
ERASED = "[ERASED]"
RANKED = ("latest", "highest_priority", "first", "max", "min")
COLLECTIONS = ("union", "sum", "append")


class Broken(Exception):
    """A fault: a stable code, the faulty record, and a sentence."""

    def __init__(self, code: str, record: str, message: str) -> None:
        super().__init__(message)
        self.code, self.record, self.message = code, record, message


def broken(code: str, record: str, message: str) -> NoReturn:
    raise Broken(code, record, message)


# ------------------------------------------------------------------------------------------------- canonical JSON (JCS)


def spell(value: Any, depth: int = 0) -> str:
    """Return the canonical spelling of a JSON value (RFC 8785)."""
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
    if "\x00" in text:
        raise ValueError("no text holds U+0000")
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


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    return is_number(value) and abs(value) <= SIZE_MAX and value == int(value)


def is_whole(value: Any) -> bool:
    return is_integer(value) and value >= 0


def is_zero(value: Any) -> bool:
    return is_number(value) and value == 0


def hexed(value: Any, count: int) -> bytes | None:
    """Return the bytes of lower-case hex, or None unless there are `count` of them."""
    good = isinstance(value, str) and len(value) == 2 * count and re.fullmatch("[0-9a-f]*", value)
    return bytes.fromhex(value) if good else None


def based(text: Any) -> bytes | None:
    """Return the bytes that base64 spells, or None unless it is their one spelling."""
    try:
        data = base64.b64decode(text.encode("ascii"), validate=True)
        return data if base64.b64encode(data).decode("ascii") == text else None
    except (binascii.Error, ValueError, AttributeError):
        return None


# --------------------------------------------------------------------------------------------------- Ed25519 (RFC 8032)

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
    """Return, from the leaf up, whether each sibling on the path to the subtree start..end is on its left."""
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


# ----------------------------------------------------------------------------------------------------- entries (G8–G11)

KINDS = (
    "source",
    "received",
    "interpretation.started",
    "interpretation.ended",
    "schema",
    "observation",
    "run.started",
    "run.read",
    "run.model",
    "run.tool",
    "run.decided",
    "run.noted",
    "run.ended",
    "run.judged",
    "tag",
    "erasure",
)
HEADER = ("commitment", "envelope", "format", "kind", "log", "position", "recorded_at")


_MOMENT = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{6}Z")


def hashes_of(value: Any) -> list[bytes] | None:
    """Return the hashes of a proof, or None unless they are a list of them."""
    found = [hexed(item, 32) for item in value] if isinstance(value, list) else [None]
    hashes = [item for item in found if item is not None]
    return hashes if len(hashes) == len(found) else None


def is_envelope(value: Any, position: int) -> bool:
    if not isinstance(value, dict) or not is_whole(value.get("write")) or value["write"] > position:
        return False
    names = {"write", "length", "request"} if value["write"] == position else {"write"}
    if "origin" in value:
        names.add("origin")
        origin = value["origin"]
        if not isinstance(origin, dict) or set(origin) != {"log", "position"}:
            return False
        if not isinstance(origin["log"], str) or not is_whole(origin["position"]):
            return False
    if set(value) != names:
        return False
    first = value["write"] == position
    return not first or (is_whole(value["length"]) and value["length"] >= 1 and hexed(value["request"], 32) is not None)


def is_entry(entry: dict[str, Any]) -> bool:
    """G8: say whether an entry with its proof has the shape of one."""
    if set(entry) != {*HEADER, "body", "nonce", "proof"} or not is_whole(entry["position"]):
        return False
    texts = is_text(entry["log"]) and entry["log"] != "" and is_text(entry["recorded_at"]) and is_text(entry["kind"])
    if not texts or not _MOMENT.fullmatch(entry["recorded_at"]):
        return False
    if entry["kind"] not in KINDS or not is_zero(entry["format"]):
        return False
    if hexed(entry["commitment"], 32) is None or hashes_of(entry["proof"]) is None:
        return False
    if not is_envelope(entry["envelope"], entry["position"]):
        return False
    if entry["nonce"] is None or entry["body"] is None:
        return entry["nonce"] is None and entry["body"] is None
    if hexed(entry["nonce"], 16) is None or not isinstance(entry["body"], dict):
        return False
    if entry["kind"] == "source":
        return set(entry["body"]) == {"base64"} and based(entry["body"]["base64"]) is not None
    return True


def read_entry(entry: Any, record: str, point: dict[str, Any]) -> dict[str, Any]:
    """Check one entry against the checkpoint (G8, G9, G10), and return it with its name."""
    if isinstance(entry, dict) and is_whole(entry.get("position")):
        record = f"entry {entry['position']}"
    if not isinstance(entry, dict) or not is_entry(entry):
        broken("shape", record, "it is not an entry with its proof")
    kind, body, nonce = entry["kind"], entry["body"], hexed(entry["nonce"], 16)
    data = None
    if nonce is not None:
        data = based(body["base64"]) if kind == "source" else spell(body).encode()
        if hashlib.sha256(nonce + (data or b"")).hexdigest() != entry["commitment"]:
            broken("body", record, f"the content of this {kind} is not what the log committed to")
    leaf = hashlib.sha256(b"\x00" + spell({name: entry[name] for name in HEADER}).encode()).digest()
    if not included(leaf, entry["position"], point["size"], hashes_of(entry["proof"]) or [], point["root"]):
        broken("inclusion", record, "its proof does not lead to the root that was signed")
    return {
        "position": entry["position"],
        "kind": kind,
        "log": entry["log"],
        "recorded_at": entry["recorded_at"],
        "write": entry["envelope"]["write"],
        "length": entry["envelope"].get("length"),
        "merged": "origin" in entry["envelope"],
        "body": None if data is None or kind == "source" else body,
        "blank": data is None,
        "name": named(kind, data) if data is not None and kind in ("observation", "source", "schema") else None,
        "bytes": None if data is None else len(data),
        "again": False,
        "record": record,
    }


def check_writes(entries: list[dict[str, Any]], size: int) -> None:
    """G11: entries of one write belong together, writes do not overlap, and the log's clock does not go back between
    them.
    """
    last: dict[str, Any] | None = None
    end = 0  # the end of the last write, if known
    for entry in entries:
        if last is not None and entry["write"] == last["write"]:
            if (entry["log"], entry["recorded_at"]) != (last["log"], last["recorded_at"]):
                broken("order", entry["record"], "it has another log or time than its write")
            if last["length"] is not None and entry["position"] >= end:
                broken("order", entry["record"], "it stands beyond the end of its write")
            entry["length"] = last["length"]
        else:
            if entry["write"] < end:
                broken("order", entry["record"], "its write overlaps the one before it")
            if last is not None and entry["recorded_at"] <= last["recorded_at"]:
                broken("order", entry["record"], f"it was recorded no later than {last['record']}")
            if entry["length"] is not None and entry["position"] + entry["length"] > size:
                broken("order", entry["record"], "its write goes beyond the end of the log")
        end = entry["position"] + 1 if entry["length"] is None else entry["write"] + entry["length"]
        last = entry


def named(kind: str, body: bytes) -> str:
    digest = hashlib.sha256(f"woodrat/{kind}/{FORMAT}\n".encode() + body).digest()
    letters = {"observation": "obs_", "source": "src_", "schema": "sch_"}[kind]
    return letters + base64.b32encode(digest).decode().rstrip("=").lower()


def digest_of(name: str) -> bytes:
    return base64.b32decode(name[4:].upper() + "====")


def short(name: str) -> str:
    return name[:30]


# ------------------------------------------------------------------------------------------------ shapes of bodies (B1)


def is_name(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch("obs_[a-z2-7]{51}[aq]", value) is not None


def is_text(value: Any) -> bool:
    return isinstance(value, str)


def is_moment(value: Any) -> bool:
    return isinstance(value, str) and _MOMENT.fullmatch(value) is not None


def is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def is_position(value: Any) -> bool:
    return is_whole(value) or (value == -1 and not isinstance(value, bool))


def is_ascending(value: Any) -> bool:
    """Say whether a value is a list of whole numbers, ascending, each once."""
    if not isinstance(value, list) or not all(is_whole(item) for item in value):
        return False
    return all(value[at] < value[at + 1] for at in range(len(value) - 1))


def is_labels(value: Any) -> bool:
    return isinstance(value, list) and all(item is None or isinstance(item, str) for item in value)


def is_cut(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"$truncated"}


def is_unserialisable(value: Any) -> bool:
    return isinstance(value, dict) and set(value) == {"$unserialisable"}


def is_mark(value: Any) -> bool:
    return is_cut(value) or is_unserialisable(value)


def is_fields_read(value: Any) -> bool:
    if is_cut(value) or not isinstance(value, dict):
        return is_cut(value)
    table: Table = {"value?": is_any, "observation?": is_text, "observations?": is_texts}
    return all(shaped(item, table) for item in value.values())


def is_origin(value: Any) -> bool:
    kind = get(value, "kind")
    if not isinstance(kind, str) or kind not in ORIGINS:
        return False
    return shaped(value, {"kind": is_text, **ORIGINS[kind]})


def is_origins(value: Any) -> bool:
    return is_cut(value) or (isinstance(value, dict) and all(is_origin(item) for item in value.values()))


def is_condition(value: Any) -> bool:
    table: Table = {
        "key": is_text,
        "op?": is_text,
        "operand?": is_any,
        "actual?": is_any,
        "result?": is_boolean,
        "origin": is_origin,
        "error?": is_text,
    }
    return shaped(value, table) and ("op" in value) is ("operand" in value)


def is_rule(value: Any, tried: bool = True) -> bool:
    table: Table = {"chosen": is_any, "label?": is_text, "when?": is_object, "predicate?": is_text}
    if tried:
        table.update({"matched": is_boolean, "unknown?": is_true, "conditions": is_list, "error?": is_any})
    if not shaped(value, table) or ("when" in value) is ("predicate" in value):
        return False
    return not tried or all(is_condition(item) for item in value["conditions"])


def is_rules(value: Any) -> bool:
    return is_cut(value) or (isinstance(value, list) and all(is_rule(item) for item in value))


def is_untried(value: Any) -> bool:
    return is_cut(value) or (isinstance(value, list) and all(is_rule(item, tried=False) for item in value))


def is_omitted(value: Any) -> bool:
    return shaped(value, {"rules?": is_positive, "conditions?": is_positive})


def is_entity(value: Any) -> bool:
    return shaped(value, {"key": is_text, "type": is_text})


def is_removals(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, list) and item for item in value.values())


def is_names(value: Any) -> bool:
    return isinstance(value, list) and all(is_name(item) for item in value)


def is_ranges(value: Any) -> bool:
    pairs: Any = value if isinstance(value, list) else [None]
    sound = [isinstance(pair, list) and len(pair) == 2 and is_whole(pair[0]) and is_whole(pair[1]) for pair in pairs]
    return all(sound) and all(pair[0] <= pair[1] for pair in pairs)


def is_document(value: Any) -> bool:
    if not isinstance(value, dict) or not is_positive(value.get("x-woodrat-version")):
        return False
    properties = value.get("properties", {})
    return isinstance(properties, dict) and all(isinstance(item, (dict, bool)) for item in properties.values())


def is_any(value: Any) -> bool:
    return True


def is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def is_true(value: Any) -> bool:
    return value is True


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_positive(value: Any) -> bool:
    return is_whole(value) and value >= 1


def one_of(*words: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and value in words


Table = Dict[str, Callable[[Any], bool]]


def shaped(value: Any, table: Table) -> bool:
    """Say whether a value is an object with exactly the members of a table; `?` marks optional ones."""
    if not isinstance(value, dict):
        return False
    for name, test in table.items():
        member = name.rstrip("?")
        if member not in value:
            if member == name:
                return False
        elif not test(value[member]):
            return False
    return len(value) == sum(name.rstrip("?") in value for name in table)


_BY = {"by?": one_of("value")}
ORIGINS: Dict[str, Table] = {
    "stated": {},
    "input": {"name": is_text, **_BY},
    "tool": {"span": is_text, "path": is_text, **_BY},
    "model": {"span": is_text, "path": is_text, **_BY},
    "decision": {"run": is_text, "span": is_text},
    "read": {"field": is_text, "entity?": is_text, "observations?": is_texts, "position?": is_position, **_BY},
    "recall": {"span": is_text, "run": is_text, "stage": is_text, **_BY},
}
STEP: Table = {
    "run": is_text,
    "step": is_whole,
    "span": is_text,
    "agent": is_text,
    "started_at?": is_text,
    "under?": is_text,
    "after?": is_text,
    "duration_ms?": is_any,
    "attributes?": is_any,
    "copy_of?": is_object,
}
OBSERVATION: Table = {
    "agent": is_text,
    "entity": is_entity,
    "op": one_of("assert", "correct", "retract", "delete", "restore"),
    "observed_at": is_moment,
    "valid_from": is_moment,
    "priority": is_integer,
    "fields?": is_object,
    "remove?": is_removals,
    "replaces?": is_names,
    "saw?": is_names,
    "source?": is_text,
    "interpretation?": is_text,
    "run?": is_text,
    "step?": is_whole,
    "confidence?": is_any,
    "reason?": is_text,
    "assigned?": is_true,
    "locator?": is_object,
    "match?": is_object,
}
BODIES: Dict[str, Table] = {
    "run.started": {
        **STEP,
        **dict.fromkeys(("name?", "query?", "subject?", "principal?", "conversation?", "code?", "trace?"), is_text),
        "inputs?": is_object,  # cut inputs are an object too
        "shape?": is_any,
        **dict.fromkeys(("basis?", "parent?", "using?", "forked_from?"), is_object),
        "recall?": is_true,
        "redact?": is_texts,
        "fallback?": is_texts,
    },
    "run.read": {
        **STEP,
        **dict.fromkeys(("log?", "effective?", "entity?", "within?", "schema?"), is_text),
        "position?": is_position,
        "as_of?": is_position,
        "found": is_boolean,
        "fields?": is_fields_read,
        "edited?": is_object,
        **dict.fromkeys(("args?", "recalled?", "remembered?", "rejected?", "understood?", "error?"), is_any),
        **dict.fromkeys(("embedder?", "remark?"), is_text),
    },
    "run.model": {
        **STEP,
        "model?": is_text,
        "request?": is_text,
        **dict.fromkeys(("messages?", "parameters?", "response?", "shape?", "usage?", "error?", "stream?"), is_any),
        "errored?": is_boolean,
        "redact?": is_texts,
    },
    "run.tool": {
        **STEP,
        "name?": is_text,
        **dict.fromkeys(("args?", "result?", "shape?", "error?", "stream?"), is_any),
        **dict.fromkeys(("errored?", "once?", "begun?"), is_boolean),
        "redact?": is_texts,
    },
    "run.decided": {
        **STEP,
        "stage": is_text,
        "mode": one_of("decide", "select"),
        "chosen?": is_any,  # omitted if null
        "default": is_boolean,
        "rule?": lambda value: is_text(value) or is_labels(value),
        "rationale?": is_text,
        "rules?": is_rules,
        "facts?": is_object,
        "facts_origin?": is_origins,
        "omitted?": is_omitted,
        "untried?": is_untried,
        "otherwise?": is_any,
        "on_missing?": one_of("skip"),
        "chosen_by?": is_object,
        "redact?": is_texts,
    },
    "run.noted": {**STEP, "text?": is_text, "data?": is_any},
    "run.ended": {
        **STEP,
        "status?": is_text,
        **dict.fromkeys(("answer?", "error?", "usage?"), is_any),
        "problems?": is_list,
        "ended_at?": is_text,
        "skipped?": is_ascending,
        "numbered?": is_true,
        "fallback?": is_texts,
    },
    "run.judged": {
        **STEP,
        **dict.fromkeys(("verdict?", "preferred?", "by?", "reason?", "score?"), is_any),
        **dict.fromkeys(("against?", "evaluation?", "about?"), is_any),
    },
    "schema": {"type": is_text, "schema": is_document},
    "received": {**dict.fromkeys(("agent", "name", "received_at", "source", "media_type?"), is_text)},
    "interpretation.started": {
        **dict.fromkeys(("agent", "interpretation", "source", "started_at"), is_text),
        **dict.fromkeys(("model?", "prompt?", "extractor?"), is_text),
        **dict.fromkeys(("parameters?", "configuration?"), is_object),
    },
    "interpretation.ended": {
        **dict.fromkeys(("interpretation", "ended_at", "status"), is_text),
        **dict.fromkeys(("usage?", "error?"), is_any),
    },
    "erasure": {
        **dict.fromkeys(("agent", "erased_at", "log", "reason", "scope"), is_text),
        "positions": is_ranges,
        **dict.fromkeys(("macs", "names", "keys?"), is_texts),
        "links?": is_object,
    },
}


def is_body(kind: str, body: Any) -> bool:
    """B1: say whether a body has the shape of its kind."""
    if kind == "observation":
        states = bool(get(body, "fields")) or bool(get(body, "remove"))
        empty = get(body, "fields") == {} or get(body, "remove") == {}
        sound = shaped(body, OBSERVATION) and not empty and ("run" in body or "step" not in body)
        return sound and states is (body["op"] in ("assert", "correct"))
    return kind == "tag" or shaped(body, BODIES[kind])


# ---------------------------------------------------------------------------------------------- comparing what is shown


def digest_text(value: Any) -> str:
    return hashlib.sha256(spell(value).encode()).hexdigest()


def cut_digest(value: Any) -> str | None:
    digest = get(value["$truncated"], "digest")
    return digest if hexed(digest, 32) is not None else None


def same(one: Any, other: Any) -> bool:
    return spell(one) == spell(other)


def occurs(value: Any, test: Callable[[Any], bool]) -> bool:
    """Say whether any part of a value, itself included, passes a test."""
    if test(value):
        return True
    inner: Iterable[Any] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return any(occurs(item, test) for item in inner)


def is_redacted(value: Any) -> bool:
    return isinstance(value, str) and value == REDACTED


def is_erased(value: Any) -> bool:
    return isinstance(value, str) and value == ERASED


def is_covered(key: str, patterns: list[str]) -> bool:
    flags = re.IGNORECASE | re.ASCII | re.DOTALL
    return any(re.fullmatch(".*".join(map(re.escape, each.split("*"))), key, flags) for each in patterns)


def taken_out(value: Any, patterns: list[str]) -> Any:
    if isinstance(value, dict):
        return {
            key: REDACTED if is_covered(key, patterns) else taken_out(item, patterns) for key, item in value.items()
        }
    return [taken_out(item, patterns) for item in value] if isinstance(value, list) else value


def compare(one: Any, other: Any, keys: list[str], hidden: list[str], again: bool) -> set[str] | None:
    """Return why two recorded values are alike only in their shown parts, an empty set if equal; None if not alike."""
    if same(one, other):
        return set()
    if again and (is_erased(one) or is_erased(other)):
        return {"erased"}
    if is_cut(one) or is_cut(other):
        return compare_cut(one, other, hidden)
    if is_redacted(one) or is_redacted(other):
        return {"hidden"} if any(is_covered(key, hidden) for key in keys) else None
    found: set[str] = set()
    if isinstance(one, dict) and isinstance(other, dict) and set(one) == set(other):
        pairs = [(one[key], other[key], [key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(left, right, keys) for left, right in zip(one, other)]
    else:
        return None
    for left, right, under in pairs:
        reasons = compare(left, right, under, hidden, again)
        if reasons is None:
            return None
        found |= reasons
    return found


def compare_cut(one: Any, other: Any, hidden: list[str]) -> set[str] | None:
    if is_cut(one) and is_cut(other):
        digests = cut_digest(one), cut_digest(other)
        if None in digests:
            return {"cut"}
        return set() if digests[0] == digests[1] else {"cut"} if hidden else None
    cut, whole = (one, other) if is_cut(one) else (other, one)
    digest = cut_digest(cut)
    if digest is None:
        return {"cut"}
    if digest in (digest_text(whole), digest_text(taken_out(whole, hidden))):
        return set()
    return {"cut"} if occurs(whole, is_redacted) or occurs(whole, is_cut) else None


# ---------------------------------------------------------------------------------------------------- does a value fit?

STEPS_MAX = 10_000
SUBSCHEMAS_DEEP_MAX = 100
TYPES: Dict[str, Callable[[Any], bool]] = {
    "null": lambda value: value is None,
    "boolean": is_boolean,
    "integer": lambda value: is_number(value) and value == int(value),
    "number": lambda value: is_number(value),
    "string": is_text,
    "array": is_list,
    "object": is_object,
}
IGNORED = (
    *("$defs", "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
    *("format", "contentEncoding", "contentMediaType", "contentSchema"),
    *("x-woodrat-merge", "x-woodrat-index", "x-woodrat-text", "x-woodrat-redact"),
)


class NotEvaluated(Exception):
    """A subschema that is not known, or a value that takes too long."""


def is_known(schema: Any, references: list[str]) -> bool:
    """Say whether a subschema has known keywords only; the names it refers to are added to a list."""
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict):
        return False
    for keyword, value in schema.items():
        if keyword in ("items", "additionalProperties", "not"):
            sound = is_known(value, references)
        elif keyword == "properties":
            sound = isinstance(value, dict) and all(is_known(item, references) for item in value.values())
        elif keyword in ("anyOf", "allOf", "oneOf"):
            sound = isinstance(value, list) and value != [] and all(is_known(item, references) for item in value)
        elif keyword == "$ref":
            sound = isinstance(value, str) and _REFERENCE.fullmatch(value) is not None
            references += [value[len("#/$defs/") :]] if sound else []
        elif keyword == "type":
            listed = value if isinstance(value, list) else [value]
            sound = listed != [] and all(isinstance(item, str) and item in TYPES for item in listed)
        elif keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
            sound = is_number(value)
        elif keyword in ("minLength", "maxLength", "minItems", "maxItems"):
            sound = is_whole(value)
        elif keyword == "required":
            sound = is_texts(value)
        elif keyword == "enum":
            sound = isinstance(value, list)
        else:
            sound = keyword == "const" or keyword in IGNORED
        if not sound:
            return False
    return True


def is_all_known(subschema: Any, defs: Any) -> bool:
    """Say whether a subschema, and all it reaches, has known keywords only."""
    references: list[str] = []
    if not is_known(subschema, references):
        return False
    seen: set[str] = set()
    while references:
        name = references.pop()
        if name in seen:
            continue
        seen.add(name)
        if not isinstance(defs, dict) or name not in defs or not is_known(defs[name], references):
            return False
    return True


_REFERENCE = re.compile(r"#/\$defs/[^/~%]*")
SCHEMA_SIZE_MAX = 20_000
CHECKS_MAX = 20_000
CHECKS_AT_ONE_VALUE_MAX = 200
REFUSED = ("$dynamicRef", "$dynamicAnchor", "$recursiveRef", "unevaluatedProperties", "unevaluatedItems")
HOLD_ONE = ("contentSchema", "else", "if", "not", "then", "additionalProperties", "contains", "items", "propertyNames")
HOLD_NAMED = ("$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties")
HOLD_LISTED = ("allOf", "anyOf", "oneOf", "prefixItems")
NOT_APPLIED = ("$defs", "definitions", "contentSchema")
OF_ELEMENTS = ("additionalProperties", "contains", "items", "patternProperties", "propertyNames")
SIZES = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")


def below(schema: dict[str, Any]) -> Iterator[Tuple[str, Any]]:
    """Yield the direct subschemas of a schema, with their keyword."""
    for keyword, value in schema.items():
        if keyword in HOLD_ONE:
            yield keyword, value
        elif keyword in HOLD_NAMED and isinstance(value, dict):
            yield from ((keyword, each) for each in value.values())
        elif keyword in HOLD_LISTED and isinstance(value, list):
            yield from ((keyword, each) for each in value)


def is_within(document: Any) -> bool:
    """Say whether a schema is for certain within the subset and the limits of docs/formats/schema.md."""
    defs = get(document, "$defs")
    known: Dict[Tuple[int, bool], Tuple[int, int]] = {}

    def count(schema: Any, elements: bool, depth: int) -> Tuple[int, int]:
        """Return the checks of a subschema, and the most of them that may meet at one value."""
        if not isinstance(schema, dict):
            return 1, 1
        if depth > CHECKS_AT_ONE_VALUE_MAX:  # so it is where references lead back
            raise NotEvaluated
        if (id(schema), elements) not in known:
            total = most = own_checks(schema, elements)
            apart, inner = 0, [part for part in below(schema) if part[0] not in NOT_APPLIED]
            if "$ref" in schema:
                inner.append(("$ref", target(schema["$ref"])))
            for keyword, each in inner:
                checks, at_one = count(each, elements or keyword in OF_ELEMENTS, depth + 1)
                total += checks
                if keyword in ("properties", "prefixItems"):
                    apart = max(apart, at_one)
                else:
                    most += at_one
            known[id(schema), elements] = total, most + apart
        return known[id(schema), elements]

    def target(reference: Any) -> Any:
        name = reference[len("#/$defs/") :] if isinstance(reference, str) and _REFERENCE.fullmatch(reference) else None
        if name is None or not isinstance(defs, dict) or name not in defs:
            raise NotEvaluated
        return defs[name]

    waiting = [document]
    try:
        while waiting:
            schema = waiting.pop()
            total, most = count(schema, False, 1)
            if total > CHECKS_MAX or most > CHECKS_AT_ONE_VALUE_MAX:
                return False
            if isinstance(schema, dict):
                if any(keyword in schema for keyword in REFUSED):
                    return False
                waiting += [each for _, each in below(schema)]
    except NotEvaluated:
        return False
    return True


def own_checks(schema: dict[str, Any], elements: bool) -> int:
    """Return the checks of a subschema without those of others."""
    names, needs, options = (get(schema, name) for name in ("patternProperties", "dependentRequired", "enum"))
    count = 1 + 80 * ("pattern" in schema) + 80 * (schema.get("uniqueItems") is True)
    count += (80 * len(names) if isinstance(names, dict) else 0) + (2 * len(needs) if isinstance(needs, dict) else 0)
    slow = [each for each in options if is_slow(each)] if isinstance(options, list) else []
    count += len(options) if slow else 0
    slow += [schema["const"]] if is_slow(schema.get("const")) else []
    if not elements:
        return count
    types, divisor = get(schema, "type"), get(schema, "multipleOf")
    listed = types if isinstance(types, list) else [types]
    whole = all(name in ("integer", "null", "boolean", "string") for name in listed)
    count += 30 if is_number(divisor) and divisor != int(divisor) else 0
    sizes = sum(name in schema for name in SIZES)
    return count + (20 if whole else 80) * sizes + (20 if whole else 150) * len(slow)


def is_slow(value: Any) -> bool:
    """Say whether a comparison with a value may be one with numbers."""
    return value is not None and not isinstance(value, (bool, str))


def readiness(document: Any, field: str, within: bool | None = None) -> Tuple[bool, bool]:
    """Say whether a schema is within its limits, and whether values are evaluated by the subschema of a field."""
    if document is None:
        return True, True
    within = is_within(document) if within is None else within
    subschema = get(get(document, "properties"), field)
    small = within and len(spell(document).encode()) <= SCHEMA_SIZE_MAX
    return within, small and is_all_known(subschema, get(document, "$defs"))


def fits(document: Any, field: str, value: Any, ready: Tuple[bool, bool] | None = None) -> bool | None:
    """Say whether a value fits the subschema of a field; None where that is not evaluated."""
    within, known = readiness(document, field) if ready is None else ready
    properties, defs = get(document, "properties"), get(document, "$defs")
    if not within:
        return None
    if not isinstance(properties, dict) or field not in properties:
        return True
    subschema = properties[field]
    if is_redacted(value) and get(subschema, "x-woodrat-redact") is True:
        return True
    if not known:
        return None
    try:
        return applied(subschema, value, defs, [0], 1, False)
    except NotEvaluated:
        return None


def claim_fits(document: Any, field: str, body: Any, ready: Tuple[bool, bool]) -> bool | None:
    """Say whether a claim on a field fits; a claim that only removes has no value to check."""
    if field in body.get("fields", {}):
        return fits(document, field, body["fields"][field], ready)
    return True if ready[0] else None


def applied(schema: Any, value: Any, defs: Any, steps: list[int], depth: int, whole: bool) -> bool:
    """Apply a known subschema to a value; every keyword is applied, so that steps are counted alike everywhere.

    Under `not` and `oneOf` it is checked as a `whole`; elsewhere a merge ignores `enum`.
    """
    steps[0] += 1
    if steps[0] > STEPS_MAX or depth > SUBSCHEMAS_DEEP_MAX:
        raise NotEvaluated
    if isinstance(schema, bool):
        return schema
    good = [True]
    for keyword, wanted in schema.items():
        if keyword == "properties" and isinstance(value, dict):
            good += [applied(wanted[key], value[key], defs, steps, depth + 1, whole) for key in wanted if key in value]
        elif keyword == "additionalProperties" and isinstance(value, dict):
            further = [key for key in value if key not in schema.get("properties", {})]
            good += [applied(wanted, value[key], defs, steps, depth + 1, whole) for key in further]
        elif keyword == "items" and isinstance(value, list):
            good += [applied(wanted, item, defs, steps, depth + 1, whole) for item in value]
        elif keyword in ("anyOf", "allOf", "oneOf"):
            inner = whole or keyword == "oneOf"
            held = sum([applied(each, value, defs, steps, depth + 1, inner) for each in wanted])
            good.append(held == 1 if keyword == "oneOf" else held >= (1 if keyword == "anyOf" else len(wanted)))
        elif keyword == "not":
            good.append(not applied(wanted, value, defs, steps, depth + 1, True))
        elif keyword == "$ref":
            good.append(applied(defs[wanted[len("#/$defs/") :]], value, defs, steps, depth + 1, whole))
        elif keyword != "enum" or whole:
            good.append(holds_keyword(keyword, wanted, value))
    return all(good)


def holds_keyword(keyword: str, wanted: Any, value: Any) -> bool:
    """Say whether a value passes a keyword that has no subschema."""
    if keyword == "type":
        return any(TYPES[name](value) for name in (wanted if isinstance(wanted, list) else [wanted]))
    if keyword == "enum":
        return any(same(value, item) for item in wanted)
    if keyword == "const":
        return same(value, wanted)
    if keyword == "required":
        return not isinstance(value, dict) or all(name in value for name in wanted)
    if is_number(value) and keyword in ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"):
        less, equal = bool(value < wanted), bool(value == wanted)
        if keyword in ("minimum", "exclusiveMinimum"):
            return not less and (keyword == "minimum" or not equal)
        return (less or equal) and (keyword == "maximum" or not equal)
    if isinstance(value, str) and keyword in ("minLength", "maxLength"):
        return bool(len(value) >= wanted if keyword == "minLength" else len(value) <= wanted)
    if isinstance(value, list) and keyword in ("minItems", "maxItems"):
        return bool(len(value) >= wanted if keyword == "minItems" else len(value) <= wanted)
    return True


# ----------------------------------------------------------------------------------------------------- documents (G, B)

DOCUMENTS = {
    "capsule": {"checkpoint", "claim", "entries", "format", "woodrat"},
    "consistency": {"format", "from", "proof", "to", "woodrat"},
    "proof": {"checkpoint", "entry", "format", "proof", "woodrat"},
}
CLAIMS: Dict[str, Table] = {
    "observation": {"observation": is_text},
    "field": {"entity": is_text, "field": is_text, "value": is_any, "misfits": is_ascending, "schema?": is_whole},
    "run": {"run": is_text, "left_out?": is_ascending},
    "decision": {"run": is_text, "stage": is_text, "left_out?": is_ascending},
}
ENTRIES_MAX = 10_000
NOT_SHOWN = "Not shown: a capsule cannot show that nothing else was stated, or that what was stated is true."


class Report:
    """The result for a file so far: lines for people, and the parts that lower the verdict."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.parts: set[str] = set()

    def lower(self, part: str, position: int | None = None) -> None:
        self.parts.add(part if position is None else f"{part} {position}")


def verify(data: bytes, key_text: str, against: str | None = None) -> Report:
    """Check a file item by item and return the report, or raise `Broken`."""
    report = Report()
    key = read_key(key_text)  # G1
    if not data.startswith(b"{"):
        try:
            note = data.decode("utf-8")
        except UnicodeDecodeError:
            broken("note", "checkpoint", "it is not a signed note: it is not UTF-8")
        point = read_checkpoint(note, "checkpoint", key)  # G4
        report.lines.append(told(point, key))
        check_held(report, [("checkpoint", point)], against, key)
        return report
    document = read_json(data, "file")  # G2
    kind = get(document, "woodrat")
    if not is_zero(get(document, "format")):
        broken("shape", "file", "it is not of format 0")
    if not isinstance(kind, str) or kind not in DOCUMENTS or set(document) != DOCUMENTS[kind]:  # G3
        broken("shape", "file", "it is not a capsule, a proof, a consistency document or a checkpoint of Woodrat")
    if kind == "consistency":
        check_consistency(report, document, against, key)
        return report
    point = read_checkpoint(document["checkpoint"], "checkpoint", key)  # G4
    report.lines.append(told(point, key))
    check_held(report, [("checkpoint", point)], against, key)
    if kind == "capsule":
        Capsule(report, document, point).check()
        return report
    given = document["entry"]
    whole = isinstance(given, dict) and "proof" not in given
    entry = read_entry(dict(given, proof=document["proof"]) if whole else None, "entry", point)
    report.lines.append(f"{entry['record']} is in that log, byte for byte: {summary(entry)}")
    if entry["blank"]:
        report.lower("content", entry["position"])
    return report


def check_consistency(report: Report, document: Any, against: str | None, key: dict[str, Any]) -> None:
    """G5: the newer tree extends the older one."""
    old, new = read_checkpoint(document["from"], "from", key), read_checkpoint(document["to"], "to", key)  # G4
    if old["origin"] != new["origin"]:
        broken("origin", "to", f"it is of log {new['origin']}, and from is of log {old['origin']}")
    hashes = hashes_of(document["proof"])
    if hashes is None:
        broken("shape", "proof", "it is not a list of hashes")
    if not consistent(old, new, hashes):
        broken("consistency", "proof", "it does not show that the newer log goes on from the older one")
    report.lines += [told(old, key), told(new, key)]
    report.lines.append(f"The first {old['size']} entries of the newer log are those of the older one.")
    check_held(report, [("from", old), ("to", new)], against, key)


def check_held(report: Report, ends: list[Any], against: str | None, key: dict[str, Any]) -> None:
    """G6: a checkpoint the reader holds is compared with every end of the file, the older one first."""
    if against is None:
        return
    held = read_checkpoint(against, "other checkpoint", key)  # G4
    for record, point in ends:
        if point["origin"] != held["origin"]:
            broken("origin", record, f"it is of log {point['origin']}, and the one you hold of log {held['origin']}")
        if point["size"] == held["size"] and point["root"] != held["root"]:
            same_size = f"at the same size {held['size']}"
            broken("forked", record, f"it has another root than the checkpoint you hold, {same_size}")
    record, newest = ends[-1]
    if held["size"] > newest["size"]:
        gone = held["size"] - newest["size"]
        broken("truncated", record, f"it covers {gone} entries less than the checkpoint you hold ({held['size']})")
    if all(point["size"] != held["size"] for _, point in ends):
        report.lower("held")
    else:
        report.lines.append("The checkpoint you hold is the same at its size.")


class Capsule:
    """A capsule being checked: its entries, its claim, and the findings so far."""

    def __init__(self, report: Report, document: Any, point: dict[str, Any]) -> None:
        self.report, self.point, self.claim = report, point, document["claim"]
        self.entries = self.read_entries(document["entries"])
        self.lower = report.lower
        self.lines = report.lines
        self.kinds: Dict[str, list[dict[str, Any]]] = {kind: [] for kind in KINDS}
        for entry in self.entries:
            if not entry["blank"]:
                self.kinds[entry["kind"]].append(entry)
        self.erasures = self.of_kind("erasure")
        self.observations = self.of_kind("observation")
        self.lineages: Dict[str, list[dict[str, Any]]] = {}
        """Origins of observations, by source and reading; filled once bodies are known to be sound."""
        last_to_first = self.observations[::-1]  # the first of two counts
        self.by_name = {entry["name"]: entry for entry in last_to_first}
        self.by_id = {short(entry["name"]): entry for entry in last_to_first}
        self.joins: list[dict[str, Any]] | None = None
        self.groups: Dict[Any, set[str]] = {}
        """Cache of groups, by entity, position and time."""
        self.placed: set[int] = set()
        """Positions of observations, schemas and entries of runs that have a place (B5)."""

    def read_entries(self, given: Any) -> list[dict[str, Any]]:
        """G7 to G11: the entries are those of the claim, each in its place in the log."""
        claim = self.claim
        kind = get(claim, "kind")
        if not isinstance(kind, str) or kind not in CLAIMS:
            broken("shape", "claim", "it is not about an observation, a field, a run or a decision")
        if not shaped(claim, {"kind": is_text, "positions": is_ascending, **CLAIMS[kind]}):
            broken("shape", "claim", "it has other parts than a claim of its kind")
        if not isinstance(given, list) or not 1 <= len(given) <= ENTRIES_MAX:
            broken("shape", "entries", "they are not a list of 1 to 10000 entries")
        if not all(isinstance(entry, dict) and is_whole(entry.get("position")) for entry in given):
            broken("shape", "entries", "one of them has no position")
        held = [entry["position"] for entry in given]
        if not is_ascending(held):
            broken("order", "entries", "they are not in the order of the log, each once")
        if held != claim["positions"]:
            odd = min(set(held) ^ set(claim["positions"]))
            broken("entries", f"entry {odd}", "the entries of the capsule are not those that its claim lists")
        entries = [read_entry(entry, "entries", self.point) for entry in given]
        check_writes(entries, self.point["size"])
        return entries

    def of_kind(self, kind: str) -> list[dict[str, Any]]:
        """Return the entries of a kind that are not blank, by position."""
        return self.kinds[kind]

    def check(self) -> None:
        entries, lines = self.entries, self.lines
        lines.append(f"{len(entries)} entries of that log are in this capsule, byte for byte, each in its place.")
        for log in sorted({entry["log"] for entry in entries} - {self.point["origin"]}):
            count = sum(entry["log"] == log for entry in entries)
            lines.append(f"{count} of them were written under the name of log {log}, which this log goes on from.")
        self.check_bodies()
        self.check_blanks()
        self.check_again()
        self.check_lineage()
        kind = self.claim["kind"]
        if kind == "observation":
            check_observation(self)
        elif kind == "field":
            check_field(self)
        else:
            check_run(self)
        self.check_places()
        lines += [said_of_part(part) for part in sorted(self.report.parts)]
        lines.append(NOT_SHOWN)

    def check_bodies(self) -> None:
        """B1: every body has the shape of its kind, and no observation is shown twice."""
        for entry in self.entries:
            if entry["body"] is not None and not is_body(entry["kind"], entry["body"]):
                broken("shape", entry["record"], f"its body is not that of a {entry['kind']}")
        for entry in self.observations:
            if self.by_name[entry["name"]] is not entry:
                broken("surplus", entry["record"], "the same observation is shown twice, and occurs in a log once")

    def names(self, erasure: dict[str, Any], blank: dict[str, Any]) -> bool:
        """Say whether an erasure names the position of a blank entry."""
        body, position = erasure["body"], blank["position"]
        if not any(first <= position <= last for first, last in body["positions"]):
            return False
        if body["log"] == erasure["log"]:
            return bool(erasure["position"] > position)
        return bool(body["log"] == blank["log"])

    def check_blanks(self) -> None:
        """B2: an entry without content is named by an erasure here."""
        for entry in self.entries:
            if entry["blank"]:
                if not any(self.names(erasure, entry) for erasure in self.erasures):
                    broken("erased", entry["record"], "it has no content, and no erasure here says why")
                self.lower("erased", entry["position"])

    def check_again(self) -> None:
        """B3: entries rewritten in the write of an erasure."""
        first: Dict[int, int] = {}
        for erasure in self.erasures:
            first.setdefault(erasure["write"], erasure["position"])
        for entry in self.entries:
            if entry["kind"] != "erasure":
                entry["again"] = first.get(entry["write"], entry["position"]) < entry["position"]
            if entry["again"]:
                self.lower("again", entry["position"])

    def check_lineage(self) -> None:
        """B4: the origin of an observation is shown."""
        for kind in ("interpretation.started", "interpretation.ended"):
            for entry in self.of_kind(kind):
                self.lineages.setdefault("reading " + entry["body"]["interpretation"], []).append(entry)
        for entry in self.of_kind("source"):
            self.lineages.setdefault("source " + entry["name"], []).append(entry)
        for entry in self.of_kind("received"):
            self.lineages.setdefault("source " + entry["body"]["source"], []).append(entry)
        sources = {entry["name"] for entry in self.of_kind("source")}
        readings = {entry["body"]["interpretation"] for entry in self.of_kind("interpretation.started")}
        passed = set() if self.claim["kind"] in ("observation", "field") else self.passed_over()
        for entry in self.observations:
            body = entry["body"]
            if entry["position"] in passed:
                continue
            if "source" in body and body["source"] not in sources:
                self.lower("source", entry["position"])
            if "interpretation" in body and body["interpretation"] not in readings:
                self.lower("interpretation", entry["position"])

    def passed_over(self) -> set[int]:
        """Return the positions of observations that the run neither wrote nor names: they only merge with others."""
        ids, run = named_ids(self), self.claim["run"]
        return {e["position"] for e in self.observations if short(e["name"]) not in ids and e["body"].get("run") != run}

    def check_places(self) -> None:
        """B5: every entry has a place in the capsule."""
        sources = {entry["body"]["source"] for entry in self.observations if "source" in entry["body"]}
        readings = {entry["body"].get("interpretation") for entry in self.observations}
        blanks = [entry for entry in self.entries if entry["blank"]]
        again = {entry["write"] for entry in self.entries if entry["again"]}
        for entry in self.entries:
            kind, body = entry["kind"], entry["body"]
            if entry["blank"] or entry["position"] in self.placed:
                continue
            if kind == "erasure":
                good = entry["write"] in again or any(self.names(entry, blank) for blank in blanks)
            elif kind == "source":
                good = entry["name"] in sources
            elif kind == "received":
                good = body["source"] in sources
            else:
                good = kind.startswith("interpretation.") and body["interpretation"] in readings
            if not good:
                broken("surplus", entry["record"], f"this {kind} has nothing to do with what is claimed")

    def place(self, entries: Iterable[dict[str, Any]]) -> None:
        self.placed.update(entry["position"] for entry in entries)

    def schema_in_force(self, type: str, through: int | None) -> dict[str, Any] | None:
        """Return the highest shown schema of a type, at or below a position if one is given."""
        best = None
        for entry in self.of_kind("schema"):
            if entry["body"]["type"] != type or (through is not None and entry["position"] > through):
                continue
            if best is None or schema_rank(entry) > schema_rank(best):
                best = entry
        return best

    def relations(self) -> list[dict[str, Any]]:
        """Return the observations of `same_as` relations."""
        if self.joins is None:
            self.joins = [e for e in self.observations if e["body"]["entity"]["type"] == "same_as"]
        return self.joins

    def group(self, entity: str, through: int | None = None, effective: str | None = None) -> set[str]:
        """Return the entities that shown `same_as` relations join with one, itself included."""
        asked = entity, through, effective
        if asked not in self.groups:
            shown = [e for e in self.relations() if through is None or e["position"] <= through or e["again"]]
            if effective is not None:
                shown = [e for e in shown if e["body"]["op"] == "retract" or e["body"]["valid_from"] <= effective]
            self.groups[asked] = group_of(entity, shown)
        return self.groups[asked]


def schema_rank(entry: dict[str, Any]) -> tuple[int, bytes]:
    return entry["body"]["schema"]["x-woodrat-version"], digest_of(entry["name"])


def policy_of(schema: dict[str, Any] | None, field: str) -> Any:
    """Return the merge policy of a field: a name, an object for the user's own, or None if it is not a policy.

    The name of `{"by_key": member}` is `by_key:` and the member.
    """
    document = None if schema is None else schema["body"]["schema"]
    subschema = get(get(document, "properties"), field)
    policy = subschema.get("x-woodrat-merge", "latest") if isinstance(subschema, dict) else "latest"
    if isinstance(policy, str):
        return policy if policy in RANKED or policy in COLLECTIONS else None
    if not isinstance(policy, dict):
        return None
    if set(policy) == {"by_key"}:
        member = policy["by_key"]
        return BY_KEY + member if isinstance(member, str) and is_member_name(member) else None
    return policy if set(policy) == {"code", "name", "version"} else None


BY_KEY = "by_key:"
_MEMBER = re.compile("[^\x00-\x1f\x7f-\x9f]+")


def is_member_name(text: str) -> bool:
    return _MEMBER.fullmatch(text) is not None and len(text.encode()) <= 256


def keyed_by(policy: Any) -> str | None:
    """Return the member that identifies objects under a policy; None under any other."""
    return policy[len(BY_KEY) :] if isinstance(policy, str) and policy.startswith(BY_KEY) else None


def type_of(entity: str) -> str:
    return entity.partition("/")[0]


PARTS = {
    "held": "The checkpoint you hold is not joined with this file; a consistency document would join them.",
    "schema": "No schema of the type is shown; one that was left out would not show.",
    "subschema": "Whether the claims fit the schema was not evaluated.",
    "policy": "The merge policy is the user's own and was not evaluated.",
    "end": "The end of the run is not shown, so steps may be missing.",
    "steps": "The steps of this run are not numbered by one recorder, so a missing one would not show.",
    "imported": "Entries of the run were imported from another log, in an order that only that log can show.",
    "content": "the content is not shown; its place is proven.",
    "erased": "something was erased, as an erasure shown says.",
    "again": "it was said again in the write of an erasure.",
    "source": "its source is not shown.",
    "interpretation": "the reading it came from is not shown.",
    "named": "it replaces an observation that is not shown.",
    "read": "a value was read in a way that was not recorded.",
    "foreign": "it was read in another log.",
    "effective": "it was read by what was true at a time, which was not followed again.",
    "winner": "the observations that lost are not all shown, so that the winner won was not followed again.",
    "collection": "how the observations merge was not followed again.",
    "skipped": "numbers of steps are said to have left nothing.",
    "decision": "a fact is said to be what another run decided, which is not shown.",
    "recall": "what was recalled is not shown.",
    "choice": "a model or a person chose, which was not evaluated.",
    "predicate": "a rule is code and was not evaluated.",
    "matches": "a pattern was not evaluated.",
    "omitted": "rules or conditions were left out for their number.",
    "hidden": "a value is redacted and could not be compared.",
    "cut": "a value was too long to be kept and could not be compared.",
    "mark": "a value is not JSON and could not be evaluated.",
}


def said_of_part(part: str) -> str:
    """Say a part that lowers the verdict in a sentence."""
    reason, _, position = part.partition(" ")
    if position and reason == "policy":
        return f"Not checked, entry {position}: a merge policy is the user's own."
    if position and reason == "subschema":
        return f"Not checked, entry {position}: whether claims fit the schema was not evaluated."
    return f"Not checked, entry {position}: {PARTS[reason]}" if position else f"Not checked: {PARTS[reason]}"


# ---------------------------------------------------------------------------------------------------------------- words


def summary(entry: dict[str, Any]) -> str:
    body = entry["body"]
    if entry["blank"]:
        return f"a {entry['kind']} whose content is not shown."
    if entry["kind"] == "source":
        return f"source {short(entry['name'])} of {entry['bytes']} bytes."
    if entry["kind"] != "observation" or not shaped(body, OBSERVATION):
        return f"a {entry['kind']}: {spell(body)}"
    what = f" {spell(body['fields'])}" if "fields" in body else ""
    when = f"{body['observed_at']} (the time it arrived)" if "assigned" in body else body["observed_at"]
    said = f"{body['agent']} stated of {ref_of(body)} at {when}: {body['op']}{what}."
    return f"{short(entry['name'])}, in which {said}"


def ref_of(body: Any) -> str:
    return f"{body['entity']['type']}/{body['entity']['key']}"


def lineage(capsule: Capsule, observation: dict[str, Any]) -> list[str]:
    """Report the origin of an observation, in the detail that the capsule has."""
    body, lines = observation["body"], []
    for entry in capsule.lineages.get("reading " + body.get("interpretation", ""), ()):
        lines.append(f"  {entry['record']}: {entry['kind']} {spell(entry['body'])}")
    for entry in capsule.lineages.get("source " + body.get("source", ""), ()):
        if entry["kind"] == "source":
            lines.append(f"  {entry['record']}: {summary(entry)}")
        else:
            by, name = entry["body"]["agent"], spell(entry["body"]["name"])
            lines.append(f"  {entry['record']}: {by} delivered that source as {name}.")
    return lines


def text_of(value: Any) -> str:
    return value if isinstance(value, str) else spell(value)


# --------------------------------------------------------------------------------------------------- an observation (O)


def check_observation(capsule: Capsule) -> None:
    """O1: the observation is shown."""
    entry = capsule.by_name.get(capsule.claim["observation"])
    if entry is None:
        broken("claim", "claim", "the observation it names is not among the entries")
    capsule.place([entry])
    capsule.lines += [f"{entry['record']}: {summary(entry)}", *lineage(capsule, entry)]


# --------------------------------------------------------------------------------- a field, merged once more (F)


def order(value: Any) -> Any:
    """Return the sort key of JSON values: null, false, true, numbers, text, arrays, objects."""
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
    """The observations of one entity, or of a group, as docs/formats/merge.md merges them, one field at a time."""

    def __init__(self, members: set[str], entries: list[Any]) -> None:
        self.members = members
        self.turn("", "latest", ())
        self.said: dict[str, Any] = {}
        for entry in entries:
            body, ref = entry["body"], ref_of(entry["body"])
            if ref in members and (not ref.startswith("audit_event/") or body["op"] == "assert"):
                self.said.setdefault(entry["name"], dict(body, place=entry["position"], ref=ref))
        self.named: dict[str, list[str]] = {}
        for name, body in self.said.items():
            for target in get(body, "replaces") or ():
                self.named.setdefault(target, []).append(name)
        self.live = self._settle(self._withdraws, lambda by, live: live[by], negate=True)

    def turn(self, field: str, policy: str, misfits: Iterable[int]) -> Fold:
        """Merge this field from now on, without the claims at some positions."""
        self.field, self.policy, self.aside = field, policy, set(misfits)
        return self

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
        return body["place"] not in self.aside

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
        if keyed_by(self.policy) is not None:
            return self._objects(stating)
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

    def corrected(self) -> bool:
        """Say whether a correction is in effect on the field."""
        gone = self.deleted()
        stating = [name for name, body in self.said.items() if self.states(body) and body["ref"] not in gone]
        return bool(self.standing(stating)[0])

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

    def _objects(self, stating: list[str]) -> tuple[bool, Any, str | None]:
        """Merge objects identified by a member: whether each is in, and each of its other members, separately."""
        key = keyed_by(self.policy)
        fitting = [name for name in stating if self.fits(self.said[name])]
        spoken: dict[tuple[str, ...], dict[str, Any]] = {}
        for name in fitting:
            for text in (get(self.said[name], "remove") or {}).get(self.field, ()):
                spoken.setdefault((text,), {})[name] = False
            for item in (get(self.said[name], "fields") or {}).get(self.field, ()):
                spoken.setdefault((item[key],), {})[name] = True
                for member in item:
                    if member != key:
                        said = spoken.setdefault((item[key], member), {})
                        said[name] = max(said.get(name, item[member]), item[member], key=order)
        settled = {part: found for part, said in spoken.items() for found in self._settled(said)}
        objects = [text for (text, *member), inside in settled.items() if not member and inside]
        value = [
            {key: text, **{part[1]: found for part, found in settled.items() if len(part) > 1 and part[0] == text}}
            for text in sorted(objects, key=order)
        ]
        return any(self.live[name] for name in fitting), value, None

    def _settled(self, said: dict[str, Any]) -> list[Any]:
        """Return the merged value of some claims about one thing, in a list; an empty list if none of them counts."""

        def corrects(by: str, name: str) -> bool:
            return by in said and self.said[by]["op"] == "correct"

        replaced = self._settle(corrects, lambda by, found: self.live[by] or found[by])
        live = [name for name in said if self.live[name]]
        corrections = [name for name in live if self.said[name]["op"] == "correct" and not replaced[name]]
        deciding = corrections or [name for name in live if self.said[name]["op"] == "assert"]
        ranks = [(self.said[n]["observed_at"], self.said[n]["priority"], order(said[n]), n) for n in deciding]
        return [said[max(ranks, key=lambda rank: rank[:3])[3]]] if ranks else []

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


_REF = re.compile("[a-z][a-z0-9_]{0,63}/[^\x00-\x1f\x7f-\x9f]+")


def is_ref(text: str) -> bool:
    return _REF.fullmatch(text) is not None and len(text.partition("/")[2].encode()) <= 1024


def same_as_ends(ref: str) -> list[str]:
    """Return the two entities that a `same_as` relation joins; None for other values."""
    type, _, key = ref.partition("/")
    try:
        ends: Any = json.loads(key) if type == "same_as" else None
        sound = is_texts(ends) and len(ends) == 2 and spell(ends) == key
    except (ValueError, RecursionError):
        return []
    if not sound or not all(is_ref(end) for end in ends):
        return []
    kinds = {type_of(end) for end in ends}
    return ends if len(kinds) == 1 and "same_as" not in kinds and order(ends[0]) < order(ends[1]) else []


def group_of(entity: str, entries: list[Any]) -> set[str]:
    """Return the entities that `same_as` relations among some observations join with one, itself included."""
    relations: dict[str, list[Any]] = {}
    for entry in entries:
        if entry["body"]["entity"]["type"] == "same_as":
            relations.setdefault(ref_of(entry["body"]), []).append(entry)
    edges = []
    for ref, said in relations.items():
        fold = Fold({ref}, said)
        if same_as_ends(ref) and fold.exists() and not fold.deleted():
            edges.append(set(same_as_ends(ref)))
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


def misfits_policy(body: Any, field: str, policy: Any) -> bool:
    """Say whether a policy cannot take a claim."""
    key = keyed_by(policy)
    if field in body.get("remove", {}) and policy != "union" and (key is None or not is_texts(body["remove"][field])):
        return True
    if field not in body.get("fields", {}):
        return False
    value = body["fields"][field]
    if key is not None:
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            return True
        return not is_texts([item.get(key) for item in value])
    if policy in ("union", "append"):
        return not isinstance(value, list)
    if policy == "sum":
        return not (is_integer(value) or (is_text(value) and len(value) <= 400 and DECIMAL.fullmatch(value)))
    return False


def check_field(capsule: Capsule) -> None:
    claim, lines = capsule.claim, capsule.lines
    entity, field, value = claim["entity"], claim["field"], claim["value"]
    schema = field_schema(capsule)  # F1
    policy = policy_of(schema, field)  # F2
    if policy is None:
        broken("schema", "claim", f"the schema gives {field} a merge policy that is not one")
    members = capsule.group(entity)  # F3
    said = [entry for entry in capsule.observations if ref_of(entry["body"]) in members]
    capsule.place(said)
    capsule.place(e for e in capsule.observations if members & set(same_as_ends(ref_of(e["body"]))))
    for entry in said:  # F4
        if any(name not in capsule.by_name for name in entry["body"].get("replaces", ())):
            capsule.lower("named", entry["position"])
    check_misfits(capsule, said, schema, policy)
    fold = Fold(members, said).turn(field, policy if isinstance(policy, str) else "latest", claim["misfits"])
    winner = check_value(capsule, fold, policy)
    known = "no schema of it is here" if schema is None else f"schema in {schema['record']}"
    name = policy if isinstance(policy, str) else text_of(policy["name"])
    lines.append(
        f"{entity}#{field} = {spell(value)} follows from the {len(fold.said)} observations of it in this capsule, "
        f"under policy {name} ({known}), as of the checkpoint."
    )
    for other in sorted(members - {entity}, key=order):
        lines.append(f"It is one with {other}, by same_as relations in this capsule.")
    for entry in capsule.observations:
        mark = " This one set the value." if entry["name"] == winner else ""
        aside = " It does not fit the field and was set aside." if entry["position"] in claim["misfits"] else ""
        lines += [f"{entry['record']}: {summary(entry)}{mark}{aside}", *lineage(capsule, entry)]


def field_schema(capsule: Capsule) -> dict[str, Any] | None:
    """F1: the schema used is the highest one shown, and a capsule without one says so."""
    claim, type = capsule.claim, type_of(capsule.claim["entity"])
    schema = capsule.schema_in_force(type, None)
    if (None if schema is None else schema["position"]) != claim.get("schema"):
        broken("schema", "claim", "the schema it names is not the one in force among those here")
    if schema is None:
        capsule.lower("schema")
    capsule.place(entry for entry in capsule.of_kind("schema") if entry["body"]["type"] == type)
    return schema


def check_misfits(capsule: Capsule, said: list[Any], schema: Any, policy: Any) -> None:
    """F5: the claims set aside are those that do not fit, where that can be evaluated."""
    claim, field = capsule.claim, capsule.claim["field"]
    document = None if schema is None else schema["body"]["schema"]
    ready = readiness(document, field)
    least, most = set(), set()
    for entry in said:
        body, position = entry["body"], entry["position"]
        if field not in body.get("fields", {}) and field not in body.get("remove", {}):
            continue
        fit = claim_fits(document, field, body, ready)
        if fit is None:
            capsule.lower("subschema")
        if misfits_policy(body, field, policy) or fit is False:
            least.add(position)
        if position in least or fit is None:
            most.add(position)
    if not least <= set(claim["misfits"]) <= most:
        broken("claim", "claim", "the claims it sets aside are not those that do not fit")


def check_value(capsule: Capsule, fold: Fold, policy: Any) -> str | None:
    """F6: the observations merge to the value; return the one that set it, if it is a single one."""
    value = capsule.claim["value"]
    there, found, winner = fold.value()
    own = not isinstance(policy, str)
    if own:
        capsule.lower("policy")
    if there and own and not fold.corrected():
        return None
    if not there or not same(found, value):
        seen = spell(found) if there else "no value"
        broken("claim", "claim", f"the observations here merge to {seen}, not to {spell(value)}")
    return winner


# ------------------------------------------------------------------------------------ a run and its decisions (S, R, D)

RULES_MIN = CONDITIONS_MIN = 1_000  # a recorder leaves rules or conditions out only beyond so many
OBSERVATIONS_MAX = 1_000
OPERATORS = ("eq", "ne", "gt", "gte", "lt", "lte", "in", "not_in", "exists", "matches")


class Run:
    """The entries of the run that a capsule is about."""

    def __init__(self, capsule: Capsule) -> None:
        self.capsule, self.lower = capsule, capsule.lower
        self.entries = [entry for entry in capsule.entries if entry["kind"].startswith("run.") and not entry["blank"]]
        self.started = capsule.of_kind("run.started")
        self.ended = capsule.of_kind("run.ended")
        self.reads = capsule.of_kind("run.read")
        stage = capsule.claim.get("stage")
        every = capsule.of_kind("run.decided")
        self.decisions = [entry for entry in every if stage is None or entry["body"]["stage"] == stage]
        self.numbered = len(self.ended) == 1 and "numbered" in self.ended[0]["body"]
        self.own_names = {capsule.point["origin"], *(entry["log"] for entry in capsule.entries)}
        self.by_ref: Dict[str, list[dict[str, Any]]] = {}
        for entry in capsule.observations:
            self.by_ref.setdefault(ref_of(entry["body"]), []).append(entry)
        self.folds: Dict[Tuple[str, int], Fold | None] = {}
        """Cache of merged values, by entity and position; None if it cannot be merged."""
        self.known: Dict[Any, Any] = {}
        """Which schemas are within their limits, which subschemas are evaluated, and which claims fit them."""

    def fit(self, schema: dict[str, Any] | None, field: str, name: str, body: Any) -> bool | None:
        """Say whether the claim of an observation fits a field; None where that is not evaluated."""
        if schema is None:
            return True
        document, place = schema["body"]["schema"], (schema["name"], field)
        if schema["name"] not in self.known:
            self.known[schema["name"]] = is_within(document)
        if place not in self.known:
            self.known[place] = readiness(document, field, self.known[schema["name"]])
        if (*place, name) not in self.known:
            self.known[(*place, name)] = claim_fits(document, field, body, self.known[place])
        fit: bool | None = self.known[(*place, name)]
        return fit

    def hidden(self, *entries: dict[str, Any]) -> list[str]:
        """Return the hidden keys of entries of the run."""
        return [key for entry in [*self.started, *entries] for key in entry["body"].get("redact", ())]

    def lower_all(self, reasons: set[str], position: int) -> None:
        for reason in reasons:
            self.lower(reason, position)


def check_run(capsule: Capsule) -> None:
    run = Run(capsule)
    check_steps(run)
    check_found(run)
    place_run(run)
    check_reads(run)
    begun, lines = run.started[0], capsule.lines
    body = begun["body"]
    asked = f" was asked {spell(body['query'])}" if "query" in body else " began"
    lines.append(f"{begun['record']}: {body['run']} by {body['agent']}{asked}.")
    shown: set[str] = set()
    claimed = {entry["position"] for entry in run.decisions}
    for entry in capsule.of_kind("run.decided"):
        if entry["position"] in claimed:
            check_decision(run, entry, shown)
        else:
            check_other_decision(run, entry)
    for entry in run.ended:
        answer = f" and the answer {spell(entry['body']['answer'])}" if "answer" in entry["body"] else ""
        lines.append(f"{entry['record']}: it ended as {text_of(entry['body'].get('status'))}{answer}.")
    for entry in capsule.observations:
        if entry["name"] not in shown:
            lines.append(f"{entry['record']}: {summary(entry)}")


def check_steps(run: Run) -> None:
    claim = run.capsule.claim
    if not run.started:  # S1
        broken("claim", "claim", "the beginning of the run is not among the entries")
    if not {read["position"] for read in run.reads} >= set(claim.get("left_out", ())):
        broken("claim", "claim", "it says that observations of what is no read here are left out")
    owner = run.started[0]["body"]["agent"]
    for entry in run.entries:  # S2
        if entry["body"]["run"] != claim["run"]:
            broken("foreign", entry["record"], f"it is not of run {claim['run']}")
        if entry["kind"] != "run.judged" and entry["body"]["agent"] != owner:
            by = entry["body"]["agent"]
            broken("foreign", entry["record"], f"it was recorded by {by}, and the run is one of {owner}")
    if claim["kind"] == "decision" and not run.decisions:  # S3
        broken("claim", "claim", "the decision it names is not among the entries")
    if not run.ended:  # S4
        run.lower("end")
    elif not run.numbered:
        run.lower("steps")
    else:
        check_numbers(run, owner)
        check_unique(run)
        check_ascending(run)
        if run.ended[0]["body"].get("skipped"):  # S8
            run.lower("skipped", run.ended[0]["position"])
    if any(entry["merged"] for entry in run.entries):  # S9
        run.lower("imported")


def check_numbers(run: Run, owner: str) -> None:
    """S5: every number up to the end's belongs to a shown step, was skipped, or its write was erased."""
    ended = run.ended[0]
    if len(run.started) != 1:
        broken("steps", ended["record"], "its steps are numbered, and it begins more than once")
    taken = {entry["body"]["step"] for entry in run.entries if entry["kind"] != "run.judged"}
    taken.update(ended["body"].get("skipped", ()))
    for entry in run.capsule.observations:
        body = entry["body"]
        if body.get("run") == run.capsule.claim["run"] and body["agent"] == owner and "step" in body:
            taken.add(body["step"])
    end = ended["body"]["step"]
    count = end + 1 - sum(step <= end for step in taken)
    gone = {entry["write"] for entry in run.capsule.entries if entry["blank"] and entry["kind"] == "observation"}
    if count > len(gone):
        missing = next(step for step in range(end + 1) if step not in taken)
        broken("steps", ended["record"], f"step {missing} of the run is not here, and nothing says why")


def is_carried_on(run: Run) -> bool:
    """Say whether several recorders took steps of the run, one after the other or side by side."""
    events = [get(entry["body"].get("data"), "event") for entry in run.capsule.of_kind("run.noted")]
    return "continued" in events or "resumed" in events


def check_unique(run: Run) -> None:
    """S6: no step is numbered beyond the end, and no number is taken twice."""
    taken: Dict[int, dict[str, Any]] = {}
    for entry in run.entries:
        body = entry["body"]
        if entry["kind"] == "run.judged":
            continue
        first = taken.setdefault(body["step"], entry)
        beyond = body["step"] > run.ended[0]["body"]["step"]
        if not beyond and (first is entry or is_one_step(first, entry)):
            if first["body"].get("begun") is True:
                taken[body["step"]] = entry  # the call ends once
            continue
        if not is_carried_on(run):
            why = "is beyond that of the end" if beyond else f"is that of {first['record']} too"
            broken("steps", entry["record"], f"its number {body['step']} {why}")
        run.lower("steps")


def is_one_step(first: dict[str, Any], entry: dict[str, Any]) -> bool:
    """Say whether two entries can be of one step: of a read of many, or the beginning and the end of a call."""
    if entry["kind"] != first["kind"] or entry["body"]["span"] != first["body"]["span"]:
        return False
    if entry["kind"] == "run.tool":
        return first["body"].get("begun") is True or entry["body"].get("begun") is True
    return bool(entry["kind"] == "run.read")


def check_ascending(run: Run) -> None:
    """S7: one recorder in one thread numbers simultaneous records in the order of the log."""
    if is_carried_on(run) or any("after" in entry["body"] for entry in run.entries):
        return
    last = -1
    for entry in run.entries:
        if entry["again"] or entry["merged"] or entry["kind"] in ("run.tool", "run.model", "run.judged"):
            continue  # a call is recorded at its end
        if entry["body"]["step"] < last:
            broken("steps", entry["record"], f"its number {entry['body']['step']} comes after {last}")
        last = entry["body"]["step"]


def check_found(run: Run) -> None:
    """S10: a read that found nothing has no fields."""
    for read in run.reads:
        if not read["body"]["found"] and read["body"].get("fields"):
            refuse_read(read, "it found nothing, and has fields")


def all_origins(entry: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the origins of a decision: those of its facts and of its conditions."""
    body = entry["body"]
    origins = body.get("facts_origin", {})
    rules = body.get("rules", [])
    found = [] if is_cut(origins) else list(origins.values())
    for rule in [] if is_cut(rules) else rules:
        found += [condition["origin"] for condition in rule["conditions"]]
    return found


def fields_read(read: dict[str, Any]) -> dict[str, Any]:
    fields = read["body"].get("fields", {})
    return {} if is_cut(fields) else fields


def read_origins(capsule: Capsule) -> list[dict[str, Any]]:
    """Return the origins of all shown decisions that are reads."""
    origins = [origin for entry in capsule.of_kind("run.decided") for origin in all_origins(entry)]
    return [origin for origin in origins if origin["kind"] == "read"]


def named_ids(capsule: Capsule) -> set[str]:
    """Return the ids of the observations that shown reads and origins name."""
    ids = {id for origin in read_origins(capsule) for id in origin.get("observations", ())}
    for read in capsule.of_kind("run.read"):
        for item in fields_read(read).values():
            ids.update(item.get("observations", ()))
            ids.update([item["observation"]] if "observation" in item else [])
    return ids


def place_run(run: Run) -> None:
    """Give a place to everything of the run: its entries, its writes and reads, and the schemas of those."""
    capsule, ids = run.capsule, named_ids(run.capsule)
    entities = {origin["entity"] for origin in read_origins(capsule) if "entity" in origin}
    cited = [entry for entry in capsule.observations if short(entry["name"]) in ids]
    entities.update(ref_of(entry["body"]) for entry in cited)
    for read in run.reads:
        body = read["body"]
        if "entity" in body:
            entities.add(body["entity"])
        if "entity" in body and "position" in body and not is_foreign(run, read):
            members = capsule.group(body["entity"], body["position"], body.get("effective"))
            entities.update(members)
            said = [entry for member in members for entry in run.by_ref.get(member, ())]
            capsule.place(entry for entry in said if entry["position"] <= body["position"] or entry["again"])
    capsule.place(run.entries)
    capsule.place(cited)
    capsule.place(e for e in capsule.observations if e["body"].get("run") == capsule.claim["run"])
    capsule.place(e for e in capsule.observations if entities & set(same_as_ends(ref_of(e["body"]))))
    types = {type_of(entity) for entity in entities}
    capsule.place(entry for entry in capsule.of_kind("schema") if entry["body"]["type"] in types)


# ------------------------------------------------------------------------------------------------------------ reads (R)


def is_read_of(read: dict[str, Any], origin: dict[str, Any]) -> bool:
    """Say whether an origin names a read."""
    body = read["body"]
    return bool(body.get("entity") == origin.get("entity") and body.get("position") == origin.get("position"))


def check_reads(run: Run) -> None:
    origins = [origin for entry in run.decisions for origin in all_origins(entry) if origin["kind"] == "read"]
    for read in run.reads:
        names = list(fields_read(read))
        if run.capsule.claim["kind"] == "run" and is_cut(read["body"].get("fields")):
            run.lower("cut", read["position"])
        if run.capsule.claim["kind"] == "decision":
            wanted = {origin["field"] for origin in origins if "entity" in origin and is_read_of(read, origin)}
            names = [name for name in names if name in wanted]
        for name in names:
            check_read(run, read, name)


def refuse_read(read: dict[str, Any], message: str) -> NoReturn:
    broken("evidence", read["record"], message)


def is_foreign(run: Run, read: dict[str, Any]) -> bool:
    """R2: say whether a read was made in another log."""
    return read["merged"] or read["body"].get("log") not in run.own_names


def read_schema(run: Run, read: dict[str, Any]) -> dict[str, Any] | None:
    """R4: return the schema in force at a read, which is the one it names."""
    body = read["body"]
    type, wanted = type_of(body["entity"]), body.get("schema")
    if is_foreign(run, read):
        named = [e for e in run.capsule.of_kind("schema") if e["name"] == wanted and e["body"]["type"] == type]
        if wanted is not None and not named:
            broken("schema", read["record"], f"the schema {wanted} it was read by is not here")
        return named[0] if named else None
    schema = run.capsule.schema_in_force(type, body["position"])
    if (None if schema is None else schema["name"]) != wanted:
        known = "none" if schema is None else f"that in {schema['record']}"
        named_text = "none" if wanted is None else wanted
        broken("schema", read["record"], f"it names schema {named_text}, and in force among those here is {known}")
    return schema


def check_read(run: Run, read: dict[str, Any], field: str) -> None:
    """R1 to R10: one field of one read."""
    body, position, item = read["body"], read["position"], fields_read(read)[field]
    if "entity" not in body:  # R1
        if not read["again"] and "remembered" not in body:
            refuse_read(read, "it has fields of no entity")
        run.lower("erased" if read["again"] else "recall", position)
        return
    if "position" not in body:
        if run.numbered:
            refuse_read(read, "it names no position it was read at")
        run.lower("read", position)
        return
    foreign = is_foreign(run, read)
    if foreign:  # R2
        run.lower("foreign", position)
    elif body["position"] >= position:  # R3
        refuse_read(read, f"it was read at position {body['position']}, which the log did not have yet")
    if "effective" in body:
        run.lower("effective", position)
    if "as_of" in body and body["as_of"] != body["position"]:
        refuse_read(read, "it was read as of another position than it names")
    schema = read_schema(run, read)  # R4
    policy = policy_of(schema, field)  # R5
    if policy is None:
        broken("schema", read["record"], f"the schema gives {field} a merge policy that is not one")
    if not isinstance(policy, str):
        run.lower("policy", position)
    cited = cited_by(run, read, field, item, policy)
    if cited is None:
        return
    hidden = run.hidden(read) + [field] * is_redacted_field(schema, field)
    if policy in RANKED:  # R8
        stated = cited[0]["body"]["fields"][field]
        reasons = compare(item["value"], stated, [field], hidden, read["again"] or cited[0]["again"])
        if reasons is None:
            what = f"it read {spell(item['value'])} from {item['observation']}, which says {spell(stated)}"
            refuse_read(read, f"{what} of {field}")
        run.lower_all(reasons, position)
        if "erased" not in reasons and run.fit(schema, field, cited[0]["name"], cited[0]["body"]) is False:
            refuse_read(read, f"it read {field} from a claim that does not fit the schema")
    else:
        check_elements(read, field, item, policy, cited)
    check_merge(run, read, field, schema, policy, hidden)


def merged_again(run: Run, read: dict[str, Any]) -> Fold | None:
    """Return the observations that a read saw, for merging again; None if they are not all shown."""
    body, capsule = read["body"], run.capsule
    if read["again"] or "effective" in body or is_foreign(run, read):
        return None
    if read["position"] in capsule.claim.get("left_out", [read["position"]]):
        return None
    asked = body["entity"], body["position"]
    if asked not in run.folds:
        members = capsule.group(*asked)
        said = [entry for member in members for entry in run.by_ref.get(member, ())]
        gone = any(e["blank"] and e["kind"] == "observation" and e["position"] <= asked[1] for e in capsule.entries)
        seen = sorted((e for e in said if e["position"] <= asked[1]), key=lambda e: e["position"])
        run.folds[asked] = None if gone or any(e["again"] for e in said) else Fold(members, seen)
    return run.folds[asked]


def check_merge(
    run: Run, read: dict[str, Any], field: str, schema: dict[str, Any] | None, policy: Any, hidden: list[str]
) -> None:
    """R10: the shown observations merge to the recorded value."""
    position, fold = read["position"], merged_again(run, read)
    if fold is None:
        if isinstance(policy, str):
            run.lower("winner" if policy in RANKED else "collection", position)
        return
    misfits, evaluated = set(), True
    for name, said in fold.turn(field, policy if isinstance(policy, str) else "latest", ()).said.items():
        states = fold.states(said)
        if (states or said["op"] not in ("assert", "correct")) and not run.capsule.by_name.keys() >= set(
            said.get("replaces", ())
        ):
            run.lower("named", said["place"])
        fit = run.fit(schema, field, name, said) if states else True
        evaluated = evaluated and fit is not None
        if states and (fit is False or misfits_policy(said, field, policy)):
            misfits.add(said["place"])
    if not evaluated:
        run.lower("subschema", position)
        return
    item = fields_read(read)[field]
    there, value, winner = fold.turn(field, fold.policy, misfits).value()
    if not there:
        refuse_read(read, f"it read {field}, and the observations here merge to no value")
    if policy in RANKED and short(winner or "") != item["observation"]:
        seen = f"{spell(value)} of {short(winner or '')}"
        refuse_read(read, f"it read {field} from {item['observation']}, and the observations here merge to {seen}")
    if policy not in RANKED and (isinstance(policy, str) or fold.corrected()):
        reasons = compare(item["value"], value, [field], hidden, False)
        if reasons is None:
            seen = f"and the observations here merge to {spell(value)}"
            refuse_read(read, f"it read {field} as {spell(item['value'])}, {seen}")
        run.lower_all(reasons, position)


def is_redacted_field(schema: Any, field: str) -> bool:
    """Say whether a schema hides the values of a field."""
    document = None if schema is None else schema["body"]["schema"]
    return get(get(get(document, "properties"), field), "x-woodrat-redact") is True


def cited_by(run: Run, read: dict[str, Any], field: str, item: Any, policy: Any) -> list[dict[str, Any]] | None:
    """R6, R7: return the observations that a read names; None where they were erased."""
    body, foreign = read["body"], is_foreign(run, read)
    if "observation" not in item:  # R6
        if not read["again"]:
            refuse_read(read, f"it names no observation of {field}")
        run.lower("erased", read["position"])
        return None
    if "value" not in item:
        refuse_read(read, f"it names an observation of {field}, and no value")
    ids = [item["observation"]]
    if "observations" in item:
        ids = item["observations"]
        if policy in RANKED:
            refuse_read(read, f"{field} has one winner under {policy}, and it names observations")
        in_order = read["again"] or ids[:1] == [item["observation"]]
        if not 2 <= len(ids) <= OBSERVATIONS_MAX and not read["again"]:
            refuse_read(read, f"it names {len(ids)} observations of {field}")
        if len(set(ids)) != len(ids) or not in_order:
            refuse_read(read, f"the observations of {field} are not each once, with the one shown first")
    through = None if foreign else body["position"]
    members = run.capsule.group(body["entity"], through, body.get("effective"))
    found = []
    for id in ids:  # R7
        entry = run.capsule.by_id.get(id)
        if entry is None:
            refuse_read(read, f"it read {id}, which is not here")
        said = entry["body"]
        if through is not None and entry["position"] > through and not entry["again"]:
            refuse_read(read, f"it read {id} at position {through}, before the log had it")
        if said["op"] not in ("assert", "correct") or ref_of(said) not in members:
            refuse_read(read, f"it read {id} of {body['entity']}, and that is {said['op']} of {ref_of(said)}")
        states = field in said.get("fields", {}) or (policy not in RANKED and field in said.get("remove", {}))
        if not states and read["again"] and entry["again"]:
            run.lower("erased", read["position"])
            return None
        if not states:
            refuse_read(read, f"it read {field} from {id}, which says nothing of it")
        if "effective" in body and said["valid_from"] > body["effective"]:
            refuse_read(read, f"it read {id} as true by {body['effective']}, before it was")
        found.append(entry)
    return found


def check_elements(read: dict[str, Any], field: str, item: Any, policy: Any, cited: list[Any]) -> None:
    """R9: every element of a collection was stated by an observation that the read names."""
    key = keyed_by(policy)
    if (policy not in ("union", "append") and key is None) or len(cited) >= OBSERVATIONS_MAX:
        return
    value = item["value"]
    if read["again"] or any(entry["again"] for entry in cited) or not isinstance(value, list):
        return
    if occurs(value, is_mark) or occurs(value, is_redacted):
        return
    stated = [entry["body"].get("fields", {}).get(field) for entry in cited]
    elements = [element for each in stated if isinstance(each, list) for element in each]
    known = {spell(part) for element in elements for part in parts_of(element, key)}
    shown = [parts_of(element, key) for element in value]
    if any(not each or any(spell(part) not in known for part in each) for each in shown):
        refuse_read(read, f"it read elements of {field} that none of its observations states")


def parts_of(element: Any, key: str | None) -> list[Any]:
    """Return an element alone; of an object identified by a member its members, each with the object's text."""
    if key is None:
        return [element]
    if not isinstance(element, dict) or not is_text(element.get(key)):
        return []
    return [[element[key], name, element[name]] for name in element]


# -------------------------------------------------------------------------------------------------------- decisions (D)


def check_decision(run: Run, entry: dict[str, Any], shown: set[str]) -> None:
    body, lines = entry["body"], run.capsule.lines
    at = f" at {body['started_at']}" if "started_at" in body else ""
    lines.append(f"{entry['record']}: {body['stage']} was decided as {spell(body.get('chosen'))}{at}.")
    rules = body.get("rules")
    if rules is None:  # D1
        run.lower("choice", entry["position"])
        lines.append("  A model or a person chose; nothing says by which rules.")
    elif is_cut(rules):
        run.lower("cut", entry["position"])
        lines.append("  Its rules were too long to be kept.")
    else:
        check_rules(run, entry, rules)
    check_facts(run, entry)
    Origins(run, entry, shown).check()


def check_other_decision(run: Run, entry: dict[str, Any]) -> None:
    """D1 to D9 of a decision that is not claimed: it does not contradict itself. Parts that it lowers are not named."""
    body, parts = entry["body"], set(run.capsule.report.parts)
    rules = body.get("rules")
    if rules is not None and not is_cut(rules):
        check_rules(run, entry, rules)
    check_facts(run, entry)
    run.capsule.report.parts = parts
    run.capsule.lines.append(f"{entry['record']}: {body['stage']} was decided too; that is not part of the claim.")


def refuse_decision(entry: dict[str, Any], message: str) -> NoReturn:
    broken("decision", entry["record"], message)


def check_rules(run: Run, entry: dict[str, Any], rules: list[Any]) -> None:
    """D1 to D8: the rules give the choice."""
    if "facts" not in entry["body"] or "facts_origin" not in entry["body"]:  # D1
        refuse_decision(entry, "it has rules and no facts")
    omitted = entry["body"].get("omitted", {})
    if "rules" in omitted and len(rules) < RULES_MIN:  # D2
        refuse_decision(entry, f"{omitted['rules']} rules are left out, and only {len(rules)} are shown")
    count = sum(len(rule["conditions"]) for rule in rules)
    if "conditions" in omitted and count < CONDITIONS_MIN:
        refuse_decision(entry, f"{omitted['conditions']} conditions are left out, and only {count} are shown")
    if omitted:
        run.lower("omitted", entry["position"])
    for number, rule in enumerate(rules):
        if rule["matched"] and "unknown" in rule:  # D6
            refuse_decision(entry, f"rule {name_of(rule, number)} is both matched and unknown")
        if "when" in rule:
            check_rule(run, entry, rule, name_of(rule, number))
        else:
            run.lower("predicate", entry["position"])  # D7
    check_chosen(run, entry, rules)


def name_of(rule: Any, number: int) -> str:
    return str(rule["label"]) if "label" in rule else f"number {number}"


def check_rule(run: Run, entry: dict[str, Any], rule: Any, name: str) -> None:
    """D3 to D6: the conditions of a rule are those of its `when`, and their results agree."""
    body, when, position = entry["body"], rule["when"], entry["position"]
    hidden, facts = run.hidden(entry), body["facts"]
    wanted: Dict[Tuple[str, str], Any] = {}
    masked: set[str] = set()
    if is_cut(when):
        run.lower("cut", position)
    else:
        for key, value in when.items():  # D3
            if is_redacted(value) and is_covered(key, hidden):
                masked.add(key)
                run.lower("hidden", position)
            elif isinstance(value, dict) and not is_mark(value):
                wanted.update({(key, op): operand for op, operand in value.items()})
            else:
                wanted[key, "eq"] = value
    results: list[Any] = []
    met: set[Tuple[str, str]] = set()
    for item in rule["conditions"]:
        key, op = item["key"], item.get("op")
        if op not in OPERATORS:  # D4
            refuse_decision(entry, f"rule {name}: a condition on {key} has no operator that is known")
        if (key, op) in met or not (is_cut(when) or key in masked or (key, op) in wanted):
            refuse_decision(entry, f"rule {name}: its conditions are not those of the rule")
        if key in masked and not is_redacted(item["operand"]):
            refuse_decision(entry, f"rule {name}: a condition on {key} shows what the rule hides")
        met.add((key, op))
        operand = wanted.get((key, op), item["operand"])
        reasons = compare(operand, item["operand"], [key], hidden, entry["again"])
        if reasons is None:
            refuse_decision(entry, f"rule {name}: the operand of {key} {op} is not that of the rule")
        run.lower_all(reasons, position)
        results.append(check_condition(run, entry, item, operand, name))
    missing = [pair for pair in wanted if pair not in met]
    bare = masked - {key for key, _ in met}
    if (missing or bare) and "conditions" not in body.get("omitted", {}):  # D3
        refuse_decision(entry, f"rule {name}: its conditions are not those of the rule")
    unsure = is_cut(when) or bool(bare)
    for key, op in missing:
        if op not in OPERATORS:
            refuse_decision(entry, f"rule {name}: a condition on {key} has no operator that is known")
        result: Any = NOT_EVALUATED
        if not is_cut(facts):
            result = evaluate(run, entry, op, wanted[key, op], key in facts, facts.get(key))
        unsure = unsure or result is NOT_EVALUATED
        results += [] if result is NOT_EVALUATED else [result]
    outcome = rule["matched"], "unknown" in rule
    if False in results:  # D6
        good = outcome == (False, False)
    elif unsure:
        good = True
    elif UNKNOWN in results:
        good = outcome == (False, True)
    else:
        good = outcome == (bool(results), False)
    if not good:
        recorded = "matched" if outcome[0] else "unknown" if outcome[1] else "not matched"
        refuse_decision(entry, f"rule {name} is recorded as {recorded}, and is not so")


UNKNOWN, NOT_EVALUATED = "unknown", "not evaluated"


def check_condition(run: Run, entry: dict[str, Any], item: Any, operand: Any, name: str) -> Any:
    """D5: a condition came out as recorded; return how."""
    recorded = item.get("result", UNKNOWN)
    if ("result" in item) is ("error" in item):
        refuse_decision(entry, f"rule {name}: a condition on {item['key']} has neither or both of result and error")
    found = evaluate(run, entry, item["op"], operand, "actual" in item, item.get("actual"))
    if found is not NOT_EVALUATED and found is not recorded:
        told_so = f"is recorded as {text_of(recorded)}, and is {text_of(found)}"
        refuse_decision(entry, f"rule {name}: {told_condition(item)} {told_so}")
    return recorded


def evaluate(run: Run, entry: dict[str, Any], op: str, operand: Any, there: bool, actual: Any) -> Any:
    """Return whether a condition holds: true, false, unknown, or not evaluated, which lowers the verdict."""
    position = entry["position"]
    if op == "exists" and not is_redacted(operand):
        if not isinstance(operand, bool):
            refuse_decision(entry, "exists takes true or false")
        return there is operand
    if not there:
        return UNKNOWN if op != "exists" else not_evaluated(run, position, {"hidden"})
    if op == "matches":
        return not_evaluated(run, position, {"matches"})
    reasons = set()
    for value in (actual, operand):
        if occurs(value, is_redacted):
            reasons.add("hidden")
        if entry["again"] and occurs(value, is_erased):
            reasons.add("erased")
        if occurs(value, is_unserialisable):
            reasons.add("mark")
    if reasons:
        return not_evaluated(run, position, reasons)
    if op in ("eq", "ne"):
        found = are_equal(actual, operand)
        return not_evaluated(run, position, {"cut"}) if found is None else found is (op == "eq")
    if op in ("in", "not_in"):
        if is_cut(operand):
            return not_evaluated(run, position, {"cut"})
        if not isinstance(operand, list) or len(operand) > 1000:
            return UNKNOWN
        each = [are_equal(actual, item) for item in operand]
        return not_evaluated(run, position, {"cut"}) if None in each else (True in each) is (op == "in")
    if is_cut(actual) or is_cut(operand):
        return not_evaluated(run, position, {"cut"})
    if not (is_number(actual) and is_number(operand)) and not (is_text(actual) and is_text(operand)):
        return UNKNOWN
    less, equal = bool(order(actual) < order(operand)), bool(order(actual) == order(operand))
    return {"gt": not less and not equal, "gte": not less, "lt": less, "lte": less or equal}[op]


def not_evaluated(run: Run, position: int, reasons: set[str]) -> Any:
    run.lower_all(reasons, position)
    return NOT_EVALUATED


def are_equal(one: Any, other: Any) -> bool | None:
    """Say whether two values are the same, by their digests where they were cut; None if that is unknown."""
    digests = []
    for value in (one, other):
        if is_cut(value):
            digests.append(cut_digest(value))
        else:
            digests.append(None if occurs(value, is_cut) else digest_text(value))
    return None if None in digests else digests[0] == digests[1]


def check_chosen(run: Run, entry: dict[str, Any], rules: list[Any]) -> None:
    """D8: the choice follows from the matching rules, or is the default."""
    body = entry["body"]
    matched = [rule for rule in rules if rule["matched"]]
    if body["default"] is bool(matched):
        refuse_decision(entry, "whether the default was taken is not what its rules say")
    if any("unknown" in rule for rule in rules) and "on_missing" not in body:
        refuse_decision(entry, "a rule is unknown, and nothing was said of what to do then")
    if body["mode"] == "select":
        if not isinstance(body.get("chosen"), list) and not is_cut(body.get("chosen")):
            refuse_decision(entry, "what was selected is not a list")
        taken: Any = [rule["chosen"] for rule in matched]
        labels: Any = [rule.get("label") for rule in matched]
    else:
        if len(matched) > 1 or (matched and not rules[-1]["matched"]):
            refuse_decision(entry, "rules stand after the one that matched")
        taken, labels = (matched[0]["chosen"], matched[0].get("label")) if matched else (None, None)
    if matched:
        reasons = compare(body.get("chosen"), taken, [], run.hidden(entry), entry["again"])
        if reasons is None:
            refuse_decision(entry, "what was chosen is not what its matching rules say")
        run.lower_all(reasons, entry["position"])
    elif "untried" in body or "otherwise" in body:
        refuse_decision(entry, "the default was taken, and it has rules that were not tried or another default")
    if not same(body.get("rule"), labels):
        refuse_decision(entry, "the rule it names is not the one that matched")


def conditions_of(body: Any) -> list[Any]:
    rules = body.get("rules", [])
    return [] if is_cut(rules) else [condition for rule in rules for condition in rule["conditions"]]


def check_facts(run: Run, entry: dict[str, Any]) -> None:
    """D9: conditions and facts agree, with the same origin."""
    body, hidden = entry["body"], run.hidden(entry)
    facts, origins = body.get("facts"), body.get("facts_origin")
    if is_cut(facts) or is_cut(origins) or is_cut(body.get("untried")):
        run.lower("cut", entry["position"])
    if facts is None or origins is None or is_cut(facts) or is_cut(origins):
        return
    for name in facts:
        if name not in origins:
            refuse_evidence(entry, f"the fact {name} has no origin")
    for item in conditions_of(body):
        key = item["key"]
        if ("actual" in item) is not (key in facts):
            refuse_evidence(entry, f"a condition on {key} and the facts do not agree on whether there is such a fact")
        if key in facts:
            reasons = compare(item["actual"], facts[key], [key], hidden, entry["again"])
            if reasons is None:
                refuse_evidence(entry, f"{told_condition(item)} is not the fact, which is {spell(facts[key])}")
            run.lower_all(reasons, entry["position"])
        if key in origins and not same(origins[key], item["origin"]):
            refuse_evidence(entry, f"a condition on {key} has another origin than the fact")


def refuse_evidence(entry: dict[str, Any], message: str) -> NoReturn:
    broken("evidence", entry["record"], message)


def told_condition(item: Any) -> str:
    actual = spell(item["actual"]) if "actual" in item else "nothing"
    compared = f" {item['op']} {spell(item['operand'])}" if "op" in item else ""
    return f"{item['key']} = {actual}{compared}"


MISSING = object()


class Origins:
    """D10: the values of one decision, each looked up where its origin says."""

    def __init__(self, run: Run, entry: dict[str, Any], shown: set[str]) -> None:
        self.run, self.entry, self.shown = run, entry, shown
        self.position: int = entry["position"]
        self.told: set[int] = set()

    def check(self) -> None:
        body, lines = self.entry["body"], self.run.capsule.lines
        rules = body.get("rules")
        for number, rule in enumerate([] if rules is None or is_cut(rules) else rules):
            lines.append(self.told_rule(rule, name_of(rule, number)))
            for item in rule["conditions"]:
                first, *rest = self.look_up(item["key"], item.get("actual", MISSING), item["origin"])
                outcome = {True: "holds", False: "does not hold"}.get(item.get("result"), "unknown")
                lines += [f"    {told_condition(item)}: {outcome}. {first}", *rest]
        if isinstance(rules, list) and body["default"]:
            lines.append("  No rule matched. The default was taken; it is recorded only as what was chosen.")
        facts, origins = body.get("facts"), body.get("facts_origin")
        if facts is not None and origins is not None and not is_cut(facts) and not is_cut(origins):
            looked_at = {item["key"] for item in conditions_of(body)}
            for name in facts:
                first, *rest = self.look_up(name, facts[name], origins[name])
                if name not in looked_at:
                    lines += [f"    Given as well: {name} = {spell(facts[name])}. {first}", *rest]

    def told_rule(self, rule: Any, name: str) -> str:
        word = "matched" if rule["matched"] else "is unknown and was passed over" if "unknown" in rule else ""
        if "predicate" in rule:
            code = f"is code ({rule['predicate']}), which was not evaluated"
            return f"  Rule {name} {code}; it {word or 'did not match'}."
        return f"  Rule {name} {word or 'did not match'}."

    def refuse(self, message: str) -> NoReturn:
        refuse_evidence(self.entry, message)

    def lower(self, reasons: set[str]) -> None:
        self.run.lower_all(reasons, self.position)

    def compared(self, value: Any, other: Any, keys: list[str], source: dict[str, Any], more: Any = ()) -> Any:
        hidden = self.run.hidden(self.entry, source) + list(more)
        return compare(value, other, keys, hidden, self.entry["again"] or source["again"])

    def is_before(self, source: dict[str, Any]) -> bool:
        """Say whether an entry of the run can be where a value of the decision came from."""
        if not self.run.numbered:
            return True
        loose = any(e["again"] or e["merged"] for e in (self.entry, source))
        before = loose or source["position"] < self.position
        return bool(before and source["body"]["step"] < self.entry["body"]["step"])

    def look_up(self, name: str, value: Any, origin: Any) -> list[str]:
        """Check a value, or its absence, against its origin; report the place."""
        kind = origin["kind"]
        by = " (linked by name and value)" if "by" in origin else ""
        if kind == "stated":
            return ["Stated by the agent." if value is not MISSING else "There was no such fact."]
        if kind == "decision":
            where = self.look_up_decision(name, value, origin)
        elif kind == "recall":
            self.lower({"recall"})
            where = [f"Recalled: decided as {origin['stage']} by {origin['run']}, which is not shown{by}."]
        elif kind == "input":
            self.look_up_input(name, value, origin["name"])
            where = [f"It is input {origin['name']} of the run{by}."]
        elif kind == "read":
            where = self.look_up_read(name, value, origin, by)
        else:
            where = self.look_up_call(name, value, origin, by)
        return ["There was no such fact."] if value is MISSING else where

    def look_up_decision(self, name: str, value: Any, origin: Any) -> list[str]:
        """Check a value against a decision of the run; one of another run is not shown."""
        told_so = f"what {origin['run']} decided in span {origin['span']}"
        made = [e for e in self.run.capsule.of_kind("run.decided") if e["body"]["span"] == origin["span"]]
        made = [entry for entry in made if self.is_before(entry)]
        if origin["run"] != self.run.capsule.claim["run"] or not (made or self.run.numbered):
            self.lower({"decision"})
            return [f"Stated by the agent to be {told_so}, which is not shown."]
        keys = [name, *(entry["body"]["stage"] for entry in made[-1:])]
        places = [(entry, entry["body"].get("chosen")) for entry in made]
        source = self.settle(name, value, places, keys, told_so, False)
        return [f"It is {told_so}{'' if source is None else ' (' + source['record'] + ')'}."]

    def look_up_input(self, name: str, value: Any, key: str) -> None:
        started = [entry for entry in self.run.started if self.is_before(entry)]
        given = [(entry, entry["body"]["inputs"]) for entry in started if "inputs" in entry["body"]]
        if any(is_cut(inputs) for _, inputs in given):
            self.lower({"cut"})
        places = [(entry, inputs[key]) for entry, inputs in given if not is_cut(inputs) and key in inputs]
        unsure = any(is_cut(inputs) for _, inputs in given)
        self.settle(name, value, places, [name, key], f"input {key} of the run", unsure)

    def settle(self, name: str, value: Any, places: list[Any], keys: list[str], what: str, unsure: bool) -> Any:
        """Check a value against its possible places, the last that is alike; return its entry."""
        if value is MISSING:
            if places:
                self.refuse(f"{name} is said not to be there, and {what} has it")
            return None
        for source, found in reversed(places):
            reasons = self.compared(value, found, keys, source)
            if reasons is not None:
                self.lower(reasons)
                return source
        if places:
            self.refuse(f"{name} = {spell(value)} is not what {what} says: {spell(places[-1][1])}")
        if not unsure:
            self.refuse(f"{name} is said to come from {what}, which is not here")
        return None

    def look_up_call(self, name: str, value: Any, origin: Any, by: str) -> list[str]:
        kind, path = origin["kind"], origin["path"]
        part = "result" if kind == "tool" else "response"
        calls = [e for e in self.run.capsule.of_kind(f"run.{kind}") if e["body"]["span"] == origin["span"]]
        calls = [entry for entry in calls if has_outcome(entry["body"], part) and self.is_before(entry)]
        places, reasons = [], set()
        for entry in calls:
            reason, found = pointed(entry["body"].get(part), path, entry["again"])
            if reason is not None:
                reasons.add(reason)
            elif found is not MISSING:
                places.append((entry, found))
        if not places:
            self.lower(reasons)
        if not calls and value is MISSING:
            return []
        keys = [name, path.rpartition("/")[2].replace("~1", "/").replace("~0", "~")]
        source = self.settle(name, value, places, keys, f"the {part} of {kind} call {origin['span']}", bool(reasons))
        where = ", ".join(entry["record"] for entry in calls) if source is None else source["record"]
        return [f"It is {path or 'the whole'} of the {part} of a {kind} call ({where}){by}."]

    def look_up_read(self, name: str, value: Any, origin: Any, by: str) -> list[str]:
        field = origin["field"]
        if "entity" not in origin:
            if not self.entry["again"]:
                self.refuse(f"{name} is said to be read of no entity")
            self.lower({"erased"})
            return ["What it was read of was erased."]
        reads = [read for read in self.run.reads if is_read_of(read, origin) and self.is_before(read)]
        if not reads:
            self.lower({"read"})
            return self.look_up_outside(name, value, origin, by)
        whole = [read for read in reads if not is_cut(read["body"].get("fields"))]
        if len(whole) < len(reads):
            self.lower({"cut"})
        having = [read for read in whole if field in fields_read(read)]
        what = f"{origin['entity']}#{field}"
        if value is MISSING:
            if having:
                self.refuse(f"{name} is said not to be there, and a read of {what} has it")
            return []
        for read in reversed(having):
            reasons = self.answers(name, value, origin, read)
            if reasons is not None:
                self.lower(reasons)
                where = f"{what} at position {spell(origin.get('position'))} ({read['record']})"
                return [f"It was read of {where}{by}.", *self.behind(read, field)]
        if having or len(whole) == len(reads):
            self.refuse(f"{name} = {spell(value)} is not what a read of {what} says")
        return [f"It was read of {what}."]

    def answers(self, name: str, value: Any, origin: Any, read: dict[str, Any]) -> set[str] | None:
        """Return the reasons with which a read answers a value; None if it does not."""
        field = origin["field"]
        item = fields_read(read)[field]
        if "value" not in item:
            return None
        keys = [name, field]
        schema = self.schema_of(read)
        more = [field] if is_redacted_field(schema, field) else []
        found: set[str] | None = self.compared(value, item["value"], keys, read, more)
        if found is None:
            return None
        ids = item.get("observations", [item["observation"]] if "observation" in item else None)
        again = self.entry["again"] or read["again"]
        asked = not again and ids is not None and "observations" in origin
        if asked and origin["observations"][:OBSERVATIONS_MAX] != ids:
            return None
        entry = self.run.capsule.by_id.get(item.get("observation", ""))
        if "position" in read["body"] and entry is not None and policy_of(schema, field) in RANKED:
            stated = entry["body"].get("fields", {})
            if field not in stated:
                return found | {"erased"} if read["again"] and entry["again"] else None
            hidden = self.run.hidden(self.entry, read) + more
            reasons = compare(value, stated[field], keys, hidden, again or entry["again"])
            return None if reasons is None else found | reasons
        return found

    def schema_of(self, read: dict[str, Any]) -> dict[str, Any] | None:
        return read_schema(self.run, read) if "position" in read["body"] else None

    def behind(self, read: dict[str, Any], field: str) -> list[str]:
        """Tell the observations that a read names."""
        item, lines = fields_read(read)[field], []
        for id in item.get("observations", [item.get("observation", "")]):
            entry = self.run.capsule.by_id.get(id)
            if entry is not None and entry["position"] not in self.told:
                self.told.add(entry["position"])
                self.shown.add(entry["name"])
                lines.append(f"      {entry['record']}: {summary(entry)}")
                lines += [f"      {line}" for line in lineage(self.run.capsule, entry)]
        return lines

    def look_up_outside(self, name: str, value: Any, origin: Any, by: str) -> list[str]:
        """Check a value that was read outside of the run against the observations its origin names."""
        entity, field, capsule = origin["entity"], origin["field"], self.run.capsule
        lines = [f"It was read of {entity}#{field} outside of the run{by}."]
        if value is MISSING or "position" not in origin or "observations" not in origin:
            return lines
        through = origin["position"]
        members, found = capsule.group(entity, through), []
        for id in origin["observations"]:
            entry = capsule.by_id.get(id)
            if entry is None:
                if not self.entry["again"]:
                    self.refuse(f"{name} rests on {id}, which is not here")
                self.lower({"erased"})
                continue
            said = entry["body"]
            if entry["position"] > through and not entry["again"]:
                self.refuse(f"{name} rests on {id} at position {through}, before the log had it")
            states = field in said.get("fields", {}) or field in said.get("remove", {})
            if ref_of(said) in members and not states and self.entry["again"] and entry["again"]:
                self.lower({"erased"})
                continue
            if ref_of(said) not in members or not states:
                self.refuse(f"{name} rests on {id}, which says nothing of {entity}#{field}")
            self.shown.add(entry["name"])
            lines.append(f"      {entry['record']}: {summary(entry)}")
            found.append(entry)
        schema = capsule.schema_in_force(type_of(entity), through)
        if policy_of(schema, field) in RANKED and len(found) == len(origin["observations"]):
            if len(found) != 1 or field not in found[0]["body"].get("fields", {}):
                self.refuse(f"{name} has one winner, and rests on {len(found)} observations")
            more = [field] if is_redacted_field(schema, field) else []
            reasons = self.compared(value, found[0]["body"]["fields"][field], [name, field], found[0], more)
            if reasons is None:
                self.refuse(f"{name} = {spell(value)} is not what {origin['observations'][0]} says")
            self.lower(reasons)
        return lines


def has_outcome(body: Any, part: str) -> bool:
    """Say whether a call has a result or a response; one that ended well without stating any had null."""
    return part in body or not (body.get("begun") is True or body.get("errored") is True)


def pointed(value: Any, path: str, again: bool) -> tuple[str | None, Any]:
    """Return the target of a JSON Pointer, or why it has none."""
    if path and (not path.startswith("/") or re.search("~(?![01])", path)):
        return None, MISSING
    for part in path.split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if is_cut(value):
            return "cut", MISSING
        if is_redacted(value):
            return "hidden", MISSING
        if again and is_erased(value):
            return "erased", MISSING
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and re.fullmatch("0|[1-9][0-9]{0,8}", part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return ("erased" if again else None), MISSING
    return None, value


# --------------------------------------------------------------------------------------------------------- command line


_UNPRINTED = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def clean(line: str) -> str:
    """Return a line that is safe for a terminal: recorded text may contain anything, line ends too."""
    return _UNPRINTED.sub(lambda match: "\\u%04x" % ord(match[0]), line)


def outcome(data: bytes, key: str, against: str | None = None) -> dict[str, Any]:
    """Return the verdict on a file as plain JSON, the same from both verifiers."""
    try:
        report = verify(data, key, against)
    except Broken as problem:
        return refused(problem.code, clean(problem.record), clean(problem.message))
    except (TypeError, ValueError, KeyError, AttributeError, IndexError, RecursionError):
        return refused("shape", "file", "a part of it has another shape than its format")
    parts, says = sorted(report.parts), [clean(line) for line in report.lines]
    verdict = "consistent" if parts else "proven"
    return {"verdict": verdict, "code": verdict, "record": None, "parts": parts, "says": says}


def refused(code: str, record: str, message: str) -> dict[str, Any]:
    return {"verdict": "refused", "code": code, "record": record, "parts": [], "says": [message]}


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
    parser.add_argument("--strict", action="store_true", help="exit with 1 unless everything is proven")
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
    elif found["verdict"] == "refused":
        text = f"REFUSED {found['record']}: {found['says'][0]} ({found['code']}). Nothing of this file is proven."
    else:
        text = found["verdict"].upper() + "\n" + "\n".join(found["says"])
    try:
        sys.stdout.buffer.write(text.encode() + b"\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader has gone
    return 0 if found["verdict"] in (("proven",) if given.strict else ("proven", "consistent")) else 1


if __name__ == "__main__":
    sys.exit(main())
