"""The SQLite engine: views and transactions over one file.

A transaction is one `BEGIN IMMEDIATE`; what it appended and what was derived from it are committed together. Writers
of one process queue in the order they came; writers of several processes take turns at a gate beside the file,
because SQLite's own lock serves whoever asks most often.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache, partial
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any

import apsw
import orjson

from woodrat.canon import moment
from woodrat.canon.ids import Ref, TenantId, id_of
from woodrat.engines import elements
from woodrat.engines.port import BEFORE_ALL, KEPT_EVERY, Glance, Head, Kept, Meaning, Receipt
from woodrat.engines.sqlite import codec
from woodrat.engines.sqlite.connection import (
    WAL_PAGES,
    check_place,
    check_version,
    connect,
    erasing,
    is_purged,
    pid,
    prepare,
    purge,
    queries,
    secure,
    translated,
    translation,
)
from woodrat.engines.sqlite.fence import Fence
from woodrat.engines.sqlite.gate import Gate
from woodrat.engines.sqlite.glancing import Glancing
from woodrat.engines.sqlite.stamping import Stamps
from woodrat.engines.sqlite.together import Part, Together
from woodrat.errors import Corrupt, Unavailable
from woodrat.log.entry import NONCE_BYTES, Entry, Origin, Write, commitment
from woodrat.log.tree import Frontier, node_hash
from woodrat.runs.step import Step, step_of
from woodrat.state import fingerprint, merge, observation, schema
from woodrat.state.merge import MergeState, Rules
from woodrat.state.observation import RETRACT, Observation
from woodrat.state.policy.elements import Gathered, Parts
from woodrat.state.policy.packing import UNREADABLE, garbled
from woodrat.state.relation import SAME_AS, endpoints
from woodrat.state.schema import Schema
from woodrat.state.source import source_digest
from woodrat.views.asof import AsOf, Stored

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.engines.port import Audit, Engine, View
    from woodrat.log.checking import Row
    from woodrat.state.tokens import Words

ENTITIES_MAX = 10_000
"""How many entities of a tenant a connection keeps at hand, with their merge states."""
LARGE_BYTES = 8_192
"""From which size on an entity's merge state, packed, is not kept at hand once it was used."""
NAMED_MAX = 100_000
"""How many named observations of a tenant are held at hand; beyond that each is looked up."""
SCHEMAS_MAX = 1_024
"""How many schemas a process keeps parsed."""
NAMES_MAX = 4_096
"""How many sets of fields a process keeps spelled."""
FILES = ("", "-wal", "-shm", "-journal", "-queue")
"""What the names of the files of a database end in: the file itself, those of SQLite beside it, and ours."""
END_MAX = 16
"""How many entries at the end of a log are looked at before the first write to it."""
NODE_STEP = 4
"""Roots of complete subtrees are kept at every so many levels; those between are made from 16 below."""


class SqliteEngine:
    """Logs of any number of tenants in one file."""

    name = "sqlite"

    def __init__(self, path: str | os.PathLike[str], *, readonly: bool = False, vfs: str | None = None) -> None:
        check_version()
        self.path = os.fspath(path)
        self.readonly = readonly
        check_place(self.path)
        self.queries = queries()
        self._process = pid()
        self.gate = Gate(self.path)
        self._idle: list[_Connected] = []
        self._pool = threading.Lock()
        self._closed = self._writing = False
        self._vfs = vfs
        self._stamps = Stamps(self.path) if vfs is None else None
        self.fence = Fence(self.path)
        self.sound: set[TenantId] = set()
        """Tenants whose log was found sound at its end since the file was opened."""
        self._wal_pages = 0
        self.shared: Together | None = None
        with translated(self.path):
            self._writer = _Connected(connect(self.path, readonly=readonly, vfs=vfs))
            prepare(self._writer.connection, self.path, readonly=readonly)
            if not readonly and not is_purged(self._writer.connection):
                self.purge()  # whoever erased did not live to see the end of it
        self._writer.connection.set_wal_hook(self._grown)

    def elsewhere(self) -> Callable[[], Engine]:
        return partial(SqliteEngine, os.path.abspath(self.path), readonly=True)

    def view(self, tenant: TenantId) -> _Viewing:
        self._check()
        return _Viewing(self, tenant)

    def glance_back(self, tenant: TenantId, entity: Ref, position: int | None, effective: str | None) -> Glance | None:
        if self._closed or self._process != pid():
            self._check()
        try:
            reader = self.take()
            try:
                looking = reader.looking or reader.glancing(self.queries)
                return looking.look_back(tenant, entity, position, effective)
            finally:
                self.give_back(reader)
        except UnicodeEncodeError:
            return None
        except apsw.Error as error:
            raise translation(error, self.path) or error from error

    def glance(self, tenant: TenantId, entity: Ref | str) -> Glance | None:
        if self._closed or self._process != pid():
            self._check()
        try:
            reader = self.take()
            try:
                return (reader.looking or reader.glancing(self.queries)).look(tenant, entity)
            finally:
                self.give_back(reader)
        except UnicodeEncodeError:
            return None  # half a surrogate pair: no name has one, and a view says so
        except apsw.Error as error:
            raise translation(error, self.path) or error from error

    def stamp(self) -> bytes | None:
        self._check()
        return None if self._stamps is None else self._stamps.now()

    def transaction(self, tenant: TenantId) -> _Writing | Part:
        self._check_writable()
        shared = self.shared
        if shared is not None and shared.is_mine():
            return shared.part(tenant)
        return _Writing(self, tenant)

    def together(self) -> Together:
        self._check_writable()
        return Together(self, self.opening)

    def tenants(self) -> list[str]:
        self._check()
        reader = self.take()
        try:
            with translated(self.path):
                return [row[0] for row in reader.connection.execute(self.queries["tenants"])]
        finally:
            self.give_back(reader)

    def opening(self, writer: _Connected, tenant: TenantId) -> SqliteTransaction:
        """Return what one write goes through."""
        return SqliteTransaction(writer, self.queries, tenant, writer.remember(tenant), self.sound)

    def _check_writable(self) -> None:
        self._check()
        if self.readonly:
            raise Unavailable(f"{self.path} was opened read-only. Nothing was written. Open it for writing.")

    def purge(self) -> bool:
        self._check()
        if self.readonly:
            return self.purged()
        with translated(self.path), self.gate.turn():
            writer = self.take_writer()
            try:
                return purge(writer.connection, self.path)
            finally:
                self.give_back_writer()

    def purged(self) -> bool:
        with self.view(TenantId("")) as view:
            return view.purged()

    def files(self, tenant: TenantId) -> Sequence[str]:
        with self.view(tenant) as view:
            if view.shares():
                return ()
        real = os.path.realpath(self.path)
        return [path for suffix in FILES if os.path.isfile(path := real + suffix)]

    def close(self) -> None:
        with self._pool:
            if not self._closed:
                self._closed = True
                self.gate.close()
                if self._process == pid():
                    self._close_idle()
                    if not self._writing:
                        self._writer.connection.close()

    def _check(self) -> None:
        if self._closed:
            raise Unavailable("The ledger is closed. Nothing was written. Open it again.")
        if self._process != pid():
            raise Unavailable(
                f"{self.path} was opened before this process was forked. Nothing was written. "
                "Open the ledger again in each process."
            )

    def take(self) -> _Connected:
        """Return a connection to read by, for one view at a time."""
        try:
            return self._idle.pop()
        except IndexError:
            return _Connected(connect(self.path, readonly=True, vfs=self._vfs))

    def give_back(self, reader: _Connected) -> None:
        """Keep a connection for the next view; once the engine is closed, close it too."""
        # Taking from a list and adding to it need no lock, and whoever closes comes after or is seen here.
        self._idle.append(reader)
        if self._closed:
            self._close_idle()

    def _close_idle(self) -> None:
        try:
            while True:
                self._idle.pop().connection.close()
        except IndexError:
            pass

    def take_writer(self) -> _Connected:
        """Return the connection to write by, to the one whose turn it is."""
        with self._pool:
            self._check()
            self.fence.check()
            self._writing = True
            return self._writer

    def give_back_writer(self) -> None:
        """Let the next writer have the connection; once the engine is closed, close it."""
        with self._pool:
            self._writing = False
            if self._closed:
                self._writer.connection.close()

    def _grown(self, connection: apsw.Connection, name: str, pages: int) -> int:
        """Take note of the length of the write-ahead log, after each commit."""
        self._wal_pages = pages
        return apsw.SQLITE_OK

    def take_over(self) -> None:
        """Take the write-ahead log over into the file, if it is long; what cannot be now can after the next write."""
        if self._wal_pages >= WAL_PAGES:
            try:
                self._writer.connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_PASSIVE)
            except apsw.Error as error:
                self.fence.watch(error, self._writer.connection)


class _Viewing:
    """A view while it lasts."""

    __slots__ = ("_engine", "_memory", "_reader", "_tenant")

    def __init__(self, engine: SqliteEngine, tenant: TenantId) -> None:
        self._engine, self._tenant = engine, tenant

    def __enter__(self) -> SqliteView:
        engine = self._engine
        try:
            self._reader = reader = engine.take()
            try:
                reader.connection.execute("BEGIN")
                self._memory = memory = reader.remember(self._tenant)
                return SqliteView(reader.connection, engine.queries, self._tenant, memory)
            except BaseException:
                self._leave()
                raise
        except apsw.Error as error:
            raise translation(error, engine.path) or error from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if len(self._memory.entities) > ENTITIES_MAX or self._memory.large:
            self._memory.trim()
        try:
            self._leave()
        except apsw.Error as late:
            error = error or late
        if error is not None and isinstance(error, apsw.Error):
            ours = translation(error, self._engine.path)
            if ours is not None:
                raise ours from error

    def _leave(self) -> None:
        try:
            self._reader.connection.execute("ROLLBACK")
        except apsw.SQLError:
            pass  # an error has ended it already
        finally:
            self._engine.give_back(self._reader)


class _Writing:
    """A transaction while it lasts."""

    __slots__ = ("_engine", "_tenant", "_turn", "_write", "_writer")
    _write: SqliteTransaction | None

    def __init__(self, engine: SqliteEngine, tenant: TenantId) -> None:
        self._engine, self._tenant = engine, tenant
        self._write = None

    def __enter__(self) -> SqliteTransaction:
        engine = self._engine
        self._turn = engine.gate.turn()
        self._turn.__enter__()
        try:
            self._writer = writer = engine.take_writer()
            try:
                writer.cursor.execute("BEGIN IMMEDIATE")
                self._write = engine.opening(writer, self._tenant)
                return self._write
            except BaseException as error:
                engine.fence.watch(error, writer.connection)
                self._undo()
                engine.give_back_writer()
                raise
        except BaseException as error:
            self._turn.__exit__(None, None, None)
            ours = translation(error, engine.path) if isinstance(error, apsw.Error) else None
            if ours is None:
                raise
            raise ours from error

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            try:
                assert self._write is not None, "it was entered"
                if error is None:
                    self._write.flush()
                    self._writer.cursor.execute("COMMIT")
                    self._write.trim()
                    self._engine.take_over()
                else:
                    self._undo()
            except BaseException as late:
                error = late
                self._undo()
                raise
            finally:
                try:
                    if self._write is not None and self._write.erased:
                        secure(self._writer.connection, on=False)
                    self._engine.fence.watch(error, self._writer.connection)
                    self._engine.give_back_writer()
                finally:
                    self._turn.__exit__(None, None, None)
        except apsw.Error as late:
            raise translation(late, self._engine.path) or late from late
        if isinstance(error, apsw.Error) and (ours := translation(error, self._engine.path)) is not None:
            raise ours from error

    def _undo(self) -> None:
        self._writer.undo(self._write, "ROLLBACK")


class _Connected:
    """A connection, and what is known through it as long as no other connection writes."""

    def __init__(self, connection: apsw.Connection) -> None:
        self.connection = connection
        self.cursor = connection.cursor()
        """For statements that are done with once they return; a new cursor for each would cost half as much again."""
        self._version: object = None
        self._memory: dict[TenantId, _Memory] = {}
        self.looking: Glancing | None = None
        """What looks at entities through it, once something did."""

    def glancing(self, named: dict[str, str]) -> Glancing:
        """Return what looks at entities through this connection."""

        def schemas(tenant: TenantId) -> dict[str, tuple[int, Schema]]:
            return SqliteView(self.connection, named, tenant, _Memory()).schemas_in_force()

        self.looking = Glancing(self.connection, named, schemas)
        return self.looking

    def remember(self, tenant: TenantId) -> _Memory:
        """Return what is known of a tenant; nothing when someone else has written since."""
        version = self.cursor.execute("PRAGMA data_version").get
        if version != self._version:
            self._memory.clear()
            self._version = version
        found = self._memory.get(tenant)
        if found is None:
            found = self._memory[tenant] = _Memory()
        return found

    def undo(self, write: SqliteTransaction | None, *statements: str) -> None:
        """Undo a write that failed; one that changed nothing leaves what is known as it is."""
        if write is None or write.has_changed:
            self.forget()
        for statement in statements:
            # A full disk and the like end the whole transaction by themselves; then there is nothing to go back to.
            if not self.connection.getautocommit():
                self.connection.execute(statement)

    def forget(self) -> None:
        """Forget everything: what was known may not have come to be."""
        self._memory.clear()


class _Known:
    """One entity as the tables hold it, or will once the transaction ends."""

    __slots__ = ("at", "first", "last", "number", "packed", "ref", "state", "until")

    def __init__(
        self, number: int, ref: Ref, first: int, last: int, until: str, at: int | None, packed: bytes | None
    ) -> None:
        self.number, self.ref, self.first, self.last, self.until = number, ref, first, last, until
        self.at = at
        """The position its merge state is true for."""
        self.packed = packed
        """Its merge state, until someone needs it."""
        self.state: MergeState | None = None


class _Memory:
    """What is known of a tenant as long as nobody else writes to the file."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.number: int | None = None
        self.schemas: dict[str, list[tuple[int, Schema]]] | None = None
        self.winning: dict[str, Schema] = {}
        """The highest of the schemas of a type, once it was asked for."""
        self.joins: bool | None = None
        """Whether any `same_as` was ever said."""
        self.fingerprint: tuple[int, fingerprint.Tree] | None = None
        self.entities: OrderedDict[bytes, _Known] = OrderedDict()
        self.large: set[bytes] = set()
        """Those of them that are too large to stay."""
        self.named: set[int] | frozenset[int] | None = None
        """What observations name in `replaces`, by the beginning of the digest, unless it is too much to hold."""
        self.names_many = False
        self.logs: dict[str, int] = {}
        self.cloned: int | None = None
        self.latest: dict[str, int] = {}
        """Position of the last entry of a rare kind, once it was asked for; the one before all without any."""

    def forget(self) -> None:
        """Forget what is derived."""
        self.schemas = self.joins = self.fingerprint = self.named = None
        self.entities.clear()
        self.large.clear()

    def trim(self) -> None:
        """Forget the entities used least recently, beyond a bound, and all that are large."""
        while self.large:
            self.entities.pop(self.large.pop(), None)
        while len(self.entities) > ENTITIES_MAX:
            self.entities.popitem(last=False)


class _Rows:
    """The parts of one collection as they were after a position.

    They are read through the connection, which outlasts the view: what is known of entities stays with it. No row as of
    a position changes while that counts.
    """

    __slots__ = ("_entity", "_field", "_named", "_position", "_run")

    def __init__(
        self, run: Callable[..., apsw.Cursor], named: dict[str, str], entity: int, position: int, field: str
    ) -> None:
        self._run, self._named = run, named
        self._entity, self._position, self._field = entity, position, field

    def get(self, key: bytes, /) -> bytes | None:
        """Return a part as it was packed."""
        found: bytes | None = self._run(self._named["element"], (self._entity, self._field, key, self._position)).get
        return found

    def all(self, after: bytes = b"", limit: int | None = None) -> list[tuple[bytes, bytes]]:
        """Return keys with their parts, by key."""
        values = {
            "entity": self._entity,
            "field": self._field,
            "after": after,
            "through": self._position,
            "limit": -1 if limit is None else limit,
        }
        return [(key, part) for key, part in self._run(self._named["elements"], values)]


_NOWHERE = (0, BEFORE_ALL, BEFORE_ALL)


class SqliteView:
    """Reading of one tenant."""

    def __init__(self, connection: apsw.Connection, named: dict[str, str], tenant: TenantId, memory: _Memory) -> None:
        self._run = connection.execute
        self._named = named
        self._memory = memory
        self._name = tenant
        if memory.number is None:
            memory.number = self._one("tenant", name=tenant)
        self._number = memory.number
        self._base = codec.base(self._number or 0)
        self._anchor_at = _NOWHERE

    def _all(self, query: str, **values: Any) -> apsw.Cursor:
        return self._run(self._named[query], values)

    def _one(self, query: str, **values: Any) -> Any:
        """Return the one value of the one row there is, or None."""
        return self._run(self._named[query], values).get

    def _row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        for row in self._run(self._named[query], values):
            return tuple(row)
        return None

    @property
    def _tenant(self) -> int:
        return self._number or 0

    def _bounds(self, after: int = BEFORE_ALL, through: int | None = None) -> dict[str, int]:
        last = self._base + (1 << codec.TENANT_BITS) - 1 if through is None else self._base + through
        return {"low": self._base + after + 1, "high": last if self._number is not None else -1}

    def head(self) -> Head:
        found = self._memory.head
        if found is None:
            row = self._row("last_entry", **self._bounds())
            if row is None:
                found = Head(None, 0, None, Frontier)
            else:
                size = row[0] - self._base + 1
                found = Head(row[1], size, moment.from_micros(row[2]), lambda: Frontier.at(_Nodes(self), size))
            self._memory.head = found
        return found

    def entry(self, position: int) -> Entry | None:
        if position < 0:
            return None
        row = self._row("entries", **self._bounds(position - 1, position))
        return None if row is None else self._read(row)

    def entries(
        self, after: int = BEFORE_ALL, through: int | None = None, kinds: Collection[str] | None = None
    ) -> Iterator[Entry]:
        if kinds is None or "observation" in kinds:
            for row in self._all("entries", **self._bounds(max(after, BEFORE_ALL), through)):
                if kinds is None or codec.KINDS[row[3]] in kinds:
                    yield self._read(row)
            return
        rows: list[tuple[Any, ...]] = []
        for kind in kinds:
            if self._latest(kind) > after:  # who follows a kind asks at every write, and mostly there is nothing new
                bounds = self._bounds(max(after, BEFORE_ALL), through)
                rows += self._all("entries_of_kind", kind=codec.NUMBERS[kind], **bounds)
        for row in sorted(rows):
            yield self._read(row)

    def _latest(self, kind: str) -> int:
        """Return the position of the last entry of a rare kind; the one before all without any."""
        found = self._memory.latest.get(kind)
        if found is None:
            last = self._one("last_of_kind", kind=codec.NUMBERS[kind], **self._bounds())
            found = self._memory.latest[kind] = BEFORE_ALL if last is None else int(last) - self._base
        return found

    def _read(self, row: tuple[Any, ...]) -> Entry:
        """Return the entry of a row, if its body is what was once written."""
        found = codec.entry(row, self._base)
        if found.body is not None and (
            found.nonce is None
            or len(found.nonce) != NONCE_BYTES
            or commitment(found.nonce, found.body) != found.commitment
        ):
            raise damaged(found.position, "body")
        return found

    def leaves(self, size: int) -> Sequence[bytes]:
        return [row[0] for row in self._all("leaves", **self._bounds(BEFORE_ALL, size - 1))]

    def nodes(self) -> _Nodes:
        return _Nodes(self)

    def rows(self, after: int, through: int) -> Iterator[Row]:
        from woodrat.log.checking import Row

        base, kinds = self._base, codec.KINDS
        logs = dict(map(tuple, self._all("logs")))
        micros: object = None
        at = ""
        make = tuple.__new__  # as `Row` itself does, without a call between
        bounds = self._bounds(max(after, BEFORE_ALL), through)
        came = iter(self._all("origins", **bounds))
        from_elsewhere = next(came, None)
        for id, log, time, kind, write, length, request, promise, leaf, nonce, body in self._all("rows", **bounds):
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

    def receipts(self) -> Iterator[tuple[str, str, Receipt]]:
        for agent, key, request, report in self._all("receipts", tenant=self._tenant):
            yield agent, key, Receipt(request, report)

    def audit(self, size: int | None = None) -> Audit:
        from woodrat.engines.sqlite.auditing import SqliteAudit

        return SqliteAudit(self, size)

    def cloned(self) -> int:
        if self._memory.cloned is None:
            found = self._one("cloned", **self._bounds())
            self._memory.cloned = BEFORE_ALL if found is None else int(found) - self._base
        return self._memory.cloned

    def merged(self, log: str, through: int) -> tuple[int, int] | None:
        row = self._row("merged", log=log, through=through, **self._bounds())
        if row is None or self._one("merged_beyond", log=log, through=through, **self._bounds()) is None:
            return None
        return row[0], row[1] - self._base

    def position_at(self, moment_: str) -> int:
        wanted = moment.to_micros(moment_)
        return bisect_right(_Times(self, self.head().size), wanted) - 1

    def receipt(self, agent: str, key: str) -> Receipt | None:
        row = self._row("receipt", tenant=self._tenant, agent=agent, key=key)
        return None if row is None else Receipt(*row)

    def purged(self) -> bool:
        """Return whether no erasure waits for its bytes to be taken out of the file."""
        return self._one("purge_due") is None

    def shares(self) -> bool:
        """Return whether the file holds other tenants too."""
        return self._one("other_tenant", name=self._name) is not None

    def observation(self, digest: bytes, through: int) -> Stored | None:
        for row in self._all("said_by_digest", digest=codec.head(digest), **self._bounds(through=through)):
            found = self._stored(row)
            if found.observation.digest == digest:
                return found
        return None

    def known(self, observations: Sequence[Observation]) -> Collection[bytes]:
        # What begins to hold after everything that was said of its entity is new: nothing has to be looked up.
        digests: list[bytes] = []
        for one in observations:
            entity = self._entity(one.entity.digest)
            if entity is not None and (one.valid_from <= entity.until or one.op == RETRACT):
                digests.append(one.digest)
        if not digests:
            return ()
        heads = [codec.head(digest) for digest in digests]
        if len(heads) == 1:
            hits = [heads[0]] if self._one("is_said", digest=heads[0], **self._bounds()) is not None else []
        else:
            rows = self._all("are_said", digests=orjson.dumps(heads).decode(), **self._bounds())
            hits = [row[0] for row in rows]
        if not hits:
            return ()
        found = set(hits)
        through = self.head().position
        return {d for d in digests if codec.head(d) in found and self.observation(d, through) is not None}

    def observation_by_id(self, id: str) -> Stored | None:
        head = codec.head_of_id(id)
        if head is not None:
            for row in self._all("said_by_digest", digest=head, **self._bounds()):
                found = self._stored(row)
                if found.observation.id == id:
                    return found
        return None

    def namers(self, digest: bytes, through: int) -> Sequence[Stored]:
        memory = self._memory
        if memory.named is None:
            found = {row[0] for row in self._all("named", limit=NAMED_MAX + 1, **self._bounds())}
            memory.named = found if len(found) <= NAMED_MAX else frozenset()
            memory.names_many = len(found) > NAMED_MAX
        if not memory.names_many and (not memory.named or codec.head(digest) not in memory.named):
            return ()
        rows = self._all("namers", target=codec.head(digest), **self._bounds(through=through))
        return [stored for stored in map(self._stored, rows) if digest in stored.observation.replaces]

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        known = self._entity(entity)
        if known is None or known.last < 0 or known.last <= after:
            return []
        start = self._anchor(known, through)
        if start <= after:
            return []
        links = list(self._all("chain", start=self._base + start, base=self._base, after=after, through=through))
        found = [self._stored(row) for row in reversed(links)]
        if found:
            self._anchor_at = (known.number, through, found[-1].position)
        return found

    def _anchor(self, known: _Known, through: int) -> int:
        """Return where a walk back to what an entity was at a position may begin."""
        if known.last <= through:
            return known.last
        if self._anchor_at[:2] != (known.number, through):
            at = self._one("anchor", entity=known.number, through=through)
            self._anchor_at = (known.number, through, known.last if at is None else at)
        return self._anchor_at[2]

    def _stored(self, row: tuple[Any, ...]) -> Stored:
        """Return the observation of a row (id, body, beginning of the digest), if it is what was once written."""
        id, body, head = row
        try:
            found = observation.stored(body)
        except (AssertionError, AttributeError, KeyError, TypeError, ValueError) as error:
            raise damaged(id - self._base, "body") from error
        if codec.head(found.digest) != head:
            raise damaged(id - self._base, "body")
        return Stored(id - self._base, found)

    def version(self, entity: bytes, through: int) -> int | None:
        known = self._entity(entity)
        if known is None or known.first < 0 or known.first > through:
            return None
        start = self._anchor(known, through)
        if start <= through:
            return start
        return int(self._one("last_said", start=self._base + start, base=self._base, through=through))

    def _entity(self, digest: bytes) -> _Known | None:
        """Return what the tables hold of an entity; as long as one view lasts, it is looked up once."""
        entities = self._memory.entities
        found = entities.get(digest)
        if found is not None:
            entities.move_to_end(digest)
        else:
            for id, type, key, first, last, until, at, packed in self._all(
                "entity", digest=codec.head(digest), tenant=self._tenant
            ):
                ref = Ref(type, key)
                if ref.digest == digest:
                    found = entities[digest] = _Known(id, ref, first, last, until, at, packed)
                    if packed is not None and len(packed) > LARGE_BYTES:
                        self._memory.large.add(digest)
        return found

    def entity(self, digest: bytes, through: int) -> Ref | None:
        known = self._entity(digest)
        return known.ref if known is not None and 0 <= known.first <= through else None

    def entity_by_id(self, id: str) -> Ref | None:
        head = codec.head_of_id(id)
        if head is not None:
            for row in self._all("entity", digest=head, tenant=self._tenant):
                ref = Ref(row[1], row[2])
                if ref.id == id and row[3] >= 0:
                    return ref
        return None

    def entities(self, type: str | None, through: int) -> Sequence[Ref]:
        if type is None:
            rows = self._all("entities", tenant=self._tenant, through=through)
        else:
            rows = self._all("entities_of_type", tenant=self._tenant, type=type, through=through)
        return [Ref(*row) for row in rows]

    def touched(self, after: int, through: int) -> Collection[Ref]:
        return {Ref(*row) for row in self._all("touched", **self._bounds(after, through))}

    def relations(self, entity: bytes, type: str | None, through: int) -> Sequence[Ref]:
        rows = self._all("relations", endpoint=codec.head(entity), tenant=self._tenant, through=through)
        found = [Ref(*row) for row in rows if type in (None, row[0])]
        return [ref for ref in found if any(end.digest == entity for end in endpoints(ref) or ())]

    def _joins(self) -> bool:
        """Return whether any `same_as` was ever said."""
        if self._memory.joins is None:
            self._memory.joins = self._one("joins", tenant=self._tenant, type=SAME_AS) is not None
        return self._memory.joins

    def joined(self, entity: bytes) -> bool:
        return self._joins() and bool(self.relations(entity, SAME_AS, self.head().position))

    def sharing(self, type: str, rule: str, value: str) -> Sequence[Ref]:
        rows = self._all("sharing", tenant=self._tenant, type=type, rule=rule, value=value)
        return sorted((Ref(*row) for row in rows), key=lambda ref: ref.key.encode())

    def shared(self, type: str | None) -> Sequence[tuple[str, str, str, Sequence[Ref]]]:
        found: dict[tuple[str, str, str], list[Ref]] = {}
        for kind, rule, value, entity_type, key in self._all("shared", tenant=self._tenant):
            if type in (None, kind):
                found.setdefault((kind, rule, value), []).append(Ref(entity_type, key))
        return [(*names, sorted(refs, key=lambda ref: ref.key.encode())) for names, refs in sorted(found.items())]

    def _registered(self) -> dict[str, list[tuple[int, Schema]]]:
        found = self._memory.schemas
        if found is None:
            found = {}
            for entry in self.entries(kinds={"schema"}):
                assert entry.body is not None
                registered = _schema(entry.body)
                found.setdefault(registered.type, []).append((entry.position, registered))
            self._memory.schemas = found
            self._memory.winning.clear()
        return found

    def schemas(self, type: str, through: int) -> Sequence[Schema]:
        return [found for position, found in self._registered().get(type, ()) if position <= through]

    def schema(self, type: str, through: int) -> Schema | None:
        registered = self._registered().get(type)
        if not registered:
            return None
        if registered[-1][0] > through:
            return schema.winning(self.schemas(type, through))
        found = self._memory.winning.get(type)
        if found is None:
            found = schema.winning(one for _, one in registered)
            assert found is not None, "one of some is the highest"
            self._memory.winning[type] = found
        return found

    def schemas_in_force(self) -> dict[str, tuple[int, Schema]]:
        """Return the schema in force of every type that has one, with the position of the last one of the type."""
        last = self.head().position
        registered = self._registered()
        return {
            type: (registered[type][-1][0], found)
            for type in self.schema_types(last)
            if (found := self.schema(type, last)) is not None
        }

    def schema_types(self, through: int) -> Sequence[str]:
        return sorted(type for type, found in self._registered().items() if found[0][0] <= through)

    def source(self, digest: bytes) -> int | None:
        for id, body in self._all("source", digest=codec.head(digest), **self._bounds()):
            if body is not None and source_digest(body) == digest:
                return int(id - self._base)
        return None

    def source_by_id(self, id: str) -> bytes | None:
        head = codec.head_of_id(id)
        if head is not None:
            for _, body in self._all("source", digest=head, **self._bounds()):
                if body is not None and id_of("source", source_digest(body)) == id:
                    return source_digest(body)
        return None

    def run(self, id: str, through: int) -> Sequence[Entry]:
        rows = self._all("run", run=codec.head_of_text(id), **self._bounds(through=through))
        found = (self.entry(row[0] - self._base) for row in list(rows))
        return [entry for entry in found if entry is not None and _step(entry) in (None, id)]

    def runs_about(self, subject: bytes, through: int) -> Sequence[Entry]:
        rows = self._all("runs_about", subject=codec.head(subject), **self._bounds(through=through))
        found = (self.entry(row[0] - self._base) for row in list(rows))
        return [entry for entry in found if entry is not None and _subject(entry) in (None, subject)]

    def shelf(self, name: str, after: int = BEFORE_ALL) -> Iterator[tuple[int, bytes]]:
        yield from self._all("shelf", tenant=self._tenant, name=name, after=after)

    def shelved(self, name: str) -> int:
        position = self._one("shelved", tenant=self._tenant, name=name)
        return BEFORE_ALL if position is None else int(position)

    def _rows(self, entity: int, position: int) -> Callable[[str], _Rows]:
        """Return what finds the parts of collections of an entity as they were after a position."""
        return partial(_Rows, self._run, self._named, entity, position)

    def _unpacked(self, packed: bytes, root: Ref, rules: Rules, entity: int, position: int) -> MergeState | None:
        """Return kept state of an entity, true after a position; `Corrupt` where it cannot be read."""
        try:
            return merge.unpack(packed, root, rules, self._rows(entity, position))
        except UNREADABLE as error:
            raise garbled(f"{root}: the state kept of it") from error

    def kept(self, root: Ref, through: int, rules: Rules) -> Kept | None:
        known = self._entity(root.digest)
        if known is None or known.at is None:
            return None
        if known.at <= through:
            if known.state is None:
                assert known.packed is not None, "state that is true for a position is there"
                known.state = self._unpacked(known.packed, root, rules, known.number, known.at)
            state = known.state
            return Kept(known.at, state) if state is not None and state.schema == rules.schema.digest else None
        row = self._row("kept", entity=known.number, through=through)
        if row is None:
            return None
        position, packed, anchor = row
        if anchor is not None:
            self._anchor_at = (known.number, through, anchor)
        past = self._unpacked(packed, root, rules, known.number, position)
        return None if past is None else Kept(position, past)

    def current(self, ref: Ref, through: int, rules: Rules) -> tuple[MergeState, int] | None:
        known = self._entity(ref.digest)
        if known is None or known.at is None or not 0 <= known.last <= known.at <= through:
            return None
        state = known.state
        if state is None:
            assert known.packed is not None, "state that is true for a position is there"
            state = known.state = self._unpacked(known.packed, ref, rules, known.number, known.at)
        if state is None or state.schema != rules.schema.digest or len(state.members) > 1:
            return None
        return state, known.last

    def unlike(self, old: View) -> Iterator[tuple[Ref, bool]]:
        from woodrat.engines.sqlite import comparing

        assert isinstance(old, SqliteView)
        return comparing.unlike(self, old)

    def kept_by(self, root: Ref, effective: str, through: int, rules: Rules) -> Kept | None:
        known = self._entity(root.digest)
        if known is None:
            return None
        if known.until <= effective:
            return self.kept(root, through, rules)
        row = self._row("kept_by", entity=known.number, effective=effective, through=through)
        state = None if row is None else self._unpacked(row[1], root, rules, known.number, row[0])
        return None if row is None or state is None or len(state.members) > 1 else Kept(row[0], state)

    def true_by(self, entity: bytes, effective: str, after: int, through: int) -> Sequence[Stored]:
        known = self._entity(entity)
        if known is None or known.last <= after:
            return []
        # Up to the next state kept every observation is looked at; what was said later and is true by then is late.
        row = self._row("next_kept", entity=known.number, after=after)
        last, end = (known.last, through) if row is None or row[0] >= through else (row[1], row[0])
        asof = AsOf(through, effective)
        links = list(self._all("chain", start=self._base + last, base=self._base, after=after, through=through))
        by = effective.encode()
        # A body that is gone is read like the others, so that it is missed.
        found = [
            self._stored(link) for link in reversed(links) if link[1] is None or observation.counts_by(link[1], by)
        ]
        if end < through:
            rows = self._all("late", entity=known.number, effective=effective, **self._bounds(end, through))
            found += [self._stored(link) for link in list(rows)]
        return [stored for stored in found if asof.selects(stored)]

    def fingerprint(self) -> tuple[int, fingerprint.Tree]:
        found = self._memory.fingerprint
        if found is None:
            tree = fingerprint.Tree.build((row[0], row[1]) for row in self._all("imprints", tenant=self._tenant))
            found = self._memory.fingerprint = (self.fingerprint_position(), tree)
        return found

    def fingerprint_position(self) -> int:
        position = self._one("imprinted", tenant=self._tenant)
        return BEFORE_ALL if position is None else int(position)

    def indexed(self) -> int:
        position = self._one("worded", tenant=self._tenant)
        return BEFORE_ALL if position is None else int(position)

    def matching(self, prefix: str, type: str | None) -> Mapping[Ref, frozenset[str]]:
        low = prefix.encode()
        found: dict[Ref, frozenset[str]] = {}
        for kind, key, fields in self._all("matching", tenant=self._tenant, low=low, high=low + b"\xff", type=type):
            ref = Ref(kind, key)
            found[ref] = found.get(ref, frozenset()).union(orjson.loads(fields))
        return found


class SqliteTransaction(SqliteView):
    """One write. What changes in the table of entities is written at the end, or before it is asked for in SQL."""

    def __init__(
        self,
        writer: _Connected,
        named: dict[str, str],
        tenant: TenantId,
        memory: _Memory,
        sound: set[TenantId],
    ) -> None:
        super().__init__(writer.connection, named, tenant, memory)
        self.erased = False
        """Whether anything was erased in it."""
        self._connection = writer.connection
        self._changes = writer.connection.total_changes()
        self._many = writer.cursor.executemany
        self._sound = sound
        self._new: list[_Known] = []
        self._changed: dict[int, _Known] = {}
        self._last_entity: int | None = None
        # What this write says, in parts: the first position, and what it means from there on.
        self._lately: list[tuple[int, Sequence[Meaning]]] = []
        # By entity that it speaks of the position of the observation before, and once it is asked for what it says.
        self._before: dict[bytes, int] = {}
        self._recent: dict[bytes, list[Stored]] | None = None
        # The tree as far as the log was derived from again.
        self._derived: Frontier | None = None
        # Whether there may be entities that are not at hand.
        self._forgotten = True

    def _all(self, query: str, **values: Any) -> apsw.Cursor:
        if (self._new or self._changed) and _reads_entities(self._named[query]):
            self.flush()
        return super()._all(query, **values)

    @property
    def has_changed(self) -> bool:
        """Whether it changed anything, in the tables or of what is known."""
        return bool(self._new or self._changed) or self._connection.total_changes() != self._changes

    def trim(self) -> None:
        """Keep what is known within its bound."""
        self._memory.trim()

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
        _Nodes(self).check_last(size)

    def _row(self, query: str, **values: Any) -> tuple[Any, ...] | None:
        if (self._new or self._changed) and _reads_entities(self._named[query]):
            self.flush()
        return super()._row(query, **values)

    def flush(self) -> None:
        """Write what changed in the table of entities."""
        # Emptied before and in place: a loop that fills them may be the one that asks.
        new, changed = tuple(self._new), tuple(self._changed.values())
        self._new.clear()
        self._changed.clear()
        if new:
            tenant = self._tenant
            added = [
                (
                    *(e.number, tenant, e.ref.type, e.ref.key, codec.head(e.ref.digest)),
                    *(e.first, e.last, e.until, e.at, e.packed),
                )
                for e in new
            ]
            self._many(self._named["add_entity"], added)
        if changed:
            rows = [(e.first, e.last, e.until, e.at, e.packed, e.number) for e in changed]
            self._many(self._named["set_entity"], rows)

    def _entity(self, digest: bytes) -> _Known | None:
        return super()._entity(digest) if self._forgotten else self._memory.entities.get(digest)

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        before = self._before.get(entity)
        if before is not None and after >= before:
            return [stored for stored in self._said_lately(entity) if after < stored.position <= through]
        return super().observations(entity, after, through)

    def _let_go(self) -> None:
        """Forget what this write said: it is in the tables."""
        self._lately.clear()
        self._before.clear()
        self._recent = None

    def _said_lately(self, entity: bytes) -> Sequence[Stored]:
        """Return what this write says of an entity."""
        found = self._recent
        if found is None:
            found = self._recent = {}
            for first, meanings in self._lately:
                for position, meaning in enumerate(meanings, first):
                    if isinstance(meaning, Observation):
                        found.setdefault(meaning.entity.digest, []).append(Stored(position, meaning))
        return found.get(entity, ())

    def append(self, entries: Write, meanings: Sequence[Meaning]) -> None:
        head = self.head()
        if self._name not in self._sound:
            self._check_end()
            self._sound.add(self._name)
        assert entries.first == head.size, "entries are appended without a gap"
        assert head.recorded_at is None or entries.recorded_at > head.recorded_at, "the log's clock never goes back"
        if self._number is None:
            self._number = self._memory.number = self._one("add_tenant", name=self._name)
            self._base = codec.base(self._tenant)
        log = self._log(entries.log)
        count, start = len(entries), self._base + entries.first
        ids = range(start, start + count)
        headers = zip(
            ids,
            repeat(log),
            repeat(moment.to_micros(entries.recorded_at)),
            map(codec.NUMBERS.__getitem__, entries.kinds),
            repeat(entries.first),
            chain((count,), repeat(None, count - 1)),
            chain((entries.request,), repeat(None, count - 1)),
            entries.commitments,
            entries.leaves,
        )
        self._many(self._named["add_entry"], headers)
        self._many(self._named["add_body"], zip(ids, entries.nonces, entries.bodies, strict=True))
        if entries.origins is not None:
            came = [(id, origin) for id, origin in zip(ids, entries.origins, strict=True) if origin is not None]
            rows = [(id, self._log(origin.log), origin.position) for id, origin in came]
            self._many(self._named["add_origin"], rows)
        frontier = self._grow(head.frontier, entries.leaves)
        self._memory.head = Head(entries.log, head.size + count, entries.recorded_at, frontier)
        for kind in self._memory.latest.keys() & set(entries.kinds):
            del self._memory.latest[kind]
        self._index(entries, meanings)

    def erase(self, positions: Iterable[int], receipts: Iterable[tuple[str, str]]) -> None:
        self.erased = True
        with erasing(self._connection):
            self._all("due")
            self._many(self._named["erase_body"], [(self._base + position,) for position in positions])
            self._many(self._named["erase_receipt"], [(self._tenant, *name) for name in receipts])

    def _log(self, name: str) -> int:
        """Return the number of a log's name."""
        found = self._memory.logs.get(name)
        if found is None:
            known = self._one("log", name=name)
            found = self._memory.logs[name] = int(self._one("add_log", name=name) if known is None else known)
        return found

    def note_clone(self) -> None:
        head = self.head()
        assert head.log is not None, "there is something to have been taken over"
        self._all("add_clone", id=self._base + head.position, log=self._log(head.log))
        self._memory.cloned = head.position

    def _grow(self, frontier: Frontier, leaves: Sequence[bytes]) -> Frontier:
        """Grow the tree, and keep the roots of the complete subtrees that these leaves end."""
        grown, ended = frontier.grow(leaves)
        rows = [
            (self._tenant, height, (frontier.size >> height) + index, root)
            for height in range(NODE_STEP, len(ended), NODE_STEP)
            for index, root in enumerate(ended[height])
        ]
        if rows:
            self._many(self._named["add_node"], rows)
        return grown

    def leaves_between(self, start: int, end: int) -> list[bytes]:
        """Return some leaf hashes."""
        return [row[0] for row in self._all("leaves", **self._bounds(start - 1, end - 1))]

    def _index(self, entries: Sequence[Row] | Write, meanings: Sequence[Meaning]) -> None:
        late, naming, edges, sources, steps, about, anchors = [], [], [], [], [], [], []
        # Columns, not rows: so many rows would each be looked at by the garbage collector.
        ids, numbers, previous_ones, heads_said = list[int](), list[int](), list[int](), list[int]()
        if isinstance(entries, Write):
            first, kinds = entries.first, entries.kinds
        else:
            first, kinds = entries[0].position, [entry.kind for entry in entries]
        entities, changed, before, head_of = self._memory.entities, self._changed, self._before, codec.head
        self._lately.append((first, meanings))
        self._recent = None
        joins = self._joins()
        base = self._base
        for position, meaning in enumerate(meanings, first):
            id = base + position
            if isinstance(meaning, Observation):
                ref = meaning.entity
                digest = ref.digest
                known = entities.get(digest) or self._entity(digest) or self._add_entity(ref)
                previous = known.last
                if known.first < 0:
                    known.first = position
                    ends = endpoints(ref)
                    if ends:
                        edges += [(self._tenant, codec.head(end.digest), known.number) for end in dict.fromkeys(ends)]
                    if ref.type == SAME_AS:
                        joins = self._memory.joins = True
                known.last = position
                if meaning.op == RETRACT:
                    late.append((known.number, "", id))
                elif meaning.valid_from >= known.until:
                    known.until = meaning.valid_from
                else:
                    late.append((known.number, meaning.valid_from, id))
                number = known.number
                changed[number] = known
                head = head_of(meaning.digest)
                ids.append(id)
                numbers.append(number)
                previous_ones.append(previous)
                heads_said.append(head)
                if joins and not head % KEPT_EVERY:
                    # State is kept under the smallest of a group; the chains of the others have anchors of their own.
                    anchors.append((known.number, position))
                if meaning.replaces:
                    heads = [codec.head(name) for name in meaning.replaces]
                    naming += [(named, id) for named in heads]
                    if isinstance(self._memory.named, set):
                        self._memory.named.update(heads)
                if digest not in before:
                    before[digest] = previous
            elif isinstance(meaning, Schema):
                self._memory.schemas = None
            elif isinstance(meaning, Step):
                steps.append((codec.head_of_text(meaning.run), id))
                if meaning.subject is not None:
                    about.append((codec.head(meaning.subject.digest), id))
            elif kinds[position - first] == "source":
                body = entries[position - first].body
                if body is not None:
                    sources.append((codec.head(source_digest(body)), id))
        if ids:
            self._many(self._named["add_said"], zip(ids, numbers, previous_ones, heads_said, strict=True))
        for query, rows in (
            ("add_late", late),
            ("add_naming", naming),
            ("add_edge", edges),
            ("add_source", sources),
            ("add_step", steps),
            ("add_about", about),
            ("add_anchor", anchors),
        ):
            if rows:
                self._many(self._named[query], rows)

    def _add_entity(self, ref: Ref) -> _Known:
        """Note an entity anything is said of, or that a group is kept under."""
        if self._last_entity is None:
            self._last_entity = int(self._one("last_entity") or 0)
        self._last_entity += 1
        found = _Known(self._last_entity, ref, BEFORE_ALL, BEFORE_ALL, "", None, None)
        self._new.append(found)
        self._memory.entities[ref.digest] = found
        return found

    def keep(self, folds: Iterable[tuple[Kept, Rules, bool]]) -> None:
        lasting = []
        entities, changed, pack = self._memory.entities, self._changed, merge.pack
        for (position, state), rules, marked in folds:
            root = state.members[0]
            known = entities.get(root.digest) or self._entity(root.digest) or self._add_entity(root)
            if state.held or (known.packed is not None if known.state is None else known.state.held):
                state = self._keep_elements(known, position, state)
            if known.state is not state or known.packed is None:  # what is kept along the history may also be the last
                known.packed = pack(state, rules, apart=True)
                if len(known.packed) > LARGE_BYTES:
                    self._memory.large.add(root.digest)
            known.at, known.state = position, state
            changed[known.number] = known
            if marked:
                last = known.last if known.last <= position else self._last_said(known, position)
                lasting.append((known.number, position, last, state.until, known.packed))
        if lasting:
            self._many(self._named["add_kept"], lasting)

    def _last_said(self, known: _Known, position: int) -> int:
        """Return the position of the last observation of an entity not after another, which this write passed by."""
        digest = known.ref.digest
        found = (stored.position for stored in self._said_lately(digest) if stored.position <= position)
        return max(found, default=self._before[digest])

    def _keep_elements(self, known: _Known, position: int, state: MergeState) -> MergeState:
        """Keep the parts of large collections one by one; return the state with its parts there."""
        number = known.number
        if known.state is not None:
            before: Iterable[str] = merge.spread(known.state)
        elif known.packed is not None:  # folded under another schema
            before = [row[0] for row in self._all("element_fields", entity=number)]
        else:
            before = ()
        now = self._rows(number, position)
        rows = list(elements.due(state, position, before, lambda name: now(name).all()))
        if rows:
            self._many(self._named["add_element"], [(number, name, key, at, part) for at, name, key, part in rows])

        def lying(name: str, held: Gathered[Any]) -> Parts[Any]:
            return Parts.kept(len(held.parts), now(name), held.unpack_part)

        return merge.with_parts(state, lying)

    def share(self, values: Iterable[tuple[Ref, Sequence[tuple[str, str]]]]) -> None:
        rows = []
        for ref, pairs in values:
            known = self._entity(ref.digest) or self._add_entity(ref)
            rows += [(self._tenant, ref.type, rule, value, known.number) for rule, value in pairs]
        if rows:
            self._many(self._named["add_sharing"], rows)

    def unshare(self, type: str) -> None:
        self._all("drop_sharing", tenant=self._tenant, type=type)

    def claim(self, agent: str, key: str, receipt: Receipt) -> None:
        self._all(
            "add_receipt", tenant=self._tenant, agent=agent, key=key, request=receipt.request, report=receipt.report
        )

    def keep_fingerprint(self, position: int, tree: fingerprint.Tree) -> None:
        before, old = self.fingerprint()
        if self._number is None or (before, old) == (position, tree):
            return
        changed = list(fingerprint.differing(old, tree))
        values = [(self._tenant, entity, tree.get(entity)) for entity in changed]
        self._many(self._named["set_imprint"], [row for row in values if row[2] is not None])
        self._many(self._named["drop_imprint"], [row[:2] for row in values if row[2] is None])
        self._all("set_imprinted", tenant=self._tenant, position=position)
        self._memory.fingerprint = (position, tree)

    def index(self, position: int, words: Mapping[Ref, Words]) -> None:
        gone: list[tuple[Any, ...]] = []
        new: list[tuple[Any, ...]] = []
        for ref, said in words.items():
            known = self._entity(ref.digest)
            if known is None and not said:
                continue
            number = (known or self._add_entity(ref)).number
            old = dict(tuple(found) for found in self._all("words", entity=number))
            now = {token.encode(): _names_text(tuple(sorted(fields))) for token, fields in said.items()}
            gone += [(self._tenant, token, number) for token in old if token not in now]
            new += [(self._tenant, token, number, fields) for token, fields in now.items() if old.get(token) != fields]
        self._many(self._named["drop_word"], gone)
        new.sort()  # the index is in this order
        self._many(self._named["set_word"], new)
        self._all("set_worded", tenant=self._tenant, position=position)

    def shelve(self, name: str, position: int, items: Iterable[tuple[int, bytes]]) -> None:
        self._many(self._named["add_shelf"], [(self._tenant, name, at, value) for at, value in items])
        self._all("set_shelved", tenant=self._tenant, name=name, position=position)

    def drop_shelf(self, name: str) -> None:
        self._all("drop_shelf", tenant=self._tenant, name=name)

    def drop_derived(self) -> None:
        if self.shares():
            self._all("drop_derived", tenant=self._tenant, **self._bounds())
        else:
            self._all("drop_all_derived")
        self._memory.forget()
        self._anchor_at = _NOWHERE
        self._let_go()
        self._derived = None
        self._last_entity = None
        self._forgotten = False

    def derive(self, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        first = rows[0].position
        # The log is derived from in parts, so that memory does not grow with its length.
        self._let_go()
        if len(self._memory.entities) > ENTITIES_MAX:
            self.flush()
            self._memory.trim()
            self._forgotten = True
        if self._derived is None or self._derived.size != first:
            self._derived = Frontier.at(_Nodes(self), first)
        self._derived = self._grow(self._derived, [row.leaf for row in rows])
        self._index(rows, meanings)
        self._memory.head = None  # it rests on the subtrees just kept


def damaged(position: int, what: str) -> Corrupt:
    """Return the error for something of the log that is not there, or not what was written."""
    return Corrupt(
        f"Position {position}: its {what} is gone or is not what was written. Stop writing, copy the file, and restore "
        "a backup.",
        {"position": position, "damage": what},
    )


@cache
def _reads_entities(statement: str) -> bool:
    """Return whether a statement reads the table of entities."""
    return " FROM entity" in statement or " JOIN entity" in statement or "\nFROM entity" in statement


@lru_cache(maxsize=NAMES_MAX)
def _names_text(names: tuple[str, ...]) -> str:
    """Return names of fields as JSON; most tokens stand in the same few."""
    return orjson.dumps(names).decode()


@lru_cache(maxsize=SCHEMAS_MAX)
def _schema(body: bytes) -> Schema:
    return schema.stored(body)


def _step(entry: Entry) -> str | None:
    """Return the run an entry belongs to; `None` once its body is erased."""
    found = None if entry.body is None else step_of(entry.kind, entry.body)
    return None if found is None else found.run


def _subject(entry: Entry) -> bytes | None:
    """Return the digest of the entity a run is about; `None` once its beginning is erased."""
    found = None if entry.body is None else step_of(entry.kind, entry.body)
    return None if found is None or found.subject is None else found.subject.digest


class _Nodes:
    """The roots of complete subtrees, for frontiers and proofs."""

    def __init__(self, view: SqliteView) -> None:
        self._view = view

    def subtree_root(self, start: int, end: int, /) -> bytes:
        """Return the root over the leaves from `start` to before `end`, an aligned power of two of them."""
        width = end - start
        height = width.bit_length() - 1
        if height % NODE_STEP == 0 and height:
            found = self._view._one("node", tenant=self._view._tenant, height=height, place=start >> height)
            if found is None:
                raise damaged(end - 1, "node")
            return bytes(found)
        if height < NODE_STEP:
            hashes = [row[0] for row in self._view._all("leaves", **self._view._bounds(start - 1, end - 1))]
            if len(hashes) != width:
                raise damaged(end - 1, "leaf")
        else:
            part = 1 << (height - height % NODE_STEP)
            hashes = [self.subtree_root(at, at + part) for at in range(start, end, part)]
        return _joined(hashes)

    def check_last(self, size: int) -> None:
        """Refuse a tree in which, of any height kept, the last subtree is not what those below it make."""
        for height in range(NODE_STEP, size.bit_length(), NODE_STEP):
            end = size >> height << height
            start = end - (1 << height)
            half = (start + end) // 2
            if self.subtree_root(start, end) != node_hash(self.subtree_root(start, half), self.subtree_root(half, end)):
                raise damaged(end - 1, "node")


def _joined(hashes: list[bytes]) -> bytes:
    """Return the root over a power of two of subtrees."""
    while len(hashes) > 1:
        hashes = [node_hash(*hashes[i : i + 2]) for i in range(0, len(hashes), 2)]
    return bytes(hashes[0])


class _Times:
    """The log's times by position, for a search by halves."""

    def __init__(self, view: SqliteView, size: int) -> None:
        self._view, self._size = view, size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, position: int) -> int:
        return int(self._view._one("recorded_at", id=self._view._base + position))
