"""Groups of runs with a planted cause of failure, amid noise in wording, inputs, ids, order and verdicts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final

from tests.runs.story import Said, body, entries

from woodrat.runs.record import RunRecord, record_of

RUNS: Final = 200
LABEL_NOISE: Final = 0.03
CAUSES: Final = ("argument", "skipped", "stale", "two", "none")
"""What may be planted: one argument, a check that is skipped, a fact that is out of date, two of these, or nothing."""

NOUNS: Final = ("order", "claim", "booking", "invoice", "ticket", "parcel", "account", "policy", "visit", "lease")
VERBS: Final = ("get", "find", "check", "list", "open", "price", "route", "score", "quote", "fetch", "match", "rate")
CHOICES: Final = (
    ("method", "card", "cash"),
    ("currency", "EUR", "USD"),
    ("cabin", "economy", "business"),
    ("mode", "strict", "lenient"),
    ("unit", "km", "miles"),
    ("scope", "order", "account"),
    ("limit", 50, 5),
    ("dry_run", False, True),
)
FACTS: Final = (
    ("rule/returns", "window_days", 30, 14),
    ("tariff/standard", "rate", 0.19, 0.16),
    ("limits/daily", "maximum", 1000, 500),
    ("contact/desk", "city", "Girona", "Lleida"),
)
OPENINGS: Final = ("Let me", "I will", "I am going to", "Now I shall", "First I", "Next, let me", "Alright, I will")
DOINGS: Final = ("look into", "work on", "take care of", "check", "deal with", "go through", "sort out")


@dataclass
class Plan:
    """How the runs of one group go."""

    tools: list[str]
    argument: tuple[int, str, Any, Any]
    """Which tool takes a choice: its place, the argument, the right value, the wrong one."""
    check: int
    """Place of the tool that is a check."""
    fact: tuple[str, str, Any, Any]
    fact_place: int
    symptom: bool
    """Whether the last step shows that something is wrong, whatever the cause was."""
    extra: list[str] = field(default_factory=list)


@dataclass
class Planted:
    """A group with what was planted."""

    records: list[RunRecord]
    causes: list[str]
    plan: Plan

    def is_named(self, cause: str, trait: Any) -> bool:
        """Return whether a trait names a cause."""
        plan = self.plan
        if cause == "argument":
            place, name, _, wrong = plan.argument
            values = (trait.value, trait.present)
            return (trait.kind, trait.name, trait.path) == ("argument", plan.tools[place], name) and values == (
                wrong,
                True,
            )
        if cause == "skipped":
            return (trait.kind, trait.name, trait.present) == ("step", f"tool {plan.tools[plan.check]}", False)
        entity, name, _, stale = plan.fact
        told = (trait.kind, trait.path, trait.value, trait.present)
        return trait.name in (entity, entity.split("/")[0]) and told == ("read", name, stale, True)


def planted(cause: str, seed: int, runs: int = RUNS) -> Planted:
    """Return a group of runs with a cause of failure, the same for the same seed."""
    random = Random(f"{cause} {seed}")
    plan = _plan(random)
    singles = ["argument", "skipped", "stale"]
    causes = random.sample(singles, 2) if cause == "two" else [] if cause == "none" else [cause]
    likely = {each: random.uniform(0.12, 0.35) if len(causes) == 1 else random.uniform(0.10, 0.2) for each in causes}
    records = []
    for number in range(runs):
        active = {each for each in causes if random.random() < likely[each]}
        bad = bool(active) if causes else random.random() < 0.25
        if random.random() < LABEL_NOISE:
            bad = not bad
        records.append(_run(random, plan, number, active, bad))
    return Planted(records, causes, plan)


def _plan(random: Random) -> Plan:
    names = [f"{verb}_{noun}" for verb in VERBS for noun in NOUNS]
    tools = random.sample(names, random.randint(6, 12))
    places = random.sample(range(1, len(tools) - 1), 2)
    return Plan(
        tools=tools,
        argument=(places[0], *random.choice(CHOICES)),
        check=places[1],
        fact=random.choice(FACTS),
        fact_place=random.randrange(0, len(tools) - 1),
        symptom=random.random() < 0.5,
        extra=random.sample([name for name in names if name not in tools], 3),
    )


def _run(random: Random, plan: Plan, number: int, active: set[str], bad: bool) -> RunRecord:
    id = "run_" + "".join(random.choice("abcdefghijklmnopqrstuvwxyz") for _ in range(26))
    key, customer = f"o-{random.randrange(10_000)}", f"customer_{random.randrange(500)}"
    amount, tier = round(random.uniform(5, 900), 2), random.choice(["gold", "silver", "basic"])
    inputs = {"key": key, "customer": customer, "amount": amount, "tier": tier, "lang": random.choice(["en", "de"])}
    steps = list(_steps(random, plan, active, inputs))
    began = {"query": _words(random, key), "inputs": inputs}
    said: list[Said] = [("run.started", body(0, id, **began))]
    said += [(kind, body(place, id, **told)) for place, (kind, told) in enumerate(steps, 1)]
    said.append(("run.ended", body(len(steps) + 1, id, status="done", answer=_words(random, key))))
    verdict = {"verdict": "bad" if bad else "good", "by": "ann"}
    said.append(("run.judged", body(len(steps) + 2, id, **verdict)))
    return record_of(id, entries(said))


def _steps(random: Random, plan: Plan, active: set[str], inputs: dict[str, Any]) -> Iterator[Said]:
    calls = list(range(len(plan.tools)))
    for place in range(0, len(calls) - 3, 2):  # neighbours that do not depend on each other come in any order
        if random.random() < 0.5:
            calls[place], calls[place + 1] = calls[place + 1], calls[place]
    for place, tool in enumerate(calls):
        yield _model(random)
        if random.random() < 0.25:
            yield _model(random)
        if random.random() < 0.15:
            yield _tool(random, random.choice(plan.extra), {"key": inputs["key"], "reason": _words(random, "")}, {})
        if place == plan.fact_place:
            entity, name, fresh, stale = plan.fact
            observation = "obs_" + "".join(random.choice("abcdefghij") for _ in range(26))
            shown = {name: {"observation": observation, "value": stale if "stale" in active else fresh}}
            yield "run.read", {"entity": entity, "found": True, "fields": shown}
        if tool == plan.check and "skipped" in active:
            continue
        args: dict[str, Any] = {
            "key": inputs["key"],
            "lang": inputs["lang"],
            "note": _words(random, inputs["customer"]),
        }
        result: dict[str, Any] = {"amount": inputs["amount"], "rows": random.randint(1, 4)}
        if tool == plan.argument[0]:
            _, name, right, wrong = plan.argument
            args[name] = wrong if "argument" in active else right
            result["applied"] = args[name]
        if place == len(calls) - 1 and plan.symptom:
            result["outcome"] = "odd" if active and random.random() < 0.97 else "fine"
        yield _tool(random, plan.tools[tool], args, result)
    yield _model(random)


def _tool(random: Random, name: str, args: dict[str, Any], result: dict[str, Any]) -> Said:
    noise = {
        "request_id": "".join(random.choice("0123456789abcdef") for _ in range(32)),
        "created_at": f"2026-01-{random.randint(1, 28):02d}T{random.randint(0, 23):02d}:15:00Z",
        "items": [
            {"sku": f"sku-{random.randrange(300)}", "count": random.randint(1, 9)} for _ in range(random.randint(0, 3))
        ],
    }
    return "run.tool", {"name": name, "args": args, "result": {**noise, **result}}


def _model(random: Random) -> Said:
    return "run.model", {"model": "small-1", "request": f"{random.random()}", "response": _words(random, "it")}


def _words(random: Random, about: str) -> str:
    tail = random.choice(["as asked", "right away", "as you said", "before anything else", "step by step", "once more"])
    return f"{random.choice(OPENINGS)} {random.choice(DOINGS)} {about} {tail}, number {random.randrange(1000)}."
