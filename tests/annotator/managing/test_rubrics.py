"""Rubrics of one's own, and what becomes of ratings when a rubric changes."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from annotator.infrastructure.refusals import Refusal
from annotator.managing import project_settings, rubrics
from annotator.managing.archive import archive
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.managing.rubrics import InvalidRubric
from annotator.managing.settings_check import InvalidProject, never_met, scales_of
from annotator.models import Annotation, Attribute, AuditEntry, Label, Project, RecountWanted, Rubric, Task
from annotator.stages import annotation
from annotator.stages.annotation import IncompleteRating, ResponseRating, Submission
from tests.builders import NOW, claimed, make_project, make_task, rate
from tests.conftest import Cast

pytestmark = pytest.mark.django_db


def attribute(key: str, levels: int = 5, **fields: Any) -> AttributeText:
    return AttributeText(key, key.capitalize(), tuple(f"level {number}" for number in range(levels)), **fields)


def rubric(*attributes: AttributeText, **fields: Any) -> RubricText:
    return RubricText(**{"key": "mine", "name": "Mine", "attributes": attributes} | fields)


THREE = rubric(attribute("tone", 3), attribute("depth", 5), attribute("trust", 7))


def errors(text: RubricText, project: Project | None = None) -> dict[str, list[str]]:
    try:
        rubrics.check(text, project)
    except InvalidRubric as invalid:
        return dict(invalid.errors)
    return {}


def rate_all(project: Project, cast: Cast, *scores: int) -> Task:
    """A task of one response that annotators rate one after another, every attribute alike."""
    task = make_task(project, responses=1)
    for user, score in zip(cast.annotators, scores, strict=False):
        rate_by(project, user, score)
    return task


def rate_by(project: Project, user: Any, score: int) -> None:
    held = claimed(project, user)
    response = held.task.responses.get()
    given = dict.fromkeys(project.attribute_keys(), score)
    annotation.submit(held.pk, Submission({response.pk: ResponseRating(given)}), now=NOW)


def test_a_rubric_of_3_5_and_7_levels_can_be_rated_by() -> None:
    assert errors(THREE) == {}


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (rubric(), "attributes"),
        (rubric(attribute("a", 1)), "attributes.0.levels"),
        (rubric(attribute("a", 8)), "attributes.0.levels"),
        (rubric(attribute("a"), attribute("a")), "attributes.1.key"),
        (rubric(attribute("Tone")), "attributes.0.key"),
        (rubric(attribute("response")), "attributes.0.key"),
        (rubric(attribute("a", scope="word")), "attributes.0.scope"),
        (rubric(attribute("b"), attribute("a", scope="word")), "attributes.1.scope"),
        (rubric(attribute("a", weight=float("nan"))), "attributes.0.weight"),
        (rubric(attribute("a", weight=0.0)), "attributes"),
        (rubric(replace(attribute("a"), name=" ")), "attributes.0.name"),
        (rubric(replace(attribute("a"), levels=("x\0", "y"))), "attributes.0.levels"),
        (rubric(replace(attribute("a"), checks=(("box", "x"), ("box", "y")))), "attributes.0.checks"),
        (rubric(attribute("a"), key="No spaces"), "key"),
        (rubric(*(attribute(f"a{number}") for number in range(21))), "attributes"),
    ],
)
def test_what_nobody_can_rate_by_is_refused_by_place(text: RubricText, place: str) -> None:
    assert list(errors(text)) == [place]


def test_the_database_refuses_a_scale_of_one_or_eight_levels() -> None:
    made = Rubric.objects.create(key="tone", name="Tone")
    for levels in (["one"], ["x"] * 8, {"a": 1}):
        with pytest.raises(IntegrityError, match="attributes_have_2_to_7_levels"), transaction.atomic():
            Attribute.objects.create(rubric=made, key="a", name="a", levels=levels)


def test_a_project_is_made_with_a_rubric_of_its_own(cast: Cast) -> None:
    made = project_settings.create({"slug": "own", "name": "Own", "rubric": THREE}, by=cast.carol)
    assert RubricText.of(made.rubric) == THREE
    assert (made.rubric.project, made.rubric.version, made.spread_attribute) == (made, 1, "tone")
    assert (made.escalate_above, made.drop_above) == (1, 1)
    assert not Rubric.objects.offered().filter(key__startswith="mine").exists()


def test_a_rubric_belongs_to_no_other_project(cast: Cast, project: Project) -> None:
    own = project_settings.create({"slug": "own", "name": "Own", "rubric": THREE})
    with pytest.raises(InvalidProject, match="another project"):
        project_settings.change(project, {"rubric": own.rubric})


def test_a_spread_beyond_the_scale_is_refused() -> None:
    with pytest.raises(InvalidProject, match="Tone has 3 levels"):
        project_settings.create({"slug": "own", "name": "Own", "rubric": THREE, "escalate_above": 3})


def test_an_edit_is_the_next_version_and_annotations_keep_theirs(project: Project, cast: Cast) -> None:
    rate_all(project, cast, 3)
    before = RubricText.of(project.rubric)
    after = replace(before, attributes=(*before.attributes, attribute("tone", 3)))
    published = rubrics.publish(project, after, by=cast.carol)
    assert (published.version, published.previous, published.project) == (
        2,
        Rubric.objects.offered().get(key="helpsteer2"),
        project,
    )
    assert project.rubric == published
    rate_by(project, cast.bob, 2)
    assert list(Annotation.objects.order_by("pk").values_list("rubric_version", flat=True)) == [1, 2]
    assert RubricText.of(Rubric.objects.offered().get(key="helpsteer2")) == before
    assert [one.version for one in rubrics.versions(project)] == [2, 1]
    assert AuditEntry.objects.filter(action="rubric.published").count() == 1


def test_publishing_the_same_again_changes_nothing(project: Project) -> None:
    same = RubricText.of(project.rubric)
    assert rubrics.publish(project, same) == rubrics.publish(project, same) == project.rubric
    assert project.rubric.version == 1


def test_labels_hold_what_the_versions_share(project: Project, cast: Cast) -> None:
    task = rate_all(project, cast, 3, 3)
    text = RubricText.of(project.rubric)
    rubrics.publish(project, replace(text, attributes=(*text.attributes[:2], attribute("tone", 3))))
    rate_by(project, cast.erin, 2)
    task.refresh_from_db()
    assert task.state == Task.State.COMPLETE
    assert Label.objects.get(response__task=task).scores == {"helpfulness": 3, "correctness": 3}


def test_a_key_keeps_its_scale_once_it_is_rated_by(project: Project, cast: Cast) -> None:
    seven = rubric(attribute("helpfulness", 7))
    assert errors(seven, project) == {}
    rate_all(project, cast, 3)
    assert list(errors(seven, project)) == ["attributes.0.levels"]
    # Nor may it come back with another scale after it was away.
    rubrics.publish(project, rubric(attribute("tone", 3)))
    assert list(errors(seven, project)) == ["attributes.0.levels"]


def test_the_deciding_attribute_follows_the_rubric(project: Project, cast: Cast) -> None:
    rate_all(project, cast, 3)
    rubrics.publish(project, rubric(attribute("tone", 2), attribute("depth")))
    assert (project.spread_attribute, project.escalate_above, project.drop_above) == ("tone", 0, 1)
    assert RecountWanted.objects.filter(project=project).exists()


@pytest.mark.parametrize(("levels", "limits"), [(2, (0, 1)), (3, (1, 1)), (4, (1, 1)), (5, (2, 2)), (7, (3, 3))])
def test_the_limits_of_the_spread_follow_the_scale(project: Project, levels: int, limits: tuple[int, int]) -> None:
    """A limit as wide as the scale would never ask for more annotators."""
    rubrics.publish(project, rubric(attribute("tone", levels)))
    assert (project.escalate_above, project.drop_above) == limits
    assert never_met(project, scales_of(project.rubric)) == []


def test_what_a_change_means_is_said_in_numbers(project: Project, cast: Cast) -> None:
    rate_all(project, cast, 3, 3, 3)
    rate_all(project, cast, 3)
    text = RubricText.of(project.rubric)
    reworded = replace(text.attributes[0], description="Does it help?")
    change = rubrics.change(project, replace(text, attributes=(reworded, attribute("tone", 3))))
    assert (change.version, change.added, change.reworded) == (2, ("tone",), ("helpfulness",))
    assert change.removed == ("correctness", "coherence", "complexity", "verbosity")
    assert (change.annotations, change.complete, change.begun) == (4, 1, 1)
    assert change.scored == dict.fromkeys(change.removed, 4)
    assert project.rubric.version == 1


def test_a_change_of_order_alone_is_a_change(project: Project) -> None:
    text = RubricText.of(project.rubric)
    first, second, *others = text.attributes
    change = rubrics.change(project, replace(text, attributes=(second, first, *others)))
    assert change
    assert change.reordered == ("correctness", "helpfulness", "coherence", "complexity", "verbosity")
    assert (change.added, change.removed, change.reworded, change.renamed) == ((), (), (), False)


def test_what_is_new_or_gone_moves_nothing_that_stays(project: Project) -> None:
    text = RubricText.of(project.rubric)
    first, second, _gone, *others = text.attributes
    change = rubrics.change(project, replace(text, attributes=(first, attribute("tone", 3), second, *others)))
    assert (change.added, change.removed, change.reordered) == (("tone",), ("coherence",), ())


def test_another_name_is_a_change_and_the_same_text_is_none(project: Project) -> None:
    text = RubricText.of(project.rubric)
    assert not rubrics.change(project, text)
    renamed = rubrics.change(project, replace(text, name="Ours"))
    assert renamed
    assert renamed.renamed


def test_a_rating_off_the_scale_of_its_attribute_is_refused(cast: Cast) -> None:
    project = project_settings.create({"slug": "own", "name": "Own", "rubric": THREE, "base_annotators": 1})
    project.memberships.create(user=cast.alice)
    make_task(project, responses=1)
    held = claimed(project, cast.alice)
    response = held.task.responses.get().pk
    with pytest.raises(IncompleteRating, match="tone is 3: it must be a whole number from 0 to 2"):
        annotation.submit(held.pk, Submission({response: ResponseRating({"tone": 3, "depth": 0, "trust": 6})}), now=NOW)
    annotation.submit(held.pk, Submission({response: ResponseRating({"tone": 2, "depth": 0, "trust": 6})}), now=NOW)
    assert Label.objects.get().scores == {"tone": 2, "depth": 0, "trust": 6}


def test_an_archived_project_keeps_its_rubric(project: Project) -> None:
    archive(project, now=NOW)
    with pytest.raises(Refusal, match="archived"):
        rubrics.publish(project, THREE)


def test_a_project_goes_with_its_own_rubrics(project: Project, cast: Cast) -> None:
    rubrics.publish(project, THREE)
    rubrics.publish(project, replace(THREE, name="Yours"))
    project.refresh_from_db()
    project.delete()
    assert not Rubric.objects.exclude(project=None).exists()


def test_offered_rubrics_have_keys_of_their_own(cast: Cast, project: Project) -> None:
    rubrics.offer(THREE, by=cast.carol)
    with pytest.raises(InvalidRubric, match="Another rubric has this key"):
        rubrics.offer(THREE, by=cast.carol)
    assert not Rubric.objects.offered_to(cast.dave).filter(key="mine").exists()
    assert Rubric.objects.offered_to(cast.carol).filter(key="mine").exists()


@pytest.mark.django_db(transaction=True)
def test_two_who_publish_at_once_make_two_versions() -> None:
    project = make_project()

    def publish(name: str) -> int:
        try:
            return rubrics.publish(Project.objects.get(pk=project.pk), replace(THREE, name=name)).version
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as people:
        assert sorted(people.map(publish, ("Mine", "Yours"))) == [2, 3]


def test_weights_are_the_trainer_s_unless_somebody_has_chosen_one() -> None:
    project = project_settings.create({"slug": "own", "name": "Own", "rubric": THREE})
    assert rubrics.weights_of(project.attributes_for()) == {}
    weighted = rubric(attribute("tone", 3, weight=2.0), attribute("depth"))
    other = project_settings.create({"slug": "other", "name": "Other", "rubric": weighted})
    assert rubrics.weights_of(other.attributes_for()) == {"tone": 2.0, "depth": 0.0}


def test_the_rating_helper_still_rates_by_helpsteer2(project: Project, cast: Cast) -> None:
    make_task(project)
    rate(project, cast.alice, 4)
    assert Annotation.objects.get().rubric_version == 1
