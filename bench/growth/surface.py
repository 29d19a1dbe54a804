"""The surface: a server of the product on loopback, in a process of its own, and a client that calls it."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote, urlencode

from bench.growth.case import LIBRARY, REST
from bench.growth.meter import TreeMeter
from woodrat.api.verb import Verb
from woodrat.api.verbs import verbs

HOST = "127.0.0.1"
START_SECONDS = 60
ANSWER_SECONDS = 600
_MCP_HEADERS = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


class Client:
    """One connection to the server."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_SECONDS)

    def ask(self, verb: Verb, arguments: Mapping[str, Any]) -> None:
        """Call a verb at its address."""
        path, rest = verb.declaration.path, dict(arguments)
        for name in tuple(rest):
            if f"{{{name}}}" in path:
                path = path.replace(f"{{{name}}}", quote(str(rest.pop(name))))
        if verb.declaration.method == "POST":
            self._answer("POST", path, json.dumps(rest).encode(), {"Content-Type": "application/json"})
        else:
            pairs = [(name, _text(each)) for name, value in rest.items() for each in _several(value)]
            self._answer("GET", f"{path}?{urlencode(pairs)}", None, {})

    def call_tool(self, tool: str, arguments: Mapping[str, Any]) -> None:
        """Call a tool of MCP."""
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        headers = {"Content-Type": "application/json", **_MCP_HEADERS}
        answer = json.loads(self._answer("POST", "/mcp", json.dumps(call).encode(), headers))
        if "error" in answer or answer["result"].get("isError"):
            raise RuntimeError(f"{tool}: {json.dumps(answer)[:300]}")

    def _answer(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        self._connection.request(method, path, body, dict(headers))
        response = self._connection.getresponse()
        content = response.read()
        if response.status != 200:
            raise RuntimeError(f"{method} {path}: {response.status} {content[:300]!r}")
        return content


def _several(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return [f"{name}={_text(each)}" for name, each in value.items()]
    return list(value) if isinstance(value, list | tuple) else [value]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def tool_of(verb: Verb) -> tuple[str, str] | None:
    """Return the tool and the action that offer a verb over MCP, if any."""
    from woodrat.mcp.action import VerbAction
    from woodrat.mcp.tools import tools

    for tool in tools().values():
        for name, action in tool.actions.items():
            if isinstance(action, VerbAction) and verb in action.verbs:
                return tool.name, name
    return None


def show_call(surface: str) -> Callable[[Any, str], object]:
    """Return what shows one entity through a surface, on a ledger or by a client."""
    if surface == LIBRARY:
        return lambda ledger, ref: ledger.show(ref)
    verb = verbs()["show"]
    if surface == REST:
        return lambda client, ref: client.ask(verb, {"ref": ref})
    tool = tool_of(verb)
    assert tool is not None, "no tool shows an entity"
    action = {"action": tool[1]} if tool[1] else {}
    return lambda client, ref: client.call_tool(tool[0], {**action, "ref": ref})


@contextmanager
def served(db: str) -> Iterator[tuple[Client, TreeMeter]]:
    """Serve a ledger while it lasts; yield a client and the meter of the server."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
    words = [sys.executable, "-m", "woodrat", "serve", "--db", db, "--host", HOST, "--port", str(port)]
    process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                socket.create_connection((HOST, port), 1).close()
                break
            except OSError:
                if process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError(f"the server did not start: {' '.join(words)}") from None
                time.sleep(0.02)
        yield Client(port), TreeMeter(process.pid)
    finally:
        process.terminate()
        process.wait(30)
