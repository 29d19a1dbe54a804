"""Batches: plain writes that share a commit are merged in one pass, and each gets the report it would have got alone.

Calls that wait at a server's door mostly speak of different entities. Such calls of one tenant are planned against the
state before the first of them, appended in one go and merged in one pass. It is the same as one after the other as
long as none could notice another, so a call is gathered with others only if

- it leans on nothing but schemas, sources and the entities it speaks of, which its verb says (`Writer.write`),
- it states plain assertions, none of a relation or of an entity that is joined with others,
- and none of the others says the very same or has its idempotency key.

Of calls about one entity each is merged after the one before, so that each report tells what its own call changed. Any
other call comes after them, and so does one that is refused: a refusal counts when nothing went before it that it has
not seen. Should anything fail while they are merged, all of it is undone and each call is carried out by itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from itertools import groupby
from typing import NamedTuple

from woodrat.canon.ids import Ref
from woodrat.context import Context
from woodrat.engines.port import Transaction
from woodrat.errors import WoodratError
from woodrat.ledger import entry_index, subscriptions
from woodrat.ledger.read import Reader, Transition
from woodrat.ledger.report import Report
from woodrat.ledger.spacing import Spacing
from woodrat.ledger.transitions import keep, remember
from woodrat.ledger.write import Call, Draft, next_log, report_of
from woodrat.log.entry import Write
from woodrat.merge import fold
from woodrat.state import relation
from woodrat.state.asof import AsOf, Stored
from woodrat.state.meaning import Meaning
from woodrat.state.observation import ASSERT, Observation

ITEMS_MAX = 64
"""A write of more entries is merged in one pass by itself, and gains nothing by company."""


class Batch:
    """Calls that wait to be carried out together; a context whose stand-in it is writes into it.

    The report that such a write returns has nothing to tell until the batch was carried out.
    """

    def __init__(self) -> None:
        self.calls: list[Call] = []
        """The calls, in the order they were made."""

    def take(self, call: Call) -> Report:
        """Have a call wait; one that cannot be is refused at once."""
        call.check()
        self.calls.append(call)
        return Report.later(call.parts)

    def carry_out(self) -> None:
        """Carry out the calls; each knows what became of it then. Those of one tenant keep their order."""
        for _, several in groupby(sorted(self.calls, key=_tenant), key=_tenant):
            waiting = deque(several)
            while waiting:
                _carry_out_some(waiting)


def _tenant(call: Call) -> str:
    return call.context.tenant


def _carry_out_alone(call: Call) -> None:
    try:
        call.report = call.carry_out()
    except BaseException as error:
        call.error = error


def _carry_out_some(waiting: deque[Call]) -> None:
    """Carry out calls from the first on, as many as can be gathered; a first one that cannot is carried out alone."""
    context, count = waiting[0].context, len(waiting)
    members: list[_Member] = []
    reports: list[Report] = []
    try:
        with context.engine.transaction(context.tenant) as write:
            shared = SharedPass(write, context, members)
            while waiting and shared.take(waiting[0]):
                waiting.popleft()
            if members:
                reports = shared.write()
    except Exception:
        # Whose fault it was shows when each is carried out by itself.
        for member in members:
            _carry_out_alone(member.call)
    else:
        for member, report in zip(members, reports, strict=True):
            subscriptions.publish(member.call.context, member.first, report.position)
            member.call.report = report
    if len(waiting) == count:
        _carry_out_alone(waiting.popleft())


class _Member(NamedTuple):
    """A call that is gathered."""

    call: Call
    draft: Draft
    refs: Collection[Ref]
    """The entities it speaks of."""
    first: int
    """The position of its first entry."""

    def said(self) -> dict[Ref, list[Stored]]:
        """Return what it says, by entity."""
        found: dict[Ref, list[Stored]] = {}
        for position, (_, _, said, _) in enumerate(self.draft.items, self.first):
            assert isinstance(said, Observation), "nothing else is gathered"
            found.setdefault(said.entity, []).append(Stored(position, said))
        return found


class _Apart(Exception):
    """What is gathered can only be merged one by one."""


class SharedPass:
    """Calls that are planned against one state, and written as one."""

    def __init__(self, write: Transaction, context: Context, members: list[_Member]) -> None:
        head = write.head()
        self._view = write
        self._policies = context.policies
        self._before = Reader(write, AsOf(head.position), context.policies)
        self._log = next_log(write, context.clock)
        self._next = head.size
        self._recorded_at = head.recorded_at
        self._spoken_of: set[Ref] = set()
        self._again = False  # whether anything is spoken of twice
        self._said: set[bytes] = set()
        self._keys: set[tuple[str, str]] = set()
        self.members = members

    def take(self, call: Call) -> bool:
        """Plan a call; return whether it is a member now, or done with. One that is neither has to come later."""
        context = call.context
        if not call.apart or call.dry_run or context.policies != self._policies:
            return False
        try:
            call.hide(self._view)
            if call.key is not None:
                if (context.agent, call.key) in self._keys:
                    return False
                call.report = call.answer(self._view, call.key)
                if call.report is not None:
                    return True
            draft = call.draft(self._view, self._before, self._recorded_at, self._log)
            if not self._suits(draft):
                return False
            call.stop_erased(draft)
        except WoodratError as error:
            if self.members:
                return False
            call.error = error
            return True
        refs = dict.fromkeys([said.entity for said in draft.said])
        remember(self._view, self._before, refs)
        self._said.update([said.digest for said in draft.said])
        self._again = self._again or not self._spoken_of.isdisjoint(refs)
        self._spoken_of.update(refs)
        if call.key is not None:
            self._keys.add((context.agent, call.key))
        self.members.append(_Member(call, draft, refs, self._next))
        self._next += len(draft.items)
        self._recorded_at = draft.recorded_at
        return True

    def _suits(self, draft: Draft) -> bool:
        """Return whether nobody could tell whether a draft was merged alone or with the others."""
        if draft.known or draft.hints or draft.id is not None or not 0 < len(draft.items) <= ITEMS_MAX:
            return False
        for _, _, said, origin in draft.items:
            if not isinstance(said, Observation) or said.op != ASSERT or said.replaces or origin is not None:
                return False
            ref = said.entity
            if (
                said.digest in self._said
                or relation.endpoints(ref) is not None
                or entry_index.joined(self._view, ref.digest)
            ):
                return False
        return True

    def write(self) -> list[Report]:
        """Append what the members say, merge it in one pass, and return their reports."""
        members, view = self.members, self._view
        made = [member.call.entries(member.draft, member.first) for member in members]
        writes = [entries for entries, _ in made]
        meanings: list[Meaning] = [item.meaning for member in members for item in member.draft.items]
        entry_index.append(view, writes, meanings)
        after = Reader(view, AsOf(self._next - 1), self._policies)
        found = self._merged(after)
        return [
            self._report(member, entries, nonce, after, own)
            for member, (entries, nonce), own in zip(members, made, found, strict=True)
        ]

    def _merged(self, after: Reader) -> Sequence[Sequence[Transition]]:
        """Merge what the members say and keep what comes of it; return what became of the entities of each."""
        found: list[Sequence[Transition]] = [()] * len(self.members)
        whole: dict[Ref, Transition] = {}
        spacing = Spacing(self._view.last_kept)
        for places in self._rounds():
            spoken = {ref: said for place in places for ref, said in self.members[place].said().items()}
            transitions, others = after.follow(self._before, spoken, {}, spacing)
            if others or (whole and any(fold.spread(transition.old) for transition in transitions)):
                raise _Apart
            self._before.go_on(transitions)
            became = {transition.ref: transition for transition in transitions}
            for place in places:
                found[place] = [became[ref] for ref in self.members[place].refs]
            for ref, transition in became.items():
                first = whole.get(ref)
                whole[ref] = transition if first is None else transition._replace(old=first.old)
        keep(self._view, after, whole.values(), spacing)
        return found

    def _rounds(self) -> Sequence[Sequence[int]]:
        """Return the places of members in rounds: no entity is spoken of twice in one, and the first comes first."""
        if not self._again:
            return [range(len(self.members))]
        rounds: list[list[int]] = []
        next_round: dict[Ref, int] = {}
        for place, member in enumerate(self.members):
            number = max(next_round.get(ref, 0) for ref in member.refs)
            next_round.update(dict.fromkeys(member.refs, number + 1))
            if number == len(rounds):
                rounds.append([])
            rounds[number].append(place)
        return rounds

    def _report(
        self, member: _Member, entries: Write, nonce: bytes, after: Reader, own: Sequence[Transition]
    ) -> Report:
        report = report_of(member.draft, entries, after, own, ())
        member.call.claim(self._view, report, nonce)
        return report
