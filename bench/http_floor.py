"""`python -m bench.http_floor PORT BYTES`: the server's stack with a handler that reads the body and answers so much.

It has the settings of the product's server. What a call costs here no handler on this stack can save.
"""

from __future__ import annotations

import sys
from typing import Any

from woodrat.server.serve import Serving


class Floor:
    """An application that answers every request with the same bytes once it has its body."""

    def __init__(self, length: int) -> None:
        self._body = b"x" * length
        self._headers = [(b"content-type", b"application/json"), (b"content-length", str(length).encode())]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while (await receive())["type"] == "lifespan.startup":
                await send({"type": "lifespan.startup.complete"})
            await send({"type": "lifespan.shutdown.complete"})
            return
        while (await receive()).get("more_body"):
            pass
        await send({"type": "http.response.start", "status": 200, "headers": self._headers})
        await send({"type": "http.response.body", "body": self._body})

    def refuse(self) -> None:
        """Nothing is open that would have to end."""

    def close(self) -> None:
        """Nothing waits."""


def main() -> None:
    """Serve until asked to end."""
    port, length = map(int, sys.argv[1:3])
    Serving(Floor(length), "127.0.0.1", port).run()  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
