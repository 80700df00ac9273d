"""Attributes have 2 to 7 levels, and a project that edits its rubric gets a version of its own."""

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
from django.conf import settings
from django.db import migrations, models

import annotator.models.rubric
import annotator.models.scores


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0035_ties_in_preferences"),
    ]

    operations = [
        migrations.RemoveConstraint(
            model_name="expertrating",
            name="expert_scores_are_integers_0_to_4",
        ),
        migrations.RemoveConstraint(
            model_name="label",
            name="label_scores_are_integers_0_to_4",
        ),
        migrations.RemoveConstraint(
            model_name="label",
            name="label_means_are_within_0_to_4",
        ),
        migrations.RemoveConstraint(
            model_name="project",
            name="spreads_lie_on_the_scale",
        ),
        migrations.RemoveConstraint(
            model_name="qualificationanswer",
            name="answer_scores_are_integers_0_to_4",
        ),
        migrations.RemoveConstraint(
            model_name="rating",
            name="scores_are_integers_0_to_4",
        ),
        migrations.AddField(
            model_name="annotation",
            name="rubric_version",
            field=models.PositiveSmallIntegerField(db_default=1, default=1, verbose_name="rubric version"),
        ),
        migrations.AddField(
            model_name="attribute",
            name="weight",
            field=models.FloatField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="rubric",
            name="made_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name="rubric",
            name="made_by",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.SET_NULL,
                related_name="+",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
        migrations.AddField(
            model_name="rubric",
            name="previous",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="+",
                to="annotator.rubric",
            ),
        ),
        migrations.AddField(
            model_name="rubric",
            name="project",
            field=models.ForeignKey(
                blank=True,
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="own_rubrics",
                to="annotator.project",
            ),
        ),
        migrations.AddField(
            model_name="rubric",
            name="version",
            field=models.PositiveSmallIntegerField(default=1),
        ),
        migrations.AlterField(
            model_name="attribute",
            name="description",
            field=models.TextField(blank=True),
        ),
        migrations.AlterField(
            model_name="project",
            name="drop_above",
            field=models.PositiveSmallIntegerField(
                default=2,
                help_text="If the spread is above this, the task is dropped.",
                validators=[django.core.validators.MaxValueValidator(6)],
                verbose_name="drop above",
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="escalate_above",
            field=models.PositiveSmallIntegerField(
                default=2,
                help_text="If the spread is above this, more annotators are asked.",
                validators=[django.core.validators.MaxValueValidator(6)],
                verbose_name="escalate above",
            ),
        ),
        migrations.AlterField(
            model_name="project",
            name="rubric",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.RESTRICT,
                related_name="projects",
                to="annotator.rubric",
                verbose_name="rubric",
            ),
        ),
        migrations.AlterField(
            model_name="rubric",
            name="key",
            field=models.SlugField(),
        ),
        migrations.AddConstraint(
            model_name="attribute",
            constraint=models.CheckConstraint(
                condition=annotator.models.rubric._HowMany(models.F("levels")), name="attributes_have_2_to_7_levels"
            ),
        ),
        migrations.AddConstraint(
            model_name="expertrating",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryValue(
                    models.F("scores"), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'
                ),
                name="expert_scores_are_whole_and_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryValue(
                    models.F("scores"), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'
                ),
                name="label_scores_are_whole_and_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="label",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryValue(
                    models.F("means"), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6)'
                ),
                name="label_means_are_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(("drop_above__lte", 6), ("escalate_above__lte", 6)), name="spreads_lie_on_the_scale"
            ),
        ),
        migrations.AddConstraint(
            model_name="qualificationanswer",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryValue(
                    models.F("scores"), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'
                ),
                name="answer_scores_are_whole_and_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="rating",
            constraint=models.CheckConstraint(
                condition=annotator.models.scores._EveryValue(
                    models.F("scores"), path='strict $.* ? (@.type() != "number" || @ < 0 || @ > 6 || @ != @.floor())'
                ),
                name="scores_are_whole_and_on_a_scale",
            ),
        ),
        migrations.AddConstraint(
            model_name="rubric",
            constraint=models.UniqueConstraint(
                condition=models.Q(("project", None)), fields=("key",), name="offered_rubrics_have_their_own_keys"
            ),
        ),
        migrations.AddConstraint(
            model_name="rubric",
            constraint=models.UniqueConstraint(fields=("project", "version"), name="rubric_version_once_per_project"),
        ),
    ]
