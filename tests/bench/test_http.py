"""The benches of the server run: small scales, no figure of time is judged here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from bench import __main__ as bench
from bench import http_memory, place

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc to see another process")


@pytest.fixture(autouse=True)
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run take place in memory too: nothing here looks at a time."""
    monkeypatch.setattr(place, "MEMORY", frozenset())


def test_writes_over_http_are_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Both addresses, the bare handler and the library come out with what a call costs, and nothing is left."""
    words = ["--http", "--clients", "1", "2", "--seconds", "0.3", "--turns", "1", "--calls", "5", "--json"]
    bench.main([*words, "--dir", str(tmp_path)])
    rows = json.loads(capsys.readouterr().out)
    assert [row["clients"] for row in rows] == [1, 2]
    for row in rows:
        assert set(row["sides"]) == {"/v1/store", "/neotoma/store", "bare handler"}
        assert all(side["calls_per_second"] > 0 for side in row["sides"].values())
        assert row["library_us"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_busy_server_stays_within_its_memory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Clients that page, search, look and write all get answers, and the server takes no more than it may."""
    words = ["--memory", "--entities", "300", "--clients", "3", "--seconds", "2", "--json"]
    bench.main([*words, "--dir", str(tmp_path)])
    found = json.loads(capsys.readouterr().out)
    assert set(found["answers"]) == {"observations", "pages", "searches", "shows", "stores"}
    assert 0 < found["memory_mib"] <= http_memory.MEMORY_MIB_MAX
    assert found["refused"] == 0
    assert list(tmp_path.iterdir()) == []
