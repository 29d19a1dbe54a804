"""Identifiers: what a text names by number or address, so that a question about #42 is never answered with #43.

Two applications that differ in nothing but their number look alike to every embedder, and the better it knows
meaning the more alike they look. So before anything is scored a question's identifiers are looked for, as tokens.
Rules are pinned and speak ASCII; `docs/formats/recall.md` is the specification.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final, NamedTuple

from woodrat.recall.words import ENGLISH, LITTLE
from woodrat.state.tokens import lowered, spans

FILLERS: Final = frozenset({"id", "ids", "nr", "no", "num", "number", "numbers", "ref", "reference"})
"""Words that may stand between an identifier and the word it belongs to, as little words may: application number 42."""

_MONTH = (
    "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    "|nov(?:ember)?|dec(?:ember)?)"
)
_YEAR = "(?:19|20)[0-9]{2}"
_UNIT = (
    "(?:%|‰|€|£|¥|percent|per cent|eur|euros?|usd|dollars?|gbp|pounds?|seconds?|minutes?|hours?|days?|weeks?|months?"
    "|quarters?|years?|times|reasons?|steps?|examples?|sentences?|words?|lines?|points?)"
)
_QUANTITY = re.compile(
    "|".join(
        (
            # Dates and times of day.
            f"{_YEAR}-(?:0[1-9]|1[0-2])(?:-[0-3][0-9](?:[t ][0-9:.]+(?:z|[+-][0-9]{{2}}:?[0-9]{{2}})?)?)?",
            r"[0-9]{1,2}/[0-9]{1,2}/(?:[0-9]{4}|[0-9]{2})",
            r"[0-9]{1,2}\.[0-9]{1,2}\.(?:[0-9]{4}|[0-9]{2})",
            r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2})?",
            f"{_MONTH} [0-9]{{1,2}}(?:st|nd|rd|th)?(?:,? {_YEAR})?",
            f"[0-9]{{1,2}}(?:st|nd|rd|th)? (?:of )?{_MONTH}(?: {_YEAR})?",
            f"(?:{_MONTH}|in|since|until|during|year|before|after) {_YEAR}",
            # Amounts, counts and places in a row.
            f"[0-9][0-9.,]* ?{_UNIT}",
            r"[$€£¥] ?[0-9][0-9.,]*",
            r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?",
            r"[0-9]+(?:\.[0-9]+)+",
            r"[0-9]+(?:st|nd|rd|th)",
            r"(?:top|first|last|next|previous) [0-9]+",
        )
    ).join((r"(?<![a-z0-9#_/-])(?:", r")(?![a-z0-9_-])"))
)
_PASSED_OVER = FILLERS | LITTLE[ENGLISH]
_DIGIT = re.compile("[0-9]")
_ONLY_DIGITS = re.compile("[0-9]+")
_JOINT = re.compile("[-_/:.]")
_ADDRESS = re.compile(
    r"[a-z0-9][a-z0-9._%+-]*@[a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z0-9-]*[a-z0-9]"
    r"|(?<![a-z0-9._-])[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?![a-z0-9_-]|\.[0-9])"
)
_CODE = re.compile(r"(?<![a-z0-9])[a-z0-9]+(?:[-_.][a-z0-9]+)+(?![a-z0-9])")
_LETTER = re.compile("[a-z]")
_PARTS = re.compile("[-_.]")


class Identifier(NamedTuple):
    """A token with a digit in it that stands for one thing, or the address of a mailbox or machine."""

    token: str
    """The token, or the address."""
    before: str
    """The word it belongs to, such as `application`; empty where none stands before it."""
    code: str = ""
    """The code it is part of, such as `jira-12`; empty where it is part of none."""

    def __str__(self) -> str:
        return f"{self.before} {self.token}".strip()


class NumberNames(NamedTuple):
    """How the tokens with digits of a text name things."""

    hashed: tuple[Identifier, ...]
    """Those written `#42`."""
    coded: tuple[Identifier, ...]
    """Those joined to a word or with letters in them: `loan/42`, `INV-2026-0042`, `a7f3`; and addresses."""
    bare: tuple[Identifier, ...]
    """Plain numbers that are not written as a date, a time, an amount or a count."""
    quantities: tuple[Identifier, ...]
    """The rest."""


@lru_cache(64)  # a passage is asked for its names and for its pairs
def naming(text: str) -> NumberNames:
    """Return the tokens with digits of a text, told apart by how they are written, each once."""
    low = lowered(text)
    if not _DIGIT.search(low) and "@" not in low:
        return NumberNames((), (), (), ())
    hashed: dict[Identifier, None] = {}
    coded: dict[Identifier, None] = {}
    bare: dict[Identifier, None] = {}
    quantities: dict[Identifier, None] = {}
    addresses = [found.span() for found in _ADDRESS.finditer(low)]
    coded.update((Identifier(low[start:end], ""), None) for start, end in addresses)
    codes = [found.span() for found in _CODE.finditer(low) if _is_code(found[0])]
    measured = [found.span() for found in _QUANTITY.finditer(low)]
    at, word, last, last_end, last_kind = 0, "", "", -1, bare
    for token, start, end in spans(text):
        joined = last_end == start - 1 and _JOINT.fullmatch(low[start - 1]) is not None
        last_end = end
        if any(first <= start < past for first, past in addresses):
            word = last = ""
            continue
        if not _DIGIT.search(token):
            if not word or token not in _PASSED_OVER:
                word = token
            last, last_kind = token, coded  # of what is joined to it
            continue
        while at < len(measured) and measured[at][1] <= start:
            at += 1
        code = next((low[first:past] for first, past in codes if first <= start < past), "")
        if start and low[start - 1] == "#":
            last_kind = hashed
        elif joined and last:
            last_kind = coded
        elif at < len(measured) and measured[at][0] <= start:
            last_kind = quantities
        elif not joined:
            last_kind = coded if code or not _ONLY_DIGITS.fullmatch(token) else bare
        belongs = last if joined and last else "" if word in _PASSED_OVER else word
        last_kind[Identifier(token, belongs, "" if last_kind is quantities else code)] = None
        word = last = ""  # what follows belongs to another word: "applications 42 and 43"
    return NumberNames(tuple(hashed), tuple(coded), tuple(bare), tuple(quantities))


def _is_code(found: str) -> bool:
    return _DIGIT.search(found) is not None and _LETTER.search(found) is not None


def named_in(texts: Iterable[str]) -> frozenset[str]:
    """Return the tokens that texts name, and the codes they are part of.

    Of each text those written as identifiers, or else its plain numbers.
    """
    names: set[str] = set()
    for text in texts:
        found = naming(text)
        for each in (*found.hashed, *found.coded) or found.bare:
            names.update((each.token, each.code) if each.code else (each.token,))
    return frozenset(names)


def codes_with(token: str, names: Iterable[str]) -> list[str]:
    """Return those of some names that are codes with a token in them."""
    return [name for name in names if token in _PARTS.split(name) and name != token and "@" not in name]


def pairs_in(texts: Iterable[str]) -> frozenset[str]:
    """Return every token with a digit that texts hold directly after a word, as `application 42`."""
    return frozenset(str(found) for text in texts for kind in naming(text) for found in kind if found.before)
