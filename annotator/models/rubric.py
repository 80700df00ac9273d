"""Rubrics and their attributes. A row that is in use is never changed: an edit adds the next version."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from django.db import models
from django.db.models import Func, Q
from django.db.models.functions import Now
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotator.limits import FEWEST_LEVELS, MOST_LEVELS

if TYPE_CHECKING:
    from annotator.models.user import User

RUBRIC_SECONDS = 30


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


class _HowMany(Func):
    """The SQL condition that a column holds a JSON list of 2 to 7 values."""

    output_field = models.BooleanField()
    conditional = True

    def as_sql(self, compiler: Any, connection: Any, *args: Any, **extra: Any) -> tuple[str, Any]:
        sql, params = compiler.compile(self.source_expressions[0])
        # CASE, as AND would not keep PostgreSQL from asking for the length of what is no list.
        length = f"jsonb_array_length({sql}) BETWEEN {FEWEST_LEVELS} AND {MOST_LEVELS}"
        return f"(CASE jsonb_typeof({sql}) WHEN 'array' THEN {length} ELSE false END)", params


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
