"""Follow-up: the messages with which a small model answers a question from the record of earlier runs.

They are plain chat messages, as any client that speaks OpenAI's protocol takes them. No model is called here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.runs.projection import DECISIONS, injected

if TYPE_CHECKING:
    from collections.abc import Iterable

    from woodrat.runs.record import RunRecord

INSTRUCTIONS: Final = (
    "Answer the question from the record below and from nothing else. Name the values and thresholds that settled it, "
    "when it was decided, and cite lines as [#position]. If the record does not answer it, say so."
)
"""What the model is told to do."""
NO_RECORD: Final = "No earlier run is on record for this question. Say so; do not guess."
"""What it is told when there is nothing to answer from."""


def followup(
    records: Iterable[RunRecord] | RunRecord,
    question: str,
    *,
    projection: str = DECISIONS,
    budget: int | None = None,
    instructions: str = INSTRUCTIONS,
) -> list[dict[str, str]]:
    """Return the messages that put a question about earlier runs to a model: instructions with the record, question.

    `budget` bounds the record in tokens (`wording.tokens`), its frame included.
    """
    block = injected(records, projection, budget)
    system = f"{instructions}\n\n{block}" if block else NO_RECORD
    return [{"role": "system", "content": system}, {"role": "user", "content": question}]
