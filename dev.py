#!/usr/bin/env python3
"""Set up, check and try Woodrat from a fresh checkout.

The standard library is enough to run this file. Every command first brings `.venv` up to date with
`requirements/dev.lock`; when nothing changed since the last call, that takes no time worth naming.
The caller's environment is handed to every tool, so proxies, certificates and package indexes are set where
they always are; only where Python keeps compiled modules is settled here.
"""

import hashlib
import os
import shutil
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from typing import IO, NamedTuple

OLDEST_PYTHON = (3, 11)
NEWER_PYTHONS = ("python3.13", "python3.12", "python3.11")

# This stands before all else, and this file keeps to old syntax, so that an old Python reaches the sentence
# instead of a traceback.
if sys.version_info < OLDEST_PYTHON:
    newer = next((name for name in NEWER_PYTHONS if shutil.which(name)), None)
    remedy = f"There is a {newer} on PATH: run `{newer} dev.py`." if newer else "Install one and run dev.py with it."
    sys.exit(f"Woodrat needs Python 3.11 or newer; this is Python {sys.version.split()[0]}. {remedy}")

ROOT = Path(__file__).resolve().parent
VENV = ROOT / ".venv"
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")
PYTHON = BIN / ("python.exe" if os.name == "nt" else "python")
UV = BIN / ("uv.exe" if os.name == "nt" else "uv")
STAMP = VENV / "woodrat-stamp"
BYTECODE = VENV / "bytecode"
"""Where Python keeps the modules it compiled."""
PROJECT = ROOT / "pyproject.toml"
LOCK = ROOT / "requirements" / "dev.lock"
WORKERS = "3"
"""How many processes pytest uses: one more than a small machine has cores, as some tests wait. More: `test -n 8`."""
FAST_WORKERS = "2"
"""The same for fast tests: they hardly wait, and each process has to collect all tests first."""

ONLY_FAST = "not slow"
"""How pytest is told to leave slow tests out; tests/slow.txt names them."""
SERVE = "--serve"
"""The option of `demo` that opens the inspector."""
UI_BUILD = ROOT / "hatch_build.py"
UI_TESTS = "inspector"
"""What the path of a test has in it that looks at the inspector with a browser."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER_SETTING = "WOODRAT_BROWSER"
"""Names the browser that tests use, where it is none of these."""
FAST = "--fast"
"""The option of `test` for a first answer in under a minute."""
AT_ONCE_SECONDS = 5
"""How long the tests wait for mypy: with its cache it is done by then, and a mistake is told before they begin."""


class Stop(Exception):
    """Ends the command with a sentence for the reader and an exit code."""

    def __init__(self, message: str, code: int = 1) -> None:
        super().__init__(message)
        self.code = code


# Running other programs


def heading(text: str) -> None:
    """Print the name of the step that comes next."""
    print(f"\n== {text}", flush=True)


def environment_for_tools() -> dict[str, str]:
    """Return the caller's environment, with compiled modules kept in `.venv`.

    Tests start thousands of processes. Where PYTHONDONTWRITEBYTECODE is set, as in many containers, each of them would
    compile all it imports. Kept in `.venv`, compiled modules are out of the tree, which is what that setting is for.
    """
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment.setdefault("PYTHONPYCACHEPREFIX", str(BYTECODE))
    return environment


def run(*command: str | Path, **extra_environment: str) -> int:
    """Run a command in the root of the checkout, show its output as it comes, return its exit code."""
    environment = {**environment_for_tools(), **extra_environment}
    return subprocess.run([str(part) for part in command], cwd=ROOT, env=environment).returncode


def works(*command: str | Path) -> bool:
    """Tell whether a command can be started and ends well; its output is dropped."""
    try:
        return subprocess.run([str(part) for part in command], cwd=ROOT, capture_output=True).returncode == 0
    except OSError:
        return False


class Step(NamedTuple):
    """One command of a sequence, with the heading printed above it."""

    title: str
    command: tuple[str | Path, ...]


def run_steps(steps: Sequence[Step], **extra_environment: str) -> int:
    """Run the steps in order; stop at the first that fails and return its exit code."""
    for step in steps:
        heading(step.title)
        code = run(*step.command, **extra_environment)
        if code:
            print(f"\n{step.title}: failed with exit code {code}. Later steps were not run.", file=sys.stderr)
            return code
    return 0


# The environment


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let one process at a time change `.venv`; where the system has no file locks, trust the caller."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(__file__, "rb") as this_file:
        fcntl.flock(this_file, fcntl.LOCK_EX)
        yield


def wanted_stamp() -> str:
    """Return a digest of all that `.venv` is made from: lock, project file, its Python, its place on disk."""
    digest = hashlib.sha256()
    for path in (LOCK, PROJECT, VENV / "pyvenv.cfg"):
        content = path.read_bytes() if path.exists() else b""
        digest.update(len(content).to_bytes(8, "big") + content)
    # Scripts in an environment hold its path, so a moved checkout needs a new one.
    digest.update(os.fsencode(ROOT))
    return digest.hexdigest()


def is_current() -> bool:
    """Tell whether the last set-up still fits."""
    return PYTHON.exists() and STAMP.exists() and STAMP.read_text("ascii") == wanted_stamp()


def make_venv() -> None:
    """Make `.venv` unless there is one whose Python runs, is new enough and knows its own place."""
    where = f"import sys; assert sys.version_info >= {OLDEST_PYTHON}; assert sys.prefix == {str(VENV)!r}"
    if works(PYTHON, "-c", where) and (not UV.exists() or works(UV, "--version")):
        return
    try:
        import venv
    except ImportError:
        install_venv_package()
        import venv
    print(f"Making .venv with Python {'.'.join(map(str, sys.version_info[:3]))}", flush=True)
    # Without pip: Debian keeps ensurepip in a package of its own, and uv takes pip's place anyway.
    venv.EnvBuilder(with_pip=False, clear=True, symlinks=os.name != "nt").create(VENV)


def install_venv_package() -> None:
    """Install Debian's python3-venv, or stop with what the reader can do."""
    name = f"python{sys.version_info[0]}.{sys.version_info[1]}-venv"
    is_system_python = sys.base_prefix == "/usr" and Path("/etc/debian_version").exists()
    if not (is_system_python and shutil.which("apt-get")):
        raise Stop(
            "This Python has neither pip nor ensurepip, so uv cannot be fetched.\n"
            "Install pip or uv for it, or run dev.py with another Python, and try again."
        )
    if os.geteuid() != 0:
        raise Stop(
            f"This Python has neither pip nor ensurepip; Debian keeps them in the package {name}.\n"
            f"Run `sudo apt-get install {name}` and try again."
        )
    print(f"Installing {name} with apt-get, because this Python has neither pip nor ensurepip", flush=True)
    if not install_with_apt(name):
        raise Stop(f"apt-get could not install {name}. Check the network and apt's sources, then try again.")


def install_with_apt(name: str) -> bool:
    """Install a package of Debian's; return whether that went well."""
    install = ("apt-get", "install", "-y", "-qq", "--no-install-recommends", name)
    quietly = {"DEBIAN_FRONTEND": "noninteractive"}
    # A fresh image has no package lists; one that has them is spared the wait.
    return run(*install, **quietly) == 0 or (
        run("apt-get", "update", "-qq", **quietly) == 0 and run(*install, **quietly) == 0
    )


def locked_lines(package: str) -> str:
    """Return the requirement of one package as the lock states it, hashes included; bare if it is not locked."""
    kept: list[str] = []
    for line in LOCK.read_text("utf-8").splitlines() if LOCK.exists() else ():
        if line.startswith("    --hash" if kept else f"{package}=="):
            kept.append(line)
        elif kept:
            break
    return "\n".join(kept).rstrip(" \\") + "\n" if kept else f"{package}\n"


def ways_to_install() -> Iterator[tuple[str | Path, ...]]:
    """Yield, best first, each command that can install a package into `.venv`."""
    if works(PYTHON, "-m", "ensurepip"):
        yield (PYTHON, "-m", "pip", "install", "--quiet")
    # A pip of the system may install into another environment, even where PEP 668 closes its own.
    for pip in ((sys.executable, "-m", "pip"), ("pip3",), ("pip",)):
        if works(*pip, "--python", PYTHON, "--version"):
            yield (*pip, "--python", PYTHON, "install", "--quiet")
            break
    if works("uv", "--version"):
        yield ("uv", "pip", "install", "--quiet", "--python", PYTHON)


def get_uv() -> None:
    """Install uv into `.venv`, at the locked version; pip is a ladder that is not climbed twice."""
    if UV.exists():
        return
    print("Fetching uv", flush=True)
    found_a_way = False
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder) / "uv.txt"
        text = locked_lines("uv")
        wanted.write_text(text, "utf-8")
        hashes = ("--require-hashes",) if "--hash" in text else ()
        for attempt in range(2):
            for way in ways_to_install():
                found_a_way = True
                if run(*way, *hashes, "-r", wanted) == 0 and UV.exists():
                    return
            if found_a_way or attempt:
                break
            install_venv_package()
    if found_a_way:
        raise Stop(
            "uv could not be fetched; the lines above say why. Nothing outside .venv was changed.\n"
            "Check the network, the proxy and the package index that pip uses, then run the command again."
        )
    raise Stop("No working pip was found for this Python. Install pip or uv for it and run the command again.")


def trust() -> tuple[str, ...]:
    """Return the option that makes uv trust what this system trusts, where the system has a list of its own."""
    paths = ssl.get_default_verify_paths()
    listed = paths.cafile or (paths.capath and any(os.scandir(paths.capath)))
    return ("--system-certs",) if listed else ()


def install_lock() -> None:
    """Install what the lock names, each file checked against its hash, then the project itself on top."""
    if not LOCK.exists():
        raise Stop("requirements/dev.lock is missing. Restore it from git, or make it with `python3 dev.py lock`.")
    install: tuple[str | Path, ...] = (UV, "pip", "install", "--quiet", *trust(), "--python", PYTHON)
    print("Installing requirements/dev.lock", flush=True)
    code = run(*install, "--require-hashes", "-r", LOCK)
    if code:
        raise Stop(
            "The packages of requirements/dev.lock could not be installed; the lines above say why.\n"
            "Check the network and run the command again. Behind a mirror, tell uv of it as well: uv reads\n"
            "UV_DEFAULT_INDEX and uv.toml, and does not read the configuration of pip.",
            code,
        )
    # The build tool is in the lock, so the project is built with it and nothing else is fetched.
    code = run(*install, "--no-deps", "--no-build-isolation", "-e", ".")
    if code:
        raise Stop("Woodrat itself could not be installed; the lines above say why. Look at pyproject.toml.", code)


def set_up() -> bool:
    """Bring `.venv` up to date; return whether there was anything to do."""
    if is_current():
        return False
    with one_at_a_time():
        # Another process may have done the work while this one waited.
        if is_current():
            return False
        STAMP.unlink(missing_ok=True)
        make_venv()
        get_uv()
        install_lock()
        STAMP.write_text(wanted_stamp(), "ascii")
    return True


# The inspector


def build_ui() -> int:
    """Build the inspector if `ui/` changed since; return the exit code."""
    with one_at_a_time():
        return run(PYTHON, UI_BUILD)


def has_browser() -> bool:
    """Return whether there is a browser for the tests."""
    return bool(os.environ.get(BROWSER_SETTING)) or any(map(shutil.which, BROWSERS))


def get_browser() -> bool:
    """Return whether there is a browser for the tests, after installing Debian's where that can be done."""
    if has_browser():
        return True
    if shutil.which("apt-get") and os.name == "posix" and os.geteuid() == 0:
        print("Installing chromium with apt-get, for the tests of the inspector", flush=True)
        install_with_apt("chromium")
    return has_browser()


def prepare_ui_tests() -> None:
    """Have the inspector and a browser ready; say so in a line where its tests will be skipped, which CI never does."""
    problem = None
    if build_ui():
        problem = "the inspector could not be built"
    elif not get_browser():
        problem = f"there is no browser ({', '.join(BROWSERS)}, or what {BROWSER_SETTING} names)"
    if problem is not None and os.environ.get("CI"):
        raise Stop(f"The browser tests cannot run: {problem}.")
    if problem is not None:
        print(f"Skipping the browser tests: {problem}.", flush=True)


# The commands


RUFF_CHECK = Step("ruff check", (PYTHON, "-m", "ruff", "check", "."))
RUFF_FORMAT = Step("ruff format --check", (PYTHON, "-m", "ruff", "format", "--check", "."))
MYPY = Step("mypy --strict", (PYTHON, "-m", "mypy"))


def pytest(*arguments: str, workers: str = WORKERS) -> tuple[str | Path, ...]:
    """Return the command that runs pytest with these arguments.

    Each process keeps to modules of its own as long as it can, so that what the tests of a module share is made once.
    """
    return (PYTHON, "-m", "pytest", "-n", workers, "--dist", "worksteal", *arguments)


@contextmanager
def compiling() -> Iterator[None]:
    """Compile all modules of the tests meanwhile, in a fresh checkout, so that not every process of pytest has to.

    Nobody looks at how that ends: what is wrong with a module, the tests say too.
    """
    compiled = Path(environment_for_tools()["PYTHONPYCACHEPREFIX"], *ROOT.parts[1:], "tests")
    if compiled.exists():
        yield
        return
    command = [str(PYTHON), "-m", "pytest", "--collect-only", "-q"]
    silent = subprocess.DEVNULL
    process = subprocess.Popen(command, cwd=ROOT, env=environment_for_tools(), stdout=silent, stderr=silent)
    try:
        yield
        process.wait()
    finally:
        process.kill()
        process.wait()


class Beside:
    """A step that runs while others do; its output is kept until it has ended."""

    def __init__(self, step: Step, output: IO[bytes]) -> None:
        self._step = step
        self._output = output
        command = [str(part) for part in step.command]
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=environment_for_tools(), stdout=output, stderr=subprocess.STDOUT
        )

    def wait(self, seconds: float) -> None:
        """Wait for its end, but no longer than this."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)

    @property
    def failed(self) -> bool:
        """Whether it has ended, and not well."""
        return bool(self.process.poll())

    def result(self) -> int:
        """Wait for its end, show its output, and return its exit code."""
        code = self.process.wait()
        heading(self._step.title)
        self._output.seek(0)
        print(self._output.read().decode(errors="replace"), end="", flush=True)
        if code:
            print(f"\n{self._step.title}: failed with exit code {code}.", file=sys.stderr)
        return code


@contextmanager
def beside(step: Step) -> Iterator[Beside]:
    """Run a step while others do; it ends with them."""
    with tempfile.TemporaryFile() as output:
        started = Beside(step, output)
        try:
            yield started
        finally:
            started.process.kill()
            started.process.wait()


def setup(_: Sequence[str]) -> int:
    """make or refresh .venv; delete .venv first to change its Python"""
    began = time.monotonic()
    changed = set_up()
    print(f".venv is ready ({time.monotonic() - began:.1f} s)" if changed else ".venv was up to date")
    return 0


def test(arguments: Sequence[str]) -> int:
    """ruff, then mypy beside pytest; `test --fast` leaves slow tests out; further arguments go to pytest"""
    began = time.monotonic()
    set_up()
    fast = FAST in arguments
    chosen = [argument for argument in arguments if argument != FAST]
    # Which tests are slow is judged as they are run fast: with few examples.
    environment = {"WOODRAT_LAWS": "fast"} if fast or "--write-slow" in chosen else {}
    selection = ("-m", ONLY_FAST) if fast else ()
    paths = [argument for argument in chosen if (ROOT / argument.partition("::")[0]).exists()]
    code = run_steps((RUFF_CHECK, RUFF_FORMAT))
    if code:
        return code
    with beside(MYPY) as types:
        with compiling() if not paths else nullcontext():
            if not fast and (not paths or any(UI_TESTS in path for path in paths)):
                prepare_ui_tests()
            types.wait(AT_ONCE_SECONDS)
        if not types.failed:
            command = pytest("-q", *selection, *chosen, workers=FAST_WORKERS if fast else WORKERS)
            code = run_steps([Step("pytest", command)], **environment)
        code = types.result() or code
    if fast:
        outcome = f"{'Failed' if code else 'Passed'} after {time.monotonic() - began:.0f} s."
        print(f"\n{outcome} This was not everything: slow tests were left out, and laws tried few examples.")
        print("Run `python3 dev.py test` before you hand a change in.")
    return code


def laws(arguments: Sequence[str]) -> int:
    """the property tests in tests/laws, with many more examples"""
    if not (ROOT / "tests" / "laws").is_dir():
        raise Stop("There are no laws yet: tests/laws does not exist.")
    set_up()
    return run_steps([Step("laws", pytest("tests/laws", *arguments))], WOODRAT_LAWS="full")


def faults(arguments: Sequence[str]) -> int:
    """the fault and differential tests, with many more kills, crash states and histories"""
    set_up()
    long = pytest("tests/faults", "tests/differential", "--timeout=3000", *arguments)
    return run_steps([Step("faults", long)], WOODRAT_FAULTS="full")


def mutants(arguments: Sequence[str]) -> int:
    """change the code in small ways, in a copy, and list the changes that no test notices; `mutants --help`"""
    set_up()
    return run(PYTHON, "-m", "tests.mutants", *arguments)


def lint(_: Sequence[str]) -> int:
    """ruff check, ruff format --check, mypy"""
    set_up()
    return run_steps((RUFF_CHECK, RUFF_FORMAT, MYPY))


def bench(arguments: Sequence[str]) -> int:
    """the benchmarks; further arguments go to them"""
    if not (ROOT / "bench" / "__main__.py").exists():
        raise Stop("There are no benchmarks yet: bench/__main__.py does not exist.")
    set_up()
    return run(PYTHON, "-m", "bench", *arguments)


def docs(_: Sequence[str]) -> int:
    """write the reference pages anew from the declarations of the verbs"""
    set_up()
    return run(PYTHON, ROOT / "tests" / "docs" / "make_reference.py", PYTHONPATH=str(ROOT))


def demo(arguments: Sequence[str]) -> int:
    """a short tour on a ledger that is thrown away afterwards; `demo --serve` opens it in the inspector"""
    set_up()
    if SERVE in arguments and (code := build_ui()):
        return code
    return run(PYTHON, "-m", "woodrat", "demo", *arguments)


def ui(_: Sequence[str]) -> int:
    """build the inspector, which `woodrat serve` shows at /"""
    set_up()
    return build_ui()


def release(arguments: Sequence[str]) -> int:
    """build the archives, install the wheel elsewhere and try it; uploads nothing; `release --draft` tries it early"""
    set_up()
    return run(PYTHON, "-m", "release", *arguments)


def lock(arguments: Sequence[str]) -> int:
    """write requirements/dev.lock anew; `lock --upgrade` also takes newer versions"""
    with one_at_a_time():
        make_venv()
        get_uv()
    LOCK.parent.mkdir(exist_ok=True)
    # Not every extra: onnx is heavy, and its tests are asked for by name.
    frameworks = ("openai", "langgraph", "openai-agents", "pydantic-ai")
    named = ("testing", "recall", "proof", "server", "mcp", "otlp", "postgres", *frameworks)
    extras = tuple(word for name in named for word in ("--extra", name))
    what = ("pyproject.toml", "--universal", *extras, "--group", "dev", "--generate-hashes")
    # The oldest Python is named, so the lock does not depend on the one that happens to be in .venv.
    how = ("--python-version", "{}.{}".format(*OLDEST_PYTHON), "--custom-compile-command", "python3 dev.py lock")
    code = run(UV, "pip", "compile", "--quiet", *trust(), *what, *how, *arguments, "-o", LOCK.relative_to(ROOT))
    if code:
        raise Stop("The lock could not be made and is unchanged; the lines above say why.", code)
    print(f"Wrote {LOCK.relative_to(ROOT)}. Run `python3 dev.py setup` to install it.")
    return 0


COMMANDS: dict[str, Callable[[Sequence[str]], int]] = {
    command.__name__: command
    for command in (setup, test, laws, faults, mutants, lint, bench, docs, ui, demo, release, lock)
}
TAKES_ARGUMENTS = {"test", "laws", "faults", "mutants", "bench", "demo", "release", "lock"}


def help_text() -> str:
    """Return the help, one line per command."""
    lines = [f"  {name:<9}{command.__doc__}" for name, command in COMMANDS.items()]
    return "\n".join(
        [
            "usage: python3 dev.py COMMAND [arguments]",
            "",
            "Sets up, checks and tries Woodrat from a fresh checkout. Needs Python 3.11 or newer and, once, a network.",
            "Each command first brings .venv up to date.",
            "",
            *lines,
        ]
    )


def main(arguments: Sequence[str]) -> int:
    """Run the command named first; return the exit code for the shell."""
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(help_text())
        return 0
    name, *rest = arguments
    try:
        if name not in COMMANDS:
            raise Stop(f'There is no command "{name}". The commands are: {", ".join(COMMANDS)}.', 2)
        if rest and name not in TAKES_ARGUMENTS:
            raise Stop(f'"{name}" takes no arguments, got: {" ".join(rest)}.', 2)
        return COMMANDS[name](rest)
    except Stop as stop:
        print(stop, file=sys.stderr)
        return stop.code
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
