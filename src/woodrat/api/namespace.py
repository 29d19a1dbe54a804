"""Namespaces: what the verbs of one noun ask of the ledger they belong to.

A namespace is handed its ledger and imports nothing of it, so that each can be read and changed alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.ledger.report import Report
    from woodrat.proofs.verbs.signer import Signing
    from woodrat.runs.recorder.log import LocalLog


class Home(Protocol):
    """A ledger that can be written to."""

    def store(self, records: Mapping[str, Any], /) -> Report:
        """Store a record."""


class Readable(Protocol):
    """A ledger, or a moment of one."""

    @property
    def context(self) -> Context:
        """What the rooms below are handed."""

    @property
    def home(self) -> Home | None:
        """The ledger it is a moment of; none where it was opened for reading alone."""


class Writable(Readable, Protocol):
    """A ledger that is written to by one agent."""

    @property
    def agent(self) -> str:
        """Who writes."""

    @property
    def signing(self) -> Signing | None:
        """The signer of checkpoints, where there are keys."""

    def ids(self, prefix: str) -> tuple[str, ...]:
        """List the ids that begin with a prefix; `last` is the latest run's."""

    def run_log(self) -> LocalLog:
        """Return where the runs of this ledger are recorded."""
