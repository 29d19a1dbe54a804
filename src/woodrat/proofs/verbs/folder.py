"""The folder of keys: its path. Every command needs it, so this module imports no user of the keys."""

from __future__ import annotations

import os
import sys

from woodrat.engines.open import MEMORY


def keys_folder(given: str | os.PathLike[str] | None = None) -> str:
    """Return the folder of keys: the argument, else `WOODRAT_SIGNING_KEYS`, else the user's configuration folder."""
    named = os.fspath(given) if given is not None else os.environ.get("WOODRAT_SIGNING_KEYS")
    if named:
        return os.path.expanduser(named)
    home = os.path.expanduser("~")
    if sys.platform == "darwin":
        folder = os.path.join(home, "Library", "Application Support")
    elif sys.platform == "win32":
        folder = os.environ.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
    else:
        folder = os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return os.path.join(folder, "woodrat", "keys")


def keys_for(db: str | os.PathLike[str] | None, given: str | os.PathLike[str] | None) -> str | None:
    """Return the folder of keys that a ledger is signed by, or None.

    A named folder must exist. The default folder counts if it has a signer, for ledgers in files: a ledger in memory is
    signed only by keys that were passed to it.
    """
    if given is not None:
        return keys_folder(given)
    if db is not None and os.fspath(db) == MEMORY:
        return None
    folder = keys_folder()
    named = bool(os.environ.get("WOODRAT_SIGNING_KEYS"))
    return folder if named or os.path.exists(os.path.join(folder, "signer.pub")) else None
