"""A command pays for what it uses: which modules are loaded, never how long that took."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import BARCELONA

import woodrat

NEVER = {
    "argparse",
    "asyncio",
    "decimal",
    "difflib",
    "gettext",
    "importlib.metadata",
    "importlib.resources",
    "ipaddress",
    "jsonschema_rs",
    "msgspec",
    "pathlib",
    "pydantic",
    "secrets",
    "shutil",
    "tempfile",
    "unicodedata",
    "woodrat.engines.sqlite.in_memory",
    "woodrat.api.aio",
    "woodrat.ledger.find",
    "woodrat.api.ledger",
    "woodrat.ledger.own_policy",
    "woodrat.verify.verbs",
    "woodrat.ledger.rebuild",
    "woodrat.ledger.plans",
    "woodrat.ledger.write",
    "woodrat.merge.inference",
    "woodrat.state.models",
    "woodrat.state.tokens",
    "woodrat.cli.parser",
    "woodrat.cli.facts",
    "woodrat.merge.blame",
    "woodrat.merge.timeline",
    "zipfile",
}
"""What showing one entity needs nothing of."""


def loaded(code: str, *words: str, db: Path | None = None) -> set[str]:
    """Return the modules that a fresh Python has loaded after some code, run with these words as its arguments."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\n{code}\nprint(*sys.modules, file=sys.stderr)", *words],
        env={**os.environ, "WOODRAT_DB": str(db)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.split())


COMMAND = "from woodrat.cli.main import main\nassert main() == 0"
"""What the console script does."""


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small ledger: an entity of a built-in type, whose schema is in the log, and one of a type without a schema."""
    path = tmp_path_factory.mktemp("cold") / "agents.db"
    with woodrat.open(path) as ledger:
        ledger.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}])
        ledger.store([{"entity_type": "thing", "name": "cup", "size": 3}])
    return path


@pytest.mark.parametrize("ref", ["contact/Ana Rivera", "thing/cup"])
@pytest.mark.parametrize("output", ["json", "table"])
def test_showing_an_entity_loads_only_what_it_needs(db: Path, ref: str, output: str) -> None:
    """`woodrat show` loads no parser, no schema checker, no event loop, and nothing that writes."""
    found = loaded(COMMAND, "show", ref, "-o", output, db=db)
    assert {"apsw", "orjson", "woodrat.api.past", "woodrat.cli.entities"} <= found
    assert found & NEVER == set()


def test_storing_loads_neither_parser_nor_event_loop(db: Path) -> None:
    """`woodrat store` checks records, and still loads no parser, no event loop and no model library."""
    found = loaded(COMMAND, "store", f"--json={BARCELONA}", db=db)
    assert found & {"argparse", "asyncio", "pydantic", "msgspec", "importlib.metadata"} == set()


def test_importing_woodrat_loads_nothing_of_it() -> None:
    """`import woodrat` loads none of its modules; a name loads its own."""

    def own(code: str) -> set[str]:
        return {name for name in loaded(code) if name.startswith("woodrat.")}

    assert own("import woodrat") == set()
    assert own("import woodrat; woodrat.Refused") <= {"woodrat.errors", "woodrat.records"}
    assert "asyncio" not in loaded("import woodrat; woodrat.open(':memory:')")
    assert "asyncio" in loaded("import woodrat; woodrat.aopen")


def test_every_name_of_the_front_door_opens() -> None:
    """Each name that `woodrat` lists is there, is listed once, and comes from where the type checker thinks."""
    assert sorted(woodrat._HOMES) == sorted(woodrat.__all__)
    for name in woodrat.__all__:
        found = getattr(woodrat, name)
        assert found.__module__ == f"woodrat.{woodrat._HOMES[name]}"
        assert name in dir(woodrat)
    with pytest.raises(AttributeError, match="module 'woodrat' has no attribute 'nothing'"):
        woodrat.nothing  # noqa: B018
