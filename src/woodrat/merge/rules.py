"""Rules: how the fields of one type are merged under one schema."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from woodrat.canon.form import Json
from woodrat.errors import Fault, Unavailable, pointer_part
from woodrat.merge import BUILTIN, Claim, Policy, known_policy
from woodrat.merge.packing import digest_text
from woodrat.merge.ranked import LATEST
from woodrat.state.builtin import FROZEN_TYPES
from woodrat.state.observation import ASSERT, Observation
from woodrat.state.schema import Schema
from woodrat.state.schema_keywords import PolicyName
from woodrat.state.validator import compiled

if TYPE_CHECKING:
    from woodrat.merge.checker import Checker
    from woodrat.state import formats

RULES_MAX = 1_024
"""Cache size: rules by type."""


class Rules:
    """A schema together with its policies: everything a merge needs to know about a type."""

    def __init__(self, schema: Schema, policies: Mapping[str, Policy] = BUILTIN) -> None:
        self.schema = schema
        self._policies = policies
        self._by_field: dict[str, Policy] = {}
        self._texts: dict[str, str] = {}
        self._is_valid: Callable[[object], bool] | None = None
        self._described = schema.properties.keys()
        self.beyond = schema.beyond
        """Why nothing fits the schema, if it is outside the supported subset."""
        self.frozen = schema.type in FROZEN_TYPES
        self.digest = schema.digest
        """The schema's id: values checked against it fit."""
        self.merging = schema.merging
        """The key of stored merge state: the same under all schemas of a type that merge alike."""
        self.merging_text = digest_text(self.merging)
        self.required_names = frozenset(schema.required)
        self.identifying = frozenset(part.field for rule in schema.identity for part in rule.parts)
        self._latest = policies.get(str(LATEST.name)) is LATEST
        self._others = frozenset(name for name, policy in schema.policies.items() if policy != LATEST.name)
        self.only_latest = self._latest and not self._others
        """Whether every field is merged by `latest`."""
        self._checker: Checker | None = None
        self._formats: Mapping[str, formats.Find] | None = None

    @property
    def checker(self) -> Checker:
        """The checker of plain records of the type; made on first use."""
        found = self._checker
        if found is None:
            from woodrat.merge.checker import Checker  # commands that only read end without it

            found = self._checker = Checker(
                self.schema, self.policy, self._others if self._latest else None, self.formats
            )
        return found

    def policy(self, name: str) -> Policy:
        """Return the policy of a field, or refuse to fold where its code is not here."""
        found = self._by_field.get(name)
        if found is None:
            found = self._by_field[name] = find_policy(self.schema.policy_of(name), self._policies)
        return found

    def policy_text(self, name: str) -> str:
        """Return the policy of a field by its name, as fingerprints spell it."""
        found = self._texts.get(name)
        if found is None:
            found = self._texts[name] = str(self.policy(name).name)
        return found

    def misfit(self, name: str, claim: Claim, states_value: bool) -> str | None:
        """Return why a claim does not fit its field, or `None`."""
        if self.beyond is not None:
            return self.beyond
        if states_value and name in self._described:
            problem = self.schema.claim_fault(name, claim.value)
            if problem is not None:
                return problem
        return self.policy(name).misfit(claim, states_value)

    def others(self, names: Collection[str]) -> frozenset[str]:
        """Return those of these fields that are not merged by `latest`."""
        return self._others.intersection(names) if self._latest else frozenset(names)

    def fit(self, fields: Mapping[str, Json]) -> bool:
        """Return True if values of fields under `latest` fit, all of them; `misfit` gives the reason otherwise."""
        if self.beyond is not None:
            return False
        if self._described.isdisjoint(fields):
            return True
        if self._is_valid is None:
            self._is_valid = compiled(self.schema.body).record().validator.is_valid
        if self._is_valid(fields):
            return True
        # A record that fits the whole document fits every property; only the others are looked at one by one.
        return self.schema.takes(fields) or all(
            self.schema.claim_fault(name, value) is None for name, value in fields.items()
        )

    def take(self, fields: Mapping[str, Json]) -> bool:
        """Return whether the schema takes a record as sent, and every field's policy its value."""
        return self.schema.takes(fields) and all(self.policy(name).takes(fields[name]) for name in self.others(fields))

    @property
    def formats(self) -> Mapping[str, formats.Find]:
        """The checks of fields with a format in their schema; surfaces use them, a merge never does."""
        found = self._formats
        if found is None:
            from woodrat.state import builtin, formats  # commands that only read end without it

            found = self._formats = (
                {}
                if self.schema.is_open
                else formats.compile_formats(builtin.with_formats(self.schema), compiled(self.schema.body).fits)
            )
        return found

    def format_faults(self, fields: Mapping[str, Json], path: str) -> list[Fault]:
        """Return the values that are not of the format that their field has."""
        return [
            fault
            for name, find in self.formats.items()
            if name in fields
            for fault in find(fields[name], f"{path}/{pointer_part(name)}")
        ]

    def with_elements(self, fields: Mapping[str, Json]) -> Mapping[str, Json]:
        """Return values with a single value for a collection as its one element."""
        single = [
            name
            for name in self.others(fields)
            if not isinstance(fields[name], list)
            and fields[name] is not None
            and self.policy(name).gathered is not None
        ]
        return {**fields, **{name: [fields[name]] for name in single}} if single else fields

    def with_removals(self, remove: Mapping[str, Sequence[Json]]) -> dict[str, list[Json]]:
        """Return elements to remove in their stored form."""
        return {name: list(map(self.policy(name).removal_of, elements)) for name, elements in remove.items()}

    def acts(self, observation: Observation) -> bool:
        """Return whether an observation has any effect; on a frozen type only assertions do."""
        return not self.frozen or observation.op == ASSERT


_RULES: dict[tuple[str, bytes, int], Rules] = {}


def rules_of(schema: Schema, policies: Mapping[str, Policy]) -> Rules:
    """Return the rules of a schema: the same instance for the same policies, so that its caches stay."""
    key = (schema.type, schema.digest, id(policies))
    found = _RULES.get(key)
    if found is None:
        if len(_RULES) >= RULES_MAX:
            _RULES.clear()
        found = _RULES[key] = Rules(schema, policies)  # it holds the policies, so their id stays theirs
    return found


def find_policy(name: PolicyName, policies: Mapping[str, Policy]) -> Policy:
    """Return the policy of this name, version and code."""
    found = known_policy(name, policies)
    if found is None:
        raise Unavailable(
            f"Merge policy {name} with code {name.code} is not loaded here, so nothing that needs it can be merged. "
            "Nothing was written. Open the ledger with that policy.",
            {"policy": name.to_json()},
        )
    return found
