"""Erasure: after a person is erased, no byte of any file is theirs, and every earlier proof still holds.

The story puts a person's values wherever a ledger can hold them. `REGISTRY` names every table and column of a file and
what may stand in it; a new one fails here until someone has thought about it.
"""

from __future__ import annotations

import io
import json
import os
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import apsw
import pytest

import woodrat
from woodrat import Ledger, NotFound, Refused, Rule
from woodrat.canon.ids import TenantId
from woodrat.engines.sqlite import compaction
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.engines.sqlite.storage import FILES
from woodrat.erasure import rewrite
from woodrat.erasure.index import AffectedData
from woodrat.erasure.quotes import Quoted
from woodrat.erasure.reader import closure
from woodrat.ledger import derived_part
from woodrat.log.erasure import ERASED, KIND, stored
from woodrat.log.tree import Leaves, inclusion_proof, root, verify_inclusion
from woodrat.merge.elements import INSIDE_MAX
from woodrat.proofs.verbs.keys import Keys
from woodrat.proofs.verbs.keys import make as make_keys
from woodrat.runs.projection import project
from woodrat.testing.clock import FixedClock
from woodrat.testing.crash import ERASING, REDERIVING, Crash, CrashingEngine
from woodrat.testing.ledgers import ledger_on, log_of

PERSON: Final = "contact/zoe@zweig.example"
BORN: Final = 'gör"litz \\ neiße'
THEIRS: Final = (
    "zoe@zweig.example",
    "Zoe Zweigmann",
    "Quittenallee 77b",
    "klettern-im-Elbsandstein",
    "Zahnarzthelferin",
    "49351778899",
    "Zweigmann'sche Katze",
    BORN,
)
"""Values that nobody but this person has. The last has what JSON escapes, and letters beyond ASCII."""
TOKENS: Final = ("quittenallee", "zweigmann", "elbsandstein", "zahnarzthelferin")
"""What a search index would hold of them."""

BODY, NAMES, DERIVED, NUMBERS, STRUCTURE = "body", "names", "derived", "numbers", "structure"
REGISTRY: Final = {
    ("tenant", "name"): STRUCTURE,
    ("tenant", "id"): NUMBERS,
    ("log", "id"): NUMBERS,
    ("log", "name"): STRUCTURE,
    **{("entry", name): NUMBERS for name in ("id", "log", "recorded_at", "kind", "write", "length")},
    **{("entry", name): STRUCTURE for name in ("request", "commitment", "leaf")},
    ("body", "id"): NUMBERS,
    ("body", "nonce"): BODY,
    ("body", "body"): BODY,
    ("receipt", "tenant"): NUMBERS,
    **{("receipt", name): BODY for name in ("agent", "key", "request", "report", "nonce")},
    ("purge", "id"): NUMBERS,
    **{("origin", name): NUMBERS for name in ("id", "log", "position")},
    **{("clone", name): NUMBERS for name in ("id", "log")},
    **{("entity", name): NUMBERS for name in ("id", "tenant", "digest", "first", "last", "state_at")},
    **{("entity", name): DERIVED for name in ("type", "key", "until", "state")},
    **{("said", name): DERIVED for name in ("id", "entity", "previous", "digest")},
    **{("naming", name): DERIVED for name in ("target", "id")},
    **{("kept", name): DERIVED for name in ("entity", "position", "last", "until", "state")},
    **{("anchor", name): DERIVED for name in ("entity", "position")},
    **{("element", name): DERIVED for name in ("entity", "field", "key", "position", "part")},
    **{("late", name): DERIVED for name in ("entity", "valid_from", "id")},
    **{("index_row", name): DERIVED for name in ("tenant", "name", "key", "since", "value")},
    **{("index_past", name): DERIVED for name in ("tenant", "name", "key", "since", "until", "value")},
    **{("meta", name): DERIVED for name in ("tenant", "name", "value")},
    **{("node", name): STRUCTURE for name in ("tenant", "height", "place", "hash")},
}
"""By table and column, what stands there. `body`: the erasure empties it. `derived`: dropped and made again by it."""


def tell(ledger: Ledger) -> dict[str, Any]:
    """Tell a story that puts a person's values wherever a ledger can hold them; return what is to be compared."""
    document = {
        "title": "contact",
        "x-woodrat-identity": [["email"]],
        "properties": {"hobbies": {"type": "array", "x-woodrat-merge": "union"}},
    }
    ledger.schemas.register(document)
    ledger.store(
        [
            {"entity_type": "contact", "email": "bob@example.com", "name": "Bob", "city": "Dresden"},
            {
                "entity_type": "contact",
                "email": "zoe@zweig.example",
                "name": "Zoe Zweigmann",
                "address": {"street": "Quittenallee 77b", "city": "Dresden"},
                "hobbies": ["klettern-im-Elbsandstein", "chess"],
                "phone": 49351778899,
                "born": BORN,
                "score": 580,
            },
        ],
        idempotency_key="the Zoe Zweigmann batch",
    )
    ledger.correct(PERSON, {"job": "Zahnarzthelferin"}, reason="said on the phone by Zoe Zweigmann")
    said = ledger.correct(PERSON, {"job": "Zahnarzthelferin", "pet": "Zweigmann'sche Katze"}, idempotency_key="k2")
    ledger.retract(said.observations[0], reason="a mistake")
    ledger.store({"entity_type": "company", "name": "Acme", "remark": "asked for by Zoe Zweigmann"})
    ledger.store({"entity_type": "task", "title": "call Zoe Zweigmann back", "status": "open"})
    ledger.relate(PERSON, "works_at", "company/Acme", fields={"role": "Zahnarzthelferin"})
    source = ledger.sources.add(b"name,street\nZoe Zweigmann,Quittenallee 77b\nBob,Main Street\n", name="people.csv")
    binary = ledger.sources.add(b"\xff\x00Zoe Zweigmann\xfe", name="scan.bin")
    with ledger.interpretations.start(
        source, model="m", prompt="read: Zoe Zweigmann", parameters={"hint": "Zoe Zweigmann"}
    ) as i:
        i.store({"entity_type": "contact", "email": "bob@example.com", "street": "Main Street"})
        i.store({"entity_type": "contact", "email": "zoe@zweig.example", "street": "Quittenallee 77b"})
    with ledger.run("What about Zoe Zweigmann?", subject=PERSON, inputs={"who": "zoe@zweig.example", "n": 7}) as run:
        seen = run.show(PERSON)
        run.show("contact/bob@example.com")
        run.tool("lookup", lambda phone: json.dumps({"born": BORN}), 49351778899)
        run.model(
            "m",
            messages=[{"role": "user", "content": "Tell me of Zoe Zweigmann"}],
            response="She lives at Quittenallee 77b",
        )
        run.decide("credit", seen, [Rule("reject", {"score": {"lt": 600}}, label="low")], default="approve")
        run.note("Zweigmann'sche Katze matters", {"Zoe Zweigmann": {"id": said.observations[0]}})
        run.store({"entity_type": "contact", "email": "bob@example.com", "friend": PERSON})
        run.answer("Zoe Zweigmann is rejected")
    other = ledger.run("Who is Bob?", subject="contact/bob@example.com")
    with other:
        other.show("contact/bob@example.com")
        other.answer("A contact in Dresden")
    ledger.runs.judge(run.id, "bad", reason="Zoe Zweigmann was not asked")
    ledger.merge("contact/bob@example.com", PERSON)
    ledger.split("contact/bob@example.com", PERSON)
    for word in ("Zweigmann", "Quittenallee"):
        assert ledger.search(word).items
    ledger.fingerprint()
    assert ledger.recall("What about Zoe Zweigmann?", threshold=0.1).hits
    ledger.runs.list()
    return {"run": run.id, "other": other.id, "source": source, "binary": binary, "said": said.observations[0]}


@pytest.fixture
def keys(tmp_path: Path) -> Path:
    """A folder with an erasure key."""
    folder = tmp_path / "keys"
    make_keys(folder, FixedClock())
    return folder


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """Where the ledger is."""
    folder = tmp_path / "store"
    folder.mkdir()
    return folder / "people.db"


@pytest.fixture
def ledger(db: Path, keys: Path) -> Iterator[Ledger]:
    """A ledger in a file."""
    with woodrat.open(db, keys=keys, agent="crm", clock=FixedClock()) as opened:
        yield opened


def hits(folder: Path) -> dict[str, list[str]]:
    """Return which values of the person stand in which file, spelled in any way they were ever spelled."""
    found: dict[str, list[str]] = {}
    sought = {*Quoted(THEIRS).spellings(), *(token.encode() for token in TOKENS)}
    for path in sorted(folder.rglob("*")):
        data = path.read_bytes() if path.is_file() else b""
        here = sorted(text.decode() for text in sought if text in data)
        if here:
            found[path.name] = here
    return found


def test_the_story_is_in_the_files(ledger: Ledger, db: Path) -> None:
    """Before the erasure all that is looked for is there to be found: the scan below can fail."""
    tell(ledger)
    found = set().union(*hits(db.parent).values())
    assert {text for text in THEIRS if "\\" not in text} | set(TOKENS) <= found


def test_after_an_erasure_no_file_holds_anything_of_theirs(ledger: Ledger, db: Path, tmp_path: Path) -> None:
    """A byte scan of every file finds nothing of an erased person, while the ledger is open and after it is closed."""
    tell(ledger)
    certificate = ledger.erase(PERSON, reason="a request under article 17")
    assert hits(tmp_path) == {}
    assert certificate.complete
    assert certificate.hits == {}
    assert set(certificate.scanned) == {path.name for path in db.parent.iterdir()}
    ledger.close()
    assert hits(tmp_path) == {}


def test_no_element_of_a_large_collection_is_left(ledger: Ledger, db: Path) -> None:
    """Elements that are kept one by one go with the person who was said to have them; those of others stay."""
    tell(ledger)
    many = [f"hobby {number}" for number in range(INSIDE_MAX)]
    for name in ("zoe@zweig.example", "bob@example.com"):
        ledger.store({"entity_type": "contact", "email": name, "hobbies": [f"Segelfliegen mit {name}", *many]})
    ledger.erase(PERSON, reason="a request under article 17")
    ledger.close()
    data = b"".join(path.read_bytes() for path in db.parent.iterdir())
    assert b"Segelfliegen mit bob" in data
    assert b"Segelfliegen mit zoe" not in data
    raw = apsw.Connection(str(db))
    assert raw.execute("SELECT count(DISTINCT entity), count(*) FROM element").fetchall() == [(1, INSIDE_MAX + 1)]
    raw.close()


def test_the_certificate_holds_nothing_of_theirs(ledger: Ledger) -> None:
    """The certificate says what went by positions, kinds, fields and numbers, never by a value."""
    tell(ledger)
    certificate = ledger.erase(PERSON, reason="a request under article 17")
    told = repr(certificate) + str(certificate.to_json())
    assert not [text for text in (*THEIRS, *TOKENS) if text in told or text.lower() in told.lower()]
    assert certificate.kinds["observation"] >= 8
    assert certificate.resaid["run.decided"] == 1
    assert certificate.short == {"score": 3}
    assert "city" not in certificate.short
    assert certificate.shared["address"]
    assert certificate.receipts >= 2
    assert certificate.quoting


def test_a_dry_run_says_the_same_and_erases_nothing(ledger: Ledger) -> None:
    """What a dry run lists is what goes, and it leaves the log as it was."""
    tell(ledger)
    before = log_of(ledger.context.engine, ledger.tenant)
    planned = ledger.erase(PERSON, reason="a request", dry_run=True)
    assert log_of(ledger.context.engine, ledger.tenant) == before
    assert planned.dry_run
    assert not planned.complete
    done = ledger.erase(PERSON, reason="a request")
    for part in ("positions", "kinds", "resaid", "receipts", "quoting", "short", "shared", "resaid_ids"):
        assert getattr(planned, part) == getattr(done, part)


def test_every_earlier_proof_still_holds(ledger: Ledger) -> None:
    """Leaves, roots and inclusion proofs of everything before the erasure are what they were."""
    tell(ledger)
    before = log_of(ledger.context.engine, ledger.tenant)
    leaves = [bytes.fromhex(leaf) for leaf in before["leaves"]]
    proofs = [inclusion_proof(Leaves(leaves), index, len(leaves)) for index in range(len(leaves))]
    certificate = ledger.erase(PERSON, reason="a request")
    after = log_of(ledger.context.engine, ledger.tenant)
    assert after["leaves"][: len(leaves)] == before["leaves"]
    assert certificate.root_before == before["root"] == root(leaves).hex()
    assert certificate.root == after["root"]
    with ledger.context.engine.view(ledger.tenant) as view:
        for entry, proof in zip(view.entries(through=len(leaves) - 1), proofs, strict=True):
            entry.check()
            held = verify_inclusion(entry.leaf(), entry.position, len(leaves), proof, bytes.fromhex(before["root"]))
            assert held, f"the proof of entry {entry.position}"


def test_a_missing_body_is_lawful_only_where_an_erasure_names_it(ledger: Ledger) -> None:
    """The positions without a body are exactly those that the erasure names."""
    tell(ledger)
    certificate = ledger.erase(PERSON, reason="a request")
    with ledger.context.engine.view(ledger.tenant) as view:
        entries = list(view.entries())
        assert certificate.position is not None
        entry = entries[certificate.position]
        assert entry.kind == KIND
        assert entry.body is not None
        erasure = stored(entry.body)
        assert all(erasure.holds(found.position) == found.erased for found in entries)
        assert (erasure.agent, erasure.reason, erasure.scope) == ("crm", "a request", "entity")
        assert erasure.body() == entry.body


def test_what_stays_can_still_be_read(ledger: Ledger) -> None:
    """Runs stay readable with [ERASED] in place of values; others' values, sources and decisions stay."""
    told = tell(ledger)
    ledger.erase(PERSON, reason="a request")
    run = ledger.runs.show(told["run"])
    assert run.query == ERASED
    assert run.answer == ERASED
    assert run.subject is None
    assert run.status == "done"
    assert [decision.chosen for decision in run.decisions] == ["reject"]
    assert run.decisions[0].conditions[0].actual == ERASED
    assert run.decisions[0].conditions[0].operand == 600
    assert "read from what was erased" in project(run)
    other = ledger.runs.show(told["other"])
    assert other.answer == "A contact in Dresden"
    assert other.subject == "contact/bob@example.com"
    assert ledger.show("contact/bob@example.com").fields["street"] == "Main Street"
    assert ledger.show("company/Acme").fields["remark"] == ERASED
    renamed = [ref for ref in ledger.values() if ref.startswith("task/")]
    assert len(renamed) == 1
    assert renamed[0].startswith(f"task/{ERASED}-")
    contents = [ledger.sources.content(delivery.source) for delivery in ledger.sources.list()]
    assert contents == [f"name,street\n{ERASED},{ERASED}\nBob,Main Street\n".encode()]
    assert ledger.rebuild().agreed
    assert ledger.search("Bob").items
    assert not ledger.search("Zweigmann").items


def test_a_run_that_lost_a_part_teaches_nothing(ledger: Ledger) -> None:
    """Training rows leave out runs of which parts were erased, and a decision on erased evidence is not made again."""
    told = tell(ledger)
    with ledger.run("What is 2 and 2?") as whole:
        whole.answer("4")
    ledger.erase(PERSON, reason="a request")
    out = io.StringIO()
    exported = ledger.training.export("kto", out=out)
    assert {left.run: left.reason for left in exported.left_out}[told["run"]] == "parts of it were erased"
    assert ledger.training.export("sft", out=out).rows == 1
    assert ERASED not in out.getvalue()
    assert all(stale.run != told["run"] for stale in ledger.stale().items)


@pytest.mark.parametrize("what", ["said", "run", "source", "binary", "entity"])
def test_what_was_erased_says_so(ledger: Ledger, db: Path, what: str) -> None:
    """Whoever has the erasure key and asks for what is gone is told `erased at N`, also at earlier moments."""
    told = tell(ledger)
    before = ledger.position
    certificate = ledger.erase(subject=PERSON, reason="a request")
    for past in (ledger, ledger.at(before)):
        ask: Any = {"run": past.runs.show, "said": past.lineage, "entity": past.show}.get(what, past.sources.content)
        with pytest.raises(NotFound, match=f"erased at {certificate.position}") as caught:
            ask(told.get(what, PERSON))
        assert caught.value.details["erased_at"] == certificate.position
    with (
        woodrat.open(db, readonly=True) as stranger,
        pytest.raises(NotFound) as unknown,
    ):
        stranger.show(PERSON)
    assert "erased_at" not in unknown.value.details


def test_the_same_record_does_not_come_back(ledger: Ledger) -> None:
    """What was erased is refused when it is stored again to the letter, and left out when it is admitted."""
    record = {"entity_type": "contact", "email": "zoe@zweig.example", "name": "Zoe Zweigmann"}
    ledger.store(record, observed_at="2025-01-05T09:00:00Z")
    body = ledger.observations(PERSON).items[0].observation.body
    ledger.erase(PERSON, reason="a request")
    size = ledger.position
    with pytest.raises(Refused, match="this record was erased at"):
        ledger.store(record, observed_at="2025-01-05T09:00:00Z")
    assert ledger.admit([("observation", body)]).hints == ("1 of these were erased here and left out.",)
    assert ledger.position == size
    ledger.store(record, observed_at="2025-02-05T09:00:00Z")
    assert ledger.show(PERSON).fields["name"] == "Zoe Zweigmann"


def test_a_source_that_was_erased_is_not_taken_again(ledger: Ledger) -> None:
    """The very content of an erased source is refused, and what it said is gone with it."""
    source = ledger.sources.add(b"Zoe Zweigmann lives at Quittenallee 77b", name="letter.txt")
    ledger.store({"entity_type": "contact", "email": "zoe@zweig.example"}, source=source)
    ledger.store({"entity_type": "contact", "email": "bob@example.com"})
    certificate = ledger.erase(source, reason="a request")
    assert certificate.scope == "source"
    assert certificate.kinds == {"observation": 1, "received": 1, "source": 1}
    with pytest.raises(NotFound, match="erased at"):
        ledger.sources.content(source)
    with pytest.raises(Refused, match="erased at"):
        ledger.sources.add(b"Zoe Zweigmann lives at Quittenallee 77b", name="again.txt")
    assert list(ledger.values()) == ["contact/bob@example.com"]


def test_a_field_goes_and_the_rest_stays(ledger: Ledger, tmp_path: Path) -> None:
    """Erasing REF#field takes every claim on it, and says the other fields again as they were."""
    told = tell(ledger)
    before = dict(ledger.show(PERSON).fields)
    certificate = ledger.erase(f"{PERSON}#hobbies", reason="a request")
    assert dict(ledger.show(PERSON).fields) == {n: value for n, value in before.items() if n != "hobbies"}
    assert certificate.scope == "field"
    assert certificate.resaid_ids
    read = ledger.runs.show(told["run"]).reads[0].fields
    assert read["hobbies"]["value"] == ERASED
    assert read["name"]["value"] == "Zoe Zweigmann"
    assert ledger.lineage(read["name"]["observation"])
    assert not [name for names in hits(tmp_path).values() for name in names if "lbsandstein" in name]


def test_longer_names_of_others_stay(ledger: Ledger, db: Path) -> None:
    """Who has a name that begins or ends as the erased one does keeps it, and is read at earlier moments as before."""
    for name in ("Anna", "Annabelle", "Hanna", "Anna 7", "Anna 77"):
        ledger.store({"entity_type": "contact", "name": name, "nick": f"the {name.lower()} one"})
    before = ledger.position
    certificate = ledger.erase("contact/Anna 7", reason="a request")
    assert certificate.kinds == {"observation": 1}
    assert certificate.complete
    certificate = ledger.erase("contact/Hanna", reason="a request")
    assert certificate.kinds == {"observation": 1}
    assert sorted(ledger.values()) == ["contact/Anna", "contact/Anna 77", "contact/Annabelle"]
    assert ledger.at(before).show("contact/Anna 77").fields["nick"] == "the anna 77 one"
    assert b"Hanna" not in db.read_bytes()


def test_whoever_names_them_by_their_key_quotes_them(tmp_path: Path) -> None:
    """A field of something else that holds the key goes; the same text as the name or agent of somebody else stays."""
    (tmp_path / "store").mkdir()
    make_keys(tmp_path / "keys", FixedClock())
    with woodrat.open(tmp_path / "store" / "k.db", keys=tmp_path / "keys", clock=FixedClock()) as ledger:
        ledger.store([{"entity_type": "contact", "email": "zoe@example.com", "name": "Zoe Zweigmann"}])
        ledger.store(
            [{"entity_type": "task", "id": "t1", "owner": "zoe@example.com", "cc": ["zoe@example.com", "bo@x"]}]
        )
        ledger.store([{"entity_type": "company", "name": "Acme", "main contact": "zoe@example.com"}])
        certificate = ledger.erase("contact/zoe@example.com", reason="a request")
        assert (certificate.complete, certificate.shared) == (True, {})
        assert dict(ledger.show("task/t1").fields) == {"id": "t1", "owner": ERASED, "cc": [ERASED, "bo@x"]}
        assert dict(ledger.show("company/Acme").fields) == {"name": "Acme", "main contact": ERASED}
        ledger.close()
    data = b"".join(path.read_bytes() for path in (tmp_path / "store").iterdir())
    assert b"zoe@example.com" not in data
    with woodrat.open(tmp_path / "store" / "k.db", keys=tmp_path / "keys", clock=FixedClock(seed="2")) as ledger:
        ledger.store({"entity_type": "contact", "name": "Ana Rivera", "city": "Girona"})
        ledger.store({"entity_type": "contact", "email": "another@example.com", "name": "Ana Rivera"})
        ledger.as_agent("Bo Bosch").store({"entity_type": "memo", "id": "n"})
        ledger.store([{"entity_type": "contact", "name": "Bo Bosch"}, {"entity_type": "team", "name": "Bo Bosch"}])
        assert ledger.erase("contact/Ana Rivera", reason="a request").shared.keys() == {"key", "name"}
        assert ledger.erase("contact/Bo Bosch", reason="a request").shared.keys() == {"key", "name"}
        assert ledger.show("contact/another@example.com").fields["name"] == "Ana Rivera"
        assert ledger.show("team/Bo Bosch").fields["name"] == "Bo Bosch"


def test_a_field_that_makes_the_key_is_refused(ledger: Ledger) -> None:
    """A field whose value the key holds cannot go alone; the refusal says to erase the entity."""
    tell(ledger)
    with pytest.raises(Refused, match="Erase the whole entity"):
        ledger.erase(f"{PERSON}#email", reason="a request")


def test_an_agent_goes_with_all_it_said(ledger: Ledger) -> None:
    """Erasing an agent takes its observations, runs and deliveries; a value below returns to the top and is listed."""
    ledger.as_agent("scraper").store({"entity_type": "contact", "email": "bob@example.com", "city": "Zwickau-Planitz"})
    ledger.store(
        {"entity_type": "contact", "email": "bob@example.com", "city": "Dresden"}, observed_at="2020-01-01T00:00:00Z"
    )
    with ledger.as_agent("scraper").run("Where is he?", subject="contact/bob@example.com") as run:
        run.answer("In Zwickau-Planitz")
    certificate = ledger.erase(agent="scraper", reason="it made things up")
    assert certificate.returned == ("contact/bob@example.com#city",)
    assert ledger.show("contact/bob@example.com").fields["city"] == "Dresden"
    with pytest.raises(NotFound, match="erased at"):
        ledger.runs.show(run.id)


def test_a_link_of_a_chain_goes_and_the_chain_holds(ledger: Ledger) -> None:
    """What replaced an erased correction goes on with what that one had replaced, so nothing below comes back."""
    ref = "contact/bob@example.com"
    ledger.store({"entity_type": "contact", "email": "bob@example.com", "city": "Dresden"})
    ledger.correct(ref, {"city": "Leipzig"})
    ledger.as_agent("mallory").correct(ref, {"city": "Chemnitz"})
    last = ledger.correct(ref, {"city": "Dresden"}).observations[0]
    certificate = ledger.erase(agent="mallory", reason="not allowed to")
    assert ledger.show(ref).fields["city"] == "Dresden"
    assert certificate.returned == ()
    assert certificate.resaid == {"observation": 1}
    assert certificate.resaid_ids[0] != last
    names = {s.observation.digest: s.observation for s in ledger.observations(ref)}
    resaid = next(o for o in names.values() if o.id == certificate.resaid_ids[0])
    assert [names[digest].fields["city"] for digest in resaid.replaces] == ["Leipzig"]
    assert ledger.conflicts().items == ()


@pytest.mark.parametrize("reason", ["", " ", None, 7, "for Zoe Zweigmann", "x" * 5000])
def test_an_erasure_needs_a_reason_that_quotes_nothing(ledger: Ledger, reason: Any) -> None:
    """A reason that is missing, too long, or would keep what goes is refused before anything is written."""
    tell(ledger)
    before = log_of(ledger.context.engine, ledger.tenant)
    with pytest.raises(Refused, match="reason"):
        ledger.erase(PERSON, reason=reason)
    assert log_of(ledger.context.engine, ledger.tenant) == before


def test_without_a_key_nothing_is_erased(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an erasure key the refusal says how to make one."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(db.parent))
    with woodrat.open(db) as ledger:
        ledger.store({"entity_type": "contact", "email": "zoe@zweig.example"})
        with pytest.raises(Refused, match="woodrat init"):
            ledger.erase(PERSON, reason="a request")


@pytest.mark.parametrize(
    "what", ["contact/nobody@example.com", "contact/bob@example.com#shoe", "src_aaaaaaaaaaaaaaaaaaaaaaaaaa"]
)
def test_what_is_not_there_is_not_found(ledger: Ledger, what: str) -> None:
    """Erasing what the ledger does not hold is not found, and changes nothing."""
    tell(ledger)
    size = ledger.position
    with pytest.raises(NotFound, match="Nothing was erased"):
        ledger.erase(what, reason="a request")
    assert ledger.position == size


def test_tenants_keep_what_is_theirs(db: Path, keys: Path) -> None:
    """Erasing in one tenant touches nothing of another, and the search of their file shows nothing of it."""
    with woodrat.open(db, keys=keys, tenant="one") as one, woodrat.open(db, keys=keys, tenant="two") as two:
        tell(one)
        tell(two)
        before = log_of(two.context.engine, "two")
        certificate = one.erase(PERSON, reason="a request")
        assert log_of(two.context.engine, "two") == before
        assert two.show(PERSON).fields["name"] == "Zoe Zweigmann"
        assert two.rebuild().agreed
        assert set(certificate.scanned) == {path.name for path in db.parent.iterdir()}
        assert (certificate.complete, certificate.hits, certificate.scanned_bytes) == (True, {}, None)
        with pytest.raises(NotFound):
            one.show(PERSON)


@pytest.mark.parametrize(
    ("verb", "share"), [*((verb, 0) for verb in ERASING), *((verb, 1_000) for verb in ("erase", "append", *REDERIVING))]
)
def test_a_crash_inside_leaves_everything(
    db: Path, keys: Path, verb: str, share: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An erasure that fails at any step before its commit leaves log, state and answers as they were."""
    monkeypatch.setattr(derived_part, "SHARE_MAX", share)
    engine = SqliteEngine(db)
    crashing = CrashingEngine(engine)
    plain = ledger_on(engine, "default")
    tell(plain)
    before, state = log_of(engine, "default"), plain.fingerprint(provenance=True)
    broken = Ledger(
        crashing, tenant="default", agent="a", clock=FixedClock(), policies=plain.context.policies, keys=keys
    )
    crashing.arm(verb)
    with pytest.raises(Crash):
        broken.erase(PERSON, reason="a request")
    assert log_of(engine, "default") == before
    assert plain.fingerprint(provenance=True) == state
    assert plain.rebuild().agreed
    assert engine.purged()
    broken.erase(PERSON, reason="a request")
    engine.close()
    assert hits(db.parent) == {}


def test_a_crash_before_the_purge_is_made_up_for(ledger: Ledger, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When a process dies between commit and purge, whoever opens the file next takes the bytes out."""
    tell(ledger)

    def die(engine: SqliteEngine) -> bool:
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(SqliteEngine, "purge", die)
        with pytest.raises(Crash):
            ledger.erase(PERSON, reason="a request")
    assert not ledger.context.engine.purged()
    assert hits(db.parent) != {}
    ledger.close()
    with woodrat.open(db) as again:
        assert again.context.engine.purged()
    assert hits(db.parent) == {}


def test_a_long_reader_puts_the_purge_off(ledger: Ledger, db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who still reads the past keeps it; the certificate says the purge is pending, and finishing completes it."""
    tell(ledger)
    monkeypatch.setattr(compaction, "PATIENCE_SECONDS", 0)
    with ledger.context.engine.view(TenantId("default")) as old:
        certificate = ledger.erase(PERSON, reason="a request")
        assert not certificate.purged
        assert not certificate.complete
        assert "--finish" in certificate.warnings[0]
        assert not ledger.finish_erasure().purged
        assert any(ref.key == "zoe@zweig.example" for ref in old.entities(None, old.head().position))
    finished = ledger.finish_erasure()
    assert finished.complete
    assert finished.scanned
    assert hits(db.parent) == {}
    assert ledger.finish_erasure().to_json() == {
        **{"purged": True, "searched": False, "scanned": [], "scanned_bytes": None, "hits": {}, "complete": False},
        **{"certificates": [], "blockers": [], "compaction": None},
    }


@pytest.mark.parametrize(
    "what",
    [{"what": PERSON}, {"subject": PERSON}, {"what": f"{PERSON}#hobbies"}, {"agent": "scraper"}, {"what": "source"}],
    ids=lambda what: "-".join(what.values()),
)
def test_a_restored_backup_forgets_too(
    ledger: Ledger, db: Path, keys: Path, tmp_path: Path, what: dict[str, Any]
) -> None:
    """A copy from before an erasure, opened with the same keys, is made to forget the same, to the same state."""
    told = tell(ledger)
    ledger.as_agent("scraper").store({"entity_type": "contact", "email": "bob@example.com", "plate": "DD-ZZ-77441"})
    if what == {"what": "source"}:
        what = {"what": told["source"]}
    backup = tmp_path / "backup"
    backup.mkdir()
    with sqlite3.connect(db) as from_, sqlite3.connect(backup / "old.db") as to:
        from_.backup(to)
    certificate = ledger.erase(reason="a request", **what)
    state = ledger.fingerprint(provenance=True)
    assert ledger.erase_again() == ()
    with pytest.raises(woodrat.Unavailable, match="put back"):
        woodrat.open(backup / "old.db", keys=keys)
    clock = FixedClock(seed="other")
    with woodrat.open(backup / "old.db", keys=keys, agent="crm", clock=clock, erase_again=True) as old:
        (again,) = old.erased_again
        assert again.complete
        assert (again.scope, again.kinds, again.resaid) == (certificate.scope, certificate.kinds, certificate.resaid)
        assert old.fingerprint(provenance=True) == state
        assert old.erase_again() == ()
    if PERSON in (what.get("what"), what.get("subject")):
        assert hits(tmp_path) == {}


def test_other_connections_notice(ledger: Ledger, db: Path, keys: Path) -> None:
    """A ledger opened before by someone else, with all it had at hand, no longer knows what was erased."""
    tell(ledger)
    with woodrat.open(db, keys=keys) as other:
        assert other.show(PERSON).fields["name"] == "Zoe Zweigmann"
        assert other.recall("What about Zoe Zweigmann?", threshold=0.1).hits
        assert other.search("Zweigmann").items
        ledger.erase(PERSON, reason="a request")
        with pytest.raises(NotFound):
            other.show(PERSON)
        assert not other.search("Zweigmann").items
        assert "Zweigmann" not in other.recall("What about Zoe Zweigmann?", threshold=0, k=10).inject
        other.store({"entity_type": "contact", "email": "eve@example.com"})
        assert other.rebuild().agreed


# What must not be forgotten


def columns(path: Path) -> set[tuple[str, str]]:
    """Return every table and column of a file."""
    raw = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    tables = [row[0] for row in raw.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    found = {(table, row[1]) for table in tables for row in raw.execute(f"PRAGMA table_info({table})")}
    raw.close()
    return found


def test_every_column_is_registered(ledger: Ledger, db: Path) -> None:
    """Every table and column of a file is in the registry: whoever adds one says what an erasure does to it."""
    tell(ledger)
    assert columns(db) == set(REGISTRY)


def test_every_file_is_known(ledger: Ledger, db: Path) -> None:
    """Every file that a ledger makes beside its database is one that an erasure purges and searches."""
    tell(ledger)
    with ledger.context.engine.view(TenantId("default")):
        assert {path.name.removeprefix(db.name) for path in db.parent.iterdir()} <= set(FILES)


def test_every_scratch_file_is_known(
    ledger: Ledger, keys: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backups, copies and exports are made beside their place under one name, and leave nothing but themselves."""
    tell(ledger)
    seen: dict[str, set[str]] = {}
    put = os.replace

    def watched(source: str, target: str) -> None:
        path = Path(target)
        if path.parent.name == "out":
            seen[path.name] = {each.name.removeprefix(path.name) for each in path.parent.iterdir()}
        put(source, target)

    monkeypatch.setattr(os, "replace", watched)
    made = tmp_path / "out"
    for name in ("backup.db", "log.jsonl", "copy.db"):
        made.mkdir()
        if name == "backup.db":
            ledger.log.backup(made / name)
            ledger.log.backup(tmp_path / "kept.db")
        elif name == "log.jsonl":
            ledger.log.export(made / name)
        else:
            ledger.erase(PERSON, reason="a request")
            assert woodrat.copy(tmp_path / "kept.db", made / name, keys=keys).again == 1
            assert hits(made) == {}
        assert [path.name for path in made.iterdir()] == [name]
        assert seen[name] <= {f".part{ending}" for ending in FILES}
        (made / name).unlink()
        made.rmdir()


def test_registered_columns_hold_what_they_are_said_to(ledger: Ledger, db: Path) -> None:
    """Columns of numbers and structure never hold a value of the person, so nothing has to go from them."""
    tell(ledger)
    ledger.close()
    sought = [text.encode() for text in (*THEIRS, *TOKENS)]
    raw = sqlite3.connect(db)
    for (table, column), holds in REGISTRY.items():
        if holds in (NUMBERS, STRUCTURE):
            for (value,) in raw.execute(f"SELECT {column} FROM {table}"):
                data = value.encode() if isinstance(value, str) else value if isinstance(value, bytes) else b""
                assert not [text for text in sought if text in data], f"{table}.{column}"
    raw.close()


# Planted faults: each takes one rule away, and the scan must notice.


def _no_truncation(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compaction, "truncate", lambda *_: True)


def _no_texts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(closure._Closing, "_theirs_alone", lambda *_: set())


def _no_receipts(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(closure._Closing, "_select_receipts", lambda *_: None)


def _no_following(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(closure._Closing, "_follow", lambda *_: None)


def _no_sources(patch: pytest.MonkeyPatch) -> None:
    patch.setitem(rewrite.AGAIN, "source", lambda kind, body, names: body)
    patch.setattr(rewrite, "source_again", lambda body, names: body)


def _no_renaming(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(rewrite.Names, "_ref", lambda names, ref: None if ref in names.refs else ref)


def _no_deriving(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(derived_part, "SHARE_MAX", 0)
    patch.setattr(AffectedData, "derive_again", lambda _: None)


def _no_escapes(patch: pytest.MonkeyPatch) -> None:
    patch.setattr("woodrat.erasure.quotes._spellings", lambda text: {text})


@pytest.mark.parametrize(
    "fault",
    [_no_truncation, _no_texts, _no_receipts, _no_following, _no_sources, _no_renaming, _no_deriving, _no_escapes],
)
def test_a_rule_left_out_is_noticed(ledger: Ledger, db: Path, monkeypatch: pytest.MonkeyPatch, fault: Any) -> None:
    """Without any one of the rules of an erasure, the scan finds something: none of them is there for show."""
    tell(ledger)
    with monkeypatch.context() as patch:
        fault(patch)
        ledger.erase(PERSON, reason="a request")
    assert hits(db.parent) != {}


def test_bodies_go_only_by_this_path(ledger: Ledger, db: Path) -> None:
    """While a purge is due bodies can be emptied and nothing else; otherwise not even that."""
    tell(ledger)
    ledger.close()
    raw = apsw.Connection(str(db))
    for statement in ("UPDATE body SET nonce = NULL, body = NULL WHERE id > 0", "DELETE FROM receipt"):
        with pytest.raises(apsw.ConstraintError, match="append-only"):
            raw.execute(statement)
    raw.execute("INSERT INTO purge (id) VALUES (1)")
    for statement in (
        "UPDATE body SET body = NULL",
        "UPDATE body SET nonce = NULL",
        "UPDATE body SET body = X'00', nonce = NULL",
        "UPDATE body SET id = id + 1000, nonce = NULL, body = NULL",
        "DELETE FROM body",
        "UPDATE entry SET leaf = zeroblob(32)",
        "UPDATE purge SET id = 2",
    ):
        with pytest.raises(apsw.ConstraintError):
            raw.execute(statement)
    raw.close()


@pytest.mark.parametrize(
    "statement", ["INSERT INTO purge (id) VALUES (1)", "DELETE FROM purge", "UPDATE purge SET id = 1"]
)
def test_the_engines_connection_cannot_open_the_path_itself(ledger: Ledger, statement: str) -> None:
    """No statement on the engine's own connection says that a purge is due, or that it is done."""
    engine = ledger.context.engine
    assert isinstance(engine, SqliteEngine)
    with pytest.raises(apsw.AuthError):
        engine._writer.connection.execute(statement)


def test_what_was_erased_is_remembered_once(ledger: Ledger, keys: Path) -> None:
    """The keys folder notes an erasure once, by MACs alone, also when it could not be written at first."""
    tell(ledger)
    noted = keys / "erased"
    noted.write_text("in the way")
    certificate = ledger.erase(PERSON, reason="a request")
    assert "could not be written" in certificate.warnings[0]
    noted.unlink()
    for _ in range(2):
        assert ledger.erase_again() == ()
        (known,) = Keys.at(keys).erasures()
        assert known.positions == certificate.positions
    (file,) = noted.iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    file.write_bytes(file.read_bytes()[:-20])
    assert list(Keys.at(keys).erasures()) == []
    assert ledger.erase_again() == ()
    assert list(Keys.at(keys).erasures()) == [known]
    assert hits(keys) == {}


def test_an_erasure_key_is_made_once(tmp_path: Path) -> None:
    """An erasure key is made once, readable by its owner alone, and a damaged one is refused."""
    made = make_keys(tmp_path / "k", FixedClock()).keys.erasure
    assert make_keys(tmp_path / "k", FixedClock(seed="other")).keys.erasure == made
    assert os.stat(tmp_path / "k" / "erasure.key").st_mode & 0o777 == 0o600
    (tmp_path / "k" / "erasure.key").write_text("not a key")
    with pytest.raises(woodrat.Corrupt, match="does not hold 32 bytes"):
        _ = Keys.at(tmp_path / "k").erasure


def test_what_an_erasure_appends_is_signed(tmp_path: Path) -> None:
    """With keys an erasure is covered by a checkpoint once the ledger is closed, as every other write is."""
    made = make_keys(tmp_path / "k", FixedClock()).keys
    with woodrat.open(tmp_path / "a.db", keys=made.folder) as ledger:
        ledger.store({"entity_type": "contact", "email": "zoe@zweig.example"})
    with woodrat.open(tmp_path / "a.db", keys=made.folder) as ledger:
        ledger.erase("contact/zoe@zweig.example", reason="a request")
        size = ledger.position + 1
    with woodrat.open(tmp_path / "a.db", keys=made.folder) as ledger:
        assert [checkpoint.size for checkpoint in ledger.proofs.checkpoints()] == [size]
        assert ledger.verify().tail == 0
