"""The verbs of explain: lineage, impact and stale decisions of a ledger, at the moment of a context."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.errors import Fault, shown
from woodrat.explain import index, reader
from woodrat.explain.reader import Tracer, open_tracer
from woodrat.ledger.pages import page_request
from woodrat.runs.reader import open_recounter
from woodrat.training import index as training_index

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.explain.impact import Impact
    from woodrat.explain.lineage import Node
    from woodrat.explain.stale import Stale
    from woodrat.ledger.pages import Page
    from woodrat.ledger.rebuild import Progress


def lineage(context: Context, what: object) -> Node:
    """Return the way back from a run (its answer), `RUN#stage`, an observation or `REF#field`."""
    with open_tracer(context) as tracer:
        return reader.lineage_of(tracer, what)


def impact(context: Context, what: object, agent: object, progress: Progress | None = None) -> Impact:
    """Return what leaned on an observation, a source, an interpretation, or all that an agent said."""
    if context.moment == "now":
        index.catch_up(context, progress)
        training_index.catch_up(context, progress)
    with open_tracer(context) as tracer:
        return reader.impact(tracer, what, agent)


def stale(context: Context, *, same: object, limit: object, cursor: object) -> Page[Stale]:
    """Return decisions whose evidence is believed otherwise now, the latest in the log first."""
    faults: list[Fault] = []
    if type(same) is not bool:
        faults.append(Fault("same", f"expected true or false, got {shown(same)}", "Send a boolean."))
    request = page_request(context, ["stale", same is True], limit, cursor, faults)
    with open_recounter(context, request.position) as recounter:
        page = reader.stale(Tracer(recounter), request, same=same is True)
    return page.followed_by(lambda: stale(context, same=same, limit=limit, cursor=page.cursor))
