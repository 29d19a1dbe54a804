"""Golden capsules: one small log, signed by a fixed key, and what is proven from it.

    python tests/golden/make_capsules.py    write tests/golden/capsules anew: a format decision, and reads like one

Nothing here asks the machine for anything: the clock and the key are fixed, so every byte repeats.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Final

import woodrat
from woodrat.canon import form
from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.ledger.own_policy import registry
from woodrat.proofs.verbs.keys import Keys, make
from woodrat.proofs.verbs.signer import Signing
from woodrat.state.observation import ASSERT, say
from woodrat.testing.clock import FixedClock

FOLDER: Final = Path(__file__).resolve().parent / "capsules"

LOAN: Final[dict[str, Any]] = {
    "title": "loan",
    "properties": {
        "id": {"type": "string"},
        "creditScore": {"type": "integer"},
        "flags": {"type": "array", "x-woodrat-merge": "union"},
        "paid": {"x-woodrat-merge": "sum"},
        "notes": {"type": "array", "x-woodrat-merge": "append"},
        "limit": {"type": "integer", "x-woodrat-merge": "max"},
        "floor": {"type": "integer", "x-woodrat-merge": "min"},
        "opened": {"type": "string", "x-woodrat-merge": "first"},
        "grade": {"type": "string", "x-woodrat-merge": "highest_priority"},
    },
}


def signed_ledger(engine: Any, keys: Keys, tenant: str = "golden", agent: str = "crm", **given: Any) -> woodrat.Ledger:
    """Return a ledger on an engine whose checkpoints these keys sign."""
    clock = given.pop("clock", None) or FixedClock()
    signing = Signing(engine, TenantId(tenant), keys, clock, tell=lambda text: None, **given)
    return woodrat.Ledger(
        engine, tenant=tenant, agent=agent, clock=clock, policies=registry(()), signing=signing, keys=keys.folder
    )


def angry(view: Any) -> bool:
    """A rule that is code."""
    return bool(view["mood"] == "angry")


angry.__module__ = "agents"  # however this file is run


def story(ledger: woodrat.Ledger) -> dict[str, str]:
    """Tell a log with everything a capsule can be about, and return what to make capsules of, by file name."""
    web = ledger.as_agent("web")
    ledger.schemas.register(LOAN)
    source = ledger.sources.add(b"%PDF Score: 580\n\xff", name="report.pdf")
    with ledger.interpretations.start(
        source, model="reader-1", prompt="Read the score.", parameters={"t": 0}
    ) as reading:
        said = reading.store([{"entity_type": "loan", "id": "42", "creditScore": 580, "flags": ["new", "é"]}])
    for number, agent in enumerate((ledger, web), 1):
        agent.store(
            {
                "entity_type": "loan",
                "id": "42",
                "flags": [f"from-{agent.agent}"],
                "paid": "0.10" if number > 1 else 7,
                "notes": [f"note {number}"],
                "limit": 10 * number,
                "floor": number,
                "opened": f"2025-0{number}-01",
                "grade": "ABC"[number],
            },
            priority=10 - number,
        )
    web.correct("loan/42", {"grade": "A"}, reason="checked by hand")
    gone = ledger.store({"entity_type": "loan", "id": "42", "grade": "Z"}, priority=99)
    ledger.retract(gone.observations[0], reason="a typo")

    @woodrat.tool
    def bureau(number: str) -> dict[str, Any]:
        return {"history": ["late", "paid/~"], "score": 580.5}

    inputs = {"amount": 5000, "currency": "EUR"}
    with ledger.run("Should we approve application #42?", subject="loan/42", inputs=inputs) as run:
        loan = run.show("loan/42")
        found = bureau("42")
        rules = [
            woodrat.Rule("rejected", {"creditScore": {"lt": 600}, "amount": {"gte": 1000}}, label="Marginal credit"),
            woodrat.Rule("approved", {"creditScore": {"gte": 700}}, label="Good credit"),
        ]
        facts = {"creditScore": loan.fact("creditScore"), "amount": run.input("amount")}
        woodrat.decide("classify-risk", facts, rules, default="manual-review")
        woodrat.select(
            "channels",
            {"score": found["score"], "currency": "EUR", "mood": "calm", "flags": loan.fact("flags")},
            [
                woodrat.Rule("mail", {"score": {"gt": 500}, "currency": {"in": ["EUR", "CHF"]}}),
                woodrat.Rule("phone", {"mood": {"matches": "^c"}, "email": {"exists": False}}, label="By phone"),
                woodrat.Rule("letter", angry, label="By post"),
                woodrat.Rule("visit", {"flags": {"ne": []}, "score": {"lte": 580.5}}),
                woodrat.Rule("fax", {"mood": {"ne": "calm"}, "score": {"not_in": [1]}}),
            ],
        )
        call = run.model("small-1", messages=[{"role": "user", "content": "Calm?"}], response={"mood": ["calm"]})
        facts = {"mood": call.fact("/mood/0")}
        woodrat.decide("escalate", facts, [woodrat.Rule("yes", {"mood": "angry"})], default="no")
        run.answer("Application #42: REJECTED. Credit (580) below floor (600).")
    for number in range(20):
        ledger.store({"entity_type": "contact", "name": f"N{number}"})
    return {
        "observation": said.observations[0],
        "run": run.id,
        "stage": f"{run.id}#classify-risk",
        **{f"field-{name}": f"loan/42#{name}" for name in sorted(LOAN["properties"])},
    }


def further(ledger: woodrat.Ledger) -> dict[str, str]:
    """Tell what is hidden, cut, joined, imported, unfinished or set aside, and return what to make capsules of."""
    rule = woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")
    found: dict[str, str] = {}
    with ledger.run("Hide the score.", redact=["credit*"]) as run:
        run.decide("risk", run.show("loan/42"), [rule], default="approved")
    found["hidden"] = run.id
    with ledger.run("Take long inputs.", inputs={"creditScore": 580, "text": "x" * 100_000}) as run:
        run.decide("risk", {"creditScore": run.input("creditScore")}, [rule])
    found["cut"] = f"{run.id}#risk"
    ledger.store({"entity_type": "loan", "id": "43", "creditScore": 700, "notes": ["another desk"]})
    ledger.merge("loan/42", "loan/43")
    with ledger.run("Which loan?") as run:
        run.decide("risk", run.show("loan/42"), [rule], default="approved")
        run.store({"entity_type": "decision_note", "id": "1", "text": "approved by the desk"})
    found["joined"] = run.id
    outside = ledger.show("loan/42")
    run = ledger.run("Read outside, and never end.").start()
    run.decide("risk", outside, [rule], default="approved")
    found["interrupted"] = run.id
    run.release()
    place = {"run": "run_" + "a" * 26, "agent": "crm", "started_at": "2026-01-01T00:00:00.000000Z"}
    begun = {"kind": "run.started", "step": 0, "span": "0", "query": "Imported?", **place}
    decided = {"kind": "run.decided", "step": 7, "span": "7", "stage": "risk", "mode": "decide", "chosen": "rejected"}
    ended = {"kind": "run.ended", "step": 9, "span": "9", "status": "done", **place}
    ledger.runs.import_([begun, {**decided, "default": False, **place}, ended])
    found["imported"] = place["run"]
    # What another log holds is taken in as it is, and loses where it does not fit.
    aside = say(
        Ref("loan", "42"), ASSERT, agent="x", observed_at=ledger.context.clock.now(), fields={"creditScore": "high"}
    )
    ledger.admit([("observation", aside.body)])
    found["field-aside"] = "loan/42#creditScore"
    return found


def written() -> dict[str, bytes]:
    """Return every file by name."""
    from woodrat.verifier import woodrat_verify

    with tempfile.TemporaryDirectory() as folder:
        made = make(folder, FixedClock(seed="key"), "example.com/golden")
        ledger = signed_ledger(InMemoryEngine(), made.keys)
        first = ledger.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"})
        old = ledger.proofs.checkpoint().note
        named = story(ledger)
        files = {f"{name}.json": ledger.proofs.capsule(what).to_bytes() for name, what in named.items()}
        files["proof.json"] = ledger.proofs.prove(first.observations[0]).to_bytes()
        files["consistency.json"] = ledger.proofs.prove_consistency(old).to_bytes()
        files["old.note"] = old.encode()
        files["new.note"] = ledger.proofs.checkpoint().note.encode()
        told = further(ledger)
        files |= {f"{name}.json": ledger.proofs.capsule(what).to_bytes() for name, what in told.items()}
        # The properties are changed after the fact: what was decided under the old ones stays proven.
        changed = {**LOAN["properties"], "creditScore": {"type": "integer", "x-woodrat-merge": "max"}}
        ledger.schemas.register({**LOAN, "properties": changed})
        files["later-schema.json"] = ledger.proofs.capsule(named["stage"]).to_bytes()
        ledger.erase("loan/42#creditScore", reason="a court said so")
        files["erased.json"] = ledger.proofs.capsule(named["stage"]).to_bytes()
        ledger.erase("decision_note/1", reason="a court said so")
        files["erased-write.json"] = ledger.proofs.capsule(told["joined"]).to_bytes()
        files["vkey"] = f"{made.verifier}\n".encode()
    key = files["vkey"].decode()
    found = {name: woodrat_verify.outcome(data, key) for name, data in sorted(files.items()) if name != "vkey"}
    files["verdicts"] = form.serialise(found) + b"\n"
    return files


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for name, content in written().items():
        (FOLDER / name).write_bytes(content)
