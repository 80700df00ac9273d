"""The tab People: who may open its pages, and what managers do on them."""

import re
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.core import mail
from django.test import Client

from annotator.analysis.quality import person_work
from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitations, password_links
from annotator.managing.invitations import InvitationInput
from annotator.models import (
    Exclusion,
    Guideline,
    Invitation,
    Membership,
    PauseReason,
    Project,
    QualificationRun,
    RaterQuality,
    Role,
    User,
)
from tests.annotator.analysis.quality.test_flags import FINE
from tests.builders import NOW, imported, make_member, make_project, make_task, make_user, pseudonym, rate, ratings_row
from tests.conftest import Cast

PASSWORD = "tall order 98 x"
TALK = "/projects/talk"
Most = Callable[[int], Any]


def text(answer: Any) -> str:
    return str(answer.content.decode())


# Access ----------------------------------------------------------------------------------------------------


def test_a_reviewer_changes_nobody_by_the_pseudonym(project: Project, cast: Cast, rita: User, client: Client) -> None:
    client.force_login(rita)
    page = f"{TALK}/people/{pseudonym(cast.alice, project)}/"
    assert client.get(page).status_code == 200
    assert client.post(page, {"role": "manager"}).status_code == 403
    member = Membership.objects.get(user=cast.alice)
    assert (member.role, member.offered_role) == (Role.ANNOTATOR, "")


def test_another_project_s_people_are_out_of_reach(project: Project, cast: Cast, pages: Client) -> None:
    for page in ("", "exclude/", "readmit/"):
        assert pages.get(f"{TALK}/people/dave/{page}").status_code == 404
    assert pages.post(f"{TALK}/people/dave/dismiss/").status_code == 404
    assert pages.post(f"{TALK}/people/dave/password-link/").status_code == 404


def test_the_tabs_show_it_to_managers_alone(project: Project, cast: Cast, rita: User, client: Client) -> None:
    client.force_login(rita)
    assert f'href="{TALK}/people/"' not in text(client.get(f"{TALK}/review/"))
    client.force_login(cast.carol)
    assert f'href="{TALK}/people/"' in text(client.get(f"{TALK}/review/"))


# The list --------------------------------------------------------------------------------------------------


def test_the_list_says_what_bars_people(project: Project, cast: Cast, pages: Client) -> None:
    Project.objects.update(qualification_required=True)
    Guideline.objects.create(project=project, version=2, text="Read.")
    Membership.objects.filter(user=cast.alice).update(paused_at=NOW, pause_reason=PauseReason.GOLD)
    Membership.objects.filter(user=cast.bob).update(qualified_at=NOW, acknowledged_version=2)
    page = text(pages.get(f"{TALK}/people/"))
    rows = {name: page.split(f"<bdi>{name}</bdi>")[1].split("</tr>")[0] for name in ("alice", "bob")}
    assert all(word in rows["alice"] for word in ("Paused", "experts", "Guidelines unread", "Test not passed"))
    assert "Test passed" in rows["bob"]
    assert "unread" not in rows["bob"]


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("name=AL", ["alice"]),
        ("role=manager", ["carol"]),
        ("state=paused", ["bob"]),
        ("state=excluded", ["erin"]),
        ("role=nobody&state=strange", ["alice", "bob", "carol", "erin"]),
        ("after=bob", ["carol", "erin"]),
    ],
)
def test_the_list_is_narrowed(project: Project, cast: Cast, pages: Client, query: str, names: list[str]) -> None:
    Membership.objects.filter(user=cast.bob).update(paused_at=NOW, pause_reason=PauseReason.MANAGER)
    Exclusion.objects.create(project=project, annotator=cast.erin, reason="A bot.", by=cast.carol, made_at=NOW)
    rows = pages.get(f"{TALK}/people/?{query}").context["rows"]
    assert [member.user.username for member in rows] == names


def test_the_list_costs_the_same_for_many(
    project: Project, cast: Cast, pages: Client, django_assert_max_num_queries: Most
) -> None:
    Membership.objects.bulk_create(
        Membership(project=project, user=user)
        for user in User.objects.bulk_create(User(username=f"u{number:03}", password="!") for number in range(120))
    )
    with django_assert_max_num_queries(12):
        first = pages.get(f"{TALK}/people/").context
    second = pages.get(f"{TALK}/people/?after={first['further']}").context
    assert (len(first["rows"]), len(second["rows"])) == (50, 50)


# Several at once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["pause", "resume", "another-try", "qualify"])
def test_an_action_reaches_all_who_are_chosen(project: Project, cast: Cast, pages: Client, action: str) -> None:
    members = Membership.objects.filter(user__in=[cast.alice, cast.bob])
    pages.post(f"{TALK}/people/", {"action": action, "member": list(members.values_list("pk", flat=True))})
    changed = {
        "pause": members.filter(pause_reason="manager"),
        "resume": members.filter(gold_counts_from__isnull=False),
        "another-try": members.filter(extra_tries=1),
        "qualify": members.filter(qualified_at__isnull=False),
    }
    assert changed[action].count() == 2
    assert Membership.objects.get(user=cast.erin).paused_at is None


@pytest.mark.parametrize(
    "form",
    [{}, {"action": "pause"}, {"action": "fire", "member": 1}]
    + [{"action": "pause", "member": member} for member in ("alice", "9" * 30, "-1")],
)
def test_a_wrong_choice_does_nothing(project: Project, cast: Cast, pages: Client, form: dict[str, Any]) -> None:
    answer = pages.post(f"{TALK}/people/", form, follow=True)
    assert "Nothing was done." in text(answer)
    assert not Membership.objects.filter(paused_at__isnull=False).exists()


def test_an_action_reaches_no_other_project(project: Project, cast: Cast, pages: Client) -> None:
    theirs = make_member(make_project("other"), cast.dave)
    pages.post(f"{TALK}/people/", {"action": "pause", "member": theirs.pk})
    theirs.refresh_from_db()
    assert theirs.paused_at is None


# One person ------------------------------------------------------------------------------------------------


def test_role_and_limits_change(project: Project, cast: Cast, pages: Client) -> None:
    form = {"role": "reviewer", "quota": 7, "languages": "en, pt-br"}
    assert pages.post(f"{TALK}/people/alice/", form).status_code == 302
    member = Membership.objects.get(user=cast.alice)
    assert (member.role, member.quota, member.languages) == (Role.REVIEWER, 7, ["en", "pt-br"])


def test_a_refused_language_changes_nothing(project: Project, cast: Cast, pages: Client) -> None:
    answer = pages.post(f"{TALK}/people/alice/", {"role": "reviewer", "languages": "English"})
    assert (answer.status_code, "Write en." in text(answer)) == (422, True)
    assert Membership.objects.get(user=cast.alice).role == Role.ANNOTATOR
    assert answer.context["member"].role == Role.ANNOTATOR


def test_the_last_manager_stays(project: Project, cast: Cast, pages: Client) -> None:
    answer = pages.post(f"{TALK}/people/carol/", {"role": "annotator"})
    assert (answer.status_code, "last manager" in text(answer)) == (422, True)
    assert "last manager" in text(pages.post(f"{TALK}/people/carol/dismiss/", follow=True))
    assert Membership.objects.get(user=cast.carol).role == Role.MANAGER


def test_a_refusal_is_said_in_the_language_of_the_reader(
    project: Project, cast: Cast, pages: Client, german: Mapping[str, str]
) -> None:
    answer = pages.post(f"{TALK}/people/carol/dismiss/", headers=german, follow=True)
    assert "Außer carol leitet niemand Talk. Geben Sie zuerst jemand anderem die Leitung." in text(answer)


def test_a_manager_s_role_is_offered(project: Project, cast: Cast, pages: Client) -> None:
    answer = pages.post(f"{TALK}/people/alice/", {"role": "manager"}, follow=True)
    assert "alice has been asked" in text(answer)
    assert Membership.objects.get(user=cast.alice).offered_role == Role.MANAGER
    pages.post(f"{TALK}/people/alice/", {"role": "annotator"})
    assert Membership.objects.get(user=cast.alice).offered_role == ""


def test_somebody_is_removed_and_their_work_stays(project: Project, cast: Cast, pages: Client) -> None:
    make_task(project)
    rate(project, cast.alice)
    pages.post(f"{TALK}/people/alice/dismiss/")
    assert not Membership.objects.filter(user=cast.alice).exists()
    page = text(pages.get(f"{TALK}/people/alice/"))
    assert "not a member" in page
    assert "Forgotten password" not in page


def test_who_removes_themselves_is_led_home(project: Project, cast: Cast, pages: Client) -> None:
    make_member(project, make_user("lead"), role=Role.MANAGER)
    assert pages.post(f"{TALK}/people/carol/dismiss/").headers["Location"] == "/"


def test_a_person_is_excluded_with_a_preview_and_readmitted(project: Project, cast: Cast, pages: Client) -> None:
    for _ in range(2):
        make_task(project)
        rate(project, cast.bob)
    page = pages.get(f"{TALK}/people/bob/exclude/")
    assert page.context["foreseen"].annotations == 2
    assert pages.post(f"{TALK}/people/bob/exclude/", {"reason": " "}).status_code == 422
    assert "no longer counts" in text(pages.post(f"{TALK}/people/bob/exclude/", {"reason": "A bot."}, follow=True))
    assert Exclusion.objects.get().reason == "A bot."
    assert "already excluded" in text(pages.get(f"{TALK}/people/bob/exclude/"))
    assert pages.get(f"{TALK}/people/bob/readmit/").context["foreseen"].annotations == 2
    assert "bob is back." in text(pages.post(f"{TALK}/people/bob/readmit/", follow=True))
    assert not Exclusion.objects.exists()


def test_an_imported_rater_is_found_and_shown(project: Project, cast: Cast, pages: Client) -> None:
    imported(project, ratings_row("Why?", "So.", [1, 2, 3]))
    rater = User.objects.filter(username__startswith="imported").order_by("pk")[0]
    found = pages.get(f"{TALK}/exclusions/?find={pseudonym(rater, project)}")
    assert found.headers["Location"] == f"{TALK}/people/{rater.username}/exclude/"
    assert pages.get(f"{TALK}/people/{rater.username}/").status_code == 200
    assert "Nobody with this name" in text(pages.get(f"{TALK}/exclusions/?find=nobody"))


def test_the_page_shows_flags_figures_and_latest_work(project: Project, cast: Cast, pages: Client) -> None:
    for level in (1, 2, 3, 4, 2, 1):
        task = make_task(project)
        rate(project, cast.alice, level, active_seconds=30)
        rate(project, cast.bob, level)
    flags = [{"kind": "speeding", "evidence": {"hurried": 5, "timed": 6, "seconds": 9.0}, "examples": [task.pk]}]
    values = {"annotations": 6, "measures": FINE, "flags": flags, "computed_at": NOW}
    RaterQuality.objects.create(project=project, annotator=cast.alice, **values)
    QualificationRun.objects.create(
        member=cast.alice.memberships.get(),
        kind="test",
        number=1,
        started_at=NOW,
        finished_at=NOW,
        kappa=0.7,
        passed=True,
    )
    answer = pages.get(f"{TALK}/people/alice/")
    work = answer.context["work"]
    assert (work.done, work.shared, work.kappa, len(work.latest), work.seconds) == (6, 6, 1.0, 6, 30.0)
    page = text(answer)
    assert "5 of 6 tasks with a known duration" in page
    assert f"{TALK}/review/{task.public_id}/" in page
    assert "Test 1" in page


def test_the_page_says_where_it_counts_a_part(
    project: Project, cast: Cast, pages: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        make_task(project)
        rate(project, cast.alice, now=database_now())
    assert "earliest weeks" not in text(pages.get(f"{TALK}/people/alice/"))
    monkeypatch.setattr(person_work, "COUNTED", 2)
    answer = pages.get(f"{TALK}/people/alice/")
    assert (answer.context["work"].this_week, answer.context["work"].done) == (2, 3)
    assert "Only the latest 2 tasks are counted, so the earliest weeks may lack some." in text(answer)


def test_reviewers_see_the_work_under_the_pseudonym(project: Project, cast: Cast, rita: User, client: Client) -> None:
    make_task(project)
    rate(project, cast.alice)
    client.force_login(rita)
    assert client.get(f"{TALK}/people/alice/").status_code == 404
    page = text(client.get(f"{TALK}/people/{pseudonym(cast.alice, project)}/"))
    assert "alice" not in page
    assert "Role and limits" not in page
    assert "Latest work" in page


# Invitations -----------------------------------------------------------------------------------------------


def link_on(page: str) -> str:
    found = re.search(r"<pre[^>]*>http://testserver(/[^<]+)</pre>", page)
    assert found, page
    return found[1]


def invited(carol: Client, **fields: Any) -> str:
    answer = carol.post(f"{TALK}/invitations/", {"role": "annotator", "places": 1, "days": 7} | fields)
    assert answer.status_code == 200, answer.context["form"].errors
    return link_on(text(answer))


def joining(**fields: str) -> dict[str, str]:
    return {"username": "frank", "password": PASSWORD, "again": PASSWORD} | fields


def test_a_link_is_shown_once(project: Project, pages: Client) -> None:
    link = invited(pages, meant_for="Frank")
    page = text(pages.get(f"{TALK}/invitations/"))
    assert "Frank" in page
    assert link.split("/")[2] not in page


def test_a_new_person_joins_and_is_logged_in(project: Project, pages: Client) -> None:
    link, frank = invited(pages, role="reviewer"), Client()
    assert "Join Talk" in text(frank.get(link))
    assert frank.post(link, joining()).headers["Location"] == "/"
    assert "Welcome! You have joined Talk." in text(frank.get("/"))
    assert Membership.objects.get(user__username="frank").role == Role.REVIEWER
    assert frank.get("/mine/").status_code == 200, "the password is their own"
    assert Client().get(link).status_code == 410


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"again": "another"}, "The two passwords differ."),
        ({"password": "short", "again": "short"}, "too short"),
        ({"username": "alice"}, "is taken"),
        ({"username": "a l"}, "Enter a valid username"),
        ({"username": ""}, "This field is required"),
        ({"username": "f\0"}, ""),
    ],
)
def test_a_wrong_form_says_what_is_wrong(project: Project, pages: Client, fields: dict[str, str], said: str) -> None:
    link = invited(pages)
    answer = Client().post(link, joining(**fields))
    assert answer.status_code in (400, 422)
    assert said in text(answer)
    assert PASSWORD not in text(answer)
    assert Invitation.objects.get().taken == 0


def test_who_has_an_account_joins_with_it(project: Project, cast: Cast, pages: Client) -> None:
    link, dave = invited(pages), Client()
    assert f"/login/?next={link}" in text(dave.get(link))
    dave.force_login(cast.dave)
    assert "Join as dave" in text(dave.get(link))
    assert "You have joined Talk." in text(dave.post(link, follow=True))
    assert Membership.objects.filter(user=cast.dave).exists()


def test_nobody_is_admitted_by_looking(project: Project, cast: Cast, pages: Client) -> None:
    link, dave = invited(pages), Client()
    dave.force_login(cast.dave)
    dave.get(link)
    assert not Membership.objects.filter(user=cast.dave).exists()


def test_a_form_cannot_choose_its_role(project: Project, pages: Client) -> None:
    Client().post(invited(pages), joining(role="manager", project="other", is_staff="on"))
    frank = User.objects.get(username="frank")
    assert (frank.memberships.get().role, frank.is_staff, frank.is_superuser) == (Role.ANNOTATOR, False, False)


def test_a_revoked_link_says_so(project: Project, pages: Client) -> None:
    link = invited(pages)
    pages.post(f"{TALK}/invitations/{Invitation.objects.get().pk}/revoke/")
    for answer in (Client().get(link), Client().post(link, joining())):
        assert answer.status_code == 410
        assert "This invitation has been revoked." in text(answer)
    assert not User.objects.filter(username="frank").exists()


def test_another_project_s_link_cannot_be_revoked(project: Project, cast: Cast, pages: Client) -> None:
    row, _ = invitations.invite(project, InvitationInput(), by=cast.carol, now=NOW)
    lead = make_user("lead")
    make_member(make_project("other"), lead, role=Role.MANAGER)
    stranger = Client()
    stranger.force_login(lead)
    assert stranger.post(f"/projects/other/invitations/{row.pk}/revoke/").status_code == 404
    row.refresh_from_db()
    assert row.revoked_at is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"days": 0}, "days"),
        ({"days": 1000}, "days"),
        ({"places": 9999}, "places"),
        ({"role": "manager", "places": 2}, "places"),
        ({"role": "owner"}, "role"),
        ({"languages": "English"}, "languages"),
        ({"quota": "9" * 30}, "quota"),
        ({"meant_for": "x" * 151}, "meant_for"),
    ],
)
def test_a_wrong_wish_is_shown_beside_its_field(
    project: Project, pages: Client, fields: dict[str, Any], field: str
) -> None:
    answer = pages.post(f"{TALK}/invitations/", {"role": "annotator", "places": 1, "days": 7} | fields)
    assert (answer.status_code, list(answer.context["form"].errors)) == (422, [field])
    assert not Invitation.objects.exists()


def test_the_list_of_links_costs_the_same_for_many(
    project: Project, cast: Cast, pages: Client, django_assert_max_num_queries: Most
) -> None:
    for _ in range(30):
        invitations.invite(project, InvitationInput(), by=cast.carol, now=NOW)
    with django_assert_max_num_queries(20):
        answer = pages.get(f"{TALK}/invitations/")
    assert (len(answer.context["rows"]), answer.context["further"] is not None) == (25, True)


# E-mail ----------------------------------------------------------------------------------------------------


def test_no_address_is_asked_for_without_a_mail_server(project: Project, pages: Client) -> None:
    assert "email" not in pages.get(f"{TALK}/invitations/").context["form"].fields
    invited(pages, email="frank@example.org")
    assert Invitation.objects.get().email == ""
    assert mail.outbox == []


def test_a_link_is_sent(project: Project, pages: Client, settings: Any) -> None:
    settings.EMAIL_HOST, settings.DEFAULT_FROM_EMAIL = "mail.example.org", "rewardloop@example.org"
    Project.objects.update(name="Talk\r\nBcc: all@example.org")
    link = invited(pages, email="frank@example.org")
    (sent,) = mail.outbox
    assert (sent.to, sent.from_email) == (["frank@example.org"], "rewardloop@example.org")
    assert f"http://testserver{link}" in sent.body
    assert "\n" not in sent.subject
    assert Invitation.objects.get().mailed_at


def test_a_mail_that_is_not_sent_is_said(project: Project, pages: Client, settings: Any) -> None:
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 1
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    answer = pages.post(
        f"{TALK}/invitations/", {"role": "annotator", "places": 1, "days": 7, "email": "frank@example.org"}
    )
    assert "could not be sent" in text(answer)
    assert link_on(text(answer))
    assert Invitation.objects.get().mailed_at is None


# New passwords ---------------------------------------------------------------------------------------------


def test_a_forgotten_password_is_chosen_anew(project: Project, cast: Cast, pages: Client) -> None:
    link, alice = link_on(text(pages.post(f"{TALK}/people/alice/password-link/"))), Client()
    assert "for the account alice" in text(alice.get(link))
    assert alice.post(link, {"password": "short", "again": "short"}).status_code == 422
    assert alice.post(link, {"password": PASSWORD, "again": PASSWORD}).headers["Location"] == "/login/"
    assert alice.post("/login/", {"username": "alice", "password": PASSWORD}).headers["Location"] == "/"
    assert Client().get(link).status_code == 404


def test_the_page_says_why_there_is_no_link(project: Project, cast: Cast, pages: Client) -> None:
    make_member(project, make_user("lead"), role=Role.MANAGER)
    assert "only an administrator can make a link" in text(pages.get(f"{TALK}/people/lead/"))
    answer = pages.post(f"{TALK}/people/lead/password-link/", follow=True)
    assert "only an administrator can make a link" in text(answer)


def test_a_link_that_ended_says_so(project: Project, cast: Cast) -> None:
    long_ago = NOW - timedelta(days=900)
    _, secret = password_links.make(cast.alice, by=cast.carol, project=project, now=long_ago)
    answer = Client().get(f"/new-password/{secret}/")
    assert (answer.status_code, "has expired" in text(answer)) == (410, True)
