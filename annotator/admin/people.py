"""Lists the members of projects, invites people, changes roles and limits, pauses, qualifies, excludes and removes."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import OuterRef, QuerySet, Subquery
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from annotator.access import user_of
from annotator.admin.exclusions import exclude_url
from annotator.admin.scoping import ManagedOnly, OfManagedProjects, ToBeRead
from annotator.db.clock import database_now
from annotator.forms.seen import SeenFieldsForm
from annotator.gold import gold_tasks
from annotator.models import Membership, PauseReason, Project, QualificationRun, Role, Tally, User
from annotator.projects import members
from annotator.refusals import Refusal


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    """Adds somebody to a project, with a password where the account does not exist yet."""

    managed: Any = None
    by: User
    username = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget, label=gettext_lazy("Username"))
    password = forms.CharField(
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        label=gettext_lazy("Password"),
        help_text=gettext_lazy("Only for an account that does not exist yet."),
    )

    class Meta:
        model = Membership
        fields = ["project", "role"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = self.managed  # type: ignore[attr-defined]

    def save(self, commit: bool = True) -> Membership:
        data = self.cleaned_data
        member, _created = members.admit(
            data["project"], username=data["username"], role=data["role"], password=data["password"], by=self.by
        )
        self.instance = member
        return member

    def clean(self) -> dict[str, Any]:
        """Tries the admission and rolls it back, so that a refusal is shown in the form."""
        data = super().clean() or {}
        if not {"project", "username", "role", "password"} <= data.keys():
            return data
        try:
            with transaction.atomic():
                members.admit(
                    data["project"], username=data["username"], role=data["role"], password=data["password"], by=self.by
                )
                transaction.set_rollback(True)
        except members.WeakPassword as weak:
            self.add_error("password", str(weak))
        except Refusal as refused:
            self.add_error("username", str(refused))
        return data


class MemberForm(SeenFieldsForm):
    """Changes a member's role and limits by the rules that hold at every door."""

    by: User

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Shows the role that the member is asked to take: choosing another one takes the offer back."""
        super().__init__(*args, **kwargs)
        if self.instance.offered_role and "role" in self.fields:
            self.initial["role"] = self.instance.offered_role
            self.fields["role"].help_text = _("The role stays “%(role)s” until the offer is accepted.") % {
                "role": self.instance.get_role_display()
            }

    def clean(self) -> dict[str, Any]:
        """Tries the change and rolls it back, so that a refusal is shown in the form."""
        data = super().clean() or {}
        if self.errors:
            return data
        # A row of its own: the rollback takes nothing back that the trial sets on the object.
        member = Membership.objects.select_related("user", "project").get(pk=self.instance.pk)
        try:
            with transaction.atomic():
                self.store(member, data)
                transaction.set_rollback(True)
        except members.LastManager as last:
            self.add_error("role", str(last))
        except members.UnknownLanguage as unknown:
            self.add_error("languages", str(unknown))
        return data

    def store(self, member: Membership, data: dict[str, Any]) -> None:
        """Makes the change, for the trial in `clean` and for good in `save_model`."""
        if "role" in self.changed_data:
            members.give_role(member, data["role"], agreed=member.user == self.by)
        quota = data["quota"] if "quota" in self.changed_data else member.quota
        languages = data["languages"] or [] if "languages" in self.changed_data else member.languages
        members.limit(member, quota=quota, languages=languages)


def _asked(user: User) -> str:
    return _("%(user)s has been asked, and will manage the project after accepting.") % {"user": user}


class QualificationRunInline(ToBeRead):
    model = QualificationRun
    verbose_name_plural = gettext_lazy("practice and test")
    fields = ["kind", "number", "started_at", "finished_at", "kappa", "passed"]
    readonly_fields = fields


@admin.register(Membership)
class MembershipAdmin(OfManagedProjects):
    list_title = gettext_lazy("People")
    actions = ["pause", "let_go_on", "give_another_try", "qualify", "exclude_them", "remove_from_project"]
    list_display = ["user", "project", "role", "offered", "guidelines_read", "test", "paused", "submitted"]
    list_filter = [("project", ManagedOnly), "role", "pause_reason"]
    inlines = [QualificationRunInline]
    search_fields = ["user__username"]
    list_select_related = ["user", "project"]

    @admin.display(description=gettext_lazy("guidelines read"), ordering="acknowledged_version")
    def guidelines_read(self, member: Membership) -> str:
        version = member.acknowledged_version
        return _("version %(version)s") % {"version": version} if version else "–"

    def get_queryset(self, request: HttpRequest) -> Any:
        theirs = Tally.objects.filter(annotator=OuterRef("user"), project=OuterRef("project"))
        return super().get_queryset(request).annotate(done=Subquery(theirs.values("done")))

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        by = user_of(request)
        if obj is not None:
            form = super().get_form(request, obj, change, **{**kwargs, "form": MemberForm})
            return type("Member", (form,), {"by": by})
        return type("Invitation", (InvitationForm,), {"managed": Project.objects.managed_by(by), "by": by})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[Any]:
        if obj is None:
            return ["project", "username", "role", "password"]
        own = [
            "role",
            "offered",
            ("quota", "languages"),
            ("qualified_at", "extra_tries"),
            ("paused_at", "paused"),
            "with_experts",
        ]
        return ["user", "project", *own]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        # A further try is given by an action, which the form would leave undone.
        told = ["offered", "qualified_at", "extra_tries", "paused_at", "paused", "with_experts"]
        return ["user", "project", *told] if obj else []

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Stores a member's change; an invitation has made the member by itself."""
        if change:
            member = Membership.objects.select_related("user", "project").get(pk=obj.pk)
            form.store(member, form.cleaned_data)
            if member.offered_role:
                messages.info(request, _asked(member.user))
        elif obj.offered_role:
            messages.info(request, _asked(obj.user))

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Saves what belongs to a member; an invitation has no forms for that."""
        if change:
            super().save_related(request, form, formsets, change)

    def get_inlines(self, request: HttpRequest, obj: Any = None) -> Any:
        return self.inlines if obj else []

    @admin.action(description=gettext_lazy("Pause: give them no more tasks"))
    def pause(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for member in queryset:
            gold_tasks.pause(member, reason=PauseReason.MANAGER, now=database_now())
        messages.success(request, _("Paused. They are told when they ask for a task."))

    @admin.action(description=gettext_lazy("Resume, and count gold tasks from now on"))
    def let_go_on(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for member in queryset:
            gold_tasks.resume(member, now=database_now())
        messages.success(request, _("They may rate again."))

    @admin.action(description=gettext_lazy("Allow one more try of the test"))
    def give_another_try(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for member in queryset:
            members.give_another_try(member)
        messages.success(request, _("Each of them has one more try."))

    @admin.action(description=gettext_lazy("Qualify without the test"))
    def qualify(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        for member in queryset:
            members.qualify(member, now=database_now())
        messages.success(request, _("Qualified."))

    @admin.action(description=gettext_lazy("Exclude: their work no longer counts …"))
    def exclude_them(self, request: HttpRequest, queryset: QuerySet[Membership]) -> HttpResponse | None:
        """Leads to the page that says what would change, where a manager confirms it."""
        projects = {member.project_id for member in queryset}
        if len(projects) != 1:
            messages.warning(request, _("Choose people of one project."))
            return None
        return redirect(exclude_url(projects.pop(), [member.user_id for member in queryset]))

    @admin.display(description=gettext_lazy("offered role"))
    def offered(self, member: Membership) -> str:
        return member.get_offered_role_display() if member.offered_role else ""

    @admin.display(description=gettext_lazy("test"))
    def test(self, member: Membership) -> str:
        if member.qualified_at:
            return _("passed")
        return _("not taken yet") if member.project.qualification_required and member.role == Role.ANNOTATOR else ""

    @admin.display(description=gettext_lazy("paused because of"))
    def paused(self, member: Membership) -> str:
        return member.get_pause_reason_display() if member.paused_at else ""

    @admin.display(description=gettext_lazy("kappa with the experts on the latest gold tasks"))
    def with_experts(self, member: Membership) -> str:
        standing = gold_tasks.standing(member)
        if standing is None:
            return _("fewer than %(number)s gold tasks rated") % {"number": member.project.gold_window}
        if standing.mean is None:
            return _("undefined, because the experts give every response the same scores")
        by_attribute = ", ".join(f"{key} {kappa:.2f}" for key, kappa in standing.kappas.items() if kappa is not None)
        return f"{standing.mean:.2f} ({by_attribute})"

    @admin.action(description=gettext_lazy("Remove from the project"))
    def remove_from_project(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        """Removes the members: their finished work stays, and the tasks that they hold go back."""
        removed = 0
        for member in queryset:
            try:
                members.dismiss(member)
                removed += 1
            except Refusal as refused:
                messages.error(request, str(refused))
        if removed:
            messages.success(request, _("Removed. Their finished work is kept."))

    @admin.display(description=gettext_lazy("annotations"))
    def submitted(self, member: Any) -> int:
        return member.done or 0
