"""Checks a project's settings, for every door that creates or changes a project.

The rules of a single column (its type, its bounds) stand in the model; the rules between settings, and between these,
the rubric and what has been rated, stand here.
"""

from collections.abc import Mapping
from copy import copy
from math import comb
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _

from annotator.infrastructure.refusals import Refusal
from annotator.models import TIE, Annotation, ExpertRating, Label, Project, Rubric

Errors = dict[str, list[str]]
MOST_SUBSETS = 10_000
"""Ways to keep some of a task's annotations. The consensus tries all of them while it holds the task's row lock."""


class InvalidProject(Refusal):
    """No project can have these settings; `errors` holds the reasons by field."""

    status = 400
    code = "invalid"

    def __init__(self, errors: Errors) -> None:
        field, texts = next(iter(errors.items()))
        super().__init__(f"{field}: {texts[0]}")
        self.errors = errors


def check(project: Project | None, changes: Mapping[str, Any]) -> None:
    """Checks that a project may have these settings: all of a new one (None), or the changes of an existing one.

    Settings that stay the same are not checked, so that an old invalid one does not prevent a change of another.

    Raises:
        InvalidProject: with all reasons, by field.
    """
    candidate = copy(project) if project else Project()
    for name, value in changes.items():
        setattr(candidate, name, value)
    changed = {
        field.name
        for field in Project._meta.concrete_fields
        if project is None or getattr(candidate, field.attname) != getattr(project, field.attname)
    }
    unchanged = {field.name for field in Project._meta.concrete_fields} - changed
    errors: Errors = {}
    for validate in (candidate.clean_fields, candidate.validate_unique):
        try:
            validate(exclude=unchanged | set(errors))
        except ValidationError as wrong:
            errors |= wrong.message_dict
    for name, text in _of_all(candidate, project, changed - set(errors)):
        errors.setdefault(name, []).append(text)
    if errors:
        raise InvalidProject(errors)


def _of_all(candidate: Project, project: Project | None, changed: set[str]) -> list[tuple[str, str]]:
    """Returns field and text for each rule between settings that a changed one breaks."""
    errors = []
    if {"base_annotators", "max_annotators"} & changed and candidate.max_annotators < candidate.base_annotators:
        text = _("These cannot be fewer than the annotators who are asked first: %(number)s.")
        errors.append(("max_annotators", text % {"number": candidate.base_annotators}))
    if "keep" in changed and candidate.keep > candidate.max_annotators:
        text = _("A task has %(number)s annotations at most. Keep that many or fewer.")
        errors.append(("keep", text % {"number": candidate.max_annotators}))
    elif {"keep", "max_annotators"} & changed and comb(candidate.max_annotators, candidate.keep) > MOST_SUBSETS:
        text = _(
            "There are too many ways to keep %(kept)s of %(most)s annotations. Keep fewer, or nearly all, or ask fewer "
            "annotators."
        )
        errors.append(("keep", text % {"kept": candidate.keep, "most": candidate.max_annotators}))
    if "rubric" in changed:
        errors += [("rubric", text) for text in _of_rubric(candidate.rubric, project)]
    if "training_config" in changed and (unknown := unknown_keys(candidate, candidate.training_config)):
        text = _("attribute_weights names %(names)s, which the rubric does not have.")
        errors.append(("training_config", text % {"names": ", ".join(unknown)}))
    ties = Annotation.objects.for_project(project.pk if project else 0).filter(preference=TIE)
    if "allow_ties" in changed and project and not candidate.allow_ties and ties.exists():
        text = _("Annotators have answered that both responses are equally good, so this stays on.")
        errors.append(("allow_ties", text))
    if {"rubric", "spread_attribute", "escalate_above", "drop_above"} & changed and not errors:
        errors += _of_spread(candidate, changed)
    return errors


def unknown_keys(project: Project, config: Mapping[str, Any]) -> list[str]:
    """Returns the names in a trainer's `attribute_weights` that are no attributes of the project's rubric."""
    if not (weights := config.get("attribute_weights")):
        return []
    return sorted(set(weights) - {attribute.key for attribute in project.rubric.attributes.all()})


def _of_rubric(rubric: Rubric, project: Project | None) -> list[str]:
    if project and is_rated(project):
        return [
            _("Responses have been rated with the current rubric and would lose their scores. Create a new project.")
        ]
    if rubric.project_id and rubric.project_id != (project.pk if project else None):
        return [_("The rubric %(key)s belongs to another project.") % {"key": rubric.key}]
    if not rubric.attributes.exists():
        return [_("The rubric %(key)s has no attribute to rate by.") % {"key": rubric.key}]
    return []


def _of_spread(candidate: Project, changed: set[str]) -> list[tuple[str, str]]:
    scales = scales_of(candidate.rubric)
    deciding = candidate.spread_attribute
    if deciding not in scales:
        text = _("The rubric %(key)s has no attribute %(attribute)s. It has %(others)s.")
        words = {"key": candidate.rubric.key, "attribute": deciding, "others": ", ".join(scales)}
        return [("spread_attribute", text % words)]
    text = _(
        "%(attribute)s has %(levels)s levels, so two ratings are at most %(widest)s apart. Write a smaller number."
    )
    name, levels = scales[deciding]
    return [
        (field, text % {"attribute": name, "levels": levels, "widest": levels - 1})
        for field in ("escalate_above", "drop_above")
        if {field, "spread_attribute"} & changed and getattr(candidate, field) >= levels
    ]


Scales = Mapping[str, tuple[str, int]]
"""The names of attributes and their numbers of levels, by key."""


def scales_of(rubric: Rubric) -> Scales:
    # Those of whole responses first: each of many segments has its own chance of a wide spread. Sorted here, so that
    # attributes that have been fetched for many projects are not asked for again.
    attributes = sorted(rubric.attributes.all(), key=lambda attribute: (attribute.scope, attribute.position))
    return {attribute.key: (attribute.shown_name, len(attribute.levels)) for attribute in attributes}


def deciding_in(scales: Scales) -> str:
    """Returns the key of the attribute that decides in a new project, unless somebody chooses another one."""
    usual = Project().spread_attribute
    return usual if usual in scales else next(iter(scales), usual)


def never_met(candidate: Project, scales: Scales | None = None) -> list[str]:
    """Returns a sentence for each limit of the spread that no ratings of the deciding attribute can exceed.

    Such limits are allowed, but whoever wrote them meant another scale: they ask nobody, and drop nothing. `scales` are
    those of the project's rubric, unless it is to have another one.
    """
    scales = scales_of(candidate.rubric) if scales is None else scales
    if candidate.spread_attribute not in scales:
        return []
    name, levels = scales[candidate.spread_attribute]
    words = {"attribute": name, "widest": levels - 1, "usual": (levels - 1) // 2}
    sentences = []
    if candidate.max_annotators > candidate.base_annotators and candidate.escalate_above >= levels - 1:
        text = _(
            "Two ratings of %(attribute)s are at most %(widest)s apart, so the spread never asks for more annotators. "
            "Half of the scale is usual: ask more above %(usual)s."
        )
        widest, most = max(scales.values(), key=lambda scale: scale[1])
        other = _("Or let %(attribute)s decide, which has %(levels)s levels.") % {"attribute": widest, "levels": most}
        sentences.append(" ".join([text % words, other]) if most > levels else text % words)
    # Of two levels a limit of 0 would drop every task in which anybody disagrees.
    if candidate.keep > 1 and candidate.drop_above >= levels - 1 > 1:
        text = _(
            "Two ratings of %(attribute)s are at most %(widest)s apart, so no task is ever dropped. Half of the scale "
            "is usual: drop above %(usual)s."
        )
        sentences.append(text % words)
    return sentences


def is_rated(project: Project) -> bool:
    """Says whether any annotation, label or expert rating uses the project's rubric."""
    return (
        Annotation.objects.for_project(project.pk).filter(is_current=True).exists()  # what the index holds
        or Label.objects.for_project(project.pk).exists()
        or ExpertRating.objects.filter(gold__task__project=project).exists()
    )
