from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rewards.learning.data import BadManifest, BadRow, EmptyPart, OneClass, read_items, read_snapshot, read_tasks
from rewards.learning.segments import mean_scores, token_ranges
from tests.rewards.learning.builders import make_response, make_row, make_rows, write_jsonl
from tests.rewards.learning.segment_builders import ASPECTS, make_segmented_rows, make_segmented_snapshot

SCALES = dict.fromkeys(ASPECTS, 5)


def read(tmp_path: Path, **fields: Any) -> Any:
    response = make_response("r", "Bad. Good. ", {"helpfulness": 1}) | fields
    rows = write_jsonl(tmp_path / "train.jsonl", [make_row(1, responses=[response])])
    return next(read_tasks(rows, aspects=SCALES)).responses[0].segments


def test_segments_are_read_with_the_scores_that_they_have(tmp_path: Path) -> None:
    segments = read(tmp_path, segments=[[0, 5], [5, 11]], segment_scores=[[1.5, None], [4, 0]])
    assert [(s.start, s.end, s.scores) for s in segments] == [
        (0, 5, {"correctness": 1.5}),
        (5, 11, {"correctness": 4.0, "clarity": 0.0}),
    ]


@pytest.mark.parametrize(
    ("ranges", "said"),
    [
        ([[0, 5], [4, 11]], r"segments: \[4, 11\] overlaps what ends at 5\. Let each range begin where"),
        ([[0, 5], [6, 11]], r"segments: \[6, 11\] leaves a gap after what ends at 5"),
        ([[1, 11]], r"\[1, 11\] leaves a gap after what ends at 0"),
        ([[0, 5], [5, 5], [5, 11]], r"\[5, 5\] is empty\. Leave it out"),
        ([[0, 12]], r"segments end at 12, but the text has 11 code points"),
        ([[0, 5]], r"segments end at 5, but the text has 11"),
        ([[0, 5.0], [5, 11]], r"segments must be a list of \[start, end\]"),
        ("0-11", r"segments must be a list of \[start, end\]"),
    ],
)
def test_ranges_that_do_not_divide_the_text_are_refused(tmp_path: Path, ranges: Any, said: str) -> None:
    with pytest.raises(BadRow, match=rf"train\.jsonl, line 1: response r: .*{said}"):
        read(tmp_path, segments=ranges, segment_scores=[[1, 1]] * len(ranges))


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ([[1, 1]], "segment_scores must be a list with one list for each of the 2 segments"),
        ([[1, 1], [1]], r"segment_scores: \[1\] does not hold a number or null for each of correctness, clarity"),
        ([[1, 1], [1, 5]], "segment_scores: clarity is 5, not a number from 0 to 4"),
        ([[1, 1], [True, 1]], "segment_scores: correctness is true"),
    ],
)
def test_scores_that_do_not_fit_the_segments_are_refused(tmp_path: Path, scores: Any, said: str) -> None:
    with pytest.raises(BadRow, match=f"line 1: response r: {said}"):
        read(tmp_path, segments=[[0, 5], [5, 11]], segment_scores=scores)


def test_segments_without_scores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRow, match="line 1: lacks 'segment_scores'"):
        read(tmp_path, segments=[[0, 11]])


def test_ranges_count_code_points(tmp_path: Path) -> None:
    items = [{"id": "a", "conversation": [{"role": "user", "content": "?"}], "response": "好的。👍🏽"}]
    path = write_jsonl(tmp_path / "items.jsonl", [{**items[0], "segments": [[0, 3], [3, 5]]}])
    assert next(read_items(path)).segments == ((0, 3), (3, 5))


def test_an_item_whose_segments_do_not_divide_it_is_refused(tmp_path: Path) -> None:
    item = {"id": "a", "conversation": [{"role": "user", "content": "?"}], "response": "ab", "segments": [[0, 3]]}
    with pytest.raises(BadRow, match=r"items\.jsonl, line 1: segments end at 3, but the text has 2"):
        list(read_items(write_jsonl(tmp_path / "items.jsonl", [item])))


def test_the_levels_of_aspects_stand_with_those_of_attributes(tmp_path: Path) -> None:
    rows = make_segmented_rows(4)
    snapshot = make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:], levels={"clarity": 3})
    with pytest.raises(BadRow, match=r"clarity is 4\.0, not a number from 0 to 2"):
        read_snapshot(snapshot)


def test_an_aspect_that_nobody_has_scored_is_left_out_and_named(tmp_path: Path) -> None:
    rows = make_segmented_rows(4)
    for response in [response for row in rows for response in row["responses"]]:
        response["segment_scores"] = [[first, None] for first, _ in response["segment_scores"]]
    snapshot = read_snapshot(make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:]))
    assert (snapshot.aspects, snapshot.unscored) == (("correctness",), ("clarity",))


@pytest.mark.parametrize("attributes", [[], ["helpfulness", "verbosity"]])
def test_where_only_segments_are_scored_responses_get_their_means(tmp_path: Path, attributes: list[str]) -> None:
    rows = make_segmented_rows(4, with_attributes=False)
    made = make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:], attributes=attributes)
    snapshot = read_snapshot(made)
    response = snapshot.train[0].responses[0]
    assert (snapshot.attributes, snapshot.by_segments) == (ASPECTS, True)
    assert response.scores == mean_scores(response.segments)


@pytest.mark.parametrize("scored", [True, False])
def test_aspects_are_learnt_from_comparisons_too_where_there_is_no_attribute(tmp_path: Path, scored: bool) -> None:
    rows = make_segmented_rows(4, with_attributes=False)
    for row in rows:
        row["preference"], row["pairs"] = -2, [[0, 1]]
        for response in row["responses"] if not scored else ():
            del response["segments"], response["segment_scores"]
    made = make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:], attributes=[])
    snapshot = read_snapshot(made)
    assert (snapshot.attributes, snapshot.aspects) == (ASPECTS, ASPECTS if scored else ())
    assert [(task.preference, task.pairs) for task in snapshot.train] == [(-2, ((0, 1),))] * 3
    assert bool(snapshot.train[0].responses[0].scores) == scored


def test_a_manifest_needs_attributes_or_aspects(tmp_path: Path) -> None:
    rows = make_segmented_rows(4)
    made = make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:], attributes=[], aspects=[])
    with pytest.raises(BadManifest, match="lacks attributes"):
        read_snapshot(made)


@pytest.mark.parametrize("aspects", [["clarity", "clarity"], [1], "clarity"])
def test_aspects_are_a_list_of_different_names(tmp_path: Path, aspects: Any) -> None:
    rows = make_segmented_rows(4)
    made = make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:])
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    (made / "manifest.json").write_text(json.dumps({**manifest, "aspects": aspects}), encoding="utf-8")
    with pytest.raises(BadManifest, match="aspects must be a list of different names"):
        read_snapshot(made)


def test_segments_that_are_all_alike_tell_nothing_apart(tmp_path: Path) -> None:
    rows = make_segmented_rows(4, with_attributes=False)
    for response in [response for row in rows for response in row["responses"]]:
        response["segment_scores"] = [[2, 2]] * len(response["segments"])
    with pytest.raises(OneClass, match="the same labels"):
        read_snapshot(make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:]))


def test_held_out_rows_without_any_score_are_refused(tmp_path: Path) -> None:
    rows = make_segmented_rows(3, with_attributes=False)
    empty = {**make_rows(9)[8], "responses": [make_response("r", "text", {})]}
    with pytest.raises(EmptyPart, match="validation"):
        read_snapshot(make_segmented_snapshot(tmp_path, train=rows, validation=[empty]))


def test_a_snapshot_without_aspects_is_read_as_before(tmp_path: Path) -> None:
    rows = make_segmented_rows(4)
    snapshot = read_snapshot(make_segmented_snapshot(tmp_path, train=rows[:3], validation=rows[3:], aspects=[]))
    assert not snapshot.aspects
    assert not any(response.segments for task in snapshot.train for response in task.responses)


# Tokens ----------------------------------------------------------------------------------------------------


def test_a_token_on_a_boundary_goes_to_the_larger_part() -> None:
    segments = [(0, 4), (4, 9)]
    assert token_ranges([(0, 3), (3, 7), (7, 9)], segments, first=10) == ((10, 11), (11, 13))
    assert token_ranges([(0, 1), (1, 5), (5, 9)], segments, first=10) == ((10, 12), (12, 13))


def test_of_two_equal_parts_the_earlier_segment_has_the_token() -> None:
    assert token_ranges([(0, 2), (2, 6), (6, 8)], [(0, 4), (4, 8)], first=0) == ((0, 2), (2, 3))


def test_a_segment_within_a_token_of_others_owns_none() -> None:
    assert token_ranges([(0, 3), (3, 8)], [(0, 4), (4, 5), (5, 8)], first=0) == ((0, 1), (0, 0), (1, 2))


def test_tokens_of_one_character_go_where_it_belongs() -> None:
    """A byte-level tokenizer cuts an emoji into several tokens, which all hold the same character."""
    assert token_ranges([(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)], [(0, 1), (1, 2), (2, 3)], first=0) == (
        (0, 1),
        (1, 4),
        (4, 5),
    )


def test_what_ends_the_turn_belongs_to_no_segment() -> None:
    assert token_ranges([(0, 2), (2, 6)], [(0, 2)], first=5) == ((5, 6),)
    assert json.dumps(token_ranges([], [(0, 2)], first=5)) == "[[0, 0]]"
