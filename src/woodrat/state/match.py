"""Match: an entity that was found by a value that identifies it, in place of its key."""

from __future__ import annotations

import re
from typing import Final

from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state.identity_rules import FOLDS

FOLD: Final = "match-fold-1"
"""How identifying values are folded before they are compared; its meaning never changes."""
_SPACES = re.compile("[\t-\r ]+")
_lower = FOLDS["ascii-lower-1"]


def fold(text: str) -> str:
    """Lower A to Z, and make one space of U+0009 to U+000D and U+0020 in a row; none at either end."""
    text = _lower(text)
    if "  " in text or not text.isprintable() or text[:1] == " " or text[-1:] == " ":
        return _SPACES.sub(" ", text).strip(" ")
    return text


@dataclass(frozen=True, slots=True)
class Match(Record):
    """How a reference or a record was found to mean a known entity."""

    asked: str
    """The reference in the call, or the one that the record would have had on its own."""
    entity: str
    """The entity it means."""
    rule: str
    """The identity rule of the common value, such as `email` or `name+company`."""
