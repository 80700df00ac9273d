"""Every page and call that somebody of a world can reach stands, in English and in German."""

from collections.abc import Iterator

import pytest
from django.template import Context
from django.template.base import FilterExpression, Variable, VariableDoesNotExist
from django.test import Client

from annotator.models import User
from tests.worlds import WORLDS, World, by_rubric, calls
from tests.worlds.building import Made, make
from tests.worlds.crawling import Crawl

pytestmark = [
    pytest.mark.django_db,
    pytest.mark.slow,
    # torch says so where a model has no scores of whole responses.
    pytest.mark.filterwarnings("ignore:Initializing zero-element tensors"),
]
TAKE_NONE = {
    "default",
    "default_if_none",
    "yesno",
    "number",
    "percent",
    "signed",
    "length",
    "json_script",
    "linebreaks",
}
"""Filters that say what becomes of None."""


@pytest.fixture
def strict_templates(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Notes unknown variables, and None that reaches a filter that is not made for it."""
    noted: list[str] = []
    resolve = FilterExpression.resolve

    def strictly(self: FilterExpression, context: Context, ignore_failures: bool = False) -> object:
        first = self.filters[0][0].__name__ if self.filters else ""
        if not ignore_failures and isinstance(self.var, Variable):
            try:
                if self.var.resolve(context) is None and first and first not in TAKE_NONE:
                    noted.append(f"{self.token} is None")
            except VariableDoesNotExist:
                if first != "default":
                    noted.append(f"{self.token} is unknown")
        return resolve(self, context, ignore_failures)

    monkeypatch.setattr(FilterExpression, "resolve", strictly)
    return noted


@pytest.mark.parametrize("world", by_rubric(WORLDS))
def test_every_page_and_call_of_a_world_stands(world: World, strict_templates: list[str]) -> None:
    made = make(world)
    assert [*_faults(made), *dict.fromkeys(strict_templates)] == []


def _faults(made: Made) -> Iterator[str]:
    for reader, start, language in _readers(made):
        client = Client()
        client.force_login(reader)
        yield from (f"{reader.username} {fault}" for fault in Crawl(client, start, language=language).go())
        if _is_nth(made.world, 2 if reader == made.manager else 4):
            yield from (f"{reader.username} {fault}" for fault in calls.faults(client, made.project.slug))


def _readers(made: Made) -> Iterator[tuple[User, str, str]]:
    """Yields who looks, where they begin, and in which language.

    What a reviewer sees is a part of the manager's pages: one in every fourth world is enough.
    """
    workspace = f"/projects/{made.project.slug}/"
    first, second = ("en", "de") if WORLDS.index(made.world) % 2 else ("de", "en")
    yield made.manager, workspace, first
    yield made.annotators[0], "/", second
    if _is_nth(made.world, 4):
        yield made.reviewer, workspace, second


def _is_nth(world: World, number: int) -> bool:
    return WORLDS.index(world) % number == 0
