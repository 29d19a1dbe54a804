"""Locations: the keys folder's memory of which log is in which database file.

    ledgers/<location>.json    for one file and tenant: the log's name, how many entries it had, and their root

The last checkpoint of a log is found by the log's name, and the name is in the database. An attacker with write
access to the database can put another log there, which has no checkpoint yet. So the folder also remembers the log at
each location: any log found at the same path, for the same tenant, must begin with those entries. Its name may differ,
since a copy continues under its own name; the root may not.

A path counts both as named and with links resolved, so that a changed link is noticed too.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon.digest import base32, digest
from woodrat.canon.form import parse, serialise
from woodrat.engines.open import is_postgres
from woodrat.errors import Corrupt, Refused
from woodrat.log.checkpoint import Checkpoint
from woodrat.log.tree import HASH_BYTES, SIZE_MAX
from woodrat.proofs.verbs.keys import LEDGERS, Keys, read, replace
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine

NAME_CHARACTERS: Final = 26
"""Length of the digest prefix that names a file under `ledgers/`."""


@dataclass(frozen=True, slots=True)
class Location:
    """Where one tenant's log lies: a tenant of a database file, and the keys folder that remembers it."""

    keys: Keys
    """The folder."""
    paths: tuple[str, ...]
    """The file: its absolute path as named, and its path with links resolved if different; for a database server its
    address.
    """
    tenant: str
    """The tenant."""

    @classmethod
    def of(cls, keys: Keys, engine: Engine, tenant: TenantId) -> Location | None:
        """Return the location of a tenant's log; None for an engine without files."""
        return None if engine.location is None else cls.at(keys, engine.location, tenant)

    @classmethod
    def at(cls, keys: Keys, path: str, tenant: str) -> Location:
        """Return the location of a tenant's log in the file at a path, or at the address of a server."""
        paths = (path,) if is_postgres(path) else (os.path.abspath(path), os.path.realpath(path))
        return cls(keys, tuple(dict.fromkeys(paths)), tenant)

    def __str__(self) -> str:
        return f"{self.paths[0]}, tenant {self.tenant}"

    def files(self) -> tuple[str, ...]:
        """Return the files that remember it."""
        names = (digest("location", f"{path}\n{self.tenant}".encode("utf-8", "surrogateescape")) for path in self.paths)
        return tuple(self.keys.path(LEDGERS, f"{base32(name)[:NAME_CHARACTERS]}.json") for name in names)

    def remembered(self) -> tuple[Checkpoint, ...]:
        """Return the beginning that the log here must have; None if no log was written here with these keys."""
        found = (self._remembered(path) for path in self.files())
        return tuple(dict.fromkeys(one for one in found if one is not None))

    def _remembered(self, path: str) -> Checkpoint | None:
        text = read(path)
        if text is None:
            return None
        try:
            return _checkpoint(parse(text.encode()))
        except (Refused, KeyError, TypeError, ValueError) as error:
            raise Corrupt(
                f"{path} cannot be read, and it is the keys folder's memory of {self}. Nothing was changed. Restore "
                f"the file from a backup of the folder; without it, another log could replace this one unnoticed.",
                {"path": path},
            ) from error

    def remember(self, checkpoint: Checkpoint, clock: Clock) -> None:
        """Record the log that is here now."""
        for path, file in zip(self.paths, self.files(), strict=True):
            if self._remembered(file) != checkpoint:
                os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
                replace(file, _text(path, self.tenant, checkpoint), clock)

    def earlier(self) -> frozenset[str]:
        """Return the logs that lay here before a new epoch began: a backup of such a log is an older copy."""
        found = (self._remembered(path) for file in self.files() for path in _aside(file, ".json"))
        return frozenset(one.log for one in found if one is not None)

    def reason(self, epoch: int) -> str | None:
        """Return time and reason of the end of an epoch here; None if none is recorded."""
        text = read(f"{self.files()[0].removesuffix('.json')}.epoch-{epoch}.reason")
        return None if text is None else text.strip().replace(" ", ": ", 1)

    def put_aside(self, epoch: int, reason: str, seen: Checkpoint | None, clock: Clock) -> None:
        """Archive the remembered state, with the reason why it no longer counts.

        If there was none, archive the last checkpoint that the signer had `seen` of the log here.
        """
        for path, file in zip(self.paths, self.files(), strict=True):
            before = self._remembered(file) or seen
            if before is not None:
                os.makedirs(os.path.dirname(file), mode=0o700, exist_ok=True)
                aside = f"{file.removesuffix('.json')}.epoch-{epoch}"
                replace(f"{aside}.json", _text(path, self.tenant, before), clock)
                replace(f"{aside}.reason", f"{clock.now()} {reason}\n", clock)


def _aside(file: str, end: str) -> list[str]:
    """Return the files that were put aside beside one."""
    folder, name = os.path.split(file)
    begins = f"{name.removesuffix('.json')}.epoch-"
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join(folder, each) for each in names if each.startswith(begins) and each.endswith(end)]


def check_there(keys: str | None, path: str | None, tenant: str) -> None:
    """Refuse to read a file without a byte in it where a log is remembered to lie: it is not a new ledger."""
    if keys is None or path is None:
        return
    try:
        if os.path.getsize(path):
            return
    except OSError:
        return
    location = Location.at(Keys(keys), path, tenant)
    for known in location.remembered():
        if known.size:
            raise Corrupt(
                f"{location}: the keys folder remembers {known.log} with {known.size} entries here, root "
                f"{known.root.hex()}, and the file has 0 bytes. Nothing was read. Restore the database from a backup, "
                "or, if you emptied it yourself, accept that with `woodrat checkpoint --new-epoch REASON`.",
                {"damage": "switched", "path": location.paths[0], "remembered": known.to_json(), "size": 0},
            )


def _text(path: str, tenant: str, checkpoint: Checkpoint) -> str:
    document = {
        "epoch": checkpoint.epoch,
        "format": 0,
        "log": checkpoint.log,
        "path": path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"),
        "root": checkpoint.root.hex(),
        "size": checkpoint.size,
        "tenant": tenant,
    }
    return serialise(document).decode() + "\n"


def _checkpoint(document: Any) -> Checkpoint:
    log, size, root, epoch = document["log"], document["size"], bytes.fromhex(document["root"]), document["epoch"]
    if document["format"] != 0 or not isinstance(log, str) or len(root) != HASH_BYTES:
        raise ValueError("written by another version")
    if type(size) is not int or not 0 <= size <= SIZE_MAX or type(epoch) is not int or epoch < 1:
        raise ValueError("not a size or an epoch")
    return Checkpoint(log, size, root, epoch_line(epoch))


def epoch_line(epoch: int) -> tuple[str, ...]:
    """Return the further line that a checkpoint of an epoch has."""
    return (f"epoch {epoch}",) if epoch > 1 else ()
