"""Replaces the index of assignments by annotator by one that has them in order.

It is made before the old one goes, so that no statement is without an index in between.
"""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("annotator", "0041_invitations_and_password_links")]

    operations = [
        migrations.AddIndex(
            model_name="assignment",
            index=models.Index(fields=["annotator", "id"], name="assignment_by_annotator"),
        ),
        migrations.AlterField(
            model_name="assignment",
            name="annotator",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="assignments",
                to=settings.AUTH_USER_MODEL,
            ),
        ),
    ]
