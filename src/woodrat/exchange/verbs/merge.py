"""Merging in: entries of another log, of all kinds, appended as entries of this one; what is known changes nothing.

Bodies stay as they are; position, time and nonce are this log's, and the envelope keeps where each was first written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from woodrat.canon.digest import digest
from woodrat.engines.port import View
from woodrat.erasure.verbs import arrivals
from woodrat.exchange.lines import Arrived
from woodrat.ledger import entry_index, state_steps
from woodrat.ledger import index as log_index
from woodrat.ledger.body_index import INDEX, body_term
from woodrat.ledger.write import Draft, Writer
from woodrat.log.entry import Entry, Origin
from woodrat.state.observation import Observation
from woodrat.state.schema import Schema
from woodrat.state.source import source_digest

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.ledger.progress import Progress


def _digest(entry: Entry) -> bytes:
    assert entry.body is not None
    return digest(entry.kind, entry.body)


class Merger:
    """Merges entries of other logs into this one."""

    def __init__(self, context: Context, progress: Progress | None = None) -> None:
        self._context = context
        self._writer = Writer(context)
        log_index.catch_up(context.engine, context.tenant, INDEX, progress=progress)
        with context.engine.view(context.tenant) as view:
            self._through = self._covered = log_index.covered(view, INDEX.name)
        self._recent: set[bytes] = set()
        """Digests of what the log holds beyond its index."""

    def merge(self, arrived: Sequence[Arrived]) -> tuple[int, int, int]:
        """Take in what is not known yet, in one write.

        Return how many entries were new, how many were left out as erased here, and how many erasures were carried out.
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
        self._follow(view)
        if late is not None:
            draft.add(arrivals.KIND, late)
            for observation in observations:
                # What is said otherwise here was first said here.
                if observation.digest not in said and observation.digest not in known:
                    draft.say(observation)
        planned: set[bytes] = set()
        for entry, meaning in taking:
            origin = entry.envelope.origin or Origin(entry.log, entry.position)
            assert entry.body is not None, "what is erased is left out before"
            if isinstance(meaning, Observation):
                if meaning.digest in admitted and meaning.digest not in known:
                    draft.say(meaning, origin)
                continue
            name = source_digest(entry.body) if entry.kind == "source" else _digest(entry)
            if name not in planned and not self._holds(view, entry, meaning, name):
                draft.add(entry.kind, entry.body, meaning, origin)
            planned.add(name)

    def _holds(self, view: View, entry: Entry, meaning: object, name: bytes) -> bool:
        if isinstance(meaning, Schema):
            return meaning in entry_index.schemas(view, meaning.type, view.head().position)
        if entry.kind == "source":
            return entry_index.source_position(view, name) is not None
        assert entry.body is not None
        return name in self._recent or log_index.is_listed(view, INDEX.name, body_term(entry.kind, entry.body))

    def _follow(self, view: View) -> None:
        """Take in the digests of what was appended since, by whomever."""
        head, covered = view.head().position, log_index.covered(view, INDEX.name)
        if covered < self._covered:  # an erasure drops all that is derived
            self._covered = self._through = covered
        self._recent.update(
            _digest(entry) for entry in view.entries(self._through, head, INDEX.kinds) if entry.body is not None
        )
        self._through = head
