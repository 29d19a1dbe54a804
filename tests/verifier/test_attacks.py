"""Attacks by an operator who holds the signing key: none of these files is proven."""

from __future__ import annotations

from typing import Any

import pytest
from tests.verifier.forging import RUN, Forger, decision, one_read, rule, stated

from woodrat.canon import form
from woodrat.ledger.write import Writer

CUT: dict[str, Any] = {"$truncated": {"bytes": 9, "digest": "0" * 64, "preview": "9"}}


def refused(found: dict[str, Any]) -> tuple[str, str]:
    """Return code and record of a refusal."""
    assert found["verdict"] == "refused", found["says"]
    return found["code"], found["record"]


def test_an_honest_decision_is_proven() -> None:
    """What the attacks below change one thing about is proven as it stands."""
    forger = Forger()
    one_read(forger)
    assert forger.verdict()["verdict"] == "proven"
    assert forger.verdict({"kind": "decision", "run": RUN, "stage": "s"})["verdict"] == "proven"


# 1. a decision without rules


@pytest.mark.parametrize("omitted", [{"rules": 1}, {"rules": 10**6}, {}, {"conditions": 1}])
def test_a_decision_without_rules_is_the_default(omitted: dict[str, int]) -> None:
    """Rules left out for their number do not stand for a rule that matched: no rule and no default is refused."""
    forger = Forger()
    forger.step("run.started", 0)
    said = {"chosen": "approved", "default": False, **({"omitted": omitted} if omitted else {})}
    at = forger.step("run.decided", 1, **decision(**said))
    forger.ended(2)
    assert refused(forger.verdict()) == ("decision", f"entry {at}")


def test_conditions_left_out_do_not_hide_one_that_is_false() -> None:
    """The rule itself says which conditions it has, and the facts say what they come to."""
    forger = Forger()
    forger.step("run.started", 0)
    facts = {f"f{number}": number for number in range(1_001)}
    conditions = [stated(key, "eq", value, value, True) for key, value in facts.items() if key != "f7"]
    when = {key: {"eq": value} for key, value in facts.items()} | {"f7": {"eq": 8}}
    matched = {**rule(*conditions), "when": when}
    body = decision(matched, omitted={"conditions": 1})
    body["facts"] |= {"f7": 7}
    body["facts_origin"] |= {"f7": {"kind": "stated"}}
    at = forger.step("run.decided", 1, **body)
    forger.ended(2)
    assert refused(forger.verdict()) == ("decision", f"entry {at}")


def test_a_few_conditions_are_never_left_out_for_their_number() -> None:
    """Where fewer than a thousand are shown none was left out for its number."""
    forger = Forger()
    forger.step("run.started", 0)
    hides = {**rule(stated("x", "lt", 600, 580, True)), "when": {"x": {"lt": 600}, "y": {"eq": 1}}}
    at = forger.step("run.decided", 1, **decision(hides, omitted={"conditions": 1}))
    forger.ended(2)
    assert refused(forger.verdict()) == ("decision", f"entry {at}")


# 2. a value that is hidden or cut in one place and another value elsewhere


@pytest.mark.parametrize("shown", ["[REDACTED]", CUT, {"$truncated": {"bytes": 9}}])
@pytest.mark.parametrize("redact", [[], ["score"], ["SC*"]])
def test_a_read_that_hides_its_value_does_not_hide_the_observation(shown: Any, redact: list[str]) -> None:
    """The condition says 700, the observation in the capsule says 580: that is refused however the read is covered."""
    forger = Forger()
    one_read(forger, actual=700, shown=shown, started={"redact": redact} if redact else {})
    code, record = refused(forger.verdict())
    assert code == "evidence"
    assert record in ("entry 3", "entry 4")


def test_a_value_hidden_by_no_key_is_refused() -> None:
    """Where neither schema nor run hides the key, a redacted value is not what the observation says."""
    forger = Forger()
    at = one_read(forger, shown="[REDACTED]")
    assert refused(forger.verdict()) == ("evidence", f"entry {at['read']}")


def test_a_value_hidden_by_its_key_is_named() -> None:
    """Where the run hides the key, everything else is checked, and the verdict names what is hidden."""
    forger = Forger()
    at = one_read(forger, shown="[REDACTED]", started={"redact": ["score"]})
    found = forger.verdict()
    assert found["verdict"] == "consistent"
    assert found["parts"] == [f"hidden {at['read']}", f"hidden {at['decided']}"]


@pytest.mark.parametrize("hidden", ["[REDACTED]", {"$truncated": {"bytes": 9, "digest": "0" * 64}}])
@pytest.mark.parametrize("kind", ["input", "tool", "model"])
def test_inputs_results_and_responses_hide_nothing_either(kind: str, hidden: Any) -> None:
    """A value that its origin hides without cause, or has under another digest, is not what the condition says."""
    forger = Forger()
    forger.step("run.started", 0, **({"inputs": {"score": hidden}} if kind == "input" else {}))
    origin: dict[str, Any] = {"kind": "input", "name": "score"}
    if kind != "input":
        forger.step(f"run.{kind}", 1, **{"result" if kind == "tool" else "response": {"score": hidden}})
        origin = {"kind": kind, "span": f"{1:016x}", "path": "/score"}
    at = forger.step("run.decided", 2, **decision(rule(stated("score", "lt", 600, 580, True, origin=origin))))
    forger.ended(3, **({"skipped": [1]} if kind == "input" else {}))
    assert refused(forger.verdict()) == ("evidence", f"entry {at}")


# 3. a held checkpoint and a consistency document


def noted(*scores: int) -> tuple[Forger, str]:
    """Return a log of some observations, and its checkpoint; all of them have one name and one signer."""
    forger = Forger()
    for score in scores:
        forger.observe({"score": score})
    return forger, forger.ledger.proofs.checkpoint().note


def test_a_held_checkpoint_is_compared_with_both_ends() -> None:
    """A document from another history of the size of the note one holds is refused; one in between is named."""
    _, held = noted(1, 2, 3, 4)
    _, between = noted(1, 2, 3, 4, 5)
    _, longer = noted(1, 2, 3, 4, 5, 6, 7, 8, 9)
    _, same_size = noted(1, 2, 3, 4, 5, 6)
    forger, before = noted(-1, -2, -3, -4)
    for score in (5, 6):
        forger.observe({"score": score})
    consistency = forger.ledger.proofs.prove_consistency(before).to_bytes()
    assert forger.ask(consistency, before)["verdict"] == "proven"
    assert refused(forger.ask(consistency, held)) == ("forked", "from")
    assert refused(forger.ask(consistency, same_size)) == ("forked", "to")
    assert refused(forger.ask(consistency, longer)) == ("truncated", "to")
    found = forger.ask(consistency, between)
    assert (found["verdict"], found["parts"]) == ("consistent", ["held"])


# 4. several observations of a field that has one winner


@pytest.mark.parametrize("names", [[], ["obs_" + "a" * 26], None])
def test_a_field_with_one_winner_names_one_observation(names: Any) -> None:
    """`observations` beside `observation` would let the winner go unchecked."""
    forger = Forger()
    at = one_read(forger, value=700, actual=700, item={"observations": names} if names is not None else {})
    assert refused(forger.verdict()) == ("evidence", f"entry {at['read']}")


# 5. observations of another entity, of later, of nowhere


def test_a_read_of_another_entity_is_refused() -> None:
    """What was read of loan/42 was stated of loan/42, or of an entity that a relation shown joins with it."""
    forger = Forger()
    _, name = forger.schema()
    _, id = forger.observe({"score": 580}, "loan/43")
    started = forger.step("run.started", 0)
    item = {"score": {"observation": id, "value": 580}}
    body = {"log": forger.log, "entity": "loan/42", "position": started, "found": True, "schema": name}
    at = forger.step("run.read", 1, **body, fields=item)
    forger.ended(2)
    assert refused(forger.verdict()) == ("evidence", f"entry {at}")


def test_a_read_of_what_was_stated_later_is_refused() -> None:
    """An observation stands at or below the position it was read at, and that is one the log had."""
    for position in (1, 2, 3):
        forger = Forger()
        _, name = forger.schema()
        started = forger.step("run.started", 0)
        _, id = forger.observe({"score": 580})
        item = {"score": {"observation": id, "value": 580}}
        body = {"log": forger.log, "entity": "loan/42", "position": position, "found": True, "schema": name}
        at = forger.step("run.read", 1, **body, fields=item)
        forger.ended(2)
        found = forger.verdict()
        if position == 2:
            assert found["verdict"] == "proven", found["says"]
        else:
            assert refused(found) == ("evidence", f"entry {at}")
        assert started == 1


# 6. what is left out, blanked or put in another's place


def test_a_decision_or_a_step_that_is_left_out_shows() -> None:
    """Every number up to the end's is there; a second decision of the stage cannot be dropped."""
    forger = Forger()
    at = one_read(forger)
    everything = range(at["ended"] + 1)
    for gone in (at["read"], at["decided"]):
        found = forger.verdict(None, [position for position in everything if position != gone])
        assert refused(found) == ("steps", f"entry {at['ended']}")
    found = forger.verdict(None, [position for position in everything if position != at["ended"]])
    assert (found["verdict"], found["parts"]) == ("consistent", ["end"])


def test_a_blank_entry_needs_its_erasure() -> None:
    """An entry without content is refused unless an erasure shown names its position."""
    forger = Forger()
    at = one_read(forger)
    document: Any = form.parse(forger.capsule({"kind": "run", "run": RUN}))
    document["entries"][at["stated"]].update(nonce=None, body=None)
    assert refused(forger.ask(form.serialise(document) + b"\n")) == ("erased", f"entry {at['stated']}")


def test_the_schema_of_a_read_cannot_be_dropped_or_replaced() -> None:
    """The schema in force at the read is there, and it is the one the read names; a later one changes nothing."""
    forger = Forger()
    at = one_read(forger)
    everything = range(at["ended"] + 1)
    found = forger.verdict(None, [position for position in everything if position != 0])
    assert refused(found) == ("schema", f"entry {at['read']}")
    later, _ = forger.schema({"properties": {"score": {"x-woodrat-merge": "max"}}}, version=2)
    assert forger.verdict(None, [*everything, later])["verdict"] == "proven"
    found = forger.verdict(None, [position for position in [*everything, later] if position != 0])
    assert refused(found) == ("schema", f"entry {at['read']}")


def test_a_read_of_an_open_type_has_no_schema_before_it() -> None:
    """A read that names no schema, of a type that had one, is refused."""
    forger = Forger()
    forger.schema()
    _, id = forger.observe({"score": 580})
    started = forger.step("run.started", 0)
    item = {"score": {"observation": id, "value": 580}}
    body = {"log": forger.log, "entity": "loan/42", "position": started, "found": True}
    at = forger.step("run.read", 1, **body, fields=item)
    forger.ended(2)
    assert refused(forger.verdict()) == ("schema", f"entry {at}")


def field_claim(value: Any, misfits: list[int] | None = None, **more: Any) -> dict[str, Any]:
    """Return a claim on the score."""
    return {"kind": "field", "entity": "loan/42", "field": "score", "value": value, "misfits": misfits or [], **more}


def test_a_winner_is_not_declared_a_misfit() -> None:
    """Whether a claim fits is worked out again: setting the winner aside, or letting a misfit win, is refused."""
    forger = Forger()
    at, _ = forger.schema()
    forger.observe({"score": 500})
    winner, _ = forger.observe({"score": 580}, at="2026-02-01T00:00:00.000000Z")
    misfit, _ = forger.observe({"score": "high"}, at="2026-03-01T00:00:00.000000Z")
    assert forger.verdict(field_claim(580, [misfit], schema=at))["verdict"] == "proven"
    assert refused(forger.verdict(field_claim(500, [winner, misfit], schema=at))) == ("claim", "claim")
    assert refused(forger.verdict(field_claim("high", [], schema=at))) == ("claim", "claim")
    assert refused(forger.verdict(field_claim(580, [misfit]))) == ("schema", "claim")


def test_a_subschema_that_is_not_known_lowers_the_verdict() -> None:
    """With a keyword that is not evaluated nobody says whether claims fit, and the verdict says so."""
    forger = Forger()
    at, _ = forger.schema({"properties": {"score": {"multipleOf": 10}}})
    forger.observe({"score": 580})
    later, _ = forger.observe({"score": 583}, at="2026-02-01T00:00:00.000000Z")
    for claim in (field_claim(580, [later], schema=at), field_claim(583, [], schema=at)):
        found = forger.verdict(claim)
        assert (found["verdict"], found["parts"]) == ("consistent", ["subschema"])


def test_a_winner_that_no_ledger_shows_is_never_proven() -> None:
    """Nothing fits a schema beyond its limits, so a verdict under it is lowered, whatever the claim sets aside."""
    forger = Forger()
    heavy = {"anyOf": [{"pattern": "a"}, {"pattern": "b"}, {"pattern": "c"}]}
    described = {"score": {"type": "integer"}, "tags": {"x-woodrat-merge": "union"}, "heavy": heavy}
    at = forger.add("schema", {"schema": {"properties": described, "x-woodrat-version": 1}, "type": "loan"})
    said, _ = forger.observe({"score": 580, "open": 1, "tags": ["a", "b"]})
    removed, _ = forger.observe({}, remove={"tags": ["b"]}, at="2026-02-01T00:00:00.000000Z")
    assert not forger.ledger.show("loan/42").fields
    claims: list[dict[str, Any]] = [
        {"field": "score", "value": 580, "misfits": []},
        {"field": "open", "value": 1, "misfits": []},
        {"field": "tags", "value": ["a"], "misfits": []},
        {"field": "tags", "value": ["a", "b"], "misfits": [removed]},
    ]
    for claim in claims:
        found = forger.verdict({"kind": "field", "entity": "loan/42", "schema": at, **claim})
        assert (found["verdict"], found["parts"]) == ("consistent", ["subschema"])
    all_aside = {"field": "score", "value": 580, "misfits": [said]}
    assert refused(forger.verdict({"kind": "field", "entity": "loan/42", "schema": at, **all_aside})) == (
        "claim",
        "claim",
    )


def test_a_field_without_a_schema_is_never_proven() -> None:
    """A schema that was dropped looks like a type without one, so the verdict names it."""
    forger = Forger()
    schema, _ = forger.schema({"properties": {"score": {"x-woodrat-merge": "max"}}})
    one, _ = forger.observe({"score": 700})
    other, _ = forger.observe({"score": 580}, at="2026-02-01T00:00:00.000000Z")
    assert forger.verdict(field_claim(700, schema=schema))["verdict"] == "proven"
    found = forger.verdict(field_claim(580), [one, other])
    assert (found["verdict"], found["parts"]) == ("consistent", ["schema"])


def test_another_policy_is_refused_or_named() -> None:
    """A policy nobody knows is refused; the user's own is named and not evaluated."""
    forger = Forger()
    body = {"type": "loan", "schema": {"properties": {"score": {"x-woodrat-merge": "median"}}, "x-woodrat-version": 1}}
    Writer(forger.ledger.context).write("forge", {}, lambda draft: draft.add("schema", form.serialise(body)))
    forger.observe({"score": 580}, "other/1")
    at = forger.ledger.position
    own = {"name": "median", "version": 1, "code": "0" * 64}
    body["schema"]["properties"]["score"]["x-woodrat-merge"] = own  # type: ignore[index]
    Writer(forger.ledger.context).write("forge", {}, lambda draft: draft.add("schema", form.serialise(body)))
    said, _ = forger.observe({"score": 580})
    assert refused(forger.verdict(field_claim(580, schema=0), [0, said])) == ("schema", "claim")
    found = forger.verdict(field_claim(1, schema=at + 1), [at + 1, said])
    assert (found["verdict"], found["parts"]) == ("consistent", ["policy"])


def test_an_original_that_is_left_out_is_named() -> None:
    """A correction of a sum without its original has no effect; that it names one which is not shown is said."""
    forger = Forger()
    at, _ = forger.schema({"properties": {"score": {"x-woodrat-merge": "sum"}}})
    original, _ = forger.observe({"score": 7})
    other, _ = forger.observe({"score": 1}, at="2026-02-01T00:00:00.000000Z")
    name = forger.ledger.observations("loan/42").items[0].observation.name
    corrected, _ = forger.observe({"score": 5}, op="correct", replaces=[name])
    assert forger.verdict(field_claim(6, schema=at))["verdict"] == "proven"
    found = forger.verdict(field_claim(1, schema=at), [at, other, corrected])
    assert (found["verdict"], found["parts"]) == ("consistent", [f"named {corrected}"])
    assert original == 1


# parts that have no place


def test_surplus_entries_are_refused() -> None:
    """An entry that has nothing to do with the claim is no part of a capsule."""
    forger = Forger()
    at = one_read(forger)
    positions = list(range(at["ended"] + 1))
    surplus, _ = forger.observe({"score": 1}, "loan/99")
    assert refused(forger.verdict(None, [*positions, surplus])) == ("surplus", f"entry {surplus}")
    other, _ = forger.schema(LOAN_OTHER, type="other")
    assert refused(forger.verdict(None, [*positions, other])) == ("surplus", f"entry {other}")


LOAN_OTHER: dict[str, Any] = {"properties": {}}


def test_entries_of_another_agent_are_refused() -> None:
    """Only a judgement may come from somebody other than the run's owner."""
    forger = Forger()
    at = one_read(forger)
    positions = list(range(at["ended"] + 1))
    judged = forger.step("run.judged", 4, agent="web", verdict="bad")
    assert forger.verdict(None, [*positions, judged])["verdict"] == "proven"
    foreign = forger.step("run.noted", 5, agent="web", text="me too")
    assert refused(forger.verdict(None, [*positions, foreign])) == ("foreign", f"entry {foreign}")


@pytest.mark.parametrize(
    "surplus", [{"more": 1}, {"on_missing": "guess"}, {"rules": {}}, {"default": "no"}, {"facts": 1}]
)
def test_unknown_or_malformed_members_are_refused(surplus: dict[str, Any]) -> None:
    """A body with a member that is not in the format, or of another type, is refused as such."""
    forger = Forger()
    at = one_read(forger, **surplus)
    assert refused(forger.verdict()) == ("shape", f"entry {at['decided']}")


# rules under three values


def unknown(key: str, op: str, operand: Any, **more: Any) -> dict[str, Any]:
    """Return a condition whose fact is missing or cannot be compared."""
    condition = {"key": key, "op": op, "operand": operand, "origin": {"kind": "stated"}, "error": "no such fact"}
    return {**condition, **more}


def decided(forger: Forger, body: dict[str, Any]) -> dict[str, Any]:
    """Return the verdict on a run that decides once."""
    forger.step("run.started", 0)
    forger.step("run.decided", 1, **body)
    forger.ended(2)
    return forger.verdict()


def test_an_unknown_rule_needs_leave_to_be_passed_over() -> None:
    """A rule with a missing fact and no false condition is unknown, and only `on_missing` lets a decision go on."""
    passed = {**rule(unknown("x", "lt", 600)), "unknown": True}
    taken = {**rule(stated("y", "eq", 1, 1, True)), "chosen": "b"}
    assert decided(Forger(), decision(passed, taken, on_missing="skip"))["verdict"] == "proven"
    assert refused(decided(Forger(), decision(passed, taken))) == ("decision", "entry 1")
    false = {**rule(unknown("x", "lt", 600), stated("y", "eq", 2, 1, False))}
    assert decided(Forger(), decision(false, taken))["verdict"] == "proven"
    assert refused(decided(Forger(), decision({**false, "unknown": True}, taken))) == ("decision", "entry 1")


@pytest.mark.parametrize(
    ("condition", "verdict"),
    [
        (unknown("x", "lt", 600, actual="580"), "proven"),
        (unknown("x", "in", 600, actual="580"), "proven"),
        (stated("x", "lt", 600, "580", True), "refused"),
        (stated("x", "less_than", 600, 580, True), "refused"),
        (unknown("x", "lt", 600, actual=580), "refused"),
        (unknown("x", "exists", True), "refused"),
        ({**unknown("x", "exists", True), "result": True}, "refused"),
        (unknown("x", "exists", 1, actual=1), "refused"),
    ],
)
def test_conditions_come_out_as_they_are_recorded(condition: dict[str, Any], verdict: str) -> None:
    """A condition that cannot be compared is unknown, never true or false; `exists` is never unknown."""
    tried = rule(condition)
    if "result" not in condition:
        tried["unknown"] = True
    found = decided(Forger(), decision(tried, chosen="no", on_missing="skip"))
    assert found["verdict"] == verdict, found["says"]


def test_a_fact_that_is_there_is_not_said_to_be_missing() -> None:
    """A condition without a value is refused where its origin has one."""
    forger = Forger()
    origin = {"kind": "input", "name": "x"}
    forger.step("run.started", 0, inputs={"x": 580})
    tried = {**rule(unknown("x", "lt", 600, origin=origin)), "unknown": True}
    at = forger.step("run.decided", 1, **decision(tried, chosen="approved", on_missing="skip"))
    forger.ended(2)
    assert refused(forger.verdict()) == ("evidence", f"entry {at}")


def test_models_patterns_and_code_are_never_proven() -> None:
    """What is not evaluated is named: a choice without rules, a pattern, a predicate."""
    choice = {"stage": "s", "mode": "decide", "chosen": "x", "default": False}
    pattern = decision(rule(stated("x", "matches", "^c", "calm", True)))
    code = decision({"chosen": "yes", "predicate": "agents.angry", "matched": True, "conditions": []})
    for body, part in ((choice, "choice 1"), (pattern, "matches 1"), (code, "predicate 1")):
        found = decided(Forger(), body)
        assert (found["verdict"], found["parts"]) == ("consistent", [part])
