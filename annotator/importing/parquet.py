"""Decodes Parquet in a process of its own with little memory, as a few kB can expand to more than a machine has.

The memory returns to the system when the process ends, and a file that crashes the decoder does not crash the web
process or the worker.
"""

import io
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from django.conf import settings

from annotator.storage import disk_space

PROCESS = Path(__file__).with_name("parquet_process.py")
MEMORY_BYTES = 160 << 20
"""The decoder may take so much on top of what the interpreter and the library take."""
PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables for the process. A program that reads strangers' files gets no password or key of ours."""
ALLOCATION = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
"""Settings of the allocator. Arrow's other allocators take more than they need, and give it back late."""
_CHUNK = 4 << 20
_LONGEST_ERROR = 400


class UnreadableParquet(Exception):
    """The file, or the rest of it, cannot be decoded; the message says why."""


@contextmanager
def parquet_lines(source: BinaryIO) -> Iterator[io.BufferedReader]:
    """Yields a stream with a JSON line for each row: an object, or a text where JSON cannot hold the row.

    Raises:
        UnreadableParquet: The file could not be read to its end; raised after the last row that could be read.
        DiskNearlyFull: The disk has no room for the copy of the file that the decoder needs.
    """
    # A Parquet file is read from its end, so it is copied to where the decoder can seek.
    with TemporaryFile() as file:
        while block := source.read(_CHUNK):
            disk_space.require_room(extra=len(block))
            file.write(block)
        file.seek(0)
        with parquet_file_lines(cast(BinaryIO, file)) as lines:
            yield lines


@contextmanager
def parquet_file_lines(file: BinaryIO) -> Iterator[io.BufferedReader]:
    """Yields the lines of a file on the disk, as `parquet_lines` does of a stream. Raises UnreadableParquet."""
    # Errors go to a file: nobody reads them before the end, and a full pipe would stop the decoder.
    with TemporaryFile() as errors:
        limits = (MEMORY_BYTES, settings.IMPORT_MAX_ROWS, settings.IMPORT_MAX_ROW_BYTES)
        # With -P the modules of this folder cannot hide those of the same names that the decoder imports.
        process = subprocess.Popen(
            [sys.executable, "-P", str(PROCESS), *map(str, limits)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ} | ALLOCATION,
        )
        try:
            assert process.stdout is not None
            with process.stdout:
                yield cast(io.BufferedReader, process.stdout)
            if process.wait():
                errors.seek(0)
                raise UnreadableParquet(_reason(process.returncode, errors.read(_LONGEST_ERROR)))
        finally:
            # Whoever reads the rows may stop early; the decoder would wait for ever to write the next one.
            process.kill()
            process.wait()


def _reason(status: int, message: bytes) -> str:
    """Returns the process's own message, or a general one if it was killed or crashed and left none for people."""
    if status == 1 and message and not message.startswith((b"Traceback", b"Fatal")):
        return message.decode(errors="replace").strip()
    return "the process that decodes it has crashed"
