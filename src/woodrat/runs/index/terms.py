"""The terms of the index of runs."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from woodrat.canon.digest import digest

NAME: Final = "runs"
"""Of the index of what runs did."""
LISTS: Final = "run_lists"
"""Of the index of lists of runs."""
EVALUATION: Final = "evaluation"
"""The type of the entities that judge runs."""

LEANS: Final = "leans/"
"""Decisions that depend on a field of an entity; its id, a slash and the field follow."""
GIVEN: Final = "given/"
"""Decisions that were given a field of an entity and do not depend on it; its id, a slash and the field follow."""
ABOUT: Final = "about/"
"""Decisions with evidence read from an entity, or of a run about it; its id, a slash and their time follow."""
SUBJECT: Final = "subject/"
"""Beginnings of a run that say what it is about; its id follows, and the rows hold the id of the entity."""
WROTE: Final = "wrote/"
"""Observations that carry a run; its id follows."""
JUDGED: Final = "judged/"
"""Observations of evaluations that name a run; its id follows."""
INSIDE: Final = "inside/"
"""Beginnings of the runs that a run started; its id follows."""
TRACED: Final = "traced/"
"""Beginnings of the runs of a trace; its id follows."""
LISTED: Final = "list/"
"""Runs, by their places in lists; what they have in common follows."""
EVERY: Final = LISTED + "every"
"""Every run; the rows hold when it began, too."""
LINE: Final = LISTED + "line/"
"""What lists say of a run that has ended, as the value of its row; its id follows."""
BEGAN: Final = LISTED + "began/"
"""Runs by when they began, which follows."""
UNSETTLED: Final = LISTED + "unsettled/"
"""Runs of which only all entries tell a thing; what it is follows."""
STATUS: Final = LISTED + "status/"
"""Runs by how they stand if nobody records them any more, which follows."""
TALK: Final = "talk"
"""The conversation of a run that names no session."""
_DIGEST_BYTES: Final = 12


@lru_cache(maxsize=4_096)
def value_term(name: str, value: str) -> str:
    """Return the term of the runs that have a value in common, which it does not spell."""
    return f"{LISTED}{name}/{digest('run-list', value.encode())[:_DIGEST_BYTES].hex()}"


def subject_term(entity: bytes) -> str:
    """Return the term of the runs about an entity, by its digest."""
    return f"{LISTED}subject/{entity.hex()}"
