"""Migrates the database, and says through which version one that is too old has to go."""

from typing import Any

from django.core.management.base import CommandError
from django.core.management.commands import migrate
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder

OLDEST = "6be395a0"


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        applied = MigrationRecorder(connections[options["database"]]).applied_migrations()
        for migration in MigrationLoader(None).disk_migrations.values():
            present = applied.keys() & set(migration.replaces)
            if present and present != set(migration.replaces):
                raise CommandError(
                    f"This database was made before commit {OLDEST}, the oldest one that this version migrates. Check "
                    f"out {OLDEST}, run `python manage.py migrate` there, and migrate here again."
                )
        super().handle(*args, **options)
