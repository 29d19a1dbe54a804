"""Problems: the errors of a call by status, each with an example of its document.

`Rejected` is raised by the server itself, before or around a call to the ledger; it carries its status.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from woodrat.errors import WoodratError
from woodrat.server import wire

NOTHING_DONE: Final = "Nothing was done."

REQUEST = "9efb025574215f56"
"""The request id in examples."""

PROBLEMS: tuple[tuple[int, str, str, str, Mapping[str, Any]], ...] = (
    (
        400,
        "refused",
        "The request is invalid; nothing was written.",
        'limit: expected a whole number, got "many" (text). Send digits.\nNothing was read.',
        {
            "faults": [
                {"path": "limit", "problem": 'expected a whole number, got "many" (text)', "remedy": "Send digits."}
            ]
        },
    ),
    (
        401,
        "forbidden",
        "The API key is missing or not valid.",
        "The API key is missing or not valid. Nothing was done. Send a key: Authorization: Bearer wrat_…, which is "
        "WOODRAT_TOKEN on the command line and key= in Python.",
        {},
    ),
    (
        403,
        "forbidden",
        "The key does not have the grant, or the page's origin is not allowed.",
        "This key may not write for task. Nothing was done. Ask for a key with the grant 'write', or name a type that "
        "this key covers.",
        {"grant": "write"},
    ),
    (
        404,
        "not_found",
        "There is no such thing in this tenant, at this moment.",
        "contact/Bob: not known at position 1. Nothing was changed. Search for it, or read at a later moment.",
        {"entity": "contact/Bob", "position": 1},
    ),
    (
        408,
        "refused",
        "The body took too long to arrive.",
        "The body did not arrive within 30 seconds. Nothing was done. Send it again.",
        {},
    ),
    (
        409,
        "outdated",
        "The ledger is an older copy than its signing keys remember, such as a restored backup; writes are refused.",
        "log_aaaaaaaaaaaaaaaaaaaaaaaaaa: this ledger has 2 entries, and its last checkpoint covers 3. The last 1 are "
        "missing: it is an older copy, such as a restored backup, or it was cut. Nothing was written. If a backup was "
        "restored, accept it with `woodrat checkpoint --new-epoch REASON`; otherwise put the newer database back (a "
        "copy needs its -wal file too).",
        {"damage": "behind", "size": 2},
    ),
    (
        412,
        "outdated",
        "A condition in the call no longer holds.",
        "contact/Ana Rivera: expected it at version 0, it is at version 1. Nothing was written. Read it again, "
        "then decide.",
        {"entity": "contact/Ana Rivera", "expected": 0, "actual": 1},
    ),
    (
        413,
        "refused",
        "The body is too large.",
        "The body has 100000016 bytes, and 67108864 bytes is the limit. Nothing was done. Send it in several calls.",
        {},
    ),
    (
        414,
        "refused",
        "The query is too long.",
        "The query has 16388 bytes, and 16384 is the limit. Nothing was done. Send less.",
        {},
    ),
    (
        415,
        "refused",
        "The body has an unsupported media type or encoding.",
        'content-type: got "text/plain" (text). Nothing was done. Send application/json or application/x-ndjson.',
        {},
    ),
    (
        421,
        "refused",
        "The host is not a name of this server.",
        'host: "evil.example" (text) is not a name of this server. Nothing was done. Call it by one of its names.',
        {},
    ),
    (
        429,
        "unavailable",
        "The key calls too often, or too many of its calls are running or queued; `Retry-After` says when to retry.",
        "This key calls more than 5 times a second. Nothing was done. Call again in a second.",
        {},
    ),
    (
        500,
        "unavailable",
        "Stored bytes do not match their digest (`corrupt`), or the server failed; see its log.",
        "The server failed on this request, 9efb025574215f56; see its log. It is not known whether anything was "
        "written. Send the same call with the same Idempotency-Key again.",
        {},
    ),
    (
        503,
        "unavailable",
        "The engine cannot answer now, or too many calls wait; the same call may be sent again.",
        "The server is shutting down. Nothing was done. Send the same call again later.",
        {},
    ),
)
"""A kind of problem document: status, code, meaning and an example."""


class Rejected(WoodratError):
    """The request is invalid. Nothing was done."""

    code = "refused"

    def __init__(
        self, status: int, message: str, headers: Sequence[tuple[bytes, bytes]] = (), code: str = "refused"
    ) -> None:
        super().__init__(message)
        self.status, self.headers = status, headers
        self.code = code  # type: ignore[misc]


def not_a_method(method: str, path: bytes, methods: Iterable[str]) -> Rejected:
    """Return the error for a method that an address does not have."""
    allowed = ", ".join(sorted(set(methods)))
    text = f"{method}: not a method of {path.decode('latin-1')}. {NOTHING_DONE} Use {allowed}."
    return Rejected(405, text, ((b"allow", allowed.encode()),))


def closed() -> Rejected:
    """Return the error of a server that shuts down."""
    text = "The server is shutting down. Nothing was done. Send the same call again later."
    return Rejected(503, text, ((b"connection", b"close"), (b"retry-after", b"1")), code="unavailable")


def failure(request: str) -> Rejected:
    """Return the error for a bug of the server."""
    text = f"The server failed on this request, {request}; see its log. It is not known whether anything was written. "
    return Rejected(500, text + "Send the same call with the same Idempotency-Key again.", code="unavailable")


def responses() -> dict[str, Any]:
    """Return the problem responses, by the name that operations refer to."""
    return {name(problem[0]): _response(*problem) for problem in PROBLEMS}


def references() -> dict[str, Any]:
    """Return, by status, references to the problem responses."""
    return {str(status): {"$ref": f"#/components/responses/{name(status)}"} for status, *_ in PROBLEMS}


def name(status: int) -> str:
    """Return the component name of the response with a status."""
    return f"Problem{status}"


def _response(status: int, code: str, what: str, detail: str, details: Mapping[str, Any]) -> dict[str, Any]:
    example = wire.problem_of(code, status, detail, details, REQUEST)
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": what, "content": {"application/problem+json": {"schema": schema, "example": example}}}
