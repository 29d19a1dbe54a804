"""Entry rows: the rows of the ordered indexes that an entry of the log needs.

One table defines it for appending, for rebuilding, and for checking:

    run       run, position                every entry of a run
    source    digest, position             every content
    schema    type, position               every schema
    relation  digest, type, key            every relation, under each entity it names; but for `same_as`
    same_as   digest, type, key            every `same_as`, under each entity it names
    observed  time, digest, position       observations by when things were seen; of one time by their digests
    said      source | reading, position   every observation that names a source or a reading
    blocks    agent, block                 where an agent said something: one row for a block of the log
    blocks    "seen", block                where an observation was seen when it was recorded, in a write of its own
    sources   source | reading, position   every delivery of a source, and every beginning and end of a reading

The value of a row is empty, except for relations, where it is the position of the first mention, and for
interpretations. Erased entries need no rows.

Most observations are seen when they are recorded, in a write of their own. The log has them in that order already, so
they share a row of their block in place of one each in `observed`. Several entries share such a row; the first one
counts. So a store mostly adds none.
"""

from __future__ import annotations

from typing import Any, Final

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.state.meaning import Meaning, RunEntry
from woodrat.state.observation import Observation
from woodrat.state.relation import SAME_AS, endpoints
from woodrat.state.schema import Schema
from woodrat.state.source import source_digest

RUN, SOURCE, SCHEMA = "run", "source", "schema"
RELATION = "relation"
OBSERVED, SAID, SOURCES, BLOCKS = "observed", "said", "sources", "blocks"
BLOCK: Final = 64
"""Number of positions in a block: a look-up by block reads at most this many entries for each."""
POSITION_BYTES: Final = 8
DIGEST_BYTES: Final = 32
_RELATION_KEY: Final = '["'
"""What the key of every relation begins with."""
_DIGEST: Final = b"#"
"""Stands before a digest in a key: no key begins with the byte FF, and a digest may."""

DELIVERED: Final = "delivered/"
"""Deliveries of a source; its name follows."""
READING: Final = "reading/"
"""The beginning and the end of an interpretation; its id follows."""
BEGUN: Final = "begun"
"""Where readings begin; the rows hold their ids."""
LINE: Final = "line/"
"""Prefix of the rows of an interpretation; its id follows, and the rows hold the bodies of its start and its end."""
SAID_FROM: Final = "from/"
"""Observations that name a source or an interpretation; its name follows."""
SAID_BY: Final = "by/"
"""Blocks with observations of an agent; its name follows."""
SEEN: Final = "seen"
"""Blocks with observations observed at their recording, each in a separate write."""
RECEIVED: Final = "received"
STARTED: Final = "interpretation.started"
ENDED: Final = "interpretation.ended"
MARKS: Final = {STARTED: b"+", ENDED: b"-"}
"""Separator before a body in a row of an interpretation."""

EntryRow = tuple[str, bytes, bytes]
"""A row: its index, its key, its value. It is true from the position of its entry on."""


def position_key(position: int) -> bytes:
    """Return a position as a part of a key: keys that end in it sort by position."""
    return position.to_bytes(POSITION_BYTES, "big")


def position_of(key: bytes) -> int:
    """Return the position that a key ends in."""
    return int.from_bytes(key[-POSITION_BYTES:], "big")


def text_prefix(text: str) -> bytes:
    """Return the key prefix of a text: a run, a type, or any term; no text contains its terminator."""
    return b"%b\0" % text.encode()


def term_key(term: str, position: int) -> bytes:
    """Return the key under which a position is listed under a term."""
    return text_prefix(term) + position_key(position)


def observed_key(observed_at: str, digest: bytes) -> bytes:
    """Return the key prefix of an observation in `observed`; its position follows."""
    return b"%b\0%b" % (observed_at.encode(), digest)


def digest_prefix(digest: bytes) -> bytes:
    """Return the key prefix of a digest in `source`, `relation` and `same_as`."""
    return _DIGEST + digest


def digest_of(key: bytes) -> bytes:
    """Return the digest in a key."""
    return key[len(_DIGEST) : len(_DIGEST) + DIGEST_BYTES]


def relation_prefix(digest: bytes, type: str) -> bytes:
    """Return the key prefix of the relations of a type that name an entity."""
    return b"%b%b%b\0" % (_DIGEST, digest, type.encode())


def relation_index(type: str) -> str:
    """Return the index that the relations of a type are in."""
    return SAME_AS if type == SAME_AS else RELATION


def relation_of(key: bytes) -> Ref:
    """Return the relation in a key of `relation` or `same_as`; `ValueError` if there is none."""
    return relation_named(key[len(_DIGEST) + DIGEST_BYTES :])


def relation_name(ref: Ref) -> bytes:
    """Return the end of a relation's key."""
    return b"%b\0%b\0" % (ref.type.encode(), ref.key.encode())


def relation_named(name: bytes) -> Ref:
    """Return the relation whose key ends so; `ValueError` if there is none."""
    type, _, key = name[:-1].partition(b"\0")
    return Ref(type.decode(), key.decode())


def rows_of(
    kind: str, body: bytes | None, meaning: Meaning, position: int, alone_at: str | None = None
) -> list[EntryRow]:
    """Return the rows of an entry; `meaning` is its parsed body.

    `alone_at` is the time of recording, if it is the only entry of its write.
    """
    if isinstance(meaning, Observation):
        rows = block_rows(meaning, position, alone_at) + observation_rows(meaning, position, alone_at)
        return rows + relation_rows(meaning.entity, position) if meaning.entity.key.startswith(_RELATION_KEY) else rows
    if isinstance(meaning, RunEntry):
        return [(RUN, text_prefix(meaning.run) + position_key(position), b"")]
    if isinstance(meaning, Schema):
        return [(SCHEMA, text_prefix(meaning.type) + position_key(position), b"")]
    if body is None:
        return []
    if kind == "source":
        return [(SOURCE, digest_prefix(source_digest(body)) + position_key(position), b"")]
    return source_rows(kind, body, position) if kind in (RECEIVED, STARTED, ENDED) else []


def block_rows(said: Observation, position: int, alone_at: str | None) -> list[EntryRow]:
    """Return the rows that an observation shares with others of its block."""
    at = position_key(position // BLOCK)
    rows = [(BLOCKS, b"by/%b\0%b" % (said.agent.encode(), at), b"")]
    if said.observed_at == alone_at:
        rows.append((BLOCKS, b"seen\0" + at, b""))
    return rows


def observation_rows(said: Observation, position: int, alone_at: str | None) -> list[EntryRow]:
    """Return the rows of an observation by its time, and by its source and interpretation."""
    rows: list[EntryRow] = []
    if said.observed_at != alone_at:
        rows.append((OBSERVED, observed_key(said.observed_at, said.digest) + position_key(position), b""))
    if said.optional:
        for name in ("source", "interpretation"):
            named = said.optional.get(name)
            if isinstance(named, str):
                rows.append((SAID, term_key(SAID_FROM + named, position), b""))
    return rows


def source_rows(kind: str, body: bytes, position: int) -> list[EntryRow]:
    """Return the rows of a delivery, or of the start or the end of an interpretation.

    Lists show interpretations from these rows, without reading their entries.
    """
    value: Any = form.decode(body)
    id = value.get("source" if kind == RECEIVED else "interpretation") if isinstance(value, dict) else None
    if not isinstance(id, str):
        return []
    if kind == RECEIVED:
        return [(SOURCES, term_key(DELIVERED + id, position), b"")]
    rows = [
        (SOURCES, term_key(READING + id, position), b""),
        (SOURCES, term_key(LINE + id, position), MARKS[kind] + body),
    ]
    return [*rows, (SOURCES, term_key(BEGUN, position), id.encode())] if kind == STARTED else rows


def relation_rows(ref: Ref, first: int) -> list[EntryRow]:
    """Return the rows of an entity first mentioned at a position; only a relation has any.

    Each observation of a relation needs them. The first one's rows count: a key has one row.
    """
    name, rest, at = relation_index(ref.type), relation_name(ref), position_key(first)
    return [(name, digest_prefix(end.digest) + rest, at) for end in dict.fromkeys(endpoints(ref) or ())]
