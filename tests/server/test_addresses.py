"""Where a name leads: addresses that carry another are judged by it. Nothing here looks a name up or connects."""

from __future__ import annotations

import pytest

from woodrat.server.addresses import is_named_inside, is_outside

OUTSIDE = (
    "8.8.8.8",
    "93.184.216.34",
    "2606:4700::1111",
    "::ffff:8.8.8.8",
    "64:ff9b::8.8.8.8",
    "2002:808:808::1",
)
INSIDE = (
    "127.0.0.1",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "0.0.0.0",
    "192.0.0.8",
    "192.88.99.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1%eth0",
    "fd00::1",
    "fec0::1",
    "ff02::1",
    "2001:db8::1",
    "::127.0.0.1",
    "::10.0.0.1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::127.0.0.1",
    "64:ff9b::10.0.0.1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::8.8.8.8",
    "64:ff9b:1:7f00:0:100::",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:c0a8:101::1",
    "2001:0:a00:1:0:fbfe:f7f7:f7f7",
    "2001:0:53aa:64c:0:fbfe:80ff:fffe",
    "2606:4700::5efe:7f00:1",
    "2606:4700::200:5efe:a00:1",
)


@pytest.mark.parametrize("place", OUTSIDE)
def test_the_public_network_is_outside(place: str) -> None:
    """A public address is outside, also one that carries a public address of version 4."""
    assert is_outside(place)
    assert not is_named_inside(place)


@pytest.mark.parametrize("place", INSIDE)
def test_this_machine_and_its_networks_are_inside(place: str) -> None:
    """What is not public is inside: also behind NAT64, 6to4, Teredo, ISATAP, and mapped or compatible addresses."""
    assert not is_outside(place)
    assert is_named_inside(place)


@pytest.mark.parametrize("name", ["localhost", "LOCALHOST.", "db.local", "metadata.google.internal", "nas.lan."])
def test_some_names_say_that_they_are_inside(name: str) -> None:
    """A name of this machine or of its networks is inside before it is looked up."""
    assert is_named_inside(name)


def test_other_names_are_looked_up() -> None:
    """Of other names nothing is known before they are looked up."""
    assert not is_named_inside("hooks.example.org")
