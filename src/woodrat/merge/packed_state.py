"""Packed state: merge state as bytes, and what they show without being unpacked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson

from woodrat.canon.form import Json
from woodrat.canon.ids import Ref
from woodrat.merge import Claim, Held, claim_of, fold
from woodrat.merge.elements import Parts, Rows
from woodrat.merge.fold import Marker, MergeState, Stratum
from woodrat.merge.packing import Packer, Unpacker, digest_text, pack_said, text_digest, unpack_said
from woodrat.merge.ranked import Ranked
from woodrat.merge.rules import Rules
from woodrat.state.observation import ASSERT, Observation

PACKING = 6
"""How merge state is packed; state packed otherwise is folded again."""
AMOUNTS_BYTES = 48
"""How much of packed state is enough for `amounts`."""
CORRECTS = b",true,["
"""What packed state holds wherever a correction stands: that an observation corrects, before those that it names."""


def pack(state: MergeState, rules: Rules, *, apart: bool = False) -> bytes:
    """Return merge state as bytes that `unpack` gives back; derived data, and no format.

    With `apart` the parts of spread collections are left out: they are kept one by one.
    """
    members, _, strata, rivals, held, claims, misfits, markers, live, observations, until, body_bytes = state
    more = _pack_rest(misfits, markers, held, rules, apart) if held or misfits or markers else None
    return orjson.dumps(
        [
            PACKING,
            observations,  # with the next one at the beginning, where `amounts` finds them
            body_bytes,
            None if len(members) == 1 else [(member.type, member.key) for member in members],
            rules.merging_text,
            [
                (said[0].hex(), said[1], said[2], said[3], 1 if said[7] else 0, values)
                if not (said[4] or said[5] or said[6])  # as `pack_said`, of which there would be two for each state
                else (*pack_said(said), values)
                for said, values in strata
            ],
            rivals or None,
            claims,
            live,
            until,
            more,
        ],
        option=orjson.OPT_SORT_KEYS,  # so that what was sent in another order is packed alike
    )


def _pack_rest(
    misfits: Mapping[str, int],
    markers: Mapping[bytes, tuple[Marker, ...]],
    held: Mapping[str, Held],
    rules: Rules,
    apart: bool,
) -> list[Any]:
    """Return what only some states have."""
    packer = Packer()
    standing = markers and [
        [digest_text(member), [[digest_text(marker.digest), marker.deletes] for marker in found]]
        for member, found in markers.items()
    ]
    packed: dict[str, Any] = {}
    rest: dict[str, Any] = {}
    for name in sorted(held) if len(held) > 1 else held:  # the order in which observations get their places
        kept, policy = held[name], rules.policy(name)
        if apart and policy.gathered is not None and kept.is_spread:
            rest[name] = [len(kept.parts), policy.pack_rest(kept, packer)]
        else:
            packed[name] = policy.pack(kept, packer)
    return [misfits, standing or (), packed, packer.saids, rest]


def same_packed(one: bytes, other: bytes) -> bool:
    """Return whether two packed states are the same but for the order of members; False does not say that they differ.

    What a record was sent with stands in the order it was sent in, and what is read from the log in that of the log.
    """
    if one == other:
        return True
    if len(one) != len(other):
        return False
    try:
        left, right = (orjson.dumps(orjson.loads(data), option=orjson.OPT_SORT_KEYS) for data in (one, other))
    except ValueError:
        return False
    return left == right


def unpack(data: bytes, root: Ref, rules: Rules, rows: Callable[[str], Rows] | None = None) -> MergeState | None:
    """Return merge state of a fold from bytes; `None` when other rules merged it, or it was packed otherwise.

    `rows` finds the parts of a collection that were packed apart, by field.
    """
    packing, *parts = orjson.loads(data)
    if packing != PACKING or parts[3] != rules.merging_text:
        return None
    observations, body_bytes, members, _, strata, rivals, claims, live, until, more = parts
    misfits, packed, held, saids, rest = more or ({}, (), {}, (), {})
    unpacker = Unpacker(saids)
    found = {name: rules.policy(name).unpack(kept, unpacker) for name, kept in held.items()} if held else held
    for name, (count, kept) in rest.items():
        policy = rules.policy(name)
        assert rows is not None and policy.gathered is not None, "what is packed apart is found in rows"
        lying = Parts.kept(count, rows(name), policy.gathered.unpack_part)
        found[name] = policy.unpack_rest(kept, lying, unpacker)
    return MergeState(
        (root,) if members is None else tuple([Ref(type, key) for type, key in members]),
        rules.merging,
        tuple([Stratum(unpack_said(parts), parts[-1]) for parts in strata]),
        rivals or {},
        found,
        claims,
        misfits,
        {
            text_digest(member): tuple(Marker(text_digest(digest), deletes) for digest, deletes in standing)
            for member, standing in packed
        }
        if packed
        else {},
        live,
        observations,
        until,
        body_bytes,
    )


def amounts(data: bytes) -> tuple[int, int] | None:
    """Return how many observations packed state was folded from, and how many bytes their bodies have.

    `data` is the state or its first `AMOUNTS_BYTES`; `None` when it was packed otherwise.
    """
    packing, observations, body_bytes, *_ = data.split(b",", 3)
    return (int(observations), int(body_bytes)) if packing == b"[%d" % PACKING else None


def shown(data: bytes, rules: Rules) -> dict[str, Json] | None:
    """Return the values that packed state shows, without what else is in it; `None` when only `unpack` can tell.

    That is so of groups, of what may be deleted or gone, of fields with equal ranks, and of collections kept apart.
    """
    plain = _plain(data, rules)
    if plain is None:
        return None
    found, held, saids, _ = plain
    if held:
        unpacker = Unpacker(saids)
        for name, kept in held.items():
            found[name] = rules.policy(name).packed_value(kept, unpacker)
    return found


def _plain(data: bytes, rules: Rules) -> tuple[dict[str, Json], Mapping[str, Any], Sequence[Any], str] | None:
    """Return what lies in the strata of packed state, what is held, by which observations, and when it was seen last.

    `None` where more than that would have to be known to show it.
    """
    packing, *parts = orjson.loads(data)
    if packing != PACKING:
        return None
    _, _, members, merging, strata, _, _, live, _, more = parts
    if merging != rules.merging_text or members is not None or not live:
        return None
    found: dict[str, Json] = {}
    seen, priority = "", None
    below: Mapping[str, Json] = {}
    level: set[str] | None = None
    for stratum in strata:
        if stratum[1] == seen and stratum[2] == priority:
            level = set(below) if level is None else level
            if not level.isdisjoint(stratum[-1]):
                return None
            level.update(stratum[-1])
        else:
            level = None
        seen, priority, below = stratum[1], stratum[2], stratum[-1]
        found.update(below)
    if more is None:
        return found, {}, (), seen
    _, markers, held, saids, rest = more
    return None if markers or rest else (found, held, saids, seen)


def shown_with(data: bytes | None, since: Sequence[Observation], rules: Rules) -> dict[str, Json] | None:
    """Return the values that packed state shows with some observations folded in; `None` when only a fold can tell.

    Nothing may name any of them. Told are assertions that fit, each seen later than all before, of fields without a
    correction under `latest` and ranked policies; and of the state what `shown` tells.
    """
    found: dict[str, Json] = {}
    held: Mapping[str, Any] = {}
    saids: Sequence[Any] = ()
    latest = ""
    if data is not None:
        plain = _plain(data, rules)
        if plain is None:
            return None
        found, held, saids, latest = plain
    names: tuple[str, ...] = ()
    apart: tuple[str, ...] | None = ()
    described = False
    for observation in since:
        if observation.op != ASSERT or observation.remove or observation.replaces or observation.observed_at <= latest:
            return None
        latest = observation.observed_at
        fields = observation.fields
        if names != tuple(fields):
            names = tuple(fields)
            apart, described = rules.apart(names), rules.describes(names)
            if apart is None or any(name in fields and name not in apart for name in held):
                return None
        if described and not rules.fit_described(fields):
            return None
        found.update(fields)  # those apart are told below
    unpacker = Unpacker(saids)
    for name, kept in held.items():
        found[name] = rules.policy(name).packed_value(kept, unpacker)
    for name in rules.others(found):
        claims = [observation for observation in since if name in observation.fields]
        if claims:
            policy: Ranked = rules.policy(name)  # type: ignore[assignment]
            now = policy.unpack(held[name], unpacker) if name in held else None
            for observation in claims:
                if now is not None and policy.outranks(now, observation.fields[name]):
                    continue
                claim = claim_of(observation, name)
                if policy.misfit(claim, True) is not None:
                    return None
                now = policy.extend(now, claim, name, fold.UNNAMED, _fit)
            found[name] = policy.value(now)
    return found


def _fit(claim: Claim, states_value: bool) -> bool:
    return True
