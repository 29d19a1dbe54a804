"""Signed notes and checkpoints: published ones verify, and nothing that is not exactly one is read."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.verifier.both import Case, verdicts

from woodrat.errors import Refused
from woodrat.log import ed25519
from woodrat.log.checkpoint import Checkpoint, Signature, SignedNote, SignerKey, VerifierKey, opened
from woodrat.log.tree import SIZE_MAX

GOLDEN = json.loads((Path(__file__).parents[1] / "golden" / "checkpoints.json").read_text("utf-8"))
SUMDB = GOLDEN["vkey"]
"""The verifier key of Go's checksum database, as its toolchain has it."""
PUBLISHED = [(item["size"], item["root"], item["signature"]) for item in GOLDEN["checkpoints"]]
"""Tree heads that the database signed: size, root, signature."""

COSIGNED = (
    "go.sum database tree\n15067302\ngJyioq6dwR9n+NjEWORfYmH+ubeYm3kH42BBQ0bTpYI=\n\n"
    "— sum.golang.org Az3grp1rvWOs5NKlr/xR4GLN/CDyzzakmt1o61uSxYKpK1SerqOP2ClbX/peKUZjYnyomH5Xz7GZG3TpB7OeKn4E2ww=\n"
    "— test.example.com qTGhC/xIPQ0AXKHK6Y+9ypRfuvMZWPjRXM8NiOg5M1WREn07VQXyuIXM3NRNav3ieVFLUqDRK77PWDmL6w8w84UqeAw=\n"
)
"""One with the signature of a witness beside it, whose key is not known here."""

PETER = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
PETER_SECRET = "PRIVATE+KEY+PeterNeumann+c74f20a3+AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz"
PETER_TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n"
PETER_NOTE = (
    PETER_TEXT
    + "\n— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n"
)
"""The note of the reference implementation's own tests."""

C2SP_NOTE = (
    "Ognuno sta solo sul cuor della terra\ntrafitto da un raggio di sole:\n\ned è subito sera.\n\n"
    "— quasimodo.example/salvatore "
    "NnugSzTjtVAewIS+Z/iJhUPeFDkO/5QQ2i5ddnGITLlC+EhfLW9oJKONrMouFSQU0xMcXxj99ihAQwaqP3ZekRwNtIc=\n"
)
"""The example of C2SP's signed-note; its key is not published."""

SOFA = "example.com/behind-the-sofa"


def note_of(size: int, root: str, signature: str, origin: str = "go.sum database tree") -> str:
    """Return a tree head of the checksum database as it was published."""
    return f"{origin}\n{size}\n{root}\n\n— sum.golang.org {signature}\n"


@pytest.mark.parametrize(("size", "root", "signature"), PUBLISHED)
def test_published_checkpoints_verify(size: int, root: str, signature: str) -> None:
    """Checkpoints that Go's checksum database signed are read, by us and by both stand-alone verifiers."""
    note = note_of(size, root, signature)
    found = opened(note, [VerifierKey.parse(SUMDB)])
    assert found == Checkpoint("go.sum database tree", size, base64.b64decode(root))
    assert str(SignedNote.parse(note)) == note
    (verdict,) = verdicts([Case("published", note.encode(), SUMDB)])
    assert verdict["verdict"] == "proven"
    assert f"had {size} entries, root {found.root.hex()}" in verdict["says"][0]


def test_the_examples_of_c2sp() -> None:
    """C2SP's two examples are read as notes; its checkpoint verifies as what Go's database signed."""
    note = SignedNote.parse(C2SP_NOTE)
    assert note.text == C2SP_NOTE[: C2SP_NOTE.rindex("\n\n") + 1]
    assert [signature.name for signature in note.signatures] == ["quasimodo.example/salvatore"]
    assert str(note) == C2SP_NOTE
    size, root, signature = PUBLISHED[2]
    shown = note_of(size, root, signature, SOFA).replace("— sum.golang.org", f"— {SOFA}")
    assert Checkpoint.parse(SignedNote.parse(shown).text) == Checkpoint(SOFA, size, base64.b64decode(root))
    key = VerifierKey.parse(SUMDB)
    assert opened(note_of(size, root, signature), [key]).size == size
    with pytest.raises(Refused, match="is not one of this text"):
        opened(note_of(size, root, signature, SOFA), [key])


def test_signatures_of_unknown_keys_are_passed_over() -> None:
    """A witness whose key is not known does not matter; a note that only strangers signed is refused."""
    assert opened(COSIGNED, [VerifierKey.parse(SUMDB)]).size == 15067302
    with pytest.raises(Refused, match=r"signed by sum\.golang\.org\+033de0ae, test\.example\.com\+a931a10b"):
        SignedNote.parse(COSIGNED).opened([VerifierKey.parse(PETER)])
    found = verdicts([Case("known", COSIGNED.encode(), SUMDB), Case("unknown", COSIGNED.encode(), PETER)])
    assert [verdict["code"] for verdict in found] == ["proven", "signer"]


def test_the_reference_note_and_its_keys() -> None:
    """The note of Go's own tests verifies, is made again byte for byte, and its keys are spelled back as they were."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, secret = VerifierKey.parse(PETER), SignerKey.parse(PETER_SECRET)
    assert SignedNote.parse(PETER_NOTE).opened([key]) == PETER_TEXT
    assert (str(key), secret.to_text()) == (PETER, PETER_SECRET)
    signature = Ed25519PrivateKey.from_private_bytes(secret.seed).sign(PETER_TEXT.encode())
    assert str(SignedNote(PETER_TEXT, (Signature(key.name, key.hash, signature),))) == PETER_NOTE
    assert "AYEKFALV" not in repr(secret)


def test_a_bad_signature_of_a_known_key_refuses_the_note() -> None:
    """A note with a good signature and a bad one of the same key is not believed."""
    line = PETER_NOTE.splitlines()[-1]
    bad = line[:-6] + "AAAAA="
    with pytest.raises(Refused, match="is not one of this text"):
        SignedNote.parse(PETER_NOTE + bad + "\n").opened([VerifierKey.parse(PETER)])


@pytest.mark.parametrize(
    "key",
    [
        "",
        "PeterNeumann",
        PETER[:-1],
        PETER + "A",
        PETER.replace("c74f20a3", "c74f20a4"),
        PETER.replace("c74f20a3", "C74F20A3"),
        PETER.replace("Peter", "Peter "),
        PETER.replace("Peter", "Pete\u00a0"),
        "PeterNeumann+cc469956+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TWBADKEY==",
        "PeterNeumann+173116ae+ZRpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
        "+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW",
    ],
)
def test_what_is_not_exactly_a_key_is_refused(key: str) -> None:
    """A key of another length, algorithm, hash or spelling is refused, by both verifiers too."""
    with pytest.raises(Refused):
        VerifierKey.parse(key)
    (verdict,) = verdicts([Case("key", PETER_NOTE.encode(), key)])
    assert verdict["code"] == "key"


GOOD = note_of(*PUBLISHED[0])
SIGNATURE = PUBLISHED[0][2]


@pytest.mark.parametrize(
    "note",
    [
        "",
        "\n",
        "text\n",
        GOOD[:-1],
        GOOD.replace("\n\n", "\n"),
        GOOD.replace("— ", "- "),
        GOOD.replace("— sum", "—sum"),
        GOOD.replace("sum.golang.org ", "sum.golang.org  "),
        GOOD.replace(SIGNATURE, SIGNATURE[:-1]),
        GOOD.replace(SIGNATURE, SIGNATURE[:-2] + "9="),
        GOOD.replace(SIGNATURE, "Az3grg=="),
        GOOD.replace(" " + SIGNATURE, ""),
        GOOD + "\n",
        GOOD.replace("tree", "tr\tee"),
        GOOD.replace("tree", "tr\x00ee"),
        GOOD.replace("tree", "tr\ree"),
        GOOD.replace("— sum.golang.org", "— sum.golang+org"),
        GOOD.replace("— sum.golang.org", "— sum.golang\u2028org"),
        GOOD + GOOD.splitlines(keepends=True)[-1] * 100,
    ],
)
def test_what_is_not_exactly_a_note_is_refused(note: str) -> None:
    """Control characters, missing parts and other spellings make no note, for us and for both verifiers."""
    with pytest.raises(Refused):
        SignedNote.parse(note)
    (verdict,) = verdicts([Case("note", note.encode(), SUMDB)])
    assert verdict["code"] == "note"


def test_a_note_that_is_not_utf8_is_refused() -> None:
    """Bytes that are not UTF-8 are no note."""
    data = GOOD.encode().replace(b"tree", b"tr\xffe")
    with pytest.raises(Refused, match="not UTF-8"):
        SignedNote.parse(data)
    (verdict,) = verdicts([Case("bytes", data, SUMDB)])
    assert verdict["code"] == "note"


ROOT = base64.b64encode(bytes(32)).decode()


@pytest.mark.parametrize(
    "text",
    [
        f"log\n01\n{ROOT}\n",
        f"log\n-1\n{ROOT}\n",
        f"log\n+1\n{ROOT}\n",
        f"log\n1 \n{ROOT}\n",
        f"log\n\n{ROOT}\n",
        f"log\n{SIZE_MAX + 1}\n{ROOT}\n",
        f"log\n١\n{ROOT}\n",
        f"\n1\n{ROOT}\n",
        "log\n1\n",
        "log\n1\nAAAA\n",
        f"log\n1\n{ROOT[:-2]}B=\n",
        f"log\n1\n{ROOT}\n\nmore\n",
        f"log\n1\n{ROOT}",
    ],
)
def test_what_is_not_exactly_a_checkpoint_is_refused(text: str) -> None:
    """Sizes with leading zeros or signs, short roots and empty lines make no checkpoint."""
    with pytest.raises(Refused):
        Checkpoint.parse(text)


@given(
    origin=st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1),
    size=st.integers(0, SIZE_MAX),
    root=st.binary(min_size=32, max_size=32),
    epoch=st.integers(1, 9),
)
def test_a_checkpoint_reads_back(origin: str, size: int, root: bytes, epoch: int) -> None:
    """What is written as a checkpoint is read as the same one, with its epoch."""
    extensions = (f"epoch {epoch}",) if epoch > 1 else ()
    made = Checkpoint(origin, size, root, extensions)
    assert Checkpoint.parse(made.to_text()) == made
    assert made.epoch == epoch


# Ed25519

RFC_8032 = [
    (
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("public", "message", "signature"), RFC_8032)
def test_the_vectors_of_rfc_8032(public: str, message: str, signature: str) -> None:
    """The signatures of RFC 8032 section 7.1 verify, and no longer once any part differs."""
    key, text, good = bytes.fromhex(public), bytes.fromhex(message), bytes.fromhex(signature)
    assert ed25519.verify(key, text, good)
    assert not ed25519.verify(key, text + b"x", good)
    for at in (0, 31, 32, 63):
        assert not ed25519.verify(key, text, good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
    assert not ed25519.verify(key, text, good[:-1])
    assert not ed25519.verify(key[:-1], text, good)


ORDER = 2**252 + 27742317777372353535851937790883648493
P = 2**255 - 19


def _note_by(public: bytes, signature: bytes) -> tuple[bytes, str]:
    """Return a note with a signature, and the text of the key it says it is by."""
    key = VerifierKey("k", public)
    return str(SignedNote("text\n", (Signature("k", key.hash, signature),))).encode(), str(key)


def test_lenient_spellings_are_refused_by_all() -> None:
    """S beyond the order, keys of small order and keys with two spellings verify nothing, here and there."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(b"\7" * 32)
    public, good = private.public_key().public_bytes_raw(), private.sign(b"text\n")
    larger = good[:32] + (int.from_bytes(good[32:], "little") + ORDER).to_bytes(32, "little")
    neutral = (1).to_bytes(32, "little")
    eighth = 2707385501144840649318225287225658788936804267575313519463743609750303021417
    # With a key of small order R = S·B fits every message once in eight; S = 0 and R neutral is the simplest.
    small = [1, P - 1, 0, eighth, P - eighth, 1 | 1 << 255, P + 1, eighth | 1 << 255]
    pairs = [(public, larger), *((key.to_bytes(32, "little"), neutral + bytes(32)) for key in small)]
    assert ed25519.verify(public, b"text\n", good)
    assert [ed25519.verify(key, b"text\n", signature) for key, signature in pairs] == [False] * len(pairs)
    cases = [Case("lenient", *_note_by(key, signature)) for key, signature in pairs]
    assert [verdict["code"] for verdict in verdicts(cases)] == ["signature"] * len(pairs)


@given(seed=st.binary(min_size=32, max_size=32), message=st.binary(max_size=64), at=st.integers(0, 63))
def test_it_agrees_with_another_implementation(seed: bytes, message: bytes, at: int) -> None:
    """What `cryptography` signs verifies here, and one flipped bit of it does not."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    private = Ed25519PrivateKey.from_private_bytes(seed)
    public, good = private.public_key().public_bytes_raw(), private.sign(message)
    assert ed25519.verify(public, message, good)
    assert not ed25519.verify(public, message, good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :])
