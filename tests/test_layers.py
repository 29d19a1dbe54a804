"""The layer rule: who may import whom in src/woodrat, read from the source text without running it.

A *place* is a folder or a module directly under src/woodrat. Imports count wherever they stand, also inside a
function or under TYPE_CHECKING: a layer that is only crossed sometimes is crossed.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src"

FRONT_DOOR = "__init__"
"""The place that `import woodrat` and `from woodrat import open` speak of."""

ANYTHING = frozenset({FRONT_DOOR, "__main__", "testing"})
"""Places free to import any other."""

_SHELL = ("clock", "engines", "recall", "ledger", "replay", "keeping", "exchange", "interpret", "surfaces")
_CORE = ("frozen", "errors", "canon", "state", "log", "runs", "views")

MAY_IMPORT: dict[str, frozenset[str]] = {
    "frozen": frozenset(),
    "errors": frozenset({"frozen"}),
    "canon": frozenset({"frozen", "errors"}),
    "state": frozenset({"frozen", "errors", "canon"}),
    # The log holds bodies it cannot read, so the shape of the ground truth outlives the shape of state.
    "log": frozenset({"frozen", "errors", "canon"}),
    "runs": frozenset({"frozen", "errors", "canon", "state", "log"}),
    "views": frozenset({"frozen", "errors", "canon", "state", "log", "runs"}),
    **{place: frozenset(_CORE + _SHELL[:rank]) for rank, place in enumerate(_SHELL)},
    # A verifier is handed to people who have nothing of ours.
    "verifier": frozenset(),
    # An adapter is written as a user would write it.
    "adapters": frozenset({FRONT_DOOR, "errors"}),
}
"""What each place may import besides itself and other packages, from the bottom to the top."""

HANDING_OVER = {
    "woodrat/api/maintenance.py": frozenset({"keeping", "exchange"}),
    "woodrat/api/remote_maintenance.py": frozenset({"keeping", "exchange"}),
}
"""Files that hand over to places above their own: a user holds one ledger, and caring for it is among its verbs."""

PURE = frozenset({"frozen", "canon", "state", "log", "runs", "views"})

IMPURE_MODULES = frozenset(
    "random secrets uuid os socket sqlite3 apsw pathlib time threading asyncio".split()  # noqa: SIM905
)
"""Modules that reach for disk, clock, network, threads or chance; a pure place does without them."""

CLOCK_MODULES = frozenset({"secrets", "time"})
CLOCK_CALLS = frozenset({"now", "utcnow", "today"})


def place_of(path: PurePosixPath) -> str:
    """Return the place a file belongs to; `path` starts with `woodrat/`."""
    return path.parts[1].removesuffix(".py")


def imported(path: PurePosixPath, tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of all that a file imports, relative names made absolute."""
    package = path.parts[:-1]
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                for alias in node.names:
                    yield node.lineno, alias.name
            case ast.ImportFrom():
                start = package[: len(package) - node.level + 1] if node.level else ()
                base = ".".join((*start, *filter(None, [node.module])))
                for alias in node.names:
                    yield node.lineno, f"{base}.{alias.name}"
            case ast.Call(
                func=ast.Attribute(attr="import_module") | ast.Name(id="import_module" | "__import__"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def imported_place(name: str, known: frozenset[str]) -> str | None:
    """Return the place a dotted name lies in: the front door for its names, None for other packages."""
    first, *rest = name.split(".")
    if first != "woodrat":
        return None
    # `woodrat.open` is a name of the front door, `woodrat.state` and `woodrat.merge.fold` are a place.
    return rest[0] if rest and (len(rest) > 1 or rest[0] in known) else FRONT_DOOR


def clock_readings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield where `now`, `utcnow` or `today` of the standard datetime is used, called or handed on."""
    modules: set[str] = set()
    classes: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == "datetime"}
        elif isinstance(node, ast.ImportFrom) and node.module == "datetime" and not node.level:
            classes |= {alias.asname or alias.name for alias in node.names if alias.name in ("datetime", "date")}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr in CLOCK_CALLS:
            match node.value:
                case ast.Name(id=name) if name in classes:
                    yield node.lineno, f"{name}.{node.attr}"
                case ast.Attribute(value=ast.Name(id=name), attr="datetime" | "date") if name in modules:
                    yield node.lineno, f"{name}.{node.value.attr}.{node.attr}"


def faults(file: str, source: str) -> list[str]:
    """Return what a file does against the layer rule, one sentence each, in the order of its lines."""
    path = PurePosixPath(file)
    place = place_of(path)
    if place not in MAY_IMPORT and place not in ANYTHING:
        return [f"{file}: {place} has no place in the layers; give it one in MAY_IMPORT."]
    known = frozenset(MAY_IMPORT) | ANYTHING
    allowed = MAY_IMPORT.get(place, frozenset()) | HANDING_OVER.get(file, frozenset())
    tree = ast.parse(source, file)
    found: list[tuple[int, str]] = []
    for line, name in imported(path, tree):
        target = imported_place(name, known)
        if target is None:
            outside = name.split(".")[0]
            if place in PURE and outside in IMPURE_MODULES:
                found.append((line, f"{place} is pure and imports {outside}."))
            elif place != "clock" and outside in CLOCK_MODULES:
                found.append((line, f"{place} imports {outside}; only clock.py may."))
        elif place not in ANYTHING and target != place and target not in allowed:
            shown = "the front door" if target == FRONT_DOOR else target
            found.append((line, f"{place} may not import {shown} ({name})."))
    if place != "clock":
        found.extend((line, f"{place} uses {name}; only clock.py may.") for line, name in clock_readings(tree))
    return [f"{file}:{line}: {text}" for line, text in sorted(found)]


def test_every_import_points_to_a_lower_layer() -> None:
    """No file of src/woodrat imports from above its layer, touches the world in a pure one, or reads the clock."""
    files = sorted((SOURCE / "woodrat").rglob("*.py"))
    assert files, "the source tree was not found"
    found = [
        fault
        for file in files
        for fault in faults(file.relative_to(SOURCE).as_posix(), file.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("importer", sorted(MAY_IMPORT))
@pytest.mark.parametrize("target", sorted(MAY_IMPORT))
def test_each_pair_of_places_is_judged_by_the_table(importer: str, target: str) -> None:
    """An import between two places is a fault exactly when the table does not list it, however it is written."""
    allowed = importer == target or target in MAY_IMPORT[importer]
    for text in (
        f"import woodrat.{target}.part",
        f"from woodrat.{target} import thing",
        f"from woodrat import {target}",
        f"from ..{target} import thing",
        f"from .. import {target}",
        f"from importlib import import_module\nimport_module('woodrat.{target}.part')",
    ):
        assert (faults(f"woodrat/{importer}/file.py", text) == []) is allowed, text


@pytest.mark.parametrize("place", sorted(set(MAY_IMPORT) - {"adapters"}))
@pytest.mark.parametrize("text", ["import woodrat", "from woodrat import open", "from .. import open"])
def test_the_front_door_is_closed_from_inside(place: str, text: str) -> None:
    """No layer below the adapters imports the front door."""
    assert [fault.split(": ", 1)[1] for fault in faults(f"woodrat/{place}/file.py", text)] == [
        f"{place} may not import the front door ({'woodrat' if text == 'import woodrat' else 'woodrat.open'})."
    ]


@pytest.mark.parametrize("file", ["adapters/one.py", "testing/contract.py", "__main__.py"])
def test_the_front_door_is_open_from_outside(file: str) -> None:
    """Adapters, the testing package and the main module come in by the front door."""
    assert faults(f"woodrat/{file}", "import woodrat\nfrom woodrat import open") == []


@pytest.mark.parametrize("place", sorted(PURE))
@pytest.mark.parametrize("module", sorted(IMPURE_MODULES))
def test_a_pure_place_cannot_reach_the_world(place: str, module: str) -> None:
    """A pure place that imports disk, clock, network, threads or chance is caught, also deep inside a function."""
    for text in (f"import {module}", f"from {module} import thing", f"def f():\n    import {module} as m"):
        assert len(faults(f"woodrat/{place}/file.py", text)) == 1, text


def test_a_pure_place_may_read_its_own_package_data() -> None:
    """Loading the built-in schemas through importlib.resources is allowed."""
    assert faults("woodrat/state/schema.py", "from importlib.resources import files\nimport json, datetime") == []


@pytest.mark.parametrize(
    "text",
    [
        "import time",
        "from time import monotonic",
        "import secrets",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import datetime as dt\ndt.utcnow()",
        "from datetime import date\ndate.today()",
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "import datetime as d\nfield(default_factory=d.date.today)",
    ],
)
@pytest.mark.parametrize("file", ["canon/moment.py", "engines/memory.py", "testing/clocks.py", "cli/demo.py"])
def test_only_the_clock_reads_the_clock(file: str, text: str) -> None:
    """Asking for the time or for a secret is a fault everywhere but in clock.py."""
    assert len(faults(f"woodrat/{file}", text)) == 1
    assert faults("woodrat/clock.py", text) == []


def test_a_clock_passed_in_may_be_asked() -> None:
    """Calling `now` on something that is not the standard datetime is no fault."""
    assert faults("woodrat/ledger/write.py", "from woodrat.clock import Clock\ndef f(c: Clock): c.now()") == []


def test_a_new_folder_needs_a_place() -> None:
    """A folder or module that the table does not know is a fault, so no layer grows unnoticed."""
    assert faults("woodrat/helpers/text.py", "") != []
    assert faults("woodrat/utils.py", "") != []
