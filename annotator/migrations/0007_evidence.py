"""Scores carry the characters of the response for which they were given."""

from django.db import migrations, models

from annotator.infrastructure.db import triggers


class Migration(migrations.Migration):
    dependencies = [("annotator", "0006_guideline_gaps")]
    operations = [
        migrations.AddField(
            "rating",
            "evidence",
            models.JSONField(
                blank=True,
                db_default=[],
                default=list,
                help_text="[[attribute, start, end, note], ...] of the response's text",
            ),
        ),
        triggers.installed(triggers.ANNOTATOR),
    ]
