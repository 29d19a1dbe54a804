"""Sources: content as it was received, and the interpretations of it.

An interpretation is one reading of a source by a model or a parser: what is stored through it names it, and its end
says how it went.
"""

from __future__ import annotations

from contextlib import contextmanager
from hashlib import sha256
from os import PathLike
from typing import TYPE_CHECKING, Any

from woodrat.canon import form, ids
from woodrat.clock import fresh_id
from woodrat.engines.records import BEFORE_ALL
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index, facts, plans, redaction, source_index
from woodrat.ledger.arguments import Arguments
from woodrat.ledger.facts import write
from woodrat.ledger.moments import NO_READ, open_reader
from woodrat.ledger.source_index import SourceLookup
from woodrat.ledger.write import Writer
from woodrat.records import replace
from woodrat.state import source as source_form
from woodrat.state.entry_rows import ENDED, SAID_FROM, STARTED
from woodrat.state.interpretation import Interpretation
from woodrat.state.observation import REASON_BYTES_MAX
from woodrat.state.source import SOURCE_BYTES_MAX, Delivery, source_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.context import Context
    from woodrat.ledger.arguments import Within
    from woodrat.ledger.known_state import ReadingsDiff
    from woodrat.ledger.read import Reader
    from woodrat.ledger.report import Report
    from woodrat.ledger.write import Draft


def add_source(
    context: Context,
    content: bytes | str | PathLike[str],
    *,
    name: str | None = None,
    media_type: str | None = None,
    idempotency_key: str | None = None,
    within: Within | None = None,
) -> str:
    """Add a source: bytes, or a file by its path. The content is stored once; each delivery is recorded.

    Returns the source's id.
    """
    arguments = Arguments(within)
    data, title = content_of(content)
    called = arguments.text("name", title if name is None else name, ids.KEY_BYTES_MAX)
    kind = arguments.text("media_type", media_type, ids.KEY_BYTES_MAX)
    if len(data) > SOURCE_BYTES_MAX:
        remedy = f"Send at most {SOURCE_BYTES_MAX} bytes, or a part of it."
        arguments.faults.append(Fault("content", f"{len(data)} bytes", remedy))
    arguments.check()
    assert called is not None
    digest = source_digest(data)
    arguments.given["source"] = ids.name("source", digest)

    def plan(draft: Draft) -> None:
        draft.id = ids.id_of("source", digest)
        if entry_index.source_position(draft.view, digest) is None:
            draft.add("source", data)
        draft.add("received", Delivery(digest, draft.agent, called, draft.recorded_at, kind).body())

    report = write(context, "source", arguments, plan, idempotency_key)
    assert report.id is not None
    return report.id


def content_of(content: object) -> tuple[bytes, str]:
    """Return a source's bytes and what to call it."""
    if isinstance(content, bytes):
        return content, "unnamed"
    if not isinstance(content, str | PathLike):
        raise Refused([Fault("content", f"got {shown(content)}", "Send bytes, or the path of a file.")])
    from pathlib import Path

    path = Path(content)
    try:
        return path.read_bytes(), path.name
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"cannot read {shown(str(path))}: {reason}"
        raise Refused([Fault("content", problem, "Name a file that can be read, or send bytes.")]) from error


def deliveries(context: Context) -> tuple[Delivery, ...]:
    """Return every delivery of a source, by position."""
    with open_reader(context) as reader:
        return tuple(delivery for _, delivery in deliveries_after(reader, BEFORE_ALL))


def deliveries_of(context: Context, source_id: object) -> tuple[Delivery, ...]:
    """Return the deliveries of one source, by position; `NotFound` when there is none."""
    digest = _digest_named(source_id)
    with open_reader(context) as reader:
        digest = digest or entry_index.source_by_id(reader.view, str(source_id))
        lookup = SourceLookup(reader.view, reader.asof.position)
        found = () if digest is None else tuple(lookup.deliveries(digest))
    if not found:
        raise _no_source(source_id)
    return found


def _digest_named(source_id: object) -> bytes | None:
    """Return the digest that the whole name of a source spells; none where it is its id."""
    if not isinstance(source_id, str):
        problem = f"expected a source's id, got {shown(source_id)}"
        raise Refused([Fault("source", problem, "Send it as text.")], NO_READ)
    return ids.digest_of("source", source_id)


def _no_source(source_id: object) -> NotFound:
    return NotFound(
        f"There is no source {source_id} here. Nothing was changed. `sources list` lists them.",
        {"source": source_id},
    )


def deliveries_after(reader: Reader, after: int) -> Iterator[tuple[int, Delivery]]:
    """Yield the deliveries after a position, each with its own."""
    for entry in reader.view.entries(after, reader.asof.position, {"received"}):
        if entry.body is not None:
            yield entry.position, source_form.stored(entry.body)


def content(context: Context, source_id: str) -> bytes:
    """Return the content of a source, exactly as it was received."""
    with open_reader(context) as reader:
        digest = _digest_named(source_id) or entry_index.source_by_id(reader.view, source_id)
        position = None if digest is None else entry_index.source_position(reader.view, digest)
        entry = None if position is None else reader.view.entry(position)
        if entry is None or entry.body is None or entry.position > reader.asof.position:
            raise _no_source(source_id)
        return entry.body


@contextmanager
def interpretation(
    context: Context,
    source_id: str,
    *,
    model: str | None = None,
    prompt: str | None = None,
    extractor: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    configuration: Mapping[str, Any] | None = None,
    within: Within | None = None,
) -> Iterator[Reading]:
    """Record one reading of a source: what is stored inside names it, and its end says how it went."""
    about = {"model": model, "prompt": prompt, "extractor": extractor}
    begun, position = _begin(
        context, source_id, None, within, **about, parameters=parameters, configuration=configuration
    )
    reading = Reading(context, begun, source_id, position, within)
    try:
        yield reading
    except BaseException as error:
        _end(context, begun, "error", reading.usage, _text_of(error))
        raise
    _end(context, begun, "done", reading.usage, None)


def begin_interpretation(
    context: Context,
    source_id: str,
    *,
    idempotency_key: str | None = None,
    within: Within | None = None,
    **about: Any,
) -> Reading:
    """Begin a reading of a source; `Reading.end` ends it. `about` is as for `interpretation`."""
    begun, position = _begin(context, source_id, idempotency_key, within, **about)
    return Reading(context, begun, source_id, position, within)


def _begin(
    context: Context,
    source_id: str,
    key: str | None,
    within: Within | None,
    *,
    model: str | None = None,
    prompt: str | None = None,
    extractor: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    configuration: Mapping[str, Any] | None = None,
) -> tuple[Interpretation, int]:
    arguments = Arguments(within)
    reader_model = arguments.text("model", model, ids.KEY_BYTES_MAX)
    code = arguments.text("extractor", extractor, ids.KEY_BYTES_MAX)
    settings = arguments.mapping("parameters", redaction.by_key(parameters, context.hidden))
    further = arguments.mapping("configuration", redaction.by_key(configuration, context.hidden))
    if prompt is not None and (not isinstance(prompt, str) or form.faults(prompt)):
        arguments.faults.append(Fault("prompt", f"got {shown(prompt)}", "Send the prompt as text."))
    if not isinstance(source_id, str):
        problem = f"expected a source's id, got {shown(source_id)}"
        arguments.faults.append(Fault("source", problem, "Send it as text."))
    arguments.check()
    arguments.refer(source=source_id)
    reading_id = ids.InterpretationId(fresh_id(context.clock, "int_"))
    begun: list[Interpretation] = []

    def start(draft: Draft) -> None:
        full = plans.resolve_source(draft, source_id, "source", [])
        if full is None:
            raise NotFound(
                f"There is no source {source_id} here. Nothing was written. Add it first; `sources list` lists them.",
                {"source": source_id},
            )
        digest = ids.digest_of("source", full)
        assert digest is not None
        begun.append(
            Interpretation(
                id=reading_id,
                source_digest=digest,
                agent=draft.agent,
                started_at=draft.recorded_at,
                model=reader_model,
                prompt=None if prompt is None else sha256(prompt.encode()).hexdigest(),
                extractor=code,
                parameters=settings,
                configuration=further,
            )
        )
        draft.id = reading_id
        draft.add(STARTED, begun[0].started_body())

    report = write(context, "interpretation", arguments, start, key)
    if not begun:  # by a call that was sent before, or a run that is resumed or replayed: the same reading goes on
        begun.append(interpretation_named(context, report.id))
    return begun[0], report.position


def _end(context: Context, begun: Interpretation, status: str, usage: Mapping[str, Json], error: str | None) -> None:
    if begun.ended_at is not None:
        return  # it ended before the run was resumed

    def plan(draft: Draft) -> None:
        ended = replace(begun, status=status, ended_at=draft.recorded_at, usage=usage, error=error)
        draft.id = begun.id
        draft.add(ENDED, ended.ended_body())

    Writer(context).write(ENDED, {"interpretation": begun.id}, plan)


class Reading:
    """A source being read; what is stored through it names the reading and its source."""

    def __init__(
        self, context: Context, begun: Interpretation, source_id: str, position: int, within: Within | None = None
    ) -> None:
        self._context, self._begun, self._within = context, begun, within
        self._position = position
        """Whether it had ended is known up to here."""
        self.id: str = begun.id
        self.source = source_id
        self.usage: dict[str, Json] = {}
        """What the reading cost; set it before the end, as the model reported it."""

    def end(self, status: str = "done", *, usage: Mapping[str, Any] | None = None, error: str | None = None) -> None:
        """End a reading that was begun with `interpretations.begin`; one that has ended stays as it is."""
        arguments = Arguments()
        cost = arguments.mapping("usage", self.usage if usage is None else usage)
        problem = arguments.text("error", error, REASON_BYTES_MAX)
        if status not in ("done", "error"):
            arguments.faults.append(Fault("status", f"got {shown(status)}", "Send done or error."))
        arguments.check()
        if not self._has_ended():
            _end(self._context, self._begun, status if problem is None else "error", cost, problem)

    def _has_ended(self) -> bool:
        if self._begun.ended_at is not None:
            return True
        with self._context.engine.view(self._context.tenant) as view:
            for entry in view.entries(self._position, kinds={ENDED}):
                body: Any = None if entry.body is None else form.decode(entry.body)
                if body is not None and body["interpretation"] == self.id:
                    return True
        return False

    def store(
        self,
        records: Sequence[Mapping[str, Any]] | Mapping[str, Any],
        *,
        observed_at: str | None = None,
        valid_from: str | None = None,
        idempotency_key: str | None = None,
        priority: int | None = None,
        dry_run: bool = False,
    ) -> Report:
        """Store records as `Ledger.store` does, each naming this reading and its source."""
        return facts.store(
            self._context,
            records,
            observed_at=observed_at,
            valid_from=valid_from,
            idempotency_key=idempotency_key,
            priority=priority,
            dry_run=dry_run,
            source=self.source,
            interpretation=self.id,
            within=self._within,
        )


def interpretations(context: Context) -> tuple[Interpretation, ...]:
    """Return every reading of a source, by position."""
    with open_reader(context) as reader:
        return tuple(reading for _, reading in interpretations_after(reader, BEFORE_ALL))


def interpretations_after(reader: Reader, after: int) -> Iterator[tuple[int, Interpretation]]:
    """Yield the readings that first began after a position, in order, each with where it did."""
    return SourceLookup(reader.view, reader.asof.position).readings_after(after)


def interpretation_named(context: Context, id: object) -> Interpretation:
    """Return one reading of a source; `NotFound` when there is none."""
    _check_ids(interpretation=id)
    assert isinstance(id, str)
    with open_reader(context) as reader:
        return _named(SourceLookup(reader.view, reader.asof.position), id)


def _named(lookup: SourceLookup, id: str) -> Interpretation:
    found = lookup.reading(id)
    if found is None:
        raise NotFound(
            f"There is no interpretation {id} here. Nothing was changed. `interpretations list` lists them.",
            {"interpretation": id},
        )
    return found


def interpretations_diff(context: Context, before: str, after: str) -> ReadingsDiff:
    """Return how two readings differ: in model, prompt and parameters, and in what they said of which entity."""
    from woodrat.ledger.known_state import readings_diff

    _check_ids(before=before, after=after)
    with open_reader(context) as reader:
        lookup = SourceLookup(reader.view, reader.asof.position)
        compared = [_named(lookup, id) for id in (before, after)]
        said = (source_index.said(reader.view, reader.asof.position, SAID_FROM + id) for id in (before, after))
        stated = (stored.observation for each in said for stored in each if reader.asof.selects(stored))
        return readings_diff(compared[0], compared[1], stated)


def id_faults(*, source: object = None, interpretation: object = None) -> list[Fault]:
    """Return what is wrong with the ids of where observations are from, as far as they are given."""
    given = (("source", "a source", "src_…", source), ("interpretation", "an interpretation", "int_…", interpretation))
    return [
        Fault(name, f"expected {what}'s id, got {shown(id)}", f"Send it as text, such as {example}.")
        for name, what, example, id in given
        if id is not None and not isinstance(id, str)
    ]


def origin_names(reader: Reader, source_id: str | None, interpretation: str | None) -> dict[str, str]:
    """Return how observations name a source and a reading, as far as they are given; `NotFound` when there is none."""
    names: dict[str, str] = {}
    lookup = SourceLookup(reader.view, reader.asof.position)
    if source_id is not None:
        digest = _digest_named(source_id) or entry_index.source_by_id(reader.view, source_id)
        if digest is None or not lookup.deliveries(digest):
            raise _no_source(source_id)
        names["source"] = ids.name("source", digest)
    if interpretation is not None:
        names["interpretation"] = _named(lookup, interpretation).id
    return names


def _check_ids(**given: object) -> None:
    faults = [
        Fault(name, f"expected an interpretation's id, got {shown(id)}", "Send it as text, such as int_….")
        for name, id in given.items()
        if not isinstance(id, str)
    ]
    if faults:
        raise Refused(faults, outcome=NO_READ)


def _text_of(error: BaseException) -> str:
    """Return an error as text that a body can hold."""
    text = f"{type(error).__name__}: {error}".encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")
    return text.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
