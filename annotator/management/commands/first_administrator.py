"""first_administrator: makes an account that may do everything, where there is none."""

from typing import Any

from annotator.management import first_administrator
from annotator.management.projects import RefusableCommand


class Command(RefusableCommand):
    help = (
        "Creates the superuser `admin` with a random password, which is printed only once, unless there is a superuser."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        account = first_administrator.make_first()
        if account:
            self.stdout.write(f"log in as  {account.username} with the password {account.password}")
            self.stdout.write("It is shown only once. You choose another one at the first login.")
