"""Streams that count the bytes of an import, hold no whole file in memory, and stop a file that expands too far."""

import gzip
import hashlib
import io
from collections.abc import Callable
from typing import IO, Any, cast

from django.conf import settings

from annotator.infrastructure.refusals import Refusal

RATIO_COUNTS_FROM = 16 << 20
"""Bytes. The ratio of a file that expands to less says little, because a few equal lines compress very well."""


class UnreadableFile(Refusal):
    """The file as a whole cannot be read; the message says why."""

    status = 400
    code = "unreadable"


class FileTooLarge(UnreadableFile):
    """The file holds more than one import takes; the message names the limit."""

    status = 413
    code = "too_large"


class Incoming(io.RawIOBase):
    """The file as it arrives, with the size and the hash of the bytes that were read so far.

    `attend` is called again and again while it is read, and may raise an error that ends the reading.
    """

    def __init__(self, stream: IO[bytes], attend: Callable[[], None] = lambda: None) -> None:
        self._stream = cast(Any, stream)
        self.attend = attend
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
    """The decompressed content of a file. Reading past IMPORT_MAX_FILE_BYTES raises FileTooLarge."""

    def __init__(self, source: io.BufferedReader, attend: Callable[[], None] = lambda: None) -> None:
        self._source = source
        self._attend = attend
        self.size = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._attend()
        # A single read of the source: a second one might hit damage, and lose the bytes that the first had returned.
        size = self._source.readinto1(buffer)
        self.size += size
        if self.size > settings.IMPORT_MAX_FILE_BYTES:
            raise FileTooLarge(
                f"the file holds more than {settings.IMPORT_MAX_FILE_BYTES:,} bytes: "
                "split it, or ask the operator to raise IMPORT_MAX_FILE_BYTES"
            )
        return size


class Unzipped(io.RawIOBase):
    """The content of a gzip file up to the very byte where it is damaged. GzipFile alone would lose the block before.

    Raises FileTooLarge for a file that expands more than IMPORT_MAX_GZIP_RATIO-fold, such as a decompression bomb.
    """

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
        # Against the bytes that have arrived: the size of the whole file is not known yet.
        most = max(RATIO_COUNTS_FROM, self._incoming.size * settings.IMPORT_MAX_GZIP_RATIO)
        if self._size > most:
            raise FileTooLarge(
                f"the gzip file expands more than {settings.IMPORT_MAX_GZIP_RATIO}-fold: "
                "send it decompressed, or ask the operator to raise IMPORT_MAX_GZIP_RATIO"
            )
        return len(data)
