"""The ledger that documents speak of: a folder with everything that their command lines name, made once and copied."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.neotoma import foreign_database

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.api.open import open_ledger
from woodrat.canon import moment
from woodrat.cli.demo_ledger import DAY, StoryClock
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.keys import KEYS_TENANT, Keyring
from woodrat.server.webhooks import WEBHOOKS_TENANT, Hooks

AGENT: Final = '''"""The agent that decides about loans."""

import woodrat

RULES = [
    woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit"),
    woodrat.Rule("approved", {"creditScore": {"gte": 700}, "income": {"gte": 1000}}, label="Good credit"),
]


def approve(run):
    loan = run.show("loan/42")
    run.tool("bureau", lambda loan: {"score": 580}, "42")
    return run.decide("classify-risk", loan, RULES, default="manual-review").chosen
'''
SPANS: Final = Path(__file__).parents[1] / "otlp/fixtures/genai.json"
STANDARD_INPUT: Final = "run-record.json"
"""The file that commands get as standard input: the record of a run."""
FILLERS: Final = 120
"""How many further contacts there are, so that the log is longer than the positions that pages name."""
CONTACT: Final = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "contact",
    "type": "object",
    "properties": {"name": {"type": "string"}, "email": {"type": "string"}, "city": {"type": "string"}},
}
LOAN: Final = {"properties": {"creditScore": {"type": "number"}, "income": {"type": "number"}}}
BOX: Final = {"title": "box", "properties": {"things": {"type": "array", "x-woodrat-merge": "union"}}}


@dataclass(frozen=True)
class Names:
    """What stands in for the placeholders of a page: ids of the ledger and secrets."""

    observation: str
    """The credit score on which the loan was rejected."""
    mistaken: str
    """An observation about Ana."""
    runs: tuple[str, ...]
    """Runs of loan-officer that ended, the latest first."""
    interrupted: str
    """A run of loan-officer that did not end."""
    source: str
    interpretations: tuple[str, ...]
    webhook: str
    key: str
    """An API key of the tenant `default` that may do everything."""
    secret: str
    """The secret of that key."""
    verifier_key: str
    """The public key that checkpoints are signed with."""


def prepare(folder: Path, command: Callable[[str], str]) -> Names:
    """Fill an empty folder, the working directory; `command` runs a command line and returns what it printed."""
    _write_files(folder)
    verifier_key = json.loads(command("woodrat init --name example.com/ledger"))["vkey"]
    names: dict[str, Any] = {"verifier_key": verifier_key}
    clock = StoryClock(moment.to_micros(SystemClock().now()) - 3 * DAY)
    with open_ledger("agents.db", agent="crm", clock=clock) as ledger:
        names |= _record(ledger, command)
    with woodrat.open("agents.db", tenant="lending", agent="crm") as ledger:
        ledger.store({"entity_type": "contact", "name": "Bo"})
    with woodrat.open("laptop.db", agent="laptop") as ledger:
        ledger.store({"entity_type": "contact", "name": "Cleo"})
    (folder / STANDARD_INPUT).write_text(command("woodrat runs show last"), "utf-8")
    names |= _set_up_server(folder)
    command("woodrat backup create backup.db")
    command("""woodrat store --json '{"entity_type": "contact", "name": "Fay"}'""")
    command("woodrat checkpoint --out held-elsewhere.note")
    return Names(**names)


def _record(ledger: Ledger, command: Callable[[str], str]) -> dict[str, Any]:
    """Record what two agents believe of Ana, a loan that is approved and then rejected, and a document read twice."""
    ana = {"entity_type": "contact", "name": "Ana Rivera"}
    ledger.store({**ana, "city": "Barcelona", "tags": ["vip", "spain"]}, observed_at="2026-01-05T09:00:00Z")
    ledger.schemas.register(BOX)
    mistaken = ledger.as_agent("web").store({**ana, "city": "San Francisco"}, observed_at="2026-03-01T12:00:00Z")
    ledger.store(
        [
            {"entity_type": "contact", "email": "ana@example.com"},
            {"entity_type": "company", "name": "Acme"},
            {"entity_type": "box", "id": "7", "things": ["lamp", "rope"]},
            {"entity_type": "loan", "id": "42", "applicant": "Ana Rivera", "creditScore": 720, "income": 3000},
            *({"entity_type": "contact", "name": f"Contact {number}"} for number in range(FILLERS)),
        ],
        observed_at="2026-01-05T09:00:00Z",
    )
    officer = ledger.as_agent("loan-officer")
    first = _decide(officer)
    ledger.tag("known-good")
    ledger.tag("release-3")
    command("woodrat checkpoint --out monday.note")
    scored = ledger.as_agent("bureau").store({"entity_type": "loan", "id": "42", "creditScore": 580})
    second = _decide(officer)
    officer.runs.judge(first, "good", by="ann")
    officer.runs.judge(second, "bad", by="ann", preferred="Ask the bureau first.")
    third = _decide(officer)
    interrupted = officer.run("Should we approve application #42?", subject="loan/42", inputs={"amount": 1}).start()
    interrupted.show("loan/42")
    interrupted.release()
    source = ledger.sources.add(b"Credit score: 580", name="report.txt")
    readings = []
    for model, income in (("reader-1", 2900), ("reader-2", 3100)):
        with ledger.interpretations.start(source, model=model, prompt="Which income?") as reading:
            reading.store({"entity_type": "loan", "id": "42", "income": income})
        readings.append(reading.id)
    return {
        "observation": scored.observations[0],
        "mistaken": mistaken.observations[0],
        "runs": (third, second, first),
        "interrupted": interrupted.id,
        "source": source,
        "interpretations": tuple(readings),
    }


def _decide(officer: Ledger) -> str:
    from agents.loans import approve  # type: ignore[import-not-found]

    question = "Should we approve application #42?"
    with officer.run(question, subject="loan/42", inputs={"amount": 5000}, attributes={"task": 17}) as run:
        run.answer(approve(run))
    return run.id


def _set_up_server(folder: Path) -> dict[str, Any]:
    """Create an API key, and a webhook with deliveries that failed."""
    clock = SystemClock()
    engine = SqliteEngine(folder / "agents.db")
    try:
        keys, hooks = (
            Ledger(engine, tenant=tenant, agent="operator", clock=clock, policies=registry(()))
            for tenant in (KEYS_TENANT, WEBHOOKS_TENANT)
        )
        key, secret = Keyring(keys, clock).create("default", "auditor", ["*"])
        webhooks = Hooks(hooks, clock)
        webhook = webhooks.add("default", "http://localhost:9000/", "hook.secret", after=0)
        for first in (1, 128):
            webhooks.bury(webhook, first, first + 1, 5, "status 500")
    finally:
        engine.close()
    return {"key": key.id, "secret": secret, "webhook": webhook.id}


def _write_files(folder: Path) -> None:
    (folder / "agents").mkdir()
    (folder / "agents/__init__.py").touch()
    (folder / "agents/loans.py").write_text(AGENT)
    (folder / ".local/share/bash-completion/completions").mkdir(parents=True)
    lines = [{"entity_type": "contact", "name": name, "city": "Olot"} for name in ("Dov", "Eva")]
    (folder / "contacts.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (folder / "contact.json").write_text(json.dumps(CONTACT))
    (folder / "loan.json").write_text(json.dumps(LOAN))
    (folder / "contract.pdf").write_bytes(b"%PDF-1.4\n%%EOF\n")
    (folder / "hook.secret").write_text("not to be told to anybody")
    (folder / "hook.secret").chmod(0o600)
    (folder / "exports").mkdir()
    for name, answer in (("trace", "Net-30"), ("exports/one", "Net-45"), ("monday", "Net-30"), ("tuesday", "Net-60")):
        step = {"kind": "tool", "name": "terms", "args": {"client": "kline"}, "result": {"terms": answer}}
        trace = {"id": name.replace("/", "-"), "query": "How is kline to pay?", "steps": [step], "answer": answer}
        (folder / f"{name}.json").write_text(json.dumps(trace))
    shutil.copy(SPANS, folder / "traces.json")
    (folder / "spans.pb").write_bytes(_spans())
    _make_neotoma(folder / "neotoma.db")
    for certificate, key in (("cert.pem", "key.pem"), ("c.pem", "k.pem")):
        _make_certificate(folder / certificate, folder / key)


def _spans() -> bytes:
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    request = ExportTraceServiceRequest()
    span = request.resource_spans.add().scope_spans.add().spans.add()
    span.trace_id, span.span_id, span.name = bytes(range(16)), bytes(range(8)), "agent"
    span.start_time_unix_nano, span.end_time_unix_nano = 1_767_600_000_000_000_000, 1_767_600_001_000_000_000
    return bytes(request.SerializeToString())


def _make_neotoma(path: Path) -> None:
    connection = foreign_database.empty(path)
    about = {"entity_type": "task", "user_id": "0000-0001"}
    task, then = "ent_00000000000000000000000a", "2026-01-01T00:00:00Z"
    foreign_database.insert(connection, "entities", id=task, canonical_name="Ship", created_at=then, **about)
    foreign_database.insert(
        connection,
        "observations",
        id="obs-1",
        entity_id=task,
        source_priority=100,
        observed_at=then,
        fields={"title": "Ship"},
        **about,
    )
    connection.commit()
    connection.close()


def _make_certificate(certificate: Path, key: Path) -> None:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    private = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "ledger.example.org")])
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + datetime.timedelta(days=36_500))
        .sign(private, hashes.SHA256())
    )
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    pem = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    key.write_bytes(private.private_bytes(*pem))
    key.chmod(0o600)
