"""A schema outside the subset at every door that takes one, and in every answer that would show what it describes."""

from __future__ import annotations

import dataclasses
import io
import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli
from tests.state.test_schema_limit import BOMB, export

from woodrat import Ledger, Refused
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.testing.ledgers import ledger_on

SAID = "more than 20000 checks with all references followed"


def written(tmp_path: Path) -> str:
    path = tmp_path / "bomb.json"
    path.write_text(json.dumps({"title": "thing", **BOMB}))
    return str(path)


@pytest.mark.parametrize("verb", ["register", "check"])
def test_a_command_refuses_a_bomb(cli: Cli, tmp_path: Path, verb: str) -> None:
    """`schema register` and `schema check` say how many checks there may be."""
    ran = cli("schemas", verb, written(tmp_path))
    assert ran.code == 2
    assert SAID in ran.err
    assert "/properties/x" in ran.err


def test_commands_say_that_nothing_fits(cli: Cli, tmp_path: Path) -> None:
    """`show`, `blame`, `schema show` and a refused `store` name the schema that nothing fits; `verify` is content."""
    path = tmp_path / "bomb.jsonl"
    path.write_bytes(export())
    assert cli("import", "log", str(path)).code == 0
    for words in (("show", "thing/1"), ("blame", "thing/1"), ("schemas", "show", "thing")):
        assert SAID in cli(*words, "-o", "table").out
        assert SAID in cli(*words).out
    refused = cli("store", "--json", '{"entity_type": "thing", "id": "3"}')
    assert refused.code == 2
    assert SAID in refused.err
    assert cli("verify").code == 0
    assert cli("rebuild").code == 0


def chain(levels: int) -> Any:
    """Return a dataclass with two fields of a dataclass with two fields of …."""
    found: Any = str
    for number in range(levels):
        found = dataclasses.make_dataclass(f"Level{number}", [("a", found), ("b", found)])
    return found


def test_a_model_is_counted_like_any_schema() -> None:
    """A class whose fields double at each level is refused; one of a few levels is not."""
    ledger = ledger_on(InMemoryEngine())
    with pytest.raises(Refused, match=SAID):
        ledger.schemas.register(chain(20), entity_type="deep")
    ledger.schemas.register(chain(4), entity_type="deep")


def test_what_is_inferred_can_be_registered() -> None:
    """However much is seen inside values, the schema suggested is within the limit."""
    ledger = ledger_on(InMemoryEngine())
    wide = {f"k{n}": {f"m{m}": {f"o{o}": 1 for o in range(15)} for m in range(15)} for n in range(20)}
    ledger.store({"entity_type": "wide", "id": "1", **{f"f{n}": wide for n in range(5)}})
    document = ledger.schemas.infer("wide")
    ledger.schemas.register(document, entity_type="wide")
    assert document["properties"]


def test_a_dry_run_says_it_too() -> None:
    """A store that is only tried is refused by a schema that nothing fits."""
    ledger: Ledger = ledger_on(InMemoryEngine())
    ledger.log.import_(io.BytesIO(export()))
    with pytest.raises(Refused, match="nothing fits version 3"):
        ledger.store({"entity_type": "thing", "id": "1"}, dry_run=True)
