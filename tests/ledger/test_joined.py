"""Groups and hubs: what is remembered about which entities are joined, and when it is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest

import woodrat
from woodrat.state import relation


def test_what_was_not_joined_may_be_joined_later(tmp_path: Path) -> None:
    """An entity that was looked at while nothing joined it is joined by a later merge, here or elsewhere."""
    path = tmp_path / "agents.db"
    with woodrat.open(path) as ledger, woodrat.open(path) as other:
        names = ("a", "b", "c", "d", "e")
        ledger.store([{"entity_type": "boat", "name": name, "x": name} for name in names])
        ledger.merge("boat/d", "boat/e")
        for one in (ledger, other):
            assert all(len(one.show(f"boat/{name}").members) == 1 for name in "abc")
            one.store({"entity_type": "boat", "name": "a", "x": "again"})
        ledger.merge("boat/a", "boat/b")
        for one in (ledger, other):
            assert len(one.show("boat/a").members) == len(one.show("boat/b").members) == 2
        other.merge("boat/b", "boat/c")
        for one in (ledger, other):
            assert {len(one.show(f"boat/{name}").members) for name in "abc"} == {3}
            one.store({"entity_type": "boat", "name": "c", "y": 1})
            assert one.show("boat/a").fields["y"] == 1
        ledger.split("boat/b", "boat/c")
        for one in (ledger, other):
            assert len(one.show("boat/a").members) == 2
            assert len(one.show("boat/c").members) == 1
        assert ledger.verify().sound


def test_a_merge_that_is_undone_joins_nothing(tmp_path: Path) -> None:
    """A dry run of a merge leaves entities that were looked at as they were."""
    with woodrat.open(tmp_path / "agents.db") as ledger:
        ledger.store([{"entity_type": "boat", "name": name} for name in ("a", "b", "c", "d")])
        ledger.merge("boat/c", "boat/d")
        assert len(ledger.show("boat/a").members) == 1
        ledger.merge("boat/a", "boat/b", dry_run=True)
        assert len(ledger.show("boat/a").members) == 1
        ledger.merge("boat/a", "boat/b")
        assert len(ledger.show("boat/a").members) == 2


def test_a_group_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write that speaks of every member of a group walks through the group a few times, not once for each member."""
    with woodrat.open(":memory:") as ledger:
        ledger.store([{"entity_type": "boat", "name": f"{number}"} for number in range(20)])
        for number in range(1, 20):
            ledger.merge("boat/0", f"boat/{number}")
        walks = 0
        plain = relation.group

        def counted(*arguments: object) -> object:
            nonlocal walks
            walks += 1
            return plain(*arguments)  # type: ignore[arg-type]

        monkeypatch.setattr(relation, "group", counted)
        ledger.store([{"entity_type": "boat", "name": f"{number}", "x": number} for number in range(20)])
        assert walks <= 5
        assert len(ledger.show("boat/7").members) == 20
