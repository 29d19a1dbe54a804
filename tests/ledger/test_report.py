"""Report: how it is kept with an idempotency key, which is a format, and how it is shown, which is not."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat import record_json
from woodrat.canon import form
from woodrat.ledger.report import Change, Report, from_bytes
from woodrat.merge.diff import FieldChange

KEPT = (
    b'{"by_arrival":[],"changes":[{"deleted":[false,true],"entity":"contact/Ana","fields":[{"before":null,"field":"age"},'
    b'{"after":null,"field":"city"},{"after":["b"],"before":["a"],"field":"tags","part":true}]}],"conflicts":[],'
    b'"dry_run":false,"entities":["contact/Ana"],"hints":["so"],"id":null,"known":[],"observations":["obs_1"],"position":7,'
    b'"positions":[6,7],"repeated":false}'
)
"""A report as ledgers have kept it from the beginning."""
REPORT = Report(
    position=7,
    positions=(6, 7),
    observations=("obs_1",),
    known=(),
    entities=("contact/Ana",),
    changes=(
        Change(
            "contact/Ana",
            was_deleted=False,
            is_deleted=True,
            fields=(
                FieldChange("age", True, None, False, None),
                FieldChange("city", False, None, True, None),
                FieldChange("tags", True, ["a"], True, ["b"], part=True),
            ),
        ),
    ),
    conflicts=(),
    by_arrival=(),
    hints=("so",),
)


def test_a_kept_report_stays_readable() -> None:
    """The bytes that are kept with a key are the same as ever, and are read back to the same report."""
    assert REPORT.to_bytes() == KEPT
    assert from_bytes(KEPT) == REPORT


def test_a_report_kept_before_it_told_of_arrival() -> None:
    """A list that a report did not have yet when it was kept is empty."""
    older = {name: part for name, part in form.decode(KEPT).items() if name != "by_arrival"}
    assert from_bytes(form.serialise(older)) == REPORT


def test_a_report_shows_every_field_of_a_change() -> None:
    """In JSON nothing of a report is left out, so null is told from absent by `had` and `has`."""
    shown = REPORT.to_json()
    assert shown["changes"] == [
        {
            "entity": "contact/Ana",
            "was_deleted": False,
            "is_deleted": True,
            "fields": [
                {"field": "age", "had": True, "before": None, "has": False, "after": None, "part": False},
                {"field": "city", "had": False, "before": None, "has": True, "after": None, "part": False},
                {"field": "tags", "had": True, "before": ["a"], "has": True, "after": ["b"], "part": True},
            ],
        }
    ]
    assert list(shown) == [
        *("position", "positions", "observations", "known", "entities", "changes", "conflicts", "by_arrival"),
        *("hints", "repeated", "dry_run", "id"),
    ]
    assert record_json.read(Report, shown) == REPORT


def test_a_report_is_a_value() -> None:
    """A report is equal to one that says the same, can be pickled, and is never changed."""
    assert pickle.loads(pickle.dumps(REPORT)) == REPORT
    assert hash(REPORT.but()) == hash(REPORT)
    assert REPORT.again() != REPORT
    with pytest.raises(AttributeError, match="not changed"):
        REPORT.position = 8
    with pytest.raises(AttributeError, match="has no"):
        _ = REPORT.nothing


def test_the_rest_of_a_report_is_worked_out_once() -> None:
    """What a report does not have yet is asked for when it is first looked at, by JSON too."""
    asked = []

    def rest() -> dict[str, Any]:
        asked.append(1)
        return {name: getattr(REPORT, name) for name in REPORT.to_json()}

    late = Report(rest=rest)
    assert asked == []
    assert late.to_json() == REPORT.to_json()
    assert late == REPORT
    assert asked == [1]


CHANGES = st.builds(
    lambda name, before, after, part: FieldChange(
        name, before != (), None if before == () else before, after != (), None if after == () else after, part
    ),
    st.text(max_size=3),
    st.just(()) | st.none() | st.integers(-9, 9) | st.lists(st.text(max_size=2), max_size=2),
    st.just(()) | st.none() | st.integers(-9, 9) | st.lists(st.text(max_size=2), max_size=2),
    st.booleans(),
)


@given(st.lists(st.tuples(st.booleans(), st.booleans(), st.lists(CHANGES, max_size=3)), max_size=3))
def test_any_report_is_read_back_from_what_is_kept(changes: list[tuple[bool, bool, list[FieldChange]]]) -> None:
    """Whatever changed, the report that is kept is the one that was given."""
    made = tuple(Change(f"a/{place}", was, now, tuple(fields)) for place, (was, now, fields) in enumerate(changes))
    report = REPORT.but(changes=made)
    assert from_bytes(report.to_bytes()) == report
