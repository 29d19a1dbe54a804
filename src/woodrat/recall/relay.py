"""The way to an embedder's server: JSON over HTTP, with the modules of the standard library alone.

Whatever goes wrong is raised as `Failed`, in a clause and with what to do about it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

ANSWER_BYTES_MAX: Final = 256 * 1024 * 1024
"""Largest answer read from a server."""
SAID_CHARACTERS_MAX: Final = 300
"""How much of what a server says about a failure is passed on."""

_REMEDIES: Final = {
    400: "Check the model's name and the length of texts it takes",
    401: "Put its key right",
    403: "Use a key that may ask for embeddings",
    404: "Check the address and the model's name",
    429: "Send the same call again later, or use smaller batches",
}


class Failed(Exception):
    """A server did not answer as asked: what happened, and what to do about it."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(problem)
        self.problem = problem
        self.remedy = remedy


def post(url: str, body: Mapping[str, Any], headers: Mapping[str, str], timeout_seconds: float) -> Any:
    """Send JSON to an address and return the JSON it answers."""
    # None of these is imported before it is needed.
    import json
    from http.client import HTTPException
    from urllib.error import HTTPError, URLError
    from urllib.request import Request

    request = Request(
        url,
        json.dumps(body).encode(),
        {"Content-Type": "application/json", "Accept": "application/json", **headers},
        method="POST",
    )
    try:
        with _opener(request.host).open(request, timeout=timeout_seconds) as answer:
            data = answer.read(ANSWER_BYTES_MAX + 1)
    except HTTPError as error:
        with error:
            said = _said(error.read(SAID_CHARACTERS_MAX * 8), headers.values())
        problem = f"it answered {error.code}{f' ({said})' if said else ''}"
        raise Failed(problem, _REMEDIES.get(error.code, "Send the same call again later")) from None
    except TimeoutError as error:
        raise Failed(f"no answer within {timeout_seconds:g} seconds", "Send the same call again") from error
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise Failed(f"no answer within {timeout_seconds:g} seconds", "Send the same call again") from error
        raise Failed(f"no connection: {error.reason}", "Start it, or put its address right") from error
    except (OSError, HTTPException) as error:
        raise Failed(f"the connection broke off: {type(error).__name__}", "Send the same call again") from error
    if len(data) > ANSWER_BYTES_MAX:
        raise Failed("its answer is too long", "Use smaller batches")
    try:
        return json.loads(data)
    except ValueError:
        raise Failed("its answer is no JSON", "Check that the address is an embedder's") from None


def _opener(host: str) -> Any:
    """Return what opens an address: no redirection, which could carry a key elsewhere; no proxy to this machine."""
    from urllib.request import HTTPRedirectHandler, ProxyHandler, build_opener

    class Stay(HTTPRedirectHandler):
        def redirect_request(self, *_: Any) -> None:
            return None

    name = host.rpartition(":")[0] or host
    here = name in ("localhost", "[::1]") or re.fullmatch(r"127(\.[0-9]+){3}", name) is not None
    return build_opener(Stay(), *([ProxyHandler({})] if here else []))


def _said(body: bytes, secrets: Iterable[str]) -> str:
    """Return what a server said about a failure, on one line, without what we sent to it in confidence."""
    text = " ".join(body.decode("utf-8", "replace").split())
    for secret in secrets:
        for part in secret.split():
            if len(part) >= 8:
                text = text.replace(part, "…")
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= SAID_CHARACTERS_MAX else text[:SAID_CHARACTERS_MAX] + "…"
