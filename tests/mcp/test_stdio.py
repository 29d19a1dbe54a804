"""Stdio: one line, one message; nothing else on standard output, and an end that loses nothing."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.mcp.test_messages import storing

from woodrat.mcp import stdio
from woodrat.mcp.tools import NOTICE

HELLO: dict[str, Any] = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "by hand", "version": "1"},
}
NEEDS_SIGNALS = pytest.mark.skipif(sys.platform == "win32", reason="a process on Windows is ended in other ways")


class Talk:
    """A command spoken to by hand."""

    def __init__(self, db: Path, before: str = "") -> None:
        code = f"{before}\nfrom woodrat.cli.main import main; raise SystemExit(main())"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, "mcp", "--db", str(db)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def say(self, *lines: bytes | dict[str, Any]) -> None:
        """Send lines."""
        assert self.process.stdin is not None
        for line in lines:
            self.process.stdin.write((line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """Return the next answer."""
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def ask(self, method: str, id: int = 1, **params: Any) -> Any:
        """Send a request; return what is answered."""
        self.say({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        return self.hear()

    def greet(self) -> Talk:
        """Begin as every client does."""
        assert self.ask("initialize", **HELLO)["result"]["serverInfo"]["name"] == "woodrat"
        self.say({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def end(self) -> tuple[int, list[Any], str]:
        """Close the input; return the exit code, what was still answered, and what was printed for people."""
        out, err = self.process.communicate(timeout=60)
        return self.process.returncode, [json.loads(line) for line in out.splitlines()], err.decode()


@pytest.fixture
def talk(tmp_path: Path) -> Iterator[Talk]:
    """A command that serves a ledger of its own."""
    found = Talk(tmp_path / "ledger.db")
    yield found
    found.process.kill()
    found.process.communicate()


def test_every_line_with_an_id_is_answered(talk: Talk) -> None:
    """Nonsense, broken text and two equal keys are each answered, nothing of them is stored, and the talk goes on."""
    talk.greet()
    talk.say(b"hello", b"", b"\r", storing(b'"Lugo","city":"Vigo"'), storing(b'"Lugo\xff"'), storing(b'"\\ud83d"'))
    assert talk.hear()["error"]["code"] == -32700
    for _ in range(3):
        answer = talk.hear()
        assert (answer["id"], answer["result"]["isError"]) == (7, True)
    talk.say(b'{"jsonrpc":"2.0","id":1,"error":"no error at all"}')
    found = talk.ask("tools/call", name="search", arguments={})["result"]["structuredContent"]
    assert (found["notice"], found["items"]) == (NOTICE, [])
    assert talk.end() == (0, [], "")


def test_what_is_cancelled_keeps_nobody_waiting(talk: Talk) -> None:
    """A call that is cancelled, also in words that mean nothing, holds up neither the next call nor the end."""
    talk.greet()
    talk.say({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "verify", "arguments": {}}})
    for params in ({"requestId": 1}, {"requestId": 99}, {"requestId": [1]}, {"requestId": None}, {}):
        talk.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})
    talk.say({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    code, answers, _ = talk.end()
    assert code == 0
    assert {"jsonrpc": "2.0", "id": 2, "result": {}} in answers


def test_what_was_asked_is_answered_before_the_end(talk: Talk) -> None:
    """A client that sends everything and closes gets every answer, also to a last line without its end."""
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": HELLO}
    talk.say(hello, {"jsonrpc": "2.0", "method": "notifications/initialized"}, storing(b'"Lugo"'))
    assert talk.process.stdin is not None
    talk.process.stdin.write(b'{"jsonrpc":"2.0","id":9,"method":"ping"}')
    code, answers, _ = talk.end()
    assert code == 0
    assert {answer["id"] for answer in answers} == {0, 7, 9}
    (stored,) = (answer["result"] for answer in answers if answer["id"] == 7)
    assert stored["structuredContent"]["position"] >= 0


@NEEDS_SIGNALS
def test_a_command_that_is_ended_finishes(talk: Talk) -> None:
    """SIGTERM ends it in order while its client still holds the line."""
    talk.greet()
    assert talk.ask("ping", id=2)["id"] == 2
    talk.process.send_signal(signal.SIGTERM)
    assert talk.process.wait(60) == 0


@NEEDS_SIGNALS
def test_a_command_that_is_interrupted_ends_at_once(talk: Talk) -> None:
    """Ctrl-C ends it although it waits for a line that never comes."""
    talk.greet()
    talk.process.send_signal(signal.SIGINT)
    assert talk.process.wait(60) == 130


@NEEDS_SIGNALS
def test_a_client_that_takes_no_answers_is_gone(talk: Talk) -> None:
    """Where nobody reads the answers the command ends as any command whose reader went away, without a traceback."""
    talk.greet()
    assert talk.process.stdout is not None
    talk.process.stdout.close()
    talk.say({"jsonrpc": "2.0", "id": 1, "method": "ping"})
    assert talk.process.wait(60) == 141
    assert talk.process.stderr is not None
    assert talk.process.stderr.read() == b""


def test_a_client_that_reads_nothing_holds_up_no_end(tmp_path: Path) -> None:
    """Answers that nobody reads, though nobody closed them either, are given up some time after the input has ended."""
    soon = "from woodrat.mcp import stdio; stdio.FINISH_SECONDS = stdio.LAST_SECONDS = 0.1"
    talk = Talk(tmp_path / "ledger.db", soon).greet()
    talk.say(*({"jsonrpc": "2.0", "id": number, "method": "tools/list"} for number in range(40)))
    assert talk.process.stdin is not None
    talk.process.stdin.close()
    assert talk.process.wait(60) == 0


def test_what_is_printed_stays_off_the_protocol(tmp_path: Path) -> None:
    """Whatever code prints while a call is answered goes to standard error."""
    loud = """
from functools import wraps
from woodrat.api.past import Past
quiet = Past.show
@wraps(quiet)
def show(self, *given, **named):
    import os
    print("a word from inside", flush=True)
    os.system("echo and one from a child")
    return quiet(self, *given, **named)
Past.show = show
"""
    talk = Talk(tmp_path / "ledger.db", loud).greet()
    assert talk.ask("tools/call", name="show", arguments={"ref": "contact/Ana"})["result"]["isError"] is True
    code, answers, err = talk.end()
    assert (code, answers) == (0, [])
    assert "a word from inside" in err
    assert "and one from a child" in err


def test_lines_are_whole_and_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line may come in any pieces; of one that is too long nothing is kept, and the next is whole again."""
    monkeypatch.setattr(stdio, "LINE_BYTES_MAX", 10)
    monkeypatch.setattr(stdio, "CHUNK_BYTES", 4)
    source, sink = os.pipe()
    os.write(sink, b"one\n" + b"x" * 10 + b"\n" + b"y" * 11 + b"\n\ntwo\nlast")
    os.close(sink)
    try:
        assert list(stdio.lines(source)) == [b"one", b"x" * 10, None, b"", b"two", b"last"]
    finally:
        os.close(source)
