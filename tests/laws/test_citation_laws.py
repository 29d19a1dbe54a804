"""Reads of a log that come from outside: as the recorder makes them they are accepted, and changed they are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.laws.test_ledger_laws import on_every_engine

from woodrat import Ledger, NotFound
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.write import Draft, Writer
from woodrat.runs import values
from woodrat.runs.verbs import citation
from woodrat.runs.verbs.citation import Citations
from woodrat.state.observation import Observation
from woodrat.testing.histories import batches, tellings
from woodrat.testing.ledgers import bodies, ledger_on

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]

OTHER = "no such value was ever said"
NOBODY = "obs_" + "a" * 26


@on_every_engine
@given(data=st.data())
def test_a_read_is_accepted_as_it_was_and_no_other(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """What a recorder reads, at any position and while others write, agrees with the log, and no change of it does."""
    telling = data.draw(tellings(size_max=4))
    refs = sorted({one.entity for one in telling.said if isinstance(one, Observation)}, key=str)
    ledger = ledger_on(make_engine())
    with ledger.run("Which?") as run:
        for batch in data.draw(batches(telling)):
            ledger.admit(bodies(batch.said))
            for ref in refs:
                with suppress(NotFound):
                    run.show(ref)
            past = data.draw(st.integers(-1, ledger.position))
            for ref in refs:
                with suppress(NotFound):
                    run.at(past).show(ref)
    reads = [body for kind, body in recorded(ledger) if kind == "run.read"]

    def plan(draft: Draft) -> None:
        for body in reads:
            assert Citations(draft, own=True).faults("run.read", body) == []
            assert Citations(draft, own=False).faults("run.read", body) == []
            for name, changed in forged(body):
                event(name)
                assert Citations(draft, own=True).faults("run.read", changed) != [], (name, body)

    Writer(ledger.context).write("check", {}, plan)


def recorded(ledger: Ledger) -> Iterator[tuple[str, Any]]:
    for entry in ledger.log.entries(limit=1_000):
        yield entry.kind, form.decode(entry.body) if entry.body is not None and entry.kind != "source" else {}


def forged(body: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield a read with one thing changed in it, and what that is."""
    fields = body.get("fields", {})
    yield "found", {**body, "found": not body["found"]}
    yield "a further field", {**body, "fields": {**fields, "e": {"observation": NOBODY, "value": 1}}}
    for name, item in fields.items():
        yield "value", {**body, "fields": {**fields, name: {**item, "value": OTHER}}}
        yield "observation", {**body, "fields": {**fields, name: {**item, "observation": NOBODY}}}
        yield "observations", {**body, "fields": {**fields, name: {**item, "observations": [NOBODY]}}}
        yield "no observation", {**body, "fields": {**fields, name: {"value": item["value"]}}}
        yield "a field less", {**body, "fields": {other: fields[other] for other in fields if other != name}}


PLANTED: dict[str, tuple[object, str, object]] = {
    "nothing is compared": (Citations, "_compared", lambda *_: None),
    "values are not compared": (values, "shows", lambda *_: True),
    "observations are not compared": (citation, "_agree", lambda *_: True),
    "large values are not compared": (citation, "ELEMENTS_MAX", -1),
}
"""Checks that leave something out."""


@pytest.mark.parametrize("planted", PLANTED)
def test_a_check_that_leaves_something_out_is_found_out(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check that compares less lets a changed read pass, and the law above notices."""
    ledger = ledger_on(InMemoryEngine())
    ledger.schemas.register({"title": "loan", "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}}})
    tags = [str(number) for number in range(100)]
    ledger.store({"entity_type": "loan", "id": "42", "score": 580, "tags": tags})
    with ledger.run("Which?") as run:
        run.show("loan/42")
    (read,) = [body for kind, body in recorded(ledger) if kind == "run.read"]
    monkeypatch.setattr(*PLANTED[planted])

    def plan(draft: Draft) -> None:
        assert any(Citations(draft, own=True).faults("run.read", changed) == [] for _, changed in forged(read))

    Writer(ledger.context).write("check", {}, plan)
