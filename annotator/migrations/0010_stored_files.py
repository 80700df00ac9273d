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
                ("path", models.CharField(max_length=500)),
                ("sha256", models.CharField(max_length=64)),
                ("bytes", models.BigIntegerField()),
                ("stored_at", models.DateTimeField()),
                ("gone", models.BooleanField(db_default=False)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["sha256"], name="stored_file_by_content"),
                    models.Index(condition=models.Q(("gone", True)), fields=["id"], name="stored_file_gone"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("gone", False)),
                        fields=("path",),
                        name="stored_file_once",
                        opclasses=["varchar_pattern_ops"],
                    )
                ],
            },
        ),
    ]
