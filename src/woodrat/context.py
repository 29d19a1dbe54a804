"""The context: what a room is handed to do its work for one tenant.

The library makes one when a ledger is opened and hands it down; a room never asks the library for anything. It is a
value: to read at another moment, or to write as another agent, is to have another context (`records.replace`).
"""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from woodrat.records import dataclass, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from contextlib import AbstractContextManager
    from os import PathLike

    from woodrat.canon.ids import Ref, TenantId
    from woodrat.clock import Clock
    from woodrat.engines.engine import Engine
    from woodrat.engines.view import View
    from woodrat.log.erasure import Erasure, Link
    from woodrat.merge.policy import Policy
    from woodrat.state.schema import Schema


class Watch(Protocol):
    """Has a say before a write, and is told when it is durable; the signer of checkpoints is one."""

    def check(self) -> None:
        """Raise unless the log may be written to."""

    def wrote(self, position: int) -> None:
        """Hear that the log reaches to a position; never raises."""


class ErasureKeys(Protocol):
    """The folder of keys, as far as erasures need it."""

    @property
    def folder(self) -> str:
        """Where it is."""

    @property
    def erasure(self) -> bytes | None:
        """The erasure key; none where there is no such key."""

    def remember(self, erasures: Iterable[Erasure]) -> bool:
        """Note erasures that are not noted yet; return whether the folder could be written."""

    def erasures(self) -> Iterator[Erasure]:
        """Yield the erasures remembered there, of all logs."""


class Erasures(Protocol):
    """What was erased in a log, by what its erasures say and the erasure key recognises."""

    @property
    def keys(self) -> ErasureKeys:
        """The folder of keys."""

    @property
    def key(self) -> bytes | None:
        """The erasure key, once it was needed."""

    @property
    def macs(self) -> frozenset[str]:
        """What was erased, as MACs."""

    def follow(self, view: View) -> bool:
        """Take in what was erased since; return whether anything was ever erased and the key is here."""

    def record(self, kind: str, body: bytes) -> int | None:
        """Return the position of the erasure that took a record; `follow` comes first."""

    def name(self, name: str) -> int | None:
        """Return the position of the erasure that took what goes by a name."""

    def idempotency_key(self, agent: str, key: str) -> int | None:
        """Return the position of the erasure that took what an agent's idempotency key was used for."""

    def field(self, ref: Ref, field: str) -> bool:
        """Return whether a field of an entity was erased."""

    def link(self, digest: bytes) -> Link | None:
        """Return what stands in place of an erased observation; none of one that was not erased."""


class StandIn(Protocol):
    """Takes writes in place of the log: the recording of a run that is replayed."""

    def take(self, call: Any) -> Any:
        """Take a call (`ledger.write.Call`) and return its `Report`."""


@dataclass(frozen=True, slots=True)
class Context:
    """One tenant of an engine, at a moment on two clocks, and how it is written to."""

    engine: Engine
    """Where the log is kept."""
    tenant: TenantId
    """Whose log it is."""
    policies: Mapping[str, Policy]
    """The merge policies by name, a user's own included."""
    clock: Clock
    """Time, randomness and fresh ids."""
    agent: str = ""
    """Who writes; empty where nothing is written."""
    moment: int | str = "now"
    """The moment reads are answered at: a position, a time, `now`, a tag or a run."""
    valid_at: str | None = None
    """Reads count only what was true by this time; None: whenever it was true."""
    erasures: Erasures | None = None
    """What was erased here, and is not to come back; None where nobody asks."""
    watch: Watch | None = None
    """The signer of checkpoints, where there is one."""
    hidden: frozenset[str] = frozenset()
    """Keys whose values are redacted before anything is written."""
    keys: str | PathLike[str] | None = None
    """The folder of keys; None: the user's own."""
    stand_in: StandIn | None = None
    """Who takes writes in place of the log; None: the log does."""
    strict: frozenset[str] = frozenset()
    """What writes have to state: `types` refuses types without a schema, `times` observations without `observed_at`."""
    first_schemas: Mapping[str, Schema] | None = None
    """What types get with their first record, in place of a built-in schema or none."""
    served: bool = False
    """Whether a server answers here for many, and brings indexes on in the background: then a recall leaves to that
    what takes longer than a moment."""
    opened: View | None = None
    """A view that reads are answered from; None: each opens one."""

    def is_same_log(self, other: Context) -> bool:
        """Return whether another context is of the same log, also where the same file was opened twice."""
        if self.tenant != other.tenant:
            return False
        if self.engine is other.engine:
            return True
        location = self.engine.location
        return location is not None and location == other.engine.location

    def view(self) -> AbstractContextManager[View]:
        """Return the view that reads are answered from, or open one."""
        return self.engine.view(self.tenant) if self.opened is None else nullcontext(self.opened)

    def within(self, view: View | None) -> Context:
        """Return the same, answered from an open view, or with none from one that each read opens."""
        return self if view is self.opened else replace(self, opened=view)

    def at(self, moment: int | str, valid_at: str | None) -> Context:
        """Return the same at another moment on both clocks."""
        return self._copy(moment, valid_at, self.stand_in, self.first_schemas)

    def taken_by(self, stand_in: StandIn) -> Context:
        """Return the same with a stand-in that takes its writes."""
        return self._copy(self.moment, self.valid_at, stand_in, self.first_schemas)

    def offering(self, schemas: Mapping[str, Schema]) -> Context:
        """Return the same, where types get these schemas with their first record."""
        return self._copy(self.moment, self.valid_at, self.stand_in, schemas)

    def _copy(
        self,
        moment: int | str,
        valid_at: str | None,
        stand_in: StandIn | None,
        first_schemas: Mapping[str, Schema] | None,
    ) -> Context:
        # Three times as fast as `replace`: a snapshot as of a position takes little longer than this.
        return Context(
            self.engine,
            self.tenant,
            self.policies,
            self.clock,
            self.agent,
            moment,
            valid_at,
            self.erasures,
            self.watch,
            self.hidden,
            self.keys,
            stand_in,
            self.strict,
            first_schemas,
            self.served,
            self.opened,
        )
