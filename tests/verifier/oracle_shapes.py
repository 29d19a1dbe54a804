"""The oracle's shapes of bodies: section 8 of docs/formats/capsule.md, row by row."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tests.verifier.oracle_values import is_cut, is_integer, is_text, is_whole

Shape = Callable[[Any], bool]
FULL_NAME = re.compile(r"obs_[a-z2-7]{51}[aq]")


def anything(value: Any) -> bool:
    return True


def is_object(value: Any) -> bool:
    return isinstance(value, dict)


def is_list(value: Any) -> bool:
    return isinstance(value, list)


def is_boolean(value: Any) -> bool:
    return isinstance(value, bool)


def is_true(value: Any) -> bool:
    return value is True


def is_from(least: int) -> Shape:
    return lambda value: is_integer(value) and value >= least


def list_of(shape: Shape) -> Shape:
    return lambda value: is_list(value) and all(shape(item) for item in value)


def object_of(shape: Shape) -> Shape:
    return lambda value: is_object(value) and all(shape(item) for item in value.values())


def or_cut(shape: Shape) -> Shape:
    return lambda value: is_cut(value) or shape(value)


def one_of(*words: str) -> Shape:
    return lambda value: is_text(value) and value in words


def has(must: dict[str, Shape], may: dict[str, Shape] | None = None, others: bool = False) -> Shape:
    """An object with these members, and no others unless said."""
    known = {**must, **(may or {})}

    def shaped(value: Any) -> bool:
        return (
            isinstance(value, dict)
            and set(must) <= set(value)
            and (others or set(value) <= set(known))
            and all(known[key](value[key]) for key in value if key in known)
        )

    return shaped


TEXTS = list_of(is_text)
BY = {"by": one_of("value")}
ORIGINS: dict[str, Shape] = {
    "stated": has({"kind": is_text}),
    "decision": has({"kind": is_text, "run": is_text, "span": is_text}),
    "input": has({"kind": is_text, "name": is_text}, BY),
    "tool": has({"kind": is_text, "span": is_text, "path": is_text}, BY),
    "model": has({"kind": is_text, "span": is_text, "path": is_text}, BY),
    "read": has(
        {"kind": is_text, "field": is_text},
        {"entity": is_text, "observations": TEXTS, "position": is_from(-1), **BY},
    ),
    "recall": has({"kind": is_text, "span": is_text, "run": is_text, "stage": is_text}, BY),
}


def is_origin(value: Any) -> bool:
    return is_object(value) and one_of(*ORIGINS)(value.get("kind")) and ORIGINS[value["kind"]](value)


def is_condition(value: Any) -> bool:
    members: dict[str, Shape] = {
        "op": is_text,
        "operand": anything,
        "actual": anything,
        "result": is_boolean,
        "error": is_text,
    }
    return has({"key": is_text, "origin": is_origin}, members)(value) and ("op" in value) == ("operand" in value)


def is_rule(value: Any) -> bool:
    members: dict[str, Shape] = {
        "unknown": is_true,
        "label": is_text,
        "when": is_object,
        "predicate": is_text,
        "error": anything,
    }
    must: dict[str, Shape] = {"chosen": anything, "matched": is_boolean, "conditions": list_of(is_condition)}
    return has(must, members)(value) and ("when" in value) != ("predicate" in value)


def is_untried(value: Any) -> bool:
    shaped = has({"chosen": anything}, {"label": is_text, "when": is_object, "predicate": is_text})
    return shaped(value) and ("when" in value) != ("predicate" in value)


def is_ascending(value: Any) -> bool:
    return list_of(is_whole)(value) and value == sorted(set(value))


READ_FIELD = has({}, {"value": anything, "observation": is_text, "observations": TEXTS})
EVERY: dict[str, Shape] = {"run": is_text, "step": is_whole, "span": is_text, "agent": is_text}
EVERY_MAY: dict[str, Shape] = {
    **dict.fromkeys(("started_at", "under", "after"), is_text),
    **dict.fromkeys(("duration_ms", "attributes"), anything),
    "copy_of": is_object,
}


def of_run(must: dict[str, Shape], may: dict[str, Shape]) -> Shape:
    return has({**EVERY, **must}, {**EVERY_MAY, **may})


MOMENT = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{6}Z", re.ASCII)


def is_moment(value: Any) -> bool:
    return is_text(value) and MOMENT.fullmatch(value) is not None


def texts(words: str) -> dict[str, Shape]:
    return dict.fromkeys(words.split(), is_text)


def any_of(words: str) -> dict[str, Shape]:
    return dict.fromkeys(words.split(), anything)


OBSERVATION = has(
    {
        "agent": is_text,
        "observed_at": is_moment,
        "valid_from": is_moment,
        "entity": has(texts("key type")),
        "op": one_of("assert", "correct", "retract", "delete", "restore"),
        "priority": is_integer,
    },
    {
        "fields": is_object,
        "remove": object_of(lambda value: is_list(value) and bool(value)),
        "replaces": list_of(lambda value: is_text(value) and FULL_NAME.fullmatch(value) is not None),
        "saw": list_of(lambda value: is_text(value) and FULL_NAME.fullmatch(value) is not None),
        **texts("source interpretation run reason"),
        "step": is_whole,
        "confidence": anything,
        "assigned": is_true,
        "locator": is_object,
        "match": is_object,
    },
)


def is_observation(value: Any) -> bool:
    if not OBSERVATION(value) or ("step" in value and "run" not in value):
        return False
    given = [value[member] for member in ("fields", "remove") if member in value]
    if value["op"] in ("assert", "correct"):
        return bool(given) and all(given)
    return not given


def is_range(value: Any) -> bool:
    return list_of(is_whole)(value) and len(value) == 2 and value[0] <= value[1]


SHAPES: dict[str, Shape] = {
    "run.started": of_run(
        {},
        {
            **texts("name query subject principal conversation code trace"),
            "inputs": or_cut(is_object),
            "shape": anything,
            "basis": is_object,
            "parent": is_object,
            "using": is_object,
            "forked_from": is_object,
            "recall": is_true,
            "redact": TEXTS,
            "fallback": TEXTS,
        },
    ),
    "run.read": of_run(
        {"found": is_boolean},
        {
            **texts("log effective entity within schema embedder remark"),
            **any_of("recalled remembered rejected understood error"),
            "position": is_from(-1),
            "as_of": is_from(-1),
            "fields": or_cut(object_of(READ_FIELD)),
            "edited": is_object,
            "args": anything,
        },
    ),
    "run.model": of_run(
        {},
        {
            **texts("model request"),
            **any_of("messages parameters response shape usage error stream"),
            "errored": is_boolean,
            "redact": TEXTS,
        },
    ),
    "run.tool": of_run(
        {},
        {
            "name": is_text,
            **any_of("args result shape error stream"),
            **dict.fromkeys(("errored", "once", "begun"), is_boolean),
            "redact": TEXTS,
        },
    ),
    "run.decided": of_run(
        {"stage": is_text, "mode": one_of("decide", "select"), "default": is_boolean},
        {
            "chosen": anything,
            "rule": lambda value: is_text(value) or list_of(lambda item: item is None or is_text(item))(value),
            "rationale": is_text,
            "rules": or_cut(list_of(is_rule)),
            "facts": or_cut(is_object),
            "facts_origin": or_cut(object_of(is_origin)),
            "omitted": has({}, {"rules": is_from(1), "conditions": is_from(1)}),
            "untried": or_cut(list_of(is_untried)),
            "otherwise": anything,
            "on_missing": one_of("skip"),
            "chosen_by": is_object,
            "redact": TEXTS,
        },
    ),
    "run.noted": of_run({}, {"text": is_text, "data": anything}),
    "run.ended": of_run(
        {},
        {
            "status": is_text,
            **any_of("answer error usage"),
            "problems": is_list,
            "ended_at": is_text,
            "skipped": is_ascending,
            "numbered": is_true,
            "fallback": TEXTS,
        },
    ),
    "run.judged": of_run({}, any_of("verdict preferred by reason score against evaluation about")),
    "observation": is_observation,
    "schema": has(
        {
            "type": is_text,
            "schema": has(
                {"x-woodrat-version": is_from(1)},
                {"properties": object_of(lambda value: is_object(value) or is_boolean(value))},
                others=True,
            ),
        }
    ),
    "erasure": has(
        {
            **texts("agent erased_at log reason scope"),
            "positions": list_of(is_range),
            "macs": TEXTS,
            "names": TEXTS,
        },
        {"keys": TEXTS, "links": is_object},
    ),
    "received": has(texts("agent name received_at source"), texts("media_type")),
    "interpretation.started": has(
        texts("agent interpretation source started_at"),
        {**texts("model prompt extractor"), "parameters": is_object, "configuration": is_object},
    ),
    "interpretation.ended": has(texts("interpretation ended_at status"), any_of("usage error")),
    "tag": anything,
    "source": anything,  # G8 has looked at it
}


def is_shaped(kind: str, body: Any) -> bool:
    """Whether a body has the shape of its kind."""
    return SHAPES[kind](body)
