"""View: reading of one tenant, in one transaction of PostgreSQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import moment
from woodrat.canon.ids import KEY_BYTES_MAX
from woodrat.engines.postgres import state_columns
from woodrat.engines.postgres.prefetch import ROWS_MAX, Answers, answers_to, by_key, columns_of
from woodrat.engines.postgres.statements import NumberColumn, Part, all_compiled, named
from woodrat.engines.postgres.wire import Command, Connection, Key, Rows
from woodrat.engines.records import BEFORE_ALL, Head, Mismatch, Standing
from woodrat.engines.tables import ALL
from woodrat.engines.view import View
from woodrat.errors import Unavailable
from woodrat.log.tree import Frontier

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref, TenantId
    from woodrat.engines.cache import Memory
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules

PAGE: Final = 1_000
"""How many entries are read at a time. It costs less than a cursor of the server, and holds nothing open."""
ASKED_MAX: Final = 64
"""How many answers a view keeps, in case it is asked the same again."""
SHOWN: Final = 250
"""Of how many entities what plain SQL shows is compared at a time."""
SHOWN_COLUMNS: Final = ("entity", *state_columns.COLUMNS)
"""What is compared of each."""
FIRST_PAGE: Final = 64
"""How many are read at first: whoever wants a page of a list takes no more."""


class PostgresView(View):
    """Reading of one tenant."""

    last_text = "\U0010ffff" * (KEY_BYTES_MAX // 4 + 1)

    def __init__(
        self,
        connection: Connection,
        tenant: TenantId,
        memory: Memory,
        found: tuple[Any, ...] | None,
        answers: Answers,
    ) -> None:
        self.queries = named()
        self._statements = all_compiled()
        self._connection: Connection | None = connection
        self.memory = memory
        self.name = tenant
        self.number = tenant
        self.base = 0
        self._answers = answers
        """What was asked ahead."""
        self._expected: list[Key] = []
        """What of it was asked for entities that are looked up together."""
        self.asked: dict[Key, Command] = {}
        """What it was asked, as far as there are few rows."""
        if memory.head is None:
            memory.head = _head(found)
        self.begin()

    def end_view(self) -> None:
        """Let go of the connection: whatever is asked from now on is asked too late."""
        self._connection = None

    def ask(self, part: Part, values: dict[str, Any]) -> Rows:
        """Run one statement and return its rows."""
        question = Command(part, values)
        key = question.key
        rows = self._answers.get(key)
        if rows is None:
            (rows,) = self.exchange(question)
        if len(rows) <= ROWS_MAX and len(self.asked) < ASKED_MAX:
            self.asked[key] = question
            self._answers[key] = rows
        return rows

    def ask_ahead(self, questions: Sequence[Command]) -> None:
        """Ask in one round trip what will be asked, as far as it was not."""
        unknown = {key: question for key, question in by_key(questions).items() if key not in self._answers}
        if unknown:
            self._answers.update(answers_to(unknown, self.exchange(*unknown.values())[-len(unknown) :]))

    def select_each(self, query: str, several: Sequence[dict[str, Any]]) -> Sequence[Rows]:
        (part,) = self._statements[query].parts
        asked = [{"limit": ALL, **values, "tenant": self.name} for values in several]
        self.ask_ahead([Command(part, values) for values in asked])
        return [self.ask(part, values) for values in asked]

    def exchange(self, *commands: Command) -> list[Rows]:
        """Run statements in one round trip, and return the rows of each."""
        connection = self._connection
        if connection is None:
            raise Unavailable("The view is closed. Nothing was read. Ask again within a new one.")
        return connection.exchange(commands)

    def select(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        values.setdefault("limit", ALL)
        values["tenant"] = self.name
        (part,) = self._statements[query].parts
        return self.ask(part, values)

    def value(self, query: str, **values: Any) -> Any:
        rows = PostgresView.select(self, query, **values)
        return rows[0][0] if rows else None

    def touched(self, after: int, through: int) -> Collection[Ref]:
        if through - after > FIRST_PAGE:
            return super().touched(after, through)
        end = None if through >= self.head().position else through
        return {self._take_entity(row) for row in self.select("touched_entities", **self.bounds(after, end))}

    def standings(self, refs: Sequence[Ref], through: int, rules: Mapping[str, Rules]) -> Sequence[Standing | None]:
        if len(refs) == 1 or through >= self.head().position:
            return super().standings(refs, through, rules)
        # What is asked for each of them is asked for all together, and what was asked for those before is forgotten.
        for key in self._expected:
            self._answers.pop(key, None)
        there = [known for known in self.known_entities(refs) if known is not None and 0 <= known.first <= through]
        past = [known for known in there if known.last > through]
        kept = [known for known in there if known.at is not None and known.at > through]
        self._expected = self._ask_ahead(
            ("anchor", [{"entity": known.number, "through": through} for known in past]),
            ("kept", [{"entity": known.number, "through": through} for known in kept]),
        )
        walk = {"base": self.base, "through": through}
        starts = [start for known in past if (start := self._anchor(known, through)) > through]
        self._expected += self._ask_ahead(("last_said", [{"start": self.base + start, **walk} for start in starts]))
        found = super().standings(refs, through, rules)
        walks = []
        for known, standing in zip(self.known_entities(refs), found, strict=True):
            if known is not None and standing is not None:
                after = BEFORE_ALL if standing.kept is None else standing.kept.position
                if standing.version > after:
                    walks.append({"start": self.base + self._anchor(known, through), "after": after, **walk})
        self._expected += self._ask_ahead(("chain", walks))
        return found

    def _ask_ahead(self, *several: tuple[str, Sequence[dict[str, Any]]]) -> list[Key]:
        """Ask several statements, each with some sets of values, in one round trip; return what they are known by."""
        questions = [
            Command(self._statements[query].parts[0], {"limit": ALL, **values, "tenant": self.name})
            for query, sets in several
            for values in sets
        ]
        self.ask_ahead(questions)
        return [question.key for question in questions]

    def meta(self, name: str) -> bytes | None:
        notes = self.memory.notes
        if name not in notes:
            notes[name] = super().meta(name)
        return notes[name]

    def stream(self, query: str, after: int, through: int | None, **values: Any) -> Iterator[tuple[Any, ...]]:
        bounds, limit = self.bounds(after, through), FIRST_PAGE
        while True:
            rows = PostgresView.select(self, query, limit=limit, **values, **bounds)
            yield from rows
            if len(rows) < limit:
                return
            bounds["low"], limit = rows[-1][0] + 1, PAGE

    def bounds(self, after: int = BEFORE_ALL, through: int | None = None) -> dict[str, int]:
        return {"low": after + 1, "high": ALL if through is None else through}

    def many_of(self, values: Sequence[int]) -> NumberColumn:
        return NumberColumn(values)

    def ranges_of(self, pairs: Sequence[tuple[bytes, bytes]]) -> dict[str, Any]:
        return columns_of(pairs)

    def comparing(self, query: str, **values: Any) -> Iterable[tuple[Any, ...]]:
        """Return the rows that a statement gives, read by a cursor of the server: there may be any number of them."""
        fetch = Command(f"FETCH FORWARD {PAGE} FROM {query}")
        _, rows = self.exchange(Command(_declaration(query), {**values, "tenant": self.name}), fetch)
        try:
            yield from rows
            while len(rows) == PAGE:
                (rows,) = self.exchange(fetch)
                yield from rows
        finally:
            if self._connection is not None:
                self._connection.send(f"CLOSE {query}")

    def structure(self) -> list[Mismatch]:
        found: list[Mismatch] = []
        size = self.extent()
        noted = next(((row[0] or 0) for row in self.comparing("head")), 0)
        if noted != size:
            problem = f"the log is noted to have {noted} entries, and has {size}"
            found.append(Mismatch("truncated", min(size, noted), None, problem, log=True))
        for query, damage, problem in (
            ("unowned_body", "unowned", "there is a body of no entry"),
            ("unowned_origin", "unowned", "there is an origin of no entry"),
            ("odd_clones", "clone", "what was taken over does not end here"),
        ):
            found += (Mismatch(damage, id, None, problem, log=True) for (id,) in self.comparing(query))
        for (table,) in self.comparing("orphans"):
            found.append(Mismatch("surplus", None, None, f"{table} has a row that belongs to no entity"))
        for table, position in self.comparing("beyond", size=size):
            problem = f"{table} speaks of position {position}, and the log ends before"
            found.append(Mismatch("truncated", size, None, problem, log=True))
        return found

    def misshown(self, folds: Iterable[tuple[Ref, MergeState | None, Rules | None, int]]) -> Iterator[Ref]:
        statement = all_compiled("comparison.sql")["lacking_shown"]
        left = iter(folds)
        while some := list(islice(left, SHOWN)):
            refs = [ref for ref, *_ in some]
            rows = []
            for known, (_, state, rules, version) in zip(self.known_entities(refs), some, strict=True):
                fields, more, _ = state_columns.columns(state, rules, None)
                is_shown = known is not None and fields != state_columns.NOTHING
                rows.append((-1 if known is None else known.number, fields, more, version if is_shown else None))
            columns = statement.arrays(dict(zip(SHOWN_COLUMNS, zip(*rows, strict=True), strict=True)))
            (part,) = statement.parts
            for (number,) in self.ask(part, {"tenant": self.name, **columns}):
                yield refs[number - 1]


@cache
def _declaration(query: str) -> Part:
    """Return the statement that declares a cursor for a statement of `comparison.sql`."""
    return Part(f"DECLARE {query} NO SCROLL CURSOR FOR {named('comparison.sql')[query]}")


def _head(found: tuple[Any, ...] | None) -> Head:
    """Return the end of a log as its row has it."""
    if found is None or not found[2]:
        return Head(None, 0, None, Frontier())
    _, log, size, recorded_at, frontier = found
    return Head(log, size, moment.from_micros(recorded_at), Frontier.from_bytes(frontier))
