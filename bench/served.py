"""`python -m bench.served DB PORT`: the server of the product, with two routes beside its own that show its limits.

Both go the whole way of a request: key, grants, arguments, the audit, measures, the log. One answers a constant as long
as a snapshot where `show` would look at the ledger. The other parses, checks and plans a record as `store` does, in the
committer's thread, and answers with a report that an earlier write gave: the append and what follows it are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, cast

from bench import records
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.port import Transaction
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.ledger.report import Report
from woodrat.ledger.write import Draft, Hide, Writer
from woodrat.server import answers
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Keyring
from woodrat.server.routes import ROUTES, Route
from woodrat.server.serve import Serving
from woodrat.server.show_cache import Shown, Spelling
from woodrat.server.show_cache import shown as spelled

TENANT, AGENT = "default", "bench"
CONSTANT, PLANNED = "/v1/constant/", "/v1/planned"


class _Planning(Writer):
    """A writer that stops once everything is known about a write but what it changes."""

    __slots__ = ("report",)
    report: Report

    def carry_out(
        self, request: bytes, plan: Callable[[Draft], None], key: str | None, dry_run: bool, hide: Hide | None
    ) -> Report:
        with self.engine.view(self.tenant) as view:
            draft = self._draft(cast(Transaction, view))
            plan(draft)
            draft.settle()
            assert draft.items, "there is something to be written"
        return self.report


def routes(engine: SqliteEngine) -> tuple[Route, ...]:
    """Return the routes of the product, and the two that show its limits; the ledger has entities already."""
    clock, policies = SystemClock(), registry(())
    ledger = Ledger(engine, tenant=TENANT, agent=AGENT, clock=clock, policies=policies)
    shown = ledger.show(records.ref(0))
    constant = spelled(shown)
    fields = dict(shown.fields)
    report = ledger.store({"entity_type": shown.entity.type, **fields, "note": "one more"})
    planner = Ledger(engine, tenant=TENANT, agent=AGENT, clock=clock, policies=policies)
    old = planner._writer
    planning = _Planning(old.engine, old.tenant, old.clock, old.agent, old.policies, old.watch, old.erasures)
    object.__setattr__(planning, "report", report)
    planner._writer = planning

    def tell(_: Spelling, ledger: Ledger, ref: str) -> Shown:
        return constant

    def plan(ledger: Ledger, **given: Any) -> Report:
        return answers.store(planner, **given)

    by_verb = {route.verb: route for route in ROUTES}
    show, store = by_verb["show"], by_verb["store"]
    return (
        *ROUTES,
        Route("GET", CONSTANT + "{ref}", "constant", show.answer, show.what, params=show.params, soon=tell),
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
