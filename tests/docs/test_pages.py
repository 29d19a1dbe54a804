"""The documents say what is so: names in them exist, every page can be reached, and the glossary stays small."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/woodrat"
ARCHITECTURE = ROOT / "ARCHITECTURE.md"
DECISIONS = ROOT / "docs/decisions"
INTERNALS = sorted((ROOT / "docs/internals").glob("*.md"))

TERMS_MAX: Final = 70
ARCHITECTURE_LINES_MAX: Final = 140
"""Two pages."""

LINK = re.compile(r"\]\(([^)#\s]+\.md)(?:#[^)]*)?\)")
ANCHOR = re.compile(r"\]\(([^)#\s]*)#([^)\s]+)\)")
NAMED = re.compile(r"`([a-z_]+(?:/[a-z_]+)*(?:/|\.py))`")
"""A folder of the source tree, as `runs/`, or a file, as `runs/rules.py`."""


def reachable(start: Path) -> set[Path]:
    """Return the pages that links lead to from a page, itself included."""
    pages: set[Path] = set()
    waiting = [start.resolve()]
    while waiting:
        page = waiting.pop()
        if page in pages:
            continue
        pages.add(page)
        targets = (target for target in LINK.findall(page.read_text("utf-8")) if "://" not in target)
        waiting += [path for path in ((page.parent / target).resolve() for target in targets) if path.is_file()]
    return pages


def slugs(text: str) -> set[str]:
    """Return the anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL), re.MULTILINE)
    words = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower() for heading in headings)
    return {re.sub(r"[^\w\- ]", "", heading).replace(" ", "-") for heading in words}


def broken_anchors(page: Path) -> list[str]:
    """Return the links of a page that lead to a heading which their page does not have."""
    links = [(target, anchor) for target, anchor in ANCHOR.findall(page.read_text("utf-8")) if "://" not in target]
    pages = {target: page.parent / target if target else page for target, _ in links}
    return [
        f"{target}#{anchor}"
        for target, anchor in links
        if pages[target].suffix == ".md" and anchor not in slugs(pages[target].read_text("utf-8"))
    ]


def missing_files(text: str, source: Path) -> list[str]:
    """Return the files and folders that a text names in backticks and that are not below a source tree.

    `erasure/closure.py` also names `erasure/reader/closure.py`: a page says which room a file is in, not how the room
    is arranged. A file without a room may be in any, if there is only one.
    """
    return [name for name in sorted(set(NAMED.findall(text))) if not _exists(name, source)]


def _exists(name: str, source: Path) -> bool:
    if (source / name).exists() or (ROOT / name).exists():
        return True
    room, _, file = name.rpartition("/")
    places = list((source / room).rglob(file)) if file else []
    return bool(places) if room else len(places) == 1


def terms(text: str) -> list[list[str]]:
    """Return the terms of each table of a glossary, in the order they stand there."""
    tables = [re.findall(r"^\| ([^|]+?) \|", part, re.MULTILINE) for part in re.split(r"^## ", text, flags=re.M)[1:]]
    return [[term for term in table if term != "Term"] for table in tables]


def unused(names: Iterable[str], texts: Iterable[str]) -> list[str]:
    """Return the terms that no text has as words, in the singular or the plural."""
    whole = "\n".join(texts)
    return [name for name in names if not re.search(rf"\b{_pattern(name)}s?\b", whole, re.IGNORECASE)]


def _pattern(name: str) -> str:
    return r"[-_\s]+".join(re.escape(word) for word in re.split(r"[-\s]", name))


def test_every_page_can_be_reached_from_the_index() -> None:
    """Links lead from docs/index.md to every page under docs/."""
    pages = {path.resolve() for path in (ROOT / "docs").rglob("*.md")}
    orphans = sorted(str(page.relative_to(ROOT)) for page in pages - reachable(ROOT / "docs/index.md"))
    assert not orphans


def test_a_page_that_nothing_links_to_is_found(tmp_path: Path) -> None:
    """A page without a link to it is an orphan, and one that only an orphan links to as well."""
    (tmp_path / "index.md").write_text("[one](one.md)", "utf-8")
    (tmp_path / "one.md").write_text("[index](index.md#top)", "utf-8")
    (tmp_path / "two.md").write_text("[three](three.md)", "utf-8")
    (tmp_path / "three.md").write_text("", "utf-8")
    assert {page.name for page in reachable(tmp_path / "index.md")} == {"index.md", "one.md"}


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]), ids=lambda page: page.name)
def test_links_to_headings_lead_to_one(page: Path) -> None:
    """A link with an anchor names a heading of the page it leads to."""
    assert broken_anchors(page) == []


def test_a_link_to_a_heading_that_is_gone_is_found(tmp_path: Path) -> None:
    """An anchor is compared with the headings as GitHub spells them, and with no other line."""
    page = tmp_path / "page.md"
    page.write_text("# One `two()`\n```\n# three\n```\n[a](#one-two) [b](#three) [c](page.md#four)", "utf-8")
    assert broken_anchors(page) == ["#three", "page.md#four"]


@pytest.mark.parametrize("page", [ARCHITECTURE, *INTERNALS], ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """Every file and folder of the source tree that ARCHITECTURE or an internals page names is there."""
    text = page.read_text("utf-8")
    assert NAMED.findall(text), "a page about the code names files of it"
    assert not missing_files(text, SOURCE)


def test_a_file_that_moved_is_found() -> None:
    """A name of a file that is not in its room is reported, however the room is arranged."""
    assert missing_files("`merge/fold.py` `merge/` `engines/view.py` `fold.py`", SOURCE) == []
    assert missing_files("`merge/tree.py` `rooms/` `none.py`", SOURCE) == ["merge/tree.py", "none.py", "rooms/"]
    assert missing_files("`verbs.py`", SOURCE) == ["verbs.py"], "many files have that name"


def test_the_map_shows_every_room() -> None:
    """Every folder and module directly under src/woodrat is on the map of ARCHITECTURE, and no other."""
    start, _, rest = ARCHITECTURE.read_text("utf-8").partition("## The map\n")
    assert start, "ARCHITECTURE begins with the problem"
    drawn = "\n".join(line for line in rest.partition("\n## ")[0].splitlines() if line.startswith("    "))
    shown = set(re.findall(r"\b([a-z]+)/(?=\s)", drawn)) | set(re.findall(r"\b([a-z_]+\.py)\b", drawn))
    rooms = {path.name for path in SOURCE.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    modules = {path.name for path in SOURCE.glob("*.py") if not path.name.startswith("__")}
    assert shown - {"sqlite", "postgres"} == rooms | modules


def test_architecture_is_two_pages() -> None:
    """What goes deeper than two pages belongs in docs/internals."""
    assert len(ARCHITECTURE.read_text("utf-8").splitlines()) <= ARCHITECTURE_LINES_MAX


def test_every_decision_is_listed() -> None:
    """The index of decisions lists each file under its title, in order, and numbers have no gaps."""
    index = (DECISIONS / "README.md").read_text("utf-8")
    listed = re.findall(r"^- \[(\d{4}) ([^\]]+)\]\(([^)]+)\)$", index, re.MULTILINE)
    pages = sorted(DECISIONS.glob("[0-9]*.md"))
    titles = [page.read_text("utf-8").splitlines()[0] for page in pages]
    assert [f"# {number} {title}" for number, title, _ in listed] == titles
    assert [file for _, _, file in listed] == [page.name for page in pages]
    assert [page.name[:4] for page in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]


def test_the_glossary_is_small_and_sorted() -> None:
    """The glossary has three tables, sorted, with at most 70 terms, none of them twice."""
    tables = terms((ROOT / "GLOSSARY.md").read_text("utf-8"))
    assert len(tables) == 3
    assert all(tables)
    assert all(table == sorted(table) for table in tables)
    names = [name for table in tables for name in table]
    assert len(names) == len(set(names)) <= TERMS_MAX


def test_every_term_of_the_glossary_is_used() -> None:
    """Terms for users and operators occur in the documents, and all terms in the code."""
    users, operators, internal = terms((ROOT / "GLOSSARY.md").read_text("utf-8"))
    pages = [path.read_text("utf-8") for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]]
    code = [path.read_text("utf-8") for path in SOURCE.rglob("*.py")]
    assert unused([*users, *operators], pages) == []
    assert unused([*users, *operators, *internal], code) == []


def test_a_term_that_nothing_uses_is_found() -> None:
    """A term counts as used as a word of its own, in the plural or with an underscore, and not inside another word."""
    assert unused(["as-of", "tool call", "head"], ["as_of and tool calls", "a heading"]) == ["head"]
