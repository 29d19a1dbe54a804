"""What a schema may say, and how claims and records are checked against it."""

from __future__ import annotations

import itertools
import pickle
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.canon.digest import digest
from woodrat.errors import Fault, Refused
from woodrat.state.identity_rules import IdentityField, IdentityRule
from woodrat.state.schema import OPEN, SCHEMA_BYTES_MAX, Schema, parse_schema, stored, winning
from woodrat.state.schema_keywords import LATEST, PolicyName, PolicyTraits

EVERY = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})
TAKES = {
    **dict.fromkeys(("latest", "first", "max", "min", "highest_priority"), EVERY),
    **dict.fromkeys(("union", "append"), frozenset({"array"})),
    "sum": frozenset({"integer", "number", "string"}),
}
OWN = PolicyName("newest_word", 2, "ab" * 32)

DOCUMENT: dict[str, Any] = {
    "title": "contact",
    "type": "object",
    "x-woodrat-version": 4,
    "x-woodrat-identity": [[{"field": "email", "fold": ["trim-1", "ascii-lower-1"]}], ["name", "company"]],
    "properties": {
        "email": {"type": "string", "format": "email"},
        "name": {"type": "string", "minLength": 1, "x-woodrat-text": True},
        "city": {"type": "string", "x-woodrat-index": True},
        "town": {"$ref": "#/properties/city"},
        "age": {"$ref": "#/$defs/years"},
        "tags": {"type": "array", "items": {"type": "string"}, "x-woodrat-merge": "union"},
        "score": {"type": ["integer", "string"], "x-woodrat-merge": "sum"},
        "motto": {"type": "string", "x-woodrat-merge": OWN.to_json()},
        "address": {"type": "object", "properties": {"zip": {"type": "string"}}, "required": ["zip"]},
        "a/b ~%#é": {"type": "boolean"},
    },
    "required": ["name"],
    "$defs": {"years": {"type": "integer", "minimum": 0, "maximum": 150}},
}


def known(policy: PolicyName) -> PolicyTraits | None:
    """Return what is known of a policy, as a ledger with one policy of its own would say."""
    if policy == OWN:
        return PolicyTraits("newest_word", frozenset({"string"}))
    return PolicyTraits(policy.name, TAKES[policy.name]) if policy.name in TAKES and policy.version is None else None


def parse(document: object, type: str | None = None, version: int | None = None) -> Schema:
    return parse_schema(document, type, policies=known, version=version)


def faults_of(document: object, type: str | None = None, version: int | None = None) -> tuple[Fault, ...]:
    with pytest.raises(Refused) as refused:
        parse(document, type, version)
    return refused.value.faults


def paths(document: object, type: str | None = None) -> list[str]:
    return [fault.path for fault in faults_of(document, type)]


def with_property(subschema: Any, **more: Any) -> dict[str, Any]:
    return {"title": "thing", "properties": {"x": subschema}, **more}


CONTACT = parse(DOCUMENT)


# Reading a document


def test_a_schema_is_named_by_its_body() -> None:
    """The body is canonical {"schema", "type"}, and id and digest are taken of it."""
    assert CONTACT.body == form.encode({"schema": DOCUMENT, "type": "contact"})
    assert CONTACT.digest == digest("schema", CONTACT.body)
    assert CONTACT.id.startswith("sch_")
    assert len(CONTACT.id) == 30
    assert CONTACT.rank == (4, CONTACT.digest)


def test_the_example_on_the_format_page_holds() -> None:
    """The body, digest and id on the page are those of the document it shows."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "formats" / "schema.md").read_text("utf-8")
    body, named, id = re.findall(r"^(?:body|digest|id) +(\S+)$", page, re.MULTILINE)
    content: Any = form.decode(body.encode())
    schema = parse(content["schema"], content["type"])
    assert (schema.body.decode(), schema.digest.hex(), schema.id) == (body, named, id)


def test_keywords_are_read() -> None:
    """Identity, policies, index, text and required say what the document says."""
    folded = IdentityRule((IdentityField("email", ("trim-1", "ascii-lower-1")),))
    assert CONTACT.identity == (folded, IdentityRule((IdentityField("name"), IdentityField("company"))))
    assert CONTACT.policies == {"tags": PolicyName("union"), "score": PolicyName("sum"), "motto": OWN}
    assert CONTACT.indexed == {"city"}
    assert CONTACT.searchable == {"name"}
    assert CONTACT.required == ("name",)


def test_a_field_without_policy_has_latest() -> None:
    """A field that names no policy, described or not, has `latest`."""
    assert CONTACT.policy_of("city") == CONTACT.policy_of("shoe_size") == LATEST
    assert CONTACT.policy_of("tags") == PolicyName("union")


def test_a_policy_name_has_one_text() -> None:
    """A built-in policy reads as its name, a user's own as name@version; both print as the schema writes them."""
    assert (str(PolicyName("union")), str(OWN)) == ("union", "newest_word@2")
    assert PolicyName("union").to_json() == "union"
    assert OWN.to_json() == {"name": "newest_word", "version": 2, "code": "ab" * 32}


def test_stored_gives_back_the_schema() -> None:
    """A schema read from its log entry equals the schema that was registered, in all its parts."""
    again = stored(CONTACT.body)
    assert again == CONTACT
    for part in ("document", "version", "identity", "policies", "indexed", "searchable", "required"):
        assert getattr(again, part) == getattr(CONTACT, part)


def test_a_schema_can_be_sent_to_another_process() -> None:
    """A schema survives pickling and still checks claims."""
    again = pickle.loads(pickle.dumps(CONTACT))
    assert again == CONTACT
    assert again.claim_fault("city", 42)


def test_a_schema_does_not_follow_its_document() -> None:
    """Changing the dict that was registered changes nothing."""
    document: dict[str, Any] = with_property({"type": "string"})
    schema = parse(document)
    document["properties"]["x"]["type"] = "integer"
    assert schema.claim_fault("x", "text") is None


@pytest.mark.parametrize(
    ("stated", "asked", "version"), [(None, None, 1), (3, None, 3), (None, 7, 7), (3, 3, 3)], ids=str
)
def test_the_version_is_stated_or_asked_for(stated: int | None, asked: int | None, version: int) -> None:
    """A version comes from the document, else from the caller, else is 1, and is written into the document."""
    schema = parse({"title": "thing"} | ({"x-woodrat-version": stated} if stated else {}), version=asked)
    assert schema.version == schema.document["x-woodrat-version"] == version


def test_two_versions_are_refused() -> None:
    """A version asked for that is not the one stated is refused."""
    (fault,) = faults_of({"title": "thing", "x-woodrat-version": 3}, version=2)
    assert fault.path == "/x-woodrat-version"


@pytest.mark.parametrize("version", [0, -1, 1.5, "1", True, None, [1]])
def test_a_version_is_a_whole_number_from_one_up(version: object) -> None:
    """Any other version is refused."""
    assert paths({"title": "thing", "x-woodrat-version": version}) == ["/x-woodrat-version"]


def test_the_type_is_given_or_the_title() -> None:
    """The entity type is the one given, else the title."""
    assert parse({"title": "thing"}).type == "thing"
    assert parse({"title": "Any Text"}, "other").type == "other"


@pytest.mark.parametrize("document", [{}, {"title": "Not A Type"}, {"title": "1st"}])
def test_a_document_without_type_is_refused(document: object) -> None:
    """A document that names no entity type is refused, saying so."""
    assert paths(document) == ["/title"]


def test_a_given_type_is_checked() -> None:
    """A type outside the grammar of types is refused."""
    assert faults_of({}, "Contact!")[0].path == "type"


@pytest.mark.parametrize("document", [None, 3, "text", [], True])
def test_only_an_object_is_a_schema(document: object) -> None:
    """Anything but an object is refused."""
    assert paths(document) == [""]


def test_a_document_without_canonical_form_is_refused() -> None:
    """What has no canonical form is refused with its path."""
    assert paths(with_property({"default": float("nan")})) == ["/properties/x/default"]


def test_a_document_has_a_named_limit() -> None:
    """A document beyond the limit is refused."""
    assert "bytes" in faults_of({"title": "thing", "description": "x" * SCHEMA_BYTES_MAX})[0].problem


# What a document may not say


def test_all_faults_are_reported_at_once() -> None:
    """One refusal lists every fault of a document."""
    document = {
        "title": "Not A Type",
        "type": "array",
        "$schema": "http://json-schema.org/draft-07/schema#",
        "x-woodrat-identity": [[], ["a", {"field": "nowhere", "fold": ["upper"]}]],
        "x-woodrat-frobnicate": 1,
        "additionalProperties": False,
        "properties": {
            "a": {"type": "strin", "x-woodrat-merge": "unoin"},
            "b": {"$ref": "https://example.org/b.json"},
            "c": {"pattern": "(", "x-woodrat-identity": [["a"]]},
        },
    }
    assert paths(document) == [
        "/$schema",
        "/properties/a/type",
        "/properties/a/x-woodrat-merge",
        "/properties/b/$ref",
        "/properties/c/pattern",
        "/properties/c/x-woodrat-identity",
        "/title",
        "/type",
        "/x-woodrat-frobnicate",
        "/x-woodrat-identity/0",
        "/x-woodrat-identity/1/1",
        "/x-woodrat-identity/1/1/fold/0",
    ]


@pytest.mark.parametrize(
    "subschema",
    [{"type": "text"}, {"minimum": "3"}, {"required": "x"}, {"enum": 3}, {"properties": []}, {"items": [{}]}, 3, None],
)
def test_what_is_not_json_schema_is_refused(subschema: object) -> None:
    """A subschema that the meta-schema does not allow is refused with its place."""
    (path,) = paths(with_property(subschema))
    assert path.startswith("/properties/x")


@pytest.mark.parametrize("dialect", ["http://json-schema.org/draft-07/schema#", "https://example.org/mine"])
def test_another_dialect_is_refused_by_name(dialect: str) -> None:
    """A document in another dialect is refused, and the refusal names the dialect."""
    (fault,) = faults_of({"title": "thing", "$schema": dialect})
    assert dialect in fault.problem


def test_the_dialect_may_be_named() -> None:
    """A document may say that it is JSON Schema 2020-12."""
    assert parse({"title": "thing", "$schema": "https://json-schema.org/draft/2020-12/schema"}).type == "thing"


@pytest.mark.parametrize("reference", ["https://example.org/x", "other.json#/x", "file:///etc/passwd", "urn:x"])
def test_a_reference_out_of_the_document_is_refused(reference: str) -> None:
    """No reference leads out of the document, and nothing is fetched to find out."""
    assert paths(with_property({"items": {"$ref": reference}})) == ["/properties/x/items/$ref"]


def test_a_reference_to_nothing_is_refused() -> None:
    """A local reference has a target."""
    assert paths(with_property({"$ref": "#/$defs/nowhere"})) == ["/properties/x/$ref"]
    assert paths(with_property({"$ref": "#nowhere"})) == ["/properties/x/$ref"]


def test_anchors_are_allowed() -> None:
    """A reference by anchor works."""
    leaf = {"$anchor": "leaf", "type": "object", "properties": {"below": {"type": "array"}}}
    schema = parse(with_property({"items": {"$ref": "#leaf"}}, **{"$defs": {"t": leaf}}))
    assert schema.claim_fault("x", [{"below": []}]) is None
    assert schema.claim_fault("x", [{"below": 3}]) == "[0].below: expected an array, got 3 (number)"


def test_data_is_not_taken_for_keywords() -> None:
    """A `$ref` or a keyword of ours inside `const`, `enum`, `default` or as the name of a field is data."""
    data: Any = {"$ref": "https://example.org", "x-woodrat-nothing": 1}
    document = with_property({"const": data, "default": data, "examples": [data]})
    document["properties"]["$ref"] = {"enum": [data]}
    assert parse(document).claim_fault("x", data) is None


@pytest.mark.parametrize("pattern", [r"^\p{L}+$", r"\P{Lu}", "(?i)a", "(", "[z-a]"])
def test_a_pattern_means_the_same_everywhere(pattern: str) -> None:
    """A pattern that is malformed, or that leans on Unicode's changing tables, is refused."""
    assert paths(with_property({"pattern": pattern})) == ["/properties/x/pattern"]


@pytest.mark.parametrize("pattern", [r"^\\p$", "(?:a|b)", "(?<name>a)", r"^\w+\d$"])
def test_other_patterns_are_allowed(pattern: str) -> None:
    """A pattern of ECMA 262 that is matched in one pass is taken."""
    assert parse(with_property({"pattern": pattern})).version == 1


def test_an_unknown_keyword_of_ours_is_refused_by_name() -> None:
    """An `x-woodrat-` keyword that does not exist is refused and the nearest one named."""
    (fault,) = faults_of(with_property({"x-woodrat-merg": "union"}))
    assert "x-woodrat-merg" in fault.problem
    assert fault.remedy == "Did you mean x-woodrat-merge?"


@pytest.mark.parametrize(
    ("document", "path"),
    [
        (with_property({"x-woodrat-identity": [["x"]]}), "/properties/x/x-woodrat-identity"),
        (with_property({"x-woodrat-version": 1}), "/properties/x/x-woodrat-version"),
        (with_property({}, **{"x-woodrat-merge": "union"}), "/x-woodrat-merge"),
        (with_property({"items": {"x-woodrat-merge": "latest"}}), "/properties/x/items/x-woodrat-merge"),
        (with_property({"properties": {"y": {"x-woodrat-index": True}}}), "/properties/x/properties/y/x-woodrat-index"),
        (with_property({}, **{"$defs": {"d": {"x-woodrat-text": True}}}), "/$defs/d/x-woodrat-text"),
        (
            with_property({}, allOf=[{"properties": {"x": {"x-woodrat-merge": "max"}}}]),
            "/allOf/0/properties/x/x-woodrat-merge",
        ),
    ],
)
def test_a_keyword_in_a_wrong_place_is_refused(document: object, path: str) -> None:
    """A keyword of ours stands where it has a meaning, or is refused."""
    assert paths(document) == [path]


@pytest.mark.parametrize("keyword", ["x-woodrat-index", "x-woodrat-text", "x-woodrat-redact"])
@pytest.mark.parametrize("stated", [1, "true", None])
def test_a_flag_is_true_or_false(keyword: str, stated: object) -> None:
    """A flag is a boolean."""
    assert paths(with_property({keyword: stated})) == [f"/properties/x/{keyword}"]


def test_a_redacted_field_is_known_by_its_schema() -> None:
    """A property may ask for redaction; its mark always fits, whatever else the property asks for."""
    found = parse(with_property({"x-woodrat-redact": True, "type": "integer"}))
    assert found.redacted == {"x"}
    assert found.claim_fault("x", "[REDACTED]") is None
    assert found.takes({"x": "[REDACTED]"})
    assert found.record_faults({"x": "[REDACTED]"}, "") == []
    assert found.claim_fault("x", "other") is not None
    assert not found.takes({"x": "other"})
    assert (
        parse(with_property({"x-woodrat-redact": False, "type": "integer"})).claim_fault("x", "[REDACTED]") is not None
    )


@pytest.mark.parametrize("name", ["entity_type", "$"])
def test_reserved_keys_are_no_fields(name: str) -> None:
    """What is reserved in a stored record cannot be a field."""
    assert paths({"title": "thing", "properties": {name: {}}}) == [f"/properties/{name}"]


def test_a_top_level_reference_is_refused() -> None:
    """A document shows its fields at the top."""
    assert paths({"title": "thing", "$ref": "#/$defs/t", "$defs": {"t": {}}}) == ["/$ref"]


@pytest.mark.parametrize(
    "rules", [[], {}, "name", [[]], ["name"], [[3]], [[""]], [[{"fold": []}]], [[{"field": "a", "fold": "trim-1"}]],
              [[{"field": "a", "fold": ["TRIM"]}]], [[{"field": "a", "folds": []}]], [["a", "a"]], [["a"], ["a"]]]
)  # fmt: skip
def test_a_bad_identity_rule_is_refused(rules: object) -> None:
    """A rule is a non-empty list of fields with known folds, stated once."""
    (path,) = paths({"title": "thing", "x-woodrat-identity": rules})
    assert path.startswith("/x-woodrat-identity")


def test_an_identifying_field_can_exist() -> None:
    """A closed schema describes its identifying fields; an open one need not."""
    rules: dict[str, Any] = {"x-woodrat-identity": [["y"]]}
    assert parse(with_property({}, **rules)).identity == (IdentityRule((IdentityField("y"),)),)
    assert paths(with_property({}, additionalProperties=False, **rules)) == ["/x-woodrat-identity/0/0"]


# Policies


@pytest.mark.parametrize(
    "stated", [3, None, "", "nothing", {"name": "newest_word"}, {**OWN.to_json(), "code": "AB" * 32},  # type: ignore[dict-item]
               {**OWN.to_json(), "version": 0}, {**OWN.to_json(), "version": 3}, {**OWN.to_json(), "name": "No"}]  # type: ignore[dict-item]
)  # fmt: skip
def test_an_unknown_policy_is_refused(stated: object) -> None:
    """A policy is one the ledger has, by name, or by name, version and code."""
    (path,) = paths(with_property({"x-woodrat-merge": stated}))
    assert path.startswith("/properties/x/x-woodrat-merge")


@pytest.mark.parametrize(
    ("policy", "subschema", "fits"),
    [
        ("union", {"type": "string"}, False),
        ("union", {"type": ["array", "null"]}, True),
        ("union", {}, True),
        ("union", {"enum": ["a", "b"]}, False),
        ("union", {"const": []}, True),
        ("union", {"$ref": "#/$defs/one"}, False),
        ("union", {"$ref": "#/$defs/two"}, False),
        ("append", {"$ref": "#/$defs/list"}, True),
        ("append", {"anyOf": [{"type": "array"}, {"type": "null"}]}, True),
        ("append", {"anyOf": [{"type": "string"}, {"type": "null"}]}, False),
        ("append", {"allOf": [{"type": "string"}]}, False),
        ("sum", {"type": "integer"}, True),
        ("sum", {"type": "number"}, True),
        ("sum", {"type": "boolean"}, False),
        ("sum", {"enum": [1.5, True]}, True),
        ("sum", {"$ref": "#/$defs/two"}, True),
        ("max", {"type": "null"}, True),
    ],
)
def test_a_policy_fits_some_value_of_its_field(policy: str, subschema: dict[str, Any], fits: bool) -> None:
    """A policy that could take no value of its field is refused; references are followed."""
    definitions = {"one": {"$ref": "#/$defs/two"}, "two": {"type": "string"}, "list": {"type": "array"}}
    document = with_property({**subschema, "x-woodrat-merge": policy}, **{"$defs": definitions})
    if fits:
        assert parse(document).policy_of("x") == PolicyName(policy)
    else:
        assert paths(document) == ["/properties/x/x-woodrat-merge"]


# Checking claims


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("city", 42, "expected text, got 42 (number)"),
        ("city", None, "expected text, got null"),
        ("town", 42, "expected text, got 42 (number)"),
        ("age", -1, "expected at least 0, got -1 (number)"),
        ("age", 1.5, "expected a whole number, got 1.5 (number)"),
        ("age", 151, "expected at most 150, got 151 (number)"),
        ("name", "", 'expected at least 1 character, got "" (text)'),
        ("tags", "vip", 'expected an array, got "vip" (text)'),
        ("tags", ["vip", 3], "[1]: expected text, got 3 (number)"),
        ("score", 1.5, "expected a whole number or text, got 1.5 (number)"),
        ("address", {}, '"zip" is missing'),
        ("address", {"zip": 8001}, "zip: expected text, got 8001 (number)"),
        ("a/b ~%#é", "yes", 'expected a boolean, got "yes" (text)'),
    ],
)
def test_a_claim_that_does_not_fit_says_why(field: str, value: Any, reason: str) -> None:
    """A claim is checked against its own subschema, references included, and the reason is short and plain."""
    assert CONTACT.claim_fault(field, value) == reason


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("city", "Barcelona"),
        ("age", 30),
        ("age", 30.0),
        ("tags", []),
        ("email", "no address"),
        ("shoe_size", {"eu": 43}),
    ],
)
def test_a_claim_that_fits_has_no_fault(field: str, value: Any) -> None:
    """What fits passes, formats are not asserted, and a field without subschema takes anything."""
    assert CONTACT.claim_fault(field, value) is None


def test_a_claim_is_checked_by_itself() -> None:
    """Keywords of the whole object never make a claim unfit."""
    schema = parse(with_property({"type": "string"}, additionalProperties=False, minProperties=5, required=["y"]))
    assert schema.claim_fault("x", "text") is None
    assert schema.claim_fault("other", 3) is None


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(sorted(DOCUMENT["properties"])), json_values)
def test_a_claim_fits_alone_as_in_a_record(field: str, value: Any) -> None:
    """On a schema of properties alone, a claim is at fault exactly when a record of it is."""
    assert (CONTACT.claim_fault(field, value) is None) == (CONTACT.record_faults({field: value}, "") == [])


# Checking records


def test_a_fault_of_a_record_reads_as_promised() -> None:
    """A fault names the field, shows the value and says what to do."""
    assert CONTACT.record_faults({"city": 42}, "/3") == [
        Fault(
            "/3/city",
            "contact.city: expected text, got 42 (number)",
            'Send text, or change the field in a new version of schema "contact" (now 4).',
        )
    ]


def test_a_record_reports_all_its_faults() -> None:
    """Every fault of a record is listed, each with its own path."""
    record: dict[str, Any] = {"city": 42, "tags": ["a", 1, 2], "address": {"zip": None}, "a/b ~%#é": 3}
    expected = ["/0/address/zip", "/0/a~1b ~0%#é", "/0/city", "/0/tags/1", "/0/tags/2"]
    assert [fault.path for fault in CONTACT.record_faults(record, "/0")] == sorted(expected)


def test_required_waits_for_the_snapshot() -> None:
    """A record may leave required fields out; the snapshot after the write may not."""
    assert CONTACT.record_faults({"city": "Girona"}, "") == []
    (fault,) = CONTACT.required_faults({"city": "Girona"}, "/2")
    assert fault.path == "/2/name"
    assert fault.problem == "contact.name: is required and has no value"
    assert CONTACT.required_faults({"name": None}, "") == []


def test_an_unknown_field_of_a_closed_schema_is_named() -> None:
    """A field that a closed schema does not have is refused by name, with the nearest one it has."""
    schema = parse(with_property({}, properties={"city": {}}, additionalProperties=False))
    (fault,) = schema.record_faults({"citi": 1}, "/0")
    assert fault.path == "/0/citi"
    assert fault.problem == "thing.citi: unknown field, with 1 (number)"
    assert fault.remedy.startswith('Did you mean "city"? Leave it out, or add the field in a new version')


@pytest.mark.parametrize(
    ("subschema", "value", "problem"),
    [
        ({"enum": ["a", "b"]}, "c", 'expected one of "a", "b", got "c" (text)'),
        ({"enum": list(range(20))}, 20, "expected one of 0, 1, 2, 3, 4, 5, 6, 7 and 12 more, got 20 (number)"),
        ({"const": 3}, 4, "expected 3, got 4 (number)"),
        ({"exclusiveMinimum": 0}, 0, "expected more than 0, got 0 (number)"),
        ({"exclusiveMaximum": 0}, 0, "expected less than 0, got 0 (number)"),
        ({"multipleOf": 5}, 3, "expected a multiple of 5, got 3 (number)"),
        ({"maxLength": 2}, "abc", 'expected at most 2 characters, got "abc" (text)'),
        ({"pattern": "^a"}, "b", 'expected text that matches ^a, got "b" (text)'),
        ({"minItems": 2}, [1], "expected at least 2 elements, got 1 element (array)"),
        ({"maxItems": 1}, [1, 2], "expected at most 1 element, got 2 elements (array)"),
        ({"uniqueItems": True}, [1, 1], "expected an array without repeated elements, got 2 elements (array)"),
        ({"type": ["null", "string"]}, 3, "expected text or null, got 3 (number)"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 3, "expected text or null, got 3 (number)"),
        ({"oneOf": [{"minimum": 1}, {"maximum": 5}]}, 3, "3 (number) fits more than one of the forms allowed here"),
        (
            {"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]},
            {},
            "0 keys (object) fits none of the forms allowed here",
        ),
        (False, 3, "no value is allowed here, got 3 (number)"),
        ({"not": {"type": "integer"}}, 3, '{"type":"integer"} is not allowed for 3'),
    ],
)
def test_common_keywords_are_put_into_plain_words(subschema: Any, value: Any, problem: str) -> None:
    """A fault speaks of text and numbers rather than of keywords."""
    (fault,) = parse(with_property(subschema)).record_faults({"x": value}, "")
    assert fault.problem == f"thing.x: {problem}"
    assert fault.remedy.endswith('in a new version of schema "thing" (now 1).')


# Without a schema, and among several


def test_a_type_without_schema_is_open() -> None:
    """An unknown type takes any record and is identified by id, email, name or title."""
    schema = OPEN("thing")
    assert (schema.is_open, schema.version, schema.digest, schema.body) == (True, 0, bytes(32), b"")
    assert [rule.text for rule in schema.identity] == ["id", "email", "name", "title"]
    assert schema.claim_fault("x", 1) is None
    assert schema.record_faults({"x": 1}, "") == schema.required_faults({}, "") == []
    assert schema.policy_of("x") == LATEST
    assert not CONTACT.is_open
    assert OPEN("thing") == OPEN("thing") != OPEN("other")


def test_a_schema_without_rules_identifies_like_an_open_one() -> None:
    """Registering a schema that states no rules changes no key."""
    assert parse({"title": "thing"}).identity == OPEN("thing").identity


def test_the_highest_version_wins_then_the_highest_digest() -> None:
    """The schema in force depends on the set of schemas alone."""
    schemas = [parse({"title": "thing", "x-woodrat-version": v, "description": d}) for v in (1, 2, 10) for d in "ab"]
    best = max((s for s in schemas if s.version == 10), key=lambda s: s.digest)
    for order in itertools.islice(itertools.permutations(schemas), 50):
        assert winning(order) == best
    assert winning([]) is None


def test_a_stored_schema_from_the_future_is_refused() -> None:
    """A stored schema with folds this version does not have is refused, never guessed at."""
    body = form.encode(
        {"schema": {"x-woodrat-version": 1, "x-woodrat-identity": [[{"field": "a", "fold": ["trim-2"]}]]}, "type": "t"}
    )
    with pytest.raises(Refused, match="a newer Woodrat may understand it"):
        stored(body)


_keys = st.sampled_from(
    "title type properties $defs $ref $anchor $id $schema enum const items allOf anyOf not required pattern minimum "  # noqa: SIM905
    "additionalProperties x-woodrat-identity x-woodrat-merge x-woodrat-index field fold name version code a b".split()
)
_words = st.sampled_from(
    ["object", "string", "array", "union", "sum", "#", "#/$defs/a", "#/properties/a", "#a", "(", "trim-1", "a", "x:y"]
)
_documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | _words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_keys, inner, max_size=4),
    max_leaves=20,
)
_named = st.dictionaries(st.sampled_from("ab"), st.dictionaries(_keys, _documents, max_size=4), max_size=2)


@given(st.dictionaries(_keys, _documents, max_size=3), _named, _named, _documents)
def test_any_document_is_taken_or_refused(document: Any, properties: Any, definitions: Any, value: Any) -> None:
    """Whatever is sent as a schema is either usable or refused; nothing else comes of it."""
    try:
        schema = parse({**document, "properties": properties, "$defs": definitions}, "thing")
    except Refused:
        return
    for name in properties:
        schema.claim_fault(name, value)
    schema.record_faults(dict.fromkeys(properties, value), "")
    assert stored(schema.body) == schema


def test_a_field_whose_name_cannot_be_printed_is_checked() -> None:
    """A property is found by its own name, whatever characters that has."""
    name = "a\u200b/~b"
    found = parse_schema({"title": "x", "properties": {name: {"type": "string"}}}, policies=lambda name: None)
    assert found.claim_fault(name, "text") is None
    assert found.claim_fault(name, 1) is not None


@pytest.mark.parametrize(
    ("subschema", "value", "fits"),
    [
        ({"enum": ["a", "b"]}, "c", True),
        ({"type": "string", "enum": ["a", "b"]}, 3, False),
        ({"const": "a"}, "c", False),
        ({"$ref": "#/$defs/known"}, "c", True),
        ({"$ref": "#/$defs/known"}, "too long", False),
        ({"type": "array", "items": {"enum": ["a"]}}, ["c"], True),
        ({"properties": {"kind": {"enum": ["a"]}}, "required": ["kind"]}, {"kind": "c"}, True),
        ({"anyOf": [{"enum": ["a"]}, {"type": "null"}]}, "c", True),
        ({"allOf": [{"enum": ["a"]}, {"type": "string"}]}, 3, False),
        ({"not": {"enum": ["a"]}}, "a", False),
        ({"not": {"enum": ["a"]}}, "c", True),
        ({"not": {"$ref": "#/$defs/known"}}, "a", False),
        ({"not": {"$ref": "#/$defs/known"}}, "c", True),
        ({"oneOf": [{"enum": ["a"]}, {"enum": ["b"]}]}, "a", True),
        ({"oneOf": [{"enum": ["a"]}, {"enum": ["b"]}]}, "c", False),
        ({"if": {"enum": ["a"]}, "then": {"enum": ["b"]}, "else": {"type": "null"}}, "a", True),
        ({"if": {"enum": ["a"]}, "then": {"enum": ["b"]}, "else": {"type": "null"}}, "c", False),
    ],
)
def test_a_merge_asks_for_shapes_and_not_for_known_values(subschema: dict[str, Any], value: Any, fits: bool) -> None:
    """A claim fits whatever enumerations leave out, except where the schema would then take other values, not more."""
    known = {"enum": ["a", "b"], "maxLength": 3}
    schema = parse({"title": "thing", "properties": {"x": subschema}, "$defs": {"known": known}})
    assert (schema.claim_fault("x", value) is None) is fits
    if schema.takes({"x": value}):
        assert fits, "what fits the whole document fits in a merge"
