"""Creates projects and changes their settings. If the numbers of the protocol change, the tasks are recomputed."""

from collections.abc import Iterable, Mapping
from copy import copy
from itertools import count
from typing import Any

from django.db import IntegrityError, transaction
from django.utils.text import slugify
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.limits import MOST_ANNOTATORS
from annotator.infrastructure.stale_edits import Seen, require_as_seen
from annotator.managing import members, project_settings, rubrics
from annotator.managing.guidelines import publish_guidelines
from annotator.managing.preset_rubrics import DEFAULT_RUBRIC, RubricText
from annotator.managing.setting_table import RECOUNTING
from annotator.managing.settings_check import InvalidProject, check, deciding_in, scales_of
from annotator.models import Project, Rubric, User
from annotator.stages import assignment
from annotator.stages.consensus import ProtocolPreview, protocol_preview


@transaction.atomic
def create(given: Mapping[str, Any], *, by: User | None = None, guidelines: str = "") -> Project:
    """Creates a project with these settings, and HelpSteer2's for the rest; its creator becomes its manager.

    `rubric` is one that is offered to all, or the text of one that becomes the project's own.

    Raises:
        InvalidProject: no project can have these settings, or the slug is taken.
        InvalidRubric: no project can rate by the text.
    """
    own = given["rubric"] if isinstance(given.get("rubric"), RubricText) else None
    settings = dict(given)
    if own:
        settings["rubric"] = rubrics.own_of(own, by=by)
    # What is missing depends in part on what is there.
    rubric = settings.setdefault("rubric", Rubric.objects.offered().get(key=DEFAULT_RUBRIC))
    base = settings.setdefault("base_annotators", Project().base_annotators)
    most = settings.setdefault("max_annotators", min(max(Project().max_annotators, base), MOST_ANNOTATORS))
    settings.setdefault("keep", min(Project().keep, max(most, 1)))
    scales = scales_of(rubric)
    deciding = settings.setdefault("spread_attribute", deciding_in(scales))
    # HelpSteer2's 2 of 5 levels, in proportion: the half of the scale.
    half = (scales[deciding][1] - 1) // 2 if deciding in scales else 2
    settings.setdefault("escalate_above", half)
    settings.setdefault("drop_above", max(half, 1))
    check(None, settings)
    project = Project(**settings)
    _save(project)
    if own:
        rubrics.give(project.rubric, project, key=own.key)
    audit.record("project.created", f"project {project.slug}", project=project, **audit.fields_of(project))
    if guidelines:
        publish_guidelines(project, guidelines)
    if by:
        members.appoint_founder(project, by)
    return project


@transaction.atomic
def change(project: Project, changes: Mapping[str, Any], *, guidelines: str = "", seen: Seen | None = None) -> bool:
    """Changes settings; returns whether the light worker recomputes the tasks.

    If the new number of annotators is below the number that is kept, all of them are kept. `seen` holds settings as
    the caller last read them, where the caller asks not to overwrite what has changed since.

    Raises:
        InvalidProject: the project cannot have these settings, or the slug is taken.
        ChangedMeanwhile: a setting is no longer what the caller has seen.
    """
    # no_key: a plain FOR UPDATE would block everybody who adds rows that refer to the project.
    stored = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    require_as_seen(stored, seen)
    before = audit.fields_of(stored)
    changes = _checked(stored, changes)
    for name, value in changes.items():
        setattr(stored, name, value)
    if changes:
        _save(stored, update_fields=list(changes))
    changed = audit.differences(before, audit.fields_of(stored))
    if changed:
        audit.record("project.changed", f"project {stored.slug}", project=stored, changed=changed)
    if guidelines:
        publish_guidelines(stored, guidelines)
    if recounted := bool(RECOUNTING & set(changed)):
        assignment.recount_later(stored)
    project.refresh_from_db()
    return recounted


def preview(project: Project, changes: Mapping[str, Any]) -> ProtocolPreview:
    """Returns what the changes would do to the tasks and labels that are there. It changes nothing.

    Raises:
        InvalidProject: the project cannot have these settings.
    """
    return protocol_preview(project, candidate(project, changes))


def candidate(project: Project, changes: Mapping[str, Any]) -> Project:
    """Returns the project as the changes would make it, without storing anything.

    Raises:
        InvalidProject: the project cannot have these settings.
    """
    changed = copy(project)
    for name, value in _checked(project, changes).items():
        setattr(changed, name, value)
    return changed


def as_seen(project: Project, names: Iterable[str]) -> dict[str, Any]:
    """Returns the settings of these names as plain values, which JSON holds, to be given to `change` as `seen`."""
    return {name: project.serializable_value(name) for name in names}


def _checked(stored: Project, changes: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the changes with what follows from them, after checking that the project may have them."""
    changes = dict(changes)
    most = changes.get("max_annotators", stored.max_annotators)
    if changes.get("keep", stored.keep) == stored.keep > most >= 1:
        changes["keep"] = most
    check(stored, changes)
    return changes


def _save(project: Project, *, update_fields: list[str] | None = None) -> None:
    """Saves the project.

    Raises:
        InvalidProject: another request has taken the slug since it was checked.
    """
    try:
        # A savepoint, so that the transaction can go on to ask why the row was refused.
        with transaction.atomic():
            project.save(update_fields=update_fields)
    except IntegrityError as broken:
        if Project.objects.filter(slug=project.slug).exclude(pk=project.pk).exists():
            raise InvalidProject({"slug": [_("Another project has this slug. Choose another one.")]}) from broken
        raise


OWN = {"id", "slug", "name", "description", "created_at", "archived_at", "deleted_at", "releases_made", "paused"}
"""What belongs to one project alone. A paused project's copy is not paused: nobody works in it yet."""


def settings_of(source: Project) -> dict[str, Any]:
    """Returns the settings that a copy takes over."""
    fields = (field.name for field in Project._meta.concrete_fields if field.name not in OWN)
    return {name: getattr(source, name) for name in fields}


def copy_project(source: Project, *, slug: str, name: str, description: str, by: User) -> Project:
    """Creates a project with the source's settings, rubric and guidelines; its creator becomes its manager.

    Raises:
        InvalidProject: the slug is taken, or the source has settings from before they were bounded.
    """
    guideline = source.current_guideline()
    given = {**settings_of(source), "slug": slug, "name": name, "description": description}
    if source.rubric.project_id:
        given["rubric"] = RubricText.of(source.rubric)
    return project_settings.create(given, by=by, guidelines=guideline.text if guideline else "")


LONGEST = 50
_FALLBACK = "project"


def free_slug(name: str) -> str:
    """Returns a slug made from the name, with a number behind it where another project has it already."""
    wanted = slugify(name)[:LONGEST].strip("-_") or _FALLBACK
    if not Project.objects.filter(slug=wanted).exists():
        return wanted
    taken = set(Project.objects.filter(slug__startswith=wanted[: LONGEST - 8]).values_list("slug", flat=True))
    numbered = (f"{wanted[: LONGEST - 8]}-{number}" for number in count(2))
    return next(slug for slug in numbered if slug not in taken)
