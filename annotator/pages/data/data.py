"""The tab Data: the project's tasks in a list, found by words and filters, and everything about one task."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_GET

from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.query_parameters import number_in
from annotator.pages.data.data_form import TasksForm
from annotator.pages.rating.rating_texts import preference_text
from annotator.pages.review.bulk_changes_form import BulkChangeForm
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.search import word_index
from annotator.reading.search.criteria import NothingToFind, matching, searching
from annotator.reading.search.listing import MOST_COUNTED, Page, excerpt, page


@require_GET
def data(request: HttpRequest, slug: str) -> HttpResponse:
    """Lists the tasks that match the filters in the chosen order. Blank filters are left out of the address."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    if any(not value for value in request.GET.values()):
        filled = request.GET.copy()
        for name, values in list(filled.lists()):
            filled.setlist(name, [value for value in values if value])
        return redirect(f"{request.path}?{filled.urlencode()}")
    manages = access.manages(user, project)
    form = TasksForm(project, request.GET, manages=manages)
    found, refused = Page([], None, 0), ""
    if form.is_valid():
        try:
            with searching():
                matches = matching(project, form.criteria(), reader=user)
                order, after = form.order_chosen(), number_in(request.GET, "after")
                found = page(matches, project, order=order, after=after, rewards=manages)
        except NothingToFind as nothing:
            form.add_error("q", str(nothing))
        except Refusal as too_broad:
            refused = str(too_broad)
    filters = request.GET.copy()
    filters.pop("after", None)
    context = {
        "project": project,
        "manages": manages,
        "form": form,
        "rows": [
            {
                "listed": one,
                "task": one.task,
                "excerpt": excerpt(one.task.beginning),
                "preference": preference_text(one.preference),
            }
            for one in found.rows
        ],
        "found": found,
        "refused": refused,
        "most": MOST_COUNTED,
        "filters": filters.urlencode(),
        "filtered": any(name in form.fields for name in filters if name != "order"),
        "first": "after" not in request.GET,
        "unread": word_index.waiting(),
        # The attribute whose labels the list shows.
        "attribute": next((one.name for one in project.attributes_for() if one.key == project.spread_attribute), ""),
        "changing": BulkChangeForm() if manages else None,
        "chosen_filters": [(name, value) for name, value in filters.items() if name in form.fields],
    }
    return render(request, "workspace/data.html", context, status=422 if form.errors or refused else 200)
