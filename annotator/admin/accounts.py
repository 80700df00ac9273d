"""Accounts, groups and tokens, for superusers."""

from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from annotator.accounts import tokens
from annotator.admin.scoping import Recorded, Titled
from annotator.infrastructure import audit
from annotator.managing import members
from annotator.models import ImportedRater, Token, User
from annotator.pages.projects.seen import SeenFieldsForm

admin.site.unregister(Group)


class GivenPasswordForm(AdminPasswordChangeForm):
    """Sets a password; on somebody else's account it is one that the owner has to change."""

    def save(self, commit: bool = True) -> User:
        """Saves the password alone, as the rest of the account may have changed since it was read."""
        self.user.must_change_password = audit.acting_now().actor != self.user.username
        saved: User = super().save(commit=False)
        if commit:
            saved.save(update_fields=["password", "must_change_password"])
        return saved


class AccountForm(SeenFieldsForm, UserChangeForm):
    """Refuses to close the account of a project's last manager."""

    def clean_is_active(self) -> bool:
        is_active = bool(self.cleaned_data["is_active"])
        if self.instance.is_active and not is_active:
            try:
                members.require_other_managers(self.instance)
            except members.LastManager as last:
                raise forms.ValidationError(str(last)) from last
        return is_active


class WhoseAccount(admin.SimpleListFilter):
    """Leaves out the accounts behind imported raters, of which a file makes dozens, unless they are asked for."""

    title = gettext_lazy("whose")
    parameter_name = "whose"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [("imported", gettext_lazy("imported raters")), ("all", gettext_lazy("all"))]

    def choices(self, changelist: Any) -> Any:
        first, *others = super().choices(changelist)
        yield {**first, "display": gettext_lazy("people")}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "all":
            return queryset
        stands_in = Exists(ImportedRater.objects.filter(user=OuterRef("pk")))
        return queryset.filter(stands_in if self.value() == "imported" else ~stands_in)


@admin.register(User)
class UserAdmin(DjangoUserAdmin, Recorded):  # type: ignore[type-arg]
    form = AccountForm
    add_form = UserCreationForm
    change_password_form = GivenPasswordForm
    recorded_as = "account"
    list_title = gettext_lazy("Accounts")
    list_display = ["username", "email", "is_active", "is_staff", "is_superuser", "last_login"]
    list_filter = [WhoseAccount, "is_active", "is_staff", "is_superuser"]

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:
        """Saves the account. A new one has to change its password at first, and a closed one loses its tokens."""
        if not change:
            obj.must_change_password = True  # its owner did not choose it
        # Staff by an administrator's hand stays staff, whatever becomes of its roles.
        if "is_staff" in form.changed_data:
            obj.staff_by_role = False
        super().save_model(request, obj, form, change)
        if not obj.is_active:
            tokens.end_all(obj, reason="the account was closed")

    def get_deleted_objects(self, objs: Any, request: HttpRequest) -> Any:
        """Refuses to delete a project's last manager, and names the project in place of other reasons."""
        deleted, counts, lacking, protected = super().get_deleted_objects(objs, request)
        try:
            for user in objs:
                members.require_other_managers(user)
        except members.LastManager as last:
            return deleted, counts, set(), [str(last)]
        return deleted, counts, lacking, protected

    def changed_fields(self, row: Any, form: Any) -> list[str]:
        """Adds `staff_by_role`, which `save_model` sets although no field of the form stands for it."""
        names = super().changed_fields(row, form)
        return [*names, "staff_by_role"] if "is_staff" in names else names


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, Recorded):
    recorded_as = "group"


@admin.register(Token)
class TokenAdmin(Titled):
    """Tokens can be read and ended here. Nobody makes a token for somebody else: it would act in their name."""

    list_display = ["name", "user", "scopes", "created", "expiry", "last_used_at"]
    search_fields = ["name", "digest", "user__username"]
    list_select_related = ["user"]
    fields = [*list_display, "digest"]
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        # Rather than delete the row: this leaves an audit entry, as ending a token by any other door does.
        tokens.end(obj)

    @transaction.atomic
    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        for token in queryset.select_related("user"):
            tokens.end(token)
