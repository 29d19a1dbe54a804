"""Clients: the configuration files in which agent programs list their MCP servers, and Woodrat's entry in them.

Nothing else in such a file is touched. A file that is not plain JSON (one with comments, say) is left unchanged.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from woodrat.errors import Fault, Refused, shown
from woodrat.records import dataclass

NAME: Final = "woodrat"
"""The name of our entry."""
NOT_WRITTEN: Final = "Nothing was written."


@dataclass(frozen=True, slots=True)
class Client:
    """A program with agents."""

    name: str
    """Its name on the command line, and the default agent of its writes."""
    path: str
    """Its file: below the current folder, or in the user's own place for such files."""
    under: str
    """The key of the servers in the file."""
    typed: bool = False
    """Whether an entry states the type stdio."""
    personal: bool = False
    """Whether the file is the user's rather than the project's."""
    variable: str = ""
    """How it writes the environment's WOODRAT_TOKEN; empty where its file knows no servers behind an address."""


CLIENTS: Final[Mapping[str, Client]] = {
    client.name: client
    for client in (
        Client("claude-code", ".mcp.json", "mcpServers", typed=True, variable="${WOODRAT_TOKEN}"),
        Client("cursor", ".cursor/mcp.json", "mcpServers", variable="${env:WOODRAT_TOKEN}"),
        Client("vscode", ".vscode/mcp.json", "servers", typed=True, variable="${env:WOODRAT_TOKEN}"),
        Client("claude-desktop", "Claude/claude_desktop_config.json", "mcpServers", personal=True),
    )
}


def place(client: Client, folder: Path, environment: Mapping[str, str], platform: str = sys.platform) -> Path:
    """Return the file of a client."""
    if not client.personal:
        return folder / client.path
    home = Path(environment.get("HOME") or Path.home())
    if platform == "darwin":
        return home / "Library/Application Support" / client.path
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData/Roaming") / client.path
    return Path(environment.get("XDG_CONFIG_HOME") or home / ".config") / client.path


def entry(
    client: Client, db: str, tenant: str, agent: str, keys: str | None = None, python: str = sys.executable
) -> dict[str, Any]:
    """Return the command that starts the server: this Python by its full path, since clients may have another PATH."""
    words = ["-m", "woodrat", "mcp", "--db", db, "--tenant", tenant, "--as", agent]
    if keys is not None:
        words += ["--signing-keys", keys]
    return {**({"type": "stdio"} if client.typed else {}), "command": python, "args": words}


def entry_of_server(client: Client, address: str, *, keyed: bool) -> dict[str, Any]:
    """Return the entry for a server over HTTP; its key stays in the environment, because the file is often shared."""
    from woodrat.api.transport import address_faults

    faults = address_faults(address)
    if not client.variable:
        remedy = f"Add the address in {client.name} itself, or name a database here with --db."
        faults.append(Fault("--client", f"the file of {client.name} takes no address", remedy))
    if faults:
        raise Refused(faults, NOT_WRITTEN)
    place = address.rstrip("/").removesuffix("/mcp")  # some name the very address that the client is to call
    found: dict[str, Any] = {**({"type": "http"} if client.typed else {}), "url": f"{place}/mcp"}
    return {**found, "headers": {"Authorization": f"Bearer {client.variable}"}} if keyed else found


def merged(client: Client, data: bytes | None, ours: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the content of a file with our entry in it; everything else stays."""
    try:
        text = (data or b"").decode("utf-8")
        found = json.loads(text, object_pairs_hook=_once) if text.strip() else {}
    except ValueError as error:
        remedy = f"Fix it, or add this under {client.under!r} by hand: {json.dumps({NAME: ours})}"
        raise Refused([Fault(where, f"is not JSON ({error})", remedy)], NOT_WRITTEN) from error
    faults = []
    if not isinstance(found, dict):
        faults.append(Fault(where, f"expected an object, got {shown(found)}", "Fix the file, or move it away."))
        raise Refused(faults, NOT_WRITTEN)
    servers = found.get(client.under, {})
    if not isinstance(servers, dict):
        problem = f"expected an object under {client.under!r}, got {shown(servers)}"
        raise Refused([Fault(where, problem, "Fix the file.")], NOT_WRITTEN)
    before = servers.get(NAME)
    others = ("command", "args") if "url" in ours else ("url", "headers")
    kept = {name: said for name, said in before.items() if name not in others} if isinstance(before, dict) else {}
    return {**found, client.under: {**servers, NAME: {**kept, **ours}}}


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object without repeated keys: one of two equal keys would be lost."""
    found = dict(pairs)
    if len(found) != len(pairs):
        twice = next(name for number, (name, _) in enumerate(pairs) if name in dict(pairs[:number]))
        raise ValueError(f"the key {shown(twice)} appears more than once in one object")
    return found


def write(path: Path, document: Mapping[str, Any]) -> bool:
    """Write a file whole or not at all, with its indentation; return True if it changed."""
    target = Path(os.path.realpath(path))
    before = target.read_text("utf-8") if target.exists() else ""
    if before.strip() and json.loads(before) == document:
        return False
    indented = re.search(r"^([ \t]+)\S", before, re.MULTILINE)
    text = json.dumps(document, indent=indented[1] if indented else 2, ensure_ascii=False) + "\n"
    target.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(name, target.stat().st_mode & 0o777 if target.exists() else 0o644)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return True
