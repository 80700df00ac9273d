"""A model's scores of the segments of a response."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0017_policies"),
    ]

    operations = [
        migrations.AddField(
            model_name="score",
            name="segment_scores",
            field=models.JSONField(
                help_text="[segments][aspects] in the order of the model's aspects; empty: not scored by segments",
                null=True,
            ),
        ),
    ]
