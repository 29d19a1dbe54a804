"""Parts: what a run did, one record for each entry; read from bodies that docs/formats/runs.md specifies.

Reading never fails. Bodies come from many recorders and from imports, so whatever does not have the shape the page
gives it counts as left out; the entry itself stays in the log as it was said.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar, Final

from woodrat.canon import ids
from woodrat.errors import Refused
from woodrat.log.erasure import ERASED
from woodrat.record_json import IN_PYTHON_ONLY, Record, derived
from woodrat.records import dataclass, field
from woodrat.runs import messages
from woodrat.runs.evidence import Evidence
from woodrat.runs.margin import Margin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from woodrat.canon.form import Json
    from woodrat.canon.ids import Ref
    from woodrat.merge.snapshot import Snapshot
    from woodrat.state.observation import Observation

PREVIEW_CHARACTERS_MAX: Final = 256
"""How much of a result or a response a preview shows."""

SELECT: Final = "select"
"""The mode of a decision that takes every branch that matches."""

_COMPARISONS: Final = frozenset({"eq", "ne", "gt", "gte", "lt", "lte"})
"""Operators whose one operand is what the actual value was measured against."""


@dataclass(frozen=True, slots=True)
class Part(Record):
    """One step of a run, and the entry that says so."""

    position: int
    """Where the entry stands in the log."""
    step: int
    """The recorder's own count of steps."""
    span: str
    """What tells equal steps apart."""
    started_at: str | None
    """When the step began, fixed-width UTC; none when the entry does not say."""
    under: str | None
    """Span of the tool or model call inside which it happened."""
    attributes: Mapping[str, Any]
    """What else an import said of it."""

    @property
    def order(self) -> tuple[str, int, str]:
        """What steps of a run are sorted by."""
        return self.started_at or "", self.step, self.span


@dataclass(frozen=True, slots=True)
class RecalledRun(Record):
    """A run that another one recalled."""

    run: str
    """The run."""
    score: float
    """How near it came to the question."""
    passage: str
    """What of it came near: `asked`, `decided` or `answered`."""
    at: int
    """Position of the entry that says so."""


@dataclass(frozen=True, slots=True)
class Read(Part):
    """What the run read of one entity."""

    entity: str | None
    """The entity, as a reference; none for a search that found none."""
    as_of: int | None
    """The position it read at."""
    present: bool
    """Whether it asked for the present, rather than for a moment."""
    log: str | None
    """Name of the log it read."""
    effective: str | None
    """The effective time it asked for."""
    found: bool
    """Whether anything was known of the entity."""
    fields: Mapping[str, Any]
    """By field the winning observation and what it showed: `{"observation", "value"}`, of several `observations`."""
    within: str | None
    """The verb that read, unless that was `show`."""
    args: Mapping[str, Json]
    """What that verb was asked."""
    recalled: tuple[RecalledRun, ...] = ()
    """Of a recall, the runs it found, best first."""
    unchecked: str | None = field(default=None, compare=False)
    """Why nobody compared it with the log: it is by `valid_at`, names no `position`, shows what was `erased`, or is of
    another `log`, which only `runs show` looks up; none where the log bears it out."""

    @property
    def values(self) -> dict[str, Json]:
        """What was read, by field."""
        return {name: item.get("value") for name, item in self.fields.items() if isinstance(item, dict)}

    @property
    def observations(self) -> frozenset[str]:
        """Ids of the observations that were read."""
        return frozenset(id for name in self.fields for id in self.behind(name))

    def behind(self, name: str) -> tuple[str, ...]:
        """Return the ids of the observations that a field was read from; several where they make up a collection."""
        item = mapping(self.fields.get(name))
        several = item.get("observations")
        found = several if isinstance(several, list) else [item.get("observation")]
        return tuple(id for id in found if isinstance(id, str))


@dataclass(frozen=True, slots=True)
class Condition(Record):
    """One comparison a rule made."""

    key: str
    """The fact looked at."""
    op: str
    """The operator, such as `lt`; empty when a predicate only looked at the fact."""
    operand: Json
    """What the fact was compared with."""
    actual: Json
    """What the fact was."""
    result: bool | None
    """Whether the condition held; none where that is unknown: no such fact, or one that cannot be compared."""
    origin: Mapping[str, Any]
    """Where the actual value came from: a read, an input, a tool, a model, or `stated`."""
    error: Json = None
    """What went wrong while comparing."""

    @property
    def observations(self) -> frozenset[str]:
        """Ids of the observations behind the actual value."""
        return _observations(self.origin)

    @property
    def found_its_fact(self) -> bool:
        """Whether it tells what the fact was."""
        from woodrat.runs.operators import NO_FACT

        there = self.result is self.operand if self.op == "exists" else self.error != NO_FACT
        return there and self.actual is not None


def result_word(result: bool | None) -> str:
    """Return in a word whether a condition held."""
    return "unknown" if result is None else "true" if result else "false"


@dataclass(frozen=True, slots=True)
class Tried(Record):
    """One rule that a decision tried."""

    label: str | None
    """What the rule is called."""
    chosen: Json
    """The branch it leads to."""
    matched: bool
    """Whether all its conditions held."""
    conditions: tuple[Condition, ...]
    """What it compared, as far as it went."""
    when: Json = None
    """The rule itself, where it is data; it can be evaluated again."""
    predicate: str | None = None
    """Name of the function, where it is code."""
    error: Json = None
    """What went wrong while it was tried."""
    unknown: bool = False
    """Whether it neither matched nor failed to: no condition is false, and at least one is unknown."""


@dataclass(frozen=True, slots=True)
class Decision(Part):
    """A choice the run made: stage, chosen branch, rule, evidence."""

    COMPACT: ClassVar = ("stage", "chosen", "rule", "evidence")
    """What a list shows of it."""

    stage: str
    """What was decided."""
    chosen: Json
    """The branch taken; a list under `select`."""
    rule: Json
    """Label of the rule that matched, a list of them under `select`; null when none did."""
    default: bool
    """Whether no rule matched."""
    mode: str
    """`decide` takes the first match, `select` all of them."""
    rules: tuple[Tried, ...]
    """The rules up to and including the match, in order."""
    rationale: str | None
    """What the agent itself said about it."""
    facts: Mapping[str, Json]
    """The values given, by name."""
    facts_origin: Mapping[str, Any]
    """Where they came from, by name."""
    omitted: Mapping[str, Any]
    """How many rules and conditions were left out of the record for their number."""
    untried: tuple[Tried, ...] | None = None
    """The rules after the match, which were not looked at; none where the record does not say."""
    otherwise: Json = None
    """What would have been chosen had no rule matched."""
    on_missing: str | None = None
    """`skip` where rules that are unknown were to be skipped; none where one makes the decision fail."""
    chosen_by: Mapping[str, Any] | None = None
    """Who chose without rules: `{"model", "span", "step"}` of the model's call, or `{"agent"}`; none for rules."""
    rules_on_record: bool = field(default=True, compare=False, repr=False, metadata=IN_PYTHON_ONLY)
    """Whether the entry lists the rules, of which there may be none; what was recorded elsewhere may not."""
    margin: Margin | None = field(default=None, compare=False)
    """How near it was to another choice; `why` and `runs show` work it out, elsewhere there is none."""
    looked_at: tuple[Evidence, ...] = field(default=(), compare=False)
    """The facts it looked at, their documents, and what became of them since; only `why` and `runs show` look it up."""

    def by(self, shown: Callable[[Json], str]) -> str:
        """Return in words what it was decided by; `shown` writes a label."""
        if self.chosen_by is not None:
            return chooser(self.chosen_by)
        if self.default:
            skipped = sum(rule.unknown for rule in self.rules)
            return "by default, no rule matched" + (f" and {skipped} could not be decided" if skipped else "")
        if isinstance(self.rule, list) and None in self.rule:
            labels: list[Json] = [label for label in self.rule if label is not None]
            bare = len(self.rule) - len(labels)
            without = f"{bare} rule{'' if bare == 1 else 's'} without a label"
            return f"by rules {shown(labels)} and {without}" if labels else f"by {without}"
        if self.rule is None:
            return "by a rule without a label" if any(rule.matched for rule in self.rules) else "without a rule"
        return f"by rule{'s' if isinstance(self.rule, list) else ''} {shown(self.rule)}"

    @property
    def conditions(self) -> tuple[Condition, ...]:
        """Everything compared, rule after rule."""
        return tuple(condition for rule in self.rules for condition in rule.conditions)

    @derived
    def evidence(self) -> dict[str, Json]:
        """The values that the rules which matched looked at, by name, and `threshold` if there was one to compare with.

        A fact that is itself called `threshold` keeps its name. An imported decision tells of no rule's conditions:
        there it is what it was made on.
        """
        return evidence_of(self.rules) if self.rules or self.default else dict(self.facts)

    @property
    def origins(self) -> tuple[Mapping[str, Any], ...]:
        """Where all that it looked at and all that it was given came from."""
        given = [origin for origin in self.facts_origin.values() if isinstance(origin, dict)]
        return (*(condition.origin for condition in self.conditions), *given)

    @property
    def fact_origins(self) -> dict[str, Mapping[str, Any]]:
        """Where each fact came from that it was given or looked at, by name."""
        found = {key: origin for key, origin in self.facts_origin.items() if isinstance(origin, dict)}
        return {**found, **{condition.key: condition.origin for condition in self.conditions}}

    @property
    def known_facts(self) -> dict[str, Json]:
        """The facts it was made on, by name, as far as they are on record."""
        values = dict(self.facts)
        for condition in self.conditions:
            if condition.key not in values and condition.found_its_fact:
                values[condition.key] = condition.actual
        return values

    @property
    def observations(self) -> frozenset[str]:
        """Ids of the observations behind its evidence and its facts."""
        return frozenset(id for origin in self.origins for id in _observations(origin))

    @property
    def entities(self) -> tuple[str, ...]:
        """Entities its evidence and its facts were read from, as references, sorted."""
        found = (origin.get("entity") for origin in self.origins if origin.get("kind") == "read")
        return tuple(sorted({entity for entity in found if isinstance(entity, str)}))


def chooser(chosen_by: Mapping[str, Any]) -> str:
    """Return in words who chose without rules: a model in one of its calls, or the agent itself."""
    model, step = text(chosen_by.get("model")), whole(chosen_by.get("step"))
    if model is None:
        return "by the agent itself"
    return f"by model {model}" if step is None else f"by model {model} in step {step}"


def evidence_of(rules: Iterable[Tried]) -> dict[str, Json]:
    """Return the values that the rules which matched looked at, and `threshold` if there was one to compare with."""
    matched = [condition for rule in rules if rule.matched for condition in rule.conditions]
    found: dict[str, Json] = {}
    for condition in matched:
        found.setdefault(condition.key, condition.actual)
    operands = [c.operand for c in matched if c.op in _COMPARISONS and not isinstance(c.operand, dict | list)]
    if len(operands) == 1 and operands[0] is not None:
        found.setdefault("threshold", operands[0])
    return found


@dataclass(frozen=True, slots=True)
class ToolCall(Part):
    """One call of a tool."""

    name: str
    """The tool."""
    args: Json
    """What it was given."""
    result: Json
    """What it returned, or what is left of it."""
    errored: bool
    """Whether it failed."""
    error: Json
    """How it failed."""
    duration_ms: int | float | None
    """How long it took."""
    once: bool
    """Whether an acknowledged effect must never be repeated."""
    begun: bool
    """Whether only its beginning is recorded, so that nobody knows what came of it."""

    @property
    def preview(self) -> str | None:
        """The result as text, cut at a named length; none when there is none."""
        return None if self.begun or (self.errored and self.result is None) else preview(self.result)


@dataclass(frozen=True, slots=True)
class ModelCall(Part):
    """One call of a model."""

    model: str | None
    """Which model."""
    request: str | None
    """Digest of the request."""
    messages: Json
    """The messages it was given, where the recorder kept them."""
    parameters: Mapping[str, Json]
    """How it was asked."""
    response: Json
    """What it answered."""
    input_tokens: int
    """Tokens it read."""
    output_tokens: int
    """Tokens it wrote."""
    duration_ms: int | float | None
    """How long it took."""
    errored: bool
    """Whether it failed."""
    error: Json
    """How it failed."""

    @derived
    def request_digest(self) -> str | None:
        """Digest of the request, under the name that other formats use."""
        return self.request

    @derived
    def preview(self) -> str | None:
        """What it answered as text, cut at a named length: its words and the tools it asked for; none without one."""
        return None if self.response is None else preview(messages.gist(self.response))


@dataclass(frozen=True, slots=True)
class Note(Part):
    """A remark the run made."""

    text: str
    """The remark."""
    data: Json
    """What belongs to it."""


@dataclass(frozen=True, slots=True)
class Judgement(Part):
    """What somebody thinks of the run, or of one step of it."""

    verdict: str
    """`good`, `bad`, or the judge's own word."""
    preferred: Json
    """A better answer."""
    by: str | None
    """Who judged."""
    reason: str | None
    """Why."""
    score: Json
    """The judgement as a number."""
    against: str | None
    """The tag or run it was compared with."""
    about: str | None
    """Span of the step that is judged; the whole run when left out."""
    evaluation: str | None = None
    """The `evaluation` that says so, as a reference."""
    agent: str | None = None
    """Who recorded the judgement; whoever judged may be somebody else."""

    @classmethod
    def of_evaluation(cls, ref: Ref, snapshot: Snapshot | None, run: str) -> Iterator[Judgement]:
        """Yield what an `evaluation` says of a run, if it is about it."""
        if snapshot is None or snapshot.deleted or snapshot.fields.get("subject") != run:
            return
        verdict, blame = snapshot.fields.get("verdict"), snapshot.blame.get("verdict")
        if isinstance(verdict, str) and blame is not None:
            yield cls(
                position=snapshot.version,
                step=0,
                span="",
                started_at=blame.observed_at,
                under=None,
                attributes={},
                verdict=verdict,
                preferred=None,
                by=text(snapshot.fields.get("judge")) or blame.agent,
                reason=text(snapshot.fields.get("rationale")),
                score=snapshot.fields.get("score"),
                against=text(snapshot.fields.get("baseline")),
                about=None,
                evaluation=str(ref),
                agent=blame.agent,
            )


@dataclass(frozen=True, slots=True)
class Write(Record):
    """An observation that the run said."""

    position: int | None
    """Where it stands in the log; none where it was said in the log that the run was imported from."""
    observation: str
    """Its id."""
    entity: str
    """Whom it speaks of, as a reference."""
    op: str
    """`assert`, `correct`, `retract`, `delete` or `restore`."""
    fields: Mapping[str, Json]
    """The values stated."""
    remove: Mapping[str, Any]
    """Elements taken out of collections."""
    observed_at: str
    """When it was seen."""
    step: int | None
    """The step it was said in, where it says so."""
    agent: str
    """Who said it."""

    @classmethod
    def of(cls, position: int, said: Observation) -> Write:
        """Return an observation as a write."""
        step = said.optional.get("step")
        return cls(
            position=position,
            observation=said.id,
            entity=str(said.entity),
            op=said.op,
            fields=dict(said.fields),
            remove={name: list(elements) for name, elements in said.remove.items()},
            observed_at=said.observed_at,
            step=step if type(step) is int else None,
            agent=said.agent,
        )

    @classmethod
    def elsewhere(cls, told: object) -> Write | None:
        """Return a write of another log as its JSON tells of it; none for anything else."""
        stated = mapping(told)
        texts = {name: text(stated.get(name)) for name in ("observation", "entity", "op", "observed_at", "agent")}
        if any(value is None for value in texts.values()):
            return None
        fields, remove = mapping(stated.get("fields")), mapping(stated.get("remove"))
        return cls(position=None, fields=fields, remove=remove, step=whole(stated.get("step")), **texts)  # type: ignore[arg-type]


# From bodies


def part_of(kind: str, position: int, body: Mapping[str, Any]) -> Part | None:
    """Return what an entry of a run says; `None` for its beginning and end, and for kinds that are no step."""
    place: dict[str, Any] = {
        "position": position,
        "step": whole(body.get("step")) or 0,
        "span": text(body.get("span")) or "",
        "started_at": text(body.get("started_at")) or None,
        "under": text(body.get("under")),
        "attributes": mapping(body.get("attributes")),
    }
    match kind:
        case "run.read":
            fields = {**mapping(body.get("fields")), **_edited(body.get("edited"))}
            return Read(
                **place,
                entity=text(body.get("entity")),
                as_of=whole(body.get("position")),
                present="as_of" not in body,
                log=text(body.get("log")),
                effective=text(body.get("effective")),
                found=body.get("found", True) is True,
                fields=fields,
                within=text(body.get("within")),
                args=mapping(body.get("args")),
                recalled=recalled_runs(body.get("recalled")),
                unchecked=_unchecked(body, fields),
            )
        case "run.decided":
            return _decision(place, body)
        case "run.tool":
            return ToolCall(
                **place,
                name=text(body.get("name")) or "",
                args=body.get("args", {}),
                result=body.get("result"),
                errored=body.get("errored") is True or body.get("error") is not None,
                error=body.get("error"),
                duration_ms=number(body.get("duration_ms")),
                once=body.get("once") is True,
                begun=body.get("begun") is True,
            )
        case "run.model":
            usage = mapping(body.get("usage"))
            return ModelCall(
                **place,
                model=text(body.get("model")),
                request=text(body.get("request")),
                messages=body.get("messages"),
                parameters=mapping(body.get("parameters")),
                response=body.get("response"),
                input_tokens=whole(usage.get("input")) or 0,
                output_tokens=whole(usage.get("output")) or 0,
                duration_ms=number(body.get("duration_ms")),
                errored=body.get("errored") is True or body.get("error") is not None,
                error=body.get("error"),
            )
        case "run.noted":
            return Note(**place, text=text(body.get("text")) or "", data=body.get("data"))
        case "run.judged":
            return Judgement(
                **place,
                verdict=text(body.get("verdict")) or "",
                preferred=body.get("preferred"),
                by=text(body.get("by")),
                reason=text(body.get("reason")),
                score=body.get("score"),
                against=text(body.get("against")),
                about=text(body.get("about")),
                evaluation=text(body.get("evaluation")),
                agent=text(body.get("agent")),
            )
    return None


def _unchecked(body: Mapping[str, Any], fields: Mapping[str, Any]) -> str | None:
    """Return why a read cannot be compared with the log that it names."""
    if text(body.get("effective")) is not None:
        return "valid_at"
    if whole(body.get("position")) is None and text(body.get("entity")) is not None:
        return "position"
    return "erased" if any(type(each) is dict and each.get("value") == ERASED for each in fields.values()) else None


def _edited(told: object) -> dict[str, Any]:
    """Return the fields that a fork has edited: no observation is behind them."""
    return {name: {"value": value} for name, value in mapping(told).items()}


def recalled_runs(found: object) -> tuple[RecalledRun, ...]:
    """Return the runs that the entry of a recall names."""
    named = [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
    return tuple(
        RecalledRun(
            run=each["run"],
            score=float(number(each.get("score")) or 0),
            passage=text(each.get("passage")) or "",
            at=whole(each.get("at")) or 0,
        )
        for each in named
        if isinstance(each.get("run"), str)
    )


def _decision(place: dict[str, Any], body: Mapping[str, Any]) -> Decision:
    tried = body.get("rules")
    rules = tuple(_tried(rule) for rule in tried if isinstance(rule, dict)) if isinstance(tried, list) else ()
    mode = text(body.get("mode")) or "decide"
    after = body.get("untried")
    return Decision(
        **place,
        stage=text(body.get("stage")) or "",
        chosen=body.get("chosen"),
        rule=body.get("rule"),
        default=body.get("default") is True,
        mode=mode,
        rules=rules,
        rationale=text(body.get("rationale")),
        facts=mapping(body.get("facts")),
        facts_origin={name: _origin(found) for name, found in mapping(body.get("facts_origin")).items()},
        omitted=mapping(body.get("omitted")),
        untried=tuple(_tried(rule) for rule in after if isinstance(rule, dict)) if isinstance(after, list) else None,
        otherwise=body.get("otherwise"),
        on_missing="skip" if body.get("on_missing") == "skip" else None,
        rules_on_record=isinstance(tried, list),
        chosen_by=body["chosen_by"] if isinstance(body.get("chosen_by"), dict) else None,
    )


def decision_of(body: Mapping[str, Any], position: int = 0) -> Decision:
    """Return the decision that the body of an entry records."""
    made = part_of("run.decided", position, body)
    assert isinstance(made, Decision)
    return made


_TEXT: Final = frozenset({str})


def _tried(rule: Mapping[str, Any]) -> Tried:
    made = rule.get("conditions")
    return Tried(
        label=text(rule.get("label")),
        chosen=rule.get("chosen"),
        matched=rule.get("matched") is True,
        conditions=tuple(_condition(c) for c in made if isinstance(c, dict)) if isinstance(made, list) else (),
        when=rule.get("when"),
        predicate=text(rule.get("predicate")),
        error=rule.get("error"),
        unknown=rule.get("unknown") is True and rule.get("matched") is not True,
    )


def _condition(found: Mapping[str, Any]) -> Condition:
    result = found.get("result")
    return Condition(
        key=text(found.get("key")) or "",
        op=text(found.get("op")) or "",
        operand=found.get("operand"),
        actual=found.get("actual"),
        result=result if type(result) is bool else None,
        origin=_origin(found.get("origin")),
        error=found.get("error"),
    )


_ORIGIN: Final[Mapping[str, type]] = {
    **dict.fromkeys(("kind", "entity", "field", "name", "span", "path", "by"), str),
    "position": int,
}
"""What the members of an origin are."""


def _origin(told: object) -> dict[str, Any]:
    """Return where a value came from; members of another shape count as left out."""
    origin = mapping(told)
    for name, item in origin.items():
        kind = _ORIGIN.get(name)
        if kind is not None and type(item) is not kind:
            origin = {name: item for name, item in origin.items() if type(item) is _ORIGIN.get(name, type(item))}
            break
    named = origin.get("observations", _NOTHING)
    if named is not _NOTHING and not (type(named) is list and _TEXT.issuperset(map(type, named))):
        ids = [id for id in named if isinstance(id, str)] if isinstance(named, list) else []
        origin = {**origin, "observations": ids}
    return origin or {"kind": "stated"}


_NOTHING: Final = object()


def _observations(origin: Mapping[str, Any]) -> frozenset[str]:
    named = origin.get("observations")
    return frozenset(_ids(named)) if isinstance(named, list) else frozenset()


def _ids(found: Iterable[object]) -> set[str]:
    return {id for id in found if isinstance(id, str)}


def preview(value: Json) -> str:
    """Return a value as text of bounded length: text as it is, a value cut by its recorder as the recorder shows it."""
    cut = value.get("$truncated") if isinstance(value, dict) and len(value) == 1 else None
    if isinstance(cut, dict) and isinstance(cut.get("preview"), str):
        return str(cut["preview"])[:PREVIEW_CHARACTERS_MAX] + "…"
    whole = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    return whole if len(whole) <= PREVIEW_CHARACTERS_MAX else whole[:PREVIEW_CHARACTERS_MAX] + "…"


def text(value: object) -> str | None:
    """Return a value that is text."""
    return value if isinstance(value, str) else None


def ref(value: object) -> Ref | None:
    """Return a value that is text as a reference, if it is one."""
    try:
        return ids.parse_ref(value) if isinstance(value, str) else None
    except Refused:
        return None


def whole(value: object) -> int | None:
    """Return a value that is a whole number."""
    return value if type(value) is int else None


def number(value: object) -> int | float | None:
    """Return a value that is a number."""
    return value if type(value) in (int, float) else None  # type: ignore[return-value]


def listed(value: object) -> list[Any]:
    """Return a value that is a list; an empty one for anything else."""
    return value if isinstance(value, list) else []


def mapping(value: object) -> dict[str, Any]:
    """Return a value that is an object; an empty one for anything else."""
    return value if isinstance(value, dict) else {}
