"""Suggestions: what somebody who typed an unknown command or option most likely meant; close matches only."""

from __future__ import annotations

from collections.abc import Iterable

from woodrat.cli.verbs import COMMANDS, FIRST_WORDS, OTHER_NAMES

CUTOFF = 0.7
"""How alike two names must be, from 0 to 1, for one to be suggested for the other."""
FORMERLY_ALONE = {"backup": "create"}
"""Groups whose first word people type alone, as in `woodrat backup FILE`, and the command they mean by that."""
SUGGESTED_MAX = 3
"""How many commands are suggested at most."""


def closest(text: str, known: Iterable[str]) -> str | None:
    """Return the one of the known names that is closest to a text; none when none is close."""
    import difflib

    near = difflib.get_close_matches(text, list(known), 1, CUTOFF)
    return near[0] if near else None


def of_command(typed: str, group: str) -> str:
    """Return the sentence that leads from an unknown command to a known one; empty when nothing is close."""
    every = [command.words for command in COMMANDS]
    whole = f"{group} {typed}".strip()
    meant: list[str] = []
    for name in (whole, typed):
        if name in OTHER_NAMES:
            meant.append(OTHER_NAMES[name])
            break
    if not meant and group:
        near = closest(typed, [name.partition(" ")[2] for name in every if name.startswith(f"{group} ")])
        meant += [f"{group} {near}"] if near is not None else [typed] if typed in FIRST_WORDS else []
    if not meant:
        meant += [name for name in every if name.partition(" ")[2] == typed]
    if not meant and not group:
        near = closest(typed, FIRST_WORDS) or closest(typed, every)
        second = {name.partition(" ")[2]: name for name in every if " " in name}
        close = closest(typed, second)
        meant += [near] if near is not None else [second[close]] if close is not None else []
    if not meant and group in FORMERLY_ALONE:
        meant.append(f"{group} {FORMERLY_ALONE[group]} {typed}")
    named = " or ".join(f"`woodrat {name}`" for name in meant[:SUGGESTED_MAX])
    return f"Did you mean {named}?" if named else ""


def of_option(typed: str, known: Iterable[str]) -> str:
    """Return the sentence that leads from an unknown option to a known one; empty when nothing is close."""
    options = list(known)
    other = OTHER_NAMES.get(typed)
    if other is not None and (not other.startswith("-") or other.partition(" ")[0] in options):
        return f"Did you mean {other}?"
    near = closest(typed, [name for name in options if name.startswith("--")])
    return f"Did you mean {near}?" if near is not None else ""
