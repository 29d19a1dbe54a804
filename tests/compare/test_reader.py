"""Where two recorded runs part: the stories end to end, with what the log knows of what they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import woodrat
from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import NotFound, Refused
from woodrat.ledger.own_policy import registry
from woodrat.ledger.write import Draft, Writer
from woodrat.testing.clock import FixedClock

RULES = [
    {"chosen": "standard", "when": {"payment_terms": "Net-30"}, "label": "Short terms"},
    {"chosen": "escalate", "when": {"payment_terms": {"ne": "Net-30"}}, "label": "Long terms"},
]
KLINE: dict[str, Any] = {"entity_type": "contract", "id": "kline", "payment_terms": "Net-30"}


def opened(engine: Engine, tenant: str = "legal", seed: str = "woodrat") -> woodrat.Ledger:
    """Return a ledger on an engine."""
    clock = FixedClock(seed=seed)
    return woodrat.Ledger(engine, tenant=TenantId(tenant), agent="contract-bot", clock=clock, policies=registry(()))


@pytest.fixture
def engine() -> Iterator[Engine]:
    """An empty engine."""
    made: Engine = InMemoryEngine()
    yield made
    made.close()


@pytest.fixture
def ledger(engine: Engine) -> woodrat.Ledger:
    """A ledger that knows one contract."""
    made = opened(engine)
    made.store(KLINE)
    return made


def pipeline(ledger: woodrat.Ledger, **about: Any) -> str:
    """Run the pipeline; return the run's id."""
    with ledger.run("When is kline to pay?", subject="contract/kline", inputs={"client": "kline"}, **about) as run:
        with run.tool("calendar", day="Monday") as call:
            call.result = {"open": True}
        try:
            contract: Any = run.show("contract/kline")
        except NotFound:
            contract = {}
        chosen = run.decide("payment-terms", contract, RULES, default="ask", on_missing="skip").chosen
        run.answer(f"Use the {chosen} procedure.")
    return run.id


def test_two_runs_with_the_same_inputs(ledger: woodrat.Ledger) -> None:
    """Between two runs another agent overwrote what both read: who, what, where in the log, and from which source."""
    first = pipeline(ledger)
    billing = ledger.as_agent("billing-bot")
    source = billing.sources.add(b"Payment within 45 days", name="invoice.pdf")
    with billing.interpretations.start(source, model="small-1") as reading:
        report = reading.store({**KLINE, "payment_terms": "Net-45"})
    second = pipeline(ledger)
    found = ledger.runs.diff(first, second)
    assert found.sentence == (
        "They parted at step 2, the read of contract/kline: billing-bot wrote payment_terms Net-45 (was Net-30) "
        f"at position {report.position} from invoice.pdf; the decision payment-terms and the answer follow from it."
    )
    assert ledger.runs.diff(second, first).sentence == found.sentence
    assert (found.step, [row.mark for row in found.rows]) == (2, ["same", "same", *["differs"] * 3])
    assert found.cause is not None
    assert found.cause.kind == "state"
    statement = found.cause.statement
    assert statement is not None
    assert (statement.agent, statement.position, statement.source) == ("billing-bot", report.position, source)
    told = found.to_json()
    assert told["cause"]["statement"]["recorded_at"] is not None
    assert (told["cause"]["details"]["first"], told["cause"]["details"]["second"]) == ("Net-30", "Net-45")


def test_a_value_written_by_a_run_names_the_run(ledger: woodrat.Ledger) -> None:
    """Where no source is known, the run in which it was said is named."""
    first = pipeline(ledger)
    with ledger.as_agent("billing-bot").run("Fix it") as between:
        report = between.store({**KLINE, "payment_terms": "Net-45"})
    found = ledger.runs.diff(first, pipeline(ledger))
    assert f"at position {report.position} in {between.id};" in found.sentence


def test_a_correction_and_its_withdrawal(ledger: woodrat.Ledger) -> None:
    """A correction is called one; and when an older value comes back, whoever withdrew the newer one is named."""
    first = pipeline(ledger)
    ann = ledger.as_agent("ann")
    corrected = ann.correct("contract/kline", {"payment_terms": "Net-45"})
    second = pipeline(ledger)
    assert (
        f"ann corrected payment_terms Net-45 (was Net-30) at position {corrected.position};"
        in ledger.runs.diff(first, second).sentence
    )
    withdrawn = ledger.as_agent("bob").retract(ledger.observations("contract/kline").items[-1].observation.id)
    third = pipeline(ledger)
    assert ledger.runs.diff(second, third).sentence == (
        f"They parted at step 2, the read of contract/kline: bob withdrew a statement about contract/kline at position "
        f"{withdrawn.position}, so that payment_terms was Net-45 in the first run and Net-30 in the second; "
        "the decision payment-terms and the answer follow from it."
    )
    assert ledger.runs.diff(first, third).same


def test_a_deleted_entity(ledger: woodrat.Ledger) -> None:
    """What one run read and the other did not find: whoever deleted it is named."""
    first = pipeline(ledger)
    deleted = ledger.as_agent("ann").delete("contract/kline")
    found = ledger.runs.diff(first, pipeline(ledger))
    assert found.sentence.startswith(
        f"They parted at step 2, the read of contract/kline: ann deleted contract/kline at position {deleted.position}"
    )
    assert found.sentence.endswith("the decision payment-terms and the answer follow from it.")


def test_something_that_was_not_known_before(engine: Engine) -> None:
    """The first run found nothing; whoever said the first thing is named."""
    ledger = opened(engine)
    first = pipeline(ledger)
    report = ledger.as_agent("sales").store(KLINE)
    found = ledger.runs.diff(first, pipeline(ledger))
    assert f"at position {report.position}" in found.sentence
    assert found.step == 2


def test_a_search_that_finds_more(ledger: woodrat.Ledger) -> None:
    """What only one run's search found: whoever wrote it is named, also where the other found nothing at all."""

    def count(entity_type: str) -> str:
        with ledger.run("How many?") as run:
            run.answer(len(run.query(entity_type=entity_type).items))
        return run.id

    first, none = count("contract"), count("client")
    report = ledger.as_agent("sales").store([{**KLINE, "id": "a"}, {"entity_type": "client", "id": "kim"}])
    places = {str(stored.observation.entity): stored.position for stored in ledger.observations()}
    assert places["client/kim"] <= report.position
    assert ledger.runs.diff(first, count("contract")).sentence == (
        f"They parted at step 1, the query of contract/a: sales wrote contract/a at position {places['contract/a']}, "
        "so that only the second run found it; the answer follows from it."
    )
    found = ledger.runs.diff(none, count("client"))
    assert found.sentence == (
        f"They parted at step 1, the query of client/kim: sales wrote client/kim at position {places['client/kim']}, "
        "so that only the second run found it; the answer follows from it."
    )


def test_a_collection_and_a_join(ledger: woodrat.Ledger) -> None:
    """Of a collection whoever added to it is named; of a value that came by a join, the entity it came from."""
    tags = {"type": "array", "x-woodrat-merge": "union"}
    ledger.schemas.register({"type": "object", "properties": {"tags": tags}}, entity_type="client")

    def show() -> str:
        with ledger.run("Which?") as run:
            run.answer(dict(run.show("client/kim").fields))
        return run.id

    ledger.store({"entity_type": "client", "id": "kim", "tags": ["a"], "city": "Girona"})
    ledger.store({"entity_type": "client", "id": "kimberly", "city": "Barcelona"})
    first = show()
    report = ledger.as_agent("crm").store({"entity_type": "client", "id": "kim", "tags": ["b"]})
    second = show()
    sentence = ledger.runs.diff(first, second).sentence
    assert "crm wrote tags" in sentence
    assert f"at position {report.position}" in sentence
    ledger.merge("client/kim", "client/kimberly")
    assert (
        "city was Girona in the first run and Barcelona in the second, since client/kim is joined with client/kimberly"
        in ledger.runs.diff(second, show()).sentence
    )


def test_another_schema(engine: Engine) -> None:
    """The same observations under another merge policy: the schema is the cause."""
    ledger = opened(engine)
    ledger.store({**KLINE, "payment_terms": "Net-30"}, observed_at="2025-01-01T00:00:00Z")
    ledger.store({**KLINE, "payment_terms": "Net-45"}, observed_at="2025-01-02T00:00:00Z")
    ledger.store({"entity_type": "contract", "id": "kline", "signed": False}, observed_at="2025-01-03T00:00:00Z")
    unread = ledger.observations("contract/kline").items[-1].observation.id
    ledger.store({"entity_type": "contract", "id": "kline", "signed": True}, observed_at="2025-01-04T00:00:00Z")
    first = pipeline(ledger)
    policy = {"type": "string", "x-woodrat-merge": "first"}
    ledger.schemas.register({"type": "object", "properties": {"payment_terms": policy}}, entity_type="contract")
    ledger.retract(unread)
    found = ledger.runs.diff(first, pipeline(ledger))
    assert found.sentence == (
        "They parted at step 2, the read of contract/kline: schema contract went from version 1 to 2, so that "
        "payment_terms was Net-45 in the first run and Net-30 in the second; "
        "the decision payment-terms and the answer follow from it."
    )
    assert found.cause is not None
    assert found.cause.kind == "schema"


def test_a_run_that_reads_what_it_wrote(ledger: woodrat.Ledger) -> None:
    """A read of the run's own write follows from the write, and that from what it leaned on."""

    def quote(limit: int) -> str:
        with ledger.run("Quote", subject="contract/kline") as run:
            rules = [{"chosen": "high", "when": {"amount": {"gt": limit}}, "label": "Large"}]
            level = run.decide("level", {"amount": 100}, rules, default="low").chosen
            run.store({"entity_type": "quote", "id": "1", "level": level})
            run.answer(run.show("quote/1").fields["level"])
        return run.id

    found = ledger.runs.diff(quote(50), quote(150))
    assert [(row.kind, row.follows) for row in found.rows if row.mark != "same"] == [
        ("decision", None),
        ("write", 1),
        ("read", 1),
        ("answer", 1),
    ]
    assert found.sentence == (
        "They parted at step 1, the decision level: the rule Large asked for amount above 50 in the first run and "
        "above 150 in the second; the answer follows from it."
    )


def test_runs_of_a_log_that_is_not_here(ledger: woodrat.Ledger) -> None:
    """Imported runs name observations nobody here knows: the sentence says what the records say."""
    ids: list[str] = []
    for terms, letter in (("Net-30", "a"), ("Net-45", "b")):
        run = "run_" + letter * 26
        fields = {"payment_terms": {"observation": "obs_" + letter * 26, "value": terms}}
        read = {"log": "log_elsewhere", "position": 4, "entity": "contract/kline", "found": True, "fields": fields}
        entries = [
            {"kind": "run.started", "run": run, "step": 0, "query": "When?"},
            {"kind": "run.read", "run": run, "step": 1, **read},
            {"kind": "run.ended", "run": run, "step": 2, "status": "done", "answer": terms},
        ]
        ids += ledger.runs.import_(entries)
    assert ledger.runs.diff(*ids).sentence == (
        "They parted at step 1, the read of contract/kline: payment_terms was Net-30 in the first run and Net-45 in "
        "the second; the answer follows from it."
    )


def test_a_moment_of_the_past_is_asked(ledger: woodrat.Ledger) -> None:
    """At a moment before the second run it is not there; right after it the answer is that of today."""
    first = pipeline(ledger)
    ledger.as_agent("billing-bot").store({**KLINE, "payment_terms": "Net-45"})
    before = ledger.position
    second = pipeline(ledger)
    then, today = ledger.at(ledger.position), ledger.runs.diff(first, second)
    ledger.correct("contract/kline", {"payment_terms": "Net-60"})
    assert then.runs.diff(first, second) == ledger.runs.diff(first, second) == today
    with pytest.raises(NotFound):
        ledger.at(before).runs.diff(first, second)


def test_runs_that_are_not_here(ledger: woodrat.Ledger, engine: Engine) -> None:
    """An unknown run, on either side, and one of another tenant are not found; an id that is no text is refused."""
    run = pipeline(ledger)
    elsewhere = pipeline(opened(engine, "other", "else"))
    for missing in ("run_" + "z" * 26, "nonsense", "", elsewhere):
        for pair in ((run, missing), (missing, run), (missing, missing)):
            with pytest.raises(NotFound, match="There is no run"):
                ledger.runs.diff(*pair)
    number: Any = 7
    with pytest.raises(Refused):
        ledger.runs.diff(run, number)
    with pytest.raises(Refused):
        ledger.runs.diff(number, number)


def test_one_run_twice_and_two_alike(ledger: woodrat.Ledger) -> None:
    """A run does not differ from itself, nor from one that did the same."""
    first = pipeline(ledger)
    assert ledger.runs.diff(first, first).sentence == "They are one and the same run."
    found = ledger.runs.diff(first, pipeline(ledger))
    assert (found.same, found.sentence) == (True, "They are the same in all 3 steps and in the answer.")


def test_runs_with_nothing_in_common(ledger: woodrat.Ledger) -> None:
    """It is said that they have nothing in common."""
    with ledger.run("Rain?") as run, run.tool("weather") as call:
        call.result = "rain"
    found = ledger.runs.diff(pipeline(ledger), run.id)
    assert (found.step, found.sentence[:31]) == (None, "They have nothing in common: no")


# Two ledgers


def elsewhere(seed: str = "else") -> woodrat.Ledger:
    """Return an empty ledger of its own."""
    return opened(InMemoryEngine(), seed=seed)


def test_runs_of_two_ledgers(ledger: woodrat.Ledger) -> None:
    """What each run read is followed in its own ledger, and statements name the ledger they are of."""
    other = elsewhere()
    billing = other.as_agent("billing-bot")
    report = billing.store(
        {**KLINE, "payment_terms": "Net-45"}, source=billing.sources.add(b"45 days", name="invoice.pdf")
    )
    first, second = pipeline(ledger), pipeline(other)
    found = ledger.runs.diff(first, second, other=other)
    said = ledger.observations("contract/kline").items[0]
    assert found.sentence == (
        "They parted at step 2, the read of contract/kline: payment_terms was Net-30 in the first run and Net-45 in "
        f"the second, since contract-bot wrote Net-30 at position {said.position} of the first ledger and billing-bot "
        f"wrote Net-45 at position {report.position} of the second ledger from invoice.pdf; the decision payment-terms "
        "and the answer follow from it."
    )
    assert found.cause is not None
    statements = found.cause.details["statements"]
    assert [told["ledger"] for told in statements] == ["first", "second"]
    assert statements[0]["log"] != statements[1]["log"]
    back = other.runs.diff(second, first, other=ledger)
    assert (back.step, back.cause and back.cause.kind) == (2, "state")
    with pytest.raises(NotFound):
        ledger.runs.diff(first, first, other=other)


def told_again(ledger: woodrat.Ledger) -> woodrat.Ledger:
    """Return another ledger that was told what this one knows of the contract, and its runs."""
    other = elsewhere("again")
    said = [stored.observation for stored in ledger.observations("contract/kline")]

    def copy(draft: Draft) -> None:
        draft.use("contract")
        for observation in said:
            draft.say(observation)

    Writer(other.context).write("copy", {}, copy)
    return other


def test_one_ledger_knows_more_than_the_other(ledger: woodrat.Ledger) -> None:
    """Where one ledger has what the other knows and a later word, that word is the cause, as within one ledger."""
    first = pipeline(ledger)
    other = told_again(ledger)
    report = other.as_agent("billing-bot").store({**KLINE, "payment_terms": "Net-45"})
    second = pipeline(other)
    clause = f"billing-bot wrote payment_terms Net-45 (was Net-30) at position {report.position} of the {{}} ledger;"
    assert clause.format("second") in ledger.runs.diff(first, second, other=other).sentence
    assert clause.format("first") in other.runs.diff(second, first, other=ledger).sentence


def test_what_was_withdrawn_in_one_ledger(ledger: woodrat.Ledger) -> None:
    """Both ledgers know both statements, and one withdrew the later one: whoever did is named, with the ledger."""
    ledger.as_agent("billing-bot").store({**KLINE, "payment_terms": "Net-45"})
    other = told_again(ledger)
    first = pipeline(ledger)
    assert ledger.runs.diff(first, pipeline(other), other=other).same
    withdrawn = other.as_agent("ann").retract(other.observations("contract/kline").items[-1].observation.id)
    found = ledger.runs.diff(first, pipeline(other), other=other)
    assert found.sentence.startswith(
        f"They parted at step 2, the read of contract/kline: ann withdrew a statement about contract/kline at position "
        f"{withdrawn.position} of the second ledger, so that payment_terms was Net-45 in the first run and Net-30 in"
    )


def test_another_schema_in_the_other_ledger(ledger: woodrat.Ledger) -> None:
    """The same statements under another schema: the versions of both ledgers are named."""
    ledger.as_agent("billing-bot").store({**KLINE, "payment_terms": "Net-45"})
    other = told_again(ledger)
    policy = {"type": "string", "x-woodrat-merge": "first"}
    other.schemas.register({"type": "object", "properties": {"payment_terms": policy}}, entity_type="contract")
    found = ledger.runs.diff(pipeline(ledger), pipeline(other), other=other)
    assert (
        "schema contract is version 1 in the first ledger and 2 in the second, so that payment_terms" in found.sentence
    )
    assert found.cause is not None
    assert found.cause.kind == "schema"


def test_a_run_that_both_ledgers_hold(ledger: woodrat.Ledger) -> None:
    """An imported run has the same id in both; it is compared all the same, and does not differ from itself."""
    document = {"id": "trace-1", "steps": [{"kind": "tool", "name": "pay", "result": "ok"}]}
    other = elsewhere()
    (run,), (same,) = ledger.runs.import_(document), other.runs.import_(document)
    assert run == same
    found = ledger.runs.diff(run, same, other=other)
    assert (found.same, found.sentence) == (True, "They are one and the same run.")


def test_the_other_ledger_is_a_ledger(ledger: woodrat.Ledger) -> None:
    """The name of a database in place of a ledger is refused, and what to do is said."""
    path: Any = "staging.db"
    with pytest.raises(Refused, match=r"Open it with woodrat\.open first"):
        ledger.runs.diff(pipeline(ledger), "run_a", other=path)


def test_the_same_ledger_given_twice(ledger: woodrat.Ledger) -> None:
    """A ledger compared with itself is one ledger: no statement names a ledger."""
    first = pipeline(ledger)
    ledger.as_agent("billing-bot").store({**KLINE, "payment_terms": "Net-45"})
    second = pipeline(ledger)
    assert ledger.runs.diff(first, second, other=ledger.as_agent("bob")) == ledger.runs.diff(first, second)


# Crowds


def test_a_crowd_of_runs(ledger: woodrat.Ledger) -> None:
    """Runs with the inputs of one, by question or by name: who parts, where, and who wrote what they read."""
    runs = [pipeline(ledger) for _ in range(4)]
    report = ledger.as_agent("billing-bot").store({**KLINE, "payment_terms": "Net-45"})
    runs.append(pipeline(ledger))
    with ledger.run("Something else", subject="contract/kline") as odd:
        odd.answer("?")
    sentence = (
        "4 of 5 runs agree; one parts at step 2, the read of contract/kline: billing-bot wrote payment_terms Net-45 "
        f"(was Net-30) at position {report.position}."
    )
    for found in (
        ledger.runs.group(runs),
        ledger.runs.group(reversed(runs)),  # type: ignore[arg-type]
        ledger.runs.group(same_inputs_as=runs[2]),
        ledger.runs.group(query="When is kline to pay?"),
        ledger.runs.group(runs[:2], same_inputs_as=runs[0]),
    ):
        assert (found.sentence, found.total) == (sentence, 5)
    about = ledger.runs.group(subject="contract/kline", agent="contract-bot")
    assert (about.total, about.differing_inputs[-1]) == (6, "query")
    assert about.sentence.startswith("4 of 6 runs agree; one parts at step 1, the tool calendar")
    clusters = about.to_json()["main"]["clusters"]
    assert clusters[-1]["decisions"] == [{"stage": "payment-terms", "chosen": "escalate"}]


def test_runs_by_attribute_and_their_rewards(ledger: woodrat.Ledger) -> None:
    """Imported runs are chosen by what came with them, and their rewards say which are good."""

    def document(number: int) -> dict[str, Any]:
        good = number % 3 > 0
        call = {"kind": "tool", "name": "refund", "args": {"method": "card" if good else "cash"}, "result": "ok"}
        about = {"task": "seven" if number < 24 else 8, "reward": 0.9 if good else 0.25}
        return {"id": f"r{number}", "query": f"Refund order {number}?", "steps": [call], **about}

    ledger.runs.import_([document(number) for number in range(27)])
    for chosen in ({"task": "seven"}, ["task=seven"], "task=seven", {"task": '"seven"'}):
        assert ledger.runs.group(attribute=chosen).total == 24
    assert ledger.runs.group(attribute="task=8").total == 3
    vague = ledger.runs.group(attribute="task=seven").separation
    assert vague is not None
    assert vague.sentence.startswith("Nothing is known of good and bad runs: rewards lie between 0.25 and 0.9")
    found = ledger.runs.group(attribute="task=seven", reward_min=0.5).separation
    assert found is not None
    assert [(trait.text, trait.bad, trait.good) for trait in found.traits] == [("called refund with method cash", 8, 0)]
    with pytest.raises(NotFound):
        ledger.runs.group(attribute="task=9")
    with pytest.raises(Refused) as refusal:
        ledger.runs.group(attribute=["task"], reward_min="much", conversation=7)  # type: ignore[arg-type]
    assert [fault.path for fault in refusal.value.faults] == ["reward_min", "attribute/0", "conversation"]


def test_crowds_that_cannot_be(ledger: woodrat.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """No run meant, none found, unknown ones, too many, or text in place of a list: each says what to do."""
    run = pipeline(ledger)
    pipeline(ledger)
    with pytest.raises(Refused, match="no runs are selected"):
        ledger.runs.group()
    nobody: list[dict[str, Any]] = [{"query": "Nobody asked"}, {"since": "2199-01-01T00:00:00Z"}, {"runs": []}]
    for given in nobody:
        with pytest.raises(NotFound, match="There is no run to compare"):
            ledger.runs.group(**given)
    with pytest.raises(NotFound, match="There is no run run_z"):
        ledger.runs.group([run, "run_z"])
    with pytest.raises(NotFound):
        ledger.runs.group(same_inputs_as="run_z")
    for bad in (run, 7):
        with pytest.raises(Refused, match="expected a list of runs"):
            ledger.runs.group(bad)  # type: ignore[arg-type]
    with pytest.raises(Refused):
        ledger.runs.group(query=7, subject="x")  # type: ignore[arg-type]
    monkeypatch.setattr("woodrat.compare.reader.RUNS_MAX", 1)
    with pytest.raises(Refused, match="there are more than 1 runs"):
        ledger.runs.group(query="When is kline to pay?")


PARTS = ("query", "input", "message", "response", "argument", "result", "answer")
"""The parts of a run that `long_run` can make differ."""


def long_run(ledger: woodrat.Ledger, changed: str) -> str:
    """Record a run whose parts are all longer than a row shows, one of them with another end; return its id."""
    end = {part: "x" * 120 + (" changed" if part == changed else "") for part in PARTS}
    with ledger.run(end["query"], inputs={"given": end["input"]}) as run:
        with run.model("small", messages=[{"role": "user", "content": end["message"]}]) as call:
            call.response = {"content": end["response"]}
        with run.tool("look", at=end["argument"]) as found:
            found.result = {"seen": end["result"]}
        run.answer(end["answer"])
    return run.id


def test_rows_that_differ_never_read_the_same(ledger: woodrat.Ledger) -> None:
    """Where two sides of a row begin alike, the part in which they differ is shown."""
    plain = long_run(ledger, "")
    for part in PARTS:
        rows = [row for row in ledger.runs.diff(plain, long_run(ledger, part)).rows if row.mark != "same"]
        assert rows
        assert all(row.first != row.second for row in rows), part
        assert any("changed" in str(row.second) for row in rows), part


@pytest.mark.parametrize("reads", ["show", "search", "query"])
def test_a_read_inside_a_tool_is_the_cause(ledger: woodrat.Ledger, reads: str) -> None:
    """What a tool read from the ledger explains its result; the tool and the answer follow from it."""

    def terms() -> str:
        if reads == "show":
            found = ledger.show("contract/kline")
        elif reads == "search":
            found = ledger.search("kline").items[0].snapshot
        else:
            found = ledger.query(entity_type="contract").items[0]
        return str(found.fields["payment_terms"])

    def asked() -> str:
        with ledger.run("When does kline pay?") as run:
            with run.tool("terms", client="kline") as call:
                call.result = terms()
            run.answer(call.result)
        return run.id

    first = asked()
    ledger.as_agent("billing-bot").store({**KLINE, "payment_terms": "Net-45"})
    found = ledger.runs.diff(first, asked())
    name = "read" if reads == "show" else reads
    assert found.sentence.startswith(f"They parted at step 2, the {name} of contract/kline: billing-bot wrote")
    assert "apart from that" not in found.sentence
    assert "differ by itself" not in found.sentence
    tool = next(row for row in found.rows if row.kind == "tool")
    assert (tool.mark, tool.follows, tool.cause) == ("differs", 2, None)


def test_a_tool_called_otherwise_is_the_cause_of_what_it_read(ledger: woodrat.Ledger) -> None:
    """Where a tool got other arguments, that is the cause, and what it read then follows from it."""
    ledger.store({**KLINE, "id": "acme", "payment_terms": "Net-60"})

    def asked(client: str) -> str:
        with ledger.run("When do they pay?") as run:
            with run.tool("terms", client=client) as call:
                call.result = str(ledger.show(f"contract/{client}").fields["payment_terms"])
            run.answer(call.result)
        return run.id

    found = ledger.runs.diff(asked("kline"), asked("acme"))
    assert found.sentence.startswith("They parted at step 1, the tool terms")


def test_span_ids_are_never_a_difference(ledger: woodrat.Ledger) -> None:
    """What tracers call a run and its steps is set aside, also where a run hands it from step to step."""

    def traced() -> str:
        with ledger.run("Trace it") as run:
            names = {"span": run.span, "traceparent": run.traceparent, "parent": {"span_id": run.span}, "run": run.id}
            with run.tool("call", **names) as call:
                call.result = {"span": run.span, "seen": 1}
            with run.tool("again", of=call.span, **names) as call:
                call.result = 2
            run.decided("plan", "go on", because="it was seen", on=[call])
            run.answer("done")
        return run.id

    found = ledger.runs.diff(traced(), traced())
    assert found.same, found.sentence
    assert found.set_aside
