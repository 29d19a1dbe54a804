"""Keys, checkpoints, proofs and capsules on the command line, checked by both verifiers as programs of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import Cli
from tests.verifier.both import JAVASCRIPT, NODE, essence

KEYS = "WOODRAT_SIGNING_KEYS"


@pytest.fixture
def keys(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of keys that `init` made, named by WOODRAT_SIGNING_KEYS."""
    folder = tmp_path / "keys"
    monkeypatch.setenv(KEYS, str(folder))
    ran = cli("init", "--name", "example.com/cli")
    assert ran.code == 0, ran.err
    return folder


@pytest.fixture
def loan(cli: Cli, keys: Path, tmp_path: Path) -> str:
    """A loan that was rejected in a run; the id of the run."""
    document = tmp_path / "run.json"
    cli("store", '--json={"entity_type":"loan","id":"42","creditScore":580}')
    run = "run_" + "a" * 26
    decide = {
        "stage": "risk",
        "facts": "loan/42",
        "rules": [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}}],
    }
    told = {"id": run, "query": "Approve #42?", "steps": [{"decide": decide}], "answer": "Rejected."}
    document.write_text(json.dumps(told), "utf-8")
    ran = cli("runs", "import", str(document))
    assert ran.code == 0, ran.err
    return run


def verifiers() -> list[list[str]]:
    """Return the commands of the stand-alone verifiers; the one in Python sees nothing of this project."""
    from woodrat.verifier import woodrat_verify

    found = [[sys.executable, "-I", "-S", woodrat_verify.__file__]]
    return found if NODE is None else [*found, [NODE, str(JAVASCRIPT)]]


def verified(path: Path, key: str | Path, *more: str) -> tuple[int, str]:
    """Return the exit code and the words of the verifier in Python; the other one comes to the same verdict."""
    arguments = [str(path), "--key", str(key), *more]
    found = [
        subprocess.run([*command, *arguments, "--json"], capture_output=True, timeout=60) for command in verifiers()
    ]
    verdicts = [(one.returncode, essence(json.loads(one.stdout))) for one in found if one.returncode != 2]
    assert verdicts.count(verdicts[0]) == len(found) if verdicts else all(one.returncode == 2 for one in found)
    ran = subprocess.run([*verifiers()[0], *arguments], capture_output=True, timeout=60)
    return ran.returncode, ran.stdout.decode()


def test_init_says_what_to_hand_out_and_changes_nothing_twice(cli: Cli, tmp_path: Path) -> None:
    """`init` prints the verifier key and never the secret; a second time everything is there already."""
    folder = tmp_path / "k"
    ran = cli("init", "--signing-keys", str(folder), "-o", "table")
    vkey = (folder / "signer.pub").read_text().strip()
    assert ran.code == 0
    assert vkey in ran.out
    assert "PRIVATE" not in ran.out + ran.err
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    again = cli("init", "--signing-keys", str(folder))
    assert (again.json["made"], again.json["vkey"]) == ([], vkey)
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_doctor_lists_the_keys(cli: Cli, keys: Path, loan: str) -> None:
    """`doctor` names the folder, the verifier key and every file with its size, and shows no secret."""
    found = cli("doctor")
    listed = found.json["keys"]
    assert listed["folder"] == str(keys)
    assert listed["vkey"] == (keys / "signer.pub").read_text().strip()
    assert {os.path.basename(file["path"]) for file in listed["files"]} >= {"signer.key", "signer.pub", "erasure.key"}
    assert "PRIVATE" not in found.out
    assert str(keys) in cli("doctor", "-o", "table").out


def test_commands_that_write_sign_and_commands_that_read_do_not(cli: Cli, keys: Path) -> None:
    """Each write ends in a checkpoint of the log as it is then."""
    cli("store", '--json={"entity_type":"thing","id":"1"}')
    (note,) = (keys / "seen").glob("*.note")
    first = note.read_text()
    cli("show", "thing/1")
    cli("store", '--json={"entity_type":"thing","id":"2"}', "--dry-run")
    assert note.read_text() == first
    cli("store", '--json={"entity_type":"thing","id":"2"}')
    assert note.read_text() != first
    printed = cli("checkpoint")
    assert (printed.json["note"], printed.json["new"]) == (note.read_text(), False)


def test_a_capsule_outlives_the_database(cli: Cli, db: Path, keys: Path, loan: str, tmp_path: Path) -> None:
    """Delete the database: capsules of a run, a decision, an observation and a field verify offline with both."""
    said = cli("show", "loan/42").json["blame"]["creditScore"]["observation"]
    files = {}
    for name, what in {"run": loan, "stage": f"{loan}#risk", "said": said, "field": "loan/42#creditScore"}.items():
        files[name] = tmp_path / f"{name}.json"
        ran = cli("capsule", what, "--out", str(files[name]))
        assert ran.code == 0, ran.err
    key = tmp_path / "handed-out.vkey"
    shutil.copy(keys / "signer.pub", key)
    for path in (db, *db.parent.glob(db.name + "-*")):
        path.unlink()
    shutil.rmtree(keys)
    for name, path in files.items():
        code, words = verified(path, key)
        # A type without a schema: one that was left out would not show.
        assert (code, words.split("\n")[0]) == (0, "CONSISTENT" if name == "field" else "PROVEN"), name
        assert verified(path, key, "--strict")[0] == (1 if name == "field" else 0)
    assert "creditScore = 580 lt 600: holds" in verified(files["stage"], key)[1]
    flipped = tmp_path / "flipped.json"
    flipped.write_bytes(files["stage"].read_bytes().replace(b'"Rejected."', b'"Rejectee."'))
    assert verified(flipped, key) == (
        1,
        "REFUSED entry 4: the content of this run.ended is not what the log committed to (body). "
        "Nothing of this file is proven.\n",
    )


def test_proofs_on_the_command_line_verify(cli: Cli, keys: Path, loan: str, tmp_path: Path) -> None:
    """`prove OBS`, `prove --from NOTE` and `checkpoint --out` write what both verifiers accept."""
    old, new, proof, consistency = (
        tmp_path / name for name in ("old.note", "new.note", "proof.json", "consistency.json")
    )
    assert cli("checkpoint", "--out", str(old)).code == 0
    said = cli("show", "loan/42").json["blame"]["creditScore"]["observation"]
    assert cli("prove", said, "--out", str(proof)).code == 0
    assert cli("prove", said).out.encode() == proof.read_bytes()
    cli("store", '--json={"entity_type":"thing","id":"1"}')
    assert cli("prove", "--from", str(old), "--out", str(consistency)).code == 0
    assert cli("checkpoint", "--out", str(new)).code == 0
    key = keys / "signer.pub"
    for path in (old, new, proof, consistency):
        assert verified(path, key)[0] == 0, path
    assert verified(new, key, "--checkpoint", str(old))[0] == 0
    code, words = verified(old, key, "--checkpoint", str(new))
    assert code == 1
    assert "(truncated)" in words


def test_dropping_the_last_ten_entries_shows(cli: Cli, db: Path, keys: Path) -> None:
    """A database without its last ten entries warns on every command, is read, is not written to, and is not signed."""
    records = [{"entity_type": "thing", "id": str(number)} for number in range(5)]
    cli("store", f"--json={json.dumps(records)}")
    shutil.copy(db, f"{db}.old")
    more = [{"entity_type": "thing", "id": str(number)} for number in range(5, 15)]
    cli("store", f"--json={json.dumps(more)}")
    shutil.copy(f"{db}.old", db)
    read = cli("show", "thing/3")
    assert read.code == 0
    assert "WARNING" in read.err
    assert "has 5 entries, and its last checkpoint covers 15. The last 10 are missing" in read.err
    wrote = cli("store", '--json={"entity_type":"thing","id":"99"}')
    assert wrote.code == 6
    assert "Nothing was written" in wrote.err
    assert "--new-epoch" in wrote.err
    assert cli("show", "thing/99").code == 3
    assert cli("checkpoint").code == 6
    accepted = cli("checkpoint", "--new-epoch", "all we have")
    assert (accepted.json["checkpoint"]["epoch"], accepted.json["checkpoint"]["size"]) == (2, 5)
    assert cli("store", '--json={"entity_type":"thing","id":"99"}').code == 0
    assert cli("show", "thing/99").err == ""


def test_the_verifiers_travel_with_a_capsule(cli: Cli, keys: Path, loan: str, tmp_path: Path) -> None:
    """`--with-verifier` puts both programs beside the capsule, byte for byte, and they work from there."""
    out = tmp_path / "out" / "decision.json"
    out.parent.mkdir()
    ran = cli("capsule", loan, "--out", str(out), "--with-verifier")
    assert ran.code == 0, ran.err
    names = sorted(path.name for path in out.parent.iterdir())
    assert names == ["decision.json", "woodrat-verify.mjs", "woodrat_verify.py"]
    assert (out.parent / "woodrat-verify.mjs").read_bytes() == JAVASCRIPT.read_bytes()
    command = [sys.executable, "-I", "-S", str(out.parent / "woodrat_verify.py"), str(out)]
    ran_alone = subprocess.run([*command, "--key", str(keys / "signer.pub"), "--json"], capture_output=True, timeout=60)
    assert json.loads(ran_alone.stdout)["verdict"] == "proven"


def test_the_installed_program_verifies(
    cli: Cli, keys: Path, loan: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`woodrat-verify` is installed beside `woodrat`; a file that is not there is told as such, and is no refusal."""
    from woodrat.verifier.woodrat_verify import main

    out = tmp_path / "c.json"
    cli("capsule", loan, "--out", str(out))
    assert main([str(out), "--key", str(keys / "signer.pub")]) == 0
    assert main([str(tmp_path / "none.json"), "--key", "k"]) == 2
    assert main([str(out), "--key", str(keys / "typo.pub")]) == 2
    assert "typo.pub: No such file" in capsys.readouterr().err
    assert main([str(out), "--key", str(keys / "signer.pub"), "--checkpoint", str(tmp_path / "none.note")]) == 2
    assert main([str(out), "--key", "no+such+key"]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("prove",), "expected either an observation or --from"),
        (("prove", "obs_x", "--from", "x"), "Name one of the two"),
        (("prove", "0", "--to", "x"), "--to: it needs --from"),
        (("prove", "--from", "/none/none.note"), "cannot read"),
        (("prove", "thing/1"), "is neither"),
        (("capsule", "loan/42", "--out", "-"), "names no field"),
        (("capsule", "loan/42#creditScore", "--out", "-", "--with-verifier"), "standard output has no folder"),
        (("init", "--name", "two words"), "cannot name a signer"),
        (("checkpoint", "--new-epoch", "why not"), "nothing to accept"),
        (("checkpoint", "--signing-keys", "/none/keys"), "there are no keys in"),
    ],
)
def test_mistakes_are_refused(cli: Cli, loan: str, words: tuple[str, ...], says: str) -> None:
    """Each mistake exits with 2 and says what is wrong."""
    ran = cli(*words)
    assert ran.code == 2, ran.out
    assert says in ran.err


def test_a_note_of_standard_input_has_an_end(cli: Cli, loan: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more of standard input is read than a limit, which the refusal names."""
    monkeypatch.setattr("woodrat.cli.inputs.INPUT_BYTES_MAX", 1_000)
    ran = cli("prove", "--from", "-", stdin=b"x" * 1_001)
    assert (ran.code, "has more than 1000 bytes" in ran.err, "Nothing was proven." in ran.err) == (2, True, True)


def test_without_keys_the_command_line_says_how_to_make_some(cli: Cli) -> None:
    """Without keys, checkpoint, prove and capsule refuse and name `woodrat init`."""
    cli("store", '--json={"entity_type":"thing","id":"1"}')
    for words in (("checkpoint",), ("prove", "0"), ("capsule", "thing/1#id", "--out", "-")):
        ran = cli(*words)
        assert ran.code == 2
        assert "woodrat init" in ran.err
