"""What the table of entities shows in plain SQL: fields as JSON, beside the merge state that they follow from.

The view `state` is over these columns. They are written with the state, in the same statement, so that they are as true
as the log. Collections whose parts are kept one by one are left out: each write would have to read all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.canon import form
from woodrat.merge import fold, snapshot

if TYPE_CHECKING:
    from woodrat.canon.form import Json
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules

Columns = tuple[str, str | None, int | None]
"""Fields, the collections they leave out, and the version."""
COLUMNS: Final = ("fields", "more", "version")
"""What the columns are called."""
AS_BEFORE: Final[Columns] = ("", None, None)
"""Leaves in the table what is there."""
NOTHING: Final = "null"
"""The fields of an entity of which nothing is shown."""


def columns(state: MergeState | None, rules: Rules | None, version: int | None) -> Columns:
    """Return what is shown of a fold; nothing where it does not exist, is deleted, or stands under another entity."""
    if state is None or rules is None or not state.exists or state.deleted:
        return NOTHING, None, version
    apart = fold.spread(state)
    if not apart:
        return _json(snapshot.fields_of(state, rules)), None, version
    fields = snapshot.fields_of(state, rules, state.names.difference(apart))
    return _json(fields), _json({name: len(held.parts) for name, held in apart.items()}), version


def _json(value: dict[str, Json]) -> str:
    return form.serialise(value).decode()
