"""Identity: the entity of a record: the first rule of its schema whose fields are all present makes the key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from operator import itemgetter
from typing import Any

from woodrat.canon import ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.errors import Fault, Refused, pointer_part
from woodrat.state import match, relation
from woodrat.state.identity_rules import IdentityRule, key_by
from woodrat.state.observation import STATING, Observation
from woodrat.state.schema import Schema


def quick_key(schema: Schema, fields: Mapping[str, Json]) -> str | None:
    """Return the key the rules make of `fields`, if it is sound at a glance; None leaves it to `identify`."""
    for rule in schema.identity:
        key = key_by(rule, fields)
        if key is not None:
            # printable text contains no control character, and four times its length bounds its bytes
            return key if key.isprintable() and len(key) * 4 <= ids.KEY_BYTES_MAX else None
    return None


def identify(
    schema: Schema, fields: Mapping[str, Json], stated_key: str | None, path: str = ""
) -> tuple[str, IdentityRule | None]:
    """Return the key of the entity that `fields` describe, and the rule that made it (None for a stated key).

    A stated key wins and is taken unchanged. `Refused` names fields that would identify the record, or the faults of
    the key; `path` is the place of the record in the input.
    """
    if stated_key is not None:
        if faults := ids.ref_faults(schema.type, stated_key, f"{path}/$"):
            raise Refused(faults)
        return stated_key, None
    for rule in schema.identity:
        key = key_by(rule, fields)
        if key is not None:
            if faults := ids.ref_faults(schema.type, key):
                here = f"{path}/{pointer_part(rule.parts[0].field)}"
                raise Refused(Fault(here, fault.problem, fault.remedy) for fault in faults)
            return key, rule
    ways = [" and ".join(part.field for part in rule.parts) for rule in schema.identity]
    remedy = f"Send a value for {_either(ways)}, or state a key as $.key."
    raise Refused([Fault(path, f"nothing identifies this {schema.type}", remedy)])


def shared_values(schema: Schema, fields: Mapping[str, Json]) -> list[tuple[str, str]]:
    """Return (rule, key folded by `match-fold-1`) for every rule whose fields are all present, in their order.

    Two entities with a common pair share an identifying value and may be one; nothing joins them silently.
    """
    return [(rule.text, match.fold(key)) for rule in schema.identity if (key := key_by(rule, fields)) is not None]


class Identifying:
    """The identifying values stated for one entity, under one schema; a relation has none."""

    __slots__ = ("_before", "_pick", "_texts", "_values", "found", "wanted")

    def __init__(
        self, ref: Ref, fields: Collection[str], values: Callable[[Mapping[str, Json]], list[tuple[str, str]]]
    ) -> None:
        """Start empty; `fields` are the identifying fields, and `values` returns `shared_values` of their schema."""
        self.found: dict[tuple[str, str], None] = {}
        """The values, as `shared_values` gives them, each once."""
        self.wanted = fields if fields and relation.endpoints(ref) is None else ()
        """The fields that identify."""
        self._values = values
        self._before: list[tuple[str, Json]] | None = None
        self._pick: Callable[[Any], Any] | None = itemgetter(*self.wanted) if self.wanted else None
        self._texts: object = None
        """The identifying texts of the previous observation, if all are text."""

    def add(self, said: Observation) -> None:
        """Add the identifying fields of an observation; most repeat the previous ones."""
        if said.op in STATING:
            fields = said.fields
            if self._texts is not None:
                try:
                    if self._pick(fields) == self._texts:  # type: ignore[misc]
                        return
                except KeyError:
                    pass
            if self._before is not None:
                for name, value in self._before:
                    if fields.get(name) != value:
                        break
                else:
                    return
            before = [(name, fields.get(name)) for name in self.wanted]
            # Text is the same where Python takes it for equal; of other values, such as 1 and true, that is not so.
            self._before = before if all(value is None or type(value) is str for _, value in before) else None
            self._texts = self._pick(fields) if self._pick and all(type(value) is str for _, value in before) else None
            self.found.update(dict.fromkeys(self._values(fields)))


def _either(ways: list[str]) -> str:
    """Return the alternatives as prose: `a`, `a or b`, `a, b or c`."""
    return " or ".join([", ".join(ways[:-1]), ways[-1]] if len(ways) > 1 else ways)
