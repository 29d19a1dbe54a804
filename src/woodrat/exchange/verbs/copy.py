"""Copy: a log up to a position, in whole writes, becomes another ledger; restoring a backup uses this.

Source and target may be of different engines. Both are used through the engine interface alone, so a copy has the
bytes, the leaves and the roots of its source. It is made in durable parts; an interrupted copy holds the beginning of
the log, and can be continued.

Everything derived is made again from the entries. Entries erased after that position are erased in the copy from the
beginning, and the erasures are copied too, because they say why those entries have no bodies.
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from itertools import islice
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final, TypeVar

import woodrat.explain.index  # noqa: F401 - it declares what writes list of their entries
from woodrat.canon import form
from woodrat.canon.ids import TenantId
from woodrat.context import Context
from woodrat.engines.engine import Engine
from woodrat.engines.open import engine_for, is_postgres, path_of
from woodrat.engines.records import BEFORE_ALL
from woodrat.engines.view import View
from woodrat.erasure.reader.tail import positions_of
from woodrat.erasure.verbs import arrivals
from woodrat.errors import Corrupt, Fault, NotFound, Refused, WoodratError
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
T = TypeVar("T")
RECEIPTS_TOGETHER: Final = 1_000
"""Receipts copied per transaction."""
TENANTS_NAMED_MAX: Final = 5
"""Most tenants listed in an error."""


@dataclass(frozen=True, slots=True)
class Copied(Record):
    """The result of a copy."""

    entries: int
    """Number of copied entries."""
    through: int
    """The position of the last one."""
    erasures: int
    """Number of copied erasures from after that position."""
    again: int
    """Number of erasures remembered by the keys folder that were repeated in the copy."""
    root: str
    """Root of the tree through that position, in hex: that of the log it was copied from."""
    fingerprint: str
    """Fingerprint of the state at that position."""
    warnings: tuple[str, ...] = ()
    """Warnings to read before the copy is used."""


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
    """Copy one tenant's log, through a moment, into a ledger without this tenant.

    Both are files or addresses of PostgreSQL. A new file appears once it is complete. This restores a backup:
    `copy("backup.db", "agents.db")`. A copy that was killed continues when it is called again. The copy writes under a
    new log name. `keys` is the folder of keys, by default the usual one: data erased since, as it remembers, is erased
    in the copy too. Without an erasure key there, `warnings` says that erased data may be back.
    """
    from woodrat.canon import ids
    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry
    from woodrat.proofs.verbs.keys import Keys

    faults = ids.tenant_faults(tenant) + ids.agent_faults(agent, "agent")
    if faults:
        raise Refused(faults, NOTHING_COPIED)
    old, new = _place(source, "from"), _place(target, "to")
    if not is_postgres(old) and not os.path.exists(old):
        raise Refused([Fault("from", f"{old} does not exist", "Name a ledger's file.")], NOTHING_COPIED)
    if old == new or (not (is_postgres(old) or is_postgres(new)) and same_file(old, new)):
        raise Refused([Fault("to", f"{shown_place(new)} is the ledger to copy", "Name another.")], NOTHING_COPIED)
    engine = engine_for(old, readonly=True)
    try:
        known = registry(policies)
        _check_there(engine, shown_place(old), tenant)

        def into(place: str, from_: Engine, moment: Moment) -> Copied:
            there = engine_for(place)
            try:
                erasures = LogErasures(lambda: Keys.at(keys))
                context = Context(there, TenantId(tenant), known, clock or SystemClock(), agent, erasures=erasures)
                return copy_log(from_, TenantId(tenant), context, moment, progress)
            finally:
                there.close()

        there_already = is_postgres(new) or os.path.exists(new)
        if there_already:
            _check_begun(new, engine, TenantId(tenant))
            if not _remembers(Keys.at(keys)):
                return into(new, engine, through)
        else:
            files.check_free(new, "to", NOTHING_COPIED, force=False)
        with _beside(new, engine, TenantId(tenant)) as partial:
            found = into(partial, engine, through)
            if not there_already:
                files.put(partial, new)
                return found
            # A target shared with others gets entries with erasures already applied, so that it never contains erased
            # data.
            made = engine_for(partial, readonly=True)
            try:
                into(new, made, "now")
            finally:
                made.close()
        return found
    except OSError as error:
        raise files.unwritable(shown_place(new), error, NOTHING_COPIED) from error
    finally:
        engine.close()


@contextmanager
def _beside(place: str, source: Engine, tenant: TenantId) -> Iterator[str]:
    """Prepare a file as the target; a file left by a killed copy is continued."""
    if is_postgres(place):
        with TemporaryDirectory(prefix="woodrat-copy-") as folder:
            yield os.path.join(folder, "copy.part")
        return
    partial = f"{place}.part"
    try:
        _check_begun(partial, source, tenant)
    except WoodratError:
        remove(partial)
    try:
        yield partial
    finally:
        remove(partial)


def _remembers(keys: Keys) -> bool:
    """Return True if the folder of keys remembers erasures that a copy could undo."""
    return keys.erasure is not None and next(iter(keys.erasures()), None) is not None


def _check_there(engine: Engine, path: str, tenant: str) -> None:
    """Refuse a tenant that the source does not have: an empty copy would pass for a restored one."""
    held = engine.tenants()
    if tenant not in held:
        named = f"it holds {', '.join(held[:TENANTS_NAMED_MAX])}" if held else "it holds no tenant"
        more = f" and {len(held) - TENANTS_NAMED_MAX} more" if len(held) > TENANTS_NAMED_MAX else ""
        raise NotFound(
            f"Tenant {tenant} does not exist in {path}; {named}{more}. {NOTHING_COPIED} Name another with --tenant.",
            {"tenant": tenant},
        )


def _check_begun(place: str, source: Engine, tenant: TenantId) -> None:
    """Refuse a target with any entries of a tenant other than the beginning of the log to copy."""
    if not is_postgres(place) and not os.path.exists(place):
        return
    engine = engine_for(place, readonly=True)
    try:
        with source.view(tenant) as view:
            _check_beginning(engine, tenant, view, view.head().position)
    finally:
        engine.close()


def _check_beginning(engine: Engine, tenant: TenantId, source: View, last: int) -> None:
    """Refuse a target that is not an interrupted copy of this log; return its number of entries."""
    with engine.view(tenant) as view:
        head, cloned = view.head(), view.cloned()
    if not head.size:
        return
    is_same = head.size <= last + 1 and root_at(source, head.size) == head.frontier.root().hex()
    if is_same and cloned == head.position:
        return
    why = "which were written to since" if is_same else "which are not the beginning of the log to copy"
    problem = f"it holds {head.size} entries of {tenant} already, {why}"
    raise Refused([Fault("to", problem, "Name another target, or use sync to join the two.")], NOTHING_COPIED)


def _place(db: str | os.PathLike[str], name: str) -> str:
    """Return the file or the address that a ledger is named by."""
    if is_postgres(db):
        return str(db)
    path = path_of(db)
    if path is None:
        problem = "a ledger in memory is gone when its process ends"
        raise Refused([Fault(name, problem, "Name a file, or an address of PostgreSQL.")], NOTHING_COPIED)
    return path


def shown_place(place: str) -> str:
    """Return a file, or an address without its password."""
    if not is_postgres(place):
        return place
    from woodrat.engines.postgres.connection import shown_address

    return shown_address(place)


def copy_log(
    engine: Engine, tenant: TenantId, context: Context, through: Moment = "now", progress: Progress | None = None
) -> Copied:
    """Copy a log through a moment into an empty one of any engine, or continue an interrupted copy."""
    with engine.view(tenant) as view:
        last = resolve_moment(view, through, NOTHING_COPIED, context.clock)
        check_range(view, -1, last)
        _check_beginning(context.engine, context.tenant, view, last)
        root = root_at(view, last + 1)
        taking = Taking(context)
        told = None if progress is None else lambda: progress(taking.offered, last + 1)
        taken = taking.take(_placed(view, last), told, meaning=stored_meaning)
        erasures = _erasures(view, last)
        _claim(view, context, last)
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


def _claim(view: View, context: Context, last: int) -> None:
    """Copy the receipts of idempotency keys, so that a repeated call is not stored again.

    Receipts of writes with erased entries are omitted: they would allow guesses at the erased data.
    """
    with context.engine.view(context.tenant) as copied:
        erased = {row.position for row in copied.rows(BEFORE_ALL, last) if row.body is None}
    for several in batched(view.receipts(), RECEIPTS_TOGETHER):
        with context.engine.transaction(context.tenant) as write:
            for agent, key, receipt in several:
                positions = positions_of(form.decode(receipt.report))
                is_whole = max(positions, default=0) <= last and positions.isdisjoint(erased)
                if is_whole and write.receipt(agent, key) is None:
                    write.claim(agent, key, receipt)


def batched(items: Iterable[T], count: int) -> Iterator[list[T]]:
    """Yield items in lists of at most a given length."""
    each = iter(items)
    while several := list(islice(each, count)):
        yield several


def _warnings(context: Context) -> tuple[str, ...]:
    if context.erasures is not None and context.erasures.keys.erasure is not None:
        return ()
    where = "" if context.erasures is None else f" in {context.erasures.keys.folder}"
    return (
        f"There is no erasure key{where}: data erased after this was written may be back. Name the folder of keys "
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
