"""Training: rows for training a model, streamed from the runs of a ledger as of one moment.

Runs that depend on observations that were withdrawn or erased since are excluded and listed. Rows are in the order in
which the log received their runs, except for a few that `_arranged` moves to the front.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.engines import private
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.index import Lookup
from woodrat.ledger.moments import here
from woodrat.ledger.read import Reader
from woodrat.merge import fold
from woodrat.runs.reader import lists as run_lists
from woodrat.runs.reader.run_reader import RunReader
from woodrat.runs.run_fields import MIXED
from woodrat.state.asof import AsOf
from woodrat.state.observation import RETRACT
from woodrat.training import exports
from woodrat.training import rows as training_rows
from woodrat.training.exports import Export, Exported
from woodrat.training.rows import DPO, KTO, PROCESS, SFT, LeftOut, Lesson

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from os import PathLike

    from woodrat.engines.view import View
    from woodrat.ledger.progress import Progress
    from woodrat.log.entry import Entry
    from woodrat.merge import Policy
    from woodrat.runs.reader.lists import RunQuery
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored
    from woodrat.training.rows import Row, Tools

NOTHING_EXPORTED = "Nothing was exported."
LEFT_OUT_MAX: Final = 10_000
"""Most excluded runs that an export lists; all of them are counted."""
SIBLINGS_MAX: Final = 16
"""Most good runs of the same input that a bad one is compared with."""
HELD_BYTES: Final = 4 * 1_048_576
"""Bytes held back before the first row is written; readers that infer columns look at 10 MiB or more."""

_LINE_ENDS: Final = {code: f"\\u{code:04x}" for code in (0x85, 0x2028, 0x2029)}


def export(
    run_reader: RunReader,
    asked: RunQuery,
    kind: str,
    out: str | PathLike[str] | Any,
    *,
    flavour: str = training_rows.TRL,
    pair_by: str = training_rows.INPUT,
    metadata: bool = True,
    progress: Progress | None = None,
) -> Exported:
    """Write the rows of all runs that fit a question, one a line; whole or not at all where `out` is a path."""
    training_rows.check(kind, flavour, pair_by)
    course = Course(run_reader, asked, kind, flavour, pair_by)

    def rows(told: Progress | None) -> Iterator[Row]:
        for row in course.rows(told):
            if not metadata:
                del row["metadata"]
            yield row

    count, digest = 0, sha256()
    with _opened(out) as (write, name):
        for row in _arranged(lambda: rows(progress), lambda: rows(None)):
            line = _line(row)
            write(line)
            digest.update(line.encode())
            count += 1
    left_out = list(course.left_out.values())
    return Exported(
        kind=kind,
        flavour=flavour,
        rows=count,
        runs=len(course.used),
        position=run_reader.through,
        left_out=tuple(left_out[:LEFT_OUT_MAX]),
        left_out_count=len(left_out),
        out=name,
        sha256=digest.hexdigest(),
    )


def _line(row: Row) -> str:
    """Return a row as one line for every reader, including those that treat other characters as newlines."""
    return json.dumps(row, ensure_ascii=False).translate(_LINE_ENDS) + "\n"


class Course:
    """The rows of one kind, made from the runs that fit a question."""

    def __init__(
        self,
        run_reader: RunReader,
        asked: RunQuery,
        kind: str,
        flavour: str,
        pair_by: str = training_rows.INPUT,
        only: Iterable[str] | None = None,
    ) -> None:
        self._only = only
        """The runs to consider; default: all."""
        self._run_reader = run_reader
        self._asked = asked
        self._kind = kind
        self._flavour = flavour
        self._pair_by = pair_by
        self._standing = _Standing(run_reader.reader)
        self._tools = _ToolShed(run_reader.reader)
        self._good: dict[bytes, list[str]] | None = None
        self.left_out: dict[str, LeftOut] = {}
        self.used: set[str] = set()

    def rows(self, progress: Progress | None) -> Iterator[Row]:
        """Yield the rows; the same ones each time."""
        make = {SFT: self._sft, KTO: self._kto, DPO: self._dpo, PROCESS: self._process}[self._kind]
        paired = self._kind in (DPO, PROCESS)
        size = self._run_reader.through + 1
        whole = size * 2 if paired else size

        def tell(done: int) -> None:
            if progress is not None:
                progress(done, whole)

        if paired and self._good is None:
            self._good = {}
            for position, record in self._records():
                key = training_rows.pair_key(record, self._pair_by)
                if key is not None and training_rows.label(record) is True:
                    self._good.setdefault(key, []).append(record.id)
                tell(position + 1)
        for position, record in self._records():
            for row in make(record):
                if isinstance(row, LeftOut):
                    self.left_out.setdefault(row.run, row)
                    continue
                self.used.update(row["metadata"]["runs"])
                yield row
            tell(whole - size + position + 1)
        tell(whole)

    def _records(self) -> Iterator[tuple[int, RunRecord]]:
        return run_lists.matching(self._run_reader, self._asked, oldest_first=True, only=self._only)

    def _lesson(self, record: RunRecord) -> Lesson | LeftOut:
        gone = self._standing.fallen(record)
        if gone:
            return LeftOut(record.id, "it depends on observations that were withdrawn or erased", gone)
        return training_rows.lesson(record, self._tools.of(record))

    def _sft(self, record: RunRecord) -> Iterator[Row | LeftOut]:
        if self._asked.verdict is None and (training_rows.label(record) is False or record.verdict == MIXED):
            yield LeftOut(record.id, f"it was judged {record.verdict}")
            return
        found = self._lesson(record)
        yield found if isinstance(found, LeftOut) else training_rows.sft_row(found, self._flavour)

    def _kto(self, record: RunRecord) -> Iterator[Row | LeftOut]:
        if record.verdict is None:
            return
        if training_rows.label(record) is None:
            yield LeftOut(record.id, f"its verdict is {shown(record.verdict)}, which is neither good nor bad")
            return
        found = self._lesson(record)
        yield found if isinstance(found, LeftOut) else training_rows.kto_row(found, self._flavour)

    def _dpo(self, record: RunRecord) -> Iterator[Row | LeftOut]:
        siblings = self._siblings(record) if training_rows.label(record) is False else ()
        if record.preferred is None and not siblings:
            if training_rows.label(record) is False:
                reason = f"no run of the same {self._pair_by} was judged good, and no better answer is stated"
                yield LeftOut(record.id, reason)
            return
        found = self._lesson(record)
        if isinstance(found, LeftOut):
            yield found
            return
        if record.preferred is not None:
            yield training_rows.preferred_row(found, self._flavour)
        good = self._nearest(found, siblings)
        if good is not None:
            yield training_rows.pair_row(good, found, self._flavour, self._pair_by)
        elif siblings and record.preferred is None:
            yield LeftOut(record.id, f"the good runs of the same {self._pair_by} were excluded themselves")

    def _process(self, record: RunRecord) -> Iterator[Row | LeftOut]:
        if not record.judgements:
            return
        found = self._lesson(record)
        if isinstance(found, LeftOut):
            yield found
            return
        siblings = self._siblings(record) if training_rows.label(record) is False else ()
        yield training_rows.process_row(found, self._nearest(found, siblings))

    def _siblings(self, record: RunRecord) -> list[str]:
        """Return the good runs that can be paired with a bad one, the first ones in the log."""
        assert self._good is not None
        key = training_rows.pair_key(record, self._pair_by)
        return [] if key is None else self._good.get(key, [])[:SIBLINGS_MAX]

    def _nearest(self, found: Lesson, siblings: Iterable[str]) -> Lesson | None:
        """Return the good run with the longest common beginning with a bad one."""
        best: tuple[int, Lesson] | None = None
        for id in siblings:
            record = self._run_reader.find(id)
            other = None if record is None else self._lesson(record)
            if isinstance(other, LeftOut):
                self.left_out.setdefault(other.run, other)
            elif other is not None:
                shared = training_rows.shared_messages(found, other)
                if best is None or shared > best[0]:
                    best = shared, other
        return None if best is None else best[1]


class _Standing:
    """The live observations."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def fallen(self, record: RunRecord) -> tuple[str, ...]:
        """Return the withdrawn or erased observations that a run depends on, sorted."""
        places = {(read.log, read.as_of) for read in record.reads}
        if record.basis is not None:
            places.add((record.basis.get("log"), record.basis.get("position")))
        known = any(here(self._reader.view, *place) is not None for place in places)
        return tuple(sorted(id for id in record.observations if not self._stands(id, here=known)))

    def _stands(self, id: str, *, here: bool) -> bool:
        """Return True if an observation is live; an observation of another log counts as live."""
        view, through = self._reader.view, self._reader.asof.position
        found = view.observation(id)
        if found is None or found.position > through:
            return not here
        namers = view.namers(found.observation.digest, through)
        return not any(stored.observation.op == RETRACT for stored in namers) or self._is_live(found)

    def _is_live(self, found: Stored) -> bool:
        members = self._reader.group(found.observation.entity)
        known = {stored.observation.digest: stored.observation for stored in self._reader.stored(members)}
        return found.observation.digest in fold.live_digests(known)


class _ToolShed:
    """The descriptions of tools in the `tool_config`s in force when a run began."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[tuple[str, int], Tools] = {}

    def of(self, record: RunRecord) -> Tools:
        """Return the tools of a run that are described, by name."""
        found: Tools = {}
        for used in record.in_force:
            entity, version = used.get("entity"), used.get("version")
            if used["type"] == "tool_config" and isinstance(entity, str) and type(version) is int:
                if (entity, version) not in self._known:
                    self._known[entity, version] = self._described(entity, version)
                found.update(self._known[entity, version])
        return found

    def _described(self, entity: str, version: int) -> Tools:
        try:
            ref = ids.parse_ref(entity)
        except Refused:
            return {}
        if version > self._reader.asof.position:
            return {}
        snapshot = Reader(self._reader.view, AsOf(version), self._reader.policies).find(ref)
        fields = {} if snapshot is None else snapshot.fields
        name, schema, about = fields.get("name"), fields.get("input_schema"), fields.get("description")
        if not isinstance(name, str) or not isinstance(schema, dict):
            return {}
        return {name: {"description": about if isinstance(about, str) else "", "parameters": schema}}


# The order of rows


def _arranged(rows: Callable[[], Iterator[Row]], again: Callable[[], Iterator[Row]]) -> Iterator[Row]:
    """Yield rows so that a reader which infers columns from the beginning of a file takes all of it.

    Such a reader (Hugging Face's `datasets`) keeps messages unchanged once it has met two with different keys. If the
    rows held back have messages of one shape only, the first later row with another shape is moved before them.
    """
    coming = rows()
    held: list[Row] = []
    size = 0
    for row in coming:
        held.append(row)
        size += len(json.dumps(row, ensure_ascii=False))
        if size >= HELD_BYTES:
            break
    else:
        yield from held
        return
    shapes: dict[str, set[frozenset[str]]] = {}
    for row in held:
        for name, messages in _columns(row):
            shapes.setdefault(name, set()).update(frozenset(message) for message in messages)
    wanted = {name: seen for name, seen in shapes.items() if len(seen) == 1}
    leading: dict[int, Row] = {}
    for number, row in enumerate(again() if wanted else ()):
        if number >= len(held):
            for name, messages in _columns(row):
                if name in wanted and any(frozenset(message) not in wanted[name] for message in messages):
                    del wanted[name]
                    leading[number] = row
        if not wanted:
            break
    for name in wanted:
        _vary(held, name)
    yield from leading.values()
    yield from held
    yield from (row for number, row in enumerate(coming, len(held)) if number not in leading)


def _columns(row: Row) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the messages in a row, by their place."""
    for name, value in row.items():
        inner = value.get("messages") if isinstance(value, dict) else value
        if isinstance(inner, list) and inner and isinstance(inner[0], dict) and "role" in inner[0]:
            yield name, inner


def _vary(held: list[Row], column: str) -> None:
    """Add an empty text to one call among messages of a single shape: a second shape with the same meaning."""
    for row in held:
        for name, messages in _columns(row):
            for message in messages:
                if name == column and "tool_calls" in message and "content" not in message:
                    message["content"] = ""
                    return


# Where they go


@contextmanager
def _opened(out: Any) -> Iterator[tuple[Callable[[str], object], str | None]]:
    """Open the output: a file object unchanged, a path so that it appears whole or not at all."""
    if hasattr(out, "write"):
        text = hasattr(out, "encoding")
        yield (out.write if text else lambda line: out.write(line.encode())), None
        return
    import os

    if not isinstance(out, str | os.PathLike):
        problem = f"expected a path or a file, got {shown(out)}"
        raise Refused([Fault("out", problem, "Send the path of a file, or an open one.")], NOTHING_EXPORTED)
    path = os.fspath(out)
    # a pipe or a device cannot be replaced atomically
    partial = path if os.path.exists(path) and not os.path.isfile(path) else f"{path}.part"
    try:
        # Closed below, before it is put in place.
        file = open(partial, "w", encoding="utf-8", newline="\n", opener=private.opener)  # noqa: SIM115
    except (OSError, ValueError) as error:
        raise _unwritable(path, error) from error
    try:
        with file:
            yield file.write, path
        if partial != path:
            os.replace(partial, path)
    except BaseException as error:
        if partial != path:
            os.unlink(partial)
        if isinstance(error, OSError):
            raise _unwritable(path, error) from error
        raise


def _unwritable(path: str, error: Exception) -> Refused:
    problem = f"cannot write {shown(path)}: {getattr(error, 'strerror', None) or error}"
    return Refused([Fault("out", problem, "Name a file that can be written.")], NOTHING_EXPORTED)


# Exports on record


def leaning_exports(
    view: View,
    through: int,
    traces: Lookup,
    policies: Mapping[str, Policy],
    runs: Iterable[str],
    leans: Callable[[RunRecord], bool],
) -> Iterator[Export]:
    """Yield exports with rows of runs that depended on something by then, by position; `traces` holds the exports."""
    named = list(runs)
    for entry in traces.entries(exports.EXPORTS) if named else ():
        assert entry.body is not None
        body: Any = form.decode(entry.body)
        details = body["fields"].get("details")
        if not isinstance(details, dict) or here(view, details.get("log"), details.get("position")) is None:
            continue  # it was made from another log, with other positions
        count, used = _rows_made_of(view, policies, entry, details, named, leans)
        if count:
            yield Export(
                id=f"audit_event/{body['entity']['key']}",
                kind=str(details["kind"]),
                flavour=str(details["flavour"]),
                agent=str(body["agent"]),
                at=entry.recorded_at,
                position=entry.position,
                as_of=details["position"],
                out=details.get("out"),
                sha256=details.get("sha256"),
                rows=details.get("rows"),
                leaning=count,
                runs=used,
            )


def _rows_made_of(
    view: View,
    policies: Mapping[str, Policy],
    entry: Entry,
    details: Mapping[str, Any],
    runs: Iterable[str],
    leans: Callable[[RunRecord], bool],
) -> tuple[int, tuple[str, ...]]:
    """Return the number of an export's rows whose runs depended on something by then, and these runs."""
    position, effective, filters = details.get("position"), details.get("effective"), details.get("filters")
    if type(position) is not int or not 0 <= position < entry.position or not isinstance(filters, dict):
        return 0, ()
    pair_by = details.get("pair_by", training_rows.INPUT)
    try:
        training_rows.check(details.get("kind"), details.get("flavour"), pair_by)
        asked = run_lists.ask_runs(**{name: filters.get(name) for name in exports.FILTERS})
    except Refused:
        return 0, ()  # an event by another writer under this name
    run_reader = RunReader(Reader(view, AsOf(position, effective), policies))
    records = [record for id in runs if (record := run_reader.find(id)) is not None and leans(record)]
    concerned = {record.id for record in records}
    among = set(concerned)
    if details["kind"] in (DPO, PROCESS):
        # The pair of a run depends only on the runs with the same key.
        for record in records:
            among.update(_runs_like(run_reader, record, pair_by))
    count = 0
    used: set[str] = set()
    for row in Course(run_reader, asked, details["kind"], details["flavour"], pair_by, among).rows(None):
        shared = concerned.intersection(row["metadata"]["runs"])
        count += bool(shared)
        used |= shared
    return count, tuple(id for id in runs if id in used)


def _runs_like(run_reader: RunReader, record: RunRecord, pair_by: str) -> Iterator[str]:
    """Yield the runs that may share a run's key (`pair_key`): by its question or another indexed property.

    By an attribute, the starts of all runs are read.
    """
    names = ("query", "subject") if pair_by == training_rows.INPUT else (pair_by,)
    name = next((name for name in names if name in training_rows.PAIR_FIELDS and getattr(record, name)), None)
    if name is not None:
        asked = run_lists.ask_runs(**{name: getattr(record, name)})
        yield from (found.id for _, found in run_lists.matching(run_reader, asked))
        return
    value = record.attributes.get(pair_by)
    for entry in run_reader.view.entries(through=run_reader.through, kinds={"run.started"}):
        began: Any = form.decode(entry.body or b"{}")
        attributes, id = began.get("attributes"), began.get("run")
        told = attributes.get(pair_by) if isinstance(attributes, dict) else None
        if isinstance(id, str) and (pair_by == training_rows.INPUT or (told is not None and form.same(told, value))):
            yield id
