"""How long a run has worked, over all its attempts: there is a limit to it."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0006_erasing_in_two_steps"),
    ]

    operations = [
        migrations.AddField(
            model_name="trainingrun",
            name="worked_seconds",
            field=models.FloatField(db_default=0.0, help_text="of its trainer, in all attempts"),
        ),
    ]
