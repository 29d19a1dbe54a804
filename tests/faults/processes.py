"""What the fault tests share: writing processes, and what must be true of a file whatever became of them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tests.faults import writer

from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.read import Reader
from woodrat.log import tree
from woodrat.log.entry import Entry
from woodrat.merge import BUILTIN
from woodrat.state.asof import AsOf
from woodrat.testing.ledgers import fold_at, kept_of, ledger_on, same_state

FULL: Final = os.environ.get("WOODRAT_FAULTS", "quick") == "full"
"""Whether to run the long profile."""
PATIENCE: Final = 60.0
"""Seconds a process may take for what normally takes less than one."""
ROOT: Final = Path(__file__).parents[2]
TENANT: Final = TenantId("default")


class Writing:
    """A writing process, and what it has acknowledged."""

    def __init__(self, file: Path, name: str, *arguments: str) -> None:
        self.name = name
        self.acknowledged: list[tuple[int, int]] = []
        """Numbers of writes, and positions after them."""
        self._changed = threading.Condition()
        self._said: set[str] = set()
        self._ended = False
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.writer", str(file), name, *arguments],
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            with self._changed:
                if line.endswith("\n") and line[0].isdigit():
                    number, position = line.split()
                    self.acknowledged.append((int(number), int(position)))
                self._said.add(line.strip())
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def heard(self, word: str) -> None:
        """Wait until the process has said a word."""
        self._wait(lambda: word in self._said)

    def acknowledges(self, count: int) -> None:
        """Wait until the process has acknowledged so many writes."""
        self._wait(lambda: len(self.acknowledged) >= count)

    def _wait(self, come: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: come() or self._ended, PATIENCE)
            assert come(), f"{self.name} ended or said nothing: {self._stderr() if self._ended else 'it still runs'}"

    def _stderr(self) -> str:
        return self._process.stderr.read() if self._process.stderr is not None else ""

    def go(self) -> None:
        """Let it write."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """Let it finish the write it is at, and end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._listener.join(PATIENCE)
        assert self._process.wait(PATIENCE) == 0, self._stderr()

    def kill(self) -> None:
        """End it at once, and hear all it still had said."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self._listener.join(PATIENCE)
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            assert pipe is not None
            with suppress(BrokenPipeError):  # a word to it that was never read
                pipe.close()


@contextmanager
def writing(file: Path, *names: str) -> Iterator[list[Writing]]:
    """Run writing processes; they are ready, wait for `go`, and are gone afterwards."""
    running: list[Writing] = []
    try:
        running.extend(Writing(file, name) for name in names)
        for each in running:
            each.heard("ready")
        yield running
    finally:
        for each in running:
            each.kill()


def check_log(engine: Engine) -> None:
    """Assert that positions have no gap, every write is whole, and the tree is that of the entries."""
    with engine.view(TENANT) as view:
        entries = list(view.entries())
        assert [entry.position for entry in entries] == list(range(len(entries))), "a gap or a position used twice"
        _check_writes(entries)
        head = view.head()
        leaves = list(view.leaves(head.size))
    assert head.size == len(entries)
    for entry in entries:
        entry.check()
    assert leaves == [entry.leaf() for entry in entries], "a leaf is not that of its entry"
    assert head.frontier.root() == tree.root(leaves), "the frontier is not that of the leaves"


def _check_writes(entries: Sequence[Entry]) -> None:
    """Assert that every write is whole, and later than the one before."""
    at = 0
    while at < len(entries):
        first = entries[at]
        assert first.envelope.write == at, f"entry {at} begins no write"
        length = first.envelope.length
        assert length is not None, f"the write at {at} has no length"
        following = entries[at : at + length]
        assert len(following) == length, f"the write at {at} has {len(following)} of {length} entries"
        assert all(entry.envelope.write == at for entry in following), f"the write at {at} holds entries of another"
        assert {entry.recorded_at for entry in following} == {first.recorded_at}
        at += length
    times = [entry.recorded_at for entry in entries if entry.envelope.length is not None]
    assert times == sorted(set(times)), "the log's clock went back"


def check_derived(engine: Engine) -> None:
    """Assert that everything derived is what a fold from nothing gives."""
    ledger = ledger_on(engine, TENANT)
    with engine.view(TENANT) as view:
        reader = Reader(view, AsOf(view.head().position), BUILTIN)
        for ref in view.entities(None, reader.asof.position):
            kept, rules = kept_of(view, ref, reader.asof.position), reader.rules(ref.type)
            assert kept is not None, f"no state is kept of {ref}"
            fresh = fold_at(view, kept.state.members, rules, kept.position)
            assert same_state(kept.state, fresh, rules), f"the state kept of {ref} is not what its observations fold to"
        entries = list(view.entries(kinds={"observation", "schema"}))
    copy = ledger_on(InMemoryEngine())
    if entries:
        copy.admit([(entry.kind, entry.body) for entry in entries if entry.body is not None])
    whole = ledger.at("now").fingerprint()
    assert ledger.fingerprint() == whole, "the fingerprint kept up to date is not that of the state"
    assert copy.fingerprint() == whole, "the state is not what the observations fold to elsewhere"
    assert copy.fingerprint(provenance=True) == ledger.fingerprint(provenance=True)


def check_acknowledged(engine: Engine, name: str, acknowledged: Iterable[tuple[int, int]]) -> None:
    """Assert that every acknowledged write of a process is there once, at its position."""
    with engine.view(TENANT) as view:
        head = view.head().position
        for number, position in acknowledged:
            ref = Ref("memo", writer.marker(name, number))
            found = view.observations(ref.digest, BEFORE_ALL, head)
            assert len(found) == 1, f"write {number} of {name} was acknowledged and is there {len(found)} times"
            entry = view.entry(found[0].position)
            assert entry is not None
            first = view.entry(entry.envelope.write)
            assert first is not None
            assert first.envelope.length is not None
            assert first.position + first.envelope.length - 1 == position, f"write {number} of {name} stands elsewhere"
            assert view.receipt(name, f"key-{name}-{number}") is not None, "a receipt is missing"
