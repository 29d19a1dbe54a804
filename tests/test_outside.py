"""The outside stays as it is until somebody means to change it: help texts, OpenAPI, MCP tools, answers of stories."""

from __future__ import annotations

import sys

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")
pytest.importorskip("granian", reason="the extra server is not installed")

from tests.golden import make_outside

FILES = sorted(path.name for path in make_outside.FOLDER.iterdir())


@pytest.fixture(scope="module")
def made() -> dict[str, str]:
    """The outside as it is now."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "100")
        for name in ("WOODRAT_DB", "WOODRAT_TENANT", "WOODRAT_AGENT", "WOODRAT_TOKEN", "NO_COLOR"):
            patch.delenv(name, raising=False)
        return make_outside.written()


@pytest.mark.parametrize("name", FILES)
def test_the_outside_is_as_it_was(made: dict[str, str], name: str) -> None:
    """`python tests/golden/make_outside.py` writes the files anew; the difference is then part of the change."""
    if name == "help.txt" and sys.version_info[:2] != (3, 11):
        pytest.skip("argparse lays help out otherwise in other versions")
    assert made[name] == (make_outside.FOLDER / name).read_text("utf-8")


def test_nothing_of_the_outside_is_missing(made: dict[str, str]) -> None:
    """Every part has its file."""
    assert set(made) <= set(FILES)
