"""A disk that remembers: every write, flush, creation and removal in order, and what a power cut could leave of them.

`Recorder` is a way to the disk for SQLite that notes what passes, and fails where it is told to. `Crashes` reads such
a record forwards and builds the states a power cut could leave at each point of it:

- all: everything that was written;
- synced: only what a flush had made durable by then;
- mixed: that, and any subset of what was written since, the last write torn.

A flush makes durable what was written to its file before. The first flush of a new journal or write-ahead log also
makes the folder durable, as SQLite flushes it then; names change in order, as on file systems that keep a journal.
Shared memory is lost. Bytes that no write reached are zeros, or noise.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

import apsw

SECTOR: Final = 512
"""Where most disks tear a write; others tear it anywhere."""
NOISE: Final = 0xA5
"""What may stand in a file where nothing was written yet."""
WRITE, TRUNCATE, SYNC, FAILED_SYNC = "write", "truncate", "sync", "failed sync"
LINK, UNLINK, BEGUN, ACKNOWLEDGED = "link", "unlink", "begun", "acknowledged"
JOURNALS: Final = ("-journal", "-wal")

_numbers = itertools.count()


class Op(NamedTuple):
    """One thing that happened."""

    kind: str
    """What."""
    file: int = -1
    """To which file; one that is deleted and made again is another file."""
    name: str = ""
    """Its name."""
    at: int = 0
    """Where it was written, or the length it was cut to; whether the folder was flushed, for a removal."""
    data: bytes = b""
    """What was written."""


class Recorder(apsw.VFS):
    """A way to the disk that notes all that passes; `fault` may raise in place of an operation."""

    def __init__(self, *, drops_syncs: bool = False) -> None:
        self.name = f"recorder-{os.getpid()}-{next(_numbers)}"
        self.log: list[Op] = []
        self.files: dict[str, int] = {}
        self.fault: Callable[[str, str], None] = lambda kind, name: None
        self.drops_syncs = drops_syncs
        """A planted fault: flushes do nothing, and say that they did."""
        super().__init__(self.name, "")

    def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        assert path is not None, "nothing is written to nameless files"
        short = os.path.basename(path)
        opened = _File(self, name, short, flags)  # fails, if it must, before anything is noted
        if short not in self.files:
            self.files[short] = len(self.log)
            self.log.append(Op(LINK, self.files[short], short))
        opened.number = self.files[short]
        return opened

    def xDelete(self, filename: str, syncdir: bool) -> None:
        short = os.path.basename(filename)
        self.fault(UNLINK, short)
        super().xDelete(filename, syncdir)
        self.log.append(Op(UNLINK, self.files.pop(short), short, int(syncdir)))

    def mark(self, kind: str) -> None:
        """Note that a write of the ledger has begun, or was acknowledged."""
        self.log.append(Op(kind))


class _File(apsw.VFSFile):
    number = -1

    def __init__(self, disk: Recorder, name: str | apsw.URIFilename | None, short: str, flags: list[int]) -> None:
        self._disk, self._name = disk, short
        super().__init__("", name, flags)

    def _note(self, kind: str, at: int = 0, data: bytes = b"") -> None:
        self._disk.log.append(Op(kind, self.number, self._name, at, data))

    def xWrite(self, data: bytes, offset: int) -> None:
        self._disk.fault(WRITE, self._name)
        super().xWrite(data, offset)
        self._note(WRITE, offset, bytes(data))

    def xTruncate(self, newsize: int) -> None:
        self._disk.fault(TRUNCATE, self._name)
        super().xTruncate(newsize)
        self._note(TRUNCATE, newsize)

    def xSync(self, flags: int) -> None:
        try:
            self._disk.fault(SYNC, self._name)
        except BaseException:
            # The system gave up on what it was to keep, and will not say so again.
            self._note(FAILED_SYNC)
            raise
        if not self._disk.drops_syncs:
            super().xSync(flags)
            self._note(SYNC)


def failure(kind: type[apsw.Error], result: int) -> apsw.Error:
    """Return an error as SQLite itself would raise it."""
    error = kind("the disk failed")
    vars(error).update(result=result & 0xFF, extendedresult=result)
    return error


@dataclass
class State:
    """What a power cut could leave."""

    how: str
    """all, synced or mixed."""
    files: dict[str, bytes | bytearray]
    """Content by name."""
    key: tuple[object, ...]
    """Equal for equal states."""

    def put(self, folder: Path) -> None:
        """Make the folder look so."""
        for path in folder.iterdir():
            path.unlink()
        for name, content in self.files.items():
            (folder / name).write_bytes(content)


@dataclass
class Crashes:
    """A record read forwards, up to some point at which the power is cut."""

    chance: random.Random
    begun: int = 0
    """How many writes of the ledger had begun."""
    acknowledged: int = 0
    """How many of them were acknowledged."""
    _at: int = 0
    _flushed: int = 0
    _durable: dict[int, bytearray] = field(default_factory=dict)
    _pending: dict[int, list[tuple[int, Op]]] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)
    _renaming: list[Op] = field(default_factory=list)
    _fresh: set[int] = field(default_factory=set)

    def read(self, op: Op) -> None:
        """Let one more thing happen."""
        self._at += 1
        match op.kind:
            case "write" | "truncate":
                self._pending.setdefault(op.file, []).append((self._at, op))
            case "sync":
                content = self._durable.setdefault(op.file, bytearray())
                for _, done in self._pending.pop(op.file, ()):
                    _apply(content, done, 0)
                self._flushed = self._at
                if op.file in self._fresh:
                    self._flush_folder()
            case "failed sync":
                self._pending.pop(op.file, None)
            case "link":
                self._renaming.append(op)
                if op.name.endswith(JOURNALS):
                    self._fresh.add(op.file)
            case "unlink":
                self._renaming.append(op)
                if op.at:
                    self._flush_folder()
            case "begun":
                self.begun += 1
            case "acknowledged":
                self.acknowledged += 1

    def _flush_folder(self) -> None:
        for op in self._renaming:
            _rename(self._names, op)
        self._renaming.clear()
        self._fresh.clear()
        self._flushed = self._at

    def all(self) -> State:
        """Everything written is there."""
        return self._state("all", dict(self._pending), len(self._renaming))

    def synced(self) -> State:
        """Only what was flushed is there."""
        return self._state("synced", {}, 0)

    def mixed(self) -> State:
        """What was flushed is there, and some of what was written since; the last of it is torn."""
        chance = self.chance
        share = chance.choice((0.1, 0.5, 0.9, 1.0))
        chosen: dict[int, list[tuple[int, Op]]] = {}
        for file, ops in self._pending.items():
            # A share of all up to some point: a prefix, if the share is one.
            some = [one for one in ops[: chance.randrange(len(ops) + 1)] if chance.random() < share]
            if some:
                chosen[file] = some
        torn = None
        if chosen:
            file = max(chosen, key=lambda file: chosen[file][-1][0])
            number, op = chosen[file][-1]
            if op.kind == WRITE:
                length = chance.randrange(len(op.data) + 1)
                torn = length - length % SECTOR if chance.random() < 0.5 else length
                chosen[file][-1] = number, op._replace(data=op.data[:torn])
        return self._state(
            "mixed", chosen, chance.randrange(len(self._renaming) + 1), torn, noise=chance.choice((0, NOISE))
        )

    def _state(
        self, how: str, chosen: dict[int, list[tuple[int, Op]]], renamed: int, torn: int | None = None, noise: int = 0
    ) -> State:
        names = dict(self._names)
        for op in self._renaming[:renamed]:
            _rename(names, op)
        files: dict[str, bytes | bytearray] = {}
        picked: list[int] = []
        noisy = False
        for name, file in sorted(names.items()):
            content: bytes | bytearray = self._durable.get(file, b"")
            if chosen.get(file):
                content = bytearray(content)
                for number, op in chosen[file]:
                    noisy |= _apply(content, op, noise) and noise > 0
                    picked.append(number)
            files[name] = content
        return State(how, files, (self._flushed, self.acknowledged, self.begun, tuple(picked), torn, renamed, noisy))


def _rename(names: dict[str, int], op: Op) -> None:
    if op.kind == LINK:
        names[op.name] = op.file
    else:
        names.pop(op.name, None)


def _apply(content: bytearray, op: Op, noise: int) -> bool:
    """Change the content of a file; return whether bytes came into it that nobody wrote."""
    gap = op.at - len(content) if op.data or op.kind == TRUNCATE else 0
    if op.kind == TRUNCATE:
        del content[op.at :]
        content.extend(bytes(max(gap, 0)))
    elif op.data:
        content.extend(bytes([noise]) * gap)
        content[op.at : op.at + len(op.data)] = op.data
    return gap > 0 and op.kind == WRITE


def cuts(log: list[Op], chance: random.Random) -> Iterator[Crashes]:
    """Yield the record up to each of its points, the first and the last included."""
    crashes = Crashes(chance)
    yield crashes
    for op in log:
        crashes.read(op)
        yield crashes
