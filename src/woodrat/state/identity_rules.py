"""Identity rules: which fields of a record make the key of its entity.

Values are folded only where a rule names a fold, and every fold is pinned by a version in its name: it maps the same
text to the same text on every machine and under every version of Python, so a key never depends on where it was made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.errors import Fault, pointer_part, shown
from woodrat.records import dataclass
from woodrat.state.redaction import REDACTED

_UNREADABLE = ""
"""Stands for the field of a part that could not be read; no field has this name."""
_ASCII_LOWER = {upper: upper + 32 for upper in range(ord("A"), ord("Z") + 1)}


def _trim_1(text: str) -> str:
    """Strip U+0009 to U+000D and U+0020 at both ends, and no other kind of space."""
    return text.strip("\t\n\x0b\x0c\r ")


def _ascii_lower_1(text: str) -> str:
    """Lower A to Z, and no other letter."""
    return text.lower() if text.isascii() else text.translate(_ASCII_LOWER)


FOLDS: Mapping[str, Callable[[str], str]] = {"trim-1": _trim_1, "ascii-lower-1": _ascii_lower_1}
"""Every fold a rule may name. The meaning of a name here never changes; a new meaning gets a new number."""


@dataclass(frozen=True, slots=True)
class IdentityField:
    """One field of an identity rule."""

    field: str
    """Name of the field."""
    folds: tuple[str, ...] = ()
    """Names of the folds of its text, in this order; empty leaves it unchanged."""

    def folded(self, value: Json) -> Json:
        """Return `value` folded if it is text, else unchanged."""
        if isinstance(value, str):
            for fold in self.folds:
                value = FOLDS[fold](value)
        return value

    def to_json(self) -> Json:
        """Return the part as a schema writes it."""
        return {"field": self.field, "fold": list(self.folds)} if self.folds else self.field


@dataclass(frozen=True, slots=True)
class IdentityRule:
    """Fields that together identify an entity of a type."""

    parts: tuple[IdentityField, ...]
    """The fields, in the order of their values in the key."""

    @property
    def text(self) -> str:
        """The rule in a word, for reports: `email`, `name+company`."""
        return "+".join(part.field for part in self.parts)

    def to_json(self) -> Json:
        """Return the rule as a schema writes it."""
        return [part.to_json() for part in self.parts]


DEFAULT_RULES: tuple[IdentityRule, ...] = tuple(
    IdentityRule((IdentityField(name),)) for name in ("id", "email", "name", "title")
)
"""Default rules for a type without a schema, or whose schema states none."""


def parse_rules(
    stated: object, path: str, known_fields: Collection[str] | None = None
) -> tuple[tuple[IdentityRule, ...], list[Fault]]:
    """Return the rules that `x-woodrat-identity` states at `path`, and every fault in them.

    `known_fields` are the only fields a closed type has; None when there may be others.
    """
    example = 'Write rules as lists of field names, such as [["email"], ["name", "company"]].'
    if not isinstance(stated, list) or not stated:
        return (), [Fault(path, f"expected a non-empty list of identity rules, got {shown(stated)}", example)]
    rules: list[IdentityRule] = []
    faults: list[Fault] = []
    for number, stated_rule in enumerate(stated):
        here = f"{path}/{number}"
        if not isinstance(stated_rule, list) or not stated_rule:
            faults.append(Fault(here, f"expected a non-empty list of fields, got {shown(stated_rule)}", example))
            continue
        rule = IdentityRule(
            tuple(_parse_part(part, f"{here}/{place}", faults) for place, part in enumerate(stated_rule))
        )
        names = [part.field for part in rule.parts]
        for place, name in enumerate(names):
            if known_fields is not None and name not in known_fields and name != _UNREADABLE:
                problem = f'"{name}" is not a field of this closed schema'
                faults.append(Fault(f"{here}/{place}", problem, "Add it to properties, or name another field."))
        if len(set(names)) < len(names):
            faults.append(Fault(here, f"the rule {rule.text} names a field twice", "Name each field once."))
        if rule in rules:
            faults.append(Fault(here, f"the rule {rule.text} is stated twice", "State each rule once."))
        rules.append(rule)
    return tuple(rules), faults


def _parse_part(stated: object, path: str, faults: list[Fault]) -> IdentityField:
    """Return the part stated at `path`; add its faults to `faults`."""
    remedy = 'Write a field name, or {"field": name, "fold": [...]}.'
    if isinstance(stated, str):
        stated = {"field": stated}
    if not isinstance(stated, dict):
        faults.append(Fault(path, f"expected a field, got {shown(stated)}", remedy))
        return IdentityField(_UNREADABLE)
    field, folds = stated.get("field"), stated.get("fold", [])
    for extra in sorted(stated.keys() - {"field", "fold"}):
        faults.append(Fault(f"{path}/{pointer_part(extra)}", f"unknown key {shown(extra)}", remedy))
    if not isinstance(field, str) or not field:
        faults.append(Fault(path, f"expected the name of a field, got {shown(field)}", remedy))
        field = _UNREADABLE
    if not isinstance(folds, list):
        faults.append(Fault(f"{path}/fold", f"expected a list of folds, got {shown(folds)}", remedy))
        folds = []
    known = [fold for fold in folds if isinstance(fold, str) and fold in FOLDS]
    for place, fold in enumerate(folds):
        if fold not in known:
            remedy = f"Use one of: {', '.join(FOLDS)}."
            faults.append(Fault(f"{path}/fold/{place}", f"unknown fold {shown(fold)}", remedy))
    return IdentityField(field, tuple(known))


def key_by(rule: IdentityRule, fields: Mapping[str, Json]) -> str | None:
    """Return the key that `rule` makes of `fields`, or None if a field is absent, null, redacted or empty once folded.

    A single text value is the key itself; other values are written as canonical JSON, several values as an array. So an
    `id` of 42 and an `id` of "42" make the same key.
    """
    if len(rule.parts) == 1:
        part = rule.parts[0]
        text = fields.get(part.field)
        if type(text) is str:
            if text == REDACTED:
                return None
            for fold in part.folds:
                text = FOLDS[fold](text)
            return text or None
    values: list[Json] = []
    for part in rule.parts:
        value = fields.get(part.field)
        if value is None or value == REDACTED:
            return None
        if part.folds:
            value = part.folded(value)
        if value == "":
            return None
        values.append(value)
    first = values[0]
    if len(values) == 1 and type(first) is str:
        return first
    return form.encode(first if len(values) == 1 else values).decode("utf-8")
