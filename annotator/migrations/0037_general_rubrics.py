"""The general rubrics that ship with the product: overall quality, helpful and harmless, yes or no."""

from typing import Any

from django.db import migrations

from annotator.projects.preset_rubrics import RUBRICS


def add_rubrics(apps: Any, schema_editor: Any) -> None:
    Rubric, Attribute = apps.get_model("annotator", "Rubric"), apps.get_model("annotator", "Attribute")
    for text in RUBRICS:
        # A rubric that somebody has made under this key stays as it is.
        rubric, is_new = Rubric.objects.get_or_create(key=text.key, project=None, defaults={"name": text.name})
        attributes = text.attributes if is_new else ()
        Attribute.objects.bulk_create(
            Attribute(
                rubric=rubric,
                key=one.key,
                name=one.name,
                description=one.description,
                levels=list(one.levels),
                checks=[list(check) for check in one.checks],
                scope=one.scope,
                position=position,
            )
            for position, one in enumerate(attributes)
        )


class Migration(migrations.Migration):
    dependencies = [("annotator", "0036_scales_and_versions_of_rubrics")]
    operations = [migrations.RunPython(add_rubrics, migrations.RunPython.noop)]
