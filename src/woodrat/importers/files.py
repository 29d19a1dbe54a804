"""Files: the contents of recording files, piece by piece.

A file is a path, a folder of files, an open file, or the text or bytes of one. Files that are short are a document
each. A long file in which every piece is a separate run (a line, an element of an array, a row) is read twice: once to
check all of it, once to record it in batches. So no more of it is in memory than a batch, and a digest for each run.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from io import BytesIO, TextIOWrapper
from tempfile import SpooledTemporaryFile
from typing import IO, TYPE_CHECKING, Any, BinaryIO, Final

from woodrat.errors import Fault, Refused, shown
from woodrat.importers import content, reader
from woodrat.importers.content import FileType, Piece
from woodrat.records import dataclass, field
from woodrat.runs.recordings import FILE_FAULTS_MAX, NOTHING_RECORDED, Recordings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import TypeAlias, TypeGuard

Source: TypeAlias = "str | bytes | os.PathLike[str] | BinaryIO"

WHOLE_BYTES_MAX: Final = 256 * 1_048_576
"""Longest file that is read as a whole; its values take several times that in memory."""
LONG_BYTES: Final = 8 * 1_048_576
"""Size from which a file is read piece by piece, if its pieces are separate runs."""
BATCH_BYTES: Final = 4 * 1_048_576
"""Bytes of a long file recorded in one write."""
PIPE_BYTES_MAX: Final = 1_024 * 1_048_576
"""Most bytes read from a pipe: it is copied to disk before it is recorded."""
_SPOOLED_BYTES: Final = 8 * 1_048_576


@dataclass(slots=True)
class PieceBatch:
    """Pieces of a file that are recorded together, as one document."""

    name: str
    """The file."""
    document: Any
    """What it says."""
    places: list[str] = field(default_factory=list)
    """The places of the document's items, if it is a list of pieces."""

    def recordings(self) -> Recordings:
        """Return the runs that the document holds."""
        return reader.read(self.document)

    def placed(self, faults: Iterable[Fault]) -> list[Fault]:
        """Return faults with their place in the file."""
        return [self._placed(fault) for fault in faults]

    def _placed(self, fault: Fault) -> Fault:
        first, slash, rest = fault.path.removeprefix("/").partition("/")
        if fault.path[:1] == "/" and first.isdigit() and int(first) < len(self.places):
            where = f"{self.name}{self.places[int(first)]}{slash}{rest}".strip()
            return Fault(where, fault.problem, fault.remedy)
        return _under(fault, self.name)


def _under(fault: Fault, name: str) -> Fault:
    """Return a fault with the name of its file before its path."""
    apart = " " if name and fault.path[:1] not in ("", "/", " ") else ""
    return fault.under(f"{name}{apart}")


class RecordingFile:
    """One file of recordings, open."""

    def __init__(self, file: IO[bytes], name: str, size: int) -> None:
        self._file, self._name, self._size = file, name, size
        file.seek(0)
        self._kind = content.kind_of(file.read(content.HEAD_BYTES), name)
        self.is_long = size > LONG_BYTES and self._pieces() is not None and self._is_apart()
        """Whether it is read piece by piece."""

    def batches(self) -> Iterator[PieceBatch]:
        """Yield the content of the file, from its beginning; raise `Refused` with all faults."""
        if self.is_long:
            yield from self._long()
        else:
            yield self.whole()

    def whole(self) -> PieceBatch:
        """Return the content of the file, as one document; raise `Refused` with all faults."""
        if self._size > WHOLE_BYTES_MAX:
            problem = f"it has {self._size} bytes, and {WHOLE_BYTES_MAX} is the limit of a file that is no list of runs"
            raise Refused([Fault(self._name, problem, "Send one run a line, or several files.")], NOTHING_RECORDED)
        self._file.seek(0)
        try:
            document, places = content.document(self._file.read(), self._name)
        except Refused as refusal:
            faults = [_under(fault, self._name) for fault in refusal.faults]
            raise Refused(faults, NOTHING_RECORDED) from None
        return PieceBatch(self._name, document, places)

    def _pieces(self) -> Iterator[Piece] | None:
        """Return the pieces of the file; None if it has to be read as a whole."""
        self._file.seek(0)
        if self._kind is FileType.LINES:
            return content.lines(self._lines())
        if self._kind is FileType.CSV:
            return self._rows()
        if self._kind is FileType.JSON and self._file.read(4_096).lstrip()[:1] == b"[":
            return self._elements()
        return None

    def _lines(self) -> Iterator[bytes]:
        while line := self._file.readline(content.LINE_BYTES_MAX + 1):
            if len(line) > content.LINE_BYTES_MAX:
                problem = f"a line has more than {content.LINE_BYTES_MAX} bytes"
                raise Refused(
                    [Fault(self._name, problem, "Shorten the long value, or leave it out.")], NOTHING_RECORDED
                )
            yield line

    def _rows(self) -> Iterator[Piece]:
        text = TextIOWrapper(self._file, encoding="utf-8", newline="")
        try:
            yield from content.rows(text)
        except UnicodeDecodeError as error:
            problem = f"byte 0x{error.object[error.start]:02x} is not UTF-8"
            yield Piece("", faults=(Fault("", problem, "Send the text in UTF-8."),))
        finally:
            text.detach()

    def _elements(self) -> Iterator[Piece]:
        try:
            mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):  # no file of the disk
            self._file.seek(0)
            yield from content.elements(self._file.read())
            return
        with mapped:
            yield from content.elements(mapped)

    def _is_apart(self) -> bool:
        """Return True if every piece is a separate run; an unreadable piece counts as one."""
        return all(piece.faults or reader.is_alone(piece.value) for piece in self._pieces() or ())

    def _long(self) -> Iterator[PieceBatch]:
        faults: list[Fault] = []
        batch, size = PieceBatch(self._name, []), 0
        for piece in self._pieces() or ():
            faults += (_under(fault, f"{self._name}{piece.place}".strip()) for fault in piece.faults)
            if len(faults) > FILE_FAULTS_MAX:
                break
            if piece.faults:
                continue
            batch.document.append(piece.value)
            batch.places.append(piece.place)
            size += _size(piece.value)
            if size >= BATCH_BYTES:
                yield batch
                batch, size = PieceBatch(self._name, []), 0
        if faults:
            raise Refused(faults, NOTHING_RECORDED)
        if batch.document:
            yield batch


def is_source(document: object) -> TypeGuard[Source | Sequence[os.PathLike[str]]]:
    """Return whether something is a file of recordings, or several, rather than the document of one."""
    if isinstance(document, list | tuple):
        return bool(document) and all(isinstance(item, os.PathLike) for item in document)
    return isinstance(document, str | bytes | bytearray | os.PathLike) or hasattr(document, "read")


def documents_of(source: Source | Sequence[os.PathLike[str]]) -> list[PieceBatch]:
    """Return the contents of files, each as one document; raise `Refused` with the faults of all."""
    found: list[PieceBatch] = []
    with ExitStack() as stack:
        faults: list[Fault] = []
        for file in _files(source, stack):
            try:
                found.append(file.whole())
            except Refused as refusal:
                faults += refusal.faults
    if faults:
        raise Refused(faults, NOTHING_RECORDED)
    return found


def one_document(source: Source | Sequence[os.PathLike[str]]) -> Any:
    """Return the contents of files as one document: for several files, the list of all their items."""
    batches = documents_of(source)
    if len(batches) == 1:
        return batches[0].document
    listed = [batch.document if isinstance(batch.document, list) else [batch.document] for batch in batches]
    return [item for items in listed for item in items]


@contextmanager
def opened(source: Source | Sequence[os.PathLike[str]]) -> Iterator[list[RecordingFile]]:
    """Return open files, closed when the block ends; a folder stands for all possible recordings in it and below."""
    with ExitStack() as stack:
        yield _files(source, stack)


def _size(value: Any) -> int:
    """Return the approximate size of a value, mainly of its texts."""
    size, level = 0, [value]
    while level:
        inner: list[Any] = []
        for item in level:
            if isinstance(item, str):
                size += len(item)
            elif isinstance(item, Mapping):
                inner += item.values()
            elif isinstance(item, list):
                inner += item
        size += 8 * len(level)
        level = inner
    return size


# Opening


def _files(source: Source | Sequence[os.PathLike[str]], stack: ExitStack) -> list[RecordingFile]:
    """Open files; a folder stands for all possible recordings in it and below, in the order of their names."""
    listed: list[Any] = [*source] if isinstance(source, list | tuple) else [source]
    faults: list[Fault] = []
    found: list[RecordingFile] = []
    for item in listed:
        if isinstance(item, str | bytes | bytearray):
            data = item.encode("utf-8", "surrogatepass") if isinstance(item, str) else bytes(item)
            found.append(RecordingFile(BytesIO(data), "", len(data)))
        elif isinstance(item, os.PathLike):
            for path in _paths(os.fspath(item), faults):
                try:
                    file = stack.enter_context(open(path, "rb"))  # noqa: SIM115
                    if os.path.isfile(path):
                        found.append(RecordingFile(file, path, os.path.getsize(path)))
                    else:  # a named pipe or a device is read like any other
                        found.append(_spooled(file, stack))
                except OSError as error:
                    faults.append(_unreadable(path, error))
        else:
            found.append(_spooled(item, stack))
    if faults:
        raise Refused(faults, NOTHING_RECORDED)
    return found


def _paths(path: str, faults: list[Fault]) -> list[str]:
    if not os.path.isdir(path):
        return [path]
    found = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(path)
        for name in names
        if name.endswith(content.SUFFIXES)
    )
    if not found:
        wanted = ", ".join(content.SUFFIXES)
        faults.append(Fault(path, "this folder contains no recording", f"Name a folder with files in {wanted}."))
    return found


def _spooled(file: BinaryIO, stack: ExitStack) -> RecordingFile:
    """Return a file that can be read twice, such as a pipe cannot."""
    copy: IO[bytes] = stack.enter_context(SpooledTemporaryFile(max_size=_SPOOLED_BYTES))  # noqa: SIM115
    name = "standard input" if getattr(file, "name", None) == "<stdin>" else ""
    while part := file.read(1_048_576):
        if copy.tell() + len(part) > PIPE_BYTES_MAX:
            problem = f"it has more than {PIPE_BYTES_MAX} bytes, which is the limit of a pipe"
            raise Refused(
                [Fault(name, problem, "Write it to a file and name that, or send several.")], NOTHING_RECORDED
            )
        copy.write(part)
    return RecordingFile(copy, name, copy.tell())


def _unreadable(path: str, error: OSError) -> Fault:
    problem = f"cannot read {shown(path)}: {error.strerror or error}"
    return Fault("FILE", problem, "Name a file that can be read, or - for standard input.")
