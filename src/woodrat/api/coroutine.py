"""Coroutines: a verb of the library as an awaitable method, with the very same parameters and result.

    class AsyncLedger:
        store = coroutine(Ledger.store)

The ledger is synchronous; a call runs in a worker thread. The type checker reads parameters and result off the method
that is named, so a verb that gains a parameter gains it here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, overload

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


class Wraps(Protocol):
    """An object that wraps one of the library's; its methods are coroutines."""

    @property
    def target(self) -> Any:
        """The object of the library."""


class coroutine(Generic[P, T]):
    """One method of the library, as a coroutine."""

    def __init__(self, method: Callable[Concatenate[Any, P], T]) -> None:
        self._name = method.__name__
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, holder: None, kind: type) -> coroutine[P, T]: ...
    @overload
    def __get__(self, holder: Wraps, kind: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, holder: Wraps | None, kind: type) -> Any:
        if holder is None:
            return self
        method = getattr(holder.target, self._name)

        async def call(*arguments: P.args, **named: P.kwargs) -> T:
            result: T = await asyncio.to_thread(method, *arguments, **named)
            return result

        call.__name__, call.__doc__ = self._name, self.__doc__
        return call
