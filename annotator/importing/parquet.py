"""Parquet, decoded in a process of its own with little memory: a few kB can stand for more than a machine has.

What the process takes goes back when it ends, and a file that makes the decoder crash does not take us with it.
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
"""Beside what the interpreter and the library take."""
PASSED_ON = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")
"""Of the environment: no password or key of ours reaches a program that reads what strangers wrote."""
ALLOCATION = {"ARROW_DEFAULT_MEMORY_POOL": "system", "MALLOC_ARENA_MAX": "1", "OMP_NUM_THREADS": "1"}
"""Arrow's other allocators take more than is asked for, and give it back late."""
_CHUNK = 4 << 20
_LONGEST_ERROR = 400


class UnreadableParquet(Exception):
    """The file, or the rest of it, cannot be decoded; the message says why."""


@contextmanager
def parquet_lines(source: BinaryIO) -> Iterator[io.BufferedReader]:
    """A JSON line for each row of the file: an object, or a text where the row cannot be told in JSON.

    Raises:
        UnreadableParquet: at the end, where the file was not read whole.
        DiskNearlyFull: there is no room for a copy of the file, which the decoder needs.
    """
    with TemporaryFile() as file, TemporaryFile() as errors:
        while block := source.read(_CHUNK):
            disk_space.require_room(extra=len(block))
            file.write(block)
        file.seek(0)
        limits = (MEMORY_BYTES, settings.IMPORT_MAX_ROWS, settings.IMPORT_MAX_ROW_BYTES)
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
            process.kill()
            process.wait()


def _reason(status: int, said: bytes) -> str:
    """What the process said before it ended; one that was killed or has crashed says nothing for people."""
    if status == 1 and said and not said.startswith((b"Traceback", b"Fatal")):
        return said.decode(errors="replace").strip()
    return "the process that decodes it has crashed"
