"""Limits: what a stranger may take of the server."""

from __future__ import annotations

from typing import Final

from woodrat.records import dataclass

READERS: Final = 4
"""How many threads read."""
RECALLERS: Final = 2
"""How many threads answer recalls, which no other read waits for."""
FOLLOWS_PER_KEY: Final = 256
"""How many streams one key may have open that follow a log."""
FOLLOWS_PER_TENANT: Final = 1_024
"""How many streams all keys of one tenant may have open that follow a log."""
FOLLOWS_MAX: Final = 8_192
"""How many streams that follow a log are open, of all tenants together."""


@dataclass(frozen=True, slots=True)
class Places:
    """How many places there are for one kind of work.

    No tenant has all of them, however many keys it has. What waits leaves room for another tenant's key as well.
    """

    running_max: int
    """How many run at once."""
    running_per_key: int
    """How many of one key run at once."""
    waiting_max: int
    """How many wait, of all keys together."""
    waiting_per_key: int
    """How many of one key wait; where none does, one too many is refused at once."""
    running_per_tenant: int | None = None
    """How many of one tenant run at once; by default all places but one, and one where there is only one."""

    @property
    def tenant_running_max(self) -> int:
        """How many of one tenant run at once."""
        return self.running_per_tenant or max(1, self.running_max - 1)

    @property
    def tenant_waiting_max(self) -> int:
        """How many of one tenant wait: all but as many as one key of another tenant may have waiting."""
        return max(self.waiting_per_key, self.waiting_max - self.waiting_per_key)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a stranger may take of the server."""

    body_bytes_max: int = 64 * 1_048_576
    """Longest body of a call that writes, unpacked."""
    values_max: int = 1_000_000
    """Most values in the body of a call that writes: members, elements and what they hold."""
    read_body_bytes_max: int = 4 * 1_048_576
    """Longest body of a call that reads, or of a key that may do no more than read."""
    read_values_max: int = 200_000
    """Most values in such a body."""
    bodies_bytes_max: int = 512 * 1_048_576
    """How many bytes of bodies are held at once, of all callers together."""
    import_bytes_max: int = 1_024 * 1_048_576
    """Longest part of another log that is taken in at once; it waits in a file."""
    wait_seconds: float = 30.0
    """How long a body may take to arrive."""
    read_seconds: float = 60.0
    """How long reading what is to be answered may take."""
    take_seconds: float = 60.0
    """How long a caller may take nothing of a long answer before the connection is closed."""
    hosts: tuple[str, ...] = ("localhost", "127.0.0.1", "[::1]")
    """Names the server answers to; a page of another name in a browser gets nothing."""
    origins: tuple[str, ...] = ()
    """Further origins whose pages may call."""
    proxied: bool = False
    """Whether a proxy in front says under which name it was called (`X-Forwarded-Host`), over what
    (`X-Forwarded-Proto`), by whom (`X-Forwarded-For`), and what it calls a request (`X-Request-Id`); else nobody is
    believed."""
    local: bool = False
    """Whether nobody but this machine can call, not even through a proxy: then webhooks may lead to it as well."""
    calls_per_second: int | None = None
    """How many calls a key may make a second, on average; a burst may be ten times that."""
    reads: Places = Places(running_max=READERS, running_per_key=2, waiting_max=2_048, waiting_per_key=256)
    """Reads that a thread answers."""
    recalls: Places = Places(running_max=RECALLERS, running_per_key=1, waiting_max=256, waiting_per_key=32)
    """Recalls, which have threads of their own."""
    heavy_reads: Places = Places(running_max=2, running_per_key=1, waiting_max=32, waiting_per_key=3)
    """Heavy reads (`server/heavy_reads.py`)."""
    heavy_writes: Places = Places(running_max=1, running_per_key=1, waiting_max=8, waiting_per_key=1)
    """Heavy writes, for which all other writers wait."""
    long_writes: Places = Places(running_max=2, running_per_key=1, waiting_max=256, waiting_per_key=16)
    """Writes of many records, for which other writers wait."""
    exports: Places = Places(running_max=16, running_per_key=2, waiting_max=32, waiting_per_key=2)
    """Logs that are sent whole."""
    follows: Places = Places(FOLLOWS_MAX, FOLLOWS_PER_KEY, 0, 0, FOLLOWS_PER_TENANT)
    """Followers of logs, and those who wait for a log to go on."""
    bodies: Places = Places(running_max=64, running_per_key=2, waiting_max=256, waiting_per_key=8)
    """Long bodies that are taken."""
    writes_waiting_max: int = 4_096
    """How many writes wait for their commit, of all keys together."""
    writes_waiting_per_key: int = 1_024
    """How many writes of one key wait for their commit; those of one tenant leave room for as many."""
