"""Trait words: what a run did, or did not do, as the rest of a sentence that begins with the runs."""

from __future__ import annotations

import json
from typing import Final

from woodrat.canon.form import Json
from woodrat.compare.features import Feature, value_of

WORDS_CHARACTERS_MAX: Final = 80
"""How much of a value a clause shows."""

_STEPS: Final = {
    "tool ": ("called", "call"),
    "read of ": ("read", "read"),
    "decision ": ("decided", "decide"),
    "write of ": ("wrote", "write"),
}


def clause(feature: Feature, present: bool) -> str:
    """Return what runs that have a feature did, in the past tense; or, not present, what the others did not do."""
    did, do = _phrases(feature)
    return did if present else f"did not {do}"


def value_words(value: Json) -> str:
    """Return a value in short, on one line."""
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, sort_keys=True)
    text = " ".join(text.split())
    return text if len(text) <= WORDS_CHARACTERS_MAX else text[: WORDS_CHARACTERS_MAX - 1] + "…"


def _phrases(feature: Feature) -> tuple[str, str]:
    """Return a feature as a verb in the past tense, and in the plain form."""
    kind, name, path, _ = feature
    value = value_words(value_of(feature.value))
    match kind:
        case "step":
            return _step(name)
        case "argument":
            what = f"{name} with {path} {value}" if path else f"{name} with {value}"
            return f"called {what}", f"call {what}"
        case "given":
            what = f"{name} with {path or 'an argument'}"
            return f"called {what}", f"call {what}"
        case "origin":
            came = "that no input and no earlier result holds" if feature.value is None else f"taken from {value}"
            what = f"{name} with {path or 'an argument'} {came}"
            return f"called {what}", f"call {what}"
        case "result":
            what = f"{path} {value} from {name}" if path else f"{value} from {name}"
            return f"got {what}", f"get {what}"
        case "error":
            if feature.value is None:
                return f"had {name} fail", f"have {name} fail"
            what = f"{name} fail with {f'{path} ' if path else ''}{value}"
            return f"had {what}", f"have {what}"
        case "read":
            what = f"nothing known of {name}" if feature.value is None and not path else f"{path} {value} of {name}"
            return f"read {what}", f"read {what}"
        case "decision":
            if path == "rule":
                return f"decided {name} by {value}", f"decide {name} by {value}"
            what = f"{name}{f' {path}' if path else ''}: {value}"
            return f"decided {what}", f"decide {what}"
        case "fact":
            return f"decided {name} on {path} {value}", f"decide {name} on {path} {value}"
        case "write":
            return f"wrote {path} {value} to {name}", f"write {path} {value} to {name}"
        case "repeat":
            did, do = _step(name)
            return f"{did} {value} times or more", f"{do} {value} times or more"
        case "order":
            (did, do), (_, later) = _step(name), _step(path)
            ing = later.partition(" ")
            before = f"before they {_past(ing[0])} {ing[2]}"
            return f"{did} {before}", f"{do} {before}"
        case "number":
            return _number(name, path, value)
        case "model":
            return f"asked the model {value}", f"ask the model {value}"
        case "parameter":
            return f"asked a model with {path} {value}", f"ask a model with {path} {value}"
        case "agent":
            return f"were runs of {value}", f"run as {value}"
        case "code":
            return f"ran the code {value}", f"run the code {value}"
    return f"were given {path} {value}", f"get the input {path} {value}"


def _step(label: str) -> tuple[str, str]:
    for prefix, (did, do) in _STEPS.items():
        if label.startswith(prefix):
            name = label.removeprefix(prefix)
            return f"{did} {name}", f"{do} {name}"
    return f"made a {label}", f"make a {label}"


def _past(verb: str) -> str:
    return {do: did for did, do in _STEPS.values()}.get(verb, "made")


def _number(name: str, path: str, bound: str) -> tuple[str, str]:
    """Return a number in a slot that is at or above a bound."""
    kind, _, of = name.partition(" ")
    at = f"{path or 'a number'} of {bound} or more"
    match kind:
        case "argument":
            return f"called {of} with {at}", f"call {of} with {at}"
        case "result":
            return f"got {at} from {of}", f"get {at} from {of}"
        case "read":
            return f"read {at} of {of}", f"read {at} of {of}"
        case "fact":
            return f"decided {of} on {at}", f"decide {of} on {at}"
        case "write":
            return f"wrote {at} to {of}", f"write {at} to {of}"
    return f"were given {at}", f"get the input {at}"
