"""Values made up anew by every run are recognised; whatever may matter is not."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from woodrat.compare.noise import DURATION, RANDOM_ID, TIME, steady, volatile_kind


@pytest.mark.parametrize(
    ("path", "first", "second", "kind"),
    [
        ("id", str(uuid.UUID(int=7)), "0b7c1fb4-26f0-4f6e-a0a1-5b9b7f6f7c11", RANDOM_ID),
        ("a.b[2].tool_call_id", "call_8Jx2mPqRs91", "call_Zz71kkLm0aa", RANDOM_ID),
        ("", "Done (request 4f9a0c1b2d3e4f55).", "Done (request 99aa0c1b2d3e4f00).", RANDOM_ID),
        ("created", "2026-01-05T09:00:00Z", "2026-01-06T10:11:12.123+02:00", TIME),
        ("note", "written 2026-01-05 09:00:00", "written 2026-01-05 09:00:07", TIME),
        ("created", 1_767_600_000, 1_767_700_123, TIME),
        ("createdAt", 1_767_600_000_123, 1_767_700_123_456, TIME),
        ("durationMs", 12, 4_012.5, DURATION),
        ("responseTime", 3, 4, DURATION),
        ("request_id", "a1b2c3", "zz9-17", RANDOM_ID),
        # what may matter
        ("id", "ZFA04Y", "K67C4W", None),
        ("order_id", "#W2378156", "#W9502127", None),
        ("date", "2026-01-05", "2026-01-06", None),
        ("amount", 1_767_600_000, 1_767_700_000, None),
        ("score", 580, 720, None),
        ("user", "call_center", "call_agent", None),
        ("word", "deadbeefcafe", "facadedecade", None),
        ("created", 5, 6, None),
        ("text", "see 2026-01-05T09:00:00Z: approved", "see 2026-01-06T09:00:00Z: rejected", None),
        ("flag", True, False, None),
        ("gone", "0b7c1fb4-26f0-4f6e-a0a1-5b9b7f6f7c11", None, None),
        ("mixed", "0b7c1fb4-26f0-4f6e-a0a1-5b9b7f6f7c11", "2026-01-05T09:00:00Z", None),
    ],
)
def test_what_is_volatile(path: str, first: Any, second: Any, kind: str | None) -> None:
    """Random ids, times and durations are; order numbers, dates, amounts, scores and words are not."""
    assert volatile_kind(path, first, second) == kind
    assert volatile_kind(path, second, first) == kind


def test_a_value_is_steadied_wherever_it_is_volatile() -> None:
    """Two values that differ only in what is volatile become one; nothing else is touched."""
    one: dict[str, Any] = {"a": ["call_8Jx2mPqRs91", 5], "at": "2026-01-05T09:00:00Z", "b": {"c": "Girona"}}
    two: dict[str, Any] = {"a": ["call_Zz71kkLm0aa", 5], "at": "2026-02-05T09:00:00Z", "b": {"c": "Girona"}}
    assert steady(one) == steady(two) != one
    assert steady({"b": {"c": "Girona", "n": 1}}) == {"b": {"c": "Girona", "n": 1}}
