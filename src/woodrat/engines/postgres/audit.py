"""Audit: the tables of one tenant compared with its log, without writing.

Rows of indexes are looked up many at a time: a look-up of each would wait for the server each time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.engines.port import IndexRow
from woodrat.engines.postgres.statements import all_compiled
from woodrat.engines.sql.audit import SqlAudit

if TYPE_CHECKING:
    from woodrat.canon.ids import Ref
    from woodrat.engines.sql.view import SqlView

LISTED_MAX: Final = 500
"""How many rows of indexes are looked up at a time."""
_LETTERS: Final = ("a", "b", "c")


class PostgresAudit(SqlAudit):
    """Compares the tables of one tenant with its log, within one view."""

    def __init__(
        self, view: SqlView, size: int | None, ask: Callable[[str, dict[str, Any]], list[tuple[Any, ...]]]
    ) -> None:
        self._ask, self._name = ask, view.name
        self._named = all_compiled("audit.sql")
        self._listed: list[tuple[IndexRow, Ref | None]] = []
        super().__init__(view, size)

    def _all(self, query: str, **values: Any) -> list[tuple[Any, ...]]:
        values["tenant"] = self._name
        (part,) = self._named[query].parts
        return self._ask(part, values)

    def _is_there(self, query: str, values: tuple[Any, ...]) -> bool:
        return bool(self._all(query, **dict(zip(_LETTERS, values, strict=False))))

    def structure(self) -> None:
        """Check that the log ends where it is noted to, and that every row belongs to an entry and an entity."""
        noted = self._one("head")
        if (noted or 0) != self._size:
            problem = f"the log is noted to have {noted or 0} entries, and has {self._size}"
            self._amiss("truncated", min(self._size, noted or 0), None, problem, log=True)
        for query, damage, problem in (
            ("unowned_body", "unowned", "there is a body of no entry"),
            ("unowned_origin", "unowned", "there is an origin of no entry"),
            ("odd_clones", "clone", "what was taken over does not end here"),
        ):
            for (id,) in self._all(query):
                self._amiss(damage, id, None, problem, log=True)
        for (table,) in self._all("orphans"):
            self._amiss("surplus", None, None, f"{table} has a row that belongs to no entity")
        for table, position in self._all("beyond", size=self._size):
            problem = f"{table} speaks of position {position}, and the log ends before"
            self._amiss("truncated", self._size, None, problem, log=True)
        self._repeated()

    def listed(self, row: IndexRow, entity: Ref | None = None) -> None:
        """Look up a row of an index, with others."""
        self._listed.append((row, entity))
        if len(self._listed) >= LISTED_MAX:
            self._settle()

    def _settle(self) -> None:
        """Look up the rows of indexes that were listed."""
        if not self._listed:
            return
        listed, self._listed = self._listed, []
        for part in ("index_row", "index_past"):
            asked = [(row, entity) for row, entity in listed if (row.until is None) == (part == "index_row")]
            if not asked:
                continue
            rows = [row for row, _ in asked]
            columns: Mapping[str, Any] = {name: [getattr(row, name) for row in rows] for name in IndexRow._fields}
            statement = self._named[f"lacking_{part}"]
            lacking = self._all(f"lacking_{part}", **statement.arrays(dict(columns)))
            self._seen[part] = self._seen.get(part, 0) + len(asked) - len(lacking)
            for (number,) in lacking:
                row, entity = asked[number - 1]
                self._amiss("index", row.since, entity, f"the index {row.name} does not have a row")
