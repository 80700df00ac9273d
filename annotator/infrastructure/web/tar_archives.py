"""Files as one tar file that lies on no disk: its bytes are made of the files while they are read."""

import tarfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from annotator.infrastructure.storage import store

TAR = "application/x-tar"
_END = 2 * tarfile.BLOCKSIZE
"""Bytes of zeros that end a tar file."""


@dataclass(frozen=True)
class Member:
    """One file of an archive: its path in there, its size in bytes, and where its content is, or the content."""

    path: str
    size: int
    content: Path | bytes


class TarArchive:
    """Reads as a file that can be sought: for each file its head, its content, and zeros up to a whole block.

    The heads hold no time, no owner and nothing else that could be different another day.
    """

    def __init__(self, members: Iterable[Member]) -> None:
        self._pieces: list[bytes | Path] = []
        self._starts: list[int] = []
        self.size = self._position = 0
        self._open: tuple[Path, IO[bytes] | store.StoredReader] | None = None
        for piece, size in _pieces(members):
            self._pieces.append(piece)
            self._starts.append(self.size)
            self.size += size

    def seek(self, place: int) -> int:
        self._position = place
        return place

    def read(self, size: int) -> bytes:
        """Returns up to `size` bytes, fewer at the end of a piece, none only at the end of the archive."""
        if self._position >= self.size or size <= 0:
            return b""
        number = bisect_right(self._starts, self._position) - 1
        piece, within = self._pieces[number], self._position - self._starts[number]
        end = self._starts[number + 1] if number + 1 < len(self._starts) else self.size
        size = min(size, end - self._position)
        part = piece[within : within + size] if isinstance(piece, bytes) else self._read_file(piece, within, size)
        self._position += len(part)
        return part

    def _read_file(self, path: Path, start: int, size: int) -> bytes:
        if self._open is None or self._open[0] != path:
            self.close()
            self._open = (path, store.opened(path))
        file = self._open[1]
        file.seek(start)
        if not (part := file.read(size)):
            # A shorter answer than its head says would look like a whole one.
            raise OSError(f"{path.name} is shorter than it was.")
        return part

    def close(self) -> None:
        if self._open:
            self._open[1].close()
            self._open = None


def _pieces(members: Iterable[Member]) -> Iterator[tuple[bytes | Path, int]]:
    for member in members:
        head = tarfile.TarInfo(member.path)
        head.size = member.size
        # In the format that also knows files of more than 8 GB.
        written = head.tobuf(tarfile.PAX_FORMAT)
        yield written, len(written)
        # An empty piece would hide the next one, which begins at the same place.
        if member.size:
            yield member.content, member.size
        if gap := -member.size % tarfile.BLOCKSIZE:
            yield bytes(gap), gap
    yield bytes(_END), _END


def parts(archive: TarArchive, at_once: int = 1 << 20) -> Iterator[bytes]:
    """Yields the archive's bytes from the beginning."""
    archive.seek(0)
    while part := archive.read(at_once):
        yield part
