"""The WSGI application that the web server serves."""

import os

from django.core.wsgi import get_wsgi_application

from annotator.infrastructure.db.statement_timeouts import limit_this_process

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")

# Before the first connection to the database, whose options carry the limits.
limit_this_process()
application = get_wsgi_application()

from annotator.infrastructure import health  # noqa: E402  its models need Django to be set up

health.report_at_start()
