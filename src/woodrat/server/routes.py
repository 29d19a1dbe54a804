"""Routes: all addresses; the application, the OpenAPI document and the tests are made from them.

Every declared verb with an address is a route: its declaration states the address and the parameters (`api/verb.py`),
and its answer is the library's result (`api/codec.py`). Only differences of the server are written here. Live runs,
sources and interpretations, the exchange of logs, and webhooks have modules of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from woodrat.api import codec
from woodrat.api.verb import Verb
from woodrat.api.verbs import verbs
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import reads
from woodrat.ledger.moments import NO_READ
from woodrat.server import log_routes, run_routes, source_routes, tenant_routes, webhook_routes, wire
from woodrat.server.route import DETAILS, Route, param_of

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.ledger.progress import Progress
    from woodrat.merge.blame import Blame
    from woodrat.merge.snapshot import Snapshot
    from woodrat.verify.report import OrderProof

SHUFFLES_MAX: Final = 1_000
"""Most orders that one call may try."""
HERE_ONLY: Final = frozenset({"by"})
"""Parameters that a server does not take: the key states the judge."""


def operation(verb: Verb) -> str:
    """Return the name of a verb in the OpenAPI document, in logs and in metrics: `runs.import_` is `runs_import`."""
    return verb.name.replace(".", "_").rstrip("_")


def declared_route(verb: Verb) -> Route:
    """Return the route of a declared verb."""
    declared = verb.declaration
    params = [param_of(each, declared.method) for each in verb.parameters if each.name not in HERE_ONLY]
    answer, returns = _DIFFERENT.get(verb.name), None
    if answer is None:
        answer, returns = _called_by_name(verb.name), verb.function
    if codec.answer_of(verb).has_details:
        params.append(DETAILS)
    return Route(
        declared.method,
        declared.path,
        operation(verb),
        answer,
        verb.what,
        declared.grant,
        tuple(params),
        declared.at_moment,
        declared.example,
        returns,
        wide=declared.wide,
        alone=declared.alone,
        lines=declared.lines,
        soon=_SOON.get(verb.name),
    )


def _called_by_name(name: str) -> Callable[..., Any]:
    """Return a function that calls a verb by name, on a ledger or on a moment of one."""
    method = attrgetter(name)

    def call(past: Past, **given: Any) -> Any:
        return method(past)(**given)

    return call


# Verbs that a server executes differently


def _show_soon(ledger: Ledger, *, ref: str, **_: Any) -> Snapshot | None:
    """Show an entity from its stored current state; None if showing it takes longer."""
    return reads.show_soon(ledger.context, ref)


def _blame(past: Past, ref: str, field: str | None = None, **asked: Any) -> Blame:
    """Show claims on the fields of an entity; the address may name a field after a #."""
    return wire.blamed(past, ref, field, **asked)


def _prove_order(ledger: Ledger, *, shuffles: int = 100, progress: Progress | None = None) -> OrderProof:
    """Try other orders of arrival, up to a limit."""
    if type(shuffles) is int and shuffles > SHUFFLES_MAX:
        raise Refused([Fault("shuffles", f"got {shown(shuffles)}", f"Send at most {SHUFFLES_MAX}.")], NO_READ)
    return ledger.prove_order(shuffles=shuffles, progress=progress)


def _prove(ledger: Ledger, what: str) -> bytes:
    """Return the proof as the document that verifiers read; digits name a position."""
    position = what.isascii() and what.isdigit() and len(what) <= 16
    return ledger.proofs.prove(int(what) if position else what).to_bytes()


def _prove_consistency(ledger: Ledger, old: str, new: str | None = None) -> bytes:
    """Return the proof as the document that verifiers read."""
    return ledger.proofs.prove_consistency(old, new).to_bytes()


def _capsule(ledger: Ledger, what: str) -> bytes:
    """Return the capsule as the document that verifiers read."""
    return ledger.proofs.capsule(what).to_bytes()


def _import_runs(
    ledger: Ledger, document: Any, idempotency_key: str | None = None, *, own: bool = False
) -> tuple[str, ...]:
    """Import recorded runs; with `own` only runs of the ledger's agent."""
    from woodrat.importers import reader
    from woodrat.runs.verbs import documents

    return documents.record(ledger.run_log(), reader.read(document), idempotency_key, own=own)


_DIFFERENT: Final[Mapping[str, Callable[..., Any]]] = {
    "blame": _blame,
    "prove_order": _prove_order,
    "proofs.prove": _prove,
    "proofs.prove_consistency": _prove_consistency,
    "proofs.capsule": _capsule,
    "runs.import_": _import_runs,
    "log.entries": log_routes.entries,
}
"""Verbs that the server executes in its own way."""
_SOON: Final[Mapping[str, Callable[..., Any]]] = {"show": _show_soon}
"""Verbs answered on the event loop."""

ROUTES: Final[tuple[Route, ...]] = (
    *(declared_route(verb) for verb in verbs().values() if verb.declaration.path),
    *run_routes.ROUTES,
    *source_routes.ROUTES,
    *log_routes.ROUTES,
    *tenant_routes.ROUTES,
    *webhook_routes.ROUTES,
)
"""All of them, the verbs of the library first."""
