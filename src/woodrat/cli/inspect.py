"""Inspecting: a local server for one ledger file, and a browser that shows it."""

from __future__ import annotations

import os
import sys
import threading
from typing import TYPE_CHECKING, Any

from woodrat.cli.command import UPDATE, CommandResult, Invocation
from woodrat.cli.tables import GREEN
from woodrat.errors import Fault, NotFound, Refused, shown

if TYPE_CHECKING:
    from woodrat.server.serve import Serving

HOST = "127.0.0.1"
WAIT_SECONDS = 30
"""Longest wait of the browser for the server."""


def open_file(call: Invocation) -> CommandResult:
    """Serve one ledger file to this machine and show it in a browser, until interrupted."""
    from woodrat.server import listen

    given = call.given
    faults = port_faults(given.port)
    if given.db is not None:
        problem = f"got {shown(given.db)}, but FILE names the ledger"
        faults.append(Fault("--db", problem, "Leave --db out, or use `woodrat serve --db`."))
    if faults:
        raise Refused(faults, listen.NOT_STARTED)
    _check_file(given.file)
    call.db = given.file
    engine = call.engine(UPDATE)
    if given.tenant is None and "WOODRAT_TENANT" not in os.environ:
        call.tenant = _only_tenant([name for name in engine.tenants() if not name.startswith("woodrat.")], call.tenant)
    return show(call, given.file, port=given.port, browser=not given.no_browser)


def show(call: Invocation, what: str, *, port: int, browser: bool) -> CommandResult:
    """Serve the ledger of a call to this machine, show it in a browser, and return when interrupted."""
    from woodrat.cli.serve import application, keyring
    from woodrat.server import listen, logs
    from woodrat.server.limits import Limits
    from woodrat.server.serve import Serving

    ring = keyring(call, UPDATE)
    address, port = listen.place(HOST, port)
    logs.configure("warning")
    serving = Serving(application(call, ring, Limits(local=True)), address, port)
    url = f"http://{listen.spelled(HOST, port)}/"
    who = "sign in with an API key" if ring.any else f"tenant {call.tenant}"
    print(f"{what} is open at {url} ({who}). Ctrl-C stops.", file=sys.stderr, flush=True)
    if browser:
        start_browser(url, port)
    return _run(serving)


def port_faults(port: int) -> list[Fault]:
    """Return the faults of a port."""
    return [] if 0 <= port <= 65_535 else [Fault("--port", f"got {port}", "Use 1 to 65535, or 0 for any free port.")]


def start_browser(url: str, port: int) -> None:
    """Open the user's browser as soon as the server answers; print a notice if there is no browser."""
    if not has_screen(sys.platform, os.environ):
        print("There is no screen here to start a browser on; open the address in one.", file=sys.stderr, flush=True)
        return
    threading.Thread(target=_browse, args=(url, port), daemon=True).start()


def has_screen(platform: str, environment: Any) -> bool:
    """Return True if a browser would open a window: without a display some run in the terminal and take it over."""
    return platform != "linux" or any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))


def _browse(url: str, port: int) -> None:
    import socket
    import webbrowser

    tick = threading.Event()
    for _ in range(WAIT_SECONDS * 10):
        try:
            socket.create_connection((HOST, port), 1).close()
            break
        except OSError:
            tick.wait(0.1)
    if not webbrowser.open(url):
        print("No browser could be started; open the address in one.", file=sys.stderr, flush=True)


def _check_file(file: str) -> None:
    """Refuse a file that is no ledger before opening it, because opening for writing would make it one."""
    path = os.path.expanduser(file)
    if "://" in file or file == ":memory:":
        remedy = "Name a file, or use `woodrat serve --db` for a database elsewhere."
        raise Refused([Fault("FILE", f"{shown(file)} is not a file", remedy)], "Nothing was opened.")
    if not os.path.exists(path):
        text = f"There is no file {path}. Nothing was created. Name a ledger file, or make one with `woodrat store`."
        raise NotFound(text, {"file": path})
    if os.path.isfile(path) and not os.path.getsize(path):
        problem = f"{path} is empty, so it has no ledger"
        raise Refused([Fault("FILE", problem, "Name a ledger file.")], "Nothing was opened.")


def _only_tenant(names: list[str], default: str) -> str:
    """Return the tenant to show if none is named: the default one, or the only one."""
    if not names or default in names:
        return default
    if len(names) > 1:
        problem = f"missing; the file has the tenants {', '.join(names[:10])}{' …' if len(names) > 10 else ''}"
        raise Refused([Fault("--tenant", problem, "Name one of them.")], "Nothing was started.")
    return names[0]


def _run(serving: Serving) -> CommandResult:
    serving.run()
    return CommandResult({"served": True}, lambda paper: paper.line("Stopped. Acknowledged writes are safe.", GREEN))
