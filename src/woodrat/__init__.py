"""Woodrat: the replayable state layer and causal decision memory for AI agents.

ledger = woodrat.open("agents.db", tenant="lending", agent="loan-officer")
ledger.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}])
ledger.show("contact/Ana Rivera").fields["city"]

A name is imported from its module on first use, so a program pays only for the parts it uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.0.1"

if TYPE_CHECKING:
    from woodrat.adapters import langgraph as langgraph
    from woodrat.adapters import openai as openai
    from woodrat.adapters import openai_agents as openai_agents
    from woodrat.adapters import pydantic_ai as pydantic_ai
    from woodrat.api.aio import AsyncLedger, aopen
    from woodrat.api.aio_run import AsyncRun
    from woodrat.api.ledger import Ledger
    from woodrat.api.maintenance import CheckpointWarning
    from woodrat.api.open import open_ledger as open
    from woodrat.api.past import Past
    from woodrat.bisect.reduction import Reduction
    from woodrat.bisect.search import Bisected
    from woodrat.bisect.verbs import check_reduction
    from woodrat.compare.divergence import Divergence
    from woodrat.compare.groups import Crowd
    from woodrat.erasure.certificate import Certificate
    from woodrat.errors import Corrupt, Fault, Forbidden, NotFound, Outdated, Refused, Unavailable, WoodratError
    from woodrat.exchange.verbs.backup import Backup
    from woodrat.exchange.verbs.copy import Copied, copy
    from woodrat.exchange.verbs.export import ExportedLog
    from woodrat.exchange.verbs.importer import Imported
    from woodrat.exchange.verbs.sync import Synced
    from woodrat.explain.workers.subscription import StaleWarning, Subscription
    from woodrat.ledger.elements import Elements
    from woodrat.ledger.own_policy import own_policy
    from woodrat.ledger.report import Report
    from woodrat.log.checkpoint import Checkpoint
    from woodrat.merge.snapshot import Snapshot
    from woodrat.proofs.proof import Capsule, ConsistencyProof, Proof, Signed
    from woodrat.proofs.verbs.keys import init
    from woodrat.recall.embedders import Embedder
    from woodrat.recall.memory import Memory, memory
    from woodrat.recall.reader import Recall
    from woodrat.replay.result import Replayed
    from woodrat.runs.projection import followup, injected, project
    from woodrat.runs.reader.why import Reason
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.calls import Call
    from woodrat.runs.recorder.current import carry
    from woodrat.runs.recorder.decisions import decide, select
    from woodrat.runs.recorder.resume import Resumed
    from woodrat.runs.recorder.run import Run, current_run
    from woodrat.runs.recorder.steps import RecordingWarning
    from woodrat.runs.recorder.threads import carry_threads
    from woodrat.runs.recorder.tools import tool
    from woodrat.runs.rules import Rule, Verdict
    from woodrat.runs.steps import Decision, Judgement
    from woodrat.runs.summary import RunSummary
    from woodrat.state.fact import Fact
    from woodrat.state.models import Merge
    from woodrat.training.exports import Exported
    from woodrat.verify.report import Verified
    from woodrat.whatif.result import WhatIf

__all__ = [
    "AsyncLedger",
    "AsyncRun",
    "Backup",
    "Bisected",
    "Call",
    "Capsule",
    "Checkpoint",
    "CheckpointWarning",
    "Certificate",
    "ConsistencyProof",
    "Copied",
    "Corrupt",
    "Crowd",
    "Decision",
    "Divergence",
    "Elements",
    "Embedder",
    "Exported",
    "ExportedLog",
    "Fact",
    "Fault",
    "Forbidden",
    "Imported",
    "Judgement",
    "Ledger",
    "Memory",
    "Merge",
    "NotFound",
    "Outdated",
    "Past",
    "Proof",
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
    "RunSummary",
    "Signed",
    "Snapshot",
    "StaleWarning",
    "Subscription",
    "Synced",
    "Unavailable",
    "Verdict",
    "WhatIf",
    "Verified",
    "WoodratError",
    "aopen",
    "carry",
    "carry_threads",
    "check_reduction",
    "copy",
    "current_run",
    "decide",
    "followup",
    "init",
    "injected",
    "memory",
    "open",
    "own_policy",
    "project",
    "select",
    "tool",
]

_HOMES = {
    "AsyncLedger": "api.aio",
    "AsyncRun": "api.aio_run",
    "Backup": "exchange.verbs.backup",
    "Bisected": "bisect.search",
    "Call": "runs.recorder.calls",
    "Capsule": "proofs.proof",
    "Checkpoint": "log.checkpoint",
    "CheckpointWarning": "api.maintenance",
    "Certificate": "erasure.certificate",
    "ConsistencyProof": "proofs.proof",
    "Copied": "exchange.verbs.copy",
    "Corrupt": "errors",
    "Crowd": "compare.groups",
    "Decision": "runs.steps",
    "Divergence": "compare.divergence",
    "Elements": "ledger.elements",
    "Embedder": "recall.embedders",
    "Exported": "training.exports",
    "ExportedLog": "exchange.verbs.export",
    "Fact": "state.fact",
    "Fault": "errors",
    "Forbidden": "errors",
    "Imported": "exchange.verbs.importer",
    "Judgement": "runs.steps",
    "Ledger": "api.ledger",
    "Memory": "recall.memory",
    "Merge": "state.models",
    "NotFound": "errors",
    "Outdated": "errors",
    "Past": "api.past",
    "Proof": "proofs.proof",
    "Reason": "runs.reader.why",
    "Recall": "recall.reader",
    "RecordingWarning": "runs.recorder.steps",
    "Reduction": "bisect.reduction",
    "Refused": "errors",
    "Replayed": "replay.result",
    "Report": "ledger.report",
    "Resumed": "runs.recorder.resume",
    "Rule": "runs.rules",
    "Run": "runs.recorder.run",
    "RunRecord": "runs.record",
    "RunSummary": "runs.summary",
    "Signed": "proofs.proof",
    "Snapshot": "merge.snapshot",
    "StaleWarning": "explain.workers.subscription",
    "Subscription": "explain.workers.subscription",
    "Synced": "exchange.verbs.sync",
    "Unavailable": "errors",
    "Verdict": "runs.rules",
    "WhatIf": "whatif.result",
    "Verified": "verify.report",
    "WoodratError": "errors",
    "aopen": "api.aio",
    "carry": "runs.recorder.current",
    "carry_threads": "runs.recorder.threads",
    "check_reduction": "bisect.verbs",
    "copy": "exchange.verbs.copy",
    "current_run": "runs.recorder.run",
    "decide": "runs.recorder.decisions",
    "followup": "runs.projection",
    "init": "proofs.verbs.keys",
    "injected": "runs.projection",
    "memory": "recall.memory",
    "open": "api.open",
    "own_policy": "ledger.own_policy",
    "project": "runs.projection",
    "select": "runs.recorder.decisions",
    "tool": "runs.recorder.tools",
}
"""The module that each name comes from."""


_ADAPTERS = {
    "langgraph": "langgraph",
    "openai": "openai",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
}
"""The recorders of frameworks, each with the extra that installs its dependencies."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _ADAPTERS:
        try:
            globals()[name] = import_module(f"{__name__}.adapters.{name}")
        except ModuleNotFoundError as missing:
            if str(missing.name).startswith(__name__):
                raise
            raise ModuleNotFoundError(
                f"woodrat.{name} needs the package {missing.name}, which is not installed. Nothing was recorded. "
                f"Install it: pip install 'woodrat[{_ADAPTERS[name]}]'.",
                name=missing.name,
            ) from missing
        return globals()[name]
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f"{__name__}.{home}"), "open_ledger" if name == "open" else name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
