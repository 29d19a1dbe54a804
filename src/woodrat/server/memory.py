"""Memory: what a process that serves keeps at hand, bounded once for all its connections and threads.

Each connection to the database has a page cache of its own, and each thread a heap of its own that keeps what it freed.
What is a help to a program with one of each adds up in a server.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Final

CACHE_BYTES_MAX: Final = 32 * 1_048_576
"""How many bytes of pages of the database all connections keep together."""
ENTITIES_MAX: Final = 2_000
"""How many entities of a tenant the connection that writes keeps at hand: 6 kB each, with their merge states."""
HEAPS_MAX: Final = 2
"""How many heaps all threads share."""
_ARENA_MAX: Final = -8
"""What glibc calls the number of heaps (`M_ARENA_MAX`)."""


def bound() -> None:
    """Bound what this process keeps at hand; before threads are started."""
    from woodrat.engines.cache import bound_entities
    from woodrat.engines.sqlite.connection import bound_caches

    bound_caches(CACHE_BYTES_MAX)
    bound_entities(ENTITIES_MAX)
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # another C library has heaps of its own kind
            ctypes.CDLL(None).mallopt(_ARENA_MAX, HEAPS_MAX)
