"""Parser: argparse over the table of commands; every mistake becomes a refusal in the one error format."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Iterable, Sequence
from textwrap import wrap
from typing import Any, NoReturn

from woodrat.cli.fast_parser import command_of
from woodrat.cli.verbs import COMMANDS, FIRST_WORDS, GROUPS, OTHER_NAMES, SECTIONS, named
from woodrat.cli.verbs.declaration import EVERYWHERE, MOMENT_NAMES, Command, arguments_of, moment
from woodrat.errors import Fault, Refused, shown

NOTHING_DONE = "Nothing was done."
WIDTH, INDENT = 80, " " * 6
"""Width of help that argparse does not lay out, and the indentation of its descriptions."""
NAME_WIDTH = 17
"""How wide the column of names is in a list of commands."""
CUTOFF = 0.7
"""Least similarity of two names, from 0 to 1, for a suggestion."""
FORMERLY_ALONE = {"backup": "create"}
"""Groups whose first word people type alone, as in `woodrat backup FILE`, with the intended command."""
SUGGESTED_MAX = 3
"""Most suggested commands."""
_DESCRIPTION = "An append-only, provable record of what agents believed, read, decided and did."
_EPILOG = """\
REF   an entity: type/key, or an ent_ id; reads also take a name or another
      value that only one entity has; REF#field is one of its fields
M     a moment: a position such as 128, a timestamp, a date, now, yesterday,
      2d (two days ago), last monday, a tag as @name, or a run (its start);
      days start at 00:00 UTC, or at midnight in the zone of WOODRAT_ZONE
T     a time: RFC 3339 with an offset, a date, yesterday, 2d, last monday
id    reads accept any unique prefix of an id, and `last` for the latest run

exit codes: 0 done, 1 a check found something, 2 refused input, 3 not found,
4 unavailable, 5 corrupt, 6 outdated condition, 7 forbidden

examples:
  woodrat demo
  woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]'
  woodrat show 'contact/Ana Rivera'
  woodrat COMMAND --help
"""


class Parser(argparse.ArgumentParser):
    """A parser that refuses instead of exiting."""

    mixes = False
    """Whether options may come between the other arguments, as for a command."""
    summary: str | None = None
    """The help, where it is not laid out by argparse: that of the program and of a group."""

    def __init__(self, **settings: Any) -> None:
        settings.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **settings)
        self._positionals.title = "arguments"

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; options may come anywhere, as in `parse_known_intermixed_args`, which itself calls this."""
        if not self.mixes or "--" in (args or ()):
            return super().parse_known_args(args, namespace)
        self.mixes = False
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.mixes = True

    def format_help(self) -> str:
        """Return the help."""
        return super().format_help() if self.summary is None else self.summary

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        problem, remedy = _plain(message, self.prog)
        raise Refused([Fault(self.prog, problem, remedy)], outcome=NOTHING_DONE)


_MESSAGES = (
    (r"argument (\S+): invalid ((?:whole )?number.*?) value: '(.*)'", '{0} takes a {1}, got "{2}"', ""),
    (r"argument (\S+): expected one argument", "{0} needs a value", "Add it after the option."),
    (r"argument (\S+): expected at least one argument", "{0} needs a value", "Add at least one."),
    (r"argument (\S+): ignored explicit argument '(.*)'", '{0} takes no value, got "{1}"', "Leave the value out."),
    (r"the following arguments are required: (.*)", "missing: {0}", "Add the missing arguments."),
)
"""Messages of argparse, in our words: problem and remedy."""


def _plain(message: str, prog: str) -> tuple[str, str]:
    """Return problem and remedy for a message of argparse."""
    choice = re.fullmatch(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)", message, re.DOTALL)
    if choice:
        name, got, known = choice[1], choice[2], choice[3].replace("'", "").split(", ")
        if name == "COMMAND":
            return f'unknown command "{got}"', _suggested_command(got, prog.removeprefix("woodrat").strip())
        near = _closest(got, known)
        return f'{name} must be one of {", ".join(known)}, got "{got}"', "" if near is None else f"Did you mean {near}?"
    for pattern, problem, remedy in _MESSAGES:
        if match := re.fullmatch(pattern, message, re.DOTALL):
            return problem.format(*match.groups()), remedy
    return message, ""


def build(words: Collection[str] | None = None) -> Parser:
    """Return the parser of the whole command line; given words, only of the commands they can mean, which is faster."""
    top = Parser(prog="woodrat", description=_DESCRIPTION)
    top.summary = _top_help()
    _everywhere(top, None)
    top.set_defaults(command=None, **dict.fromkeys(MOMENT_NAMES))
    commands = top.add_subparsers(metavar="COMMAND", parser_class=Parser)
    groups: dict[str, Any] = {}
    for command in COMMANDS:
        first, _, second = command.words.partition(" ")
        if words is not None and first not in words:
            continue
        if not second:
            _add(commands, first, command)
            continue
        if first not in groups:
            group = commands.add_parser(first, description=GROUPS[first])
            group.summary = _group_help(first)
            _everywhere(group, argparse.SUPPRESS)
            group.set_defaults(group=group)
            groups[first] = group.add_subparsers(metavar="COMMAND", parser_class=Parser)
        _add(groups[first], second, command)
    return top


def _add(commands: Any, name: str, command: Command) -> None:
    about = command.what if not command.more else f"{command.what}\n{command.more}"
    leaf: Parser = commands.add_parser(name, description=about, epilog=_examples(command.examples))
    leaf.mixes = True
    for names, settings in command.arguments:
        leaf.add_argument(*names, **_for_argparse(settings))
    if command.reads:
        group = leaf.add_argument_group("moment")
        for names, settings in moment():
            group.add_argument(*names, **_for_argparse(settings))
    _everywhere(leaf, argparse.SUPPRESS)
    leaf.set_defaults(command=command)


def _for_argparse(settings: dict[str, Any]) -> dict[str, Any]:
    return {name: item for name, item in settings.items() if name != "ids"}


def _everywhere(parser: argparse.ArgumentParser, default: Any) -> None:
    """Add the options that may come before or after the command; on a subcommand they have no default."""
    group = parser.add_argument_group("options of every command")
    for names, settings in EVERYWHERE:
        group.add_argument(*names, default=default, **settings)


def _examples(listed: Iterable[str]) -> str:
    return "examples:\n" + "\n".join(f"  {example}" for example in listed)


def _options() -> str:
    """Return the options of every command as a list."""
    lines = ["options of every command, before or after it:"]
    for names, settings in EVERYWHERE:
        value = settings.get("metavar", "|".join(settings.get("choices", ())) or names[-1][2:].upper())
        lines.append(f"  {', '.join(names)} {value}")
        lines += wrap(settings["help"], WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    return "\n".join(lines)


def _listed(names: Iterable[tuple[str, str]]) -> list[str]:
    return [f"  {name:<{NAME_WIDTH}} {what}" for name, what in names]


def _top_help() -> str:
    """Return the help of the program: its commands by section."""
    lines = ["usage: woodrat COMMAND …", "", _DESCRIPTION]
    for section, about in SECTIONS.items():
        names: dict[str, str] = {}
        for command in COMMANDS:
            first = command.words.partition(" ")[0]
            if FIRST_WORDS[first] != section:
                continue
            if first in GROUPS and first != section:
                names[f"{first} …"] = GROUPS[first]
            else:
                names[command.words] = command.what
        lines += ["", f"{section}: {about}", *_listed(names.items())]
    lines += ["", "`woodrat COMMAND --help` explains a command, or lists those behind a …", ""]
    return "\n".join([*lines, _options(), "  --version", "      print the version", "", _EPILOG])


def _group_help(group: str) -> str:
    """Return the help of a group: its commands, and an example of each."""
    listed = [command for command in COMMANDS if command.words.startswith(f"{group} ")]
    lines = [f"usage: woodrat {group} COMMAND …", "", GROUPS[group], "", "commands:"]
    lines += _listed((command.words.partition(" ")[2], command.what) for command in listed)
    lines += ["", _examples(command.examples[0] for command in listed), "", _options(), ""]
    return "\n".join(lines)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a command line, or raise `Refused`."""
    typed = list(words)
    command = command_of(typed)
    _check_options(typed, command)
    parser = build(frozenset(typed)) if command else build()
    namespace: argparse.Namespace
    namespace, rest = parser.parse_known_args(typed)
    if rest:
        where = f"woodrat {command}".strip()
        problems = (Fault(where, f"unexpected argument {shown(word)}", "Leave it out.") for word in rest)
        raise Refused(problems, NOTHING_DONE)
    return namespace


def _check_options(words: Sequence[str], command: str) -> None:
    """Refuse unknown options, all at once, with the most likely intended ones."""
    known_command = named(command)
    known = {"-h", "--help", *(name for names, _ in EVERYWHERE for name in names)}
    if known_command is not None:
        known.update(name for names, _ in arguments_of(known_command) for name in names)
    elif command:
        return  # the unknown word is the command
    else:
        known.add("--version")
    faults = []
    for word in words:
        if word == "--" or (not command and word in FIRST_WORDS):
            break
        name = word.partition("=")[0]
        if word.startswith("--") and name not in known:
            remedy = _suggested_option(name, sorted(known)) or "Leave it out."
            faults.append(Fault(name, "unknown option", remedy))
    if faults:
        raise Refused(faults, NOTHING_DONE)


# Likely intended commands or options; close matches only


def _closest(text: str, known: Iterable[str]) -> str | None:
    """Return the closest known name; None if none is close."""
    import difflib

    near = difflib.get_close_matches(text, list(known), 1, CUTOFF)
    return near[0] if near else None


def _suggested_command(typed: str, group: str) -> str:
    """Return a suggestion for an unknown command; empty when none is close."""
    every = [command.words for command in COMMANDS]
    whole = f"{group} {typed}".strip()
    meant: list[str] = []
    for name in (whole, typed):
        if name in OTHER_NAMES:
            meant.append(OTHER_NAMES[name])
            break
    if not meant and group:
        near = _closest(typed, [name.partition(" ")[2] for name in every if name.startswith(f"{group} ")])
        meant += [f"{group} {near}"] if near is not None else [typed] if typed in FIRST_WORDS else []
    if not meant:
        meant += [name for name in every if name.partition(" ")[2] == typed]
    if not meant and not group:
        near = _closest(typed, FIRST_WORDS) or _closest(typed, every)
        second = {name.partition(" ")[2]: name for name in every if " " in name}
        close = _closest(typed, second)
        meant += [near] if near is not None else [second[close]] if close is not None else []
    if not meant and group in FORMERLY_ALONE:
        meant.append(f"{group} {FORMERLY_ALONE[group]} {typed}")
    named = " or ".join(f"`woodrat {name}`" for name in meant[:SUGGESTED_MAX])
    return f"Did you mean {named}?" if named else ""


def _suggested_option(typed: str, known: Iterable[str]) -> str:
    """Return a suggestion for an unknown option; empty when none is close."""
    options = list(known)
    other = OTHER_NAMES.get(typed)
    if other is not None and (not other.startswith("-") or other.partition(" ")[0] in options):
        return f"Did you mean {other}?"
    near = _closest(typed, [name for name in options if name.startswith("--")])
    return f"Did you mean {near}?" if near is not None else ""
