"""How much waits for the light worker, and how the admin's opening page says so."""

import pytest
from django.test import Client

from annotator.infrastructure.background import backlogs as module
from annotator.infrastructure.background.backlogs import Backlogs, backlogs
from annotator.models import Project, StaleAgreement, StaleWords, Task
from annotator.reading.search.word_index import take_words
from tests.builders import NOW, make_task, make_user, rate
from tests.conftest import Cast


def test_what_waits_is_counted_until_it_is_done(project: Project, cast: Cast) -> None:
    make_task(project)
    make_task(project)
    rate(project, cast.alice)
    waiting = backlogs()
    assert waiting == Backlogs(2, StaleWords.objects.count(), StaleAgreement.objects.count())
    assert waiting.words
    assert waiting.agreement
    take_words()
    Task.objects.update(pii_scanned_at=NOW)
    StaleAgreement.objects.all().delete()
    assert backlogs() == Backlogs(0, 0, 0)
    assert backlogs().in_words() == []


def test_counting_stops_where_there_is_much(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MANY", 1)
    for _ in range(3):
        make_task(project)
    assert backlogs().scans == 2
    assert backlogs().in_words()[0] == "more than 1 tasks are still to be searched for personal information."


def test_the_admins_opening_page_says_what_waits(project: Project, client: Client) -> None:
    make_task(project)
    client.force_login(make_user("root", is_superuser=True, is_staff=True))
    page = client.get("/admin/").content.decode()
    assert "1 task is still to be searched for personal information." in page
    assert "1 new or changed text cannot be found by its words yet." in page
    assert "counted for agreement" not in page
