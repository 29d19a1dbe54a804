"""Heavy reads: answered by processes of their own, few at a time, stopped when nobody waits for them."""

from __future__ import annotations

import json
import pickle
import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from tests.server.conftest import Start
from tests.server.server import Answer, Server
from tests.server.test_audit import eventually

from woodrat.clock import SystemClock
from woodrat.engines.cancellation import Cancellation, Cancelled, check, under
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.mcp import tools
from woodrat.records import replace
from woodrat.server import heavy_reads, workers
from woodrat.server.app import App
from woodrat.server.heavy_reads import Job
from woodrat.server.keys import Keyring, Open
from woodrat.server.limits import Limits, Places
from woodrat.server.readers import Full, Readers
from woodrat.server.reply import read_by_name
from woodrat.server.routes import ROUTES
from woodrat.testing.ledgers import ledger_on

ENDLESS = "/v1/prove-order?shuffles=1000"


def fill(engine: Any, tenant: str, count: int = 400) -> None:
    ledger_on(engine, tenant).store([{"entity_type": "thing", "id": str(n), "n": n} for n in range(count)])


def test_every_heavy_verb_is_one() -> None:
    """The list names verbs of routes: reads among the reads, and writes among the writes."""
    routes = {route.verb: route for route in ROUTES}
    for verb in heavy_reads.ALWAYS | heavy_reads.ON_LONG_LOGS | heavy_reads.FOLDING.keys():
        assert not routes[verb].writes, verb
    for verb in heavy_reads.WRITES:
        assert routes[verb].writes, verb
    answered = {
        action.operation({"first": "", "second": ""})
        for tool in tools.tools().values()
        for action in tool.actions.values()
    }
    assert answered >= {
        "diff",
        "runs_diff",
        "lineage",
        "impact",
        "stale",
        "what_if",
        "schemas_infer",
        "conflicts",
    }


def test_another_process_answers_the_same(start: Start, engine: SqliteEngine) -> None:
    """What a heavy verb answers, refuses and does not find is the same from another process as from a thread."""
    fill(engine, "default", 30)
    server = start()
    elsewhere = server.app.reads.workers
    asked: list[tuple[str, str, Any]] = [
        ("GET", "/v1/prove-order?shuffles=2", None),
        ("GET", "/v1/prove-order?shuffles=0", None),
        ("POST", "/v1/diff-against", {"known": {"thing/1": {"id": "1", "n": 7}}}),
        ("POST", "/v1/reduce", {"what": "thing/1", "when": {"n": {"eq": 1}}}),
        ("POST", "/v1/what-if", {"run": "run_aaaaaaaaaaaaaaaaaaaaaaaaaa", "set": {"a": 1}}),
        ("POST", "/v1/bisect", {"what": "thing/1", "when": {"n": {"eq": 1}}}),
        ("GET", "/v1/verify", None),
    ]
    told = []
    for found in (elsewhere, None):
        server.app.reads.workers = found
        answers = [server.call(method, path, body) for method, path, body in asked]
        told.append([(answer.status, {**answer.json, "instance": ""}) for answer in answers])
    assert told[0] == told[1]
    assert {status for status, _ in told[0]} >= {200, 400}
    assert elsewhere is not None
    assert elsewhere.started == 1


def test_a_long_log_makes_reads_of_all_of_it_heavy(
    start: Start, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What works through a log once is answered here while the log is short, and by another process when it is not."""
    monkeypatch.setattr(heavy_reads, "LONG_LOG_ENTRIES", 20)
    server = start()
    elsewhere = server.app.reads.workers
    assert elsewhere is not None
    fill(engine, "default", 10)
    before = server.call("GET", "/v1/fingerprint?provenance=true").json
    assert elsewhere.started == 0
    fill(engine, "default", 30)
    after = server.call("GET", "/v1/fingerprint?provenance=true").json
    assert elsewhere.started == 1
    assert before != after


def test_heavy_tools_are_answered_elsewhere_too(start: Start, engine: SqliteEngine) -> None:
    """A tool that is heavy, by its name or its action, counts as the verb does on any surface."""
    fill(engine, "default", 20)
    server = start()
    elsewhere = server.app.reads.workers
    assert elsewhere is not None
    for name, given in (
        ("show", {"ref": "thing/1"}),
        ("explain", {"action": "stale"}),
        ("explain", {"action": "what_if", "set": {"a": 1}}),
    ):
        params = {"name": name, "arguments": given}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        answer = server.call("POST", "/mcp", message).json["result"]
        assert not answer["isError"], answer
        assert elsewhere.started == (given.get("action") == "what_if")


def test_what_answers_a_heavy_read_travels_by_name() -> None:
    """Another process gets the function that answers a heavy read, of every verb and tool, and loads it by its name."""
    named: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
        (action or name, tools.answer, (name, action))
        for name, tool in tools.tools().items()
        for action in tool.actions
    ]
    named += [(route.verb, read_by_name, (route.verb, whole)) for route in ROUTES for whole in (False, True)]
    jobs = [Job(verb, partial(answer, *about), "t", "a", {}) for verb, answer, about in named]
    for job, (verb, answer, about) in zip(pickle.loads(pickle.dumps(jobs)), named, strict=True):
        assert (job.verb, job.answer.func, job.answer.args) == (verb, answer, about)


def asking(server: Server, key: str | None, path: str = ENDLESS) -> tuple[threading.Thread, list[Answer]]:
    told: list[Answer] = []

    def ask() -> None:
        connection = server.connect(60)
        connection.request("GET", path, headers={} if key is None else {"Authorization": f"Bearer {key}"})
        response = connection.getresponse()
        told.append(Answer(response.status, dict(response.getheaders()), response.read()))
        connection.close()

    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    return thread, told


def test_one_key_gets_few_heavy_reads(start: Start, engine: SqliteEngine, keyring: Keyring) -> None:
    """Of sixteen heavy reads of a key one runs and few wait; the others get 429, and another key's goes ahead."""
    fill(engine, "noisy")
    fill(engine, "quiet", 20)
    _, noisy = keyring.create("noisy", "a", ["read"])
    _, quiet = keyring.create("quiet", "b", ["read"])
    server = start(keyring)
    asked = [asking(server, noisy) for _ in range(16)]
    places = server.app.limits.heavy_reads
    eventually(lambda: sum(bool(told) for _, told in asked) == 16 - 1 - places.waiting_per_key)
    refused = [told[0] for _, told in asked if told]
    assert {(answer.status, answer.json["code"]) for answer in refused} == {(429, "unavailable")}
    assert all(int(answer.headers["retry-after"]) >= 1 for answer in refused)
    assert server.call("GET", "/v1/prove-order?shuffles=1", key=quiet).status == 200
    turns = server.app.turns["heavy_reads"]
    assert (turns.running, turns.waiting) == (1, places.waiting_per_key)


def test_without_a_cap_the_flood_is_let_in(start: Start, engine: SqliteEngine, keyring: Keyring) -> None:
    """The planted fault: a server whose heavy reads have places without end refuses none of the sixteen."""
    fill(engine, "noisy", 20)
    _, noisy = keyring.create("noisy", "a", ["read"])
    server = start(keyring, heavy_reads=Places(16, 16, 99, 99))
    asked = [asking(server, noisy, "/v1/prove-order?shuffles=1") for _ in range(16)]
    for thread, _ in asked:
        thread.join(60)
    assert {told[0].status for _, told in asked} == {200}


@pytest.mark.parametrize("per_tenant", [None, 2])
def test_one_tenant_leaves_a_place_for_heavy_reads(
    start: Start, engine: SqliteEngine, keyring: Keyring, per_tenant: int | None
) -> None:
    """Two keys of a tenant read for ever: another tenant's read is answered, but for the planted fault of no limit."""
    fill(engine, "noisy")
    fill(engine, "quiet", 20)
    noisy = [keyring.create("noisy", "a", ["read"])[1] for _ in range(2)]
    _, quiet = keyring.create("quiet", "b", ["read"])
    server = start(keyring, heavy_reads=replace(Limits().heavy_reads, running_per_tenant=per_tenant))
    turns = server.app.turns["heavy_reads"]
    for key in noisy:
        asking(server, key)
    eventually(lambda: turns.running + turns.waiting == 2)
    assert turns.running == (per_tenant or 1)
    _, told = asking(server, quiet, "/v1/prove-order?shuffles=1")
    if per_tenant is None:
        eventually(lambda: bool(told))
        assert (told[0].status, turns.running, turns.waiting) == (200, 1, 1)
    else:
        eventually(lambda: turns.waiting == 1)
        assert not told


def test_a_heavy_read_ends_when_its_caller_goes_away(start: Start, engine: SqliteEngine) -> None:
    """Whoever closes the connection while a heavy read is being answered ends it, as a stream does."""
    fill(engine, "default")
    server = start()
    turns = server.app.turns["heavy_reads"]
    connection = server.connect(60)
    connection.request("GET", ENDLESS)
    eventually(lambda: turns.running == 1)
    connection.close()
    eventually(lambda: turns.running == 0)


def test_work_that_timed_out_is_stopped(start: Start, engine: SqliteEngine) -> None:
    """When its time is over a heavy read is answered with 503, and the process that was at it is gone."""
    fill(engine, "default")
    server = start(read_seconds=2.0)
    elsewhere = server.app.reads.workers
    assert elsewhere is not None
    thread, told = asking(server, None)
    eventually(lambda: bool(elsewhere.alive))
    [worker] = elsewhere.alive
    thread.join(60)
    assert (told[0].status, "cancelled" in told[0].json["detail"]) == (503, True)
    eventually(lambda: worker.process.poll() is not None)
    eventually(lambda: server.app.turns["heavy_reads"].running == 0)
    assert server.call("GET", "/v1/prove-order?shuffles=1").status in (200, 503)


def test_a_revoked_key_gets_no_late_answer(start: Start, engine: SqliteEngine, keyring: Keyring) -> None:
    """A key that is revoked while its heavy read runs is refused at once, and never gets the answer."""
    fill(engine, "noisy", 60)
    key, noisy = keyring.create("noisy", "a", ["read"])
    server = start(keyring)
    thread, told = asking(server, noisy, "/v1/prove-order?shuffles=60")
    eventually(lambda: server.app.turns["heavy_reads"].running == 1)
    keyring.revoke(key.id)
    assert server.call("GET", "/v1/position", key=noisy).status == 401
    thread.join(60)
    assert told[0].status == 401


def test_a_worker_that_dies_is_told_of(start: Start, engine: SqliteEngine) -> None:
    """The caller of a read whose process ended is told to ask again, and the next one is answered by another."""
    fill(engine, "default")
    server = start()
    elsewhere = server.app.reads.workers
    assert elsewhere is not None
    thread, told = asking(server, None)
    eventually(lambda: bool(elsewhere.alive) and server.app.turns["heavy_reads"].running == 1)
    next(iter(elsewhere.alive)).kill()
    thread.join(60)
    assert (told[0].status, told[0].json["code"]) == (503, "unavailable")
    assert server.call("GET", "/v1/prove-order?shuffles=1").status == 200
    assert elsewhere.started == 2


def test_a_mistake_in_a_worker_tells_no_contents() -> None:
    """What a worker says of a mistake of its own is the class of the error and where it was, not its message."""

    def fail(ledger: object, given: object) -> None:
        raise ValueError("marker-value")

    class Ledgers:
        def of(self, tenant: str, agent: str) -> None:
            pass

    job = Job("verify", fail, "t", "a", {})
    told = workers.answer_to(job, Ledgers(), lambda done, whole: None)  # type: ignore[arg-type]
    assert told["failed"].startswith("ValueError at ")
    assert "marker" not in json.dumps(told)


def test_threads_stop_at_their_next_check() -> None:
    """Where no other process can open the ledger a thread does the work, and stops when it timed out."""
    engine = InMemoryEngine()
    fill(engine, "default")
    limits = Limits(read_seconds=1.0)
    app = App(engine, Open("default", "a"), clock=SystemClock(), policies=registry(()), limits=limits)
    assert app.reads.workers is None
    with Server(app) as server:
        thread, told = asking(server, None)
        thread.join(60)
        assert told[0].status == 503
        eventually(lambda: app.threads["heavy"].busy == 0)


def test_cancelled_work_raises_at_its_check() -> None:
    """`check` raises in the thread whose work was cancelled, and nowhere else; who waits for that is called once."""
    work, called = Cancellation(), []
    with under(work):
        check()
        with work.calling(lambda: called.append(1)):
            work.cancel()
        with pytest.raises(Cancelled):
            check()
        with work.calling(lambda: called.append(2)):
            pass
    check()
    assert called == [1, 2]


def test_a_queue_has_an_end() -> None:
    """Work beyond what may wait is refused at once, and what was taken on is done."""
    readers, free = Readers(1, "test", waiting_max=2), threading.Event()
    held = [readers.submit(free.wait, 20) for _ in range(3)]
    with pytest.raises(Full):
        readers.submit(int, "7")
    free.set()
    assert [one.result(20) for one in held] == [True] * 3
    assert readers.submit(int, "7").result(20) == 7
    readers.close(5)


@pytest.mark.parametrize(("limits", "status"), [({"writes_waiting_per_key": 1}, 429), ({"writes_waiting_max": 1}, 503)])
def test_waiting_writes_are_bounded(
    start: Start, limits: dict[str, int], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A write beyond those that may wait for their commit is refused with when to send it again; nothing is written."""
    server = start(**limits)
    record = {"records": {"entity_type": "thing", "id": "1"}}
    free, begun = threading.Event(), threading.Event()
    ledger = server.app.tenants.ledger(server.app.keys.caller(None))  # type: ignore[arg-type]
    stored: Callable[..., Any] = ledger.store

    def slow(*given: Any, **about: Any) -> Any:
        begun.set()
        free.wait(20)
        return stored(*given, **about)

    monkeypatch.setattr(ledger, "store", slow)
    told: list[Answer] = []
    thread = threading.Thread(target=lambda: told.append(server.call("POST", "/v1/store", record)))
    thread.start()
    assert begun.wait(20)
    refused = server.call("POST", "/v1/store", record)
    assert (refused.status, refused.json["code"], refused.headers["retry-after"]) == (status, "unavailable", "1")
    free.set()
    thread.join(20)
    assert told[0].status == 200
