"""What is kept about a project is kept by its number; projects can be archived, and a role can be offered."""

from typing import Any

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import annotator.models.rater

ROLES = [("annotator", "Annotator"), ("reviewer", "Reviewer"), ("manager", "Manager")]
ID = models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")


def of_project(related_name: str) -> Any:
    return models.ForeignKey(
        on_delete=django.db.models.deletion.CASCADE, related_name=related_name, to="annotator.project"
    )


class Migration(migrations.Migration):
    dependencies = [("annotator", "0016_public_numbers_in_drafts")]
    operations = [
        migrations.AddField("project", "archived_at", models.DateTimeField(blank=True, editable=False, null=True)),
        migrations.AddField(
            "project",
            "deleted_at",
            models.DateTimeField(blank=True, editable=False, help_text="the rest goes in portions", null=True),
        ),
        migrations.AddField(
            "membership",
            "offered_role",
            models.CharField(blank=True, choices=ROLES, default="", editable=False, max_length=10),
        ),
        migrations.AddField("user", "staff_by_role", models.BooleanField(default=False, editable=False)),
        migrations.CreateModel(
            "Pseudonym",
            [
                ("id", ID.clone()),
                ("name", models.CharField(default=annotator.models.rater.new_pseudonym, max_length=32)),
                ("project", of_project("pseudonyms")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pseudonyms",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["project", "user"], name="one_pseudonym_per_person_and_project"),
                    models.UniqueConstraint(fields=["project", "name"], name="one_person_per_pseudonym_and_project"),
                ]
            },
        ),
        migrations.CreateModel(
            "ImportedRater",
            [
                ("id", ID.clone()),
                ("place", models.CharField(help_text="such as rater-1 or preference-2", max_length=40)),
                ("project", of_project("imported_raters")),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="imported_places",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=["project", "place"], name="one_imported_rater_per_place")
                ]
            },
        ),
        migrations.AddField(
            "auditentry",
            "project_id",
            models.BigIntegerField(blank=True, help_text="its number, which no later project gets", null=True),
        ),
        migrations.AlterField(
            "auditentry", "project", models.CharField(blank=True, help_text="its slug at the time", max_length=50)
        ),
    ]
