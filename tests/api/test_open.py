"""Opening a ledger by a path, an address or nothing at all, and the same verbs as coroutines."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

import woodrat
from woodrat.engines.open import default_path
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.testing.clock import FixedClock

ANA = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}


@pytest.mark.parametrize("spell", [str, Path, lambda path: f"sqlite:///{path}"], ids=["text", "path", "address"])
def test_a_file_is_opened_by_any_of_its_names(tmp_path: Path, spell: object) -> None:
    """A path as text, a path, and sqlite:/// with the path name the same file, and what was written stays in it."""
    assert callable(spell)
    with woodrat.open(tmp_path / "agents.db") as ledger:
        ledger.store(ANA)
        fingerprint = ledger.fingerprint()
    with woodrat.open(spell(tmp_path / "agents.db")) as again:
        assert again.show("contact/Ana Rivera").fields["city"] == "Barcelona"
        assert again.fingerprint() == fingerprint
        assert isinstance(again.context.engine, SqliteEngine)


def test_the_default_file_is_in_the_users_data_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a name the ledger is one file under the platform's folder for user data, made when first written to."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with woodrat.open() as ledger:
        ledger.store(ANA)
    assert Path(default_path()) == tmp_path / "woodrat" / "woodrat.db"
    assert Path(default_path()).is_file()


def test_the_same_writes_give_the_same_bytes_on_file_and_in_memory(tmp_path: Path) -> None:
    """Given clock and nonces, the log of a file and that of a ledger in memory are equal to the byte."""
    logs: list[object] = []
    for db in (":memory:", str(tmp_path / "a.db")):
        with woodrat.open(db, clock=FixedClock()) as ledger:
            ledger.store(ANA)
            ledger.correct("contact/Ana Rivera", {"city": "Girona"})
            with ledger.context.engine.view(ledger.tenant) as view:
                logs.append([entry.to_json() for entry in view.entries()])
                logs.append([view.head().frontier.root().hex(), ledger.fingerprint()])
    assert logs[:2] == logs[2:]


def test_a_password_is_not_repeated() -> None:
    """A refusal shows what was asked for without what may be secret in it."""
    with pytest.raises(woodrat.Refused) as refused:
        woodrat.open("mysql://me:hunter2@example.org/db")
    assert "mysql://example.org" in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_a_read_only_ledger_refuses_writes(tmp_path: Path) -> None:
    """A ledger opened read-only answers every read and takes no write."""
    with woodrat.open(tmp_path / "a.db") as ledger:
        ledger.store(ANA)
    with woodrat.open(tmp_path / "a.db", readonly=True) as ledger:
        assert ledger.show("contact/Ana Rivera").fields["city"] == "Barcelona"
        with pytest.raises(woodrat.Unavailable, match="read-only"):
            ledger.store(ANA)


def test_a_ledger_may_require_stated_times(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With `strict` times nothing is decided by arrival: observations without a time are refused, all at once."""
    seen = "2026-01-05T09:00:00Z"
    ref = "contact/Ana Rivera"
    with woodrat.open(tmp_path / "a.db", agent="crm", strict="times") as ledger:
        ledger.store([ANA, {**ANA, "name": "Cy"}], observed_at=seen)
        writes: list[Callable[[bool], object]] = [
            lambda dry: ledger.store([ANA, {**ANA, "name": "Bo"}], dry_run=dry),
            lambda dry: ledger.correct(ref, {"city": "Girona"}, reason="moved", dry_run=dry),
            lambda dry: ledger.delete(ref, dry_run=dry),
            lambda dry: ledger.relate(ref, "knows", "contact/Cy", dry_run=dry),
            lambda dry: ledger.remember("Ana is in", about=ref, dry_run=dry),
            lambda dry: ledger.as_agent("web").store(ANA, dry_run=dry),
        ]
        for write in writes:
            for dry_run in (True, False):
                before = ledger.position
                with pytest.raises(woodrat.Refused, match="no time is stated, and this ledger requires one"):
                    write(dry_run)
                assert ledger.position == before
        with pytest.raises(woodrat.Refused) as refusal:
            ledger.store([ANA, {**ANA, "name": "Bo"}])
        assert len(refusal.value.faults) == 2
        own_time = {**ANA, "name": "Bo", "$": {"observed_at": seen}}
        assert ledger.store([own_time]).observations
        assert ledger.correct(ref, {"city": "Girona"}, reason="moved", observed_at=seen).changes
        with ledger.run("Record it") as run:
            run.note("runs state no observation")
    monkeypatch.setenv("WOODRAT_STRICT", "types, times")
    with woodrat.open(tmp_path / "a.db", agent="crm") as ledger:
        with pytest.raises(woodrat.Refused, match="no time is stated"):
            ledger.store(ANA)
        with pytest.raises(woodrat.Refused, match="gadget"):
            ledger.store({"entity_type": "gadget", "id": "1"}, observed_at=seen)
    with pytest.raises(woodrat.Refused, match="unknown strictness"):
        woodrat.open(":memory:", strict="clocks")


def test_a_ledger_prints_where_it_is_and_who_writes(tmp_path: Path) -> None:
    """`print(ledger)` names the database, tenant, agent and moment, and needs no read."""
    path = tmp_path / "a.db"
    with woodrat.open(path, tenant="sales", agent="crm") as ledger:
        assert repr(ledger) == f"<woodrat ledger {path}, tenant sales, agent crm>"
        ledger.store(ANA)
        then = repr(ledger.at(0, valid_at="2026-01-05T09:00:00Z"))
        assert then.endswith("as of 0, valid at 2026-01-05T09:00:00.000000Z>")
    assert repr(woodrat.open(":memory:", agent="crm")) == "<woodrat ledger in memory, tenant default, agent crm>"


def test_the_verbs_as_coroutines(tmp_path: Path) -> None:
    """`aopen` gives the same verbs as coroutines, moments and readings included; an error in a reading is recorded."""

    async def story() -> None:
        async with await woodrat.aopen(tmp_path / "a.db", agent="crm") as ledger:
            assert isinstance(ledger, woodrat.AsyncLedger)
            first = await ledger.store(ANA)
            await ledger.as_agent("web").store({**ANA, "city": "San Francisco"})
            assert (await (await ledger.at(first.position)).show("contact/Ana Rivera")).fields["city"] == "Barcelona"
            source = await ledger.sources.add(b"a letter")
            async with ledger.interpretations.start(source, model="reader-1") as reading:
                await reading.store({"entity_type": "contract", "name": "kline", "payment_terms": "Net-30"})
            with pytest.raises(ValueError, match="unreadable"):
                async with ledger.interpretations.start(source):
                    raise ValueError("unreadable")
            assert [reading.status for reading in await ledger.interpretations.list()] == ["done", "error"]
            with pytest.raises(woodrat.NotFound):
                await ledger.show("contact/Nobody")

    asyncio.run(story())
