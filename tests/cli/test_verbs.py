"""No verb is forgotten: each one of the library has an address, a place in the client, or a reason why not."""

from __future__ import annotations

import inspect

import pytest

from woodrat.api.ledger import Ledger
from woodrat.api.past import Past
from woodrat.api.remote import NOT_HERE, RemoteLedger, RemotePast
from woodrat.server.routes import ROUTES

VERBS = sorted(name for name in dir(Ledger) if not name.startswith("_"))
ADDRESSES = {route.verb for route in ROUTES}

CALLED = {
    "entries": "log",
    "deliveries": "sources",
    "content": "source",
    "source": "add_source",
    "at": "position",
    "run": "run_start",
    "begin_interpretation": "interpretation",
    "continue_interpretation": "interpretation_store",
    "continue_run": "run_entries",
    "erased_at": "log",
    "export_log": "log",
    "export_training": "log",
    "import_log": "import_log",
    "follow_stale": "newly_stale",
    "on_stale": "newly_stale",
    "replay": "log",
    "recorded": "run_start",
}
"""Verbs whose address, or the one they are made of, goes by another name there."""

NO_ADDRESS = {
    **NOT_HERE,
    "by": "as whom it is written is for the key to say",
    "close": "it is this process that lets go of the database",
    "stale_follower": "follow_stale and on_stale are made of it",
    "run_log": "it says where the library records a run",
}
"""Verbs without an address, each with the reason."""

OWN = {"progress", "jobs", "timeout_seconds", "embedder", "by", "policies"}
"""Arguments that only a ledger in the same process takes."""


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_an_address_or_a_reason(verb: str) -> None:
    """What the library can do is in the table of routes, unless a sentence says why it is not."""
    found = CALLED.get(verb, verb) in ADDRESSES
    assert found is not (verb in NO_ADDRESS), f"{verb}: add a route, or say in NO_ADDRESS why there is none"


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_is_in_the_client_or_has_a_reason(verb: str) -> None:
    """What the library can do, the client can, unless a sentence says why not; and it reads at the same moments."""
    remote = RemotePast if hasattr(Past, verb) else RemoteLedger
    assert hasattr(remote, verb) is not (verb in NOT_HERE), verb


@pytest.mark.parametrize("verb", [verb for verb in VERBS if hasattr(RemoteLedger, verb)])
def test_the_client_takes_what_the_library_takes(verb: str) -> None:
    """Every argument of a verb is taken by the client under the same name, in the same place."""
    here, there = getattr(Ledger, verb), getattr(RemoteLedger, verb)
    if not callable(here):
        assert isinstance(there, property) or not callable(there)
        return
    taken = inspect.signature(there).parameters
    anything = any(one.kind is inspect.Parameter.VAR_KEYWORD for one in taken.values())
    missing = {
        name
        for name, one in inspect.signature(here).parameters.items()
        if name not in taken and not anything and name not in OWN and one.kind is not inspect.Parameter.VAR_KEYWORD
    }
    assert not missing
    places = [
        [name for name, one in parameters.items() if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
        for parameters in (inspect.signature(here).parameters, taken)
    ]
    assert places[1] == places[0][: len(places[1])]


def test_no_reason_outlives_its_verb() -> None:
    """Reasons and other names are about verbs that there are."""
    assert {*CALLED, *NO_ADDRESS, *NOT_HERE} <= set(VERBS)
    assert set(CALLED.values()) <= ADDRESSES
