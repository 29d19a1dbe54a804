"""Somebody who types an old, a foreign or a misspelled name is led to the right one, and to the command's own help."""

from __future__ import annotations

import json

import pytest
from tests.commands import Cli

from woodrat.cli.fast_parser import command_of
from woodrat.cli.verbs import COMMANDS, OTHER_NAMES


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("shwo contact/a", "Did you mean `woodrat show`?"),
        ("schema list", "Did you mean `woodrat schemas`?"),
        ("replay run_x", "Did you mean `woodrat runs replay`?"),
        ("judge run_x", "Did you mean `woodrat runs judge`?"),
        ("search x", "Did you mean `woodrat entities search`?"),
        ("get contact/a", "Did you mean `woodrat show`?"),
        ("record x", "Did you mean `woodrat runs import`?"),
        ("runs record x", "Did you mean `woodrat runs import`?"),
        ("runs grup", "Did you mean `woodrat runs group`?"),
        ("runs why", "Did you mean `woodrat why`?"),
        ("backup agents.db", "Did you mean `woodrat backup create agents.db`?"),
        ("fingerprnt", "Did you mean `woodrat fingerprint`?"),
    ],
)
def test_a_command_is_suggested(cli: Cli, words: str, meant: str) -> None:
    """Old names, names from other tools, second words alone and close misses lead to a command."""
    ran = cli(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert meant in ran.err
    assert "Nothing was done." in ran.err


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("show contact/a --effective 2026-01-01T00:00:00Z", "--effective: unknown option. Did you mean --valid-at?"),
        ("show contact/a --asof 3", "--asof: unknown option. Did you mean --as-of?"),
        ("store --json={} --agent crm", "--agent: unknown option. Did you mean --as?"),
        ("--agent crm store --json={}", "--agent: unknown option. Did you mean --as?"),
        ("show contact/a --keys k", "--keys: unknown option. Did you mean --signing-keys?"),
        ("runs list --by crm", "--by: unknown option. Did you mean --agent?"),
        (
            "runs judge run_x --verdict good",
            "--verdict: unknown option. Did you mean `woodrat runs judge RUN good|bad`?",
        ),
        ("correct a/b --set x=1 --reson y", "--reson: unknown option. Did you mean --reason?"),
        ("show contact/a --json", "--json: unknown option. Did you mean -o json?"),
        ("entities list --type contact", "--type: unknown option. Did you mean --entity-type?"),
    ],
)
def test_an_option_is_suggested(cli: Cli, words: str, meant: str) -> None:
    """Old options, and close misses, lead to the option; it is said even where something else is missing."""
    ran = cli(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert meant in ran.err


@pytest.mark.parametrize("words", ["xyzzy", "show contact/a --colour red", "runs xyzzy"])
def test_what_is_close_to_nothing_gets_no_suggestion(cli: Cli, words: str) -> None:
    """Only close matches are suggested."""
    ran = cli(*words.split())
    assert ran.code == 2
    assert "Did you mean" not in ran.err


def test_all_unknown_options_are_named_at_once(cli: Cli) -> None:
    """Two mistakes are two lines."""
    ran = cli("show", "contact/a", "--efective", "x", "--nothing")
    assert "--efective: unknown option" in ran.err
    assert "--nothing: unknown option" in ran.err


@pytest.mark.parametrize(
    ("words", "see"),
    [
        ("show", "woodrat show --help"),
        ("runs diff x", "woodrat runs diff --help"),
        ("runs difff x y", "woodrat runs --help"),
        ("shwo x", "woodrat --help"),
        ("--db /none/x.db show contact/a", "woodrat show --help"),
        ("show contact/a -o xml", "woodrat show --help"),
    ],
)
def test_every_error_names_the_help_of_its_command(cli: Cli, words: str, see: str) -> None:
    """The last line of an error is where to read on; as JSON it is a key of its own."""
    ran = cli(*words.split())
    assert ran.code in (2, 3)
    assert ran.err.splitlines()[-1] == f"See: {see}"
    if "-o" not in words:
        assert json.loads(cli(*words.split(), "-o", "json").err)["help"] == see


def test_the_command_of_a_line_is_found_wherever_it_stands() -> None:
    """Options before the command, with and without values, do not hide it."""
    assert command_of(["--db", "show", "runs", "--tenant", "x", "diff", "a"]) == "runs diff"
    assert command_of(["-o", "json", "show", "x"]) == "show"
    assert command_of(["runs"]) == "runs"
    assert command_of([]) == ""


def test_no_other_name_is_a_name_of_its_own() -> None:
    """What is suggested for another name is there, and the other name is not a command itself."""
    known = {command.words for command in COMMANDS}
    for name, meant in OTHER_NAMES.items():
        if not name.startswith("-"):
            assert name not in known
            assert meant in known
