"""Forging: logs and capsules that only the operator could make, who holds the signing key and writes what they like.

Entries go into the log without any surface in between, and a capsule is made of whichever entries a test names.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.golden.make_capsules import signed_ledger
from tests.verifier.both import Case, verdicts

from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.write import Draft, Writer
from woodrat.merge import BUILTIN
from woodrat.proofs import reader as proofs_reader
from woodrat.proofs.verbs.keys import Keys, make
from woodrat.state import observation, schema
from woodrat.state.meaning import step_of
from woodrat.testing.clock import FixedClock

RUN = "run_" + "a" * 26
LOAN: dict[str, Any] = {"properties": {"score": {"type": "integer"}, "tags": {"x-woodrat-merge": "union"}}}

_KEYS: list[Any] = []


def keys() -> Keys:
    """Return the keys of the operator, made once."""
    if not _KEYS:
        folder = tempfile.TemporaryDirectory()
        _KEYS.extend([folder, make(folder.name, FixedClock(), "operator").keys])
    found: Keys = _KEYS[1]
    for path in Path(found.folder, "seen").glob("*.note"):
        path.unlink()  # every log here has the same name
    return found


class Forger:
    """An operator with a log of their own making."""

    def __init__(self) -> None:
        self.keys = keys()
        self.ledger = signed_ledger(InMemoryEngine(), self.keys)

    @property
    def log(self) -> str:
        """The name of the log."""
        with self.ledger.context.engine.view(self.ledger.tenant) as view:
            entry = view.entry(0)
        assert entry is not None
        return entry.log

    def add(self, kind: str, body: Mapping[str, Any]) -> int:
        """Write one entry as it is, and return its position."""
        encoded = form.serialise(dict(body))
        meaning: Any = step_of(kind, encoded) if kind.startswith("run.") else None
        if kind == "observation":
            meaning = observation.stored(encoded)
        if kind == "schema":
            meaning = schema.stored(encoded)
        Writer(self.ledger.context).write("forge", {}, lambda draft: self._plan(draft, kind, encoded, meaning))
        return self.ledger.position

    @staticmethod
    def _plan(draft: Draft, kind: str, encoded: bytes, meaning: Any) -> None:
        draft.add(kind, encoded, meaning)

    def schema(self, document: Mapping[str, Any] = LOAN, type: str = "loan", version: int = 1) -> tuple[int, str]:
        """Write a schema; return its position and full name."""
        told = {**document, "title": type, "x-woodrat-version": version}
        parsed = schema.parse_schema(told, policies=lambda name: BUILTIN[str(name)].traits)
        return self.add("schema", form.decode(parsed.body)), schema.schema_name(parsed) or ""

    def observe(self, fields: Mapping[str, Any], entity: str = "loan/42", **more: Any) -> tuple[int, str]:
        """State fields of an entity; return the position and the short id."""
        at = more.pop("at", "2026-01-01T00:00:00.000000Z")
        type, _, key = entity.partition("/")
        body = {
            "agent": "crm",
            "entity": {"key": key, "type": type},
            "op": "assert",
            "observed_at": at,
            "valid_from": at,
            "priority": 0,
            **({"fields": dict(fields)} if fields else {}),
            **more,
        }
        position = self.add("observation", body)
        return position, observation.stored(form.serialise(body)).id

    def step(self, kind: str, number: int, **said: Any) -> int:
        """Write an entry of the run."""
        about = {"run": RUN, "step": number, "span": f"{number:016x}", "agent": "crm"}
        return self.add(kind, {**about, "started_at": "2026-01-01T00:00:00.000000Z", **said})

    def capsule(self, claim: Mapping[str, Any], positions: Iterable[int] | None = None) -> bytes:
        """Return a capsule with a claim, of these entries or of all; of a run it says that nothing is left out."""
        claim = {"left_out": [], **claim} if "run" in claim else claim
        signed = self.ledger.proofs.checkpoint()
        chosen = sorted(range(signed.checkpoint.size) if positions is None else positions)
        with self.ledger.context.engine.view(self.ledger.tenant) as view:
            proofs = [proofs_reader.proof_of(view, position, signed) for position in chosen]
        entries = [{**proof.entry.to_json(), "proof": [item.hex() for item in proof.hashes]} for proof in proofs]
        document = {
            "woodrat": "capsule",
            "format": 0,
            "checkpoint": signed.note,
            "claim": {**claim, "positions": chosen},
            "entries": entries,
        }
        return form.serialise(document) + b"\n"

    def ask(self, data: bytes, against: str | None = None) -> dict[str, Any]:
        """Return the verdict on a file."""
        (found,) = verdicts([Case("forged", data, str(self.keys.verifier), against)])
        return found

    def verdict(self, claim: Mapping[str, Any] | None = None, positions: Iterable[int] | None = None) -> dict[str, Any]:
        """Return the verdict on a capsule of the run, or on another claim."""
        return self.ask(self.capsule({"kind": "run", "run": RUN} if claim is None else claim, positions))

    def ended(self, number: int, **said: Any) -> int:
        """End the run, its steps accounted for."""
        return self.step("run.ended", number, status="done", numbered=True, **said)


def stated(key: str, op: str, operand: Any, actual: Any, result: bool, **more: Any) -> dict[str, Any]:
    """Return a condition."""
    found = {"key": key, "op": op, "operand": operand, "actual": actual, "result": result}
    return {**found, "origin": {"kind": "stated"}, **more}


def decision(*rules: dict[str, Any], **said: Any) -> dict[str, Any]:
    """Return the body of a decision by rules, with the facts of their conditions."""
    conditions = [condition for rule in rules for condition in rule.get("conditions", ())]
    there = [condition for condition in conditions if "actual" in condition]
    body = {
        "stage": "s",
        "mode": "decide",
        "chosen": rules[-1]["chosen"] if rules else "no",
        "default": not any(rule.get("matched") for rule in rules),
        "rules": list(rules),
        "facts": {condition["key"]: condition["actual"] for condition in there},
        "facts_origin": {condition["key"]: condition["origin"] for condition in there},
    }
    matched = [rule for rule in rules if rule.get("matched")]
    if matched and "label" in matched[0]:
        body["rule"] = matched[0]["label"]
    return {**body, **said}


def rule(*conditions: dict[str, Any], **said: Any) -> dict[str, Any]:
    """Return a rule that is data, with these conditions, matched where all of them hold."""
    when: dict[str, Any] = {}
    for condition in conditions:
        when.setdefault(condition["key"], {})[condition["op"]] = condition["operand"]
    holds = bool(conditions) and all(condition.get("result") for condition in conditions)
    return {"chosen": "yes", "when": when, "matched": holds, "conditions": list(conditions), **said}


def one_read(forger: Forger, *, value: Any = 580, actual: Any = 580, shown: Any = None, **said: Any) -> dict[str, int]:
    """Write a run that reads a score and decides on it; say what the read and the condition show of it."""
    forger.schema_at, forger.schema_name = forger.schema()  # type: ignore[attr-defined]
    stated_at, id = forger.observe({"score": 580})
    started = forger.step("run.started", 0, query="?", **said.pop("started", {}))
    position = said.pop("position", started)
    body = {"log": forger.log, "entity": "loan/42", "position": position, "found": True}
    name = forger.schema_name  # type: ignore[attr-defined]
    item = {"observation": id, "value": value if shown is None else shown, **said.pop("item", {})}
    read = forger.step("run.read", 1, **{**body, "schema": name, "fields": {"score": item}, **said.pop("read", {})})
    origin = {"kind": "read", "entity": "loan/42", "field": "score", "observations": [id], "position": position}
    condition = {"key": "score", "op": "lt", "operand": 600, "actual": actual, "result": True, "origin": origin}
    if isinstance(actual, int):
        condition["result"] = actual < 600
    decided = forger.step("run.decided", 2, **{**decision(rule(condition)), **said})
    ended = forger.ended(3)
    return {"stated": stated_at, "started": started, "read": read, "decided": decided, "ended": ended}
