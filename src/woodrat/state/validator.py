"""Checking: compiled validators of JSON Schema, made once and kept.

Formats are annotations, nothing is fetched, and patterns have a bound, so a value fits or not on every machine alike.
The library is never asked about a schema or a value beyond the limits of `expansion`: it does not return to ask
whether it should go on, and no other thread runs meanwhile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.state.expansion import CHECK_STEPS_MAX, SEARCHED_CHARACTERS_MAX, Expansion, pointed_at
from woodrat.state.merge_check import is_asked_as_it_stands, without_enumerations

if TYPE_CHECKING:
    # Loaded where it is first used: many commands end without checking a value, and it is slow to load.
    import jsonschema_rs

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
"""The one dialect of JSON Schema that is understood."""
RECORD_FAULTS_MAX: Final = 1_000
"""How many faults of one record are listed."""
COMPILED_SCHEMAS_MAX: Final = 1_024
"""How many schemas stay compiled in this process; the one used least recently goes first."""
BACKTRACKS_MAX: Final = 2_000
"""How far a pattern may search in one text; a text that needs more does not fit, on every machine alike."""
EXPLAINED_STEPS_MAX: Final = 50_000
"""Most steps of a check that is done again to say all that is wrong: that takes a thousand times as long."""
SIMPLE_BYTES_MAX: Final = 20_000
"""How long a schema may be that is within the limits at a glance: two of its bytes make at most one step."""

_COSTLY: Final = (b'"$ref"', b'"$dynamicRef"', b'"pattern', b'"unevaluated', b'"uniqueItems"', b'"multipleOf"')
"""What a schema does not hold that is within the limits at a glance."""


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
_MERGED: Final = "urn:woodrat:merged"


def bounded(document: dict[str, Any], expansion: Expansion) -> dict[str, Any]:
    """Return the document with patterns that look around or back tried on no text beyond the limit."""
    if not expansion.searching():
        return document
    copy: dict[str, Any] = form.decode(form.encode(document))
    short = {"maxLength": SEARCHED_CHARACTERS_MAX}
    for schema in Expansion(copy).searching():
        tried = {"if": short, "then": {"pattern": schema.pop("pattern")}, "else": short}
        schema["allOf"] = [*schema.get("allOf", ()), tried]
    return copy


def checkable(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document without a name of its own, so that `#` means the document wherever it stands."""
    return {key: value for key, value in document.items() if key not in ("$id", "$schema")}


class Checks:
    """The validator of records or of one field, made when first asked for."""

    __slots__ = ("_compile", "_expansion", "_subschema", "_validator", "length_max")

    def __init__(
        self,
        compile: Callable[[], jsonschema_rs.Draft202012Validator],
        expansion: Callable[[], Expansion],
        subschema: object,
        steps_max: int | None,
    ) -> None:
        self._compile = compile
        self._expansion = expansion
        self._subschema = subschema
        self._validator: jsonschema_rs.Draft202012Validator | None = None
        self.length_max: int = (
            expansion().length_max(subschema) if steps_max is None else 2 * (CHECK_STEPS_MAX // steps_max) - 2
        )
        """Up to how many canonical bytes any value may be checked; a longer one is weighed first."""

    @property
    def validator(self) -> jsonschema_rs.Draft202012Validator:
        """The validator; never to be asked about a value that may not be checked."""
        if self._validator is None:
            self._validator = self._compile()
        return self._validator

    def beyond(self, value: Any) -> str | None:
        """Return why a value is not checked at all, as a clause, or None."""
        if value is None or isinstance(value, int | float):
            return None  # any schema within the limit may be asked about one number
        steps = self._expansion().check_steps(self._subschema, value)
        if steps <= CHECK_STEPS_MAX:
            return None
        return f"checking the value takes {steps} steps, over {CHECK_STEPS_MAX}"

    def explains(self, value: Any) -> bool:
        """Return whether all that is wrong with a value can be found out in a short time."""
        return self._expansion().check_steps(self._subschema, value) <= EXPLAINED_STEPS_MAX

    def errors(self, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
        """Yield what is wrong with a value; nothing where finding that out would take too long."""
        return errors(self.validator, value) if self.explains(value) else iter(())


class Compiled:
    """The checks of one schema, each made when first asked for."""

    __slots__ = (
        "_as_it_stands",
        "_claims",
        "_document",
        "_known",
        "_record",
        "_registry",
        "_steps_max",
        "beyond",
        "passing",
    )

    def __init__(self, document: dict[str, Any], body: bytes) -> None:
        self._document = document
        self._known: Expansion | None = None
        self._registry: jsonschema_rs.Registry | None = None
        self._record: Checks | None = None
        self._claims: dict[tuple[str, str], Checks] = {}
        self._as_it_stands = is_asked_as_it_stands(body)
        self.passing: dict[str, tuple[int, Callable[[Any], bool]]] = {}
        """By field, the longest text that is checked without being weighed, and the check; once it was asked for."""
        simple = len(body) <= SIMPLE_BYTES_MAX and not any(part in body for part in _COSTLY)
        self._steps_max = len(body) // 2 if simple else None
        self.beyond = None if simple else self.expansion().beyond
        """Why nothing is ever checked by this schema, as a clause; None where it is within the limits."""

    def expansion(self) -> Expansion:
        """Return how large the schema is."""
        if self._known is None:
            self._known = Expansion(self._document)
        return self._known

    def record(self) -> Checks:
        """Return the checks of records as sent; a record may state part of an entity, so nothing is required."""
        assert self.beyond is None, "a schema beyond the limit is never compiled"
        if self._record is None:
            self._record = Checks(self._compile_record, self.expansion, self._document, self._steps_max)
        return self._record

    def claim(self, field: str) -> Checks:
        """Return the checks of one field's claims, as a merge asks them."""
        return self._part(_pointer(field), _MERGED)

    def stated(self, field: str) -> Checks:
        """Return the checks of one field's values, as the schema states them and surfaces ask them."""
        return self._part(_pointer(field), _BASE)

    def fits(self, pointer: str) -> Callable[[Any], bool]:
        """Return what says whether a value fits the subschema at a pointer; one that may not be checked does not."""

        def fits(value: Any) -> bool:
            if self.beyond is not None:
                return False
            checks = self._part(pointer, _BASE)
            return checks.beyond(value) is None and bool(checks.validator.is_valid(value))

        return fits

    def _part(self, pointer: str, base: str) -> Checks:
        assert self.beyond is None, "a schema beyond the limit is never compiled"
        found = self._claims.get((pointer, base))
        if found is None:
            subschema = pointed_at(self._document, f"#{_quoted(pointer)}")
            compile = partial(self._compile_part, pointer, base)
            found = self._claims[pointer, base] = Checks(compile, self.expansion, subschema, self._steps_max)
        return found

    def _compile_record(self) -> jsonschema_rs.Draft202012Validator:
        return validator({key: value for key, value in self._checkable().items() if key != "required"})

    def _compile_part(self, pointer: str, base: str) -> jsonschema_rs.Draft202012Validator:
        import jsonschema_rs

        if self._registry is None:
            stated = self._checkable()
            merged = stated if self._as_it_stands else without_enumerations(stated, _BASE)
            resources = [(_BASE, stated), (_MERGED, merged)]
            self._registry = jsonschema_rs.Registry(resources, jsonschema_rs.Draft202012, _nothing_remote)
        # A reference into the whole document, so that references inside the property still find their targets.
        return validator({"$ref": f"{base}#{_quoted(pointer)}"}, self._registry)

    def _checkable(self) -> dict[str, Any]:
        """Return the document as the library gets it; patterns that search get no long text."""
        return checkable(self._document if self._steps_max is not None else bounded(self._document, self.expansion()))


def _pointer(field: str) -> str:
    """Return the pointer of a property (RFC 6901), with its name as it is: `pointer_part` is for people."""
    return "/properties/" + field.replace("~", "~0").replace("/", "~1")


def _quoted(pointer: str) -> str:
    """Return a pointer as it stands in a reference."""
    from urllib.parse import quote  # slow to load

    return quote(pointer, safe="/~")


@lru_cache(maxsize=COMPILED_SCHEMAS_MAX)
def compiled(body: bytes) -> Compiled:
    """Return the validators of the schema with this body."""
    content: Any = form.decode(body)
    return Compiled(content["schema"], body)


def errors(validator: jsonschema_rs.Draft202012Validator, value: Any) -> Iterator[jsonschema_rs.ValidationError]:
    """Yield the library's errors, as many as are ever listed."""
    return islice(validator.iter_errors(value), RECORD_FAULTS_MAX)
