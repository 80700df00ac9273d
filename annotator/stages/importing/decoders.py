"""Decodes Parquet, Arrow and Excel in a process with little memory, as a few kB can expand to more than a machine has.

The memory returns to the system when the process ends, and a file that crashes the decoder does not crash the web
process or the worker.
"""

import io
import os
import resource
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGABRT, SIGXCPU
from tempfile import TemporaryFile
from typing import BinaryIO, cast

from django.conf import settings

from annotator.infrastructure.storage import disk_space

PROGRAM = Path(__file__).with_name("decoding_process.py")
WORKBOOK = b"PK\x03\x04"
ENCODED = (b"PAR1", b"ARROW1", b"\xff\xff\xff\xff", WORKBOOK)
"""The first bytes of what is decoded: Parquet, Arrow's file and stream, and a workbook's zip."""
MOST_COLUMNS = 200
MEMORY_BYTES = 160 << 20
"""The decoder may take so much on top of what the interpreter and the library take."""
SECONDS, BYTES_A_SECOND = 60, 100_000
"""A decoder may work for SECONDS, and a second more for each BYTES_A_SECOND of the file. Only Linux counts them."""
FIRST_ROW_SECONDS = 120
"""Within so long its first row has to come, however busy the machine is."""
PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Environment variables for the process. A program that reads strangers' files gets no password or key of ours."""
ALLOCATION = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
"""Settings of the allocator. Arrow's other allocators take more than they need, and give it back late."""
_CHUNK = 4 << 20
_LONGEST_ERROR = 400
_OTHERWISE = "save it as CSV or JSON lines"


class Undecodable(Exception):
    """The file, or the rest of it, cannot be decoded; the message says why."""


@contextmanager
def decoded_lines(source: BinaryIO) -> Iterator[io.BufferedReader]:
    """Yields a stream with a JSON line for each row: an object, a text that says what is wrong, or null.

    Raises:
        Undecodable: The file could not be read to its end; raised after the last row that could be read.
        DiskNearlyFull: The disk has no room for the copy of the file that the decoder needs.
    """
    # These files are read from their ends, so they are copied to where the decoder can seek.
    with TemporaryFile() as file:
        while block := source.read(_CHUNK):
            disk_space.require_room(extra=len(block))
            file.write(block)
        file.seek(0)
        with decoded_file_lines(cast(BinaryIO, file)) as lines:
            yield lines


@contextmanager
def decoded_file_lines(file: BinaryIO) -> Iterator[io.BufferedReader]:
    """Yields the lines of a file on the disk, as `decoded_lines` does of a stream. Raises Undecodable."""
    # Errors go to a file: nobody reads them before the end, and a full pipe would stop the decoder.
    with TemporaryFile() as errors:
        limits = (MEMORY_BYTES, settings.IMPORT_MAX_ROWS, settings.IMPORT_MAX_ROW_BYTES, MOST_COLUMNS)
        # With -P the modules of this folder cannot hide those of the same names that the decoder imports.
        process = subprocess.Popen(
            [sys.executable, "-P", str(PROGRAM), *map(str, limits)],
            stdin=file,
            stdout=subprocess.PIPE,
            stderr=errors,
            env={name: os.environ[name] for name in PASSED_ON if name in os.environ} | ALLOCATION,
        )
        try:
            assert process.stdout is not None
            seconds = SECONDS + os.fstat(file.fileno()).st_size // BYTES_A_SECOND
            if sys.platform == "linux":
                resource.prlimit(process.pid, resource.RLIMIT_CPU, (seconds, seconds + 1))
            with process.stdout:
                waiting = select.poll()
                waiting.register(process.stdout.fileno(), select.POLLIN)
                if not waiting.poll(FIRST_ROW_SECONDS * 1_000):
                    raise Undecodable(f"its first row took longer than {FIRST_ROW_SECONDS} seconds: {_OTHERWISE}")
                yield cast(io.BufferedReader, process.stdout)
            if process.wait():
                errors.seek(0)
                raise Undecodable(_reason(process.returncode, errors.read(_LONGEST_ERROR), seconds))
        finally:
            # Whoever reads the rows may stop early; the decoder would wait for ever to write the next one.
            process.kill()
            process.wait()


def _reason(status: int, message: bytes, seconds: int) -> str:
    """Returns the process's own message, or a general one if it was killed or crashed and left none for people."""
    if status == -SIGABRT:  # Rust ends so when an allocation fails, as ours does beyond the limit
        return f"decoding it takes more than {MEMORY_BYTES:,} bytes of memory: {_OTHERWISE}"
    if status == -SIGXCPU:
        return f"decoding it takes longer than {seconds} seconds, which is much for its size: {_OTHERWISE}"
    if status == 1 and message and not message.startswith((b"Traceback", b"Fatal")):
        return message.decode(errors="replace").strip()
    return "the process that decodes it has crashed"
