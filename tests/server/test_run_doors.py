"""Grants and doors: whatever a key carries, no way to write a run reaches the run of another agent."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("mcp", reason="the extra mcp is not installed")

from tests.server import run_doors
from tests.server.run_doors import DOORS, RECORD, TRACE, Scene, seen
from tests.server.server import Server

from woodrat.api.ledger import Ledger
from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger import ownership
from woodrat.ledger.arguments import Arguments
from woodrat.ledger.own_policy import registry
from woodrat.runs import relay
from woodrat.runs.recorder import resume
from woodrat.runs.trajectory import derived_id
from woodrat.runs.verbs import entries as told_entries
from woodrat.server.access import EVERYTHING, GRANTS, METRICS, READ, RUN
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Keyring
from woodrat.state import run_owner

TYPED = tuple(f"{grant}:loan" for grant in GRANTS if grant != METRICS)
ROLES: dict[str, tuple[str, ...]] = {
    **{grant: (grant,) for grant in (*GRANTS, *TYPED)},
    **{f"{RUN} and {grant}": (RUN, grant) for grant in (*GRANTS, *TYPED) if grant != RUN},
    **{f"all but {grant}": tuple(other for other in GRANTS if other != grant) for grant in GRANTS},
    "all typed": TYPED,
    "all": GRANTS,
    "everything": (EVERYTHING,),
}
"""What keys of strangers carry, by name."""


def run_records(server: Server, key: str) -> list[Any]:
    """Return the whole records of all runs, the latest first."""
    listed = server.call("GET", "/v1/runs?limit=200", key=key).json["items"]
    return [server.call("GET", f"/v1/runs/{run['id']}", key=key).json for run in listed]


class Place:
    """A server with the runs of one agent, and keys of strangers with every role."""

    def __init__(self, path: Path) -> None:
        self.engine = SqliteEngine(path / "served.db")
        clock = SystemClock()
        kept = Ledger(self.engine, tenant=KEYS_TENANT, agent="operator", clock=clock, policies=registry(()))
        self.keyring = Keyring(kept, clock)
        self.reader = self.keyring.create("lending", "reader", [READ])[1]
        self.owner = self.keyring.create("lending", "owner", [EVERYTHING])[1]
        self.strangers = {name: self.keyring.create("lending", "stranger", role)[1] for name, role in ROLES.items()}
        app = App(self.engine, self.keyring, clock=clock, policies=registry(()), endpoints=endpoints())
        self.server = Server(app).__enter__()
        self.run, self.traced = self._runs()

    def _runs(self) -> tuple[str, str]:
        def post(path: str, body: Any) -> Any:
            answer = self.server.call("POST", path, body, key=self.owner)
            assert answer.status == 200, answer.body
            return answer.json

        post("/v1/store", {"records": [{**RECORD, "creditScore": 580}]})
        run: str = post("/v1/runs", {"query": "Approve #42?", "subject": "loan/42"})["run"]
        rules = [{"chosen": "rejected", "when": {"creditScore": {"lt": 600}}}]
        post(f"/v1/runs/{run}/steps", {"step": {"decide": {"stage": "risk", "facts": "loan/42", "rules": rules}}})
        at = Scene(self.server, run, "", "owner", self.owner)
        assert run_doors.spans(at, root=True).status == 200
        (traced,) = [record["id"] for record in run_records(self.server, self.owner) if record["trace"] == TRACE]
        return run, traced

    def scene(self, role: str) -> Scene:
        return Scene(self.server, self.run, self.traced, "owner", self.strangers[role])

    def seen(self) -> dict[str, Any]:
        """Return what is to be seen of the runs."""
        return seen(self.scene("read"), self.reader)

    def foreign(self) -> list[Any]:
        """Return where what others say of the runs stands: only an import brings any."""
        return [
            self.server.call("GET", f"/v1/runs/{run}", key=self.reader).json["foreign"]
            for run in (self.run, self.traced)
        ]

    def breaches(self, role: str) -> list[str]:
        """Try every door with a role; return those by which the runs came to say something else."""
        found = []
        before, marked = self.seen(), self.foreign()
        for name, door in DOORS.items():
            door(self.scene(role))
            after, now = self.seen(), self.foreign()
            if after != before or (now != marked and not name.startswith("import")):
                found.append(name)
            before, marked = after, now
        return found

    def close(self) -> None:
        self.server.__exit__()
        self.engine.close()


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    made = Place(tmp_path_factory.mktemp("doors"))
    yield made
    made.close()


@pytest.mark.parametrize("role", ROLES)
def test_no_door_leads_into_the_run_of_another_agent(place: Place, role: str) -> None:
    """Every way to write a run, tried with every role, leaves another agent's runs and decisions as they were."""
    assert place.breaches(role) == []


@pytest.mark.parametrize("name", [name for name in DOORS if not name.startswith(("OTLP", "Neotoma", "import"))])
@pytest.mark.parametrize("role", ["all but read", "all"])
def test_a_refusal_tells_who_may_read_and_nobody_else(place: Place, role: str, name: str) -> None:
    """Who may read hears whose run it is; to others it is as if there were no such run, to the letter."""
    at = place.scene(role)
    missing = derived_id(f"{role}/{name}")
    answers = [DOORS[name](at._replace(run=run)) for run in (at.run, missing)]
    told, unknown = (answer.body.decode().replace(missing, at.run) for answer in answers)  # type: ignore[attr-defined]
    if "start" in name or "record" in name or "one's own" in name:
        assert "'owner'" not in told or role == "all"  # these begin a run, or name two, so an unknown one is no model
    elif role == "all":
        assert "belongs to agent 'owner'" in told
    else:
        assert _plain(told) == _plain(unknown)
        assert "owner" not in told


def _plain(body: str) -> Any:
    """Return an answer without what is new in every request."""
    found = json.loads(body)
    if isinstance(found, dict):
        found.pop("request_id", None), found.pop("instance", None)
    return found


def test_what_an_import_says_of_a_run_is_listed_as_foreign(place: Place) -> None:
    """A log that was taken in may hold anything; the record says where other agents' entries of a run stand."""
    at = place.scene("all")
    before = place.seen()
    answer: Any = DOORS["import: a log"](at)
    assert answer.status == 200, answer.body
    record = place.server.call("GET", f"/v1/runs/{place.run}", key=place.reader).json
    assert (record["agent"], record["status"]) == ("owner", "running")
    log = place.server.call("GET", "/v1/log?limit=1000", key=place.reader).json["items"]
    bodies = {entry["position"]: entry["body"] for entry in log if entry["kind"].startswith("run.")}
    named = {position for position, body in bodies.items() if body["run"] == place.run and body["agent"] != "owner"}
    assert named
    assert set(record["foreign"]) == named
    assert not named & set(record["positions"])
    assert place.seen() == before


def test_spans_of_another_agent_are_a_run_of_their_own_that_the_trace_links(place: Place) -> None:
    """Both agents' runs of one trace name each other, and each has its own answer."""
    assert run_doors.spans(place.scene("run"), root=True).status == 200
    records = [record for record in run_records(place.server, place.reader) if record["trace"] == TRACE]
    assert sorted(record["agent"] for record in records) == ["owner", "stranger"]
    one, other = records
    assert (one["linked"], other["linked"]) == ([other["id"]], [one["id"]])
    assert one["id"] != other["id"]


FAULTS = {
    "entries and trajectories are not checked": (told_entries, "_check_owned"),
    "live entries are not checked": (told_entries, "check_owner"),
    "steps are not checked": (relay, "check_owner"),
    "what is stored is not checked": (ownership, "check_write"),
    "records take in what anybody says": (run_owner, "is_part"),
    "a step may say that it is part of another run": (Arguments, "_elsewhere"),
}
"""Doors without their check, by what they lack."""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_door_without_its_check_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """The search for a way into another agent's run finds each check that is taken away."""
    module, name = FAULTS[fault]
    monkeypatch.setattr(module, name, lambda *given, **named: name == "is_part" or ())
    if fault == "steps are not checked":
        monkeypatch.setattr(resume, "check_owner", lambda *given, **named: None)
    place = Place(tmp_path)
    try:
        assert place.breaches("all") != [], f"nobody noticed: {fault}"
    finally:
        place.close()
