"""Whole answers: what the library's verbs return, for clients that hold the library's records.

They are asked for by media type, at the same addresses with the same arguments as the answers for everybody else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.api import codec
from woodrat.api.verbs import verbs
from woodrat.explain.workers import Newly
from woodrat.records import replace
from woodrat.server import answers

if TYPE_CHECKING:
    from woodrat.server.routes import Route

MEDIA_TYPE: Final = codec.MEDIA_TYPE.encode()

VERBS: Final[Mapping[str, str]] = {
    "show": "show",
    "elements": "elements",
    "search": "search",
    "query": "query",
    "duplicates": "duplicates",
    "observations": "observations",
    "history": "history",
    "timeline": "timeline",
    "blame": "blame",
    "conflicts": "conflicts",
    "diff": "diff",
    "diff_against": "diff_against",
    "related": "related",
    "schema": "schemas.show",
    "schemas": "schemas.list",
    "sources": "sources.list",
    "interpretations": "interpretations.list",
    "runs": "runs.list",
    "run_record": "runs.show",
    "runs_diff": "runs.diff",
    "runs_diff_documents": "runs.diff",
    "runs_group": "runs.group",
    "why": "why",
    "recall": "recall",
    "lineage": "lineage",
    "impact": "impact",
    "stale": "stale",
    "newly_stale": "newly_stale",
    "values": "values",
    "ids": "ids",
    "what_if": "what_if",
    "bisect": "bisect",
    "reduce": "reduce",
    "interpretations_diff": "interpretations.diff",
    "verify": "verify",
    "checkpoint": "proofs.checkpoint",
    "checkpoints": "proofs.checkpoints",
    "prove": "proofs.prove",
    "prove_consistency": "proofs.prove_consistency",
    "prove_order": "prove_order",
    "capsule": "proofs.capsule",
    "rebuild": "rebuild",
    "reindex": "reindex",
    "erase": "erase",
    "erase_again": "erase_again",
    "finish_erasure": "finish_erasure",
}
"""The verb of the library behind that of a route, for those that have a whole answer."""


def answering(route: Route) -> Route:
    """Return a route whose answer is whole; where it has no such answer, the route as it is."""
    verb = VERBS.get(route.verb)
    return route if verb is None else replace(route, answer=_whole(verb, route.answer), soon=None)


def _whole(verb: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    def answer(ledger: Any, **given: Any) -> Any:
        if verb == "runs.show" and given.keys() > {"run"}:
            return otherwise(ledger, **given)  # a projection is text
        if verb == "verify":
            given["jobs"] = 1  # as for everybody: a caller takes no more than one reader
        if verb == "proofs.prove":
            given["what"] = answers.entry_named(given["what"])
        if verb == "newly_stale":
            return codec.write(Newly, answers.stale_since(ledger, **given))  # the library has no verb that asks once
        if verb == "diff":
            given.setdefault("after", "now")
        found = verbs()[verb]
        return codec.write(codec.returned(found), found.called_on(ledger)(**given))

    return answer
