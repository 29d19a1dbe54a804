"""Private: files that only their owner reads and writes, whatever the umask of the process is.

It counts when a file is made. One that is there keeps the mode that somebody gave it.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress

MODE = 0o600
FOLDER_MODE = 0o700


def opener(path: str, flags: int) -> int:
    """Open a file for `open(…, opener=opener)`; if it is made now, it is its owner's alone."""
    if flags & os.O_CREAT:
        try:
            return _made(path, flags | os.O_EXCL)
        except FileExistsError:
            pass
    return os.open(path, flags, MODE)


def make(path: str) -> None:
    """Make an empty file if there is none; where none can be made, whoever opens it next says why."""
    with suppress(OSError):
        os.close(_made(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0)))


def _made(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, MODE)
    if os.name == "posix":
        with suppress(OSError):  # a file system that knows no modes
            os.fchmod(descriptor, MODE)
    return descriptor


def make_folder(path: str) -> None:
    """Make a folder, and those above it, if it is not there; one that is made is its owner's alone."""
    try:
        os.makedirs(path, mode=FOLDER_MODE)
    except FileExistsError:
        if not os.path.isdir(path):
            raise


def mode_like(path: str) -> int:
    """Return the mode for a file beside another, so that whoever may open one may open both."""
    try:
        return stat.S_IMODE(os.stat(path).st_mode) & 0o666
    except OSError:
        return MODE


def is_open_to_all(path: str) -> bool:
    """Return whether every user of this machine can read or write a file, as far as its mode says."""
    if os.name != "posix":
        return False
    try:
        return bool(os.stat(path).st_mode & 0o006)
    except OSError:
        return False
