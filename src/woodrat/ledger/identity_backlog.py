"""The identity backlog: types whose identity rules changed, and whose identifying values are noted anew in steps.

A schema with other identity rules makes rows of `sharing` wrong or missing for every entity of its type. The write of
the schema only notes which rules that concerns. The indexer then takes short steps (`go_on`): first it forgets the
rows by those rules, then it notes the values of one page of entities after the other.

No answer depends on how far it is. A read that needs the values of an entity whose turn has not come works them out
(`sharing`). A write that matches records to known entities finishes the backlog of their types first (`finish`). Hints
about shared values leave out rules that wait, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.errors import Refused
from woodrat.ledger import identifying_values
from woodrat.ledger.erasures import erased_since
from woodrat.ledger.identifying_values import SHARING, said_values
from woodrat.ledger.read import Reader
from woodrat.merge.packing import garbled
from woodrat.record_json import Record
from woodrat.records import dataclass, replace
from woodrat.state.asof import AsOf
from woodrat.state.entry_rows import SCHEMA

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.context import Context
    from woodrat.engines.engine import Engine
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View
    from woodrat.ledger.identifying_values import Values
    from woodrat.merge import Policy

NAME: Final = "identifying values"
"""Under it the backlog is noted."""
STEP_ENTITIES: Final = 250
"""How many entities one step takes in at most."""
STEP_OBSERVATIONS: Final = 5_000
"""After so many observations a step ends."""
STEP_ROWS: Final = 2_000
"""How many rows one step forgets."""
_WHAT: Final = "Which identifying values are to be noted anew"
_AT_HAND: Final = (NAME,)
"""Under what it is kept at hand, beside the schemas by type, whether there is a backlog, or which write changed it."""


@dataclass(frozen=True, slots=True)
class Backlog(Record):
    """A type with identifying values that wait to be noted anew."""

    type: str
    """The type."""
    position: int
    """The end of the write that brought the last schema with other identity rules."""
    forgetting: tuple[str, ...]
    """Rules by which rows are still to be forgotten; that comes first."""
    noting: tuple[str, ...]
    """Rules by which values are then to be noted."""
    last: str
    """The last key that is done; empty before the first."""
    done: int
    """How many entities are done."""

    @property
    def rules(self) -> frozenset[str]:
        """The rules whose rows cannot be relied on."""
        return frozenset((*self.forgetting, *self.noting))


def backlogs(view: View) -> tuple[Backlog, ...]:
    """Return the types that wait, by name."""
    noted = view.meta(NAME)
    if noted is None:
        return ()
    try:
        stated: Any = form.decode(noted)
        found = tuple(
            Backlog(type, at, tuple(drop), tuple(add), last, done) for type, at, drop, add, last, done in stated
        )
    except (Refused, TypeError, ValueError) as error:
        raise garbled(_WHAT) from error
    for one in found:
        texts = (one.type, one.last, *one.forgetting, *one.noting)
        if not all(type(text) is str for text in texts) or type(one.position) is not int or type(one.done) is not int:
            raise garbled(_WHAT)
    return found


def position(view: View) -> int:
    """Return the last position through which no values wait."""
    return min((one.position - 1 for one in backlogs(view)), default=view.head().position)


def is_due(view: View) -> bool:
    """Return whether any type waits. Wrongly true costs time; it is never wrongly false."""
    at_hand = view.at_hand(SCHEMA)
    known: bool | int | None = at_hand.get(_AT_HAND)
    if isinstance(known, bool):
        return known
    found = bool(backlogs(view))
    if known != id(view):
        at_hand[_AT_HAND] = found
    return found


def _by_type(view: View) -> Mapping[str, Backlog]:
    return {one.type: one for one in backlogs(view)} if is_due(view) else {}


def _note(write: Transaction, found: Iterable[Backlog]) -> None:
    noted: list[Any] = [
        [one.type, one.position, list(one.forgetting), list(one.noting), one.last, one.done] for one in found
    ]
    write.set_meta(NAME, form.serialise(noted) if noted else None)
    # What this write sees may be undone with it, so it is the one that keeps nothing at hand.
    write.at_hand(SCHEMA)[_AT_HAND] = id(write)


def note(write: Transaction, before: Reader, after: Reader, types: Iterable[str]) -> None:
    """Note which types have other identity rules since a write, and entities that it found."""
    found = {one.type: one for one in backlogs(write)}
    changed = False
    for type in sorted(set(types)):
        old, new = set(before.rules(type).schema.identity), set(after.rules(type).schema.identity)
        if old == new or not write.entities(type, before.asof.position, limit=1):
            continue
        changed = True
        waiting = found.get(type)
        rules = {rule.text for rule in old ^ new}.union(() if waiting is None else waiting.rules)
        noting = rules.intersection(rule.text for rule in new)
        found[type] = Backlog(type, after.asof.position, tuple(sorted(rules)), tuple(sorted(noting)), "", 0)
    if changed:
        _note(write, [found[type] for type in sorted(found)])


# What waits, worked out


def settled(view: View, values: Iterable[tuple[Ref, Values]]) -> tuple[list[tuple[Ref, Values]], set[str]]:
    """Return those of some values whose rows can be relied on, and the types of which some cannot."""
    rules = {type: one.rules for type, one in _by_type(view).items()}
    found: list[tuple[Ref, Values]] = []
    waiting: set[str] = set()
    for ref, pairs in values:
        kept = [one for one in pairs if one[0] not in rules.get(ref.type, ())]
        found.append((ref, kept))
        if len(kept) < len(pairs):
            waiting.add(ref.type)
    return found, waiting


def hints(types: Iterable[str]) -> list[str]:
    """Return what to say to whoever writes about types that wait."""
    return [
        f"The identity rules of {type} changed and its identifying values are still being indexed: entities that share "
        "one may not be listed here yet. `woodrat entities list --duplicates` shows them once that is done."
        for type in sorted(types)
    ]


def kinds(reader: Reader) -> list[tuple[str, str]]:
    """Return the types and rules of which there are values, in order, as if nothing waited."""
    waiting = _by_type(reader.view)
    found = [
        (type, rule)
        for type, rule in identifying_values.kinds(reader.view)
        if type not in waiting or rule not in waiting[type].rules
    ]
    for one in waiting.values():
        lacking = set(one.noting)
        for _, values in _said(reader, one.type, None):
            lacking.difference_update(rule for rule, _ in values)
            if not lacking:
                break
        found += [(one.type, rule) for rule in one.noting if rule not in lacking]
    return sorted(found, key=lambda kind: (kind[0].encode(), kind[1].encode()))


def sharing(reader: Reader, type: str, values: Values) -> Mapping[tuple[str, str], Sequence[Ref]]:
    """Return the entities of a type that were said to have identifying values, by rule and value, by key."""
    waiting = _by_type(reader.view).get(type)
    if waiting is None:
        return _noted(reader.view, type, values)
    found = dict(_noted(reader.view, type, [one for one in values if one[0] not in waiting.rules]))
    asked = [one for one in values if one[0] in waiting.noting]
    if asked:
        found |= _unnoted(reader, waiting, asked)
    return found


def _noted(view: View, type: str, values: Values) -> Mapping[tuple[str, str], Sequence[Ref]]:
    nobody = Ref(type, identifying_values.NOBODY)
    return {
        (rule, value): refs for (_, rule, value), refs in identifying_values.sharing(view, [(nobody, values)]).items()
    }


def _unnoted(reader: Reader, waiting: Backlog, asked: Values) -> dict[tuple[str, str], Sequence[Ref]]:
    """Return who was said to have values by rules that wait: from rows as far as these go, then from what was said."""
    last, found = None, dict[tuple[str, str], set[Ref]]()
    if not waiting.forgetting and waiting.last:
        last = Ref(waiting.type, waiting.last)
        found = {pair: set(refs) for pair, refs in _noted(reader.view, waiting.type, asked).items()}
    wanted = set(asked)
    for ref, values in _said(reader, waiting.type, last):
        for pair in wanted.intersection(values):
            found.setdefault(pair, set()).add(ref)
    return {pair: sorted(refs, key=lambda ref: ref.key.encode()) for pair, refs in found.items()}


def _said(reader: Reader, type: str, last: Ref | None) -> Iterator[tuple[Ref, Values]]:
    """Yield the entities of a type after one of them, each with what was ever said to identify it."""
    view, head = reader.view, AsOf(reader.view.head().position)
    while refs := view.entities(type, head.position, after=last, limit=STEP_ENTITIES):
        now = Reader(view, head, reader.policies)  # one remembers whatever it reads
        for ref in refs:
            yield ref, said_values(now, ref)
        last = refs[-1]


# Bringing it on


def finish(write: Transaction, policies: Mapping[str, Policy], types: Iterable[str]) -> None:
    """Note all values of some types that wait, within a write that depends on them."""
    if not is_due(write):
        return
    wanted = set(types)
    rest = []
    for one in backlogs(write):
        if one.type not in wanted:
            rest.append(one)
            continue
        for rule in one.forgetting:
            identifying_values.forget_rule(write, one.type, rule)
        while page := _page(write, policies, one):
            identifying_values.note(write, page)
            one = _advanced(one, page)
    _note(write, rest)


def finish_forgetting(write: Transaction) -> None:
    """Forget at once all rows that are to be forgotten: an erasure finds only rows by the rules in force."""
    found = backlogs(write)
    if any(one.forgetting for one in found):
        for one in found:
            for rule in one.forgetting:
                identifying_values.forget_rule(write, one.type, rule)
        kept = (replace(one, forgetting=()) for one in found)
        _note(write, [one for one in kept if one.noting])


_Page = Sequence[tuple[Ref, "Values"]]
"""The next entities of a type, in order, each with its values."""


def _page(view: View, policies: Mapping[str, Policy], waiting: Backlog) -> _Page:
    """Return the next entities of a type that waits, with their values by the rules that are noted."""
    if not waiting.noting:
        return ()
    reader = Reader(view, AsOf(view.head().position), policies)
    after = Ref(waiting.type, waiting.last) if waiting.last else None
    found: list[tuple[Ref, Values]] = []
    observations = 0
    for ref in view.entities(waiting.type, reader.asof.position, after=after, limit=STEP_ENTITIES):
        stored = reader.stored((ref,))
        observations += len(stored)
        values = identifying_values.values_of(ref, reader.rules(ref.type).schema, stored)
        found.append((ref, [one for one in values if one[0] in waiting.noting]))
        if observations >= STEP_OBSERVATIONS:
            break
    return found


def _advanced(waiting: Backlog, page: _Page) -> Backlog:
    return replace(waiting, forgetting=(), last=page[-1][0].key, done=waiting.done + len(page))


def go_on(engine: Engine, tenant: TenantId, policies: Mapping[str, Policy]) -> bool:
    """Take one step: values are worked out in a view and written in a short transaction. Return whether any waited."""
    with engine.view(tenant) as view:
        before = backlogs(view)
        if not before:
            return False
        first = before[0]
        head = view.head().position
        page = () if first.forgetting else _page(view, policies, first)
    with engine.transaction(tenant) as write:
        if backlogs(write) != before or erased_since(write, head):
            return True  # somebody else went on, another schema came, or what was read is erased by now
        rest: Sequence[Backlog] = before[1:]
        if first.forgetting:
            rule, *others = first.forgetting
            left = replace(first, forgetting=tuple(others)) if _forget_some(write, first.type, rule) else first
            rest = (left, *rest) if left.forgetting or left.noting else rest
        elif page:
            identifying_values.note(write, page)
            rest = (_advanced(first, page), *rest)
        _note(write, rest)
    return True


def _forget_some(write: Transaction, type: str, rule: str) -> bool:
    """Forget some rows by a rule; return whether none are left."""
    found = write.scan(SHARING, identifying_values.prefix_of_rule(type, rule), limit=STEP_ROWS)
    write.end(0, [(SHARING, key) for key, _ in found])  # they are true from there on, and so were never true
    return len(found) < STEP_ROWS


def step(context: Context, entries_max: int) -> bool:
    """Take a step as the indexer asks for it."""
    return go_on(context.engine, context.tenant, context.policies)
