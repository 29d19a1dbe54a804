"""Cloning: a log copied unchanged, with its positions, nonces, times and names, so that its roots stay the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from woodrat.context import Context
from woodrat.engines.transaction import Transaction
from woodrat.erasure.verbs import arrivals, byte_scan
from woodrat.erasure.verbs.pending_search import PendingSearch
from woodrat.errors import Fault, Refused
from woodrat.exchange.lines import Arrived
from woodrat.ledger import entry_index
from woodrat.ledger.derive import derive_again
from woodrat.ledger.read import Reader
from woodrat.ledger.transitions import absorb, remember, spoken_of
from woodrat.log.entry import Write
from woodrat.state.asof import AsOf
from woodrat.state.observation import Observation

Whole = Sequence[Arrived]
"""One write, all of it."""


def clone(context: Context, writes: Sequence[Whole], due: arrivals.Due) -> bool:
    """Append writes to a log that is empty or a clone; return True if they fit there.

    They become durable together, with a note that the log so far was written elsewhere. Entries in them that were
    erased since are `due`.
    """
    with context.engine.transaction(context.tenant) as write:
        head = write.head()
        if head.size != writes[0][0].entry.position or write.cloned() != head.position:
            return False
        _check_once(write, writes)
        erased = arrivals.follow(write, [arrived.entry for whole in writes for arrived in whole])
        for part in _parts(writes):
            _take(context, write, part)
        if erased:
            derive_again(write, context.policies)
        write.note_clone()
        due.look(arrived.entry for whole in writes for arrived in whole)
        due.note(write)
    if erased:
        byte_scan.finish(context, PendingSearch(erased, frozenset(), ()))
    return True


def _check_once(write: Transaction, writes: Sequence[Whole]) -> None:
    """Refuse a log that holds an observation twice: no ledger writes one, and `verify` would call it damaged."""
    arrived = [one for whole in writes for one in whole if isinstance(one.meaning, Observation)]
    observations = [one.meaning for one in arrived if isinstance(one.meaning, Observation)]
    known = set(write.known(observations)) if observations else set()
    faults = []
    for one, observation in zip(arrived, observations, strict=True):
        if observation.digest in known:
            problem = f"the observation {observation.id} at position {one.entry.position} is in this log already"
            faults.append(Fault("position", problem, "A log holds an observation once. Export the log again."))
        known.add(observation.digest)
    if faults:
        raise Refused(faults)


def _parts(writes: Sequence[Whole]) -> Iterator[list[Whole]]:
    """Yield writes that can be merged in one batch: a write with a schema is a batch of its own, since it changes the
    rules.
    """
    part: list[Whole] = []
    for whole in writes:
        if any(arrived.entry.kind == "schema" for arrived in whole):
            if part:
                yield part
            yield [whole]
            part = []
        else:
            part.append(whole)
    if part:
        yield part


def _take(context: Context, write: Transaction, part: Sequence[Whole]) -> None:
    meanings = [arrived.meaning for whole in part for arrived in whole]
    first, last = part[0][0].entry.position, part[-1][-1].entry.position
    before = Reader(write, AsOf(first - 1), context.policies)
    remember(write, before, spoken_of(meanings))
    entry_index.append(write, [Write.of([arrived.entry for arrived in whole]) for whole in part], meanings)
    absorb(write, before, Reader(write, AsOf(last), context.policies), first, meanings)
