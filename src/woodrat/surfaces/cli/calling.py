"""Calling: one command with its settings resolved, the ledger it opens, and the answer it prints."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from woodrat.errors import Corrupt, Fault, NotFound, Refused, shown
from woodrat.frozen import dataclass
from woodrat.surfaces import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from woodrat.engines.port import Engine
    from woodrat.keeping.keys import Keys
    from woodrat.keeping.signing import Signing
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.past import Past
    from woodrat.ledger.remote import RemoteLedger
    from woodrat.surfaces.cli.paper import Paper

MEMORY = ":memory:"
NOT_OPENED = "Nothing was opened."
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
    follows: bool = False
    """Whether the answer has no end: every line is shown at once, and Ctrl-C is how it is meant to end."""
    note: str | None = None
    """What people should know besides, said on standard error where `lines` alone are printed."""
    plain: bool = False
    """Whether the answer is text for people or a shell, whatever output is asked for."""


class Call:
    """One command: its arguments, and the ledger they name."""

    def __init__(self, arguments: Any) -> None:
        self.given = arguments
        self.db: str | None = arguments.db if arguments.db is not None else os.environ.get("WOODRAT_DB") or None
        self.tenant: str = _setting(arguments.tenant, "WOODRAT_TENANT", "default")
        self.agent: str = _setting(arguments.agent, "WOODRAT_AGENT", "cli")
        self.keys: str | None = arguments.keys
        self._engine: Engine | None = None
        self._signing: Signing | None = None

    def __enter__(self) -> Call:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._signing is not None:
                self._signing.close()
        finally:
            if self._engine is not None:
                self._engine.close()

    @property
    def path(self) -> str | None:
        """The file the ledger is in; none when it is not in a file."""
        from woodrat.ledger.opening import path_of

        return path_of(self.db)

    @property
    def is_remote(self) -> bool:
        """Whether the ledger is behind a server."""
        return self.db is not None and self.db.startswith(("http://", "https://"))

    def engine(self, mode: str) -> Engine:
        """Open the database once; `NotFound` when there is none and this verb does not make one."""
        from woodrat.ledger.opening import engine_for

        if self.is_remote:
            problem = f"{shown(self.db)} is a server, and this command needs the database itself"
            raise Refused([Fault("db", problem, "Run it where the database is.")], "Nothing was done.")
        if self._engine is None:
            path = self.path
            db = self.db
            if path is not None and not _exists(path):
                if getattr(self.given, "dry_run", False) or getattr(self.given, "trial", False):
                    db = MEMORY
                elif mode != CREATE:
                    raise NotFound(
                        f"There is no database at {path}. Nothing was created. "
                        "Name another with --db or WOODRAT_DB, or make this one with `woodrat store`.",
                        {"db": path},
                    )
            self._engine = engine_for(db, readonly=mode == READ)
        return self._engine

    def ledger(self, mode: str) -> Ledger:
        """Return the ledger of this call's tenant, written to by this call's agent."""
        if self.is_remote:
            return cast("Ledger", self._remote_ledger())
        from woodrat.clock import SystemClock
        from woodrat.ledger.ledger import Ledger
        from woodrat.ledger.opening import keys_for
        from woodrat.ledger.policies import registry
        from woodrat.ledger.tending import signing_for

        engine, clock = self.engine(mode), SystemClock()
        folder = keys_for(self.db, self.keys)
        if folder is not None and self._signing is None:
            self._signing = signing_for(engine, self.tenant, folder, clock, every=None, tell=say)
        return Ledger(
            engine,
            tenant=self.tenant,
            agent=self.agent,
            clock=clock,
            policies=registry(()),
            signing=self._signing,
            keys=self.keys,
            redact=os.environ.get("WOODRAT_REDACT"),
        )

    def past(self) -> Past:
        """Return the ledger as of the moment asked for, pinned to a position; nothing of what writes is imported."""
        if self.is_remote:
            asked = self.given.as_of if self.given.as_of is not None else "now"
            return cast("Past", self._remote_ledger().at(asked, effective=self.given.effective))
        from woodrat.canon import ids
        from woodrat.ledger.erased import Erasures
        from woodrat.ledger.opening import keys_for
        from woodrat.ledger.past import Past
        from woodrat.state.policy import BUILTIN

        faults = ids.tenant_faults(self.tenant) + ids.agent_faults(self.agent, "agent")
        if faults:
            raise Refused(faults, outcome="Nothing was read.")
        now = Past(self.engine(READ), ids.TenantId(self.tenant), BUILTIN, erasures=Erasures(self._keys))
        folder = keys_for(self.db, self.keys)
        if folder is not None:
            from woodrat.keeping.keys import Keys
            from woodrat.keeping.signing import look

            try:
                found = look(self.engine(READ), now.tenant, Keys.open(folder))
            except Corrupt as error:
                say(str(error))
            else:
                if found is not None:
                    say(f"{found} This is what it holds now.")
        moment = self.given.as_of if self.given.as_of is not None else "now"
        return now.at(moment, effective=self.given.effective)

    def _remote_ledger(self) -> RemoteLedger:
        """Return the ledger behind a server; tenant and agent are what the key says, and nothing else may be stated."""
        from woodrat.ledger.remote import open_remote

        assert self.db is not None
        found = open_remote(self.db, os.environ.get("WOODRAT_KEY") or None)
        faults = [
            Fault(name, f"got {shown(stated)}, and the key says {getattr(found, name)!r}", f"Leave --{name} out.")
            for name, stated in (("tenant", self.given.tenant), ("agent", self.given.agent))
            if stated is not None and stated != getattr(found, name)
        ]
        if faults:
            raise Refused(faults, NOT_OPENED)
        return found

    def _keys(self) -> Keys:
        from woodrat.keeping.keys import Keys

        return Keys.at(self.keys)


def say(text: str) -> None:
    """Tell what is wrong with the ledger on standard error; the command goes on."""
    import sys

    from woodrat.surfaces.cli.paper import clean

    with suppress(OSError):
        sys.stderr.write(f"WARNING: {clean(text)}\n")
        sys.stderr.flush()


def _exists(path: str) -> bool:
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError) as error:  # too long a name, say
        reason = getattr(error, "strerror", None) or error
        raise Refused([Fault("db", f"{shown(path)}: {reason}", "Name another file.")], NOT_OPENED) from error
    return True


def _setting(given: str | None, variable: str, otherwise: str) -> str:
    return given if given is not None else os.environ.get(variable) or otherwise
