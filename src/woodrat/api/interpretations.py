"""Interpretations: readings of sources by models and parsers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from woodrat.api.verb import verb
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager

    from woodrat.api.namespace import ReadableLedger, WritableLedger
    from woodrat.api.parameters import (
        Cursor,
        FromInterpretation,
        InterpretationArg,
        Limit,
        ToInterpretation,
    )
    from woodrat.ledger.known_state import ReadingsDiff
    from woodrat.ledger.pages import Page
    from woodrat.ledger.sources import Reading
    from woodrat.state.interpretation import Interpretation


class PastInterpretations:
    """The verbs of interpretations that read, at one moment."""

    def __init__(self, ledger: ReadableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(get="/v1/interpretations", command="interpretations list")
    def list(self, *, limit: Limit = 100, cursor: Cursor | None = None) -> Page[Interpretation]:
        """List the interpretations of sources by models and parsers.

        They come in log order.
        """
        from woodrat.ledger import lists

        return lists.interpretations(self.context, limit=limit, cursor=cursor)

    @verb(get="/v1/interpretations/{interpretation}", command="interpretations show INT")
    def show(self, interpretation: InterpretationArg) -> Interpretation:
        """Show one interpretation: model, prompt and parameters.

        Returns how it was made and how it ended; for a prompt, its digest. Raises `NotFound` if there is no
        interpretation with that id.
        """
        from woodrat.ledger import sources

        return sources.interpretation_named(self.context, interpretation)

    @verb(get="/v1/interpretations/diff", command="interpretations diff INT INT", wide=True)
    def diff(self, before: FromInterpretation, after: ToInterpretation) -> ReadingsDiff:
        """Compare two interpretations of a source.

        Returns the differences in model, prompt and parameters, and in their statements about each entity.
        """
        from woodrat.ledger import sources

        return sources.interpretations_diff(self.context, before, after)


class Interpretations(PastInterpretations):
    """The verbs of interpretations."""

    ledger: WritableLedger

    def __init__(self, ledger: WritableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    def start(
        self,
        source: str,
        *,
        model: str | None = None,
        prompt: str | None = None,
        extractor: str | None = None,
        parameters: Mapping[str, Any] | None = None,
        configuration: Mapping[str, Any] | None = None,
    ) -> AbstractContextManager[Reading]:
        """Start an interpretation of a source; observations stored through it name the source.

        A context manager; leaving the block records how the interpretation ended.
        """
        from woodrat.ledger import sources

        return sources.interpretation(
            current.write_context(self.context),
            source,
            model=model,
            prompt=prompt,
            extractor=extractor,
            parameters=parameters,
            configuration=configuration,
        )

    def begin(self, source_id: str, *, idempotency_key: str | None = None, **about: Any) -> Reading:
        """Start an interpretation that a later call ends.

        For callers that cannot use `start` as a block; `Reading.end` ends it. `about` takes the arguments of `start`.
        """
        from woodrat.ledger import sources

        return sources.begin_interpretation(
            current.write_context(self.context), source_id, idempotency_key=idempotency_key, **about
        )

    def continue_(self, interpretation: str) -> Reading:
        """Continue an interpretation that was started elsewhere.

        It must be this agent's, and must not have ended. Returns it, to store through and to end.
        """
        if not isinstance(interpretation, str):
            problem = f"expected an interpretation's id, got {shown(interpretation)}"
            raise Refused([Fault("interpretation", problem, "Send it as text, such as int_….")])
        from woodrat.ledger import source_index
        from woodrat.ledger.moments import open_reader
        from woodrat.ledger.sources import Reading

        with open_reader(self.context) as reader:
            position = reader.asof.position
            begun = source_index.SourceLookup(reader.view, position).reading(interpretation)
        if begun is None or begun.agent != self.ledger.agent:
            raise NotFound(
                f"There is no interpretation {interpretation} of this agent. Nothing was written. Start one first.",
                {"interpretation": interpretation},
            )
        return Reading(current.write_context(self.context), begun, begun.source, position)
