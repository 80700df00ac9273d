"""Where rows come from, and which format they are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from rewards.learning.benchmarks import UnknownFormat, cases_of, recognise
from rewards.learning.benchmarks.benchmark_rows import NoHub, data_hash, rows_of
from rewards.learning.data import BadRow, EmptyPart, MissingFile
from tests.rewards.learning.benchmarks.builders import Row, best_of_four_row, labelled_row, pair_row, styles_row
from tests.rewards.learning.builders import make_rows, write_jsonl
from tests.shared_data import needs_shared, shared

FORMATS = {
    "RewardBench": pair_row(),
    "RewardBench 2": best_of_four_row(),
    "RM-Bench": styles_row(),
    "JudgeBench": labelled_row(),
    "preference pairs": pair_row("from elsewhere"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_told_by_its_columns(name: str) -> None:
    recognised = recognise("rows", [FORMATS[name]])
    assert recognised is not None
    assert recognised.name == name


@pytest.mark.parametrize("name", FORMATS)
def test_what_parquet_adds_for_other_rows_does_not_hide_a_format(name: str, tmp_path: Path) -> None:
    parquet.write_table(pa.Table.from_pylist([FORMATS[name]]), tmp_path / "rows.parquet")
    rows = rows_of(str(tmp_path / "rows.parquet"))
    assert rows == [FORMATS[name]]
    assert recognise("rows", rows)


def test_rows_of_a_snapshot_are_none_of_the_benchmarks() -> None:
    assert recognise("rows", make_rows(1)) is None


def test_unknown_columns_are_told_with_the_known_formats() -> None:
    with pytest.raises(UnknownFormat, match=r"columns answer, question.*RewardBench 2: id, prompt.*JudgeBench"):
        recognise("rows.jsonl", [{"question": "Why?", "answer": "So."}])


def test_no_rows_are_refused() -> None:
    with pytest.raises(EmptyPart, match="holds no rows"):
        recognise("rows.jsonl", [])


def test_lines_lists_and_gzip_are_read_alike(tmp_path: Path) -> None:
    rows = [pair_row(), pair_row(id="2")]
    lines = write_jsonl(tmp_path / "rows.jsonl", rows).read_bytes()
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(lines))
    (tmp_path / "rows.json").write_text(json.dumps(rows, indent=2), encoding="utf-8")
    assert all(rows_of(str(path)) == rows for path in tmp_path.iterdir())


def test_a_broken_line_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"a": 1}\n{"a": \n', encoding="utf-8")
    with pytest.raises(BadRow, match=r"rows\.jsonl, line 2"):
        rows_of(str(tmp_path / "rows.jsonl"))


def test_a_row_that_does_not_fit_is_named() -> None:
    rows = [pair_row(), pair_row(rejected=None)]
    recognised = recognise("rows", rows)
    assert recognised is not None
    with pytest.raises(BadRow, match="rows, row 2: 'None' is not a text"):
        cases_of("rows", rows, recognised)


def test_a_file_that_is_not_there_is_said_so() -> None:
    with pytest.raises(MissingFile):
        rows_of("/nowhere/rows.jsonl")


def test_a_data_set_of_the_hub_is_asked_for_its_published_split() -> None:
    asked = []

    def load(name: str, *, split: str) -> Iterable[Row]:
        asked.append((name, split))
        return [pair_row()]

    assert rows_of("hub:allenai/reward-bench", load=load) == [pair_row()]
    rows_of("hub:ScalerLab/JudgeBench@claude", load=load)
    assert asked == [("allenai/reward-bench", "filtered"), ("ScalerLab/JudgeBench", "claude")]


def test_offline_the_hub_is_a_sentence() -> None:
    def load(name: str, **_: Any) -> Iterable[Row]:
        raise ConnectionError("offline mode is enabled")

    with pytest.raises(NoHub, match="offline mode is enabled; download the file"):
        rows_of("hub:allenai/reward-bench", load=load)


def test_without_the_library_the_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "datasets", None)
    with pytest.raises(NoHub, match=r"pip install datasets.*download the file"):
        rows_of("hub:allenai/reward-bench")


def test_the_same_rows_of_the_hub_have_the_same_hash() -> None:
    assert data_hash("hub:a", [pair_row()]) == data_hash("hub:b", [pair_row()])
    assert data_hash("hub:a", [pair_row()]) != data_hash("hub:a", [pair_row(id="2")])


@needs_shared("rewardbench_rows.jsonl")
def test_real_rows_of_rewardbench_are_recognised() -> None:
    rows = rows_of(str(shared("rewardbench_rows.jsonl")))
    recognised = recognise("rows", rows)
    assert recognised is not None
    groups = [case.group for case in cases_of("rows", rows, recognised)]
    assert {name: groups.count(name) for name in groups} == {
        "llmbar-natural": 100,
        "llmbar-adver-GPTInst": 92,
        "llmbar-adver-GPTOut": 47,
    }
