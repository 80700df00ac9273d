"""The rubric editor."""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotator.managing import project_settings
from annotator.managing.preset_rubrics import RubricText
from annotator.models import Project
from annotator.pages.projects.rubric_form import RubricEditor

pytestmark = pytest.mark.django_db
PAGE = "/projects/talk/rubric/"


def form(*rows: tuple[str, str, int], **fields: Any) -> dict[str, Any]:
    """The form as a browser sends it: for each row its name on the page, the attribute's name, and its levels."""
    sent: dict[str, Any] = {"name": "Mine", "row": [row for row, _name, _levels in rows]}
    for row, name, levels in rows:
        sent |= {f"{row}-name": name, f"{row}-levels": "\n".join(f"level {number}" for number in range(levels))}
    return sent | fields


def shown(answer: Any) -> str:
    return str(answer.content.decode())


def test_it_shows_the_rubric_in_force_and_what_annotators_see(pages: Client) -> None:
    page = shown(pages.get(PAGE))
    assert page.count('<fieldset class="card attribute"') == 5
    assert page.count('<fieldset class="likert of-5') == 5


def test_a_change_is_explained_before_it_is_published(pages: Client, project: Project) -> None:
    sent = form(("a0", "Tone", 3), ("a1", "Depth", 5), ("a2", "Trust", 7))
    page = shown(pages.post(PAGE, sent | {"do": "check"}))
    assert "What version 2 changes" in page
    assert "so Tone will decide" in page
    assert "Tone has 3 levels, so the limits of the spread follow its scale: more annotators are asked above 1" in page
    assert Project.objects.get().rubric.version == 1
    assert pages.post(PAGE, sent | {"do": "publish"}).status_code == 302
    assert Project.objects.get().scales() == {"tone": 3, "depth": 5, "trust": 7}


def test_a_limit_that_nothing_exceeds_is_named_before_the_next_version(pages: Client, project: Project) -> None:
    project_settings.change(project, {"escalate_above": 4, "drop_above": 4})
    page = shown(pages.post(PAGE, form(("a0", "Tone", 3), ("a1", "Depth", 5), do="check")))
    assert "Two ratings of Tone are at most 2 apart, so the spread never asks for more annotators." in page
    assert "Or let Depth decide, which has 5 levels." in page


def test_rows_are_sent_in_the_order_of_the_page(pages: Client) -> None:
    sent = form(("a1", "Depth", 5), ("a0", "Tone", 3))
    pages.post(PAGE, sent | {"do": "publish"})
    assert list(Project.objects.get().scales()) == ["depth", "tone"]


def sent_as_shown(project: Project) -> dict[str, Any]:
    """The form as a browser sends it when nobody has touched it."""
    editor = RubricEditor.of(RubricText.of(project.rubric), key=project.rubric.key)
    return {**editor.data, "row": [row for row, _form in editor.rows]}


def test_a_change_of_order_is_named_before_it_is_published(pages: Client, project: Project) -> None:
    sent = sent_as_shown(project)
    sent["row"] = ["a1", "a0", *sent["row"][2:]]
    page = shown(pages.post(PAGE, sent | {"do": "check"}))
    assert "In another order: Correctness, Helpfulness, Coherence, Complexity, Verbosity" in page
    assert "Publish version 2" in page
    pages.post(PAGE, sent | {"do": "publish"})
    assert list(Project.objects.get().scales())[:2] == ["correctness", "helpfulness"]


def test_another_name_is_told_before_it_is_published(pages: Client, project: Project) -> None:
    page = shown(pages.post(PAGE, sent_as_shown(project) | {"name": "Ours & theirs", "do": "check"}))
    assert "will be called “Ours &amp; theirs”" in page


def test_where_nothing_changes_there_is_nothing_to_publish(pages: Client, project: Project) -> None:
    page = shown(pages.post(PAGE, sent_as_shown(project) | {"do": "check"}))
    assert "Nothing changes: the form says what version 1 says." in page
    assert 'value="publish"' not in page


def test_what_was_said_of_a_change_goes_when_the_form_is_changed_again(pages: Client, project: Project) -> None:
    sent = form(("a0", "Tone", 3), do="preview")
    assert "hx-swap-oob" not in shown(pages.post(PAGE, sent))
    assert 'id="change" hx-swap-oob="delete"' in shown(pages.post(PAGE, sent | {"checked": "1"}))


def test_rows_are_moved_added_and_removed_without_scripts(pages: Client) -> None:
    rows = (("a0", "Tone", 3), ("a1", "Depth", 5))
    assert shown(pages.post(PAGE, form(*rows, do="down:a0"))).index("Depth") < shown(
        pages.post(PAGE, form(*rows, do="down:a0"))
    ).index("Tone")
    assert 'name="row" value="a2"' in shown(pages.post(PAGE, form(*rows, do="add")))
    assert "Tone" not in shown(pages.post(PAGE, form(*rows, do="remove:a0")))
    assert Project.objects.get().rubric.version == 1


def test_what_is_wrong_stands_beside_its_field(pages: Client) -> None:
    page = shown(pages.post(PAGE, form(("a0", "Tone", 1), do="publish")))
    assert "A scale has 2 to 7 levels, and this one has 1." in page
    assert Project.objects.get().rubric.version == 1


def test_hostile_forms_get_an_answer(pages: Client) -> None:
    for sent in (
        {},
        {"do": "publish"},
        {"do": "up:../x", "row": "../x"},
        form(("a0", "<script>alert(1)</script>", 2), do="check"),
        {"do": "publish", "row": [f"a{number}" for number in range(500)]},
        form(("a0", "Tone", 2), do="publish") | {"a0-weight": "nan"},
    ):
        answer = pages.post(PAGE, sent)
        assert answer.status_code == 200
        assert "<script>alert" not in shown(answer)
    assert Project.objects.get().rubric.version == 1


def test_a_downloaded_rubric_fills_in_the_form(pages: Client) -> None:
    text = pages.get("/api/v1/projects/talk/rubric/").json() | {"name": "From a file"}
    file = SimpleUploadedFile("rubric.json", json.dumps(text).encode())
    assert "From a file" in shown(pages.post(PAGE, {"do": "load", "file": file}))
    for content in (b"", b"[]", b"[" * 100_000, b"\xff"):
        wrong = SimpleUploadedFile("rubric.json", content)
        assert "This file holds no rubric" in shown(pages.post(PAGE, {"do": "load", "file": wrong}))


def test_an_offered_rubric_fills_in_the_form(pages: Client) -> None:
    assert 'value="helpful"' in shown(pages.post(PAGE, {"do": "load", "preset": "helpful_harmless"}))


def test_the_rubric_is_offered_to_new_projects(pages: Client) -> None:
    sent = form(("a0", "Tone", 3), do="offer", offer_key="tone")
    assert pages.post(PAGE, sent).status_code == 302
    keys = [row["key"] for row in pages.get("/api/v1/rubrics/").json()["results"]]
    assert "tone" in keys


def test_the_preview_follows_the_form(pages: Client) -> None:
    sent = form(("a0", "Tone", 3), ("a1", "Empty", 0), do="preview")
    page = shown(pages.post(PAGE, sent, headers={"HX-Request": "true"}))
    assert page.count("likert of-3") == 1
    assert "<html" not in page
