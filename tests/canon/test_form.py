"""Canonical form: one spelling per value, and a door that refuses what has none."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import itertools
import json
import math
import random
import string
import struct
import uuid
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from woodrat.canon import form
from woodrat.canon.form import BODY_BYTES_MAX, DEPTH_MAX, INTEGER_MAX, Json
from woodrat.canon.order import order_bytes, order_key
from woodrat.errors import Refused, shown

ROOT = Path(__file__).resolve().parents[2]
VECTORS = ROOT / "tests/golden/rfc8785"
PAGE = (ROOT / "docs/formats/canonical-form.md").read_text("utf-8")
DOCUMENTS = sorted(path.name.removesuffix(".input.json") for path in VECTORS.glob("*.input.json"))
NUMBERS: list[dict[str, str | None]] = json.loads((VECTORS / "numbers.json").read_text("utf-8"))


def double(bits: str) -> float:
    """Return the double of 16 hexadecimal digits."""
    number: float = struct.unpack(">d", bytes.fromhex(bits))[0]
    return number


def nested(depth: int, inner: Any = None) -> Any:
    """Return `inner` inside so many arrays and objects, by turns."""
    value = inner
    for level in range(depth):
        value = [value] if level % 2 else {"a": value}
    return value


def refused(text: str | bytes) -> list[tuple[str, str]]:
    """Return path and problem of everything `parse` refuses in `text`; all of it can be printed."""
    with pytest.raises(Refused) as refusal:
        form.parse(text)
    for fault in refusal.value.faults:
        str(fault).encode("utf-8")
        assert fault.remedy.endswith(".")
        assert not fault.problem.endswith(".")
    return [(fault.path, fault.problem) for fault in refusal.value.faults]


def block(word: str) -> list[str]:
    """Return the lines of the page's block marked with `word`."""
    return PAGE.split(f"```{word}\n")[1].split("\n```")[0].split("\n")


# -- values to test with ----------------------------------------------------------------------------------------------

characters = st.one_of(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0"),
    st.sampled_from('"\\/\b\t\n\f\r\x01\x1f\x7f\x80\u2028\ud7ff\ue000\ufb33\uffff\U00010000\U0010ffffu0'),
)
texts = st.text(characters, max_size=8)
floats = st.floats(allow_nan=False, allow_infinity=False)
numbers = st.one_of(st.integers(-INTEGER_MAX, INTEGER_MAX), floats).filter(lambda number: not form.faults(number))
scalars = st.one_of(st.none(), st.booleans(), numbers, texts)
accepted: st.SearchStrategy[Any] = st.recursive(
    scalars, lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(texts, inner, max_size=5))
)


class Troublesome:
    """Random values that lean towards what spellings disagree on."""

    CHARACTERS = (
        '"\\/\b\t\n\f\r\0\x01\x0b\x1f\x7f\x80\x85äß€\u2028\u2029'
        "\ud7ff\ue000\ufb33\ufeff\uffff\U00010000\U0001f600\U0010ffff"
    )
    EDGES = (0.0, -0.0, 5e-324, 2.2250738585072014e-308, 1.7976931348623157e308, 1e21, 1e20, 1e-6, 1e-7, 0.1, 2.0**53)

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def text(self) -> str:
        alphabet = self.CHARACTERS if self.random.random() < 0.5 else string.ascii_letters
        return "".join(self.random.choices(alphabet, k=self.random.randrange(6)))

    def number(self) -> int | float:
        choice = self.random.randrange(6)
        if choice == 0:
            return self.random.randint(-INTEGER_MAX, INTEGER_MAX)
        if choice == 1:
            return self.random.choice((-1, 1)) * (INTEGER_MAX - self.random.randrange(3))
        if choice == 2:
            number = double(self.random.randbytes(8).hex())
            return number if math.isfinite(number) else 0.5
        if choice == 3:
            return self.random.uniform(-10, 10) * 10.0 ** self.random.randint(-24, 24)
        if choice == 4:
            near = self.random.choice((*self.EDGES, 1e15, 1e16, 1e17, 1e-4, 1e-5, 1e22, 1e-15))
            for _ in range(self.random.randrange(4)):
                near = math.nextafter(near, self.random.choice((math.inf, -math.inf)))
            return near if math.isfinite(near) else 1.5
        return round(self.random.uniform(-1e6, 1e6), self.random.randrange(5))

    def value(self, depth: int = 0) -> Any:
        choice = self.random.random()
        if depth < 3 and choice < 0.25:
            return {self.text(): self.value(depth + 1) for _ in range(self.random.randrange(6))}
        if depth < 3 and choice < 0.4:
            return [self.value(depth + 1) for _ in range(self.random.randrange(5))]
        if choice < 0.65:
            return self.number()
        if choice < 0.85:
            return self.text()
        return self.random.choice((None, True, False, 0, 1))


# -- bytes ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", DOCUMENTS)
def test_published_documents_have_their_published_bytes(name: str) -> None:
    """Each document of RFC 8785 and of its authors' test data is spelled as published, and passes the door."""
    text, expected = ((VECTORS / f"{name}.{end}.json").read_bytes() for end in ("input", "output"))
    assert form.serialise(json.loads(text)) == expected
    assert form.encode(form.parse(text)) == expected
    assert form.parse(text) == form.decode(expected)


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: str(row["ieee754"]))
def test_published_numbers_have_their_published_text(row: dict[str, str]) -> None:
    """Each number of RFC 8785 appendix B is spelled as published, and NaN and Infinity are errors."""
    number = double(row["ieee754"])
    if row["text"] is None:
        with pytest.raises(ValueError, match="no spelling"):
            form.serialise(number)
    else:
        assert form.serialise(number) == row["text"].encode()


REFUSED_OF_PUBLISHED = {
    "8000000000000000": "negative zero",
    "4340000000000000": "not stable",
    "c340000000000000": "not stable",
    "4430000000000000": "not stable",
    "444b1ae4d6e2ef4e": "not stable",
    "444b1ae4d6e2ef4f": "not stable",
    "7fffffffffffffff": "not a JSON number",
    "7ff0000000000000": "not a JSON number",
}
"""What the door refuses of RFC 8785's own numbers, and why; it refuses none of the documents."""


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: str(row["ieee754"]))
def test_the_door_refuses_these_published_numbers(row: dict[str, str]) -> None:
    """Of the published numbers the door refuses those listed, and both doors agree; all others stay as they are."""
    number, why = double(row["ieee754"]), REFUSED_OF_PUBLISHED.get(row["ieee754"])
    problems = [fault.problem for fault in form.faults(number)]
    if why is None:
        assert problems == []
        assert form.encode(number) == row["text"].encode()
        assert form.parse(row["text"]) == number
        assert form.decode(form.encode(number)) == number
    else:
        (problem,) = problems
        assert why in problem
        literal = {"8000000000000000": "-0.0", "7fffffffffffffff": "NaN", "7ff0000000000000": "Infinity"}
        ((_, problem),) = refused(literal.get(row["ieee754"], row["text"]))
        assert why in problem


def test_the_fast_way_equals_the_reference() -> None:
    """A hundred thousand troublesome values are spelled as the reference implementation spells them."""
    source = Troublesome(8785)
    plain = 0
    for number in range(100_000):
        value = source.value()
        assert form.serialise(value) == rfc8785.dumps(value), f"value {number}: {value!r}"
        plain += form._is_plain(value)
    assert 20_000 < plain < 90_000  # both ways were taken often


@given(
    st.dictionaries(
        st.text(st.characters(max_codepoint=127), max_size=3),
        st.one_of(st.text(max_size=3), st.integers(-(2**53), 2**53), st.booleans(), st.none()),
    )
)
def test_plain_values_need_no_look(value: dict[str, Any]) -> None:
    """Objects of scalars without floats, with ASCII keys, are spelled the same whether or not anybody looks first."""
    assert form.serialise_plain({"fields": value}) == form.serialise({"fields": value})


def test_every_character_is_spelled_as_the_reference_does() -> None:
    """Every Unicode character is spelled alike in text and in keys, whichever way is taken."""
    for start in range(0, 0x110000, 0x100):
        if 0xD800 <= start <= 0xDFFF:
            continue
        run = [chr(code) for code in range(start, start + 0x100)]
        value: Any = {"text": "".join(run), "keys": dict.fromkeys(run, 1)}
        expected = rfc8785.dumps(value)
        assert form.serialise(value) == expected
        assert form._spell(value) == expected


@given(st.floats(allow_nan=False, allow_infinity=False))
@example(1e15)
@example(math.nextafter(1e15, 0))
@example(1e-4)
@example(math.nextafter(1e-4, 0))
def test_floats_are_spelled_as_the_reference_does(number: float) -> None:
    """Every double has the reference's spelling, which reads back as the same double."""
    assert form.serialise([number]) == rfc8785.dumps([number]) == form._spell([number])
    assert float(form.serialise(number)) == number


@given(accepted)
def test_both_ways_agree(value: Any) -> None:
    """Whichever way a value takes, door or none, its bytes are the same."""
    assert form.encode(value) == form.serialise(value) == form._spell(value) == rfc8785.dumps(value)


def test_integers_beyond_the_range_are_spelled_when_a_double_holds_them() -> None:
    """Without the door a large integer is spelled as the double it is; one that no double holds is an error."""
    assert form.serialise(2**53) == b"9007199254740992"
    assert form.serialise([-(2**64)]) == form.serialise([-(2.0**64)]) == b"[-18446744073709552000]"
    assert form.serialise({"a": 10**21}) == b'{"a":1e+21}'
    for number in (2**53 + 1, 2**64 - 1, 10**400):
        with pytest.raises(ValueError, match="no double"):
            form.serialise([number])


@pytest.mark.parametrize(
    "value",
    [(1,), {1}, b"x", decimal.Decimal(1), {1: 2}, {None: 1}, math.nan, [math.inf], "\ud800", {"\udc00": 1}, object()],
)
def test_what_has_no_spelling_is_an_error(value: object) -> None:
    """Without the door, what RFC 8785 cannot spell is still never written."""
    with pytest.raises((TypeError, ValueError)):
        form.serialise(value)


def test_depth_does_not_stop_the_spelling() -> None:
    """Without the door a value may be deeper than any recursion limit."""
    deep: Json = []
    for _ in range(99_999):
        deep = [deep]
    assert form.serialise(deep) == b"[" * 100_000 + b"]" * 100_000


# -- reading back -----------------------------------------------------------------------------------------------------


@given(accepted)
def test_what_is_accepted_is_stable(value: Any) -> None:
    """Parse, print and parse change nothing that was accepted, by either reader."""
    data = form.encode(value)
    assert form.encode(form.parse(data)) == data
    assert form.encode(form.decode(data)) == data
    assert form.parse(data) == form.decode(data) == form.normal(value)
    assert json.dumps(form.parse(data)) == json.dumps(form.decode(data))  # equal types too: 1 is not 1.0 here


@given(accepted, st.sampled_from([None, 1, "\t"]), st.booleans())
def test_other_spellings_read_as_the_same_value(value: Any, indent: int | str | None, escaped: bool) -> None:
    """White space, escapes and the order of keys in JSON text do not show in the value."""
    text = json.dumps(value, indent=indent, ensure_ascii=escaped)
    assert form.encode(form.parse(text)) == form.encode(value)
    assert form.parse(text.encode("utf-8")) == form.parse(text)
    assert json.dumps(form.parse(text), sort_keys=True) == json.dumps(form.normal(value), sort_keys=True)


@given(st.text(max_size=30) | st.text(alphabet='{}[]",:\\u0019-+.eE \ntrueflasN', max_size=30))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """No text makes the parser fail in another way, and what it accepts is stable."""
    try:
        value = form.parse(text)
    except Refused:
        return
    assert form.faults(value) == []
    assert form.parse(form.encode(value)) == value


@given(st.from_regex(r"-?(0|[1-9][0-9]{0,20})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True))
def test_number_literals_are_read_or_refused(literal: str) -> None:
    """A number literal becomes the nearest double, an integer if it is integral, or is refused for a named reason."""
    exact = decimal.Decimal(literal)
    try:
        value = form.parse(literal)
    except Refused:
        nearest = float(literal)
        assert (
            math.isinf(nearest)
            or (nearest == 0 and (exact != 0 or literal.startswith("-")))
            or (
                nearest.is_integer()
                and abs(nearest) > INTEGER_MAX
                and (abs(nearest) < 1e21 or literal.lstrip("-").isdigit())
            )
        )
        return
    assert value == float(literal)
    assert type(value) is (int if float(literal).is_integer() and abs(float(literal)) <= INTEGER_MAX else float)


@pytest.mark.parametrize("line", block("form"))
def test_the_page_s_spellings_are_right(line: str) -> None:
    """Each text on the page has the canonical bytes it shows."""
    text, shown = line.split("  ->  ")
    assert form.encode(form.parse(text)) == shown.encode("utf-8")


def test_the_page_s_bytes_are_right() -> None:
    """The bytes on the page are those of the example before them."""
    assert bytes.fromhex(" ".join(block("hex"))).decode() == block("form")[-1].split("  ->  ")[1]


@pytest.mark.parametrize("text", block("refused"))
def test_the_page_s_refusals_are_right(text: str) -> None:
    """Each text that the page calls refused is refused."""
    assert refused(text)


def test_integral_floats_are_integers() -> None:
    """`1.0` and `1` are one value, spelled and read back as `1`."""
    assert form.encode(1.0) == form.encode(1) == b"1"
    assert form.encode({"a": [42.0, -7.0]}) == b'{"a":[42,-7]}'
    for value in (form.normal(1.0), form.parse("1.0"), form.parse("10e-1"), form.parse("0.1e1")):
        assert type(value) is int
        assert value == 1
    assert type(form.parse("0.0")) is int
    assert form.parse("9007199254740991.0") == INTEGER_MAX
    assert form.parse("1e21") == form.normal(1e21) == 1e21
    assert type(form.parse("1e21")) is float


# -- the door for values ----------------------------------------------------------------------------------------------


class Colour(enum.IntEnum):
    """An integer that is not only an integer."""

    RED = 1


class Name(str):
    """A subclass of text."""


BAD_VALUES: list[tuple[object, str]] = [
    (math.nan, "not a JSON number"),
    (math.inf, "not a JSON number"),
    (-math.inf, "not a JSON number"),
    (-0.0, "negative zero"),
    (2**53, "not stable"),
    (-(2**53), "not stable"),
    (2**63, "not stable"),
    (2**64, "not stable"),
    (10**5000, "not stable"),
    (2.0**53, "not stable"),
    (-(2.0**53), "not stable"),
    (1e20, "not stable"),
    (math.nextafter(1e21, 0), "not stable"),
    ("\ud800", "half a surrogate pair"),
    ("a\udfffb", "half a surrogate pair"),
    ("\ud83d\ude00", "half a surrogate pair"),  # in Python two halves are no pair
    ("a\0", "NUL"),
    ("ä\0", "NUL"),
    ((1, 2), "tuple is not a JSON value"),
    ({1, 2}, "set is not a JSON value"),
    (frozenset(), "frozenset is not a JSON value"),
    (b"x", "bytes is not a JSON value"),
    (bytearray(b"x"), "bytearray is not a JSON value"),
    (decimal.Decimal("1.5"), "Decimal is not a JSON value"),
    (datetime.datetime(2024, 5, 1), "datetime is not a JSON value"),
    (datetime.date(2024, 5, 1), "date is not a JSON value"),
    (uuid.UUID(int=1), "UUID is not a JSON value"),
    (Colour.RED, "Colour is not a JSON value"),
    (Name("x"), "Name is not a JSON value"),
    (collections.OrderedDict(a=1), "OrderedDict is not a JSON value"),
    (object(), "object is not a JSON value"),
    (int, "type is not a JSON value"),
    (1j, "complex is not a JSON value"),
]


@pytest.mark.parametrize(("value", "problem"), BAD_VALUES, ids=shown)
def test_bad_values_are_refused(value: object, problem: str) -> None:
    """Each kind of bad value is refused wherever it stands, in its own words, at its path, with a remedy."""
    places: list[tuple[object, str]] = [(value, ""), ([0, value], "/1"), ({"a": {"b": [value]}}, "/a/b/0")]
    places.append(({"é": value, "\U0001f600": 1.0}, "/é"))
    for holder, path in places:
        (fault,) = form.faults(holder)
        assert fault.path == path
        assert problem in fault.problem
        assert fault.remedy.endswith(".")
        for way in (form.encode, form.normal):
            with pytest.raises(Refused) as refusal:
                way(holder)
            assert list(refusal.value.faults) == [fault]
            str(refusal.value).encode("utf-8")


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ({1: 2}, "", "is not text"),
        ({"x": {None: 2}}, "/x", "is not text"),
        ({(1, 2): 2}, "", "is not text"),
        ({Name("x"): 2}, "", "is not text"),
        ({"a\0": 2}, "/a\\u0000", "NUL"),
        ({"\ud800": 2}, "/\\ud800", "half a surrogate pair"),
        ({"a/b~c": {"\0": 1}}, "/a~1b~0c/\\u0000", "NUL"),
    ],
)
def test_bad_keys_are_refused(value: object, path: str, problem: str) -> None:
    """Keys are text as good as any other, and a bad one never spoils the message."""
    (fault,) = form.faults(value)
    assert (fault.path, problem in fault.problem) == (path, True)
    str(fault).encode("utf-8")
    with pytest.raises(Refused):
        form.encode(value)


def test_all_faults_are_reported_at_once() -> None:
    """Every fault of a value is named, in the order of the value, under the path the caller gave."""
    value = {"a": [math.nan, 1, 2**60], 5: -0.0, "b/c": {"\0": "\ud800"}, "ok": "fine", "z": b""}
    assert [fault.path for fault in form.faults(value, "/fields")] == [
        "/fields",
        "/fields/a/0",
        "/fields/a/2",
        "/fields/5 (number)",
        "/fields/b~1c/\\u0000",
        "/fields/b~1c/\\u0000",
        "/fields/z",
    ]


GOOD_VALUES = [
    0,
    1,
    -1,
    INTEGER_MAX,
    -INTEGER_MAX,
    9007199254740991.0,
    0.1,
    1e21,
    -1e21,
    1e300,
    5e-324,
    0.0,
    True,
    None,
]


@pytest.mark.parametrize(
    "value", [*GOOD_VALUES, "", "\\u0000", "\x01\x7f\x80\ufeff\uffff", "\U0001f600", [], {}, {"": 0}]
)
def test_good_values_pass(value: Any) -> None:
    """Values at the edge of what is refused pass and come back."""
    assert form.faults(value) == []
    assert form.normal({"a": [value]}) == {"a": [value]}
    assert form.encode([value]) == rfc8785.dumps([value])


def test_depth_is_bounded() -> None:
    """The deepest accepted value passes; one level more is one fault, whatever lies below."""
    assert form.faults(nested(DEPTH_MAX)) == []
    assert form.normal(nested(DEPTH_MAX, 0.5)) == nested(DEPTH_MAX, 0.5)
    for depth in (DEPTH_MAX + 1, 300, 100_000):
        (fault,) = form.faults(nested(depth, math.nan))
        assert "nested more than 64 deep" in fault.problem
        assert fault.path.count("/") == DEPTH_MAX
        with pytest.raises(Refused):
            form.encode(nested(depth))
    found = form.faults([nested(100), nested(100), math.nan])
    assert [fault.path.count("/") for fault in found] == [DEPTH_MAX, 1]


def test_length_is_bounded() -> None:
    """The longest accepted value passes; one byte more is refused with its size and the limit."""
    assert len(form.encode("x" * (BODY_BYTES_MAX - 2))) == BODY_BYTES_MAX
    for value in ("x" * (BODY_BYTES_MAX - 1), ["é" * (BODY_BYTES_MAX // 2)], {"a": [1.0] * BODY_BYTES_MAX}):
        with pytest.raises(Refused, match=f"{BODY_BYTES_MAX} bytes is the limit"):
            form.encode(value)
    with pytest.raises(Refused, match=f"{BODY_BYTES_MAX + 1} bytes in canonical form"):
        form.encode("x" * (BODY_BYTES_MAX - 1))


def test_values_that_hold_themselves_are_refused() -> None:
    """A value that holds itself, or one part over and over, is refused in bounded work."""
    itself: list[Any] = []
    itself.append(itself)
    with pytest.raises(Refused, match="nested more than 64 deep"):
        form.encode(itself)
    wide: list[Any] = []
    wide.extend([wide] * 1000)
    doubled: Any = "x"
    for _ in range(DEPTH_MAX - 1):
        doubled = [doubled, doubled]
    for value in (wide, doubled, [[None] * 1_000_000] * 1_000_000):
        with pytest.raises(Refused, match=r"nested more than 64 deep|too long"):
            form.encode(value)


# -- the door for text ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("NaN", "not a JSON number"),
        ("Infinity", "not a JSON number"),
        ("-Infinity", "not a JSON number"),
        ("-0", "negative zero"),
        ("-0.0", "negative zero"),
        ("-0e5", "negative zero"),
        ("-0.000E-7", "negative zero"),
        ("9007199254740992", "not stable"),
        ("-9007199254740992", "not stable"),
        ("18446744073709551616", "not stable"),
        ("9007199254740992.0", "not stable"),
        ("1e20", "not stable"),
        ("1e16", "not stable"),
        ("9" * 5000, "not stable"),
        ("1e400", "beyond the largest double"),
        ("-1e400", "beyond the largest double"),
        ("1e999999999999", "beyond the largest double"),
        ("9" * 400 + ".5", "beyond the largest double"),
        ("1e-400", "closer to zero"),
        ("-1e-400", "closer to zero"),
        ("0." + "0" * 400 + "1", "closer to zero"),
        ('"\\ud800"', "half a surrogate pair"),
        ('"\\udc00x"', "half a surrogate pair"),
        ('"\\ude00\\ud83d"', "half a surrogate pair"),
        ('"\\u0000"', "NUL"),
        ('"a\\u0000b"', "NUL"),
    ],
    ids=lambda part: str(part)[:30],
)
def test_bad_text_is_refused_where_it_stands(text: str, problem: str) -> None:
    """Each kind of bad literal is refused wherever it stands, at its path."""
    for around, path in (("%s", ""), ("[1, %s]", "/1"), ('{"a": {"b/c": [%s]}}', "/a/b~1c/0")):
        ((where, what),) = refused(around % text)
        assert where == path
        assert problem in what


def test_duplicate_keys_are_refused() -> None:
    """Every repeated key is named with its path, however it is spelled and however deep it lies."""
    text = '{"a": 1, "b": [{"x": 1, "x": 1, "x": 2}], "\\u0061": {"y": -0, "y": {"z": 1, "z": 1}}}'
    assert [path for path, problem in refused(text) if "more than once" in problem] == [
        "/a",
        "/b/0/x",
        "/b/0/x",
        "/a/y",
        "/a/y/z",
    ]
    assert form.parse('[{"a": 1}, {"a": 1}, {"a": {"a": 1}}]') == [{"a": 1}, {"a": 1}, {"a": {"a": 1}}]


def test_all_faults_of_a_text_are_reported_at_once() -> None:
    """Repeated keys, numbers and text are reported together."""
    text = '{"n": [NaN, 1e400, -0, 1e20, 5], "s": "\\ud800", "s": "\\u0000", "\\udfff": 1e-400}'
    assert refused(text) == [
        ("/s", 'the key "s" (text) appears more than once in one object'),
        ("/\\udfff", "the key '\\udfff' (text) holds half a surrogate pair, which is not a character"),
        ("/n/0", "NaN is not a JSON number"),
        ("/n/1", "1e400 is beyond the largest double"),
        ("/n/2", "-0 is negative zero, which JSON prints as 0"),
        ("/n/3", f"1e20 is an integer beyond ±{INTEGER_MAX} (2^53 - 1) and not stable: other readers round it"),
        ("/s", "the text '\\ud800' (text) holds half a surrogate pair, which is not a character"),
        ("/s", "the text '\\x00' (text) holds NUL (U+0000)"),
        ("/\\udfff", "1e-400 is closer to zero than any double but zero"),
    ]


@pytest.mark.parametrize(
    ("text", "place", "expected"),
    [
        ("", "line 1 column 1", "expected a value"),
        (" \n ", "line 2 column 2", "expected a value"),
        ("[1,\n 2,\n x]", "line 3 column 2", "expected a value, got 'x'"),
        ("[1 2]", "line 1 column 4", "expected ',' or the closing bracket, got '2'"),
        ("{1: 2}", "line 1 column 2", "expected a key in double quotes"),
        ("{'a': 2}", "line 1 column 2", "expected a key in double quotes"),
        ('{"a" 2}', "line 1 column 6", "expected ':' after the key"),
        ('{"a": }', "line 1 column 7", "expected a value"),
        ("1 2", "line 1 column 3", "expected the end of the text"),
        ("{}\n]", "line 2 column 1", "expected the end of the text"),
        ("01", "line 1 column 2", "expected the end of the text"),
        ("1.", "line 1 column 2", "expected the end of the text"),
        ("+1", "line 1 column 1", "expected a value"),
        (".5", "line 1 column 1", "expected a value"),
        ("-", "line 1 column 1", "expected a value"),
        ("-NaN", "line 1 column 1", "expected a value"),
        ("nul", "line 1 column 1", "expected a value"),
        ("True", "line 1 column 1", "expected a value"),
        ("// x\n1", "line 1 column 1", "expected a value"),
        ('"abc', "line 1 column 1", "at the end of the text that begins here"),
        ('"a\nb"', "line 1 column 3", "no control character"),
        ('"a\0b"', "line 1 column 3", "no control character"),
        ('"\\x"', "line 1 column 2", "after a backslash"),
        ('"\\u12g4"', "line 1 column", "four hexadecimal digits"),
        ('"\\u 123"', "line 1 column", "four hexadecimal digits"),
        ("\u00a01", "line 1 column 1", "expected a value"),
        ("1\u00a0", "line 1 column 2", "expected the end of the text"),
        ("١", "line 1 column 1", "expected a value"),
        ("1١", "line 1 column 2", "expected the end of the text"),
    ],
)
def test_malformed_text_is_refused_with_its_place(text: str, place: str, expected: str) -> None:
    """Malformed JSON is refused with line, column and what was expected."""
    ((path, problem),) = refused(text)
    assert path == ""
    assert problem.startswith(f"not JSON at {place}")
    assert expected in problem


@pytest.mark.parametrize("text", ["[1,]", '{"a": 1,}', "[,1]", "{,}"])
def test_stray_commas_are_refused(text: str) -> None:
    """A comma needs a value on both sides; the place may differ between Python versions."""
    ((_, problem),) = refused(text)
    assert problem.startswith("not JSON at line 1 column")


def test_other_encodings_are_refused() -> None:
    """Text is UTF-8 without a byte order mark; anything else is refused and never guessed."""
    assert "0xff at offset 1 is not UTF-8" in refused(b'"\xff"')[0][1]
    assert "not UTF-8" in refused(b'"\xed\xa0\x80"')[0][1]
    assert "not UTF-8" in refused(b'"\xc0\x80"')[0][1]
    assert "not UTF-8" in refused('"ä"'.encode("latin-1"))[0][1]
    assert "byte order mark" in refused(b"\xef\xbb\xbf{}")[0][1]
    assert "byte order mark" in refused("\ufeff{}")[0][1]
    for encoding in ("utf-16", "utf-16-le", "utf-32-be"):
        assert refused("[1]".encode(encoding))
    assert "half a surrogate pair at line 2 column 2" in refused('\n"\ud800"')[0][1]


@pytest.mark.parametrize("opening", ["[", '{"a":', '[{"a":', "[[],"])
@pytest.mark.parametrize("closed", [True, False])
def test_depth_bombs_are_refused(opening: str, closed: bool) -> None:
    """Text of any depth is refused by counting brackets, not by running out of stack."""
    closing = opening.translate({91: 93, 123: 125, 34: None, 97: None, 58: None, 44: None})[::-1]
    text = opening * 100_000 + ("1" + closing * 100_000 if closed else "")
    ((_, problem),) = refused(text)
    assert "nested more than 64 deep at line 1 column" in problem


def test_depth_of_text_is_bounded_as_that_of_values() -> None:
    """Text may be as deep as a value; brackets inside text and side by side do not count."""
    assert form.parse(json.dumps(nested(DEPTH_MAX))) == nested(DEPTH_MAX)
    assert refused(json.dumps(nested(DEPTH_MAX + 1)))
    assert form.parse(json.dumps("[{" * 1000)) == "[{" * 1000
    assert form.parse(json.dumps('\\"[' * 1000)) == '\\"[' * 1000
    assert form.parse(json.dumps([[]] * 1000)) == [[]] * 1000
    assert refused('"' + "[" * 1000)[0][1].startswith("not JSON")


def test_backslashes_are_not_mistaken_for_nul() -> None:
    """Text that spells out an escape is ordinary text."""
    for text in ("\\u0000", "\\\\u0000", "\\ud800"):
        assert form.parse(form.encode(text)) == text
        assert form.parse(form.encode({text: [text]})) == {text: [text]}


# -- order ------------------------------------------------------------------------------------------------------------


@given(accepted, accepted)
def test_order_is_total_and_equality_is_that_of_bytes(one: Any, other: Any) -> None:
    """Of two values exactly one is smaller, or their canonical bytes are equal."""
    a, b = order_key(one), order_key(other)
    assert (a < b) + (b < a) + (form.encode(one) == form.encode(other)) == 1
    assert (a == b) == (form.encode(one) == form.encode(other))


@given(accepted, accepted)
def test_order_bytes_sort_as_values_do(one: Any, other: Any) -> None:
    """The bytes derived data is sorted by have the order of the values, and none begin another's."""
    a, b = order_bytes(one), order_bytes(other)
    assert (a < b) == (order_key(one) < order_key(other))
    assert (a == b) == (form.encode(one) == form.encode(other))
    assert a == b or not a.startswith(b)


def test_order_bytes_of_what_lies_close_together() -> None:
    """Values of every kind that lie close together sort as they should."""
    values: list[Any] = [None, False, True, -1e300, -2, -1.5, -1, -5e-324, 0, 5e-324, 1, 1.5, 2**53 - 1, 1e300]
    values += ["", "\x01", "a", "a\x01", "aa", "b", "\uffff", "\U00010000"]
    values += [[], [None], [None, None], [[]], [[[]]], {"a": 1}, {"a": 2}, {"b": 1}, {}]
    assert values == sorted(values, key=order_key)
    found = [order_bytes(value) for value in values]
    assert found == sorted(found)
    assert len(set(found)) == len(values)


@given(st.lists(accepted, max_size=6))
def test_order_does_not_depend_on_the_start(values: list[Any]) -> None:
    """Sorting gives the same bytes from any arrangement."""
    mirrored = values[::-1]
    forwards = [form.encode(value) for value in sorted(values, key=order_key)]
    backwards = [form.encode(value) for value in sorted(mirrored, key=order_key)]
    assert forwards == backwards


@given(accepted)
def test_order_sees_the_value_and_not_its_python_type(value: Any) -> None:
    """A value and what is read back of it have the same place."""
    assert order_key(value) == order_key(form.normal(value))


@given(texts, texts)
def test_text_is_ordered_by_its_utf8_bytes(one: str, other: str) -> None:
    """Text compares as its UTF-8 bytes do."""
    assert (order_key(one) < order_key(other)) == (one.encode("utf-8") < other.encode("utf-8"))


def test_the_page_s_order_is_right() -> None:
    """The values on the page stand in their order, and numbers compare exactly."""
    keys = [order_key(form.parse(line)) for line in block("order")]
    assert all(a < b for a, b in itertools.pairwise(keys))
    assert order_key(0.1) < order_key(math.nextafter(0.1, 1))
    assert order_key(INTEGER_MAX - 1) < order_key(INTEGER_MAX) < order_key(2**53) < order_key(2**53 + 1)
    assert order_key(True) != order_key(1)
    assert order_key(1) == order_key(1.0)


def test_only_json_values_have_an_order() -> None:
    """Asking for the place of anything else is our own mistake."""
    with pytest.raises(TypeError):
        order_key((1,))  # type: ignore[arg-type]
