"""The laws about forgetting: what is erased is as if never sent, and the rest of the past stays as it was."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import assume, event, given
from hypothesis import strategies as st

from woodrat import Ledger
from woodrat.canon.ids import Ref
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.log.tree import root
from woodrat.state import relation
from woodrat.state.observation import Observation
from woodrat.testing.histories import Telling, batches, tellings
from woodrat.testing.ledgers import answers_about, bodies, log_of, spelled

from .test_ledger_laws import ENGINES, admitted

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800), pytest.mark.usefixtures("erasure_key")]


def said_in(ledger: Ledger) -> set[bytes]:
    """Return the bodies of all observations a ledger holds."""
    return {stored.observation.body for stored in ledger.observations()}


def mentions(ref: Ref, other: Ref) -> bool:
    """Return whether an entity is another, or a relation with it, at any depth."""
    return ref == other or any(mentions(end, other) for end in relation.endpoints(ref) or ())


def spoken_of(telling: Telling) -> list[Ref]:
    """Return the entities that a telling speaks of, relations aside."""
    refs = {one.entity for one in telling.said if isinstance(one, Observation)}
    return sorted(ref for ref in refs if relation.endpoints(ref) is None)


def without(telling: Telling, gone: Callable[[Observation], bool]) -> Telling:
    """Return a telling without some observations."""
    return Telling(tuple(one for one in telling.said if not (isinstance(one, Observation) and gone(one))))


@given(make_engine=ENGINES, data=st.data())
def test_law_1_an_erased_entity_is_as_if_never_sent(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """Erasing an entity leaves the state of a ledger that never heard of it, unless what stays named it."""
    telling = data.draw(tellings())
    refs = spoken_of(telling)
    assume(refs)
    ref = data.draw(st.sampled_from(refs))
    ledger = admitted(make_engine(), data.draw(batches(telling)))
    ledger.erase(ref, reason="asked to")
    rest = without(telling, lambda one: mentions(one.entity, ref))
    held = {one.body for one in rest.said if isinstance(one, Observation)}
    left = said_in(ledger)
    again = admitted(make_engine(), data.draw(batches(Telling(tuple(s.observation for s in ledger.observations())))))
    again.admit(bodies(one for one in telling.said if not isinstance(one, Observation)))
    assert ledger.fingerprint() == again.fingerprint()
    assert ledger.fingerprint(provenance=True) == again.fingerprint(provenance=True)
    event("all that stays was said before" if left == held else "something was said again")
    if left == held:
        never = admitted(InMemoryEngine(), [rest] if rest.said else [])
        assert ledger.fingerprint() == never.fingerprint()
    assert ledger.rebuild().agreed


@given(make_engine=ENGINES, data=st.data())
def test_law_1_erasure_in_any_order(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """However a set arrived, erasing the same leaves the same bodies and state, and nothing of it comes back."""
    telling = data.draw(tellings())
    refs = spoken_of(telling)
    assume(refs)
    ref = data.draw(st.sampled_from(refs))
    one, two = (admitted(make_engine(), data.draw(batches(telling))) for _ in range(2))
    late = admitted(
        make_engine(),
        [Telling(tuple(o for o in telling.said if isinstance(o, Observation) and mentions(o.entity, ref)))],
    )
    for ledger in (one, two, late):
        ledger.erase(ref, reason="asked to")
    assert said_in(one) == said_in(two)
    for write in data.draw(batches(telling)):
        late.admit(bodies(write.said))
    assert said_in(late) == said_in(one)
    one.admit(bodies(telling.said))
    assert one.fingerprint() == two.fingerprint() == late.fingerprint()
    assert one.fingerprint(provenance=True) == late.fingerprint(provenance=True)


@given(make_engine=ENGINES, data=st.data())
def test_law_1_an_erased_field_is_as_if_left_out(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """Erasing a field leaves no claim on it, and the other fields as they were."""
    telling = data.draw(tellings())
    stated = sorted(
        {
            (one.entity, name)
            for one in telling.said
            if isinstance(one, Observation) and relation.endpoints(one.entity) is None
            for name in one.stated
        }
    )
    assume(stated)
    ref, name = data.draw(st.sampled_from(stated))
    ledger = admitted(make_engine(), data.draw(batches(telling)))
    before = ledger.values()
    ledger.erase(f"{ref}#{name}", reason="asked to")
    assert not any(name in s.observation.stated for s in ledger.observations() if s.observation.entity == ref)
    assert ledger.rebuild().agreed
    alone = str(ref) in before and before[str(ref)].members == (str(ref),)
    if alone and not any(one.replaces for one in telling.said if isinstance(one, Observation)):
        after = ledger.values()
        kept = {n: v for n, v in before[str(ref)].fields.items() if n != name}
        now = after[str(ref)].fields if str(ref) in after else {}
        assert spelled(kept) == spelled(dict(now))


@given(make_engine=ENGINES, data=st.data())
def test_law_1_an_erased_agent_is_as_if_silent(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """Erasing an agent leaves nothing it said, and the state of those that stay, said in any order."""
    telling = data.draw(tellings())
    agents = sorted({one.agent for one in telling.said if isinstance(one, Observation)})
    assume(agents)
    agent = data.draw(st.sampled_from(agents))
    ledger = admitted(make_engine(), data.draw(batches(telling)))
    ledger.erase(agent=agent, reason="asked to")
    assert all(s.observation.agent != agent for s in ledger.observations())
    rest = without(telling, lambda one: one.agent == agent)
    if said_in(ledger) == {one.body for one in rest.said if isinstance(one, Observation)}:
        never = admitted(InMemoryEngine(), [rest] if rest.said else [])
        assert ledger.fingerprint() == never.fingerprint()
    assert ledger.rebuild().agreed


def connected(refs: set[Ref], telling: Telling) -> set[Ref]:
    """Return these entities and all that relations lead to from them: a group may fall apart with one of them."""
    edges = [one.entity for one in telling.said if isinstance(one, Observation)]
    ends = [{edge, *two} for edge in edges if (two := relation.endpoints(edge))]
    found = set(refs)
    while more := [each for each in ends if found & each and not each <= found]:
        found.update(*more)
    return found


@given(make_engine=ENGINES, data=st.data())
def test_law_3_an_erasure_leaves_the_rest_of_the_past(make_engine: Callable[[], Engine], data: st.DataObject) -> None:
    """As-of answers about entities that what was erased had nothing to do with are the same before and after."""
    engine = make_engine()
    telling = data.draw(tellings(size_max=4))
    refs = spoken_of(telling)
    assume(len(refs) > 1)
    ref = data.draw(st.sampled_from(refs))
    ledger = admitted(engine, data.draw(batches(telling)))
    head = ledger.position
    moments = [data.draw(st.integers(0, head)), head]
    log = log_of(engine)
    positions = {s.observation.digest: s.position for s in ledger.observations()}
    before = {(other, at): spelled(answers_about(ledger.at(at), other)) for other in refs for at in moments}
    ledger.erase(ref, reason="asked to")
    stayed = {s.observation.digest: s.position for s in ledger.observations()}
    moved = {d for d, at in positions.items() if stayed.get(d) != at}
    touched = {one.entity for one in telling.said if isinstance(one, Observation) and one.digest in moved}
    concerned = connected({ref} | touched, telling)
    for other in refs:
        if other not in concerned:
            for at in moments:
                assert spelled(answers_about(ledger.at(at), other)) == before[other, at]
    after = log_of(engine)
    assert after["leaves"][: head + 1] == log["leaves"]
    assert root(bytes.fromhex(leaf) for leaf in after["leaves"][: head + 1]).hex() == log["root"]
    for old, new in zip(log["entries"], after["entries"], strict=False):
        assert {k: v for k, v in old.items() if k not in ("body", "nonce")} == {
            k: v for k, v in new.items() if k not in ("body", "nonce")
        }
        assert new["body"] in (None, old["body"])
