"""Predicates: functions of the agent's code as rules, with everything they look at recorded.

A predicate sees the facts through a view that records. It answers yes or no; where it raises, or answers nothing, its
rule is unknown.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.canon import form
from woodrat.errors import Fault
from woodrat.runs import values as run_values
from woodrat.runs.facts import number_or_plain
from woodrat.runs.operators import NO_FACT
from woodrat.runs.steps import Condition
from woodrat.runs.values import NOTHING, REDACTED
from woodrat.state.redaction import taken_out

if TYPE_CHECKING:
    from collections.abc import Collection

    from woodrat.canon.form import Json
    from woodrat.runs.facts import Facts

CONDITIONS_MAX: Final = 1_000
"""Most conditions one decision records."""

_AWAITED: Final = "a predicate answers at once; this one has to be awaited"
_LATER: Final[Mapping[int, str]] = {
    0x80: _AWAITED,
    0x200: _AWAITED,
    0x20: "a predicate answers at once; this one is a generator",
}
"""By the flags of compiled code, why a function of that kind gives no answer."""


def predicate_name(predicate: object) -> str:
    """Return what a predicate is called: its module and name."""
    try:
        name = getattr(predicate, "__qualname__", None) or type(predicate).__qualname__
        module = getattr(predicate, "__module__", None) or type(predicate).__module__
        return run_values.text(f"{module}.{name}")
    except Exception:
        return "it cannot be named"


def predicate_faults(predicate: object, path: str) -> list[Fault]:
    """Return what is wrong with a predicate that can never answer."""
    flags = getattr(getattr(predicate, "__code__", None), "co_flags", 0)
    problem = next((said for bit, said in _LATER.items() if type(flags) is int and flags & bit), None)
    if problem is None and isinstance(predicate, type):
        problem = "a class is not a predicate"
    if problem is None:
        return []
    return [Fault(path, f"{predicate_name(predicate)}: {problem}", "Send a plain function that returns true or false.")]


def ask(predicate: Callable[..., Any], looks: Looks) -> tuple[bool | None, Json]:
    """Return what a predicate answers, none where that is unknown, and what went wrong while it was asked."""
    try:
        answer = predicate(FactView(looks))
        if isinstance(answer, Awaitable):
            close = getattr(answer, "close", None)
            if callable(close):
                close()
            return None, _AWAITED
        if answer is None:
            return None, "it answered nothing; a predicate returns true or false"
        return bool(answer), None
    except Exception as problem:
        found = run_values.error(problem)
        # The message may quote a value that is to be hidden.
        return None, {**found, "message": REDACTED} if looks.touched_hidden else found


def said(
    key: str, op: str, operand: Json, result: bool | None, error: str | None, facts: Facts, hidden: Collection[str]
) -> Condition:
    """Return a comparison as a record shows it."""
    actual = facts.values.get(key)
    if hidden is not NOTHING:
        if key in hidden:
            actual = REDACTED if key in facts.values else None
            operand = REDACTED if op else None
        else:
            actual, operand = run_values.plain(actual, hidden), run_values.plain(operand, hidden)
    return Condition(key, op, operand, actual, result, facts.origin(key), error)


class Looks:
    """What a predicate looks at and compares, as it happens."""

    def __init__(self, facts: Facts, hidden: Collection[str]) -> None:
        self._facts = facts
        self._hidden = hidden
        self._compared: list[tuple[str, str, Json, bool]] = []
        self._looked: dict[str, None] = {}

    @property
    def values(self) -> Mapping[str, Json]:
        return self._facts.values

    def has(self, key: object) -> bool:
        """Return whether there is such a fact, and note that it was asked for."""
        name = run_values.text(key)
        self._looked[name] = None
        if name in self._facts.values:
            return True
        self.compare(name, "exists", True, False)
        return False

    def compare(self, key: str, op: str, operand: object, result: bool) -> None:
        """Note a comparison; the same one twice in a row counts once."""
        self._looked[key] = None
        compared = (key, op, number_or_plain(operand), result)
        if len(self._compared) < CONDITIONS_MAX and compared not in self._compared[-1:]:
            self._compared.append(compared)

    @property
    def touched_hidden(self) -> bool:
        """Whether a fact that is to be hidden, or that holds one, was looked at."""
        values = self._facts.values
        return any(
            key in self._hidden or taken_out(values.get(key), self._hidden) is not values.get(key)
            for key in self._looked
        )

    def conditions(self, answer: bool | None) -> tuple[Condition, ...]:
        """Return what was compared, and then what was only looked at, with the answer of the whole predicate."""
        facts, hidden = self._facts, self._hidden
        found = [said(key, op, operand, result, None, facts, hidden) for key, op, operand, result in self._compared]
        compared = {condition.key for condition in found}
        looked = (key for key in self._looked if key not in compared)
        return (*found, *(said(key, "", None, answer, None, facts, hidden) for key in looked))


class FactView(Mapping[str, Any]):
    """The facts as a predicate sees them: `view["score"] < 600`, `view.score`, `view.get("score")`, `"score" in view`.

    What is looked at is recorded, and so is every comparison of a number or a text with something else. What is done
    with a value otherwise (arithmetic, calling its methods) works as ever and is recorded as having looked at it.
    """

    def __init__(self, looks: Looks) -> None:
        self.__looks = looks
        self.__given: dict[str, Any] = {}

    def __getitem__(self, key: str) -> Any:
        if not self.__looks.has(key):
            raise KeyError(key)
        if key not in self.__given:
            self.__given[key] = _recording(key, self.__looks.values[key], self.__looks.compare)
        return self.__given[key]

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"{NO_FACT}: {name}") from None

    def __contains__(self, key: object) -> bool:
        found = self.__looks.has(key)
        if found:
            self.__looks.compare(str(key), "exists", True, True)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(dict(self.__looks.values))

    def __len__(self) -> int:
        return len(self.__looks.values)


_Compare = Callable[[str, str, object, bool], None]


def _recording(key: str, value: Json, compare: _Compare) -> Any:
    """Return a value that records how it is compared, where Python lets one; of a container, a copy."""
    kind = _RECORDING.get(type(value))
    if kind is not None:
        return kind(key, value, compare)
    return form.decode(form.serialise(value)) if isinstance(value, list | dict) else value


def _recording_type(base: type, name: str) -> Callable[[str, Json, _Compare], Any]:
    """Make a subclass of `base` whose comparisons are recorded."""

    def asks(op: str, function: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def ask(self: Any, other: Any) -> Any:
            operand = base_of(other)
            result = function(base_of(self), operand)
            if type(result) is bool:
                self._compare(self._key, op, operand, result)
            return result

        return ask

    functions = {"lt": operator.lt, "lte": operator.le, "gt": operator.gt, "gte": operator.ge}
    space: dict[str, Any] = {
        f"__{function.__name__}__": asks(op, function)
        for op, function in {**functions, "eq": operator.eq, "ne": operator.ne}.items()
    }
    # Pickled or copied it is a plain value.
    space["__reduce_ex__"] = lambda self, protocol: (base, (base_of(self),))
    made = type(name, (base,), {**space, "__hash__": base.__hash__, "__module__": __name__})

    def make(key: str, value: Json, compare: _Compare) -> Any:
        recording = made(value)
        vars(recording).update(_key=key, _compare=compare)
        return recording

    return make


def base_of(value: Any) -> Any:
    """Return a recording value as the plain one it is; anything else as it is."""
    if type(value).__module__ != __name__:
        return value
    for base in (str, int, float):
        if isinstance(value, base):
            return base.__str__(value) if base is str else base(value)
    return value


_RECORDING: Final[Mapping[type, Callable[[str, Json, _Compare], Any]]] = {
    str: _recording_type(str, "Text"),
    int: _recording_type(int, "Whole"),
    float: _recording_type(float, "Real"),
}
