"""A settled task may be shown to raters as an example of its levels."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0004_request_ids")]
    operations = [
        migrations.AddField(
            "adjudication",
            "is_example",
            models.BooleanField(default=False, db_default=False, help_text="shown to raters, beside its levels"),
        ),
    ]
