"""Note: a text about something. Its key is made from the text and its subject, so the same note is one entity."""

from __future__ import annotations

from typing import Final

from woodrat.canon import form
from woodrat.canon.digest import base32, digest
from woodrat.canon.ids import Ref
from woodrat.state import relation

NOTE: Final = "note"
"""The entity type of notes."""
ABOUT: Final = "about"
"""The relation type from a note to its subject, and the field of the note that names it."""
KEY_CHARACTERS: Final = 26
"""Length of the digest in the key of a note: the same as in ids."""


def note_ref(text: str, subject: Ref | None) -> Ref:
    """Return the entity of a note: its key is the beginning of the digest of its text and its subject."""
    body = {"text": text} if subject is None else {ABOUT: str(subject), "text": text}
    return Ref(NOTE, base32(digest(NOTE, form.encode(body)))[:KEY_CHARACTERS])


def note_of(edge: Ref, subject: Ref) -> Ref | None:
    """Return the note that a relation connects with a subject; None for other relations."""
    ends = relation.endpoints(edge) if edge.type == ABOUT else None
    return ends[0] if ends is not None and ends[0].type == NOTE and ends[1] == subject else None
