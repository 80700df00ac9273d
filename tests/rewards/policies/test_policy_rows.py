"""What an alignment learns from: rows made of a snapshot's train part."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rewards.learning.aligning.align_config import AlignConfig
from rewards.learning.aligning.judged_rows import read_judged
from rewards.policies.rows import TIES, UNSCORED, UNUSABLE, Counts, Row, rows_of, wanted, write_rows
from tests.rewards.policies.snapshots import ASPECTS, ATTRIBUTES, in_segments, judged_task, make_response, make_task

WEIGHTS = {"helpfulness": 1.0, "verbosity": -0.5}


def made(tmp_path: Path, tasks: Sequence[Row], method: str = "dpo", **wishes: Any) -> tuple[list[Row], Counts]:
    """The rows of a train file, as the alignment accepts them, and the counts."""
    (tmp_path / "train.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))
    manifest = {"attributes": list(ATTRIBUTES), "aspects": list(ASPECTS), **wishes.pop("manifest", {})}
    train, aspect_weights = tmp_path / "train.jsonl", wishes.pop("aspect_weights", {})
    want = wanted(manifest, train, method=method, weights=WEIGHTS, aspect_weights=aspect_weights)
    counts = Counts()
    write_rows(tmp_path / "rows.jsonl", rows_of(train, want, counts))
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    if rows:
        read_judged(tmp_path / "rows.jsonl", AlignConfig(method, "p", "d", levels=want.levels))
    return rows, counts


def rated(*scores: tuple[float, float], **more: Any) -> Row:
    """A task whose responses a, b, c ... have these scores."""
    pairs = zip("abcdef", scores, strict=False)
    return make_task(
        1,
        [make_response(n, text, dict(zip(ATTRIBUTES, own, strict=True))) for n, (text, own) in enumerate(pairs)],
        **more,
    )


def chosen_and_rejected(rows: Sequence[Row]) -> list[tuple[str, str]]:
    return [(row["chosen"], row["rejected"]) for row in rows]


def test_the_best_response_meets_the_worst_by_the_weighted_attributes(tmp_path: Path) -> None:
    """a: 3 - 1 = 2, b: 4 - 0.5 = 3.5, c: 2 - 2 = 0."""
    rows, counts = made(tmp_path, [rated((3, 2), (4, 1), (2, 4))])
    assert chosen_and_rejected(rows) == [("b", "c")]
    assert (counts.tasks, counts.rows) == (1, 1)


@pytest.mark.parametrize("method", ["dpo", "steerlm"])
def test_an_attribute_that_nobody_has_rated_by_yet_hinders_nothing(tmp_path: Path, method: str) -> None:
    rows, counts = made(tmp_path, [rated((3, 2), (1, 1))], method, manifest={"attributes": [*ATTRIBUTES, "style"]})
    assert chosen_and_rejected(rows) == [("a", "b")]
    assert not counts.left_out


def test_a_preference_goes_before_the_attributes(tmp_path: Path) -> None:
    rows, _counts = made(tmp_path, [rated((4, 0), (0, 0), preference=2)])
    assert chosen_and_rejected(rows) == [("b", "a")]


def test_a_ranking_gives_the_two_that_are_furthest_apart(tmp_path: Path) -> None:
    """c before b before a, whatever their scores are."""
    rows, _counts = made(tmp_path, [rated((4, 0), (3, 0), (0, 0), pairs=[[2, 1], [2, 0], [1, 0]])])
    assert chosen_and_rejected(rows) == [("c", "a")]


@pytest.mark.parametrize("task", [rated((2, 2), (2, 2)), rated((4, 0), (0, 0), preference=0), rated((2, 2))])
def test_ties_are_left_out(tmp_path: Path, task: Row) -> None:
    rows, counts = made(tmp_path, [task])
    assert (rows, counts.left_out) == ([], {TIES: 1})


def test_equal_texts_are_no_pair(tmp_path: Path) -> None:
    task = make_task(1, [make_response(n, "same", {"helpfulness": n, "verbosity": 0}) for n in (0, 4)])
    assert made(tmp_path, [task])[1].left_out == {TIES: 1}


def test_a_conversation_that_ends_with_an_answer_is_left_out(tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Hello."}]
    rows, counts = made(tmp_path, [rated((4, 0), (0, 0), conversation=turns), rated((4, 0), (0, 0))])
    assert (len(rows), counts.left_out) == (1, {UNUSABLE: 1})


def test_segments_come_with_the_score_of_each_aspect(tmp_path: Path) -> None:
    rows, _counts = made(tmp_path, [judged_task(1)], "dpo_2d")
    assert rows[0]["chosen_segments"] == [
        {"start": 0, "end": 5, "scores": {"correctness": 4, "clarity": 3}},
        {"start": 5, "end": 9, "scores": {"correctness": 4, "clarity": 4}},
    ]


def by_segments(*sides: Row) -> Row:
    """A task that has no other judgement."""
    return make_task(1, [make_response(n, side["text"], {}) | side for n, side in enumerate(sides)])


def test_segments_alone_say_which_response_is_better(tmp_path: Path) -> None:
    good, bad = in_segments(("yes", (4, 4))), in_segments(("no", (1, 0)))
    rows, _counts = made(tmp_path, [by_segments(bad, good)], "dpo_1d")
    assert chosen_and_rejected(rows) == [("yes", "no")]


def test_an_aspect_without_a_score_does_not_count_in_its_segment(tmp_path: Path) -> None:
    """Clarity gets the mean of what is known, so that the weighted mean is that of what is known."""
    good, bad = in_segments(("yes", (4, None))), in_segments(("no", (1, 0)))
    rows, _counts = made(tmp_path, [by_segments(good, bad)], "dpo_2d", aspect_weights={"correctness": 2, "clarity": 1})
    assert rows[0]["chosen_segments"][0]["scores"] == {"correctness": 4, "clarity": 4}


def test_a_pair_with_a_segment_that_nobody_scored_is_left_out(tmp_path: Path) -> None:
    good, bad = in_segments(("yes ", (4, 4)), ("sir", (None, None))), in_segments(("no", (1, 0)))
    rows, counts = made(tmp_path, [by_segments(good, bad)], "dpo_2d")
    assert (rows, counts.left_out) == ([], {UNSCORED: 1})


def test_scores_of_shorter_scales_are_stretched_to_the_longest(tmp_path: Path) -> None:
    """Of clarity's two levels the upper one is as high as the highest of correctness."""
    good, bad = in_segments(("yes", (3, 1))), in_segments(("no", (0, 0)))
    manifest = {"levels": {"clarity": 2}}
    rows, _counts = made(tmp_path, [by_segments(good, bad)], "dpo_2d", manifest=manifest)
    assert rows[0]["chosen_segments"][0]["scores"] == {"correctness": 3, "clarity": 4}


def test_steerlm_learns_every_response_under_its_levels(tmp_path: Path) -> None:
    """The best and the worst come together, the one in between alone; without labels, means are rounded."""
    task = rated((3, 2), (4, 1), (0, 4))
    task["responses"][1] |= {"labels": {}, "scores": {"helpfulness": 3.6, "verbosity": 0.9}}
    rows, _counts = made(tmp_path, [task], "steerlm")
    assert [(row["chosen"], row["attributes"]) for row in rows] == [
        ("b", {"helpfulness": 4, "verbosity": 1}),
        ("a", {"helpfulness": 3, "verbosity": 2}),
    ]
    assert (rows[0]["rejected"], rows[0]["rejected_attributes"]) == ("c", {"helpfulness": 0, "verbosity": 4})


def test_steerlm_leaves_out_what_lacks_an_attribute(tmp_path: Path) -> None:
    task = make_task(1, [make_response(1, "a", {"helpfulness": 4})])
    assert made(tmp_path, [task, rated((1, 2), (3, 4))], "steerlm")[1].left_out == {UNSCORED: 1}


def test_imitation_needs_no_text_of_the_worse_response(tmp_path: Path) -> None:
    task = make_task(
        1, [make_response(n, text, {"helpfulness": n, "verbosity": 0}) for n, text in ((4, "a"), (0, " "))]
    )
    rows, _counts = made(tmp_path, [task], "sft")
    assert (rows[0]["chosen"], "rejected" in rows[0]) == ("a", False)
    assert made(tmp_path, [task], "dpo")[1].left_out == {UNUSABLE: 1}


def test_the_same_snapshot_gives_the_same_bytes(tmp_path: Path) -> None:
    """So a run that goes on finds the checkpoint of the rows that it had."""
    tasks = [judged_task(number) for number in range(4)]
    texts = []
    for _ in range(2):
        made(tmp_path, tasks, "dpo_2d")
        texts.append((tmp_path / "rows.jsonl").read_bytes())
    assert texts[0] == texts[1]
