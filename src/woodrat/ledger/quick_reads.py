"""Quick reads: what only some engines answer, and what holds where they do not.

A glance is a second way to an answer that a view gives, and the contract kit compares the two.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import cast

from woodrat.canon.ids import Ref, TenantId
from woodrat.engines.port import Engine, Glance, Glances, Replicas, Shared, Stamps, View
from woodrat.state.schema import Schema


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
