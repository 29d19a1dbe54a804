"""Reads: the verbs that read, each recorded as a read of a run.

A read is recorded with the position it was answered at and the winning observation of each field, so that it can be
answered again exactly: when the run is resumed, recorded reads are asked once more at their old positions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeVar

from woodrat.canon.ids import Ref
from woodrat.errors import Fault, NotFound, Refused
from woodrat.ledger.lists import LIMIT
from woodrat.merge.snapshot import Snapshot
from woodrat.runs import values
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from woodrat.canon.form import Json
    from woodrat.canon.moment_words import Time
    from woodrat.ledger.elements import Elements
    from woodrat.ledger.find import Hit
    from woodrat.ledger.moments import Moment
    from woodrat.ledger.pages import ListItem, Page
    from woodrat.ledger.reads import EntityConflict, Related
    from woodrat.merge.blame import Verdict
    from woodrat.merge.diff import Changes
    from woodrat.merge.timeline import Event, Step
    from woodrat.runs.recorder.steps import Reads, StepRecorder
    from woodrat.state.asof import Stored

OBSERVATIONS_MAX: Final = 1_000
"""How many observations a read names at most of a collection that several make up."""


T = TypeVar("T", bound="ListItem")


class RunPast:
    """Reads at one moment, recorded in a run; a run itself reads at the present."""

    def __init__(self, run: StepRecorder | None, reads: Reads, as_of: int | None) -> None:
        self._run = run
        self._reads = reads
        self._as_of = as_of

    @property
    def recorder(self) -> StepRecorder:
        """The run that reads; a run itself reads for itself."""
        assert self._run is not None
        return self._run

    def at(self, moment: Moment | None = None, *, valid_at: Time | None = None) -> RunPast:
        """Return the reads as of another moment, or as it was true by another time."""
        reads = self._reads.at(moment, valid_at=valid_at)
        return RunPast(self.recorder, reads, self._as_of if moment is None else reads.position)

    def show(self, ref: str | Ref) -> Snapshot:
        """Return what is believed about an entity; `NotFound`, recorded too, when nothing live is said of it."""
        asked = str(ref)
        reads, known = self._again("show", {"ref": asked})
        try:
            found: Snapshot = reads.ask("show", ref)
        except NotFound as missing:
            position = missing.details.get("position")
            if not known and position is not None:
                body = self._nothing(str(missing.details["entity"]), position)
                self._note_read([self._about("show", {"ref": asked}, body)])
            raise
        body = self._body(found)
        if not known:
            self._note_read([self._about("show", {"ref": asked}, body)])
        return found

    def search(self, query: str, **given: Any) -> Page[Hit]:
        """Search as `Ledger.search` does; each entity found is a read."""
        return self._pages(
            "search",
            {"query": query, **given},
            lambda reads: reads.ask("search", query, **given),
            lambda page: [hit.snapshot for hit in page.items],
        )

    def query(self, **given: Any) -> Page[Snapshot]:
        """Return entities by type and key as `Ledger.query` does; each of them is a read."""
        return self._pages("query", given, lambda reads: reads.ask("query", **given), lambda page: page.items)

    def elements(self, ref: str | Ref, field: str, **given: Any) -> Elements:
        """Return a page of a collection as `Ledger.elements` does; a read of the entity."""
        asked = {"field": field, **given}
        found: Elements = self._one("elements", ref, asked, lambda reads: reads.ask("elements", ref, field, **given))
        return found

    def history(self, ref: str | Ref, field: str | None = None, **given: Any) -> Page[Step]:
        """Return how an entity changed as `Ledger.history` does; a read of it."""
        further = _stated(given)
        found: Page[Step] = self._one(
            "history", ref, {"field": field, **further}, lambda reads: reads.ask("history", ref, field, **further)
        )
        return found

    def blame(self, ref: str | Ref, field: str | None = None, **given: Any) -> dict[str, tuple[Verdict, ...]]:
        """Return what became of every claim as `Ledger.blame` does; a read of the entity."""
        further = _stated(given)
        found: dict[str, tuple[Verdict, ...]] = self._one(
            "blame", ref, {"field": field, **further}, lambda reads: reads.ask("blame", ref, field, **further)
        )
        return found

    def observations(self, ref: str | Ref, **given: Any) -> Page[Stored]:
        """Return the observations of an entity as `Ledger.observations` does; a read of it."""
        further = _stated(given)
        found: Page[Stored] = self._one(
            "observations", ref, further, lambda reads: reads.ask("observations", ref, **further)
        )
        return found

    def related(self, ref: str | Ref, *, depth: int = 1, **given: Any) -> Page[Related]:
        """Return the relations at an entity as `Ledger.related` does; a read of it."""
        asked = {"depth": depth, **_stated(given)}
        found: Page[Related] = self._one("related", ref, asked, lambda reads: reads.ask("related", ref, **asked))
        return found

    def recall(self, question: str, **given: Any) -> Any:
        """Find past runs that answer a question as `Ledger.recall` does; a read of what they decided."""
        run = self.recorder
        if run.log.ledger is None:
            fault = Fault("run", f"{run.id} has no ledger to ask", "Recall through a ledger.")
            raise Refused([fault], "Nothing was read.")
        past = run.log.ledger if self._as_of is None else run.log.ledger.at(self._as_of)
        with current.entered(current.Frame(run, run.place())):
            return past.recall(question, **given)

    def diff(self, before: Moment, after: Moment, ref: str | Ref | None = None, **given: Any) -> Changes:
        """Return what differs between two moments; a read of no entity in particular."""
        asked: dict[str, Any] = {"before": before, "after": after, "ref": None if ref is None else str(ref), **given}
        found: Changes = self._many("diff", asked, lambda reads: reads.ask("diff", before, after, ref, **given))
        return found

    def conflicts(self, entity_type: str | None = None, **given: Any) -> Page[EntityConflict]:
        """Return every field in conflict as `Ledger.conflicts` does; a read of no entity in particular."""
        further = _stated(given)
        found: Page[EntityConflict] = self._many(
            "conflicts",
            {"entity_type": entity_type, **further},
            lambda reads: reads.ask("conflicts", entity_type, **further),
        )
        return found

    def timeline(self, **given: Any) -> Page[Event]:
        """Return what was observed when as `Ledger.timeline` does; a read of no entity in particular."""
        asked = {"since": None, "until": None, **_stated(given)}
        found: Page[Event] = self._many("timeline", asked, lambda reads: reads.ask("timeline", **asked))
        return found

    # ------------------------------------------------------------------------------------------ recording

    def _again(self, verb: str, asked: Mapping[str, Any]) -> tuple[Reads, bool]:
        """Return where to read, and whether the log has this read already: then it is answered as of its position."""
        recording = self.recorder.recording
        if recording is None:
            return self._reads, False
        position = recording.read(verb, _args(asked), self._as_of, self._reads.valid_at)
        if position is None:
            return self._reads, False
        return recording.answering(self._reads.at(position)), not recording.copies

    def _one(self, verb: str, ref: str | Ref, further: Mapping[str, Any], ask: Callable[[Reads], Any]) -> Any:
        """Ask something about one entity, at one position."""
        asked = {"ref": str(ref), **further}
        reads, known = self._again(verb, asked)
        position = reads.position
        pinned = reads.at(position)
        answer = ask(pinned)
        first = getattr(answer, "position", position)
        if first != position:  # a later page, which is read where the first was
            pinned = reads.at(first)
        try:
            body = self._body(pinned.ask("show", ref))
        except NotFound as missing:  # deleted, or all withdrawn: its history is there all the same
            body = {"position": pinned.position, "found": False}
            if "entity" in missing.details:
                body = self._nothing(str(missing.details["entity"]), pinned.position)
        if not known:
            self._note_read([self._about(verb, asked, body)])
        return answer

    def _many(
        self,
        verb: str,
        asked: Mapping[str, Any],
        ask: Callable[[Reads], Any],
        seen: Callable[[Any], Sequence[Snapshot]] = lambda answer: (),
    ) -> Any:
        """Ask something that finds any number of entities."""
        reads, known = self._again(verb, asked)
        position = reads.position
        answer = ask(reads)
        bodies = [self._about(verb, asked, self._body(snapshot)) for snapshot in seen(answer)]
        if not bodies:
            found = verb not in ("search", "query")
            bodies = [self._about(verb, asked, {"position": getattr(answer, "position", position), "found": found})]
        if not known:
            self._note_read(bodies)
        return answer

    def _pages(
        self,
        verb: str,
        asked: Mapping[str, Any],
        ask: Callable[[Reads], Page[T]],
        seen: Callable[[Page[T]], Sequence[Snapshot]],
    ) -> Page[T]:
        """Ask for a page of entities, each of which is a read; those of the pages that follow are too."""
        page: Page[T] = self._many(verb, asked, ask, seen)
        following = page.following
        if following is None:
            return page
        further = {**asked, "cursor": page.cursor}
        return page.followed_by(lambda: self._pages(verb, further, lambda reads: following(), seen))

    def _body(self, snapshot: Snapshot) -> dict[str, Json]:
        """Return what a read of a snapshot says, and remember in the run what was seen."""
        run, room = self.recorder, values.Budget(values.VALUE_BYTES_MAX)
        origins = {name: snapshot.fact(name).origin for name in snapshot.fields}
        run.note_snapshot(snapshot, origins)
        fields: dict[str, Json] = {}
        edited: dict[str, Json] = {}
        for name, value in snapshot.fields.items():
            shown = values.REDACTED if name in run.hidden else value
            if run.hidden and shown is value:
                shown = values.plain(value, run.hidden)
            if origins[name]["kind"] != "read":  # nobody said what a fork has edited
                edited[name] = room.take(shown)
                continue
            named = origins[name]["observations"]
            said: dict[str, Json] = {"observation": named[0], "value": room.take(shown)}
            if len(named) > 1:
                said["observations"] = named[:OBSERVATIONS_MAX]
            fields[name] = said
        body: dict[str, Json] = {"entity": str(snapshot.entity), "position": snapshot.position, "found": True}
        if (schema := snapshot.schema) is not None:
            body["schema"] = schema
        if edited:
            body["edited"] = edited
        return {**body, "fields": fields}

    def _nothing(self, entity: str, position: int) -> dict[str, Json]:
        """Return what a read says that found nothing of an entity."""
        body: dict[str, Json] = {"entity": entity, "position": position, "found": False}
        schema = self.recorder.log.schema_at(entity, position)
        return body if schema is None else {**body, "schema": schema}

    def _about(self, verb: str, asked: Mapping[str, Any], body: dict[str, Json]) -> dict[str, Json]:
        """Return a read with what it was asked by."""
        args = _args(asked)
        if verb != "show":
            body = {**body, "within": verb, "args": args}
        elif body["entity"] != args["ref"]:
            body = {**body, "args": args}  # asked by its id
        if self._as_of is not None:
            body["as_of"] = self._as_of
        if self._reads.valid_at is not None:
            body["effective"] = self._reads.valid_at
        return body

    def _note_read(self, bodies: Iterable[dict[str, Json]]) -> None:
        run = self.recorder
        begun = run.begin_step()
        if begun is not None:
            place: dict[str, Json] = begun.body(run.id)
            if run.log_name is not None:
                place["log"] = run.log_name
            run.record_step("run.read", begun, *({**place, **body} for body in bodies))


def _stated(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a caller states beyond the defaults: a recording has no arguments that change nothing."""

    def is_default(name: str, value: object) -> bool:
        return type(value) is int and value == LIMIT if name == "limit" else value is None or value is False

    return {name: value for name, value in given.items() if not is_default(name, value)}


def _args(asked: Mapping[str, Any]) -> dict[str, Json]:
    """Return what a read was asked, those left out left out."""
    found = values.bounded({name: value for name, value in asked.items() if value is not None})
    assert isinstance(found, dict)
    return found
