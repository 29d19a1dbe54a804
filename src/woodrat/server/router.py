"""Router: which route answers at an address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.errors import NotFound, shown
from woodrat.server import requests
from woodrat.server.problems import NOTHING_DONE, not_a_method

if TYPE_CHECKING:
    from collections.abc import Iterable

    from woodrat.server.requests import Exchange
    from woodrat.server.routes import Route


class Router:
    """Routes by their addresses and methods. An address has one place at most for a name, which may hold slashes."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._exact: dict[bytes, dict[str, Route]] = {}
        under: dict[tuple[bytes, bytes], dict[str, Route]] = {}
        for route in routes:
            before, brace, rest = route.path.partition("{")
            if brace:
                around = (before.encode(), rest.partition("}")[2].encode())
                under.setdefault(around, {})[route.method] = route
            else:
                self._exact.setdefault(before.encode(), {})[route.method] = route
        # The longest first: what follows a run's id is no part of it.
        self._under = sorted(under.items(), key=lambda item: (-len(item[0][0]), -len(item[0][1])))

    def route(self, exchange: Exchange) -> tuple[Route, str]:
        """Return the route of a request, and the name in its address, if it has one."""
        path = exchange.path
        table, name = self._exact.get(path), ""
        if table is None:
            for (before, after), under in self._under:
                end = len(path) - len(after)
                if path.startswith(before) and path.endswith(after) and end > len(before):
                    table, name = under, requests.plain(path[len(before) : end])
                    break
        if table is None:
            raise NotFound(
                f"{shown(path.decode('latin-1'))}: there is no such address. {NOTHING_DONE} See /openapi.json."
            )
        route = table.get("GET" if exchange.method == "HEAD" else exchange.method)
        if route is None:
            raise not_a_method(exchange.method, path, (*table, *(("HEAD",) if "GET" in table else ())))
        return route, name
