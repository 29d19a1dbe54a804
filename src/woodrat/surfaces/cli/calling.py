"""Calling: one command with its settings resolved, the ledger it opens, and the answer it prints."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from woodrat.errors import NotFound
from woodrat.surfaces import wire

if TYPE_CHECKING:
    from woodrat.engines.port import Engine
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.past import Past
    from woodrat.surfaces.cli.paper import Paper

MEMORY = ":memory:"
CREATE, UPDATE, READ = "create", "update", "read"
"""How a verb opens the database: making it if need be; for writing if it is there; for reading alone."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a verb found, for programs and for people."""

    json: Any
    """The whole answer, as plain JSON."""
    text: Callable[[Paper], None]
    """Prints the answer for people."""
    lines: Iterable[Any] | None = None
    """The parts of the answer, each a line of `-o jsonl`; left out, the answer is one line."""
    code: int = wire.DONE
    """What the command exits with."""
    streams: bool = False
    """Whether `lines` is the answer itself, too long to hold: piped output is JSON lines then."""
    plain: bool = False
    """Whether the answer is text for people or a shell, whatever output is asked for."""


class Call:
    """One command: its arguments, and the ledger they name."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self.given = arguments
        self.db: str | None = arguments.db if arguments.db is not None else os.environ.get("WOODRAT_DB") or None
        self.tenant: str = _setting(arguments.tenant, "WOODRAT_TENANT", "default")
        self.agent: str = _setting(arguments.agent, "WOODRAT_AGENT", "cli")
        self._engine: Engine | None = None

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._engine is not None:
            self._engine.close()

    @property
    def path(self) -> Path | None:
        """The file the ledger is in; none when it is not in a file."""
        from urllib.parse import unquote

        from woodrat.ledger.opening import default_path

        if self.db is None:
            return default_path()
        if self.db == MEMORY or not self.db:
            return None
        if "://" not in self.db:
            return Path(self.db).expanduser()
        if self.db.startswith("sqlite://"):
            return Path(unquote(self.db.removeprefix("sqlite://").removeprefix("/")))
        return None

    def engine(self, mode: str) -> Engine:
        """Open the database once; `NotFound` when there is none and this verb does not make one."""
        from woodrat.ledger.opening import engine_for

        if self._engine is None:
            path = self.path
            db = self.db
            if path is not None and not path.exists():
                if getattr(self.given, "dry_run", False) or getattr(self.given, "trial", False):
                    db = MEMORY
                elif mode != CREATE:
                    raise NotFound(
                        f"There is no database at {path}. Nothing was created. "
                        "Name another with --db or WOODRAT_DB, or make this one with `woodrat store`.",
                        {"db": str(path)},
                    )
            self._engine = engine_for(db, readonly=mode == READ)
        return self._engine

    def ledger(self, mode: str) -> Ledger:
        """Return the ledger of this call's tenant, written to by this call's agent."""
        from woodrat.clock import SystemClock
        from woodrat.ledger.ledger import Ledger
        from woodrat.ledger.policies import registry

        engine = self.engine(mode)
        return Ledger(engine, tenant=self.tenant, agent=self.agent, clock=SystemClock(), policies=registry(()))

    def past(self) -> Past:
        """Return the ledger as of the moment asked for, pinned to a position."""
        moment = self.given.as_of if self.given.as_of is not None else "now"
        return self.ledger(READ).at(moment, effective=self.given.effective)


def _setting(given: str | None, variable: str, otherwise: str) -> str:
    return given if given is not None else os.environ.get(variable) or otherwise
