"""Wire: the JSON shapes that surfaces share, and what an error's code becomes on each of them."""

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
"""Exit code of a command that did what it was asked."""
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
"""Exit code of a command, by the code of the error that ended it."""
HTTP_STATUS: Mapping[str, int] = {
    "refused": 400,
    "forbidden": 403,
    "not_found": 404,
    "outdated": 412,
    "corrupt": 500,
    "unavailable": 503,
}
"""Status of a response, by the code of the error it tells of."""
CONFLICT = 409
"""Status where the ledger is older than what is remembered of it: no condition that the caller stated."""
RPC_CODES: Mapping[str, int] = {
    "refused": -32602,
    "forbidden": -32602,
    "not_found": -32602,
    "outdated": -32602,
    "corrupt": -32603,
    "unavailable": -32603,
}
"""Code of a JSON-RPC error where MCP has no tool error to give, by the code of the error it tells of."""
TITLES: Mapping[str, str] = {
    kind.code: (kind.__doc__ or "").split(". ")[0].rstrip(".")
    for kind in (Refused, Forbidden, NotFound, Outdated, Corrupt, Unavailable)
}
"""What a problem of each code is called: one title for one type, as RFC 9457 asks."""
INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells give it."""
PIPE_CLOSED = 141
"""Exit code when the reader of our output went away, as shells give it."""


def exit_code(error: WoodratError) -> int:
    """Return the exit code an error ends a command with."""
    return EXIT_CODES[error.code]


def http_status(error: WoodratError) -> int:
    """Return the status of the response that tells of an error."""
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
    """Return a list as a page is written: items that are plain JSON already; one that was read has its position."""
    written: dict[str, Any] = {"items": list(items)}
    return written if position is None else {**written, "cursor": cursor, "position": position}


def blame(found: Mapping[str, tuple[Verdict, ...]]) -> dict[str, Any]:
    """Return what became of every claim, by field."""
    return {name: [verdict.to_json() for verdict in verdicts] for name, verdicts in found.items()}


def blamed(past: Past, text: str, field: str | None = None, **asked: Any) -> Blame:
    """Return the verdicts on what `text` names: an entity, or a field of it after the last #, unless `field` says it.

    A key may hold a # itself: where there is no such field, the whole is tried as an entity.
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
    """Return a snapshot with the reason behind every value, and every observation it was merged from."""
    return {
        **snapshot.to_json(),
        "claims": blame(verdicts),
        "observations": [item.to_json() for item in observations],
    }


def source(id: str, content: bytes, deliveries: Iterable[Delivery]) -> dict[str, Any]:
    """Return a source with its content: as text where it is UTF-8, else as base64."""
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
