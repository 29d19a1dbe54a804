"""What is folded in one step is what its parts give."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN, fold
from woodrat.merge.claim import Said
from woodrat.merge.rules import Rules
from woodrat.state.observation import ASSERT, say
from woodrat.state.schema import parse_schema

VALUES = st.sampled_from(["a", "b", "", 0, 1, True, False, None, [1], [True], {"a": 1}])
ASSERTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ada", "bo", "cy"]),
        st.integers(1, 6),
        st.integers(0, 1),
        st.dictionaries(st.sampled_from("pqr"), VALUES, min_size=1),
    ),
    max_size=8,
)


@given(ASSERTIONS)
def test_an_assertion_is_laid_as_its_parts_say(assertions: list[tuple[str, int, int, dict[str, Any]]]) -> None:
    """Strata and rivals with one more assertion are what `lay` and `rivals_with` give, each by itself."""
    strata: tuple[fold.Stratum, ...] = ()
    rivals: dict[str, bool] = {}
    for number, (agent, second, priority, values) in enumerate(assertions):
        at = f"2026-01-05T09:00:0{second}.000000Z"
        said = Said(bytes([number]) * 32, at, priority, agent, False, frozenset(), frozenset(), False)
        wanted = fold.lay(strata, said, values), fold.rivals_with(strata, rivals, at, values)
        assert fold.lay_with_rivals(strata, rivals, said, values) == wanted
        strata, rivals = wanted[0], dict(wanted[1])


def test_a_value_that_loses_alone_leaves_only_its_count() -> None:
    """An assertion of nothing but a value that loses under `max` is counted, and leaves no stratum."""
    ref, schema = Ref("thing", "one"), {"title": "thing", "properties": {"top": {"x-woodrat-merge": "max"}}}
    rules = Rules(parse_schema(schema, policies=lambda name: BUILTIN[str(name)].traits))
    said = [
        say(ref, ASSERT, agent=agent, observed_at=f"2026-01-05T09:00:0{second}.000000Z", fields={"top": value})
        for second, (agent, value) in enumerate([("ada", 2), ("bo", 1)])
    ]
    state: fold.MergeState | None = fold.empty((ref,), rules)
    for one in said:
        assert state is not None
        state = fold.extend(state, one, rules, fold.UNNAMED)
    assert state == fold.fold(said, (ref,), rules)
