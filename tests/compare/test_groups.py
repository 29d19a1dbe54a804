"""Crowds: many runs clustered by where they part, whatever order they are given in."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.compare.test_divergence import STEPS, decided, model, ran, read, tool
from tests.runs.story import Said

from woodrat.compare import groups
from woodrat.compare.divergence import compare
from woodrat.compare.groups import Cluster, StageChoice, gather
from woodrat.runs.record import RunRecord


def named(number: int) -> str:
    """Return the id of a run by its number."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return f"run_{'a' * 23}{letters[number // 676]}{letters[number // 26 % 26]}{letters[number % 26]}"


def runs(*stories: tuple[int, list[Said], dict[str, Any]]) -> list[RunRecord]:
    """Return so many runs of each story."""
    told = [(steps, said) for count, steps, said in stories for _ in range(count)]
    return [ran(*steps, id=named(number), **said) for number, (steps, said) in enumerate(told)]


LOW = [tool(), read(580), decided(580)]
HIGH = [tool(), read(640), decided(640)]


def test_two_of_twenty_part() -> None:
    """The sentence says how many agree, and of the others how many part where and why."""
    found = gather(runs((18, LOW, {}), (2, HIGH, {"answer": "Yes."})))
    assert found.sentence == (
        "18 of 20 runs agree; 2 part at step 2, the read of loan/42: creditScore was 580 in the main runs and 640 in "
        "these."
    )
    assert (found.total, found.same, found.main.agree, found.main.representative) == (20, False, 18, named(0))
    (parted,) = found.main.clusters
    assert (parted.step, parted.agree, parted.representative) == (2, 2, named(18))
    assert (parted.decisions, parted.answer) == ((StageChoice("risk", "yes"),), "Yes.")
    assert parted.cause is not None
    assert parted.cause.kind == "state"
    assert found.main.decisions == (StageChoice("risk", "no"),)


def test_all_agree_and_one_is_alone() -> None:
    """A crowd that agrees says so; one run has nothing to be compared with."""
    assert gather(runs((3, LOW, {}))).sentence == "All 3 runs agree."
    assert gather(runs((3, LOW, {}))).same
    assert gather(runs((1, LOW, {}))).sentence == "There is one run, and none to compare it with."
    assert gather(runs((2, [], {}))).sentence == "All 2 runs agree."


def test_clusters_part_further() -> None:
    """Runs that left the main way and part again stand under their own cluster."""
    kind = [*HIGH, tool("mail", "sent")]
    unkind = [*HIGH, tool("mail", "bounced")]
    found = gather(runs((5, LOW, {}), (3, kind, {"answer": "Yes."}), (1, unkind, {"answer": "Yes."})))
    (parted,) = found.main.clusters
    assert (len(parted.runs), parted.agree, parted.step) == (4, 3, 2)
    (inner,) = parted.clusters
    assert (inner.step, inner.agree, inner.label) == (4, 1, "step 4, the tool mail")
    assert inner.cause is not None
    assert (
        inner.cause.text == "called with the same arguments it returned sent in the main runs and bounced in this one"
    )
    assert found.sentence.startswith("5 of 9 runs agree; 4 part at step 2")


def test_several_places_and_several_ways() -> None:
    """Places are named by how many part there; one place with several results says in how many ways."""
    results: list[tuple[int, list[Said], dict[str, Any]]] = [
        (1, [tool(), read(580), decided(580), tool("mail", text)], {}) for text in "xyz"
    ]
    found = gather(runs((6, [tool(), read(580), decided(580), tool("mail", "w")], {}), *results, (1, HIGH, {})))
    assert found.sentence == (
        "6 of 10 runs agree; 3 part at step 4, the tool mail, in 3 ways, for one: called with the same arguments it "
        "returned w in the main runs and x in this one; one parts at step 2, the read of loan/42: creditScore was 580 "
        "in the main runs and 640 in this one."
    )


def test_no_two_agree() -> None:
    """When every run is different it is said, and the one that began first is the measure."""
    found = gather(runs(*((1, [tool("mail", text)], {"answer": text}) for text in "abc")))
    assert found.sentence.startswith("No two of 3 runs agree; 2 part at step 1, the tool mail, in 2 ways")
    assert found.main.representative == named(0)


def test_wording_parts_no_runs() -> None:
    """What models write, and answers in many words, do not part runs that did the same."""
    texts = [f"Thank you for waiting, I have looked into it {number} times now." for number in range(4)]
    stories = ((1, [tool(), model(text, request=text), read(580)], {"answer": text}) for text in texts)
    found = gather(runs(*stories))
    assert (found.sentence, found.same) == ("All 4 runs agree.", True)


def test_other_inputs_part_no_runs() -> None:
    """Runs that were given something else take part; an argument that repeats an input is the same in all of them."""
    stories: list[tuple[int, list[Said], dict[str, Any]]] = [
        (
            1,
            [tool("find", {"order": key, "total": 20 + len(key)}, key=key), *(HIGH if key == "o-4711" else LOW)],
            {"start": {"query": f"What about {key}?", "inputs": {"order": key, "lang": "en"}}},
        )
        for key in ("o-1001", "o-2002", "o-3003", "o-4711")
    ]
    found = gather(runs(*stories))
    assert (found.total, found.main.agree, found.differing_inputs) == (4, 3, ("order", "query"))
    assert found.sentence == (
        "3 of 4 runs agree; one parts at step 3, the read of loan/42: creditScore was 580 in the main runs and 640 in "
        "this one."
    ).replace("step 3", f"step {found.main.clusters[0].step}")


def test_other_subjects_and_entities_part_no_runs() -> None:
    """Runs about other entities did the same if they read the same of their own, and many entities count as one."""

    def steps(number: int) -> list[Said]:
        score = 640 if number == 11 else 580
        return [
            read(score, entity=f"loan/{number}"),
            read(1, entity=f"branch/b{number}"),
            read(2, entity="policy/risk"),
            decided(score),
        ]

    stories: Any = [(1, steps(number), {"start": {"subject": f"loan/{number}"}}) for number in range(12)]
    found = gather(runs(*stories))
    assert found.sentence == (
        "11 of 12 runs agree; one parts at step 1, the read of loan/0: creditScore was 580 in the main runs and 640 in "
        "this one."
    )


def test_volatile_values_and_independent_order_part_no_runs() -> None:
    """Random ids and times are the same everywhere, and calls that do not depend on each other come in any order."""

    def calls(number: int) -> list[Said]:
        lookup = tool("lookup", {"request_id": f"{number:032x}a", "at": f"2026-01-0{number + 1}T10:00:00Z", "ok": True})
        pair = [lookup, tool("rates", {"rate": 3})]
        return [*(reversed(pair) if number % 2 else pair), decided(580)]

    found = gather(runs(*((1, calls(number), {}) for number in range(4))))
    assert found.sentence == "All 4 runs agree."
    stories: Any = ((1, [*calls(2 * number), tool("mail", number > 2)], {}) for number in range(4))
    assert gather(runs(*stories)).sentence == (
        "3 of 4 runs agree; one parts at step 4, the tool mail: called with the same arguments it returned false in "
        "the main runs and true in this one."
    ), "the ids and times before it are no reason"
    dependent = [tool("lookup", {"token": "abc-123"}), tool("rates", {"rate": 3}, token="abc-123")]
    found = gather(runs((2, dependent, {}), (1, [dependent[1], dependent[0]], {})))
    assert found.main.agree == 2, "what uses a result of another is not independent of it"


def test_a_run_with_no_step_like_the_others_parts_at_once() -> None:
    """A run of the same question that went on with another tool: both are named."""
    found = gather(runs((2, [tool()], {}), (1, [tool("weather")], {})))
    assert found.sentence == (
        "2 of 3 runs agree; one parts at step 1, the tool weather: the main runs went on with the tool bureau and this "
        "one with the tool weather."
    )


def test_keys_that_tell_too_much_apart_are_joined_again() -> None:
    """A decision that tried a rule more before it came to the same is no parting."""
    kind, said = decided(580)
    untried = {"label": "Late", "chosen": "no", "matched": False, "conditions": []}
    more: Said = (kind, {**said, "rules": [*said["rules"], untried]})
    records = runs((2, [read(), (kind, said)], {}), (1, [read(), more], {}))
    assert compare(records[0], records[2]).same
    assert gather(records).sentence == "All 3 runs agree."


@given(st.lists(STEPS, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_order_in_which_runs_are_given_does_not_show(stories: list[list[Said]], random: Any) -> None:
    """Clusters and sentence depend on the set of runs alone; every run is in one cluster, once."""
    records = [ran(*steps, id=named(number)) for number, steps in enumerate(stories)]
    shuffled = [*records, *records]
    random.shuffle(shuffled)
    found = gather(records)
    assert gather(shuffled) == found
    assert sorted(found.main.runs) == sorted(record.id for record in records)
    assert found.main.agree + sum(_agreeing(cluster) for cluster in found.main.clusters) == len(records)


def _agreeing(cluster: Cluster) -> int:
    return cluster.agree + sum(_agreeing(inner) for inner in cluster.clusters)


def test_a_thousand_runs_are_compared_once_a_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only one run of each cluster is aligned with another, however many runs there are; the most are explained."""
    compared: list[tuple[str, str]] = []

    def counted(a: RunRecord, b: RunRecord, *given: Any, **named: Any) -> Any:
        compared.append((a.id, b.id))
        return compare(a, b, *given, **named)

    monkeypatch.setattr(groups, "compare", counted)
    gather(runs((500, LOW, {}), (480, HIGH, {}), (20, [*LOW, tool("mail")], {})))
    assert len(compared) == 2
    compared.clear()
    monkeypatch.setattr(groups, "EXPLAINED_MAX", 3)
    found = gather(runs((3, LOW, {}), *((1, [tool(f"tool {number}")], {}) for number in range(10))))
    assert len(compared) == 3
    assert [cluster.cause is None for cluster in found.main.clusters].count(False) >= 1
    assert all(cluster.label is not None or cluster.cause is not None for cluster in found.main.clusters)
