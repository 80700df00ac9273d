"""A snapshot is erased when its files are gone, not when that was asked for."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0005_doubt"),
    ]

    operations = [
        migrations.AddField(
            model_name="snapshot",
            name="erasing_at",
            field=models.DateTimeField(
                blank=True, help_text="asked for; from then on nobody uses its files", null=True
            ),
        ),
    ]
