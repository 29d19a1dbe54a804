"""A shell for the command lines of a page: it runs them in this process and folder, with real ids for placeholders."""

from __future__ import annotations

import gc
import http.client
import importlib.util
import io
import json
import logging
import os
import re
import shutil
import signal
import socket
import sys
import threading
import tomllib
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import cycle
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import pytest
from tests.docs.prepared_ledger import STANDARD_INPUT, Names
from tests.docs.shown_commands import VARIABLE

import woodrat
from woodrat.cli import maintenance
from woodrat.cli.main import main
from woodrat.server import memory
from woodrat.server.logs import NAME, OTHERS
from woodrat.verifier import woodrat_verify

ROOT: Final = Path(__file__).parents[2]
UP_SECONDS: Final = 60.0
"""How long a server may take to come up; after that it is interrupted all the same, and its line fails."""
TICK_SECONDS: Final = 0.02
ADDRESS: Final = re.compile(r"https?://([\d.]+):(\d+)")
FIRST_MESSAGE: Final = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "page", "version": "1"}},
}


class Terminal(io.TextIOWrapper):
    """A stream that is a terminal, as a command sees it that asks before it goes on."""

    def isatty(self) -> bool:
        """Say that somebody sits there."""
        return True


class Shell:
    """Runs command lines one after another; variables that one exports hold until `forget`."""

    def __init__(
        self,
        folder: Path,
        patch: pytest.MonkeyPatch,
        names: Names | None = None,
        *,
        server: Callable[[], int] | None = None,
        postgres: Callable[[], str] | None = None,
    ) -> None:
        """`server` returns the port of a served ledger and `postgres` the address of a database, when one is named."""
        self._folder, self._patch, self._names = folder, patch, names
        self._server, self._postgres = server, postgres
        self._exported: dict[str, str] = {}

    def forget(self) -> None:
        """Forget what was exported, as in a new shell."""
        self._exported.clear()

    def run(self, words: list[str]) -> tuple[int, str, str]:
        """Run one command line; return its exit code, its output, and what it said on standard error."""
        words = [*self._filled(words)]
        variables: dict[str, str] = {}
        while words and VARIABLE.match(words[0]):
            name, _, value = words.pop(0).partition("=")
            variables[name] = value
        if words[-1] == "&":
            words.pop()
        out = None
        if len(words) > 2 and words[-2] == ">":
            out = self._folder / os.path.expanduser(words[-1])
            words = words[:-2]
        with self._patch.context() as patch:
            for name, value in {**self._exported, **variables}.items():
                patch.setenv(name, value)
            code, printed, errors = self._dispatch(words[0], words[1:])
        if out is not None:
            out.write_text(printed, "utf-8")
        return code, printed, errors

    def _dispatch(self, program: str, words: list[str]) -> tuple[int, str, str]:
        if program == "woodrat":
            return self._woodrat(words)
        if program == "woodrat-verify":
            return self._call(lambda: woodrat_verify.main(words))
        if program == "export":
            pairs = (word.partition("=") for word in words)
            self._exported |= {name: value for name, _, value in pairs if name.startswith("WOODRAT_")}
            return 0, "", ""
        if program == "curl":
            return _request(words)
        problem = {"pip": _pip_problem, "python3": _dev_problem}[program](words)
        return (0, "", "") if problem is None else (2, "", problem)

    def _woodrat(self, words: list[str]) -> tuple[int, str, str]:
        if "--follow" in words:
            with self._patch.context() as patch:
                patch.setattr(maintenance, "wait", _interrupt)
                return self._call(lambda: main(words))
        if words[0] in ("serve", "open") or "--serve" in words:
            return self._serve([*words, *(("--port", "0") if words[0] == "serve" else ())])
        if words[0] == "mcp":
            with _undone(self._patch):
                code, printed, errors = self._call(lambda: main(words), json.dumps(FIRST_MESSAGE) + "\n")
            assert json.loads(printed)["result"]["serverInfo"]["name"] == "woodrat", errors
            return code, printed, errors
        if "--new-epoch" in words:
            self._put_back()
        if words[:3] == ["runs", "resume", "last"]:
            self._interrupt_run()
        if words[0] == "erase":
            return self._call(lambda: main(words), "yes\n", terminal=True)
        given = self._folder / STANDARD_INPUT
        return self._call(lambda: main(words), given.read_text("utf-8") if given.exists() else "")

    def _call(self, call: Callable[[], int], stdin: str = "", *, terminal: bool = False) -> tuple[int, str, str]:
        """Call what a program runs, with standard streams that are files, as some write to their descriptors."""
        kind = Terminal if terminal else io.TextIOWrapper
        names = {name: self._folder / f".{name}" for name in ("stdin", "stdout", "stderr")}
        names["stdin"].write_text(stdin, "utf-8")
        before = {name: getattr(sys, name) for name in names}
        with names["stdin"].open("rb") as given, names["stdout"].open("wb") as out, names["stderr"].open("wb") as err:
            sys.stdin, sys.stderr = kind(given, encoding="utf-8"), kind(err, encoding="utf-8")
            sys.stdout = io.TextIOWrapper(out, encoding="utf-8")
            try:
                code = call()
            except SystemExit as exit:  # of argparse
                code = exit.code if isinstance(exit.code, int) else 1
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                for name, stream in before.items():
                    setattr(sys, name, stream)
        return code, names["stdout"].read_text("utf-8"), names["stderr"].read_text("utf-8")

    def _serve(self, words: list[str]) -> tuple[int, str, str]:
        """Serve until a connection is taken, then interrupt."""
        (self._folder / ".stderr").write_bytes(b"")
        up, ended = threading.Event(), threading.Event()
        watch = threading.Thread(target=self._interrupt_when_up, args=(up, ended))
        with _undone(self._patch):
            watch.start()
            try:
                code, printed, errors = self._call(lambda: main(words))
            finally:
                ended.set()
                watch.join()
        return (code, printed, errors) if up.is_set() else (code or -1, printed, f"it did not come up. {errors}")

    def _interrupt_when_up(self, up: threading.Event, ended: threading.Event) -> None:
        for _ in range(int(UP_SECONDS / TICK_SECONDS)):
            if found := ADDRESS.search((self._folder / ".stderr").read_text("utf-8")):
                with suppress(OSError):
                    socket.create_connection((found[1], int(found[2])), 1).close()
                    up.set()
                    break
            if ended.wait(TICK_SECONDS):
                return
        os.kill(os.getpid(), signal.SIGINT)

    def _put_back(self) -> None:
        """Put the backup in place of the ledger, which has signed checkpoints since."""
        for end in ("-wal", "-shm"):
            (self._folder / f"agents.db{end}").unlink(missing_ok=True)
        shutil.copy(self._folder / "backup.db", self._folder / "agents.db")

    def _interrupt_run(self) -> None:
        """Leave a run of the command line's own agent without an end, as the latest."""
        with woodrat.open(self._folder / "agents.db", agent="cli") as ledger:
            run = ledger.run("Should we approve application #42?", subject="loan/42", inputs={"amount": 1}).start()
            run.show("loan/42")
            run.release()

    def _filled(self, words: list[str]) -> Iterator[str]:
        """Yield the words with real ids, secrets and addresses for the placeholders in them."""
        names = self._names
        if names is None:
            yield from words
            return
        run = (names.interrupted,) if "resume" in words else names.runs
        stand_ins = {
            "run_…": cycle(run),
            "obs_…": cycle([names.observation]),
            "obs_d2fjsh5trd3wfuioa2iscubxg2": cycle([names.mistaken]),
            "src_…": cycle([names.source]),
            "int_…": cycle(names.interpretations),
            "key_…": cycle([names.key]),
            "hook_…": cycle([names.webhook]),
            "wrat_…": cycle([names.secret]),
            "example.com/…": cycle([names.verifier_key]),
            "0.0.0.0": cycle(["127.0.0.1"]),
        }
        whole = {"RUN": names.runs[0], "OTHER": names.runs[1], "FILE": "trace.json", "AGENT": "crm"}
        for word in words:
            filled = whole.get(word, word)
            for placeholder, ids in stand_ins.items():
                if placeholder in filled:
                    filled = filled.replace(placeholder, next(ids))
            if self._server is not None and re.search(r"https://ledger\.example\.org|localhost:8787", filled):
                port = self._server()
                filled = filled.replace("https://ledger.example.org", f"http://127.0.0.1:{port}")
                filled = filled.replace("localhost:8787", f"127.0.0.1:{port}")
            if self._postgres is not None and filled.startswith("postgresql://"):
                filled = self._postgres()
            yield filled


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


@contextmanager
def _undone(patch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a server sets for its whole process, and start no browser."""
    logs = {log: (log.handlers, log.propagate, log.level) for log in map(logging.getLogger, (NAME, *OTHERS))}
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    interval, thresholds = sys.getswitchinterval(), gc.get_threshold()
    try:
        with patch.context() as own:
            own.setattr(memory, "bound", lambda: None)
            own.setattr(webbrowser, "open", lambda url: True)
            yield
    finally:
        sys.setswitchinterval(interval)
        gc.set_threshold(*thresholds)
        for log, (log_handlers, propagate, level) in logs.items():
            log.handlers, log.propagate = log_handlers, propagate
            log.setLevel(level)
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _request(words: list[str]) -> tuple[int, str, str]:
    """Send the request that curl would; the exit code is 0 if it succeeds."""
    headers: dict[str, str] = {}
    method, body, url = "GET", None, ""
    rest = iter(words)
    for word in rest:
        if word == "-H":
            name, _, value = next(rest).partition(": ")
            headers[name] = value
        elif word == "-d":
            method, body = "POST", next(rest)
        elif word == "-X":
            method = next(rest)
        else:
            assert not word.startswith("-"), f"curl {word}: teach the test what it means"
            url = word if "://" in word else f"http://{word}"
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.netloc, timeout=30)
    try:
        connection.request(method, place.path + (f"?{place.query}" if place.query else ""), body, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
    finally:
        connection.close()
    return (0 if answer.status // 100 == 2 else 1), text, f"status {answer.status}: {text}"


def _pip_problem(words: list[str]) -> str | None:
    """Return what is wrong with an installation: extras of ours that there are not."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        extras = tomllib.load(file)["project"]["optional-dependencies"]
    named = [name for word in words for found in re.findall(r"^woodrat\[(.*)\]$", word) for name in found.split(",")]
    missing = [name for name in named if name not in extras]
    return f"there is no extra {', '.join(missing)}" if missing or words[0] != "install" else None


@cache
def _dev() -> Any:
    spec = importlib.util.spec_from_file_location("dev_of_the_documents", ROOT / "dev.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _dev_problem(words: list[str]) -> str | None:
    """Return what is wrong with a call of dev.py: a command or an option that it does not have."""
    if words[0] != "dev.py" or words[1] not in _dev().COMMANDS:
        return f"dev.py has no command {' '.join(words[1:])}"
    options = [word for word in words[2:] if word.startswith("--")]
    if options and words[1] not in _dev().TAKES_ARGUMENTS:
        return f"dev.py {words[1]} takes no arguments"
    # Options of `test` are its own, or those that our tests give pytest.
    known = "".join((ROOT / file).read_text("utf-8") for file in ("dev.py", "tests/conftest.py"))
    missing = [option for option in options if f'"{option}"' not in known]
    return f"dev.py {words[1]} has no option {', '.join(missing)}" if missing else None
