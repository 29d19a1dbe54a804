"""Answers: what each verb says, as plain JSON; the servers' surfaces translate to and from these, and nothing more.

A function takes the ledger, or the moment of one, and the arguments by the names they have in the library. What is
wrong with an argument is for the ledger to say.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.explain.workers import Newly
    from woodrat.ledger.pages import Page
    from woodrat.ledger.report import Report
    from woodrat.log.entry import Entry
    from woodrat.merge.snapshot import Snapshot
    from woodrat.runs.relay import Relay
    from woodrat.server.webhooks import Hook

NO_READ = "Nothing was read."


# ------------------------------------------------------------------------------------------------------- entities


def position(past: Past) -> dict[str, Any]:
    """Where the log stands at a moment."""
    return {"position": past.position}


def caller(ledger: Ledger) -> dict[str, Any]:
    """Who calls, and for which tenant."""
    return {"tenant": ledger.tenant, "agent": ledger.agent}


def show(past: Past, ref: str) -> dict[str, Any]:
    """What is believed about an entity."""
    return past.show(ref).to_json()


def snapshot(past: Past, ref: str) -> Snapshot:
    """What is believed about an entity, for a surface that spells it itself."""
    return past.show(ref)


def elements(past: Past, ref: str, field: str, **asked: Any) -> dict[str, Any]:
    """Elements of a collection, some at a time."""
    return past.elements(ref, field, **asked).to_json()


def search(past: Past, query: str, **asked: Any) -> dict[str, Any]:
    """Entities by words; what they are believed to be."""
    return _listed(
        "entities",
        past.search(query, **asked),
        item_json=lambda hit: {**hit.snapshot.to_json(), "exact": hit.exact, "found_in": list(hit.fields)},
    )


def query(past: Past, **asked: Any) -> dict[str, Any]:
    """Entities by type and values."""
    return _listed("entities", past.query(**asked))


def _listed(
    noun: str, page: Page[Any], every: bool = False, item_json: Callable[[Any], Any] = lambda item: item.to_json()
) -> dict[str, Any]:
    """Return a page under its noun; with `every`, that page and all that follow."""
    if every:
        return wire.listing(noun, map(item_json, page), page.position)
    return wire.listing(noun, map(item_json, page.items), page.position, page.cursor)


def duplicates(past: Past, **asked: Any) -> dict[str, Any]:
    """Entities that share an identifying value."""
    return _listed("duplicates", past.duplicates(**asked))


def observations(past: Past, *, every: bool = False, **asked: Any) -> dict[str, Any]:
    """Observations of one entity, or all."""
    return _listed("observations", past.observations(**asked), every)


def history(past: Past, *, every: bool = False, **asked: Any) -> dict[str, Any]:
    """How belief about an entity changed."""
    return _listed("history", past.history(**asked), every)


def timeline(past: Past, **asked: Any) -> dict[str, Any]:
    """What was seen when."""
    return _listed("timeline", past.timeline(**asked))


def diff(past: Past, before: str, after: str = "now", **asked: Any) -> dict[str, Any]:
    """What differs between two moments."""
    return past.diff(before, after, **asked).to_json()


def blame(past: Past, ref: str, field: str | None = None, *, excerpts: bool = False) -> dict[str, Any]:
    """Every claim, whether it won, and why."""
    return {"position": past.position, "claims": wire.blame(wire.blamed(past, ref, field, excerpts=excerpts))}


def conflicts(past: Past, *, every: bool = False, **asked: Any) -> dict[str, Any]:
    """Fields on which agents differ, or that were decided only by arrival."""
    return _listed("conflicts", past.conflicts(**asked), every)


def related(past: Past, **asked: Any) -> dict[str, Any]:
    """The relations of an entity."""
    return _listed("related", past.related(**asked))


def ids(past: Past, prefix: str) -> dict[str, Any]:
    """The ids that begin with a prefix."""
    return wire.listing("ids", past.ids(prefix), past.position)


def fingerprint(past: Past, *, provenance: bool = False) -> dict[str, Any]:
    """One digest of the whole state."""
    return {"fingerprint": past.fingerprint(provenance=provenance), "position": past.position, "provenance": provenance}


def log(past: Past, *, after: int = -1, limit: int = 100) -> dict[str, Any]:
    """Entries of the log after a position."""
    check_log(after, limit)
    entries = past.log.entries(after=after, limit=limit)
    return wire.listing("entries", (told_entry(past, entry) for entry in entries), past.position)


def check_log(after: object, limit: object) -> None:
    """Refuse what is no part of a log; `limit` may be left out."""
    faults = []
    if type(after) is not int or after < -1:
        faults.append(Fault("after", f"got {shown(after)}", "Send a position, 0 or more."))
    if limit is not None and (type(limit) is not int or not 1 <= limit <= LOG_PAGE_MAX):
        faults.append(Fault("limit", f"got {shown(limit)}", f"Send 1 to {LOG_PAGE_MAX}."))
    if faults:
        raise Refused(faults, NO_READ)


def told_entry(past: Past, entry: Entry) -> dict[str, Any]:
    """An entry of the log; one whose body is gone says which entry tells of its erasure, `null` where none does."""
    told = entry.to_json()
    return told if entry.body is not None else {**told, "erased_at": past.erased_at(entry.position)}


LOG_PAGE_MAX = 1_000
"""Most entries of one page of the log."""
LEAVES_MAX = 64
"""Most leaves that are asked for at once."""


def leaves(past: Past, *, position: list[str] | None = None, log: str | None = None) -> dict[str, Any]:
    """Where the log stands at a moment, and leaf hashes of it."""
    from woodrat.exchange.relay import peers

    asked = position or []
    faults = [
        Fault("position", f"got {shown(text)}", "Send a position, 0 or more.")
        for text in asked
        if not (text.isascii() and text.isdigit() and len(text) <= 16)
    ]
    if len(asked) > LEAVES_MAX:
        faults.append(Fault("position", f"{len(asked)} are asked for", f"Ask for {LEAVES_MAX} at most."))
    if faults:
        raise Refused(faults, NO_READ)
    end = past.position
    with past.context.engine.view(past.tenant) as view:
        return peers.standing(view, end, [int(text) for text in asked], log)


def import_log(ledger: Ledger, entries: Any, **about: Any) -> dict[str, Any]:
    """Take in a part of another log."""
    from woodrat.exchange.relay.receiver import receive

    try:
        return receive(ledger.context, entries, **about).to_json()
    finally:
        if hasattr(entries, "close"):
            entries.close()


# ---------------------------------------------------------------------------------------------------------- proof


def verify(ledger: Ledger, **asked: Any) -> dict[str, Any]:
    """Whether everything is as the log says; in this process, so that a caller takes no more than one reader."""
    return ledger.verify(**asked, jobs=1).to_json()


def checkpoints(ledger: Ledger) -> dict[str, Any]:
    """The checkpoints the log must go on from."""
    return wire.listing("checkpoints", (found.to_json() for found in ledger.proofs.checkpoints()))


def checkpoint(ledger: Ledger, new_epoch: str | None = None) -> dict[str, Any]:
    """A checkpoint of the log as it is now."""
    return ledger.proofs.checkpoint(new_epoch=new_epoch).to_json()


def prove(ledger: Ledger, what: str) -> bytes:
    """The proof that an entry is in the log, as the document of which every byte counts."""
    return ledger.proofs.prove(entry_named(what)).to_bytes()


def entry_named(what: str) -> str | int:
    """Return the entry an address names: digits are a position."""
    return int(what) if what.isascii() and what.isdigit() and len(what) <= 16 else what


def prove_consistency(ledger: Ledger, old: str, new: str | None = None) -> bytes:
    """The proof that a checkpoint goes on from an older one, as the document of which every byte counts."""
    return ledger.proofs.prove_consistency(old, new).to_bytes()


def prove_order(ledger: Ledger, *, shuffles: int = 100) -> dict[str, Any]:
    """Whether other orders of arrival end in the same state."""
    if type(shuffles) is int and shuffles > SHUFFLES_MAX:
        raise Refused([Fault("shuffles", f"got {shown(shuffles)}", f"Send at most {SHUFFLES_MAX}.")], NO_READ)
    return ledger.prove_order(shuffles=shuffles).to_json()


SHUFFLES_MAX = 1_000
"""Most orders that one call has a server try."""


def rebuild(ledger: Ledger) -> dict[str, Any]:
    """Everything derived, made again."""
    return ledger.rebuild().to_json()


def reindex(ledger: Ledger) -> dict[str, Any]:
    """All runs, embedded again."""
    return ledger.reindex().to_json()


def erase(ledger: Ledger, **given: Any) -> dict[str, Any]:
    """What was forgotten for ever, or would be."""
    return ledger.erase(**given).to_json()


def erase_again(ledger: Ledger) -> dict[str, Any]:
    """What was erased in another copy, forgotten here too."""
    return wire.listing("certificates", (found.to_json() for found in ledger.erase_again()))


def finish_erasure(ledger: Ledger) -> dict[str, Any]:
    """Whether nothing is left in any file of what was erased."""
    return ledger.finish_erasure().to_json()


def capsule(ledger: Ledger, what: str) -> bytes:
    """One document that proves something by itself, of which every byte counts."""
    return ledger.proofs.capsule(what).to_bytes()


# ----------------------------------------------------------------------------------------------- schemas, sources


def schemas(past: Past, *, every: bool = False, **asked: Any) -> dict[str, Any]:
    """The schemas in force."""
    return _listed("schemas", past.schemas.list(**asked), every)


def schema(past: Past, entity_type: str) -> dict[str, Any]:
    """The schema of one type."""
    return past.schemas.show(entity_type).to_json()


def infer(past: Past, entity_type: str) -> dict[str, Any]:
    """A schema that fits what was seen of a type."""
    return past.schemas.infer(entity_type)


def sources(past: Past, **asked: Any) -> dict[str, Any]:
    """Deliveries of sources."""
    return _listed("deliveries", past.sources.list(**asked))


def source(past: Past, id: str) -> dict[str, Any]:
    """One source with its content."""
    from woodrat.ledger.sources import deliveries

    content = past.sources.content(id)
    return wire.source(id, content, [item for item in deliveries(past.context) if item.source.startswith(id)])


def interpretations(past: Past, **asked: Any) -> dict[str, Any]:
    """Readings of sources."""
    return _listed("interpretations", past.interpretations.list(**asked))


def interpretations_diff(past: Past, before: str, after: str) -> dict[str, Any]:
    """How two readings differ."""
    return past.interpretations.diff(before, after).to_json()


def interpretation(ledger: Ledger, source: str, **about: Any) -> dict[str, Any]:
    """Begin a reading of a source."""
    return {"interpretation": ledger.interpretations.begin(source, **about).id, "source": source}


def interpretation_store(ledger: Ledger, interpretation: str, **given: Any) -> dict[str, Any]:
    """Store what a reading found."""
    return ledger.interpretations.continue_(interpretation).store(**given).to_json()


def interpretation_end(ledger: Ledger, interpretation: str, **how: Any) -> dict[str, Any]:
    """End a reading."""
    ledger.interpretations.continue_(interpretation).end(**how)
    return {"interpretation": interpretation, "status": how.get("status", "done" if "error" not in how else "error")}


# ----------------------------------------------------------------------------------------------------------- runs


def runs(past: Past, **asked: Any) -> dict[str, Any]:
    """Runs, the latest first."""
    return _listed("runs", past.runs.list(**asked))


def run(
    past: Past, run: str, projection: str | None = None, budget: int | None = None, format: str | None = None
) -> dict[str, Any]:
    """The record of one run, a projection of it, or the run in the snapshot format."""
    faults = []
    if format not in (None, "snapshot"):
        faults.append(Fault("format", f"got {shown(format)}", "Send snapshot, or leave it out."))
    if format is not None and (projection is not None or budget is not None):
        problem = "the snapshot is the whole run, not a projection of it"
        faults.append(Fault("format", problem, "Leave out format, or projection and budget."))
    if faults:
        raise Refused(faults, "Nothing was read.")
    record = past.runs.show(run)
    if format is not None:
        return record.snapshot()
    if projection is None and budget is None:
        return record.to_json()
    from woodrat.runs.projection import project
    from woodrat.runs.words import tokens

    told = project(record, projection or "decisions", budget)
    return {"run": record.id, "projection": projection or "decisions", "text": told, "tokens": tokens(told)}


def run_receipts(past: Past, run: str) -> dict[str, Any]:
    """What the writes of a run were answered."""
    from woodrat.runs import relay as run_relay

    return wire.listing("receipts", run_relay.receipts(past.context, run), past.position)


def runs_diff(past: Past, first: str, second: str) -> dict[str, Any]:
    """Where two runs part, and why."""
    return past.runs.diff(first, second).to_json()


def runs_group(past: Past, **asked: Any) -> dict[str, Any]:
    """Many runs, clustered by where they part."""
    return past.runs.group(**asked).to_json()


def what_if(past: Past, **asked: Any) -> dict[str, Any]:
    """What would have come of recorded decisions, had something been otherwise."""
    return past.what_if(**asked).to_json()


def bisect(past: Past, **asked: Any) -> dict[str, Any]:
    """A write with which an answer became another."""
    return past.bisect(**asked).to_json()


def reduce(past: Past, **asked: Any) -> dict[str, Any]:
    """A few observations that show something by themselves."""
    return past.reduce(**asked).to_json()


def diff_against(past: Past, known: Any, **asked: Any) -> dict[str, Any]:
    """What differs from a state that was written down."""
    changes = past.diff_against(known, **asked)
    return wire.listing("changes", (change.to_json() for change in changes), changes.after)


def why(past: Past, ref: str, **asked: Any) -> dict[str, Any]:
    """What was decided about an entity, and on what evidence."""
    return _listed("decisions", past.why(ref, **asked))


def recall(past: Past, question: str, **asked: Any) -> dict[str, Any]:
    """What earlier runs decided about something like this."""
    return past.recall(question, **asked).to_json()


def lineage(past: Past, what: str) -> dict[str, Any]:
    """Where something comes from."""
    return past.lineage(what).to_json()


def impact(past: Past, what: str | None = None, agent: str | None = None) -> dict[str, Any]:
    """What leaned on something."""
    return past.impact(what, agent=agent).to_json()


def stale(past: Past, **asked: Any) -> dict[str, Any]:
    """Decisions that would come out differently now."""
    return _listed("decisions", past.stale(**asked))


def newly_stale(ledger: Ledger, after: int | None = None) -> dict[str, Any]:
    """What the next writes after a position made stale, and how far was looked."""
    return stale_since(ledger, after).to_json()


def stale_since(ledger: Ledger, after: int | None = None) -> Newly:
    """Return what the next writes after a position made stale; default: after the end of the log."""
    from woodrat.explain.workers import Follower
    from woodrat.ledger.moments import resolve_moment

    own = ledger.context
    with own.engine.view(own.tenant) as view:
        position = resolve_moment(view, "now" if after is None else after, clock=own.clock)
    return Follower(own, position).next()


def values(past: Past) -> dict[str, Any]:
    """The values of everything that exists."""
    found = {ref: each.to_json() for ref, each in past.values().items()}
    return {"position": past.position, "values": found}


# --------------------------------------------------------------------------------------------------------- writing


def reported(verb: str) -> Callable[..., Report]:
    """Return the function that answers a verb of the ledger with its report.

    What a report tells is worked out by its `to_json`, which can wait until the write is durable.
    """

    def write(ledger: Ledger, **given: Any) -> Report:
        found: Report = attrgetter(verb)(ledger)(**given)
        return found

    write.__name__ = verb.rpartition(".")[2]
    return write


store = reported("store")
correct = reported("correct")
retract = reported("retract")
delete = reported("delete")
restore = reported("restore")
relate = reported("relate")
merge = reported("merge")
split = reported("split")
tag = reported("tag")
register = reported("schemas.register")
judge = reported("runs.judge")
evaluate = reported("runs.evaluate")


def admit(ledger: Ledger, bodies: Any) -> dict[str, Any]:
    """Take in what another log said."""
    from woodrat.canon import form

    faults = [] if isinstance(bodies, list) else [Fault("/bodies", f"got {shown(bodies)}", "Send a list.")]
    for number, item in enumerate(bodies if isinstance(bodies, list) else ()):
        if not isinstance(item, dict) or item.keys() != {"kind", "body"}:
            remedy = 'Send {"kind": "observation", "body": {…}}.'
            faults.append(Fault(f"/bodies/{number}", f"got {shown(item)}", remedy))
    faults += form.faults(bodies, "/bodies")
    if faults:
        raise Refused(faults)
    return ledger.admit((item["kind"], form.encode(item["body"])) for item in bodies).to_json()


def add_source(
    ledger: Ledger,
    *,
    text: str | None = None,
    base64_: str | None = None,
    name: str | None = None,
    media_type: str | None = None,
    idempotency_key: str | None = None,
) -> dict[str, Any]:
    """Keep a source as it was received."""
    faults = [
        Fault(name, f"expected text, got {shown(value)}", "Send it as text.")
        for name, value in (("text", text), ("base64", base64_))
        if value is not None and not isinstance(value, str)
    ]
    if faults:
        raise Refused(faults)
    if (text is None) == (base64_ is None):
        problem = "there is no content" if text is None else "text and base64 are both given"
        raise Refused([Fault("text", problem, "Send the content in one of text and base64.")])
    content = text.encode() if text is not None else _bytes(base64_ or "")
    found = ledger.sources.add(content, name=name, media_type=media_type, idempotency_key=idempotency_key)
    return {"source": found, "bytes": len(content)}


def _bytes(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise Refused([Fault("base64", f"is not base64 ({error})", "Send RFC 4648 base64 with padding.")]) from error


def record(ledger: Ledger, document: Any, idempotency_key: str | None = None, *, own: bool = False) -> dict[str, Any]:
    """Take in runs that were recorded elsewhere; with `own` those of the ledger's agent alone."""
    from woodrat.runs.verbs import documents as run_document

    return {"runs": list(run_document.record(ledger.run_log(), document, idempotency_key, own=own))}


# ------------------------------------------------------------------------------------------------- runs, as they happen


def run_start(ledger: Ledger, relay: Relay, *, idempotency_key: str | None = None, **about: Any) -> dict[str, Any]:
    """Begin a run."""
    return relay.start(ledger.context, about, idempotency_key)


def run_step(
    ledger: Ledger, relay: Relay, *, run: str, step: Any, idempotency_key: str | None = None
) -> dict[str, Any]:
    """Record a step of a run."""
    return step_told(relay.step(ledger.context, run, step, idempotency_key))


def run_entries(ledger: Ledger, relay: Relay, *, run: str, entries: Any) -> dict[str, Any]:
    """Take in what the recorder of a run made of it."""
    return relay.entries(ledger.context, run, entries)


def run_resume(ledger: Ledger, relay: Relay, *, run: str, position: int | None = None) -> dict[str, Any]:
    """Let the recorder of an interrupted run carry it on."""
    return relay.resume(ledger.context, run, position)


def step_told(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what is answered to a step, its records as plain JSON."""
    return {name: plain(value) for name, value in answer.items()}


def plain(value: Any) -> Any:
    """Return records as plain JSON, wherever they stand."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


def run_end(
    ledger: Ledger, relay: Relay, *, run: str, idempotency_key: str | None = None, **how: Any
) -> dict[str, Any]:
    """End a run."""
    return relay.end(ledger.context, run, idempotency_key, **how)


# --------------------------------------------------------------------------------------------------------- webhooks


def webhooks(ledger: Ledger) -> dict[str, Any]:
    """The webhooks of a tenant."""
    return wire.listing("webhooks", map(_hook_told, _hooks_of(ledger)))


def add_webhook(
    ledger: Ledger, url: Any, kinds: Any = (), after: Any = None, *, inside: bool = False
) -> dict[str, Any]:
    """Add a webhook, whose secret is made here and told this once; `inside` is for who is on this machine."""
    from woodrat.server import webhooks

    hooks = webhooks.hooks_beside(ledger)
    begin = ledger.position if after is None else after
    faults = hooks.faults(ledger.tenant, url, kinds, begin, inside=inside)
    if faults:
        raise Refused(faults, webhooks.NOT_ADDED)
    id = hooks.fresh_id()
    secret, file = webhooks.make_secret(ledger.context.keys, id, ledger.context.clock)
    hook = hooks.add(ledger.tenant, url, file, kinds, after=begin, id=id, inside=inside)
    return {**_hook_told(hook), "secret": secret}


def remove_webhook(ledger: Ledger, webhook: str) -> dict[str, Any]:
    """Send nothing to a webhook any more."""
    from woodrat.server import webhooks

    webhooks.hooks_beside(ledger).remove(_own(ledger, webhook))
    return {"removed": webhook}


def dead_letters(ledger: Ledger, webhook: str | None = None) -> dict[str, Any]:
    """Deliveries that nobody took."""
    from woodrat.server import webhooks

    found = webhooks.hooks_beside(ledger).dead(webhook)
    return wire.listing("dead_letters", (letter for letter in found if letter["tenant"] == ledger.tenant))


def retry_webhook(ledger: Ledger, webhook: str, first: int | None = None) -> dict[str, Any]:
    """Have dead letters delivered again."""
    from woodrat.server import webhooks

    return {"webhook": webhook, "retried": webhooks.hooks_beside(ledger).retry(_own(ledger, webhook), first)}


def _hooks_of(ledger: Ledger) -> list[Hook]:
    from woodrat.server import webhooks

    return [hook for hook in webhooks.hooks_beside(ledger).all() if hook.tenant == ledger.tenant]


def _hook_told(hook: Hook) -> dict[str, Any]:
    """Return a webhook without the file of its secret, which says more of the machine than of the webhook."""
    return {name: value for name, value in hook.to_json().items() if name not in ("secret_file", "inside")}


def _own(ledger: Ledger, webhook: str) -> str:
    """Return a webhook's id, if it is one of the tenant."""
    if webhook not in {hook.id for hook in _hooks_of(ledger)}:
        raise NotFound(f"{shown(webhook)}: there is no such webhook here. Nothing was changed. See GET /v1/webhooks.")
    return webhook
