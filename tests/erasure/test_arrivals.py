"""What one ledger was asked to forget, all that exchange with it forget, and no backup brings it back."""

from __future__ import annotations

import io
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import woodrat
from woodrat import Ledger, NotFound, Refused, Unavailable
from woodrat.cli.main import main
from woodrat.log.entry import Entry
from woodrat.proofs.verbs.keys import Keys
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.testing.clock import FixedClock

PERSON: Final = "contact/Zoe Zweigmann"
THEIRS: Final = (b"Zweigmann", b"zweigmann", b"Quittenallee", b"quittenallee")
EXAMPLES = 200 if os.environ.get("WOODRAT_LAWS") == "full" else 15
PROFILE = settings(
    max_examples=EXAMPLES, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow], database=None
)


def entries(ledger: Ledger) -> list[Entry]:
    """Return all entries of a ledger."""
    with ledger.context.engine.view(ledger.tenant) as view:
        return list(view.entries())


def held(ledger: Ledger) -> set[tuple[str, bytes]]:
    """Return what a ledger holds, as a set of kinds and bodies."""
    return {(entry.kind, entry.body) for entry in entries(ledger) if entry.body is not None}


def theirs(ledger: Ledger) -> list[tuple[int, str]]:
    """Return where a ledger holds something of the person."""
    found = [entry for entry in entries(ledger) if entry.body is not None]
    return [(entry.position, entry.kind) for entry in found if any(text in (entry.body or b"") for text in THEIRS)]


def hits(folder: Path) -> dict[str, list[bytes]]:
    """Return what of the person stands in which file."""
    read = {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    found = {name: [text for text in THEIRS if text in data] for name, data in read.items()}
    return {name: texts for name, texts in found.items() if texts}


def key_for(folder: Path) -> Path:
    """Return a folder of its own with the one erasure key all ledgers here have."""
    folder.mkdir(parents=True)
    make_keys(folder, FixedClock(seed="the key"))
    return folder


@pytest.fixture
def ledgers(tmp_path: Path) -> Iterator[Callable[..., Ledger]]:
    """Makes ledgers with the same erasure key, each with a folder of keys of its own."""
    with ExitStack() as stack:

        def make(name: str, *, in_file: bool = False) -> Ledger:
            db: Any = tmp_path / "store" / f"{name}.db" if in_file else ":memory:"
            (tmp_path / "store").mkdir(exist_ok=True)
            keys = key_for(tmp_path / "keys" / name)
            return stack.enter_context(woodrat.open(db, keys=keys, agent=name, clock=FixedClock(seed=name)))

        yield make


def tell(ledger: Ledger) -> None:
    """Say something of the person, and let it be named and quoted."""
    ledger.store({"entity_type": "contact", "name": "Zoe Zweigmann", "street": "Quittenallee 77b"})
    ledger.store({"entity_type": "contact", "name": "Bob", "city": "Dresden"})
    ledger.correct(PERSON, {"job": "painter"})
    ledger.store({"entity_type": "company", "name": "Acme", "remark": "asked for by Zoe Zweigmann"})
    with ledger.run("What about Zoe Zweigmann?", subject=PERSON) as run:
        run.show(PERSON)
        run.answer("Zoe Zweigmann lives at Quittenallee 77b")


def test_an_old_export_brings_nothing_back_anywhere(ledgers: Callable[..., Ledger], tmp_path: Path) -> None:
    """A ledger whose keys remember an erasure of another log merges an export from before it without what went."""
    a, b = ledgers("a", in_file=True), ledgers("b", in_file=True)
    tell(a)
    a.log.export(tmp_path / "old.jsonl")
    a.erase(PERSON, reason="a request")
    a.log.export(tmp_path / "new.jsonl")
    shutil.copytree(tmp_path / "keys" / "a" / "erased", tmp_path / "keys" / "b" / "erased")
    b.store({"entity_type": "memo", "id": "1"})
    imported = b.log.import_(tmp_path / "old.jsonl")
    assert imported.erased > 0
    assert imported.merged == imported.entries - imported.erased
    assert theirs(b) == []
    (tmp_path / "old.jsonl").unlink()
    assert hits(tmp_path) == {}
    b.log.import_(tmp_path / "new.jsonl")
    a.log.sync(b)
    assert a.fingerprint() == b.fingerprint()
    assert held(a) == held(b)


@pytest.mark.parametrize("in_file", [False, True])
def test_an_erasure_that_arrives_is_carried_out(ledgers: Callable[..., Ledger], in_file: bool, tmp_path: Path) -> None:
    """A ledger that took in a person forgets them when the erasure arrives, from its files too, and says so."""
    a, b = ledgers("a", in_file=in_file), ledgers("b", in_file=in_file)
    tell(a)
    b.store({"entity_type": "memo", "id": "1"})
    a.log.sync(b)
    b.correct(PERSON, {"job": "sculptor of Quittenallee"})
    assert theirs(b)
    a.erase(PERSON, reason="a request")
    first = b.log.sync(a)
    assert first.pulled is not None
    assert first.pulled.erasures == 1
    while b.log.sync(a).pulled.changed:  # type: ignore[union-attr]
        pass
    assert theirs(a) == theirs(b) == []
    assert a.fingerprint() == b.fingerprint()
    assert held(a) == held(b)
    assert hits(tmp_path) == {}
    for ledger in (a, b):
        assert ledger.verify(deep=True).damage == ()
        with pytest.raises(NotFound, match="erased at"):
            ledger.show(PERSON)
    assert {known.reason for known in Keys.at(tmp_path / "keys" / "b").erasures()} == {"a request"}


def test_what_was_erased_does_not_come_in_again(ledgers: Callable[..., Ledger]) -> None:
    """Records erased here that arrive are left out and counted, and what names them is said as after the erasure."""
    a, b = ledgers("a"), ledgers("b")
    tell(a)
    b.store({"entity_type": "memo", "id": "1"})
    b.log.sync(a, push=False)
    b.correct("company/Acme", {"remark": "nothing to say"})
    a.erase(PERSON, reason="a request")
    found = a.log.sync(b, push=False).pulled
    assert found is not None
    assert found.erased > 0
    assert theirs(a) == []
    assert a.show("company/Acme").fields["remark"] == "nothing to say"
    assert a.verify(deep=True).damage == ()
    for _ in range(3):
        b.log.sync(a)
    assert theirs(b) == []
    assert a.fingerprint() == b.fingerprint()


def test_a_log_with_erasures_needs_their_key(ledgers: Callable[..., Ledger], tmp_path: Path) -> None:
    """Without the erasure key, and with another one, a log that holds erasures is refused and nothing is taken in."""
    a = ledgers("a")
    tell(a)
    a.erase(PERSON, reason="a request")
    make_keys(tmp_path / "other", FixedClock(seed="another key"))
    for keys, problem in (
        (tmp_path / "none", "no erasure key is in"),
        (tmp_path / "other", "another erasure key is in"),
    ):
        db = tmp_path / f"{keys.name}.db"
        with woodrat.open(db, clock=FixedClock(seed="b")) as b:
            b.store({"entity_type": "memo", "id": "1"})
        b = Ledger(
            woodrat.engines.open.engine_for(str(db)),
            tenant="default",
            agent="b",
            clock=FixedClock(seed="b"),
            policies=a.context.policies,
            keys=keys,
        )
        with pytest.raises(Refused, match=f"is an erasure, and .*{problem}.*Hand over erasure.key"):
            b.log.sync(a, push=False)
        assert len(entries(b)) == 1
        shutil.copytree(tmp_path / "keys" / "a", keys, dirs_exist_ok=True)
        assert b.log.sync(a, push=False).pulled.merged > 0  # type: ignore[union-attr]
        b.close()


@pytest.mark.parametrize("in_file", [False, True])
def test_a_clone_that_goes_on_forgets(ledgers: Callable[..., Ledger], in_file: bool, tmp_path: Path) -> None:
    """A clone that goes on after an erasure has the same log and state, and nothing of the person in its file."""
    a, clone = ledgers("a", in_file=in_file), ledgers("clone", in_file=in_file)
    tell(a)
    clone.log.sync(a, push=False)
    assert theirs(clone)
    a.erase(PERSON, reason="a request")
    assert clone.log.sync(a, push=False).same
    assert entries(clone) == entries(a)
    assert theirs(clone) == []
    assert hits(tmp_path) == {}
    assert clone.rebuild().agreed
    assert clone.verify(deep=True).damage == ()


# Backups


def test_a_restored_backup_does_not_bring_them_back(ledgers: Callable[..., Ledger], tmp_path: Path) -> None:
    """Backup, erase, restore: the restored file never held a byte of the person, and goes on from the backup's root."""
    ledger, keys = ledgers("a", in_file=True), tmp_path / "keys" / "a"
    tell(ledger)
    backup = tmp_path / "backup.db"
    root = ledger.log.backup(backup).tenants["default"]["root"]
    certificate = ledger.erase(PERSON, reason="a request")
    assert certificate.hits == {}
    folder = tmp_path / "restored"
    folder.mkdir()
    found = woodrat.copy(backup, folder / "agents.db", keys=keys, clock=FixedClock(seed="copy"))
    assert (found.again, found.warnings, found.root) == (1, (), root)
    assert os.listdir(folder) == ["agents.db"]
    assert hits(folder) == {}
    with woodrat.open(folder / "agents.db", keys=keys) as restored:
        assert restored.fingerprint() == ledger.fingerprint()
        assert restored.verify(deep=True).damage == ()
        assert restored.show("contact/Bob").fields["city"] == "Dresden"


def test_a_file_that_is_there_never_holds_what_was_erased(
    ledgers: Callable[..., Ledger], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup restored into a file that others use is made to forget before any of it reaches that file."""
    ledger, keys = ledgers("a", in_file=True), tmp_path / "keys" / "a"
    tell(ledger)
    backup, target = tmp_path / "backup.db", tmp_path / "shared" / "agents.db"
    root = ledger.log.backup(backup).tenants["default"]["root"]
    ledger.erase(PERSON, reason="a request")
    target.parent.mkdir()
    with woodrat.open(target, tenant="other", keys=keys) as other:
        other.store({"entity_type": "memo", "id": "1"})
    with monkeypatch.context() as patch:

        def fails(*_: object) -> int:
            raise Unavailable("planted")

        patch.setattr("woodrat.erasure.verbs.arrivals.remembered", fails)
        with pytest.raises(Unavailable, match="planted"):
            woodrat.copy(backup, target, keys=keys)
    assert hits(target.parent) == {}
    found = woodrat.copy(backup, target, keys=keys, clock=FixedClock(seed="copy"))
    assert (found.again, found.root) == (1, root)
    assert hits(target.parent) == {}
    assert sorted(name for name in os.listdir(target.parent) if ".part" in name) == []
    with woodrat.open(target, keys=keys) as restored:
        assert restored.fingerprint() == ledger.fingerprint()
        assert restored.verify(deep=True).damage == ()
        assert restored.show("contact/Bob").fields["city"] == "Dresden"
    with pytest.raises(Refused, match="entries of default already"):
        woodrat.copy(backup, target, keys=keys)


def test_an_old_export_does_not_bring_them_back(ledgers: Callable[..., Ledger], tmp_path: Path) -> None:
    """An export from before the erasure that is imported into an empty ledger is made to forget by the keys too."""
    ledger = ledgers("a")
    tell(ledger)
    out = io.BytesIO()
    ledger.log.export(out)
    ledger.erase(PERSON, reason="a request")
    with woodrat.open(":memory:", keys=tmp_path / "keys" / "a") as fresh:
        found = fresh.log.import_(io.BytesIO(out.getvalue()))
        assert found.erasures == 1
        assert theirs(fresh) == []
        assert fresh.fingerprint() == ledger.fingerprint()


def test_without_keys_a_copy_says_what_may_be_back(
    ledgers: Callable[..., Ledger], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A copy made without the erasure key says that what was erased since may be back; with it, what it did."""
    ledger = ledgers("a", in_file=True)
    tell(ledger)
    ledger.log.backup(tmp_path / "backup.db")
    ledger.erase(PERSON, reason="a request")
    arguments = ["copy", "--from", str(tmp_path / "backup.db"), "--to"]
    assert main([*arguments, str(tmp_path / "one.db"), "--signing-keys", str(tmp_path / "nowhere")]) == 0
    told = capsys.readouterr()
    assert "WARNING: There is no erasure key in" in told.err
    assert "may be back" in told.err
    assert main([*arguments, str(tmp_path / "two.db"), "--signing-keys", str(tmp_path / "keys" / "a")]) == 0
    told = capsys.readouterr()
    assert json.loads(told.out)["again"] == 1
    assert told.err == ""
    shown = ["--signing-keys", str(tmp_path / "keys" / "a"), "--output", "table"]
    assert main([*arguments, str(tmp_path / "three.db"), *shown]) == 0
    assert "1 erasures that the keys remember were carried out in it" in capsys.readouterr().out


# The law

ACTIONS: Final = ("say", "correct", "mention", "run", "source", "sync", "pull")


def act(ledgers: list[Ledger], action: str, one: int, two: int, number: int) -> None:
    """Let one of the ledgers say something, or exchange entries with another."""
    ledger, other = ledgers[one], ledgers[two]
    known = any(str(found.entity) == PERSON for found in ledger.query().items)
    if action == "say":
        ledger.store({"entity_type": "contact", "name": "Bob", "city": f"c{number}"})
    elif action in ("sync", "pull"):
        if one != two:
            ledger.log.sync(other, push=action == "sync")
    elif not known:
        return
    elif action == "correct":
        ledger.correct(PERSON, {"street": f"Quittenallee {number}"})
    elif action == "mention":
        ledger.store({"entity_type": "memo", "id": f"{number}", "text": "call Zoe Zweigmann back"})
    elif action == "source":
        ledger.sources.add(f"a letter {number} to Zoe Zweigmann".encode(), name=f"{number}.txt")
    else:
        with ledger.run(f"Question {number} on Zoe Zweigmann?", subject=PERSON) as run:
            run.show(PERSON)
            run.answer("Zoe Zweigmann is well")


STEPS = st.lists(st.tuples(st.sampled_from(ACTIONS), st.integers(0, 2), st.integers(0, 2)), max_size=8)


SCOPES = st.sampled_from(({"what": PERSON}, {"subject": PERSON}, {"what": f"{PERSON}#street"}, {"agent": "a"}))


@PROFILE
@given(
    scope=SCOPES,
    before=STEPS,
    eraser=st.integers(0, 2),
    after=STEPS,
    order=st.permutations([(0, 1), (1, 2), (2, 0)]),
)
def test_all_that_exchange_forget(
    scope: dict[str, Any],
    before: list[tuple[str, int, int]],
    eraser: int,
    after: list[tuple[str, int, int]],
    order: list[tuple[int, int]],
) -> None:
    """Ledgers that exchange in any order, one of which erases, end with equal state and nothing of an erased entity."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        ledgers = [
            stack.enter_context(
                woodrat.open(":memory:", keys=key_for(Path(folder) / name), agent=name, clock=FixedClock(seed=name))
            )
            for name in "abc"
        ]
        ledgers[0].store({"entity_type": "contact", "name": "Zoe Zweigmann", "street": "Quittenallee 77b"})
        for number, (action, one, two) in enumerate(before):
            act(ledgers, action, one, two, number)
        if eraser:
            ledgers[eraser].store({"entity_type": "memo", "id": f"by {eraser}"})
            ledgers[eraser].log.sync(ledgers[0], push=False)
        ledgers[eraser].erase(**scope, reason="a request")
        for number, (action, one, two) in enumerate(after, 100):
            act(ledgers, action, one, two, number)
        sizes: list[int] = []
        for _ in range(8):
            for one, two in order:
                ledgers[one].log.sync(ledgers[two])
            now = [len(entries(ledger)) for ledger in ledgers]
            if now == sizes:
                break
            sizes = now
        else:
            raise AssertionError(f"they never come to rest: {sizes}")
        if PERSON in scope.values():
            assert [theirs(ledger) for ledger in ledgers] == [[], [], []]
        assert len({ledger.fingerprint() for ledger in ledgers}) == 1
        for ledger in ledgers:
            assert ledger.verify().damage == ()


def knows(ledger: Ledger) -> bool:
    """Return whether a ledger has heard of an erasure."""
    return any(entry.kind == "erasure" for entry in entries(ledger))


@PROFILE
@given(before=STEPS, eraser=st.integers(0, 2), after=STEPS, order=st.permutations([(0, 1), (1, 2), (2, 0)]))
def test_what_the_unaware_say_of_an_erased_field_goes_with_it(
    before: list[tuple[str, int, int]],
    eraser: int,
    after: list[tuple[str, int, int]],
    order: list[tuple[int, int]],
) -> None:
    """However often those who have not heard of its erasure correct a field, no value of it is left anywhere."""
    with TemporaryDirectory() as folder, ExitStack() as stack:
        ledgers = [
            stack.enter_context(
                woodrat.open(":memory:", keys=key_for(Path(folder) / name), agent=name, clock=FixedClock(seed=name))
            )
            for name in "abc"
        ]
        ledgers[0].store({"entity_type": "contact", "name": "Zoe Zweigmann", "street": "Quittenallee 77b", "job": "x"})
        for number, (action, one, two) in enumerate(before):
            act(ledgers, action, one, two, number)
        if eraser:
            ledgers[eraser].store({"entity_type": "memo", "id": f"by {eraser}"})
            ledgers[eraser].log.sync(ledgers[0], push=False)
        ledgers[eraser].erase(f"{PERSON}#street", reason="a request")
        for number, (action, one, two) in enumerate(after, 100):
            if action != "correct" or not knows(ledgers[one]):
                act(ledgers, action, one, two, number)
        for _ in range(4):
            for one, two in order:
                ledgers[one].log.sync(ledgers[two])
        for ledger in ledgers:
            assert not any(b"uittenallee" in body for _, body in held(ledger))
            assert ledger.verify().damage == ()
        assert len({ledger.fingerprint() for ledger in ledgers}) == 1
        assert "street" not in ledgers[0].show(PERSON).fields
        # Said anew, by somebody who knows, it is another statement.
        ledgers[0].correct(PERSON, {"street": "Quittenallee 1"})
        ledgers[1].log.sync(ledgers[0])
        assert ledgers[1].show(PERSON).fields["street"] == "Quittenallee 1"


def test_a_correction_of_an_erased_field_keeps_what_else_it_says(ledgers: Callable[..., Ledger]) -> None:
    """Of a correction that names an erased one, and comes in late, all is kept but the erased field."""
    a, b = ledgers("a"), ledgers("b")
    a.store({"entity_type": "contact", "name": "Zoe Zweigmann", "street": "Quittenallee 77b", "job": "painter"})
    a.correct(PERSON, {"street": "Quittenallee 78"})
    b.store({"entity_type": "memo", "id": "1"})
    b.log.sync(a, push=False)
    a.erase(f"{PERSON}#street", reason="a request")
    b.correct(PERSON, {"street": "Quittenallee 79", "job": "sculptor"})
    a.log.sync(b, push=False)
    assert dict(a.show(PERSON).fields) == {"name": "Zoe Zweigmann", "job": "sculptor"}
    assert not any(b"uittenallee" in body for _, body in held(a))
    for _ in range(3):
        b.log.sync(a)
    assert a.fingerprint() == b.fingerprint()
    assert not any(b"uittenallee" in body for _, body in held(b))
