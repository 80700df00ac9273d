"""Publishes guidelines. A changed text is a new version, which annotators acknowledge before their next task."""

from pathlib import Path

from django.db import transaction

from annotator import audit
from annotator.models import Guideline, Membership, Project

_TEMPLATE = Path(__file__).parent / "guidelines_template.md"


def template() -> str:
    """Returns a text to begin new guidelines with."""
    return _TEMPLATE.read_text(encoding="utf-8")


@transaction.atomic
def publish_guidelines(project: Project, text: str) -> Guideline | None:
    """Publishes the text as the next version, unless it is empty or unchanged; returns the guideline then in force."""
    if not text.strip():
        return project.current_guideline()
    # Without this lock, two people who publish at once would both create the same next version.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    current = project.current_guideline()
    if current and current.text == text:
        return current
    published = Guideline.objects.create(project=project, version=current.version + 1 if current else 1, text=text)
    audit.record(
        "guidelines.published", f"guidelines version {published.version}", project=project, characters=len(text)
    )
    return published


def acknowledge(member: Membership, *, version: int) -> None:
    """Records that the member has read this version. A newer one that came meanwhile still has to be read."""
    current = member.project.current_guideline()
    read = min(version, current.version if current else 0)
    # The condition keeps an old page from taking a later acknowledgement back.
    Membership.objects.filter(pk=member.pk, acknowledged_version__lt=read).update(acknowledged_version=read)
