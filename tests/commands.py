"""The command line as tests call it: in this process, on a database of their own."""

from __future__ import annotations

import io
import json
import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from woodrat.cli.main import main


@dataclass(frozen=True)
class Ran:
    """What one command came to."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The answer, as the JSON it is when piped."""
        assert self.code in (0, 1), self.err
        return json.loads(self.out)


Cli = Callable[..., Ran]


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A database that does not exist yet, named by WOODRAT_DB."""
    path = tmp_path / "woodrat.db"
    for name in ("WOODRAT_TENANT", "WOODRAT_AGENT", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WOODRAT_DB", str(path))
    return path


@pytest.fixture
def cli(db: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run a command line and return its exit code and what it printed."""

    def run(*words: str, stdin: bytes = b"") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        capsys.readouterr()
        code = main(words)
        printed = capsys.readouterr()
        return Ran(code, printed.out, printed.err)

    return run


BARCELONA = '[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]'
SAN_FRANCISCO = '[{"entity_type":"contact","name":"Ana Rivera","city":"San Francisco"}]'


@pytest.fixture
def ana(cli: Cli) -> Cli:
    """The command line after two agents have disagreed on a city, at stated times."""
    for agent, seen, record in (
        ("crm", "2026-01-05T09:00:00Z", BARCELONA),
        ("web", "2026-03-01T12:00:00Z", SAN_FRANCISCO),
    ):
        ran = cli("store", f"--json={record}", "--observed-at", seen, "--as", agent)
        assert ran.code == 0, ran.err
    return cli


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Ctrl-C ends commands, also where the tests are a background job, which a shell lets ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
