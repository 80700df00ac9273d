"""Rubrics and their attributes. A row that is in use is never changed: an edit adds the next version."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from time import monotonic
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotator.infrastructure.limits import FEWEST_LEVELS, MOST_LEVELS
from annotator.models.scores import JsonCondition

if TYPE_CHECKING:
    from annotator.models.user import User

RUBRIC_SECONDS = 30
LONGEST_DOMAIN = 40
MOST_DOMAINS = 12
FEWEST_DOMAINS = 2


def names_of_domains(domains: Sequence[str]) -> None:
    """Raises ValidationError for domains that nobody could choose from: a single one, too many, or two of one name."""
    if not domains:
        return
    if not FEWEST_DOMAINS <= len(domains) <= MOST_DOMAINS:
        text = gettext("Write %(fewest)d to %(most)d domains, or none.")
        raise ValidationError(text % {"fewest": FEWEST_DOMAINS, "most": MOST_DOMAINS})
    if any(domain != domain.strip() or not domain.isprintable() for domain in domains):
        raise ValidationError(gettext("A domain must be a text of one line without space around it."))
    if len({domain.casefold() for domain in domains}) != len(domains):
        raise ValidationError(gettext("Two domains have the same name."))


class RubricQuerySet(models.QuerySet["Rubric"]):
    def offered(self) -> RubricQuerySet:
        """Returns rubrics that any new project may choose: those that belong to no single project."""
        return self.filter(project=None)

    def offered_to(self, user: User) -> RubricQuerySet:
        """Returns the rubrics that come with the product and those that the user has made; all for a superuser."""
        return self.offered() if user.is_superuser else self.offered().filter(Q(made_by=None) | Q(made_by=user))


class Rubric(models.Model):
    """A named set of attributes that projects rate by.

    A rubric without a `project` is offered to every new project. A project that edits the rubric it rates by gets a row
    of its own: the next version, which follows `previous`. Annotations name the version that they were made with.
    """

    key = models.SlugField()
    version = models.PositiveSmallIntegerField(default=1)
    name = models.CharField(max_length=120)
    project = models.ForeignKey(
        "annotator.Project", null=True, blank=True, on_delete=models.CASCADE, db_index=False, related_name="own_rubrics"
    )
    previous = models.ForeignKey("self", null=True, blank=True, on_delete=models.RESTRICT, related_name="+")
    made_by = models.ForeignKey("annotator.User", null=True, blank=True, on_delete=models.SET_NULL, related_name="+")
    made_at = models.DateTimeField(db_default=Now())

    objects = RubricQuerySet.as_manager()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["key"], condition=Q(project=None), name="offered_rubrics_have_their_own_keys"
            ),
            models.UniqueConstraint(fields=["project", "version"], name="rubric_version_once_per_project"),
        ]

    def __str__(self) -> str:
        return self.shown(self.name)

    @property
    def is_shipped(self) -> bool:
        """Whether the rubric came with the product: nobody here has written its texts."""
        return self.project_id is None and self.made_by_id is None

    def shown(self, text: str) -> str:
        """Returns a text of the rubric for its reader. What somebody here has written is the same in every language."""
        # The translation of an empty text is the catalogue's header.
        return gettext(text) if text and self.is_shipped else text


class _HowMany(JsonCondition):
    """The SQL condition that a column holds a JSON list of 2 to 7 values."""

    # CASE, as AND would not keep PostgreSQL from asking for the length of what is no list.
    sql = (
        "(CASE jsonb_typeof({column}) WHEN 'array' "
        f"THEN jsonb_array_length({{column}}) BETWEEN {FEWEST_LEVELS} AND {MOST_LEVELS} ELSE false END)"
    )


class Attribute(models.Model):
    """One attribute of a rubric with the text of each of its 2 to 7 levels, lowest first; scores count them from 0.

    `checks` are boxes beside the scale: pairs of a key and a text. `weight` is the attribute's part in the reward; if
    no attribute of the rubric has one, the trainer chooses.
    """

    class Scope(models.TextChoices):
        RESPONSE = "response", _("response")
        SEGMENT = "segment", _("segment")

    rubric = models.ForeignKey(Rubric, on_delete=models.CASCADE, db_index=False, related_name="attributes")
    key = models.SlugField()
    name = models.CharField(max_length=60)
    description = models.TextField(blank=True)
    levels = models.JSONField()
    checks = models.JSONField(default=list, blank=True)
    scope = models.CharField(max_length=10, choices=Scope.choices, default=Scope.RESPONSE)
    weight = models.FloatField(null=True, blank=True)
    position = models.PositiveSmallIntegerField(default=0)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["rubric", "key"], name="attribute_key_once_per_rubric"),
            models.CheckConstraint(condition=_HowMany(models.F("levels")), name="attributes_have_2_to_7_levels"),
        ]

    def __str__(self) -> str:
        return self.name

    def _shown(self, text: str) -> str:
        # A preview has an attribute without a rubric, from what somebody is writing.
        return self.rubric.shown(text) if self.rubric_id else text

    @property
    def shown_name(self) -> str:
        return self._shown(self.name)

    @property
    def shown_description(self) -> str:
        return self._shown(self.description)

    @property
    def shown_levels(self) -> list[str]:
        return [self._shown(text) for text in self.levels]

    @property
    def shown_checks(self) -> list[tuple[str, str]]:
        return [(key, self._shown(text)) for key, text in self.checks]


@lru_cache(maxsize=64)
def attributes_by_version(project_id: int, rubric_id: int, moment: int) -> Mapping[int, tuple[Attribute, ...]]:
    """Returns the attributes of each version that the project has rated by, the one in force first.

    They are read once for each `moment`: every task needs them, and they hardly change.
    """
    own = Rubric.objects.filter(project=project_id)
    known = Rubric.objects.filter(Q(pk=rubric_id) | Q(pk__in=own) | Q(pk__in=own.values("previous")))
    rubrics: dict[int, Rubric] = {}
    attributes: dict[int, list[Attribute]] = {}
    for attribute in Attribute.objects.filter(rubric__in=known).select_related("rubric").order_by("position"):
        rubrics[attribute.rubric_id] = attribute.rubric
        attributes.setdefault(attribute.rubric_id, []).append(attribute)
    versions: dict[int, tuple[Attribute, ...]] = {}
    rubric = rubrics.get(rubric_id)
    while rubric:
        versions[rubric.version] = tuple(attributes[rubric.pk])
        rubric = rubrics.get(rubric.previous_id or 0)
    return MappingProxyType(versions)


class RatedByRubric:
    """What a project is rated by: the attributes of its rubric, as they are now and as they have been."""

    pk: Any
    rubric_id: int

    def attributes_for(self, scope: str = "response") -> list[Attribute]:
        """Returns the attributes in the rubric's order, read at most RUBRIC_SECONDS ago."""
        in_force = next(iter(self.versions_of_attributes().values()), ())
        return [attribute for attribute in in_force if attribute.scope == scope]

    def versions_of_attributes(self) -> Mapping[int, Sequence[Attribute]]:
        """Returns the attributes of each version of the rubric that the project has had, the one in force first."""
        return attributes_by_version(self.pk or 0, self.rubric_id, int(monotonic() // RUBRIC_SECONDS))

    def attributes_ever(self, scope: str = "response", *, versions: Collection[int] = ()) -> list[Attribute]:
        """Returns the attributes of all versions, or of some: those of the newest first, each in its newest wording."""
        ever: dict[str, Attribute] = {}
        for version, attributes in self.versions_of_attributes().items():
            if not versions or version in versions:
                for one in attributes:
                    if one.scope == scope:
                        ever.setdefault(one.key, one)
        return list(ever.values())

    def aspects(self) -> list[Attribute]:
        """Returns the attributes of segments, in the rubric's order; none where whole responses alone are rated."""
        return self.attributes_for(Attribute.Scope.SEGMENT)

    def every_attribute(self) -> list[Attribute]:
        """Returns the attributes of responses, then those of segments."""
        return [*self.attributes_for(), *self.aspects()]

    def attribute_keys(self) -> list[str]:
        return [attribute.key for attribute in self.attributes_for()]

    def scales(self) -> dict[str, int]:
        """Returns the number of levels of each attribute by its key, in the rubric's order."""
        return {attribute.key: len(attribute.levels) for attribute in self.attributes_for()}

    def scales_ever(self) -> dict[str, int]:
        """Returns the number of levels of each attribute of any version, those of segments last, by its key."""
        attributes = (one for scope in Attribute.Scope for one in self.attributes_ever(scope))
        return {attribute.key: len(attribute.levels) for attribute in attributes}

    def most_levels(self) -> int:
        """Returns the number of levels of the longest scale, which is also the last digit that rates."""
        return max((len(attribute.levels) for attribute in self.every_attribute()), default=0)

    def has_boxes(self) -> bool:
        """Returns whether annotators can tick boxes under a scale."""
        return any(attribute.checks for attribute in self.attributes_for())
