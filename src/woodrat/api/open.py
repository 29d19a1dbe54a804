"""Opening: from a path, URL or address to a ledger."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from woodrat.engines.open import NOT_OPENED, engine_for, path_of
from woodrat.errors import Fault, Refused, shown
from woodrat.proofs.verbs.folder import keys_for
from woodrat.state import redaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    from woodrat.api.ledger import Ledger
    from woodrat.clock import Clock
    from woodrat.merge import Policy


def _warn(text: str) -> None:
    import warnings

    from woodrat.api.maintenance import CheckpointWarning

    warnings.warn(text, CheckpointWarning, stacklevel=_LEVELS)


_LEVELS = 6
"""Stack depth from a warning to the caller of `open`."""


def open_ledger(
    db: str | os.PathLike[str] | None = None,
    *,
    tenant: str = "default",
    agent: str = "library",
    policies: Iterable[Policy] = (),
    strict: bool | str | Iterable[str] | None = None,
    readonly: bool = False,
    clock: Clock | None = None,
    key: str | None = None,
    keys: str | os.PathLike[str] | None = None,
    checkpoint_every: int | None = None,
    redact: Iterable[str] | None = None,
    zone: str | None = None,
    erase_again: bool = False,
) -> Ledger:
    """Open a ledger for one tenant, written to by one agent.

    `db` is a path, `sqlite:///path`, `postgresql://…` or `:memory:`; default: a file in the platform's folder for user
    data. `policies` are custom merge policies for schemas to name; `strict` refuses types without a schema (`types`, or
    true) and observations without a stated `observed_at` (`times`), default: `WOODRAT_STRICT`, with commas between
    them; `readonly` refuses every write. `keys` is the folder made by `woodrat init`; default: `WOODRAT_SIGNING_KEYS`,
    or the user's own folder if there is one. With keys a checkpoint is signed every `checkpoint_every` entries (1,000)
    and at close. `redact` are keys whose values never reach the log, such as `["password", "*_token"]`; default:
    `WOODRAT_REDACT`, with commas between them. A file that contains data that was erased from it, because an older copy
    was restored, is not opened, unless `erase_again` repeats the erasure. `http://host:port` is a ledger behind a
    server, opened with a `key`, which determines tenant and agent. Redacted values are never sent there. `zone` is the
    time zone of days and words such as `yesterday`, such as `Europe/Madrid`; default: `WOODRAT_ZONE`, else UTC.
    """
    zone = os.environ.get("WOODRAT_ZONE") or None if zone is None else zone
    if isinstance(db, str) and db.startswith(("http://", "https://")):
        further = (
            bool(tuple(policies)) or bool(strict) or readonly or clock is not None or keys is not None or erase_again
        )
        hidden = redaction.hidden(os.environ.get("WOODRAT_REDACT") if redact is None else redact)
        return _remote(db, key, tenant, agent, hidden, zone, further or checkpoint_every is not None)
    if key is not None:
        remedy = "Leave it out, or name a server such as http://localhost:8787."
        raise Refused([Fault("key", f"only a server accepts a key, and db is {shown(db)}", remedy)], NOT_OPENED)
    from woodrat.api.ledger import Ledger
    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry

    folder = keys_for(db, keys)
    if readonly and folder is not None:
        from woodrat.api.maintenance import check_there

        check_there(folder, path_of(db), tenant)
    engine = engine_for(db, readonly=readonly)
    clock = clock or SystemClock(zone)
    try:
        signing = None
        if folder is not None:
            from woodrat.api.maintenance import signing_for

            signing = signing_for(engine, tenant, folder, clock, every=checkpoint_every, tell=_warn)
        if not erase_again:
            from woodrat.api.maintenance import check_put_back

            check_put_back(engine, tenant, keys)
        opened = Ledger(
            engine,
            tenant=tenant,
            agent=agent,
            clock=clock,
            policies=registry(policies),
            strict=(os.environ.get("WOODRAT_STRICT") or False) if strict is None else strict,
            signing=signing,
            keys=keys,
            redact=os.environ.get("WOODRAT_REDACT") if redact is None else redact,
        )
        if erase_again:
            opened.erased_again = opened.erase_again()
        return opened
    except BaseException:
        engine.close()
        raise


def _remote(
    db: str, key: str | None, tenant: str, agent: str, hidden: frozenset[str], zone: str | None, further: bool
) -> Ledger:
    from woodrat.api.remote import open_remote

    faults = []
    if tenant != "default" or agent != "library":
        faults.append(Fault("tenant", "the key decides the tenant and the agent", "Leave tenant and agent out."))
    if further:
        faults.append(Fault("db", "a server has its own policies, rules, clock and keys", "Leave these arguments out."))
    if faults:
        raise Refused(faults, NOT_OPENED)
    # It has the verbs of a ledger without being a `Ledger`: unsupported verbs are not attributes.
    return cast("Ledger", open_remote(db, key, hidden, zone))
