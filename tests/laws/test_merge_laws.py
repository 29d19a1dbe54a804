"""The laws of merge, each on every policy, on a schema of all of them, on a user's own, and on a frozen type."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.laws.planted import LONGEST
from tests.laws.records import regular

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.canon.order import order_key
from woodrat.merge import BUILTIN, Claim, Policy, claim_of, fold, packed_state, snapshot
from woodrat.merge.claim import said_of
from woodrat.merge.ranked import Ranked, Top
from woodrat.merge.rules import Rules
from woodrat.state.observation import ASSERT, CORRECT, DELETE, RESTORE, RETRACT, Observation, say, stored
from woodrat.testing import laws
from woodrat.testing.generators import MISFITS, MOMENTS, POLICIES, History, arrivals, histories
from woodrat.testing.laws import KnownSet, rules_for
from woodrat.testing.model import merge as model_merge
from woodrat.testing.model import provenance
from woodrat.testing.model.merge import ModelFold, OwnPolicy

pytestmark = pytest.mark.laws

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Case:
    """Fields and their policies, and the type they belong to."""

    name: str
    policies: Mapping[str, Policy]
    entity_type: str = "thing"

    @cached_property
    def rules(self) -> Rules:
        return rules_for(self.policies, self.entity_type)

    def histories(self) -> st.SearchStrategy[History]:
        return histories(self.policies, entity_type=self.entity_type)


ALL: Mapping[str, Policy] = {**POLICIES, "own": LONGEST}
MIXED = Case("mixed", ALL)
RANKED = Case("ranked", {name: policy for name, policy in ALL.items() if isinstance(policy, Ranked)})
LATEST_ALONE = Case("latest", {"x": BUILTIN["latest"], "y": BUILTIN["latest"]})
AUDIT = Case("audit", ALL, "audit_event")
CASES = [*(Case(name, {"x": policy}) for name, policy in POLICIES.items()), Case("own", {"x": LONGEST}), MIXED]


def changed() -> Case:
    """Return a later schema of the mixed type, under which every field has another policy."""
    names = list(ALL)
    return Case("changed", {name: ALL[names[index - 1]] for index, name in enumerate(names)})


every_case = pytest.mark.parametrize("case", [*CASES, AUDIT], ids=lambda case: case.name)
every_correctable_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@pytest.mark.parametrize("case", [MIXED, RANKED, AUDIT], ids=lambda case: case.name)
@given(data=st.data())
def test_packed_alike(case: Case, data: st.DataObject) -> None:
    """State that was extended one by one is packed as that of a fold of all, to the byte, and is the same unpacked."""
    history = data.draw(histories(case.policies, entity_type=case.entity_type))
    folding = fold.Folding(history.members, case.rules)
    for observation in data.draw(arrivals(history)):
        folding.add(observation)
    _packed_alike(folding, case.rules)


@pytest.mark.parametrize("case", [RANKED, LATEST_ALONE], ids=lambda case: case.name)
@given(data=st.data())
def test_records_packed_alike(case: Case, data: st.DataObject) -> None:
    """The same where agents state the same fields over and over."""
    ref = Ref("thing", "one")
    folding = fold.Folding((ref,), case.rules)
    for observation in data.draw(regular(ref, [name for name in case.policies if name != "own"])):
        folding.add(observation)
    _packed_alike(folding, case.rules)


def _packed_alike(folding: fold.Folding, rules: Rules) -> None:
    state = folding.state
    packed = packed_state.pack(state, rules)
    assert packed == packed_state.pack(fold.fold(folding.observations.values(), state.members, rules), rules)
    assert packed_state.unpack(packed, state.members[0], rules) == state


@every_case
@given(data=st.data())
def test_order(case: Case, data: st.DataObject) -> None:
    """The same set of observations has one state in any order, batching and repetition of arrival."""
    history = data.draw(case.histories())
    one, two = data.draw(arrivals(history)), data.draw(arrivals(history, backwards=True))
    laws.order(history, one, two, data.draw(st.lists(st.booleans(), max_size=len(one))), case.rules)
    folding = fold.Folding(history.members, case.rules)
    for observation in one:
        folding.add(observation)
    assert folding.state == fold.fold(two, history.members, case.rules)


def test_order_in_other_processes() -> None:
    """Hash seed, locale, time zone and order of arrival do not show in what another process folds."""
    told: list[History] = []

    @settings(max_examples=40, phases=[Phase.generate], database=None, derandomize=True)
    @given(MIXED.histories())
    def collect(history: History) -> None:
        told.append(history)

    collect()
    question = json.dumps(
        [[[member.key for member in h.members], [o.body.decode() for o in h.observations]] for h in told]
    )
    answers = {_digests_of(question)}
    for seed, place in (("1", "C"), ("2", "tr_TR.UTF-8")):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "LC_ALL": place,
            "TZ": "Asia/Kathmandu",
            "PYTHONPATH": f"{ROOT}{os.pathsep}{ROOT / 'src'}",
            "PYTHONUTF8": "1",
        }
        program = f"import sys; from {__name__} import _digests_of; print(_digests_of(sys.stdin.read(), {seed}))"
        done = subprocess.run(
            [sys.executable, "-c", program], input=question, capture_output=True, text=True, env=environment, cwd=ROOT
        )
        assert done.returncode == 0, done.stderr
        answers.add(done.stdout.strip())
    assert len(answers) == 1


def _digests_of(question: str, turn: int = 0) -> str:
    """Fold the histories in `question`, turned round by some places; return all digests of values and provenance."""
    digests = []
    for keys, bodies in json.loads(question):
        observations = [stored(body.encode()) for body in bodies]
        observations = observations[turn:] + observations[:turn]
        state = fold.fold(observations, [Ref("thing", key) for key in keys], MIXED.rules)
        digests.append(snapshot.value_digest(state, MIXED.rules, provenance=True).hex())
    return " ".join(digests)


@every_case
@given(data=st.data())
def test_increment(case: Case, data: st.DataObject) -> None:
    """Folding one more observation into the merge state equals folding everything again."""
    history = data.draw(case.histories())
    laws.increment(history, data.draw(arrivals(history)), case.rules)


@every_case
@given(data=st.data())
def test_keeping(case: Case, data: st.DataObject) -> None:
    """Merge state that was put away and read back is the same merge state."""
    laws.keeping(data.draw(case.histories()), case.rules)


@given(data=st.data())
def test_increment_under_another_schema(data: st.DataObject) -> None:
    """A fold under a later schema is a fold from scratch, and no merge state of the earlier one is carried over."""
    history = data.draw(MIXED.histories())
    arrival = data.draw(arrivals(history))
    later = changed().rules
    before = laws.grown(arrival, history.members, MIXED.rules)
    assert before.merging != later.merging
    laws.increment(history, arrival, later)
    assert fold.fold(arrival, history.members, MIXED.rules) == before
    assert packed_state.unpack(packed_state.pack(before, MIXED.rules), before.members[0], later) is None
    for last in history.observations[-1:]:
        known = KnownSet(history.observations[:-1])
        with pytest.raises(AssertionError):
            fold.extend(before, last, later, known)


@every_case
@given(data=st.data())
def test_provenance(case: Case, data: st.DataObject) -> None:
    """Every value names a live, fitting observation that set it and its agent; losing claims are counted."""
    history = data.draw(case.histories())
    rules = case.rules
    state = fold.fold(history.observations, history.members, rules)
    taken = snapshot.take(history.members[0], state, rules, position=0, version=0)
    acting = model_merge.acting(history.observations)
    live_digests = model_merge.live_digests(acting)
    live = {o.digest: o for o in acting if o.digest in live_digests}
    assert taken.fields.keys() == taken.blame.keys()
    for name, value in taken.fields.items():
        policy = rules.policy(name)
        held = _held(state, name)
        shown = policy.show(held)
        for digest in {shown.said.digest, *shown.observations}:
            assert digest in live, "a withdrawn or unknown observation is shown"
            assert _fits(live[digest], name, rules), "a misfit is shown"
        origin, said = taken.blame[name], live[shown.said.digest]
        assert (origin.observation, origin.agent, origin.observed_at) == (said.id, said.agent, said.observed_at)
        assert shown.said == said_of(said)
        stating = [o for o in live.values() if name in o.stated and not fold.is_deleted(state, o.entity)]
        claims = [claim_of(o, name) for o in stating if _fits(o, name, rules)]
        assert (origin.claims, origin.misfits) == (len(claims), len(stating) - len(claims))
        setting = [live[digest] for digest in shown.observations]
        verdicts = zip(claims, policy.verdicts(held, claims), strict=True)
        winners = {claim.digest for claim, (wins, _) in verdicts if wins}
        if isinstance(policy, Top):
            assert form.serialise(said.fields[name]) == form.serialise(value)
            assert winners == {said.digest}, "blame names another winner"
            standing = [c for c in claims if not c.corrects or c.digest in policy.standing(held)]
            equal = [c.digest for c in standing if _rank(c) == _rank(claim_of(said, name))]
            assert said.digest == min(equal), "of equal claims the one with the smallest digest is shown"
        elif str(policy.name) == "union" and value:
            for o in setting:
                assert any(_in(element, value) for element in _list(o.fields[name])), "it put nothing in"
            assert all(any(_in(element, o.fields.get(name)) for o in setting) for element in _list(value))
            assert winners >= set(shown.observations), "blame says that one of them lost"
        elif str(policy.name) == "by_key:name" and value:
            assert winners >= set(shown.observations), "blame says that one of them lost"
            for element in _list(value):
                parts = [each for o in setting for each in _list(o.fields[name]) if each["name"] == element["name"]]  # type: ignore
                for member, found in element.items():  # type: ignore[union-attr]
                    assert any(_in(found, [each.get(member, _NOBODY)]) for each in parts), "nobody set a member"  # type: ignore
        elif str(policy.name) == "append":
            stated = [element for o in setting for element in _list(o.fields[name])]
            assert sorted(map(order_key, stated)) == sorted(map(order_key, _list(value)))
            assert winners == set(shown.observations), "blame names other terms"
        elif str(policy.name) == "sum":
            total = sum((model_merge.exact(live[digest].fields[name]) or 0 for digest in winners), Fraction(0))
            assert total == model_merge.exact(value), "the terms that blame says count do not add up"
            assert said.digest in winners, "an observation is shown that does not count"
    for conflict in taken.conflicts:
        assert len({form.serialise(c.value) for c in conflict.claims}) > 1, "a conflict of one opinion"
        assert {c.observation for c in conflict.claims} <= {o.id for o in live.values()}


def test_provenance_of_a_corrected_sum() -> None:
    """The observation that a sum shows as its origin is one that counts."""
    rules = rules_for(BUILTIN["sum"])
    thing = Ref("thing", "a")
    original = say(thing, ASSERT, agent="ada", observed_at=MOMENTS[2], fields={"x": 10})
    stand_in = say(thing, CORRECT, agent="bob", observed_at=MOMENTS[0], fields={"x": 20}, replaces=[original.digest])
    state = fold.fold([original, stand_in], [thing], rules)
    shown = rules.policy("x").show(_held(state, "x"))
    assert shown.value == 20
    assert shown.said.digest == stand_in.digest


_NOBODY = "nobody said this"


def _rank(claim: Claim) -> tuple[object, ...]:
    return claim.corrects, claim.observed_at, claim.priority, claim.order


def _fits(o: Observation, name: str, rules: Rules) -> bool:
    return rules.misfit(name, claim_of(o, name), name in o.fields) is None


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def _in(element: Json, collection: Json) -> bool:
    return isinstance(collection, list) and form.serialise(element) in map(form.serialise, collection)


@every_correctable_case
@given(data=st.data())
def test_sticking(case: Case, data: st.DataObject) -> None:
    """A correction holds, whatever the clocks say, until it is corrected or withdrawn; A→B→A is three facts."""
    laws.sticking(data.draw(laws.correctings(case.policies)), case.rules)


@given(data=st.data())
def test_sticking_of_markers(data: st.DataObject) -> None:
    """Delete, restore, delete works at any depth; assertions revive nothing; the end of a chain can be withdrawn."""
    history = data.draw(MIXED.histories())
    rules, members = MIXED.rules, history.members
    member = data.draw(st.sampled_from(members))
    said = list(history.observations)

    def deleted(*more: Observation) -> bool:
        return fold.is_deleted(fold.fold([*said, *more], members, rules), member)

    def mark(op: str) -> Observation:
        state = fold.fold(said, members, rules)
        clock = data.draw(st.sampled_from(MOMENTS))
        named = fold.standing_markers(state, member)
        # The reason keeps a marker apart from one of the history, which may have been withdrawn there.
        return say(member, op, agent="eve", observed_at=clock, replaces=named, reason=f"mark {len(said)}")

    def withdraw(marker: Observation) -> Observation:
        return say(member, RETRACT, agent="eve", observed_at=MOMENTS[0], replaces=[marker.digest])

    before = deleted()
    chain: list[Observation] = []
    for op in data.draw(st.lists(st.sampled_from((DELETE, RESTORE)), min_size=1, max_size=5)):
        assert deleted(mark(op)) == (op == DELETE)
        chain.append(mark(op))
        said.append(chain[-1])
        clock = data.draw(st.sampled_from(MOMENTS))
        assertion = say(member, ASSERT, agent="eve", observed_at=clock, priority=9, fields={"latest": 1})
        assert deleted(assertion) == (op == DELETE), "an assertion changed it"
        said += data.draw(st.sampled_from(([], [assertion])))
    now = chain[-1].op == DELETE
    assert fold.standing_markers(fold.fold(said, members, rules), member) == {chain[-1].digest}
    assert deleted(*map(withdraw, chain[:-1])) == now, "withdrawing what is below the end of a chain changed it"
    for depth in range(1, len(chain) + 1):
        kept = chain[:-depth]
        assert deleted(*map(withdraw, chain[-depth:])) == (kept[-1].op == DELETE if kept else before)
    unseen = say(member, DELETE, agent="eve", observed_at=MOMENTS[3], reason="saw no marker")
    assert deleted(unseen), "a delete that saw no marker does not delete"
    for other in members:
        if other != member:
            named = [chain[-1].digest]
            stranger = say(other, RESTORE, agent="eve", observed_at=MOMENTS[4], replaces=named)
            assert deleted(stranger) == now, "a marker of another member replaced one of this"


@pytest.mark.parametrize("case", [*CASES, AUDIT, changed()], ids=lambda case: case.name)
@given(data=st.data())
def test_model(case: Case, data: st.DataObject) -> None:
    """A fold shows what the design text says, worked out the slow way."""
    # Under a changed schema claims were made for other policies: many do not fit, and replace nothing.
    history = data.draw((MIXED if case.name == "changed" else case).histories())
    _agrees(history.observations, history.members, case)
    member = history.members[0]
    _agrees([o for o in history.observations if o.entity == member], [member], case)


def _agrees(observations: Sequence[Observation], members: Sequence[Ref], case: Case) -> None:
    state = fold.fold(observations, members, case.rules)
    taken = snapshot.take(members[0], state, case.rules, position=0, version=0)
    policies = {name: _longest if p is LONGEST else str(p.name) for name, p in case.policies.items()}
    wanted = ModelFold(
        observations,
        lambda name: policies.get(name, "latest"),
        lambda name, value: _allowed(value, policies[name]),
        members,
    )
    assert state.exists == wanted.exists
    assert taken.deleted == wanted.deleted
    assert form.serialise(dict(taken.fields)) == form.serialise(wanted.values)
    conflicts = {name: found for name, field in wanted.fields.items() if (found := provenance.contenders(field))}
    assert {c.field: [claim.observation for claim in c.claims] for c in taken.conflicts} == {
        name: [o.id for o in found] for name, found in conflicts.items()
    }
    assert snapshot.contested(state, case.rules, state.names) == conflicts.keys()
    by_arrival = {name for name, field in wanted.fields.items() if provenance.by_arrival(field)}
    assert {name for name, origin in taken.blame.items() if origin.by_arrival} == by_arrival
    assert snapshot.decided_by_arrival(state, case.rules, state.names) == by_arrival
    assert {field.field for field in taken.arrivals()} == by_arrival
    for name, field in wanted.fields.items():
        if not callable(field.policy):
            assert taken.blame[name].to_json() == provenance.origin(field), f"other observations win {name}"


def _allowed(value: Json, policy: str | OwnPolicy) -> bool:
    """What the schema of `rules_for` lets in."""
    return value not in MISFITS and (isinstance(value, str) or policy is not _longest)


def _longest(claims: list[Observation], name: str) -> Json:
    """What LONGEST shows, said another way."""
    return max((str(o.fields[name]) for o in claims), key=lambda text: (len(text), text))


def test_the_model_reads_the_design_as_written() -> None:
    """A few answers worked out by hand, so that the model is not judged by the code it judges."""
    thing = Ref("thing", "a")

    def at(hour: int) -> str:
        return f"2026-01-05T{hour:02d}:00:00.000000Z"

    def shown(*said: Observation, policy: str) -> Json:
        return ModelFold(said, lambda name: policy, lambda name, value: True).values.get("x")

    one = say(thing, "assert", agent="ada", observed_at=at(1), fields={"x": 1})
    two = say(thing, "assert", agent="bob", observed_at=at(2), fields={"x": 2}, priority=-1)
    assert shown(one, two, policy="latest") == 2
    assert shown(one, two, policy="highest_priority") == 1
    assert shown(one, two, policy="first") == 1
    assert shown(one, two, policy="max") == 2
    assert shown(one, two, policy="min") == 1
    assert shown(one, two, policy="sum") == 3
    assert shown(one, two, policy="append") is None
    disputed = ModelFold([one, two], lambda name: "latest", lambda name, value: True).fields["x"]
    assert provenance.contenders(disputed) == sorted([one, two], key=lambda o: o.digest)
    three = say(thing, "correct", agent="cyd", observed_at=at(0), fields={"x": 3}, replaces=[one.digest])
    assert shown(one, two, three, policy="min") == 3
    assert shown(one, two, three, policy="sum") == 5
    gone = say(thing, "retract", agent="cyd", observed_at=at(3), replaces=[three.digest])
    assert shown(one, two, three, gone, policy="sum") == 3
    back = say(thing, "retract", agent="cyd", observed_at=at(3), replaces=[gone.digest])
    assert shown(one, two, three, gone, back, policy="sum") == 5
    put = say(thing, "assert", agent="ada", observed_at=at(1), fields={"x": ["b", 10, "a", 9, True]})
    taken = say(thing, "assert", agent="ada", observed_at=at(2), remove={"x": [True]})
    assert shown(put, taken, policy="union") == [9, 10, "a", "b"]
    assert shown(put, taken, policy="append") == ["b", 10, "a", 9, True]
    text = say(thing, "assert", agent="ada", observed_at=at(1), fields={"x": "-0.10"})
    assert shown(one, text, policy="sum") == "0.9"
    assert ids.id_of("observation", one.digest) == one.id


def _held(state: fold.MergeState, name: str) -> Any:
    """Return what is held of a field that has a value."""
    field = state.field(name)
    assert field is not None
    assert field.held is not None
    return field.held
