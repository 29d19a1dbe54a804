"""The verb: declared once, on the method that carries it out; every surface is derived from the declaration.

    class Runs:
        @verb(get="/v1/runs/{run}", command="runs show RUN", tool="runs")
        def show(self, run: RunArg, *, projection: Projection = None) -> RunRecord:
            "Show one run: its question, reads, calls, decisions and answer."

The signature declares the arguments (`parameters.py`), the docstring's first paragraph describes the effect, and the
annotation is the result. Declaring costs nothing: a function gets one attribute, and surfaces derive the rest when they
need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeVar

from woodrat.records import dataclass

if TYPE_CHECKING:
    from woodrat.api.parameters import Kind

F = TypeVar("F", bound=Callable[..., Any])

READ, WRITE, CORRECT, RUN, MANAGE = "read", "write", "correct", "run", "manage"
"""The grant that a key needs to call a verb."""
_ATTRIBUTE: Final = "__verb__"
_POSITIONAL: Final = 0x04 | 0x08  # *args and **kwargs in `co_flags`


@dataclass(frozen=True, slots=True)
class Declaration:
    """The declaration of a verb besides its signature."""

    method: str = ""
    """GET or POST; empty: not offered over HTTP."""
    path: str = ""
    """Its route; a part in braces matches all of the path up to the next fixed part."""
    command: str = ""
    """Its command line, with positional arguments in capitals; empty: no command of its own."""
    tool: str = ""
    """The MCP tool that offers it; empty: none."""
    grant: str = READ
    """The grant that a key needs for it."""
    at_moment: bool = True
    """Whether it reads at a moment: `as_of` and `valid_at`."""
    wide: bool = False
    """Whether it may reveal types that the call does not name, so that a grant for one type is not enough."""
    alone: bool = False
    """Whether it needs a commit of its own, because it reads its own writes."""
    lines: bool = False
    """Whether its body may be JSON lines too."""
    example: Any = None
    """A body that works."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter of a verb."""

    name: str
    """Its name in Python."""
    kind: Kind
    """What it is."""
    required: bool
    """Whether a call without it is refused."""
    default: Any
    """Its default."""
    in_path: bool = False
    """Whether it is part of the verb's address."""

    @property
    def wire(self) -> str:
        """Its name on every surface but Python."""
        return self.kind.wire or self.name

    @property
    def option(self) -> str:
        """Its name as an option of a command."""
        return "--" + (self.kind.option or self.wire.replace("_", "-"))


@dataclass(frozen=True, slots=True)
class Verb:
    """One verb of the library, as surfaces see it."""

    name: str
    """Its name: `store`, or with its namespace `runs.show`."""
    declaration: Declaration
    """Its declaration."""
    function: Callable[..., Any]
    """The method that carries it out."""

    @property
    def what(self) -> str:
        """Its effect, in a sentence."""
        text = self.function.__doc__ or ""
        return " ".join(text.split("\n\n", 1)[0].split())

    @property
    def writes(self) -> bool:
        """Whether it appends to the log, so that a refusal states that nothing was written."""
        return self.declaration.method == "POST" and self.declaration.grant != READ

    @property
    def outcome(self) -> str:
        """The sentence about the data when a call is refused."""
        return "Nothing was written." if self.writes else "Nothing was read."

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Its parameters that surfaces offer, in the order of its signature."""
        return tuple(_parameters(self.function, self.declaration))

    def called_on(self, target: Any) -> Callable[..., Any]:
        """Return the method of a ledger, or a moment of one, that carries the verb out."""
        for part in self.name.split("."):
            target = getattr(target, part)
        method: Callable[..., Any] = target
        return method


@cache
def at_moment() -> tuple[Parameter, ...]:
    """Return the parameters of every verb on surfaces that read at a moment; in the library this is `ledger.at(…)`."""
    return tuple(
        Parameter(name, kind, False, None)
        for name, annotation in (("as_of", "AsOfArg"), ("valid_at", "ValidAt"))
        if (kind := _kind(annotation)) is not None
    )


@cache
def details() -> Parameter:
    """Return the parameters of surfaces with short answers by default; the library's records are always complete."""
    kind = _kind("Details")
    assert kind is not None
    return Parameter("details", kind, False, False)


def verb(
    *,
    get: str = "",
    post: str = "",
    command: str = "",
    tool: str = "",
    grant: str = "",
    at_moment: bool | None = None,
    wide: bool = False,
    alone: bool = False,
    lines: bool = False,
    example: Any = None,
) -> Callable[[F], F]:
    """Declare a method a verb. A GET reads at a moment and needs the grant `read` unless it says otherwise."""
    declaration = Declaration(
        "GET" if get else "POST" if post else "",
        get or post,
        command,
        tool,
        grant or (READ if get or not post else WRITE),
        bool(get) if at_moment is None else at_moment,
        wide,
        alone,
        lines,
        example,
    )

    def declare(function: F) -> F:
        setattr(function, _ATTRIBUTE, declaration)
        return function

    return declare


def verbs_of(kind: type, namespace: str = "") -> Iterator[Verb]:
    """Yield the verbs that a class declares, those of its bases first, in source order."""
    seen: dict[str, Verb] = {}
    for each in reversed(kind.__mro__):
        for name, member in vars(each).items():
            declaration = getattr(member, _ATTRIBUTE, None)
            if declaration is not None:
                full = f"{namespace}.{name}" if namespace else name
                seen[full] = Verb(full, declaration, member)
    yield from seen.values()


def _parameters(function: Callable[..., Any], declaration: Declaration) -> Iterator[Parameter]:
    # Without `inspect`, whose import alone takes longer than most commands may.
    function = getattr(function, "__wrapped__", function)  # whoever wraps a verb has not changed what it takes
    code = function.__code__
    assert not code.co_flags & _POSITIONAL, f"{function.__qualname__}: a verb names all it takes"
    names = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    given: Mapping[str, Any] = {
        **dict(zip(code.co_varnames[code.co_argcount - len(defaults) : code.co_argcount], defaults, strict=True)),
        **(function.__kwdefaults__ or {}),
    }
    for name in names:
        kind = _kind(function.__annotations__[name])
        if kind is not None:
            in_path = f"{{{kind.wire or name}}}" in declaration.path
            yield Parameter(name, kind, name not in given, given.get(name), in_path)


@cache
def _kind(annotation: str) -> Kind | None:
    """Return the kind of parameter that an annotation names; None for a type of the library alone.

    Annotations are text (`from __future__ import annotations`), so a module that declares verbs imports the parameter
    types for type checkers only, and a program that calls a verb does not wait for them. The kind is its first word:
    `Limit`, or `Limit | None`.
    """
    from woodrat.api import parameters

    kind = getattr(parameters, annotation.partition(" ")[0], None)
    return kind if isinstance(kind, parameters.Kind) else None
