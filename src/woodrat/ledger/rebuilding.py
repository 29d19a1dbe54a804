"""Rebuilding: everything derived, made again from the log alone and compared with what was kept.

It is one transaction: until it is done every reader sees what was there before, and a failure leaves all of it. The
log is walked in chunks, so memory does not grow with its length.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import BEFORE_ALL, Engine, Meaning, Transaction, View
from woodrat.frozen import dataclass
from woodrat.ledger import finding
from woodrat.ledger.reading import Reader
from woodrat.ledger.writing import advance, note_values, spoken_of
from woodrat.log.entry import Entry
from woodrat.runs.step import step_of
from woodrat.state import fingerprint, observation, schema, snapshot
from woodrat.state.fingerprint import Tree
from woodrat.state.observation import Observation
from woodrat.state.policy import Policy
from woodrat.state.schema import Schema
from woodrat.views.asof import AsOf

CHUNK_ENTRIES: Final = 1_000
"""How many entries are read, indexed and merged at a time."""

Progress = Callable[[int, int], object]
"""Is told how many entries are done, and how many there are; the last call comes when all is done."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What a rebuild made, and what it found wrong."""

    position: int
    """The position everything derived is true for."""
    entries: int
    """Entries of the log."""
    observations: int
    """Observations among them."""
    entities: int
    """Entities they speak of."""
    repaired: tuple[str, ...]
    """Entities whose kept state disagreed with the log, as references, sorted; it agrees now."""
    fingerprint: str
    """One digest of the whole state, from the log alone."""

    @property
    def agreed(self) -> bool:
        """Whether everything kept was what the log says."""
        return not self.repaired

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as plain JSON."""
        return {
            "position": self.position,
            "entries": self.entries,
            "observations": self.observations,
            "entities": self.entities,
            "repaired": list(self.repaired),
            "agreed": self.agreed,
            "fingerprint": self.fingerprint,
        }


def rebuild(
    engine: Engine, tenant: TenantId, policies: Mapping[str, Policy], progress: Progress | None = None
) -> Rebuilt:
    """Make everything derived again from the log, compare it with what was kept, and keep the new."""
    with engine.transaction(tenant) as write, engine.view(tenant) as old:
        size = write.head().size
        observations, tree = derive_again(write, policies, progress)
        repaired = _disagreeing(write, old, policies)
        if progress is not None:
            progress(size, size)
        return Rebuilt(
            position=size - 1,
            entries=size,
            observations=observations,
            entities=len(write.entities(None, size - 1)),
            repaired=tuple(sorted(map(str, repaired))),
            fingerprint=fingerprint.text(tree.root()),
        )


def derive_again(
    write: Transaction, policies: Mapping[str, Policy], progress: Progress | None = None
) -> tuple[int, Tree]:
    """Drop everything derived and make it again from the log as the transaction shows it.

    Return how many observations there are, and the fingerprint tree.
    """
    size = write.head().size
    write.drop_derived()
    observations = 0
    for entries in _chunks(write, size):
        meanings = [_meaning(entry) for entry in entries]
        first, last = entries[0].position, entries[-1].position
        before = Reader(write, AsOf(first - 1), policies)
        before.remember(spoken_of(meanings))
        write.derive(entries, meanings)
        after = Reader(write, AsOf(last), policies)
        transitions = advance(write, before, after, first, meanings)
        note_values(write, after, transitions, [meaning for meaning in meanings if isinstance(meaning, Schema)])
        observations += sum(isinstance(meaning, Observation) for meaning in meanings)
        done = entries[-1].position + 1
        if progress is not None and done < size:
            progress(done, size)
    head = size - 1
    now = Reader(write, AsOf(head), policies)
    tree = Tree.build(
        (ref.digest, snapshot.value_digest(state, now.rules(ref.type))) for ref, state in finding.folds(now, None)
    )
    if size:
        write.keep_fingerprint(head, tree)
        while finding.index(write, policies) < head:
            pass
    return observations, tree


def _chunks(view: View, size: int) -> Iterator[list[Entry]]:
    """Yield the entries of a log some at a time; a body that is not what its entry promised stops the walk.

    A schema stands by itself: what comes after it is merged by other rules than what came before.
    """
    chunk: list[Entry] = []
    # Read part by part: what is derived meanwhile is written through the same connection.
    for start in range(0, size, CHUNK_ENTRIES):
        for entry in list(view.entries(start - 1, start + CHUNK_ENTRIES - 1)):
            entry.check()
            if chunk and (len(chunk) == CHUNK_ENTRIES or "schema" in (entry.kind, chunk[-1].kind)):
                yield chunk
                chunk = []
            chunk.append(entry)
    if chunk:
        yield chunk


def _meaning(entry: Entry) -> Meaning:
    if entry.body is not None and entry.kind == "observation":
        return observation.stored(entry.body)
    if entry.body is not None and entry.kind == "schema":
        return schema.stored(entry.body)
    return None if entry.body is None else step_of(entry.kind, entry.body)


def _disagreeing(write: Transaction, old: View, policies: Mapping[str, Policy]) -> set[Ref]:
    """Return the entities of which something else was known or kept than the log says."""
    head = write.head().position
    known = set(write.entities(None, head))
    wrong = known.symmetric_difference(old.entities(None, head))
    versions: dict[str, list[int]] = {}
    for entry in write.entries(kinds={"schema"}):
        assert entry.body is not None
        versions.setdefault(schema.stored(entry.body).type, []).append(entry.position)
    now = Reader(write, AsOf(head), policies)
    # Only the smallest of a group has a state; the others may have one from the time before they were joined.
    for root in {now.group(ref)[0] for ref in known}:
        if not _agrees(write, old, root, versions.get(root.type, []), policies):
            wrong.add(root)
    return wrong


def _agrees(write: Transaction, old: View, root: Ref, versions: Sequence[int], policies: Mapping[str, Policy]) -> bool:
    """Return whether what was kept of a fold, now and along its history, is what the log gives at those positions.

    State that is missing, or was folded under another schema, is no disagreement: reads fold on demand.
    """
    head = write.head().position
    for first, last in zip([BEFORE_ALL, *versions], [*(at - 1 for at in versions), head], strict=True):
        # From one schema to the next: what is kept counts only under the schema it was folded under.
        through = last
        while through >= first:
            rules = Reader(write, AsOf(through), policies).rules(root.type)
            kept = old.kept(root, through, rules)
            if kept is None:
                break
            then = Reader(write, AsOf(kept.position), policies)
            # Parts of large collections are compared as they are now; along the history `verify` does.
            same = snapshot.same_state if through == head else snapshot.same_apart
            if not same(kept.state, then.state(root), rules):
                return False
            through = kept.position - 1
    return True
