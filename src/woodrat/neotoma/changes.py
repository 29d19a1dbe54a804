"""Changes: corrections, deletions, merges and splits as calls of Neotoma's clients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from woodrat.canon.ids import parse_ref
from woodrat.errors import Fault, Outdated, Refused, shown
from woodrat.ledger import reads
from woodrat.ledger.moments import timestamp
from woodrat.neotoma import relationships, shapes
from woodrat.neotoma.calls import Given
from woodrat.neotoma.names import type_of
from woodrat.state.observation import STATING

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.state.asof import Stored


def correct(ledger: Ledger, given: Given) -> Any:
    fields = dict(given.get("corrections", {}))
    if "field" in given:
        fields[given["field"]] = given.get("value")
    if not fields:
        raise Refused([Fault("corrections", "there is nothing to correct", "Send corrections, or field and value.")])
    return ledger.correct(
        given["entity_id"], fields, reason=given.get("reason"), idempotency_key=given.get("idempotency_key")
    )


def changed(past: Past, given: Given, report: Any) -> dict[str, Any]:
    told = shapes.whole(past, past.show(given["entity_id"]))
    stated: Given = {name: given[name] for name in ("field", "value") if name in given}
    return {"success": True, "observation_id": next(iter(report.observations), None), **stated, **told}


def correct_all(ledger: Ledger, given: Given) -> Any:
    """Correct several fields of an entity in one write, unless it was observed since the caller looked."""
    faults, fields = [], {}
    for number, change in enumerate(given["changes"]):
        name = change.get("field") if isinstance(change, dict) else None
        if not isinstance(name, str) or "value" not in change:
            faults.append(Fault(f"changes/{number}", f"got {shown(change)}", "Send a field and a value."))
        else:
            fields[name] = change["value"]
    if not fields and not faults:
        faults.append(Fault("changes", "there is nothing to correct", "Send a field and a value."))
    if faults:
        raise Refused(faults, "Nothing was written.")
    snapshot = ledger.show(given["entity_id"])
    seen, latest = given.get("expected_last_observation_at"), shapes.entity(snapshot)["last_observation_at"]
    version = None
    if seen is not None and not given.get("overwrite", False):
        if timestamp(seen, "expected_last_observation_at") != latest:
            stands = f"{snapshot.entity}: it was observed at {latest}, after {seen}"
            raise Outdated(f"{stands}. Nothing was written. Read it again, or send overwrite.", {"latest": latest})
        version = snapshot.version
    return ledger.correct(snapshot.entity, fields, idempotency_key=given.get("idempotency_prefix"), if_version=version)


def all_corrected(past: Past, given: Given, report: Any) -> dict[str, Any]:
    """Return the corrections that were applied."""
    told = shapes.whole(past, past.show(given["entity_id"]))
    observation = next(iter(report.observations), None)
    applied = [
        {"observation_id": observation, "field": one["field"], "value": one["value"]} for one in given["changes"]
    ]
    kept = {name: told[name] for name in ("entity_id", "entity_type", "snapshot", "last_observation_at")}
    return {"success": True, "status": "applied", "applied": applied, **kept}


def relation(past: Past, given: Given, report: Any) -> dict[str, Any]:
    return {"success": True, **relationships.snapshot(past, given)["snapshot"]}


def ended(past: Past, given: Given, report: Any) -> dict[str, Any]:
    observation = next(iter(report.observations), None)
    return {"success": True, "observation_id": observation, **relationships.snapshot(past, given)["snapshot"]}


def marked(verb: str) -> Callable[[Ledger, Given], Any]:
    return lambda ledger, given: getattr(ledger, verb)(
        given["entity_id"], reason=given.get("reason"), idempotency_key=given.get("idempotency_key")
    )


def merge(ledger: Ledger, given: Given) -> Any:
    return ledger.merge(
        given["to_entity_id"],
        given["from_entity_id"],
        reason=given.get("merge_reason"),
        idempotency_key=given.get("idempotency_key"),
    )


def merged(past: Past, given: Given, report: Any) -> dict[str, Any]:
    moved = len(reads.observations(past.context, given["from_entity_id"]))
    told = {"observations_moved": moved, "relationships_repointed": 0, "merged_at": _recorded(past, report)}
    return {"success": True, **told, **shapes.whole(past, past.show(given["to_entity_id"]))}


def _recorded(past: Past, report: Any) -> str | None:
    """Return when a write was recorded."""
    entries = past.log.entries(after=report.position - 1, limit=1)
    return entries[0].recorded_at if entries else None


def split(ledger: Ledger, given: Given) -> dict[str, Any]:
    """State observations that match a condition about another entity, and withdraw them here."""
    new = given["new_entity"]
    faults = [
        Fault(f"new_entity/{name}", f"got {shown(new.get(name))}", "Send text.")
        for name in ("entity_type", "canonical_name")
        if not isinstance(new.get(name), str)
    ]
    if faults:
        raise Refused(faults)
    source = ledger.show(given["source_entity_id"]).entity
    target = ledger.show(new["target_entity_id"]).entity if "target_entity_id" in new else None
    kind, key = (target.type, target.key) if target else (type_of(new["entity_type"]), new["canonical_name"])
    reason = given.get("reason") or f"split to {kind}/{key}"
    fits = _predicate(given["predicate"])
    kept = _live_statements(reads.observations(ledger.context, source), reason)
    moved = [item for item in kept if fits(item)]
    once = given["idempotency_key"]
    if not moved or len(moved) == len(kept):
        problem = f"it fits {len(moved)} of {len(kept)} observations"
        raise Refused([Fault("predicate", problem, "Fit some of them and not all; merge or correct otherwise.")])
    records = []
    for item in moved:
        said = item.observation
        about = {"key": key, "observed_at": said.observed_at, "priority": said.priority}
        about |= {"source": said.optional["source"]} if "source" in said.optional else {}
        records.append({**(said.fields or {}), "entity_type": kind, "$": about})
    report = ledger.store(records, idempotency_key=f"{once}#stated")
    ledger.retract([item.observation.id for item in moved], reason=reason, idempotency_key=f"{once}#withdrawn")
    return {"moved": len(moved), "ref": f"{kind}/{key}", "replayed": report.repeated, "report": report}


def split_answer(past: Past, given: Given, done: dict[str, Any]) -> dict[str, Any]:
    """Return where observations went."""
    report = done["report"]
    return {
        "success": True,
        "split_id": given["idempotency_key"],
        "source_entity_id": past.show(given["source_entity_id"]).entity.id,
        "new_entity_id": parse_ref(done["ref"]).id,
        "observations_moved": done["moved"],
        "split_at": _recorded(past, report),
        "replayed": done["replayed"],
    }


def _live_statements(kept: Iterable[Stored], reason: str) -> list[Stored]:
    """Return the statements that are live, or withdrawn only by this split, which may be sent again."""
    retractions = [item.observation for item in kept if item.observation.op == "retract"]
    others = {name for said in retractions if said.optional.get("reason") != reason for name in said.replaces}
    return [item for item in kept if item.observation.op in STATING and item.observation.digest not in others]


def _predicate(said: Given) -> Callable[[Stored], bool]:
    """Return True if an observation matches all conditions of a split."""
    since, sources = said.get("observed_at_gte"), said.get("source_id_in")
    field = said.get("observation_field_equals")
    faults = []
    if since is None and not sources and field is None:
        remedy = "Send observed_at_gte, source_id_in or observation_field_equals."
        faults.append(Fault("predicate", "there is no condition", remedy))
    if since is not None and not isinstance(since, str):
        faults.append(Fault("predicate/observed_at_gte", f"got {shown(since)}", "Send a time."))
    if sources is not None and not isinstance(sources, list):
        faults.append(Fault("predicate/source_id_in", f"got {shown(sources)}", "Send a list of ids."))
    if field is not None:
        stated = field if isinstance(field, dict) else {}
        wanted = stated.get("value", stated.get("value_starts_with"))
        if not isinstance(stated.get("field"), str) or not isinstance(wanted, str):
            remedy = "Send a field, and value or value_starts_with as text."
            faults.append(Fault("predicate/observation_field_equals", f"got {shown(field)}", remedy))
    if faults:
        raise Refused(faults)

    def fits(item: Stored) -> bool:
        told = shapes.observation(item)
        if since is not None and told["observed_at"] < since:
            return False
        if sources and told["source_id"] not in sources and told["id"] not in sources:
            return False
        if field is None:
            return True
        value = told["fields"].get(field.get("field"))
        if "value" in field:
            return value is not None and str(value) == field["value"]
        return str(value or "").startswith(field.get("value_starts_with", "\0"))

    return fits
