"""Determinism: the golden logs come out the same under any hash seed, time zone, locale and version of Python.

Other versions are looked for on PATH and under pyenv. Each gets an environment of its own in .venv-pythons, with the
packages of requirements/dev.lock that Woodrat needs; it is made once. What could not be had is said in a warning.
"""

from __future__ import annotations

import hashlib
import json
import mimetypes
import os
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import dev
import pytest
from tests.golden import make_logs

from woodrat.engines.sqlite.in_memory import InMemoryEngine
from woodrat.testing.clock import FixedClock

VERSIONS: Final = ("3.11", "3.12", "3.13")
"""Versions of CPython that must agree."""
CURRENT: Final = "{}.{}".format(*sys.version_info)
PACKAGES: Final = ("apsw", "orjson", "jsonschema-rs", "snowballstemmer", "rfc8785")
"""What Woodrat needs at run time."""
ENVIRONMENTS: Final = dev.ROOT / ".venv-pythons"

SEEDS: Final = ("0", "1", "random")
ZONES: Final = {"UTC": 0, "America/St_Johns": 12_600, "Asia/Kathmandu": -20_700}
"""Time zones, and the seconds west of Greenwich that they stand for in winter."""
LOCALES: Final = ("C", "C.UTF-8", "POSIX")

DRIVER: Final = """
import json, locale, runpy, sys, time
chosen = locale.setlocale(locale.LC_ALL, "")
facts = {"python": "%d.%d" % sys.version_info[:2], "hash": hash("woodrat"), "zone": time.timezone, "locale": chosen}
print(json.dumps(facts), file=sys.stderr)
sys.argv[:] = [sys.argv[1], "--print"]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Takes the locale of the environment, as a program with a user interface would, then runs the golden script."""


def surroundings() -> Iterator[dict[str, str]]:
    """Yield few environments that between them have every hash seed, time zone and locale."""
    listed: list[str] = []
    if shutil.which("locale"):
        listed = subprocess.run(["locale", "-a"], capture_output=True, text=True, timeout=60).stdout.split()
    locales = [*LOCALES, *(name for name in listed if name.lower().replace("-", "") not in ("c", "c.utf8", "posix"))]
    zones = list(ZONES)
    for number, name in enumerate(locales):
        yield {
            "LC_ALL": name,
            "PYTHONHASHSEED": SEEDS[number % len(SEEDS)],
            "TZ": zones[number % len(zones)],
            # Otherwise Python replaces the C locale by one that knows UTF-8, and nothing would be tried.
            "PYTHONCOERCECLOCALE": "0",
            "PYTHONUTF8": "0",
        }


def run(python: str | Path, around: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Run the golden script in its own process; return what that process was like, and the files it made."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHON", "TZ"))}
    done = subprocess.run(
        [str(python), "-c", DRIVER, str(make_logs.FOLDER.parent / "make_logs.py")],
        env={**kept, **around, "PYTHONPATH": str(dev.ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
        cwd=dev.ROOT,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")
    facts = json.loads(done.stderr.decode().splitlines()[0])
    return facts, {name: text.encode() for name, text in json.loads(done.stdout).items()}


def check(python: str | Path, version: str) -> list[str]:
    """Assert that one interpreter makes the stored files in all surroundings; return what each of them was."""
    stored = {path.name: path.read_bytes() for path in make_logs.FOLDER.iterdir()}
    ran: list[str] = []
    hashes: set[int] = set()
    for around in surroundings():
        facts, files = run(python, around)
        assert facts["python"] == version
        assert files == stored, f"other bytes under Python {version} with {around}"
        if facts["zone"] != ZONES[around["TZ"]]:
            warnings.warn(f"this machine does not know the time zone {around['TZ']}", stacklevel=2)
        hashes.add(facts["hash"])
        ran.append(f"Python {version}, seed {around['PYTHONHASHSEED']}, {around['TZ']}, {facts['locale']}")
    assert len(hashes) >= len(SEEDS), "the hash seeds took no effect"
    return ran


def found(version: str) -> Path | None:
    """Return an interpreter of this version of CPython that runs, if there is one."""
    name = f"python{version}"
    on_path = (Path(folder) / name for folder in os.environ.get("PATH", "").split(os.pathsep) if folder)
    under_pyenv = sorted(Path("~/.pyenv/versions").expanduser().glob(f"*/bin/{name}"), reverse=True)
    asked = "import sys; print(sys.implementation.name, *sys.version_info[:2])"
    for candidate in (*under_pyenv, *on_path):
        try:
            said = subprocess.run([str(candidate), "-c", asked], capture_output=True, text=True, timeout=60)
        except OSError:
            continue
        if said.returncode == 0 and said.stdout.split() == ["cpython", *version.split(".")]:
            return candidate
    return None


def environment(version: str) -> Path | str:
    """Return the interpreter of an environment that has the locked packages, or why there is none."""
    base = found(version)
    if base is None:
        return f"there is no CPython {version} on PATH or under pyenv"
    folder = ENVIRONMENTS / version
    python = folder / "bin" / "python"
    wanted = "".join(map(dev.locked_lines, PACKAGES))
    mark = folder / "woodrat-stamp"
    stamp = hashlib.sha256(f"{base}\n{folder}\n{wanted}".encode()).hexdigest()
    with dev.one_at_a_time():
        if python.exists() and mark.exists() and mark.read_text("ascii") == stamp:
            return python
        requirements = ENVIRONMENTS / f"{version}.txt"
        ENVIRONMENTS.mkdir(exist_ok=True)
        requirements.write_text(wanted, "utf-8")
        install = ("pip", "install", "--quiet", *dev.trust(), "--no-deps", "--require-hashes", "-r", str(requirements))
        for command in (
            ("venv", "--quiet", "--clear", "--python", str(base), str(folder)),
            (*install, "--python", str(python)),
        ):
            try:
                done = subprocess.run(
                    [str(dev.UV), *command], cwd=dev.ROOT, capture_output=True, text=True, timeout=240
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                return f"uv did not run: {error}"
            if done.returncode:
                return f"uv could not make an environment: {done.stderr.strip()}"
        mark.write_text(stamp, "ascii")
    return python


def test_nothing_around_this_python_shows_in_the_bytes(record_property: Callable[[str, object], None]) -> None:
    """Under any hash seed, time zone and locale the interpreter that runs the tests writes the stored bytes."""
    ran = check(sys.executable, CURRENT)
    assert len(ran) >= 3
    record_property("ran", ran)
    print(*ran, sep="\n")


@pytest.mark.timeout(900)
def test_no_version_of_python_shows_in_the_bytes(record_property: Callable[[str, object], None]) -> None:
    """Every version of CPython that can be had here writes the stored bytes, in all surroundings."""
    ran: list[str] = []
    for version in VERSIONS:
        if version == CURRENT:
            continue
        python = environment(version)
        if isinstance(python, str):
            warnings.warn(f"not tried under Python {version}: {python}", stacklevel=1)
            continue
        ran += check(python, version)
    record_property("ran", ran)
    print(*ran, sep="\n")


def test_the_file_types_of_the_machine_do_not_show_in_the_bytes(tmp_path: Path) -> None:
    """What a machine's own list of file types says about a name does not enter the log."""

    def entries() -> list[Any]:
        engine = InMemoryEngine()
        ledger = make_logs.opened(engine, "ada", FixedClock())
        ledger.sources.add(b"content", name="offer.docx")
        with engine.view(ledger.tenant) as view:
            return [entry.to_json() for entry in view.entries()]

    (tmp_path / "mime.types").write_text("application/x-of-this-machine docx\n", "ascii")
    try:
        mimetypes.init([])
        one = entries()
        mimetypes.init([str(tmp_path / "mime.types")])
        two = entries()
    finally:
        mimetypes.init()
    assert one == two
