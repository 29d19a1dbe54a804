"""A state kept in a file against what is believed, and one reading of a source against another."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.commands import Cli

import woodrat
from woodrat.merge.diff import FieldChange
from woodrat.testing.clock import FixedClock

ANA = "contact/Ana Rivera"


@pytest.fixture
def known(ana: Cli, tmp_path: Path) -> Path:
    """A file with the state after two agents disagreed, beside a company, a relation, a group and a deleted entity."""
    ana("store", '--json=[{"entity_type":"company","name":"Acme"},{"entity_type":"thing","name":"a"}]')
    ana("store", '--json=[{"entity_type":"contact","name":"Bo"},{"entity_type":"contact","name":"B."}]')
    ana("store", '--json={"entity_type":"thing","name":"gone"}')
    ana("relate", ANA, "works_at", "company/Acme")
    ana("merge", "contact/Bo", "contact/B.")
    ana("delete", "thing/gone")
    file = tmp_path / "known.jsonl"
    file.write_text(ana("entities", "list", "--all", "-o", "jsonl").out, "utf-8")
    return file


def against(cli: Cli, file: Path, *words: str) -> tuple[int, list[tuple[str, str]]]:
    """Return the exit code of a comparison, and each change as (kind, entity)."""
    ran = cli("diff", "--against", str(file), "--exit-code", *words)
    return ran.code, [(change["kind"], change["entity"]) for change in ran.json["changes"]]


def test_a_state_compared_with_itself_does_not_differ(ana: Cli, known: Path) -> None:
    """What `entities list --all` wrote, as lines or as one value, says the same as the ledger it came from."""
    assert against(ana, known) == (0, [])
    known.with_suffix(".json").write_text(ana("entities", "list", "--all").out, "utf-8")
    assert against(ana, known.with_suffix(".json")) == (0, [])
    listed = [json.loads(line) for line in known.read_text("utf-8").splitlines()]
    known.with_suffix(".list").write_text(json.dumps(listed), "utf-8")
    assert against(ana, known.with_suffix(".list")) == (0, [])
    ran = ana("diff", "--against", str(known), "-o", "table")
    head = ana("log").out.count("\n") - 1
    assert ran.out.startswith(f"No difference.\n(from {known}; to position {head}, recorded ")
    assert ana("diff", "--against", str(known)).json == {
        "before": None,
        "after": head,
        "changes": [],
        "against": str(known),
    }


def test_every_kind_of_difference_is_found(ana: Cli, known: Path) -> None:
    """Values, entities that came, that went, that were deleted, and groups that were parted."""
    moment = str(ana("log").out.count("\n") - 1)
    ana("correct", ANA, "--set", "city=Girona", "--reason", "she told me")
    ana("store", '--json={"entity_type":"boat","name":"new"}')
    ana("delete", "thing/a")
    ana("split", "contact/Bo")
    code, changes = against(ana, known)
    assert code == 1
    assert ("changed", ANA) in changes
    assert ("added", "boat/new") in changes
    assert ("changed", "thing/a") in changes
    assert {entity for _, entity in changes} >= {"contact/Bo", "contact/B."}
    table = ana("diff", "--against", str(known), "-o", "table")
    assert table.code == 0
    assert "changed contact/Ana Rivera\n  city: San Francisco → Girona\n" in table.out
    assert "changed thing/a\n  deleted\n" in table.out
    assert against(ana, known, "--to", moment) == (0, [])
    assert against(ana, known, "--as-of", moment) == (0, [])
    assert against(ana, known, ANA) == (1, [("changed", ANA)])
    assert against(ana, known, "company/Acme") == (0, [])
    assert against(ana, known, "boat/new") == (1, [("added", "boat/new")])
    assert against(ana, known, "--entity-type", "boat") == (1, [("added", "boat/new")])
    assert against(ana, known, "--entity-type", "company") == (0, [])
    assert ana("diff", "--from", moment, "--entity-type", "boat").json["changes"][0]["entity"] == "boat/new"
    early = against(ana, known, "--to", "1")[1]
    assert ("removed", "company/Acme") in early


def test_one_snapshot_stands_for_its_entity_alone(ana: Cli, known: Path, tmp_path: Path) -> None:
    """What `show` prints is compared with that entity, whatever else the ledger holds; also one of a group."""
    for ref in (ANA, "contact/Bo", "contact/B."):
        file = tmp_path / "one.json"
        file.write_text(ana("show", ref).out, "utf-8")
        assert against(ana, file) == (0, [])
    file.write_text('{"entity": "contact/Ana Rivera", "fields": {"name": "Ana Rivera"}}', "utf-8")
    assert against(ana, file) == (1, [("changed", ANA)])
    file.write_text('{"entity": "contact/Nobody", "fields": {}}', "utf-8")
    assert against(ana, file) == (1, [("removed", "contact/Nobody")])
    shown = ana("show", ANA).out.encode()
    assert ana("diff", "--against", "-", "--exit-code", stdin=shown).code == 0


def test_numbers_are_compared_by_what_they_mean(cli: Cli, tmp_path: Path) -> None:
    """`1.0` in the file is the `1` of the ledger; `true` is not."""
    cli("store", '--json={"entity_type":"thing","name":"a","n":1}')
    file = tmp_path / "one.json"
    for text, code in (("1.0", 0), ("1", 0), ("true", 1), ('"1"', 1)):
        file.write_text(f'{{"entity": "thing/a", "fields": {{"name": "a", "n": {text}}}}}', "utf-8")
        assert cli("diff", "--against", str(file), "--exit-code").code == code


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[{]", "not JSON at line 1 column 3"),
        ("42", ": expected a list of snapshots, got 42 (number)"),
        ('["contact/a"]', '/0: expected a snapshot, got "contact/a" (text)'),
        ("{}", "/entity: expected text, got null"),
        ('{"before": 1, "after": 2, "changes": []}', "this is a diff of two states, not a state"),
        ('{"items": {}}', "/items: expected a list of snapshots, got 0 keys (object)"),
        (
            '{"items": [], "cursor": "abc"}',
            "these are some of the entities, not all. Send all of them",
        ),
        ('[{"entity": "Ana", "fields": {}}]', '/0/entity: expected TYPE/KEY, got "Ana" (text)'),
        ('[{"entity": "contact/a"}]', "/0/fields: expected values by field, got null"),
        ('[{"entity": "contact/a", "fields": []}]', "/0/fields: expected values by field, got 0 elements (array)"),
        ('[{"entity": "contact/a", "fields": {}, "members": []}]', "/0/members: expected references"),
        ('[{"entity": "contact/a", "fields": {}, "members": ["contact/b"]}]', "contact/a is not among them"),
        ('[{"entity": "contact/a", "fields": {}, "deleted": "no"}]', '/0/deleted: got "no" (text)'),
        ('{"entity": "a/b", "fields": {}}\n{"entity": "a/b", "fields": {}}', "/1: a/b appears more than once"),
    ],
)
def test_another_shape_is_refused(ana: Cli, tmp_path: Path, text: str, says: str) -> None:
    """Whatever is no state says so by its place in the file, and what a state looks like."""
    file = tmp_path / "known.txt"
    file.write_text(text, "utf-8")
    ran = ana("diff", "--against", str(file))
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(str(file))
    assert says in ran.err
    assert ran.err.endswith("Nothing was read.\nSee: woodrat diff --help\n")


def test_all_pages_are_one_list(cli: Cli) -> None:
    """`--all` goes on past the largest page; without it, lines say on standard error that there is more."""
    records = [{"entity_type": "thing", "name": f"{number:04}"} for number in range(1_203)]
    cli("store", f"--json={json.dumps(records)}")
    listed = cli("entities", "list", "--all").json
    assert listed["cursor"] is None
    assert [entity["fields"]["name"] for entity in listed["items"]] == [record["name"] for record in records]
    ran = cli("entities", "list", "-o", "jsonl", "--limit", "5")
    assert ran.out.count("\n") == 5
    assert ran.err.startswith("More: add --cursor ")
    assert cli("entities", "list", "-o", "jsonl", "--all").err == ""


def test_the_library_compares_too() -> None:
    """`diff_against` takes snapshots, or what `to_json` gives of them; `at` and types narrow it."""
    ledger = woodrat.open(":memory:", clock=FixedClock())
    first = ledger.store({"entity_type": "contact", "name": "Ana", "city": "Reus"})
    good = ledger.query().items
    assert ledger.diff_against(good).changes == ()
    assert ledger.diff_against([snapshot.to_json() for snapshot in good]).changes == ()
    ledger.correct("contact/Ana", {"city": "Girona"}, reason="x")
    ledger.store({"entity_type": "thing", "name": "cup"})
    [change, added] = ledger.diff_against(good)
    assert (change.entity, change.fields[0].before, change.fields[0].after) == ("contact/Ana", "Reus", "Girona")
    assert (added.kind, added.entity) == ("added", "thing/cup")
    assert ledger.diff_against(good[0]).changes == (change,)
    assert ledger.diff_against(good, "contact/Ana").changes == (change,)
    assert ledger.diff_against(good, entity_type="thing").changes == (added,)
    assert ledger.at(first.position).diff_against(good).changes == ()
    assert ledger.diff_against([]).changes != ()
    for wrong in (None, 42, "contact/Ana", [None]):
        with pytest.raises(woodrat.Refused):
            ledger.diff_against(wrong)
    with pytest.raises(woodrat.Refused):
        ledger.diff(0, "now", "contact/Ana", entity_type="contact")


# Readings


def readings(db: Path | str) -> tuple[woodrat.Ledger, str, str]:
    """Return a ledger with two readings of one source."""
    ledger = woodrat.open(db, agent="reader", clock=FixedClock())
    source = ledger.sources.add(b"Net-30, signed by Ana", name="contract.txt")
    with ledger.interpretations.start(source, model="m-1", prompt="read", parameters={"temperature": 0}) as first:
        first.store(
            [
                {"entity_type": "contract", "name": "kline", "payment_terms": "Net-30"},
                {"entity_type": "contact", "name": "Ana"},
            ]
        )
    with ledger.interpretations.start(source, model="m-2", prompt="read", parameters={"temperature": 1}) as second:
        second.store([{"entity_type": "contract", "name": "kline", "payment_terms": "Net-45"}])
        second.store([{"entity_type": "contract", "name": "kline", "payment_terms": "Net-60"}])
        second.store([{"entity_type": "contact", "name": "Bo"}])
    ledger.store([{"entity_type": "contract", "name": "kline", "payment_terms": "Net-90"}])
    return ledger, first.id, second.id


def test_two_readings_differ_in_how_they_were_made_and_in_what_they_said() -> None:
    """The settings that differ, and per entity the values that do; the last word of each reading counts."""
    ledger, first, second = readings(":memory:")
    found = ledger.interpretations.diff(first, second)
    assert (found.before, found.after) == (first, second)
    assert [(c.field, c.before, c.after) for c in found.settings] == [
        ("model", "m-1", "m-2"),
        ("parameters.temperature", 0, 1),
    ]
    assert [(c.kind, c.entity) for c in found.entities] == [
        ("removed", "contact/Ana"),
        ("added", "contact/Bo"),
        ("changed", "contract/kline"),
    ]
    assert [(c.field, c.before, c.after) for c in found.entities[2].fields] == [("payment_terms", "Net-30", "Net-60")]
    same = ledger.interpretations.diff(first, first)
    assert (same.settings, same.entities) == ((), ())
    with pytest.raises(woodrat.NotFound, match="There is no interpretation int_x here"):
        ledger.interpretations.diff(first, "int_x")
    wrong: Any = 42
    with pytest.raises(woodrat.Refused, match="expected an interpretation's id, got 42"):
        ledger.interpretations.diff(wrong, first)


def test_two_readings_at_the_command_line(cli: Cli, db: Path) -> None:
    """`interpretations diff` prints both kinds of difference, for people and for programs."""
    ledger, first, second = readings(db)
    ledger.close()
    table = cli("interpretations", "diff", first, second, "-o", "table").out
    assert table == (
        "Settings\n"
        "  model: m-1 → m-2\n"
        "  parameters.temperature: 0 → 1\n"
        "Content\n"
        "  contact/Ana (only in the first)\n"
        "    name: Ana → (nothing)\n"
        "  contact/Bo (only in the second)\n"
        "    name: (nothing) → Bo\n"
        "  contract/kline\n"
        "    payment_terms: Net-30 → Net-60\n"
    )
    found = cli("interpretations", "diff", first, second).json
    assert (found["before"], found["after"]) == (first, second)
    assert found["settings"][0] == FieldChange("model", True, "m-1", True, "m-2").to_json()
    assert len(cli("interpretations", "diff", first, second, "-o", "jsonl").out.splitlines()) == 5
    assert (
        cli("interpretations", "diff", first, first, "-o", "table").out
        == "No difference: same settings, same content.\n"
    )
