"""Half-filled forms name responses by their public numbers: what was begun before the upgrade is still there."""

import re
from typing import Any

from django.db import migrations

from annotator.models.public_ids import response_number

NAME = re.compile(r"(.+)-([0-9]{1,15})")


def renamed(form: dict[str, Any]) -> dict[str, Any]:
    """`helpfulness-17` to `helpfulness-` and the number by which response 17 is known outside."""
    found = {name: NAME.fullmatch(name) for name in form}
    return {
        f"{match[1]}-{response_number(int(match[2]))}" if match else name: form[name] for name, match in found.items()
    }


def rename(apps: Any, schema_editor: Any) -> None:
    for model, field in (("Draft", "form"), ("QualificationRun", "draft")):
        rows = apps.get_model("annotator", model).objects.exclude(**{field: {}})
        for row in rows.iterator():
            setattr(row, field, renamed(getattr(row, field)))
            row.save(update_fields=[field])


class Migration(migrations.Migration):
    dependencies = [("annotator", "0015_counting_within_wanted")]
    operations = [migrations.RunPython(rename, migrations.RunPython.noop)]
