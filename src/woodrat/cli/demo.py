"""The demonstration: two agents disagree on a city, and two runs with the same inputs end differently.

It works in memory and leaves nothing behind. With `--serve` it builds a longer example in a temporary file
(`demo_ledger.py`) for the inspector.
"""

from __future__ import annotations

import os
import sys

from woodrat.api.ledger import Ledger
from woodrat.api.open import open_ledger
from woodrat.api.past import Past
from woodrat.cli.command import CommandResult, Invocation
from woodrat.cli.tables import BOLD, DIM, GREEN, YELLOW, Paper, time
from woodrat.engines.open import MEMORY
from woodrat.errors import Fault, Refused
from woodrat.server import wire

TENANT = "demo"
ANA = "contact/Ana Rivera"
KLINE = "contract/kline"
AGENTS, RUNS = "agents", "runs"
"""The two stories."""
NEXT_AGENTS = (
    """woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]' --as crm""",
    """woodrat store --json='[{"entity_type":"contact","name":"Ana Rivera","city":"San Francisco"}]' --as web""",
    'woodrat entities search --query "Ana Rivera" --entity-type contact',
    "woodrat correct 'contact/Ana Rivera' --set city=Girona --reason 'she told me'",
    "woodrat blame 'contact/Ana Rivera#city'",
    "woodrat prove-order",
)
NEXT_RUNS = ("woodrat runs list", "woodrat runs diff --help")
NEXT = ("woodrat --help",)
"""Commands to type after the demonstration: after each story, and at the end."""

RULES = (
    {"chosen": "standard procedure", "when": {"payment_terms": "Net-30"}, "label": "Short terms"},
    {"chosen": "escalate", "when": {"payment_terms": {"ne": "Net-30"}}, "label": "Long terms"},
)


def demo(call: Invocation) -> CommandResult:
    """Tell the story on a new ledger; it is text in every output format."""
    paper, story = Paper(sys.stdout), call.given.story
    if call.given.serve:
        return _serve(call)
    holds = story == RUNS or _agents(paper)
    if story != AGENTS:
        if story is None:
            paper.line()
        holds = _runs(paper) and holds
    _heading(paper, "Now on a ledger of your own")
    paper.line(f"  {_place(call)}", DIM)
    commands = (() if story == RUNS else NEXT_AGENTS) + (() if story == AGENTS else NEXT_RUNS)
    for command in (*commands, *NEXT):
        paper.line(f"  {command}")
    return CommandResult("", lambda paper: None, code=wire.DONE if holds else wire.FOUND_SOMETHING, plain=True)


def _serve(call: Invocation) -> CommandResult:
    """Make the demonstration's ledger in a temporary file, and show it in the inspector until interrupted."""
    from tempfile import TemporaryDirectory

    from woodrat.cli import demo_ledger
    from woodrat.cli.inspect import port_faults, show
    from woodrat.server.listen import NOT_STARTED

    faults = port_faults(call.given.port)
    if call.given.story is not None:
        remedy = "Leave --story out, or leave --serve out to read it here."
        faults.append(Fault("--story", f"got {call.given.story}, and --serve shows all stories", remedy))
    if faults:
        raise Refused(faults, NOT_STARTED)
    with TemporaryDirectory(prefix="woodrat-demo-") as folder:
        path = os.path.join(folder, "demo.db")
        demo_ledger.make(path, tenant=TENANT)
        call.db, call.tenant = path, TENANT
        answer = show(call, "The ledger of the demonstration", port=call.given.port, browser=not call.given.no_browser)
        call.close()
    return answer


def _heading(paper: Paper, text: str) -> None:
    paper.line()
    paper.line(text, BOLD)


def _agents(paper: Paper) -> bool:
    """Show two agents who disagree; return True if the order of arrival made no difference."""

    def blame(ledger: Ledger) -> None:
        for verdict in ledger.blame(ANA, "city")["city"]:
            mark = "✓" if verdict.wins else "·"
            seen = time(verdict.observed_at)
            line = f"  {mark} {verdict.value!s:<14} {verdict.agent:<9} seen {seen:<22}  {verdict.reason}"
            paper.line(line, GREEN if verdict.wins else DIM)

    def city(ledger: Past) -> str:
        return str(ledger.show(ANA).fields["city"])

    crm = open_ledger(MEMORY, tenant=TENANT, agent="crm")
    web, person = crm.as_agent("web"), crm.as_agent("maria")

    paper.line("Two agents, one contact", BOLD)
    first = crm.store(
        [{"entity_type": "contact", "name": "Ana Rivera", "city": "Barcelona"}], observed_at="2026-01-05T09:00:00Z"
    )
    report = web.store(
        [{"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"}], observed_at="2026-03-01T12:00:00Z"
    )
    paper.line(f"  crm saw Barcelona in January, web saw San Francisco in March: the value is {city(crm)}.")
    paper.line(f"  in conflict now: {', '.join(report.conflicts)}", YELLOW)
    blame(crm)

    _heading(paper, "A late arrival")
    crm.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "Lisbon"}], observed_at="2026-02-10T08:00:00Z")
    paper.line(f"  crm reports its observation from February. It came last, it was not seen last: still {city(crm)}.")
    blame(crm)

    _heading(paper, "A correction")
    person.correct(ANA, {"city": "Girona"}, reason="she told me")
    web.store([{"entity_type": "contact", "name": "Ana Rivera", "city": "San Francisco"}])
    paper.line(f"  maria corrects the city; web repeats itself later. The correction holds: {city(crm)}.")
    blame(crm)

    _heading(paper, "Any past moment, on two clocks")
    paper.line(f"  as of position {first.position}: {city(crm.at(first.position))}")
    paper.line(f"  known now, true by 20 January: {city(crm.at(valid_at='2026-01-20T00:00:00Z'))}")
    for change in crm.diff(first.position, "now", ANA):
        for field in change.fields:
            paper.line(f"  changed since position {first.position}: {field.field} {field.before!r} → {field.after!r}")

    _heading(paper, "Order does not matter")
    proof = crm.prove_order(shuffles=100)
    ending = "one fingerprint" if proof.holds else f"{len(proof.differing)} differ"
    said = f"  {proof.observations} observations in {proof.shuffles} orders: {ending}, {proof.fingerprint[:14]}…"
    paper.line(said, GREEN)
    return proof.holds


def _runs(paper: Paper) -> bool:
    """Tell of one pipeline that runs twice with the same inputs; return True if the runs diverged."""
    from woodrat.cli.runs_diff import show_divergence

    sales = open_ledger(MEMORY, tenant=TENANT, agent="sales")
    bot, billing = sales.as_agent("contract-bot"), sales.as_agent("billing-bot")
    paper.line("Two runs, the same inputs", BOLD)
    sales.store({"entity_type": "contract", "id": "kline", "payment_terms": "Net-30"})
    monday = _pipeline(bot)
    paper.line(f"  On Monday contract-bot decides about {KLINE}: {bot.runs.show(monday).answer}")
    invoice = billing.sources.add(b"Payment within 45 days.", name="invoice.pdf")
    billing.store({"entity_type": "contract", "id": "kline", "payment_terms": "Net-45"}, source=invoice)
    tuesday = _pipeline(bot)
    paper.line(f"  On Tuesday, the same question with the same inputs: {bot.runs.show(tuesday).answer}", YELLOW)
    _heading(paper, "What moved? `woodrat runs diff` says it in one sentence")
    found = bot.runs.diff(monday, tuesday)
    show_divergence(paper, found)
    return found.step is not None


def _pipeline(ledger: Ledger) -> str:
    """Decide how a contract is to be paid; return the run's id."""
    with ledger.run("How is kline to pay?", subject=KLINE, inputs={"invoice": 118}) as run:
        with run.tool("credit_check", client="kline") as check:
            check.result = {"limit": 50_000}
        decided = run.decide("payment-terms", run.show(KLINE), RULES, default="ask")
        run.answer(f"Use the {decided.chosen}." if decided.rule == "Short terms" else "Escalate to legal.")
    return run.id


def _place(call: Invocation) -> str:
    """Say where the commands that follow would write."""
    try:
        path = call.path
    except Refused:
        path = None
    if path is None:
        return "Add --db FILE to each of them, the file to write to."
    return f"These write to {path}; use --db FILE for another file."
