"""What has to agree before a version is given away: the version, the changelog, and what the archives hold."""

from __future__ import annotations

import re
import tarfile
import zipfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

PACKAGE = Path(__file__).parent.parent / "src" / "woodrat" / "__init__.py"
"""The module that states the version."""
VERSION = re.compile(r"0|[1-9]\d*")
HEADING = re.compile(r"^## (.*\S)", re.MULTILINE)
DATED = re.compile(r"(?P<version>\S+) \((?P<date>\d{4}-\d{2}-\d{2})\)")
UNRELEASED = "Unreleased"


def version_of(package: str) -> str:
    """Return the version that the text of the package's `__init__.py` states."""
    stated = re.search(r'^__version__ = "(.*)"$', package, re.MULTILINE)
    assert stated is not None, "the package states its version"
    return stated[1]


def changelog_faults(version: str, changelog: str) -> list[str]:
    """Return why this changelog is not that of this version; an empty list means that they agree.

    The newest section of a released changelog reads `## 0.1.0 (2026-11-17)` and says something, and no section
    "Unreleased" with lines in it stands above.
    """
    faults: list[str] = []
    if len(version.split(".")) != 3 or not all(VERSION.fullmatch(part) for part in version.split(".")):
        faults.append(f'__version__: expected a version of three numbers such as 0.1.0, got "{version}".')
    sections = _sections(changelog)
    if sections and sections[0][0] == UNRELEASED and not sections[0][1].strip():
        sections = sections[1:]
    if not sections:
        return [*faults, f"CHANGELOG.md: there is no section of version {version}. Add `## {version} (YYYY-MM-DD)`."]
    title, content = sections[0]
    if title == UNRELEASED:
        rename = f"Name it `## {version} (YYYY-MM-DD)` to release them."
        return [*faults, f'CHANGELOG.md: the newest section is "{UNRELEASED}" and holds lines. {rename}']
    dated = DATED.fullmatch(title)
    if dated is None:
        faults.append(f'CHANGELOG.md: expected "## {version} (YYYY-MM-DD)" as the newest section, got "## {title}".')
    elif dated["version"] != version:
        faults.append(
            f"CHANGELOG.md: the newest section is of version {dated['version']}, __version__ states {version}. "
            "Change one of them."
        )
    if not content.strip():
        faults.append(f'CHANGELOG.md: the section "{title}" is empty. Say what changed for users.')
    return faults


def _sections(changelog: str) -> list[tuple[str, str]]:
    """Return title and content of every section, in their order."""
    _, *parts = HEADING.split(changelog)
    return list(zip(parts[::2], parts[1::2], strict=True))


def wheel_faults(wheel: Path, sources: Iterable[str]) -> list[str]:
    """Return the differences between a wheel and the files under src that it is made of."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    return _differences(wheel.name, names, {str(PurePosixPath(name).relative_to("src")) for name in sources})


def sdist_faults(sdist: Path, tracked: Iterable[str]) -> list[str]:
    """Return the differences between a source archive and the tracked files that it is made of."""
    with tarfile.open(sdist) as archive:
        names = {str(PurePosixPath(*PurePosixPath(member.name).parts[1:])) for member in archive if member.isfile()}
    # Made by the build, or put in whatever pyproject.toml says.
    return _differences(sdist.name, names - {"PKG-INFO", ".gitignore"}, set(tracked) - {".gitignore"})


def _differences(archive: str, held: set[str], expected: set[str]) -> list[str]:
    return [
        *(f"{archive}: {name} is missing." for name in sorted(expected - held)),
        *(f"{archive}: {name} is not a file of the checkout." for name in sorted(held - expected)),
    ]
