"""Digests and base32: one name for one pair of kind and body."""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form, ids
from woodrat.canon.digest import FORMAT, base32, digest, unbase32

ROOT = Path(__file__).resolve().parents[2]
GOLDEN: list[dict[str, Any]] = json.loads((ROOT / "tests/golden/canon.json").read_text("utf-8"))
PAGE = (ROOT / "docs/formats/ids.md").read_text("utf-8")


def blocks(page: str, word: str) -> list[list[str]]:
    """Return the lines of every fenced block of a page that is marked with `word`."""
    parts = page.split(f"```{word}\n")[1:]
    assert parts, f"the page has no block {word}"
    return [part.split("\n```", 1)[0].split("\n") for part in parts]


@pytest.mark.parametrize("row", GOLDEN, ids=lambda row: str(row["note"]))
def test_golden_digests_stay(row: dict[str, Any]) -> None:
    """Canonical bytes, digest, name and id of each recorded input are what they were."""
    body = form.encode(form.parse(row["input"]))
    assert body == row["canonical"].encode("utf-8")
    assert body.hex() == row["body_hex"]
    assert digest(row["kind"], body).hex() == row["digest_hex"]
    assert ids.name(row["kind"], digest(row["kind"], body)) == row["name"]
    assert ids.id_of(row["kind"], digest(row["kind"], body)) == row["id"]


@pytest.mark.parametrize("lines", blocks(PAGE, "digest"), ids=lambda lines: str(lines[0]))
def test_the_page_s_digests_are_right(lines: list[str]) -> None:
    """Each worked example on the page on ids gives the digest, name and id it shows."""
    shown = dict(line.split(maxsplit=1) for line in lines)
    kind, body = shown["kind"], shown["canonical"].encode("utf-8")
    whole = bytes.fromhex(shown["input"])
    assert whole == f"woodrat/{kind}/{FORMAT}\n".encode() + body
    assert hashlib.sha256(whole).hexdigest() == shown["digest"]
    assert digest(kind, body).hex() == shown["digest"]
    assert ids.name(kind, digest(kind, body)) == shown["name"]
    assert ids.id_of(kind, digest(kind, body)) == shown["id"]


def test_kinds_part_equal_bodies() -> None:
    """The same body has another digest under another kind."""
    assert digest("source", b"{}") != digest("schema", b"{}")


@pytest.mark.parametrize("line", blocks(PAGE, "base32")[0])
def test_base32_spells_the_vectors_of_rfc_4648(line: str) -> None:
    """The vectors of RFC 4648 section 10, lower-case and without padding, hold in both directions."""
    left, right = (part.replace("(none)", "") for part in line.split("  ->  "))
    assert base32(bytes.fromhex(left)) == right
    assert unbase32(right) == bytes.fromhex(left)


@given(st.binary(max_size=64))
def test_base32_can_be_read_back(data: bytes) -> None:
    """Every run of bytes is read back from its base32, which is that of the standard library."""
    assert base32(data) == base64.b32encode(data).decode().rstrip("=").lower()
    assert unbase32(base32(data)) == data


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz234567", max_size=56))
def test_base32_has_one_text_per_bytes(text: str) -> None:
    """Text of the alphabet is either exactly what base32 writes or nothing."""
    data = unbase32(text)
    assert data is None or base32(data) == text


@pytest.mark.parametrize(
    "text",
    ["a", "aaa", "aaaaaa", "mz", "mzxr", "MY", "my======", "m1", "m8", "my\n", "my ", "mý", "m_", "+y", "m-", "a" * 51],
)
def test_base32_refuses_other_spellings(text: str) -> None:
    """Bits left over, impossible lengths, upper case, padding and foreign characters spell nothing."""
    assert unbase32(text) is None
