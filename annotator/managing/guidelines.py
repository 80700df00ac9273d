"""Publishes guidelines. A changed text is a new version, which annotators acknowledge before their next task."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Literal

from django.db import transaction
from django.db.models import Count, IntegerField, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db.storable_text import check_written
from annotator.infrastructure.refusals import Refusal
from annotator.models import Exclusion, Guideline, Membership, Project, Role

LONGEST_GUIDELINES = 200_000
"""Characters. A book of guidelines has about 100,000, and nobody reads more before a first task."""


class EmptyGuidelines(Refusal):
    """There is no text to publish."""

    status = 400
    code = "invalid"

    def __init__(self) -> None:
        super().__init__(_("Guidelines need a text."))
        self.errors = {"text": [str(self)]}


class NewerGuidelines(Refusal):
    """Somebody else has published a version since this text was begun; it would replace theirs unread."""

    code = "newer_guidelines"

    def __init__(self, current: Guideline) -> None:
        super().__init__(
            _("Version %(version)d was published while you were writing. Nothing of either text is lost.")
            % {"version": current.version}
        )
        self.current = current


def publish(project: Project, text: str, *, based_on: int | None = None) -> tuple[Guideline, bool]:
    """Publishes the text as the next version; returns the guideline then in force, and whether it is new.

    `based_on` is the version that the text changes, 0 for none; without it, the text replaces whichever there is.

    Raises:
        EmptyGuidelines, TextTooLong, UnstorableText: there is no such text to store.
        NewerGuidelines: a later version than `based_on` has been published, with another text.
    """
    if not text.strip():
        raise EmptyGuidelines
    check_written(text, "text", longest=LONGEST_GUIDELINES)
    return _publish(project, text, based_on=based_on)


def publish_guidelines(project: Project, text: str) -> Guideline | None:
    """Publishes the text as the next version, unless it is empty or unchanged; returns the guideline then in force."""
    return _publish(project, text)[0] if text.strip() else project.current_guideline()


_TEMPLATE = Path(__file__).parent / "guidelines_template.md"


def template() -> str:
    """Returns a text to begin new guidelines with, in the reader's language where it is translated."""
    translated = _TEMPLATE.with_suffix(f".{get_language()}.md")
    return (translated if translated.is_file() else _TEMPLATE).read_text(encoding="utf-8")


@cache
def blanks() -> list[str]:
    """Returns the lines that the templates, in each language, leave to be written by whoever uses them."""
    texts = (file.read_text(encoding="utf-8") for file in _TEMPLATE.parent.glob(f"{_TEMPLATE.stem}*.md"))
    return [line for text in texts for line in text.splitlines() if line.startswith("*(")]


def without_blanks(text: str) -> str:
    """Returns the guidelines without the lines that a template leaves to be written."""
    unwritten = set(blanks())
    return "\n".join(line for line in text.splitlines() if line.strip() not in unwritten)


@transaction.atomic
def _publish(project: Project, text: str, *, based_on: int | None = None) -> tuple[Guideline, bool]:
    text = with_line_feeds(text)
    # Without this lock, two people who publish at once would both create the same next version.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    current = project.current_guideline()
    if current and with_line_feeds(current.text) == text:
        return current, False
    if current and based_on is not None and current.version != based_on:
        raise NewerGuidelines(current)
    published = Guideline.objects.create(project=project, version=current.version + 1 if current else 1, text=text)
    audit.record(
        "guidelines.published", f"guidelines version {published.version}", project=project, characters=len(text)
    )
    return published, True


def with_line_feeds(text: str) -> str:
    """Returns the text with LF at the end of each line.

    Browsers send CR LF from a field, scripts LF: one text must not become two versions.
    """
    return text.replace("\r\n", "\n").replace("\r", "\n")


def acknowledge(member: Membership, *, version: int) -> None:
    """Records that the member has read this version. A newer one that came meanwhile still has to be read."""
    current = member.project.current_guideline()
    read = min(version, current.version if current else 0)
    # The condition keeps an old page from taking a later acknowledgement back.
    Membership.objects.filter(pk=member.pk, acknowledged_version__lt=read).update(acknowledged_version=read)


def read_before(member: Membership) -> Guideline | None:
    """Returns the version that the member has read last, if there is a newer one; None for a first reading."""
    current = member.project.current_guideline()
    if current is None or current.version <= member.acknowledged_version:
        return None
    return member.project.guidelines.filter(version=member.acknowledged_version).first()


def readers(project: Project) -> QuerySet[Membership]:
    """Returns the annotators who read a new version before their next task: all who are not excluded."""
    excluded = Exclusion.objects.filter(project=project).values("annotator")
    return project.memberships.filter(role=Role.ANNOTATOR).exclude(user__in=excluded)


def with_readers(project: Project) -> QuerySet[Guideline]:
    """Returns the versions, the newest first, each with `read_last`: the annotators who have read none after it."""
    theirs = readers(project).filter(acknowledged_version=OuterRef("version")).order_by().values("project")
    number = Subquery(theirs.annotate(n=Count("pk")).values("n"), output_field=IntegerField())
    return project.guidelines.defer("text").annotate(read_last=Coalesce(number, 0)).order_by("-version")


# What changed between two versions -------------------------------------------------------------------------

CONTEXT = 3
EXACT = 500
"""Up to so many lines, the difference is the smallest that difflib finds."""
MOST_COMPARED = 4_000
"""Lines of both versions together. Comparing more of them could take seconds."""


@dataclass(frozen=True)
class DiffLine:
    """A line of a difference: added, removed, the same in both, or a gap that stands for equal lines."""

    kind: Literal["added", "removed", "same", "gap"]
    text: str = ""
    hidden: int = 0


def difference(before: str, after: str) -> list[DiffLine] | None:
    """Compares two texts line by line, with a few equal lines around each change; None: they are too long for it."""
    old, new = before.splitlines(), after.splitlines()
    if len(old) + len(new) > MOST_COMPARED:
        return None
    # In long texts, lines that come often are no places to begin a match: with them some texts take minutes.
    is_long = max(len(old), len(new)) > EXACT
    lines: list[DiffLine] = []
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=is_long).get_opcodes():
        if kind == "equal":
            lines += [DiffLine("same", text) for text in old[a:b]]
        else:
            lines += [DiffLine("removed", text) for text in old[a:b]]
            lines += [DiffLine("added", text) for text in new[c:d]]
    return list(_folded(lines))


def _folded(lines: Sequence[DiffLine]) -> Iterator[DiffLine]:
    """Puts a gap in the place of equal lines that are far from any change."""
    changed = [place for place, line in enumerate(lines) if line.kind != "same"]
    near = {place + step for place in changed for step in range(-CONTEXT, CONTEXT + 1)}
    hidden = 0
    for place, line in enumerate(lines):
        if place not in near:
            hidden += 1
            continue
        if hidden:
            yield DiffLine("gap", hidden=hidden)
            hidden = 0
        yield line
    if hidden and changed:
        yield DiffLine("gap", hidden=hidden)


# A text to start from, with the scales of the project's rubric -------------------------------------------


def template_for(project: Project) -> str:
    """Returns markdown with a part for each question that annotators ask, in the reader's language."""
    return "\n".join(_template_lines(project)) + "\n"


def _template_lines(project: Project) -> Iterator[str]:
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
        yield from _heading(3, attribute.shown_name)
        if attribute.description:
            yield attribute.shown_description
            yield ""
        for number, text in enumerate(attribute.shown_levels, 1):
            yield f"{number}. {text}"
        yield ""
        yield _("*Add what distinguishes two neighbouring levels.*")
    yield from _heading(2, _("Difficult cases"))
    yield _("*Give two or three examples that people rated differently, with the rating that you want and the reason.*")
    yield from _heading(2, _("Questions"))
    yield _("*Say whom to ask, and how quickly they answer.*")


def _heading(depth: int, text: str) -> Iterator[str]:
    if depth > 1:
        yield ""
    yield f"{'#' * depth} {text}"
    yield ""
