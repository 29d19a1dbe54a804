"""Interpretation: one reading of a source by a model or a parser; auditable, not replayable.

It happens before the log: its results become observations that name it, and no merge ever calls a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from woodrat.canon import form, ids
from woodrat.canon.form import Json
from woodrat.record_json import Hex, Record, derived
from woodrat.records import dataclass, field

STATUSES = frozenset({"done", "error"})


@dataclass(frozen=True, slots=True)
class Interpretation(Record):
    """One reading of a source; `status` is `started` until its end is recorded."""

    COMPACT: ClassVar = ("id", "source", "agent", "started_at", "model", "status", "error")
    """Its members in lists."""

    id: ids.InterpretationId
    """A new id: an interpretation is an event, and is not deduplicated."""
    source_digest: Hex
    """Digest of the content read."""
    agent: str
    """Who read it."""
    started_at: str
    """When the interpretation began."""
    model: str | None = None
    """Which model read it, if one did."""
    prompt: str | None = None
    """SHA-256 of the prompt, in hex."""
    extractor: str | None = None
    """Which code turned the answer into records."""
    parameters: Mapping[str, Json] = field(default_factory=dict)
    """Model parameters."""
    configuration: Mapping[str, Json] = field(default_factory=dict)
    """Other settings of the interpretation."""
    status: str = "started"
    """`started`, `done` or `error`."""
    ended_at: str | None = None
    """When it ended."""
    usage: Mapping[str, Json] = field(default_factory=dict)
    """Its cost, as the model reported it."""
    error: str | None = None
    """Why it failed."""

    @derived
    def source(self) -> ids.SourceId:
        """Id of the source that was read."""
        return ids.SourceId(ids.id_of("source", self.source_digest))

    def started_body(self) -> bytes:
        """Return the canonical body of the `interpretation.started` entry."""
        optional = {
            "configuration": dict(self.configuration),
            "extractor": self.extractor,
            "model": self.model,
            "parameters": dict(self.parameters),
            "prompt": self.prompt,
        }
        return form.encode(
            {
                "agent": self.agent,
                "interpretation": self.id,
                "source": ids.name("source", self.source_digest),
                "started_at": self.started_at,
                **{key: value for key, value in optional.items() if value},
            }
        )

    def ended_body(self) -> bytes:
        """Return the canonical body of the `interpretation.ended` entry."""
        assert self.status in STATUSES and self.ended_at is not None, "only an ended reading has an end"
        optional = {"error": self.error, "usage": dict(self.usage)}
        return form.encode(
            {
                "ended_at": self.ended_at,
                "interpretation": self.id,
                "status": self.status,
                **{key: value for key, value in optional.items() if value},
            }
        )


def stored(started: bytes, ended: bytes | None) -> Interpretation:
    """Return the interpretation that its one or two entries record."""
    begin: dict[str, Any] = form.decode(started)
    end: dict[str, Any] = form.decode(ended) if ended is not None else {}
    source = ids.digest_of("source", begin["source"])
    assert source is not None, "a stored interpretation names its source in full"
    return Interpretation(
        id=begin["interpretation"],
        source_digest=source,
        agent=begin["agent"],
        started_at=begin["started_at"],
        model=begin.get("model"),
        prompt=begin.get("prompt"),
        extractor=begin.get("extractor"),
        parameters=begin.get("parameters", {}),
        configuration=begin.get("configuration", {}),
        status=end.get("status", "started"),
        ended_at=end.get("ended_at"),
        usage=end.get("usage", {}),
        error=end.get("error"),
    )
