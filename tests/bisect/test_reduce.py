"""Reducing: what is left shows it by itself, none of it can go, and nothing withdrawn stands for what is believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from woodrat.bisect.predicate import UNKNOWN, Believed, Choice, EntityConditions, FieldRead, Predicate
from woodrat.bisect.reader import look_at
from woodrat.bisect.reduce import NotShown, reduce, removable
from woodrat.bisect.subset import Subset
from woodrat.canon import form
from woodrat.canon.ids import Ref, TenantId
from woodrat.context import Context
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Refused
from woodrat.ledger.plans import admit
from woodrat.ledger.read import Reader
from woodrat.ledger.write import Writer
from woodrat.merge import BUILTIN, fold
from woodrat.merge import rules as merge_rules
from woodrat.merge.rules import Rules
from woodrat.runs.rules import Rule
from woodrat.state import fingerprint, relation
from woodrat.state.asof import AsOf
from woodrat.state.observation import ASSERT, CORRECT, DELETE, RETRACT, Observation, say
from woodrat.state.relation import SAME_AS
from woodrat.state.schema import OPEN
from woodrat.testing.clock import FixedClock
from woodrat.testing.generators import History, histories
from woodrat.testing.laws import rules_for

THINGS = rules_for(BUILTIN)
A, B, C = (Ref("thing", key) for key in "abc")


def rules_of(type: str) -> Rules:
    """Every type but `thing` is open."""
    return THINGS if type == "thing" else merge_rules.rules_of(OPEN(type), BUILTIN)


def at(second: int) -> str:
    """Return a moment."""
    return f"2026-01-05T{second // 3600:02d}:{second // 60 % 60:02d}:{second % 60:02d}.000000Z"


def edge(one: Ref, other: Ref, op: str = ASSERT, second: int = 0) -> Observation:
    """Join two entities, or part them."""
    ref = relation.relation(one, SAME_AS, other)
    fields = {"from": str(one), "to": str(other)} if op == ASSERT else None
    return say(ref, op, agent="ada", observed_at=at(second), fields=fields)


@st.composite
def ledgers(draw: st.DrawFn) -> list[Observation]:
    """Return histories of three things under every policy, some of them joined, some parted again."""
    one: History = draw(histories(BUILTIN))
    two: History = draw(histories(BUILTIN, size_max=6))
    found = list({o.digest: o for o in (*one.observations, *two.observations)}.values())
    pairs = draw(st.lists(st.sampled_from([(A, B), (B, C), (A, C)]), max_size=3))
    for number, pair in enumerate(pairs):
        found.append(edge(*pair, draw(st.sampled_from([ASSERT, ASSERT, DELETE])), number))
    return list({o.digest: o for o in found}.values())


@st.composite
def questions(draw: st.DrawFn, observations: Sequence[Observation]) -> Predicate:
    """Return questions that hold on all of these observations, of one entity or two."""
    subset = Subset(observations, rules_of)
    asked = []
    for ref in draw(st.lists(st.sampled_from([A, B, C]), min_size=1, max_size=2, unique=True)):
        believed = subset.look(ref)
        names = draw(st.lists(st.sampled_from(sorted(BUILTIN)), min_size=1, max_size=2, unique=True))
        where = tuple((name, believed.fields[name]) for name in names if name in believed.fields)
        being = draw(st.booleans()) or not where
        flags = (believed.exists, believed.deleted) if being else (None, None)
        asked.append(EntityConditions(ref, {}, where, *flags))
    return Predicate(tuple(asked))


def shows(members: Sequence[Observation], predicate: Predicate, whole: Sequence[Observation]) -> bool:
    """Say by hand what showing means: it holds on these alone, and the same ones of them are withdrawn as in all."""
    alive = fold.live_digests({o.digest: o for o in whole})
    here = fold.live_digests({o.digest: o for o in members})
    if any((o.digest in alive) != (o.digest in here) for o in members):
        return False
    return predicate.holds(partial(believed, members))


def believed(members: Sequence[Observation], ref: Ref) -> Believed:
    """Fold an entity with all that it is joined with, the long way round."""
    group = {ref}
    for _ in members:
        for o in members:
            ends = relation.joined(o.entity)
            if ends is not None and group & set(ends):
                state = fold.fold([x for x in members if x.entity == o.entity], [o.entity], rules_of(SAME_AS))
                group |= set(ends) if state.exists and not state.deleted else set()
    state = fold.fold([o for o in members if o.entity in group], group, rules_of(ref.type))
    if not state.exists:
        return UNKNOWN
    fields = {} if state.deleted else fold.values(state, rules_of(ref.type))
    return Believed(True, state.deleted, fields, frozenset({"union", "append"}))


@given(st.data())
def test_what_is_left_is_one_minimal(data: st.DataObject) -> None:
    """On any ledger, with corrections, retractions, markers, collections and groups: it is shown, and none can go."""
    observations = data.draw(ledgers())
    assume(observations)
    predicate = data.draw(questions(observations))
    found = reduce(observations, predicate, rules_of)
    assert set(found.members) <= set(observations)
    if not found.members:
        assert predicate.holds(lambda _: UNKNOWN)
        return
    assert shows(found.members, predicate, observations)
    for one in found.members:
        assert not shows([o for o in found.members if o != one], predicate, observations)
    assert removable(found.members, predicate, rules_of) == ()
    assert reduce(observations, predicate, rules_of) == found


@given(ledgers())
def test_a_subset_believes_what_a_ledger_of_just_these_believes(observations: list[Observation]) -> None:
    """Folding in memory and folding in a ledger are one: values, groups, deletions and the fingerprint."""
    subset = Subset(observations, rules_of)
    writer = Writer(Context(InMemoryEngine(), TenantId("t"), BUILTIN, FixedClock(), "ada"))
    writer.write("admit", {}, lambda draft: admit(draft, [THINGS.schema, *observations]))
    with writer.context.engine.view(writer.context.tenant) as view:
        reader = Reader(view, AsOf(view.head().position), BUILTIN)
        for ref in (A, B, C):
            assert subset.look(ref) == look_at(reader)(ref)
            assert subset.group(ref) == reader.group(ref)
        assert subset.fingerprint() == fingerprint.text(reader.fingerprint().root())


@given(histories(BUILTIN), st.sets(st.sampled_from(sorted(BUILTIN)), max_size=3))
def test_a_fold_of_some_fields_shows_them_as_the_whole_does(history: History, only: set[str]) -> None:
    """Fields are merged apart from each other: leaving some out changes neither the others nor what is deleted."""
    whole = fold.fold(history.observations, history.members, THINGS)
    part = fold.fold(history.observations, history.members, THINGS, only)
    values = fold.values(whole, THINGS)
    assert fold.values(part, THINGS) == {name: values[name] for name in values if name in only}
    assert (part.exists, part.deleted, part.markers) == (whole.exists, whole.deleted, whole.markers)


# Planted interactions


def claim(
    second: int, fields: Mapping[str, form.Json], entity: Ref = A, op: str = ASSERT, **parts: object
) -> Observation:
    """Say something at a second."""
    return say(entity, op, agent="ada", observed_at=at(second), fields=fields, **parts)  # type: ignore[arg-type]


def where(entity: Ref, name: str, value: form.Json) -> EntityConditions:
    """Ask for a value."""
    return EntityConditions(entity, {}, ((name, value),))


def test_a_sum_of_three_among_ten_thousand_is_those_three() -> None:
    """Of 10,000 observations of one entity the three that make up a sum are left, in a few dozen folds."""
    planted = {1_234: 100, 5_678: 20, 9_012: 3}
    observations = [claim(n, {"sum": planted.get(n, 0), "latest": n}) for n in range(10_000)]
    told: list[tuple[int, int]] = []
    predicate = Predicate((where(A, "sum", 123),))
    found = reduce(observations, predicate, rules_of, tell=lambda *how: told.append(how))
    assert found.members == tuple(observations[n] for n in planted)
    assert found.folds <= 100
    assert (told[-1], told) == ((9_997, 10_000), sorted(told))


def test_three_entities_among_many_are_those_three() -> None:
    """An assertion, a correction and a join, each of another entity, are found among claims that say otherwise."""
    noise = [claim(n, {"latest": "Barcelona"}, Ref("thing", "abc"[n % 3])) for n in range(600)]
    planted = [
        claim(601, {"latest": "Girona"}),
        claim(1, {"latest": "Girona"}, B, CORRECT),
        edge(B, C),
    ]
    observations = [*noise[:100], planted[2], *noise[100:300], planted[1], *noise[300:], planted[0]]
    found = reduce(observations, Predicate((where(A, "latest", "Girona"), where(C, "latest", "Girona"))), rules_of)
    assert set(found.members) == set(planted)


def test_a_decision_by_three_observations_is_those_three() -> None:
    """Rules that look at fields of several agents keep one observation for each."""
    noise = [claim(n, {"first": n}) for n in range(200)]
    planted = [claim(n, {"latest": 580}) for n in (300,)] + [claim(301, {"max": 9}), claim(302, {"min": 1})]
    rules = (Rule("rejected", {"latest": {"lt": 600}, "max": {"gt": 5}, "min": {"lt": 2}}),)
    reads = {name: FieldRead(A, name) for name in ("latest", "max", "min")}
    found = reduce([*noise, *planted], Predicate((), Choice(rules, "rejected", reads, {}, "approved")), rules_of)
    assert list(found.members) == planted


def test_a_claim_that_was_withdrawn_stands_for_nothing() -> None:
    """Of two claims with the value, the one that was retracted is not what shows it."""
    bad, good = claim(1, {"latest": 1}), claim(2, {"latest": 1})
    gone = say(A, RETRACT, agent="ada", observed_at=at(3), replaces=[bad.digest])
    found = reduce([bad, gone, good], Predicate((where(A, "latest", 1),)), rules_of)
    assert found.members == (good,)


def test_the_retractions_that_members_depend_on_are_members() -> None:
    """The withdrawn middle of a chain of corrections keeps the first one replaced; it stays, and stays withdrawn."""
    noise = [claim(n, {"latest": 1}) for n in range(20)]
    first = claim(9, {"latest": 2, "max": 7}, op=CORRECT)
    second = claim(8, {"latest": 3}, op=CORRECT, replaces=[first.digest])
    third = claim(7, {"latest": 4}, op=CORRECT, replaces=[second.digest])
    gone = say(A, RETRACT, agent="ada", observed_at=at(3), replaces=[second.digest])
    predicate = Predicate((EntityConditions(A, {"latest": {"eq": 4}, "max": {"eq": 7}}),))
    found = reduce([*noise, first, second, gone, third], predicate, rules_of)
    assert found.members == (first, second, gone, third)
    assert removable(found.members, predicate, rules_of) == ()


def test_what_holds_on_nothing_needs_nothing() -> None:
    """A question whose answer is yes on an empty ledger is shown by no observation at all."""
    found = reduce([claim(1, {"latest": 1})], Predicate((EntityConditions(B, {}, (), False),)), rules_of)
    assert found.members == ()


def test_what_does_not_hold_is_not_shown() -> None:
    """There is nothing to reduce where the whole does not show it."""
    with pytest.raises(NotShown):
        reduce([claim(1, {"latest": 1})], Predicate((where(A, "latest", 2),)), rules_of)


def test_there_is_a_limit_on_folds() -> None:
    """Work that would take more folds than allowed is refused, saying how far it came."""
    observations = [claim(n, {"sum": 1}) for n in range(50)]
    with pytest.raises(Refused, match="after 20 folds there are"):
        reduce(observations, Predicate((where(A, "sum", 50),)), rules_of, folds_max=20)
