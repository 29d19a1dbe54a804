"""What is looked up for decisions that `why` and `runs show` tell of: documents behind their facts, and later changes.

Looking up needs the engine and is done with the page; decisions on the same evidence share it. Working out the margin
of a decision and putting its evidence together needs no engine, and is done when somebody looks at the decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.explain.reader.stale import later_change, was_believed
from woodrat.explain.references import evidence, named_observations
from woodrat.records import replace
from woodrat.runs.evidence import Evidence
from woodrat.runs.flip_search import margin_of, origin_sources
from woodrat.runs.index.grounds import evidence_text, origin_named
from woodrat.runs.margin import FactSource
from woodrat.runs.origin import origin_words
from woodrat.runs.values import REDACTED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from woodrat.canon.form import Json
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.runs.evidence import Document, LaterChange
    from woodrat.runs.reader.why import Complete, Origins
    from woodrat.runs.steps import Decision


class Gathered:
    """What was looked up for the decisions of a page, by what they were made on (`evidence_text`)."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._documents: dict[str | None, tuple[Document, ...]] = {None: ()}
        self._changes: dict[str | None, LaterChange | None] = {None: None}
        self._open: dict[str, bool] = {}
        """Which evidence is not what the log says now, so that it is looked up what it said then."""
        self._unchecked: dict[tuple[str, Any], bool] = {}
        """By evidence and position, whether the log does not show it there."""

    def __call__(self, grounds: Sequence[str], origins: Origins) -> Complete:
        """Look up what belongs to a decision; return what adds it."""
        for text in grounds:
            if text not in self._changes:
                origin = origin_named(text)
                self._documents[text] = tuple(self._tracer.documents(origin))
                change = self._changes[text] = later_change(self._tracer, origin)
                said = [self._tracer.observation(id) for id in named_observations(origin)]
                self._open[text] = origin["kind"] == "read" and (change is not None or not said or None in said)
        if any(map(self._open.__getitem__, grounds)):
            for each in origins():
                key = evidence_text(each) or "", each.get("position")
                if self._open.get(key[0]) and key not in self._unchecked:
                    self._unchecked[key] = not was_believed(self._tracer, each)
        return self._completed

    def _completed(self, decision: Decision) -> Decision:
        values, looked = decision.known_facts, evidence(decision)
        told: list[Evidence] = []
        sources = origin_sources(decision)
        for fact, origin in decision.fact_origins.items():
            text = evidence_text(origin)
            documents = self._documents[text]
            if documents:
                # What several observations say that came from one document is wrong together.
                named = [FactSource("document", item.source, item.name or item.source) for item in documents]
                inside = {item.observation for item in documents}
                rest = [source for source in sources[fact] if source.id not in inside]
                sources[fact] = (*dict.fromkeys(named), *rest)
            if fact in looked:
                since = self._since(text, values.get(fact))
                unchecked = self._unchecked.get((text or "", origin.get("position")), False)
                told.append(Evidence(fact, values.get(fact), origin_words(origin), documents, since, unchecked))
        return replace(decision, margin=margin_of(decision, sources), looked_at=tuple(told))

    def _since(self, text: str | None, before: Json) -> LaterChange | None:
        change = self._changes[text]
        return change if change is None or before != REDACTED else replace(change, now=REDACTED)
