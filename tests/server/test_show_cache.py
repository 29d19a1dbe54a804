"""Spelling: an answer made once is given again exactly as long as nothing changed that it tells."""

from __future__ import annotations

import threading
from typing import Any

import orjson
import pytest
from tests.server.server import Server

from woodrat import Ledger, Snapshot
from woodrat.api.codec import plain
from woodrat.context import Context
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger import reads
from woodrat.server import app
from woodrat.server.show_cache import Shown, Spelling
from woodrat.server.show_cache import shown as plainly
from woodrat.testing.ledgers import ledger_on, tell

ANA = "contact/Ana Rivera"


def person(name: str, **fields: Any) -> dict[str, Any]:
    return {"entity_type": "person", "name": name, **fields}


def shown_by(spelling: Spelling, ledger: Ledger, ref: str) -> Shown:
    """Return an answer that one look tells."""
    found = spelling.show(ledger, ref)
    assert found is not None
    return found


def test_every_answer_is_what_the_library_tells(engine: SqliteEngine) -> None:
    """Whatever is said, withdrawn, deleted and joined, an answer is the snapshot of the moment, to the byte."""
    one, other = ledger_on(engine), ledger_on(engine, agent="b")
    spelling = Spelling(engine.stamp)
    for _ in tell(one, other):
        for snapshot in one.query(limit=100).items:
            expected = orjson.dumps(plain(one.show(snapshot.entity)))
            for _ in range(2):
                shown = spelling.show(one, str(snapshot.entity))
                if shown is None:
                    assert reads.show_soon(one.context, snapshot.entity) is None, "a reader has to look"
                    continue
                assert shown == plainly(one.show(snapshot.entity))
                assert shown.body == expected


def test_what_others_say_moves_only_the_position(engine: SqliteEngine) -> None:
    """After a write about something else, an answer is put together from what was spelled before."""
    ledger = ledger_on(engine)
    ledger.store(person("Ana", note='","position":1,"version":2'))
    spelling = Spelling(engine.stamp)
    before = shown_by(spelling, ledger, "person/Ana")
    kept = spelling.kept_bytes
    ledger.store(person("Bo"))
    after = shown_by(spelling, ledger, "person/Ana")
    assert spelling.kept_bytes == kept
    assert after.body != before.body
    assert after.tag == before.tag
    assert after.body == orjson.dumps(plain(ledger.show("person/Ana")))


def test_what_other_tenants_write_takes_one_look(engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a commit elsewhere one entity is looked at; if the log ends where it did, all answers are given again."""
    ledger, other = ledger_on(engine), ledger_on(engine, tenant="other")
    ledger.store([person(name) for name in "abc"])
    spelling = Spelling(engine.stamp)
    told = [shown_by(spelling, ledger, f"person/{name}") for name in "abc"]
    looks: list[str] = []
    show_soon = reads.show_soon

    def looking(context: Context, ref: str) -> Snapshot | None:
        looks.append(ref)
        return show_soon(context, ref)

    monkeypatch.setattr(reads, "show_soon", looking)
    other.store(person("x"))
    assert [shown_by(spelling, ledger, f"person/{name}") for name in "abc"] == told
    assert looks == ["person/a"]
    ledger.store(person("b", age=1))
    assert b'"age":1' in shown_by(spelling, ledger, "person/b").body
    assert shown_by(spelling, ledger, "person/a").body != told[0].body
    assert shown_by(spelling, other, "person/x").body == orjson.dumps(plain(other.show("person/x")))


def test_what_was_repaired_is_told_before_the_log_grows(engine: SqliteEngine) -> None:
    """A rebuild changes no log, so an answer is given again until the server forgets, which it does every second."""
    ledger = ledger_on(engine)
    ledger.store(person("Ana", city="Lund"))
    right = orjson.dumps(plain(ledger.show("person/Ana")))
    damage = "UPDATE entity SET state = CAST(replace(CAST(state AS TEXT), 'Lund', 'Oslo') AS BLOB)"
    engine.take_writer().connection.execute(damage)
    engine.give_back_writer()
    spelling = Spelling(engine.stamp)
    assert b"Oslo" in shown_by(spelling, ledger, "person/Ana").body
    assert not ledger.rebuild().agreed
    assert b"Oslo" in shown_by(spelling, ledger, "person/Ana").body
    spelling.forget()
    assert shown_by(spelling, ledger, "person/Ana").body == right
    assert spelling.told_bytes == len(right)


def test_a_server_forgets_what_it_told_time_and_again(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """While it serves, answers kept as they are do not outlast the next look at keys and audit."""
    forgot = threading.Event()
    monkeypatch.setattr(app, "TEND_SECONDS", 0.01)
    monkeypatch.setattr(Spelling, "forget", lambda spelling: forgot.set())
    start()
    assert forgot.wait(60)


def test_what_is_kept_is_bounded(engine: SqliteEngine) -> None:
    """However many entities are asked for, no more bytes are kept than was said; the latest are."""
    ledger = ledger_on(engine)
    ledger.store([person(f"p{number}", note="x" * 500) for number in range(40)])
    spelling = Spelling(engine.stamp, bytes_max=10_000)
    for number in range(40):
        body = shown_by(spelling, ledger, f"person/p{number}").body
        assert spelling.kept_bytes <= 10_000
        assert spelling.told_bytes <= 10_000
        assert spelling.told_bytes == sum(
            len(one.body) for _, told in spelling.answers.values() for one in told.values()
        )
        assert body == orjson.dumps(plain(ledger.show(f"person/p{number}")))
    assert any(likeness[2].key == "p39" for likeness in spelling.parts)


def test_an_engine_without_stamps_is_asked_every_time(engine: SqliteEngine) -> None:
    """Where nobody can say whether something was committed, nothing is taken from before."""
    ledger = ledger_on(engine)
    ledger.store(person("Ana", age=1))
    spelling = Spelling(lambda: None)
    assert b'"age":1' in shown_by(spelling, ledger, "person/Ana").body
    ledger.store(person("Ana", age=2))
    assert b'"age":2' in shown_by(spelling, ledger, "person/Ana").body


@pytest.mark.parametrize("name", ["person/Ana", "person%2FAna"])
def test_a_reader_sees_every_acknowledged_write(server: Server, engine: SqliteEngine, name: str) -> None:
    """Over HTTP an entity shows what was acknowledged before it was asked for, by this server or another process."""
    outside = ledger_on(SqliteEngine(engine.path), tenant="default")
    for age in range(6):
        if age % 2:
            outside.store(person("Ana", age=age))
        else:
            assert server.call("POST", "/v1/store", {"records": person("Ana", age=age)}).status == 200
        found = server.call("GET", f"/v1/entities/{name}")
        assert found.json["fields"]["age"] == age
        assert found.headers["etag"].startswith(f'W/"{found.json["version"]}-')
    outside.context.engine.close()
