"""How far the tasks' doubt is in line with a champion's uncertainty."""

import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("rewards", "0004_folders_without_an_owner"),
    ]

    operations = [
        migrations.AddField(
            model_name="scoringpass",
            name="doubt_edges",
            field=django.contrib.postgres.fields.ArrayField(base_field=models.FloatField(), default=list, size=None),
        ),
        migrations.AddField(
            model_name="scoringpass",
            name="doubted",
            field=models.BigIntegerField(default=0),
        ),
    ]
