"""The rows of a log tell by themselves whether they can be what was written, in parts and in any order of parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.log import check as log_check
from woodrat.log import tree
from woodrat.log.check import PART, Checked, Damage, Held, Joined, Row, Walk, against, joined, merged, outside
from woodrat.log.entry import Write

LOG: Final = "log_a"


def write(first: int, count: int, kind: str = "observation", body: bytes = b"{}", log: str = LOG) -> list[Row]:
    """Return the rows of a write."""
    nonces = [(first + offset).to_bytes(16, "big") for offset in range(count)]
    at = f"2026-01-01T00:00:{first // 1_000_000:02}.{first % 1_000_000:06}Z"
    made = Write(log, first, at, [(kind, body)] * count, nonces, "", bytes(32), bytes(16))
    return [
        Row(
            entry.position,
            entry.log,
            entry.recorded_at,
            entry.kind,
            entry.envelope.write,
            entry.envelope.length,
            entry.envelope.request,
            entry.commitment,
            leaf,
            entry.nonce,
            entry.body,
        )
        for entry, leaf in zip(made, made.leaves, strict=True)
    ]


def log_of(lengths: Iterable[int]) -> list[Row]:
    """Return the rows of a log of writes of these lengths."""
    rows: list[Row] = []
    for length in lengths:
        rows += write(len(rows), length)
    return rows


def stretch(rows: list[Row], start: int, end: int, sizes: Iterable[int] = ()) -> Checked:
    """Check a stretch of a log."""
    before = [] if not start else [rows[rows[start - 1].write], rows[start - 1]]
    walk = Walk(start, len(rows), sizes, before)
    while walk.found.end < end:
        walk.part(rows[walk.found.end : walk.found.end + PART], lambda row: None)
    return walk.found


def whole(rows: list[Row], sizes: Iterable[int] = ()) -> Joined:
    """Check a log in one stretch."""
    return joined([stretch(rows, 0, len(rows), sizes)])


def found(rows: list[Row]) -> list[tuple[str, int]]:
    """Return what is wrong with a log."""
    return [(one.damage, one.position) for one in whole(rows).damage]


LONG: Final = log_of([1, 3, 5000, 1, 4090, 7, 2000])
"""A log of three parts, with writes across their borders."""


def test_a_sound_log_has_the_root_of_its_leaves() -> None:
    """Nothing is found in an untouched log, and its root is that of the tree over its leaves."""
    log = whole(LONG)
    assert (log.size, log.damage, log.observations) == (len(LONG), [], len(LONG))
    assert log.frontier == tree.Frontier().extend(row.leaf for row in LONG)
    assert log.names == {LOG: 0}


def test_stretches_join_into_the_same_log() -> None:
    """A log checked in stretches, in any order, is the log checked at once, at every size asked for."""
    sizes = [0, 1, 4, PART - 1, PART, PART + 1, 2 * PART + 17, len(LONG)]
    at_once = whole(LONG, sizes)
    parts = [stretch(LONG, start, min(start + PART, len(LONG)), sizes) for start in reversed(range(0, len(LONG), PART))]
    apart = joined(parts)
    assert (apart.frontier, apart.damage, apart.upper) == (at_once.frontier, [], at_once.upper)
    for size in sizes:
        root = tree.root(row.leaf for row in LONG[:size])
        assert at_once.root_at(size) == apart.root_at(size) == root


@settings(max_examples=50)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=12), st.data())
def test_any_changed_part_of_any_row_is_found(lengths: list[int], data: st.DataObject) -> None:
    """Whatever part of whichever row is changed, the first bad position is that of the row, or that of its write."""
    rows = log_of(lengths)
    position = data.draw(st.integers(0, len(rows) - 1))
    part = data.draw(st.sampled_from(sorted(CHANGES)))
    row = rows[position]
    changed = row._replace(**{part: CHANGES[part](getattr(row, part))})
    rows[position] = changed
    damage = found(rows)
    assert damage, part
    assert min(at for _, at in damage) == position


CHANGES: Final[dict[str, Callable[[Any], Any]]] = {
    "log": lambda log: log + "x",
    "recorded_at": lambda at: at[:-2] + ("1" if at[-2] != "1" else "2") + "Z",
    "kind": lambda kind: "tag",
    "write": lambda first: first + 1,
    "length": lambda length: 4_000 if length is None else length + 1,
    "request": lambda request: bytes(32),
    "commitment": lambda value: bytes(32),
    "leaf": lambda leaf: bytes(32),
    "nonce": lambda nonce: b"x" * 16,
    "body": lambda body: b"[]",
}
"""How each part of a row is changed."""


@pytest.mark.parametrize("value", [None, "text", 7, b"", 1.5])
@pytest.mark.parametrize("part", Row._fields[1:])
def test_a_part_of_another_shape_is_found(part: str, value: Any) -> None:
    """A row with a part of any other type is damage at its position, never an error."""
    rows = log_of([1, 2, 1])
    if getattr(rows[1], part) == value:
        return
    rows[1] = rows[1]._replace(**{part: value})
    damage = found(rows)
    assert damage
    assert damage[0][1] == 1


def test_a_missing_row_is_named() -> None:
    """A row that is not there is named, in the middle, at the beginning and at the end."""
    rows = log_of([1, 1, 1, 1])
    for gone in range(4):
        left = [row for row in rows if row.position != gone]
        walk = Walk(0, 4)
        walk.part(left, lambda row: None)
        assert ("position", gone) == joined([walk.found]).damage[0][:2]


def test_a_write_cut_off_at_the_end_is_named() -> None:
    """A log that ends in the middle of a write lacks the entry after its last."""
    assert found(log_of([2, 5])[:4]) == [("envelope", 4)]


def test_time_that_does_not_go_on_is_named() -> None:
    """A write that was recorded no later than the one before it is damage, however well it is spelled."""
    early = write(0, 1)[0]
    again = Write(LOG, 1, early.recorded_at, [("observation", b"{}")], [bytes(16)], "", bytes(32), bytes(16))
    row = early._replace(
        position=1,
        write=1,
        request=again.request,
        commitment=again.commitments[0],
        leaf=again.leaves[0],
        nonce=bytes(16),
    )
    assert found([early, row]) == [("recorded_at", 1)]


def test_bodies_may_be_gone_only_where_an_erasure_says_so() -> None:
    """A body that is gone is lawful where an erasure of this log names it, and an erased body must be gone."""
    rows = log_of([1, 1, 1])
    named = form.encode({"log": LOG, "positions": [[1, 2]]})
    erasure = write(3, 1, "erasure", named)
    gone = [row._replace(nonce=None, body=None) if row.position in (1, 2) else row for row in rows]
    assert found(gone) == [("body", 1)]
    assert found(gone + erasure) == []
    assert found([*rows[:2], gone[2], *erasure]) == [("erasure", 1)]
    assert found(gone + write(3, 1, "erasure", form.encode({"log": "log_b", "positions": [[1, 2]]}))) == [("body", 1)]
    half = [*rows[:1], rows[1]._replace(nonce=None), *rows[2:]]
    assert found(half) == [("nonce", 1)]


def test_checkpoints_tell_what_rows_cannot() -> None:
    """A checkpoint finds a log cut short, rewritten, or taken for another; the largest that agrees narrows it down."""
    rows = log_of([1] * 20)
    roots = [tree.root(row.leaf for row in rows[:size]) for size in range(21)]
    log = whole(rows, range(21))
    assert against(log, [Held(LOG, size, roots[size]) for size in range(21)]) == []
    assert _classes(against(log, [Held(None, 21, roots[20])])) == [("truncated", 20)]
    assert _classes(against(log, [Held("log_b", 20, roots[20])])) == [("origin", 0)]
    assert _classes(against(log, [Held(LOG, 20, bytes(32)), Held(LOG, 7, roots[7])])) == [("forked", 7)]


def _classes(damage: Iterable[Damage]) -> list[tuple[str, int]]:
    return [(one.damage, one.position) for one in damage]


def test_canonical_form_is_told_from_other_spellings() -> None:
    """A body is canonical when it is the one spelling of its value; the content of a source is in no form."""
    for good in ({"a": 1, "b": [1.5, "é", {"😀": 1, "\uffff": 2}], "c": 1e21}, {"x": "0.5"}, {"n": None}):
        assert log_check.canonical("tag", form.serialise(good))
    for bad in (
        b'{"a": 1}',
        b'{"b":1,"a":2}',
        b'{"a":1e21}',
        b'{"a":1.0}',
        b'{"a":[1.0]}',
        b'{"a":1,"a":1}',
        b"{",
        b"\xff",
    ):
        assert not log_check.canonical("tag", bad), bad
    assert log_check.canonical("source", b"\xff")


@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_positions_outside_of_other_ranges_are_found(one: set[int], other: set[int]) -> None:
    """Of each range the first position that no other range holds is found, however near to each other those lie."""
    ranges, others = (merged((position, position) for position in positions) for positions in (one, other))
    assert {position for first, last in ranges for position in range(first, last + 1)} == one
    missing = [[position for position in range(first, last + 1) if position not in other] for first, last in ranges]
    assert list(outside(ranges, others)) == [positions[0] for positions in missing if positions]
