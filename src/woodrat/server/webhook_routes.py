"""Webhook routes: the webhooks of a tenant, managed by keys with the grant `manage`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.api.parameters import TEXT, TEXTS, WHOLE
from woodrat.errors import NotFound, Refused, shown
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.server.access import MANAGE
from woodrat.server.route import Route, in_body, in_path, in_query

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.server.webhooks import Hook


@dataclass(frozen=True, slots=True)
class Webhook(Record):
    """A webhook, without the file of its secret, which would reveal a path of the machine."""

    id: str
    """Its id."""
    tenant: str
    """The tenant whose log is delivered."""
    url: str
    """Its address."""
    kinds: tuple[str, ...]
    """Kinds of entries that are sent; empty means all."""
    position: int
    """The last delivered position."""


@dataclass(frozen=True, slots=True)
class AddedWebhook(Record):
    """A webhook that was added, with its secret."""

    id: str
    """Its id."""
    tenant: str
    """The tenant whose log is sent."""
    url: str
    """Its address."""
    kinds: tuple[str, ...]
    """Kinds of entries that are sent; empty means all."""
    position: int
    """The last delivered position."""
    secret: str
    """The secret that signs its deliveries; it is never shown again."""


@dataclass(frozen=True, slots=True)
class RemovedWebhook(Record):
    """A webhook that was removed."""

    removed: str
    """Its id."""


@dataclass(frozen=True, slots=True)
class RetriedWebhook(Record):
    """A webhook whose failed deliveries are to be retried."""

    webhook: str
    """Its id."""
    retried: int
    """Number of deliveries."""


def list_webhooks(ledger: Ledger) -> tuple[Webhook, ...]:
    """Return the webhooks of a tenant."""
    return tuple(Webhook(**_shown(hook)) for hook in _hooks_of(ledger))


def add(ledger: Ledger, url: Any, kinds: Any = (), after: Any = None, *, inside: bool = False) -> AddedWebhook:
    """Add a webhook and make its secret; `inside` allows addresses on this machine."""
    from woodrat.server import webhooks

    hooks = webhooks.hooks_beside(ledger)
    begin = ledger.position if after is None else after
    faults = hooks.faults(ledger.tenant, url, kinds, begin, inside=inside)
    if faults:
        raise Refused(faults, webhooks.NOT_ADDED)
    id = hooks.fresh_id()
    secret, file = webhooks.make_secret(ledger.context.keys, id, ledger.context.clock)
    hook = hooks.add(ledger.tenant, url, file, kinds, after=begin, id=id, inside=inside)
    return AddedWebhook(**_shown(hook), secret=secret)


def remove(ledger: Ledger, webhook: str) -> RemovedWebhook:
    """Remove a webhook."""
    from woodrat.server import webhooks

    webhooks.hooks_beside(ledger).remove(_own(ledger, webhook))
    return RemovedWebhook(webhook)


def dead_letters(ledger: Ledger, webhook: str | None = None) -> tuple[dict[str, Any], ...]:
    """Return the dead letters."""
    from woodrat.server import webhooks

    letters = webhooks.hooks_beside(ledger).dead(webhook)
    return tuple(letter for letter in letters if letter["tenant"] == ledger.tenant)


def retry(ledger: Ledger, webhook: str, first: int | None = None) -> RetriedWebhook:
    """Retry dead letters."""
    from woodrat.server import webhooks

    return RetriedWebhook(webhook, webhooks.hooks_beside(ledger).retry(_own(ledger, webhook), first))


def _hooks_of(ledger: Ledger) -> list[Hook]:
    from woodrat.server import webhooks

    return [hook for hook in webhooks.hooks_beside(ledger).all() if hook.tenant == ledger.tenant]


def _shown(hook: Hook) -> dict[str, Any]:
    return {"id": hook.id, "tenant": hook.tenant, "url": hook.url, "kinds": hook.kinds, "position": hook.position}


def _own(ledger: Ledger, webhook: str) -> str:
    """Return the id of a webhook of this tenant; raise `NotFound` for others."""
    if webhook not in {hook.id for hook in _hooks_of(ledger)}:
        raise NotFound(f"{shown(webhook)}: unknown webhook. Nothing was changed. See GET /v1/webhooks.")
    return webhook


_WEBHOOK: Final = in_path("webhook", "id of the webhook", "hook_aaaaaaaaaaaaaaaaaaaaaaaaaa")

ROUTES: Final[tuple[Route, ...]] = (
    Route("GET", "/v1/webhooks", "webhooks_list", list_webhooks, "List webhooks.", MANAGE, moment=False),
    Route(
        "POST",
        "/v1/webhooks",
        "webhooks_add",
        add,
        "Add a webhook: send new entries to a URL, signed with a secret that is shown this once.",
        MANAGE,
        (
            in_body("url", TEXT, "where to send them: a public address, over https", required=True),
            in_body("kinds", TEXTS, "only entries of these kinds; default: all"),
            in_body("after", WHOLE, "only entries after this position; default: the end of the log"),
        ),
        moment=False,
        alone=True,
        example={"url": "https://hooks.example.org/woodrat", "kinds": ["observation"]},
    ),
    Route(
        "GET",
        "/v1/webhooks/dead-letters",
        "webhooks_dead_letters",
        dead_letters,
        "List deliveries that were given up.",
        MANAGE,
        (in_query("webhook", TEXT, "only dead letters of this webhook"),),
        moment=False,
    ),
    Route(
        "POST",
        "/v1/webhooks/{webhook}/remove",
        "webhooks_remove",
        remove,
        "Remove a webhook.",
        MANAGE,
        (_WEBHOOK,),
        moment=False,
        alone=True,
        example={},
    ),
    Route(
        "POST",
        "/v1/webhooks/{webhook}/retry",
        "webhooks_retry",
        retry,
        "Send deliveries again that were given up.",
        MANAGE,
        (_WEBHOOK, in_body("first", WHOLE, "only the delivery that starts at this position; default: all")),
        moment=False,
        alone=True,
        example={},
    ),
)
"""All of them."""
