"""The size of a schema, and of a check: counted as the format page says, and never less than what a check takes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from hypothesis import Phase, assume, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

from woodrat import Refused
from woodrat.canon import form
from woodrat.state import builtin, patterns
from woodrat.state.expansion import CHECK_STEPS_MAX, COUNT_MAX, NESTING_MAX, SCHEMA_STEPS_MAX, Expansion, weigh
from woodrat.state.schema import Schema, admit, parse_schema
from woodrat.state.validator import bounded, compiled, validator

BESIDE = ("allOf", "anyOf", "oneOf")
NAMES = "abc"


def parse(document: dict[str, Any]) -> Schema:
    """Return the schema a document states of `thing`."""
    return parse_schema(document, "thing", policies=lambda name: None)


def foreign(document: dict[str, Any]) -> Schema:
    """Return the schema that an entry from elsewhere holds."""
    return admit(form.encode({"schema": {"x-woodrat-version": 1, **document}, "type": "thing"}))


def doubled(levels: int, keyword: str = "allOf") -> dict[str, Any]:
    """Return a schema that refers twice to one that refers twice to one, and so on."""
    twice = [{keyword: [{"$ref": f"#/$defs/d{n + 1}"}, {"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)]
    named = {f"d{number}": each for number, each in enumerate(twice)}
    return {"$defs": {**named, f"d{levels}": {"minLength": 1}}, "properties": {"x": {"$ref": "#/$defs/d0"}}}


# The page, read naively: everything is followed each time it is met, and nothing is remembered


def beside(schema: Any, document: Any) -> Iterator[tuple[Any, bool]]:
    """Yield the subschemas for the same value, and whether a reference leads there."""
    if isinstance(schema, dict):
        for keyword in BESIDE:
            yield from ((each, False) for each in schema.get(keyword, ()))
        yield from ((schema[keyword], False) for keyword in ("not", "if", "then", "else") if keyword in schema)
        yield from ((each, False) for each in schema.get("dependentSchemas", {}).values())
        if "$ref" in schema:
            found = document
            for step in schema["$ref"].split("/")[1:]:
                found = found[step]
            yield found, True


def inside(schema: Any) -> Iterator[Any]:
    """Yield the subschemas for parts of the value."""
    if isinstance(schema, dict):
        yield from schema.get("properties", {}).values()
        yield from schema.get("patternProperties", {}).values()
        yield from schema.get("prefixItems", ())
        for keyword in ("additionalProperties", "unevaluatedProperties", "propertyNames", "items", "contains"):
            if keyword in schema:
                yield schema[keyword]


def reaches(start: Any, end: Any, document: Any) -> bool:
    """Return whether one subschema leads to another."""
    seen: list[Any] = []
    waiting = [start]
    while waiting:
        schema = waiting.pop()
        if schema is end:
            return True
        if isinstance(schema, dict) and not any(schema is each for each in seen):
            seen.append(schema)
            waiting += [each for each, _ in beside(schema, document)]
            waiting += inside(schema)
    return False


def own(schema: Any) -> int:
    """Return the steps of a subschema without those of others."""
    if not isinstance(schema, dict):
        return 1
    steps = 1 + len(schema.get("required", ())) + len(schema.get("enum", ()))
    steps += patterns.measure(schema["pattern"]).length if "pattern" in schema else 0
    steps += sum(1 + patterns.measure(name).length for name in schema.get("patternProperties", ()))
    return steps + (50 if schema.get("uniqueItems") else 0)


def times(schema: Any) -> int:
    return 3 if isinstance(schema, dict) and "unevaluatedProperties" in schema else 1


def place(schema: Any, document: Any) -> int:
    """Return the steps at the value itself."""
    return own(schema) + times(schema) * sum(place(each, document) for each, _ in beside(schema, document))


def size(schema: Any, document: Any) -> int:
    """Return the steps of a subschema."""
    steps = own(schema) + sum(size(each, document) for each in inside(schema))
    for each, referred in beside(schema, document):
        cut = referred and reaches(each, schema, document)
        steps += times(schema) * (place(each, document) if cut else size(each, document))
    return steps


def naive(document: Any) -> int:
    """Return the steps of a schema."""
    met: list[Any] = []
    apart: list[Any] = []
    waiting = [document]
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, dict) or any(schema is each for each in met):
            continue
        met.append(schema)
        waiting += inside(schema)
        for each, referred in beside(schema, document):
            waiting.append(each)
            if referred and reaches(each, schema, document) and not any(each is other for other in apart):
                apart.append(each)
    unused = [each for each in every(document) if not any(each is other for other in met)]
    return size(document, document) + sum(size(each, document) for each in apart) + sum(map(own, unused))


def every(schema: Any) -> Iterator[Any]:
    """Yield every object of a document that is a subschema."""
    if isinstance(schema, dict):
        yield schema
        for each in schema.get("$defs", {}).values():
            yield from every(each)
        for each, referred in beside({key: value for key, value in schema.items() if key != "$ref"}, schema):
            assert not referred
            yield from every(each)
        for each in inside(schema):
            yield from every(each)


def endless(document: Any) -> bool:
    """Return whether a subschema leads back to itself beside the same value."""

    def back(start: Any) -> bool:
        seen: list[Any] = []
        waiting = [each for each, _ in beside(start, document)]
        while waiting:
            schema = waiting.pop()
            if schema is start:
                return True
            if isinstance(schema, dict) and not any(schema is each for each in seen):
                seen.append(schema)
                waiting += [each for each, _ in beside(schema, document)]
        return False

    return any(isinstance(each, dict) and back(each) for each in every(document))


def visits(schema: Any, value: Any, document: Any) -> int:
    """Return how many subschemas meet a value and its parts, as a check does that stops nowhere."""
    if not isinstance(schema, dict):
        return 1
    steps = own(schema)
    for each, _ in beside(schema, document):
        steps += times(schema) * visits(each, value, document)
    if isinstance(value, dict):
        for name, part in value.items():
            for each in schema.get("patternProperties", {}).values():
                steps += visits(each, part, document)
            if name in schema.get("properties", {}):
                steps += visits(schema["properties"][name], part, document)
            elif "additionalProperties" in schema:
                steps += visits(schema["additionalProperties"], part, document)
            if "unevaluatedProperties" in schema:
                steps += visits(schema["unevaluatedProperties"], part, document)
            if "propertyNames" in schema:
                steps += visits(schema["propertyNames"], name, document)
    if isinstance(value, list):
        first = schema.get("prefixItems", [])
        for number, part in enumerate(value):
            if number < len(first):
                steps += visits(first[number], part, document)
            elif "items" in schema:
                steps += visits(schema["items"], part, document)
            if "contains" in schema:
                steps += visits(schema["contains"], part, document)
    return steps


leaves = st.sampled_from(
    [True, {}, {"type": "string"}, {"minLength": 2}, {"enum": [1, 2, 3]}, {"required": ["a"]}, {"pattern": "^a{3}b$"}]
)
references = st.builds(lambda name: {"$ref": f"#/$defs/{name}"}, st.sampled_from(NAMES))


def composed(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    few = st.lists(inner, min_size=1, max_size=3)
    named = st.dictionaries(st.sampled_from("xyz"), inner, max_size=2)
    keywords = {
        "allOf": few,
        "anyOf": few,
        "not": inner,
        "if": inner,
        "then": inner,
        "properties": named,
        "patternProperties": st.dictionaries(st.sampled_from(["^x", "y{2}"]), inner, max_size=1),
        "additionalProperties": inner,
        "unevaluatedProperties": inner,
        "propertyNames": inner,
        "dependentSchemas": named,
        "prefixItems": few,
        "items": inner,
        "contains": inner,
    }
    return st.lists(st.sampled_from(sorted(keywords)), min_size=1, max_size=2, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: keywords[name] for name in chosen})
    )


subschemas = st.recursive(leaves | references, composed, max_leaves=5)
documents = st.fixed_dictionaries(
    {
        "$defs": st.fixed_dictionaries(dict.fromkeys(NAMES, subschemas)),
        "properties": st.fixed_dictionaries({"x": subschemas, "y": subschemas}),
    }
).map(form.normal)
values = st.recursive(
    st.none() | st.integers(0, 3) | st.text("ab", max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("xyzw"), inner, max_size=3),
    max_leaves=8,
)


def differs(count: Callable[[Any], Expansion]) -> Callable[[Any], bool]:
    """Return what finds a document whose size is not what the page says."""

    def found(document: Any) -> bool:
        counted = count(document)
        if endless(document):
            return not counted.endless
        return counted.endless or counted.steps != min(naive(document), COUNT_MAX)

    return found


@given(documents)
def test_steps_are_those_of_the_page(document: Any) -> None:
    """Counting each subschema once gives what following every reference each time gives."""
    assert not differs(Expansion)(document)


class Unfollowing(Expansion):
    """A planted counter: it takes a reference for one step and follows none."""

    def _read(self) -> None:
        super()._read()
        for node in self._nodes:
            node.references.clear()


class Once(Expansion):
    """A planted counter: what is referred to twice counts once."""

    def _read(self) -> None:
        super()._read()
        seen: set[int] = set()
        for node in self._nodes:
            node.references[:] = [each for each in node.references if each not in seen and not seen.add(each)]  # type: ignore[func-returns-value]


class Tame(Expansion):
    """A planted counter: what looks at unevaluated members asks nothing again."""

    def _read(self) -> None:
        super()._read()
        for node in self._nodes:
            node.factor = 1


@pytest.mark.parametrize("planted", [Unfollowing, Once, Tame])
def test_a_planted_counter_is_found_out(planted: type[Expansion]) -> None:
    """The law above sees a counter that leaves out what references stand for."""
    try:
        tried = settings(max_examples=2_000, database=None, phases=[Phase.generate])
        find(documents, differs(planted), settings=tried)
    except NoSuchExample:
        pytest.fail(f"{planted.__doc__} Nothing noticed.")


@given(documents, values)
def test_a_check_takes_no_more_than_it_is_counted_as(document: Any, value: Any) -> None:
    """However a value is checked, as many subschemas meet it as its depth and weight allow, or fewer."""
    counted = Expansion(document)
    assume(not counted.endless and counted.steps <= 2_000)
    depth, weight = weigh(value)
    for subschema in (document, document["properties"]["x"]):
        taken = visits(subschema, value, document)
        assert taken <= counted.check_steps(subschema, value) == counted.load(subschema, depth) * weight
        if len(form.encode(value)) <= counted.length_max(subschema):
            assert counted.check_steps(subschema, value) <= CHECK_STEPS_MAX


@given(documents)
def test_a_length_is_safe_whatever_the_value(document: Any) -> None:
    """The deepest and the heaviest value of a length that needs no weighing are within the limit."""
    counted = Expansion(document)
    assume(not counted.endless and counted.steps <= SCHEMA_STEPS_MAX)
    length = counted.length_max(document)
    assert length >= 0
    for deep in {0, 1, 2, 3, 8, 30, form.DEPTH_MAX}:
        if 2 * deep + 1 <= length:
            assert counted.load(document, deep) * (length // 2 + 1) <= CHECK_STEPS_MAX


@given(st.text(), st.lists(st.text(max_size=70)), st.dictionaries(st.text(), st.integers(0, 9)))
def test_two_bytes_weigh_at_most_one(text: str, texts: list[str], members: dict[str, int]) -> None:
    """A value weighs at most half its canonical bytes and one, so short values need no weighing."""
    tried: list[Any] = [{"": text}, texts, members]
    for value in tried:
        try:
            length = len(form.encode(value))
        except Refused:
            continue
        assert weigh(value)[1] <= length // 2 + 1


# Bombs


def recursive(branches: int) -> dict[str, Any]:
    """Return a schema under which each level of depth multiplies what meets there."""
    node = {"allOf": [{"properties": {"c": {"$ref": "#/$defs/n"}}} for _ in range(branches)]}
    return {"$defs": {"n": node}, "properties": {"x": {"$ref": "#/$defs/n"}}}


def unevaluated(levels: int) -> dict[str, Any]:
    found: dict[str, Any] = {"properties": {"a": True}}
    for _ in range(levels):
        found = {"allOf": [found], "unevaluatedProperties": False}
    return {"properties": {"x": found}}


def chained(levels: int) -> dict[str, Any]:
    named = {f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}]} for number in range(levels)}
    return {"$defs": {**named, f"d{levels}": {}}, "properties": {"x": {"$ref": "#/$defs/d0"}}}


def nested(levels: int) -> dict[str, Any]:
    """Return a schema under which two subschemas say the same of a member, and so on inside."""
    named: dict[str, Any] = {f"d{levels}": {"minLength": 1}}
    for number in range(levels):
        to = {"properties": {"c": {"$ref": f"#/$defs/d{number + 1}"}}}
        named[f"d{number}"] = {"allOf": [to, {**to, "minProperties": 0}]}
    return {"$defs": named, "properties": {"x": {"$ref": "#/$defs/d0"}}}


BOMBS: Mapping[str, dict[str, Any]] = {
    "allOf": doubled(40),
    "anyOf": doubled(40, "anyOf"),
    "oneOf": doubled(40, "oneOf"),
    "thousands of levels": doubled(3_000),
    "two properties": {
        **doubled(0),
        "$defs": {
            f"d{n}": {"properties": {"a": {"$ref": f"#/$defs/d{n + 1}"}, "b": {"$ref": f"#/$defs/d{n + 1}"}}}
            for n in range(40)
        }
        | {"d40": {}},
    },
    "the same member twice": nested(30),
    "items": {"properties": {"x": {"items": doubled(40)["properties"]["x"]}}, "$defs": doubled(40)["$defs"]},
    "if": {
        "$defs": {f"d{n}": {key: {"$ref": f"#/$defs/d{n + 1}"} for key in ("if", "then", "else")} for n in range(30)}
        | {"d30": {}},
        "properties": {"x": {"$ref": "#/$defs/d0"}},
    },
    "dependentSchemas": {
        "$defs": {
            f"d{n}": {"dependentSchemas": {key: {"$ref": f"#/$defs/d{n + 1}"} for key in "ab"}} for n in range(40)
        }
        | {"d40": {}},
        "properties": {"x": {"$ref": "#/$defs/d0"}},
    },
    "unevaluatedProperties": unevaluated(20),
    "a chain": chained(3_000),
    "itself": {"$defs": {"a": {"allOf": [{"$ref": "#/$defs/a"}]}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
    "itself twice": {
        "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    },
    "dynamic": {
        "$defs": {"a": {"$dynamicAnchor": "node", "allOf": [{"$dynamicRef": "#node"}]}},
        "properties": {"x": {"$ref": "#/$defs/a"}},
    },
    "a quoted reference": {
        "$defs": {"a b": {"allOf": [{"$ref": "#/$defs/a%20b"}]}},
        "properties": {"x": {"$ref": "#%2F$defs/a%20b"}},
    },
    "one wide place": {"properties": {"x": {"items": {"allOf": [{"minLength": 1}] * 12_000}}}},
    "a huge enum": {"properties": {"x": {"items": {"enum": [[number] for number in range(9_000)]}}}},
    "a pattern of patterns": {"properties": {"x": {"pattern": "((a{100}){100}){9}"}}},
    "names that search": {"properties": {"x": {"patternProperties": {"^(?=a*b)c": True}}}},
    "unused patterns": {"$defs": {f"d{n}": {"pattern": "((a{99}){99}){9}"} for n in range(5_000)}, "properties": {}},
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_bomb_is_refused_at_registration(bomb: dict[str, Any]) -> None:
    """A schema beyond the limit is refused, and the message holds what was counted and the limit."""
    with pytest.raises(Refused) as refused:
        parse(bomb)
    counted = Expansion(bomb)
    problems = [fault.problem for fault in refused.value.faults if fault.path == ""]
    assert len(problems) == 1
    assert counted.endless or (
        (f"{counted.steps} " in problems[0] and str(SCHEMA_STEPS_MAX) in problems[0])
        or (f"{counted.nesting} " in problems[0] and str(NESTING_MAX) in problems[0])
    )
    assert "Nothing was written." in str(refused.value)


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_nothing_fits_a_foreign_bomb(bomb: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """A schema beyond the limit that came from elsewhere is held, never compiled, and takes nothing."""
    schema = foreign(bomb)
    monkeypatch.setattr("woodrat.state.validator.validator", None)
    assert schema.beyond is not None
    assert schema.beyond.startswith('nothing fits version 1 of schema "thing": ')
    for name in ("x", "undescribed"):
        assert schema.claim_fault(name, "a") == schema.beyond
    assert not schema.takes({"x": "a"})
    (fault,) = schema.record_faults({"x": "a"}, "/0")
    assert fault.path == "/0"
    assert fault.problem == schema.beyond
    assert "Register a new version" in fault.remedy


def test_all_faults_come_with_the_size() -> None:
    """The size is one of the faults of a schema, beside all the others."""
    with pytest.raises(Refused) as refused:
        parse({**doubled(40), "type": "array", "x-woodrat-colour": 1})
    assert {"", "/properties/x", "/type", "/x-woodrat-colour"} <= {fault.path for fault in refused.value.faults}


def test_the_limit_is_exact() -> None:
    """A schema of the most steps is taken, and one of a step more is not."""
    most = {"properties": {"x": {"allOf": [True] * (SCHEMA_STEPS_MAX - 2)}}}
    assert Expansion(most).steps == SCHEMA_STEPS_MAX
    assert parse(most).beyond is None
    more = {"properties": {"x": {"allOf": [True] * (SCHEMA_STEPS_MAX - 1)}}}
    assert foreign(more).beyond is not None
    with pytest.raises(Refused):
        parse(more)


def test_the_nesting_limit_is_exact() -> None:
    """As many subschemas as the limit says may stand inside each other."""
    assert Expansion(chained((NESTING_MAX - 4) // 2)).nesting == NESTING_MAX - 1
    within, over = chained((NESTING_MAX - 4) // 2), chained((NESTING_MAX - 2) // 2)
    assert parse(within).beyond is None
    assert "subschemas stand inside each other" in str(foreign(over).beyond)


def test_ordinary_recursion_is_free() -> None:
    """Trees, lists of lists and any JSON cost the same at every depth, and values of any size are checked."""
    node = {"type": "object", "properties": {"left": {"$ref": "#/$defs/n"}, "right": {"$ref": "#/$defs/n"}}}
    anything = {
        "anyOf": [
            {"type": "array", "items": {"$ref": "#/$defs/n"}},
            {"type": "object", "additionalProperties": {"$ref": "#/$defs/n"}},
            {"type": ["string", "number", "boolean", "null"]},
        ]
    }
    for shape in (node, anything, {"type": "array", "items": {"$ref": "#/$defs/n"}}):
        document = {"$defs": {"n": shape}, "properties": {"x": {"$ref": "#/$defs/n"}}}
        counted = Expansion(form.normal(document))  # type: ignore[arg-type]
        assert counted.steps < 40
        assert parse(document).beyond is None
        assert counted.load(document, 3) == counted.load(document, form.DEPTH_MAX)
        assert counted.length_max(document) >= form.BODY_BYTES_MAX


def deep(levels: int) -> Any:
    value: Any = {}
    for _ in range(levels):
        value = {"c": value}
    return value


def test_a_value_too_costly_to_check_does_not_fit() -> None:
    """Where each level doubles what meets there, a shallow value fits and a deep one does not, and says why."""
    schema = parse(recursive(2))
    assert schema.claim_fault("x", deep(10)) is None
    assert schema.takes({"x": deep(10)})
    problem = schema.claim_fault("x", deep(40))
    assert problem is not None
    assert problem.startswith("checking the value takes ")
    assert str(CHECK_STEPS_MAX) in problem
    assert not schema.takes({"x": deep(40)})
    (fault,) = schema.record_faults({"x": deep(40)}, "/0")
    assert fault.problem.startswith("thing: checking the value takes ")


def test_a_wide_schema_takes_no_large_array() -> None:
    """Many subschemas for each element of a large array are more than one check may take."""
    schema = parse({"properties": {"x": {"items": {"allOf": [{"minLength": 1}] * 5_000}}}})
    assert schema.claim_fault("x", ["a"] * 100) is None
    assert "steps" in str(schema.claim_fault("x", ["a"] * 10_000))


def test_a_misfit_that_is_too_large_to_explain_is_still_one() -> None:
    """What is wrong is looked for only where that is quick; otherwise the field is named, and no more."""
    schema = parse({"properties": {"x": {"items": {"anyOf": [{"minLength": 5, "type": "string"}] * 2_000}}}})
    assert schema.claim_fault("x", ["a"]) == '[0]: expected at least 5 characters, got "a" (text)'
    assert schema.claim_fault("x", ["a"] * 1_000) == "it does not fit, and is too large to say where"
    (fault,) = schema.record_faults({"x": ["a"] * 1_000, "y": 1}, "/0")
    assert fault.path == "/0/x"


def test_a_searching_pattern_is_tried_on_short_text_only() -> None:
    """A pattern that looks around or back fits no text of more than a thousand characters."""
    schema = parse({"properties": {"x": {"pattern": "^(?!b)a*$"}, "y": {"items": {"pattern": "^(?!b)a*$"}}}})
    assert schema.claim_fault("x", "a" * 1_000) is None
    assert schema.claim_fault("x", 7) is None
    assert "at most 1000 characters" in str(schema.claim_fault("x", "a" * 1_001))
    assert "text that matches" in str(schema.claim_fault("x", "b"))
    assert "at most 1000 characters" in str(schema.claim_fault("y", ["a" * 2_000]))
    document = {"enum": [{"pattern": "(?=a)"}], "properties": {"z": {"pattern": "(?=a)"}}}
    asked = bounded(document, Expansion(document))
    assert asked["enum"] == document["enum"]
    assert validator(asked).is_valid({"pattern": "(?=a)"})


def test_the_deepest_check_has_room_on_the_stack() -> None:
    """The longest way through a schema within the limit, again at every level of the deepest value, is gone."""
    levels = (NESTING_MAX - 8) // 2
    named: dict[str, Any] = {f"d{n}": {"allOf": [{"$ref": f"#/$defs/d{n + 1}"}]} for n in range(levels)}
    named[f"d{levels}"] = {"properties": {"c": {"$ref": "#/$defs/d0"}}}
    schema = parse({"$defs": named, "properties": {"x": {"$ref": "#/$defs/d0"}}})
    fits: list[object] = []

    def check() -> None:
        fits.append(schema.claim_fault("x", deep(form.DEPTH_MAX - 2)))

    thread = threading.Thread(target=check)
    thread.start()
    thread.join()
    assert fits == [None]


@pytest.mark.parametrize(
    ("pattern", "length", "searches"),
    [
        ("^ab[c-z]$", 5, False),
        (r"\d{4}-\d{2}", 7, False),
        ("(ab){3,7}c{2,}", 16, False),
        ("((a{100}){100}){9}", 90_000, False),
        ("(?:a|b)*?", 3, False),
        ("a{99999999999999999999999999}", COUNT_MAX, False),
        ("a{,5}", 5, False),
        ("(?=a)b", 2, True),
        ("(?<name>a)()", 2, False),
        ("(?<!a)b", 2, True),
        (r"(a)\1", 2, True),
        ("a++", 1, True),
        ("a{2}+", 2, True),
        (r"[(?=\]{9}]", 1, False),
    ],
)
def test_a_pattern_has_a_length(pattern: str, length: int, searches: bool) -> None:
    """Characters, classes and escapes count as often as a count repeats them."""
    assert patterns.measure(pattern) == (length, searches)


def test_what_is_simple_at_a_glance_is_within_the_limit() -> None:
    """A schema that is not looked at closely would have passed; those built in are all within the limit."""
    for schema in builtin.schemas().values():
        found = compiled(schema.body)
        assert found.beyond is None
        assert found.expansion().beyond is None
        assert found.record().length_max <= found.expansion().length_max(found.expansion()._document)


@given(
    st.lists(st.sampled_from(["{}", "0", '""', "[]", "true"]), max_size=60), st.sampled_from(["enum", "allOf", "const"])
)
def test_two_bytes_make_at_most_one_step(parts: list[str], keyword: str) -> None:
    """Without references, patterns and costly keywords, steps are at most half the bytes."""
    text = f'{{"schema":{{"properties":{{"x":{{"{keyword}":[{",".join(parts)}]}}}}}},"type":"t"}}'
    document: Any = form.decode(text.encode())
    assert Expansion(document["schema"]).steps <= len(text) // 2
