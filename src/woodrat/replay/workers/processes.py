"""Processes: recorded runs replayed by several processes, each of which opens the ledger read-only.

A process is spawned instead of forked, imports the agent's function by name and replays one run after the other.
A process that dies or exceeds its time is reported for its run, and another replaces it. Prints of the agent go to
standard error; its standard input is empty.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import threading
from contextlib import suppress
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any, Final, NamedTuple

from woodrat.errors import Fault, Refused
from woodrat.ledger import entry_index
from woodrat.replay.reader import RelatedRuns, ReplaySession, replay_one
from woodrat.replay.result import DIED, TIMEOUT, Divergence, ReplayedRun
from woodrat.replay.workers.messages import take_standard_streams
from woodrat.runs.recorder.recording import in_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from woodrat.context import Context
    from woodrat.ledger.progress import Progress
    from woodrat.runs.recorder.run import Run

ENDING_SECONDS: Final = 2
"""Grace period for a finished process to end."""

_BEGIN: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop()); "
    "from woodrat.replay.workers.processes import serve; sys.exit(serve())"
)


class ProcessConfig(NamedTuple):
    """Configuration of a process."""

    path: str
    """The file the ledger is in."""
    tenant: str
    """The tenant."""
    agent: str
    """The agent of the ledger."""
    opener: str
    """The function that opens the ledger, as `module:function`."""
    function: str
    """The agent's function, as `module:function`."""
    live: frozenset[str]
    """Tools and models that run for real."""
    steps_max: int
    """Most steps of a run."""
    presented: Callable[[Run], Any] | None
    """Makes the function's argument from the run."""
    threads: bool
    """Whether all threads inherit the current run, as in the parent process."""


def name_of(agent: object) -> str | None:
    """Return the name by which another process can import a function, as `module:function`; None if there is none."""
    module, name = getattr(agent, "__module__", None), getattr(agent, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(name, str) or module == "__main__":
        return None
    return f"{module}:{name}" if _found(sys.modules.get(module), name) is agent else None


def _found(module: object, name: str) -> object:
    found = module
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def plan_faults(context: Context, function: str | None, opener: str | None) -> list[Fault]:
    """Return why other processes could not replay the runs of a ledger."""
    from woodrat.merge import BUILTIN

    faults: list[Fault] = []
    if context.engine.name != "sqlite":
        problem = f"this ledger is in {context.engine.name}, which other processes do not see"
        faults.append(Fault("jobs", problem, "Open a file, or leave out jobs and timeout_seconds."))
    if set(context.policies) != set(BUILTIN):
        own = ", ".join(sorted(set(context.policies) - set(BUILTIN)))
        problem = f"other processes do not have the merge policies {own}"
        faults.append(Fault("jobs", problem, "Leave out jobs and timeout_seconds."))
    if opener is None:
        problem = "other processes cannot open this ledger"
        faults.append(Fault("jobs", problem, "Replay through a ledger that woodrat.open made."))
    if function is None:
        problem = "other processes cannot import this function"
        remedy = "Send a function by its name in a module other than the main program, or leave out jobs."
        faults.append(Fault("agent", problem, remedy))
    return faults


# -- this process -----------------------------------------------------------------------------------------------------


def spread(
    context: Context,
    ids: Sequence[str],
    plan: ProcessConfig,
    around: RelatedRuns,
    *,
    jobs: int,
    timeout_seconds: float | None,
    progress: Progress | None,
) -> list[ReplayedRun]:
    """Replay runs in several processes and return the results, in the order of the runs.

    However this ends, no process is left behind.
    """
    pool = _Pool(context, ids, plan, around, timeout_seconds)
    threads = [threading.Thread(target=pool.work, daemon=True) for _ in range(min(jobs, len(ids)))]
    found: dict[int, ReplayedRun] = {}
    try:
        for thread in threads:
            thread.start()
        while len(found) < len(ids):
            if progress is not None:
                progress(len(found), len(ids))
            item = pool.results.get()
            if isinstance(item, BaseException):
                raise item
            found[item[0]] = item[1]
    finally:
        pool.stop()
        for thread in threads:
            if thread.ident is not None:
                thread.join()
    return [found[index] for index in range(len(ids))]


class _Pool:
    """The runs still to be replayed, and the processes at it."""

    def __init__(
        self,
        context: Context,
        ids: Sequence[str],
        plan: ProcessConfig,
        around: RelatedRuns,
        timeout_seconds: float | None,
    ) -> None:
        self.results: SimpleQueue[tuple[int, ReplayedRun] | BaseException] = SimpleQueue()
        self._context, self._plan, self._around, self._timeout_seconds = context, plan, around, timeout_seconds
        self._left: Iterator[tuple[int, str]] = iter(list(enumerate(ids)))
        self._lock = threading.Lock()
        self._children: set[Child] = set()
        self._stopped = False

    def work(self) -> None:
        """Replay one run after the other in a separate process."""
        child: Child | None = None
        try:
            while True:
                with self._lock:
                    index, id = (None, "") if self._stopped else next(self._left, (None, ""))
                if index is None:
                    break
                child = child or self._child()
                found = child.ask(id, _about(self._around, id), self._timeout_seconds)
                if isinstance(found, Divergence):
                    found = _unfinished_run(self._context, id, found)
                if child.gone:
                    self._end(child)
                    child = None
                self.results.put((index, found))
        except BaseException as problem:
            self.results.put(problem)
        finally:
            if child is not None:
                self._end(child)

    def _child(self) -> Child:
        with self._lock:
            if self._stopped:
                raise Refused([Fault("jobs", "the replay was ended", "Replay again.")])
            child = Child()
            self._children.add(child)
        child.begin(self._plan)
        return child

    def _end(self, child: Child) -> None:
        child.end()
        with self._lock:
            self._children.discard(child)

    def stop(self) -> None:
        """Kill every process."""
        with self._lock:
            self._stopped = True
            children = list(self._children)
        for child in children:
            child.kill()


class Child:
    """One process that replays, as seen from here."""

    def __init__(self) -> None:
        command = [sys.executable, "-c", _BEGIN, json.dumps(sys.path)]
        # A session of its own: Ctrl-C reaches this process alone, and the agent's child processes end with its process.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=os.name == "posix"
        )
        self._timed_out = False
        self.gone = False
        """Whether it accepts no more runs."""

    def begin(self, plan: ProcessConfig) -> None:
        """Send the configuration; `Refused` if the process cannot import the agent's function."""
        problem = self._exchange(plan)
        if problem is self:
            problem = f"importing it ended the process ({self._how()})"
        if problem is not None:
            remedy = "See standard error, and try it with one process."
            raise Refused([Fault("agent", f"{plan.function}: {problem}", remedy)], "Nothing was replayed.")

    def ask(self, id: str, around: RelatedRuns, timeout_seconds: float | None) -> ReplayedRun | Divergence:
        """Replay one run in the process; a divergence says if the process did not finish."""
        timer = None if timeout_seconds is None else threading.Timer(timeout_seconds, self._time_out)
        if timer is not None:
            timer.daemon = True
            timer.start()
        found = self._exchange((id, around))
        if timer is not None:
            timer.cancel()
            timer.join()
        self.gone = self.gone or self._timed_out
        if isinstance(found, ReplayedRun):
            return found
        if self._timed_out:
            return Divergence(TIMEOUT, "agent", None, None, timeout_seconds)
        return Divergence(DIED, "agent", None, None, self._how() if found is self else str(found))

    def _exchange(self, message: object) -> Any:
        """Send a message and return the answer; itself when the process is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            pickle.dump(message, self._process.stdin)
            self._process.stdin.flush()
            return pickle.load(self._process.stdout)
        except (EOFError, OSError, pickle.UnpicklingError):
            self.gone = True
            self.kill()
            return self

    def _how(self) -> str:
        """Return how the process ended."""
        code = self._process.wait()
        if code >= 0:
            return f"exit code {code}"
        import signal

        try:
            return signal.Signals(-code).name
        except ValueError:
            return f"signal {-code}"

    def _time_out(self) -> None:
        self._timed_out = True
        self.kill()

    def kill(self) -> None:
        """End the process, and on POSIX its child processes; one that is ending by itself keeps its exit code."""
        if self._process.returncode is not None:
            return  # its process id may be reused by now
        if os.name == "posix":
            import signal

            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
        else:
            self._process.kill()

    def end(self) -> None:
        """Let the process end by itself, for a moment; a leftover thread may keep it."""
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            with suppress(OSError):  # pending messages to a process that is gone
                stream.close()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(ENDING_SECONDS)
        self.kill()
        self._process.wait()


def _about(around: RelatedRuns, id: str) -> RelatedRuns:
    """Return the facts in the log about one run and its child runs."""
    found = [id]
    for name in found:  # it grows meanwhile
        found += [run for run in around.kin.get(name, ()) if run not in found]
    kin = {name: around.kin[name] for name in found if name in around.kin}
    return RelatedRuns(kin, {name: around.writes[name] for name in found if name in around.writes})


def _unfinished_run(context: Context, id: str, divergence: Divergence) -> ReplayedRun:
    """Return the known part of a run whose replay did not finish."""
    with context.engine.view(context.tenant) as view:
        steps = in_order(entry_index.run_entries(view, id, view.head().position))
    started: dict[str, Any] = dict(steps[0][1])
    text: dict[str, Any] = {name: started[name] if isinstance(started.get(name), str) else None for name in _TOLD}
    interrupted = all(kind != "run.ended" for kind, _ in steps)
    return ReplayedRun(id, **text, interrupted=interrupted, steps=0, answer=None, divergences=(divergence,))


_TOLD: Final = ("agent", "query", "subject")


# -- the other process ------------------------------------------------------------------------------------------------


def serve() -> int:
    """Replay the runs requested on standard input, until it ends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # The agent's output must not mix with the answers, and it must not read the requests.
    messages, answers = take_standard_streams()
    plan = messages.next()
    if plan is None:
        return 0
    try:
        replay = _replayer(plan)
    except Exception as problem:
        _answer(answers, f"{type(problem).__name__}: {problem}")
        return 1
    _answer(answers, None)
    while (message := messages.next()) is not None:
        try:
            found: object = replay(*message)
        except BaseException as problem:
            found = f"{type(problem).__name__}: {problem}"
        sys.stdout.flush()
        _answer(answers, found)
    return 0


def _answer(answers: IO[bytes], found: object) -> None:
    pickle.dump(found, answers)
    answers.flush()


def _replayer(plan: ProcessConfig) -> Callable[[str, RelatedRuns], ReplayedRun]:
    from importlib import import_module

    from woodrat.runs.recorder.threads import carry_threads

    module, _, name = plan.function.partition(":")
    agent = _found(import_module(module), name)
    if not callable(agent):
        raise TypeError("the function does not exist")
    module, _, name = plan.opener.partition(":")
    opener: Any = _found(import_module(module), name)
    log = opener(plan.path, tenant=plan.tenant, agent=plan.agent, readonly=True).run_log()
    if plan.threads:
        carry_threads()

    def replay(id: str, around: RelatedRuns) -> ReplayedRun:
        session = ReplaySession(plan.live, plan.steps_max, around)
        return replay_one(log, id, agent, session, plan.presented)

    return replay
