"""Bytes on their way in, counted: nothing that a file expands to is held whole, and none of it goes on without end."""

import gzip
import hashlib
import io
from typing import IO, Any, cast

from django.conf import settings

from annotator.refusals import Refusal

RATIO_COUNTS_FROM = 16 << 20
"""Bytes. What a file expands to before says little: a few equal lines compress well."""


class UnreadableFile(Refusal):
    """The file as a whole cannot be read; the message says why."""

    status = 400
    code = "unreadable"


class FileTooLarge(UnreadableFile):
    """The file holds more than one import takes; the message names the limit."""

    status = 413
    code = "too_large"


class Incoming(io.RawIOBase):
    """The file as it arrives, with its size and its hash so far."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = cast(Any, stream)
        self._hash = hashlib.sha256()
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        size = self._stream.readinto(buffer) or 0
        self._hash.update(memoryview(buffer)[:size])
        self.size += size
        return int(size)

    def digest(self) -> str:
        return self._hash.hexdigest()


class Metered(io.RawIOBase):
    """What is read of a file, decompressed, up to IMPORT_MAX_FILE_BYTES."""

    def __init__(self, source: io.BufferedReader) -> None:
        self._source = source
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        # What comes at one go: what was read before damage must not be lost with it.
        size = self._source.readinto1(buffer)
        self.size += size
        if self.size > settings.IMPORT_MAX_FILE_BYTES:
            raise FileTooLarge(
                f"the file holds more than {settings.IMPORT_MAX_FILE_BYTES:,} bytes: "
                "split it, or ask the operator to raise IMPORT_MAX_FILE_BYTES"
            )
        return size


class Unzipped(io.RawIOBase):
    """What a gzip file holds, up to the very byte where it is damaged: GzipFile itself would lose a block before it."""

    def __init__(self, source: IO[bytes], incoming: Incoming) -> None:
        self._file = gzip.GzipFile(fileobj=source)
        self._incoming = incoming
        self._size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._file.read1(len(buffer))
        buffer[: len(data)] = data
        self._size += len(data)
        most = max(RATIO_COUNTS_FROM, self._incoming.size * settings.IMPORT_MAX_GZIP_RATIO)
        if self._size > most:
            raise FileTooLarge(
                f"the gzip file expands more than {settings.IMPORT_MAX_GZIP_RATIO}-fold: "
                "send it decompressed, or ask the operator to raise IMPORT_MAX_GZIP_RATIO"
            )
        return len(data)
