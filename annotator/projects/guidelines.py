"""Guidelines are versioned: a changed text is a new version, which annotators acknowledge before their next task."""

from django.db import transaction

from annotator import audit
from annotator.models import Guideline, Project


@transaction.atomic
def publish_guidelines(project: Project, text: str) -> Guideline | None:
    """The guideline in force afterwards; an unchanged or empty text publishes nothing."""
    current = project.current_guideline()
    if not text.strip() or (current and current.text == text):
        return current
    published = Guideline.objects.create(project=project, version=current.version + 1 if current else 1, text=text)
    audit.record(
        "guidelines.published", f"guidelines version {published.version}", project=project, characters=len(text)
    )
    return published
