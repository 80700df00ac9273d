"""first_administrator: makes an account that may do everything, where there is none."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.launch import first_administrator
from annotator.refusals import Refusal


class Command(BaseCommand):
    help = (
        "Creates the superuser `admin` with a random password, which is printed only once, unless there is a superuser."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            account = first_administrator.make_first()
        except Refusal as refused:
            raise CommandError(str(refused)) from refused
        if account:
            self.stdout.write(f"log in as  {account.username} with the password {account.password}")
            self.stdout.write("It is shown only once. You choose another one at the first login.")
