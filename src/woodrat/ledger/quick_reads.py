"""Quick reads: what some engines answer in one look, and how the same is found through the core port otherwise.

An engine need not have any of them. Each is a second way to an answer that the core gives, and the contract kit
compares the two where an engine has both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import cast

from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import Engine, Glance, Glances, Kept, QuickStates, Replicas, Shared, Stamps, Unlike, View
from woodrat.merge.fold import MergeState
from woodrat.merge.rules import Rules
from woodrat.state.asof import Stored
from woodrat.state.schema import Schema

Current = Callable[[Ref, int, Rules], tuple[MergeState, int] | None]
"""Returns the merge state kept of a lone entity of which nothing was said since, and its version."""


def current_of(view: View) -> Current:
    """Return what finds the merge state kept of a lone entity, if nothing was said of it since; see `QuickStates`."""
    found: Current | None = getattr(view, "current", None)
    return partial(_current, view) if found is None else found


def _current(view: View, ref: Ref, through: int, rules: Rules) -> tuple[MergeState, int] | None:
    kept, version = view.kept(ref, through, rules), view.version(ref.digest, through)
    if kept is None or version is None or version > kept.position or len(kept.state.members) > 1:
        return None
    return kept.state, version


def kept_by(view: View, root: Ref, effective: str, through: int, rules: Rules) -> tuple[Kept, list[Stored]] | None:
    """Return the latest merge state all of which was true by a time, and what else was true by then that came after.

    `None` asks for a whole fold.
    """
    if not hasattr(view, "kept_by"):
        return None
    quick = cast("QuickStates", view)
    kept = quick.kept_by(root, effective, through, rules)
    return None if kept is None else (kept, list(quick.true_by(root.digest, effective, kept.position, through)))


def unlike(new: View, old: View) -> Iterator[tuple[Ref, bool]]:
    """Yield the entities of which two views may keep other states, with whether both know it, or neither."""
    if hasattr(new, "unlike"):
        yield from cast("Unlike", new).unlike(old)
        return
    head = new.head().position
    here, there = set(new.entities(None, head)), set(old.entities(None, head))
    for ref in sorted(here | there):
        yield ref, (ref in here) == (ref in there)


def glance(engine: Engine, tenant: TenantId, entity: Ref | str) -> Glance | None:
    """Return a lone entity, or one by its id, as it is now, in one look; `None` where only a view can tell."""
    return cast("Glances", engine).glance(tenant, entity) if hasattr(engine, "glance") else None


def glance_back(
    engine: Engine, tenant: TenantId, entity: Ref, position: int | None, effective: str | None
) -> Glance | None:
    """Return a lone entity as it was at a position, or at the log's end, of what was true by an effective time."""
    if not hasattr(engine, "glance_back"):
        return None
    return cast("Glances", engine).glance_back(tenant, entity, position, effective)


def schemas(engine: Engine, tenant: TenantId) -> Mapping[str, Schema] | None:
    """Return the schemas in force now, by type, in one look; `None` where only a view can tell."""
    return cast("Glances", engine).schemas(tenant) if hasattr(engine, "glance") else None


def stamp(engine: Engine) -> bytes | None:
    """Return what stays the same as long as nothing is committed, by whomever; `None` where that is not known."""
    return cast("Stamps", engine).stamp() if hasattr(engine, "stamp") else None


def view_at(engine: Engine, tenant: TenantId, through: int | str) -> AbstractContextManager[View]:
    """Open a view to read as of a position: it has all entries up to there, and maybe not the latest ones."""
    if isinstance(through, int) and hasattr(engine, "view_at"):
        return cast("Replicas", engine).view_at(tenant, through)
    return engine.view(tenant)


def heard(engine: Engine) -> bytes | None:
    """Return what is another soon after anything was committed, by whomever; `None` where that is not known."""
    return cast("Shared", engine).heard() if hasattr(engine, "heard") else stamp(engine)


def has_duty(engine: Engine, name: str) -> bool:
    """Return whether a duty that one server has at a time is this process's; where there is only one, it always is."""
    return cast("Shared", engine).has_duty(name) if hasattr(engine, "has_duty") else True
