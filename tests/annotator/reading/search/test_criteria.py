"""Which tasks a search selects: by words, facets and what became of them."""

from typing import Any

import pytest
from django.db import connection

from annotator.infrastructure.db.statements import Statement
from annotator.models import Import, Project, Response, Task
from annotator.reading.search import criteria
from annotator.reading.search.criteria import Criteria, NothingToFind, TooBroad, matching, searching
from annotator.reading.search.word_index import take_words
from annotator.stages import annotation
from annotator.stages.review import adjudicate
from tests.builders import (
    ATTRIBUTES,
    NOW,
    claimed,
    imported,
    label_row,
    make_gold,
    make_project,
    make_task,
    rate,
    task_row,
)
from tests.conftest import Cast


@pytest.fixture(autouse=True, params=[20_000, 0])
def _few(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both ways of looking tasks up: those that the index names, and from the newest on."""
    monkeypatch.setattr(criteria, "FEW", request.param)


def found(project: Project, cast: Cast, **chosen: Any) -> list[str]:
    take_words()
    with searching():
        tasks = matching(project, Criteria(**chosen), reader=cast.carol).tasks
        return list(tasks.order_by("pk").values_list("external_id", flat=True))


@pytest.fixture
def tasks(project: Project) -> None:
    imported(project, task_row("t-1", prompt="Where is the city of Oslo?"))
    imported(project, task_row("t-2", prompt="Is Oslo the capital, or a city?", lang="de"))


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("oslo", ["t-1", "t-2"]),
        ("OSLO capital", ["t-2"]),
        ('"city of Oslo"', ["t-1"]),
        ("oslo -capital", ["t-1"]),
        ("capital or where", ["t-1", "t-2"]),
        ("osl", []),
        ("t-2", ["t-2"]),
        ("'; DROP TABLE annotator_task; -- oslo", []),
        ("oslo & | ! ( ) :* <->", ["t-1", "t-2"]),
        ('"oslo', ["t-1", "t-2"]),
        ("оsło 奥斯陆", []),
    ],
)
def test_words_phrases_and_words_that_must_be_missing(project: Project, cast: Cast, text: str, ids: list[str]) -> None:
    assert found(project, cast, text=text) == ids


@pytest.mark.parametrize("text", ["-oslo", "!!!", "&|()", "   ", "-", '""', "\\", "%", "-a -b"])
def test_a_text_without_a_word_to_find_is_refused(project: Project, cast: Cast, text: str) -> None:
    with pytest.raises(NothingToFind):
        matching(project, Criteria(text=text), reader=cast.carol)


@pytest.mark.usefixtures("tasks")
def test_another_project_stays_out(project: Project, cast: Cast) -> None:
    other = make_project("other")
    make_task(other, "t-3", prompt="Oslo again")
    assert found(project, cast, text="oslo") == ["t-1", "t-2"]
    assert found(other, cast, text="oslo") == ["t-3"]


@pytest.mark.usefixtures("tasks")
def test_language_model_and_import_narrow_the_search(project: Project, cast: Cast) -> None:
    Response.objects.filter(task__external_id="t-1", position=0).update(model="GPT X")
    assert found(project, cast, language="de") == ["t-2"]
    assert found(project, cast, model="gpt x") == ["t-1"]
    assert found(project, cast, source=Import.objects.latest("pk").pk) == ["t-2"]
    assert found(project, cast, text="oslo", language="de", model="model-1") == ["t-2"]
    assert found(project, cast, model="gpt x", language="de") == []


def test_gold_tasks_and_one_that_the_reader_rates_stay_unseen(project: Project, cast: Cast) -> None:
    make_gold(project, "gold-1")
    make_task(project, "t-1", prompt="Oslo")
    assert found(project, cast) == ["t-1"]
    claimed(project, cast.carol)
    assert found(project, cast) == found(project, cast, text="oslo") == []


def rated(project: Project, cast: Cast, name: str, *levels: int) -> Task:
    task = make_task(project, name)
    for user, level in zip(cast.annotators, levels, strict=False):
        rate(project, user, level)
    task.refresh_from_db()
    return task


def test_labels_and_spreads(project: Project, cast: Cast) -> None:
    Project.objects.update(max_annotators=3)
    project.refresh_from_db()
    rated(project, cast, "agreed", 3, 3, 2)
    apart = rated(project, cast, "apart", 0, 4, 4)
    imported(project, label_row("A prompt", "A response"))
    Task.objects.filter(from_import=Import.objects.latest("pk")).update(external_id="imported")
    make_task(project, "open")
    assert found(project, cast, label="labelled") == ["agreed", "imported"]
    assert found(project, cast, label="dropped") == ["apart"]
    assert found(project, cast, label="none") == ["open"]
    assert found(project, cast, spread=1) == ["agreed", "apart"]
    assert found(project, cast, spread=4, state="complete") == ["apart"]
    scores = {response.pk: dict.fromkeys(ATTRIBUTES, 2) for response in apart.responses.all()}
    adjudicate(apart.pk, scores=scores, reason="slip", by=cast.carol, now=NOW)
    assert found(project, cast, label="labelled") == ["agreed", "apart", "imported"]
    assert found(project, cast, label="dropped") == []


def test_a_quarantined_task_has_no_label(project: Project, cast: Cast) -> None:
    task = rated(project, cast, "t-1", 3, 3, 3)
    annotation.report(task.assignments.earliest("pk").pk, category="bias", now=NOW)
    assert found(project, cast, label="labelled") == found(project, cast, label="none") == []
    assert found(project, cast, state="quarantined") == ["t-1"]


def test_a_search_that_takes_too_long_is_refused(project: Project, cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(criteria, "PATIENCE_SECONDS", 0.05)
    with pytest.raises(TooBroad), searching():
        Statement("SELECT pg_sleep(2)").row()
    assert Project.objects.get() == project


def test_the_limit_of_a_search_does_not_outlive_it(project: Project, cast: Cast) -> None:
    def limit() -> str:
        with connection.cursor() as cursor:
            cursor.execute("SHOW statement_timeout")
            return str(cursor.fetchone()[0])

    before = limit()
    with searching():
        assert limit() == "4s"
    assert limit() == before
