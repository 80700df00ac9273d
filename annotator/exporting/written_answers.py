"""The layout of the better versions of responses that annotators write, in the fields of HelpSteer3's edits."""

from collections.abc import Mapping
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import F, OuterRef, QuerySet, TextField, Value
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Coalesce, NullIf

from annotator.exporting.columns import MESSAGES, TEXT, Type, counted_ratings
from annotator.exporting.copied import Lines, copied, response_name
from annotator.exporting.filters import Filters
from annotator.models import Project, Rating

TASKS_AT_ONCE = 4_000

_FEEDBACK = Rating.objects.filter(
    annotation__is_current=True, annotation__assignment__counts=True, response=OuterRef("response")
).exclude(feedback="")


def edit_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each edit that counts: the response, its better version, and the feedback on the response.

    The domain is the annotator's, or the one that the task came with; the language as well.
    """
    rows = _edits(project, filters).exclude(response__task__in=unseen)
    task = "response__task__"
    columns = rows.order_by("response__task", "response__position", "pk").values_list(
        f"{task}external_id",
        response_name("response__"),
        _first_of(F("annotation__domain"), KeyTextTransform("domain", f"{task}metadata")),
        _first_of(F("annotation__language"), F(f"{task}language")),
        f"{task}conversation",
        "response__text",
        "edit",
        "edit_summary",
        ArraySubquery(_FEEDBACK.order_by("pk").values("feedback")),
    )
    # Few responses have an edit: with as many tasks as usual, most of the time would go by between two parts.
    names = list(edit_columns(project, filters))
    return copied(project, columns, names, task="response__task", among=filters.among, at_once=TASKS_AT_ONCE)


def _first_of(chosen: F, known: Any) -> Coalesce:
    """Returns what the annotator has chosen, else what is known of the task, else an empty text."""
    return Coalesce(NullIf(chosen, Value("")), known, Value(""), output_field=TextField())


def edit_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    head: dict[str, Type] = {"task": TEXT, "response": TEXT, "domain": TEXT, "language": TEXT, "context": MESSAGES}
    return {**head, "original_response": TEXT, "edited_response": TEXT, "change_summary": TEXT, "feedback": [TEXT]}


def count_edits(project: Project, filters: Filters) -> int:
    return int(_edits(project, filters).count())


def _edits(project: Project, filters: Filters) -> QuerySet[Rating]:
    edits: QuerySet[Rating] = counted_ratings(project, filters).filter(annotation__assignment__counts=True)
    return edits.exclude(edit="")
