"""Records: what agents say who report regularly, the same fields of one entity again and again, later and later.

Histories drawn at random seldom are like that, and most real ones are. Now and then one comes late, at the same moment,
with other fields or with a value that does not fit, or is a correction or a retraction of one before.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.state.observation import ASSERT, CORRECT, RETRACT, Observation, say
from woodrat.testing.generators import MISFITS

ODD = ("late", "equal", "names", "correct", "retract")
"""What is out of the ordinary."""
VALUES: tuple[Json, ...] = (1, 2, 3, 2.5, "a", "b", True, None, *MISFITS[:1])


def moment(second: int) -> str:
    """Return a moment so many seconds after the first."""
    minutes, seconds = divmod(second, 60)
    return f"2026-01-01T00:{minutes:02d}:{seconds:02d}.000000Z"


@st.composite
def regular(draw: st.DrawFn, ref: Ref, names: Sequence[str], most: int = 20) -> list[Observation]:
    """Draw observations of an entity in the order they come in, each once; `names` are the fields mostly stated."""
    rare = draw(st.sampled_from((0, 0, 1, 4)))
    """How many of ten are out of the ordinary."""
    found: dict[bytes, Observation] = {}
    second = 600
    for _ in range(draw(st.integers(1, most))):
        odd = draw(st.sampled_from(ODD)) if draw(st.integers(1, 10)) <= rare else ""
        second += {"late": -3, "equal": 0}.get(odd, 1)
        stated = draw(st.lists(st.sampled_from(names), min_size=1, unique=True)) if odd == "names" else names
        replaces = [draw(st.sampled_from(sorted(found)))] if found and odd in ("correct", "retract") else []
        op = (CORRECT if odd == "correct" else RETRACT) if replaces else ASSERT
        plain = VALUES if rare else VALUES[:-1]
        fields = None if op == RETRACT else {name: draw(st.sampled_from(plain)) for name in stated}
        said = say(
            ref,
            op,
            agent=draw(st.sampled_from(("one", "two", "three"))),
            observed_at=moment(second),
            valid_from=moment(second - draw(st.sampled_from((0, 0, 0, 2, 9)))),
            priority=draw(st.sampled_from((0, 0, 1))),
            fields=fields,
            replaces=replaces,
            assigned=draw(st.booleans()),
        )
        found.setdefault(said.digest, said)
    return list(found.values())
