"""Workers: processes that answer heavy reads, so that the serving process keeps its interpreter to itself.

A worker is started on demand, opens the database read-only, runs at low priority and answers one job after the other. A
cancelled job ends its process; the next job gets a new one. When the server is gone, so are its workers.

A worker sends pickled objects: its progress, any number of times, then the answer.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.engines.cancellation import Cancellation, Cancelled, here
from woodrat.errors import Unavailable, WoodratError
from woodrat.ledger.progress import seldom
from woodrat.merge import BUILTIN
from woodrat.server import memory

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from woodrat.engines.engine import Engine
    from woodrat.ledger.progress import Progress
    from woodrat.merge import Policy
    from woodrat.server.heavy_reads import Job
    from woodrat.server.tenants import Tenants

NICE: Final = 15
"""Niceness of a worker relative to the serving process."""
END_SECONDS: Final = 1.0
"""Time for an idle worker to exit."""
TELL_SECONDS: Final = 0.25
"""Interval between progress messages."""

_BEGIN: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from woodrat.server.workers import serve; sys.exit(serve())"
)


class WorkerConfig(NamedTuple):
    """Configuration of a worker."""

    opener: Callable[[], Engine]
    """Opens the database, to read."""
    strict: bool | str
    """True if types without a schema are refused."""
    proofs: str | None
    """The folder of signing keys."""
    redact: str | None
    """Redacted keys, which never reach the log."""


def plan_for(
    engine: Engine, policies: Mapping[str, Policy], proofs: str | None, redact: str | None, *, strict: bool | str
) -> WorkerConfig | None:
    """Return the configuration with which another process can open the ledger; None if it cannot, or would merge
    differently.
    """
    opener = engine.elsewhere()
    if opener is None or set(policies) != set(BUILTIN):
        return None
    return WorkerConfig(opener, strict, proofs, redact)


class WorkerFailed(Exception):
    """A worker failed by a bug: class and place of the error; its message may hold contents."""


class Workers:
    """The workers of a server. Thread-safe; each job has a worker to itself."""

    def __init__(self, plan: WorkerConfig) -> None:
        self._plan = plan
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self.alive: set[Worker] = set()
        """Running workers."""
        self._closed = False
        self.started = 0
        """Number of workers started so far."""

    def ask(self, job: Job, tell: Progress | None = None) -> Any:
        """Return the answer to a job, or raise its error; if this thread's work is cancelled, the process ends.

        `tell` gets the progress, if the job reports it.
        """
        cancellation = here() or Cancellation()
        worker = self._take()
        with cancellation.calling(worker.kill):
            answered, answer = worker.ask(job, tell)
        if not answered:
            self._end(worker)
            if cancellation.cancelled:
                raise Cancelled("The work was cancelled, as nobody waits for it. Nothing was changed. Ask again.")
            raise Unavailable("The worker process ended. Nothing was changed. Ask for less, or ask again later.")
        self._give_back(worker)
        if "failed" in answer:
            raise WorkerFailed(answer["failed"])
        if "code" in answer:
            raise _error(answer)
        return answer["answer"]

    def _take(self) -> Worker:
        with self._lock:
            if self._closed:
                raise Unavailable("The server is shutting down. Nothing was done. Send the same call again later.")
            if self._idle:
                return self._idle.pop()
            worker = Worker(self._plan)
            self.alive.add(worker)
            self.started += 1
            return worker

    def _give_back(self, worker: Worker) -> None:
        with self._lock:
            if not self._closed:
                self._idle.append(worker)
                return
        self._end(worker)

    def _end(self, worker: Worker) -> None:
        worker.end()
        with self._lock:
            self.alive.discard(worker)

    def close(self) -> None:
        """Kill every worker."""
        with self._lock:
            self._closed = True
            workers = list(self.alive)
            self._idle.clear()
        for worker in workers:
            worker.kill()
        for worker in workers:
            worker.end()


class Worker:
    """One worker, seen from the serving process."""

    def __init__(self, plan: WorkerConfig) -> None:
        command = [sys.executable, "-c", _BEGIN, json.dumps(sys.path)]
        # A session of its own: Ctrl-C reaches the server alone.
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=os.name == "posix"
        )
        self._plan: WorkerConfig | None = plan
        self._ending = threading.Lock()

    def ask(self, job: Job, tell: Progress | None = None) -> tuple[bool, Any]:
        """Return a success flag and the answer; `tell` gets the progress until then."""
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            if self._plan is not None:
                pickle.dump(self._plan, self.process.stdin)
                self._plan = None
            pickle.dump(job, self.process.stdin)
            self.process.stdin.flush()
            while "progress" in (message := pickle.load(self.process.stdout)):
                if tell is not None:
                    tell(*message["progress"])
            return True, message
        except (EOFError, OSError, ValueError, pickle.UnpicklingError):
            return False, None

    def kill(self) -> None:
        """Kill the process."""
        with self._ending:
            if self.process.poll() is None:
                self.process.kill()

    def end(self) -> None:
        """Kill the process, and wait for its end."""
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            with suppress(OSError, ValueError):
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(END_SECONDS)
        self.kill()
        self.process.wait()


def _error(told: dict[str, Any]) -> WoodratError:
    from woodrat.api.transport import error_of

    return error_of(500, told)


# -- the other process ------------------------------------------------------------------------------------------------


def serve() -> int:
    """Answer the jobs from standard input until it ends."""
    import signal

    from woodrat.clock import SystemClock
    from woodrat.ledger.own_policy import registry
    from woodrat.replay.workers.messages import take_standard_streams
    from woodrat.server.tenants import Tenants

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(OSError):
        os.nice(NICE)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
        file.write("500")  # if memory runs out, this process dies before the server
    memory.bound()
    jobs, answers = take_standard_streams()
    plan = jobs.next()
    if plan is None:
        return 0
    # a read-only engine signs nothing, and knows the last signature
    ledgers = Tenants(
        plan.opener(), SystemClock(), registry(()), strict=plan.strict, proofs=plan.proofs, redact=plan.redact
    )

    def send(message: dict[str, Any]) -> None:
        pickle.dump(message, answers)
        answers.flush()

    while (job := jobs.next()) is not None:
        send(answer_to(job, ledgers, lambda done, whole: send({"progress": (done, whole)})))
    return 0


def answer_to(job: Job, ledgers: Tenants, tell: Progress) -> dict[str, Any]:
    """Return the answer to a job, or its error, as bytes; `tell` gets the progress, if the job reports it."""
    given = {**job.given, "progress": seldom(tell, TELL_SECONDS)} if job.tells else dict(job.given)
    try:
        return {"answer": job.answer(ledgers.of(job.tenant, job.agent), given)}
    except WoodratError as error:
        return {"code": error.code, "detail": str(error), "details": error.details}
    except Exception as error:
        import traceback

        places = [f"{frame.name}:{frame.lineno}" for frame in traceback.extract_tb(error.__traceback__)[-8:]]
        return {"failed": f"{type(error).__name__} at {', '.join(places)}"}
