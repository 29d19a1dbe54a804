"""What is plainly right is understood without argparse, and exactly as argparse understands it."""

from __future__ import annotations

import random
import shlex
from typing import Any

import pytest

from woodrat.cli import parser
from woodrat.cli.fast_parser import match
from woodrat.cli.verbs import COMMANDS
from woodrat.cli.verbs.declaration import EVERYWHERE, Argument, Command, arguments_of
from woodrat.errors import Refused

VALUES = ("x", "contact/Ana Rivera", "12", "-", "", "a=b", "json", "table", "bash", "show", "log", "--json", "-5", "é")
"""What is typed for any argument, fitting or not."""


def parsed(words: list[str]) -> dict[str, Any] | None:
    """Return what argparse makes of a command line; nothing where it refuses or prints help."""
    try:
        found = vars(parser.parse(words))
    except (Refused, SystemExit):
        return None
    return None if found["command"] is None else {name: value for name, value in found.items() if name != "group"}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_examples_need_no_argparse(command: Command) -> None:
    """Every example of a verb is understood at once."""
    for example in command.examples:
        words = shlex.split(example.partition(" > ")[0])[1:]
        found = match(words)
        assert found is not None
        assert vars(found) == parsed(words)


def typed(chance: random.Random, argument: Argument) -> list[str]:
    """Return one way of typing an argument."""
    names, given = argument
    value = chance.choice(given.get("choices", VALUES)) if chance.random() < 0.7 else chance.choice(VALUES)
    if given.get("type") is not None and chance.random() < 0.7:
        value = str(chance.randint(-3, 200))
    if not names[0].startswith("-"):
        return [value] * (chance.randint(1, 2) if given.get("nargs") == "+" else 1)
    name = chance.choice(names)
    if given.get("action") == "store_true":
        return [name]
    return [f"{name}={value}"] if chance.random() < 0.4 else [name, value]


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.words)
def test_both_ways_agree(command: Command) -> None:
    """Whatever is understood at once, argparse understands too, with the same values for the same names."""
    chance = random.Random(command.words)
    known = (*arguments_of(command), *EVERYWHERE)
    at_once = 0
    for _ in range(60):
        chosen = [a for a in known if a[1].get("required") or not a[0][0].startswith("-") or chance.random() < 0.25]
        parts = [typed(chance, argument) for argument in chosen if chance.random() < 0.95]
        if chance.random() < 0.3:
            chance.shuffle(parts)
        before = typed(chance, chance.choice(EVERYWHERE)) if chance.random() < 0.2 else []
        words = [*before, *command.words.split(), *(word for part in parts for word in part)]
        found = match(words)
        if found is not None:
            at_once += 1
            assert vars(found) == parsed(words), words
    assert at_once >= 5


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--help"],
        ["--version"],
        ["show"],
        ["show", "a/b", "c/d"],
        ["show", "--help"],
        ["show", "a/b", "-o", "xml"],
        ["show", "a/b", "-o=json"],
        ["show", "a/b", "--db"],
        ["show", "a/b", "--", "c"],
        ["show", "a/b", "--as"],
        ["store", "--dry-run=yes"],
        ["store", "--as-of", "1"],
        ["diff", "--exit-code", "--nothing"],
        ["entities"],
        ["entities", "show"],
        ["shwo", "a/b"],
        ["log", "--after", "many"],
        ["retract", "--reason", "x"],
        ["correct", "a/b", "--set", "x=y"],
        ["completion", "powershell"],
    ],
    ids=" ".join,
)
def test_what_is_not_plainly_right_is_left_to_the_parser(words: list[str]) -> None:
    """Mistakes, questions for help and rare ways of writing are not understood here."""
    assert match(words) is None
