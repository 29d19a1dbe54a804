"""Copying: a log through a position, whole writes of it, becomes another ledger; how a backup is restored.

Everything derived is made anew from the entries. What was erased after that position is erased in the copy from the
beginning, and the erasures themselves come along, since they say why those entries have no bodies.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

from woodrat.canon.ids import TenantId
from woodrat.context import Context
from woodrat.engines.open import engine_for, is_postgres, path_of
from woodrat.engines.port import Engine, View
from woodrat.erasure.verbs import arrivals
from woodrat.errors import Corrupt, Fault, NotFound, Refused
from woodrat.exchange.admission import stored_meaning
from woodrat.exchange.verbs import files
from woodrat.exchange.verbs.backup import remove, same_file
from woodrat.exchange.verbs.export import check_range, root_at
from woodrat.exchange.verbs.importer import Taking
from woodrat.ledger.erasures import LogErasures
from woodrat.ledger.moments import Moment, erased_here, resolve_moment
from woodrat.ledger.read import Reader
from woodrat.ledger.write import Draft, Writer
from woodrat.log.entry import Entry, Origin
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state import fingerprint
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from woodrat.clock import Clock
    from woodrat.ledger.progress import Progress
    from woodrat.merge import Policy
    from woodrat.proofs.verbs.keys import Keys

NOTHING_COPIED: Final = "Nothing was copied."
TENANTS_NAMED_MAX: Final = 5
"""How many tenants an error names."""


@dataclass(frozen=True, slots=True)
class Copied(Record):
    """What a copy holds."""

    entries: int
    """How many entries were taken over."""
    through: int
    """The position of the last one."""
    erasures: int
    """How many erasures made after that position came along."""
    again: int
    """How many erasures that the folder of keys remembers were carried out in the copy."""
    root: str
    """Root of the tree through that position, in hex: that of the log it was copied from."""
    fingerprint: str
    """Fingerprint of the state at that position."""
    warnings: tuple[str, ...] = ()
    """What to know before the copy is used."""


def copy(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    tenant: str = "default",
    through: Moment = "now",
    keys: str | os.PathLike[str] | None = None,
    policies: Iterable[Policy] = (),
    clock: Clock | None = None,
    agent: str = "copy",
    progress: Progress | None = None,
) -> Copied:
    """Copy one tenant's log, through a moment, into a ledger that holds nothing of this tenant yet.

    A new file appears when all of it is there. It is how a backup is restored: `copy("backup.db", "agents.db")`. The
    copy goes on under a new log name. `keys` is the folder of keys, the usual one when left out: what was erased since,
    as it remembers, is erased in the copy too. Without an erasure key there `warnings` says that it may be back.
    """
    from woodrat.canon import ids
    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry
    from woodrat.proofs.verbs.keys import Keys

    faults = ids.tenant_faults(tenant) + ids.agent_faults(agent, "agent")
    if faults:
        raise Refused(faults, NOTHING_COPIED)
    old, new = _path(source, "from"), _path(target, "to")
    if not os.path.exists(old):
        raise Refused([Fault("from", f"{old} does not exist", "Name a ledger's file.")], NOTHING_COPIED)
    if same_file(old, new):
        raise Refused([Fault("to", f"{new} is the ledger to copy", "Name another file.")], NOTHING_COPIED)
    engine = engine_for(old, readonly=True)
    try:
        known = registry(policies)
        _check_there(engine, old, tenant)

        def into(path: str, from_: Engine, moment: Moment) -> Copied:
            there = engine_for(path)
            try:
                erasures = LogErasures(lambda: Keys.at(keys))
                context = Context(there, TenantId(tenant), known, clock or SystemClock(), agent, erasures=erasures)
                return copy_log(from_, TenantId(tenant), context, moment, progress)
            finally:
                there.close()

        there_already = os.path.exists(new)
        if there_already and not _remembers(Keys.at(keys)):
            return into(new, engine, through)
        if there_already:
            _check_without(new, TenantId(tenant))
        else:
            files.check_free(new, "to", NOTHING_COPIED, force=False)
        partial = f"{new}.part"
        remove(partial)
        try:
            found = into(partial, engine, through)
            if not there_already:
                files.put(partial, new)
                return found
            # A file that others use is given what has been made to forget, so that it never holds what was erased.
            made = engine_for(partial, readonly=True)
            try:
                into(new, made, "now")
            finally:
                made.close()
        finally:
            remove(partial)
        return found
    except OSError as error:
        raise files.unwritable(new, error, NOTHING_COPIED) from error
    finally:
        engine.close()


def _remembers(keys: Keys) -> bool:
    """Return whether the folder of keys remembers anything that a copy could bring back."""
    return keys.erasure is not None and next(iter(keys.erasures()), None) is not None


def _check_there(engine: Engine, path: str, tenant: str) -> None:
    """Refuse a tenant that the source does not have: an empty copy would pass for a restored one."""
    held = engine.tenants()
    if tenant not in held:
        named = f"it holds {', '.join(held[:TENANTS_NAMED_MAX])}" if held else "it holds no tenant"
        more = f" and {len(held) - TENANTS_NAMED_MAX} more" if len(held) > TENANTS_NAMED_MAX else ""
        raise NotFound(
            f"There is no tenant {tenant} in {path}; {named}{more}. {NOTHING_COPIED} Name another with --tenant.",
            {"tenant": tenant},
        )


def _check_without(path: str, tenant: TenantId) -> None:
    engine = engine_for(path, readonly=True)
    try:
        _check_empty(engine, tenant)
    finally:
        engine.close()


def _check_empty(engine: Engine, tenant: TenantId) -> None:
    with engine.view(tenant) as view:
        if view.head().size:
            problem = f"it holds {view.head().size} entries of {tenant} already"
            raise Refused([Fault("to", problem, "Name another file, or use sync to join the two.")], NOTHING_COPIED)


def _path(db: str | os.PathLike[str], name: str) -> str:
    path = path_of(db)
    if is_postgres(db):
        problem = "only files are copied, and this is an address of PostgreSQL"
        raise Refused([Fault(name, problem, "Export the log and import it there.")], NOTHING_COPIED)
    if path is None:
        problem = "a ledger in memory is gone when its process ends"
        raise Refused([Fault(name, problem, "Name a file.")], NOTHING_COPIED)
    return path


def copy_log(
    engine: Engine, tenant: TenantId, context: Context, through: Moment = "now", progress: Progress | None = None
) -> Copied:
    """Copy a log through a moment into an empty one of any engine."""
    _check_empty(context.engine, context.tenant)
    with engine.view(tenant) as view:
        last = resolve_moment(view, through, NOTHING_COPIED, context.clock)
        check_range(view, -1, last)
        root = root_at(view, last + 1)
        taking = Taking(context)
        told = None if progress is None else lambda: progress(taking.offered, last + 1)
        taken = taking.take(_placed(view, last), told, meaning=stored_meaning)
        erasures = _erasures(view, last)
    with context.engine.view(context.tenant) as copied:
        if root_at(copied, last + 1) != root:
            raise Corrupt(
                "The root of the copy differs from the original. Do not use it; check the disk.", {"root": root}
            )
    if erasures:
        writer = Writer(context)
        writer.write("copy", {"position": last}, lambda draft: _add(draft, erasures))
    with context.engine.view(context.tenant) as copied:
        state = Reader(copied, AsOf(last), context.policies).fingerprint().root()
    return Copied(last + 1, last, len(erasures), taken.erasures, root, fingerprint.text(state), _warnings(context))


def _warnings(context: Context) -> tuple[str, ...]:
    if context.erasures is not None and context.erasures.keys.erasure is not None:
        return ()
    where = "" if context.erasures is None else f" in {context.erasures.keys.folder}"
    return (
        f"There is no erasure key{where}: what was erased after this was written may be back. Name the folder of keys "
        "with --signing-keys or keys= and copy again, or run `woodrat erase --again` on the copy before it is used.",
    )


def _placed(view: View, through: int) -> Iterator[tuple[str, Entry]]:
    for entry in view.entries(through=through):
        entry.check()
        yield f"position {entry.position}", entry


def _erasures(view: View, through: int) -> list[Entry]:
    """Return the erasures after a position that name entries up to it."""
    found = []
    for entry in view.entries(through, kinds={arrivals.KIND}):
        if entry.body is not None and any(first <= through for first, _ in erased_here(view, entry)):
            found.append(entry)
    return found


def _add(draft: Draft, erasures: list[Entry]) -> None:
    for entry in erasures:
        assert entry.body is not None
        draft.add(entry.kind, entry.body, None, entry.envelope.origin or Origin(entry.log, entry.position))
