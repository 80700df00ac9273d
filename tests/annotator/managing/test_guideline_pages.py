"""Guidelines written on the page: published once, lost never, compared line by line."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest
from django.test import Client

from annotator.managing import guidelines
from annotator.managing.guidelines import LONGEST_GUIDELINES, NewerGuidelines, difference, publish, publish_guidelines
from annotator.models import Exclusion, Guideline, Membership, Project
from tests.builders import NOW
from tests.conftest import Cast

EDIT, PREVIEW, VERSIONS = (f"/projects/talk/guidelines/{page}/" for page in ("edit", "preview", "versions"))
Most = Callable[[int], Any]


def text(answer: Any) -> str:
    return str(answer.content.decode())


def test_publishing_makes_the_next_version(project: Project, cast: Cast, pages: Client) -> None:
    Exclusion.objects.create(project=project, annotator=cast.erin, reason="A bot.", by=cast.carol, made_at=NOW)
    publish_guidelines(project, "Be fair.")
    assert "2 annotators will have to read it" in text(pages.get(EDIT))
    answer = pages.post(EDIT, {"text": "Be fair.\r\nBe quick.", "based_on": 1}, follow=True)
    assert "Version 2 is published. 2 annotators have to read it" in text(answer)
    assert list(project.guidelines.values_list("text", flat=True)) == ["Be fair.\nBe quick.", "Be fair."]


def test_the_same_text_makes_no_version_whatever_ends_its_lines(project: Project, pages: Client) -> None:
    publish_guidelines(project, "One.\r\nTwo.")
    assert "nothing was published" in text(pages.post(EDIT, {"text": "One.\r\nTwo.", "based_on": 0}, follow=True))
    assert publish(project, "One.\nTwo.")[1] is False
    assert Guideline.objects.count() == 1


def test_nothing_is_lost_where_somebody_was_quicker(project: Project, pages: Client) -> None:
    publish_guidelines(project, "Be fair.")
    publish_guidelines(project, "Be fair.\nSay why.")
    answer = pages.post(EDIT, {"text": "Be fair.\nBe quick.", "based_on": 1})
    page = text(answer)
    assert answer.status_code == 409
    assert "Version 2 was published while you were writing" in page
    assert "Be fair.\nBe quick.</textarea>" in page
    assert "Be fair.\nSay why.</textarea>" in page
    assert [(line.kind, line.text) for line in answer.context["lines"]] == [
        ("same", "Be fair."),
        ("removed", "Say why."),
        ("added", "Be quick."),
    ]
    assert Guideline.objects.count() == 2
    again = {"text": "Be fair.\nBe quick.", "based_on": answer.context["form"]["based_on"].value()}
    assert pages.post(EDIT, again).status_code == 302
    assert project.guidelines.first().text == "Be fair.\nBe quick."  # type: ignore[union-attr]


def test_a_first_version_is_not_published_over_another_s(project: Project) -> None:
    publish(project, "One.", based_on=0)
    with pytest.raises(NewerGuidelines):
        publish(project, "Another.", based_on=0)


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"text": " \n", "based_on": 0},
        {"text": "x"},
        {"text": "x", "based_on": "9" * 30},
        {"text": "x" * (LONGEST_GUIDELINES + 1), "based_on": 0},
    ],
)
def test_a_wrong_form_publishes_nothing_and_keeps_the_text(
    project: Project, pages: Client, form: dict[str, object]
) -> None:
    answer = pages.post(EDIT, form)
    assert (answer.status_code, str(form.get("text", ""))[:50] in text(answer)) == (422, True)
    assert not Guideline.objects.exists()


def test_a_preview_publishes_nothing(project: Project, pages: Client) -> None:
    answer = pages.post(EDIT, {"text": "# Hello *you*", "based_on": 0, "preview": "1"})
    assert "<h1>Hello <em>you</em></h1>" in text(answer)
    assert "# Hello *you*</textarea>" in text(answer)
    assert not Guideline.objects.exists()


def test_a_preview_is_sanitised(project: Project, pages: Client) -> None:
    hostile = "<script>alert(1)</script> [x](javascript:alert(1)) ![y](https://example.org/y.png)"
    page = text(pages.post(PREVIEW, {"text": hostile}))
    assert "<script" not in page
    assert "href" not in page.replace('href="https://example.org/y.png"', "")
    assert "<img" not in page
    assert text(pages.post(EDIT, {"text": f"</textarea>{hostile}", "based_on": 0, "preview": 1})).count("<script>") == 0


def test_the_template_has_the_project_s_own_scales(project: Project, pages: Client) -> None:
    start = pages.get(f"{EDIT}?template").context["text"]
    for attribute in project.attributes_for():
        assert f"### {attribute.name}" in start
        assert f"{len(attribute.levels)}. {attribute.levels[-1]}" in start
    assert "Start from a template" in text(pages.get(EDIT))


def test_an_earlier_version_is_edited_as_a_new_one(project: Project, pages: Client) -> None:
    for words in ("One.", "Two."):
        publish_guidelines(project, words)
    form = pages.get(f"{EDIT}?version=1").context["form"]
    assert (form["text"].value(), form["based_on"].value()) == ("One.", 2)


def test_versions_say_who_has_read_them(project: Project, cast: Cast, pages: Client) -> None:
    for words in ("One.\nTwo.", "One.\nThree."):
        publish_guidelines(project, words)
    Membership.objects.filter(user=cast.alice).update(acknowledged_version=2)
    Membership.objects.filter(user=cast.bob).update(acknowledged_version=1)
    Membership.objects.filter(user=cast.carol).update(acknowledged_version=2)
    answer = pages.get(f"{VERSIONS}?version=2")
    assert [(row.version, row.read_last) for row in answer.context["rows"]] == [(2, 1), (1, 1)]
    assert (answer.context["names"], answer.context["unread"]) == (["alice"], 1)
    assert '<li class="added"><span class="sign" aria-hidden="true">+</span><ins>' in text(answer)
    assert "Three." in text(answer)


@pytest.mark.parametrize("query", ["version=3", "version=x", "version=" + "9" * 30])
def test_a_version_that_there_is_not_is_not_found(project: Project, pages: Client, query: str) -> None:
    publish_guidelines(project, "One.")
    assert pages.get(f"{VERSIONS}?{query}").status_code == 404


def test_many_versions_cost_the_same(project: Project, pages: Client, django_assert_max_num_queries: Most) -> None:
    for number in range(30):
        publish_guidelines(project, f"Text {number}.")
    with django_assert_max_num_queries(20):
        answer = pages.get(f"{VERSIONS}?version=30")
    assert (len(answer.context["rows"]), answer.context["further"]) == (25, 6)


# The difference --------------------------------------------------------------------------------------------


def test_equal_lines_far_from_a_change_are_folded() -> None:
    before = [f"line {number}" for number in range(20)]
    after = [*before[:10], "new", *before[11:]]
    lines = difference("\n".join(before), "\n".join(after))
    assert lines is not None
    assert [line.kind for line in lines] == ["gap", *["same"] * 3, "removed", "added", *["same"] * 3, "gap"]
    assert (lines[0].hidden, lines[-1].hidden) == (7, 6)


def test_equal_texts_differ_in_nothing() -> None:
    assert [line.kind for line in difference("a\nb", "a\nb") or []] in ([], ["gap"])


@pytest.mark.parametrize("length", [500, 2_000])
@pytest.mark.parametrize("kinds", [1, 2, 7, 40, 150])
def test_no_text_holds_up_the_page(kinds: int, length: int) -> None:
    lines = [str(number % kinds) for number in range(length)]
    begun = monotonic()
    difference("\n".join(lines), "\n".join(reversed([*lines[1:], "c"])))
    assert monotonic() - begun < 3


def test_texts_that_are_too_long_are_not_compared() -> None:
    assert difference("a\n" * 3_000, "b\n" * 3_000) is None


def test_what_a_template_leaves_to_be_written_does_not_reach_annotators(project: Project, cast: Cast) -> None:
    guidelines.publish(project, guidelines.template())
    client = Client()
    client.force_login(cast.alice)
    page = client.get(f"/projects/{project.slug}/guidelines/").content.decode()
    assert "Judge only the last response" in page
    assert not [blank for blank in guidelines.blanks() if blank.strip("*()")[:40] in page]
    assert len(guidelines.blanks()) > 1
