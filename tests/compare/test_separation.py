"""Separation: what bad runs did and good ones did not, with counts, and never more than the counts support."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.compare.planted_groups import planted
from tests.compare.test_divergence import decided, model, read, tool
from tests.compare.test_groups import named
from tests.runs.story import Said, body, entries

from woodrat.compare import features
from woodrat.compare.features import FeatureTable, leaves
from woodrat.compare.groups import Crowd, gather
from woodrat.compare.separation import Separation
from woodrat.runs.record import RunRecord, record_of


def judged(number: int, good: bool | None, *steps: Said, answer: Any = "Done.", **start: Any) -> RunRecord:
    """Return a run that took these steps, with its verdict."""
    id = named(number)
    said: list[Said] = [("run.started", body(0, id, query="Refund?", **start))]
    said += [(kind, body(place, id, **told)) for place, (kind, told) in enumerate(steps, 1)]
    said.append(("run.ended", body(len(steps) + 1, id, status="done", answer=answer)))
    if good is not None:
        said.append(("run.judged", body(len(steps) + 2, id, verdict="good" if good else "bad", by="ann")))
    return record_of(id, entries(said))


def crowd(*stories: tuple[int, bool | None, Sequence[Said]]) -> Crowd:
    """Return so many runs of each story, grouped."""
    flat = [(good, steps) for count, good, steps in stories for _ in range(count)]
    return gather([judged(number, good, *steps) for number, (good, steps) in enumerate(flat)])


def separation(*stories: tuple[int, bool | None, Sequence[Said]]) -> Separation:
    """Return what separates so many runs of each story."""
    found = crowd(*stories).separation
    assert found is not None
    return found


CARD = [model("Let me see."), tool("find", {"total": 40}), tool("check", "ok"), tool("refund", "sent", method="card")]
CASH = [*CARD[:3], tool("refund", "held", method="cash")]
SKIPPED = [*CARD[:2], CARD[3]]


def test_one_argument() -> None:
    """The argument that bad runs have is named with its value, that of good runs, both counts and the step."""
    found = separation((30, True, CARD), (1, True, CASH), (9, False, CASH), (1, False, CARD))
    (trait,) = found.traits
    assert (trait.text, trait.kind, trait.name, trait.path, trait.value) == (
        "called refund with method cash",
        "argument",
        "refund",
        "method",
        "cash",
    )
    assert (trait.bad, trait.bad_total, trait.good, trait.good_total) == (9, 10, 1, 31)
    assert (trait.usual, trait.usual_good, trait.step, trait.share) == ("card", 30, 4, 0.9)
    assert "got held from refund" in trait.companions
    assert (found.earliest_step, found.unexplained, found.hints, found.complete) == (4, 1, (), True)
    assert found.sentence.startswith(
        "10 of 41 judged runs are bad (by their judges). What separates them: 9 of 10 bad runs and 1 of 31 good ones "
        "called refund with method cash (30 good ones had card), seen at step 4. "
    )
    assert found.sentence.endswith("1 bad run has none of it.")


def test_the_answer_separates_nothing() -> None:
    """What a run answered is what it came to, and not why: neither a value nor an amount in it is named."""
    runs = [judged(n, n < 15, *CARD, answer={"total": n}) for n in range(30)]
    found = gather(runs).separation
    assert found is not None
    assert (found.bad, found.traits, found.hints) == (15, (), ())


def test_a_skipped_check() -> None:
    """A step that bad runs lack is named, seen where good runs take it."""
    (trait,) = separation((30, True, CARD), (12, False, SKIPPED)).traits
    assert (trait.text, trait.present, trait.step) == ("did not call check", False, 3)
    assert (trait.bad, trait.good) == (12, 0)


def test_a_stale_fact_and_what_follows_from_it() -> None:
    """Of a fact and the decision that follows from it the fact is named, and the decision goes with it."""
    fresh, stale = [tool(), read(640), decided(640)], [tool(), read(580), decided(580)]
    (trait,) = separation((25, True, fresh), (12, False, stale)).traits
    assert (trait.text, trait.step) == ("read creditScore 580 of loan/42", 2)
    assert "decided risk: no" in trait.companions


def test_two_causes_that_share_a_symptom() -> None:
    """Where bad runs show one symptom for two reasons, the reasons are named, each with its share."""
    odd = tool("close", "odd")
    found = separation(
        (60, True, [*CARD, tool("close", "fine")]), (15, False, [*CASH, odd]), (10, False, [*SKIPPED, odd])
    )
    assert [(trait.text, trait.bad, trait.share) for trait in found.traits] == [
        ("called refund with method cash", 15, 0.6),
        ("did not call check", 10, 0.4),
    ]
    assert (found.unexplained, found.earliest_step) == (0, 3)


def test_nothing_separates_them() -> None:
    """Where chance explains every difference, that is said, with what comes closest and its p-value."""
    found = separation((30, True, CARD), (10, True, CASH), (10, False, CARD), (4, False, CASH))
    assert (found.traits, found.earliest_step, found.unexplained) == ((), None, 14)
    assert "Nothing they did separates bad from good beyond chance" in found.sentence
    assert found.hints[0].p_value > 0.01


def test_too_few_runs() -> None:
    """Two bad runs of five cannot show anything, however they differ, and the closest is only a hint."""
    found = separation((3, True, CARD), (2, False, CASH))
    assert found.traits == ()
    assert found.hints[0].text == "called refund with method cash"
    assert "too few to tell anything from chance" in found.sentence


def test_verdicts_of_one_kind_and_none() -> None:
    """Runs that are all good leave nothing to tell apart; without any verdict there is no such part."""
    assert separation((3, True, CARD)).sentence == (
        "All 3 judged runs are good (by their judges); there is nothing to tell apart."
    )
    assert crowd((3, None, CARD)).separation is None
    mixed = separation((30, True, CARD), (12, False, CASH), (5, None, SKIPPED))
    assert (mixed.unjudged, len(mixed.traits)) == (5, 1)


def test_clusters_count_verdicts() -> None:
    """Each cluster says how many of its runs are good and bad."""
    found = crowd((30, True, CARD), (12, False, CASH), (2, None, CARD))
    assert (found.main.good, found.main.bad, found.main.agree) == (30, 12, 32)
    assert [(cluster.good, cluster.bad) for cluster in found.main.clusters] == [(0, 12)]
    assert found.sentence.startswith("32 of 44 runs agree; 12 part at step 4, the tool refund")


def test_inputs_amounts_order_and_repeats() -> None:
    """Inputs, amounts above a bound, the order of steps and repeated calls can all be what separates runs."""
    bad_tier = [
        judged(n, n % 3 > 0, *CARD, inputs={"tier": "gold" if n % 3 else "basic", "key": f"k-{n}"}) for n in range(60)
    ]
    large = [judged(n, n < 40, tool("pay", "ok", amount=100 + n * 7)) for n in range(60)]
    swapped = [judged(n, n < 40, *(CARD if n < 40 else [*CARD[:2], CARD[3], CARD[2]])) for n in range(60)]
    again = [judged(n, n < 40, *CARD, *(() if n < 40 else [tool("find", {"total": 40})] * 2)) for n in range(60)]
    texts = []
    for records in (bad_tier, large, swapped, again):
        found = gather(records).separation
        assert found is not None
        texts.append([(trait.text, trait.step) for trait in found.traits])
    assert texts[0] == [("were given tier basic", 0)]
    assert texts[1][0][0].startswith("called pay with amount of ")
    assert texts[2] == [("called refund before they called check", 4)]
    assert texts[3][0][0] == "called find 2 times or more"


def test_an_id_that_came_from_nowhere() -> None:
    """Ids differ in every run; one that no input and no result holds is told from one that was looked up."""

    def steps(number: int, good: bool) -> list[Said]:
        order = f"ord{number:05d}"
        return [
            tool("find", {"order": order}, key=f"k{number}xx"),
            tool("cancel", "ok", order=order if good else f"x{order}"),
        ]

    found = gather([judged(n, n < 40, *steps(n, n < 40)) for n in range(55)]).separation
    assert found is not None
    assert found.traits[0].text == "called cancel with order that no input and no earlier result holds"


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([CARD, CASH, SKIPPED])), min_size=2, max_size=40), st.randoms()
)
def test_the_order_of_runs_does_not_show(stories: list[tuple[bool, list[Said]]], random: Any) -> None:
    """What separates runs depends on the set of runs alone, and its counts are those of the runs."""
    records = [judged(number, good, *steps) for number, (good, steps) in enumerate(stories)]
    shuffled = [*records]
    random.shuffle(shuffled)
    found = gather(records).separation
    assert gather(shuffled).separation == found
    assert found is not None
    assert (found.good, found.bad) == (sum(good for good, _ in stories), sum(not good for good, _ in stories))
    for trait in found.traits:
        if trait.text == "called refund with method cash":
            assert trait.bad == sum(steps is CASH for good, steps in stories if not good)
            assert trait.good == sum(steps is CASH for good, steps in stories if good)


def test_features_are_bounded(monkeypatch: Any) -> None:
    """Beyond the bound new values are not followed, those followed are counted exactly, and it is said."""
    monkeypatch.setattr(features, "VALUES_MAX", 4)
    table = FeatureTable()
    for number in range(20):
        table.add(judged(number, True, tool("pay", "ok", to=f"somebody {number % 10}")))
    slot = features.FeatureSlot(features.ARGUMENT, "pay", "to")
    assert (len(table.slots[slot]), slot in table.overflow) == (4, True)
    assert [len(table.places[number].runs) for number in table.slots[slot]] == [2, 2, 2, 2]
    monkeypatch.setattr(features, "FEATURES_MAX", 10)
    found = gather([judged(number, number > 3, tool(f"pay {number}")) for number in range(8)]).separation
    assert found is not None
    assert not found.complete


def test_leaves_of_values() -> None:
    """A value is taken apart to any depth, text that holds JSON too, and all items of a list stand at one place."""
    value: Any = {"a": {"b": [{"c": 1}, {"c": 2}]}, "d": '{"e": true}', "f": None}
    assert list(leaves(value)) == [("a.b.length", 2), ("a.b[].c", 1), ("a.b[].c", 2), ("d.e", True), ("f", None)]
    assert list(leaves("plain")) == [("", "plain")]
    assert len(list(leaves(list(range(10_000))))) == features.LEAVES_MAX


def test_a_planted_cause_in_the_whole_answer() -> None:
    """Amid noise in wording, inputs, ids and order the group names the planted cause in its sentence."""
    group = planted("argument", 7)
    found = gather(group.records)
    assert found.separation is not None
    assert group.is_named("argument", found.separation.traits[0])
    assert found.separation.traits[0].text in found.sentence
    assert found.differing_inputs == ("amount", "customer", "key", "lang", "query", "tier")
