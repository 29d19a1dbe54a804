"""A case: one call of one verb, on a ledger that is built at three sizes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.growth.slope import GOALS
from woodrat.api.ledger import Ledger

Facts = Mapping[str, Any]
"""What a call needs to know of a ledger, as JSON: `size`, and the names and ids that its builder or `prepare` chose."""
Call = Callable[[Any, Facts, int], object]
"""Calls the verb on a ledger, or through a client, for the nth time; raises when the answer is not as expected."""

LIBRARY, REST, MCP = "library", "rest", "mcp"
"""Through which surface a verb is called."""


@dataclass(frozen=True, slots=True)
class World:
    """A kind of ledger that is built at three sizes."""

    name: str
    """What its files are called."""
    unit: str
    """What its size counts."""
    sizes: tuple[int, int, int]
    """The sizes of a full run."""
    build: Callable[[Path, int], Facts]
    """Makes the ledger at a path at a size; returns what calls need to know of it."""
    shown: Callable[[Facts, int], str]
    """Names the nth ordinary entity, of which one `show` is what pages are compared with."""
    pages_min: int = 20
    """Of how many pages the smallest ledger has enough; pages are smaller where it has not."""

    def sizes_at(self, divisor: int) -> tuple[int, ...]:
        """Return the sizes of a run that is smaller by a factor."""
        return tuple(max(2, size // divisor) for size in self.sizes)


@dataclass(frozen=True, slots=True)
class Case:
    """What is measured in one row."""

    name: str
    """The name of the row: the verb, and what it is asked."""
    verb: str
    """The verb, by its name in the library."""
    kind: str
    """`page`, `answer` or `all`, which decides the goal."""
    world: World
    """The ledger it is called on."""
    call: Call
    """The call."""
    prepare: Callable[[Ledger, Facts], Facts] | None = None
    """Makes ready what is not measured, in a process of its own; returns further facts."""
    repeats: bool = True
    """Whether the call can be made again on the same ledger; else only the first is measured."""
    is_bare: bool = False
    """Whether the ledger is as it was written; else all indexes are up to date before the first call."""
    keys: bool = False
    """Whether the ledger is opened with signing and erasure keys."""
    unit: str = "ms"
    """`ms` of the processor; `B` where the call returns a number of bytes instead."""
    surface: str = LIBRARY
    """Through which surface it is called; other than the library, `call` is handed a client of a server."""

    @property
    def goal(self) -> float:
        """The largest slope."""
        return GOALS[self.kind]
