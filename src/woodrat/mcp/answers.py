"""What the tools answer, as plain JSON."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from woodrat.server import wire
from woodrat.state.asof import Stored

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.ledger.report import Report


def show(past: Past, ref: str) -> dict[str, Any]:
    """What is believed about an entity."""
    return past.show(ref).to_json()


def elements(past: Past, ref: str, field: str, **asked: Any) -> dict[str, Any]:
    """Elements of a collection, some at a time."""
    return past.elements(ref, field, **asked).to_json()


def search(past: Past, query: str, **asked: Any) -> dict[str, Any]:
    """Entities by words; what they are believed to be."""
    page = past.search(query, **asked)
    found = ({**hit.snapshot.to_json(), "exact": hit.exact, "found_in": list(hit.fields)} for hit in page.items)
    return wire.listing("entities", found, past.position, page.cursor)


def query(past: Past, **asked: Any) -> dict[str, Any]:
    """Entities by type and values."""
    page = past.query(**asked)
    return wire.listing("entities", (found.to_json() for found in page.items), past.position, page.cursor)


def observations(past: Past, ref: str | None = None) -> dict[str, Any]:
    """Observations of one entity, or all."""
    return wire.listing("observations", map(wire.stored, past.observations(ref)), past.position)


def history(past: Past, ref: str, field: str | None = None) -> dict[str, Any]:
    """How belief about an entity changed."""
    return wire.listing("history", (step.to_json() for step in past.history(ref, field)), past.position)


def diff(past: Past, before: str, after: str = "now", **asked: Any) -> dict[str, Any]:
    """What differs between two moments."""
    start, end = past.at(before).position, past.at(after).position
    changes = past.diff(start, end, **asked)
    return {"from": start, "to": end, "changes": [change.to_json() for change in changes]}


def blame(past: Past, ref: str, field: str | None = None, *, excerpts: bool = False) -> dict[str, Any]:
    """Every claim, whether it won, and why."""
    return {"position": past.position, "claims": wire.blame(wire.blamed(past, ref, field, excerpts=excerpts))}


def conflicts(past: Past, entity_type: str | None = None, *, arrival: bool = False) -> dict[str, Any]:
    """Fields on which agents differ, or that were decided only by arrival."""
    rows = (wire.conflict(*item) for item in past.conflicts(entity_type, arrival=arrival))
    return wire.listing("conflicts", rows, past.position)


def verify(ledger: Ledger, **asked: Any) -> dict[str, Any]:
    """Whether everything is as the log says; in this process, so that a caller takes no more than one reader."""
    return ledger.verify(**asked, jobs=1).to_json()


def schemas(past: Past) -> dict[str, Any]:
    """The schemas in force."""
    return wire.listing("schemas", (schema.to_json() for schema in past.schemas.list()), past.position)


def schema(past: Past, entity_type: str) -> dict[str, Any]:
    """The schema of one type."""
    return past.schemas.show(entity_type).to_json()


def infer(past: Past, entity_type: str) -> dict[str, Any]:
    """A schema that fits what was seen of a type."""
    return past.schemas.infer(entity_type)


def run(past: Past, run: str) -> dict[str, Any]:
    """The record of one run."""
    return past.runs.show(run).to_json()


def runs_diff(past: Past, first: str, second: str) -> dict[str, Any]:
    """Where two runs part, and why."""
    return past.runs.diff(first, second).to_json()


def why(past: Past, ref: str, **asked: Any) -> dict[str, Any]:
    """What was decided about an entity, and on what evidence."""
    page = past.why(ref, **asked)
    return wire.listing("decisions", (reason.to_json() for reason in page.items), past.position, page.cursor)


def recall(past: Past, question: str, **asked: Any) -> dict[str, Any]:
    """What earlier runs decided about something like this."""
    return past.recall(question, **asked).to_json()


def lineage(past: Past, what: str) -> dict[str, Any]:
    """Where something comes from."""
    return past.lineage(what).to_json()


def impact(past: Past, what: str | None = None, agent: str | None = None) -> dict[str, Any]:
    """What leaned on something."""
    return past.impact(what, agent=agent).to_json()


def stale(past: Past, **asked: Any) -> dict[str, Any]:
    """Decisions that would come out differently now."""
    page = past.stale(**asked)
    return wire.listing("decisions", (found.to_json() for found in page.items), past.position, page.cursor)


def reported(verb: str) -> Callable[..., Report]:
    """Return the function that answers a verb of the ledger with its report.

    What a report tells is worked out by its `to_json`, which can wait until the write is durable.
    """

    def write(ledger: Ledger, **given: Any) -> Report:
        found: Report = attrgetter(verb)(ledger)(**given)
        return found

    write.__name__ = verb.rpartition(".")[2]
    return write


def step_told(answer: dict[str, Any]) -> dict[str, Any]:
    """Return what is answered to a step, its records as plain JSON."""
    return {name: plain(value) for name, value in answer.items()}


def plain(value: Any) -> Any:
    """Return records as plain JSON, wherever they stand."""
    if hasattr(value, "to_json"):
        return value.to_json()
    if isinstance(value, Stored):
        return wire.stored(value)
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    return {name: plain(item) for name, item in value.items()} if isinstance(value, dict) else value


store = reported("store")
correct = reported("correct")
retract = reported("retract")
delete = reported("delete")
restore = reported("restore")
relate = reported("relate")
merge = reported("merge")
split = reported("split")
register = reported("schemas.register")
