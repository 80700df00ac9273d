"""Accounts, groups and tokens, for superusers."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.http import HttpRequest
from knox.admin import AuthTokenAdmin as KnoxTokenAdmin
from knox.models import AuthToken
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from annotator import audit
from annotator.admin.recorded import Recorded
from annotator.models import User

admin.site.unregister(Group)
admin.site.unregister(AuthToken)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, Recorded):  # type: ignore[type-arg]
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    recorded_as = "account"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Staff by an administrator's hand stays staff, whatever becomes of its roles."""
        if "is_staff" in form.changed_data:
            obj.staff_by_role = False
        super().save_model(request, obj, form, change)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, Recorded):
    recorded_as = "group"


@admin.register(AuthToken)
class TokenAdmin(KnoxTokenAdmin, Recorded):
    recorded_as = "token"

    def recorded_name(self, row: Any) -> str:
        return f"{audit.shown(row)} of {row.user.username}"
