"""The compiled checker answers as the plain checks do, or not at all."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.canon.ids import KEY_BYTES_MAX, Ref
from woodrat.errors import Refused
from woodrat.merge import BUILTIN
from woodrat.merge.rules import Rules
from woodrat.state.identity import identify, shared_values
from woodrat.state.redaction import REDACTED
from woodrat.state.schema import OPEN, Schema, parse_schema


def _schema(document: dict[str, Any]) -> Schema:
    return parse_schema({"title": "thing", **document}, policies=lambda name: BUILTIN[str(name)].traits)


FOLDED = {"field": "email", "fold": ["trim-1", "ascii-lower-1"]}
TYPES = [
    OPEN("thing"),
    _schema({"x-woodrat-identity": [[FOLDED], ["name", "company"], ["id"]]}),
    _schema(
        {
            "properties": {
                "id": {"type": ["string", "integer"]},
                "name": {"type": "string", "maxLength": 5},
                "tags": {"type": "array", "x-woodrat-merge": "union"},
                "count": {"type": "integer", "x-woodrat-merge": "sum"},
                "other": {"type": "string", "x-woodrat-redact": True},
            },
            "additionalProperties": False,
            "required": ["name"],
        }
    ),
    _schema({"properties": {"name": {"pattern": "^[a-z]+$"}, "top": {"x-woodrat-merge": "max"}}}),
]
NAMES = ("id", "email", "name", "title", "company", "tags", "count", "top", "other")
texts = st.one_of(
    st.sampled_from(
        ["", " ", " A@b.C ", REDACTED, "a\u0085b", "k" * (KEY_BYTES_MAX // 4), "k" * KEY_BYTES_MAX, "é" * 300]
    ),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=6),
)
values = st.one_of(
    texts,
    st.integers(-5, 5),
    st.booleans(),
    st.none(),
    st.lists(st.one_of(texts, st.integers(0, 2)), max_size=3),
    st.dictionaries(st.sampled_from("ab"), st.integers(0, 2), max_size=2),
)


@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(NAMES), values, max_size=5))
def test_a_record_that_passes_is_sound_and_speaks_of_the_same_entity(schema: Schema, fields: dict[str, Any]) -> None:
    """What the checker answers is what schema, policies and identity rules say; else it gives up."""
    rules = Rules(schema)
    refused = schema.record_faults(fields, "") or any(rules.policy(n).refuses(v) is not None for n, v in fields.items())
    entity = rules.checker.entity(fields)
    if entity is not None:
        assert not refused
        assert entity == Ref(schema.type, identify(schema, fields, None)[0])
    elif not refused:
        try:
            key, _ = identify(schema, fields, None)
        except Refused:
            return
        assert not key.isprintable() or 4 * len(key) > KEY_BYTES_MAX, "only an odd key is left to the definition"


@given(st.sampled_from(TYPES), st.dictionaries(st.sampled_from(NAMES), values, max_size=5))
def test_identifying_values_are_those_of_the_definition(schema: Schema, fields: dict[str, Any]) -> None:
    """The compiled rules give the identifying values that `shared_values` gives, in its order."""
    assert Rules(schema).checker.shared_values(fields) == shared_values(schema, fields)


@pytest.mark.parametrize("fresh", [False, True])
def test_a_batch_takes_few_statements(monkeypatch: pytest.MonkeyPatch, tmp_path: Any, fresh: bool) -> None:
    """How many statements a batch takes does not grow with its records, whether their entities are known or new."""
    from woodrat.engines.tables import Tables

    asked: list[str] = []
    select = Tables.select

    def counted(self: Tables, query: str, **values: Any) -> Any:
        asked.append(query)
        return select(self, query, **values)

    monkeypatch.setattr(Tables, "select", counted)
    counts = []
    with woodrat.open(str(tmp_path / "few.db"), agent="a") as ledger:
        for size in (20, 200):
            records = [{"entity_type": "thing", "id": f"{size}-{n}", "name": f"{size} {n}"} for n in range(size)]
            if not fresh:
                ledger.store(records)
            asked.clear()
            ledger.store([{**record, "city": "Lund"} for record in records])
            counts.append(len(asked))
    assert max(counts) <= 5, asked
