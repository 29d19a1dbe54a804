"""Sent steps: the steps of a run that happened elsewhere, as a document or a caller sends them, recorded as they come.

A step is an object with one key, its kind (docs/reference/recording.md). What is wrong with it is refused before the
run does anything.
"""

from __future__ import annotations

from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, Final

from woodrat.errors import Fault, Refused, pointer_part, shown
from woodrat.ledger import facts, lists, reads
from woodrat.runs import rules as rule
from woodrat.runs.recorder.calls import Call
from woodrat.runs.recorder.steps import NOTHING_RECORDED

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from woodrat.runs.recorder.run import Run


def step(told: Any, path: str = "/step") -> Callable[[Run], object]:
    """Return what records one step of a told run, an object with its kind; what is wrong with it is refused."""
    kind = next(iter(told)) if isinstance(told, dict) and len(told) == 1 else None
    make = _STEPS.get(kind) if isinstance(kind, str) else None
    if make is None:
        known = ", ".join(_STEPS)
        fault = Fault(path, f"expected one step, got {shown(told)}", f"Send an object with one of {known}.")
        raise Refused([fault], NOTHING_RECORDED)
    return make(told[kind], f"{path}/{kind}")


def error_of(told: Any) -> Exception | None:
    """Return an error of the type a document names."""
    if told is None:
        return None
    name, message = ("Exception", told) if isinstance(told, str) else (told.get("type"), told.get("message", ""))
    kind = type(str(name or "Exception"), (Exception,), {"__module__": "builtins"})
    return kind(message)  # type: ignore[no-any-return]


def _object(given: Any, path: str, needed: Sequence[str], known: Sequence[str]) -> dict[str, Any]:
    """Return an object that has what is needed and nothing that is not known."""
    if not isinstance(given, dict):
        raise Refused([Fault(path, f"expected an object, got {shown(given)}", f"Send {', '.join(needed)}.")])
    faults = [Fault(f"{path}/{name}", "missing", "State it.") for name in needed if name not in given]
    for name in sorted(set(given) - set(known)):
        faults.append(Fault(f"{path}/{pointer_part(name)}", "unknown part", f"Send {', '.join(known)}."))
    if faults:
        raise Refused(faults)
    return given


def _text(given: Any, path: str) -> str:
    if not isinstance(given, str):
        raise Refused([Fault(path, f"expected text, got {shown(given)}", "Send it as text.")])
    return given


READS: Final = (
    "show",
    "search",
    "query",
    "observations",
    "history",
    "timeline",
    "diff",
    "blame",
    "conflicts",
    "related",
)
"""Verbs by which a step may read."""
CHANGES: Final = ("store", "remember", "correct", "retract", "delete", "restore", "relate", "merge", "split")
"""Verbs by which a step may write."""


def _read(given: Any, path: str) -> Callable[[Run], object]:
    if isinstance(given, dict):
        return _verb(given, path, READS)
    ref = _text(given, path)
    return lambda run: run.show(ref)


def _change(given: Any, path: str) -> Callable[[Run], object]:
    if isinstance(given, dict) and "counted" in given:
        counted(given["counted"])
        given = {name: value for name, value in given.items() if name != "counted"}
    return _verb(given, path, CHANGES)


def counted(told: Any) -> tuple[str, int]:
    """Return who counts equal requests of a run elsewhere, and how many came before this one."""
    if isinstance(told, list) and len(told) == 2 and isinstance(told[0], str) and type(told[1]) is int:
        return told[0], told[1]
    raise Refused([Fault("counted", f"got {shown(told)}", "Leave it out.")], NOTHING_RECORDED)


def _verb(given: Any, path: str, verbs: Sequence[str]) -> Callable[[Run], object]:
    """Return what a verb of a run does, named with its arguments as in the library."""
    if not isinstance(given, dict) or given.get("verb") not in verbs:
        got = shown(given.get("verb") if isinstance(given, dict) else given)
        fault = Fault(f"{path}/verb", f"got {got}", f"Send one of {', '.join(verbs)}, and its arguments.")
        raise Refused([fault], NOTHING_RECORDED)
    verb, arguments = given["verb"], {name: value for name, value in given.items() if name != "verb"}

    def call(run: Run) -> object:
        try:
            _signature_of(verb).bind(**arguments)
        except TypeError as error:
            raise Refused([Fault(path, f"{verb}: {error}", "Send its arguments by name.")], NOTHING_RECORDED) from None
        return getattr(run, verb)(**arguments)

    return call


def _signature_of(verb: str) -> Signature:
    """Return how the library names the arguments of a verb; what a surface hands down besides is not the caller's."""
    room = facts if verb in CHANGES else lists if hasattr(lists, verb) else reads
    shape = signature(getattr(room, verb))
    own = ("context", "within", "interpretation")
    return shape.replace(parameters=[one for name, one in shape.parameters.items() if name not in own])


def _store(given: Any, path: str) -> Callable[[Run], object]:
    return lambda run: run.store(given)


def _note(given: Any, path: str) -> Callable[[Run], object]:
    if isinstance(given, str):
        return lambda run: run.note(given)
    about = _object(given, path, ["text"], ["text", "data"])
    text = _text(about["text"], f"{path}/text")
    return lambda run: run.note(text, about.get("data"))


def _tool(given: Any, path: str) -> Callable[[Run], object]:
    about = _object(given, path, ["name"], ["name", "args", "result", "error", "once", "duration_ms"])
    name, args = _text(about["name"], f"{path}/name"), about.get("args", {})
    if not isinstance(args, dict):
        raise Refused([Fault(f"{path}/args", f"expected an object, got {shown(args)}", "Send arguments by name.")])
    duration = _duration(about, path)

    def call(run: Run) -> None:
        step = Call(run, name, args, once=about.get("once") is True)
        _record(step, about.get("result"), duration, about.get("error"))

    return call


def _model(given: Any, path: str) -> Callable[[Run], object]:
    known = ["model", "messages", "parameters", "request", "response", "usage", "error", "duration_ms"]
    about = _object(given, path, ["model"], known)
    model, duration = _text(about["model"], f"{path}/model"), _duration(about, path)
    if ("response" in about) is ("error" in about):
        raise Refused([Fault(f"{path}/response", "expected a response or an error", "Send one of them.")])
    asked = {name: about[name] for name in ("messages", "parameters", "request", "usage") if name in about}

    def call(run: Run) -> None:
        _record(run.model(model, **asked), about.get("response"), duration, about.get("error"))

    return call


def _record(step: AbstractContextManager[Any], result: object, duration: int | None, error: object) -> None:
    """Record a call that somebody else made, with its result, or with its error, which is not raised here."""
    failed = error_of(error)
    try:
        with step as made:
            made.result, made.duration_ms = result, duration
            if failed is not None:
                raise failed
    except Exception as raised:
        if raised is not failed:
            raise


def _duration(about: Mapping[str, Any], path: str) -> int | None:
    """Return how long a call took, where whoever made it says so."""
    told = about.get("duration_ms")
    if told is not None and (type(told) is not int or told < 0):
        raise Refused([Fault(f"{path}/duration_ms", f"got {shown(told)}", "Send whole milliseconds.")])
    return told


def _decision(mode: str) -> Callable[[Any, str], Callable[[Run], object]]:
    def make(given: Any, path: str) -> Callable[[Run], object]:
        about = _object(given, path, ["stage", "facts", "rules"], _DECISION)
        stage, facts = _text(about["stage"], f"{path}/stage"), about["facts"]
        faults = rule.check_on_missing(about["on_missing"], f"{path}/on_missing") if "on_missing" in about else []
        rules: tuple[rule.Rule, ...] = ()
        try:
            rules = rule.rules_from_json(about["rules"], f"{path}/rules")
        except Refused as refusal:
            faults += refusal.faults
        if faults:
            raise Refused(faults, rule.NOTHING_DECIDED)
        further = {name: about[name] for name in ("default", "rationale", "redact", "on_missing") if name in about}
        if isinstance(facts, dict):
            return lambda run: getattr(run, mode)(stage, facts, rules, **further)
        ref = _text(facts, f"{path}/facts")
        # A reference stands for what is read of that entity then.
        return lambda run: getattr(run, mode)(stage, run.show(ref), rules, **further)

    return make


def _decided(given: Any, path: str) -> Callable[[Run], object]:
    about = _object(given, path, ["stage", "chosen"], ["stage", "chosen", "because", "on", "model", "redact"])
    stage, on = _text(about["stage"], f"{path}/stage"), about.get("on", [])
    for name in ("because", "model"):
        if name in about:
            _text(about[name], f"{path}/{name}")
    further = {name: about[name] for name in ("because", "model", "redact") if name in about}
    items = on if isinstance(on, list) else [on]
    faults = [
        Fault(f"{path}/on/{number}", f"got {shown(item)}", "Send an entity as type/key, or values by name.")
        for number, item in enumerate(items)
        if not isinstance(item, str | dict)
    ]
    if faults:
        raise Refused(faults, rule.NOTHING_DECIDED)

    def call(run: Run) -> object:
        # A reference stands for what is read of that entity then.
        facts = [run.show(item) if isinstance(item, str) else item for item in items]
        return run.decided(stage, about["chosen"], on=facts, **further)

    return call


_DECISION: Final = ["stage", "facts", "rules", "default", "rationale", "redact", "on_missing"]
_STEPS: Final[Mapping[str, Callable[[Any, str], Callable[[Run], object]]]] = {
    "read": _read,
    "tool": _tool,
    "model": _model,
    "decide": _decision("decide"),
    "select": _decision("select"),
    "decided": _decided,
    "note": _note,
    "store": _store,
    "change": _change,
}
