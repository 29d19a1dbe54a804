"""Honest capsules: what a ledger makes is never refused, and the verdict names what is hidden, cut or erased."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.golden.make_capsules import signed_ledger
from tests.state.test_schema_limit import export
from tests.state.test_schema_subset import BOMBS
from tests.verifier.both import Case, verdicts

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import NotFound, Refused
from woodrat.proofs import reader as proofs_reader
from woodrat.proofs.verbs.keys import Keys, make
from woodrat.testing.clock import FixedClock

LOAN: dict[str, Any] = {
    "title": "loan",
    "properties": {"score": {"type": "integer"}, "ssn": {"x-woodrat-redact": True}, "note": {"type": "string"}},
}
RULE = woodrat.Rule("rejected", {"score": {"lt": 600}}, label="Marginal credit")


class Desk:
    """A ledger whose capsules are checked as they are made."""

    def __init__(self, folder: Path) -> None:
        self.keys: Keys = make(folder / "keys", FixedClock(), "k").keys
        self.engine = InMemoryEngine()
        self.ledger = signed_ledger(self.engine, self.keys)

    def ask(self, what: str) -> dict[str, Any]:
        """Return the verdict on a capsule."""
        (found,) = verdicts([Case(what, self.ledger.proofs.capsule(what).to_bytes(), str(self.keys.verifier))])
        assert found["verdict"] != "refused", found
        return found

    def parts(self, what: str) -> set[str]:
        """Return the words of the parts that lower the verdict on a capsule."""
        return {part.partition(" ")[0] for part in self.ask(what)["parts"]}


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_refused_write_leaves_a_number_that_is_accounted_for(desk: Desk) -> None:
    """The end of a run lists the numbers that left nothing; what it wrote is in the capsule."""
    desk.ledger.schemas.register(LOAN)
    with desk.ledger.run("?") as run:
        with pytest.raises(Refused):
            run.store({"entity_type": "loan", "id": "42", "score": "high"})
        run.store({"entity_type": "loan", "id": "42", "score": 580})
        run.decide("s", run.show("loan/42"), [RULE])
    (ended,) = [entry for entry in desk.ledger.log.entries() if entry.kind == "run.ended"]
    body = woodrat.canon.form.decode(ended.body or b"")
    assert (body["numbered"], body["skipped"]) == (True, [1])
    assert desk.parts(run.id) == {"skipped"}
    assert desk.parts(f"{run.id}#s") == {"skipped"}


def test_a_reading_inside_a_run_is_a_step(desk: Desk) -> None:
    """Observations of a source that was read inside a run account for the number of that step."""
    source = desk.ledger.sources.add(b"score 580", name="report")
    with desk.ledger.run("?") as run:
        with run.interpretation(source) as reading:
            reading.store({"entity_type": "loan", "id": "42", "score": 580})
        with run.interpretation(source):
            pass
        run.decide("s", run.show("loan/42"), [RULE])
    (ended,) = [entry for entry in desk.ledger.log.entries() if entry.kind == "run.ended"]
    assert woodrat.canon.form.decode(ended.body or b"")["skipped"] == [2]
    assert desk.parts(run.id) == {"skipped"}


def test_a_run_that_was_continued_or_resumed_is_numbered_all_the_same(desk: Desk) -> None:
    """Whoever ends a run says of all its recorders which numbers left nothing."""
    ledger = desk.ledger
    run = ledger.run("?").start()
    with pytest.raises(Refused):
        run.store({"entity_type": "LOAN"})
    run.note("one")
    run.release()
    with ledger.runs.continue_(run.id, ends=True) as other:
        other.store({"entity_type": "loan", "id": "42", "score": 580})
        other.decide("s", other.show("loan/42"), [RULE])
    assert desk.parts(run.id) == {"skipped"}


def test_a_run_in_threads_and_with_calls_inside_calls_is_proven(desk: Desk) -> None:
    """Calls are recorded when they are over and threads as they come, so numbers need not ascend."""
    ledger = desk.ledger
    ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    with ledger.run("?") as run:
        with run.tool("outer") as outer, run.tool("inner") as inner:
            run.show("loan/42")
            inner.result, outer.result = {"score": 580}, {"score": 1}
        threads = [run.thread(run.show, ("loan/42",)) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        run.decide("s", {"score": inner.fact("/score")}, [RULE])
        for snapshot in run.query(entity_type="loan").items:
            run.decide("each", snapshot, [RULE])
    assert desk.ask(run.id)["verdict"] == "proven"


def test_processes_that_take_the_same_number_are_named(desk: Desk) -> None:
    """Two recorders of one run may count alike; then a missing step would not show, and the verdict says so."""
    run = desk.ledger.run("?").start()
    run.release()
    other = desk.ledger.runs.continue_(run.id)
    run.note("here")
    other.note("there")
    other.decide("s", {"score": 580}, [RULE])
    other.end("done")
    assert desk.parts(run.id) == {"steps"}


MERGED: dict[str, Any] = {
    "title": "loan",
    "properties": {
        **{policy: {"x-woodrat-merge": policy} for policy in ("highest_priority", "first", "max", "min")},
        **{policy: {"x-woodrat-merge": policy} for policy in ("union", "sum", "append")},
        "by_key": {"x-woodrat-merge": {"by_key": "n"}},
    },
}


def test_what_a_run_read_is_merged_again_from_all_that_was_stated(desk: Desk) -> None:
    """Claims that lost, corrections, withdrawals and merged entities are shown, and every policy is followed."""
    ledger = desk.ledger
    ledger.schemas.register(MERGED)
    for number, agent in enumerate(("crm", "web", "crm")):
        claims = dict.fromkeys(("highest_priority", "first", "max", "min", "sum", "latest"), number)
        lists = {"union": [str(number)], "append": [number], "by_key": [{"n": "a", "v": number}]}
        record = {"entity_type": "loan", "id": str(42 + number % 2), **claims, **lists}
        ledger.as_agent(agent).store(record, priority=2 - number)
    ledger.retract(ledger.store({"entity_type": "loan", "id": "42", "latest": 9}).observations[0], reason="a typo")
    ledger.correct("loan/42", {"max": 7, "union": ["x"]}, reason="by hand")
    ledger.merge("loan/42", "loan/43")
    with ledger.run("?") as run:
        facts = run.show("loan/42")
        run.decide("s", facts, [woodrat.Rule("a", {"latest": 2, "max": 7, "min": 0})])
        run.store({"entity_type": "loan", "id": "42", "latest": 100})
        run.decide("later", run.show("loan/43"), [woodrat.Rule("a", {"latest": 100})])
    assert desk.ask(run.id)["verdict"] == "proven"
    for stage in ("s", "later"):
        assert desk.ask(f"{run.id}#{stage}")["verdict"] == "proven"


def test_a_capsule_that_leaves_losers_out_says_so(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of observations only the winner is shown, and the verdict names that it was not merged again."""
    monkeypatch.setattr(proofs_reader, "MERGED_MAX", 2)
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 1})
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    with desk.ledger.run("?") as run:
        run.decide("s", run.show("loan/42"), [RULE])
    assert desk.ask(run.id)["verdict"] == "proven"
    desk.ledger.store({"entity_type": "loan", "id": "43", "score": 1})
    desk.ledger.store({"entity_type": "loan", "id": "43", "score": 2})
    desk.ledger.store({"entity_type": "loan", "id": "43", "score": 580})
    with desk.ledger.run("?") as run:
        run.decide("s", run.show("loan/43"), [RULE])
    assert desk.parts(run.id) == {"winner"}
    assert desk.parts(f"{run.id}#s") == {"winner"}


def test_sources_of_claims_that_lost_are_not_asked_for(desk: Desk) -> None:
    """A claim that lost is shown to be merged, without the document it was read from."""
    source = desk.ledger.sources.add(b"score 1", name="old report")
    with desk.ledger.interpretations.start(source) as reading:
        reading.store({"entity_type": "loan", "id": "42", "score": 1})
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    with desk.ledger.run("?") as run:
        run.decide("s", {"score": run.show("loan/42").fact("score")}, [RULE])
    assert desk.ask(f"{run.id}#s")["verdict"] == "proven"
    kinds = [proof.entry.kind for proof in desk.ledger.proofs.capsule(f"{run.id}#s").proofs]
    assert (kinds.count("observation"), kinds.count("source")) == (2, 0)


def test_what_was_decided_before_is_evidence(desk: Desk) -> None:
    """A decision of the run is looked up; one of another run, and what was recalled, are named."""
    ledger = desk.ledger
    with ledger.run("Approve?") as first:
        verdict = first.decide("risk", {"score": 580}, [RULE])
        first.decide("again", verdict, [woodrat.Rule("no", {"risk": "rejected"})])
    assert desk.ask(first.id)["verdict"] == "proven"
    with ledger.run("?") as second:
        second.decide("s", verdict, [woodrat.Rule("no", {"risk": "rejected"})])
    assert desk.parts(second.id) == {"decision"}
    ledger.remember("Ana prefers calls before noon")
    with ledger.run("?") as third:
        third.recall("When does Ana prefer calls?")
        third.decide("s", {"score": 580}, [RULE])
    assert desk.parts(third.id) == {"recall"}


def test_an_interrupted_run_is_consistent(desk: Desk) -> None:
    """A run without an end is shown as far as it went."""
    run = desk.ledger.run("?").start()
    run.decide("s", {"score": 580}, [RULE])
    assert desk.ask(f"{run.id}#s")["parts"] == ["end"]


def test_long_inputs_are_named_as_cut(desk: Desk) -> None:
    """Inputs over 64 KiB are kept as their digest; a decision on one of them is consistent."""
    with desk.ledger.run("?", inputs={"score": 580, "text": "x" * 100_000}) as run:
        run.decide("s", {"score": run.input("score")}, [RULE])
    assert desk.parts(run.id) == {"cut"}


def test_long_values_that_a_digest_settles_are_proven(desk: Desk) -> None:
    """A value too long for a condition is the one its origin shows whole, by its digest."""
    text = "x" * 10_000
    desk.ledger.store({"entity_type": "loan", "id": "42", "note": text})
    with desk.ledger.run("?", inputs={"note": text}) as run:
        loan = run.show("loan/42")
        call = run.tool("t", lambda: {"note": text})
        for number, fact in enumerate((loan.fact("note"), run.input("note"), call.fact("/note"))):
            run.decide(f"s{number}", {"note": fact}, [woodrat.Rule("yes", {"note": text})])
    assert desk.ask(run.id)["verdict"] == "proven"


def test_a_later_schema_does_not_break_an_older_decision(desk: Desk) -> None:
    """A read is checked under the schema in force then; one that came later changes nothing."""
    desk.ledger.schemas.register(LOAN)
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    with desk.ledger.run("?") as run:
        run.decide("s", run.show("loan/42"), [RULE])
    properties = {**LOAN["properties"], "score": {"x-woodrat-merge": "sum"}}
    desk.ledger.schemas.register({**LOAN, "properties": properties})
    with desk.ledger.run("?") as later:
        later.decide("s", later.show("loan/42"), [RULE])
    assert desk.ask(f"{run.id}#s")["verdict"] == "proven"
    assert desk.ask(later.id)["verdict"] == "proven"


@pytest.mark.parametrize("bomb", ["allOf", "many patterns", "numbers", "unique"])
def test_a_schema_from_elsewhere_that_nothing_fits_refuses_no_capsule(desk: Desk, bomb: str) -> None:
    """What was read before it came is proven, what is read under it has no fields, and a later version ends that."""
    thing: dict[str, Any] = {"title": "thing", "properties": {"score": {"type": "integer"}}}
    desk.ledger.schemas.register(thing)
    kept = desk.ledger.store({"entity_type": "thing", "id": "1", "score": 580}).observations[0]
    with desk.ledger.run("?") as before:
        before.decide("s", before.show("thing/1"), [RULE])
    desk.ledger.log.import_(io.BytesIO(export(BOMBS[bomb])))
    with desk.ledger.run("?") as under:
        assert under.show("thing/1").fields == {}
        under.decide("s", {"score": 580}, [RULE])
    with pytest.raises(NotFound, match="it has no value"):
        desk.ledger.proofs.capsule("thing/1#score")
    assert {desk.ask(what)["verdict"] for what in (kept, before.id, f"{before.id}#s", under.id)} == {"proven"}
    desk.ledger.schemas.register({**thing, "properties": {**thing["properties"], "x": {"pattern": "^[A-Z]"}}})
    with desk.ledger.run("?") as after:
        after.decide("s", after.show("thing/1"), [RULE])
    assert desk.ask("thing/1#score")["verdict"] == desk.ask(f"{after.id}#s")["verdict"] == "proven"
    assert desk.parts("thing/1#x") == {"subschema"}


def test_hidden_keys_are_named(desk: Desk) -> None:
    """What the run, the step or the schema hides is compared as far as it is shown."""
    desk.ledger.schemas.register(LOAN)
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 580, "ssn": "1"})
    with desk.ledger.run("?", redact=["score"], inputs={"score": 580}) as run:
        loan = run.show("loan/42")
        run.decide("read", {"score": loan.fact("score")}, [RULE])
        run.decide("renamed", {"x": loan.fact("score")}, [woodrat.Rule("no", {"x": {"lt": 600}})])
        run.decide("input", {"score": run.input("score")}, [RULE])
        run.decide("schema", {"ssn": loan.fact("ssn")}, [woodrat.Rule("no", {"ssn": {"exists": True}})])
        call = run.tool("t", lambda: {"score": 580, "also": {"score": 580}})
        run.decide("tool", {"also": call.fact("/also"), "n": call.fact("/score")}, [woodrat.Rule("no", {"n": 580})])
    assert desk.parts(run.id) == {"hidden"}
    with desk.ledger.run("?") as once:
        loan = once.show("loan/42")
        once.decide("s", {"score": loan.fact("score")}, [RULE], redact=["score"])
        once.decide("when", loan, [RULE], redact=["sco*"])
    assert desk.parts(once.id) == {"hidden"}


def test_what_was_read_outside_of_the_run_is_named(desk: Desk) -> None:
    """A snapshot that the run did not read itself is checked against its observations."""
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 580})
    loan = desk.ledger.show("loan/42")
    with desk.ledger.run("?") as run:
        run.decide("s", loan, [RULE])
    assert desk.parts(run.id) == {"read"}


def test_joined_entities_are_shown_with_what_joins_them(desk: Desk) -> None:
    """A value read of one entity may have been stated of another that is the same."""
    ledger = desk.ledger
    ledger.store({"entity_type": "loan", "id": "42", "note": "a"})
    ledger.store({"entity_type": "loan", "id": "43", "score": 580})
    ledger.merge("loan/42", "loan/43")
    with ledger.run("?") as run:
        run.decide("s", run.show("loan/42"), [RULE])
        pinned = run.pinned().show("loan/42")
        run.decide("pinned", pinned, [RULE])
    ledger.split("loan/42", "loan/43")
    assert desk.ask(run.id)["verdict"] == "proven"
    assert desk.ask(f"{run.id}#s")["verdict"] == "proven"


def test_an_imported_run_is_consistent(desk: Desk) -> None:
    """Steps that no recorder numbered have gaps that mean nothing."""
    place = {"agent": "crm", "started_at": "2026-01-01T00:00:00Z"}
    read = {"kind": "run.read", "step": 17, "entity": "loan/42", "found": True, "fields": {"score": {"value": 580}}}
    origin = {"kind": "read", "entity": "loan/42", "field": "score"}
    decided = {"kind": "run.decided", "step": 900, "stage": "s", "mode": "decide", "chosen": "no", "default": False}
    decided |= {"facts": {"score": 580}, "facts_origin": {"score": origin}}
    ended = {"kind": "run.ended", "step": 901, "status": "done"}
    begun = {"kind": "run.started", "query": "?", "step": 0}
    (run,) = desk.ledger.runs.import_([{**entry, **place} for entry in (begun, decided, read, ended)])
    assert desk.parts(run) == {"choice", "read", "steps"}
    assert desk.parts(f"{run}#s") == {"choice", "read", "steps"}


def test_what_a_ledger_hides_of_an_imported_run_is_named(tmp_path: Path) -> None:
    """The beginning of an imported run says which keys this ledger hides, so a hidden value is known as one."""
    made = woodrat.init(tmp_path / "keys")
    ledger = woodrat.open(tmp_path / "l.db", agent="crm", keys=tmp_path / "keys", redact=["password"])
    place = {"agent": "crm", "started_at": "2026-01-01T00:00:00Z"}
    origin = {"kind": "input", "name": "password"}
    decided = {"kind": "run.decided", "step": 1, "stage": "s", "mode": "decide", "chosen": "no", "default": False}
    decided |= {"facts": {"secret": "12345"}, "facts_origin": {"secret": origin}}
    begun = {"kind": "run.started", "step": 0, "inputs": {"password": "12345"}, "redact": ["pin"]}
    (run,) = ledger.runs.import_([{**begun, **place}, {**decided, **place}])
    (found,) = verdicts([Case(run, ledger.proofs.capsule(run).to_bytes(), str(made.verifier))])
    assert (found["verdict"], found["parts"]) == ("consistent", ["choice 1", "end", "hidden 1"]), found
    ledger.close()


def erasing(desk: Desk) -> tuple[str, str]:
    """Return a run that read two loans and wrote of one, and what it wrote."""
    ledger = desk.ledger
    ledger.schemas.register(LOAN)
    ledger.as_agent("bureau").store({"entity_type": "loan", "id": "42", "score": 580, "note": "late with rent"})
    ledger.store({"entity_type": "loan", "id": "43", "score": 700, "note": "never late at all"})
    with ledger.run("Compare two loans.") as run:
        one, other = run.show("loan/42"), run.show("loan/43")
        run.decide("s", one, [RULE], default="approved")
        run.decide("other", other, [RULE], default="approved")
        run.store({"entity_type": "loan", "id": "43", "note": "approved by the desk"})
        run.answer("done")
    return run.id, "loan/43"


@pytest.mark.parametrize(
    "scope",
    [
        {"what": "loan/42"},
        {"what": "loan/42#score"},
        {"what": "loan/43"},
        {"what": "loan/43#note"},
        {"agent": "bureau"},
    ],
)
def test_lawful_erasure_of_evidence_leaves_a_capsule_consistent(desk: Desk, scope: dict[str, Any]) -> None:
    """What an erasure took is named; what is left is checked as before."""
    run, _ = erasing(desk)
    assert desk.ask(run)["verdict"] == "proven"
    desk.ledger.erase(**scope, reason="art. 17")
    for what in (run, f"{run}#s", f"{run}#other"):
        found = desk.ask(what)
        assert {part.partition(" ")[0] for part in found["parts"]} <= {"again", "erased", "winner"}
        assert found["verdict"] == "consistent", scope


def test_one_erasure_after_the_other_leaves_a_capsule_consistent(tmp_path: Path) -> None:
    """A run in a file, and the same run taken in by another ledger: what was erased twice is named, and not refused."""
    made = [woodrat.init(tmp_path / name) for name in ("one", "two")]
    shutil.copy(tmp_path / "one" / "erasure.key", tmp_path / "two" / "erasure.key")
    one = woodrat.open(tmp_path / "one.db", agent="crm", keys=tmp_path / "one")
    one.schemas.register(LOAN)
    one.store({"entity_type": "loan", "id": "42", "score": 580, "note": "late with rent"})
    with one.run("?") as run:
        run.decide("s", run.show("loan/42"), [RULE])
        run.store({"entity_type": "loan", "id": "43", "note": "a word about it"})
    one.log.export(tmp_path / "one.jsonl")
    two = woodrat.open(tmp_path / "two.db", agent="other", keys=tmp_path / "two")
    two.store({"entity_type": "thing", "id": "1"})
    two.log.import_(tmp_path / "one.jsonl")
    words: list[set[str]] = []
    for scope in (None, "loan/43", "loan/42#note", "loan/42"):
        for ledger, keys in zip((one, two), made, strict=True):
            if scope is not None:
                ledger.erase(scope, reason="art. 17")
            for what in (run.id, f"{run.id}#s"):
                (found,) = verdicts([Case(what, ledger.proofs.capsule(what).to_bytes(), str(keys.verifier))])
                assert found["verdict"] != "refused", (scope, what, found)
                words.append({part.partition(" ")[0] for part in found["parts"]})
    imported = {"foreign", "imported", "winner"}
    assert words[:4] == [set(), set(), imported, imported]
    assert words[4:8] == [{"erased"}, {"erased"}, {"erased"} | imported, {"erased"} | imported]
    assert all("again" in each for each in words[8:])
    one.close()
    two.close()


def test_a_field_after_an_erasure_follows_from_what_is_left(desk: Desk) -> None:
    """One observation of a field is erased with who made it; the others give the value."""
    desk.ledger.schemas.register(LOAN)
    desk.ledger.store({"entity_type": "loan", "id": "42", "score": 500, "note": "seen by hand today"})
    desk.ledger.as_agent("bureau").store({"entity_type": "loan", "id": "42", "score": 580})
    desk.ledger.erase(agent="bureau", reason="art. 17")
    assert desk.ledger.show("loan/42").fields["score"] == 500
    desk.ask("loan/42#score")
    desk.ledger.erase("loan/42#note", reason="art. 17")
    assert desk.parts("loan/42#score") == {"again"}


def test_a_source_that_is_left_out_is_named(desk: Desk) -> None:
    """Content longer than 1 MiB is not in a capsule, and the verdict says whose."""
    source = desk.ledger.sources.add(b"x" * 1_100_000, name="big")
    with desk.ledger.interpretations.start(source) as reading:
        said = reading.store({"entity_type": "loan", "id": "42", "score": 580})
    assert desk.parts(said.observations[0]) == {"source"}
    assert desk.parts("loan/42#score") == {"schema", "source"}


def test_every_way_to_read_and_call_is_proven_or_named(desk: Desk) -> None:
    """Whatever verb a run reads by, at whatever moment, and however its calls end, its capsule is not refused."""
    ledger = desk.ledger
    ledger.schemas.register(LOAN)
    ledger.store({"entity_type": "loan", "id": "42", "score": 500}, valid_from="2025-01-01T00:00:00Z")
    early = ledger.position
    ledger.store({"entity_type": "loan", "id": "42", "score": 580}, valid_from="2030-01-01T00:00:00Z")
    ledger.store({"entity_type": "loan", "id": "43", "score": 700, "note": "é😀"})
    ledger.relate("loan/42", "guarantees", "loan/43")

    @woodrat.tool(once=True)
    def pay(amount: int) -> dict[str, Any]:
        return {"paid": amount, "deep": [{"a/b": 1}]}

    @woodrat.tool
    def fail() -> None:
        raise ValueError("no")

    with ledger.run("?", inputs={"flag": True, "none": None, "list": [1, {"a": 2}]}) as run:
        run.decide("early", run.at(early).show("loan/42"), [RULE])
        run.decide("by then", run.at(valid_at="2026-01-01T00:00:00Z").show("loan/42"), [RULE])
        for read in (run.history, run.blame, run.observations, run.related):
            read("loan/42")
        for page in (run.query(entity_type="loan"), run.query(entity_type="none")):
            for snapshot in page.items:
                run.decide("queried", snapshot, [RULE])
        for hit in run.search("loan").items:
            run.decide("found", hit.snapshot, [RULE])
        run.timeline()
        run.conflicts()
        with pytest.raises(woodrat.errors.NotFound):
            run.show("loan/99")
        call = pay(5)
        with pytest.raises(ValueError, match="no"):
            fail()
        done = run.tool("again", pay, 6)
        facts = {"paid": call["paid"], "b": done.fact("/deep/0/a~1b"), "flag": run.input("flag")}
        facts |= {"none": run.input("none"), "list": run.input("list"), "said": 1.5}
        wanted = {"paid": {"gte": 5, "ne": 6}, "b": 1, "flag": True, "none": None, "list": [1, {"a": 2}]}
        run.decide("all", facts, [woodrat.Rule("a", {"flag": False}), woodrat.Rule("b", wanted)], default="c")
        run.select("some", facts, [woodrat.Rule("a", {"said": {"in": [1.5]}}), woodrat.Rule({"b": [1]}, {"b": 1})])
        run.select("none", facts, [woodrat.Rule("a", {"b": 2})], default="nobody")
        run.decide("empty", {}, [], default="x")
        run.model("m", messages=[{"role": "user", "content": "?"}], response="fine")
        with ledger.run("inside") as child:
            child.decide("s", {"score": 1}, [RULE])
        run.store({"entity_type": "loan", "id": "44", "score": 1})
        run.correct("loan/44", {"score": 2})
        run.delete("loan/44")
    run.judge("good", reason="because")
    assert desk.parts(run.id) == {"effective", "winner"}
    assert desk.ask(f"{run.id}#early")["verdict"] == "proven"
    assert desk.ask(f"{run.id}#all")["verdict"] == "proven"
    assert desk.ask(child.id)["verdict"] == "proven"
