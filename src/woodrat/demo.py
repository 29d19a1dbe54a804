"""The demonstration: two agents disagree on a city, one report comes late, and a person corrects them.

Run it with `python3 dev.py demo`. It keeps everything in memory and leaves nothing behind.
"""

from __future__ import annotations

import sys

import woodrat
from woodrat.ledger.ledger import Ledger

BOLD, DIM, GREEN, YELLOW, RESET = "\033[1m", "\033[2m", "\033[32m", "\033[33m", "\033[0m"

ANA = "contact/Ana Rivera"


def main() -> None:
    """Tell the story on a fresh ledger."""
    colour = sys.stdout.isatty()

    def say(text: str = "", style: str = "") -> None:
        print(f"{style}{text}{RESET}" if colour and style else text)

    def blame(ledger: Ledger) -> None:
        for verdict in ledger.blame(ANA, "city")["city"]:
            mark = "✓" if verdict.wins else "·"
            line = (
                f"  {mark} {verdict.value!s:<14} {verdict.agent:<9} seen {verdict.observed_at[:16]}  {verdict.reason}"
            )
            say(line, GREEN if verdict.wins else DIM)

    def city(ledger: woodrat.Past) -> str:
        return str(ledger.show(ANA).fields["city"])

    crm = woodrat.open(":memory:", tenant="demo", agent="crm")
    web, person = crm.by("web"), crm.by("maria")

    say("Two agents, one contact", BOLD)
    first = crm.store(
        [{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}], observed_at="2026-01-05T09:00:00Z"
    )
    report = web.store(
        [{"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"}], observed_at="2026-03-01T12:00:00Z"
    )
    say(f"  crm saw Barcelona in January, web saw San Francisco in March: {city(crm)} is believed.")
    say(f"  in conflict now: {', '.join(report.conflicts)}", YELLOW)
    blame(crm)

    say("\nA late arrival", BOLD)
    crm.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Lisbon"}], observed_at="2026-02-10T08:00:00Z")
    say(f"  crm reports what it saw in February. It came last, it was not seen last: still {city(crm)}.")
    blame(crm)

    say("\nA correction", BOLD)
    person.correct(ANA, {"city": "Girona"}, reason="she told me")
    web.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"}])
    say(f"  maria corrects the city; web repeats itself later. The correction holds: {city(crm)}.")
    blame(crm)

    say("\nAny past moment, on two clocks", BOLD)
    say(f"  as of position {first.position}: {city(crm.at(first.position))}")
    say(f"  known now, true by 20 January: {city(crm.at(effective='2026-01-20T00:00:00Z'))}")
    for change in crm.diff(first.position, "now", ANA):
        for field in change.fields:
            say(f"  changed since position {first.position}: {field.field} {field.before!r} → {field.after!r}")

    say("\nOrder does not matter", BOLD)
    proof = crm.prove_order(shuffles=100)
    say(
        f"  {proof.observations} observations in {proof.shuffles} orders: "
        f"{'one fingerprint' if proof.holds else f'{len(proof.differing)} differ'}, {proof.fingerprint[:14]}…",
        GREEN,
    )
    say("\nNext: docs/guide/two-agents.md works this story out by hand.", DIM)
    if not proof.holds:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
