"""The parts of collections: a map that shares what it was made from, over rows that are read when asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import given
from hypothesis import strategies as st

from woodrat.merge.elements import Parts

KEYS = st.binary(min_size=1, max_size=2)
CHANGES = st.lists(st.dictionaries(KEYS, st.text(min_size=1, max_size=3), max_size=4), max_size=12)


class CountedRows:
    """Rows that count what is read of them."""

    def __init__(self, kept: Mapping[bytes, str]) -> None:
        self._kept = {key: part.encode() for key, part in kept.items()}
        self.read = 0

    def get(self, key: bytes, /) -> bytes | None:
        self.read += 1
        return self._kept.get(key)

    def all(self, after: bytes = b"", limit: int | None = None) -> Iterator[tuple[bytes, bytes]]:
        for key in sorted(key for key in self._kept if key > after)[:limit]:
            self.read += 1
            yield key, self._kept[key]


@given(st.dictionaries(KEYS, st.text(min_size=1, max_size=3)), CHANGES, st.sets(st.integers(0, 12)), KEYS)
def test_parts_are_a_mapping(
    base: dict[bytes, str], changes: list[dict[bytes, str]], told: set[int], after: bytes
) -> None:
    """Whatever is put in, wherever the rest lies, the parts are those of a dictionary, and what was made stays."""
    for parts in (Parts.of(dict(base)), Parts.kept(len(base), CountedRows(base), bytes.decode)):
        expected, unsaid, made = dict(base), dict[bytes, str](), []
        if parts.rows is None:
            unsaid = dict(base)
        for number, change in enumerate(changes):
            parts = parts.put(change)
            expected, unsaid = {**expected, **change}, {**unsaid, **change}
            assert dict(parts.new) == unsaid
            if number in told:
                parts, unsaid = parts.handed_over(), {}
            made.append((parts, expected))
        for found, then in made:
            assert len(found) == len(then)
            assert dict(found.items()) == then == dict(found.in_memory().items())
            assert all(found[key] == part for key, part in then.items())
            assert found.get(b"not there") is None
            assert found == Parts.of(dict(then))
            following = sorted(item for item in then.items() if item[0] > after)
            assert found.page(after, 3) == following[:3]


@given(st.lists(KEYS, min_size=1, max_size=200, unique=True))
def test_layers_stay_few(keys: list[bytes]) -> None:
    """One part after another leaves about as many layers as the number of parts has binary digits."""
    parts: Parts[str] = Parts(0)
    for key in keys:
        parts = parts.put({key: "x"})
    assert len(parts._new) <= len(keys).bit_length() + 1


def test_one_more_part_reads_its_own_row_alone() -> None:
    """What it costs to change a part does not depend on how many there are."""
    read = []
    for count in (100, 10_000):
        rows = CountedRows({b"%d" % number: "x" for number in range(count)})
        parts = Parts.kept(count, rows, bytes.decode)
        for key in (b"7", b"new", b"7"):
            parts = parts.put({key: "y"})
        assert len(parts) == count + 1
        read.append(rows.read)
    assert read == [2, 2]


def test_what_differs_is_looked_for_where_it_can_be() -> None:
    """Of two maps over the same rows only what was put in since can differ."""
    rows = CountedRows({b"a": "1", b"b": "2"})
    one = Parts.kept(2, rows, bytes.decode)
    other = one.put({b"c": "3"}).handed_over().put({b"a": "4"})
    assert set(other.touched_since(one)) == {b"a", b"c"}
    assert set(other.in_memory().touched_since(one)) == {b"a", b"b", b"c"}
