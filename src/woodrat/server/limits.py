"""Limits: the resources of the server that a caller may use."""

from __future__ import annotations

from typing import Final

from woodrat.records import dataclass

READERS: Final = 4
"""Number of threads that read."""
RECALLERS: Final = 2
"""Number of threads for recalls, which no other read waits for."""
FOLLOWS_PER_KEY: Final = 256
"""Most open streams of one key that follow a log."""
FOLLOWS_PER_TENANT: Final = 1_024
"""Most open streams of one tenant that follow a log."""
FOLLOWS_MAX: Final = 8_192
"""Most open streams of all tenants that follow a log."""


@dataclass(frozen=True, slots=True)
class Places:
    """Places for one kind of work.

    No tenant has all of them, however many keys it has. The queue reserves room for a key of another tenant.
    """

    running_max: int
    """Most running at once."""
    running_per_key: int
    """Most running at once for one key."""
    waiting_max: int
    """Most waiting, of all keys."""
    waiting_per_key: int
    """Most queued calls of one key; with 0, a call beyond the running ones is refused at once."""
    running_per_tenant: int | None = None
    """Most running calls of one tenant; default: all places but one (at least one)."""

    @property
    def tenant_running_max(self) -> int:
        """Most running at once for one tenant."""
        return self.running_per_tenant or max(1, self.running_max - 1)

    @property
    def tenant_waiting_max(self) -> int:
        """Most queued calls of one tenant: the queue minus one key's share, for another tenant."""
        return max(self.waiting_per_key, self.waiting_max - self.waiting_per_key)


@dataclass(frozen=True, slots=True)
class Limits:
    """The resources of the server that a caller may use."""

    body_bytes_max: int = 64 * 1_048_576
    """Longest body of a call that writes, unpacked."""
    values_max: int = 1_000_000
    """Most values in the body of a call that writes: members, elements and their contents."""
    read_body_bytes_max: int = 4 * 1_048_576
    """Longest body of a call that reads, or of a key that may only read."""
    read_values_max: int = 200_000
    """Most values in such a body."""
    bodies_bytes_max: int = 512 * 1_048_576
    """Most bytes of bodies in memory, of all callers."""
    import_bytes_max: int = 1_024 * 1_048_576
    """Longest part of another log per call; it is spooled to a file."""
    wait_seconds: float = 30.0
    """Time limit for a body to arrive."""
    read_seconds: float = 60.0
    """Time limit for reading an answer."""
    take_seconds: float = 60.0
    """Timeout for a connection whose client does not read a long answer."""
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Host names the server answers to; browsers get nothing under other names."""
    origins: tuple[str, ...] = ()
    """Additional origins whose pages may call the server."""
    proxied: bool = False
    """True if a proxy in front states the host (`X-Forwarded-Host`), the scheme (`X-Forwarded-Proto`), the client
    (`X-Forwarded-For`) and the request id (`X-Request-Id`); otherwise these headers are ignored."""
    local: bool = False
    """True if only this machine can call, not even through a proxy: then webhooks may lead to it as well."""
    calls_per_second: int | None = None
    """Calls a key may make per second, on average; a burst may be ten times that."""
    reads: Places = Places(running_max=READERS, running_per_key=2, waiting_max=2_048, waiting_per_key=256)
    """Reads that a thread answers."""
    recalls: Places = Places(running_max=RECALLERS, running_per_key=1, waiting_max=256, waiting_per_key=32)
    """Recalls, which have threads of their own."""
    heavy_reads: Places = Places(running_max=2, running_per_key=1, waiting_max=32, waiting_per_key=3)
    """Heavy reads (`server/heavy_reads.py`)."""
    heavy_writes: Places = Places(running_max=1, running_per_key=1, waiting_max=8, waiting_per_key=1)
    """Heavy writes, which block all other writers."""
    long_writes: Places = Places(running_max=2, running_per_key=1, waiting_max=256, waiting_per_key=16)
    """Writes of many records, which delay other writers."""
    exports: Places = Places(running_max=16, running_per_key=2, waiting_max=32, waiting_per_key=2)
    """Logs sent whole."""
    follows: Places = Places(FOLLOWS_MAX, FOLLOWS_PER_KEY, 0, 0, FOLLOWS_PER_TENANT)
    """Streams that follow logs, and calls that wait for new entries."""
    bodies: Places = Places(running_max=64, running_per_key=2, waiting_max=256, waiting_per_key=8)
    """Long bodies in progress."""
    writes_waiting_max: int = 4_096
    """Most writes that wait for their commit, of all keys."""
    writes_waiting_per_key: int = 1_024
    """Most writes of one key that wait for their commit; the writes of one tenant leave room for as many."""
