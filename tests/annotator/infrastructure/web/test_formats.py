"""Dates and times have one form at every place, which nobody can misread, and times name their zone."""

import re
from datetime import UTC, date, datetime

import pytest
from django.template import Context, Template
from django.test import Client
from django.urls import URLResolver, get_resolver, reverse
from django.utils.formats import date_format, get_format
from django.utils.translation import override

from annotator.models import Project
from tests.builders import make_task, rate
from tests.conftest import Cast
from tests.servers import ROOT

TEMPLATES = ROOT / "templates"
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
NAMED = {"DATE_FORMAT", "SHORT_DATE_FORMAT", "TIME_FORMAT", "DATETIME_FORMAT", "SHORT_DATETIME_FORMAT"}
FOR_MACHINES_AND_CHARTS = {"c", "U.u", "j"}
OLD = re.compile(
    r"\b\d{1,2}/\d{1,2}/\d{4}|\b[ap]\.m\.|\bnoon\b|\bmidnight\b"
    r"|\b(Jan|Feb|Aug|Sept|Oct|Nov|Dec)\. \d|\b(March|April|May|June|July) \d{1,2}, \d{4}|>\d{4}-\d\d-\d\d \d\d:"
)
"""Forms that Django writes by itself in English, and one that templates had."""


@pytest.mark.parametrize(
    ("language", "day", "moment"),
    [("en", "2 Jan 2026", "2 Jan 2026, 12:00 UTC"), ("de", "2. Jan. 2026", "2. Jan. 2026, 12:00 UTC")],
)
def test_a_language_has_one_form(language: str, day: str, moment: str) -> None:
    with override(language):
        assert {date_format(date(2026, 1, 2), name) for name in ("DATE_FORMAT", "SHORT_DATE_FORMAT")} == {day}
        assert {date_format(NOON, name) for name in ("DATETIME_FORMAT", "SHORT_DATETIME_FORMAT")} == {moment}
        assert Template("{{ noon }} {{ noon|time }}").render(Context({"noon": NOON})) == f"{moment} 12:00 UTC"


def test_what_people_type_is_read_as_before() -> None:
    assert "%Y-%m-%d" in get_format("DATE_INPUT_FORMATS")


def test_no_template_has_a_form_of_its_own() -> None:
    used = re.compile(r"\|(?:date|time):[\"']([^\"']*)[\"']")
    odd = {
        f"{path.relative_to(TEMPLATES)}: {form}"
        for path in TEMPLATES.rglob("*.html")
        for form in used.findall(path.read_text())
        if form not in NAMED | FOR_MACHINES_AND_CHARTS
    }
    assert odd == set()


def pages_of_a_project(resolver: URLResolver) -> set[str]:
    found: set[str] = set()
    for entry in resolver.url_patterns:
        if isinstance(entry, URLResolver):
            found |= set() if entry.namespace else pages_of_a_project(entry)
        elif entry.name and list(entry.pattern.converters) == ["slug"]:
            found.add(entry.name)
    return found


def test_no_page_shows_a_form_of_before(project: Project, cast: Cast, client: Client) -> None:
    client.force_login(cast.carol)
    make_task(project)
    for user in cast.annotators:
        rate(project, user)
    shown = {}
    for name in sorted(pages_of_a_project(get_resolver())):
        answer = client.get(reverse(name, args=[project.slug]))
        if answer.status_code == 200 and answer.headers["Content-Type"].startswith("text/html"):
            shown[name] = OLD.findall(answer.content.decode())
    assert len(shown) > 15
    assert {name: forms for name, forms in shown.items() if forms} == {}
