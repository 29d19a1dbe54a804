"""The inspector's client speaks the API of today: its types are made from the OpenAPI document."""

from __future__ import annotations

from tests.inspector.make_openapi import TYPES, digest

REMEDY = "run `python tests/inspector/make_openapi.py && npm --prefix ui run api`"


def test_the_types_are_made_from_the_document_of_today() -> None:
    """Whoever changes a verb makes the types again; their first line names the document they are made from."""
    with TYPES.open(encoding="utf-8") as lines:
        assert next(lines).strip() == f"// openapi.json sha256 {digest()}", REMEDY
