"""A statement of a web request ends within its limit; a file's may take longer, and leaves nothing behind."""

import os
import subprocess
import sys

import pytest
from django.conf import LazySettings
from django.db import connection

from annotator.infrastructure.db.statement_timeouts import long_statements
from annotator.launch.run import ROOT

SLEEPS = """
import time
from annotator.wsgi import application
from django.db import OperationalError, connection
began = time.monotonic()
try:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_sleep(20)")
except OperationalError as ended:
    print(ended, time.monotonic() - began < 10)
"""
SHOWS = """
from django.db import connection
{before}
with connection.cursor() as cursor:
    cursor.execute("SELECT current_setting('statement_timeout'), current_setting('lock_timeout')")
    print(*cursor.fetchone())
"""


def ran(program: str, **variables: str) -> str:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "SECRET_KEY": "k" * 50, **variables}
    environment["DJANGO_SETTINGS_MODULE"] = "annotator.settings"
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, cwd=ROOT, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.slow
def test_a_statement_of_the_web_ends_within_its_limit() -> None:
    said = ran(SLEEPS, WEB_STATEMENT_SECONDS="1")
    assert "statement timeout" in said
    assert said.endswith("True")


@pytest.mark.slow
def test_only_the_web_is_limited() -> None:
    web = "from annotator.wsgi import application"
    command = "import django; django.setup()"
    assert ran(SHOWS.format(before=web)) == "30s 10s"
    assert ran(SHOWS.format(before=web), WEB_STATEMENT_SECONDS="0") == "0 0"
    assert ran(SHOWS.format(before=command)) == "0 0"


def timeout() -> str:
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_setting('statement_timeout')")
        return str(cursor.fetchone()[0])


@pytest.mark.django_db
def test_a_file_s_statements_may_take_longer_and_no_others(settings: LazySettings) -> None:
    settings.WEB_FILE_STATEMENT_SECONDS = 77
    with long_statements():
        assert timeout() == "77s"
    assert timeout() == "0"
