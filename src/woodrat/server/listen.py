"""Listening: the address of a server and its certificate, checked before it starts."""

from __future__ import annotations

import errno
import ipaddress
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING

from woodrat.errors import Fault, Refused, Unavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NOT_STARTED = "Nothing was started."


@contextmanager
def reserved(address: str, port: int) -> Iterator[None]:
    """Reserve a port for the workers of this server, even while none of them is listening."""
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        keeper.bind((address, port))  # it does not listen, so no call arrives here
        yield


def place(host: str, port: int) -> tuple[str, int]:
    """Return the local address for a host name, and a free port; port 0 picks any.

    Several processes may listen on one port, and then each gets some of the calls. A port in use raises `Unavailable`,
    so that two ledgers never share a port by accident.
    """
    address = address_of(host)
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                text = f"{spelled(host, port)} is in use by another process. {NOT_STARTED} "
                raise Unavailable(text + "Stop that process, or use another --port.", {"port": port}) from error
            problem = f"{spelled(host, port)} cannot be listened on ({error.strerror})"
            remedy = "Name an address of this machine, and a port that this user may open."
            raise Refused([Fault("--host", problem, remedy)], NOT_STARTED) from error
        return address, int(probe.getsockname()[1])


def address_of(host: str) -> str:
    """Return the address of a host; an address is returned without a look-up."""
    bare = host.strip("[]")
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        pass
    try:
        found = socket.getaddrinfo(bare, None, type=socket.SOCK_STREAM)
    except (socket.gaierror, UnicodeError) as error:
        remedy = "Name an address of this machine, such as 127.0.0.1."
        raise Refused([Fault("--host", f"{host} is not an address ({error})", remedy)], NOT_STARTED) from error
    # IPv4 first: clients that say localhost mostly connect to it.
    return str(min(found, key=lambda item: item[0] != socket.AF_INET)[4][0])


def spelled(host: str, port: int) -> str:
    """Return an address as written in a URL."""
    return f"[{host}]:{port}" if ":" in host.strip("[]") and not host.startswith("[") else f"{host}:{port}"


def certificate_faults(cert: Path, key: Path) -> list[Fault]:
    """Return the faults of a certificate and its key."""
    import ssl

    faults = []
    for name, path in (("--tls-cert", cert), ("--tls-key", key)):
        try:
            path.read_bytes()
        except OSError as error:
            faults.append(Fault(name, f"cannot read {path}: {error.strerror}", "Name a PEM file that can be read."))
    if faults:
        return faults
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key, password="")
    except (ssl.SSLError, ValueError) as error:
        told = getattr(error, "reason", None) or str(error)
        remedy = "Give a certificate in PEM and its own key, without a passphrase."
        faults.append(Fault("--tls-cert", f"{cert} and {key} do not belong together ({told})", remedy))
    return faults
