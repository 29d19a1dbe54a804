"""Runs for tests: the bodies of the loan story, and entries that hold bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from woodrat.api.ledger import Ledger
from woodrat.canon import form
from woodrat.canon.ids import Position
from woodrat.ledger.write import Draft, Writer
from woodrat.log.entry import Entry, Envelope, commitment
from woodrat.runs.record import RunRecord, record_of
from woodrat.runs.steps import Write
from woodrat.state.meaning import step_of

RUN = "run_aaaaaaaaaaaaaaaaaaaaaaaaaa"
AGENT = "loan-officer"
OBSERVATION = "obs_bbbbbbbbbbbbbbbbbbbbbbbbbb"
LOG = "log_test"

Said = tuple[str, dict[str, Any]]
"""Kind and body."""


def at(second: int) -> str:
    """Return a moment of Monday, 5 January 2026."""
    return f"2026-01-05T09:{second // 60:02d}:{second % 60:02d}.000000Z"


def body(step: int, run: str = RUN, **said: Any) -> dict[str, Any]:
    """Return a body: what every one has, and what is said."""
    said = {"agent": AGENT, **said}
    return {"run": run, "step": step, "span": f"{step:016x}", "started_at": at(step), **said}


def origin(field: str = "creditScore", entity: str = "loan/42", observation: str = OBSERVATION) -> dict[str, Any]:
    """Return the origin of a value that was read."""
    return {"kind": "read", "entity": entity, "field": field, "observations": [observation], "position": 1}


def condition(key: str, op: str, operand: Any, actual: Any, result: bool, **said: Any) -> dict[str, Any]:
    """Return a condition as a body holds it."""
    return {"key": key, "op": op, "operand": operand, "actual": actual, "result": result, "origin": origin(key), **said}


def loan(
    run: str = RUN, number: int = 42, score: int = 580, observation: str = OBSERVATION, **began: Any
) -> list[Said]:
    """Return Monday's run: application 42 is rejected, or approved with a better score."""
    subject = f"loan/{number}"
    rejected = score < 600
    marginal = {
        "label": "Marginal credit",
        "chosen": "rejected",
        "when": {"creditScore": {"lt": 600}},
        "matched": rejected,
        "conditions": [
            {
                **condition("creditScore", "lt", 600, score, rejected),
                "origin": origin(entity=subject, observation=observation),
            }
        ],
    }
    good = {
        "label": "Good credit",
        "chosen": "approved",
        "when": {"creditScore": {"gte": 700}},
        "matched": score >= 700,
        "conditions": [
            {
                **condition("creditScore", "gte", 700, score, score >= 700),
                "origin": origin(entity=subject, observation=observation),
            }
        ],
    }
    chosen = "rejected" if rejected else "approved" if score >= 700 else "manual-review"
    verdict = f"Application #{number}: {chosen.upper()}."
    if rejected:
        verdict += f" Credit ({score}) below floor (600)."
    return [
        (
            "run.started",
            body(
                0,
                run,
                agent="loan-officer",
                query=f"Should we approve application #{number}?",
                subject=subject,
                principal="ann",
                conversation=f"app-{number}",
                inputs={"application": number},
                **began,
            ),
        ),
        (
            "run.read",
            body(
                1,
                run,
                log=LOG,
                position=1,
                entity=subject,
                found=True,
                fields={"creditScore": {"observation": observation, "value": score}},
            ),
        ),
        (
            "run.tool",
            body(
                2,
                run,
                name="lookup_credit_bureau",
                args={"application_id": str(number)},
                result={"hits": 1},
                errored=False,
                duration_ms=12,
            ),
        ),
        (
            "run.model",
            body(
                3,
                run,
                model="small-1",
                request="ab" * 32,
                response="The score settles it.",
                usage={"input": 120, "output": 9},
            ),
        ),
        (
            "run.decided",
            body(
                4,
                run,
                stage="classify-risk",
                mode="decide",
                chosen=chosen,
                default=chosen == "manual-review",
                **({} if chosen == "manual-review" else {"rule": "Marginal credit" if rejected else "Good credit"}),
                rules=[marginal] if rejected else [marginal, good],
                facts={"creditScore": score},
                facts_origin={"creditScore": origin(entity=subject, observation=observation)},
            ),
        ),
        ("run.noted", body(5, run, text="told the applicant", data={"by": "post"})),
        ("run.ended", body(6, run, status="done", answer=verdict, usage={"input": 120, "output": 9}, duration_ms=6000)),
    ]


def entry(position: int, kind: str, said: Mapping[str, Any] | None) -> Entry:
    """Return an entry; one without a body was erased."""
    nonce = None if said is None else position.to_bytes(16, "big")
    written = None if said is None else form.encode(dict(said))
    kept = b"\0" * 32 if nonce is None or written is None else commitment(nonce, written)
    return Entry(LOG, Position(position), at(position), kind, Envelope(position, 1, b"\0" * 32), kept, nonce, written)


def entries(said: Iterable[Said], first: int = 10) -> list[Entry]:
    """Return entries one after the other."""
    return [entry(position, kind, given) for position, (kind, given) in enumerate(said, first)]


def record(said: Iterable[Said] | None = None, writes: Iterable[Write] = (), **given: Any) -> RunRecord:
    """Return the record of a run; Monday's unless told otherwise."""
    return record_of(RUN, entries(loan() if said is None else said), writes, **given)


def write(ledger: Ledger, said: Iterable[Said]) -> int:
    """Write a run's entries as a recorder does, one at a time; return the position of the first."""
    first = None
    for kind, given in said:
        position = write_entry(ledger, kind, given)
        first = position if first is None else first
    assert first is not None
    return first


def write_entry(ledger: Ledger, kind: str, given: Mapping[str, Any]) -> int:
    """Write one entry of a run; return its position."""
    encoded = form.encode(dict(given))

    def plan(draft: Draft) -> None:
        draft.add(kind, encoded, step_of(kind, encoded))

    return Writer(ledger.context).write("run", {}, plan).position
