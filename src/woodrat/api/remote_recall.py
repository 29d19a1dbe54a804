"""Remote recalls: a recall inside a run that is recorded through a server is a read of that run.

The server finds the memories, and the hits are recorded with the read. A run that is resumed is answered from
there, with the runs, facts, notes and documents as the server shows them at the position of then; a replay is answered
by its own log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from inspect import signature
from typing import TYPE_CHECKING, Any

from woodrat.api.past import Past
from woodrat.api.remote_run import RemoteRunLog
from woodrat.errors import NotFound, Refused, WoodratError
from woodrat.recall import reader
from woodrat.recall import request as request_form
from woodrat.recall.passages import passage, start_of
from woodrat.records import replace
from woodrat.runs.index.listing import ANCESTORS_MAX
from woodrat.runs.recorder.log import LocalLog
from woodrat.runs.recorder.recalls import RecallFound

if TYPE_CHECKING:
    from woodrat.recall.reader import Recall, Recalled
    from woodrat.recall.request import RecallRequest
    from woodrat.recall.search import RecallMatch
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.run import Run

Ask = Callable[..., "Recall"]
"""Asks the server, at the moment of its first argument."""


def recall_in(run: Run, past: Any, ask: Ask, arguments: tuple[Any, ...], given: Mapping[str, Any]) -> Recall:
    """Answer a recall while a run is current: a read of it, where it is recorded through the same server."""
    bound = signature(Past.recall).bind(past, *arguments, **given)
    bound.apply_defaults()
    _, question, *_ = bound.args
    about = bound.kwargs
    moment = past.link.moment
    as_of = None if moment is None else int(moment)
    now = past.context.clock.now()
    replays = run.recording is not None and run.recording.replays
    if replays and isinstance(run.log, LocalLog) and run.log.context.engine.location == past.link.transport.address:
        here = run.log.context
        return reader.recall(here if as_of is None else here.at(as_of, None), _request(question, about, now), None, run)
    if replays or not isinstance(run.log, RemoteRunLog) or run.log.transport is not past.link.transport:
        return ask(past, question, **about)
    request = _request(question, about, now)
    args = request.args()
    known = run.recorded_recall(args, as_of)
    if known is not None and known.found is not None:
        told = _told_then(past, ask, request, about, known.found)
        answer = reader.remade(ServedRuns(past, known.found.position), request, known.found, told)
        run.repeat_recall(args, as_of, known, reader.found_by(answer))
        return answer
    try:
        answer = _without_asking(run, past, ask, request, about)
    except Refused:
        raise
    except WoodratError as problem:
        run.record_recall(args, as_of, RecallFound(run.basis or 0, error=problem))
        raise
    run.record_recall(args, as_of, reader.found_by(answer))
    return answer


def _request(question: Any, about: Mapping[str, Any], now: str) -> RecallRequest:
    first = ("k", "threshold", "projection", "budget", "scope", "principal", "conversation", "ttl", "embedder")
    names = (*first, "since", "until", "not_from", "entity_type")
    given: dict[str, Any] = {name: about[name] for name in names}
    return request_form.ask(question, **given, now=now)


def _without_asking(run: Run, past: Any, ask: Ask, request: RecallRequest, about: Mapping[str, Any]) -> Recall:
    """Return the server's hits without the asking runs: a question is not its own answer."""
    answer = ask(past, request.question, **about)
    seen = {hit.ref for hit in answer.hits} | {near.ref for near in answer.rejected}
    asking = _asking(run, past) if seen else set()
    if not seen & asking:
        return answer
    more = min(request.k + len(asking), request_form.K_MAX)
    wider = ask(past, request.question, **{**about, "k": more})
    found = reader.found_by(wider)
    kept = [hit.ref for hit in wider.hits if hit.ref not in asking][: request.k]
    hits = tuple(hit for hit in found.hits if hit.run in kept)
    others = tuple({**each, "rank": kept.index(each["of"])} for each in found.others if each["of"] in kept)
    near = tuple(each for each in found.rejected if each["of"] not in asking) if len(kept) < request.k else ()
    found = found._replace(hits=hits, others=others, rejected=near)
    return reader.remade(ServedRuns(past, wider.position), request, found, ToldMemories(wider))


def _told_then(
    past: Any, ask: Ask, request: RecallRequest, about: Mapping[str, Any], found: RecallFound
) -> ToldMemories | None:
    """Return the server's text for the facts, notes and documents among the old hits.

    The server answers the same question at the old position, with all near candidates: the recording has their ids and
    scores, but not their texts.
    """
    if not found.others and all(each.get("kind", "run") == "run" for each in found.rejected):
        return None
    given = {**about, "k": request_form.K_MAX, "threshold": 0.0, "budget": None, "ttl": None}
    return ToldMemories(ask(past.at(found.position), request.question, **given))


def _asking(run: Run, past: Any) -> set[str]:
    """Return the asking runs: this run and its ancestors."""
    assert isinstance(run.log, RemoteRunLog)
    asking, above = {run.id}, run.log.parent
    while above is not None and above not in asking and len(asking) < ANCESTORS_MAX:
        asking.add(above)
        try:
            parent = past.runs.show(above).parent
        except NotFound:
            break
        above = None if parent is None else parent.get("run")
    return asking


class ServedRuns:
    """The runs behind an address, at one position."""

    def __init__(self, past: Any, position: int) -> None:
        self.through = position
        self._past, self._runs = past, past.at(position).runs

    def find(self, id: str) -> RunRecord | None:
        """Return a run's record; None if there is none."""
        try:
            found: RunRecord = self._runs.show(id)
        except NotFound:
            return None
        return found

    def began(self, id: str) -> Mapping[str, Any]:
        """Return the entry with which a run began."""
        found = self.find(id)
        return {} if found is None else {"query": found.query, "started_at": found.started_at}

    def said(self, id: str, position: int) -> str:
        """Return the passage that a run's entry has; empty for a key that may not read the log."""
        asked = {"after": position - 1 if position else None, "limit": 1}
        try:
            entries, found = self._past.link.transport.get("/v1/log", asked)["items"], self.find(id)
        except WoodratError:
            return ""
        body = entries[0].get("body") if entries and entries[0]["position"] == position else None
        if found is None or not isinstance(body, dict) or body.get("run") != id:
            return ""
        start = start_of({"subject": found.subject, "query": found.query, "inputs": found.inputs})
        said = passage(entries[0]["kind"], body, start)
        return "" if said is None else said.text


class ToldMemories(reader.NoMemories):
    """The server's facts, notes and documents, for showing them again."""

    def __init__(self, answer: Recall) -> None:
        self._hits = {hit.ref: hit for hit in answer.hits}
        self._near = {near.ref: near for near in answer.rejected}

    def told(self, match: RecallMatch) -> Recalled:
        """Return the hit with the server's text and the recorded score; a hit missing there has no text."""
        hit = self._hits.get(match.of)
        return super().told(match) if hit is None else replace(hit, score=match.score)

    def marked(self, match: RecallMatch, mark: str | None) -> RecallMatch:
        """Return a match with the server's text."""
        known = self._near.get(match.of) or self._hits.get(match.of)
        return replace(match, text=known.text) if match.reason and known is not None else match
