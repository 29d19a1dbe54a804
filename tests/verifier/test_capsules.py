"""Capsules and proofs: both verifiers accept them as made, and refuse every mutant with the same words."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.golden import make_capsules
from tests.golden.make_capsules import FOLDER, signed_ledger
from tests.runs.story import write_entry
from tests.verifier.both import NODE, Case, needs_node, python, verdicts

import woodrat
from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import NotFound
from woodrat.ledger.write import Draft, Writer
from woodrat.merge import BUILTIN
from woodrat.merge.rules import find_policy
from woodrat.proofs.verbs.keys import make
from woodrat.state import schema
from woodrat.state.observation import ASSERT, say
from woodrat.state.relation import SAME_AS, relation
from woodrat.testing.clock import FixedClock
from woodrat.testing.generators import MOMENTS, POLICIES, History, histories

KEY = (FOLDER / "vkey").read_text("ascii")
FILES = {path.name: path.read_bytes() for path in sorted(FOLDER.iterdir()) if path.name not in ("vkey", "verdicts")}
MUTATED = [
    "consistency.json",
    "erased.json",
    "field-flags.json",
    "field-grade.json",
    "field-paid.json",
    "observation.json",
    "proof.json",
    "run.json",
    "stage.json",
]
"""Files of which every mutant is tried; the other fields have the same parts."""
FLIPPED = {"proof.json": 1, "old.note": 1, "consistency.json": 5, "observation.json": 11, "run.json": 101}
"""Files of which bytes are flipped, and every how many; the short ones stand for the rest."""


def spelled(document: Any) -> bytes:
    """Return a document as it stands in a file."""
    return form.serialise(document) + b"\n"


def test_the_golden_capsules_are_made_again_byte_for_byte() -> None:
    """The same log and the same key give the same capsules, proofs and words, wherever they are made."""
    found = make_capsules.written()
    assert sorted(found) == sorted(path.name for path in FOLDER.iterdir())
    assert [name for name, data in found.items() if data != (FOLDER / name).read_bytes()] == []


LOWERED = {
    "cut.json": {"cut"},
    "erased-write.json": {"again", "collection", "erased", "winner"},
    "erased.json": {"again", "erased"},
    "hidden.json": {"hidden"},
    "imported.json": {"choice", "steps"},
    "interrupted.json": {"end", "read"},
    "run.json": {"matches", "predicate"},
}
"""The golden files that are consistent, and why; all others are proven."""


def test_both_verifiers_accept_what_was_made_and_say_the_same() -> None:
    """Every golden file is proven or consistent, and verdict, parts and words are those on record."""
    cases = [Case(name, data, KEY) for name, data in FILES.items()]
    found = dict(zip(FILES, verdicts(cases), strict=True))
    assert {name for name, verdict in found.items() if verdict["verdict"] == "refused"} == set()
    lowered = {name: {part.partition(" ")[0] for part in verdict["parts"]} for name, verdict in found.items()}
    assert {name: parts for name, parts in lowered.items() if parts} == LOWERED
    assert found == json.loads((FOLDER / "verdicts").read_bytes())


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Yield every value of a document that is no array or object, and every empty one, with its place."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not parts or not value:
        yield path, value
    for key, item in parts:
        yield from leaves(item, (*path, key))


def other(value: Any) -> Any:
    """Return another value of the same kind where there is one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value + 0.5
    if isinstance(value, str):
        return value[:-1] + ("0" if value[-1:] != "0" else "1")
    return "other"


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """Return a document with one value in place of another; all else is shared."""
    if not path:
        return value
    copy = document.copy()
    copy[path[0]] = changed(document[path[0]], path[1:], value)
    return copy


def mutants(name: str) -> Iterator[Case]:
    """Yield every way of changing one thing about a document."""
    document = json.loads(FILES[name])

    def case(what: str, mutant: Any) -> Case:
        return Case(f"{name}: {what}", spelled(mutant), KEY)

    for number, (path, value) in enumerate(leaves(document)):
        if len(FILES[name]) > 12_000 and number % 3 and "body" in path:
            continue  # a body is one commitment, whatever in it is changed
        yield case(f"{path} changed", changed(document, path, other(value)))
        if value is not None and "body" not in path:
            yield case(f"{path} nulled", changed(document, path, None))
    for part in document:
        yield case(f"{part} dropped", {key: value for key, value in document.items() if key != part})
    yield case("a part added", {**document, "also": 1})
    places: list[tuple[Any, ...]] = [("proof",)] if "proof" in document else []
    for index, entry in enumerate(document.get("entries", ())):
        entries = document["entries"]
        swapped = [*entries[:index], *reversed(entries[index : index + 2]), *entries[index + 2 :]]
        if swapped != entries:
            yield case(f"entry {index} swapped", {**document, "entries": swapped})
        yield case(f"entry {index} dropped", {**document, "entries": entries[:index] + entries[index + 1 :]})
        yield case(f"entry {index} twice", {**document, "entries": entries[: index + 1] + entries[index:]})
        places.append(("entries", index, "proof"))
        for part in entry:
            without = {key: value for key, value in entry.items() if key != part}
            yield case(f"entry {index} without {part}", changed(document, ("entries", index), without))
        yield case(f"entry {index} with more", changed(document, ("entries", index), {**entry, "more": 0}))
    for part in document.get("claim", ()):
        without = {key: value for key, value in document["claim"].items() if key != part}
        yield case(f"claim without {part}", {**document, "claim": without})
    if "claim" in document:
        yield case("claim with more", {**document, "claim": {**document["claim"], "more": 0}})
        yield case("no entries", {**document, "entries": []})
        listed = document["claim"]["positions"]
        fewer = {**document, "claim": {**document["claim"], "positions": listed[:-1]}}
        yield case("the last position not listed", fewer)
    for path in places:
        hashes = document
        for step in path:
            hashes = hashes[step]
        yield case(f"{path} cut", changed(document, path, hashes[:-1]))
        yield case(f"{path} longer", changed(document, path, [*hashes, "00" * 32]))
        yield case(f"{path} backwards", changed(document, path, hashes[::-1]))
    for note in ("checkpoint", "from", "to"):
        if note in document:
            for what, text in other_notes(document[note]):
                yield case(f"{note} {what}", {**document, note: text})


def other_notes(note: str) -> Iterator[tuple[str, str]]:
    """Yield notes that differ from a signed one in one respect."""
    origin, size, root, *rest = note.split("\n")
    yield "of another log", "\n".join(["log_other", size, root, *rest])
    yield "of another size", "\n".join([origin, str(int(size) + 1), root, *rest])
    yield "of another root", "\n".join([origin, size, "A" * 43 + "=", *rest])
    yield "with an extension", "\n".join([origin, size, root, "epoch 2", *rest])
    yield "without a signature", "\n".join([origin, size, root, ""])
    yield "signed by another name", note.replace("example.com/golden", "example.com/other")
    yield "signed twice, once badly", note + note.split("\n")[-2].replace("=", "")[:-6] + "AAAAA=\n"
    yield "without its last line feed", note[:-1]
    yield "with a tab", note.replace("\n\n", "\t\n\n")


@pytest.mark.parametrize("name", MUTATED)
def test_every_mutant_is_refused_alike(name: str) -> None:
    """Change, drop, add, repeat or swap any one thing: both verifiers refuse it, with one code, record and sentence.

    A claim that does not say what was left out is that of an older capsule, and never proven.
    """
    document = json.loads(FILES[name])
    original = spelled(document)
    cases = [case for case in mutants(name) if case.data != original]
    assert len(cases) > 30
    found = verdicts(cases)
    taken = {c.name: verdict["verdict"] for c, verdict in zip(cases, found, strict=True)}
    accepted = {what: verdict for what, verdict in taken.items() if verdict != "refused"}
    assert accepted in ({}, {f"{name}: claim without left_out": "consistent"})


@pytest.mark.parametrize("name", FLIPPED)
def test_every_flipped_byte_is_found(name: str) -> None:
    """Flip the lowest bit of a byte anywhere in a file: both verifiers refuse it alike."""
    data = FILES[name]
    cases = [
        Case(f"{name} byte {at}", data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :], KEY)
        for at in range(0, len(data), FLIPPED[name])
    ]
    found = verdicts(cases)
    assert [c.name for c, verdict in zip(cases, found, strict=True) if verdict["verdict"] != "refused"] == []


def test_a_flipped_byte_in_a_body_names_the_entry() -> None:
    """The message names the broken record: a value changed in an observation is said to be in that entry."""
    document = json.loads(FILES["observation.json"])
    at = next(index for index, entry in enumerate(document["entries"]) if entry["kind"] == "observation")
    position = document["entries"][at]["position"]
    mutant = changed(document, ("entries", at, "body", "fields", "creditScore"), 581)
    (found,) = verdicts([Case("body", spelled(mutant), KEY)])
    assert (found["code"], found["record"]) == ("body", f"entry {position}")
    assert found["says"] == ["the content of this observation is not what the log committed to"]


def test_a_rule_that_does_not_hold_is_refused_though_it_was_recorded(tmp_path: Path) -> None:
    """A log may hold a decision that contradicts itself; a capsule of it proves nothing."""
    keys = make(tmp_path / "keys", FixedClock(), "k").keys
    ledger = signed_ledger(InMemoryEngine(), keys)
    begun = {"kind": "run.started", "run": "run_" + "a" * 26, "step": 0, "span": "0" * 16, "query": "?"}
    at = {"started_at": "2026-01-01T00:00:00.000000Z", "agent": "a"}
    condition = {"key": "x", "op": "lt", "operand": 600, "actual": 700, "result": True, "origin": {"kind": "stated"}}
    rule = {"chosen": "no", "when": {"x": {"lt": 600}}, "matched": True, "conditions": [condition]}
    decided = {"kind": "run.decided", "run": begun["run"], "step": 1, "span": "1" * 16, "stage": "s", "mode": "decide"}
    decided |= {"chosen": "no", "default": False, "rules": [rule], "facts": {"x": 700}, "facts_origin": {}}
    (run,) = ledger.runs.import_([begun | at, decided | at])
    (found,) = verdicts([Case("rule", ledger.proofs.capsule(run).to_bytes(), str(keys.verifier))])
    assert found["code"] == "decision"
    assert "x = 700 lt 600 is recorded as true, and is false" in found["says"][0]


def test_a_rule_with_a_long_operand_is_proven_by_its_digest(tmp_path: Path) -> None:
    """A rule holds its operands whole, a condition holds a long one as its digest; a rule with another is refused."""
    keys = make(tmp_path / "keys", FixedClock(), "k").keys
    ledger = signed_ledger(InMemoryEngine(), keys)
    names = [f"name {number}" for number in range(1_000)]
    with ledger.run("?") as run:
        run.decide(
            "one", {"x": "name 999", "y": "z" * 5_000}, [woodrat.Rule("yes", {"x": {"in": names}, "y": "z" * 5_000})]
        )
    found, *bodies = [entry.body for entry in ledger.log.entries() if entry.kind == "run.decided"]
    decided: dict[str, Any] = form.decode(found or b"")
    assert bodies == []
    assert "$truncated" in decided["rules"][0]["conditions"][0]["operand"]
    begun = {"kind": "run.started", "run": "run_" + "a" * 26, "step": 0, "span": "0" * 16, "query": "?", "agent": "a"}
    begun |= {"started_at": decided["started_at"], "agent": decided["agent"]}
    decided["rules"][0]["when"]["x"]["in"][0] = "another"
    ledger.runs.import_([begun, {**decided, "kind": "run.decided", "run": begun["run"]}])
    key = str(keys.verifier)
    cases = [Case(name, ledger.proofs.capsule(name).to_bytes(), key) for name in (run.id, str(begun["run"]))]
    proven, refused = verdicts(cases)
    assert proven["verdict"] == "proven"
    assert refused["code"] == "decision"
    assert "the operand of x in is not that of the rule" in refused["says"][0]


def test_a_decision_with_more_conditions_than_are_kept_is_consistent(tmp_path: Path) -> None:
    """Conditions left out for their number are no contradiction; the verdict names that they were."""
    keys = make(tmp_path / "keys", FixedClock(), "k").keys
    ledger = signed_ledger(InMemoryEngine(), keys)
    facts = {f"fact {number}": number for number in range(1_200)}
    with ledger.run("?") as run:
        run.decide("one", facts, [woodrat.Rule("yes", dict(facts))])
    (found,) = verdicts([Case("many", ledger.proofs.capsule(run.id).to_bytes(), str(keys.verifier))])
    assert (found["verdict"], found["parts"]) == ("consistent", ["omitted 1"])


JUNK: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, 1.5, "", "x", [], [1], {}, {"a": 1}, [{}], "read", {"$truncated": 5}, "loan/42"]
)


def _places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every part of a value."""
    for key in value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield (*path, key)
        yield from _places(value[key], (*path, key))


@settings(max_examples=100 if os.environ.get("WOODRAT_LAWS") == "full" else 5, deadline=None)
@given(st.data())
def test_runs_recorded_elsewhere_have_capsules_whatever_their_shape(data: st.DataObject) -> None:
    """Entries may hold anything in any place; a capsule is made of them, and both verifiers say the same of it."""
    with TemporaryDirectory() as folder:
        keys = make(Path(folder) / "keys", FixedClock(), "k").keys
        ledger = signed_ledger(InMemoryEngine(), keys)
        said = ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580}).observations[0]
        origin = {"kind": "read", "entity": "loan/42", "field": "creditScore", "observations": [said], "position": 0}
        condition = {"key": "creditScore", "op": "lt", "operand": 600, "actual": 580, "result": True, "origin": origin}
        rule = {"chosen": "no", "when": {"creditScore": {"lt": 600}}, "matched": True, "conditions": [condition]}
        read = {"position": 0, "entity": "loan/42", "found": True, "fields": {"creditScore": {"observation": said}}}
        decided = {"stage": "s", "mode": "decide", "chosen": "no", "default": False, "rules": [rule]}
        decided |= {"facts": {"creditScore": 580}, "facts_origin": {"creditScore": origin}}
        read["log"] = next(iter(ledger.log.entries())).log
        read["fields"]["creditScore"]["value"] = 580  # type: ignore[index]
        cases = []
        for number in range(8):
            entries: list[dict[str, Any]] = [dict(form.decode(form.serialise(each))) for each in (read, decided)]
            for _ in range(number and data.draw(st.integers(1, 2))):
                entry = data.draw(st.sampled_from(entries))
                *path, last = data.draw(st.sampled_from(list(_places(entry)) or [("stage",)]))
                within: Any = entry
                for step in path:
                    within = within[step]
                within[last] = data.draw(JUNK)
            run = f"run_{number:026d}".replace("0", "a").replace("1", "b").replace("8", "c")
            place = {"run": run, "started_at": "2026-01-01T00:00:00.000000Z"}
            kinds = [{"kind": "run.read"}, {"kind": "run.decided"}]
            told = [{**entry, **kind, **place} for entry, kind in zip(entries, kinds, strict=True)]
            # As in a log that was imported: what comes in otherwise cites nothing that it cannot have read.
            for step, body in enumerate([{"kind": "run.started", "query": "?", **place}, *told]):
                body |= {"step": step, "span": f"{step:016x}", "agent": "a"}
                write_entry(ledger, str(body["kind"]), {name: each for name, each in body.items() if name != "kind"})
            cases.append(Case(str(told), ledger.proofs.capsule(run).to_bytes(), str(keys.verifier)))
            with contextlib.suppress(NotFound):
                cases.append(Case(str(told), ledger.proofs.capsule(f"{run}#s").to_bytes(), str(keys.verifier)))
        found = verdicts(cases)
        assert (found[0]["verdict"], found[0]["parts"]) == ("consistent", ["end"])


def test_what_was_said_cannot_write_lines_of_its_own(tmp_path: Path) -> None:
    """Names and texts of a log are shown on one line, without signs that act on a terminal."""
    keys = make(tmp_path / "keys", FixedClock(), "k").keys
    ledger = signed_ledger(InMemoryEngine(), keys)
    with ledger.run("a\x1b[2J\u202e\x85") as run:
        run.decide("s\nPROVEN", {"x": "\x7f"}, [woodrat.Rule("c", {"x": "\x7f"}, label="l\r\nPROVEN\u2028")])
    (found,) = verdicts([Case("lines", ledger.proofs.capsule(run.id).to_bytes(), str(keys.verifier))])
    assert found["verdict"] == "proven"
    assert all(line.isprintable() for line in found["says"])
    assert not any(line.startswith("PROVEN") for line in found["says"])


def test_a_log_that_goes_on_from_another_says_so(tmp_path: Path) -> None:
    """Entries written under another name stay provable under the new one, and the words name the log they are from."""
    keys = make(tmp_path / "keys", FixedClock(), "k").keys
    ledger = signed_ledger(InMemoryEngine(), keys)
    said = ledger.store({"entity_type": "thing", "id": "1"})
    before = ledger.proofs.checkpoint().checkpoint.log

    def plan(draft: Draft) -> None:
        draft.log = "log_clone"
        draft.add("tag", form.encode({"agent": "a", "log": before, "name": "t", "position": 0}))

    Writer(ledger.context).write("clone", {}, plan)
    capsule = ledger.proofs.capsule(said.observations[0])
    assert capsule.checkpoint.checkpoint.log == "log_clone"
    (found,) = verdicts([Case("clone", capsule.to_bytes(), str(keys.verifier))])
    assert f"1 of them were written under the name of log {before}, which this log goes on from." in found["says"]


def test_another_key_is_refused() -> None:
    """A capsule under a key that did not sign it is refused, whatever its entries say; so is a key that is none."""
    stranger = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
    data = FILES["run.json"]
    cases = [Case("stranger", data, stranger), Case("text", data, "no key"), Case("empty", data, "")]
    cases.append(Case("hash", data, KEY.replace("+d", "+e", 1)))
    assert [found["code"] for found in verdicts(cases)] == ["signer", "key", "key", "key"]


def test_a_checkpoint_you_hold_shows_truncation_and_forks() -> None:
    """Against a longer checkpoint of the same log a capsule is refused as truncated, against another root as forked."""
    old, new = FILES["old.note"], FILES["new.note"]
    cases = [
        Case("longer", new, KEY, old.decode()),
        Case("same", new, KEY, new.decode()),
        Case("cut", old, KEY, new.decode()),
        Case("capsule", FILES["run.json"], KEY, new.decode()),
        Case("bad", FILES["run.json"], KEY, new.decode()[:-3]),
        Case("consistency", FILES["consistency.json"], KEY, new.decode()),
    ]
    found = verdicts(cases)
    codes = ["consistent", "proven", "truncated", "consistent", "note", "proven"]
    assert [verdict["code"] for verdict in found] == codes
    assert [verdict["parts"] for verdict in found[:2]] == [["held"], []]
    assert "held" not in found[3]["parts"]
    assert found[5]["says"][-1] == "The checkpoint you hold is the same at its size."
    assert "covers 39 entries less" in found[2]["says"][0]


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"{",
        b"\xff{",
        b"\xef\xbb\xbf{}\n",
        b'{"a":1,"a":1}\n',
        b'{"a":1.0}\n',
        b'{"a":9007199254740992}\n',
        b'{"a":1e400}\n',
        b'{"a":NaN}\n',
        b'{"a":-0}\n',
        b'{"a":"\\ud800"}\n',
        b'{"b":1,"a":1}\n',
        b'{"a": 1}\n',
        b'{"a":1}',
        b'{"a":' + b"[" * 200 + b"]" * 200 + b"}\n",
        b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
        b'{"format":0,"woodrat":"capsule"}\n',
        b'{"format":false,"woodrat":"capsule"}\n',
        b'{"format":0,"woodrat":"constructor"}\n',
        b'{"format":0,"woodrat":["capsule"]}\n',
        b"[1]\n",
        b"null\n",
    ],
)
def test_what_is_no_document_is_refused_alike(data: bytes) -> None:
    """Bytes that are no canonical JSON, or JSON of another shape, are refused by both with the same words."""
    (found,) = verdicts([Case("bytes", data, KEY)])
    assert found["verdict"] == "refused"
    assert found["code"] in ("form", "shape", "note")


NUMBERS = [0, 1, -1, 0.1, -0.5, 1e-7, 0.000001, 123456789012345.67, 1e21, 1.5e300, 5e-324, 2**53 - 1, 100, 1e22, 333.5]


@needs_node
def test_numbers_are_spelled_as_the_log_spells_them() -> None:
    """Both verifiers spell numbers and text as canonical JSON does."""
    from woodrat.verifier.woodrat_verify import spell

    for number in NUMBERS:
        assert spell(number) == form.serialise(number).decode()
    text = "".join(map(chr, range(1, 0x80))) + "é\u2028\uffff😀"
    assert spell({text: text, "\uff21": 1, "😀": 2}) == form.serialise({text: text, "\uff21": 1, "😀": 2}).decode()


FIELDS = {policy: POLICIES[policy] for policy in sorted(POLICIES)}


def _document(kinds: dict[str, Any]) -> dict[str, Any]:
    properties = {name: {"x-woodrat-merge": policy} for name, policy in kinds.items()}
    return {"title": "thing", "properties": properties, "x-woodrat-version": 1}


@given(several=st.lists(histories(FIELDS), min_size=4, max_size=4))
@settings(max_examples=10)
def test_a_field_merges_to_the_same_value_without_us(several: list[History]) -> None:
    """Whatever was said of a field under any policy, both verifiers arrive at the value that the ledger shows."""
    cases = [case for history in several for case in _merged(history)]
    accepted = ("proven", "consistent")
    assert [
        case.name for case, found in zip(cases, verdicts(cases), strict=True) if found["code"] not in accepted
    ] == []


@given(history=histories(FIELDS), data=st.data())
@settings(max_examples=20)
def test_another_value_of_a_field_is_refused(history: History, data: st.DataObject) -> None:
    """A capsule that claims another value than its observations merge to is refused, and both say what they found."""
    cases = _merged(history)
    if not cases:
        return
    case = data.draw(st.sampled_from(cases))
    document = json.loads(case.data)
    mutant = changed(document, ("claim", "value"), {"another": document["claim"]["value"]})
    (found,) = python([Case("value", spelled(mutant), case.key)])
    assert (found["code"], found["record"]) == ("claim", "claim")


_SHARED: list[Any] = []


def _merged(history: History) -> list[Case]:
    """Return a capsule of every field that a history gives a value to."""
    if not _SHARED:
        import tempfile

        folder = tempfile.TemporaryDirectory()
        _SHARED.extend([folder, make(folder.name, FixedClock(), "k").keys])
    keys = _SHARED[1]
    ledger = signed_ledger(InMemoryEngine(), keys, clock=FixedClock(seed=str(len(_SHARED))))
    kinds = {name: policy.name.to_json() for name, policy in FIELDS.items()}
    parsed = schema.parse_schema(_document(kinds), policies=lambda name: find_policy(name, BUILTIN).traits)
    edges = [
        say(relation(one, SAME_AS, other), ASSERT, agent="a", observed_at=MOMENTS[0], fields={"same": True})
        for one, other in pairwise(sorted(history.members, key=str))
    ]
    said = [*edges, *history.observations]
    ledger.admit([("schema", parsed.body), *(("observation", one.body) for one in said)])
    for path in Path(keys.folder, "seen").glob("*.note"):
        path.unlink()  # every example is a log of its own under the same name
    found = []
    for name in FIELDS:
        try:
            document = ledger.proofs.capsule(f"{history.members[0]}#{name}")
        except NotFound:
            continue
        found.append(Case(name, document.to_bytes(), str(keys.verifier)))
    return found


def test_the_verifier_stands_alone() -> None:
    """The verifier in Python imports the standard library only and keeps to the syntax of Python 3.9."""
    import ast
    import sys

    from woodrat.verifier import woodrat_verify

    source = Path(woodrat_verify.__file__).read_text("utf-8")
    tree = ast.parse(source, feature_version=(3, 9))
    names: set[str] = set()
    for found in ast.walk(tree):
        if isinstance(found, ast.Import):
            names.update(alias.name for alias in found.names)
        elif isinstance(found, ast.ImportFrom):
            names.add(str(found.module))
    assert {name.split(".")[0] for name in names} <= sys.stdlib_module_names
    assert "import woodrat" not in source


def test_a_group_is_one_as_long_as_its_relation_stands(tmp_path: Path) -> None:
    """A field of joined entities follows from what was said of all of them; after a split it no longer does."""
    keys = make(tmp_path / "keys", FixedClock(), "k").keys
    ledger = signed_ledger(InMemoryEngine(), keys)
    ledger.store({"entity_type": "thing", "id": "1", "n": 1}, observed_at="2025-01-01T00:00:00Z")
    ledger.store({"entity_type": "thing", "id": "2", "n": 2}, observed_at="2025-01-02T00:00:00Z")
    found = []
    for change in (None, ledger.merge, ledger.split, ledger.merge):
        if change is not None:
            change("thing/1", "thing/2")
        document = ledger.proofs.capsule("thing/1#n").to_bytes()
        found += verdicts([Case("group", document, str(keys.verifier))])
        assert json.loads(document)["claim"]["value"] == ledger.show("thing/1").fields["n"]
    assert [verdict["parts"] for verdict in found] == [["schema"]] * 4
    one = "It is one with thing/2, by same_as relations in this capsule."
    assert [one in verdict["says"] for verdict in found] == [False, True, False, True]


def test_node_was_there_where_it_must_be() -> None:
    """Whether the second verifier was asked shows here: it is skipped only where there is no node."""
    if NODE is None:
        pytest.skip("there is no node on PATH: only the verifier in Python was tested")
