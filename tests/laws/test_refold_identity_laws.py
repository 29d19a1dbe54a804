"""The law of new identity rules: however far their values are noted, every answer is the same, and so are the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import Phase, event, given, settings
from hypothesis import strategies as st
from tests.laws.test_ledger_laws import ENGINES

from woodrat import Ledger, NotFound, Refused
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.engines.view import View
from woodrat.ledger import identifying_values, matches, refold
from woodrat.ledger.read import Reader
from woodrat.merge import BUILTIN
from woodrat.records import replace
from woodrat.state.asof import AsOf
from woodrat.state.match import fold
from woodrat.testing.ledgers import ledger_on

pytestmark = [pytest.mark.laws, pytest.mark.timeout(1800), pytest.mark.usefixtures("parts_only")]

TENANT: Final = TenantId("t")
NAMES: Final = ("Ana", "ana", " ana", "Bo")
RULES: Final[tuple[list[Any], ...]] = (
    [["a"]],
    [["b"]],
    [["a"], ["b"]],
    [["a", "b"], ["c"]],
    [[{"field": "a", "fold": ["trim-1"]}]],
    [[{"field": "a", "fold": ["ascii-lower-1"]}], ["c"]],
)


class Say(NamedTuple):
    """A record of a person, with or without its key."""

    key: str | None
    fields: dict[str, str]
    match: bool
    dry_run: bool = False


class Rules(NamedTuple):
    """A schema with other identity rules."""

    identity: list[Any]


class Erase(NamedTuple):
    """A person who is to be forgotten."""

    key: str


Act = Say | Rules | Erase | int
"""Something that is written, or how many steps are taken."""
KEYS: Final = ("k1", "k2", "k3", "Ana")
SAYING: Final = st.builds(
    Say,
    key=st.sampled_from((*KEYS, None)),
    fields=st.dictionaries(st.sampled_from("abc"), st.sampled_from(NAMES), max_size=3),
    match=st.booleans(),
    dry_run=st.sampled_from([False, False, True]),
)
ACTS: Final = st.lists(
    st.one_of(SAYING, SAYING, st.builds(Rules, st.sampled_from(RULES)), st.builds(Erase, st.sampled_from(KEYS)))
    | st.integers(1, 3),
    min_size=1,
    max_size=14,
)


def carry_out(ledger: Ledger, act: Act, number: int) -> object:
    """Write something, and return what the caller learns of it beyond hints."""
    try:
        match act:
            case Say(key, fields, match, dry_run):
                meta: dict[str, Any] = {"observed_at": f"2025-03-01T00:00:{number:02}Z"}
                record = {"entity_type": "person", **fields, "$": meta | ({} if key is None else {"key": key})}
                report = ledger.store(record, match="existing" if match else None, dry_run=dry_run)
                return report.entities, report.matched
            case Rules(identity):
                return ledger.schemas.register({"x-woodrat-identity": identity}, entity_type="person").position
            case Erase(key):
                return ledger.erase(f"person/{key}", reason="asked for").position
            case steps:
                for _ in range(steps):
                    refold.go_on(ledger.context.engine, TENANT, BUILTIN)
                return None
    except (Refused, NotFound) as error:
        return str(error)


def finish(ledger: Ledger) -> None:
    """Take steps until nothing waits."""
    while refold.go_on(ledger.context.engine, TENANT, BUILTIN):
        pass


def rows(view: View) -> list[bytes]:
    """Return the rows that say who was said to have which value."""
    return [key for key, _ in view.scan(identifying_values.SHARING)]


def answers(ledger: Ledger) -> list[object]:
    """Return all that identifying values are asked for."""
    found: list[object] = []
    with ledger.context.engine.view(TENANT) as view:
        reader = Reader(view, AsOf(view.head().position), BUILTIN)
        for rule in reader.rules("person").schema.identity:
            for name in NAMES:
                pair = (rule.text, fold(name))
                found.append((pair, dict(matches._sharing(reader, "person", [pair]))))
        for name in NAMES:
            for asked in (name, f"person/{name}"):
                try:
                    found.append(matches.find_ref(reader, asked))
                except Refused as refusal:
                    found.append(str(refusal))
    return found


def compare(late: Ledger, prompt: Ledger, acts: list[Act]) -> None:
    """Do the same in two ledgers, one of which takes steps when it is told to and the other at once."""
    for number, act in enumerate(acts):
        assert carry_out(late, act, number) == carry_out(prompt, act, number), act
        finish(prompt)
        assert answers(late) == answers(prompt), act
        if isinstance(act, Erase):
            with late.context.engine.view(TENANT) as view:
                assert not [row for row in rows(view) if row.endswith(b"\0%b\0" % act.key.encode())], act
        for ledger in (late, prompt):
            report = ledger.verify(deep=True)
            assert report.sound, report.damage
    finish(late)
    found = []
    for ledger in (late, prompt):
        with ledger.context.engine.view(TENANT) as view:
            found.append(rows(view))
    assert found[0] == found[1]
    assert late.rebuild().agreed
    with late.context.engine.view(TENANT) as view:
        assert rows(view) == found[0]
        assert not refold.waiting(view)


@pytest.fixture
def short_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """One entity or row at a time."""
    monkeypatch.setattr(refold, "STEP_ENTITIES", 1)
    monkeypatch.setattr(refold, "STEP_ROWS", 1)


@settings(phases=[Phase.explicit, Phase.reuse, Phase.generate])
@given(make_engine=ENGINES, acts=ACTS)
def test_no_answer_depends_on_how_far_values_are_noted(make_engine: Callable[[], Engine], acts: list[Act]) -> None:
    """Whatever was noted of new identity rules, names lead to the same entities and matches attach to the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refold, "STEP_ENTITIES", 1)
        patch.setattr(refold, "STEP_ROWS", 1)
        one, other = make_engine(), InMemoryEngine()
        event(f"{sum(isinstance(act, Rules) for act in acts)} schemas")
        compare(ledger_on(one), ledger_on(other), acts)
        one.close()


STORY: Final[list[Act]] = [
    Rules([["a"]]),
    Say("k1", {"a": "Ana", "b": "Bo"}, False),
    Say("k2", {"a": "Bo", "b": "ana"}, False),
    Say("k3", {"a": "Bo", "c": "x"}, False),
    Rules([["b"], ["c"]]),
    Erase("k3"),
    2,
    Say(None, {"b": "Ana", "c": "y"}, True, dry_run=True),
    Say(None, {"b": "Ana", "c": "y"}, True),
    Rules([[{"field": "b", "fold": ["trim-1"]}], ["a"]]),
    Say("k4", {"b": "Bo"}, False),
    3,
    Say(None, {"b": " bo", "c": "z"}, True),
]


@pytest.mark.usefixtures("short_steps")
def test_the_story_agrees() -> None:
    """What the planted faults below go wrong with goes well without them."""
    compare(ledger_on(InMemoryEngine()), ledger_on(InMemoryEngine()), STORY)


class _Blind(refold._Page):
    """A page that finds no identifying values."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.values = []


def _nothing(*_: object, **__: object) -> Any:
    return {}


@pytest.mark.usefixtures("short_steps")
@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("finish", _nothing),  # a rebuild leaves it as it is
        ("finish_forgetting", _nothing),  # an erasure leaves rows by rules of before
        ("types_without_values", lambda _: ()),  # reads look at rows alone
        ("_forget_some", lambda *_: True),  # steps forget nothing
        ("_forget", lambda _, one: replace(one, forget=())),  # writes forget nothing
        ("_Page", _Blind),  # steps and writes note nothing
    ],
)
def test_what_is_left_out_is_noticed(name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step, a read, a match or an erasure that leaves something out is told from one that does not."""
    monkeypatch.setattr(refold, name, fault)
    with pytest.raises(AssertionError):
        compare(ledger_on(InMemoryEngine()), ledger_on(InMemoryEngine()), STORY)


def test_a_schema_with_other_identity_rules_touches_no_entity(monkeypatch: pytest.MonkeyPatch) -> None:
    """To register it reads no observation and writes no row of values, whatever there is of the type."""
    ledger = ledger_on(InMemoryEngine())
    for number in range(20):
        ledger.store({"entity_type": "person", "name": f"n{number}", "email": f"e{number}@example.org"})
    with ledger.context.engine.view(TENANT) as view:
        before = rows(view)
    monkeypatch.setattr(identifying_values, "values_of", None)
    ledger.schemas.register({"x-woodrat-identity": [["email"], ["phone"]]}, entity_type="person")
    with ledger.context.engine.view(TENANT) as view:
        assert rows(view) == before
        (waiting,) = refold.waiting(view)
    assert (waiting.forget, waiting.note) == (("id", "name", "phone", "title"), ("phone",))


def test_a_hint_says_that_shared_values_are_not_known_yet() -> None:
    """Whoever writes while values wait is told that others may share one; afterwards the hint names them."""
    ledger = ledger_on(InMemoryEngine())
    ledger.store({"entity_type": "person", "name": "Ana", "phone": "1", "$": {"key": "k1"}})
    ledger.schemas.register({"x-woodrat-identity": [["phone"]]}, entity_type="person")
    hints = ledger.store({"entity_type": "person", "phone": "1", "$": {"key": "k2"}}).hints
    assert any("still being indexed" in hint for hint in hints), hints
    finish(ledger)
    hints = ledger.store({"entity_type": "person", "phone": "1", "$": {"key": "k3"}}).hints
    assert any("share phone '1'" in hint for hint in hints), hints
