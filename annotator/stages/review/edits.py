"""Has the better versions that annotators wrote rated: each becomes a response, in a task with the one it improves."""

from collections.abc import Sequence
from datetime import datetime
from io import BytesIO

import orjson
from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext as _

from annotator.infrastructure.db.retries import in_transaction
from annotator.infrastructure.refusals import Refusal
from annotator.models import Assignment, Project, Rating, Response, User
from annotator.reading.blindness import tasks_held_by
from annotator.reading.pseudonyms import name_of
from annotator.stages.importing import import_rows

MOST_AT_ONCE = 500
"""Most edits that become tasks while the caller waits."""


def edits_of(project: Project, *, reader: User) -> QuerySet[Rating]:
    """Returns the ratings with an edit that count, the newest first; none of a task that the reader is rating.

    Each has its author's `pseudonym`, and in `rated_as` the name of the task that the edit has become, or None.
    """
    written = Rating.objects.filter(annotation__is_current=True, annotation__assignment__counts=True).exclude(edit="")
    of_project = written.filter(response__task__project=project).exclude(response__task__in=tasks_held_by(reader))
    tasks = Response.objects.filter(edit_of=OuterRef("pk")).values("task__external_id")
    author = name_of("annotation__assignment__annotator", "response__task__project")
    rows = of_project.select_related("response__task", "annotation__assignment").order_by("-pk")
    return rows.annotate(pseudonym=author, rated_as=Subquery(tasks[:1]))


@in_transaction
def make_tasks(project: Project, edits: Sequence[int], *, by: User, now: datetime) -> int:
    """Makes a task of each edit, of the response and its better version; returns how many are new.

    Whoever wrote an edit does not get its task. The tasks are an import of the project, which can be taken back.

    Raises:
        Refusal: More than MOST_AT_ONCE are named.
        Refusal: An id names no edit of the project that counts.
        Refusal: The project is archived and accepts no tasks.
    """
    if len(edits) > MOST_AT_ONCE:
        text = _("At most %(most)d edits become tasks at once. Name fewer, and then the next ones.")
        raise Refusal(text % {"most": MOST_AT_ONCE}, code="too_many", status=400)
    chosen = edits_of(project, reader=by).filter(pk__in=edits)
    if missing := sorted(set(edits) - set(chosen.values_list("pk", flat=True))):
        raise Refusal(
            _("Edit %(id)d was not found or no longer counts. Reload the list.") % {"id": missing[0]},
            code="no_such_edit",
            status=400,
        )
    unrated = chosen.filter(edited_responses=None).order_by("pk")
    ratings = {f"edit-{rating.pk}-of-{rating.response.task.external_id}"[:200]: rating for rating in unrated}
    if not ratings:
        return 0
    rows = [_row(name, rating) for name, rating in ratings.items()]
    lines = BytesIO(b"\n".join(map(orjson.dumps, rows)))
    result = import_rows(project, lines, now=now, by=by, file_name=_("edits of annotators"))
    edited = Response.objects.filter(task__project=project, task__external_id__in=ratings, position=1, edit_of=None)
    for response in edited.select_related("task"):
        rating = ratings[response.task.external_id]
        if response.text == rating.edit:
            Response.objects.filter(pk=response.pk).update(edit_of=rating)
            _keep_from(rating.annotation.assignment.annotator_id, response.task_id, now)
    return result.created


def _row(name: str, rating: Rating) -> dict[str, object]:
    response, task = rating.response, rating.response.task
    domain = rating.annotation.domain or task.metadata.get("domain")
    return {
        "id": name,
        "messages": task.conversation,
        "responses": [{"text": response.text, "model": response.model}, {"text": rating.edit}],
        "lang": rating.annotation.language or task.language,
        "metadata": {"edit_of": task.external_id, **({"domain": domain} if domain else {})},
    }


def _keep_from(annotator: int, task: int, now: datetime) -> None:
    """Has the author pass the task by: they would rate their own text."""
    Assignment.objects.get_or_create(
        task_id=task,
        annotator_id=annotator,
        defaults={
            "slot": None,
            "counts": False,
            "state": Assignment.State.SKIPPED,
            "response_order": [],
            "leased_at": now,
            "lease_expires_at": now,
        },
    )
