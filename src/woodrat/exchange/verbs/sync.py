"""Sync: two ledgers exchange entries, in one direction or both, and end with the same state."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from woodrat.context import Context
from woodrat.engines.open import engine_for, is_postgres, path_of
from woodrat.errors import Fault, Forbidden, Refused, Unavailable
from woodrat.exchange.relay.peers import Mark, Near, Peer, meeting
from woodrat.exchange.server import Server
from woodrat.exchange.verbs import files, importer
from woodrat.exchange.verbs.backup import same_file
from woodrat.exchange.verbs.importer import Imported
from woodrat.ledger.erasures import LogErasures
from woodrat.ledger.reads import followed_fingerprint
from woodrat.proofs.verbs.keys import Keys
from woodrat.record_json import Record, derived
from woodrat.records import dataclass, replace

if TYPE_CHECKING:
    from woodrat.ledger.progress import Progress

NOT_SYNCED: Final = "Nothing was exchanged."


@dataclass(frozen=True, slots=True)
class Synced(Record):
    """The result of a sync."""

    other: str
    """The other ledger."""
    pulled: Imported | None
    """The result of the pull; None if nothing was pulled."""
    pushed: Imported | None
    """The result of the push; None if nothing was pushed."""
    fingerprint: str
    """Fingerprint of this ledger afterwards."""
    other_fingerprint: str | None
    """Fingerprint of the other ledger; None for a file of lines."""

    @derived
    def same(self) -> bool:
        """Whether both ledgers now hold the same state."""
        return self.fingerprint == self.other_fingerprint


Connect = Callable[[str, str | None], Server]
"""Makes a connection to the server at an address, with a key."""


def sync(
    context: Context,
    other: object,
    *,
    key: str | None,
    pulls: bool,
    pushes: bool,
    progress: Progress | None,
    connect: Connect,
) -> Synced:
    """Exchange entries with another ledger, or import an exported log; see `Log.sync`.

    `other` is the context of an open ledger, a server, or the name of either.
    """
    if not pulls and not pushes:
        raise Refused([Fault("sync", "both directions are switched off", "Pull, push or both.")], NOT_SYNCED)
    if isinstance(other, str) and other.startswith(("http://", "https://")):
        from woodrat.exchange.relay.remote_peer import Far

        server = connect(other, key)
        try:
            return _exchange(context, Far(server), pulls, pushes, progress)
        finally:
            server.close()
    if key is not None:
        remedy = "Leave it out, or name a server such as http://localhost:8787."
        raise Refused([Fault("key", "only a server accepts a key", remedy)], NOT_SYNCED)
    if isinstance(other, Server):
        from woodrat.exchange.relay.remote_peer import Far

        return _exchange(context, Far(other), pulls, pushes, progress)
    if isinstance(other, Context):
        if other.engine is context.engine and other.tenant == context.tenant:
            raise _itself("another ledger")
        return _exchange(context, Near(other, "another ledger", writes=pushes), pulls, pushes, progress)
    path = path_of(other) if isinstance(other, str | os.PathLike) else files.path_in(other, "other", NOT_SYNCED)
    if is_postgres(other):
        problem = "only files and servers are synced with by name, and this is an address of PostgreSQL"
        raise Refused([Fault("other", problem, "Open it and send the ledger, or export its log.")], NOT_SYNCED)
    if path is None:
        raise Refused([Fault("other", "a new :memory: ledger is empty", "Name a file, or send a ledger.")], NOT_SYNCED)
    if importer.is_database(path, NOT_SYNCED):
        theirs = _opened(context, path, readonly=not pushes)
        try:
            return _exchange(context, Near(theirs, path, writes=pushes), pulls, pushes, progress)
        finally:
            theirs.engine.close()
    if pushes and not pulls:
        problem = f"{path} is an exported log, which cannot be pushed to"
        raise Refused([Fault("other", problem, "Use `export log` to write it again.")], NOT_SYNCED)
    pulled = importer.import_file(context, path, progress)
    return Synced(path, pulled, None, followed_fingerprint(context), None)


def _opened(context: Context, path: str, *, readonly: bool) -> Context:
    """Return the same tenant's ledger in another file, without signing."""
    own = context.engine.path
    if own is not None and same_file(own, path):
        raise _itself(path)
    engine = engine_for(path, readonly=readonly)
    erasures = LogErasures(partial(Keys.at, context.keys))
    return replace(context, engine=engine, watch=None, erasures=erasures, stand_in=None)


def _exchange(context: Context, theirs: Peer, pulls: bool, pushes: bool, progress: Progress | None) -> Synced:
    ours = Near(context, "this ledger")
    before = ours.head()[1]
    pulled = ours.take(theirs, meeting(theirs, ours), progress) if pulls else None
    try:
        pushed = _push(ours, theirs, progress, before, pulled) if pushes else None
        fingerprint = theirs.fingerprint()
    except (Forbidden, Unavailable) as problem:
        if pulled is None:
            raise
        said = f"The entries of {theirs.name} were imported here; sending this ledger's entries to it failed: {problem}"
        raise type(problem)(said, problem.details) from problem
    return Synced(theirs.name, pulled, pushed, ours.fingerprint(), fingerprint)


def _push(ours: Near, theirs: Peer, progress: Progress | None, own: int, pulled: Imported | None) -> Imported:
    """Push this ledger's entries to another one, and remember that its new entries are known here.

    Entries just `pulled` from there, after the `own` position, are not sent back.
    """
    before = meeting(theirs, ours)
    all_taken = before.after.position == before.end
    start = meeting(ours, theirs)
    back = pulled is not None and pulled.merged > 0 and start.after.position <= own and ours.came(own, pulled.merged)
    found = theirs.take(ours, start, progress, own if back else None)
    if back and pulled is not None and start.log is not None:
        last = own + pulled.merged
        theirs.note(start.log, Mark(last, ours.leaves([last])[0]))
    if all_taken and found.changed and found.position == before.end + found.merged + found.cloned:
        log = theirs.head()[0]
        assert log is not None, "a log that has taken something in has a name"
        ours.note(log, Mark(found.position, theirs.leaves([found.position])[0]))
    return found


def _itself(name: str) -> Refused:
    return Refused([Fault("other", f"{name} is this ledger itself", "Name another one.")], NOT_SYNCED)
