"""Guidelines are versioned: a changed text is a new version, which annotators acknowledge before their next task."""

from annotator.models import Guideline, Project


def publish_guidelines(project: Project, text: str) -> Guideline | None:
    """The guideline in force afterwards; an unchanged or empty text publishes nothing."""
    current = project.current_guideline()
    if not text.strip() or (current and current.text == text):
        return current
    return Guideline.objects.create(project=project, version=current.version + 1 if current else 1, text=text)
