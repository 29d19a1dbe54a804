"""What several laws need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from woodrat.ledger import derived_part
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock


@pytest.fixture(scope="module")
def erasure_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with an erasure key, where ledgers look for it."""
    folder = tmp_path_factory.mktemp("keys")
    make_keys(folder, FixedClock())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("WOODRAT_SIGNING_KEYS", str(folder))
        yield folder


@pytest.fixture(scope="module")
def parts_only(erasure_key: Path) -> Iterator[None]:
    """Erasures derive what they concern and no more: in logs as short as these a part would be most of it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(derived_part, "SHARE_MAX", 0)
        yield
