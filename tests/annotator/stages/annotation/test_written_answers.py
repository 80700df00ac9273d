"""HelpSteer3's questions: feedback on each response, a better version of one, the domain and the language of a task."""

from typing import Any

import pytest
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.test import Client
from rest_framework.test import APIClient

from annotator.infrastructure.limits import LONGEST_EDIT
from annotator.managing import project_settings
from annotator.managing.settings_check import InvalidProject
from annotator.models import Annotation, AuditEntry, Import, Project, Rating, Response, Task, User
from annotator.models.rubric import names_of_domains
from annotator.stages import annotation, assignment, pii
from annotator.stages.annotation import IncompleteRating, ResponseRating
from annotator.stages.pii.redaction import redact
from annotator.stages.review import adjudicate, edits
from tests.annotator.api.test_work import form, leased, submitted
from tests.annotator.outputs.exporting.test_preferences import rows
from tests.builders import ATTRIBUTES, NOW, claimed, imported, make_task, rate
from tests.conftest import Cast
from tests.refusals import refusal

ASKED = {"ask_feedback": True, "ask_edit": True, "ask_language": True, "domains": ["General", "STEM"]}


def answers(lease: Any, **written: Any) -> dict[str, Any]:
    """A complete form of a project that asks for everything; `written` is added to what is said of each response."""
    body = form(lease, domain="STEM", language="en")
    for rating in body["ratings"]:
        rating |= {"feedback": "Short and right.", **written}
    return body


def edited(project: Project, user: User, text: str = "A better answer.", **fields: Any) -> Rating:
    """The user rates the next task and writes a better version of its first response."""
    held = claimed(project, user)
    first, *others = held.task.responses.all()
    ratings = {response.pk: ResponseRating(dict.fromkeys(ATTRIBUTES, 3)) for response in others}
    ratings[first.pk] = ResponseRating(dict.fromkeys(ATTRIBUTES, 1), edit=text, **fields)
    done = annotation.submit(held.pk, annotation.Submission(ratings), now=NOW)
    return Rating.objects.get(annotation=done.annotation, response=first)


# Asking ----------------------------------------------------------------------------------------------------


def test_a_lease_says_what_is_asked(alice: APIClient, project: Project) -> None:
    Project.objects.update(**ASKED)
    make_task(project)
    assert leased(alice)["asks"] == ["feedback", "edit", "domain", "language"]


def test_what_was_written_is_stored_and_answered(alice: APIClient, carol: APIClient, project: Project) -> None:
    Project.objects.update(**ASKED)
    make_task(project)
    body = answers(leased(alice), edit="A longer answer.", edit_summary="It explains.")
    assert submitted(alice, {"assignment": Annotation.objects.count() or _lease(alice)}, body).status_code == 201
    stored = Annotation.objects.get()
    assert (stored.domain, stored.language) == ("STEM", "en")
    assert set(stored.ratings.values_list("feedback", "edit", "edit_summary")) == {
        ("Short and right.", "A longer answer.", "It explains.")
    }
    (listed,) = carol.get("/api/v1/projects/talk/annotations/").json()["results"]
    assert (listed["domain"], listed["ratings"][0]["feedback"]) == ("STEM", "Short and right.")


def _lease(client: APIClient) -> int:
    number: int = leased(client)["assignment"]
    return number


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"domain": ""}, "domain"),
        ({"domain": "Law"}, "domain"),
        ({"language": ""}, "language"),
        ({"language": "klingonish"}, "language"),
    ],
)
def test_the_task_s_questions_are_to_be_answered(
    alice: APIClient, project: Project, change: dict[str, str], place: str
) -> None:
    Project.objects.update(**ASKED)
    make_task(project)
    lease = leased(alice)
    answer = submitted(alice, lease, answers(lease) | change)
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [place])


@pytest.mark.parametrize(
    "written",
    [
        {"feedback": ""},
        {"feedback": "  \n"},
        {"edit_summary": "Of nothing."},
        {"edit": "x" * (LONGEST_EDIT + 1)},
        {"feedback": "a\0b"},
    ],
)
def test_texts_are_refused_where_they_are_wrong(alice: APIClient, project: Project, written: dict[str, str]) -> None:
    Project.objects.update(**ASKED)
    make_task(project)
    lease = leased(alice)
    assert submitted(alice, lease, answers(lease, **written)).status_code == 400
    assert not Annotation.objects.exists()


def test_an_edit_changes_the_response(project: Project, cast: Cast) -> None:
    task = make_task(project)
    unchanged = task.responses.all()[0].text.replace(" ", "\n")
    with pytest.raises(IncompleteRating, match="does not change"):
        edited(project, cast.alice, unchanged)


def test_nobody_has_to_write_an_edit(alice: APIClient, project: Project) -> None:
    Project.objects.update(**ASKED)
    make_task(project)
    lease = leased(alice)
    assert submitted(alice, lease, answers(lease)).status_code == 201


def test_a_domain_is_refused_where_none_is_asked(alice: APIClient, project: Project) -> None:
    make_task(project)
    lease = leased(alice)
    answer = submitted(alice, lease, form(lease, domain="STEM"))
    assert "asks for no domain" in answer.json()["detail"]


def test_the_same_again_is_no_revision_and_another_text_is(alice: APIClient, project: Project) -> None:
    Project.objects.update(**ASKED)
    make_task(project)
    lease = leased(alice)
    assert [submitted(alice, lease, answers(lease)).status_code for _ in range(2)] == [201, 200]
    submitted(alice, lease, answers(lease, feedback="On reflection, wrong."))
    assert Annotation.objects.count() == 2


def test_a_rating_without_new_answers_keeps_the_hash_that_it_had(project: Project) -> None:
    """It would otherwise become a revision when it is sent again after an upgrade."""
    plain = annotation.Submission({7: ResponseRating({"helpfulness": 3}, confidence=1)}, preference=-1)
    assert plain.content_hash() == "8ccb7e6c6aa99340e88e7467dc4dd7c880463abc0be20a22d19aa9201fafaf6a"


def test_a_reviewer_settles_without_writing(project: Project, cast: Cast) -> None:
    Project.objects.update(base_annotators=1, max_annotators=1, keep=1)
    project.refresh_from_db()
    task = make_task(project)
    rate(project, cast.alice)
    Project.objects.update(**ASKED, ask_confidence=True)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in task.responses.all()}
    assert adjudicate(task.pk, scores=scores, reason="clear", by=cast.carol, now=NOW).scores


# The project's settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize("domains", [["One"], ["A", "a"], [" A", "B"], ["A", "B\n"], [str(n) for n in range(13)]])
def test_domains_that_nobody_could_choose_from_are_refused(project: Project, domains: list[str]) -> None:
    with pytest.raises(ValidationError):
        names_of_domains(domains)
    with pytest.raises(InvalidProject):
        project_settings.change(project, {"domains": domains})


def test_a_manager_asks_for_them_over_rest(carol: APIClient, project: Project) -> None:
    assert carol.patch("/api/v1/projects/talk/", ASKED).status_code == 200
    project.refresh_from_db()
    assert {name: getattr(project, name) for name in ASKED} == ASKED


def test_a_summary_without_an_edit_is_no_row(project: Project, cast: Cast) -> None:
    make_task(project)
    rating = edited(project, cast.alice)
    with pytest.raises(IntegrityError), transaction.atomic():
        Rating.objects.filter(pk=rating.pk).update(edit="", edit_summary="It explains.")


# The page --------------------------------------------------------------------------------------------------


def page_form(mine: Any, **written: str) -> dict[str, Any]:
    body: dict[str, Any] = {"domain": "STEM", "language": "German", "active_seconds": "3"}
    for response in mine.task.responses.all():
        body |= {f"{key}-{response.public_id}": "3" for key in ATTRIBUTES}
        body |= {f"written-{name}-{response.public_id}": text for name, text in written.items()}
    return body


def test_the_page_asks_and_stores(client: Client, project: Project, cast: Cast) -> None:
    Project.objects.update(**ASKED)
    task = make_task(project)
    client.force_login(cast.alice)
    page = client.get("/projects/talk/annotate/").content.decode()
    assert "What is good and bad about it?" in page
    assert "Write a better version" in page
    mine = task.assignments.get()
    client.post(f"/assignments/{mine.pk}/submit/", page_form(mine, feedback="Clear.", edit="Better."))
    stored = Annotation.objects.get()
    assert (stored.domain, stored.language) == ("STEM", "de")
    assert set(stored.ratings.values_list("feedback", "edit")) == {("Clear.", "Better.")}


def test_the_page_says_which_texts_are_missing(client: Client, project: Project, cast: Cast) -> None:
    Project.objects.update(**ASKED)
    task = make_task(project)
    client.force_login(cast.alice)
    client.get("/projects/talk/annotate/")
    mine = task.assignments.get()
    answer = client.post(f"/assignments/{mine.pk}/submit/", page_form(mine, summary="Of nothing.") | {"domain": ""})
    text = answer.content.decode()
    assert answer.status_code == 422
    for said in (
        "Please answer “Domain”",
        "please answer “What is good and bad about it?”",
        "better version is missing",
    ):
        assert said in text
    assert not Annotation.objects.exists()


def test_an_edit_that_was_only_begun_is_no_edit(client: Client, project: Project, cast: Cast) -> None:
    Project.objects.update(ask_edit=True)
    task = make_task(project, responses=1)
    client.force_login(cast.alice)
    client.get("/projects/talk/annotate/")
    mine = task.assignments.get()
    body = page_form(mine, edit=task.responses.get().text + "\r\n")
    del body["domain"], body["language"]
    client.post(f"/assignments/{mine.pk}/submit/", body)
    assert Rating.objects.get().edit == ""


def test_the_annotator_finds_their_texts_again(client: Client, project: Project, cast: Cast) -> None:
    make_task(project)
    rating = edited(project, cast.alice, feedback="Too short.", edit_summary="Longer.")
    Project.objects.update(ask_feedback=True, ask_edit=True)
    client.force_login(cast.alice)
    page = client.get(f"/assignments/{rating.annotation.assignment_id}/revise/").content.decode()
    assert all(text in page for text in ("Too short.", "A better answer.", "Longer."))


def test_reviewers_read_them(client: Client, project: Project, cast: Cast) -> None:
    task = make_task(project)
    edited(project, cast.alice, feedback="Too short.", edit_summary="Longer.")
    client.force_login(cast.carol)
    for address in (f"/projects/talk/review/{task.public_id}/", f"/projects/talk/data/tasks/{task.public_id}/"):
        page = client.get(address).content.decode()
        assert all(text in page for text in ("Too short.", "A better answer.", "Longer."))


# Edits that become responses -------------------------------------------------------------------------------


def test_an_edit_becomes_a_task_with_the_response_that_it_improves(project: Project, cast: Cast) -> None:
    task = make_task(project, "one", lang="de", metadata={"domain": "STEM"})
    rating = edited(project, cast.alice)
    assert edits.make_tasks(project, [rating.pk], by=cast.carol, now=NOW) == 1
    made = Task.objects.exclude(pk=task.pk).get()
    original, better = made.responses.all()
    assert (original.text, better.text) == (task.responses.all()[0].text, "A better answer.")
    assert (original.model, better.model, better.edit_of) == ("model-0", "", rating)
    assert (made.conversation, made.language) == (task.conversation, "de")
    assert made.metadata == {"edit_of": "one", "domain": "STEM", "lang": "de"}


def test_it_becomes_a_response_once(project: Project, cast: Cast) -> None:
    make_task(project)
    rating = edited(project, cast.alice)
    assert [edits.make_tasks(project, [rating.pk], by=cast.carol, now=NOW) for _ in range(2)] == [1, 0]
    with pytest.raises(IntegrityError), transaction.atomic():
        Response.objects.filter(edit_of=None).update(edit_of=rating)


def test_the_author_does_not_get_the_task(project: Project, cast: Cast) -> None:
    make_task(project)
    rating = edited(project, cast.alice)
    edits.make_tasks(project, [rating.pk], by=cast.carol, now=NOW)
    assert assignment.claim(project, cast.alice, now=NOW).assignment is None
    rate(project, cast.bob)
    assert claimed(project, cast.bob).task.external_id == f"edit-{rating.pk}-of-{rating.response.task.external_id}"


def test_the_import_of_edits_can_be_taken_back(project: Project, cast: Cast, carol: APIClient) -> None:
    make_task(project)
    rating = edited(project, cast.alice)
    edits.make_tasks(project, [rating.pk], by=cast.carol, now=NOW)
    newest = Import.objects.latest("pk")
    assert carol.delete(f"/api/v1/projects/talk/imports/{newest.pk}/").status_code == 200
    assert not Response.objects.exclude(edit_of=None).exists()
    assert edits.make_tasks(project, [rating.pk], by=cast.carol, now=NOW) == 1


def test_only_edits_that_count_are_listed(project: Project, cast: Cast) -> None:
    make_task(project)
    rating = edited(project, cast.alice)
    assert list(edits.edits_of(project, reader=cast.carol)) == [rating]
    assert not edits.edits_of(project, reader=cast.bob).filter(pk=0)
    rating.annotation.assignment.counts = False
    rating.annotation.assignment.slot = None
    rating.annotation.assignment.save()
    assert not edits.edits_of(project, reader=cast.carol)
    with refusal("no_such_edit"):
        edits.make_tasks(project, [rating.pk], by=cast.carol, now=NOW)


def test_a_manager_lists_them_and_has_them_rated_over_rest(carol: APIClient, project: Project, cast: Cast) -> None:
    make_task(project, "one")
    rating = edited(project, cast.alice, edit_summary="Longer.")
    (listed,) = carol.get("/api/v1/projects/talk/edits/").json()["results"]
    assert (listed["task"], listed["edit"], listed["summary"], listed["rated_as"]) == (
        "one",
        "A better answer.",
        "Longer.",
        None,
    )
    answer = carol.post("/api/v1/projects/talk/edits/", {"edits": [rating.pk]})
    assert (answer.status_code, answer.json()) == (201, {"created": 1})
    (listed,) = carol.get("/api/v1/projects/talk/edits/").json()["results"]
    assert listed["rated_as"] == f"edit-{rating.pk}-of-one"
    for rated, number in (("true", 1), ("false", 0)):
        assert len(carol.get(f"/api/v1/projects/talk/edits/?rated={rated}&task=one").json()["results"]) == number
    assert AuditEntry.objects.filter(action="tasks.imported").count() == 2


def test_a_manager_has_them_rated_on_the_page(client: Client, project: Project, cast: Cast) -> None:
    Project.objects.update(ask_edit=True)
    make_task(project, "one")
    rating = edited(project, cast.alice)
    client.force_login(cast.carol)
    assert "A better answer." in client.get("/projects/talk/data/edits/").content.decode()
    page = client.post("/projects/talk/data/edits/", {"edits": [rating.pk]}, follow=True).content.decode()
    assert "1 edit is now rated." in page
    assert f"edit-{rating.pk}-of-one" in page
    assert "Tick the edits" in client.post("/projects/talk/data/edits/", {}, follow=True).content.decode()


# Out, and erased -------------------------------------------------------------------------------------------


def test_they_leave_with_the_annotations(project: Project, cast: Cast) -> None:
    make_task(project)
    edited(project, cast.alice, feedback="Too short.", edit_summary="Longer.")
    row = next(row for row in rows(project, "annotations") if row["position"] == 0)
    assert (row["feedback"], row["edit"], row["edit_summary"]) == ("Too short.", "A better answer.", "Longer.")


def test_helpsteer3_s_preferences_leave_with_feedback_and_the_domain(project: Project, cast: Cast) -> None:
    Project.objects.update(**ASKED, ask_preference=True, base_annotators=1, max_annotators=1, keep=1)
    project.refresh_from_db()
    make_task(project, metadata={"domain": "General"})
    held = claimed(project, cast.alice)
    first, second = held.task.responses.all()
    ratings = {
        first.pk: ResponseRating(dict.fromkeys(ATTRIBUTES, 3), feedback="Of the first."),
        second.pk: ResponseRating(dict.fromkeys(ATTRIBUTES, 1), feedback="Of the second."),
    }
    answer = annotation.Submission(ratings, preference=-2, domain="STEM", language="de")
    annotation.submit(held.pk, answer, now=NOW)
    (row,) = rows(project, "helpsteer3")
    assert (row["domain"], row["language"]) == ("STEM", "de")
    (given,) = row["individual_preference"]
    assert (given["feedback1"], given["feedback2"]) == ("Of the first.", "Of the second.")


def test_edits_leave_as_helpsteer3_published_them_and_come_in_again(project: Project, cast: Cast) -> None:
    task = make_task(project, "one", lang="de")
    edited(project, cast.alice, feedback="Too short.", edit_summary="Longer.")
    (row,) = rows(project, "helpsteer3_edit")
    assert row == {
        "task": "one",
        "response": "1",
        "domain": "",
        "language": "de",
        "context": task.conversation,
        "original_response": task.responses.all()[0].text,
        "edited_response": "A better answer.",
        "change_summary": "Longer.",
        "feedback": ["Too short."],
    }
    assert imported(project, row).created == 1


def test_what_is_erased_goes_from_every_text(project: Project, cast: Cast) -> None:
    task = make_task(project, prompt="Call Zebediah.")
    rating = edited(project, cast.alice, "Call Zebediah Q.", feedback="About Zebediah.", edit_summary="Zebediah added.")
    edits.make_tasks(project, [rating.pk], by=cast.carol, now=NOW)
    held = claimed(project, cast.bob)
    assert held.task == task
    annotation.skip(held.pk, reason="pii", now=NOW)
    redact(task.pk, pii.redaction.Choice(spans=[], quotes=["Zebediah"]), now=NOW)
    assert "Zebediah" not in str(list(Rating.objects.values_list("feedback", "edit", "edit_summary")))
    assert "Zebediah" not in str(list(Response.objects.values_list("text")))
    assert "Zebediah" not in str(list(Task.objects.values_list("conversation")))
