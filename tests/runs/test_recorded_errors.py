"""Recorded errors: a call that failed fails again with an error of the same type and the same text."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import woodrat
from woodrat.runs import values
from woodrat.runs.recorder.recorded_errors import NOTE, recorded_error


class Declined(Exception):
    """An error whose text comes from what its constructor was given."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(code, reason)
        self.code, self.reason = code, reason

    def __str__(self) -> str:
        return f"{self.reason} ({self.code})"


class Missing(KeyError):
    pass


class Final(Exception):
    def __init_subclass__(cls) -> None:
        raise TypeError("nobody extends this")

    def __str__(self) -> str:
        return "final"


def decoding_error() -> Exception:
    try:
        b"\xff".decode()
    except UnicodeDecodeError as error:
        return error
    raise AssertionError


ERRORS = [
    KeyError("order"),
    KeyError("it's"),
    KeyError(7),
    KeyError(("a", 1)),
    KeyError("a", "b"),
    KeyError(),
    KeyError(object),
    KeyError("'quoted'"),
    Missing("x"),
    ValueError("no"),
    ValueError(),
    ValueError("a", 1),
    LookupError("x"),
    FileNotFoundError(2, "No such file or directory", "x.txt"),
    ImportError("no module", name="x"),
    SyntaxError("bad", ("f.py", 1, 1, "x", 1, 2)),
    decoding_error(),
    Declined(51, "insufficient funds"),
    StopIteration(3),
    json.JSONDecodeError("Expecting value", "x", 0),
    woodrat.NotFound("order 7: not known"),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_error_comes_back_with_its_type_and_text(error: Exception) -> None:
    """`except`, `str(error)` and the name of the type are as they were; a note says that it was recorded."""
    made = recorded_error(values.error(error))
    assert isinstance(made, type(error))
    assert str(made) == str(error)
    assert (type(made).__module__, type(made).__qualname__) == (type(error).__module__, type(error).__qualname__)
    assert made.__notes__ == [NOTE]


@given(st.one_of(st.text(max_size=20), st.integers(), st.binary(max_size=5), st.tuples(st.text(), st.none())))
def test_a_missing_key_comes_back(key: Any) -> None:
    """The text of a `KeyError` is its key as Python shows it, once."""
    error = KeyError(key)
    recorded = values.error(error)
    made = recorded_error(recorded)
    assert str(made) == recorded["message"]
    if recorded["message"] == str(error):
        assert made.args == error.args


def test_what_this_process_cannot_make_says_what_it_was() -> None:
    """A class that is not here, is no error or cannot be extended gives a `RuntimeError` that names it."""
    names = ["nowhere.Gone", "os.path", "subprocess.Popen", "KeyboardInterrupt", f"{__name__}.Final", ""]
    for name in names:
        made = recorded_error({"type": name, "message": "x"})
        assert type(made) is RuntimeError
        assert str(made) == f"{name}: x"
    assert "nowhere" not in sys.modules
    assert str(recorded_error(None)) == ""
    assert str(recorded_error({"type": "KeyError", "message": "(" * 4_000})) == "(" * 4_000


def test_an_agent_that_shows_an_error_replays_as_the_same() -> None:
    """What an agent tells its model of an error is the same in a replay."""

    def fail() -> None:
        raise KeyError("order")

    def decline() -> None:
        raise Declined(51, "insufficient funds")

    def agent(run: woodrat.Run) -> str:
        texts = []
        for name, function, kind in (("find", fail, KeyError), ("pay", decline, Declined)):
            try:
                run.tool(name, function)
            except kind as error:
                texts.append(f"{type(error).__name__}: {error}")
        run.model("small-1", lambda: "sorry", messages=[{"role": "tool", "content": text} for text in texts])
        return json.dumps(texts)

    with woodrat.open(":memory:", agent="clerk") as ledger:
        with ledger.run("?") as run:
            run.answer(agent(run))
        replay = ledger.runs.replay(run.id, agent)
        assert replay.same, replay.table()
        assert ledger.runs.show(run.id).answer == '["KeyError: \'order\'", "Declined: insufficient funds (51)"]'
