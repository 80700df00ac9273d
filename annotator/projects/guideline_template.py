"""A text to start guidelines from: what good guidelines say, with the scales of the project's rubric filled in."""

from collections.abc import Iterator

from django.utils.translation import gettext as _

from annotator.models import Attribute, Project


def template_for(project: Project) -> str:
    """Returns markdown with a part for each question that annotators ask, in the reader's language."""
    return "\n".join(_lines(project)) + "\n"


def _lines(project: Project) -> Iterator[str]:
    yield from _heading(1, _("Guidelines for %(project)s") % {"project": " ".join(project.name.split())})
    yield _("*Replace the sentences in italics with your own, and delete what you do not need.*")
    yield from _heading(2, _("What you do"))
    yield _(
        "You read a conversation and the responses to its last message, and rate each response on the scales below. "
        "Rate what is written, not what you would have liked to read."
    )
    yield ""
    yield _("*Say who asks these questions, and what the ratings are for.*")
    yield from _heading(2, _("Before you rate"))
    yield "- " + _("Read the whole conversation, then each response to its end.")
    yield "- " + _("Check facts that you are not sure of. Spend up to ten minutes on it.")
    yield "- " + _("Skip a task that you cannot judge, and say why.")
    yield "- " + _("Report content that is unsafe or contains personal information.")
    yield from _heading(2, _("The scales"))
    for attribute in project.every_attribute():
        yield from _scale(attribute)
    yield from _heading(2, _("Difficult cases"))
    yield _("*Give two or three examples that people rated differently, with the rating that you want and the reason.*")
    yield from _heading(2, _("Questions"))
    yield _("*Say whom to ask, and how quickly they answer.*")


def _heading(depth: int, text: str) -> Iterator[str]:
    if depth > 1:
        yield ""
    yield f"{'#' * depth} {text}"
    yield ""


def _scale(attribute: Attribute) -> Iterator[str]:
    yield from _heading(3, attribute.shown_name)
    if attribute.description:
        yield attribute.shown_description
        yield ""
    for number, text in enumerate(attribute.shown_levels, 1):
        yield f"{number}. {text}"
    yield ""
    yield _("*Add what distinguishes two neighbouring levels.*")
