"""The SQLite engine: views and transactions over one file.

A transaction is one `BEGIN IMMEDIATE`; what it appended and what was derived from it are committed together. Writers
of one process queue in the order they came; writers of several processes take turns at a gate beside the file,
because SQLite's own lock serves whoever asks most often.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import apsw
import orjson

from woodrat.canon import moment
from woodrat.canon.ids import Ref, TenantId, id_of
from woodrat.engines.port import BEFORE_ALL, Head, Kept, Meaning, Receipt
from woodrat.engines.sqlite import codec
from woodrat.engines.sqlite.connection import check_place, check_version, connect, pid, prepare, queries, translated
from woodrat.engines.sqlite.gate import Gate
from woodrat.errors import Corrupt, Unavailable
from woodrat.log.entry import Entry
from woodrat.log.tree import Frontier, node_hash
from woodrat.runs.step import Step, step_of
from woodrat.state import fingerprint, merge, observation, schema
from woodrat.state.merge import Rules
from woodrat.state.observation import Observation
from woodrat.state.relation import endpoints
from woodrat.state.schema import Schema
from woodrat.state.source import source_digest
from woodrat.state.tokens import Words
from woodrat.views.asof import Stored

STATES_MAX = 50_000
"""How many merge states a process keeps at hand."""
NODE_STEP = 4
"""Roots of complete subtrees are kept at every so many levels; those between are made from 16 below."""


class SqliteEngine:
    """Logs of any number of tenants in one file."""

    name = "sqlite"

    def __init__(self, path: str | Path, *, readonly: bool = False) -> None:
        check_version()
        self.path = Path(path)
        self.readonly = readonly
        check_place(self.path)
        self._queries = queries()
        self._process = pid()
        self._gate = Gate(self.path)
        self._idle: list[apsw.Connection] = []
        self._pool = threading.Lock()
        self._closed = False
        self._memory: dict[TenantId, _Memory] = {}
        self._version: tuple[int, int] | None = None
        with translated(self.path):
            self._writer = connect(self.path, readonly=readonly)
            prepare(self._writer, self.path, readonly=readonly)

    @contextmanager
    def view(self, tenant: TenantId) -> Iterator[SqliteView]:
        self._check()
        with translated(self.path):
            connection = self._take()
            try:
                connection.execute("BEGIN")
                try:
                    yield SqliteView(connection, self._queries, tenant, None)
                finally:
                    connection.execute("ROLLBACK")
            finally:
                with self._pool:
                    if self._closed:
                        connection.close()
                    else:
                        self._idle.append(connection)

    @contextmanager
    def transaction(self, tenant: TenantId) -> Iterator[SqliteTransaction]:
        self._check()
        if self.readonly:
            raise Unavailable(f"{self.path} was opened read-only. Nothing was written. Open it for writing.")
        with translated(self.path), self._gate.turn():
            run = self._writer.execute
            run("BEGIN IMMEDIATE")
            try:
                memory = self._remember(tenant)
                write = SqliteTransaction(self._writer, self._queries, tenant, memory)
                yield write
                run("COMMIT")
            except BaseException:
                self._memory.clear()
                if not self._writer.getautocommit():
                    run("ROLLBACK")
                raise

    def close(self) -> None:
        with self._pool:
            if not self._closed:
                self._closed = True
                if self._process == pid():
                    for connection in (*self._idle, self._writer):
                        connection.close()
                self._gate.close()

    def _check(self) -> None:
        if self._closed:
            raise Unavailable("The ledger is closed. Nothing was written. Open it again.")
        if self._process != pid():
            raise Unavailable(
                f"{self.path} was opened before this process was forked. Nothing was written. "
                "Open the ledger again in each process."
            )

    def _take(self) -> apsw.Connection:
        with self._pool:
            if self._idle:
                return self._idle.pop()
        return connect(self.path, readonly=True)

    def _remember(self, tenant: TenantId) -> _Memory:
        """Return what this process knows of a tenant; nothing when another process has written since."""
        version = self._writer.execute("PRAGMA data_version").get
        if version != self._version:
            self._memory.clear()
            self._version = version
        return self._memory.setdefault(tenant, _Memory())


class _Memory:
    """What a process keeps at hand between its own writes."""

    def __init__(self) -> None:
        self.head: Head | None = None
        self.states: OrderedDict[bytes, Kept] = OrderedDict()
        self.fingerprint: tuple[int, fingerprint.Tree] | None = None
        self.number: int | None = None
        self.schemas: dict[str, list[tuple[int, Schema]]] | None = None


class SqliteView:
    """Reading of one tenant."""

    def __init__(
        self, connection: apsw.Connection, named: dict[str, str], tenant: TenantId, memory: _Memory | None
    ) -> None:
        self._run = connection.execute
        self._many = connection.executemany
        self._named = named
        self._memory = memory
        self._name = tenant
        self._number: int | None = memory.number if memory is not None else None
        if self._number is None:
            self._number = self._one("tenant", name=tenant)
        self._base = codec.base(self._number or 0)
        self._schemas: dict[str, list[tuple[int, Schema]]] | None = memory.schemas if memory is not None else None

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
        if self._memory is not None and self._memory.head is not None:
            return self._memory.head
        row = self._row("last_entry", **self._bounds())
        if row is None:
            found = Head(None, 0, None, Frontier())
        else:
            size = row[0] - self._base + 1
            found = Head(row[1], size, moment.from_micros(row[2]), Frontier.at(_Nodes(self), size))
        if self._memory is not None:
            self._memory.head = found
        return found

    def entry(self, position: int) -> Entry | None:
        if position < 0:
            return None
        row = self._row("entries", **self._bounds(position - 1, position))
        return None if row is None else codec.entry(row, self._base)

    def entries(
        self, after: int = BEFORE_ALL, through: int | None = None, kinds: Collection[str] | None = None
    ) -> Iterator[Entry]:
        bounds = self._bounds(max(after, BEFORE_ALL), through)
        if kinds is None or "observation" in kinds:
            for row in self._all("entries", **bounds):
                if kinds is None or codec.KINDS[row[3]] in kinds:
                    yield codec.entry(row, self._base)
            return
        rows = [row for kind in kinds for row in self._all("entries_of_kind", kind=codec.NUMBERS[kind], **bounds)]
        for row in sorted(rows):
            yield codec.entry(row, self._base)

    def leaves(self, size: int) -> Sequence[bytes]:
        return [row[0] for row in self._all("leaves", **self._bounds(BEFORE_ALL, size - 1))]

    def position_at(self, moment_: str) -> int:
        wanted = moment.to_micros(moment_)
        return bisect_right(_Times(self, self.head().size), wanted) - 1

    def receipt(self, agent: str, key: str) -> Receipt | None:
        row = self._row("receipt", tenant=self._tenant, agent=agent, key=key)
        return None if row is None else Receipt(*row)

    def observation(self, digest: bytes, through: int) -> Stored | None:
        for row in self._all("said_by_digest", digest=codec.head(digest), **self._bounds(through=through)):
            found = self._stored(row)
            if found.observation.digest == digest:
                return found
        return None

    def observation_by_id(self, id: str) -> Stored | None:
        head = codec.head_of_id(id)
        if head is not None:
            for row in self._all("said_by_digest", digest=head, **self._bounds()):
                found = self._stored(row)
                if found.observation.id == id:
                    return found
        return None

    def namers(self, digest: bytes, through: int) -> Sequence[Stored]:
        rows = self._all("namers", target=codec.head(digest), **self._bounds(through=through))
        return [stored for stored in map(self._stored, rows) if digest in stored.observation.replaces]

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        row = self._entity(entity)
        if row is None or row[4] < 0:
            return []
        start = row[4]
        if start > through:
            anchor = self._one("anchor", entity=row[0], through=through)
            start = start if anchor is None else anchor
        if start <= after:
            return []
        chain = list(self._all("chain", start=self._base + start, base=self._base, after=after))
        return [self._stored(row) for row in reversed(chain) if row[0] - self._base <= through]

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
        row = self._entity(entity)
        if row is None or row[3] < 0 or row[3] > through:
            return None
        if row[4] <= through:
            return int(row[4])
        anchor = self._one("anchor", entity=row[0], through=through)
        start = self._base + (row[4] if anchor is None else anchor)
        return int(self._one("last_said", start=start, base=self._base, through=through))

    def _entity(self, digest: bytes) -> tuple[Any, ...] | None:
        """Return (id, type, key, first, last) of an entity."""
        for row in self._all("entity", digest=codec.head(digest), tenant=self._tenant):
            if Ref(row[1], row[2]).digest == digest:
                return tuple(row)
        return None

    def entity(self, digest: bytes, through: int) -> Ref | None:
        row = self._entity(digest)
        return Ref(row[1], row[2]) if row is not None and 0 <= row[3] <= through else None

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
        if self._schemas is None:
            self._schemas = {}
            for entry in self.entries(kinds={"schema"}):
                assert entry.body is not None
                found = schema.stored(entry.body)
                self._schemas.setdefault(found.type, []).append((entry.position, found))
            if self._memory is not None:
                self._memory.number, self._memory.schemas = self._number, self._schemas
        return self._schemas

    def schemas(self, type: str, through: int) -> Sequence[Schema]:
        return [found for position, found in self._registered().get(type, ()) if position <= through]

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

    def kept(self, root: Ref, through: int, rules: Rules) -> Kept | None:
        if self._memory is not None:
            at_hand = self._memory.states.get(root.digest)
            if at_hand is not None and at_hand.position <= through and at_hand.state.schema == rules.schema.digest:
                self._memory.states.move_to_end(root.digest)
                return at_hand
        row = self._row("state", digest=codec.head(root.digest), tenant=self._tenant, type=root.type, key=root.key)
        if row is None or row[0] is None:
            return None
        if row[0] > through:
            entity = self._entity(root.digest)
            assert entity is not None
            row = self._row("kept", entity=entity[0], through=through)
            if row is None:
                return None
        state = merge.unpack(row[1], rules)
        return None if state is None else Kept(row[0], state)

    def fingerprint(self) -> tuple[int, fingerprint.Tree]:
        if self._memory is not None and self._memory.fingerprint is not None:
            return self._memory.fingerprint
        position = self._one("imprinted", tenant=self._tenant)
        tree = fingerprint.Tree.build((row[0], row[1]) for row in self._all("imprints", tenant=self._tenant))
        found = (BEFORE_ALL if position is None else int(position), tree)
        if self._memory is not None:
            self._memory.fingerprint = found
        return found

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
    """One write."""

    _memory: _Memory

    def __init__(
        self, connection: apsw.Connection, named: dict[str, str], tenant: TenantId, memory: _Memory | None
    ) -> None:
        super().__init__(connection, named, tenant, memory)
        self._rows: dict[bytes, tuple[Any, ...]] = {}
        # What this write says of each entity, and the position of the entity's observation before it.
        self._recent: dict[bytes, tuple[int, list[Stored]]] = {}

    def _entity(self, digest: bytes) -> tuple[Any, ...] | None:
        row = self._rows.get(digest)
        if row is None:
            row = super()._entity(digest)
            if row is not None:
                self._rows[digest] = row
        return row

    def observations(self, entity: bytes, after: int, through: int) -> Sequence[Stored]:
        recent = self._recent.get(entity)
        if recent is not None and after >= recent[0]:
            return [stored for stored in recent[1] if after < stored.position <= through]
        return super().observations(entity, after, through)

    def append(self, entries: Sequence[Entry], meanings: Sequence[Meaning]) -> None:
        head = self.head()
        if self._number is None:
            self._number = self._one("add_tenant", name=self._name)
            self._base = codec.base(self._tenant)
        frontier, size = head.frontier, head.size
        headers, bodies, leaves = [], [], []
        logs: dict[str, int] = {}
        for entry in entries:
            entry.check()
            assert entry.position == size, "entries are appended without a gap"
            assert head.recorded_at is None or entry.recorded_at > head.recorded_at, "the log's clock never goes back"
            if entry.log not in logs:
                found = self._one("log", name=entry.log)
                logs[entry.log] = self._one("add_log", name=entry.log) if found is None else found
            id = self._base + entry.position
            leaf = entry.leaf()
            envelope = entry.envelope
            headers.append(
                (
                    id,
                    logs[entry.log],
                    moment.to_micros(entry.recorded_at),
                    codec.NUMBERS[entry.kind],
                    envelope.write,
                    envelope.length,
                    envelope.request,
                    entry.commitment,
                    leaf,
                )
            )
            bodies.append((id, entry.nonce, entry.body))
            leaves.append(leaf)
            size += 1
        self._many(self._named["add_entry"], headers)
        self._many(self._named["add_body"], bodies)
        self._grow_tree(head.size, leaves)
        frontier = frontier.extend(leaves)
        self._memory.head = Head(entries[-1].log, size, entries[-1].recorded_at, frontier)
        self._index(entries, meanings)

    def _grow_tree(self, size: int, leaves: Sequence[bytes]) -> None:
        """Keep the roots of the complete subtrees that these leaves end."""
        width = 1 << NODE_STEP
        new: dict[int, dict[int, bytes]] = {0: {size + index: leaf for index, leaf in enumerate(leaves)}}
        height, end = 0, size + len(leaves)
        rows = []
        while True:
            first, last = (size >> (height + NODE_STEP)), (end >> (height + NODE_STEP))
            if first == last:
                break
            above = new.setdefault(height + NODE_STEP, {})
            for place in range(first, last):
                children = [self._node(height, place * width + index, new) for index in range(width)]
                while len(children) > 1:
                    children = [node_hash(*children[i : i + 2]) for i in range(0, len(children), 2)]
                above[place] = children[0]
                rows.append((self._tenant, height + NODE_STEP, place, children[0]))
            height += NODE_STEP
        if rows:
            self._many(self._named["add_node"], rows)

    def _node(self, height: int, place: int, new: dict[int, dict[int, bytes]]) -> bytes:
        found = new.get(height, {}).get(place)
        if found is None and height == 0:
            found = self.leaves_between(place, place + 1)[0]
        elif found is None:
            found = self._one("node", tenant=self._tenant, height=height, place=place)
        assert found is not None, "a complete subtree below a complete one is there"
        return found

    def leaves_between(self, start: int, end: int) -> list[bytes]:
        """Return some leaf hashes."""
        return [row[0] for row in self._all("leaves", **self._bounds(start - 1, end - 1))]

    def _index(self, entries: Sequence[Entry], meanings: Sequence[Meaning]) -> None:
        said, naming, edges, sources = [], [], [], []
        steps, about = [], []
        last: dict[int, int] = {}
        ids: dict[bytes, tuple[int, int]] = {}
        for entry, meaning in zip(entries, meanings, strict=True):
            if isinstance(meaning, Observation):
                ref = meaning.entity
                known = ids.get(ref.digest)
                if known is None:
                    row = self._entity(ref.digest)
                    if row is None or row[3] < 0:
                        edges += [(codec.head(end.digest), ref) for end in dict.fromkeys(endpoints(ref) or ())]
                    if row is None:
                        known = (self._add_entity(ref, entry.position), BEFORE_ALL)
                    else:
                        if row[3] < 0:
                            self._run(self._named["set_first"], (entry.position, row[0]))
                        known = (row[0], row[4])
                number, previous = known
                id = self._base + entry.position
                said.append((id, number, previous, codec.head(meaning.digest)))
                naming += [(codec.head(name), id) for name in meaning.replaces]
                ids[ref.digest] = (number, entry.position)
                last[number] = entry.position
                self._recent.setdefault(ref.digest, (previous, []))[1].append(Stored(entry.position, meaning))
                first = entry.position if previous < 0 else self._rows[ref.digest][3]
                self._rows[ref.digest] = (number, ref.type, ref.key, first, entry.position)
            elif isinstance(meaning, Schema):
                self._schemas = self._memory.schemas = None
            elif isinstance(meaning, Step):
                id = self._base + entry.position
                steps.append((codec.head_of_text(meaning.run), id))
                if meaning.subject is not None:
                    about.append((codec.head(meaning.subject.digest), id))
            elif entry.kind == "source" and entry.body is not None:
                sources.append((codec.head(source_digest(entry.body)), self._base + entry.position))
        self._many(self._named["add_said"], said)
        self._many(self._named["set_last"], [(position, number) for number, position in last.items()])
        if naming:
            self._many(self._named["add_naming"], naming)
        if edges:
            self._many(self._named["add_edge"], [(head, ids[ref.digest][0]) for head, ref in edges])
        if sources:
            self._many(self._named["add_source"], sources)
        if steps:
            self._many(self._named["add_step"], steps)
        if about:
            self._many(self._named["add_about"], about)

    def _add_entity(self, ref: Ref, position: int) -> int:
        values = (self._tenant, ref.type, ref.key, codec.head(ref.digest), position, position)
        return int(self._run(self._named["add_entity"], values).get)

    def keep(self, kept: Kept, rules: Rules, *, lasting: bool) -> None:
        root = kept.state.members[0]
        states = self._memory.states
        states[root.digest] = kept
        states.move_to_end(root.digest)
        if len(states) > STATES_MAX:
            states.popitem(last=False)
        row = self._entity(root.digest)
        number = row[0] if row is not None else self._add_entity(root, BEFORE_ALL)
        packed = merge.pack(kept.state, rules)
        self._run(self._named["set_state"], (kept.position, packed, number))
        if lasting:
            self._run(self._named["add_kept"], (number, kept.position, row[4] if row else BEFORE_ALL, packed))

    def share(self, ref: Ref, values: Iterable[tuple[str, str]]) -> None:
        rows = [(self._tenant, ref.type, rule, value) for rule, value in values]
        if rows:
            row = self._entity(ref.digest)
            number = row[0] if row is not None else self._add_entity(ref, BEFORE_ALL)
            self._many(self._named["add_sharing"], [(*values, number) for values in rows])

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
            row = self._entity(ref.digest)
            if row is None and not said:
                continue
            number = row[0] if row is not None else self._add_entity(ref, BEFORE_ALL)
            old = dict(tuple(found) for found in self._all("words", entity=number))
            now = {token.encode(): orjson.dumps(sorted(fields)).decode() for token, fields in said.items()}
            gone += [(self._tenant, token, number) for token in old if token not in now]
            new += [(self._tenant, token, number, fields) for token, fields in now.items() if old.get(token) != fields]
        self._many(self._named["drop_word"], gone)
        self._many(self._named["set_word"], new)
        self._all("set_worded", tenant=self._tenant, position=position)

    def shelve(self, name: str, position: int, items: Iterable[tuple[int, bytes]]) -> None:
        self._many(self._named["add_shelf"], [(self._tenant, name, at, value) for at, value in items])
        self._all("set_shelved", tenant=self._tenant, name=name, position=position)

    def drop_shelf(self, name: str) -> None:
        self._all("drop_shelf", tenant=self._tenant, name=name)

    def drop_derived(self) -> None:
        self._all("drop_derived", tenant=self._tenant, **self._bounds())
        self._schemas = None
        self._memory.states.clear()
        self._memory.fingerprint = None

    def derive(self, entries: Sequence[Entry], meanings: Sequence[Meaning]) -> None:
        first = entries[0].position
        self._grow_tree(first, self.leaves_between(first, first + len(entries)))
        self._index(entries, meanings)
        self._memory.head = None  # it rests on the subtrees just kept


def damaged(position: int, what: str) -> Corrupt:
    """Return the error for something of the log that is not there, or not what was written."""
    return Corrupt(
        f"Position {position}: its {what} is gone or is not what was written. Stop writing, copy the file, and restore "
        "a backup.",
        {"position": position, "damage": what},
    )


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
