"""Addresses of the app's pages, made from its own list of them and from what a ledger holds.

A page that is added to the app is walked as soon as it is in the list. One with a parameter that is not known here
makes the walk fail, so that none is left out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest
from tests.inspector.served import Served

UI = Path(__file__).resolve().parents[2] / "ui" / "src"
_PATTERN = re.compile(r'pattern:\s*"([^"]+)",\s*page:\s*"([^"]+)"')


def patterns() -> list[str]:
    """Return the addresses that the app has pages for, with their parameters; those without a page are left out."""
    source = (UI / "router.svelte.ts").read_text("utf-8")
    found = _PATTERN.findall(source)
    assert found, "the app's router lists its pages"
    return [pattern for pattern, page in found if (UI / "pages" / f"{page}.svelte").exists()]


def needs(pattern: str) -> None:
    """Skip a test about a page that the app does not have yet; with CI set it fails instead."""
    if pattern not in patterns():
        problem = f"the app has no page at {pattern}"
        if os.environ.get("CI"):
            pytest.fail(problem)
        pytest.skip(problem)


def part(text: object) -> str:
    """Return text as one part of an address."""
    return quote(str(text), safe="")


def ref_path(ref: str) -> str:
    """Return an entity's reference as the rest of an address."""
    type, _, key = ref.partition("/")
    return f"{part(type)}/{part(key)}"


def decision_step(server: Served, run: str) -> int:
    """Return the number of the step in which a run decided first."""
    steps = server.items(f"runs/{part(run)}/steps", limit=50)
    return next(int(step["number"]) for step in steps if step["kind"] == "decision")


def addresses(server: Served, each: int = 1) -> Iterator[str]:
    """Yield the addresses of all pages on what a ledger holds; of a page with a parameter as many as are wanted."""
    runs = server.items("runs", limit=max(10, each))
    entities = server.items("entities", limit=max(1, each))
    sources = server.items("sources", limit=max(1, each))
    schemas = server.items("schemas")
    values: dict[str, list[Any]] = {
        "run": [run["id"] for run in runs][:each],
        "source": [source["source"] for source in sources][:each],
        "position": [1],
        "type": [schema["type"] for schema in schemas][:each],
    }
    refs = [entity["entity"] for entity in entities][:each]
    for pattern in patterns():
        if pattern == "/decisions/:run/:number":
            decided = [run["id"] for run in runs if run["counts"]["decisions"]]
            yield from (f"/decisions/{part(run)}/{decision_step(server, run)}" for run in decided[:each])
        elif pattern == "/entities/*ref":
            yield from (f"/entities/{ref_path(ref)}" for ref in refs)
        elif pattern == "/sign-in":
            continue  # without keys it leads on to another page; `test_use.py` looks at it
        elif ":" in pattern:
            before, _, name = pattern.partition(":")
            yield from (before + part(value) for value in values[name])
        else:
            yield pattern
            yield from _asked(pattern, [run["id"] for run in runs], refs, values["source"])


def _asked(pattern: str, runs: list[str], refs: list[str], sources: list[str]) -> Iterator[str]:
    """Yield a page that is asked something, besides the page with nothing filled in."""
    if pattern == "/compare" and len(runs) > 1:
        yield "/compare?" + urlencode({"runs": ",".join(runs[:2])})
    elif pattern == "/what-if" and runs:
        yield "/what-if?" + urlencode({"run": runs[0]})
    elif pattern == "/impact" and sources:
        yield "/impact?" + urlencode({"of": sources[0]})
    elif pattern == "/recall":
        yield "/recall?" + urlencode({"q": "why was application #42 rejected?"})
    elif pattern == "/entities" and refs:
        yield "/entities?" + urlencode({"q": refs[0].partition("/")[2][:40]})
