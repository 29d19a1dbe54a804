"""The demonstration: two agents disagree on a city, one report comes late, and a person corrects them.

It keeps everything in memory and leaves nothing behind.
"""

from __future__ import annotations

import sys

from woodrat.errors import Refused
from woodrat.ledger.ledger import Ledger
from woodrat.ledger.opening import MEMORY, open_ledger
from woodrat.ledger.past import Past
from woodrat.surfaces import wire
from woodrat.surfaces.cli.calling import Answer, Call
from woodrat.surfaces.cli.paper import BOLD, DIM, GREEN, YELLOW, Paper, time

ANA = "contact/Ana Rivera"
NEXT = (
    """woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]' --agent crm""",
    """woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"San Francisco"}]' --agent web""",
    'woodrat entities search --query "Ana Rivera" --entity-type contact',
    "woodrat correct 'contact/Ana Rivera' --set city=Girona --reason 'she told me'",
    "woodrat blame 'contact/Ana Rivera#city'",
    "woodrat prove-order",
    "woodrat --help",
)
"""What to type after the demonstration."""


def demo(call: Call) -> Answer:
    """Tell the story on a fresh ledger; it is text whatever the output asked for."""
    holds = _tell(call, Paper(sys.stdout))
    return Answer("", lambda paper: None, code=wire.DONE if holds else wire.FOUND_SOMETHING, plain=True)


def _tell(call: Call, paper: Paper) -> bool:
    def blame(ledger: Ledger) -> None:
        for verdict in ledger.blame(ANA, "city")["city"]:
            mark = "✓" if verdict.wins else "·"
            seen = time(verdict.observed_at)[:16]
            line = f"  {mark} {verdict.value!s:<14} {verdict.agent:<9} seen {seen}  {verdict.reason}"
            paper.line(line, GREEN if verdict.wins else DIM)

    def city(ledger: Past) -> str:
        return str(ledger.show(ANA).fields["city"])

    def heading(text: str) -> None:
        paper.line()
        paper.line(text, BOLD)

    crm = open_ledger(MEMORY, tenant="demo", agent="crm")
    web, person = crm.by("web"), crm.by("maria")

    paper.line("Two agents, one contact", BOLD)
    first = crm.store(
        [{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}], observed_at="2026-01-05T09:00:00Z"
    )
    report = web.store(
        [{"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"}], observed_at="2026-03-01T12:00:00Z"
    )
    paper.line(f"  crm saw Barcelona in January, web saw San Francisco in March: {city(crm)} is believed.")
    paper.line(f"  in conflict now: {', '.join(report.conflicts)}", YELLOW)
    blame(crm)

    heading("A late arrival")
    crm.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Lisbon"}], observed_at="2026-02-10T08:00:00Z")
    paper.line(f"  crm reports what it saw in February. It came last, it was not seen last: still {city(crm)}.")
    blame(crm)

    heading("A correction")
    person.correct(ANA, {"city": "Girona"}, reason="she told me")
    web.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"}])
    paper.line(f"  maria corrects the city; web repeats itself later. The correction holds: {city(crm)}.")
    blame(crm)

    heading("Any past moment, on two clocks")
    paper.line(f"  as of position {first.position}: {city(crm.at(first.position))}")
    paper.line(f"  known now, true by 20 January: {city(crm.at(effective='2026-01-20T00:00:00Z'))}")
    for change in crm.diff(first.position, "now", ANA):
        for field in change.fields:
            paper.line(f"  changed since position {first.position}: {field.field} {field.before!r} → {field.after!r}")

    heading("Order does not matter")
    proof = crm.prove_order(shuffles=100)
    ending = "one fingerprint" if proof.holds else f"{len(proof.differing)} differ"
    said = f"  {proof.observations} observations in {proof.shuffles} orders: {ending}, {proof.fingerprint[:14]}…"
    paper.line(said, GREEN)
    heading("Now on a ledger of your own")
    paper.line(f"  {_place(call)}", DIM)
    for command in NEXT:
        paper.line(f"  {command}")
    return proof.holds


def _place(call: Call) -> str:
    """Say where the commands that follow would write."""
    try:
        path = call.path
    except Refused:
        path = None
    if path is None:
        return "Give each of them --db FILE, the file to write to."
    return f"These write to {path}; --db FILE names another."
