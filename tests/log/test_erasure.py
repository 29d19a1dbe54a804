"""Erasure: the entry that says what was forgotten."""

from __future__ import annotations

import hashlib
import hmac
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat import Refused
from woodrat.canon import form
from woodrat.log import erasure
from woodrat.log.entry import Origin
from woodrat.log.erasure import Erasure
from woodrat.state import observation

ROOT = Path(__file__).parents[2]
MADE = Erasure(
    agent="dpo",
    erased_at="2026-01-05T09:00:00.000000Z",
    log="log_a",
    scope="entity",
    reason="art. 17",
    positions=((3, 3), (5, 6)),
    macs=("aa", "bb"),
    names=("cc",),
    links={"aa": ("obs_x",), "bb": "obs_y"},
)


def block(page: str, name: str) -> dict[str, str]:
    """Return the lines of a worked example."""
    found = re.search(rf"```{name}\n(.*?)```", (ROOT / "docs/formats" / page).read_text("utf-8"), re.DOTALL)
    assert found is not None
    return dict(line.split(maxsplit=1) for line in found[1].splitlines())


def test_the_format_page_shows_a_real_erasure() -> None:
    """The worked example is canonical, and its MACs are those of the record and the name it speaks of."""
    shown = block("erasure.md", "erasure")
    key, body = bytes.fromhex(shown["key"]), shown["body"].encode()
    found = erasure.stored(body)
    assert found.body() == body
    said = observation.admit(block("observation.md", "observation")["body"].encode())
    assert found.macs == (erasure.record_mac(key, "observation", said.body),)
    assert found.names == tuple(sorted(erasure.name_mac(key, name) for name in ("contact/Ana Rivera", "log_a")))
    digest = hashlib.sha256(b"woodrat/observation/0\n" + said.body).digest()
    assert found.macs[0] == hmac.new(key, digest, "sha256").hexdigest()


def test_an_erasure_reads_back_as_written() -> None:
    """A body is read as the erasure that made it, and has one spelling."""
    assert erasure.stored(MADE.body()) == MADE
    assert form.serialise(form.decode(MADE.body())) == MADE.body()


@given(st.sets(st.integers(0, 50)))
def test_ranges_hold_exactly_the_positions(positions: set[int]) -> None:
    """Ranges are sorted, apart from each other, and hold the positions and no others."""
    found = erasure.ranges(positions)
    assert {p for first, last in found for p in range(first, last + 1)} == positions
    assert all(one[1] + 1 < two[0] for one, two in pairwise(found))
    made = Erasure("a", MADE.erased_at, "l", "agent", "r", found, (), ())
    assert all(made.holds(p) == (p in positions) for p in range(52))
    assert erasure.stored(made.body()) == made


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("agent", 1),
        ("reason", None),
        ("macs", "aa"),
        ("names", [1]),
        ("positions", [[2, 1]]),
        ("positions", [[1, 2], [3, 4]]),
        ("positions", [[5, 5], [1, 1]]),
        ("positions", [[-1, 0]]),
        ("positions", [1]),
        ("positions", {}),
        ("links", {"aa": 1}),
        ("links", []),
        ("more", 1),
    ],
)
def test_another_shape_is_refused(part: str, value: Any) -> None:
    """A body that is no erasure is refused with the part that is wrong."""
    body: Any = form.decode(MADE.body())
    with pytest.raises(Refused, match=part if part != "more" else "expected the body of an erasure"):
        erasure.stored(form.serialise({**body, part: value}))


def test_positions_are_those_of_a_log_by_name() -> None:
    """An erasure names positions here if it was written here, or as far as this log went by the name it speaks of."""
    asked: list[str] = []

    def reach(log: str) -> int | None:
        asked.append(log)
        return {"log_before": 5}.get(log)

    ranges = [(1, 2), (4, 9), (12, 14)]
    here = erasure.named(ranges, "log_a", "log_a", 20, None, reach)
    assert (here, asked) == (ranges, [])
    assert erasure.named(ranges, "log_a", "log_a", 10, None, reach) == [(1, 2), (4, 9)]
    origin = Origin("log_before", 30)
    assert erasure.named(ranges, "log_before", "log_a", 20, origin, reach) == [(1, 2), (4, 5)]
    assert erasure.named(ranges, "log_far", "log_a", 20, Origin("log_far", 30), reach) == []
    assert asked == ["log_before", "log_far"]
