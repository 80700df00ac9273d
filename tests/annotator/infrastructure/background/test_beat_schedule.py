"""The entries of beat's table."""

import pytest
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from annotator.infrastructure.background.beat_schedule import forget_old_entries


@pytest.mark.django_db
def test_an_entry_of_an_earlier_version_goes_and_the_others_stay() -> None:
    minute = IntervalSchedule.objects.create(every=60, period=IntervalSchedule.SECONDS)
    kept = [("find-pii", "annotator.tasks.find_pii"), ("celery.backend_cleanup", "celery.backend_cleanup")]
    for name, task in [("order-queues", "rewards.tasks.order_queues"), *kept]:
        PeriodicTask.objects.create(name=name, task=task, interval=minute)
    assert forget_old_entries() == 1
    assert set(PeriodicTask.objects.values_list("name", "task")) == set(kept)
