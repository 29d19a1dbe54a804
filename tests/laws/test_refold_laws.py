"""The law of a new schema: whenever its states are kept anew, every answer and every row kept is the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import apsw
import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st
from tests.laws.test_ledger_laws import ENGINES

from woodrat import Ledger
from woodrat.canon.form import Json
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.records import BEFORE_ALL, Kept
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import refold
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN, fold
from woodrat.state.asof import AsOf
from woodrat.state.observation import ASSERT, Observation, say
from woodrat.state.schema import Schema
from woodrat.testing.generators import AGENTS
from woodrat.testing.histories import Telling, tellings
from woodrat.testing.laws import rules_for
from woodrat.testing.ledgers import bodies, fold_at, ledger_on, same_state

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800)]

TENANT: Final = TenantId("t")
POLICIES: Final = ("latest", "union", "first", "append")


def schema_of(policy: str, version: int) -> Schema:
    """Return a schema of things whose field `b` has a policy."""
    fields = {"a": BUILTIN["latest"], "b": BUILTIN[policy], "c": BUILTIN["sum"], "d": BUILTIN["append"]}
    return rules_for(fields, "thing", version).schema


@st.composite
def writes(draw: st.DrawFn) -> list[Telling | int]:
    """Return single writes in some order, with schemas among them, and how many steps are taken in between."""
    said: list[Observation | Schema] = [one for one in draw(tellings()).said if not isinstance(one, Schema)]
    # One thing has states along its history.
    for number in range(draw(st.sampled_from((0, 9, 18)))):
        at = f"2026-03-01T00:00:{number:02}.000000Z"
        said.append(say(Ref("thing", "a"), ASSERT, agent=AGENTS[0], observed_at=at, fields={"a": number, "b": ["x"]}))
    for version in range(1, draw(st.integers(2, 4))):
        said.insert(draw(st.integers(0, len(said))), schema_of(draw(st.sampled_from(POLICIES)), version))
    found: list[Telling | int] = []
    for one in said:
        found.append(Telling((one,)))
        if draw(st.integers(0, 3)) == 0:
            found.append(draw(st.integers(1, 3)))
    return found


def check_reads(engine: Engine) -> None:
    """Compare the states that readers find at every position with whole folds."""
    with engine.view(TENANT) as view:
        for position in range(BEFORE_ALL, view.head().position + 1):
            reader = Reader(view, AsOf(position), BUILTIN)
            for ref in view.entities(None, position):
                found, rules = reader.state(ref), reader.rules(ref.type)
                assert same_state(found, fold_at(view, reader.group(ref), rules, position), rules), (ref, position)


def kept_at(engine: Engine) -> dict[Ref, list[int]]:
    """Return at which positions states are kept along the history of each entity; `verify` compares what they are.

    The present one, which is the last, a write keeps at its end and a rebuild where something was said.
    """
    found: dict[Ref, list[int]] = {}
    with engine.view(TENANT) as view:
        for type, key, *_ in view.derived("state"):
            states, _ = view.states_of(Ref(type, key))
            found[Ref(type, key)] = sorted(one.position for one in states if one.position is not None)[:-1]
    return found


def tell(engine: Engine, told: list[Telling | int], *, check: bool = True) -> Ledger:
    """Say something write by write, and take steps where that is asked for."""
    ledger = ledger_on(engine)
    for one in told:
        if isinstance(one, int):
            for _ in range(one):
                refold.go_on(engine, TENANT, BUILTIN)
        else:
            ledger.admit(bodies(one.said))
    if check:
        check_reads(engine)
        report = ledger.verify(deep=True)
        assert report.sound, report.damage
    return ledger


def check_kept(engine: Engine) -> None:
    """Check that every thing has a state that counts under the rules in force."""
    with engine.view(TENANT) as view:
        reader = Reader(view, AsOf(view.head().position), BUILTIN)
        for ref in view.entities("thing", reader.asof.position):
            assert view.kept(ref, reader.asof.position, reader.rules("thing")) is not None, ref


def check_rebuild(ledger: Ledger) -> None:
    """Finish what waits, and compare what is kept with what a rebuild keeps, which does not put anything off."""
    engine = ledger.context.engine
    while refold.go_on(engine, TENANT, BUILTIN):
        pass
    check_reads(engine)
    report = ledger.verify(deep=True)
    assert report.sound, report.damage
    found = kept_at(engine)
    assert ledger.rebuild().agreed
    assert kept_at(engine) == found


@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(make_engine=ENGINES, told=writes())
def test_a_type_that_waits_answers_as_one_that_does_not(make_engine: Callable[[], Engine], told: Any) -> None:
    """Whenever states are kept anew after a schema, reads at every position fold alike and a rebuild keeps the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refold, "STEP_ENTITIES", 1)
        ledger = tell(make_engine(), told)
        with ledger.context.engine.view(TENANT) as view:
            event(f"{len(refold.waiting(view))} schemas wait")
        check_rebuild(ledger)
        ledger.context.engine.close()


def _story(*, steps: int = 0) -> list[Telling | int]:
    """Return a history in which a thing is spoken of while it waits for two schemas, and another is not."""
    told: list[Telling | int] = [Telling((schema_of("latest", 1),))]
    said: list[Observation] = []
    for number in range(10):
        at, values = f"2026-03-01T00:00:{number:02}.000000Z", dict[str, Json](b=[f"n{number}"])
        for key, fields in (("a", {"a": number, **values}), ("b", values)):
            said.append(say(Ref("thing", key), ASSERT, agent=AGENTS[0], observed_at=at, fields=fields))
    told += [Telling((one,)) for one in said[:-2]]
    told += [Telling((schema_of("union", 2),)), steps, Telling((schema_of("append", 3),)), steps, Telling((said[-2],))]
    return told


def check_story(steps: int) -> None:
    """Tell the story, finish what waits and check what is kept, also after a rebuild."""
    ledger = tell(InMemoryEngine(), _story(steps=steps))
    check_rebuild(ledger)
    check_kept(ledger.context.engine)


@pytest.mark.parametrize("steps", [0, 1, 2, 9])
def test_the_story_agrees(steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the planted faults below go wrong with goes well without them."""
    monkeypatch.setattr(refold, "STEP_ENTITIES", 1)
    check_story(steps)


def _wrong_position(reader: Reader, root: Ref) -> Any:
    """Keep a state under a later position than it is for."""
    (position, state), rules, marked = _ANEW(reader, root)
    return Kept(position + 1, state), rules, marked


_ANEW = refold._state_anew


@pytest.mark.parametrize(
    ("name", "fault", "steps"),
    [
        ("keep_before", lambda *_: None, 0),  # writes keep nothing anew
        ("note", lambda *_: None, 1),  # nothing waits
        ("_state_anew", _wrong_position, 1),
        ("finish", lambda *_: None, 1),  # a rebuild leaves it out
    ],
)
def test_a_state_left_out_is_noticed(name: str, fault: Any, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A write, a step or a rebuild that leaves states as they were is told from one that does not."""
    monkeypatch.setattr(refold, "STEP_ENTITIES", 1)
    monkeypatch.setattr(refold, name, fault)
    with pytest.raises((AssertionError, apsw.ConstraintError)):  # no two states have one position
        check_story(steps)


def test_a_schema_that_merges_alike_lets_states_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Titles, identity and what is required have no part in a merge: nothing waits, and what is kept still counts."""
    ledger = tell(InMemoryEngine(), _story()[:19])
    document = dict(schema_of("latest", 1).document)
    del document["x-woodrat-version"]
    described = {
        **document,
        "title": "thing",
        "description": "A thing.",
        "required": ["a"],
        "x-woodrat-identity": [["a"]],
    }
    assert not ledger.schemas.register(described, entity_type="thing").hints
    with ledger.context.engine.view(TENANT) as view:
        assert not any(one.states for one in refold.waiting(view))
        monkeypatch.setattr(fold, "fold", None)  # nothing has to be folded
        reader = Reader(view, AsOf(view.head().position), BUILTIN)
        assert reader.state(Ref("thing", "a")).observations
        assert reader.rules("thing").schema.version == 2
