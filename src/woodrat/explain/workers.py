"""Subscriptions to stale decisions: being told of them as they become so, by writes of this process or of any.

A write is looked at once it is committed, outside of every lock: the decisions that lean on the entities it speaks of
are made again as they stood before it and after it, and those for which that differs are told. No other decision is
looked at.
"""

from __future__ import annotations

import threading
import warnings
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, Final, Protocol
from weakref import WeakKeyDictionary

from woodrat.canon import form
from woodrat.errors import Fault, Refused, shown
from woodrat.explain.stale import Stale
from woodrat.ledger import subscriptions
from woodrat.ledger.growth import growth_of
from woodrat.record_json import Record
from woodrat.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType

    from woodrat.canon.ids import Ref, TenantId
    from woodrat.context import Context
    from woodrat.engines.port import Engine, View
    from woodrat.log.entry import Entry
    from woodrat.merge import Policy

PROBLEMS_MAX: Final = 100
"""How many problems a subscription keeps."""
BEHIND_MAX: Final = 1_000
"""How far the index of evidence may be behind before it is brought up to date; the rest is read from the log."""
WAIT_SECONDS: Final = 60.0
"""How long a follower waits for a write before it looks all the same."""

_WINDOW: Final = 1_024
_KINDS: Final = frozenset({"observation", "schema", "run.decided"})


class StaleWarning(UserWarning):
    """A function that is told of stale decisions failed; the write it was told of stands."""


class Channel(Protocol):
    """Where subscriptions are."""

    def has(self, subscription: Subscription) -> bool:
        """Return whether a subscription is told anything."""

    def remove(self, subscription: Subscription) -> None:
        """Tell a subscription nothing more."""


class Subscription:
    """A function that is told of decisions as they become stale, until this is closed; a context manager."""

    def __init__(self, channel: Channel, callback: Callable[[tuple[Stale, ...]], object]) -> None:
        self._channel = channel
        self._callback = callback
        self._context = copy_context()  # whoever writes, the function does not run inside the writer's run
        self.problems: list[Exception] = []
        """What went wrong while it was told, the first of it; each was warned of as well."""

    @property
    def closed(self) -> bool:
        """Whether it is told nothing any more."""
        return not self._channel.has(self)

    def close(self) -> None:
        """Stop; what is being told now is told to the end."""
        self._channel.remove(self)

    def __enter__(self) -> Subscription:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def tell(self, found: tuple[Stale, ...]) -> None:
        """Call the function; what it raises is kept and warned of."""
        try:
            self._context.run(self._callback, found)
        except Exception as problem:
            self.note(problem)

    def note(self, problem: Exception) -> None:
        """Keep a problem and warn of it."""
        if len(self.problems) < PROBLEMS_MAX:
            self.problems.append(problem)
        # Warnings may be errors in this process; the write still must not break.
        with suppress(Warning):
            told = f"The write stands; the function that was told of it failed: {type(problem).__name__}: {problem}"
            warnings.warn(told, StaleWarning, stacklevel=2)


class _Channel:
    """The subscriptions to one log, and the writes they have yet to be told of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._subscriptions: tuple[Subscription, ...] = ()
        self._waiting: list[tuple[int, int]] = []
        self._telling = False

    def add(self, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
        """Add a subscription."""
        found = Subscription(self, callback)
        with self._lock:
            self._subscriptions += (found,)
        return found

    def has(self, subscription: Subscription) -> bool:
        """Return whether a subscription is among them."""
        return subscription in self._subscriptions

    def remove(self, subscription: Subscription) -> None:
        """Remove a subscription."""
        with self._lock:
            self._subscriptions = tuple(each for each in self._subscriptions if each is not subscription)

    def wrote(self, context: Context, first: int, last: int) -> None:
        """Tell of a write, unless some thread is telling already: then that one goes on with it.

        So functions are called one at a time, and a write by one of them is told of after it has returned.
        """
        with self._lock:
            if not self._subscriptions:
                return
            self._waiting.append((first, last))
            if self._telling:
                return
            self._telling = True
        try:
            while True:
                with self._lock:
                    if not self._waiting:
                        self._telling = False
                        return
                    self._waiting.sort()
                    write = self._waiting.pop(0)
                self._tell(context, *write)
        except BaseException:
            with self._lock:
                self._telling = False
            raise

    def _tell(self, context: Context, first: int, last: int) -> None:
        subscriptions = self._subscriptions
        try:
            found = newly_stale(context, first, last)
        except Exception as problem:
            for each in subscriptions:
                each.note(problem)
            return
        for each in subscriptions:
            if found and not each.closed:
                each.tell(found)


_CHANNELS: WeakKeyDictionary[Engine, dict[TenantId, _Channel]] = WeakKeyDictionary()
_LOCK = threading.Lock()


def subscribe(context: Context, callback: Callable[[tuple[Stale, ...]], object]) -> Subscription:
    """Have a function called with the decisions that each write of this process makes stale."""
    check_callback(callback)
    with _LOCK:
        channels = _CHANNELS.setdefault(context.engine, {})
        channel = channels.get(context.tenant)
        if channel is None:
            channel = channels[context.tenant] = _Channel()
            subscriptions.listen(context.engine, context.tenant, channel)
    return channel.add(callback)


def check_callback(callback: object) -> None:
    """Refuse what cannot be called."""
    if not callable(callback):
        problem = f"expected a function, got {shown(callback)}"
        raise Refused([Fault("callback", problem, "Send a function of the stale decisions.")], "Nothing is watched.")


def newly_stale(context: Context, first: int, last: int) -> tuple[Stale, ...]:
    """Return the decisions that a write, by its first and last position, made stale, by position.

    A decision that was stale before is among them only if it would come out otherwise than it would have before.
    """
    from woodrat.runs import reader as run_reader

    engine, tenant = context.engine, context.tenant
    with engine.view(tenant) as view:
        said = list(view.entries(first - 1, last, _KINDS))
        behind = last - view.shelved(run_reader.INDEX)
    if not said:
        return ()
    if behind > BEHIND_MAX:
        run_reader.catch_up(engine, tenant)
    with engine.view(tenant) as view:
        return tuple(_made_stale(view, context.policies, said, first, last))


def _made_stale(
    view: View, policies: Mapping[str, Policy], said: Iterable[Entry], first: int, last: int
) -> Iterator[Stale]:
    from woodrat.explain.reader.stale import stale_decision
    from woodrat.explain.reader.tracer import Tracer
    from woodrat.explain.remake import SAME
    from woodrat.ledger.read import Reader
    from woodrat.runs.reader import Recounter
    from woodrat.state.asof import AsOf

    then, now = (Tracer(Recounter(Reader(view, AsOf(position), policies))) for position in (first - 1, last))
    # A decision can be stale as soon as it is written: its run had begun before what was corrected meanwhile.
    decisions = {entry.position: entry for entry in said if entry.kind == "run.decided"}
    for ref in _concerned(said, now, then):
        decisions.update((entry.position, entry) for entry in now.recounter.leaning_on(ref))
    for position in sorted(decisions):
        found = stale_decision(now, decisions[position])
        if found is None or found.outcome == SAME:
            continue
        before = stale_decision(then, decisions[position]) if position < first else None
        if before is None or before.outcome != found.outcome or not form.same(before.now.chosen, found.now.chosen):
            yield found


def _concerned(said: Iterable[Entry], now: Any, then: Any) -> Iterable[Ref]:
    """Return the entities that belief may have changed about: spoken of, joined with those, or of another schema."""
    from woodrat.state import observation, relation, schema

    spoken: dict[Ref, None] = {}
    for entry in said:
        if entry.body is None:
            continue
        if entry.kind == "schema":
            spoken.update(dict.fromkeys(now.view.entities(schema.admit(entry.body).type, now.through)))
        elif entry.kind == "observation":
            ref = observation.stored(entry.body).entity
            spoken.update(dict.fromkeys((ref, *(relation.joined(ref) or ()))))
    return dict.fromkeys(member for ref in spoken for at in (now, then) for member in at.reader.group(ref))


@dataclass(frozen=True, slots=True)
class Newly(Record):
    """What some writes after a position made stale."""

    position: int
    """Everything up to here was looked at."""
    decisions: tuple[Stale, ...]
    """The decisions, write by write."""


class Follower:
    """The decisions that writes make stale, by whomever they were written, from a position on."""

    def __init__(self, context: Context, after: int) -> None:
        self._context = context
        self._growth = growth_of(context.engine)
        self._seen: bytes | None = None
        self.position = after
        """Everything up to here was looked at."""

    def wait(self) -> None:
        """Wait until something may have been written since `new` was asked."""
        self._growth.wait(self._seen, WAIT_SECONDS)

    async def wait_on_loop(self) -> None:
        """Wait as `wait` does, on an event loop."""
        await self._growth.wait_on_loop(self._seen, WAIT_SECONDS)

    def new(self) -> Iterator[Stale]:
        """Yield what the writes since the last time made stale, write by write; no lock is held meanwhile."""
        self._seen = self._growth.stamp()  # before the log is looked at: what comes later ends the next wait
        with self._context.engine.view(self._context.tenant) as view:
            head = view.head().position
        while self.position < head:
            for first, last in self._writes(head):
                yield from newly_stale(self._context, first, last)
                self.position = max(self.position, last)

    def next(self) -> Newly:
        """Return what the next writes made stale, of a bounded part of the log; none where there is nothing new."""
        with self._context.engine.view(self._context.tenant) as view:
            head = view.head().position
        found: list[Stale] = []
        if self.position < head:
            for first, last in self._writes(head):
                found += newly_stale(self._context, first, last)
                self.position = max(self.position, last)
        return Newly(self.position, tuple(found))

    def _writes(self, head: int) -> list[tuple[int, int]]:
        """Return the next writes that belief may have changed by, as first and last position."""
        found: dict[int, int] = {}
        through = min(self.position + _WINDOW, head)
        with self._context.engine.view(self._context.tenant) as view:
            for entry in view.entries(self.position, through, _KINDS):
                first = entry.envelope.write
                if first not in found:
                    opening = view.entry(first)
                    assert opening is not None and opening.envelope.length is not None
                    found[first] = first + opening.envelope.length - 1
        if not found:
            self.position = through
        return list(found.items())


class Following(Protocol):
    """What can be asked again and again for what became stale."""

    def new(self) -> Iterator[Stale]:
        """Yield what became stale since the last time."""

    def wait(self) -> None:
        """Wait until there may be more."""


def follow(follower: Following, wait: Callable[[], object] | None) -> Iterator[Stale]:
    """Yield stale decisions as they become so; `wait` is called when there is none, and ends it by returning false."""
    while True:
        yield from follower.new()
        if wait is None:
            follower.wait()
        elif wait() is False:
            return
