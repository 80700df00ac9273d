"""The pages on which people read a project's guidelines, and managers write them and look at their versions."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.infrastructure.web.query_parameters import number_in
from annotator.managing import guidelines
from annotator.managing.guidelines import LONGEST_GUIDELINES, NewerGuidelines, template_for
from annotator.models import Guideline, Project
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.settled_examples import settled_examples


class GuidelinesForm(forms.Form):
    """Asks for a text in markdown, and knows which version it changes."""

    text = forms.CharField(
        label=gettext_lazy("Text in markdown"),
        max_length=LONGEST_GUIDELINES,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 24, "class": "tall", "dir": "auto"}),
        help_text=gettext_lazy("# begins a heading, - an item of a list; **bold**, *italic*, `code`, [text](address)."),
    )
    based_on = forms.IntegerField(min_value=0, max_value=2**31 - 1, widget=forms.HiddenInput)

    def __init__(self, data: Any = None, *, text: str = "", version: int = 0) -> None:
        super().__init__(data, initial={"text": text, "based_on": version})


PAGE = 25
READERS_SHOWN = 100
LARGEST_VERSION = 2**31 - 1


@require_http_methods(["GET", "POST"])
def edit(request: HttpRequest, slug: str) -> HttpResponse:
    """Shows the editor with a preview beside it; a POST publishes the text, or shows how it will look."""
    project = access.managed_project(user_of(request), slug)
    current = project.current_guideline()
    if request.method == "GET":
        return _editor(request, project, current, _started(request, project, current))
    form = GuidelinesForm(request.POST)
    if not form.is_valid():
        return _editor(request, project, current, form, status=422)
    text = guidelines.with_line_feeds(form.cleaned_data["text"])
    if "preview" in request.POST:
        return _editor(request, project, current, GuidelinesForm(text=text, version=form.cleaned_data["based_on"]))
    try:
        published, is_new = guidelines.publish(project, text, based_on=form.cleaned_data["based_on"])
    except NewerGuidelines as newer:
        # What the form says from now on is based on the newer text, which is on the page to be read.
        form = GuidelinesForm(text=text, version=newer.current.version)
        return _editor(request, project, newer.current, form, newer=newer, status=409)
    except Refusal as refused:
        form.add_error("text", str(refused))
        return _editor(request, project, current, form, status=422)
    messages.success(request, _published(published, is_new, readers=guidelines.readers(project).count()))
    return redirect("edit-guidelines", slug)


def _started(request: HttpRequest, project: Project, current: Guideline | None) -> GuidelinesForm:
    """Returns the form with the text in force, an earlier one, or the one to start from."""
    version = current.version if current else 0
    wanted = number_in(request.GET, "version", most=LARGEST_VERSION)
    if wanted and (earlier := project.guidelines.filter(version=wanted).first()):
        return GuidelinesForm(text=earlier.text, version=version)
    if "template" in request.GET:
        return GuidelinesForm(text=template_for(project), version=version)
    return GuidelinesForm(text=current.text if current else "", version=version)


def _published(published: Guideline, is_new: bool, *, readers: int) -> str:
    if not is_new:
        return _("Version %(version)d has exactly this text, so nothing was published.") % {
            "version": published.version
        }
    return ngettext(
        "Version %(version)d is published. %(readers)d annotator has to read it before the next task.",
        "Version %(version)d is published. %(readers)d annotators have to read it before their next task.",
        readers,
    ) % {"version": published.version, "readers": readers}


def _editor(
    request: HttpRequest,
    project: Project,
    current: Guideline | None,
    form: GuidelinesForm,
    *,
    newer: NewerGuidelines | None = None,
    status: int = 200,
) -> HttpResponse:
    text = str(form["text"].value() or "")
    context: dict[str, Any] = {
        "project": project,
        "current": current,
        "form": form,
        "text": text[: guidelines.LONGEST_GUIDELINES],
        "readers": guidelines.readers(project).count(),
        "newer": newer,
    }
    if newer:
        context["lines"] = guidelines.difference(newer.current.text, text)
    return render(request, "workspace/edit_guidelines.html", context, status=status)


@require_POST
def preview(request: HttpRequest, slug: str) -> HttpResponse:
    """Renders the text as annotators will see it."""
    access.managed_project(user_of(request), slug)
    text = request.POST.get("text", "")[: guidelines.LONGEST_GUIDELINES]
    return render(request, "workspace/_guidelines_preview.html", {"text": text})


@require_GET
def versions(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the versions; `version` shows one, what it changed, and who has read it last."""
    project = access.managed_project(user_of(request), slug)
    before = number_in(request.GET, "before", most=LARGEST_VERSION)
    rows = guidelines.with_readers(project)
    shown = list((rows.filter(version__lt=before) if before else rows)[: PAGE + 1])
    context: dict[str, Any] = {
        "project": project,
        "rows": shown[:PAGE],
        "further": shown[PAGE - 1].version if len(shown) > PAGE else None,
        "first": before is None,
        "unread": guidelines.readers(project).filter(acknowledged_version=0).count(),
    }
    if "version" in request.GET:
        wanted = number_in(request.GET, "version", most=LARGEST_VERSION) or 0
        chosen = project.guidelines.filter(version=wanted).first()
        if chosen is None:
            raise Http404
        previous = project.guidelines.filter(version__lt=chosen.version).order_by("-version").first()
        read = guidelines.readers(project).filter(acknowledged_version=chosen.version).select_related("user")
        names = list(read.order_by("user__username").values_list("user__username", flat=True)[: READERS_SHOWN + 1])
        context |= {
            "chosen": chosen,
            "previous": previous,
            "lines": guidelines.difference(previous.text, chosen.text) if previous else None,
            "names": names[:READERS_SHOWN],
            "more_names": len(names) > READERS_SHOWN,
        }
    return render(request, "workspace/guideline_versions.html", context)


@require_http_methods(["GET", "POST"])
def read_guidelines(request: HtmxRequest, slug: str) -> HttpResponse:
    """Shows the guidelines in force; a POST acknowledges the version that was read.

    The panel of the rating page, which asks by htmx, gets them without the page around them.
    """
    member = access.membership(user_of(request), slug)
    if request.method == "POST":
        guidelines.acknowledge(member, version=number_in(request.POST, "version") or 0)
        return redirect("annotate", slug)
    current, earlier = member.project.current_guideline(), guidelines.read_before(member)
    examples = settled_examples(member.project, reader=member.user)
    return render(
        request,
        "_guidelines.html" if request.htmx else "guidelines.html",
        {
            "member": member,
            "guideline": current,
            "earlier": earlier,
            "lines": guidelines.difference(earlier.text, current.text) if earlier and current else None,
            "scales": [
                (one, [(text, examples.get(one.key, {}).get(score, ())) for score, text in enumerate(one.shown_levels)])
                for one in member.project.attributes_for()
            ],
        },
    )
