"""Core: the two pure functions every write goes through, against what they are made of."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import orjson

from bench.stage import Stage
from bench.timing import Figure, take_turns
from woodrat.canon import form
from woodrat.canon.digest import digest

RECORD = {f"field{number}": f"a value of some length, number {number}" for number in range(9)} | {"count": 42}


def canonical_form(stage: Stage) -> Figure:
    """The canonical form of a flat record."""
    return _calls(stage, lambda _: form.encode(RECORD), lambda _: orjson.dumps(RECORD, option=orjson.OPT_SORT_KEYS))


def digests(stage: Stage) -> Figure:
    """The digest of a body, which also says kind and format."""
    body = form.encode(RECORD)
    return _calls(stage, lambda _: digest("observation", body), lambda _: hashlib.sha256(body).digest())


def _calls(stage: Stage, ours: Callable[[int], object], against: Callable[[int], object]) -> Figure:
    # Turns shorter than what a busy machine gives a process at a time, or being put aside would fall on one side only.
    return take_turns((range(200) for _ in range(160)), ours, against, warm=10, seconds=stage.scale.seconds)
