"""Parser: argparse over the table of verbs; every mistake becomes a refusal in the one shape errors have."""

from __future__ import annotations

import argparse
import re
from collections.abc import Collection, Sequence
from typing import Any, NoReturn

from woodrat.cli.verbs import EVERYWHERE, GROUPS, MOMENT, VERBS, Verb
from woodrat.errors import Fault, Refused
from woodrat.server import wire

_DESCRIPTION = "An append-only, provable record of what every agent believed, read, decided and did."
_EPILOG = """\
A REF is type/key or an ent_ id; REF#field names a field. A moment is a position, a timestamp with an offset, now,
a tag as @name, or a run, which means its basis.

exit codes: 0 done, 1 a check found something, 2 refused input, 3 not found, 4 unavailable, 5 corrupt, 6 outdated,
7 forbidden

examples:
  woodrat demo
  woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]'
  woodrat show 'contact/Ana Rivera'
  woodrat VERB --help"""


class Parser(argparse.ArgumentParser):
    """A parser that refuses instead of exiting."""

    mixes = False
    """Whether options may stand between the other arguments, as they may for a verb."""

    def __init__(self, **given: Any) -> None:
        given.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(allow_abbrev=False, **given)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse; where options may stand anywhere, as `parse_known_intermixed_args` does, which itself calls this."""
        if not self.mixes or "--" in (args or ()):
            return super().parse_known_args(args, namespace)
        self.mixes = False
        try:
            return self.parse_known_intermixed_args(args, namespace)
        finally:
            self.mixes = True

    def error(self, message: str) -> NoReturn:
        """Refuse the command line."""
        remedy = f"Run `{self.prog} --help` for its arguments and examples."
        choice = re.search(r"argument (\S+): invalid choice: '(.*?)' \(choose from (.*)\)$", message, re.DOTALL)
        number = re.search(r"argument (\S+): invalid whole number value: '(.*)'$", message, re.DOTALL)
        if number:
            message = f'{number[1]} takes a whole number, got "{number[2]}"'
        if choice:
            message, remedy = self._no_such(choice[1], choice[2], choice[3].replace("'", "").split(", "), remedy)
        raise Refused([Fault(self.prog, message, remedy)], outcome="Nothing was done.")

    def _no_such(self, name: str, got: str, known: list[str], remedy: str) -> tuple[str, str]:
        import difflib

        near = difflib.get_close_matches(got, known, 1)
        if name != "VERB":
            return f'{name} is one of {", ".join(known)}, got "{got}"', remedy
        return f'there is no verb "{got}"', f"Did you mean {near[0]}? {remedy}" if near else remedy


class _Version(argparse.Action):
    """Prints the version; looked up only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        print(f"woodrat {wire.version()}")
        parser.exit()


def build(words: Collection[str] | None = None) -> Parser:
    """Return the parser; given words, one that knows only the verbs among them, which takes a tenth of the time."""
    top = Parser(prog="woodrat", description=_DESCRIPTION, epilog=_EPILOG)
    top.add_argument("--version", action=_Version, nargs=0, default=argparse.SUPPRESS, help="print the version")
    _everywhere(top, None)
    top.set_defaults(verb=None, as_of=None, effective=None)
    verbs = top.add_subparsers(metavar="VERB", title="verbs", parser_class=Parser)
    groups: dict[str, Any] = {}
    for verb in VERBS:
        first, _, second = verb.words.partition(" ")
        if words is not None and first not in words:
            continue
        if not second:
            _add(verbs, first, verb)
            continue
        if first not in groups:
            shown = [one.examples[0] for one in VERBS if one.words.startswith(f"{first} ")]
            what = GROUPS[first]
            group = verbs.add_parser(first, help=what, description=what, epilog=_examples(shown))
            _everywhere(group, argparse.SUPPRESS)
            group.set_defaults(group=group)
            groups[first] = group.add_subparsers(metavar="VERB", title="verbs", parser_class=Parser)
        _add(groups[first], second, verb)
    return top


def _add(verbs: Any, name: str, verb: Verb) -> None:
    leaf: Parser = verbs.add_parser(name, help=verb.what, description=verb.what, epilog=_examples(verb.examples))
    leaf.mixes = True
    for names, given in verb.arguments:
        leaf.add_argument(*names, **given)
    if verb.reads:
        moment = leaf.add_argument_group("moment")
        for names, given in MOMENT:
            moment.add_argument(*names, **given)
    _everywhere(leaf, argparse.SUPPRESS)
    leaf.set_defaults(verb=verb)


def _examples(listed: Sequence[str]) -> str:
    return "examples:\n" + "\n".join(f"  {example}" for example in listed)


def _everywhere(parser: argparse.ArgumentParser, default: Any) -> None:
    """Add the options that may stand before or after the verb; below the top they say nothing unless given."""
    group = parser.add_argument_group("everywhere")
    for names, given in EVERYWHERE:
        group.add_argument(*names, default=default, **given)


def parse(words: Sequence[str]) -> argparse.Namespace:
    """Return the arguments of a command line, or raise `Refused`."""
    known = {verb.words.partition(" ")[0] for verb in VERBS}
    named = next((number for number, word in enumerate(words) if word in known), None)
    if named is not None and not {"-h", "--help"} & set(words[:named]):
        try:
            return build(frozenset(words)).parse_args(list(words))
        except Refused:
            pass  # a verb that is misspelled is told apart by all the others
    return build().parse_args(list(words))
