"""The reference pages say what the declarations say: whoever changes a verb changes its page."""

from __future__ import annotations

import pytest
from tests.docs.make_reference import COMMAND_LINE, FOLDER, REST, command_page, noun_of, pages, rest_page

from woodrat.api.verbs import verbs


@pytest.mark.parametrize("noun", sorted(pages()))
def test_the_page_of_a_noun_is_made_from_its_declarations(noun: str) -> None:
    """Each page is what `python3 dev.py docs` would write."""
    assert (FOLDER / f"{noun}.md").read_text("utf-8") == pages()[noun], "run `python3 dev.py docs`"


def test_the_page_of_the_command_line_says_what_the_commands_say() -> None:
    """Sentence, examples and arguments of each command are what `python3 dev.py docs` would write."""
    page = COMMAND_LINE.read_text("utf-8")
    assert page == command_page(page).rstrip("\n") + "\n", "run `python3 dev.py docs`"


def test_the_table_of_addresses_is_made_from_the_routes() -> None:
    """The page about REST has the table that `python3 dev.py docs` would write."""
    page = REST.read_text("utf-8")
    assert page == rest_page(page), "run `python3 dev.py docs`"


def test_every_declared_verb_has_a_section() -> None:
    """No verb is left out, and no page is of a noun that is gone."""
    assert {path.stem for path in FOLDER.glob("*.md")} == set(pages())
    for verb in verbs().values():
        page = (FOLDER / f"{noun_of(verb)}.md").read_text("utf-8")
        assert f"## `ledger.{verb.name}`" in page
        assert all(f"`{parameter.name}`" in page for parameter in verb.parameters)
