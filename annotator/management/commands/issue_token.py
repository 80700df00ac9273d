"""issue_token USER: prints a new token for REST."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator import tokens
from annotator.models import User
from annotator.storable import fault_in


class Command(BaseCommand):
    help = "Prints a new REST token; it is stored hashed and cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="the account's name")

    def handle(self, *args: Any, **options: Any) -> None:
        user = None if fault_in(options["user"]) else User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no account {options['user']!r}.")
        _, token = tokens.issue(user)
        self.stdout.write(token)
