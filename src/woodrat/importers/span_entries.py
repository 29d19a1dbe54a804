"""Span entries: spans become entries of runs, each from its span alone.

A trace is a run of the agent whose key sends its spans. The run's id is made from the trace's id and the agent, so
spans that another agent sends under the same trace id are a separate run, which the trace links. Nothing of an entry
depends on other spans, on the batch or on the clock. So the same spans, in any order and any batches, once or twice,
make the same run record. Steps are ordered by their times; the sub-microsecond part of a time is the number of the
step.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any, Final

from woodrat.canon import form, ids, moment
from woodrat.importers.dialects import AGENT, DECISION, MODEL, OTHER, TOOL, Saying
from woodrat.importers.spans import Span
from woodrat.runs import values
from woodrat.runs.messages import without_call_ids
from woodrat.runs.values import VALUE_BYTES_MAX
from woodrat.state.fact import STATED
from woodrat.state.meaning import FALLBACK
from woodrat.state.run_owner import run_of_trace

Body = dict[str, Any]
_FINAL: Final = ("final_output", "final_answer")
"""Members beside the spans of one run that hold its answer."""
_BESIDES: Final = ("ai.telemetry.metadata.", "langsmith.metadata.")
"""Attributes in which the AI SDK and LangSmith keep the caller's metadata."""
_SESSIONS: Final = tuple(place + name for place in _BESIDES for name in ("session_id", "sessionId", "thread_id"))
_USERS: Final = tuple(place + name for place in _BESIDES for name in ("user_id", "userId"))
_TOOL_NAMES: Final = ("gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name")
_KIND_NAMES: Final = ("unspecified", "internal", "server", "client", "producer", "consumer")


def recorded(
    spans: Sequence[Span], judged: Iterable[Mapping[str, Any]], beside: Mapping[str, Any], agent: str, named: bool
) -> list[Body]:
    """Return the entries of the runs of a document: its spans, its evaluations, and its other members."""
    found = [*beginnings(spans, agent), *entries(spans, agent, named=named)]
    over: dict[str, int] = {}
    for span in spans:
        over[span.trace] = max(over.get(span.trace, 0), span.end_ns)
    found += (_judged(each, agent, over) for each in judged)
    answer = next((beside[name] for name in _FINAL if name in beside), None)
    if len(over) == 1 and answer is not None and not any("answer" in entry for entry in found):
        found.append(_answered(answer, spans[0].trace, agent, over))
    return found


def _answered(answer: Any, trace: str, agent: str, over: Mapping[str, int]) -> Body:
    """Return the end of a run whose answer is beside its spans."""
    span = sha256(trace.encode()).hexdigest()[:16]
    place = {"run": run_of_trace(trace, agent), "agent": agent, "step": 0, "span": span}
    began = {"started_at": moment.from_micros(over[trace] // 1_000)}
    return {"kind": "run.ended", **place, **began, "status": "done", "answer": values.bounded(answer)}


def _judged(said: Mapping[str, Any], agent: str, over: Mapping[str, int]) -> Body:
    trace = str(said["trace"])
    about = {name: value for name, value in said.items() if name != "trace"}
    span = sha256(f"{trace} {about.get('by')} {about.get('about')}".encode()).hexdigest()[:16]
    place = {"run": run_of_trace(trace, agent), "agent": agent, "step": 0, "span": span}
    if trace in over:
        place["started_at"] = moment.from_micros(over[trace] // 1_000)
    return {"kind": "run.judged", **place, **about}


def entries(spans: Iterable[Span], agent: str, *, named: bool = False) -> list[Body]:
    """Return the entries that spans make, in the form that `ledger.runs.import_` takes.

    `agent` is the owner of the run. With `named`, inner agents keep the names that they state.
    """
    return [entry for span in spans for entry in _SpanTranslation(span, agent, named).entries()]


def beginnings(spans: Iterable[Span], agent: str) -> list[Body]:
    """Return an entry for each trace that only declares the run: the same for all its spans.

    So a run is listed before its root has arrived, which may never happen: a killed process exports none.
    """
    return [
        {
            "kind": "run.started",
            **{"run": run_of_trace(trace, agent), "step": 0, "span": trace[:16]},
            **{"agent": agent, "trace": trace, FALLBACK: ["query", "started_at"]},
        }
        for trace in dict.fromkeys(span.trace for span in spans)
    ]


class _SpanTranslation:
    """One span during its translation into entries."""

    def __init__(self, span: Span, agent: str, named: bool) -> None:
        self._span, self._says = span, Saying(span)
        self._agent, self._named = agent, named
        self._run = run_of_trace(span.trace, agent)

    def entries(self) -> Iterator[Body]:
        """Yield the entries of the span: beginning and end of the run if it has them, and its step."""
        span, says = self._span, self._says
        root = span.parent is None
        step = _STEPS[says.kind](says) if says.kind in _STEPS else None
        if span.enters or says.kind == AGENT:
            yield from self._ends(span.enters)
        if step is not None:
            yield self._entry(*step, span.start_ns, self._lasted(step[1]))
        elif not root:
            data = {"kind": says.word, "input": says.value("input.value"), "output": says.value("output.value")}
            said = {name: _kept(value) for name, value in data.items() if value is not None}
            yield self._entry("run.noted", {"text": values.text(span.name or says.word), "data": said}, span.start_ns)

    def _ends(self, root: bool) -> Iterator[Body]:
        span, says = self._span, self._says
        query, answer, error = says.asked(), says.answered(), says.error()
        about = self._about(query, root)
        yield self._entry("run.started", about, span.start_ns, step=0)
        if root and query is None and span.name:
            # the question counts only if no inner agent or model has it
            fallback: Body = {"query": values.text(span.name), "trace": span.trace, FALLBACK: ["query"]}
            yield self._entry("run.started", fallback, span.end_ns, bare=True)
        end: Body = {"status": "done" if error is None else "error"}
        if answer is not None:
            end["answer"] = _kept(answer)
        if error is not None:
            end["error"] = _error(error)
        # an inner agent's messages are in its model spans, and so are all others
        usage = says.usage() if root and says.kind in (AGENT, OTHER) else {}
        if usage:
            end["usage"] = usage
        # The last end counts. One that knows neither answer nor error gives way to any agent inside that does.
        knows = answer is not None or error is not None
        if not knows:
            end[FALLBACK] = ["answer"]
            if span.end_ns > span.start_ns:
                end["ended_at"] = moment.from_micros(span.end_ns // 1_000)
        yield self._entry("run.ended", self._lasted(end), span.end_ns if knows else span.start_ns, bare=True)

    def _about(self, query: str | None, root: bool) -> Body:
        says, resource = self._says, self._span.resource
        about: Body = {"trace": self._span.trace}
        # The owner of the run does not depend on one span's statements: a later span may lack them.
        name = says.peek("gen_ai.agent.name", "agent.name", "ai.telemetry.functionId")
        if name is not None and self._named and not ids.agent_faults(name, "agent"):
            about["name"] = name
        service = resource.get("service.name")
        if root and self._named and not ids.agent_faults(service, "agent") and not _is_unknown(service):
            about["names"] = [service]
        texts = {
            "conversation": says.text("gen_ai.conversation.id", "session.id", *_SESSIONS),
            "principal": says.text("user.id", "enduser.id", *_USERS),
            "subject": says.text("woodrat.subject"),
            "code": says.text("gen_ai.agent.version") or _text(resource.get("service.version")),
        }
        about.update({name: values.text(value) for name, value in texts.items() if value is not None})
        if query is not None:
            about["query"] = values.text(query, VALUE_BYTES_MAX)
        # The inputs of an inner agent belong to its caller; its note has them.
        given = says.inputs() if root else None
        if given is not None:
            about["inputs"] = _kept(given)
        return about

    def _lasted(self, body: Body) -> Body:
        return {**body, "duration_ms": (self._span.end_ns - self._span.start_ns) // 1_000_000}

    def _entry(
        self,
        kind: str,
        said: Body,
        at_ns: int,
        more: Body | None = None,
        *,
        step: int | None = None,
        bare: bool = False,
    ) -> Body:
        """Return an entry; a `bare` one leaves the span's attributes to another."""
        span = self._span
        body: Body = {
            "run": self._run,
            "agent": self._agent,
            "step": 1 + at_ns % 1_000 if step is None else step,
            "span": span.id,
            "started_at": moment.from_micros(at_ns // 1_000),
            **(said if more is None else more),
        }
        if span.parent is not None:
            body["under"] = span.parent
        if not bare:
            body["attributes"] = _each_kept(self._attributes(kind))
        found: Any = form.decode(values.fit(body))
        return {"kind": kind, **found}

    def _attributes(self, kind: str) -> Body:
        """Return all that has no place elsewhere."""
        span = self._span
        about: Body = {"name": span.name, "kind": _KIND_NAMES[span.kind] if 0 <= span.kind < 6 else span.kind}
        if kind == "run.started":
            about |= {"trace": span.trace, "resource": dict(span.resource)}
        elif "service.name" in span.resource:
            about["service"] = span.resource["service.name"]
        further = {
            "scope": span.scope,
            "message": span.message,
            "events": [{**event, "time_ns": str(event["time_ns"])} for event in span.events],
            "links": [dict(link) for link in span.links],
        }
        about |= {name: value for name, value in further.items() if value}
        # If the root is itself a step, its attributes are on the step.
        says_more = kind != "run.started" or self._says.kind not in _STEPS
        return {**(self._says.rest() if says_more else {}), "otel": about}


# ------------------------------------------------------------------------------------------------------------ steps


def _model(says: Saying) -> tuple[str, Body]:
    model = says.text(
        *("gen_ai.response.model", "gen_ai.request.model", "llm.response.model_name", "llm.request.model_name"),
        *("llm.model_name", "embedding.model_name", "ai.response.model", "ai.model.id"),
    )
    messages, parameters, usage = says.messages(), says.parameters(), says.usage()
    if model is None:
        model = next((text for name in ("model", "model_name") if (text := _text(parameters.get(name)))), None)
    body: Body = {}
    if model is not None:
        body["model"] = values.text(model)
    if messages is not None:
        body["messages"] = _kept(messages)
        asked = {"messages": without_call_ids(messages), "model": model, "parameters": parameters}
        body["request"] = sha256(form.serialise(values.plain(asked))).hexdigest()
    if parameters:
        body["parameters"] = _kept(parameters)
    if usage:
        body["usage"] = usage
    return "run.model", {**body, **_came(says, "response", says.response())}


def _tool(says: Saying) -> tuple[str, Body]:
    name = says.text(*_TOOL_NAMES) or says.span.name.removeprefix("execute_tool ") or says.word
    args, result = says.arguments(), says.result()
    given = args if isinstance(args, dict) else {} if args is None else {"input": args}
    body = {"name": values.text(name), "args": _kept(given)}
    return "run.tool", {**body, **_came(says, "result", result)}


def _decision(says: Saying) -> tuple[str, Body]:
    stage = says.text("woodrat.stage") or says.span.name or says.word
    chosen = says.value("gen_ai.decision.answers", "answers", "output.value")
    given = says.value("input.value", "gen_ai.decision.questions")
    facts = given if isinstance(given, dict) else {} if given is None else {"input": given}
    body: Body = {"stage": values.text(stage), "mode": "decide", "chosen": _kept(chosen), "default": False}
    rule, rationale = says.text("woodrat.rule"), says.text("woodrat.rationale")
    if rule is not None:
        body["rule"] = values.text(rule)
    if rationale is not None:
        body["rationale"] = values.text(rationale)
    if facts:
        body |= {"facts": _kept(facts), "facts_origin": {str(name): dict(STATED) for name in facts}}
    return "run.decided", body


_STEPS: Final = {MODEL: _model, TOOL: _tool, DECISION: _decision}


def _came(says: Saying, name: str, value: Any) -> Body:
    """Return the outcome of a call."""
    error = says.error()
    if error is not None:
        return {"errored": True, "error": _error(error)}
    return {} if value is None else {name: _kept(value)}


def _is_unknown(service: Any) -> bool:
    """Return True if the name of a service is an SDK's default."""
    return str(service).startswith("unknown_service")


def _error(error: Mapping[str, str]) -> Body:
    return {name: values.text(value) for name, value in error.items()}


def _kept(value: Any) -> Any:
    return values.bounded(value, VALUE_BYTES_MAX)


def _each_kept(found: Body) -> Any:
    """Return attributes within the size limit of a value; if they exceed it together, the longest are cut first."""
    whole = _kept(found)
    if not values.is_mark(whole):
        return whole
    return _kept({name: values.bounded(value, values.ITEM_BYTES_MAX) for name, value in found.items()})


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
