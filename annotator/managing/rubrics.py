"""Rubrics of one's own: checks them, offers them to new projects, and publishes a project's next version.

A rubric in use is never changed: the next version is a row of its own, and annotations keep theirs. A key keeps its
number of levels from version to version, so that scores under one key can always be compared.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from secrets import token_hex

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q
from django.utils.translation import gettext as _

from annotator.infrastructure import audit
from annotator.infrastructure.db.storable_text import fault_in
from annotator.infrastructure.limits import (
    FEWEST_LEVELS,
    LONGEST_DESCRIPTION,
    LONGEST_KEY,
    LONGEST_LEVEL,
    LONGEST_NAME,
    MOST_ATTRIBUTES,
    MOST_CHECKS,
    MOST_LEVELS,
)
from annotator.infrastructure.refusals import Refusal
from annotator.managing.preset_rubrics import AttributeText, RubricText
from annotator.managing.presets import scaled_limits
from annotator.managing.settings_check import is_rated
from annotator.models import Annotation, Attribute, Project, Rating, Rubric, Tally, Task, User
from annotator.reading.in_use import require_in_use
from annotator.stages import assignment

LONGEST_RUBRIC_NAME = 120
LARGEST_WEIGHT = 100.0
MOST_COUNTED = 20_000
"""Annotations with scores for an attribute up to which they are counted: a page waits for this."""
_RUBRIC_KEY, _KEY = re.compile(r"[a-z0-9][a-z0-9_-]*"), re.compile(r"[a-z][a-z0-9_]*")
# Names of columns, of fields of a rating, and of fields of the rating page.
RESERVED = frozenset([
    "active_seconds", "annotator", "assignment", "checks", "confidence", "conversation", "id", "justification", "label",
    "label_source", "layout", "line", "messages", "metadata", "model", "preference", "priority", "prompt", "rank",
    "ranking", "response", "response_id", "responses", "reward", "safe", "scores", "task", "text", "unsafe",
])  # fmt: skip
Errors = dict[str, list[str]]


class InvalidRubric(Refusal):
    """No project can rate by this rubric; `errors` holds the reasons by place, such as `attributes.0.levels`."""

    status = 400
    code = "invalid"

    def __init__(self, errors: Errors) -> None:
        place, texts = next(iter(errors.items()))
        super().__init__(f"{place}: {texts[0]}")
        self.errors = errors


# Checking --------------------------------------------------------------------------------------------------


def check(text: RubricText, project: Project | None = None) -> None:
    """Checks that a project can rate by the rubric; with a project, also that it can follow the rubric in use there.

    Raises:
        InvalidRubric: with all reasons, by place.
    """
    errors: Errors = {}
    in_use: dict[str, int] = {}
    if project and is_rated(project):
        # Every attribute that the project has ever rated by keeps its number of levels.
        rows = Attribute.objects.filter(rubric__in=versions(project)).values_list("key", "levels")
        in_use = {key: len(levels) for key, levels in rows}
    for place, fault in _faults(text, in_use):
        errors.setdefault(place, []).append(fault)
    if errors:
        raise InvalidRubric(errors)


def _faults(text: RubricText, in_use: Mapping[str, int]) -> Iterator[tuple[str, str]]:
    if len(text.key) > LONGEST_KEY or not _RUBRIC_KEY.fullmatch(text.key):
        yield "key", _("The key is made of small letters, digits, hyphens and underscores.")
    yield from (("name", fault) for fault in _text_faults(text.name, LONGEST_RUBRIC_NAME))
    if not text.attributes:
        yield "attributes", _("A rubric needs at least one attribute.")
    if len(text.attributes) > MOST_ATTRIBUTES:
        yield "attributes", _("A rubric has at most %(most)s attributes.") % {"most": MOST_ATTRIBUTES}
    weights = [one.weight for one in text.attributes if one.scope == Attribute.Scope.RESPONSE]
    if any(weight is not None for weight in weights) and not any(weights):
        yield "attributes", _("At least one attribute must have a weight in the reward other than 0.")
    keys = [attribute.key for attribute in text.attributes]
    for number, attribute in enumerate(text.attributes[:MOST_ATTRIBUTES]):
        place = f"attributes.{number}"
        if attribute.key in keys[:number]:
            yield f"{place}.key", _("Another attribute has this key.")
        yield from ((f"{place}.{field}", fault) for field, fault in _attribute_faults(attribute))
        levels = in_use.get(attribute.key, len(attribute.levels))
        if levels != len(attribute.levels):
            yield (
                f"{place}.levels",
                _(
                    "Responses have been rated by %(attribute)s with %(levels)s levels. Keep as many, or give the "
                    "attribute another key: it is another scale."
                )
                % {"attribute": attribute.name, "levels": levels},
            )


def _attribute_faults(attribute: AttributeText) -> Iterator[tuple[str, str]]:
    yield from (("key", fault) for fault in _key_faults(attribute.key))
    if attribute.key in RESERVED:
        yield "key", _("%(key)s is the name of another field. Choose another key.") % {"key": attribute.key}
    yield from (("name", fault) for fault in _text_faults(attribute.name, LONGEST_NAME))
    yield from (("description", fault) for fault in _text_faults(attribute.description or "-", LONGEST_DESCRIPTION))
    if not FEWEST_LEVELS <= len(attribute.levels) <= MOST_LEVELS:
        numbers = {"fewest": FEWEST_LEVELS, "most": MOST_LEVELS, "count": len(attribute.levels)}
        yield "levels", _("A scale has %(fewest)s to %(most)s levels, and this one has %(count)s.") % numbers
    for level in attribute.levels[:MOST_LEVELS]:
        yield from (("levels", fault) for fault in _text_faults(level, LONGEST_LEVEL))
    if len(attribute.checks) > MOST_CHECKS or len({key for key, _text in attribute.checks}) < len(attribute.checks):
        yield (
            "checks",
            _("An attribute has at most %(most)s boxes, each with a key of its own.") % {"most": MOST_CHECKS},
        )
    for key, text in attribute.checks[:MOST_CHECKS]:
        yield from (("checks", fault) for fault in (*_key_faults(key), *_text_faults(text, LONGEST_LEVEL)))
    if attribute.scope not in Attribute.Scope.values:
        yield "scope", _("The scope is one of %(scopes)s.") % {"scopes": ", ".join(Attribute.Scope.values)}
    if attribute.weight is not None and not (isfinite(attribute.weight) and abs(attribute.weight) <= LARGEST_WEIGHT):
        yield (
            "weight",
            _("A weight lies between %(low)s and %(high)s.") % {"low": -LARGEST_WEIGHT, "high": LARGEST_WEIGHT},
        )


def _key_faults(key: str) -> Iterator[str]:
    if len(key) > LONGEST_KEY or not _KEY.fullmatch(key):
        yield _(
            "A key is made of small letters, digits and underscores, begins with a letter and has at most %(most)s "
            "characters."
        ) % {"most": LONGEST_KEY}


def _text_faults(text: str, longest: int) -> Iterator[str]:
    if not text.strip():
        yield _("Write a text.")
    if len(text) > longest:
        yield _("This text is too long. At most %(most)s characters can be stored.") % {"most": longest}
    if fault := fault_in(text):
        yield _("The text holds %(what)s, which cannot be stored.") % {"what": _(fault.what)}


# Publishing ------------------------------------------------------------------------------------------------


def versions(project: Project) -> list[Rubric]:
    """Returns the rubrics that the project has rated by, the one in force first."""
    rows = [project.rubric]
    while previous := rows[-1].previous:
        rows.append(previous)
    return rows


@dataclass(frozen=True)
class Change:
    """What publishing a rubric would do, in the keys of attributes and in numbers.

    `reordered` holds all attributes in their new order, if those that stay change places; `renamed` says that the
    rubric itself gets another name or key.

    Of the project's `annotations`, none changes. Labels of the `complete` tasks stay; those of the `begun` ones will
    hold the attributes that all of their annotations share. `spread_attribute` is the attribute that decides on further
    annotators afterwards. `scored` says for each removed attribute how many annotations have scores for it, counted up
    to MOST_COUNTED: exports keep these.
    """

    version: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    reworded: tuple[str, ...]
    reordered: tuple[str, ...]
    renamed: bool
    annotations: int
    complete: int
    begun: int
    spread_attribute: str
    scored: Mapping[str, int]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.reworded or self.reordered or self.renamed)


def change(project: Project, text: RubricText) -> Change:
    """Returns what `publish` would do.

    Raises:
        InvalidRubric: it would do nothing but refuse.
    """
    check(text, project)
    in_force = RubricText.of(project.rubric)
    old = {attribute.key: attribute for attribute in in_force.attributes}
    new = {attribute.key: attribute for attribute in text.attributes}
    removed = tuple(key for key in old if key not in new)
    tasks = Task.objects.filter(project=project)
    keeps_order = [key for key in new if key in old] == [key for key in old if key in new]
    return Change(
        version=_next_version(project),
        added=tuple(key for key in new if key not in old),
        removed=removed,
        reworded=tuple(key for key in new if key in old and new[key] != old[key]),
        reordered=() if keeps_order else tuple(new),
        renamed=(text.key, text.name) != (in_force.key, in_force.name),
        annotations=sum(Tally.objects.filter(project=project).values_list("done", flat=True)),
        complete=tasks.filter(state=Task.State.COMPLETE).count(),
        begun=tasks.filter(state=Task.State.OPEN, done__gt=0).count(),
        spread_attribute=_spread_attribute(project, text),
        scored={key: _scored_by(project, key) for key in removed},
    )


def _scored_by(project: Project, key: str) -> int:
    """Returns how many annotations have a score for the attribute, MOST_COUNTED at most."""
    scores = Rating.objects.filter(annotation=OuterRef("pk"), scores__has_key=key)
    annotations = Annotation.objects.current().for_project(project.pk)
    scored = annotations.filter(Exists(scores) | Q(aspects__contains=[key]))
    return scored.order_by().values("pk")[:MOST_COUNTED].count()


class NewerRubric(Refusal):
    """Somebody else has published a version since this text was begun; it would replace theirs unread."""

    code = "newer_rubric"

    def __init__(self, current: Rubric) -> None:
        super().__init__(
            _("Version %(version)s was published while you were writing. Nothing of either rubric is lost.")
            % {"version": current.version}
        )
        self.errors = {"version": [str(self)]}
        self.current = current


@transaction.atomic
def publish(project: Project, text: RubricText, *, by: User | None = None, based_on: int | None = None) -> Rubric:
    """Makes the text the next version of the project's rubric; returns the rubric that is then in force.

    The attribute that decides on further annotators stays if the new version has it; else the first one decides.
    `based_on` is the version that the text changes; without it, the text replaces whichever there is.

    Raises:
        NewerRubric: another version than `based_on` is in force, with another text.
        InvalidRubric: no project can rate by it, or it cannot follow the one in use.
        Refusal: the project is archived.
    """
    # Without this lock, two people who publish at once would both make the same next version. The rubric is read by a
    # query of its own: in a join, whoever waited for the lock would find no row once the other has changed `rubric`.
    stored = Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    require_in_use(stored)
    check(text, stored)
    if RubricText.of(stored.rubric) == text:
        return stored.rubric
    if based_on is not None and stored.rubric.version != based_on:
        raise NewerRubric(stored.rubric)
    limits = limits_after(stored, text)
    rubric = _store(text, project=stored, version=_next_version(stored), previous=stored.rubric, by=by)
    before = audit.fields_of(stored)
    stored.rubric, stored.spread_attribute = rubric, _spread_attribute(stored, text)
    stored.escalate_above, stored.drop_above = limits
    stored.save(update_fields=["rubric", "spread_attribute", "escalate_above", "drop_above"])
    changed = audit.differences(before, audit.fields_of(stored))
    audit.record("rubric.published", f"rubric version {rubric.version}", project=stored, changed=changed)
    if set(changed) & {"spread_attribute", "escalate_above", "drop_above"}:
        assignment.recount_later(stored)
    project.refresh_from_db()
    return rubric


def limits_after(project: Project, text: RubricText) -> tuple[int, int]:
    """Returns the limits of the spread under the text, in proportion to the scale of the attribute that decides."""
    old, new = ({one.key: len(one.levels) for one in each.attributes} for each in (RubricText.of(project.rubric), text))
    levels, limits = new[_spread_attribute(project, text)], (project.escalate_above, project.drop_above)
    escalate, drop = scaled_limits(*limits, levels=levels, before=old.get(project.spread_attribute, levels))
    return min(escalate, levels - 1), min(drop, levels - 1)


def _next_version(project: Project) -> int:
    own = project.own_rubrics.order_by("-version").values_list("version", flat=True).first() or 0
    return max(own, project.rubric.version) + 1


def _spread_attribute(project: Project, text: RubricText) -> str:
    # Of whole responses, if there is one: each of many segments has its own chance of a wide spread.
    keys = [one.key for one in sorted(text.attributes, key=lambda one: one.scope != Attribute.Scope.RESPONSE)]
    return project.spread_attribute if project.spread_attribute in keys else keys[0]


def own_of(text: RubricText, *, by: User | None) -> Rubric:
    """Stores a rubric for a project that is about to be made, and to which `give` then gives it.

    Raises:
        InvalidRubric: no project can rate by it.
    """
    check(text)
    # Until the project is there, the row is one that is offered to all, whose keys are unique.
    return _store(text, by=by, key=f"{text.key[:30]}-{token_hex(8)}")


def give(rubric: Rubric, project: Project, *, key: str) -> None:
    """Makes a rubric of `own_of` the project's own, under the key that was written."""
    rubric.project, rubric.key = project, key
    rubric.save(update_fields=["project", "key"])


@transaction.atomic
def offer(text: RubricText, *, by: User) -> Rubric:
    """Stores a rubric that new projects can choose.

    Raises:
        InvalidRubric: no project can rate by it, or another rubric has the key.
    """
    check(text)
    try:
        with transaction.atomic():
            rubric = _store(text, by=by)
    except IntegrityError as taken:
        raise InvalidRubric({"key": [_("Another rubric has this key. Choose another one.")]}) from taken
    audit.record("rubric.offered", f"rubric {rubric.key}", attributes=[one.key for one in text.attributes])
    return rubric


def _store(
    text: RubricText,
    *,
    by: User | None,
    key: str = "",
    project: Project | None = None,
    version: int = 1,
    previous: Rubric | None = None,
) -> Rubric:
    rubric = Rubric.objects.create(
        key=key or text.key, version=version, name=text.name, project=project, previous=previous, made_by=by
    )
    Attribute.objects.bulk_create(
        Attribute(
            rubric=rubric,
            key=one.key,
            name=one.name,
            description=one.description,
            levels=list(one.levels),
            checks=[list(pair) for pair in one.checks],
            scope=one.scope,
            weight=one.weight,
            position=position,
        )
        for position, one in enumerate(text.attributes)
    )
    return rubric


def weights_of(attributes: Sequence[Attribute]) -> dict[str, float]:
    """Returns the attributes' weights in the reward; empty where nobody has chosen any, so that the trainer does."""
    if all(attribute.weight is None for attribute in attributes):
        return {}
    return {attribute.key: attribute.weight or 0.0 for attribute in attributes}
