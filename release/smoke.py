"""The smoke test: what a user does first with an installed Woodrat, outside of the checkout.

Nothing here imports Woodrat. It calls the programs of an environment as a user's shell would, in an empty folder, with
neither the caller's settings nor the checkout in reach. Servers listen on loopback.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

STEP_SECONDS = 120
"""How long one command may take."""
START_SECONDS = 30
"""How long a server may take until it answers."""
REFUSED = 1
"""The exit code of a verifier that refuses a file."""

RECORD = '[{"entity_type":"contact","name":"Ana Rivera","city":"Barcelona"}]'
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "smoke", "version": "1"},
    },
}


class SmokeFailure(Exception):
    """An installed Woodrat did not do what its documents say."""


@dataclass(frozen=True)
class Installation:
    """An environment with a Woodrat in it, and the folder that its commands run in."""

    environment: Path
    folder: Path
    version: str

    def program(self, name: str) -> Path:
        """Return the path of one of its programs."""
        scripts, suffix = ("Scripts", ".exe") if os.name == "nt" else ("bin", "")
        return self.environment / scripts / f"{name}{suffix}"

    def variables(self) -> dict[str, str]:
        """Return the caller's variables without those that would lead to the checkout, or to the caller's own keys."""
        return {**clean_variables(os.environ), "HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder / "config")}

    def run(self, program: str | Path, *arguments: str | Path, code: int = 0) -> str:
        """Run one of its programs to its end and return what it printed; another exit code is a failure."""
        path = program if isinstance(program, Path) else self.program(program)
        command = [str(part) for part in (path, *arguments)]
        ran = subprocess.run(
            command, cwd=self.folder, env=self.variables(), capture_output=True, text=True, timeout=STEP_SECONDS
        )
        if ran.returncode != code:
            shown = " ".join([path.name, *command[1:]])
            raise SmokeFailure(f"{shown}: exit code {ran.returncode}, expected {code}.\n{ran.stdout}{ran.stderr}")
        return ran.stdout

    def start(self, program: str, *arguments: str, **pipes: Any) -> subprocess.Popen[str]:
        """Start one of its programs and return the process."""
        command = [str(self.program(program)), *arguments]
        return subprocess.Popen(command, cwd=self.folder, env=self.variables(), text=True, **pipes)


def clean_variables(variables: Mapping[str, str]) -> dict[str, str]:
    """Return these environment variables without Python's and Woodrat's."""
    return {
        name: value for name, value in variables.items() if not name.startswith(("PYTHON", "WOODRAT", "VIRTUAL_ENV"))
    }


def expect(condition: bool, message: str) -> None:
    """Fail with this message unless the condition holds."""
    if not condition:
        raise SmokeFailure(message)


def check_base(installed: Installation, golden: Path) -> None:
    """Try what works without any extra: import, version, demo, store, show, verify, and both verifiers of capsules."""
    check_import(installed)
    expect("Ana Rivera" in installed.run("woodrat", "demo"), "woodrat demo: its story is not in what it printed.")
    check_store(installed)
    check_verifiers(installed, golden)


def check_import(installed: Installation) -> None:
    """`import woodrat` in another folder finds the installed package, at the version that was built."""
    place = Path(installed.run("python", "-c", "import woodrat; print(woodrat.__file__)").strip())
    expect(place.is_relative_to(installed.environment), f"import woodrat: found it at {place}, not in its environment.")
    stated = installed.run("woodrat", "--version").strip()
    expect(stated == f"woodrat {installed.version}", f'woodrat --version: "{stated}", built was {installed.version}.')


def check_store(installed: Installation) -> None:
    """What one command stores, another shows, and `verify` finds nothing wrong."""
    database = ("--db", "smoke.db")
    installed.run("woodrat", "store", *database, f"--json={RECORD}")
    shown = json.loads(installed.run("woodrat", "show", *database, "-o", "json", "contact/Ana Rivera"))
    expect("Barcelona" in json.dumps(shown), f"woodrat show: the stored city is not in {shown}.")
    installed.run("woodrat", "verify", *database)


def check_verifiers(installed: Installation, golden: Path) -> None:
    """The verifiers prove a golden capsule and refuse a changed one, also as single files without any package."""
    capsule, key = installed.folder / "capsule.json", (golden / "vkey").read_text("utf-8").strip()
    changed = installed.folder / "changed.json"
    content = (golden / "stage.json").read_text("utf-8")
    capsule.write_text(content, "utf-8")
    expect('"creditScore":580' in content, "stage.json: there is no credit score of 580 in it to change.")
    changed.write_text(content.replace('"creditScore":580', '"creditScore":780', 1), "utf-8")
    package = Path(installed.run("python", "-c", "import woodrat; print(woodrat.__path__[0])").strip())
    alone = installed.folder / "alone"
    alone.mkdir()
    ways: list[tuple[str | Path, ...]] = [("woodrat-verify",)]
    for name, command in {"woodrat_verify.py": ("python", "-I", "-S"), "woodrat-verify.mjs": ("node",)}.items():
        copy = shutil.copy(package / "verifier" / name, alone)
        program = installed.program("python") if command[0] == "python" else shutil.which(command[0])
        if program is None:
            print(f"  {command[0]} is not installed here: {name} was not tried", flush=True)
            continue
        ways.append((Path(program), *command[1:], copy))
    for program, *arguments in ways:
        said = installed.run(program, *arguments, capsule, "--key", key)
        expect(said.startswith("PROVEN"), f"{arguments or program}: a golden capsule is not proven.\n{said}")
        installed.run(program, *arguments, changed, "--key", key, code=REFUSED)


def check_extras(installed: Installation) -> None:
    """Try what the extras `server` and `mcp` add."""
    check_serve(installed)
    check_mcp(installed)


def check_serve(installed: Installation) -> None:
    """`woodrat serve` answers /healthz on loopback, and ends when it is told to."""
    port = free_port()
    printed = installed.folder / "serve.txt"
    with printed.open("w") as output:
        pipes = {"stdout": output, "stderr": output}
        server = installed.start("woodrat", "serve", "--db", "served.db", "--port", str(port), **pipes)
        try:
            answer = wait_for(f"http://127.0.0.1:{port}/healthz", server)
            server.terminate()
            code = server.wait(START_SECONDS)
        except (SmokeFailure, subprocess.TimeoutExpired) as failure:
            raise SmokeFailure(f"woodrat serve: {failure}\n{printed.read_text('utf-8')}") from failure
        finally:
            if server.poll() is None:
                server.kill()
                server.wait()
    expect(answer.get("status") == "ok", f"/healthz: expected the status ok, got {answer}.")
    expect(code == 0, f"woodrat serve: exit code {code} after it was told to end, expected 0.")


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(url: str, server: subprocess.Popen[str]) -> dict[str, Any]:
    """Return what a server answers, once it does."""
    # A proxy of the caller's is not asked for an address on this machine.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + START_SECONDS
    while True:
        try:
            with opener.open(url, timeout=5) as response:
                answer: dict[str, Any] = json.load(response)
                return answer
        except urllib.error.URLError as error:
            expect(server.poll() is None, f"{url}: the server ended with exit code {server.returncode}.")
            expect(time.monotonic() < deadline, f"{url}: no answer within {START_SECONDS} s ({error.reason}).")
            time.sleep(0.1)


def check_mcp(installed: Installation) -> None:
    """`woodrat mcp` answers the first message of a client on standard output, and ends with its input."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    server = installed.start("woodrat", "mcp", "--db", "served.db", **pipes)
    try:
        # A client waits for the answer before it closes: what is asked after the end of input need not be answered.
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(INITIALIZE) + "\n")
        server.stdin.flush()
        line = server.stdout.readline()
        server.stdin.close()
        server.wait(START_SECONDS)
    finally:
        if server.poll() is None:
            server.kill()
            server.wait()
    expect(line.startswith("{"), f'woodrat mcp: expected an answer in JSON, got "{line.strip()}".')
    named = json.loads(line).get("result", {}).get("serverInfo", {}).get("name")
    expect(named == "woodrat", f"woodrat mcp: expected the server woodrat, got {line.strip()}")
