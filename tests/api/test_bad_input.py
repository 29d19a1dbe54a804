"""Bad input: every refusal names all faults, shows the value, says what to do, and leaves the ledger as it was."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import pytest

import woodrat
from woodrat.canon import form
from woodrat.canon.moment_words import resolve
from woodrat.engines.records import Receipt
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.merge import Policy
from woodrat.testing.clock import FixedClock

Call = Callable[[Any], object]
"""What a caller does with a ledger; untyped, because callers get types wrong too."""

KEY = "retry-7"
"""The idempotency key that refused calls are sent with; none of them may claim it."""

ANA = "contact/Ana Rivera"
BO = "contact/Bo"
NOBODY = "contact/Nobody"

TICKET: dict[str, Any] = {
    "title": "ticket",
    "x-woodrat-identity": [["number"]],
    "properties": {
        "number": {"type": "integer"},
        "state": {"enum": ["open", "closed"]},
        "points": {"type": "integer", "minimum": 0},
    },
    "required": ["number", "state"],
    "additionalProperties": False,
}
"""A closed type with required fields."""

BAG: dict[str, Any] = {
    "title": "bag",
    "properties": {
        "things": {"x-woodrat-merge": "union"},
        "weight": {"x-woodrat-merge": "sum"},
        "journal": {"x-woodrat-merge": "append"},
    },
}
"""A type whose fields are bounded by their policies alone."""


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """A ledger that already holds something of everything."""
    ledger = woodrat.open(":memory:", agent="crm", clock=FixedClock())
    ana = {"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona", "tags": ["vip"], "interactions": 1}
    ledger.store([ana], idempotency_key="first")
    ledger.store(
        [
            {"entity_type": "contact", "name": "Bo", "interactions": 4, "notes": ["called"]},
            {"entity_type": "company", "name": "Acme"},
            {"entity_type": "audit_event", "id": "1", "action": "key.created"},
        ]
    )
    ledger.schemas.register(TICKET)
    ledger.schemas.register(BAG)
    ledger.store(
        [
            {"entity_type": "ticket", "number": 1, "state": "open"},
            {"entity_type": "bag", "name": "b", "things": ["cup"], "weight": 1, "journal": ["packed"]},
        ]
    )
    ledger.tag("release-3")
    return ledger


State = tuple[int, bytes, str, str, Receipt | None, Receipt | None]


def state(ledger: woodrat.Ledger) -> State:
    """Return everything that a refused call must leave alone."""
    with ledger.context.engine.view(ledger.tenant) as view:
        head = view.head()
        receipts = view.receipt(ledger.agent, "first"), view.receipt(ledger.agent, KEY)
        assert receipts[0] is not None
        assert receipts[1] is None
        return (
            head.position,
            head.frontier.root(),
            ledger.fingerprint(),
            ledger.fingerprint(provenance=True),
            *receipts,
        )


def refusal(
    ledger: woodrat.Ledger, call: Call, kind: type[woodrat.WoodratError] = woodrat.Refused
) -> woodrat.WoodratError:
    """Return how `call` is refused, having made sure that it changed nothing."""
    before = state(ledger)
    with pytest.raises(woodrat.WoodratError) as caught:
        call(ledger)
    assert type(caught.value) is kind, caught.value
    assert state(ledger) == before
    return caught.value


def check_refused(ledger: woodrat.Ledger, call: Call, *expected: tuple[str, str]) -> None:
    """Check that `call` is refused with exactly these faults, each as (path, part of the problem)."""
    error = refusal(ledger, call)
    assert isinstance(error, woodrat.Refused)
    assert [fault.path for fault in error.faults] == [path for path, _ in expected], str(error)
    for fault, (_, shown) in zip(error.faults, expected, strict=True):
        assert shown in fault.problem, str(error)
        assert not fault.problem.endswith("."), "a problem is a clause"
        assert fault.remedy[:1].isupper(), "a remedy is a sentence"
        assert fault.remedy.endswith((".", "?")), "a remedy is a sentence"
        assert str(fault) in str(error)
    assert str(error).endswith(("\nNothing was written.", "\nNothing was read."))
    assert error.to_json()["details"] == {"faults": [fault.to_json() for fault in error.faults]}


def store(records: object, **given: Any) -> Call:
    """Return the call that stores `records` under `KEY`."""
    return lambda ledger: ledger.store(records, **{"idempotency_key": KEY, **given})


def contact(**fields: Any) -> dict[str, Any]:
    """Return a record about Ana."""
    return {"entity_type": "contact", "name": "Ana Rivera", **fields}


def about(**parts: Any) -> list[dict[str, Any]]:
    """Return a call's records: one, with this in its `$`."""
    return [contact(city="Girona", **{"$": parts})]


def nested(depth: int) -> list[Any]:
    """Return so many lists inside each other."""
    value: list[Any] = []
    for _ in range(depth - 1):
        value = [value]
    return value


# The shape of a call


@pytest.mark.parametrize(
    ("records", "path", "shown"),
    [
        pytest.param("contact", "", 'got "contact" (text)', id="text"),
        pytest.param(42, "", "got 42 (number)", id="number"),
        pytest.param(None, "", "got null", id="null"),
        pytest.param(True, "", "got true (boolean)", id="true"),
        pytest.param([], "", "the list is empty", id="empty list"),
        pytest.param(["contact"], "/0", 'got "contact" (text)', id="text in a list"),
        pytest.param([None], "/0", "got null", id="null in a list"),
        pytest.param([[contact()]], "/0", "got 1 element (array)", id="list in a list"),
        pytest.param({}, "/entity_type", "missing", id="empty record"),
    ],
)
def test_what_is_not_a_list_of_records(ledger: woodrat.Ledger, records: object, path: str, shown: str) -> None:
    """Whatever is neither a list of records nor one record is refused, and shown."""
    check_refused(ledger, store(records), (path, shown))


@pytest.mark.parametrize(
    ("entity_type", "shown"),
    [
        pytest.param(42, "expected a type as text, got 42 (number)", id="number"),
        pytest.param(["contact"], "got 1 element (array)", id="list"),
        pytest.param("Contact", '"Contact" (text) is not a type', id="capital"),
        pytest.param("", '"" (text) is not a type', id="empty"),
        pytest.param("1st", '"1st" (text) is not a type', id="digit first"),
        pytest.param("a/b", '"a/b" (text) is not a type', id="slash"),
        pytest.param("contact\n", "'contact\\n' (text) is not a type", id="line break"),
        pytest.param("cоntact", '"cоntact" (text) is not a type', id="look-alike letter"),
        pytest.param("t" * 65, "65 characters", id="too long"),
        pytest.param(None, "missing", id="null"),
    ],
)
def test_entity_types_outside_the_grammar(ledger: woodrat.Ledger, entity_type: object, shown: str) -> None:
    """A type is a lower-case word; anything else is refused at its own path."""
    check_refused(ledger, store([contact(), {"entity_type": entity_type, "name": "x"}]), ("/1/entity_type", shown))


def test_a_record_without_a_type(ledger: woodrat.Ledger) -> None:
    """A record that does not say what it is about is refused, in a list and alone."""
    check_refused(ledger, store([contact(), {"name": "x"}]), ("/1/entity_type", "missing"))
    check_refused(ledger, store({"name": "x"}), ("/entity_type", "missing"))


def test_nothing_that_identifies(ledger: woodrat.Ledger) -> None:
    """A record that nothing identifies is refused, saying what would identify it."""
    error = refusal(ledger, store([contact(), {"entity_type": "contact", "city": "Reus"}, {"entity_type": "boat"}]))
    assert isinstance(error, woodrat.Refused)
    assert [(fault.path, fault.problem) for fault in error.faults] == [
        ("/1", "nothing identifies this contact"),
        ("/2", "nothing identifies this boat"),
    ]
    assert error.faults[0].remedy == "Send a value for email or name, or state a key as $.key."
    assert error.faults[1].remedy == "Send a value for id, email, name or title, or state a key as $.key."


def test_a_record_that_states_nothing(ledger: woodrat.Ledger) -> None:
    """A record with a key and no field says nothing, and is refused."""
    check_refused(ledger, store([{"entity_type": "contact", "$": {"key": "x"}}]), ("/0", "states nothing about"))


def test_same_as_is_not_a_record(ledger: woodrat.Ledger) -> None:
    """Entities are joined by a verb that checks them, never by storing a record of type same_as."""
    check_refused(ledger, store([{"entity_type": "same_as", "name": "x"}]), ("/0/entity_type", "same_as"))


def test_a_strict_ledger_refuses_types_without_a_schema() -> None:
    """A strict ledger takes only types that have a schema, built-in ones included."""
    ledger = woodrat.open(":memory:", agent="crm", clock=FixedClock(), strict=True)
    ledger.store([contact()], idempotency_key="first")
    records = [contact(), {"entity_type": "boat", "name": "x"}, {"entity_type": "car", "name": "y"}]
    check_refused(ledger, store(records), ("/1/entity_type", "no schema for boat"), ("/2/entity_type", "for car"))


# Values without a canonical form


UNSTABLE = [
    pytest.param(float("nan"), "nan", id="NaN"),
    pytest.param(float("inf"), "inf", id="Infinity"),
    pytest.param(float("-inf"), "-inf", id="-Infinity"),
    pytest.param(-0.0, "-0.0 is negative zero", id="-0.0"),
    pytest.param(2**53, "9007199254740992 (number)", id="2**53"),
    pytest.param(-(2**53), "-9007199254740992 (number)", id="-2**53"),
    pytest.param(10**400, "an integer of 1329 bits", id="10**400"),
    pytest.param(1e20, "1e+20 (number)", id="1e20"),
    pytest.param("a\ud800", "'a\\ud800' (text) holds half a surrogate pair", id="lone surrogate"),
    pytest.param("a\0b", "'a\\x00b' (text) holds NUL", id="NUL"),
    pytest.param({1, 2}, "a Python set", id="set"),
    pytest.param(frozenset(), "a Python frozenset", id="frozenset"),
    pytest.param(b"raw", "a Python bytes", id="bytes"),
    pytest.param(decimal.Decimal("1.5"), "a Python Decimal", id="Decimal"),
    pytest.param(datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC), "a Python datetime", id="datetime"),
    pytest.param(("a",), "a Python tuple", id="tuple"),
    pytest.param(object(), "a Python object", id="object"),
]


@pytest.mark.parametrize(("value", "shown"), UNSTABLE)
class TestUnstableValues:
    """What is not stable under parse, print and parse is refused at every door."""

    def test_in_a_record(self, ledger: woodrat.Ledger, value: object, shown: str) -> None:
        """A record with such a value is refused, wherever in it the value stands."""
        check_refused(ledger, store([contact(), contact(mood=value)]), ("/1/mood", shown))
        check_refused(ledger, store(contact(deep={"list": [1, value]})), ("/deep/list/1", shown))

    def test_in_what_is_said_about_a_claim(self, ledger: woodrat.Ledger, value: object, shown: str) -> None:
        """Such a value is refused inside `$` too."""
        check_refused(ledger, store(about(remove={"tags": [value]})), ("/0/$/remove/tags/0", shown))

    def test_in_a_correction(self, ledger: woodrat.Ledger, value: object, shown: str) -> None:
        """A correction with such a value is refused, among its fields and its removals."""
        check_refused(
            ledger,
            lambda ledger: ledger.correct(ANA, {"mood": value}, remove={"tags": [value]}, idempotency_key=KEY),
            ("/fields/mood", shown),
            ("/remove/tags/0", shown),
        )

    def test_in_a_relation(self, ledger: woodrat.Ledger, value: object, shown: str) -> None:
        """A relation with such a value is refused, by the verb and inside a record."""
        check_refused(
            ledger,
            lambda ledger: ledger.relate(ANA, "knows", BO, fields={"since": value}, idempotency_key=KEY),
            ("/fields/since", shown),
        )
        link = {"type": "knows", "to": BO, "fields": {"since": value}}
        check_refused(ledger, store(about(relate=[link])), ("/0/$/relate/0/fields/since", shown))


@pytest.mark.parametrize(
    ("key", "path", "shown"),
    [
        pytest.param("a\ud800", "/0/a\\ud800", "half a surrogate pair", id="lone surrogate"),
        pytest.param("a\0", "/0/a\\u0000", "holds NUL", id="NUL"),
        pytest.param("", "/0/", "the field name is empty", id="empty"),
        pytest.param("f" * 257, "/0/" + "f" * 40, "257 bytes", id="too long"),
        pytest.param(42, "/0", "the key 42 (number) is not text", id="number"),
    ],
)
def test_field_names_that_cannot_be_kept(ledger: woodrat.Ledger, key: object, path: str, shown: str) -> None:
    """A field's name is text of bounded length without halves of characters."""
    record: dict[Any, Any] = {**contact(), key: 1}
    check_refused(ledger, store([record]), (path, shown))


def test_paths_can_be_printed_anywhere(ledger: woodrat.Ledger) -> None:
    """A message holds no control characters, whatever the names in the input hold."""
    error = refusal(ledger, store([contact(**{"a\x1b[2Jb": 1})]))
    assert "\x1b" not in str(error)


def test_paths_are_json_pointers(ledger: woodrat.Ledger) -> None:
    """A slash or tilde inside a key is escaped in its path, as RFC 6901 says."""
    check_refused(ledger, store([contact(**{"a/b~c": {1}})]), ("/0/a~1b~0c", "a Python set"))
    check_refused(ledger, store(about(**{"a/b": 1})), ("/0/$/a~1b", "unknown name"))
    check_refused(ledger, store(about(remove={"a/b": 1})), ("/0/$/remove/a~1b", "got 1 (number)"))


@pytest.mark.parametrize(
    ("text", "path", "shown"),
    [
        pytest.param('[{"entity_type":"contact","name":"x","name":"y"}]', "/0/name", "more than once", id="twice"),
        pytest.param('[{"entity_type":"contact","$":{"key":"x","key":"x"}}]', "/0/$/key", "more than once", id="in $"),
        pytest.param('[{"entity_type":"contact","name":"x","n":NaN}]', "/0/n", "NaN", id="NaN"),
        pytest.param('[{"entity_type":"contact","name":"x","n":-Infinity}]', "/0/n", "-Infinity", id="-Infinity"),
        pytest.param('[{"entity_type":"contact","name":"x","n":-0}]', "/0/n", "-0", id="-0"),
        pytest.param(
            '[{"entity_type":"contact","name":"x","n":9007199254740993}]', "/0/n", "9007199254740993", id="big"
        ),
        pytest.param('[{"entity_type":"contact","name":"x","n":1e400}]', "/0/n", "1e400", id="1e400"),
        pytest.param('[{"entity_type":"contact","name":"\\ud800"}]', "/0/name", "surrogate", id="lone surrogate"),
        pytest.param('[{"entity_type":"contact","name":"\\u0000"}]', "/0/name", "NUL", id="NUL"),
        pytest.param('[{"entity_type":"contact",}]', "", "line 1 column", id="malformed"),
        pytest.param("", "", "the end of the text", id="nothing"),
        pytest.param("[" * 200 + "]" * 200, "", "line 1 column 65", id="depth 200"),
        pytest.param("[" * 100_000 + "]" * 100_000, "", "line 1 column 65", id="depth 100000"),
    ],
)
def test_json_text(ledger: woodrat.Ledger, text: str, path: str, shown: str) -> None:
    """JSON text that says nothing stable is refused where it is parsed, before the ledger sees it."""
    check_refused(ledger, lambda ledger: ledger.store(form.parse(text), idempotency_key=KEY), (path, shown))


@pytest.mark.parametrize("depth", [64, 200, 100_000])
def test_values_nested_too_deeply(ledger: woodrat.Ledger, depth: int) -> None:
    """Depth is bounded, at every door, and no depth is enough to overrun the stack."""
    value = nested(depth)
    check_refused(ledger, store([contact(deep=value)]), ("/0/deep" + "/0" * 62, "more than 64"))
    path = "/fields/deep" + "/0" * 62
    check_refused(
        ledger, lambda ledger: ledger.correct(ANA, {"deep": value}, idempotency_key=KEY), (path, "more than 64")
    )
    check_refused(
        ledger,
        lambda ledger: ledger.relate(ANA, "knows", BO, fields={"deep": value}, idempotency_key=KEY),
        (path, "more than 64"),
    )


def test_a_record_beyond_the_size_limit(ledger: woodrat.Ledger) -> None:
    """A record longer than the limit is refused and named by its index, along with the other faults of the call."""
    long = contact(bio="x" * 2 * 1024 * 1024)
    check_refused(ledger, store([contact(), long]), ("/1", "where 1048576 bytes is the limit"))
    check_refused(
        ledger,
        store([contact(), long, {"name": "x"}]),
        ("/1", "where 1048576 bytes is the limit"),
        ("/2/entity_type", "missing"),
    )


def test_a_record_that_only_its_observation_takes_beyond_the_limit(ledger: woodrat.Ledger) -> None:
    """A record that fits by itself, but not with what the ledger adds to it, is refused and named by its index."""
    check_refused(ledger, store([contact(), contact(bio="x" * (2**20 - 80))]), ("/1", "1048576 bytes is the limit"))


# Many records


def test_one_bad_record_among_ten_thousand(ledger: woodrat.Ledger) -> None:
    """One bad record refuses all of a call, and is named by its index."""
    records = [{"entity_type": "contact", "name": f"n{number}"} for number in range(10_000)]
    records[7_654] = {"entity_type": "contact", "name": "n7654", "city": 42}  # type: ignore[dict-item]
    check_refused(ledger, store(records), ("/7654/city", "got 42 (number)"))


def test_two_bad_records_among_ten_thousand(ledger: woodrat.Ledger) -> None:
    """Two bad records are both named, each by its index."""
    records: list[Any] = [{"entity_type": "contact", "name": f"n{number}"} for number in range(10_000)]
    records[17] = {"entity_type": "contact", "name": "n17", "city": 42}
    records[9_999] = {"entity_type": "contact", "city": "Reus"}
    check_refused(ledger, store(records), ("/17/city", "got 42"), ("/9999", "nothing identifies"))


def test_a_message_is_cut_but_its_faults_are_not(ledger: woodrat.Ledger) -> None:
    """A message spells out twenty faults and counts the rest; the faults themselves are all there."""
    error = refusal(ledger, store([contact(city=number) for number in range(1_000)]))
    assert isinstance(error, woodrat.Refused)
    assert [fault.path for fault in error.faults] == [f"/{number}/city" for number in range(1_000)]
    assert str(error).splitlines()[20:] == ["... and 980 more.", "Nothing was written."]


def test_all_kinds_of_faults_at_once(ledger: woodrat.Ledger) -> None:
    """Faults of canonical form, of shape, of schema and of arguments are reported together, in one refusal."""
    records = [
        contact(city=42),
        contact(mood=float("nan")),
        {"name": "x"},
        {"entity_type": "ticket", "number": 9},
    ]
    error = refusal(ledger, store(records, observed_at="someday", priority="high"))
    assert isinstance(error, woodrat.Refused)
    expected = {"/0/city", "/1/mood", "/2/entity_type", "/3/state", "observed_at", "priority"}
    assert {fault.path for fault in error.faults} == expected


# Schemas


def test_several_wrong_fields_in_several_records(ledger: woodrat.Ledger) -> None:
    """Every wrong field of every record is named, with its value."""
    records = [
        contact(city=42, phone=False),
        {"entity_type": "ticket", "number": "x", "state": "lost"},
        contact(),
        {"entity_type": "ticket", "number": 3, "state": "open", "points": -1},
    ]
    check_refused(
        ledger,
        store(records),
        ("/0/city", "contact.city: expected text, got 42 (number)"),
        ("/0/phone", "contact.phone: expected text, got false (boolean)"),
        ("/1/number", 'ticket.number: expected a whole number, got "x" (text)'),
        ("/1/state", 'ticket.state: expected one of "open", "closed", got "lost" (text)'),
        ("/3/points", "ticket.points: expected at least 0, got -1 (number)"),
    )


def test_one_wrong_value_is_one_fault(ledger: woodrat.Ledger) -> None:
    """A value that fits neither its schema nor its policy is reported once."""
    check_refused(ledger, store([contact(tags=None)]), ("/0/tags", "contact.tags: expected an array, got null"))
    check_refused(ledger, store([contact(tags=7)]), ("/0/tags/0", "contact.tags[0]: expected text, got 7 (number)"))


def test_values_that_a_policy_cannot_take(ledger: woodrat.Ledger) -> None:
    """A value that no merge policy of its field could take is refused, even where the schema says nothing."""
    record = {"entity_type": "bag", "name": "b", "things": None, "weight": 1.5, "journal": None}
    check_refused(
        ledger,
        store([record]),
        ("/0/journal", "bag.journal: append takes an array of elements, got null"),
        ("/0/things", "bag.things: union takes an array of elements, got null"),
        ("/0/weight", "bag.weight: sum takes an integer or decimal text"),
    )


def test_a_field_that_a_closed_schema_does_not_have(ledger: woodrat.Ledger) -> None:
    """A closed schema refuses a field it does not have, and says which one was meant."""
    record = {"entity_type": "ticket", "number": 1, "state": "open", "pionts": 3}
    check_refused(ledger, store([record]), ("/0/pionts", "ticket.pionts: unknown field, with 3 (number)"))
    error = refusal(ledger, store([record]))
    assert 'Did you mean "points"?' in str(error)
    check_refused(
        ledger,
        lambda ledger: ledger.correct("ticket/1", {"pionts": 3}, idempotency_key=KEY),
        ("/fields/pionts", "unknown field, with 3 (number)"),
    )


def test_a_missing_required_field(ledger: woodrat.Ledger) -> None:
    """A required field may be left out only where the snapshot already has it."""
    check_refused(
        ledger, store([{"entity_type": "ticket", "number": 2}]), ("/0/state", "ticket.state: is required and has no")
    )
    report = ledger.store([{"entity_type": "ticket", "number": 1, "points": 3}])
    assert ledger.show("ticket/1").fields == {"number": 1, "state": "open", "points": 3}
    assert report.changes[0].entity == "ticket/1"


def test_a_missing_required_field_is_named_by_its_record(ledger: woodrat.Ledger) -> None:
    """The path of a missing field leads to the record that lacks it, whatever stands before it in the call."""
    check_refused(ledger, store({"entity_type": "ticket", "number": 2}), ("/state", "required"))
    twice = [contact(), contact(city="Girona"), {"entity_type": "ticket", "number": 2}]
    check_refused(ledger, store(twice), ("/2/state", "required"))
    related = [contact(**{"$": {"relate": [{"type": "knows", "to": BO}]}}), {"entity_type": "ticket", "number": 2}]
    check_refused(ledger, store(related), ("/1/state", "required"))


INVALID_SCHEMAS = [
    pytest.param({"title": "x", "properties": 5}, "/properties", "expected an object, got 5", id="not a schema"),
    pytest.param(
        {"title": "x", "properties": {"a": {"type": "text"}}}, "/properties/a/type", 'got "text"', id="no such type"
    ),
    pytest.param({"title": "x", "type": "array"}, "/type", 'got "array" (text)', id="not of objects"),
    pytest.param({"properties": {}}, "/title", "does not name its entity type", id="no type"),
    pytest.param({"title": "My Type"}, "/title", '"My Type" is not an entity type', id="bad type"),
    pytest.param(
        {"title": "x", "$schema": "http://json-schema.org/draft-07/schema#"},
        "/$schema",
        'the dialect "http://json-schema.org/draft-07/schema#" is not understood',
        id="other dialect",
    ),
    pytest.param(
        {"title": "x", "properties": {"a": {"$ref": "https://example.org/a.json"}}},
        "/properties/a/$ref",
        '"https://example.org/a.json" points outside the schema',
        id="remote reference",
    ),
    pytest.param(
        {"title": "x", "properties": {"a": {"type": "boolean", "x-woodrat-merge": "sum"}}},
        "/properties/a/x-woodrat-merge",
        "the policy sum takes a whole number, a number or text, which its field never holds",
        id="policy that fits no value",
    ),
    pytest.param(
        {"title": "x", "properties": {"a": {"x-woodrat-merge": "newest"}}},
        "/properties/a/x-woodrat-merge",
        'unknown merge policy "newest"',
        id="unknown policy",
    ),
    pytest.param({"title": "x", "x-woodrat-vresion": 2}, "/x-woodrat-vresion", "unknown keyword", id="unknown keyword"),
    pytest.param(
        {"title": "x", "properties": {"a": {"pattern": "("}}},
        "/properties/a/pattern",
        '"(" is not a regular expression',
        id="bad pattern",
    ),
    pytest.param(
        {**TICKET, "x-woodrat-version": 1, "required": []},
        "/x-woodrat-version",
        "version 1 of ticket is registered with other content",
        id="same version, other content",
    ),
    pytest.param(
        {"title": "contact", "x-woodrat-version": 1},
        "/x-woodrat-version",
        "version 1 of contact is registered with other content",
        id="version of a built-in type",
    ),
    pytest.param({"title": "x", "x-woodrat-version": 0}, "/x-woodrat-version", "got 0 (number)", id="version 0"),
    pytest.param(
        {"title": "x", "properties": {"a": {"default": float("nan")}}},
        "/schema/properties/a/default",
        "nan is not a JSON number",
        id="NaN",
    ),
    pytest.param("contact", "model", 'cannot make a schema from "contact" (text)', id="text"),
    pytest.param(42, "model", "cannot make a schema from 42 (number)", id="number"),
]


@pytest.mark.parametrize(("document", "path", "shown"), INVALID_SCHEMAS)
def test_schemas_that_cannot_be_registered(ledger: woodrat.Ledger, document: object, path: str, shown: str) -> None:
    """A schema that could not be used later is refused when it is registered."""
    check_refused(ledger, lambda ledger: ledger.schemas.register(document, idempotency_key=KEY), (path, shown))


def test_all_faults_of_a_schema_at_once(ledger: woodrat.Ledger) -> None:
    """Every fault of a schema is named in one refusal."""
    document = {
        "title": "x",
        "x-woodrat-identity": [],
        "properties": {"a": {"x-woodrat-merge": "newest"}, "b": {"type": "text"}, "$": {}},
    }
    check_refused(
        ledger,
        lambda ledger: ledger.schemas.register(document, idempotency_key=KEY),
        ("/properties/$", "$ is reserved"),
        ("/properties/a/x-woodrat-merge", '"newest"'),
        ("/properties/b/type", '"text"'),
        ("/x-woodrat-identity", "got 0 elements (array)"),
    )


def test_a_version_that_is_none(ledger: woodrat.Ledger) -> None:
    """A version asked for is a whole number, and agrees with the one the schema states."""
    error = refusal(ledger, lambda ledger: ledger.schemas.register({"title": "x"}, version=True, idempotency_key=KEY))
    assert "version: a version is a whole number from 1 up, got true (boolean)." in str(error)
    stated = {"title": "x", "x-woodrat-version": 2}
    check_refused(
        ledger, lambda ledger: ledger.schemas.register(stated, version=3), ("/x-woodrat-version", "states version 2")
    )


# Times


TIMES = [
    pytest.param("2026-01-01T00:00:00.123456789Z", "9 digits after the second", id="nanoseconds"),
    pytest.param("2016-12-31T23:59:60Z", "is a leap second", id="leap second"),
    pytest.param("2026-01-01T00:00:00", "has no UTC offset", id="no offset"),
    pytest.param("0000-01-01T00:00:00Z", "is in the year 0000", id="year 0000"),
    pytest.param("10000-01-01T00:00:00Z", "more than four digits", id="year 10000"),
    pytest.param("2026-01-01T24:00:00Z", "has the hour 24", id="24:00"),
    pytest.param("2026-02-30T00:00:00Z", "not a day of the calendar", id="February 30"),
    pytest.param("2026-02-30", "not a day of the calendar", id="February 30 alone"),
    pytest.param("soon", '"soon" (text) is not an RFC 3339 timestamp', id="not a date"),
    pytest.param("", '"" (text) is not an RFC 3339 timestamp', id="empty"),
    pytest.param(1767225600, "expected a timestamp as text, got 1767225600 (number)", id="number"),
    pytest.param(True, "expected a timestamp as text, got true (boolean)", id="true"),
]


@pytest.mark.parametrize(("time", "shown"), TIMES)
class TestTimes:
    """A timestamp that cannot be kept exactly is refused, wherever it is stated."""

    @pytest.mark.parametrize("name", ["observed_at", "valid_from"])
    def test_of_a_call_and_of_a_record(self, ledger: woodrat.Ledger, time: object, shown: str, name: str) -> None:
        """Both times of an observation are checked as arguments and inside `$`."""
        check_refused(ledger, store([contact()], **{name: time}), (name, shown))
        check_refused(ledger, store(about(**{name: time})), (f"/0/$/{name}", shown))
        check_refused(
            ledger,
            lambda ledger: ledger.correct(ANA, {"city": "Girona"}, idempotency_key=KEY, **{name: time}),
            (name, shown),
        )

    def test_of_other_verbs(self, ledger: woodrat.Ledger, time: object, shown: str) -> None:
        """Every verb that takes a time checks it."""
        observation = ledger.observations(ANA).items[0].observation.id
        given = {"observed_at": time, "idempotency_key": KEY}
        calls: list[Call] = [
            lambda ledger: ledger.retract(observation, **given),
            lambda ledger: ledger.delete(ANA, **given),
            lambda ledger: ledger.restore(ANA, **given),
            lambda ledger: ledger.relate(ANA, "knows", BO, **given),
            lambda ledger: ledger.merge(ANA, BO, **given),
            lambda ledger: ledger.split(ANA, **given),
        ]
        for call in calls:
            check_refused(ledger, call, ("observed_at", shown))

    def test_of_a_read(self, ledger: woodrat.Ledger, time: object, shown: str) -> None:
        """A read at a time that names no moment is refused."""
        check_refused(ledger, lambda ledger: ledger.at(valid_at=time), ("valid_at", shown))
        check_refused(ledger, lambda ledger: ledger.timeline(since=time), ("since", shown))
        check_refused(ledger, lambda ledger: ledger.timeline(until=time), ("until", shown))


@pytest.mark.parametrize("time", ["2025-12-30", "yesterday"])
@pytest.mark.parametrize("name", ["observed_at", "valid_from"])
def test_days_are_times_of_a_call_and_of_a_record(ledger: woodrat.Ledger, time: str, name: str) -> None:
    """A day is a time where it is an argument, and where it stands in a record."""
    meant = resolve(time, ledger.context.clock.now())
    assert meant is not None
    times: dict[str, Any] = {name: time}
    for records, said in (([contact(city="Girona")], times), (about(**times), {})):
        (id,) = ledger.store(records, **said).observations
        (stored,) = [item.observation for item in ledger.observations(ANA) if item.observation.id == id]
        assert getattr(stored, name) == meant


def test_seen_more_than_five_minutes_ahead(ledger: woodrat.Ledger) -> None:
    """An observed_at ahead of the log by more than five minutes is refused; valid_from may lie ahead."""
    late = "2026-01-01T00:05:30Z"
    shown = "2026-01-01T00:05:30.000000Z is more than five minutes ahead of the log"
    check_refused(ledger, store([contact()], observed_at=late), ("observed_at", shown))
    check_refused(ledger, store(about(observed_at=late)), ("/0/$/observed_at", shown))
    given = {"observed_at": late, "idempotency_key": KEY}
    check_refused(ledger, lambda ledger: ledger.correct(ANA, {"city": "Girona"}, **given), ("observed_at", shown))
    check_refused(ledger, lambda ledger: ledger.delete(ANA, **given), ("observed_at", shown))
    observation = ledger.observations(ANA).items[0].observation.id
    check_refused(ledger, lambda ledger: ledger.retract(observation, **given), ("observed_at", shown))
    assert ledger.store(about(observed_at="2026-01-01T00:05:00Z")).observations
    assert ledger.store([contact(city="Reus")], valid_from="2027-01-01T00:00:00Z").observations


def test_every_verb_bounds_observed_at(ledger: woodrat.Ledger) -> None:
    """Relations, too, cannot have been seen more than five minutes ahead of the log."""
    given = {"observed_at": "2026-01-02T00:00:00Z", "idempotency_key": KEY}
    check_refused(ledger, lambda ledger: ledger.relate(ANA, "knows", BO, **given), ("observed_at", "five minutes"))
    check_refused(ledger, lambda ledger: ledger.merge(ANA, BO, **given), ("observed_at", "five minutes"))
    ledger.merge(ANA, BO)
    check_refused(ledger, lambda ledger: ledger.split(ANA, **given), ("observed_at", "five minutes"))


# Names


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param({"tenant": ""}, [("tenant", '"" (text) is not a tenant')], id="empty tenant"),
        pytest.param({"tenant": "a/b"}, [("tenant", '"a/b" (text) is not a tenant')], id="slash"),
        pytest.param({"tenant": "a\nb"}, [("tenant", "'a\\nb' (text) is not a tenant")], id="control character"),
        pytest.param({"tenant": 42}, [("tenant", "got 42 (number)")], id="number"),
        pytest.param({"tenant": "t" * 129}, [("tenant", "129 characters")], id="too long"),
        pytest.param({"agent": ""}, [("agent", "the agent is empty")], id="empty agent"),
        pytest.param({"agent": "a\x7f"}, [("agent", "U+007F")], id="control character in agent"),
        pytest.param({"agent": None}, [("agent", "got null")], id="no agent"),
        pytest.param({"tenant": "", "agent": ""}, [("tenant", '""'), ("agent", "empty")], id="both"),
    ],
)
def test_tenants_and_agents(given: dict[str, Any], expected: list[tuple[str, str]]) -> None:
    """A ledger is opened only for a tenant and an agent that can be named everywhere."""
    with pytest.raises(woodrat.Refused) as refused:
        woodrat.open(":memory:", clock=FixedClock(), **given)
    assert [fault.path for fault in refused.value.faults] == [path for path, _ in expected]
    for fault, (_, shown) in zip(refused.value.faults, expected, strict=True):
        assert shown in fault.problem


def test_a_place_no_engine_keeps() -> None:
    """A place that no engine keeps is refused, and nothing is opened."""
    with pytest.raises(woodrat.Refused) as refused:
        woodrat.open("ftp://example.org", clock=FixedClock())
    assert [fault.path for fault in refused.value.faults] == ["db"]
    assert "ftp://example.org" in str(refused.value)
    assert "Nothing was opened." in str(refused.value)


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        pytest.param("", "the idempotency key is empty", id="empty"),
        pytest.param("k" * 257, "257 bytes in UTF-8, where 256 is the limit", id="too long"),
        pytest.param("é" * 129, "258 bytes in UTF-8", id="too long in bytes"),
        pytest.param("a\nb", "U+000A", id="control character"),
        pytest.param("\ud800", "half a surrogate pair", id="lone surrogate"),
        pytest.param(42, "got 42 (number)", id="number"),
    ],
)
def test_idempotency_keys(ledger: woodrat.Ledger, key: object, shown: str) -> None:
    """An idempotency key is text of bounded length, for every verb that takes one."""
    check_refused(ledger, store([contact()], idempotency_key=key), ("idempotency_key", shown))
    calls: list[Call] = [
        lambda ledger: ledger.correct(ANA, {"city": "Girona"}, idempotency_key=key),
        lambda ledger: ledger.delete(ANA, idempotency_key=key),
        lambda ledger: ledger.schemas.register({"title": "x"}, idempotency_key=key),
        lambda ledger: ledger.tag("x", idempotency_key=key),
        lambda ledger: ledger.sources.add(b"x", idempotency_key=key),
    ]
    for call in calls:
        check_refused(ledger, call, ("idempotency_key", shown))


def test_the_same_key_with_other_content(ledger: woodrat.Ledger) -> None:
    """A key that stands for one request is refused for any other, of the same verb or another."""
    shown = "'first' was used before, for another request"
    check_refused(ledger, store([contact(city="Reus")], idempotency_key="first"), ("idempotency_key", shown))
    check_refused(ledger, lambda ledger: ledger.delete(ANA, idempotency_key="first"), ("idempotency_key", shown))


# What is said about a claim


@pytest.mark.parametrize(
    ("parts", "path", "shown"),
    [
        pytest.param({"key": "a\nb"}, "/key", "'a\\nb' (text) holds the control character U+000A", id="control"),
        pytest.param({"key": "a\x85b"}, "/key", "U+0085", id="C1 control"),
        pytest.param({"key": "k" * 1025}, "/key", "1025 bytes in UTF-8, where 1024 is the limit", id="long key"),
        pytest.param({"key": ""}, "/key", "the key is empty", id="empty key"),
        pytest.param({"key": 42}, "/key", "expected the key as text, got 42 (number)", id="number as key"),
        pytest.param({"kye": "x"}, "/kye", "unknown name", id="unknown key"),
        pytest.param({"agent": "someone"}, "/agent", "unknown name", id="agent"),
        pytest.param({"priority": 1.5}, "/priority", "expected an integer, got 1.5 (number)", id="priority 1.5"),
        pytest.param({"priority": "high"}, "/priority", 'got "high" (text)', id="priority high"),
        pytest.param({"priority": True}, "/priority", "got true (boolean)", id="priority true"),
        pytest.param({"confidence": 2}, "/confidence", "got 2 (number)", id="confidence 2"),
        pytest.param({"confidence": -0.1}, "/confidence", "got -0.1 (number)", id="confidence -0.1"),
        pytest.param({"confidence": True}, "/confidence", "got true (boolean)", id="confidence true"),
        pytest.param({"reason": ""}, "/reason", 'got "" (text)', id="empty reason"),
        pytest.param({"reason": "r" * 4097}, "/reason", "rrr…", id="long reason"),
        pytest.param({"source": "src_none"}, "/source", 'no source "src_none" (text) here', id="unknown source"),
        pytest.param({"source": 42}, "/source", "got 42 (number)", id="number as source"),
        pytest.param({"remove": {"city": ["Reus"]}}, "/remove/city", "merges by latest", id="remove without union"),
        pytest.param({"remove": {"tags": "vip"}}, "/remove/tags", 'got "vip" (text)', id="remove text"),
        pytest.param({"remove": {"tags": []}}, "/remove/tags", "got 0 elements (array)", id="remove nothing"),
        pytest.param({"remove": ["vip"]}, "/remove", "got 1 element (array)", id="remove a list"),
        pytest.param({"relate": {"type": "knows"}}, "/relate", "got 1 key (object)", id="relate an object"),
        pytest.param({"relate": [{"type": "knows"}]}, "/relate/0", "got 1 key (object)", id="relate without end"),
        pytest.param({"relate": [{"type": "Knows", "to": BO}]}, "/relate/0/type", '"Knows"', id="relation type"),
        pytest.param({"relate": [{"type": "knows", "to": "Bo"}]}, "/relate/0/to", '"Bo" (text)', id="no reference"),
        pytest.param({"relate": [{"type": "knows", "to": 42}]}, "/relate/0/to", "got 42 (number)", id="number as end"),
        pytest.param(
            {"relate": [{"type": "knows", "to": BO, "key": 42}]}, "/relate/0/key", "got 42 (number)", id="relation key"
        ),
        pytest.param(
            {"relate": [{"type": "knows", "to": BO, "fields": 42}]}, "/relate/0/fields", "got 42", id="relation fields"
        ),
        pytest.param(
            {"relate": [{"type": "knows", "to": NOBODY}]},
            "/relate/0/to",
            "contact/Nobody is not known, nor stated in this call",
            id="relation to nobody",
        ),
    ],
)
def test_parts_of_a_claim(ledger: woodrat.Ledger, parts: dict[str, Any], path: str, shown: str) -> None:
    """What `$` says is checked part by part, and an unknown part is refused rather than ignored."""
    check_refused(ledger, store([contact(), *about(**parts)]), (f"/1/${path}", shown))


@pytest.mark.parametrize(
    ("dollar", "shown"),
    [
        pytest.param("key", 'got "key" (text)', id="text"),
        pytest.param(["key"], "got 1 element (array)", id="list"),
        pytest.param(True, "got true (boolean)", id="true"),
        pytest.param(None, "got null", id="null"),
    ],
)
def test_dollar_is_an_object(ledger: woodrat.Ledger, dollar: object, shown: str) -> None:
    """What is said about a claim is an object, and nothing else."""
    check_refused(ledger, store([contact(**{"$": dollar})]), ("/0/$", shown))


def test_several_parts_at_once(ledger: woodrat.Ledger) -> None:
    """Every wrong part of `$` is named in one refusal, for every record."""
    parts = {"kye": 1, "priority": 1.5, "observed_at": "soon", "confidence": 2}
    error = refusal(ledger, store([*about(**parts), *about(key="")]))
    assert isinstance(error, woodrat.Refused)
    found = [fault.path for fault in error.faults]
    assert sorted(found[:4]) == ["/0/$/confidence", "/0/$/kye", "/0/$/observed_at", "/0/$/priority"]
    assert found[4:] == ["/1/$/key"]


@pytest.mark.parametrize(
    ("given", "path", "shown"),
    [
        pytest.param({"priority": 1.5}, "priority", "expected an integer, got 1.5 (number)", id="priority 1.5"),
        pytest.param({"priority": "high"}, "priority", 'got "high" (text)', id="priority high"),
        pytest.param({"priority": True}, "priority", "got true (boolean)", id="priority true"),
        pytest.param({"priority": 2**53}, "priority", "got 9007199254740992 (number)", id="priority 2**53"),
        pytest.param({"source": "src_none"}, "source", 'no source "src_none" (text) here', id="unknown source"),
        pytest.param({"source": 42}, "source", "42 (number)", id="number as source"),
        pytest.param({"run": "x"}, "run", 'got "x" (text)', id="no run"),
        pytest.param({"run": "run_\ud800"}, "run", "run_\\ud800", id="surrogate in run"),
        pytest.param({"step": 1}, "step", "got 1 (number)", id="step without run"),
        pytest.param({"saw": ["x"]}, "saw/0", '"x" (text) is not an observation', id="saw nonsense"),
        pytest.param({"saw": [{1}]}, "saw/0", "set", id="saw a set"),
        pytest.param({"saw": ["\ud800"]}, "saw/0", "half a surrogate pair", id="saw half a character"),
        pytest.param({"saw": 42}, "saw", "42 (number)", id="saw a number"),
        pytest.param({"if_version": "x"}, "if_version", '"x" (text)', id="text as version"),
        pytest.param({"if_version": {1}}, "if_version", "set", id="set as version"),
        pytest.param({"if_version": []}, "if_version", "expected a whole number", id="no version"),
        pytest.param({"if_version": [1, "2"]}, "if_version", "expected a whole number", id="text among versions"),
        pytest.param({"if_version": {"nonsense": 1}}, "if_version", '"nonsense" (text)', id="version of nonsense"),
    ],
)
def test_arguments_of_store(ledger: woodrat.Ledger, given: dict[str, Any], path: str, shown: str) -> None:
    """Arguments are checked as records are, whatever Python type they have."""
    check_refused(ledger, store([contact()], **given), (path, shown))


def test_claims_seen_that_are_not_known(ledger: woodrat.Ledger) -> None:
    """An observation said to have been seen has to be here."""
    error = refusal(ledger, store([contact()], saw=["obs_" + "a" * 26]), woodrat.NotFound)
    assert error.details == {"observation": "obs_" + "a" * 26}


# Conditions


def test_an_outdated_version(ledger: woodrat.Ledger) -> None:
    """A condition on a version that another write moved past is outdated, and says both versions."""
    version = ledger.show(ANA).version
    ledger.store([contact(city="Girona")])
    now = ledger.show(ANA).version
    error = refusal(ledger, store([contact(city="Reus")], if_version=version), woodrat.Outdated)
    assert error.details == {"entity": ANA, "expected": version, "actual": now}
    refusal(ledger, store([contact(city="Reus")], if_version={ANA: version}), woodrat.Outdated)
    refusal(ledger, store([contact(city="Reus")], if_version={ANA: None}), woodrat.Outdated)
    refusal(
        ledger,
        lambda ledger: ledger.correct(ANA, {"city": "Reus"}, if_version=version, idempotency_key=KEY),
        woodrat.Outdated,
    )
    error = refusal(ledger, store([contact(name="New")], if_version=4), woodrat.Outdated)
    assert error.details == {"entity": "contact/New", "expected": 4, "actual": None}


def test_what_must_be_new_or_known(ledger: woodrat.Ledger) -> None:
    """`new` and `known` are said of all that a call stores; of several versions one must hold."""
    now = ledger.show(ANA).version
    both = [contact(name="New"), contact(city="Reus")]
    error = refusal(ledger, store(both, if_version="new"), woodrat.Outdated)
    assert error.details == {"entity": ANA, "expected": "new", "actual": now}
    error = refusal(ledger, store(both, if_version="known"), woodrat.Outdated)
    assert error.details == {"entity": "contact/New", "expected": "known", "actual": None}
    error = refusal(ledger, store([contact()], if_version=[now + 1, now + 2]), woodrat.Outdated)
    assert error.details == {"entity": ANA, "expected": [now + 1, now + 2], "actual": now}
    assert f"at version {now + 1} or {now + 2}" in str(error)
    ledger.correct(ANA, {"city": "Reus"}, if_version=(now, now + 1))
    ledger.correct(ANA, {"city": "Vic"}, if_version="known")
    ledger.store([contact(name="New")], if_version="new")
    ledger.store(both, if_version="known")


def test_one_version_for_several_entities(ledger: woodrat.Ledger) -> None:
    """One version cannot be the condition of a call that speaks of several entities."""
    records = [contact(), contact(name="Bo")]
    check_refused(ledger, store(records, if_version=1), ("if_version", "one version for 2 entities"))


# The other verbs


def test_retracting_nothing(ledger: woodrat.Ledger) -> None:
    """A retraction names at least one observation."""
    check_refused(ledger, lambda ledger: ledger.retract([], idempotency_key=KEY), ("observations", "is empty"))


def test_retracting_what_is_no_observation(ledger: woodrat.Ledger) -> None:
    """Text that is no observation's id is refused, each by its index; an id that is not here is not found."""
    check_refused(
        ledger,
        lambda ledger: ledger.retract(["nonsense", ledger.observations(ANA).items[0].observation.id, ""]),
        ("observations/0", '"nonsense" (text) is not an observation'),
        ("observations/2", '"" (text) is not an observation'),
    )
    for unknown in ("obs_" + "a" * 26, "obs_" + "a" * 52):
        error = refusal(ledger, lambda ledger, id=unknown: ledger.retract(id), woodrat.NotFound)  # type: ignore[misc]
        assert unknown in str(error)
        assert "Nothing was written." in str(error)


def test_joining_what_cannot_be_one(ledger: woodrat.Ledger) -> None:
    """An entity is not merged with itself, with one of another type, or with an unknown one."""
    check_refused(ledger, lambda ledger: ledger.merge(ANA, ANA), ("same_as", f"{ANA} is named twice"))
    check_refused(ledger, lambda ledger: ledger.merge(ANA, "company/Acme"), ("same_as", "have different types"))
    refusal(ledger, lambda ledger: ledger.merge(ANA, NOBODY), woodrat.NotFound)
    refusal(ledger, lambda ledger: ledger.merge(NOBODY, ANA), woodrat.NotFound)


def test_joining_inside_a_record(ledger: woodrat.Ledger) -> None:
    """A same_as is not stated inside a record either: whatever its end, it is refused."""
    for end in ("company/Acme", ANA, BO):
        link = {"type": "same_as", "to": end}
        check_refused(ledger, store(about(relate=[link])), ("/0/$/relate/0/type", "same_as"))


@pytest.mark.parametrize("field", ["weight", "journal"])
def test_correcting_a_sum_or_a_list_without_saying_which_part(ledger: woodrat.Ledger, field: str) -> None:
    """Under sum and append a correction names exactly one original; none and two are refused."""
    value: object = 3 if field == "weight" else ["unpacked"]
    one = ledger.observations("bag/b").items[0].observation.id
    two = ledger.store([{"entity_type": "bag", "name": "b", "weight": 2, "journal": ["sent"]}]).observations[0]

    def correct(replaces: object) -> Call:
        return lambda ledger: ledger.correct("bag/b", {field: value}, replaces=replaces, idempotency_key=KEY)

    check_refused(ledger, correct(None), ("replaces", "replaces one observation, and 0 are named"))
    check_refused(ledger, correct([one, two]), ("replaces", "replaces one observation, and 2 are named"))
    check_refused(ledger, correct("nonsense"), ("replaces/0", '"nonsense" (text)'), ("replaces", "0 are named"))
    refusal(ledger, correct("obs_" + "a" * 26), woodrat.NotFound)


def test_correcting_a_sum_by_an_observation_of_another_entity(ledger: woodrat.Ledger) -> None:
    """A correction cannot stand in for what was said of another entity: it would have no effect."""
    other = ledger.observations(BO).items[0].observation.id
    error = refusal(ledger, lambda ledger: ledger.correct(ANA, {"interactions": 9}, replaces=other))
    assert "replaces" in str(error)


def test_corrections_that_do_not_fit(ledger: woodrat.Ledger) -> None:
    """A correction is checked as a record is: unknown entities, nothing to say, and wrong types are refused."""
    refusal(ledger, lambda ledger: ledger.correct(NOBODY, {"city": "Reus"}, idempotency_key=KEY), woodrat.NotFound)
    check_refused(ledger, lambda ledger: ledger.correct(ANA, idempotency_key=KEY), ("fields", "nothing to correct"))
    check_refused(ledger, lambda ledger: ledger.correct(ANA, {}), ("fields", "nothing to correct"))
    check_refused(
        ledger,
        lambda ledger: ledger.correct(ANA, {"city": 42, "phone": True}, idempotency_key=KEY),
        ("/fields/city", "contact.city: expected text, got 42 (number)"),
        ("/fields/phone", "contact.phone: expected text, got true (boolean)"),
    )
    check_refused(
        ledger,
        lambda ledger: ledger.correct(ANA, remove={"city": ["Barcelona"]}),
        ("/remove/city", "contact.city: only union and by_key take elements out"),
    )


def test_corrections_that_a_policy_cannot_take(ledger: woodrat.Ledger) -> None:
    """A correction that its field's policy cannot take would have no effect, and is refused."""
    one = ledger.observations("bag/b").items[0].observation.id
    check_refused(
        ledger,
        lambda ledger: ledger.correct("bag/b", {"things": None, "weight": 1.5}, replaces=one, idempotency_key=KEY),
        ("/fields/things", "union takes an array of elements, got null"),
        ("/fields/weight", "sum takes an integer or decimal text"),
    )


@pytest.mark.parametrize("name", ["entity_type", "$"])
def test_reserved_names_are_never_fields(ledger: woodrat.Ledger, name: str) -> None:
    """What a record reserves cannot be made a field by a correction or a relation."""
    error = refusal(ledger, lambda ledger: ledger.correct(ANA, {name: "x"}, idempotency_key=KEY))
    assert name in str(error)
    error = refusal(ledger, lambda ledger: ledger.relate(ANA, "knows", BO, fields={name: "x"}, idempotency_key=KEY))
    assert name in str(error)


def test_an_audit_event_stays_as_it_was_written(ledger: woodrat.Ledger) -> None:
    """An audit event is never corrected, retracted, deleted or restored."""
    event = "audit_event/1"
    observation = ledger.observations(event).items[0].observation.id
    check_refused(
        ledger,
        lambda ledger: ledger.correct(event, {"action": "x"}),
        ("entity", "audit_event/1: an audit_event is never corrected"),
    )
    check_refused(ledger, lambda ledger: ledger.retract(observation), ("entity", "is never retracted"))
    check_refused(ledger, lambda ledger: ledger.delete(event), ("entity", "is never deleted"))
    check_refused(ledger, lambda ledger: ledger.restore(event), ("entity", "is never restored"))


def test_relating_what_is_not_known(ledger: woodrat.Ledger) -> None:
    """Relations lead from known entities to known entities."""
    for call in (
        lambda ledger: ledger.relate(ANA, "knows", NOBODY, idempotency_key=KEY),
        lambda ledger: ledger.relate(NOBODY, "knows", ANA, idempotency_key=KEY),
    ):
        error = refusal(ledger, call, woodrat.NotFound)
        assert error.details["entity"] == NOBODY
    check_refused(ledger, lambda ledger: ledger.relate(ANA, "Knows", BO), ("type", '"Knows" (text)'))


def test_relations_are_checked_against_their_schema(ledger: woodrat.Ledger) -> None:
    """What is said about a relation fits the schema of its type, or is refused before anything is written."""
    ledger.schemas.register({"title": "works_at", "properties": {"since": {"type": "string"}}})
    error = refusal(ledger, lambda ledger: ledger.relate(ANA, "works_at", "company/Acme", fields={"since": 42}))
    assert "works_at.since: expected text, got 42 (number)" in str(error)
    link = {"type": "works_at", "to": "company/Acme", "fields": {"since": 42}}
    error = refusal(ledger, store(about(relate=[link])))
    assert "works_at.since: expected text, got 42 (number)" in str(error)


def test_the_ends_of_a_relation_are_not_restated(ledger: woodrat.Ledger) -> None:
    """The ends of a relation are its own; fields that say otherwise are refused, never overwritten silently."""
    error = refusal(ledger, lambda ledger: ledger.relate(ANA, "knows", BO, fields={"from": "contact/Eve"}))
    assert "from" in str(error)


def test_splitting_what_is_not_joined(ledger: woodrat.Ledger) -> None:
    """Only what is joined can be parted."""
    error = refusal(ledger, lambda ledger: ledger.split(ANA, idempotency_key=KEY), woodrat.NotFound)
    assert "not merged with anything" in str(error)
    error = refusal(ledger, lambda ledger: ledger.split(ANA, BO), woodrat.NotFound)
    assert f"{ANA} is not merged with {BO}" in str(error)
    refusal(ledger, lambda ledger: ledger.split(NOBODY), woodrat.NotFound)


@pytest.mark.parametrize(
    "call",
    [
        pytest.param(lambda ledger: ledger.delete(NOBODY, idempotency_key=KEY), id="delete"),
        pytest.param(lambda ledger: ledger.restore(NOBODY, idempotency_key=KEY), id="restore"),
        pytest.param(lambda ledger: ledger.show(NOBODY), id="show"),
        pytest.param(lambda ledger: ledger.history(NOBODY), id="history"),
        pytest.param(lambda ledger: ledger.blame(NOBODY), id="blame"),
        pytest.param(lambda ledger: ledger.observations(NOBODY), id="observations"),
        pytest.param(lambda ledger: ledger.related(NOBODY), id="related"),
        pytest.param(lambda ledger: ledger.show("ent_" + "a" * 26), id="unknown id"),
        pytest.param(lambda ledger: ledger.blame(ANA, "shoe_size"), id="unknown field"),
        pytest.param(lambda ledger: ledger.at(0).show(BO), id="not known yet"),
        pytest.param(lambda ledger: ledger.at(99), id="position beyond the head"),
        pytest.param(lambda ledger: ledger.at("99"), id="position beyond the head, as text"),
        pytest.param(lambda ledger: ledger.at(-2), id="position before all"),
        pytest.param(lambda ledger: ledger.at("@release-4"), id="unknown tag"),
        pytest.param(lambda ledger: ledger.diff(0, 99), id="diff beyond the head"),
        pytest.param(lambda ledger: ledger.tag("x", 99), id="tag beyond the head"),
        pytest.param(lambda ledger: ledger.schemas.show("boat"), id="schema"),
        pytest.param(lambda ledger: ledger.sources.content("src_" + "a" * 26), id="source"),
        pytest.param(lambda ledger: ledger.interpretations.start("src_" + "a" * 26).__enter__(), id="interpretation"),
    ],
)
def test_what_is_not_there(ledger: woodrat.Ledger, call: Call) -> None:
    """What is not there is not found, and the message says what to do instead."""
    error = refusal(ledger, call, woodrat.NotFound)
    what, outcome, advice = str(error).partition(" Nothing was ")
    assert what
    assert outcome
    assert advice.split(".", 1)[1].strip(), f"no advice: {error}"
    assert error.details


@pytest.mark.parametrize(
    ("reference", "shown"),
    [
        pytest.param("Nobody", '"Nobody"', id="no slash"),
        pytest.param("", 'got "" (text)', id="empty"),
        pytest.param("contact/", "the key is empty", id="no key"),
        pytest.param("/Ana", '"" (text) is not a type', id="no type"),
        pytest.param("Contact/Ana", '"Contact" (text) is not a type', id="bad type"),
        pytest.param("contact/a\nb", "U+000A", id="control character"),
        pytest.param(42, "got 42 (number)", id="number"),
        pytest.param(None, "got null", id="null"),
    ],
)
def test_references(ledger: woodrat.Ledger, reference: object, shown: str) -> None:
    """Every verb that takes a reference refuses what is none, and shows it."""
    calls: list[Call] = [
        lambda ledger: ledger.show(reference),
        lambda ledger: ledger.history(reference),
        lambda ledger: ledger.related(reference),
        lambda ledger: ledger.correct(reference, {"city": "Reus"}, idempotency_key=KEY),
        lambda ledger: ledger.delete(reference, idempotency_key=KEY),
        lambda ledger: ledger.relate(ANA, "knows", reference, idempotency_key=KEY),
        lambda ledger: ledger.merge(reference, ANA, idempotency_key=KEY),
        lambda ledger: ledger.split(reference, idempotency_key=KEY),
    ]
    for call in calls:
        error = refusal(ledger, call)
        assert shown in str(error)


@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        pytest.param("someday", '"someday" (text)', id="a word"),
        pytest.param("2026-01-01T00:00:00", "has no UTC offset", id="no offset"),
        pytest.param("", '"" (text)', id="empty"),
        pytest.param(1.5, "1.5 (number)", id="half a position"),
        pytest.param(True, "true (boolean)", id="true"),
        pytest.param(None, "null", id="null"),
        pytest.param([1], "1 element (array)", id="list"),
    ],
)
def test_moments(ledger: woodrat.Ledger, moment: object, shown: str) -> None:
    """What names no moment is refused by every verb that takes one."""
    calls: list[Call] = [
        lambda ledger: ledger.diff(moment, "now"),
        lambda ledger: ledger.diff("now", moment),
        lambda ledger: ledger.tag("x", moment),
    ]
    for call in calls:
        check_refused(ledger, call, ("moment", shown))


def test_a_word_that_is_no_moment_is_told_all_there_are(ledger: woodrat.Ledger) -> None:
    """A word in place of a moment is answered with everything a moment can be, not with times alone."""
    error = refusal(ledger, lambda ledger: ledger.at("someday"))
    assert '"someday" (text) is not a moment' in str(error)
    assert all(form in str(error) for form in ("a position", "2024-05-01T14:00:00Z", "now", "@name", "a run"))


@pytest.mark.parametrize("moment", [pytest.param("9" * 5000, id="text"), pytest.param(10**5000, id="number")])
def test_positions_of_many_digits(ledger: woodrat.Ledger, moment: object) -> None:
    """A position beyond the head is not found, however many digits it has."""
    error = refusal(ledger, lambda ledger: ledger.at(moment), woodrat.NotFound)
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("call", "path", "shown"),
    [
        pytest.param(lambda ledger: ledger.correct(ANA, "city=Reus"), "fields", '"city=Reus" (text)', id="fields text"),
        pytest.param(lambda ledger: ledger.correct(ANA, ["city"]), "fields", "1 element (array)", id="fields list"),
        pytest.param(
            lambda ledger: ledger.correct(ANA, remove={"tags": "vip"}), "/remove/tags", '"vip" (text)', id="remove text"
        ),
        pytest.param(
            lambda ledger: ledger.correct(ANA, remove={"tags": 42}), "/remove/tags", "42 (number)", id="remove number"
        ),
        pytest.param(
            lambda ledger: ledger.correct(ANA, remove=["tags"]), "remove", "1 element (array)", id="remove list"
        ),
        pytest.param(
            lambda ledger: ledger.correct(ANA, {"city": "Reus"}, replaces=42), "replaces", "42 (number)", id="replaces"
        ),
        pytest.param(
            lambda ledger: ledger.correct(ANA, {"city": "Reus"}, source=42), "source", "42 (number)", id="source"
        ),
        pytest.param(
            lambda ledger: ledger.correct(ANA, {"city": "Reus"}, reason="\ud800"), "reason", "\\ud800", id="reason"
        ),
        pytest.param(lambda ledger: ledger.delete(ANA, reason="\ud800"), "reason", "\\ud800", id="reason of a delete"),
        pytest.param(lambda ledger: ledger.delete(ANA, reason=42), "reason", "42 (number)", id="number as reason"),
        pytest.param(lambda ledger: ledger.retract(None), "observations", "null", id="retract null"),
        pytest.param(lambda ledger: ledger.retract(42), "observations", "42 (number)", id="retract a number"),
        pytest.param(lambda ledger: ledger.relate(ANA, "knows", BO, key=42), "key", "42 (number)", id="relation key"),
        pytest.param(lambda ledger: ledger.relate(ANA, "knows", BO, key=""), "key", "empty", id="empty relation key"),
        pytest.param(
            lambda ledger: ledger.relate(ANA, "knows", BO, fields="x"), "fields", '"x" (text)', id="relation fields"
        ),
        pytest.param(lambda ledger: ledger.tag("a/b"), "name", '"a/b" (text)', id="tag with a slash"),
        pytest.param(lambda ledger: ledger.tag(""), "name", '"" (text)', id="empty tag"),
        pytest.param(lambda ledger: ledger.related(ANA, depth=0), "depth", "0 (number)", id="depth 0"),
        pytest.param(lambda ledger: ledger.related(ANA, depth=True), "depth", "true (boolean)", id="depth true"),
        pytest.param(lambda ledger: ledger.prove_order(shuffles=0), "shuffles", "0 (number)", id="no shuffles"),
        pytest.param(lambda ledger: ledger.sources.add("/no/such/file"), "content", "/no/such/file", id="no file"),
        pytest.param(lambda ledger: ledger.sources.add("a\0b"), "content", "a\\x00b", id="NUL in a path"),
        pytest.param(lambda ledger: ledger.sources.add(42), "content", "42 (number)", id="number as content"),
        pytest.param(lambda ledger: ledger.sources.add(b"x", name="a\nb"), "name", "U+000A", id="name of a source"),
        pytest.param(lambda ledger: ledger.sources.content(42), "source", "42 (number)", id="number as source id"),
    ],
)
def test_arguments_of_other_verbs(ledger: woodrat.Ledger, call: Call, path: str, shown: str) -> None:
    """An argument of a wrong kind is refused by name, and never taken apart into something else."""
    check_refused(ledger, call, (path, shown))


def test_a_tag_is_not_called_a_tenant(ledger: woodrat.Ledger) -> None:
    """A refusal speaks of the thing that was sent."""
    error = refusal(ledger, lambda ledger: ledger.tag("a/b"))
    assert "tenant" not in str(error)


@pytest.mark.parametrize(
    ("given", "path", "shown"),
    [
        pytest.param({"parameters": {"t": {1}}}, "/parameters/t", "a Python set", id="set in parameters"),
        pytest.param({"configuration": {"t": float("nan")}}, "/configuration/t", "nan", id="NaN in configuration"),
        pytest.param({"prompt": "\ud800"}, "prompt", "\\ud800", id="surrogate in prompt"),
        pytest.param({"model": 42}, "model", "42 (number)", id="number as model"),
    ],
)
def test_interpretations(ledger: woodrat.Ledger, given: dict[str, Any], path: str, shown: str) -> None:
    """A reading that could not be recorded does not begin."""
    source = ledger.sources.add(b"content")
    check_refused(ledger, lambda ledger: ledger.interpretations.start(source, **given).__enter__(), (path, shown))


def test_an_error_inside_an_interpretation_stays_itself(ledger: woodrat.Ledger) -> None:
    """Whatever its text holds, an error inside a reading reaches the caller, and the reading ends with status error."""
    source = ledger.sources.add(b"content")
    with pytest.raises(ValueError, match="bad byte"), ledger.interpretations.start(source):
        raise ValueError("bad byte \0 \ud800")
    assert [reading.status for reading in ledger.interpretations.list()] == ["error"]


# Policies whose code is not here


def _longest(a: Any, b: Any) -> Any:
    return max(a, b, key=lambda text: (len(text), text))


LONGEST: Policy = woodrat.own_policy(
    "longest", 1, lift=lambda claim: claim.value, join=_longest, json_types=["string"], code="a" * 64
)


def test_a_policy_that_is_not_loaded() -> None:
    """Without a type's own policy, nothing of that type is folded: reads and writes are unavailable, others are not."""
    engine = InMemoryEngine()

    def open_with(*policies: Policy) -> woodrat.Ledger:
        return woodrat.Ledger(engine, tenant="t", agent="crm", clock=FixedClock(), policies=registry(policies))

    full = open_with(LONGEST)
    motto = {"type": "string", "x-woodrat-merge": LONGEST.name.to_json()}
    full.schemas.register({"title": "club", "properties": {"motto": motto}})
    full.store([{"entity_type": "club", "name": "c", "motto": "on"}, contact()], idempotency_key="first")
    bare = open_with()
    head, root = _head(full)
    calls: list[Call] = [
        lambda ledger: ledger.show("club/c"),
        lambda ledger: ledger.blame("club/c", "motto"),
        lambda ledger: ledger.history("club/c"),
        lambda ledger: ledger.fingerprint(),
        lambda ledger: ledger.store([{"entity_type": "club", "name": "c", "motto": "onward"}], idempotency_key=KEY),
        lambda ledger: ledger.correct("club/c", {"motto": "x"}, idempotency_key=KEY),
    ]
    for call in calls:
        with pytest.raises(woodrat.Unavailable) as unavailable:
            call(bare)
        assert "longest@1" in str(unavailable.value)
        assert "Open the ledger with that policy." in str(unavailable.value)
        assert unavailable.value.details == {"policy": {"name": "longest", "version": 1, "code": "a" * 64}}
        assert _head(full) == (head, root)
    with engine.view(full.tenant) as view:
        assert view.receipt("crm", KEY) is None
    assert bare.show(ANA).fields["name"] == "Ana Rivera"
    assert full.show("club/c").fields["motto"] == "on"


def _head(ledger: woodrat.Ledger) -> tuple[int, bytes]:
    with ledger.context.engine.view(ledger.tenant) as view:
        return view.head().position, view.head().frontier.root()


def test_other_code_under_the_same_name() -> None:
    """A policy is named by its code too: other code under the same name and version does not stand in for it."""
    engine = InMemoryEngine()
    other = woodrat.own_policy("longest", 1, lift=lambda claim: claim.value, join=_longest, code="b" * 64)
    full = woodrat.Ledger(engine, tenant="t", agent="crm", clock=FixedClock(), policies=registry([LONGEST]))
    full.schemas.register(
        {"title": "club", "properties": {"motto": {"x-woodrat-merge": LONGEST.name.to_json(), "type": "string"}}}
    )
    full.store([{"entity_type": "club", "name": "c", "motto": "on"}])
    bare = woodrat.Ledger(engine, tenant="t", agent="crm", clock=FixedClock(), policies=registry([other]))
    with pytest.raises(woodrat.Unavailable):
        bare.show("club/c")


def test_an_own_policy_under_a_built_in_name() -> None:
    """A policy of one's own cannot take the name of a built-in one."""
    with pytest.raises(woodrat.Refused) as refused:
        woodrat.own_policy("sum", 1, lift=lambda claim: claim.value, join=_longest)
    assert [fault.path for fault in refused.value.faults] == ["name"]


def test_a_closed_ledger() -> None:
    """A closed ledger is unavailable, for reads and writes."""
    with woodrat.open(":memory:", clock=FixedClock()) as ledger:
        ledger.store([contact()])
    with pytest.raises(woodrat.Unavailable):
        ledger.show(ANA)
    with pytest.raises(woodrat.Unavailable):
        ledger.store([contact()])


# Messages, to the letter


def test_the_message_for_a_wrong_type(ledger: woodrat.Ledger) -> None:
    """A value of a wrong type is told in two lines."""
    assert str(refusal(ledger, store([contact(city=42)]))) == (
        "/0/city: contact.city: expected text, got 42 (number). "
        'Send text, or change the field in a new version of schema "contact" (now 1).\n'
        "Nothing was written."
    )


def test_the_message_for_several_faults(ledger: woodrat.Ledger) -> None:
    """Several faults take a line each."""
    records = [contact(phone=False), {"entity_type": "ticket", "number": 1, "state": "lost", "pionts": 3}]
    assert str(refusal(ledger, store(records))) == (
        "/0/phone: contact.phone: expected text, got false (boolean). "
        'Send text, or change the field in a new version of schema "contact" (now 1).\n'
        "/1/pionts: ticket.pionts: unknown field, with 3 (number). "
        'Did you mean "points"? Leave it out, or add the field in a new version of schema "ticket" (now 1).\n'
        '/1/state: ticket.state: expected one of "open", "closed", got "lost" (text). '
        'Send one of "open", "closed", or change the field in a new version of schema "ticket" (now 1).\n'
        "Nothing was written."
    )


def test_the_message_for_nothing_that_identifies(ledger: woodrat.Ledger) -> None:
    """A record that nothing identifies is told what would."""
    assert str(refusal(ledger, store([{"entity_type": "contact", "city": "Reus"}]))) == (
        "/0: nothing identifies this contact. Send a value for email or name, or state a key as $.key.\n"
        "Nothing was written."
    )


def test_the_message_for_an_unstable_number(ledger: woodrat.Ledger) -> None:
    """A number that others would round is told to travel as text."""
    assert str(refusal(ledger, store(contact(id=2**53)))) == (
        "/id: 9007199254740992 (number) is an integer beyond ±9007199254740991 (2^53 - 1) and not stable: "
        "other readers round it. Send it as text.\n"
        "Nothing was written."
    )


def test_the_message_for_a_time_without_an_offset(ledger: woodrat.Ledger) -> None:
    """A time without an offset is told to get one."""
    assert str(refusal(ledger, store([contact()], observed_at="2026-01-01T00:00:00"))) == (
        'observed_at: "2026-01-01T00:00:00" (text) has no UTC offset. '
        "Append Z for UTC, or an offset such as +02:00.\n"
        "Nothing was written."
    )


def test_the_message_for_a_used_key(ledger: woodrat.Ledger) -> None:
    """A key used for another request is told both ways out."""
    assert str(refusal(ledger, store([contact(city="Reus")], idempotency_key="first"))) == (
        "idempotency_key: 'first' was used before, for another request. "
        "Send the first request again to see its report, or use a new key.\n"
        "Nothing was written."
    )


def test_the_message_for_an_outdated_version(ledger: woodrat.Ledger) -> None:
    """An outdated condition is told both versions."""
    assert str(refusal(ledger, store([contact(city="Reus")], if_version=0), woodrat.Outdated)) == (
        "contact/Ana Rivera: expected it at version 0, it is at version 1. "
        "Nothing was written. Read it again, then decide."
    )


def test_the_message_for_an_unknown_entity(ledger: woodrat.Ledger) -> None:
    """An unknown entity is told with the position it was looked for at."""
    position = ledger.position
    assert str(refusal(ledger, lambda ledger: ledger.show(NOBODY), woodrat.NotFound)) == (
        f"contact/Nobody: not known at position {position}. Nothing was changed. "
        "Search for it, or read at a later moment."
    )


def test_the_message_for_a_key_that_is_empty(ledger: woodrat.Ledger) -> None:
    """Messages are written in plain, correct English."""
    assert str(refusal(ledger, store([contact()], idempotency_key=""))) == (
        "idempotency_key: the idempotency key is empty. Send an idempotency key of at least one character.\n"
        "Nothing was written."
    )


def test_errors_are_json(ledger: woodrat.Ledger) -> None:
    """An error has one JSON shape on every surface: a stable code, the message and the details."""
    assert refusal(ledger, store([contact(city=42)])).to_json() == {
        "code": "refused",
        "message": (
            "/0/city: contact.city: expected text, got 42 (number). "
            'Send text, or change the field in a new version of schema "contact" (now 1).\n'
            "Nothing was written."
        ),
        "details": {
            "faults": [
                {
                    "path": "/0/city",
                    "problem": "contact.city: expected text, got 42 (number)",
                    "remedy": 'Send text, or change the field in a new version of schema "contact" (now 1).',
                }
            ]
        },
    }
