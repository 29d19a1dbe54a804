"""Settings shared by all tests: how long hypothesis searches, which tests are slow, and what each kind took.

`quick` runs the same examples every time, so a failure seen once is seen again; `fast` runs fewer of them, for
`python3 dev.py test --fast`. `full` searches at random and for longer; `python3 dev.py laws` asks for it with
WOODRAT_LAWS=full.
"""

from __future__ import annotations

import os
import tempfile

import pytest
from hypothesis import HealthCheck, settings
from tests.kinds import KindTable
from tests.slow import SlowTests

pytest_plugins = ["tests.commands"]

settings.register_profile(
    "fast", max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "quick", max_examples=60, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# At import, because decorators of test modules read the profile before any fixture could set it.
_chosen = os.environ.get("WOODRAT_LAWS", "quick")
if _chosen not in ("fast", "quick", "full"):
    raise RuntimeError(
        f'WOODRAT_LAWS: expected "fast", "quick" or "full", got "{_chosen}". Leave it unset for "quick".'
    )
settings.load_profile(_chosen)

# No test sees the keys of whoever runs it; those that need some make them.
os.environ.pop("WOODRAT_SIGNING_KEYS", None)
os.environ["XDG_CONFIG_HOME"] = os.path.join(tempfile.gettempdir(), "woodrat-tests-no-configuration")


@pytest.fixture(autouse=True)
def _without_the_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let recall go by words alone, as in the base install: loading the model takes a second; `model` asks for it."""
    if request.node.get_closest_marker("model") is None:
        monkeypatch.setattr("woodrat.recall.minilm.is_installed", lambda: False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the option that measures which tests are slow."""
    parser.addoption("--write-slow", action="store_true", help="write which of the tests that ran are slow")


def pytest_configure(config: pytest.Config) -> None:
    """Count what tests take, and mark the slow ones."""
    config.pluginmanager.register(KindTable(), "woodrat-kinds")
    config.pluginmanager.register(SlowTests(), "woodrat-slow")
