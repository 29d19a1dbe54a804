"""Beginnings: what a run is begun with, and what its first entry says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from woodrat.canon import form, ids
from woodrat.errors import Fault, NotFound, Refused, shown
from woodrat.records import dataclass
from woodrat.runs import values
from woodrat.runs.recorded_values import recorded_value
from woodrat.runs.shape import SHAPE
from woodrat.runs.values import REDACTED, VALUE_BYTES_MAX
from woodrat.state import observation

if TYPE_CHECKING:
    from woodrat.canon.form import Json
    from woodrat.ledger.write import Draft
    from woodrat.runs.trace import Place


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a run is begun with."""

    query: str
    """What was asked."""
    subject: str | None
    """The entity it is about, as a reference or an entity's id."""
    conversation: str | None
    """Which conversation it is part of."""
    principal: str | None
    """On whose behalf."""
    inputs: Mapping[str, Any]
    """What it was given, as the agent has it."""
    code: str | None
    """Version of the agent's code."""
    parent: Place | None
    """The step of another run that the caller named."""
    runbooks: tuple[str, ...]
    """Runbooks in force, as references."""
    tool_configs: tuple[str, ...]
    """Tool configurations in force, as references."""
    pipeline: str | None
    """The pipeline it is a step of, as a reference."""
    session: str | None
    """The agent session it is part of, as a reference."""
    attributes: Mapping[str, Any]
    """Anything else."""
    trace: str | None
    """The W3C traceparent it was started with."""
    recall: bool
    """Whether it answers from memory."""
    inputs_shape: list[Json] | None = None
    """The shape of the inputs, where they came as JSON from a recorder elsewhere."""
    forked_from: Mapping[str, Any] | None = None
    """The run and step it is a fork of, and what was edited there."""

    def body(self, agent: str, hidden: frozenset[str]) -> dict[str, Json]:
        """Return what `run.started` says that does not depend on the log."""
        inputs, shape, _ = self.shaped_inputs(hidden)
        stated: dict[str, Json] = {
            "agent": agent,
            "query": values.text(self.query, VALUE_BYTES_MAX),
            "subject": self.subject,
            "principal": self.principal,
            "conversation": self.conversation,
            "inputs": inputs or None,
            SHAPE: shape,
            "code": self.code,
            "attributes": values.bounded(self.attributes, hidden=hidden) or None,
            "recall": True if self.recall else None,
            "redact": [*sorted(hidden)] or None,
            "forked_from": None if self.forked_from is None else dict(self.forked_from),
        }
        return {name: value for name, value in stated.items() if value is not None}

    def shaped_inputs(self, hidden: frozenset[str]) -> tuple[Json, Json, tuple[str, ...]]:
        """Return the inputs as they are recorded, their shape, and what of them cannot be restored."""
        if not self.inputs:
            return {}, None, ()
        if self.inputs_shape is None:
            return recorded_value(self.inputs, VALUE_BYTES_MAX, hidden)
        inputs, whole = values.bounded(self.inputs, hidden=hidden), values.plain(self.inputs)
        if form.same(inputs, whole):
            return inputs, [*self.inputs_shape], ()
        # It was made of what came from there. What is cut here has no shape, and what is hidden here may stand in it.
        return inputs, None if values.is_mark(inputs) else REDACTED, ()

    def using(self, draft: Draft) -> tuple[dict[str, Json], list[NotFound]]:
        """Return the versions in force of what the run goes by, and what of it is not known; that is named alone."""
        found: dict[str, Json] = {}
        unknown: list[NotFound] = []
        for name, refs in (("runbook", self.runbooks), ("tool_config", self.tool_configs)):
            said: list[Json] = []
            for text in refs:
                ref = ids.parse_ref(text, name)
                snapshot = draft.before.find(ref)
                if snapshot is None:
                    message = f"{ref}: not known. The run names it without a version. Store it first."
                    unknown.append(NotFound(message, {"entity": str(ref)}))
                    said.append({"entity": str(ref)})
                    continue
                entry = draft.view.entry(snapshot.version)
                told: dict[str, Json] = {"entity": str(ref), "version": snapshot.version}
                if entry is not None and entry.body is not None:
                    told["observation"] = observation.stored(entry.body).id
                said.append(told)
            if said:
                found[name] = said
        for name, stated in (("pipeline", self.pipeline), ("agent_session", self.session)):
            if stated is not None:
                found[name] = stated
        return found, unknown


def run_faults(id: object) -> list[Fault]:
    """Return what is wrong with a run's id: observations must be able to name it."""
    return observation.optional_faults({"run": id}, "")


def ref_of(name: str, given: object, faults: list[Fault], *, ids_too: bool = False) -> str | None:
    """Return a reference as text, or put what is wrong with it into `faults`; `ids_too` takes an entity's id."""
    if given is None:
        return None
    if isinstance(given, ids.Ref):
        return str(given)
    if ids_too and isinstance(given, str) and ids.is_id("entity", given):
        return given
    try:
        return str(ids.parse_ref(given, name))
    except Refused as refusal:
        faults += refusal.faults
        return None


def refs_of(name: str, given: object, faults: list[Fault]) -> tuple[str, ...]:
    """Return one reference or a list of them as texts."""
    if given is None:
        return ()
    items = [given] if isinstance(given, str | ids.Ref) else given
    if not isinstance(items, list | tuple):
        faults.append(Fault(name, f"expected references, got {shown(given)}", "Send one as text, or a list."))
        return ()
    return tuple(ref for item in items if (ref := ref_of(name, item, faults)) is not None)
