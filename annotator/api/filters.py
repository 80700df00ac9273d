"""The filters of lists, as query parameters. A list refuses parameters that it does not know (`require_known`).

`filterset_fields` of a view names the fields that are compared as they are; what needs more stands here.
"""

from datetime import UTC, datetime
from typing import Any, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django_filters import rest_framework as filters  # type: ignore[import-untyped]
from rest_framework import serializers
from rest_framework.request import Request

from annotator.analysis.quality.findings import FLAG_COUNT
from annotator.analysis.quality.flags import FlagKind
from annotator.infrastructure.db.clock import database_now
from annotator.managing import invitations
from annotator.models import (
    Annotation,
    Exclusion,
    Import,
    ImportJob,
    Invitation,
    Membership,
    Project,
    Pseudonym,
    RaterQuality,
    Rating,
    Role,
)
from annotator.reading import access

M = TypeVar("M", bound=Model)
PAGES = ("cursor", "page_size")
"""What every list takes."""


def require_known(request: Request, queryset: Any, view: Any) -> None:
    """Raises ValidationError for a query parameter that the list does not have: a misspelt filter would show all."""
    sets = (backend().get_filterset_class(view, queryset) for backend in view.filter_backends)
    names = (name for filters_of_list in sets if filters_of_list for name in filters_of_list.base_filters)
    known = {*PAGES, *getattr(view, "searches", ()), *names}
    if unknown := sorted(set(request.query_params) - known):
        text = f"There is no such parameter. This list has: {', '.join(sorted(known))}."
        raise serializers.ValidationError({name: [text] for name in unknown})


def _require_utc_year(moment: datetime) -> None:
    # At the ends of the calendar an offset leads to the year 0 or 10000, which Python does not have.
    try:
        moment.astimezone(UTC)
    except OverflowError as beyond:
        raise ValidationError("The year of this time cannot be stored.") from beyond


class MomentFilter(filters.IsoDateTimeFilter):  # type: ignore[misc]
    """A filter on a time, compared in UTC because PostgreSQL refuses an offset of 16 hours or more."""

    def __init__(self, field: str, lookup: str, **kwargs: Any) -> None:
        super().__init__(field, lookup, validators=[_require_utc_year], **kwargs)

    def filter(self, queryset: QuerySet[M], value: datetime | None) -> QuerySet[M]:
        rows: QuerySet[M] = super().filter(queryset, value and value.astimezone(UTC))
        return rows


class SinceFilter(filters.BooleanFilter):  # type: ignore[misc]
    """A filter on whether something has happened, by the field that holds its time."""

    def __init__(self, field: str, **kwargs: Any) -> None:
        super().__init__(field, "isnull", exclude=True, **kwargs)


class MemberFilter(filters.FilterSet):  # type: ignore[misc]
    paused = SinceFilter("paused_at")
    qualified = SinceFilter("qualified_at")

    class Meta:
        model = Membership
        fields = ["role"]


class InvitationFilter(filters.FilterSet):  # type: ignore[misc]
    state = filters.ChoiceFilter(choices=Invitation.State.choices, method="in_state")

    class Meta:
        model = Invitation
        fields = ["role"]

    def in_state(self, rows: QuerySet[Invitation], name: str, value: str) -> QuerySet[Invitation]:
        """Returns the invitations that are in this state now."""
        return invitations.in_state(rows, value, now=database_now())


class ImportFilter(filters.FilterSet):  # type: ignore[misc]
    taken_back = SinceFilter("taken_back_at")
    since = MomentFilter("made_at", "gte")
    until = MomentFilter("made_at", "lt")

    class Meta:
        model = Import
        fields = ["file_hash"]


class ImportJobFilter(filters.FilterSet):  # type: ignore[misc]
    since = MomentFilter("created_at", "gte", help_text="asked for at this time or later")
    until = MomentFilter("created_at", "lt", help_text="asked for before this time")

    class Meta:
        model = ImportJob
        fields = ["state", "dry_run"]


class EditFilter(filters.FilterSet):  # type: ignore[misc]
    task = filters.CharFilter("response__task__external_id", help_text="the id that it was imported with")
    rated = filters.BooleanFilter("edited_responses", "isnull", exclude=True, help_text="has become a response")
    since = MomentFilter("annotation__submitted_at", "gte")
    until = MomentFilter("annotation__submitted_at", "lt")

    class Meta:
        model = Rating
        fields = ()


class AnnotationFilter(filters.FilterSet):  # type: ignore[misc]
    since = MomentFilter("submitted_at", "gte", help_text="submitted at this time or later")
    until = MomentFilter("submitted_at", "lt", help_text="submitted before this time")
    submitted_at__gte = MomentFilter("submitted_at", "gte", help_text="the same as `since`")
    submitted_at__lt = MomentFilter("submitted_at", "lt", help_text="the same as `until`")
    annotator = filters.CharFilter(method="by_pseudonym", help_text="pseudonym")
    task = filters.CharFilter("assignment__task__external_id", help_text="the id that it was imported with")
    counts = filters.BooleanFilter("assignment__counts")
    extra = filters.BooleanFilter("assignment__extra")

    class Meta:
        model = Annotation
        fields = ["origin"]

    def by_pseudonym(self, rows: QuerySet[Annotation], name: str, value: str) -> QuerySet[Annotation]:
        """Returns the annotations of the one whom the project calls so."""
        return rows.filter(assignment__annotator__in=_called(self, value))


class ExclusionFilter(filters.FilterSet):  # type: ignore[misc]
    annotator = filters.CharFilter(method="by_pseudonym", help_text="pseudonym")

    class Meta:
        model = Exclusion
        fields = ()

    def by_pseudonym(self, rows: QuerySet[Exclusion], name: str, value: str) -> QuerySet[Exclusion]:
        """Returns the exclusion of the one whom the project calls so."""
        return rows.filter(annotator__in=_called(self, value))


class RaterQualityFilter(filters.FilterSet):  # type: ignore[misc]
    annotator = filters.CharFilter(method="by_name", help_text="pseudonym; for managers the username too")
    q = filters.CharFilter(method="by_part", help_text="a part of the pseudonym; for managers of the username too")
    role = filters.ChoiceFilter(choices=Role.choices, method="by_role", help_text="members who have this role now")
    paused = filters.BooleanFilter(method="by_pause")
    excluded = filters.BooleanFilter(method="by_exclusion")
    flagged = filters.BooleanFilter(method="by_flags")
    flag = filters.ChoiceFilter(choices=FlagKind.choices, method="by_kind", help_text="has a flag of this kind")
    ordering = filters.ChoiceFilter(
        choices=[(name, name) for name in ("annotations", "-annotations", "flags", "-flags")],
        method="in_order",
        help_text="by the number of annotations or flags; - for the most first. Without it, in the order of their ids",
    )

    class Meta:
        model = RaterQuality
        fields = ()

    def by_name(self, rows: QuerySet[RaterQuality], name: str, value: str) -> QuerySet[RaterQuality]:
        """Returns the annotator of this name."""
        return self._named(rows, "exact", value)

    def by_part(self, rows: QuerySet[RaterQuality], name: str, value: str) -> QuerySet[RaterQuality]:
        """Returns the annotators in whose names this stands."""
        return self._named(rows, "icontains", value)

    def by_role(self, rows: QuerySet[RaterQuality], name: str, value: str) -> QuerySet[RaterQuality]:
        """Returns those who are members in this role."""
        return rows.filter(annotator__in=self._of_project(Membership).filter(role=value).values("user"))

    def by_pause(self, rows: QuerySet[RaterQuality], name: str, value: bool) -> QuerySet[RaterQuality]:
        """Returns those who are paused, or all others."""
        return _among(rows, self._of_project(Membership).filter(paused_at__isnull=False).values("user"), value)

    def by_exclusion(self, rows: QuerySet[RaterQuality], name: str, value: bool) -> QuerySet[RaterQuality]:
        """Returns those who are excluded, or all others."""
        return _among(rows, self._of_project(Exclusion).values("annotator"), value)

    def by_flags(self, rows: QuerySet[RaterQuality], name: str, value: bool) -> QuerySet[RaterQuality]:
        """Returns those in whose work something stands out, or all others."""
        return rows.exclude(flags=[]) if value else rows.filter(flags=[])

    def by_kind(self, rows: QuerySet[RaterQuality], name: str, value: str) -> QuerySet[RaterQuality]:
        """Returns those who have a flag of this kind."""
        return rows.filter(flags__contains=[{"kind": value}])

    def in_order(self, rows: QuerySet[RaterQuality], name: str, value: str) -> QuerySet[RaterQuality]:
        """Counts the flags, by which the pages of the list may be ordered."""
        return rows.annotate(flag_count=FLAG_COUNT)

    def _named(self, rows: QuerySet[RaterQuality], lookup: str, value: str) -> QuerySet[RaterQuality]:
        called = self._of_project(Pseudonym).filter(**{f"name__{lookup}": value}).values("user")
        by_name = Q(annotator__in=called)
        project = Project.objects.get(slug=_slug(self))
        # A reviewer could find out by a username who has a pseudonym.
        if access.manages(access.user_of(self.request), project):
            by_name |= Q(**{f"annotator__username__{lookup}": value})
        return rows.filter(by_name)

    def _of_project(self, model: type[M]) -> QuerySet[M]:
        return model._default_manager.filter(project__slug=_slug(self))


def _among(rows: QuerySet[RaterQuality], users: QuerySet[Any, Any], are: bool) -> QuerySet[RaterQuality]:
    return rows.filter(annotator__in=users) if are else rows.exclude(annotator__in=users)


def _called(filters_of_list: Any, name: str) -> QuerySet[Any, Any]:
    """Returns the user of this pseudonym in the project of the address."""
    return Pseudonym.objects.filter(project__slug=_slug(filters_of_list), name=name).values("user")


def _slug(filters_of_list: Any) -> str:
    """Returns the slug of the project in the address."""
    slug: str = filters_of_list.request.parser_context["kwargs"]["slug"]
    return slug
