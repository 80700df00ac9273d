"""The Celery application. Queues: `light` for short work, `train` for retraining, `score` for scoring."""

import gc
import os
from typing import Any

from celery import Celery
from celery.app.amqp import AMQP
from celery.signals import worker_ready
from kombu import pools

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "annotator.settings")
PATIENCE_SECONDS = 0.7
"""The longest wait for each step of handing a message to Redis, because a page waits for it too."""


class ImpatientSenders(AMQP):
    """Makes senders of messages wait only briefly for Redis; the workers' own connections wait longer (settings.py)."""

    _producer_pool: Any

    @property
    def producer_pool(self) -> Any:
        if self._producer_pool is None:
            # No retries here, as a page would wait for them: messages.send tries once more, and beat finds lost work.
            options = {"max_retries": 0, "connect_retries_timeout": PATIENCE_SECONDS}
            options |= dict.fromkeys(("socket_connect_timeout", "socket_timeout"), PATIENCE_SECONDS)
            self._producer_pool = pools.producers[self.app.connection_for_write(transport_options=options)]
        return self._producer_pool


app = Celery("rewardloop", task_cls="annotator.infrastructure.audit:WorkerTask", amqp=ImpatientSenders)
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_ready.connect
def keep_modules_from_the_collector(**_details: Any) -> None:
    """Has the collector look only at what tasks make: imports make millions of objects beside half a million others."""
    gc.collect()
    gc.freeze()
