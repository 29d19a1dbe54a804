"""Report: how it is kept with an idempotency key, which is a format, and how it is shown, which is not."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from woodrat import record_json
from woodrat.ledger.report import Change, Report
from woodrat.merge.diff import FieldChange

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
