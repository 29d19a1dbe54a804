"""The smoke test notices what is broken; what it does to a real wheel is seen by `python3 dev.py release`."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dev
import pytest
from release import __main__ as command
from release import checks, smoke

GOLDEN = dev.ROOT / "tests" / "golden" / "capsules"


@pytest.fixture
def installed(tmp_path: Path) -> smoke.Installation:
    """The environment of the tests, in which Woodrat is installed as well, with a folder outside of the checkout."""
    return smoke.Installation(Path(sys.prefix), tmp_path, checks.version_of(checks.PACKAGE.read_text("utf-8")))


def test_what_a_user_tries_first_works_here(installed: smoke.Installation) -> None:
    """Store, show and the verifiers pass on the code of this checkout."""
    smoke.check_store(installed)
    smoke.check_verifiers(installed, GOLDEN)


def test_the_checkout_is_not_taken_for_an_installation(installed: smoke.Installation) -> None:
    """A package that is found outside of the environment fails the test of the import."""
    with pytest.raises(smoke.SmokeFailure, match="not in its environment"):
        smoke.check_import(installed)


def test_another_exit_code_fails_and_shows_what_was_printed(installed: smoke.Installation) -> None:
    """The message names the command, both exit codes, and holds its output."""
    with pytest.raises(smoke.SmokeFailure, match=r"exit code 3, expected 0\.\nwhy"):
        installed.run("python", "-c", "print('why'); raise SystemExit(3)")


def test_a_server_that_ends_is_not_waited_for(installed: smoke.Installation) -> None:
    """The exit code is told at once."""
    server = subprocess.Popen([sys.executable, "-c", "raise SystemExit(4)"], text=True)
    server.wait()
    with pytest.raises(smoke.SmokeFailure, match="exit code 4"):
        smoke.wait_for(f"http://127.0.0.1:{smoke.free_port()}/healthz", server)


def test_neither_python_nor_woodrat_is_told_of_the_checkout() -> None:
    """Variables that lead there, and the caller's own settings, are not handed on."""
    variables = {"PYTHONPATH": "src", "WOODRAT_DB": "own.db", "VIRTUAL_ENV": ".venv", "PATH": "/bin"}
    assert smoke.clean_variables(variables) == {"PATH": "/bin"}


def test_a_release_that_is_not_ready_builds_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All that is not ready is listed, and nothing is built."""
    monkeypatch.setattr(command, "readiness_faults", lambda version: ["CHANGELOG.md: no.", "The tag: no."])
    monkeypatch.setattr(command, "build", lambda folder: pytest.fail("built"))
    assert command.main([]) == 1
    printed = capsys.readouterr()
    assert "CHANGELOG.md: no.\n  The tag: no." in printed.out
    assert "There is no release" in printed.err
