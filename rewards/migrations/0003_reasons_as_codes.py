"""Reasons become codes with parameters. A sentence that was stored before stays, as a text in JSON."""

from django.db import migrations, models

TO_JSON = "ALTER TABLE {0} ALTER COLUMN reason TYPE jsonb USING to_jsonb(reason)"
TO_TEXT = "ALTER TABLE {0} ALTER COLUMN reason TYPE {1} USING left(reason #>> '{{}}', 200)"


class Migration(migrations.Migration):
    dependencies = [("rewards", "0002_databases_of_before")]

    operations = [
        migrations.RunSQL(
            TO_JSON.format("rewards_trainingrun"),
            TO_TEXT.format("rewards_trainingrun", "varchar(200)"),
            state_operations=[
                migrations.AlterField(
                    "trainingrun",
                    "reason",
                    models.JSONField(help_text="Why the run was started.", verbose_name="reason"),
                )
            ],
        ),
        migrations.RunSQL(
            TO_JSON.format("rewards_policy"),
            TO_TEXT.format("rewards_policy", "text"),
            state_operations=[
                migrations.AlterField(
                    "policy", "reason", models.JSONField(help_text="Why it is in this state.", verbose_name="reason")
                )
            ],
        ),
    ]
