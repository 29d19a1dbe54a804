"""Redaction: a value under a hidden key never reaches the log, a report, an error or a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import woodrat
from woodrat import Ledger, Refused, Rule
from woodrat.state.redaction import REDACTED, Hidden
from woodrat.testing.clock import FixedClock

SECRETS: Final = ("123-45-6789", "hunter2-hunter2", "tok_live_99887766", "4711471147")
DOCUMENT: Final = {
    "title": "account",
    "x-woodrat-identity": [["login"]],
    "required": ["ssn"],
    "additionalProperties": True,
    "properties": {
        "login": {"type": "string"},
        "ssn": {"type": "string", "pattern": "^[0-9]{3}-", "x-woodrat-redact": True},
        "pin": {"type": "integer", "x-woodrat-redact": True},
    },
}
LINK: Final = {
    "title": "owns",
    "x-woodrat-identity": [["from", "to"]],
    "properties": {"pin": {"x-woodrat-redact": True}},
}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where the ledger is."""
    (tmp_path / "store").mkdir()
    return tmp_path / "store" / "r.db"


@pytest.fixture
def ledger(db: Path) -> Iterator[Ledger]:
    """A ledger that hides keys, with schemas that hide fields."""
    with woodrat.open(db, clock=FixedClock(), redact=["password", "*_token"]) as opened:
        opened.schemas.register(DOCUMENT)
        opened.schemas.register(LINK)
        yield opened


def account(login: Any = "ada", **more: Any) -> dict[str, Any]:
    """Return a record full of secrets."""
    return {
        "entity_type": "account",
        "login": login,
        "ssn": SECRETS[0],
        "pin": int(SECRETS[3]),
        "Password": SECRETS[1],
        "settings": {"api_token": SECRETS[2], "list": [{"x_token": [SECRETS[2]]}], "kept": "yes"},
        **more,
    }


def leaks(folder: Path) -> list[str]:
    """Return the secrets that stand in any file of a store."""
    data = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    return [secret for secret in SECRETS if secret.encode() in data]


def test_a_secret_never_reaches_a_file(ledger: Ledger, db: Path) -> None:
    """Stored, corrected, related, said in runs, by key or by schema: no secret is in any file or report."""
    told = [ledger.store([account(), {"entity_type": "thing", "id": "t"}], idempotency_key="k")]
    told.append(ledger.correct("account/ada", {"ssn": "123-45-6789", "password": SECRETS[1]}, reason="again"))
    told.append(ledger.correct(ledger.show("account/ada").entity.id, {"pin": 4711471147}))
    told.append(ledger.relate("account/ada", "owns", "thing/t", fields={"pin": SECRETS[3], "api_token": SECRETS[2]}))
    links = [{"type": "owns", "to": "thing/t", "key": "2", "fields": {"pin": SECRETS[3], "a_token": SECRETS[2]}}]
    told.append(ledger.store(account("bob", **{"$": {"relate": links}})))
    with ledger.run("Who?", inputs={"password": SECRETS[1], "who": "ada"}) as run:
        run.tool("login", lambda password, n: {"refresh_token": SECRETS[2], "n": n}, password=SECRETS[1], n=1)
        run.decide("in", {"password": SECRETS[1]}, [Rule("yes", {"password": {"eq": SECRETS[1]}})])
        told.append(run.store(account("eve")))
        run.note("done", {"my_token": SECRETS[2]})
        run.answer({"session_token": SECRETS[2], "ok": True})
    assert leaks(db.parent) == []
    assert not [secret for secret in SECRETS if secret in str([report.to_json() for report in told])]
    ledger.close()
    assert leaks(db.parent) == []


def secrets() -> dict[str, Any]:
    """Return an object with a secret under a hidden key, at some depth."""
    return {"kept": 1, "deep": [{"password": SECRETS[1]}]}


def test_rules_and_verdicts_hide_what_facts_hide(ledger: Ledger, db: Path) -> None:
    """Operands, branches, defaults and preferred answers show nothing that stands under a hidden key, at any depth."""
    rules = [
        Rule(secrets(), {"x": {"eq": secrets(), "in": [secrets()]}, "password": SECRETS[1]}),
        Rule(secrets(), {"x": {"exists": True}}),
        Rule(secrets(), {"x": [secrets()], "api_token": {"eq": SECRETS[2]}}),
    ]
    with ledger.run("Who?") as run:
        verdict = run.decide("one", {"x": {"kept": 2, "deep": []}}, rules, default=secrets())
        with pytest.raises(Refused):
            run.select("all", {"x": secrets()}, rules)
        run.select("all", {"x": secrets()}, rules, on_missing="skip")
        run.decide("none", {}, rules, default=secrets(), on_missing="skip")
        raising = [Rule("y", lambda facts: int(facts["x"]["deep"][0]["password"]))]
        with pytest.raises(Refused, match=r"ValueError: \[REDACTED\]"):
            run.decide("raises", {"x": secrets()}, raising)
        run.decide("raises", {"x": secrets()}, raising, on_missing="skip")
        run.judge("bad", preferred=secrets())
    assert verdict.chosen == secrets()
    ledger.runs.judge(run.id, "bad", preferred=secrets())
    assert leaks(db.parent) == []
    record = ledger.runs.show(run.id)
    hidden = {"kept": 1, "deep": [{"password": REDACTED}]}
    assert record.decisions[0].chosen == hidden
    assert record.decisions[0].rules[0].when == {"x": {"eq": hidden, "in": [hidden]}, "password": REDACTED}
    assert record.decisions[3].rules[0].error == {"type": "ValueError", "message": REDACTED}
    assert [judgement.preferred for judgement in record.judgements] == [hidden, hidden]


def test_a_fact_from_a_hidden_place_is_hidden_under_any_name(ledger: Ledger, db: Path) -> None:
    """A fact from a hidden input, field or member of a result is hidden in a decision, whatever it is called there."""
    with ledger.run("Who?", inputs={"password": SECRETS[1]}) as run:
        call = run.tool("login", lambda: {"auth": {"a_token": {"value": SECRETS[2]}}})
        facts = {"given": run.input("password"), "got": call.fact("/auth/a_token/value"), "n": 1}
        verdict = run.decide("in", facts, [Rule("yes", {"given": SECRETS[1], "got": {"eq": SECRETS[2]}, "n": 1})])
    assert verdict.chosen == "yes"
    assert verdict.evidence == {"given": REDACTED, "got": REDACTED, "n": 1}
    assert leaks(db.parent) == []


def test_what_is_removed_or_configured_is_hidden(ledger: Ledger, db: Path) -> None:
    """Elements taken out of collections, and the settings of a reading, hide what stands under hidden keys."""
    ledger.schemas.register({"title": "bag", "properties": {"all": {"type": "array", "x-woodrat-merge": "union"}}})
    ledger.store({"entity_type": "bag", "id": "b", "all": [secrets()], "$": {"remove": {"all": [secrets()]}}})
    source = ledger.sources.add(b"text", name="t")
    with ledger.interpretations.start(source, parameters=secrets(), configuration={"api_token": SECRETS[2]}):
        pass
    assert leaks(db.parent) == []
    assert ledger.interpretations.list().items[0].configuration == {"api_token": REDACTED}


def test_the_digest_of_a_request_does_not_tell_what_is_hidden(ledger: Ledger) -> None:
    """Requests that differ in a hidden value alone have one digest, so that nobody can guess the value by it."""
    with ledger.run("Who?") as run:
        for secret in SECRETS[:2]:
            run.model("m", response="hi", messages=[{"role": "user", "password": secret}])
    one, other = ledger.runs.show(run.id).models
    assert one.request == other.request


def told(run: str) -> list[Any]:
    """Return runs that happened elsewhere, in every form they are recorded from, full of secrets."""
    place = {"run": run, "started_at": "2026-01-01T00:00:00Z"}
    cut = {"$truncated": {"bytes": 99_999, "preview": '{"password": "' + SECRETS[1]}}
    condition = {"key": "password", "op": "eq", "operand": SECRETS[1], "actual": SECRETS[1], "result": True}
    rule = {"chosen": secrets(), "when": {"password": SECRETS[1], "x": {"eq": secrets()}}, "conditions": [condition]}
    steps = [
        {"kind": "tool", "name": "t", "args": secrets(), "result": secrets()},
        {"kind": "model", "model": "m", "messages": [secrets()], "parameters": secrets(), "response": secrets()},
        {"kind": "decision", "stage": "s", "chosen": secrets(), "evidence": {"password": SECRETS[1]}},
        {"kind": "read", "entity": "a/b", "values": {"password": SECRETS[1]}},
        {"kind": "note", "text": "n", "data": secrets()},
    ]
    decision = {"stage": "s", "facts": secrets(), "rules": [{"chosen": secrets(), "when": {"kept": 1}}]}
    return [
        {"id": run, "query": "q", "inputs": secrets(), "steps": steps, "answer": secrets(), "further": secrets()},
        {"query": "q", "inputs": secrets(), "steps": [{"decide": decision}], "answer": secrets()},
        [
            {"kind": "run.started", **place, "query": "q", "inputs": secrets(), "attributes": secrets()},
            {"kind": "run.tool", **place, "name": "password", "args": secrets(), "result": cut},
            {"kind": "run.decided", **place, "stage": "s", "chosen": secrets(), "rules": [rule], "facts": secrets()},
            {"kind": "run.read", **place, "entity": "a/b", "fields": {"password": {"value": SECRETS[1]}}},
            {"kind": "run.ended", **place, "status": "done", "answer": secrets()},
            {"kind": "run.judged", **place, "verdict": "bad", "preferred": secrets()},
        ],
    ]


@pytest.mark.parametrize("form", [0, 1, 2])
def test_runs_recorded_elsewhere_hide_what_this_ledger_hides(ledger: Ledger, db: Path, form: int) -> None:
    """A trajectory, a told run and entries that come whole are kept without what stands under hidden keys."""
    (run,) = ledger.runs.import_(told("run_" + "b" * 26)[form])
    assert leaks(db.parent) == []
    assert ledger.runs.show(run).inputs == {"kept": 1, "deep": [{"password": REDACTED}]}
    if form == 2:
        assert ledger.runs.show(run).tool_calls[0].name == "password"


def test_patterns_of_a_trajectory_have_stars_too(ledger: Ledger) -> None:
    """A trajectory names the keys to be hidden as a run does."""
    document = {"query": "q", "redact": ["my_*"], "steps": [{"kind": "tool", "name": "t", "args": {"my_key": "k"}}]}
    (run,) = ledger.runs.import_(document)
    assert ledger.runs.show(run).tool_calls[0].args == {"my_key": REDACTED}


@pytest.mark.parametrize("given", ["ssn", "zip, ssn", ["ssn"], {"ssn"}])
def test_one_key_may_be_given_as_text(given: Any) -> None:
    """A text names keys with commas between them, wherever keys to be hidden are given; it is no list of letters."""
    with woodrat.open(":memory:") as ledger:
        with ledger.run("?") as run:
            verdict = run.decide("d", {"ssn": "1"}, [Rule("x", {"ssn": "1"})], redact=given)
            woodrat.tool(lambda ssn: None, name="t", redact=given)("1")
        with ledger.run("?", inputs={"ssn": "1"}, redact=given) as other:
            pass
        assert verdict.evidence == {"ssn": REDACTED, "threshold": REDACTED}
        assert ledger.runs.show(run.id).tool_calls[0].args == {"ssn": REDACTED}
        assert ledger.runs.show(other.id).inputs == {"ssn": REDACTED}
    with pytest.raises(Refused, match="redact"):
        woodrat.decide("d", {"ssn": "1"}, [], redact=[5])  # type: ignore[list-item]


def test_the_place_shows_that_something_was_there(ledger: Ledger) -> None:
    """A redacted value reads as [REDACTED], at any depth, and what is not hidden stays."""
    ledger.store(account())
    fields = ledger.show("account/ada").fields
    assert fields["ssn"] == fields["pin"] == fields["Password"] == REDACTED
    assert fields["settings"] == {"api_token": REDACTED, "list": [{"x_token": REDACTED}], "kept": "yes"}
    assert ledger.show("account/ada").to_json()["blame"]["ssn"]["misfits"] == 0
    with ledger.run("?", inputs={"password": "p", "n": 1}) as run:
        run.answer("a")
    assert ledger.runs.show(run.id).inputs == {"password": REDACTED, "n": 1}


def test_a_redacted_field_needs_no_sound_value(ledger: Ledger) -> None:
    """Nothing of a redacted value is known afterwards, so its subschema is not asked; it counts as stated."""
    ledger.store(account(ssn="no such pattern", pin="no integer"))
    assert ledger.show("account/ada").fields["ssn"] == REDACTED
    with pytest.raises(Refused, match="ssn: is required"):
        ledger.store({"entity_type": "account", "login": "bob"})


@pytest.mark.parametrize("value", [float("nan"), 2**70, b"123-45-6789", "123-45-6789\0", {"a": {1: "123-45-6789"}}])
def test_a_refusal_shows_no_secret(ledger: Ledger, value: Any) -> None:
    """A record that is refused for or beside its secret does not say it, by key or by schema."""
    for record in (account(ssn=value), account(ssn=value, login=5), account(other=float("nan"))):
        with pytest.raises(Refused) as caught:
            ledger.store([record])
        assert not [secret for secret in SECRETS if secret in str(caught.value)]
    ledger.store(account())
    with pytest.raises(Refused) as corrected:
        ledger.correct("account/ada", {"ssn": value})
    assert not [secret for secret in SECRETS if secret in str(corrected.value)]
    assert "1180591620717411303424" not in str(corrected.value)


def test_the_same_call_with_another_secret_is_the_same_call(ledger: Ledger) -> None:
    """The request is taken of what is left, so a key stands for it whatever the secret was."""
    first = ledger.store(account(), idempotency_key="k")
    again = ledger.store(account(ssn="999-99-9999", Password="other"), idempotency_key="k")
    assert again.repeated
    assert again.observations == first.observations
    with pytest.raises(Refused, match="another request"):
        ledger.store(account(other=1), idempotency_key="k")


def test_a_schema_registered_later_hides_from_then_on(db: Path) -> None:
    """A schema takes effect in the write after it, on every connection."""
    with woodrat.open(db, clock=FixedClock()) as one, woodrat.open(db, clock=FixedClock(seed="b")) as two:
        two.store({"entity_type": "thing", "id": "t", "x": "seen"})
        one.schemas.register({"title": "thing", "properties": {"x": {"x-woodrat-redact": True}}})
        two.store({"entity_type": "thing", "id": "t", "x": "unseen"})
        assert two.show("thing/t").fields["x"] == REDACTED


def test_an_identity_field_cannot_be_redacted(ledger: Ledger) -> None:
    """A schema that hides what identifies is refused, and a key hidden by pattern identifies nothing."""
    for document in (
        {"title": "a", "x-woodrat-identity": [["code"]], "properties": {"code": {"x-woodrat-redact": True}}},
        {"title": "b", "properties": {"email": {"x-woodrat-redact": True}}},
    ):
        with pytest.raises(Refused, match="a redacted value identifies nothing"):
            ledger.schemas.register(document)
    with woodrat.open(":memory:", redact=["id", "name"]) as hiding, pytest.raises(Refused, match="nothing identifies"):
        hiding.store({"entity_type": "thing", "id": "t", "name": "n"})


@pytest.mark.parametrize("policy", ["union", "append", "sum"])
def test_a_policy_that_holds_no_text_cannot_be_redacted(ledger: Ledger, policy: str) -> None:
    """A field whose policy cannot hold the mark is refused with both remedies."""
    with pytest.raises(Refused, match="cannot hold"):
        ledger.schemas.register(
            {"title": "c", "properties": {"x": {"x-woodrat-redact": True, "x-woodrat-merge": policy}}}
        )


def test_the_setting_comes_from_the_environment_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """WOODRAT_REDACT lists patterns with commas between them, unless the caller states some."""
    monkeypatch.setenv("WOODRAT_REDACT", "pass*, key ,")
    record = {"entity_type": "thing", "id": "t", "passphrase": "x", "KEY": "y", "keys": "z"}
    with woodrat.open(":memory:") as ledger:
        ledger.store(record)
        assert dict(ledger.show("thing/t").fields) == {"id": "t", "passphrase": REDACTED, "KEY": REDACTED, "keys": "z"}
        assert ledger.as_agent("other").context.hidden == ledger.context.hidden
    with woodrat.open(":memory:", redact=[]) as open_one:
        open_one.store(record)
        assert open_one.show("thing/t").fields["passphrase"] == "x"


@pytest.mark.parametrize("given", [5, [5], ["*"], [""], ["a"] * 1001, {"a": 1}])
def test_a_setting_that_is_no_pattern_is_refused(given: Any) -> None:
    """What is no list of patterns, or would hide everything, is refused when the ledger is opened."""
    with pytest.raises(Refused, match="redact"):
        woodrat.open(":memory:", redact=given)


def test_patterns_are_keys_with_stars() -> None:
    """A star stands for any text and nothing else does; ASCII case does not count."""
    hidden = Hidden(["*_token", "a.c", "x*z"])
    assert all(key in hidden for key in ("api_token", "API_TOKEN", "_token", "a.c", "xyz", "xz", "x\nz"))
    assert not any(key in hidden for key in ("token", "abc", "xyzzy", "", 5, None))
    assert sorted(hidden) == ["*_token", "a.c", "x*z"]
    assert "b" in hidden | ["b"]
    assert "xz" in hidden | ["b"]
