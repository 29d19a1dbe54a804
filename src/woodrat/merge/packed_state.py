"""Packed state: merge state as bytes, and the properties readable without unpacking."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from woodrat.canon.ids import Ref
from woodrat.merge.elements import Parts, Rows
from woodrat.merge.fold import Marker, MergeState, Stratum
from woodrat.merge.packing import Packer, Unpacker, digest_text, pack_said, text_digest, unpack_said
from woodrat.merge.rules import Rules

PACKING = 7
"""How merge state is packed; state packed otherwise is folded again."""
AMOUNTS_BYTES = 48
"""Length of the prefix of packed state that `amounts` needs."""


def pack(state: MergeState, rules: Rules, *, apart: bool = False) -> bytes:
    """Return merge state as bytes that `unpack` gives back; derived data, and no format.

    With `apart`, the parts of spread collections are omitted: they are stored one by one.
    """
    members, _, strata, against, held, claims, misfits, markers, live, observations, until, body_bytes = state
    packer = Packer()
    packed: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name in sorted(held):  # the order in which observations get their indexes
        kept, policy = held[name], rules.policy(name)
        if apart and policy.gathered is not None and kept.is_spread:
            rest[name] = [len(kept.parts), policy.pack_rest(kept, packer)]
        else:
            packed[name] = policy.pack(kept, packer)
    standing = [
        [digest_text(member), [[digest_text(marker.digest), marker.deletes] for marker in markers[member]]]
        for member in sorted(markers)
    ]
    return orjson.dumps(
        [
            PACKING,
            observations,  # with the next one at the beginning, where `amounts` finds them
            body_bytes,
            None if len(members) == 1 else [(member.type, member.key) for member in members],
            rules.merging_text,
            [(*pack_said(said), values) for said, values in strata],
            against or None,
            claims,
            live,
            until,
            [misfits, standing, packed, packer.saids, rest] if held or misfits or standing else None,
        ],
        option=orjson.OPT_SORT_KEYS,  # so that packing does not depend on the order of arrival
    )


def same_state(one: MergeState, other: MergeState, rules: Rules, *, apart: bool = False) -> bool:
    """Return True if two merge states are equal to the byte; with `apart`, except for parts stored one by one."""
    return pack(one, rules, apart=apart) == pack(other, rules, apart=apart)


def unpack(data: bytes, root: Ref, rules: Rules, rows: Callable[[str], Rows] | None = None) -> MergeState | None:
    """Return merge state of a fold from bytes; `None` when other rules merged it, or it was packed otherwise.

    `rows` finds the parts of a collection that were packed apart, by field.
    """
    packing, *parts = orjson.loads(data)
    if packing != PACKING or parts[3] != rules.merging_text:
        return None
    observations, body_bytes, members, _, strata, against, claims, live, until, more = parts
    misfits, standing, held, saids, rest = more or ({}, (), {}, (), {})
    unpacker = Unpacker(saids)
    found = {name: rules.policy(name).unpack(kept, unpacker) for name, kept in held.items()}
    for name, (count, kept) in rest.items():
        policy = rules.policy(name)
        assert rows is not None and policy.gathered is not None, "parts packed separately are in rows"
        lying = Parts.kept(count, rows(name), policy.gathered.unpack_part)
        found[name] = policy.unpack_rest(kept, lying, unpacker)
    return MergeState(
        (root,) if members is None else tuple([Ref(type, key) for type, key in members]),
        rules.merging,
        tuple([Stratum(unpack_said(parts), parts[-1]) for parts in strata]),
        against or {},
        found,
        claims,
        misfits,
        {
            text_digest(member): tuple(Marker(text_digest(digest), deletes) for digest, deletes in stood)
            for member, stood in standing
        },
        live,
        observations,
        until,
        body_bytes,
    )


def amounts(data: bytes) -> tuple[int, int] | None:
    """Return the number of observations in packed state, and the size of their bodies.

    `data` is the state or its first `AMOUNTS_BYTES`; `None` when it was packed otherwise.
    """
    packing, observations, body_bytes, *_ = data.split(b",", 3)
    return (int(observations), int(body_bytes)) if packing == b"[%d" % PACKING else None
