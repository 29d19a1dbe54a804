"""Addresses: whether a name leads out to the public network, or to the server's machine or its networks.

An address of version 6 may carry one of version 4, to which a translator on the way hands the connection over. It is
judged by what it carries: `64:ff9b::7f00:1` is this machine as much as `127.0.0.1` is.
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
"""Networks that are nobody's public address, whatever the standard library of this version says of them."""


_LABEL: Final = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0x[0-9a-f]*")
"""The last part of what resolvers take for an address, such as `127.1`, `0x7f.1` and `2130706433`; no name ends so."""
NAME_CHARACTERS_MAX: Final = 253


class InsideAddress(OSError):
    """A name leads to the server's machine or into its networks, where nobody from outside is to send anything."""


def connect(host: str, port: int, seconds: float, *, outside: bool) -> socket.socket:
    """Connect to a name wherever it leads, within a time in all; with `outside` only if no address of it is inside.

    What was looked at is what is connected to: the name is not looked up again.
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
    """Return whether an address, and every other that it carries, is one of the public network."""
    found = ipaddress.ip_address(place.partition("%")[0])
    if isinstance(found, IPv4Address):
        return _is_public(found)
    # Three forms stand for an address of version 4; what Python says of them besides differs from version to version.
    stands = found.ipv4_mapped is not None or found in _NAT64 or found.sixtofour is not None
    return all(map(_is_public, _carried(found))) and (stands or _is_public(found))


def _carried(address: IPv6Address) -> Iterator[IPv4Address]:
    """Yield the addresses of version 4 that one of version 6 may stand for."""
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
    """Return whether a host, in lower case, is a name, or an address in its one usual spelling.

    Resolvers take many spellings for an address, and whoever judges by the text alone takes them for names.
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
    """Return whether a name says by itself that it is inside; where others lead is looked at for every delivery."""
    try:
        return not is_outside(host)
    except ValueError:
        name = host.rstrip(".").lower()
        return name == "localhost" or name.endswith((".localhost", ".local", ".internal", ".home.arpa", ".lan"))
