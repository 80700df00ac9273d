"""Files that people upload, how far their imports are, and mappings of their columns."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0039_words_of_tasks"),
    ]

    operations = [
        migrations.CreateModel(
            name="ImportJob",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("file_name", models.CharField(max_length=200)),
                (
                    "file_hash",
                    models.CharField(blank=True, help_text="SHA-256; empty while the file arrives", max_length=64),
                ),
                ("file_bytes", models.BigIntegerField(default=0)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("uploaded", "Uploaded"),
                            ("waiting", "Waiting"),
                            ("working", "Working"),
                            ("done", "Done"),
                            ("failed", "Failed"),
                            ("cancelled", "Cancelled"),
                        ],
                        default="uploaded",
                        max_length=10,
                    ),
                ),
                ("dry_run", models.BooleanField(default=False)),
                ("mapping", models.JSONField(blank=True, null=True)),
                ("attempt", models.PositiveIntegerField(default=0, help_text="counts up with each worker")),
                (
                    "tries",
                    models.PositiveSmallIntegerField(
                        default=0, help_text="workers that were lost, and the current one"
                    ),
                ),
                ("heartbeat_at", models.DateTimeField(blank=True, null=True)),
                ("bytes_read", models.BigIntegerField(default=0)),
                ("rows_done", models.PositiveIntegerField(default=0)),
                (
                    "rules",
                    models.CharField(blank=True, help_text="hash of what decides how a row is read", max_length=64),
                ),
                ("created", models.PositiveIntegerField(default=0)),
                ("existing", models.PositiveIntegerField(default=0)),
                ("rejected", models.PositiveIntegerField(default=0)),
                (
                    "layouts",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=20), blank=True, default=list, size=None
                    ),
                ),
                ("error", models.TextField(blank=True)),
                ("created_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                (
                    "import_row",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="jobs",
                        to="annotator.import",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="import_jobs",
                        to="annotator.project",
                    ),
                ),
                (
                    "requested_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportJobError",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("line", models.PositiveBigIntegerField()),
                ("field", models.CharField(blank=True, max_length=200)),
                ("error", models.TextField()),
                (
                    "job",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="errors",
                        to="annotator.importjob",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="ImportMapping",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=100)),
                ("columns", models.JSONField()),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="import_mappings",
                        to="annotator.project",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.AddIndex(
            model_name="importjob",
            index=models.Index(fields=["project", "id"], name="import_job_by_project"),
        ),
        migrations.AddIndex(
            model_name="importjob",
            index=models.Index(
                condition=models.Q(("state__in", ["uploaded", "waiting", "working"])),
                fields=["id"],
                name="import_job_active",
            ),
        ),
        migrations.AddConstraint(
            model_name="importjob",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at__isnull", True), ("state__in", ["uploaded", "waiting", "working"])),
                    models.Q(("finished_at__isnull", False), ("state__in", ["done", "failed", "cancelled"])),
                    _connector="OR",
                ),
                name="import_job_finished_once_ended",
            ),
        ),
        migrations.AddConstraint(
            model_name="importjob",
            constraint=models.CheckConstraint(
                condition=models.Q(("dry_run", False), ("import_row__isnull", True), _connector="OR"),
                name="no_import_of_a_dry_run",
            ),
        ),
        migrations.AddIndex(
            model_name="importjoberror",
            index=models.Index(fields=["job", "id"], name="import_error_by_job"),
        ),
        migrations.AddConstraint(
            model_name="importmapping",
            constraint=models.UniqueConstraint(
                fields=("project", "name"), name="one_import_mapping_of_a_name_per_project"
            ),
        ),
    ]
