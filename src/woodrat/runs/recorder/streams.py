"""Streams: generators that are recorded, run step by step in a place of their own.

A generator's code runs whenever somebody asks for the next item, and between items whoever asks goes on. So the current
run is made so for each step alone: what the generator does lands in its run, what its reader does meanwhile does not.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Generator
from contextlib import AbstractContextManager
from functools import partial
from inspect import isasyncgen, isasyncgenfunction, isgenerator, isgeneratorfunction
from types import FunctionType
from typing import Any, Final

from woodrat.runs.values import TRUNCATED

ITEMS_MAX: Final = 10_000
"""How many items of a stream are kept for its record."""
_STREAMS: Final = 0x20 | 0x200  # the flags of generators and of async ones

Around = Callable[[], AbstractContextManager[None]]
Finish = Callable[[BaseException | None, Any], None]
"""Called once when a stream is over: with what went wrong, and with what a generator returned.

Of one that its reader closed, `CLOSED` is what it returned.
"""
CLOSED: Final = object()


def is_stream(found: object) -> bool:
    """Return whether something is a generator, sync or async, that somebody is still to read."""
    return isgenerator(found) or isasyncgen(found)


def makes_stream(function: Callable[..., Any]) -> bool:
    """Return whether a function is a generator, sync or async."""
    if type(function) is FunctionType:
        return bool(function.__code__.co_flags & _STREAMS)
    return isgeneratorfunction(function) or isasyncgenfunction(function)


class Items:
    """What a stream has yielded, as its record shows it."""

    def __init__(self) -> None:
        self._kept: list[Any] = []
        self._count = 0

    def add(self, item: Any) -> None:
        """Take note of an item."""
        self._count += 1
        if self._count <= ITEMS_MAX:
            self._kept.append(item)

    @property
    def value(self) -> Any:
        """All items as a list; of a longer stream than is kept, the mark of one."""
        if self._count <= ITEMS_MAX:
            return list(self._kept)
        return {TRUNCATED: {"bytes": 2 * self._count, "preview": f"a stream of {self._count} items"}}

    @property
    def answer(self) -> Any:
        """The items as an answer: pieces of text are one text, anything else a list."""
        found = self.value
        return "".join(found) if found and isinstance(found, list) and all(type(i) is str for i in found) else found


def stream_of(inner: object, *, closed: bool, returned: Any) -> dict[str, Any]:
    """Return what the record of a call says of the stream that it returned."""
    said = {"async": isasyncgen(inner) or None, "closed": closed or None, "returned": returned}
    return {name: value for name, value in said.items() if value is not None}


def read_back(
    function: Callable[..., Any],
    items: Any,
    stream: Any,
    error: BaseException | None = None,
    passed: Callable[[], None] | None = None,
) -> Any:
    """Return recorded items as the function gave them: of a generator a generator, which fails where that failed.

    `passed` is called where somebody reads on after the place at which the first reader stopped.
    """
    if not isinstance(items, list) or not (isinstance(stream, dict) or makes_stream(function)):
        return items
    said = stream if isinstance(stream, dict) else {"async": isasyncgenfunction(function)}
    end = passed if said.get("closed") is True else None
    if said.get("async") is True:
        return _again_async(items, error, end)
    return _again(items, said.get("returned"), error, end)


def _again(
    items: list[Any], returned: Any, error: BaseException | None, passed: Callable[[], None] | None
) -> Generator[Any, Any, Any]:
    yield from items
    if passed is not None:
        passed()
    if error is not None:
        raise error
    return returned


async def _again_async(
    items: list[Any], error: BaseException | None, passed: Callable[[], None] | None
) -> AsyncIterator[Any]:
    for item in items:
        yield item
    if passed is not None:
        passed()
    if error is not None:
        raise error


def drained(found: Any) -> Any:
    """Return what a generator comes to when it is read to its end; of an async one a coroutine of that."""
    if isasyncgen(found):
        return _drained_async(found)
    return _drained(found) if isgenerator(found) else found


def _drained(inner: Generator[Any, Any, Any]) -> Any:
    items = Items()
    while True:
        try:
            items.add(next(inner))
        except StopIteration as stop:
            return items.answer if stop.value is None else stop.value


async def _drained_async(inner: AsyncGenerator[Any, Any]) -> Any:
    items = Items()
    async for item in inner:
        items.add(item)
    return items.answer


def streamed(
    inner: Any, around: Around, items: Items, finish: Finish, begin: Callable[[], object] | None = None
) -> Any:
    """Return a generator that reads another one step by step, each inside of a place, and tells when it is over.

    It begins when its first item is asked for. A reader who stops early is no failure: it is over then, with the items
    so far.
    """
    drive: Any = _driven_async if isasyncgen(inner) else _driven
    return drive(inner, around, items, finish, begin)


def _driven(
    inner: Generator[Any, Any, Any],
    around: Around,
    items: Items,
    finish: Finish,
    begin: Callable[[], object] | None,
) -> Generator[Any, Any, Any]:
    if begin is not None:
        begin()
    step: Callable[[], Any] = partial(next, inner)
    try:
        while True:
            try:
                with around():
                    item = step()
            except StopIteration as stop:
                returned = stop.value
                break
            items.add(item)
            try:
                sent = yield item
            except GeneratorExit:
                with around():
                    inner.close()
                raise
            except BaseException as error:
                step = partial(inner.throw, error)
            else:
                step = partial(inner.send, sent)
    except GeneratorExit:
        finish(None, CLOSED)
        raise
    except BaseException as error:
        finish(error, None)
        raise
    finish(None, returned)
    return returned


async def _driven_async(
    inner: AsyncGenerator[Any, Any],
    around: Around,
    items: Items,
    finish: Finish,
    begin: Callable[[], object] | None,
) -> AsyncGenerator[Any, Any]:
    from asyncio import to_thread

    if begin is not None:
        await to_thread(begin)
    step: Callable[[], Any] = partial(anext, inner)
    try:
        while True:
            try:
                with around():
                    item = await step()
            except StopAsyncIteration:
                break
            items.add(item)
            try:
                sent = yield item
            except GeneratorExit:
                with around():
                    await inner.aclose()
                raise
            except BaseException as error:
                step = partial(inner.athrow, error)
            else:
                step = partial(inner.asend, sent)
    except GeneratorExit:
        # A generator that is being closed may not wait for a worker thread: its loop may be gone.
        finish(None, CLOSED)
        raise
    except BaseException as error:
        await to_thread(finish, error, None)
        raise
    await to_thread(finish, None, None)
