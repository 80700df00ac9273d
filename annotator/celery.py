"""The Celery application. Queues: `light` for short work, `train` for retraining, `score` for scoring."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")

app = Celery("rewardloop", task_cls="annotator.audit:WorkerTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
