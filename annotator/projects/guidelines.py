"""Guidelines are versioned: a changed text is a new version, which annotators acknowledge before their next task."""

from django.db import transaction

from annotator import audit
from annotator.models import Guideline, Membership, Project


@transaction.atomic
def publish_guidelines(project: Project, text: str) -> Guideline | None:
    """The guideline in force afterwards; an unchanged or empty text publishes nothing."""
    if not text.strip():
        return project.current_guideline()
    # Two who publish at once would both make the next version.
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
    """The member has read this version; a newer one that came meanwhile is still to be read. Never goes back."""
    current = member.project.current_guideline()
    read = min(version, current.version if current else 0)
    Membership.objects.filter(pk=member.pk, acknowledged_version__lt=read).update(acknowledged_version=read)
