"""Host: the name that a request called, the page it came from, and whether a proxy forwarded it.

A Host header counts only if it is exactly a name or an address, and optionally a port: another parser would read
`127.0.0.1:8000@evil` as a different host.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from woodrat.errors import Forbidden, shown
from woodrat.server.problems import NOTHING_DONE, Rejected

if TYPE_CHECKING:
    from woodrat.server.limits import Limits
    from woodrat.server.requests import Exchange

_HOST: Final = re.compile(
    r"(\[[0-9A-Fa-f:.]{2,45}\]"  # an address of version 6
    r"|[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,252}[A-Za-z0-9_.])?)"  # a name, or an address of version 4
    r"(?::([0-9]{1,5}))?"
)
PORT_MAX: Final = 65_535
FORWARDING: Final = frozenset(
    {
        b"cdn-loop",
        b"cf-connecting-ip",
        b"cf-connecting-ipv6",
        b"cf-ray",
        b"cf-visitor",
        b"client-ip",
        b"fastly-client-ip",
        b"fly-client-ip",
        b"forwarded",
        b"forwarded-for",
        b"proxy-connection",
        b"true-client-ip",
        b"via",
        b"x-amzn-trace-id",
        b"x-appengine-user-ip",
        b"x-azure-clientip",
        b"x-client-ip",
        b"x-cluster-client-ip",
        b"x-envoy-external-address",
        b"x-envoy-original-path",
        b"x-forwarded",
        b"x-host",
        b"x-original-forwarded-for",
        b"x-original-host",
        b"x-original-url",
        b"x-originating-ip",
        b"x-proxyuser-ip",
        b"x-real-ip",
        b"x-remote-addr",
        b"x-remote-ip",
        b"x-rewrite-url",
    }
)
"""Headers that proxies add, and the prefixes of such headers."""
_PREFIXES: Final = (b"\nx-forwarded-", b"\ncf-access-", b"\nx-envoy-")


@lru_cache(maxsize=256)
def name_of(host: str) -> str | None:
    """Return the name in a Host header, without port and in lower case; None if the header is invalid."""
    found = _HOST.fullmatch(host)
    if found is None or (found[2] is not None and not 0 < int(found[2]) <= PORT_MAX):
        return None
    return found[1].lower()


def is_forwarded(headers: Collection[bytes]) -> bool:
    """Return True if a proxy forwarded the request."""
    named = b"\n" + b"\n".join(headers)  # compiled once per prefix, as every request is checked
    return not FORWARDING.isdisjoint(headers) or any(prefix in named for prefix in _PREFIXES)


def check(exchange: Exchange, limits: Limits) -> None:
    """Refuse a request from a foreign site's page: its browser sends another host or origin."""
    if exchange.hosts > 1:
        raise Rejected(400, f"host: it appears {exchange.hosts} times. {NOTHING_DONE} Send one.")
    stated = (exchange.header(b"x-forwarded-host") if limits.proxied else None) or exchange.header(b"host") or ""
    name = name_of(stated)
    if name is None and stated:
        text = f"host: {shown(stated)} is not a name or address with a port. {NOTHING_DONE} Send the server's name."
        raise Rejected(400, text)
    if name not in limits.hosts:
        text = f"host: {shown(stated)} is not a name of this server. {NOTHING_DONE} Call it by one of its names."
        raise Rejected(421, text)
    origin = exchange.header(b"origin")
    if origin is not None and origin not in limits.origins and origin not in _own_origins(exchange, stated):
        raise Forbidden(f"origin: {shown(origin)} may not call this server. {NOTHING_DONE} Allow it with --origin.")
    if origin is not None:
        exchange.allow(origin)
    elif _is_embedded(exchange):
        site = exchange.header(b"sec-fetch-site")
        raise Forbidden(
            f"sec-fetch-site: {shown(site)}: a page of another site may link to this server, but not call or embed "
            f"it. {NOTHING_DONE} Open the address itself, or allow the page's origin with --origin."
        )


def _own_origins(exchange: Exchange, host: str) -> tuple[str, ...]:
    """Return the origins of the server's own pages; a proxy in front of plain HTTP may speak TLS."""
    return (f"https://{host}",) if exchange.is_secure else (f"https://{host}", f"http://{host}")


def _is_embedded(exchange: Exchange) -> bool:
    """Return True if a page of another site makes its browser fetch this address other than by following a link.

    Browsers state this in every request. Another port of the same host is another site, because it may belong to
    somebody else.
    """
    if exchange.headers.get(b"sec-fetch-site") not in (b"cross-site", b"same-site"):
        return False
    follows = exchange.headers.get(b"sec-fetch-mode") == b"navigate"
    return not (
        follows and exchange.headers.get(b"sec-fetch-dest") == b"document" and exchange.method in ("GET", "HEAD")
    )
