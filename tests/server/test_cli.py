"""The command line on a ledger behind a server: the same words, the same answers."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import Start
from tests.server.server import Server

from woodrat.cli.main import main
from woodrat.cli.verbs import COMMANDS
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.server.access import GRANTS
from woodrat.server.keys import Keyring

ANA = '[{"entity_type":"contact","name":"Ana Rivera","city":"%s"}]'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line in a folder of its own; return its exit code and what it printed."""
    for name in ("WOODRAT_DB", "WOODRAT_TENANT", "WOODRAT_AGENT", "WOODRAT_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def call(*words: str) -> tuple[int, str, str]:
        code = main(words)
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}"


READS = (
    "show 'contact/Ana Rivera'",
    "entities list",
    "entities list --where city=Porto",
    "entities list --where 'city prefix Por' --sort city --descending",
    "entities search --query Ana",
    "observations list",
    "history 'contact/Ana Rivera'",
    "timeline",
    "blame 'contact/Ana Rivera#city'",
    "conflicts",
    "diff --from 0 --to now",
    "related 'contact/Ana Rivera'",
    "schemas list",
    "schemas show contact",
    "schemas infer contact",
    "sources list",
    "interpretations list",
    "log",
    "log --after 1 --as-of 2",
    "fingerprint",
    "stale",
    "show contact/Nobody",
    "show 'contact/Ana Rivera' --as-of 999",
    "show 'contact/Ana Rivera' --valid-at soon",
)


@pytest.mark.parametrize("words", READS)
def test_reads_answer_the_same_from_afar(server: Server, run: Run, engine: SqliteEngine, words: str) -> None:
    """What is read through a server is what is read from the file: bytes, exit code and errors."""
    afar, here = ("--db", address(server)), ("--db", engine.path)
    for city in ("Barcelona", "Porto"):
        assert run("store", f"--json={ANA % city}", *afar)[0] == 0
    assert run(*shlex.split(words), *afar) == run(*shlex.split(words), *here)


def test_ids_are_completed_from_afar(server: Server, run: Run, engine: SqliteEngine, tmp_path: Path) -> None:
    """Any unique beginning of an id and `last` are read through a server as from the file, and a write needs the id."""
    afar, here = ("--db", address(server)), ("--db", engine.path)
    for city in ("Barcelona", "Porto"):
        assert run("store", f"--json={ANA % city}", *afar)[0] == 0
    source = tmp_path / "contract.txt"
    source.write_text("Net-30")
    assert run("sources", "add", str(source), *afar)[0] == 0
    trace = tmp_path / "trace.json"
    for number in range(4):
        trace.write_text(json.dumps({"query": f"Run {number}?", "steps": [{"read": "contact/Ana Rivera"}]}))
        assert run("runs", "import", str(trace), *afar)[0] == 0
    observation = json.loads(run("observations", "list", *afar)[1])["items"][0]["id"]
    entity = json.loads(run("show", "contact/Ana Rivera", *afar)[1])["entity_id"]
    things = [{"entity_type": "thing", "name": str(number)} for number in range(33)]  # more than an id has letters
    assert run("store", f"--json={json.dumps(things)}", *afar)[0] == 0
    listed = json.loads(run("entities", "list", "--entity-type", "thing", *afar)[1])["items"]
    (shared, _), *_ = Counter(thing["entity_id"][:5] for thing in listed).most_common(1)
    contract = json.loads(run("sources", "list", *afar)[1])["items"][0]["source"]
    runs = [found["id"] for found in json.loads(run("runs", "list", *afar)[1])["items"]]
    asked = (
        ("show", entity[:9]),
        ("blame", f"{entity[:9]}#city"),
        ("lineage", observation[:9]),
        ("impact", observation[:9]),
        ("sources", "show", contract[:8]),
        ("runs", "show", runs[3][:-1]),
        ("runs", "show", "last"),
        ("runs", "show", "last", "--as-of", "6"),
        ("show", "contact/Ana Rivera", "--as-of", "last"),
        ("runs", "diff", runs[1][:-1], "last"),
        ("show", shared),
        ("runs", "show", "run_zzzz"),
        ("retract", observation[:9], "--reason", "x"),
        ("runs", "judge", "last", "good"),
    )
    answers = [run(*words, *afar) for words in asked]
    for words, (code, out, told) in zip(asked, answers, strict=True):
        locally = run(*words, *here)
        assert (code, out) == locally[:2]
        assert code == 0 or told == locally[2]
    assert [code for code, _, _ in answers] == [0] * 10 + [2, 3, 2, 2]
    assert "is the beginning of several ids" in answers[-4][2]
    assert f"Send {observation}." in answers[-2][2]
    assert f"Send {runs[0]}." in answers[-1][2]


def test_a_key_for_one_type_reads_by_whole_ids(
    start: Start, keyring: Keyring, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The beginning of an id may be that of another type, so that such a key is not told what it stands for."""
    server = start(keyring)
    db = ("--db", address(server))
    monkeypatch.setenv("WOODRAT_TOKEN", keyring.create("sales", "crm", ["read", "write"])[1])
    assert run("store", f"--json={ANA % 'Oslo'}", *db)[0] == 0
    entity = json.loads(run("show", "contact/Ana Rivera", *db)[1])["entity_id"]
    assert run("show", entity[:9], *db)[0] == 0
    monkeypatch.setenv("WOODRAT_TOKEN", keyring.create("sales", "other", ["read:boat"])[1])
    code, out, told = run("show", entity[:9], *db)
    assert (code in (2, 7), out, "Ana" in told) == (True, "", False)


def test_every_verb_answers_or_says_why_not(
    start: Start, keyring: Keyring, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every verb, as its help shows it, works through a server or is refused by name; none ends in a traceback.

    Each has a tenant of its own, so that it meets a ledger with nothing in it.
    """
    server = start(keyring)
    examples = [
        example
        for command in COMMANDS
        for example in command.examples
        if "--follow" not in example and command.words not in ("demo", "init")
    ]
    wrong: dict[str, tuple[int, str]] = {}
    for number, words in enumerate(examples):
        monkeypatch.setenv("WOODRAT_TOKEN", keyring.create(f"t{number}", "a", ["*"])[1])
        typed = shlex.split(words.partition("|")[0].partition(" > ")[0])[1:]
        code, _, told = run(*typed, "--db", address(server))
        if code not in range(8) or "Traceback" in told or not (code in (0, 1) or told):
            wrong[words] = (code, told)
    assert wrong == {}


def test_a_key_comes_from_the_environment(
    start: Start, keyring: Keyring, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key is taken from WOODRAT_TOKEN; without one, and with a wrong one, the caller is told so."""
    server = start(keyring)
    _, secret = keyring.create("sales", "crm", ["read", "write"])
    db = ("--db", address(server))
    assert run("show", "contact/Ana Rivera", *db)[0] == 7
    monkeypatch.setenv("WOODRAT_TOKEN", "wrat_wrong")
    assert run("show", "contact/Ana Rivera", *db)[0] == 7
    monkeypatch.setenv("WOODRAT_TOKEN", secret)
    assert run("store", f"--json={ANA % 'Oslo'}", *db)[0] == 0
    code, out, _ = run("show", "contact/Ana Rivera", *db)
    assert code == 0
    assert json.loads(out)["blame"]["city"]["agent"] == "crm"


def test_tenant_and_agent_are_what_the_key_says(server: Server, run: Run) -> None:
    """Naming another tenant or agent than the key's is refused, both at once."""
    code, _, told = run("show", "contact/x", "--tenant", "sales", "--as", "crm", "--db", address(server))
    assert code == 2
    assert "--tenant" in told
    assert "--as" in told


def test_what_needs_the_file_is_refused(server: Server, run: Run) -> None:
    """A verb that works on the database itself says so, and where to run it."""
    code, _, told = run("migrate", "--db", address(server))
    assert code == 2
    assert "woodrat migrate: it needs the database file" in told


def test_the_doctor_names_the_server(server: Server, run: Run) -> None:
    """The doctor says that a server is asked, and that its address is the one that is called."""
    code, out, _ = run("doctor", "--db", address(server))
    found: dict[str, Any] = json.loads(out)
    assert (code, found["engine"], found["outgoing_addresses"]) == (0, "server", [address(server)])
    code, out, _ = run("doctor", "--db", "http://ann:secret@localhost:1")
    assert code == 2
    assert "secret" not in out


def test_a_key_is_made_for_something(run: Run, tmp_path: Path) -> None:
    """Without a grant no key is made, and all that can be granted is told; `*` must be said."""
    db = ("--db", str(tmp_path / "x.db"))
    code, _, said = run("keys", "create", "--agent", "a", *db)
    assert (code, "No key was created." in said) == (2, True)
    assert all(grant in said for grant in (*GRANTS, "'*'"))
    assert run("keys", "create", "--agent", "a", "--grant", "fly", *db)[0] == 2
    assert json.loads(run("keys", "list", "-o", "json", *db)[1])["items"] == []
    assert json.loads(run("keys", "create", "--agent", "a", "--grant", "*", *db)[1])["grants"] == ["*"]


def test_behind_a_proxy_there_are_keys(run: Run, tmp_path: Path) -> None:
    """A proxy passes on what anybody sends, so that a server without keys does not start behind one."""
    code, _, said = run("serve", "--behind-proxy", "--port", "0", "--db", str(tmp_path / "x.db"))
    assert code == 2
    assert "--behind-proxy" in said
    assert "woodrat keys create" in said
    assert "Nothing was started." in said
