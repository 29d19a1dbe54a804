"""Which kind a test is, and the table of what each kind took."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dev
import pytest
from tests import kinds

CONFTEST = """
from tests.kinds import KindTable

def pytest_configure(config):
    config.pluginmanager.register(KindTable())
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
