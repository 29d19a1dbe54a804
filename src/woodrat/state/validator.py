"""Validator: compiled validators of JSON Schema, made once and cached.

Formats are annotations, nothing is fetched, and patterns are matched in linear time, so results are the same on every
machine. The library is never used for a schema outside `schema_subset`: it cannot be cancelled, and no other thread
runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.state.merge_check import is_asked_as_it_stands, without_enumerations
from woodrat.state.schema_subset import Counting, subset_faults

if TYPE_CHECKING:
    # Loaded where it is first used: many commands end without checking a value, and it is slow to load.
    import jsonschema_rs

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The supported dialect of JSON Schema."""
RECORD_FAULTS_MAX: Final = 1_000
"""Most faults of one record that are listed."""
COMPILED_SCHEMAS_MAX: Final = 1_024
"""Cache size for compiled schemas; the least recently used goes first."""
EXPLAINED_CHECKS_MAX: Final = 50_000
"""Most checks that are done again to say all that is wrong: that takes a thousand times as long."""


def _nothing_remote(uri: str) -> Any:
    """Refuse to fetch: a schema is self-contained, and merging never uses the network."""
    raise LookupError(f"{uri} is not part of this schema")


def validator(
    schema: dict[str, Any], registry: jsonschema_rs.Registry | None = None
) -> jsonschema_rs.Draft202012Validator:
    """Compile `schema`; formats are annotations, nothing is fetched, and patterns are matched in linear time."""
    import jsonschema_rs

    return jsonschema_rs.Draft202012Validator(
        schema,
        validate_formats=False,
        retriever=_nothing_remote,
        registry=registry,
        pattern_options=jsonschema_rs.RegexOptions(),
    )


def compiles(pattern: str, bytes_max: int | None = None) -> bool:
    """Return True if the linear-time engine accepts a pattern, within a size limit if one is given."""
    import jsonschema_rs

    options = jsonschema_rs.RegexOptions(size_limit=bytes_max)
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern}, pattern_options=options)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1)
def meta() -> jsonschema_rs.Draft202012Validator:
    """Return the validator of schemas themselves."""
    return validator({"$ref": DIALECT})


_BASE: Final = "urn:woodrat:schema"
_MERGED: Final = "urn:woodrat:merged"


def checkable(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without its own $id, so that `#` always means the document."""
    return {key: value for key, value in document.items() if key not in ("$id", "$schema")}


class Checks:
    """The validator of records or of one field, made on first use."""

    __slots__ = ("_compile", "_most", "_validator")

    def __init__(self, compile: Callable[[], jsonschema_rs.Draft202012Validator], most: Callable[[], int]) -> None:
        """`most` is the largest number of checks at one value."""
        self._compile = compile
        self._most = most
        self._validator: jsonschema_rs.Draft202012Validator | None = None

    @property
    def validator(self) -> jsonschema_rs.Draft202012Validator:
        """The validator."""
        if self._validator is None:
            self._validator = self._compile()
        return self._validator

    def explains(self, value: Any) -> bool:
        """Return True if all faults of a value can be found in a short time."""
        body = form.serialise(value)
        values = 1 + body.count(b",") + body.count(b"[") + body.count(b"{")
        return values * self._most() <= EXPLAINED_CHECKS_MAX

    def errors(self, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Yield the faults of a value; none if finding them would take too long."""
        return errors(self.validator, value) if self.explains(value) else iter(())


class Compiled:
    """The checks of one schema, each made on first use."""

    __slots__ = ("_as_it_stands", "_claims", "_document", "_most", "_record", "_registry", "beyond", "passing")

    def __init__(self, document: dict[str, Any], body: bytes) -> None:
        self._document = document
        self._registry: jsonschema_rs.Registry | None = None
        self._record: Checks | None = None
        self._claims: dict[tuple[str, str], Checks] = {}
        self._most: int | None = None
        self._as_it_stands = is_asked_as_it_stands(body)
        self.passing: dict[str, Callable[[Any], bool]] = {}
        """By field, the check of its claims, made on first use."""
        faults = subset_faults(document)
        self.beyond = f"{faults[0].path}: {faults[0].problem}".removeprefix(": ") if faults else None
        """The reason why this schema is never used for checks, as a clause; None if it is within the subset."""

    def most(self) -> int:
        """Return the number of checks that may meet at one value."""
        if self._most is None:
            self._most = Counting(self._document).count(self._document)[1]
        return self._most

    def record(self) -> Checks:
        """Return the checks of records as sent; a record may state part of an entity, so nothing is required."""
        assert self.beyond is None, "a schema outside the subset is never compiled"
        if self._record is None:
            self._record = Checks(self._compile_record, self.most)
        return self._record

    def claim(self, field: str) -> Checks:
        """Return the checks of one field's claims, as a merge asks them."""
        return self._part(_pointer(field), _MERGED)

    def stated(self, field: str) -> Checks:
        """Return the checks of one field's values, as the schema states them and surfaces ask them."""
        return self._part(_pointer(field), _BASE)

    def fits(self, pointer: str) -> Callable[[Any], bool]:
        """Return a test of values against the subschema at a pointer; nothing fits outside the subset."""

        def fits(value: Any) -> bool:
            if self.beyond is not None:
                return False
            return bool(self._part(pointer, _BASE).validator.is_valid(value))

        return fits

    def _part(self, pointer: str, base: str) -> Checks:
        assert self.beyond is None, "a schema outside the subset is never compiled"
        found = self._claims.get((pointer, base))
        if found is None:
            found = self._claims[pointer, base] = Checks(partial(self._compile_part, pointer, base), self.most)
        return found

    def _compile_record(self) -> jsonschema_rs.Draft202012Validator:
        return validator({key: value for key, value in checkable(self._document).items() if key != "required"})

    def _compile_part(self, pointer: str, base: str) -> jsonschema_rs.Draft202012Validator:
        import jsonschema_rs

        if self._registry is None:
            stated = checkable(self._document)
            merged = stated if self._as_it_stands else without_enumerations(stated, _BASE)
            resources = [(_BASE, stated), (_MERGED, merged)]
            self._registry = jsonschema_rs.Registry(resources, jsonschema_rs.Draft202012, _nothing_remote)
        # A reference into the whole document, so that references inside the property still find their targets.
        return validator({"$ref": f"{base}#{_quoted(pointer)}"}, self._registry)


def _pointer(field: str) -> str:
    """Return the pointer of a property (RFC 6901), with its name unchanged: `pointer_part` is for people."""
    return "/properties/" + field.replace("~", "~0").replace("/", "~1")


def _quoted(pointer: str) -> str:
    """Return a pointer in the form of a reference."""
    from urllib.parse import quote  # slow to load

    return quote(pointer, safe="/~")


@lru_cache(maxsize=COMPILED_SCHEMAS_MAX)
def compiled(body: bytes) -> Compiled:
    """Return the validators of the schema with this body."""
    content: Any = form.decode(body)
    return Compiled(content["schema"], body)


def errors(validator: jsonschema_rs.Draft202012Validator, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
    """Yield the library's errors, up to the listed number."""
    return islice(validator.iter_errors(value), RECORD_FAULTS_MAX)
