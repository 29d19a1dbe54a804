"""Checker: whether a plain record fits its type and which entity it means, in one pass.

A checker is compiled once for the rules of a type, of types without a schema too. It answers for records in the common
valid form and gives up on all others: `Schema.record_faults`, the policies and `identity.identify` are the definition,
and report the faults.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from woodrat.canon.form import Json
from woodrat.canon.ids import KEY_BYTES_MAX, Ref
from woodrat.merge.policy import Policy
from woodrat.state.builtin import with_formats
from woodrat.state.formats import Find, compile_checks
from woodrat.state.identity_rules import FOLDS, IdentityRule, key_by
from woodrat.state.match import fold as fold_match
from woodrat.state.redaction import REDACTED
from woodrat.state.schema import Schema
from woodrat.state.validator import compiled

_KEY_CHARACTERS_MAX: Final = KEY_BYTES_MAX // 4
"""Number of characters up to which a key is certainly within its byte limit."""
_make: Final = tuple.__new__


class Checker:
    """The rules of one type for records, compiled."""

    __slots__ = (
        "_checks",
        "_formats",
        "_is_open",
        "_is_valid",
        "_keys",
        "_others",
        "_policy",
        "_schema",
        "_type",
    )

    def __init__(
        self,
        schema: Schema,
        policy: Callable[[str], Policy],
        others: frozenset[str] | None,
        formats: Mapping[str, Find],
    ) -> None:
        """`policy` is the policy of a field, and `others` are fields whose policies may refuse values; None for all."""
        self._formats = formats
        self._checks = compile_checks(with_formats(schema)) if formats else {}
        self._schema = schema
        self._is_open = schema.is_open
        self._type = schema.type
        self._policy = policy
        self._others = others
        self._is_valid: Callable[[object], bool] | None = None
        if not schema.is_open and schema.beyond is None:
            self._is_valid = compiled(schema.body).record().validator.is_valid
        self._keys = [_compile(rule) for rule in schema.identity]

    def entity(self, fields: Mapping[str, Json]) -> Ref | None:
        """Return the entity of a record, if it is valid and its key is sound; None defers to the definition."""
        if not self._is_open:
            is_valid = self._is_valid
            fits = is_valid is not None and is_valid(fields)
            if not fits and not self._schema.takes(fields):
                return None
        others = self._others
        for name in fields if others is None else others:
            if name in fields and not self._policy(name).takes(fields[name]):
                return None
        formats = self._formats
        if formats and not formats.keys().isdisjoint(fields):
            checks = self._checks
            for name, find in formats.items():
                if name in fields:
                    value = fields[name]
                    if type(value) is str and name in checks and checks[name](value):
                        continue
                    if any(find(value, "")):
                        return None
        for name, folds, _, rule in self._keys:
            text = fields.get(name)
            if text is None:
                continue
            if folds is None or type(text) is not str:
                key = key_by(rule, fields)
                if key is None:
                    continue
            elif text == REDACTED:
                continue
            else:
                for fold in folds:
                    text = fold(text)
                key = text
            if key:
                # printable text contains no control character
                return _make(Ref, (self._type, key)) if key.isprintable() and len(key) <= _KEY_CHARACTERS_MAX else None
        return None

    def shared_values(self, fields: Mapping[str, Json]) -> list[tuple[str, str]]:
        """Return the same as `identity.shared_values`."""
        found: list[tuple[str, str]] = []
        for name, folds, words, rule in self._keys:
            text = fields.get(name)
            if text is None:
                continue
            if folds is None or type(text) is not str:
                key = key_by(rule, fields)
            elif text == REDACTED:
                continue
            else:
                for fold in folds:
                    text = fold(text)
                key = text
            if key:
                found.append((words, fold_match(key)))
        return found


_Key = tuple[str, "tuple[Callable[[str], str], ...] | None", str, IdentityRule]
"""The first field of a rule, the folds of its text if it is the only one, the rule in a word, and the rule."""


def _compile(rule: IdentityRule) -> _Key:
    first = rule.parts[0]
    folds = tuple(FOLDS[fold] for fold in first.folds) if len(rule.parts) == 1 else None
    return first.field, folds, rule.text, rule
