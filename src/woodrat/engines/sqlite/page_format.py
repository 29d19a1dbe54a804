"""Pages: which bytes of a database file hold something, and which are free, as SQLite's file format defines it.

Everything here only reads. A page whose free bytes do not add up to what it says itself is not understood, and says so:
whoever writes by what is returned here must never touch a byte that SQLite reads.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct, unpack_from
from typing import Final, NamedTuple

HEADER_BYTES: Final = 100
"""What the first page begins with, before its own part of the schema."""
MAGIC: Final = b"SQLite format 3\0"
LOCK_BYTE: Final = 1 << 30
"""The page with this byte is never used."""
PAGES_MAX: Final = 1 << 25
"""From here on the number of a page could begin with the same byte as a page of a tree."""

INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
_KINDS: Final = frozenset({INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF})
_INTERIOR: Final = frozenset({INDEX_INTERIOR, TABLE_INTERIOR})
_CELL_BYTES_MIN: Final = 4
_NUMBER: Final = Struct(">I")
_TREE: Final = Struct(">BHHHB")
_PAIR: Final = Struct(">HH")

Read = Callable[[int, int, int], bytes]
"""Returns bytes of a page: its number, where they begin, how many."""
Span = tuple[int, int]
"""From one byte of a page to before another."""


class UnknownFormat(Exception):
    """The file is not laid out as it should be; nothing of the page was changed."""


class Chain(NamedTuple):
    """The rest of a row that does not fit into its page, on pages of its own."""

    first: int
    """The first of these pages."""
    size: int
    """How many bytes they hold."""


class Header(NamedTuple):
    """What the file says about itself."""

    page_size: int
    pages: int
    """How many pages it has."""
    free_first: int
    """The first page of the list of free pages; 0 if there is none."""
    free_count: int
    """How many pages are free."""


def header_of(data: bytes) -> Header:
    """Read the beginning of a file; raise `UnknownFormat` for one with a layout that is not followed here."""
    if len(data) < HEADER_BYTES or not data.startswith(MAGIC):
        raise UnknownFormat("it does not begin as a database")
    size = int.from_bytes(data[16:18], "big")
    page_size = 65_536 if size == 1 else size
    if data[20]:
        raise UnknownFormat("pages end with reserved bytes")
    if _NUMBER.unpack_from(data, 52)[0]:
        raise UnknownFormat("it has pointer maps (auto_vacuum)")
    pages = _NUMBER.unpack_from(data, 28)[0]
    if not 0 < pages < PAGES_MAX:
        raise UnknownFormat(f"it has {pages} pages")
    return Header(page_size, pages, *unpack_from(">II", data, 32))


def free_pages(header: Header, read: Read) -> dict[int, list[Span]]:
    """Return what is free in each page of the list of free pages: all, or what follows the list's own part."""
    found: dict[int, list[Span]] = {}
    at, size = header.free_first, header.page_size
    while at:
        if not 1 < at <= header.pages or at in found:
            raise UnknownFormat(f"the list of free pages leads to page {at}")
        page = read(at, 0, size)
        following, count = unpack_from(">II", page)
        if count > size // 4 - 2:
            raise UnknownFormat(f"page {at} lists {count} free pages")
        found[at] = [(8 + 4 * count, size)]
        for leaf in unpack_from(f">{count}I", page, 8):
            if not 1 < leaf <= header.pages or leaf in found:
                raise UnknownFormat(f"the list of free pages names page {leaf}")
            found[leaf] = [(0, size)]
        at = following
    if len(found) != header.free_count:
        raise UnknownFormat(f"{len(found)} pages are free, and the file says {header.free_count}")
    return found


def is_tree(page: bytes, number: int) -> bool:
    """Return whether a page that is not free is part of a tree; otherwise it holds the rest of a row."""
    return page[HEADER_BYTES if number == 1 else 0] in _KINDS


def free_spans(page: bytes, number: int) -> tuple[list[Span], list[Chain]]:
    """Return what is free in a page of a tree, and the rests of its rows on other pages."""
    size = len(page)
    start = HEADER_BYTES if number == 1 else 0
    kind, block, count, content, fragments = _TREE.unpack_from(page, start)
    pointers = start + (12 if kind in _INTERIOR else 8)
    end = pointers + 2 * count
    content = content or 65_536
    if kind not in _KINDS or not end <= content <= size:
        raise UnknownFormat(f"page {number} has {count} cells from byte {content} on")
    chains: list[Chain] = []
    used = [(0, end)]
    used += _cells(page, unpack_from(f">{count}H", page, pointers), kind, chains)
    blocks = 0
    while block:
        if not content <= block <= size - 4:
            raise UnknownFormat(f"page {number} has a free block at {block}")
        following, length = _PAIR.unpack_from(page, block)
        if length < 4 or block + length > size or (following and following <= block + length):
            raise UnknownFormat(f"page {number} has a free block of {length} bytes at {block}")
        used.append((block, block + 4))
        blocks += length - 4
        block = following
    used.sort()
    used.append((size, size))
    spans = []
    last = free = 0
    for first, after in used:
        if first < last or after > size:
            raise UnknownFormat(f"cells of page {number} overlap at {first}")
        if first > last:
            spans.append((last, first))
            free += first - last
        last = after
    if free != content - end + blocks + fragments:
        raise UnknownFormat(f"{free} bytes of page {number} are free, and it says {content - end + blocks + fragments}")
    return spans, chains


def _cells(page: bytes, places: tuple[int, ...], kind: int, chains: list[Chain]) -> list[Span]:
    """Return where the cells of a page are; those that go on elsewhere are added to `chains`."""
    size = len(page)
    most = size - 35 if kind == TABLE_LEAF else (size - 12) * 64 // 255 - 23
    least = (size - 12) * 32 // 255 - 23
    interior, is_table = kind in _INTERIOR, kind in (TABLE_LEAF, TABLE_INTERIOR)
    found = []
    try:
        for place in places:
            at = place + 4 if interior else place
            if kind == TABLE_INTERIOR:
                while page[at] & 0x80 and at - place < 12:
                    at += 1
                found.append((place, at + 1))
                continue
            payload = page[at]
            at += 1
            if payload & 0x80:
                payload &= 0x7F
                while True:
                    byte = page[at]
                    at += 1
                    payload = payload << 7 | byte & 0x7F
                    if not byte & 0x80:
                        break
                    if payload > 1 << 40:
                        raise UnknownFormat(f"a row has {payload} bytes")
            if is_table:  # the number of the row, in at most nine bytes
                last = at + 8
                while at < last and page[at] & 0x80:
                    at += 1
                at += 1
            if payload <= most:
                at += payload
                found.append((place, at if at - place >= _CELL_BYTES_MIN else place + _CELL_BYTES_MIN))
                continue
            local = least + (payload - least) % (size - 4)
            if local > most:
                local = least
            at += local
            chains.append(Chain(_NUMBER.unpack_from(page, at)[0], payload - local))
            found.append((place, at + 4))
    except IndexError:
        raise UnknownFormat("a cell goes beyond its page") from None
    return found


def chain_end(chain: Chain, header: Header, read: Read) -> tuple[int, Span]:
    """Return the last page of a chain, and what is free in it."""
    room = header.page_size - 4
    at = chain.first
    for _ in range((chain.size - 1) // room):
        if not 1 < at <= header.pages:
            raise UnknownFormat(f"the rest of a row leads to page {at}")
        at = _NUMBER.unpack(read(at, 0, 4))[0]
    if not 1 < at <= header.pages or read(at, 0, 4) != bytes(4):
        raise UnknownFormat(f"the rest of a row does not end with page {at}")
    return at, (4 + (chain.size - 1) % room + 1, header.page_size)
