"""Which kind a test is, which tests are slow, and what a run prints about both."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dev
import pytest
from tests import kinds, slow

CONFTEST = """
from pathlib import Path
from tests.kinds import KindTable
from tests.slow import SlowTests

def pytest_addoption(parser):
    parser.addoption("--write-slow", action="store_true")

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long")
    config.pluginmanager.register(KindTable())
    config.pluginmanager.register(SlowTests(Path(__file__).parent / "slow.txt"))
"""


@pytest.mark.parametrize(
    ("nodeid", "kind"),
    [
        ("tests/laws/test_merge_laws.py::test_order[a::b]", "laws"),
        ("tests/faults/deep/test_power.py::test_cut", "faults"),
        ("tests/cli/test_help.py::test_help", "surfaces"),
        ("tests/surfaces/http/test_routes.py::test_route", "surfaces"),
        ("tests/a-new-room/test_it.py::test_it", "rooms"),
        ("tests/test_layers.py::test_layers", kinds.WHOLE_TREE),
    ],
)
def test_a_kind_is_told_by_the_folder(nodeid: str, kind: str) -> None:
    """Folders across the tree and surfaces have kinds of their own; all others are rooms."""
    assert kinds.kind_of(kinds.folder_of(nodeid)) == kind


def test_a_test_is_known_without_its_file_and_parameters() -> None:
    """A listed test stays slow when its file moves."""
    assert slow.name_of("tests/a/test_b.py::TestC::test_d[x::y[0]]") == "TestC::test_d"
    assert slow.name_of("tests/moved/test_e.py::test_d") == "test_d"


def test_golden_bytes_are_always_compared() -> None:
    """A test is golden by its place or its name, and not by its parameters."""
    assert slow.is_golden("tests/verifier/test_capsules.py::test_the_golden_capsules_are_made_again")
    assert slow.is_golden("tests/golden/test_outside.py::test_help[golden]")
    assert not slow.is_golden("tests/laws/test_order.py::test_order[golden]")


def test_what_ran_is_judged_and_the_rest_of_the_list_stays() -> None:
    """A slow test enters the list, one that became clearly faster leaves it, one near the limit stays as it was."""
    before = {"became_fast": False, "near_the_limit": False, "not_run": True}
    spent = {
        "became_fast": slow.Spent(0.03, 0.03),
        "near_the_limit": slow.Spent(0.07, 0.07),
        "new_and_slow": slow.Spent(3.0, 0.03),
        "new_near_the_limit": slow.Spent(0.07, 0.07),
    }
    judged = slow.judge(before, spent, whole=False)
    assert judged == {"near_the_limit": False, "new_and_slow": True, "not_run": True}
    assert slow.judge(before, spent, whole=True) == {"near_the_limit": False, "new_and_slow": True}


def test_a_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Remarks are passed over, and `first` is known again."""
    names = {"TestC::test_d": False, "test_e": True}
    (tmp_path / "slow.txt").write_text(slow.written(names), "utf-8")
    assert slow.listed(tmp_path / "slow.txt") == names


def run_pytest(folder: Path, *arguments: str) -> str:
    """Run pytest on two small folders of tests and return what it prints."""
    for kind in ("laws", "stories"):
        (folder / "tests" / kind).mkdir(parents=True, exist_ok=True)
        test = f"import pytest\n\n@pytest.mark.parametrize('n', range(3))\ndef test_{kind}(n):\n    pass\n"
        (folder / "tests" / kind / f"test_{kind}.py").write_text(test, "utf-8")
    (folder / "conftest.py").write_text(CONFTEST, "utf-8")
    (folder / "pytest.ini").write_text("[pytest]\n", "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--import-mode=importlib", "-p", "no:cacheprovider", *arguments]
    # Without the plugins of other packages, which take a second to load.
    alone = {"PYTHONPATH": str(dev.ROOT), "PYTEST_ADDOPTS": "-p xdist.plugin", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environment = {**os.environ, **alone}
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_table_counts_all_workers(tmp_path: Path, workers: str) -> None:
    """Each test is counted once under its kind, in one process and in several."""
    lines = [line.split() for line in run_pytest(tmp_path, "-n", workers).splitlines()]
    assert ["kind", "tests", "seconds", "share"] in lines
    assert {line[0]: line[1] for line in lines if line[:1] in (["laws"], ["stories"])} == {"laws": "3", "stories": "3"}


@pytest.mark.parametrize(
    ("line", "outcome"), [("test_laws", "3 passed, 3 deselected"), ("test_laws first", "4 passed, 2 deselected")]
)
def test_listed_tests_are_left_out_and_measured_again(tmp_path: Path, line: str, outcome: str) -> None:
    """`-m "not slow"` leaves the listed test out, but for its first parameter; `--write-slow` finds that it is fast."""
    (tmp_path / "slow.txt").write_text(f"# a remark\n{line}\ntest_elsewhere\n", "utf-8")
    assert outcome in run_pytest(tmp_path, "-m", slow.ONLY_FAST)
    run_pytest(tmp_path, "-n", "1", "--write-slow")
    assert slow.listed(tmp_path / "slow.txt") == {"test_elsewhere": False}


def test_the_command_selects_what_the_list_is_for() -> None:
    """dev.py and tests/slow.py agree on the expression."""
    assert dev.ONLY_FAST == slow.ONLY_FAST
