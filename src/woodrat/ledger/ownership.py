"""Ownership: a run has one owner, and nobody else records anything in it.

Every way to write a run asks here first. Whoever may not read is told of another agent's run what they are told of a
run that does not exist.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.errors import Forbidden, NotFound, shown
from woodrat.ledger import run_progress

if TYPE_CHECKING:
    from woodrat.context import Context
    from woodrat.engines.view import View

NOTHING_RECORDED: Final = "Nothing was recorded."


class ForeignRun(Forbidden):
    """The run belongs to another agent. Nothing was written; record in a run of your own."""

    def __init__(self, run: str, owner: str | None, agent: str, outcome: str = NOTHING_RECORDED) -> None:
        whose = "has no owner on record" if owner is None else f"belongs to agent {owner!r}"
        super().__init__(
            f"{run} {whose}, and this is agent {agent!r}. {outcome} Start a run of your own, or write as that agent.",
            {"run": run, "owner": owner},
        )
        self._run, self._outcome = run, outcome

    def hidden(self) -> NotFound:
        """Return what is said to callers who may not read: what they hear of a run that does not exist."""
        return unknown_run(self._run, self._outcome)


def unknown_run(run: object, outcome: str = NOTHING_RECORDED) -> NotFound:
    """Return the error for a run that is not in this log."""
    return NotFound(f"There is no run {shown(run)} here. {outcome} `runs list` lists them.", {"run": run})


def check_owner(agent: str, run: str, owner: str | None, outcome: str = NOTHING_RECORDED) -> None:
    """Raise `ForeignRun` unless a run is of the agent that records."""
    if owner != agent:
        raise ForeignRun(run, owner, agent, outcome)


def check_write(context: Context, view: View, run: str, outcome: str) -> None:
    """Refuse a write that says to be part of a run which is not there, or is not of the agent that writes.

    What is at hand of the run is asked, so the cost does not grow with the run.
    """
    so_far = run_progress.of_run(context.engine, context.tenant, view, run, view.head().position)
    if so_far.owner is None and not so_far.known:
        raise unknown_run(run, outcome)
    check_owner(context.agent, run, so_far.owner, outcome)
