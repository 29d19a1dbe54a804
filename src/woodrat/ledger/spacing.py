"""Spacing: how far apart the merge states lie that are kept along the history of an entity.

A read of the past begins at the state kept before its moment and folds in what was said since. States kept often make
it short, and cost disk: a wide entity has a large state, however little each observation changes of it. So a state is
kept once what was said since the last one takes as much room as that one does. Kept states then take about as much
room as the log, and a read of the past folds about as many bytes as it reads of a state.

Whether a state is due depends on the log alone: on how many observations of the entity there are, on their bytes, and
on the state kept before. However they were written, and when they are derived again, the same states are kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from woodrat.engines.records import KEPT_EVERY, LastKept
from woodrat.merge import packed_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from woodrat.canon.ids import Ref
    from woodrat.merge.fold import MergeState
    from woodrat.merge.rules import Rules

KEPT_MAX: Final = 1_024
"""A state is kept after about so many observations at the latest, however large it is."""
ENTRY_BYTES: Final = 144
"""What the log needs for an observation beside its body: header, commitment, leaf and nonce."""


class Spacing:
    """Says for the entities of one write, or of one pass over the log, when a state is due to be kept."""

    def __init__(self, last_kept: Callable[[Sequence[Ref]], Sequence[LastKept | None]]) -> None:
        self._find = last_kept
        self._last: dict[Ref, LastKept | None] = {}
        self._noted: dict[Ref, tuple[MergeState, Rules]] = {}

    def look_up(self, roots: Iterable[Ref]) -> None:
        """Find what was kept last of folds that will be asked about, in one look."""
        unknown = [root for root in roots if root not in self._last and root not in self._noted]
        if unknown:
            self._last.update(zip(unknown, self._find(unknown), strict=True))

    def is_due(self, root: Ref, observations: int, body_bytes: int) -> bool:
        """Return whether the state of a fold is due, by how much was folded; `root` is its smallest entity."""
        return not observations % KEPT_EVERY and self.is_far(root, observations, body_bytes)

    def is_far(self, root: Ref, observations: int, body_bytes: int) -> bool:
        """Return whether enough was said of a fold since its state was last kept."""
        if root in self._noted:
            state, rules = self._noted.pop(root)
            size = len(packed_state.pack(state, rules, apart=True))
            self._last[root] = LastKept(state.observations, state.body_bytes, size)
        elif root not in self._last:
            self.look_up((root,))
        last = self._last[root]
        if last is None or observations <= last.observations:  # fewer than before: a group was parted
            return True
        count = observations - last.observations
        return count >= KEPT_MAX or body_bytes - last.body_bytes + count * ENTRY_BYTES >= last.state_bytes

    def note(self, state: MergeState, rules: Rules) -> None:
        """Take note that a state will be kept. How large it is is worked out if it is asked for."""
        self._noted[state.members[0]] = (state, rules)

    def forget(self) -> None:
        """Forget what was noted: all of it is kept now, and found there."""
        self._last.clear()
        self._noted.clear()
