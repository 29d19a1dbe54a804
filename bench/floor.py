"""Floor: what a write takes when nothing is worked out: the bytes and digests it cannot do without, and its rows.

These rows have no goal. They say how much of a goal is left for everything else: taking a record apart, checking it
against its schema, finding its entity, merging, packing what was merged, saying what changed.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import apsw
import orjson

import woodrat
from bench import runs
from bench.raw import Raw, page_bytes, settle
from bench.rows import Row
from bench.stage import Pair, Stage
from bench.timing import Figure, take_turns
from woodrat.engines import codec
from woodrat.log.entry import NONCE_BYTES

_ENTRY = "INSERT INTO entry VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"
_BODY = "INSERT INTO body VALUES (?, ?, ?)"
_SAID = "INSERT INTO said VALUES (?, ?, ?, ?)"
_STEP = "INSERT INTO index_row VALUES (1, 'run', ?, ?, X'')"
_STATE = "UPDATE entity SET last = ?, until = ?, state_at = ?, state = ? WHERE id = ?"
_HEADER = b'{"commitment":"%b","kind":"observation","log":"log_","position":%d,"recorded_at":"","version":1,"write":%d}'
_DIGEST, _NONCE = bytes(32), bytes(NONCE_BYTES)
_DECIDED = codec.NUMBERS["run.decided"]
_RUN = b"run_%s\0" % (b"a" * 26)


def rows() -> list[Row]:
    """Return what is measured."""
    return [
        Row("single-floor", "the statements of a single store alone / one raw commit", None, _single),
        Row("batch-floor", "spelling, digests and statements of a batch alone / raw bulk insert", None, _batch),
        Row("step-floor", "the statements of a step of a run alone / one raw commit of the same bytes", None, _step),
    ]


class _State(NamedTuple):
    """The state of an entity as its row has it, to be written again."""

    until: str
    packed: bytes
    entity: int


class _Bare:
    """The file of a ledger that was closed, written to without one."""

    def __init__(self, path: Path) -> None:
        self._connection = apsw.Connection(str(path))
        settle(self._connection)
        self._run, self._many = self._connection.execute, self._connection.executemany
        self._next: int = self._run("SELECT max(id) FROM entry").get + 1
        found = self._run("SELECT until, state, id FROM entity WHERE state IS NOT NULL")
        self._states = [_State(*row) for row in found]
        self._random = Random(str(path))

    def single(self, body: bytes) -> None:
        """Write the rows of one observation, prepared."""
        id, state = self._take(1), self._random.choice(self._states)
        head = self._random.getrandbits(62)
        self._run("BEGIN IMMEDIATE")
        self._run(_ENTRY, (id, 1, id, 1, id, 1, _DIGEST, _DIGEST, _DIGEST))
        self._run(_BODY, (id, _NONCE, body))
        self._run(_SAID, (id, state.entity, id - 1, head))
        self._run(_STATE, (id, state.until, id, state.packed, state.entity))
        self._run("COMMIT")

    def batch(self, records: Sequence[dict[str, Any]]) -> None:
        """Spell and digest the records of a batch, and write their rows, each with a state as it was."""
        first = self._take(len(records))
        random = os.urandom(len(_NONCE) * len(records))
        entries, bodies, said, states = [], [], [], []
        node = b""
        for number, (record, state) in enumerate(zip(records, self._states, strict=False)):
            id = first + number
            body = orjson.dumps(record, option=orjson.OPT_SORT_KEYS)
            digest = sha256(b"observation" + body).digest()
            nonce = random[len(_NONCE) * number : len(_NONCE) * (number + 1)]
            commitment = sha256(nonce + body).digest()
            leaf = sha256(_HEADER % (commitment.hex().encode(), id, first)).digest()
            node = sha256(leaf + node).digest()
            entries.append((id, 1, first, 1, first, None, None, commitment, leaf))
            bodies.append((id, nonce, body))
            said.append((id, state.entity, id - 1, codec.head(digest)))
            states.append((id, state.until, id, state.packed, state.entity))
        self._run("BEGIN IMMEDIATE")
        for statement, values in ((_ENTRY, entries), (_BODY, bodies), (_SAID, said), (_STATE, states)):
            self._many(statement, values)
        self._run("COMMIT")

    def step(self, body: bytes) -> None:
        """Write the rows of one step of a run, prepared."""
        id = self._take(1)
        self._run("BEGIN IMMEDIATE")
        self._run(_ENTRY, (id, 1, id, _DECIDED, id, 1, _DIGEST, _DIGEST, _DIGEST))
        self._run(_BODY, (id, _NONCE, body))
        self._run(_STEP, (_RUN + id.to_bytes(8, "big"), id))
        self._run("COMMIT")

    def _take(self, count: int) -> int:
        first, self._next = self._next, self._next + count
        return first

    def close(self) -> None:
        self._connection.close()


def _single(stage: Stage) -> Figure:
    pair, bare = _bare(stage, "single")
    return take_turns(
        pair.said(1, turns=550),
        lambda said: bare.single(said.rows[0][0]),
        lambda said: pair.raw.add(said.rows[0]),
        warm=50,
        seconds=stage.scale.seconds,
    )


def _batch(stage: Stage) -> Figure:
    pair, bare = _bare(stage, "batch")
    return take_turns(
        pair.said(stage.scale.batch, turns=18),
        lambda said: bare.batch(said.batch.records),
        lambda said: pair.raw.add_all(said.rows),
        per=stage.scale.batch,
        per_against=stage.scale.batch,
        warm=3,
        seconds=stage.scale.seconds,
    )


def _bare(stage: Stage, name: str) -> tuple[Pair, _Bare]:
    """Return a ledger of its own with the raw file beside it, and the ledger's file without the ledger."""
    pair = stage.pair(f"floor-{name}", stage.scale.few, stage.scale.batch, stage.scale.depth)
    pair.ledger.close()
    return pair, stage.until_the_end(_Bare(pair.path))


def _step(stage: Stage) -> Figure:
    path = stage.folder / "floor-step.db"
    with woodrat.open(path) as ledger:
        runs.grow(ledger)
        with runs.begin(ledger) as run:
            runs.decide(run)
            body = runs.last_body(ledger)
    bare = stage.until_the_end(_Bare(path))
    raw = stage.until_the_end(Raw(path.with_suffix(".raw.db"), page_bytes(path)))
    raw.grow()
    turns = itertools.repeat([(body,)], 550)
    return take_turns(turns, lambda row: bare.step(row[0]), raw.add, warm=50, seconds=stage.scale.seconds)
