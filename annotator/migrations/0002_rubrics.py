"""The two rubrics that ship with the product."""

from typing import Any

from django.db import migrations

from annotator.projects.preset_rubrics import RUBRICS


def add_rubrics(apps: Any, schema_editor: Any) -> None:
    Rubric, Attribute = apps.get_model("annotator", "Rubric"), apps.get_model("annotator", "Attribute")
    for text in RUBRICS:
        rubric, _ = Rubric.objects.get_or_create(key=text.key, defaults={"name": text.name})
        for position, each in enumerate(text.attributes):
            Attribute.objects.update_or_create(
                rubric=rubric,
                key=each.key,
                defaults={
                    "name": each.name,
                    "description": each.description,
                    "levels": list(each.levels),
                    "checks": [list(check) for check in each.checks],
                    "scope": each.scope,
                    "position": position,
                },
            )


class Migration(migrations.Migration):
    dependencies = [("annotator", "0001_tables_of_the_human_half")]
    operations = [migrations.RunPython(add_rubrics, migrations.RunPython.noop)]
