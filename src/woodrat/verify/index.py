"""What trails the log, worked out again from it: indexes of runs and traces, of bodies, vectors, the fingerprint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from woodrat.engines.port import Audit, IndexRow, Mismatch, View
from woodrat.errors import Corrupt
from woodrat.exchange import index as exchange_index
from woodrat.explain import index as trace_index
from woodrat.ledger import fingerprint_index, search_index
from woodrat.ledger import index as log_index
from woodrat.recall import index as recall_index
from woodrat.recall.ngram import Ngram
from woodrat.runs import reader as run_reader
from woodrat.training import index as training_index

if TYPE_CHECKING:
    from woodrat.recall.embedders import Embedder

INDEXES: Final = (run_reader.INDEX, trace_index.INDEX, training_index.INDEX, exchange_index.INDEX)
"""The indexes of the log that list entries under terms."""


def check_notes(view: View, audit: Audit) -> None:
    """Compare what is noted of indexes and of other logs with the end of the log, which may have been cut back."""
    end = view.head().position
    names = {*(index.name for index in INDEXES), search_index.INDEX.name, fingerprint_index.NAME}
    for name, noted in audit.notes().items():
        try:
            if name.startswith(exchange_index.TAKEN):
                exchange_index.noted_mark(noted, name)  # a position of another log; only its shape can be seen here
            elif (name in names or name.startswith(recall_index.VECTORS)) and log_index.covered(view, name) > end:
                problem = f"the index {name} speaks of a position after the end of the log"
                audit.wrong.append(Mismatch("truncated", end + 1, None, problem, log=True))
        except (AttributeError, TypeError, Corrupt):
            audit.wrong.append(Mismatch("index", None, None, f"what is noted as {name} cannot be read"))


def pass_over(audit: Audit) -> None:
    """Leave the indexes that trail the log as they are, uncompared."""
    trailing = {*(index.name for index in INDEXES), *search_index.INDEX.indexes}
    for name in audit.indexes():
        if name in trailing or name.startswith(recall_index.VECTORS):
            audit.pass_over(name)


def fingerprint_faults(
    view: View, audit: Audit, expected: Iterable[tuple[bytes, bytes]], through: int
) -> list[Mismatch]:
    """Return what of the kept fingerprint is not what these leaves make, which are those for its position."""
    try:
        position, kept = fingerprint_index.position(view), dict(fingerprint_index.leaves(view))
        wanted = dict(expected)
        found = [
            Mismatch(
                "fingerprint", None, view.entity(entity, through), f"its leaf kept for position {position} is another"
            )
            for entity in sorted(kept.keys() | wanted.keys())
            if kept.get(entity) != wanted.get(entity)
        ]
        if not found and not fingerprint_index.has_its_nodes(view):
            found.append(Mismatch("fingerprint", None, None, f"a node kept for position {position} is another"))
    except Corrupt as error:
        return [Mismatch("fingerprint", None, None, str(error))]
    audit.pass_over(fingerprint_index.NAME)
    return found


def compare(view: View, audit: Audit, embedder: Embedder | None) -> set[str]:
    """Compare the indexes of the log with what it says belongs there; return what could not be compared.

    Vectors are made again with the built-in embedder, and with the one given; those of others are left out.
    """
    unchecked: set[str] = set()
    for index in INDEXES:
        for entry in view.entries(through=log_index.covered(view, index.name), kinds=index.kinds):
            for term in sorted(index.terms(entry)):
                audit.listed(log_index.row(index, term, entry.position))
    loaded = {known.id: known for known in (Ngram(), embedder) if known is not None}
    for name in audit.indexes():
        if name.startswith(recall_index.VECTORS):
            id = name.removeprefix(recall_index.VECTORS)
            if id in loaded:
                before = len(audit.wrong)
                for position, item in recall_index.kept_items(view, loaded[id], log_index.covered(view, name)):
                    audit.listed(IndexRow(name, log_index.position_key(position), position, item))
                audit.wrong[before:] = [wrong._replace(part="vectors") for wrong in audit.wrong[before:]]
            else:
                audit.pass_over(name)
                unchecked.add(f"vectors of {id}: the embedder is not loaded; give it to check them")
    return unchecked
