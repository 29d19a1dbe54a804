"""Deriving: everything that follows from a log, made in one pass over it.

    rows → checked → indexes → every entity's fold, at hand → state kept along the way → fingerprint, search index

The folds of a pass are put down where the state of an entity is due to be kept, and at the end. What writes leave is
left by the pass too: `ledger/write.py` is the definition, and what is rare goes through it (schemas, groups). Entities
at hand are bounded, so memory does not grow with the log.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Final

from woodrat.canon.ids import Ref
from woodrat.engines.records import KEPT_EVERY, Kept
from woodrat.engines.transaction import Transaction
from woodrat.engines.view import View
from woodrat.ledger import collector, entry_index, fingerprint_index, identifying_values, log_rows, refold
from woodrat.ledger.before import Before
from woodrat.ledger.erasures import UNFINISHED
from woodrat.ledger.read import Reader, lone_state
from woodrat.ledger.spacing import Spacing
from woodrat.ledger.transitions import advance, is_old, put_rows, spoken_of
from woodrat.log.check import Row
from woodrat.log.entry import NONCE_BYTES
from woodrat.merge import Policy
from woodrat.merge import fold as merge
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules, rules_of
from woodrat.state import schema
from woodrat.state.asof import AsOf
from woodrat.state.identity import Identifying
from woodrat.state.meaning import Meaning, meaning_of
from woodrat.state.observation import Observation
from woodrat.state.relation import SAME_AS
from woodrat.state.schema import Schema

CHUNK_ENTRIES: Final = 250
"""How many entries are read, indexed and merged at a time: few enough to be gone before Python counts them as old."""
PUT_DOWN: Final = 1_000
"""How many entities are put down in one look."""
AT_HAND_MAX: Final = 5_000
"""How many entities are folded at a time; with one more all are put down."""


def derive_again(
    write: Transaction, policies: Mapping[str, Policy], progress: Callable[[int, int], object] | None = None
) -> tuple[int, bytes]:
    """Drop everything derived and make it again from the log as the transaction shows it.

    Return how many observations there are, and the root of the fingerprint.
    """
    size = write.head().size
    unfinished = {name: value for name in UNFINISHED if (value := write.meta(name)) is not None}
    write.drop_derived()
    for name, value in unfinished.items():
        write.set_meta(name, value)
    folds, observations = _Folds(write, policies), 0
    with collector.held_off_long() as part_is_done:
        for rows, meanings in _chunks(write, size):
            folds.take(rows, meanings)
            observations += sum(isinstance(meaning, Observation) for meaning in meanings)
            done = rows[-1].position + 1
            if progress is not None and done < size:
                progress(done, size)
            part_is_done()
        folds.put_down()
        log_rows.follow_all(write)
        part_is_done()
        return observations, fingerprint_index.build(write, policies)


def _chunks(view: View, size: int) -> Iterator[tuple[list[Row], list[Meaning]]]:
    """Yield the log some rows at a time, with what they mean; a body that is not what was promised stops the walk.

    What changes other entities than its own stands by itself.
    """
    rows: list[Row] = []
    meanings: list[Meaning] = []
    before: Row | None = None
    alone = False
    # Read part by part: what is derived meanwhile is written through the same connection.
    for start in range(0, size, CHUNK_ENTRIES):
        for row in list(view.rows(start - 1, start + CHUNK_ENTRIES - 1)):
            if not _is_sound(row, before):
                row.entry().check()
            meaning = meaning_of(row.kind, row.body)
            was_alone, alone = alone, _reaches_others(meaning)
            if rows and (alone or was_alone or len(rows) == CHUNK_ENTRIES):
                yield rows, meanings
                rows, meanings = [], []
            rows.append(row)
            meanings.append(meaning)
            before = row
    if rows:
        yield rows, meanings


def _reaches_others(meaning: Meaning) -> bool:
    """Return whether an entry changes other entities than its own: those of a schema's type, those that are joined."""
    if type(meaning) is Observation:
        return meaning.entity.type == SAME_AS
    return isinstance(meaning, Schema)


def _is_sound(row: Row, before: Row | None) -> bool:
    """Return whether a row goes on the write of the one before and keeps its promise; `Entry.check` knows the rest."""
    _, log, at, kind, write, length, request, commitment, _, nonce, body, origin = row
    return (
        before is not None
        and (log, at, kind, write) == before[1:5]
        and length is None
        and request is None
        and origin is None
        and nonce is not None
        and body is not None
        and len(nonce) == NONCE_BYTES
        and sha256(nonce + body).digest() == commitment
    )


class _Fold:
    """One entity of a pass."""

    __slots__ = ("count", "known", "last", "rules", "size", "state", "values")

    def __init__(self, state: MergeState, rules: Rules, known: Before, values: Identifying) -> None:
        self.state: MergeState | None = state
        """What it is now; none where only a whole fold can tell."""
        self.rules = rules
        self.known = known
        self.values = values
        self.count = state.observations
        """How many observations of it there are."""
        self.size = state.body_bytes
        """How many bytes their bodies have."""
        self.last = -1
        """The position of the last one since it was put down; -1 when nothing was said since."""

    def add(self, said: Observation, position: int) -> None:
        """Fold one more observation in, as long as that can be followed."""
        if self.state is not None:
            self.known.through = position - 1
            self.state = merge.extend(self.state, said, self.rules, self.known)
        self.last = position
        self.count += 1
        self.size += len(said.body)


class _Folds:
    """The entities of a pass over the log: those at hand, and how they are picked up and put down."""

    def __init__(self, write: Transaction, policies: Mapping[str, Policy]) -> None:
        self._write, self._policies = write, policies
        self._at_hand: dict[Ref, _Fold] = {}
        self._unnamed: set[bytes] = set()
        """Of what is taken in now, the digests that no observation names so far."""
        self._rules: dict[str, Rules] = {}
        self._spacing = Spacing(write.last_kept)

    def take(self, rows: Sequence[Row], meanings: Sequence[Meaning]) -> None:
        """Take in the next rows of the log."""
        first, last = rows[0].position, rows[-1].position
        if _reaches_others(meanings[0]):
            # Everything is put down, and it goes the way of a write.
            self.put_down()
            self._rules.clear()
            entry_index.derive(self._write, rows, meanings)
            self._advance(first, last, meanings)
            return
        # Before the rows are indexed the state that was put down is still the present one, and need not be looked for.
        said = [meaning for meaning in meanings if isinstance(meaning, Observation)]
        self._pick_up({one.entity for one in said if one.entity not in self._at_hand}, first - 1)
        entry_index.derive(self._write, rows, meanings)
        digests = [one.digest for one in said]
        self._unnamed.clear()
        self._unnamed.update(digests)
        self._unnamed.difference_update(self._write.named(digests, last))
        joined = self._fold(first, meanings)
        if joined:
            # What belongs to a group is folded with the others of it.
            theirs = [m if isinstance(m, Observation) and m.entity in joined else None for m in meanings]
            self._advance(first, last, theirs)
        if len(self._at_hand) > AT_HAND_MAX:
            self.put_down()

    def _advance(self, first: int, last: int, meanings: Sequence[Meaning]) -> None:
        """Merge entries as a write does."""
        before = Reader(self._write, AsOf(first - 1), self._policies)
        before.remember(spoken_of(meanings))
        after = Reader(self._write, AsOf(last), self._policies)
        transitions = advance(self._write, before, after, first, meanings)
        schemas = [found for found in meanings if isinstance(found, Schema)]
        put_rows(self._write, before, after, transitions, schemas)
        if schemas:
            refold.finish(self._write, self._policies)
        self._spacing.forget()  # more may be kept than was noted

    def _fold(self, first: int, meanings: Sequence[Meaning]) -> set[Ref]:
        """Fold what is said of lone entities; return those that are not."""
        at_hand, joined = self._at_hand, set[Ref]()
        along: list[tuple[Kept, Rules, bool]] = []
        news: list[tuple[Ref, list[tuple[str, str]]]] = []
        lost: dict[Ref, _Fold] = {}
        spacing = self._spacing
        for position, said in enumerate(meanings, first):
            if not isinstance(said, Observation) or said.entity in joined:
                continue
            ref = said.entity
            fold = at_hand.get(ref)
            if fold is None:
                joined.add(ref)
                continue
            values = fold.values
            if values.wanted and (fold.state is None or not is_old(fold.state, fold.rules.identifying, said.fields)):
                count = len(values.found)
                values.add(said)
                if len(values.found) > count:
                    news.append((ref, list(values.found)[count:]))
            fold.add(said, position)
            if not fold.count % KEPT_EVERY and spacing.is_far(ref, fold.count, fold.size):
                state = fold.state or self._whole(ref, position)
                along.append((Kept(position, state), fold.rules, True))
                spacing.note(state, fold.rules)
                fold.state = merge.handed_over(state)
            if fold.state is None:
                lost[ref] = fold
        for ref, fold in lost.items():
            fold.state = fold.state or self._whole(ref, fold.last)
        if along:
            self._write.keep(along)
        spacing.forget()
        if news:
            identifying_values.note(self._write, news)
        return joined

    def _pick_up(self, refs: Collection[Ref], through: int) -> None:
        """Take entities at hand as they were at a position, without those that are joined with others."""
        write = self._write
        joined = entry_index.joined_among(write, [ref.digest for ref in refs])
        alone = [ref for ref in refs if ref.digest not in joined]
        by_type = {type: self._rules_at(type, through) for type in {ref.type for ref in alone}}
        for ref, standing in zip(alone, write.standings(alone, through, by_type), strict=True):
            rules = by_type[ref.type]
            state = (
                merge.empty((ref,), rules)
                if standing is None
                else lone_state(standing) or Reader(write, AsOf(through), self._policies).state(ref)
            )
            values = Identifying(ref, rules.identifying, rules.checker.shared_values)
            known = Before(write, (ref,), through, None, self._unnamed)
            self._at_hand[ref] = _Fold(state, rules, known, values)

    def _rules_at(self, type: str, position: int) -> Rules:
        """Return the rules of a type, which are the same from one schema to the next."""
        found = self._rules.get(type)
        if found is None:
            chosen = entry_index.schema_of(self._write, type, position)
            found = self._rules[type] = rules_of(chosen or schema.OPEN(type), self._policies)
        return found

    def _whole(self, ref: Ref, position: int) -> MergeState:
        return Reader(self._write, AsOf(position), self._policies).state(ref)

    def put_down(self) -> None:
        """Keep the present state of everything at hand, and let it go."""
        keeping: list[tuple[Kept, Rules, bool]] = []
        for fold in self._at_hand.values():
            if fold.last >= 0:
                assert fold.state is not None, "what could not be followed was folded at the end of its part"
                keeping.append((Kept(fold.last, fold.state), fold.rules, False))
        for start in range(0, len(keeping), PUT_DOWN):
            self._write.keep(keeping[start : start + PUT_DOWN])
        self._at_hand.clear()
