"""Comparison: the snapshots of a Neotoma database beside the state here, and the reasons for differences.

State there depends on row ids, and later writes override corrections. Here neither is so: differences are expected, and
each one gets the rule that chooses the value here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import NotFound
from woodrat.ledger import reads
from woodrat.neotoma import names, shapes
from woodrat.neotoma.database import Database, parsed
from woodrat.neotoma.importer import Importer
from woodrat.neotoma.registry import POLICIES
from woodrat.record_json import Record
from woodrat.records import dataclass
from woodrat.state.packs import COLLECTIONS

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.ledger.progress import Progress
    from woodrat.merge.snapshot import Snapshot
    from woodrat.state.observation import Observation

OUTDATED: Final = "the snapshot there was not made again after a merge or split that moved observations"
DIFFERENCES_MAX: Final = 10_000
"""Most listed differences; all are counted."""


@dataclass(frozen=True, slots=True)
class SnapshotDifference(Record):
    """A value that differs here."""

    entity: str
    """The entity here."""
    neotoma_id: str
    """Its id there."""
    field: str
    """The field; empty where the whole entity differs."""
    there: Any
    """The value there; null for none."""
    here: Any
    """The value here; null for none."""
    reason: str
    """Which rule chooses the value here."""


@dataclass(frozen=True, slots=True)
class SnapshotComparison(Record):
    """The result of comparing all snapshots."""

    snapshots: int
    """Number of snapshots in the database."""
    same: int
    """Number of equal ones here."""
    differing: int
    """Number of values, or whole entities, that differ."""
    reasons: Mapping[str, int]
    """Number of differences by reason."""
    differences: tuple[SnapshotDifference, ...]
    """The differences."""


def compare(ledger: Ledger, database: Database, progress: Progress | None = None) -> SnapshotComparison:
    """Compare every snapshot of a database with the state here."""
    importer = Importer(ledger, database)
    importer.name_entities()
    moved, policies = _moved(database), _policies(database)
    found: list[SnapshotDifference] = []
    reasons: dict[str, int] = {}
    same = done = 0
    whole = database.count("entity_snapshots")
    for row in database.rows("entity_snapshots", "entity_id"):
        differences = list(_differences(ledger, importer, row, moved, policies))
        same += not differences
        for difference in differences:
            reasons[difference.reason] = reasons.get(difference.reason, 0) + 1
        found += differences[: max(0, DIFFERENCES_MAX - len(found))]
        done += 1
        if progress is not None:
            progress(done, whole)
    return SnapshotComparison(done, same, sum(reasons.values()), dict(sorted(reasons.items())), tuple(found))


def _moved(database: Database) -> dict[str, str]:
    """Return when observations were last moved to or from an entity, by a merge or a split, by its id."""
    found: dict[str, str] = {}
    tables = (("entity_merges", ("to_entity_id",)), ("entity_splits", ("source_entity_id", "new_entity_id")))
    for table, ends in tables:
        for row in database.rows(table):
            for end in ends:
                found[row[end]] = max(found.get(row[end], ""), str(row["created_at"]))
    return found


def _policies(database: Database) -> dict[str, dict[str, str]]:
    """Return how fields merge there, by type, in the words of policies here."""
    found: dict[str, dict[str, str]] = {}
    for row in database.rows("schema_registry"):
        stated = parsed(row["reducer_config"])
        stated = stated.get("merge_policies") if isinstance(stated, dict) else None
        if row["active"] and isinstance(stated, dict):
            strategies = {name: str(one.get("strategy")) for name, one in stated.items() if isinstance(one, dict)}
            found[row["entity_type"]] = {name: POLICIES.get(one, "latest") for name, one in strategies.items()}
    return found


def _differences(
    ledger: Ledger,
    importer: Importer,
    row: Mapping[str, Any],
    moved: Mapping[str, str],
    policies: Mapping[str, Mapping[str, str]],
) -> Iterator[SnapshotDifference]:
    id = row["entity_id"]
    there = parsed(row["snapshot"])
    there = there if isinstance(there, dict) else {}
    ref = importer.refs.get(id)
    if ref is None:
        yield SnapshotDifference(
            "", id, "", there, None, "the database has a snapshot without an entity or an observation"
        )
        return
    try:
        snapshot = ledger.show(ref)
    except NotFound:
        yield SnapshotDifference(str(ref), id, "", there, None, "the entity is not here: import the database first")
        return
    if snapshot.deleted:
        if there:
            reason = "it was deleted, and here only a restore undoes that: later observations do not"
            yield SnapshotDifference(str(ref), id, "", there, None, reason)
        return
    here = {**snapshot.fields, **_fragments(snapshot)}
    shown = shapes.fields(snapshot)
    said = [item.observation for item in reads.observations(ledger.context, ref)]
    outdated = str(row.get("computed_at") or "") < moved.get(id, "")
    for name in sorted(there):
        if not _equal(there[name], here.get(name)) and not _equal(there[name], shown.get(name)):
            policy = policies.get(row["entity_type"], {}).get(name, "latest")
            reason = OUTDATED if outdated else _reason(snapshot, name, there[name], said, policy)
            yield SnapshotDifference(str(ref), id, name, there[name], here.get(name), reason)


def _fragments(snapshot: Snapshot) -> dict[str, Any]:
    found = snapshot.fields.get(names.FRAGMENTS)
    return (
        {name: value for name, value in found.items() if name not in snapshot.fields} if isinstance(found, dict) else {}
    )


def _equal(one: Any, other: Any) -> bool:
    """Return True if two values are the same; the order of list elements does not matter."""
    if isinstance(one, list) and isinstance(other, list):
        return sorted(map(repr, one)) == sorted(map(repr, other))
    return bool(one == other)


def _reason(snapshot: Snapshot, name: str, there: Any, said: list[Observation], policy: str) -> str:
    """Return which rule chooses the value here."""
    origin = snapshot.blame.get(name)
    if origin is None:
        return "no value here: null clears a field there, or the row could not be kept"
    claims = [one for one in said if name in (one.fields or {})]
    winner = next((one for one in claims if one.id == origin.observation), None)
    if winner is not None and winner.op == "correct":
        return "a correction holds here until it is corrected or withdrawn, whatever is observed later"
    if str(origin.policy) in COLLECTIONS:
        return f"{origin.policy}: elements of all observations are kept here, not those of one"
    if winner is not None and any(
        one.observed_at == winner.observed_at and one.id != winner.id and _equal((one.fields or {})[name], there)
        for one in claims
    ):
        return "several observations have one time: the larger priority, then the larger value holds, there a row id"
    if not any(_equal((one.fields or {})[name], there) for one in claims):
        return "no observation says it: the value there was converted, or its snapshot is out of date"
    if str(origin.policy) != policy:
        return f"{origin.policy}: the field merges so in the schema here, and by {policy} there"
    if winner is not None and any(
        one.priority == winner.priority and _equal((one.fields or {})[name], there) for one in claims
    ):
        return f"{origin.policy}: of equal priorities the later holds here, there observation_source, then a row id"
    return f"{origin.policy}: the value here is the one that this policy ranks highest"
