"""Write ui/openapi.json, the OpenAPI document that the inspector's types are made from.

    python tests/inspector/make_openapi.py && npm --prefix ui run api

The file is not committed. The types are, with the document's digest on their first line, which
tests/inspector/test_types.py compares with the document of today.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final

from woodrat.server.openapi import document

UI: Final = Path(__file__).resolve().parents[2] / "ui"
DOCUMENT: Final = UI / "openapi.json"
TYPES: Final = UI / "src" / "api" / "schema.d.ts"


def openapi() -> bytes:
    """Return the document without a version, so that a release alone changes no types."""
    return json.dumps(document("0"), indent=1, sort_keys=True, ensure_ascii=False).encode()


def digest() -> str:
    """Return what the first line of the types must name."""
    return hashlib.sha256(openapi()).hexdigest()


if __name__ == "__main__":
    DOCUMENT.write_bytes(openapi())
    print(f"{DOCUMENT.name}: {digest()}")
