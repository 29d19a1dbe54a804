"""The pending search: what is still to be looked for in the files after an erasure, noted with the erasure itself.

It becomes durable in the transaction that erases, so that any process with the erasure key can finish what another
began. What is sought is sealed (`erasure/seal.py`): nobody can read it without the key, which is not in the database.
When a search has found none of it the note goes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from woodrat import record_json
from woodrat.erasure import seal
from woodrat.erasure.certificate import Certificate
from woodrat.ledger.erasures import SEARCH
from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.canon.ids import TenantId
    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine
    from woodrat.engines.transaction import Transaction
    from woodrat.engines.view import View

SEALED_BYTES_MAX: Final = 8 << 20
"""What is sought in more bytes than this is not noted: then only the process that erased can search."""


@dataclass(frozen=True, slots=True)
class PendingSearch:
    """What erasures of a tenant still have to look for."""

    sought: frozenset[bytes]
    """What no file may hold."""
    words: frozenset[bytes]
    """What no file may hold unless a row holds it again by now."""
    certificates: tuple[Certificate, ...]
    """What these erasures did, as far as it is known before the search."""
    name: str = ""
    """What tells it from the search of a later erasure, which has more to look for."""


def note(
    write: Transaction,
    key: bytes,
    clock: Clock,
    sought: frozenset[bytes],
    words: frozenset[bytes],
    certificate: Certificate,
) -> PendingSearch:
    """Note what an erasure has to look for, with what those before it still have to; return all of it."""
    import json

    before = pending(write, key)
    if before is not None:
        sought, words = sought | before.sought, words | before.words
    certificates = (*(before.certificates if before is not None else ()), certificate)
    plain = {
        "certificates": [one.to_json() for one in certificates],
        "sought": sorted(one.hex() for one in sought),
        "words": sorted(one.hex() for one in words),
    }
    sealed = seal.seal(key, clock.random(seal.NONCE_BYTES), json.dumps(plain).encode())
    if len(sealed) <= SEALED_BYTES_MAX:
        write.set_meta(SEARCH, sealed)
    return PendingSearch(sought, words, certificates, _name(sealed))


def is_pending(view: View) -> bool:
    """Return whether an erasure waits for the search of the files."""
    return view.meta(SEARCH) is not None


def pending(view: View, key: bytes | None) -> PendingSearch | None:
    """Return what is still to be looked for; `None` if nothing is, or the key here is not the one that sealed it."""
    import json

    sealed = view.meta(SEARCH)
    data = None if sealed is None or key is None else seal.unseal(key, sealed)
    if sealed is None or data is None:
        return None
    plain = json.loads(data)
    return PendingSearch(
        frozenset(bytes.fromhex(one) for one in plain["sought"]),
        frozenset(bytes.fromhex(one) for one in plain["words"]),
        tuple(record_json.read(Certificate, one) for one in plain["certificates"]),
        _name(sealed),
    )


def settle(engine: Engine, tenant: TenantId, search: PendingSearch) -> None:
    """Take the note away, unless another erasure has added to it meanwhile."""
    with engine.transaction(tenant) as write:
        sealed = write.meta(SEARCH)
        if sealed is not None and _name(sealed) == search.name:
            write.set_meta(SEARCH, None)


def _name(sealed: bytes) -> str:
    return sha256(sealed).hexdigest()
