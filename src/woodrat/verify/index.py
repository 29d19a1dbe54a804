"""What trails the log, worked out again from it: indexes of runs and traces, of bodies, vectors, the fingerprint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from woodrat.engines.port import BEFORE_ALL, Audit, IndexRow, Mismatch, View
from woodrat.errors import Corrupt
from woodrat.exchange import index as exchange_index
from woodrat.explain.index import touched
from woodrat.explain.index.traces import TRACES
from woodrat.ledger import fingerprint_index, identity_backlog, log_rows, refold, search_index
from woodrat.ledger import index as log_index
from woodrat.ledger.identifying_values import SHARING, prefix_of_rule
from woodrat.ledger.indexer import STATE
from woodrat.ledger.state_index import progress_of
from woodrat.recall import index as recall_index
from woodrat.runs.index.terms import LISTS, NAME
from woodrat.state import entry_rows, fingerprint, observation

if TYPE_CHECKING:
    from woodrat.merge import Policy
    from woodrat.recall.embedders import Embedder
    from woodrat.verify.leaves import Leaves


LISTED: Final = (entry_rows.OBSERVED, entry_rows.SAID, entry_rows.BLOCKS, NAME, LISTS, TRACES, touched.NAME)
"""The indexes of observations and of rooms, which a deep check compares."""


def check_notes(view: View, audit: Audit) -> None:
    """Compare what is noted of indexes and of other logs with the end of the log, which may have been cut back."""
    end = view.head().position
    of_state = {index.name for index in STATE}
    for name, noted in audit.notes().items():
        try:
            if name.startswith(exchange_index.TAKEN):
                exchange_index.noted_mark(noted, name)  # a position of another log; only its shape can be seen here
            elif (
                any(one.position > end for one in refold.waiting(view))
                if name == refold.NAME
                else any(one.position > end for one in identity_backlog.backlogs(view))
                if name == identity_backlog.NAME
                else progress_of(view, name).position > end
                if name in of_state
                else (name == recall_index.PASSAGES or name.startswith(recall_index.VECTORS))
                and log_index.covered(view, name) > end
            ):
                problem = f"the index {name} speaks of a position after the end of the log"
                audit.wrong.append(Mismatch("truncated", end + 1, None, problem, log=True))
        except (AttributeError, TypeError, Corrupt):
            audit.wrong.append(Mismatch("index", None, None, f"what is noted as {name} cannot be read"))


def pass_over_backlog(view: View, audit: Audit) -> None:
    """Count the identifying values by rules that wait as found: which of them are there depends on how far that is."""
    for one in identity_backlog.backlogs(view):
        for rule in one.rules:
            for key, _ in view.scan(SHARING, prefix_of_rule(one.type, rule)):
                audit.listed(IndexRow(SHARING, key, 0))


def pass_over(audit: Audit) -> None:
    """Leave the indexes that only a deep check compares as they are."""
    deep = {*search_index.INDEX.indexes, *LISTED, recall_index.PASSAGES}
    for name in audit.indexes():
        if name in deep or name.startswith(recall_index.VECTORS):
            audit.pass_over(name)


def root_of(leaves: Leaves) -> bytes:
    """Return the digest of the whole tree over the leaves of a fingerprint."""
    return fingerprint.whole(fingerprint_index.top(leaves.items()))


def fingerprint_faults(view: View, audit: Audit, expected: Leaves, through: int) -> Iterator[Mismatch]:
    """Yield what of the kept fingerprint is not what these leaves make, which are those for its position."""
    audit.pass_over(fingerprint_index.NAME)
    try:
        position, agreed = fingerprint_index.position(view), True
        for entity in _unlike(fingerprint_index.leaves(view), expected.items()):
            agreed = False
            problem = f"its leaf kept for position {position} is another"
            yield Mismatch("fingerprint", None, view.entity(entity, through), problem)
        if agreed and not fingerprint_index.has_its_nodes(view):
            yield Mismatch("fingerprint", None, None, f"a node kept for position {position} is another")
    except Corrupt as error:
        yield Mismatch("fingerprint", None, None, str(error))


def _unlike(one: Iterator[tuple[bytes, bytes]], other: Iterator[tuple[bytes, bytes]]) -> Iterator[bytes]:
    """Yield the entities whose leaves are not the same, or only in one of two that come in order."""
    left, right = next(one, None), next(other, None)
    while left is not None or right is not None:
        if left == right:
            left, right = next(one, None), next(other, None)
            continue
        entity = min(leaf[0] for leaf in (left, right) if leaf is not None)
        yield entity
        if left is not None and left[0] == entity:
            left = next(one, None)
        if right is not None and right[0] == entity:
            right = next(other, None)


def compare(view: View, audit: Audit, embedder: Embedder | None, policies: Mapping[str, Policy]) -> set[str]:
    """Compare the indexes of the log with what it says belongs there; return what could not be compared.

    Vectors are made again with the embedder given; those of others are left out.
    """
    unchecked: set[str] = set()
    _compare_rows(view, audit)
    for row in recall_index.kept_passages(view, policies, log_index.covered(view, recall_index.PASSAGES)):
        audit.listed(row)
    for name in audit.indexes():
        if not name.startswith(recall_index.VECTORS):
            continue
        id = name.removeprefix(recall_index.VECTORS)
        if embedder is None or embedder.id != id:
            audit.pass_over(name)
            unchecked.add(f"vectors of {id}: the embedder is not loaded; give it to check them")
            continue
        for row in recall_index.kept_vectors(view, embedder, name):
            audit.listed(row, part="vectors")
    return unchecked


def _observation_rows(view: View, after: int, through: int) -> Iterator[IndexRow]:
    """Yield the rows that observations between two positions ask for; both are ends of blocks, or of the log."""
    blocks: set[bytes] = set()
    for entry in view.entries(after, through, {"observation"}):
        if entry.body is not None:
            said, alone = observation.stored(entry.body), entry.recorded_at if entry.envelope.length == 1 else None
            for name, key, value in entry_rows.observation_rows(said, entry.position, alone):
                yield IndexRow(name, key, entry.position, value)
            for name, key, value in entry_rows.block_rows(said, entry.position, alone):
                if key not in blocks:
                    blocks.add(key)
                    yield IndexRow(name, key, entry.position, value)


def _compare_rows(view: View, audit: Audit) -> None:
    """Compare the rows of observations, and those that rooms list, with those that the log asks for, part by part.

    Where a row ends may only be known parts later: it is taken as it is listed, and its end is compared when it comes.
    """
    end = view.head().position
    ends = 0
    for after in range(BEFORE_ALL, end, log_rows.PASS_ENTRIES):
        through = min(after + log_rows.PASS_ENTRIES, end)
        entries = log_rows.entries_between(view, after, through)
        for row in _observation_rows(view, after, through):
            audit.listed(row)
        concerned = log_rows.Concerned(view, entries)
        for row in concerned.rows():
            audit.listed(row)
        for row in concerned.followed(view, after, through):
            lives = view.lives(row.name, row.key)
            if row.since == log_rows.STANDING:
                ends -= 1
                if not any(life.until == row.until and life.value == row.value for life in lives):
                    problem = f"a row of the index {row.name} does not end where the log says"
                    audit.wrong.append(Mismatch("index", row.until, None, problem))
            elif row.until is None:
                until = next((life.until for life in lives if life.key == row.key and life.since == row.since), None)
                ends += until is not None
                audit.listed(row._replace(until=until))
            else:
                audit.listed(row)
    if ends:
        problem = "rows of indexes end where the log does not say so"
        audit.wrong.append(Mismatch("index", None, None, problem))
