"""The file of a reduction: equal bytes for equal reductions, read again as they are, refused with one changed byte."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.bisect.predicate import EntityConditions, Predicate
from woodrat.bisect.reduction import Reduction, ReductionCheck, ReductionOrigin, parse
from woodrat.canon import form
from woodrat.canon.digest import base32, digest
from woodrat.canon.ids import Ref
from woodrat.errors import Refused
from woodrat.merge import BUILTIN
from woodrat.state.observation import ASSERT, CORRECT, say
from woodrat.testing.laws import rules_for

A = Ref("thing", "Ana\u2028Ñ")
MEMBERS = (
    say(A, ASSERT, agent="crm", observed_at="2026-01-05T09:00:00.000000Z", fields={"sum": 1, "note": "a\nb 😀"}),
    say(A, CORRECT, agent="ann", observed_at="2026-01-05T09:00:00.000000Z", fields={"latest": None}, reason="x"),
)
FOUND = Reduction(
    Predicate((EntityConditions(A, {"sum": {"gte": 1}}, (("latest", None),)),)),
    MEMBERS,
    (rules_for(BUILTIN).schema,),
    {str(A): {"sum": 1, "latest": None}},
    "fp_x",
    ReductionOrigin("log_x", 9, None, 40),
)
DATA = FOUND.to_bytes()


def sealed(*lines: object) -> bytes:
    """Return lines as a file whose digest is right."""
    data = b"".join(form.serialise(line) + b"\n" for line in lines)
    return data + form.serialise({"digest": base32(digest("reduction", data))}) + b"\n"


def lines() -> list[dict[str, form.Json]]:
    """Return the objects of a good file, without the last one."""
    return [form.decode(line) for line in DATA.splitlines()[:-1] if line]


def test_a_file_is_read_as_it_was_written() -> None:
    """All of it comes back, and writing it again gives the same bytes."""
    again = parse(DATA)
    assert again == FOUND
    assert again.to_bytes() == DATA
    assert len(again) == 2


@given(st.integers(0, len(DATA) - 1), st.integers(1, 255))
def test_a_changed_byte_is_refused(place: int, by: int) -> None:
    """Whichever byte of the file is another, it is refused."""
    changed = bytearray(DATA)
    changed[place] ^= by
    with pytest.raises(Refused, match="Nothing was checked"):
        parse(bytes(changed))


@given(st.integers(0, len(DATA) - 1))
def test_a_file_that_was_cut_is_refused(length: int) -> None:
    """Whatever its length, a beginning of a file is not the file."""
    with pytest.raises(Refused, match="Nothing was checked"):
        parse(DATA[:length])


def test_files_out_of_shape_are_refused_by_name() -> None:
    """Another format, another kind, another body under a name: each is told apart, whatever the digest says."""
    head, scheme, first, second = lines()
    for changed, problem in (
        (sealed({**head, "format": 1}, scheme, first, second), "line 1/format: got 1"),
        (sealed({**head, "kind": "capsule"}, scheme, first), 'it is no reduction: kind is "capsule"'),
        (sealed(head, scheme, {**first, "name": second["name"]}), "is not the name of this body"),
        (sealed(head, scheme, {**first, "kind": "run.started"}), "expected a schema or an observation"),
        (sealed(head, {**first, "body": {"op": "assert"}}), "line 2/body/agent: missing"),
        (sealed(head, scheme, scheme), "a type has several schemas"),
        (sealed({name: head[name] for name in ("kind", "format")}, first), "line 1/predicate: missing"),
        (sealed({**head, "predicate": {}}, first), "line 1/predicate: it has no condition"),
        (sealed({**head, "origin": 5}, first), "line 1/origin: got 5"),
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"{}\n{}\n{}\n", "it is no reduction"),
        (b"[\n]\n\n", "line 1"),
        (DATA.replace(b"\n", b"\r\n"), "expected one object in canonical form"),
    ):
        with pytest.raises(Refused) as refused:
            parse(changed)
        assert problem in str(refused.value)
        assert str(refused.value).endswith("Nothing was checked.")


def test_what_was_found_is_told_in_a_sentence() -> None:
    """How many of how many, and that none can go; or what is wrong with a file."""
    question = "thing/Ana\u2028Ñ#latest = null and thing/Ana\u2028Ñ#sum gte 1"
    assert (
        FOUND.sentence == f"{question}: 2 of 40 observations show it by themselves, and none can be left out (0 folds)."
    )
    good = ReductionCheck(FOUND, True, "fp_x", ())
    assert good.same
    assert good.sentence == f"{question}: it holds on these 2 observations alone, and no longer with any one left out."
    for wrong, clause in (
        (ReductionCheck(FOUND, False, "fp_x", ()), "it does not hold on these 2 observations."),
        (ReductionCheck(FOUND, True, "fp_x", ("obs_1",)), "it holds, but it would without obs_1 too."),
        (ReductionCheck(FOUND, True, "fp_y", ()), "it holds, but on another state: fp_y, not fp_x."),
    ):
        assert not wrong.same
        assert wrong.sentence.endswith(clause)
        assert wrong.to_json()["same"] is False
