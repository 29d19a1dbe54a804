"""Tenancy: what is another tenant's costs exactly as much as what is not there at all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest

import woodrat
from woodrat.api.ledger import Ledger
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.connection import connect
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.access import Caller
from woodrat.server.app import App
from woodrat.server.route import Route
from woodrat.server.routes import ROUTES

Work = list[tuple[str, int]]
"""Statements with how many steps the virtual machine of SQLite took for each: every row it visits is some."""


class Held(NamedTuple):
    """Things of one tenant that can be asked for."""

    ref: str
    ent: str
    obs: str
    source: str
    run: str


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    """What all connections of engines made after this do."""
    done: Work = []

    def traced(*given: Any, **further: Any) -> apsw.Connection:
        connection = connect(*given, **further)

        def note(event: dict[str, Any]) -> None:
            done.append((event["sql"], event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"]))

        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)
        return connection

    monkeypatch.setattr("woodrat.engines.sqlite.engine.connect", traced)
    return done


def told(ledger: Ledger, name: str) -> Held:
    """Tell a ledger of an entity with a history, a relation, a source and a run, all called by a name."""
    source = ledger.sources.add(f"about {name}".encode(), name=name)
    first = ledger.store({"entity_type": "contact", "name": name, "city": "Vic"}, source=source)
    ledger.store({"entity_type": "contact", "name": name, "city": "Olot"})
    ledger.correct(f"contact/{name}", {"city": "Girona"})
    ledger.store([{"entity_type": "company", "name": "Kline"}, {"entity_type": "contact", "name": f"{name} R."}])
    ledger.relate(f"contact/{name}", "works_at", "company/Kline")
    ledger.merge(f"contact/{name}", f"contact/{name} R.")
    with ledger.run("who?", subject=f"contact/{name}") as run:
        run.show(f"contact/{name}")
        run.answer("nobody")
    return Held(f"contact/{name}", ledger.show(f"contact/{name}").entity.id, first.observations[0], source, run.id)


@pytest.fixture
def app(work: Work, tmp_path: Path) -> Iterator[App]:
    engine = SqliteEngine(tmp_path / "two.db")
    woodrat.init(tmp_path / "keys")
    app = App(engine, _Nobody(), clock=SystemClock(), policies=registry(()), proofs=str(tmp_path / "keys"))
    yield app
    app.close()
    engine.close()


class _Nobody:
    """Access of nobody: the application is asked by its verbs alone."""

    are_required = True

    def caller(self, token: str | None) -> None:
        return None

    def holder(self, id: str) -> None:
        return None

    def refresh(self) -> None:
        pass


ASKED: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "show": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "observations": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "history": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "diff": [("ref", {"before": "0", "ref": "{ref}"}), ("id", {"before": "0", "ref": "{ent}"})],
    "blame": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "related": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "duplicates": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "sources_show": [("id", {"source": "{source}"})],
    "runs_list": [("subject", {"subject": "{ref}"})],
    "runs_show": [("id", {"run": "{run}"})],
    "runs_text": [("id", {"run": "{run}"})],
    "runs_steps": [("id", {"run": "{run}"})],
    "runs_snapshot": [("id", {"run": "{run}"})],
    "runs_diff": [("id", {"first": "{run}", "second": "{run}"})],
    "why": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "lineage": [("ref", {"what": "{ref}#city"}), ("obs", {"what": "{obs}"}), ("run", {"what": "{run}"})],
    "impact": [("ref", {"what": "{ref}"}), ("obs", {"what": "{obs}"}), ("source", {"what": "{source}"})],
    "proofs_prove": [("obs", {"what": "{obs}"})],
    "proofs_capsule": [("obs", {"what": "{obs}"}), ("ref", {"what": "{ref}#city"}), ("run", {"what": "{run}"})],
    "correct": [("ref", {"ref": "{ref}", "fields": {"city": "Rome"}, "dry_run": True}), ("id", {"ref": "{ent}"})],
    "retract": [("obs", {"observations": ["{obs}"]})],
    "delete": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "restore": [("ref", {"ref": "{ref}"}), ("id", {"ref": "{ent}"})],
    "relate": [("ref", {"start": "{ref}", "type": "knows", "end": "contact/Mia"})],
    "merge": [("ref", {"one": "{ref}", "other": "contact/Mia"}), ("id", {"one": "contact/Mia", "other": "{ent}"})],
    "split": [("ref", {"ref": "{ref}"})],
    "runs_judge": [("run", {"run": "{run}", "verdict": "correct"})],
    "elements": [("ref", {"ref": "{ref}", "field": "tags"}), ("id", {"ref": "{ent}", "field": "tags"})],
    "runs_receipts": [("run", {"run": "{run}"})],
    "runs_evaluate": [("run", {"run": "{run}", "against": "0"})],
    "reduce": [("ref", {"what": "{ref}", "exists": True}), ("id", {"what": "{ent}", "exists": True})],
    "erase": [
        ("ref", {"what": "{ref}", "reason": "asked to", "dry_run": True}),
        ("source", {"what": "{source}", "reason": "asked to", "dry_run": True}),
        ("subject", {"subject": "{ref}", "reason": "asked to", "dry_run": True}),
    ],
    "what_if": [("run", {"run": "{run}", "without": "{obs}"})],
    "remember": [
        ("id", {"text": "likes tea", "about": "{ent}"}),
        ("source", {"text": "likes tea", "source": "{source}"}),
        ("run", {"text": "likes tea", "run": "{run}"}),
    ],
}
"""What is asked by every route that takes an id: of whatever is called by the names in braces."""

_CASES = [
    pytest.param(route, given, id=f"{route.verb}-{name}")
    for route in ROUTES
    for name, given in ASKED.get(route.verb, ())
]


def filled(given: Any, held: Held) -> Any:
    """Return arguments with names in place of braces."""
    if isinstance(given, str):
        return given.format(**held._asdict())
    if isinstance(given, dict):
        return {name: filled(value, held) for name, value in given.items()}
    return [filled(value, held) for value in given] if isinstance(given, list) else given


def outcome(app: App, route: Route, given: dict[str, Any]) -> str:
    """Ask, as the server does for a caller of the tenant `mine`; return what is answered, without names."""
    from woodrat.errors import WoodratError
    from woodrat.server.reply import read

    ledger = app.tenants.ledger(Caller("mine", "me"))
    try:
        soon = None if route.soon is None else route.soon(ledger, **given)
        if soon is not None:
            return str(soon)
        answer = route.answer(ledger, **given) if route.writes else read(route, ledger, dict(given)).body
        return str(getattr(answer, "to_json", lambda: answer)())
    except WoodratError as error:
        return f"{error.code}: {error}"


def _put_last(engine: Any) -> None:
    """Put a row behind all others: a search that ends at the end of a table takes fewer steps, whoever's it is."""
    id = (999 << 40) + 1
    run = engine.take_writer().connection.execute
    run("INSERT INTO naming (target, id) VALUES (?, ?)", (2**63 - 1, id))
    run("INSERT INTO said (id, entity, previous, digest) VALUES (?, 0, -1, ?)", (id, 2**63 - 1))
    row = (999, "z", "z", 2**63 - 1, 0, 0, "")
    run("INSERT INTO entity (tenant, type, key, digest, first, last, until) VALUES (?, ?, ?, ?, ?, ?, ?)", row)
    run("INSERT INTO index_row (tenant, name, key, since, value) VALUES (999, 'z', X'FE', 0, X'')")
    engine.give_back_writer()


@pytest.mark.parametrize(("route", "given"), _CASES)
def test_not_yours_costs_what_not_there_does(app: App, work: Work, route: Route, given: dict[str, Any]) -> None:
    """Asked for what another tenant has, the server runs the same statements and visits as many rows as for nothing."""
    told(app.tenants.ledger(Caller("mine", "me")), "Mia")
    _put_last(app.engine)
    theirs = [told(app.tenants.ledger(Caller("theirs", "they")), name) for name in ("Ana", "Bea")]
    # Something of the same shape that nobody has: each id with another end.
    nobodys = [
        Held(
            f"contact/{name}",
            *(
                value[:-6] + ("aaaaaa" if value[-6:] != "aaaaaa" else "bbbbbb")
                for value in (held.ent, held.obs, held.source, held.run)
            ),
        )
        for name, held in zip(("Cia", "Dea"), theirs, strict=True)
    ]
    for held in (nobodys[0], theirs[0]):
        outcome(app, route, filled(given, held))
    measured = []
    for held in (nobodys[1], theirs[1]):
        work.clear()
        said = outcome(app, route, filled(given, held))
        for name in held:
            said = said.replace(name, "…")
        measured.append((said, list(work)))
    (nothing, missing), (said, foreign) = measured
    assert said == nothing
    assert foreign == missing
    assert missing, "the ledger was asked"


def test_every_route_that_takes_an_id_is_tried() -> None:
    """A route added with an id of something is tried here too, or stands among those that need none."""
    named = {"ref", "id", "run", "what", "observations", "first", "subject", "one", "start"}
    free = {
        "recall", "runs_group", "runs_start", "runs_step", "runs_end", "runs_entries", "runs_resume", "bisect",
        "diff_against", "store", "webhooks_retry",
    }  # fmt: skip
    taking = {route.verb for route in ROUTES if any(param.name in named for param in route.params)}
    assert taking - free <= ASKED.keys(), sorted(taking - free - ASKED.keys())


def test_the_work_is_counted(app: App, work: Work) -> None:
    """A row more that is visited is seen in the count."""
    ledger = app.tenants.ledger(Caller("mine", "me"))
    counts = []
    for name in ("Ana", "Bea"):
        ledger.store({"entity_type": "contact", "name": name})
        assert ledger.query(entity_type="contact").items  # this brings the index on
        work.clear()
        assert ledger.query(entity_type="contact").items
        counts.append(sum(steps for _, steps in work))
    assert counts[1] > counts[0]
