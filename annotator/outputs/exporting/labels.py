"""The layouts of labels: HelpSteer2's rows, and the ratings behind them side by side (docs/formats.md)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Exists, F, Func, JSONField, OuterRef, QuerySet

from annotator.models import Label, Project, Rating, Response
from annotator.models.splits import is_held_out
from annotator.outputs.exporting.columns import INTEGER, NUMBER, TEXT, TIME, Row, Type, counted_ratings
from annotator.outputs.exporting.copied import Lines, copied, moment, numbers_of, prompt_text, response_name
from annotator.outputs.exporting.filters import Filters

_BY_RATER = "_by_rater"  # no attribute's key begins with a line


def helpsteer2_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each labelled response, with a whole number for each attribute. A task's rows are adjacent."""
    return copied(project, *helpsteer2_query(project, filters), task="response__task", among=filters.among, sparse=True)


def rows_of_a_side(project: Project, filters: Filters, _unseen: QuerySet[Any], *, held_out: bool) -> Iterator[Row]:
    """Yields the rows of `helpsteer2_rows` whose prompts snapshots hold out, or those of the others."""
    rows, names = helpsteer2_query(project, filters, prompt_hash=F("response__task__prompt_hash"))
    for row in copied(project, rows, names, task="response__task", among=filters.among, sparse=True):
        if is_held_out(row.pop("prompt_hash"), project.validation_share) == held_out:
            yield row


def helpsteer2_query(project: Project, filters: Filters, **more: Any) -> tuple[QuerySet[Any, Any], list[str]]:
    """Returns the query of `helpsteer2_rows` and the names of its columns; `more` are further columns by name."""
    keys = filters.keys(project)
    scores = numbers_of("scores", keys)
    prompt = prompt_text("response__task__conversation")
    rows = _labels(project, filters).values_list(prompt, "response__text", *scores, *more.values())
    return rows, ["prompt", "response", *keys, *more]


def _labels(project: Project, filters: Filters) -> QuerySet[Label]:
    # By the task, whose ids bound each part: by its own project, all labels might be read for each of them.
    of_project = Label.objects.in_force_while_in_use().filter(response__task__project=project)
    labels = filters.of_labels(of_project)
    chosen: QuerySet[Label] = filters.of_tasks(labels, project, "response__task__")
    return chosen.order_by("response__task", "response__position")


def helpsteer2_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    return {"prompt": TEXT, "response": TEXT, **dict.fromkeys(filters.keys(project), INTEGER)}


def label_rows(project: Project, filters: Filters, _unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each labelled response with its texts, ids and model, and each attribute's score and mean.

    A score is the mean, rounded to a whole number; halves are rounded up.
    """
    keys = filters.keys(project)
    rows = _labels(project, filters).values_list(
        "response__task__external_id",
        response_name("response__"),
        "response__task__language",
        "response__model",
        prompt_text("response__task__conversation"),
        "response__text",
        *numbers_of("scores", keys),
        *numbers_of("means", keys),
        "source",
        "rubric_version",
        moment("made_at"),
    )
    return copied(project, rows, list(_label_columns(keys)), task="response__task", among=filters.among, sparse=True)


def label_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    return _label_columns(filters.keys(project))


def _label_columns(keys: Sequence[str]) -> dict[str, Type]:
    texts = dict.fromkeys(("task", "response", "language", "model", "prompt", "text"), TEXT)
    means = {f"{key}_mean": NUMBER for key in keys}
    return {
        **texts,
        **dict.fromkeys(keys, INTEGER),
        **means,
        "source": TEXT,
        "rubric_version": INTEGER,
        "made_at": TIME,
    }


def count_labels(project: Project, filters: Filters) -> int:
    return int(_labels(project, filters).order_by().count())


def disagreement_rows(project: Project, filters: Filters, unseen: QuerySet[Any], **more: Any) -> Iterator[Row]:
    """Yields a row for each rated response. Each attribute is a list with one rating for each rater that counts.

    The raters have the same order in all lists of a row. A time selects the responses that were rated in it, and their
    lists are complete. Nobody was asked for an attribute that a row lacks. `more` are further columns of the responses
    by name.
    """
    keys = filters.keys(project)
    responses = filters.of_tasks(Response.objects.filter(task__project=project), project, "task__")
    # Without this, the texts of responses that nobody has rated would be read in vain.
    responses = responses.filter(Exists(Rating.objects.filter(response=OuterRef("pk")))).exclude(task__in=unseen)
    counted = Rating.objects.filter(annotation__is_current=True, annotation__assignment__counts=True)
    counted = filters.of_versions(counted, "annotation__")
    if filters.ask_for_a_time():
        responses = responses.filter(pk__in=filters.of_time(counted, "annotation__submitted_at").values("response"))
    of_response = counted.filter(response=OuterRef("pk")).order_by("annotation__submitted_at", "annotation")
    # One list of scores for each rater: PostgreSQL would sort the ratings once for each attribute's list.
    by_rater = Func(*numbers_of("scores", keys), function="json_build_array", output_field=JSONField())
    rows = responses.order_by("task", "position").values_list(
        prompt_text("task__conversation"), "text", ArraySubquery(of_response.values_list(by_rater)), *more.values()
    )
    for row in copied(project, rows, ["prompt", "response", _BY_RATER, *more], task="task", among=filters.among):
        if scores := row.pop(_BY_RATER):
            by_attribute = zip(keys, zip(*scores, strict=True), strict=True)
            lists = ((key, [score for score in given if score is not None]) for key, given in by_attribute)
            yield row | {key: given for key, given in lists if given}


def disagreement_columns(project: Project, filters: Filters) -> Mapping[str, Type]:
    return {"prompt": TEXT, "response": TEXT, **{key: [INTEGER] for key in filters.keys(project)}}


def count_rated(project: Project, filters: Filters) -> int:
    counting = counted_ratings(project, filters).filter(annotation__assignment__counts=True)
    return int(counting.values("response").distinct().count())
