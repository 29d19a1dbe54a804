"""Times in words mean one instant, by the clock that is handed in."""

from __future__ import annotations

import pytest

from woodrat.canon import moment_words

NOW = "2026-11-17T01:15:30.250000Z"
"""A Tuesday."""


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("now", NOW),
        ("today", "2026-11-17T00:00:00.000000Z"),
        ("yesterday", "2026-11-16T00:00:00.000000Z"),
        ("Yesterday", "2026-11-16T00:00:00.000000Z"),
        ("2d", "2026-11-15T01:15:30.250000Z"),
        ("2d ago", "2026-11-15T01:15:30.250000Z"),
        ("12h", "2026-11-16T13:15:30.250000Z"),
        ("30m", "2026-11-17T00:45:30.250000Z"),
        ("1w", "2026-11-10T01:15:30.250000Z"),
        ("last monday", "2026-11-16T00:00:00.000000Z"),
        ("last tuesday", "2026-11-10T00:00:00.000000Z"),
        ("last wednesday", "2026-11-11T00:00:00.000000Z"),
        ("last sunday", "2026-11-15T00:00:00.000000Z"),
        ("2024-02-29", "2024-02-29T00:00:00.000000Z"),
        ("2023-02-29", None),
        ("last", None),
        ("last month", None),
        ("999999w", None),
        ("tomorrow", None),
        ("12", None),
        ("", None),
    ],
)
def test_words_mean_a_time(text: str, meant: str | None) -> None:
    """Days are midnights of UTC, lengths count back from now, and what is none of these means nothing."""
    assert moment_words.resolve(text, NOW) == meant
