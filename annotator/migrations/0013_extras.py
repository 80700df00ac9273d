"""Submissions that came when their task had no room are marked as extras, and no longer count."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0012_unlikely_annotations")]
    operations = [
        migrations.AddField(
            model_name="assignment",
            name="extra",
            field=models.BooleanField(
                db_default=False, help_text="submitted when its task had no room; a reviewer may admit it"
            ),
        ),
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(
                condition=models.Q(("state__in", ["released", "skipped"])),
                fields=["annotator", "leased_at"],
                name="passed_by_annotator",
            ),
        ),
    ]
