"""How long the loop rests between two runs, and who decides on a promotion."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0009_legal_transitions"),
    ]

    operations = [
        migrations.AddField(
            model_name="project",
            name="promote_automatically",
            field=models.BooleanField(
                default=True, help_text="a better model takes over by itself; if not, it waits for a manager's decision"
            ),
        ),
        migrations.AddField(
            model_name="project",
            name="retrain_cooldown_minutes",
            field=models.PositiveIntegerField(
                default=30, help_text="least time between the end of a run and one that starts by itself"
            ),
        ),
    ]
