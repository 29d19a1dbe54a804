"""Align: two sequences side by side, with as many equal items beside each other as their order allows."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

Pair = tuple[int | None, int | None]
"""Places of two items side by side; none where one has no partner."""


def align(a: Sequence[Hashable], b: Sequence[Hashable]) -> list[Pair]:
    """Return two sequences side by side with as many equal items beside each other as their order allows.

    Equal beginnings are taken as they are, so that of a loop the last turns are the ones without a partner. The rest
    is a longest common subsequence, found a row of bits at a time: one long addition for each item of `b`, whatever
    repeats.
    """
    start = 0
    while start < len(a) and start < len(b) and a[start] == b[start]:
        start += 1
    places: dict[Hashable, int] = {}
    for place, item in enumerate(a[start:]):
        places[item] = places.get(item, 0) | 1 << place
    width = len(a) - start
    every = (1 << width) - 1
    row, rows = every, []
    for item in b[start:]:
        hit = row & places.get(item, 0)
        row = ((row + hit) | (row - hit)) & every
        rows.append(row)
    found: list[Pair] = []
    i, j = width, len(rows)
    while i and j:
        bit = 1 << (i - 1)
        if rows[j - 1] & bit:
            i -= 1
            found.append((start + i, None))
        else:
            j -= 1
            if j and not rows[j - 1] & bit:
                found.append((None, start + j))
            else:
                i -= 1
                found.append((start + i, start + j))
    found += [(None, start + place) for place in reversed(range(j))]
    found += [(start + place, None) for place in reversed(range(i))]
    return [(place, place) for place in range(start)] + found[::-1]
