"""Ledgers to look at with the inspector: the demonstration's, a large one, and one that is out to break pages."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from woodrat.api.ledger import Ledger
from woodrat.api.open import open_ledger
from woodrat.cli import demo_ledger

TENANT: Final = "demo"
MARK: Final = "__ran"
"""What a payload that runs leaves behind: a member of `window`."""


@dataclass(frozen=True)
class Size:
    """How large a large ledger is."""

    entities: int
    runs: int
    steps: int
    """Of its long run."""


FULL: Final = Size(entities=10_000, runs=2_000, steps=10_000)
IS_LONG: Final = os.environ.get("WOODRAT_FAULTS") == "full"
"""Whether the long profile was asked for."""
BATCH: Final = 1_000
START: Final = 1_767_225_600
"""The second at which what happened in large ledgers begins, since 1970."""


def make_demo(path: Path) -> None:
    """Write the ledger of `woodrat demo --serve`."""
    demo_ledger.make(path, tenant=TENANT)


def make_large(path: Path, size: Size) -> str:
    """Write many entities and runs, and one long run; return the id of that."""
    with open_ledger(path, tenant=TENANT, agent="importer") as ledger:
        for start in range(0, size.entities, BATCH):
            ledger.store([_account(n) for n in range(start, min(start + BATCH, size.entities))])
        for start in range(0, size.runs, BATCH // 4):
            ledger.runs.import_([_run(n) for n in range(start, min(start + BATCH // 4, size.runs))])
        (long,) = ledger.runs.import_(_long_run(size.steps))
        # Reads that build indexes are made here, so that each server of the tests finds them built.
        ledger.runs.list(limit=1), ledger.search("Owner 1"), ledger.conflicts()
    return str(long)


def _account(number: int) -> dict[str, Any]:
    return {
        "entity_type": "account",
        "id": f"{number:05}",
        "owner": f"Owner {number}",
        "credit_score": 500 + number * 37 % 350,
        "city": ("Barcelona", "Girona", "Lisbon", "Porto")[number % 4],
    }


def _time(number: int) -> str:
    from woodrat.canon import moment

    return moment.from_micros((START + number * 60) * 1_000_000)


def _run(number: int) -> dict[str, Any]:
    score = 500 + number * 37 % 350
    return {
        "id": f"trace-{number}",
        "agent": f"officer-{number % 3}",
        "query": f"Should we approve application #{number}?",
        "subject": f"account/{number:05}",
        "started_at": _time(number),
        "steps": [
            {"kind": "read", "entity": f"account/{number:05}", "values": {"credit_score": score}},
            {"kind": "tool", "name": "lookup_income", "args": {"application": number}, "result": {"income": 52_000}},
            {
                "kind": "decision",
                "stage": "classify-risk",
                "chosen": "rejected" if score < 600 else "approved",
                "rule": "Marginal credit" if score < 600 else "Good credit",
                "evidence": {"credit_score": score},
            },
        ],
        "answer": f"Application #{number}: {'REJECTED' if score < 600 else 'APPROVED'}.",
    }


def _long_run(steps: int) -> dict[str, Any]:
    def step(number: int) -> dict[str, Any]:
        if number % 5 == 4:
            text = f"Step {number}: go on with page {number + 1}."
            return {
                "kind": "model",
                "model": "small-1",
                "messages": [{"role": "user", "content": text}],
                "response": text,
            }
        return {"kind": "tool", "name": "read_page", "args": {"page": number}, "result": {"title": f"Page {number}"}}

    return {
        "id": "trace-long",
        "agent": "crawler",
        "query": "Read the whole archive",
        "started_at": _time(0),
        "steps": [step(number) for number in range(steps)],
        "answer": "Done.",
    }


def make_alike(path: Path) -> None:
    """Write two runs of 2,000 steps: the first 500 are the same, then every fourth differs."""
    with open_ledger(path, tenant=TENANT, agent="importer") as ledger:
        for name in ("one", "two"):
            ledger.runs.import_(_alike(name))


def _alike(name: str) -> dict[str, Any]:
    def step(number: int) -> dict[str, Any]:
        title = f"Page {number} of {name}" if number >= 500 and number % 4 == 0 else f"Page {number}"
        return {"kind": "tool", "name": "read_page", "args": {"page": number}, "result": {"title": title}}

    return {
        "id": f"trace-{name}",
        "agent": "crawler",
        "query": "Read half of the archive",
        "started_at": _time(0),
        "steps": [step(number) for number in range(2_000)],
        "answer": "Done.",
    }


PAYLOADS: Final[tuple[str, ...]] = (
    f"<script>window.{MARK}=1</script>",
    f"<img src=x onerror=window.{MARK}=2>",
    f"<svg onload=window.{MARK}=3>",
    f'"><script>window.{MARK}=4</script>',
    f"'><img src=x onerror='window.{MARK}=5'>",
    f"</script><script>window.{MARK}=6</script>",
    f"<iframe srcdoc='<script>parent.{MARK}=7</script>'></iframe>",
    f"<iframe src='javascript:parent.{MARK}=8'></iframe>",
    f"javascript:window.{MARK}=9",
    f"JaVaScRiPt:window.{MARK}=10//",
    f"data:text/html,<script>opener.{MARK}=11</script>",
    f"<a href='javascript:window.{MARK}=12'>x</a>",
    f"<body onload=window.{MARK}=13>",
    f"<details open ontoggle=window.{MARK}=14>",
    f"<input autofocus onfocus=window.{MARK}=15>",
    f"<video><source onerror=window.{MARK}=16></video>",
    f"<math><mtext></mtext><mglyph><style><img src=x onerror=window.{MARK}=17>",
    f"<style>@import 'javascript:window.{MARK}=18';</style>",
    f"<style>body{{display:none}}</style><b onmouseover=window.{MARK}=19>x</b>",
    f"<object data='javascript:window.{MARK}=20'></object>",
    f"<embed src='javascript:window.{MARK}=21'>",
    f"<form action='javascript:window.{MARK}=22'><button autofocus>x</button></form>",
    f"<meta http-equiv=refresh content='0;url=javascript:window.{MARK}=23'>",
    f"<base href='javascript:window.{MARK}=24//'>",
    f"<link rel=stylesheet href='data:text/css,*{{display:none}}'><img src=x onerror=window.{MARK}=25>",
    f"{{{{constructor.constructor('window.{MARK}=26')()}}}}",
    f"${{window.{MARK}=27}}",
    f"{{@html '<img src=x onerror=window.{MARK}=28>'}}",
    f"`-window.{MARK}=29-`",
    f"';window.{MARK}=30;//",
    f'\\";window.{MARK}=31;//',
    f"<!--><img src=x onerror=window.{MARK}=32>-->",
    f"<![CDATA[<img src=x onerror=window.{MARK}=33>]]>",
    f"&lt;img src=x onerror=window.{MARK}=34&gt;",
    f"\u003cimg src=x onerror=window.{MARK}=35\u003e",
    f"＜script＞window.{MARK}=36＜/script＞",
    f"\u202e<img src=x onerror=window.{MARK}=37>\u202c",
    f"[x](javascript:window.{MARK}=38)",
    f"<template><img src=x onerror=window.{MARK}=39></template>",
    f"__proto__/../../<noscript><p title='</noscript><img src=x onerror=window.{MARK}=40>'>",
)
"""Text that runs where a page takes it for more than text."""
assert len(PAYLOADS) == 40


def make_hostile(path: Path) -> None:
    """Write the payloads into every text of the model that users can choose.

    Names of types, and of tenants, take letters alone; all that takes any text takes each payload once.
    """
    with open_ledger(path, tenant=TENANT, agent="ordinary") as ledger:
        _schema(ledger)
        for number, payload in enumerate(PAYLOADS):
            _tell(ledger, number, payload)


def _schema(ledger: Ledger) -> None:
    """Register a type whose title and descriptions are payloads; there is room for some in each place."""
    fields: dict[str, Any] = {
        f"field {number} {payload}": {"type": "string", "title": payload, "description": payload}
        for number, payload in enumerate(PAYLOADS)
    }
    schema: dict[str, Any] = {
        "type": "object",
        "title": PAYLOADS[0],
        "description": PAYLOADS[1],
        "properties": {**fields, "name": {"type": "string", "description": PAYLOADS[2]}},
        "x-woodrat-identity": [["name"]],
    }
    ledger.schemas.register(schema, entity_type="hostile")


def _tell(ledger: Ledger, number: int, payload: str) -> None:
    agent = ledger.as_agent(f"{payload}"[:100].strip())
    ref = f"hostile/{payload}"
    file = agent.sources.add(f"{payload}\n{payload}\n".encode(), name=f"{payload.replace('/', '∕')}.txt")
    with agent.interpretations.start(file, model=payload, prompt=payload, parameters={payload: payload}) as reading:
        reading.store(
            {
                "entity_type": "hostile",
                "name": payload,
                f"field {number} {payload}": payload,
                "$": {"locator": {"line": 1}},
            }
        )
    agent.store({"entity_type": "hostile", "name": payload, "note": [payload, {payload: payload}]})
    ledger.as_agent("second").store({"entity_type": "hostile", "name": payload, "note": f"other {payload}"})
    agent.correct(ref, {"note": payload}, reason=payload)
    agent.remember(payload, about=ref)
    if number:
        agent.relate(ref, "linked_to", f"hostile/{PAYLOADS[number - 1]}")
    with agent.run(payload, subject=ref, conversation=payload, principal=payload, inputs={payload: payload}) as run:
        with run.tool(payload, **{"argument": payload}) as tool:
            tool.result = {payload: payload}
        loan = run.show(ref)
        run.decide(
            payload,
            loan,
            [{"chosen": payload, "when": {"note": payload}, "label": payload}],
            default=f"default {payload}",
        )
        run.decided(payload, payload, because=payload, on=[loan])
        run.answer(payload)
    agent.runs.judge(run.id, "bad", reason=payload)
