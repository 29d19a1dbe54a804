"""Erasing: lawful forgetting, in one short transaction, and then out of every file.

    closure → (check for new entries → remove bodies and nonces → derive affected data again → append) → purge → scan

The log is searched in a view, while others write; the transaction, in brackets, checks entries written meanwhile. A
crash before the commit changes nothing. A crash after it leaves a mark that a purge is due, which the next opening of
the file carries out, and the sealed search terms, for any holder of the erasure key. Bytes that the search finds are
compacted away later (`byte_scan.finish`), for many erasures at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, ids
from woodrat.canon.digest import digest
from woodrat.canon.ids import Ref, TenantId
from woodrat.clock import Clock, not_before
from woodrat.context import Context, Erasures
from woodrat.engines.transaction import Transaction
from woodrat.engines.view import View
from woodrat.erasure import rewrite
from woodrat.erasure.certificate import FINISH, Certificate, what_stays
from woodrat.erasure.index import AffectedData
from woodrat.erasure.plan import NO_ERASURE, Plan, Scope
from woodrat.erasure.reader import memory
from woodrat.erasure.reader.closure import close, close_mentions
from woodrat.erasure.reader.tail import is_still_true
from woodrat.erasure.rewrite import Names
from woodrat.erasure.verbs import byte_scan, pending_search
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.ledger import entry_index, search_index
from woodrat.ledger.derive import derive_again
from woodrat.ledger.read import Reader
from woodrat.ledger.transitions import absorb, remember, spoken_of
from woodrat.ledger.write import next_log
from woodrat.log import erasure
from woodrat.log.entry import NONCE_BYTES, Write
from woodrat.log.erasure import Erasure
from woodrat.merge import Policy
from woodrat.records import replace
from woodrat.state import observation
from woodrat.state.asof import AsOf
from woodrat.state.meaning import Meaning
from woodrat.state.observation import REASON_BYTES_MAX, Observation
from woodrat.state.source import source_digest

if TYPE_CHECKING:
    from woodrat.ledger.progress import Progress

DERIVED: Final = (
    "merge state",
    "search index",
    "fingerprint",
    "vectors and passages",
    "identifying values",
    "runs by subject",
)
"""The data derived from a log, in words."""
RECORDS_SOUGHT_MAX: Final = 128
"""Sample size of erased entries, and of receipts, nonces and digests, to search in the files afterwards."""
WORDS_SOUGHT_MAX: Final = 512
"""Most words of the search index to search for."""
SEARCHES_MAX: Final = 4
"""Most searches of the log for affected entries; writers wait during the last one."""
HEAD_BYTES: Final = 8
"""Length of the searched prefix of a digest."""
SERVERS: Final = "woodrat."
"""Prefix of the names of a server's own tenants: their statements about a tenant are erased with their subject."""
NO_KEY: Final = "There is no erasure key here"
_UNWRITTEN: Final = "The keys folder could not be written; `woodrat erase --again` lets it remember this."
_WARNINGS: Final = (
    "Copies, backups and exports made before this still contain the erased data; erase it there too, or destroy them.",
    "Other ledgers that took it in forget it when they sync and have the same erasure key.",
)


def scope_of(view: View, what: object, agent: object, subject: object) -> Scope:
    """Return the scope of an erasure: a reference, a field of one, a source, an agent or a subject."""
    given = [name for name, value in (("what", what), ("agent", agent), ("subject", subject)) if value is not None]
    if len(given) != 1:
        problem = f"{len(given)} things to erase are named"
        raise Refused(
            [Fault("what", problem, "Name one: an entity, a field, a source, an agent or a subject.")], NO_ERASURE
        )
    if agent is not None:
        if faults := ids.agent_faults(agent, "agent"):
            raise Refused(faults, NO_ERASURE)
        return Scope("agent", agent=str(agent))
    if subject is not None:
        return Scope("subject", _ref(view, subject))
    text = str(what) if isinstance(what, Ref) else what
    if isinstance(text, str) and text.startswith("src_"):
        source = ids.digest_of("source", text) or entry_index.source_by_id(view, text)
        if source is None or entry_index.source_position(view, source) is None:
            raise NotFound(f"There is no source {text} here. {NO_ERASURE} `sources list` lists them.", {"source": text})
        return Scope("source", source=source)
    if isinstance(text, str) and "#" in text:
        name, _, field = text.rpartition("#")
        # A key may contain the mark too; if the whole text is a known entity, it means that.
        whole = _known(view, text)
        if whole is None:
            return Scope("field", _ref(view, name), field)
    return Scope("entity", _ref(view, text))


def _known(view: View, text: str) -> Ref | None:
    try:
        ref = ids.parse_ref(text)
    except Refused:
        return None
    return ref if view.entity(ref.digest, view.head().position) is not None else None


def _ref(view: View, text: object) -> Ref:
    if isinstance(text, str) and ids.is_id("entity", text):
        found = view.entity(text)
        if found is None:
            raise NotFound(f"There is no entity {text} here. {NO_ERASURE} Search for it.", {"entity": text})
        return found
    try:
        return text if isinstance(text, Ref) else ids.parse_ref(text, "what")
    except Refused as refusal:
        raise Refused(refusal.faults, NO_ERASURE) from None


def erase(
    context: Context,
    *,
    what: object,
    agent: object,
    subject: object,
    reason: object,
    records: Erasure | None = None,
    used: Sequence[str] = (),
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Certificate:
    """Erase, or report what would be erased; return the certificate.

    `records` is an erasure of another ledger; exactly its records are erased, in place of a named scope. `used` are
    MACs of idempotency keys to refuse from now on, besides those found here.
    """
    if not isinstance(reason, str) or not reason.strip() or len(reason.encode("utf-8", "replace")) > REASON_BYTES_MAX:
        remedy = f"State a reason in 1 to {REASON_BYTES_MAX} bytes, without naming the erased data."
        raise Refused([Fault("reason", f"got {shown(reason)}", remedy), *form.faults(reason, "reason")], NO_ERASURE)
    engine, tenant, by, clock, policies = context.engine, context.tenant, context.agent, context.clock, context.policies
    erasures = erasures_of(context)
    key = erasures.keys.erasure
    if key is None:
        remedy = "Make one with `woodrat init`, and keep a copy of it outside the machine."
        raise Refused([Fault("keys", NO_KEY, remedy)], NO_ERASURE)
    if dry_run:
        with engine.view(tenant) as view:
            plan, scope = _planned(view, what, agent, subject, reason, key, erasures, records)
            head = view.head()
            root = head.frontier.root().hex()
            certificate = _certificate(scope, plan, reason, by, tenant, head.log, root, root, dry_run=True)
        return byte_scan.with_copies(engine, tenant, certificate)
    servers = [TenantId(name) for name in engine.tenants() if name.startswith(SERVERS) and name != tenant]
    if servers:
        # First, so that an interrupted erasure can be repeated, and finds everything it needs.
        with engine.view(tenant) as view:
            plan, scope = _planned(view, what, agent, subject, reason, key, erasures, records)
        for server in servers:
            with engine.transaction(server) as write:
                mentions = close_mentions(write, tenant, scope, plan, key)
                if mentions is not None:
                    _carry_out(write, mentions, scope, reason, by, key, (), clock, policies, None)
    for number in range(SEARCHES_MAX):
        last = number == SEARCHES_MAX - 1
        if not last:
            with engine.view(tenant) as view:
                plan, scope = _planned(view, what, agent, subject, reason, key, erasures, records, progress)
        with engine.transaction(tenant) as write:
            if last:  # others write about the same all the time, and wait for once
                plan, scope = _planned(write, what, agent, subject, reason, key, erasures, records, progress)
            elif not is_still_true(write, plan, scope, key):
                continue
            head = write.head()
            root_before = head.frontier.root().hex()
            before = _values_of(write, plan.touched, policies)
            sought = _sought(write, plan, scope)
            entry = _carry_out(write, plan, scope, reason, by, key, used, clock, policies, progress)
            returned = _returned(before, _values_of(write, plan.touched, policies))
            root = write.head().frontier.root().hex()
            position = head.size
            certificate = _certificate(
                *(scope, plan, reason, by, tenant, entry.log, root_before, root),
                entry=entry,
                position=position,
                returned=returned,
            )
            search = pending_search.note(write, key, clock, sought, _words(write, plan), certificate)
            break
    remembered = scope.kind == erasure.LATE or erasures.keys.remember([entry])
    completed = {one.position: one for one in byte_scan.finish(context, search, compact="never").certificates}
    certificate = completed.get(position) or byte_scan.with_copies(engine, tenant, certificate)
    return certificate if remembered else replace(certificate, warnings=(_UNWRITTEN, *certificate.warnings))


def _carry_out(
    write: Transaction,
    plan: Plan,
    scope: Scope,
    reason: str,
    by: str,
    key: bytes,
    used: Sequence[str],
    clock: Clock,
    policies: Mapping[str, Policy],
    progress: Progress | None,
) -> Erasure:
    """Execute a plan: remove, append the erasure and the rewritten entries, and derive their consequences."""
    head, log = write.head(), next_log(write, clock)
    entry = Erasure(
        agent=by,
        erased_at=not_before(clock.now(), head.recorded_at),
        log=log,
        scope=scope.kind,
        reason=reason,
        positions=erasure.ranges(plan.positions),
        macs=tuple(sorted(plan.macs)),
        names=tuple(sorted({*plan.names, erasure.name_mac(key, log)})),
        links=dict(sorted(plan.links.items())),
        keys=tuple(sorted({*used, *(erasure.idempotency_mac(key, *one) for one in plan.receipts)})),
    )
    concerned = AffectedData(write, policies, plan.positions)
    write.erase(plan.positions, plan.receipts)
    items = [(erasure.KIND, entry.body(), None), *plan.items]
    made, meanings = _entries(entry, items, head.size, clock), [meaning for _, _, meaning in items]
    if concerned.is_small:
        concerned.derive_again()
        before = Reader(write, AsOf(head.position), policies)
        remember(write, before, spoken_of(meanings))
        entry_index.append(write, [made], meanings)
        absorb(write, before, Reader(write, AsOf(write.head().position), policies), head.size, meanings)
    else:
        write.append([made], meanings)  # its rows are derived with all others
        derive_again(write, policies, progress)
    return entry


def erasures_of(context: Context) -> Erasures:
    """Return the erasures room of a context; every context that may erase has one."""
    assert context.erasures is not None, "the context of a ledger has it"
    return context.erasures


def erase_again(context: Context) -> list[Certificate]:
    """Erase data that other copies of this ledger have erased and this one still contains; return a certificate for
    each.
    """
    engine, tenant, keys = context.engine, context.tenant, erasures_of(context).keys
    if keys.erasure is None:
        return []
    with engine.view(tenant) as view:
        mine = [erasure.stored(entry.body) for entry in view.entries(kinds={erasure.KIND}) if entry.body is not None]
    keys.remember(one for one in mine if one.scope != erasure.LATE)
    with engine.view(tenant) as view:
        told = list(memory.of_lineage(view, keys))
    return carry_out(context, told)


def carry_out(context: Context, told: Iterable[Erasure]) -> list[Certificate]:
    """Repeat the erasures of other ledgers, as their entries describe them; return a certificate for each.

    First by their scopes, so that data known only here is erased too, and then the remaining records in their lists.
    """
    erasures = erasures_of(context)
    key = erasures.keys.erasure
    assert key is not None, "the caller has the erasure key"
    found: list[Certificate] = []
    for known in told:
        with context.engine.view(context.tenant) as view:
            erasures.follow(view)
            if erasures.macs.issuperset(known.macs):
                continue
            wanted = [*memory.scopes(view, known, key), {"records": known}]
            used = known.keys if known.keys and memory.is_own_name(view, known.log) else ()
        for what in wanted:
            about: dict[str, Any] = {
                "what": None,
                "agent": None,
                "subject": None,
                **what,
                "reason": known.reason,
                "used": used,
            }
            with suppress(NotFound):  # it went with one before
                found.append(erase(context, **about))
    return found


def _planned(
    view: View,
    what: object,
    agent: object,
    subject: object,
    reason: str,
    key: bytes,
    erasures: Erasures,
    records: Erasure | None,
    progress: Progress | None = None,
) -> tuple[Plan, Scope]:
    """Return everything to erase; refuse a reason that quotes it."""
    erasures.follow(view)
    scope = scope_of(view, what, agent, subject) if records is None else Scope(records.scope, records=records)
    plan = close(view, scope, key, erasures.macs, progress)
    if plan.quoted.is_in(reason):
        problem = "it quotes the data to erase, and the log keeps it"
        raise Refused([Fault("reason", problem, "State the reason without naming a person or a value.")], NO_ERASURE)
    return plan, scope


def _entries(entry: Erasure, items: Sequence[tuple[str, bytes, Meaning]], first: int, clock: Clock) -> Write:
    """Return the erasure and the rewritten entries, as appended from a position on."""
    *nonces, nonce = [clock.random(NONCE_BYTES) for _ in range(len(items) + 1)]
    request = digest("request", form.serialise({"arguments": {"scope": entry.scope}, "verb": "erase"}))
    bodies = [(kind, body) for kind, body, _ in items]
    return Write(entry.log, first, entry.erased_at, bodies, nonces, "", request, nonce)


def _sought(view: View, plan: Plan, scope: Scope) -> frozenset[bytes]:
    """Return the bytes that no file may contain afterwards: the erased texts, and the nonces and digests that would
    allow guesses.

    Of very many entries only a sample is searched: all are removed in the same way, and a search for each would take
    too long.
    """
    found = set(plan.sought)
    digests: list[bytes] = [scope.ref.digest] if scope.ref is not None and scope.kind != "field" else []
    for position in plan.positions[:: len(plan.positions) // RECORDS_SOUGHT_MAX + 1]:
        entry = view.entry(position)
        if entry is not None and entry.body is not None and entry.nonce is not None:
            found.add(entry.nonce)
            digests.append(digest(entry.kind, entry.body))
    for name in plan.receipts[:RECORDS_SOUGHT_MAX]:
        receipt = view.receipt(*name)
        if receipt is not None:
            found.add(receipt.nonce or receipt.request)
            digests.append(receipt.request)
    heads = [one[:HEAD_BYTES] for one in digests]  # tables keep no more of them, or spell them in hex
    return frozenset({*found, *heads, *(head.hex().encode() for head in heads)})


def _words(view: View, plan: Plan) -> frozenset[bytes]:
    """Return the prefixes of removed rows of the search index: these rows contain words in another spelling.

    Of very many words only a sample is searched.
    """
    types = {ref.type for ref in (*plan.refs, *plan.touched)}
    prefixes = sorted(search_index.row_prefixes(plan.quoted.texts, types))
    some = prefixes[:: len(prefixes) // WORDS_SOUGHT_MAX + 1]
    return frozenset(prefix for prefix in some if not search_index.has_row(view, prefix))


def _values_of(write: Transaction, refs: Iterable[Ref], policies: Mapping[str, Policy]) -> dict[tuple[str, str], bytes]:
    """Return the values of entities, by entity and field."""
    reader = Reader(write, AsOf(write.head().position), policies)
    found: dict[tuple[str, str], bytes] = {}
    for ref in refs:
        snapshot = reader.find(ref)
        for name, value in (snapshot.fields if snapshot is not None else {}).items():
            found[str(ref), name] = form.serialise(value)
    return found


def _returned(before: Mapping[tuple[str, str], bytes], after: Mapping[tuple[str, str], bytes]) -> tuple[str, ...]:
    """Return the fields with a changed value, as REF#field."""
    erased = form.serialise(erasure.ERASED)
    return tuple(
        sorted(
            f"{ref}#{name}" for (ref, name), value in after.items() if value not in (before.get((ref, name)), erased)
        )
    )


def _certificate(
    scope: Scope,
    plan: Plan,
    reason: str,
    by: str,
    tenant: TenantId,
    log: str | None,
    root_before: str,
    root: str,
    *,
    entry: Erasure | None = None,
    position: int | None = None,
    returned: tuple[str, ...] = (),
    dry_run: bool = False,
) -> Certificate:
    resaid = [
        meaning.id if isinstance(meaning, Observation) else ids.id_of("source", source_digest(body))
        for kind, body, meaning in plan.items
        if kind in ("observation", "source")
    ]
    return Certificate(
        scope=scope.kind,
        reason=reason,
        agent=by,
        tenant=tenant,
        log=log,
        erased_at=None if entry is None else entry.erased_at,
        position=position,
        positions=erasure.ranges(plan.positions),
        kinds=dict(sorted(plan.kinds.items())),
        resaid=dict(sorted(plan.resaid.items())),
        resaid_ids=tuple(resaid),
        returned=returned,
        receipts=len(plan.receipts),
        quoting=tuple(plan.quoting),
        short=dict(sorted(plan.short.items())),
        shared={name: tuple(found) for name, found in sorted(plan.shared.items())},
        unsearched=plan.unsearched,
        derived=DERIVED,
        purged=False,
        searched=False,
        hits={},
        scanned=(),
        scanned_bytes=None,
        stays=what_stays(plan),
        root_before=root_before,
        root=root,
        dry_run=dry_run,
        warnings=_WARNINGS if dry_run else (FINISH, *_WARNINGS),
    )


def admitted(
    erasures: Erasures, given: Sequence[Meaning], by: str, log: str, now: str
) -> tuple[list[Meaning], bytes | None, list[str]]:
    """Return the records from elsewhere that may enter, an entry about rewritten ones, and hints.

    Records erased here are omitted. A record that names erased data is rewritten, as if it had come before the
    erasure.
    """
    key = erasures.key
    assert key is not None, "`follow` has found the key"
    names = Names(key)
    kept: dict[bytes, Observation] = {}
    others: list[Meaning] = []
    left_out = 0
    for meaning in given:
        if not isinstance(meaning, Observation):
            others.append(meaning)
        elif erasures.record("observation", meaning.body) is not None:
            left_out += 1
        else:
            kept[meaning.digest] = meaning
            for name in (*meaning.replaces, *meaning.saw):
                link = erasures.link(name)
                if link is not None:
                    chain = [link] if isinstance(link, str) else link
                    digests = [found for one in chain if (found := ids.digest_of("observation", one)) is not None]
                    names.observations[name] = digests[0] if isinstance(link, str) and digests else None
                    names.links[name] = tuple(digests)
    links: dict[str, erasure.Link] = {}
    growing = True
    while growing:
        growing = False
        for old in list(kept.values()):
            if not names.observations.keys().isdisjoint((*old.replaces, *old.saw)):
                # Statements about an erased entity or field, by an agent who knew it, would have been erased with it.
                gone = erasures.name(str(old.entity)) is not None
                names.fields |= {(old.entity, field) for field in old.stated if erasures.field(old.entity, field)}
                body = None if gone else rewrite.observation_again(old, names)
                new = None if body is None else observation.stored(body)
                names.note_observation(old, new)
                del kept[old.digest]
                if new is not None:
                    kept[new.digest] = new
                chain = tuple(ids.name("observation", link) for link in names.links[old.digest])
                links[erasure.digest_mac(key, old.digest)] = new.name if new is not None else chain
                growing = True
    hints = [f"{left_out} of these were erased here and left out."] if left_out else []
    late = Erasure(
        agent=by,
        erased_at=now,
        log=log,
        scope=erasure.LATE,
        reason="It arrived after an erasure and named erased data.",
        positions=(),
        macs=tuple(sorted(links)),
        names=(erasure.name_mac(key, log),),
        links=dict(sorted(links.items())),
    )
    return [*others, *kept.values()], late.body() if links else None, hints
