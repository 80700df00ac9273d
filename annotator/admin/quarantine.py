"""Lets a manager decide on quarantined tasks: retire them, release them as false alarms, or redact them."""

from collections.abc import Iterable, Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from annotator import annotation
from annotator.admin.scoping import FoundByTask
from annotator.db.clock import database_now
from annotator.forms.redaction import RedactForm, marked_in, unconfirmed
from annotator.forms.review import QuarantineForm
from annotator.models import Report, Skip, Task
from annotator.pii.redaction import redact
from annotator.refusals import Refusal
from annotator.review.rating_sheets import is_about_personal_information, set_aside
from annotator.web.query_parameters import as_number


def _words_of(mark: Report | Skip) -> str:
    reason = mark.get_category_display() if isinstance(mark, Report) else mark.get_reason_display()
    return f"{reason} {mark.note}".strip()


def _redact_url(tasks: Iterable[int]) -> str:
    return f"{reverse('admin:annotator_task_redact')}?{urlencode({'task': list(tasks)}, doseq=True)}"


class DecidesQuarantine(FoundByTask):
    """Adds the decisions as actions on the list, and as buttons on a task's page."""

    actions = ["release", "retire", "redact"]
    change_form_outer_before_template = "admin/_quarantine.html"

    @admin.display(description=gettext_lazy("set aside because"))
    def set_aside(self, task: Task) -> str:
        """Returns what annotators said when they reported the task or skipped it for personal information."""
        return "; ".join(map(_words_of, set_aside(task)))

    @admin.action(description=gettext_lazy("False alarm: release from quarantine"))
    def release(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._decide(request, queryset, safe_to_use=True)

    @admin.action(description=gettext_lazy("Justified: retire quarantined tasks"))
    def retire(self, request: HttpRequest, queryset: QuerySet[Task]) -> None:
        self._decide(request, queryset, safe_to_use=False)

    @admin.action(description=gettext_lazy("Redact personal information in quarantined tasks …"))
    def redact(self, request: HttpRequest, queryset: QuerySet[Task]) -> HttpResponse | None:
        """Leads to the preview, where a manager confirms it."""
        chosen = queryset.filter(state=Task.State.QUARANTINED).values_list("pk", flat=True)
        if not chosen:
            messages.warning(request, _("None of these tasks is quarantined."))
            return None
        return redirect(_redact_url(chosen))

    def _decide(self, request: HttpRequest, tasks: QuerySet[Task], *, safe_to_use: bool) -> None:
        text = _("%(task)s: back in the queue.") if safe_to_use else _("%(task)s: retired.")
        # Each by itself: one that somebody else has decided meanwhile is refused, and the others go on.
        for task in tasks:
            try:
                annotation.decide_quarantine(task.pk, safe_to_use=safe_to_use, now=database_now())
            except Refusal as refused:
                messages.warning(request, str(refused))
            else:
                self.log_change(request, task, text % {"task": task})
                messages.success(request, text % {"task": task})

    # The same on pages of their own ------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        # Before Django's own, whose last pattern takes any address.
        pages = [
            path("redact/", self.admin_site.admin_view(self.redact_view), name="annotator_task_redact"),
            path("<int:task_id>/decide/", self.admin_site.admin_view(self.decide_view), name="annotator_task_decide"),
        ]
        return [*pages, *super().get_urls()]

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        task = self.get_object(request, object_id)
        extra: dict[str, Any] = {}
        if isinstance(task, Task):
            marks = set_aside(task)
            extra = {
                "task": task,
                "marked": marked_in(task),
                "set_aside": "; ".join(map(_words_of, marks)),
                "personal": is_about_personal_information(task, marks),
                "redact_url": _redact_url([task.pk]),
            }
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **extra})

    def decide_view(self, request: HttpRequest, task_id: int) -> HttpResponse:
        """Answers the two buttons of a task's page."""
        tasks = self.get_queryset(request).filter(pk=task_id)
        if not tasks.exists():
            raise Http404
        form = QuarantineForm(request.POST if request.method == "POST" else None)
        if form.is_valid():
            self._decide(request, tasks, safe_to_use=form.is_safe_to_use())
        elif form.is_bound:
            messages.error(request, _("Nothing was decided. Choose one of the two buttons."))
        return redirect("admin:annotator_task_change", task_id)

    def redact_view(self, request: HttpRequest) -> HttpResponse:
        """Shows what would be left of the tasks; redacts them once a manager confirms exactly that."""
        chosen = [number for text in request.GET.getlist("task") if (number := as_number(text)) is not None][:100]
        tasks = list(self.get_queryset(request).filter(pk__in=chosen, state=Task.State.QUARANTINED))
        if not tasks:
            raise Http404
        forms = [RedactForm(task, request.POST if request.method == "POST" else None) for task in tasks]
        if "redact" in request.POST:
            if not (why_not := unconfirmed(forms, request.POST)):
                return self._redact(request, forms)
            messages.warning(request, why_not)
        context = {**self.admin_site.each_context(request), "title": _("Redact"), "opts": self.opts, "forms": forms}
        return TemplateResponse(request, "admin/redact.html", context)

    def _redact(self, request: HttpRequest, forms: Sequence[RedactForm]) -> HttpResponse:
        for form in forms:
            try:
                redact(form.task.pk, form.choice, now=database_now())
            except Refusal as refused:
                messages.error(request, str(refused))
            else:
                # Says that it happened, never what was there: history is kept for good.
                self.log_change(request, form.task, _("Redacted personal information."))
                messages.success(request, _("%(task)s: redacted, back in the queue.") % {"task": form.task})
        messages.info(
            request,
            _("Earlier snapshots that contain the text, and their models, are marked. A manager can erase them."),
        )
        return redirect("admin:annotator_task_changelist")
