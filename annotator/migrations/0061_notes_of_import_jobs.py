from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0060_answers_of_import_jobs")]

    operations = [
        migrations.AddField(
            model_name="importjob",
            name="notes",
            field=models.JSONField(
                blank=True,
                default=dict,
                help_text="columns that were kept aside or shown, and what else is said of the rows",
            ),
        ),
    ]
