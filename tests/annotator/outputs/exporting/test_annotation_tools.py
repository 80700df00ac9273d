"""What Label Studio and Argilla import."""

import csv
import io
import json
from typing import Any

import pytest

from annotator.models import NEITHER_VALID, Annotation, Project, Rating, Response, Task
from annotator.outputs.exporting.export_rows import export
from tests.annotator.outputs.exporting.test_preferences import preferred
from tests.builders import ATTRIBUTES, make_task, pseudonym
from tests.conftest import Cast

WRITTEN = 'one\u2028"two"\n\u0085é\x1d\x1e\x1f'


@pytest.fixture
def rated(project: Project, cast: Cast) -> Task:
    task = preferred(project, cast, 2, 2, 2, level=[1, 3], name="t-1", lang="de")
    project.refresh_from_db()
    return task


def records(project: Project, layout: str) -> list[dict[str, Any]]:
    parts = export(project, layout=layout, format="json")
    return list(json.loads(b"".join(parts)))


def results(annotation: dict[str, Any], kind: str) -> dict[str, dict[str, Any]]:
    return {one["from_name"]: one for one in annotation["result"] if one["type"] == kind}


def test_label_studio_gets_texts_and_everybody_s_ratings(project: Project, cast: Cast, rated: Task) -> None:
    (task,) = records(project, "label_studio")
    assert (task["data"]["task"], task["data"]["language"]) == ("t-1", "de")
    assert task["data"]["conversation"] == rated.conversation
    assert task["data"]["response_2"] == rated.responses.get(position=1).text
    first, *others = task["annotations"]
    assert len(others) == 2
    stars = results(first, "rating")
    assert stars["helpfulness_1"]["value"] == {"rating": 2}
    assert (stars["verbosity_2"]["to_name"], stars["verbosity_2"]["value"]) == ("response_2", {"rating": 4})
    assert len(stars) == 2 * len(ATTRIBUTES)
    (said,) = results(first, "choices").values()
    assert said["value"] == {"choices": ["Response 2 is better than Response 1"]}
    names = {results(one, "textarea")["annotator"]["value"]["text"][0] for one in task["annotations"]}
    assert names == {pseudonym(user, project) for user in cast.annotators}


def test_label_studio_s_lines_hold_whatever_people_write(project: Project, cast: Cast, rated: Task) -> None:
    Annotation.objects.filter(annotator=cast.alice).update(preference=NEITHER_VALID, justification=WRITTEN)
    Rating.objects.filter(annotation__annotator=cast.alice, response__position=0).update(scores={"helpfulness": 0})
    Response.objects.filter(task=rated).update(text=WRITTEN)
    (line,) = b"".join(export(project, layout="label_studio", format="jsonl")).decode().splitlines()
    assert json.loads(line)["data"]["response_2"] == WRITTEN
    alices = pseudonym(cast.alice, project)
    (one,) = [one for one in json.loads(line)["annotations"] if one["result"][0]["value"] == {"text": [alices]}]
    assert {name: star["value"]["rating"] for name, star in results(one, "rating").items()} == {
        "helpfulness_1": 1,
        **{f"{key}_2": 4 for key in ATTRIBUTES},
    }
    assert results(one, "choices")["preference"]["value"] == {"choices": ["Neither response is valid"]}
    assert results(one, "textarea")["justification"]["value"] == {"text": [WRITTEN]}


def test_label_studio_s_lines_leave_out_what_has_no_scores(project: Project, rated: Task) -> None:
    Rating.objects.filter(response__position=1).update(scores={})
    (task,) = records(project, "label_studio")
    assert len(results(task["annotations"][0], "rating")) == len(ATTRIBUTES)


def test_label_studio_s_stars_follow_the_responses(project: Project, rated: Task) -> None:
    Rating.objects.filter(response__position=0).update(response_id=-1)
    Rating.objects.filter(response__position=1).update(response=rated.responses.get(position=0))
    Rating.objects.filter(response=-1).update(response=rated.responses.get(position=1))
    (task,) = records(project, "label_studio")
    stars = [[one["id"] for one in said["result"] if one["type"] == "rating"] for said in task["annotations"]]
    assert stars == [[f"{key}_{number}" for number in (1, 2) for key in ATTRIBUTES]] * 3


def test_argilla_gets_labels_as_suggestions(project: Project, rated: Task) -> None:
    (record,) = records(project, "argilla")
    assert record["id"] == "t-1"
    assert set(record["fields"]) == {"conversation", "response_1", "response_2"}
    assert record["suggestions"]["helpfulness_1"] == {"value": 2, "agent": "rewardloop"}
    assert record["suggestions"]["helpfulness_2"]["value"] == 4
    assert record["suggestions"]["preference"]["value"] == "Response 2 is better than Response 1"


def test_what_nobody_has_rated_is_left_out(project: Project) -> None:
    make_task(project)
    assert records(project, "label_studio") == records(project, "argilla") == []


@pytest.mark.usefixtures("rated")
@pytest.mark.parametrize("layout", ["label_studio", "argilla"])
def test_nested_values_are_json_in_csv(project: Project, layout: str) -> None:
    file = b"".join(export(project, layout=layout, format="csv")).decode()
    (row,) = csv.DictReader(io.StringIO(file, newline=""))
    assert json.loads(row["conversation"])[0]["role"] == "user"
    if layout == "argilla":
        assert json.loads(row["helpfulness_1"])["value"] == 2
