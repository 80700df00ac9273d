"""The human half: import, assignment, annotation, consensus, agreement and export."""

from annotator.celery import app as celery_app
