import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0037_general_rubrics")]

    operations = [
        migrations.CreateModel(
            name="ProjectFigures",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="figures",
                        serialize=False,
                        to="annotator.project",
                    ),
                ),
                ("figures", models.JSONField(default=dict)),
                ("as_of", models.DateTimeField(null=True)),
                ("took", models.FloatField(default=0)),
                ("wanted_at", models.DateTimeField(null=True)),
            ],
        )
    ]
