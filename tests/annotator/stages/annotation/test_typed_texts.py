"""What a manager has written is the same for every reader; only the texts that come with the product are translated."""

from collections.abc import Iterator

import pytest
from django.test import Client
from django.utils import translation

from annotator.managing import rubrics
from annotator.managing.guidelines import template_for
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.models import Project, Rubric
from annotator.pages.rating.rating_form import RatingForm
from tests.builders import make_task
from tests.conftest import Cast

pytestmark = pytest.mark.django_db
# Words for which the catalogue has a translation, as a part of a shipped rubric or of the pages.
NAMES = ("Helpfulness", "Correctness")
LEVELS = ("Wrong", "Right")
TYPED = RubricText(
    key="typed",
    name="Verbosity",
    attributes=(
        AttributeText("first", NAMES[0], LEVELS, description="Safety", checks=(("box", "Coherence"),)),
        AttributeText("second", NAMES[1], LEVELS, description="Coherence", scope="segment"),
    ),
)
PAGES = [
    "/projects/talk/annotate/",
    "/projects/talk/guidelines/",
    "/projects/talk/agreement/",
    "/projects/talk/review/submissions/",
    "/projects/talk/annotators/",
    "/projects/talk/rubric/",
    "/mine/",
]


@pytest.fixture(autouse=True)
def in_german() -> Iterator[None]:
    with translation.override("de"):
        yield


@pytest.fixture
def typed(project: Project, cast: Cast) -> Project:
    project.domains = ["Safety", "Coherence"]
    project.save()
    rubrics.publish(project, TYPED)
    return Project.objects.get()


def german(word: str) -> str:
    said = translation.gettext(word)
    assert said != word
    return said


def test_the_words_would_be_translated_elsewhere() -> None:
    assert [german(word) for word in (*NAMES, *LEVELS, "Safety", "Coherence")]


@pytest.mark.parametrize("page", PAGES)
def test_no_page_translates_them(typed: Project, cast: Cast, client: Client, page: str) -> None:
    make_task(typed, "t", responses=1)
    client.force_login(cast.alice if "annotate" in page or "mine" in page else cast.carol)
    client.cookies["django_language"] = "de"
    shown = client.get(page, follow=True).content.decode()
    assert 'lang="de"' in shown
    for word in (*NAMES, *LEVELS):
        assert german(word) not in shown, page


def test_the_form_and_its_errors_do_not(typed: Project) -> None:
    task = make_task(typed, "t", responses=1)
    form = RatingForm(typed, list(task.responses.all()), {})
    shown = str(form)
    assert all(word in shown for word in (NAMES[0], *LEVELS, *typed.domains))
    assert not any(german(word) in shown for word in (NAMES[0], *LEVELS, *typed.domains))


def test_the_guidelines_template_does_not(typed: Project) -> None:
    text = template_for(typed)
    assert all(word in text for word in (*NAMES, *LEVELS))


def test_shipped_rubrics_are_translated() -> None:
    shipped = Rubric.objects.get(key="helpsteer2", project=None)
    attribute = shipped.attributes.get(key="helpfulness")
    assert attribute.shown_name == german("Helpfulness")
    assert attribute.shown_levels == [german(text) for text in attribute.levels]


def test_what_somebody_offers_to_all_projects_is_not_shipped(cast: Cast) -> None:
    offered = Rubric(key="mine", name="Safety", made_by=cast.carol)
    assert str(offered) == "Safety"
