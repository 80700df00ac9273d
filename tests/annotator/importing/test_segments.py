"""Segments come in: with our own tasks, as lists, as marked spans and as steps; what is wrong is named."""

import json
from typing import Any

import pytest

from annotator.exporting.filters import Filters
from annotator.exporting.layouts import LAYOUTS
from annotator.models import Label, Project, Response, Task
from annotator.projects.rubrics import AttributeText, RubricText, own_of
from tests.annotator.segmented import TEXT, make_segmented_project
from tests.builders import imported, make_project, task_row
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
        ({"question": "1 + 1?", "label": 3}, "question must be an object"),
    ],
)
def test_steps_that_do_not_fit_are_refused(project: Project, row: dict[str, Any], says: str) -> None:
    assert says in errors(project, row)[0]


def test_what_leaves_as_steps_comes_back(project: Project) -> None:
    row = {"prompt": "1 + 1?", "completions": ["Add them.\n", "It is 3."], "labels": [True, False]}
    imported(project, row)
    assert list(LAYOUTS["stepwise"].rows(project, Filters(), Task.objects.none())) == [row]
