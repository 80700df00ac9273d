"""What leaves of preferences, rankings and labels for those who train on pairs; and every layout in every format."""

import csv
import gzip
import io
import json
from datetime import timedelta
from typing import Any

import pyarrow.parquet
import pytest

from annotator.models import NEITHER_VALID, Consensus, Project, Rating, Role, Task
from annotator.outputs.exporting.columns import JSON
from annotator.outputs.exporting.export_rows import ForManagersOnly, export, layouts_for
from annotator.outputs.exporting.file_formats import WriterFailed, encoded
from annotator.outputs.exporting.filters import EVERYTHING, Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.reading import access
from annotator.stages import annotation
from annotator.stages.importing import import_rows
from annotator.stages.review import adjudicate
from rewards.models import Score
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    make_member,
    make_project,
    make_task,
    make_user,
    rate,
    submission,
    task_row,
)
from tests.conftest import Cast
from tests.rewards.scored import make_model

LATER = NOW + timedelta(hours=1)


def exported(project: Project, layout: str, format: str = "jsonl", **options: Any) -> bytes:
    return b"".join(export(project, layout=layout, format=format, **options))


def rows(project: Project, layout: str, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in exported(project, layout, **options).split(b"\n") if line]


def preferred(project: Project, cast: Cast, *strengths: int, level: int | list[int] = 3, **fields: Any) -> Task:
    """A task for whose responses people have these preferences, in the order of the file."""
    Project.objects.update(ask_preference=True)
    task = make_task(project, **fields)
    for number, (user, strength) in enumerate(zip(cast.annotators, strengths, strict=True)):
        held = claimed(project, user)
        seen = -strength if held.response_order == [1, 0] and strength != NEITHER_VALID else strength
        answer = submission(held.task, level, preference=seen, justification=f"Reason {number}.")
        annotation.submit(held.pk, answer, now=NOW)
    return task


def test_a_preference_leaves_as_helpsteer2_published_it(project: Project, cast: Cast) -> None:
    preferred(project, cast, -2, -1, -2, name="one")
    (row,) = rows(project, "preference")
    assert row.pop("split") in {"train", "validation"}
    assert row == {
        "prompt": "What is one?",
        "response_1": "Answer 0 to one.",
        "response_2": "Answer 1 to one.",
        "preference_strength": -2,
        "preference_statement": "Response 1 is better than Response 2",
        "preference_elaboration": "Reason 0.",
        "three_most_similar_preferences": [
            {"statement": "Response 1 is better than Response 2", "elaboration": "Reason 0.", "strength": -2},
            {"statement": "Response 1 is slightly better than Response 2", "elaboration": "Reason 1.", "strength": -1},
            {"statement": "Response 1 is better than Response 2", "elaboration": "Reason 2.", "strength": -2},
        ],
        "all_preferences_unprocessed": [
            {"strength": -2, "justification": "Reason 0."},
            {"strength": -1, "justification": "Reason 1."},
            {"strength": -2, "justification": "Reason 2."},
        ],
    }


@pytest.mark.parametrize("format", ["jsonl", "parquet"])
def test_preferences_come_back_as_they_went(project: Project, cast: Cast, format: str) -> None:
    preferred(project, cast, -2, -1, -2)
    preferred(project, cast, 3, 3, 1)
    copy = make_project("copy")
    back = import_rows(copy, io.BytesIO(exported(project, "preference", format)), now=NOW)
    assert (back.created, back.rejected) == (2, [])
    assert rows(copy, "preference") == rows(project, "preference")


def test_every_prompt_is_on_the_side_where_a_snapshot_puts_it(project: Project) -> None:
    imported(project, *(task_row(f"t-{number}") for number in range(40)))
    Task.objects.update(imported_preference=2)
    sides = [row["split"] for row in rows(project, "preference")]
    assert {"train", "validation"} == set(sides)
    assert sides.count("validation") < 15


def test_helpsteer3_has_the_conversation_as_messages(project: Project, cast: Cast) -> None:
    preferred(project, cast, 2, -100, 2, name="one", metadata={"domain": "code"})
    Consensus.objects.update(preference=2)
    (row,) = rows(project, "helpsteer3")
    assert row == {
        "domain": "code",
        "language": "",
        "context": [{"role": "user", "content": "What is one?"}],
        "response1": "Answer 0 to one.",
        "response2": "Answer 1 to one.",
        "overall_preference": 2,
        "individual_preference": [
            {"score": 2, "reasoning": "Reason 0.", "feedback1": "", "feedback2": ""},
            {"score": 2, "reasoning": "Reason 2.", "feedback1": "", "feedback2": ""},
        ],
    }


def test_pairs_for_trl_have_messages_and_a_margin(project: Project, cast: Cast) -> None:
    preferred(project, cast, 3, 3, 2, name="one")
    (row,) = rows(project, "dpo")
    assert row == {
        "task": "one",
        "prompt": [{"role": "user", "content": "What is one?"}],
        "chosen": [{"role": "assistant", "content": "Answer 1 to one."}],
        "rejected": [{"role": "assistant", "content": "Answer 0 to one."}],
        "margin": 3.0,
        "by": "preference",
    }


def test_labels_tell_apart_what_no_preference_does(project: Project, cast: Cast) -> None:
    make_task(project, "one", responses=3)
    for user in cast.annotators:
        rate(project, user, [1, 4, 1], ranking=None)
    pairs = [(row["chosen"][0]["content"], row["rejected"][0]["content"], row["by"]) for row in rows(project, "dpo")]
    assert pairs == [
        ("Answer 1 to one.", "Answer 0 to one.", "labels"),
        ("Answer 1 to one.", "Answer 2 to one.", "labels"),
    ]
    assert {row["margin"] for row in rows(project, "dpo")} == {3.0}


def test_a_ranking_gives_pairs_by_tiers(project: Project, cast: Cast) -> None:
    task = make_task(project, "one", responses=3)
    first, second, third = (response.pk for response in task.responses.all())
    for user in cast.annotators:
        rate(project, user, ranking=[[third], [first], [second]])

    def number(turn: list[dict[str, str]]) -> str:
        return turn[0]["content"].split()[1]

    pairs = rows(project, "dpo")
    margins = {(number(row["chosen"]), number(row["rejected"])): row["margin"] for row in pairs}
    assert margins == {("2", "0"): 1.0, ("2", "1"): 2.0, ("0", "1"): 1.0}
    (row,) = rows(project, "nemo")
    assert row["context"] == task.conversation
    assert [(one["rank"], number(one["completion"])) for one in row["completions"]] == [
        (0, "2"),
        (1, "0"),
        (2, "1"),
    ]


@pytest.mark.parametrize("layout", ["dpo", "nemo"])
def test_ties_and_dropped_tasks_are_left_out(project: Project, cast: Cast, layout: str) -> None:
    Project.objects.update(allow_ties=True)
    project.refresh_from_db()
    preferred(project, cast, -1, 0, 1, level=[4, 4])
    assert rows(project, layout) == []
    preferred(project, cast, -2, -2, -2)
    assert len(rows(project, layout)) == 1
    Consensus.objects.update(drop_reason="too far apart")
    assert rows(project, layout) == rows(project, "preference") == []


def make_member_if_missing(project: Project, user: Any) -> None:
    if not project.memberships.filter(user=user).exists():
        make_member(project, user)


def test_the_reviewer_s_word_comes_first(project: Project, cast: Cast) -> None:
    task = preferred(project, cast, -2, -2, -2)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, preference=1, reason="slip", by=cast.carol, now=LATER)
    assert [row["preference_strength"] for row in rows(project, "preference")] == [1]
    assert [row["margin"] for row in rows(project, "dpo")] == [1.0]
    assert rows(project, "preference", filters=Filters(since=LATER + timedelta(hours=1))) == []
    assert len(rows(project, "preference", filters=Filters(since=LATER))) == 1


def test_a_task_that_one_is_rating_keeps_its_votes_back(project: Project, cast: Cast) -> None:
    make_task(project)
    for user in cast.annotators[:2]:
        rate(project, user)
    Task.objects.update(imported_preference=1)
    make_member_if_missing(project, cast.carol)
    assert len(rows(project, "preference", by=cast.carol)) == 1
    claimed(project, cast.carol)
    assert rows(project, "preference", by=cast.carol) == []


def test_wide_rows_have_the_responses_side_by_side(project: Project, cast: Cast) -> None:
    make_task(project, "one")
    rate(project, cast.alice, [1, 4])
    (row,) = rows(project, "wide")
    assert (row["task"], row["response_1"], row["helpfulness_1"], row["helpfulness_2"]) == ("one", "1", 1, 4)
    (cells,) = csv.DictReader(io.StringIO(exported(project, "wide", "csv").decode(), newline=""))
    assert (cells["helpfulness_1"], cells["helpfulness_2"]) == ("1", "4")


# Formats ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", [name for name, layout in LAYOUTS.items() if not layout.of_segments])
def test_parquet_holds_what_json_lines_hold(project: Project, cast: Cast, layout: str) -> None:
    for strengths in ((-2, -1, -2), (1, 2, 1)):
        preferred(project, cast, *strengths, level=[1, 4])
    task = make_task(project, responses=3)
    for user in cast.annotators:
        rate(project, user, ranking=[[response.pk] for response in task.responses.all()])
    Rating.objects.filter(scores__helpfulness=1).update(
        feedback="Too short.", edit="More words.", evidence=[["helpfulness", 0, 3, ""]]
    )
    champion, response = make_model(project, is_champion=True), task.responses.all()[0]
    Score.objects.create(reward_model=champion, response=response, scores={"helpfulness": 2.5}, reward=2.5)
    table = pyarrow.parquet.read_table(io.BytesIO(exported(project, layout, "parquet")))
    columns = LAYOUTS[layout].columns(project, Filters(for_manager=True))
    assert [*table.column_names] == [*columns]
    lines = rows(project, layout)
    assert lines
    for packed, line in zip(table.to_pylist(), lines, strict=True):
        for name, value in line.items():
            held = json.loads(packed[name]) if columns[name] == JSON and packed[name] else packed[name]
            assert without_times(held) == without_times(value), name


def without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: without_times(item) for name, item in value.items() if item is not None and not is_time(name)}
    return [without_times(item) for item in value] if isinstance(value, list) else str(value)[:19].replace(" ", "T")


def is_time(name: str) -> bool:
    return name.endswith("_at")


def test_a_packed_file_holds_the_same_and_is_always_the_same(project: Project, cast: Cast) -> None:
    preferred(project, cast, 1, 2, 1)
    for format in ("jsonl", "csv"):
        packed = exported(project, "annotations", format, gzip=True)
        assert gzip.decompress(packed) == exported(project, "annotations", format)
        assert packed == exported(project, "annotations", format, gzip=True)


def test_a_writer_that_ends_early_is_an_error() -> None:
    with pytest.raises(WriterFailed, match="KeyError"):
        list(encoded([{"a": 1}], {"a": "no such type"}, format="parquet"))


def test_nobody_waits_for_a_writer_whose_reader_has_left() -> None:
    stream = encoded(({"a": "x" * 1_000} for _ in range(10_000)), {"a": "text"}, format="parquet")
    next(stream)
    stream.close()  # type: ignore[attr-defined]


# People ----------------------------------------------------------------------------------------------------


def test_scores_are_for_managers(project: Project, cast: Cast) -> None:
    rita = make_user("rita")
    make_member(project, rita, role=Role.REVIEWER)
    assert access.manages(cast.carol, project)
    assert "scores" in layouts_for(project, cast.carol)
    assert "scores" not in layouts_for(project, rita)
    with pytest.raises(ForManagersOnly):
        export(project, layout="scores", format="jsonl", by=rita)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_count_is_the_number_of_rows(project: Project, cast: Cast, layout: str) -> None:
    preferred(project, cast, -2, -1, -2, level=[1, 4])
    task = make_task(project, responses=3)
    for user in cast.annotators:
        rate(project, user, ranking=[[response.pk] for response in task.responses.all()])
    imported(project, task_row("t-9"))
    chosen = [EVERYTHING, Filters(among=[task.pk]), Filters(state="complete"), Filters(since=LATER)]
    for filters in chosen:
        assert LAYOUTS[layout].count(project, filters) == len(rows(project, layout, filters=filters))
