"""Checking: compiled validators of JSON Schema, made once and kept.

Formats are annotations, nothing is fetched, and patterns have a bound, so a value fits or not on every machine alike.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form

if TYPE_CHECKING:
    # Loaded where it is first used: many commands end without checking a value, and it is slow to load.
    import jsonschema_rs

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The one dialect of JSON Schema that is understood."""
RECORD_FAULTS_MAX: Final = 1_000
"""How many faults of one record are listed."""
COMPILED_SCHEMAS_MAX: Final = 1_024
"""How many schemas stay compiled in this process; the one used least recently goes first."""
BACKTRACKS_MAX: Final = 1_000_000
"""How far a pattern may search in one text; a text that needs more does not fit, on every machine alike."""


def _nothing_remote(uri: str) -> Any:
    """Refuse to fetch: a schema is whole by itself, and merge never asks the network."""
    raise LookupError(f"{uri} is not part of this schema")


def validator(
    schema: dict[str, Any], registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Draft202012Validator:
    """Compile `schema`; formats are annotations, nothing is fetched, and patterns have a bound."""
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(
        schema,
        validate_formats=False,
        retriever=_nothing_remote,
        registry=registry,
        pattern_options=jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS_MAX),
    )


@lru_cache(maxsize=1)
def meta() -> jsonschema_rs.Draft202012Validator:
    """Return the validator of schemas themselves."""
    return validator({"$ref": DIALECT})


_BASE: Final = "urn:woodrat:schema"


def checkable(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without a name of its own, so that `#` means the document wherever it stands."""
    return {key: value for key, value in document.items() if key not in ("$id", "$schema")}


class Compiled:
    """The validators of one schema, each made when first asked for."""

    __slots__ = ("_claims", "_document", "_record", "_registry")

    def __init__(self, document: Mapping[str, Any]) -> None:
        import jsonschema_rs

        self._document = checkable(document)
        self._registry = jsonschema_rs.Registry([(_BASE, self._document)], jsonschema_rs.Draft202012, _nothing_remote)
        self._record: jsonschema_rs.Draft202012Validator | None = None
        self._claims: dict[str, jsonschema_rs.Draft202012Validator] = {}

    def record(self) -> jsonschema_rs.Draft202012Validator:
        """Return the validator of records as sent; a record may state part of an entity, so nothing is required."""
        if self._record is None:
            self._record = validator({key: value for key, value in self._document.items() if key != "required"})
        return self._record

    def claim(self, field: str) -> jsonschema_rs.Draft202012Validator:
        """Return the validator of one field's values."""
        found = self._claims.get(field)
        if found is None:
            from urllib.parse import quote

            # A reference into the whole document, so that references inside the property still find their targets.
            reference = f"{_BASE}#/properties/{quote(field.replace('~', '~0').replace('/', '~1'), safe='~')}"
            found = self._claims[field] = validator({"$ref": reference}, self._registry)
        return found


@lru_cache(maxsize=COMPILED_SCHEMAS_MAX)
def compiled(body: bytes) -> Compiled:
    """Return the validators of the schema with this body."""
    content: Any = form.decode(body)
    return Compiled(content["schema"])


def errors(validator: jsonschema_rs.Draft202012Validator, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
    """Yield the library's errors, as many as are ever listed."""
    return islice(validator.iter_errors(value), RECORD_FAULTS_MAX)
