"""Groups with a planted cause of failure: the cause is named, and where none was planted, that is said."""

from __future__ import annotations

import os

import pytest
from tests.compare.planted_groups import CAUSES, planted

from woodrat.compare.features import FeatureTable
from woodrat.compare.separation import Separation, separate
from woodrat.compare.verdicts import settle, verdict_of
from woodrat.runs.record import RunRecord

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]

FULL = os.environ.get("WOODRAT_LAWS") == "full"
SEEDS = 120 if FULL else 3
NAMED_MIN = 0.95
"""In how many groups the cause must be named, or that there is none."""


def separated(records: list[RunRecord]) -> Separation:
    """Return what separates the bad runs of a group from its good ones."""
    table = FeatureTable()
    for record in records:
        table.add(record)
    return separate(table, settle([verdict_of(record) for record in records]))


@pytest.mark.parametrize("cause", CAUSES)
def test_the_planted_cause_is_named(cause: str) -> None:
    """In 200 runs with noise every planted cause is named and nothing else; without one, nothing is."""
    missed = []
    for seed in range(SEEDS):
        group = planted(cause, seed)
        traits = separated(group.records).traits
        named = all(any(group.is_named(each, trait) for trait in traits) for each in group.causes)
        alone = all(any(group.is_named(each, trait) for each in group.causes) for trait in traits)
        if not (named and alone):
            missed.append((seed, [trait.text for trait in traits]))
    assert len(missed) <= (1 - NAMED_MIN) * SEEDS, missed
