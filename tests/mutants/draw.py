"""Draw small mutants: places in the code of a few rooms where one comparison, constant, word or statement is changed.

A mutant is a replacement of a few characters of one file. Texts that only people read (docstrings, messages of errors),
annotations and assertions are left alone: a changed one is no fault of behaviour.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOMS: Final = ("canon", "log", "merge", "ledger", "runs/rules.py", "server/access.py")
"""Where mutants are drawn from, below src/woodrat; each gets an equal share."""

OTHER: Final[dict[type[ast.AST], str]] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.And: "or",
    ast.Or: "and",
    ast.Add: "-",
    ast.Sub: "+",
}
"""What an operator is changed into."""


class Mutant(NamedTuple):
    """One change to one file."""

    file: str
    """Its path below src/woodrat."""
    line: int
    start: int
    """The first byte of the file that is replaced."""
    end: int
    text: str
    """What takes the place of the bytes between."""
    before: str

    def applied(self, source: bytes) -> bytes:
        """Return the file with the change."""
        return source[: self.start] + self.text.encode() + source[self.end :]

    @property
    def key(self) -> str:
        """What tells it from every other mutant of the same code."""
        return f"{self.file}:{self.start}-{self.end}:{self.text}"

    @property
    def name(self) -> str:
        """The place and the change, in a line."""
        return f"{self.file}:{self.line}: {' '.join(self.before.split())} -> {' '.join(self.text.split())}"


def draw(source: Path, seed: int, count: int) -> list[Mutant]:
    """Return `count` different mutants of the rooms below `source`, the same for the same code, seed and count."""
    drawn: list[Mutant] = []
    chance = random.Random(seed)
    for number, room in enumerate(ROOMS):
        share = count // len(ROOMS) + (number < count % len(ROOMS))
        place = source / room
        files = sorted(place.rglob("*.py")) if place.is_dir() else [place]
        everything = [mutant for file in files for mutant in mutants_of(file, str(file.relative_to(source)))]
        drawn += chance.sample(everything, min(share, len(everything)))
    return drawn


def mutants_of(path: Path, name: str) -> list[Mutant]:
    """Return every mutant of a file."""
    text = path.read_text("utf-8")
    tree = ast.parse(text)
    starts = [0]
    for line in text.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    found = []
    for node, replacement in _changes(tree):
        start, end = starts[node.lineno - 1] + node.col_offset, starts[_end(node) - 1] + (node.end_col_offset or 0)
        found.append(Mutant(name, node.lineno, start, end, replacement, text.encode()[start:end].decode()))
    return found


Located = ast.expr | ast.stmt
Change = tuple[Located, str]
"""A node, and the code that takes its place."""


def _end(node: Located) -> int:
    assert node.end_lineno is not None
    return node.end_lineno


def _changes(node: ast.AST) -> Iterator[Change]:
    """Yield the changes to a node and to whatever is below it."""
    if isinstance(node, (ast.Assert, ast.JoinedStr)) or (
        isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
    ):
        return
    yield from _changes_of(node)
    for field, value in ast.iter_fields(node):
        is_words = isinstance(node, ast.Raise) or field in ("annotation", "returns", "decorator_list", "bases")
        if not is_words:
            for child in value if isinstance(value, list) else [value]:
                if isinstance(child, ast.AST):
                    yield from _changes(child)


def _changes_of(node: ast.AST) -> Iterator[Change]:
    """Yield the changes to this very node."""
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if isinstance(
            test, (ast.Name, ast.Call, ast.Attribute)
        ):
            yield test, f"(not {_code(test)})"
        case ast.Compare(left=left, ops=[op, *rest], comparators=[first, *others]) if type(op) in OTHER:
            tail = "".join(f" {_sign(more)} {_code(value)}" for more, value in zip(rest, others, strict=True))
            yield node, f"({_code(left)} {OTHER[type(op)]} {_code(first)}{tail})"
        case ast.BoolOp(op=op, values=values):
            yield node, "(" + f" {OTHER[type(op)]} ".join(map(_code, values)) + ")"
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OTHER:
            yield node, f"({_code(left)} {OTHER[type(op)]} {_code(right)})"
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield node, _code(operand)
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value)):
            yield node, str(value + 1)
        case ast.Call(args=[first, second, *others], keywords=keywords):
            if ast.dump(first) != ast.dump(second) and ast.Starred not in (type(first), type(second)):
                yield node, ast.unparse(ast.Call(node.func, [second, first, *others], keywords))
        case ast.Expr(value=ast.Call() as call) if not _is_super(call):
            yield node, "pass"
        case ast.Raise(exc=ast.Call(func=ast.Name(id="AssertionError" | "NotImplementedError" | "TypeError"))):
            pass  # they tell of a mistake of our own, as assertions do
        case ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield node, "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield node, "pass"


def _is_super(call: ast.Call) -> bool:
    return ast.unparse(call.func).startswith("super()")


def _code(node: ast.expr) -> str:
    """Return an expression, in brackets where it needs some."""
    text = ast.unparse(node)
    return text if isinstance(node, (ast.Name, ast.Constant, ast.Attribute, ast.Call, ast.Subscript)) else f"({text})"


def _sign(op: ast.cmpop) -> str:
    """Return how a comparison is written."""
    return ast.unparse(ast.Compare(ast.Name("a"), [op], [ast.Name("b")])).removeprefix("a ").removesuffix(" b")
