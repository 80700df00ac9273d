"""What managers have handed out, in all projects: invitations and webhooks. Each is changed in its own workspace."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy

from annotator.admin.recorded import Titled
from annotator.models import Invitation, Webhook


class OfAdministrators(Titled):
    """Rows of all projects that administrators read, and nobody changes here."""

    list_select_related = ["project", "made_by"]
    list_per_page = 50

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False


@admin.register(Webhook)
class WebhookAdmin(OfAdministrators):
    list_title = gettext_lazy("Webhooks")
    list_display = ["url", "project", "active", "end_reason", "failing_since", "tried_at", "made_by"]
    list_filter = ["active", "project"]
    search_fields = ["url", "project__slug"]
    fields = [*list_display, "events", "created_at"]


@admin.register(Invitation)
class InvitationAdmin(OfAdministrators):
    """Who was invited to what, by whom, and how many have come. The links are stored nowhere."""

    list_display = ["__str__", "project", "role", "taken", "places", "made_by", "expires_at", "revoked_at"]
    list_filter = ["role", "project"]
    search_fields = ["meant_for", "email", "project__slug"]
    fields = ["meant_for", "email", "languages", "quota", "created_at", "mailed_at", *list_display[1:]]
