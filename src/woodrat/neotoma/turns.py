"""Turns: the stores and reads of one conversation turn, as one line that agents show."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from woodrat.errors import NotFound
from woodrat.ledger import reads
from woodrat.neotoma.calls import Given

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.canon.ids import Ref

MESSAGE: Final = "conversation_message"
ANSWER: Final = ":assistant"
"""How the key of an answer ends; without it, it is the key of the question."""
_SPOKEN: Final = frozenset({"conversation", MESSAGE, "agent_message"})


def summary(past: Past, given: Given, done: Any) -> dict[str, Any]:
    """Return which entities the answer of a turn refers to, and which its question does."""
    key = given["turn_key"]
    message = _message(past, key)
    if message is None:
        raise NotFound(f"There is no conversation_message with the turn_key {key}. Nothing was read. Store it first.")
    conversation = next(iter(_ends(past, message, "part_of")), None)
    if conversation is None:
        raise NotFound(f"The message {key} is PART_OF no conversation. Nothing was read. Relate it first.")
    messages = [
        link.start
        for link in reads.related(past.context, conversation)
        if (link.type, link.end, link.start.type) == ("part_of", conversation, MESSAGE)
    ]
    stated = past.show(message).fields.get("turn_number")
    number = stated if isinstance(stated, int) and not isinstance(stated, bool) else len(messages)
    question = _message(past, key.removesuffix(ANSWER)) if key.endswith(ANSWER) else None
    stored = _told(_ends(past, message, "refers_to"))
    retrieved = _told(_ends(past, question, "refers_to")) if question in messages else []
    retrieved = [one for one in retrieved if one not in stored]
    issues = [one for one in (*stored, *retrieved) if one["entity_type"] == "issue"]
    counts = {"stored": len(stored), "retrieved": len(retrieved), "issues": len(issues)}
    line = f"msg {number}/{len(messages)}, stored {len(stored)}, retrieved {len(retrieved)}"
    named = urlencode({"conversation_id": given["conversation_id"], "turn": number, **counts})
    return {
        "status_line": f"{line}, issues {len(issues)}" if issues else line,
        "widget_uri": f"ui://neotoma/turn-summary?{named}",
        "turn_number": number,
        "conversation_message_count": len(messages),
        "stored": stored,
        "retrieved": retrieved,
        "issues": issues,
    }


def _message(past: Past, key: str) -> Ref | None:
    found = past.query(entity_type=MESSAGE, where={"turn_key": key}, limit=1).items
    return found[0].entity if found else None


def _ends(past: Past, start: Ref | None, type: str) -> list[Ref]:
    if start is None:
        return []
    return [link.end for link in reads.related(past.context, start) if (link.type, link.start) == (type, start)]


def _told(refs: Iterable[Ref]) -> list[dict[str, Any]]:
    return [
        {"entity_id": ref.id, "entity_type": ref.type, "canonical_name": ref.key}
        for ref in refs
        if ref.type not in _SPOKEN
    ]
