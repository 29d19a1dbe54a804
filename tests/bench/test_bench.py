"""The benchmarks are fair and run: small scales, no figure is judged here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from bench import __main__ as bench
from bench import peers, place, raw, table
from bench.raw import Raw
from bench.records import AGENTS, ENTITIES_MAX, Records, name, ref
from bench.rows import Row
from bench.stage import Scale, Stage
from bench.timing import Figure, take_turns

import woodrat
from woodrat.engines.sqlite.connection import WAL_PAGES

ROWS = tuple(row for row in bench.all_rows(quick=True) if not row.name.startswith("recall-"))
"""Every row but those that need many runs first."""
TINY = Scale(batch=10, few=10, depth=2, many=40, long=40, short=4, runs=3, many_runs=12, seconds=0)


@pytest.fixture
def anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a run take place in memory too: nothing here looks at a time."""
    monkeypatch.setattr(place, "MEMORY", frozenset())


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path, TINY) as found:
        yield found


@pytest.mark.usefixtures("anywhere")
def test_every_row_is_measured_and_nothing_is_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All rows come out as JSON in their order, with a value and a mark, and the folder of the run is gone."""
    bench.run(ROWS, TINY, tmp_path, as_json=True)
    printed = json.loads(capsys.readouterr().out)
    assert [line["name"] for line in printed] == [row.name for row in ROWS]
    assert all(line["value"] > 0 and line["ours"] > 0 and line["against"] > 0 for line in printed)
    assert all((line["met"] is None) == (line["goal"] is None) for line in printed)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.usefixtures("anywhere")
def test_only_the_rows_asked_for_are_printed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`--only` takes names of rows, and the exit code says whether their goals are met."""
    code = bench.main(["--quick", "--only", "digest", "--dir", str(tmp_path)])
    header, line, footer = capsys.readouterr().out.splitlines()
    assert header.split() == ["value", "goal", "ours", "against"]
    assert line.startswith("digest of a body")
    assert line.endswith("missed" if code else "met")
    assert "synchronous=FULL" in footer


def test_names_of_rows_are_told_apart() -> None:
    """No two rows have one name or one title."""
    assert len({row.name for row in ROWS}) == len({row.title for row in ROWS}) == len(ROWS)


def test_a_peer_has_a_row_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A peer that is not installed, in whole or in part, is left out of the table."""
    for known, there in ((lambda name: object(), True), (lambda name: None, False), (_no_module, False)):
        monkeypatch.setattr(peers, "find_spec", known)
        assert ("single-langgraph" in [row.name for row in bench.all_rows(quick=True)]) == there


def _no_module(name: str) -> object:
    raise ModuleNotFoundError(name)


def test_both_sides_hold_the_same_bytes(stage: Stage) -> None:
    """The bodies on the raw side are those of the log, in its order, through loading, single writes and batches."""
    pair = stage.few
    for turn in (*pair.said(1, turns=2), *pair.said(5, turns=2)):
        pair.store(turn[0].batch)
        pair.raw.add_all(turn[0].rows)
    bodies = [stored.observation.body for stored in sorted(pair.ledger.observations(), key=lambda s: s.position)]
    assert len(bodies) == TINY.few * TINY.depth + 12
    assert [pair.raw.get(number + 1) for number in range(len(bodies))] == bodies


def test_a_record_with_a_moment_of_its_own_has_the_bytes_of_the_log() -> None:
    """Records of a long history state their own moments, and no two are the same."""
    batch = Records("x").batch([0] * 5, apart=True)
    ledger = woodrat.open(":memory:", agent=batch.agent)
    ledger.store(batch.records, observed_at=batch.observed_at)
    found = ledger.observations(ref(0))
    assert [(stored.observation.body,) for stored in found] == batch.rows()
    assert len({stored.observation.observed_at for stored in found}) == 5


def test_both_sides_have_the_same_settings(stage: Stage) -> None:
    """Both files keep a write-ahead log with pages of one size; the raw side syncs commits and checkpoints as we do."""
    pair = stage.few
    ask = pair.raw._run
    assert ask("PRAGMA synchronous").get == 2
    assert ask("PRAGMA wal_autocheckpoint").get == WAL_PAGES
    for path in (pair.path, pair.raw.path):
        other = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        assert other.execute("PRAGMA journal_mode").get == "wal"
        other.close()
    assert raw.page_bytes(pair.path) == raw.page_bytes(pair.raw.path)


def test_records_look_like_those_of_the_goals() -> None:
    """Bodies have about 400 bytes, half of them of a type with a schema, from two agents who take turns."""
    source = Records("x")
    batches = [source.batch(range(100)) for _ in range(4)]
    sizes = [len(body) for batch in batches for (body,) in batch.rows()]
    assert 380 <= sum(sizes) / len(sizes) <= 420
    assert {record["entity_type"] for batch in batches for record in batch.records} == {"contact", "shipment"}
    assert {batch.agent for batch in batches} == set(AGENTS)


def test_no_two_contacts_share_a_name() -> None:
    """Names are told apart up to the largest number of entities, so that no write pays for hints about namesakes."""
    names = [name(number) for number in range(0, ENTITIES_MAX, 2)]
    assert len(set(names)) == len(names)


def test_sides_take_turns() -> None:
    """The other side comes first in each turn, warm turns are not measured, and few turns are measured in any case."""
    calls: list[tuple[str, int]] = []
    figure = take_turns(
        [[1, 2], [3], [4], [5], [6]],
        lambda item: calls.append(("ours", item)),
        lambda item: calls.append(("against", item)),
        warm=1,
        seconds=0,
    )
    assert calls[:5] == [("against", 1), ("against", 2), ("ours", 1), ("ours", 2), ("against", 3)]
    assert calls[-1] == ("ours", 5)
    assert figure.turns == 3


def test_a_mark_says_whether_the_goal_is_met() -> None:
    """A ratio is compared with its goal, an amount with its own; a row without a goal has no mark."""
    figure = Figure(ours=30, against=10, unit="µs")

    def mark(goal: float | None, *, is_ratio: bool = True) -> str:
        row = Row("x", "x of {s.few}", goal, lambda _: figure, is_ratio)
        return table.Table([row], TINY).line(row, figure).split()[-1]

    assert [mark(3), mark(2.9), mark(None)] == ["met", "missed", "-"]
    assert [mark(30, is_ratio=False), mark(29, is_ratio=False)] == ["met", "missed"]


@pytest.mark.parametrize("kind", ["tmpfs", "ramfs"])
def test_memory_is_no_disk(tmp_path: Path, kind: str) -> None:
    """A folder in memory is refused, since a commit costs nothing there."""
    mounts = tmp_path / "mounts"
    mounts.write_text(f"disk / ext4 rw 0 0\nmemory {tmp_path} {kind} rw 0 0\n")
    with pytest.raises(SystemExit, match="no folder on a disk"), place.folder(tmp_path, mounts):
        pass
    mounts.write_text(f"memory / {kind} rw 0 0\ndisk {tmp_path} ext4 rw 0 0\n")
    with place.folder(tmp_path, mounts) as made:
        assert made.parent == tmp_path
    assert not made.exists()


def test_raw_rows_are_committed(tmp_path: Path) -> None:
    """What the raw side has added is seen by another connection at once."""
    rows = Raw(tmp_path / "raw.db", 4096)
    rows.add((b"one",))
    rows.add_all([(b"two",), (b"three",)])
    other = apsw.Connection(str(rows.path))
    assert other.execute("SELECT count(*) FROM said").get == rows.digest_all() == 3
    other.close()
    rows.close()
