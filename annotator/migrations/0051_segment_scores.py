"""Segments of responses: their ranges, scores, comments and labels; how a project cuts and judges them."""

import django.contrib.postgres.fields
import django.core.validators
from django.db import migrations, models

import annotator.models.scores


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0050_imports_from_the_hub"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="project",
            name="settings_lie_within_their_bounds",
        ),
        migrations.AddField(
            model_name="adjudication",
            name="aspects",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="adjudication",
            name="segments",
            field=models.JSONField(
                blank=True,
                db_default={},
                default=dict,
                help_text="{response: [[score, ...], ...]}, in the order of the aspects",
            ),
        ),
        migrations.AddField(
            model_name="annotation",
            name="aspects",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SlugField(),
                blank=True,
                db_default=[],
                default=list,
                help_text="the attributes of segments, in the order of the ratings' segment scores",
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="label",
            name="aspects",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=models.SlugField(), blank=True, db_default=[], default=list, size=None
            ),
        ),
        migrations.AddField(
            model_name="label",
            name="cut",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="label",
            name="segment_means",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="label",
            name="segment_scores",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="project",
            name="allow_recut",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Annotators may join and split the segments of a response.",
                verbose_name="allow recut",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="segment_unit",
            field=models.CharField(
                choices=[("sentence", "Sentence"), ("step", "Step"), ("text", "Whole response")],
                db_default="sentence",
                default="sentence",
                help_text="What a segment of a response is, where the rubric has attributes of segments.",
                max_length=10,
                verbose_name="segment unit",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="spread_share",
            field=models.FloatField(
                db_default=0.0,
                default=0.0,
                help_text="If an aspect of segments decides: the share of a response's segments that may have a larger spread. 0: not a single one.",
                validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(0.9)],
                verbose_name="spread share",
            ),
        ),
        migrations.AddField(
            model_name="rating",
            name="comments",
            field=models.JSONField(
                blank=True, db_default=[], default=list, help_text="[[start, end, text], ...] of the response's text"
            ),
        ),
        migrations.AddField(
            model_name="rating",
            name="cut",
            field=models.JSONField(
                blank=True, help_text="[[start, end], ...]; empty: the response's own segments", null=True
            ),
        ),
        migrations.AddField(
            model_name="rating",
            name="segment_scores",
            field=models.JSONField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="response",
            name="segments",
            field=models.JSONField(
                blank=True, help_text="[[start, end], ...] of the text; empty: nobody has cut it yet", null=True
            ),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryCell(
                    models.F("segment_scores"),
                    path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))',
                ),
                name="label_segment_scores_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryCell(
                    models.F("segment_means"),
                    path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6))',
                ),
                name="label_segment_means_on_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._Ranges(models.F("cut")), name="a_label_is_of_ranges"
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("gold_threshold__range", (-1, 1)),
                    ("gold_window__gte", 2),
                    ("lease_minutes__gte", 1),
                    ("qualification_threshold__range", (-1, 1)),
                    ("qualification_tries__gte", 1),
                    ("review_unlikely_percent__lte", 20),
                    ("spread_share__range", (0, 0.9)),
                    ("validation_share__range", (0.01, 0.5)),
                ),
                name="settings_lie_within_their_bounds",
            ),
        ),
        migrations.AddConstraint(
            model_name="rating",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryCell(
                    models.F("segment_scores"),
                    path='strict $[*][*] ? (@.type() != "null" && (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor()))',
                ),
                name="segment_scores_are_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="rating",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._Ranges(models.F("cut")), name="an_own_cut_is_ranges"
            ),
        ),
        migrations.AddConstraint(
            model_name="response",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._Ranges(models.F("segments")), name="segments_are_ranges"
            ),
        ),
    ]
