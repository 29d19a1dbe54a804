"""Reducing: the few observations of a ledger that show something by themselves, and the file to show it elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.bisect import reduction
from woodrat.bisect.reader import Asking, all_concerned, look_at, predicate_of
from woodrat.bisect.reduce import NotShown, reduce, removable
from woodrat.bisect.reduction import Checked, Origin, Reduction
from woodrat.bisect.subset import Subset
from woodrat.canon.ids import TenantId
from woodrat.compare.contrast import short
from woodrat.engines import private
from woodrat.errors import Fault, Refused, shown
from woodrat.ledger.moments import NO_READ
from woodrat.ledger.read import Reader
from woodrat.merge import rules as merge_rules
from woodrat.state import schema
from woodrat.state.asof import AsOf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike

    from woodrat.bisect.predicate import Predicate
    from woodrat.canon.form import Json
    from woodrat.ledger.rebuild import Progress
    from woodrat.merge import Policy
    from woodrat.merge.rules import Rules

NO_FILE = "No file was written."
FILE_BYTES_MAX = 256 * 1_048_576
"""Longest file that is read."""


def reduce_by(reader: Reader, asking: Asking, *, folds_max: object, progress: Progress | None) -> Reduction:
    """Return a 1-minimal set that shows the predicate at a reader's as-of; nothing is written."""
    if type(folds_max) is not int or folds_max < 1:
        raise Refused([Fault("folds_max", f"got {shown(folds_max)}", "Send a number above 0.")], NO_READ)
    if callable(asking.what):
        problem = "a predicate that is code cannot be put into a file"
        raise Refused([Fault("what", problem, "State it as conditions, or as rules and a branch.")], NO_READ)
    predicate = predicate_of(reader, asking)
    refs = all_concerned(reader.view, predicate, reader.asof.position)
    observations = [stored.observation for stored in reader.stored(refs)]
    try:
        found = reduce(observations, predicate, reader.rules, folds_max=folds_max, tell=progress)
    except NotShown:
        raise _not_shown(reader, predicate) from None
    subset = Subset(found.members, reader.rules)
    types = sorted({ref.type for ref in predicate.looked} | {member.entity.type for member in found.members})
    schemas = (reader.rules(type).schema for type in types)
    return Reduction(
        predicate=predicate,
        members=found.members,
        schemas=tuple(found for found in schemas if not found.is_open),
        believed=_believed(predicate, subset),
        fingerprint=subset.fingerprint(),
        origin=Origin(reader.view.head().log, reader.asof.position, reader.asof.effective, len(observations)),
        folds=found.folds,
    )


def _believed(predicate: Predicate, subset: Subset) -> dict[str, dict[str, Json]]:
    found: dict[str, dict[str, Json]] = {}
    for ref, names in predicate.looked.items():
        fields = subset.look(ref).fields
        found[str(ref)] = {name: fields[name] for name in names if name in fields}
    return found


def _not_shown(reader: Reader, predicate: Predicate) -> Refused:
    look = look_at(reader)
    told = []
    for ref, names in predicate.looked.items():
        fields = look(ref).fields
        told += [f"{ref}#{name} is {short(fields[name]) if name in fields else 'nothing'}" for name in names]
        told += [f"{ref} is deleted"] if look(ref).deleted else []
    values = f": {', '.join(told[:10])}" if told else ""
    problem = f"{predicate.text} does not hold at position {reader.asof.position}{values}"
    return Refused([Fault("predicate", problem, "Ask at a moment at which it holds; `bisect` finds one.")], NO_FILE)


def write(found: Reduction, out: str | PathLike[str]) -> None:
    """Write a reduction to a file, whole or not at all."""
    import os

    if not isinstance(out, str | os.PathLike):
        raise Refused([Fault("out", f"expected a path, got {shown(out)}", "Name a file.")], NO_FILE)
    path = os.fspath(out)
    # What is no plain file (a pipe, a device) cannot be put in place of another.
    partial = path if os.path.exists(path) and not os.path.isfile(path) else f"{path}.part"
    try:
        with open(partial, "wb", opener=private.opener) as file:
            file.write(found.to_bytes())
        if partial != path:
            os.replace(partial, path)
    except (OSError, ValueError) as error:
        if partial != path and os.path.exists(partial):
            os.unlink(partial)
        problem = f"cannot write {shown(path)}: {getattr(error, 'strerror', None) or error}"
        raise Refused([Fault("out", problem, "Name a file that can be written.")], NO_FILE) from error


def check_reduction(file: str | PathLike[str] | bytes, *, policies: Iterable[Policy] = ()) -> Checked:
    """Fold a reduction on an empty ledger in memory, and say whether it shows there what the file says.

    `file` is a path, or the bytes themselves. A file with one changed byte is refused; so is one of another format. A
    merge policy of one's own has to be given, since a ledger without its code folds nothing that needs it.
    """
    from woodrat.clock import SystemClock
    from woodrat.context import Context
    from woodrat.engines.memory import MemoryEngine
    from woodrat.ledger.own_policy import registry
    from woodrat.ledger.plans import admit
    from woodrat.ledger.write import Writer

    found = reduction.parse(file if isinstance(file, bytes) else _read(file))
    known = registry(policies)
    engine, tenant = MemoryEngine(), TenantId("reduction")
    # The same door that another log's entries come in by.
    Writer(Context(engine, tenant, known, SystemClock(), "reduce")).write(
        "admit", {}, lambda draft: admit(draft, [*found.schemas, *found.members])
    )
    with engine.view(tenant) as view:
        reader = Reader(view, AsOf(view.head().position), known)
        holds = found.predicate.holds(look_at(reader))
        tree = reader.fingerprint()
    from woodrat.state import fingerprint

    rules = _rules(found, known)
    spare = removable(found.members, found.predicate, rules) if holds else ()
    return Checked(found, holds, fingerprint.text(tree.root()), tuple(str(one.id) for one in spare))


def _rules(found: Reduction, policies: Mapping[str, Policy]) -> Callable[[str], Rules]:
    known = found.rules_of(policies)

    def rules_of(type: str) -> Rules:
        return known.get(type) or merge_rules.rules_of(schema.OPEN(type), policies)

    return rules_of


def _read(file: object) -> bytes:
    import os

    if not isinstance(file, str | os.PathLike):
        problem = f"expected a path or bytes, got {shown(file)}"
        raise Refused([Fault("file", problem, "Name a file that `woodrat reduce --out` wrote.")], reduction.OUTCOME)
    try:
        with open(file, "rb") as opened:
            data = opened.read(FILE_BYTES_MAX + 1)
    except (OSError, ValueError) as error:
        problem = f"cannot read {shown(os.fspath(file))}: {getattr(error, 'strerror', None) or error}"
        raise Refused([Fault("file", problem, "Name a file that can be read.")], reduction.OUTCOME) from error
    if len(data) > FILE_BYTES_MAX:
        problem = f"{shown(os.fspath(file))} has more than {FILE_BYTES_MAX} bytes"
        raise Refused([Fault("file", problem, "Send a smaller reduction.")], reduction.OUTCOME)
    return data
