"""Columns: in which order the rows of a statement that is run for many of them give their values."""

from __future__ import annotations

from typing import Final

COLUMNS: Final[dict[str, tuple[str, ...]]] = {
    "add_entry": ("id", "log", "recorded_at", "kind", "write", "length", "request", "commitment", "leaf"),
    "add_body": ("id", "nonce", "body"),
    "add_origin": ("id", "log", "position"),
    "add_node": ("tenant", "height", "place", "hash"),
    "erase_body": ("id",),
    "erase_receipt": ("tenant", "agent", "key"),
    "add_entity": ("id", "tenant", "type", "key", "digest", "first", "last", "until", "state_at", "state"),
    "set_entity": ("first", "last", "until", "state_at", "state", "id"),
    "add_said": ("id", "entity", "previous", "digest"),
    "add_naming": ("target", "id"),
    "add_late": ("entity", "valid_from", "id"),
    "add_anchor": ("entity", "position"),
    "add_kept": ("entity", "position", "last", "until", "state"),
    "add_element": ("entity", "field", "key", "position", "part"),
    "add_index_row": ("tenant", "name", "key", "since", "value"),
    "add_index_past": ("tenant", "name", "key", "since", "until", "value"),
    "end_index_row": ("until", "tenant", "name", "key", "before"),
    "drop_index_row": ("tenant", "name", "key"),
    "drop_said": ("id",),
    "drop_naming": ("target", "id"),
    "drop_kept": ("entity",),
    "drop_elements": ("entity",),
    "drop_anchors": ("entity",),
    "drop_late": ("entity",),
    "drop_entity": ("id",),
}
"""By statement the columns of its rows. SQLite takes them by place, PostgreSQL each as an array by its name."""
