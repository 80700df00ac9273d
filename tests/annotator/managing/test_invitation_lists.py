"""Many people invited at once: all lines, or none and each mistake named."""

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from annotator.managing import invitation_lists, invitations
from annotator.managing.invitation_lists import WrongLines
from annotator.models import Invitation, Project, Role
from tests.builders import NOW
from tests.conftest import Cast

PAGE = "/projects/talk/invitations/list/"


def invited(project: Project, cast: Cast, text: str) -> list[Invitation]:
    made = invitation_lists.invite_all(project, text, by=cast.carol, now=NOW)
    return [row.invitation for row in made]


def wrong(project: Project, cast: Cast, text: str) -> list[str]:
    with pytest.raises(WrongLines) as refused:
        invited(project, cast, text)
    assert not Invitation.objects.exists()
    return list(refused.value.errors["lines"])


def test_each_line_is_an_invitation(project: Project, cast: Cast) -> None:
    text = "name,role,languages,quota\nFrank,reviewer,en de,20\n\n Grete ,,,\ngrete@example.org\n"
    rows = [(row.meant_for, row.role, row.languages, row.quota, row.email) for row in invited(project, cast, text)]
    assert rows == [
        ("Frank", Role.REVIEWER, ["en", "de"], 20, ""),
        ("Grete", Role.ANNOTATOR, [], None, ""),
        ("grete@example.org", Role.ANNOTATOR, [], None, "grete@example.org"),
    ]


@pytest.mark.parametrize(
    "text", ["Frank;reviewer;en|de;20", "Frank\treviewer\ten/de\t20", '"Frank","REVIEWER","en;de","20"\r\n']
)
def test_what_spreadsheets_write_is_read(project: Project, cast: Cast, text: str) -> None:
    (row,) = invited(project, cast, text)
    assert (row.meant_for, row.role, row.languages, row.quota) == ("Frank", Role.REVIEWER, ["en", "de"], 20)


def test_every_wrong_line_is_named_and_nobody_is_invited(project: Project, cast: Cast) -> None:
    text = (
        "Frank\nx,boss\ny,annotator,English\nz,annotator,en,many\nno address@,annotator\na,annotator,en,1,more\n"
        + "b" * 151
    )
    assert wrong(project, cast, text + "b" * 151) == [
        "Line 2: There is no role “boss”. Write annotator, reviewer, manager.",
        "Line 3: 'English' is not a language's code. Write en.",
        "Line 4: “many” is not a whole number.",
        "Line 5: “no address@” is not an e-mail address.",
        "Line 6: There are more than four values. Write a space between languages.",
        "Line 7: This name is longer than 150 characters.",
    ]


@pytest.mark.parametrize("text", ["", "\n \n", "name,role\n"])
def test_an_empty_list_invites_nobody(project: Project, cast: Cast, text: str) -> None:
    assert wrong(project, cast, text) == ["Line 1: There is nobody in this list."]


def test_a_list_has_an_end(project: Project, cast: Cast) -> None:
    assert "at most 500 people" in wrong(project, cast, "\n".join(f"p{number}" for number in range(501)))[0]


@pytest.mark.parametrize("text", ["a\0b", "x" * 140_000])
def test_what_is_no_list_is_refused(project: Project, cast: Cast, text: str) -> None:
    assert len(wrong(project, cast, text)) == 1


def test_a_quotation_that_is_never_closed_ends_with_the_list(project: Project, cast: Cast) -> None:
    assert [row.meant_for for row in invited(project, cast, '"never closed')] == ["never closed"]


def test_the_table_runs_no_formula(project: Project, cast: Cast) -> None:
    (row,) = invited(project, cast, "=HYPERLINK(1)")
    table = invitation_lists.as_csv([(row, "https://rate.example.org/invitation/x/")])
    assert "\r\n'=HYPERLINK(1),annotator,,,https://rate.example.org/invitation/x/,2026-02-07T12:00+00:00" in table


# The page --------------------------------------------------------------------------------------------------


def test_links_are_shown_once_as_a_table(project: Project, pages: Client) -> None:
    page = pages.post(PAGE, {"lines": "Frank\nGrete,reviewer", "days": 7}).content.decode()
    links = [line.split(",")[4] for line in page.split("<textarea")[1].split("\n")[1:3]]
    for link, name in zip(links, ("Frank", "Grete"), strict=True):
        row = invitations.invitation_of(link.rstrip("/").rpartition("/")[2], now=NOW)
        assert row.meant_for == name


def test_a_file_is_read(project: Project, pages: Client) -> None:
    file = SimpleUploadedFile("people.csv", "\ufeffname;role\nJörg;reviewer\n".encode())
    assert pages.post(PAGE, {"file": file, "days": 7}).status_code == 200
    assert Invitation.objects.get().meant_for == "Jörg"


@pytest.mark.parametrize(
    ("sent", "said"),
    [
        ({}, "Write at least one line, or choose a file."),
        ({"lines": "a", "file": SimpleUploadedFile("a.csv", b"b")}, "Send the lines or a file, not both."),
        ({"file": SimpleUploadedFile("a.csv", b"\xff\xfe\x00")}, "is not text in UTF-8"),
        ({"file": SimpleUploadedFile("a.csv", b"a" * 200_001)}, "too large for a list of people"),
        ({"lines": "x,boss"}, "Line 1: There is no role"),
        ({"lines": "a" * 200_001}, "at most 200000 characters"),
    ],
)
def test_a_wrong_list_is_shown_again(project: Project, pages: Client, sent: dict[str, object], said: str) -> None:
    answer = pages.post(PAGE, {"days": 7, **sent})
    assert (answer.status_code, said in answer.content.decode()) == (422, True)
    assert not Invitation.objects.exists()
