"""Source: content as received, stored once by digest; each delivery of it is recorded."""

from __future__ import annotations

from typing import Any, ClassVar

from woodrat.canon import form, ids
from woodrat.canon.digest import digest
from woodrat.record_json import Hex, Record, derived
from woodrat.records import dataclass

SOURCE_BYTES_MAX = 64 * 1_048_576
"""Largest content one source may hold."""


def source_digest(content: bytes) -> bytes:
    """Return the digest that names a source: over its content alone, independent of agent and name."""
    return digest("source", content)


@dataclass(frozen=True, slots=True)
class Delivery(Record):
    """One delivery of a source: agent, time and name."""

    COMPACT: ClassVar = ("source", "name", "media_type", "agent", "received_at")
    """Its members in lists."""

    source_digest: Hex
    """Digest of the content."""
    agent: str
    """Who delivered it."""
    name: str
    """Its stated name, such as a file name."""
    received_at: str
    """When it was received (fixed-width UTC)."""
    media_type: str | None
    """Its stated media type."""

    @derived
    def source(self) -> ids.SourceId:
        """Id of the source."""
        return ids.SourceId(ids.id_of("source", self.source_digest))

    def body(self) -> bytes:
        """Return the canonical body of the `received` entry."""
        body: dict[str, Any] = {
            "agent": self.agent,
            "name": self.name,
            "received_at": self.received_at,
            "source": ids.name("source", self.source_digest),
        }
        if self.media_type is not None:
            body["media_type"] = self.media_type
        return form.encode(body)


def stored(body: bytes) -> Delivery:
    """Return the delivery with this canonical body."""
    value: dict[str, Any] = form.decode(body)
    source = ids.digest_of("source", value["source"])
    assert source is not None, "a stored delivery names its source in full"
    return Delivery(source, value["agent"], value["name"], value["received_at"], value.get("media_type"))
