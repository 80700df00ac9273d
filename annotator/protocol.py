"""A project's life: opened, changed, deleted. Where its protocol's numbers change, its tasks are recomputed."""

from collections.abc import Mapping

from django.db import transaction

from annotator import assignment, audit
from annotator.audit import JSON
from annotator.models import Annotation, Membership, Project, Role, User

NUMBERS = (
    "base_annotators",
    "max_annotators",
    "escalate_above",
    "keep",
    "drop_above",
    "spread_scope",
    "spread_attribute",
)


@transaction.atomic
def opened(project: Project, *, by: User) -> None:
    """A project that has just been made belongs to its maker."""
    audit.record("project.created", f"project {project.slug}", project=project, **audit.fields_of(project))
    Membership.objects.create(project=project, user=by, role=Role.MANAGER)


@transaction.atomic
def changed(project: Project, *, before: Mapping[str, JSON]) -> bool:
    """Follows up a change of settings, with `audit.fields_of` before it; returns whether the tasks are recomputed."""
    found = audit.differences(before, audit.fields_of(project))
    if found:
        audit.record("project.changed", f"project {project.slug}", project=project, changed=found)
    if not set(found) & set(NUMBERS):
        return False
    assignment.recount_later(project)
    return True


@transaction.atomic
def delete(project: Project) -> None:
    """With all that is in it; what the audit holds of it stays."""
    counts = {"tasks": project.tasks.count(), "annotations": Annotation.objects.for_project(project.pk).count()}
    audit.record("project.deleted", f"project {project.slug}", project=project, **counts)
    project.delete()
