"""Noisy recordings: the headline names the one thing that was done otherwise, and never what is only noise."""

from __future__ import annotations

import json
from typing import Any

import pytest
from tests.compare.noisy_runs import KINDS, Pair, pair
from tests.compare.paraphraser import TEST, TUNING

import woodrat
from woodrat.compare.divergence import Divergence, compare

SEEDS = 20
"""Pairs for each kind of change; 12 kinds make more than 200 pairs."""
RIGHT_MIN = 0.98


def spelled(value: Any) -> set[str]:
    """Return the ways in which a sentence may spell a value."""
    return {value if isinstance(value, str) else json.dumps(value), json.dumps(value), str(value)}


def fault(told: Pair, found: Divergence) -> str | None:
    """Return what is wrong with a headline; none where it names step, path and both values."""
    plant, cause, sentence = told.plant, found.cause, found.sentence
    assert plant is not None
    if found.level != "behaviour" or found.step is None or cause is None:
        return "no difference in behaviour"
    if found.rows[found.step].label not in plant.labels:
        return f"another step: {found.rows[found.step].label}"
    if plant.paths == (None, None):
        missing = [word for word in plant.words if word not in sentence]
        return f"{missing} not in the sentence" if missing else None
    if (cause.path, cause.other_path) != plant.paths:
        return f"another path: {cause.path}, {cause.other_path}"
    if (cause.first, cause.second) != plant.values:
        return f"other values: {cause.first}, {cause.second}"
    shown = all(not spelled(value).isdisjoint(_parts(sentence, value)) for value in plant.values if value is not None)
    named = all(path in sentence for path in plant.paths if path is not None and path != "chosen")
    return None if shown and named else "the sentence lacks a path or a value"


def _parts(sentence: str, value: Any) -> set[str]:
    return {text for text in spelled(value) if text in sentence}


def noise_in(told: Pair, found: Divergence) -> list[str]:
    """Return what of the noise a headline names."""
    noise = [str(value) for aside in found.set_aside for value in (aside.first, aside.second) if len(str(value)) > 5]
    noise += [run.query or "" for run in (told.first, told.second)]
    noise += [run.answer for run in (told.first, told.second) if isinstance(run.answer, str)]
    return [text for text in noise if text and text in found.sentence]


def pairs(words: str, count: int) -> list[Pair]:
    """Return pairs of all kinds of change."""
    return [made for kind in KINDS for seed in range(count) if (made := pair(words, seed, kind)) is not None]


@pytest.mark.parametrize(("words", "count"), [(TUNING, 5), (TEST, SEEDS)])
def test_the_headline_names_the_planted_change(words: str, count: int) -> None:
    """Of noisy pairs with one change in behaviour at least 98 % are named whole: step, path and both values."""
    made = pairs(words, count)
    assert len(made) >= (200 if words == TEST else 40)
    found = [compare(told.first, told.second) for told in made]
    wrong = [f"{told.name}: {said}" for told, one in zip(made, found, strict=True) if (said := fault(told, one))]
    assert len(wrong) <= (1 - RIGHT_MIN) * len(made), "\n".join(wrong)
    noisy = [f"{told.name}: {named}" for told, one in zip(made, found, strict=True) if (named := noise_in(told, one))]
    assert noisy == []
    for one in found:
        assert one.wording is not None, "the words differ before anything is done"
        assert not one.same


@pytest.mark.parametrize("words", [TUNING, TEST])
def test_noise_alone_is_no_difference_in_behaviour(words: str) -> None:
    """Two renderings of one script did the same, and the sentence says so."""
    for seed in range(30):
        told = pair(words, seed, None)
        assert told is not None
        found = compare(told.first, told.second)
        assert (found.same, found.level) == (True, "wording"), found.sentence
        assert found.sentence.startswith("They did the same (")
        assert "; only the wording differs, first at " in found.sentence


def test_swapping_the_runs_swaps_the_sides() -> None:
    """Which run is named first changes neither the step nor the level, and the sides of the cause change places."""
    for told in pairs(TEST, 4):
        there, back = compare(told.first, told.second), compare(told.second, told.first)
        assert (there.step, there.level) == (back.step, back.level)
        assert there.cause is not None
        assert back.cause is not None
        if told.plant is not None and told.plant.paths != (None, None):
            assert (there.cause.path, there.cause.first) == (back.cause.other_path, back.cause.second)


@pytest.mark.parametrize("depth", [1, 2, 3, 4, 5, 6])
@pytest.mark.parametrize("size", [10, 1_000, 10_000, 60_000, 100_000])
def test_a_renamed_key_is_named_in_the_sentence(depth: int, size: int) -> None:
    """A key renamed at any depth of a result of any length: the sentence has both names, for data and for text."""
    first: dict[str, Any]
    second: dict[str, Any]
    first, second = ({"part": {"code": "b7", name: "Girona"}} for name in ("zip_region", "postal_area"))
    for level in range(depth - 1):
        first, second = ({"inside": value, "level": level} for value in (first, second))
    rows = [{"row": number, "label": f"row {number}"} for number in range(size // 32)]
    first, second = ({**value, "rows": rows} for value in (first, second))
    assert depth > 1 or size > 10 or len(json.dumps(first)) < 80
    assert len(json.dumps(first)) > size * 0.9
    ledger = woodrat.open(":memory:")
    old = "zip_region"
    for one, two in ((first, second), (json.dumps(first), json.dumps(second))):
        documents = [
            {"id": name, "query": "?", "steps": [{"kind": "tool", "name": "fetch", "args": {}, "result": value}]}
            for name, value in ((f"one {type(one)}", one), (f"two {type(two)}", two))
        ]
        runs = [ledger.runs.import_(document)[0] for document in documents]
        found = ledger.runs.diff(*runs)
        path = "inside." * (depth - 1) + "part."
        assert (
            f"{path}{old} in the first run and {path}postal_area in the second, with the same value" in found.sentence
        )
        assert found.cause is not None
        assert (found.cause.change, found.cause.other_path) == ("renamed", path + "postal_area")
