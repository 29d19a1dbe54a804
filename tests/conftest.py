"""Settings shared by all tests: how long hypothesis searches, which tests are slow, and what each kind took.

`quick` runs the same examples every time, so a failure seen once is seen again; `fast` runs fewer of them, for
`python3 dev.py test --fast`. `full` searches at random and for longer; `python3 dev.py laws` asks for it with
WOODRAT_LAWS=full.
"""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings
from tests.kinds import KindTable
from tests.slow import SlowTests

if TYPE_CHECKING:
    from tests.postgres import Databases

    from woodrat.engines.postgres.engine import PostgresEngine

pytest_plugins = ["tests.commands"]

settings.register_profile(
    "fast", max_examples=10, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "quick", max_examples=40, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("full", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# At import, because decorators of test modules read the profile before any fixture could set it.
_chosen = os.environ.get("WOODRAT_LAWS", "quick")
if _chosen not in ("fast", "quick", "full"):
    raise RuntimeError(
        f'WOODRAT_LAWS: expected "fast", "quick" or "full", got "{_chosen}". Leave it unset for "quick".'
    )
settings.load_profile(_chosen)

RUN_FOLDER = "WOODRAT_TESTS_FOLDER"
"""The variable that names a folder which all processes of this run have in common."""

MEMORY = "/dev/shm"
"""A folder in memory, where the machine has one."""
MEMORY_BYTES_MIN = 4 * 1_073_741_824
"""How much room it has to have."""

# No test sees the keys of whoever runs it; those that need some make them.
os.environ.pop("WOODRAT_SIGNING_KEYS", None)
os.environ["XDG_CONFIG_HOME"] = os.path.join(tempfile.gettempdir(), "woodrat-tests-no-configuration")


@pytest.fixture(autouse=True)
def _without_the_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let recall go by words alone, as in the base install: loading the model takes a second; `model` asks for it."""
    if request.node.get_closest_marker("model") is None:
        monkeypatch.setattr("woodrat.recall.minilm.is_installed", lambda: False)


@pytest.fixture(scope="session")
def postgres_server() -> str:
    """The address of the one PostgreSQL server of this run, whichever process asks for it first."""
    from tests import postgres

    return postgres.shared(Path(os.environ[RUN_FOLDER]))


@pytest.fixture(scope="session")
def _postgres_databases(postgres_server: str) -> Iterator[Databases]:
    from tests.postgres import Databases

    databases = Databases(postgres_server)
    yield databases
    databases.drop()


@pytest.fixture
def postgres_database(_postgres_databases: Databases) -> Iterator[Callable[[], str]]:
    """What hands out empty databases with woodrat's tables in them, by address."""
    with _postgres_databases.lent() as lend:
        yield lend


@pytest.fixture
def postgres_url(postgres_database: Callable[[], str]) -> str:
    """The address of one such database."""
    return postgres_database()


@pytest.fixture
def postgres_engine(postgres_url: str) -> Iterator[PostgresEngine]:
    """An engine on that database; it is closed in the end."""
    from woodrat.engines.postgres.engine import PostgresEngine

    engine = PostgresEngine(postgres_url)
    yield engine
    engine.close()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take the option that measures which tests are slow."""
    parser.addoption("--write-slow", action="store_true", help="write which of the tests that ran are slow")


def pytest_collection_finish() -> None:
    """Take what was collected, thousands of tests and all their modules, out of the garbage collector's rounds."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Count what tests take, and mark the slow ones."""
    config.pluginmanager.register(KindTable(), "woodrat-kinds")
    config.pluginmanager.register(SlowTests(), "woodrat-slow")
    if RUN_FOLDER not in os.environ:  # not in the processes that this one starts
        in_memory = _has_room_in_memory()
        os.environ[RUN_FOLDER] = tempfile.mkdtemp(prefix="woodrat-tests-", dir=MEMORY if in_memory else None)
        if in_memory:
            # Folders that pytest makes stay there if their test failed; all others go with the run.
            os.environ["PYTEST_DEBUG_TEMPROOT"] = MEMORY
            os.environ["TMPDIR"] = tempfile.tempdir = os.environ[RUN_FOLDER]
        os.environ["WOODRAT_TESTS_PROCESS"] = str(os.getpid())
        config.add_cleanup(_end_run)


def _has_room_in_memory() -> bool:
    """Return whether files of tests are kept in memory: where there is room, unless somebody named another folder.

    A ledger waits for the disk at every commit, and nothing of a test outlives the machine.
    """
    named = "TMPDIR" in os.environ or not os.access(MEMORY, os.W_OK)
    return not named and shutil.disk_usage(MEMORY).free >= MEMORY_BYTES_MIN


def _end_run() -> None:
    """End what the processes of this run had in common."""
    folder = Path(os.environ.pop(RUN_FOLDER))
    if any(folder.iterdir()):
        from tests import postgres

        postgres.end_shared(folder)
    shutil.rmtree(folder)
