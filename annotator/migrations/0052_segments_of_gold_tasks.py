"""Segments of gold tasks: the scores of experts, and of those who take the test."""

import django.contrib.postgres.fields
from django.db import migrations, models

import annotator.models.scores


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0051_segment_scores"),
    ]

    operations = [
        migrations.AddField(
            model_name="expertrating",
            name="aspects",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="expertrating",
            name="segment_scores",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="qualificationanswer",
            name="aspects",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="qualificationanswer",
            name="segment_scores",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddConstraint(
            model_name="expertrating",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryCell(
                    models.F("segment_scores"),
                    path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))',
                ),
                name="expert_segment_scores_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="qualificationanswer",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryCell(
                    models.F("segment_scores"),
                    path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))',
                ),
                name="answer_segment_scores_on_a_scale",
            ),
        ),
    ]
