"""Memory: a whole turn by itself. Recall what earlier runs decided, hand it to the model, record the turn.

    memory = woodrat.memory(ledger, k=1, threshold=0.5)
    with memory.turn("Why was application #42 rejected?", conversation="app-42-followup", principal="bob") as turn:
        turn.answer(small_model(turn.prompt))

A turn is a run marked as answering from memory, so no later recall offers it before the decision it asks about.
"""

from __future__ import annotations

import warnings
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar, cast

from woodrat.canon import form, ids
from woodrat.canon.digest import base32
from woodrat.errors import Fault, NotFound, Refused, Unavailable, WoodratError, shown
from woodrat.ledger import entry_index
from woodrat.recall import request as recall_request
from woodrat.runs import run_fields as runs
from woodrat.runs.projection import INSTRUCTIONS, followup
from woodrat.runs.reader.run_reader import open_runs
from woodrat.runs.recorder import current
from woodrat.runs.recorder.agent_function import further_parameters
from woodrat.runs.recorder.log import LocalLog
from woodrat.runs.recorder.resume import continued
from woodrat.runs.recorder.steps import NOTE, RAISE, RecordingWarning
from woodrat.runs.recorder.streams import makes_stream
from woodrat.runs.recorder.tools import arguments_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta
    from types import TracebackType

    from woodrat.recall.embedders import Embedder
    from woodrat.recall.reader import Recall
    from woodrat.runs.record import RunRecord
    from woodrat.runs.recorder.run import Run
    from woodrat.runs.recorder.steps import RunLog

T = TypeVar("T")

ATTEMPTS_MAX: Final = 1_000
"""How often a turn with one key can fail; after that the key is refused."""

NOTHING_RECORDED: Final = "Nothing was recorded."


class Rememberer(Protocol):
    """A moment of a ledger that recalls."""

    @property
    def recall(self) -> Callable[..., Recall]:
        """Find what past runs decided about something like this."""


class RunsOfTurns(Protocol):
    """The runs of a ledger, as far as turns need them."""

    @property
    def continue_(self) -> Callable[..., Run]:
        """Continue a run that another process started."""

    @property
    def show(self) -> Callable[..., RunRecord]:
        """Find what the log holds about a run."""


class LedgerOfTurns(Rememberer, Protocol):
    """A ledger in which turns are recorded, of this process or behind an address."""

    @property
    def agent(self) -> str:
        """Who takes the turns."""

    @property
    def at(self) -> Callable[..., Rememberer]:
        """The ledger as of a moment."""

    @property
    def run(self) -> Callable[..., Run]:
        """Make a run to be recorded."""

    @property
    def runs(self) -> RunsOfTurns:
        """The runs that turns are."""

    def run_log(self) -> RunLog:
        """Return where a run is recorded."""


class AsyncLedgerOfTurns(Protocol):
    """The same with coroutines; turns are recorded in the one it stands for."""

    target: Any


class Memory:
    """How the turns of an agent remember; `turn` takes one, `wrap` makes a function take one each time."""

    def __init__(
        self,
        ledger: LedgerOfTurns | AsyncLedgerOfTurns,
        *,
        k: int = 1,
        threshold: float = 0.5,
        projection: str = "decisions",
        scope: str = "tenant",
        ttl: float | timedelta | None = None,
        embedder: Embedder | str | None = None,
        budget: int | None = None,
        on_error: str = NOTE,
    ) -> None:
        self.ledger: LedgerOfTurns = getattr(ledger, "target", cast("LedgerOfTurns", ledger))
        if on_error not in (NOTE, RAISE):
            remedy = f"Use {NOTE} or {RAISE}."
            raise Refused([Fault("on_error", f"got {shown(on_error)}", remedy)], NOTHING_RECORDED)
        # Whatever is wrong is said here rather than by the first turn, and an embedder is looked up once.
        asked = recall_request.ask("?", k, threshold, projection, budget, scope, "?", "?", ttl, embedder)
        self.scope = scope
        self.on_error = on_error
        self.settings: dict[str, Any] = {
            "k": k,
            "threshold": threshold,
            "projection": projection,
            "scope": scope,
            "ttl": ttl,
            "embedder": asked.embedder,
            "budget": budget,
        }
        """What `recall` is asked with."""

    def recall(
        self,
        question: str,
        *,
        conversation: str | None = None,
        principal: str | None = None,
        at: Rememberer | None = None,
    ) -> Recall:
        """Recall as a turn would, and record nothing."""
        return (at or self.ledger).recall(question, conversation=conversation, principal=principal, **self.settings)

    def turn(
        self,
        question: str,
        *,
        conversation: str | None = None,
        principal: str | None = None,
        subject: str | None = None,
        inputs: dict[str, Any] | None = None,
        key: str | None = None,
    ) -> Turn:
        """Return a turn: a context manager, `with` and `async with`.

        The same `key` with the same question is the same turn: once it has an answer, that is the answer, and nothing
        is recorded again. A key belongs to the ledger's tenant and agent.
        """
        faults = recall_request.question_faults(question) + recall_request.scope_faults(
            self.scope, principal, conversation
        )
        if key is not None and (not isinstance(key, str) or not key or form.faults(key)):
            faults.append(Fault("key", f"got {shown(key)}", "Send text of your own for each turn, or nothing."))
        if faults:
            raise Refused(faults, NOTHING_RECORDED)
        about = {"conversation": conversation, "principal": principal, "subject": subject, "inputs": inputs}
        return Turn(self, question, about, key)

    def wrap(self, agent: Callable[..., T]) -> Callable[..., T]:
        """Return a function that takes a turn each time it is called with a question, and answers as the agent does.

        An agent with a parameter `memory` is given the question and there what was recalled; any other is given both
        as one prompt. `conversation`, `principal`, `subject` and `key` are the turn's and not handed on; whatever else
        is given is. Sync and async functions.
        """
        from functools import wraps
        from inspect import iscoroutinefunction, signature

        if makes_stream(agent):
            problem = "it is a generator, and what it answers is known only at its end"
            remedy = (
                "Return the whole answer, or take the turn yourself: memory.turn(…), and turn.answer(…) at the end."
            )
            raise Refused([Fault("agent", problem, remedy)], "Nothing was wrapped.")
        takes_memory = "memory" in signature(agent).parameters

        further_shape = further_parameters(agent)

        def about(arguments: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
            """Return what the turn is begun with; what is handed on to the agent are its inputs."""
            named = {name: given.pop(name, None) for name in _OF_A_TURN}
            return {**named, "inputs": arguments_of(further_shape, arguments, given) or None}

        def given_to(turn: Turn, further: dict[str, Any]) -> tuple[str, dict[str, Any]]:
            return (turn.question, {**further, "memory": turn.inject}) if takes_memory else (turn.prompt, further)

        if iscoroutinefunction(agent):

            @wraps(agent)
            async def remembering_async(question: str, *arguments: Any, **given: Any) -> Any:
                async with self.turn(question, **about(arguments, given)) as turn:
                    if turn.known:
                        return turn.reply
                    asked, further = given_to(turn, given)
                    return turn.answer(await agent(asked, *arguments, **further))

            remembering_async.wrapped_agent = agent  # type: ignore[attr-defined]
            return remembering_async  # type: ignore[return-value]

        @wraps(agent)
        def remembering_sync(question: str, *arguments: Any, **given: Any) -> Any:
            with self.turn(question, **about(arguments, given)) as turn:
                if turn.known:
                    return turn.reply
                asked, further = given_to(turn, given)
                return turn.answer(agent(asked, *arguments, **further))

        remembering_sync.wrapped_agent = agent  # type: ignore[attr-defined]
        return remembering_sync


def memory(ledger: LedgerOfTurns | AsyncLedgerOfTurns, **settings: Any) -> Memory:
    """Return how the turns of an agent on this ledger remember.

    `k`, `threshold`, `projection`, `scope`, `ttl`, `embedder` and `budget` are those of `Ledger.recall`. With
    `on_error="raise"` a turn that cannot remember or be recorded raises instead of going on without.
    """
    return Memory(ledger, **settings)


_OF_A_TURN = ("conversation", "principal", "subject", "key")


class Turn:
    """One question to an agent that remembers."""

    def __init__(self, memory: Memory, question: str, about: dict[str, Any], key: str | None) -> None:
        self._memory = memory
        self._about = about
        self._key = key
        self._run: Run | None = None
        self._recalled: Recall | None = None
        self.question = question
        """What was asked."""
        self.known = False
        """Whether the turn was taken before and its answer is on record; nothing need be asked then."""
        self.record: RunRecord | None = None
        """The turn as it is on record, when it was taken before."""
        self.problem: WoodratError | None = None
        """What kept it from remembering; the turn goes on without."""

    @property
    def run(self) -> Run | None:
        """The run the turn is recorded as; none for one that was taken before."""
        return self._run

    @property
    def recalled(self) -> Recall | None:
        """What was recalled; of a turn taken before, what was recalled then. None when that failed."""
        if self._recalled is None and self.record is not None:
            start = self.record.start
            assert start is not None, "a turn on record has begun"
            self._recalled = self._ask(self._memory.ledger.at(start))
        return self._recalled

    @property
    def inject(self) -> str:
        """What was recalled as a block for a prompt, which marks it as data; empty when there is nothing."""
        return self.recalled.inject if self.recalled is not None else ""

    @property
    def prompt(self) -> str:
        """The block and the question, as one text."""
        return f"{self.inject}\n\n{self.question}" if self.inject else self.question

    @property
    def messages(self) -> list[dict[str, str]]:
        """The same as chat messages, with instructions to answer from the record alone."""
        hits = self.recalled.hits if self.recalled is not None else ()
        given = self._memory.settings
        records = [hit.record for hit in hits if hit.record is not None]
        if len(records) == len(hits):
            return followup(records, self.question, projection=given["projection"], budget=given["budget"])
        system = f"{INSTRUCTIONS}\n\n{self.inject}"
        return [{"role": "system", "content": system}, {"role": "user", "content": self.question}]

    @property
    def reply(self) -> Any:
        """What the turn answers: as it is on record, or so far."""
        if self.record is not None:
            return self.record.answer
        return None if self._run is None else self._run.answered

    def answer(self, answer: T) -> T:
        """Say what the turn answers, and return it; of a turn taken before, its first answer stands and is returned."""
        if self.record is not None:
            return self.reply  # type: ignore[no-any-return]
        if self._run is None:
            raise Refused([Fault("turn", "it has not begun", "Answer inside `with memory.turn(…)`.")], NOTHING_RECORDED)
        self._run.answer(answer)
        return answer

    # ------------------------------------------------------------------------------------------ from start to end

    def __enter__(self) -> Turn:
        run = self._open()
        if run is not None:
            try:
                run.__enter__()
            except Refused as refusal:
                raise self._told(run, refusal) from None
            self._run = run
            try:
                self._remember()
            except BaseException as error:
                run.__exit__(type(error), error, error.__traceback__)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run is not None:
            self._run.__exit__(kind, error, trace)

    async def __aenter__(self) -> Turn:
        from asyncio import to_thread

        run = await to_thread(self._open)
        if run is not None:
            try:
                await run.__aenter__()
            except Refused as refusal:
                raise (await to_thread(self._told, run, refusal)) from None
            self._run = run
            try:
                # A thread is given the context of its task, so the turn is the current run there too.
                await to_thread(self._remember)
            except BaseException as error:
                await run.__aexit__(type(error), error, error.__traceback__)
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._run is not None:
            await self._run.__aexit__(kind, error, trace)

    def _remember(self) -> None:
        try:
            self._recalled = self._ask(None)
        except Refused:
            raise
        except WoodratError as problem:
            if self._memory.on_error == RAISE:
                raise
            self.problem = problem
            warnings.warn(f"Nothing was recalled for this turn: {problem}", RecordingWarning, stacklevel=3)

    def _ask(self, at: Rememberer | None) -> Recall:
        about = self._about
        return self._memory.recall(
            self.question, conversation=about["conversation"], principal=about["principal"], at=at
        )

    def _open(self) -> Run | None:
        """Return the run to record the turn as; none when it is on record with an answer."""
        ledger, memory = self._memory.ledger, self._memory
        given = {**self._about, "recall": True, "on_error": memory.on_error}
        run: Run = ledger.run(self.question, **given)
        if self._key is None or _is_on_record(run):
            return run
        for attempt in range(1, ATTEMPTS_MAX + 1):
            id = turn_id(ledger.agent, self._key, attempt)
            record = find_turn(ledger, id)
            if record is not None and record.status == runs.INTERRUPTED:
                # It may have ended after the log was looked at: nobody records it now, so a second look tells.
                record = find_turn(ledger, id)
            if record is None:
                return ledger.run(self.question, id=id, **given)
            self._check_same(record)
            if record.status == runs.RUNNING:
                raise _busy()
            if record.status == runs.INTERRUPTED:
                try:
                    return _continued(ledger, id, memory.on_error)
                except Refused as refusal:
                    raise _busy() from refusal  # somebody else goes on with it, or has ended it this moment
            if record.status == runs.DONE and record.answer is not None:
                self.known, self.record = True, record
                return None
        raise Refused([Fault("key", f"{ATTEMPTS_MAX} turns with it failed", "Use another key.")], NOTHING_RECORDED)

    def _told(self, run: Run, refusal: Refused) -> WoodratError:
        """Return what a turn that was refused is told: when its key was taken a moment ago, that it is being taken."""
        taken = self._key is not None and find_turn(self._memory.ledger, run.id) is not None
        return _busy() if taken else refusal

    def _check_same(self, record: RunRecord) -> None:
        """Refuse a key that was used for another turn."""
        subject = self._about["subject"]
        same = (
            record.query == self.question
            and record.conversation == self._about["conversation"]
            and record.principal == self._about["principal"]
            and (subject is None or ids.is_id("entity", subject) or record.subject == str(subject))
        )
        if not same:
            raise Refused(
                [Fault("key", f"{shown(self._key)} was used for another turn", "Use a key of its own for each turn.")],
                NOTHING_RECORDED,
            )


def _is_on_record(run: Run) -> bool:
    """Return whether a turn is begun once more because its run, or the one around it, is replayed or resumed."""
    around = current.recorder_around()
    if around is None or around.recording is None:
        return False
    if around.is_aside:
        return around.successor is None
    return bool(around.recording.replays and around.recording.awaits(run.told()))


def _busy() -> Unavailable:
    return Unavailable(
        f"A turn with this key is being taken at this moment. {NOTHING_RECORDED} Send it again later for its answer."
    )


def turn_id(agent: str, key: str, attempt: int) -> str:
    """Return the id of the run a turn is recorded as: the same for the same key."""
    return f"run_{base32(sha256(b'woodrat/turn/0' + form.encode([agent, key, attempt])).digest()[:16])}"


def find_turn(ledger: LedgerOfTurns, id: str) -> RunRecord | None:
    """Return the run that a turn is recorded as, without what it wrote; none where there is none."""
    log = ledger.run_log()
    if not isinstance(log, LocalLog):
        try:
            return ledger.runs.show(id)
        except NotFound:
            return None
    with open_runs(log.context) as run_reader:
        return run_reader.bare(id) if entry_index.has_run(run_reader.view, id, run_reader.through) else None


def _continued(ledger: LedgerOfTurns, id: str, on_error: str) -> Run:
    """Return the run of a turn that was interrupted, for one who goes on with it alone."""
    log = ledger.run_log()
    if isinstance(log, LocalLog):
        return continued(log, id, ends=True, on_error=on_error, alone=True)
    return ledger.runs.continue_(id, ends=True, on_error=on_error)
