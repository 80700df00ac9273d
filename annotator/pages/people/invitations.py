"""Invitations: the manager's list of links, and the page on which an invited person joins."""

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.auth import login
from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from annotator.accounts import logins
from annotator.accounts.passwords import UnknownLink
from annotator.infrastructure.db.clock import database_now
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.paging import page_of
from annotator.managing import invitation_lists, invitation_mails, members, password_links
from annotator.managing import invitations as stage
from annotator.managing.invitation_lists import WrongLines
from annotator.models import Invitation, Project, User
from annotator.pages.people.people_form import InvitationForm, InvitationListForm, JoinForm, NewPasswordForm
from annotator.reading import access
from annotator.reading.access import user_of

PAGE = 25


@require_http_methods(["GET", "POST"])
def invitations(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the invitations; a POST makes one, and shows its link only this once."""
    project = access.managed_project(user_of(request), slug)
    form = InvitationForm(project, request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            made = stage.invite(project, form.wish(), by=user_of(request), now=database_now())
        except (stage.UnusableInvitation, members.UnknownLanguage) as refused:
            form.show(refused)
        else:
            return _links(request, project, [made])
    return _page(request, project, form=form, list_form=InvitationListForm())


@require_POST
def invite_list(request: HttpRequest, slug: str) -> HttpResponse:
    """Makes an invitation for each line of a list, and shows their links only this once."""
    project = access.managed_project(user_of(request), slug)
    form = InvitationListForm(request.POST, request.FILES)
    if form.is_valid():
        data = form.cleaned_data
        try:
            invited = invitation_lists.invite_all(
                project, data["lines"], days=data["days"], by=user_of(request), now=database_now()
            )
        except WrongLines as refused:
            return _page(request, project, form=InvitationForm(project), list_form=form, wrong=refused)
        return _links(request, project, [(row.invitation, row.secret) for row in invited])
    return _page(request, project, form=InvitationForm(project), list_form=form)


def _page(
    request: HttpRequest,
    project: Project,
    *,
    form: InvitationForm,
    list_form: InvitationListForm,
    wrong: WrongLines | None = None,
) -> HttpResponse:
    page, now = page_of(request, stage.newest_first(project), size=PAGE), database_now()
    context = page | {
        "project": project,
        "form": form,
        "list_form": list_form,
        "wrong": wrong,
        "rows": [(row, stage.state_of(row, now=now)) for row in page["rows"]],
        "mails": invitation_mails.are_sent(),
    }
    return render(request, "workspace/invitations.html", context, status=200 if request.method == "GET" else 422)


def _links(request: HttpRequest, project: Project, made: Sequence[tuple[Invitation, str]]) -> HttpResponse:
    """Sends the mails that are wanted, and shows all links."""
    links = [
        (invitation, request.build_absolute_uri(reverse("invitation", args=[secret]))) for invitation, secret in made
    ]
    unsent = {invitation.pk for invitation in invitation_mails.send(links)}
    context: dict[str, Any] = {
        "project": project,
        "links": [(invitation, link, invitation.pk in unsent) for invitation, link in links],
        "table": invitation_lists.as_csv(links) if len(links) > 1 else "",
        "mailed": sum(bool(invitation.email) for invitation, _link in links) if invitation_mails.are_sent() else 0,
        "unsent": len(unsent),
    }
    return render(request, "workspace/invitation_links.html", context)


@require_POST
def revoke(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Ends a link."""
    project = access.managed_project(user_of(request), slug)
    stage.revoke(get_object_or_404(project.invitations.select_related("project"), pk=pk), now=database_now())
    messages.success(request, _("The link is revoked. Nobody can join by it any more."))
    return redirect("invitations", slug)


# For those who follow a link -------------------------------------------------------------------------------


def _ended(request: HttpRequest, title: str, refused: Refusal) -> HttpResponse:
    answer = render(request, "workspace/link_ended.html", {"title": title, "text": str(refused)}, status=refused.status)
    for name, value in refused.headers.items():
        answer[name] = value
    return answer


@login_not_required
@sensitive_post_parameters("password", "again")
@require_http_methods(["GET", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Lets an invited person join: with their account, or with one that they make here."""
    try:
        with logins.limited_links(request):
            invited = stage.invitation_of(token, now=database_now())
            form = JoinForm(request.POST if request.method == "POST" and not request.user.is_authenticated else None)
            if request.method == "POST" and (answer := _joined(request, token, form)):
                return answer
    except (UnknownLink, stage.InvitationEnded, logins.TooManyWrongLinks) as refused:
        return _ended(request, _("Invitation"), refused)
    context = {"invitation": invited, "form": form, "here": request.path}
    return render(request, "workspace/invitation.html", context, status=422 if form.is_bound else 200)


def _joined(request: HttpRequest, token: str, form: JoinForm) -> HttpResponse | None:
    """Lets the person in and leads them to their projects; None where the form has to be corrected."""
    if isinstance(request.user, User):
        try:
            member = stage.accept(token, request.user, now=database_now())
        except (stage.AlreadyMember, stage.JoinedBefore, stage.StillExcluded) as refused:
            messages.error(request, str(refused))
            return redirect("home")
        messages.success(request, _("You have joined %(project)s.") % {"project": member.project})
        return redirect("home")
    if not form.is_valid():
        return None
    username, password = form.cleaned_data["username"], form.cleaned_data["password"]
    try:
        member = stage.join(token, username=username, password=password, now=database_now())
    except (members.RefusedName, members.WeakPassword) as refused:
        form.show(refused)
        return None
    login(request, member.user)
    messages.success(request, _("Welcome! You have joined %(project)s.") % {"project": member.project})
    answer = redirect("home")
    logins.note_login(request, answer, member.user)
    return answer


@login_not_required
@sensitive_post_parameters("password", "again")
@require_http_methods(["GET", "POST"])
def new_password(request: HttpRequest, token: str) -> HttpResponse:
    """Lets somebody who has forgotten their password choose a new one."""
    try:
        with logins.limited_links(request):
            account = password_links.link_of(token, now=database_now()).account
            form = NewPasswordForm(request.POST if request.method == "POST" else None)
            if form.is_valid():
                try:
                    password_links.choose(token, form.cleaned_data["password"], now=database_now())
                except members.WeakPassword as weak:
                    form.add_error("password", str(weak))
                else:
                    messages.success(request, _("Your new password is stored. Log in with it."))
                    return redirect("login")
    except (UnknownLink, password_links.PasswordLinkEnded, logins.TooManyWrongLinks) as refused:
        return _ended(request, _("New password"), refused)
    context = {"account": account, "form": form}
    return render(request, "workspace/new_password.html", context, status=422 if form.is_bound else 200)
