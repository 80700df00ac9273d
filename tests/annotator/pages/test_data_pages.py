"""The tab Data: the list of tasks, the story of one, the quarantine, and the export."""

from typing import Any

import pytest
from django.test import Client

from annotator.models import Annotation, AuditEntry, Project, Report, Role, Skip, Task, User
from annotator.outputs.exporting import export_previews
from annotator.outputs.exporting.file_formats import FORMATS
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.pages.data.data_form import FORMAT_TEXTS, LAYOUT_TEXTS
from annotator.pages.rating.rating_form import PREFERENCE_TEXTS
from annotator.reading.search import criteria, listing
from annotator.reading.search.word_index import take_words
from annotator.stages import annotation
from annotator.stages.pii.scans import scan_all
from annotator.stages.review import adjudicate, judge, withdraw
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    make_gold,
    make_member,
    make_project,
    make_task,
    make_user,
    pseudonym,
    rate,
    submission,
    task_row,
)
from tests.conftest import Cast

DATA = "/projects/talk/data/"
WRONG_EXPORTS = [
    {"layout": "x"},
    {"format": "xlsx"},
    {"since": "9" * 30},
    {"since": "0000-00-00"},
    {"since": "2026-02-01", "until": "2026-01-31"},
    {"language": "xx-nope"},
    {"state": "retired"},
    {"source": "1"},
    {"label_source": "guessed"},
    {"label_source": "imported", "layout": "annotations"},
    {"only": "prompt,nothing"},
    {"only": "prompt", "format": "zip"},
    {"format": "zip", "layout": "annotations"},
]
QUARANTINE = f"{DATA}quarantine/"
EXPORT = f"{DATA}export/"
FILE = f"{EXPORT}file/"
MAIL = "ola.nord@example.com"


def story(task: Task) -> str:
    return f"{DATA}tasks/{task.public_id}/"


def decision(task: Task) -> str:
    return f"{QUARANTINE}{task.public_id}/"


def text(client: Client, address: str, **parameters: Any) -> str:
    answer = client.get(address, parameters)
    assert answer.status_code == 200, answer.status_code
    return answer.content.decode()


def reported(project: Project, user: User, name: str = "t-1", **fields: Any) -> Task:
    task = make_task(project, name, **fields)
    annotation.report(claimed(project, user).pk, category="bias", note="Look at this.", now=NOW)
    task.refresh_from_db()
    return task


# Who may see them ------------------------------------------------------------------------------------------


def test_a_task_of_another_project_is_not_found(project: Project, pages: Client) -> None:
    other = make_project("other")
    task = make_task(other, "t-9")
    Task.objects.update(state=Task.State.QUARANTINED)
    assert pages.get(story(task)).status_code == 404
    assert pages.get(decision(task)).status_code == 404
    assert pages.post(decision(task), {"redact": 1}).status_code == 404


def test_gold_tasks_stay_unseen(project: Project, pages: Client) -> None:
    gold = make_gold(project, "gold-1")
    assert "gold-1" not in text(pages, DATA)
    assert pages.get(story(gold)).status_code == 404
    assert pages.get(decision(gold)).status_code == 404


def test_a_manager_sees_nothing_of_a_task_that_they_rate(project: Project, cast: Cast, pages: Client) -> None:
    task = make_task(project, "t-1")
    claimed(project, cast.carol)
    assert "t-1" not in text(pages, DATA)
    for address in (story(task), decision(task)):
        answer = pages.get(address, follow=True)
        assert "You are rating this task yourself." in answer.content.decode()
        assert answer.redirect_chain


def test_reviewers_see_pseudonyms_and_managers_names(project: Project, cast: Cast, rita: User, client: Client) -> None:
    task = make_task(project, "t-1")
    rate(project, cast.alice)
    judge(Annotation.objects.get().assignment_id, decision="accepted", comment="", by=cast.carol, now=NOW)
    client.force_login(rita)
    shown = text(client, story(task))
    assert pseudonym(cast.alice, project) in shown
    assert "alice" not in shown
    assert "carol" not in shown
    assert "model-0" not in shown
    client.force_login(cast.carol)
    shown = text(client, story(task))
    assert "alice" in shown
    assert "model-0" in shown


# The list --------------------------------------------------------------------------------------------------


def test_the_list_shows_state_ratings_label_and_spread(project: Project, cast: Cast, pages: Client) -> None:
    make_task(project, "t-1")
    for user, level in zip(cast.annotators, (3, 3, 2), strict=True):
        rate(project, user, level)
    shown = text(pages, DATA)
    assert "What is t-1?" in shown
    assert "Complete" in shown
    assert "A <strong>3.7</strong>" in shown
    assert "1 task." in shown


def test_what_is_found_can_be_shared_as_an_address(project: Project, pages: Client) -> None:
    imported(project, task_row("t-1", prompt="Where is Oslo?"), task_row("t-2", prompt="Where is Bergen?"))
    take_words()
    answer = pages.get(f"{DATA}?q=oslo&state=&label=&spread=")
    assert answer.url == f"{DATA}?q=oslo"  # type: ignore[attr-defined]
    shown = text(pages, DATA, q="oslo", state="open")
    assert "Where is Oslo?" in shown
    assert "Bergen" not in shown


def test_new_texts_are_said_to_be_missing(project: Project, pages: Client) -> None:
    make_task(project)
    assert "Some new texts are still being read." in text(pages, DATA)
    take_words()
    assert "Some new texts are still being read." not in text(pages, DATA)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"state": "gold"}, "Select a valid choice"),
        ({"spread": "9"}, "Select a valid choice"),
        ({"q": "-oslo"}, "Write at least one word"),
        ({"q": "x" * 201}, "at most 200 characters"),
        ({"language": "klingonisch"}, "a language"),
        ({"source": "9" * 30}, "Select a valid choice"),
        ({"reward_from": "nan"}, "Enter a number"),
        ({"reward_from": "2", "reward_to": "1"}, "less than the lower end"),
    ],
)
def test_a_wrong_filter_is_named(project: Project, pages: Client, wrong: dict[str, str], words: str) -> None:
    make_task(project, "t-1")
    answer = pages.get(DATA, wrong)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert "What is t-1?" not in answer.content.decode()


@pytest.mark.parametrize(
    "hostile",
    [
        "'; DROP TABLE annotator_task; --",
        "<script>alert(1)</script>",
        "((((",
        ":*&|!<->",
        "'\"\\",
        "%s %(x)s",
        "\U0001f389\u202ex",
    ],
)
def test_hostile_words_are_only_words(project: Project, pages: Client, hostile: str) -> None:
    make_task(project)
    answer = pages.get(DATA, {"q": hostile})
    assert answer.status_code in (200, 422)
    assert "<script>alert" not in answer.content.decode()
    assert Task.objects.count() == 1


def test_pages_follow_each_other(project: Project, pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(project, *(task_row(f"t-{number}") for number in range(5)))
    monkeypatch.setattr(listing, "PAGE", 2)
    seen: list[str] = []
    address: str | None = f"{DATA}?state=open"
    while address:
        answer = pages.get(address)
        seen += [row["task"].external_id for row in answer.context["rows"]]
        further = answer.context["found"].further
        address = f"{DATA}?state=open&after={further}" if further else None
    assert seen == ["t-4", "t-3", "t-2", "t-1", "t-0"]


ORDERS = {
    "": "43210",
    "oldest": "01234",
    "spread": "31420",
    "most_rated": "32041",
    "least_rated": "41032",
    "priority": "42103",
}


@pytest.mark.parametrize("order", ORDERS)
def test_tasks_are_sorted_page_by_page(
    project: Project, pages: Client, monkeypatch: pytest.MonkeyPatch, order: str
) -> None:
    """In the order that the list shows; of equal tasks the newest comes first."""
    imported(project, *(task_row(f"{number}") for number in range(5)))
    for number, spread, done, priority in ((0, 0, 1, 0), (1, 2, 0, 0), (2, 0, 2, 0), (3, 3, 2, -1), (4, 1, 0, 9)):
        rows = Task.objects.filter(external_id=f"{number}")
        rows.update(review_spread=spread, done=done, open_slots=3 - done, priority=priority)
    monkeypatch.setattr(listing, "PAGE", 2)
    seen, after = "", ""
    while after is not None:
        answer = pages.get(DATA, {"order": order, "state": "open"} | ({"after": after} if after else {}), follow=True)
        seen += "".join(row["task"].external_id for row in answer.context["rows"])
        after = answer.context["found"].further
    assert seen == ORDERS[order]
    assert f'<option value="{order}" selected>' in answer.content.decode()


def test_a_count_stops_early(project: Project, pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    imported(project, *(task_row() for _ in range(5)))
    monkeypatch.setattr(listing, "MOST_COUNTED", 3)
    monkeypatch.setattr("annotator.pages.data.data.MOST_COUNTED", 3)
    assert "More than 3 tasks." in text(pages, DATA)


def test_a_common_word_is_not_counted_task_by_task(
    project: Project, pages: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    imported(project, *(task_row(f"t-{number}", prompt="Where is Oslo?") for number in range(7)))
    make_gold(project, "gold-1")
    take_words()
    monkeypatch.setattr(criteria, "FEW", 4)
    monkeypatch.setattr(listing, "PAGE", 2)
    monkeypatch.setattr(listing, "MOST_COUNTED", 3)
    monkeypatch.setattr("annotator.pages.data.data.MOST_COUNTED", 3)
    answer = pages.get(DATA, {"q": "oslo"})
    assert [row["task"].external_id for row in answer.context["rows"]] == ["t-6", "t-5"]
    assert "More than 3 tasks." in answer.content.decode()
    answer = pages.get(DATA, {"q": "oslo", "after": answer.context["found"].further})
    assert [row["task"].external_id for row in answer.context["rows"]] == ["t-4", "t-3"]


def test_the_list_shows_the_preference_of_the_reviewer(project: Project, cast: Cast, pages: Client) -> None:
    Project.objects.update(max_annotators=3, ask_preference=True)
    task = make_task(project, "t-1")
    for user, levels in zip(cast.annotators, ([0, 1], [4, 1], [2, 1]), strict=True):
        rate(project, user, levels, preference=1)
    assert str(PREFERENCE_TEXTS[1]) not in text(pages, DATA)
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, preference=-3, reason="slip", by=cast.carol, now=NOW)
    assert str(PREFERENCE_TEXTS[-3]) in text(pages, DATA)


# The story -------------------------------------------------------------------------------------------------


def events(client: Client, task: Task) -> list[tuple[str, str]]:
    return [(event["what"], event["who"]) for event in client.get(story(task)).context["events"]]


def test_the_story_tells_what_happened_in_order(project: Project, cast: Cast, pages: Client) -> None:
    task = make_task(project, "t-1")
    scan_all(now=NOW)
    for user in cast.annotators:
        rate(project, user, 3)
    task.refresh_from_db()
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in task.responses.all()}
    adjudicate(task.pk, scores=scores, reason="slip", comment="Read again.", by=cast.carol, now=NOW)
    withdraw(task.pk, by=cast.carol, now=NOW)
    told = events(pages, task)
    for event in [
        ("Imported", ""),
        ("Searched for personal information", ""),
        *[(what, name) for what in ("Got the task", "Rated") for name in ("alice", "bob", "erin")],
        ("The ratings gave a label", ""),
        ("Settled by a reviewer", "carol"),
    ]:
        assert event in told
    assert [what for what, _ in told if what == "The reviewer's label was taken back"]
    assert told.index(("Got the task", "alice")) < told.index(("Rated", "alice"))


def test_the_story_tells_of_skips_reports_and_decisions(project: Project, cast: Cast, pages: Client) -> None:
    task = reported(project, cast.alice, prompt="<b>Bold</b>")
    pages.post(f"/projects/talk/review/{task.public_id}/decide/", {"decision": "release"})
    annotation.skip(claimed(project, cast.bob).pk, reason="other", note="<i>No</i>", now=NOW)
    shown = text(pages, story(task))
    told = events(pages, task)
    assert ("Reported", "alice") in told
    assert ("Skipped", "bob") in told
    assert "Released: back in the queue" in [what for what, _ in told]
    assert "dismissed" in shown
    assert "&lt;i&gt;No&lt;/i&gt;" in shown


def test_a_revision_is_told_as_one(project: Project, cast: Cast, pages: Client) -> None:
    task = make_task(project, "t-1")
    first = rate(project, cast.alice, 3)
    annotation.submit(first.annotation.assignment_id, submission(task, 1), now=NOW)
    assert ("Changed the rating", "alice") in events(pages, task)


@pytest.mark.parametrize(
    ("levels", "words"),
    [
        ((), "nobody has rated the task"),
        ((3,), "waiting for more ratings"),
        ((0, 4, 4), "dropped"),
        ((3, 3, 3), "3 of"),
    ],
)
def test_the_story_says_how_the_label_was_made(
    project: Project, cast: Cast, pages: Client, levels: tuple[int, ...], words: str
) -> None:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    task = make_task(project, "t-1")
    for user, level in zip(cast.annotators, levels, strict=False):
        rate(project, user, level)
    assert words in text(pages, story(task))


def test_a_name_that_another_task_has_too_brings_no_foreign_decisions(
    project: Project, cast: Cast, pages: Client
) -> None:
    other = make_project("other")
    make_member(other, cast.carol, role=Role.MANAGER)
    make_member(other, cast.alice)
    foreign = reported(other, cast.alice, "t-1")
    annotation.decide_quarantine(foreign.pk, safe_to_use=False, now=NOW)
    task = make_task(project, "t-1")
    assert [what for what, _ in events(pages, task)] == ["Imported"]


# The quarantine --------------------------------------------------------------------------------------------


def test_the_quarantine_says_who_set_a_task_aside_and_why(project: Project, cast: Cast, pages: Client) -> None:
    reported(project, cast.alice, prompt=f"Write to {MAIL}")
    make_task(project, "t-2")
    scan_all(now=NOW)
    shown = text(pages, QUARANTINE)
    for words in ("alice", "Look at this.", "Bias or stereotype", "E-mail address", "1 task is set aside."):
        assert words in shown
    assert "t-2" not in shown


@pytest.mark.parametrize(("chosen", "state"), [("release", "open"), ("retire", "retired")])
def test_a_decision_leads_back_to_the_quarantine(
    project: Project, cast: Cast, pages: Client, chosen: str, state: str
) -> None:
    task = reported(project, cast.alice)
    address = f"/projects/talk/review/{task.public_id}/decide/"
    answer = pages.post(address, {"decision": chosen, "next": QUARANTINE}, follow=True)
    assert answer.redirect_chain == [(QUARANTINE, 302)]
    task.refresh_from_db()
    assert task.state == state
    assert "No task is in quarantine." in answer.content.decode()
    again = pages.post(address, {"decision": chosen, "next": QUARANTINE}, follow=True)
    assert "is no longer set aside" in again.content.decode()


def test_a_decision_leads_nowhere_else(project: Project, cast: Cast, pages: Client) -> None:
    task = reported(project, cast.alice)
    address = f"/projects/talk/review/{task.public_id}/decide/"
    answer = pages.post(address, {"decision": "release", "next": "//evil.example/"})
    assert answer.url == f"/projects/talk/review/{task.public_id}/"  # type: ignore[attr-defined]


def redaction(task: Task, client: Client, **fields: Any) -> Any:
    form = client.get(decision(task)).context["form"]
    data = {f"task-{task.pk}-spans": [mark.span for mark in form.marked], f"task-{task.pk}-previewed": form.key()}
    return client.post(decision(task), data | {"redact": 1, "understood": 1} | fields)


def test_a_task_is_redacted_as_previewed(project: Project, cast: Cast, pages: Client) -> None:
    task = reported(project, cast.alice, prompt=f"Write to {MAIL}")
    scan_all(now=NOW)
    assert "[e-mail address removed]" in text(pages, decision(task))
    assert redaction(task, pages).url == QUARANTINE
    task.refresh_from_db()
    assert MAIL not in str(task.conversation)
    assert task.state == Task.State.OPEN
    assert "Redacted: personal information erased" in text(pages, story(task))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"understood": None}, "First confirm that you know what is lost."),
        ({"quotes": "Write"}, "The selection has changed."),
        ({"quotes": "nowhere in it"}, "Nothing has been erased. Correct what is marked below."),
        ({"previewed": "forged"}, "The selection has changed."),
    ],
)
def test_nothing_is_erased_that_was_not_previewed(
    project: Project, cast: Cast, pages: Client, fields: dict[str, Any], words: str
) -> None:
    task = reported(project, cast.alice, prompt=f"Write to {MAIL}")
    scan_all(now=NOW)
    form = pages.get(decision(task)).context["form"]
    prefix = f"task-{task.pk}-"
    data = {"redact": 1, "understood": 1, f"{prefix}previewed": form.key()}
    data |= {f"{prefix}spans": [mark.span for mark in form.marked]}
    for name, value in fields.items():
        name = name if name == "understood" else f"{prefix}{name}"
        data = data | {name: value} if value else {key: kept for key, kept in data.items() if key != name}
    answer = pages.post(decision(task), data)
    assert answer.status_code == 422
    assert words in answer.content.decode()
    task.refresh_from_db()
    assert MAIL in str(task.conversation)


def test_a_task_that_somebody_else_has_decided_leads_to_its_story(project: Project, cast: Cast, pages: Client) -> None:
    task = reported(project, cast.alice)
    annotation.decide_quarantine(task.pk, safe_to_use=True, now=NOW)
    assert pages.get(decision(task)).url == story(task)  # type: ignore[attr-defined]
    assert Report.objects.get().decision == "dismissed"
    assert not Skip.objects.exists()


# The export ------------------------------------------------------------------------------------------------


@pytest.fixture
def labelled(project: Project, cast: Cast) -> None:
    for number in range(7):
        make_task(project, f"t-{number}")
        for user in cast.annotators:
            rate(project, user, 3, justification="=1+1")


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("layout", ["helpsteer2", "disagreements", "annotations"])
@pytest.mark.parametrize("format", ["jsonl", "csv"])
def test_the_preview_says_what_the_download_holds(pages: Client, layout: str, format: str) -> None:
    chosen = {"layout": layout, "format": format}
    shown = pages.get(EXPORT, chosen).context
    file = pages.get(FILE, chosen).getvalue()
    assert shown["preview"].bytes == len(file)
    assert shown["preview"].rows == file.count(b"\n") - (format == "csv")
    assert len(shown["rows"]) == 10
    assert f'formaction="{FILE}">Download</button>' in pages.get(EXPORT, chosen).content.decode()


@pytest.mark.usefixtures("labelled")
def test_a_large_export_is_estimated(pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_previews, "MEASURED", 10)
    assert "14 rows" in text(pages, EXPORT, layout="helpsteer2")
    monkeypatch.setattr(export_previews, "COUNTED_TASKS", 6)
    monkeypatch.setattr(export_previews, "PLACES", 3)
    shown = text(pages, EXPORT, layout="helpsteer2")
    assert "About 14 rows" in shown
    assert "estimated from a part of the tasks" in shown


@pytest.mark.usefixtures("labelled")
def test_only_a_download_is_recorded(pages: Client) -> None:
    text(pages, EXPORT)
    assert not AuditEntry.objects.filter(action="labels.exported").exists()
    pages.get(FILE, {"layout": "annotations", "format": "jsonl", "since": "2020-01-01"})
    assert AuditEntry.objects.get(action="labels.exported").details["layout"] == "annotations"


@pytest.mark.usefixtures("labelled")
def test_only_what_is_new_is_exported(pages: Client) -> None:
    assert "Nothing that is chosen here can be exported" in text(pages, EXPORT, since="2126-01-01")
    assert "rows" in text(pages, EXPORT, since="2026-01-01")


@pytest.mark.usefixtures("labelled")
@pytest.mark.parametrize("large", [False, True])
def test_a_part_is_exported(pages: Client, project: Project, large: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if large:
        monkeypatch.setattr(export_previews, "COUNTED_TASKS", 3)
    german = make_task(project, "german", lang="de")
    take_words()
    for user in make_user("x"), make_user("y"), make_user("z"):
        rate(project, user, 2)
    chosen = {"layout": "annotations", "format": "jsonl", "language": "German", "source": str(german.from_import_id)}
    shown = pages.get(EXPORT, chosen)
    assert (shown.context["preview"].rows, shown.context["preview"].exact) == (6, True)
    assert pages.get(FILE, chosen).getvalue().count(b"\n") == 6
    assert "Nothing that is chosen here" in text(pages, EXPORT, language="fr")


@pytest.mark.usefixtures("labelled")
def test_a_large_part_is_estimated(pages: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_previews, "COUNTED_TASKS", 4)
    monkeypatch.setattr(export_previews, "PLACES", 2)
    shown = text(pages, EXPORT, layout="helpsteer2", state="complete")
    assert "About 14 rows" in shown
    assert "The first 10 rows" in shown


@pytest.mark.usefixtures("labelled")
def test_a_preview_reads_a_few_tasks_before_the_others(
    project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    labelled = list(project.tasks.values_list("pk", flat=True))
    filters = Filters(among=[make_task(project, "unlabelled").pk, *labelled])
    whole = list(export_previews._rows(project, "helpsteer2", filters, cast.carol))
    monkeypatch.setattr(export_previews, "MEASURED", 1)
    assert list(export_previews._rows(project, "helpsteer2", filters, cast.carol)) == whole
    assert len(whole) == 14


@pytest.mark.usefixtures("labelled")
def test_some_fields_are_shown_and_downloaded(pages: Client) -> None:
    chosen = {"layout": "helpsteer2", "format": "csv", "only": "helpfulness, prompt", "label_source": "consensus"}
    shown = pages.get(EXPORT, chosen)
    assert shown.context["columns"] == ["helpfulness", "prompt"]
    file = pages.get(FILE, chosen).getvalue().decode()
    assert file.splitlines()[0] == "helpfulness,prompt"
    assert file.count("\r\n") == shown.context["preview"].rows + 1


@pytest.mark.parametrize("wrong", WRONG_EXPORTS)
def test_a_wrong_export_is_refused(pages: Client, wrong: dict[str, str]) -> None:
    assert pages.get(EXPORT, wrong).status_code == 422
    answer = pages.get(FILE, wrong, follow=True)
    assert answer.redirect_chain == [(EXPORT, 302)]
    assert "Nothing was downloaded." in answer.content.decode()


def test_every_layout_is_explained_and_counted() -> None:
    assert set(LAYOUT_TEXTS) == set(LAYOUTS)
    assert set(FORMAT_TEXTS) == set(FORMATS)


@pytest.mark.parametrize("since", ["0001-01-01", "9999-12-31"])
def test_the_ends_of_the_calendar_break_nothing(project: Project, pages: Client, since: str) -> None:
    make_task(project)
    assert pages.get(EXPORT, {"since": since}).status_code in (200, 422)
    assert pages.get(FILE, {"since": since, "until": since}).status_code in (200, 302)
