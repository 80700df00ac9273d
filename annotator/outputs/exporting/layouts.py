"""The layouts of exports: what a row is, which columns it has, and how many rows there are."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from types import MappingProxyType
from typing import Any

from django.db.models import QuerySet

from annotator.models import Project
from annotator.outputs.exporting import annotation_tools as tools
from annotator.outputs.exporting import annotations, helpsteer3, labels, preferences, scores, segments
from annotator.outputs.exporting.columns import Row, Type
from annotator.outputs.exporting.filters import Filters


@dataclass(frozen=True)
class ExportLayout:
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


_scored = partial(ExportLayout, of_scores=True)
_labelled = partial(_scored, of_labels=True)
_segmented = partial(_labelled, of_segments=True)
LAYOUTS: Mapping[str, ExportLayout] = MappingProxyType(
    {
        "helpsteer2": _labelled(labels.helpsteer2_rows, labels.helpsteer2_columns, labels.count_labels),
        "labels": _labelled(labels.label_rows, labels.label_columns, labels.count_labels, for_managers=True),
        "disagreements": _scored(labels.disagreement_rows, labels.disagreement_columns, labels.count_rated),
        "preference": ExportLayout(
            preferences.preference_rows, preferences.preference_columns, preferences.count_preferred
        ),
        "helpsteer3": ExportLayout(
            helpsteer3.helpsteer3_rows, helpsteer3.helpsteer3_columns, helpsteer3.count_helpsteer3
        ),
        "helpsteer3_edit": ExportLayout(helpsteer3.edit_rows, helpsteer3.edit_columns, helpsteer3.count_edits),
        "dpo": ExportLayout(preferences.dpo_rows, preferences.dpo_columns, preferences.count_compared),
        "nemo": ExportLayout(preferences.nemo_rows, preferences.nemo_columns, preferences.count_told_apart),
        "annotations": _scored(annotations.annotation_rows, annotations.annotation_columns, annotations.count_ratings),
        "wide": _scored(annotations.wide_rows, annotations.wide_columns, annotations.count_annotations),
        "rankings": ExportLayout(annotations.ranking_rows, annotations.ranking_columns, annotations.count_ranked),
        "label_studio": _scored(tools.label_studio_rows, tools.label_studio_columns, tools.count_rated_tasks),
        "argilla": ExportLayout(tools.argilla_rows, tools.argilla_columns, tools.count_suggested),
        "segments": _scored(segments.segment_rows, segments.segment_columns, segments.count_segments, of_segments=True),
        "helpsteer2d": _segmented(segments.helpsteer2d_rows, segments.helpsteer2d_columns, segments.count_segmented),
        "stepwise": _segmented(segments.stepwise_rows, segments.stepwise_columns, segments.count_segmented),
        "spans": _scored(annotations.span_rows, annotations.span_columns, annotations.count_with_evidence),
        "scores": ExportLayout(scores.score_rows, scores.score_columns, scores.count_scores, for_managers=True),
    }
)
