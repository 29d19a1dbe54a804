"""Progress: how those who do something long say how far they are."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], object]
"""Is told how much is done, and how much there is to do."""
