"""Growth: waiting until a log may have grown, by whomever it was written.

Writes of other processes are seen by looking for them. One thread looks for all who wait at an engine, by its version
stamp or what the engine has heard, so that hundreds of idle followers cost no more than one; an engine that hears of
commits wakes them at once. Where neither is known, all are woken each time and look for themselves.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary, ref

from woodrat.errors import WoodratError

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.engines.engine import Engine

LOOK_SECONDS: Final = 0.2
"""How often the thread looks."""
IDLE_LOOKS: Final = 25
"""After so many looks for nobody the thread ends; the next who waits starts another."""


class Growth:
    """Those who wait at one engine, and the thread that looks for them."""

    def __init__(self, engine: Engine) -> None:
        self._engine = ref(engine)
        self._lock = threading.Lock()
        self._waiting: dict[object, tuple[bytes | None, Callable[[], object]]] = {}
        self._looking = False
        engine.listen(self.wake)

    def stamp(self) -> bytes | None:
        """Return the stamp to wait with; to be asked for before the log is looked at."""
        engine = self._engine()
        return None if engine is None else engine.heard()

    def add(self, seen: bytes | None, wake: Callable[[], object]) -> object:
        """Have a function called once, by another thread, when the stamp is another than it was seen; return a token.

        Without a stamp it is called at the next look.
        """
        token = object()
        with self._lock:
            self._waiting[token] = (seen, wake)
            if not self._looking:
                self._looking = True
                threading.Thread(target=self._look, name="woodrat-growth", daemon=True).start()
        return token

    def remove(self, token: object) -> None:
        """Call it no more."""
        with self._lock:
            self._waiting.pop(token, None)

    def wait(self, seen: bytes | None, seconds: float) -> None:
        """Wait until the stamp is another than it was seen, or so many seconds have passed."""
        grown = threading.Event()
        token = self.add(seen, grown.set)
        try:
            grown.wait(seconds)
        finally:
            self.remove(token)

    async def wait_on_loop(self, seen: bytes | None, seconds: float) -> None:
        """Wait as `wait` does, on an event loop."""
        import asyncio  # only those who wait on a loop have it

        loop, grown = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(grown.set)

        token = self.add(seen, wake)
        try:
            async with asyncio.timeout(seconds):
                await grown.wait()
        except TimeoutError:
            pass
        finally:
            self.remove(token)

    def _look(self) -> None:
        pause, idle = threading.Event(), 0
        while idle < IDLE_LOOKS:
            pause.wait(LOOK_SECONDS)
            idle = 0 if self.wake() else idle + 1
            if idle == IDLE_LOOKS:
                with self._lock:
                    if self._waiting:
                        idle = 0
                    else:
                        self._looking = False

    def wake(self) -> bool:
        """Look once, and wake those for whom the stamp has changed; return whether anybody waited."""
        with self._lock:
            if not self._waiting:
                return False
        try:
            stamp = self.stamp()
        except WoodratError:  # it is closed, and says so to whoever asks
            stamp = None
        with self._lock:
            awake = [token for token, (seen, _) in self._waiting.items() if stamp is None or seen != stamp]
            calls = [self._waiting.pop(token)[1] for token in awake]
        for call in calls:
            call()
        return True


_GROWTHS: WeakKeyDictionary[Engine, Growth] = WeakKeyDictionary()
_LOCK = threading.Lock()


def growth_of(engine: Engine) -> Growth:
    """Return the one who looks for all that wait at an engine."""
    with _LOCK:
        found = _GROWTHS.get(engine)
        if found is None:
            found = _GROWTHS[engine] = Growth(engine)
        return found
