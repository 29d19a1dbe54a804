"""Wire: the JSON shapes that surfaces share, and the code of an error on each of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from woodrat.errors import Corrupt, Forbidden, NotFound, Outdated, Refused, Unavailable, WoodratError

if TYPE_CHECKING:
    from woodrat.api.past import Past
    from woodrat.merge.blame import Blame, Verdict
    from woodrat.merge.snapshot import Snapshot
    from woodrat.state.asof import Stored
    from woodrat.state.source import Delivery

DONE = 0
"""Exit code of a successful command."""
FOUND_SOMETHING = 1
"""Exit code of a check that found something: a difference, an order that matters."""
EXIT_CODES: Mapping[str, int] = {
    "refused": 2,
    "not_found": 3,
    "unavailable": 4,
    "corrupt": 5,
    "outdated": 6,
    "forbidden": 7,
}
"""Exit code of a command, by error code."""
HTTP_STATUS: Mapping[str, int] = {
    "refused": 400,
    "forbidden": 403,
    "not_found": 404,
    "outdated": 412,
    "corrupt": 500,
    "unavailable": 503,
}
"""HTTP status, by error code."""
CONFLICT = 409
"""Status if the ledger is older than the signing keys remember, although the caller stated no condition."""
RPC_CODES: Mapping[str, int] = {
    "refused": -32602,
    "forbidden": -32602,
    "not_found": -32602,
    "outdated": -32602,
    "corrupt": -32603,
    "unavailable": -32603,
}
"""JSON-RPC error code where MCP allows no tool error, by error code."""
TITLES: Mapping[str, str] = {
    kind.code: (kind.__doc__ or "").split(". ")[0].rstrip(".")
    for kind in (Refused, Forbidden, NotFound, Outdated, Corrupt, Unavailable)
}
"""Title of a problem, by error code: one title for one type, as RFC 9457 requires."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells give it."""
PIPE_CLOSED = 141
"""Exit code when the reader of our output is gone, as shells give it."""


def exit_code(error: WoodratError) -> int:
    """Return the exit code for an error."""
    return EXIT_CODES[error.code]


def http_status(error: WoodratError) -> int:
    """Return the HTTP status for an error."""
    if error.code == Outdated.code and error.details.get("damage") is not None:
        return CONFLICT
    return HTTP_STATUS[error.code]


def problem(error: WoodratError, status: int, request: str) -> dict[str, Any]:
    """Return an error as a problem document (RFC 9457), with the same code, message and details as anywhere."""
    return problem_of(error.code, status, str(error), error.details, request)


def problem_of(code: str, status: int, detail: str, details: Mapping[str, Any], request: str) -> dict[str, Any]:
    """Return a problem document from its parts."""
    return {
        "type": f"urn:woodrat:problem:{code}",
        "title": TITLES[code],
        "status": status,
        "detail": detail,
        "instance": f"urn:woodrat:request:{request}",
        "code": code,
        "details": dict(details),
    }


def listing(items: Iterable[Any], position: int | None = None, cursor: str | None = None) -> dict[str, Any]:
    """Return the JSON of a page; its items are plain JSON already, and its position is that of the read."""
    written: dict[str, Any] = {"items": list(items)}
    return written if position is None else {**written, "cursor": cursor, "position": position}


def blame(found: Mapping[str, tuple[Verdict, ...]]) -> dict[str, Any]:
    """Return the verdicts on every claim, by field."""
    return {name: [verdict.to_json() for verdict in verdicts] for name, verdicts in found.items()}


def blamed(past: Past, text: str, field: str | None = None, **asked: Any) -> Blame:
    """Return the verdicts on an entity, or on the field of it after the last #, unless `field` names that.

    A key may contain a # itself: if there is no such field, the whole text is tried as an entity.
    """
    ref, mark, after = text.rpartition("#")
    if field is not None or not mark:
        return past.blame(text, field, **asked)
    if not after:
        return past.blame(ref, **asked)
    try:
        return past.blame(ref, after, **asked)
    except NotFound as missing:
        try:
            return past.blame(text, **asked)
        except NotFound:
            raise missing from None


def explained(
    snapshot: Snapshot, verdicts: Mapping[str, tuple[Verdict, ...]], observations: Iterable[Stored]
) -> dict[str, Any]:
    """Return a snapshot with the reason for every value, and every observation behind it."""
    return {
        **snapshot.to_json(),
        "claims": blame(verdicts),
        "observations": [item.to_json() for item in observations],
    }


def source(id: str, content: bytes, deliveries: Iterable[Delivery]) -> dict[str, Any]:
    """Return a source with its content: as text if it is UTF-8, else as base64."""
    found: dict[str, Any] = {
        "source": id,
        "bytes": len(content),
        "deliveries": [delivery.to_json() for delivery in deliveries],
    }
    try:
        found["text"] = content.decode("utf-8")
    except UnicodeDecodeError:
        import base64

        found["base64"] = base64.b64encode(content).decode("ascii")
    return found
