"""The run tool: an agent records its own run, call by call.

No verb of the library does this: there a run is a block of code. The relay keeps runs open between calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.api.parameters import OBJECT, TEXT, Kind
from woodrat.api.verb import RUN, Parameter
from woodrat.errors import Fault, Refused
from woodrat.ledger.report import Report
from woodrat.mcp import compact, compact_runs
from woodrat.mcp.action import DETAILS, Action, Given
from woodrat.merge.snapshot import Snapshot
from woodrat.runs.rules import Verdict
from woodrat.server import access

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.runs.relay import Relay

ANYTHING: Final = {"type": ["string", "number", "boolean", "array", "object", "null"]}
"""Any value; nearly always text."""
_WHEN: Final = {"type": ["object", "string", "number", "boolean", "array", "null"]}
"""An object; the ledger reports other types in better words."""
_RULE: Final = {
    "type": "object",
    "properties": {"chosen": ANYTHING, "when": _WHEN, "label": TEXT},
    "required": ["chosen", "when"],
}


def _parameter(name: str, schema: Mapping[str, Any] = TEXT, what: str = "", *, required: bool = False) -> Parameter:
    return Parameter(name, Kind(what or name, schema, brief=what), required, None)


_RUN: Final = _parameter("run", required=True)
_KEY: Final = _parameter("idempotency_key")


class RunAction(Action):
    """A step in recording a run."""

    grant = RUN

    def __init__(
        self,
        name: str,
        note: str,
        parameters: tuple[Parameter, ...],
        call: Callable[[Ledger, Relay, Given], dict[str, Any]],
        *,
        one_of: tuple[str, ...] = (),
        needs: Callable[[Given], Iterator[tuple[str, Mapping[str, Any]]]] | None = None,
    ) -> None:
        self.name, self.note, self.one_of = name, note, one_of
        self._parameters = {each.wire: each for each in (*parameters, DETAILS)}
        self._call, self._needs = call, needs

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its arguments, by name."""
        return self._parameters

    def further_needs(self, given: Given) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield the grants that the reads and writes of a step need."""
        if self._needs is not None:
            yield from self._needs(given)

    def operation(self, given: Given) -> str:
        """Return its name in REST."""
        return f"run_{self.name}"

    def call(self, ledger: Ledger, relay: Relay, given: Given) -> dict[str, Any]:
        """Record it."""
        return self._call(ledger, relay, {name: value for name, value in given.items() if name != DETAILS.name})

    def written(self, answer: Any, given: Given) -> dict[str, Any]:
        """Return the result of a call, with its records short or whole."""
        if given.get(DETAILS.name):
            return {name: _as_json(value) for name, value in answer.items()}
        parts = {name: value for name, value in answer.items() if name not in _ABOUT_THE_LOG}
        return {name: _short(value) for name, value in parts.items() if value is not False}


_ABOUT_THE_LOG: Final = ("log", "span", "basis")
"""Members of the answer to a start that only recorders need."""


def _short(value: Any) -> Any:
    for kind, write in _COMPACT.items():
        if isinstance(value, kind):
            return write(value)
    return _as_json(value)


_COMPACT: Final[Mapping[type, Callable[[Any], Any]]] = {
    Report: compact.report,
    Snapshot: compact.snapshot,
    Verdict: compact_runs.verdict,
}


def _as_json(value: Any) -> Any:
    """Return records nested anywhere in a value as plain JSON."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, tuple | list):
        return [_as_json(item) for item in value]
    return {name: _as_json(item) for name, item in value.items()} if isinstance(value, Mapping) else value


def _start(ledger: Ledger, relay: Relay, given: Given) -> dict[str, Any]:
    key = given.pop("idempotency_key", None)
    return relay.start(ledger.context, given, key)


def _step(ledger: Ledger, relay: Relay, given: Given) -> dict[str, Any]:
    return relay.step(ledger.context, given["run"], given["step"], given.get("idempotency_key"))


def _decide(ledger: Ledger, relay: Relay, given: Given) -> dict[str, Any]:
    """Decide by rules, and record the decision; invalid and unknown rules are refused."""
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    try:
        return relay.step(ledger.context, run, {"decide": given}, key)
    except Refused as refusal:
        # Callers of the tool need not know that a decision is a step internally.
        faults = [Fault(f.path.removeprefix("/step/decide"), f.problem, f.remedy) for f in refusal.faults]
        raise Refused(faults, str(refusal).rpartition("\n")[2]) from refusal


def _end(ledger: Ledger, relay: Relay, given: Given) -> dict[str, Any]:
    run, key = given.pop("run"), given.pop("idempotency_key", None)
    return relay.end(ledger.context, run, key, **given)


ACTIONS: Final[Mapping[str, RunAction]] = {
    action.name: action
    for action in (
        RunAction(
            "start",
            "",
            (
                _parameter("query", required=True),
                _parameter("subject", what="ref it is about"),
                _parameter("conversation"),
                _parameter("principal"),
                _parameter("inputs", OBJECT),
                _KEY,
            ),
            _start,
        ),
        RunAction(
            "step",
            "one of {read: ref}, {note: text}, {store: records}, {tool: {name, args, result|error}}, "
            "{model: {model, messages, response}}, {decided: {stage, chosen, on}}",
            (_RUN, _parameter("step", {**OBJECT, "minProperties": 1, "maxProperties": 1}, required=True), _KEY),
            _step,
            needs=lambda given: access.step_needs(given["step"]),
        ),
        RunAction(
            "decide",
            "facts or ref; first match wins; when: {field: {lt: 600}}",
            (
                _RUN,
                _parameter("stage", required=True),
                _parameter("facts", {"type": ["object", "string"]}),
                Parameter("facts", Kind("entity to read", TEXT, wire="ref"), False, None),
                _parameter("rules", {"type": "array", "items": _RULE}, required=True),
                _parameter("default", ANYTHING, "if no rule matches"),
                _parameter("rationale"),
                _parameter("on_missing", what="raise or skip"),
                _KEY,
            ),
            _decide,
            one_of=("facts", "ref"),
            needs=access.decision_needs,
        ),
        RunAction(
            "end",
            "",
            (
                _RUN,
                _parameter("answer", ANYTHING),
                _parameter("status", {**TEXT, "enum": ["done", "error", "cancelled"]}),
                _KEY,
            ),
            _end,
        ),
    )
}
