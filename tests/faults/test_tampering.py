"""Tampering: whoever can write to the file can change anything, and `verify` finds it and names the first bad position.

Each case changes a copy of one file through a connection that knows no rules. Cases end as they would if the one who
tampers were careful: triggers are put back. What leaves no trace in the file is found against a checkpoint.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final, TypeVar

import apsw
import pytest
from tests.faults.processes import FULL
from tests.faults.rambling import ramble

from woodrat import Corrupt, Refused, Unavailable, Verified
from woodrat.canon import form, moment
from woodrat.canon.ids import Position
from woodrat.cli.main import main
from woodrat.engines import codec
from woodrat.engines.node import NODE_STEP
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.structure import Structure
from woodrat.ledger.comparison import Comparison
from woodrat.log import check as log_check
from woodrat.log import tree
from woodrat.log.check import Walk
from woodrat.log.entry import Entry, Envelope, commitment
from woodrat.merge.elements import INSIDE_MAX
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import answers, ledger_on, log_of, spelled, tell
from woodrat.verify import index as verify_index
from woodrat.verify import reader as verify_reader
from woodrat.verify import verbs as verify_verbs

LEDGERS: Final = 100 if FULL else 6
"""How many untouched ledgers are verified."""
FLIPS: Final = 2_000 if FULL else 50
"""How many single bits are flipped, each in a file of its own."""
FLIPS_AT_ONCE: Final = 25
"""How many of them one process flips before it is given more."""
ASKED_EVERY: Final = 10
"""Of so many files whose rows are all the same, one is asked everything all the same."""


class File:
    """A ledger's file, open to anyone."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._raw: apsw.Connection | None = None

    @contextmanager
    def open(self) -> Iterator[File]:
        """Open the file without our rules; triggers are gone while it is open."""
        self._raw = raw = apsw.Connection(str(self.path))
        triggers = list(raw.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY rowid"))
        for name, _ in triggers:
            raw.execute(f"DROP TRIGGER {name}")
        try:
            yield self
        finally:
            for _, text in triggers:
                raw.execute(text)
            raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raw.close()
            self._raw = None

    def run(self, statement: str, *values: Any) -> list[Any]:
        """Run a statement."""
        assert self._raw is not None
        return list(self._raw.execute(statement, values))

    def one(self, statement: str, *values: Any) -> Any:
        """Return the first value of the first row."""
        return self.run(statement, *values)[0][0]

    def id(self, position: int, tenant: str = "default") -> int:
        """Return the id of a position."""
        return codec.base(self.one("SELECT id FROM tenant WHERE name = ?", tenant)) + position

    def entry(self, position: int) -> Entry:
        """Return an entry, unchecked."""
        row = self.run(
            "SELECT log.name, recorded_at, kind, write, length, request, commitment, nonce, body FROM entry "
            "JOIN log ON log.id = entry.log JOIN body USING (id) WHERE entry.id = ?",
            self.id(position),
        )[0]
        name, at, kind, write, length, request, promise, nonce, body = row
        time, envelope = moment.from_micros(at), Envelope(write, length, request)
        return Entry(name, Position(position), time, codec.KINDS[kind], envelope, promise, nonce, body)

    def rechain(self, *positions: int) -> None:
        """Make commitments and leaves of some entries fit their rows, and the subtrees the leaves."""
        for position in positions:
            nonce, body = self.run("SELECT nonce, body FROM body WHERE id = ?", self.id(position))[0]
            self.run("UPDATE entry SET commitment = ? WHERE id = ?", commitment(nonce, body), self.id(position))
            self.run("UPDATE entry SET leaf = ? WHERE id = ?", self.entry(position).leaf(), self.id(position))
        self.replant()

    def replant(self) -> None:
        """Make the subtrees fit the leaves."""
        low, high = self.id(0), self.id((1 << codec.TENANT_BITS) - 1)
        leaves = [row[0] for row in self.run("SELECT leaf FROM entry WHERE id BETWEEN ? AND ? ORDER BY id", low, high)]
        tenant = low >> codec.TENANT_BITS
        self.run("DELETE FROM node WHERE tenant = ?", tenant)
        _, ended = tree.Frontier().grow(leaves)
        for height in range(NODE_STEP, len(ended), NODE_STEP):
            for place, root in enumerate(ended[height]):
                self.run("INSERT INTO node VALUES (?, ?, ?, ?)", tenant, height, place, root)

    def first(self, condition: str, table: str = "said") -> int:
        """Return the first position of a row that fulfils a condition."""
        low, high = self.id(0), self.id((1 << codec.TENANT_BITS) - 1)
        found = self.one(f"SELECT min(id) FROM {table} WHERE id BETWEEN ? AND ? AND {condition}", low, high)
        return int(found) - low

    @property
    def size(self) -> int:
        """How many entries the tenant has."""
        low, high = self.id(0), self.id((1 << codec.TENANT_BITS) - 1)
        return int(self.one("SELECT count(*) FROM entry WHERE id BETWEEN ? AND ?", low, high))


class Letters:
    """Counts of letters as vectors: an embedder that every install has."""

    id, dimension = "letters-1", 26

    def embed(self, texts: Sequence[str]) -> list[list[int]]:
        return [[min(text.lower().count(letter), 100) for letter in ascii_lowercase] for text in texts]


def told(path: Path) -> None:
    """Tell a story that fills every table, on a new file with two tenants."""
    engine, clock = SqliteEngine(path), FixedClock()
    other = ledger_on(engine, "other", "a", FixedClock(seed="other"))
    a, b = (ledger_on(engine, "default", agent, clock) for agent in "ab")
    for _ in tell(a, b):
        pass
    for number in range(12):
        record = {"entity_type": "contact", "name": "Long", "city": f"City {number}"}
        (a if number % 3 else b).store(record, idempotency_key=f"k{number}")
        other.store(record)
    with a.run("Is Long near?", subject="contact/Long", inputs={"amount": 7}) as run:
        run.show("contact/Long")
        rules = [{"chosen": "near", "when": {"amount": {"lt": 10}}, "label": "Little"}]
        run.decide("nearness", {"amount": run.input("amount")}, rules, default="far")
        run.answer("It is near.")
    a.store([{"entity_type": "memo", "id": f"{number}", "text": f"note {number}"} for number in range(6)])
    a.schemas.register({"title": "box", "properties": {"things": {"type": "array", "x-woodrat-merge": "union"}}})
    a.store({"entity_type": "box", "id": "large", "things": [f"thing {number}" for number in range(INSIDE_MAX + 1)]})
    for number in range(9):
        a.store({"entity_type": "box", "id": "large", "things": [f"one more {number}", "thing 1"]})
    a.fingerprint()
    a.search("long")
    a.query(where={"city": "City 1"})
    a.recall("Is Long near?", embedder=Letters())
    a.reindex(Letters())
    a.impact(a.observations("contact/Long").items[-1].observation.id)
    a.store({"entity_type": "memo", "id": "last", "text": "the last one"})
    engine.close()


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story, told once."""
    path = tmp_path_factory.mktemp("told") / "l.db"
    told(path)
    return path


@pytest.fixture
def file(story: Path, tmp_path: Path) -> File:
    """A copy of the story's file."""
    shutil.copy(story, tmp_path / "l.db")
    return File(tmp_path / "l.db")


def verified(file: File, **given: Any) -> Verified:
    """Verify the file's default tenant, read-only."""
    engine = SqliteEngine(file.path, readonly=True)
    try:
        return ledger_on(engine, "default").verify(**given)
    finally:
        engine.close()


def checkpoint(file: File, size: int | None = None) -> tuple[int, str]:
    """Return what a checkpoint of the file, held elsewhere, says."""
    engine = SqliteEngine(file.path, readonly=True)
    with engine.view(ledger_on(engine, "default").tenant) as view:
        leaves = view.leaves(view.head().size if size is None else size)
    engine.close()
    return len(leaves), tree.root(leaves).hex()


Case = Callable[[File], int | None]
"""Tampers with a file, and returns the first bad position where there is one."""
LOG: Final[dict[str, tuple[str, Case]]] = {}
"""What is done to the log: the class of damage it is found as, and how it is done."""
DERIVED: Final[dict[str, tuple[str, Case]]] = {}
"""The same of what is derived."""
P: Final = 20
"""A position in the middle."""


How = TypeVar("How", bound=Case)


def case(where: dict[str, tuple[str, Case]], damage: str) -> Callable[[How], How]:
    """Note a way to tamper under its name."""

    def note(how: How) -> How:
        where[how.__name__] = (damage, how)
        return how

    return note


# The log


@case(LOG, "commitment")
def edit_body(file: File) -> int:
    file.run("UPDATE body SET body = CAST(replace(body, 'a', 'b') AS BLOB) WHERE id = ?", file.id(P))
    return P


@case(LOG, "commitment")
def edit_nonce(file: File) -> int:
    file.run("UPDATE body SET nonce = randomblob(16) WHERE id = ?", file.id(P))
    return P


@case(LOG, "nonce")
def move_a_byte_from_nonce_to_body(file: File) -> int:
    nonce, body = file.run("SELECT nonce, body FROM body WHERE id = ?", file.id(P))[0]
    file.run("UPDATE body SET nonce = ?, body = ? WHERE id = ?", nonce[:-1], nonce[-1:] + body, file.id(P))
    return P


@case(LOG, "nonce")
def forget_a_nonce(file: File) -> int:
    file.run("UPDATE body SET nonce = NULL WHERE id = ?", file.id(P))
    return P


@case(LOG, "body")
def forget_nonce_and_body(file: File) -> int:
    file.run("UPDATE body SET nonce = NULL, body = NULL WHERE id = ?", file.id(P))
    return P


@case(LOG, "body")
def drop_a_body(file: File) -> int:
    file.run("DELETE FROM body WHERE id = ?", file.id(P))
    return P


@case(LOG, "leaf")
def edit_leaf(file: File) -> int:
    file.run("UPDATE entry SET leaf = randomblob(32) WHERE id = ?", file.id(P))
    return P


@case(LOG, "leaf")
def edit_commitment(file: File) -> int:
    file.run("UPDATE entry SET commitment = randomblob(32) WHERE id = ?", file.id(P))
    return P


@case(LOG, "leaf")
def edit_kind(file: File) -> int:
    at = file.first("kind = 1", "entry")
    file.run("UPDATE entry SET kind = 6 WHERE id = ?", file.id(at))
    return at


@case(LOG, "kind")
def edit_kind_to_none_there_is(file: File) -> int:
    file.run("UPDATE entry SET kind = 99 WHERE id = ?", file.id(P))
    return P


@case(LOG, "leaf")
def edit_time_of_a_write(file: File) -> int:
    first = file.first("length > 1", "entry")
    file.run("UPDATE entry SET recorded_at = recorded_at + 1 WHERE write = ? AND id >= ?", first, file.id(0))
    return first


@case(LOG, "recorded_at")
def edit_time_of_one_entry(file: File) -> int:
    first = file.first("length > 1", "entry")
    file.run("UPDATE entry SET recorded_at = recorded_at + 1 WHERE id = ?", file.id(first + 1))
    return first + 1


@case(LOG, "recorded_at")
def turn_back_the_clock(file: File) -> int:
    at = file.first("length = 1 AND id % 1024 > 20", "entry")
    file.run("UPDATE entry SET recorded_at = recorded_at - 86400000000 WHERE id = ?", file.id(at))
    file.rechain(at)
    return at


@case(LOG, "leaf")
def edit_request(file: File) -> int:
    at = file.first("length = 1", "entry")
    file.run("UPDATE entry SET request = randomblob(32) WHERE id = ?", file.id(at))
    return at


@case(LOG, "envelope")
def edit_write(file: File) -> int:
    at = file.first("length = 1 AND id % 1024 > 20", "entry")
    file.run("UPDATE entry SET write = write - 1 WHERE id = ?", file.id(at))
    return at


@case(LOG, "envelope")
def cut_a_write_in_two(file: File) -> int:
    first = file.first("length > 1", "entry")
    file.run("UPDATE entry SET length = 1 WHERE id = ?", file.id(first))
    file.rechain(first)
    return first + 1


@case(LOG, "envelope")
def swap_two_entries(file: File) -> int:
    one, two = file.id(P), file.id(P + 6)
    for table in ("entry", "body"):
        file.run(f"UPDATE {table} SET id = -1 WHERE id = ?", one)
        file.run(f"UPDATE {table} SET id = ? WHERE id = ?", one, two)
        file.run(f"UPDATE {table} SET id = ? WHERE id = -1", two)
    return P


@case(LOG, "leaf")
def swap_two_entries_of_a_write(file: File) -> int:
    first = file.first("length > 3", "entry")
    one, two = file.id(first + 1), file.id(first + 2)
    for table in ("entry", "body"):
        file.run(f"UPDATE {table} SET id = -1 WHERE id = ?", one)
        file.run(f"UPDATE {table} SET id = ? WHERE id = ?", one, two)
        file.run(f"UPDATE {table} SET id = ? WHERE id = -1", two)
    return first + 1


@case(LOG, "commitment")
def swap_two_bodies(file: File) -> int:
    one, two = file.id(P), file.id(P + 3)
    file.run("UPDATE body SET id = -1 WHERE id = ?", one)
    file.run("UPDATE body SET id = ? WHERE id = ?", one, two)
    file.run("UPDATE body SET id = ? WHERE id = -1", two)
    return P


@case(LOG, "position")
def drop_one(file: File) -> int:
    for table in ("entry", "body"):
        file.run(f"DELETE FROM {table} WHERE id = ?", file.id(P))
    return P


@case(LOG, "position")
def drop_the_first(file: File) -> int:
    for table in ("entry", "body"):
        file.run(f"DELETE FROM {table} WHERE id = ?", file.id(0))
    return 0


@case(LOG, "unowned")
def drop_a_header_at_the_end(file: File) -> int:
    last = file.size - 1
    file.run("DELETE FROM entry WHERE id = ?", file.id(last))
    return last


@case(LOG, "truncated")
def drop_the_tail(file: File) -> int:
    first, end = file.first("length IS NOT NULL AND id % 1024 > 60", "entry"), file.size
    for table in ("entry", "body"):
        file.run(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", file.id(first), file.id(end))
    return first


@case(LOG, "envelope")
def drop_the_end_of_a_write(file: File) -> int:
    first, end = file.first("length > 5", "entry"), file.size
    for table in ("entry", "body"):
        file.run(f"DELETE FROM {table} WHERE id BETWEEN ? AND ?", file.id(first + 2), file.id(end))
    return first + 2


def append_copy(file: File, position: int, tenant: str = "default") -> int:
    """Append a copy of an entry, as a write of its own."""
    end = file.size
    for table, columns in (
        ("entry", "log, recorded_at, kind, write, length, request, commitment, leaf"),
        ("body", "nonce, body"),
    ):
        values = [file.id(end), file.id(position, tenant)]
        file.run(f"INSERT INTO {table} (id, {columns}) SELECT ?, {columns} FROM {table} WHERE id = ?", *values)
    return end


@case(LOG, "repeated")
def duplicate(file: File) -> int:
    at = file.first("length = 1 AND kind = 1", "entry")
    end = append_copy(file, at)
    last = file.one("SELECT recorded_at FROM entry WHERE id = ?", file.id(end - 1))
    file.run("UPDATE entry SET write = ?, recorded_at = ? WHERE id = ?", end, last + 1, file.id(end))
    file.rechain(end)
    return end


@case(LOG, "repeated")
def duplicate_with_its_index(file: File) -> int:
    at = file.first("length = 1 AND kind = 1", "entry")
    end = duplicate(file)
    entity, digest = file.run("SELECT entity, digest FROM said WHERE id = ?", file.id(at))[0]
    last = file.one("SELECT last FROM entity WHERE id = ?", entity)
    file.run("INSERT INTO said VALUES (?, ?, ?, ?)", file.id(end), entity, last, digest)
    file.run("UPDATE entity SET last = ? WHERE id = ?", end, entity)
    return end


@case(LOG, "envelope")
def append_another_tenants_entry(file: File) -> int:
    return append_copy(file, 3, "other")


@case(LOG, "leaf")
def take_another_tenants_entry(file: File) -> int:
    at = 3
    columns = "recorded_at, kind, write, length, request, commitment, leaf"
    names = columns.split(", ")
    values = file.run(f"SELECT {columns} FROM entry WHERE id = ?", file.id(at, "other"))[0]
    nonce, body = file.run("SELECT nonce, body FROM body WHERE id = ?", file.id(at, "other"))[0]
    ours = file.run(f"SELECT {columns} FROM entry WHERE id = ?", file.id(at))[0]
    keep = {"recorded_at", "write", "length", "request"}
    chosen = [ours[i] if name in keep else values[i] for i, name in enumerate(names)]
    file.run(f"UPDATE entry SET {', '.join(f'{n} = ?' for n in names)} WHERE id = ?", *chosen, file.id(at))
    file.run("UPDATE body SET nonce = ?, body = ? WHERE id = ?", nonce, body, file.id(at))
    return at


@case(LOG, "log")
def put_an_entry_under_another_log(file: File) -> int:
    first = file.first("length > 1", "entry")
    other = file.one("SELECT log FROM entry WHERE id = ?", file.id(0, "other"))
    file.run("UPDATE entry SET log = ? WHERE id = ?", other, file.id(first + 1))
    return first + 1


@case(LOG, "leaf")
def rename_the_log(file: File) -> int:
    number = file.one("SELECT log FROM entry WHERE id = ?", file.id(0))
    file.run("UPDATE log SET name = 'log_other' WHERE id = ?", number)
    return 0


@case(LOG, "truncated")
def speak_of_a_position_beyond_the_end(file: File) -> int:
    end = file.size
    file.run("INSERT INTO index_row VALUES (?, 'field', X'FE', ?, X'')", file.id(0) >> 40, end + 3)
    return end


@case(LOG, "unowned")
def drop_the_tenant(file: File) -> None:
    file.run("DELETE FROM tenant WHERE name = 'default'")


@case(LOG, "unowned")
def leave_a_body_behind_the_end(file: File) -> int:
    end = file.size
    file.run("INSERT INTO body VALUES (?, randomblob(16), X'7B7D')", file.id(end))
    return end


@case(LOG, "canonical")
def spell_a_body_otherwise(file: File) -> int:
    at = file.first("kind = 1", "entry")
    body = file.one("SELECT body FROM body WHERE id = ?", file.id(at))
    file.run("UPDATE body SET body = ? WHERE id = ?", body.replace(b",", b", ", 1), file.id(at))
    file.rechain(at)
    return at


@case(LOG, "canonical")
def spell_a_runs_body_otherwise(file: File) -> int:
    at = file.first(f"kind = {codec.NUMBERS['run.started']}", "entry")
    body = file.one("SELECT body FROM body WHERE id = ?", file.id(at))
    file.run("UPDATE body SET body = ? WHERE id = ?", body.replace(b",", b", ", 1), file.id(at))
    file.rechain(at)
    return at


@case(LOG, "body")
def say_nothing_in_a_schema(file: File) -> int:
    at = file.first(f"kind = {codec.NUMBERS['schema']}", "entry")
    file.run("UPDATE body SET body = ? WHERE id = ?", b"[]", file.id(at))
    file.rechain(at)
    return at


def receipt_position(file: File) -> int:
    report = file.one("SELECT report FROM receipt WHERE key = 'k3'")
    return int(form.decode(report)["positions"][0])


@case(LOG, "receipt")
def edit_a_receipts_request(file: File) -> int:
    file.run("UPDATE receipt SET request = randomblob(32) WHERE key = 'k3'")
    return receipt_position(file)


@case(LOG, "receipt")
def give_a_receipt_another_key(file: File) -> int:
    at = receipt_position(file)
    file.run("UPDATE receipt SET key = 'mine' WHERE key = 'k3'")
    return at


@case(LOG, "receipt")
def break_a_receipt(file: File) -> None:
    file.run("UPDATE receipt SET report = X'7B' WHERE key = 'k3'")


@case(LOG, "file")
def zero_a_page_of_the_log(file: File) -> None:
    file.run("PRAGMA wal_checkpoint(TRUNCATE)")
    page = file.one("SELECT rootpage FROM sqlite_schema WHERE name = 'entry'")
    size = file.one("PRAGMA page_size")
    with open(file.path, "r+b") as raw:
        raw.seek((page - 1) * size)
        raw.write(bytes(size))


# What is derived


@case(DERIVED, "state")
def put_an_older_state(file: File) -> int:
    entity, at = file.run("SELECT id, state_at FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)[0]
    file.run("UPDATE entity SET state = (SELECT state FROM kept WHERE entity = ?) WHERE id = ?", entity, entity)
    return int(at)


@case(DERIVED, "state")
def edit_a_state(file: File) -> int:
    entity, at = file.run("SELECT id, state_at FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)[0]
    file.run("UPDATE entity SET state = CAST(replace(state, 'City 11', 'City 12') AS BLOB) WHERE id = ?", entity)
    return int(at)


@case(DERIVED, "state")
def edit_a_state_along_the_history(file: File) -> int:
    entity = file.one("SELECT id FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)
    at = file.one("SELECT position FROM kept WHERE entity = ?", entity)
    file.run("UPDATE kept SET state = CAST(replace(state, 'City', 'Town') AS BLOB) WHERE entity = ?", entity)
    return int(at)


@case(DERIVED, "state")
def edit_an_anchor(file: File) -> int:
    entity = file.one("SELECT id FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)
    at = file.one("SELECT position FROM kept WHERE entity = ?", entity)
    file.run("UPDATE kept SET last = last - 1 WHERE entity = ? AND position = ?", entity, at)
    return int(at)


@case(DERIVED, "entity")
def edit_the_first_of_an_entity(file: File) -> int:
    entity, first = file.run("SELECT id, first FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)[0]
    file.run("UPDATE entity SET first = first + 1 WHERE id = ?", entity)
    return int(first)


@case(DERIVED, "entity")
def edit_until(file: File) -> None:
    file.run("UPDATE entity SET until = '2020-01-01T00:00:00.000000Z' WHERE key = 'Long'")


@case(DERIVED, "index")
def forget_the_last_of_an_entity(file: File) -> int:
    entity, last = file.run("SELECT id, last FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)[0]
    before = file.one("SELECT previous FROM said WHERE id = ?", file.id(last))
    file.run("UPDATE entity SET last = ? WHERE id = ?", before, entity)
    return int(last)


@case(DERIVED, "index")
def edit_a_digest(file: File) -> int:
    file.run("UPDATE said SET digest = digest + 1 WHERE id = ?", file.id(file.first("1")))
    return file.first("1")


@case(DERIVED, "index")
def edit_whom_an_observation_speaks_of(file: File) -> int:
    at = file.first("previous >= 0")
    file.run("UPDATE said SET entity = (SELECT max(id) FROM entity) WHERE id = ?", file.id(at))
    return at


@case(DERIVED, "index")
def skip_one_in_a_history(file: File) -> int:
    _entity, last = file.run("SELECT id, last FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)[0]
    skipped = file.one("SELECT previous FROM said WHERE id = ?", file.id(last))
    before = file.one("SELECT previous FROM said WHERE id = ?", file.id(skipped))
    file.run("UPDATE said SET previous = ? WHERE id = ?", before, file.id(last))
    return int(last)


@case(DERIVED, "index")
def go_round_in_a_history(file: File) -> int:
    at = file.first("previous >= 0")
    file.run("UPDATE said SET previous = ? WHERE id = ?", at, file.id(at))
    return at


@case(DERIVED, "index")
def forget_what_is_named(file: File) -> int:
    at = file.first("1", "naming")
    file.run("DELETE FROM naming WHERE id = ?", file.id(at))
    return at


@case(DERIVED, "index")
def forget_what_came_late(file: File) -> int:
    at = file.first("1", "late")
    file.run("DELETE FROM late WHERE id = ?", file.id(at))
    return at


def forget_first(file: File, index: str) -> int:
    """Take the first row of an index away; return the position it is true from."""
    tenant = file.id(0) >> 40
    at = file.one("SELECT min(since) FROM index_row WHERE name = ? AND tenant = ?", index, tenant)
    file.run("DELETE FROM index_row WHERE name = ? AND tenant = ? AND since = ?", index, tenant, at)
    return int(at)


@case(DERIVED, "index")
def forget_a_source(file: File) -> int:
    return forget_first(file, "source")


@case(DERIVED, "index")
def forget_a_step(file: File) -> int:
    return forget_first(file, "run")


@case(DERIVED, "index")
def forget_what_a_run_is_about(file: File) -> int:
    return forget_first(file, "run_lists")


@case(DERIVED, "index")
def forget_a_schema(file: File) -> int:
    return forget_first(file, "schema")


@case(DERIVED, "index")
def forget_a_relation(file: File) -> int:
    return forget_first(file, "relation")


@case(DERIVED, "index")
def forget_that_two_are_one(file: File) -> int:
    return forget_first(file, "same_as")


@case(DERIVED, "index")
def forget_an_identifying_value(file: File) -> None:
    file.run("DELETE FROM index_row WHERE key = (SELECT max(key) FROM index_row WHERE name = 'sharing')")


@case(DERIVED, "index")
def begin_a_row_of_a_state_too_late(file: File) -> int:
    tenant = file.id(0) >> 40
    key, at = file.run(
        "SELECT key, since FROM index_row WHERE name = 'field' AND tenant = ? ORDER BY since, key LIMIT 1", tenant
    )[0]
    file.run("UPDATE index_row SET since = since + 1 WHERE name = 'field' AND tenant = ? AND key = ?", tenant, key)
    return int(at)


@case(DERIVED, "index")
def end_a_row_of_a_state_too_early(file: File) -> int:
    tenant = file.id(0) >> 40
    key, at = file.run(
        "SELECT key, since FROM index_past WHERE name = 'field' AND tenant = ? AND until > since + 1 "
        "ORDER BY since, key LIMIT 1",
        tenant,
    )[0]
    file.run(
        "UPDATE index_past SET until = until - 1 WHERE name = 'field' AND tenant = ? AND key = ? AND since = ?",
        *(tenant, key, at),
    )
    return int(at)


@case(DERIVED, "surplus")
def leave_a_row_of_a_value_behind(file: File) -> None:
    tenant = file.id(0) >> 40
    key = file.one("SELECT max(key) FROM index_row WHERE name = 'field' AND tenant = ?", tenant)
    file.run("INSERT INTO index_row VALUES (?, 'field', ?, 3, X'')", tenant, key + b"x")


@case(DERIVED, "surplus")
def leave_the_name_of_an_entity_behind(file: File) -> None:
    tenant = file.id(0) >> 40
    file.run("INSERT INTO entity VALUES (NULL, ?, 'contact', 'Erased', 7, -1, -1, '', NULL, NULL)", tenant)


@case(DERIVED, "surplus")
def name_what_is_not_named(file: File) -> None:
    file.run("INSERT INTO naming VALUES (7, ?)", file.id(P))


@case(DERIVED, "surplus")
def keep_a_state_of_nobody(file: File) -> None:
    file.run("INSERT INTO kept VALUES (99999, 1, 1, '', X'5B5D')")


@case(DERIVED, "surplus")
def share_a_value_nobody_has(file: File) -> None:
    key = b"contact\0email\0x@example.com\0Long\0"
    file.run("INSERT INTO index_row VALUES (?, 'sharing', ?, 0, X'')", file.id(0) >> 40, key)


@case(DERIVED, "index")
def forget_an_anchor(file: File) -> int:
    position = int(file.one("SELECT min(position) FROM anchor"))
    file.run("DELETE FROM anchor WHERE position = ?", position)
    return position


@case(DERIVED, "surplus")
def put_in_an_anchor(file: File) -> None:
    file.run("INSERT INTO anchor SELECT id, first + 1 FROM entity WHERE key = 'Long' AND tenant = ?", file.id(0) >> 40)


LARGE: Final = "entity = (SELECT id FROM entity WHERE key = 'large')"


@case(DERIVED, "element")
def edit_an_element(file: File) -> int:
    position = file.one(f"SELECT min(position) FROM element WHERE {LARGE}")
    part = file.one(f"SELECT part FROM element WHERE {LARGE} AND instr(key, CAST('thing 7' AS BLOB))")
    changed = bytes(part).replace(b"true", b"false")
    assert changed != part
    file.run(f"UPDATE element SET part = ? WHERE {LARGE} AND instr(key, CAST('thing 7' AS BLOB))", changed)
    return int(position)


@case(DERIVED, "element")
def edit_an_element_as_it_once_was(file: File) -> int:
    key = file.one(f"SELECT key FROM element WHERE {LARGE} GROUP BY key HAVING count(*) > 3")
    positions = file.run(f"SELECT position FROM element WHERE {LARGE} AND key = ? ORDER BY position", key)
    file.run(f"UPDATE element SET part = NULL WHERE {LARGE} AND key = ? AND position = ?", key, positions[2][0])
    return int(positions[2][0])


@case(DERIVED, "element")
def forget_an_element(file: File) -> int:
    position = file.one(f"SELECT max(position) FROM element WHERE {LARGE}")
    file.run(f"DELETE FROM element WHERE {LARGE} AND position = ? AND instr(key, CAST('one more' AS BLOB))", position)
    return int(position)


@case(DERIVED, "element")
def put_an_element_in(file: File) -> int:
    position = int(file.one(f"SELECT max(position) FROM element WHERE {LARGE}"))
    part = file.one(f"SELECT part FROM element WHERE {LARGE} AND position = ? LIMIT 1", position)
    entity = file.one("SELECT id FROM entity WHERE key = 'large'")
    file.run("INSERT INTO element VALUES (?, 'things', X'05616263', ?, ?)", entity, position, part)
    return position


@case(DERIVED, "element")
def put_an_element_where_there_are_none(file: File) -> None:
    entity = file.one("SELECT min(id) FROM entity WHERE key = 'Long'")
    file.run("INSERT INTO element VALUES (?, 'things', X'0561', 3, X'5B5D')", entity)


@case(DERIVED, "surplus")
def keep_an_element_of_nobody(file: File) -> None:
    file.run("INSERT INTO element VALUES (99999, 'things', X'0561', 1, X'5B5D')")


@case(DERIVED, "state")
def miscount_a_collection(file: File) -> int:
    state = bytes(file.one("SELECT state FROM entity WHERE key = 'large'"))
    assert state.count(b'{"things":[74,') == 1
    file.run("UPDATE entity SET state = ? WHERE key = 'large'", state.replace(b'{"things":[74,', b'{"things":[73,'))
    return int(file.one("SELECT state_at FROM entity WHERE key = 'large'"))


LEAF: Final = "(SELECT max(key) FROM index_row WHERE name = 'fingerprint' AND substr(key, 1, 1) = X'6C')"
"""The last leaf of a fingerprint."""


@case(DERIVED, "fingerprint")
def edit_the_fingerprint(file: File) -> None:
    file.run(f"UPDATE index_row SET value = randomblob(32) WHERE key = {LEAF}")


@case(DERIVED, "fingerprint")
def edit_a_node_of_the_fingerprint(file: File) -> None:
    key = "(SELECT max(key) FROM index_row WHERE name = 'fingerprint' AND substr(key, 1, 1) = X'6E')"
    file.run(f"UPDATE index_row SET value = randomblob(32) WHERE name = 'fingerprint' AND key = {key}")


@case(DERIVED, "fingerprint")
def forget_a_leaf_of_the_fingerprint(file: File) -> None:
    file.run(f"DELETE FROM index_row WHERE key = {LEAF}")


@case(DERIVED, "fingerprint")
def keep_an_old_fingerprint_for_new(file: File) -> None:
    noted = str(file.size - 1).encode()
    file.run("UPDATE meta SET value = ? WHERE name = 'fingerprint' AND tenant = ?", noted, file.id(0) >> 40)


@case(DERIVED, "tree")
def edit_a_subtree(file: File) -> int:
    file.run("UPDATE node SET hash = randomblob(32) WHERE place = 1 AND height = 4 AND tenant = ?", file.id(0) >> 40)
    return 16


@case(DERIVED, "tree")
def forget_a_subtree(file: File) -> int:
    file.run("DELETE FROM node WHERE place = 2 AND height = 4 AND tenant = ?", file.id(0) >> 40)
    return 32


@case(DERIVED, "index")
def rewrite_a_body_and_all_above_it(file: File) -> int:
    at = file.first("kind = 1", "entry")
    body = file.one("SELECT body FROM body WHERE id = ?", file.id(at))
    changed = body.replace(b'"priority":', b'"priority":1', 1)
    file.run("UPDATE body SET body = ? WHERE id = ?", changed, file.id(at))
    file.rechain(at)
    return at


@case(DERIVED, "layout")
def put_in_a_table(file: File) -> None:
    file.run("CREATE TABLE mine (x)")


DEEP: Final[dict[str, tuple[str, Case]]] = {}
"""What only a deep verification compares."""


@case(DEEP, "search")
def edit_a_word(file: File) -> None:
    file.run("DELETE FROM index_row WHERE name = 'word' AND substr(key, 1, 4) = CAST('long' AS BLOB)")


@case(DERIVED, "index")
def forget_a_row_of_an_index(file: File) -> None:
    first = file.one("SELECT min(since) FROM index_row WHERE name = 'traces'")
    file.run("DELETE FROM index_row WHERE since = ? AND name = 'traces'", first)


@case(DERIVED, "surplus")
def add_a_row_to_an_index(file: File) -> None:
    file.run("INSERT INTO index_row VALUES (?, 'traces', X'00', 1, X'00')", file.id(0) >> 40)


@case(DEEP, "vectors")
def edit_a_vector(file: File) -> int:
    at = file.one("SELECT min(since) FROM index_row WHERE name LIKE 'recall/%'")
    file.run("UPDATE index_row SET value = zeroblob(length(value)) WHERE since = ? AND name LIKE 'recall/%'", at)
    return int(at)


def done(file: File, how: Case) -> int | None:
    """Tamper with a file; return the first bad position."""
    with file.open():
        return how(file)


@pytest.mark.parametrize("name", LOG)
def test_damage_to_the_log_is_found(file: File, name: str) -> None:
    """Whatever is done to the log is found as damage of its class, and the first bad position is named."""
    damage, how = LOG[name]
    position = done(file, how)
    found = verified(file)
    assert found.log_damaged
    assert found.damage[0].log
    worst = [one for one in found.damage if one.log and (position is None or one.position == position)]
    assert damage in {one.damage for one in worst}, found.damage
    assert found.first == position
    assert all("restore" in one.remedy for one in found.damage if one.log)


@pytest.mark.parametrize("name", DERIVED)
def test_stale_derived_data_is_found(file: File, name: str) -> None:
    """Whatever is done to derived data is found as that, the log counts as sound, and the remedy is a rebuild."""
    damage, how = DERIVED[name]
    position = done(file, how)
    found = verified(file)
    assert not found.log_damaged
    assert not found.sound
    assert damage in {one.damage for one in found.damage}, found.damage
    if position is not None:
        assert found.first == position
    assert all("rebuild" in one.remedy or "new file" in one.remedy for one in found.damage)


@pytest.mark.parametrize("name", DEEP)
def test_a_deep_verification_compares_search_and_indexes(file: File, name: str) -> None:
    """What is done to indexes that trail the log is found by a deep verification, and only by that."""
    damage, how = DEEP[name]
    position = done(file, how)
    assert verified(file).sound
    found = verified(file, deep=True, embedder=Letters())
    assert not found.log_damaged
    assert {one.damage for one in found.damage} >= {damage}
    if position is not None:
        assert found.first == position


def test_there_are_many_ways_to_tamper() -> None:
    """The suite knows at least 25 ways to change a log, and as many to change what is derived from it."""
    assert len(LOG) >= 25
    assert len(DERIVED) >= 25


@pytest.mark.parametrize("name", [name for name, (damage, _) in DERIVED.items() if damage != "layout"])
def test_a_rebuild_is_the_remedy_for_derived_data(file: File, name: str) -> None:
    """After a rebuild nothing is found, whatever had been done to derived data."""
    done(file, DERIVED[name][1])
    engine = SqliteEngine(file.path)
    ledger = ledger_on(engine, "default")
    ledger.rebuild()
    found = ledger.verify(deep=True)
    engine.close()
    assert found.sound, found.damage


# Against checkpoints


def test_a_rewritten_log_is_found_against_a_checkpoint(file: File) -> None:
    """A log rewritten without a trace, derived data included, has another root than a checkpoint held elsewhere."""
    held = checkpoint(file)
    done(file, rewrite_a_body_and_all_above_it)
    engine = SqliteEngine(file.path)
    ledger_on(engine, "default").rebuild()
    engine.close()
    assert verified(file).sound
    found = verified(file, checkpoints=[held])
    assert [one.damage for one in found.damage] == ["forked"]
    assert found.log_damaged
    assert found.covered == held[0]
    assert found.tail == 0


def test_a_good_checkpoint_narrows_down_a_fork(file: File) -> None:
    """The first bad position of a rewritten log lies after the largest checkpoint that it still agrees with."""
    good, bad = checkpoint(file, 40), checkpoint(file)
    with file.open():
        at = file.first("kind = 1 AND id % 1024 > 50", "entry")
        body = file.one("SELECT body FROM body WHERE id = ?", file.id(at))
        changed = body.replace(b'"priority":', b'"priority":1', 1)
        file.run("UPDATE body SET body = ? WHERE id = ?", changed, file.id(at))
        file.rechain(at)
    found = verified(file, checkpoints=[bad, good])
    assert found.log_damaged
    assert found.damage[0].damage == "forked"
    assert found.first == 40


def test_a_log_cut_short_without_a_trace_is_found_against_a_checkpoint(file: File) -> None:
    """A log whose end was dropped and whose derived data was made again is shorter than a checkpoint says."""
    held = checkpoint(file)
    end = done(file, drop_the_tail)
    with file.open():
        file.run("DELETE FROM receipt")
        file.replant()
    engine = SqliteEngine(file.path)
    ledger_on(engine, "default").rebuild()
    engine.close()
    assert verified(file).sound
    found = verified(file, checkpoints=[held])
    assert [(one.damage, one.position) for one in found.damage] == [("truncated", end)]


def test_checkpoints_of_an_untouched_log_agree(file: File) -> None:
    """Every size of an untouched log has the root that a checkpoint of that size says; the tail is what they leave."""
    size = checkpoint(file)[0]
    held = [checkpoint(file, at) for at in (0, 1, 2, 15, 16, 17, size - 1)]
    found = verified(file, checkpoints=held)
    assert found.sound
    assert found.covered == size - 1
    assert found.tail == 1


# Through the command line


@pytest.mark.parametrize(
    ("name", "code"),
    [("edit_body", 5), ("drop_the_tail", 5), ("edit_a_state", 1), ("edit_the_fingerprint", 1), (None, 0)],
)
def test_the_command_says_what_and_where(
    file: File, name: str | None, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """`woodrat verify` exits with 0, 1 for stale derived data or 5 for a damaged log, and names the first position."""
    position = None
    if name is not None:
        damage, how = {**LOG, **DERIVED}[name]
        position = done(file, how)
    assert main(["verify", "--db", str(file.path), "-o", "json"]) == code
    found = form.parse(capsys.readouterr().out)
    assert isinstance(found, dict)
    assert found["sound"] is (code == 0)
    if position is not None:
        assert found["first"] == position
    assert main(["verify", "--db", str(file.path), "-o", "table"]) == code
    shown = capsys.readouterr().out
    assert ("The ledger is sound" in shown) is (code == 0)
    if name is not None:
        assert damage in shown
        assert "rebuild" in shown or "restore" in shown


@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_found(file: File, share: float, capsys: pytest.CaptureFixture[str]) -> None:
    """A file cut off anywhere is corrupt, whichever command meets it."""
    os.truncate(file.path, int(file.path.stat().st_size * share))
    assert main(["verify", "--db", str(file.path)]) == 5


# Nothing is found where nothing was done


@pytest.mark.parametrize("seed", range(LEDGERS))
def test_an_untouched_ledger_is_sound(tmp_path: Path, seed: int) -> None:
    """A deep verification finds nothing in a ledger that nobody touched, whatever was told, and agrees with it."""
    engine = SqliteEngine(tmp_path / "l.db")
    for ledger in ramble(engine, seed).values():
        found = ledger.verify(deep=True)
        assert found.sound, found.damage
        assert not found.unchecked
        assert found.fingerprint == ledger.at("now").fingerprint()
        assert found.entries == ledger.position + 1
    engine.close()


# A check that is left out misses its damage


def skip(*_: object, **__: object) -> None:
    """Check nothing."""


PLANTED: Final[dict[str, tuple[object, str, Callable[..., Any]]]] = {
    "edit_body": (Walk, "_half", skip),
    "edit_leaf": (Walk, "_header", skip),
    "forget_a_nonce": (Walk, "_absent", skip),
    "forget_nonce_and_body": (log_check, "outside", lambda *_: ()),
    "edit_time_of_one_entry": (Walk, "_unlike", skip),
    "break_a_receipt": (verify_verbs, "check_receipts", lambda *_: []),
    "leave_a_body_behind_the_end": (Structure, "check", skip),
    "put_an_older_state": (Comparison, "states", skip),
    "edit_the_fingerprint": (verify_index, "fingerprint_faults", lambda *_: []),
    "name_what_is_not_named": (Comparison, "_surplus", skip),
    "forget_what_is_named": (Comparison, "table", skip),
    "spell_a_runs_body_otherwise": (log_check, "canonical", lambda *_: True),
    "put_in_a_table": (Structure, "_layout", lambda *_: {}),
    "duplicate_with_its_index": (verify_reader, "repeated", lambda *_: []),
}
"""Checks that are left out, by what they find."""


@pytest.mark.parametrize("name", PLANTED)
def test_each_check_matters(file: File, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A verification without one of its checks misses what that check finds."""
    damage, how = {**LOG, **DERIVED}[name]
    done(file, how)
    assert damage in {one.damage for one in verified(file).damage}
    where, attribute, instead = PLANTED[name]
    monkeypatch.setattr(where, attribute, instead)
    assert damage not in {one.damage for one in verified(file).damage}


# Bits


def content(path: Path) -> bytes:
    """Return all that a file says: the log of both tenants, and every answer."""
    engine = SqliteEngine(path, readonly=True)
    try:
        found: list[bytes] = []
        for tenant in ("default", "other"):
            ledger = ledger_on(engine, tenant)
            found += [spelled(log_of(engine, tenant)), spelled(answers(ledger.at("now")))]
        return b"".join(found)
    finally:
        engine.close()


def rows(path: Path) -> bytes | None:
    """Return the digest of every row of every table of a file, as anybody can read them; none if not all can be."""
    raw, found = apsw.Connection(f"file:{path}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI), []
    try:
        found += list(raw.execute("SELECT * FROM sqlite_schema ORDER BY rowid"))
        for table in [row[1] for row in found if row[0] == "table"]:
            found += [(table, *row) for row in raw.execute(f'SELECT * FROM "{table}"')]
        return hashlib.sha256(repr(found).encode()).digest()
    except (apsw.Error, UnicodeDecodeError):
        return None
    finally:
        raw.close()


def sound(path: Path) -> bool:
    """Return whether both tenants of a file are found to be sound, in depth."""
    engine = SqliteEngine(path, readonly=True)
    try:
        return all(ledger_on(engine, tenant).verify(deep=True).sound for tenant in ("default", "other"))
    finally:
        engine.close()


FOUND, SAYS_SO, SAME, MISSED = "found by verify", "not read", "the same", "missed"


def flip(story: Path, folder: Path, seed: int) -> Counter[str]:
    """Flip single bits, each in a fresh copy of a file, and return what came of how many of them."""
    chance, path = random.Random(seed), folder / f"{seed}.db"
    whole, every, says = story.read_bytes(), rows(story), content(story)
    came: Counter[str] = Counter()
    for number in range(FLIPS_AT_ONCE):
        place, bit = chance.randrange(len(whole)), chance.randrange(8)
        flipped = bytearray(whole)
        flipped[place] ^= 1 << bit
        for beside in ("-wal", "-shm", "-queue"):
            Path(str(path) + beside).unlink(missing_ok=True)
        path.write_bytes(flipped)
        try:
            if not sound(path):
                came[FOUND] += 1
            elif rows(path) == every and number % ASKED_EVERY:
                came[SAME] += 1  # equal rows of sound tables: there is nothing that could be answered otherwise
            elif content(path) == says:
                came[SAME] += 1
            else:
                came[f"{MISSED}: bit {bit} of byte {place}"] += 1
        except (Corrupt, Refused, Unavailable):
            came[SAYS_SO] += 1  # the file says itself that it is damaged
    return came


def test_a_flipped_bit_is_found_or_changes_nothing(
    story: Path, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """Whichever bit of a file is flipped: it is found, or the file says what it said."""
    raw = apsw.Connection(str(story))
    raw.execute("VACUUM")
    raw.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    raw.close()
    seeds = range(FLIPS // FLIPS_AT_ONCE)
    came: Counter[str] = Counter()
    with ProcessPoolExecutor(min(len(seeds), os.cpu_count() or 1), mp_context=get_context("spawn")) as pool:
        for some in pool.map(partial(flip, story, tmp_path), seeds):
            came += some
    for what, count in sorted(came.items()):
        record_property(what, count)
    print(f"{FLIPS} bits flipped:", dict(came))
    assert sum(came.values()) == FLIPS
    assert [what for what in came if what.startswith(MISSED)] == []
    assert came[FOUND] > FLIPS // 10
    assert came[SAME] > FLIPS // 10


def test_flips_that_nobody_finds_are_counted(story: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a verification flips are missed: the regime itself can tell."""
    monkeypatch.setattr(f"{__name__}.sound", lambda path: True)
    monkeypatch.setattr(f"{__name__}.FLIPS_AT_ONCE", 100)
    came = flip(story, tmp_path, 0)
    assert came[FOUND] == 0
    assert any(what.startswith(MISSED) for what in came)


def test_the_root_is_that_of_the_leaves(story: Path) -> None:
    """A checkpoint whose root was worked out apart, from the entries, agrees with the log."""
    engine = SqliteEngine(story, readonly=True)
    with engine.view(ledger_on(engine, "default").tenant) as view:
        leaves = [entry.leaf() for entry in view.entries(through=63)]
    engine.close()
    assert len(leaves) == 64
    assert verified(File(story), checkpoints=[(64, _root(leaves).hex())]).sound


def _root(leaves: list[bytes]) -> bytes:
    """Return the root over a power of two of leaves, as RFC 6962 writes it."""
    if len(leaves) == 1:
        return leaves[0]
    half = len(leaves) // 2
    return hashlib.sha256(b"\x01" + _root(leaves[:half]) + _root(leaves[half:])).digest()
