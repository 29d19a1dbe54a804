"""The law about what an erasure derives: just what it concerns, and the same as deriving everything again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st
from tests.explain import test_touched
from tests.laws.test_ledger_laws import ENGINES
from tests.runs import test_lists

import woodrat
from woodrat.api.trailing_indexes import TRAILING
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.erasure import index
from woodrat.explain.index import touched
from woodrat.ledger import derived_part, entry_index, indexer, state_redo
from woodrat.ledger.own_policy import registry
from woodrat.runs.index import listing
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import indexes_of

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800), pytest.mark.usefixtures("parts_only")]

TENANT = TenantId("t")
SCOPES: list[dict[str, Any]] = [
    {"what": "loan/1"},
    {"what": "loan/2"},
    {"what": "loan/1#score"},
    {"what": "evaluation/1"},
    {"subject": "loan/1"},
    {"agent": "bob"},
]
_acts = st.one_of(
    test_touched._acts.map(lambda given: ("touched", *given)),
    test_lists._acts.map(lambda given: ("lists", *given)),
)
_telling = st.lists(st.tuples(st.sampled_from(["ann", "bob"]), _acts), min_size=4, max_size=14)


def tell(engine: Engine, acts: list[Any]) -> woodrat.Ledger:
    """Return a ledger in which something happened."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z")
    ledger = woodrat.Ledger(engine, tenant="t", agent="ann", clock=clock, policies=registry(()))
    ledger.store([{"entity_type": "loan", "id": id, "score": 500 + int(id)} for id in "12"])
    for agent, (kind, *given_) in acts:
        (test_touched if kind == "touched" else test_lists).act(ledger.as_agent(agent), *given_)
    return ledger


def follow(ledger: woodrat.Ledger, entries_max: int = 1_000) -> None:
    """Bring everything that trails the log up to date."""
    while indexer.go_on(ledger.context, TRAILING, entries_max):
        pass
    ledger.fingerprint()  # its nodes are made when they are asked for


def derived(engine: Engine) -> dict[str, Any]:
    """Return everything that is derived from the log, as far as an engine shows it."""
    with engine.view(TENANT) as view:
        head = view.head().position
        refs = view.entities(None, head)
        runs = {run for run in test_lists.RUNS if entry_index.has_run(view, run, head)}
        return {
            "indexes": {name: list(view.lives(name)) for name in view.index_names()},
            "notes": dict(view.notes()),
            "observations": {ref: list(view.observations(ref.digest, BEFORE_ALL, head)) for ref in refs},
            "runs": {run: [entry.position for entry in entry_index.run_entries(view, run, head)] for run in runs},
            # A write keeps the present state at its end, a rebuild where it is due: `verify` compares these.
            "values": indexes_of(engine, TENANT)[1:],
        }


def compare(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Check part by part that the same is derived."""
    for name in one["indexes"].keys() | other["indexes"].keys():
        assert one["indexes"].get(name, []) == other["indexes"].get(name, []), name
    assert one == other


def erase(ledger: woodrat.Ledger, scope: dict[str, Any]) -> bool:
    """Erase, if there is anything; return whether there was."""
    try:
        ledger.erase(**scope, reason="asked to")
    except (woodrat.NotFound, woodrat.Refused):
        return False
    return True


def check(ledger: woodrat.Ledger, scope: dict[str, Any]) -> bool:
    """Erase, and compare what is derived then with what is derived from the log alone; return whether anything was."""
    engine = ledger.context.engine
    if not erase(ledger, scope):
        return False
    for _ in range(2):
        report = ledger.verify(deep=True)
        assert report.sound, report.damage
        follow(ledger)
    found = derived(engine)
    assert ledger.rebuild().agreed
    follow(ledger)
    compare(found, derived(engine))
    return True


@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(make_engine=ENGINES, data=st.data())
def test_an_erasure_derives_what_a_rebuild_derives(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """After an erasure every row, state and index is as if everything had been derived again from what is left."""
    acts = data.draw(_telling)
    split = data.draw(st.integers(0, len(acts)))
    ledger = tell(make_engine(), acts[:split])
    follow(ledger)
    for agent, (kind, *given_) in acts[split:]:
        (test_touched if kind == "touched" else test_lists).act(ledger.as_agent(agent), *given_)
    scope = data.draw(st.sampled_from(SCOPES))
    event(f"erased {next(iter(scope))}" if check(ledger, scope) else "nothing to erase")
    ledger.context.engine.close()


def _story() -> woodrat.Ledger:
    acts: list[Any] = [("ann", ("lists", *each)) for each in test_lists.STORY]
    decide = ("touched", "decide", test_lists.RUNS[0], "loan/1", ["score"], 0, None, True)
    acts += [("ann", decide), ("bob", ("touched", "store", "loan/1", {"score": 502}, 5)), ("ann", decide)]
    for id in ("1", "3"):
        acts += [("bob", ("lists", "evaluate", {"id": id, "subject": test_lists.RUNS[0], "verdict": "failed"}))]
    ledger = tell(InMemoryEngine(), acts)
    follow(ledger)
    return ledger


def test_the_story_agrees() -> None:
    """What the planted faults below go wrong with goes well without them."""
    assert check(_story(), {"agent": "bob"})


@pytest.mark.parametrize(
    ("place", "name"),
    [
        (listing, "lives"),
        (touched, "lives"),
        (index.AffectedData, "_affected_decisions"),
        (entry_index, "forget"),
        (entry_index, "renew_blocks"),
        (state_redo, "redo"),
        (derived_part.DerivedPart, "_take"),
        (derived_part, "_concerned"),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_a_part_left_out_is_noticed(place: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An erasure that leaves any part of the derived data as it was is told from one that derives everything."""
    ledger = _story()
    monkeypatch.setattr(place, name, lambda *_: ())
    with pytest.raises((AssertionError, woodrat.Corrupt, KeyError)):
        check(ledger, {"agent": "bob"})
