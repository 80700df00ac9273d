"""What leaves after the rubric has changed: everything that people gave, under the version that they were asked by."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest
from django.core.management import call_command
from rest_framework.test import APIClient

from annotator.analysis.agreement.reports import report
from annotator.infrastructure.jobs import Pulse
from annotator.managing import rubrics
from annotator.managing.preset_rubrics import RubricText
from annotator.models import Annotation, Label, Project, Rating, Release
from annotator.outputs.exporting.export_rows import NoRubricVersion
from annotator.outputs.exporting.filters import Filters
from annotator.outputs.exporting.layouts import LAYOUTS
from annotator.outputs.releases.folder import write
from annotator.stages.review import adjudicate
from annotator.statistics.pair_counts import Selection
from tests.annotator.managing.test_rubrics import attribute, rate_by
from tests.annotator.outputs.exporting.test_rows import exported, rows
from tests.builders import NOW, imported, label_row, make_task, ratings_row
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
GONE, KEPT, NEW = "verbosity", ("helpfulness", "correctness", "coherence", "complexity"), "tone"
OLD = dict.fromkeys((*KEPT, GONE), 3)
LAYOUTS_OF_SCORES = [name for name, layout in LAYOUTS.items() if layout.of_scores and not layout.of_segments]


@pytest.fixture
def changed(project: Project, cast: Cast) -> Project:
    """A task that all have rated, then a rubric without *verbosity* and with *tone*, and another rated task.

    A response that came with a label is of the first version, one that a reviewer settled since of the second.
    """
    imported(project, label_row("Who?", "She."), label_row("Who?", "He."))
    make_task(project, "old", responses=1)
    for user in cast.annotators:
        rate_by(project, user, 3)
    text = RubricText.of(project.rubric)
    without = tuple(one for one in text.attributes if one.key != GONE)
    rubrics.publish(project, replace(text, attributes=(*without, attribute(NEW, 3))), by=cast.carol)
    new = make_task(project, "new", responses=1)
    for user in cast.annotators:
        rate_by(project, user, 2)
    scores = {new.responses.get().pk: dict.fromkeys((*KEPT, NEW), 1)}
    for rating in Rating.objects.all():
        rating.evidence = [[key, 0, 2, ""] for key in rating.scores]
        rating.save()
    adjudicate(new.pk, scores=scores, reason="ambiguous", by=cast.carol, now=NOW)
    return project


def test_annotations_have_what_was_rated_and_the_version(changed: Project) -> None:
    assert [(row["task"], row["rubric_version"], row["scores"]) for row in rows(changed, "annotations")] == [
        *[("old", 1, OLD)] * 3,
        *[("new", 2, dict.fromkeys((*KEPT, NEW), 2))] * 3,
    ]


def texts_of(value: Any) -> set[str]:
    if isinstance(value, dict):
        return {str(key) for key in value} | set().union(set(), *map(texts_of, value.values()))
    return set().union(set(), *map(texts_of, value)) if isinstance(value, list) else {str(value)}


@pytest.mark.parametrize("layout", LAYOUTS_OF_SCORES)
def test_no_layout_leaves_out_an_attribute_that_was_rated(changed: Project, layout: str) -> None:
    told = texts_of(rows(changed, layout))
    assert all(any(key in text for text in told) for key in (*KEPT, GONE, NEW))


@pytest.mark.parametrize("layout", LAYOUTS_OF_SCORES)
def test_the_versions_are_the_parts_of_a_layout(changed: Project, layout: str) -> None:
    first, second = ([*rows(changed, layout, filters=Filters(rubric_versions=(version,)))] for version in (1, 2))
    everything = rows(changed, layout)
    assert first
    assert second
    assert sorted(map(repr, everything)) == sorted(map(repr, first + second))
    assert not any(NEW in text for text in texts_of(first))
    assert not any(GONE in text for text in texts_of(second))


@pytest.mark.parametrize("layout", LAYOUTS_OF_SCORES)
@pytest.mark.parametrize("versions", [(), (1,), (2,)])
def test_as_many_rows_are_counted_as_are_read(changed: Project, layout: str, versions: tuple[int, ...]) -> None:
    tasks = list(changed.tasks.values_list("pk", flat=True))
    filters = Filters(rubric_versions=versions, among=tasks)
    assert LAYOUTS[layout].count(changed, filters) == len(rows(changed, layout, filters=filters))


def test_labels_name_the_version_whatever_they_come_from(changed: Project) -> None:
    told = [(row["task"], row["source"], row["rubric_version"]) for row in rows(changed, "labels")]
    assert [one[1:] for one in told[:2]] == [("imported", 1)] * 2
    assert told[2:] == [("old", "consensus", 1), ("new", "adjudicated", 2)]


def test_a_label_of_two_versions_counts_as_of_the_newer_one(project: Project, cast: Cast) -> None:
    make_task(project, "mixed", responses=1)
    rate_by(project, cast.alice, 3)
    text = RubricText.of(project.rubric)
    rubrics.publish(project, replace(text, attributes=text.attributes[:2]))
    for user in (cast.bob, cast.erin):
        rate_by(project, user, 3)
    assert Label.objects.get().rubric_version == 2
    assert [row["rubric_version"] for row in rows(project, "annotations")] == [1, 2, 2]


def test_every_door_takes_a_version(changed: Project, cast: Cast, capfdbinary: Any) -> None:
    wanted = exported(changed, "annotations", filters=Filters(rubric_versions=(1,)))
    carol = APIClient()
    carol.force_authenticate(cast.carol)
    query = {"layout": "annotations", "rubric_version": "1"}
    answer = carol.get(f"/api/v1/projects/{changed.slug}/export/", query)
    assert b"".join(answer) == wanted
    carol.force_login(cast.carol)
    page = carol.get(f"/projects/{changed.slug}/data/export/file/", query | {"format": "jsonl"})
    assert b"".join(page) == wanted
    call_command("export_labels", changed.slug, "--layout", "annotations", "--rubric-version", "1")
    assert capfdbinary.readouterr().out == wanted


@pytest.mark.parametrize("layout", ["preference", "annotations"])
def test_a_version_that_is_not_there_or_not_meant_is_refused(project: Project, layout: str) -> None:
    make_task(project)
    with pytest.raises(NoRubricVersion):
        exported(project, layout, filters=Filters(rubric_versions=(1 if layout == "preference" else 7,)))


def test_pairs_of_labels_survive_the_attribute_that_decided(project: Project, cast: Cast) -> None:
    imported(project, label_row("Who?", "She.", helpfulness=4), label_row("Who?", "He.", helpfulness=1))
    before = rows(project, "dpo")
    assert [row["margin"] for row in before] == [3]
    assert not Annotation.objects.exists()
    rubrics.publish(project, replace(RubricText.of(project.rubric), attributes=(attribute(NEW, 3),)))
    assert rows(project, "dpo") == before


def test_agreement_of_what_is_no_longer_asked_stays_reachable(changed: Project, cast: Cast) -> None:
    first_three = report(changed, now=NOW).selections[Selection.FIRST_THREE]
    assert (first_three[GONE].samples, first_three[NEW].samples) == (1, 1)
    carol = APIClient()
    carol.force_login(cast.carol)
    assert "No longer asked, and measured over what was rated before: Verbosity." in (
        carol.get(f"/projects/{changed.slug}/agreement/").content.decode()
    )


def release(project: Project, folder: Path, **particulars: Any) -> tuple[str, dict[str, list[str]]]:
    """The card of a release that is written here, and the columns of its files of labels."""
    made = Release(project=project, number=1, license="unknown", **particulars)
    write(made, folder, Pulse(made), now=NOW)
    files = {path.parent.name: pyarrow.parquet.read_schema(path).names for path in folder.glob("*/*.parquet")}
    return (folder / "README.md").read_text(), files


@pytest.mark.django_db(transaction=True)
def test_a_release_has_the_attributes_that_its_rows_were_asked_for(changed: Project, tmp_path: Path) -> None:
    folders = [tmp_path / name for name in ("all", "first", "second")]
    for folder in folders:
        folder.mkdir()
    everything, columns = release(changed, folders[0])
    assert {GONE, NEW, "rubric_version"} <= set(columns["data"])
    assert {GONE, NEW} <= set(columns["disagreements"])
    assert "Labels by version: version 2: 1, version 1: 3." in everything
    assert "### Verbosity (`verbosity`), version 1" in everything
    first, columns = release(changed, folders[1], rubric_version=1)
    assert NEW not in columns["data"] + columns["disagreements"]
    assert f"(`{NEW}`)" not in first
    assert f"`{NEW}`" not in first
    second, columns = release(changed, folders[2], rubric_version=2)
    assert GONE not in columns["data"] + columns["disagreements"]
    assert f"`{GONE}`" not in second


@pytest.mark.django_db(transaction=True)
def test_a_release_says_what_was_imported(project: Project, tmp_path: Path) -> None:
    imported(project, ratings_row("Who?", "She.", [1, 2, 3]), label_row("Why?", "So."))
    card, _columns = release(project, tmp_path)
    assert "3 annotations were imported; how they were collected is not known here." in card
    assert "1 labels were imported" in card
    assert "given by people" not in card
