"""Names, ids and references."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from woodrat.canon import ids
from woodrat.canon.digest import digest
from woodrat.canon.ids import Ref, parse_ref
from woodrat.errors import Refused

PAGE = (Path(__file__).resolve().parents[2] / "docs/formats/ids.md").read_text("utf-8")
KINDS = ["observation", "source", "schema", "entity"]


@given(st.sampled_from(KINDS), st.binary(min_size=32, max_size=32))
def test_a_name_is_the_whole_digest(kind: str, data: bytes) -> None:
    """A name gives its digest back; an id is the first 26 characters after the prefix."""
    name, short = ids.name(kind, data), ids.id_of(kind, data)
    assert len(name) == 4 + 52
    assert ids.digest_of(kind, name) == data
    assert short == name[: 4 + 26]
    assert ids.is_id(kind, short)
    assert not ids.is_id(kind, name)
    assert ids.digest_of(kind, short) is None


@given(st.sampled_from(KINDS), st.sampled_from(KINDS), st.binary(min_size=32, max_size=32))
def test_names_of_one_kind_are_not_names_of_another(one: str, other: str, data: bytes) -> None:
    """The prefix tells the kinds apart."""
    assert (ids.digest_of(other, ids.name(one, data)) is not None) == (one == other)
    assert ids.is_id(other, ids.id_of(one, data)) == (one == other)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "obs_",
        "obs_" + "a" * 25,
        "obs_" + "a" * 27,
        "obs_" + "A" * 26,
        "obs_" + "a" * 25 + "1",
        "OBS_" + "a" * 26,
        "src_" + "a" * 26,
        "obs_" + "a" * 26 + "\n",
        " obs_" + "a" * 26,
        "obs-" + "a" * 26,
    ],
)
def test_other_text_is_no_id(text: str) -> None:
    """An id has the prefix and exactly 26 characters of base32."""
    assert not ids.is_id("observation", text)


@pytest.mark.parametrize(
    "text", ["", "obs_", "obs_" + "a" * 51 + "b", "obs_" + "a" * 53, "obs_" + "A" * 52, "src_" + "a" * 52]
)
def test_other_text_is_no_name(text: str) -> None:
    """A name has the prefix, 52 characters of base32, and no bits left over."""
    assert ids.digest_of("observation", text) is None
    assert ids.digest_of("observation", "obs_" + "a" * 52) == bytes(32)


def test_a_short_digest_is_our_own_mistake() -> None:
    """Naming anything but 32 bytes fails at once."""
    with pytest.raises(AssertionError):
        ids.name("entity", b"x")
    with pytest.raises(AssertionError):
        ids.id_of("entity", b"x")


@pytest.mark.parametrize("line", PAGE.split("```ref\n")[1].split("\n```")[0].split("\n"))
def test_the_page_s_references_are_right(line: str) -> None:
    """Each reference on the page on ids reads as the type and key it shows, and prints as it was written."""
    text, shown = line.split("  ->  ")
    ref = parse_ref(text)
    assert ref.to_json() == json.loads(shown)
    assert str(ref) == text
    assert ref.digest == digest("entity", shown.encode("utf-8"))
    assert ref.id == ids.id_of("entity", ref.digest)


keys = st.text(min_size=1, max_size=40).filter(lambda key: not ids.ref_faults("a", key))
types = st.from_regex("[a-z][a-z0-9_]{0,20}", fullmatch=True)


@given(types, keys)
def test_a_reference_reads_as_it_prints(kind: str, key: str) -> None:
    """Every reference is read back from its text."""
    ref = Ref(kind, key)
    assert parse_ref(str(ref)) == ref


def test_a_reference_is_a_plain_value() -> None:
    """References are equal by type and key, whether or not a digest was asked for, and cannot be changed."""
    one, other = Ref("contact", "ada"), Ref("contact", "ada")
    assert one.digest == one.digest
    assert one == other
    assert hash(one) == hash(other)
    assert repr(one) == "Ref(type='contact', key='ada')"
    assert pickle.loads(pickle.dumps(one)) == one
    assert one._replace(key="bob").digest == Ref("contact", "bob").digest
    with pytest.raises(AttributeError):
        one.key = "x"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("", [""]),
        ("contact", [""]),
        (None, [""]),
        (7, [""]),
        ("/ada", ["/type"]),
        ("contact/", ["/key"]),
        ("/", ["/type", "/key"]),
        ("Contact/ada", ["/type"]),
        ("1contact/ada", ["/type"]),
        ("con-tact/ada", ["/type"]),
        ("cöntact/ada", ["/type"]),
        ("contact\n/ada", ["/type"]),
        ("a" * 65 + "/ada", ["/type"]),
        ("A" * 65 + "/ada", ["/type", "/type"]),
        ("contact/a\x00", ["/key"]),
        ("contact/a\n", ["/key"]),
        ("contact/a\x7f", ["/key"]),
        ("contact/a\x80", ["/key"]),
        ("contact/a\x9f", ["/key"]),
        ("contact/a\ud800", ["/key"]),
        ("contact/" + "a" * 1025, ["/key"]),
        ("contact/" + "ä" * 513, ["/key"]),
        ("X/\x00\ud800" + "a" * 1025, ["/type", "/key", "/key", "/key"]),
    ],
)
def test_bad_references_are_refused(text: object, paths: list[str]) -> None:
    """A reference is refused with all its faults, each at its part."""
    with pytest.raises(Refused) as refusal:
        parse_ref(text)
    assert [fault.path for fault in refusal.value.faults] == paths
    refusal.value.args[0].encode("utf-8")


@pytest.mark.parametrize(
    "text", ["a/" + "a" * 1024, "a" * 64 + "/x", "a/ä\xa0\u2028\ufeff\U0010ffff", "a/ ", "a_1/b/c"]
)
def test_unusual_references_pass(text: str) -> None:
    """Limits are inclusive, and only control characters are refused in keys."""
    assert str(parse_ref(text)) == text


def test_faults_lie_under_the_given_path() -> None:
    """Paths begin where the caller says."""
    assert [fault.path for fault in ids.ref_faults(1, None, "/entity")] == ["/entity/type", "/entity/key"]
    assert [fault.path for fault in ids.type_faults("X", "/type")] == ["/type"]
    assert [fault.path for fault in ids.agent_faults("", "/agent")] == ["/agent"]


@pytest.mark.parametrize("tenant", ["a", "acme", "Acme-EU.1_x", "0", "a" * 128])
def test_tenants_that_pass(tenant: str) -> None:
    """A tenant is a letter or digit, then letters, digits, dot, underscore and hyphen."""
    assert ids.tenant_faults(tenant) == []


@pytest.mark.parametrize(
    "tenant", ["", "-a", ".a", "_a", "a b", "a/b", "ä", "a\n", "a\x00", "a" * 129, None, 1, "\ud800"]
)
def test_tenants_that_are_refused(tenant: object) -> None:
    """Everything else is refused, with a remedy."""
    found = ids.tenant_faults(tenant)
    assert found
    assert all(fault.path == "tenant" and fault.remedy for fault in found)


@pytest.mark.parametrize("agent", ["a", "support-bot@3", "Ämter prüfer", "a" * 256])
def test_agents_that_pass(agent: str) -> None:
    """An agent is any text up to its limit."""
    assert ids.agent_faults(agent, "/agent") == []


@pytest.mark.parametrize("agent", ["", "a" * 257, "ä" * 129, "a\tb", "a\x85", "\udfff", None, 3, ["a"]])
def test_agents_that_are_refused(agent: object) -> None:
    """Empty, long, broken and other than text are refused."""
    assert ids.agent_faults(agent, "/agent")
