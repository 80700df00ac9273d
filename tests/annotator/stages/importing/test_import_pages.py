"""Data > Import on the pages: who may, what they show, and that each button does what it says."""

import html
import io
import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from django.conf import settings
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from annotator.infrastructure.background import heartbeats
from annotator.infrastructure.background.heartbeats import QueueHealth
from annotator.models import Import, ImportJob, ImportMapping, Project, Role, Task, User
from annotator.pages.data import data_import
from annotator.stages.importing import jobs, kept_mappings, withdrawal
from annotator.stages.importing.mappings import guessed, read_mapping
from tests.builders import (
    ATTRIBUTES,
    NOW,
    imported,
    json_lines,
    label_row,
    make_import,
    make_member,
    make_project,
    rate,
    task_row,
)
from tests.conftest import Cast

pytestmark = pytest.mark.usefixtures("workers")

State = ImportJob.State
CSV = b"uid,question,answer_1,answer_2,topic\nq1,Name a prime.,7,8,numbers\nq2,Name a colour.,red,,art\n"
UNKNOWN = b"a,b,c\nName a prime.,7,8\n"
PAIR = {"prompt": "question", "responses": [{"text": "answer_1"}, {"text": "answer_2"}]}
PAGE = "/projects/talk/data/import/"


def uploaded(project: Project, content: bytes, name: str = "rows.csv") -> ImportJob:
    user = User.objects.get(username="carol")
    return jobs.upload(project, io.BytesIO(content).read, file_name=name, by=user, now=NOW)


def address(job: ImportJob, what: str = "") -> str:
    return f"/projects/talk/data/imports/{job.pk}/{what}"


def text(client: Client, place: str, **options: Any) -> str:
    answer = client.get(place, **options)
    assert answer.status_code == 200, answer.content
    return answer.content.decode()


def send(client: Client, content: bytes, name: str = "rows.csv") -> Any:
    return client.post(PAGE, {"file": SimpleUploadedFile(name, content)})


# Access ----------------------------------------------------------------------------------------------------


def test_a_job_of_another_project_is_not_found(project: Project, pages: Client, cast: Cast) -> None:
    other = make_project("other")
    make_member(other, cast.carol, role=Role.MANAGER)
    job, row = uploaded(other, CSV), make_import(other)
    kept = kept_mappings.keep(other, "theirs", read_mapping(PAIR), by=None)
    for name, pk in (("import-job", job.pk), ("import-errors", job.pk), ("take-back", row)):
        assert pages.get(reverse(name, args=["talk", pk])).status_code == 404
    assert pages.post(reverse("delete-mapping", args=["talk", kept.pk])).status_code == 404


# The list --------------------------------------------------------------------------------------------------


def test_an_empty_project_explains_the_formats(pages: Client) -> None:
    page = text(pages, PAGE)
    assert "Nothing has been imported yet" in page
    assert "A task is a conversation" in page


def test_the_examples_of_the_empty_page_can_be_imported(project: Project, pages: Client) -> None:
    for example in re.findall(r"<code>(.*?)</code>", text(pages, PAGE), re.DOTALL):
        send(pages, html.unescape(example).encode())
    rows, table = ImportJob.objects.order_by("pk")
    assert "Recognised: task rows" in text(pages, address(rows))
    assert "Name a prime." in text(pages, address(table))


def test_imports_are_listed_with_their_counts(project: Project, pages: Client) -> None:
    make_import(project, task_row("a"), task_row("b"))
    page = text(pages, PAGE)
    assert "Nothing has been imported yet" not in page
    assert reverse("take-back", args=["talk", Import.objects.get().pk]) in page


def test_the_list_is_paged(project: Project, pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("annotator.pages.data.data_import.PAGE", 2)
    numbers = [make_import(project) for _ in range(3)]
    assert f"?before={numbers[1]}" in text(pages, PAGE)
    older = text(pages, f"{PAGE}?before={numbers[1]}")
    assert (f"take-back-{numbers[0]}" in older, f"take-back-{numbers[2]}" in older) == (True, False)
    assert text(pages, f"{PAGE}?before=%00x{'9' * 50}".replace("%00", "")).count("take-back-") == 2


def test_the_list_is_read_again_only_while_a_job_is_under_way(project: Project, pages: Client) -> None:
    job = uploaded(project, json_lines(task_row("a")).getvalue())
    assert "hx-trigger" not in text(pages, "/projects/talk/data/imports/")
    jobs.start(job, dry_run=False, mapping=None)
    for place in ("/projects/talk/data/imports/", address(job)):
        assert 'hx-trigger="every 2s"' in text(pages, place)
    jobs.run_waiting()
    for place in ("/projects/talk/data/imports/", address(job)):
        assert "hx-trigger" not in text(pages, place)


def test_progress_is_shown_in_percent(project: Project, pages: Client) -> None:
    job = uploaded(project, CSV)
    ImportJob.objects.filter(pk=job.pk).update(
        state=State.WORKING, bytes_read=job.file_bytes // 2, created=1200, heartbeat_at=NOW
    )
    page = text(pages, address(job))
    assert 'max="100" value="49"' in page or 'max="100" value="50"' in page
    assert ("1,200 new" in page, "No heartbeat from the worker since" in page) == (True, True)


# Upload ----------------------------------------------------------------------------------------------------


def test_an_upload_leads_to_its_page(project: Project, pages: Client) -> None:
    answer = send(pages, json_lines(task_row("a", prompt="What *is* it?")).getvalue())
    assert (answer.status_code, answer.headers["Location"]) == (302, address(ImportJob.objects.get()))
    page = text(pages, answer.headers["Location"])
    assert "Recognised: task rows" in page
    assert "What <em>is</em> it?" in page
    assert not Task.objects.exists()


@pytest.mark.parametrize(("content", "why"), [(b"", "The file is empty"), (None, "Choose a file first")])
def test_the_page_says_why_it_takes_no_file(pages: Client, content: bytes | None, why: str) -> None:
    answer = send(pages, content) if content is not None else pages.post(PAGE)
    assert (answer.status_code, why in answer.content.decode()) == (422, True)


def test_the_page_refuses_a_file_in_the_language_of_the_reader(pages: Client, german: Mapping[str, str]) -> None:
    answer = pages.post(PAGE, {"file": SimpleUploadedFile("rows.csv", b"")}, headers=german)
    assert "Die Datei ist leer. Wählen Sie eine Datei mit mindestens einer Zeile." in answer.content.decode()


def test_a_file_that_cannot_be_read_says_so_on_its_page(pages: Client) -> None:
    page = text(pages, send(pages, "ä\n".encode("utf-16")).headers["Location"])
    assert ("The import failed" in page, "UTF-16" in page, "Check without importing" in page) == (True, True, False)


def test_a_file_beyond_the_limit_is_refused(pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "IMPORT_MAX_BYTES", 100)
    answer = send(pages, b"x" * 200)
    assert (answer.status_code, "larger than 100 bytes" in answer.content.decode()) == (413, True)
    assert not ImportJob.objects.exists()


def test_hostile_texts_stay_texts(project: Project, pages: Client) -> None:
    evil = "<script>alert(1)</script>"
    row = task_row("<b>id</b>", prompt=evil, metadata={evil: evil})
    job = uploaded(project, json_lines(row, {evil: 1}).getvalue(), name=f"{evil}.jsonl")
    page = text(pages, address(job)) + text(pages, PAGE)
    assert (evil in page, "<b>id" in page) == (False, False)


def test_any_names_in_metadata_are_shown(project: Project, pages: Client) -> None:
    names = {"items": "all of them", **{f"key-{number}": number for number in range(50)}}
    page = text(pages, address(uploaded(project, json_lines(task_row("a", metadata=names)).getvalue())))
    assert ("all of them" in page, "key-10" in page, "key-11" in page) == (True, True, False)


# Mapping ---------------------------------------------------------------------------------------------------


def test_names_of_columns_suggest_the_mapping(project: Project, pages: Client) -> None:
    page = text(pages, address(uploaded(project, CSV)))
    assert '<option value="question" selected>question</option>' in page
    assert ("Name a prime." in page, "Response B" in page, "answer_2 is empty" in page) == (True, True, True)


def test_unknown_columns_ask_for_a_mapping(project: Project, pages: Client) -> None:
    job = uploaded(project, UNKNOWN)
    page = text(pages, address(job))
    assert ("columns of this file are not known" in page, "Check without importing" in page) == (True, False)
    query = {"mapped": "1", "prompt": "a", "text_0": "b", "text_1": "c", "model_name_1": "m-2", "rest": "ignored"}
    page = text(pages, address(job), data=query)
    assert ("Name a prime." in page, "m-2" in page, "Check without importing" in page) == (True, True, True)
    assert 'name="text_2"' in page, "a row for one response more"


def test_htmx_gets_the_part_alone(project: Project, pages: Client) -> None:
    job = uploaded(project, CSV)
    part = text(pages, address(job), headers={"HX-Request": "true"})
    assert ("<html" in part, 'id="import-job"' in part) == (False, True)


@pytest.mark.parametrize(
    ("query", "why"),
    [
        (
            {"text_0": "b"},
            "or one for the conversation, or write one prompt for all rows.",
        ),
        ({"prompt": "a"}, "Choose the column of at least one response."),
        ({"prompt": "a", "text_0": "b", "model_0": "c", "model_name_0": "m"}, "not both"),
        ({"prompt": "no such column", "text_0": "b"}, "Select a valid choice"),
    ],
)
def test_a_mapping_that_is_not_complete_says_what_is_missing(
    project: Project, pages: Client, query: dict[str, str], why: str
) -> None:
    page = text(pages, address(uploaded(project, UNKNOWN)), data={"mapped": "1", "rest": "metadata", **query})
    assert (why in page, "Check without importing" in page) == (True, False)


def test_a_mapping_is_kept_and_offered_for_the_next_file(project: Project, pages: Client) -> None:
    job = uploaded(project, UNKNOWN)
    mapping = {"prompt": "a", "responses": [{"text": "b"}, {"text": "c"}]}
    answer = pages.post(address(job, "mapping/"), {"mapping": json.dumps(mapping), "name": "a & b"})
    assert answer.headers["Location"] == f"{address(job)}?kept=a+%26+b"
    assert "Name a prime." in text(pages, answer.headers["Location"])
    assert "a &amp; b" in text(pages, address(uploaded(project, UNKNOWN)))
    assert "a &amp; b (other columns)" in " ".join(text(pages, address(uploaded(project, CSV))).split())
    page = text(pages, f"{address(uploaded(project, CSV))}?kept=a+%26+b")
    assert "the file lacks" in page
    pages.post(f"/projects/talk/data/mappings/{ImportMapping.objects.get().pk}/delete/")
    assert not ImportMapping.objects.exists()


NESTED = {"q": {"text": "Name a prime."}, "a": [{"said": "7", "h": 1}, {"said": "8", "h": 2}], "v": "B", "who": "ann"}
WHOLE = {
    "prompt": "q.text",
    "responses": [
        {"text": f"a.{n}.said", "model_name": f"m-{n}", "id": f"a.{n}.said"}
        | {"scores": dict.fromkeys(ATTRIBUTES, f"a.{n}.h")}
        for n in (0, 1)
    ],
    "votes": [{"column": "v", "person": "who", "first": "A", "second": "B", "tie": "C"}],
    "person": "who",
    "lowest": 0,
    "questions": {"quality": "helpfulness"},
    "fitting_only": True,
    "rated_by": "bea",
}


def sent_again(page: str) -> dict[str, str]:
    """What a browser sends of the form of columns as it is on the page."""
    form = page[page.index('id="mapping"') : page.index("</form>", page.index('id="mapping"'))]
    fields = dict(re.findall(r'<input type="(?:text|hidden)" name="([^"]+)" value="([^"]*)"', form))
    for name, options in re.findall(r'<select name="([^"]+)".*?>(.*?)</select>', form, re.DOTALL):
        (fields[name],) = re.findall(r'value="([^"]*)" selected', options) or [""]
    return {name: html.unescape(value) for name, value in fields.items()}


def in_force(page: str) -> Any:
    (mapping,) = set(re.findall(r'name="mapping" value="([^"]+)"', page))
    return read_mapping(json.loads(html.unescape(mapping)))


def test_a_kept_mapping_is_sent_again_whole(project: Project, pages: Client) -> None:
    kept_mappings.keep(project, "ours", read_mapping(WHOLE), by=None)
    job = uploaded(project, json.dumps(NESTED).encode())
    page = text(pages, address(job), data={"kept": "ours"})
    assert ("(other columns)" in page, "Votes and scores are read from:" in page) == (False, True)
    whole = read_mapping(WHOLE | {"rated_by": "", "fitting_only": False})  # a box on the page says the latter
    assert in_force(page) == whole
    again = text(pages, address(job), data=sent_again(page))
    assert in_force(again) == whole
    assert 'name="fitting_only" value="1" checked' in again
    changed = text(pages, address(job), data=sent_again(again) | {"text_1": "who"})
    assert in_force(changed).judgements() == ["v", "a.0.h"], "scores belong to the column of a text"
    alone = text(pages, address(job), data=sent_again(again) | {"text_1": ""})
    assert ("Only tasks of two responses have votes." in alone, 'name="action"' in alone) == (True, False)
    assert "?own=1" in alone, "nobody has to guess how to begin anew"


@pytest.mark.parametrize("more", ["{", "[1]", "7", '{"prompt": "q"}', '{"prompt": 7, "responses": [{"text": "a"}]}'])
def test_a_hidden_mapping_of_nonsense_is_refused(project: Project, pages: Client, more: str) -> None:
    query = {"mapped": "1", "prompt": "a", "text_0": "b", "rest": "metadata", "more": more}
    page = text(pages, address(uploaded(project, UNKNOWN)), data=query)
    assert ('class="message error"' in page, 'name="action"' in page) == (True, False)


def test_a_mapping_of_nonsense_starts_nothing(project: Project, pages: Client) -> None:
    job = uploaded(project, CSV)
    for mapping in ("{", "[]", '{"prompt": "none", "responses": [{"text": "answer_1"}]}'):
        pages.post(address(job, "start/"), {"mapping": mapping, "action": "import"})
        pages.post(address(job, "mapping/"), {"mapping": mapping[:2], "name": "x"})
    job.refresh_from_db()
    assert (job.state, ImportMapping.objects.count()) == (State.UPLOADED, 0)


# Check, import, cancel, take back --------------------------------------------------------------------------


def test_a_check_and_then_the_import(project: Project, pages: Client) -> None:
    job = uploaded(project, CSV)
    pages.post(address(job, "start/"), {"mapping": json.dumps(PAIR), "action": "check"})
    assert "Waiting for the worker." in text(pages, address(job))
    jobs.run_waiting()
    page = text(pages, address(job))
    assert ("this was a check" in page, "Would be new" in page, "answer_2 is empty" in page) == (True, True, True)
    assert not Task.objects.exists()
    pages.post(address(job, "start/"), {"mapping": json.dumps(PAIR), "action": "import"})
    jobs.run_waiting()
    page = text(pages, address(job))
    assert ("The import is done" in page, "Check without importing" in page) == (True, False)
    assert Task.objects.get().metadata == {"uid": "q1", "topic": "numbers"}


def test_what_was_kept_aside_is_said_of_a_check_and_of_the_import(
    project: Project, pages: Client, client: Client
) -> None:
    row = {"prompt": "A?", "response_a": "7", "response_b": "8", "annotator1": 1, "input": "Below 9."}
    job = uploaded(project, json.dumps(row).encode())
    for action in ("check", "import"):
        pages.post(address(job, "start/"), {"action": action, "mapping": ""})
        jobs.run_waiting()
        page = html.unescape(text(pages, address(job)))
        assert "they are kept as metadata: annotator1." in page
        assert "Shown as part of the prompt: input." in page
        job.refresh_from_db()
        said = client.get(f"/api/v1/projects/talk/import-jobs/{job.pk}/").json()["notes"]
        assert [(note["line"], note["rows"]) for note in said] == [(1, 1), (1, 1)]


def test_errors_are_downloaded_without_formulas(project: Project, pages: Client) -> None:
    rows = [{"=cmd()": 1, "messages": []}, {**task_row("a"), "priority": "=1+1"}]
    job = uploaded(project, json_lines(*rows).getvalue())
    jobs.start(job, dry_run=True, mapping=None)
    jobs.run_waiting()
    answer = pages.get(address(job, "errors/"))
    content = b"".join(answer).decode()
    lines = content.splitlines()
    assert (lines[0], len(lines)) == ("line,field,error", 3)
    assert lines[2].startswith("2,priority,")
    assert not any(cell[:1] in "=+-@" for line in lines for cell in line.split(",") if cell)


def test_cancel_discards_an_upload(project: Project, pages: Client, django_capture_on_commit_callbacks: Any) -> None:
    job = uploaded(project, CSV)
    with django_capture_on_commit_callbacks(execute=True):
        answer = pages.post(address(job, "cancel/"), follow=True)
    assert "rows.csv was discarded." in answer.content.decode()
    assert not list((settings.ARTIFACTS / "imports").glob("*"))
    assert "has ended" in pages.post(address(job, "cancel/"), follow=True).content.decode()


def test_taking_back_is_previewed_and_then_done(project: Project, pages: Client) -> None:
    number = make_import(project, task_row("a"), task_row("b"))
    place = reverse("take-back", args=["talk", number])
    assert "<dd>2</dd>" in text(pages, place)
    assert "2 tasks were deleted." in pages.post(place, follow=True).content.decode()
    assert not Task.objects.exists()
    assert "This import was taken back." in text(pages, place)
    assert "Taken back" in text(pages, PAGE)


def test_what_goes_with_a_large_import_is_not_counted_to_the_end(
    project: Project, cast: Cast, pages: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = make_import(project, *(label_row(f"p{n}", "r") for n in range(3)), *(task_row() for _ in range(3)))
    place = reverse("take-back", args=["talk", number])
    monkeypatch.setattr(data_import, "MOST_COUNTED", 2)
    assert "<dd>more than 2</dd>" in text(pages, place)
    for _ in range(3):
        rate(project, cast.alice)
    for few in (0, 500):
        monkeypatch.setattr(withdrawal, "FEW", few)
        assert "More than 2 of the tasks have been rated" in text(pages, place)


def test_without_a_worker_the_page_says_so(project: Project, pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    job = uploaded(project, json_lines(task_row("a")).getvalue())
    monkeypatch.setattr(heartbeats, "listening", lambda: {queue: QueueHealth(0, None) for queue in heartbeats.QUEUES})
    answer = pages.post(address(job, "start/"), {"action": "import"}, follow=True)
    assert "No worker is running" in answer.content.decode()


# Ratings of other tools ------------------------------------------------------------------------------------


def studio(*annotations: dict[str, int], **data: str) -> bytes:
    """A file of Label Studio's with the annotations' stars by question."""
    said = [
        {"completed_by": n, "result": [{"from_name": q, "value": {"rating": level}} for q, level in each.items()]}
        for n, each in enumerate(annotations)
    ]
    texts = {"prompt": "Name a prime.", "response_1": "7"}
    return json.dumps([{"id": 1, "data": texts | data, "annotations": said}]).encode()


ALL = dict.fromkeys(ATTRIBUTES, 4)


def test_a_file_of_which_one_rating_does_not_fit_is_no_dead_end(project: Project, pages: Client) -> None:
    job = uploaded(project, studio(ALL, {"helpfulness": 4}))
    page = text(pages, address(job))
    assert ("Label Studio" in page, "without correctness" in page, "are not known" in page) == (True, True, False)
    assert "Import the tasks without the ratings that do not fit" in page
    pages.post(address(job, "start/"), {"action": "import", "mapping": "", "fitting_only": "1"})
    jobs.run_waiting()
    job.refresh_from_db()
    assert (job.state, job.created, job.ratings_added, job.ratings_left_out) == (State.DONE, 1, 1, 1)
    done = text(pages, address(job))
    assert ("Ratings added" in done, "a rating does not count" in done) == (True, True)


def test_a_refused_file_of_a_known_tool_shows_its_reasons(project: Project, pages: Client) -> None:
    job = uploaded(project, studio(ALL, response_1=""))
    page = text(pages, address(job))
    assert ("Recognised: Label Studio" in page, "data needs a prompt and a response" in page) == (True, True)


def test_questions_are_mapped_to_attributes_on_the_page(project: Project, pages: Client) -> None:
    job = uploaded(project, studio({f"My {key}": 4 for key in ATTRIBUTES}))
    assert 'name="question:My helpfulness"' in text(pages, address(job))
    page = text(pages, address(job), data={f"question:My {key}": key for key in ATTRIBUTES})
    (mapping,) = re.findall(r'name="mapping" value="([^"]+)"', page)
    pages.post(address(job, "start/"), {"action": "import", "mapping": html.unescape(mapping)})
    jobs.run_waiting()
    job.refresh_from_db()
    assert (job.state, job.ratings_added) == (State.DONE, 1)


def test_the_page_asks_who_rated_a_file_that_names_nobody(project: Project, pages: Client) -> None:
    imported(project, task_row("t-1", responses=1))
    row = {"id": "t-1", "label_annotations": {key: {"scale_3": "3"} for key in ATTRIBUTES}}
    job = uploaded(project, json_lines(row).getvalue())
    page = text(pages, address(job))
    assert ("does not say who rated" in page, 'name="rated_by"' in page, 'name="action"' in page) == (True, True, False)
    page = text(pages, address(job), data={"rated_by": "ann"})
    assert ('name="rated_by"' in page, 'value="ann"' in page) == (True, True)
    (mapping,) = re.findall(r'name="mapping" value="([^"]+)"', page)
    pages.post(address(job, "start/"), {"action": "check", "mapping": html.unescape(mapping)})
    jobs.run_waiting()
    assert 'value="ann"' in text(pages, address(job)), "it is kept with the job"
    pages.post(address(job, "start/"), {"action": "import", "mapping": html.unescape(mapping)})
    jobs.run_waiting()
    job.refresh_from_db()
    assert (job.ratings_added, job.rejected) == (1, 0)
    named = {**row, "user_id": "ann"}
    assert 'name="rated_by"' not in text(pages, address(uploaded(project, json_lines(named).getvalue())))


def test_values_are_shown_before_columns_are_chosen(project: Project, pages: Client) -> None:
    job = uploaded(project, b"User question,Answer A,Answer B,System A,System B\nName a prime.,7,8,m,n\n")
    page = text(pages, address(job))
    assert page.index("Name a prime.") < page.index('id="mapping"')
    assert 'hx-trigger="change delay:600ms, submit"' in page
    assert "The first tasks, as annotators see them" in page


def test_names_of_columns_suggest_what_they_hold() -> None:
    found = guessed(["User question", "Answer A", "Answer B", "System A", "System B"])
    assert found["prompt"] == "User question"
    assert [(one["text"], one["model"]) for one in found["responses"]] == [
        ("Answer A", "System A"),
        ("Answer B", "System B"),
    ]
