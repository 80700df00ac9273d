"""One's own annotations: seen by nobody else, changed while their task is open."""

import pytest
from django.test import Client

from annotator.managing.guidelines import publish_guidelines
from annotator.models import Annotation, Project, Task
from annotator.stages.review import judge
from tests.builders import ATTRIBUTES, NOW, claimed, make_task, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(cast: Cast, client: Client) -> Client:
    client.force_login(cast.alice)
    return client


def form(task: Task, level: int) -> dict[str, str]:
    return {f"{key}-{response.public_id}": str(level) for response in task.responses.all() for key in ATTRIBUTES}


def test_the_history_lists_ones_own_work_only(project: Project, cast: Cast, client: Client) -> None:
    make_task(project, prompt="Which bird is this?")
    rate(project, cast.bob)
    assert b"Which bird" not in client.get("/projects/talk/history/").content
    rate(project, cast.alice)
    assert b"Which bird" in client.get("/projects/talk/history/").content


def test_the_history_comes_in_pages(project: Project, cast: Cast, client: Client) -> None:
    for number in range(27):
        make_task(project, prompt=f"Question {number}.")
        rate(project, cast.alice)
    first = client.get("/projects/talk/history/").content.decode()
    older = client.get("/projects/talk/history/", {"before": first.split("?before=")[1].split('"')[0]}).content.decode()
    assert ("Question 26." in first, "Question 1." in first) == (True, False)
    assert ("Question 1." in older, "Question 2." in older) == (True, False)


def test_a_list_costs_the_same_for_many_rows(
    project: Project, cast: Cast, client: Client, django_assert_max_num_queries: object
) -> None:
    for _ in range(20):
        make_task(project)
        rate(project, cast.alice)
    with django_assert_max_num_queries(8):  # type: ignore[operator]
        client.get("/projects/talk/history/")


def test_a_change_is_a_revision(project: Project, cast: Cast, client: Client) -> None:
    task = make_task(project)
    made = rate(project, cast.alice, 3).annotation
    page = f"/assignments/{made.assignment_id}/revise/"
    assert client.get(page).content.count(b"checked") == 10
    assert client.post(page, form(task, 1)).status_code == 302
    current = Annotation.objects.get(is_current=True)
    assert (current.revision, current.ratings.first().scores["helpfulness"]) == (2, 1)  # type: ignore[union-attr]
    assert Annotation.objects.count() == 2


def test_the_same_again_is_no_revision(project: Project, cast: Cast, client: Client) -> None:
    task = make_task(project)
    made = rate(project, cast.alice, 3).annotation
    client.post(f"/assignments/{made.assignment_id}/revise/", form(task, 3))
    assert Annotation.objects.count() == 1


def test_an_incomplete_change_is_refused(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    made = rate(project, cast.alice).annotation
    answer = client.post(f"/assignments/{made.assignment_id}/revise/", {"active_seconds": "3"})
    assert answer.status_code == 422
    assert Annotation.objects.count() == 1


def test_a_closed_task_is_only_to_be_read(project: Project, cast: Cast, client: Client) -> None:
    task = make_task(project)
    made, *_ = [rate(project, user).annotation for user in cast.annotators]
    page = f"/assignments/{made.assignment_id}/revise/"
    assert b"can no longer be changed" in client.get(page).content
    answer = client.post(page, form(task, 0), follow=True)
    assert b"This task is complete" in answer.content
    assert Annotation.objects.filter(assignment=made.assignment).count() == 1


def test_a_preference_is_shown_as_it_was_given(project: Project, cast: Cast, client: Client) -> None:
    Project.objects.update(ask_preference=True)
    for _ in range(4):  # the order of the responses is drawn
        task = make_task(project)
        Task.objects.exclude(pk=task.pk).delete()
        made = rate(project, cast.alice, preference=-2).annotation
        page = client.get(f"/assignments/{made.assignment_id}/revise/").content.decode()
        chosen = next(line for line in page.split("<input") if 'name="preference"' in line and "checked" in line)
        assert 'value="-2"' in chosen


def test_a_rejected_one_is_shown_with_the_reviewers_word_and_stays(
    project: Project, cast: Cast, client: Client
) -> None:
    task = make_task(project)
    made = rate(project, cast.alice).annotation
    judge(made.assignment_id, decision="rejected", comment="The wrong way round.", by=cast.carol, now=NOW)
    for page in ("/projects/talk/history/", f"/assignments/{made.assignment_id}/revise/"):
        said = client.get(page).content.decode()
        assert ("Rejected by a reviewer" in said, "The wrong way round." in said, "can be changed" in said) == (
            True,
            True,
            False,
        )
    answer = client.post(f"/assignments/{made.assignment_id}/revise/", form(task, 0), follow=True)
    assert "A reviewer has rejected this rating" in answer.content.decode()


def test_an_accepted_one_is_shown_as_that(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    made = rate(project, cast.alice).annotation
    judge(made.assignment_id, decision="accepted", comment="Good work.", by=cast.carol, now=NOW)
    said = client.get("/projects/talk/history/").content.decode()
    assert "Accepted by a reviewer" in said
    assert "Good work." in said
    assert "can be changed" in said


def test_what_was_never_rated_has_no_history(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    assert client.get(f"/assignments/{held.pk}/revise/").status_code == 404


def test_nobody_revises_for_somebody_else(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    made = rate(project, cast.bob).annotation
    assert client.get(f"/assignments/{made.assignment_id}/revise/").status_code == 404


def submit_by_htmx(client: Client, project: Project, cast: Cast) -> str:
    """The address that the answer sends the browser to, if any."""
    held = claimed(project, cast.alice)
    answer = client.post(f"/assignments/{held.pk}/submit/", form(held.task, 3), headers={"HX-Request": "true"})
    return str(answer.headers.get("HX-Redirect", ""))


def test_new_guidelines_come_before_the_next_task_of_an_open_page(project: Project, cast: Cast, client: Client) -> None:
    for _ in range(2):
        make_task(project)
    assert submit_by_htmx(client, project, cast) == ""
    publish_guidelines(project, "# New")
    assert submit_by_htmx(client, project, cast) == "/projects/talk/guidelines/"


def test_a_test_that_is_asked_for_comes_before_the_next_task(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    held = claimed(project, cast.alice)
    Project.objects.update(qualification_required=True)
    answer = client.post(f"/assignments/{held.pk}/submit/", form(held.task, 3), headers={"HX-Request": "true"})
    assert answer.headers["HX-Redirect"] == "/projects/talk/qualification/"
    assert Annotation.objects.count() == 1


# Previous and next -----------------------------------------------------------------------------------------


def revise_address(made: Annotation) -> str:
    return f"/assignments/{made.assignment_id}/revise/"


def test_previous_is_the_rating_submitted_last(project: Project, cast: Cast, client: Client) -> None:
    for _ in range(3):
        make_task(project)
    assert b"/revise/" not in client.get("/projects/talk/annotate/").content
    make_task(project)
    first, second = rate(project, cast.alice).annotation, rate(project, cast.alice).annotation
    page = client.get("/projects/talk/annotate/").content.decode()
    assert f"{revise_address(second)}?next=/projects/talk/annotate/" in page
    assert revise_address(first) not in page


def test_previous_is_offered_only_while_it_may_be_changed(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    made = rate(project, cast.alice).annotation
    make_task(project)
    judge(made.assignment_id, decision="rejected", comment="No.", by=cast.carol, now=NOW)
    assert revise_address(made) not in client.get("/projects/talk/annotate/").content.decode()


def test_from_a_rating_next_leads_on_and_at_last_back_to_work(project: Project, cast: Cast, client: Client) -> None:
    for _ in range(3):
        make_task(project)
    first, second = rate(project, cast.alice).annotation, rate(project, cast.alice).annotation
    rating = "?next=/projects/talk/annotate/"
    earlier = client.get(revise_address(first) + rating).content.decode()
    later = client.get(revise_address(second) + rating).content.decode()
    assert f'href="{revise_address(second)}{rating}"' in earlier
    assert f'href="{revise_address(first)}{rating}"' in later
    assert '<a class="button next" href="/projects/talk/annotate/"' in later


def test_a_change_leads_back_to_where_one_came_from(project: Project, cast: Cast, client: Client) -> None:
    task = make_task(project)
    made = rate(project, cast.alice, 3).annotation
    answer = client.post(f"{revise_address(made)}?next=/projects/talk/annotate/", form(task, 1))
    assert answer.headers["Location"] == "/projects/talk/annotate/"
    answer = client.post(f"{revise_address(made)}?next=https://example.org/", form(task, 2))
    assert answer.headers["Location"] == "/projects/talk/history/"


# Personal information found later --------------------------------------------------------------------------


def test_a_rating_is_withdrawn_on_its_own_page(project: Project, cast: Cast, client: Client) -> None:
    task = make_task(project)
    made = rate(project, cast.alice).annotation
    assert "Skip: personal information" in client.get(revise_address(made)).content.decode()
    answer = client.post(f"/assignments/{made.assignment_id}/skip/", {"reason": "pii"}, follow=True)
    assert "Your rating has been withdrawn" in answer.content.decode()
    assert Task.objects.get(pk=task.pk).state == Task.State.QUARANTINED
    assert client.get(revise_address(made)).status_code == 404
    assert b"You have not rated anything" in client.get("/projects/talk/history/").content


def test_a_quote_that_stands_nowhere_comes_back_on_that_page(project: Project, cast: Cast, client: Client) -> None:
    make_task(project)
    made = rate(project, cast.alice).annotation
    sent = {"reason": "pii", "quotes": "Kari Nordmann"}
    answer = client.post(f"/assignments/{made.assignment_id}/skip/", sent)
    assert answer.status_code == 422
    assert "Kari Nordmann" in answer.content.decode()
    assert Annotation.objects.current().count() == 1


def test_an_annotation_knows_its_project_and_annotator(project: Project, cast: Cast) -> None:
    make_task(project)
    done = rate(project, cast.alice).annotation
    assert (done.assignment.task.project_id, done.assignment.annotator_id) == (project.pk, cast.alice.pk)
    stored = Annotation.objects.get(pk=done.pk)
    assert (stored.project_id, stored.annotator_id) == (project.pk, cast.alice.pk)
