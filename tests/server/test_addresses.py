"""Where a name leads: addresses that carry another are judged by it. Nothing here asks the network."""

from __future__ import annotations

import pytest

from woodrat.server.addresses import InsideAddress, connect, is_named_inside, is_outside, is_sound

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


SOUND = ["hooks.example.org", "a", "xn--bcher-kva.example", "1.example", "7f.example", "_x.example", "203.0.113.7"]
SOUND += ["2001:db8::7", "::1", "127.0.0.1", "0x7f.1.example", "a" * 63 + ".example"]
ODD = ["2130706433", "0x7f.1", "0x7f000001", "0x", "0177.0.0.1", "127.1", "127.0.1", "127.000.000.001", "1.2.3.4.5"]
ODD += ["127.0.0.1.", "localhost.", "example.org..", ".example.org", "a..b", "256.1.1.1", "example.0x1", "example.1"]
ODD += [
    "::ffff:7f00:1",
    "::ffff:127.0.0.1",
    "0:0:0:0:0:0:0:1",
    "2001:DB8::7",
    "fe80::1%eth0",
    "-a.example",
    "a-.example",
]
ODD += ["a b", "a%31", "\uff11\uff12\uff17.0.0.1", "127\u30020.0.1", "b\u00fccher.example", "", "a" * 64, "a.b" * 100]


def test_a_host_is_a_name_or_an_address_in_its_usual_spelling() -> None:
    """Every other spelling that some resolver takes for an address is none: numbers, short, octal and wide digits."""
    assert [host for host in SOUND if not is_sound(host)] == []
    assert [host for host in ODD if is_sound(host)] == []


def test_what_a_resolver_takes_for_an_address_is_judged_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that got by, or a name that leads elsewhere when it is sent to, is judged by where it leads then."""
    for host in ("2130706433", "0x7f.1", "0177.0.0.1", "127.1"):
        with pytest.raises(InsideAddress):
            connect(host, 443, 1.0, outside=True)
    asked: list[str] = []

    def lookup(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        return [(2, 1, 6, "", ("8.8.8.8", port)), (2, 1, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr("woodrat.server.addresses.socket.getaddrinfo", lookup)
    with pytest.raises(InsideAddress):
        connect("rebinding.example", 443, 1.0, outside=True)
    assert asked == ["rebinding.example"]
