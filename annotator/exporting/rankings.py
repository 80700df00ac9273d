"""The layout of rankings: each ranked task with what each annotator and all of them together say."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson
from django.db.models import QuerySet

from annotator.consensus.rankings import pairs_in_force, ranking_of
from annotator.exporting.columns import BOOLEAN, MESSAGES, TEXT, TIME, Type
from annotator.exporting.copied import MOMENT, Lines
from annotator.exporting.filters import Filters
from annotator.exporting.parts import without_line_ends
from annotator.exporting.selections import in_time, tasks_listed_in
from annotator.exporting.task_lines import Reading, task_lines
from annotator.models import Annotation, Project
from annotator.models.in_force import PAIRS_IN_FORCE

# Before the line's end stands what leaves as it is. JSON has no line ends.
_ROW = f"""concat('{{"task":', to_json(t.external_id), ',"conversation":', t.conversation, ',"responses":',
    responses.listed, E'\\n', json_build_array(responses.names, rankings.listed, {PAIRS_IN_FORCE}, a.ranking))"""
_NAME = "coalesce(nullif(r.external_id, ''), (r.position + 1)::text)"
_RESPONSES = f"""
    json_agg(json_build_object('id', {_NAME}, 'text', r.text) ORDER BY r.position) AS listed,
    json_agg(json_build_array(r.id, {_NAME}) ORDER BY r.position) AS names"""
_ANNOTATIONS = "n.submitted_at, n.ranking, n.justification"
_MOMENT = MOMENT % {"expressions": "n.submitted_at"}
_RANKINGS = f"""
    SELECT n.task_id, json_agg(json_build_object(
        'annotator', y.name, 'ranking', n.ranking, 'justification', n.justification, 'submitted_at', {_MOMENT},
        'counts', n.counts
    ) ORDER BY n.submitted_at, n.id) AS listed
    FROM annotations n LEFT JOIN raters y ON y.user_id = n.annotator_id
    WHERE n.ranking IS NOT NULL GROUP BY n.task_id HAVING count(*) FILTER (WHERE true{{within}}) > 0"""


def ranking_rows(project: Project, filters: Filters, unseen: QuerySet[Any]) -> Lines:
    """Reads a row for each ranked task: conversation, responses, the combined ranking and each annotator's ranking.

    `pairs` holds the pairs on which the rankings agree, the better response first. `ranking` is the reviewer's if there
    is one, otherwise the order by wins minus losses in `pairs`; it is null if the task yields no labels. A time
    selects the tasks that were ranked in it, and their lists are complete.
    """
    if not _ranked(project).exists():
        return Lines(iter(()))
    within, times = in_time("n.submitted_at", filters)
    rankings = (_RANKINGS.format(within=within), times)
    tasks = tasks_listed_in("rankings", project, filters).without(unseen)
    return Lines(map(_line, task_lines(tasks, Reading(_ROW, _RESPONSES, _ANNOTATIONS, sets={"rankings": rankings}))))


def _line(line: bytes) -> bytes:
    head, answers = line.split(b"\n", 1)
    responses, rankings, agreed, settled = orjson.loads(answers)
    names = dict(responses)
    pairs = pairs_in_force(settled, agreed)
    ranking = None if pairs is None else _named(ranking_of(pairs, list(names)), names)
    for one in rankings:
        one["ranking"] = _named(one["ranking"], names)
    named = {"ranking": ranking, "pairs": _named(pairs or (), names), "rankings": rankings}
    return without_line_ends(b"%b,%b\n" % (head, orjson.dumps(named)[1:]))


def _named(tiers: Iterable[Iterable[int]], names: Mapping[int, str]) -> list[list[str]]:
    return [[names[response] for response in tier] for tier in tiers]


def ranking_columns(_project: Project, _filters: Filters) -> Mapping[str, Type]:
    responses = [{"id": TEXT, "text": TEXT}]
    by_people = {"annotator": TEXT, "ranking": [[TEXT]], "justification": TEXT, "submitted_at": TIME, "counts": BOOLEAN}
    head = {"task": TEXT, "conversation": MESSAGES, "responses": responses, "ranking": [[TEXT]], "pairs": [[TEXT]]}
    return {**head, "rankings": [by_people]}


def count_ranked(project: Project, filters: Filters) -> int:
    ranked = filters.of_tasks(_ranked(project), project, "assignment__task__")
    in_time = filters.of_time(ranked, "submitted_at")
    return int(in_time.values("assignment__task").distinct().count())


def _ranked(project: Project) -> QuerySet[Annotation]:
    return Annotation.objects.current().for_project(project.pk).filter(ranking__isnull=False)
