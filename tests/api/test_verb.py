"""A verb is declared once; what every surface needs is read off the declaration."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from woodrat.api.verb import READ, WRITE, Parameter, Verb, at_moment, verb, verbs_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from woodrat.api.parameters import Cursor, FromMoment, IdempotencyKey, Limit, Records, RunArg


class Sample:
    """Verbs to look at."""

    @verb(get="/v1/samples/{run}", command="samples show RUN", tool="samples")
    def show(self, run: RunArg, before: FromMoment, *, limit: Limit = 20, cursor: Cursor | None = None) -> str:
        """Show one sample: what it was
        asked.

        More is said here.
        """
        return f"{run} {before} {limit} {cursor}"

    @verb(post="/v1/samples", command="samples add")
    def add(
        self,
        records: Records,
        *,
        idempotency_key: IdempotencyKey | None = None,
        progress: Callable[[int], None] | None = None,
    ) -> str:
        """Add samples."""
        return ""

    def plain(self) -> None:
        """No verb at all."""


def named(name: str) -> Verb:
    return next(each for each in verbs_of(Sample, "samples") if each.name == name)


def test_the_declaration_and_the_signature_say_everything() -> None:
    """Name, sentence, address, parameters with their defaults, and whether it writes."""
    show = named("samples.show")
    assert show.what == "Show one sample: what it was asked."
    assert (show.declaration.method, show.declaration.path) == ("GET", "/v1/samples/{run}")
    assert (show.declaration.grant, show.declaration.at_moment, show.writes) == (READ, True, False)
    assert [(p.name, p.wire, p.required, p.default, p.in_path) for p in show.parameters] == [
        ("run", "run", True, None, True),
        ("before", "from", True, None, False),
        ("limit", "limit", False, 20, False),
        ("cursor", "cursor", False, None, False),
    ]
    assert show.outcome == "Nothing was read."


def test_a_post_writes_and_reads_at_no_moment() -> None:
    """What is posted needs the grant to write unless it says otherwise, and a refusal says that nothing was written."""
    add = named("samples.add")
    assert (add.declaration.grant, add.declaration.at_moment, add.writes) == (WRITE, False, True)
    assert add.outcome == "Nothing was written."


def test_what_carries_no_kind_is_for_the_library_alone() -> None:
    """A callback is no parameter of any surface."""
    assert [parameter.name for parameter in named("samples.add").parameters] == ["records", "idempotency_key"]


def test_only_declared_methods_are_verbs() -> None:
    """A method without a declaration is not offered anywhere."""
    assert [each.name for each in verbs_of(Sample, "samples")] == ["samples.show", "samples.add"]


def test_a_verb_is_called_on_the_namespace_it_is_in() -> None:
    """`samples.show` of a ledger is the method `show` of its `samples`."""

    class Ledger:
        samples = Sample()

    assert named("samples.show").called_on(Ledger())("run_a", 3) == "run_a 3 20 None"


def test_a_subclass_may_carry_a_verb_out_another_way() -> None:
    """What the verb is stays as it was declared."""

    class Other(Sample):
        def show(self, *arguments: Any, **named: Any) -> str:
            return "elsewhere"

    assert list(verbs_of(Other)) == list(verbs_of(Sample))


def test_options_are_spelled_with_hyphens() -> None:
    """`idempotency_key` is typed `--idempotency-key`, and a moment that is called `from` outside Python `--from`."""
    assert [p.option for p in named("samples.add").parameters] == ["--records", "--idempotency-key"]
    assert named("samples.show").parameters[1].option == "--from"


def test_a_verb_names_all_it_takes() -> None:
    """A method that takes anything could be offered nowhere, and is found when its parameters are asked for."""

    class Loose:
        @verb(get="/v1/loose")
        def loose(self, **anything: Any) -> None:
            """Take anything."""

    with pytest.raises(AssertionError, match="a verb names all it takes"):
        _ = next(verbs_of(Loose)).parameters


def test_moments_are_said_by_every_reading_verb() -> None:
    """`as_of` and `valid_at` are described once."""
    assert [parameter.name for parameter in at_moment()] == ["as_of", "valid_at"]
    assert all(isinstance(parameter, Parameter) and not parameter.required for parameter in at_moment())


def test_declaring_verbs_imports_no_parameters() -> None:
    """A program that calls a verb does not wait for what describes its parameters."""
    code = "import sys, woodrat.api.verb; print('woodrat.api.parameters' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
