"""Real servers with ledgers to look at, and one browser for each process of the tests.

Browser tests are skipped where there is no browser or no app, with the reason. With CI set they fail instead.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from tests.inspector import ledgers
from tests.inspector.served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from tests.inspector.browser import Look

RUN_FOLDER = "WOODRAT_TESTS_FOLDER"
"""The variable that names a folder which all processes of this run have in common."""


def leave_out(problem: str) -> NoReturn:
    """Skip a test of the inspector that cannot be run here; in CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(f"CI never skips the browser tests, and {problem}")
    pytest.skip(problem)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """The browser of this machine; not for a whole run, since its driver keeps a loop of asyncio running meanwhile."""
    from tests.inspector import browser as browsers

    if (problem := browsers.missing()) is not None:
        leave_out(problem)
    with browsers.running() as found:
        yield found


Open = Callable[..., "Look"]


@pytest.fixture
def look(browser: Browser) -> Iterator[Open]:
    """Open a page of a server in a fresh browser profile; what goes wrong in it is noted."""
    from tests.inspector.browser import WIDE, Look

    with ExitStack() as contexts:

        def open_page(server: Served, path: str | None = "/", *, dark: bool = False, narrow: bool = False) -> Look:
            from tests.inspector.browser import NARROW

            context = browser.new_context(
                viewport=NARROW if narrow else WIDE,  # type: ignore[arg-type]
                color_scheme="dark" if dark else "light",
                reduced_motion="reduce",
                locale="en-GB",
                timezone_id="UTC",
            )
            contexts.callback(context.close)
            found = Look(context.new_page(), server.url)
            return found if path is None else found.go(path)

        yield open_page


def made_once(name: str, make: Callable[[Path], object], folder: Path) -> Path:
    """Return a copy of a ledger that is written once in a run of the tests, whichever process wants it first."""
    shared = Path(os.environ[RUN_FOLDER])
    original = shared / f"{name}.db"
    with open(shared / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not original.exists():
            draft = shared / f"{name}.draft"
            make(draft)
            draft.rename(original)
    copy = folder / f"{name}.db"
    shutil.copyfile(original, copy)
    return copy


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The ledger of the demonstration, served without keys."""
    with Served(made_once("demo", ledgers.make_demo, tmp_path_factory.mktemp("demo"))) as server:
        yield server


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Served]:
    """The same ledger, for a test that writes."""
    with Served(made_once("demo", ledgers.make_demo, tmp_path)) as server:
        yield server


@pytest.fixture(scope="session")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """10,000 entities and 2,000 runs, one of them with 10,000 steps."""
    path = made_once("large", lambda path: ledgers.make_large(path, ledgers.FULL), tmp_path_factory.mktemp("large"))
    with Served(path) as server:
        yield server


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Script-injection payloads in every text of the model."""
    with Served(made_once("hostile", ledgers.make_hostile, tmp_path_factory.mktemp("hostile"))) as server:
        yield server
