"""Records as JSON with nothing left out: whatever a record holds, it is the same record on the other side."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from io import BytesIO
from pathlib import Path
from types import UnionType
from typing import Any, Union, get_args, get_origin

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import woodrat
from woodrat.api import codec
from woodrat.api.codec import AnswerForm, returned
from woodrat.api.ledger import Ledger
from woodrat.api.link import plain
from woodrat.api.verbs import verbs
from woodrat.bisect.predicate import Choice, FieldRead, Predicate
from woodrat.canon.ids import Ref
from woodrat.explain.workers.follower import Newly
from woodrat.ledger.find import Hit
from woodrat.ledger.pages import Page
from woodrat.log.entry import Entry
from woodrat.merge.snapshot import Snapshot
from woodrat.record_json import Hex, form_of, schemas, types_of
from woodrat.records import is_record, kinds_of
from woodrat.runs.margin import Margin
from woodrat.server.run_routes import newly_stale
from woodrat.state.asof import Stored
from woodrat.state.observation import Observation
from woodrat.state.schema import OPEN, Schema
from woodrat.testing.ledgers import tell

WRITES = {
    "store",
    "correct",
    "retract",
    "delete",
    "restore",
    "relate",
    "merge",
    "split",
    "tag",
    "runs.judge",
    "runs.evaluate",
    "schemas.register",
    "schemas.add_pack",
}
"""Verbs that return a report, of which one is enough."""
RETURNED = sorted(
    {*(verb.name for verb in verbs().values() if verb.declaration.path), "admit", "newly_stale", "training.export"}
    - WRITES
)
"""Verbs of the library with an address, and what else returns records."""


def form_for(verb: str) -> AnswerForm:
    """Return what the answers of a verb look like."""
    known = verbs().get(verb)
    return codec.answer_of(known) if known is not None else AnswerForm(kind_of(verb), "", at_moment=False)


def kind_of(verb: str) -> Any:
    """Return the type of what a verb returns."""
    beside = {"newly_stale": Newly, "admit": woodrat.Report}
    return beside[verb] if verb in beside else returned(verbs()[verb])


def has_own_form(kind: Any) -> bool:
    """Return whether a class writes and reads itself."""
    return isinstance(kind, type) and hasattr(kind, "from_json")


def inside(kind: Any) -> Iterator[Any]:
    """Yield the record classes that a type is made of."""
    todo, seen = [kind], set[Any]()
    while todo:
        kind = todo.pop()
        if kind in seen or kind is ... or isinstance(kind, str):
            continue
        seen.add(kind)
        todo += get_args(kind)
        if hasattr(kind, "__supertype__"):
            todo.append(kind.__supertype__)
        if has_own_form(kind):
            yield kind
        elif is_record(kind):
            yield kind
            todo += kinds_of(kind)
            todo += types_of(kind).values()


RECORDS = sorted({kind for verb in RETURNED for kind in inside(kind_of(verb))}, key=lambda kind: str(kind))
LEAVES = [kind for kind in RECORDS if not kinds_of(kind)]


def told(kind: Any, value: Any) -> Any:
    """Return a value after it has travelled as JSON."""
    return codec.read(kind, json.loads(json.dumps(codec.write(kind, value))))


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ledger]:
    """A ledger after every verb has been told, with keys and runs."""
    folder: Path = tmp_path_factory.mktemp("whole")
    woodrat.init(folder / "keys")
    with woodrat.open(folder / "a.db", agent="a", keys=folder / "keys") as opened:
        for _ in tell(opened, opened.as_agent("b")):
            pass
        opened.store({"entity_type": "loan", "id": "42", "creditScore": 580, "income": 10})
        rules = [
            {"chosen": "rejected", "when": {"creditScore": {"lt": 600}}, "label": "Marginal credit"},
            {"chosen": "approved", "when": {"creditScore": {"gte": 700}}},
        ]
        for score in (580, 580, 720):
            opened.correct("loan/42", {"creditScore": score})
            with opened.run("Approve #42?", subject="loan/42", inputs={"application": 42}) as run:
                loan = run.show("loan/42")
                run.tool("bureau", lambda number: {"score": number, "many": list(range(500))}, 580)
                run.model("small-1", response="no", messages=[{"role": "user"}], usage={"input": 3, "output": 1})
                run.note("checked", {"by": "rule"})
                verdict = run.decide("risk", loan, rules, default="review")
                run.store({"entity_type": "loan", "id": "42", "status": verdict.chosen})
                run.answer({"said": verdict.chosen})
            opened.runs.judge(run.id, "good", preferred="yes", score=0.5)
        opened.store({"entity_type": "loan", "id": "42", "creditScore": 100}, priority=9)
        yield opened


def collect(ledger: Ledger, elements: Iterable[str]) -> None:
    """Put elements into a collection."""
    ledger.schemas.register({"title": "bag", "properties": {"of": {"type": "array", "x-woodrat-merge": "union"}}})
    ledger.store({"entity_type": "bag", "id": "1", "of": list(elements)})


def answers(ledger: Ledger) -> dict[str, Any]:
    """Return what every verb says."""
    first, second, *_ = [record.id for record in ledger.runs.list().items]
    said = next(item.observation.id for item in ledger.observations("loan/42"))
    readings = [reading.id for reading in ledger.interpretations.list()]
    note = ledger.proofs.checkpoint().note
    ledger.store({"entity_type": "loan", "id": "43"})
    collect(ledger, "abc")
    flip: dict[str, Any] = {"what": "loan/42", "when": {"creditScore": {"gte": 600}}}
    return {
        "show": ledger.show("thing/1"),
        "elements": ledger.elements("bag/1", "of", limit=2),
        "search": ledger.search("ana"),
        "query": ledger.query(limit=3),
        "duplicates": ledger.duplicates(),
        "observations": ledger.observations(),
        "history": ledger.history("contact/Ana Rivera"),
        "timeline": ledger.timeline(),
        "blame": ledger.blame("thing/1"),
        "conflicts": ledger.conflicts(),
        "diff": ledger.diff(3, "now"),
        "diff_against": ledger.diff_against([]),
        "fingerprint": ledger.fingerprint(),
        "log.entries": ledger.log.entries(),
        "runs.import_": ledger.runs.import_({"query": "?", "answer": "x"}),
        "schemas.infer": ledger.schemas.infer("loan"),
        "related": ledger.related("contact/Ana Rivera", depth=2),
        "schemas.show": ledger.schemas.show("thing"),
        "schemas.list": ledger.schemas.list(),
        "sources.list": ledger.sources.list(),
        "interpretations.list": ledger.interpretations.list(),
        "interpretations.show": ledger.interpretations.show(readings[0]),
        "interpretations.diff": ledger.interpretations.diff(readings[0], readings[-1]),
        "runs.list": ledger.runs.list(),
        "runs.show": ledger.runs.show(first),
        "runs.steps": ledger.runs.steps(first, skip=1),
        "runs.diff": ledger.runs.diff(first, second),
        "runs.group": ledger.runs.group(query="Approve #42?"),
        "why": ledger.why("loan/42"),
        "recall": ledger.recall("Approve #42?", k=2, threshold=0.1),
        "lineage": ledger.lineage(first),
        "impact": ledger.impact(said),
        "stale": ledger.stale(same=True),
        "newly_stale": newly_stale(ledger, -1),
        "values": ledger.values(),
        "ids": ledger.ids(said[:9]),
        "what_if": ledger.what_if(sweep="loan/42#creditScore=500..700:50", same=True),
        "bisect": ledger.bisect(**flip, first=True),
        "reduce": ledger.reduce("loan/42", exists=True),
        "overview": ledger.overview(days=2),
        "verify": ledger.verify(),
        "proofs.checkpoint": ledger.proofs.checkpoint(),
        "proofs.checkpoints": ledger.proofs.checkpoints(),
        "proofs.prove": ledger.proofs.prove(said),
        "proofs.prove_consistency": ledger.proofs.prove_consistency(note),
        "prove_order": ledger.prove_order(shuffles=2),
        "proofs.capsule": ledger.proofs.capsule(first),
        "rebuild": ledger.rebuild(),
        "reindex": ledger.reindex(),
        "erase": ledger.erase("loan/43", reason="asked", dry_run=True),
        "erase_again": ledger.erase_again(),
        "finish_erasure": ledger.finish_erasure(),
        "admit": ledger.admit([]),
        "remember": ledger.remember("Ana prefers calls before noon", about="contact/Ana Rivera"),
        "training.export": ledger.training.export("kto", out=BytesIO()),
    }


def test_what_a_verb_returns_comes_back_the_same(ledger: Ledger) -> None:
    """The answer of every verb is equal after it travelled, says the same JSON, and has the same representation."""
    found = answers(ledger)
    assert sorted(found) == RETURNED
    for verb, value in found.items():
        answer = form_for(verb)
        again = answer.read(json.loads(json.dumps(answer.write(value, lambda: 7))))
        assert again == value, verb
        assert type(again) is type(value)
        assert repr(again) == repr(value), verb
        if hasattr(value, "to_json"):
            assert again.to_json() == value.to_json(), verb
    assert (
        told(returned(verbs()["proofs.capsule"]), found["proofs.capsule"]).to_bytes()
        == found["proofs.capsule"].to_bytes()
    )
    assert told(returned(verbs()["reduce"]), found["reduce"]).to_bytes() == found["reduce"].to_bytes()


def test_answers_have_one_shape() -> None:
    """A record is its own object, a list is `items`, a plain value has the name of its verb; both have a position."""
    named = {name: codec.answer_of(verb).name for name, verb in verbs().items() if verb.declaration.path}
    assert {name for name, under in named.items() if under not in ("", "items")} == {"fingerprint"}
    assert codec.answer_of(verbs()["fingerprint"]).write("abc", lambda: 7) == {"fingerprint": "abc", "position": 7}
    assert codec.answer_of(verbs()["runs.import_"]).write(("run_1",), lambda: 7) == {"items": ["run_1"]}
    assert codec.answer_of(verbs()["values"]).write({}, lambda: 7) == {}


def test_a_large_collection_travels_whole() -> None:
    """What the JSON of a snapshot shortens is all there for whoever asks for it whole."""
    ledger = woodrat.open(":memory:")
    collect(ledger, (f"e{number:04}" for number in range(1_200)))
    here = {"show": ledger.show("bag/1"), "query": ledger.query(), "search": ledger.search("1", entity_type="bag")}
    holding = {name for name, verb in verbs().items() if {Snapshot, Hit} & {*get_args(returned(verb)), returned(verb)}}
    assert holding == here.keys()
    for verb, value in here.items():
        answer = codec.answer_of(verbs()[verb])
        assert answer.has_details, verb
        short = answer.write(value, lambda: 0, details=False)
        assert '"of": 1200' in json.dumps(short), verb
        whole = json.loads(json.dumps(answer.write(value, lambda: 0)))
        assert '"of": 1200' not in json.dumps(whole), verb
        assert answer.read(whole) == value
    found = ledger.show("bag/1")
    assert plain([found])[0]["fields"] == found.fields, "and on its way to the server"


def test_every_record_of_the_front_door_travels() -> None:
    """What `woodrat` exports as a record has a whole form, apart from what only a ledger that is here makes."""
    here = {"Backup", "Copied", "ExportedLog", "Imported", "Synced", "Replayed", "Resumed", "Call", "Rule", "Fact"}
    exported = {name: getattr(woodrat, name) for name in woodrat.__all__}
    records = {name for name, kind in exported.items() if isinstance(kind, type) and is_record(kind)}
    travelling = {kind.__name__ for kind in RECORDS}
    assert records - here - {"Fault", "Merge", "Verdict"} <= travelling
    assert form_of(woodrat.Verdict) is not None


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | st.floats(-9, 9) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=3,
)


def values(kind: Any) -> st.SearchStrategy[Any]:
    """Return values of a type."""
    plain = {
        str: st.text(max_size=5),
        int: st.integers(-(2**53) + 1, 2**53 - 1),
        bool: st.booleans(),
        float: st.floats(allow_nan=False, allow_infinity=False, width=32),
        type(None): st.none(),
        Any: JSON,
        object: JSON,
        bytes: st.binary(max_size=5),
        Ref: st.just(Ref("contact", "Ana / Rivera")),
    }
    if kind is Hex:
        return st.binary(min_size=32, max_size=32)
    if kind in plain:
        return plain[kind]
    if kind in SAMPLES:
        return st.sampled_from(SAMPLES[kind])
    if kind is woodrat.Rule:  # what no facts could answer is no rule
        wanted = JSON.map(lambda value: {"eq": value}) | st.booleans().map(lambda there: {"exists": there})
        names = st.text(st.characters(exclude_characters="\0", codec="utf-8"), max_size=3)
        when = st.dictionaries(names, wanted, min_size=1, max_size=2)
        return st.builds(woodrat.Rule, JSON, when, st.none() | st.text(max_size=5))
    if hasattr(kind, "__supertype__"):
        return values(kind.__supertype__)
    origin, args = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return st.one_of(*map(values, args))
    if origin is tuple and args[-1] is ...:
        return st.lists(values(args[0]), max_size=2).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values, args))
    if origin in (dict, Mapping):
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    if origin is Page:
        return st.builds(Page, st.lists(values(args[0]), max_size=2).map(tuple), st.none() | st.text())
    kinds = kinds_of(kind)
    if kinds:
        return st.one_of(*map(values, kinds))
    fields = types_of(kind)
    if any(kind in inside(field) for field in fields.values()):  # a tree: its branches are cut short
        fields = {name: tuple[()] if kind in inside(field) else field for name, field in fields.items()}
    return st.builds(kind, **{name: st.just(()) if f == tuple[()] else values(f) for name, f in fields.items()})


SAMPLES: dict[Any, list[Any]] = {}
"""Real ones of the classes that are more than their fields."""


@pytest.mark.parametrize("kind", LEAVES, ids=lambda kind: f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}")
def test_any_record_comes_back_the_same(ledger: Ledger, kind: Any) -> None:
    """Whatever the fields of a record hold, `read(write(record)) == record`, and its JSON says so."""
    if not SAMPLES:
        choice = Choice(
            rules=(woodrat.Rule("no", {"score": {"lt": 600}}),),
            chosen="no",
            reads={"score": FieldRead(Ref("loan", "42"), "creditScore")},
            facts={"late": True},
            stage="risk",
        )
        stored = ledger.observations()
        SAMPLES[woodrat.Snapshot] = [ledger.show("thing/1")]
        SAMPLES[Schema] = [ledger.schemas.show("thing"), OPEN("note")]
        SAMPLES[Stored] = list(stored)
        SAMPLES[Observation] = [item.observation for item in stored]
        SAMPLES[Entry] = list(ledger.log.entries())
        # What is made of so many records is slow to draw; those it is made of are drawn by themselves.
        SAMPLES[Margin] = [made.margin for run in ledger.runs.list() for made in ledger.runs.show(run.id).decisions]
        SAMPLES[Predicate] = [ledger.reduce("loan/42", exists=True).predicate, Predicate((), choice)]

    @given(values(kind))
    @settings(max_examples=25, deadline=None, database=None)
    def holds(record: Any) -> None:
        assert told(kind, record) == record

    holds()


def test_no_two_records_that_travel_have_one_name() -> None:
    """Components of the OpenAPI document are named after their classes: of two with one name, one would be lost."""
    names = [kind.__name__ for kind in RECORDS]
    assert sorted(names) == sorted(set(names))


def test_an_answer_of_another_version_is_said_to_be_one() -> None:
    """A field that is not known is passed over; one that is missing is told of, and not made up."""
    lineage = codec.answer_of(verbs()["lineage"])
    tree = lineage.kind("source", "src_1", "a source", {}, (), (), (), 0, None, 0, None, 1)
    node = lineage.write(tree, lambda: 0)
    assert lineage.read({**node, "later": 1}).id == "src_1"
    with pytest.raises(woodrat.Unavailable, match="same version"):
        lineage.read({"kind": "source"})
    with pytest.raises(woodrat.Unavailable, match="same version"):
        codec.answer_of(verbs()["fingerprint"]).read(["no object"])


def test_the_schema_of_a_record_describes_its_json(ledger: Ledger) -> None:
    """What every verb returns fits the JSON Schema of its type; records are components, each under one name."""
    written = answers(ledger)
    for verb, value in written.items():
        (schema,), components = schemas(kind_of(verb))
        validator = jsonschema_rs.Draft202012Validator({**schema, "components": {"schemas": components}})
        validator.validate(codec.write(kind_of(verb), value))
    (schema,), components = schemas(Stored)
    assert components["Stored"]["required"][:2] == ["position", "id"]
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": {"schemas": components}})
    for item in ledger.observations():
        validator.validate(item.to_json())
        assert not validator.is_valid(item.observation.to_json()), "the position is missing"
    (schema,), components = schemas(Entry)
    validator = jsonschema_rs.Draft202012Validator({**schema, "components": {"schemas": components}})
    for entry in ledger.log.entries():
        validator.validate(entry.to_json())


def test_an_observation_that_is_another_than_its_id_says_is_refused(ledger: Ledger) -> None:
    """An observation and a schema whose contents were changed on the way are not taken for what their ids name."""
    told = ledger.observations().items[0].to_json()
    with pytest.raises(woodrat.Unavailable, match="the body of obs_"):
        codec.read(Stored, {**told, "agent": "somebody else"})
    schema = ledger.schemas.show("thing").to_json()
    with pytest.raises(woodrat.Unavailable, match="the body of sch_"):
        codec.read(Schema, {**schema, "schema": {**schema["schema"], "title": "other"}})
    assert codec.read(Stored, {**told, "later": 1}) == ledger.observations().items[0]
