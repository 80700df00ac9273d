from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0059_edits_by_response")]

    operations = [
        migrations.AddField(
            model_name="importjob",
            name="has_answers",
            field=models.BooleanField(default=False, help_text="whether rows came with labels or ratings"),
        ),
    ]
