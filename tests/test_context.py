"""The context: a value, of which there can be another."""

from __future__ import annotations

from dataclasses import fields, replace

from woodrat.context import Context


def test_a_copy_changes_nothing_else() -> None:
    """Every field but those meant is what it was; a field that is added later too."""
    values = {field.name: f"the {field.name}" for field in fields(Context)}
    context = Context(**values)  # type: ignore[arg-type]
    assert context.at(7, "2026-01-01") == replace(context, moment=7, valid_at="2026-01-01")
    assert context.taken_by("another") == replace(context, stand_in="another")  # type: ignore[arg-type]
    assert {field.name: getattr(context, field.name) for field in fields(Context)} == values
