"""What is looked up for decisions that `why` and `runs show` tell of: documents behind their facts, and later changes.

Decisions on the same evidence share what is looked up for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.explain.reader.stale import later_change, was_believed
from woodrat.explain.references import evidence, named_observations
from woodrat.records import replace
from woodrat.runs.evidence import Evidence
from woodrat.runs.flip_search import margin_of, origin_sources
from woodrat.runs.margin import FactSource
from woodrat.runs.origin import origin_words
from woodrat.runs.values import REDACTED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from woodrat.canon.form import Json
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.runs.evidence import Document, LaterChange
    from woodrat.runs.steps import Decision


Evidenced = tuple[Any, Any, tuple[str, ...]]
"""Entity, field and the observations behind the value that was read; of any other origin only the observations."""


class Gathered:
    """What was looked up for the decisions of a page, by what they were made on."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._documents: dict[Evidenced, tuple[Document, ...]] = {}
        self._changes: dict[Evidenced, LaterChange | None] = {}
        self._open: dict[Evidenced, bool] = {}
        """Which evidence is not what the log says now, so that it is looked up what it said then."""
        self._unchecked: dict[tuple[Evidenced, Any], bool] = {}
        """By evidence and position, whether the log does not show it there."""

    def _look_up(self, origin: Mapping[str, Any]) -> Evidenced:
        """Look up what belongs to an origin; return what that is kept by."""
        place = (origin.get("entity"), origin.get("field")) if origin.get("kind") == "read" else (None, None)
        key: Evidenced = (*place, named_observations(origin))
        if key not in self._changes:
            self._documents[key] = tuple(self._tracer.documents(origin))
            change = self._changes[key] = later_change(self._tracer, origin)
            said = [self._tracer.observation(id) for id in key[2]]
            self._open[key] = origin.get("kind") == "read" and (change is not None or not said or None in said)
        at = origin.get("position")
        if self._open[key] and (key, at) not in self._unchecked:
            self._unchecked[key, at] = not was_believed(self._tracer, origin)
        return key

    def __call__(self, decision: Decision) -> Decision:
        """Return a decision with its margin, the documents behind it and what became of its evidence."""
        values, looked = decision.known_facts, evidence(decision)
        told: list[Evidence] = []
        sources = origin_sources(decision)
        for fact, origin in decision.fact_origins.items():
            key = self._look_up(origin)
            documents = self._documents[key]
            if documents:
                # What several observations say that came from one document is wrong together.
                named = [FactSource("document", item.source, item.name or item.source) for item in documents]
                inside = {item.observation for item in documents}
                rest = [source for source in sources[fact] if source.id not in inside]
                sources[fact] = (*dict.fromkeys(named), *rest)
            if fact in looked:
                since = self._since(key, values.get(fact))
                unchecked = self._unchecked.get((key, origin.get("position")), False)
                told.append(Evidence(fact, values.get(fact), origin_words(origin), documents, since, unchecked))
        return replace(decision, margin=margin_of(decision, sources), looked_at=tuple(told))

    def _since(self, key: Evidenced, before: Json) -> LaterChange | None:
        change = self._changes[key]
        return change if change is None or before != REDACTED else replace(change, now=REDACTED)
