"""The sources tool, beyond the verbs: an agent sends the text of a document, where the library takes a file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from woodrat.api.parameters import TEXT, WHOLE, Kind
from woodrat.api.verb import READ, WRITE, Parameter
from woodrat.errors import Fault, Refused, shown
from woodrat.mcp.action import DETAILS, Action, Given
from woodrat.server.reply import past_at

if TYPE_CHECKING:
    from woodrat.api.ledger import Ledger
    from woodrat.runs.relay import Relay

CONTENT_CHARACTERS: Final = 4_000
"""Longest excerpt of a document per answer."""


class SourceAction(Action):
    """Something that is done with the text of a source."""

    def __init__(
        self,
        operation: str,
        note: str,
        grant: str,
        parameters: tuple[Parameter, ...],
        call: Callable[[Ledger, Given], dict[str, Any]],
    ) -> None:
        self.note, self.grant = note, grant
        self.wide = grant == READ  # a source may hold statements about any type
        self._operation, self._call = operation, call
        self._parameters = {each.wire: each for each in (*parameters, DETAILS)}

    @property
    def parameters(self) -> Mapping[str, Parameter]:
        """Its arguments, by name."""
        return self._parameters

    def operation(self, given: Given) -> str:
        """Return its name in REST."""
        return self._operation

    def call(self, ledger: Ledger, relay: Relay, given: Given) -> dict[str, Any]:
        """Do it."""
        return self._call(ledger, given)

    def written(self, answer: Any, given: Given) -> dict[str, Any]:
        """Return the answer, which is as short with details as without."""
        return dict(answer)


def _add(ledger: Ledger, given: Given) -> dict[str, Any]:
    content = given["content"].encode()
    about = {name: given[name] for name in ("name", "media_type", "idempotency_key") if name in given}
    source = ledger.sources.add(content, **about)
    remark = f"Kept whole. To store facts from it, call store with source: {source}."
    return {"source": source, "bytes": len(content), "remark": remark}


def _content(ledger: Ledger, given: Given) -> dict[str, Any]:
    source, offset = given["source"], given.get("offset", 0)
    if offset < 0:
        raise Refused(
            [Fault("offset", f"got {shown(offset)}", "Send a number of characters, 0 or more.")], "Nothing was read."
        )
    past = past_at(ledger, given.get("as_of"), None)
    content = past.sources.content(source)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError:
        return {"source": source, "bytes": len(content), "remark": "It is not text. `woodrat sources show` saves it."}
    end = offset + CONTENT_CHARACTERS
    more = {"more_characters": len(text) - end, "next_offset": end} if len(text) > end else {}
    return {"source": source, "bytes": len(content), "text": text[offset:end], **more}


def _parameter(name: str, what: str = "", schema: Mapping[str, Any] = TEXT, *, required: bool = False) -> Parameter:
    return Parameter(name, Kind(what or name, schema, brief=what), required, None)


ADD: Final = SourceAction(
    "sources_add",
    "keep a document whole",
    WRITE,
    (
        _parameter("content", "its text", required=True),
        _parameter("name"),
        _parameter("media_type"),
        _parameter("idempotency_key"),
    ),
    _add,
)
"""Keep the text of a document."""
CONTENT: Final = SourceAction(
    "sources_show",
    "its text",
    READ,
    (_parameter("source", required=True), _parameter("offset", schema=WHOLE), _parameter("as_of")),
    _content,
)
"""Read the text of a document."""
