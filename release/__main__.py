"""`python3 dev.py release`: build both archives, check them, install the wheel elsewhere and try it.

Nothing is uploaded. The archives reach dist/ once all went well; a release is then a tag and an upload by hand.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

import dev

from release import checks, smoke

DIST = dev.ROOT / "dist"
GOLDEN = dev.ROOT / "tests" / "golden" / "capsules"
EXTRAS = "server,mcp"


def main(arguments: Sequence[str] | None = None) -> int:
    """Make the archives and try them; return the exit code for the shell."""
    parser = argparse.ArgumentParser(prog="dev.py release", description="Build and try the archives of a release.")
    parser.add_argument(
        "--draft",
        action="store_true",
        help="try the build before the release: say what does not agree yet, and go on",
    )
    draft: bool = parser.parse_args(arguments).draft
    began = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="woodrat-release-") as folder:
            unready, archives = make(Path(folder), draft=draft)
    except (dev.Stop, smoke.SmokeFailure) as failure:
        print(f"\n{failure}\nThere is no release: dist/ is as it was, and nothing was uploaded.", file=sys.stderr)
        return 1
    print(f"\nBuilt, installed and tried in {time.monotonic() - began:.0f} s. Nothing was uploaded.")
    for archive in archives:
        print(f"  {archive.relative_to(dev.ROOT)}  sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}")
    if unready:
        print(f"This is a draft and no release:\n{_listed(unready)}")
    return 0


def make(folder: Path, *, draft: bool) -> tuple[list[str], list[Path]]:
    """Build in a temporary folder and try the result; return what is not ready yet, and the archives in dist/."""
    version = checks.version_of(checks.PACKAGE.read_text("utf-8"))
    dev.heading(f"version {version}")
    unready = readiness_faults(version)
    print(_listed(unready) or "version, changelog and checkout agree", flush=True)
    if unready and not draft:
        raise dev.Stop("Not everything is ready for a release. `dev.py release --draft` goes on nevertheless.")
    dev.heading("build")
    built = build(folder / "dist")
    dev.heading("install and try: base")
    install(built[-1], folder / "base", version, extras=None)
    dev.heading(f"install and try: {EXTRAS}")
    install(built[-1], folder / "extras", version, extras=EXTRAS)
    DIST.mkdir(exist_ok=True)
    return unready, [Path(shutil.copy(archive, DIST)) for archive in built]


def readiness_faults(version: str) -> list[str]:
    """Return what keeps this checkout from being released as this version."""
    faults = checks.changelog_faults(version, (dev.ROOT / "CHANGELOG.md").read_text("utf-8"))
    changed = git("status", "--porcelain")
    if changed:
        faults.append(f"The checkout has {len(changed)} uncommitted changes. Commit them, or put them aside.")
    if git("tag", "--list", f"v{version}") and git("rev-parse", f"v{version}^{{commit}}") != git("rev-parse", "HEAD"):
        faults.append(f"The tag v{version} is on another commit. A version is released once: raise it.")
    return faults


def build(folder: Path) -> tuple[Path, Path]:
    """Build the source archive, and the wheel from it; return both, after a look at what they hold."""
    # The build tool is the locked one in .venv, so nothing is fetched.
    code = dev.run(
        dev.UV, "build", "--quiet", "--no-build-isolation", "--offline", "--python", dev.PYTHON, "--out-dir", folder
    )
    if code:
        raise dev.Stop("The archives could not be built; the lines above say why.", code)
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    tracked = git("ls-files", "--cached", "--others", "--exclude-standard")
    left_out = {name for name in tracked if name.startswith(".") or not (dev.ROOT / name).exists()}
    faults = [
        *checks.wheel_faults(wheel, (name for name in tracked if name.startswith("src/") and name not in left_out)),
        *checks.sdist_faults(sdist, (name for name in tracked if name not in left_out)),
    ]
    if faults:
        raise dev.Stop(f"The archives do not hold what they should:\n{_listed(faults)}")
    print(f"{sdist.name} and {wheel.name} hold the files of the checkout", flush=True)
    return sdist, wheel


def install(wheel: Path, folder: Path, version: str, *, extras: str | None) -> None:
    """Install the wheel into an empty environment, as a user would, and try it outside of the checkout."""
    environment, work = folder / "environment", folder / "work"
    work.mkdir(parents=True)
    wanted = f"woodrat[{extras}] @ {wheel.as_uri()}" if extras else f"woodrat @ {wheel.as_uri()}"
    made = dev.run(dev.UV, "venv", "--quiet", "--python", dev.PYTHON, environment)
    installation = smoke.Installation(environment, work, version)
    python = installation.program("python")
    if made or dev.run(dev.UV, "pip", "install", "--quiet", *dev.trust(), "--python", python, wanted):
        raise dev.Stop("The wheel could not be installed into an empty environment; the lines above say why.")
    smoke.check_base(installation, GOLDEN)
    if extras:
        smoke.check_extras(installation)
    print("it does what a user tries first", flush=True)


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints."""
    ran = subprocess.run(["git", *arguments], cwd=dev.ROOT, capture_output=True, text=True)
    if ran.returncode:
        raise dev.Stop(f"git {' '.join(arguments)}: {ran.stderr.strip()}\nA release is made from a checkout.")
    return ran.stdout.splitlines()


def _listed(faults: Iterable[str]) -> str:
    return "\n".join(f"  {fault}" for fault in faults)


if __name__ == "__main__":
    sys.exit(main())
