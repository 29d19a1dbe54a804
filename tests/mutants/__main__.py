"""`python3 dev.py mutants`: change the code a little, many times, and see whether the tests notice.

The tree is copied into a temporary folder, and only the copies are changed. First the tests run once on unchanged code,
to see which of them call which function, and what they take. Then each mutant meets the tests that call its function,
the cheapest files first and for about so many seconds in all, until one fails. All results are kept in the folder, by
the digest of the tree, so that a command that was interrupted goes on where it was.
"""

from __future__ import annotations

import argparse
import ast
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutants import calls
from tests.mutants.draw import ROOMS, Mutant, draw

ROOT: Final = Path(__file__).resolve().parents[2]
COPIED: Final = ("src", "tests", "docs", "pyproject.toml", "dev.py")
TESTS: Final = (
    *("canon", "log", "state", "merge", "ledger", "runs", "verify", "erasure", "api", "laws"),
    *("server/test_access.py", "server/test_unread_answers.py", "server/test_tenancy.py", "server/test_run_doors.py"),
    *("server/test_runs.py", "mcp/test_access.py", "neotoma/test_endpoint.py", "stories/test_every_verb.py"),
    *("faults/test_tampering.py", "faults/test_derived_damage.py"),
)
"""Where tests are that may notice a mutant; the others reach these rooms too, and cost much more."""
ENOUGH: Final = 0.9
"""Which share of the mutants has to be caught."""
START_SECONDS: Final = 90
"""What pytest may take besides the tests, on a busy machine; a mutant that takes longer is caught, as it hangs."""

Function = tuple[str, int]
"""A file below src/woodrat, and the line on which a function begins."""


class Test(NamedTuple):
    """One test, and the functions that it and the shared fixtures of its file call."""

    name: str
    seconds: float
    called: frozenset[Function]

    @property
    def file(self) -> str:
        return self.name.partition("::")[0]


class Copy:
    """A copy of the tree, which may be changed."""

    def __init__(self, root: Path, made_from: Path) -> None:
        self.root = root
        self.source = root / "src" / "woodrat"
        if not root.exists():
            half = root.with_suffix(".half")
            shutil.rmtree(half, ignore_errors=True)
            for part in COPIED:
                (shutil.copytree if (made_from / part).is_dir() else _copy_file)(made_from / part, half / part)
            half.rename(root)
        for file in (ROOT / "src" / "woodrat").rglob("*.py"):  # a command that was killed may have left a mutant here
            there = self.source / file.relative_to(ROOT / "src" / "woodrat")
            if there.read_bytes() != file.read_bytes():
                shutil.copy2(file, there)

    def pytest(self, *arguments: str, environment: Mapping[str, str], seconds: float | None = None) -> int | None:
        """Run pytest here with few examples of each law; return its exit code, None if it takes longer."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        paths = os.pathsep.join(map(str, (self.root, self.root / "src")))
        with (self.root / "output.txt").open("wb") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "pytest", "-q", "-p", "tests.mutants.calls", *arguments],
                cwd=self.root,
                env={**kept, "PYTHONPATH": paths, "WOODRAT_LAWS": "fast", **environment},
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def judge(self, mutant: Mutant, tests: Sequence[Test]) -> str:
        """Return what becomes of a mutant that meets these tests: caught, hangs, survives, or unreached by any."""
        if not tests:
            return "unreached"
        file, chosen = self.source / mutant.file, self.root / "chosen.txt"
        source, times = file.read_bytes(), file.stat()
        chosen.write_text("\n".join(test.name for test in tests), "utf-8")
        limit = START_SECONDS + 5 * sum(test.seconds for test in tests)
        try:
            file.write_bytes(mutant.applied(source))
            # No compiled module is written, and the one of the unchanged file is found again by the file's time.
            environment = {calls.READ: str(chosen), "PYTHONDONTWRITEBYTECODE": "1"}
            code = self.pytest(
                "-x", *dict.fromkeys(test.file for test in tests), environment=environment, seconds=limit
            )
        finally:
            file.write_bytes(source)
            os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
        return {0: "survives", 5: "unreached", None: "hangs"}.get(code, "caught")


def _copy_file(file: Path, there: Path) -> None:
    there.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(file, there)


def digest_of_tree() -> str:
    """Return a digest of all that a result depends on."""
    digest = hashlib.sha256(sys.version.encode())
    for part in ("src/woodrat", "tests"):
        for file in sorted((ROOT / part).rglob("*.py")):
            digest.update(str(file.relative_to(ROOT)).encode() + file.read_bytes())
    return digest.hexdigest()[:16]


def tests_of(copy: Copy, notes: Path, jobs: int) -> list[Test]:
    """Return the tests that pass on unchanged code; they run unless that was done before."""
    if not (notes / "done").exists():
        shutil.rmtree(notes, ignore_errors=True)
        notes.mkdir()
        print("Running the tests on unchanged code, to see which functions each of them calls", flush=True)
        sources = "\n".join(f"{copy.source / room}" for room in ROOMS)
        environment = {calls.WRITE: str(notes), calls.SOURCE: sources}
        code = copy.pytest("-n", str(jobs), *(f"tests/{place}" for place in TESTS), environment=environment)
        if code not in (0, 1):
            sys.exit(f"pytest ended with exit code {code}, see {copy.root / 'output.txt'}. No mutant was judged.")
        (notes / "done").touch()
    lines = [json.loads(line) for file in notes.glob("*.jsonl") for line in file.read_text("utf-8").splitlines()]
    shared: dict[str, set[Function]] = defaultdict(set)
    tests = []
    for line in lines:
        shared[line["test"].partition("::")[0]] |= _functions(copy, line["shared"])
    for line in lines:
        test = Test(line["test"], line["seconds"], frozenset(_functions(copy, line["called"])))
        if line["failed"]:
            print(f"Left out, as it fails on unchanged code: {test.name}", flush=True)
        else:
            tests.append(test._replace(called=test.called | shared[test.file]))
    return sorted(tests, key=lambda test: test.name)


def _functions(copy: Copy, called: Sequence[tuple[str, int]]) -> set[Function]:
    return {(str(Path(file).relative_to(copy.source)), line) for file, line in called}


def function_around(source: str, mutant: Mutant) -> Function | None:
    """Return the innermost function that a mutant is in; None where it is in the module or the head of a function."""
    beginnings = [
        min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        for node in ast.walk(ast.parse(source))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.body[0].lineno <= mutant.line <= (node.end_lineno or 0)
    ]
    return (mutant.file, max(beginnings)) if beginnings else None


def meeting(function: Function | None, file: str, tests: Sequence[Test], seconds: float) -> list[Test]:
    """Return the tests that call a function, or any of its file, file by file, for about so many seconds."""
    files: dict[str, list[Test]] = defaultdict(list)
    for test in tests:
        if function in test.called or (function is None and any(file == called for called, _ in test.called)):
            files[test.file].append(test)
    chosen: list[Test] = []
    for found in sorted(files.values(), key=lambda found: sum(test.seconds for test in found)):
        if sum(test.seconds for test in chosen) < seconds:
            chosen += found
    return chosen


def main() -> int:
    """Judge mutants, and list those that survive."""
    parser = argparse.ArgumentParser(prog="python3 dev.py mutants", description=main.__doc__)
    parser.add_argument("--seed", type=int, default=1, help="decides which mutants are drawn (default: 1)")
    parser.add_argument("--count", type=int, default=300, help="how many mutants (default: 300)")
    parser.add_argument("--seconds", type=float, default=60, help="how long tests of one mutant run (default: 60)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many at once (default: all cores)")
    options = parser.parse_args()
    work = Path(tempfile.gettempdir()) / f"woodrat-mutants-{digest_of_tree()}"
    work.mkdir(exist_ok=True)
    with (work / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"Another command works in {work}. Wait for its end.")
        print(f"Working in {work}; remove it when the result is known", flush=True)
        return judge_all(work, options)


def judge_all(work: Path, options: argparse.Namespace) -> int:
    """Judge the mutants that are not judged yet; return the exit code."""
    first = Copy(work / "copy-0", ROOT)
    tests = tests_of(first, work / "calls", options.jobs)
    copies = [first, *(Copy(work / f"copy-{number}", first.root) for number in range(1, options.jobs))]
    mutants = draw(first.source, options.seed, options.count)
    results = work / f"results-{options.seconds:g}.jsonl"
    known = dict(json.loads(line) for line in results.read_text("utf-8").splitlines()) if results.exists() else {}
    waiting = iter([mutant for mutant in mutants if mutant.key not in known])
    functions = {m: function_around((first.source / m.file).read_text("utf-8"), m) for m in mutants}

    def judge_some(copy: Copy) -> None:
        for mutant in waiting:
            chosen = meeting(functions[mutant], mutant.file, tests, options.seconds)
            known[mutant.key] = copy.judge(mutant, chosen)
            with results.open("a", encoding="utf-8") as file:
                file.write(json.dumps([mutant.key, known[mutant.key]]) + "\n")
            print(f"{known[mutant.key]:<10}{mutant.name}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        try:
            list(pool.map(judge_some, copies))
        finally:
            list(waiting)  # after Ctrl-C none is begun any more
    left = [mutant for mutant in mutants if known[mutant.key] in ("survives", "unreached")]
    caught = len(mutants) - len(left)
    print(f"\nCaught {caught} of {len(mutants)} mutants ({caught / len(mutants):.0%})", flush=True)
    for mutant in left:
        print(f"{known[mutant.key]:<10}{mutant.name}")
    return 0 if caught >= ENOUGH * len(mutants) else 1


if __name__ == "__main__":
    sys.exit(main())
