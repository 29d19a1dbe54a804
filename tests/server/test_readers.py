"""The threads that read for requests, and how a server ends while they do."""

from __future__ import annotations

import threading
from concurrent.futures import CancelledError

import pytest
from tests.server.server import Answer, Server

from woodrat.clock import SystemClock
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.records import replace
from woodrat.server.app import App
from woodrat.server.keys import Open
from woodrat.server.readers import Readers
from woodrat.server.routes import ROUTES


def test_work_is_done_by_so_many_at_once() -> None:
    """No more than so many pieces of work are done at a time, each with its own answer or error."""
    readers = Readers(2, "test")
    both, free = threading.Barrier(3), threading.Event()

    def hold(number: int) -> int:
        both.wait(20)
        free.wait(20)
        return number

    held = [readers.submit(hold, number) for number in range(2)]
    later = readers.submit(int, "7")
    amiss = readers.submit(int, "x")
    both.wait(20)
    assert not later.done()
    free.set()
    assert [one.result(20) for one in (*held, later)] == [0, 1, 7]
    with pytest.raises(ValueError, match="invalid literal"):
        amiss.result(20)
    readers.close(20)


def test_nobody_waits_for_what_is_stuck() -> None:
    """Closing drops what waits, waits for what is being done no longer than it was told, and takes nothing more."""
    readers, free, begun = Readers(1, "test"), threading.Event(), threading.Event()

    def stuck() -> bool:
        begun.set()
        return free.wait(20)

    held, later = readers.submit(stuck), readers.submit(int, "7")
    assert begun.wait(20)
    readers.close(0.0)
    readers.shutdown(wait=False)
    with pytest.raises(CancelledError):
        later.result(20)
    with pytest.raises(RuntimeError):
        readers.submit(int, "7")
    assert not held.done()
    free.set()
    assert held.result(20)


def test_a_server_that_ends_gives_up_long_reads() -> None:
    """Whoever waits for a long read when the server ends is told to ask again, and the server does not wait for it."""
    free, begun = threading.Event(), threading.Event()

    def long(past: object) -> None:
        begun.set()
        free.wait(60)

    slow = replace(next(route for route in ROUTES if route.verb == "conflicts"), answer=long)
    app = App(InMemoryEngine(), Open("default", "http"), clock=SystemClock(), policies=registry(()), routes=(slow,))
    told: list[Answer] = []
    with Server(app) as server:
        asking = threading.Thread(target=lambda: told.append(server.call("GET", "/v1/conflicts")))
        asking.start()
        assert begun.wait(20)
    asking.join(20)
    assert (told[0].status, told[0].json["code"], told[0].headers["retry-after"]) == (503, "unavailable", "1")
    free.set()
