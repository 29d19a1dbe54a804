"""Place: a folder on a real disk. In memory a commit costs nothing, and every ratio would be a fiction."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = frozenset({"tmpfs", "ramfs", "devtmpfs"})
"""File systems that are no disk."""
_MOUNTS = Path("/proc/self/mounts")


@contextmanager
def folder(wanted: Path | None = None, mounts: Path = _MOUNTS) -> Iterator[Path]:
    """Make a folder for one run in `wanted`, or wherever there is a disk, and remove it afterwards."""
    candidates = [wanted] if wanted else [Path(tempfile.gettempdir()), Path("/var/tmp"), Path.cwd()]
    for candidate in candidates:
        if candidate.is_dir() and _file_system(candidate, mounts) not in MEMORY:
            with tempfile.TemporaryDirectory(prefix="woodrat-bench-", dir=candidate) as made:
                yield Path(made)
            return
    raise SystemExit(f"{', '.join(map(str, candidates))}: no folder on a disk. Name one with --dir.")


def _file_system(path: Path, mounts: Path) -> str | None:
    """Return the type of the file system a folder is on, where the system tells."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    kinds = {Path(point.replace("\\040", " ")): kind for _, point, kind, *_ in map(str.split, lines)}
    real = path.resolve()
    return next((kinds[point] for point in (real, *real.parents) if point in kinds), None)
