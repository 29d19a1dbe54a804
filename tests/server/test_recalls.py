"""What the recalls and reads of one tenant leave to others; the index of recall is made in the background."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.server.conftest import Start
from tests.server.server import Answer, Server
from tests.server.test_audit import eventually

from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger import lists
from woodrat.recall import embedders, reader
from woodrat.recall import index as recall_index
from woodrat.recall.minilm import MiniLM
from woodrat.records import replace
from woodrat.server.keys import Keyring
from woodrat.server.limits import Limits
from woodrat.testing.ledgers import ledger_on

RECALL = "/v1/recall?question=Which+colour+is+it%3F"
GREEN = "/v1/recall?question=Is+the+colour+green%3F"


class Held:
    """Reads of the tenant `noisy` that do not end before they are let go."""

    def __init__(self) -> None:
        self.free = threading.Event()
        self.begun = 0
        self.asked: list[threading.Thread] = []

    def hold(self, verb: Any) -> Any:
        """Return a verb of a room that waits where the tenant is `noisy`."""

        def held(context: Any, *given: Any, **about: Any) -> Any:
            if context.tenant == "noisy":
                self.begun += 1
                assert self.free.wait(60)
            return verb(context, *given, **about)

        return held

    def ask(self, server: Server, path: str, key: str) -> list[Answer]:
        """Ask in a thread."""
        told: list[Answer] = []
        self.asked.append(threading.Thread(target=lambda: told.append(server.call("GET", path, key=key, timeout=60))))
        self.asked[-1].start()
        return told

    def tool(self, server: Server, key: str) -> None:
        """Recall through MCP, in a thread."""
        params = {"name": "recall", "arguments": {"question": "Which colour is it?"}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        self.asked.append(threading.Thread(target=lambda: server.call("POST", "/mcp", message, key=key, timeout=60)))
        self.asked[-1].start()


@pytest.fixture
def held() -> Iterator[Held]:
    found = Held()
    yield found
    found.free.set()
    for thread in found.asked:
        thread.join(60)


def keys_of(keyring: Keyring, tenant: str, count: int) -> list[str]:
    return [keyring.create(tenant, "a", ["read"])[1] for _ in range(count)]


@pytest.mark.parametrize("per_tenant", [None, 2])
def test_recalls_of_one_tenant_stop_nobody(
    start: Start,
    engine: SqliteEngine,
    keyring: Keyring,
    held: Held,
    monkeypatch: pytest.MonkeyPatch,
    per_tenant: int | None,
) -> None:
    """Recalls that hang take no thread of other reads, and not all of recalls; without a limit they do (planted)."""
    for tenant in ("noisy", "quiet"):
        ledger_on(engine, tenant).store({"entity_type": "thing", "id": "1", "colour": "red"})
    noisy, [quiet] = keys_of(keyring, "noisy", 3), keys_of(keyring, "quiet", 1)
    monkeypatch.setattr(reader, "recall", held.hold(reader.recall))
    server = start(keyring, recalls=replace(Limits().recalls, running_per_tenant=per_tenant))
    turns = server.app.turns["recalls"]
    held.tool(server, noisy[0])
    for key in noisy * 2:
        held.ask(server, RECALL, key)
    eventually(lambda: (turns.running + turns.waiting, held.begun) == (7, per_tenant or 1))
    for key in (noisy[0], quiet):
        assert server.call("GET", "/v1/search?query=red", key=key).json["items"]
    told = held.ask(server, RECALL, quiet)
    if per_tenant is None:
        eventually(lambda: bool(told))
        assert told[0].json["hits"][0]["ref"] == "thing/1"
    else:
        eventually(lambda: turns.waiting == 6)
        assert not told


@pytest.mark.parametrize("per_tenant", [None, 4])
def test_reads_of_one_tenant_leave_a_thread(
    start: Start,
    engine: SqliteEngine,
    keyring: Keyring,
    held: Held,
    monkeypatch: pytest.MonkeyPatch,
    per_tenant: int | None,
) -> None:
    """Searches that bring an index up to date for long do not take every reader; without a limit they do (planted)."""
    noisy, [quiet] = keys_of(keyring, "noisy", 3), keys_of(keyring, "quiet", 1)
    ledger_on(engine, "quiet").store({"entity_type": "thing", "id": "1", "colour": "red"})
    monkeypatch.setattr(lists, "search", held.hold(lists.search))
    server = start(keyring, reads=replace(Limits().reads, running_per_tenant=per_tenant))
    for key in noisy * 2:
        held.ask(server, "/v1/search?query=red", key)
    turns = server.app.turns["reads"]
    eventually(lambda: (turns.running + turns.waiting, held.begun) == (6, per_tenant or 3))
    told = held.ask(server, "/v1/search?query=red", quiet)
    if per_tenant is None:
        eventually(lambda: bool(told))
        assert told[0].json["items"]
    else:
        eventually(lambda: turns.waiting == 3)
        assert not told


class Model(MiniLM):
    """A model that counts words of a few colours, and notes which threads asked for how many texts."""

    id = "colours:1"  # type: ignore[misc]
    dimension = 4  # type: ignore[misc]

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []
        self.free = threading.Event()

    def embed(self, texts: Sequence[str]) -> list[Any]:
        thread = threading.current_thread().name
        self.asked.append((thread, len(texts)))
        if "indexes" in thread:
            assert self.free.wait(60)
        return [[1, *(int(word in text) for word in ("red", "green", "blue"))] for text in texts]


@pytest.mark.parametrize("with_model", [True, False])
def test_an_index_is_made_in_the_background(
    start: Start, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, with_model: bool
) -> None:
    """A recall on a long log that nobody indexed answers at once, says how much is lacking, and finds it later."""
    model = Model()
    monkeypatch.setattr(embedders, "check", lambda _: model if with_model else None)
    monkeypatch.setattr(recall_index, "CHUNK_ENTRIES", 16)
    monkeypatch.setattr(recall_index, "STEP_PASSAGES", 8)
    ledger = ledger_on(engine, "default")
    for number in range(48):
        ledger.store({"entity_type": "thing", "id": str(number), "note": f"thing {number} is plain"})
    ledger.store({"entity_type": "thing", "id": "last", "colour": "the colour is green"})
    server = start()
    first = server.call("GET", GREEN).json
    assert (first["hits"], first["lacking"]) == ([], ledger.position + 1)
    assert f"{ledger.position + 1} entries are not indexed yet" in first["remark"]
    if with_model:  # all words are there before the first vector is
        eventually(lambda: any("indexes" in thread for thread, _ in model.asked))
        model.free.set()
    eventually(lambda: "lacking" not in server.call("GET", GREEN).json)
    assert server.call("GET", GREEN).json["hits"][0]["ref"] == "thing/last"
    assert {count for thread, count in model.asked if "recalls" in thread} <= {1}, "a read embeds its question alone"
    assert any("indexes" in thread for thread, _ in model.asked) == with_model
    ledger.store({"entity_type": "thing", "id": "new", "colour": "the colour is blue"})
    again = server.call("GET", "/v1/recall?question=Is+the+colour+blue%3F").json
    assert ("lacking" in again, again["hits"][0]["ref"]) == (False, "thing/new")


def test_a_recall_in_between_compares_words(
    start: Start, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While vectors are being made a recall finds by words, and says how many entries are not indexed by meaning."""
    model = Model()
    monkeypatch.setattr(embedders, "check", lambda _: model)
    monkeypatch.setattr(recall_index, "STEP_PASSAGES", 2)
    ledger = ledger_on(engine, "default")
    ledger.store([{"entity_type": "thing", "id": str(n), "colour": f"the colour is {n}"} for n in range(8)])
    server = start()
    monkeypatch.setattr(recall_index, "go_on", lambda _: False)
    found = server.call("GET", "/v1/recall?question=which+thing+has+the+colour+7%3F&threshold=0").json
    assert found["hits"][0]["ref"] == "thing/7"
    assert found["lacking"] == 8
    assert "8 passages have no vector yet and were compared by words alone." in found["remark"]
    assert model.asked == [("woodrat-recalls-0", 1)]


def test_a_ledger_that_nobody_serves_is_indexed_in_the_call(
    engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library brings its index up to date before it answers, however much is lacking."""
    monkeypatch.setattr(recall_index, "CHUNK_ENTRIES", 16)
    ledger = ledger_on(engine, "default")
    for number in range(40):
        ledger.store({"entity_type": "thing", "id": str(number), "colour": f"colour {number}"})
    found = ledger.recall("which thing has colour 39?")
    assert (found.hits[0].ref, found.lacking, "lacking" in found.to_json()) == ("thing/39", 0, False)
