"""Webhooks of projects: their rows, what is to be sent, and the triggers that write it."""

import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

_TRIGGERS = """
-- Writes an event for every webhook of the project that wants it, in the transaction of the change. Triggers and stages
-- call it; `data` gets the project's slug.
CREATE OR REPLACE FUNCTION annotator_announce(of_project bigint, named text, what jsonb) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE written bigint;
BEGIN
    INSERT INTO annotator_webhookdelivery (webhook_id, message, event, data, state, attempts, error)
    SELECT w.id, gen_random_uuid(), named, jsonb_build_object('project', p.slug) || what, 'waiting', 0, ''
    FROM annotator_webhook w JOIN annotator_project p ON p.id = w.project_id
    WHERE w.project_id = of_project AND w.active AND (w.events = '{}' OR named = ANY (w.events))
        AND p.deleted_at IS NULL
    ORDER BY w.id;
    GET DIAGNOSTICS written = ROW_COUNT;
    RETURN written;
END $$;

-- Webhooks are told of tasks that are complete, set aside or in need of a reviewer, whoever made them so. Where there is
-- no webhook this costs a look at an empty table, and only when a task changes its state.
CREATE OR REPLACE FUNCTION annotator_task_is_news() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE what jsonb;
BEGIN
    IF NOT EXISTS (SELECT FROM annotator_webhook w WHERE w.project_id = NEW.project_id AND w.active) THEN
        RETURN NULL;
    END IF;
    what := jsonb_build_object(
        'task', NEW.id, 'external_id', NEW.external_id, 'state', NEW.state, 'annotations', NEW.done
    );
    IF NEW.state <> OLD.state AND NEW.state IN ('complete', 'quarantined') THEN
        PERFORM annotator_announce(
            NEW.project_id, CASE NEW.state WHEN 'complete' THEN 'task.completed' ELSE 'task.quarantined' END, what
        );
    END IF;
    IF NEW.review_because <> OLD.review_because AND NEW.review_because IN ('dropped', 'safety', 'unlikely') THEN
        PERFORM annotator_announce(
            NEW.project_id, 'task.disputed', what || jsonb_build_object('because', NEW.review_because)
        );
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER task_is_news AFTER UPDATE OF state, review_because ON annotator_task FOR EACH ROW
    WHEN (
        (NEW.state <> OLD.state AND NEW.state IN ('complete', 'quarantined'))
        OR (NEW.review_because <> OLD.review_because AND NEW.review_because IN ('dropped', 'safety', 'unlikely'))
    ) EXECUTE FUNCTION annotator_task_is_news();

-- Webhooks are told of labels that people's ratings have made, changed or withdrawn: once for a task, by the statement.
-- Labels that came with a file are no news to whoever imported it.
CREATE OR REPLACE FUNCTION annotator_labels_are_news() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM annotator_webhook WHERE active) THEN
        RETURN NULL;
    END IF;
    PERFORM annotator_announce(t.project_id, 'label.changed', jsonb_build_object(
        'task', t.id, 'external_id', t.external_id, 'source', l.source, 'change', TG_ARGV[0], 'responses', l.responses
    ))
    FROM (
        SELECT r.task_id, c.source, count(*) AS responses FROM changed c JOIN annotator_response r ON r.id = c.response_id
        WHERE c.source <> 'imported' GROUP BY r.task_id, c.source
    ) l JOIN annotator_task t ON t.id = l.task_id;
    RETURN NULL;
END $$;
CREATE TRIGGER made_labels_are_news AFTER INSERT ON annotator_label REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_labels_are_news('made');
CREATE TRIGGER changed_labels_are_news AFTER UPDATE ON annotator_label REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_labels_are_news('changed');
CREATE TRIGGER withdrawn_labels_are_news AFTER DELETE ON annotator_label REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION annotator_labels_are_news('withdrawn');
"""
_NO_TRIGGERS = """
DROP TRIGGER task_is_news ON annotator_task;
DROP TRIGGER made_labels_are_news ON annotator_label;
DROP TRIGGER changed_labels_are_news ON annotator_label;
DROP TRIGGER withdrawn_labels_are_news ON annotator_label;
DROP FUNCTION annotator_task_is_news, annotator_labels_are_news, annotator_announce;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0044_export_jobs"),
    ]

    operations = [
        migrations.CreateModel(
            name="QueueOutage",
            fields=[
                ("queue", models.CharField(max_length=10, primary_key=True, serialize=False)),
                ("since", models.DateTimeField()),
                ("announced_at", models.DateTimeField(blank=True, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="Webhook",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("url", models.CharField(max_length=500)),
                (
                    "events",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), blank=True, default=list, size=None
                    ),
                ),
                ("secret", models.CharField(max_length=100)),
                ("previous_secret", models.CharField(blank=True, max_length=100)),
                ("previous_until", models.DateTimeField(blank=True, null=True)),
                ("active", models.BooleanField(default=True)),
                (
                    "ended_because",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("failing", "All deliveries of the last 5 days have failed."),
                            ("gone", "The receiver has answered 410: it wants no more messages."),
                        ],
                        max_length=10,
                    ),
                ),
                ("failing_since", models.DateTimeField(blank=True, null=True)),
                (
                    "tried_at",
                    models.DateTimeField(blank=True, help_text="when a worker last sent something", null=True),
                ),
                ("created_at", models.DateTimeField()),
                (
                    "made_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="webhooks", to="annotator.project"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="WebhookDelivery",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("message", models.UUIDField(default=uuid.uuid4)),
                ("event", models.CharField(max_length=40)),
                (
                    "data",
                    models.JSONField(help_text="with primary keys of tasks, for which `payload` has public numbers"),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[("waiting", "Waiting"), ("delivered", "Delivered"), ("failed", "Failed")],
                        default="waiting",
                        max_length=10,
                    ),
                ),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("created_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("next_attempt_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                ("attempted_at", models.DateTimeField(blank=True, null=True)),
                ("seconds", models.FloatField(blank=True, help_text="that the last attempt took", null=True)),
                (
                    "status",
                    models.PositiveSmallIntegerField(blank=True, help_text="of HTTP, in the last answer", null=True),
                ),
                ("error", models.CharField(blank=True, help_text="of the last attempt", max_length=500)),
                (
                    "webhook",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="annotator.webhook",
                    ),
                ),
            ],
        ),
        migrations.AddConstraint(
            model_name="webhook",
            constraint=models.CheckConstraint(
                condition=models.Q(models.Q(("active", True), _negated=True), ("ended_because", ""), _connector="OR"),
                name="webhook_ended_is_inactive",
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["webhook", "id"], name="delivery_of_a_webhook"),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(
                condition=models.Q(("state", "waiting")), fields=["webhook", "next_attempt_at"], name="delivery_waiting"
            ),
        ),
        migrations.AddIndex(
            model_name="webhookdelivery",
            index=models.Index(fields=["created_at"], name="delivery_by_time"),
        ),
        migrations.RunSQL(_TRIGGERS, _NO_TRIGGERS),
    ]
