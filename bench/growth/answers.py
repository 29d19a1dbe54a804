"""Answers: the verbs that read the state of entities and answer at once."""

from __future__ import annotations

from collections.abc import Iterator

from bench.growth import people, shapes
from bench.growth.case import Case, Facts
from bench.growth.people import PEOPLE, person, picked, someone
from bench.growth.slope import ALL, ANSWER, PAGE
from woodrat.api.ledger import Ledger

VALID_AT = people.MIDDLE


def cases() -> Iterator[Case]:
    """Yield the rows."""
    yield Case("show", "show", ANSWER, PEOPLE, _show)
    yield Case("show, past", "show", ANSWER, PEOPLE, _show_past)
    yield Case("show, effective time", "show", ANSWER, PEOPLE, _show_effective)
    yield Case("show, long history", "show", ANSWER, shapes.LONG, _show_subject)
    yield Case("show, past, long history", "show", ANSWER, shapes.LONG, _show_subject_past)
    yield Case("show, merged entities", "show", ALL, shapes.GROUP, _show_ref)
    yield Case("show, many agents", "show", ALL, shapes.AGENTS, _show_ref)
    yield Case("search, beginning of a word", "search", PAGE, PEOPLE, _search_prefix)
    yield Case("search, rare word", "search", PAGE, PEOPLE, _search_rare)
    yield Case("search, rare word, past", "search", PAGE, PEOPLE, _search_past)
    yield Case("search, common word, past", "search", PAGE, PEOPLE, _search_common_past)
    yield Case("search, effective time", "search", ALL, PEOPLE, _search_effective)
    yield Case("search, after a write", "search", ANSWER, PEOPLE, _search_after_write, _search_first)
    yield Case("search, after a new schema", "search", ANSWER, PEOPLE, _search_rare, _search_and_register)
    yield Case("query by a rare value", "query", PAGE, PEOPLE, _query_rare)
    yield Case("query by a rare value, past", "query", PAGE, PEOPLE, _query_rare_past)
    yield Case("query, effective time", "query", ALL, PEOPLE, _query_effective)
    yield Case("query by a field without index", "query", ALL, PEOPLE, _query_by_name)
    yield Case("query sorted, descending", "query", PAGE, PEOPLE, _query_descending)
    yield Case("query of an open type", "query", PAGE, PEOPLE, _query_open)
    yield Case("duplicates of a type, past", "duplicates", PAGE, PEOPLE, _duplicates_past)
    yield Case("duplicates of one of many", "duplicates", PAGE, PEOPLE, _duplicates_of_one)
    yield Case("observations of one of many", "observations", PAGE, PEOPLE, _observations)
    yield Case("history of one of many", "history", PAGE, PEOPLE, _history)
    yield Case("timeline, empty window", "timeline", PAGE, PEOPLE, _timeline_empty)
    yield Case("timeline, last day", "timeline", PAGE, PEOPLE, _timeline_last)
    yield Case("blame", "blame", ANSWER, PEOPLE, _blame)
    yield Case("blame, long history", "blame", ALL, shapes.HISTORY, _blame_subject)
    yield Case("blame, merged entities", "blame", ALL, shapes.GROUP, _blame_ref)
    yield Case("blame, many agents", "blame", ALL, shapes.AGENTS, _blame_ref)
    yield Case("conflicts decided by arrival", "conflicts", PAGE, PEOPLE, _conflicts_by_arrival)
    yield Case("conflicts, past", "conflicts", PAGE, PEOPLE, _conflicts_past)
    yield Case("conflicts, merged entities", "conflicts", ALL, shapes.GROUP, _conflicts)
    yield Case("conflicts, many agents", "conflicts", ALL, shapes.AGENTS, _conflicts)
    yield Case("diff, one entry apart", "diff", ANSWER, PEOPLE, _diff_near)
    yield Case("diff, one entity", "diff", ANSWER, PEOPLE, _diff_one)
    yield Case("diff, everything", "diff", ALL, PEOPLE, _diff_all)
    yield Case("diff_against, one snapshot", "diff_against", ANSWER, PEOPLE, _diff_against)
    yield Case("values", "values", ALL, PEOPLE, _values)
    yield Case("related", "related", PAGE, PEOPLE, _related)
    yield Case("ids", "ids", ANSWER, PEOPLE, _ids)
    yield Case("overview", "overview", ANSWER, PEOPLE, _overview)
    yield Case("fingerprint", "fingerprint", ANSWER, PEOPLE, _fingerprint)
    yield Case(
        "fingerprint, after a write", "fingerprint", ANSWER, PEOPLE, _fingerprint_after_write, _fingerprint_first
    )
    yield Case("fingerprint with provenance", "fingerprint", ALL, PEOPLE, _fingerprint_provenance, repeats=False)
    yield Case("lineage of a field", "lineage", PAGE, PEOPLE, _lineage)
    yield Case("bisect", "bisect", ANSWER, PEOPLE, _bisect)
    yield Case("bisect, long history", "bisect", ANSWER, shapes.LONG, _bisect_subject)
    yield Case("reduce", "reduce", ANSWER, PEOPLE, _reduce)
    yield Case("reduce, long history", "reduce", ALL, shapes.HISTORY, _reduce_subject)
    yield Case("schemas.infer", "schemas.infer", ALL, PEOPLE, _infer, repeats=False)
    yield Case("schemas.show", "schemas.show", ANSWER, PEOPLE, _schema)
    yield Case("sources.show", "sources.show", ANSWER, PEOPLE, _source)
    yield Case("sources.content", "sources.content", ANSWER, PEOPLE, _content)
    yield Case("interpretations.show", "interpretations.show", ANSWER, PEOPLE, _interpretation)
    yield Case("interpretations.diff", "interpretations.diff", ANSWER, PEOPLE, _interpretations_diff)


def _show(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.show(someone(facts, number)).fields


def _show_past(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.at(facts["middle"]).show(someone(facts, number)).fields


def _show_effective(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.at(valid_at=VALID_AT).show(someone(facts, number)).fields


def _show_subject(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.show(shapes.SUBJECT).fields


def _show_subject_past(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.at(facts["head"] - picked(number, facts["size"] - 1)).show(shapes.SUBJECT).fields


def _show_ref(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.show(facts["ref"]).fields


def _search_rare(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.search(people.RARE).items) == 3


def _search_prefix(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.search(people.RARE[:4]).items) == 3


def _search_past(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.at(facts["middle"]).search(people.RARE).items) == 3


def _search_common_past(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.at(facts["middle"]).search(people.COMMON, limit=facts["page"]).items


def _search_effective(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.at(valid_at=VALID_AT).search(people.RARE).items) == 3


def _search_first(ledger: Ledger, facts: Facts) -> Facts:
    _search_rare(ledger, facts, 0)
    return {}


def _write(ledger: Ledger, facts: Facts, number: int) -> None:
    kind, _, key = someone(facts, number).partition("/")
    ledger.store({"entity_type": kind, "id": key, "name": f"New name {number}"})


def _search_after_write(ledger: Ledger, facts: Facts, number: int) -> None:
    _write(ledger, facts, number)
    _search_rare(ledger, facts, number)


def _search_and_register(ledger: Ledger, facts: Facts) -> Facts:
    _search_rare(ledger, facts, 0)
    ledger.schemas.register(person_schema("nickname"))
    return {}


def person_schema(field: str) -> dict[str, object]:
    """Return the next version of the schema of people, which has one field more."""
    return {**people.PERSON, "properties": {**people.PERSON["properties"], field: {"type": "string"}}}


def _query_rare(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.query(entity_type="person", where={"city": people.RARE_CITY}).items) == 3


def _query_rare_past(ledger: Ledger, facts: Facts, _: int) -> None:
    past = ledger.at(facts["middle"])
    assert len(past.query(entity_type="person", where={"city": people.RARE_CITY}).items) == 3


def _query_effective(ledger: Ledger, facts: Facts, _: int) -> None:
    past = ledger.at(valid_at=VALID_AT)
    assert len(past.query(entity_type="person", where={"city": people.RARE_CITY}).items) == 3


def _query_descending(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.query(entity_type="person", sort="score", descending=True, limit=facts["page"]).items


def _query_by_name(ledger: Ledger, facts: Facts, number: int) -> None:
    """No index of values is asked for, so that every person may be looked at."""
    name = f"Name{facts['people'] - 1} Family{(facts['people'] - 1) % 977}"
    assert len(ledger.query(entity_type="person", where={"name": name}).items) == 1


def _query_open(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.query(entity_type="shipment", limit=facts["page"]).items


def _duplicates_past(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.at(facts["middle"]).duplicates("person", limit=facts["page"]).items


def _duplicates_of_one(ledger: Ledger, facts: Facts, number: int) -> None:
    (shared,) = ledger.duplicates("person", limit=1).items
    assert shared in ledger.duplicates(ref=shared.entities[-1], limit=facts["page"]).items


def _observations(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.observations(someone(facts, number)).items


def _history(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.history(someone(facts, number), "city").items


def _timeline_empty(ledger: Ledger, facts: Facts, _: int) -> None:
    assert not ledger.timeline(since="2023-01-01T00:00:00Z", until="2023-02-01T00:00:00Z").items


def _timeline_last(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.timeline(since="2025-02-01T00:00:00Z", limit=facts["page"]).items


def _blame(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.blame(someone(facts, number), "city")["city"]


def _blame_subject(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.blame(shapes.SUBJECT, "city")["city"]) == facts["size"]


def _blame_ref(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.blame(facts["ref"], "city")["city"]) == facts["size"]


def _conflicts_by_arrival(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.conflicts(arrival=True, limit=facts["page"]).items


def _conflicts_past(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.at(facts["head"] - 1).conflicts("person", limit=facts["page"]).items


def _conflicts(ledger: Ledger, facts: Facts, _: int) -> None:
    ledger.conflicts()


def _diff_near(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(tuple(ledger.diff(facts["last_write"] - 1, facts["last_write"]))) == 1


def _diff_one(ledger: Ledger, facts: Facts, number: int) -> None:
    assert tuple(ledger.diff(facts["middle"], "now", someone(facts, number)))


def _diff_all(ledger: Ledger, facts: Facts, _: int) -> None:
    assert tuple(ledger.diff(facts["first"], "now"))


def _diff_against(ledger: Ledger, facts: Facts, number: int) -> None:
    ref = someone(facts, number)
    assert tuple(ledger.diff_against(ledger.at(facts["middle"]).show(ref)))


def _values(ledger: Ledger, facts: Facts, _: int) -> None:
    assert len(ledger.values()) >= facts["shipments"]


def _related(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.related(person(picked(number, facts["people"] // 5) * 5 + 4)).items


def _ids(ledger: Ledger, facts: Facts, _: int) -> None:
    assert facts["observations"][0] in ledger.ids(facts["observations"][0][:20])


def _overview(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.overview().position == facts["head"]


def _fingerprint(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.fingerprint()


def _fingerprint_first(ledger: Ledger, facts: Facts) -> Facts:
    _fingerprint(ledger, facts, 0)
    return {}


def _fingerprint_after_write(ledger: Ledger, facts: Facts, number: int) -> None:
    _write(ledger, facts, number)
    _fingerprint(ledger, facts, number)


def _fingerprint_provenance(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.fingerprint(provenance=True)


def _lineage(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.lineage(f"{someone(facts, number)}#city")


def _bisect(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.bisect(someone(facts, number), exists=True)


def _bisect_subject(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.bisect(shapes.SUBJECT, exists=True)


def _reduce(ledger: Ledger, facts: Facts, number: int) -> None:
    assert ledger.reduce(someone(facts, number), exists=True)


def _reduce_subject(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.reduce(shapes.SUBJECT, exists=True)


def _infer(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.schemas.infer("shipment")


def _schema(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.schemas.show("person")


def _source(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.sources.show(facts["sources"][1])


def _content(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.sources.content(facts["sources"][1]).startswith(b"letter")


def _interpretation(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.interpretations.show(facts["readings"][2])


def _interpretations_diff(ledger: Ledger, facts: Facts, _: int) -> None:
    assert ledger.interpretations.diff(*facts["readings"][:2])
