"""The one check of a project's settings. Every door that creates or changes a project asks it.

What a column alone can say (its type, its bounds) stands beside the column, in the model; here is what settings say
about each other, about the rubric, and about what has been rated.
"""

from collections.abc import Mapping
from copy import copy
from typing import Any

from django.core.exceptions import ValidationError

from annotator.models import Annotation, ExpertRating, Label, Project, Rubric
from annotator.refusals import Refusal

Errors = dict[str, list[str]]


class InvalidProject(Refusal):
    """Settings that no project can have; `errors` says by field why."""

    status = 400
    code = "invalid"

    def __init__(self, errors: Errors) -> None:
        field, texts = next(iter(errors.items()))
        super().__init__(f"{field}: {texts[0]}")
        self.errors = errors


def check(project: Project | None, changes: Mapping[str, Any]) -> None:
    """Whether a project may have these settings: a new one (None) all together, another one beside those it has.

    What stays as it is is not complained about, so that one old setting keeps nobody from changing another.

    Raises:
        InvalidProject: it may not.
    """
    candidate = copy(project) if project else Project()
    for name, value in changes.items():
        setattr(candidate, name, value)
    changed = {
        field.name
        for field in Project._meta.concrete_fields
        if project is None or getattr(candidate, field.attname) != getattr(project, field.attname)
    }
    errors = _of_fields(candidate, changed)
    for name, text in _of_all(candidate, project, changed - set(errors)):
        errors.setdefault(name, []).append(text)
    if errors:
        raise InvalidProject(errors)


def _of_fields(candidate: Project, changed: set[str]) -> Errors:
    """What the model's own validators say of what has changed, and whether the slug is free."""
    unchanged = {field.name for field in Project._meta.concrete_fields} - changed
    errors: Errors = {}
    for validate in (candidate.clean_fields, candidate.validate_unique):
        try:
            validate(exclude=unchanged | set(errors))
        except ValidationError as wrong:
            errors |= wrong.message_dict
    return errors


def _of_all(candidate: Project, project: Project | None, changed: set[str]) -> list[tuple[str, str]]:
    """Field and text of each rule between settings that is broken by one that has changed."""
    errors = []
    if {"base_annotators", "max_annotators"} & changed and candidate.max_annotators < candidate.base_annotators:
        errors.append(("max_annotators", f"It must be at least base_annotators ({candidate.base_annotators})."))
    if "keep" in changed and candidate.keep > candidate.max_annotators:
        errors.append(("keep", f"It must be at most max_annotators ({candidate.max_annotators})."))
    if "rubric" in changed:
        errors += [("rubric", text) for text in _of_rubric(candidate.rubric, project)]
    if {"rubric", "spread_attribute"} & changed and not errors:
        errors += [("spread_attribute", text) for text in _of_spread(candidate)]
    return errors


def _of_rubric(rubric: Rubric, project: Project | None) -> list[str]:
    if project and is_rated(project):
        text = "Responses have been rated with the current rubric and would lose their scores. Create a new project."
        return [text]
    if not rubric.attributes.filter(scope="response").exists():
        return [
            f"No page asks for the attributes of {rubric.key} yet, because it has no attribute of a whole response."
        ]
    return []


def _of_spread(candidate: Project) -> list[str]:
    keys = list(candidate.rubric.attributes.filter(scope="response").values_list("key", flat=True))
    if candidate.spread_attribute in keys:
        return []
    return [
        f"The rubric {candidate.rubric.key} has no attribute {candidate.spread_attribute}. It has {', '.join(keys)}."
    ]


def is_rated(project: Project) -> bool:
    """Whether anything is stored that was said in terms of the project's rubric."""
    return (
        Annotation.objects.for_project(project.pk).exists()
        or Label.objects.for_project(project.pk).exists()
        or ExpertRating.objects.filter(gold__task__project=project).exists()
    )
