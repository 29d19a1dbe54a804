"""Structure: whether a file and its layout are whole, and every row in it belongs to somebody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

import apsw

from woodrat.engines import codec, layout
from woodrat.engines.records import Mismatch
from woodrat.engines.sqlite.connection import queries, sql

if TYPE_CHECKING:
    from woodrat.engines.view import View

_LOG_TABLES: Final = frozenset({"entry", "body", "tenant", "log", "receipt", "origin", "clone"})
_TREE = re.compile(r"\b[Tt]ree (\d+)")
_COLUMN = re.compile(r"\b([A-Za-z_]+)\.[A-Za-z_]+\b")
_WORD = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")


class Structure:
    """Checks the file that a view reads."""

    def __init__(self, view: View, run: Callable[..., apsw.Cursor]) -> None:
        self._view, self._run = view, run
        self._named = queries("comparison.sql")
        self._size = view.extent()
        self.wrong: list[Mismatch] = []
        """What was found."""

    def _all(self, query: str, **values: Any) -> apsw.Cursor:
        return self._run(self._named[query], values)

    def _amiss(self, part: str, position: int | None, problem: str, *, log: bool = False) -> None:
        self.wrong.append(Mismatch(part, position, None, problem, log))

    def check(self) -> None:
        """Check the file itself, its layout, and that every row belongs to somebody and to a position."""
        base, tenant = self._view.base, self._view.tenant_number
        tables = self._layout()
        for (message,) in self._all("integrity"):
            if message != "ok":
                self._broken(message, tables)
        if self.wrong:
            return  # what a damaged file says of its rows is worth nothing
        for (number,) in self._all("unowned_entry"):
            self._amiss("unowned", None, f"there are entries of tenant number {number}, which has no name", log=True)
        for query, damage, problem in (
            ("unowned_body", "unowned", "there is a body of no entry"),
            ("unowned_origin", "unowned", "there is an origin of no entry"),
            ("odd_clones", "clone", "what was taken over does not end here"),
        ):
            for (id,) in self._all(query):
                ours = base <= id < codec.base(tenant + 1)
                self._amiss(damage, id - base if ours else None, problem, log=True)
        for (number,) in self._all("unowned_receipt"):
            problem = f"there is a receipt of tenant number {number}, which has no name"
            self._amiss("unowned", None, problem, log=True)
        for (table,) in self._all("orphans"):
            self._amiss("surplus", None, f"{table} has a row that belongs to no tenant or no entity")
        if self._view.number is None:
            return
        bounds = self._view.bounds()
        for table, position in self._all("beyond", base=base, size=self._size, tenant=tenant, **bounds):
            problem = f"{table} speaks of position {position}, and the log ends before"
            self._amiss("truncated", self._size, problem, log=True)

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
                self._amiss("layout", None, f"{kind} {name} is not there")
            elif (kind, name) not in wanted:
                self._amiss("layout", None, f"{kind} {name} is not one of ours")
            elif wanted[kind, name] != there[kind, name]:
                self._amiss("layout", None, f"{kind} {name} is not what it was made as")
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
            self._amiss("file", None, line + where, log=not about or bool(about & _LOG_TABLES))


def _text(data: bytes | None) -> str:
    return "" if data is None else data.decode("utf-8", "replace")
