"""Remote runs: a run recorded through a server, by an agent that runs here.

Each step is one call with a key of its own, so a step that got no answer is told again and recorded once. Decisions
are made by the server, on rules that are data. `woodrat.decide` and tools marked with `woodrat.tool` do not know of it:
they record into runs of a ledger that is here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, Refused, shown
from woodrat.ledger import report as reports
from woodrat.ledger.running import CANCELLED, DONE, ERROR, NOTHING_RECORDED, ended_by
from woodrat.runs import bounding, rule
from woodrat.state.snapshot import Snapshot

if TYPE_CHECKING:
    from types import TracebackType

    from woodrat.canon.ids import Ref
    from woodrat.ledger.remote import Told
    from woodrat.ledger.report import Report
    from woodrat.ledger.transport import Transport

_ENDS = (DONE, ERROR, CANCELLED)


class RemoteRun:
    """One execution of an agent, recorded through a server; a context manager."""

    def __init__(self, transport: Transport, query: str, about: Mapping[str, Any]) -> None:
        self._transport = transport
        self._begin = {"query": query, **about}
        self._answer: tuple[Any] | None = None
        self._id: str | None = None
        self.ended = False
        """Whether it has ended."""

    @property
    def id(self) -> str:
        """The run's id; there is one once it has started."""
        if self._id is None:
            raise Refused([Fault("run", "it has not started", "Use it as a context manager.")], NOTHING_RECORDED)
        return self._id

    def start(self) -> RemoteRun:
        """Begin the run, for callers that cannot use `with`."""
        if self._id is not None:
            raise Refused([Fault("run", "it has started already", "Start a run of its own.")], NOTHING_RECORDED)
        self._id = self._transport.post("/v1/runs", self._begin, key=self._transport.fresh_key())["run"]
        return self

    def __enter__(self) -> RemoteRun:
        return self.start() if self._id is None else self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self.ended:
            status, told = ended_by(error)
            self.end(status, error=told)

    def show(self, ref: str | Ref) -> Snapshot:
        """Return what is believed about an entity; the read is recorded."""
        return Snapshot.from_json(self._step("read", str(ref))["snapshot"])

    def decide(self, stage: str, facts: object, rules: Iterable[Any], default: Any = None, **about: Any) -> Told:
        """Take the first branch whose rule matches the facts, and record what was looked at."""
        return self._decide("decide", stage, facts, rules, default, about)

    def select(self, stage: str, facts: object, rules: Iterable[Any], default: Any = None, **about: Any) -> Told:
        """Take every branch whose rule matches the facts, and record what was looked at."""
        return self._decide("select", stage, facts, rules, default, about)

    def _decide(
        self, mode: str, stage: str, facts: object, rules: Iterable[Any], default: Any, about: Mapping[str, Any]
    ) -> Told:
        from woodrat.ledger.remote import Told

        told = []
        for number, one in enumerate(rule.as_rules(rules)):
            if callable(one.when):
                problem = "a predicate is code, which the server does not have"
                fault = Fault(f"/rules/{number}", problem, "State conditions, or decide here and record a note.")
                raise Refused([fault], "Nothing was decided.")
            told.append(one.to_json())
        # What was read through the run is linked by the server, by name and value.
        given = dict(facts.fields) if isinstance(facts, Snapshot) else facts
        if not isinstance(given, Mapping):
            raise Refused(
                [Fault("facts", f"got {shown(facts)}", "Send a snapshot, or values by name.")], "Nothing was decided."
            )
        body = {"stage": stage, "facts": bounding.plain(dict(given)), "rules": told, **about}
        if default is not None:
            body["default"] = default
        return Told(self._step(mode, body)["verdict"])

    def tool(self, name: str, function: Callable[..., Any], /, *arguments: Any, **given: Any) -> Any:
        """Call a function as a tool, record arguments and result or error, and return what it returned."""
        from woodrat.ledger.calling import arguments_of, signature_of

        told = {"name": name, "args": bounding.plain(arguments_of(signature_of(function), arguments, given))}
        try:
            found = function(*arguments, **given)
        except Exception as error:
            self._step("tool", {**told, "error": {"type": type(error).__name__, "message": str(error)}})
            raise
        self._step("tool", {**told, "result": bounding.plain(found)})
        return found

    def model(self, model: str, *, response: Any, **about: Any) -> None:
        """Record a model call that was made."""
        self._step("model", {"model": model, "response": bounding.plain(response), **about})

    def note(self, text: str, data: Any = None) -> None:
        """Record a remark."""
        self._step("note", text if data is None else {"text": text, "data": bounding.plain(data)})

    def store(self, records: Any) -> Report:
        """Store what the agent says in the run."""
        return reports.from_json(self._step("store", records)["report"])

    def answer(self, answer: Any) -> None:
        """Say what the run answers; it is recorded with its end, and the last answer counts."""
        self._answer = (answer,)

    def end(
        self,
        status: str = DONE,
        *,
        answer: Any = None,
        error: BaseException | None = None,
        usage: Mapping[str, int] | None = None,
    ) -> None:
        """End the run. A run ends once."""
        if status not in _ENDS:
            raise Refused([Fault("status", f"got {shown(status)}", f"Use {', '.join(_ENDS)}.")], NOTHING_RECORDED)
        body: dict[str, Any] = {"status": status, "usage": None if usage is None else dict(usage)}
        if answer is not None:
            self._answer = (answer,)
        if self._answer is not None:
            body["answer"] = bounding.plain(self._answer[0])
        if error is not None:
            body["error"] = {"type": type(error).__name__, "message": str(error)}
        self._transport.post(f"/v1/runs/{self.id}/end", body, key=self._transport.fresh_key())
        self.ended = True

    def _step(self, kind: str, about: Any) -> Any:
        key = self._transport.fresh_key()
        return self._transport.post(f"/v1/runs/{self.id}/steps", {"step": {kind: about}}, key=key)
