"""Files: written beside their place, made durable, and then put there whole; or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

from woodrat.engines import private
from woodrat.errors import Fault, Refused, Unavailable, WoodratError, shown


def path_in(value: object, name: str, outcome: str) -> str:
    """Return a path as text; anything else is refused."""
    if not isinstance(value, str | os.PathLike) or not os.fspath(value):
        raise Refused([Fault(name, f"expected a path, got {shown(value)}", "Send the path of a file.")], outcome)
    return os.path.expanduser(os.fspath(value))


def check_free(path: str, name: str, outcome: str, *, force: bool) -> None:
    """Refuse a target that exists, unless it may be replaced, or that cannot be a file."""
    folder = os.path.dirname(os.path.abspath(path))
    if os.path.isdir(path):
        raise Refused([Fault(name, f"{path} is a directory", "Name a file in it.")], outcome)
    if not os.path.isdir(folder):
        raise Refused([Fault(name, f"{folder} does not exist", "Create the folder first.")], outcome)
    if os.path.lexists(path) and not force:
        problem = f"{path} already exists"
        raise Refused([Fault(name, problem, "Name another file, or use --force (force=True) to replace it.")], outcome)


def unwritable(path: str, error: OSError, outcome: str) -> WoodratError:
    """Return the error for a file that cannot be written."""
    reason = error.strerror or str(error)
    return Unavailable(f"{path}: cannot be written ({reason}). {outcome} Fix it and try again.", {"path": path})


def put(partial: str, path: str) -> None:
    """Make a file durable and put it in its place."""
    with open(partial, "rb") as file:
        os.fsync(file.fileno())
    os.replace(partial, path)
    sync_folder(path)


def sync_folder(path: str) -> None:
    """Make the name of a file durable, where the system can."""
    with suppress(OSError):  # not everywhere can a folder be opened
        folder = os.open(os.path.dirname(os.path.abspath(path)), os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


@contextmanager
def written(path: str, outcome: str) -> Iterator[BinaryIO]:
    """Give a file to write to, which appears at `path` when all went well."""
    partial = f"{path}.part"
    try:
        try:
            with open(partial, "wb", opener=private.opener) as file:
                yield file
            put(partial, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(partial)
            raise
    except OSError as error:
        raise unwritable(path, error, outcome) from error
