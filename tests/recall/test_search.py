"""Searching: identifiers, similarity, threshold, in this order; the same with numpy and without."""

from __future__ import annotations

from array import array
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.recall import score as recall_score
from woodrat.recall import vectors
from woodrat.recall.identifiers import Identifier
from woodrat.recall.passage_index import DECISIONS_MAX, PassageIndex, PassageRow, unpack_row
from woodrat.recall.passages import ANSWERED, ASKED, DECIDED, RECALLED
from woodrat.recall.search import REJECTED_MAX, Matches, Question, search

DIMENSION = 4


def vector(*values: int) -> bytes:
    """Return a packed vector."""
    return array("b", values).tobytes()


def item(run: str, kind: str, *values: int, **further: Any) -> PassageRow:
    """Return an item of a run."""
    packed = vector(*values) if values else b""
    return PassageRow(run, kind, packed, vectors.square(packed), **{"names": (), "pairs": (), **further})


def index_of(*items: PassageRow) -> PassageIndex:
    """Return an index with these items at positions 0, 1, 2 …"""
    found = PassageIndex(DIMENSION)
    for position, each in enumerate(items):
        found.add(position, each)
    found.position = len(items) - 1
    return found


def ask(index: PassageIndex, *values: int, **further: Any) -> Matches:
    """Search for a vector."""
    given: dict[str, Any] = {"identifiers": (), "k": 1, "threshold": 0.5, "through": index.position, **further}
    return search(index, Question(vector(*values), **given))


def runs(found: Matches) -> list[str]:
    """Return the runs that passed."""
    return [match.run for match in found.hits]


def reasons(found: Matches) -> dict[str, str | None]:
    """Return why others did not."""
    return {match.run: match.reason for match in found.rejected}


def test_the_nearest_run_comes_first_and_equal_ones_by_id() -> None:
    """Runs are ordered by the score of their nearest passage, and at equal scores by id."""
    index = index_of(
        item("run_c", ASKED, 1, 1, 0, 0),
        item("run_b", ASKED, 2, 0, 0, 0),
        item("run_a", ASKED, 1, 0, 0, 0),
        item("run_c", ANSWERED, 0, 9, 0, 0),
    )
    found = ask(index, 1, 0, 0, 0, k=9)
    assert runs(found) == ["run_a", "run_b", "run_c"]
    assert [match.score for match in found.hits] == [1.0, 1.0, 1 / 2**0.5]
    assert runs(ask(index, 0, 1, 0, 0)) == ["run_c"]
    assert ask(index, 0, 1, 0, 0).hits[0].passage == ANSWERED
    assert ask(index, 0, 1, 0, 0).hits[0].position == 3


def test_a_score_at_the_threshold_passes_and_none_below_does() -> None:
    """The threshold is the least score; what lies below is listed with its score and the reason."""
    index = index_of(item("run_a", ASKED, 1, 1, 0, 0))
    at = 1 / 2**0.5
    assert runs(ask(index, 1, 0, 0, 0, threshold=at)) == ["run_a"]
    found = ask(index, 1, 0, 0, 0, threshold=0.75)
    assert not found.hits
    assert [(match.score, match.reason) for match in found.rejected] == [(at, "its score is below the threshold 0.75")]


def test_the_past_is_a_beginning_of_the_index() -> None:
    """At an earlier position only what was there then is found, and as it was then."""
    index = index_of(
        item("run_a", ASKED, 1, 0, 0, 0),
        item("run_b", ASKED, 1, 0, 0, 0),
        item("run_b", DECIDED, 1, 0, 0, 0),
    )
    assert runs(ask(index, 1, 0, 0, 0, k=9)) == ["run_b", "run_a"]
    assert runs(ask(index, 1, 0, 0, 0, k=9, through=1)) == ["run_a", "run_b"]
    assert runs(ask(index, 1, 0, 0, 0, k=9, through=0)) == ["run_a"]
    assert runs(ask(index, 1, 0, 0, 0, k=9, through=-1)) == []


def test_a_run_counts_from_its_start() -> None:
    """Passages whose run has not begun, as an import may bring them, find nothing yet."""
    index = index_of(item("run_a", DECIDED, 1, 0, 0, 0), item("run_a", ASKED, 0, 1, 0, 0))
    assert runs(ask(index, 1, 0, 0, 0, through=0)) == []
    assert runs(ask(index, 1, 0, 0, 0)) == ["run_a"]


def test_runs_that_decided_come_before_all_others() -> None:
    """A run that decided is found before a nearer one that did not."""
    index = index_of(
        item("run_a", ASKED, 1, 1, 0, 0), item("run_a", DECIDED, 0, 0, 1, 0), item("run_b", ASKED, 1, 0, 0, 0)
    )
    assert runs(ask(index, 1, 0, 0, 0)) == ["run_a"]
    assert runs(ask(index, 1, 0, 0, 0, k=2)) == ["run_a", "run_b"]


def test_a_follow_up_question_is_never_found() -> None:
    """A run that answers from memory and decides nothing is not offered, marked or found out by its recall."""
    index = index_of(
        item("run_a", ASKED, 1, 0, 0, 0, recall=True),
        item("run_b", ASKED, 1, 0, 0, 0),
        item("run_b", RECALLED, runs=("run_x",)),
    )
    found = ask(index, 1, 0, 0, 0)
    assert not found.hits
    assert set(reasons(found).values()) == {"it answers from memory and decides nothing itself"}


def test_a_decision_is_not_displaced_by_one_that_answers_a_question_about_it() -> None:
    """A nearer run that decided comes later when it recalled a run that is found itself, and only then."""
    index = index_of(
        item("run_a", ASKED, 3, 1, 0, 0),
        item("run_a", DECIDED, 0, 0, 1, 0),
        item("run_b", ASKED, 1, 0, 0, 0),
        item("run_b", RECALLED, runs=("run_a", "run_gone")),
        item("run_b", DECIDED, 0, 0, 0, 1),
        item("run_c", ASKED, 1, 0, 0, 0, recall=True),
        item("run_c", DECIDED, 0, 0, 0, 1),
    )
    assert runs(ask(index, 1, 0, 0, 0, k=9)) == ["run_a", "run_b", "run_c"]
    assert runs(ask(index, 1, 0, 0, 0)) == ["run_a"]
    # What run_b decided is not about run_a: asked for that, run_a is not found and run_b is.
    assert runs(ask(index, 0, 0, 0, 1)) == ["run_b"]


def test_the_run_that_asks_is_not_its_own_answer() -> None:
    """Runs that ask are neither found nor listed."""
    index = index_of(item("run_a", ASKED, 1, 0, 0, 0))
    assert ask(index, 1, 0, 0, 0, without=frozenset({"run_a"})) == Matches((), ())


def test_a_scope_hides_everything_outside_of_it() -> None:
    """Runs of another principal or conversation are neither found nor listed among the rejected."""
    index = index_of(
        item("run_a", ASKED, 1, 0, 0, 0, principal="ann", conversation="one"),
        item("run_b", ASKED, 1, 0, 0, 0, principal="bob", conversation="one"),
        item("run_c", ASKED, 1, 0, 0, 0),
    )
    assert runs(ask(index, 1, 0, 0, 0, k=9)) == ["run_a", "run_b", "run_c"]
    assert runs(ask(index, 1, 0, 0, 0, k=9, principal="bob")) == ["run_b"]
    assert runs(ask(index, 1, 0, 0, 0, k=9, conversation="one")) == ["run_a", "run_b"]
    assert runs(ask(index, 1, 0, 0, 0, k=9, principal="ann", conversation="one")) == ["run_a"]
    assert ask(index, 0, 0, 0, 1, k=9, conversation="two") == Matches((), ())
    assert list(reasons(ask(index, 0, 0, 0, 1, principal="ann"))) == ["run_a"]


def test_what_is_too_old_is_not_found() -> None:
    """A run that began before the moment given is listed as older than the ttl."""
    index = index_of(
        item("run_a", ASKED, 1, 0, 0, 0, started_at="2026-01-05T09:00:00.000000Z"),
        item("run_b", ASKED, 1, 0, 0, 0, started_at="2026-01-09T09:00:00.000000Z"),
        item("run_c", ASKED, 1, 0, 0, 0),
    )
    found = ask(index, 1, 0, 0, 0, k=9, since=1_767_776_400_000_000)
    assert runs(found) == ["run_b"]
    assert reasons(found) == dict.fromkeys(("run_a", "run_c"), "it is older than the ttl")


# The gate


def loan(number: int, *values: int, **further: Any) -> PassageRow:
    """Return what was asked about a loan."""
    names = (str(number),)
    pairs = (f"application {number}", f"loan {number}")
    return item(f"run_{number}", ASKED, *values, names=names, pairs=pairs, **further)


def named(*texts: str) -> tuple[Identifier, ...]:
    """Return identifiers from texts such as `application 42`."""
    return tuple(Identifier(text.split()[-1], " ".join(text.split()[:-1])) for text in texts)


def test_only_runs_that_speak_of_what_is_named_are_scored() -> None:
    """The nearest run is not found when it is about another number; nor is any when none is about this one."""
    index = index_of(loan(42, 1, 1, 0, 0), loan(43, 1, 0, 0, 0))
    assert runs(ask(index, 1, 0, 0, 0, k=9, identifiers=named("application 42"))) == ["run_42"]
    assert runs(ask(index, 1, 0, 0, 0, k=9, identifiers=named("42"))) == ["run_42"]
    found = ask(index, 1, 0, 0, 0, k=9, identifiers=named("application 44"))
    assert not found.hits
    assert reasons(found) == {
        "run_43": "it does not speak of application 44",
        "run_42": "it does not speak of application 44",
    }
    assert [match.score for match in found.rejected] == [1.0, 1 / 2**0.5]


def test_a_number_said_of_something_else_does_not_count() -> None:
    """A threshold of 600 is not application 600, but a score of 580 is a score of 580."""
    index = index_of(loan(42, 1, 0, 0, 0), item("run_42", DECIDED, 0, 1, 0, 0, pairs=("score 580", "threshold 600")))
    assert not ask(index, 1, 0, 0, 0, identifiers=named("application 600")).hits
    assert not ask(index, 1, 0, 0, 0, identifiers=named("600")).hits
    assert runs(ask(index, 1, 0, 0, 0, identifiers=named("score 580"))) == ["run_42"]
    assert not ask(index, 1, 0, 0, 0, identifiers=named("score 580"), through=0).hits


def test_another_number_after_the_same_word_contradicts() -> None:
    """A run about application 43 that names 42 as something else is not about application 42."""
    other = item("run_43", ASKED, 1, 0, 0, 0, names=("42", "43"), pairs=("application 43", "customer 42"))
    index = index_of(other)
    assert not ask(index, 1, 0, 0, 0, identifiers=named("application 42")).hits
    assert runs(ask(index, 1, 0, 0, 0, identifiers=named("customer 42"))) == ["run_43"]


def test_a_question_about_several_needs_all_or_compares() -> None:
    """Runs must speak of all that is named; where none does but each is spoken of, those that speak of any count."""
    index = index_of(
        loan(42, 1, 0, 0, 0),
        loan(43, 1, 0, 0, 0),
        item("run_both", ASKED, 1, 0, 0, 0, names=("42", "7"), pairs=("application 42", "customer 7")),
    )
    assert runs(ask(index, 1, 0, 0, 0, k=9, identifiers=named("application 42", "application 43"))) == [
        "run_42",
        "run_43",
        "run_both",
    ]
    assert runs(ask(index, 1, 0, 0, 0, k=9, identifiers=named("application 42", "customer 7"))) == ["run_both"]
    assert not ask(index, 1, 0, 0, 0, k=9, identifiers=named("application 42", "application 44")).hits


def test_follow_ups_do_not_open_the_gate() -> None:
    """That somebody asked about 44 does not make 44 known."""
    index = index_of(loan(42, 1, 0, 0, 0), loan(44, 1, 0, 0, 0, recall=True))
    assert not ask(index, 1, 0, 0, 0, k=9, identifiers=named("application 42", "application 44")).hits


# Growing


def test_an_index_takes_one_start_and_so_many_decisions() -> None:
    """A second start of a run and decisions beyond the limit are not wanted."""
    index = PassageIndex(DIMENSION)
    assert index.takes("run_a", ASKED, 0)
    assert not index.takes("run_a", ASKED, 1)
    index.add(0, item("run_a", ASKED, 1, 0, 0, 0))
    assert not index.takes("run_a", ASKED, 0)
    for position in range(1, DECISIONS_MAX):
        index.add(position, item("run_a", DECIDED, 1, 0, 0, 0))
    assert index.takes("run_a", DECIDED, 0)
    assert not index.takes("run_a", DECIDED, 1)
    assert index.takes("run_a", ANSWERED, 5)


def test_items_come_back_as_they_were_kept() -> None:
    """Packing and unpacking an item changes nothing."""
    whole = loan(42, 1, -2, 3, -128 + 1, principal="ann", conversation="één", recall=True, started_at="2026")
    for each in (whole, item("run_a", RECALLED, runs=("run_b",)), item("run_a", DECIDED, 0, 0, 0, 0)):
        assert unpack_row(each.pack()) == each


# numpy or not


def many(seed: int, size: int) -> PassageIndex:
    """Return an index of runs with few distinct vectors, so that scores tie often."""
    random = Random(seed)
    found = PassageIndex(DIMENSION)
    for position in range(size):
        run = f"run_{random.randrange(size // 2)}"
        kind = random.choice([ASKED, ASKED, DECIDED, ANSWERED, RECALLED])
        values = [] if kind == RECALLED else [random.randrange(-2, 3) for _ in range(DIMENSION)]
        further: dict[str, Any] = {"names": (str(random.randrange(3)),), "pairs": (f"loan {random.randrange(3)}",)}
        if kind == ASKED:
            further |= {"recall": random.random() < 0.2, "principal": random.choice(["ann", "bob", None])}
            further["started_at"] = f"2026-01-{random.randrange(1, 29):02}T00:00:00.000000Z"
        if kind == RECALLED:
            further["runs"] = tuple(f"run_{random.randrange(size // 2)}" for _ in range(2))
        if found.takes(run, kind, 0):
            found.add(position, item(run, kind, *values, **further))
    found.position = size
    return found


@given(st.integers(0, 10_000), st.data())
def test_numpy_changes_neither_scores_nor_order(seed: int, data: st.DataObject) -> None:
    """The same search gives the same answer, to the last bit, with numpy and without."""
    pytest.importorskip("numpy")
    index = many(seed, data.draw(st.integers(2, 400)))
    values = data.draw(st.lists(st.integers(-3, 3), min_size=DIMENSION, max_size=DIMENSION))
    asked: dict[str, Any] = {
        "k": data.draw(st.integers(1, 8)),
        "threshold": data.draw(st.sampled_from([-1.0, 0.0, 0.5, 0.9])),
        "through": data.draw(st.integers(-1, index.position)),
        "principal": data.draw(st.sampled_from([None, "ann"])),
        "since": data.draw(st.sampled_from([None, 1_768_000_000_000_000])),
        "identifiers": data.draw(st.sampled_from([(), named("loan 1"), named("2")])),
    }
    plain = ask(index, *values, **asked)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall_score, "NUMPY_FROM", 1)
        patch.setattr(recall_score, "FIRST_GROUP", 2)
        assert ask(index, *values, **asked) == plain


@given(st.integers(0, 10_000), st.lists(st.integers(-3, 3), min_size=DIMENSION, max_size=DIMENSION))
def test_the_answer_is_that_of_a_plain_walk(seed: int, values: list[int]) -> None:
    """What is found is what a walk over all runs finds that was written from the page."""
    index = many(seed, 120)
    threshold = 0.5
    best: dict[int, float] = {}
    wanted = array("b", values)
    for row in range(len(index)):
        if index.kinds[row] != 3:
            block, at = divmod(row, index.block_rows)
            stored = array("b", bytes(index.blocks[block][at * DIMENSION : (at + 1) * DIMENSION]))
            product = sum(one * other for one, other in zip(wanted, stored, strict=True))
            both = sum(one * one for one in wanted) * sum(one * one for one in stored)
            run = index.run_of[row]
            best[run] = max(best.get(run, -2.0), product / both**0.5 if both else 0.0)
    passing = {run for run, score in best.items() if score >= threshold}
    rows = len(index)
    began = {run for run in passing if index.started[run] < rows}
    decided = {run for run in began if index.decided[run] < rows}
    recalled = {run for run in range(len(index.ids)) if index.recalled[run] < rows}
    marked = {run for run in began if index.marked[run]}
    first = {run for run in decided if run in recalled or run not in marked}
    asking = {run for run in first if any(index.number.get(other) in first for _, other in index.recalls.get(run, ()))}
    order = [first - asking, asking | (decided - first), began - decided - recalled - marked]
    expected = [index.ids[run] for some in order for run in sorted(some, key=lambda run: (-best[run], index.ids[run]))]
    assert runs(ask(index, *values, k=100, threshold=threshold)) == expected[:100]


def test_follow_ups_do_not_crowd_out_what_came_near() -> None:
    """Among the rejected, runs that could have been hits come first, however near a follow-up question is."""
    follow_ups = [loan(number, 0, 1, 0, 0, recall=True) for number in range(10, 20)]
    index = index_of(loan(1, 1, 1, 0, 0), *follow_ups, loan(2, 1, 0, 0, 0))
    assert [match.run for match in ask(index, 0, 1, 0, 0, threshold=0.9).rejected] == [
        "run_1",
        "run_2",
        "run_10",
        "run_11",
        "run_12",
    ]


def test_at_most_so_many_rejected_are_listed() -> None:
    """An empty answer lists the nearest few."""
    index = index_of(*(loan(number, 1, 0, 0, 0) for number in range(20)))
    assert len(ask(index, 0, 1, 0, 0).rejected) == REJECTED_MAX
