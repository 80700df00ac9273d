"""What a row may hold, and that a refusal names file, line, field and remedy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.judged_rows import NoRows, Row, carve_held_out, read_judged
from rewards.learning.config import parse_config
from rewards.learning.data import BadRow
from tests.rewards.learning.aligning.builders import make_judged_row, make_judged_rows
from tests.rewards.learning.builders import write_jsonl
from tests.servers import ROOT

GOOD = make_judged_row(0, [True, False], [False, False], attributes={"helpfulness": 3})


def read(directory: Path, *rows: dict[str, Any], method: str = "dpo_2d", **config: Any) -> list[Row]:
    settings = AlignConfig(method=method, policy="p", data="d", **config)
    return read_judged(write_jsonl(directory / "rows.jsonl", rows), settings)


def with_segment(**changes: Any) -> dict[str, Any]:
    first, second = GOOD["chosen_segments"]
    return {**GOOD, "chosen_segments": [first, {**second, **changes}]}


def test_a_row_is_read_with_its_segments(tmp_path: Path) -> None:
    (row,) = read(tmp_path, GOOD)
    assert [(s.start, s.end, dict(s.scores)) for s in row.chosen.segments] == [
        (0, 5, {"correctness": 4, "clarity": 3}),
        (5, 8, {"correctness": 0, "clarity": 1}),
    ]


def test_the_documentation_s_own_example_is_accepted(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "aligning.md").read_text(encoding="utf-8")
    config, row = (json.loads(block.split("```")[0]) for block in page.split("```json\n")[1:3])
    weights = parse_config(AlignConfig, config).aspect_weights
    assert [len(r.chosen.segments) for r in read(tmp_path, row, aspect_weights=weights)] == [2]


def test_blanks_between_segments_go_to_the_one_before(tmp_path: Path) -> None:
    first, second = GOOD["chosen_segments"]
    (row,) = read(tmp_path, {**GOOD, "chosen_segments": [{**first, "end": 4}, second]})
    assert [(s.start, s.end) for s in row.chosen.segments] == [(0, 5), (5, 8)]


def test_dpo_reads_no_segments(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {**GOOD, "chosen_segments": "not looked at"}, method="dpo")
    assert row.chosen.segments == ()


def test_fine_tuning_needs_no_rejected_response(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {k: GOOD[k] for k in ("conversation", "chosen")}, method="sft")
    assert row.rejected is None


def test_steerlm_reads_the_levels_of_both_responses(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {**GOOD, "rejected_attributes": {"helpfulness": 0}}, method="steerlm")
    assert row.rejected is not None
    assert (row.chosen.attributes, row.rejected.attributes) == ({"helpfulness": 3}, {"helpfulness": 0})


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"chosen": "a", "rejected": "b"}, "the row lacks conversation"),
        ({**GOOD, "conversation": []}, "conversation must be a list of turns"),
        ({**GOOD, "conversation": ["Hi"]}, r'conversation\[0\] must be an object with role and content, not "Hi"'),
        ({**GOOD, "conversation": [{"role": "user"}]}, r"conversation\[0\] lacks content"),
        ({**GOOD, "conversation": [{"role": "assistant", "content": "a"}]}, "end it with the turn that the responses"),
        ({**GOOD, "chosen": 3}, "chosen must be text, not 3"),
        ({**GOOD, "chosen": " "}, "chosen is empty"),
        ({**GOOD, "rejected": GOOD["chosen"], "rejected_segments": GOOD["chosen_segments"]}, "leave the row out"),
        ({k: v for k, v in GOOD.items() if k != "rejected_segments"}, "the row lacks rejected_segments"),
        ({**GOOD, "chosen_segments": []}, "chosen_segments must be a list of objects"),
        (with_segment(start=4), r"chosen_segments\[1\] begins at 4, before the end 5"),
        (with_segment(start=6), "the characters 5 to 6 are in no segment of chosen_segments"),
        (with_segment(end=9), r"chosen_segments\[1\] is 5 to 9: .* within the 8 characters"),
        (with_segment(end=5), "start must be below end"),
        (with_segment(end=True), r"chosen_segments\[1\].end must be a whole number of characters, not true"),
        (with_segment(scores={}), "scores must be an object with a number for each aspect"),
        (with_segment(scores={"correctness": 5}), r"correctness is 5, not a number from 0 to 4: .* set levels"),
        (
            with_segment(scores={"correctness": 4}),
            "has scores for correctness, but the first row has clarity",
        ),
    ],
)
def test_what_a_row_may_not_hold(row: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadRow, match=f"^rows.jsonl, line 2: .*{says}"):
        read(tmp_path, GOOD, row)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({}, "attributes must be an object with a level for each attribute"),
        ({"helpfulness": 1.5}, "attributes.helpfulness must be a whole number, not 1.5: round it"),
        ({"helpfulness": "4"}, 'attributes.helpfulness is "4", not a number from 0 to 4'),
        ({"verbosity": 1}, "it has the attributes verbosity, but the first row has helpfulness"),
    ],
)
def test_what_levels_may_not_be(attributes: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(BadRow, match=f"line 2: {says}"):
        read(tmp_path, GOOD, {**GOOD, "attributes": attributes}, method="steerlm")


def test_an_aspect_of_the_weights_must_be_scored(tmp_path: Path) -> None:
    with pytest.raises(BadRow, match="scores lacks safety: score every aspect that aspect_weights names"):
        read(tmp_path, GOOD, aspect_weights={"safety": 1.0})


def test_scores_may_go_as_far_as_the_configured_levels(tmp_path: Path) -> None:
    (row,) = read(tmp_path, {**GOOD, "rejected_segments": GOOD["rejected_segments"]}, levels=7)
    assert row.chosen.segments[0].scores["correctness"] == 4


def test_an_empty_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoRows, match="write one JSON object a line"):
        read(tmp_path)


def test_no_prompt_is_on_both_sides(tmp_path: Path) -> None:
    rows = read(tmp_path, *make_judged_rows(20), *make_judged_rows(20, seed=1))
    train, held_out = carve_held_out(rows, 0.2)
    assert {row.prompt for row in held_out}.isdisjoint({row.prompt for row in train})
    assert (len({row.prompt for row in held_out}), len(train) + len(held_out)) == (4, 40)


def test_a_prompt_stays_on_its_side_when_rows_are_repeated(tmp_path: Path) -> None:
    rows = read(tmp_path, *make_judged_rows(20))
    sides = [carve_held_out(given, 0.2)[1] for given in (rows, rows * 2)]
    assert {row.prompt for row in sides[0]} == {row.prompt for row in sides[1]}
