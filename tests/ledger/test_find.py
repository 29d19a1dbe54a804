"""Finding and rebuilding: the same pages, order and cursors at every moment."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.canon import form
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import derive, refold, state_index, state_steps
from woodrat.ledger.find import Hit
from woodrat.ledger.own_policy import registry
from woodrat.ledger.pages import Page
from woodrat.testing.clock import FixedClock
from woodrat.testing.ledgers import shared_values, tell


def opened(engine: Engine, agent: str = "a") -> woodrat.Ledger:
    """Return a ledger on an engine."""
    return woodrat.Ledger(engine, tenant="t", agent=agent, clock=FixedClock(), policies=registry(()))


@pytest.fixture
def ledger() -> Iterator[woodrat.Ledger]:
    """An empty ledger."""
    engine: Engine = InMemoryEngine()
    yield opened(engine)
    engine.close()


def person(name: str, **fields: Any) -> dict[str, Any]:
    """Return a record of a type without schema."""
    return {"entity_type": "person", "name": name, **fields}


def keys(page: Page[Any]) -> list[str]:
    """Return the keys of a page's entities, in order."""
    return [(item.snapshot if isinstance(item, Hit) else item).entity.key for item in page.items]


def by_folding(ledger: woodrat.Past, query: str, **given: Any) -> Page[Hit]:
    """Search with an effective time no claim comes after: the same answer, from nothing but the observations."""
    return ledger.at(valid_at="9000-01-01T00:00:00Z").search(query, **given)


def pages(ask: Callable[..., Page[Any]], **given: Any) -> list[Any]:
    """Return all items, page by page."""
    found: list[Any] = []
    cursor = None
    while True:
        page = ask(cursor=cursor, **given)
        found += page.items
        cursor = page.cursor
        if cursor is None:
            return found


# search


def test_all_words_match_by_prefix(ledger: woodrat.Ledger) -> None:
    """Every word of the query begins a word of the key or of a text value, in whatever field."""
    ledger.store([person("Ana Rivera", city="Barcelona"), person("Ana Roca", city="Girona"), person("Bo", age=3)])
    assert keys(ledger.search("ana")) in (["Ana Rivera", "Ana Roca"], ["Ana Roca", "Ana Rivera"])
    assert keys(ledger.search("RIV bar")) == ["Ana Rivera"]
    assert keys(ledger.search("ana bar gir")) == []
    assert keys(ledger.search("3")) == []
    assert keys(ledger.search("ivera")) == []
    assert keys(ledger.search("ana", entity_type="company")) == []
    hit = ledger.search("riv barce").items[0]
    assert (hit.exact, hit.fields) == (False, ("city", "name"))
    assert hit.snapshot == ledger.show("person/Ana Rivera")
    assert hit.to_json() == {"snapshot": hit.snapshot.to_json(), "exact": False, "fields": ["city", "name"]}


def test_exact_matches_come_first_then_ids(ledger: woodrat.Ledger) -> None:
    """An entity whose key or identifying value is the query comes first; the others by entity id."""
    ledger.schemas.register(
        {"title": "person", "x-woodrat-identity": [["name"], ["nick"]], "properties": {"name": {}, "nick": {}}}
    )
    people = [
        person("reus"),
        person("x1", city="Reus", home="Reus"),
        person("x2", city="Reus"),
        person("x3", nick="Reus  "),
    ]
    ledger.store(people)

    def ordered(*names: str) -> list[str]:
        return sorted(names, key=lambda key: ledger.show(f"person/{key}").entity.id)

    found = ledger.search(" REUS ")
    assert keys(found) == [*ordered("reus", "x3"), *ordered("x1", "x2")]
    assert [hit.exact for hit in found] == [True, True, False, False]


def test_only_marked_fields_are_searched(ledger: woodrat.Ledger) -> None:
    """A schema that marks text fields keeps the others out; a later schema that marks others is followed."""
    ledger.schemas.register({"title": "memo", "properties": {"title": {"x-woodrat-text": True}, "body": {}}})
    ledger.store({"entity_type": "memo", "title": "Alpha", "body": "beta"})
    assert keys(ledger.search("alpha")) == ["Alpha"]
    assert keys(ledger.search("beta")) == []
    ledger.schemas.register({"title": "memo", "properties": {"title": {}, "body": {"x-woodrat-text": True}}})
    assert keys(ledger.search("beta")) == ["Alpha"]
    assert ledger.search("alpha").items[0].fields == ()


def test_search_follows_what_is_written(ledger: woodrat.Ledger) -> None:
    """Corrections, retractions, deletes and restores show in the next search, and earlier moments stay."""
    ledger.store(person("Ana", city="Reus"))
    before = ledger.search("reus")
    moment = ledger.position
    ledger.correct("person/Ana", {"city": "Girona"})
    assert keys(ledger.search("reus")) == []
    assert keys(ledger.search("girona")) == ["Ana"]
    ledger.delete("person/Ana")
    assert keys(ledger.search("girona")) == keys(ledger.search("ana")) == []
    ledger.restore("person/Ana")
    assert keys(ledger.search("girona")) == ["Ana"]
    assert ledger.at(moment).search("reus") == before
    assert keys(ledger.at(moment).search("girona")) == []


def test_search_reads_at_an_effective_time(ledger: woodrat.Ledger) -> None:
    """What was not yet true is not found."""
    ledger.store(person("Ana", city="Reus"), observed_at="2020-01-01T00:00:00Z")
    ledger.store(person("Ana", city="Girona"), observed_at="2021-01-01T00:00:00Z")
    assert keys(ledger.at(valid_at="2020-06-01T00:00:00Z").search("reus")) == ["Ana"]
    assert keys(ledger.at(valid_at="2021-06-01T00:00:00Z").search("reus")) == []


def test_joined_entities_are_one_hit(ledger: woodrat.Ledger) -> None:
    """A group is found by the words of all its members, once; split, each is found by its own again."""
    ledger.store([person("Ana", city="Reus"), person("Anna", phone="x1")])
    assert len(ledger.search("an").items) == 2
    ledger.merge("person/Ana", "person/Anna")
    (hit,) = ledger.search("reus x1").items
    assert len(hit.snapshot.members) == 2
    assert [hit.exact for hit in ledger.search("anna").items] == [True]
    ledger.delete("person/Anna")
    assert [hit.exact for hit in ledger.search("ana").items] == [True]
    assert keys(ledger.search("anna")) == []
    assert len(ledger.search("anna", entity_type="same_as").items) == 1
    ledger.restore("person/Anna")
    ledger.split("person/Ana")
    assert keys(ledger.search("reus x1")) == []
    assert keys(ledger.search("x1")) == ["Anna"]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"query": ""}, "query"),
        ({"query": " -- "}, "query"),
        ({"query": 3}, "query"),
        ({"query": "\ud800"}, "query"),
        ({"query": "a" * 1025}, "query"),
        ({"limit": 0}, "limit"),
        ({"limit": True}, "limit"),
        ({"limit": 1001}, "limit"),
        ({"entity_type": "No"}, "entity_type"),
        ({"cursor": "zzz"}, "cursor"),
        ({"cursor": 3}, "cursor"),
        ({"cursor": ""}, "cursor"),
    ],
)
def test_search_refuses(ledger: woodrat.Ledger, given: dict[str, Any], path: str) -> None:
    """A search that means nothing is refused with the argument at fault."""
    with pytest.raises(woodrat.Refused) as refusal:
        ledger.search(**{"query": "a", **given})
    assert [fault.path for fault in refusal.value.faults] == [path]
    assert "Nothing was read." in str(refusal.value)


def test_pages_stay_in_step_while_others_write(ledger: woodrat.Ledger) -> None:
    """A cursor leads on after the last item, whatever was written before it; it fits no other question."""
    ledger.store([person(f"n{number:02}", city="Reus") for number in range(10)])
    everything = keys(ledger.search("reus", limit=100))
    first = ledger.search("reus", limit=4)
    assert keys(first) == everything[:4]
    ledger.store(person("exact", city="x", other="Reus", third="Reus"))
    ledger.store({"entity_type": "person", "name": "Reus"})
    ledger.delete(f"person/{everything[1]}")
    second = ledger.search("reus", limit=4, cursor=first.cursor)
    third = ledger.search("reus", limit=4, cursor=second.cursor)
    assert keys(second) + keys(third) == everything[4:]
    assert third.cursor is None
    with pytest.raises(woodrat.Refused):
        ledger.search("girona", cursor=first.cursor)
    assert first.cursor is not None
    with pytest.raises(woodrat.Refused):
        ledger.search("reus", cursor=first.cursor[:-1] + ("a" if first.cursor[-1] != "a" else "b"))


def test_the_index_and_folding_find_the_same_in_every_state_of_a_story(ledger: woodrat.Ledger) -> None:
    """After each write of a story, and at every moment of it, the index answers what folding answers."""
    other = opened(ledger.context.engine, "b")
    asked = ["ana", "a", "barcelona", "thing", "b", "1", "x y"]
    for _ in tell(ledger, other):
        for query in asked:
            assert ledger.search(query) == by_folding(ledger, query)
    for moment in range(0, ledger.position, 5):
        for query in asked[:3]:
            assert ledger.at(moment).search(query) == by_folding(ledger.at(moment), query)


def test_an_index_far_behind_catches_up_in_parts(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bringing the index up to date in many short transactions gives the same answers."""
    monkeypatch.setattr(state_steps, "STEP_ENTRIES", 3)
    other = opened(ledger.context.engine, "b")
    for _ in tell(ledger, other):
        pass
    assert ledger.search("ana") == by_folding(ledger, "ana")
    with ledger.context.engine.view(ledger.tenant) as view:
        assert state_index.reached(view) == view.head().position


def test_a_read_only_ledger_folds_what_the_index_lacks(tmp_path: Path) -> None:
    """Without a way to write, a search answers the same, with an index that is behind or not there at all."""
    writer = opened(SqliteEngine(tmp_path / "one.db"))
    writer.store([person("Ana", city="Reus"), person("Bo", city="Reus")])
    reader = opened(SqliteEngine(tmp_path / "one.db", readonly=True))
    assert keys(reader.search("reus")) == keys(by_folding(writer, "reus"))
    assert keys(writer.search("ana")) == ["Ana"]
    writer.store(person("Ana", city="Girona"))
    writer.store(person("Cleo", city="Reus"))
    assert set(keys(reader.search("reus"))) == {"Bo", "Cleo"}
    assert keys(reader.search("girona")) == ["Ana"]
    with pytest.raises(woodrat.Unavailable):
        reader.rebuild()


def test_search_is_fenced(ledger: woodrat.Ledger) -> None:
    """Words of one tenant are not found in another."""
    other = woodrat.Ledger(ledger.context.engine, tenant="u", agent="a", clock=FixedClock(), policies=registry(()))
    ledger.store(person("Ana"))
    assert keys(ledger.search("ana")) == ["Ana"]
    assert keys(other.search("ana")) == []
    other.store(person("Anabel"))
    assert keys(other.search("ana")) == ["Anabel"]
    assert keys(ledger.search("ana")) == ["Ana"]
    ledger.rebuild()
    assert keys(other.search("ana")) == ["Anabel"]
    assert other.fingerprint() == other.at("now").fingerprint()


# query


def test_query_lists_by_type_and_key(ledger: woodrat.Ledger) -> None:
    """Without a question everything is listed by type and key, deleted entities left out."""
    ledger.store([person("b"), person("a"), {"entity_type": "city", "name": "z"}, person("gone")])
    ledger.delete("person/gone")
    assert keys(ledger.query()) == ["z", "a", "b"]
    assert keys(ledger.query(descending=True)) == ["b", "a", "z"]
    assert keys(ledger.query(entity_type="person")) == ["a", "b"]
    assert ledger.query(entity_type="person").items[0] == ledger.show("person/a")
    assert ledger.query(entity_type="person").to_json()["cursor"] is None


def test_where_compares_by_canonical_bytes(ledger: woodrat.Ledger) -> None:
    """Values are equal when their spelling is; texts are read as JSON where they are JSON."""
    ledger.store(
        [person("a", n=1, b=True), person("b", n="1"), person("c", n=1.5, o={"x": [1, 2]}), person("d", n=None)]
    )
    assert keys(ledger.query(where={"n": 1})) == ["a"]
    assert keys(ledger.query(where={"n": 1.0})) == ["a"]
    assert keys(ledger.query(where={"n": True})) == []
    assert keys(ledger.query(where={"n": "1"})) == ["b"]
    assert keys(ledger.query(where={"n": None})) == ["d"]
    assert keys(ledger.query(where={"o": {"x": [1, 2]}})) == ["c"]
    assert keys(ledger.query(where=["n=1"])) == ["a"]
    assert keys(ledger.query(where=['n="1"'])) == ["b"]
    assert keys(ledger.query(where=["name=a", "b=true"])) == ["a"]
    assert keys(ledger.query(where=["name=a", "b=false"])) == []
    assert keys(ledger.query(where=["missing=1"])) == []


def test_where_asks_collections_for_an_element(ledger: woodrat.Ledger) -> None:
    """A union or append field matches when it holds the element; a plain array only as a whole."""
    properties = {"tags": {"x-woodrat-merge": "union"}, "log": {"x-woodrat-merge": "append"}, "list": {}}
    ledger.schemas.register({"title": "task", "properties": properties})
    ledger.store({"entity_type": "task", "title": "t", "tags": ["a", "b"], "log": [1], "list": ["a"]})
    for where in (["tags=a"], ["tags=a", "tags=b"], ["log=1"], ['list=["a"]'], ['tags=["a","b"]']):
        assert keys(ledger.query(where=where)) == ["t"]
    for where in (["tags=c"], ["tags=a", "tags=c"], ["list=a"]):
        assert keys(ledger.query(where=where)) == []


def test_sort_is_the_one_order_of_values(ledger: woodrat.Ledger) -> None:
    """null < false < true < numbers < text < arrays < objects; those without the field last, ties by key."""
    values: list[Any] = [None, False, True, -1, 2, 10, "10", "2", "é", [], [1], {}]
    ledger.store([person(f"k{number:02}", v=value) for number, value in enumerate(values)])
    ledger.store([person("tie", v=2), person("none"), person("also")])
    ascending = keys(ledger.query(sort="v"))
    assert ascending == [*(f"k{n:02}" for n in range(5)), "tie", *(f"k{n:02}" for n in range(5, 12)), "also", "none"]
    down = [f"k{n:02}" for n in range(11, 4, -1)]
    assert keys(ledger.query(sort="v", descending=True)) == [
        *down,
        "k04",
        "tie",
        "k03",
        "k02",
        "k01",
        "k00",
        "also",
        "none",
    ]


@pytest.mark.parametrize("sort", [None, "v"])
@pytest.mark.parametrize("descending", [False, True])
def test_query_pages_stay_in_step(ledger: woodrat.Ledger, sort: str | None, descending: bool) -> None:
    """Pages give everything once; a cursor keeps its place though the item it stands on moves away."""
    ledger.store([person(f"k{number}", v=number % 3) for number in range(7)] + [person("none")])

    def ask(**given: Any) -> Page[Any]:
        return ledger.query(sort=sort, descending=descending, **given)

    everything = keys(ask())
    assert [item.entity.key for item in pages(ask, limit=3)] == everything
    first = ask(limit=3)
    ledger.store(person(first.items[-1].entity.key, v="moved" if not descending else -1))
    rest = [item.entity.key for item in ask(cursor=first.cursor).items]
    assert [key for key in rest if key != everything[2]] == everything[3:]
    with pytest.raises(woodrat.Refused):
        ledger.query(sort="other", cursor=first.cursor)


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"where": ["city"]}, "where/0"),
        ({"where": [3]}, "where/0"),
        ({"where": 3}, "where"),
        ({"where": {"a": float("nan")}}, "where/a"),
        ({"where": {"a": b""}}, "where/a"),
        ({"where": {3: 1}}, "where/3"),
        ({"where": {f"f{number}": 1 for number in range(101)}}, "where"),
        ({"sort": 3}, "sort"),
        ({"descending": "yes"}, "descending"),
        ({"limit": 10**9}, "limit"),
        ({"cursor": "me"}, "cursor"),
    ],
)
def test_query_refuses(ledger: woodrat.Ledger, given: dict[str, Any], path: str) -> None:
    """A query that means nothing is refused with the argument at fault."""
    with pytest.raises(woodrat.Refused) as refusal:
        ledger.query(**given)
    assert [fault.path for fault in refusal.value.faults] == [path]


# duplicates


def test_entities_that_share_an_identifying_value_are_listed(ledger: woodrat.Ledger) -> None:
    """Entities with one identifying value are duplicates until they are joined, deleted or corrected."""
    ledger.schemas.register(
        {"title": "lead", "properties": {}, "x-woodrat-identity": [["id"], ["email"], ["name", "city"]]}
    )
    ledger.store({"entity_type": "lead", "id": "1", "email": "a@x", "name": "Ana"})
    ledger.store({"entity_type": "lead", "id": "2", "email": "a@x"})
    ledger.store({"entity_type": "lead", "id": "3", "name": "Ana", "city": "Reus"})
    ledger.store({"entity_type": "lead", "id": "1", "city": "Reus"})
    before = ledger.position
    found = ledger.duplicates()
    assert [(d.type, d.rule, d.value, [ref.key for ref in d.entities]) for d in found] == [
        ("lead", "email", "a@x", ["1", "2"]),
        ("lead", "name+city", '["ana","reus"]', ["1", "3"]),
    ]
    assert found.items[0].to_json()["entities"] == ["lead/1", "lead/2"]
    assert ledger.duplicates("lead") == found
    assert ledger.duplicates("person").items == ()
    ledger.merge("lead/1", "lead/2")
    assert [d.rule for d in ledger.duplicates()] == ["name+city"]
    ledger.delete("lead/3")
    assert ledger.duplicates().items == ()
    assert ledger.at(before).duplicates() == found
    with pytest.raises(woodrat.Refused):
        ledger.duplicates("No")


def test_what_one_entity_shares_with_others_is_listed(ledger: woodrat.Ledger) -> None:
    """With a reference, only values that this entity has are listed, in pages, at any moment, however it is named."""
    ledger.schemas.register({"title": "lead", "properties": {}, "x-woodrat-identity": [["id"], ["email"], ["phone"]]})
    for number in range(3):
        ledger.store({"entity_type": "lead", "id": f"a{number}", "email": "a@x", "phone": "+34 1"})
        ledger.store({"entity_type": "lead", "id": f"b{number}", "email": "b@x"})
    ledger.store({"entity_type": "lead", "id": "alone", "email": "c@x"})
    before = ledger.position
    whole = ledger.duplicates("lead").items
    assert [found.value for found in whole] == ["a@x", "b@x", "+34 1"]
    assert ledger.duplicates(ref="lead/a1").items == (whole[0], whole[2])
    first = ledger.duplicates("lead", ref="lead/a1", limit=1)
    assert (first.items, tuple(first)) == (whole[:1], (whole[0], whole[2]))
    assert ledger.duplicates(ref="b2").items == whole[1:2]
    assert ledger.duplicates(ref="lead/alone").items == ()
    assert ledger.duplicates("person", ref="lead/a1").items == ()
    ledger.merge("lead/a0", "lead/a1")
    (email, _) = ledger.duplicates(ref="lead/a1").items
    assert [ref.key for ref in email.entities if ref.key != "a2"] in (["a0"], ["a1"])  # one of the two stands for both
    assert ledger.at(before).duplicates(ref="lead/a1").items == (whole[0], whole[2])
    with pytest.raises(woodrat.NotFound, match="lead/nobody"):
        ledger.duplicates(ref="lead/nobody")
    with pytest.raises(woodrat.Refused) as refusal:
        ledger.duplicates("No", ref="/")
    assert [fault.path for fault in refusal.value.faults] == ["entity_type", "ref/type", "ref/key"]


# rebuild


def test_rebuild_of_a_sound_ledger_changes_nothing(ledger: woodrat.Ledger) -> None:
    """Everything derived comes out as it was, the log is untouched, and the counts are those of the log."""
    other = opened(ledger.context.engine, "b")
    for _ in tell(ledger, other):
        pass
    found = [ledger.search(query) for query in ("ana", "b", "1")]
    seen: list[tuple[int, int]] = []
    before = ledger.fingerprint()
    rebuilt = ledger.rebuild(lambda done, total: seen.append((done, total)))
    assert rebuilt.agreed
    assert rebuilt.repaired == ()
    assert rebuilt.fingerprint == ledger.fingerprint() == before
    assert (rebuilt.position, rebuilt.entries) == (ledger.position, ledger.position + 1)
    assert rebuilt.observations == len(list(ledger.observations()))
    assert rebuilt.entities == len({stored.observation.entity for stored in ledger.observations()})
    assert seen[-1] == (rebuilt.entries, rebuilt.entries)
    assert [ledger.search(query) for query in ("ana", "b", "1")] == found
    assert form.serialise(rebuilt.to_json())
    assert ledger.store(person("after")).changes


def test_rebuild_notes_identifying_values_as_the_writes_did(
    ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values shared before and after the identity rules changed are the same ones once everything is rebuilt."""
    monkeypatch.setattr(derive, "CHUNK_ENTRIES", 2)

    def rules(*identity: list[str]) -> None:
        ledger.schemas.register({"title": "lead", "properties": {}, "x-woodrat-identity": list(identity)})

    def shared() -> list[Any]:
        context = ledger.context
        while refold.go_on(context.engine, context.tenant, context.policies):
            pass
        with context.engine.view(ledger.tenant) as view:
            return shared_values(view)

    rules(["id"], ["email"])
    for number, email in enumerate(["a@x", "b@x", "a@x", "a@x"]):
        ledger.store({"entity_type": "lead", "id": str(number), "email": email, "name": "Ana"})
    ledger.store({"entity_type": "lead", "id": "1", "email": "a@x"})
    rules(["id"], ["name"])
    for number, name in enumerate(["Ana", "Bo", "Bo"]):
        ledger.store({"entity_type": "lead", "id": str(number), "name": name})
    before = shared()
    assert [(rule, value, len(refs)) for _, rule, value, refs in before] == [("name", "ana", 4), ("name", "bo", 2)]
    assert ledger.rebuild().agreed
    assert shared() == before


def test_rebuild_of_nothing(ledger: woodrat.Ledger) -> None:
    """A ledger that never wrote has nothing to rebuild."""
    rebuilt = ledger.rebuild()
    assert (rebuilt.position, rebuilt.entries, rebuilt.entities, rebuilt.repaired) == (-1, 0, 0, ())


def test_a_rebuild_that_fails_leaves_everything(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """When anything goes wrong on the way, all that was there is still there."""
    monkeypatch.setattr(derive, "CHUNK_ENTRIES", 2)
    ledger.store([person(f"n{number}", city="Reus") for number in range(6)])
    found, before = ledger.search("reus"), ledger.fingerprint()

    def stop(done: int, total: int) -> None:
        raise RuntimeError(f"{done} of {total}")

    with pytest.raises(RuntimeError, match="2 of 6"):
        ledger.rebuild(stop)
    assert ledger.search("reus") == found
    assert ledger.fingerprint() == ledger.at("now").fingerprint() == before
    assert ledger.rebuild().agreed


@pytest.mark.parametrize("table", ["entity", "said", "naming", "kept", "index_row", "node"])
def test_rebuild_makes_lost_tables_again(tmp_path: Path, table: str) -> None:
    """Whichever derived table is emptied, a rebuild on a fresh connection brings all answers back."""
    ledger = opened(SqliteEngine(tmp_path / "one.db"))
    for _ in tell(ledger, opened(ledger.context.engine, "b")):
        pass
    for number in range(70):
        ledger.store(person("Ana", n=number))
    wanted = [hit.to_json() for hit in ledger.search("ana").items]
    state, history = ledger.fingerprint(), ledger.at(ledger.position - 30).fingerprint()
    root = ledger.context.engine.view(ledger.tenant)
    with root as view:
        frontier = view.head().frontier.root()
    engine = ledger.context.engine
    assert isinstance(engine, SqliteEngine)
    engine._writer.connection.execute(f"DELETE FROM {table}")
    rebuilt = ledger.rebuild()
    assert rebuilt.fingerprint == state
    ledger.close()
    again = opened(SqliteEngine(tmp_path / "one.db"))
    assert [hit.to_json() for hit in again.search("ana").items] == wanted
    assert again.fingerprint() == again.at("now").fingerprint() == state
    assert again.at(again.position - 30).fingerprint() == history
    with again.context.engine.view(again.tenant) as view:
        assert view.head().frontier.root() == frontier
    assert again.rebuild().agreed


# Both engines


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["x", "y z", "xy", "Ä x"]), st.booleans()), max_size=12)
)
def test_engines_give_the_same_pages(writes: list[tuple[str, str, bool]]) -> None:
    """The same writes give the same hits, order and cursors on memory and SQLite."""
    with tempfile.TemporaryDirectory() as folder:
        both = [opened(InMemoryEngine()), opened(SqliteEngine(Path(folder) / "one.db"))]
        for number, (name, text, deletes) in enumerate(writes):
            for one in both:
                one.store(person(name, text=text, n=number))
                if deletes:
                    one.delete(f"person/{name}")
                if number % 3 == 0:
                    one.search("x")
        for query in ("x", "y", "x y", "a", "ä"):
            found = [one.search(query, limit=1) for one in both]
            assert found[0] == found[1]
            assert found[0].items == by_folding(both[0], query, limit=1).items
            assert pages(lambda **given: both[0].search(query, **given), limit=1) == list(both[1].search(query).items)  # noqa: B023
        assert both[0].query(sort="n", limit=2) == both[1].query(sort="n", limit=2)
        assert both[0].rebuild() == both[1].rebuild()
        both[1].close()
