"""Merge: entries of another log, of all kinds, appended as entries of this one; known entries change nothing.

Bodies stay unchanged; position, time and nonce are this log's, and the envelope keeps the origin of each entry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from woodrat.canon import form
from woodrat.canon.digest import digest
from woodrat.engines.view import View
from woodrat.erasure.verbs import arrivals
from woodrat.exchange.lines import Arrived
from woodrat.ledger import entry_index, state_steps
from woodrat.ledger.source_index import SourceLookup
from woodrat.ledger.write import Draft, Writer
from woodrat.log.entry import Entry, Origin
from woodrat.state.entry_rows import ENDED, RECEIVED, STARTED
from woodrat.state.meaning import RUN_KINDS, RunEntry
from woodrat.state.observation import Observation
from woodrat.state.schema import Schema
from woodrat.state.source import source_digest

if TYPE_CHECKING:
    from woodrat.context import Context


def _digest(entry: Entry) -> bytes:
    assert entry.body is not None
    return digest(entry.kind, entry.body)


class Merger:
    """Merges entries of other logs into this one."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._writer = Writer(context)

    def merge(self, arrived: Sequence[Arrived]) -> tuple[int, int, int]:
        """Append unknown entries, in one write.

        Return the numbers of new entries, of entries omitted as erased here, and of erasures repeated.
        """
        held = [one for one in arrived if one.entry.body is not None]
        found, erasures = arrivals.admissible(self._context, [one.entry for one in held])
        admitted = {id(entry) for entry in found}
        taking = [one for one in held if id(one.entry) in admitted]
        if not taking:
            return 0, len(held), erasures
        drafts: list[Draft] = []

        def plan(draft: Draft) -> None:
            drafts.append(draft)
            self._plan(draft, taking)

        last = arrived[-1].entry
        self._writer.write("import", {"log": last.log, "position": last.position}, plan)
        state_steps.index_batch(self._context, len(drafts[-1].items))
        return len(drafts[-1].items), len(held) - len(taking), erasures

    def _plan(self, draft: Draft, taking: Sequence[Arrived]) -> None:
        view = draft.view
        meant = [one.meaning for one in taking if isinstance(one.meaning, Observation)]
        said = {observation.digest for observation in meant}
        observations, late = arrivals.said_otherwise(self._context, draft, meant)
        known = view.known(observations) if observations else ()
        admitted = {one.digest for one in observations}
        held = _Held(view)
        if late is not None:
            draft.add(arrivals.KIND, late)
            for observation in observations:
                # The origin of an entry rewritten here is here.
                if observation.digest not in said and observation.digest not in known:
                    draft.say(observation)
        planned: set[bytes] = set()
        for entry, meaning in taking:
            origin = entry.envelope.origin or Origin(entry.log, entry.position)
            assert entry.body is not None, "erased entries are omitted before"
            if isinstance(meaning, Observation):
                if meaning.digest in admitted and meaning.digest not in known:
                    draft.say(meaning, origin)
                continue
            name = source_digest(entry.body) if entry.kind == "source" else _digest(entry)
            if name not in planned and not held.has(entry, meaning, name):
                draft.add(entry.kind, entry.body, meaning, origin)
            planned.add(name)


class _Held:
    """Entries of a log that may equal entries of another."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._through = view.head().position
        self._digests: dict[str, set[bytes]] = {}

    def has(self, entry: Entry, meaning: object, name: bytes) -> bool:
        """Return True if the log holds an entry; `name` is its digest."""
        if isinstance(meaning, Schema):
            return meaning in entry_index.schemas(self._view, meaning.type, self._through)
        if entry.kind == "source":
            return entry_index.source_position(self._view, name) is not None
        about = _about(entry, meaning)
        if about not in self._digests:
            alike = self._alike(entry.kind, about)
            self._digests[about] = {_digest(one) for one in alike if one.body is not None}
        return name in self._digests[about]

    def _alike(self, kind: str, about: str) -> Iterable[Entry]:
        """Return the entries of a run, a source or an interpretation; or all of a kind."""
        if about == kind:
            return self._view.entries(kinds={kind})
        if kind in RUN_KINDS:
            return entry_index.run_entries(self._view, about, self._through)
        lookup = SourceLookup(self._view, self._through)
        return lookup.entries_of_source(about) if kind == RECEIVED else lookup.entries_of_reading(about)


def _about(entry: Entry, meaning: object) -> str:
    """Return the run, source or interpretation of an entry; for other entries, its kind."""
    if isinstance(meaning, RunEntry):
        return meaning.run
    if entry.kind in (RECEIVED, STARTED, ENDED):
        body: Any = form.decode(entry.body or b"")
        named = body.get("source" if entry.kind == RECEIVED else "interpretation") if isinstance(body, dict) else None
        return named if isinstance(named, str) else entry.kind
    return entry.kind
