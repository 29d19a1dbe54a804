"""Every verb of the library, by name; surfaces are made from this table."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Final

from woodrat.api.verb import Verb, verbs_of

NAMESPACES: Final[Mapping[str, str]] = {
    "runs": "Runs",
    "schemas": "Schemas",
    "sources": "Sources",
    "interpretations": "Interpretations",
    "proofs": "Proofs",
    "log": "Log",
    "training": "Training",
}
"""The class of each namespace, in the module of its name."""


@cache
def verbs() -> Mapping[str, Verb]:
    """Return every declared verb by its name, the ledger's own first."""
    from woodrat.api.ledger import Ledger

    found = list(verbs_of(Ledger))
    for namespace, name in NAMESPACES.items():
        kind: type = getattr(import_module(f"woodrat.api.{namespace}"), name)
        found += verbs_of(kind, namespace)
    return {verb.name: verb for verb in found}


@cache
def declared(name: str) -> Verb:
    """Return one verb; imports only the module that declares it, which is the reading module if it reads."""
    namespace, _, method = name.rpartition(".")
    if namespace:
        kind: type = getattr(import_module(f"woodrat.api.{namespace}"), NAMESPACES[namespace])
    else:
        from woodrat.api.past import Past

        kind = Past
        if not hasattr(Past, method):
            from woodrat.api.ledger import Ledger

            kind = Ledger
    return next(verb for verb in verbs_of(kind, namespace) if verb.name == name)
