"""Bodies are bounded while they arrive: bytes, what gzip makes of them, and values, whatever is sent."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.conftest import Start

from woodrat.server.body import MEMBERS_MAX, STEP_BYTES, GzipReader, ValueCount
from woodrat.server.keys import Keyring

JSON = {"Content-Type": "application/json"}
GZIP = {**JSON, "Content-Encoding": "gzip"}
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=30,
)


def values(value: Any) -> int:
    """Count the values of JSON as the limit means them: containers, and what stands after a comma in one."""
    if isinstance(value, dict | list):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(0, len(value) - 1) + sum(values(item) for item in inner)
    return 0


@given(value=VALUES, cuts=st.lists(st.integers(0, 200), max_size=5), indent=st.sampled_from([None, 2]))
def test_values_are_counted_in_the_bytes(value: Any, cuts: list[int], indent: int | None) -> None:
    """Text is no value however it looks, and it does not matter where the bytes are cut."""
    data = json.dumps(value, indent=indent).encode()
    places = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    count = ValueCount(10**9)
    assert all(count.take(data[start:end]) for start, end in pairwise(places))
    assert count.values == 1 + values(value)


@pytest.mark.parametrize("text", ['"\\\\",[', '"\\"",[', '"\\\\\\"",[', '"a\\\\\\\\",['])
def test_escapes_do_not_hide_values(text: str) -> None:
    """A quote after a backslash ends a text or does not, byte by byte as well as at once."""
    count = ValueCount(10)
    for byte in text.encode():
        count.take(bytes([byte]))
    assert count.values == 3
    assert not ValueCount(2).take(text.encode())


def test_gzip_is_unpacked_a_step_at_a_time() -> None:
    """However much a few bytes come to, no more than a step of it is held; the sender stops when it is enough."""
    packed = gzip.compress(b"[" * 50_000_000, 9)
    tracemalloc.start()
    steps = GzipReader().take(packed)
    assert [len(next(steps)) for _ in range(3)] == [STEP_BYTES] * 3
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * STEP_BYTES


def test_gzip_has_no_end_of_members(start: Start) -> None:
    """Members that come to nothing cost time all the same, so that there may not be many of them."""
    server = start()
    some = gzip.compress(b"")
    assert server.call("POST", "/v1/store", some * MEMBERS_MAX, headers=GZIP).json["detail"].startswith("(body)")
    many = server.call("POST", "/v1/store", some * (MEMBERS_MAX + 1), headers=GZIP)
    assert (many.status, "members" in many.json["detail"]) == (400, True)


def test_too_many_values_are_refused_before_they_are_built(start: Start) -> None:
    """A body of few bytes and many values gets 413, packed or not; one of as many bytes and one value is read."""
    server = start(values_max=1_000, body_bytes_max=1_000_000)
    many = b'{"records": [' + b"0," * 10_000 + b"0]}"
    assert server.call("POST", "/v1/store", many, headers=JSON).status == 413
    assert server.call("POST", "/v1/store", gzip.compress(many), headers=GZIP).status == 413
    lines = {"Content-Type": "application/x-ndjson"}
    assert server.call("POST", "/v1/store", b"0\n" * 10_000, headers=lines).status == 413
    text = {"records": {"entity_type": "memo", "id": "1", "text": ",[{" * 10_000}}
    assert server.call("POST", "/v1/store", text).status == 200


def test_reads_take_smaller_bodies(start: Start, keyring: Keyring) -> None:
    """A verb that reads takes less than one that writes, and so does any message of a key that may only read."""
    _, reader = keyring.create("lending", "a", ["read"])
    _, writer = keyring.create("lending", "b", ["read", "write"])
    server = start(keyring, read_body_bytes_max=1_000)
    long = {"known": {"x": "y" * 2_000}}
    assert server.call("POST", "/v1/diff-against", long, key=writer).status == 413
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": "y" * 2_000}}
    assert server.call("POST", "/mcp", message, key=reader).status == 413
    assert server.call("POST", "/mcp", message, key=writer).status == 200


def test_grants_are_checked_before_the_body(start: Start, keyring: Keyring) -> None:
    """A key without the grant is refused though its body never arrives, on every surface that takes bodies."""
    _, reader = keyring.create("lending", "a", ["read"])
    _, typed = keyring.create("lending", "b", ["read:contact"])
    server = start(keyring, wait_seconds=0.5)
    cases = [
        (reader, "/v1/store"),
        (reader, "/v1/runs"),
        (reader, "/v1/rebuild"),
        (reader, "/v1/traces"),
        (reader, "/neotoma/store"),
        (typed, "/v1/bisect"),
    ]
    for key, path in cases:
        connection = server.connect()
        connection.putrequest("POST", path)
        for name, value in {**JSON, "Authorization": f"Bearer {key}", "Content-Length": "5000000"}.items():
            connection.putheader(name, value)
        connection.endheaders(b"{")
        assert connection.getresponse().status == 403, path
        connection.close()


def test_bodies_share_a_bounded_room(start: Start) -> None:
    """Long bodies that wait hold no more than so many bytes together; what they held is free when they are gone."""
    server = start(bodies_bytes_max=300_000)
    long = {"records": {"entity_type": "memo", "id": "1", "text": "x" * 200_000}}
    assert server.call("POST", "/v1/store", long).status == 200
    assert server.app.body_reader.held.held == 0
    more = {"records": {"entity_type": "memo", "id": "1", "text": "x" * 400_000}}
    answer = server.call("POST", "/v1/store", more)
    assert (answer.status, answer.json["code"]) == (503, "unavailable")
    assert server.app.body_reader.held.held == 0
    assert server.call("POST", "/v1/store", long).status == 200
