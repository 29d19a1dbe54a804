"""`python -m bench.served DB PORT`: the server of the product, with two routes beside its own that show its limits.

Both go the whole way of a request: key, grants, arguments, the audit, measures, the log. One answers with one snapshot
where `show` would look at the ledger. The other parses, checks and plans a record as `store` does, in the
committer's thread, and answers with a report that an earlier write gave: the append and what follows it are left out.
"""

from __future__ import annotations

import sys
from typing import Any, cast

from bench import records
from woodrat.api.ledger import Ledger, with_stand_in
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.transaction import Transaction
from woodrat.ledger.own_policy import registry
from woodrat.ledger.read import Reader
from woodrat.ledger.report import Report
from woodrat.ledger.write import Call
from woodrat.merge.snapshot import Snapshot
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Keyring
from woodrat.server.route import Route
from woodrat.server.routes import ROUTES
from woodrat.server.serve import Serving
from woodrat.state.asof import AsOf

TENANT, AGENT = "default", "bench"
CONSTANT, PLANNED = "/v1/constant/", "/v1/planned"


class _Planning:
    """Takes writes in place of the log, and stops once everything is known about one but what it changes."""

    def __init__(self, report: Report) -> None:
        self._report = report

    def take(self, call: Call) -> Report:
        call.check()
        context = call.context
        with context.engine.view(context.tenant) as view:
            head = view.head()
            before = Reader(view, AsOf(head.position), context.policies)
            draft = call.draft(cast(Transaction, view), before, head.recorded_at)
            assert draft.items, "there is something to be written"
        return self._report


def routes(engine: SqliteEngine) -> tuple[Route, ...]:
    """Return the routes of the product, and the two that show its limits; the ledger has entities already."""
    clock, policies = SystemClock(), registry(())
    ledger = Ledger(engine, tenant=TENANT, agent=AGENT, clock=clock, policies=policies)
    shown = ledger.show(records.ref(0))
    fields = dict(shown.fields)
    report = ledger.store({"entity_type": shown.entity.type, **fields, "note": "one more"})
    planner = with_stand_in(ledger, _Planning(report))

    def tell(ledger: Ledger, ref: str, **how: Any) -> Snapshot:
        return shown

    def plan(ledger: Ledger, **given: Any) -> Report:
        return planner.store(**given)

    by_verb = {route.verb: route for route in ROUTES}
    show, store = by_verb["show"], by_verb["store"]
    return (
        *ROUTES,
        Route(
            "GET",
            CONSTANT + "{ref}",
            "constant",
            tell,
            show.what,
            params=show.params,
            returns=show.returns,
        ),
        Route("POST", PLANNED, "planned", plan, store.what, store.grant, store.params, moment=False),
    )


def main() -> None:
    """Serve a database that has a key, until asked to end."""
    path, port = sys.argv[1], int(sys.argv[2])
    engine = SqliteEngine(path)
    clock, policies = SystemClock(), registry(())
    keys = Keyring(Ledger(engine, tenant=KEYS_TENANT, agent=AGENT, clock=clock, policies=policies), clock)
    keys.refresh()
    Serving(App(engine, keys, clock=clock, policies=policies, routes=routes(engine)), "127.0.0.1", port).run()


if __name__ == "__main__":
    main()
