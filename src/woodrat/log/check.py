"""Checking: whether rows form an undamaged log. The answer depends only on the rows.

Each row is checked on its own (shape, commitment, leaf) and against the previous one (position, write, time). The
leaves are hashed up to the root again. A log is checked in parts of `PART` entries, which are complete subtrees, so
parts can be checked anywhere, in any order, and joined afterwards.

A rewritten log without any trace of the change is revealed only by a checkpoint held elsewhere: `against`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from woodrat.canon import form
from woodrat.canon.ids import Position
from woodrat.log import erasure
from woodrat.log.entry import KINDS, LEAF_START, NONCE_BYTES, Entry, Envelope, Origin, leaf_frame
from woodrat.log.tree import HASH_BYTES, Frontier, node_hash
from woodrat.records import dataclass, field

PART_HEIGHT = 12
PART = 1 << PART_HEIGHT
"""Entries checked at a time; the leaves of a full part are a complete subtree."""

DAMAGES_MAX = 100
"""Most reported places of damage."""


class Row(NamedTuple):
    """One entry as an engine stores it, unchecked: any part may be malformed."""

    position: int
    log: str | None
    recorded_at: str
    kind: str
    write: int
    length: int | None
    request: bytes | None
    commitment: bytes
    leaf: bytes
    nonce: bytes | None
    body: bytes | None
    origin: Origin | None = None

    def entry(self) -> Entry:
        """Return the row as an entry, unchecked."""
        envelope = Envelope(self.write, self.length, self.request, self.origin)
        position, log = Position(self.position), self.log or ""
        return Entry(log, position, self.recorded_at, self.kind, envelope, self.commitment, self.nonce, self.body)


class Damage(NamedTuple):
    """A damaged part of a log."""

    damage: str
    """Its class: `position`, `leaf`, `commitment`, `body`, `recorded_at` and so on."""
    position: int
    """The first position that is wrong."""
    problem: str
    """The problem, in one clause."""


class Held(NamedTuple):
    """A checkpoint held outside the database: the first `size` entries have this root."""

    origin: str | None
    """The name of the log it was made for, where it is known."""
    size: int
    """Number of covered entries."""
    root: bytes
    """The root of the tree over them."""


Ranges = list[tuple[int, int]]
"""Positions as (first, last), sorted, without overlap."""


class Naming(NamedTuple):
    """An erasure in the log, and the positions it names."""

    of: str
    """The log whose positions it names."""
    log: str
    """The log that its entry was written under."""
    position: int
    """Where it stands."""
    origin: Origin | None
    """Where its entry was first written, if not here."""
    positions: Ranges
    """The positions that it names."""


Sound = Callable[[Row], object]
"""Is given every row with a body, once it is known to be sound."""


@dataclass(slots=True)
class Checked:
    """The result of checking a stretch of a log that starts at a multiple of `PART`."""

    start: int
    """Its first position."""
    end: int
    """The position after its last."""
    roots: list[bytes] = field(default_factory=list)
    """The root of each whole part."""
    rest: tuple[bytes, ...] = ()
    """The roots of the complete subtrees of the part that is not whole, largest first."""
    at: dict[int, tuple[bytes, ...]] = field(default_factory=dict)
    """For each requested size that ends within a part: the subtrees of the beginning of that part."""
    names: dict[str, int] = field(default_factory=dict)
    """Every name the log had, and the first position under it."""
    observations: int = 0
    """Observations with a body."""
    absent: Ranges = field(default_factory=list)
    """Positions without a body."""
    erasures: list[Naming] = field(default_factory=list)
    """The erasures in it."""
    damage: list[Damage] = field(default_factory=list)
    """Damage, by position."""


class Walk:
    """Walks over the rows of a log in order, from the beginning of a part on."""

    def __init__(self, start: int, size: int, sizes: Iterable[int] = (), before: Sequence[Row] = ()) -> None:
        """Begin at `start` in a log of `size` entries; roots are wanted at `sizes`.

        `before` are the rows before the start, if any: the first of the write that extends up to it, and its last
        before the start.
        """
        assert start % PART == 0
        self.found = Checked(start, start)
        self._size = size
        self._sizes = sorted(sizes)
        self._write = self._length = self._until = -1
        self._at = ""
        self._log: str | None = None
        if before:
            first, last = before[0], before[-1]
            self._write, self._at, self._log = first.write, last.recorded_at, last.log
            self._length = first.length if isinstance(first.length, int) else size
            self._until = self._write + self._length
        self._frames: dict[str, tuple[str, str]] = {}

    def part(self, rows: Iterable[Row], sound: Sound) -> list[list[bytes]]:
        """Check the rows of the next part, and return the roots of its complete subtrees by height, leaves first."""
        start = self.found.end
        end = min(start + PART, self._size)
        leaves = self._rows(rows, start, end, sound)
        levels = [leaves]
        sha256 = hashlib.sha256
        while len(level := levels[-1]) > 1:
            pairs = zip(level[::2], level[1::2], strict=False)
            levels.append([sha256(b"\x01" + left + right).digest() for left, right in pairs])
        if len(leaves) == PART:
            self.found.roots.append(levels[-1][0])
        else:
            self.found.rest = _edge(levels, len(leaves))
        for size in self._sizes:
            if start < size < end:
                self.found.at[size] = _edge(levels, size - start)
        self.found.end = end
        if end == self._size and self._write >= 0 and self._write + self._length > end:
            self._wrong("envelope", end, f"the write at {self._write} has {self._length} entries, and the log ends")
        return levels

    def _rows(self, rows: Iterable[Row], start: int, end: int, sound: Sound) -> list[bytes]:
        leaves: list[bytes] = []
        sha256, frames, found = hashlib.sha256, self._frames, self.found
        expected = start
        observations = 0
        for row in rows:
            position, log, recorded_at, kind, write, length, request, commitment, leaf, nonce, body, origin = row
            try:
                if position != expected:
                    if position < expected:
                        self._wrong("position", expected, f"position {position} has another entry too")
                        continue
                    self._missing(expected, position)
                    leaves += [bytes(HASH_BYTES)] * (position - expected)
                    expected = position
                if write != self._write:
                    frame = self._begin(row)
                else:
                    if length is not None or request is not None or position >= self._until:
                        self._envelope(row)
                    if log != self._log or recorded_at != self._at:
                        self._unlike(row)
                    frame = (frames.get(kind) if origin is None else None) or self._frame(row)
                data = f"{LEAF_START}{commitment.hex()}{frame[0]}{position}{frame[1]}"
                if sha256(data.encode()).digest() != leaf:
                    self._header(row)
                if nonce is None or body is None:
                    self._absent(row)
                elif sha256(nonce + body).digest() != commitment or len(nonce) != NONCE_BYTES:
                    self._half(row)
                else:
                    if kind == "observation":
                        observations += 1
                    elif kind == erasure.KIND:
                        self._erasure(row)
                    sound(row)
            except (AttributeError, TypeError, ValueError, OverflowError):
                self._header(row)
            leaves.append(leaf if type(leaf) is bytes and len(leaf) == HASH_BYTES else bytes(HASH_BYTES))
            expected += 1
        if expected < end:
            self._missing(expected, end)
            leaves += [bytes(HASH_BYTES)] * (end - expected)
        found.observations += observations
        return leaves

    def _wrong(self, damage: str, position: int, problem: str) -> None:
        if len(self.found.damage) < DAMAGES_MAX:
            self.found.damage.append(Damage(damage, position, problem))

    def _missing(self, first: int, end: int) -> None:
        many = f"{first} to {end - 1} are" if end - first > 1 else f"{first} is"
        self._wrong("position", first, f"{many} not there")

    def _begin(self, row: Row) -> tuple[str, str]:
        """Check that a write begins here and that the previous one is complete."""
        position, log, recorded_at = row.position, row.log, row.recorded_at
        if self._write >= 0 and self._write + self._length != position:
            whole = f"the write at {self._write} has {self._length} entries"
            self._wrong("envelope", position, f"{whole}, but another begins after {position - self._write}")
        elif row.write != position or not isinstance(row.length, int) or row.request is None:
            self._envelope(row)
        if recorded_at <= self._at:
            self._wrong("recorded_at", position, f"{recorded_at} is not later than the write before, {self._at}")
        self._write = row.write if isinstance(row.write, int) else position
        self._at, self._log = recorded_at, log
        self._length = row.length if isinstance(row.length, int) else 1
        self._until = self._write + self._length
        self._frames.clear()
        if log is None or row.kind not in KINDS:
            self._header(row)
        elif log not in self.found.names:
            self.found.names[log] = position
        return leaf_frame(log or "", row.write, recorded_at, row.kind, row.length, row.request, row.origin)

    def _frame(self, row: Row) -> tuple[str, str]:
        if row.kind not in KINDS:
            self._header(row)
        found = leaf_frame(row.log or "", row.write, row.recorded_at, row.kind, origin=row.origin)
        if row.origin is None:
            self._frames[row.kind] = found
        return found

    def _envelope(self, row: Row) -> None:
        wrong = row.entry().shape_fault()
        more = f"the write at {self._write} has {self._length} entries, and this is one more"
        self._wrong("envelope", row.position, wrong[1] if wrong else more)

    def _unlike(self, row: Row) -> None:
        """Return the parts of the envelope in which an entry differs from the others of its write."""
        if row.log != self._log:
            self._wrong("log", row.position, f"the log is {row.log}, and {self._log} in the rest of the write")
        else:
            problem = f"{row.recorded_at} is not the time of the rest of the write, {self._at}"
            self._wrong("recorded_at", row.position, problem)
        self._frames.clear()  # they are spelled for the others

    def _header(self, row: Row) -> None:
        """Return the problem of a header whose leaf is not its hash."""
        if self.found.damage and self.found.damage[-1].position == row.position:
            return  # it is named already
        try:
            wrong = row.entry().shape_fault()
        except (AttributeError, TypeError, ValueError):
            wrong = "leaf", "the header is malformed"
        if wrong is None:
            wrong = "leaf", "the header does not match the leaf's commitment"
        self._wrong(wrong[0], row.position, wrong[1])

    def _half(self, row: Row) -> None:
        nonce = row.nonce
        if nonce is not None and len(nonce) != NONCE_BYTES:
            self._wrong("nonce", row.position, f"the nonce has {len(nonce)} bytes instead of {NONCE_BYTES}")
        else:
            self._wrong("commitment", row.position, "nonce and body do not match the entry's commitment")

    def _absent(self, row: Row) -> None:
        if (row.nonce is None) != (row.body is None):
            gone, left = ("nonce", "body") if row.nonce is None else ("body", "nonce")
            self._wrong(gone, row.position, f"the {gone} is gone and the {left} is not")
            return
        add(self.found.absent, row.position)

    def _erasure(self, row: Row) -> None:
        """Take in the positions that an erasure names."""
        assert row.body is not None and row.log is not None
        value = form.decode(row.body)
        if isinstance(value, dict):
            positions = [(int(first), int(last)) for first, last in value.get("positions", ())]
            naming = Naming(str(value.get("log")), row.log, row.position, row.origin, positions)
            self.found.erasures.append(naming)


def _edge(levels: Sequence[Sequence[bytes]], count: int) -> tuple[bytes, ...]:
    """Return the roots of the complete subtrees over the first `count` leaves, largest first."""
    found = []
    start = 0
    for height in range(count.bit_length() - 1, -1, -1):
        if count >> height & 1:
            found.append(levels[height][start >> height])
            start += 1 << height
    return tuple(found)


def add(ranges: Ranges, position: int) -> None:
    """Add a position after the others."""
    if ranges and ranges[-1][1] == position - 1:
        ranges[-1] = (ranges[-1][0], position)
    else:
        ranges.append((position, position))


def merged(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return sorted ranges, with adjacent ones joined."""
    found: Ranges = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(found[-1][1], last))
        else:
            found.append((first, last))
    return found


def outside(ranges: Ranges, others: Ranges) -> Iterator[int]:
    """Yield the first position of each range that is in none of the others; both are sorted and merged."""
    at = 0
    for first, last in ranges:
        position = first
        while position <= last:
            while at < len(others) and others[at][1] < position:
                at += 1
            if at == len(others) or others[at][0] > position:
                yield position
                break
            position = others[at][1] + 1


class Joined(NamedTuple):
    """A whole log, from the stretches it was checked in."""

    size: int
    frontier: Frontier
    names: dict[str, int]
    observations: int
    damage: list[Damage]
    upper: list[list[bytes]]
    """The roots of complete subtrees above the parts, by height from that of a part on."""
    stretches: list[Checked]
    absent: Ranges
    """Positions without a body."""

    def root_at(self, size: int) -> bytes:
        """Return the root over the first `size` entries, one of the requested sizes."""
        whole, rest = divmod(size, PART)
        parts = [root for stretch in self.stretches for root in stretch.roots]
        at: tuple[bytes, ...] = ()
        if rest:
            inner = {known: found for stretch in self.stretches for known, found in stretch.at.items()}
            at = inner[size] if size in inner else self.stretches[-1].rest
        return Frontier(size, (*_frontier(parts[:whole]), *at)).root()


def joined(stretches: Iterable[Checked]) -> Joined:
    """Join stretches, which follow each other, into one log."""
    ordered = sorted(stretches, key=lambda stretch: stretch.start)
    size = ordered[-1].end if ordered else 0
    parts = [root for stretch in ordered for root in stretch.roots]
    rest = ordered[-1].rest if ordered else ()
    damage = [found for stretch in ordered for found in stretch.damage]
    names: dict[str, int] = {}
    for stretch in ordered:
        for name, first in stretch.names.items():
            names.setdefault(name, first)
    absent = merged(one for stretch in ordered for one in stretch.absent)
    lawful, owed = _erased(ordered, names, size)
    damage += [
        Damage("body", position, "nonce and body are gone, and no erasure names the position")
        for position in outside(absent, lawful)
    ]
    damage += [
        Damage("erasure", position, "an erasure names the position, but the body is there")
        for position in outside(owed, absent)
    ]
    upper = [parts]
    while len(upper[-1]) > 1:
        level = upper[-1]
        upper.append([node_hash(level[at], level[at + 1]) for at in range(0, len(level) - 1, 2)])
    return Joined(
        size,
        Frontier(size, (*_frontier(parts), *rest)),
        names,
        sum(stretch.observations for stretch in ordered),
        sorted(damage, key=lambda found: found.position)[:DAMAGES_MAX],
        upper,
        ordered,
        absent,
    )


def _erased(stretches: Sequence[Checked], names: Mapping[str, int], size: int) -> tuple[Ranges, Ranges]:
    """Return the positions that may lack a body, and the positions that must lack it.

    An erasure of another log may name positions here that it removed, or that an equal erasure of this log did.
    """
    begins = sorted(names.values())

    def reach(log: str) -> int | None:
        first = names.get(log)
        return None if first is None else next((start for start in begins if start > first), size) - 1

    lawful: Ranges = []
    owed: Ranges = []
    for of, log, position, origin, positions in (one for stretch in stretches for one in stretch.erasures):
        found = erasure.named(positions, of, log, position, origin, reach)
        lawful += found
        if origin is None:
            owed += found
    return merged(lawful), merged(owed)


def _frontier(parts: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the roots of the complete subtrees over some parts."""
    return Frontier().grow(parts)[0].roots if parts else ()


def against(log: Joined, held: Iterable[Held]) -> list[Damage]:
    """Return the damage that external checkpoints reveal: the log is truncated, rewritten, or another one."""
    found: list[Damage] = []
    agreed = 0
    for checkpoint in sorted(held, key=lambda one: one.size):
        size = checkpoint.size
        if checkpoint.origin is not None and log.size and checkpoint.origin not in log.names:
            names = ", ".join(sorted(log.names))
            problem = f"the checkpoint of size {size} is of {checkpoint.origin}, and this log is {names}"
            found.append(Damage("origin", agreed, problem))
        elif size > log.size:
            problem = f"a checkpoint covers {size} entries, and the log has {log.size}"
            found.append(Damage("truncated", log.size, problem))
        elif log.root_at(size) != checkpoint.root:
            last = f"one of {agreed} to {size - 1}" if size - agreed > 1 else f"{agreed}"
            problem = f"a checkpoint of size {size} has another root: {last} has changed since"
            found.append(Damage("forked", agreed, problem))
            break  # all later checkpoints depend on the changed part
        else:
            agreed = size
    return found


def canonical(kind: str, body: bytes) -> bool:
    """Return True if a body is in canonical form; the content of a source may have any form."""
    if kind == "source":
        return True
    try:
        return form.is_canonical(body, form.decode(body))
    except ValueError:
        return False
