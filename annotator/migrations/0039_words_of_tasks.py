"""Tasks are found by the words of their texts, by state, by spread, and by the decisions on them.

The migration only queues the tasks that exist: the light worker takes their words, so that a large table is ready in
seconds.
"""

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
from django.db import migrations, models

_TRIGGERS = """
-- A task is found by the words of its texts, which the light worker takes. New and changed texts are queued for it, by
-- the statement: an import writes hundreds of rows at a time.
CREATE OR REPLACE FUNCTION annotator_words_are_new() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO annotator_stalewords (task_id) SELECT DISTINCT task_id FROM written;
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_new_response AFTER INSERT ON annotator_response REFERENCING NEW TABLE AS written
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_words_are_new();

-- What was redacted must not be found any more, so the old words go at once.
CREATE OR REPLACE FUNCTION annotator_words_have_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM annotator_taskwords WHERE task_id = NEW.task_id;
    INSERT INTO annotator_stalewords (task_id) VALUES (NEW.task_id);
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_changed_response AFTER UPDATE OF text, model ON annotator_response
    FOR EACH ROW WHEN (OLD.text <> NEW.text OR OLD.model <> NEW.model)
    EXECUTE FUNCTION annotator_words_have_changed();
-- A task is found by its words (response.sql): they go when a text changes, and with the task.
CREATE OR REPLACE FUNCTION annotator_task_words_have_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM annotator_taskwords WHERE task_id = NEW.id;
    INSERT INTO annotator_stalewords (task_id) VALUES (NEW.id);
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_changed_task AFTER UPDATE OF conversation, language ON annotator_task
    FOR EACH ROW WHEN (OLD.conversation <> NEW.conversation OR OLD.language <> NEW.language)
    EXECUTE FUNCTION annotator_task_words_have_changed();
CREATE OR REPLACE FUNCTION annotator_words_are_gone() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM annotator_taskwords w USING gone WHERE w.task_id = gone.id;
    RETURN NULL;
END $$;
CREATE TRIGGER words_of_deleted_task AFTER DELETE ON annotator_task REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_words_are_gone();
"""
_NO_TRIGGERS = """
DROP TRIGGER words_of_new_response ON annotator_response;
DROP TRIGGER words_of_changed_response ON annotator_response;
DROP TRIGGER words_of_changed_task ON annotator_task;
DROP TRIGGER words_of_deleted_task ON annotator_task;
DROP FUNCTION annotator_words_are_new, annotator_words_have_changed, annotator_task_words_have_changed,
    annotator_words_are_gone;
"""
_QUEUE = "INSERT INTO annotator_stalewords (task_id) SELECT id FROM annotator_task ORDER BY id"


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0038_figures_of_the_overview"),
    ]

    operations = [
        migrations.CreateModel(
            name="StaleWords",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "task",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="annotator.task",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="TaskWords",
            fields=[
                (
                    "task",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="words",
                        serialize=False,
                        to="annotator.task",
                    ),
                ),
                (
                    "facets",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), size=None),
                ),
                ("words", django.contrib.postgres.search.SearchVectorField()),
            ],
            options={
                "indexes": [django.contrib.postgres.indexes.GinIndex(fields=["facets", "words"], name="task_by_words")],
            },
        ),
        migrations.RemoveIndex(model_name="task", name="task_by_state"),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(fields=["project", "state", "id"], name="task_by_state"),
        ),
        migrations.AddIndex(
            model_name="task",
            index=models.Index(
                condition=models.Q(("review_spread__gt", 0)),
                fields=["project", "-review_spread", "id"],
                name="task_by_spread",
            ),
        ),
        migrations.AddIndex(
            model_name="consensus",
            index=models.Index(
                condition=models.Q(("dropped_because", ""), _negated=True), fields=["task"], name="consensus_dropped"
            ),
        ),
        migrations.AddIndex(
            model_name="auditentry",
            index=models.Index(
                condition=models.Q(
                    (
                        "action__in",
                        ("task.changed", "task.redacted", "task.released", "task.retired", "label.withdrawn"),
                    )
                ),
                fields=["project_id", "subject"],
                name="audit_by_task",
            ),
        ),
        migrations.RunSQL(_TRIGGERS, _NO_TRIGGERS),
        migrations.RunSQL(_QUEUE, migrations.RunSQL.noop),
    ]
