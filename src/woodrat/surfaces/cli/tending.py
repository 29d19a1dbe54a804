"""Tending: the verbs about the log as a whole and about the machine it is on."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from woodrat.errors import Fault, Refused, WoodratError
from woodrat.surfaces import wire
from woodrat.surfaces.cli.calling import MEMORY, READ, UPDATE, Answer, Call
from woodrat.surfaces.cli.paper import BOLD, DIM, GREEN, RED, YELLOW, Paper

if TYPE_CHECKING:
    from woodrat.log.entry import Entry

SUMMARY_CHARACTERS_MAX = 100
"""How much of a body a line of the log shows."""


def log(call: Call) -> Answer:
    """Print the entries of the log."""
    from woodrat.canon.ids import TenantId
    from woodrat.ledger.moments import resolve_moment

    given = call.given
    if given.effective is not None:
        problem = "the log has no --effective: it holds what was said, not what was true"
        raise Refused([Fault("woodrat log", problem, "Use `woodrat timeline` for that.")], "Nothing was read.")
    if given.after < -1:
        raise Refused([Fault("--after", f"got {given.after}", "Send a position, 0 or more.")], "Nothing was read.")
    past = call.past()

    def entries() -> Iterator[Entry]:
        with call.engine(READ).view(TenantId(call.tenant)) as view:
            yield from view.entries(given.after, resolve_moment(view, past.position))

    def text(paper: Paper) -> None:
        printed = False
        for entry in entries():
            if not printed:
                paper.line(f"  {'POSITION':>8}  {'RECORDED AT':<27}  {'KIND':<22}  BODY", BOLD)
                printed = True
            paper.line(f"  {entry.position:>8}  {entry.recorded_at:<27}  {entry.kind:<22}  {_summary(entry, paper)}")
        if not printed:
            paper.line("There are no entries.")

    return Answer(None, text, (entry.to_json() for entry in entries()), streams=True)


def _summary(entry: Entry, paper: Paper) -> str:
    if entry.body is None:
        return "(erased)"
    if entry.kind == "source":
        return f"{len(entry.body)} bytes"
    room = SUMMARY_CHARACTERS_MAX if paper.width is None else max(20, paper.width - 66)
    text = entry.body[: room * 4].decode("utf-8", "ignore")
    return text if len(text) <= room else text[: room - 1] + "…"


def fingerprint(call: Call) -> Answer:
    """Print one digest of the whole state."""
    given = call.given
    if given.as_of is None and given.effective is None and not given.provenance:
        # The ledger keeps the tree it made and brings it up to date, so asking again is quick.
        ledger = call.ledger(UPDATE)
        found, position = ledger.fingerprint(), ledger.position
    else:
        past = call.past()
        found, position = past.fingerprint(provenance=given.provenance), past.position
    answer = {"fingerprint": found, "position": position, "provenance": given.provenance}
    return Answer(answer, lambda paper: paper.line(found))


def rebuild(call: Call) -> Answer:
    """Merge everything again from the log, and compare."""
    found = call.ledger(UPDATE).rebuild(_progress if sys.stderr.isatty() else None)

    def text(paper: Paper) -> None:
        paper.line(f"Made again from the log: {found.entities} entities of {found.observations} observations.", GREEN)
        paper.line(f"  {found.fingerprint}", DIM)
        if found.agreed:
            paper.line("  Everything that was kept agreed with the log.")
        for entity in found.repaired:
            paper.line(f"  repaired: {entity}", YELLOW)

    return Answer(found.to_json(), text, code=wire.DONE if found.agreed else wire.FOUND_SOMETHING)


def _progress(done: int, whole: int) -> None:
    sys.stderr.write(f"\r{done} of {whole} entries" + ("\n" if done == whole else ""))
    sys.stderr.flush()


def prove_order(call: Call) -> Answer:
    """Compare the states that other orders of arrival end in."""
    proof = call.ledger(READ).prove_order(shuffles=call.given.shuffles)

    def text(paper: Paper) -> None:
        said = f"{proof.observations} observations in {proof.shuffles} orders: "
        if proof.holds:
            paper.line(said + f"one fingerprint, {proof.fingerprint}", GREEN)
        else:
            paper.line(said + f"{len(proof.differing)} of them end in another state", RED)
            paper.line(f"  seeds: {', '.join(map(str, proof.differing))}")

    return Answer(proof.to_json(), text, code=wire.DONE if proof.holds else wire.FOUND_SOMETHING)


def migrate(call: Call) -> Answer:
    """Bring the database to the present layout."""
    path = call.path
    before = _file_facts(path).get("layout") if path is not None and path.is_file() else None
    call.engine(UPDATE)
    after = None if path is None else _file_facts(path).get("layout")
    found = {"db": str(path) if path is not None else MEMORY, "before": before, "layout": after}

    def text(paper: Paper) -> None:
        if after is None:
            paper.line(f"{found['db']} has no layout: it is not a file.")
        elif before == after:
            paper.line(f"{path} has layout {after}, the newest this version knows. Nothing was changed.", GREEN)
        else:
            paper.line(f"{path} had layout {before} and now has layout {after}.", GREEN)

    return Answer(found, text)


def doctor(call: Call) -> Answer:
    """Say what this command line uses."""
    from woodrat.surfaces.cli.parser import version

    chosen = "--db" if call.given.db is not None else "WOODRAT_DB" if call.db is not None else "default"
    path = call.path
    found: dict[str, Any] = {
        "woodrat": version(),
        "python": f"{sys.version.split()[0]} ({sys.executable})",
        "db": str(path) if path is not None else call.db,
        "db_from": chosen,
        "tenant": call.tenant,
        "agent": call.agent,
        "engine": None,
        "settings": {},
        "files": _files(path),
        "outgoing_addresses": [],
        "problem": None,
    }
    code = wire.DONE
    try:
        found.update(_engine_facts(call, path))
    except WoodratError as error:
        found["problem"] = str(error)
        code = wire.exit_code(error)

    def text(paper: Paper) -> None:
        for name in ("woodrat", "python", "db", "db_from", "tenant", "agent", "engine"):
            paper.line(f"  {name:<10} {found[name] if found[name] is not None else '(not opened)'}")
        for name, item in found["settings"].items():
            paper.line(f"    {name:<22} {item}")
        paper.line("  files")
        for file in found["files"]:
            paper.line(f"    {file['bytes']:>12} bytes  {file['path']}")
        if not found["files"]:
            paper.line("    none yet; the first `woodrat store` makes the database", DIM)
        paper.line("  outgoing addresses: none")
        if found["problem"] is not None:
            for line in found["problem"].split("\n"):
                paper.line(f"  problem: {line}", RED)

    return Answer(found, text, code=code)


def _engine_facts(call: Call, path: Path | None) -> dict[str, Any]:
    """Return the engine's name, versions and settings; an existing database is opened to see that it can be."""
    from woodrat.ledger.opening import engine_for

    if path is None:
        return {"engine": engine_for(call.db).name}
    import apsw

    settings: dict[str, Any] = {
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "journal_mode": "wal",
        "synchronous": "full",
    }
    if path.exists():
        ledger = call.ledger(READ)
        settings.update(_file_facts(path))
        settings["position"] = ledger.position
    return {"engine": call.engine(READ).name if path.exists() else "sqlite", "settings": settings}


def _file_facts(path: Path) -> dict[str, Any]:
    """Return what the file says of itself. The engine's own connections do not answer such questions."""
    import apsw

    from woodrat.engines.sqlite.connection import translated

    with translated(path):
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        try:
            return {
                "layout": connection.execute("PRAGMA user_version").get,
                "journal_mode": connection.execute("PRAGMA journal_mode").get,
                "page_bytes": connection.execute("PRAGMA page_size").get,
            }
        finally:
            connection.close()


def _files(path: Path | None) -> list[dict[str, Any]]:
    """Return every file the database is in or beside, with its size."""
    if path is None:
        return []
    beside = [path.with_name(path.name + suffix) for suffix in ("", "-wal", "-shm", "-queue")]
    return [{"path": str(file), "bytes": os.path.getsize(file)} for file in beside if file.is_file()]
