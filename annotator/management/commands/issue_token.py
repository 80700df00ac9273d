"""issue_token USER: prints a new token for REST."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from annotator.accounts import tokens
from annotator.infrastructure.db.storable_text import fault_in
from annotator.management.projects import RefusableCommand
from annotator.models import User, every_scope


class Command(RefusableCommand):
    help = "Prints a new REST token. It is stored hashed and cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("user", help="the account's name")
        parser.add_argument("--name", default="", help="what the token is for")
        parser.add_argument(
            "--scope",
            action="append",
            choices=every_scope(),
            help="what it may do; can be repeated; everything by default",
        )
        parser.add_argument("--days", type=int, help="days until it expires; TOKEN_DAYS by default")

    def handle(self, *args: Any, **options: Any) -> None:
        # A NUL or half a surrogate pair cannot be sent to PostgreSQL: the query would end in a traceback.
        user = None if fault_in(options["user"]) else User.objects.filter(username=options["user"]).first()
        if user is None:
            raise CommandError(f"There is no account {options['user']!r}.")
        _, token = tokens.issue(user, name=options["name"], scopes=options["scope"], days=options["days"])
        self.stdout.write(token)
