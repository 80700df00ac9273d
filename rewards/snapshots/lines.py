"""Reads the tasks that a model can learn from, with their texts, labels and kept ratings, as lines of JSON.

PostgreSQL hands over JSON values as texts, which go into the lines as they are: to parse and to print them again would
take several times as long as all the rest.
"""

import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from itertools import repeat
from typing import NamedTuple

from django.db import connection
from django.db.models import Max

from annotator.models import Project, Task
from annotator.models.in_force import (
    COMPARED_IN_FORCE,
    DECISIONS,
    LABEL_IN_FORCE,
    PAIRS_IN_FORCE,
    PREFERENCE_IN_FORCE,
)
from annotator.stages.consensus.rankings import pairs_in_force
from annotator.stages.segmenting import Unit, cut, ranges
from rewards.snapshots.evidence import scored_by_evidence

TASKS_AT_ONCE = 2_000
"""How many of the project's tasks one statement reads; between two of them the caller can say that it is alive."""


@dataclass(frozen=True)
class SnapshotLine:
    """A task as it stands in the file, and what is counted of it."""

    task: int
    redacted_at: datetime | None
    prompt_hash: str
    text: str
    responses: int
    labels: int
    preferences: int
    versions: Sequence[int]
    """Of the rubric, of each label."""


class _Row(NamedTuple):
    """A row of _SELECT: a task and its responses, with one value per response under the names in the plural.

    JSON values are texts. `means`, `scores` and `ratings` of a response are None where it has no label or rating.
    """

    task: int
    redacted_at: datetime | None
    external_id: str
    prompt_hash: str
    conversation: str
    source: str | None
    language: str
    preference: int | None
    pairs: str | None
    ranking: str | None
    is_preferred: bool
    responses: Sequence[int]
    models: Sequence[str]
    texts: Sequence[str]
    means: Sequence[str | None]
    scores: Sequence[str | None]
    ratings: Sequence[str | None]
    aspects: Sequence[str | None]
    segment_means: Sequence[str | None]
    cuts: Sequence[str | None]
    evidence: Sequence[str | None]
    """Of raters who have any: [[scores, evidence], ...], where their ratings are the label."""
    versions: Sequence[int | None]


# Everything is looked up task by task: a join of whole tables would be planned by their sizes, and read them anew in
# each part. A task without labels costs little, as its texts are not read.
_SELECT = f"""
SELECT t.id, t.redacted_at, t.external_id, t.prompt_hash, t.conversation::text, t.metadata ->> 'source', t.language,
       {PREFERENCE_IN_FORCE}, ({PAIRS_IN_FORCE})::text, a.ranking::text, n.is_preferred, w.*
FROM annotator_task t
{DECISIONS}
CROSS JOIN LATERAL (
    SELECT EXISTS (
        SELECT FROM annotator_response r CROSS JOIN LATERAL ({LABEL_IN_FORCE}) l WHERE r.task_id = t.id
    ) AS is_labelled OFFSET 0
) y
CROSS JOIN LATERAL (SELECT NOT y.is_labelled AND {COMPARED_IN_FORCE} AS is_preferred OFFSET 0) n
CROSS JOIN LATERAL (
    SELECT array_agg(r.id ORDER BY r.position), array_agg(r.model ORDER BY r.position),
           array_agg(to_json(r.text)::text ORDER BY r.position), array_agg(l.means::text ORDER BY r.position),
           array_agg(l.scores::text ORDER BY r.position), array_agg(k.ratings ORDER BY r.position),
           array_agg(array_to_json(l.aspects)::text ORDER BY r.position),
           array_agg(l.segment_means::text ORDER BY r.position),
           array_agg(coalesce(l.cut, r.segments)::text ORDER BY r.position),
           array_agg(k.evidence ORDER BY r.position), array_agg(l.rubric_version ORDER BY r.position)
    FROM annotator_response r
    LEFT JOIN LATERAL ({LABEL_IN_FORCE}) l ON true
    LEFT JOIN LATERAL (
        SELECT string_agg(g.scores::text, ', ' ORDER BY g.annotation_id) AS ratings,
               json_agg(json_build_array(g.scores, (
                   SELECT json_agg(json_build_array(e->0, e->1, e->2)) FROM jsonb_array_elements(g.evidence) e
               )) ORDER BY g.annotation_id)
                   FILTER (WHERE %s AND l.source = 'consensus' AND g.evidence <> '[]')::text AS evidence
        FROM annotator_rating g
        WHERE l.source <> 'imported' AND g.response_id = r.id AND g.annotation_id = ANY (c.kept)
    ) k ON true
    WHERE r.task_id = t.id AND (n.is_preferred OR l.source IS NOT NULL)
) w
WHERE t.project_id = %s AND t.id > %s AND t.id <= %s AND t.state IN ('open', 'complete')
  AND (y.is_labelled OR n.is_preferred)
ORDER BY t.id
"""


def parts(project: Project) -> Iterator[Generator[SnapshotLine, None, None]]:
    """Yields the project's tasks of this moment in the order of their ids, a part at a time.

    Each part has to be read to its end before the next one. A part shows the tasks as they are when it is read.
    """
    last = Task.objects.filter(project=project).aggregate(last=Max("pk"))["last"] or 0
    after = 0
    while after < last:
        ids = (
            Task.objects.filter(project=project, pk__gt=after, pk__lt=last).order_by("pk").values_list("pk", flat=True)
        )
        until = next(iter(ids[TASKS_AT_ONCE - 1 : TASKS_AT_ONCE]), last)
        yield _part(project, after, until)
        after = until


def _part(project: Project, after: int, until: int) -> Generator[SnapshotLine, None, None]:
    aspects = tuple(aspect.key for aspect in project.aspects_learnt())
    unit = Unit(project.segment_unit) if aspects and not project.aspects() else None
    # Row by row, so that a part with long texts takes no more memory than one with short ones.
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        closing(cursor.stream(_SELECT, [unit is not None, project.pk, after, until])) as rows,
    ):
        for row in rows:
            if line := _line(_Row._make(row), aspects, unit):
                yield line


def _line(row: _Row, aspects: tuple[str, ...], unit: Unit | None) -> SnapshotLine | None:
    """Returns the row's line; None for a task without labels that has no preference either.

    Segments have their scores in the order of `aspects`. These are of the words that scores are based on where there is
    a unit, by which texts are cut that nobody has cut before.
    """
    ranking, agreed = (json.loads(text) if text else None for text in (row.ranking, row.pairs))
    places = {response: place for place, response in enumerate(row.responses)}
    in_force = pairs_in_force(ranking, agreed) or ()
    # The places of every two responses that a ranking tells apart, the better one first.
    pairs = [[places[better], places[worse]] for better, worse in in_force if better in places and worse in places]
    preference = row.preference
    if row.is_preferred and not (pairs or (preference and len(row.responses) == 2)):
        return None
    labelled = [
        version or 1
        for version, means, segments in zip(row.versions, row.means, row.segment_means, strict=True)
        if means not in (None, "{}") or segments is not None
    ]
    of_segments = map(_segments, repeat(aspects), row.aspects, row.segment_means, row.cuts)
    if unit:
        of_segments = map(_evidence, repeat(aspects), repeat((unit, row.language)), row.texts, row.cuts, row.evidence)
    columns = (row.responses, row.models, row.texts, row.means, row.scores, row.ratings, of_segments)
    responses = ", ".join(map(_response, *columns))
    source = f'"source": {_text(row.source)}, ' if row.source else ""
    language = f'"language": {_text(row.language)}, ' if row.language else ""
    order = f', "pairs": {pairs}' if pairs else ""
    return SnapshotLine(
        row.task,
        row.redacted_at,
        row.prompt_hash,
        f'{{{language}{source}"task": {_text(row.external_id)}, "prompt_hash": "{row.prompt_hash}", '
        f'"conversation": {row.conversation}, "responses": [{responses}], '
        f'"preference": {"null" if preference is None else preference}{order}}}\n',
        responses=len(row.responses),
        labels=len(labelled),
        preferences=(preference is not None) + len(pairs),
        versions=labelled,
    )


def _response(
    number: int, model: str, text: str, means: str | None, scores: str | None, ratings: str | None, segments: str
) -> str:
    name = f'"model": {_text(model)}, ' if model else ""
    return (
        f'{{{name}"id": "{number}", "text": {text}, "scores": {_numbers(means or "{}")}, '
        f'"labels": {scores or "{}"}, "ratings": [{ratings or ""}]{segments}}}'
    )


def _segments(wanted: tuple[str, ...], aspects: str | None, means: str | None, cut: str | None) -> str:
    """Returns the fields of a label's segments, with a comma before them; nothing where it has none."""
    if not wanted or means is None or cut is None:
        return ""
    there = json.loads(aspects or "[]")
    places = [there.index(aspect) if aspect in there else None for aspect in wanted]
    rows = [[None if place is None else row[place] for place in places] for row in json.loads(means)]
    return f', "segments": {json.dumps(json.loads(cut))}, "segment_scores": {json.dumps(rows)}'


def _evidence(
    attributes: tuple[str, ...], way: tuple[Unit, str], text: str, kept: str | None, given: str | None
) -> str:
    """Returns the fields of segments of a response whose raters based scores on its words, as `_segments` does."""
    if given is None:
        return ""
    written, (unit, language) = json.loads(text), way
    base = ranges(json.loads(kept or "[]")) or cut(written, unit, language=language)
    segments, scores = scored_by_evidence(written, base, json.loads(given), attributes)
    return f', "segments": {json.dumps(segments)}, "segment_scores": {json.dumps(scores)}'


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


@lru_cache(maxsize=10_000)
def _numbers(means: str) -> str:
    """Returns JSON with its numbers as Python writes them: PostgreSQL has 0.00001 where Python has 1e-05."""
    return json.dumps(json.loads(means))
