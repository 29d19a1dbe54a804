"""Vectors multiplied by pgvector: the same products, answers and order as in memory; a database without it; faults."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from operator import mul
from pathlib import Path
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests import postgres
from tests.recall.test_reader import Counting, apply, forget_in_memory, opened

import woodrat
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.postgres import vectors as pgvector
from woodrat.engines.postgres.distribution import violations
from woodrat.engines.postgres.engine import PostgresEngine
from woodrat.engines.postgres.migration import migrate
from woodrat.engines.records import VECTORS, IndexRow
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Refused
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.recall import index as recall_index
from woodrat.recall import vectors
from woodrat.testing.clock import FixedClock

TENANT = TenantId("lending")
INDEX = VECTORS + "some"
QUESTIONS = ("Why was application #42 rejected?", "credit below floor", "Should we approve it?", "ana rivera city")


@pytest.fixture(autouse=True)
def _available(postgres_server: str) -> None:
    with psycopg.connect(postgres_server) as connection:
        if connection.execute(pgvector._IS_AVAILABLE).fetchone() is None:
            pytest.skip("the server that WOODRAT_TEST_PG names does not have pgvector")


@pytest.fixture
def engine(postgres_database: Callable[[], str]) -> Iterator[PostgresEngine]:
    made = PostgresEngine(postgres_database())
    yield made
    made.close()


@pytest.fixture
def apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let an engine that multiplies do so for the smallest index."""
    monkeypatch.setattr(recall_index, "MATRIX_BYTES_MAX", 0)


def numbers(keys: bytes, packed: bytes) -> dict[bytes, int]:
    """Return numbers of four bytes by keys of twelve."""
    found = struct.unpack(f"!{len(packed) // 4}i", packed)
    return {keys[place * 12 : place * 12 + 12]: number for place, number in enumerate(found)}


def key(number: int) -> bytes:
    return number.to_bytes(12, "big")


@st.composite
def packed_vectors(draw: st.DrawFn) -> list[bytes]:
    """Vectors of one dimension with components as large as may be."""
    dimension = draw(st.sampled_from([1, 2, 3, 8, 383, 384, 1_040, 8_192]))
    largest = vectors.component_max(dimension)
    component = st.integers(-largest, largest) | st.sampled_from([-largest, largest])
    some = st.lists(component, min_size=1, max_size=5)
    made = []
    for _ in range(draw(st.integers(1, 4))):
        pattern = draw(some)
        made.append(vectors.pack([pattern[place % len(pattern)] for place in range(dimension)], dimension))
    return made


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(packed_vectors())
def test_products_are_those_of_the_bytes(engine: PostgresEngine, given: list[bytes]) -> None:
    """A dot product that the server makes is the whole number that the bytes have, for the largest components too."""
    # A vector of another dimension, which has to be one that vectors may have.
    odd = given[0] + b"\1" if len(given[0]) < vectors.DIMENSION_MAX else given[0][1:]
    with engine.transaction(TENANT) as write:
        write.drop(INDEX)
        write.put([IndexRow(INDEX, key(place), 0, vector) for place, vector in enumerate(given)])
        write.put([IndexRow(INDEX, key(99), 0, odd), IndexRow("other", key(0), 0, given[0])])
    asked = given[-1]
    with engine.view(TENANT) as view:
        assert view.multiplies
        whole = [vectors.components(vector) for vector in given]
        expected = {key(place): sum(map(mul, each, whole[-1])) for place, each in enumerate(whole)}
        assert numbers(*view.products(INDEX, asked)) == expected
        squares = {key(place): vectors.square(vector) for place, vector in enumerate([*given, odd])}
        squares[key(99)] = squares.pop(key(len(given)))
        assert numbers(*view.squares(INDEX)) == squares
        assert numbers(*view.squares(INDEX, key(0))) == {at: each for at, each in squares.items() if at != key(0)}
        assert view.products(VECTORS + "none", asked) == view.squares(VECTORS + "none") == (b"", b"")


def test_no_tenant_multiplies_vectors_of_another(engine: PostgresEngine) -> None:
    """Products are those of the tenant that asks."""
    with engine.transaction(TenantId("other")) as write:
        write.put([IndexRow(INDEX, key(0), 0, b"\1\2")])
    with engine.view(TENANT) as view:
        assert view.multiplies
        assert view.products(INDEX, b"\1\2") == view.squares(INDEX) == (b"", b"")


def test_a_row_that_is_no_vector_is_kept_as_any_other(engine: PostgresEngine) -> None:
    """Whatever stands in an index of vectors is kept; what cannot be multiplied is left out."""
    with engine.transaction(TENANT) as write:
        write.put([IndexRow(INDEX, key(0), 0, b""), IndexRow(INDEX, key(1), 0, b"\1" * 8_193)])
    with engine.view(TENANT) as view:
        assert view.multiplies
        assert [size for _, value in view.scan(INDEX) if (size := len(value)) >= 0] == [0, 8_193]
        assert view.squares(INDEX) == (b"", b"")


# Recall


def answers(ledger: woodrat.Ledger, embedder: Counting) -> list[dict[str, Any]]:
    """Return what is recalled at some positions, as JSON."""
    positions = (ledger.position // 3, ledger.position // 2, ledger.position)
    return [
        ledger.at(position).recall(question, k=5, threshold=0.05, embedder=embedder).to_json()
        for position in positions
        for question in QUESTIONS
    ]


def tell(ledger: woodrat.Ledger) -> None:
    for number in range(40, 48):
        apply(ledger, number, 500 + number * 3)
    ledger.store([{"entity_type": "contact", "name": f"Ana Rivera {n}", "city": f"Town {n}"} for n in range(10)])
    ledger.remember("Ana prefers calls before noon", about="contact/Ana Rivera 1")


def unheld(engine: Engine, ledger: woodrat.Ledger, embedder: Counting) -> int | None:
    """Return how many vectors a process holds of an index that the engine multiplies; none where it does not."""
    index = recall_index.cached_index(ledger.context, embedder).index
    assert index.unheld is None or index.vectors is None
    return None if index.unheld is None else len(index.unheld)


def test_recall_is_the_same_whoever_multiplies(
    engine: PostgresEngine, apart: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every moment, in new processes, after a reindex and an erasure: the answers and their order are memory's."""
    make_keys(tmp_path / "keys", FixedClock())
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "keys"))
    embedder, memory = Counting(), InMemoryEngine()
    pair = [(each, opened(each)) for each in (memory, engine)]

    def same() -> None:
        one, other = (answers(ledger, embedder) for _, ledger in pair)
        assert one == other
        assert any(answer["hits"] for answer in one)
        assert (unheld(memory, pair[0][1], embedder), unheld(engine, pair[1][1], embedder)) == (None, 0)

    for _, ledger in pair:
        tell(ledger)
    same()
    forget_in_memory(engine)
    same()
    for _, ledger in pair:
        ledger.store({"entity_type": "contact", "name": "Ana Rivera 3", "city": "Girona"})
        apply(ledger, 48, 555)
    same()
    for _, ledger in pair:
        ledger.reindex(embedder)
    same()
    for _, ledger in pair:
        ledger.erase("contact/Ana Rivera 2", reason="asked for")
    same()
    forget_in_memory(engine)
    same()


def test_rows_without_a_vector_are_compared_by_words(
    engine: PostgresEngine, apart: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As long as vectors are lacking, and where they can be kept nowhere, the answers are those of memory."""
    embedder, memory = Counting(), InMemoryEngine()
    monkeypatch.setattr(recall_index, "CHUNK_PASSAGES", 4)
    monkeypatch.setattr(recall_index, "CATCH_UP_MAX", 10_000)
    pair = [opened(memory), opened(engine)]
    for ledger in pair:
        tell(ledger)
    follow = recall_index.follow_vectors

    def some(context: Any, embedder: Any, cached: Any, progress: Any = None, **given: Any) -> None:
        follow(context, embedder, cached, progress, passages_max=5)

    monkeypatch.setattr(recall_index, "follow_vectors", some)
    remarks = []
    for asked in QUESTIONS:
        one, other = (ledger.recall(asked, embedder=embedder).to_json() for ledger in pair)
        assert one == other
        remarks.append(one["remark"])
    assert "no vector yet" in remarks[0]
    readonly = PostgresEngine(engine.url, readonly=True)
    monkeypatch.setattr(recall_index, "follow_vectors", follow)
    alone = opened(readonly)
    assert answers(alone, embedder) == answers(pair[0], embedder)
    assert unheld(readonly, alone, embedder)
    readonly.close()


def test_an_index_that_grows_is_handed_over(engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that held the vectors lets them go once there are too many, and answers as before."""
    embedder, memory = Counting(), InMemoryEngine()
    pair = [opened(memory), opened(engine)]
    for ledger in pair:
        tell(ledger)
    before = answers(pair[1], embedder)
    assert before == answers(pair[0], embedder)
    assert unheld(engine, pair[1], embedder) is None
    monkeypatch.setattr(recall_index, "MATRIX_BYTES_MAX", 0)
    assert answers(pair[1], embedder) == before
    assert unheld(engine, pair[1], embedder) == 0


def test_vectors_that_somebody_dropped_are_made_again(engine: PostgresEngine, apart: None) -> None:
    """Vectors that go while a process relies on them are lacking for one question, and are made again for the next."""
    embedder, ledger = Counting(), opened(engine)
    tell(ledger)
    before = answers(ledger, embedder)
    cached = recall_index.cached_index(ledger.context, embedder)
    with engine.transaction(TENANT) as write:
        write.drop(VECTORS + embedder.id)
        write.set_meta(VECTORS + embedder.id, None)
    packed = vectors.pack(embedder.embed([QUESTIONS[0]])[0], embedder.dimension)
    assert not recall_index.held_products(ledger.context, embedder, cached, packed).any()
    assert len(cached.index.unembedded) == sum(map(bool, cached.index.texts))
    assert answers(ledger, embedder) == before
    assert unheld(engine, ledger, embedder) == 0


def test_another_dimension_under_one_id_is_refused(engine: PostgresEngine, apart: None) -> None:
    """It is refused as where the process holds the vectors."""
    ledger = opened(engine)
    tell(ledger)
    ledger.recall(QUESTIONS[0], embedder=Counting("mine", 384))
    with pytest.raises(Refused, match="384 components, its own have 128"):
        ledger.recall(QUESTIONS[0], embedder=Counting("mine", 128))


def test_verify_finds_a_vector_that_is_not_that_of_its_bytes(engine: PostgresEngine) -> None:
    """Nobody but the server can write the column; what it made wrong all the same is found; `reindex` repairs it."""
    embedder, ledger = Counting(), opened(engine)
    tell(ledger)
    ledger.recall(QUESTIONS[0], embedder=embedder)
    assert ledger.verify(deep=True, embedder=embedder).sound
    with psycopg.connect(engine.url, autocommit=True) as connection:
        run = connection.execute
        with pytest.raises(psycopg.errors.GeneratedAlways):
            run("UPDATE woodrat.index_row SET vector = vector WHERE name LIKE 'recall/%'")
        (body,) = run("SELECT pg_get_functiondef('woodrat.vector_of'::regproc)").fetchone() or ("",)
        run(body.replace("# 128", "# 64"))
        run("UPDATE woodrat.index_row SET value = value WHERE name LIKE 'recall/%'")
        run(body)
    report = ledger.verify(deep=True, embedder=embedder)
    assert not report.sound
    assert "vectors" in {finding.damage for finding in report.damage}
    ledger.reindex(embedder)
    assert ledger.verify(deep=True, embedder=embedder).sound


# The layout


@pytest.fixture
def empty(postgres_server: str) -> Iterator[str]:
    """The address of a database without anything in it."""
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        name = f"woodrat_vectors_{connection.info.backend_pid}"
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        yield postgres.of(postgres_server, name)
        connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_database_without_pgvector_is_whole_and_takes_it_later(
    empty: str, apart: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the extension all answers are the same; `migrate` adds it later, and the rows have their vectors then."""
    with monkeypatch.context() as without:
        without.setattr(pgvector, "_IS_AVAILABLE", "SELECT 1 WHERE false")
        assert migrate(empty).pgvector == "not used: the server does not have it"
    embedder = Counting()
    engine = PostgresEngine(empty)
    ledger = opened(engine)
    tell(ledger)
    before = answers(ledger, embedder)
    with engine.view(TENANT) as view:
        assert not view.multiplies
    assert unheld(engine, ledger, embedder) is None
    assert ledger.verify(deep=True, embedder=embedder).sound
    assert engine.settings()["pgvector"] == "not used"
    engine.close()

    assert migrate(empty).pgvector == "used"
    assert migrate(empty).pgvector == "used"
    engine = PostgresEngine(empty)
    ledger = opened(engine)
    assert answers(ledger, embedder) == before
    assert unheld(engine, ledger, embedder) == 0
    assert ledger.verify(deep=True, embedder=embedder).sound
    assert engine.settings()["pgvector"] != "not used"
    engine.close()
    with psycopg.connect(empty) as connection:
        assert list(violations(connection)) == []
        connection.execute("DROP EXTENSION vector CASCADE")
    engine = PostgresEngine(empty)
    assert answers(opened(engine), embedder) == before
    engine.close()


def test_who_may_not_create_the_extension_goes_on_without(empty: str, postgres_server: str) -> None:
    """A set-up that is refused the extension is whole, and says what the server said."""
    role = "woodrat_test_migrator"
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        name = empty.split("/")[3].split("?")[0]
        connection.execute(f"DROP ROLE IF EXISTS {role}")
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT woodrat_owner, woodrat_writer, woodrat_reader, woodrat_eraser TO {role}")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO {role}")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO woodrat_owner")
        try:
            done = migrate(postgres.of(empty, name, role))
            assert done.pgvector.startswith("not used: permission denied to create extension")
            engine = PostgresEngine(postgres.of(empty, name, role))
            assert opened(engine).store({"entity_type": "memo", "id": "1"}).position == 0
            engine.close()
        finally:
            with psycopg.connect(empty, autocommit=True) as there:
                there.execute(f"DROP OWNED BY {role}")
                there.execute(f"REVOKE CREATE ON DATABASE {name} FROM woodrat_owner")
            connection.execute(f"DROP ROLE {role}")


def test_values_never_enter_the_planners_statistics(engine: PostgresEngine) -> None:
    """The column is not sampled: a vector is made of words."""
    with psycopg.connect(engine.url) as connection:
        found = connection.execute(
            "SELECT attstattarget FROM pg_attribute "
            "WHERE attrelid = 'woodrat.index_row'::regclass AND attname = 'vector'"
        )
        assert found.fetchone() == (0,)
