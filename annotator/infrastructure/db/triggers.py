"""Installs a half's triggers from the SQL files that list them, one file a table.

Who changes a trigger edits its file and adds a migration with `installed(FOLDER)`: the database then has what the files
say. A trigger that goes is dropped by that migration.
"""

import re
from collections.abc import Collection
from pathlib import Path

from django.conf import settings
from django.db import migrations

ANNOTATOR = settings.BASE_DIR / "annotator" / "models" / "triggers"
REWARDS = settings.BASE_DIR / "rewards" / "models" / "triggers"
_TRIGGER = re.compile(r"^CREATE (?:CONSTRAINT )?TRIGGER (\w+) .*?ON (\w+)", re.MULTILINE | re.DOTALL)


def installed(folder: Path, *, without: Collection[str] = ()) -> migrations.RunSQL:
    """Returns the operation that puts the triggers of the files in place of those of the same names.

    It leaves out the files `without`, by their names: their triggers need columns that a later migration adds.
    """
    text = "\n".join(file.read_text() for file in sorted(folder.glob("*.sql")) if file.stem not in without)
    former = "\n".join(f"DROP TRIGGER IF EXISTS {name} ON {table};" for name, table in _TRIGGER.findall(text))
    return migrations.RunSQL(f"{former}\n{text}", migrations.RunSQL.noop)
