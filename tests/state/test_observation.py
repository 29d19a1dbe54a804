"""Observations: what can be told from their bytes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat import Refused
from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN
from woodrat.state import observation
from woodrat.state.asof import AsOf, Stored
from woodrat.state.observation import ASSERT, RETRACT, Observation, Voice, say
from woodrat.testing.generators import MOMENTS, History, histories

REF = Ref("thing", "a")


@given(histories(BUILTIN), st.sampled_from(MOMENTS))
def test_bytes_tell_what_cannot_count_at_a_time(history: History, effective: str) -> None:
    """Whatever counts at an effective time may count by its bytes; what begins later does not, retractions aside."""
    for said in history.observations:
        may = observation.counts_by(said.body, effective.encode())
        assert may or not AsOf(0, effective).selects(Stored(0, said))
        if said.op != RETRACT and said.valid_from > effective:
            assert not may


@pytest.mark.parametrize(
    ("said", "may"),
    [
        (say(REF, RETRACT, agent="a", observed_at=MOMENTS[-1], replaces=[bytes(32)], reason="late"), True),
        (say(REF, ASSERT, agent="a", observed_at=MOMENTS[0], valid_from=MOMENTS[-1], fields={"x": 1}), False),
        (say(REF, ASSERT, agent="a", observed_at=MOMENTS[-1], valid_from=MOMENTS[0], fields={"x": 1}), True),
        (say(REF, ASSERT, agent="a", observed_at=MOMENTS[-1], fields={"x": '"op":"retract"'}), False),
        (say(REF, ASSERT, agent="a", observed_at=MOMENTS[-1], fields={"x": {"op": "retract"}}), True),
    ],
)
def test_what_looks_like_a_retraction_may_count(said: Observation, may: bool) -> None:
    """A retraction may count at any time, and so may what holds the same bytes; text that spells them does not."""
    assert observation.counts_by(said.body, MOMENTS[0].encode()) is may


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=8),
    st.sampled_from(MOMENTS),
    st.sampled_from([None, *MOMENTS]),
    st.integers(-(2**53) + 1, 2**53 - 1),
    st.sampled_from([{}, {"run": "run_a", "step": 3}, {"confidence": 0.5}, {"reason": "\u201cso\u201d"}]),
)
def test_a_voice_says_what_its_parts_say(
    agent: str, observed_at: str, valid_from: str | None, priority: int, optional: dict[str, Any]
) -> None:
    """What a voice asserts is, byte for byte, the observation that the same parts make one by one."""
    fields: dict[str, Json] = {"b": "\u00e9", "a": [1, 2.5]}
    voice = Voice(agent, observed_at, valid_from, priority, optional=optional)
    alone = say(
        REF,
        ASSERT,
        agent=agent,
        observed_at=observed_at,
        valid_from=valid_from,
        priority=priority,
        fields=fields,
        **optional,
    )
    said = voice.assertion(REF, fields)
    assert (said.body, said.digest, said.valid_from) == (alone.body, alone.digest, alone.valid_from)


@pytest.mark.parametrize("name", ["fits", "digest", "body", "optional", "stated", "colour"])
def test_a_member_the_format_lacks_is_refused(name: str) -> None:
    """A body from elsewhere has the members that the page lists and no others, or the same words had two digests."""
    said = say(REF, ASSERT, agent="a", observed_at=MOMENTS[0], fields={"x": 1})
    body: Any = {**form.decode(said.body), name: "sch_" + "a" * 52}
    with pytest.raises(Refused, match=f"/{name}: unknown part of an observation"):
        observation.admit(form.encode(body))


ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from(
        [None, True, False, 0, -1, 2**53, 1.5, "", "a", "A b", "a\nb", "\ud800", "x" * 2_000, [], ["a"], {}, {"a": 1}]
    ),
    st.sampled_from([ASSERT, RETRACT, MOMENTS[0], MOMENTS[-1], MOMENTS[0][:-1], "2026-02-30T00:00:00.000000Z"]),
    st.text(max_size=3),
)
PARTS = ("agent", "assigned", "entity", "fields", "observed_at", "op", "priority", "valid_from", "run", "remove", "x")


@given(
    st.dictionaries(st.sampled_from(PARTS), ODD, max_size=2),
    st.dictionaries(st.sampled_from(["type", "key", "x"]), ODD, max_size=1),
    st.dictionaries(st.text(max_size=2) | st.sampled_from(["name", "9", "a-b"]), ODD, max_size=2),
    st.sets(st.sampled_from(PARTS), max_size=1),
)
def test_what_is_plain_at_a_glance_has_no_fault(
    parts: dict[str, Any], entity: dict[str, Any], fields: dict[str, Any], left_out: set[str]
) -> None:
    """The quick look at a body from elsewhere lets nothing pass that the long one refuses."""
    said = say(REF, ASSERT, agent="a", observed_at=MOMENTS[0], fields={"x": 1})
    body: Any = form.decode(said.body)
    assert observation._is_plain_assertion(body)
    body = {**body, "entity": {**body["entity"], **entity}, "fields": {**body["fields"], **fields}, **parts}
    body = {name: value for name, value in body.items() if name not in left_out}
    if observation._is_plain_assertion(body):
        assert observation._part_faults(body, "") == []
