"""Served: the ledger of a server, for commands that were written for one on this machine."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NoReturn

from woodrat.errors import Fault, Refused, shown

if TYPE_CHECKING:
    from woodrat.api.remote import RemoteLedger

KEY_VARIABLE = "WOODRAT_TOKEN"
"""Where the key of a server stands: a key on the command line would show in every list of processes."""


def is_address(db: str | None) -> bool:
    """Return whether `db` names a server."""
    return db is not None and db.startswith(("http://", "https://"))


def open_served(db: str, tenant: str | None, agent: str | None) -> RemoteLedger:
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
    return found


def refuse(verb: str) -> NoReturn:
    """Refuse a verb that needs the database itself."""
    problem = "it needs the database file, and --db is the address of a server"
    remedy = "Run it on the machine with the database, with its path as --db."
    raise Refused([Fault(f"woodrat {verb}", problem, remedy)], "Nothing was done.")
