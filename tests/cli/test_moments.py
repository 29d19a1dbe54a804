"""Moments as people say them, and what the answer says they turned out to be."""

from __future__ import annotations

import re

import pytest
from tests.commands import Cli

ANA = "contact/Ana Rivera"
DATE = r"\d+ [A-Z][a-z]{2} \d{4}, \d\d:\d\d UTC"


@pytest.mark.parametrize("moment", ["yesterday", "2d", "last monday", "2020-05-01", "2020-05-01T00:00:00Z"])
def test_before_the_first_entry_nothing_is_known(ana: Cli, moment: str) -> None:
    """Words mean a time before today, when this ledger was empty."""
    assert ana("show", ANA, "--as-of", moment).code == 3
    listed = ana("entities", "list", "--as-of", moment)
    assert (listed.json["items"], listed.json["position"]) == ([], -1)
    assert listed.err == "(as of position -1)\n"


@pytest.mark.parametrize("moment", ["now", "0s", "@here", "1"])
def test_the_answer_states_what_a_moment_turned_out_to_be(ana: Cli, moment: str) -> None:
    """A table ends with the position and the time it was recorded; other output says it beside, unless it was typed."""
    ana("tag", "here", "1")
    table = ana("show", ANA, "--as-of", moment, "-o", "table").out.splitlines()[-1]
    assert re.fullmatch(rf"\(as of position [1-3], recorded {DATE}\)", table)
    beside = ana("show", ANA, "--as-of", moment).err
    assert bool(beside) is (moment != "1")


def test_true_by_a_day(ana: Cli) -> None:
    """`--valid-at` takes days and words too, and the answer names the time."""
    ran = ana("show", ANA, "--valid-at", "2026-02-01", "-o", "table")
    assert "Barcelona" in ran.out
    assert ran.out.splitlines()[-1] == "(as of now, valid at 1 Feb 2026, 00:00 UTC)"
    assert ana("timeline", "--since", "2026-02-01").json["items"][0]["observed_at"].startswith("2026-03-01")


def test_a_diff_between_words(ana: Cli) -> None:
    """Both ends of a diff can be words."""
    assert len(ana("diff", "--from", "yesterday", "--to", "now").json["changes"]) == 1
