"""The pending search: the search terms left after an erasure, stored with the erasure itself.

It becomes durable in the erasing transaction, so that any process with the erasure key can finish the search. The terms
are sealed (`erasure/seal.py`): nobody can read them without the key, which is not in the database. The record is
removed when a search has found none of the terms.
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
"""Search terms longer than this are not stored: then only the erasing process can search."""


@dataclass(frozen=True, slots=True)
class PendingSearch:
    """The pending searches of a tenant's erasures."""

    sought: frozenset[bytes]
    """Terms that no file may contain."""
    words: frozenset[bytes]
    """Terms that no file may contain unless a row contains them again by now."""
    certificates: tuple[Certificate, ...]
    """The effects of these erasures, as known before the search."""
    name: str = ""
    """Distinguishes it from the search of a later erasure, which has more terms."""


def note(
    write: Transaction,
    key: bytes,
    clock: Clock,
    sought: frozenset[bytes],
    words: frozenset[bytes],
    certificate: Certificate,
) -> PendingSearch:
    """Store the search terms of an erasure, merged with the pending ones; return all of them."""
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
    """Return the pending search terms; `None` if there are none, or another key sealed them."""
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
    """Remove the pending search, unless another erasure has added to it meanwhile."""
    with engine.transaction(tenant) as write:
        sealed = write.meta(SEARCH)
        if sealed is not None and _name(sealed) == search.name:
            write.set_meta(SEARCH, None)


def _name(sealed: bytes) -> str:
    return sha256(sealed).hexdigest()
