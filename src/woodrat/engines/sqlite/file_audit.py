"""Audit: a file, its layout and its rows compared with the log, without writing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import apsw

from woodrat.engines.sql import codec, layout
from woodrat.engines.sql.audit import SqlAudit
from woodrat.engines.sqlite.connection import queries, sql

if TYPE_CHECKING:
    from woodrat.engines.sql.view import SqlView

_LOG_TABLES: Final = frozenset({"entry", "body", "tenant", "log", "receipt", "origin", "clone"})
_TREE = re.compile(r"\b[Tt]ree (\d+)")
_COLUMN = re.compile(r"\b([A-Za-z_]+)\.[A-Za-z_]+\b")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class SqliteAudit(SqlAudit):
    """Compares the tables of one tenant with its log, within one view of a file."""

    def __init__(self, view: SqlView, size: int | None, run: Callable[..., apsw.Cursor]) -> None:
        self._run = run
        self._named = queries("audit.sql")
        super().__init__(view, size)

    def _all(self, query: str, **values: Any) -> apsw.Cursor:
        return self._run(self._named[query], values)

    def _is_there(self, query: str, values: tuple[Any, ...]) -> bool:
        return self._run(self._named[query], values).get is not None

    def structure(self) -> None:
        """Check the file itself, its layout, and that every row belongs to somebody and to a position."""
        tables = self._layout()
        for (message,) in self._all("integrity"):
            if message != "ok":
                self._broken(message, tables)
        if self._wrong:
            return  # what a damaged file says of its rows is worth nothing
        for (tenant,) in self._all("unowned_entry"):
            self._amiss(
                "unowned", None, None, f"there are entries of tenant number {tenant}, which has no name", log=True
            )
        for query, damage, problem in (
            ("unowned_body", "unowned", "there is a body of no entry"),
            ("unowned_origin", "unowned", "there is an origin of no entry"),
            ("odd_clones", "clone", "what was taken over does not end here"),
        ):
            for (id,) in self._all(query):
                ours = self._base <= id < codec.base(self._tenant + 1)
                self._amiss(damage, id - self._base if ours else None, None, problem, log=True)
        for (tenant,) in self._all("unowned_receipt"):
            problem = f"there is a receipt of tenant number {tenant}, which has no name"
            self._amiss("unowned", None, None, problem, log=True)
        for (table,) in self._all("orphans"):
            self._amiss("surplus", None, None, f"{table} has a row that belongs to no tenant or no entity")
        if self._tables.number is None:
            return
        bounds = self._tables.bounds()
        for table, position in self._all(
            "beyond",
            base=self._base,
            size=self._size,
            high=bounds["high"],
            tenant=self._tenant,
        ):
            problem = f"{table} speaks of position {position}, and the log ends before"
            self._amiss("truncated", self._size, None, problem, log=True)
        self._repeated()

    def _layout(self) -> dict[int | str, str]:
        """Compare tables, indexes and triggers with those of a new file; return the table of each page and name."""
        fresh = apsw.Connection(":memory:")
        try:
            fresh.execute(sql(layout.TABLES))
            wanted = {(kind, name): text for kind, name, _, _, text in self._objects(fresh.execute)}
        finally:
            fresh.close()
        tables: dict[int | str, str] = {}
        there: dict[tuple[str, str], str] = {}
        for kind, name, table, page, text in self._objects(self._run):
            there[kind, name] = text
            tables[name] = tables[page] = table
        for kind, name in sorted(wanted.keys() | there.keys()):
            if (kind, name) not in there:
                self._amiss("layout", None, None, f"{kind} {name} is not there")
            elif (kind, name) not in wanted:
                self._amiss("layout", None, None, f"{kind} {name} is not one of ours")
            elif wanted[kind, name] != there[kind, name]:
                self._amiss("layout", None, None, f"{kind} {name} is not what it was made as")
        return tables

    def _objects(self, run: Callable[[str], apsw.Cursor]) -> Iterator[tuple[str, str, str, int, str]]:
        """Yield tables, indexes and triggers; what is no text in a damaged file is shown as far as it is."""
        for kind, name, table, page, text in run(self._named["layout"]):
            yield _text(kind), _text(name), _text(table), page, _text(text)

    def _broken(self, message: str, tables: Mapping[int | str, str]) -> None:
        """Note what SQLite says of its file; the log is damaged unless only tables of derived data are."""
        for line in message.splitlines():
            about = {tables[int(page)] for page in _TREE.findall(line) if int(page) in tables}
            about |= {tables[word] for word in _WORD.findall(_COLUMN.sub(r"\1", line)) if word in tables}
            if line.startswith("***"):
                continue
            where = f" ({', '.join(sorted(about))})" if about else ""
            self._amiss("file", None, None, line + where, log=not about or bool(about & _LOG_TABLES))


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")
