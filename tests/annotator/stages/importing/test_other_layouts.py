"""The layouts of other data sets and tools: what a row becomes, what is refused, and that ours come back."""

import gzip
import io
import json
from collections import Counter
from itertools import islice
from typing import Any

import pytest

from annotator.models import Annotation, ImportedRater, Label, Project, Response, Rubric, Task, User
from annotator.outputs.exporting.export_rows import export
from annotator.stages.importing import import_rows
from annotator.stages.importing.layouts import read_tasks
from annotator.stages.importing.mappings import mapping_of_text
from annotator.stages.importing.task_rows import GivenAnnotation, ImportRules, RawRow, Rejected, TaskRow
from tests.annotator.outputs.exporting.test_preferences import preferred
from tests.builders import ATTRIBUTES, NOW, imported, make_project, task_row
from tests.conftest import Cast
from tests.servers import ROOT
from tests.shared_data import needs_shared, shared

USER = {"role": "user", "content": "Name a prime."}
SEVEN, EIGHT = ({"role": "assistant", "content": text} for text in "78")
LEVELS = dict.fromkeys(ATTRIBUTES, 5)


def checked(*rows: dict[str, Any], ties: bool = False, from_csv: bool = False) -> list[TaskRow | Rejected]:
    raw = [RawRow(number, row, from_csv=from_csv) for number, row in enumerate(rows, 1)]
    return list(read_tasks(raw, ImportRules(LEVELS, ties)))


def accepted(row: dict[str, Any], **options: Any) -> TaskRow:
    (result,) = checked(row, **options)
    assert isinstance(result, TaskRow), result
    return result


def refusal(row: dict[str, Any]) -> str:
    (result,) = checked(row)
    assert isinstance(result, Rejected), result
    return result.error


def stars(number: int, level: int) -> dict[str, int]:
    return {f"{attribute}_{number}": level for attribute in ATTRIBUTES}


# Recognised by what they hold ------------------------------------------------------------------------------

ARENA = {"question_id": "q", "model_a": "m", "model_b": "n", "winner": "model_b", "judge": "j"} | {
    "conversation_a": [USER, SEVEN],
    "conversation_b": [USER, EIGHT],
}
ULTRA = {"source": "s", "instruction": "Name a prime.", "models": ["m", "n"]} | {
    "completions": [{"model": "m", "response": "7", "overall_score": 9}, {"model": "n", "response": "8"}]
}
STUDIO = {"id": 5, "data": {"prompt": "Name a prime.", "response_1": "7", "response_2": "8"}}
ARGILLA = {"id": "r", "fields": {"prompt": "Name a prime.", "response_1": "7", "response_2": "8"}}


@pytest.mark.parametrize(
    ("row", "layout"),
    [
        ({"context": [USER], "response1": "7", "response2": "8", "overall_preference": -2}, "helpsteer3"),
        ({"context": [USER], "original_response": "7", "edited_response": "8", "feedback": ["Odd?"]}, "helpsteer3"),
        ({"context": [USER], "good_edited_response": "7", "bad_edited_response": "8"}, "helpsteer3"),
        ({"context": [USER], "response1": "7", "feedback1": ["Yes."], "response2": "8", "feedback2": []}, "helpsteer3"),
        (ARENA, "comparisons"),
        ({"prompt": "Name a prime.", "response_a": "7", "response_b": "8"}, "comparisons"),
        ({"question": "Name a prime.", "answer_0": "7", "answer_1": "8", "better_response_id": 1}, "comparisons"),
        ({"prompt": '["Name a prime."]', "response_a": '["7"]', "response_b": '["8"]', "winner_tie": 1}, "comparisons"),
        (ULTRA, "completions"),
        ({"prompt": "Name a prime.", "completions": ["7", "8"]}, "completions"),
        ({"context": [USER], "completions": [{"rank": 0, "completion": [SEVEN]}, {"text": "8"}]}, "completions"),
        ({"prompt": "Name a prime.", "response": "7", "alternatives": ["8"], "spans": []}, "spans"),
        ({"prompt": "Name a prime.", "responses": ["7", "8"]}, "tasks"),
        (STUDIO, "label_studio"),
        (ARGILLA, "argilla"),
    ],
)
def test_a_row_is_read_by_what_it_holds(row: dict[str, Any], layout: str) -> None:
    task = accepted(row)
    assert (task.layout, task.messages) == (layout, [USER])
    assert [response.text for response in task.responses] == ["7", "8"]


@pytest.mark.parametrize(
    "row",
    [
        {"messages": [USER, SEVEN]},
        {"conversations": [{"from": "human", "value": "Name a prime."}, {"from": "gpt", "value": "7"}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "Name a prime."}]}, SEVEN]},
        {"context": [USER], "response": "7", "feedback": ["Right."]},
    ],
    ids=["messages", "ShareGPT", "parts", "HelpSteer3's feedback"],
)
def test_a_conversation_ends_with_the_response(row: dict[str, Any]) -> None:
    task = accepted(row)
    assert (task.messages, [response.text for response in task.responses]) == ([USER], ["7"])


def test_an_image_is_refused() -> None:
    parts = [{"type": "image_url", "image_url": {"url": "x"}}]
    assert "only texts can be rated" in refusal({"messages": [{"role": "user", "content": parts}, SEVEN]})


def test_cells_of_a_table_may_hold_json() -> None:
    row = {"context": json.dumps([USER]), "response1": "7", "response2": "8", "overall_preference": "-2"}
    task = accepted({**row, "overall_preference": -2}, from_csv=True)
    assert (task.messages, task.preference) == ([USER], -2)


# HelpSteer3 ------------------------------------------------------------------------------------------------


def test_helpsteer3_s_preference_has_those_of_its_raters() -> None:
    given = [{"score": -3, "reasoning": "8 is even.", "feedback1": "Right."}, {"score": 1, "reasoning": ""}]
    row = {"domain": "stem", "language": "english", "context": [USER], "response1": "7", "response2": "8"}
    task = accepted({**row, "overall_preference": -2, "individual_preference": given})
    assert [(each.strength, each.justification) for each in task.preferences] == [(-3, "8 is even."), (1, "")]
    assert (task.preference, task.language) == (-2, "en")
    assert (task.metadata["domain"], task.metadata["individual_preference"]) == ("stem", given)


def test_an_edit_is_better_than_what_it_was_made_from() -> None:
    edit = {"context": [USER], "original_response": "8", "edited_response": "7", "feedback": ["Even."]}
    assert (accepted(edit).preference, accepted(edit).responses[0].metadata) == (1, {"feedback": ["Even."]})
    assert accepted({"context": [USER], "good_edited_response": "7", "bad_edited_response": "8"}).preference == -1


def test_a_rater_s_tie_needs_a_project_that_allows_ties() -> None:
    row = {"context": [USER], "response1": "7", "response2": "8", "overall_preference": 0}
    tied = {**row, "individual_preference": [{"score": 0, "reasoning": "Equal."}]}
    assert accepted(tied, ties=True).preferences[0].strength == 0
    assert refusal(tied).endswith("this project allows no ties. A manager can turn on allow_ties")


# Comparisons -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("winner", "preference"), [("model_a", -1), ("model_b", 1), ("tie", None), ("tie (bothbad)", -100), ("", None)]
)
def test_a_vote_is_the_weakest_preference(winner: str, preference: int | None) -> None:
    assert accepted({**ARENA, "winner": winner}).preference == preference


def test_a_vote_belongs_to_the_person_who_cast_it() -> None:
    assert accepted(ARENA).annotations == (GivenAnnotation("j", {}, 1),)
    assert accepted({**ARENA, "winner": "tie"}).annotations == ()
    assert accepted({**ARENA, "winner": "tie"}).metadata["winner"] == "tie"
    assert accepted({**ARENA, "winner": "tie"}, ties=True).annotations == (GivenAnnotation("j", {}, 0),)


def test_turns_after_the_first_difference_are_part_of_the_response() -> None:
    more = [{"role": "user", "content": "Another?"}, {"role": "assistant", "content": "11"}]
    task = accepted({**ARENA, "conversation_a": [USER, SEVEN, *more], "conversation_b": [USER, EIGHT, *more]})
    assert task.messages == [USER]
    assert task.responses[0].text == "7\n\n**User:** Another?\n\n**Assistant:** 11"


def test_conversations_that_begin_alike_are_compared_by_their_last_answers() -> None:
    first = [USER, SEVEN, {"role": "user", "content": "Another?"}]
    task = accepted({**ARENA, "conversation_a": [*first, SEVEN], "conversation_b": [*first, EIGHT]})
    assert (len(task.messages), [response.text for response in task.responses]) == (3, ["7", "8"])
    same = accepted({**ARENA, "conversation_b": [USER, SEVEN]})
    assert [response.text for response in same.responses] == ["7", "7"]


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({**ARENA, "winner": "me"}, "winner is 'me': it must be model_a, model_b, tie or tie (bothbad)"),
        ({**ARENA, "conversation_b": [EIGHT, USER]}, "conversation_a must have the same question as the other"),
        ({**ARENA, "conversation_b": [USER]}, "conversation_a must have the same question as the other"),
        ({"response_a": "7", "response_b": "8"}, "the field prompt is missing"),
        ({"prompt": "p", "response_0": "7", "response_1": "8", "better_response_id": 2}, "better_response_id is 2"),
    ],
)
def test_a_bad_comparison_is_refused(row: dict[str, Any], error: str) -> None:
    assert refusal(row).startswith(error)


# Completions and spans -------------------------------------------------------------------------------------


def test_a_model_s_ratings_are_metadata() -> None:
    task = accepted(ULTRA)
    assert (task.responses[0].model, task.responses[0].metadata) == ("m", {"overall_score": 9})
    assert (task.metadata, task.responses[0].label) == ({"source": "s"}, {})


@pytest.mark.parametrize(("ranks", "preference"), [((0, 1), -1), ((1, 0), 1), ((0, 0), None), ((None, 1), None)])
def test_the_better_rank_of_two_is_a_preference(ranks: tuple[Any, Any], preference: int | None) -> None:
    completions = [{"rank": rank, "completion": [turn]} for rank, turn in zip(ranks, (SEVEN, EIGHT), strict=True)]
    assert accepted({"context": [USER], "completions": completions}).preference == preference


def test_spans_stay_with_their_response() -> None:
    spans = [{"aspect": "Irrelevant", "start": 0, "end": 1, "text": "7"}]
    row = {"prompt": "p", "response": "7", "spans": spans, "alternatives": ["8"], "corrected": "7."}
    task = accepted(row)
    assert (task.responses[0].metadata, task.metadata) == ({"spans": spans}, {"corrected": "7."})


# Label Studio ----------------------------------------------------------------------------------------------


def studio(*results: dict[str, Any], **annotation: Any) -> dict[str, Any]:
    return {**STUDIO, "annotations": [{"completed_by": 7, "result": list(results), **annotation}]}


def star(name: str, rating: Any) -> dict[str, Any]:
    return {"from_name": name, "to_name": "x", "type": "rating", "value": {"rating": rating}}


def test_stars_count_from_one() -> None:
    (annotation,) = accepted(studio(*(star(name, 4) for name in stars(2, 4)))).annotations
    assert (annotation.rater, annotation.ratings) == ("7", {1: dict.fromkeys(ATTRIBUTES, 3)})


def test_a_question_about_a_field_is_about_that_response() -> None:
    results = [{**star(name, 1), "to_name": "response_2"} for name in ATTRIBUTES]
    assert set(accepted(studio(*results)).annotations[0].ratings) == {1}


def test_a_side_is_a_preference_and_a_text_its_reason() -> None:
    side = {"from_name": "better", "type": "pairwise", "value": {"selected": "left"}}
    why = {"from_name": "comment", "type": "textarea", "value": {"text": ["8 is even."]}}
    assert accepted(studio(side, why)).annotations == (GivenAnnotation("7", {}, -1, "8 is even."),)


def test_answers_to_other_questions_and_predictions_are_metadata() -> None:
    topic = {"from_name": "topic", "type": "choices", "value": {"choices": ["maths"]}}
    region = {"from_name": "span", "to_name": "x", "type": "labels", "value": {"start": 0, "end": 1, "labels": ["a"]}}
    task = accepted(studio(topic, region) | {"predictions": [{"score": 1}]})
    assert task.annotations == ()
    assert task.metadata["results"] == [region, {"from_name": "topic", "value": "maths"}]
    assert task.metadata["predictions"] == [{"score": 1}]


def test_a_cancelled_annotation_is_none() -> None:
    assert accepted(studio(*(star(name, 4) for name in stars(1, 4)), was_cancelled=True)).annotations == ()


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({"data": {"text": "7"}}, "data needs a prompt and a response"),
        (studio(star("helpfulness_1", 6)), "annotations[0].helpfulness_1 is 6: its levels go from 1 to 5"),
        (studio(star("helpfulness_1", 2)), "annotations[0] rates response 1 without correctness"),
        ({**STUDIO, "annotations": [5]}, "annotations[0] is 5"),
        ({**STUDIO, "annotations": {"result": 1}}, "annotations is {'result': 1}: it must be a list"),
        (studio({"value": []}), "annotations[0].result holds"),
    ],
)
def test_a_bad_task_of_label_studio_is_refused(row: dict[str, Any], error: str) -> None:
    assert refusal(row).startswith(error)


# Argilla ---------------------------------------------------------------------------------------------------


def test_answers_by_question_are_gathered_by_person() -> None:
    answers = {name: [{"value": 2, "user_id": "u"}, {"value": 5, "user_id": "v"}] for name in stars(1, 2)}
    task = accepted({**ARGILLA, "responses": answers})
    assert [(each.rater, each.ratings[0]["helpfulness"]) for each in task.annotations] == [("u", 1), ("v", 4)]


def test_answers_by_person_count_once_they_are_submitted() -> None:
    values = {name: {"value": 3} for name in stars(2, 3)}
    given = [{"values": values, "user_id": "u"}, {"values": values, "user_id": "v", "status": "discarded"}]
    assert [each.rater for each in accepted({**ARGILLA, "responses": given}).annotations] == ["u"]


def test_what_a_model_suggests_is_metadata() -> None:
    suggestion = {"value": 3, "agent": "a model", "score": 0.5}
    task = accepted({**ARGILLA, "suggestions": {"helpfulness_1": suggestion}, "metadata": {"topic": "maths"}})
    assert task.responses[0].label == {}
    assert task.metadata == {"topic": "maths", "suggestions": [{"question_name": "helpfulness_1", **suggestion}]}


@pytest.mark.parametrize(
    ("row", "error"),
    [
        ({**ARGILLA, "responses": {"helpfulness_1": 5}}, "responses.helpfulness_1 holds 5"),
        ({**ARGILLA, "responses": [5]}, "responses[0] is 5"),
        ({**ARGILLA, "responses": {"helpfulness_1": [{"value": 0}]}}, "responses.helpfulness_1 is 0"),
        ({**ARGILLA, "suggestions": {"helpfulness_1": 5}}, "suggestions holds 5"),
        ({**ARGILLA, "metadata": 5}, "metadata is 5"),
    ],
)
def test_a_bad_record_of_argilla_is_refused(row: dict[str, Any], error: str) -> None:
    assert refusal(row).startswith(error)


# Ratings of tasks that are there ---------------------------------------------------------------------------


def potato(task: str, user: str, **schemes: Any) -> dict[str, Any]:
    given = {name: {f"scale_{level}": str(level)} for name, level in schemes.items()}
    return {"user_id": user, "instance_id": task, "displayed_text": "x", "label_annotations": given}


def scores(task: str, rater: str, value: int = 3, **more: Any) -> list[dict[str, Any]]:
    return [{"item_id": task, "rater_id": rater, "attribute": name, "value": value, **more} for name in ATTRIBUTES]


def test_potato_s_annotations_rate_the_tasks_of_their_ids(project: Project) -> None:
    result = imported(project, task_row("t-1"), potato("t-1", "ann", **stars(1, 2), **stars(2, 5)))
    assert result.rejected == []
    ratings = Annotation.objects.get().ratings.order_by("response__position")
    assert [rating.scores["helpfulness"] for rating in ratings] == [1, 4]


def test_a_table_of_potato_is_read_as_well() -> None:
    row = {"user": "ann", "instance_id": "t-1", **{f"{name}:::scale_4": "4" for name in ATTRIBUTES}}
    task = accepted(row, from_csv=True)
    assert task.annotations == (GivenAnnotation("ann", {0: dict.fromkeys(ATTRIBUTES, 3)}),)


def test_a_row_for_each_score_makes_one_annotation(project: Project) -> None:
    result = imported(project, task_row("t-1", responses=1), *scores("t-1", "ann"), *scores("t-1", "bea", 5))
    assert (result.rejected, result.created, result.existing) == ([], 1, 2)
    found = Annotation.objects.order_by("pk")
    assert [annotation.ratings.get().scores["verbosity"] for annotation in found] == [2, 4]


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        (scores("gone", "ann"), "there is no task with the id 'gone': import its texts first"),
        (scores("t-1", "ann")[1:], "the scores of response 1 of the task 't-1' lack helpfulness"),
        (scores("t-1", "ann", response=3), "the task has 2 responses, and the row rates response 3"),
        (scores("t-1", "ann", 6)[:1], "the score is '6': the levels of helpfulness go from 1 to 5"),
        ([{**scores("t-1", "ann")[0], "attribute": "charm"}], "attribute is 'charm': the project has helpfulness"),
        ([{**scores("t-1", "ann")[0], "item_id": ""}], "the task's id is missing"),
        ([potato("t-1", "ann", charm=3)], "no scheme is named by an attribute of the project; there are 'charm'"),
    ],
)
def test_ratings_that_fit_no_task_are_refused(project: Project, rows: list[dict[str, Any]], error: str) -> None:
    result = imported(project, task_row("t-1"), *rows)
    assert [refused.error[: len(error)] for refused in result.rejected] == [error]
    assert not Annotation.objects.exists()


def test_a_preference_on_a_task_of_three_is_refused(project: Project) -> None:
    row = {**potato("t-1", "ann"), "label_annotations": {"preference": {"left": True}}}
    (refused,) = imported(project, task_row("t-1", responses=3), row).rejected
    assert refused.error == "the task has 3 responses, and preferences are for two"


def test_names_are_stored_as_hashes_that_differ_between_projects(project: Project) -> None:
    other = make_project("other")
    for each in (project, other):
        imported(each, task_row("t-1", responses=1), *scores("t-1", "ann@example.org"))
    places = set(ImportedRater.objects.values_list("place", flat=True))
    assert len(places) == 2
    stored = [*places, *User.objects.values_list("username", flat=True)]
    assert not any("ann@" in text for text in stored)


def test_the_same_ratings_twice_change_nothing(project: Project) -> None:
    rows = [task_row("t-1", responses=1), *scores("t-1", "ann"), *scores("t-1", "bea")]
    imported(project, *rows)
    again = imported(project, *rows)
    assert (again.created, again.rejected, Annotation.objects.count()) == (0, [], 2)


# There and back --------------------------------------------------------------------------------------------


def returned(project: Project, layout: str) -> Project:
    """A second project with what the first exports."""
    file = b"".join(export(project, layout=layout, format="json"))
    other = make_project("other")
    result = import_rows(other, io.BufferedReader(io.BytesIO(file)), now=NOW)
    assert (result.rejected, result.created) == ([], 1)
    return other


def test_helpsteer3_comes_back(project: Project, cast: Cast) -> None:
    preferred(project, cast, -2, -2, -1, name="one")
    task = Task.objects.get(project=returned(project, "helpsteer3"))
    assert task.imported_preference == -2
    votes = Annotation.objects.filter(assignment__task=task).values_list("preference", flat=True)
    assert sorted(vote for vote in votes if vote is not None) == [-2, -2, -1]


def test_nemo_comes_back(project: Project, cast: Cast) -> None:
    preferred(project, cast, 2, 2, 2, name="one")
    task = Task.objects.get(project=returned(project, "nemo"))
    assert [response.text[:8] for response in task.responses.order_by("position")] == ["Answer 1", "Answer 0"]
    assert task.imported_preference == -1


@pytest.fixture
def rated(project: Project, cast: Cast) -> Task:
    task = preferred(project, cast, 2, 2, 2, level=[1, 3], name="t-1")
    project.refresh_from_db()
    return task


@pytest.mark.usefixtures("rated")
def test_label_studio_s_tasks_come_back_with_their_ratings(project: Project) -> None:
    other = returned(project, "label_studio")
    assert Task.objects.get(project=other).external_id == "t-1"
    given = Annotation.objects.filter(assignment__task__project=other)
    assert Counter(annotation.preference for annotation in given) == {2: 3}
    levels = {rating.scores["helpfulness"] for annotation in given for rating in annotation.ratings.all()}
    assert levels == {1, 3}


def test_argilla_s_records_come_back_with_their_labels(project: Project, rated: Task) -> None:
    other = returned(project, "argilla")
    labels = Label.objects.filter(response__task__project=other, source=Label.Source.IMPORTED)
    ours = Label.objects.filter(response__task=rated)
    assert sorted(str(label.scores) for label in labels) == sorted(str(label.scores) for label in ours)
    assert Task.objects.get(project=other).imported_preference == 2


# Real data -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "created"),
    [
        pytest.param("oasst_tasks.jsonl", 214, marks=needs_shared("oasst_tasks.jsonl")),
        pytest.param("span_feedback.jsonl", 250, marks=needs_shared("span_feedback.jsonl")),
        pytest.param("rewardbench_rows.jsonl", 239, marks=needs_shared("rewardbench_rows.jsonl")),
        pytest.param("llm_judge_ratings.jsonl", 320, marks=needs_shared("llm_judge_ratings.jsonl")),
    ],
)
def test_real_files_go_in_as_they_are(project: Project, name: str, created: int) -> None:
    with shared(name).open("rb") as file:
        result = import_rows(project, file, now=NOW)
    assert result.rejected == []
    assert result.created <= created
    assert Response.objects.count() >= created


@needs_shared("pii_texts.jsonl")
def test_texts_without_a_prompt_go_in_with_a_mapping(project: Project) -> None:
    mapping = mapping_of_text((ROOT / "examples/mappings/texts.json").read_bytes())
    with shared("pii_texts.jsonl").open("rb") as file:
        result = import_rows(project, file, now=NOW, mapping=mapping)
    assert result.rejected == []


@needs_shared("summeval_expert_ratings.csv.gz")
def test_a_table_of_scores_goes_in_once_its_texts_are_there(db: None) -> None:
    keys = ("coherence", "consistency", "fluency", "relevance")
    rubric = Rubric.objects.create(key="summeval", name="SummEval")
    for place, key in enumerate(keys):
        rubric.attributes.create(key=key, name=key, description=key, levels=["x"] * 5, position=place)
    project = Project.objects.create(slug="summeval", name="SummEval", rubric=rubric, spread_attribute="coherence")
    with gzip.open(shared("summeval_expert_ratings.csv.gz"), "rt") as table:
        head, *lines = islice(table, 1 + 60 * len(keys) * 3)
    names = dict.fromkeys(line.split(",")[0] for line in lines)
    imported(project, *(task_row(name, prompt=name, responses=1) for name in names))
    result = import_rows(project, io.BufferedReader(io.BytesIO("".join([head, *lines]).encode())), now=NOW)
    assert (result.rejected, result.existing) == ([], 180)
    assert Annotation.objects.filter(assignment__task__project=project).count() == 180
