"""Segments come in: with our own tasks, as lists, as marked spans and as steps; what is wrong is named."""

import io
import json
from typing import Any

import pytest

from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.managing.rubrics import own_of
from annotator.models import Label, Project, Rating, Response, Task
from annotator.outputs.exporting.file_formats import encoded
from annotator.outputs.exporting.filters import EVERYTHING, Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.stages.importing import import_rows
from tests.annotator.segmented import TEXT, make_segmented_project, make_segmented_task, rate_segments
from tests.builders import NOW, imported, make_member, make_project, make_user, task_row
from tests.shared_data import needs_shared, shared

GOOD = ("No", "Yes")
CUT = [[0, 10], [10, 20], [20, 28]]


@pytest.fixture
def project(db: None) -> Project:
    return make_segmented_project()


def one_response(**fields: Any) -> dict[str, Any]:
    return task_row("t") | {"responses": [{"text": TEXT, **fields}]}


def errors(project: Project, *rows: Any) -> list[str]:
    return [refused.error for refused in imported(project, *rows).rejected]


@pytest.mark.parametrize(
    "given",
    [
        CUT,
        [{"start": start, "end": end} for start, end in CUT],
        ["It rains. ", "It pours. ", "It ends."],
        ["It rains.", "It pours.", "It ends."],
    ],
)
def test_given_segments_are_stored(project: Project, given: Any) -> None:
    assert imported(project, one_response(segments=given)).created == 1
    assert Response.objects.get().segments == CUT


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ([[0, 10], [12, 28]], "belong to none"),
        ([[0, 10], [5, 28]], "inside the segment before"),
        ([[0, 0], [0, 28]], "is empty"),
        ([[10, 0]], "before it begins"),
        ([[0, 99]], "reaches beyond the text"),
        ([[0, True], [1, 28]], "not a pair of whole numbers"),
        (["It rains.", "It snows."], "does not follow the one before"),
        ("It rains.", "must be a list"),
        ([0, 28], "not a pair of whole numbers"),
    ],
)
def test_segments_that_do_not_fit_are_refused(project: Project, given: Any, says: str) -> None:
    (error,) = errors(project, one_response(segments=given))
    assert says in error
    assert not Task.objects.exists()


def flat(**fields: Any) -> dict[str, Any]:
    return {"prompt": "How is it?", "response": TEXT, "segments": CUT, "clarity": [4, 0, None], **fields}


def test_lists_of_levels_become_labels(project: Project) -> None:
    assert imported(project, flat(safety=[4, 4, 4])).created == 1
    label = Label.objects.get()
    assert (label.aspects, label.segment_scores) == (["safety", "clarity"], [[4, 4], [4, 0], [4, None]])
    assert label.scores == {}


@pytest.mark.parametrize(
    ("levels", "says"),
    [([4, 4], "a level for each of 3 segments"), ([4, 5, 4], "its levels are 0 to 4"), ("good", "must be a list")],
)
def test_lists_that_do_not_fit_are_refused(project: Project, levels: Any, says: str) -> None:
    assert says in errors(project, flat(clarity=levels))[0]


def test_another_label_of_the_same_segments_is_reported(project: Project) -> None:
    imported(project, flat())
    assert imported(project, flat()).existing == 1
    assert "another" not in "".join(errors(project, flat()))
    assert "has an imported label with other scores" in errors(project, flat(clarity=[1, 1, 1]))[0]


def test_what_leaves_as_lists_comes_back(project: Project) -> None:
    imported(project, flat(), flat(response="Fine. Thanks.", segments=["Fine.", "Thanks."], clarity=[1, 2]))
    rows = list(LAYOUTS["helpsteer2d"].rows(project, Filters(), Task.objects.none()))
    other = make_segmented_project("other")
    assert imported(other, *rows).created == 1
    labels = Label.objects.filter(response__task__project=other).order_by("response__position")
    assert [label.segment_scores for label in labels] == [[[4], [0], [None]], [[1], [2]]]


def fine_grained() -> Project:
    attributes = [AttributeText(key, key, GOOD, scope="segment") for key in ("irrelevant", "clarity")]
    project = make_segmented_project("fine")
    project.rubric = own_of(RubricText("fine", "Fine", tuple(attributes)), by=None)
    project.save()
    return project


SPANS = {
    "prompt": "How is it?",
    "response": TEXT,
    "spans": [{"aspect": "Irrelevant", "start": 10, "end": 19}, {"aspect": "Redundant", "start": 23, "end": 28}],
}


def test_spans_cut_a_response_and_label_the_aspects_that_they_name(db: None) -> None:
    assert imported(fine_grained(), SPANS).created == 1
    response, label = Response.objects.get(), Label.objects.get()
    assert response.segments == [[0, 10], [10, 20], [20, 23], [23, 28]]
    assert (label.aspects, label.segment_scores) == (["irrelevant"], [[1], [0], [1], [1]])


def test_spans_of_a_project_of_whole_responses_stay_metadata(db: None) -> None:
    imported(make_project(), SPANS)
    response = Response.objects.get()
    assert (response.segments, response.metadata) == (None, {"spans": SPANS["spans"]})


def test_a_span_out_of_the_text_is_refused(db: None) -> None:
    wrong = SPANS | {"spans": [{"aspect": "Irrelevant", "start": 5, "end": 99}]}
    assert "must lie within the 28 characters" in errors(fine_grained(), wrong)[0]


@pytest.mark.parametrize("spans", [{"aspect": "Irrelevant"}, "Irrelevant", 3])
def test_spans_that_are_no_list_are_refused(db: None, spans: object) -> None:
    assert "must be a list of objects" in errors(fine_grained(), SPANS | {"spans": spans})[0]


@needs_shared("span_feedback.jsonl")
def test_real_spans(db: None) -> None:
    rows = [json.loads(line) for line in shared("span_feedback.jsonl").read_text().splitlines()]
    result = imported(fine_grained(), *rows)
    assert (result.created, result.rejected) == (250, [])
    assert Label.objects.exclude(segment_scores=None).count() == 250


@pytest.mark.parametrize(
    ("row", "scores"),
    [
        ({"prompt": "1 + 1?", "completions": ["Add them.", "It is 3."], "labels": [True, False]}, [[4], [0]]),
        ({"problem": "1 + 1?", "steps": ["Add.", "Hm.", "It is 3."], "ratings": [1, 0, -1]}, [[4], [2], [0]]),
        (
            {
                "question": {"problem": "1 + 1?"},
                "label": {
                    "steps": [
                        {"completions": [{"text": "Add.", "rating": 1}], "chosen_completion": 0},
                        {"completions": [{"text": "It is 3.", "rating": -1}], "chosen_completion": None},
                    ]
                },
            },
            [[4], [0]],
        ),
    ],
)
def test_steps_are_segments_with_a_verdict(project: Project, row: dict[str, Any], scores: Any) -> None:
    assert errors(project, row) == []
    label = Label.objects.get()
    assert (label.aspects, label.segment_scores) == (["helpfulness"], scores)
    assert len(Response.objects.get().segments or []) == len(scores)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"prompt": "1 + 1?", "completions": ["Add them."], "labels": [True, False]}, "a verdict for each of 1 steps"),
        ({"prompt": "1 + 1?", "completions": ["Add them."], "labels": [7]}, "labels[0] is 7"),
        ({"prompt": "1 + 1?", "completions": [], "labels": []}, "at least one step"),
        ({"question": "1 + 1?", "label": 3}, "the row has question, label"),
    ],
)
def test_steps_that_do_not_fit_are_refused(project: Project, row: dict[str, Any], says: str) -> None:
    assert says in errors(project, row)[0]


def test_what_leaves_as_steps_comes_back(project: Project) -> None:
    row = {"prompt": "1 + 1?", "completions": ["Add them.\n", "It is 3."], "labels": [True, False]}
    imported(project, row)
    assert list(LAYOUTS["stepwise"].rows(project, Filters(), Task.objects.none())) == [row]


# The layout *segments* -------------------------------------------------------------------------------------


def sheet(**fields: Any) -> list[dict[str, Any]]:
    """A rater's rows of a response of three segments."""
    row = {"task": "t", "response": "1", "annotator": "A", "source": "rating", **fields}
    return [
        row | {"segment": n, "start": start, "end": end, "text": TEXT[start:end], "scores": {"clarity": n}}
        for n, (start, end) in enumerate(CUT)
    ]


@pytest.fixture
def rated(project: Project) -> Project:
    """A project that was rated by three, whose task has a label."""
    make_segmented_task(project, "t")
    for name, levels in (("alice", (4, 1, None)), ("bob", (3, 1, None)), ("erin", (4, 2, 2))):
        user = make_user(name)
        make_member(project, user)
        rate_segments(project, user, levels)
    return project


@pytest.mark.parametrize("format", ["jsonl", "csv", "parquet"])
def test_what_leaves_by_rater_and_segment_comes_back(rated: Project, format: str) -> None:
    layout = LAYOUTS["segments"]
    rows = layout.rows(rated, Filters(), Task.objects.none())
    file = b"".join(encoded(rows, layout.columns(rated, EVERYTHING), format=format))
    other = make_segmented_project("other")
    make_segmented_task(other, "t")
    first = import_rows(other, io.BytesIO(file), now=NOW)
    assert (first.created, first.rejected, first.layouts) == (0, [], {"segments"})
    ratings = Rating.objects.order_by("annotation__submitted_at", "annotation", "response__position")
    stored = [
        list(ratings.filter(response__task__project=one).values_list("segment_scores", flat=True))
        for one in (rated, other)
    ]
    assert stored[0] == stored[1]
    assert len(stored[1]) == 6
    labels = Label.objects.filter(response__task__project=other)
    assert {label.source for label in labels} == {"consensus", "imported"}
    mine, theirs = (labels.filter(source=source).order_by("response") for source in ("consensus", "imported"))
    assert [label.segment_scores for label in mine] == [label.segment_scores for label in theirs]
    again = import_rows(other, io.BytesIO(file), now=NOW)
    assert again.rejected == []
    assert Rating.objects.filter(response__task__project=other).count() == 6


def test_a_response_that_nobody_has_cut_is_given_the_segments(project: Project) -> None:
    make_segmented_task(project, "t", TEXT)
    assert errors(project, *sheet(response="t-0")) == []
    assert Response.objects.get().segments == CUT
    rating = Rating.objects.get()
    assert (rating.segment_scores, rating.cut, rating.scores) == ([[0], [1], [2]], None, {})
    assert rating.annotation.aspects == ["clarity"]


def test_segments_of_an_annotators_own_need_a_project_that_allows_them(project: Project) -> None:
    make_segmented_task(project, "t", TEXT)
    Response.objects.update(segments=[[0, 20], [20, 28]])
    assert "does not let annotators change them" in errors(project, *sheet(response="t-0"))[0]
    Project.objects.update(allow_recut=True)
    project.refresh_from_db()
    assert errors(project, *sheet(response="t-0")) == []
    assert (Rating.objects.get().cut, Response.objects.get().segments) == (CUT, [[0, 20], [20, 28]])
    labelled = sheet(response="t-0", annotator=None)
    assert errors(project, *labelled) == []
    assert errors(project, *labelled) == []
    assert Label.objects.get(source="imported").cut == CUT


def broken(number: int, **fields: Any) -> list[dict[str, Any]]:
    rows = sheet(response="t-0")
    rows[number] |= fields
    return rows


@pytest.mark.parametrize(
    ("rows", "says"),
    [
        (broken(0, task="u"), "no task with the id 'u'"),
        (sheet(response="x"), "no response 'x'"),
        (broken(1, text="It snows. "), "segment 2 of the response 't-0' is 'It snows. '"),
        (broken(1, start=12), "belong to none"),
        (broken(2, end=29), "reaches beyond the text"),
        (broken(2, end=27), "ends at 27"),
        (broken(1, segment=2), "segment 2 of the response 't-0' is out of order"),
        (broken(1, segment="-1"), "segment is '-1': it must be a whole number"),
        (broken(1, start=True), "start is True"),
        (broken(1, scores={"clarity": 5}), "its levels are 0 to 4"),
        (broken(1, scores={"clearness": 1}), "scores has 'clearness': the aspects of the project are"),
        (broken(1, scores=7), "scores is 7"),
        (broken(0, task=""), "the task or the response is missing"),
        (sheet(response="t-0", scores={})[:2], "28 characters"),
        ([row | {"scores": {}} for row in sheet(response="t-0")], "the row has no scores"),
        (sheet(response="t-0") + sheet(response="t-0"), "out of order"),
    ],
)
def test_rows_of_segments_that_do_not_fit_are_refused(project: Project, rows: list[dict[str, Any]], says: str) -> None:
    make_segmented_task(project, "t", TEXT)
    assert any(says in error for error in errors(project, *rows)), errors(project, *rows)
    assert not Rating.objects.exists()


def test_other_scores_of_the_same_rater_are_reported(project: Project) -> None:
    make_segmented_task(project, "t", TEXT)
    assert errors(project, *sheet(response="t-0")) == []
    assert errors(project, *sheet(response="t-0")) == []
    (error,) = errors(project, *broken(2, scores={"clarity": 0}))
    assert "has other ratings by its imported raters" in error


def test_projects_of_whole_responses_take_no_rows_of_segments(db: None) -> None:
    assert "rates no segments" in errors(make_project(), *sheet())[0]


def test_projects_of_both_take_labels_of_segments_and_no_ratings(db: None) -> None:
    attributes = (AttributeText("quality", "Quality", GOOD), AttributeText("clarity", "Clarity", GOOD, scope="segment"))
    project = make_segmented_project("both")
    project.rubric = own_of(RubricText("both", "Both", attributes), by=None)
    project.save()
    make_segmented_task(project, "t", TEXT)
    rows = [row | {"scores": {"clarity": 1}} for row in sheet(response="t-0")]
    assert "scores of whole responses" in errors(project, *rows)[0]
    assert errors(project, *[row | {"annotator": None} for row in rows]) == []
    assert Label.objects.get().segment_scores == [[1], [1], [1]]
