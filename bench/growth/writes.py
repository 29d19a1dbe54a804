"""Writes: the verbs that state something, each about one of many entities or about one that is large."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bench import raw
from bench.growth import shapes
from bench.growth.answers import person_schema
from bench.growth.case import Case, Facts
from bench.growth.meter import CALLS_MAX
from bench.growth.people import PEOPLE, person, picked
from bench.growth.slope import ALL, ANSWER
from woodrat.api.ledger import Ledger

BATCH = 500
"""Records of a batch; the same at every size."""
KNOWN_BATCH = 25
"""Records of a batch about known entities: so few that even in a small ledger each batch is about other ones."""


def cases() -> Iterator[Case]:
    """Yield the rows."""
    yield Case("store, known entity", "store", ANSWER, PEOPLE, _store_known)
    yield Case("store, new entity", "store", ANSWER, PEOPLE, _store_new)
    yield Case("store, batch of known", "store", ANSWER, PEOPLE, _store_batch)
    yield Case("store, batch of new", "store", ANSWER, PEOPLE, _store_new_batch)
    yield Case("store, long history", "store", ANSWER, shapes.LONG, _store_subject)
    yield Case("store, merged entities", "store", ALL, shapes.GROUP, _store_member)
    yield Case("store, many agents", "store", ALL, shapes.AGENTS, _store_subject)
    yield Case("store, hub after a merge", "store", ANSWER, shapes.HUB, _store_subject)
    yield Case("store, element of a collection", "store", ANSWER, shapes.COLLECTION, _store_element)
    yield Case("store, watched, another field", "store", ANSWER, shapes.WATCHED, _store_watched_other)
    yield Case("store, watched, evidence", "store", ALL, shapes.WATCHED, _store_watched)
    yield Case("store, watched by one run", "store", ALL, shapes.STAGES, _store_watched)
    yield Case("on_stale", "on_stale", ANSWER, shapes.WATCHED, _subscribe)
    yield Case("bytes of an observation, wide", "store", ANSWER, shapes.WIDE, _bytes_wide, unit="B", repeats=False)
    yield Case("correct", "correct", ANSWER, PEOPLE, _correct)
    yield Case("correct beside a collection", "correct", ANSWER, shapes.COLLECTION, _correct_beside)
    yield Case("retract", "retract", ANSWER, PEOPLE, _retract)
    yield Case("retract, long history", "retract", ANSWER, shapes.LONG, _retract_subject)
    yield Case("delete", "delete", ANSWER, PEOPLE, _delete)
    yield Case("restore", "restore", ANSWER, PEOPLE, _restore, _delete_some)
    yield Case("relate", "relate", ANSWER, PEOPLE, _relate)
    yield Case("relate, hub", "relate", ANSWER, shapes.HUB, _relate_hub)
    yield Case("remember", "remember", ANSWER, PEOPLE, _remember)
    yield Case("merge", "merge", ANSWER, PEOPLE, _merge)
    yield Case("merge, into many", "merge", ALL, shapes.GROUP, _merge_group, repeats=False)
    yield Case("split", "split", ANSWER, PEOPLE, _split)
    yield Case("split, from many", "split", ALL, shapes.GROUP, _split_group, repeats=False)
    yield Case("tag", "tag", ANSWER, PEOPLE, _tag)
    yield Case("schemas.register, new type", "schemas.register", ANSWER, PEOPLE, _register_new)
    yield Case("schemas.register, new version", "schemas.register", ANSWER, PEOPLE, _register)
    yield Case("schemas.register, other identity rules", "schemas.register", ANSWER, PEOPLE, _register_identity)
    yield Case("schemas.add_pack", "schemas.add_pack", ANSWER, PEOPLE, _add_pack)
    yield Case("schemas.check", "schemas.check", ANSWER, PEOPLE, _check)
    yield Case("sources.add", "sources.add", ANSWER, PEOPLE, _add_source)
    yield Case("interpretations.start", "interpretations.start", ANSWER, PEOPLE, _interpret)
    yield Case("interpretations.begin", "interpretations.begin", ANSWER, PEOPLE, _begin)
    yield Case("interpretations.continue_", "interpretations.continue_", ANSWER, PEOPLE, _continue)
    yield Case("admit", "admit", ANSWER, PEOPLE, _admit)


def _key(facts: Facts, number: int) -> str:
    return f"p{picked(number, facts['people']):07d}"


def _store_known(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.store({"entity_type": "person", "id": _key(facts, number), "score": -number - 2}).observations


def _remember(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.remember(
        f"Prefers letters, as said {number} times.", about=f"person/{_key(facts, number)}"
    ).observations


def _store_new(ledger: Ledger, facts: Facts, number: int) -> None:
    record = {"entity_type": "person", "id": f"new{number}", "email": f"new{number}@example.org", "city": "Lund"}
    assert ledger.store(record).observations


def _store_batch(ledger: Ledger, facts: Facts, number: int) -> None:
    size = min(KNOWN_BATCH, facts["smallest"] // 2)
    keys = {_key(facts, number * size + each) for each in range(size)}
    assert ledger.store([{"entity_type": "person", "id": key, "name": f"Batch {number}"} for key in sorted(keys)])


def _store_new_batch(ledger: Ledger, facts: Facts, number: int) -> None:
    names = [f"batch{number}-{each}" for each in range(min(BATCH, facts["smallest"] // 2))]
    records = [{"entity_type": "person", "id": name, "email": f"{name}@example.org", "score": 1} for name in names]
    assert ledger.store(records).observations


def _store_subject(ledger: Ledger, facts: Facts, number: int) -> None:
    record = {"entity_type": "person", "city": f"New city {number}", "$": {"key": "ana"}}
    assert ledger.store(record).observations


def _store_member(ledger: Ledger, facts: Facts, number: int) -> None:
    key = facts["member"].partition("/")[2]
    assert ledger.store({"entity_type": "person", "city": f"New city {number}", "$": {"key": key}}).observations


def _store_element(ledger: Ledger, facts: Facts, number: int) -> None:
    record = {"entity_type": "album", "tags": [f"new tag {number}"], "$": {"key": "one"}}
    assert ledger.store(record).observations


def _subscribe(ledger: Ledger, facts: Facts, number: int) -> None:
    with ledger.on_stale(lambda _: None):
        pass


def _store_watched_other(ledger: Ledger, facts: Facts, number: int) -> None:
    with ledger.on_stale(lambda _: None):
        ledger.store({"entity_type": "loan", "city": f"City {number}", "$": {"key": "busy"}})


def _store_watched(ledger: Ledger, facts: Facts, number: int) -> None:
    stale: list[object] = []
    with ledger.on_stale(stale.extend):
        ledger.store({"entity_type": "loan", "creditScore": 500 + 200 * (number % 2), "$": {"key": "busy"}})


def _bytes_wide(ledger: Ledger, facts: Facts, _: int) -> float:
    """Return the bytes on disk of an observation that changes one field."""
    path = Path(facts["path"])
    before = raw.file_bytes(path)
    for number in range(shapes.NARROW):
        fields = {f"field{number % facts['size']:04d}": number + 1_000}
        ledger.store({"entity_type": "settings", **fields, "$": {"key": "ana"}}, observed_at=shapes.seen_at(number + 1))
    return (raw.file_bytes(path) - before) / shapes.NARROW


def _correct(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.correct(f"person/{_key(facts, number)}", {"city": "Girona"}, reason="moved").observations


def _correct_beside(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.correct(facts["ref"], {"name": f"Winter {number}"}, reason="renamed").observations


def _retract(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.retract(facts["retractable"][number % len(facts["retractable"])], reason="misread").observations


def _retract_subject(ledger: Ledger, facts: Facts, number: int) -> None:
    observation = facts["observations"][number % len(facts["observations"])]
    assert ledger.retract(observation, reason="misread").observations


def _delete(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.delete(f"person/{_key(facts, number)}", reason="asked to").observations


def _delete_some(ledger: Ledger, facts: Facts) -> Facts:
    for ref in {f"person/{_key(facts, number)}" for number in range(CALLS_MAX + 1)}:
        ledger.delete(ref)
    return {}


def _restore(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.restore(f"person/{_key(facts, number)}").observations


def _relate(ledger: Ledger, facts: Facts, number: int) -> None:
    company = f"company/Company {picked(number, facts['companies']):07d}"
    assert ledger.relate(f"person/{_key(facts, number)}", "advises", company, key=f"k{number}").observations


def _relate_hub(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.relate("person/m000003", "admires", facts["ref"], key=f"k{number}").observations


def _pair(facts: Facts, number: int) -> tuple[str, str]:
    """Return two people whom nobody merged."""
    first = picked(number, facts["people"] // 10) * 10 + 5
    return person(first), person(first + 1)


def _merge(ledger: Ledger, facts: Facts, number: int) -> None:
    ledger.merge(*_pair(facts, number))


def _merge_group(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.merge(facts["ref"], facts["outsider"]).observations


def _split(ledger: Ledger, facts: Facts, number: int) -> None:
    """Split a pair that was merged when the ledger was built."""
    pairs = (facts["people"] + 98) // 100
    pair = person(number % pairs * 100), person(number % pairs * 100 + 1)
    if number >= pairs:
        ledger.merge(*pair)
    assert ledger.split(*pair).observations


def _split_group(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.split(facts["ref"], facts["member"]).observations


def _tag(ledger: Ledger, facts: Facts, number: int) -> None:
    ledger.tag(f"tag-{number}", facts["middle"])


def _add_pack(ledger: Ledger, facts: Facts, number: int) -> None:
    """The first time all its schemas are written; then it is found that they are there."""
    assert bool(ledger.schemas.add_pack("neotoma").hints) or not number


def _register_new(ledger: Ledger, facts: Facts, number: int) -> None:
    schema = {"title": f"kind{number}", "properties": {"name": {"type": "string"}}}
    assert ledger.schemas.register(schema).position > facts["head"]


def _register(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.schemas.register(person_schema(f"nickname{number}")).position > facts["head"]


def _register_identity(ledger: Ledger, facts: Facts, number: int) -> None:
    rules = [["id"], ["name"] if number % 2 else ["email"], [f"code{number}"]]
    schema = {**person_schema(f"code{number}"), "x-woodrat-identity": rules}
    assert ledger.schemas.register(schema).position > facts["head"]


def _check(ledger: Ledger, facts: Facts, number: int) -> None:
    ledger.schemas.check(person_schema(f"nickname{number}"))


def _add_source(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.sources.add(f"new letter {number}".encode())


def _interpret(ledger: Ledger, facts: Facts, number: int) -> None:
    with ledger.interpretations.start(facts["sources"][1], model="small-1", prompt="Who?") as reading:
        reading.store([{"entity_type": "person", "id": _key(facts, number), "name": f"Read again {number}"}])


def _begin(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.interpretations.begin(facts["sources"][1], model="small-1").id


def _continue(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.interpretations.continue_(facts["readings"][2]).id


def _admit(ledger: Ledger, facts: Facts, number: int) -> None:
    from woodrat.canon.ids import Ref
    from woodrat.state import observation

    statement = observation.say(
        Ref("person", _key(facts, number)),
        observation.ASSERT,
        agent="elsewhere",
        observed_at="2024-05-01T00:00:00.000000Z",
        fields={"score": -number - 5},
    )
    assert ledger.admit([("observation", statement.body)]).observations
