"""A release is refused when its version, its changelog or its archives do not agree."""

from __future__ import annotations

import io
import shutil
import tarfile
import zipfile
from pathlib import Path

import dev
import pytest
from hatch_build import STAMP
from hatchling.builders.wheel import WheelBuilder
from release import checks

READY = "# Changelog\n\n## 0.2.0 (2026-11-17)\n\n- A line.\n\n## 0.1.0 (2026-10-01)\n\n- An older line.\n"


@pytest.mark.parametrize("changelog", [READY, READY.replace("## 0.2.0", "## Unreleased\n\n## 0.2.0")])
def test_a_dated_section_of_the_version_is_ready(changelog: str) -> None:
    """The newest section names the version and a date; an empty section above it is no obstacle."""
    assert checks.changelog_faults("0.2.0", changelog) == []


@pytest.mark.parametrize(
    ("version", "changelog", "words"),
    [
        ("0.3.0", READY, "of version 0.2.0, __version__ states 0.3.0"),
        ("0.2.0", READY.replace("## 0.2.0 (2026-11-17)", "## Unreleased"), '"Unreleased" and holds lines'),
        ("0.2.0", READY.replace(" (2026-11-17)", ""), 'got "## 0.2.0"'),
        ("0.2.0", READY.replace("- A line.", ""), "is empty"),
        ("0.2.0", "# Changelog\n", "no section of version 0.2.0"),
        ("0.2.0", "# Changelog\n\n## Unreleased\n", "no section of version 0.2.0"),
    ],
)
def test_what_does_not_agree_is_named(version: str, changelog: str, words: str) -> None:
    """Another version, no date, no lines and lines that are not released yet are each refused in one sentence."""
    (fault,) = checks.changelog_faults(version, changelog)
    assert words in fault


@pytest.mark.parametrize("version", ["1", "0.2", "0.02.0", "0.2.0.dev1", "v0.2.0"])
def test_a_version_is_three_numbers(version: str) -> None:
    """Any other spelling is refused, besides whatever the changelog says."""
    assert "three numbers" in checks.changelog_faults(version, READY)[0]


def test_the_version_of_this_checkout_can_be_read() -> None:
    """The package states its version, and it is one that could be released."""
    version = checks.version_of(checks.PACKAGE.read_text("utf-8"))
    assert checks.changelog_faults(version, READY.replace("0.2.0", version)) == []


def test_the_package_says_that_it_is_typed() -> None:
    """Type checkers of users read the types of an installed package only where it has this file."""
    assert (dev.ROOT / "src" / "woodrat" / "py.typed").is_file()


def test_a_wheel_holds_the_files_under_src_and_no_others(tmp_path: Path) -> None:
    """A file that is missing, and one that no checkout has, are named; what the build adds is not."""
    wheel = tmp_path / "woodrat-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name in ("woodrat/__init__.py", "woodrat/scratch.py", "woodrat-0.2.0.dist-info/METADATA"):
            archive.writestr(name, "")
    assert checks.wheel_faults(wheel, ["src/woodrat/__init__.py", "src/woodrat/schema.sql"]) == [
        f"{wheel.name}: woodrat/schema.sql is missing.",
        f"{wheel.name}: woodrat/scratch.py is not a file of the checkout.",
    ]


def test_a_wheel_holds_the_app_and_not_the_stamp_of_its_build(tmp_path: Path) -> None:
    """What is built of the inspector goes into the wheel, but for the file that says what it was built from."""
    shutil.copy(dev.PROJECT, tmp_path)
    static = tmp_path / "src" / "woodrat" / "inspector" / "static"
    (static / "assets").mkdir(parents=True)
    for name in ("index.html", "assets/app.js", STAMP.name):
        (static / name).write_text("")
    held = {Path(file.path).name for file in WheelBuilder(str(tmp_path)).recurse_included_files()}
    assert held == {"index.html", "app.js"}


def test_a_source_archive_holds_the_checkout(tmp_path: Path) -> None:
    """Its files are those of the checkout, below one folder."""
    sdist = tmp_path / "woodrat-0.2.0.tar.gz"
    with tarfile.open(sdist, "w:gz") as archive:
        for name in ("dev.py", "PKG-INFO", "notes.txt"):
            archive.addfile(tarfile.TarInfo(f"woodrat-0.2.0/{name}"), io.BytesIO())
    assert checks.sdist_faults(sdist, ["dev.py", "README.md"]) == [
        f"{sdist.name}: README.md is missing.",
        f"{sdist.name}: notes.txt is not a file of the checkout.",
    ]
