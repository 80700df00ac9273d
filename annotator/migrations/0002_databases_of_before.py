"""Brings a database of commit 6be395a0 to what 0001_initial makes."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from django.db import migrations

from annotator.infrastructure.db import triggers

COLUMNS = """
DO $$
DECLARE
    found record;
BEGIN
    FOR found IN
        SELECT x.relation, x.before, x.after FROM (VALUES
            ('annotator_membership', 'paused_because', 'pause_reason'),
            ('annotator_task', 'review_because', 'review_reason'),
            ('annotator_consensus', 'dropped_because', 'drop_reason'),
            ('annotator_webhook', 'ended_because', 'end_reason')
        ) x (relation, before, after)
        JOIN pg_attribute a ON a.attrelid = x.relation::regclass AND a.attname = x.before
    LOOP
        EXECUTE format('ALTER TABLE %I RENAME COLUMN %I TO %I', found.relation, found.before, found.after);
    END LOOP;
END $$;
ALTER TABLE annotator_importjob
    ADD COLUMN IF NOT EXISTS notes jsonb NOT NULL DEFAULT '{}',
    ADD COLUMN IF NOT EXISTS ratings_added integer NOT NULL DEFAULT 0 CHECK (ratings_added >= 0),
    ADD COLUMN IF NOT EXISTS ratings_left_out integer NOT NULL DEFAULT 0 CHECK (ratings_left_out >= 0);
ALTER TABLE annotator_importjob
    ALTER COLUMN notes DROP DEFAULT, ALTER COLUMN ratings_added DROP DEFAULT, ALTER COLUMN ratings_left_out DROP DEFAULT;
ALTER TABLE annotator_release
    ADD COLUMN IF NOT EXISTS rubric_version smallint CHECK (rubric_version >= 0);
"""

HAVE_VERSIONS = """
SELECT EXISTS (
    SELECT FROM pg_attribute WHERE attrelid = 'annotator_label'::regclass AND attname = 'rubric_version'
)
"""
# A label of annotators is of the newest version among the annotations that make it; one of another source is of the
# version that was in force when it was made. Where there has been one version only, the default is right. Without the
# trigger that would announce every label as changed.
VERSIONS = """
ALTER TABLE annotator_label ADD COLUMN rubric_version smallint NOT NULL DEFAULT 1 CHECK (rubric_version >= 0);
ALTER TABLE annotator_label DISABLE TRIGGER changed_labels_are_news;
UPDATE annotator_label l SET rubric_version = found.version
FROM (
    SELECT l.id, coalesce(
        CASE WHEN l.source = 'consensus'
        THEN (SELECT max(a.rubric_version) FROM annotator_annotation a WHERE a.id = ANY (c.kept))
        ELSE (
            SELECT max(b.version) FROM annotator_rubric b WHERE b.project_id = l.project_id AND b.made_at <= coalesce(
                (SELECT made_at FROM annotator_adjudication j
                 WHERE l.source = 'adjudicated' AND j.task_id = r.task_id AND j.is_current),
                l.made_at
            )
        ) END, 1) AS version
    FROM annotator_label l
    JOIN annotator_project p ON p.id = l.project_id
    JOIN annotator_rubric in_force ON in_force.id = p.rubric_id AND in_force.version > 1
    JOIN annotator_response r ON r.id = l.response_id
    LEFT JOIN annotator_consensus c ON c.task_id = r.task_id
) found
WHERE found.id = l.id AND found.version <> 1;
ALTER TABLE annotator_label ENABLE TRIGGER changed_labels_are_news;
"""

FALLBACKS = {"User": "user", "Project": "project"}
NO_BEGINNINGS = "-._@+"
NAMES = """
ALTER TABLE annotator_user DROP CONSTRAINT IF EXISTS account_names_begin_with_a_letter_or_a_digit;
ALTER TABLE annotator_user ADD CONSTRAINT account_names_begin_with_a_letter_or_a_digit
    CHECK (username::text ~ '^[^-._@+]');
"""


def add_versions(_apps: Any, schema_editor: Any) -> None:
    with schema_editor.connection.cursor() as cursor:
        cursor.execute(HAVE_VERSIONS)
        if not cursor.fetchone()[0]:
            cursor.execute(VERSIONS)


def rename(apps: Any, _schema: Any) -> None:
    """Renames accounts and projects whose names begin like something else than a name."""
    for model, field in (("User", "username"), ("Project", "slug")):
        rows = apps.get_model("annotator", model).objects
        for row in rows.filter(**{f"{field}__regex": f"^[{NO_BEGINNINGS}]"}).order_by("pk"):
            before = getattr(row, field)
            after = next(
                name for name in names_like(before, FALLBACKS[model]) if not rows.filter(**{f"{field}__iexact": name})
            )
            rows.filter(pk=row.pk).update(**{field: after})
            print(f"\n  {model} {before!r} is called {after!r} from now on.", end="")


def names_like(name: str, fallback: str) -> Iterator[str]:
    rest = name.lstrip(NO_BEGINNINGS)
    # What begins like raters that are not people would pass for one of them.
    wanted = rest if rest and not rest.casefold().startswith(("imported", "simulated-")) else f"{fallback}-{rest}"
    wanted = wanted.rstrip("-")
    yield wanted
    yield from (f"{wanted[:40]}-{number}" for number in count(2))


class Migration(migrations.Migration):
    dependencies = [("annotator", "0001_initial")]
    operations = [
        migrations.RunSQL(COLUMNS, migrations.RunSQL.noop),
        migrations.RunPython(add_versions, migrations.RunPython.noop),
        migrations.RunPython(rename, migrations.RunPython.noop),
        migrations.RunSQL(NAMES, migrations.RunSQL.noop),
        triggers.installed(triggers.ANNOTATOR, without=["rating"]),
    ]
