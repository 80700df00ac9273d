"""Lists the audit: managers read the entries of their projects, superusers all of them. Nobody can change one."""

from datetime import datetime, time
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.timezone import localtime, make_aware
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from unfold.contrib.filters.admin import FieldTextFilter, RangeDateFilter
from unfold.utils import parse_date_str

from annotator.admin.scoping import ReadOnly
from annotator.infrastructure.audit import JSON
from annotator.models import AuditEntry, Exclusion, Project, Pseudonym, Verdict
from annotator.reading.access import user_of

NO_PROJECT = "-"
DECISIONS = "decisions"
OWN_WORK = (
    "annotation.submitted",
    "annotation.revised",
    "task.skipped",
    "task.unskipped",
    "task.reported",
    "task.unreported",
    "task.guidelines_silent",
)
KINDS = {
    "tasks": _("Imports"),
    "import": _("Uploaded files"),
    "import_mapping": _("Column mappings"),
    "artifacts": _("Artifacts"),
    "audit": _("The audit itself"),
    "labels": _("Exports"),
    "release": _("Releases"),
    "task": _("Single tasks"),
    "bulk_change": _("Changes of many tasks"),
    "annotation": _("Annotations"),
    "label": _("Adjudications"),
    "annotator": _("Exclusions"),
    "project": _("Projects"),
    "guidelines": _("Guidelines"),
    "rubric": _("Rubrics"),
    "membership": _("People in projects"),
    "invitation": _("Invitations"),
    "webhook": _("Webhooks"),
    "gold": _("Gold tasks"),
    "snapshot": _("Snapshots"),
    "run": _("Training runs"),
    "policy": _("Policies"),
    "model": _("Reward models"),
    "evaluation": _("Evaluations"),
    "scoring": _("Scoring"),
    "account": _("Accounts"),
    "login": _("Logins"),
    "password": _("Passwords"),
    "token": _("Tokens"),
    "group": _("Groups"),
}


class AuditedProjectFilter(admin.SimpleListFilter):
    """Filters by the projects that exist. An entry names its project in words, as it may outlive it."""

    title = _("project")
    parameter_name = "project"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        managed = [
            (str(pk), name) for pk, name in Project.objects.managed_by(user_of(request)).values_list("pk", "name")
        ]
        return [*managed, (NO_PROJECT, _("without a project"))] if user_of(request).is_superuser else managed

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        value = self.value() or ""
        if value == NO_PROJECT:
            return queryset.filter(project="")
        # Up to 18 digits, which always fit a bigint; 19 may not.
        return queryset.filter(project_id=int(value)) if value.isdecimal() and len(value) < 19 else queryset


class KindFilter(admin.SimpleListFilter):
    """Filters by what an action is about, the first word of its name, or leaves out annotators' own work."""

    title = _("kind")
    parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        return [(DECISIONS, _("All but annotators' own work")), *KINDS.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        if self.value() == DECISIONS:
            return queryset.exclude(action__in=OWN_WORK)
        return queryset.filter(action__startswith=f"{self.value()}.") if self.value() in KINDS else queryset


class DayFilter(RangeDateFilter):
    """Filters from the start of one day to the end of another, as the theme's own filter leaves out the last day."""

    def queryset(self, request: HttpRequest, queryset: QuerySet[AuditEntry]) -> QuerySet[AuditEntry]:
        for end, lookup, moment in (("from", "gte", time.min), ("to", "lte", time.max)):
            if day := parse_date_str(str(self.used_parameters.get(f"{self.parameter_name}_{end}") or "")):
                queryset = queryset.filter(**{f"at__{lookup}": make_aware(datetime.combine(day, moment))})
        return queryset


@admin.register(AuditEntry)
class AuditAdmin(ReadOnly):
    list_display = ["when", "who", "door", "done", "subject", "project", "summary"]
    list_display_links = ["when"]
    list_filter = [AuditedProjectFilter, KindFilter, ("actor", FieldTextFilter), ("at", DayFilter)]
    list_filter_submit = True
    search_fields = ["actor", "action", "subject"]
    search_help_text = _("a name, an action, or what was changed")
    # It would count every entry that there ever was to show beside the filtered number.
    show_full_result_count = False
    ordering = ["-at", "-pk"]
    fields = ["when", "who", "door", "token", "project", "done", "subject", "all_details"]
    readonly_fields = fields

    def get_queryset(self, request: HttpRequest) -> QuerySet[AuditEntry]:
        entries: QuerySet[AuditEntry] = super().get_queryset(request)
        if user_of(request).is_superuser:
            return entries
        return entries.filter(project_id__in=Project.objects.managed_by(user_of(request)).values("pk"))

    @admin.display(description=_("when"), ordering="at")
    def when(self, entry: AuditEntry) -> str:
        return f"{localtime(entry.at):%Y-%m-%d %H:%M:%S %Z}"

    @admin.display(description=_("who"), ordering="actor")
    def who(self, entry: AuditEntry) -> Any:
        return entry.actor or (_("a stranger") if entry.action.startswith("login.") else _("the system"))

    @admin.display(description=_("through"), ordering="via")
    def door(self, entry: AuditEntry) -> str:
        return f"{entry.via}, token {entry.token}" if entry.token else entry.via

    @admin.display(description=_("action"), ordering="action")
    def done(self, entry: AuditEntry) -> str:
        words = {"action": entry.action}
        return gettext("%(action)s (rolled back)") % words if is_rollback(entry) else entry.action

    @admin.display(description=_("details"))
    def summary(self, entry: AuditEntry) -> str:
        lines = "; ".join(f"{name}: {value}" for name, value in in_words(entry.details))
        return lines if len(lines) <= 160 else f"{lines[:160]} …"

    @admin.display(description=_("details"))
    def all_details(self, entry: AuditEntry) -> SafeString:
        words = [*in_words(entry.details), *((gettext("reason"), text) for text in reasons(entry))]
        return format_html_join("", "<p><strong>{}</strong>: {}</p>", words) or SafeString("-")


def is_rollback(entry: AuditEntry) -> bool:
    """Returns whether the entry is a promotion in which an earlier model took a later one's place."""
    version, replaced = entry.subject.removeprefix("model version "), entry.details.get("replaced")
    return entry.action == "model.promoted" and version.isdecimal() and bool(replaced) and int(version) < replaced


def reasons(entry: AuditEntry) -> list[str]:
    """Returns why somebody was excluded or an annotation rejected, as long as the row that holds it exists.

    An entry itself repeats nothing that somebody wrote about a person or a task, as it can never be redacted.
    """
    if entry.action == "annotator.excluded":
        pseudonym = entry.subject.removeprefix("annotator ")
        people = Pseudonym.objects.filter(project=entry.project_id, name=pseudonym).values("user")
        excluded = Exclusion.objects.filter(project=entry.project_id, annotator__in=people)
        return list(excluded.filter(made_at__lte=entry.at).values_list("reason", flat=True))
    if entry.action == "annotation.rejected":
        verdicts = Verdict.objects.filter(
            assignment=entry.details.get("assignment"), assignment__task__project=entry.project_id
        )
        rejected = verdicts.filter(decision=Verdict.Decision.REJECTED, made_at__lte=entry.at)
        return list(rejected.order_by("-pk").values_list("comment", flat=True)[:1])
    return []


def in_words(details: dict[str, JSON]) -> list[tuple[str, str]]:
    """Returns the name and the value of each detail; a field that changed has its values before and after."""
    words = {name: _in_words(value) for name, value in details.items() if name != "changed"}
    changed = details.get("changed")
    pairs = changed.items() if isinstance(changed, dict) else []
    return [*words.items(), *((name, f"{_in_words(before)} → {_in_words(after)}") for name, (before, after) in pairs)]


def _in_words(value: Any) -> str:
    if isinstance(value, list):
        return ", ".join(_in_words(item) for item in value) or "-"
    if isinstance(value, dict):
        return ", ".join(f"{name} {_in_words(item)}" for name, item in value.items()) or "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "-" if value in (None, "") else str(value)
