"""Laws: the laws of every merge policy, checked on adversarial histories.

    from woodrat.testing.laws import check_policy
    check_policy(my_policy)

A failing check raises AssertionError with the law, the result, and the smallest failing history. The
laws by themselves are plain functions of a history, for tests that bring their own: `order`, `increment`, `sticking`,
`removal`, `repeatable`, `keeping`.

A check runs in one process. A policy that reads the clock, the locale or the hash seed only once looks like a pure one
here; read its code too.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Final

from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky, HypothesisException

from woodrat.canon import form
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_key
from woodrat.merge import BUILTIN, Policy, Shown, fold, known_policy, packed_state, snapshot
from woodrat.merge.additive import Terms
from woodrat.merge.by_key import ByKey
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.records import dataclass
from woodrat.state.observation import ASSERT, CORRECT, RETRACT, Observation, say, stored
from woodrat.state.schema import parse_schema
from woodrat.state.schema_keywords import PolicyName, PolicyTraits
from woodrat.testing.generators import (
    EARLIEST,
    LATEST,
    MISFITS,
    MOMENTS,
    History,
    arrivals,
    claims_of,
    elements_of,
    histories,
    told,
)

FIELD: Final = "x"
"""The field that a policy under test has."""


class KnownSet:
    """The queries of an incremental fold, answered from the list of earlier observations."""

    def __init__(self, observations: Iterable[Observation] = ()) -> None:
        self._by_digest: dict[bytes, Observation] = {}
        self._namers: dict[bytes, list[Observation]] = {}
        for observation in observations:
            self.add(observation)

    def __contains__(self, observation: Observation) -> bool:
        return observation.digest in self._by_digest

    def __len__(self) -> int:
        return len(self._by_digest)

    @property
    def observations(self) -> list[Observation]:
        """All of them, in the order of addition."""
        return list(self._by_digest.values())

    def add(self, observation: Observation) -> None:
        """Add one more observation; a repetition changes nothing."""
        if observation in self:
            return
        self._by_digest[observation.digest] = observation
        for digest in observation.replaces:
            self._namers.setdefault(digest, []).append(observation)

    def find(self, digest: bytes) -> Observation | None:
        """Return the observation with this digest, if it is part of the fold."""
        return self._by_digest.get(digest)

    def namers(self, digest: bytes) -> Collection[Observation]:
        """Return the observations of the fold that name this digest in `replaces`."""
        return self._namers.get(digest, ())


def rules_for(policies: Policy | Mapping[str, Policy], entity_type: str = "thing", version: int = 1) -> Rules:
    """Return rules under which each field has its policy (field `x`, where only one is given).

    Their schema refuses `MISFITS` everywhere, and the types that a user's own policy does not take.
    """
    by_field = {FIELD: policies} if isinstance(policies, Policy) else policies
    by_name: dict[str, Policy] = {**BUILTIN, **{str(policy.name): policy for policy in by_field.values()}}
    properties: dict[str, Any] = {}
    for name, policy in by_field.items():
        properties[name] = {"x-woodrat-merge": policy.name.to_json(), "not": {"enum": list(MISFITS)}}
        if policy.name.code is not None:
            properties[name]["type"] = sorted(policy.json_types)

    def traits(name: PolicyName) -> PolicyTraits | None:
        found = known_policy(name, by_name)
        return found.traits if found is not None else None

    document = {"properties": properties}
    return Rules(parse_schema(document, entity_type, policies=traits, version=version), by_name)


# The laws, each on one history


def grown(
    arrival: Iterable[Observation], members: Sequence[Ref], rules: Rules, refolds: Sequence[bool] = ()
) -> MergeState:
    """Return the merge state after these arrived one by one, each folded in as a ledger would.

    If `refolds`, all arrivals are folded again instead, as after a batch.
    """
    state = fold.empty(members, rules)
    known = KnownSet()
    for number, observation in enumerate(arrival):
        if observation in known:
            continue
        extended = None
        if number >= len(refolds) or not refolds[number]:
            extended = fold.extend(state, observation, rules, known)
        known.add(observation)
        state = extended if extended is not None else fold.fold(known.observations, members, rules)
    return state


def order(
    history: History,
    one: Sequence[Observation],
    two: Sequence[Observation],
    refolds: Sequence[bool],
    rules: Rules,
    elsewhere: Rules | None = None,
) -> None:
    """The same set of observations has one state, in any order, batching and repetition of arrival.

    `elsewhere` has the same schema and the policies of another process, which folds the second arrival.
    """
    whole = fold.fold(history.observations, history.members, rules)
    for arrival, here in ((one, rules), (two, elsewhere or rules)):
        again = fold.fold(arrival, history.members, here)
        _same("order", "folding the same set in another order", whole, again, here, arrival)
        state = grown(arrival, history.members, here, refolds)
        _same("order", "folding the same set in as it arrives", whole, state, here, arrival)


def increment(history: History, arrival: Sequence[Observation], rules: Rules) -> None:
    """Folding one more observation equals folding everything again, and leaves the stored state unchanged."""
    state = fold.empty(history.members, rules)
    known = KnownSet()
    for observation in arrival:
        if observation in known:
            continue
        before = _shown(state, rules)
        extended = fold.extend(state, observation, rules, known)
        known.add(observation)
        whole = fold.fold(known.observations, history.members, rules)
        if extended is not None:
            _same("increment", "folding the last of these in", whole, extended, rules, known.observations)
        assert _shown(state, rules) == before, _broken(
            "increment", "folding one more in changed the state it started from", known.observations
        )
        state = whole


def repeatable(history: History, rules: Rules) -> None:
    """Asking again, of other copies of the same observations, gives the same answer, which JSON can say."""
    copies = [stored(observation.body) for observation in history.observations]
    once, again = (fold.fold(said, history.members, rules) for said in (history.observations, copies))
    _same("repeatable", "folding the same list again", once, again, rules, history.observations)
    assert _shown(once, rules) == _shown(once, rules), _broken(
        "repeatable", "showing one state twice gave two answers", history.observations
    )
    known = KnownSet(copies[:-1])
    for last in copies[-1:]:
        base = fold.fold(known.observations, history.members, rules)
        left, right = (fold.extend(base, last, rules, known) for _ in range(2))
        assert (left is None) == (right is None), _broken(
            "repeatable", "extending one state twice gave two answers", history.observations
        )
        if left is not None and right is not None:
            _same("repeatable", "extending one state twice", left, right, rules, history.observations)


def keeping(history: History, rules: Rules) -> None:
    """Merge state that was put away and read back is the same merge state, and grows in the same way."""
    known = KnownSet()
    state = fold.empty(history.members, rules)
    for observation in history.observations:
        back = packed_state.unpack(packed_state.pack(state, rules), state.members[0], rules)
        assert back is not None, _broken("keeping", "a state cannot be read back", known.observations)
        _same("keeping", "putting the state away and reading it back", state, back, rules, known.observations)
        extended = fold.extend(back, observation, rules, known)
        known.add(observation)
        state = fold.fold(known.observations, history.members, rules)
        if extended is not None:
            what = "folding the last of these into a state that was read back"
            _same("keeping", what, state, extended, rules, known.observations)


@dataclass(frozen=True, slots=True)
class Correcting:
    """A field to correct, and the observations before and after."""

    history: History
    """Earlier observations; no markers."""
    name: str
    """The field."""
    values: tuple[Json, Json]
    """A and B of A→B→A; both fit the field."""
    tail: Sequence[tuple[Json, str, int]]
    """Value, time and priority of later assertions."""
    clock: str
    """The editor's clock."""
    priority: int
    """The editor's priority."""


def sticking(case: Correcting, rules: Rules) -> None:
    """A correction holds, whatever the clocks say, until it is corrected or withdrawn; A→B→A is three facts."""
    history, name, values, tail = case.history, case.name, case.values, case.tail
    member = history.members[0]
    policy = rules.policy(name)
    said = list(history.observations)
    original: Observation | None = None
    if isinstance(policy, Terms):  # its corrections replace one original
        original = _claim(member, name, ASSERT, values[1], "original", clock=MOMENTS[1])
        said.append(original)

    def shown(*more: Observation) -> Shown | None:
        return _field(fold.fold([*said, *more], history.members, rules), rules, name)

    def value(*more: Observation) -> bytes | None:
        found = shown(*more)
        return None if found is None else form.serialise(found.value)

    def correction(
        stated: Json, *more: Observation, clock: str = case.clock, priority: int = case.priority
    ) -> Observation:
        """Correct the field, naming the corrections in effect and, in a collection, removing all other elements.

        It also removes elements that were removed already: if their correction is withdrawn, this one still holds.
        """
        state = fold.fold([*said, *more], history.members, rules)
        others: list[Json] = []
        if policy.removes:
            put = [e for o in (*said, *more) for e in _elements(o.fields.get(name))]
            taken = [policy.removal_of(e) for e in _distinct(put) if not _has(stated, e, policy)]
            others = _distinct([e for e in taken if policy.refuses_removal([e]) is None])
        if original is None:
            named = fold.standing_corrections(state, [name], rules)
        else:
            named = frozenset({original.digest, *(o.digest for o in more if o.op == CORRECT)})
        return _claim(
            member, name, CORRECT, stated, "editor", clock=clock, priority=priority, replaces=named, remove=others
        )

    def fail(problem: str, *more: Observation) -> str:
        return _broken("sticking", problem, [*said, *more])

    a, b = values
    first = correction(a)
    held = value(first)
    if isinstance(policy, ByKey):
        # Members without a correction stay: only the stated ones have to hold.
        expected = held if held is not None and _part(policy, held, a) == _part(policy, form.serialise(a), a) else b""
    elif policy.removes:
        expected = form.serialise(sorted(_distinct(a), key=order_key))
    elif original is None:
        expected = form.serialise(a)
    else:
        # A correction to the same value counts like the original; alone and corrected, like stating the value directly.
        same = correction(b)
        assert value(same) == value(), fail("correcting a claim to its own value changed the field", same)
        lone, plain = _claim(member, name, ASSERT, b, "original"), _claim(member, name, ASSERT, a, "original")
        stand_in = _claim(member, name, CORRECT, a, "editor", clock=case.clock, replaces=[lone.digest])
        got, want = (_field(fold.fold(o, [member], rules), rules, name) for o in ([lone, stand_in], [plain]))
        assert got and want and form.serialise(got.value) == form.serialise(want.value), _broken(
            "sticking", "a correction did not replace its original", [lone, stand_in]
        )
        expected = held or b""
    assert held == expected, fail(f"a correction does not hold: the field shows {_text(held)}", first)
    for other_clock, other_priority in ((EARLIEST, -9), (LATEST, 9)):
        moved = correction(a, clock=other_clock, priority=other_priority)
        assert value(moved) == held, fail(f"the clock of a correction shows: {_text(value(moved))}", moved)

    later = [_claim(member, name, ASSERT, v, "later", clock=t, priority=p) for v, t, p in tail]
    if policy.removes:
        found = shown(first, *later)
        gone = first.remove.get(name, ())
        assert found and all(_has(found.value, e, policy) for e in _list(a)), fail(
            f"assertions took out a corrected element: {_text(value(first, *later))}", first, *later
        )
        back = [e for e in _list(found.value) if any(_same_element(policy.removal_of(e), taken) for taken in gone)]
        assert not [e for e in back if not _has(a, e, policy)], fail(
            f"assertions put back a corrected element: {_text(value(first, *later))}", first, *later
        )
        if isinstance(policy, ByKey):
            ours = form.serialise([e for e in _list(found.value) if _has(a, e, policy)])
            assert _part(policy, ours, a) == _part(policy, held, a), fail(
                f"assertions changed a corrected member: {_text(ours)}", first, *later
            )
    elif original is None:
        assert value(first, *later) == held, fail(
            f"assertions overrode a correction: {_text(value(first, *later))}", first, *later
        )
    else:
        for other_clock in (EARLIEST, LATEST):
            moved = correction(a, clock=other_clock)
            assert value(moved, *later) == value(first, *later), fail(
                "the clock of a correction shows beside later assertions", moved, *later
            )

    second = correction(b, first)
    third = correction(a, first, second)
    chain = (first, second, third)
    assert len({o.digest for o in chain}) == 3, fail("A→B→A is not three facts", *chain)
    assert _part(policy, value(*chain), a) == _part(policy, held, a), fail(
        f"A→B→A does not end in A: {_text(value(*chain))}", *chain
    )
    end, middle, start = (
        say(member, RETRACT, agent="editor", observed_at=case.clock, replaces=[o.digest])
        for o in (third, second, first)
    )
    for withdrawn, as_if, stated, problem in (
        ((middle,), chain, a, "withdrawing the middle of a chain changed its end"),
        ((start, middle), chain, a, "withdrawing all below the end of a chain changed its end"),
        ((end,), (first, second), None, "withdrawing the end of a chain did not revive the one before"),
        ((end, start), (first, second), b, "withdrawing the end and the start of a chain lost its middle"),
        ((end, middle), (first,), None, "withdrawing the last two of a chain did not revive the first"),
        ((end, middle, start), (), None, "withdrawing all corrections did not revive the earlier value"),
    ):
        # Under by_key each correction of a chain holds its own members; common ones are left out.
        now, then = value(*chain, *withdrawn), value(*as_if)
        alike = now == then if stated is None else _part(policy, now, stated) == _part(policy, then, stated)
        assert alike, fail(f"{problem}: {_text(now)}", *chain, *withdrawn)


def removal(history: History, element: Json, other: Json, rules: Rules) -> None:
    """An element is out while its highest statement is a removal; at equal rank it is in, and others are untouched."""
    member, policy = history.members[0], rules.policy(FIELD)
    early, late = MOMENTS[0], MOMENTS[2]

    def put(clock: str, priority: int = 0, op: str = ASSERT) -> Observation:
        return _claim(member, FIELD, op, [element, other], "keeper", clock=clock, priority=priority)

    def take(clock: str, priority: int = 0, op: str = ASSERT) -> Observation:
        taken = [rules.policy(FIELD).removal_of(element)]
        return _claim(member, FIELD, op, None, "taker", clock=clock, priority=priority, remove=taken)

    for said, is_in, problem in (
        ([put(early)], True, "an element that was put in is not in"),
        ([put(early), take(late)], False, "a later removal does not take the element out"),
        ([take(early), put(late)], True, "an earlier removal takes the element out"),
        ([put(early), take(early)], True, "at equal rank the removal wins"),
        ([put(early), take(early, 1)], False, "a removal of higher priority at the same time does not count"),
        ([put(early, 1), take(late)], False, "priority comes before time"),
        ([put(late, 9), take(early, -9, CORRECT)], False, "a correction does not take the element out"),
        ([take(late, 9), put(early, -9, CORRECT)], True, "a correction does not put the element in"),
    ):
        found = _field(fold.fold(said, [member], rules), rules, FIELD)
        assert found and _has(found.value, element, policy) == is_in, _broken("removal", problem, said)
        assert _has(found.value, other, policy), _broken("removal", "another element went with it", said)

    state = fold.fold(history.observations, history.members, rules)
    before = _field(state, rules, FIELD)
    named = fold.standing_corrections(state, [FIELD], rules)
    gone = [policy.removal_of(element)]
    taken = _claim(member, FIELD, CORRECT, None, "taker", replaces=named, remove=gone)
    said = [*history.observations, taken]
    after = _field(fold.fold(said, history.members, rules), rules, FIELD)
    rest = [e for e in (_list(before.value) if before else []) if not _has([element], e, policy)]
    assert after and form.serialise(after.value) == form.serialise(rest), _broken(
        "removal", f"taking out {_text(form.serialise(element))} left more or less than the rest", said
    )


# The checks: each law on many histories


def check_order(policy: Policy, examples: int = 200, *, shrink: bool = True) -> None:
    """Check that arrival order, batching and repetition do not show."""

    def law(data: st.DataObject, fresh: Fresh) -> None:
        history = data.draw(histories(policy))
        one, two = data.draw(arrivals(history)), data.draw(arrivals(history, backwards=True))
        order(history, one, two, data.draw(st.lists(st.booleans(), max_size=len(one))), fresh(), fresh())

    _try(policy, law, examples, shrink)


def check_increment(policy: Policy, examples: int = 200, *, shrink: bool = True) -> None:
    """Check that folding one more observation equals folding everything again."""

    def law(data: st.DataObject, fresh: Fresh) -> None:
        history = data.draw(histories(policy))
        increment(history, data.draw(arrivals(history)), fresh())

    _try(policy, law, examples, shrink)


def check_sticking(policy: Policy, examples: int = 200, *, shrink: bool = True) -> None:
    """Check that corrections hold until corrected or withdrawn."""

    def law(data: st.DataObject, fresh: Fresh) -> None:
        sticking(data.draw(correctings(policy)), fresh())

    _try(policy, law, examples, shrink)


def check_removal(policy: Policy, examples: int = 200, *, shrink: bool = True) -> None:
    """Check that elements can be removed; trivially true for a policy without removals."""
    if not policy.removes:
        return

    def law(data: st.DataObject, fresh: Fresh) -> None:
        history = data.draw(histories(policy, markers=False))
        element, other = data.draw(elements_of(policy)), data.draw(elements_of(policy))
        assume(not _has([element], other, policy))
        removal(history, element, other, fresh())

    _try(policy, law, examples, shrink)


def check_repeatable(policy: Policy, examples: int = 200, *, shrink: bool = True) -> None:
    """Check that a repeated call gives the same answer."""

    def law(data: st.DataObject, fresh: Fresh) -> None:
        repeatable(data.draw(histories(policy)), fresh())

    _try(policy, law, examples, shrink)


def check_keeping(policy: Policy, examples: int = 200, *, shrink: bool = True) -> None:
    """Check that merge state can be packed and unpacked."""

    def law(data: st.DataObject, fresh: Fresh) -> None:
        keeping(data.draw(histories(policy)), fresh())

    _try(policy, law, examples, shrink)


def check_policy(policy: Policy, examples: int = 200, *, shrink: bool = True) -> None:
    """Check all laws on a policy, built-in or your own; AssertionError names the broken law, and how.

    With `shrink` a failure is reported with a small history, which takes a few seconds to find.
    """
    for check in (check_repeatable, check_order, check_increment, check_sticking, check_removal, check_keeping):
        check(policy, examples, shrink=shrink)


@st.composite
def correctings(draw: st.DrawFn, policies: Policy | Mapping[str, Policy]) -> Correcting:
    """Return cases for `sticking` on fields that have these policies."""
    by_field = {FIELD: policies} if isinstance(policies, Policy) else policies
    history = draw(histories(by_field, markers=False, size_max=8))
    name = draw(st.sampled_from(sorted(by_field)))
    claims = claims_of(by_field[name]).filter(lambda value: value not in MISFITS)
    a, b = draw(claims), draw(claims)
    # A correction of an empty collection to an empty one states nothing; repeating it is the same fact.
    assume(not by_field[name].removes or form.serialise(a) != form.serialise(b))
    clocks, priorities = st.sampled_from(MOMENTS), st.sampled_from((0, 9, -9))
    tail = draw(st.lists(st.tuples(claims, clocks, priorities), max_size=3))
    return Correcting(history, name, (a, b), tail, draw(clocks), draw(priorities))


Fresh = Callable[[], Rules]
"""Makes rules with a fresh copy of the policy, as a new process would have."""


def _try(policy: Policy, law: Callable[[st.DataObject, Fresh], None], examples: int, shrink: bool) -> None:
    """Check a law on generated data; any exception in the policy becomes an AssertionError."""
    rules = rules_for(policy)

    def fresh() -> Rules:
        return Rules(rules.schema, {**BUILTIN, str(policy.name): deepcopy(policy)})

    @settings(
        max_examples=examples,
        database=None,
        derandomize=True,
        deadline=None,
        report_multiple_bugs=False,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def run(data: st.DataObject) -> None:
        law(data, fresh)

    try:
        run()
    except AssertionError:
        raise
    except Flaky as error:
        raise AssertionError(f"{policy.name} answers the same question in different ways") from error
    except HypothesisException:
        raise
    except Exception as error:
        raise AssertionError(f"{policy.name} raised {type(error).__name__} on claims that fit: {error}") from error


# Comparing and saying


def _shown(state: MergeState, rules: Rules) -> bytes:
    """Return everything a state shows, as bytes: Python takes 1 and true for equal, bytes do not."""
    shown = snapshot.take(state.members[0], state, rules, position=0, version=0).to_json()
    return form.serialise({**shown, "provenance": snapshot.value_digest(state, rules, provenance=True).hex()})


def _same(law: str, what: str, want: MergeState, got: MergeState, rules: Rules, said: Sequence[Observation]) -> None:
    expected, found = _shown(want, rules), _shown(got, rules)
    assert expected == found, _broken(
        law, f"{what} shows another state\n  wanted {expected.decode()}\n  got    {found.decode()}", said
    )
    assert want == got, _broken(law, f"{what} keeps another state\n  wanted {want}\n  got    {got}", said)


def _broken(law: str, problem: str, said: Sequence[Observation]) -> str:
    return f"the law of {law} is broken: {problem}\nobservations, in order of arrival:\n{told(said)}"


def _text(value: bytes | None) -> str:
    return "nothing" if value is None else value.decode()


def _field(state: MergeState, rules: Rules, name: str) -> Shown | None:
    field = state.field(name)
    return None if field is None or field.held is None else rules.policy(name).show(field.held)


def _claim(
    member: Ref,
    name: str,
    op: str,
    value: Json,
    agent: str,
    *,
    clock: str = MOMENTS[0],
    priority: int = 0,
    replaces: Iterable[bytes] = (),
    remove: Sequence[Json] = (),
) -> Observation:
    """Say something about one field; with no value but removals, only those."""
    fields = {} if value is None and remove else {name: value}
    removed = {name: list(remove)} if remove else {}
    return say(
        member, op, agent=agent, observed_at=clock, priority=priority, fields=fields, remove=removed, replaces=replaces
    )


def _elements(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list), "a collection's value is a list"
    return value


def _same_element(one: Json, other: Json) -> bool:
    return order_key(one) == order_key(other)


def _has(collection: Json, element: Json, policy: Policy) -> bool:
    """Return whether a collection has an element, or under `by_key` an object of the same text."""
    return any(_same_element(policy.removal_of(each), policy.removal_of(element)) for each in _list(collection))


def _part(policy: Policy, value: bytes | None, stated: Json) -> bytes | None:
    """Return the part of a field's value that a claim states: under `by_key` the objects that are in, and their
    members.
    """
    if value is None or not isinstance(policy, ByKey):
        return value
    members: dict[Json, Any] = {policy.removal_of(each): each for each in _list(stated)}
    shown = _list(form.parse(value))
    found: list[Any] = [
        {name: each[name] for name in (policy.member, *members.get(each[policy.member], ())) if name in each}
        for each in shown
        if isinstance(each, dict)
    ]
    return form.serialise(sorted(found, key=lambda each: str(each[policy.member])))


def _distinct(collection: Json) -> list[Json]:
    return list({form.serialise(each): each for each in _list(collection)}.values())
