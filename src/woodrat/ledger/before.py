"""What a fold knew: the observations it had taken in, found through the indexes of an engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from woodrat.canon.ids import Ref
from woodrat.engines.view import View
from woodrat.merge.fold import MergeState, extend
from woodrat.merge.rules import Rules
from woodrat.state.asof import AsOf, Stored
from woodrat.state.observation import Observation


class Before:
    """What a fold of these members knew through a position, of what an as-of selects."""

    __slots__ = ("_asof", "_unnamed", "_view", "members", "through")

    def __init__(
        self,
        view: View,
        members: Sequence[Ref],
        through: int,
        asof: AsOf | None = None,
        unnamed: Collection[bytes] = (),
    ) -> None:
        """`unnamed` are digests that no observation names, as far as the log goes: they are not asked about."""
        self._view, self._asof, self._unnamed = view, asof, unnamed
        self.members = members
        """Whose observations it knows; who folds one entity after the other changes them."""
        self.through = through
        """The last position it knows of; who folds on moves it along."""

    def find(self, digest: bytes) -> Observation | None:
        found = self._view.observation(digest, self.through)
        return found.observation if found is not None and self._folded(found) else None

    def namers(self, digest: bytes) -> Collection[Observation]:
        if digest in self._unnamed:
            return ()
        found = self._view.namers(digest, self.through)
        return [stored.observation for stored in found if self._folded(stored)] if found else ()

    def _folded(self, stored: Stored) -> bool:
        return stored.observation.entity in self.members and (self._asof is None or self._asof.selects(stored))


def extend_all(state: MergeState, since: Iterable[Stored], rules: Rules, known: Before) -> MergeState | None:
    """Fold observations in by position, each knowing those before it; `None` asks for a whole fold."""
    for position, observation in since:
        known.through = position - 1
        found = extend(state, observation, rules, known)
        if found is None:
            return None
        state = found
    return state
