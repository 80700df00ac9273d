"""seed_demo: makes the demo project with its people and simulated annotations."""

from typing import Any

from django.core.management.base import BaseCommand

from annotator.infrastructure.db.clock import database_now
from annotator.management import demo


class Command(BaseCommand):
    help = "Creates the project `demo`, unless it exists, and the accounts manager, alice, bob and erin."

    def handle(self, *args: Any, **options: Any) -> None:
        seeded = demo.seed(now=database_now())
        state = "created" if seeded.created else "already exists"
        accounts = f"Accounts: {', '.join(seeded.accounts)}; password: {seeded.password}" if seeded.accounts else ""
        self.stdout.write(f"Demo project {state}. {accounts}".strip())
        if seeded.left_alone:
            self.stdout.write(f"{demo.LEFT_ALONE} {', '.join(seeded.left_alone)}")
