"""An object store keeps the artifacts, where there is one."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("annotator", "0009_learn_evidence"),
    ]

    operations = [
        migrations.CreateModel(
            name="StoredFile",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("path", models.CharField(max_length=500, unique=True)),
                ("sha256", models.CharField(max_length=64)),
                ("bytes", models.BigIntegerField()),
                ("stored_at", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["sha256"], name="stored_file_by_content")],
            },
        ),
    ]
