"""What a manager decides on quarantined tasks in the admin."""

import re

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client
from django.urls import reverse

from annotator import annotation
from annotator.models import Assignment, Project, Report, Task
from tests.annotator.pii.test_redaction import MAIL, SECRET, find_in_database
from tests.builders import NOW, claimed, make_member, make_project, make_task, make_user
from tests.conftest import Cast

LIST = reverse("admin:annotator_task_changelist")


@pytest.fixture
def carol(cast: Cast, client: Client) -> Client:
    cast.carol.is_staff = True
    cast.carol.save()
    client.force_login(cast.carol)
    return client


@pytest.fixture
def secret(project: Project, cast: Cast) -> Task:
    task = make_task(project, "t-1", prompt=SECRET)
    annotation.skip(claimed(project, cast.alice).pk, reason="pii", quotes=[MAIL], now=NOW)
    return task


def redact_url(*tasks: Task) -> str:
    return reverse("admin:annotator_task_redact") + "?" + "&".join(f"task={task.pk}" for task in tasks)


def confirmed(client: Client, task: Task, **data: object) -> dict[str, object]:
    """The form as the page with the preview of this choice sends it."""
    sent = {f"task-{task.pk}-{name}": value for name, value in data.items()}
    (form,) = client.post(redact_url(task), sent).context["forms"]
    return sent | {f"task-{task.pk}-previewed": form.key(), "redact": "1", "understood": "1"}


def test_the_page_of_a_task_shows_what_is_marked_and_by_whom(carol: Client, secret: Task) -> None:
    page = carol.get(reverse("admin:annotator_task_change", args=[secret.pk])).content.decode()
    assert f">{MAIL}</bdi>" in page
    assert "(alice)" in page
    assert "False alarm: back to the queue" in page


@pytest.mark.parametrize(("decision", "state"), [("release", "open"), ("retire", "retired")])
def test_the_buttons_decide(carol: Client, secret: Task, decision: str, state: str) -> None:
    carol.post(reverse("admin:annotator_task_decide", args=[secret.pk]), {"decision": decision})
    secret.refresh_from_db()
    assert secret.state == state


@pytest.mark.parametrize("decision", ["", "retired"])
def test_a_word_that_is_none_of_the_buttons_decides_nothing(carol: Client, secret: Task, decision: str) -> None:
    carol.post(reverse("admin:annotator_task_decide", args=[secret.pk]), {"decision": decision})
    secret.refresh_from_db()
    assert secret.state == Task.State.QUARANTINED


def test_a_report_that_was_decided_is_no_reason_any_more(carol: Client, secret: Task) -> None:
    held = Assignment.objects.get(task=secret)
    Report.objects.create(assignment=held, category="harmful", note="Long ago.", created_at=NOW, decision="dismissed")
    Report.objects.create(assignment=held, category="bias", note="Just now.", created_at=NOW)
    page = carol.get(reverse("admin:annotator_task_change", args=[secret.pk])).content.decode()
    assert "Just now." in page
    assert "Long ago." not in page


def test_a_link_alone_decides_nothing(carol: Client, secret: Task) -> None:
    carol.get(reverse("admin:annotator_task_decide", args=[secret.pk]) + "?decision=release")
    secret.refresh_from_db()
    assert secret.state == Task.State.QUARANTINED


def test_the_preview_has_everything_ticked_and_changes_nothing(carol: Client, secret: Task) -> None:
    page = carol.get(redact_url(secret)).content.decode()
    assert page.count("checked") >= 1
    assert "Write to <mark" in page
    assert find_in_database(MAIL) != []


def test_what_was_previewed_is_redacted(carol: Client, secret: Task) -> None:
    spans = list(secret.pii_spans.values_list("pk", flat=True))
    answer = carol.post(redact_url(secret), confirmed(carol, secret, spans=spans), follow=True)
    assert (
        "Earlier snapshots that contain the text, and their models, are marked. A manager can erase them."
        in answer.content.decode()
    )
    assert find_in_database(MAIL) == []
    assert LogEntry.objects.get().change_message == "Redacted personal information."


def test_nothing_is_erased_before_its_loss_is_confirmed(carol: Client, secret: Task) -> None:
    sent = confirmed(carol, secret, spans=list(secret.pii_spans.values_list("pk", flat=True)))
    del sent["understood"]
    answer = carol.post(redact_url(secret), sent)
    assert "First confirm that you know what is lost" in answer.content.decode()
    assert find_in_database(MAIL) != []


def buttons(page: str) -> list[str]:
    """What the quarantine offers at once, in its order; what is coloured has a star."""
    shown = page[page.index("In quarantine") :].split("</form>", maxsplit=1)[0]
    controls = re.findall(r'class="([^"]*justify-center[^"]*)"[^>]*>\s*(.*?)\s*</(?:button|a)>', shown, re.DOTALL)
    return [
        text.split(":")[0] + ("*" if "bg-primary-600" in style or "bg-red-600" in style else "")
        for style, text in controls
    ]


def test_redacting_is_the_last_choice_and_no_coloured_one(carol: Client, secret: Task) -> None:
    page = carol.get(reverse("admin:annotator_task_change", args=[secret.pk])).content.decode()
    assert buttons(page) == ["False alarm*", "Justified", "Redact …"]


def test_redacting_is_not_offered_at_once_for_a_report_without_personal_information(
    carol: Client, cast: Cast, project: Project
) -> None:
    task = make_task(project, "t-2")
    annotation.report(claimed(project, cast.alice).pk, category="bias", note="Look.", now=NOW)
    page = carol.get(reverse("admin:annotator_task_change", args=[task.pk])).content.decode()
    assert buttons(page) == ["False alarm*", "Justified"]
    assert "Does it contain personal information?" in page


def test_another_choice_is_shown_again_first(carol: Client, secret: Task) -> None:
    spans = list(secret.pii_spans.values_list("pk", flat=True))
    sent = confirmed(carol, secret, spans=spans) | {f"task-{secret.pk}-quotes": "Ola Nord"}
    answer = carol.post(redact_url(secret), sent)
    assert "The selection has changed" in answer.content.decode()
    assert find_in_database(MAIL) != []


def test_more_can_be_named(carol: Client, secret: Task) -> None:
    carol.post(redact_url(secret), confirmed(carol, secret, quotes="Ola Nord\n"))
    assert find_in_database("Ola Nord") == []


def test_a_quote_that_is_nowhere_is_named(carol: Client, secret: Task) -> None:
    answer = carol.post(redact_url(secret), {f"task-{secret.pk}-quotes": "Kari", "redact": "1", "understood": "1"})
    assert "“Kari” is not in the text" in answer.content.decode()


def test_the_action_leads_to_the_preview_of_the_quarantined(carol: Client, secret: Task, project: Project) -> None:
    fine = make_task(project, "fine")
    answer = carol.post(LIST, {"action": "redact", "_selected_action": [secret.pk, fine.pk]})
    assert answer.headers["Location"] == redact_url(secret)


def test_tasks_of_other_projects_are_out_of_reach(carol: Client, cast: Cast) -> None:
    other = make_project("other")
    task = make_task(other)
    Task.objects.update(state=Task.State.QUARANTINED)
    assert carol.get(redact_url(task)).status_code == 404
    carol.post(reverse("admin:annotator_task_decide", args=[task.pk]), {"decision": "release"})
    task.refresh_from_db()
    assert task.state == Task.State.QUARANTINED


def test_annotators_do_not_get_there(secret: Task, client: Client, project: Project) -> None:
    frank = make_user("frank")
    make_member(project, frank)
    client.force_login(frank)
    assert client.get(redact_url(secret)).status_code == 302
