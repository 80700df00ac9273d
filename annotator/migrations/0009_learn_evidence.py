"""Models may learn segments from the words on which scores are based."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0008_tasks_ahead"),
    ]

    operations = [
        migrations.AlterField(
            model_name="project",
            name="segment_unit",
            field=models.CharField(
                choices=[("sentence", "Sentence"), ("step", "Step"), ("text", "Whole response")],
                db_default="sentence",
                default="sentence",
                help_text="What annotators rate one by one, if the rubric has attributes of segments. Responses that somebody has been given to rate, or a model has scored, keep their segments.",
                max_length=10,
                verbose_name="Segment unit",
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="learn_evidence",
            field=models.BooleanField(
                db_default=False,
                default=False,
                help_text="Words that annotators selected for a score teach models to score parts of a response, where the rubric has no attributes of segments.",
                verbose_name="Learn from selected words",
            ),
        ),
    ]
