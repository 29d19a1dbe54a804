"""Addresses: is a name on the public network, or does it lead to the server's machine or its networks?

An IPv6 address may contain an IPv4 address, to which a translator forwards the connection. The carried address
counts: `64:ff9b::7f00:1` is this machine as much as `127.0.0.1` is.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Final

from woodrat.clock import monotonic

_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_ISATAP: Final = frozenset({bytes.fromhex("00005efe"), bytes.fromhex("02005efe")})
_NEVER: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            "64:ff9b:1::/48",  # translators of a network's own choice, to wherever it likes
            "fec0::/10",  # a site's own, as they were called once
            "3fff::/20",  # for documents
            "5f00::/16",  # segment routing inside a network
            "192.88.99.0/24",  # relays of 6to4
            "192.0.0.0/24",  # protocols' own
        ),
    )
)
"""Networks without public addresses, independent of the Python version's tables."""


_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last label of text that resolvers accept as an address, such as `127.1`, `0x7f.1` and `2130706433`; no host name
ends so."""
NAME_CHARACTERS_MAX: Final = 253


class InsideAddress(OSError):
    """A name leads to the server's machine or into its networks, which webhooks must not reach."""


def connect(host: str, port: int, seconds: float, *, outside: bool) -> socket.socket:
    """Connect to a name within a time limit; with `outside` only if all its addresses are public.

    The connection goes to the checked address; the name is not resolved again.
    """
    end = monotonic() + seconds
    places = [str(found[4][0]) for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    if outside and not all(map(is_outside, places)):
        raise InsideAddress(host)
    problem: OSError = TimeoutError(host)
    for place in places:
        left = end - monotonic()
        if left <= 0:
            break
        try:
            return socket.create_connection((place, port), left)
        except OSError as error:
            problem = error
    raise problem


def is_outside(place: str) -> bool:
    """Return True if an address, and every address that it carries, is public."""
    found = ipaddress.ip_address(place.partition("%")[0])
    if isinstance(found, IPv4Address):
        return _is_public(found)
    # three notations of IPv4-mapped addresses; Python's own properties differ between versions
    stands = found.ipv4_mapped is not None or found in _NAT64 or found.sixtofour is not None
    return all(map(_is_public, _carried(found))) and (stands or _is_public(found))


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the IPv4 addresses that an IPv6 address may contain."""
    packed = address.packed
    last = IPv4Address(packed[12:])
    if address.ipv4_mapped is not None:
        yield address.ipv4_mapped
    elif address in _NAT64 or address in _COMPATIBLE:
        yield last
    if address.sixtofour is not None:
        yield address.sixtofour
    if address.teredo is not None:
        yield from address.teredo
    if packed[8:12] in _ISATAP:
        yield last


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    never = any(address.version == network.version and address in network for network in _NEVER)
    return address.is_global and not (never or address.is_multicast or address.is_reserved or address.is_unspecified)


def is_sound(host: str) -> bool:
    """Return True if a lower-case host is a name, or an address in its one usual spelling.

    Resolvers accept many spellings of an address, and a check by text alone would take them for names.
    """
    labels = host.split(".")
    if not _NUMBER.fullmatch(labels[-1]) and ":" not in host:
        return len(host) <= NAME_CHARACTERS_MAX and all(map(_LABEL.fullmatch, labels))
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = isinstance(address, IPv6Address) and (address.ipv4_mapped is not None or address.scope_id is not None)
    return str(address) == host and not mapped


def is_named_inside(host: str) -> bool:
    """Return True if a name alone shows that it is internal; other names are resolved and checked at every delivery."""
    try:
        return not is_outside(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return name == "localhost" or name.endswith((".localhost", ".local", ".internal", ".home.arpa", ".lan"))
