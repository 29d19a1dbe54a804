"""Bad recordings: whatever a file says, it is imported or refused with all its faults, and then nothing is recorded."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.runs.test_foreign import CALLS, LANGFUSE, LANGSMITH, TOLD, phoenix
from tests.runs.test_reader import opened

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import WoodratError
from woodrat.runs import json_values

SAMPLES: list[Any] = [
    *({"messages": said, "reward": 1.0} for said in CALLS.values()),
    LANGSMITH,
    LANGFUSE,
    phoenix(),
    {"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "ab" * 16, "spanId": "1" * 16, "attributes": []}]}]}]},
    {"data": [{"object": "trace.span", "id": "s", "trace_id": "t", "span_data": {"type": "agent", "name": "a"}}]},
    {"schema_version": "ATIF-v1", "agent": {"name": "a"}, "steps": [{"source": "agent", "message": "m"}]},
    TOLD,
    {"steps": [{"kind": "tool", "name": "f", "args": {}}], "judgements": [{"verdict": "good"}], "names": ["a"]},
    {"entries": [{"id": "s", "value": {"query": "?", "finalContent": "!", "toolCalls": [], "decisions": []}}]},
]
ODD = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8), st.just([]), st.just({}),
    st.just([[]]), st.just({"role": []}), st.just([{"id": 1}]), st.just("{'a': "), st.just(-0.0), st.just(2**70),
)  # fmt: skip


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all parts of a value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(deeper for name, item in inner for deeper in places(item, (*path, name)))]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_wrong_types_anywhere_are_taken_or_refused(data: st.DataObject) -> None:
    """A value of another type anywhere, once or three times: never anything but a clear refusal, or a run."""
    document = copy.deepcopy(data.draw(st.sampled_from(SAMPLES)))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(places(document)[1:] or [()]))
        if not path:
            continue
        inner = document
        for name in path[:-1]:
            inner = inner[name]
        inner[path[-1]] = copy.deepcopy(data.draw(ODD))
    ledger = opened(InMemoryEngine())
    told = isinstance(document, dict) and "query" in document
    try:
        runs = ledger.runs.import_(document)
    except WoodratError:
        assert told or ledger.position == -1
    else:
        for run in runs:
            ledger.runs.show(run).to_json()
        position = ledger.position
        if not told:
            ledger.runs.import_(document)
            assert ledger.position == position


FAULTY: dict[str, tuple[Any, str]] = {
    "a circle of parents": (
        {"runs": [{"id": "a", "trace_id": "t", "run_type": "chain", "parent_run_id": "b"},
                  {"id": "b", "trace_id": "t", "run_type": "chain", "parent_run_id": "a"}]}, "it is inside itself"),
    "a circle of spans": ([{**each, "parent_id": "2" * 16} for each in phoenix()], "it is inside itself"),
    "one id, two contents": (
        [{"id": "a", "trace_id": "t", "run_type": "llm", "name": name} for name in "xy"], "with other content"),
    "one call, two results": (
        {"messages": [*CALLS["openai"], {**CALLS["openai"][1], "content": "{}"}]}, "was answered before, differently"),
    "a result of no call": ({"messages": [{"role": "tool", "tool_call_id": "c", "content": "x"}]}, "does not answer"),
    "a result of 50 MB": (
        {"messages": [CALLS["openai"][0], {**CALLS["openai"][1], "content": "x" * 50_000_000}]}, "is the limit"),
    "a result of 50 MB in small parts": (
        {"messages": [CALLS["openai"][0], {**CALLS["openai"][1], "content": [{"n": "x" * 40}] * 700_000}]},
        "is the limit of one value"),
    "a step of 50 MB in small parts": (
        {"steps": [{"kind": "tool", "name": "t", "result": ["x" * 40] * 1_200_000}]}, "/steps/0/result"),
    "an observation of 50 MB in small parts": (
        {"id": "t", "observations": [
            {"id": "a", "traceId": "t", "type": "TOOL", "name": "t", "startTime": "2026-01-05T09:00:00Z",
             "output": {"rows": ["x" * 40] * 1_200_000}}]}, "is the limit of one value"),
    "an entry of 50 MB in small parts": (
        [{"kind": "run.tool", "name": "t", "result": ["x" * 40] * 1_200_000}], "/0/result"),
    "no known format": ({"ticks": [], "voice": 1}, "it is no recording that is known"),
    "an export without observations": ({"trace": {}, "observations": []}, "the trace id is"),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_faulty_recordings_are_refused_whole(name: str) -> None:
    """Each is refused with the reason, and nothing is recorded, also of a good run beside it."""
    document, words = FAULTY[name]
    ledger = opened(InMemoryEngine())
    with pytest.raises(woodrat.Refused, match=words) as refusal:
        ledger.runs.import_(document)
    assert "Nothing was recorded." in str(refusal.value)
    assert ledger.position == -1


@pytest.mark.parametrize("sample", range(len(SAMPLES)))
def test_truncated_exports_are_refused(sample: int) -> None:
    """A file that was cut off anywhere is no JSON, and is refused as such."""
    text = json.dumps(SAMPLES[sample])
    for end in range(1, len(text), 37):
        with pytest.raises(woodrat.Refused):
            json_values.parse(text[:end])


def test_odd_numbers_do_not_cost_the_file() -> None:
    """Negative zero is 0; NaN and integers beyond 2^53 are text; a key twice is refused."""
    text = (
        '{"messages": [{"role": "user", "content": "Hi"}], "a": -0.0, "b": 9007199254740993, "c": NaN, "d": "\\ud800"}'
    )
    ledger = opened(InMemoryEngine())
    (run,) = ledger.runs.import_(json_values.parse(text))
    assert ledger.runs.show(run).attributes == {"a": 0, "b": "9007199254740993", "c": "NaN", "d": "\\ud800"}
    with pytest.raises(woodrat.Refused, match="more than once"):
        json_values.parse('{"a": 1, "a": 2, "b": -0.0}')
