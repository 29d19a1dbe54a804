"""Verbs: what each of them writes, what its report says, and what a read shows afterwards."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from pathlib import Path
from typing import Annotated, Any, ClassVar

import msgspec
import pydantic
import pytest

import woodrat
from woodrat.canon import form
from woodrat.canon.ids import Ref
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.merge import Policy
from woodrat.merge.diff import FieldChange
from woodrat.state import builtin
from woodrat.state.observation import ASSERT, Observation, say
from woodrat.testing.clock import FixedClock

ANA = "contact/Ana"
BO = "contact/Bo"
TIME = "2026-01-01T00:00:00Z"

THING: dict[str, Any] = {
    "title": "thing",
    "properties": {
        "latest": {"x-woodrat-merge": "latest"},
        "highest_priority": {"x-woodrat-merge": "highest_priority"},
        "first": {"x-woodrat-merge": "first"},
        "max": {"x-woodrat-merge": "max"},
        "min": {"x-woodrat-merge": "min"},
        "union": {"type": "array", "x-woodrat-merge": "union"},
        "sum": {"type": ["integer", "string"], "x-woodrat-merge": "sum"},
        "append": {"type": "array", "x-woodrat-merge": "append"},
    },
}
"""A type with one field for each policy, of its name."""


@pytest.fixture
def ledger() -> woodrat.Ledger:
    """An empty ledger."""
    return woodrat.open(":memory:", agent="crm", clock=FixedClock())


@pytest.fixture
def agents() -> tuple[woodrat.Ledger, woodrat.Ledger]:
    """Two agents that write to one empty ledger."""
    engine, clock = InMemoryEngine(), FixedClock()

    def opened(agent: str) -> woodrat.Ledger:
        return woodrat.Ledger(engine, tenant="default", agent=agent, clock=clock, policies=registry(()))

    return opened("crm"), opened("mail")


def contact(name: str = "Ana", about: Any = None, **fields: Any) -> dict[str, Any]:
    """Return a record about a contact, with `about` as its `$`."""
    return {"entity_type": "contact", "name": name, **fields, **({} if about is None else {"$": about})}


def thing(**fields: Any) -> dict[str, Any]:
    """Return a record about the one thing."""
    return {"entity_type": "thing", "name": "t", **fields}


def observation(ledger: woodrat.Past, id: str) -> Observation:
    """Return a stored observation by its id."""
    (found,) = [stored.observation for stored in ledger.observations() if stored.observation.id == id]
    return found


def kinds(ledger: woodrat.Ledger) -> list[str]:
    """Return the kinds of all entries."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return [entry.kind for entry in view.entries()]


# store


def test_store_reports_what_is_new(ledger: woodrat.Ledger) -> None:
    """A report names positions, observations, entities, and every field before and after."""
    first = ledger.store([contact(city="Barcelona"), contact("Bo")])
    assert first.position == 2
    assert first.positions == (0, 1, 2)
    assert first.entities == (ANA, BO)
    assert len(first.observations) == 2
    assert first.known == ()
    assert [change.entity for change in first.changes] == [ANA, BO]
    assert first.changes[0].fields == (
        FieldChange("city", False, None, True, "Barcelona"),
        FieldChange("name", False, None, True, "Ana"),
    )
    assert (first.conflicts, first.hints, first.repeated, first.dry_run, first.id) == ((), (), False, False, None)

    second = ledger.store(contact(city="Girona", phone="1"))
    assert second.position == 3
    (change,) = second.changes
    assert (change.was_deleted, change.is_deleted) == (False, False)
    assert change.to_json() == {
        "entity": ANA,
        "was_deleted": False,
        "is_deleted": False,
        "fields": [
            {"field": "city", "had": True, "before": "Barcelona", "has": True, "after": "Girona", "part": False},
            {"field": "phone", "had": False, "before": None, "has": True, "after": "1", "part": False},
        ],
    }


def test_a_claim_that_loses_changes_nothing(ledger: woodrat.Ledger) -> None:
    """A late claim is stored and reported, with nothing changed."""
    ledger.store([contact(city="Barcelona")])
    report = ledger.store([contact(city="Reus")], observed_at="2020-01-01T00:00:00Z")
    assert len(report.observations) == 1
    assert report.changes == ()
    assert ledger.show(ANA).fields["city"] == "Barcelona"
    assert ledger.show(ANA).blame["city"].claims == 2


def test_the_same_observation_is_stored_once(ledger: woodrat.Ledger) -> None:
    """An observation with a stated time, sent again, is known: the answer is the first one, and says so."""
    first = ledger.store([contact(city="Barcelona")], observed_at=TIME)
    ledger.store([contact(city="Girona")])
    head = ledger.position
    again = ledger.store([contact(city="Barcelona")], observed_at=TIME)
    assert ledger.position == head
    assert again.known == first.observations
    assert again.repeated
    assert again.but(known=(), repeated=False) == first


def test_known_and_new_in_one_call(ledger: woodrat.Ledger) -> None:
    """Of a call that says something known and something new, only the new is written."""
    first = ledger.store([contact()], observed_at=TIME)
    both = ledger.store([contact(), contact("Bo")], observed_at=TIME)
    assert both.known == first.observations
    assert len(both.positions) == 1
    assert both.entities == (ANA, BO)
    assert not both.repeated


def test_the_same_record_twice_in_one_call(ledger: woodrat.Ledger) -> None:
    """Equal records of one call are one observation, and what the log did not hold before is not called known."""
    report = ledger.store([contact(), contact()])
    assert report.observations[0] == report.observations[1]
    assert len(list(ledger.observations(ANA))) == 1
    assert report.known == ()


def test_an_idempotency_key_answers_again(ledger: woodrat.Ledger) -> None:
    """A repeated request gets the first report, though the clock has moved on."""
    first = ledger.store([contact(city="Barcelona")], idempotency_key="crm-42")
    ledger.store([contact(city="Girona")])
    again = ledger.store([contact(city="Barcelona")], idempotency_key="crm-42")
    assert again == first.but(repeated=True)
    assert ledger.show(ANA).fields["city"] == "Girona"


def test_keys_are_per_agent(agents: tuple[woodrat.Ledger, woodrat.Ledger]) -> None:
    """Two agents may use the same key for different requests."""
    crm, mail = agents
    crm.store([contact(city="Barcelona")], idempotency_key="k")
    assert not mail.store([contact(city="Girona")], idempotency_key="k").repeated


def test_a_write_that_appends_nothing_claims_no_key(ledger: woodrat.Ledger) -> None:
    """A key sent with nothing new stays free for another request."""
    ledger.store([contact()], observed_at=TIME)
    assert ledger.store([contact()], idempotency_key="k", observed_at=TIME).repeated
    assert not ledger.store([contact("Bo")], idempotency_key="k").repeated


def test_a_dry_run_does_all_but_append(ledger: woodrat.Ledger) -> None:
    """A dry run reports what would happen, and leaves neither entries nor a key behind."""
    ledger.store([contact(city="Barcelona")])
    head, fingerprint = ledger.position, ledger.fingerprint()
    tried = ledger.store(
        [contact(city="Girona")], dry_run=True, idempotency_key="k", observed_at="2026-01-01T00:01:00Z"
    )
    assert tried.dry_run
    assert tried.changes[0].fields == (FieldChange("city", True, "Barcelona", True, "Girona"),)
    assert (ledger.position, ledger.fingerprint()) == (head, fingerprint)
    done = ledger.store([contact(city="Girona")], idempotency_key="k", observed_at="2026-01-01T00:01:00Z")
    assert done == tried.but(dry_run=False)


@pytest.mark.parametrize("verb", ["correct", "retract", "delete", "relate", "same_as", "merge", "register"])
def test_every_verb_has_a_dry_run(ledger: woodrat.Ledger, verb: str) -> None:
    """Whatever is asked for as a dry run leaves the log as it was."""
    said = ledger.store([contact(), contact("Bo")]).observations[0]
    head = ledger.position
    calls = {
        "correct": lambda: ledger.correct(ANA, {"city": "Girona"}, dry_run=True),
        "retract": lambda: ledger.retract(said, dry_run=True),
        "delete": lambda: ledger.delete(ANA, dry_run=True),
        "relate": lambda: ledger.relate(ANA, "knows", BO, dry_run=True),
        "same_as": lambda: ledger.relate(ANA, "same_as", BO, dry_run=True),
        "merge": lambda: ledger.merge(ANA, BO, dry_run=True),
        "register": lambda: ledger.schemas.register(THING, dry_run=True),
    }
    assert calls[verb]().dry_run
    assert ledger.position == head
    assert [str(member) for member in ledger.show(ANA).members] == [ANA]


def test_what_is_said_about_a_claim(ledger: woodrat.Ledger) -> None:
    """A record's own `$` comes before the arguments of its call."""
    source = ledger.sources.add(b"a letter", name="letter.txt")
    other = ledger.sources.add(b"another", name="other.txt")
    about = {
        "key": "ana-1",
        "observed_at": "2025-06-01T12:00:00+02:00",
        "valid_from": "2025-05-01T00:00:00Z",
        "priority": 7,
        "confidence": 0.5,
        "reason": "as she said",
        "source": source,
    }
    report = ledger.store(
        [contact(about=about), contact("Bo")],
        observed_at="2025-01-01T00:00:00Z",
        valid_from="2024-01-01T00:00:00Z",
        priority=3,
        source=other,
    )
    one, two = (observation(ledger, id) for id in report.observations)
    assert str(one.entity) == "contact/ana-1"
    assert (one.observed_at, one.valid_from) == ("2025-06-01T10:00:00.000000Z", "2025-05-01T00:00:00.000000Z")
    assert one.priority == 7
    assert one.agent == "crm"
    assert {key: one.optional[key] for key in ("confidence", "reason")} == {"confidence": 0.5, "reason": "as she said"}
    assert str(one.optional["source"]).startswith(source)
    assert (two.observed_at, two.valid_from) == ("2025-01-01T00:00:00.000000Z", "2024-01-01T00:00:00.000000Z")
    assert two.priority == 3
    assert str(two.optional["source"]).startswith(other)


def test_times_left_out(ledger: woodrat.Ledger) -> None:
    """What is left out is the log's own time, written into the observation; valid_from follows observed_at."""
    one = observation(ledger, ledger.store([contact()]).observations[0])
    with ledger.context.engine.view(ledger.tenant) as view:
        assert one.observed_at == one.valid_from == view.head().recorded_at
    two = observation(ledger, ledger.store([contact()], observed_at="2025-01-01T00:00:00Z").observations[0])
    assert two.valid_from == two.observed_at == "2025-01-01T00:00:00.000000Z"
    assert "priority" in two.to_json()


def test_identity_comes_from_the_first_rule_that_applies(ledger: woodrat.Ledger) -> None:
    """A contact is known by its folded email, else by its name; an open type by id, email, name or title."""
    records = [
        contact(email=" Ana@Example.org "),
        contact("Bo"),
        {"entity_type": "boat", "title": "Gull", "id": 7},
        {"entity_type": "boat", "title": "Gull"},
    ]
    assert ledger.store(records).entities == ("contact/ana@example.org", BO, "boat/7", "boat/Gull")
    assert ledger.show("contact/ana@example.org").fields["email"] == " Ana@Example.org "


def test_removing_elements(ledger: woodrat.Ledger) -> None:
    """`remove` takes elements out of a union; a later assertion puts them back."""
    ledger.store([contact(tags=["a", "b"])])
    ledger.store([{"entity_type": "contact", "$": {"key": "Ana", "remove": {"tags": ["a"]}}}])
    assert ledger.show(ANA).fields["tags"] == ["b"]
    ledger.store([contact(tags=["a", "c"])])
    assert ledger.show(ANA).fields["tags"] == ["a", "b", "c"]


def test_relations_in_the_same_call(ledger: woodrat.Ledger) -> None:
    """A record may relate to an entity of the same call, stated before or after it."""
    knows = [{"type": "knows", "to": BO, "fields": {"since": "school"}}, {"type": "knows", "to": BO, "key": "work"}]
    report = ledger.store([contact(about={"relate": knows}), contact("Bo")])
    assert report.entities == (
        ANA,
        'knows/["contact/Ana","contact/Bo"]',
        'knows/["contact/Ana","contact/Bo","work"]',
        BO,
    )
    one, two = ledger.related(ANA)
    assert (str(one.start), one.type, str(one.end), one.depth) == (ANA, "knows", BO, 1)
    assert {**one.fields, **two.fields} == {"since": "school"}
    assert ledger.related(BO) == ledger.related(ANA)


def test_versions_as_conditions(ledger: woodrat.Ledger) -> None:
    """A write whose condition holds is taken: by one version, by several, and for what is not known yet."""
    ledger.store([contact()], if_version={ANA: None})
    version = ledger.show(ANA).version
    ledger.store([contact(city="Girona")], if_version=version)
    ledger.store(
        [contact(about={"relate": [{"type": "knows", "to": BO}]}, city="Reus"), contact("Bo")],
        if_version={ANA: ledger.show(ANA).version, BO: None},
    )
    ledger.correct(ANA, {"city": "Olot"}, if_version=ledger.show(ANA).version)
    assert ledger.show(ANA).fields["city"] == "Olot"


# conflicts and hints


def test_two_agents_disagree(agents: tuple[woodrat.Ledger, woodrat.Ledger]) -> None:
    """Two agents that did not see each other's claims are in conflict; the report and the snapshot say so."""
    crm, mail = agents
    assert crm.store([contact(city="Barcelona")]).conflicts == ()
    report = mail.store([contact(city="Girona")])
    assert report.conflicts == (f"{ANA}#city",)
    snapshot = crm.show(ANA)
    assert snapshot.fields["city"] == "Girona"
    (conflict,) = snapshot.conflicts
    assert {(claim.agent, claim.value) for claim in conflict.claims} == {("crm", "Barcelona"), ("mail", "Girona")}
    assert [(str(found.entity), found.field) for found in crm.conflicts("contact")] == [(ANA, "city")]
    assert mail.store([contact(city="Reus")]).conflicts == (), "a conflict that was there before is not new"


def test_having_seen_is_no_conflict(agents: tuple[woodrat.Ledger, woodrat.Ledger]) -> None:
    """An agent that had seen the other's claim does not conflict with it."""
    crm, mail = agents
    seen = crm.store([contact(city="Barcelona")]).observations
    assert mail.store([contact(city="Girona")], saw=seen).conflicts == ()
    assert crm.conflicts().items == ()


def test_a_later_claim_against_a_correction(agents: tuple[woodrat.Ledger, woodrat.Ledger]) -> None:
    """A correction holds, and a later claim that differs from it is reported as a conflict."""
    crm, mail = agents
    crm.store([contact(city="Barcelona")])
    crm.correct(ANA, {"city": "Girona"})
    report = mail.store([contact(city="Barcelona")])
    assert report.changes == ()
    assert report.conflicts == (f"{ANA}#city",)
    assert crm.show(ANA).fields["city"] == "Girona"
    assert crm.correct(ANA, {"city": "Barcelona"}).conflicts == ()
    assert crm.conflicts().items == ()


def test_a_shared_identity_is_hinted_at(ledger: woodrat.Ledger) -> None:
    """Entities that share an identifying value stay apart, and the report says so until they are merged."""
    ledger.store([contact(email="ana@example.org")])
    report = ledger.store([contact()])
    assert report.hints == (
        "contact/Ana and contact/ana@example.org share name 'ana'; they stay apart unless you merge them.",
    )
    assert ledger.show(ANA).members == (ledger.show(ANA).entity,)
    ledger.merge(ANA, "contact/ana@example.org")
    assert ledger.store([contact(city="Reus")]).hints == ()


def test_a_repeated_answer_keeps_its_hints(ledger: woodrat.Ledger) -> None:
    """The second answer to a known observation is the first report, hints included."""
    ledger.store([contact(email="ana@example.org")])
    first = ledger.store([contact()], observed_at="2026-01-01T00:00:00Z")
    assert first.hints
    assert ledger.store([contact()], observed_at="2026-01-01T00:00:00Z").hints == first.hints


def test_a_deleted_entity_asserted(ledger: woodrat.Ledger) -> None:
    """An assertion never revives a deleted entity, and the report says so."""
    ledger.store([contact(city="Barcelona")])
    ledger.delete(ANA)
    report = ledger.store([contact(city="Girona")])
    assert report.hints == ("contact/Ana is deleted and stays so; restore it to see what was said.",)
    assert report.changes == ()
    assert ledger.show(ANA).deleted
    ledger.restore(ANA)
    assert ledger.show(ANA).fields["city"] == "Girona"


# delete and restore


def test_delete_and_restore_at_any_depth(ledger: woodrat.Ledger) -> None:
    """delete, restore, delete works; each report shows what vanished and what came back."""
    ledger.store([contact(city="Barcelona")])
    for _ in range(3):
        gone = ledger.delete(ANA, reason="asked to")
        assert (gone.changes[0].was_deleted, gone.changes[0].is_deleted) == (False, True)
        assert [(field.field, field.has) for field in gone.changes[0].fields] == [("city", False), ("name", False)]
        assert ledger.show(ANA).deleted
        assert ledger.show(ANA).fields == {}
        back = ledger.restore(ANA)
        assert (back.changes[0].was_deleted, back.changes[0].is_deleted) == (True, False)
        assert ledger.show(ANA).fields == {"city": "Barcelona", "name": "Ana"}


def test_deleting_what_is_deleted(ledger: woodrat.Ledger) -> None:
    """A marker that would change nothing is not written, and the report says so."""
    ledger.store([contact()])
    assert ledger.restore(ANA).hints == ("contact/Ana is not deleted; nothing was written.",)
    ledger.delete(ANA)
    head = ledger.position
    report = ledger.delete(ANA)
    assert report.hints == ("contact/Ana is already deleted; nothing was written.",)
    assert report.positions == ()
    assert not report.repeated
    assert ledger.position == head


# retract


def test_retract_and_retract_again(ledger: woodrat.Ledger) -> None:
    """A retraction brings back what was believed before, and can itself be withdrawn."""
    ledger.store([contact(city="Barcelona")])
    wrong = ledger.store([contact(city="Girona")]).observations[0]
    report = ledger.retract(wrong, reason="other Ana")
    assert report.changes[0].fields == (FieldChange("city", True, "Girona", True, "Barcelona"),)
    assert report.entities == (ANA,)
    assert observation(ledger, report.observations[0]).optional == {"reason": "other Ana"}
    again = ledger.retract(report.observations[0])
    assert again.changes[0].fields == (FieldChange("city", True, "Barcelona", True, "Girona"),)


def test_one_retraction_for_each_entity(ledger: woodrat.Ledger) -> None:
    """Observations of several entities are withdrawn in one call, by one retraction each."""
    one = ledger.store([contact(), contact("Bo")]).observations
    two = ledger.store([contact(city="Reus")]).observations
    report = ledger.retract([*one, *two])
    assert report.entities == (ANA, BO)
    for ref in (ANA, BO):
        with pytest.raises(woodrat.NotFound):
            ledger.show(ref)


def test_what_was_withdrawn_stays_readable(ledger: woodrat.Ledger) -> None:
    """Observations, history and blame of an entity stay readable when all that was said of it is withdrawn."""
    said = ledger.store([contact()]).observations
    ledger.retract(said)
    assert [stored.observation.op for stored in ledger.observations(ANA)] == ["assert", "retract"]
    assert [step.observation.op for step in ledger.history(ANA)] == ["assert", "retract"]
    assert [verdict.wins for verdict in ledger.blame(ANA, "name")["name"]] == [False]


# correct


def test_a_correction_names_what_it_replaces(ledger: woodrat.Ledger) -> None:
    """A correction names the corrections standing on its fields, and no others, unless the caller states them."""
    ledger.store([contact(city="Barcelona", phone="1")])
    city = ledger.correct(ANA, {"city": "Girona"}).observations[0]
    phone = ledger.correct(ANA, {"phone": "2"}).observations[0]
    both = ledger.correct(ANA, {"city": "Reus"}).observations[0]
    assert observation(ledger, both).replaces == {observation(ledger, city).digest}
    stated = ledger.correct(ANA, {"city": "Olot"}, replaces=phone).observations[0]
    assert observation(ledger, stated).replaces == {observation(ledger, phone).digest}
    assert [conflict.field for conflict in ledger.show(ANA).conflicts] == ["city"]


def test_correcting_a_union(ledger: woodrat.Ledger) -> None:
    """Under union a correction says what the collection holds: the other elements seen are removed."""
    ledger.store([contact(tags=["a", "b"])])
    report = ledger.correct(ANA, {"tags": ["b", "c"]})
    assert report.changes[0].fields == (FieldChange("tags", True, ["a", "b"], True, ["b", "c"]),)
    assert observation(ledger, report.observations[0]).remove == {"tags": ("a",)}
    ledger.store([contact(tags=["a", "d"])])
    assert ledger.show(ANA).fields["tags"] == ["b", "c", "d"], "a was taken out and stays out; d was not spoken of"
    ledger.correct(ANA, {"tags": []})
    assert ledger.show(ANA).fields["tags"] == []
    ledger.correct(ANA, {"tags": ["a"]})
    assert ledger.show(ANA).fields["tags"] == ["a"]


def test_correcting_one_element(ledger: woodrat.Ledger) -> None:
    """A correction may take single elements out, and leave the rest alone."""
    ledger.store([contact(tags=["a", "b"])])
    ledger.correct(ANA, remove={"tags": ["a"]})
    ledger.store([contact(tags=["a", "b", "c"])])
    assert ledger.show(ANA).fields["tags"] == ["b", "c"]


@pytest.mark.parametrize(
    ("policy", "values", "wrong", "right", "before", "after"),
    [("sum", (1, 10), 5, 100, 11, 101), ("append", (["a"], ["b"]), ["x"], ["c"], ["a", "b"], ["a", "c"])],
)
def test_correcting_one_part(
    ledger: woodrat.Ledger, policy: str, values: Any, wrong: Any, right: Any, before: Any, after: Any
) -> None:
    """Under sum and append a correction stands in for one original, and a chain of them ends in its last."""
    ledger.schemas.register(THING)
    ledger.store([thing(**{policy: values[0]})])
    second = ledger.store([thing(**{policy: values[1]})]).observations[0]
    assert ledger.show("thing/t").fields[policy] == before
    one = ledger.correct("thing/t", {policy: wrong}, replaces=second).observations[0]
    two = ledger.correct("thing/t", {policy: right}, replaces=second).observations[0]
    assert ledger.show("thing/t").fields[policy] == after
    assert observation(ledger, one).digest in observation(ledger, two).replaces
    ledger.retract(two)
    assert ledger.show("thing/t").fields[policy] == ([*values[0], *wrong] if policy == "append" else 6)
    three = ledger.correct("thing/t", {policy: right}, replaces=one).observations[0]
    assert ledger.show("thing/t").fields[policy] == after
    assert observation(ledger, second).digest in observation(ledger, three).replaces


def test_correcting_parts_of_two_originals_at_once(ledger: woodrat.Ledger) -> None:
    """One correction may stand in for an original in each of two fields, and be corrected again in either."""
    one = ledger.store([contact(interactions=1)]).observations[0]
    two = ledger.store([contact(notes=["a"])]).observations[0]
    since = "2026-01-01T00:00:00Z"
    both = ledger.correct(ANA, {"interactions": 5, "notes": ["b"]}, replaces=[one, two], valid_from=since).observations
    assert len(both) == 1
    assert ledger.show(ANA).fields["interactions"] == 5
    ledger.correct(ANA, {"interactions": 6}, replaces=both)
    assert ledger.show(ANA).fields["interactions"] == 6
    assert ledger.show(ANA).fields["notes"] == ["b"]


def test_a_correction_of_a_sum_beside_another_field(ledger: woodrat.Ledger) -> None:
    """Naming the original of a sum does not keep a correction from replacing what stands on its other fields."""
    one = ledger.store([contact(interactions=1, city="Barcelona")]).observations[0]
    ledger.correct(ANA, {"city": "Girona"})
    ledger.correct(ANA, {"interactions": 2, "city": "Reus"}, replaces=one, observed_at="2020-01-01T00:00:00Z")
    assert ledger.show(ANA).fields["interactions"] == 2
    assert ledger.show(ANA).fields["city"] == "Reus", "whatever the clocks say"


def test_a_correction_holds_since_the_claim_it_corrects(ledger: woodrat.Ledger) -> None:
    """A correction takes valid_from of the claim it corrects, so a read of that time shows it."""
    ledger.store([contact(city="Barcelona")], valid_from="2020-01-01T00:00:00Z")
    report = ledger.correct(ANA, {"city": "Girona"})
    assert observation(ledger, report.observations[0]).valid_from == "2020-01-01T00:00:00.000000Z"
    assert ledger.at(valid_at="2021-01-01T00:00:00Z").show(ANA).fields["city"] == "Girona"


def test_one_observation_for_each_time(ledger: woodrat.Ledger) -> None:
    """A correction of claims that hold since different times is said in one observation for each."""
    ledger.store([contact(city="Barcelona")], valid_from="2020-01-01T00:00:00Z")
    ledger.store([contact(phone="1")], valid_from="2024-01-01T00:00:00Z")
    report = ledger.correct(ANA, {"city": "Girona", "phone": "2", "role": "chief"})
    said = [observation(ledger, id) for id in report.observations]
    assert [(sorted(o.fields), o.valid_from[:4]) for o in said] == [
        (["city"], "2020"),
        (["phone"], "2024"),
        (["role"], "2026"),
    ]
    assert len({o.observed_at for o in said}) == 1
    stated = ledger.correct(ANA, {"city": "Reus", "phone": "3"}, valid_from="2022-01-01T00:00:00Z")
    assert len(stated.observations) == 1


def test_correcting_what_has_no_value(ledger: woodrat.Ledger) -> None:
    """A correction may state a field that nothing was said of."""
    ledger.store([contact()])
    assert ledger.correct(ANA, {"city": "Girona"}).changes[0].fields == (
        FieldChange("city", False, None, True, "Girona"),
    )


# reading at a moment


def test_as_of_and_effective(ledger: woodrat.Ledger) -> None:
    """One clock bounds what was known, the other what was true; together they bound both."""
    old = ledger.store([contact(city="Barcelona")], valid_from="2020-01-01T00:00:00Z").position
    new = ledger.store([contact(city="Girona")], valid_from="2024-01-01T00:00:00Z").position

    def city(past: woodrat.Past) -> object:
        return past.show(ANA).fields["city"]

    assert city(ledger.at(old)) == "Barcelona"
    assert city(ledger.at(new)) == "Girona"
    assert city(ledger.at(valid_at="2022-01-01T00:00:00Z")) == "Barcelona"
    assert city(ledger.at(valid_at="2024-01-01T00:00:00Z")) == "Girona"
    assert city(ledger.at(old, valid_at="2025-01-01T00:00:00Z")) == "Barcelona"
    assert city(ledger.at(new, valid_at="2022-01-01T01:00:00+01:00")) == "Barcelona"
    assert city(ledger.at(old).at(valid_at="2025-01-01T00:00:00Z").at(new)) == "Girona"
    with pytest.raises(woodrat.NotFound):
        ledger.at(valid_at="2019-01-01T00:00:00Z").show(ANA)
    with pytest.raises(woodrat.NotFound):
        ledger.at(-1).show(ANA)


def test_a_position_is_one_once_the_log_has_reached_it(ledger: woodrat.Ledger) -> None:
    """A position beyond the end is not found, whatever was read before, until something is written there."""
    end = ledger.store([contact(city="Barcelona")]).position
    for _ in range(2):
        assert ledger.at(end).show(ANA).fields["city"] == "Barcelona"
        with pytest.raises(woodrat.NotFound, match=f"the log ends at {end}"):
            ledger.at(end + 1)
        with pytest.raises(woodrat.NotFound):
            ledger.at(-2)
    ledger.store([contact(city="Girona")])
    assert ledger.at(end + 1).show(ANA).fields["city"] == "Girona"
    assert ledger.at(end).show(ANA).fields["city"] == "Barcelona"


def test_moments(ledger: woodrat.Ledger) -> None:
    """A moment is a position, a timestamp, `now` or a tag; a timestamp reads what was recorded by then."""
    one = ledger.store([contact(city="Barcelona")])
    recorded = observation(ledger, one.observations[0]).observed_at
    tag = ledger.tag("release-3")
    two = ledger.store([contact(city="Girona")])
    assert tag.positions == (two.position - 1,)
    assert ledger.at(recorded).position == one.position
    assert ledger.at("2025-01-01T00:00:00Z").position == -1
    assert ledger.at("2027-01-01T00:00:00+01:00").position == two.position
    assert ledger.at("now").position == ledger.position == two.position
    assert ledger.at(str(one.position)).position == one.position
    assert ledger.at("@release-3").position == one.position
    ledger.tag("release-3", two.position)
    assert ledger.at("@release-3").show(ANA).fields["city"] == "Girona"
    ledger.tag("before", recorded)
    assert ledger.at("@before").show(ANA).fields["city"] == "Barcelona"
    assert ledger.at("@before").show(ANA).position == one.position


# relate, merge, split


def test_relate_and_relate_again(ledger: woodrat.Ledger) -> None:
    """A relation is an entity: deleted like one, and restored by being stated again."""
    ledger.store([contact(), contact("Bo")])
    edge = 'knows/["contact/Ana","contact/Bo"]'
    report = ledger.relate(ANA, "knows", BO, fields={"since": 2020}, reason="met")
    assert report.entities == (edge,)
    assert ledger.show(edge).fields == {"from": ANA, "to": BO, "since": 2020}
    assert [(str(link.relation), link.fields) for link in ledger.related(BO)] == [(edge, {"since": 2020})]
    ledger.delete(edge)
    assert ledger.related(ANA).items == ()
    again = ledger.relate(ANA, "knows", BO)
    assert [observation(ledger, id).op for id in again.observations] == ["restore", "assert"]
    assert (again.changes[0].was_deleted, again.changes[0].is_deleted) == (True, False)
    assert len(list(ledger.related(ANA))) == 1


def test_related_to_a_depth(ledger: woodrat.Ledger) -> None:
    """Relations are found as far as asked, each at its smallest distance."""
    ledger.store([contact(name) for name in ("Ana", "Bo", "Cy", "Di")])
    for start, end in (("Ana", "Bo"), ("Bo", "Cy"), ("Cy", "Di"), ("Cy", "Ana")):
        ledger.relate(f"contact/{start}", "knows", f"contact/{end}")
    found = [(link.start.key, link.end.key, link.depth) for link in ledger.related(ANA, depth=2)]
    assert found == [("Ana", "Bo", 1), ("Cy", "Ana", 1), ("Bo", "Cy", 2), ("Cy", "Di", 2)]
    assert len(list(ledger.related(ANA))) == 2


def test_merge_and_split(ledger: woodrat.Ledger) -> None:
    """Joined entities are folded together, whichever is asked about; a split parts them again."""
    ledger.store([contact(city="Barcelona"), contact("Bo", phone="1")])
    report = ledger.merge(BO, ANA)
    assert report.entities == ('same_as/["contact/Ana","contact/Bo"]',)
    assert {change.entity for change in report.changes} >= {ANA, BO}
    for ref in (ANA, BO):
        snapshot = ledger.show(ref)
        assert {str(member) for member in snapshot.members} == {ANA, BO}
        assert snapshot.fields == {"city": "Barcelona", "name": "Bo", "phone": "1"}
    assert len(list(ledger.observations(ANA))) == 2
    assert ledger.split(ANA).hints == ()
    assert ledger.show(ANA).fields == {"city": "Barcelona", "name": "Ana"}
    ledger.relate(ANA, "same_as", BO)
    assert len(ledger.show(BO).members) == 2, "relating by same_as is merging"


def test_split_says_when_a_path_remains(ledger: woodrat.Ledger) -> None:
    """Parting two that are joined through a third leaves them one, and the report says so."""
    ledger.store([contact(), contact("Bo"), contact("Cy")])
    ledger.merge(ANA, BO)
    ledger.merge(BO, "contact/Cy")
    ledger.merge("contact/Cy", ANA)
    assert ledger.split(ANA, BO).hints == (
        "contact/Ana and contact/Bo are still merged through other entities; split those too.",
    )
    assert len(ledger.show(ANA).members) == 3
    assert ledger.split(ANA).hints == ()
    assert len(ledger.show(ANA).members) == 1
    assert len(ledger.show(BO).members) == 2


def test_a_correction_of_a_group(ledger: woodrat.Ledger) -> None:
    """A correction of one member holds for the group while they are joined, and stays with the member after."""
    ledger.store([contact(city="Barcelona"), contact("Bo", city="Girona")])
    ledger.merge(ANA, BO)
    ledger.correct(ANA, {"city": "Reus"})
    assert ledger.show(BO).fields["city"] == "Reus"
    ledger.split(ANA)
    assert ledger.show(ANA).fields["city"] == "Reus"
    assert ledger.show(BO).fields["city"] == "Girona"


# sources and interpretations


def test_a_source_is_stored_once_and_every_delivery_recorded(ledger: woodrat.Ledger, tmp_path: Path) -> None:
    """The same content is one source, whatever it is called; each delivery is an entry of its own."""
    file = tmp_path / "contract.pdf"
    file.write_bytes(b"%PDF")
    one = ledger.sources.add(file)
    two = ledger.sources.add(b"%PDF", name="copy.bin", media_type="application/x-copy")
    assert one == two
    assert kinds(ledger) == ["source", "received", "received"]
    assert ledger.sources.content(one) == b"%PDF"
    assert [(d.source, d.agent, d.name, d.media_type) for d in ledger.sources.list()] == [
        (one, "crm", "contract.pdf", None),
        (one, "crm", "copy.bin", "application/x-copy"),
    ]
    assert (
        ledger.sources.add(str(file), idempotency_key="k") == ledger.sources.add(str(file), idempotency_key="k") == one
    )
    assert len(list(ledger.sources.list())) == 3
    assert ledger.at(1).sources.list().items == ledger.sources.list().items[:1]


def test_an_interpretation_that_is_done(ledger: woodrat.Ledger) -> None:
    """What is stored inside a reading names it and its source; its end says what it cost."""
    source = ledger.sources.add(b"Payment: net 30", name="kline.txt")
    with ledger.interpretations.start(
        source, model="m-1", prompt="Read.", parameters={"t": 0}, extractor="x-1"
    ) as reading:
        report = reading.store([{"entity_type": "contract", "name": "kline", "payment_terms": "Net-30"}])
        (running,) = ledger.interpretations.list()
        assert running.status == "started"
        reading.usage["input"] = 12
    said = observation(ledger, report.observations[0])
    assert said.optional["interpretation"] == reading.id
    assert str(said.optional["source"]).startswith(source)
    (done,) = ledger.interpretations.list()
    assert (done.id, done.status, done.model, done.extractor) == (reading.id, "done", "m-1", "x-1")
    assert done.prompt is not None
    assert len(done.prompt) == 64, "a digest, never the prompt itself"
    assert (done.parameters, done.usage, done.error) == ({"t": 0}, {"input": 12}, None)
    assert kinds(ledger)[2:] == ["interpretation.started", "schema", "observation", "interpretation.ended"]
    verdict = ledger.blame("contract/kline", "payment_terms")["payment_terms"][0]
    assert (verdict.source, verdict.interpretation) == (source, reading.id)


def test_an_interpretation_that_fails(ledger: woodrat.Ledger) -> None:
    """A reading that fails is recorded with its error, keeps what it stored, and the error goes on."""
    source = ledger.sources.add(b"x", name="x")

    def read() -> None:
        with ledger.interpretations.start(source) as reading:
            reading.store([contact()])
            raise RuntimeError("model gone")

    with pytest.raises(RuntimeError, match="model gone"):
        read()
    (failed,) = ledger.interpretations.list()
    assert (failed.status, failed.error) == ("error", "RuntimeError: model gone")
    assert ledger.show(ANA).fields["name"] == "Ana"


# schemas


@dataclasses.dataclass
class Parcel:
    """A dataclass."""

    __woodrat__: ClassVar = {"identity": [["code"]]}
    code: str
    stops: Annotated[list[str], woodrat.Merge("append")]
    weight: int | None = None


class Crate(pydantic.BaseModel):
    """A Pydantic model."""

    name: str
    marks: Annotated[list[str], woodrat.Merge("union")] = []


class ShippingLabel(msgspec.Struct):
    """A msgspec struct."""

    name: str
    size: int = 0


@pytest.mark.parametrize(
    ("model", "entity_type", "good", "bad"),
    [
        pytest.param(THING, "thing", {"name": "t", "sum": 1}, {"name": "t", "sum": True}, id="dict"),
        pytest.param(Parcel, "parcel", {"code": "p", "stops": []}, {"code": 5, "stops": []}, id="dataclass"),
        pytest.param(Crate, "crate", {"name": "c", "marks": ["x"]}, {"name": "c", "marks": [1]}, id="Pydantic"),
        pytest.param(ShippingLabel, "shipping_label", {"name": "s"}, {"name": "s", "size": "x"}, id="msgspec"),
    ],
)
def test_register(ledger: woodrat.Ledger, model: object, entity_type: str, good: Any, bad: Any) -> None:
    """A schema comes from a dict, a dataclass, a Pydantic model or a msgspec struct, and is in force at once."""
    report = ledger.schemas.register(model)
    schema = ledger.schemas.show(entity_type)
    assert report.id == schema.id
    assert (schema.type, schema.version) == (entity_type, 1)
    assert [found.type for found in ledger.schemas.list()] == [entity_type]
    assert ledger.store([{"entity_type": entity_type, **good}]).changes
    with pytest.raises(woodrat.Refused):
        ledger.store([{"entity_type": entity_type, **bad}])


def test_what_annotations_say_of_policies(ledger: woodrat.Ledger) -> None:
    """A merge policy stated beside an annotation takes part in the merge."""
    ledger.schemas.register(Parcel)
    ledger.schemas.register(Crate)
    for stop in ("Reus", "Olot"):
        ledger.store([{"entity_type": "parcel", "code": "p", "stops": [stop]}])
        ledger.store([{"entity_type": "crate", "name": "c", "marks": [stop]}])
    assert ledger.show("parcel/p").fields["stops"] == ["Reus", "Olot"]
    assert ledger.show("crate/c").fields["marks"] == ["Olot", "Reus"]


def test_versions_left_out(ledger: woodrat.Ledger) -> None:
    """A version left out is the highest plus one; the same schema again is known and writes nothing."""
    one = ledger.schemas.register({"title": "boat"})
    assert ledger.schemas.show("boat").version == 1
    again = ledger.schemas.register({"title": "boat"})
    assert (again.id, again.positions) == (one.id, ())
    assert again.hints == ("This is version 1 of boat, which is registered already.",)
    ledger.schemas.register({"title": "boat", "properties": {"crew": {"type": "integer"}}})
    assert ledger.schemas.show("boat").version == 2
    ledger.schemas.register({"title": "boat", "description": "x"}, version=7)
    ledger.schemas.register({"title": "boat"})
    assert ledger.schemas.show("boat").version == 8, "the content of version 1, but not the one in force"
    known = ledger.schemas.register({"title": "boat", "description": "x", "x-woodrat-version": 7})
    assert known.positions == ()
    assert ledger.at(one.position).schemas.show("boat").version == 1


def test_a_lower_version_does_not_come_into_force(ledger: woodrat.Ledger) -> None:
    """The highest version is in force, whenever it was registered."""
    ledger.schemas.register(
        {"title": "boat", "x-woodrat-version": 5, "properties": {"crew": {"x-woodrat-merge": "max"}}}
    )
    ledger.schemas.register(
        {"title": "boat", "x-woodrat-version": 3, "properties": {"crew": {"x-woodrat-merge": "min"}}}
    )
    assert ledger.schemas.show("boat").version == 5


def test_built_in_schemas_enter_the_log_on_first_use(ledger: woodrat.Ledger) -> None:
    """The log itself says how a built-in type merges, from its first record on, and only once."""
    assert ledger.schemas.show("contact") == builtin.schemas()["contact"], "known before it is used"
    assert ledger.schemas.list().items == ()
    ledger.store([contact(), contact("Bo"), {"entity_type": "boat", "name": "g"}])
    ledger.store([contact(city="Reus")])
    assert kinds(ledger) == ["schema", "observation", "observation", "observation", "observation"]
    assert ledger.schemas.list().items == (builtin.schemas()["contact"],)


def test_a_new_version_of_a_built_in_type(ledger: woodrat.Ledger) -> None:
    """A tenant's own version of a built-in type comes into force over the built-in one."""
    ledger.store([contact(city="Barcelona")])
    ledger.schemas.register(
        {"title": "contact", "properties": {"city": {"type": "string", "x-woodrat-merge": "first"}}}
    )
    assert ledger.schemas.show("contact").version == 2
    ledger.store([contact(city="Girona")])
    assert ledger.show(ANA).fields["city"] == "Barcelona"


def test_a_changed_policy_merges_again(ledger: woodrat.Ledger) -> None:
    """A new policy applies to everything said before it; claims that no longer fit are kept as losers."""
    for crew in (3, 9, 2):
        ledger.store([{"entity_type": "boat", "name": "g", "crew": crew}])
    ledger.store([{"entity_type": "boat", "name": "g", "crew": "many"}])
    assert ledger.show("boat/g").fields["crew"] == "many"
    ledger.schemas.register({"title": "boat", "properties": {"crew": {"type": "integer", "x-woodrat-merge": "max"}}})
    snapshot = ledger.show("boat/g")
    assert snapshot.fields["crew"] == 9
    assert (snapshot.blame["crew"].claims, snapshot.blame["crew"].misfits) == (3, 1)


def test_strict() -> None:
    """A strict ledger takes built-in and registered types."""
    strict = woodrat.open(":memory:", clock=FixedClock(), strict=True)
    strict.store([contact()])
    strict.schemas.register({"title": "boat"})
    strict.store([{"entity_type": "boat", "name": "g"}])
    assert strict.show("boat/g").fields == {"name": "g"}


# a policy of one's own


def _spread(a: Any, b: Any) -> Any:
    return [min(a[0], b[0]), max(a[1], b[1])]


def _span(joined: Any) -> Any:
    return f"{joined[0]}..{joined[1]}"


SPREAD: Policy = woodrat.own_policy(
    "spread",
    1,
    lift=lambda claim: [claim.value, claim.value],
    join=_spread,
    read=_span,
    json_types=["integer"],
)
KEEP_FIRST: Policy = woodrat.own_policy("keep_first", 1, lift=lambda claim: claim.value, join=lambda a, b: a)


def _own(policy: Policy) -> woodrat.Ledger:
    ledger = woodrat.open(":memory:", clock=FixedClock(), policies=[policy])
    ledger.schemas.register(
        {"title": "probe", "properties": {"heat": {"type": "integer", "x-woodrat-merge": policy.name.to_json()}}}
    )
    for heat in (20, 35, 12):
        ledger.store([{"entity_type": "probe", "name": "p", "heat": heat}])
    return ledger


def test_own_policy_end_to_end() -> None:
    """A policy of one's own merges, is named in blame, yields to corrections, and keeps the law of order."""
    ledger = _own(SPREAD)
    snapshot = ledger.show("probe/p")
    assert snapshot.fields["heat"] == "12..35"
    assert (snapshot.blame["heat"].policy, snapshot.blame["heat"].claims) == ("spread@1", 3)
    assert ledger.at(2).show("probe/p").fields["heat"] == "20..35"
    with pytest.raises(woodrat.Refused):
        ledger.store([{"entity_type": "probe", "name": "p", "heat": "hot"}])
    ledger.correct("probe/p", {"heat": 18})
    assert ledger.show("probe/p").fields["heat"] == 18
    assert ledger.prove_order(shuffles=20).holds


def test_the_code_of_a_policy_is_part_of_its_name() -> None:
    """Other code gives another name, so a changed policy cannot pass for the one a schema names."""
    one = woodrat.own_policy("p", 1, lift=lambda claim: claim.value, join=_spread)
    two = woodrat.own_policy("p", 1, lift=lambda claim: [claim.value], join=_spread)
    assert one.name.code != two.name.code
    assert one.name.code is not None
    assert len(one.name.code) == 64


# order and the whole state


def test_prove_order_holds(ledger: woodrat.Ledger) -> None:
    """Whatever was written in whatever way, feeding it in other orders ends in the same state."""
    ledger.schemas.register(THING)
    one = ledger.store([thing(latest=1, sum=1, union=["a"], append=["x"]), contact(), contact("Bo")]).observations[0]
    two = ledger.store([thing(latest=2, sum="0.5", union=["b"], append=["y"], max=3)]).observations[0]
    ledger.correct("thing/t", {"sum": 5}, replaces=one)
    ledger.correct("thing/t", {"union": ["b"]})
    ledger.retract(two)
    ledger.merge(ANA, BO)
    ledger.delete(BO)
    ledger.relate(ANA, "owns", "thing/t")
    ledger.schemas.register({**THING, "description": "again"})
    proof = ledger.prove_order(shuffles=30)
    assert proof.holds
    assert proof.differing == ()
    assert proof.observations == len(list(ledger.observations()))
    assert proof.to_json() == {
        "observations": proof.observations,
        "shuffles": 30,
        "fingerprint": ledger.fingerprint(),
        "differing": [],
        "holds": True,
    }


def test_prove_order_finds_a_policy_that_depends_on_order() -> None:
    """A policy that keeps whatever came first is found out, and the orders that show it are named."""
    proof = _own(KEEP_FIRST).prove_order(shuffles=20)
    assert not proof.holds
    assert proof.differing
    assert proof.to_json()["holds"] is False


def test_the_fingerprint_is_of_values(ledger: woodrat.Ledger) -> None:
    """Saying again what is believed changes no fingerprint; with provenance it does."""
    ledger.store([contact(city="Barcelona")])
    values, provenance = ledger.fingerprint(), ledger.fingerprint(provenance=True)
    ledger.store([contact(city="Barcelona")])
    assert ledger.fingerprint() == values
    assert ledger.fingerprint(provenance=True) != provenance
    ledger.store([contact(city="Girona")])
    assert ledger.fingerprint() != values
    assert ledger.at(ledger.position).fingerprint() == ledger.fingerprint()


def test_admit_takes_what_another_log_holds(ledger: woodrat.Ledger) -> None:
    """Observations and schemas of another log end in the same state; once more they are known."""
    ledger.store([contact(city="Barcelona")])
    ledger.correct(ANA, {"city": "Girona"})
    with ledger.context.engine.view(ledger.tenant) as view:
        bodies = [(entry.kind, entry.body) for entry in view.entries() if entry.body is not None]
    other = woodrat.open(":memory:", clock=FixedClock(seed="other"))
    report = other.admit(reversed(bodies))
    assert other.fingerprint() == ledger.fingerprint()
    assert len(report.observations) == 2
    again = other.admit(bodies)
    assert again.repeated
    assert other.position == 2


def test_admit_keeps_what_does_not_fit(ledger: woodrat.Ledger) -> None:
    """An imported claim that does not fit is kept as a loser that says so, and changes nothing."""
    loose = woodrat.open(":memory:", clock=FixedClock())
    loose.schemas.register({"title": "contact", "x-woodrat-version": 2})
    loose.store([contact(city=42)], observed_at="2026-01-01T00:00:00Z")
    with loose.context.engine.view(loose.tenant) as view:
        bodies = [(entry.kind, entry.body) for entry in view.entries(kinds={"observation"}) if entry.body is not None]
    ledger.store([contact(city="Barcelona")], observed_at="2025-01-01T00:00:00Z")
    report = ledger.admit(bodies)
    assert len(report.observations) == 1
    assert report.changes == ()
    loser = [verdict for verdict in ledger.blame(ANA, "city")["city"] if not verdict.wins]
    assert [verdict.reason for verdict in loser] == ["does not fit: expected text, got 42 (number)"]


def test_everything_returned_is_json(ledger: woodrat.Ledger) -> None:
    """Every record a verb returns has a JSON shape with one canonical form."""
    source = ledger.sources.add(b"x", name="x")
    with ledger.interpretations.start(source) as reading:
        report = reading.store([contact(city="Reus"), contact("Bo")])
    ledger.relate(ANA, "knows", BO)
    returned: list[Any] = [
        report,
        ledger.show(ANA),
        ledger.schemas.show("contact"),
        ledger.prove_order(shuffles=1),
        *ledger.history(ANA),
        *ledger.timeline(),
        *ledger.blame(ANA)["city"],
        *ledger.diff(-1, "now"),
        *ledger.related(ANA),
        *ledger.sources.list(),
        *ledger.interpretations.list(),
        *ledger.values().values(),
    ]
    for record in returned:
        assert form.encode(record.to_json())


def test_a_withdrawn_fact_said_again(ledger: woodrat.Ledger) -> None:
    """The same observation after its withdrawal is known and changes nothing, and the report says what to do."""
    ledger.store([contact(city="Barcelona")], observed_at=TIME)
    fixed = ledger.correct(ANA, {"city": "Girona"}, observed_at=TIME).observations[0]
    ledger.retract(fixed)
    again = ledger.correct(ANA, {"city": "Girona"}, observed_at=TIME)
    assert again.known == (fixed,)
    assert ledger.show(ANA).fields["city"] == "Barcelona"
    assert again.hints == (
        f"{fixed} was said before and has been withdrawn; "
        "state another observed_at to state it again, or retract its retraction.",
    )


def test_a_corrected_union_holds_whatever_is_withdrawn(ledger: woodrat.Ledger) -> None:
    """A correction of a whole collection keeps out what an earlier, since withdrawn one kept out."""
    ledger.store([contact(tags=["old"])])
    emptied = ledger.correct(ANA, {"tags": []}).observations[0]
    ledger.correct(ANA, {"tags": ["new"]})
    ledger.retract(emptied)
    assert ledger.show(ANA).fields["tags"] == ["new"]


def _wider(a: Any, b: Any) -> Any:
    return max(a, b)


def test_a_value_an_own_policy_cannot_take(ledger: woodrat.Ledger) -> None:
    """A value of a type that a policy does not take is refused by name, and from elsewhere is kept as a loser."""
    widest = woodrat.own_policy("widest", 1, lift=lambda c: c.value, join=_wider, json_types=["integer"], code="c" * 64)
    engine = InMemoryEngine()
    own = woodrat.Ledger(engine, tenant="t", agent="crm", clock=FixedClock(), policies=registry([widest]))
    own.schemas.register({"title": "band", "properties": {"width": {"x-woodrat-merge": widest.name.to_json()}}})
    own.store({"entity_type": "band", "name": "b", "width": 3})
    with pytest.raises(woodrat.Refused, match="widest@1 takes a whole number"):
        own.store({"entity_type": "band", "name": "b", "width": "wide"})
    foreign = say(
        Ref("band", "b"), ASSERT, agent="web", observed_at="2026-01-01T00:00:00.000000Z", fields={"width": "w"}
    )
    own.admit([("observation", foreign.body)])
    assert own.show("band/b").fields["width"] == 3
    assert own.show("band/b").blame["width"].misfits == 1


def test_a_report_can_be_sent_elsewhere(ledger: woodrat.Ledger) -> None:
    """A report that nobody looked at yet can be copied and pickled, and cannot be changed."""
    report = ledger.store(contact())
    assert pickle.loads(pickle.dumps(report)) == report == copy.deepcopy(report)
    with pytest.raises(AttributeError, match="not changed"):
        report.position = 3
    with pytest.raises(AttributeError, match="no colour"):
        print(report.colour)
