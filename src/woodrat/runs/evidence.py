"""Evidence: the facts a decision looked at, the documents behind them, and what became of them since.

The record of a run says what was looked at; what the log says of documents and corrections is looked up by
`explain/reader.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.form import Json


@dataclass(frozen=True, slots=True)
class Document(Record):
    """A source that an observation came from."""

    source: str
    """The source."""
    name: str | None
    """What it was called when it was delivered."""
    agent: str | None
    """Who delivered it."""
    observation: str
    """The observation that came from it."""


@dataclass(frozen=True, slots=True)
class LaterChange(Record):
    """What became of a value after a decision was made on it."""

    change: str
    """`corrected`, `retracted`, `superseded` or `deleted`."""
    now: Json
    """What is believed now; null also where nothing is."""
    observation: str | None
    """The observation that changed it; none where that is not known."""
    agent: str | None
    """Who said so."""
    observed_at: str | None
    """When they saw it."""
    because: str | None
    """The reason they gave; none where they gave none."""


@dataclass(frozen=True, slots=True)
class Evidence(Record):
    """One fact that a decision looked at, what it came from, and what became of it since."""

    fact: str
    """Name of the fact."""
    value: Json
    """What it was; null also where it was missing."""
    origin: str
    """Where it came from, in words, such as `lookup_credit_bureau(application=42)`."""
    documents: tuple[Document, ...]
    """The documents behind it."""
    since: LaterChange | None
    """What became of it since; none where it is still believed, or did not come from state."""
    unchecked: bool = False
    """Whether it is said to be read, and the log does not show it at the position it is said to be read at."""
