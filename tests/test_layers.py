"""The plan of the house: which room may import which, where the world may be touched, and that nothing goes in circles.

A *room* is a folder or a module directly under src/woodrat. Imports count wherever they stand, also inside a
function or under TYPE_CHECKING: a layer that is only crossed sometimes is crossed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from itertools import product
from pathlib import Path, PurePosixPath

SOURCE = Path(__file__).resolve().parent.parent / "src"

FRONT_DOOR = "__init__"
"""The room that `import woodrat` and `from woodrat import open` speak of."""
ANYTHING = frozenset({FRONT_DOOR, "__main__", "testing"})
"""Rooms free to import any other."""

PURE = ("records", "errors", "canon", "record_json", "compact_json", "log", "state", "merge")
"""Values in, values out; from the bottom to the top."""
SHELL = ("clock", "engines", "context", "ledger")
"""What keeps a log, reads it and writes it."""
FEATURES = (
    *("runs", "training", "compare", "recall", "explain", "whatif", "bisect", "replay"),
    *("sql", "proofs", "erasure", "exchange", "verify"),
)
"""A folder for each feature."""
SURFACES = ("api", "server", "otlp", "neotoma", "mcp", "inspector", "cli")
"""What users call: the library, then what translates to it."""
ORDER = PURE + SHELL + FEATURES + SURFACES
"""From the bottom to the top: a room imports only from those before it."""
APART = {
    "verifier": frozenset[str](),
    "adapters": frozenset({FRONT_DOOR, "errors"}),
    "importers": frozenset({"records", "errors", "canon", "state", "runs"}),
}
"""What stands alone, and what each may import.

A verifier is handed to people who have nothing of ours; an adapter is written as a user would write it; an importer
turns documents into records of runs, with pure files alone.
"""

DOORS = frozenset({"verbs", "reader", "index", "recorder", "relay", "workers"})
"""Files, or folders of files, in which a feature may use an engine, a clock, a thread or the network."""

EXCEPT = frozenset({"woodrat/recall/embedders.py", "woodrat/recall/memory.py", "woodrat/importers/files.py"})
"""Files that touch the world though no door says so: one loads the files of a model, one awaits the caller's agent, one
opens files of recordings.
"""

IMPURE_MODULES = frozenset(
    "random secrets uuid os socket sqlite3 apsw pathlib time threading asyncio".split()  # noqa: SIM905
)
"""Modules that reach for disk, clock, network, threads or chance."""
CLOCK_MODULES = frozenset({"secrets", "time"})
CLOCK_CALLS = frozenset({"now", "utcnow", "today"})


Judged = ast.Import | ast.ImportFrom | ast.Call | ast.Attribute


@cache
def nodes(source: str) -> tuple[Judged, ...]:
    """Return what the rules look at in a text; it is walked once for all of them."""
    return tuple(node for node in ast.walk(ast.parse(source)) if isinstance(node, Judged))


def room_of(path: PurePosixPath) -> str:
    """Return the room a file belongs to; `path` starts with `woodrat/`."""
    return path.parts[1].removesuffix(".py")


def is_pure(path: PurePosixPath) -> bool:
    """Return whether a file may touch nothing but values: it is in a pure room, or in no door of its feature."""
    room = room_of(path)
    if path.as_posix() in EXCEPT:
        return False
    if room in FEATURES:
        return DOORS.isdisjoint(part.removesuffix(".py") for part in path.parts[2:])
    return room in PURE or room == "importers"


def imported(path: PurePosixPath, found: Iterable[Judged]) -> Iterator[tuple[int, str]]:
    """Yield the line and the dotted name of all that a file imports, relative names made absolute."""
    package = path.parts[:-1]
    for node in found:
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


KNOWN = frozenset(ORDER) | frozenset(APART) | ANYTHING


def imported_room(name: str) -> str | None:
    """Return the room a dotted name lies in: the front door for its names, None for other packages."""
    first, *rest = name.split(".")
    if first != "woodrat":
        return None
    # `woodrat.open` is a name of the front door, `woodrat.state` and `woodrat.state.schema` are a room.
    return rest[0] if rest and (len(rest) > 1 or rest[0] in KNOWN) else FRONT_DOOR


def below(room: str) -> frozenset[str]:
    """Return the rooms that a room may import besides itself."""
    if room in APART:
        return APART[room]
    lower = frozenset(ORDER[: ORDER.index(room)])
    return lower | {"importers"} if room in SURFACES else lower


def clock_readings(found: Iterable[Judged]) -> Iterator[tuple[int, str]]:
    """Yield where `now`, `utcnow` or `today` of the standard datetime is used, called or handed on."""
    modules: set[str] = set()
    classes: set[str] = set()
    for node in found:
        if isinstance(node, ast.Import):
            modules |= {alias.asname or alias.name for alias in node.names if alias.name == "datetime"}
        elif isinstance(node, ast.ImportFrom) and node.module == "datetime" and not node.level:
            classes |= {alias.asname or alias.name for alias in node.names if alias.name in ("datetime", "date")}
    for node in found:
        if isinstance(node, ast.Attribute) and node.attr in CLOCK_CALLS:
            match node.value:
                case ast.Name(id=name) if name in classes:
                    yield node.lineno, f"{name}.{node.attr}"
                case ast.Attribute(value=ast.Name(id=name), attr="datetime" | "date") if name in modules:
                    yield node.lineno, f"{name}.{node.value.attr}.{node.attr}"


def faults(file: str, source: str) -> list[str]:
    """Return what a file does against the plan, one sentence each, in the order of its lines."""
    path = PurePosixPath(file)
    room = room_of(path)
    if room not in KNOWN:
        return [f"{file}: {room} has no place in the house; give it one in ORDER."]
    judged = nodes(source)
    found: list[tuple[int, str]] = []
    for line, name in imported(path, judged):
        target = imported_room(name)
        if name == "woodrat.__version__":  # the package states it before it imports anything
            continue
        if target is None:
            outside = name.split(".")[0]
            if is_pure(path) and outside in IMPURE_MODULES:
                found.append((line, f"{path.name} is pure and imports {outside}."))
            elif room != "clock" and outside in CLOCK_MODULES:
                found.append((line, f"{room} imports {outside}; only clock.py may."))
        elif room in ANYTHING or target == room:
            continue
        elif target not in below(room):
            shown = "the front door" if target == FRONT_DOOR else target
            found.append((line, f"{room} may not import {shown} ({name})."))
        elif room == "importers" and not DOORS.isdisjoint(name.split(".")[2:]):
            found.append((line, f"{path.name} is an importer and imports a file that is not pure ({name})."))
        elif room in FEATURES and is_pure(path) and target in SHELL:
            found.append((line, f"{path.name} is pure and imports {target} ({name})."))
    if room != "clock":
        found.extend((line, f"{room} uses {name}; only clock.py may.") for line, name in clock_readings(judged))
    return [f"{file}:{line}: {text}" for line, text in sorted(found)]


def sources() -> dict[str, str]:
    """Return every file of src/woodrat with its text."""
    files = sorted((SOURCE / "woodrat").rglob("*.py"))
    assert files, "the source tree was not found"
    return {file.relative_to(SOURCE).as_posix(): file.read_text(encoding="utf-8") for file in files}


def module_name(file: str) -> str:
    """Return the dotted name of a file's module."""
    return file.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def import_graph(files: Mapping[str, str]) -> dict[str, set[str]]:
    """Return by module the modules it imports, wherever in its file."""
    modules = {module_name(file) for file in files}
    graph: dict[str, set[str]] = {}
    for file, source in files.items():
        named = {name for _, name in imported(PurePosixPath(file), nodes(source))}
        targets = {name if name in modules else name.rpartition(".")[0] for name in named}
        graph[module_name(file)] = (targets & modules) - {module_name(file)}
    return graph


def circles(graph: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the groups of modules that import each other in a circle."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def walk(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for target in sorted(graph.get(module, ())):
            if target not in number:
                walk(target)
                low[module] = min(low[module], low[target])
            elif target in stack:
                low[module] = min(low[module], number[target])
        if low[module] == number[module]:
            group = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(group) > 1:
                found.append(sorted(group))

    for module in sorted(graph):
        if module not in number:
            walk(module)
    return found


def test_every_import_points_to_a_lower_room() -> None:
    """No file imports from above its room, touches the world where it is pure, or reads the clock."""
    found = [fault for file, source in sources().items() for fault in faults(file, source)]
    assert not found, "\n".join(found)


def test_the_map_is_drawn_in_the_order_of_imports() -> None:
    """ARCHITECTURE shows the rooms from the top to the bottom, and from left to right on one line."""
    text = (SOURCE.parent / "ARCHITECTURE.md").read_text("utf-8").partition("## The map\n")[2].partition("\n## ")[0]
    drawn = "\n".join(line for line in text.splitlines() if line.startswith("    "))
    rooms = [name.removesuffix(".py") for name in re.findall(r"\b([a-z]+(?=/\s)|[a-z_]+\.py\b)", drawn)]
    assert [room for room in rooms if room in ORDER] == [*reversed(ORDER)]


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Lazy imports and those for type checkers count: what needs them to work has no order."""
    files = {file: text for file, text in sources().items() if room_of(PurePosixPath(file)) not in ANYTHING}
    assert circles(import_graph(files)) == []


def test_a_circle_is_found_wherever_its_imports_stand() -> None:
    """The planted fault: two modules import each other, one for a type checker, the other inside a function."""
    files = {
        "woodrat/runs/a.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from woodrat.runs.b import B",
        "woodrat/runs/b.py": "def f():\n    from woodrat.runs import a",
        "woodrat/runs/c.py": "from woodrat.runs import a",
    }
    assert circles(import_graph(files)) == [["woodrat.runs.a", "woodrat.runs.b"]]
    del files["woodrat/runs/b.py"]
    assert circles(import_graph(files)) == []


def misjudged(files: Iterable[str], texts: Iterable[str], count: int) -> list[tuple[str, str]]:
    """Return the files and texts that come to another number of faults than `count`."""
    return [(file, text) for file, text in product(files, texts) if len(faults(f"woodrat/{file}", text)) != count]


def test_each_pair_of_rooms_is_judged_by_the_order() -> None:
    """An import between two rooms is a fault exactly when the order does not allow it, however it is written."""
    wrong = []
    for importer, target in product([*ORDER, *APART], repeat=2):
        texts = (
            f"import woodrat.{target}.part",
            f"from woodrat.{target} import thing",
            f"from woodrat import {target}",
            f"from ..{target} import thing",
            f"from .. import {target}",
            f"from importlib import import_module\nimport_module('woodrat.{target}.part')",
        )
        allowed = importer == target or target in below(importer)
        wrong += misjudged([f"{importer}/reader.py"], texts, 0 if allowed else 1)
    assert wrong == []


def test_the_front_door_is_closed_from_inside() -> None:
    """No room below the adapters imports the front door."""
    texts = {
        "import woodrat": "woodrat",
        "from woodrat import open": "woodrat.open",
        "from .. import open": "woodrat.open",
    }
    for room, (text, name) in product([*ORDER, "verifier"], texts.items()):
        told = [fault.split(": ", 1)[1] for fault in faults(f"woodrat/{room}/file.py", text)]
        assert told == [f"{room} may not import the front door ({name})."]


def test_the_front_door_is_open_from_outside() -> None:
    """Adapters, the testing package and the main module come in by the front door."""
    files = ("adapters/one.py", "testing/contract.py", "__main__.py")
    assert misjudged(files, ["import woodrat\nfrom woodrat import open"], 0) == []


def test_a_pure_file_cannot_reach_the_world() -> None:
    """A pure file that imports disk, clock, network, threads or chance is caught, also deep inside a function."""
    files = (*(f"{room}/file.py" for room in PURE), "runs/rules.py", "compare/divergence.py")
    ways = ("import {}", "from {} import thing", "def f():\n    import {} as m")
    assert misjudged(files, [way.format(module) for way in ways for module in sorted(IMPURE_MODULES)], 1) == []


def test_a_feature_uses_an_engine_only_in_its_doors() -> None:
    """Which file may touch the world is told by its name, or by the name of its folder."""
    texts = [f"from woodrat.{shell} import thing" for shell in SHELL]
    doors = [f"{room}/{door}{file}.py" for room in FEATURES for door in sorted(DOORS) for file in ("", "/file")]
    assert misjudged(doors, texts, 0) == []
    assert misjudged([f"{room}/result.py" for room in FEATURES], texts, 1) == []


def test_an_importer_imports_pure_files_alone() -> None:
    """An importer may use records of runs, and none of the files that use an engine, a clock or the disk."""
    assert (
        faults("woodrat/importers/one.py", "from woodrat.runs import trajectory\nfrom woodrat.canon import form") == []
    )
    texts = ["from woodrat.runs.recorder.run import Run", "from woodrat.runs.verbs import documents", "import os"]
    assert misjudged(["importers/one.py"], [*texts, "import woodrat", "import woodrat.ledger.read"], 1) == []


def test_a_pure_room_may_read_its_own_package_data() -> None:
    """Loading the built-in schemas through importlib.resources is allowed."""
    assert faults("woodrat/state/schema.py", "from importlib.resources import files\nimport json, datetime") == []


def test_only_the_clock_reads_the_clock() -> None:
    """Asking for the time or for a secret is a fault everywhere but in clock.py."""
    texts = (
        "import time",
        "from time import monotonic",
        "import secrets",
        "from datetime import datetime\ndatetime.now()",
        "from datetime import datetime as dt\ndt.utcnow()",
        "from datetime import date\ndate.today()",
        "import datetime\ndatetime.datetime.now(datetime.UTC)",
        "import datetime as d\nfield(default_factory=d.date.today)",
    )
    assert misjudged(("canon/moment.py", "engines/private.py", "testing/clocks.py", "cli/demo.py"), texts, 1) == []
    assert misjudged(["clock.py"], texts, 0) == []


def test_a_clock_passed_in_may_be_asked() -> None:
    """Calling `now` on something that is not the standard datetime is no fault."""
    assert faults("woodrat/ledger/write.py", "from woodrat.clock import Clock\ndef f(c: Clock): c.now()") == []


def test_a_new_folder_needs_a_place() -> None:
    """A folder or module that the plan does not know is a fault, so no room grows unnoticed."""
    assert faults("woodrat/helpers/text.py", "") != []
    assert faults("woodrat/utils.py", "") != []
