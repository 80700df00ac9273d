"""Segments leave: by rater, by label, as lists and as steps, in every format; and go into snapshots."""

import csv
import io
import json
from datetime import datetime
from typing import Any

import pytest
from pyarrow import parquet

from annotator.models import Project, Rating, Response, User
from annotator.outputs.exporting.export_rows import layouts_for
from annotator.outputs.exporting.file_formats import encoded
from annotator.outputs.exporting.filters import EVERYTHING, Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from rewards.learning.data import read_snapshot
from rewards.snapshots import take
from tests.annotator.segmented import ASPECTS, TEXT, make_segmented_project, make_segmented_task, rate_segments
from tests.builders import NOW, make_member, make_project, make_user, pseudonym

RATINGS = ((4, 1, None), (3, 1, None), (4, 2, 2))


@pytest.fixture
def raters(db: None) -> list[User]:
    project = make_segmented_project(validation_share=0.5)
    make_segmented_task(project, "t1")
    users = [make_user(name) for name in ("alice", "bob", "erin")]
    for user, levels in zip(users, RATINGS, strict=True):
        make_member(project, user)
        rate_segments(project, user, levels)
    return users


def rows(layout: str) -> list[dict[str, Any]]:
    project = Project.objects.get()
    return list(LAYOUTS[layout].rows(project, Filters(), project.tasks.none()))


def count(layout: str) -> int:
    return LAYOUTS[layout].count(Project.objects.get(), Filters())


def test_a_row_for_each_segment_and_rater_and_for_each_label(raters: list[User]) -> None:
    written = rows("segments")
    assert len(written) == count("segments") == 3 * 4 + 4
    first = next(row for row in written if row["annotator"] == pseudonym(raters[0], Project.objects.get()))
    assert {name: first[name] for name in ("task", "response", "segment", "start", "end", "text", "source")} == {
        "task": "t1",
        "response": "t1-0",
        "segment": 0,
        "start": 0,
        "end": 10,
        "text": "It rains. ",
        "source": "rating",
    }
    assert first["scores"] == dict.fromkeys(ASPECTS, 4)
    last_label = [row for row in written if row["source"] == "consensus" and row["response"] == "t1-0"][2]
    assert (last_label["text"], last_label["annotator"]) == ("It ends.", None)
    assert last_label["scores"] == dict.fromkeys(ASPECTS)
    second = [row for row in written if row["source"] == "consensus"][1]
    assert second["means"] == {f"{aspect}_mean": pytest.approx(4 / 3) for aspect in ASPECTS}


def test_a_row_for_each_response_with_lists(raters: list[User]) -> None:
    written = rows("helpsteer2d")
    assert len(written) == count("helpsteer2d") == 2
    assert written[0]["segments"] == ["It rains. ", "It pours. ", "It ends."]
    assert "".join(written[0]["segments"]) == written[0]["response"] == TEXT
    assert written[0]["ranges"] == [[0, 10], [10, 20], [20, 28]]
    assert written[0]["clarity"] == [4, 1, None]


def test_steps_are_good_from_the_middle_of_the_scale(raters: list[User]) -> None:
    written = rows("stepwise")
    assert [row["labels"] for row in written] == [[True]]  # the other response has a segment without a score
    assert written[0]["completions"] == ["One."]


def plain(value: Any) -> Any:
    """Without what Parquet adds: absent cells of a structure as null, moments, JSON as text."""
    if isinstance(value, dict):
        return {name: cell for name, inner in value.items() if (cell := plain(inner)) not in (None, {}, "{}")}
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    return [plain(inner) for inner in value] if isinstance(value, list) else value


@pytest.mark.parametrize("layout", ["segments", "helpsteer2d", "stepwise", "annotations"])
@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_every_format(raters: list[User], layout: str, format: str) -> None:
    project = Project.objects.get()
    content = b"".join(encoded(rows(layout), LAYOUTS[layout].columns(project, EVERYTHING), format=format))
    if format == "jsonl":
        assert [json.loads(line) for line in content.splitlines()] == rows(layout)
    elif format == "csv":
        assert len(list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"))))) == len(rows(layout))
    else:
        assert plain(parquet.read_table(io.BytesIO(content)).to_pylist()) == plain(rows(layout))


def test_annotations_carry_the_segments_of_their_rater(raters: list[User]) -> None:
    Rating.objects.filter(response__external_id="t1-0").update(comments=[[3, 8, "Does it?"]])
    row = rows("annotations")[0]
    assert row["segments"] == [[0, 10], [10, 20], [20, 28]]
    assert row["aspects"] == list(ASPECTS)
    assert row["segment_scores"] == [[4] * 5, [1] * 5, [None] * 5]
    assert row["comments"] == [{"start": 3, "end": 8, "text": "Does it?"}]


def test_no_layout_of_segments_names_a_person(raters: list[User]) -> None:
    for layout in ("segments", "helpsteer2d", "stepwise"):
        assert not any(user.username in str(rows(layout)) for user in raters)


def test_a_project_of_whole_responses_is_offered_no_layout_of_segments(raters: list[User]) -> None:
    boss = make_user("boss", is_superuser=True)
    assert "segments" in layouts_for(Project.objects.get(), boss)
    assert "segments" not in layouts_for(make_project("plain"), boss)


def test_positions_count_characters_beyond_the_basic_plane(db: None) -> None:
    project = make_segmented_project()
    text = "\U0001f35a is rice. Boil it!"
    make_segmented_task(project, "t1", text)
    for name in ("alice", "bob", "erin"):
        user = make_user(name)
        make_member(project, user)
        rate_segments(project, user, (4, 0))
    assert rows("helpsteer2d")[0]["segments"] == ["\U0001f35a is rice. ", "Boil it!"]


def test_a_snapshot_has_the_segments_with_their_means(raters: list[User]) -> None:
    project = Project.objects.get()
    for number in range(2, 12):
        make_segmented_task(project, f"t{number}", f"It rains {number}. It pours.")
        for user in raters:
            rate_segments(project, user, (number % 5, 3))
    taken = take(project, now=NOW)
    assert taken.manifest["aspects"] == list(ASPECTS)
    snapshot = read_snapshot(taken.directory())
    responses = [one for task in (*snapshot.train, *snapshot.validation) for one in task.responses]
    first = next(one for one in responses if one.text == TEXT)
    assert [(segment.start, segment.end) for segment in first.segments] == [(0, 10), (10, 20), (20, 28)]
    assert first.segments[1].scores["clarity"] == pytest.approx(4 / 3)
    assert taken.labels == 12


def test_an_unrated_response_is_not_cut(raters: list[User]) -> None:
    make_segmented_task(Project.objects.get(), "t2")
    assert Response.objects.filter(segments__isnull=True).count() == 2
