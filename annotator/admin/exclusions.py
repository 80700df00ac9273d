"""Excludes annotators from a project and readmits them; before that, a page counts what would change."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import Exists, OuterRef, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from annotator.access import user_of
from annotator.admin.scoping import ManagedOnly, OfManagedProjects
from annotator.db.clock import database_now
from annotator.models import Exclusion, Project, Pseudonym, User
from annotator.refusals import Refusal
from annotator.review import exclude, exclusion_preview, readmission_preview, readmit
from annotator.review.exclusions import counting, people_of, person_named
from annotator.views.returning import back
from annotator.web.query_parameters import as_number


class ChoiceForm(forms.Form):
    """Asks whom to exclude, by name rather than from a list of members: imported raters are no members."""

    project = forms.ModelChoiceField(
        Project.objects.none(), widget=UnfoldAdminSelectWidget, label=gettext_lazy("Project")
    )
    annotator = forms.CharField(
        max_length=150, widget=UnfoldAdminTextInputWidget, label=gettext_lazy("User name or pseudonym")
    )

    def __init__(self, managed: QuerySet[Project], *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["project"].queryset = managed  # type: ignore[attr-defined]

    def clean(self) -> dict[str, Any]:
        data = super().clean() or {}
        if "project" in data and "annotator" in data:
            data["found"] = person_named(data["project"], data["annotator"])
            if data["found"] is None:
                self.add_error("annotator", _("Nobody with this name has worked in this project."))
        return data


class ReasonForm(forms.Form):
    """Asks for the reason, which is kept with the exclusion."""

    reason = forms.CharField(max_length=5_000, widget=UnfoldAdminTextareaWidget, label=gettext_lazy("Reason"))


def exclude_url(project: int, people: Sequence[int], *, name: str = "exclude") -> str:
    """Returns the address at which a manager sees what would change, and confirms it."""
    query = urlencode([("project", project), *(("annotator", person) for person in people)])
    return f"{reverse(f'admin:annotator_exclusion_{name}')}?{query}"


def readmit_url(exclusion: Exclusion) -> str:
    return exclude_url(exclusion.project_id, [exclusion.annotator_id], name="readmit")


@admin.register(Exclusion)
class ExclusionAdmin(OfManagedProjects):
    read_only = True
    actions = ["readmit"]
    change_form_outer_before_template = "admin/_exclusion.html"
    list_display = ["annotator", "project", "reason", "by", "made_at"]
    list_filter = [("project", ManagedOnly)]
    list_select_related = ["annotator", "project", "by"]
    search_fields = ["annotator__username"]
    search_help_text = gettext_lazy("a user name, or a pseudonym as the project's exports have it")

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self.has_module_permission(request)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Exclusion], search_term: str
    ) -> tuple[QuerySet[Exclusion], bool]:
        """Searches by user name, and by a pseudonym in the project that it is of: it names somebody there only."""
        exclusions, may_repeat = super().get_search_results(request, queryset, search_term)
        pseudonyms = Pseudonym.objects.filter(user=OuterRef("annotator"), project=OuterRef("project"), name=search_term)
        return exclusions | queryset.filter(Exists(pseudonyms)), may_repeat

    def get_urls(self) -> list[URLPattern]:
        # Before Django's own, whose last pattern takes any address.
        pages = [
            path("exclude/", self.admin_site.admin_view(self.exclude_view), name="annotator_exclusion_exclude"),
            path("readmit/", self.admin_site.admin_view(self.readmit_view), name="annotator_exclusion_readmit"),
        ]
        return [*pages, *super().get_urls()]

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        exclusion = self.get_object(request, object_id)
        extra = {"readmit_url": readmit_url(exclusion)} if isinstance(exclusion, Exclusion) else {}
        return super().change_view(request, object_id, form_url, {**(extra_context or {}), **extra})

    def add_view(self, request: HttpRequest, form_url: str = "", extra_context: Any = None) -> HttpResponse:
        """Asks whom to exclude; the next page shows what that would change."""
        form = ChoiceForm(
            Project.objects.managed_by(user_of(request)), request.POST if request.method == "POST" else None
        )
        if request.method == "POST" and form.is_valid():
            return redirect(exclude_url(form.cleaned_data["project"].pk, [form.cleaned_data["found"].pk]))
        return self._page(request, "exclude_choose", _("Exclude an annotator"), form=form)

    def exclude_view(self, request: HttpRequest) -> HttpResponse:
        """Shows what would change; excludes the people once a manager confirms it with a reason."""
        project, chosen = self._chosen(request)
        standing = project.exclusions.filter(annotator__in=chosen, readmitted_at=None)
        already = {exclusion.annotator_id: readmit_url(exclusion) for exclusion in standing}
        people = [person for person in chosen if person.pk not in already]
        form = ReasonForm(request.POST if request.method == "POST" else None)
        if request.method == "POST" and form.is_valid() and people:
            for person in people:
                exclude(project, person, reason=form.cleaned_data["reason"], by=user_of(request), now=database_now())
                self._say(request, project, person)
            return redirect("admin:annotator_exclusion_changelist")
        foreseen = [(person, exclusion_preview(project, person)) for person in people]
        context = {
            "form": form,
            "foreseen": foreseen,
            "project": project,
            "already": [(person, already[person.pk]) for person in chosen if person.pk in already],
        }
        return self._page(request, "exclude", _("Exclude from the project"), **context)

    def _say(self, request: HttpRequest, project: Project, annotator: User) -> None:
        # Work that still counts was too much to be taken out at once, and is left to the worker.
        if counting(project, annotator).exists():
            text = _("%(name)s gets no more tasks. The light worker is removing their work from the labels.")
        else:
            text = _("%(name)s is excluded, and their work no longer counts.")
        messages.success(request, text % {"name": annotator})

    def readmit_view(self, request: HttpRequest) -> HttpResponse:
        """Shows how much would come back; readmits the people once a manager confirms it."""
        project, people = self._chosen(request)
        if request.method == "POST":
            for person in people:
                self._readmit(request, project, person)
            return redirect(back(request) or "admin:annotator_exclusion_changelist")
        foreseen = [(person, readmission_preview(project, person)) for person in people]
        return self._page(request, "readmit", _("Readmit to the project"), foreseen=foreseen, project=project)

    def _readmit(self, request: HttpRequest, project: Project, annotator: User) -> None:
        try:
            going_on = readmit(project, annotator, now=database_now())
        except Refusal as refused:
            messages.error(request, str(refused))
        else:
            text = _("The light worker is bringing back the work of %(name)s.") if going_on else _("%(name)s is back.")
            messages.success(request, text % {"name": annotator})

    @admin.action(description=gettext_lazy("Readmit: their work counts again …"))
    def readmit(self, request: HttpRequest, queryset: QuerySet[Exclusion]) -> HttpResponse | None:
        """Leads to the page that shows what would come back, where a manager confirms it."""
        projects = {exclusion.project_id for exclusion in queryset}
        if len(projects) != 1:
            messages.warning(request, _("Choose people of one project."))
            return None
        return redirect(exclude_url(projects.pop(), [exclusion.annotator_id for exclusion in queryset], name="readmit"))

    def _chosen(self, request: HttpRequest) -> tuple[Project, list[User]]:
        """Returns the project and the people that the address names; 404 unless the user manages the project."""
        # An address may name any number of people, and each of them costs a preview.
        numbers = {
            name: [number for text in request.GET.getlist(name)[:100] if (number := as_number(text)) is not None]
            for name in ("project", "annotator")
        }
        managed = Project.objects.managed_by(user_of(request)).select_related("rubric")
        project = get_object_or_404(managed, pk__in=numbers["project"][:1])
        return project, list(people_of(project).filter(pk__in=numbers["annotator"]).order_by("username"))

    def _page(self, request: HttpRequest, name: str, title: str, **context: Any) -> HttpResponse:
        context = {**self.admin_site.each_context(request), "title": title, "opts": self.opts, **context}
        return TemplateResponse(request, f"admin/{name}.html", context)
