"""Arrivals: the one place where imported entries meet erasures of either ledger.

An arriving erasure is carried out before the other entries of its batch, and data erased here does not come back.
Both need the erasure key, because an erasure does not name its data.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from woodrat.context import Context, Erasures
from woodrat.engines.transaction import Transaction
from woodrat.erasure.reader.memory import Remembered
from woodrat.erasure.reader.tail import receipts_of
from woodrat.erasure.verbs import erase as erasure_verbs
from woodrat.errors import Fault, Refused
from woodrat.ledger.erasures import FORGETTING
from woodrat.ledger.moments import erased_here
from woodrat.ledger.write import Draft
from woodrat.log import erasure
from woodrat.log.entry import Entry
from woodrat.state.observation import Observation

KIND = erasure.KIND


def admissible(context: Context, arriving: Sequence[Entry]) -> tuple[Sequence[Entry], int]:
    """Return the arriving entries that may be merged, none of them erased, and the number of erasures carried out.

    Erasures among them are carried out first. Without the key of such erasures, the import is refused: the ledger would
    keep data that another had to forget. Data that the keys folder remembers as erased in the log where an entry began
    is omitted too: an export from before an erasure contains the data, and no sign of the erasure.
    """
    told = [entry for entry in arriving if entry.kind == KIND]
    acted = _carry_out(context, told) if told else 0
    erasures = context.erasures
    if erasures is None:
        return arriving, acted
    with context.engine.view(context.tenant) as view:
        known = erasures.follow(view)
    elsewhere = Remembered(erasures.keys)
    if not known and not elsewhere:
        return arriving, acted
    found = [
        entry
        for entry in arriving
        if entry.body is None or (erasures.record(entry.kind, entry.body) is None and not elsewhere.holds(entry))
    ]
    return found, acted


def _carry_out(context: Context, told: Sequence[Entry]) -> int:
    """Carry out arriving erasures here; return their number."""
    erasures = context.erasures
    key = None if erasures is None else erasures.keys.erasure
    found = []
    for entry in told:
        assert entry.body is not None, "an erasure is never erased"
        known = erasure.stored(entry.body)
        found.append(known)
        if key is None or erasure.name_mac(key, known.log) not in known.names:
            raise _keyless(entry, erasures, other=key is not None)
    assert erasures is not None
    erasures.keys.remember(known for known in found if known.scope != erasure.LATE)
    return len(erasure_verbs.carry_out(context, found))


def _keyless(entry: Entry, erasures: Erasures | None, *, other: bool) -> Refused:
    where = "here" if erasures is None else f"in {erasures.keys.folder}"
    lacking = f"another erasure key is {where}" if other else f"no erasure key is {where}"
    problem = f"position {entry.position} of {entry.log} is an erasure, and {lacking}"
    remedy = (
        "Hand over erasure.key from the keys of that ledger: put it into a folder, name it with --signing-keys or "
        "keys=, and try again. Or import into an empty ledger."
    )
    return Refused([Fault(KIND, problem, remedy)])


def said_otherwise(
    context: Context, draft: Draft, observations: Sequence[Observation]
) -> tuple[Sequence[Observation], bytes | None]:
    """Return arriving observations; those that name erased ones are rewritten as after the erasure.

    If any was rewritten, the body of an entry that says so comes with them.
    """
    erasures = context.erasures
    if erasures is None or not observations or not erasures.follow(draft.view):
        return observations, None
    found, late, _ = erasure_verbs.admitted(erasures, observations, draft.agent, draft.log, draft.recorded_at)
    return [one for one in found if isinstance(one, Observation)], late


class Due:
    """True if imported entries hold data that the folder of keys remembers as erased.

    The flag becomes durable with the entries, so that the next import after a crash makes up for it.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self._erased: Remembered | None = None
        with context.engine.view(context.tenant) as view:
            self._found = view.meta(FORGETTING) is not None

    def __bool__(self) -> bool:
        return self._found

    def look(self, entries: Iterable[Entry]) -> None:
        """Check entries of this log that were imported unchanged."""
        if self._erased is None:
            erasures = self._context.erasures
            self._erased = Remembered(None if erasures is None else erasures.keys)
        if self._erased and not self._found:
            self._found = any(map(self._erased.holds, entries))

    def note(self, write: Transaction) -> None:
        """If so, record it with the imported entries."""
        if self._found:
            write.set_meta(FORGETTING, b"")

    def settle(self) -> int:
        """Carry out due erasures; return their number."""
        if not self._found:
            return 0
        count = remembered(self._context)
        self._found = False
        with self._context.engine.transaction(self._context.tenant) as write:
            write.set_meta(FORGETTING, None)
        return count


def remembered(context: Context) -> int:
    """Erase from the imported entries what the keys folder remembers as erased; return the number of erasures.

    A backup or an old export holds data that was erased after it was made.
    """
    if context.erasures is None:
        return 0
    return len(erasure_verbs.erase_again(context))


def follow(write: Transaction, arriving: Sequence[Entry]) -> frozenset[bytes]:
    """Repeat in a growing clone the erasures of its original; return the removed nonces.

    An erasure that comes with the whole log finds its entries erased. One that comes later finds them here.
    """
    erased: dict[int, bytes] = {}
    for entry in arriving:
        if entry.kind == KIND and entry.body is not None and entry.envelope.origin is None:
            for first, last in erased_here(write, entry):
                for held in list(write.entries(first - 1, min(last, entry.position - 1))):
                    if held.body is not None and held.nonce is not None:
                        erased[held.position] = held.nonce
    if erased:
        write.erase(sorted(erased), receipts_of(write, set(erased)))
    return frozenset(erased.values())
