"""Worker messages: the requests to a worker process, one pickled message after the other."""

from __future__ import annotations

import os
import pickle
import threading
from queue import SimpleQueue
from typing import IO, Any


class WorkerMessages:
    """The incoming messages; if the sender is gone in the middle of the work, this process ends too."""

    def __init__(self, asked: IO[bytes]) -> None:
        self._asked = asked
        self._come: SimpleQueue[Any] = SimpleQueue()
        self._idle = True
        threading.Thread(target=self._receive, daemon=True).start()

    def _receive(self) -> None:
        """Receive messages until there are no more."""
        try:
            while True:
                self._come.put(pickle.load(self._asked))
        except (EOFError, OSError):
            if not self._idle:
                os._exit(1)
            self._come.put(None)

    def next(self) -> Any:
        """Return the next message, `None` at the end."""
        self._idle = True
        found = self._come.get()
        self._idle = False
        return found


def take_standard_streams() -> tuple[WorkerMessages, IO[bytes]]:
    """Return the messages of standard input, and standard output for the answers; both are closed to everything else.

    Other prints of this process go to standard error, and it reads nothing.
    """
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    return WorkerMessages(asked), answers
