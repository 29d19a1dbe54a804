"""Kept merge state comes back as it was."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.laws.test_merge_laws import Case, changed, every_case

from woodrat.canon.ids import Ref
from woodrat.merge import fold, packed_state

pytestmark = pytest.mark.laws


@every_case
@given(data=st.data())
def test_packing(case: Case, data: st.DataObject) -> None:
    """What is packed and unpacked is the same merge state, shows the same values, and goes on in the same way."""
    history = data.draw(case.histories())
    cut = data.draw(st.integers(0, len(history.observations)))
    state = fold.fold(history.observations[:cut], history.members, case.rules)
    back = packed_state.unpack(packed_state.pack(state, case.rules), state.members[0], case.rules)
    assert back == state
    assert packed_state.pack(back, case.rules) == packed_state.pack(state, case.rules)


def test_packing_knows_its_schema() -> None:
    """Merge state folded under another schema is not taken for the present one's."""
    from tests.laws.test_merge_laws import MIXED

    thing = Ref("thing", "a")
    state = fold.empty([thing], MIXED.rules)
    assert packed_state.unpack(packed_state.pack(state, MIXED.rules), thing, changed().rules) is None
