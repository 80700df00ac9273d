"""The page on which managers edit their project's rubric, beside what annotators will see of it."""

import json
from copy import copy
from typing import Any

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods
from rest_framework.exceptions import ValidationError

from annotator.api.rubrics import text_of
from annotator.infrastructure.refusals import Refusal
from annotator.infrastructure.web.middleware import HtmxRequest
from annotator.infrastructure.web.query_parameters import number_in
from annotator.managing import rubrics
from annotator.managing.guidelines import difference
from annotator.managing.preset_rubrics import RubricText
from annotator.managing.rubrics import Change, InvalidRubric, NewerRubric
from annotator.managing.settings_check import never_met
from annotator.models import Project, Rubric, User
from annotator.pages.projects.rubric_form import RubricEditor, as_lines
from annotator.reading import access
from annotator.reading.access import user_of

LARGEST_VERSION = 2**31 - 1
LARGEST_FILE = 256 << 10
"""The most bytes of a file with a rubric: twenty attributes of the longest texts are half of that."""


@require_http_methods(["GET", "POST"])
def rubric(request: HtmxRequest, slug: str) -> HttpResponse:
    """Shows the editor; a POST's `do` says what to do with the form: rearrange it, check it, publish or offer it."""
    user = user_of(request)
    project = access.managed_project(user, slug)
    in_force = RubricText.of(project.rubric)
    if request.method != "POST":
        return _page(request, project, RubricEditor.of(in_force, key=in_force.key))
    action, _colon, row = request.POST.get("do", "").partition(":")
    if action == "load":
        return _page(request, project, _loaded(request, project, user, in_force))
    editor = RubricEditor.sent(request.POST, text=in_force)
    if action == "preview":
        # What was said of the change before is not true of the form any more.
        page = {"preview": editor.preview(), "stale": "checked" in request.POST}
        return render(request, "workspace/_rubric_preview.html", page)
    if action in ("check", "publish", "offer"):
        return _decided(request, project, editor, action)
    editor.rearranged(action, row)
    return _page(request, project, editor)


def _page(
    request: HtmxRequest, project: Project, editor: RubricEditor, *, status: int = 200, **more: Any
) -> HttpResponse:
    # A form that was refused for a newer version has shown that one by now, and is based on it.
    based_on = None if "newer" in more else number_in(request.POST, "based_on", most=LARGEST_VERSION)
    page = {
        "project": project,
        "based_on": project.rubric.version if based_on is None else based_on,
        "editor": editor,
        "preview": editor.preview(),
        "versions": rubrics.versions(project),
        "offered": Rubric.objects.offered_to(user_of(request)).order_by("name"),
        **more,
    }
    return render(
        request, "workspace/_rubric_editor.html" if request.htmx else "workspace/rubric.html", page, status=status
    )


def _decided(request: HtmxRequest, project: Project, editor: RubricEditor, action: str) -> HttpResponse:
    """Publishes or offers what the form says, or says what publishing it would do."""
    text, in_force = editor.text(), RubricText.of(project.rubric)
    if text is None:
        return _page(request, project, editor)
    try:
        if action == "check":
            change = rubrics.change(project, text)
            return _page(request, project, editor, change=change, named=_named(project, change, in_force, text))
        if action == "publish":
            based_on = number_in(request.POST, "based_on", most=LARGEST_VERSION)
            published = rubrics.publish(project, text, by=user_of(request), based_on=based_on)
            messages.success(request, _("Version %(version)s is in force.") % {"version": published.version})
        else:
            key = request.POST.get("offer_key", "")
            rubrics.offer(RubricText(key, text.name, text.attributes), by=user_of(request))
            messages.success(request, _("New projects can now choose this rubric."))
    except NewerRubric as newer:
        lines = difference(as_lines(RubricText.of(newer.current)), as_lines(text))
        project.rubric = newer.current
        return _page(request, project, editor, newer=newer, lines=lines, status=newer.status)
    except InvalidRubric as refused:
        editor.refuse(refused.errors)
        return _page(request, project, editor)
    except Refusal as refused:
        messages.error(request, str(refused))
    return redirect("rubric", project.slug)


def _named(project: Project, change: Change, before: RubricText, after: RubricText) -> dict[str, Any]:
    """Returns the attributes of a change by their names, and the one that will decide on more annotators.

    `limits` holds the spreads above which more are asked and above which a task is dropped, if they follow its scale,
    and `never` the sentences about limits that nothing would exceed.
    `keep_keys` are the attributes that get another name, with their keys.
    """
    names = {one.key: one.name for text in (before, after) for one in text.attributes}
    keys = {"added": change.added, "removed": change.removed}
    keys |= {"reworded": change.reworded, "reordered": change.reordered}
    lists = {what: [names[key] for key in some] for what, some in keys.items()}
    limits, scales = (
        rubrics.limits_after(project, after),
        {one.key: (one.name, len(one.levels)) for one in after.attributes},
    )
    then = copy(project)
    then.spread_attribute, (then.escalate_above, then.drop_above) = change.spread_attribute, limits
    follow = limits != (project.escalate_above, project.drop_above)
    earlier = {one.key: one.name for one in before.attributes}
    keep_keys = [f"{one.name} ({one.key})" for one in after.attributes if earlier.get(one.key, one.name) != one.name]
    decides = names[change.spread_attribute]
    said = {"limits": limits if follow else None, "never": never_met(then, scales)}
    scored = [(names[key], count, count == rubrics.MOST_COUNTED) for key, count in change.scored.items()]
    levels = scales[change.spread_attribute][1]
    return {**lists, **said, "scored": scored, "keep_keys": keep_keys, "decides": decides, "levels": levels}


def _loaded(request: HtmxRequest, project: Project, user: User, in_force: RubricText) -> RubricEditor:
    """Returns the form filled in with the rubric of a file or one that is offered; nothing is stored."""
    file = request.FILES.get("file")
    preset = Rubric.objects.offered_to(user).filter(key=request.POST.get("preset", "")).first()
    try:
        if file and (file.size or 0) > LARGEST_FILE:
            raise ValueError
        text = text_of(json.loads(file.read())) if file else RubricText.of(preset) if preset else in_force
    except (ValueError, RecursionError, ValidationError):
        messages.error(request, _("This file holds no rubric. Choose one that was downloaded here."))
        text = in_force
    else:
        messages.info(request, _("Nothing is saved yet. Check the change, then publish it."))
    return RubricEditor.of(text, key=in_force.key)
