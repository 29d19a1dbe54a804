"""Lists: every list verb comes by page, the same on a ledger that is here, behind a server, and in async code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from operator import attrgetter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.server.server import Server

import woodrat
from woodrat.api.aio import AsyncPast
from woodrat.api.ledger import Ledger
from woodrat.api.verbs import verbs
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger import query as queries
from woodrat.ledger.own_policy import registry
from woodrat.ledger.pages import PAGE_MAX, Page, make_cursor
from woodrat.ledger.read import Reader
from woodrat.server.keys import Keyring
from woodrat.state import observation, source
from woodrat.testing.clock import FixedClock

ANA, BO = "person/Ana", "person/Bo"
LATER = "2030-01-01T00:00:00Z"
LISTS: dict[str, dict[str, Any]] = {
    "search": {"query": "ana"},
    "query": {"entity_type": "person"},
    "query sorted": {"sort": "score", "descending": True},
    "duplicates": {},
    "observations": {},
    "observations of one": {"ref": ANA},
    "history": {"ref": ANA},
    "history of a field": {"ref": ANA, "field": "city"},
    "timeline": {"since": "2020-01-01T00:00:00Z"},
    "conflicts": {"entity_type": "person"},
    "conflicts by arrival": {"arrival": True},
    "related": {"ref": ANA, "depth": 2},
    "why": {"ref": ANA},
    "stale": {"same": True},
    "runs.list": {"subject": ANA},
    "sources.list": {},
    "interpretations.list": {},
    "schemas.list": {},
}
"""Every list verb and what it is asked; what follows the verb's name only tells two questions apart."""
OTHERS: dict[str, dict[str, Any]] = {
    "search": {"query": "ana", "entity_type": "person"},
    "query": {"entity_type": "company"},
    "duplicates": {"entity_type": "person"},
    "observations": {"ref": BO},
    "history": {"ref": BO},
    "timeline": {},
    "conflicts": {},
    "related": {"ref": ANA, "depth": 1},
    "why": {"ref": BO},
    "stale": {},
    "runs.list": {},
}
"""Another question to the same verb, where there is one."""


def write_all(a: Ledger, b: Ledger) -> None:
    """Write something that every list has at least three of."""
    for n in range(3):
        fields = {f"mood{n}": "good", "score": n, "city": f"City {n}"}
        a.store({"entity_type": "person", "name": "Ana", **fields})
        b.store({"entity_type": "person", "name": "Ana", **dict.fromkeys(fields, 100 + n)})
        a.store([{"entity_type": "person", "name": name, "score": n} for name in ("Bo", f"Ana {n}")])
        a.store([{"entity_type": "company", "name": f"c{n}", "$": {"key": f"{n}{side}"}} for side in "xy"])
        a.relate(ANA, "works_at", f"company/{n}x")
        a.schemas.register({"title": f"boat{n}", "properties": {"crew": {"type": "integer"}}})
        source = a.sources.add(f"content {n}".encode(), name=f"{n}.txt")
        a.interpretations.begin(source, model="m-1").end()
        with a.run(f"Call {n}?", subject=ANA) as run:
            woodrat.decide("call", run.show(ANA), [woodrat.Rule("yes", {"score": {"gte": n}})], default="no")
    b.store({"entity_type": "person", "name": "Ana", "score": 77})


def write_more(ledger: Ledger, number: int) -> None:
    """Write what would move every list."""
    key = f"later {number}"
    ledger.store({"entity_type": "person", "name": "Ana", "city": key, "score": -number, key.replace(" ", "_"): 1})
    ledger.store({"entity_type": "person", "name": f"Ana A{number}", "score": 1000 + number})
    ledger.delete("person/Ana 1") if number % 2 else ledger.restore("person/Ana 1")
    ledger.relate(ANA, "knows", "person/Bo", key=key)
    ledger.schemas.register({"title": f"aaa{number}", "properties": {}})
    ledger.interpretations.begin(ledger.sources.add(key.encode()), model="m-2")
    with ledger.run(key, subject=ANA) as run:
        woodrat.decide("call", run.show(ANA), [woodrat.Rule("yes", {"score": {"gte": 0}})], default="no")


def list_verb(target: Any, name: str) -> Callable[..., Page[Any]]:
    """Return the verb of a list, also of a ledger whose verbs are coroutines."""
    verb = attrgetter(name.split()[0])(target)
    if isinstance(target, AsyncPast):
        return lambda **asked: asyncio.run(verb(**asked))
    found: Callable[..., Page[Any]] = verb
    return found


def everything(page: Page[Any], *, waits: bool = False) -> list[Any]:
    """Return the items of a page and of all that follow, by iterating as programs do."""
    if not waits:
        return list(page)

    async def gather() -> list[Any]:
        return [item async for item in page]

    return asyncio.run(gather())


def walk(verb: Callable[..., Page[Any]], between: Callable[[int], None], **asked: Any) -> list[Page[Any]]:
    """Return all pages, asked for one by one by their cursors."""
    pages = [verb(**asked)]
    while (cursor := pages[-1].cursor) is not None:
        between(len(pages))
        pages.append(verb(**asked, cursor=cursor))
    return pages


def local() -> tuple[Ledger, Ledger]:
    """Return two agents' ledgers of one tenant, filled."""
    a = woodrat.open(":memory:", agent="a", clock=FixedClock())
    b = a.as_agent("b")
    write_all(a, b)
    return a, b


@pytest.fixture
def served(start: Callable[..., Server], keyring: Keyring, engine: SqliteEngine) -> tuple[Any, Ledger]:
    """A filled ledger behind a server, and the same ledger here."""
    address = f"http://127.0.0.1:{start(keyring).port}"
    far = woodrat.open(address, key=keyring.create("t", "a", ["*"])[1])
    here = [Ledger(engine, tenant="t", agent=agent, clock=SystemClock(), policies=registry(())) for agent in "ab"]
    write_all(here[0], here[1])
    return far, here[0]


def test_every_list_verb_is_walked_here() -> None:
    """Whatever returns a page takes a limit and a cursor, by name alone, and is among the lists of these tests."""
    paged = {name for name, verb in verbs().items() if verb.function.__annotations__["return"].startswith("Page[")}
    assert paged == {name.split()[0] for name in LISTS}
    for name in paged:
        function = verbs()[name].function
        assert {"limit", "cursor"} <= set(function.__kwdefaults__ or ()), name


@given(
    st.sampled_from(sorted(LISTS)),
    st.integers(1, 12),
    st.lists(st.booleans(), max_size=4),
    st.booleans(),
    st.sampled_from([None, LATER]),
)
def test_all_pages_are_the_list(name: str, limit: int, writes: list[bool], pinned: bool, valid_at: str | None) -> None:
    """All pages together are the list as it was at the first, whatever is written between them."""
    ledger, _ = local()
    target: Any = ledger.at(ledger.position if pinned else None, valid_at=valid_at)
    verb, asked = list_verb(target, name), LISTS[name]
    whole = verb(**asked, limit=PAGE_MAX)
    assert len(whole.items) >= 3
    assert whole.cursor is None
    started = verb(**asked, limit=limit)
    pages = walk(verb, lambda n: write_more(ledger, n) if writes[n - 1 : n] == [True] else None, **asked, limit=limit)
    assert [item for page in pages for item in page.items] == list(whole.items)
    assert [len(page.items) for page in pages[:-1]] == [limit] * (len(pages) - 1)
    assert {page.position for page in pages} == {whole.position}
    assert list(started) == list(whole.items)
    assert started.to_json() == {
        "items": [item.to_json() for item in whole.items[:limit]],
        "cursor": started.cursor,
        "position": whole.position,
    }


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("waits", [False, True], ids=["served", "async"])
def test_all_pages_of_a_server_are_the_list(served: tuple[Any, Ledger], name: str, waits: bool) -> None:
    """Behind a server and in async code, pages and iteration give what the ledger has that is here."""
    far, here = served
    asked = LISTS[name]
    verb = list_verb(woodrat.api.aio.AsyncLedger(far) if waits else far, name)
    whole = list_verb(here, name)(**asked, limit=PAGE_MAX)
    assert verb(**asked, limit=PAGE_MAX) == whole
    for limit in (1, len(whole.items) - 1, len(whole.items)):
        assert everything(verb(**asked, limit=limit), waits=waits) == list(whole.items)
    begun = verb(**asked, limit=2)
    pages = walk(verb, lambda n: write_more(here, n) if n == 1 else None, **asked, limit=2)
    assert [item for page in pages for item in page.items] == list(whole.items)
    assert everything(begun, waits=waits) == list(whole.items)
    assert {page.position for page in pages} == {whole.position}


WRONG_LIMITS: tuple[Any, ...] = (0, -1, 10**9, "x", True, None, 1.0)


def refusal(call: Callable[..., object], **asked: Any) -> tuple[list[str], str]:
    """Return what a refused call names, and its message."""
    with pytest.raises(woodrat.Refused) as refused:
        call(**asked)
    assert str(refused.value).endswith("Nothing was read.")
    return [fault.path for fault in refused.value.faults], str(refused.value)


def damaged(cursor: str) -> str:
    """Return a cursor of which one character is another."""
    return cursor[:4] + ("a" if cursor[4] != "a" else "b") + cursor[5:]


@pytest.mark.parametrize("name", LISTS)
def test_what_is_wrong_with_a_page_is_said_at_once(name: str) -> None:
    """A limit that is none and a cursor that does not fit are refused together, each by its name."""
    ledger, _ = local()
    verb, asked = list_verb(ledger, name), LISTS[name]
    cursor = verb(**asked, limit=1).cursor
    assert cursor is not None
    early = list_verb(ledger.at(ledger.position - 1), name)
    other_time = list_verb(ledger.at(valid_at=LATER), name)
    foreign = ledger.runs.list(limit=1).cursor if name != "runs.list" else ledger.query(limit=1).cursor
    for limit in WRONG_LIMITS:
        assert refusal(verb, **asked, limit=limit)[0] == ["limit"]
        for wrong in (foreign, damaged(cursor), cursor[:-1], "", "zzz", "ß", 7):
            assert refusal(verb, **asked, limit=limit, cursor=wrong)[0] == ["limit", "cursor"]
        for moved in (early, other_time):
            assert refusal(moved, **asked, limit=limit, cursor=cursor)[0] == ["limit", "cursor"]
    for wrong in (foreign, damaged(cursor), make_cursor(b"x", [1])):
        paths, message = refusal(verb, **asked, cursor=wrong)
        assert paths == ["cursor"]
        assert "not a cursor of this question" in message
    assert "this moment only reaches" in refusal(early, **asked, cursor=cursor)[1]
    assert "it is from a list with no valid time" in refusal(other_time, **asked, cursor=cursor)[1]
    if name in OTHERS:
        assert refusal(verb, **OTHERS[name], cursor=cursor)[0] == ["cursor"]


@pytest.mark.parametrize(
    ("name", "asked", "paths"),
    [
        ("observations", {"ref": ""}, ["ref"]),
        ("observations", {"ref": 7}, ["ref"]),
        ("history", {"ref": "", "field": 7}, ["ref", "field"]),
        ("timeline", {"since": "soon", "until": object()}, ["since", "until"]),
        ("conflicts", {"entity_type": "No!", "arrival": "yes"}, ["entity_type", "arrival"]),
        ("related", {"ref": "", "depth": 0}, ["ref", "depth"]),
        ("duplicates", {"entity_type": 7}, ["entity_type"]),
        ("search", {"query": "", "entity_type": "No!"}, ["entity_type", "query"]),
        ("query", {"sort": 7, "descending": 1}, ["sort", "descending"]),
        ("why", {"ref": None}, ["ref"]),
        ("stale", {"same": 1}, ["same"]),
        ("runs.list", {"since": "soon", "status": "odd"}, ["since", "status"]),
    ],
)
def test_a_wrong_question_is_said_with_its_page(name: str, asked: dict[str, Any], paths: list[str]) -> None:
    """What is wrong with a question, its limit and its cursor is one refusal."""
    ledger, _ = local()
    assert refusal(list_verb(ledger, name), **asked, limit=0, cursor="zz!")[0] == [*paths, "limit", "cursor"]


@pytest.mark.parametrize("waits", [False, True], ids=["served", "async"])
def test_a_server_refuses_the_same(served: tuple[Any, Ledger], waits: bool) -> None:
    """Limits and cursors that do not fit are refused by a server as they are here, all at once."""
    far, here = served
    target = woodrat.api.aio.AsyncLedger(far) if waits else far
    for name, asked in LISTS.items():
        verb = list_verb(target, name)
        cursor = verb(**asked, limit=1).cursor or ""
        foreign = "schemas.list" if name != "schemas.list" else "query"
        other = list_verb(here, foreign)(limit=1).cursor
        for limit in (0, -1, 10**9):
            for wrong in (damaged(cursor), other):
                assert refusal(verb, **asked, limit=limit, cursor=wrong)[0] == ["limit", "cursor"]
        for odd in ("x", True):
            assert set(refusal(verb, **asked, limit=odd, cursor="z!")[0]) == {"limit", "cursor"}
        assert refusal(verb, **asked, cursor=damaged(cursor))[0] == ["cursor"]
    early = far.at(here.position - 1)
    cursor = far.observations(limit=1).cursor
    assert refusal(early.observations, cursor=cursor)[0] == ["cursor"]


@pytest.mark.parametrize(
    ("name", "module", "function"),
    [
        ("query sorted", queries.Answer, "first"),
    ],
)
def test_iterating_computes_a_list_once(monkeypatch: pytest.MonkeyPatch, name: str, module: Any, function: str) -> None:
    """However short its pages, a list that is computed whole is computed once while it is iterated."""
    ledger = local()[0].at(valid_at=LATER)  # no index leads through what is true at a time
    computed = []
    compute = getattr(module, function)

    def counted(*arguments: Any, **named: Any) -> Any:
        computed.append(name)
        return compute(*arguments, **named)

    monkeypatch.setattr(module, function, counted)
    page = list_verb(ledger, name)(**LISTS[name], limit=1)
    assert len(list(page)) == len(list(page)) >= 3
    assert len(computed) == 1
    list_verb(ledger, name)(**LISTS[name], limit=1, cursor=page.cursor)
    assert len(computed) == 2


@pytest.mark.parametrize("name", ["query", "observations", "conflicts", "sources.list"])
def test_a_page_reads_what_it_returns(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A page of a list that is walked asks the engine for no more, however much there is beyond it."""
    ledger = woodrat.open(":memory:", tenant="lists", agent="crm")
    for agent in ("crm", "erp"):
        records = [{"entity_type": "person", "id": f"{n:04}", "city": agent} for n in range(1_000)]
        ledger.as_agent(agent).store(records)
    for n in range(40):
        ledger.sources.add(f"page {n}".encode())
    if name == "conflicts":
        ledger.conflicts(limit=1)  # brings its index up to date
    seen: list[object] = []

    def counted(read: Callable[..., Any]) -> Callable[..., Any]:
        def reading(*arguments: Any) -> Any:
            seen.append(arguments)
            return read(*arguments)

        return reading

    for owner, function in ((Reader, "state"), (observation, "stored"), (source, "stored")):
        monkeypatch.setattr(owner, function, counted(getattr(owner, function)))
    page = list_verb(ledger, name)(limit=3)
    following = list_verb(ledger, name)(limit=3, cursor=page.cursor)
    assert len(page.items) == len(following.items) == 3
    assert not set(map(str, page.items)) & set(map(str, following.items))
    assert 0 < len(seen) <= 40


def test_a_page_without_items_is_false() -> None:
    """A page tells at once whether anything was found, also one that is empty; it has no length of its own."""
    ledger, _ = local()
    assert ledger.observations(ANA)
    assert not ledger.conflicts("company")
    assert ledger.conflicts("company").next_page() is None
    with pytest.raises(TypeError):
        len(ledger.observations())  # type: ignore[arg-type]


def test_a_diff_says_where_its_moments_are(served: tuple[Any, Ledger]) -> None:
    """A diff states both positions, can be iterated and counted, and is the same behind a server."""
    far, here = served
    here.tag("start", 3)
    changes = far.diff("@start", "now", ANA)
    assert changes == here.diff(3, here.position, ANA)
    assert (changes.before, changes.after, len(changes)) == (3, here.position, 1)
    assert [change.entity for change in changes] == [ANA]
    assert changes.to_json()["before"] == 3
    assert not far.diff(3, 3)
    against = far.diff_against([here.at(3).show(ANA)], ANA)
    assert (against.before, against.after, against.changes) == (None, here.position, changes.changes)
    assert against == here.diff_against([here.at(3).show(ANA)], ANA)


@pytest.mark.parametrize("far", [False, True], ids=["here", "served"])
def test_a_run_reads_page_by_page(served: tuple[Any, Ledger], far: bool) -> None:
    """In a run, entities of later pages are reads too; other lists are one read, however far they are iterated."""
    ledger = served[0] if far else served[1]
    with ledger.run("Who is there?") as run:
        names = [str(hit.snapshot.entity) for hit in run.search("ana", limit=2, entity_type="person")]
        assert len(list(run.observations(ANA, limit=1))) >= 3
        assert len(list(run.conflicts(limit=1))) >= 3
        first = run.history(ANA, limit=1)
        write_more(served[1], 1)
        run.history(ANA, limit=1, cursor=first.cursor)
    record = ledger.runs.show(run.id)
    assert {read.entity for read in record.reads[: len(names)]} == set(names)
    assert len(names) > 2
    assert len(record.reads) == len(names) + 4
    assert [read.as_of for read in record.reads[-2:]] == [first.position] * 2
