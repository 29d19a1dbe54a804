"""The command lines in the documents work: each is run as it stands, page by page, on a ledger with all they name."""

from __future__ import annotations

import re
import shlex
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest
from tests.docs.prepared_ledger import Names, prepare
from tests.docs.shell import Shell
from tests.docs.shown_commands import command_lines, mentions, problem_of, stray_lines, texts_of
from tests.recall.test_embedders import Server as EmbeddingServer
from tests.recall.test_embedders import as_ollama
from tests.server.server import Server

from woodrat.api.ledger import Ledger
from woodrat.cli.serve import endpoints
from woodrat.clock import SystemClock
from woodrat.engines.sqlite.engine import SqliteEngine
from woodrat.ledger.own_policy import registry
from woodrat.server.app import App
from woodrat.server.keys import KEYS_TENANT, Keyring

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted(
    page
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *ROOT.glob("docs/**/*.md")]
    if "decisions" not in page.parts
)
PAGES = [page for page in DOCUMENTS if command_lines(page.read_text("utf-8"))]

NOT_RUN: Final = {
    "psql -1 -v ON_ERROR_STOP=1 -f distribute.sql postgresql://admin@coordinator/agents": "it needs Citus",
    "neotoma --api-only --base-url http://127.0.0.1:8787/neotoma entities list": "it is Neotoma's own program",
}
"""Lines that cannot be run here, and why."""
EXIT_CODES: Final = {
    "woodrat runs diff monday.json tuesday.json --exit-code": 1,  # they differ
    "woodrat bisect run_…#classify-risk --chosen approved --from @release-3": 1,  # the page has moved that tag
}
"""Checks that end with 1, as they say they do; every other line ends with 0."""


class World(NamedTuple):
    """A prepared folder, and the names of what is in it."""

    folder: Path
    names: Names


@contextmanager
def _at_home(folder: Path) -> Iterator[pytest.MonkeyPatch]:
    """Make a folder the home and the working directory, with its ledger and its agent as those that commands find."""
    others = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] == "agents"}
    with pytest.MonkeyPatch.context() as patch:
        _settle(patch, folder)
        yield patch
    for name in [name for name in sys.modules if name.partition(".")[0] == "agents"]:
        del sys.modules[name]
    sys.modules.update(others)


def _settle(patch: pytest.MonkeyPatch, folder: Path) -> None:
    for name in ("WOODRAT_TENANT", "WOODRAT_AGENT", "WOODRAT_TOKEN", "WOODRAT_SIGNING_KEYS", "DISPLAY", "NO_COLOR"):
        patch.delenv(name, raising=False)
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        patch.setenv(name, str(folder))
    patch.setenv("WOODRAT_DB", "agents.db")
    patch.chdir(folder)
    patch.syspath_prepend(str(folder))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The prepared folder; tests work on copies of it."""
    folder = tmp_path_factory.mktemp("world")
    with _at_home(folder) as patch:
        shell = Shell(folder, patch)

        def run(line: str) -> str:
            code, printed, errors = shell.run(shlex.split(line))
            assert code == 0, f"{line}: {errors}"
            return printed

        return World(folder, prepare(folder, run))


@pytest.fixture(scope="module")
def served(world: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[], int]]:
    """What starts a server on a copy of the ledger, once, and returns its port."""
    running: list[Server] = []
    engine: list[SqliteEngine] = []

    def port() -> int:
        if not running:
            path = shutil.copy(world.folder / "agents.db", tmp_path_factory.mktemp("served") / "agents.db")
            engine.append(SqliteEngine(path))
            clock, policies = SystemClock(), registry(())
            keys = Ledger(engine[0], tenant=KEYS_TENANT, agent="operator", clock=clock, policies=policies)
            ring = Keyring(keys, clock)
            ring.refresh()
            app = App(engine[0], ring, clock=clock, policies=policies, endpoints=endpoints())
            running.append(Server(app).__enter__())
        return running[0].port

    yield port
    for server in running:
        server.__exit__()
        engine[0].close()


@pytest.fixture
def embedder(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An embedder in place of Ollama."""
    server = EmbeddingServer()
    server.answer = as_ollama
    monkeypatch.setenv("OLLAMA_HOST", server.url)
    yield
    server.close()


@pytest.fixture
def shell(world: World, served: Callable[[], int], tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Shell]:
    """A shell in a copy of the prepared folder, whose user has an API key of the server."""
    folder = tmp_path / "home"
    shutil.copytree(world.folder, folder)
    with _at_home(folder) as patch:
        patch.setenv("WOODRAT_TOKEN", world.names.secret)
        yield Shell(folder, patch, world.names, server=served, postgres=lambda: request.getfixturevalue("postgres_url"))


def _problems(shell: Shell, page: str) -> list[str]:
    """Return the command lines of a page that do not end as they should, with what they said."""
    problems, section = [], 0
    for line in command_lines(page):
        if line.text in NOT_RUN:
            continue
        if line.section != section:  # another shell, perhaps on another machine
            shell.forget()
            section = line.section
        code, _, errors = shell.run(line.words)
        if code != EXIT_CODES.get(line.text, 0):
            problems.append(f"line {line.number}: {line.text}\n  exit code {code}: {errors}")
    return problems


@pytest.mark.usefixtures("embedder")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_command_lines_of_a_page_work(page: Path, shell: Shell) -> None:
    """Every command line of a page, typed in the order of the page, does its work."""
    problems = _problems(shell, page.read_text("utf-8"))
    assert not problems, "\n".join(problems)


def test_the_command_lines_of_the_inspector_work(shell: Shell) -> None:
    """A page of the inspector that is empty says what to type, and that works."""
    sources = [path.read_text("utf-8") for path in sorted(ROOT.glob("ui/src/**/*.svelte"))]
    typed = [line for source in sources for _, line in re.findall(r"""<Empty type=({`|")(.+?)(?:`}|")>""", source)]
    assert typed
    problems = _problems(shell, "".join(f"    {line}\n" for line in typed))
    assert not problems, "\n".join(problems)


def test_a_line_that_does_not_work_is_found(shell: Shell) -> None:
    """Unknown options, refusals, missing extras and unknown commands of dev.py are reported, and what works is not."""
    wrong = [
        "woodrat keys create --for-agent crm --grant read",
        "woodrat show contact/nobody",
        "woodrat runs judge last good --by ann",
        "woodrat serve --keys ./keys",
        "woodrat-verify trace.json",
        "curl -H 'Authorization: Bearer wrat_…' localhost:8787/v1/entities/contact/nobody",
        "pip install 'woodrat[server,coffee]'",
        "python3 dev.py tests",
        "python3 dev.py test --quickly",
    ]
    right = [
        "WOODRAT_AGENT=crm woodrat show \\\n         'contact/Ana Rivera' > ana.json  # as it is now",
        "export WOODRAT_DB=https://ledger.example.org WOODRAT_TOKEN=wrat_…",
        "woodrat show 'contact/Ana Rivera'",
    ]
    page = "".join(f"    {line}\n" for line in [*wrong, *right]) + "# Next\n    woodrat runs list\n"
    assert [problem.partition(": ")[2].partition("\n")[0] for problem in _problems(shell, page)] == wrong


def test_nothing_in_a_block_of_command_lines_is_left_out() -> None:
    """Below a command line stand others, so that no line of a program that the tests do not know is passed over."""
    stray = {page.name: stray_lines(page.read_text("utf-8")) for page in DOCUMENTS}
    assert {name: lines for name, lines in stray.items() if lines} == {}
    assert stray_lines("    woodrat show \\\n        contact/a\n    woodrot list\n") == []
    assert stray_lines("    woodrat list all\n    woodrot list\n") == ["woodrot list"]


def test_no_exception_outlives_its_line() -> None:
    """Every line that is not run, or that ends with another code, is in a document."""
    shown = {line.text for page in DOCUMENTS for line in command_lines(page.read_text("utf-8"))}
    assert {*NOT_RUN, *EXIT_CODES} <= shown


def test_commands_in_sentences_exist() -> None:
    """A command that a document or a text of the code mentions in backticks exists, and so do its options."""
    texts = {page: [page.read_text("utf-8")] for page in [*DOCUMENTS, *ROOT.glob("*.md"), ROOT / "bench/README.md"]}
    del texts[ROOT / "CHANGELOG.md"]  # it also tells of what went
    texts |= {path: [*texts_of(path.read_text("utf-8"))] for path in (ROOT / "src/woodrat").rglob("*.py")}
    mentioned = [(path, mention) for path, parts in texts.items() for part in parts for mention in mentions(part)]
    assert len(mentioned) > 300
    wrong = [
        f"{path.relative_to(ROOT)}: {mention}: {problem}"
        for path, mention in mentioned
        if (problem := problem_of(mention)) is not None
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("mention", "problem"),
    [
        ("woodrat keys create --for-agent crm", "there is no option --for-agent"),
        ("woodrat --db x.db show REF --as-of M --sinc=3", "there is no option --sinc=3"),
        ("woodrat compare", "there is no command compare"),
        ("woodrat runs record", "there is no command runs record"),
        ("woodrat show 'contact", "its quotes do not match"),
        ("woodrat COMMAND --help", None),
        ("woodrat runs … --tenant lending", None),
        ("woodrat --version", None),
    ],
)
def test_a_wrong_mention_is_found(mention: str, problem: str | None) -> None:
    """An unknown command or option is named; placeholders stand for anything."""
    assert problem_of(mention) == problem


def test_mentions_are_found_where_texts_are_filled_in() -> None:
    """A mention may go over two lines, and have a part that an f-string fills in; code blocks are none."""
    assert [*mentions("See `woodrat demo\n--story runs`.\n```\n`woodrat no`\n```\n")] == ["woodrat demo --story runs"]
    (text,) = texts_of("told = f'Try `woodrat show {ref} --all`.'")
    assert [problem_of(mention) for mention in mentions(text)] == ["there is no option --all"]
