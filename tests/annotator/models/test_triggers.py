"""The triggers of the database are those that the SQL files list, table by table."""

import pytest
from django.conf import settings
from django.db import connection

FOLDERS = {half: settings.BASE_DIR / half / "models" / "triggers" for half in ("annotator", "rewards")}
FILES = sorted(file for folder in FOLDERS.values() for file in folder.glob("*.sql"))
TRIGGERS = """
SELECT c.relname, t.tgname, pg_get_triggerdef(t.oid), p.proname, p.prosrc
FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid JOIN pg_proc p ON p.oid = t.tgfoid
WHERE NOT t.tgisinternal ORDER BY c.relname, t.tgname
"""

pytestmark = pytest.mark.django_db


def triggers() -> list[tuple[str, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(TRIGGERS)
        return [tuple(row) for row in cursor.fetchall()]


def test_the_database_has_exactly_the_triggers_that_the_files_list() -> None:
    migrated = triggers()
    with connection.cursor() as cursor:
        for table, name, *_ in migrated:
            cursor.execute(f"DROP TRIGGER {name} ON {table}")
        assert triggers() == []
        for file in FILES:
            cursor.execute(file.read_text())
    assert triggers() == migrated


def test_a_trigger_stands_in_the_file_of_its_table() -> None:
    for table, name, _, function, _ in triggers():
        folder = FOLDERS[function.partition("_")[0]]
        files = [file for file in folder.glob("*.sql") if f"TRIGGER {name} " in file.read_text()]
        assert table.partition("_")[2] in {file.stem.replace("_", "") for file in files}, name
