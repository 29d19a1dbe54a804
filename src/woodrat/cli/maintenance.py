"""Maintenance: the commands about the log as a whole, and about the machine it is on."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from woodrat import __version__
from woodrat.cli.command import MEMORY, READ, UPDATE, CommandResult, Invocation
from woodrat.cli.progress import bar
from woodrat.cli.tables import BOLD, DIM, GREEN, RED, YELLOW, Paper, time
from woodrat.errors import Fault, Refused, Unavailable, WoodratError
from woodrat.server import wire

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.api.past import Past
    from woodrat.engines.view import View
    from woodrat.log.entry import Entry

NO_READ = "Nothing was read."
POLL_MILLISECONDS = 200
"""Interval at which `--follow` checks for new entries."""
PAGE_ENTRIES = 1_000
"""Entries of the log read at a time."""
LOG_COLUMNS = ("position", "recorded_at", "kind", "log", "envelope", "commitment", "nonce", "body", "erased_at")
"""The columns of the log as CSV."""
SUMMARY_CHARACTERS_MAX = 100
"""Longest excerpt of a body in a line of the log."""


def log(call: Invocation) -> CommandResult:
    """Print the entries of the log; with `--follow` also new ones."""
    given = call.given
    if given.valid_at is not None:
        problem = "--valid-at does not apply to the log, which lists entries as recorded"
        raise Refused([Fault("woodrat log", problem, "Use `woodrat timeline` instead.")], NO_READ)
    if given.after is not None and given.after < -1:
        raise Refused([Fault("--after", f"got {given.after}", "Use a position, 0 or more.")], NO_READ)
    if given.limit is not None and given.limit < 1:
        raise Refused([Fault("--limit", f"got {given.limit}", "Use 1 or more.")], NO_READ)
    if given.follow and given.as_of is not None:
        problem = f"--follow never ends, so it cannot be combined with --as-of {given.as_of}"
        raise Refused([Fault("woodrat log", problem, "Leave one of them out.")], NO_READ)
    if given.follow and given.output == "json":
        problem = "--follow never ends, so it cannot be one JSON value"
        raise Refused([Fault("woodrat log", problem, "Use -o jsonl, one line per entry.")], NO_READ)
    past = call.past()
    entries = _entries(call, past)

    def text(paper: Paper) -> None:
        printed = False
        for entry in entries:
            if not printed:
                paper.line(f"  {'POSITION':>8}  {'RECORDED AT':<22}  {'KIND':<22}  BODY", BOLD)
                printed = True
            summary = _summary(entry, paper, past)
            paper.line(f"  {entry.position:>8}  {time(entry.recorded_at):<22}  {entry.kind:<22}  {summary}")
            if given.follow:
                paper.flush()
        if not printed:
            paper.line("No entries.")

    lines = (
        entry.to_json() if entry.body is not None else {**entry.to_json(), "erased_at": past.erased_at(entry.position)}
        for entry in entries
    )
    return CommandResult(None, text, lines, streams=True, follows=given.follow, columns=LOG_COLUMNS)


def _entries(call: Invocation, past: Past) -> Iterator[Entry]:
    """Yield the entries after the requested position; to follow, wait for new entries of any writer."""
    given = call.given
    after, through = -1 if given.after is None else given.after, past.position
    left = through + 1 if given.limit is None else given.limit
    while True:
        while after < through and (left > 0 or given.limit is None):
            most = PAGE_ENTRIES if given.limit is None else min(left, PAGE_ENTRIES)
            page = call.ask(past, after=after, limit=most)
            yield from page
            after, left = page[-1].position, left - len(page)
        if not call.given.follow:
            return
        wait(POLL_MILLISECONDS)
        past = call.past()
        through = past.position


def wait(milliseconds: int) -> None:
    """Wait, but stop when the reader of the output goes away: there may be no entry to write."""
    import select

    try:
        poll = select.poll()
        poll.register(sys.stdout.fileno(), 0)
        if poll.poll(milliseconds):
            raise BrokenPipeError
    except (AttributeError, ValueError, io.UnsupportedOperation):  # not everywhere, and not in every stream
        import threading

        threading.Event().wait(milliseconds / 1000)


def _summary(entry: Entry, paper: Paper, past: Past) -> str:
    if entry.body is None:
        position = past.erased_at(entry.position)
        return "(body missing)" if position is None else f"(erased at {position})"
    if entry.kind == "source":
        return f"{len(entry.body)} bytes"
    room = SUMMARY_CHARACTERS_MAX if paper.width is None else max(20, paper.width - 60)
    text = entry.body[: room * 4].decode("utf-8", "ignore")
    return text if len(text) <= room else text[: room - 1] + "…"


def fingerprint(call: Invocation) -> CommandResult:
    """Print one digest of the whole state."""
    given = call.given
    found: str | None = None
    if given.as_of is None and given.valid_at is None and not given.provenance:
        try:
            # the ledger caches the tree and extends it, so a repeated call is fast
            ledger: Past = call.ledger(UPDATE)
            found = call.ask(ledger)
        except Unavailable:
            pass  # a file that cannot be written can still be read
    if found is None:
        ledger = call.past()
        found = call.ask(ledger)
    answer = {"fingerprint": found, "position": ledger.position, "provenance": given.provenance}
    return CommandResult(answer, lambda paper: paper.line(answer["fingerprint"]))


def rebuild(call: Invocation) -> CommandResult:
    """Merge everything again from the log, and compare."""
    ledger = call.ledger(UPDATE)
    with bar("Rebuilding", "entries") as tell:
        found = call.ask(ledger, progress=tell)

    def text(paper: Paper) -> None:
        paper.line(f"Rebuilt {found.entities} entities from {found.observations} observations.", GREEN)
        paper.line(f"  {found.fingerprint}", DIM)
        if found.agreed:
            paper.line("  Everything derived agreed with the log.")
        for entity in found.repaired:
            paper.line(f"  repaired: {entity}", YELLOW)

    return CommandResult(found.to_json(), text, code=wire.DONE if found.agreed else wire.FOUND_SOMETHING)


def sql(call: Invocation) -> CommandResult:
    """Run one SELECT over the documented tables."""
    found = call.ask(call.past())
    note = (
        f"There are more rows; these are the first {len(found)}. Ask for more with --limit."
        if found.truncated
        else None
    )

    def text(paper: Paper) -> None:
        paper.table(
            [name.upper() for name in found.columns], [["" if v is None else str(v) for v in row] for row in found.rows]
        )
        if not found.rows:
            paper.line("No rows.", DIM)
        if note is not None:
            paper.line(note, YELLOW)

    return CommandResult(found.to_json(), text, lines=list(found), note=note, columns=found.columns)


def prove_order(call: Invocation) -> CommandResult:
    """Compare the states that other orders of arrival end in."""
    ledger = call.ledger(READ)
    with bar("Proving", "orders") as tell:
        proof = call.ask(ledger, progress=tell)

    def text(paper: Paper) -> None:
        said = f"{proof.observations} observations in {proof.shuffles} orders: "
        if proof.holds:
            paper.line(said + f"one fingerprint, {proof.fingerprint}", GREEN)
        else:
            paper.line(said + f"{len(proof.differing)} of them end in a different state", RED)
            paper.line(f"  seeds: {', '.join(map(str, proof.differing))}")

    return CommandResult(proof.to_json(), text, code=wire.DONE if proof.holds else wire.FOUND_SOMETHING)


def migrate(call: Invocation) -> CommandResult:
    """Set the database up."""
    from woodrat.engines.open import is_postgres

    if is_postgres(call.db):
        return _distribution(str(call.db)) if call.given.distributed else _migrate_server(str(call.db))
    if call.given.distributed:
        problem = f"{call.path or MEMORY} is not a database of a PostgreSQL server"
        raise Refused([Fault("--distributed", problem, "Name one with --db postgresql://…")], "Nothing was printed.")
    path = call.path
    before = _file_facts(path).get("layout") if path is not None and os.path.isfile(path) else None
    call.engine(UPDATE)
    after = None if path is None else _file_facts(path).get("layout")
    found = {"db": path or MEMORY, "before": before, "layout": after}

    def text(paper: Paper) -> None:
        if after is None:
            paper.line(f"{found['db']} has no layout: it is not a file.")
        elif before == after:
            paper.line(f"{path} already has layout {after}. Nothing was changed.", GREEN)
        else:
            paper.line(f"Made the tables of {path}, layout {after}.", GREEN)

    return CommandResult(found, text)


def _migrate_server(url: str) -> CommandResult:
    """Set a database of a PostgreSQL server up."""
    from woodrat.engines.open import check_driver

    check_driver()
    from woodrat.engines.postgres.migration import migrate

    done = migrate(url)
    found = {
        "db": done.db,
        "before": done.before,
        "layout": done.after,
        "roles": done.roles,
        "pgvector": done.pgvector,
    }

    def text(paper: Paper) -> None:
        if done.roles:
            paper.line(f"Made the roles {', '.join(done.roles)}.", GREEN)
        if done.before == done.after:
            paper.line(f"{done.db} already has layout {done.after}.", GREEN)
        else:
            paper.line(f"Made the schema and the tables of {done.db}, layout {done.after}.", GREEN)
        paper.line(f"pgvector: {done.pgvector}.")

    return CommandResult(found, text)


def _distribution(url: str) -> CommandResult:
    """Print the statements that spread a database over nodes by tenant."""
    from woodrat.engines.open import check_driver

    check_driver()
    from woodrat.engines.postgres.distribution import ddl

    statements = ddl(url)
    return CommandResult(statements, lambda paper: paper.line(statements.rstrip("\n")), plain=True)


def doctor(call: Invocation) -> CommandResult:
    """Print the configuration of this command line."""
    chosen = "--db" if call.given.db is not None else "WOODRAT_DB" if call.db is not None else "default"
    found: dict[str, Any] = {
        "woodrat": __version__,
        "python": f"{sys.version.split()[0]} ({sys.executable})",
        "db": None,
        "db_from": chosen,
        "tenant": call.tenant,
        "agent": call.agent,
        "engine": None,
        "settings": {},
        "indexes": [],
        "refolding": [],
        "files": [],
        "keys": None,
        "outgoing_addresses": [],
        "clock": None,
        "write_ahead_log": None,
        "erasure": None,
        "refused": None,
        "problem": None,
    }
    code = wire.DONE
    try:
        if call.is_served:
            found.update(_server_facts(call))
        else:
            path = call.path
            found.update(db=path or call.engine(READ).location or MEMORY, files=_files(path), keys=_key_facts(call))
            found.update(_engine_facts(call, path))
            if path is not None and found["files"]:
                found["outgoing_addresses"] = _addresses(call)
    except WoodratError as error:
        found["problem"] = str(error)
        code = wire.exit_code(error)

    def text(paper: Paper) -> None:
        for name in ("woodrat", "python", "db", "db_from", "tenant", "agent", "engine"):
            paper.line(f"  {name:<10} {found[name] if found[name] is not None else '(not opened)'}")
        for name, item in found["settings"].items():
            paper.line(f"    {name:<22} {item}")
        if found["indexes"]:
            paper.line("  indexes")
        for index in found["indexes"]:
            if index["name"] != "refold" or not index["lacking"]:
                paper.line(f"    {index['name']:<22} {_progress(index['position'], index['lacking'])}")
        for one in found["refolding"]:
            done = f"{one['done']} {'entity' if one['done'] == 1 else 'entities'} of {one['type']} done"
            paper.line(f"    {'refold':<22} {done} since the schema at {one['position']}; the others fold when read")
        paper.line("  files")
        for file in found["files"]:
            paper.line(f"    {file['bytes']:>12} bytes  {file['path']}")
        if not found["files"]:
            none = (
                "none here"
                if call.is_served or found["engine"] not in (None, "sqlite")
                else "none yet; the first `woodrat store` creates the database"
            )
            paper.line(f"    {none}", DIM)
        keys = found["keys"]
        if keys is not None:
            paper.line(f"  keys       {keys['folder']}: {keys['vkey'] or 'no signer; `woodrat init` creates one'}")
            for file in keys["files"]:
                paper.line(f"    {file['bytes']:>12} bytes  {file['path']}")
        paper.line(f"  outgoing addresses: {', '.join(found['outgoing_addresses']) or 'none'}")
        if found["clock"] is not None:
            paper.line(f"  clock: {found['clock']}", YELLOW)
        if found["write_ahead_log"] is not None:
            paper.line(f"  write-ahead log: {found['write_ahead_log']}", YELLOW)
        if found["erasure"] is not None:
            paper.line(f"  erasure: {found['erasure']}", YELLOW)
        if found["refused"] is not None:
            paper.line(f"  writes are refused: {found['refused']}", YELLOW)
        if found["problem"] is not None:
            for line in found["problem"].split("\n"):
                paper.line(f"  problem: {line}", RED)

    return CommandResult(found, text, code=code)


def _progress(position: int, lacking: int) -> str:
    """Return the lag of an index, in words."""
    if not lacking:
        return "up to date"
    if position < 0:
        return "not built yet; its first use builds it"
    return f"{lacking} {'entry' if lacking == 1 else 'entries'} behind; its next use catches up"


def _server_facts(call: Invocation) -> dict[str, Any]:
    """Return the health of a server: the position of its log shows that it answers and accepts this key."""
    position = call.past().position
    return {
        "db": call.db,
        "tenant": "(as the key says)",
        "agent": "(as the key says)",
        "engine": "server",
        "settings": {"position": position},
        "outgoing_addresses": [call.db],
    }


def _key_facts(call: Invocation) -> dict[str, Any]:
    """Return the folder of keys, the verifier key and the paths of all files; no secret is shown."""
    from woodrat.proofs.verbs.folder import keys_folder

    folder = keys_folder(call.keys)
    found: dict[str, Any] = {"folder": folder, "vkey": None, "files": []}
    if os.path.isdir(folder):
        from woodrat.proofs.verbs.keys import PUBLIC, Keys

        keys = Keys(folder)
        found["files"] = [{"path": file, "bytes": os.path.getsize(file)} for file in keys.files()]
        if os.path.exists(keys.path(PUBLIC)):
            found["vkey"] = str(keys.verifier)
    return found


def _addresses(call: Invocation) -> list[str]:
    """Return the addresses of the webhooks of this database, the only ones that a server sends to."""
    from woodrat.api.ledger import Ledger
    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry
    from woodrat.server.webhooks import WEBHOOKS_TENANT, Hooks

    clock = SystemClock()
    ledger = Ledger(call.engine(READ), tenant=WEBHOOKS_TENANT, agent=call.agent, clock=clock, policies=registry(()))
    return sorted({hook.url for hook in Hooks(ledger, clock).all()})


def _engine_facts(call: Invocation, path: str | None) -> dict[str, Any]:
    """Return the engine's name, versions and settings; an existing database is opened to see that it can be."""
    from woodrat.clock import SystemClock
    from woodrat.ledger.clock_skew import skew_of

    if path is None:
        return _server_engine_facts(call)
    import apsw

    settings: dict[str, Any] = {
        "sqlite": apsw.sqlite_lib_version(),
        "apsw": apsw.apsw_version(),
        "journal_mode": "wal",
        "synchronous": "full",
    }
    there = os.path.exists(path)
    indexes: dict[str, Any] = {"indexes": [], "refolding": [], "erasure": None}
    if there:
        ledger = call.ledger(READ)
        settings.update(_file_facts(path))
        settings["position"] = ledger.position
        settings["purged"] = call.engine(READ).purged()
        indexes = _index_facts(ledger, purged=settings["purged"])
    clock = skew_of(call.engine(READ), ledger.tenant, SystemClock()) if there else None
    return {
        "engine": call.engine(READ).name if there else "sqlite",
        "settings": settings,
        **indexes,
        "clock": clock,
        "write_ahead_log": _long_write_ahead_log(path),
    }


def _server_engine_facts(call: Invocation) -> dict[str, Any]:
    """Return the name of an engine without a file, and the settings of its server, if it has one."""
    from woodrat.clock import SystemClock
    from woodrat.ledger.clock_skew import skew_of

    engine = call.engine(READ)
    found = engine.settings()
    if found is None:
        return {"engine": engine.name}
    ledger = call.ledger(READ)
    settings = {**found, "position": ledger.position}
    purged = True
    try:
        settings["purged"] = purged = engine.purged()
    except WoodratError:
        settings["purged"] = "not known: this login may not act as the owner"
    clock = skew_of(engine, ledger.tenant, SystemClock())
    return {"engine": engine.name, "settings": settings, **_index_facts(ledger, purged=purged), "clock": clock}


def _index_facts(ledger: Ledger, *, purged: bool) -> dict[str, Any]:
    """Return the lag of indexes, the types that wait for a new merge, and pending erasures."""
    from woodrat.api.trailing_indexes import TRAILING
    from woodrat.ledger import indexer, refold

    with ledger.context.engine.view(ledger.tenant) as view:
        indexes = [one.to_json() for one in indexer.positions(view, TRAILING)]
        return {
            "indexes": indexes,
            "refolding": [one.to_json() for one in refold.waiting(view)],
            "erasure": _unfinished_erasure(view, purged=purged),
            "refused": None if ledger.signing is None else ledger.signing.refusal(),
        }


def _unfinished_erasure(view: View, *, purged: bool) -> str | None:
    """Return a notice about a pending erasure; None if there is none."""
    from woodrat.erasure.verbs.pending_search import is_pending

    if purged and not is_pending(view):
        return None
    left = (
        "The files have not been searched for the erased bytes, or the search found some"
        if purged
        else "Some of its bytes are still in the files"
    )
    return (
        f"An erasure is pending. {left}. The entries themselves are gone, and nobody can read them here. Run "
        "`woodrat erase --finish` with the keys it was made with."
    )


def _long_write_ahead_log(path: str) -> str | None:
    """Return a notice about a long write-ahead log; None if it is short."""
    from woodrat.engines.sqlite.write_ahead_log import LARGE_BYTES, size_of

    size = size_of(path)
    if size < LARGE_BYTES:
        return None
    return (
        f"{path}-wal has grown to {size} bytes, because a reader has kept an old state open for long. No data is at "
        "risk. End long reads, such as open views and exports; the next write then shrinks the file."
    )


def _file_facts(path: str) -> dict[str, Any]:
    """Return properties of the file, read through a separate connection."""
    from woodrat.engines.sqlite.connection import translated
    from woodrat.engines.sqlite.readonly_file import connect_readonly, is_readonly

    with translated(path):
        connection = connect_readonly(path)
        try:
            mode = connection.execute("PRAGMA journal_mode").get
            return {
                "layout": connection.execute("PRAGMA user_version").get,
                "journal_mode": "none (a read-only medium)" if is_readonly(path) else mode,
                "page_bytes": connection.execute("PRAGMA page_size").get,
            }
        finally:
            connection.close()


def _files(path: str | None) -> list[dict[str, Any]]:
    """Return every file the database is in or beside, with its size."""
    if path is None:
        return []
    beside = [path + suffix for suffix in ("", "-wal", "-shm", "-queue")]
    return [{"path": file, "bytes": os.path.getsize(file)} for file in beside if os.path.isfile(file)]
