"""The layouts of exports: what a row is, which columns it has, and how many rows there are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from django.db.models import QuerySet

from annotator.exporting import (
    annotations,
    argilla,
    helpsteer3,
    label_studio,
    labels,
    preferences,
    rankings,
    scores,
    segments,
    written_answers,
)
from annotator.exporting.columns import Row, Type
from annotator.exporting.filters import Filters
from annotator.models import Project


@dataclass(frozen=True)
class Layout:
    """How a layout is written. `rows` gets the tasks whose single ratings the reader must not see yet.

    `count` counts the rows of few tasks exactly: the filters' `among` names them. `for_managers` marks layouts that say
    which model wrote a response, and what it is worth, which reviewers are not to know. `of_labels` marks those whose
    rows are labels, which know the filters' `label_source`, `of_scores` those that know the `rubric_versions`, and
    `of_segments` those for projects that rate segments.
    """

    rows: Callable[[Project, Filters, QuerySet[Any]], Iterable[Row]]
    columns: Callable[[Project, Filters], Mapping[str, Type]]
    count: Callable[[Project, Filters], int]
    for_managers: bool = False
    of_labels: bool = False
    of_scores: bool = False
    of_segments: bool = False


LAYOUTS: Mapping[str, Layout] = MappingProxyType(
    {
        "helpsteer2": Layout(
            labels.helpsteer2_rows, labels.helpsteer2_columns, labels.count_labels, of_labels=True, of_scores=True
        ),
        "labels": Layout(
            labels.label_rows,
            labels.label_columns,
            labels.count_labels,
            for_managers=True,
            of_labels=True,
            of_scores=True,
        ),
        "disagreements": Layout(
            labels.disagreement_rows, labels.disagreement_columns, labels.count_rated, of_scores=True
        ),
        "preference": Layout(preferences.preference_rows, preferences.preference_columns, preferences.count_preferred),
        "helpsteer3": Layout(helpsteer3.helpsteer3_rows, helpsteer3.helpsteer3_columns, helpsteer3.count_helpsteer3),
        "helpsteer3_edit": Layout(written_answers.edit_rows, written_answers.edit_columns, written_answers.count_edits),
        "dpo": Layout(preferences.dpo_rows, preferences.dpo_columns, preferences.count_compared),
        "nemo": Layout(preferences.nemo_rows, preferences.nemo_columns, preferences.count_told_apart),
        "annotations": Layout(
            annotations.annotation_rows, annotations.annotation_columns, annotations.count_ratings, of_scores=True
        ),
        "wide": Layout(annotations.wide_rows, annotations.wide_columns, annotations.count_annotations, of_scores=True),
        "rankings": Layout(rankings.ranking_rows, rankings.ranking_columns, rankings.count_ranked),
        "label_studio": Layout(
            label_studio.label_studio_rows,
            label_studio.label_studio_columns,
            label_studio.count_rated_tasks,
            of_scores=True,
        ),
        "argilla": Layout(argilla.argilla_rows, argilla.argilla_columns, argilla.count_suggested),
        "segments": Layout(
            segments.segment_rows, segments.segment_columns, segments.count_segments, of_scores=True, of_segments=True
        ),
        "helpsteer2d": Layout(
            segments.helpsteer2d_rows,
            segments.helpsteer2d_columns,
            segments.count_segmented,
            of_labels=True,
            of_scores=True,
            of_segments=True,
        ),
        "stepwise": Layout(
            segments.stepwise_rows,
            segments.stepwise_columns,
            segments.count_segmented,
            of_labels=True,
            of_scores=True,
            of_segments=True,
        ),
        "scores": Layout(scores.score_rows, scores.score_columns, scores.count_scores, for_managers=True),
    }
)
