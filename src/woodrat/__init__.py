"""Woodrat: the replayable state layer and causal decision memory for AI agents.

ledger = woodrat.open("agents.db", tenant="lending", agent="loan-officer")
ledger.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}])
ledger.show("contact/Ana Rivera").fields["city"]

A name is imported from its module when it is first used, so a program pays for what it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from woodrat.errors import Corrupt, Fault, Forbidden, NotFound, Outdated, Refused, Unavailable, WoodratError
    from woodrat.ledger.ambient import carry, current_run
    from woodrat.ledger.answering import Resumed
    from woodrat.ledger.asynchronous import AsyncLedger, AsyncRun, aopen
    from woodrat.ledger.calling import Call, tool
    from woodrat.ledger.ledger import Ledger
    from woodrat.ledger.memory import Memory, memory
    from woodrat.ledger.opening import open_ledger as open
    from woodrat.ledger.past import Past
    from woodrat.ledger.policies import own_policy
    from woodrat.ledger.recounting import Reason
    from woodrat.ledger.reducing import check_reduction
    from woodrat.ledger.remembering import Recall
    from woodrat.ledger.replayed import Replayed
    from woodrat.ledger.report import Report
    from woodrat.ledger.running import RecordingWarning, Run, decide, select
    from woodrat.ledger.training import Exported
    from woodrat.ledger.watching import StaleWarning, Subscription
    from woodrat.recall.embedders import Embedder
    from woodrat.runs.followup import followup
    from woodrat.runs.parts import Decision, Judgement
    from woodrat.runs.projection import injected, project
    from woodrat.runs.rule import Rule, Verdict
    from woodrat.runs.run import RunRecord
    from woodrat.state.fact import Fact
    from woodrat.state.models import Merge
    from woodrat.state.snapshot import Snapshot
    from woodrat.views.bisect import Bisected
    from woodrat.views.crowd import Crowd
    from woodrat.views.divergence import Divergence
    from woodrat.views.reduction import Reduction
    from woodrat.views.whatif import WhatIf

__all__ = [
    "AsyncLedger",
    "AsyncRun",
    "Bisected",
    "Call",
    "Corrupt",
    "Crowd",
    "Decision",
    "Divergence",
    "Embedder",
    "Exported",
    "Fact",
    "Fault",
    "Forbidden",
    "Judgement",
    "Ledger",
    "Memory",
    "Merge",
    "NotFound",
    "Outdated",
    "Past",
    "Reason",
    "Recall",
    "RecordingWarning",
    "Reduction",
    "Refused",
    "Replayed",
    "Report",
    "Resumed",
    "Rule",
    "Run",
    "RunRecord",
    "Snapshot",
    "StaleWarning",
    "Subscription",
    "Unavailable",
    "Verdict",
    "WhatIf",
    "WoodratError",
    "aopen",
    "carry",
    "check_reduction",
    "current_run",
    "decide",
    "followup",
    "injected",
    "memory",
    "open",
    "own_policy",
    "project",
    "select",
    "tool",
]

_HOMES = {
    "AsyncLedger": "ledger.asynchronous",
    "AsyncRun": "ledger.asynchronous",
    "Bisected": "views.bisect",
    "Call": "ledger.calling",
    "Corrupt": "errors",
    "Crowd": "views.crowd",
    "Decision": "runs.parts",
    "Divergence": "views.divergence",
    "Embedder": "recall.embedders",
    "Exported": "ledger.training",
    "Fact": "state.fact",
    "Fault": "errors",
    "Forbidden": "errors",
    "Judgement": "runs.parts",
    "Ledger": "ledger.ledger",
    "Memory": "ledger.memory",
    "Merge": "state.models",
    "NotFound": "errors",
    "Outdated": "errors",
    "Past": "ledger.past",
    "Reason": "ledger.recounting",
    "Recall": "ledger.remembering",
    "RecordingWarning": "ledger.running",
    "Reduction": "views.reduction",
    "Refused": "errors",
    "Replayed": "ledger.replayed",
    "Report": "ledger.report",
    "Resumed": "ledger.answering",
    "Rule": "runs.rule",
    "Run": "ledger.running",
    "RunRecord": "runs.run",
    "Snapshot": "state.snapshot",
    "StaleWarning": "ledger.watching",
    "Subscription": "ledger.watching",
    "Unavailable": "errors",
    "Verdict": "runs.rule",
    "WhatIf": "views.whatif",
    "WoodratError": "errors",
    "aopen": "ledger.asynchronous",
    "carry": "ledger.ambient",
    "check_reduction": "ledger.reducing",
    "current_run": "ledger.ambient",
    "decide": "ledger.running",
    "followup": "runs.followup",
    "injected": "runs.projection",
    "memory": "ledger.memory",
    "open": "ledger.opening",
    "own_policy": "ledger.policies",
    "project": "runs.projection",
    "select": "ledger.running",
    "tool": "ledger.calling",
}
"""The module that each name comes from."""


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found = getattr(import_module(f"{__name__}.{home}"), "open_ledger" if name == "open" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
