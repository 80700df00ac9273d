"""Reads FineGrainedRLHF's rows (arXiv 2306.01693): a response with marked spans, and other answers to the prompt."""

from collections.abc import Mapping
from typing import Any

from annotator.importing.conversations import answered_messages, rest_of
from annotator.importing.field_checks import (
    BadRow,
    check_responses,
    from_json_cells,
    identifier,
    metadata_of,
    required,
    storable_text,
)
from annotator.importing.layouts.own_tasks import language_as_written
from annotator.importing.rows import ResponseRow, Rules, TaskRow
from annotator.importing.segment_fields import marked
from annotator.importing.sources import RawRow

KINDS = ("irrelevant", "redundant", "incoherent", "wrong_grounding", "unverifiable")
"""The kinds of error that FineGrainedRLHF's spans mark, as keys of aspects: no span of a kind means no such error."""


def has_spans(values: Mapping[str, Any]) -> bool:
    return "spans" in values and "response" in values


def spans_row(raw: RawRow, values: dict[str, Any], rules: Rules) -> TaskRow:
    """Reads a task whose first response has the spans, kept as its metadata; `alternatives` follow.

    Where the project rates segments, the spans also cut the response, and aspects that are named by their kinds of
    error get labels. Raises BadRow.
    """
    if raw.from_csv:
        values = from_json_cells(values, ("spans", "alternatives"))
    alternatives = values.get("alternatives") or []
    if not isinstance(alternatives, list):
        raise BadRow("alternatives must be a list of texts", "alternatives")
    check_responses(1 + len(alternatives))
    text, metadata = storable_text(values["response"], "response"), metadata_of({"spans": values["spans"]})
    first = ResponseRow(text, metadata=metadata)
    if rules.aspects:
        if not isinstance(values["spans"], list):
            raise BadRow("spans must be a list of objects with aspect, start and end", "spans")
        segments, label = marked(text, values["spans"], KINDS, rules)
        first = ResponseRow(text, metadata=metadata, segments=segments, segment_label=label)
    others = [ResponseRow(storable_text(text, f"alternatives[{n}]")) for n, text in enumerate(alternatives)]
    return TaskRow(
        line=raw.line,
        messages=answered_messages(required(values, "prompt"), "prompt"),
        responses=(first, *others),
        external_id=identifier(values.get("id", ""), "id"),
        metadata=metadata_of(rest_of(values, {"id", "prompt", "response", "spans", "alternatives"})),
        language=language_as_written(values.get("lang") or values.get("language")),
        layout="spans",
        size=raw.size,
    )
