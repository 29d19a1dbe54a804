"""Replaying: a pytest plugin that makes recorded runs test cases.

    @pytest.mark.woodrat_replay("agents.db", tenant="lending", agent="loan-officer", since="2026-01-05T00:00:00Z")
    def test_loans_are_decided_as_before(woodrat_replay):
        woodrat_replay(approve)

Each run is a separate case, named by its id. The ledger is opened read-only, while tests are collected. pytest finds
the plugin by itself where Woodrat is installed; no part of Woodrat's ledger is loaded until a test needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from woodrat.api.ledger import Ledger
    from woodrat.replay.result import ReplayedRun

MARKER = "woodrat_replay"
_OPENED = pytest.StashKey[dict[tuple[str, str], "Ledger"]]()


class Case:
    """One recorded run as a test case; calling it with the agent's function replays the run."""

    def __init__(self, ledger: Ledger, run: str, live: Iterable[str]) -> None:
        self.ledger = ledger
        """The ledger, open for reading."""
        self.run = run
        """Id of the run."""
        self._live = tuple(live)

    def __call__(self, agent: Callable[..., Any]) -> ReplayedRun:
        """Replay the run with the agent's function; the test fails if anything differs."""
        __tracebackhide__ = True
        found = self.ledger.runs.replay(self.run, agent, live=self._live).runs[0]
        if not found.same:
            asked = f"asked: {found.query}" if found.query is not None else "nothing is known of what was asked"
            about = f", about {found.subject}" if found.subject is not None else ""
            pytest.fail(f"{found}\n({asked}{about})", pytrace=False)
        return found


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    told = "db, *, tenant, runs, agent, subject, since, until, status, verdict, live"
    config.addinivalue_line("markers", f"{MARKER}({told}): make recorded runs of a Woodrat ledger cases of this test")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the ledgers that were opened."""
    for ledger in config.stash.get(_OPENED, {}).values():
        ledger.close()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test that is marked a case for each recorded run."""
    if MARKER not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(MARKER)
    if marker is None:
        pytest.fail(
            f"{metafunc.function.__name__} uses {MARKER} and names no ledger. "
            f'Mark it: @pytest.mark.{MARKER}("agents.db").',
            pytrace=False,
        )
    from woodrat.errors import WoodratError

    try:
        cases = _cases(metafunc.config, *marker.args, **marker.kwargs)
    except (WoodratError, TypeError) as error:
        pytest.fail(f"{MARKER}: {error}", pytrace=False)
    metafunc.parametrize(MARKER, cases, indirect=True, ids=[case.run for case in cases])


def _cases(
    config: pytest.Config,
    db: str,
    *,
    tenant: str = "default",
    runs: Iterable[str] | None = None,
    live: Iterable[str] = (),
    **asked: Any,
) -> list[Case]:
    from woodrat.replay.verbs import outer_runs

    ledger = _ledger(config, str(db), tenant)
    named = outer_runs(ledger.context, **asked) if runs is None else [runs] if isinstance(runs, str) else list(runs)
    return [Case(ledger, run, [live] if isinstance(live, str) else live) for run in named]


def _ledger(config: pytest.Config, db: str, tenant: str) -> Ledger:
    """Open a ledger once for all tests; a path is taken from the root of the tests."""
    from woodrat.api.open import open_ledger

    opened = config.stash.setdefault(_OPENED, {})
    path = db if "://" in db else str(config.rootpath / db)
    if (path, tenant) not in opened:
        opened[path, tenant] = open_ledger(path, tenant=tenant, agent="pytest", readonly=True)
    return opened[path, tenant]


@pytest.fixture
def woodrat_replay(request: pytest.FixtureRequest) -> Case:
    """One recorded run: `woodrat_replay(agent_function)` replays it and fails if it differs."""
    case: Case = request.param
    return case
