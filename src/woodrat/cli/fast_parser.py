"""Fast path: a valid command line, parsed with the table of verbs alone.

Importing argparse and building its parsers takes longer than most verbs do. Plainly valid lines are parsed here; all
others (a mistake, a request for help, a rare spelling) are left to `parser`, which reports the faults. A test compares
the two.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from woodrat.cli.verbs import FIRST_WORDS, GROUPS, named
from woodrat.cli.verbs.declaration import (
    EVERYWHERE,
    MOMENT_NAMES,
    Argument,
    Command,
    arguments_of,
    destination,
    is_option,
)


def match(words: Sequence[str]) -> SimpleNamespace | None:
    """Return the arguments of a command line; `None` where the parser has to look at it."""
    options = {name: argument for argument in EVERYWHERE for name in argument[0]}
    found: dict[str, Any] = dict.fromkeys(MOMENT_NAMES)
    found.update((destination(argument), None) for argument in EVERYWHERE)
    command: Command | None = None
    first = ""
    values: list[str] = []
    rest = iter(words)
    for word in rest:
        if word.startswith("-") and word != "-":
            name, equals, value = word.partition("=")
            argument = options.get(name)
            if argument is None or (equals and not name.startswith("--")):
                return None
            given = argument[1]
            if "nargs" in given or given.get("action") not in (None, "store_true", "append"):
                return None  # ways of argparse that no verb needs often
            if given.get("action") == "store_true":
                if equals:
                    return None
                found[destination(argument)] = True
                continue
            following = value if equals else next(rest, None)
            if following is None or (not equals and following.startswith("-") and following != "-"):
                return None
            taken = _parsed_value(argument, following)
            if taken is None:
                return None
            if given.get("action") == "append":
                found[destination(argument)] = [*(found[destination(argument)] or ()), taken]
            else:
                found[destination(argument)] = taken
        elif command is not None:
            values.append(word)
        elif not first and word in GROUPS:
            first = word
        else:
            name = f"{first} {word}" if first else word
            command = named(name)
            if command is None:
                return None
            for argument in arguments_of(command):
                if is_option(argument):
                    options.update(dict.fromkeys(argument[0], argument))
                    switch = argument[1].get("action") == "store_true"
                    found[destination(argument)] = False if switch else argument[1].get("default")
    if command is None or not _place(command, values, found):
        return None
    return SimpleNamespace(command=command, **found)


def command_of(words: Sequence[str]) -> str:
    """Return the closest match of a command line: a command by its words, a group, or None."""
    valued = {name for names, _ in EVERYWHERE for name in names}
    typed: list[str] = []
    previous = ""
    for word in words:
        if not word.startswith("-") and previous not in valued:
            if not typed and word not in FIRST_WORDS:
                return ""
            typed.append(word)
            if typed[0] not in GROUPS or len(typed) == 2:
                break
        previous = word
    name = " ".join(typed)
    return name if named(name) is not None or name in GROUPS else " ".join(typed[:1])


def _parsed_value(argument: Argument, value: str) -> Any:
    """Return the value of an argument; None if it is invalid."""
    given = argument[1]
    if value not in given.get("choices", (value,)):
        return None
    try:
        return given["type"](value) if "type" in given else value
    except ValueError:
        return None


def _place(command: Command, values: list[str], found: dict[str, Any]) -> bool:
    """Assign positional values to names; return True if all required ones are present."""
    places = [argument for argument in command.arguments if not is_option(argument)]
    for number, argument in enumerate(places):
        many = argument[1].get("nargs")
        after = [each[1].get("nargs") for each in places[number + 1 :]]
        if many not in (None, "?", "+", "*") or (many is not None and after != ["?"] * len(after)):
            return False
        name = destination(argument)
        if many in ("+", "*"):
            found[name], values = values, []
            if many == "+" and not found[name]:
                return False
        elif values:
            found[name] = _parsed_value(argument, values[0])
            if found[name] is None:
                return False
            values = values[1:]
        elif many == "?":
            found[name] = argument[1].get("default")
        else:
            return False
    needed = (argument for argument in command.arguments if argument[1].get("required"))
    return not values and all(found[destination(argument)] is not None for argument in needed)
