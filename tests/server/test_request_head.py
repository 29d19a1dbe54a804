"""The head of a request and the end of its body: what could be read in two ways is refused."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.server import request_head
from woodrat.server.body_framing import BrokenBody, framing
from woodrat.server.problems import Rejected
from woodrat.server.request_head import CHUNKED, parse


def head(*lines: str, first: str = "POST /v1/store?a=1 HTTP/1.1") -> bytes:
    return "\r\n".join((first, *lines)).encode("latin-1")


def test_a_plain_head_is_read() -> None:
    """Method, path, query, headers in lower case, length, and whether the connection stays."""
    found = parse(head("Host: localhost", "Content-Length:  12 ", "X-A: b:c"))
    assert (found.method, found.path, found.query) == ("POST", b"/v1/store", b"a=1")
    assert found.headers == ((b"host", b"localhost"), (b"content-length", b"12"), (b"x-a", b"b:c"))
    assert (found.length, found.keeps, found.expects, found.version) == (12, True, False, "1.1")


@pytest.mark.parametrize(
    ("lines", "keeps"),
    [(["Connection: close"], False), (["Connection: TE, Close"], False), (["Connection: keep-alive"], True)],
)
def test_a_caller_says_whether_the_connection_stays(lines: list[str], keeps: bool) -> None:
    """`close` counts wherever it stands in the list; the older version never stays."""
    assert parse(head(*lines)).keeps is keeps
    assert parse(head(*lines, first="GET / HTTP/1.0")).keeps is False


def test_an_absolute_address_says_the_host() -> None:
    """The host in the address counts, and the header of that name does not."""
    found = parse(head("Host: other", first="GET http://localhost:1/a?b HTTP/1.1"))
    assert (found.path, found.query, dict(found.headers)[b"host"]) == (b"/a", b"b", b"localhost:1")
    assert parse(head(first="GET http://localhost?b HTTP/1.1")).path == b"/"


@pytest.mark.parametrize(
    "data",
    [
        head(first="GET  / HTTP/1.1"),
        head(first="GET / HTTP/2.0"),
        head(first="GET /a b HTTP/1.1"),
        head(first="G\tT / HTTP/1.1"),
        head(first=""),
        head("Host : a"),
        head("Host"),
        head(": a"),
        head("A: b", " folded"),
        head("A: b\nB: c"),
        head("A: b\rB: c"),
        head("A: \x00"),
        head("Content-Length: 1", "Content-Length: 1"),
        head("Content-Length: 1, 1"),
        head("Content-Length: +1"),
        head("Content-Length: -1"),
        head("Content-Length: 0x1"),
        head("Content-Length: "),
        head("Content-Length: " + "9" * 19),
        head("Content-Length: 3", "Transfer-Encoding: chunked"),
        head("Transfer-Encoding: chunked", first="POST / HTTP/1.0"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(data: bytes) -> None:
    """Nothing is guessed: a proxy in front may have guessed otherwise."""
    with pytest.raises(Rejected) as raised:
        parse(data)
    assert raised.value.status == 400


def test_other_codings_and_too_many_headers_are_refused() -> None:
    """Bodies come in chunks or with a length; the number of headers is bounded."""
    for coding in ("gzip, chunked", "identity", "chunked, chunked"):
        with pytest.raises(Rejected) as raised:
            parse(head(f"Transfer-Encoding: {coding}"))
        assert raised.value.status == 501
    with pytest.raises(Rejected) as raised:
        parse(head(*(f"X-{number}: 1" for number in range(request_head.HEADERS_MAX + 1))))
    assert raised.value.status == 431
    assert parse(head("Transfer-Encoding: Chunked")).length == CHUNKED


def taken(length: int, data: bytes, cuts: list[int]) -> tuple[bytes, bytes, bool]:
    """Return the body in some bytes that arrive in pieces, what follows it, and whether it ended."""
    found = framing(length)
    body = rest = b""
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    for start, end in itertools.pairwise(places):
        if found.done:
            rest += data[start:end]
        elif end > start:
            parts, after = found.take(data[start:end])
            body += b"".join(parts)
            rest += after
    return body, rest, found.done


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=5),
    st.lists(st.integers(0, 400), max_size=6),
    st.binary(max_size=8),
)
def test_a_body_ends_where_it_does_however_it_is_cut(chunks: list[bytes], cuts: list[int], after: bytes) -> None:
    """In chunks or with a length, in any pieces: the same body, and what follows belongs to the next request."""
    whole = b"".join(chunks)
    assert taken(len(whole), whole + after, cuts) == (whole, after, True)
    sent = b"".join(b"%x;a=b\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\nX: y\r\n\r\n"
    assert taken(CHUNKED, sent + after, cuts) == (whole, after, True)
    assert taken(CHUNKED, sent[:-1], cuts)[2] is False


@pytest.mark.parametrize(
    "data",
    [
        b"ZZ\r\n",
        b"-1\r\n",
        b"\r\n",
        b"3\nabc",
        b"3\r\nabcd\r\n",
        b"3 3\r\n",
        b"1" * 17 + b"\r\n",
        b"1;" + b"a" * 300,
        b"0\r\n" + b"a: b\r\n" * 3_000,
    ],
)
def test_chunks_that_are_none_are_refused(data: bytes) -> None:
    """Sizes are hexadecimal digits, lines end properly, and nothing is without a bound."""
    with pytest.raises(BrokenBody):
        framing(CHUNKED).take(data)
