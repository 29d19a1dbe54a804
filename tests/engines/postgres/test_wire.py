"""Statements over a connection: several in one round trip, an error in the middle, and what is not waited for."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from tests.round_trips import RoundTrips

from woodrat.engines.postgres.connection import arguments, configure
from woodrat.engines.postgres.prefetch import HABITS_MAX, VAIN_MAX, Habit, by_key
from woodrat.engines.postgres.statements import BytesColumn, NumberColumn, Part, TextColumn
from woodrat.engines.postgres.wire import Command, Connection

ADD = Part("SELECT :one::bigint + :other::bigint")
DIVIDE = Part("SELECT :one::bigint / :other::bigint")
ECHO = Part("SELECT n, b, t FROM unnest(:n::bigint[], :b::bytea[], :t::text[]) AS each (n, b, t)")
SAME = Part("SELECT :text::text, :bytes::bytea, :none::bigint")

NOTHING = Command(SAME, dict.fromkeys(SAME.names))


@pytest.fixture
def trips(monkeypatch: pytest.MonkeyPatch) -> RoundTrips:
    """What counts round trips."""
    return RoundTrips().install(monkeypatch)


@pytest.fixture
def connection(trips: RoundTrips, postgres_url: str) -> Iterator[Connection]:
    """A connection of the engine's."""
    with Connection.connect(postgres_url, **arguments()) as connection:
        configure(connection, "woodrat_writer")
        trips.clear()
        yield connection


def added(one: int, other: int) -> Command:
    return Command(ADD, {"one": one, "other": other})


def test_several_statements_take_one_round_trip(connection: Connection, trips: RoundTrips) -> None:
    """Rows come in the order of the statements, and values as they were sent."""
    assert connection.exchange([Command("BEGIN"), added(1, 2), added(3, 4), Command("COMMIT")]) == [
        [],
        [(3,)],
        [(7,)],
        [],
    ]
    values = {"n": NumberColumn([1, None]), "b": BytesColumn([b"\0", None]), "t": TextColumn(["é", None])}
    same = {"text": "Ü", "bytes": b"\xff", "none": None}
    rows = connection.exchange([Command(ECHO, values), Command(SAME, same)])
    assert rows == [[(1, b"\0", "é"), (None, None, None)], [("Ü", b"\xff", None)]]
    assert len(trips.taken()) == 2


def test_an_error_skips_what_follows_and_no_more(connection: Connection) -> None:
    """The first error is raised; statements are prepared once, whatever became of the transaction."""
    connection.exchange([Command("BEGIN"), added(0, 0)])
    with pytest.raises(psycopg.errors.DivisionByZero):
        connection.exchange(
            [added(1, 1), Command(DIVIDE, {"one": 1, "other": 0}), Command(SAME, dict.fromkeys(SAME.names))]
        )
    with pytest.raises(psycopg.errors.InFailedSqlTransaction):
        connection.exchange([added(1, 1)])
    connection.exchange([Command("ROLLBACK")])
    assert connection.exchange([added(1, 1), Command(DIVIDE, {"one": 6, "other": 3})]) == [[(2,)], [(2,)]]
    assert connection.exchange([NOTHING]) == [[(None, None, None)]]
    prepared = connection.exchange([Command("SELECT count(*) FROM pg_prepared_statements")])
    assert prepared == [[(3,)]]


def test_what_is_not_waited_for_is_read_with_the_next_answer(connection: Connection, trips: RoundTrips) -> None:
    """A transaction that is ended so takes no round trip, and nobody hears of an error in that."""
    connection.exchange([Command("BEGIN"), added(1, 1)])
    connection.send("ROLLBACK TO nothing")
    connection.send("ROLLBACK")
    assert connection.exchange([added(2, 2)]) == [[(4,)]]
    assert len(trips.taken()) == 2
    connection.send("SELECT 1")
    connection.settle()
    assert connection.execute("SELECT 2").fetchone() == (2,)


def test_a_connection_that_the_server_ends_says_why(connection: Connection, postgres_url: str) -> None:
    """It is closed from then on."""
    with psycopg.connect(postgres_url, autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s)", (connection.info.backend_pid,))
    with pytest.raises(psycopg.OperationalError):
        connection.exchange([added(1, 1)])
    assert connection.closed
    connection.send("COMMIT")


def test_what_was_asked_twice_in_a_row_is_asked_along() -> None:
    """Until it was asked in vain a few times; there is a bound to how much that is."""
    habit, questions = Habit(), [added(1, number) for number in range(HABITS_MAX + 4)]
    habit.learn(by_key(questions[:2]))
    assert not habit.questions
    habit.learn(by_key(questions[1:3]))
    assert habit.questions == (questions[1],)
    for _ in range(VAIN_MAX - 1):
        habit.learn({})
        assert habit.questions == (questions[1],)
    habit.learn({})
    assert not habit.questions
    for _ in range(2):
        habit.learn(by_key(questions))
    assert len(habit.questions) == HABITS_MAX
