"""Namespaces: how the verbs of one noun use their ledger.

A namespace receives its ledger and does not import its module, so that each can be read and changed alone.
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


class ReadableLedger(Protocol):
    """A ledger, or a moment of one."""

    @property
    def context(self) -> Context:
        """The context for the rooms below."""

    @property
    def home(self) -> Home | None:
        """The ledger of this moment; None if it is read-only."""


class WritableLedger(ReadableLedger, Protocol):
    """A ledger that is written to by one agent."""

    @property
    def agent(self) -> str:
        """Who writes."""

    @property
    def signing(self) -> Signing | None:
        """The signer of checkpoints, if there are keys."""

    def ids(self, prefix: str) -> tuple[str, ...]:
        """List the ids that begin with a prefix; `last` is the latest run's."""

    def run_log(self) -> LocalLog:
        """Return where the runs of this ledger are recorded."""
