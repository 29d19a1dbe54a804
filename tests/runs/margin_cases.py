"""Cases for margins: generated rules and facts, and what trying every value comes to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from typing import Any, NamedTuple

from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.errors import Refused
from woodrat.runs import steps
from woodrat.runs.facts import Facts, number_or_plain
from woodrat.runs.margin import MISSING, NUMBER, OTHER, TEXT, Margin, Region
from woodrat.runs.operators import holds
from woodrat.runs.rules import Rule, body_of, evaluate
from woodrat.runs.steps import Decision

ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "ABSENT"})()
"""No value at all."""


class Pool(NamedTuple):
    """What generated conditions compare with, and which values of a fact are tried: those, and some between them."""

    plain: tuple[Any, ...]
    ordered: tuple[Any, ...]
    patterns: tuple[str, ...]
    domain: tuple[Any, ...]


WIDE = Pool(
    plain=(True, False, None, [], ["a"], {"a": 1}, [1], [True]),
    ordered=(0, 1, 2.5, 3, -1, "", "a", "ab", "b"),
    patterns=("^a", "b$", "a|b", "[0-9]+", "^$"),
    domain=(
        *(-2, -1, -0.5, 0, 0.5, 1, 2, 2.5, 2.75, 3, 4),
        *("", "\x01", "a", "a\x01", "aa", "ab", "ac", "b", "ba", "7", "zz"),
        *(True, False, None, [], ["a"], {"a": 1}, [1], [True], [[1]], ABSENT),
    ),
)
"""For one fact."""
SMALL = Pool(
    plain=(True, None, ["a"]),
    ordered=(1, 2.5, "a", "b"),
    patterns=("^a",),
    domain=(0, 1, 2, 2.5, 3, "", "a", "aa", "b", "c", True, False, None, ["a"], [1], ABSENT),
)
"""For two facts, of which every combination is tried."""


def _wanted(pool: Pool) -> st.SearchStrategy[dict[str, Any]]:
    """Generate what is asked of one fact."""
    every = st.sampled_from((*pool.ordered, *pool.plain))
    operands: dict[str, st.SearchStrategy[Any]] = {
        **dict.fromkeys(("lt", "lte", "gt", "gte"), st.sampled_from(pool.ordered)),
        **dict.fromkeys(("eq", "ne"), every),
        **dict.fromkeys(("in", "not_in"), st.lists(every, max_size=3)),
        "matches": st.sampled_from(pool.patterns),
        "exists": st.booleans(),
    }
    names = st.lists(st.sampled_from(sorted(operands)), min_size=1, max_size=2, unique=True)
    return names.flatmap(lambda chosen: st.fixed_dictionaries({op: operands[op] for op in chosen}))


@st.composite
def decisions(draw: st.DrawFn, names: Sequence[str], pool: Pool) -> Decision | None:
    """Generate a recorded decision, some rules of which lead to one branch; none where nothing was decided."""
    facts = draw(st.dictionaries(st.sampled_from(names), st.sampled_from(pool.domain[:-1]), max_size=len(names)))
    when = st.dictionaries(st.sampled_from(names), _wanted(pool), min_size=1, max_size=len(names))
    rule = st.builds(Rule, st.sampled_from(("yes", "no", "maybe")), when, st.sampled_from((None, "one", "two")))
    return decided(
        facts,
        draw(st.lists(rule, max_size=3)),
        draw(st.sampled_from(("no", None, "other"))),
        draw(st.sampled_from(("decide", "select"))),
        draw(st.sampled_from(("raise", "skip"))),
    )


def decided(
    facts: Mapping[str, Any],
    rules: Sequence[Rule],
    default: Any = None,
    mode: str = "decide",
    on_missing: str = "raise",
) -> Decision | None:
    """Return a decision as a record has it; none where nothing was decided."""
    given = Facts({name: number_or_plain(value) for name, value in facts.items()}, {}, None)
    try:
        verdict = evaluate(given, rules, default, mode, on_missing=on_missing, stage="stage")
    except Refused:
        return None
    body = form.decode(form.encode({**body_of(verdict, given), "stage": "stage"}))
    decision = steps.part_of("run.decided", 1, body)
    assert isinstance(decision, Decision)
    return decision


def chosen_on(decision: Decision, facts: Mapping[str, Any]) -> Any:
    """Return what the rules of a decision choose on other facts, by the code that decides; `ABSENT` where nothing."""
    recorded = (*decision.rules, *(decision.untried or ()))
    again = [Rule(rule.chosen, rule.when, rule.label) for rule in recorded]
    otherwise = decision.chosen if decision.default else decision.otherwise
    on_missing = decision.on_missing or "raise"
    try:
        return evaluate(facts, again, otherwise, decision.mode, on_missing=on_missing).chosen
    except Refused:
        return ABSENT


def changed(facts: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """Return facts with some of them changed."""
    return {name: value for name, value in {**facts, **change}.items() if value is not ABSENT}


def flipping(decision: Decision, names: Sequence[str], domain: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield every change of all these facts at once that leads to another choice."""
    for values in product(domain, repeat=len(names)):
        change = dict(zip(names, values, strict=True))
        if all(is_same(decision.facts, name, value) for name, value in change.items()):
            continue
        chosen = chosen_on(decision, changed(decision.facts, change))
        if chosen is not ABSENT and not form.same(chosen, decision.chosen):
            yield change


def is_same(facts: Mapping[str, Any], name: str, value: Any) -> bool:
    """Return whether a fact has this value already."""
    if value is ABSENT or name not in facts:
        return value is ABSENT and name not in facts
    return form.same(facts[name], value)


def smallest(
    decision: Decision, names: Sequence[str], domain: Sequence[Any]
) -> tuple[int, list[tuple[tuple[str, ...], dict[str, Any]]]]:
    """Return how many facts have to change at least, and every such change of the domain with the facts it takes."""
    for size in range(1, len(names) + 1):
        found = [(part, change) for part in combinations(names, size) for change in flipping(decision, part, domain)]
        if found:
            return size, found
    return 0, []


def lies_in(value: Any, region: Region) -> bool:
    """Return whether a value is one of a region."""
    if value is ABSENT or region.kind == MISSING:
        return value is ABSENT and region.kind == MISSING
    kind = TEXT if isinstance(value, str) else NUMBER if type(value) in (int, float) else OTHER
    asked = [*region.conditions.items(), *(("matches", wanted) for wanted in region.matches)]
    return (
        kind == region.kind
        and all(holds({"": value}, "", op, operand)[0] is True for op, operand in asked)
        and all(holds({"": value}, "", "matches", wanted)[0] is False for wanted in region.matches_none)
    )


def names_change(margin: Margin, part: Sequence[str], change: Mapping[str, Any], chosen: Any) -> bool:
    """Return whether a margin lists a change, leading to this choice."""
    return any(
        {item.fact for item in flip.facts} == set(part)
        and form.same(flip.chosen, chosen)
        and all(any(lies_in(change[item.fact], region) for region in item.to) for item in flip.facts)
        for flip in margin.flips
    )
