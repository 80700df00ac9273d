"""Who is in a project, and accounts."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.admin import ModelAdmin
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldAdminPasswordWidget, UnfoldAdminTextInputWidget

from annotator import membership
from annotator.access import user_of
from annotator.admin.scoping import ManagedOnly, OfManagedProjects
from annotator.models import (
    Membership,
    Project,
    User,
)
from annotator.refusals import Refusal


class InvitationForm(forms.ModelForm):  # type: ignore[type-arg]
    """Adds somebody to a project, with a password where the account does not exist yet."""

    managed: Any = None
    username = forms.CharField(max_length=150, widget=UnfoldAdminTextInputWidget)
    password = forms.CharField(
        required=False,
        widget=UnfoldAdminPasswordWidget(attrs={"autocomplete": "new-password"}),
        help_text="only for an account that does not exist yet",
    )

    class Meta:
        model = Membership
        fields = ["project", "role"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = self.managed  # type: ignore[attr-defined]

    def save(self, commit: bool = True) -> Membership:
        data = self.cleaned_data
        member, _ = membership.admit(
            data["project"], username=data["username"], role=data["role"], password=data["password"]
        )
        self.instance = member
        return member

    def clean(self) -> dict[str, Any]:
        """Tries the admission and takes it back, so that a refusal is shown in the form."""
        data = super().clean() or {}
        if "project" in data and "username" in data:
            self._try_out(data)
        return data

    def _try_out(self, data: dict[str, Any]) -> None:
        try:
            with transaction.atomic():
                membership.admit(
                    data["project"], username=data["username"], role=data["role"], password=data["password"]
                )
                transaction.set_rollback(True)
        except Refusal as refused:
            self.add_error("username", str(refused))


@admin.register(Membership)
class MembershipAdmin(OfManagedProjects):
    actions = ["remove_from_project"]
    list_display = ["user", "project", "role", "acknowledged_version", "submitted"]
    list_filter = [("project", ManagedOnly), "role"]
    search_fields = ["user__username"]
    list_select_related = ["user", "project"]

    def get_form(self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any) -> Any:
        if obj is not None:
            return super().get_form(request, obj, change, **kwargs)
        return type("Invitation", (InvitationForm,), {"managed": Project.objects.managed_by(user_of(request))})

    def get_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["user", "project", "role"] if obj else ["project", "username", "role", "password"]

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        return ["user", "project"] if obj else []

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """The invitation has made the member itself."""
        if change:
            super().save_model(request, obj, form, change)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """A membership has nothing related to save."""

    @admin.action(description="Remove from the project")
    def remove_from_project(self, request: HttpRequest, queryset: QuerySet[Membership]) -> None:
        """Finished work stays; tasks they hold go back."""
        for member in queryset:
            membership.dismiss(member)
        messages.success(request, "Removed. Their finished work stays.")

    @admin.display(description="annotations")
    def submitted(self, member: Membership) -> int:
        return member.user.assignments.submitted().filter(task__project=member.project_id).count()


@admin.register(User)
class UserAdmin(DjangoUserAdmin, ModelAdmin):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
