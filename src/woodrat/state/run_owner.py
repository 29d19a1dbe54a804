"""Owner: the one agent whose entries form a run (docs/formats/runs.md).

The owner depends on the set of a run's entries alone. The ids of recorded runs, of traces and of imported runs are made
from the agent, so a later start by another agent cannot take over such a run, whatever times it states. If an id is
made from no agent, the smallest name wins: no caller chooses its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, moment
from woodrat.canon.digest import base32, digest, unbase32
from woodrat.canon.ids import ID_CHARACTERS
from woodrat.state.meaning import RUN_KINDS

if TYPE_CHECKING:
    from woodrat.log.entry import Entry

RUN_ID: Final = "run_"
JUDGED: Final = "run.judged"
"""The kind of entry that may come from any agent."""
_TIME_BYTES: Final = 6
_BOUND_BYTES: Final = 10
_BOUND, _STARTED, _ANY = 0, 1, 2
"""How strongly an entry determines the owner of its run: a beginning that the id is made from, another beginning, and
any other entry.
"""

Rank = tuple[int, bytes]
STARTED: Final[Rank] = (_STARTED, b"")
"""Upper bound of the ranks of starts by the agent that the id is made from."""
ANY: Final[Rank] = (_ANY, b"")
"""Upper bound of the ranks of all starts."""


def fresh_run(now: str, agent: str, span: str) -> str:
    """Return a new id: base32 of six bytes of milliseconds, and of ten made from the agent and a fresh span."""
    milliseconds = max(0, moment.to_micros(now) // 1_000)
    return bound_run(milliseconds.to_bytes(_TIME_BYTES, "big"), agent, span)


def bound_run(first: bytes, agent: str, span: str) -> str:
    """Return the id that begins with these bytes and is made from an agent and the span of the run's beginning."""
    assert len(first) == _TIME_BYTES
    return RUN_ID + base32(first + _made_from(agent, span))


def run_of_key(tenant: str, agent: str, key: str) -> tuple[str, str]:
    """Return the id of the run that an idempotency key of an agent begins, and the span of its beginning."""
    named = sha256(b"woodrat/run-key\n" + form.serialise([tenant, agent, key])).digest()
    span = named[:8].hex()
    return bound_run(named[8:14], agent, span), span


def run_of_trace(trace: str, agent: str) -> str:
    """Return the id of the run that a trace makes from an agent's spans."""
    return RUN_ID + base32(digest("run", form.serialise({"agent": agent, "trace": trace}))[:20])[:ID_CHARACTERS]


def run_of_foreign(foreign: str, agent: str | None) -> str:
    """Return the id of an agent's run by the id it had elsewhere."""
    said = {"foreign": foreign} if agent is None else {"agent": agent, "foreign": foreign}
    return RUN_ID + base32(digest("run", form.serialise(said))[:20])[:ID_CHARACTERS]


def _made_from(agent: str, span: str) -> bytes:
    return digest("run", form.serialise({"agent": agent, "span": span}))[:_BOUND_BYTES]


def is_bound(run: str, started: Mapping[str, Any]) -> bool:
    """Return True if a run's id is made from the agent that a start names."""
    agent, span, trace = started.get("agent"), started.get("span"), started.get("trace")
    if not isinstance(agent, str):
        return False
    if isinstance(trace, str) and run == run_of_trace(trace, agent):
        return True
    further = started.get("attributes")
    foreign = further.get("id") if isinstance(further, dict) else None
    if isinstance(foreign, str) and run == run_of_foreign(foreign, agent):
        return True
    data = unbase32(run.removeprefix(RUN_ID))
    return isinstance(span, str) and data is not None and data[_TIME_BYTES:] == _made_from(agent, span)


def rank_of(kind: str, run: str, body: Mapping[str, Any]) -> tuple[Rank, str] | None:
    """Return the rank of an entry as evidence of ownership, the least first, and the agent it names; None if it names
    none."""
    agent = body.get("agent")
    if kind == JUDGED or not isinstance(agent, str):
        return None
    if kind != "run.started":
        return (_ANY, agent.encode()), agent
    return (_BOUND if is_bound(run, body) else _STARTED, agent.encode()), agent


def owner_of(run: str, said: Iterable[tuple[str, Mapping[str, Any]]]) -> str | None:
    """Return the owner of a run, by its entries as (kind, body); None if no entry names an agent."""
    listed = [(kind, body) for kind, body in said if kind != JUDGED and isinstance(body.get("agent"), str)]
    agents = {body["agent"] for _, body in listed}
    if len(agents) < 2:  # nearly always
        return next(iter(agents), None)
    return min(filter(None, (rank_of(kind, run, body) for kind, body in listed)))[1]


def is_part(kind: str, body: Mapping[str, Any], owner: str | None) -> bool:
    """Return True if an entry is part of a run: it is the owner's, or a judgement of the run."""
    return kind == JUDGED or body.get("agent") == owner


def owned(run: str, entries: Iterable[Entry]) -> list[Entry]:
    """Return the entries that are part of a run, including erased ones, because their agent is unknown."""
    listed = [entry for entry in entries if entry.kind in RUN_KINDS]
    bodies = {entry.position: _body(entry) for entry in listed}
    owner = owner_of(run, [(entry.kind, bodies[entry.position]) for entry in listed])
    return [entry for entry in listed if entry.body is None or is_part(entry.kind, bodies[entry.position], owner)]


def _body(entry: Entry) -> Mapping[str, Any]:
    body: Any = None if entry.body is None else form.decode(entry.body)
    return body if isinstance(body, dict) else {}
