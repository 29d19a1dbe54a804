"""Crashing: an engine that fails at a chosen call."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final, cast

from woodrat.canon.ids import TenantId
from woodrat.engines.engine import Engine, Storage
from woodrat.engines.records import NOTHING_ASKED, Asks
from woodrat.engines.transaction import Transaction
from woodrat.engines.view import View


class Crash(BaseException):
    """Raised by a `CrashingEngine`; as unexpected as a power cut."""


VERBS: Final = ("append", "keep", "claim", "put")
"""The verbs of a transaction that change something."""

ERASING: Final = ("erase", "forget", "derive", "keep", "drop", "put", "append")
"""The verbs of a transaction that erases."""

REDERIVING: Final = ("drop_derived", "derive", "keep", "put")
"""The verbs of a transaction that derives everything again."""


class CrashingEngine(Engine):
    """An engine that fails once, at one call of one verb of a transaction, before the call or after it."""

    def __init__(self, engine: Engine, error: type[BaseException] = Crash) -> None:
        self.inner = engine
        self.name, self.location = engine.name, engine.location
        self.error = error
        self.armed: tuple[str, int, bool] | None = None
        """The verb, the number of its calls that pass first, and whether the failing call is still carried out."""

    def arm(self, verb: str, passing: int = 0, *, after: bool = False) -> None:
        """Fail at a later call of a verb; after one failure, all calls succeed again."""
        assert verb in VERBS + ERASING + REDERIVING
        self.armed = (verb, passing, after)

    def disarm(self) -> None:
        """Let all go well."""
        self.armed = None

    def view(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> AbstractContextManager[View]:
        """Open a view of the engine inside."""
        return self.inner.view(tenant, asks)

    @contextmanager
    def transaction(self, tenant: TenantId, asks: Asks = NOTHING_ASKED) -> Iterator[Transaction]:
        """Open a transaction of the inner engine, wrapped."""
        with self.inner.transaction(tenant, asks) as write:
            yield cast(Transaction, _Crashing(write, self))

    def purge(self) -> bool:
        """Purge the engine inside."""
        return self.inner.purge()

    def purged(self) -> bool:
        """Ask the engine inside."""
        return self.inner.purged()

    def storage(self, tenant: TenantId) -> Storage:
        """Ask the engine inside."""
        return self.inner.storage(tenant)

    def together(self, tenants: Iterable[TenantId] = ()) -> AbstractContextManager[None]:
        """Share a commit of the engine inside."""
        return self.inner.together(tenants)

    def tenants(self) -> list[str]:
        """Name the tenants."""
        return self.inner.tenants()

    def close(self) -> None:
        """Close the engine inside."""
        self.inner.close()


class _Crashing:
    """A transaction that forwards every call except the armed one."""

    def __init__(self, write: Transaction, engine: CrashingEngine) -> None:
        self._write = write
        self._engine = engine

    def __getattr__(self, verb: str) -> Any:
        found = getattr(self._write, verb)
        if self._engine.armed is None or self._engine.armed[0] != verb:
            return found

        def call(*args: Any, **kwargs: Any) -> Any:
            if self._engine.armed is None:
                return found(*args, **kwargs)
            _, passing, after = self._engine.armed
            if passing:
                self._engine.arm(verb, passing - 1, after=after)
                return found(*args, **kwargs)
            self._engine.disarm()
            if after:
                found(*args, **kwargs)
            raise self._engine.error(f"at {verb}")

        return call
