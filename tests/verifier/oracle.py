"""A third verifier of capsules, written from docs/formats/capsule.md alone and from neither of the other two.

Plain rather than fast. Every item of the page is a method of its name, so that a test can take one away and see that
the others do not stand in for it. `verdict` is the front door.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.verifier import oracle_shapes as shapes
from tests.verifier.oracle_fold import (
    Fold,
    Said,
    ends,
    fits,
    group,
    is_own,
    is_policy,
    policy_of,
    removal_fits,
    said,
    takes,
)
from tests.verifier.oracle_run import RunItems
from tests.verifier.oracle_values import (
    LARGEST,
    canonical,
    digest,
    is_hex,
    is_text,
    is_whole,
    name,
    parse,
    same,
    unbase64,
)

KINDS = [
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
]
DOCUMENTS = {
    "proof": {"checkpoint", "entry", "format", "proof", "woodrat"},
    "consistency": {"format", "from", "proof", "to", "woodrat"},
    "capsule": {"checkpoint", "claim", "entries", "format", "woodrat"},
}
CLAIMS = {
    "observation": {"kind", "positions", "observation"},
    "field": {"kind", "positions", "entity", "field", "value", "misfits"},
    "run": {"kind", "positions", "run"},
    "decision": {"kind", "positions", "run", "stage"},
}
WHITE = set("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(code) for code in range(0x2000, 0x200B)}
SMALL_ORDER = {
    (key + sign * 2**255).to_bytes(32, "little")
    for key in (
        0,
        1,
        2**255 - 20,
        int.from_bytes(bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"),
        int.from_bytes(bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"),
    )
    for sign in (0, 1)
}


class Refused(Exception):
    """A check failed."""

    def __init__(self, code: str, record: str):
        super().__init__(code, record)
        self.code = code
        self.record = record


class Checkpoint(NamedTuple):
    """What a signed note says of a log."""

    origin: str
    size: int
    root: bytes


def verdict(data: bytes, key: str, against: str | None = None, by: type[Oracle] | None = None) -> dict[str, Any]:
    """Return verdict, code, record and parts of a file."""
    asked = (by or Oracle)(data, key, against)
    try:
        asked.verify()
    except Refused as refusal:
        return {"verdict": "refused", "code": refusal.code, "record": refusal.record, "parts": []}
    word = "consistent" if asked.parts else "proven"
    return {"verdict": word, "code": word, "record": None, "parts": sorted(asked.parts)}


class Oracle(RunItems):
    """One file that is being verified."""

    def __init__(self, data: bytes, key: str, against: str | None):
        self.data = data
        self.key = key
        self.against = against
        self.parts: set[str] = set()
        self.entries: list[dict[str, Any]] = []
        self.placed: set[int] = set()
        self.document: dict[str, Any] = {}
        self.signer = ("", b"", b"")

    def refuse(self, code: str, record: str) -> None:
        raise Refused(code, record)

    def check(self, holds: Any, code: str, record: str) -> None:
        if not holds:
            self.refuse(code, record)

    def lowers(self, part: str, *positions: int) -> None:
        self.parts |= {f"{part} {position}" for position in positions} or {part}

    def verify(self) -> None:
        """Make all checks in the order of the page."""
        self.G1()
        kind = "note"
        if self.data.startswith(b"{"):
            self.G2()
            self.G3()
            kind = self.document["woodrat"]
        self.ends: list[tuple[str, Checkpoint]] = []
        for record in ("from", "to") if kind == "consistency" else ("checkpoint",):
            note = self.data if kind == "note" else self.document[record]
            self.ends.append((record, self.G4(note, record)))
        if kind == "consistency":
            self.G5()
        if self.against is not None:
            self.G6()
        if kind == "proof":
            entry = self.document["entry"]
            place = entry.get("position") if isinstance(entry, dict) else None
            self.check(isinstance(entry, dict) and is_whole(place), "shape", "entry")
            self.check("proof" not in entry, "shape", f"entry {place}")
            whole = {**entry, "proof": self.document["proof"]}
            self.G8(whole)
            self.G9(whole)
            self.G10(whole)
            if whole["nonce"] is None:
                self.lowers("content", entry["position"])
        if kind == "capsule":
            self.G7()
            self.entries = self.document["entries"]
            for entry in self.entries:
                self.G8(entry)
                self.G9(entry)
                self.G10(entry)
            self.G11()
            self.capsule()

    def capsule(self) -> None:
        """Check what the entries of a capsule say."""
        self.B1()
        self.arrange()
        self.B2()
        self.B3()
        self.B4()
        claim = self.claim["kind"]
        if claim == "observation":
            self.O1()
        elif claim == "field":
            self.F1()
            self.F2()
            self.F3()
            self.F4()
            self.F5()
            self.F6()
        else:
            self.verify_run()
        self.B5()

    # All files (G)

    def G1(self) -> None:
        """The trusted key is a verifier key of Ed25519."""
        parts = self.key.strip(" \t\r\n").split("+", 2)
        self.check(len(parts) == 3, "key", "key")
        signer, hashed, encoded = parts
        self.check(signer and not WHITE & set(signer), "key", "key")
        public = unbase64(encoded)
        self.check(public is not None and len(public) == 33 and public[0] == 1, "key", "key")
        assert public is not None
        self.check(hashlib.sha256(signer.encode() + b"\n" + public).digest()[:4].hex() == hashed, "key", "key")
        canonically = int.from_bytes(public[1:], "little") % 2**255 < 2**255 - 19
        self.check(canonically and public[1:] not in SMALL_ORDER, "key", "key")
        self.signer = (signer, bytes.fromhex(hashed), public[1:])

    def G2(self) -> None:
        """A file that begins with `{` is canonical JSON and one line feed, no value inside more than 100 others."""
        try:
            self.check(self.data.endswith(b"\n"), "form", "file")
            self.document = parse(self.data[:-1], 100)
        except (ValueError, RecursionError):
            self.refuse("form", "file")

    def G3(self) -> None:
        """`format` is 0, `woodrat` one of the three words, and the members are those of its document."""
        word = self.document.get("woodrat")
        self.check(is_text(word) and word in DOCUMENTS, "shape", "file")
        self.check(set(self.document) == DOCUMENTS[str(word)], "shape", "file")
        self.check(same(self.document["format"], 0), "shape", "file")

    def G4(self, note: Any, record: str) -> Checkpoint:
        """A note is a signed note, signed by the key, and holds a checkpoint."""
        try:
            whole = note.decode() if isinstance(note, bytes) else note
            self.check(is_text(whole) and len(whole.encode()) <= 1_000_000, "note", record)
        except UnicodeError:
            self.refuse("note", record)
        self.check(not any(ord(letter) < 0x20 and letter != "\n" for letter in whole), "note", record)
        divided = whole.rfind("\n\n")
        self.check(divided >= 0 and whole.endswith("\n"), "note", record)
        text, lines = whole[: divided + 1], whole[divided + 2 :].split("\n")[:-1]
        self.check(1 <= len(lines) <= 100, "note", record)
        signer, hashed, public = self.signer
        signatures = []
        for line in lines:
            found = re.fullmatch("— ([^ ]+) ([^ ]+)", line)
            data = unbase64(found[2]) if found else None
            self.check(found and data is not None and len(data) > 4, "note", record)
            assert found is not None
            assert data is not None
            self.check("+" not in found[1] and not WHITE & set(found[1]), "note", record)
            if found[1] == signer and data[:4] == hashed:
                signatures.append(data[4:])
        self.check(signatures, "signer", record)
        for signature in signatures:
            try:
                Ed25519PublicKey.from_public_bytes(public).verify(signature, text.encode())
            except InvalidSignature:
                self.refuse("signature", record)
        said = text[:-1].split("\n")
        root = unbase64(said[2]) if len(said) >= 3 else None
        self.check(
            root is not None
            and len(root) == 32
            and said[0]
            and re.fullmatch("0|[1-9][0-9]{0,15}", said[1])
            and int(said[1]) <= LARGEST
            and all(said[3:]),
            "checkpoint",
            record,
        )
        assert root is not None
        return Checkpoint(said[0], int(said[1]), root)

    def G5(self) -> None:
        """Both notes have one origin, and the proof leads from the older tree to the newer one."""
        (_, old), (_, new) = self.ends
        self.check(old.origin == new.origin, "origin", "to")
        self.check(is_proof(self.document["proof"]), "shape", "proof")
        hashes = [bytes.fromhex(each) for each in self.document["proof"]]
        self.check(grows(old, new, hashes), "consistency", "proof")

    def G6(self) -> None:
        """The file is compared with the checkpoint the reader holds."""
        held = self.G4(self.against, "other checkpoint")
        for record, end in self.ends:
            self.check(end.origin == held.origin, "origin", record)
            self.check(end.size != held.size or end.root == held.root, "forked", record)
        record, newest = self.ends[-1]
        self.check(held.size <= newest.size, "truncated", record)
        if all(held.size != end.size for _, end in self.ends):
            self.lowers("held")

    def G7(self) -> None:
        """The claim and the list of entries have their shapes, and name the same positions."""
        claim = self.claim = self.document["claim"]
        self.check(isinstance(claim, dict) and is_text(claim.get("kind")), "shape", "claim")
        self.check(claim["kind"] in CLAIMS, "shape", "claim")
        optional = {"observation": set(), "field": {"schema"}}.get(claim["kind"], {"left_out"})
        self.check(set(claim) - optional == CLAIMS[claim["kind"]], "shape", "claim")
        for member, given in claim.items():
            if member in ("positions", "misfits", "left_out"):
                good = isinstance(given, list) and all(map(is_whole, given)) and given == sorted(set(given))
            elif member == "schema":
                good = is_whole(given)
            else:
                good = member == "value" or is_text(given)
            self.check(good, "shape", "claim")
        entries = self.document["entries"]
        self.check(isinstance(entries, list) and 1 <= len(entries) <= 10_000, "shape", "entries")
        self.check(all(isinstance(e, dict) and is_whole(e.get("position")) for e in entries), "shape", "entries")
        positions = [entry["position"] for entry in entries]
        self.check(positions == sorted(set(positions)), "order", "entries")
        lone = set(positions) ^ set(claim["positions"])
        self.check(not lone, "entries", f"entry {min(lone, default=0)}")

    def G8(self, entry: dict[str, Any]) -> None:
        """An entry has its members, each of its shape."""
        record = f"entry {entry['position']}"
        members = {
            "format",
            "log",
            "position",
            "recorded_at",
            "kind",
            "envelope",
            "commitment",
            "nonce",
            "body",
            "proof",
        }
        self.check(set(entry) == members, "shape", record)
        self.check(same(entry["format"], 0), "shape", record)
        self.check(is_text(entry["log"]) and entry["log"], "shape", record)
        self.check(shapes.is_moment(entry["recorded_at"]), "shape", record)
        self.check(is_text(entry["kind"]) and entry["kind"] in KINDS, "shape", record)
        self.check(is_hex(entry["commitment"], 64), "shape", record)
        self.check(entry["nonce"] is None or is_hex(entry["nonce"], 32), "shape", record)
        self.check(is_proof(entry["proof"]), "shape", record)
        body = entry["body"]
        self.check((body is None) == (entry["nonce"] is None), "shape", record)
        self.check(body is None or isinstance(body, dict), "shape", record)
        if entry["kind"] == "source" and body is not None:
            self.check(set(body) == {"base64"} and unbase64(body["base64"]) is not None, "shape", record)
        envelope = entry["envelope"]
        self.check(isinstance(envelope, dict), "shape", record)
        self.check(is_whole(envelope.get("write")) and envelope["write"] <= entry["position"], "shape", record)
        wanted = {"write"}
        if envelope["write"] == entry["position"]:
            wanted |= {"length", "request"}
            self.check(is_whole(envelope.get("length")) and envelope["length"] >= 1, "shape", record)
            self.check(is_hex(envelope.get("request"), 64), "shape", record)
        if "origin" in envelope:
            origin = envelope["origin"]
            self.check(isinstance(origin, dict) and set(origin) == {"log", "position"}, "shape", record)
            self.check(is_text(origin["log"]) and is_whole(origin["position"]), "shape", record)
        self.check(set(envelope) - {"origin"} == wanted, "shape", record)

    def G9(self, entry: dict[str, Any]) -> None:
        """SHA-256(nonce and body) is the commitment."""
        if entry["nonce"] is not None:
            data = bytes.fromhex(entry["nonce"]) + body_bytes(entry)
            self.check(hashlib.sha256(data).hexdigest() == entry["commitment"], "body", f"entry {entry['position']}")

    def G10(self, entry: dict[str, Any]) -> None:
        """The leaf of the header leads to the signed root at this position."""
        header = {key: entry[key] for key in entry if key not in ("nonce", "body", "proof")}
        leaf = hashlib.sha256(b"\0" + canonical(header)).digest()
        hashes = [bytes.fromhex(each) for each in entry["proof"]]
        end = self.ends[0][1]
        self.check(
            leads(leaf, entry["position"], end.size, hashes) == end.root, "inclusion", f"entry {entry['position']}"
        )

    def G11(self) -> None:
        """Writes are whole and one after the other, and so are their times."""
        for at, entry in enumerate(self.entries):
            record, write = f"entry {entry['position']}", entry["envelope"]["write"]
            before = self.entries[:at]
            for other in before[-1:]:
                if other["envelope"]["write"] == write:
                    together = entry["log"] == other["log"] and entry["recorded_at"] == other["recorded_at"]
                    self.check(together, "order", record)
                else:
                    self.check(write > other["position"], "order", record)
            for first in [e for e in before if "length" in e["envelope"]]:
                end = first["position"] + first["envelope"]["length"]
                inside = write == first["position"]
                self.check(entry["position"] < end if inside else write >= end, "order", record)
            for other in before[-1:]:
                later = entry["recorded_at"] > other["recorded_at"]
                self.check(later or other["envelope"]["write"] == write, "order", record)
            length = entry["envelope"].get("length", 0)
            self.check(entry["position"] + length <= self.ends[0][1].size, "order", record)

    # All capsules (B)

    def B1(self) -> None:
        """Every body that is there has the shape of its kind."""
        for entry in self.shown():
            self.check(shapes.is_shaped(entry["kind"], entry["body"]), "shape", f"entry {entry['position']}")
        bodies: set[bytes] = set()
        for entry in self.shown("observation"):
            self.check(canonical(entry["body"]) not in bodies, "surplus", f"entry {entry['position']}")
            bodies.add(canonical(entry["body"]))

    def shown(self, *kinds: str) -> list[dict[str, Any]]:
        """Return the entries with a body, of these kinds or of all."""
        return [e for e in self.entries if e["body"] is not None and (not kinds or e["kind"] in kinds)]

    def arrange(self) -> None:
        """Put by what the words of section 3 stand for."""
        erasures = [entry for entry in self.entries if entry["kind"] == "erasure"]
        self.again = {
            entry["position"]
            for entry in self.entries
            if entry["kind"] != "erasure"
            for erasure in erasures
            if erasure["envelope"]["write"] == entry["envelope"]["write"] and erasure["position"] < entry["position"]
        }
        self.merged_in = {entry["position"] for entry in self.entries if "origin" in entry["envelope"]}
        self.blank = {entry["position"] for entry in self.entries if entry["nonce"] is None}
        self.own_names = {self.ends[0][1].origin} | {entry["log"] for entry in self.entries}
        self.observations: list[Said] = [said(e["position"], e["body"]) for e in self.shown("observation")]

    def names_blank(self, erasure: dict[str, Any], entry: dict[str, Any]) -> bool:
        """Whether an erasure names a blank entry."""
        position = entry["position"]
        if not any(first <= position <= last for first, last in erasure["body"]["positions"]):
            return False
        log = erasure["body"]["log"]
        if log == erasure["log"]:
            return bool(erasure["position"] > position)
        return bool(log == entry["log"])

    def B2(self) -> None:
        """Every blank entry is named by an erasure shown."""
        for entry in self.entries:
            if entry["nonce"] is None:
                named = any(self.names_blank(erasure, entry) for erasure in self.shown("erasure"))
                self.check(named, "erased", f"entry {entry['position']}")
                self.lowers("erased", entry["position"])

    def B3(self) -> None:
        """Every entry said again lowers."""
        if self.again:
            self.lowers("again", *self.again)

    def B4(self) -> None:
        """Every source and every reading that an observation names is shown, or lowers."""
        sources = {name("source", body_bytes(entry)) for entry in self.shown("source")}
        readings = {entry["body"]["interpretation"] for entry in self.shown("interpretation.started")}
        ids = self.named_ids() if "run" in self.claim else set()
        for one in self.observations:
            if "run" in self.claim and one.id not in ids and one.body.get("run") != self.claim["run"]:
                continue
            if "source" in one.body and one.body["source"] not in sources:
                self.lowers("source", one.position)
            if "interpretation" in one.body and one.body["interpretation"] not in readings:
                self.lowers("interpretation", one.position)

    def B5(self) -> None:
        """Every entry has a place in the capsule."""
        sources = {one.body.get("source") for one in self.observations} - {None}
        readings = {one.body.get("interpretation") for one in self.observations} - {None}
        for entry in self.entries:
            kind, body = entry["kind"], entry["body"]
            if body is None:
                placed = True
            elif kind == "erasure":
                placed = any(e["nonce"] is None and self.names_blank(entry, e) for e in self.entries) or any(
                    e["position"] in self.again
                    and e["envelope"]["write"] == entry["envelope"]["write"]
                    and e["position"] > entry["position"]
                    for e in self.entries
                )
            elif kind == "source":
                placed = name("source", body_bytes(entry)) in sources
            elif kind == "received":
                placed = body["source"] in sources
            elif kind.startswith("interpretation."):
                placed = body["interpretation"] in readings
            else:
                placed = entry["position"] in self.placed
            self.check(placed, "surplus", f"entry {entry['position']}")

    # An observation (O) and a field (F)

    def O1(self) -> None:
        """An observation of the claim's name is shown."""
        named = [one.position for one in self.observations if one.name == self.claim["observation"]]
        self.check(named, "claim", "claim")
        self.placed |= set(named)

    def schemas_of(self, kind: str) -> list[tuple[tuple[int, bytes], dict[str, Any]]]:
        """Return (rank, entry) of the schemas of a type that are shown."""
        return [
            ((e["body"]["schema"]["x-woodrat-version"], digest("schema", canonical(e["body"]))), e)
            for e in self.shown("schema")
            if e["body"]["type"] == kind
        ]

    def F1(self) -> None:
        """The schema of the claim is the highest shown."""
        found = self.schemas_of(self.claim["entity"].split("/")[0])
        self.schema: dict[str, Any] | None = None
        if "schema" in self.claim:
            at = [(order, entry) for order, entry in found if entry["position"] == self.claim["schema"]]
            self.check(at and at[0][0] == max(order for order, _ in found), "schema", "claim")
            self.schema = at[0][1]["body"]["schema"]
        else:
            self.check(not found, "schema", "claim")
            self.lowers("schema")
        self.placed |= {entry["position"] for _, entry in found}

    def F2(self) -> None:
        """The field has a policy."""
        self.check(is_policy(policy_of(self.schema, self.claim["field"])), "schema", "claim")

    def F3(self) -> None:
        """The group is found, and what is of it has a place."""
        self.members = group(self.claim["entity"], self.observations)
        for one in self.observations:
            if one.entity in self.members or self.members & set(ends(one.body["entity"]) or ()):
                self.placed.add(one.position)

    def F4(self) -> None:
        """What observations of the group replace is shown, or lowers."""
        known = {one.name for one in self.observations}
        for one in self.observations:
            if one.entity in self.members and not set(one.replaces) <= known:
                self.lowers("named", one.position)

    def F5(self) -> None:
        """The misfits are claims on the field that do not fit, all of them and no others."""
        field, policy = self.claim["field"], policy_of(self.schema, self.claim["field"])
        must: set[int] = set()
        may: set[int] = set()
        for one in self.observations:
            if one.entity not in self.members or not one.states(field):
                continue
            fit = fits(self.schema, field, one.fields[field]) if field in one.fields else removal_fits(self.schema)
            if fit is None:
                self.lowers("subschema")
                may.add(one.position)
            if fit is False or not takes(policy, one, field):
                must.add(one.position)
        misfits = set(self.claim["misfits"])
        self.check(must <= misfits <= must | may, "claim", "claim")

    def F6(self) -> None:
        """The fold of the field is the claim's value."""
        misfits, policy = self.claim["misfits"], policy_of(self.schema, self.claim["field"])
        fold = Fold(self.members, self.observations, self.claim["field"], lambda one: one.position not in misfits)
        if is_own(policy):
            if fold.standing(fold.corrections):
                self.check_values(fold.value("latest"))
            else:
                self.check(fold.assertions(), "claim", "claim")
            self.lowers("policy")
        elif is_policy(policy):
            self.check_values(fold.value(policy))

    def check_values(self, found: list[Any]) -> None:
        """The fold has a value, and it is the claim's."""
        self.check(found and same(found[0], self.claim["value"]), "claim", "claim")


def body_bytes(entry: dict[str, Any]) -> bytes:
    """Return the bytes of a body that is there."""
    if entry["kind"] == "source":
        return unbase64(entry["body"]["base64"]) or b""
    return canonical(entry["body"])


def is_proof(value: Any) -> bool:
    """Whether it is a list of hashes."""
    return isinstance(value, list) and all(is_hex(each, 64) for each in value)


# Trees (tree.md)


def node(left: bytes, right: bytes) -> bytes:
    """Join two hashes."""
    return hashlib.sha256(b"\1" + left + right).digest()


def sides(index: int, size: int) -> list[str]:
    """Return on which side the neighbour stands at each branching, from the leaf up."""
    found = []
    while size > 1:
        left = 1 << ((size - 1).bit_length() - 1)
        if index < left:
            found.append("right")
            size = left
        else:
            found.append("left")
            index, size = index - left, size - left
    return found[::-1]


def leads(leaf: bytes, index: int, size: int, proof: Iterable[bytes]) -> bytes | None:
    """Return the root an inclusion proof leads to; None where it cannot be one."""
    hashes = list(proof)
    if index >= size or len(hashes) != len(sides(index, size)):
        return None
    for side, other in zip(sides(index, size), hashes, strict=True):
        leaf = node(other, leaf) if side == "left" else node(leaf, other)
    return leaf


def grows(old: Checkpoint, new: Checkpoint, proof: list[bytes]) -> bool:
    """Whether a proof shows that the old tree is the beginning of the new one."""
    if old.size > new.size:
        return False
    if old.size == 0:
        return not proof and old.root == hashlib.sha256(b"").digest()
    if old.size == new.size:
        return not proof and old.root == new.root
    start = old.size & (old.size - 1)
    low, high, path = 0, new.size, []
    while (low, high) != (start, old.size):
        middle = low + (1 << ((high - low - 1).bit_length() - 1))
        if old.size <= middle:
            path.append("right")
            high = middle
        else:
            path.append("left")
            low = middle
    hashes = list(proof)
    if len(hashes) != len(path) + (start > 0):
        return False
    first = hashes.pop(0) if start else old.root
    second = first
    for side, other in zip(path[::-1], hashes, strict=True):
        if side == "left":
            first, second = node(other, first), node(other, second)
        else:
            second = node(second, other)
    return first == old.root and second == new.root
