"""How a record is led to its entity."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.errors import Refused
from woodrat.state.identity import identify, shared_values
from woodrat.state.identity_rules import FOLDS, IdentityField, IdentityRule, key_by, parse_rules
from woodrat.state.schema import OPEN, Schema, parse_schema
from woodrat.state.schema_keywords import PolicyTraits

EMAIL = IdentityRule((IdentityField("email", ("trim-1", "ascii-lower-1")),))
PAIR = IdentityRule((IdentityField("name"), IdentityField("company")))


def contact() -> Schema:
    document = {"title": "contact", "x-woodrat-identity": [EMAIL.to_json(), PAIR.to_json()]}
    return parse_schema(document, policies=lambda name: PolicyTraits(name.name, frozenset()))


CONTACT = contact()
text = st.text(st.characters(exclude_categories=["Cs"]))


def test_trim_strips_only_ascii_space() -> None:
    """`trim-1` strips U+0009 to U+000D and U+0020 at both ends and nothing else."""
    assert FOLDS["trim-1"]("\t\n\x0b\x0c\r a b \r\n") == "a b"
    for kept in ("\u00a0a\u00a0", "\u2003a", "\x1ca", "\x85a", "\u200ba", "\ufeffa"):
        assert FOLDS["trim-1"](kept) == kept


def test_lower_touches_only_a_to_z() -> None:
    """`ascii-lower-1` maps A to Z and leaves every other letter."""
    assert FOLDS["ascii-lower-1"]("AZaz@[`{09ÀÉİẞΣ\u212a") == "azaz@[`{09ÀÉİẞΣ\u212a"


@given(text, st.permutations(sorted(FOLDS)))
def test_folds_are_idempotent_and_commute(value: str, order: list[str]) -> None:
    """Folding twice, or in another order, gives the same text."""
    once = IdentityField("x", tuple(order)).folded(value)
    assert IdentityField("x", tuple(order)).folded(once) == once
    assert IdentityField("x", tuple(reversed(order))).folded(value) == once


@pytest.mark.parametrize(
    ("rule", "fields", "key"),
    [
        (EMAIL, {"email": " Ana@Example.ORG\n"}, "ana@example.org"),
        (EMAIL, {"email": 42}, "42"),
        (EMAIL, {"email": ["A "]}, '["A "]'),
        (EMAIL, {"email": False}, "false"),
        (EMAIL, {"email": 0}, "0"),
        (IdentityRule((IdentityField("name"),)), {"name": " Ana "}, " Ana "),
        (PAIR, {"name": "Ana", "company": "Acme"}, '["Ana","Acme"]'),
        (PAIR, {"company": {"b": 1, "a": 2.0}, "name": 3}, '[3,{"a":2,"b":1}]'),
        (EMAIL, {}, None),
        (EMAIL, {"email": None}, None),
        (EMAIL, {"email": " \t "}, None),
        (PAIR, {"name": "Ana"}, None),
        (PAIR, {"name": "Ana", "company": ""}, None),
    ],
)
def test_a_rule_makes_a_key(rule: IdentityRule, fields: dict[str, Any], key: str | None) -> None:
    """One text is the key itself, anything else canonical JSON; an absent, null or empty value makes none."""
    assert key_by(rule, fields) == key


@given(text.filter(bool), text.filter(bool))
def test_several_values_never_run_together(name: str, company: str) -> None:
    """A key of several values gives the values back."""
    key = key_by(PAIR, {"name": name.replace("\0", "0"), "company": company.replace("\0", "0")})
    assert key is not None
    assert form.decode(key.encode()) == [name.replace("\0", "0"), company.replace("\0", "0")]


def test_a_stated_key_wins() -> None:
    """A key stated as `$.key` is taken as it is, whatever the rules would say."""
    assert identify(CONTACT, {"email": "ana@example.org"}, " Key ") == (" Key ", None)


def test_the_first_rule_with_all_fields_makes_the_key() -> None:
    """Rules are tried in their order; the one that made the key is named."""
    fields = {"email": "ANA@x.org", "name": "Ana", "company": "Acme"}
    assert identify(CONTACT, fields, None) == ("ana@x.org", EMAIL)
    assert identify(CONTACT, fields | {"email": None}, None) == ('["Ana","Acme"]', PAIR)


@pytest.mark.parametrize("field", ["id", "email", "name", "title"])
def test_without_a_schema_four_fields_identify(field: str) -> None:
    """A type without a schema is identified by id, email, name or title, in that order."""
    names = ["id", "email", "name", "title"]
    fields: dict[str, Any] = {name: f"by {name}" for name in names[names.index(field) :]}
    assert identify(OPEN("thing"), fields, None)[0] == f"by {field}"


def test_what_nothing_identifies_is_refused_with_the_ways_out() -> None:
    """The refusal lists the rules and `$.key`."""
    with pytest.raises(Refused) as refused:
        identify(CONTACT, {"name": "Ana"}, None, "/3")
    (fault,) = refused.value.faults
    assert fault.path == "/3"
    assert fault.problem == "nothing identifies this contact"
    assert fault.remedy == "Send a value for email or name and company, or state a key as $.key."


@pytest.mark.parametrize("key", ["", "a\nb", "x" * 2000])
def test_a_bad_key_is_refused_where_it_stands(key: str) -> None:
    """A key outside the grammar is refused, with the path of the value it was made of."""
    with pytest.raises(Refused) as stated:
        identify(CONTACT, {}, key, "/0")
    assert stated.value.faults[0].path == "/0/$/key"
    if key:
        with pytest.raises(Refused) as made:
            identify(OPEN("thing"), {"name": key}, None, "/0")
        assert made.value.faults[0].path == "/0/name"


def test_shared_values_speak_of_every_rule() -> None:
    """Every rule whose fields are present gives a folded value that another entity may share."""
    fields = {"email": "A@x.org", "name": "Ana", "company": "Acme"}
    assert shared_values(CONTACT, fields) == [("email", "a@x.org"), ("name+company", '["ana","acme"]')]
    assert shared_values(CONTACT, {"name": "Ana"}) == []


def test_rules_print_as_they_are_read() -> None:
    """Printing a rule and reading it again gives the rule."""
    stated = [rule.to_json() for rule in (EMAIL, PAIR)]
    assert parse_rules(stated, "") == ((EMAIL, PAIR), [])
