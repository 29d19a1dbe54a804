"""So far: what the log has of a run that is sent step by step, so that a step costs the same however many there are.

Whoever records elsewhere may send a step twice, so each is looked for before it is appended. To read the whole run for
that would make a run of many steps ever slower. What was read once is kept, by engine, and only what came since is
read; it is believed as long as the last entry it knows stands where it stood. A transaction that was undone, or
another log in the same place, has another entry there: its nonce is random.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from woodrat.canon import form
from woodrat.canon.digest import digest
from woodrat.engines.records import BEFORE_ALL
from woodrat.ledger import entry_index
from woodrat.log import erasure
from woodrat.state import run_owner

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.engines.engine import Engine
    from woodrat.engines.view import View
    from woodrat.log.entry import Entry

ENTRIES_MAX: Final = 100_000
"""How many entries, of all runs of an engine, are at hand; a run that has more is read anew each time."""


class SoFar:
    """What the log holds of one run."""

    __slots__ = ("_commitment", "_ended_by", "_position", "_rank", "known", "owner")

    def __init__(self) -> None:
        self.known: set[bytes] = set()
        """The digests of its entries, of kind and body; erased ones aside."""
        self.owner: str | None = None
        """Whose run it is; none where there is no entry of it."""
        self._rank: run_owner.Rank | None = None
        self._ended_by: set[Any] = set()
        self._position = BEFORE_ALL
        self._commitment = b""

    @property
    def bound(self) -> bool:
        """Whether its id is made from its owner."""
        return self._rank is not None and self._rank < run_owner.STARTED

    @property
    def ended(self) -> bool:
        """Whether its owner has ended it."""
        return self.owner in self._ended_by

    def is_of(self, view: View) -> bool:
        """Return whether a view still holds what was read; an erasure since then counts as a change."""
        last = view.entry(self._position)
        if last is None or last.commitment != self._commitment:
            return False
        return next(iter(view.entries(self._position, None, {erasure.KIND})), None) is None

    def take_in(self, view: View, run: str, through: int) -> None:
        """Read what came since."""
        for entry in entry_index.run_entries(view, run, through, self._position):
            self._take(entry)

    def _take(self, entry: Entry) -> None:
        self._position, self._commitment = entry.position, entry.commitment
        if entry.body is None:
            return
        self.known.add(digest(entry.kind, entry.body))
        if entry.kind not in ("run.started", "run.ended") and self._rank is not None and self._rank < run_owner.ANY:
            return  # a beginning says whose run it is, and steps say nothing more of that
        body: Any = form.decode(entry.body)
        if not isinstance(body, dict):
            return
        ranked = run_owner.rank_of(entry.kind, str(body.get("run")), body)
        if ranked is not None and (self._rank is None or ranked[0] < self._rank):
            self._rank, self.owner = ranked
        if entry.kind == "run.ended":
            self._ended_by.add(str(body.get("agent")))


class _AtHand:
    """The runs an engine was asked about lately; those used last at the end."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: OrderedDict[tuple[TenantId, str], SoFar] = OrderedDict()
        self._entries = 0

    def take(self, tenant: TenantId, run: str) -> SoFar | None:
        """Return what is at hand of a run, for one who asks at a time."""
        with self._lock:
            found = self._runs.pop((tenant, run), None)
            self._entries -= 0 if found is None else len(found.known)
            return found

    def put(self, tenant: TenantId, run: str, so_far: SoFar) -> None:
        """Keep it for the next who asks, within a bound."""
        with self._lock:
            before = self._runs.pop((tenant, run), None)
            self._runs[tenant, run] = so_far
            self._entries += len(so_far.known) - (0 if before is None else len(before.known))
            while self._entries > ENTRIES_MAX:
                self._entries -= len(self._runs.popitem(last=False)[1].known)


_AT_HAND: WeakKeyDictionary[Engine, _AtHand] = WeakKeyDictionary()
_LOCK = threading.Lock()


def of_run(engine: Engine, tenant: TenantId, view: View, run: str, through: int) -> SoFar:
    """Return what a view of a log holds of a run through a position; whoever asks next may not get the very same."""
    with _LOCK:
        at_hand = _AT_HAND.setdefault(engine, _AtHand())
    found = at_hand.take(tenant, run)
    if found is None or not found.is_of(view):
        found = SoFar()
    found.take_in(view, run, through)
    if found.known:
        at_hand.put(tenant, run, found)
    return found
