"""When a run's unlikely annotations were noted: what a lost message was about is found again by its row."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0008_runs_name_no_folders"),
    ]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="unlikely_noted_at",
            field=models.DateTimeField(
                blank=True, help_text="when annotations unlikely to its model were noted", null=True
            ),
        ),
    ]
