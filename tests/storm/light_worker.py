"""What the light worker does beside the annotators, over and over, without Redis: a process that can be killed."""

import os
import time

import django
from django.db import OperationalError, connection

PAUSE_SECONDS = 0.5


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
    django.setup()
    from annotator import tasks

    while True:
        try:
            tasks.expire_leases()
            tasks.refresh_agreement()
            tasks.recount_changed()
        except OperationalError as down:
            print(down, flush=True)
        connection.close()
        time.sleep(PAUSE_SECONDS)


if __name__ == "__main__":
    main()
