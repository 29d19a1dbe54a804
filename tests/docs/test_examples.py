"""The examples in the documents run as written."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from woodrat.state import observation

ROOT = Path(__file__).parents[2]
PAGES = sorted(path for path in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")] if ">>> " in path.read_text("utf-8"))


def test_there_are_pages_with_examples() -> None:
    """The hand-worked guide and the README carry examples, so this file tests something."""
    assert {"two-agents.md", "README.md"} <= {page.name for page in PAGES}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_print_what_the_page_says(page: Path) -> None:
    """Every example of a page, run in order, prints exactly what stands under it."""
    found = doctest.testfile(str(page), module_relative=False, encoding="utf-8", optionflags=doctest.REPORT_NDIFF)
    assert found.attempted > 0
    assert found.failed == 0


def test_a_wrong_example_is_found(tmp_path: Path) -> None:
    """A page whose example prints something else fails."""
    page = tmp_path / "page.md"
    page.write_text("    >>> 1 + 1\n    3\n", "utf-8")
    assert doctest.testfile(str(page), module_relative=False, verbose=False, report=False).failed == 1


def test_the_observation_on_the_format_page_has_the_names_it_shows() -> None:
    """The worked example of docs/formats/observation.md is a real observation with that digest, name and id."""
    text = (ROOT / "docs/formats/observation.md").read_text("utf-8")
    block = re.search(r"```observation\n(.*?)```", text, re.DOTALL)
    assert block is not None
    shown = dict(line.split(maxsplit=1) for line in block[1].splitlines())
    admitted = observation.admit(shown["body"].encode())
    assert admitted.digest.hex() == shown["digest"]
    assert (admitted.name, admitted.id) == (shown["name"], shown["id"])


LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)]*)?\)")


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """Every relative link in a document names a file that is there."""
    targets = [target for target in LINK.findall(page.read_text("utf-8")) if "://" not in target]
    missing = [target for target in targets if not (page.parent / target).exists()]
    assert missing == []
