"""Files of recordings: what they are is known by their content, and a long one is recorded whole or not at all."""

from __future__ import annotations

import base64
import io
import json
import os
import threading
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import woodrat
from woodrat.importers import content
from woodrat.importers import files as recording_files


@pytest.fixture
def ledger() -> woodrat.Ledger:
    return woodrat.open(":memory:", agent="importer")


@pytest.fixture
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files of a few lines count as long."""
    monkeypatch.setattr(recording_files, "LONG_BYTES", 10)
    monkeypatch.setattr(recording_files, "BATCH_BYTES", 300)


def run(number: int, **said: Any) -> dict[str, Any]:
    """Return a transcript with an id."""
    return {
        "id": f"run {number}",
        "messages": [
            {"role": "user", "content": f"Question {number}?"},
            {"role": "assistant", "content": f'Answer, [{number}] {{"}}'},
        ],
        **said,
    }


RUNS = [run(number) for number in range(20)]
LINES = "".join(json.dumps(each) + "\n" for each in RUNS)
CSV = "id,question,answer\n" + "".join(f"{n},Question {n}?,Answer {n}\n" for n in range(20))


def test_text_and_bytes_of_a_file_are_read(ledger: woodrat.Ledger) -> None:
    """JSON, lines and CSV, as text, bytes or an open file; numbers that JSON of ours has not are helped."""
    odd = '{"id": "7", "query": "?", "steps": [{"kind": "tool", "name": "t", "result": [-0.0, 9007199254740993]}]}'
    for source in (odd, odd.encode(), io.BytesIO(odd.encode()), "\ufeff" + odd):
        (id,) = ledger.runs.import_(source)
        assert ledger.runs.show(id).tool_calls[0].result == [0, "9007199254740993"]
    assert len(ledger.runs.import_(LINES)) == len(ledger.runs.import_(json.dumps(RUNS))) == 20
    assert len(ledger.runs.import_(CSV)) == 20


@pytest.mark.parametrize(("name", "text"), [("a.jsonl", LINES), ("a.json", json.dumps(RUNS, indent=1)), ("a.csv", CSV)])
def test_long_files_are_recorded_in_batches(
    ledger: woodrat.Ledger, tmp_path: Path, short: None, name: str, text: str
) -> None:
    """Read piece by piece a file makes the same runs as a whole."""
    path = tmp_path / name
    path.write_text(text)
    ids = ledger.runs.import_(path)
    assert len(set(ids)) == 20
    other = woodrat.open(":memory:", agent="importer")
    assert other.runs.import_(content.document(text.encode(), name)[0]) == ids
    for id in ids:
        assert other.runs.show(id).answer == ledger.runs.show(id).answer
    position = ledger.position
    assert ledger.runs.import_(path) == ids
    assert ledger.runs.import_(io.BytesIO(text.encode())) == ids
    assert ledger.position == position


@pytest.mark.parametrize(
    ("bad", "match"),
    [
        ('{"id": "x", "messages": [{"role"', "a.jsonl line 21: "),
        ('{"id": "x", "steps": [{"kind": "tool"}]}', "a.jsonl line 21/steps/0"),
        (json.dumps(run(3, reward=1, messages=[{"role": "user", "content": "Else?"}])), "told in two ways"),
    ],
    ids=["cut off", "faulty", "told otherwise"],
)
def test_one_bad_line_costs_the_file(ledger: woodrat.Ledger, tmp_path: Path, short: None, bad: str, match: str) -> None:
    """Nothing of a long file is recorded, and the line is named."""
    path = tmp_path / "a.jsonl"
    path.write_text(LINES + bad)
    before = ledger.position
    with pytest.raises(woodrat.Refused, match=match):
        ledger.runs.import_(path)
    assert ledger.position == before


def test_arrays_that_are_cut_off_are_refused(ledger: woodrat.Ledger, tmp_path: Path, short: None) -> None:
    """A long array says where it ends."""
    text, path = json.dumps(RUNS), tmp_path / "a.json"
    for cut in (len(text) - 1, len(text) // 2, len(text) // 3):
        path.write_text(text[:cut])
        with pytest.raises(woodrat.Refused, match="not closed"):
            ledger.runs.import_(path)
    path.write_text(text + "x")
    with pytest.raises(woodrat.Refused, match="something follows"):
        ledger.runs.import_(path)
    assert ledger.position == -1


def test_parts_of_runs_are_read_as_a_whole(ledger: woodrat.Ledger, tmp_path: Path, short: None) -> None:
    """Lines that are messages, spans or entries are runs only together."""
    path = tmp_path / "a.jsonl"
    path.write_text('{"role": "user", "content": "Hi?"}\n{"role": "assistant", "content": "Hello."}\n')
    (id,) = ledger.runs.import_(path)
    assert (ledger.runs.show(id).query, ledger.runs.show(id).answer) == ("Hi?", "Hello.")


def test_several_files_are_one_import(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """All files of a folder, or named ones; the faults of all, and nothing of any where one is at fault."""
    (tmp_path / "b").mkdir()
    (tmp_path / "a.json").write_text(json.dumps(RUNS[0]))
    (tmp_path / "b" / "c.jsonl").write_text("".join(json.dumps(each) + "\n" for each in RUNS[:3]))
    (tmp_path / "notes.txt").write_text("no recording")
    ids = ledger.runs.import_(tmp_path)
    assert len(ids) == 3
    assert ledger.runs.import_([tmp_path / "a.json", tmp_path / "b"]) == ids
    position = ledger.position
    (tmp_path / "d.json").write_text('{"messages": [')
    (tmp_path / "e.json").write_text('{"id": "new", "steps": [{"kind": "tool"}]}')
    with pytest.raises(woodrat.Refused) as refused:
        ledger.runs.import_([tmp_path, tmp_path / "gone.json"])
    assert [fault.path for fault in refused.value.faults] == ["FILE"]
    with pytest.raises(woodrat.Refused) as refused:
        ledger.runs.import_(tmp_path)
    assert {Path(fault.path.partition(".json")[0]).name for fault in refused.value.faults} == {"d", "e"}
    assert ledger.position == position
    (tmp_path / "empty").mkdir()
    with pytest.raises(woodrat.Refused, match="this folder contains no recording"):
        ledger.runs.import_(tmp_path / "empty")


def test_otlp_in_protobuf_is_known_by_its_bytes(ledger: woodrat.Ledger) -> None:
    """The same request in JSON and in protobuf is the same run."""
    pytest.importorskip("opentelemetry.proto")
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    from tests.runs.test_run_json import SPANS

    document = json.loads(json.dumps(SPANS))
    (id,) = ledger.runs.import_(document)
    for span in document["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in {"traceId", "spanId", "parentSpanId"} & span.keys():
            span[name] = base64.b64encode(bytes.fromhex(span[name])).decode()
    data = (
        import_module("google.protobuf.json_format")
        .ParseDict(document, ExportTraceServiceRequest())
        .SerializeToString()
    )
    position = ledger.position
    assert ledger.runs.import_(data) == (id,)
    assert ledger.position == position


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(VALUES, max_size=6), st.sampled_from([None, 1, 3]), st.booleans())
@settings(deadline=None)
def test_the_elements_of_an_array_are_found(values: list[Any], indent: int | None, ascii_only: bool) -> None:
    """Whatever stands in the texts of an array, its elements are those that a parser finds."""
    data = json.dumps(values, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    pieces = list(content.elements(data))
    if any(piece.faults for piece in pieces):  # halves of surrogate pairs are no UTF-8
        return
    assert [piece.value for piece in pieces] == values
    assert [piece.place for piece in pieces] == [f"/{number}" for number in range(len(values))]


class Endless(io.RawIOBase):
    """A pipe that never ends."""

    taken = 0

    def read(self, size: int = -1) -> bytes:
        assert 0 < size <= 1_048_576, "an endless pipe is read in parts"
        self.taken += size
        return b"[" * size


def test_a_pipe_is_taken_up_to_a_limit(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a pipe without an end no more is copied than the limit, which the refusal names; nothing is recorded."""
    monkeypatch.setattr(recording_files, "PIPE_BYTES_MAX", 3_000_000)
    pipe = Endless()
    with pytest.raises(woodrat.Refused, match="more than 3000000 bytes, which is the limit of a pipe") as refused:
        ledger.runs.import_(pipe)
    assert "Nothing was recorded." in str(refused.value)
    assert pipe.taken <= 4 * 1_048_576
    assert ledger.position == -1
    monkeypatch.setattr(recording_files, "PIPE_BYTES_MAX", len(LINES))
    assert len(ledger.runs.import_(io.BytesIO(LINES.encode()))) == 20


def test_a_named_pipe_is_read_as_a_pipe(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """A path that is no file on the disk has no size, and is copied before it is read."""
    path = tmp_path / "fifo"
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_text, args=(LINES,), daemon=True)
    writer.start()
    assert len(ledger.runs.import_(path)) == 20
    writer.join(10)
