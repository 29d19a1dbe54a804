"""Memory: caches of a serving process, limited once for all its connections and threads.

Each connection to the database has its own page cache, and each thread its own heap that keeps freed memory. That helps
a program with one of each, and adds up in a server.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Final

CACHE_BYTES_MAX: Final = 32 * 1_048_576
"""Bytes of database pages that all connections cache together."""
ENTITIES_MAX: Final = 2_000
"""Entities of a tenant that the writing connection caches: 6 kB each, with their merge states."""
HEAPS_MAX: Final = 2
"""Number of heaps that all threads share."""
_ARENA_MAX: Final = -8
"""glibc's option for the number of heaps (`M_ARENA_MAX`)."""


def bound() -> None:
    """Limit the caches of this process; call it before threads are started."""
    from woodrat.engines.cache import bound_entities
    from woodrat.engines.sqlite.connection import bound_caches

    bound_caches(CACHE_BYTES_MAX)
    bound_entities(ENTITIES_MAX)
    if sys.platform == "linux":
        import ctypes

        with contextlib.suppress(OSError, AttributeError):  # other C libraries manage their heap differently
            ctypes.CDLL(None).mallopt(_ARENA_MAX, HEAPS_MAX)
