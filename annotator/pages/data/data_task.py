"""The story of one task: its texts, its label and how it was made, every rating, and what happened when."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from operator import itemgetter
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET, require_POST

from annotator.infrastructure.limits import MOST_RESPONSES
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.query_parameters import number_in
from annotator.models import Adjudication, BulkChange, Label, SkipReason, Task, UnsafeCategory, Verdict
from annotator.models.in_force import preferences_stated
from annotator.pages.rating.rating_texts import comparison_text, preference_text, side_by_side
from annotator.pages.review.segment_tables import review_tables
from annotator.reading import access
from annotator.reading.access import user_of
from annotator.reading.pseudonyms import Naming
from annotator.reading.search.criteria import GivenReward, champion_scores
from annotator.stages import annotation
from annotator.stages.annotation.cuts import RecutMeanwhile
from annotator.stages.review.rating_sheets import reviewed
from annotator.stages.review.timelines import Event, timeline
from annotator.templatetags.scales import level


@require_GET
def data_task(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Shows everything about a task, unless the reader is rating it. Tasks that measure annotators stay unseen."""
    return _page(request, slug, task_id)


def _page(
    request: HttpRequest, slug: str, task_id: int, *, refused_parts: Mapping[int, str] | None = None, status: int = 200
) -> HttpResponse:
    """`refused_parts` holds the segments that the reader wrote, by response, where somebody else has changed them."""
    user = user_of(request)
    project = access.reviewed_project(user, slug)
    tasks = project.tasks.exclude(state=Task.State.GOLD).prefetch_related("responses")
    task = get_object_or_404(tasks, pk=task_id)
    annotation.cuts_of(project, task, list(task.responses.all()))
    try:
        shown = reviewed(task, project, by=user)
    except Refusal as refused:
        messages.error(request, str(refused))
        return redirect("data", slug)
    naming = access.naming_for(user, project)
    manages, attributes = naming.by_name, project.attributes_for()
    given = champion_scores().scores_of(task) if manages else []
    rewards = {reward.response: reward.reward for reward in given if reward.by_champion}
    in_use = task.state in (Task.State.OPEN, Task.State.COMPLETE)
    in_force = Label.objects.in_force().filter(response__task=task) if in_use else ()
    labels = {label.response_id: label for label in in_force}
    # The levels of the labels, before rounding.
    levels = {pk: [level(label.means.get(one.key)) for one in attributes] for pk, label in labels.items()}
    stated = preferences_stated([task.pk]).get(task.pk)
    expected = {one.response: one.segments for one in given if one.by_champion}
    tables = review_tables(shown, project, finest=True, labels=labels, expected=expected)
    context = side_by_side(shown, naming=naming) | {
        "project": project,
        "manages": manages,
        "sheets": [
            {
                "ratings": sheet,
                "label": levels.get(sheet.response.pk, [None] * len(attributes)),
                "reward": rewards.get(sheet.response.pk),
                "table": segments,
                "parts": annotation.as_parts(sheet.response),
                "refused_parts": (refused_parts or {}).get(sheet.response.pk, ""),
            }
            for sheet, segments in zip_longest(shown.sheets, tables)
        ],
        "attributes": attributes,
        "may_be_recut": manages and bool(project.aspects()) and not shown.raters and not labels,
        "labelled": bool(labels),
        "source": next(iter(sorted(label.source for label in labels.values())), ""),
        "settled_by": naming(shown.adjudication.by) if shown.adjudication else "",
        "comparison": preference_text(stated) or comparison_text(shown.adjudication, shown),
        "events": list(_events(timeline(task), given, naming, manages=manages)),
    }
    return render(request, "workspace/data_task.html", context, status=status)


@require_POST
def recut(request: HttpRequest, slug: str, task_id: int) -> HttpResponse:
    """Gives a response of a task that nobody has rated other segments."""
    project = access.managed_project(user_of(request), slug)
    task = get_object_or_404(project.tasks.exclude(state=Task.State.GOLD), pk=task_id)
    position, parts = number_in(request.POST, "position", most=MOST_RESPONSES), request.POST.get("parts", "")
    response = None if position is None else task.responses.filter(position=position).first()
    if response is None or not parts.strip():
        messages.error(request, _("Nothing was changed: the text of the response is missing."))
        return redirect("data-task", slug, task.pk)
    try:
        seen = {response.pk: request.POST["seen"].replace("\r\n", "\n")} if "seen" in request.POST else None
        annotation.change_cuts(task.pk, {response.pk: annotation.from_parts(parts)}, seen=seen)
    except RecutMeanwhile as stale:
        messages.error(request, str(stale))
        return _page(request, slug, task.pk, refused_parts={response.pk: parts}, status=stale.status)
    except Refusal as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, _("The segments are changed."))
    return redirect("data-task", slug, task.pk)


# The timeline ----------------------------------------------------------------------------------------------

_WORDS = {
    "imported": gettext_lazy("Imported"),
    "scanned": gettext_lazy("Searched for personal information"),
    "expired": gettext_lazy("The lease ran out"),
    "skipped": gettext_lazy("Skipped"),
    "reported": gettext_lazy("Reported"),
    "settled": gettext_lazy("Settled by a reviewer"),
    "task.changed": gettext_lazy("Changed in the admin"),
    "task.redacted": gettext_lazy("Redacted: personal information erased"),
    "task.released": gettext_lazy("Released: back in the queue"),
    "task.retired": gettext_lazy("Retired"),
    "changed": gettext_lazy("Changed together with other tasks"),
    "put_back": gettext_lazy("A change of many tasks was undone"),
    "label.withdrawn": gettext_lazy("The reviewer's label was taken back"),
}
_LEASED = {
    "leased": gettext_lazy("Got the task, and is rating it"),
    "released": gettext_lazy("Got the task, and gave it back"),
}


def _events(
    happened: Sequence[Event], given: Sequence[GivenReward], naming: Naming, *, manages: bool
) -> Iterator[dict[str, Any]]:
    """Yields the events in words, with those who took part as the reader may know them."""
    events = []
    for event in happened:
        actor = event.actor if manages and event.kind != "reported" else ""
        who = naming(event.who) if event.who else actor
        note = event.note if event.kind != "rated" else ""
        events.append(
            {
                "at": event.at,
                "kind": event.kind,
                "what": _what(event),
                "who": who,
                "detail": _detail(event),
                "note": note,
            }
        )
    # Once for each version, though it gives every response a reward of its own.
    first = {reward.version: reward.at for reward in reversed(given)}
    for version, at in first.items():
        what = _("Scored by model version %(version)s") % {"version": version}
        events.append({"at": at, "kind": "scored", "what": what, "who": "", "detail": "", "note": ""})
    yield from sorted(events, key=itemgetter("at"))


def _what(event: Event) -> str:
    if event.kind == "leased":
        return str(_LEASED.get(event.detail, _("Got the task")))
    if event.kind == "rated":
        return _("Changed the rating") if int(event.detail) > 1 else _("Rated")
    if event.kind == "verdict":
        rejected = event.detail == Verdict.Decision.REJECTED
        return _("Rejected a rating") if rejected else _("Accepted a rating")
    if event.kind == "consensus":
        return _("Dropped") if event.detail else _("The ratings gave a label")
    return str(_WORDS[event.kind])


def _detail(event: Event) -> str:
    if event.kind == "rated":
        return _("version %(number)s") % {"number": event.detail} if int(event.detail) > 1 else ""
    if event.kind == "skipped" and event.detail in SkipReason.values:
        return str(SkipReason(event.detail).label)
    if event.kind == "reported" and event.detail in UnsafeCategory.values:
        category = str(UnsafeCategory(event.detail).label)
        decided = {"upheld": _("upheld"), "dismissed": _("dismissed")}.get(event.actor, "")
        return f"{category} · {decided}" if decided else category
    if event.kind in ("changed", "put_back") and event.detail in BulkChange.Action.values:
        return str(BulkChange.Action(event.detail).label)
    if event.kind == "settled" and event.detail in Adjudication.Reason.values:
        return str(Adjudication.Reason(event.detail).label)
    if event.kind == "consensus":
        return _("Ratings too far apart") if event.detail else ""
    return event.detail if event.kind == "imported" else ""
