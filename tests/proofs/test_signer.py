"""The signer: checkpoints by themselves, and never of a history that its last one contradicts."""

from __future__ import annotations

import shutil
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import pytest
from tests.golden.make_capsules import signed_ledger

import woodrat
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.errors import Corrupt, NotFound, Outdated, Refused, Unavailable
from woodrat.log import tree
from woodrat.log.checkpoint import Checkpoint, opened
from woodrat.proofs.verbs import signer as module
from woodrat.proofs.verbs.keys import Keys, make
from woodrat.proofs.verbs.locations import Location
from woodrat.proofs.verbs.signer import Signing, last_seen
from woodrat.testing.clock import FixedClock


@pytest.fixture
def keys(tmp_path: Path) -> Keys:
    """Keys of their own."""
    return make(tmp_path / "keys", FixedClock(seed="keys"), "example.com/test").keys


def signing(ledger: woodrat.Ledger) -> Signing:
    """Return the signer of a ledger that has keys."""
    assert ledger.signing is not None
    return ledger.signing


def fill(ledger: woodrat.Ledger, count: int, start: int = 0) -> None:
    """Store some contacts, an entry each besides the schema."""
    for number in range(start, start + count):
        ledger.store({"entity_type": "thing", "id": f"{number}", "n": number})


def head(ledger: woodrat.Ledger) -> Checkpoint:
    """Return what a checkpoint of a ledger has to say, worked out from its leaves."""
    with ledger.context.engine.view(ledger.tenant) as view:
        found = view.head()
        assert found.log is not None
        return Checkpoint(found.log, found.size, tree.root(view.leaves(found.size)))


def seen(keys: Keys, ledger: woodrat.Ledger) -> Checkpoint | None:
    """Return what the signer remembers of a ledger's log."""
    found = last_seen(keys, head(ledger).log, keys.verifier)
    return None if found is None else found[0]


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_checkpoint_says_what_the_log_is(kind: str, keys: Keys, tmp_path: Path) -> None:
    """A checkpoint is a note by the signer with the log's own name, its size and the root of its leaves."""
    engine = InMemoryEngine() if kind == "memory" else SqliteEngine(tmp_path / "a.db")
    ledger = signed_ledger(engine, keys)
    for size in range(1, 40):
        fill(ledger, 1, size)
        signed = ledger.proofs.checkpoint()
        assert signed.new
        assert opened(signed.note, [keys.verifier]) == signed.checkpoint == head(ledger)
    again = ledger.proofs.checkpoint()
    assert (again.note, again.new) == (signed.note, False)
    assert seen(keys, ledger) == signed.checkpoint
    assert ledger.proofs.checkpoints() == (signed.checkpoint,)
    engine.close()


def test_a_ledger_signs_by_itself_every_so_many_entries_and_at_close(keys: Keys) -> None:
    """Between checkpoints nothing is signed; after N entries, and when a ledger that wrote is closed, one is."""
    ledger = signed_ledger(InMemoryEngine(), keys, every=10)
    sizes = []
    for number in range(25):
        fill(ledger, 1, number)
        found = seen(keys, ledger)
        sizes.append(0 if found is None else found.size)
    assert sizes == [0] * 9 + [10] * 10 + [20] * 6
    last = head(ledger)
    ledger.close()
    kept = last_seen(keys, last.log, keys.verifier)
    assert kept is not None
    assert kept[0] == last


def test_agents_of_one_ledger_share_its_signer(keys: Keys) -> None:
    """What `by` returns counts towards the same checkpoints, and writes of runs do too."""
    ledger = signed_ledger(InMemoryEngine(), keys, every=4)
    fill(ledger.as_agent("web"), 2)
    with ledger.run("?") as run:
        run.answer("!")
    found = seen(keys, ledger)
    assert found is not None
    assert found.size == 4


def test_readers_sign_nothing(keys: Keys, tmp_path: Path) -> None:
    """A ledger that only read, or only tried, leaves no checkpoint when it is closed."""
    with woodrat.open(tmp_path / "a.db") as unsigned:
        fill(unsigned, 3)
        log = head(unsigned).log
    with woodrat.open(tmp_path / "a.db", keys=keys.folder) as ledger:
        ledger.show("thing/0")
        ledger.store({"entity_type": "thing", "id": "9"}, dry_run=True)
        with pytest.raises(NotFound):
            ledger.show("thing/9")
    assert last_seen(keys, log) is None


def test_nothing_that_signs_is_imported_before_the_first_signature(keys: Keys, tmp_path: Path) -> None:
    """Opening and writing with keys does not import `cryptography`; the first checkpoint does."""
    import subprocess

    script = (
        "import sys, woodrat; ledger = woodrat.open(sys.argv[1], keys=sys.argv[2]);"
        "ledger.store({'entity_type': 'thing', 'id': '1'});"
        "print('cryptography' in sys.modules); ledger.close(); print('cryptography' in sys.modules)"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "a.db"), keys.folder]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert ran.stdout.split() == ["False", "True"], ran.stderr


# A history that the last checkpoint contradicts


def cut(tmp_path: Path, keys: Keys, lost: int = 10) -> Path:
    """Return a database that lacks its last entries: a copy of it, made before they were written."""
    path = tmp_path / "agents.db"
    with woodrat.open(path, keys=keys.folder, clock=FixedClock()) as ledger:
        fill(ledger, 20)
    shutil.copy(path, tmp_path / "copy.db")
    with woodrat.open(path, keys=keys.folder, clock=FixedClock("2026-02-01T00:00:00.000000Z", seed="more")) as ledger:
        fill(ledger, lost, 20)
    return tmp_path / "copy.db"


def test_a_ledger_cut_short_says_so_loudly_and_takes_no_write(tmp_path: Path, keys: Keys) -> None:
    """Drop the last ten entries: opening warns with both sizes, reading goes on, writing and signing do not."""
    path = cut(tmp_path, keys)
    with pytest.warns(woodrat.CheckpointWarning, match="has 20 entries, and its last checkpoint covers 30") as warned:
        ledger = woodrat.open(path, keys=keys.folder)
    assert warned[0].filename == __file__, "the warning points at who opened the ledger"
    assert len(ledger.notices) == 1
    assert "The last 10 are missing" in ledger.notices[0]
    assert ledger.show("thing/3").fields["n"] == 3
    for call in (lambda: fill(ledger, 1, 99), ledger.proofs.checkpoint, lambda: ledger.proofs.prove(0)):
        with pytest.raises(Outdated) as caught:
            call()
        assert caught.value.details["damage"] == "behind"
        assert (caught.value.details["size"], caught.value.details["checkpoint"]["size"]) == (20, 30)
    with pytest.raises(NotFound):
        ledger.show("thing/99")
    ledger.close()


def test_a_plain_copy_of_an_open_database_is_found_out(tmp_path: Path, keys: Keys) -> None:
    """Copying the file without its -wal loses the latest entries; opening the copy says so."""
    path = tmp_path / "agents.db"
    with woodrat.open(path, keys=keys.folder, clock=FixedClock()) as first:
        fill(first, 5)
    ledger = woodrat.open(path, keys=keys.folder, clock=FixedClock("2026-02-01T00:00:00.000000Z", seed="b"))
    fill(ledger, 7, 5)
    ledger.proofs.checkpoint()
    shutil.copy(path, tmp_path / "copy.db")
    ledger.close()
    with pytest.warns(woodrat.CheckpointWarning, match="The last 7 are missing"):
        woodrat.open(tmp_path / "copy.db", keys=keys.folder).close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        woodrat.open(path, keys=keys.folder).close()


def test_a_forked_history_is_refused_with_both_roots(tmp_path: Path, keys: Keys) -> None:
    """A copy that went on by itself is as long, and another history: it is refused, naming both roots."""
    path = cut(tmp_path, keys, lost=4)
    with woodrat.open(path, clock=FixedClock("2026-03-01T00:00:00.000000Z", seed="fork")) as unsigned:
        fill(unsigned, 6, 40)
        forked = head(unsigned)
    with pytest.warns(woodrat.CheckpointWarning, match="another history of the same log"):
        ledger = woodrat.open(path, keys=keys.folder)
    with pytest.raises(Corrupt) as caught:
        ledger.proofs.checkpoint()
    details = caught.value.details
    assert (details["damage"], details["size"]) == ("forked", forked.size)
    remembered = seen(keys, ledger)
    assert remembered is not None
    assert details["checkpoint"]["root"] == remembered.root.hex()
    assert details["root"] != remembered.root.hex()
    assert details["root"] in str(caught.value)
    ledger.close()


def test_a_new_epoch_accepts_a_history_and_keeps_the_old_note(tmp_path: Path, keys: Keys) -> None:
    """With a reason the operator goes on from what there is; the old note stays, and every later one says the epoch."""
    path = cut(tmp_path, keys)
    with pytest.warns(woodrat.CheckpointWarning):
        ledger = woodrat.open(path, keys=keys.folder, clock=FixedClock("2026-05-01T00:00:00.000000Z", seed="c"))
    old = Path(keys.seen(head(ledger).log)).read_text("utf-8")
    signed = ledger.proofs.checkpoint(new_epoch="restored from Monday's backup")
    assert (signed.checkpoint.size, signed.checkpoint.epoch) == (20, 2)
    assert signed.checkpoint.extensions == ("epoch 2",)
    aside = Path(keys.folder, "seen")
    (kept,) = aside.glob("*.epoch-1.note")
    (reason,) = aside.glob("*.epoch-1.reason")
    assert kept.read_text("utf-8") == old
    assert reason.read_text("utf-8").endswith("restored from Monday's backup\n")
    fill(ledger, 1, 50)
    assert ledger.proofs.checkpoint().checkpoint.epoch == 2
    ledger.close()


def test_a_new_epoch_lets_other_open_ledgers_write(tmp_path: Path, keys: Keys) -> None:
    """A ledger that was refused looks again before each write, and goes on once the history was accepted."""
    path = cut(tmp_path, keys)
    with pytest.warns(woodrat.CheckpointWarning):
        one, two = (woodrat.open(path, keys=keys.folder) for _ in range(2))
    with pytest.raises(Outdated):
        fill(one, 1, 50)
    two.proofs.checkpoint(new_epoch="accepted")
    fill(one, 1, 50)
    one.close()
    two.close()


@pytest.mark.parametrize("reason", ["", 7, "x" * 5000])
def test_a_new_epoch_needs_a_reason(reason: Any, tmp_path: Path, keys: Keys) -> None:
    """Without a reason nothing is accepted."""
    path = cut(tmp_path, keys)
    with pytest.warns(woodrat.CheckpointWarning):
        ledger = woodrat.open(path, keys=keys.folder)
    with pytest.raises(Refused, match="needs a reason"):
        ledger.proofs.checkpoint(new_epoch=reason)
    ledger.close()


def test_there_is_no_new_epoch_without_trouble(keys: Keys) -> None:
    """A log that goes on from its last checkpoint has nothing to accept, and neither has one without."""
    ledger = signed_ledger(InMemoryEngine(), keys)
    fill(ledger, 1)
    for _ in range(2):
        with pytest.raises(Refused, match="nothing to accept"):
            ledger.proofs.checkpoint(new_epoch="why not")
        ledger.proofs.checkpoint()


def test_a_seen_note_that_was_changed_is_corrupt(keys: Keys) -> None:
    """What the signer remembers is checked against its own key before anything is signed."""
    ledger = signed_ledger(InMemoryEngine(), keys)
    fill(ledger, 3)
    ledger.proofs.checkpoint()
    path = Path(keys.seen(head(ledger).log))
    path.write_text(path.read_text("utf-8").replace("\n3\n", "\n2\n"), "utf-8")
    fill(ledger, 1, 3)
    with pytest.raises(Corrupt, match="is in the signer's memory"):
        ledger.proofs.checkpoint()


def test_a_memory_that_cannot_be_read_hides_no_ledger(keys: Keys, tmp_path: Path) -> None:
    """With a damaged note the ledger opens with a warning and is read; it is written to once the note is back."""
    with woodrat.open(tmp_path / "a.db", keys=keys.folder) as ledger:
        fill(ledger, 3)
        path = Path(keys.seen(head(ledger).log))
    good = path.read_bytes()
    path.write_bytes(good[:20])
    with pytest.warns(woodrat.CheckpointWarning, match="is in the signer's memory"):
        ledger = woodrat.open(tmp_path / "a.db", keys=keys.folder)
    assert ledger.show("thing/1").fields["n"] == 1
    with pytest.raises(Corrupt):
        fill(ledger, 1, 9)
    path.write_bytes(good)
    fill(ledger, 1, 9)
    ledger.close()


# What goes wrong while signing


def test_a_signer_that_fails_never_fails_a_write(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes go on and say so once for every N entries; when the signer is back the next one covers everything."""
    ledger = signed_ledger(InMemoryEngine(), keys, every=5)

    def fails(*_: object) -> bytes:
        raise Unavailable("The signer is away.")

    with monkeypatch.context() as patched:
        patched.setattr(Keys, "sign", fails)
        fill(ledger, 12)
        assert [text.startswith("No checkpoint was signed: The signer is away.") for text in ledger.notices] == [
            True
        ] * 2
    assert seen(keys, ledger) is None
    fill(ledger, 5, 12)
    assert seen(keys, ledger) == Checkpoint(head(ledger).log, 15, head_at(ledger, 15))


def head_at(ledger: woodrat.Ledger, size: int) -> bytes:
    """Return the root of the first entries of a ledger."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return tree.root(view.leaves(size))


def test_a_full_disk_at_close_is_told(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing never raises for want of a checkpoint."""
    ledger = signed_ledger(InMemoryEngine(), keys)
    fill(ledger, 1)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "replace", full)
    ledger.close()
    assert "No space left on device" in ledger.notices[0]


def test_a_note_is_remembered_before_it_is_handed_out(keys: Keys, monkeypatch: pytest.MonkeyPatch) -> None:
    """When the signer cannot remember a note, nobody gets it."""
    ledger = signed_ledger(InMemoryEngine(), keys)
    fill(ledger, 1)

    def dies(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "replace", dies)
    with pytest.raises(KeyboardInterrupt):
        ledger.proofs.checkpoint()
    monkeypatch.undo()
    assert seen(keys, ledger) is None


def test_signers_of_one_folder_take_turns(keys: Keys, tmp_path: Path) -> None:
    """Many threads with ledgers of their own sign one log: what is remembered only ever grows, and covers all."""
    path = tmp_path / "a.db"
    woodrat.open(path).close()
    sizes: list[int] = []

    def work(number: int) -> None:
        with woodrat.open(path, keys=keys.folder, agent=f"a{number}") as ledger:
            for round in range(5):
                fill(ledger, 1, 100 * number + round)
                sizes.append(ledger.proofs.checkpoint().checkpoint.size)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with woodrat.open(path) as ledger:
        assert len(sizes) == 20
        assert seen(keys, ledger) == head(ledger)


@pytest.mark.parametrize("asked", ["a checkpoint", "a proof", "a check"])
def test_what_others_write_meanwhile_is_not_taken_for_a_cut(
    asked: str, keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer notes what lies in a location without waiting: it may be more than a view had that was opened before."""
    path = tmp_path / "a.db"
    with woodrat.open(path, keys=keys.folder, agent="one") as one, woodrat.open(path, agent="other") as other:
        fill(one, 2)
        remembered, numbers = Location.remembered, iter(range(100, 200))

        def remembered_late(location: Location) -> tuple[Checkpoint, ...]:
            fill(other, 1, next(numbers))
            location.remember(head(other), FixedClock())
            return remembered(location)

        monkeypatch.setattr(Location, "remembered", remembered_late)
        if asked == "a checkpoint":
            one.proofs.checkpoint()
        elif asked == "a proof":
            signing(one).covering(0)
        else:
            assert module.look(one.context.engine, one.tenant, keys) is None
        monkeypatch.undo()


def test_a_busy_signer_is_not_waited_for_by_writers(keys: Keys) -> None:
    """While another process signs, a writer goes on without a checkpoint and without a word; asking for one waits."""
    import fcntl

    ledger = signed_ledger(InMemoryEngine(), keys, every=2)
    with open(keys.path("seen", ".lock"), "w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        fill(ledger, 5)
        assert ledger.notices == ()
        assert seen(keys, ledger) is None
        with pytest.raises(Unavailable, match="Another process is signing"):
            signing(ledger).sign(patience=0.0)
    fill(ledger, 1, 5)
    assert seen(keys, ledger) == head(ledger)


# Keys that are there, and keys that are not


def test_tenants_have_checkpoints_of_their_own(keys: Keys, tmp_path: Path) -> None:
    """Each tenant's log has its own name and its own file under seen/."""
    engine = SqliteEngine(tmp_path / "a.db")
    one, two = (signed_ledger(engine, keys, tenant, clock=FixedClock(seed=tenant)) for tenant in ("one", "two"))
    fill(one, 3)
    fill(two, 5)
    assert (one.proofs.checkpoint().checkpoint.size, two.proofs.checkpoint().checkpoint.size) == (3, 5)
    assert head(one).log != head(two).log
    assert one.proofs.checkpoints() == (head(one),)
    engine.close()


def test_without_keys_nothing_is_signed_and_the_verbs_say_why() -> None:
    """A ledger without keys works as ever; checkpoint, prove and capsule name the way to get some."""
    with woodrat.open(":memory:") as ledger:
        fill(ledger, 1)
        assert ledger.notices == ()
        assert ledger.proofs.checkpoints() == ()
        for call in (
            ledger.proofs.checkpoint,
            lambda: ledger.proofs.prove(0),
            lambda: ledger.proofs.capsule("thing/0#n"),
        ):
            with pytest.raises(Refused, match="woodrat init"):
                call()


def test_keys_are_found_by_argument_variable_and_home(
    keys: Keys, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`keys=` comes before WOODRAT_SIGNING_KEYS, and that before the user's own; memory is signed by argument only."""
    other = make(tmp_path / "other", FixedClock(seed="other"), "other").keys
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    if sys.platform == "linux":
        home = make(tmp_path / "config" / "woodrat" / "keys", FixedClock(seed="home"), "home").keys
        with woodrat.open(tmp_path / "a.db") as ledger:
            assert signing(ledger).keys == home
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", keys.folder)
    with woodrat.open(tmp_path / "a.db") as ledger:
        assert signing(ledger).keys == keys
    with woodrat.open(tmp_path / "a.db", keys=other.folder) as ledger:
        assert signing(ledger).keys == other
    with woodrat.open(":memory:") as ledger:
        assert ledger.signing is None
    monkeypatch.setenv("WOODRAT_SIGNING_KEYS", str(tmp_path / "none"))
    with pytest.raises(Refused, match="there are no keys in"):
        woodrat.open(tmp_path / "a.db")


@pytest.mark.parametrize("every", [0, -1, True, "10", 1.5])
def test_a_bad_interval_is_refused(every: Any, keys: Keys) -> None:
    """Checkpoints come every so many entries, a number above 0."""
    with pytest.raises(Refused, match="checkpoint_every"):
        woodrat.open(":memory:", keys=keys.folder, checkpoint_every=every)


def test_there_is_no_checkpoint_of_an_empty_log(keys: Keys) -> None:
    """A log without entries has no name yet, and nothing to sign."""
    with woodrat.open(":memory:", keys=keys.folder) as ledger, pytest.raises(Refused, match="no entries to sign"):
        ledger.proofs.checkpoint()


# Proofs


def test_proofs_of_every_entry_verify(keys: Keys, tmp_path: Path) -> None:
    """Each entry has a proof under a checkpoint that covers it; a newer one is signed only for the tail."""
    engine = SqliteEngine(tmp_path / "a.db")
    ledger = signed_ledger(engine, keys)
    fill(ledger, 20)
    first = ledger.proofs.checkpoint()
    assert [ledger.proofs.prove(position).checkpoint.note for position in (0, 19)] == [first.note] * 2
    fill(ledger, 20, 20)
    for position in range(40):
        proof = ledger.proofs.prove(position)
        point = proof.checkpoint.checkpoint
        assert tree.verify_inclusion(proof.entry.leaf(), position, point.size, proof.hashes, point.root)
        assert point.size == (20 if position < 20 else 40)
    engine.close()


def test_consistency_is_proven_between_any_two_checkpoints(keys: Keys) -> None:
    """Whoever holds an old checkpoint gets a proof that today's log goes on from it."""
    ledger = signed_ledger(InMemoryEngine(), keys)
    notes = []
    for number in range(9):
        fill(ledger, 1, number)
        notes.append(ledger.proofs.checkpoint().note)
    for old in range(9):
        for new in range(old, 9):
            proof = ledger.proofs.prove_consistency(notes[old], notes[new])
            first, second = (opened(note, [keys.verifier]) for note in (proof.old, proof.new))
            assert tree.verify_consistency(first.size, second.size, first.root, second.root, proof.hashes)
    with pytest.raises(Refused, match="Name the older checkpoint first"):
        ledger.proofs.prove_consistency(notes[5], notes[4])


def test_a_longer_checkpoint_than_the_log_proves_truncation(keys: Keys, tmp_path: Path) -> None:
    """A note that somebody holds over more entries than there are is not explained away."""
    path = cut(tmp_path, keys)
    note = next(Path(keys.folder, "seen").glob("*.note")).read_text("utf-8")
    with pytest.warns(woodrat.CheckpointWarning):
        ledger = woodrat.open(path, keys=keys.folder)
    ledger.proofs.checkpoint(new_epoch="accepted")
    with pytest.raises(Corrupt, match="covers 30 entries, and this ledger has 20"):
        ledger.proofs.prove_consistency(note)
    ledger.close()


@pytest.mark.parametrize("what", [None, True, 1.5, "", "thing/0", "obs_x", -1, 99, "99", "obs_" + "a" * 26])
def test_what_is_no_entry_cannot_be_proven(what: Any, keys: Keys) -> None:
    """Only observations and positions of the log have proofs."""
    ledger = signed_ledger(InMemoryEngine(), keys)
    fill(ledger, 2)
    with pytest.raises((Refused, NotFound), match="Nothing was proven"):
        ledger.proofs.prove(what)


@pytest.mark.parametrize(
    "what", [None, "", "x", "thing/0", "#n", "thing/0#none", "thing/9#n", "obs_x", "run_x", "run_x#s"]
)
def test_what_is_nothing_has_no_capsule(what: Any, keys: Keys) -> None:
    """Capsules are of runs, decisions, observations and fields that there are."""
    ledger = signed_ledger(InMemoryEngine(), keys)
    fill(ledger, 2)
    with pytest.raises((Refused, NotFound)):
        ledger.proofs.capsule(what)
