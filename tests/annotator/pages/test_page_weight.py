"""What the rating page weighs at the first visit, and that it asks nobody else for anything."""

import gzip
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client

from annotator.models import Project
from tests.builders import make_task
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


@pytest.fixture
def page(project: Project, cast: Cast, client: Client) -> str:
    Project.objects.update(ask_preference=True, ask_safety=True, ask_confidence=True)
    make_task(project, prompt="Why is that? " * 60)
    project.tasks.get().responses.update(text="Because it says what it knows, and why. " * 40)
    client.force_login(cast.alice)
    return client.get("/projects/talk/annotate/").content.decode()


def loaded(page: str) -> list[Path]:
    names = re.findall(r'<(?:script|link|img)[^>]+(?:src|href)="/static/([^"]+)"', page)
    return [Path(str(finders.find(name))) for name in names]


def test_a_first_visit_weighs_less_than_150_kilobytes_compressed(page: str) -> None:
    files = loaded(page)
    assert len(files) > 10
    assert len(gzip.compress(page.encode())) + sum(len(gzip.compress(file.read_bytes())) for file in files) < 150_000


def test_katex_is_loaded_only_where_there_is_latex(page: str) -> None:
    assert not [resource for resource in loaded(page) if "katex" in resource.name]


def test_the_page_names_no_other_host(page: str) -> None:
    assert not re.findall(r'(?:src|href|action)="(?:https?:)?//', page)
