"""The run comparer: where recorded runs part, two or many, with what the log knows of the observations they read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from woodrat.canon import form, ids
from woodrat.canon.ids import Ref
from woodrat.compare import contrast
from woodrat.compare.cause import Statement
from woodrat.compare.divergence import Divergence, RowPage, compare, completed, page_of, with_edit
from woodrat.compare.groups import Crowd, gather
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index
from woodrat.ledger.moments import NO_READ, here
from woodrat.ledger.pages import limit_faults
from woodrat.records import replace
from woodrat.runs.reader import lists as run_lists
from woodrat.runs.reader.run_reader import open_runs, run_record
from woodrat.runs.recordings import Recordings
from woodrat.state import source

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.runs.reader.lists import RunQuery
    from woodrat.runs.reader.run_reader import RunReader
    from woodrat.runs.record import RunRecord
    from woodrat.state.asof import Stored


RUNS_MAX: Final = 10_000
"""Most runs of one crowd."""


def runs_diff(
    context: Context, first: object, second: object, other: Context | None = None, page: RowPage | None = None
) -> Divergence:
    """Return where two runs part and why; `NotFound` when either is not here, or the second not in `other`.

    A run is an id, or a document that holds one run in the neutral format. `other` at another moment of the same log
    is of no account. With a page, only its rows are returned; the comparison is of the whole runs.
    """
    with open_runs(context) as run_reader:
        if other is None or (other.engine is context.engine and other.tenant == context.tenant):
            found = _compared(run_reader, first, second, None)
        else:
            with open_runs(other) as elsewhere:
                found = _compared(run_reader, first, second, elsewhere)
    return found if page is None else page_of(found, page)


def read_row_page(skip: object, limit: object, differing: object, faults: list[Fault]) -> RowPage | None:
    """Return which rows are asked for, none where it is all of them; what is wrong is added to the faults."""
    found: list[Fault] = []
    if skip is not None and (type(skip) is not int or skip < 0):
        found.append(Fault("skip", f"expected a whole number from 0 on, got {shown(skip)}", "Send a count of rows."))
    if limit is not None:
        found += limit_faults(limit, rest="skip")
    if type(differing) is not bool:
        found.append(Fault("differing", f"expected true or false, got {shown(differing)}", "Send a boolean."))
    faults += found
    if found or (skip is None and limit is None and not differing):
        return None
    assert skip is None or isinstance(skip, int)
    assert limit is None or isinstance(limit, int)
    return RowPage(skip, limit, differing is True)


def _compared(run_reader: RunReader, first: object, second: object, other: RunReader | None) -> Divergence:
    a = _record(run_reader, first, "first")
    b = a if other is None and first == second else _record(other or run_reader, second, "second")
    a, b = completed(a, b), completed(b, a)
    apart = None if other is None or isinstance(second, Recordings) else LogLineage(other)
    return with_edit(compare(a, b, LogLineage(run_reader), apart), a, b)


def runs_group(
    context: Context,
    runs: Sequence[object] | None,
    like: object,
    asked: RunQuery | None,
    *,
    attributes: Sequence[tuple[str, Json]] = (),
    reward_min: float | None = None,
) -> Crowd:
    """Return runs clustered by what they did: those named, those a question fits, or those with the inputs of one."""
    with open_runs(context) as run_reader:
        chosen = _Chosen(run_reader, runs, like, asked, attributes)
        return gather(chosen.records(), LogLineage(run_reader), find=chosen.find, reward_min=reward_min)


class _Chosen:
    """The runs that a group is made of, read one at a time; only those of documents are held."""

    def __init__(
        self,
        run_reader: RunReader,
        runs: Sequence[object] | None,
        like: object,
        asked: RunQuery | None,
        attributes: Sequence[tuple[str, Json]],
    ) -> None:
        self._run_reader, self._runs, self._like, self._asked = run_reader, runs or (), like, asked
        self._attributes = attributes
        self._held: dict[str, RunRecord] = {}

    def find(self, id: str) -> RunRecord:
        """Return a run of the group again."""
        return self._held.get(id) or run_record(self._run_reader, id)

    def records(self) -> Iterator[RunRecord]:
        """Yield the runs; `NotFound` where there is none, `Refused` where there are too many."""
        seen: set[str] = set()
        for record in self._all():
            seen.add(record.id)
            if len(seen) > RUNS_MAX:
                remedy = "Narrow it with since and until, or name the runs."
                raise Refused([Fault("runs", f"there are more than {RUNS_MAX:,} runs", remedy)], NO_READ)
            yield record
        if not seen:
            position = self._run_reader.through
            raise NotFound(
                f"There is no run to compare at position {position}. Nothing was changed. `runs list` lists them.",
                {"position": position},
            )

    def _all(self) -> Iterator[RunRecord]:
        for number, run in enumerate(self._runs):
            for record in _records(self._run_reader, run, f"runs/{number}"):
                if isinstance(run, Recordings):
                    self._held[record.id] = record
                yield record
        if self._asked is None:
            return
        model = None if self._like is None else run_record(self._run_reader, self._like)
        asked = self._asked if model is None else _like(self._asked, model)
        for _, record in run_lists.matching(self._run_reader, asked):
            if (model is None or contrast.same_start(record, model)) and self._has_attributes(record):
                yield record

    def _has_attributes(self, record: RunRecord) -> bool:
        return all(
            name in record.attributes and _is_value(record.attributes[name], value) for name, value in self._attributes
        )


def read_attributes(stated: object, faults: list[Fault]) -> list[tuple[str, Json]]:
    """Return attributes by name, from an object or from texts such as `task=17`."""
    if isinstance(stated, Mapping):
        return [(str(name), value) for name, value in stated.items()]
    texts = [stated] if isinstance(stated, str) else stated
    if not isinstance(texts, list | tuple):
        problem = f"expected values by name, got {shown(stated)}"
        faults.append(Fault("attribute", problem, "Send an object, or a list of texts such as task=17."))
        return []
    pairs: list[tuple[str, Json]] = []
    for number, text in enumerate(texts):
        name, equals, value = text.partition("=") if isinstance(text, str) else ("", "", "")
        if name and equals:
            pairs.append((name, value))
        else:
            problem = f"got {shown(text)}"
            faults.append(Fault(f"attribute/{number}", problem, "Write the name, = and the value: task=17."))
    return pairs


def _is_value(value: Json, wanted: Json) -> bool:
    """Tell whether a value is the one wanted; a text stands for itself and for what it spells as JSON."""
    if form.same(value, wanted) or not isinstance(wanted, str):
        return form.same(value, wanted)
    try:
        return form.same(value, form.parse(wanted))
    except Refused:
        return False


def _like(asked: RunQuery, model: RunRecord) -> RunQuery:
    """Return a question for runs, narrowed by the index of subjects to those with the subject of a run."""
    equal = {**asked.equal, **({} if model.query is None else {"query": model.query})}
    return replace(asked, equal=equal, subject=asked.subject or _ref(model.subject or ""))


def _record(run_reader: RunReader, run: object, name: str) -> RunRecord:
    found = _records(run_reader, run, name)
    if len(found) != 1:
        problem, remedy = f"there are {len(found)} runs in it", "Send one run; `runs.group` compares many."
        raise Refused([Fault(name, problem, remedy)], NO_READ)
    return found[0]


def _records(run_reader: RunReader, run: object, name: str) -> tuple[RunRecord, ...]:
    if not isinstance(run, Recordings):
        return (run_record(run_reader, run),)
    from woodrat.runs.verbs import documents

    try:
        return documents.read(run)
    except Refused as refusal:
        raise Refused((fault.under(name) for fault in refusal.faults), NO_READ) from None


class LogLineage:
    """What one log knows at one as-of of the observations that runs read; observations are found by their ids."""

    def __init__(self, run_reader: RunReader) -> None:
        self._reader, self._view, self._through = run_reader.reader, run_reader.view, run_reader.through
        self.log = run_reader.view.head().log

    def place(self, log: str | None, position: int | None) -> int | None:
        """Return a position of a read where the log it names is this one; none where it is another."""
        return here(self._view, log, position)

    def statement(self, observation: str) -> Statement | None:
        """Return an observation by its id; none where it is not here, or came later."""
        found = self._view.observation(observation)
        return None if found is None or found.position > self._through else self._told(found)

    def between(self, entity: str, after: int, through: int) -> Sequence[Statement]:
        """Return what was said of an entity, and of those it is joined with, after one position and up to another."""
        ref = _ref(entity)
        if ref is None:
            return ()
        found = self._reader.stored(self._reader.group(ref), after)
        return [self._told(stored) for stored in found if stored.position <= through]

    def schema(self, entity: str, position: int) -> int | None:
        """Return the version of the schema in force for an entity at a position, 0 without one; none for no entity."""
        ref = _ref(entity)
        if ref is None:
            return None
        found = entry_index.schema_of(self._view, ref.type, min(position, self._through))
        return 0 if found is None else found.version

    def _told(self, stored: Stored) -> Statement:
        said, entry = stored.observation, self._view.entry(stored.position)
        named, run = said.optional.get("source"), said.optional.get("run")
        digest = ids.digest_of("source", named) if isinstance(named, str) else None
        return Statement(
            observation=said.id,
            entity=str(said.entity),
            op=said.op,
            agent=said.agent,
            position=stored.position,
            recorded_at=None if entry is None else entry.recorded_at,
            fields=dict(said.fields),
            replaces=tuple(sorted(ids.id_of("observation", digest) for digest in said.replaces)),
            source=None if digest is None else ids.id_of("source", digest),
            source_name=None if digest is None else self._called(digest),
            run=run if isinstance(run, str) else None,
            log=self.log,
        )

    def _called(self, digest: bytes) -> str | None:
        """Return what a source was called when it first came: its delivery is in the same write as its content."""
        position = entry_index.source_position(self._view, digest)
        if position is None:
            return None
        for entry in self._view.entries(position, min(position + 1, self._through), {"received"}):
            if entry.body is not None and (delivery := source.stored(entry.body)).source_digest == digest:
                return delivery.name
        return None


def _ref(text: str) -> Ref | None:
    try:
        return ids.parse_ref(text)
    except Refused:
        return None
