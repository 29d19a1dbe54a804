"""The request: what a recall asks, checked, with everything that is wrong about it at once."""

from __future__ import annotations

import math
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form, moment_words
from woodrat.errors import Fault, Refused, shown
from woodrat.recall import embedders
from woodrat.records import dataclass
from woodrat.runs import projection as projections
from woodrat.state.record import parse_moment

if TYPE_CHECKING:
    from woodrat.recall.embedders import Embedder

NOTHING_READ: Final = "Nothing was read."
"""What a request that is refused has done."""
TENANT, PRINCIPAL, CONVERSATION = "tenant", "principal", "conversation"
SCOPES: Final = (TENANT, PRINCIPAL, CONVERSATION)
"""Among whose runs a recall looks."""

QUESTION_BYTES_MAX: Final = 1_048_576
"""Longest question, in UTF-8; only its beginning is compared."""
QUESTION_CHARACTERS: Final = 2_000
"""How much of a question is compared."""
K_MAX: Final = 100
"""Most hits one recall returns."""


@dataclass(frozen=True, slots=True)
class RecallRequest:
    """A recall, checked."""

    question: str
    k: int
    threshold: float
    projection: str
    budget: int | None
    scope: str
    principal: str | None
    conversation: str | None
    ttl_micros: int | None
    embedder: Embedder | None
    since: str | None = None
    until: str | None = None
    not_from: tuple[str, ...] = ()
    entity_types: tuple[str, ...] = ()
    default: bool = False

    @property
    def embedder_id(self) -> str:
        """Id of the embedder."""
        return embedders.NONE if self.embedder is None else self.embedder.id

    def args(self) -> dict[str, Any]:
        """Return it as a run records it; what was left out is left out."""
        said: dict[str, Any] = {
            "question": self.question,
            "k": self.k,
            "threshold": self.threshold,
            "projection": self.projection,
            "budget": self.budget,
            "scope": self.scope,
            "principal": self.principal,
            "conversation": self.conversation,
            "ttl_micros": self.ttl_micros,
            "embedder": None if self.default else self.embedder_id,
            "since": self.since,
            "until": self.until,
            "not_from": list(self.not_from) or None,
            "entity_types": list(self.entity_types) or None,
        }
        return {name: value for name, value in said.items() if value is not None}


def ask(
    question: object,
    k: object,
    threshold: object,
    projection: object,
    budget: object,
    scope: object,
    principal: object,
    conversation: object,
    ttl: object,
    embedder: object,
    since: object = None,
    until: object = None,
    not_from: object = None,
    entity_type: object = None,
    now: str | None = None,
) -> RecallRequest:
    """Return a recall once everything about it is in order; `Refused` says all that is not."""
    faults = question_faults(question, empty=True)
    if type(k) is not int or not 1 <= k <= K_MAX:
        faults.append(Fault("k", f"got {shown(k)}", f"Send how many hits, 1 to {K_MAX}."))
    if type(threshold) not in (int, float) or not 0 <= threshold <= 1:  # type: ignore[operator]
        faults.append(Fault("threshold", f"got {shown(threshold)}", "Send a number from 0 to 1, such as 0.5."))
    if projection not in projections.PROJECTIONS:
        known = ", ".join(projections.PROJECTIONS)
        faults.append(Fault("projection", f"there is no projection {shown(projection)}", f"Send one of {known}."))
    if budget is not None and (type(budget) is not int or budget < projections.BUDGET_MIN):
        remedy = f"Send a number of tokens, {projections.BUDGET_MIN} or more, or none."
        faults.append(Fault("budget", f"got {shown(budget)}", remedy))
    faults += scope_faults(scope, principal, conversation)
    age = _micros(ttl, faults)
    first, after = _time(since, "since", now, faults), _time(until, "until", now, faults)
    agents = _texts(not_from, "not_from", "Send the names of agents whose words to leave out.", faults)
    types = _texts(entity_type, "entity_type", "Send one entity type, or a list of them.", faults)
    if faults:
        raise Refused(faults, NOTHING_READ)
    assert isinstance(question, str) and isinstance(k, int) and isinstance(threshold, int | float)
    assert isinstance(projection, str) and isinstance(scope, str) and (budget is None or isinstance(budget, int))
    return RecallRequest(
        question,
        k,
        float(threshold),
        projection,
        budget,
        scope,
        principal if scope == PRINCIPAL and isinstance(principal, str) else None,
        conversation if scope == CONVERSATION and isinstance(conversation, str) else None,
        age,
        embedders.check(embedder),
        first,
        after,
        agents,
        types,
        embedder is None,
    )


def _time(value: object, name: str, now: str | None, faults: list[Fault]) -> str | None:
    """Return a time as fixed-width text: a timestamp, a date, or words such as `yesterday`."""
    if value is None:
        return None
    if isinstance(value, str) and now is not None and (said := moment_words.resolve(value, now)) is not None:
        return said
    found: list[Fault] = []
    fixed = parse_moment(value, name, found)
    faults += found if fixed is not None or found else [Fault(name, f"got {shown(value)}", "Send a time or a date.")]
    return fixed


def _texts(given: object, path: str, remedy: str, faults: list[Fault]) -> tuple[str, ...]:
    """Return one text or several, sorted."""
    listed = (given,) if isinstance(given, str) else () if given is None else given
    if not isinstance(listed, list | tuple | set | frozenset) or not all(isinstance(each, str) for each in listed):
        faults.append(Fault(path, f"got {shown(given)}", remedy))
        return ()
    return tuple(sorted(listed))


def question_faults(question: object, *, empty: bool = False) -> list[Fault]:
    """Return what is wrong with a question; an `empty` one may have an empty answer."""
    if not isinstance(question, str):
        return [Fault("question", f"expected text, got {shown(question)}", "Send the question as text.")]
    found = form.faults(question, "question")
    if not found and not empty and not question.strip():
        found = [Fault("question", "it is empty", "Send the question as text.")]
    if not found and len(question.encode()) > QUESTION_BYTES_MAX:
        problem = f"it has {len(question.encode())} bytes in UTF-8, where {QUESTION_BYTES_MAX} is the limit"
        found = [Fault("question", problem, "Send the question alone, without what it is about.")]
    return found


def scope_faults(scope: object, principal: object, conversation: object) -> list[Fault]:
    """Return what is wrong with a scope; it is explicit, so the one meant must be named."""
    if scope not in SCOPES:
        return [Fault("scope", f"there is no scope {shown(scope)}", f"Send one of {', '.join(SCOPES)}.")]
    faults = []
    for name, value in ((PRINCIPAL, principal), (CONVERSATION, conversation)):
        if value is None and scope == name:
            faults.append(
                Fault(name, f"the scope is {name}, and no {name} is named", f"Say which {name}, or widen the scope.")
            )
        elif value is not None and not isinstance(value, str):
            faults.append(Fault(name, f"expected text, got {shown(value)}", f"Send the {name} as text."))
    return faults


def _micros(ttl: object, faults: list[Fault]) -> int | None:
    """Return how old a run may be, from seconds or a `timedelta`."""
    if ttl is None:
        return None
    seconds = ttl.total_seconds() if isinstance(ttl, timedelta) else ttl
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds < 0:
        faults.append(Fault("ttl", f"got {shown(ttl)}", "Send seconds, 0 or more, or a timedelta."))
        return None
    return round(seconds * 1_000_000)
