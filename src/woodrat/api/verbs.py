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
    """Return every declared verb by its name, those of the ledger itself first."""
    from woodrat.api.ledger import Ledger

    found = list(verbs_of(Ledger))
    for namespace, name in NAMESPACES.items():
        kind: type = getattr(import_module(f"woodrat.api.{namespace}"), name)
        found += verbs_of(kind, namespace)
    return {verb.name: verb for verb in found}
