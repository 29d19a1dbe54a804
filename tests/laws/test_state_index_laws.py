"""The law of indexes: whatever rows a state index has, queries, conflicts and duplicates answer as folding does."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from tests.laws.test_ledger_laws import ENGINES

from woodrat import Ledger, Past, WoodratError
from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, TenantId
from woodrat.canon.order import order_key
from woodrat.engines.engine import Engine
from woodrat.engines.records import IndexRow
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.sqlite.transaction import SqliteTransaction
from woodrat.ledger import find, query, reads, search_index, state_index, state_rows, state_steps
from woodrat.ledger.moments import open_reader
from woodrat.ledger.read import Reader
from woodrat.ledger.state_rows import INDEXES
from woodrat.ledger.transitions import touched
from woodrat.merge import snapshot
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.state import relation, schema, tokens
from woodrat.state.observation import ASSERT, Observation, say
from woodrat.state.schema import Schema
from woodrat.testing.clock import FixedClock
from woodrat.testing.generators import MOMENTS
from woodrat.testing.histories import Telling, batches, tellings
from woodrat.testing.ledgers import bodies, ledger_on

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]

TENANT: Final = TenantId("t")
FIELDS: Final = ("a", "b", "c", "d")


def indexed(found: Schema, names: Sequence[str]) -> Schema:
    """Return a schema with these fields indexed, and with identity rules of one field and of two."""
    document: Any = form.parse(form.serialise(dict(found.document)))
    for name, described in document["properties"].items():
        if name in names:
            described["x-woodrat-index"] = True
    document["x-woodrat-identity"] = [["a"], ["a", "b"]]
    body = form.serialise({"schema": document, "type": found.type})
    return schema.admit(body)


@st.composite
def told_writes(draw: st.DrawFn) -> list[Telling]:
    """Return writes of entities, joins and schemas that have indexed fields."""
    telling = draw(tellings(size_max=8))
    names = draw(st.sets(st.sampled_from(FIELDS), min_size=1))
    said: list[Observation | Schema] = [
        indexed(one, sorted(names)) if isinstance(one, Schema) else one for one in telling.said
    ]
    # Some of what may be joined was spoken of before.
    spoken = draw(st.sets(st.sampled_from("abc")))
    first = [say(Ref("thing", key), ASSERT, agent="eve", observed_at=MOMENTS[0], fields={"e": 1}) for key in spoken]
    return [*([Telling(tuple(first))] if first else []), *draw(batches(Telling(tuple(said))))]


# The plain definition: fold everything and look


def plain_roots(reader: Reader, type: str | None) -> list[tuple[Ref, dict[str, Json], Any]]:
    """Return every entity that is neither deleted nor unknown, with its values, by type and key."""
    found = [
        (ref, snapshot.fields_of(state, reader.rules(ref.type)), reader.rules(ref.type))
        for ref, state in reader.roots(type)
        if not state.deleted
    ]
    return sorted(found, key=lambda item: (item[0].type.encode(), item[0].key.encode()))


def plain_holds(values: dict[str, Json], rules: Any, name: str, op: str, operand: Any) -> bool:
    """Return whether one condition holds, spelled out."""
    if op == "exists":
        return (name in values) is operand
    if name not in values:
        return False
    several = [values[name]]
    if rules.schema.policy_of(name).name in ("union", "append") and isinstance(values[name], list):
        several += values[name]  # type: ignore[arg-type]
    return any(_compares(value, op, operand) for value in several)


def _compares(value: Any, op: str, operand: Any) -> bool:
    if op == "eq":
        return form.serialise(value) == form.serialise(operand)
    if op == "in":
        return any(form.serialise(value) == form.serialise(each) for each in operand)
    if op == "prefix":
        return isinstance(value, str) and value.startswith(operand)
    numbers = all(type(side) in (int, float) for side in (value, operand))
    if not numbers and not (isinstance(value, str) and isinstance(operand, str)):
        return False
    return bool({"lt": value < operand, "lte": value <= operand, "gt": value > operand, "gte": value >= operand}[op])


def plain_query(reader: Reader, asked: dict[str, Any]) -> list[str]:
    """Return what a query should answer."""
    found = []
    for ref, values, rules in plain_roots(reader, asked.get("entity_type")):
        conditions = [
            (name, op, operand) for name, ops in asked.get("where", {}).items() for op, operand in ops.items()
        ]
        if all(plain_holds(values, rules, *condition) for condition in conditions):
            found.append((ref, values))
    sort, descending = asked.get("sort"), asked.get("descending", False)
    if sort is None:
        if descending:
            found.reverse()
        return [str(ref) for ref, _ in found]
    having = sorted((pair for pair in found if sort in pair[1]), key=lambda pair: order_key(pair[1][sort]))
    if descending:
        groups: dict[bytes, list[tuple[Ref, dict[str, Json]]]] = {}
        for pair in having:
            groups.setdefault(form.serialise(pair[1][sort]), []).append(pair)
        having = [pair for key in reversed(list(groups)) for pair in groups[key]]
    return [str(ref) for ref, _ in (*having, *(pair for pair in found if sort not in pair[1]))]


WORDS: Final = ("reus", "g", "girona no", "1", "thing", "n g", "é", "a", "nord girona")
"""What is searched for."""


def plain_search(reader: Reader, query: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return what a search should answer, with the fields that are hit."""
    found = []
    for ref, state in reader.roots():
        words = state_rows.words_of(state_index.Fold(ref, state, reader.rules(ref.type)))
        fields, is_exact = tokens.matches(words, tokens.tokens(query)), tokens.whole(query) in words
        if (is_exact or fields is not None) and relation.endpoints(ref) is None:
            found.append(((not is_exact, ref.id), str(ref), tuple(sorted(fields or ()))))
    return [(ref, fields) for _, ref, fields in sorted(found)]


# What is asked


@st.composite
def questions(draw: st.DrawFn, values: Sequence[Json]) -> dict[str, Any]:
    """Return a query about these values."""
    asked: dict[str, Any] = {}
    if draw(st.booleans()):
        asked["entity_type"] = draw(st.sampled_from(("thing", "thing", "other")))
    for _ in range(draw(st.integers(0, 2))):
        name, value = draw(st.sampled_from(FIELDS)), draw(st.sampled_from(values))
        op = draw(st.sampled_from(("eq", "eq", "in", "exists", "prefix", "lt", "lte", "gt", "gte")))
        operand: Any = value
        if op == "exists":
            operand = draw(st.booleans())
        elif op == "in":
            operand = draw(st.lists(st.sampled_from(values), max_size=3))
        elif op == "prefix":
            operand = value[: draw(st.integers(0, 2))] if isinstance(value, str) else ""
        elif op != "eq" and type(value) not in (int, float, str):
            operand = 1
        asked.setdefault("where", {}).setdefault(name, {})[op] = operand
    if draw(st.booleans()):
        asked["sort"] = draw(st.sampled_from(FIELDS))
    asked["descending"] = draw(st.booleans())
    return asked


def values_of(writes: Iterable[Telling]) -> list[Json]:
    """Return the values said, and the elements of those that are lists."""
    found: list[Json] = [1, "1", None]
    for write in writes:
        for one in write.said:
            for value in one.fields.values() if isinstance(one, Observation) else ():
                found += [value, *(value if isinstance(value, list) else ())]
    return found


def items(ask: Callable[..., Any], limit: int, **asked: Any) -> Iterator[Any]:
    """Yield all items of a list, asked for page by page."""
    cursor = None
    while True:
        page = ask(limit=limit, cursor=cursor, **asked)
        assert len(page.items) <= limit
        yield from page.items
        cursor = page.cursor
        if cursor is None:
            return


def check_moment(past: Past, asked: Sequence[dict[str, Any]], limit: int) -> None:
    """Compare what a ledger answers at a moment with what folding gives."""
    with open_reader(past.context) as reader:
        expected = [plain_query(reader, question) for question in asked]
        duplicates = find.duplicates(reader, find.folds(reader, None))
        roots = sorted((ref for ref, _ in reader.roots()), key=lambda ref: (ref.type.encode(), ref.key.encode()))
        conflicts = [
            [each for ref in roots for each in reads.conflicts_of(reader, ref, arrival)] for arrival in (False, True)
        ]
        searches = [plain_search(reader, words) for words in WORDS]
    for question, answer in zip(asked, expected, strict=True):
        assert [str(item.entity) for item in items(past.query, limit, **question)] == answer, question
    assert list(items(past.duplicates, limit)) == list(duplicates)
    for root in roots:
        shared = [each for each in duplicates if root in each.entities]
        assert list(items(past.duplicates, limit, ref=root)) == shared, root
    assert list(items(past.conflicts, limit)) == conflicts[False]
    assert list(items(past.conflicts, limit, arrival=True)) == conflicts[True]
    for words, hits in zip(WORDS, searches, strict=True):
        assert [(str(hit.snapshot.entity), hit.fields) for hit in items(past.search, limit, query=words)] == hits, words


def steps(engine: Engine, ledger: Ledger, count: int) -> None:
    """Bring the rows so many steps further."""
    for _ in range(count):
        state_steps.go_on(engine, TENANT, ledger.context.policies)


def rows(engine: Engine) -> list[IndexRow]:
    """Return every row of the state index."""
    with engine.view(TENANT) as view:
        return [row for index in INDEXES for row in view.lives(index)]


def grown(make_engine: Callable[[], Engine], data: st.DataObject) -> tuple[Ledger, Engine, list[Telling]]:
    """Return a ledger that took in writes, with an index that was brought up to date now and then."""
    writes = data.draw(told_writes())
    engine = make_engine()
    ledger = ledger_on(engine, "t", clock=FixedClock())
    for write in writes:
        ledger.admit(bodies(write.said))
        steps(engine, ledger, data.draw(st.integers(0, 2)))
    return ledger, engine, writes


@pytest.fixture(autouse=True, scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with an erasure key, where ledgers look for it."""
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder, FixedClock())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WOODRAT_SIGNING_KEYS", str(folder))
        yield folder


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let everything that is done in parts be done in small ones, and nearly all values be too long for a row."""
    monkeypatch.setattr(state_steps, "STEP_ENTRIES", 5)
    monkeypatch.setattr(state_steps, "STEP_ENTITIES", 2)
    monkeypatch.setattr(state_steps, "CATCH_UP_ENTRIES", 0)
    monkeypatch.setattr(query, "SCAN_ROWS", 2)
    monkeypatch.setattr(search_index, "ROWS_MIN", 1)
    monkeypatch.setattr(search_index, "ROWS_MAX", 2)
    monkeypatch.setattr(query, "MATCHES_MAX", 2)
    monkeypatch.setattr(query, "KEYS_MAX", 3)
    for module in (state_rows, query):
        monkeypatch.setattr(module, "VALUE_BYTES_MAX", 9)
        monkeypatch.setattr(module, "ELEMENTS_MAX", 3)


@given(make_engine=ENGINES, data=st.data())
def test_law_indexed_answers_are_those_of_folding(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """At every position, whatever part of the log the rows cover, every list is the one that folding gives."""
    ledger, engine, writes = grown(make_engine, data)
    values = values_of(writes)
    asked = data.draw(st.lists(questions(values), min_size=1, max_size=3))
    limit = data.draw(st.integers(1, 4))
    check_moment(ledger, asked, limit)
    for position in range(-1, ledger.position + 1):
        check_moment(ledger.at(position), asked, limit)
    assert not ledger.verify().damage
    with engine.view(TENANT) as view:
        event(f"behind: {view.head().position > state_index.reached(view)}")


@given(make_engine=ENGINES, data=st.data())
def test_law_rows_follow_from_the_log(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """Rows made bit by bit are those made in one go, and those that a check works out entity by entity."""
    ledger, engine, writes = grown(make_engine, data)
    while state_steps.go_on(engine, TENANT, ledger.context.policies):
        pass
    made = rows(engine)
    assert not ledger.verify().damage
    other = ledger_on(make_engine(), "t", clock=FixedClock())
    for telling in writes:
        other.admit(bodies(telling.said))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(state_steps, "STEP_ENTRIES", 10_000)
        steps(other.context.engine, other, 50)
    assert rows(other.context.engine) == made
    event(f"rows: {bool(made)}")


# Stories through the verbs

VALUES: Final[tuple[Any, ...]] = (
    *("Reus", "Reus", "Girona", "Girona nord", "Girona nova", "Girona noms", "Girona no", "", "é"),
    *(0, 1, 1.5, -3, 10**9, True, False, None),
    *([], ["Reus"], ["Reus", 1], {"x": 1}, {"x": [1, "Reus"]}),
)
KEYS: Final = ("1", "2", "3", "10", "é")
AGENTS: Final = ("ada", "bob")


def document(chance: Random, type: str) -> dict[str, Any]:
    """Return a schema with some fields indexed."""
    properties: dict[str, Any] = {}
    for name, policies in {"a": ("latest", "first"), "b": ("union", "append"), "c": ("max", "latest", "sum")}.items():
        properties[name] = {"x-woodrat-merge": chance.choice(policies), "x-woodrat-index": chance.random() < 0.8}
        if chance.random() < 0.2:
            properties[name]["not"] = {"const": chance.choice(("Reus", 1))}
    identity = chance.choice(([["id"], ["a"]], [["id"], ["a", "c"]], [["id"]]))
    return {"title": type, "properties": properties, "x-woodrat-identity": identity}


def record(chance: Random) -> dict[str, Any]:
    """Return a record of one of a few entities."""
    fields: dict[str, Any] = {"id": chance.choice(KEYS), "a": chance.choice(VALUES), "c": chance.choice(VALUES)}
    fields["b"] = [chance.choice(VALUES) for _ in range(chance.randint(0, 5))]
    for name in "abc":
        if chance.random() < 0.4:
            del fields[name]
    return {"entity_type": chance.choice(("thing", "thing", "other")), **fields}


def one_call(ledger: Ledger, chance: Random) -> None:
    """Make one call at random; what is refused changes nothing."""
    here = ledger.as_agent(chance.choice(AGENTS))
    refs = [f"{chance.choice(('thing', 'thing', 'other'))}/{chance.choice(KEYS)}" for _ in range(2)]
    rare = ("register", "correct", "retract", "delete", "restore", "merge", "split", "erase")
    verb = chance.choice(("store",) * 8 + rare)
    try:
        if verb == "store":
            here.store([record(chance) for _ in range(chance.choice((1, 1, 3, 6)))])
        elif verb == "register":
            ledger.schemas.register(document(chance, chance.choice(("thing", "other"))))
        elif verb == "correct":
            here.correct(refs[0], {chance.choice("abc"): chance.choice(VALUES)})
        elif verb == "retract":
            said = [item.observation.id for item in ledger.observations(limit=1000).items]
            here.retract([chance.choice(said or ["obs_none"])], reason="wrong")
        elif verb == "erase":
            # A field alone can leave a group whose smallest entity nobody speaks of.
            ledger.erase(chance.choice((refs[0], f"{refs[0]}#{chance.choice('abc')}")), reason="asked to")
        elif verb in ("merge", "split"):
            getattr(here, verb)(*refs)
        else:
            getattr(here, verb)(refs[0])
    except WoodratError:
        pass


def one_question(chance: Random) -> dict[str, Any]:
    """Return a query at random."""
    asked: dict[str, Any] = {"descending": chance.random() < 0.5}
    if chance.random() < 0.5:
        asked["entity_type"] = chance.choice(("thing", "thing", "other"))
    if chance.random() < 0.6:
        asked["sort"] = chance.choice("abcd")
    for _ in range(chance.choice((0, 1, 1, 2))):
        op = chance.choice(("eq", "eq", "in", "exists", "prefix", "lt", "lte", "gt", "gte"))
        operand: Any = chance.choice(VALUES)
        if op == "exists":
            operand = chance.random() < 0.5
        elif op == "in":
            operand = [chance.choice(VALUES) for _ in range(chance.randint(0, 3))]
        elif op == "prefix":
            operand = chance.choice(("", "R", "Girona", "Girona n", "é"))
        elif op != "eq":
            operand = chance.choice(("Girona nord", "a", 0, 1, 1.5, -3, 10**9))
        asked.setdefault("where", {}).setdefault(chance.choice("abcd"), {})[op] = operand
    return asked


def tell_and_check(engine: Engine, seed: int, every: int = 2) -> None:
    """Tell a story, with an index that is brought up to date now and then, and compare at every so many positions."""
    chance = Random(seed)
    ledger = ledger_on(engine, "t", clock=FixedClock())
    ledger.schemas.register(document(chance, "thing"))
    for _ in range(chance.randint(1, 25)):
        one_call(ledger, chance)
        if chance.random() < 0.5:
            steps(engine, ledger, chance.randint(1, 3))
    if chance.random() < 0.2:
        ledger.rebuild()
        steps(engine, ledger, chance.randint(0, 20))
    if chance.random() < 0.5:
        steps(engine, ledger, 60)
    asked = [one_question(chance) for _ in range(4)]
    limit = chance.randint(1, 5)
    check_moment(ledger, asked, limit)
    for position in range(-chance.randint(0, 1), ledger.position + 1, every):
        check_moment(ledger.at(position), asked, limit)
    assert not ledger.verify().damage


@given(make_engine=ENGINES, seed=st.integers(0, 2**32))
def test_law_indexed_answers_hold_in_every_story(make_engine: Callable[[], Engine], seed: int) -> None:
    """Stored in batches, corrected, withdrawn, joined, parted, under other schemas: lists are those of folding."""
    tell_and_check(make_engine(), seed)


# Faults that are planted


def _with_rows(patch: pytest.MonkeyPatch, made: str, keeps: Callable[[str, bytes], bool]) -> None:
    """Let the index leave out the rows that are not kept."""
    make = getattr(state_rows, made)

    def rows(*given: Any) -> state_index.Rows:
        return {place: value for place, value in make(*given).items() if keeps(*place)}

    patch.setattr(state_rows, made, rows)


def _without_elements(patch: pytest.MonkeyPatch) -> None:
    _with_rows(patch, "_value_rows", lambda name, _: name != state_rows.ELEMENT)


def _without_absent(patch: pytest.MonkeyPatch) -> None:
    mark = b"\0" + state_rows.ABSENT + b"\0"
    _with_rows(patch, "_value_rows", lambda _, key: mark not in key)


def _without_numbers(patch: pytest.MonkeyPatch) -> None:
    _with_rows(patch, "_value_rows", lambda name, key: name != state_rows.FIELD or b"\0\x04" not in key)


def _without_short_words(patch: pytest.MonkeyPatch) -> None:
    _with_rows(patch, "_word_rows", lambda _, key: key.index(b"\0", 1) > 2)


def _joins_too_far(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(search_index, "following", lambda id: (int.from_bytes(id, "big") + 2**130).to_bytes(17, "big"))


def _texts_taken_for_the_same(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_rows, "_have_same_words", lambda one, other: True)


def _nothing_laid_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(
        "woodrat.ledger.state_index.touched", lambda refs: touched(refs) if isinstance(refs, Generator) else []
    )


def _rows_begin_late(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_index.WriteEnds, "end", lambda self, position: self.bounds(position)[1] + 1)


def _rows_never_end(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SqliteTransaction, "end", lambda self, position, rows: None)


def _duplicates_forgotten(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_steps, "shared_values", lambda *given: ())


def _schemas_overlooked(patch: pytest.MonkeyPatch) -> None:
    window = state_steps.Step._window
    patch.setattr(state_steps.Step, "_window", lambda *given: (window(*given)[0], set()))


def _shown_forgotten(patch: pytest.MonkeyPatch) -> None:
    _with_rows(patch, "_value_rows", lambda name, _: name != state_rows.SHOWN)


def _groups_overlooked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(state_steps, "group_events", lambda *given, **options: [])


def _ranges_cut_short(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(query.TypeRows, "_span", lambda self, conditions: (b"", b"\x05"))


def _whole_order_believed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(query, "is_cut", lambda value: False)


FAULTS: Final = [
    _without_elements,
    _without_absent,
    _without_numbers,
    _without_short_words,
    _joins_too_far,
    _texts_taken_for_the_same,
    _shown_forgotten,
    _nothing_laid_over,
    _rows_begin_late,
    _rows_never_end,
    _duplicates_forgotten,
    _schemas_overlooked,
    _groups_overlooked,
    _ranges_cut_short,
    _whole_order_believed,
]


@pytest.mark.parametrize("plant", FAULTS, ids=lambda plant: plant.__name__.lstrip("_"))
def test_a_planted_fault_is_caught(plant: Callable[[pytest.MonkeyPatch], None]) -> None:
    """What makes, covers or reads rows wrongly gives another answer, or another check, within a few stories."""
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        assert any(_is_caught(seed) for seed in range(60))


def _is_caught(seed: int) -> bool:
    try:
        tell_and_check(InMemoryEngine(), seed, every=3)
    except AssertionError:
        return True
    return False
