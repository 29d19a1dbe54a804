"""What one more observation leaves in merge state."""

from __future__ import annotations

from woodrat.canon.ids import Ref
from woodrat.merge import BUILTIN, fold
from woodrat.merge.rules import Rules
from woodrat.state.observation import ASSERT, say
from woodrat.state.schema import parse_schema


class _Unnamed:
    """Knows of observations that nothing names."""

    def find(self, digest: bytes) -> None:
        return None

    def namers(self, digest: bytes) -> tuple[()]:
        return ()


def test_a_value_that_loses_alone_leaves_only_its_count() -> None:
    """An assertion of nothing but a value that loses under `max` is counted, and leaves nothing else."""
    ref, schema = Ref("thing", "one"), {"title": "thing", "properties": {"top": {"x-woodrat-merge": "max"}}}
    rules = Rules(parse_schema(schema, policies=lambda name: BUILTIN[str(name)].traits))
    said = [
        say(ref, ASSERT, agent=agent, observed_at=f"2026-01-05T09:00:0{second}.000000Z", fields={"top": value})
        for second, (agent, value) in enumerate([("ada", 2), ("bo", 1)])
    ]
    state: fold.MergeState | None = fold.empty((ref,), rules)
    for one in said:
        assert state is not None
        state = fold.extend(state, one, rules, _Unnamed())
    assert state == fold.fold(said, (ref,), rules)
