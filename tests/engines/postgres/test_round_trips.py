"""How often a process waits for the server: a bound for each verb, once it has done the same a few times."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.round_trips import RoundTrips

from woodrat import Ledger
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.ledger.committer import Committer
from woodrat.testing.ledgers import ledger_on

PERSON: dict[str, Any] = {
    "title": "person",
    "properties": {"name": {"type": "string"}, "city": {"type": "string"}, "n": {"type": "integer"}},
    "x-woodrat-identity": [["name"], ["email"]],
}
CITIES = ("Bern", "Oslo", "Paris")


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> RoundTrips:
    """What counts the round trips of all connections that are opened from now on."""
    return RoundTrips().install(monkeypatch)


@pytest.fixture
def here(trips: RoundTrips, postgres_engine: PostgresEngine) -> Ledger:
    """A ledger with 300 people."""
    ledger = ledger_on(postgres_engine)
    ledger.schemas.register(PERSON)
    ledger.store([person(number) for number in range(300)])
    ledger.query(entity_type="person", where={"city": "Oslo"})
    return ledger


@pytest.fixture
def elsewhere(here: Ledger, postgres_url: str) -> Iterator[Ledger]:
    """The same ledger at another server, by another agent."""
    engine = PostgresEngine(postgres_url)
    yield ledger_on(engine, agent="b")
    engine.close()


def person(number: int, **fields: Any) -> dict[str, Any]:
    name, city = f"Person {number}", CITIES[number % 3]
    return {
        "entity_type": "person",
        "name": name,
        "email": f"{number}@example.com",
        "city": city,
        "n": number,
        **fields,
    }


def counted(trips: RoundTrips, call: Callable[[], object]) -> int:
    """Return how many round trips a call takes."""
    trips.clear()
    call()
    return len(trips.taken())


def test_a_store_takes_two_round_trips(here: Ledger, postgres_engine: PostgresEngine, trips: RoundTrips) -> None:
    """One locks, and looks for the receipt and for entities that are not in memory; one writes and commits."""
    here.store(person(1, n=-1), idempotency_key="warm")
    for number, key in enumerate([None, "a", "b", "c"]):
        if key == "c":
            postgres_engine._places[here.tenant].memory.entities.clear()
        assert counted(trips, lambda n=number, k=key: here.store(person(1, n=n), idempotency_key=k)) == 2  # type: ignore[misc]
    with here.run("Which?") as run:
        run.note("the first one")  # it looks whether the run has ended already
        assert counted(trips, lambda: run.note("this one")) == 2


def test_a_store_of_a_new_entity_takes_two_round_trips(here: Ledger, trips: RoundTrips) -> None:
    """Who shares its identifying values is asked along with the beginning."""
    here.store(person(1_000), idempotency_key="warm")
    for number in range(1_001, 1_005):
        call = lambda number=number: here.store(person(number), idempotency_key=str(number))  # noqa: E731
        assert counted(trips, call) == 2


def test_servers_that_write_in_turn_take_two_round_trips_each(
    here: Ledger, elsewhere: Ledger, trips: RoundTrips
) -> None:
    """A process that finds that another wrote asks all it has forgotten at once, and next time with the lock."""
    counts = [
        counted(trips, lambda n=number, at=at: at.store(person(1, n=n), idempotency_key=f"{n}"))  # type: ignore[misc]
        for number in range(10)
        for at in (here, elsewhere)
    ]
    # After each 8 observations of an entity it takes a look at the state that was kept of it last.
    assert sorted(counts[8:])[:10] == [2] * 10
    assert max(counts[8:]) <= 3
    assert here.show("person/Person 1").fields["n"] == 9
    assert here.verify().sound


def test_calls_that_share_a_commit_take_one_round_trip_each(
    here: Ledger, postgres_engine: PostgresEngine, trips: RoundTrips
) -> None:
    """What a call adds goes with the beginning of the next, or with the commit."""
    here.store([person(number) for number in range(20)])
    with Committer(postgres_engine) as committer:

        def together() -> None:
            with postgres_engine.together([here.tenant]):
                for number in range(20):
                    here.store(person(number, n=-number))

        assert committer
        assert counted(trips, together) <= 22


READS: dict[str, tuple[int, Callable[[Ledger], object]]] = {
    "show": (1, lambda ledger: ledger.show("person/Person 7")),
    "a page by value": (2, lambda ledger: ledger.query(entity_type="person", where={"city": "Oslo"}, limit=10)),
    "a search of one word": (2, lambda ledger: ledger.search("oslo", limit=10)),
    "a search of two words": (2, lambda ledger: ledger.search("person oslo", limit=10)),
    "a search of a rare word": (2, lambda ledger: ledger.search("77", limit=10)),
}


@pytest.mark.parametrize("name", READS)
def test_a_read_takes_as_many_round_trips(here: Ledger, elsewhere: Ledger, trips: RoundTrips, name: str) -> None:
    """The same bound holds where another server writes before each read, and where nobody does."""
    most, read = READS[name]
    for number in range(4):
        elsewhere.store(person(200, n=-number))
        read(here)
    for number in range(4, 8):
        elsewhere.store(person(200, n=-number))
        assert counted(trips, lambda: read(here)) <= most, trips
        assert counted(trips, lambda: read(here)) <= most
    assert here.verify().sound


def test_the_next_page_takes_two_round_trips(here: Ledger, elsewhere: Ledger, trips: RoundTrips) -> None:
    """A cursor says where the rows of the next page begin."""

    def page(cursor: str | None) -> Any:
        return here.query(entity_type="person", where={"city": "Oslo"}, limit=10, cursor=cursor)

    first = page(None)
    for number in range(4):
        elsewhere.store(person(200, n=-number))
        page(first.cursor)
    second: list[Any] = []
    assert counted(trips, lambda: second.append(page(first.cursor))) <= 2
    assert {one.entity for one in first.items}.isdisjoint(one.entity for one in second[0].items)


def test_what_is_read_is_the_state_at_one_position(here: Ledger, elsewhere: Ledger) -> None:
    """What was asked ahead is never from before a write of another server, whatever was asked before."""
    for number in range(12):
        elsewhere.store([person(1, n=number, city="Rome"), person(300 + number, city="Rome")])
        found = here.query(entity_type="person", where={"city": "Rome"})
        assert len(found.items) == number + 2
        assert here.show("person/Person 1").fields["n"] == number
        assert len(here.search("rome", limit=100).items) == number + 2
        here.store(person(1, n=-1, city="Rome"))
        assert elsewhere.show("person/Person 1").version == here.position
