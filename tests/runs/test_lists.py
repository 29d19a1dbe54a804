"""Lists of runs by index: the same answers as reading every record, at every position of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.runs.story import at, write_entry

import woodrat
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.ledger.pages import make_cursor
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.runs import index as run_index
from woodrat.runs.index import listing
from woodrat.runs.index.terms import LISTS
from woodrat.runs.reader import why as why_reader
from woodrat.runs.reader.lists import ask_runs, matching, summaries
from woodrat.runs.reader.run_reader import open_runs
from woodrat.runs.summary import row_of, summary_of
from woodrat.testing.clock import FixedClock

RUNS = [f"run_{letter * 26}" for letter in "abcd"]
AGENTS = ["ann", "bob"]
WORDS = ["passed", "failed"]
REFS = ["pipeline/p", "pipeline/q"]
SESSIONS = ["agent_session/s", "agent_session/t"]
FILTERS: list[dict[str, str]] = [
    {},
    *({"agent": agent} for agent in AGENTS),
    *({"status": status} for status in ("done", "error", "interrupted", "running")),
    *({"verdict": word} for word in (*WORDS, "mixed")),
    *({"conversation": word} for word in ("c", "d")),
    *({"query": word} for word in ("q", "r")),
    *({"pipeline": ref} for ref in REFS),
    *({"session": ref} for ref in SESSIONS),
    *({"subject": ref} for ref in ("loan/1", "loan/2")),
    {"principal": "p"},
    {"since": at(3)},
    {"until": at(3)},
    {"since": at(2), "until": at(5)},
    {"agent": "ann", "status": "done"},
    {"verdict": "failed", "conversation": "c"},
    {"status": "interrupted", "since": at(2), "agent": "bob"},
]
"""What is asked."""

Act = tuple[str, dict[str, Any]]
"""What happens: a kind of entry with its body, or something done to entities."""


def _some(name: str, values: list[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(st.just({}), st.sampled_from(values).map(lambda value: {name: value}))


def _merged(*parts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for part in parts for name, value in part.items()}


_step = st.builds(
    _merged,
    st.sampled_from(RUNS).map(lambda run: {"run": run, "step": 1}),
    st.sampled_from(["1" * 16, "2" * 16]).map(lambda span: {"span": span}),
    st.one_of(st.just({}), st.integers(0, 7).map(lambda second: {"started_at": at(second)})),
    st.one_of(st.sampled_from(AGENTS).map(lambda agent: {"agent": agent}), st.just({})),
)
_start = st.builds(
    _merged,
    _step,
    _some("query", ["q", "r"]),
    _some("subject", ["loan/1", "loan/2", "no reference"]),
    _some("conversation", ["c", "d"]),
    _some("principal", ["p"]),
    _some("parent", [{"run": run, "span": "1" * 16} for run in RUNS]),
    _some("using", [{"pipeline": ref} for ref in REFS] + [{"agent_session": ref} for ref in SESSIONS]),
    _some("fallback", [["query"], ["query", "started_at"]]),
    _some("name", ["bob"]),
)


def _reading(entity: str) -> dict[str, Any]:
    """Return what a decision says that was made on a value read from an entity."""
    origin = {"kind": "read", "entity": entity, "field": "score", "observations": [], "position": 0}
    made = {"stage": "risk", "mode": "decide", "chosen": "no", "default": True, "rules": []}
    return {**made, "facts": {"score": 1}, "facts_origin": {"score": origin}}


_acts: st.SearchStrategy[Act] = st.one_of(
    *[
        st.builds(_merged, _step, st.sampled_from(["loan/1", "loan/2", "no reference"]).map(_reading)).map(
            lambda body: ("run.decided", body)
        )
    ]
    * 2,
    st.just(("join", {})),
    _start.map(lambda body: ("run.started", body)),
    _start.map(lambda body: ("run.started", body)),
    st.builds(_merged, _step, _some("status", ["done", "error"])).map(lambda body: ("run.ended", body)),
    st.builds(
        _merged,
        _step,
        st.sampled_from(WORDS).map(lambda word: {"verdict": word}),
        _some("evaluation", ["evaluation/1"]),
        _some("about", ["1" * 16]),
    ).map(lambda body: ("run.judged", body)),
    st.builds(
        _merged, _step, st.sampled_from(["q", "r"]).map(lambda word: {"messages": [{"role": "user", "content": word}]})
    ).map(lambda body: ("run.model", body)),
    st.builds(
        _merged,
        st.sampled_from(["1", "2"]).map(lambda id: {"id": id}),
        _some("subject", RUNS),
        _some("verdict", WORDS),
    ).map(lambda said: ("evaluate", said)),
    st.sampled_from(["1", "2"]).map(lambda id: ("retract", {"id": id})),
    st.sampled_from(["1", "2"]).map(lambda id: ("delete", {"id": id})),
    st.just(("merge", {})),
    st.just(("split", {})),
    st.sampled_from(["1", "2"]).map(lambda version: ("schema", {"version": version})),
    _some("runs", [RUNS[:2]]).map(lambda said: ("session", said)),
)


def act(ledger: woodrat.Ledger, kind: str, said: dict[str, Any]) -> None:
    """Do what happens; what the ledger refuses does not happen."""
    try:
        if kind.startswith("run."):
            write_entry(ledger, kind, said)
        elif kind == "evaluate":
            ledger.store({"entity_type": "evaluation", **said})
        elif kind == "retract":
            ledger.retract(ledger.observations(f"evaluation/{said['id']}").items[-1].observation.id)
        elif kind == "delete":
            ledger.delete(f"evaluation/{said['id']}")
        elif kind == "merge":
            ledger.merge("evaluation/1", "evaluation/2")
        elif kind == "join":
            ledger.store([{"entity_type": "loan", "id": "1"}, {"entity_type": "loan", "id": "2"}])
            ledger.merge("loan/1", "loan/2")
        elif kind == "split":
            ledger.split("evaluation/1", "evaluation/2")
        elif kind == "schema":
            policy = "min" if said["version"] == "1" else "latest"
            fields = {"verdict": {"type": "string", "x-woodrat-merge": policy}}
            ledger.schemas.register({"type": "object", "properties": fields}, entity_type="evaluation")
        else:
            ledger.store({"entity_type": "agent_session", "id": "s", "conversation": "c", **said})
    except (woodrat.Refused, woodrat.NotFound, woodrat.Outdated):
        pass


def opened() -> woodrat.Ledger:
    """Return an empty ledger."""
    clock = FixedClock("2026-01-09T09:00:00.000000Z")
    return woodrat.Ledger(InMemoryEngine(), tenant="t", agent="ann", clock=clock, policies=registry(()))


def lists(ledger: woodrat.Past, position: int) -> list[list[str]]:
    """Return what every question finds at a position."""
    found: list[list[str]] = []
    with open_runs(ledger.context, position) as run_reader:
        for filters in FILTERS:
            records = matching(run_reader, ask_runs(**filters))
            found.append([record.id for _, record in records])
            records = matching(run_reader, ask_runs(**filters), oldest_first=True)
            assert [record.id for _, record in records] == found[-1][::-1], filters
            read = {record.id: summary_of(record) for _, record in matching(run_reader, ask_runs(**filters))}
            listed = [summary for _, summary in summaries(run_reader, ask_runs(**filters), None, 2)]
            assert listed == [read[id] for id in found[-1]], "a line says what the record does"
    return found


def read(ledger: woodrat.Past, position: int) -> list[list[str]]:
    """Return what every question finds at a position when every record is read."""
    with open_runs(ledger.context, position) as run_reader:
        asked = [ask_runs(**filters) for filters in FILTERS]
        return [list(dict.fromkeys(found.id for _, found in matching(run_reader, one, only=RUNS))) for one in asked]


def decided(ledger: woodrat.Past, position: int) -> None:
    """Check that what was decided about a subject is what all records say."""
    with open_runs(ledger.context, position) as run_reader:
        records = [run_reader.bare(id) for id in RUNS]
        for ref in ("loan/1", "loan/2", "loan/3"):
            names = {str(member) for member in run_reader.members(ref)}
            expected = sorted(
                ((made.started_at or "", made.position), record.id, made)
                for record in records
                for made in record.decisions
                if record.subject in names or names.intersection(made.entities)
            )
            found = list(why_reader._decided_about(run_reader, ref, None, 2))
            assert [(one.place, one.run) for one in found] == [item[:2] for item in expected[::-1]], position
            for number, one in enumerate(found):
                assert list(why_reader._decided_about(run_reader, ref, one.place, 1)) == found[number + 1 :]
            for one, (_, id, made) in zip(found, expected[::-1], strict=True):
                record = run_reader.record(id)
                about = {name: getattr(record, name) for name in one.about}
                assert (one.decision, one.about) == (made, about), "a line says what the record does"


def agree(acts: list[Act]) -> None:
    """Check that what the index finds is what the records say, at every position, as written and as rebuilt."""
    ledger = opened()
    for kind, said in acts:
        act(ledger, kind, said)
    for _ in range(2):
        for position in range(ledger.position + 1):
            assert lists(ledger.at(position), position) == read(ledger.at(position), position), position
            decided(ledger.at(position), position)
        report = ledger.verify(deep=True)
        assert report.sound, report
        ledger.rebuild()


@settings(max_examples=15, deadline=None, phases=[Phase.generate, Phase.shrink])
@given(acts=st.lists(_acts, min_size=1, max_size=14))
def test_the_index_lists_what_the_records_say(acts: list[Act]) -> None:
    """Every list at every position is what reading all records gives."""
    agree(acts)


@pytest.mark.parametrize("term", [b"list/status/done", b"list/line/"])
@pytest.mark.parametrize("fault", ["left out", "added", "ended", "ended later", "begun too early", "another value"])
def test_verify_finds_rows_that_the_log_does_not_ask_for(fault: str, term: bytes) -> None:
    """A row of a list that is missing, one too many, or not true from where to where it should be is damage."""
    ledger = opened()
    for kind, said in STORY[:10]:
        act(ledger, kind, said)
    assert ledger.verify(deep=True).sound
    name, context = LISTS, ledger.context
    with context.engine.transaction(context.tenant) as write:
        if fault == "ended later" and b"done" in term:
            term = b"list/status/interrupted"
        row = next(row for row in write.lives(name, term) if row.until or fault != "ended later")
        other = row._replace(key=row.key[:-9] + b"x" + row.key[-9:])
        if fault == "added":
            write.put([other])
        else:
            write.drop(name, row.key)
            changed = {
                "ended": row._replace(until=row.since + 1),
                "ended later": row._replace(until=(row.until or 0) + 1),
                "begun too early": row._replace(since=row.since - 1),
                "another value": row._replace(value=b"run_other"),
            }
            write.put([changed[fault]] if fault in changed else [])
    assert not ledger.verify(deep=True).sound


def test_the_terms_of_lists_spell_no_values() -> None:
    """What a run was asked, by whom and in which conversation is found by digest; only its line says it."""
    ledger = opened()
    said = {"query": "Where does Zoe live?", "conversation": "Zoe", "principal": "Zoe", "subject": "person/Zoe"}
    write_entry(ledger, "run.started", _body(RUNS[0], 1, **said))
    write_entry(ledger, "run.judged", _body(RUNS[0], 2, verdict="kind to Zoe"))
    write_entry(ledger, "run.ended", _body(RUNS[0], 3, status="done", answer="With Zoe."))
    (run,) = ledger.runs.list(conversation="Zoe", verdict="kind to Zoe").items
    assert (run.id, run.answer) == (RUNS[0], "With Zoe.")
    with ledger.context.engine.view(ledger.context.tenant) as view:
        rows = view.lives(LISTS)
    assert len(rows) > 5
    assert [row.key.partition(b"/run_")[0] for row in rows if b"Zoe" in row.key + row.value] == [b"list/line"]


def test_a_list_cuts_what_is_long() -> None:
    """Of a long answer a list has a preview and says so; a run that goes on is listed with those that ended."""
    ledger = opened()
    for number, run in enumerate(RUNS):
        write_entry(ledger, "run.started", _body(run, 1, query=f"question {number}"))
        write_entry(ledger, "run.ended", _body(run, 2, status="done", answer="x" * (3_000 if number else 3)))
    listed = ledger.runs.list().items
    assert [run.cut for run in listed] == [("answer",)] * 3 + [()]
    assert all(len(str(run.answer)) < 1_000 for run in listed), "of a long answer there is a preview"
    write_entry(ledger, "run.started", _body("run_" + "e" * 26, 3))
    assert [run.status for run in ledger.runs.list().items] == ["interrupted", *["done"] * 4]


def test_what_was_erased_is_in_no_line(tmp_path: Path) -> None:
    """Of a run that quoted a person, nothing of them is left in the rows of lists, and the rows are sound."""
    make_keys(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "a.db", agent="ann", keys=tmp_path / "keys") as ledger:
        ledger.store([{"entity_type": "loan", "id": str(number), "score": number} for number in range(300)])
        ledger.store({"entity_type": "loan", "id": "zoe", "owner": "Zoe Zweigmann"})
        for number in (1, 2):
            with ledger.run("Who is it?", subject=f"loan/{number}") as run:
                run.show("loan/zoe" if number == 1 else "loan/2")
                run.answer("Zoe Zweigmann" if number == 1 else "nobody")
        assert [run.answer for run in ledger.runs.list().items] == ["nobody", "Zoe Zweigmann"]
        ledger.erase("loan/zoe", reason="a request")
        context = ledger.context
        for _ in range(2):
            with context.engine.view(context.tenant) as view:
                assert not [row for row in view.lives(LISTS) if b"Zweigmann" in row.value]
            listed = ledger.runs.list().items
            assert listed[0].answer == "nobody"
            assert [run.answer for run in listed] == [ledger.runs.show(run.id).answer for run in listed]
        assert ledger.verify(deep=True).sound


def test_a_forged_cursor_is_refused_or_finds_nothing() -> None:
    """A place that no list of runs returns is refused; one that no run has leads to what is before it."""
    ledger = opened()
    write_entry(ledger, "run.started", _body(RUNS[0], 1))
    names = ("pipeline", "session", "since", "subject", "until")
    question = woodrat.canon.form.serialise(["runs", *([name, None] for name in names), None])
    for place in (["a"], [1, 2], []):
        with pytest.raises(woodrat.Refused, match="cursor"):
            ledger.runs.list(cursor=make_cursor(question, [0, None, *place]))
    for number, count in ((1 << 52, 1), (-5, 0), (0, 0)):
        assert len(ledger.runs.list(cursor=make_cursor(question, [0, None, number])).items) == count


# Planted faults


def _body(run: str, second: int, agent: str = "ann", **said: Any) -> dict[str, Any]:
    return {"run": run, "step": second, "span": f"{second:016x}", "agent": agent, "started_at": at(second), **said}


STORY: list[Act] = [
    ("run.started", _body(RUNS[1], 1, parent={"run": RUNS[0], "span": "1" * 16}, conversation="c")),
    ("run.started", _body(RUNS[0], 2, using={"pipeline": "pipeline/p"}, subject="loan/1")),
    ("run.ended", _body(RUNS[0], 4, status="done")),
    ("run.judged", _body(RUNS[0], 5, "bob", verdict="failed")),
    ("run.started", _body(RUNS[2], 3, fallback=["query"])),
    ("run.model", _body(RUNS[2], 4, messages=[{"role": "user", "content": "q"}])),
    ("evaluate", {"id": "1", "subject": RUNS[1], "verdict": "passed"}),
    ("evaluate", {"id": "2", "subject": RUNS[2], "verdict": "failed"}),
    ("merge", {}),
    ("split", {}),
    ("run.started", _body(RUNS[0], 1, "aaa", subject="loan/2")),
    ("delete", {"id": "1"}),
    ("session", {"runs": RUNS[:1]}),
    ("run.decided", _body(RUNS[0], 7, **_reading("loan/2"))),
    ("run.decided", _body(RUNS[3], 8, **_reading("loan/1"))),
    ("run.started", _body(RUNS[3], 6, subject="loan/2")),
    ("join", {}),
    ("run.ended", _body(RUNS[3], 9, status="done", answer="The owner is Zoe Zweigmann.")),
    ("run.decided", _body(RUNS[3], 10, **_reading("loan/1"))),
    ("run.model", _body(RUNS[3], 11, messages=[], usage={"input": 3, "output": 1})),
]
"""A history in which every part of a listing changes."""


def test_the_story_holds() -> None:
    """Without a fault, the index and the records agree about a history in which every part changes."""
    agree(STORY)


def _deaf(kind: str) -> Any:
    """Return what does not hear of one kind of entry."""
    hear = listing.Changes.touched_by
    return lambda self, entry: () if entry.kind == kind else hear(self, entry)


def _without(term: str) -> Any:
    """Return what does not list runs under some terms."""
    rows = listing.Changes.rows
    return lambda self, id, position: {row for row in rows(self, id, position) if not row[0].startswith(term)}


@pytest.mark.parametrize(
    ("name", "fault"),
    [
        ("touched_by", _deaf("run.ended")),
        ("touched_by", _deaf("run.judged")),
        ("touched_by", _deaf("run.decided")),
        ("_line", lambda self, id, position, judgements: row_of(id, self._told[id], judgements)),
        ("touched_by", _deaf("observation")),
        ("_below", lambda self, run, position: []),
        ("subjects", lambda self, refs, position: set()),
        *(
            ("rows", _without(f"list/{name}"))
            for name in ("every", "began", "status/", "unsettled/query", "agent/", "verdict/", "pipeline/", "talk/")
        ),
    ],
)
def test_a_planted_fault_is_caught(name: str, fault: Any) -> None:
    """An index that leaves something out is told from the records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(listing.Changes, name, fault)
        with pytest.raises(AssertionError):
            agree(STORY)


def test_decisions_by_subject_that_are_left_out_are_missed() -> None:
    """An index that does not list decisions by the subject of their run is told from the records."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run_index, "follow", lambda *given: ())
        with pytest.raises(AssertionError):
            agree(STORY)


def test_lists_after_an_erasure_are_what_the_records_say(tmp_path: Path) -> None:
    """Once a person and the runs about them are erased, lists of every moment are those of what is left."""
    make_keys(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "a.db", agent="ann", keys=tmp_path / "keys") as ledger:
        ledger.store({"entity_type": "loan", "id": "1", "owner": "Zoe Zweigmann"})
        for kind, said in STORY:
            act(ledger, kind, said)
        assert [record.id for record in ledger.runs.list(status="error").items] == []
        ledger.erase("loan/1", reason="a request")
        for _ in range(2):
            for position in range(ledger.position + 1):
                past = ledger.at(position)
                assert lists(past, position) == read(past, position)
                decided(past, position)
            ledger.rebuild()
        assert ledger.verify(deep=True).sound
