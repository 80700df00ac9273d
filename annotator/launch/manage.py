"""Django's command line: `manage.py` in a checkout, `rewardloop manage` where the package is installed."""

import os
import sys

from django.core.management import execute_from_command_line
from django.db import OperationalError


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
    try:
        execute_from_command_line(sys.argv)
    except OperationalError as down:
        reason = str(down).strip().splitlines()[0]
        sys.exit(f"The database does not answer ({reason}). Start `make run`, or look at DATABASE_URL.")


if __name__ == "__main__":
    main()
