"""The folder of keys: made once, never written over, and private."""

from __future__ import annotations

import builtins
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from woodrat.errors import Corrupt, Refused, Unavailable
from woodrat.proofs.verbs import keys as module
from woodrat.proofs.verbs.keys import Keys, make
from woodrat.testing.clock import FixedClock


def contents(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_init_makes_keys_that_sign_and_verify(tmp_path: Path) -> None:
    """A new folder has a signer, its public key and an erasure key; what one signs the other verifies."""
    made = make(tmp_path / "keys", FixedClock())
    keys = Keys.open(tmp_path / "keys")
    assert [Path(path).name for path in made.made] == ["erasure.key", "signer.key", "signer.pub"]
    assert made.verifier == keys.verifier
    assert keys.verifier.name.startswith("woodrat-")
    assert keys.verifier.verifies(b"x", keys.sign(b"x"))
    assert len(keys.erasure or b"") == 32
    assert made.to_json()["vkey"] == str(keys.verifier)
    secret = keys.signer.seed
    assert secret.hex() not in str(made.to_json())


def test_init_again_changes_nothing(tmp_path: Path) -> None:
    """Keys that are there stay byte for byte, and only what is missing is made."""
    make(tmp_path, FixedClock(), "example.com/a")
    before = contents(tmp_path)
    assert make(tmp_path, FixedClock(seed="other")).made == ()
    assert contents(tmp_path) == before
    (tmp_path / "signer.pub").unlink()
    (tmp_path / "erasure.key").unlink()
    again = make(tmp_path, FixedClock(seed="other"))
    assert [Path(path).name for path in again.made] == ["erasure.key", "signer.pub"]
    assert contents(tmp_path)["signer.pub"] == before["signer.pub"]


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_keys_are_for_their_owner_alone(tmp_path: Path) -> None:
    """The folder can be entered, and the files be read, by their owner only; nothing temporary is left."""
    make(tmp_path / "keys", FixedClock())
    found = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "keys").iterdir()}
    assert found == {"seen": 0o700, "signer.key": 0o600, "signer.pub": 0o600, "erasure.key": 0o600}
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700


@pytest.mark.parametrize("name", ["", "two words", "a+b", "x" * 201, "tab\there"])
def test_a_name_that_cannot_sign_is_refused(tmp_path: Path, name: str) -> None:
    """A signer's name has no spaces and no plus; nothing is made."""
    with pytest.raises(Refused, match="cannot name a signer"):
        make(tmp_path / "keys", FixedClock(), name)
    assert not (tmp_path / "keys").exists()


def test_another_name_for_a_signer_that_is_there_is_refused(tmp_path: Path) -> None:
    """`--name` cannot rename a signer, since its key's hash rests on the name."""
    make(tmp_path, FixedClock(), "a")
    with pytest.raises(Refused, match='the signer here is "a"'):
        make(tmp_path, FixedClock(), "b")


def test_half_a_pair_is_refused(tmp_path: Path) -> None:
    """A public key without its private one is not replaced: somebody holds checkpoints by it."""
    make(tmp_path, FixedClock())
    (tmp_path / "signer.key").unlink()
    with pytest.raises(Refused, match=r"signer\.pub exists and .*signer\.key does not"):
        make(tmp_path, FixedClock(seed="other"))


def test_keys_that_do_not_belong_together_are_corrupt(tmp_path: Path) -> None:
    """A private key beside the public key of another signs nothing, and is not shown."""
    make(tmp_path / "a", FixedClock(seed="a"))
    make(tmp_path / "b", FixedClock(seed="b"))
    (tmp_path / "a" / "signer.key").write_bytes((tmp_path / "b" / "signer.key").read_bytes())
    with pytest.raises(Corrupt, match="is not the key of"):
        Keys.open(tmp_path / "a").sign(b"x")


@pytest.mark.parametrize("text", ["", "PRIVATE+KEY+a", "secret", "PRIVATE+KEY+k+00000000+AQ=="])
def test_a_damaged_private_key_is_refused_unshown(tmp_path: Path, text: str) -> None:
    """What is no private key is refused without its bytes in the message."""
    make(tmp_path, FixedClock())
    (tmp_path / "signer.key").write_text(text, "ascii")
    with pytest.raises(Refused) as caught:
        Keys.open(tmp_path).sign(b"x")
    assert "AQ==" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_damaged_erasure_key_is_corrupt(tmp_path: Path) -> None:
    """An erasure key that is not 32 bytes in hex recognises nothing."""
    make(tmp_path, FixedClock())
    (tmp_path / "erasure.key").write_text("00ff\n", "ascii")
    with pytest.raises(Corrupt, match="32 bytes in hex"):
        _ = Keys.open(tmp_path).erasure


def test_a_folder_without_keys_is_refused(tmp_path: Path) -> None:
    """Naming a folder that `init` has not made says how to make it."""
    with pytest.raises(Refused, match="woodrat init --signing-keys"):
        Keys.open(tmp_path / "none")


def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    """Where a file stands in the way, nothing is made and the path is named."""
    (tmp_path / "file").write_text("x")
    with pytest.raises(Unavailable, match="No key was written over"):
        make(tmp_path / "file" / "keys", FixedClock())


def test_without_the_extra_there_is_no_signer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `cryptography` init makes the erasure key and no signer; with it the signer follows."""
    real = builtins.__import__

    def importing(name: str, *rest: Any) -> Any:
        if name.startswith("cryptography"):
            raise ImportError(name)
        return real(name, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", importing)
        made = make(tmp_path, FixedClock())
        assert made.verifier is None
        assert [Path(path).name for path in made.made] == ["erasure.key"]
    assert make(tmp_path, FixedClock()).verifier is not None
    with monkeypatch.context() as patched:
        patched.setattr(builtins, "__import__", importing)
        with pytest.raises(Unavailable, match=r"woodrat\[proof\]"):
            Keys.open(tmp_path).sign(b"x")


def test_a_crash_while_writing_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was remembered is the old text or the new one, never half of it."""
    path = tmp_path / "a.note"
    module.replace(str(path), "old\n", FixedClock())

    def dies(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "fsync", dies)
    with pytest.raises(OSError, match="no space"):
        module.replace(str(path), "new\n", FixedClock(seed="b"))
    assert path.read_text() == "old\n"


def test_a_file_system_without_links_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where files cannot be linked keys are made all the same, and nothing temporary is left."""

    def fails(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", fails)
    make(tmp_path / "keys", FixedClock())
    assert sorted(contents(tmp_path / "keys")) == ["erasure.key", "signer.key", "signer.pub"]
    assert make(tmp_path / "keys", FixedClock(seed="other")).made == ()


def test_files_of_logs_with_any_name_lie_in_the_folder(tmp_path: Path) -> None:
    """A log's name may hold anything; the file of its checkpoint is always one directly under seen/."""
    keys = make(tmp_path, FixedClock()).keys
    for log in ("log_a", "../../etc/passwd", "example.org/log", "x" * 5000, "é" * 100):
        assert os.path.dirname(keys.seen(log)) == keys.path("seen")
        assert len(os.path.basename(keys.seen(log))) <= 255
    assert len({keys.seen("x" * 5000), keys.seen("x" * 5001)}) == 2
