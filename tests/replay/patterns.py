"""Every way that the documents show to make a run, each as a function that is recorded once and replayed.

`patterns(ledger)` makes them for a ledger. Imported with `WOODRAT_PATTERNS` set, this module opens that file and has
each function under its name, so that other processes and the command line find them.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import Any, NamedTuple

import woodrat
from woodrat.api.aio import AsyncLedger
from woodrat.api.ledger import Ledger

QUESTION = "Why was application #42 rejected?"
RULES = [woodrat.Rule("rejected", {"creditScore": {"lt": 600}}, label="Marginal credit")]

CALLS: list[str] = []
"""Which tools and models were really called."""


class Pattern(NamedTuple):
    """One way to make a run."""

    agent: Callable[..., Any]
    """The function that is replayed."""
    call: Callable[[], Any]
    """Calls it as a program does, which records the run."""
    is_async: bool = False
    """Whether an async ledger replays it."""


@woodrat.tool
def bureau(application: int) -> dict[str, int]:
    """Return what a bureau says of an application."""
    CALLS.append("bureau")
    return {"creditScore": 500 + len(CALLS) + application}


@woodrat.tool
async def bureau_soon(application: int) -> dict[str, int]:
    """Return what a bureau says of an application, later for even numbers."""
    await asyncio.sleep(0.002 if application % 2 == 0 else 0)
    CALLS.append("bureau_soon")
    return {"creditScore": 500 + len(CALLS) + application}


@woodrat.tool
def pages(application: int) -> Iterator[str]:
    """Yield the pages of a file."""
    CALLS.append("pages")
    for number in range(3):
        yield f"page {number} of {application}, {len(CALLS)}"


@woodrat.tool
def broken(application: int) -> None:
    """Fail with a number that is another each time."""
    CALLS.append("broken")
    raise TimeoutError(f"no answer for {application} after {len(CALLS)} calls")


class Desk:
    """Tools and agents that are methods."""

    def __init__(self, ledger: Ledger) -> None:
        self.ledger = ledger
        self.approve = ledger.recorded("Approve #{application}?")(self._approve)

    @woodrat.tool
    def lookup(self, application: int) -> dict[str, int]:
        """Return a score."""
        CALLS.append("lookup")
        return {"creditScore": 500 + len(CALLS) + application}

    def _approve(self, application: int) -> str:
        return str(woodrat.decide("classify-risk", self.lookup(application), RULES, default="approved").chosen)

    def begin(self, application: int) -> str:
        """Begin the run in a method."""
        with self.ledger.run("Approve?", inputs={"application": application}) as run:
            run.answer(self._approve(application))
        return str(run.answered)


def collected(stream: Generator[Any, None, Any], items: list[Any]) -> Any:
    """Put the items of a generator into a list, and return what it returned."""
    while True:
        try:
            items.append(next(stream))
        except StopIteration as stop:
            return stop.value


def model(run: Any, prompt: str) -> str:
    """Ask a model that never answers twice the same."""

    def ask() -> str:
        CALLS.append("model")
        return f"answer {len(CALLS)}"

    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": prompt}]
    return str(run.model("small-1", ask, messages=messages).result)


def patterns(ledger: Ledger) -> dict[str, Pattern]:
    """Return every way to make a run on a ledger."""
    memory = woodrat.memory(ledger)
    desk = Desk(ledger)
    async_ledger = AsyncLedger(ledger)

    # agent(run)

    def handed(run: Any) -> str:
        loan = run.show("loan/42")
        score = run.tool("bureau", bureau, run.inputs["application"])
        chosen = run.decide("classify-risk", [loan.fact("creditScore"), *score.facts().values()], RULES, default="ok")
        run.note("decided")
        run.store({"entity_type": "loan", "id": "42", "status": str(chosen.chosen)})
        return model(run, f"Tell that it is {chosen.chosen}: {score.result}")

    def call_handed() -> None:
        with ledger.run("Approve #42?", subject="loan/42", inputs={"application": 42}) as run:
            run.answer(handed(run))

    async def handed_soon(run: Any) -> str:
        found = await asyncio.gather(*(bureau_soon(number) for number in range(4)))
        with run.tool("block", number=1) as call:
            call.result = len(found)
        return f"{[item['creditScore'] for item in found]} {await asyncio.to_thread(bureau, 7)}"

    async def call_handed_soon() -> None:
        async with ledger.run("Approve several?") as run:
            run.answer(await handed_soon(run))

    async def handed_async_run(run: Any) -> str:
        loan = await run.show("loan/42")
        found = await run.tool("bureau", bureau, 42)
        await run.store({"entity_type": "loan", "id": "42", "status": "seen"})
        return f"{loan.fields['creditScore']} {found.result}"

    async def call_handed_async_run() -> None:
        async with async_ledger.run("Approve #42?") as run:
            run.answer(await handed_async_run(run))

    def streaming(run: Any) -> Iterator[str]:
        for page in pages(run.inputs["application"]):
            yield f"{page};"

    def call_streaming() -> None:
        with ledger.run("Read #42", inputs={"application": 42}) as run:
            run.answer("".join(streaming(run)))

    async def streaming_soon(run: Any) -> AsyncIterator[str]:
        for page in pages(run.inputs["application"]):
            yield f"{page} {await bureau_soon(3)};"

    async def call_streaming_soon() -> None:
        async with ledger.run("Read #42 soon", inputs={"application": 42}) as run:
            run.answer("".join([item async for item in streaming_soon(run)]))

    def by_hand(run: Any) -> str:
        return f"{bureau(run.inputs['application'])}"

    def call_by_hand() -> None:
        run = ledger.run("By hand?", inputs={"application": 42}).start()
        with run.current():
            answer = by_hand(run)
        run.end(answer=answer)

    # ledger.recorded

    @ledger.recorded("Approve #{application}?", subject="loan/{application}")
    def decorated(application: int, note: str = "none", *further: int, loud: bool = False) -> str:
        return f"{bureau(application)} {note} {further} {loud}"

    @ledger.recorded()
    async def decorated_soon(application: int) -> str:
        return f"{await bureau_soon(application)}"

    @ledger.recorded("Read {application}")
    def decorated_stream(application: int) -> Iterator[str]:
        yield from pages(application)

    @ledger.recorded("Read {application} soon")
    async def decorated_stream_soon(application: int) -> AsyncIterator[str]:
        for page in pages(application):
            yield page
            yield str(await bureau_soon(application))

    # with ledger.run(…) inside the function

    def begins(application: int) -> str:
        with ledger.run(f"Approve #{application}?", subject="loan/42", inputs={"application": application}) as run:
            score = bureau(application)
            loan = run.show("loan/42")
            run.store({"entity_type": "loan", "id": "42", "status": str(score["creditScore"])})
            verdict = woodrat.decide("classify-risk", loan, RULES, default="approved")
            run.answer(f"{verdict.chosen} {score} {model(run, 'Say it.')}")
        return str(run.answered)

    def begins_with_ledger(ledger: Any, application: int) -> None:
        with ledger.run("Approve?", inputs={"application": application}) as run:
            run.answer(bureau(application))

    def begins_alone() -> str:
        with ledger.run("Approve the first one?") as run:
            run.answer(bureau(1))
        return "done"

    def begins_by_hand(application: int) -> None:
        run = ledger.run("Approve?", inputs={"application": application}).start()
        run.tool("bureau", bureau, application)
        run.end(answer="by hand")

    async def begins_soon(application: int) -> None:
        async with ledger.run("Approve soon?", inputs={"application": application}) as run:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(bureau_soon(application + number)) for number in range(4)]
            run.answer([task.result() for task in tasks])

    async def begins_async_run(application: int) -> None:
        async with async_ledger.run("Approve async?", inputs={"application": application}) as run:
            loan = await run.show("loan/42")
            run.answer([loan.fields["creditScore"], (await run.tool("bureau", bureau, application)).result])

    def begins_in_stream(application: int) -> Iterator[str]:
        with ledger.run("Stream?", inputs={"application": application}) as run:
            items = []
            for page in pages(application):
                items.append(page)
                yield page
            run.answer(items)

    def begins_and_fails(application: int) -> str:
        try:
            with ledger.run("Fails?", inputs={"application": application}):
                broken(application)
        except TimeoutError as error:
            return str(error)
        return "it did not fail"

    def begins_twice(application: int) -> None:
        with ledger.run("First?", inputs={"application": application}) as run:
            run.answer(bureau(application))
        with ledger.run("Second?", inputs={"application": application}) as run:
            run.answer(bureau(application + 1))

    def begins_inner(application: int) -> str:
        with ledger.run("Outer?", inputs={"application": application}) as run:
            inner = begins(application)
            with ledger.run("Outer?", inputs={"application": application}) as again:
                again.answer(bureau(application))
            run.answer(f"{inner} {again.answered}")
        return str(run.answered)

    # memory

    def takes_turn(question: str, conversation: str | None = None) -> str:
        with memory.turn(question, conversation=conversation, principal="bob") as turn:
            return str(turn.answer(model(turn.run, turn.prompt)))

    def takes_keyed_turn(question: str) -> str:
        with memory.turn(question, key="msg-7") as turn:
            if not turn.known:
                turn.answer(model(turn.run, turn.prompt))
        return str(turn.reply)

    async def takes_turn_soon(question: str) -> str:
        async with memory.turn(question) as turn:
            return str(turn.answer(f"{turn.inject} {await bureau_soon(42)}"))

    def _answer(prompt: str, tone: str = "dry") -> str:
        run = woodrat.current_run()
        return f"{tone}: {model(run, prompt)}"

    def _answer_memory(question: str, *, memory: str, tone: str) -> str:
        return f"{tone}: {question} {memory} {bureau(42)}"

    async def _answer_soon(prompt: str) -> str:
        return f"{prompt} {await bureau_soon(42)}"

    wraps, wraps_memory, wraps_soon = memory.wrap(_answer), memory.wrap(_answer_memory), memory.wrap(_answer_soon)

    def recalls(run: Any) -> str:
        found = run.recall(QUESTION)
        again = ledger.recall(QUESTION)
        miss = memory.recall("Why was application #50 rejected?")
        return model(run, f"{found.inject} {again.text} {bool(miss)} {[near.reason for near in miss.rejected]}")

    def call_recalls() -> None:
        with ledger.run("What do we know?") as run:
            run.answer(recalls(run))

    async def recalls_async(run: Any) -> str:
        found = await run.recall(QUESTION)
        return f"{found.text} {(await async_ledger.recall(QUESTION)).text}"

    async def call_recalls_async() -> None:
        async with async_ledger.run("What do we know?") as run:
            run.answer(await recalls_async(run))

    # threads

    def pooled(run: Any) -> str:
        with run.executor(4) as pool:
            found = list(pool.map(lambda number: bureau(number), range(8)))
            same = [future.result() for future in [pool.submit(bureau, 3) for _ in range(6)]]
        return f"{found} {same}"

    def call_pooled() -> None:
        with ledger.run("Ask many?") as run:
            run.answer(pooled(run))

    def threaded(run: Any) -> str:
        found: dict[int, Any] = {}

        def work(number: int) -> None:
            found[number] = [bureau(number), bureau(99)]

        threads = [run.thread(work, (number,)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return f"{[found[number] for number in range(6)]}"

    def call_threaded() -> None:
        with ledger.run("Ask in threads?") as run:
            run.answer(threaded(run))

    def carried(run: Any) -> str:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(woodrat.carry(bureau), range(8)))
        with woodrat.carry_threads(), ThreadPoolExecutor(4) as pool:
            found += pool.map(bureau, range(20, 26))
            other: list[Any] = []
            thread = threading.Thread(target=lambda: other.append(bureau(50)))
            thread.start()
            thread.join()
        return f"{found} {other}"

    def call_carried() -> None:
        with ledger.run("Ask in pools?") as run:
            run.answer(carried(run))

    # streamed answers of models and tools

    def streams(run: Any) -> str:
        def answer() -> Generator[str, None, str]:
            CALLS.append("model")
            yield "one"
            yield f"two {len(CALLS)}"
            return f"stop {len(CALLS)}"

        def fails() -> Iterator[int]:
            CALLS.append("fails")
            yield 1
            yield len(CALLS)
            raise ConnectionError(f"lost after {len(CALLS)}")

        stream = run.model("small-1", lambda: answer(), messages=[{"role": "user", "content": "Go."}]).result
        said: list[Any] = []
        reason = collected(stream, said)
        try:
            for number in run.tool("fails", lambda: fails()).result:
                said.append(number)
        except ConnectionError as error:
            said.append(str(error))
        first = run.tool("early", lambda: answer()).result
        said.append(next(first))
        first.close()
        return f"{said} {reason}"

    def call_streams() -> None:
        with ledger.run("Stream the answer?") as run:
            run.answer(streams(run))

    async def streams_soon(run: Any) -> str:
        async def answer() -> AsyncIterator[str]:
            CALLS.append("model")
            yield "one"
            yield f"two {len(CALLS)}"

        stream = run.model("small-1", lambda: answer(), messages=[{"role": "user", "content": "Go."}]).result
        return " ".join([item async for item in stream])

    async def call_streams_soon() -> None:
        async with ledger.run("Stream the answer soon?") as run:
            run.answer(await streams_soon(run))

    # retries and errors

    def retries(run: Any) -> str:
        said = []
        for _ in range(3):
            try:
                broken(run.inputs["application"])
            except TimeoutError as error:
                said.append(f"{type(error).__name__} {error}")
        return "; ".join(said)

    def call_retries() -> None:
        with ledger.run("Try again?", inputs={"application": 42}) as run:
            run.answer(retries(run))

    async def _collect(stream: AsyncIterator[Any]) -> list[Any]:
        return [item async for item in stream]

    return {
        "handed": Pattern(handed, call_handed),
        "handed_soon": Pattern(handed_soon, lambda: asyncio.run(call_handed_soon())),
        "handed_async_run": Pattern(handed_async_run, lambda: asyncio.run(call_handed_async_run()), True),
        "streaming": Pattern(streaming, call_streaming),
        "streaming_soon": Pattern(streaming_soon, lambda: asyncio.run(call_streaming_soon())),
        "by_hand": Pattern(by_hand, call_by_hand),
        "decorated": Pattern(decorated, lambda: decorated(42, "x", 1, 2, loud=True)),
        "decorated_soon": Pattern(decorated_soon, lambda: asyncio.run(decorated_soon(42))),
        "decorated_stream": Pattern(decorated_stream, lambda: list(decorated_stream(42))),
        "decorated_stream_soon": Pattern(
            decorated_stream_soon, lambda: asyncio.run(_collect(decorated_stream_soon(42)))
        ),
        "decorated_method": Pattern(desk.approve, lambda: desk.approve(42)),
        "begins": Pattern(begins, lambda: begins(42)),
        "begins_with_ledger": Pattern(begins_with_ledger, lambda: begins_with_ledger(ledger, 42)),
        "begins_alone": Pattern(begins_alone, begins_alone),
        "begins_by_hand": Pattern(begins_by_hand, lambda: begins_by_hand(42)),
        "begins_soon": Pattern(begins_soon, lambda: asyncio.run(begins_soon(42))),
        "begins_async_run": Pattern(begins_async_run, lambda: asyncio.run(begins_async_run(42)), True),
        "begins_in_stream": Pattern(begins_in_stream, lambda: list(begins_in_stream(42))),
        "begins_and_fails": Pattern(begins_and_fails, lambda: begins_and_fails(42)),
        "begins_twice": Pattern(begins_twice, lambda: begins_twice(42)),
        "begins_inner": Pattern(begins_inner, lambda: begins_inner(42)),
        "begins_in_method": Pattern(desk.begin, lambda: desk.begin(42)),
        "takes_turn": Pattern(takes_turn, lambda: takes_turn(QUESTION, "app-42-followup")),
        "takes_keyed_turn": Pattern(takes_keyed_turn, lambda: takes_keyed_turn(QUESTION)),
        "takes_turn_soon": Pattern(takes_turn_soon, lambda: asyncio.run(takes_turn_soon(QUESTION))),
        "wraps": Pattern(wraps, lambda: wraps(QUESTION, "warm", principal="bob", conversation="app-42")),
        "wraps_memory": Pattern(wraps_memory, lambda: wraps_memory(QUESTION, tone="calm", key="msg-8")),
        "wraps_soon": Pattern(wraps_soon, lambda: asyncio.run(wraps_soon(QUESTION))),
        "recalls": Pattern(recalls, call_recalls),
        "recalls_async": Pattern(recalls_async, lambda: asyncio.run(call_recalls_async()), True),
        "pooled": Pattern(pooled, call_pooled),
        "threaded": Pattern(threaded, call_threaded),
        "carried": Pattern(carried, call_carried),
        "streams": Pattern(streams, call_streams),
        "streams_soon": Pattern(streams_soon, lambda: asyncio.run(call_streams_soon())),
        "retries": Pattern(retries, call_retries),
    }


def prepare(ledger: Ledger) -> None:
    """Store what the runs are about, and record the decision that later ones recall."""
    ledger.store({"entity_type": "loan", "id": "42", "creditScore": 580})
    with ledger.run("Should we approve application #42?", subject="loan/42") as run:
        run.decide("classify-risk", run.show("loan/42"), RULES, default="manual-review")
        run.answer("Application #42: rejected.")


def change(ledger: Ledger) -> None:
    """Change what the runs read and recalled, after they were recorded."""
    ledger.correct("loan/42", {"creditScore": 710})
    with ledger.run("Why was application #42 rejected at first?", subject="loan/42") as run:
        run.decide("classify-risk", run.show("loan/42"), RULES, default="approved")
        run.answer("Application #42: approved after all, and rejected no more.")


NAMES = tuple(patterns(woodrat.open(":memory:")))
"""The names of all patterns."""

if "WOODRAT_PATTERNS" in os.environ:
    _opened = woodrat.open(os.environ["WOODRAT_PATTERNS"], agent="loan-officer")
    globals().update({name: each.agent for name, each in patterns(_opened).items()})
