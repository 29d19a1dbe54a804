"""Subscriptions: webhooks of the tenant and the stream of its log, as calls of Neotoma's clients.

They send entries of the log, in Woodrat's format and with its signatures, of all types: receivers filter them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.neotoma.calls import Given
from woodrat.server import webhook_routes

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past

STREAM: Final = "log"
"""The subscription that everybody has: the stream of the log."""
KINDS: Final = ("observation",)
UNFILTERED: Final = "Every new observation is sent, of any type: the receiver filters."


def subscribe(ledger: Ledger, given: Given) -> dict[str, Any]:
    """Add a webhook, or name the stream."""
    method, url = given["delivery_method"], given.get("webhook_url")
    faults = []
    if method not in ("webhook", "sse"):
        faults.append(Fault("delivery_method", f"got {shown(method)}", "Send webhook or sse."))
    if method == "webhook" and url is None:
        faults.append(Fault("webhook_url", "is missing", "Send where to."))
    if "webhook_secret" in given:
        faults.append(Fault("webhook_secret", "secrets are made here", "Leave it out; the answer has it."))
    if faults:
        raise Refused(faults, "Nothing was written.")
    if method == "sse":
        return {"subscription_id": STREAM, "stream": "/v1/log"}
    added = webhook_routes.add(ledger, url, list(KINDS))
    return {"subscription_id": added.id, "webhook_secret": added.secret}


def subscribed(past: Past, given: Given, done: dict[str, Any]) -> dict[str, Any]:
    """Return a new subscription; its secret is never shown again."""
    narrowed = any(given.get(name) for name in ("entity_types", "entity_ids", "event_types"))
    return {"success": True, **done, "entity_id": None, **({"warnings": [UNFILTERED]} if narrowed else {})}


def unsubscribe(ledger: Ledger, given: Given) -> dict[str, Any]:
    """Remove a webhook; the stream needs no end."""
    if given["subscription_id"] != STREAM:
        webhook_routes.remove(ledger, given["subscription_id"])
    return {"success": True}


def listed(ledger: Ledger, given: Given) -> dict[str, Any]:
    """Return the webhooks of the tenant; needs a write grant, since they are kept beside its log."""
    return {"subscriptions": [_told(hook) for hook in webhook_routes.list_webhooks(ledger)]}


def status(ledger: Ledger, given: Given) -> dict[str, Any]:
    """Return one webhook, with the number of its dead letters."""
    sought = given["subscription_id"]
    for hook in webhook_routes.list_webhooks(ledger):
        if hook.id == sought:
            failed = len(webhook_routes.dead_letters(ledger, sought))
            return {"subscription": {**_told(hook), "consecutive_failures": failed}}
    raise NotFound(f"There is no subscription {sought}. Nothing was read. `list_subscriptions` lists them.")


def _told(hook: webhook_routes.Webhook) -> dict[str, Any]:
    return {
        "subscription_id": hook.id,
        "delivery_method": "webhook",
        "webhook_url": hook.url,
        "active": True,
        "position": hook.position,
    }
