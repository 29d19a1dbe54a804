"""Calling: one command with its settings resolved, the ledger it opens, and the answer it prints."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from woodrat.cli.remote import is_address, open_served, refuse
from woodrat.errors import Corrupt, Fault, NotFound, Refused, Unavailable, shown
from woodrat.records import dataclass
from woodrat.server import wire

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.cli.remote import Served
    from woodrat.cli.tables import Paper
    from woodrat.engines.port import Engine
    from woodrat.proofs.verbs.keys import Keys
    from woodrat.proofs.verbs.signer import Signing

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
        self._served: Served | None = None
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
            if self._served is not None:
                self._served.close()

    @property
    def is_served(self) -> bool:
        """Whether the ledger is behind an address."""
        return is_address(self.db)

    def _remote(self) -> Any:
        """Return the ledger behind the address; it stands in for one that is here."""
        if self._served is None:
            assert self.db is not None
            self._served = open_served(self.db, self.given.verb.words, self.given.tenant, self.given.agent)
        return self._served

    @property
    def path(self) -> str | None:
        """The file the ledger is in; none when it is not in a file."""
        from woodrat.engines.open import path_of

        if self.is_served:
            refuse(self.given.verb.words)
        return path_of(self.db)

    def engine(self, mode: str) -> Engine:
        """Open the database once; `NotFound` when there is none and this verb does not make one."""
        from woodrat.engines.open import engine_for

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
            if mode == READ:
                self._check_there(path)
            self._engine = engine_for(db, readonly=mode == READ)
        return self._engine

    def _check_there(self, path: str | None) -> None:
        """Refuse to read a file of 0 bytes where the keys folder remembers a log."""
        from woodrat.proofs.verbs.folder import keys_for

        if path is not None and _exists(path) and not os.path.getsize(path):
            from woodrat.proofs.verbs import locations

            locations.check_there(keys_for(self.db, self.keys), path, self.tenant)

    def ledger(self, mode: str, *, put_back: bool = False) -> Ledger:
        """Return the ledger of this call's tenant, written to by this call's agent; of a server, as its key says.

        An older copy that was put back and holds what was erased is opened only with `put_back`.
        """
        if self.is_served:
            return self._remote()  # type: ignore[no-any-return]
        from woodrat.api.ledger import Ledger
        from woodrat.api.maintenance import check_put_back, signing_for
        from woodrat.clock import SystemClock
        from woodrat.ledger.own_policy import registry
        from woodrat.proofs.verbs.folder import keys_for

        engine, clock = self.engine(mode), SystemClock()
        folder = keys_for(self.db, self.keys)
        if folder is not None and self._signing is None:
            self._signing = signing_for(engine, self.tenant, folder, clock, every=None, tell=say)
        if not put_back:
            check_put_back(engine, self.tenant, self.keys)
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
        if self.is_served:
            return self._remote().at(self._moment, effective=self.given.effective)  # type: ignore[no-any-return]
        from woodrat.api.past import Past
        from woodrat.canon import ids
        from woodrat.clock import SystemClock
        from woodrat.context import Context
        from woodrat.ledger.erasures import LogErasures
        from woodrat.merge import BUILTIN
        from woodrat.proofs.verbs.folder import keys_folder, keys_for

        faults = ids.tenant_faults(self.tenant) + ids.agent_faults(self.agent, "agent")
        if faults:
            raise Refused(faults, outcome="Nothing was read.")
        now = Past(
            Context(
                self.engine(READ),
                ids.TenantId(self.tenant),
                BUILTIN,
                SystemClock(),
                self.agent,
                erasures=LogErasures(self._keys),
                keys=self.keys,
            )
        )
        if os.path.isdir(os.path.join(keys_folder(self.keys), "erased")):
            from woodrat.api.maintenance import check_put_back

            check_put_back(self.engine(READ), self.tenant, self.keys)
        folder = keys_for(self.db, self.keys)
        if folder is not None:
            from woodrat.proofs.verbs.keys import Keys
            from woodrat.proofs.verbs.signer import look

            try:
                found = look(self.engine(READ), now.tenant, Keys.open(folder))
            except Corrupt as error:
                say(str(error))
            else:
                if found is not None:
                    say(f"{found} This is what it holds now.")
        return now.at(self._moment, effective=self.given.effective)

    def caught_up(self) -> Past:
        """Return the ledger at the moment asked for; the present, opened so that what trails the log can catch up.

        A file that cannot be written can still be read.
        """
        if self.given.as_of is None and self.given.effective is None:
            try:
                return self.ledger(UPDATE)
            except Unavailable:
                pass
        return self.past()

    @property
    def _moment(self) -> str:
        return "now" if self.given.as_of is None else str(self.given.as_of)

    def _keys(self) -> Keys:
        from woodrat.proofs.verbs.keys import Keys

        return Keys.at(self.keys)


def say(text: str) -> None:
    """Tell what is wrong with the ledger on standard error; the command goes on."""
    import sys

    from woodrat.cli.tables import clean

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
