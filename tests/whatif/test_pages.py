"""Pages of a what-if: all decisions are counted once, and a page that follows goes on where the one before ended."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.runs.story import write
from tests.whatif.test_verbs import RULES, decide, opened, store

import woodrat
from woodrat.canon import form
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger import entry_index
from woodrat.ledger.pages import make_cursor, page_request, read_cursor
from woodrat.whatif import verbs
from woodrat.whatif.reader.supposer import Supposer
from woodrat.whatif.result import WhatIf

SCORES = [580, 590, 610, 640, 650, 560, 630, 605]


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """A ledger on which loans were decided, one of them twice, one in a run that goes on late."""
    ledger = opened(InMemoryEngine())
    for number, score in enumerate(SCORES):
        store(ledger, number, creditScore=score)
    with ledger.run("Many", subject="loan/0") as run:
        for number in range(len(SCORES)):
            if number % 2:
                run.decide("risk", run.show(f"loan/{number}"), RULES, default="manual-review")
            else:
                decide(ledger, number)
    decided = [entry for entry in ledger.log.entries(limit=1_000) if entry.kind == "run.decided"]
    for entry in (decided[0], decided[3]):  # an import may say it twice
        write(ledger, [("run.decided", form.decode(entry.body or b""))])
    decide(ledger, 1)
    return ledger


SUPPOSED: list[dict[str, Any]] = [
    {"thresholds": {"risk.creditScore.lt": 645}},
    {"thresholds": {"risk.creditScore.lt": 645}, "same": True},
    {"set": {"creditScore": 100}, "stage": "risk"},
    {"sweep": "creditScore=600..640:10"},
    {"sweep": "creditScore=600..640:10", "same": True},
]


def pages(ledger: woodrat.Ledger, limit: int, **supposed: Any) -> Iterator[WhatIf]:
    """Yield all pages, each by the cursor of the one before."""
    page = ledger.what_if(**supposed, limit=limit)
    yield page
    while page.cursor is not None:
        page = ledger.what_if(**supposed, limit=limit, cursor=page.cursor)
        yield page


def check(ledger: woodrat.Ledger, limit: int, supposed: dict[str, Any]) -> None:
    """Fail where pages differ from the whole."""
    whole = ledger.what_if(**supposed, limit=1_000)
    assert whole.cursor is None
    listed = list(pages(ledger, limit, **supposed))
    assert [each for page in listed for each in page.decisions] == list(whole.decisions)
    assert all(len(page.decisions) == limit for page in listed[:-1])
    assert {page.sentence for page in listed} == {whole.sentence}
    assert {(page.same, page.flip, page.unknown, page.unaffected) for page in listed} == {
        (whole.same, whole.flip, whole.unknown, whole.unaffected)
    }
    assert [page.rows for page in listed] == [whole.rows, *[()] * (len(listed) - 1)]
    assert [page.notes for page in listed] == [whole.notes, *[()] * (len(listed) - 1)]


@pytest.mark.parametrize("limit", [1, 2, 3, 5])
@pytest.mark.parametrize("supposed", SUPPOSED, ids=str)
def test_pages_together_are_the_whole(ledger: woodrat.Ledger, limit: int, supposed: dict[str, Any]) -> None:
    """Whatever the length of a page, decisions are listed once and in order, and every page has the same counts."""
    check(ledger, limit, supposed)
    runs = [str(run.id) for run in ledger.runs.list().items]
    if "stage" not in supposed:
        check(ledger, limit, {**supposed, "run": runs})


def test_a_decision_that_is_listed_twice_is_caught(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that forgets what the pages before listed lists a decision again that the log holds twice."""
    entries = entry_index.run_entries

    def forgetful(*given: Any) -> Any:
        return [entry for entry in entries(*given) if entry.kind != "run.decided"]

    monkeypatch.setattr(entry_index, "run_entries", forgetful)
    with pytest.raises(AssertionError):
        check(ledger, 2, SUPPOSED[1])


def test_pages_that_follow_do_not_count_again(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first page makes every decision again, those that follow make the ones they go past."""
    made: list[int] = []
    plain = Supposer.made

    def counted(self: Supposer, chosen: Any) -> Any:
        made.append(chosen.decision.position)
        return plain(self, chosen)

    monkeypatch.setattr(Supposer, "made", counted)
    whole = len(SCORES) + 1
    costs = []
    for _ in pages(ledger, 2, **SUPPOSED[1]):
        costs.append(len(made))
        made.clear()
    assert costs == [whole, 2, 2, 2, 1]
    for _ in pages(ledger, 1, **SUPPOSED[2]):
        pass
    assert len(made) <= 2 * whole, "those that are not listed count, too"


def test_all_pages_are_as_of_the_first(ledger: woodrat.Ledger) -> None:
    """What is decided between two pages is on none of them."""
    whole = ledger.what_if(**SUPPOSED[1], limit=1_000)
    page = ledger.what_if(**SUPPOSED[1], limit=2)
    listed = list(page.decisions)
    while page.cursor is not None:
        decide(ledger, 2)
        page = ledger.what_if(**SUPPOSED[1], limit=2, cursor=page.cursor)
        assert (page.position, page.same, page.flip) == (whole.position, whole.same, whole.flip)
        listed += page.decisions
    assert listed == list(whole.decisions)


def test_altered_cursors_are_refused_or_harmless(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cursor that no page returned is an error, or leads to decisions of this log, a page of them at most."""
    questions: list[bytes] = []

    def noted(*given: Any) -> Any:
        request = page_request(*given)
        questions.append(request.question)
        return request

    monkeypatch.setattr(verbs, "page_request", noted)
    cursor = ledger.what_if(**SUPPOSED[1], limit=2).cursor
    place = read_cursor(cursor, questions[-1], []) or []

    def ask(*so_far: Any) -> WhatIf:
        return ledger.what_if(**SUPPOSED[1], limit=2, cursor=make_cursor(questions[0], [*place[:2], *so_far]))

    after, left, *counts = place[2:]
    assert (left, len(counts)) == (len(SCORES) - 1, 4)
    for wrong in (
        [],
        [after],
        [after, left, *counts[:3]],
        [after, left, *counts, 0],
        [str(after), left, *counts],
        [after, 0, *counts],
        [-1, left, *counts],
        [after, left, -1, *counts[1:]],
        [after, left, True, *counts[1:]],
    ):
        with pytest.raises(woodrat.Refused, match="cursor"):
            ask(*wrong)
    assert len(ask(after, 10**9, *counts).decisions) == 2
    nothing = ask(10**9, left, *counts)
    assert (nothing.decisions, nothing.cursor) == ((), None)
    later = make_cursor(questions[0], [10**9, *place[1:]])
    with pytest.raises(woodrat.Refused, match="this moment only reaches"):
        ledger.what_if(**SUPPOSED[1], limit=2, cursor=later)
