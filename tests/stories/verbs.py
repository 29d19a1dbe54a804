"""Every verb in one row: what the library is given, what is typed, and what every surface answers.

`WORLD` makes a ledger with two agents, runs, readings and a checkpoint; each surface is told the rows, in their order,
on a copy of it. `${name}` stands for what the world is remembered by. `then` is about the answer as the library has it;
its paths are those of the stories (`tests.stories.surfaces.dig`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any, NamedTuple

import woodrat
from woodrat.api.ledger import Ledger

TENANT, AGENT = "lending", "clerk"
EARLY, LATE = "2026-01-05T09:00:00Z", "2026-03-01T12:00:00Z"
ANA, LOAN = "contact/Ana Rivera", "loan/42"
LOAN_SCHEMA = {
    "title": "loan",
    "properties": {"tags": {"type": "array", "x-woodrat-merge": "union"}, "creditScore": {"type": "integer"}},
}
RULES = [
    woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    woodrat.Rule("approved", {"creditScore": {"gte": 700}}),
]
QUESTION = "Approve application #42?"


def make_world(ledger: Ledger) -> dict[str, Any]:
    """Tell a ledger what the rows are about; return what they call by a name."""
    crm, web = ledger.as_agent("crm"), ledger.as_agent("web")
    ana = {"entity_type": "contact", "name": "Ana Rivera"}
    first = crm.store({**ana, "city": "Barcelona", "phone": "1"}, observed_at=EARLY)
    web.store({**ana, "city": "San Francisco"}, observed_at=LATE)
    for email in ({}, {"email": "ada@example.org"}):
        crm.store({"entity_type": "contact", "name": "Ada", **email}, observed_at=EARLY)
    ledger.schemas.register(LOAN_SCHEMA)
    loan = {"entity_type": "loan", "id": "42", "creditScore": 580, "tags": ["new", "small"]}
    told = crm.store(loan, observed_at=EARLY)
    crm.relate(ANA, "owes", LOAN, observed_at=EARLY)
    ledger.tag("monday")
    source = ledger.sources.add(b"Net-30", name="contract.txt")
    readings = []
    for terms in ("Net-30", "Net-60"):
        with ledger.interpretations.start(source, model="m-1") as reading:
            reading.store({"entity_type": "contract", "name": "kline", "terms": terms}, observed_at=EARLY)
        readings.append(reading.id)
    runs = []
    for credit in (580, 720):
        ledger.correct(LOAN, {"creditScore": credit}, observed_at=EARLY)
        with ledger.run(QUESTION, subject=LOAN, inputs={"application": 42}) as run:
            snapshot = run.show(LOAN)
            run.tool("bureau", lambda number: {"score": number}, credit)
            verdict = run.decide("risk", snapshot, RULES, default="review")
            run.store({"entity_type": "loan", "id": "42", "status": verdict.chosen}, observed_at=LATE)
            run.answer(f"It is {verdict.chosen}.")
        runs.append(run.id)
    ledger.runs.judge(runs[0], "bad", preferred="It is approved.")
    low = ledger.correct(LOAN, {"creditScore": 550}, reason="typo", observed_at=LATE).observations[0]
    return {
        "fingerprint": ledger.fingerprint(),
        "note": ledger.proofs.checkpoint().note,
        "first": first.position,
        "said": first.observations[0],
        "loan": told.observations[0],
        "low": low,
        "source": source,
        "reading": readings[0],
        "other_reading": readings[1],
        "run": runs[0],
        "other_run": runs[1],
    }


class VerbStory(NamedTuple):
    """What is said of one verb."""

    verb: str
    given: Mapping[str, Any]
    """What the method of the library takes."""
    typed: str
    """The command as it is typed; empty where the verb has none."""
    then: Mapping[str, Any]
    """What the answer has at each path."""
    file: bytes = b""
    """What is in the file that is typed as FILE; OUT is a file that the command writes."""
    printed: Mapping[str, Any] | None = None
    """What the command prints at each path, where it does not print the record."""
    is_fresh: bool = False
    """Whether times and ids that nobody states are part of the answer, of which `then` says all there is to compare."""


DOCUMENT = {"query": "?", "answer": "x", "id": "run_" + 26 * "b"}
CAR = {**LOAN_SCHEMA, "title": "car"}
SECOND = "src_2eru43ovxameu2lammqvmwzlyk"
FLIP = {"creditScore": {"gte": 600}}
NEW = {"entity_type": "contact", "name": "Cy", "city": "Lugo"}

READS = [
    VerbStory("show", {"ref": ANA}, f"show '{ANA}'", {"fields.city": "San Francisco", "blame.city.agent": "web"}),
    VerbStory("elements", {"ref": LOAN, "field": "tags", "limit": 1}, "elements loan/42#tags --limit=1",
              {"elements": ["new"], "total": 2}),
    VerbStory("search", {"query": "ana riv"}, "entities search --query 'ana riv'", {"items.*.snapshot.entity": [ANA]},
              printed={"entity": ANA, "claims.city.#": 2}),
    VerbStory("query", {"entity_type": "loan", "where": ["creditScore lt 600"]},
              "entities list --entity-type loan --where 'creditScore lt 600'", {"items.*.entity": [LOAN]}),
    VerbStory("duplicates", {}, "", {"items.#": 1}),
    VerbStory("observations", {"ref": ANA}, f"observations list '{ANA}'", {"items.*.agent": ["crm", "web"]}),
    VerbStory("history", {"ref": ANA, "field": "city"}, f"history '{ANA}' --field city",
              {"items.1.changes.0.after": "San Francisco"}),
    VerbStory("timeline", {"until": LATE, "limit": 2}, f"timeline --until {LATE} --limit 2",
              {"items.#": 2}),
    VerbStory("blame", {"ref": ANA, "field": "city"}, f"blame '{ANA}#city'",
              {"claims.city.*.value": ["San Francisco", "Barcelona"], "claims.city.*.wins": [True, False]}),
    VerbStory("conflicts", {"entity_type": "contact"}, "conflicts --entity-type contact", {"items.*.field": ["city"]}),
    VerbStory("diff", {"before": "${first}", "after": "now", "ref": ANA}, f"diff '{ANA}' --from ${{first}} --to now",
              {"changes.0.fields.0.before": "Barcelona", "changes.0.fields.0.after": "San Francisco"}),
    VerbStory("diff_against", {"known": [], "ref": ANA}, "", {"changes.0.kind": "added"}),
    VerbStory("values", {}, "", {f"{LOAN}.fields.creditScore": 550}),
    VerbStory("related", {"ref": ANA, "depth": 2}, f"related '{ANA}' --depth 2", {"items.*.end": [LOAN]}),
    VerbStory("ids", {"prefix": "last"}, "", {"": ["${other_run}"]}),
    VerbStory("fingerprint", {}, "fingerprint", {"": "${fingerprint}"}, printed={"fingerprint": "${fingerprint}"}),
    VerbStory("why", {"ref": LOAN}, "why loan/42", {"items.*.decision.chosen": ["approved", "rejected"]}),
    VerbStory("recall", {"question": QUESTION, "k": 1, "threshold": 0.1, "budget": 100_000},
              f"recall '{QUESTION}' --k 1 --threshold 0.1 --budget 100000",
              {"hits.#": 1}),
    VerbStory("lineage", {"what": "${run}#risk"}, "lineage '${run}#risk'", {"kind": "decision"}),
    VerbStory("impact", {"what": "${low}"}, "impact ${low}", {"fields.0.field": "creditScore"}),
    VerbStory("stale", {"same": True}, "stale --same", {"items.#": 2}),
    VerbStory("bisect", {"what": LOAN, "when": FLIP, "first": True},
              "bisect loan/42 --where 'creditScore gte 600' --first",
              {"flip.position": 25}),
    VerbStory("reduce", {"what": ANA, "exists": True}, f"reduce '{ANA}' --exists --out OUT",
              {"0.question": "contact/Ana Rivera exists", "0.origin.observations": 2}),
    VerbStory("sql", {"query": "SELECT 1 AS one"}, "sql 'SELECT 1 AS one'", {"rows": [[1]]}),
    VerbStory("what_if", {"run": "${run}", "set": {"creditScore": 650}}, "what-if ${run} --set creditScore=650",
              {"supposition.facts.creditScore": 650, "decisions.#": 1}),
    VerbStory("overview", {"days": 2}, "", {"position": 33, "checkpoint.size": 34}),
    VerbStory("verify", {}, "verify", {"sound": True, "observations": 13, "damage": []}),
    VerbStory("prove_order", {"shuffles": 2}, "prove-order --shuffles 2", {"holds": True, "differing": []}),
    VerbStory("runs.list", {"subject": LOAN}, "runs list --subject loan/42",
              {"items.*.id": ["${other_run}", "${run}"]}),
    VerbStory("runs.show", {"run": "${run}"}, "runs show ${run}",
              {"decisions.0.chosen": "rejected", "answer": "It is rejected."}),
    VerbStory("runs.steps", {"run": "${run}", "skip": 1}, "", {"run.counts.decisions": 1}),
    VerbStory("runs.diff", {"first": "${run}", "second": "${other_run}"}, "runs diff ${run} ${other_run}",
              {"same": False, "step": 1, "cause.kind": "state"}),
    VerbStory("runs.group", {"query": QUESTION}, f"runs group --query '{QUESTION}'",
              {"total": 2, "main.clusters.0.runs": ["${other_run}"]}),
    VerbStory("schemas.infer", {"entity_type": "loan"}, "schemas infer loan",
              {"title": "loan", "properties.tags.type": "array"}),
    VerbStory("schemas.show", {"entity_type": "loan"}, "schemas show loan", {"type": "loan", "version": 1}),
    VerbStory("schemas.list", {}, "schemas list", {"items.0.type": "contact"}, printed={"items.0.origin": "built in"}),
    VerbStory("schemas.check", {"model": CAR}, "schemas check FILE", {"dry_run": True},
              json.dumps(CAR).encode()),
    VerbStory("sources.list", {}, "sources list", {"items.*.name": ["contract.txt"]}),
    VerbStory("sources.show", {"source": "${source}"}, "sources show ${source}", {"*.name": ["contract.txt"]},
              printed={"deliveries.*.name": ["contract.txt"]}),
    VerbStory("interpretations.list", {}, "interpretations list", {"items.#": 2}),
    VerbStory("interpretations.show", {"interpretation": "${reading}"}, "interpretations show ${reading}",
              {"model": "m-1"}),
    VerbStory("interpretations.diff", {"before": "${reading}", "after": "${other_reading}"},
              "interpretations diff ${reading} ${other_reading}",
              {"entities.0.fields.0.after": "Net-60"}, printed={"entities.0.fields.0.after": "Net-60", "position": 33}),
    VerbStory("proofs.checkpoint", {}, "checkpoint", {"note": "${note}"}),
    VerbStory("proofs.checkpoints", {}, "", {"*.size": [34]}),
    VerbStory("proofs.prove", {"what": "${said}"}, "prove ${said} --out OUT",
              {"checkpoint": "${note}", "entry.body.agent": "crm"}),
    VerbStory("proofs.prove_consistency", {"old": "${note}"}, "", {"from": "${note}", "to": "${note}"}),
    VerbStory("proofs.capsule", {"what": "${run}"}, "capsule ${run} --out OUT",
              {"checkpoint": "${note}", "claim.run": "${run}"}),
    VerbStory("log.entries", {"after": 2, "limit": 2}, "log --after 2 --limit 2", {"*.position": [3, 4]}),
    VerbStory("training.export", {"kind": "kto", "out": BytesIO(), "record": False},
              "export training kto --out OUT --no-record", {"rows": 1}, printed={"rows": 1, "runs": 1}),
]  # fmt: skip

WRITES = [
    VerbStory("store", {"records": [NEW], "observed_at": EARLY}, f"store --file FILE --observed-at {EARLY}",
              {"entities": ["contact/Cy"], "known": []}, json.dumps([NEW]).encode()),
    VerbStory("remember", {"text": "Ana prefers calls", "about": ANA, "observed_at": EARLY},
              f"remember 'Ana prefers calls' --about '{ANA}' --observed-at {EARLY}",
              {"changes.0.fields.1.after": "Ana prefers calls", "observations.#": 2}),
    VerbStory("correct", {"ref": ANA, "fields": {"city": "Girona"}, "reason": "letter", "observed_at": LATE},
              f"correct '{ANA}' --set city=Girona --reason letter --observed-at {LATE}",
              {"changes.0.fields.0.after": "Girona"}),
    VerbStory("retract", {"observations": ["${loan}"], "reason": "wrong", "observed_at": LATE},
              f"retract ${{loan}} --reason wrong --observed-at {LATE}",
              {"changes.0.fields.0.before": ["new", "small"], "changes.0.fields.0.has": False}),
    VerbStory("delete", {"ref": "contact/Cy", "observed_at": LATE}, f"delete contact/Cy --observed-at {LATE}",
              {"changes.0.is_deleted": True}),
    VerbStory("restore", {"ref": "contact/Cy", "observed_at": LATE}, f"restore contact/Cy --observed-at {LATE}",
              {"changes.0.was_deleted": True, "changes.0.is_deleted": False}),
    VerbStory("relate", {"start": "contact/Cy", "type": "knows", "end": ANA, "observed_at": LATE},
              f"relate contact/Cy knows '{ANA}' --observed-at {LATE}", {"changes.0.fields.1.after": ANA}),
    VerbStory("merge", {"one": "contact/Cy", "other": ANA, "observed_at": LATE},
              f"merge contact/Cy '{ANA}' --observed-at {LATE}",
              {"changes.1.entity": "contact/Cy", "changes.1.fields.0.after": "Girona"}),
    VerbStory("split", {"ref": "contact/Cy", "other": ANA, "observed_at": LATE},
              f"split contact/Cy '{ANA}' --observed-at {LATE}",
              {"changes.0.is_deleted": True, "changes.1.fields.0.after": "Lugo"}),
    VerbStory("tag", {"name": "friday"}, "tag friday", {"position": 45},
              printed={"tag": "friday", "tagged": 44, "position": 45}),
    VerbStory("runs.judge", {"run": "${run}", "verdict": "good"}, "runs judge ${run} good", {"id": "${run}"},
              printed={"verdict": "good", "run": "${run}"}),
    VerbStory("runs.evaluate", {"run": "${run}", "against": "@monday"}, "", {"observations.#": 1}, is_fresh=True),
    VerbStory("runs.import_", {"document": DOCUMENT}, "runs import FILE", {"": [DOCUMENT["id"]]},
              json.dumps(DOCUMENT).encode(), {"items": [DOCUMENT["id"]]}),
    VerbStory("schemas.register", {"model": CAR}, "schemas register FILE", {"positions.#": 1},
              json.dumps(CAR).encode()),
    VerbStory("schemas.add_pack", {"pack": "neotoma"}, "schemas add-pack neotoma", {"positions.#": 80}),
    VerbStory("sources.add", {"content": b"Net-90", "name": "second.txt"}, "sources add FILE --name second.txt",
              {"": SECOND}, b"Net-90",
              {"source": SECOND}),
    VerbStory("rebuild", {}, "rebuild", {"agreed": True, "repaired": []}),
    VerbStory("reindex", {}, "reindex", {"runs": 3}),
    VerbStory("erase", {"what": "contact/Cy", "reason": "asked"}, "erase contact/Cy --reason asked --yes",
              {"kinds": {"observation": 6}, "complete": True}, is_fresh=True),
    VerbStory("erase_again", {}, "", {"": []}),
    VerbStory("finish_erasure", {}, "", {"purged": True}),
]  # fmt: skip
STORIES = [*READS, *WRITES]
