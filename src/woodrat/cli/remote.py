"""Served: the ledger of a server, for commands that were written for one on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NoReturn

from woodrat.errors import Fault, Refused, shown

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.api.remote import RemotePast

KEY_VARIABLE = "WOODRAT_TOKEN"
"""Where the key of a server stands: a key on the command line would show in every list of processes."""


def is_address(db: str | None) -> bool:
    """Return whether `db` names a server."""
    return db is not None and db.startswith(("http://", "https://"))


class Served:
    """A ledger behind an address, or its past. What it cannot be asked from afar is refused, by the verb's name."""

    def __init__(self, remote: RemotePast, verb: str) -> None:
        self._remote, self._verb = remote, verb

    def __getattr__(self, name: str) -> Any:
        try:
            found = getattr(self._remote, name)
        except Refused:
            raise  # with the reason
        except AttributeError:
            refuse(self._verb)
        if not callable(found):
            return found

        def call(*given: Any, progress: Any = None, **named: Any) -> Any:
            return found(*given, **self._taken(found, named))  # a server does not say how far it is

        return call

    def _taken(self, verb: Callable[..., Any], named: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that a verb takes from afar; others are refused where they say something."""
        from inspect import Parameter, signature

        known = signature(verb).parameters
        if any(each.kind is Parameter.VAR_KEYWORD for each in known.values()):
            return named
        faults = [
            Fault(f"--{name.replace('_', '-')}", "the server decides this itself", "Leave it out, or run it there.")
            for name, value in named.items()
            if name not in known and value is not None and value is not False
        ]
        if faults:
            raise Refused(faults, "Nothing was done.")
        return {name: value for name, value in named.items() if name in known}

    def at(self, moment: Any = None, *, effective: str | None = None) -> Served:
        """Return the ledger as of another moment, or as it was true by another time."""
        return Served(self._remote.at(moment, effective=effective), self._verb)


def open_served(db: str, verb: str, tenant: str | None, agent: str | None) -> Served:
    """Return the ledger behind an address. The key says for whom and as whom; whoever else is named is refused."""
    from woodrat.api.remote import open_remote
    from woodrat.state.redaction import hidden

    found = open_remote(db, os.environ.get(KEY_VARIABLE) or None, hidden(os.environ.get("WOODRAT_REDACT")))
    faults = [
        Fault(option, f"got {shown(stated)}, but the key is for {shown(getattr(found, name))}", "Leave it out.")
        for option, name, stated in (("--tenant", "tenant", tenant), ("--as", "agent", agent))
        if stated is not None and stated != getattr(found, name)
    ]
    if faults:
        raise Refused(faults, "Nothing was opened.")
    return Served(found, verb)


def refuse(verb: str) -> NoReturn:
    """Refuse a verb that needs the database itself."""
    problem = "it needs the database file, and --db is the address of a server"
    remedy = "Run it on the machine with the database, with its path as --db."
    raise Refused([Fault(f"woodrat {verb}", problem, remedy)], "Nothing was done.")
