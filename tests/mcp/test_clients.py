"""Clients: `woodrat init` adds one entry to a program's configuration, and nothing else changes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from tests.commands import Cli, cli, db

from woodrat.mcp import clients
from woodrat.mcp.clients import CLIENTS

__all__ = ["cli", "db"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project to work in, with a home of its own."""
    found = tmp_path / "project"
    found.mkdir()
    monkeypatch.chdir(found)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return found


@pytest.mark.parametrize("name", CLIENTS)
def test_an_entry_starts_this_python_on_this_ledger(cli: Cli, folder: Path, db: Path, name: str) -> None:
    """The entry stands in the client's own file, names whole paths, tenant and agent, and is written once."""
    ran = cli("init", "--client", name, "--tenant", "lending")
    client, path = CLIENTS[name], Path(ran.json["path"])
    assert ran.json["written"] is True
    entry = json.loads(path.read_text("utf-8"))[client.under]["woodrat"]
    assert entry["command"] == sys.executable
    assert entry["args"] == ["-m", "woodrat", "mcp", "--db", str(db), "--tenant", "lending", "--as", name]
    assert entry.get("type") == ("stdio" if client.typed else None)
    assert cli("init", "--client", name, "--tenant", "lending").json["written"] is False


@pytest.mark.parametrize("name", [name for name, client in CLIENTS.items() if client.variable])
def test_an_entry_reaches_a_server(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """A ledger behind an address is reached there, with the key of the environment, which is not written down."""
    client = CLIENTS[name]
    assert cli("init", "--client", name).code == 0
    monkeypatch.setenv("WOODRAT_TOKEN", "wrat_secret")
    ran = cli("init", "--client", name, "--db", "https://ledger.example.org/")
    entry = json.loads(Path(ran.json["path"]).read_text("utf-8"))[client.under]["woodrat"]
    headers = {"Authorization": f"Bearer {client.variable}"}
    assert entry == {
        **({"type": "http"} if client.typed else {}),
        "url": "https://ledger.example.org/mcp",
        "headers": headers,
    }
    monkeypatch.delenv("WOODRAT_TOKEN")
    assert cli("init", "--client", name, "--db", "http://127.0.0.1:8787").json["entry"][client.under]["woodrat"] == {
        **entry,
        "url": "http://127.0.0.1:8787/mcp",
    }
    assert cli("init", "--client", name, "--db", "http://127.0.0.1:8787", "--as", "me").code == 2
    assert cli("init", "--client", name).code == 0
    entry = json.loads(Path(ran.json["path"]).read_text("utf-8"))[client.under]["woodrat"]
    assert {"url", "headers"}.isdisjoint(entry)


def test_a_file_without_addresses_takes_none(cli: Cli, folder: Path) -> None:
    """A client whose file starts servers only is told so."""
    ran = cli("init", "--client", "claude-desktop", "--db", "http://127.0.0.1:8787")
    assert (ran.code, "takes no address" in ran.err) == (2, True)


@pytest.mark.parametrize("name", CLIENTS)
def test_other_entries_stay(cli: Cli, folder: Path, name: str) -> None:
    """Whatever else the file holds stays as it was, in its order, and so does what a user added to our entry."""
    path = Path(cli("init", "--client", name, "--print").json["path"])
    path.parent.mkdir(parents=True, exist_ok=True)
    under = CLIENTS[name].under
    before = {
        "theme": "dark",
        under: {"github": {"command": "gh", "args": ["é"]}, "woodrat": {"command": "old", "env": {"A": "1"}}},
        "inputs": [1],
    }
    path.write_text(json.dumps(before), "utf-8")
    assert cli("init", "--client", name, "--as", "me").code == 0
    after = json.loads(path.read_text("utf-8"))
    assert list(after) == list(before)
    assert after[under]["github"] == before[under]["github"]  # type: ignore[index]
    assert after[under]["woodrat"]["env"] == {"A": "1"}
    assert after[under]["woodrat"]["args"][-1] == "me"


@pytest.mark.parametrize(
    "data",
    [
        *(b"{ // comment\n}", b"[]", b'{"mcpServers": []}', b"\x00", b"\xff\xfe{}", b"\xef\xbb\xbf{}"),
        b'{"mcpServers": {"a": {}}, "mcpServers": {"b": {}}}',
    ],
)
def test_a_file_that_is_not_understood_is_left_alone(cli: Cli, folder: Path, data: bytes) -> None:
    """A file with comments, two equal keys or of another shape is refused, and no byte of it changes."""
    path = folder / ".mcp.json"
    path.write_bytes(data)
    ran = cli("init", "--client", "claude-code")
    assert ran.code == 2
    assert "Nothing was written." in ran.err
    assert path.read_bytes() == data
    assert [item.name for item in folder.iterdir()] == [".mcp.json"]


@pytest.mark.parametrize("indent", ["\t", "    ", None])
def test_a_file_keeps_its_indent(cli: Cli, folder: Path, indent: str | None) -> None:
    """A file is indented as it was, and one that says the same already is not touched however it is written."""
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": {"a": {"command": "b"}}}, indent=indent), "utf-8")
    assert cli("init", "--client", "claude-code").json["written"] is True
    text = path.read_text("utf-8")
    assert f'\n{indent or "  "}"mcpServers"' in text
    path.write_text(text.replace("\n", " "), "utf-8")
    assert cli("init", "--client", "claude-code").json["written"] is False


def test_named_keys_are_known_to_the_client(cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of keys that was named is in the entry by its whole path; one without keys is refused."""
    assert cli("init", "--client", "cursor", "--signing-keys", "own keys").code == 2
    assert cli("init", "--signing-keys", "own keys").code == 0
    for words in (("--signing-keys", "own keys"), ()):
        args = cli("init", "--client", "cursor", *words).json["entry"]["mcpServers"]["woodrat"]["args"]
        assert args[-2:] == ["--signing-keys", str(folder / "own keys")]
        monkeypatch.setenv("WOODRAT_SIGNING_KEYS", "own keys")


def test_an_address_is_no_more_than_a_place(cli: Cli, folder: Path) -> None:
    """An address with a secret in it is not written into a file; that of `/mcp` itself is taken as well."""
    for address in ("https://me:secret@ledger.example.org", "https://ledger.example.org?key=wrat_x"):
        ran = cli("init", "--client", "cursor", "--db", address)
        assert (ran.code, "secret" in ran.err, "wrat_x" in ran.err) == (2, False, False)
    ran = cli("init", "--client", "cursor", "--db", "https://ledger.example.org/mcp/", "--print")
    assert ran.json["entry"]["mcpServers"]["woodrat"]["url"] == "https://ledger.example.org/mcp"
    assert list(folder.iterdir()) == []


def test_print_only_shows(cli: Cli, folder: Path) -> None:
    """With --print the entry and its file are shown, and no file is made."""
    ran = cli("init", "--client", "vscode", "--print", "-o", "table")
    assert '"servers"' in ran.out
    assert str(folder / ".vscode/mcp.json") in ran.out
    assert list(folder.iterdir()) == []


def test_without_a_client_keys_are_made(cli: Cli, folder: Path) -> None:
    """`init` alone makes keys and touches no configuration; what belongs to the other is refused."""
    assert cli("init").json["made"]
    assert list(folder.iterdir()) == []
    assert cli("init", "--print").code == 2
    assert cli("init", "--client", "cursor", "--name", "example.com").code == 2
    assert cli("init", "--client", "cursor", "--db", ":memory:").code == 2


def test_a_linked_file_stays_a_link(cli: Cli, folder: Path) -> None:
    """A file that is a link is written where it leads."""
    (folder / "real.json").write_text("{}", "utf-8")
    (folder / ".mcp.json").symlink_to("real.json")
    assert cli("init", "--client", "claude-code").code == 0
    assert (folder / ".mcp.json").is_symlink()
    assert "woodrat" in (folder / "real.json").read_text("utf-8")


@pytest.mark.parametrize(
    ("platform", "environment", "expected"),
    [
        ("darwin", {"HOME": "/h"}, "/h/Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", {"HOME": "/h"}, "/h/.config/Claude/claude_desktop_config.json"),
        ("linux", {"HOME": "/h", "XDG_CONFIG_HOME": "/c"}, "/c/Claude/claude_desktop_config.json"),
        ("win32", {"HOME": "/h", "APPDATA": "/a"}, "/a/Claude/claude_desktop_config.json"),
    ],
)
def test_the_personal_file_is_where_the_platform_has_it(
    platform: str, environment: dict[str, str], expected: str
) -> None:
    """Claude Desktop keeps its file in the user's place for settings."""
    assert clients.place(CLIENTS["claude-desktop"], Path("/p"), environment, platform) == Path(expected)
