"""first_administrator: makes an account that may do everything, where there is none."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from annotator.launch import first_administrator
from annotator.refusals import Refusal


class Command(BaseCommand):
    help = "Makes the superuser `admin` with a random password, printed this once, unless there is a superuser."

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            account = first_administrator.make_first()
        except Refusal as refused:
            raise CommandError(str(refused)) from refused
        if account:
            self.stdout.write(f"log in as  {account.username} with the password {account.password}")
            self.stdout.write("It is shown this once, and the first login asks for another one.")
