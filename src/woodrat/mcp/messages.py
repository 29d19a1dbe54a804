"""Messages: the raw messages of a client, checked before the SDK reads them.

The SDK's reader keeps the last of two equal keys, replaces invalid UTF-8 by U+FFFD, takes a request with a null id for
a notification, and over stdio does not answer unreadable input. Here a message is parsed as strictly as any JSON from
outside, and a refused one is answered under the id of its request, if that can be read: a client never waits for an
answer without an id.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, Final

from woodrat.canon import form
from woodrat.errors import Fault, Refused, WoodratError, shown

NOTHING_DONE: Final = "Nothing was done."
NOT_JSON, NO_REQUEST, NO_PARAMS = -32700, -32600, -32602
"""JSON-RPC errors: text that is not JSON, JSON that is not a message, and invalid parameters."""
REVISION: Final = "io.modelcontextprotocol/protocolVersion"
"""The key under which requests state their protocol revision since 2026-07-28; results of that revision say that they
are complete.
"""
_CALL: Final = "tools/call"
_ARGUMENTS: Final = "/params/arguments"


def answer_to(data: bytes) -> dict[str, Any] | None:
    """Return the error for an invalid message; `None` for a valid one."""
    try:
        found = form.parse(data)
    except Refused as refusal:
        return _answer_to_unread(data, refusal)
    if not isinstance(found, dict):
        problem = "the body is a batch of messages" if isinstance(found, list) else f"got {shown(found)}"
        return failed(None, NO_REQUEST, [Fault("", problem, "Send one message at a time, an object.")])
    if "method" not in found and ("result" in found or "error" in found):
        return None  # a response; the SDK knows whether it had sent a request
    if faults := [*_envelope_faults(found)]:
        return failed(_id(found), NO_REQUEST, faults)
    if faults := [*_param_faults(found)]:
        return failed(_id(found), NO_PARAMS, faults)
    return None


def failed(id: str | int | None, code: int, faults: Iterable[Fault]) -> dict[str, Any]:
    """Return the protocol's error for a message with these faults."""
    error = Refused(faults, NOTHING_DONE)
    return {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": str(error), "data": error.to_json()}}


def told(error: WoodratError) -> dict[str, Any]:
    """Return the answer of a failed tool: the message for people, and the structured error for programs."""
    return {
        "content": [{"type": "text", "text": str(error)}],
        "structuredContent": error.to_json(),
        "isError": True,
    }


def _answer_to_unread(data: bytes, refusal: Refused) -> dict[str, Any]:
    """Return the error for invalid text; if only a tool's arguments are invalid, the error is the tool's."""
    try:
        found = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return failed(None, NOT_JSON, refusal.faults)
    asked = found if isinstance(found, dict) else {}
    id, params = _id(asked), asked.get("params")
    if id is None or asked.get("method") != _CALL or not isinstance(params, dict):
        return failed(id, NO_REQUEST, refusal.faults)
    faults = [Fault(f.path.removeprefix(_ARGUMENTS), f.problem, f.remedy) for f in refusal.faults]
    about = params.get("_meta")
    whole = {"resultType": "complete"} if isinstance(about, dict) and REVISION in about else {}
    return {"jsonrpc": "2.0", "id": id, "result": {**told(Refused(faults, NOTHING_DONE)), **whole}}


def _id(found: dict[str, Any]) -> str | int | None:
    """Return the id of a request if it has one that can be sent back."""
    id = found.get("id")
    return id if type(id) in (str, int) and not form.faults(id) else None


def _envelope_faults(found: dict[str, Any]) -> Iterable[Fault]:
    if found.get("jsonrpc") != "2.0":
        yield Fault("/jsonrpc", f'expected "2.0", got {shown(found.get("jsonrpc"))}', 'Send "2.0".')
    if not isinstance(found.get("method"), str):
        yield Fault("/method", f"expected text, got {shown(found.get('method'))}", "Name a method.")
    if "id" in found and _id(found) is None:
        remedy = "Send an id, or none at all where no answer is wanted."
        yield Fault("/id", f"expected text or a whole number, got {shown(found['id'])}", remedy)


def _param_faults(found: dict[str, Any]) -> Iterable[Fault]:
    params = found.get("params", {})
    if not isinstance(params, dict):
        yield Fault("/params", f"expected an object, got {shown(params)}", "Send parameters by name.")
    elif found["method"] == _CALL:
        if not isinstance(params.get("name"), str):
            yield Fault("/params/name", f"expected text, got {shown(params.get('name'))}", "Name a tool.")
        arguments = params.get("arguments")
        if arguments is not None and not isinstance(arguments, dict):
            yield Fault(_ARGUMENTS, f"expected an object, got {shown(arguments)}", "Send arguments by name.")
