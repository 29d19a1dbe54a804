"""Evaluations: what entities of the type `evaluation` say of a run, as judgements of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from woodrat.runs import steps
from woodrat.runs.steps import Judgement

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from woodrat.canon.ids import Ref
    from woodrat.merge.snapshot import Snapshot


class Believes(Protocol):
    """What knows what is believed of an entity."""

    def find(self, ref: Ref) -> Snapshot | None:
        """Return what is believed about an entity, or `None` when nothing live is said of it."""


def evaluations(reader: Believes, refs: Iterable[Ref], run: str) -> Iterator[Judgement]:
    """Yield what each of these evaluations says of a run, of those that are about it."""
    for ref in refs:
        snapshot = reader.find(ref)
        if snapshot is None or snapshot.deleted or snapshot.fields.get("subject") != run:
            continue
        verdict, blame = snapshot.fields.get("verdict"), snapshot.blame.get("verdict")
        if isinstance(verdict, str) and blame is not None:
            text = {name: steps.text(snapshot.fields.get(name)) for name in ("judge", "rationale", "baseline")}
            yield Judgement(
                position=snapshot.version,
                step=0,
                span="",
                started_at=blame.observed_at,
                under=None,
                attributes={},
                verdict=verdict,
                preferred=None,
                by=text["judge"] or blame.agent,
                reason=text["rationale"],
                score=snapshot.fields.get("score"),
                against=text["baseline"],
                about=None,
                evaluation=str(ref),
                agent=blame.agent,
            )
