"""Pattern: a small language of regular expressions that means the same for ever and always ends.

The operator `matches` asks whether a pattern is found in a text. Python's own `re` cannot serve: it backtracks, and its
Unicode tables change from release to release, while a decision must come out the same when it is evaluated again years
later. Here a pattern becomes an automaton that walks all its ways at once, so time grows with pattern × text, and
classes are ASCII. docs/formats/runs.md specifies the language.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

PATTERN_CHARACTERS_MAX: Final = 1_000
"""Longest pattern."""
STATES_MAX: Final = 2_000
"""Most states a pattern may have once its repetitions are written out."""
TEXT_CHARACTERS_MAX: Final = 65_536
"""Longest text that is searched."""
STEPS_MAX: Final = 2_000_000
"""Most steps a search may take; counted as if nothing were remembered, so the count is part of the language."""
GROUPS_MAX: Final = 50
"""How many groups may stand inside each other."""
MOVES_MAX: Final = 4_096
"""How many moves of a search are remembered."""

_Ranges = tuple[tuple[int, int], ...]
"""Code points, as inclusive ranges."""

_LAST = 0x10FFFF
_DIGIT: Final[_Ranges] = ((48, 57),)
_WORD: Final[_Ranges] = ((48, 57), (65, 90), (95, 95), (97, 122))
_SPACE: Final[_Ranges] = ((9, 13), (32, 32))
_ESCAPES: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v"}
_CLASSES: Final = {"d": _DIGIT, "w": _WORD, "s": _SPACE}
_START, _END, _EDGE, _NO_EDGE = "^", "$", "\\b", "\\B"

# A program is a list of (operation, ...): take a character, go two ways, stand at a place, done.
_TAKE, _FORK, _STAND, _DONE = range(4)


class PatternError(ValueError):
    """The pattern is none of this language, or asks for more than its limits."""


class Pattern:
    """A pattern that was understood; `found_in` asks."""

    __slots__ = ("_moves", "_program")

    def __init__(self, program: list[tuple[int, object, object]]) -> None:
        self._program = program
        self._moves: dict[tuple[frozenset[int], int, str], tuple[frozenset[int], bool, int]] = {}

    def found_in(self, text: str) -> bool:
        """Return whether the pattern is found anywhere in `text`; raise `PatternError` beyond the limits."""
        if len(text) > TEXT_CHARACTERS_MAX:
            raise PatternError(f"the text has {len(text)} characters, where {TEXT_CHARACTERS_MAX} is the limit")
        moves = self._moves
        at: frozenset[int] = frozenset((0,))
        before, steps = 0, 0  # 0: the start, 1: a word character, 2: another
        for here in (*text, ""):
            key = (at, before, here)
            move = moves.get(key)
            if move is None:
                if len(moves) >= MOVES_MAX:
                    moves.clear()
                move = moves[key] = self._move(at, before, here)
            at, done, cost = move
            if done:
                return True
            steps += cost
            if steps > STEPS_MAX:
                raise PatternError(f"the search takes more than {STEPS_MAX} steps")
            before = 1 if here and _in(_WORD, ord(here)) else 2
        return False

    def example(self) -> str | None:
        """Return a short text in which the pattern is found; none where a simple walk finds none."""
        # Breadth first by characters: what stands at a place is let pass, and the text is tried at the end.
        ways: dict[int, str] = {0: ""}
        todo = [0]
        for state in todo:
            operation, one, other = self._program[state]
            if operation == _DONE:
                text = ways[state]
                tries = (text, f" {text}", f"{text} ", f" {text} ", f"a{text}", f"{text}a", f"a{text}a")
                return next((said for said in tries if self.found_in(said)), None)
            if operation == _TAKE:
                following = [(state + 1, ways[state] + _shown_character(one))]  # type: ignore[arg-type]
            elif operation == _FORK:
                following = [(way, ways[state]) for way in (one, other) if isinstance(way, int)]
            else:
                following = [(state + 1, ways[state])]
            for way, text in following:
                if way not in ways:
                    ways[way] = text
                    todo.append(way)
        return None

    def _move(self, at: frozenset[int], before: int, here: str) -> tuple[frozenset[int], bool, int]:
        """Return where the automaton stands after `here`, whether it is done before it, and how many steps it took."""
        word = bool(here) and _in(_WORD, ord(here))
        todo, seen, following = list(at), set(at), {0}  # a search may begin anywhere
        while todo:
            state = todo.pop()
            operation, one, other = self._program[state]
            if operation == _DONE:
                return frozenset(), True, len(seen)
            if operation == _TAKE:
                if here and _in(one, ord(here)):  # type: ignore[arg-type]
                    following.add(state + 1)
                continue
            if operation == _FORK:
                ways: tuple[object, ...] = (one, other)
            elif (
                (one == _START and before == 0)
                or (one == _END and not here)
                or (one == _EDGE and (before == 1) != word)
                or (one == _NO_EDGE and (before == 1) == word)
            ):
                ways = (state + 1,)
            else:
                ways = ()
            for way in ways:
                assert isinstance(way, int)
                if way not in seen:
                    seen.add(way)
                    todo.append(way)
        return frozenset(following), False, len(seen)


@lru_cache(maxsize=256)
def read(pattern: str) -> Pattern:
    """Return the pattern that `pattern` writes, or raise `PatternError` saying where and why it is none."""
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise PatternError(f"the pattern has {len(pattern)} characters, where {PATTERN_CHARACTERS_MAX} is the limit")
    return Pattern(_Reader(pattern).read())


def _in(ranges: _Ranges, point: int) -> bool:
    return any(low <= point <= high for low, high in ranges)


def _shown_character(ranges: _Ranges) -> str:
    """Return a character of a class: one that people read, where there is one."""
    for low, high in ((97, 122), (48, 57), (65, 90), (32, 126), (1, 0xD7FF), (0xE000, _LAST)):
        for first, last in ranges:
            if max(first, low) <= min(last, high):
                return chr(max(first, low))
    return ""


def _opposite(ranges: _Ranges) -> _Ranges:
    found, low = [], 0
    for first, last in sorted(ranges):
        if first > low:
            found.append((low, first - 1))
        low = max(low, last + 1)
    return (*found, (low, _LAST)) if low <= _LAST else tuple(found)


def _either_case(ranges: _Ranges) -> _Ranges:
    found = list(ranges)
    for first, last in ranges:
        for low, high, shift in ((65, 90, 32), (97, 122, -32)):
            if max(first, low) <= min(last, high):
                found.append((max(first, low) + shift, min(last, high) + shift))
    return tuple(found)


_Program = list[tuple[int, object, object]]


class _Reader:
    """Reads one pattern; fragments are programs that count their ways from their own beginning."""

    def __init__(self, pattern: str) -> None:
        self._ignores_case = pattern.startswith("(?i)")
        self._at = 4 if self._ignores_case else 0
        self._pattern = pattern
        self._groups = 0

    def read(self) -> _Program:
        program = self._either()
        if self._at < len(self._pattern):
            raise self._error("there is no group to close")
        return self._checked([*program, (_DONE, None, None)])

    def _error(self, problem: str) -> PatternError:
        return PatternError(f"at character {self._at} of the pattern: {problem}")

    def _checked(self, program: _Program) -> _Program:
        if len(program) > STATES_MAX:
            raise self._error(f"it has more than {STATES_MAX} states so far")
        return program

    def _peek(self) -> str:
        return self._pattern[self._at : self._at + 1]

    def _next(self, missing: str) -> str:
        found = self._peek()
        if not found:
            raise self._error(missing)
        self._at += 1
        return found

    def _either(self) -> _Program:
        ways = [self._sequence()]
        while self._peek() == "|":
            self._at += 1
            ways.append(self._sequence())
        program = ways.pop()
        while ways:
            way = ways.pop()
            over = len(program) + 1
            # Fork to the way or past it; after the way, fork past the rest (twice the same: a jump).
            jump = (_FORK, len(way) + 1 + over, len(way) + 1 + over)
            program = self._checked([(_FORK, 1, len(way) + 2), *_moved(way, 1), jump, *_moved(program, len(way) + 2)])
        return program

    def _sequence(self) -> _Program:
        program: _Program = []
        while (found := self._peek()) and found not in "|)":
            item, repeats = self._item()
            counts = self._repetition(repeats)
            item = item if counts is None else self._repeated(item, *counts)
            program = self._checked([*program, *_moved(item, len(program))])
        return program

    def _item(self) -> tuple[_Program, bool]:
        """Return the next item, and whether it may be repeated."""
        found = self._next("")
        if found == "(":
            return self._group(), True
        if found == "[":
            return self._take(self._class()), True
        if found == ".":
            return self._take(_opposite(((10, 10),))), True
        if found in "^$":
            return [(_STAND, found, None)], False
        if found in "*+?{":
            self._at -= 1
            raise self._error(f"there is nothing for {found} to repeat; a plain one is written \\{found}")
        if found == "\\":
            if self._peek() in ("b", "B"):
                return [(_STAND, "\\" + self._next(""), None)], False
            return self._take(self._escape()), True
        return self._take(((ord(found), ord(found)),)), True

    def _take(self, ranges: _Ranges) -> _Program:
        return [(_TAKE, _either_case(ranges) if self._ignores_case else ranges, None)]

    def _group(self) -> _Program:
        if self._peek() == "?":
            self._at += 1
            if self._next("the group ends here") != ":":
                self._at -= 1
                raise self._error("only (…) and (?:…) are groups here, and (?i) stands at the very beginning")
        self._groups += 1
        if self._groups > GROUPS_MAX:
            raise self._error(f"more than {GROUPS_MAX} groups stand inside each other")
        program = self._either()
        self._groups -= 1
        self._next("a group is not closed")
        return program

    def _escape(self) -> _Ranges:
        found = self._next("a backslash stands at the end")
        if found.lower() in _CLASSES:
            ranges = _CLASSES[found.lower()]
            return ranges if found.islower() else _opposite(ranges)
        if found in _ESCAPES:
            point = ord(_ESCAPES[found])
        elif found in "xu":
            length = 2 if found == "x" else 4
            digits = self._pattern[self._at : self._at + length]
            if len(digits) < length or not all(digit in "0123456789abcdefABCDEF" for digit in digits):
                raise self._error(f"\\{found} is followed by {length} hexadecimal digits")
            self._at += length
            point = int(digits, 16)
        elif found.isascii() and not found.isalnum():
            point = ord(found)
        else:
            self._at -= 1
            raise self._error(f"there is no \\{found} here")
        return ((point, point),)

    def _class(self) -> _Ranges:
        opposite = self._peek() == "^"
        self._at += opposite
        found: list[tuple[int, int]] = []
        if self._peek() == "]":
            raise self._error("the class is empty; a plain ] is written \\]")
        while (first := self._next("a class is not closed")) != "]":
            low = self._escape() if first == "\\" else ((ord(first), ord(first)),)
            if self._peek() == "-" and self._pattern[self._at + 1 : self._at + 2] not in ("]", ""):
                self._at += 1
                last = self._next("")
                high = self._escape() if last == "\\" else ((ord(last), ord(last)),)
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
                    raise self._error("a range goes from one character to another")
                if low[0][0] > high[0][0]:
                    raise self._error("the range goes backwards")
                low = ((low[0][0], high[0][0]),)
            found.extend(low)
        ranges = _either_case(tuple(found)) if self._ignores_case else tuple(found)
        return _opposite(ranges) if opposite else ranges

    def _repetition(self, allowed: bool) -> tuple[int, int | None] | None:
        found = self._peek()
        if not found or found not in "*+?{":
            return None
        if not allowed:
            raise self._error(f"there is nothing for {found} to repeat")
        self._at += 1
        counts = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(found) or self._counts()
        if self._peek() == "?":
            self._at += 1  # as few as possible or as many: for the question whether, they are one
        if (again := self._peek()) and again in "*+?{":
            raise self._error("a repetition is repeated; put it into a group")
        return counts

    def _counts(self) -> tuple[int, int | None]:
        end = self._pattern.find("}", self._at)
        low, comma, high = self._pattern[self._at : end if end >= 0 else None].partition(",")
        fewest, most = _number(low), _number(high) if high else None
        if end < 0 or fewest is None or (high and most is None):
            raise self._error("expected {m}, {m,} or {m,n}; a plain { is written \\{")
        self._at = end + 1
        if not comma:
            return fewest, fewest
        if most is not None and most < fewest:
            raise self._error("the repetition goes backwards")
        return fewest, most

    def _repeated(self, item: _Program, fewest: int, most: int | None) -> _Program:
        copies = fewest + (1 if most is None else most - fewest)
        if copies * (len(item) + 1) > STATES_MAX:
            raise self._error(f"it has more than {STATES_MAX} states so far")
        program: _Program = []
        for _ in range(fewest):
            program += _moved(item, len(program))
        size = len(item)
        if most is None:
            start = len(program)
            program += [(_FORK, start + 1, start + size + 2), *_moved(item, start + 1), (_FORK, start, start)]
        else:
            end = len(program) + (most - fewest) * (size + 1)
            for _ in range(most - fewest):
                start = len(program)
                program += [(_FORK, start + 1, end), *_moved(item, start + 1)]
        return program


def _number(text: str) -> int | None:
    return int(text) if text and len(text) <= 4 and all(digit in "0123456789" for digit in text) else None


def _moved(program: _Program, by: int) -> _Program:
    """Return a fragment whose ways lead on from `by`."""
    return [
        (operation, one + by, other + by) if operation == _FORK else (operation, one, other)  # type: ignore[operator]
        for operation, one, other in program
    ]
