"""Moments: fixed-width UTC text whose order is the order of time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import moment
from woodrat.errors import Refused

PAGE = (Path(__file__).resolve().parents[2] / "docs/formats/canonical-form.md").read_text("utf-8")
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROS_MIN, MICROS_MAX = -62_135_596_800_000_000, 253_402_300_799_999_999


def block(word: str) -> list[str]:
    """Return the lines of the page's block marked with `word`."""
    return PAGE.split(f"```{word}\n")[1].split("\n```")[0].split("\n")


@pytest.mark.parametrize("line", block("moment"))
def test_the_page_s_moments_are_right(line: str) -> None:
    """Each timestamp on the page reads as the moment it shows."""
    text, shown = line.split("  ->  ")
    assert moment.parse(text) == shown
    assert moment.fault(text) is None
    assert moment.is_fixed(shown)
    assert moment.parse(shown) == shown


@pytest.mark.parametrize("text", block("moment-refused"))
def test_the_page_s_refusals_are_right(text: str) -> None:
    """Each timestamp that the page calls refused is refused."""
    with pytest.raises(Refused):
        moment.parse(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (None, "expected a timestamp as text"),
        (1714564800, "expected a timestamp as text"),
        (datetime(2024, 5, 1, tzinfo=UTC), "expected a timestamp as text"),
        ("2024-05-01T14:00:00", "no UTC offset"),
        ("2024-05-01T14:00:00.5", "no UTC offset"),
        ("2024-05-01", "a date without a time"),
        ("2024-04-31", "not a day of the calendar"),
        ("2024-05-01 14:00:00Z", "a space between date and time"),
        ("2024-05-01T14:00:00.1234567Z", "7 digits after the second"),
        ("2024-05-01T14:00:00.123456000Z", "9 digits after the second"),
        ("2024-05-01T14:00:00.000000000+02:00", "9 digits after the second"),
        ("2016-12-31T23:59:60Z", "leap second"),
        ("2024-05-01T24:00:00Z", "hour 24"),
        ("2024-05-01T25:00:00Z", "not a time of day"),
        ("2024-05-01T14:60:00Z", "not a time of day"),
        ("2024-05-01T14:00:61Z", "not a time of day"),
        ("0000-12-31T00:00:00Z", "year 0000"),
        ("12024-05-01T14:00:00Z", "more than four digits"),
        ("+12024-05-01T14:00:00Z", "more than four digits"),
        ("2023-02-29T00:00:00Z", "not a day of the calendar"),
        ("2100-02-29T00:00:00Z", "not a day of the calendar"),
        ("2024-13-01T00:00:00Z", "not a day of the calendar"),
        ("2024-00-01T00:00:00Z", "not a day of the calendar"),
        ("2024-04-31T00:00:00Z", "not a day of the calendar"),
        ("2024-05-00T00:00:00Z", "not a day of the calendar"),
        ("2024-05-01T14:00:00+24:00", "beyond 23:59"),
        ("2024-05-01T14:00:00-23:60", "beyond 23:59"),
        ("9999-12-31T23:59:59-00:01", "outside the years"),
        ("0001-01-01T00:00:00+00:01", "outside the years"),
        ("２０２４-05-01T14:00:00Z", "other than ASCII"),
        ("2024-05-0１T14:00:00Z", "other than ASCII"),
        ("2024-05-01T14:00:00−02:00", "other than ASCII"),
        ("2024-05-01T14:00:00\ud800Z", "other than ASCII"),
    ]
    + [
        (text, "not an RFC 3339 timestamp")
        for text in [
            "",
            "now",
            "2024-05-01T14:00Z",
            "2024-05-01T14:00:00.Z",
            "2024-05-01T14:00:00,5Z",
            "2024-05-01T14:00:00+0200",
            "2024-05-01T14:00:00+02",
            "2024-05-01T14:00:00Z\n",
            " 2024-05-01T14:00:00Z",
            "20240501T140000Z",
            "2024-W18-3T14:00:00Z",
            "2024-122T14:00:00Z",
            "224-05-01T14:00:00Z",
            "-2024-05-01T14:00:00Z",
            "2024-5-1T14:00:00Z",
            "2024-05-01T14:00:00Z[Europe/Berlin]",
            "2024-05-01T14:00:00UTC",
        ]
    ],
)
def test_bad_timestamps_are_refused(text: object, problem: str) -> None:
    """Each kind of bad timestamp is refused in its own words, at its path, with a remedy."""
    with pytest.raises(Refused) as refusal:
        moment.parse(text, "/observed_at")
    (fault,) = refusal.value.faults
    assert problem in fault.problem
    assert fault.path == "/observed_at"
    assert fault.remedy.endswith(".")
    assert moment.fault(text, "/observed_at") == fault
    assert not moment.is_fixed(text)
    str(fault).encode("utf-8")


@pytest.mark.parametrize(
    "text",
    [
        "2024-05-01T12:00:00Z",
        "2024-05-01t12:00:00.000000Z",
        "2024-05-01T12:00:00.000000z",
        "2024-05-01T12:00:00.00000Z",
        "2024-05-01T12:00:00.0+00:00",
        "2024-02-30T12:00:00.000000Z",
        27,
        None,
    ],
)
def test_only_one_form_is_fixed(text: object) -> None:
    """A timestamp in any other form, or of a day that does not exist, is not fixed."""
    assert not moment.is_fixed(text)


offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59)


@given(st.datetimes(), offsets, st.integers(0, 6))
def test_parsing_agrees_with_datetime(local: datetime, minutes: int, digits: int) -> None:
    """A timestamp names the same moment as Python's datetime with that offset."""
    local = local.replace(microsecond=local.microsecond // 10 ** (6 - digits) * 10 ** (6 - digits))
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    fraction = f".{local.microsecond:06d}"[: digits + 1] if digits else ""
    text = local.isoformat(timespec="seconds") + f"{fraction}{sign}{hours:02d}:{rest:02d}"
    try:
        expected = local.replace(tzinfo=timezone(timedelta(minutes=minutes))).astimezone(UTC)
    except OverflowError:
        assert moment.fault(text) is not None
        return
    fixed = moment.parse(text)
    assert fixed == expected.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"
    assert len(fixed) == moment.CHARACTERS
    assert moment.to_micros(fixed) == (expected - EPOCH) // timedelta(microseconds=1)


@given(st.integers(MICROS_MIN, MICROS_MAX), st.integers(MICROS_MIN, MICROS_MAX))
def test_the_order_of_text_is_the_order_of_time(one: int, other: int) -> None:
    """Moments compare as text exactly as their microseconds do, and are read back from them."""
    a, b = moment.from_micros(one), moment.from_micros(other)
    assert (a < b) == (one < other)
    assert moment.to_micros(a) == one
    assert moment.is_fixed(a)
    assert moment.parse(a) == a


def test_the_ends_of_time() -> None:
    """The first and the last moment are held; one microsecond further is refused."""
    assert moment.from_micros(MICROS_MIN) == "0001-01-01T00:00:00.000000Z"
    assert moment.from_micros(MICROS_MAX) == "9999-12-31T23:59:59.999999Z"
    assert moment.from_micros(0) == "1970-01-01T00:00:00.000000Z"
    assert moment.from_micros(-1) == "1969-12-31T23:59:59.999999Z"
    for micros in (MICROS_MIN - 1, MICROS_MAX + 1, 10**30, -(10**30)):
        with pytest.raises(ValueError, match="outside the years"):
            moment.from_micros(micros)


@pytest.mark.parametrize(
    "text", ["2024-05-01T12:00:00Z", "2024-02-30T12:00:00.000000Z", "2024-05-01T24:00:00.000000Z", "", "x" * 27]
)
def test_only_fixed_moments_have_micros(text: str) -> None:
    """Text that is not a fixed moment has no microseconds."""
    with pytest.raises(ValueError, match=r"moment|day|month"):
        moment.to_micros(text)
