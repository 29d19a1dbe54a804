"""Lists: the verbs that answer page by page, each with its first page, a page in the middle and all pages in turn.

A verb is one of them when its declaration has a cursor. The first page is also asked for over REST, and over MCP
where a tool offers the verb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from bench.growth import loans, people, shapes
from bench.growth.case import MCP, REST, Case, Facts, World
from bench.growth.slope import ALL, PAGE
from bench.growth.surface import Client, tool_of
from woodrat.api.ledger import Ledger
from woodrat.api.verb import Verb
from woodrat.api.verbs import verbs
from woodrat.explain.impact import Impact
from woodrat.ledger.pages import PAGE_MAX

Arguments = Mapping[str, Any]


class Listing(NamedTuple):
    """A list that is asked for."""

    world: World
    """The ledger."""
    arguments: Callable[[Facts], Arguments]
    """What is asked, by the names of the library."""
    verb: str = ""
    """The verb, where the row has another name."""
    kind: str = PAGE
    """What the first page is: `all` where it counts everything, of which it lists some."""


def _asked(**arguments: Any) -> Callable[[Facts], Arguments]:
    return lambda _: arguments


LISTINGS: Mapping[str, Listing] = {
    "elements": Listing(shapes.COLLECTION, _asked(ref="album/one", field="tags")),
    "search": Listing(people.PEOPLE, _asked(query=people.COMMON)),
    "search of two common words": Listing(people.PEOPLE, _asked(query=f"usual {people.COMMON}"), "search"),
    "query": Listing(people.PEOPLE, _asked(entity_type="person")),
    "query everything": Listing(people.PEOPLE, _asked(), "query"),
    "query sorted": Listing(people.PEOPLE, _asked(entity_type="person", sort="score"), "query"),
    "query sorted by a field that is not indexed": Listing(
        people.PEOPLE, _asked(entity_type="person", sort="name"), "query"
    ),
    "query by a value of an open type": Listing(
        people.PEOPLE, _asked(entity_type="shipment", where={"status": "delivered"}), "query"
    ),
    "query by a common value": Listing(people.PEOPLE, _asked(entity_type="person", where={"city": "Lund"}), "query"),
    "duplicates": Listing(people.PEOPLE, _asked()),
    "observations": Listing(people.PEOPLE, _asked()),
    "observations of an entity": Listing(shapes.LONG, _asked(ref=shapes.SUBJECT), "observations"),
    "history": Listing(shapes.LONG, _asked(ref=shapes.SUBJECT)),
    "timeline": Listing(people.PEOPLE, _asked()),
    "conflicts": Listing(people.PEOPLE, _asked()),
    "related": Listing(shapes.HUB, _asked(ref=shapes.SUBJECT)),
    "lineage": Listing(shapes.CHAIN, lambda facts: {"what": facts["last_run"]}),
    "impact": Listing(loans.LOANS, _asked(what=loans.BUSY)),
    "why": Listing(loans.LOANS, _asked(ref=loans.BUSY)),
    "stale": Listing(loans.LOANS, _asked()),
    "what_if": Listing(loans.LOANS, _asked(thresholds=loans.THRESHOLD), kind=ALL),
    "runs.list": Listing(loans.LOANS, _asked()),
    "runs.list of an agent": Listing(loans.LOANS, _asked(agent=loans.AGENT), "runs.list"),
    "runs.list about a busy entity": Listing(loans.LOANS, _asked(subject=loans.BUSY), "runs.list"),
    "runs.list of a status": Listing(loans.LOANS, _asked(status="done"), "runs.list"),
    "runs.list of a verdict": Listing(loans.LOANS, _asked(verdict="good"), "runs.list"),
    "schemas.list": Listing(people.PEOPLE, _asked()),
    "sources.list": Listing(people.PEOPLE, _asked()),
    "interpretations.list": Listing(people.PEOPLE, _asked()),
}
"""Every list, by the name of its row."""


def list_verbs() -> set[str]:
    """Return the verbs that answer page by page."""
    return {name for name, verb in verbs().items() if any(each.name == "cursor" for each in verb.parameters)}


def cases() -> Iterator[Case]:
    """Yield the rows of all lists."""
    for name, listing in LISTINGS.items():
        verb = verbs()[listing.verb or name]
        yield _first(name, verb, listing)
        if not name.startswith("schemas."):  # the same few, whatever the size
            yield _middle(name, verb, listing)
            yield _walk(name, verb, listing)
        if verb.declaration.method and not listing.verb:
            yield _rest(name, verb, listing)
        if (tool := tool_of(verb)) is not None and not listing.verb:
            yield _mcp(name, verb, listing, *tool)
    yield from _entries()


def items_of(answer: Any) -> tuple[Any, ...]:
    """Return the items of a page, whatever the verb calls them."""
    if isinstance(answer, Impact):
        return (*answer.runs, *answer.fields, *answer.exports, *answer.observations)
    for name in ("items", "elements", "decisions", "trees"):
        if hasattr(answer, name):
            return tuple(getattr(answer, name))
    raise TypeError(f"{type(answer).__name__} is not a page")


def _page(verb: Verb, listing: Listing) -> Callable[[Ledger, Facts, str | None, int], Any]:
    def ask(ledger: Ledger, facts: Facts, cursor: str | None, limit: int) -> Any:
        answer = verb.called_on(ledger)(**listing.arguments(facts), limit=limit, cursor=cursor)
        assert items_of(answer), f"{verb.name}: the page is empty"
        return answer

    return ask


def _first(name: str, verb: Verb, listing: Listing) -> Case:
    ask = _page(verb, listing)

    def call(ledger: Ledger, facts: Facts, _: int) -> None:
        ask(ledger, facts, None, facts["page"])

    return Case(f"{name}, first page", verb.name, listing.kind, listing.world, call)


def _middle(name: str, verb: Verb, listing: Listing) -> Case:
    ask = _page(verb, listing)

    def prepare(ledger: Ledger, facts: Facts) -> Facts:
        page = ask(ledger, facts, None, min(PAGE_MAX, max(2, facts["size"] // 20)))
        cursors: list[str] = []
        while page.cursor is not None:
            cursors.append(page.cursor)
            if hasattr(page, "next_page"):
                page = page.next_page()
            else:
                page = ask(ledger, facts, page.cursor, min(PAGE_MAX, max(2, facts["size"] // 20)))
        assert cursors, f"{verb.name}: there is but one page"
        return {"cursor": cursors[(len(cursors) - 1) // 2]}  # of two, the one with a whole page behind it

    def call(ledger: Ledger, facts: Facts, _: int) -> None:
        ask(ledger, facts, facts["cursor"], facts["page"])

    return Case(f"{name}, middle page", verb.name, PAGE, listing.world, call, prepare)


def _walk(name: str, verb: Verb, listing: Listing) -> Case:
    """Walk by cursor, each page asked for by itself, as a client of a server does."""
    ask = _page(verb, listing)

    def call(ledger: Ledger, facts: Facts, _: int) -> None:
        cursor, pages = None, 0
        while pages == 0 or cursor is not None:
            cursor, pages = ask(ledger, facts, cursor, facts["page"]).cursor, pages + 1
        assert pages > 1, f"{verb.name}: there is but one page"

    return Case(f"{name}, all pages", verb.name, ALL, listing.world, call, repeats=False)


# Other surfaces


def _wire(verb: Verb, arguments: Arguments, limit: int) -> dict[str, Any]:
    """Return arguments by the names they have on every surface but the library."""
    names = {parameter.name: parameter.wire for parameter in verb.parameters}
    return {names[name]: value for name, value in {**arguments, "limit": limit}.items()}


def _rest(name: str, verb: Verb, listing: Listing) -> Case:
    def call(client: Client, facts: Facts, _: int) -> None:
        client.ask(verb, _wire(verb, listing.arguments(facts), facts["page"]))

    return Case(f"{name}, first page, REST", verb.name, listing.kind, listing.world, call, surface=REST)


def _mcp(name: str, verb: Verb, listing: Listing, tool: str, action: str) -> Case:
    def call(client: Client, facts: Facts, _: int) -> None:
        arguments = _wire(verb, listing.arguments(facts), facts["page"])
        client.call_tool(tool, {**arguments, **({"action": action} if action else {})})

    return Case(f"{name}, first page, MCP", verb.name, listing.kind, listing.world, call, surface=MCP)


# The log, whose pages are named by position


def _entries() -> Iterator[Case]:
    verb = verbs()["log.entries"]

    def first(ledger: Ledger, facts: Facts, _: int) -> None:
        assert ledger.log.entries(limit=facts["page"])

    def middle(ledger: Ledger, facts: Facts, number: int) -> None:
        assert ledger.log.entries(after=facts["middle"] - number, limit=facts["page"])

    def walk(ledger: Ledger, facts: Facts, _: int) -> None:
        after = -1
        while entries := ledger.log.entries(after=after, limit=facts["page"]):
            after = entries[-1].position
        assert after == facts["head"]

    def rest(client: Client, facts: Facts, _: int) -> None:
        client.ask(verb, {"limit": facts["page"]})

    for part, call in (("first page", first), ("middle page", middle)):
        yield Case(f"log.entries, {part}", verb.name, PAGE, people.PEOPLE, call)
    yield Case("log.entries, all pages", verb.name, ALL, people.PEOPLE, walk, repeats=False)
    yield Case("log.entries, first page, REST", verb.name, PAGE, people.PEOPLE, rest, surface=REST)
