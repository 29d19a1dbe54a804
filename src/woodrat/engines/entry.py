"""Entry: the tables of the log itself: headers, bodies, origins of what was merged in, names of logs, clones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from heapq import merge
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

from woodrat.canon import moment
from woodrat.engines import codec
from woodrat.engines.node import NODE_STEP, Nodes
from woodrat.engines.records import BEFORE_ALL, Head, KindedBody
from woodrat.engines.tables import Tables, WritableTables, damaged
from woodrat.log.entry import NONCE_BYTES, Entry, Origin, Write, commitment
from woodrat.log.tree import Frontier

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.log.check import Row

END_MAX = 16
"""How many entries at the end of a log are looked at before the first write to it."""


class Entries(Tables):
    """Reading of the log."""

    def head(self) -> Head:
        """Return the end of the log."""
        found = self.memory.head
        if found is None:
            row = self.first_row("last_entry", **self.bounds())
            if row is None:
                found = Head(None, 0, None, Frontier)
            else:
                size = row[0] - self.base + 1
                found = Head(row[1], size, moment.from_micros(row[2]), lambda: Frontier.at(Nodes(self), size))
            self.memory.head = found
        return found

    def entry(self, position: int) -> Entry | None:
        """Return one entry."""
        if position < 0:
            return None
        row = self.first_row("entries", **self.bounds(position - 1, position))
        return None if row is None else self._read(row)

    def bodies(self, positions: Collection[int], kinds: Collection[str] | None = None) -> Mapping[int, KindedBody]:
        """Return kind and body of the entries at some positions, found in one look; those erased are left out."""
        base = self.base
        sought = [base + position for position in sorted(set(positions)) if position >= 0]
        found: dict[int, KindedBody] = {}
        if sought:
            for id, number, committed, nonce, body in self.select(
                "bodies_at", ids=self.many_of(sought), **self.bounds()
            ):
                kind = codec.KINDS[number]
                if kinds is not None and kind not in kinds:
                    continue
                if type(nonce) is not bytes or len(nonce) != NONCE_BYTES or commitment(nonce, body) != committed:
                    raise damaged(id - base, "body")
                found[id - base] = kind, body
        return found

    def entries(
        self, after: int = BEFORE_ALL, through: int | None = None, kinds: Collection[str] | None = None
    ) -> Iterator[Entry]:
        """Yield entries in order of position."""
        if kinds is None or "observation" in kinds:
            for row in self.stream("entries", max(after, BEFORE_ALL), through):
                if kinds is None or codec.KINDS[row[3]] in kinds:
                    yield self._read(row)
            return
        # Who follows a kind asks at every write, and mostly there is nothing new.
        newer = [kind for kind in kinds if self._latest(kind) > after]
        if not newer:
            return
        first = max(after, BEFORE_ALL)
        rows = [self.stream("entries_of_kind", first, through, kind=codec.NUMBERS[kind]) for kind in newer]
        for row in rows[0] if len(rows) == 1 else merge(*rows):
            yield self._read(row)

    def _latest(self, kind: str) -> int:
        """Return the position of the last entry of a rare kind; the one before all without any."""
        found = self.memory.latest.get(kind)
        if found is None:
            last = self.value("last_of_kind", kind=codec.NUMBERS[kind], **self.bounds())
            found = self.memory.latest[kind] = BEFORE_ALL if last is None else int(last) - self.base
        return found

    def _read(self, row: tuple[Any, ...]) -> Entry:
        """Return the entry of a row, if its body is what was once written."""
        found = codec.entry(row, self.base)
        if found.body is not None and (
            found.nonce is None
            or len(found.nonce) != NONCE_BYTES
            or commitment(found.nonce, found.body) != found.commitment
        ):
            raise damaged(found.position, "body")
        return found

    def leaves(self, size: int) -> Sequence[bytes]:
        """Return the leaf hashes of the first `size` entries."""
        return [row[0] for row in self.select("leaves", **self.bounds(BEFORE_ALL, size - 1))]

    def nodes(self) -> Nodes:
        """Return what knows the roots of the log's complete subtrees, for proofs; good while the view is open."""
        return Nodes(self)

    def rows(self, after: int, through: int) -> Iterator[Row]:
        """Yield the log as it is stored, in order of position; nothing of it is checked."""
        from woodrat.log.check import Row

        base, kinds = self.base, codec.KINDS
        logs = dict(map(tuple, self.select("logs")))
        micros: object = None
        at = ""
        make = tuple.__new__  # as `Row` itself does, without a call between
        first = max(after, BEFORE_ALL)
        came = iter(self.select("origins", **self.bounds(first, through)))
        from_elsewhere = next(came, None)
        for row in self.stream("rows", first, through):
            id, log, time, kind, write, length, request, promise, leaf, nonce, body = row
            if time != micros:
                micros, at = time, codec.moment_of(time)
            named = kinds[kind] if type(kind) is int and 0 <= kind < len(kinds) else f"number {kind}"
            origin = None
            if from_elsewhere is not None:
                while from_elsewhere is not None and from_elsewhere[0] < id:
                    from_elsewhere = next(came, None)
                if from_elsewhere is not None and from_elsewhere[0] == id:
                    origin = Origin(logs.get(from_elsewhere[1], ""), from_elsewhere[2])
            name = logs.get(log)
            yield make(Row, (id - base, name, at, named, write, length, request, promise, leaf, nonce, body, origin))

    def extent(self) -> int:
        """Return how many entries there are as stored: the position of the last, and one."""
        (row,) = self.comparing("last_id", **self.bounds())
        return 0 if row[0] is None else int(row[0]) - self.base + 1

    def body_bytes(self) -> int:
        """Return how many bytes the bodies of all entries have."""
        (row,) = self.comparing("log_bytes", **self.bounds())
        return int(row[0])

    def cloned(self) -> int:
        """Return the position through which the log was taken over from another ledger, as it was; before all if not.

        While that is the end of the log, the next write begins under a new log name.
        """
        if self.memory.cloned is None:
            found = self.value("cloned", **self.bounds())
            self.memory.cloned = BEFORE_ALL if found is None else int(found) - self.base
        return self.memory.cloned

    def merged(self, log: str, through: int) -> tuple[int, int] | None:
        """Return which entry of another log, that position or the one nearest below it, came in here, and where.

        None where nothing of it that far was merged in, or the log ends before `through` as far as is known here.
        """
        row = self.first_row("merged", log=log, through=through, **self.bounds())
        if row is None or self.value("merged_beyond", log=log, through=through, **self.bounds()) is None:
            return None
        return row[0], row[1] - self.base

    def position_at(self, moment_: str) -> int:
        """Return the last position recorded at or before a moment; the one before all if there is none."""
        wanted = moment.to_micros(moment_)
        return bisect_right(_Times(self, self.head().size), wanted) - 1


class EntryWrites(WritableTables, Entries):
    """Writing of the log."""

    _sound: set[TenantId]
    """Tenants whose log was found sound at its end since the engine was made."""

    def _check_end(self) -> None:
        """Refuse to build on a log whose end is not what was written: its last write, and the last complete subtrees.

        However long the log or its last write, this costs about the same.
        """
        size = self.head().size
        last = self.entry(size - 1)
        if last is None:
            return
        begun = last.envelope.write
        first = self.entry(begun)
        if first is None or first.envelope.length != size - begun:
            raise damaged(begun, "write")
        start = max(begun, size - END_MAX)
        for position, (entry, leaf) in enumerate(
            zip(self.entries(start - 1), self.leaves_between(start, size), strict=True), start
        ):
            if entry.position != position or entry.leaf() != leaf:
                raise damaged(position, "leaf")
        Nodes(self).check_last(size)

    def append_entries(self, writes: Sequence[Write]) -> int:
        """Add writes at the end of the log, one after the other; return how many entries they have."""
        head = self.head()
        if self.name not in self._sound:
            self._check_end()
            self._sound.add(self.name)
        size, recorded_at = head.size, head.recorded_at
        for write in writes:
            assert write.first == size, "entries are appended without a gap"
            assert recorded_at is None or write.recorded_at > recorded_at, "the log's clock never goes back"
            size, recorded_at = size + len(write.kinds), write.recorded_at
        if self.number is None:
            self.enrol()
        if len(writes) == 1:
            (write,) = writes
            headers: Iterable[tuple[Any, ...]] = self._headers(write)
            leaves, kinds, bodies, nonces = write.leaves, write.kinds, write.bodies, write.nonces
        else:
            headers = chain.from_iterable(map(self._headers, writes))
            leaves = [leaf for write in writes for leaf in write.leaves]
            kinds = [kind for write in writes for kind in write.kinds]
            bodies = [body for write in writes for body in write.bodies]
            nonces = [nonce for write in writes for nonce in write.nonces]
        ids = range(self.base + head.size, self.base + size)
        self.many("add_entry", headers)
        self.many("add_body", zip(ids, nonces, bodies, strict=True))
        for write in writes:
            if write.origins is not None:
                came = [(at, origin) for at, origin in enumerate(write.origins, write.first) if origin is not None]
                rows = [(self.base + at, self._log(origin.log), origin.position) for at, origin in came]
                self.many("add_origin", rows)
        frontier = self.grow(head.frontier, leaves)
        self.memory.head = Head(writes[-1].log, size, recorded_at, frontier)
        latest = self.memory.latest
        for kind in [kind for kind in latest if kind in kinds] if latest else ():
            del latest[kind]
        return size - head.size

    def _headers(self, write: Write) -> Iterable[tuple[Any, ...]]:
        """Return the rows of a write that its leaves were made of."""
        count, start = len(write.kinds), self.base + write.first
        if count == 1:
            log, recorded_at, kind = self._log(write.log), moment.to_micros(write.recorded_at), write.kinds[0]
            parts = (codec.NUMBERS[kind], write.first, 1, write.request, write.commitments[0], write.leaves[0])
            return ((start, log, recorded_at, *parts),)
        return zip(
            range(start, start + count),
            repeat(self._log(write.log)),
            repeat(moment.to_micros(write.recorded_at)),
            map(codec.NUMBERS.__getitem__, write.kinds),
            repeat(write.first),
            chain((count,), repeat(None, count - 1)),
            chain((write.request,), repeat(None, count - 1)),
            write.commitments,
            write.leaves,
        )

    def _log(self, name: str) -> int:
        """Return the number of a log's name."""
        found = self.memory.logs.get(name)
        if found is None:
            known = self.value("log", name=name)
            found = self.memory.logs[name] = int(self.value("add_log", name=name) if known is None else known)
        return found

    def note_clone(self) -> None:
        """Note that the log as it is now was taken over from another ledger."""
        head = self.head()
        assert head.log is not None, "there is something to have been taken over"
        self.run("add_clone", id=self.base + head.position, log=self._log(head.log))
        self.memory.cloned = head.position

    def grow(self, frontier: Frontier, leaves: Sequence[bytes]) -> Frontier:
        """Grow the tree, and keep the roots of the complete subtrees that these leaves end."""
        grown, ended = frontier.grow(leaves)
        if len(ended) > NODE_STEP:
            rows = [
                (self.tenant_number, height, (frontier.size >> height) + index, root)
                for height in range(NODE_STEP, len(ended), NODE_STEP)
                for index, root in enumerate(ended[height])
            ]
            self.many("add_node", rows)
        return grown

    def leaves_between(self, start: int, end: int) -> list[bytes]:
        """Return some leaf hashes."""
        return [row[0] for row in self.select("leaves", **self.bounds(start - 1, end - 1))]


class _Times:
    """The log's times by position, for a search by halves."""

    def __init__(self, view: Entries, size: int) -> None:
        self._view, self._size = view, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        return int(self._view.value("recorded_at", id=self._view.base + position))
