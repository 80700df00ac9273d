"""Copies tasks of the project of `workspace_project` into one whose segments are rated and whose responses are ranked.

SQL writes it, without triggers. Copied rows have the numbers of the first ones plus BEYOND.
"""

from typing import TYPE_CHECKING

from django.db import connection, transaction

from benchmarks.filling import settle

if TYPE_CHECKING:
    from annotator.models import Project, User

SLUG = "bench-segments"
BEYOND = 100_000_000
SEGMENTS = 4
"""Of equal length, in each response."""
ASPECTS = "ARRAY['helpfulness', 'correctness', 'safety', 'completeness', 'clarity']"
_WRITTEN = """
SELECT column_name FROM information_schema.columns WHERE table_name = %s AND is_generated = 'NEVER'
"""
"""The columns of a table that PostgreSQL does not compute itself."""
_CELLS = f"""(SELECT jsonb_agg(jsonb_build_array(3, 2, 4, place, 1)) FROM generate_series(1, {SEGMENTS}) AS place)"""
_RANGES = f"""(SELECT jsonb_agg(jsonb_build_array(place * length(text) / {SEGMENTS},
    (place + 1) * length(text) / {SEGMENTS}) ORDER BY place) FROM generate_series(0, {SEGMENTS - 1}) AS place)"""
_CHANGES = {
    # Which rows of a table are copied, and what is changed in the copies.
    "annotator_task": (
        "project_id = %(of)s AND state = 'complete' ORDER BY id LIMIT %(tasks)s",
        f"id = id + {BEYOND}, project_id = %(to)s, from_import_id = NULL",
    ),
    "annotator_response": (
        "task_id IN (SELECT id FROM old_annotator_task)",
        f"id = id + {BEYOND}, task_id = task_id + {BEYOND}, edit_of_id = NULL, segments = {_RANGES}",
    ),
    "annotator_assignment": (
        "task_id IN (SELECT id FROM old_annotator_task)",
        f"id = id + {BEYOND}, task_id = task_id + {BEYOND}",
    ),
    "annotator_annotation": (
        "is_current AND assignment_id IN (SELECT id FROM old_annotator_assignment)",
        f"""id = id + {BEYOND}, assignment_id = assignment_id + {BEYOND}, aspects = {ASPECTS}, preference = NULL,
        project_id = %(to)s,
        ranking = (SELECT jsonb_agg(jsonb_build_array(r.id) ORDER BY r.position) FROM annotator_response r
                   JOIN annotator_assignment s ON s.task_id = r.task_id WHERE s.id = assignment_id + {BEYOND})""",
    ),
    "annotator_rating": (
        "annotation_id IN (SELECT id FROM old_annotator_annotation)",
        f"""id = id + {BEYOND}, annotation_id = annotation_id + {BEYOND}, response_id = response_id + {BEYOND},
        segment_scores = {_CELLS}""",
    ),
    "annotator_label": (
        "response_id IN (SELECT id FROM old_annotator_response)",
        f"""id = id + {BEYOND}, response_id = response_id + {BEYOND}, project_id = %(to)s, aspects = {ASPECTS},
        segment_scores = {_CELLS}, segment_means = {_CELLS}""",
    ),
    "annotator_consensus": (
        "task_id IN (SELECT id FROM old_annotator_task)",
        f"""id = id + {BEYOND}, task_id = task_id + {BEYOND}, project_id = %(to)s, kept = '{{}}', preference = NULL,
        pairs = CASE
        WHEN drop_reason <> '' THEN '[]' ELSE (
            SELECT jsonb_build_array(jsonb_agg(r.id ORDER BY r.position)) FROM annotator_response r
            WHERE r.task_id = new_annotator_consensus.task_id + {BEYOND}) END""",
    ),
}


def copy(project: "Project", manager: "User", *, tasks: int) -> "Project":
    """Returns a project with copies of so many complete tasks, and of what people made of them."""
    from annotator.models import Membership, Project, Role, Rubric

    rubric = Rubric.objects.get(key="helpsteer2d", project=None)
    with transaction.atomic(), connection.cursor() as cursor:
        copied = Project.objects.create(slug=SLUG, name=SLUG, rubric=rubric)
        Membership.objects.create(user=manager, project=copied, role=Role.MANAGER)
        values = {"of": project.pk, "to": copied.pk, "tasks": tasks}
        cursor.execute("SET LOCAL session_replication_role = replica")
        for table, (chosen, changes) in _CHANGES.items():
            temporary = "CREATE TEMPORARY TABLE {} ON COMMIT DROP AS SELECT * FROM {}"
            cursor.execute(temporary.format(f"old_{table}", f"{table} WHERE {chosen}"), values)
            cursor.execute(temporary.format(f"new_{table}", f"old_{table}"))
            cursor.execute(f"UPDATE new_{table} SET {changes}", values)
            cursor.execute(_WRITTEN, [table])
            columns = ", ".join(f'"{name}"' for (name,) in cursor.fetchall())
            # Rows that people write lie in the order of their ids, too.
            cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new_{table} ORDER BY id")
    settle()
    return copied
