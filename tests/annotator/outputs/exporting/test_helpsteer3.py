"""HelpSteer3's four configurations come in and leave again as they were; what people wrote stays out of the ratings."""

import io
import json
from collections import Counter
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from annotator.models import Annotation, Label, Project, Rating, Task
from annotator.outputs.exporting.filters import EVERYTHING, Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.stages import consensus
from annotator.stages.importing import import_rows
from annotator.stages.pii import redaction
from tests.annotator.outputs.exporting.test_preferences import LATER, exported, rows
from tests.builders import NOW, imported, make_project, make_task, rate
from tests.conftest import Cast
from tests.shared_data import needs_shared, shared

HEAD = {"domain": "stem", "language": "english"}


def context(number: int) -> dict[str, Any]:
    return {**HEAD, "context": [{"role": "user", "content": f"Name prime {number}."}]}


def given(score: int, reasoning: str) -> dict[str, Any]:
    return {
        "score": score,
        "reasoning": reasoning,
        "feedback1": f"On the first: {reasoning}",
        "feedback2": f"On the second: {reasoning}",
    }


PREFERENCE = {
    **context(1),
    "response1": "7",
    "response2": "8",
    "overall_preference": -3,
    "individual_preference": [given(-3, "8 is even."), given(-3, "7 is prime."), given(-2, "8 is even.")],
}
FEEDBACK = {**context(2), "response1": "7", "response2": "8", "feedback1": ["Right.", "Yes!"], "feedback2": ["Even."]}
EDIT = {
    **context(3),
    "original_response": "2",
    "edited_response": "2 and 3",
    "change_summary": "One was missing.",
    "feedback": ["It names one only.", "Short."],
}
EDIT_QUALITY = {
    **context(4),
    "original_response": "2",
    "good_edited_response": "2 and 3",
    "bad_edited_response": "2 and 4",
    "feedback": ["It names one only."],
}
CONFIGURATIONS = {"preference": PREFERENCE, "feedback": FEEDBACK, "edit": EDIT, "edit_quality": EDIT_QUALITY}


def came(project: Project, *given: dict[str, Any]) -> Project:
    result = imported(project, *given)
    assert (result.rejected, result.created) == ([], len(given))
    return project


@pytest.mark.parametrize("asks", [False, True])
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_a_row_leaves_as_it_came(project: Project, configuration: str, *, asks: bool) -> None:
    Project.objects.update(ask_feedback=asks)
    project.refresh_from_db()
    row = CONFIGURATIONS[configuration]
    assert rows(came(project, row), "helpsteer3") == [row]


@pytest.mark.parametrize("format", ["csv", "parquet"])
def test_a_table_of_all_configurations_comes_back(project: Project, format: str) -> None:
    came(project, *CONFIGURATIONS.values())
    copy = make_project("copy")
    back = import_rows(copy, io.BytesIO(exported(project, "helpsteer3", format)), now=NOW)
    assert (back.created, back.rejected) == (4, [])
    assert rows(copy, "helpsteer3") == list(CONFIGURATIONS.values())


SPANS = "span_feedback.jsonl"


@needs_shared(SPANS)
@pytest.mark.parametrize("configuration", CONFIGURATIONS)
def test_real_texts_leave_as_they_came(project: Project, configuration: str) -> None:
    with shared(SPANS).open() as file:
        real = [json.loads(line) for line in file][:60]
    came_in = [as_configuration(configuration, row, number) for number, row in enumerate(real)]
    unlike = {row["context"][0]["content"]: row for row in came_in}
    assert rows(came(project, *unlike.values()), "helpsteer3") == list(unlike.values())


def as_configuration(name: str, real: dict[str, Any], number: int) -> dict[str, Any]:
    """A real prompt and response with what people wrote about it, in the fields of a configuration."""
    texts = [real["response"], f"{real['corrected'] or real['response']} ({number})"]
    fields = [key for key in CONFIGURATIONS[name] if key.endswith(("response", "response1", "response2"))][-2:]
    written = [span["text"] for span in real["spans"][:3]] or ["Nothing stands out."]
    row = CONFIGURATIONS[name] | {"context": [{"role": "user", "content": real["prompt"]}]}
    lists = {key: written for key in row if key.startswith("feedback")}
    return row | dict(zip(fields, texts, strict=True)) | lists


def test_the_0_of_a_project_without_ties_comes_back(project: Project) -> None:
    row = PREFERENCE | {"overall_preference": 0, "individual_preference": []}
    assert rows(came(project, row), "helpsteer3") == [row]


def test_what_people_say_later_leaves_beside_what_came(project: Project, cast: Cast) -> None:
    Project.objects.update(ask_preference=True, base_annotators=1, max_annotators=1, keep=1)
    project.refresh_from_db()
    came(project, FEEDBACK)
    rate(project, cast.alice, preference=2)
    (row,) = rows(project, "helpsteer3")
    assert (abs(row["overall_preference"]), row["feedback1"]) == (2, FEEDBACK["feedback1"])
    assert len(row["individual_preference"]) == 1


def test_a_language_that_was_changed_leaves_as_it_is_now(project: Project) -> None:
    came(project, EDIT)
    Task.objects.update(language="de")
    (row,) = rows(project, "helpsteer3")
    assert row["language"] == "de"


def test_a_time_leaves_out_what_only_came(project: Project) -> None:
    came(project, *CONFIGURATIONS.values())
    (row,) = rows(project, "helpsteer3", filters=Filters(since=NOW))
    assert row == PREFERENCE
    assert rows(project, "helpsteer3", filters=Filters(since=LATER)) == []


def test_as_many_are_counted_as_leave(project: Project) -> None:
    came(project, *CONFIGURATIONS.values(), {**context(5), "response1": "7", "response2": "8"})
    assert LAYOUTS["helpsteer3"].count(project, EVERYTHING) == len(rows(project, "helpsteer3")) == 4


def test_a_project_of_its_own_has_the_columns_of_preferences_alone(project: Project) -> None:
    make_task(project)
    assert list(LAYOUTS["helpsteer3"].columns(project, EVERYTHING))[-2:] == [
        "overall_preference",
        "individual_preference",
    ]


def test_feedback_that_came_is_no_rating(project: Project) -> None:
    came(project, *CONFIGURATIONS.values())
    consensus.settle(list(Task.objects.select_for_update()), project=project, now=NOW)
    assert Counter(annotation.preference for annotation in Annotation.objects.all()) == {-3: 2, -2: 1}
    assert not Rating.objects.exists()
    assert not Label.objects.exists()


def test_what_is_erased_does_not_leave(project: Project) -> None:
    asked = {"context": [{"role": "user", "content": "Who is Zebediah?"}]}
    said = [given(-2, "Zebediah is right.")]
    voted = PREFERENCE | asked | {"overall_preference": -2, "individual_preference": said}
    came(project, voted, FEEDBACK | asked | {"response1": "A friend.", "feedback1": ["Zebediah!"]})
    for task in Task.objects.all():
        Task.objects.filter(pk=task.pk).update(state=Task.State.QUARANTINED)
        redaction.redact(task.pk, redaction.Choice(quotes=["Zebediah"]), now=NOW)
    left = rows(project, "helpsteer3")
    assert len(left) == 2
    assert "Zebediah" not in json.dumps(left)
    assert left[0]["individual_preference"][0]["feedback1"].startswith("On the first: [personal")


@pytest.mark.parametrize("page", ["data-task", "review-task"])
@pytest.mark.parametrize(
    ("configuration", "texts"),
    [
        ("preference", ["On the first: 7 is prime.", "On the second: 8 is even."]),
        ("feedback", ["Yes!", "Even.", "Imported rater 2 on response A"]),
        ("edit", ["It names one only."]),
    ],
)
def test_reviewers_read_what_came(
    client: Client, project: Project, cast: Cast, page: str, configuration: str, texts: list[str]
) -> None:
    came(project, CONFIGURATIONS[configuration])
    client.force_login(cast.carol)
    shown = client.get(reverse(page, args=["talk", Task.objects.get().pk])).content.decode()
    for text in texts:
        assert text in shown
