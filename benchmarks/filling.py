"""Writes many tasks, the ratings of all of them, and the history of an annotator who has rated many, by SQL in seconds.

Columns that have a default in the database are left to it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from django.db import connection, transaction

from annotator.models import Membership, Project, Rubric, Token, User

PROMPT_CHARACTERS = 300


def make_crew(number: int) -> dict[str, User]:
    """Makes so many annotators; returns them by their tokens."""
    users = [User.objects.create_user(f"annotator-{place}") for place in range(1, number + 1)]
    return {Token.objects.create(user)[1]: user for user in users}


# Projects have rubrics of their own, so the cascade takes the table with the offered ones along.
_TRUNCATE = """
CREATE TEMPORARY TABLE offered ON COMMIT DROP AS SELECT * FROM annotator_rubric WHERE project_id IS NULL;
CREATE TEMPORARY TABLE asked ON COMMIT DROP AS
    SELECT * FROM annotator_attribute WHERE rubric_id IN (SELECT id FROM offered);
TRUNCATE annotator_project CASCADE;
INSERT INTO annotator_rubric SELECT * FROM offered;
INSERT INTO annotator_attribute SELECT * FROM asked;
"""


def make_project(slug: str, *, crew: Mapping[str, User], tasks: int, characters: int, responses: int = 2) -> Project:
    """Replaces all projects by one with HelpSteer2's protocol and the crew as its annotators.

    Each of its tasks has so many responses of so many characters.
    """
    rubric = Rubric.objects.get(key="helpsteer2")
    with transaction.atomic(), connection.cursor() as cursor:
        # Checking references and counting for the two million rows one by one would take longer than writing them.
        cursor.execute("SET LOCAL session_replication_role = replica")
        cursor.execute(_TRUNCATE)
        project = Project.objects.create(slug=slug, name=slug, rubric=rubric, base_annotators=3, max_annotators=5)
        Membership.objects.bulk_create(Membership(user=user, project=project) for user in crew.values())
        cursor.execute(_TASKS, {"project": project.pk, "tasks": tasks, "characters": PROMPT_CHARACTERS})
        cursor.execute(_RESPONSES, {"project": project.pk, "characters": characters, "responses": responses})
    settle()
    return project


def make_ratings(project: Project, *, crew: Mapping[str, User]) -> None:
    """Has three of the crew rate each task, so that every two of them meet, and agrees on labels."""
    values: dict[str, Any] = {"project": project.pk, "crew": [user.pk for user in crew.values()], "number": len(crew)}
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        for statement in _RATINGS:
            cursor.execute(with_levels(statement, project.attribute_keys()), values)
    settle()


def make_history(annotator: User, project: Project, *, tasks: int) -> None:
    """Has the annotator rate the first so many tasks that nobody has begun, which stay open for others."""
    values = {"project": project.pk, "annotator": annotator.pk, "tasks": tasks}
    with transaction.atomic(), connection.cursor() as cursor:
        for statement in _HISTORY:
            cursor.execute(statement, values)
    settle()


def settle() -> None:
    """Does now what the server does in its spare time after so many rows: vacuum, analyse, checkpoint.

    It leaves empty tables alone, as the server would. Once analysed, such a table counts as empty until the next time,
    and plans made meanwhile read all of it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT format('%I', relname) FROM pg_class WHERE relkind = 'r' AND relname ~ '^(annotator|rewards)_'"
        )
        names = [name for (name,) in cursor.fetchall()]
        for name in names:
            cursor.execute(f"SELECT EXISTS (SELECT FROM {name})")
            if cursor.fetchone() == (True,):
                cursor.execute(f"VACUUM (ANALYZE) {name}")
        # Else the writes of the filling would reach the disk during the measurement.
        cursor.execute("CHECKPOINT")


_TASKS = """
    INSERT INTO annotator_task (project_id, external_id, conversation, metadata, priority, state, slots_wanted,
                                open_slots, content_hash, prompt_hash, created_at, pii_scanned_at)
    SELECT %(project)s, 't-' || number,
           jsonb_build_array(jsonb_build_object('role', 'user', 'content', left(
               'Question ' || number || ': ' || repeat(md5(number::text) || ' ', %(characters)s / 33 + 1),
               %(characters)s))),
           '{}', 0, 'open', 3, 3,
           encode(sha256(('task ' || number)::bytea), 'hex'), encode(sha256(('prompt ' || number)::bytea), 'hex'),
           now(), now()
    FROM generate_series(1, %(tasks)s) AS number
"""
_RESPONSES = """
    INSERT INTO annotator_response (task_id, position, external_id, text, model, metadata)
    SELECT id, position, external_id || '-' || position,
           left(repeat(md5(id || '-' || position) || ' ', %(characters)s / 33 + 1), %(characters)s),
           'm-' || position, '{}'
    FROM annotator_task, generate_series(0, %(responses)s - 1) AS position
    WHERE project_id = %(project)s
    ORDER BY id, position
"""
_HISTORY = (
    """
    INSERT INTO annotator_assignment (task_id, annotator_id, slot, state, response_order, leased_at, lease_expires_at)
    SELECT id, %(annotator)s, slots_wanted - open_slots + 1, 'submitted', '{0,1}', now(), now()
    FROM annotator_task WHERE project_id = %(project)s AND NOT begun ORDER BY id LIMIT %(tasks)s
    """,
    """
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, justification, guideline_version,
                                      content_hash, submitted_at, project_id, annotator_id)
    SELECT id, 1, true, 'person', '', 0, encode(sha256(id::text::bytea), 'hex'), now(), %(project)s, annotator_id
    FROM annotator_assignment WHERE annotator_id = %(annotator)s
    """,
    """
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, unsafe_category)
    SELECT annotation.id, response.id,
           '{"helpfulness": 3, "correctness": 3, "coherence": 3, "complexity": 2, "verbosity": 2}', '[]', ''
    FROM annotator_annotation AS annotation
    JOIN annotator_assignment AS assignment ON assignment.id = assignment_id
    JOIN annotator_response AS response ON response.task_id = assignment.task_id
    WHERE assignment.annotator_id = %(annotator)s
    """,
    """
    UPDATE annotator_task SET open_slots = open_slots - 1, done = done + 1
    WHERE id IN (SELECT task_id FROM annotator_assignment WHERE annotator_id = %(annotator)s)
    """,
    """
    INSERT INTO annotator_tally (annotator_id, project_id, done)
    SELECT annotator_id, %(project)s, count(*) FROM annotator_assignment WHERE annotator_id = %(annotator)s GROUP BY 1
    """,
)
# The raters of a task stand the same step apart.
_RATINGS = (
    "UPDATE annotator_task SET state = 'complete', open_slots = 0, done = 3 WHERE project_id = %(project)s",
    """
    INSERT INTO annotator_assignment (task_id, annotator_id, slot, state, response_order, leased_at, lease_expires_at)
    SELECT id, (%(crew)s::bigint[])[1 + (id + place * (1 + id / %(number)s %% (%(number)s / 3))) %% %(number)s],
           place + 1, 'submitted', '{0,1}', now(), now()
    FROM annotator_task, generate_series(0, 2) AS place WHERE project_id = %(project)s ORDER BY id, place
    """,
    """
    INSERT INTO annotator_annotation (assignment_id, revision, is_current, origin, justification, guideline_version,
                                      content_hash, submitted_at, project_id, annotator_id)
    SELECT id, 1, true, 'person', '', 0, id, now() - (id %% 365) * interval '1 day', %(project)s, annotator_id
    FROM annotator_assignment ORDER BY id
    """,
    """
    INSERT INTO annotator_rating (annotation_id, response_id, scores, checks, safe, unsafe_category)
    SELECT a.id, r.id, $scores, '[]', random() < 0.97, ''
    FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id
    JOIN annotator_response r ON r.task_id = s.task_id ORDER BY a.id, r.id
    """,
    """
    INSERT INTO annotator_consensus (project_id, task_id, kept, annotators, drop_reason, computed_at, preference)
    SELECT %(project)s, s.task_id, array_agg(a.id ORDER BY a.id), 3, '', now(), s.task_id %% 3
    FROM annotator_annotation a JOIN annotator_assignment s ON s.id = a.assignment_id GROUP BY s.task_id
    """,
    """
    INSERT INTO annotator_label (project_id, response_id, source, scores, means, made_at)
    SELECT %(project)s, r.id, 'consensus', $rounded, $means, now() FROM annotator_response r ORDER BY r.id
    """,
)


def with_levels(statement: str, keys: Sequence[str]) -> str:
    """Writes SQL for the levels of a response `r` into a statement, on the scale from 0 to 4 and for these attributes.

    `$scores` are somebody's scores, a level off now and then, `$means` means, `$rounded` those rounded.
    """
    noise = "CASE WHEN random() < 0.6 THEN 0 WHEN random() < 0.5 THEN 1 ELSE -1 END"
    for name, more, cast in (
        ("$scores", noise, "int"),
        ("$means", "(r.id %% 3 - 1) / 3.0", "float8"),
        ("$rounded", "0", "int"),
    ):
        levels = (
            f"'{key}', greatest(0, least(4, r.id * {n + 7} / 3 %% 5 + {more}))::{cast}" for n, key in enumerate(keys)
        )
        statement = statement.replace(name, f"jsonb_build_object({', '.join(levels)})")
    return statement
