"""Renames accounts and projects whose names a browser would rewrite, or that begin like something else than a name."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from django.db import migrations

FALLBACKS = {"User": "user", "Project": "project"}
NO_BEGINNINGS = "-._@+"


def rename(apps: Any, _schema: Any) -> None:
    for model, field in (("User", "username"), ("Project", "slug")):
        rows = apps.get_model("annotator", model).objects
        for row in rows.filter(**{f"{field}__regex": f"^[{NO_BEGINNINGS}]"}).order_by("pk"):
            before = getattr(row, field)
            after = next(
                name for name in names_like(before, FALLBACKS[model]) if not rows.filter(**{f"{field}__iexact": name})
            )
            rows.filter(pk=row.pk).update(**{field: after})
            print(f"\n  {model} {before!r} is called {after!r} from now on.", end="")


def names_like(name: str, fallback: str) -> Iterator[str]:
    rest = name.lstrip(NO_BEGINNINGS)
    # What begins like raters that are not people would pass for one of them.
    wanted = rest if rest and not rest.casefold().startswith(("imported", "simulated-")) else f"{fallback}-{rest}"
    wanted = wanted.rstrip("-")
    yield wanted
    yield from (f"{wanted[:40]}-{number}" for number in count(2))


class Migration(migrations.Migration):
    dependencies = [("annotator", "0061_notes_of_import_jobs")]
    operations = [migrations.RunPython(rename, migrations.RunPython.noop, elidable=True)]
