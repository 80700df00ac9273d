"""Reads rows: JSON lines, a JSON list or Parquet, the first two also gzipped; or a data set of the Hugging Face Hub."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from rewards.learning.data import BadRow, MissingFile
from rewards.learning.refusals import Refused

HUB = "hub:"
"""The prefix of a data set's name: `hub:allenai/reward-bench-2`, or with a split, `hub:ScalerLab/JudgeBench@gpt`."""
SPLITS = {
    "allenai/reward-bench": "filtered",
    "allenai/reward-bench-2": "test",
    "THU-KEG/RM-Bench": "train",
    "ScalerLab/JudgeBench": "gpt",
}
GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
Row = dict[str, Any]
Loader = Callable[..., Iterable[Row]]


class NoHub(Refused):
    """The Hub cannot be asked: `datasets` is missing, the Hub is out of reach, or it does not know the name."""


def rows_of(source: str, *, load: Loader | None = None) -> list[Row]:
    """Returns all rows of a file, or of a data set of the Hub.

    Raises:
        MissingFile, BadRow: the file is absent, or cannot be read.
        NoHub: the Hub cannot be asked.
    """
    if source.startswith(HUB):
        return _from_hub(source.removeprefix(HUB), load or _loader())
    path = Path(source)
    if not path.is_file():
        raise MissingFile(f"there is no {path}")
    data = path.read_bytes()
    if data.startswith(PARQUET):
        return _parquet(path)
    if data.startswith(GZIP):
        data = gzip.decompress(data)
    if data.lstrip().startswith(b"["):
        return list(_objects(path.name, enumerate(_parsed(path.name, 1, data), start=1)))
    lines = ((number, line) for number, line in enumerate(data.splitlines(), start=1) if line.strip())
    return list(_objects(path.name, ((number, _parsed(path.name, number, line)) for number, line in lines)))


def data_hash(source: str, rows: Iterable[Row]) -> str:
    """Returns the sha256 of the file's bytes or, for a data set of the Hub, of its rows."""
    if not source.startswith(HUB):
        with Path(source).open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    digest = hashlib.sha256()
    for row in rows:
        digest.update(json.dumps(row, sort_keys=True, default=str).encode())
    return digest.hexdigest()


def _parsed(name: str, number: int, data: bytes) -> Any:
    try:
        return json.loads(data)
    except ValueError:
        raise BadRow(f"{name}, line {number}: not JSON in UTF-8") from None


def _objects(name: str, values: Iterable[tuple[int, Any]]) -> Iterator[Row]:
    for number, value in values:
        if not isinstance(value, dict):
            raise BadRow(f"{name}, row {number}: not a JSON object")
        yield value


def _parquet(path: Path) -> list[Row]:
    import pyarrow
    from pyarrow import parquet

    try:
        rows: list[Row] = parquet.read_table(path).to_pylist()
    except pyarrow.ArrowInvalid as error:
        raise BadRow(f"{path.name} is no Parquet file that can be read: {error}") from None
    return rows


def _loader() -> Loader:
    try:
        from datasets import load_dataset
    except ImportError:
        raise NoHub(
            "reading from the Hub needs the package datasets (pip install datasets); or download the file and name that"
        ) from None
    loader: Loader = load_dataset
    return loader


def _from_hub(name: str, load: Loader) -> list[Row]:
    name, _, split = name.partition("@")
    try:
        rows = load(name, split=split or SPLITS.get(name, "test"))
    except (OSError, ValueError) as error:
        # What `datasets` raises offline is an OSError, for an unknown name or split one of these.
        raise NoHub(f"the Hub did not give {name}: {error}; download the file and name that instead") from None
    return [dict(row) for row in rows]
