"""Sources: content as received."""

from __future__ import annotations

from typing import TYPE_CHECKING

from woodrat.api.verb import WRITE, verb
from woodrat.runs.recorder import current

if TYPE_CHECKING:
    from os import PathLike

    from woodrat.api.namespace import ReadableLedger, WritableLedger
    from woodrat.api.parameters import (
        Cursor,
        IdempotencyKey,
        Limit,
        MediaType,
        SourceArg,
        SourceName,
    )
    from woodrat.ledger.pages import Page
    from woodrat.state.source import Delivery


class PastSources:
    """The verbs of sources that read, at one moment."""

    def __init__(self, ledger: ReadableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(get="/v1/sources", command="sources list", tool="sources")
    def list(self, *, limit: Limit = 100, cursor: Cursor | None = None) -> Page[Delivery]:
        """List the deliveries of sources.

        Each delivery counts, in log order.
        """
        from woodrat.ledger import lists

        return lists.deliveries(self.context, limit=limit, cursor=cursor)

    @verb(command="sources show SRC", tool="sources", at_moment=True)
    def show(self, source: SourceArg) -> tuple[Delivery, ...]:
        """Show every delivery of one source.

        Raises `NotFound` if there is no source with that id. `content` returns the received bytes.
        """
        from woodrat.ledger import sources

        return sources.deliveries_of(self.context, source)

    def content(self, source: SourceArg) -> bytes:
        """Return the content of a source, exactly as received."""
        from woodrat.ledger import sources

        return sources.content(self.context, source)


class Sources(PastSources):
    """The verbs of sources."""

    ledger: WritableLedger

    def __init__(self, ledger: WritableLedger) -> None:
        self.ledger = ledger
        self.context = ledger.context

    @verb(command="sources add FILE", grant=WRITE)
    def add(
        self,
        content: bytes | str | PathLike[str],
        *,
        name: SourceName | None = None,
        media_type: MediaType | None = None,
        idempotency_key: IdempotencyKey | None = None,
    ) -> str:
        """Add a file as a source.

        `content` is bytes, or the path of a file. Content is stored once; each delivery is recorded. Returns the id of
        the source.
        """
        from woodrat.ledger import sources

        return sources.add_source(
            current.write_context(self.context),
            content,
            name=name,
            media_type=media_type,
            idempotency_key=idempotency_key,
        )
