"""Responses stand side by side where there is room. *Below* was where everybody began, so nobody has chosen it."""

from django.apps.registry import Apps
from django.db import migrations, models
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

LAYOUTS = [("below", "Below"), ("beside", "Beside")]


def put_side_by_side(apps: Apps, editor: BaseDatabaseSchemaEditor) -> None:
    apps.get_model("annotator", "User").objects.filter(layout="below").update(layout="beside")


class Migration(migrations.Migration):
    dependencies = [("annotator", "0029_rankings")]
    operations = [
        migrations.AlterField("user", "layout", models.CharField(choices=LAYOUTS, default="beside", max_length=10)),
        migrations.RunPython(put_side_by_side, migrations.RunPython.noop),
    ]
