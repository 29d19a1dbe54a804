"""Keys: secrets that live outside the database, in a folder of their own.

The erasure key lets whoever has it tell that a record was erased, and stop it from coming back. The folder is
`WOODRAT_KEYS`, or what `open(…, keys=…)` names, or `woodrat/keys` in the platform's folder for settings.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from woodrat.errors import Corrupt, Refused, Unavailable
from woodrat.log.erasure import KEY_BYTES, Erasure, stored

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from woodrat.clock import Clock

ERASURE: Final = "erasure.key"
ERASED: Final = "erased"
"""Folder of what was erased, a file for each log."""
_HEX = re.compile(rf"[0-9a-f]{{{2 * KEY_BYTES}}}")


def default_folder() -> str:
    """Return the folder of the keys unless the user names one."""
    given = os.environ.get("WOODRAT_KEYS")
    if given:
        return os.path.expanduser(given)
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        folder = os.path.join(home, "Library", "Application Support")
    elif sys.platform == "win32":
        folder = os.environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(folder, "woodrat", "keys")


class Keys:
    """The keys of one folder; each is read when it is asked for."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    @classmethod
    def open(cls, folder: str | os.PathLike[str] | None = None) -> Keys:
        """Return the keys of a folder, of the usual one when none is named; it need not be there."""
        return cls(default_folder() if folder is None else os.path.expanduser(os.fspath(folder)))

    @property
    def erasure(self) -> bytes | None:
        """The erasure key; none when it was not made here."""
        path = os.path.join(self.folder, ERASURE)
        try:
            with open(path, encoding="ascii") as file:
                text = file.read().strip()
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (OSError, UnicodeDecodeError) as error:
            raise Unavailable(
                f"{path}: cannot be read ({error}). Nothing was changed. Check the file and its permissions.",
                {"path": path},
            ) from error
        if not _HEX.fullmatch(text):
            raise Corrupt(
                f"{path}: not an erasure key of {KEY_BYTES} bytes in hex. Nothing was changed. "
                "Put the key back from where you keep a copy of it.",
                {"path": path},
            )
        return bytes.fromhex(text)

    def make_erasure(self, clock: Clock) -> bytes:
        """Return the erasure key, made now if there is none: readable by its owner alone, and durable."""
        found = self.erasure
        if found is not None:
            return found
        key = clock.random(KEY_BYTES)
        path = os.path.join(self.folder, ERASURE)
        try:
            os.makedirs(self.folder, mode=0o700, exist_ok=True)
            write_secret(path, f"{key.hex()}\n")
        except OSError as error:
            raise Unavailable(
                f"{path}: cannot be made ({error.strerror}). No key was made. Name another folder.", {"path": path}
            ) from error
        return self.erasure or key

    def remember(self, erasures: Iterable[Erasure]) -> bool:
        """Note erasures that are not noted yet, so that older copies can be made to forget too.

        Return whether the folder could be written.
        """
        known = {erasure.body() for erasure in self.erasures()}
        try:
            for erasure in erasures:
                if erasure.body() not in known:
                    self._note(erasure)
        except OSError:
            return False
        return True

    def _note(self, erasure: Erasure) -> None:
        path = os.path.join(self.folder, ERASED, f"{erasure.log}.jsonl")
        os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, b"\n" * _is_cut(path) + erasure.body() + b"\n")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def erasures(self) -> Iterator[Erasure]:
        """Yield the erasures remembered here, of all logs; a line that a crash cut short is left out."""
        folder = os.path.join(self.folder, ERASED)
        for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            with open(os.path.join(folder, name), "rb") as file:
                for line in file:
                    with suppress(ValueError, Refused):
                        yield stored(line.rstrip(b"\n"))


def _is_cut(path: str) -> bool:
    """Return whether a file ends in the middle of a line, as a crash leaves it."""
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        if not size:
            return False
        file.seek(size - 1)
        return file.read(1) != b"\n"


def write_secret(path: str, text: str) -> None:
    """Write a file that only its owner can read: whole and durable, or not at all."""
    temporary = f"{path}.{os.getpid()}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
